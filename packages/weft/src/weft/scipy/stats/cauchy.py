"""Cauchy's distribution."""

import math

from ... import numpy as jnp
from .define import Distribution

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

_define = Distribution("Cauchy's distribution", 0.5)


@_define
def logpdf(x, loc=0, scale=1):
    return -jnp.log(math.pi * scale) - jnp.log1p(jnp.square((x - loc) / scale))


pdf = _define.exp(logpdf)


@_define
def cdf(x, loc=0, scale=1):
    return jnp.arctan2(scale, loc - x) / math.pi  # exact in the lower tail, unlike 1/2 + arctan(z) / pi


@_define
def sf(x, loc=0, scale=1):
    return jnp.arctan2(scale, x - loc) / math.pi


logcdf, logsf = _define.log(cdf), _define.log(sf)


@_define
def ppf(q, loc=0, scale=1):
    return loc + scale * jnp.tan(math.pi * (q - 0.5))


@_define
def isf(q, loc=0, scale=1):
    return loc + scale * jnp.tan(math.pi * (0.5 - q))


def __dir__() -> list[str]:
    return sorted(__all__)
