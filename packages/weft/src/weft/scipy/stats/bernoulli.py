"""One trial: 1 with probability p, else 0."""

import math

from ... import numpy as jnp
from .. import special
from .define import Distribution

__all__ = ["cdf", "logpmf", "pmf", "ppf"]

_define = Distribution("one trial that succeeds with probability p", 1, 0.5)


@_define
def logpmf(k, p, loc=0):
    x = k - loc
    return jnp.where((x < 0) | (x > 1), -math.inf, special.xlogy(x, p) + special.xlog1py(1 - x, -p))


pmf = _define.exp(logpmf)


def _valid(p, value):
    return jnp.where((p >= 0) & (p <= 1), value, math.nan)


@_define
def cdf(k, p):
    return _valid(p, jnp.where(k < 0, 0.0, jnp.where(k < 1, 1 - p, jnp.where(jnp.isnan(k), math.nan, 1.0))))


@_define
def ppf(q, p):
    return _valid(p, jnp.where((q >= 0) & (q <= 1), (q > 1 - p).astype(q.dtype), math.nan))


def __dir__() -> list[str]:
    return sorted(__all__)
