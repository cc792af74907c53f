"""Special functions: gamma's relatives, Hurwitz's zeta, Bessel functions, incomplete gamma and beta functions.

A decomposition without a loop is here; `decompositions.incomplete` has the others.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any, Callable, NoReturn, Sequence

from ..base import dtypes, limits
from ..base.host import has_numpy, np
from ..core.wire import portable
from .elementwise import (
    Function,
    _elementwise,
    _fn,
    abs_,
    add,
    and_,
    div,
    eq,
    floor,
    ge,
    gt,
    integer_pow,
    is_finite,
    le,
    lt,
    max_,
    min_,
    mul,
    ne,
    neg,
    not_,
    or_,
    select,
    sign,
    sub,
)
from .transcendental import _of_scalars, _wide, exp, log, log1p, pow_, rsqrt, sqrt
from .linear import convert, full
from .rules import broadcast_shapes, dtype_of, scalar_like, shape_of

if TYPE_CHECKING:
    from ..core.types import Value


def no_derivative(
    name: str, argument: str, error: type[Any] = NotImplementedError, instead: str = ""
) -> Callable[..., Any]:
    """The jvp for an operand without a derivative: an error that says so."""

    def refuse(*_: Any) -> NoReturn:
        raise error(f"{name} has no derivative with respect to {argument}.{instead}")

    return refuse


def filled(x: Value, value: float) -> Value:
    return full(shape_of(x), value, dtype_of(x))


def where(condition: Value, x: Value, value: Value) -> Value:
    """x where the condition holds, else `value`, an array or a number."""
    return select(condition, x, filled(x, value) if isinstance(value, (int, float)) else value)


def same_shape(name: str, xs: Value) -> list[Any]:
    """Operands of an elementwise function, each of the shape of the result."""
    shape = broadcast_shapes(name, [shape_of(x) for x in xs])
    return [x if shape_of(x) == shape else add(x, full(shape, 0, dtype_of(x))) for x in xs]


def in_single(name: str, f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` of operands of one shape, computed in float32 if they have 16 bits."""

    def g(*xs: Any) -> Any:
        narrow = dtype_of(xs[0])
        operands = same_shape(name, xs)
        if dtypes.bits(narrow) >= 32:
            return f(*operands)
        return convert(f(*[convert(x, dtypes.float32) for x in operands]), narrow)

    return g


def epsilon(x: Value) -> float:
    return float(limits.finfo(dtype_of(x)).eps)


def times(x: Value, value: float) -> Value:
    return mul(x, scalar_like(x, value))


def plus(x: Value, value: float) -> Value:
    return add(x, scalar_like(x, value))


def _reference(f: Callable[..., Any]) -> Callable[..., Any] | None:
    """A reference rule from a function of Python's floats."""
    if not has_numpy:
        return None

    def one(*xs: Any) -> Any:
        try:
            return math.nan if any(map(math.isnan, xs)) else f(*xs)
        except OverflowError:
            return math.inf
        except (ValueError, ZeroDivisionError):
            return math.nan

    return _wide(
        lambda *xs: (
            np.vectorize(one, otypes=[np.float64])(*xs)
            if all(x.size for x in xs)
            else np.zeros(np.broadcast_shapes(*[x.shape for x in xs]))
        )
    )


# gamma and its derivatives -------------------------------------------------------------------------------------------

lgamma_p = _elementwise(
    "lgamma",
    "f",
    _wide(
        _of_scalars(lambda v: math.inf if v <= 0 and v in (-math.inf, math.floor(max(v, -1e300))) else math.lgamma(v))
    ),
    jvp=[lambda t, o, x: mul(t, digamma(x))],
    wire=portable(),
)


def _digamma_scalar(x: float) -> float:
    """Reflection below zero, recurrence up to 10, then the asymptotic series (Abramowitz & Stegun 6.3.18)."""
    if x <= 0:
        return math.nan if x == math.floor(x) else _digamma_scalar(1 - x) - math.pi / math.tan(math.pi * x)
    result = 0.0
    while x < 10:
        result -= 1 / x
        x += 1
    i = 1 / (x * x)
    return (
        result
        + math.log(x)
        - 0.5 / x
        - i * (1 / 12 - i * (1 / 120 - i * (1 / 252 - i * (1 / 240 - i * (1 / 132 - i * 691 / 32760)))))
    )


digamma_p = _elementwise(
    "digamma",
    "f",
    _wide(_of_scalars(_digamma_scalar)),
    jvp=[lambda t, o, x: mul(t, polygamma(scalar_like(x, 1), x))],
    wire=portable(),
)

# B_2j / (2j)!, the weights of the Euler-Maclaurin sum
_BERNOULLI = (
    1 / 6,
    -1 / 30,
    1 / 42,
    -1 / 30,
    5 / 66,
    -691 / 2730,
    7 / 6,
    -3617 / 510,
    43867 / 798,
    -174611 / 330,
    854513 / 138,
    -236364091 / 2730,
)
_WEIGHTS = tuple([b / math.factorial(2 * j) for j, b in enumerate(_BERNOULLI, 1)])
_DIRECT = 9  # terms that are summed directly


def _zeta_scalar(x: float, q: float) -> float:
    """Terms until q is past 20, then the Euler-Maclaurin sum (DLMF 25.11.5)."""
    if math.isinf(x) or math.isinf(q):
        return math.nan
    if q <= 0 and q == math.floor(q) or x == 1:
        return math.inf if x % 2 == 0 or x == 1 else math.nan  # the signs on both sides of a pole agree, or do not
    if x < 1 or q < 0 and x != math.floor(x):
        return math.nan
    total: float = 0.0
    while q < 20:
        total += q**-x
        q += 1
    total += q ** (1 - x) / (x - 1) + 0.5 * q**-x
    factor = x * q ** (-x - 1)
    for j, w in enumerate(_WEIGHTS):
        total += w * factor
        factor *= (x + 2 * j + 1) * (x + 2 * j + 2) / (q * q)
    return total


def _zeta(x: Value, q: Value) -> Value:
    power = pow_(q, neg(x))
    total, a = power, q
    for _ in range(_DIRECT):
        a = plus(a, 1)
        power = pow_(a, neg(x))
        total = add(total, power)
    # the last term counts half, and the rest of the sum is an integral with corrections
    total = add(total, sub(div(mul(power, a), plus(x, -1)), times(power, 0.5)))
    factor, square_a, rest = div(mul(x, power), a), mul(a, a), None
    for j, w in enumerate(_WEIGHTS):
        term = times(factor, w)
        rest = term if rest is None else add(rest, term)
        factor = div(mul(factor, mul(plus(x, 2 * j + 1), plus(x, 2 * j + 2))), square_a)
    negligible = eq(power, filled(power, 0))  # 0 / 0 in its corrections
    total = add(total, where(not_(negligible), rest, 0))
    half = times(x, 0.5)
    one = eq(x, filled(x, 1))
    pole = and_(le(q, filled(q, 0)), eq(q, floor(q)))
    infinite = or_(and_(pole, eq(half, floor(half))), one)  # the signs on both sides of a pole agree, or do not
    outside = or_(or_(pole, lt(x, filled(x, 1))), and_(lt(q, filled(q, 0)), ne(x, floor(x))))
    total = where(not_(infinite), where(not_(outside), total, math.nan), math.inf)
    return where(is_finite(x), total, math.nan)


def _zeta_slope(x: Value, q: Value) -> Value:
    """The derivative of the sum in x, term by term: that of (q + k)⁻ˣ is -log(q + k) (q + k)⁻ˣ. NaN where q < 0."""

    def term(a: Value) -> tuple[Value, Value]:
        power = pow_(a, neg(x))
        grows = mul(power, log(a))
        return power, neg(where(ne(power, filled(power, 0)), grows, 0))  # 0 * inf

    a = q
    power, slope = term(a)
    total = slope
    for _ in range(_DIRECT):
        a = plus(a, 1)
        power, slope = term(a)
        total = add(total, slope)
    below, square_a = plus(x, -1), mul(a, a)
    integral = div(a, below)
    total = add(total, sub(mul(slope, plus(integral, -0.5)), mul(power, div(integral, below))))
    factor, change, rest = div(mul(x, power), a), div(add(power, mul(x, slope)), a), None
    for j, w in enumerate(_WEIGHTS):
        rest = times(change, w) if rest is None else add(rest, times(change, w))
        u, v = plus(x, 2 * j + 1), plus(x, 2 * j + 2)
        step = div(mul(u, v), square_a)
        change = add(mul(change, step), mul(factor, div(add(u, v), square_a)))
        factor = mul(factor, step)
    total = add(total, where(ne(power, filled(power, 0)), rest, 0))
    total = where(ne(x, filled(x, 1)), total, -math.inf)
    return where(and_(is_finite(x), gt(q, filled(q, 0))), total, math.nan)


zeta_p = _elementwise(
    "zeta",
    "f",
    _reference(_zeta_scalar),
    arity=2,
    basic=False,
    decompose=in_single("zeta", _zeta),
    jvp=[
        lambda t, o, x, q: mul(t, in_single("zeta", _zeta_slope)(x, q)),
        lambda t, o, x, q: mul(t, mul(neg(x), zeta(plus(x, 1), q))),
    ],
    wire=portable(),
)


def _polygamma_scalar(m: float, x: float) -> float:
    if m == 0:
        return _digamma_scalar(x)
    if m < 0 or m != math.floor(m):
        return math.nan
    return (-1.0) ** (int(m) + 1) * math.gamma(m + 1) * _zeta_scalar(m + 1, x)


def _polygamma(m: Value, x: Value) -> Value:
    """(-1)ᵐ⁺¹ m! ζ(m + 1, x)."""
    half = times(m, 0.5)
    size = mul(exp(lgamma(plus(m, 1))), zeta(plus(m, 1), x))
    value = select(eq(half, floor(half)), neg(size), size)
    value = select(eq(m, filled(m, 0)), digamma(x), value)
    return where(and_(eq(m, floor(m)), ge(m, filled(m, 0))), value, math.nan)


polygamma_p = _elementwise(
    "polygamma",
    "f",
    _reference(_polygamma_scalar),
    arity=2,
    basic=False,
    decompose=in_single("polygamma", _polygamma),
    jvp=[no_derivative("polygamma", "m", ValueError), lambda t, o, m, x: mul(t, polygamma(plus(m, 1), x))],
    wire=portable(),
)
lgamma: Function = _fn(lgamma_p)
digamma: Function = _fn(digamma_p)
zeta: Function = _fn(zeta_p)
polygamma: Function = _fn(polygamma_p)

# Bessel functions ----------------------------------------------------------------------------------------------------

# Chebyshev coefficients of exp(-x) I0(x) on 0..8 in t = x/4 - 1, and of √x exp(-x) I0(x) from 8 on in t = 16/x - 1;
# then those of exp(-x) I1(x) / x and √x exp(-x) I1(x). Computed with mpmath to 50 digits.
# fmt: off
_I0_NEAR = (
    0.6767952744094761, -0.3046826723431984, 0.17162090152220877, -0.09490109704804764, 0.04930528423967071,
    -0.02373741480589947, 0.010546460394594998, -0.004324309995050576, 0.0016394756169413357, -0.0005763755745385824,
    0.00018850288509584165, -5.754195010082104e-05, 1.6448448070728896e-05, -4.4167383584587505e-06,
    1.1173875391201037e-06, -2.670793853940612e-07, 6.046995022541919e-08, -1.300025009986248e-08,
    2.6598237246823866e-09, -5.189795601635263e-10, 9.675809035373237e-11, -1.726826291441556e-11,
    2.95505266312964e-12, -4.856446783111929e-13, 7.676185498604936e-14, -1.1685332877993451e-14,
    1.715391285555133e-15, -2.431279846547955e-16, 3.3307945188222384e-17,
)
_I0_FAR = (
    0.8044904110141088, 0.0033691164782556943, 6.889758346916825e-05, 2.8913705208347567e-06, 2.0489185894690638e-07,
    2.266668990498178e-08, 3.3962320257083865e-09, 4.94060238822497e-10, 1.1889147107846439e-11,
    -3.1499165279632416e-11, -1.3215811840447713e-11, -1.7941785315068062e-12, 7.180124451383666e-13,
    3.8527783827421426e-13, 1.54008621752141e-14, -4.150569347287222e-14, -9.554846698828307e-15,
    3.8116806693526224e-15, 1.7725601330565263e-15, -3.425485619677219e-16, -2.8276239805165836e-16,
    3.461222867697461e-17, 4.46562142029676e-17,
)
_I1_NEAR = (
    0.25258718644363365, -0.17641651835783406, 0.1026436586898471, -0.05294598120809499, 0.024726449030626516,
    -0.010564084894626197, 0.004156422944312888, -0.0015135724506312532, 0.0005122859561685758,
    -0.00016176081582589674, 4.781565107550054e-05, -1.3273163656039436e-05, 3.4702513081376785e-06,
    -8.568720264695455e-07, 2.0032947535521353e-07, -4.445059128796328e-08, 9.381537386495773e-09,
    -1.8872497517228294e-09, 3.625590281552117e-10, -6.663489723502027e-11, 1.1736186298890901e-11,
    -1.9839743977649436e-12, 3.223793365945575e-13, -5.042185504727912e-14, 7.600684294735408e-15,
    -1.1055969477353862e-15, 1.5536319577362005e-16, -2.111421214358166e-17,
)
_I1_FAR = (
    0.7785762350182801, -0.009761097491361469, -0.00011058893876262371, -3.882564808877691e-06, -2.512236237870209e-07,
    -2.6314688468895196e-08, -3.835380385964237e-09, -5.589743462196584e-10, -1.8974958123505413e-11,
    3.2526035830154884e-11, 1.4125807436613782e-11, 2.0356285441470896e-12, -7.198551776245908e-13,
    -4.0835511110921974e-13, -2.1015418427726643e-14, 4.272440016711951e-14, 1.0420276984128802e-14,
    -3.8144030724370075e-15, -1.8803547755107825e-15, 3.3082023109209285e-16, 2.96262899764595e-16,
    -3.209525921993424e-17, -4.6503053684893586e-17,
)
# fmt: on


def _chebyshev(t: Value, coefficients: Sequence[float]) -> Value:
    """c₀/2 + Σ cₙ Tₙ(t), by Clenshaw's recurrence; terms that the dtype can't hold are left out."""
    if dtypes.bits(dtype_of(t)) < 64:
        coefficients = [c for c in coefficients if abs(c) > 4e-9]
    twice, after, last = times(t, 2), None, None
    for c in reversed(coefficients[1:]):
        now = (
            filled(t, c)
            if last is None
            else plus(mul(twice, last) if after is None else sub(mul(twice, last), after), c)
        )
        last, after = now, last
    return plus(sub(mul(t, last), after), coefficients[0] / 2)


def _scaled_bessel(near: Sequence[float], far: Sequence[float], odd: bool) -> Callable[..., Any]:
    def f(x: Value) -> Value:
        size = abs_(x)
        is_near = le(size, filled(size, 8))
        a = _chebyshev(plus(times(where(is_near, size, 8), 0.25), -1), near)
        outside = where(not_(is_near), size, 8)
        b = mul(_chebyshev(plus(div(filled(size, 16), outside), -1), far), rsqrt(outside))
        if odd:
            return mul(select(is_near, mul(a, size), b), sign(x))
        return select(is_near, a, b)

    return f


def _bessel_scalar(order: int) -> Callable[..., Any]:
    """exp(-|x|) I(x) by the power series of I (DLMF 10.25.2), far out by the asymptotic one (10.40.1)."""

    def f(x: float) -> float:
        s, y = (math.copysign(1, x) if order else 1), abs(x)
        if math.isinf(y):
            return s * 0.0
        if y < 30:
            term, total, k = (y / 2) ** order, 0.0, 0
            while term > 1e-20 * total:
                total += term
                k += 1
                term *= (y / 2) ** 2 / (k * (k + order))
            return s * math.exp(-y) * total
        term, total, k = 1.0, 0.0, 0
        while abs(term) > 1e-18 and k < 30:
            total += term
            k += 1
            term *= -(4 * order**2 - (2 * k - 1) ** 2) / (k * 8 * y)
        return s * total / math.sqrt(2 * math.pi * y)

    return f


def _bessel_i1e_slope(t: Value, o: Value, x: Value) -> Value:
    """I0e(x) - I1e(x) (sign(x) + 1/x), and its limit 1/2 at 0."""
    apart = gt(abs_(x), scalar_like(x, epsilon(x)))
    safe = select(apart, x, filled(x, epsilon(x)))
    slope = sub(bessel_i0e(safe), mul(o, add(sign(safe), integer_pow(safe, -1))))
    return mul(t, select(apart, slope, filled(x, 0.5)))


bessel_i0e_p = _elementwise(
    "bessel_i0e",
    "f",
    _reference(_bessel_scalar(0)),
    basic=False,
    decompose=in_single("bessel_i0e", _scaled_bessel(_I0_NEAR, _I0_FAR, False)),
    jvp=[lambda t, o, x: mul(t, sub(bessel_i1e(x), mul(sign(x), o)))],
    wire=portable(),
)
bessel_i1e_p = _elementwise(
    "bessel_i1e",
    "f",
    _reference(_bessel_scalar(1)),
    basic=False,
    decompose=in_single("bessel_i1e", _scaled_bessel(_I1_NEAR, _I1_FAR, True)),
    jvp=[_bessel_i1e_slope],
    wire=portable(),
)
bessel_i0e: Function = _fn(bessel_i0e_p)
bessel_i1e: Function = _fn(bessel_i1e_p)

# exp(x**2) erfc(x) ---------------------------------------------------------------------------------------------------

_NODES = 12
_STEP = math.sqrt(math.pi / _NODES)


def _erfcx_scalar(x: float) -> float:
    """By its continued fraction (DLMF 7.9.1) from the tail on, where erfc comes near to the smallest number."""
    if x < 5:
        return math.exp(x * x) * math.erfc(x)
    below = x
    for k in range(60, 0, -1):
        below = x + k / 2 / below
    return 1 / (math.sqrt(math.pi) * below)


def _erfcx(x: Value) -> Value:
    """The trapezoidal rule with nodes halfway between multiples of the step, and the residue at the pole. M. Al Azah
    and S. N. Chandler-Wilde, "Computation of the complex error function using modified trapezoidal rules" (2021).
    """
    y, edge = abs_(x), math.pi / _STEP
    near = min_(y, scalar_like(y, edge))
    pole = div(times(exp(integer_pow(near, 2)), 2), plus(exp(times(near, 2 * edge)), 1))
    far = scalar_like(y, 1e8 if dtypes.bits(dtype_of(x)) == 64 else 1e4)  # where 1 / y**2 no longer counts
    inside = min_(y, far)
    square, total = integer_pow(inside, 2), filled(x, 0.0)
    for k in range(_NODES):
        t = (k + 0.5) * _STEP
        total = add(total, div(filled(x, math.exp(-t * t)), plus(square, t * t)))
    value = add(times(mul(inside, total), 2 * _STEP / math.pi), where(lt(y, scalar_like(y, edge)), pole, 0.0))
    value = where(gt(y, far), div(filled(x, 1 / math.sqrt(math.pi)), y), value)
    left = sub(times(exp(integer_pow(x, 2)), 2), value)
    return select(lt(x, scalar_like(x, 0)), left, select(ne(x, x), x, value))


erfcx_p = _elementwise(
    "erfcx",
    "f",
    _reference(_erfcx_scalar),
    basic=False,
    decompose=in_single("erfcx", _erfcx),
    jvp=[lambda t, o, x: mul(t, plus(times(mul(x, o), 2), -2 / math.sqrt(math.pi)))],
    wire=portable(),
)
erfcx: Function = _fn(erfcx_p)

# incomplete gamma functions ------------------------------------------------------------------------------------------


def _lower_series(a: float, x: float) -> tuple[float, float]:
    """Σ xⁿ / ((a+1) … (a+n)) and its derivative with respect to a (DLMF 8.7.1)."""
    term = total = 1.0
    slope = total_slope = 0.0
    n = 0
    while term > 1e-18 * total or abs(slope) > 1e-18 * abs(total_slope):
        n += 1
        term, slope = term * x / (a + n), (slope - term / (a + n)) * x / (a + n)
        total, total_slope = total + term, total_slope + slope
    return total, total_slope


def _igammac_fraction(a: float, x: float) -> float:
    """Γ(a, x) eˣ / xᵃ as a continued fraction (DLMF 8.9.2), by the modified Lentz method."""
    tiny = 1e-300
    b = x + 1 - a
    c, d = 1 / tiny, 1 / b
    h = d
    for i in range(1, 100_000):
        an = -i * (i - a)
        b += 2
        d = 1 / ((an * d + b) or tiny)
        c = (b + an / c) or tiny
        h *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return h


def _gamma_scale(a: float, x: float) -> float:
    return math.exp(a * math.log(x) - x - math.lgamma(a))


def _igamma_scalar(a: float, x: float) -> float:
    if a < 0 or x < 0 or a == x == 0:
        return math.nan
    if a == 0 or math.isinf(x):
        return 1.0
    if x == 0 or math.isinf(a):
        return 0.0
    return (
        1 - _gamma_scale(a, x) * _igammac_fraction(a, x)
        if x > 1 and x > a
        else _gamma_scale(a, x) / a * _lower_series(a, x)[0]
    )


def _igammac_scalar(a: float, x: float) -> float:
    if a > 0 and x > 1 and x > a and not math.isinf(x):
        return _gamma_scale(a, x) * _igammac_fraction(a, x)
    return 1 - _igamma_scalar(a, x)


def _igamma_grad_a_scalar(a: float, x: float) -> float:
    if a <= 0 or x < 0 or x and (math.isinf(a) or math.isinf(x)):
        return math.nan
    if x == 0:
        return 0.0
    total, slope = _lower_series(a, x)
    return _gamma_scale(a, x) / a * (slope + total * (math.log(x) - _digamma_scalar(a + 1)))


def _density(a: Value, x: Value) -> Value:
    """The derivative of igamma with respect to x, exp(-x) xᵃ⁻¹ / Γ(a)."""
    return exp(sub(add(neg(x), mul(sub(a, filled(a, 1)), log(x))), lgamma(a)))


igamma_p = _elementwise(
    "igamma",
    "f",
    _reference(_igamma_scalar),
    arity=2,
    basic=False,
    jvp=[lambda t, o, a, x: mul(t, igamma_grad_a(a, x)), lambda t, o, a, x: mul(t, _density(a, x))],
    wire=portable(),
)
igammac_p = _elementwise(
    "igammac",
    "f",
    _reference(_igammac_scalar),
    arity=2,
    basic=False,
    jvp=[lambda t, o, a, x: neg(mul(t, igamma_grad_a(a, x))), lambda t, o, a, x: neg(mul(t, _density(a, x)))],
    wire=portable(),
)
igamma_grad_a_p = _elementwise(
    "igamma_grad_a",
    "f",
    _reference(_igamma_grad_a_scalar),
    arity=2,
    basic=False,
    jvp=[no_derivative("igamma_grad_a", "a"), no_derivative("igamma_grad_a", "x")],
    wire=portable(),
)
igamma: Function = _fn(igamma_p)
igammac: Function = _fn(igammac_p)
igamma_grad_a: Function = _fn(igamma_grad_a_p)

# the incomplete beta function ----------------------------------------------------------------------------------------
#
# With y = 1 - x, `offset` is a y - b x: how far x lies below the mean a / (a + b), times a + b. What is large in the
# logarithm of xᵃ yᵇ / B(a, b) cancels:
# of log B by Stirling's formula, of a log x and b log y next to the mean. So the terms are put together first, by
# `_excess`, and none of them is negative.

# log Γ(z) = (z - 1/2) log z - z + log(2π) / 2 + Σ weight / zʲ for j = 1, 3, …: these weights are enough for float64
# from 10 on
STIRLING = tuple([b / (2 * j * (2 * j - 1)) for j, b in enumerate(_BERNOULLI[:8], 1)])
_STIRLING_FROM = 10.0
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
# Where both parameters are larger, an integral replaces the continued fraction, which needs ever more terms: the double
# exponential rule of Takahasi and Mori
LARGE_BETA = 2.0**12
NODES, NODE_STEP = 60, 0.125


def _stirling_scalar(z: float) -> float:
    """The terms of log Γ(z) besides (z - 1/2) log z - z + log(2π) / 2."""
    if z < _STIRLING_FROM:
        return math.lgamma(z) - ((z - 0.5) * math.log(z) - z + _HALF_LOG_2PI)
    return sum([w * (1 / z) ** (2 * j + 1) for j, w in enumerate(STIRLING)])


def _excess_scalar(change: float, z: float, ratio: float) -> float:
    """change - z log(ratio), where ratio = 1 + change / z."""
    t = change / z
    if not -0.5 <= t <= 1:
        return change - z * math.log(ratio)
    r = t / (2 + t)  # log(1 + t) = 2 artanh(r)
    return z * (t * r - 2 * r**3 * sum([r ** (2 * k) / (2 * k + 3) for k in range(16)]))


def _beta_fraction_scalar(a: float, b: float, x: float, y: float, offset: float) -> float:
    """The even part of DLMF 8.17.22, whose terms are positive as long as n < b."""
    before, value = 0.0, (a + 1) / (a * (offset + 1))
    q = value
    for n in range(1, 100_000):
        middle = a + 2 * n
        even = n * (b - n) * x / (middle - 1)
        alpha = (a + n - 1) / (middle - 1) * ((a + b + n - 1) * x) * even
        beta = n + even + (a + n) / (middle + 1) * (offset + 1 + n * (1 + y))
        divisor = beta + alpha * q
        before, q, value, old = value / divisor, 1 / divisor, (beta * value + alpha * before) / divisor, value
        if abs(value - old) <= 1e-16 * abs(value):
            return value
    return math.nan


def _beta_integral_scalar(a: float, b: float, x: float, y: float, offset: float) -> float:
    """∫ (1 - s/x)ᵃ⁻¹ (1 + s/y)ᵇ⁻¹ ds / (x y) from 0 to x."""
    slope = offset - y + x
    scale = x * y / (abs(slope) + math.sqrt(a * y * y + b * x * x))
    total = 0.0
    for n in range(2 * NODES):
        t = (n - NODES) * NODE_STEP / 2
        node = math.exp(t - math.exp(-t))
        u, v = scale * node / x, scale * node / y
        if u < 1:
            exponent = -(
                scale * node * slope / (x * y)
                + _excess_scalar(-(a - 1) * u, a - 1, 1 - u)
                + _excess_scalar((b - 1) * v, b - 1, 1 + v)
            )
            total += (1 + math.exp(-t)) * node * math.exp(exponent)
    return total * NODE_STEP / 2 * scale / (x * y)


def _betainc_scalar(a: float, b: float, x: float) -> float:
    if a < 0 or b < 0 or x < 0 or x > 1 or a == b == 0 or math.isinf(a) and math.isinf(b):
        return math.nan
    if x == 0 or x != 1 and (b == 0 or math.isinf(a)):
        return 0.0
    if x == 1 or a == 0 or math.isinf(b):
        return 1.0
    y = 1 - x
    # a (1 - x) - b x in whole numbers, and rounded once
    (ta, ba), (tb, bb), (tx, bx) = a.as_integer_ratio(), b.as_integer_ratio(), x.as_integer_ratio()
    offset = (ta * bb * (bx - tx) - tb * ba * tx) / (ba * bb * bx)
    swap = offset <= x - y
    if swap:
        a, b, x, y, offset = b, a, y, x, -offset
    rest = _stirling_scalar(a) + _stirling_scalar(b) - _stirling_scalar(a + b)
    below, above = [min(u * (1 + more / z), sys.float_info.max) for u, more, z in ((x, b, a), (y, a, b))]
    exponent = _excess_scalar(-offset, a, below) + _excess_scalar(offset, b, above) + rest
    less, more = min(a, b), max(a, b)
    front = math.sqrt(less / (1 + less / more) / (2 * math.pi)) * math.exp(-exponent)
    value = front * (_beta_integral_scalar if less > LARGE_BETA else _beta_fraction_scalar)(a, b, x, y, offset)
    return 1 - value if swap else value


def _stirling(z: Value) -> Value:
    far = ge(z, filled(z, _STIRLING_FROM))
    inverse, near = div(filled(z, 1), where(far, z, _STIRLING_FROM)), where(not_(far), z, 1)
    square, series = mul(inverse, inverse), filled(z, STIRLING[-1])
    for w in reversed(STIRLING[:-1]):
        series = plus(mul(series, square), w)
    plain = plus(sub(mul(plus(near, -0.5), log(near)), near), _HALF_LOG_2PI)
    return select(far, mul(series, inverse), sub(lgamma(near), plain))


def excess(change: Value, z: Value, ratio: Value) -> Value:
    """change - z log(ratio), where ratio = 1 + change / z: nothing cancels where that is next to 1."""
    t = div(change, z)
    near = and_(ge(t, filled(t, -0.5)), le(t, filled(t, 1)))
    t = where(near, t, 0)
    r = div(t, plus(t, 2))  # log(1 + t) = 2 artanh(r)
    square, series = mul(r, r), filled(r, 0)
    for k in reversed(range(15 if dtypes.bits(dtype_of(t)) == 64 else 7)):
        series = plus(mul(series, square), 1 / (2 * k + 3))
    inside = mul(z, sub(mul(t, r), times(mul(mul(r, square), series), 2)))
    most = filled(ratio, float(limits.finfo(dtype_of(ratio)).max))
    return select(near, inside, sub(change, mul(z, log(min_(where(not_(near), ratio, 1), most)))))


def _halves(x: Value) -> tuple[Value, Value]:
    """A number as the sum of two with half as many digits (Dekker)."""
    multiple = times(x, 2**27 + 1 if dtypes.bits(dtype_of(x)) == 64 else 2**12 + 1)
    high = sub(multiple, sub(multiple, x))
    return high, sub(x, high)


def _product(x: Value, y: Value) -> tuple[Value, Value]:
    """The product x y, and its rounding error."""
    product, (a, b), (c, d) = mul(x, y), _halves(x), _halves(y)
    return product, add(add(add(sub(mul(a, c), product), mul(a, d)), mul(b, c)), mul(b, d))


def beta_offset(a: Value, b: Value, x: Value) -> tuple[Value, Value]:
    """(1 - x, a (1 - x) - b x). The second is computed without rounding errors of the products, which may exceed a
    standard deviation if the products are large.
    """
    one = filled(x, 1)
    y = sub(one, x)
    (p, lost_p), (q, lost_q) = _product(a, y), _product(b, x)
    lost = add(sub(lost_p, lost_q), mul(a, sub(sub(one, y), x)))
    return y, add(sub(p, q), where(is_finite(lost), lost, 0))


def beta_power(a: Value, b: Value, x: Value, y: Value, offset: Value) -> Value:
    """xᵃ yᵇ / B(a, b)."""
    rest = sub(add(_stirling(a), _stirling(b)), _stirling(add(a, b)))
    below, above = excess(neg(offset), a, mul(x, plus(div(b, a), 1))), excess(offset, b, mul(y, plus(div(a, b), 1)))
    less, more = min_(a, b), max_(a, b)
    return mul(
        sqrt(times(div(less, plus(div(less, more), 1)), 1 / (2 * math.pi))), exp(neg(add(add(below, above), rest)))
    )


def _betainc_slope(t: Value, o: Value, a: Value, b: Value, x: Value) -> Value:
    """xᵃ⁻¹ (1-x)ᵇ⁻¹ / B(a, b)."""
    both = add(a, b)
    large = and_(and_(gt(both, filled(x, 32)), is_finite(both)), and_(gt(x, filled(x, 0)), lt(x, filled(x, 1))))
    p, q, u = where(large, a, 1), where(large, b, 1), where(large, x, 0.5)
    v, offset = beta_offset(p, q, u)
    of_large = div(beta_power(p, q, u, v, offset), mul(u, v))
    a, b, x = where(not_(large), a, 1), where(not_(large), b, 1), where(not_(large), x, 0.5)
    log_beta = sub(add(lgamma(a), lgamma(b)), lgamma(add(a, b)))
    powers = add(mul(plus(b, -1), log1p(neg(x))), mul(plus(a, -1), log(x)))
    return mul(select(large, of_large, exp(sub(powers, log_beta))), t)


regularized_incomplete_beta_p = _elementwise(
    "regularized_incomplete_beta",
    "f",
    _reference(_betainc_scalar),
    arity=3,
    basic=False,
    jvp=[no_derivative("betainc", "a", ValueError), no_derivative("betainc", "b", ValueError), _betainc_slope],
    wire=portable(),
)
