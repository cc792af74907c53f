"""Cauchy's distribution wrapped around the circle, on 0 <= x <= 2 pi."""

import math

from ... import numpy as jnp
from .define import Distribution

__all__ = ["logpdf", "pdf"]

_define = Distribution("Cauchy's distribution wrapped around the circle", 0.5, 0.25)


@_define
def logpdf(x, c):
    value = jnp.log1p(-c * c) - jnp.log(2 * math.pi * (1 + c * c - 2 * c * jnp.cos(x)))
    value = jnp.where((x >= 0) & (x <= 2 * math.pi), value, -math.inf)
    return jnp.where((c > 0) & (c < 1), value, math.nan)


pdf = _define.exp(logpdf)


def __dir__() -> list[str]:
    return sorted(__all__)
