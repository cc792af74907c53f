"""Stacking of arrays: vstack, hstack, dstack, column_stack, block, and conversions to the ranks that they need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from ..primitives import linear
from ..primitives.rules import shape_of
from ..typing import Array, ArrayLike, DTypeLike
from .joining import Arrays, concatenate, sequence
from .util import on_device, operand

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = ["atleast_1d", "atleast_2d", "atleast_3d", "block", "column_stack", "dstack", "hstack", "vstack"]


def _at_least(x: ArrayLike, rank: int) -> Array:
    out = on_device(x)
    missing = rank - len(shape_of(out))
    return linear.expand_dims(out, tuple(range(missing))) if missing > 0 else out


@overload
def atleast_1d(x: ArrayLike, /) -> Array: ...
@overload
def atleast_1d(*arys: ArrayLike) -> Array | list[Array]: ...
def atleast_1d(*arys: ArrayLike) -> Array | list[Array]:
    """Arrays of rank 1 or more.

    Args:
        *arys: arrays of any dtype, any shape.

    Returns:
        array of the dtype of its argument, or a list of them for several.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.atleast_1d(1.0).shape
        (1,)
    """
    out = [_at_least(operand("atleast_1d", a), 1) for a in arys]
    return out[0] if len(out) == 1 else out


@overload
def atleast_2d(x: ArrayLike, /) -> Array: ...
@overload
def atleast_2d(*arys: ArrayLike) -> Array | list[Array]: ...
def atleast_2d(*arys: ArrayLike) -> Array | list[Array]:
    """Arrays of rank 2 or more; vectors become rows.

    Args:
        *arys: arrays of any dtype, any shape.

    Returns:
        array of the dtype of its argument, or a list of them for several.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.atleast_2d(jnp.ones(3)).shape
        (1, 3)
    """
    out = [_at_least(operand("atleast_2d", a), 2) for a in arys]
    return out[0] if len(out) == 1 else out


@overload
def atleast_3d(x: ArrayLike, /) -> Array: ...
@overload
def atleast_3d(*arys: ArrayLike) -> Array | list[Array]: ...
def atleast_3d(*arys: ArrayLike) -> Array | list[Array]:
    """Arrays of rank 3 or more; (n,) becomes (1, n, 1) and (m, n) becomes (m, n, 1).

    Args:
        *arys: arrays of any dtype, any shape.

    Returns:
        array of the dtype of its argument, or a list of them for several.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.atleast_3d(jnp.ones((2, 3))).shape
        (2, 3, 1)
    """
    out = [_deep(operand("atleast_3d", a)) for a in arys]
    return out[0] if len(out) == 1 else out


def _deep(x: ArrayLike) -> Array:
    """An array of rank 3 or more."""
    x = _at_least(x, 1)
    x = linear.expand_dims(x, (0,)) if len(shape_of(x)) == 1 else x
    return linear.expand_dims(x, (2,)) if len(shape_of(x)) == 2 else x


def vstack(tup: Arrays, dtype: DTypeLike | None = None) -> Array:
    """The arrays one below another.

    Args:
        tup: sequence of arrays of any dtype, or an array, whose first axis is taken apart.
        dtype: dtype of the result; None for that of the argument.

    Returns:
        array of the dtype to which all promote, of rank at least 2; the first axis is as long as all together.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.vstack([jnp.ones(2), jnp.ones(2)]).shape
        (2, 2)
    """
    return concatenate([_at_least(x, 2) for x in sequence("vstack", tup)], 0, dtype)


def hstack(tup: Arrays, dtype: DTypeLike | None = None) -> Array:
    """The arrays one beside another.

    Args:
        tup: sequence of arrays of any dtype, or an array, whose first axis is taken apart.
        dtype: dtype of the result; None for that of the argument.

    Returns:
        array of the dtype to which all promote; the second axis, or that of vectors, is as long as all together.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.hstack([jnp.ones(2), jnp.ones(2)]).shape
        (4,)
    """
    xs = [_at_least(x, 1) for x in sequence("hstack", tup)]
    return concatenate(xs, 0 if len(shape_of(xs[0])) == 1 else 1, dtype)


def dstack(tup: Arrays, dtype: DTypeLike | None = None) -> Array:
    """The arrays one behind another.

    Args:
        tup: sequence of arrays of any dtype, or an array, whose first axis is taken apart.
        dtype: dtype of the result; None for that of the argument.

    Returns:
        array of the dtype to which all promote, of rank at least 3; the third axis is as long as all together.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.dstack([jnp.ones(2), jnp.ones(2)]).shape
        (1, 2, 2)
    """
    return concatenate([_deep(x) for x in sequence("dstack", tup)], 2, dtype)


def column_stack(tup: Arrays) -> Array:
    """Vectors as the columns of a matrix.

    Args:
        tup: sequence of arrays of any dtype, of rank at most 2, or an array, whose first axis is taken apart.

    Returns:
        array of the dtype to which all promote, of rank 2.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.column_stack([jnp.ones(3), jnp.ones(3)]).shape
        (3, 2)
    """
    xs = [_at_least(x, 1) for x in sequence("column_stack", tup)]
    return concatenate([linear.expand_dims(x, (1,)) if len(shape_of(x)) == 1 else x for x in xs], 1)


def block(arrays: ArrayLike | list[Any]) -> Array:
    """An array from nested lists of blocks.

    Args:
        arrays: array, or lists of arrays in lists, whose innermost are put together along the last axis.

    Returns:
        array of the dtype to which all promote, whose shape is that of the blocks together.

    Raises:
        ValueError: for lists of different depths, and for tuples.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.block([[jnp.ones((1, 2)), jnp.ones((1, 1))]]).shape
        (1, 3)
    """

    def depth(x: Value) -> int:
        depths = {*map(depth, x)} if isinstance(x, list) else {-1}
        if len(depths) > 1:
            raise ValueError("block: lists must be nested to one depth.")
        return 1 + depths.pop() if depths else 1

    def build(x: Value, level: int, rank: int) -> Value:
        if isinstance(x, list):
            if not x:
                raise ValueError("block: lists must not be empty.")
            return concatenate([build(v, level - 1, rank) for v in x], -level)
        return _at_least(operand("block", x), rank)

    def ranks(x: Value) -> int:
        return max(map(ranks, x)) if isinstance(x, list) else len(shape_of(operand("block", x)))

    if isinstance(arrays, tuple):
        raise ValueError(f"block takes nested lists, not tuples; got {arrays}.")
    levels = depth(arrays)
    return build(arrays, levels, max(levels, ranks(arrays)))
