"""The hypergeometric functions 1F1 and 2F1 of real arguments."""

from __future__ import annotations

import math
from typing import Any

from ... import numpy as jnp
from ...higher_order.custom_jvp import custom_jvp
from ...lax import fori_loop, while_loop
from ...primitives import special as gammas
from ...runtime.jit import inner_jit
from .more import sign_of_gamma
from .rules import is_double, special


def _whole(x):
    return x == jnp.floor(x)


def _ends(x):
    """Whether a series with this parameter in the numerator is finite."""
    return (x <= 0) & _whole(x)


def gamma_ratio(above, below):
    """The product of gamma(x) for x in `above` over that in `below`; 0 at the poles of those below."""
    size, sign = 0, 1
    for xs, direction in ((above, 1), (below, -1)):
        for x in xs:
            size, sign = size + direction * gammas.lgamma(x), sign * sign_of_gamma(x)
    pole = sum([_ends(x) for x in below], jnp.zeros(jnp.shape(size), bool))
    return jnp.where(pole, 0, sign * jnp.exp(jnp.where(pole, 0, size)))


def _series(nums: tuple, dens: tuple, x, most: int):
    """sum((nums)_k / (dens)_k x**k / k!) until it stands, and its derivatives with respect to each of nums and dens."""
    eps = float(jnp.finfo(x.dtype).eps)
    one, zero = jnp.ones_like(x), jnp.zeros_like(x)

    def step(state):
        k, on, term, total, slopes, totals = state
        factor = x / (k + 1)
        for d in dens:  # at 0 the series has ended
            factor = jnp.where(d + k == 0, 0, factor / jnp.where(d + k == 0, 1, d + k))
        ratio = factor
        for a in nums:
            ratio = ratio * (a + k)
        new, grown = term * ratio, []
        for i, s in enumerate(slopes):
            if i < len(nums):
                local = factor
                for j, a in enumerate(nums):
                    local = local * (a + k) if j != i else local
            else:
                d = dens[i - len(nums)] + k
                local = -ratio / jnp.where(d == 0, 1, d)
            grown.append(s * ratio + term * local)
        keep = lambda v, w: jnp.where(on, v, w)
        value = keep(total + new, total)
        sums = tuple(keep(t + g, t) for t, g in zip(totals, grown))
        moved = jnp.abs(new) > eps * jnp.abs(value)
        for g, t in zip(grown, sums):
            moved = moved | (jnp.abs(g) > eps * jnp.abs(t))
        return (
            k + 1,
            on & moved & (k < most),
            keep(new, term),
            value,
            tuple(keep(g, s) for g, s in zip(grown, slopes)),
            sums,
        )

    start = tuple(zero for _ in (*nums, *dens))
    out = while_loop(lambda s: s[1].any(), step, (jnp.zeros((), x.dtype), jnp.isfinite(x), one, one, start, start))
    return out[3], out[5]


def _differentiable(count: int, most: int):
    """The series with `count` parameters above and one below, or none for the asymptotic one of 1F1."""

    def split(args):
        return args[:count], args[count:-1], args[-1]

    @custom_jvp
    def f(*args):
        return _series(*(*split(args), most))[0]

    @f.defjvp
    def jvp(primals, tangents):
        nums, dens, x = split(primals)
        value, slopes = _series(nums, dens, x, most)
        factor: Any = 1
        for a in nums:
            factor = factor * a
        for d in dens:
            factor = factor / jnp.where(d == 0, 1, d)
        by_x = factor * f(*[a + 1 for a in primals[:-1]], x)
        return value, sum((t * s for t, s in zip(tangents, (*slopes, by_x))), jnp.zeros_like(value))

    return f


_confluent, _gauss = _differentiable(1, 3000), _differentiable(2, 5000)


def _asymptotic(a, b, x):
    """sum((b - a)_k (1 - a)_k / (k! x**k)) up to its smallest term."""

    def step(k, state):
        term, total = state
        k = jnp.asarray(k, x.dtype)
        new = term * (b - a + k) * (1 - a + k) / ((k + 1) * x)
        new = jnp.where(jnp.abs(new) < jnp.abs(term), new, 0)
        return new, total + new

    return fori_loop(0, 40, step, (jnp.ones_like(x), jnp.ones_like(x)))[1]


def _hyp1f1(a, b, x):
    pole = _ends(b) & ~(_ends(a) & (a >= b))
    b = jnp.where(pole, 1, b)
    turn = (x < 0) & ~_ends(a)  # Kummer: exp(x) 1F1(b - a, b, -x)
    p, y = jnp.where(turn, b - a, a), jnp.where(turn, -x, x)
    switch = jnp.maximum(100.0 if is_double(x) else 60.0, 2 * jnp.abs((1 - p) * (b - p)))
    far = (y > jnp.minimum(switch, 600.0 if is_double(x) else 80.0)) & ~_ends(p)
    series = _confluent(p, b, jnp.where(far, 1, y)) * jnp.exp(jnp.where(turn & ~far, x, 0))
    large, q = jnp.where(far, y, 100), jnp.where(far, p, 1)
    front = (
        jnp.exp(gammas.lgamma(b) - gammas.lgamma(q) + (q - b) * jnp.log(large) + jnp.where(turn, 0, large))
        * sign_of_gamma(b)
        * sign_of_gamma(q)
    )
    value = jnp.where(far, front * _asymptotic(q, b, large), series)
    return jnp.where(pole, math.inf, jnp.where(jnp.isnan(x), math.nan, value))


@special(inner_jit(_hyp1f1, name="hyp1f1"), "hyp1f1")
def hyp1f1(a, b, x):
    """Kummer's confluent hypergeometric function 1F1(a; b; x); inf where b = 0, -1, … and the series does not end
    before.

    Args:
        a: array of real numbers.
        b: array of real numbers, which broadcasts with a.
        x: array of real numbers, which broadcasts with both.

    Returns:
        array of floats, the broadcast shape.

    Raises:
        ValueError: for complex numbers.
        TypeError: for lists.

    Source: DLMF 13.2.2.

    Example:
        >>> from weft.scipy import special
        >>> round(float(special.hyp1f1(1., 2., 1.)), 4)
        1.7183
    """


def _near_one(a, b, c, y):
    """2F1(a, b; c; 1 - y) for small y, where c - a - b is no whole number (DLMF 15.8.4)."""
    d = c - a - b
    left = gamma_ratio((c, d), (c - a, c - b)) * _gauss(a, b, 1 - d, y)
    return left + gamma_ratio((c, -d), (a, b)) * jnp.exp(d * jnp.log(y)) * _gauss(c - a, c - b, 1 + d, y)


def _near_one_whole(a, b, m, y):
    """2F1(a, b; a + b + m; 1 - y) for small y and whole m >= 0 (DLMF 15.8.10)."""
    terms = 40 if is_double(y) else 16
    c, log_y = a + b + m, jnp.log(y)

    def finite(k, state):
        term, total = state
        k = jnp.asarray(k, y.dtype)
        on = k < m
        total = jnp.where(on, total + term, total)
        gap = jnp.where(k + 1 < m, m - 1 - k, 1)
        return term * (a + k) * (b + k) / ((k + 1) * -gap) * y, total

    begin = jnp.where(m > 0, gamma_ratio((c, jnp.maximum(m, 1)), (a + m, b + m)), 0)
    head = fori_loop(0, terms, finite, (begin, jnp.zeros_like(y)))[1]

    def endless(k, state):
        term, total, psi = state
        k = jnp.asarray(k, y.dtype)
        total = total + term * (log_y + psi)
        psi = psi - 1 / (k + 1) - 1 / (k + m + 1) + 1 / (a + k + m) + 1 / (b + k + m)
        return term * (a + m + k) * (b + m + k) / ((k + 1) * (k + 1 + m)) * y, total, psi

    start = (
        gamma_ratio((c,), (a, b))
        * jnp.exp(m * log_y - gammas.lgamma(m + 1))
        * jnp.where(m == 2 * jnp.floor(m / 2), 1, -1)
    )
    psi = -gammas.digamma(jnp.ones_like(y)) - gammas.digamma(m + 1) + gammas.digamma(a + m) + gammas.digamma(b + m)
    tail = fori_loop(0, terms, endless, (start, jnp.zeros_like(y), psi))[1]
    return head - tail


def _inside(a, b, c, x):
    """2F1 for 0 <= x < 1, or |x| <= 1/2, and parameters with which no series ends."""
    near = x > 0.9
    y = jnp.where(near, 1 - x, 0.05)
    d = c - a - b
    whole = near & _whole(d)
    series = _gauss(a, b, c, jnp.where(near, 0, x))
    far_a, far_b, far_c = [jnp.where(near & ~whole, v, w) for v, w in ((a, 0.3), (b, 0.4), (c, 1.2))]
    apart = _near_one(far_a, far_b, far_c, y)
    # for c < a + b Euler's transformation turns the sign of c - a - b
    turned = d < 0
    p, q = jnp.where(turned, c - a, a), jnp.where(turned, c - b, b)
    p, q, m = (jnp.where(whole, v, w) for v, w in ((p, 0.3), (q, 0.4), (jnp.abs(d), 0)))
    together = _near_one_whole(p, q, m, y) * jnp.where(turned & whole, jnp.exp(jnp.where(whole, d, 0) * jnp.log(y)), 1)
    return jnp.where(near, jnp.where(whole, together, apart), series)


def _hyp2f1(a, b, c, x):
    ends = _ends(a) | _ends(b)
    early = (_ends(a) & (a >= c)) | (_ends(b) & (b >= c))
    pole = _ends(c) & ~early
    euler = _ends(c - a) | _ends(c - b)  # (1 - x)**(c - a - b) 2F1(c - a, c - b; c; x) ends
    c = jnp.where(pole, 1, c)
    polynomial = ends & (jnp.abs(x) <= 1e30)
    swap = ends & ~_ends(a)
    p, q = jnp.where(swap, b, a), jnp.where(swap, a, b)
    exact = _gauss(jnp.where(polynomial, p, 0), q, c, jnp.where(polynomial, x, 0))
    reach = x < 1
    other = reach & euler & ~ends
    power = lambda base, e: jnp.exp(e * jnp.log(base))
    base = jnp.where(reach, 1 - x, 1)
    closed = power(base, c - a - b) * _gauss(
        jnp.where(other, c - a, 0), jnp.where(other, c - b, 0), c, jnp.where(other, x, 0)
    )
    plain = reach & ~ends & ~euler & ~jnp.isinf(x)
    u, v, w = (jnp.where(plain, s, t) for s, t in ((a, 0.3), (b, 0.4), (c, 1.2)))
    pfaff = plain & (x < -0.5)
    z = jnp.where(plain, jnp.where(pfaff, x / (x - 1), x), 0.1)
    # Pfaff's transformation keeps the smaller of a and b
    low, high = jnp.minimum(u, v), jnp.maximum(u, v)
    general = _inside(jnp.where(pfaff, low, u), jnp.where(pfaff, w - high, v), w, z) * jnp.where(
        pfaff, power(jnp.where(pfaff, 1 - x, 1), -low), 1
    )
    d = c - a - b
    at_one = jnp.where(d > 0, gamma_ratio((c, jnp.where(d > 0, d, 1)), (c - a, c - b)), math.inf)
    value = jnp.where(reach, jnp.where(euler, closed, general), jnp.where(x == 1, at_one, math.inf))
    value = jnp.where(polynomial, exact, value)
    return jnp.where(pole, math.inf, jnp.where(jnp.isnan(x), math.nan, value))


@special(inner_jit(_hyp2f1, name="hyp2f1"), "hyp2f1")
def hyp2f1(a, b, c, x):
    """Gauss's hypergeometric function 2F1(a, b; c; x) for x <= 1; inf beyond, and where c = 0, -1, …, unless the series
    ends.

    Args:
        a: array of real numbers.
        b: array of real numbers, which broadcasts with a.
        c: array of real numbers, which broadcasts with both.
        x: array of real numbers, at most 1, which broadcasts with all.

    Returns:
        array of floats, the broadcast shape.

    Raises:
        ValueError: for complex numbers.
        TypeError: for lists.

    Source: DLMF 15.2.1.

    Example:
        >>> from weft.scipy import special
        >>> round(float(special.hyp2f1(1., 1., 2., 0.5)), 4)
        1.3863
    """
