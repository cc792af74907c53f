"""Elementwise functions of `weft.lax` of one operand, but for the transcendental ones."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from ..base import dtypes
from ..core.wire import param_type
from ..core.trace import get_aval
from ..base.errors import type_error
from ..primitives import bitwise, elementwise as ops, linear
from ..primitives.rules import dtype_of, scalar_like
from ..base.tree import tree_map
from ..typing import Array, ArrayLike, Tree
from .common import operand as checked

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = [
    "RoundingMethod",
    "abs",
    "bitwise_not",
    "ceil",
    "clz",
    "conj",
    "floor",
    "imag",
    "is_finite",
    "neg",
    "population_count",
    "real",
    "reciprocal",
    "reduce_precision",
    "round",
    "sign",
    "square",
    "stop_gradient",
]


@param_type
class RoundingMethod(enum.IntEnum):
    """How `round` treats halves."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def neg(x: ArrayLike) -> Array:
    """Negates x; unsigned integers wrap around.

    Args:
        x: array of integers, floats or complex numbers, any shape.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> lax.neg(1.5)
        Array(-1.5, dtype=float32, weak_type=True)
    """
    return ops.neg_p.bind(checked("neg", x))


def sign(x: ArrayLike) -> Array:
    """Computes the sign of x: -1, 0 or 1; x/|x| for complex numbers. NaN gives NaN.

    Args:
        x: array of integers, floats or complex numbers, any shape.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> lax.sign(-2.0)
        Array(-1., dtype=float32, weak_type=True)
    """
    return ops.sign_p.bind(checked("sign", x))


def floor(x: ArrayLike) -> Array:
    """Rounds down, to the largest integer that is not above x.

    Args:
        x: array of floats, any shape.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> lax.floor(1.5)
        Array(1., dtype=float32, weak_type=True)
    """
    return ops.floor_p.bind(checked("floor", x))


def ceil(x: ArrayLike) -> Array:
    """Rounds up, to the smallest integer that is not below x.

    Args:
        x: array of floats, any shape.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> lax.ceil(1.5)
        Array(2., dtype=float32, weak_type=True)
    """
    return ops.ceil_p.bind(checked("ceil", x))


def is_finite(x: ArrayLike) -> Array:
    """Tells whether x is neither infinite nor NaN.

    Args:
        x: array of floats, any shape.

    Returns:
        array of dtype bool and the shape of x.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> lax.is_finite(1.5)
        Array(True, dtype=bool, weak_type=True)
    """
    return ops.is_finite_p.bind(checked("is_finite", x))


def square(x: ArrayLike) -> Array:
    """Computes x * x.

    Args:
        x: array of integers, floats or complex numbers, any shape.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> lax.square(2.5)
        Array(6.25, dtype=float32, weak_type=True)
    """
    return ops.square_p.bind(checked("square", x))


def bitwise_not(x: ArrayLike) -> Array:
    """Inverts each bit; of booleans the logical not.

    Args:
        x: array of integers or booleans, any shape.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> lax.bitwise_not(5)
        Array(-6, dtype=int32, weak_type=True)
    """
    return ops.not_p.bind(checked("bitwise_not", x))


def population_count(x: ArrayLike) -> Array:
    """Counts the bits that are set.

    Args:
        x: array of integers, any shape.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> lax.population_count(5)
        Array(2, dtype=int32, weak_type=True)
    """
    return bitwise.population_count_p.bind(checked("population_count", x))


def clz(x: ArrayLike) -> Array:
    """Counts the zero bits above the highest bit that is set.

    Args:
        x: array of integers, any shape.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> lax.clz(5)
        Array(29, dtype=int32, weak_type=True)
    """
    return bitwise.clz_p.bind(checked("clz", x))


def real(x: ArrayLike) -> Array:
    """Takes the real part.

    Args:
        x: array of complex numbers, any shape.

    Returns:
        array of the shape of x, float32 of complex64 and float64 of complex128.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> lax.real(1.5 + 1j)
        Array(1.5, dtype=float32, weak_type=True)
    """
    return ops.real_p.bind(checked("real", x))


def imag(x: ArrayLike) -> Array:
    """Takes the imaginary part.

    Args:
        x: array of complex numbers, any shape.

    Returns:
        array of the shape of x, float32 of complex64 and float64 of complex128.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> lax.imag(1.5 + 1j)
        Array(1., dtype=float32, weak_type=True)
    """
    return ops.imag_p.bind(checked("imag", x))


def abs(x: ArrayLike) -> Array:
    """Computes the absolute value.

    Args:
        x: array of signed integers, floats or complex numbers, any shape.

    Returns:
        array of the shape and dtype of x; float32 of complex64, float64 of complex128.

    Raises:
        TypeError: for booleans and unsigned integers, which have none.

    Example:
        >>> from weft import lax
        >>> float(lax.abs(-1.5))
        1.5
    """
    x = checked("abs", x)
    if dtypes.is_unsigned(dtype_of(x)):
        raise type_error(
            f"abs does not accept dtype {dtypes.name(dtype_of(x))}: it takes signed ints, floats and complex numbers."
        )
    return ops.abs_p.bind(x)


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """Rounds to the nearest integer; halves go away from zero, or to even.

    Args:
        x: array of floats, any shape.
        rounding_method: `lax.RoundingMethod`: AWAY_FROM_ZERO or TO_NEAREST_EVEN, where halves go.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> float(lax.round(2.5, lax.RoundingMethod.TO_NEAREST_EVEN))
        2.0
    """
    return ops.round_p.bind(checked("round", x), rounding_method=RoundingMethod(rounding_method))


def conj(x: ArrayLike) -> Array:
    """Computes the complex conjugate.

    Args:
        x: array of float32, float64 or complex numbers, any shape.

    Returns:
        array of complex numbers, the shape of x: complex64 of float32, complex128 of float64.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> lax.conj(1 + 2j).item()
        (1-2j)
    """
    return ops.conj(checked("conj", x))


def reciprocal(x: ArrayLike) -> Array:
    """Computes 1 / x.

    Args:
        x: array of floats or complex numbers, any shape.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> float(lax.reciprocal(4.0))
        0.25
    """
    x = checked("reciprocal", x)
    if not dtypes.is_inexact(dtype_of(x)):
        raise type_error(
            f"reciprocal takes floats and complex numbers, got {get_aval(x)}. Convert it with astype, or divide with"
            " lax.div, which rounds towards zero."
        )
    return ops.div(scalar_like(x, 1), x)


def reduce_precision(operand: float | ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Rounds to a float format of fewer bits, and keeps the dtype.

    Args:
        operand: array of floats, any shape.
        exponent_bits: int of at least 1: the exponent's bits in that format.
        mantissa_bits: int of at least 0: the mantissa's bits without the leading one.

    Returns:
        array of the dtype and shape of operand.

    Raises:
        TypeError: for another dtype.
        ValueError: for fewer bits.

    Example:
        >>> from weft import lax
        >>> y = lax.reduce_precision(1.1, 8, 7)
    """
    return bitwise.reduce_precision_p.bind(
        checked("reduce_precision", operand), exponent_bits=int(exponent_bits), mantissa_bits=int(mantissa_bits)
    )


def stop_gradient(x: Tree) -> Tree:
    """Passes values on and stops their derivatives.

    Args:
        x: pytree of arrays of any dtype, any shape.

    Returns:
        pytree like x; derivatives of its floats and complex numbers are zero.

    Example:
        >>> from weft import lax
        >>> float(lax.stop_gradient(1.5))
        1.5
    """

    def stop(leaf: Value) -> Value:
        leaf = checked("stop_gradient", leaf)
        return linear.stop_gradient_p.bind(leaf) if dtypes.is_inexact(get_aval(leaf).dtype) else leaf

    return tree_map(stop, x)
