"""Functions of `weft.lax` that make arrays and move elements: iota, reshape, broadcast, slice, pad, concatenate, …"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any, Sequence

from ..base import dtypes
from ..base.avals import ShapeDtypeStruct, Size
from ..core.trace import Tracer, current_trace, get_aval, is_array_like, root
from ..base.dtypes import ElementType
from ..base.errors import at_user_line, type_error
from ..base.host import from_flat, np
from ..base.mesh import NamedSharding, PartitionSpec, Sharding, canonical_sharding
from ..primitives import linear
from ..primitives import shape as ops
from ..primitives.rules import dtype_of, shape_of
from ..runtime import dispatch
from ..typing import Array, ArrayLike, DTypeLike, OutSharding, Shape
from ..transforms.auto_axes import divided, with_out_sharding
from ..runtime.jit import inner_jit
from ..runtime.partition import own_place
from .common import (
    canonical_axes,
    canonical_axis,
    canonical_shape,
    counted_axis,
    ints,
    on_device,
    operand as checked,
    static_int,
    static_size,
)

__all__ = [
    "broadcast",
    "broadcast_in_dim",
    "broadcast_like",
    "broadcast_shapes",
    "broadcast_to_rank",
    "broadcasted_iota",
    "collapse",
    "concatenate",
    "dtype",
    "empty",
    "expand_dims",
    "full",
    "full_like",
    "index_in_dim",
    "iota",
    "pad",
    "reshape",
    "rev",
    "shape_as_value",
    "slice",
    "slice_in_dim",
    "split",
    "squeeze",
    "stack",
    "tile",
    "transpose",
    "unstack",
]


def iota(dtype: DTypeLike, size: int) -> Array:
    """Makes the array 0, 1, …, size-1.

    Args:
        dtype: dtype of integers, floats or complex numbers.
        size: int of at least 0 (or a symbolic size).

    Returns:
        array of `dtype`, shape (size,).

    Raises:
        TypeError: for a dtype of no numbers, or a size that is no int.

    Example:
        >>> from weft import lax
        >>> lax.iota('int32', 3)
        Array([0, 1, 2], dtype=int32)
    """
    return ops.iota(dtype, (static_size("iota size", size),), 0)


def broadcasted_iota(dtype: DTypeLike, shape: Shape, dimension: int, *, out_sharding: OutSharding = None) -> Array:
    """Makes an array whose elements are their own index along one axis.

    Args:
        dtype: dtype of integers, floats or complex numbers.
        shape: the shape of the result, a sequence of ints.
        dimension: int: the axis that is counted.
        out_sharding: `weft.NamedSharding` or `weft.P`: how the result is divided; None to leave it open.

    Returns:
        array of `dtype` and `shape`.

    Raises:
        AxisError: if there is no such axis.

    Example:
        >>> from weft import lax
        >>> lax.broadcasted_iota('int32', (2, 2), 1).tolist()
        [[0, 1], [0, 1]]
    """
    shape = canonical_shape(shape)
    axis = counted_axis("broadcasted_iota", dimension, len(shape), "dimension")
    return with_out_sharding("broadcasted_iota", out_sharding, lambda where: ops.iota(dtype, shape, axis, where))


def full(
    shape: Shape,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    sharding: Sharding | PartitionSpec | None = None,
) -> Array:
    """Makes an array with one value everywhere.

    Args:
        shape: the shape of the result, a sequence of ints, or an int.
        fill_value: scalar of any dtype.
        dtype: dtype of the result; None for that of `fill_value`.
        sharding: `weft.NamedSharding` or `weft.P`: how the result is divided; None to leave it open.

    Returns:
        array of `dtype` and `shape`.

    Raises:
        TypeError: if `fill_value` is no scalar.

    Example:
        >>> from weft import lax
        >>> lax.full((2,), 7)
        Array([7, 7], dtype=int32, weak_type=True)
    """
    shape, scalar = canonical_shape(shape), checked("full", fill_value)
    aval = get_aval(scalar)
    if aval.shape:
        raise TypeError(f"full: fill_value must be a scalar, got an array of shape {aval.shape}.")
    dt, weak = (aval.dtype, aval.weak_type) if dtype is None else (dtypes.canonicalize(dtype), False)
    value: Any = linear.convert(scalar, dt, weak)
    out: Any = value if not shape and isinstance(value, Tracer) else filled(value, shape, sharding)
    return out


def full_like(
    x: ArrayLike | ShapeDtypeStruct,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Shape | None = None,
    sharding: Sharding | None = None,
) -> Array:
    """Makes an array like another one, with one value everywhere.

    Args:
        x: array of any dtype but random keys, any shape, or a `ShapeDtypeStruct`.
        fill_value: scalar of any dtype.
        dtype: dtype of the result; None for that of x.
        shape: the shape of the result; None for that of x.
        sharding: `weft.NamedSharding` or `weft.P`: how the result is divided; None to leave it open.

    Returns:
        array of `dtype` and `shape`.

    Raises:
        TypeError: for random keys.

    Example:
        >>> from weft import lax
        >>> lax.full_like(lax.iota('float32', 2), 3)
        Array([3., 3.], dtype=float32)
    """
    like: Any = x if hasattr(x, "shape") and hasattr(x, "dtype") else get_aval(x)
    shape = like.shape if shape is None else canonical_shape(shape)
    weak = dtype is None and getattr(like, "weak_type", False)
    dt = dtypes.canonicalize(like.dtype if dtype is None else dtype)
    if dtypes.is_key(dt):
        raise type_error("full_like does not make random keys; use weft.random.key.")
    value = checked("full_like", fill_value)
    where = sharding if sharding is not None or shape_of(value) else dispatch.place_like(x, shape)
    return filled(linear.convert(value, dt, weak), tuple(shape), where)


def filled(value: Any, shape: Shape, where: Any) -> Any:
    """An array with one value everywhere, on a device or as a sharding says; None leaves it open."""
    if where is None:
        return linear.broadcast_in_dim(value, shape)
    where = canonical_sharding(where)
    if current_trace() is not root or isinstance(value, Tracer):
        make = lambda: linear.broadcast_in_dim(value, shape)
        return divided(make, where) if isinstance(where, NamedSharding) else make()
    over = own_place(where)
    if isinstance(over, NamedSharding) and over.mesh.size > 1 and not over.mesh.explicit_axes:
        return _filled_over(value, shape, over)
    return dispatch.move(linear.broadcast_in_dim(value, shape), over)


@inner_jit(name="full", static_argnums=(1, 2))
def _filled_over(value: Any, shape: Shape, where: NamedSharding) -> Any:
    """Each device makes its part: none need hold the whole."""
    return divided(lambda: linear.broadcast_in_dim(value, shape), where)


def broadcast(operand: ArrayLike, sizes: Sequence[int], *, out_sharding: OutSharding = None) -> Array:
    """Repeats an array along new leading axes.

    Args:
        operand: array of any dtype, shape (…).
        sizes: sequence of ints, the sizes of the new axes.
        out_sharding: `weft.NamedSharding` or `weft.P`: how the result is divided; None to leave it open.

    Returns:
        array of the dtype of operand, shape (*sizes, …).

    Example:
        >>> from weft import lax
        >>> lax.broadcast(1.0, (2,)).shape
        (2,)
    """
    x, sizes = checked("broadcast", operand), canonical_shape(sizes)
    shape = (*sizes, *shape_of(x))
    return with_out_sharding(
        "broadcast",
        out_sharding,
        lambda where: on_device(linear.broadcast_in_dim(x, shape, tuple(range(len(sizes), len(shape))), where)),
    )


def broadcast_in_dim(
    operand: ArrayLike, shape: Shape, broadcast_dimensions: Sequence[int], *, out_sharding: OutSharding = None
) -> Array:
    """Puts the axes of an array at given places of a larger shape, and repeats it along the others.

    Args:
        operand: array of any dtype, any shape.
        shape: the shape of the result, a sequence of ints.
        broadcast_dimensions: one int for each axis of operand, all different: its place in `shape`.
        out_sharding: `weft.NamedSharding` or `weft.P`: how the result is divided; None to leave it open.

    Returns:
        array of the dtype of operand and `shape`.

    Raises:
        TypeError: if the size of an axis of operand is neither 1 nor that of its place.

    Example:
        >>> from weft import lax
        >>> lax.broadcast_in_dim(lax.iota('int32', 2), (2, 3), (0,)).tolist()
        [[0, 0, 0], [1, 1, 1]]
    """
    x, dims, wide = checked("broadcast_in_dim", operand), ints(broadcast_dimensions), canonical_shape(shape)
    order = sorted(range(len(dims)), key=dims.__getitem__)
    if len(set(dims)) == len(dims) == len(shape_of(x)) and order != list(range(len(dims))):
        x, dims = linear.transpose(x, tuple(order)), tuple(sorted(dims))
    return with_out_sharding(
        "broadcast_in_dim", out_sharding, lambda where: on_device(linear.broadcast_in_dim(x, wide, dims, where))
    )


def broadcast_shapes(*shapes: Shape) -> tuple[Size, ...]:
    """Computes the shape to which all shapes broadcast, by NumPy's rules.

    Args:
        shapes: shapes, sequences of ints.

    Returns:
        tuple of ints, the shape; () of no shapes.

    Raises:
        ValueError: if there is none.

    Example:
        >>> from weft import lax
        >>> lax.broadcast_shapes((2, 1), (3,))
        (2, 3)
    """
    known = [canonical_shape(s) for s in shapes]
    rank = max(map(len, known), default=0)
    result = []
    for sizes in zip(*[(1,) * (rank - len(s)) + s for s in known]):
        wide = {n for n in sizes if n != 1}
        if len(wide) > 1:
            raise ValueError(f"Incompatible shapes for broadcasting: shapes={[tuple(s) for s in shapes]}.")
        result.append(wide.pop() if wide else 1)
    return tuple(result)


def reshape(
    operand: ArrayLike, new_sizes: Shape, dimensions: Sequence[int] | None = None, *, out_sharding: OutSharding = None
) -> Array:
    """Gives the elements, in row-major order, another shape.

    Args:
        operand: array of any dtype, any shape.
        new_sizes: the new shape, a sequence of ints with the same product.
        dimensions: the order in which the axes are read, a permutation; None for their own.
        out_sharding: `weft.NamedSharding` or `weft.P`: how the result is divided; None to leave it open.

    Returns:
        array of the dtype of operand and the shape `new_sizes`.

    Raises:
        TypeError: if the number of elements differs.

    Example:
        >>> from weft import lax
        >>> lax.reshape(lax.iota('int32', 4), (2, 2)).tolist()
        [[0, 1], [2, 3]]
    """
    x = checked("reshape", operand)
    if dimensions is not None and tuple(dimensions) != tuple(range(len(shape_of(x)))):
        x = linear.transpose(x, ints(dimensions))
    sizes, shape = canonical_shape(new_sizes), shape_of(x)
    if all(type(n) is int for n in (*sizes, *shape)) and math.prod(sizes) != math.prod(shape):
        raise ValueError(
            at_user_line(
                f"reshape: new_sizes {sizes} have {math.prod(sizes)} elements, and the operand of shape {shape} has"
                f" {math.prod(shape)}."
            )
        )
    return with_out_sharding("reshape", out_sharding, lambda where: on_device(linear.reshape(x, sizes, where)))


def transpose(operand: ArrayLike, permutation: Sequence[int] | np.ndarray[Any, Any]) -> Array:
    """Permutes the axes of an array.

    Args:
        operand: array of any dtype, any shape.
        permutation: sequence of ints: axis i of the result is axis permutation[i] of operand.

    Returns:
        array of the dtype of operand and the permuted shape.

    Raises:
        TypeError: if it is no permutation of the axes.

    Example:
        >>> from weft import lax
        >>> lax.transpose(lax.full((2, 3), 0.0), (1, 0)).shape
        (3, 2)
    """
    return on_device(linear.transpose(checked("transpose", operand), ints(permutation)))


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Inserts axes of size 1.

    Args:
        array: array of any dtype, any shape.
        dimensions: sequence of ints, their places in the result.

    Returns:
        array of the dtype of `array`, of a rank higher by the number of dimensions.

    Raises:
        AxisError: if a place is out of range.

    Example:
        >>> from weft import lax
        >>> lax.expand_dims(lax.iota('int32', 2), (0,)).shape
        (1, 2)
    """
    x = checked("expand_dims", array)
    dims = canonical_axes(tuple(dimensions), len(shape_of(x)) + len(tuple(dimensions)), "dimensions")
    return on_device(linear.expand_dims(x, dims)) if dims else on_device(x)


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Removes axes of size 1.

    Args:
        array: array of any dtype, any shape.
        dimensions: sequence of ints, the axes to remove.

    Returns:
        array of the dtype of `array` and the shape without these axes.

    Raises:
        ValueError: if an axis has another size.

    Example:
        >>> from weft import lax
        >>> lax.squeeze(lax.full((1, 2), 0), (0,)).shape
        (2,)
    """
    x = checked("squeeze", array)
    shape = shape_of(x)
    dims = canonical_axes(tuple(dimensions), len(shape), "dimensions")
    if any(shape[d] != 1 for d in dims):
        raise ValueError(
            f"cannot select an axis to squeeze out which has size not equal to one, got shape={shape} and"
            f" dimensions={dims}."
        )
    return on_device(linear.squeeze(x, dims))


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Merges consecutive axes into one.

    Args:
        operand: array of any dtype, any shape.
        start_dimension: int, the first of the axes.
        stop_dimension: int, the axis after the last; None for all that follow.

    Returns:
        array of the dtype of operand, with one axis of the size of their product.

    Raises:
        ValueError: if start_dimension is after stop_dimension.

    Example:
        >>> from weft import lax
        >>> lax.collapse(lax.full((2, 3, 4), 0), 0, 2).shape
        (6, 4)
    """
    x = checked("collapse", operand)
    shape = shape_of(x)
    lo, hi, _ = slice_(start_dimension, stop_dimension).indices(len(shape))
    if hi < lo:
        raise ValueError(
            f"collapse: start_dimension {start_dimension} is after stop_dimension {stop_dimension} for shape {shape}."
        )
    size = 1
    for n in shape[lo:hi]:
        size *= n
    return on_device(linear.reshape(x, (*shape[:lo], size, *shape[hi:])))


slice_ = slice


def slice(
    operand: ArrayLike, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> Array:
    """Takes `x[start:limit:stride]` along every axis, with static bounds.

    Args:
        operand: array of any dtype, any shape.
        start_indices: one int for each axis, at least 0.
        limit_indices: one int for each axis, the index after the last, at most the size.
        strides: one positive int for each axis; None for ones.

    Returns:
        array of the dtype of operand, with ceil((limit - start) / stride) elements along each axis.

    Raises:
        TypeError: if a bound lies outside the array.

    Example:
        >>> from weft import lax
        >>> lax.slice(lax.iota('int32', 5), (1,), (4,), (2,))
        Array([1, 3], dtype=int32)
    """
    return on_device(
        ops.slice_(
            checked("slice", operand),
            ints(start_indices),
            ints(limit_indices),
            None if strides is None else ints(strides),
        )
    )


def slice_in_dim(
    operand: ArrayLike, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Array:
    """Takes `x[start:limit:stride]` along one axis, with static bounds.

    Args:
        operand: array of any dtype, any shape.
        start_index: int, negative from the end; None for 0.
        limit_index: int, the index after the last, negative from the end; None for the size.
        stride: int, positive.
        axis: int, the axis.

    Returns:
        array of the dtype of operand, with ceil((limit - start) / stride) elements along the axis.

    Raises:
        TypeError: if a bound lies outside the array.

    Example:
        >>> from weft import lax
        >>> lax.slice_in_dim(lax.iota('int32', 5), 1, -1)
        Array([1, 2, 3], dtype=int32)
    """
    x = checked("slice_in_dim", operand)
    shape = shape_of(x)
    axis = canonical_axis(axis, len(shape))
    n = shape[axis]
    bound = lambda v, default: default if v is None else static_size("slice bound", v) + (n if v < 0 else 0)
    lo, hi, steps = [0] * len(shape), list(shape), [1] * len(shape)
    lo[axis], hi[axis], steps[axis] = bound(start_index, 0), bound(limit_index, n), static_int("stride", stride)
    return on_device(ops.slice_(x, lo, hi, steps))


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """Takes what lies at a static index along one axis.

    Args:
        operand: array of any dtype, any shape.
        index: int, negative from the end.
        axis: int, the axis.
        keepdims: bool: keep the axis, with size 1.

    Returns:
        array of the dtype of operand and its shape, where the axis has size 1 or is removed.

    Raises:
        IndexError: if the index is out of range.

    Example:
        >>> from weft import lax
        >>> lax.index_in_dim(lax.iota('int32', 5), -1)
        Array([4], dtype=int32)
    """
    x = checked("index_in_dim", operand)
    shape = shape_of(x)
    axis, index = canonical_axis(axis, len(shape)), static_size("index", index)
    if not -shape[axis] <= index < shape[axis]:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {shape[axis]}.")
    index = index + shape[axis] if index < 0 else index
    out = slice_in_dim(x, index, index + 1, axis=axis)
    return out if keepdims else linear.squeeze(out, (axis,))


def pad(operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]) -> Array:
    """Puts elements before, after and between those of an array.

    Args:
        operand: array of any dtype, any shape.
        padding_value: scalar of the dtype of operand.
        padding_config: (low, high, interior) for each axis: how many before the first, after the last and between any
            two; negative low and high remove elements.

    Returns:
        array of the dtype of operand; an axis of size n gets the size low + n + max(n - 1, 0) * interior + high.

    Raises:
        TypeError: if dtypes differ, there is not one triple for each axis, or a size gets negative.

    Example:
        >>> from weft import lax
        >>> lax.pad(lax.iota('int32', 2), 9, ((1, 0, 1),))
        Array([9, 0, 9, 1], dtype=int32)
    """
    return ops.pad(checked("pad", operand), checked("pad", padding_value), padding_config)


def concatenate(operands: Array | Sequence[ArrayLike], dimension: int) -> Array:
    """Joins arrays along an axis.

    Args:
        operands: one or more arrays of one dtype, any, and shapes that are equal but along `dimension`.
        dimension: int, the axis, at least 0.

    Returns:
        array of their dtype, whose size along the axis is the sum of theirs.

    Raises:
        TypeError: if other sizes or dtypes differ.
        ValueError: if there are none.

    Example:
        >>> from weft import lax
        >>> lax.concatenate([lax.iota('int32', 2), lax.iota('int32', 1)], 0)
        Array([0, 1, 0], dtype=int32)
    """
    if not isinstance(operands, (list, tuple)):
        operands = list(operands)
    if not operands:
        raise ValueError("concatenate requires a non-empty sequence of arrays.")
    return on_device(ops.concatenate([checked("concatenate", x) for x in operands], int(dimension)))


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Reverses the order of elements along axes.

    Args:
        operand: array of any dtype, any shape.
        dimensions: sequence of ints, the axes.

    Returns:
        array of the dtype and shape of operand.

    Example:
        >>> from weft import lax
        >>> lax.rev(lax.iota('int32', 3), (0,))
        Array([2, 1, 0], dtype=int32)
    """
    return on_device(ops.rev(checked("rev", operand), ints(dimensions)))


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Cuts an array into consecutive parts along an axis.

    Args:
        operand: array of any dtype, any shape.
        sizes: sequence of ints, the sizes of the parts.
        axis: int, the axis.

    Returns:
        list of arrays of the dtype of operand, whose sizes along the axis are `sizes`.

    Raises:
        ValueError: if the sizes do not add up to the size of the axis.

    Example:
        >>> from weft import lax
        >>> [p.tolist() for p in lax.split(lax.iota('int32', 3), (1, 2))]
        [[0], [1, 2]]
    """
    x = checked("split", operand)
    return list(ops.split_p.bind(x, sizes=ints(sizes), axis=canonical_axis(axis, len(shape_of(x)))))


def stack(operands: Sequence[ArrayLike], axis: int = 0) -> Array:
    """Joins arrays along a new axis.

    Args:
        operands: one or more arrays of one dtype, any, and one shape, any.
        axis: int, the place of the new axis in the result.

    Returns:
        array of their dtype, with a new axis of the size of their number.

    Raises:
        ValueError: if there are none, or shapes differ.
        TypeError: if dtypes differ.

    Example:
        >>> from weft import lax
        >>> lax.stack([lax.iota('int32', 2), lax.iota('int32', 2)], axis=1).tolist()
        [[0, 0], [1, 1]]
    """
    xs = [checked("stack", x) for x in operands]
    if not xs:
        raise ValueError("stack requires a non-empty sequence of arrays.")
    return ops.stack_p.bind(*xs, axis=canonical_axis(axis, len(shape_of(xs[0])) + 1))


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """Takes an array apart along an axis.

    Args:
        x: array of any dtype and any shape of rank at least 1.
        axis: int, the axis.

    Returns:
        tuple of arrays of the dtype of x and its shape without the axis, as many as its size.

    Raises:
        ValueError: if there is no such axis.

    Example:
        >>> from weft import lax
        >>> [int(v) for v in lax.unstack(lax.iota('int32', 3))]
        [0, 1, 2]
    """
    x = checked("unstack", x)
    return tuple(ops.unstack_p.bind(x, axis=canonical_axis(axis, len(shape_of(x)))))


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """Repeats an array along its axes.

    Args:
        operand: array of any dtype, any shape.
        reps: one int for each axis: how often.

    Returns:
        array of the dtype of operand, whose size along axis d is reps[d] times its own.

    Raises:
        TypeError: if there is not one number for each axis.

    Example:
        >>> from weft import lax
        >>> lax.tile(lax.iota('int32', 2), (2,))
        Array([0, 1, 0, 1], dtype=int32)
    """
    return ops.tile_p.bind(checked("tile", operand), reps=ints(reps))


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """Inserts axes of size 1 before those of an array.

    Args:
        x: array of any dtype, any shape.
        rank: int, the number of axes of the result.

    Returns:
        array of the dtype of x, shape (1, …, 1, *x.shape) of that rank.

    Raises:
        ValueError: if x has more axes.

    Example:
        >>> from weft import lax
        >>> lax.broadcast_to_rank(lax.iota('int32', 2), 3).shape
        (1, 1, 2)
    """
    x = checked("broadcast_to_rank", x)
    missing = static_int("rank", rank) - len(shape_of(x))
    if missing < 0:
        raise ValueError(f"broadcast_to_rank: an array of shape {shape_of(x)} has more than {rank} axes.")
    return on_device(linear.expand_dims(x, tuple(range(missing))) if missing else x)


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """Repeats an array to the shape of another one, by NumPy's rules.

    Args:
        arr: array of any dtype, of a shape that broadcasts to that of `like_arr`.
        like_arr: array of any dtype, any shape.

    Returns:
        array of the dtype of `arr` and the shape of `like_arr`.

    Raises:
        ValueError: if it does not broadcast to that shape.

    Example:
        >>> from weft import lax
        >>> lax.broadcast_like(1.0, lax.iota('int32', 2))
        Array([1., 1.], dtype=float32, weak_type=True)
    """
    x, shape = checked("broadcast_like", arr), shape_of(checked("broadcast_like", like_arr))
    mine = shape_of(x)
    if len(mine) > len(shape) or broadcast_shapes(mine, shape) != shape:
        raise ValueError(f"broadcast_like: an array of shape {mine} does not broadcast to the shape {shape}.")
    return on_device(linear.broadcast_in_dim(x, shape, tuple(range(len(shape) - len(mine), len(shape)))))


def empty(shape: Shape, dtype: DTypeLike, *, out_sharding: OutSharding = None) -> Array:
    """Makes an array whose values are of no account (they are zeros).

    Args:
        shape: the shape of the result, a sequence of ints, or an int.
        dtype: dtype of the result.
        out_sharding: `weft.NamedSharding` or `weft.P`: how the result is divided; None to leave it open.

    Returns:
        array of `dtype` and `shape`.

    Example:
        >>> from weft import lax
        >>> lax.empty((2,), 'int32').shape
        (2,)
    """
    return full(shape, 0, dtype, sharding=out_sharding)


def shape_as_value(shape: Shape) -> Array:
    """Makes an array of a shape.

    Args:
        shape: a shape, a sequence of ints.

    Returns:
        array of int32, shape (len(shape),).

    Example:
        >>> from weft import lax
        >>> lax.shape_as_value((2, 3))
        Array([2, 3], dtype=int32)
    """
    return dispatch.put(from_flat(canonical_shape(shape), (len(shape),), dtypes.int32))


def dtype(x: ArrayLike | DTypeLike) -> ElementType:
    """Tells the dtype of an array or number.

    Args:
        x: array of any dtype, any shape, a Python number, or a dtype or its name.

    Returns:
        the canonical dtype; of a Python number the default one of its kind.

    Example:
        >>> from weft import lax
        >>> lax.dtype(1.5)
        dtype('float32')
    """
    if not is_array_like(x) and x is not None:
        with suppress(TypeError):
            return dtypes.canonicalize(x)
    return dtype_of(checked("dtype", x))
