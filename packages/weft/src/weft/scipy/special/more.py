"""Relatives of the gamma function, Box and Cox's transformations, the normal distribution's logarithm, Bessel
functions, spherical harmonics.
"""

from __future__ import annotations

import math
import operator
from fractions import Fraction

from ...base import dtypes
from ... import numpy as jnp
from ...lax import fori_loop, scan, stop_gradient
from ...numpy.util import float_dtype, is_concrete, on_device, operand, promote_inexact, promote_shapes, in_own_terms
from ...primitives import special as gammas
from ...runtime.jit import inner_jit
from . import functions as sp
from .complexes import log_gamma_complex
from .rules import is_double, rule, special


def sign_of_gamma(x):
    """The sign of gamma(x), 1 at its poles."""
    below = jnp.floor(x)
    odd = below != 2 * jnp.floor(below / 2)
    return jnp.where((x < 0) & (below != x) & odd, -1, 1).astype(x.dtype)


def _gammasgn(x):
    pole = (x < 0) & (x == jnp.floor(x))
    sign = jnp.where(x == 0, jnp.copysign(1, x).astype(x.dtype), sign_of_gamma(x))
    return jnp.where(pole | jnp.isnan(x), math.nan, sign)


@special(rule(_gammasgn, name="gammasgn"), "gammasgn")
def gammasgn(x):
    """The sign of the gamma function; NaN at its poles.

    Args:
        x: array of numbers, rank at least 1.

    Returns:
        array of floats, the shape of x.

    Source: DLMF 5.2.1.

    Example:
        >>> from weft.scipy import special
        >>> float(special.gammasgn(-0.5))
        -1.0
    """


def _loggamma(x):
    if dtypes.is_complex(x.dtype):
        return log_gamma_complex(x)
    return jnp.where(x < 0, math.nan, gammas.lgamma(jnp.where(x < 0, 1, x)))


@special(inner_jit(_loggamma, name="loggamma"), "loggamma", complex_too=True)
def loggamma(x):
    """The logarithm of the gamma function on its principal branch, of complex numbers, or of real ones >= 0 (NaN
    below).

    Args:
        x: array of floats or complex numbers, any shape.

    Returns:
        array of the dtype and shape of x.

    Source: DLMF 5.4, 5.11.1.

    Example:
        >>> from weft.scipy import special
        >>> round(float(special.loggamma(4.)), 4)
        1.7918
    """


@in_own_terms
def multigammaln(a, d):
    """The logarithm of the multivariate gamma function, for a whole number d of dimensions known while tracing.

    Args:
        a: array of real numbers, larger than (d - 1) / 2.
        d: int, the number of dimensions.

    Returns:
        array of floats, the shape of a.

    Raises:
        TypeError: if d is no scalar.

    Source: DLMF 35.3.1.

    Example:
        >>> from weft.scipy import special
        >>> round(float(special.multigammaln(4., 2)), 4)
        3.5651
    """
    d = int(d)
    (a,) = promote_inexact("multigammaln", a)
    a = on_device(a)
    steps = a[..., None] - jnp.arange(d, dtype=a.dtype) / 2
    return gammas.lgamma(steps).sum(-1) + d * (d - 1) / 4 * math.log(math.pi)


def _poch(z, m):
    end = z + m
    size = jnp.exp(gammas.lgamma(end) - gammas.lgamma(z)) * sign_of_gamma(end) * sign_of_gamma(z)
    pole = lambda v: (v <= 0) & (v == jnp.floor(v))
    # both at poles: the ratio of the residues, (-1)**m (-z)! / (-z - m)!
    turned = jnp.exp(
        gammas.lgamma(jnp.where(pole(z), 1 - z, 1)) - gammas.lgamma(jnp.where(pole(end), 1 - end, 1))
    ) * jnp.where(m == 2 * jnp.floor(m / 2), 1, -1)
    value = jnp.where(pole(z), jnp.where(pole(end), turned, 0), jnp.where(pole(end), math.inf, size))
    return jnp.where(m == 0, 1, jnp.where(jnp.isnan(end), math.nan, value))


@special(
    rule(
        _poch,
        lambda out, z, m: out * (gammas.digamma(z + m) - gammas.digamma(z)),
        lambda out, z, m: out * gammas.digamma(z + m),
        name="poch",
    ),
    "poch",
)
def poch(z, m):
    """The rising factorial gamma(z + m) / gamma(z).

    Args:
        z: array of real numbers, any shape.
        m: array of real numbers, which broadcasts with z.

    Returns:
        array of floats, the broadcast shape.

    Source: DLMF 5.2.4.

    Example:
        >>> from weft.scipy import special
        >>> round(float(special.poch(3., 2.)), 4)
        12.0
    """


def comb(N, k, *, repetition: bool = False):
    """The number of ways to choose k of N things, as a float; with `repetition` the same one may come twice. 0 where k
    < 0, N < 0 or k > N.

    Args:
        N: array of real numbers, any shape.
        k: array of real numbers, which broadcasts with N.
        repetition: bool.

    Returns:
        array of floats, the broadcast shape.

    Source: DLMF 1.2.1.

    Example:
        >>> from weft.scipy import special
        >>> round(float(special.comb(5, 2)), 3)
        10.0
    """
    N, k = map(on_device, promote_shapes("comb", *promote_inexact("comb", N, k)))
    if repetition:
        n = N + k - 1
        return jnp.where((N == 0) & (k == 0), 1, jnp.where((N < 1) | (k < 0), 0, comb(jnp.where(n < 0, 0, n), k)))
    inside = (k >= 0) & (N >= 0) & (k <= N)
    n, j = jnp.where(inside, N, 0), jnp.where(inside, k, 0)
    return jnp.where(inside, jnp.exp(gammas.lgamma(n + 1) - gammas.lgamma(j + 1) - gammas.lgamma(n - j + 1)), 0)


def bernoulli(n: int):
    """Bernoulli's numbers B0 to Bn, as floats of shape (n + 1,).

    Args:
        n: int, not negative.

    Returns:
        array of floats, shape (n + 1,).

    Raises:
        ValueError: for negative n. TypeError: if n is no integer that is known while tracing.

    Source: DLMF 24.2.1; Brent and Harvey, "Fast computation of Bernoulli, tangent and secant numbers" (2011).

    Example:
        >>> from weft.scipy import special
        >>> [round(float(b), 4) for b in special.bernoulli(4)]
        [1.0, -0.5, 0.1667, 0.0, -0.0333]
    """
    n = operator.index(n)
    if n < 0:
        raise ValueError(f"bernoulli: n must be a non-negative integer, got {n}.")
    half = min(n // 2, 130)  # beyond, doubles overflow
    tangents = [0, *(math.factorial(k - 1) for k in range(1, half + 1))]
    # R. Brent and D. Harvey, "Fast computation of Bernoulli, tangent and secant numbers" (2011)
    for k in range(2, half + 1):
        for j in range(k, half + 1):
            tangents[j] = (j - k) * tangents[j - 1] + (j - k + 2) * tangents[j]
    out = [1.0, -0.5] + [0.0] * (n - 1)
    for k in range(1, n // 2 + 1):
        sign = 1 if k % 2 else -1
        try:
            out[2 * k] = (
                float(sign * Fraction(2 * k * tangents[k], 4**k * (4**k - 1))) if k <= half else sign * math.inf
            )
        except OverflowError:
            out[2 * k] = sign * math.inf
    return jnp.array(out[: n + 1], float_dtype())


def _power_slope(log):
    """d/dl of (u**l - 1) / l, with l log(u) = s: log(u)**2 (1 + (s - 1) exp(s)) / s**2, by its series where s is
    small.
    """

    def slope(out, x, lmbda):
        w = log(x)
        s = lmbda * w
        small = jnp.abs(s) < 0.1
        big = jnp.where(small, 1, s)
        terms, total = [1 / (math.factorial(k) * (k + 2)) for k in range(10)], 0
        for c in reversed(terms):
            total = total * s + c
        return w * w * jnp.where(small, total, (1 + (big - 1) * jnp.exp(big)) / (big * big))

    return slope


def _boxcox_of(log, name: str):
    def value(x, lmbda):
        w = log(x)
        zero = lmbda == 0
        return jnp.where(zero, w, jnp.expm1(jnp.where(zero, 1, lmbda) * w) / jnp.where(zero, 1, lmbda))

    return rule(value, lambda out, x, lmbda: jnp.exp((lmbda - 1) * log(x)), _power_slope(log), name=name)


@special(_boxcox_of(jnp.log, "boxcox"), "boxcox")
def boxcox(x, lmbda):
    """Box and Cox's transformation (x**lmbda - 1) / lmbda, log(x) for lmbda = 0.

    Args:
        x: array of real numbers, not negative.
        lmbda: array of real numbers, which broadcasts with x.

    Returns:
        array of floats, the broadcast shape.

    Source: Box and Cox, "An analysis of transformations" (1964).

    Example:
        >>> from weft.scipy import special
        >>> float(special.boxcox(3., 1.))
        2.0
    """


@special(_boxcox_of(jnp.log1p, "boxcox1p"), "boxcox1p")
def boxcox1p(x, lmbda):
    """Box and Cox's transformation of 1 + x.

    Args:
        x: array of real numbers, at least -1.
        lmbda: array of real numbers, which broadcasts with x.

    Returns:
        array of floats, the broadcast shape.

    Source: Box and Cox, "An analysis of transformations" (1964).

    Example:
        >>> from weft.scipy import special
        >>> float(special.boxcox1p(2., 1.))
        2.0
    """


# the normal distribution ---------------------------------------------------------------------------------------------


def _log_ndtr_of(series_order: int):
    def value(x):
        limit = -20 if is_double(x) else -10
        y = jnp.where(x < limit, x, limit)
        ratio, total, odd = 1 / (y * y), jnp.ones_like(y), jnp.ones_like(y)
        for k in range(1, series_order + 1):
            odd = odd * -(2 * k - 1) * ratio
            total = total + odd
        tail = -y * y / 2 - jnp.log(-y) - math.log(2 * math.pi) / 2 + jnp.log(total)
        below = sp.ndtr(-jnp.abs(jnp.maximum(x, limit)))
        middle = jnp.where(x > 0, jnp.log1p(-below), jnp.log(jnp.where(x > 0, 1, below)))
        return jnp.where(x < limit, tail, jnp.where(jnp.isnan(x), x, middle))

    return rule(
        value,
        lambda out, x: jnp.exp(jnp.where(jnp.isinf(x), -math.inf, -x * x / 2 - out) - math.log(2 * math.pi) / 2),
        name="log_ndtr",
    )


def log_ndtr(x, series_order: int = 3):
    """The logarithm of the normal distribution function; far below 0 by `series_order` terms of its asymptotic series.
    float32 or float64.

    Args:
        x: array of float32 or float64, any shape.
        series_order: int, from 0 to 30.

    Returns:
        array of floats, the shape of x.

    Raises:
        TypeError: for another dtype, or a series_order that is no int. ValueError: unless 0 <= series_order <= 30.

    Source: Abramowitz and Stegun, "Handbook of mathematical functions" (1964), 26.2.12.

    Example:
        >>> from weft.scipy import special
        >>> round(float(special.log_ndtr(-40.)), 2)
        -804.61
    """
    if not isinstance(series_order, int):
        raise TypeError(f"log_ndtr: series_order must be a Python integer, got {series_order!r}.")
    if not 0 <= series_order <= 30:
        raise ValueError(f"log_ndtr: series_order must be between 0 and 30, got {series_order}.")
    return special(
        _LOG_NDTR.setdefault(series_order, _log_ndtr_of(series_order)),
        "log_ndtr",
        error=TypeError,
        only=("float32", "float64"),
    )(log_ndtr)(x)


_LOG_NDTR: dict = {}


# Bessel functions and spherical harmonics ----------------------------------------------------------------------------


@in_own_terms
def bessel_jn(z, *, v: int, n_iter: int = 50):
    """The Bessel functions J0(z) to Jv(z) of real z, of shape (v + 1, *z.shape), by the recurrence downwards from order
    max(n_iter, v).

    It must start well beyond |z|: the default suits |z| up to about 30.

    Args:
        z: array of real numbers, any shape.
        v: int, the largest order.
        n_iter: int, where the recurrence starts.

    Returns:
        array of floats, shape (v + 1, *z.shape).

    Raises:
        ValueError: for complex z, negative v, or n_iter below 1. TypeError: if v or n_iter is no integer.

    Source: DLMF 10.2.2, 10.74(iv).

    Example:
        >>> from weft.scipy import special
        >>> [round(float(j), 3) for j in special.bessel_jn(1., v=1)]
        [0.765, 0.44]
    """
    v, n_iter = operator.index(v), operator.index(n_iter)
    if v < 0 or n_iter < 1:
        raise ValueError(f"bessel_jn: v must be at least 0 and n_iter at least 1, got v={v} and n_iter={n_iter}.")
    return special(inner_jit(lambda x: _bessel_jn(x, v, max(n_iter, v)), name="bessel_jn"), "bessel_jn")(bessel_jn)(z)


def _bessel_jn(z, v: int, start: int):
    tiny = jnp.abs(z) < 1e6 * float(jnp.finfo(z.dtype).tiny)
    x = jnp.where(tiny, 1, z)

    def step(state, n):
        above, here, total, scale = state
        below = 2 * n / x * here - above  # of order n - 1
        total = total + jnp.where(n % 2 == 1, jnp.where(n == 1, 1, 2) * below, 0)  # J0 + 2 J2 + 2 J4 + … = 1
        # all are kept small, as far as `scale` says
        size = stop_gradient(jnp.maximum(jnp.abs(below), 1))
        scale = scale + jnp.log(size)
        return (here / size, below / size, total / size, scale), (below / size, scale)

    top = jnp.full_like(x, 1e-10)
    first = (jnp.zeros_like(x), top, top * (2 * (start % 2 == 0)), jnp.zeros_like(x))
    (_, _, total, scale), (values, scales) = scan(step, first, jnp.arange(start, 0, -1).astype(x.dtype))
    if v == start:
        values, scales = jnp.concatenate([top[None], values]), jnp.concatenate([jnp.zeros_like(top)[None], scales])
    values, scales = values[::-1][: v + 1], scales[::-1][: v + 1]
    order = jnp.arange(v + 1).reshape(-1, *(1,) * x.ndim)
    return jnp.where(
        tiny, jnp.where(order == 0, 1, jnp.where(order == 1, z / 2, 0)), values / total * jnp.exp(scales - scale)
    )


@in_own_terms
def sph_harm_y(n, m, theta, phi, diff_n: int | None = None, n_max: int | None = None):
    """The spherical harmonic of degree n and order m at the polar angle theta and the azimuth phi, complex, of
    one-dimensional arrays.

    `n_max`, the largest degree, must be given where n is not known while tracing.

    Args:
        n: array of integers, shape (k,): degrees.
        m: array of integers, shape (k,): orders.
        theta, phi: array of real numbers, shape (k,).
        diff_n: None, or 0: derivatives are not returned.
        n_max: int, the largest degree.

    Returns:
        array of complex numbers, shape (k,).

    Raises:
        TypeError: for degrees and orders that are no integers, or scalars. ConcretizationTypeError: under jit without
            n_max. NotImplementedError: for diff_n.
        ValueError: for arrays of more axes.

    Source: DLMF 14.30.1.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import special
        >>> y = special.sph_harm_y(jnp.array([1]), jnp.array([0]), jnp.array([0.]), jnp.array([0.]))
        >>> round(float(y.real[0]), 4)
        0.4886
    """
    if diff_n is not None:
        raise NotImplementedError("sph_harm_y: diff_n is not supported; differentiate with weft.grad or weft.jacfwd.")
    n, m = [on_device(operand("sph_harm_y", x)) for x in (n, m)]
    theta, phi = map(on_device, promote_inexact("sph_harm_y", theta, phi))
    if not (dtypes.is_int(n.dtype) and dtypes.is_int(m.dtype)) or any(x.ndim == 0 for x in (n, m, theta, phi)):
        raise TypeError(
            "sph_harm_y takes integer arrays n and m and arrays of angles, of shape (k,), got "
            f"{', '.join(f'{dtypes.name(x.dtype)}{list(x.shape)}' for x in (n, m, theta, phi))}."
        )
    if any(x.ndim > 1 for x in (n, m, theta, phi)):
        raise ValueError(
            f"sph_harm_y takes one-dimensional arrays, got shapes {[x.shape for x in (n, m, theta, phi)]}; use ravel()"
            " before and reshape after."
        )
    top = int(n.max()) if n_max is None else operator.index(n_max)
    if is_concrete(n) and n.size and int(n.min()) < 0:
        raise ValueError(f"sph_harm_y: degrees must not be negative, got {int(n.min())}.")
    n, m, theta, phi = jnp.broadcast_arrays(jnp.minimum(n, top), m, theta, phi)
    order = jnp.abs(m)
    cosine, sine = jnp.cos(theta), jnp.sin(theta)

    def sectoral(k, p):
        k = jnp.asarray(k + 1, p.dtype)
        return jnp.where(k <= order, -p * jnp.sqrt((2 * k + 1) / (2 * k)) * sine, p)

    start = fori_loop(0, top, sectoral, jnp.full_like(theta, math.sqrt(0.25 / math.pi)))  # of degree |m|

    def climb(k, state):  # from degree k and k - 1 to k + 1; all values are normalized
        here, below = state
        degree, q = jnp.asarray(k + 1, start.dtype), order.astype(start.dtype)
        on = (degree > q) & (degree <= n)
        wide = jnp.where(on, degree * degree - q * q, 1)
        a = jnp.sqrt((4 * degree * degree - 1) / wide)
        b = jnp.sqrt(
            jnp.where(
                on & (degree > 1),
                (jnp.square(degree - 1) - q * q) / (4 * jnp.square(jnp.maximum(degree, 2) - 1) - 1),
                0,
            )
        )
        return jnp.where(on, a * (cosine * here - b * below), here), jnp.where(on, here, below)

    value = fori_loop(0, top, climb, (start, jnp.zeros_like(start)))[0]
    value = jnp.where(order > n, 0, value) * jnp.where((m < 0) & (m % 2 == 1), -1, 1)
    angle = m.astype(phi.dtype) * phi
    return value * jnp.cos(angle) + 1j * (value * jnp.sin(angle))
