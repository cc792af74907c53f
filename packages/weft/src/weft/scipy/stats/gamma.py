"""The gamma distribution, on x >= loc."""

import math

from ... import numpy as jnp
from .. import special
from .define import Distribution

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

_define = Distribution("the gamma distribution of shape a", 0.5, 2.0)


@_define
def logpdf(x, a, loc=0, scale=1):
    z = (x - loc) / scale
    return jnp.where(x < loc, -math.inf, special.xlogy(a - 1, z) - z - special.gammaln(a) - jnp.log(scale))


pdf = _define.exp(logpdf)


@_define
def cdf(x, a, loc=0, scale=1):
    return special.gammainc(a, jnp.maximum((x - loc) / scale, 0))


@_define
def sf(x, a, loc=0, scale=1):
    return special.gammaincc(a, jnp.maximum((x - loc) / scale, 0))


logcdf, logsf = _define.log(cdf), _define.log(sf)


def __dir__() -> list[str]:
    return sorted(__all__)
