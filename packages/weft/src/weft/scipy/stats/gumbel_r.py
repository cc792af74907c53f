"""Gumbel's distribution of maxima."""

import math

from ... import numpy as jnp
from .define import Distribution, log1mexp

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

_define = Distribution("Gumbel's distribution of maxima", 0.5)


@_define
def logpdf(x, loc=0, scale=1):
    z = (x - loc) / scale
    return jnp.where(scale > 0, -z - jnp.exp(-z) - jnp.log(scale), math.nan)


pdf = _define.exp(logpdf)


@_define
def logcdf(x, loc=0, scale=1):
    return jnp.where(scale > 0, -jnp.exp((loc - x) / scale), math.nan)


cdf = _define.exp(logcdf)


@_define
def sf(x, loc=0, scale=1):
    return -jnp.expm1(logcdf(x, loc, scale))


@_define
def logsf(x, loc=0, scale=1):
    return log1mexp(logcdf(x, loc, scale))


@_define
def ppf(p, loc=0, scale=1):
    return jnp.where((p > 0) & (p < 1) & (scale > 0), loc - scale * jnp.log(-jnp.log(p)), math.nan)


def __dir__() -> list[str]:
    return sorted(__all__)
