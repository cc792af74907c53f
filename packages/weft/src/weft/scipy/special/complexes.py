"""The gamma function of complex numbers."""

from __future__ import annotations

import math
from typing import Any

from ... import numpy as jnp
from ...numpy.util import in_own_terms

# Stirling's series, B(2k) / (2k (2k - 1)); eight terms are exact to 64 bits from Re z = 10 on
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
_SHIFT = 15  # from Re z = -5


@in_own_terms
def log_gamma_complex(z):
    left = z.real < -5
    w = jnp.where(left, 1 - z, z)
    shift: Any = 0
    for k in range(_SHIFT):
        shift = shift + jnp.log(w + k)
    up = w + _SHIFT
    r = 1 / up
    series = 0
    for c in reversed(_STIRLING):
        series = series * (r * r) + c
    value = (up - 0.5) * jnp.log(up) - up + math.log(2 * math.pi) / 2 + series * r - shift
    # log gamma(z) = log pi - log sin(pi z) - log gamma(1 - z), on the branch that is continuous off the negative axis
    x = z.real - 2 * jnp.floor(z.real / 2)
    sine = jnp.sin(math.pi * (x + 1j * z.imag))
    turns = jnp.copysign(2 * math.pi, z.imag) * jnp.floor(z.real / 2 + 0.25)
    return jnp.where(left, math.log(math.pi) - jnp.log(sine) + 1j * turns - value, value).astype(z.dtype)


@in_own_terms
def gamma_complex(z):
    """The gamma function of complex numbers; NaN at its poles, where its limits differ."""
    pole = (z.imag == 0) & (z.real <= 0) & (z.real == jnp.floor(z.real))
    value = jnp.exp(log_gamma_complex(jnp.where(pole, 1, z)))
    real = (z.imag == 0) & jnp.isfinite(z.real)
    value = jnp.where(real, value.real + 0j, value).astype(z.dtype)
    return jnp.where(pole, complex(math.nan, math.nan), value).astype(z.dtype)
