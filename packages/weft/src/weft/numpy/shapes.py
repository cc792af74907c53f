"""Functions of `weft.numpy` that rearrange elements: reshape, transpose, concatenate, stack, roll, tile, …"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Sequence, TypeAlias

from ..base import dtypes
from ..base.avals import Size, SymbolicSize
from ..base.host import np
from ..runtime.jit import inner_jit
from ..core.trace import Tracer
from ..base.errors import ConcretizationTypeError, InconclusiveDimensionOperation, at_user_line
from ..primitives import elementwise as el, bitwise
from ..primitives import linear
from ..primitives import shape as ops
from ..primitives.gather import GatherDimensionNumbers, GatherScatterMode, gather
from ..primitives.dynamic_slice import dynamic_slice_p
from ..primitives.reduce import cumsum_p
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..transforms.stage import concretization_error
from ..typing import Array, ArrayLike, Axis, DTypeLike, OutSharding, Placement, Shape, ShapeLike, SizeLike
from .creation import array
from .util import (
    asked_dtype,
    canonical_axes,
    canonical_axis,
    canonical_shape,
    flat_host,
    on_device,
    laid_out,
    operand,
    promote,
    static_int,
    static_size,
)
from .util import broadcast_shapes as _broadcast_shapes
from .util import broadcast_to as _broadcast_to

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = [
    "append",
    "astype",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "concat",
    "concatenate",
    "expand_dims",
    "flip",
    "fliplr",
    "flipud",
    "isscalar",
    "matrix_transpose",
    "moveaxis",
    "ndim",
    "permute_dims",
    "ravel",
    "repeat",
    "reshape",
    "resize",
    "roll",
    "rollaxis",
    "rot90",
    "shape",
    "size",
    "squeeze",
    "stack",
    "swapaxes",
    "tile",
    "transpose",
    "unstack",
]


def _array(name: str, x: ArrayLike) -> Array:
    return on_device(operand(name, x))


def reshape(
    a: ArrayLike, shape: ShapeLike, order: str = "C", *, copy: bool | None = None, out_sharding: OutSharding = None
) -> Array:
    """The same elements with another shape; one size may be -1.

    Raises:
        TypeError: if the number of elements differs, or the shape is not concrete.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.reshape(jnp.arange(4), (2, -1)).shape
        (2, 2)
    """
    if out_sharding is not None:
        return laid_out("reshape", reshape(a, shape, order, copy=copy), out_sharding)
    x = operand("reshape", a)
    mine = shape_of(x)
    new = fill_in_shape(mine, shape)
    if order == "C":
        return on_device(linear.reshape(x, new))
    if order == "F":
        reversed_ = linear.transpose(x, tuple(reversed(range(len(mine)))))
        return on_device(linear.transpose(linear.reshape(reversed_, new[::-1]), tuple(reversed(range(len(new))))))
    if order == "A":
        raise NotImplementedError(
            "reshape: order 'A' depends on how an array lies in memory, which arrays here do not show; use 'C' or 'F'."
        )
    raise ValueError(f"reshape: order takes 'C' or 'F', got {order!r}.")


def fill_in_shape(mine: tuple[Size, ...], shape: Any) -> tuple[Size, ...]:
    """A requested shape with its -1 worked out."""
    if isinstance(shape, Tracer) or isinstance(shape, (list, tuple)) and any(isinstance(n, Tracer) for n in shape):
        return canonical_shape(shape)  # raises, with what to do
    sizes = tuple(
        static_size("a size", n)
        for n in (shape if isinstance(shape, (list, tuple)) or getattr(shape, "ndim", 0) > 0 else (shape,))
    )
    size = math.prod(mine)
    if -1 in sizes:
        if sizes.count(-1) > 1:
            raise TypeError(f"cannot reshape array of shape {mine} into shape {sizes}: only one size may be -1.")
        rest = math.prod(n for n in sizes if n != -1)
        if rest != 0 and isinstance(size % rest, SymbolicSize):
            raise InconclusiveDimensionOperation(
                f"Cannot divide evenly the sizes of shapes {mine} and {sizes}: the remainder {size % rest} should be 0."
                " Say so with a constraint "
                f'(constraints=["mod(…) == 0"] of symbolic_shape), or write the dimension as a multiple.'
            )
        if rest == 0 and size or rest and size % rest:
            raise TypeError(
                f"cannot reshape array of shape {mine} (size {size}) into shape {sizes} because the product of"
                f" specified axis sizes ({rest}) does not evenly divide {size}."
            )
        sizes = tuple((size // rest if rest else 0) if n == -1 else n for n in sizes)
    if math.prod(sizes) != size or any(n < 0 for n in sizes):
        raise TypeError(
            at_user_line(
                f"cannot reshape array of shape {mine} (size {size}) into shape {sizes} (size {math.prod(sizes)}). One"
                " size may be -1, and follows from the others."
            )
        )
    return sizes


def ravel(a: ArrayLike, order: str = "C", *, out_sharding: OutSharding = None) -> Array:
    """The array flattened to one axis.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.ravel(jnp.ones((2, 3))).shape
        (6,)
    """
    if order == "K":
        raise NotImplementedError(
            "ravel: order 'K' depends on how an array lies in memory, which arrays here do not show; use 'C' or 'F'."
        )
    return reshape(a, (math.prod(shape_of(operand("ravel", a))),), order, out_sharding=out_sharding)


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """The array with its axes in another order (reversed by default).

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.transpose(jnp.ones((2, 3))).shape
        (3, 2)
    """
    x = _array("transpose", a)
    rank = len(shape_of(x))
    if axes is None:
        return linear.transpose(x, tuple(reversed(range(rank))))
    axes = tuple(canonical_axis(d, rank) for d in axes)
    if sorted(axes) != list(range(rank)):
        raise TypeError(
            f"transpose permutation isn't a permutation of operand dimensions, got permutation {axes} for operand shape"
            f" {shape_of(x)}."
        )
    return linear.transpose(x, axes)


def permute_dims(a: ArrayLike, /, axes: Sequence[int]) -> Array:
    """The array with its axes in the order `axes`.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.permute_dims(jnp.ones((2, 3)), (1, 0)).shape
        (3, 2)
    """
    return linear.transpose(_array("permute_dims", a), tuple(axes))


def matrix_transpose(x: ArrayLike, /) -> Array:
    """The array with its last two axes swapped.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.matrix_transpose(jnp.ones((4, 2, 3))).shape
        (4, 3, 2)
    """
    x = operand("matrix_transpose", x)
    if len(shape_of(x)) < 2:
        raise ValueError(f"matrix_transpose takes arrays of rank 2 or more, got shape {shape_of(x)}.")
    return swapaxes(x, -1, -2)


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """The array with two axes exchanged.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.swapaxes(jnp.ones((2, 3)), 0, 1).shape
        (3, 2)
    """
    x = _array("swapaxes", a)
    order = list(range(len(shape_of(x))))
    i, j = canonical_axis(axis1, len(order)), canonical_axis(axis2, len(order))
    order[i], order[j] = order[j], order[i]
    return linear.transpose(x, order)


def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """The array with axes moved to new positions, the others in order.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.moveaxis(jnp.ones((2, 3, 4)), 0, -1).shape
        (3, 4, 2)
    """
    x = _array("moveaxis", a)
    rank = len(shape_of(x))
    if isinstance(source, (tuple, list)) and len({canonical_axis(d, rank, "source") for d in source}) < len(source):
        raise TypeError(f"moveaxis: axes must be unique, got source {source}.")
    src, dst = canonical_axes(source, rank, "source"), canonical_axes(destination, rank, "destination")
    if len(src) != len(dst):
        raise ValueError(f"moveaxis: source and destination must have one length, got {source} and {destination}.")
    order = [d for d in range(rank) if d not in src]
    for to, d in sorted(zip(dst, src)):
        order.insert(to, d)
    return linear.transpose(x, order)


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """The array with `axis` moved before the position `start`.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.rollaxis(jnp.ones((2, 3, 4)), 2).shape
        (4, 2, 3)
    """
    rank = len(shape_of(operand("rollaxis", a)))
    axis = canonical_axis(axis, rank)
    if not -rank <= start <= rank:
        raise ValueError(f"rollaxis: start {start} is out of bounds for rank {rank}.")
    start += rank if start < 0 else 0
    return moveaxis(a, axis, start - (start > axis))


def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array:
    """The array with axes of size 1 at the positions `axis` of the result.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.expand_dims(jnp.ones(2), 0).shape
        (1, 2)
    """
    x = _array("expand_dims", a)
    given: Any = axis
    axes = tuple(given) if isinstance(given, Sequence) or getattr(given, "ndim", 0) > 0 else (given,)
    dims = canonical_axes(axes, len(shape_of(x)) + len(axes))
    return linear.expand_dims(x, dims) if dims else x


def squeeze(a: ArrayLike, axis: Axis = None) -> Array:
    """The array without axes of size 1 (all of them, or those named).

    Raises:
        ValueError: if a named axis has another size.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.squeeze(jnp.ones((1, 2, 1))).shape
        (2,)
    """
    x = _array("squeeze", a)
    shape = shape_of(x)
    dims = tuple(d for d, n in enumerate(shape) if n == 1) if axis is None else canonical_axes(axis, len(shape))
    if any(shape[d] != 1 for d in dims):
        raise ValueError(
            f"cannot select an axis to squeeze out which has size not equal to one, got shape={shape} and"
            f" dimensions={dims}."
        )
    return linear.squeeze(x, dims)


def broadcast_to(array: ArrayLike, shape: ShapeLike, *, out_sharding: OutSharding = None) -> Array:
    """The array repeated to `shape`.

    Raises:
        ValueError: if it does not fit.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.broadcast_to(jnp.arange(2), (2, 2)).tolist()
        [[0, 1], [0, 1]]
    """
    if out_sharding is not None:
        return laid_out("broadcast_to", broadcast_to(array, shape), out_sharding)
    return on_device(_broadcast_to(operand("broadcast_to", array), canonical_shape(shape)))


def broadcast_shapes(*shapes: ShapeLike) -> tuple[Size, ...]:
    """The shape to which all shapes broadcast.

    Raises:
        ValueError: if there is none.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.broadcast_shapes((2, 1), (3,))
        (2, 3)
    """
    return _broadcast_shapes([canonical_shape(s) for s in shapes]) if shapes else ()


def broadcast_arrays(*args: ArrayLike) -> list[Array]:
    """The arrays repeated to one shape.

    Example:
        >>> import weft.numpy as jnp
        >>> [x.shape for x in jnp.broadcast_arrays(jnp.ones(2), jnp.ones((3, 1)))]
        [(3, 2), (3, 2)]
    """
    arrays = [operand("broadcast_arrays", a) for a in args]
    shape = _broadcast_shapes([shape_of(a) for a in arrays]) if arrays else ()
    return [on_device(_broadcast_to(a, shape)) for a in arrays]


Arrays: TypeAlias = "Array | np.ndarray[Any, Any] | Sequence[ArrayLike]"


def sequence(name: str, arrays: Arrays) -> list[Any]:
    """What functions of several arrays take: a sequence of arrays, or the rows of one."""
    if getattr(arrays, "shape", None) == ():
        raise (
            TypeError(f"{name} takes a sequence of arrays, got one of shape ().")
            if name != "concatenate"
            else ValueError("a scalar can't be concatenated.")
        )
    if hasattr(arrays, "shape"):
        arrays = [arrays[i] for i in range(shape_of(arrays)[0])]
    found = [operand(name, a) for a in arrays]
    if not found:
        raise ValueError(f"Need at least one array to {name}.")
    return found


def concatenate(arrays: Arrays, axis: int | None = 0, dtype: DTypeLike | None = None) -> Array:
    """The arrays one after another along `axis` (None: flattened first).

    Raises:
        ValueError: for an empty sequence. TypeError: if other sizes differ.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.concatenate([jnp.arange(2), jnp.arange(1)])
        Array([0, 1, 0], dtype=int32)
    """
    xs = sequence("concatenate", arrays)
    if any(not shape_of(x) for x in xs) and axis is not None:
        raise (TypeError if any(map(shape_of, xs)) else ValueError)(
            "zero-dimensional arrays cannot be concatenated; stack them instead."
        )
    if axis is None:
        xs, axis = [linear.reshape(x, (math.prod(shape_of(x)),)) for x in xs], 0
    axis = canonical_axis(axis, len(shape_of(xs[0])))
    dt = asked_dtype("concatenate", dtype)
    xs = promote("concatenate", *xs) if dt is None else [linear.convert(x, dt) for x in xs]
    return on_device(ops.concatenate(xs, axis))


def concat(arrays: Sequence[ArrayLike], /, *, axis: int | None = 0) -> Array:
    """As `concatenate`, with the array API's name.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.concat([jnp.arange(2), jnp.arange(1)]).shape
        (3,)
    """
    return concatenate(arrays, axis)


def stack(arrays: Arrays, axis: int = 0, out: None = None, dtype: DTypeLike | None = None) -> Array:
    """The arrays along a new axis.

    Raises:
        ValueError: if their shapes differ.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.stack([jnp.arange(2), jnp.arange(2)]).shape
        (2, 2)
    """
    if out is not None:
        raise NotImplementedError(
            "weft.numpy.stack: the 'out' argument is not supported, since arrays are immutable; use the result."
        )
    xs = sequence("stack", arrays)
    shapes = [shape_of(x) for x in xs]
    if len(set(shapes)) > 1:
        raise ValueError(f"All input arrays must have the same shape. Got {', '.join(map(str, shapes))}.")
    axis = canonical_axis(axis, len(shapes[0]) + 1)
    dt = asked_dtype("stack", dtype)
    xs = promote("stack", *xs) if dt is None else [linear.convert(x, dt) for x in xs]
    return on_device(ops.concatenate([linear.expand_dims(x, (axis,)) for x in xs], axis))


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices of an array along an axis.

    Example:
        >>> import weft.numpy as jnp
        >>> [p.tolist() for p in jnp.unstack(jnp.ones((2, 1)))]
        [[1.0], [1.0]]
    """
    x = _array("unstack", x)
    shape = shape_of(x)
    if not shape:
        raise ValueError("unstack takes arrays of rank 1 or more.")
    axis = canonical_axis(axis, len(shape))
    return tuple(linear.squeeze(_part(x, axis, i, i + 1), (axis,)) for i in range(shape[axis]))


def _part(x: Value, axis: int, lo: int, hi: int) -> Value:
    shape = shape_of(x)
    return ops.slice_(
        x,
        tuple(lo if d == axis else 0 for d in range(len(shape))),
        tuple(hi if d == axis else n for d, n in enumerate(shape)),
    )


@inner_jit(name="_flip", static_argnums=(1,))
def _flip(x: Value, axes: tuple[int, ...]) -> Value:
    return ops.rev(x, axes)


def flip(m: ArrayLike, axis: Axis = None) -> Array:
    """The array with its elements reversed along axes (None: all).

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.flip(jnp.arange(3))
        Array([2, 1, 0], dtype=int32)
    """
    x = operand("flip", m)
    rank = len(shape_of(x))
    axes = (
        tuple(canonical_axis(a, rank) for a in axis) if isinstance(axis, (tuple, list)) else canonical_axes(axis, rank)
    )
    if len(set(axes)) < len(axes):
        raise TypeError(f"flip: axes must be unique, got {axis}.")
    return _flip(x, axes)


def fliplr(m: ArrayLike) -> Array:
    """`flip` along the second axis.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fliplr(jnp.array([[1, 2]])).tolist()
        [[2, 1]]
    """
    return flip(m, 1)


def flipud(m: ArrayLike) -> Array:
    """`flip` along the first axis.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.flipud(jnp.array([[1], [2]])).tolist()
        [[2], [1]]
    """
    return flip(m, 0)


def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """The array turned by k quarters in the plane of two axes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.rot90(jnp.array([[1, 2], [3, 4]])).tolist()
        [[2, 4], [1, 3]]
    """
    x = _array("rot90", m)
    i, j = canonical_axes(tuple(axes), len(shape_of(x)), "axes")
    k %= 4
    if k == 2:
        return flip(flip(x, i), j)
    if k == 1:
        return swapaxes(flip(x, j), i, j)
    return flip(swapaxes(x, i, j), j) if k else x


@inner_jit(name="_roll_static", static_argnums=(1, 2))
def _roll_static(x: Value, shifts: Any, axes: tuple[int, ...]) -> Value:
    for shift, axis in zip(shifts, axes):
        n = shape_of(x)[axis]
        k = -shift % n if n else 0
        if k:
            x = ops.concatenate([_part(x, axis, k, n), _part(x, axis, 0, k)], axis)
    return x


def roll(a: ArrayLike, shift: ArrayLike | Sequence[int], axis: Axis = None) -> Array:
    """The array with its elements shifted along axes, those that fall off coming in at the other end.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.roll(jnp.arange(3), 1)
        Array([2, 0, 1], dtype=int32)
    """
    x = operand("roll", a)
    shape = shape_of(x)
    if axis is None:
        return linear.reshape(roll(linear.reshape(x, (math.prod(shape),)), shift, 0), shape)
    axes = (axis,) if not isinstance(axis, (list, tuple)) else tuple(axis)
    axes = tuple(canonical_axis(d, len(shape)) for d in axes)
    shifts: list[Any] = (
        list(shift)
        if isinstance(shift, (list, tuple))
        else (
            [shift]
            if not getattr(shift, "ndim", 0)
            else flat_host(shift)
            if not isinstance(shift, Tracer)
            else list(unstack(on_device(shift)))
        )
    )
    shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    axes = axes * len(shifts) if len(axes) == 1 else axes
    if len(shifts) != len(axes):
        raise ValueError(f"roll: {len(shifts)} shifts for {len(axes)} axes.")
    if not any(isinstance(s, Tracer) for s in shifts):
        return _roll_static(x, tuple(int(s) if isinstance(s, float) else static_int("shift", s) for s in shifts), axes)
    for s, d in zip(shifts, axes):
        n = shape[d]
        if n:
            s = linear.convert(s, dtypes.int32)
            start = el.sub(
                scalar_like(s, n), el.rem(el.add(el.rem(s, scalar_like(s, n)), scalar_like(s, n)), scalar_like(s, n))
            )
            twice = ops.concatenate([x, x], d)
            zero = scalar_like(s, 0)
            x = dynamic_slice_p.bind(twice, *[start if e == d else zero for e in range(len(shape))], slice_sizes=shape)
    return on_device(x)


def tile(A: ArrayLike, reps: SizeLike | Shape) -> Array:
    """The array repeated as a whole along its axes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.tile(jnp.arange(2), 2)
        Array([0, 1, 0, 1], dtype=int32)
    """
    x = _array("tile", A)
    given: Any = reps if isinstance(reps, (list, tuple)) or getattr(reps, "shape", ()) != () else (reps,)
    times = tuple(static_int("reps", r) for r in given)
    shape = shape_of(x)
    rank = max(len(shape), len(times))
    shape, times = (1,) * (rank - len(shape)) + shape, (1,) * (rank - len(times)) + times
    x = linear.reshape(x, shape)
    if all(r == 1 for r in times):
        return x
    wide = tuple(v for r, n in zip(times, shape) for v in (r, n))
    out = linear.broadcast_in_dim(x, wide, tuple(range(1, 2 * rank, 2)))
    return linear.reshape(out, tuple(r * n for r, n in zip(times, shape)))


def repeat(
    a: ArrayLike,
    repeats: ArrayLike,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Each element repeated along an axis (None: of the flattened array).

    An array of repeats must be concrete, or `total_repeat_length` must say the size of the result.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.repeat(jnp.arange(2), 2)
        Array([0, 0, 1, 1], dtype=int32)
    """
    if out_sharding is not None:
        return laid_out("repeat", repeat(a, repeats, axis, total_repeat_length=total_repeat_length), out_sharding)
    x, counted = _array("repeat", a), operand("repeat", repeats)
    if axis is None:
        x, axis = linear.reshape(x, (math.prod(shape_of(x)),)), 0
    axis = canonical_axis(axis, len(shape_of(x)))
    shape = shape_of(x)
    n = shape[axis]
    if isinstance(counted, Tracer) or total_repeat_length is not None:
        if total_repeat_length is None:
            raise ConcretizationTypeError(
                concretization_error(
                    counted,
                    "repeat needs the numbers of its argument 'repeats', because the result's shape depends "
                    "on them; or give total_repeat_length",
                )
            )
        return _repeat_dynamic(x, counted, axis, total_repeat_length)
    counts = [static_int("repeats", c) for c in flat_host(counted)]
    if any(c < 0 for c in counts):
        raise ValueError("repeat: counts must not be negative.")
    if len(counts) == 1:
        wide = (*shape[: axis + 1], counts[0], *shape[axis + 1 :])
        out = linear.broadcast_in_dim(x, wide, tuple(d for d in range(len(wide)) if d != axis + 1))
        return linear.reshape(out, (*shape[:axis], n * counts[0], *shape[axis + 1 :]))
    if len(counts) != n:
        raise ValueError(f"repeat: {len(counts)} counts for an axis of size {n}.")
    return take_rows(x, array([i for i, c in enumerate(counts) for _ in range(c)] or [], dtypes.int32), axis)


def _repeat_dynamic(x: Value, repeats: Value, axis: int, length: int) -> Value:
    n = shape_of(x)[axis]
    counts = _broadcast_to(linear.convert(operand("repeat", repeats), dtypes.int32), (n,)) if n else None
    if not n:
        return x
    ends = cumsum_p.bind(counts, axis=0, reverse=False)
    position = ops.iota(dtypes.int32, (length,), 0)
    # output i comes from the first element whose end lies beyond i
    passed = el.ge(linear.expand_dims(position, (1,)), linear.expand_dims(ends, (0,)))
    source = linear.reduce_sum(linear.convert(passed, dtypes.int32), (1,))
    return take_rows(x, el.min_(source, scalar_like(source, n - 1)), axis)


def take_rows(x: Any, rows: Any, axis: int) -> Any:
    """The slices of `x` at int32 positions (inside the bounds) along one axis."""
    shape, rank, extra = shape_of(x), len(shape_of(x)), len(shape_of(rows))
    numbers = GatherDimensionNumbers((*range(axis), *range(axis + extra, rank - 1 + extra)), (axis,), (axis,))
    sizes = tuple(1 if d == axis else n for d, n in enumerate(shape))
    return gather(x, linear.expand_dims(rows, (extra,)), numbers, sizes, mode=GatherScatterMode.CLIP)


def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """`values` behind `arr` along an axis (None: both flattened).

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.append(jnp.arange(2), 5)
        Array([0, 1, 5], dtype=int32)
    """
    return concatenate([operand("append", arr), operand("append", values)], axis)


def resize(a: ArrayLike, new_shape: ShapeLike) -> Array:
    """The flattened array repeated as often as needed to fill `new_shape`.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.resize(jnp.arange(2), (3,))
        Array([0, 1, 0], dtype=int32)
    """
    if any(isinstance(n, int) and n < 0 for n in (new_shape if isinstance(new_shape, (tuple, list)) else [new_shape])):
        raise ValueError(f"resize: sizes of a shape must not be negative, got {new_shape}.")
    shape = canonical_shape(new_shape)
    x = ravel(a)
    n, size = shape_of(x)[0], math.prod(shape)
    if n == 0:
        return linear.full(shape, 0, dtype_of(x))
    return linear.reshape(_part(tile(x, -(-size // n)), 0, 0, size), shape)


def astype(x: ArrayLike, dtype: DTypeLike | None, /, *, copy: bool = False, device: Placement = None) -> Array:
    """The array with another dtype.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.astype(jnp.array([1.5]), int)
        Array([1], dtype=int32)
    """
    dt = asked_dtype("astype", dtype) if dtype is not None else dtypes.canonicalize(float)
    return array(operand("astype", x), dt, copy=bool(copy), device=device)


def ndim(a: ArrayLike | Sequence[Any]) -> int:
    """The number of axes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.ndim(jnp.ones((2, 3)))
        2
    """
    return len(shape(a))


def shape(a: ArrayLike | Sequence[Any]) -> tuple[Size, ...]:
    """The shape.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.shape(jnp.ones((2, 3)))
        (2, 3)
    """
    return shape_of(array(a) if isinstance(a, (list, tuple)) else operand("shape", a))


def size(a: ArrayLike | Sequence[Any], axis: Axis = None) -> Size:
    """The number of elements, or the size of axes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.size(jnp.ones((2, 3)))
        6
    """
    dims = shape(a)
    return math.prod(dims[d] for d in canonical_axes(axis, len(dims)))


def isscalar(element: object) -> bool:
    """Whether something is a number or an array of rank 0.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.isscalar(1.5)
        True
    """
    if isinstance(element, (bool, int, float, complex, str, bytes)):
        return True
    return hasattr(element, "dtype") and getattr(element, "shape", None) == ()


def view(x: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """The same bytes as another dtype; the last axis grows or shrinks with the width.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.array([1.0]).view('int32')
        Array([1065353216], dtype=int32)
    """
    v = _array("view", x)
    if dtype is None:
        return v
    dt, have = dtypes.canonicalize(dtype), dtype_of(v)
    if dtypes.is_key(have):
        raise NotImplementedError("view: random keys are no numbers; weft.random.key_data(key) gives their words.")
    if dtypes.is_bool(have):
        v, have = linear.convert(v, dtypes.uint8), dtypes.uint8
    if dtypes.is_bool(dt):
        return linear.convert(view(v, dtypes.uint8), dtypes.bool_)
    if dtypes.is_complex(dt) and dt != have:  # a real part beside each imaginary one
        pairs = view(v, dtypes.real_of(dt))
        if not shape_of(pairs) or shape_of(pairs)[-1] % 2:
            raise ValueError(
                f"view: the last axis of shape {shape_of(v)} does not divide into elements of {dtypes.bits(dt)} bits."
            )
        return el.complex_(pairs[..., ::2], pairs[..., 1::2])
    if dtypes.is_complex(have) and dt != have:
        parts = ops.concatenate(
            [linear.expand_dims(part, (len(shape_of(v)),)) for part in (el.real(v), el.imag(v))], len(shape_of(v))
        )
        if not shape_of(v):
            raise ValueError("view: an array of rank 0 can only be viewed as a dtype of the same width.")
        return view(linear.reshape(parts, (*shape_of(v)[:-1], 2 * shape_of(v)[-1])), dt)
    wide, narrow = dtypes.bits(dt), dtypes.bits(have)
    if wide == narrow:
        return v if dt == have else bitwise.bitcast(v, dt)
    shape = shape_of(v)
    if not shape:
        raise ValueError("view: an array of rank 0 can only be viewed as a dtype of the same width.")
    if wide > narrow:
        if shape[-1] * narrow % wide:
            raise ValueError(f"view: the last axis of shape {shape} does not divide into elements of {wide} bits.")
        return bitwise.bitcast(linear.reshape(v, (*shape[:-1], shape[-1] * narrow // wide, wide // narrow)), dt)
    return linear.reshape(bitwise.bitcast(v, dt), (*shape[:-1], shape[-1] * narrow // wide))
