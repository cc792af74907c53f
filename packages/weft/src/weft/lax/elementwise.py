"""Elementwise functions of `weft.lax`: operands of one dtype; scalars and sizes of 1 broadcast, ranks do not."""

from __future__ import annotations

from typing import Any

from ..base import dtypes
from ..base.errors import at_user_line, type_error
from ..primitives import elementwise as ops, bitwise, transcendental
from ..primitives import linear
from ..primitives.positions import narrowed
from ..primitives.rules import dtype_of
from ..typing import Array, ArrayLike, DTypeLike
from .common import elementwise_example as example, on_device, operand as checked

__all__ = [
    "add",
    "atan2",
    "bitcast_convert_type",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "clamp",
    "complex",
    "convert_element_type",
    "div",
    "eq",
    "ge",
    "gt",
    "integer_pow",
    "le",
    "lt",
    "max",
    "min",
    "mul",
    "mulhi",
    "ne",
    "nextafter",
    "pow",
    "rem",
    "select",
    "select_n",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "sub",
]


@example("add(1.5, 2.0)")
def add(x: ArrayLike, y: ArrayLike) -> Array:
    """x + y."""
    return ops.add_p.bind(checked("add", x), checked("add", y))


@example("sub(1.5, 2.0)")
def sub(x: ArrayLike, y: ArrayLike) -> Array:
    """x - y."""
    return ops.sub_p.bind(checked("sub", x), checked("sub", y))


@example("div(7, 2)")
def div(x: ArrayLike, y: ArrayLike) -> Array:
    """x / y; for integers rounded towards zero."""
    return ops.div_p.bind(checked("div", x), checked("div", y))


@example("rem(7, 2)")
def rem(x: ArrayLike, y: ArrayLike) -> Array:
    """The remainder of x / y, with the sign of x."""
    return ops.rem_p.bind(checked("rem", x), checked("rem", y))


@example("max(1.0, 2.0)")
def max(x: ArrayLike, y: ArrayLike) -> Array:
    """The larger of x and y; NaN if either is."""
    return ops.max_p.bind(checked("max", x), checked("max", y))


@example("min(1.0, 2.0)")
def min(x: ArrayLike, y: ArrayLike) -> Array:
    """The smaller of x and y; NaN if either is."""
    return ops.min_p.bind(checked("min", x), checked("min", y))


@example("atan2(1.0, 2.0)")
def atan2(x: ArrayLike, y: ArrayLike) -> Array:
    """The angle of the point (y, x)."""
    return transcendental.atan2_p.bind(checked("atan2", x), checked("atan2", y))


@example("complex(1.0, 2.0)")
def complex(x: ArrayLike, y: ArrayLike) -> Array:
    """The complex number x + iy."""
    return ops.complex_p.bind(checked("complex", x), checked("complex", y))


@example("bitwise_and(5, 3)")
def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """Bitwise (logical for booleans) and."""
    return ops.and_p.bind(checked("bitwise_and", x), checked("bitwise_and", y))


@example("bitwise_or(5, 3)")
def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """Bitwise (logical for booleans) or."""
    return ops.or_p.bind(checked("bitwise_or", x), checked("bitwise_or", y))


@example("bitwise_xor(5, 3)")
def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """Bitwise (logical for booleans) exclusive or."""
    return ops.xor_p.bind(checked("bitwise_xor", x), checked("bitwise_xor", y))


@example("shift_left(1, 3)")
def shift_left(x: ArrayLike, y: ArrayLike) -> Array:
    """x shifted left by y bits."""
    return bitwise.shift_left_p.bind(checked("shift_left", x), checked("shift_left", y))


@example("shift_right_logical(8, 3)")
def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """x shifted right by y bits, zeros coming in."""
    return bitwise.shift_right_logical_p.bind(checked("shift_right_logical", x), checked("shift_right_logical", y))


@example("shift_right_arithmetic(-8, 1)")
def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array:
    """x shifted right by y bits, the sign coming in."""
    return bitwise.shift_right_arithmetic_p.bind(
        checked("shift_right_arithmetic", x), checked("shift_right_arithmetic", y)
    )


@example("eq(1, 2)")
def eq(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x equals y."""
    return ops.eq_p.bind(checked("eq", x), checked("eq", y))


@example("ne(1, 2)")
def ne(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x differs from y."""
    return ops.ne_p.bind(checked("ne", x), checked("ne", y))


@example("lt(1, 2)")
def lt(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x is below y."""
    return ops.lt_p.bind(checked("lt", x), checked("lt", y))


@example("le(1, 2)")
def le(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x is not above y."""
    return ops.le_p.bind(checked("le", x), checked("le", y))


@example("gt(1, 2)")
def gt(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x is above y."""
    return ops.gt_p.bind(checked("gt", x), checked("gt", y))


@example("ge(1, 2)")
def ge(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x is not below y."""
    return ops.ge_p.bind(checked("ge", x), checked("ge", y))


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike | None = None) -> Array:
    """x * y, of arrays that share one dtype and shape (sizes of 1 broadcast); with `out_dtype`, both are converted to
    it first.

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
        raise type_error(
            f"mul requires arguments to have the same dtypes, got {dtypes.name(dtype_of(x))},"
            f" {dtypes.name(dtype_of(y))}."
        )
    dtype = dtypes.canonicalize(out_dtype)
    return ops.mul_p.bind(linear.convert(x, dtype), linear.convert(y, dtype))


def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The upper half of the exact product of two integers.

    Raises:
        TypeError: for a dtype that is no integer, or shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> int(lax.mulhi(2 ** 30, 8))
        2
    """
    return bitwise.mulhi_p.bind(checked("mulhi", x), checked("mulhi", y))


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The number after `x1` in the direction of `x2`; arrays of one float dtype and shape (sizes of 1 broadcast).

    Example:
        >>> from weft import lax
        >>> float(lax.nextafter(0.0, 1.0)) > 0
        True
    """
    return ops.nextafter_p.bind(checked("nextafter", x1), checked("nextafter", x2))


def integer_pow(x: ArrayLike, y: int) -> Array:
    """x to the static integer power y.

    Example:
        >>> from weft import lax
        >>> float(lax.integer_pow(3.0, 2))
        9.0
    """
    x = checked("integer_pow", x)
    return on_device(ops.integer_pow(x, y)) if y != 1 else on_device(x)


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """x to the power y: y an array of the dtype of x or of integers, or a Python int (then exact repeated products).

    Example:
        >>> from weft import lax
        >>> float(lax.pow(2.0, 3.0))
        8.0
    """
    x, y = checked("pow", x), checked("pow", y)
    if type(y) is int:
        return integer_pow(x, y)
    return transcendental.pow_(x, y)


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """x limited to [min, max]; the bounds are scalars or have the shape of x.

    Raises:
        TypeError: if dtypes or shapes differ.

    Example:
        >>> from weft import lax
        >>> float(lax.clamp(0.0, 1.5, 1.0))
        1.0
    """
    return ops.clamp(checked("clamp", min), checked("clamp", x), checked("clamp", max))


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """For each element the case that `which` (booleans, or integers) names. All cases have one shape and dtype.

    Example:
        >>> from weft import lax
        >>> float(lax.select_n(True, 1.0, 2.0))
        2.0
    """
    which = checked("select_n", which)
    which = narrowed(which, dtypes.int32) if dtypes.is_int(dtype_of(which)) else which
    return ops.select_n_p.bind(which, *[checked("select_n", c) for c in cases])


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """`on_true` where `pred`, else `on_false`; arrays of one shape and dtype (`pred` may be a scalar).

    Example:
        >>> from weft import lax
        >>> float(lax.select(True, 1.0, 2.0))
        1.0
    """
    return select_n(pred, on_false, on_true)


def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """The array with another dtype. Floats become integers by truncation; out of range they saturate.

    Example:
        >>> from weft import lax
        >>> lax.convert_element_type(1.7, 'int32')
        Array(1, dtype=int32)
    """
    if new_dtype is None:
        raise ValueError(
            at_user_line("convert_element_type needs a dtype, got None; name one, such as weft.numpy.float32.")
        )
    x = checked("convert_element_type", operand)
    return convert(x, new_dtype)


def convert(x: Any, dtype: Any, weak_type: bool = False) -> Array:
    """`x` as an array of a dtype (None: its own) and weak type."""
    dtype = dtype_of(x) if dtype is None else dtypes.canonicalize(dtype)
    if dtypes.is_complex(dtype_of(x)) and not dtypes.is_complex(dtype) and not dtypes.is_bool(dtype):
        x = ops.real(x)
    return on_device(linear.convert(x, dtype, weak_type))


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """The same bits as another dtype; a wider or narrower one takes or adds a last axis.

    Example:
        >>> from weft import lax
        >>> int(lax.bitcast_convert_type(1.0, 'int32'))
        1065353216
    """
    return bitwise.bitcast(checked("bitcast_convert_type", operand), new_dtype)
