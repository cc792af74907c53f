"""weft.scipy.stats: a module for each distribution, kernel density estimates, and statistics of samples. All load
when they are first used.
"""

from importlib import import_module as _import_module

_DISTRIBUTIONS = (
    "bernoulli",
    "beta",
    "betabinom",
    "binom",
    "cauchy",
    "chi2",
    "dirichlet",
    "expon",
    "gamma",
    "gennorm",
    "geom",
    "gumbel_l",
    "gumbel_r",
    "laplace",
    "logistic",
    "multinomial",
    "multivariate_normal",
    "nbinom",
    "norm",
    "pareto",
    "poisson",
    "t",
    "truncnorm",
    "uniform",
    "vonmises",
    "wrapcauchy",
)
_NAMES = {"gaussian_kde": "kde", "mode": "samples", "rankdata": "samples", "sem": "samples"}


def __getattr__(name: str):
    if name in _DISTRIBUTIONS:
        return _import_module(f"{__name__}.{name}")
    if name in _NAMES:
        return getattr(_import_module(f"{__name__}.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'weft.scipy.stats' has no attribute {name!r}")


def __dir__():
    return sorted((*_DISTRIBUTIONS, *_NAMES))
