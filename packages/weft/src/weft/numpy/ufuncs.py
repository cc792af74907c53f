"""Elementwise functions of `weft.numpy`: arguments promote to one dtype and broadcast to one shape."""
from __future__ import annotations

import inspect
import math
from typing import Any, Callable

from .. import dtypes
from ..runtime.jit import inner_jit
from ..control.custom import custom_jvp
from ..core.trace import Tracer, get_aval
from ..errors import type_error
from ..core.jaxpr import TypedScalar
from ..ops import elementwise as el
from ..ops import linear
from ..ops.random_bits import random_unwrap_p
from ..ops.reduce import reduce_and
from ..ops.rules import dtype_of, scalar_like, shape_of
from ..typing import Array, ArrayLike
from .util import broadcast_shapes, float_dtype, no_complex, on_device, operand, promote, promote_inexact, promote_shapes, promote_strong, static_int, strong, to_bool


def _document(function, name: str, text: str, call: str):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{text}\n\n    Works on each element; arguments promote to one dtype and broadcast to one shape, which the result has.\n\n" \
        f"    Raises:\n        TypeError: for lists and other values that are not arrays or numbers, and for dtypes without this operation.\n" \
        f"        ValueError: if shapes do not broadcast.\n\n    Example:\n        >>> import weft.numpy as jnp\n        >>> y = jnp.{call}\n    "
    return function


_INEXACT = frozenset(dtypes.dtype(n) for n in ("bfloat16", "float16", "float32", "float64", "complex64", "complex128"))


def _float_unary(name: str, text: str, op: Callable, call: str | None = None):
    def function(x, /):
        if getattr(x, "dtype", None) in _INEXACT:      # what most calls have needs no promotion
            return op(x)
        (x,) = promote_inexact(name, x)
        return op(x)
    return _document(function, name, text, call or f"{name}(jnp.array([0.5, 0.25]))")


def _binary(name: str, text: str, op: Callable, call: str | None = None):
    def function(x, y, /):
        x, y = promote_shapes(name, *promote(name, x, y))
        return op(x, y)
    return _document(function, name, text, call or f"{name}(jnp.array([5, 3]), 2)")


def _float_binary(name: str, text: str, op: Callable):
    def function(x1, x2, /):
        x, y = promote_shapes(name, *promote_inexact(name, x1, x2))
        return op(x, y)
    return _document(function, name, text, f"{name}(jnp.array([5., 3.]), 2.)")


def _bits_binary(name: str, text: str, op: Callable, shift: bool = False):
    def function(x, y, /):
        x, y = promote_shapes(name, *promote(name, x, y))
        if shift and dtypes.is_bool(get_aval(x).dtype):
            x, y = linear.convert(x, dtypes.int32), linear.convert(y, dtypes.int32)
        if dtypes.is_inexact(get_aval(x).dtype):
            raise type_error(f"{name} takes integers or booleans, got {get_aval(x)} and {get_aval(y)}.")
        return op(x, y)
    return _document(function, name, text, f"{name}(jnp.array([5, 3]), 2)")


def _named(names: str, function: Callable):
    """The function with other names of its two arguments, which JAX does not give all alike."""
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names.split()]
    function.__signature__ = inspect.Signature(parameters)
    return function


def _logical(name: str, text: str, op: Callable):
    def function(x, y, /):
        return op(*promote_shapes(name, to_bool(name, x), to_bool(name, y)))
    return _document(function, name, text, f"{name}(jnp.array([5, 0]), 2)")


sin = _float_unary("sin", "The sine of x in radians.", el.sin)
cos = _float_unary("cos", "The cosine of x in radians.", el.cos)
tan = _float_unary("tan", "The tangent of x in radians.", el.tan)
arcsin = _float_unary("arcsin", "The inverse sine.", el.asin)
arccos = _float_unary("arccos", "The inverse cosine.", el.acos)
arctan = _float_unary("arctan", "The inverse tangent.", el.atan)
sinh = _float_unary("sinh", "The hyperbolic sine.", el.sinh)
cosh = _float_unary("cosh", "The hyperbolic cosine.", el.cosh)
tanh = _float_unary("tanh", "The hyperbolic tangent.", el.tanh)
arcsinh = _float_unary("arcsinh", "The inverse hyperbolic sine.", el.asinh)
arccosh = _float_unary("arccosh", "The inverse hyperbolic cosine.", el.acosh, "arccosh(jnp.array([1.5]))")
arctanh = _float_unary("arctanh", "The inverse hyperbolic tangent.", el.atanh)
asin, acos, atan, asinh, acosh, atanh = arcsin, arccos, arctan, arcsinh, arccosh, arctanh
exp = _float_unary("exp", "e to the power x.", el.exp)
exp2 = _float_unary("exp2", "2 to the power x.", el.exp2)
expm1 = _float_unary("expm1", "exp(x) - 1, exact near 0.", el.expm1)
log = _float_unary("log", "The natural logarithm.", el.log)
log1p = _float_unary("log1p", "log(1 + x), exact near 0.", el.log1p)
sqrt = _float_unary("sqrt", "The square root.", el.sqrt)
cbrt = _float_unary("cbrt", "The cube root.", el.cbrt)
log2 = _float_unary("log2", "The logarithm to base 2.", inner_jit(lambda x: _logarithm(x, 2), name="log2"))
log10 = _float_unary("log10", "The logarithm to base 10.", inner_jit(lambda x: _logarithm(x, 10), name="log10"))
deg2rad = _float_unary("deg2rad", "Degrees as radians.", lambda x: _scaled(x, math.pi / 180))
rad2deg = _float_unary("rad2deg", "Radians as degrees.", lambda x: _scaled(x, 180 / math.pi))
radians, degrees = deg2rad, rad2deg


def _scaled(x, by: float):
    return strong(el.mul(x, scalar_like(x, by))) if shape_of(x) else el.mul(x, scalar_like(x, by))


def _logarithm(x, base: int):
    x = linear.convert(x, dtype_of(x))      # of numbers JAX gives no weak type
    return el.div(el.log(x), scalar_like(x, math.log(base)))


def _sinc(x):
    scaled = el.mul(scalar_like(x, math.pi), x)
    zero = el.eq(x, scalar_like(x, 0))
    one = linear.full(shape_of(x), 1, dtype_of(x), get_aval(x).weak_type)
    safe = el.select_n_p.bind(zero, scaled, one)
    # the Taylor series near zero keeps the derivatives right there
    series = el.sub(one, el.div(el.square(scaled), scalar_like(x, 6)))
    return el.select_n_p.bind(zero, el.div(el.sin(safe), safe), series)


_sinc = inner_jit(_sinc, name="sinc")
sinc = _float_unary("sinc", "sin(pi x) / (pi x), 1 at 0.", lambda x: _sinc(*promote_strong("sinc", x)))

add = _binary("add", "x + y.", lambda x, y: el.or_(x, y) if dtypes.is_bool(dtype_of(x)) else el.add(x, y))
subtract = _binary("subtract", "x - y.", el.sub)
multiply = _binary("multiply", "x * y.", lambda x, y: el.and_(x, y) if dtypes.is_bool(dtype_of(x)) else el.mul(x, y))
divide = _float_binary("divide", "x / y, a float.", el.div)
true_divide = divide
maximum = _binary("maximum", "The larger of x and y; NaN if either is.", el.max_)
minimum = _binary("minimum", "The smaller of x and y; NaN if either is.", el.min_)
bitwise_and = _bits_binary("bitwise_and", "Bitwise and.", el.and_)
bitwise_or = _bits_binary("bitwise_or", "Bitwise or.", el.or_)
bitwise_xor = _bits_binary("bitwise_xor", "Bitwise exclusive or.", el.xor)
left_shift = _bits_binary("left_shift", "x shifted left by y bits.", el.shift_left, True)
right_shift = _named("x1 x2", _bits_binary("right_shift", "x shifted right by y bits; signed integers keep their sign.",
                           lambda x, y: (el.shift_right_logical if dtypes.is_unsigned(dtype_of(x)) else el.shift_right_arithmetic)(x, y), True))
bitwise_left_shift, bitwise_right_shift = left_shift, right_shift
logical_and = _logical("logical_and", "Whether both are true (not zero).", el.and_)
logical_or = _logical("logical_or", "Whether one is true (not zero).", el.or_)
logical_xor = _logical("logical_xor", "Whether exactly one is true (not zero).", el.xor)


def _complex_order(op: Callable, strict: Callable):
    """Comparisons of complex numbers are lexicographic: real parts first."""
    def compare(x, y):
        if not dtypes.is_complex(dtype_of(x)):
            return op(x, y)
        same = el.eq(el.real(x), el.real(y))
        return el.or_(strict(el.real(x), el.real(y)), el.and_(same, op(el.imag(x), el.imag(y))))
    return compare


equal = _binary("equal", "Whether x equals y.", lambda x, y: _words_equal(x, y) if dtypes.is_key(dtype_of(x)) else el.eq(x, y))
not_equal = _binary("not_equal", "Whether x differs from y.", lambda x, y: el.not_(_words_equal(x, y)) if dtypes.is_key(dtype_of(x)) else el.ne(x, y))
less = _binary("less", "Whether x is below y.", _complex_order(el.lt, el.lt))
less_equal = _binary("less_equal", "Whether x is not above y.", _complex_order(el.le, el.lt))
greater = _binary("greater", "Whether x is above y.", _complex_order(el.gt, el.gt))
greater_equal = _binary("greater_equal", "Whether x is not below y.", _complex_order(el.ge, el.gt))
arctan2 = _float_binary("arctan2", "The angle of the point (y, x), in radians.", el.atan2)
atan2 = arctan2


def _hypot(x, y):
    x, y = el.abs_(x), el.abs_(y)
    hi, lo = el.max_(x, y), el.min_(x, y)
    zero = el.eq(hi, scalar_like(hi, 0))
    shape = shape_of(hi)
    like = lambda v: linear.full(shape, v, dtype_of(hi), get_aval(hi).weak_type)
    safe = el.select_n_p.bind(zero, hi, like(1))
    value = el.mul(safe, el.sqrt(el.add(scalar_like(hi, 1), el.square(el.div(lo, safe)))))
    value = el.select_n_p.bind(zero, value, like(0))
    infinite = el.or_(el.eq(x, scalar_like(x, math.inf)), el.eq(y, scalar_like(y, math.inf)))
    return el.select_n_p.bind(infinite, value, like(math.inf))


_hypot = inner_jit(_hypot, name="hypot")


def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """sqrt(x² + y²) without overflow.

    Raises:
        ValueError: for complex numbers.

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.hypot(3., 4.))
        5.0
    """
    no_complex("hypot", operand("hypot", x1), operand("hypot", x2))
    return _hypot(*promote_shapes("hypot", *promote_strong("hypot", x1, x2)))


nextafter = _named("x y", _float_binary("nextafter", "The number after x in the direction of y.", el.nextafter))


@custom_jvp
def _logaddexp(x, y):
    if dtypes.is_complex(dtype_of(x)):
        high = el.max_(x, y)
        out = el.add(high, el.log1p(el.exp(el.sub(el.add(x, y), el.mul(high, scalar_like(high, 2))))))
        turn, angle = scalar_like(el.imag(out), 2 * math.pi), el.imag(out)      # into (-π, π]
        whole = el.ceil(el.sub(el.div(angle, turn), scalar_like(angle, 0.5)))
        return el.complex_(el.real(out), el.sub(angle, el.mul(whole, turn)))
    high, gap = el.max_(x, y), el.sub(x, y)
    same_infinity, total = el.ne(gap, gap), el.add(x, y)
    return el.select_n_p.bind(same_infinity, el.add(high, el.log1p(el.exp(el.neg(el.abs_(gap))))), total)


@_logaddexp.defjvp
def _logaddexp_jvp(primals, tangents):
    """Each tangent weighted by exp(operand - result), which is 1 where an infinity stands on both sides."""
    x, y = primals
    out = _logaddexp(x, y)

    def term(v, t):
        gap = el.sub(v, out)
        undefined = el.ne(gap, gap)
        weight = el.exp(el.select_n_p.bind(undefined, gap, linear.full(shape_of(gap), 0, dtype_of(gap), get_aval(gap).weak_type)))
        return el.mul(linear.broadcast_to_rank_shape(t, shape_of(out)), weight)
    return out, el.add(term(x, tangents[0]), term(y, tangents[1]))


_logaddexp.__name__ = "logaddexp"
logaddexp = _float_binary("logaddexp", "log(exp(x) + exp(y)) without overflow.", _logaddexp)


def _logaddexp2(x, y):
    ln2 = scalar_like(x, math.log(2))
    return el.div(_logaddexp(el.mul(x, ln2), el.mul(y, ln2)), ln2)


_logaddexp2 = inner_jit(_logaddexp2, name="logaddexp2")


def logaddexp2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """log2(2**x1 + 2**x2) without overflow.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.logaddexp2(jnp.array([3.]), 3.)
        Array([4.], dtype=float32)
    """
    return _logaddexp2(*promote_shapes("logaddexp2", *promote_strong("logaddexp2", x1, x2)))


def _nan_ignoring(name: str, text: str, op: Callable):
    @inner_jit(name=name)
    def run(x, y):
        if not dtypes.is_float(dtype_of(x)):
            return op(x, y)
        shape = shape_of(el.add(x, y))
        x, y = [linear.broadcast_to_rank_shape(v, shape) for v in (x, y)]
        return el.select_n_p.bind(el.ne(x, x), el.select_n_p.bind(el.ne(y, y), op(x, y), x), y)

    def function(x1, x2):
        return run(*promote_shapes(name, *promote(name, x1, x2)))
    return _document(function, name, text, f"{name}(jnp.array([5, 3]), 2)")


fmax = _nan_ignoring("fmax", "The larger of x and y, ignoring NaN.", el.max_)
fmin = _nan_ignoring("fmin", "The smaller of x and y, ignoring NaN.", el.min_)


def _same(name: str, text: str, op: Callable, kinds: str = "biufc"):
    def function(x, /):
        x = operand(name, x)
        if dtypes.kind(get_aval(x).dtype) not in kinds:
            raise type_error(f"{name} does not take dtype {dtypes.name(get_aval(x).dtype)}.")
        return op(x)
    return _document(function, name, text, f"{name}(jnp.array([5, 3]))")


negative = _same("negative", "-x.", el.neg)
positive = _same("positive", "x itself.", on_device)
abs = _same("abs", "The absolute value.", lambda x: on_device(x) if dtypes.is_bool(dtype_of(x)) or dtypes.is_unsigned(dtype_of(x)) else el.abs_(x))
absolute = abs
square = _same("square", "x * x; of booleans as int32.", lambda x: el.square(linear.convert(x, dtypes.int32) if dtypes.is_bool(dtype_of(x)) else x))
invert = _same("invert", "Each bit inverted; logical not for booleans.", el.not_, "biu")
bitwise_invert = bitwise_not = invert
isfinite = _same("isfinite", "Whether x is neither infinite nor NaN.", lambda x: _if_complex(x, el.is_finite, el.and_, True))
isinf = _same("isinf", "Whether x is infinite.", lambda x: _if_complex(x, lambda v: strong(el.eq(el.abs_(v), scalar_like(v, math.inf))), el.or_, False))
isnan = _same("isnan", "Whether x is not a number.", lambda x: _if_complex(x, lambda v: el.ne(v, v), el.or_, False))
bitwise_count = _same("bitwise_count", "The number of bits that are set in |x|.",
                      lambda x: linear.convert(on_device(x) if dtypes.is_bool(dtype_of(x)) else el.population_count(el.abs_(x) if dtypes.is_signed(dtype_of(x)) else x),
                                                dtypes.uint8), "biu")


def _words_equal(x, y):
    """Whether random keys have the same words."""
    a, b = random_unwrap_p.bind(x), random_unwrap_p.bind(y)
    rank = max(len(shape_of(a)), len(shape_of(b)))
    same = el.eq(*[linear.expand_dims(v, tuple(range(rank - len(shape_of(v))))) for v in (a, b)])
    return reduce_and(same, (len(shape_of(same)) - 1,))


def _if_complex(x, test: Callable, join: Callable, of_integers: bool):
    dt = dtype_of(x)
    if dtypes.is_complex(dt):
        return join(test(el.real(x)), test(el.imag(x)))
    return test(x) if dtypes.is_float(dt) else linear.full(shape_of(x), of_integers, dtypes.bool_)


def fabs(x: ArrayLike, /) -> Array:
    """The absolute value as a float.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fabs(-1)
        Array(1., dtype=float32, weak_type=True)
    """
    (x,) = promote_inexact("fabs", x)
    if dtypes.is_complex(dtype_of(x)):
        raise type_error(f"fabs does not take complex numbers, got {get_aval(x)}; use abs.")
    return el.abs_(x)


def sign(x: ArrayLike, /) -> Array:
    """-1, 0 or 1; x/|x| for complex numbers.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.sign(jnp.array([-2., 0.]))
        Array([-1.,  0.], dtype=float32)
    """
    return el.sign(operand("sign", x))


def signbit(x: ArrayLike, /) -> Array:
    """Whether the sign bit is set (-0.0 included).

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.signbit(jnp.array([-0.0, 1.0]))
        Array([ True, False], dtype=bool)
    """
    x = operand("signbit", x)
    dt = get_aval(x).dtype
    no_complex("signbit", x)
    if dtypes.is_float(dt):
        bits = el.bitcast(x, f"int{dtypes.bits(dt)}")
        return strong(el.lt(bits, scalar_like(bits, 0)))
    if dtypes.is_signed(dt):
        return strong(el.lt(x, scalar_like(x, 0)))
    if dtypes.is_complex(dt):
        raise type_error("signbit does not take complex numbers.")
    return linear.full(shape_of(x), False, dtypes.bool_)


def _rounding(name: str, text: str, op: Callable):
    def function(x, /):
        x = operand(name, x)
        dt = get_aval(x).dtype
        if dtypes.is_complex(dt):
            raise type_error(f"{name} does not take complex numbers.")
        return on_device(x) if dtypes.is_int(dt) or dtypes.is_bool(dt) else op(x)
    return _document(function, name, text, f"{name}(jnp.array([1.5, -0.5]))")


floor = _rounding("floor", "The largest integer that is not above x.", el.floor)
ceil = _rounding("ceil", "The smallest integer that is not below x.", el.ceil)


def _trunc(x):
    return el.select_n_p.bind(el.lt(x, scalar_like(x, 0)), el.floor(x), el.ceil(x))


_truncate = _rounding("trunc", "x without its fraction.", inner_jit(_trunc, name="trunc"))


def trunc(x: ArrayLike) -> Array:
    """x without its fraction.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.trunc(jnp.array([1.5, -1.5]))
        Array([ 1., -1.], dtype=float32)
    """
    return _truncate(x)


fix = trunc


def rint(x: ArrayLike, /) -> Array:
    """The nearest integer as a float, halves to even.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.rint(jnp.array([0.5, 1.5]))
        Array([0., 2.], dtype=float32)
    """
    strong = not dtypes.is_inexact(get_aval(operand("rint", x)).dtype)
    (x,) = promote_inexact("rint", x)
    x = linear.convert(x, dtype_of(x)) if strong else x
    return el.complex_(el.round_(el.real(x), 1), el.round_(el.imag(x), 1)) if dtypes.is_complex(dtype_of(x)) else el.round_(x, 1)


@inner_jit(name="round", static_argnums=(1,))
def _round(x, decimals):
    dt = dtype_of(x)
    if dtypes.is_complex(dt):
        return el.complex_(_round_float(el.real(x), decimals), _round_float(el.imag(x), decimals))
    return _round_float(x, decimals)


def _round_float(x, decimals: int):
    if decimals == 0:
        return el.round_(x, 1)
    dt = dtype_of(x)
    wide = linear.convert(x, dtypes.float32) if dtypes.bits(dt) < 32 else x
    factor = scalar_like(wide, 10.0 ** (decimals if decimals > 0 else -decimals))
    scale, back = (el.mul, el.div) if decimals > 0 else (el.div, el.mul)
    return linear.convert(back(el.round_(scale(wide, factor), 1), factor), dt, get_aval(x).weak_type and not shape_of(x))


def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Rounded to a number of decimals (negative ones round to tens, hundreds, …); halves to even.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.round(jnp.array([1.25, 2.5]), 1)
        Array([1.2, 2.5], dtype=float32)
    """
    if out is not None:
        raise NotImplementedError("weft.numpy.round: the 'out' argument is not supported, since arrays are immutable; use the result.")
    a, decimals = operand("round", a), static_int("decimals", decimals)
    dt = get_aval(a).dtype
    if dtypes.is_bool(dt):
        raise ValueError(f"round does not take booleans, got {get_aval(a)}; convert them with astype.")
    if dtypes.is_int(dt):
        if decimals < 0:
            raise NotImplementedError("round of integers to negative decimals is not implemented; convert to a float first.")
        return on_device(a)
    return _round(a, int(decimals))


around = round


def reciprocal(x: ArrayLike, /) -> Array:
    """1 / x.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.reciprocal(jnp.array([2., 4.]))
        Array([0.5 , 0.25], dtype=float32)
    """
    (x,) = promote_inexact("reciprocal", x)
    return el.integer_pow(x, -1)


def conjugate(x: ArrayLike, /) -> Array:
    """The complex conjugate; real x as it is.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.conj(jnp.array([1 + 2j]))
        Array([1.-2.j], dtype=complex64)
    """
    x = operand("conj", x)
    return el.conj(x) if dtypes.is_complex(get_aval(x).dtype) else on_device(x)


conj = conjugate


def real(val: ArrayLike, /) -> Array:
    """The real part.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.real(jnp.array([1 + 2j]))
        Array([1.], dtype=float32)
    """
    val = operand("real", val)
    return el.real(val) if dtypes.is_complex(get_aval(val).dtype) else on_device(val)


def imag(val: ArrayLike, /) -> Array:
    """The imaginary part; 0 for real numbers.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.imag(jnp.array([1 + 2j]))
        Array([2.], dtype=float32)
    """
    val = operand("imag", val)
    aval = get_aval(val)
    return el.imag(val) if dtypes.is_complex(aval.dtype) else linear.full(aval.shape, 0, aval.dtype, aval.weak_type)


def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The angle of complex numbers in the plane, in radians or degrees.

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.angle(1j)) > 1.57
        True
    """
    z = operand("angle", z)
    if not dtypes.is_inexact(dtype_of(z)) or dtypes.is_float(dtype_of(z)) and not shape_of(z):      # of one real number JAX gives the default float
        z = linear.convert(z, float_dtype())
    z = on_device(z)
    re, im = (el.real(z), el.imag(z)) if dtypes.is_complex(dtype_of(z)) else (z, linear.full(shape_of(z), 0, dtype_of(z), get_aval(z).weak_type))
    out = el.atan2(im, re)
    return rad2deg(out) if deg else out


def logical_not(x: ArrayLike, /) -> Array:
    """Whether x is false (zero).

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.logical_not(jnp.array([0, 2]))
        Array([ True, False], dtype=bool)
    """
    return el.not_(to_bool("logical_not", x))


@inner_jit(name="floor_divide")
def _floor_divide_signed(x, y):
    x, y = promote("floor_divide", x, y)
    q = el.div(x, y)
    if dtypes.is_unsigned(dtype_of(x)):
        return q
    adjust = el.and_(el.ne(el.sign(x), el.sign(y)), el.ne(el.rem(x, y), scalar_like(x, 0)))
    return where_jit(adjust, el.sub(q, scalar_like(q, 1)), q)


@inner_jit(name="floor_divide")
def _floor_divide_float(x, y):
    x, y = promote("floor_divide", x, y)
    mod = el.rem(x, y)
    # what remains of a division by zero is NaN, but the quotient is infinite
    shape = broadcast_shapes([shape_of(x), shape_of(y)])
    by_zero = linear.broadcast_to_rank_shape(el.eq(y, scalar_like(y, 0)), shape)
    q = el.div(el.select_n_p.bind(by_zero, el.sub(x, mod), linear.broadcast_to_rank_shape(x, shape)), y)
    adjust = el.and_(el.ne(mod, scalar_like(mod, 0)), el.ne(el.sign(mod), el.sign(y)))
    q = el.select_n_p.bind(linear.broadcast_to_rank_shape(adjust, shape), q, el.sub(q, scalar_like(q, 1)))
    return el.round_(q, 0)


def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The largest integer not above x1 / x2; integer division by zero gives -1 (all ones).

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.floor_divide(jnp.array([5, -5]), 2)
        Array([ 2, -3], dtype=int32)
    """
    x, y = _ready_for_jit("floor_divide", x1, x2)
    dt = _common(x, y)
    if dtypes.is_bool(dt):
        x, y, dt = linear.convert(x, dtypes.int32), linear.convert(y, dtypes.int32), dtypes.int32
    if dtypes.is_complex(dt):
        raise type_error("floor_divide does not take complex numbers.")
    return (_floor_divide_signed if dtypes.is_int(dt) else _floor_divide_float)(x, y)


def _common(*args):
    return dtypes.promote(*[(a.dtype, a.weak_type) for a in map(get_aval, args)])[0]


def _ready_for_jit(name: str, *args) -> list:
    """Arguments of one rank whose dtypes are promoted inside a jitted function."""
    return promote_shapes(name, *[operand(name, a) for a in args])


@inner_jit(name="_where")
def where_jit(condition: Any, x: Any, y: Any) -> Array:
    """The one `where` of all functions: dtypes promote, shapes broadcast."""
    x, y = promote("where", x, y)
    shapes = [shape_of(v) for v in (condition, x, y)]
    rank = max(map(len, shapes))
    shape = tuple(_widest([s[d - rank + len(s)] for s in shapes if d - rank + len(s) >= 0], shapes) for d in range(rank))
    wide = lambda v: v if shape_of(v) == shape else linear.broadcast_in_dim(v, shape, tuple(range(rank - len(shape_of(v)), rank)))
    condition, x, y = condition if not shapes[0] else wide(condition), wide(x), wide(y)
    return el.select_n_p.bind(condition, y, x)


def _widest(sizes, shapes) -> int:
    wide = {n for n in sizes if n != 1}
    if len(wide) > 1:
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={shapes}.")
    return wide.pop() if wide else 1


@inner_jit(name="remainder")
def _remainder(x, y):
    x, y = promote("remainder", x, y)
    zero = scalar_like(x, 0)
    if dtypes.is_int(dtype_of(x)):
        y = where_jit(el.eq(y, zero), linear.convert(1, dtype_of(y), get_aval(y).weak_type), y)
    mod = el.rem(x, y)
    shape = shape_of(mod)
    rest = el.ne(mod, zero)
    adjust = el.and_(el.ne(el.lt(mod, zero), el.lt(y, zero)), rest)
    return el.select_n_p.bind(linear.broadcast_to_rank_shape(adjust, shape), mod, el.add(mod, y))


def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder of floor division: it has the sign of x2.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.mod(jnp.array([5, -5]), 3)
        Array([2, 1], dtype=int32)
    """
    x, y = _ready_for_jit("remainder", x1, x2)
    if dtypes.is_bool(_common(x, y)):
        x, y = [linear.convert(v, dtypes.int32) for v in (x, y)]
    return _remainder(x, y)


mod = remainder


def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder of division towards zero: it has the sign of x1.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fmod(jnp.array([5, -5]), 3)
        Array([ 2, -2], dtype=int32)
    """
    x, y = promote_shapes("fmod", *promote("fmod", x1, x2))
    if dtypes.is_bool(dtype_of(x)):      # the remainder of division by false is the dividend, as JAX has it
        x, y = [linear.convert(v, dtypes.int32) for v in (x, y)]
    elif dtypes.is_int(dtype_of(x)):
        y = where_jit(el.eq(y, scalar_like(y, 0)), scalar_like(y, 1), y)
    return el.rem(x, y)


def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """(floor_divide, remainder).

    Example:
        >>> import weft.numpy as jnp
        >>> q, r = jnp.divmod(jnp.array([5]), 3)
    """
    return floor_divide(x1, x2), remainder(x1, x2)


def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """(fraction, integer part), both with the sign of x.

    Example:
        >>> import weft.numpy as jnp
        >>> f, i = jnp.modf(jnp.array([1.5]))
    """
    if out is not None:
        raise NotImplementedError("modf: the argument 'out' is not supported, since arrays are immutable; use the result.")
    (x,) = promote_inexact("modf", x)
    whole = trunc(x)
    return el.sub(x, whole), whole


@inner_jit(name="_power")
def _power_of_integers(x, y):
    """Repeated squaring over the low bits of the exponent; higher ones overflow for every base but -1, 0 and 1."""
    bits = 6
    shape = shape_of(el.mul(x, y))
    x, y = [linear.broadcast_to_rank_shape(v, shape) for v in (x, y)]
    acc = linear.full(shape, 1, dtype_of(x), get_aval(x).weak_type and not shape)
    one = scalar_like(y, 1)
    for i in range(bits):
        odd = el.ne(el.and_(y, one), scalar_like(y, 0))
        acc = el.select_n_p.bind(odd, acc, el.mul(acc, x))
        if i + 1 < bits:
            y, x = el.shift_right_logical(y, one), el.mul(x, x)
    return acc


def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 to the power x2. A Python int as exponent gives exact repeated products; integers need exponents that are not negative.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.power(jnp.array([2, 3]), 2)
        Array([4, 9], dtype=int32)
    """
    x1, exponent = operand("power", x1), operand("power", x2, any_int=True)
    if type(exponent) is not int and not isinstance(exponent, Tracer) and get_aval(exponent).shape == () and not dtypes.is_inexact(get_aval(exponent).dtype):
        exponent = int(exponent.val if type(exponent) is TypedScalar else exponent)      # a known number: exact products, and the base's dtype
    if type(exponent) is int and dtypes.is_bool(get_aval(x1).dtype):
        x1 = linear.convert(x1, dtypes.int32)
    base = get_aval(x1)
    if type(exponent) is int:
        if dtypes.is_int(base.dtype) and exponent < 0:
            raise type_error(f"Integers cannot be raised to negative powers, got {base} to the power {exponent}. Convert to a float first.")
        return el.integer_pow_p.bind(x1, y=exponent)
    if dtypes.is_inexact(base.dtype) and dtypes.is_int(get_aval(exponent).dtype) and not get_aval(exponent).weak_type:
        return el.pow_(*promote_shapes("power", x1, exponent))
    x, y = promote_shapes("power", *promote("power", x1, exponent))
    dt = dtype_of(x)
    if dtypes.is_bool(dt):
        return _power_of_integers(linear.convert(x, dtypes.int32), linear.convert(y, dtypes.int32))
    return el.pow_(x, y) if dtypes.is_inexact(dt) else _power_of_integers(x, y)


pow = power


def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x to the power y, as floats.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.float_power(2, -1)
        Array(0.5, dtype=float32, weak_type=True)
    """
    return el.pow_(*promote_shapes("float_power", *promote_inexact("float_power", x, y)))


@inner_jit(name="clip")
def _clip(x, lo, hi):
    dt = dtype_of(x)
    if lo is not None:
        x = el.max_(linear.convert(lo, dt, get_aval(x).weak_type), x)
    if hi is not None:
        x = el.min_(linear.convert(hi, dt, get_aval(x).weak_type), x)
    return x


def clip(arr: ArrayLike | None = None, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
    """x limited to [min, max]; either bound may be None.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.clip(jnp.array([-1., 0.5, 2.]), 0, 1)
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    lo, hi = min, max
    if arr is None:
        raise ValueError("clip needs an array.")
    given = [operand("clip", v) for v in (arr, lo, hi) if v is not None]
    if any(dtypes.is_complex(get_aval(v).dtype) for v in given):
        raise ValueError("clip does not take complex numbers, which have no order; clip real and imaginary parts.")
    ready = iter(promote_shapes("clip", *given))
    arr = next(ready)
    lo = None if lo is None else next(ready)
    hi = None if hi is None else next(ready)
    dt, weak = dtypes.promote(*[(get_aval(v).dtype, get_aval(v).weak_type) for v in given])
    return _clip(linear.convert(arr, dt, weak) if not dtypes.is_python_scalar(arr) else on_device(linear.convert(arr, dt, weak)), lo, hi)
