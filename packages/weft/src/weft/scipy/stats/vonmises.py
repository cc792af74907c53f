"""The distribution of von Mises on the circle."""

import math

from ... import numpy as jnp
from .. import special
from .define import Distribution

__all__ = ["logpdf", "pdf"]

_define = Distribution("the distribution of von Mises with concentration kappa", 0.5, 2.0)


@_define
def logpdf(x, kappa):
    value = kappa * (jnp.cos(x) - 1) - jnp.log(2 * math.pi * special.i0e(kappa))
    return jnp.where(kappa >= 0, value, math.nan)


pdf = _define.exp(logpdf)


def __dir__() -> list[str]:
    return sorted(__all__)
