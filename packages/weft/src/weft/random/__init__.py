"""weft.random: random numbers as pure functions of keys. The numbers are JAX's, bit for bit where the dtype allows
it.
"""

from typing import TYPE_CHECKING

from ..base.lazy import LazyNames as _LazyNames
from .continuous import *
from .discrete import *
from .keys import *
from .sampling import *

if TYPE_CHECKING:  # loaded on first use
    from .counts import *
    from .gammas import *
    from .vectors import *

# families that are loaded on first use
_lazy = _LazyNames(
    globals(),
    {
        "gammas": "ball beta chisquare dirichlet f gamma generalized_normal loggamma random_gamma_p t",
        "counts": "binomial multinomial poisson",
        "vectors": "double_sided_maxwell multivariate_normal orthogonal wald",
    },
)

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts every name
    __all__ = [
        "PRNGKey",
        "bernoulli",
        "bits",
        "categorical",
        "cauchy",
        "choice",
        "clone",
        "exponential",
        "fold_in",
        "geometric",
        "gumbel",
        "key",
        "key_data",
        "key_dtype",
        "key_impl",
        "laplace",
        "logistic",
        "lognormal",
        "maxwell",
        "normal",
        "pareto",
        "permutation",
        "rademacher",
        "randint",
        "rayleigh",
        "split",
        "triangular",
        "truncated_normal",
        "uniform",
        "weibull_min",
        "wrap_key_data",
        *_lazy.names(),
    ]

    __getattr__ = _lazy.find

    def __dir__():
        return sorted(__all__)
