"""Pareto's distribution, on x >= loc + scale."""

import math

from ... import numpy as jnp
from .define import Distribution, log1mexp

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

_define = Distribution("Pareto's distribution", 1.5, 2.0)


@_define
def logpdf(x, b, loc=0, scale=1):
    z = (x - loc) / scale
    return jnp.where(z < 1, -math.inf, jnp.log(b / scale) - (b + 1) * jnp.log(z))


pdf = _define.exp(logpdf)


@_define
def logsf(x, b, loc=0, scale=1):
    return -b * jnp.log(jnp.maximum((x - loc) / scale, 1))


sf = _define.exp(logsf)


@_define
def cdf(x, b, loc=0, scale=1):
    return -jnp.expm1(logsf(x, b, loc, scale))


@_define
def logcdf(x, b, loc=0, scale=1):
    return log1mexp(logsf(x, b, loc, scale))


@_define
def ppf(q, b, loc=0, scale=1):
    return jnp.where((q < 0) | (q > 1), math.nan, loc + scale * jnp.exp(-jnp.log1p(-q) / b))


def __dir__() -> list[str]:
    return sorted(__all__)
