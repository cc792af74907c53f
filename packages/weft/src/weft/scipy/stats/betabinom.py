"""The number of successes in n trials whose probability is drawn from the beta distribution of a and b."""

import math

from ... import numpy as jnp
from .. import special
from .define import Distribution

__all__ = ["logpmf", "pmf"]

_define = Distribution("the beta-binomial distribution", 2, 5, 1.5, 2.5)


@_define
def logpmf(k, n, a, b, loc=0):
    y = jnp.floor(k - loc)
    value = special.betaln(y + a, n - y + b) - special.betaln(a, b) - jnp.log1p(n) - special.betaln(n - y + 1, y + 1)
    value = jnp.where((y < 0) | (y > n), -math.inf, value)
    return jnp.where((n < 0) | (a <= 0) | (b <= 0), math.nan, value)


pmf = _define.exp(logpmf)


def __dir__() -> list[str]:
    return sorted(__all__)
