"""Elementwise functions of `weft.lax`: operands of one dtype; scalars and sizes of 1 broadcast, ranks do not."""
from __future__ import annotations

import enum

from .. import dtypes
from ..core.primitive import param_type
from ..core.trace import get_aval
from ..errors import type_error
from ..ops import elementwise as ops
from ..ops import linear, special
from ..ops.elementwise import AccuracyMode, Tolerance
from ..ops.rules import dtype_of, scalar_like
from ..tree import tree_map
from .common import on_device, operand as checked


@param_type
class RoundingMethod(enum.IntEnum):
    """How `round` treats halves."""
    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def _unary(primitive, text: str, call: str, accuracy: bool = False):
    name = {"not": "bitwise_not"}.get(primitive.name, primitive.name)
    if accuracy:
        def function(x, *, accuracy: AccuracyMode | Tolerance | None = None):
            if accuracy is None:
                return primitive.bind(checked(name, x))
            if not isinstance(accuracy, (AccuracyMode, Tolerance)):
                raise TypeError(f"{name}: accuracy must be a lax.AccuracyMode, a lax.Tolerance or None, got {accuracy!r}.")
            return primitive.bind(checked(name, x), accuracy=accuracy)
    else:
        def function(x):
            return primitive.bind(checked(name, x))
    return _document(function, name, text, call)


def _binary(primitive, text: str, call: str):
    name = primitive.name
    name = {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"}.get(name, name)

    def function(x, y):
        return primitive.bind(checked(name, x), checked(name, y))
    return _document(function, name, text, call)


def _document(function, name, text, call):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{text}\n\n    Operands that are arrays share one dtype and shape (sizes of 1 broadcast); the result has that shape.\n\n    " \
        f"Raises:\n        TypeError: for a dtype that the function does not take, or shapes that do not fit.\n\n    " \
        f"Example:\n        >>> from weft import lax\n        >>> y = lax.{call}\n    "
    return function


neg = _unary(ops.neg_p, "-x.", "neg(1.5)")
sign = _unary(ops.sign_p, "-1, 0 or 1 (x/|x| for complex numbers).", "sign(-2.0)")
floor = _unary(ops.floor_p, "The largest integer that is not above x, as a float.", "floor(1.5)")
ceil = _unary(ops.ceil_p, "The smallest integer that is not below x, as a float.", "ceil(1.5)")
is_finite = _unary(ops.is_finite_p, "Whether x is neither infinite nor NaN.", "is_finite(1.5)")
exp = _unary(ops.exp_p, "e to the power x.", "exp(1.5)", True)
exp2 = _unary(ops.exp2_p, "2 to the power x.", "exp2(1.5)", True)
log = _unary(ops.log_p, "The natural logarithm.", "log(1.5)", True)
expm1 = _unary(ops.expm1_p, "exp(x) - 1, exact near 0.", "expm1(1.5)", True)
log1p = _unary(ops.log1p_p, "log(1 + x), exact near 0.", "log1p(1.5)", True)
tanh = _unary(ops.tanh_p, "The hyperbolic tangent.", "tanh(1.5)", True)
logistic = _unary(ops.logistic_p, "1 / (1 + exp(-x)).", "logistic(1.5)", True)
sin = _unary(ops.sin_p, "The sine of x in radians.", "sin(1.5)", True)
cos = _unary(ops.cos_p, "The cosine of x in radians.", "cos(1.5)", True)
tan = _unary(ops.tan_p, "The tangent of x in radians.", "tan(1.5)", True)
asin = _unary(ops.asin_p, "The inverse sine.", "asin(0.5)")
acos = _unary(ops.acos_p, "The inverse cosine.", "acos(0.5)")
atan = _unary(ops.atan_p, "The inverse tangent.", "atan(0.5)")
sinh = _unary(ops.sinh_p, "The hyperbolic sine.", "sinh(0.5)")
cosh = _unary(ops.cosh_p, "The hyperbolic cosine.", "cosh(0.5)")
asinh = _unary(ops.asinh_p, "The inverse hyperbolic sine.", "asinh(0.5)")
acosh = _unary(ops.acosh_p, "The inverse hyperbolic cosine.", "acosh(1.5)")
atanh = _unary(ops.atanh_p, "The inverse hyperbolic tangent.", "atanh(0.5)")
sqrt = _unary(ops.sqrt_p, "The square root.", "sqrt(2.0)", True)
rsqrt = _unary(ops.rsqrt_p, "1 / sqrt(x).", "rsqrt(2.0)", True)
cbrt = _unary(ops.cbrt_p, "The cube root.", "cbrt(2.0)", True)
erf = _unary(ops.erf_p, "The error function.", "erf(0.5)")
erfc = _unary(ops.erfc_p, "1 - erf(x), exact in the tail.", "erfc(0.5)")
erf_inv = _unary(ops.erf_inv_p, "The inverse of erf.", "erf_inv(0.5)")
lgamma = _unary(special.lgamma_p, "log |gamma(x)|.", "lgamma(2.5)")
digamma = _unary(special.digamma_p, "The derivative of lgamma.", "digamma(2.5)")
square = _unary(ops.square_p, "x * x.", "square(2.5)")
bitwise_not = _unary(ops.not_p, "Each bit inverted; logical not for booleans.", "bitwise_not(5)")
population_count = _unary(ops.population_count_p, "The number of bits that are set.", "population_count(5)")
clz = _unary(ops.clz_p, "The number of leading zero bits.", "clz(5)")
real = _unary(ops.real_p, "The real part of complex x.", "real(1.5 + 1j)")
imag = _unary(ops.imag_p, "The imaginary part of complex x.", "imag(1.5 + 1j)")

add = _binary(ops.add_p, "x + y.", "add(1.5, 2.0)")
sub = _binary(ops.sub_p, "x - y.", "sub(1.5, 2.0)")
div = _binary(ops.div_p, "x / y; for integers rounded towards zero.", "div(7, 2)")
rem = _binary(ops.rem_p, "The remainder of x / y, with the sign of x.", "rem(7, 2)")
max = _binary(ops.max_p, "The larger of x and y; NaN if either is.", "max(1.0, 2.0)")
min = _binary(ops.min_p, "The smaller of x and y; NaN if either is.", "min(1.0, 2.0)")
atan2 = _binary(ops.atan2_p, "The angle of the point (y, x).", "atan2(1.0, 2.0)")
complex = _binary(ops.complex_p, "The complex number x + iy.", "complex(1.0, 2.0)")
bitwise_and = _binary(ops.and_p, "Bitwise (logical for booleans) and.", "bitwise_and(5, 3)")
bitwise_or = _binary(ops.or_p, "Bitwise (logical for booleans) or.", "bitwise_or(5, 3)")
bitwise_xor = _binary(ops.xor_p, "Bitwise (logical for booleans) exclusive or.", "bitwise_xor(5, 3)")
shift_left = _binary(ops.shift_left_p, "x shifted left by y bits.", "shift_left(1, 3)")
shift_right_logical = _binary(ops.shift_right_logical_p, "x shifted right by y bits, zeros coming in.", "shift_right_logical(8, 3)")
shift_right_arithmetic = _binary(ops.shift_right_arithmetic_p, "x shifted right by y bits, the sign coming in.", "shift_right_arithmetic(-8, 1)")
eq = _binary(ops.eq_p, "Whether x equals y.", "eq(1, 2)")
ne = _binary(ops.ne_p, "Whether x differs from y.", "ne(1, 2)")
lt = _binary(ops.lt_p, "Whether x is below y.", "lt(1, 2)")
le = _binary(ops.le_p, "Whether x is not above y.", "le(1, 2)")
gt = _binary(ops.gt_p, "Whether x is above y.", "gt(1, 2)")
ge = _binary(ops.ge_p, "Whether x is not below y.", "ge(1, 2)")


def abs(x):
    """The absolute value; real for complex x.

    Raises:
        TypeError: for booleans and unsigned integers, which have none.

    Example:
        >>> from weft import lax
        >>> float(lax.abs(-1.5))
        1.5
    """
    x = checked("abs", x)
    if dtypes.is_unsigned(dtype_of(x)):
        raise type_error(f"abs does not accept dtype {dtypes.name(dtype_of(x))}: it takes signed ints, floats and complex numbers.")
    return ops.abs_p.bind(x)


def mul(x, y, *, out_dtype=None):
    """x * y, of arrays that share one dtype and shape (sizes of 1 broadcast); with `out_dtype`, both are converted to it first.

    Raises:
        TypeError: for a dtype that has no product, or shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> lax.mul(lax.full((), 100, 'int8'), lax.full((), 100, 'int8'), out_dtype='int32')
        Array(10000, dtype=int32)
    """
    x, y = checked("mul", x), checked("mul", y)
    if out_dtype is None:
        return ops.mul_p.bind(x, y)
    if dtype_of(x) != dtype_of(y):
        raise type_error(f"mul requires arguments to have the same dtypes, got {dtypes.name(dtype_of(x))}, {dtypes.name(dtype_of(y))}.")
    dtype = dtypes.canonicalize(out_dtype)
    return ops.mul_p.bind(linear.convert(x, dtype), linear.convert(y, dtype))


def mulhi(x, y, /):
    """The upper half of the exact product of two integers.

    Raises:
        TypeError: for a dtype that is no integer, or shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> int(lax.mulhi(2 ** 30, 8))
        2
    """
    return ops.mulhi_p.bind(checked("mulhi", x), checked("mulhi", y))


def nextafter(x1, x2):
    """The number after `x1` in the direction of `x2`; arrays of one float dtype and shape (sizes of 1 broadcast).

    Example:
        >>> from weft import lax
        >>> float(lax.nextafter(0.0, 1.0)) > 0
        True
    """
    return ops.nextafter_p.bind(checked("nextafter", x1), checked("nextafter", x2))


def round(x, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO):
    """x rounded to the nearest integer; halves go away from zero, or to even.

    Example:
        >>> from weft import lax
        >>> float(lax.round(2.5, lax.RoundingMethod.TO_NEAREST_EVEN))
        2.0
    """
    return ops.round_p.bind(checked("round", x), rounding_method=RoundingMethod(rounding_method))


def conj(x):
    """The complex conjugate; floats become complex.

    Example:
        >>> from weft import lax
        >>> lax.conj(1 + 2j).item()
        (1-2j)
    """
    return ops.conj(checked("conj", x))


def reciprocal(x):
    """1 / x.

    Example:
        >>> from weft import lax
        >>> float(lax.reciprocal(4.0))
        0.25
    """
    x = checked("reciprocal", x)
    return ops.div(scalar_like(x, 1), x)


def integer_pow(x, y: int):
    """x to the static integer power y.

    Example:
        >>> from weft import lax
        >>> float(lax.integer_pow(3.0, 2))
        9.0
    """
    x = checked("integer_pow", x)
    if y < 0 and not dtypes.is_inexact(dtype_of(x)):
        raise type_error(f"integer_pow: integers cannot be raised to negative powers, got y={y}. Convert x to a float first.")
    return on_device(ops.integer_pow(x, y)) if y != 1 else on_device(x)


def pow(x, y):
    """x to the power y: y an array of the dtype of x or of integers, or a Python int (then exact repeated products).

    Example:
        >>> from weft import lax
        >>> float(lax.pow(2.0, 3.0))
        8.0
    """
    x, y = checked("pow", x), checked("pow", y)
    if type(y) is int:
        return integer_pow(x, y)
    return ops.pow_(x, y)


def clamp(min, x, max):
    """x limited to [min, max]; the bounds are scalars or have the shape of x.

    Raises:
        TypeError: if dtypes or shapes differ.

    Example:
        >>> from weft import lax
        >>> float(lax.clamp(0.0, 1.5, 1.0))
        1.0
    """
    return ops.clamp(checked("clamp", min), checked("clamp", x), checked("clamp", max))


def select_n(which, *cases):
    """For each element the case that `which` (booleans, or int32 indices) names. All cases have one shape and dtype.

    Example:
        >>> from weft import lax
        >>> float(lax.select_n(True, 1.0, 2.0))
        2.0
    """
    return ops.select_n_p.bind(checked("select_n", which), *[checked("select_n", c) for c in cases])


def select(pred, on_true, on_false):
    """`on_true` where `pred`, else `on_false`; arrays of one shape and dtype (`pred` may be a scalar).

    Example:
        >>> from weft import lax
        >>> float(lax.select(True, 1.0, 2.0))
        1.0
    """
    return select_n(pred, on_false, on_true)


def convert_element_type(operand, new_dtype=None):
    """The array with another dtype. Floats become integers by truncation; out of range they saturate.

    Example:
        >>> from weft import lax
        >>> lax.convert_element_type(1.7, 'int32')
        Array(1, dtype=int32)
    """
    x = checked("convert_element_type", operand)
    return convert(x, new_dtype)


def convert(x, dtype, weak_type: bool = False):
    """`x` as an array of a dtype (None: its own) and weak type."""
    dtype = dtype_of(x) if dtype is None else dtypes.canonicalize(dtype)
    if dtypes.is_complex(dtype_of(x)) and not dtypes.is_complex(dtype) and not dtypes.is_bool(dtype):
        x = ops.real(x)
    return on_device(linear.convert(x, dtype, weak_type))


def bitcast_convert_type(operand, new_dtype):
    """The same bits as another dtype; a wider or narrower one takes or adds a last axis.

    Example:
        >>> from weft import lax
        >>> int(lax.bitcast_convert_type(1.0, 'int32'))
        1065353216
    """
    x, dt = checked("bitcast_convert_type", operand), dtypes.canonicalize(new_dtype)
    if dtypes.is_bool(dt) != dtypes.is_bool(dtype_of(x)):
        raise type_error(f"bitcast_convert_type does not convert between bool and {dtypes.name(dt)}; use convert_element_type.")
    return ops.bitcast(x, dt)


def reduce_precision(operand, exponent_bits: int, mantissa_bits: int):
    """x rounded to a float format of fewer bits, kept in its own dtype.

    Example:
        >>> from weft import lax
        >>> y = lax.reduce_precision(1.1, 8, 7)
    """
    return ops.reduce_precision_p.bind(checked("reduce_precision", operand), exponent_bits=int(exponent_bits), mantissa_bits=int(mantissa_bits))


def stop_gradient(x):
    """The same value(s) without derivative; `x` may be any pytree.

    Example:
        >>> from weft import lax
        >>> float(lax.stop_gradient(1.5))
        1.5
    """
    def stop(leaf):
        leaf = checked("stop_gradient", leaf)
        return linear.stop_gradient_p.bind(leaf) if dtypes.is_inexact(get_aval(leaf).dtype) else leaf
    return tree_map(stop, x)
