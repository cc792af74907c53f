"""Integrals of elementary functions: the Faddeeva function and its kin, exponential, sine, cosine and Fresnel
integrals, the dilogarithm, Owen's T.
"""

from __future__ import annotations

import math
from typing import Any, Callable

from ...base import dtypes, limits
from ... import numpy as jnp
from ...lax import fori_loop
from ...numpy.util import on_device, promote_inexact
from ...primitives import linear
from ...primitives import special as gammas
from . import functions as sp
from .rules import is_double, rule, special

_EULER = 0.5772156649015329

# The Faddeeva function by the trapezoidal rule, with nodes k h or (k + 1/2) h, whichever are farther from z, and the
# residue at z. M. Al Azah and
# S. N. Chandler-Wilde, "Computation of the complex error function using modified trapezoidal rules" (2021).
_NODES = 12
_H = math.sqrt(math.pi / _NODES)


def _far(x):
    """Where 1 / z**2 no longer counts, and z**2 could overflow."""
    return 1e8 if is_double(x) else 1e4


def _weighted(square, whole, sign: int):
    """sum(exp(-t**2) / (square + sign * t**2)) over the nodes t, at whole multiples of h (the first one half) where
    `whole` holds, or else between them.
    """
    total = 0
    for k in range(_NODES):
        t, u = k * _H, (k + 0.5) * _H
        weight = (
            math.exp(-u * u)
            if whole is None
            else jnp.where(whole, math.exp(-t * t) * (1 if k else 0.5), math.exp(-u * u))
        )
        node = u * u if whole is None else jnp.where(whole, t * t, u * u)
        total = total + weight / (square + sign * node)
    return total


def _dawsn_real(x):
    y = jnp.abs(x)
    safe = jnp.minimum(y, _far(x))
    r = safe / _H - jnp.floor(safe / _H)
    whole = (r > 0.25) & (r < 0.75)
    angle = math.pi * jnp.where(whole, r - 0.5, r)  # cot(pi r) = -tan(pi (r - 1/2))
    value = 2 * _H / math.pi * safe * _weighted(safe * safe, whole, -1) + jnp.exp(-safe * safe) * jnp.tan(angle)
    value = jnp.where(y > safe, 1 / (2 * y), math.sqrt(math.pi) / 2 * value)
    return jnp.copysign(value, x)


_dawsn = rule(_dawsn_real, lambda out, x: 1 - 2 * x * out, name="dawsn")


def _wofz_complex(z):
    x, y = jnp.abs(z.real), jnp.abs(z.imag)
    size = jnp.maximum(x, y)
    far = size > _far(x)
    a, b = jnp.where(far, 1, x), jnp.where(far, 1, y)
    r = a / _H - jnp.floor(a / _H)
    near = b < math.pi / _H
    whole = near & (r > 0.25) & (r < 0.75)
    u = a + 1j * b
    total = 2j * _H / math.pi * u * _weighted(u * u, whole, -1)
    v = a + 1j * jnp.minimum(b, math.pi / _H)
    pole = 2 * jnp.exp(-v * v) / (1 + jnp.where(whole, -1, 1) * jnp.exp(-2j * math.pi / _H * v))
    value = total + jnp.where(near, pole, 0)
    limit = 1j / math.sqrt(math.pi) / jnp.where(far & jnp.isfinite(size), x + 1j * y, 1)
    value = jnp.where(far, jnp.where(jnp.isinf(size), 0, limit), value)
    below = z.imag < 0
    value = value.real + 1j * jnp.where((z.real < 0) != below, -value.imag, value.imag)
    value = jnp.where(below, 2 * jnp.exp(jnp.where(below, -z * z, 0)) - value, value)
    return jnp.where(jnp.isnan(z.real) | jnp.isnan(z.imag), math.nan, value).astype(z.dtype)


_wofz = rule(_wofz_complex, lambda out, z: 2j / math.sqrt(math.pi) - 2 * z * out, name="wofz")


def wofz(z):
    """The Faddeeva function exp(-z**2) erfc(-i z) of complex numbers.

    Args:
        z: array of complex numbers, any shape.

    Returns:
        array of complex numbers, the shape of z.

    Raises:
        TypeError: for lists.

    Source: DLMF 7.2.3; Al Azah and Chandler-Wilde, "Computation of the complex error function using modified
    trapezoidal rules" (2021).

    Example:
        >>> from weft.scipy import special
        >>> special.wofz(0j).tolist()
        (1+0j)
    """
    (z,) = promote_inexact("wofz", z)
    z = on_device(z)
    wide = dtypes.complex128 if limits.finfo(z.dtype).bits == 64 else dtypes.complex64
    return _wofz(linear.convert(z, wide, False))


def erfcx(x):
    """exp(x**2) erfc(x), which falls like 1 / x, of real or complex numbers.

    Args:
        x: array of numbers, any shape; integers are converted to floats.

    Returns:
        array of floats or complex numbers, the shape of x.

    Source: DLMF 7.2.3; Al Azah and Chandler-Wilde, "Computation of the complex error function using modified
    trapezoidal rules" (2021).

    Example:
        >>> from weft.scipy import special
        >>> round(float(special.erfcx(100.)), 6)
        0.005642
    """
    return _erfcx_of(x)


_erfcx_of = special(
    lambda x: _wofz(1j * x) if dtypes.is_complex(x.dtype) else gammas.erfcx(x), "erfcx", complex_too=True
)(erfcx)
erfcx = _erfcx_of


@special(_dawsn, "dawsn")
def dawsn(x):
    """Dawson's integral, exp(-x**2) times the integral of exp(t**2) from 0 to x.

    Args:
        x: array of numbers, any shape; integers are converted to floats.

    Returns:
        array of floats or complex numbers, the shape of x.

    Source: DLMF 7.2.5; Al Azah and Chandler-Wilde, "Computation of the complex error function using modified
    trapezoidal rules" (2021).

    Example:
        >>> from weft.scipy import special
        >>> round(float(special.dawsn(1.)), 4)
        0.5381
    """


# exponential integrals -----------------------------------------------------------------------------------------------


def _fraction(n, z, steps: int):
    """exp(z) E_n(z), by its continued fraction from the back (DLMF 8.19.17)."""

    def step(i, tail):
        k = (steps - jnp.asarray(i, n.dtype)).astype(n.dtype)
        return k * (n + k - 1) / (z + n + 2 * k - tail)

    return 1 / (z + n - fori_loop(0, steps, step, jnp.zeros_like(z)))


def _expn_real(n, x):
    steps, terms = (90, 20) if is_double(x) else (26, 12)
    small = x <= 1
    y = jnp.where(small & (x > 0), x, 1)
    order = jnp.maximum(n, 1)

    def term(i, state):
        power, total = state
        m = jnp.asarray(i, x.dtype)
        off = m - order + 1
        return -power * y / (m + 1), total - jnp.where(off == 0, 0, power / jnp.where(off == 0, 1, off))

    _, series = fori_loop(0, terms, term, (jnp.ones_like(y), jnp.zeros_like(y)))
    odd = order - 2 * jnp.floor(order / 2)
    first = order == 1  # where XLA's digamma and lgamma have errors
    leading = jnp.exp(jnp.where(first, 0, (order - 1) * jnp.log(y) - gammas.lgamma(order))) * (2 * odd - 1)
    series = series + leading * (jnp.where(first, -_EULER, gammas.digamma(order)) - jnp.log(y))
    large = jnp.where(small, 1, x)
    value = jnp.where(small, series, jnp.exp(-large) * _fraction(order, large, steps))
    value = jnp.where(n == 0, jnp.exp(-x) / jnp.where(x == 0, 1, x), value)
    value = jnp.where(x == 0, jnp.where(n > 1, 1 / jnp.where(n > 1, n - 1, 1), math.inf), value)
    return jnp.where(
        (x < 0) | (n < 0) | (n != jnp.floor(n)) | jnp.isnan(x), math.nan, jnp.where(x == math.inf, 0, value)
    )


_expn: Callable = rule(
    _expn_real,
    None,
    lambda out, n, x: -jnp.where(n == 0, jnp.exp(-x) * (1 + x) / (x * x), _expn(jnp.maximum(n - 1, 0), x)),
    name="expn",
)
_exp1 = rule(lambda x: _expn_real(jnp.ones_like(x), x), lambda out, x: -jnp.exp(-x) / x, name="exp1")


def _expi_real(x):
    switch, terms, most = (40, 115, 40) if is_double(x) else (20, 60, 20)
    y = jnp.where((x > 0) & (x <= switch), x, 1)

    def term(i, state):
        power, total = state
        k = jnp.asarray(i + 1, x.dtype)
        power = power * y / k
        return power, total + power / k

    series = fori_loop(0, terms, term, (jnp.ones_like(y), jnp.zeros_like(y)))[1] + jnp.log(y) + _EULER
    large = jnp.where(x > switch, x, switch)
    tail = fori_loop(0, most, lambda i, t: 1 + t * (most - jnp.asarray(i, x.dtype)) / large, jnp.ones_like(large))
    asymptotic = jnp.where(x == math.inf, x, jnp.exp(large) / large * tail)
    value = jnp.where(x > switch, asymptotic, series)
    value = jnp.where(x == 0, -math.inf, value)
    return jnp.where(x < 0, -_expn_real(jnp.ones_like(x), jnp.abs(x)), jnp.where(jnp.isnan(x), x, value))


_expi = rule(_expi_real, lambda out, x: jnp.exp(x) / x, name="expi")


@special(_expn, "expn")
def expn(n, x):
    """The integral of exp(-x t) / t**n from t = 1 on, for whole n >= 0 and x >= 0 (else NaN); its derivative with
    respect to n is taken for zero.

    Args:
        n: array of whole numbers, not negative.
        x: array of real numbers, not negative, which broadcasts with n.

    Returns:
        array of floats, the broadcast shape.

    Source: DLMF 8.19.2.

    Example:
        >>> from weft.scipy import special
        >>> round(float(special.expn(2, 1.)), 4)
        0.1485
    """


@special(_exp1, "exp1")
def exp1(x):
    """The integral of exp(-t) / t from x >= 0 on.

    Args:
        x: array of real numbers, any shape; integers are converted to floats.

    Returns:
        array of floats, the shape of x.

    Source: DLMF 6.2.1.

    Example:
        >>> from weft.scipy import special
        >>> round(float(special.exp1(1.)), 4)
        0.2194
    """


@special(_expi, "expi")
def expi(x):
    """The integral of exp(t) / t from -inf to x (its principal value).

    Args:
        x: array of numbers, rank at least 1.

    Returns:
        array of floats, the shape of x.

    Source: DLMF 6.2.5.

    Example:
        >>> from weft.scipy import special
        >>> round(float(special.expi(1.)), 4)
        1.8951
    """


# sine, cosine and Fresnel integrals ----------------------------------------------------------------------------------


def _sici_real(x):
    y = jnp.abs(x)
    small = jnp.where(y <= 4, y, 1)
    sine, cosine, power = jnp.zeros_like(y), jnp.zeros_like(y), jnp.ones_like(y)
    for k in range(1, 35):
        power = power * small / k
        part = power * ((1, 1, -1, -1)[k % 4] / k)
        sine, cosine = (sine + part, cosine) if k % 2 else (sine, cosine + (part if k % 4 == 0 else part))
    cosine = cosine + jnp.log(jnp.where(y == 0, 1, small)) + _EULER
    large = jnp.where((y > 4) & (y < math.inf), y, 5)
    z = 1j * large
    # E1(iy) = -Ci(y) + i (Si(y) - pi/2)
    tail = jnp.exp(-z) * _fraction(jnp.ones_like(large), z, 50 if is_double(x) else 20)
    sine = jnp.where(y <= 4, sine, jnp.where(y == math.inf, 0, tail.imag) + math.pi / 2)
    cosine = jnp.where(y <= 4, jnp.where(y == 0, -math.inf, cosine), jnp.where(y == math.inf, 0, -tail.real))
    lost = jnp.isnan(x)
    return jnp.where(lost, x, jnp.where(x < 0, -sine, sine)), jnp.where(lost | (x == -math.inf), math.nan, cosine)


def _sici_slope(out, x):
    return jnp.where(x == 0, 1, jnp.sin(x) / jnp.where(x == 0, 1, x)), jnp.cos(x) / x


_sici = rule(_sici_real, _sici_slope, name="sici")


def _fresnel_real(x):
    y = jnp.abs(x)
    small = jnp.where(y < 1.6, y, 1)
    t = math.pi / 2 * small * small
    parts, power = [jnp.zeros_like(y), jnp.zeros_like(y)], small
    for k in range(30):
        parts[k % 2] = parts[k % 2] + power * ((1, 1, -1, -1)[k % 4] / (2 * k + 1))
        power = power * t / (k + 1)
    large = jnp.where((y >= 1.6) & (y < math.inf), y, 2)
    square = large * large
    turn = jnp.exp(0.5j * math.pi * (square - 4 * jnp.floor(square / 4)))
    big = (0.5 + 0.5j) * (1 - turn * _wofz_complex(math.sqrt(math.pi) / 2 * (1 + 1j) * large))
    out = [
        jnp.where(y < 1.6, parts[1 - k], jnp.where(y == math.inf, 0.5, v)) for k, v in enumerate((big.imag, big.real))
    ]
    return tuple(jnp.where(jnp.isnan(x), x, jnp.copysign(v, x)) for v in out)


_fresnel = rule(
    _fresnel_real, lambda out, x: (jnp.sin(math.pi / 2 * x * x), jnp.cos(math.pi / 2 * x * x)), name="fresnel"
)


@special(_sici, "sici")
def sici(x):
    """(Si, Ci): the integral of sin(t) / t from 0 to x, and minus that of cos(t) / t from |x| on.

    Args:
        x: array of numbers, rank at least 1.

    Returns:
        pair of arrays of floats, the shape of x.

    Source: DLMF 6.2.9, 6.2.11.

    Example:
        >>> from weft.scipy import special
        >>> [round(float(v), 4) for v in special.sici(1.)]
        [0.9461, 0.3374]
    """


@special(_fresnel, "fresnel", error=NotImplementedError)
def fresnel(x):
    """(S, C): the integrals of sin(pi t**2 / 2) and cos(pi t**2 / 2) from 0 to x.

    Args:
        x: array of numbers, rank at least 1.

    Returns:
        pair of arrays of floats, the shape of x.

    Source: DLMF 7.2.7, 7.2.8.

    Example:
        >>> from weft.scipy import special
        >>> [round(float(v), 4) for v in special.fresnel(1.)]
        [0.4383, 0.7799]
    """


# the dilogarithm -----------------------------------------------------------------------------------------------------

# Bernoulli's numbers B(2k) / (2k + 1)!, the coefficients of Li2(1 - exp(u)) in u
_DILOG = (
    1 / 36,
    -1 / 3600,
    1 / 211680,
    -1 / 10886400,
    1 / 526901760,
    -4.0647616451442255e-11,
    8.9216910204564526e-13,
    -1.9939295860721076e-14,
    4.5189800296199182e-16,
    -1.0356517612182471e-17,
)


def _spence_real(x):
    low = x < 0.5
    high = x > 2
    inner = jnp.where(high, 1 / jnp.where(high, x, 1), x)  # spence(x) = -log(x)**2 / 2 - spence(1 / x)
    # spence(v) = pi**2 / 6 - log(v) log(1 - v) - spence(1 - v)
    flip = inner < 0.5
    y = jnp.where(flip, 1 - inner, inner)
    safe = jnp.where(y > 0, y, 1)
    u = -jnp.log(safe)
    s = u * u
    total: Any = 0
    for c in reversed(_DILOG):
        total = total * s + c
    value = u * (1 - u / 4 + total * s)
    # up to there log1p keeps what 1 - inner loses; beyond, XLA's has lost more (128 ulp)
    tiny = flip & (inner < 0.125)
    other = jnp.where(tiny, jnp.log1p(-jnp.where(tiny, inner, 0)), -u)
    product = sp.xlogy(other, jnp.where(flip & (inner > 0), inner, 1))
    value = jnp.where(flip, math.pi**2 / 6 - product - value, value)
    value = jnp.where(high, -(jnp.log(jnp.where(high, x, 1)) ** 2) / 2 - value, value)
    value = jnp.where(x == math.inf, -math.inf, value)
    return jnp.where((x < 0) | jnp.isnan(x), math.nan, jnp.where(low & (x == 0), math.pi**2 / 6, value))


def _spence_slope(out, x):
    away = jnp.where(x == 1, 0, 1 - x)
    return jnp.where(x == 1, -1, jnp.log1p(-away) / jnp.where(x == 1, 1, away))


_spence = rule(_spence_real, _spence_slope, name="spence")


@special(_spence, "spence", only=("float32", "float64"))
def spence(x):
    """Spence's function, the integral of log(t) / (1 - t) from 1 to x: the dilogarithm of 1 - x. float32 or float64;
    NaN below 0.

    Args:
        x: array of numbers, rank at least 1.

    Returns:
        array of floats, the shape of x.

    Raises:
        TypeError: for another dtype.

    Source: DLMF 25.12.1.

    Example:
        >>> from weft.scipy import special
        >>> round(float(special.spence(0.)), 4)
        1.6449
    """


# Owen's T ------------------------------------------------------------------------------------------------------------


def _gauss_legendre(n: int) -> list[tuple[float, float]]:
    """Nodes and weights on [0, 1]."""
    out = []
    for k in range(n):
        x = math.cos(math.pi * (k + 0.75) / (n + 0.5))
        for _ in range(8):
            p, q = 1.0, x
            for j in range(2, n + 1):
                p, q = q, ((2 * j - 1) * x * q - (j - 1) * p) / j
            slope = n * (x * q - p) / (x * x - 1)
            x -= q / slope
        out.append(((1 + x) / 2, 1 / ((1 - x * x) * slope * slope)))
    return out


_RULE = _gauss_legendre(28)


def _owens_part(h, a):
    """T for 0 <= a <= 1: beyond 9 / h the integrand no longer counts."""
    end = jnp.minimum(a, 9 / jnp.maximum(h, 1))
    total: Any = 0
    for x, weight in _RULE:
        s = 1 + jnp.square(x * end)
        total = total + weight * jnp.exp(-h * h / 2 * s) / s
    return total * end / (2 * math.pi)


def _owens_real(h, a):
    x, y = jnp.abs(h), jnp.abs(a)
    steep = y > 1
    x = jnp.where(jnp.isinf(x), 1e4, x)
    flat = jnp.where(steep, 1 / jnp.where(steep, y, 1), y)
    far = jnp.where(steep, jnp.where(x == 0, 0, x * jnp.where(jnp.isinf(y), 1e4, y)), x)
    part = _owens_part(far, flat)
    half = math.sqrt(0.5)
    p, q = sp.erfc(half * x) / 2, sp.erfc(half * far) / 2
    value = jnp.where(steep, (p + q) / 2 - p * q - jnp.where(jnp.isinf(y) & (x > 0), 0, part), part)
    value = jnp.where(jnp.isinf(y), p / 2, value)
    return jnp.where(jnp.isnan(h) | jnp.isnan(a), math.nan, jnp.sign(a) * value)


_owens_t = rule(
    _owens_real,
    lambda out, h, a: -jnp.exp(-h * h / 2) * sp.erf(math.sqrt(0.5) * a * h) / (2 * math.sqrt(2 * math.pi)),
    lambda out, h, a: jnp.exp(-h * h / 2 * (1 + a * a)) / (2 * math.pi * (1 + a * a)),
    name="owens_t",
)


@special(_owens_t, "owens_t")
def owens_t(h, a):
    """Owen's T: the probability of X > h and 0 < Y < a X for independent normal X and Y.

    Args:
        h: array of real numbers, any shape.
        a: array of real numbers, which broadcasts with h.

    Returns:
        array of floats, the broadcast shape.

    Source: Owen, "Tables for computing bivariate normal probabilities" (1956).

    Example:
        >>> from weft.scipy import special
        >>> round(float(special.owens_t(0., 1.)), 4)
        0.125
    """
