"""The normal distribution."""

import math

from ... import numpy as jnp
from .. import special
from .define import Distribution

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

_define = Distribution("the normal distribution with mean loc and standard deviation scale", 0.5)


@_define
def logpdf(x, loc=0, scale=1):
    return -(math.log(2 * math.pi) + jnp.square((x - loc) / scale)) / 2 - jnp.log(scale)


pdf = _define.exp(logpdf)


@_define
def cdf(x, loc=0, scale=1):
    return special.ndtr((x - loc) / scale)


@_define
def sf(x, loc=0, scale=1):
    return special.ndtr((loc - x) / scale)


@_define
def logcdf(x, loc=0, scale=1):
    return special.log_ndtr((x - loc) / scale)


@_define
def logsf(x, loc=0, scale=1):
    return special.log_ndtr((loc - x) / scale)


@_define
def ppf(q, loc=0, scale=1):
    return special.ndtri(q) * scale + loc


@_define
def isf(q, loc=0, scale=1):
    return loc - special.ndtri(q) * scale


def __dir__() -> list[str]:
    return sorted(__all__)
