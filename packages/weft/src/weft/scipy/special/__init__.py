"""weft.scipy.special: special functions."""

from ...base.lazy import LazyNames as _LazyNames
from .functions import *
from .functions import __all__ as _names

# functions that many programs never need are loaded on first use
_lazy = _LazyNames(
    globals(),
    {
        "integrals": "dawsn erfcx exp1 expi expn fresnel owens_t sici spence wofz",
        "more": ("bernoulli bessel_jn boxcox boxcox1p comb gammasgn log_ndtr loggamma multigammaln poch sph_harm_y"),
        "hypergeometric": "hyp1f1 hyp2f1",
        "legendre": "lpmn lpmn_values",
    },
)
__all__ = [*_names, *_lazy.names()]
__getattr__ = _lazy.find


def __dir__():
    return sorted(__all__)
