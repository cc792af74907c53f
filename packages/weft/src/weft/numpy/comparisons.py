"""Comparisons, tests and logic of `weft.numpy`: functions whose results are booleans."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable

from ..base import dtypes
from ..core.trace import get_aval
from ..base.errors import type_error
from ..primitives import elementwise as el, bitwise
from ..primitives import linear
from ..primitives.random_bits import random_unwrap_p
from ..primitives.reduce import reduce_and
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..typing import Array, ArrayLike
from .util import elementwise_example, no_complex, of_kind, operand, promote_shapes, promoted, strong, to_bool

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = [
    "equal",
    "greater",
    "greater_equal",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "logical_not",
    "not_equal",
    "signbit",
]
_example = elementwise_example("jnp.array([5, 3]), 2", "numbers or booleans", "booleans")
_logical_example = elementwise_example("jnp.array([5, 0]), 2", "numbers or booleans", "booleans")
_unary_example = elementwise_example("jnp.array([5, 3])", "numbers or booleans", "booleans")


def _truths(name: str, x: ArrayLike, y: ArrayLike) -> list[Any]:
    return promote_shapes(name, to_bool(name, x), to_bool(name, y))


def _compared(op: Callable[..., Array], strict: Callable[..., Array], x: Any, y: Any) -> Array:
    """A comparison. Complex numbers are compared lexicographically, real parts first."""
    if not dtypes.is_complex(dtype_of(x)):
        return op(x, y)
    same = el.eq(el.real(x), el.real(y))
    return el.or_(strict(el.real(x), el.real(y)), el.and_(same, op(el.imag(x), el.imag(y))))


def _words_equal(x: Value, y: Value) -> Value:
    """Whether random keys have the same words."""
    a, b = random_unwrap_p.bind(x), random_unwrap_p.bind(y)
    rank = max(len(shape_of(a)), len(shape_of(b)))
    same = el.eq(*[linear.expand_dims(v, tuple(range(rank - len(shape_of(v))))) for v in (a, b)])
    return reduce_and(same, (len(shape_of(same)) - 1,))


def _if_complex(x: Value, test: Callable[..., Any], join: Callable[..., Any], of_integers: bool) -> Value:
    dt = dtype_of(x)
    if dtypes.is_complex(dt):
        return join(test(el.real(x)), test(el.imag(x)))
    return test(x) if dtypes.is_float(dt) else linear.full(shape_of(x), of_integers, dtypes.bool_)


@_logical_example
def logical_and(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether both are true (not zero)."""
    return el.and_(*_truths("logical_and", x, y))


@_logical_example
def logical_or(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether one is true (not zero)."""
    return el.or_(*_truths("logical_or", x, y))


@_logical_example
def logical_xor(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether exactly one is true (not zero)."""
    return el.xor(*_truths("logical_xor", x, y))


@_example
def equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether x equals y."""
    x, y = promoted("equal", x, y)
    return _words_equal(x, y) if dtypes.is_key(dtype_of(x)) else el.eq(x, y)


@_example
def not_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether x differs from y."""
    x, y = promoted("not_equal", x, y)
    return el.not_(_words_equal(x, y)) if dtypes.is_key(dtype_of(x)) else el.ne(x, y)


@_example
def less(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether x is below y."""
    return _compared(el.lt, el.lt, *promoted("less", x, y))


@_example
def less_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether x is not above y."""
    return _compared(el.le, el.lt, *promoted("less_equal", x, y))


@_example
def greater(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether x is above y."""
    return _compared(el.gt, el.gt, *promoted("greater", x, y))


@_example
def greater_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether x is not below y."""
    return _compared(el.ge, el.gt, *promoted("greater_equal", x, y))


def logical_not(x: ArrayLike, /) -> Array:
    """Whether x is false (zero).

    Args:
        x: array of any dtype, any shape.

    Returns:
        array of booleans, the shape of x.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.logical_not(jnp.array([0, 2]))
        Array([ True, False], dtype=bool)
    """
    return el.not_(to_bool("logical_not", x))


@_unary_example
def isfinite(x: ArrayLike, /) -> Array:
    """Whether x is neither infinite nor NaN."""
    return _if_complex(of_kind("isfinite", x), el.is_finite, el.and_, True)


@_unary_example
def isinf(x: ArrayLike, /) -> Array:
    """Whether x is infinite."""
    return _if_complex(
        of_kind("isinf", x), lambda v: strong(el.eq(el.abs_(v), scalar_like(v, math.inf))), el.or_, False
    )


@_unary_example
def isnan(x: ArrayLike, /) -> Array:
    """Whether x is not a number."""
    return _if_complex(of_kind("isnan", x), lambda v: el.ne(v, v), el.or_, False)


def signbit(x: ArrayLike, /) -> Array:
    """Whether the sign bit is set (-0.0 included).

    Args:
        x: array of real numbers, any shape.

    Returns:
        array of booleans, the shape of x.

    Raises:
        ValueError: `x` is complex.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.signbit(jnp.array([-0.0, 1.0]))
        Array([ True, False], dtype=bool)
    """
    x = operand("signbit", x)
    dt = get_aval(x).dtype
    no_complex("signbit", x)
    if dtypes.is_float(dt):
        bits = bitwise.bitcast(x, f"int{dtypes.bits(dt)}")
        return strong(el.lt(bits, scalar_like(bits, 0)))
    if dtypes.is_signed(dt):
        return strong(el.lt(x, scalar_like(x, 0)))
    if dtypes.is_complex(dt):
        raise type_error("signbit does not take complex numbers.")
    return linear.full(shape_of(x), False, dtypes.bool_)
