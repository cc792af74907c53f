"""Poisson's distribution: the number of events of which mu are expected."""

import math

from ... import lax
from ... import numpy as jnp
from .. import special
from .define import Distribution

__all__ = ["cdf", "entropy", "logpmf", "pmf"]

_define = Distribution("Poisson's distribution", 2, 1.5)


@_define
def logpmf(k, mu, loc=0):
    y = k - loc
    return jnp.where((y < 0) | (y != jnp.floor(y)), -math.inf, special.xlogy(y, mu) - special.gammaln(y + 1) - mu)


pmf = _define.exp(logpmf)


@_define
def cdf(k, mu, loc=0):
    y = jnp.floor(k - loc)
    return jnp.where(y < 0, 0.0, special.gammaincc(jnp.maximum(y + 1, 1), mu))


# from mu = 100 the asymptotic series is exact; below, no more than 250 values have a probability that counts
_LARGE, _TERMS = 100.0, 250


@_define
def entropy(mu, loc=0):
    mu = mu + 0 * loc
    small = jnp.where((mu > 0) & (mu < _LARGE), mu, 1.0)

    def step(k, total):
        log_p = (
            special.xlogy(jnp.asarray(k, small.dtype), small) - small - special.gammaln(jnp.asarray(k + 1, small.dtype))
        )
        return total - log_p * jnp.exp(log_p)

    direct = lax.fori_loop(0, _TERMS, step, jnp.zeros_like(small))
    large = jnp.where(mu >= _LARGE, mu, _LARGE)
    tail = jnp.polyval(jnp.array([-863 / 2520, -9 / 80, -19 / 360, -1 / 24, -1 / 12, 0], small.dtype), 1 / large)
    value = jnp.where(mu < _LARGE, direct, (math.log(2 * math.pi * math.e) + jnp.log(large)) / 2 + tail)
    return jnp.where(mu > 0, value, jnp.where(mu == 0, 0.0, math.nan))


def __dir__() -> list[str]:
    return sorted(__all__)
