"""The exponential distribution, on x >= loc."""

import math

from ... import numpy as jnp
from .define import Distribution, log1mexp

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

_define = Distribution("the exponential distribution", 0.5, weak=True)


@_define
def logpdf(x, loc=0, scale=1):
    return jnp.where(x < loc, -math.inf, -(x - loc) / scale - jnp.log(scale))


pdf = _define.exp(logpdf)


@_define
def cdf(x, loc=0, scale=1):
    return jnp.where(x < loc, 0.0, -jnp.expm1((loc - x) / scale))


@_define
def logcdf(x, loc=0, scale=1):
    return jnp.where(x < loc, -math.inf, log1mexp(jnp.minimum((loc - x) / scale, 0)))


@_define
def logsf(x, loc=0, scale=1):
    return jnp.where(x < loc, 0.0, (loc - x) / scale)


sf = _define.exp(logsf)


@_define
def ppf(q, loc=0, scale=1):
    return jnp.where((q < 0) | (q > 1), math.nan, loc - scale * jnp.log1p(-q))


def __dir__() -> list[str]:
    return sorted(__all__)
