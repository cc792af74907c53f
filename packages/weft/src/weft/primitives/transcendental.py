"""Functions of numbers beyond arithmetic: exponentials, logarithms, trigonometric and hyperbolic functions, roots, erf,
powers. Some have a parameter for the accuracy.
"""

from __future__ import annotations

import enum
import math
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from ..base import dtypes
from ..base.avals import shaped
from ..core.primitive import Primitive
from ..core.shardings import elementwise
from ..core.wire import COUNT, FINITE, NOTHING, either, member, optional, param_type, portable, record
from ..base.host import np
from .linear import add_any, convert, full
from .rules import broadcast_shapes, check_kind, dtype_of, same_dtype, scalar_like
from .elementwise import (
    FLOAT,
    Function,
    _elementwise,
    _fn,
    add,
    div,
    eq,
    half,
    integer_pow,
    mul,
    neg,
    one,
    select,
    square,
    sub,
)

if TYPE_CHECKING:
    from ..base.avals import ShapedArray
    from ..core.types import Value


@param_type
class AccuracyMode(enum.Enum):
    """The accuracy of a function: the most accurate implementation of the backend, or the usual one."""

    HIGHEST = 1
    DEFAULT = 2


class _Tolerance(NamedTuple):
    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0


@param_type
class Tolerance(_Tolerance):
    """The largest error that a function's results may have: absolute, relative, and in units in the last place.

    Raises:
        ValueError: if one is negative, or all are zero.

    Example:
        >>> from weft import lax
        >>> y = lax.exp(1.5, accuracy=lax.Tolerance(ulps=4))
    """

    __slots__ = ()

    def __new__(cls, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0) -> Tolerance:
        if atol < 0 or rtol < 0 or ulps < 0:
            raise ValueError(f"Tolerance: tolerances must not be negative, got atol={atol}, rtol={rtol}, ulps={ulps}.")
        if not (atol or rtol or ulps):
            raise ValueError("Tolerance: at least one of atol, rtol and ulps must be set.")
        return super().__new__(cls, abs(float(atol)), abs(float(rtol)), int(ulps))  # of -0.0 too


ACCURACY = either(NOTHING, member("AccuracyMode"), record("Tolerance", FINITE, FINITE, COUNT))


def _wide(f: Callable[..., Any]) -> Callable[..., Any]:
    """Reference values computed in float64 (complex128), so that they are right to the last bit of the narrower
    dtypes.
    """

    def reference(*xs: Any, **kw: Any) -> Any:
        with np.errstate(all="ignore"):
            wide = [x.astype(np.complex128 if dtypes.is_complex(x.dtype) else np.float64) for x in xs]
            return np.asarray(f(*wide, **kw)).astype(xs[0].dtype)

    return reference


def _accurate(name: str, kinds: str, reference: Callable[..., Any], **rules: Any) -> Primitive:
    """An elementwise primitive with a parameter for the accuracy."""
    primitive = _elementwise(
        name, kinds, lambda x, *, accuracy=None: reference(x), **rules, wire=portable(accuracy=optional(ACCURACY))
    )
    primitive.hidden = ("accuracy",)
    return primitive


def _of_scalars(f: Callable[..., Any]) -> Callable[..., Any]:
    """A NumPy ufunc of a function from `math`; outside its domain it gives NaN, at a pole infinity."""

    def g(x: Value) -> Value:
        try:
            return f(x)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    return lambda x: np.vectorize(g, otypes=[np.float64])(x) if x.size else x


exp_p = _accurate("exp", FLOAT, _wide(lambda x: np.exp(x)), jvp=[lambda t, o, x, **accuracy: mul(t, o)])
exp2_p = _accurate(
    "exp2",
    FLOAT,
    _wide(lambda x: np.exp2(x)),
    jvp=[lambda t, o, x, **accuracy: mul(scalar_like(o, math.log(2)), mul(t, o))],
)
log_p = _accurate("log", FLOAT, _wide(lambda x: np.log(x)), jvp=[lambda t, o, x, **accuracy: div(t, x)])
expm1_p = _accurate(
    "expm1", FLOAT, _wide(lambda x: np.expm1(x)), jvp=[lambda t, o, x, **accuracy: mul(t, add(o, one(o)))]
)
log1p_p = _accurate(
    "log1p", FLOAT, _wide(lambda x: np.log1p(x)), jvp=[lambda t, o, x, **accuracy: div(t, add(x, one(x)))]
)
exp, exp2, log, expm1, log1p = map(_fn, (exp_p, exp2_p, log_p, expm1_p, log1p_p))


def _tanh_jvp(t: Value, o: Value, x: Value, **accuracy: Any) -> Value:
    """(1 - o)(1 + o) t, in a form that keeps its digits where o is near 1."""
    return mul(add_any(t, mul(t, o)), sub(one(o), o))


tanh_p = _accurate("tanh", FLOAT, _wide(lambda x: np.tanh(x)), jvp=[_tanh_jvp])
logistic_p = _accurate(
    "logistic",
    FLOAT,
    _wide(lambda x: 1 / (1 + np.exp(-x))),
    jvp=[lambda t, o, x, **accuracy: mul(t, mul(o, sub(one(o), o)))],
)
sin_p = _accurate(
    "sin", FLOAT, _wide(lambda x: np.sin(x)), jvp=[lambda t, o, x, **accuracy: mul(t, cos_p.bind(x, **accuracy))]
)
cos_p: Primitive = _accurate(
    "cos", FLOAT, _wide(lambda x: np.cos(x)), jvp=[lambda t, o, x, **accuracy: neg(mul(t, sin_p.bind(x, **accuracy)))]
)
tan_p = _accurate(
    "tan", FLOAT, _wide(lambda x: np.tan(x)), jvp=[lambda t, o, x, **accuracy: mul(t, add(one(o), square(o)))]
)
tanh, logistic, sin, cos, tan = map(_fn, (tanh_p, logistic_p, sin_p, cos_p, tan_p))
asin_p = _elementwise(
    "asin",
    FLOAT,
    _wide(lambda x: np.arcsin(x)),
    jvp=[lambda t, o, x: mul(t, rsqrt(sub(one(x), square(x))))],
    wire=portable(),
)
acos_p = _elementwise(
    "acos",
    FLOAT,
    _wide(lambda x: np.arccos(x)),
    jvp=[lambda t, o, x: mul(t, neg(rsqrt(sub(one(x), square(x)))))],
    wire=portable(),
)
atan_p = _elementwise(
    "atan", FLOAT, _wide(lambda x: np.arctan(x)), jvp=[lambda t, o, x: div(t, add(one(x), square(x)))], wire=portable()
)
sinh_p = _elementwise(
    "sinh", FLOAT, _wide(lambda x: np.sinh(x)), jvp=[lambda t, o, x: mul(t, cosh(x))], wire=portable()
)
cosh_p = _elementwise(
    "cosh", FLOAT, _wide(lambda x: np.cosh(x)), jvp=[lambda t, o, x: mul(t, sinh(x))], wire=portable()
)
asinh_p = _elementwise(
    "asinh",
    FLOAT,
    _wide(lambda x: np.arcsinh(x)),
    jvp=[lambda t, o, x: mul(t, rsqrt(add(square(x), one(x))))],
    wire=portable(),
)
acosh_p = _elementwise(
    "acosh",
    FLOAT,
    _wide(lambda x: np.arccosh(x)),
    jvp=[lambda t, o, x: mul(t, rsqrt(mul(sub(x, one(x)), add(x, one(x)))))],
    wire=portable(),
)
atanh_p = _elementwise(
    "atanh",
    FLOAT,
    _wide(lambda x: np.arctanh(x)),
    jvp=[lambda t, o, x: div(t, sub(one(x), square(x)))],
    wire=portable(),
)
asin, acos, atan, asinh, acosh, atanh = map(_fn, (asin_p, acos_p, atan_p, asinh_p, acosh_p, atanh_p))
sinh: Function = _fn(sinh_p)
cosh: Function = _fn(cosh_p)


def _atan2_reference(y: Value, x: Value) -> Any:
    """The logarithm gives the angle of complex and of real numbers."""
    return -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y)) if dtypes.is_complex(x.dtype) else np.arctan2(y, x)


atan2_p = _elementwise(
    "atan2",
    FLOAT,
    _wide(_atan2_reference),
    arity=2,
    jvp=[
        lambda t, o, x, y: mul(t, div(y, add(square(x), square(y)))),
        lambda t, o, x, y: mul(t, div(neg(x), add(square(x), square(y)))),
    ],
    wire=portable(),
)
atan2: Function = _fn(atan2_p)
sqrt_p = _accurate(
    "sqrt", FLOAT, _wide(lambda x: np.sqrt(x)), jvp=[lambda t, o, x, **accuracy: mul(t, div(half(o), o))]
)
rsqrt_p = _accurate(
    "rsqrt",
    FLOAT,
    _wide(lambda x: 1 / np.sqrt(x)),
    jvp=[lambda t, o, x, **accuracy: mul(t, mul(scalar_like(o, -0.5), div(o, x)))],
)
cbrt_p = _accurate(
    "cbrt",
    "f",
    _wide(lambda x: np.cbrt(x)),
    jvp=[lambda t, o, x, **accuracy: mul(t, mul(scalar_like(o, 1 / 3), integer_pow(o, -2)))],
)
sqrt, cbrt = _fn(sqrt_p), _fn(cbrt_p)
rsqrt: Function = _fn(rsqrt_p)

_TWO_OVER_SQRT_PI = 2 / math.sqrt(math.pi)
erf_p = _elementwise(
    "erf",
    "f",
    _wide(_of_scalars(math.erf)),
    jvp=[lambda t, o, x: mul(scalar_like(x, _TWO_OVER_SQRT_PI), mul(t, exp(neg(square(x)))))],
    wire=portable(),
)
erfc_p = _elementwise(
    "erfc",
    "f",
    _wide(_of_scalars(math.erfc)),
    jvp=[lambda t, o, x: mul(scalar_like(x, -_TWO_OVER_SQRT_PI), mul(t, exp(neg(square(x)))))],
    wire=portable(),
)


def _erf_inv_scalar(y: float) -> float:
    """Newton's method on erf, from Giles' approximation's simplest branch as a start."""
    if abs(y) >= 1:
        return math.copysign(math.inf, y) if abs(y) == 1 else math.nan
    w = -math.log((1 - y) * (1 + y))
    a = 0.147
    s = 2 / (math.pi * a) - w / 2
    x = math.copysign(math.sqrt(max(0.0, math.sqrt(s * s + w / a) - s)), y)
    for _ in range(4):  # in the tail erfc keeps the digits that 1 - |y| has
        err = math.erf(x) - y if abs(x) < 0.5 else math.copysign(1, y) * ((1 - abs(y)) - math.erfc(abs(x)))
        x -= err / (_TWO_OVER_SQRT_PI * math.exp(-x * x))
    return x


erf_inv_p = _elementwise(
    "erf_inv",
    "f",
    _wide(_of_scalars(_erf_inv_scalar)),
    jvp=[lambda t, o, x: mul(scalar_like(x, math.sqrt(math.pi) / 2), mul(t, exp(square(o))))],
    wire=portable(),
)
erf, erfc, erf_inv = map(_fn, (erf_p, erfc_p, erf_inv_p))


def _pow_abstract(x: ShapedArray, y: ShapedArray) -> ShapedArray:
    check_kind("pow", x, "fc")
    if not (x.dtype == y.dtype or dtypes.is_int(y.dtype)):
        same_dtype("pow", [x, y])
    return shaped(broadcast_shapes("pow", [x.shape, y.shape]), x.dtype, x.weak_type and y.weak_type)


def _pow_jvp_x(t: Value, o: Value, x: Value, y: Value) -> Value:
    if dtypes.is_int(dtype_of(y)):
        y_ = convert(y, dtype_of(x))
        return mul(
            t, mul(y_, select(eq(y, scalar_like(y, 0)), full((), 1, dtype_of(x)), pow_(x, sub(y, scalar_like(y, 1)))))
        )
    safe = select(eq(y, scalar_like(y, 0)), full((), 1, dtype_of(y)), sub(y, scalar_like(y, 1)))
    return mul(t, mul(y, pow_(x, safe)))


def _pow_jvp_y(t: Value, o: Value, x: Value, y: Value) -> Value:
    return mul(t, mul(log(select(eq(x, scalar_like(x, 0)), full((), 1, dtype_of(x)), x)), o))


pow_p = _elementwise(
    "pow", FLOAT, _wide(lambda x, y: np.power(x, y)), arity=2, jvp=[_pow_jvp_x, _pow_jvp_y], wire=portable()
)
pow_p.abstract = _pow_abstract
pow_p.shard = elementwise("pow")
pow_: Function = _fn(pow_p)
