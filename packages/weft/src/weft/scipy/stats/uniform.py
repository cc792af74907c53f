"""The uniform distribution, on loc <= x <= loc + scale."""

import math

from ... import numpy as jnp
from .define import Distribution

__all__ = ["cdf", "logpdf", "pdf", "ppf"]

_define = Distribution("the uniform distribution", 0.5, weak=True)


@_define
def logpdf(x, loc=0, scale=1):
    return jnp.where(jnp.isnan(x), x, jnp.where((x < loc) | (x > loc + scale), -math.inf, -jnp.log(scale)))


pdf = _define.exp(logpdf)


@_define
def cdf(x, loc=0, scale=1):
    return jnp.clip((x - loc) / scale, 0, 1)


@_define
def ppf(q, loc=0, scale=1):
    return jnp.where((q < 0) | (q > 1), math.nan, loc + scale * q)


def __dir__() -> list[str]:
    return sorted(__all__)
