"""The incomplete gamma and beta functions as loops: the decompositions of their primitives, and the derivative of gamma
samples.

Every element runs its own series or continued fraction. An element that has converged keeps its value while the others
continue.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..base import limits
from ..primitives.elementwise import (
    abs_,
    add,
    and_,
    div,
    eq,
    ge,
    gt,
    is_finite,
    le,
    lt,
    min_,
    mul,
    ne,
    neg,
    not_,
    or_,
    select,
    sub,
)
from ..primitives.transcendental import exp, log, sqrt
from ..primitives.reduce import reduce_or
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..primitives.special import (
    LARGE_BETA,
    NODE_STEP,
    NODES,
    beta_offset,
    beta_power,
    digamma,
    epsilon,
    excess,
    filled,
    igamma_grad_a_p,
    igamma_p,
    igammac_p,
    in_single,
    lgamma,
    plus,
    regularized_incomplete_beta_p,
    times,
    where,
)
from ..higher_order.while_loop import while_loop

if TYPE_CHECKING:
    from ..core.types import Value

STEPS = 2000  # of a continued fraction; after them the last value is used


def _is(x: Value, value: float) -> Value:
    return eq(x, filled(x, value))


def _iterate(step: Callable[..., Any], on: Value, state: tuple[Any, ...], most: int | None = None) -> Value:
    """Runs `step(n, state) -> (still, state)` on the elements where `on` is true, until all have finished (or `most`
    times).
    """
    axes = tuple(range(len(shape_of(on))))

    def proceed(carry: Sequence[Value]) -> Value:
        n, on, _ = carry
        alive = reduce_or(on, axes)
        return alive if most is None else and_(alive, lt(n, scalar_like(n, most)))

    def advance(carry: Sequence[Value]) -> tuple[Value, Value, Value]:
        n, on, old = carry
        n = plus(n, 1)
        still, new = step(n, old)
        return n, and_(on, still), tuple([select(on, v, w) for v, w in zip(new, old)])

    return while_loop(proceed, advance, (scalar_like(state[0], 0), on, state))[2]


def _gamma_series(a: Value, x: Value, on: Value, derivative: bool) -> tuple[Any, ...]:
    """Σ xⁿ / ((a+1) … (a+n)), with its derivative with respect to a if asked for (DLMF 8.7.1)."""
    eps, one, zero = filled(a, epsilon(a)), filled(a, 1), filled(a, 0)

    def step(n: int, state: Value) -> tuple[Value, Value]:
        r, term, total, *slopes = state
        r = plus(r, 1)
        ratio = div(x, r)
        new = mul(term, ratio)
        total = add(total, new)
        if not slopes:
            return gt(new, mul(eps, total)), (r, new, total)
        slope, total_slope = slopes
        slope = sub(mul(slope, ratio), div(mul(term, ratio), r))
        total_slope = add(total_slope, slope)
        return gt(abs_(slope), mul(eps, abs_(total_slope))), (r, new, total, slope, total_slope)

    _, _, total, *slopes = _iterate(step, on, (a, one, one, *((zero, zero) if derivative else ())))
    return total, slopes[1] if derivative else None


def _gamma_fraction(a: Value, x: Value, on: Value, derivative: bool) -> tuple[Any, ...]:
    """Γ(a, x) eˣ / xᵃ, with its derivative with respect to a if asked for.

    It is the continued fraction of DLMF 8.9.2; its convergents p/q follow from two before them, and are scaled down
    when they grow.
    """
    eps, one, zero = filled(a, epsilon(a)), filled(a, 1), filled(a, 0)
    y = sub(one, a)
    z = add(add(x, y), one)
    big = 1 / epsilon(a)

    def step(n: int, state: Value) -> tuple[Value, Value]:
        y, z, ans, p1, q1, p2, q2, *slopes = state
        y, z = plus(y, 1), plus(z, 2)
        yc = mul(y, n)
        p, q = sub(mul(p1, z), mul(p2, yc)), sub(mul(q1, z), mul(q2, yc))
        usable = ne(q, zero)
        safe = select(usable, q, one)
        new = select(usable, div(p, safe), ans)
        moved = select(usable, abs_(div(sub(ans, new), select(_is(new, 0), one, new))), one)
        scale = where(not_(gt(abs_(p), filled(p, big))), one, epsilon(a))
        if not slopes:
            return gt(moved, eps), (y, z, new, *[mul(v, scale) for v in (p, q, p1, q1)])
        dans, dp1, dq1, dp2, dq2 = slopes  # y and z both fall as a grows
        dp = add(sub(sub(mul(dp1, z), p1), mul(dp2, yc)), mul(p2, n))
        dq = add(sub(sub(mul(dq1, z), q1), mul(dq2, yc)), mul(q2, n))
        dnew = select(usable, div(sub(dp, mul(new, dq)), safe), dans)
        moved = select(usable, abs_(sub(dnew, dans)), one)
        return gt(moved, eps), (
            y,
            z,
            new,
            *[mul(v, scale) for v in (p, q, p1, q1)],
            dnew,
            *[mul(v, scale) for v in (dp, dq, dp1, dq1)],
        )

    p1, q1 = plus(x, 1), mul(z, x)
    ans = div(p1, q1)
    state: tuple[Any, ...] = (y, z, ans, p1, q1, one, x)
    if derivative:
        state = (*state, div(mul(ans, x), q1), zero, neg(x), zero, zero)
    out = _iterate(step, on, state, STEPS)
    return out[2], out[7] if derivative else None


def _prepare(a: Value, x: Value, strict: bool) -> tuple[Any, Any, Any, Any, Any, Any]:
    """Values that all functions share: (undefined, x is zero, use the fraction, elements to compute, safe a, safe x,
    log of xᵃ e⁻ˣ / Γ(a)).
    """
    undefined = or_(or_(ne(a, a), ne(x, x)), or_(lt(x, filled(x, 0)), (le if strict else lt)(a, filled(a, 0))))
    fine = and_(not_(undefined), and_(and_(gt(x, filled(x, 0)), gt(a, filled(a, 0))), and_(is_finite(a), is_finite(x))))
    a, x = where(fine, a, 1), where(fine, x, 1)
    fraction = and_(gt(x, filled(x, 1)), gt(x, a))
    scale = sub(sub(mul(a, log(x)), x), lgamma(a))
    # else it underflows
    fine = and_(fine, ge(scale, filled(scale, -math.log(float(limits.finfo(dtype_of(a)).max)))))
    return undefined, fraction, fine, a, x, scale


def _both_tails(a: Value, x: Value, complement: bool) -> Value:
    undefined, fraction, fine, safe_a, safe_x, scale = _prepare(a, x, False)
    scale = where(fine, exp(scale), 0)
    upper = mul(_gamma_fraction(safe_a, safe_x, and_(fine, fraction), False)[0], scale)
    lower = div(mul(_gamma_series(safe_a, safe_x, and_(fine, not_(fraction)), False)[0], scale), safe_a)
    one = filled(a, 1)
    value = select(fraction, upper, sub(one, lower)) if complement else select(fraction, sub(one, upper), lower)
    nothing, everything = (1, 0) if complement else (0, 1)
    value = where(not_(or_(_is(x, 0), _is(a, math.inf))), value, nothing)
    undefined = or_(undefined, and_(_is(a, 0), _is(x, 0)))
    value = where(not_(or_(_is(a, 0), _is(x, math.inf))), value, everything)
    return where(not_(undefined), value, math.nan)


def _gamma_derivative(a: Value, x: Value, sample: bool) -> Value:
    """dP/da of P(a, x); for a sample x of the gamma distribution, dx/da = -(dP/da) / (dP/dx) where P stays the same."""
    undefined, fraction, fine, safe_a, safe_x, scale = _prepare(a, x, True)
    total, slope = _gamma_fraction(safe_a, safe_x, and_(fine, fraction), True)
    upper = add(slope, mul(total, sub(log(safe_x), digamma(safe_a))))
    total, slope = _gamma_series(safe_a, safe_x, and_(fine, not_(fraction)), True)
    lower = add(slope, mul(total, sub(log(safe_x), digamma(plus(safe_a, 1)))))
    if sample:
        value = select(fraction, mul(upper, safe_x), neg(div(mul(lower, safe_x), safe_a)))
    else:
        scale = where(fine, exp(scale), 0)
        value = select(fraction, neg(mul(upper, scale)), div(mul(lower, scale), safe_a))
    value = where(and_(is_finite(a), is_finite(x)), value, math.nan)
    value = where(not_(_is(x, 0)), value, 0)
    return where(not_(undefined), value, math.nan)


random_gamma_grad = in_single("random_gamma_grad", lambda a, x: _gamma_derivative(a, x, True))


def _beta_fraction(a: Value, b: Value, x: Value, y: Value, offset: Value, on: Value) -> Value:
    """I(a, b, x) B(a, b) / (xᵃ yᵇ) by the even part of the continued fraction of DLMF 8.17.22, whose terms are positive
    as long as n < b.

    It is NaN where it does not converge.
    """
    eps, zero, one = filled(a, epsilon(a)), filled(a, 0), filled(a, 1)

    def step(n: Value, state: Value) -> tuple[Value, Value]:
        before, q, value, _ = state
        middle = add(a, times(n, 2))
        even = div(mul(mul(n, sub(b, n)), x), plus(middle, -1))
        alpha = mul(mul(div(add(a, plus(n, -1)), plus(middle, -1)), mul(add(add(a, b), plus(n, -1)), x)), even)
        beta = add(add(n, even), mul(div(add(a, n), plus(middle, 1)), add(plus(offset, 1), mul(n, plus(y, 1)))))
        divisor = add(beta, mul(alpha, q))
        new = div(add(mul(beta, value), mul(alpha, before)), divisor)
        moved = abs_(sub(new, value))
        return gt(moved, mul(eps, abs_(new))), (div(value, divisor), div(one, divisor), new, moved)

    first = div(plus(a, 1), mul(a, plus(offset, 1)))
    _, _, value, moved = _iterate(step, on, (zero, first, first, zero), STEPS)
    return where(le(moved, mul(times(eps, 16), abs_(value))), value, math.nan)


def _beta_integral(a: Value, b: Value, x: Value, y: Value, offset: Value, on: Value) -> Value:
    """The same as ∫ (1 - s/x)ᵃ⁻¹ (1 + s/y)ᵇ⁻¹ ds / (x y) from 0 to x, for a and b so large that the integrand falls
    to nothing well before x.
    """
    a, b = plus(a, -1), plus(b, -1)
    slope = add(sub(offset, y), x)
    per = mul(x, y)
    scale = div(per, add(abs_(slope), sqrt(add(mul(a, mul(y, y)), mul(b, mul(x, x))))))

    def step(n: Value, state: Value) -> tuple[Value, Value]:
        t = times(plus(n, -NODES // 2), NODE_STEP)
        fall = exp(neg(t))
        node = exp(sub(t, fall))
        s = mul(scale, node)
        u, v = div(s, x), div(s, y)
        inside = lt(u, filled(u, 1))
        u = where(inside, u, 0)
        exponent = add(
            mul(div(s, per), slope),
            add(excess(neg(mul(a, u)), a, sub(filled(u, 1), u)), excess(mul(b, v), b, plus(v, 1))),
        )
        return on, (add(state[0], mul(mul(plus(fall, 1), node), where(inside, exp(neg(exponent)), 0))),)

    (total,) = _iterate(step, on, (filled(a, 0),), NODES)
    return div(mul(times(total, NODE_STEP), scale), per)


def _betainc(a: Value, b: Value, x: Value) -> Value:
    """xᵃ yᵇ / B(a, b), where y = 1 - x, times a continued fraction or, of large parameters, an integral, on the side
    of the mean where the fraction converges fast.
    """
    zero, one = filled(x, 0), filled(x, 1)
    infinite_a, infinite_b = _is(a, math.inf), _is(b, math.inf)
    undefined = or_(or_(ne(a, a), ne(b, b)), ne(x, x))
    undefined = or_(undefined, or_(or_(lt(a, zero), lt(b, zero)), or_(lt(x, zero), gt(x, one))))
    undefined = or_(undefined, or_(and_(_is(a, 0), _is(b, 0)), and_(infinite_a, infinite_b)))
    nothing = or_(and_(or_(_is(b, 0), infinite_a), ne(x, one)), _is(x, 0))
    everything = or_(or_(_is(a, 0), infinite_b), _is(x, 1))
    on = not_(or_(undefined, or_(nothing, everything)))
    a, b, x = where(on, a, 1), where(on, b, 1), where(on, x, 0.5)
    y, offset = beta_offset(a, b, x)
    swap = le(offset, sub(x, y))
    a, b, x, y, offset = (
        select(swap, b, a),
        select(swap, a, b),
        select(swap, y, x),
        select(swap, x, y),
        select(swap, neg(offset), offset),
    )
    large = gt(min_(a, b), filled(a, LARGE_BETA))
    fraction = _beta_fraction(a, b, x, y, offset, and_(on, not_(large)))
    p, q, u, v, w = [
        where(large, value, instead)
        for value, instead in ((a, 2 * LARGE_BETA), (b, 2 * LARGE_BETA), (x, 0.5), (y, 0.5), (offset, 0))
    ]
    integral = _beta_integral(p, q, u, v, w, and_(on, large))
    value = mul(beta_power(a, b, x, y, offset), select(large, integral, fraction))
    value = select(swap, sub(one, value), value)
    value = where(not_(everything), value, 1)
    value = where(not_(nothing), value, 0)
    return where(not_(undefined), value, math.nan)


igamma_p.add_rules(decompose=in_single("igamma", lambda a, x: _both_tails(a, x, False)))
igammac_p.add_rules(decompose=in_single("igammac", lambda a, x: _both_tails(a, x, True)))
igamma_grad_a_p.add_rules(decompose=in_single("igamma_grad_a", lambda a, x: _gamma_derivative(a, x, False)))
regularized_incomplete_beta_p.add_rules(decompose=in_single("regularized_incomplete_beta", _betainc))
