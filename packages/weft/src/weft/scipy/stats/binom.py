"""The number of successes in n trials of probability p."""

import math

from ... import numpy as jnp
from .. import special
from .define import Distribution

__all__ = ["logpmf", "pmf"]

_define = Distribution("the binomial distribution", 2, 5, 0.25, weak=True)


@_define
def logpmf(k, n, p, loc=0):
    y = k - loc
    choices = special.gammaln(n + 1) - special.gammaln(y + 1) - special.gammaln(n - y + 1)
    return jnp.where((y < 0) | (y > n), -math.inf, choices + special.xlogy(y, p) + special.xlog1py(n - y, -p))


pmf = _define.exp(logpmf)


def __dir__() -> list[str]:
    return sorted(__all__)
