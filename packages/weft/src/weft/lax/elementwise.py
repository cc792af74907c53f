"""Elementwise functions of `weft.lax`. Operands have one dtype and one rank; scalars and axes of size 1 broadcast."""

from __future__ import annotations

from typing import Any

from ..base import dtypes
from ..base.errors import at_user_line, type_error
from ..primitives import elementwise as ops, bitwise, transcendental
from ..primitives import linear
from ..primitives.positions import narrowed
from ..primitives.rules import dtype_of
from ..typing import Array, ArrayLike, DTypeLike
from .common import on_device, operand as checked, static_int

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


def add(x: ArrayLike, y: ArrayLike) -> Array:
    """Adds two arrays elementwise: x + y.

    Args:
        x: array of integers, floats or complex numbers, any shape.
        y: array of the dtype of x and its shape; sizes of 1 and scalars broadcast.

    Returns:
        array of the dtype of x and the broadcast shape.

    Raises:
        TypeError: for another dtype, or shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> lax.add(1.5, 2.0)
        Array(3.5, dtype=float32, weak_type=True)
    """
    return ops.add_p.bind(checked("add", x), checked("add", y))


def sub(x: ArrayLike, y: ArrayLike) -> Array:
    """Subtracts elementwise: x - y.

    Args:
        x: array of integers, floats or complex numbers, any shape.
        y: array of the dtype of x and its shape; sizes of 1 and scalars broadcast.

    Returns:
        array of the dtype of x and the broadcast shape.

    Raises:
        TypeError: for another dtype, or shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> lax.sub(1.5, 2.0)
        Array(-0.5, dtype=float32, weak_type=True)
    """
    return ops.sub_p.bind(checked("sub", x), checked("sub", y))


def div(x: ArrayLike, y: ArrayLike) -> Array:
    """Divides elementwise: x / y; for integers rounded towards zero.

    Args:
        x: array of integers, floats or complex numbers, any shape.
        y: array of the dtype of x and its shape; sizes of 1 and scalars broadcast.

    Returns:
        array of the dtype of x and the broadcast shape.

    Raises:
        TypeError: for another dtype, or shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> lax.div(7, 2)
        Array(3, dtype=int32, weak_type=True)
    """
    return ops.div_p.bind(checked("div", x), checked("div", y))


def rem(x: ArrayLike, y: ArrayLike) -> Array:
    """Computes the remainder of x / y, rounded towards zero: it has the sign of x.

    Args:
        x: array of integers or floats, any shape.
        y: array of the dtype of x and its shape; sizes of 1 and scalars broadcast.

    Returns:
        array of the dtype of x and the broadcast shape.

    Raises:
        TypeError: for another dtype, or shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> lax.rem(7, 2)
        Array(1, dtype=int32, weak_type=True)
    """
    return ops.rem_p.bind(checked("rem", x), checked("rem", y))


def max(x: ArrayLike, y: ArrayLike) -> Array:
    """Takes the larger of x and y elementwise; NaN if either is.

    Args:
        x: array of any dtype but random keys, any shape; complex numbers compare by their real, then their imaginary
            parts.
        y: array of the dtype of x and its shape; sizes of 1 and scalars broadcast.

    Returns:
        array of the dtype of x and the broadcast shape.

    Raises:
        TypeError: for another dtype, or shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> lax.max(1.0, 2.0)
        Array(2., dtype=float32, weak_type=True)
    """
    return ops.max_p.bind(checked("max", x), checked("max", y))


def min(x: ArrayLike, y: ArrayLike) -> Array:
    """Takes the smaller of x and y elementwise; NaN if either is.

    Args:
        x: array of any dtype but random keys, any shape; complex numbers compare by their real, then their imaginary
            parts.
        y: array of the dtype of x and its shape; sizes of 1 and scalars broadcast.

    Returns:
        array of the dtype of x and the broadcast shape.

    Raises:
        TypeError: for another dtype, or shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> lax.min(1.0, 2.0)
        Array(1., dtype=float32, weak_type=True)
    """
    return ops.min_p.bind(checked("min", x), checked("min", y))


def atan2(x: ArrayLike, y: ArrayLike) -> Array:
    """Computes the angle in radians, in [-π, π], of the point with abscissa y and ordinate x.

    Args:
        x: array of floats or complex numbers, any shape: the ordinates.
        y: array of the dtype of x and its shape (sizes of 1 and scalars broadcast): the abscissas.

    Returns:
        array of the dtype of x and the broadcast shape.

    Raises:
        TypeError: for another dtype, or shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> round(float(lax.atan2(1.0, 2.0)), 4)
        0.4636
    """
    return transcendental.atan2_p.bind(checked("atan2", x), checked("atan2", y))


def complex(x: ArrayLike, y: ArrayLike) -> Array:
    """Makes complex numbers x + iy of their parts.

    Args:
        x: array of float32 or float64, any shape: the real parts.
        y: array of the dtype of x and its shape (sizes of 1 and scalars broadcast): the imaginary parts.

    Returns:
        array of the broadcast shape, complex64 of float32 and complex128 of float64.

    Raises:
        TypeError: for another dtype, or shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> lax.complex(1.0, 2.0)
        Array(1.+2.j, dtype=complex64, weak_type=True)
    """
    return ops.complex_p.bind(checked("complex", x), checked("complex", y))


def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """Computes the bitwise and; of booleans the logical one.

    Args:
        x: array of integers or booleans, any shape.
        y: array of the dtype of x and its shape; sizes of 1 and scalars broadcast.

    Returns:
        array of the dtype of x and the broadcast shape.

    Raises:
        TypeError: for another dtype, or shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> lax.bitwise_and(5, 3)
        Array(1, dtype=int32, weak_type=True)
    """
    return ops.and_p.bind(checked("bitwise_and", x), checked("bitwise_and", y))


def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """Computes the bitwise or; of booleans the logical one.

    Args:
        x: array of integers or booleans, any shape.
        y: array of the dtype of x and its shape; sizes of 1 and scalars broadcast.

    Returns:
        array of the dtype of x and the broadcast shape.

    Raises:
        TypeError: for another dtype, or shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> lax.bitwise_or(5, 3)
        Array(7, dtype=int32, weak_type=True)
    """
    return ops.or_p.bind(checked("bitwise_or", x), checked("bitwise_or", y))


def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """Computes the bitwise exclusive or; of booleans the logical one.

    Args:
        x: array of integers or booleans, any shape.
        y: array of the dtype of x and its shape; sizes of 1 and scalars broadcast.

    Returns:
        array of the dtype of x and the broadcast shape.

    Raises:
        TypeError: for another dtype, or shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> lax.bitwise_xor(5, 3)
        Array(6, dtype=int32, weak_type=True)
    """
    return ops.xor_p.bind(checked("bitwise_xor", x), checked("bitwise_xor", y))


def shift_left(x: ArrayLike, y: ArrayLike) -> Array:
    """Shifts x left by y bits, zeros coming in.

    Args:
        x: array of integers, any shape.
        y: array of the dtype of x and its shape; sizes of 1 and scalars broadcast.

    Returns:
        array of the dtype of x and the broadcast shape; zero where y is negative or at least the number of bits.

    Raises:
        TypeError: for another dtype, or shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> lax.shift_left(1, 3)
        Array(8, dtype=int32, weak_type=True)
    """
    return bitwise.shift_left_p.bind(checked("shift_left", x), checked("shift_left", y))


def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """Shifts x right by y bits, zeros coming in.

    Args:
        x: array of integers, any shape.
        y: array of the dtype of x and its shape; sizes of 1 and scalars broadcast.

    Returns:
        array of the dtype of x and the broadcast shape; zero where y is negative or at least the number of bits.

    Raises:
        TypeError: for another dtype, or shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> lax.shift_right_logical(8, 3)
        Array(1, dtype=int32, weak_type=True)
    """
    return bitwise.shift_right_logical_p.bind(checked("shift_right_logical", x), checked("shift_right_logical", y))


def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array:
    """Shifts x right by y bits, copies of the sign bit coming in.

    Args:
        x: array of integers, any shape.
        y: array of the dtype of x and its shape; sizes of 1 and scalars broadcast.

    Returns:
        array of the dtype of x and the broadcast shape; all sign bits where y is negative or at least the number of
        bits.

    Raises:
        TypeError: for another dtype, or shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> lax.shift_right_arithmetic(-8, 1)
        Array(-4, dtype=int32, weak_type=True)
    """
    return bitwise.shift_right_arithmetic_p.bind(
        checked("shift_right_arithmetic", x), checked("shift_right_arithmetic", y)
    )


def eq(x: ArrayLike, y: ArrayLike) -> Array:
    """Compares elementwise: whether x equals y. NaN equals nothing.

    Args:
        x: array of any dtype but random keys, any shape.
        y: array of the dtype of x and its shape; sizes of 1 and scalars broadcast.

    Returns:
        array of dtype bool and the broadcast shape.

    Raises:
        TypeError: for another dtype, or shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> lax.eq(1, 2)
        Array(False, dtype=bool, weak_type=True)
    """
    return ops.eq_p.bind(checked("eq", x), checked("eq", y))


def ne(x: ArrayLike, y: ArrayLike) -> Array:
    """Compares elementwise: whether x differs from y. NaN differs from everything.

    Args:
        x: array of any dtype but random keys, any shape.
        y: array of the dtype of x and its shape; sizes of 1 and scalars broadcast.

    Returns:
        array of dtype bool and the broadcast shape.

    Raises:
        TypeError: for another dtype, or shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> lax.ne(1, 2)
        Array(True, dtype=bool, weak_type=True)
    """
    return ops.ne_p.bind(checked("ne", x), checked("ne", y))


def lt(x: ArrayLike, y: ArrayLike) -> Array:
    """Compares elementwise: whether x is less than y.

    Args:
        x: array of booleans, integers or floats, any shape.
        y: array of the dtype of x and its shape; sizes of 1 and scalars broadcast.

    Returns:
        array of dtype bool and the broadcast shape; False where x or y is NaN.

    Raises:
        TypeError: for another dtype, or shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> lax.lt(1, 2)
        Array(True, dtype=bool, weak_type=True)
    """
    return ops.lt_p.bind(checked("lt", x), checked("lt", y))


def le(x: ArrayLike, y: ArrayLike) -> Array:
    """Compares elementwise: whether x is at most y.

    Args:
        x: array of booleans, integers or floats, any shape.
        y: array of the dtype of x and its shape; sizes of 1 and scalars broadcast.

    Returns:
        array of dtype bool and the broadcast shape; False where x or y is NaN.

    Raises:
        TypeError: for another dtype, or shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> lax.le(1, 2)
        Array(True, dtype=bool, weak_type=True)
    """
    return ops.le_p.bind(checked("le", x), checked("le", y))


def gt(x: ArrayLike, y: ArrayLike) -> Array:
    """Compares elementwise: whether x is greater than y.

    Args:
        x: array of booleans, integers or floats, any shape.
        y: array of the dtype of x and its shape; sizes of 1 and scalars broadcast.

    Returns:
        array of dtype bool and the broadcast shape; False where x or y is NaN.

    Raises:
        TypeError: for another dtype, or shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> lax.gt(1, 2)
        Array(False, dtype=bool, weak_type=True)
    """
    return ops.gt_p.bind(checked("gt", x), checked("gt", y))


def ge(x: ArrayLike, y: ArrayLike) -> Array:
    """Compares elementwise: whether x is at least y.

    Args:
        x: array of booleans, integers or floats, any shape.
        y: array of the dtype of x and its shape; sizes of 1 and scalars broadcast.

    Returns:
        array of dtype bool and the broadcast shape; False where x or y is NaN.

    Raises:
        TypeError: for another dtype, or shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> lax.ge(1, 2)
        Array(False, dtype=bool, weak_type=True)
    """
    return ops.ge_p.bind(checked("ge", x), checked("ge", y))


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike | None = None) -> Array:
    """Multiplies elementwise: x * y.

    Args:
        x: array of integers, floats or complex numbers, any shape.
        y: array of the dtype of x and its shape; sizes of 1 and scalars broadcast.
        out_dtype: dtype to which both are converted first; None for that of x.

    Returns:
        array of `out_dtype` (by default the dtype of x) and the broadcast shape.

    Raises:
        TypeError: for another dtype, or shapes that do not fit.

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
    """Computes the upper half of the exact product of two integers, which has twice their bits.

    Args:
        x: array of integers, any shape.
        y: array of the dtype of x and its shape; sizes of 1 and scalars broadcast.

    Returns:
        array of the dtype of x and the broadcast shape.

    Raises:
        TypeError: for another dtype, or shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> int(lax.mulhi(2 ** 30, 8))
        2
    """
    return bitwise.mulhi_p.bind(checked("mulhi", x), checked("mulhi", y))


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Finds the next number after x1 in the direction of x2.

    Args:
        x1: array of floats, any shape.
        x2: array of the dtype of x1 and its shape; sizes of 1 and scalars broadcast.

    Returns:
        array of the dtype of x1 and the broadcast shape.

    Raises:
        TypeError: for another dtype, or shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> float(lax.nextafter(0.0, 1.0)) > 0
        True
    """
    return ops.nextafter_p.bind(checked("nextafter", x1), checked("nextafter", x2))


def integer_pow(x: ArrayLike, y: int) -> Array:
    """Raises x to a static integer power.

    Args:
        x: array of integers, floats or complex numbers, any shape.
        y: int, static; negative only for floats and complex numbers.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> float(lax.integer_pow(3.0, 2))
        9.0
    """
    x, y = checked("integer_pow", x), static_int("y", y)
    return on_device(ops.integer_pow(x, y)) if y != 1 else on_device(x)


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """Raises x to the power y. A Python int as y gives exact repeated products, as `integer_pow`.

    Args:
        x: array of floats or complex numbers, any shape.
        y: array of the dtype of x or of integers, of the shape of x (sizes of 1 and scalars broadcast); or int.

    Returns:
        array of the dtype of x and the broadcast shape.

    Raises:
        TypeError: for another dtype, or shapes that do not fit.

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
    """Limits x to the range from `min` to `max`.

    Args:
        min: array of the dtype of x, a scalar or of the shape of x.
        x: array of any dtype but random keys, any shape.
        max: array of the dtype of x, a scalar or of the shape of x.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: if dtypes or shapes differ.

    Example:
        >>> from weft import lax
        >>> float(lax.clamp(0.0, 1.5, 1.0))
        1.0
    """
    return ops.clamp(checked("clamp", min), checked("clamp", x), checked("clamp", max))


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Picks for each element the case that `which` numbers.

    Args:
        which: array of booleans (for two cases) or integers, a scalar or of the shape of the cases.
        cases: one or more arrays of one dtype, any, and one shape, any.

    Returns:
        array of the dtype and shape of the cases.

    Raises:
        TypeError: for another dtype, or dtypes or shapes of the cases that differ.

    Example:
        >>> from weft import lax
        >>> float(lax.select_n(True, 1.0, 2.0))
        2.0
    """
    which = checked("select_n", which)
    which = narrowed(which, dtypes.int32) if dtypes.is_int(dtype_of(which)) else which
    return ops.select_n_p.bind(which, *[checked("select_n", c) for c in cases])


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """Picks elements of `on_true` where `pred` holds, else those of `on_false`.

    Args:
        pred: array of booleans, a scalar or of the shape of the others.
        on_true: array of any dtype, any shape.
        on_false: array of the dtype and shape of `on_true`.

    Returns:
        array of the dtype and shape of `on_true`.

    Raises:
        TypeError: if `pred` is not boolean, or dtypes or shapes differ.

    Example:
        >>> from weft import lax
        >>> float(lax.select(True, 1.0, 2.0))
        1.0
    """
    return select_n(pred, on_false, on_true)


def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Converts an array to another dtype. Floats become integers by truncation; out of range they saturate. Complex
    numbers lose their imaginary parts.

    Args:
        operand: array of any dtype but random keys, any shape.
        new_dtype: the dtype of the result; without 64-bit mode (`jax_enable_x64`), 64-bit dtypes stand for 32-bit ones.

    Returns:
        array of `new_dtype` and the shape of operand.

    Raises:
        ValueError: if `new_dtype` is None.

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
    """Reads the bits of an array as another dtype.

    Args:
        operand: array of integers or floats, shape (…).
        new_dtype: dtype of the same, fewer or more bits.

    Returns:
        array of `new_dtype`: shape (…) for as many bits; (…, n) for an n-th of the bits, the lowest first; for n times
        the bits the last axis of operand, which must have size n, is dropped.

    Raises:
        TypeError: for booleans, complex numbers and random keys beside another dtype.
        ValueError: for a last axis of another size.

    Example:
        >>> from weft import lax
        >>> int(lax.bitcast_convert_type(1.0, 'int32'))
        1065353216
    """
    return bitwise.bitcast(checked("bitcast_convert_type", operand), new_dtype)
