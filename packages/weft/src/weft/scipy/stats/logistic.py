"""The logistic distribution."""

from ... import numpy as jnp
from .. import special
from .define import Distribution

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]

_define = Distribution("the logistic distribution", 0.5)


@_define
def logpdf(x, loc=0, scale=1):
    z = jnp.abs((x - loc) / scale)
    return -z - 2 * jnp.log1p(jnp.exp(-z)) - jnp.log(scale)


pdf = _define.exp(logpdf)


@_define
def cdf(x, loc=0, scale=1):
    return special.expit((x - loc) / scale)


@_define
def sf(x, loc=0, scale=1):
    return special.expit((loc - x) / scale)


@_define
def ppf(x, loc=0, scale=1):
    return special.logit(x) * scale + loc


@_define
def isf(x, loc=0, scale=1):
    return -special.logit(x) * scale + loc


def __dir__() -> list[str]:
    return sorted(__all__)
