"""The number of failures before the n-th success, with probability p."""

import math

from ... import numpy as jnp
from .. import special
from .define import Distribution

__all__ = ["logpmf", "pmf"]

_define = Distribution("the negative binomial distribution", 2, 3, 0.25)


@_define
def logpmf(k, n, p, loc=0):
    y = k - loc
    choices = special.gammaln(n + y) - special.gammaln(y + 1) - special.gammaln(n)
    return jnp.where(y < 0, -math.inf, choices + special.xlogy(n, p) + special.xlog1py(y, -p))


pmf = _define.exp(logpmf)


def __dir__() -> list[str]:
    return sorted(__all__)
