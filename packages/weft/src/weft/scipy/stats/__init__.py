"""weft.scipy.stats: a module for each distribution, kernel density estimates, and statistics of samples. All load
when they are first used.
"""

from ...base.lazy import LazyNames as _LazyNames

_lazy = _LazyNames(
    globals(),
    {
        "kde": "gaussian_kde",
        "samples": "mode rankdata sem",
    },
    modules=(
        "bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l gumbel_r"
        " laplace logistic multinomial multivariate_normal nbinom norm pareto poisson t truncnorm uniform"
        " vonmises wrapcauchy"
    ),
)
__getattr__ = _lazy.find


def __dir__():
    return sorted(_lazy.names())
