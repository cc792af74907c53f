"""weft.random: random numbers as pure functions of keys. The numbers are JAX's, bit for bit where the dtype allows
it.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from .continuous import *
from .discrete import *
from .keys import *
from .sampling import *

if TYPE_CHECKING:  # what loads when it is first used
    from .counts import *
    from .gammas import *
    from .vectors import *

# families that load when they are first used
_LAZY = {
    **dict.fromkeys(
        (
            "ball",
            "beta",
            "chisquare",
            "dirichlet",
            "f",
            "gamma",
            "generalized_normal",
            "loggamma",
            "random_gamma_p",
            "t",
        ),
        "gammas",
    ),
    **dict.fromkeys(("binomial", "multinomial", "poisson"), "counts"),
    **dict.fromkeys(("double_sided_maxwell", "multivariate_normal", "orthogonal", "wald"), "vectors"),
}

if not TYPE_CHECKING:  # which would take any name that this module lacks for one that `__getattr__` knows
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
        *_LAZY,
    ]

    def __getattr__(name: str):
        if name not in _LAZY:
            raise AttributeError(f"module 'weft.random' has no attribute {name!r}")
        value = globals()[name] = getattr(_import_module(f".{_LAZY[name]}", __name__), name)
        return value

    def __dir__():
        return sorted({*globals(), *__all__} - {"TYPE_CHECKING"})
