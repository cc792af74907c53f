"""The number of trials up to the first success, with probability p."""

import math

from ... import numpy as jnp
from .. import special
from .define import Distribution

__all__ = ["logpmf", "pmf"]

_define = Distribution("the geometric distribution", 2, 0.25)


@_define
def logpmf(k, p, loc=0):
    x = k - loc
    return jnp.where(x <= 0, -math.inf, special.xlog1py(x - 1, -p) + jnp.log(p))


pmf = _define.exp(logpmf)


def __dir__() -> list[str]:
    return sorted(__all__)
