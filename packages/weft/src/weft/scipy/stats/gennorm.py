"""The generalized normal distribution, of a density proportional to exp(-|x| ** beta)."""

from ... import numpy as jnp
from .. import special
from .define import Distribution

__all__ = ["cdf", "logpdf", "pdf"]

_define = Distribution("the generalized normal distribution", 0.5, 1.5)


@_define
def logpdf(x, beta):
    return jnp.log(beta / 2) - special.gammaln(1 / beta) - jnp.abs(x) ** beta


pdf = _define.exp(logpdf)


@_define
def cdf(x, beta):
    tail = 0.5 * special.gammaincc(1 / beta, jnp.abs(x) ** beta)
    return jnp.where(x < 0, tail, 1 - tail)


def __dir__() -> list[str]:
    return sorted(__all__)
