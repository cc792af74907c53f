"""The beta distribution, on loc <= x <= loc + scale."""

import math

from ... import numpy as jnp
from .. import special
from .define import Distribution

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

_define = Distribution("the beta distribution", 0.5, 2.0, 3.0, weak=True)


@_define
def logpdf(x, a, b, loc=0, scale=1):
    z = (x - loc) / scale
    value = special.xlogy(a - 1, z) + special.xlog1py(b - 1, -z) - special.betaln(a, b) - jnp.log(scale)
    return jnp.where((z < 0) | (z > 1), -math.inf, value)


pdf = _define.exp(logpdf)


@_define
def cdf(x, a, b, loc=0, scale=1):
    return special.betainc(a, b, jnp.clip((x - loc) / scale, 0, 1))


@_define
def sf(x, a, b, loc=0, scale=1):
    return special.betainc(b, a, 1 - jnp.clip((x - loc) / scale, 0, 1))


logcdf, logsf = _define.log(cdf), _define.log(sf)


def __dir__() -> list[str]:
    return sorted(__all__)
