"""Laplace's distribution."""

from ... import numpy as jnp
from .define import Distribution

__all__ = ["cdf", "logpdf", "pdf"]

_define = Distribution("Laplace's distribution", 0.5)


@_define
def logpdf(x, loc=0, scale=1):
    return -jnp.abs(x - loc) / scale - jnp.log(2 * scale)


pdf = _define.exp(logpdf)


@_define
def cdf(x, loc=0, scale=1):
    z = (x - loc) / scale
    tail = 0.5 * jnp.exp(-jnp.abs(z))
    return jnp.where(z <= 0, tail, 1 - tail)


def __dir__() -> list[str]:
    return sorted(__all__)
