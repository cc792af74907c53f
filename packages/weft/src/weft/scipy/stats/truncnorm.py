"""The normal distribution between loc + a scale and loc + b scale."""

import math

from ... import numpy as jnp
from .. import special
from . import norm
from .define import Distribution

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

_define = Distribution("the normal distribution cut at a and b, in units of scale", 0.5, -1.0, 2.0)


def _log_diff(a, b):
    """log(exp(a) - exp(b)) of a >= b."""
    return a + jnp.log1p(-jnp.exp(jnp.where(a == b, 0, b - a)))


def _log_mass(a, b):
    """The logarithm of the normal probability of a < x < b: a difference in the tail that loses the fewest digits."""
    right = a > 0
    a, b = jnp.where(right, -b, a), jnp.where(right, -a, b)
    tail = _log_diff(special.log_ndtr(b), special.log_ndtr(a))
    middle = jnp.log1p(-special.ndtr(a) - special.ndtr(-b))
    return jnp.where(b <= 0, tail, middle)


def _inside(z, a, b, below, value, above):
    value = jnp.where(z < a, below, jnp.where(z > b, above, value))
    return jnp.where(a < b, value, math.nan)


@_define
def logpdf(x, a, b, loc=0, scale=1):
    z = (x - loc) / scale
    return _inside(z, a, b, -math.inf, norm.logpdf(z) - jnp.log(scale) - _log_mass(a, b), -math.inf)


pdf = _define.exp(logpdf)


def _log_part(start, end, a, b):
    return _log_mass(start, end) - _log_mass(a, b)


@_define
def logcdf(x, a, b, loc=0, scale=1):
    z = (x - loc) / scale
    return _inside(z, a, b, -math.inf, _log_part(a, jnp.clip(z, a, b), a, b), 0)


@_define
def logsf(x, a, b, loc=0, scale=1):
    z = (x - loc) / scale
    return _inside(z, a, b, 0, _log_part(jnp.clip(z, a, b), b, a, b), -math.inf)


cdf, sf = _define.exp(logcdf), _define.exp(logsf)


def __dir__() -> list[str]:
    return sorted(__all__)
