"""Functions of `weft.numpy` that rearrange elements: reshape, transpose, concatenate, stack, roll, tile, …"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Sequence

from ..base import dtypes
from ..base.avals import Size, SymbolicSize
from ..runtime.jit import inner_jit
from ..core.trace import Tracer
from ..base.errors import InconclusiveDimensionOperation, at_user_line
from ..primitives import elementwise as el, bitwise
from ..primitives import linear
from ..primitives import shape as ops
from ..primitives.gather import GatherDimensionNumbers, GatherScatterMode, gather
from ..primitives.dynamic_slice import dynamic_slice_p
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..typing import Array, ArrayLike, Axis, DTypeLike, OutSharding, Placement, ShapeLike
from ..transforms.auto_axes import with_out_sharding
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
    static_int,
    static_size,
)
from .util import broadcast_shapes as _broadcast_shapes
from .util import broadcast_to as _broadcast_to

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = [
    "astype",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
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
    "reshape",
    "roll",
    "rollaxis",
    "rot90",
    "shape",
    "size",
    "squeeze",
    "swapaxes",
    "transpose",
    "unstack",
]


def _array(name: str, x: ArrayLike) -> Array:
    return on_device(operand(name, x))


def reshape(
    a: ArrayLike, shape: ShapeLike, order: str = "C", *, copy: bool | None = None, out_sharding: OutSharding = None
) -> Array:
    """The same elements with another shape; one size may be -1.

    Args:
        a: array of any dtype, any shape.
        shape: int or sequence of ints.
        order: 'C', 'F' or 'A': whether the last axis or the first one varies fastest.
        copy: bool: make a copy even where none is needed.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of the dtype of a and that shape.

    Raises:
        TypeError: if the number of elements differs, or the shape is not concrete.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.reshape(jnp.arange(4), (2, -1)).shape
        (2, 2)
    """
    if out_sharding is not None and order != "C":
        return laid_out("reshape", lambda: reshape(a, shape, order, copy=copy), out_sharding)
    x = operand("reshape", a)
    mine = shape_of(x)
    new = fill_in_shape(mine, shape)
    if order == "C":
        return with_out_sharding("reshape", out_sharding, lambda where: on_device(linear.reshape(x, new, where)))
    if order == "F":
        reversed_ = linear.transpose(x, tuple(reversed(range(len(mine)))))
        return on_device(linear.transpose(linear.reshape(reversed_, new[::-1]), tuple(reversed(range(len(new))))))
    if order == "A":
        raise NotImplementedError(
            "reshape: order 'A' depends on the layout of an array in memory, which arrays here do not expose; use 'C'"
            " or 'F'."
        )
    raise ValueError(f"reshape: order takes 'C' or 'F', got {order!r}.")


def fill_in_shape(mine: tuple[Size, ...], shape: Any) -> tuple[Size, ...]:
    """A requested shape with its -1 worked out."""
    if isinstance(shape, Tracer) or isinstance(shape, (list, tuple)) and any(isinstance(n, Tracer) for n in shape):
        return canonical_shape(shape)  # raises an error that tells the next step
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

    Args:
        a: array of any dtype, any shape.
        order: 'C', 'F', 'A' or 'K': whether the last axis or the first one varies fastest.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of the dtype of a, shape (n,).

    Raises:
        NotImplementedError: the order is 'K', which depends on how an array lies in memory.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.ravel(jnp.ones((2, 3))).shape
        (6,)
    """
    if order == "K":
        raise NotImplementedError(
            "ravel: order 'K' depends on the layout of an array in memory, which arrays here do not expose; use 'C' or"
            " 'F'."
        )
    return reshape(a, (math.prod(shape_of(operand("ravel", a))),), order, out_sharding=out_sharding)


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """The array with its axes in another order (reversed by default).

    Args:
        a: array of any dtype, any shape.
        axes: sequence of ints, the axis of a that stands at each place; None to reverse them.

    Returns:
        array of the dtype of a, its axes in that order.

    Raises:
        TypeError: for axes that are no permutation.

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

    Args:
        a: array of any dtype, any shape.
        axes: sequence of ints, the axis of a that stands at each place.

    Returns:
        array of the dtype of a, its axes in that order.

    Raises:
        TypeError: for axes that are no permutation.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.permute_dims(jnp.ones((2, 3)), (1, 0)).shape
        (3, 2)
    """
    return linear.transpose(_array("permute_dims", a), tuple(axes))


def matrix_transpose(x: ArrayLike, /) -> Array:
    """The array with its last two axes swapped.

    Args:
        x: array of any dtype, shape (..., m, n).

    Returns:
        array of the dtype of x, shape (..., n, m).

    Raises:
        ValueError: for rank 0 and 1.

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

    Args:
        a: array of any dtype, any shape.
        axis1, axis2: int, an axis.

    Returns:
        array of the dtype of a, with both axes exchanged.

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

    Args:
        a: array of any dtype, any shape.
        source: int or sequence of ints, axes of a.
        destination: int or sequence of ints, where they come to stand.

    Returns:
        array of the dtype of a, with axes in that order.

    Raises:
        ValueError: for lists of different lengths.
        TypeError: for an axis named twice.

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

    Args:
        a: array of any dtype, any shape.
        axis: int, the axis; negative ones count from the end.
        start: int, the position.

    Returns:
        array of the dtype of a, with axes in that order.

    Raises:
        ValueError: `start` is out of bounds.

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

    Args:
        a: array of any dtype, any shape.
        axis: int or tuple of ints, positions in the result.

    Returns:
        array of the dtype of a, with more axes.

    Raises:
        ValueError: for a position out of range, or one named twice.

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

    Args:
        a: array of any dtype, any shape.
        axis: int or tuple of ints; None for all axes of size 1.

    Returns:
        array of the dtype of a, with fewer axes.

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

    Args:
        array: array of any dtype, any shape.
        shape: int or sequence of ints.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of the dtype of the argument and that shape.

    Raises:
        ValueError: if it does not fit.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.broadcast_to(jnp.arange(2), (2, 2)).tolist()
        [[0, 1], [0, 1]]
    """
    if out_sharding is not None:
        return laid_out("broadcast_to", lambda: broadcast_to(array, shape), out_sharding)
    return on_device(_broadcast_to(operand("broadcast_to", array), canonical_shape(shape)))


def broadcast_shapes(*shapes: ShapeLike) -> tuple[Size, ...]:
    """The shape to which all shapes broadcast.

    Args:
        *shapes: ints or sequences of ints.

    Returns:
        tuple of ints.

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

    Args:
        *args: arrays of any dtype, whose shapes broadcast.

    Returns:
        list of arrays of the broadcast shape, each of its dtype.

    Raises:
        ValueError: for shapes that do not broadcast.

    Example:
        >>> import weft.numpy as jnp
        >>> [x.shape for x in jnp.broadcast_arrays(jnp.ones(2), jnp.ones((3, 1)))]
        [(3, 2), (3, 2)]
    """
    arrays = [operand("broadcast_arrays", a) for a in args]
    shape = _broadcast_shapes([shape_of(a) for a in arrays]) if arrays else ()
    return [on_device(_broadcast_to(a, shape)) for a in arrays]


@inner_jit(name="_flip", static_argnums=(1,))
def _flip(x: Value, axes: tuple[int, ...]) -> Value:
    return ops.rev(x, axes)


def flip(m: ArrayLike, axis: Axis = None) -> Array:
    """The array with its elements reversed along axes (None: all).

    Args:
        m: array of any dtype, any shape.
        axis: int, tuple of ints, or None for all: the axes.

    Returns:
        array of the dtype and shape of m.

    Raises:
        TypeError: an axis occurs twice.

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

    Args:
        m: array of any dtype, of rank at least 2.

    Returns:
        array of the dtype and shape of m.

    Raises:
        ValueError: for rank 0 and 1.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fliplr(jnp.array([[1, 2]])).tolist()
        [[2, 1]]
    """
    return flip(m, 1)


def flipud(m: ArrayLike) -> Array:
    """`flip` along the first axis.

    Args:
        m: array of any dtype, of rank at least 1.

    Returns:
        array of the dtype and shape of m.

    Raises:
        ValueError: for a scalar.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.flipud(jnp.array([[1], [2]])).tolist()
        [[2], [1]]
    """
    return flip(m, 0)


def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """The array turned by k quarters in the plane of two axes.

    Args:
        m: array of any dtype, of rank at least 2.
        k: int, how many quarters, from the first axis towards the second.
        axes: two ints.

    Returns:
        array of the dtype of m; an odd number of quarters swaps the sizes of both axes.

    Raises:
        ValueError: for axes that are not two different ones.

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

    Args:
        a: array of any dtype, any shape.
        shift: int or sequence of ints: how far.
        axis: int or tuple of ints; None for the flattened array.

    Returns:
        array of the dtype and shape of a.

    Raises:
        ValueError: there are not as many shifts as axes.

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


def take_rows(x: Any, rows: Any, axis: int) -> Any:
    """The slices of `x` at int32 positions (inside the bounds) along one axis."""
    shape, rank, extra = shape_of(x), len(shape_of(x)), len(shape_of(rows))
    numbers = GatherDimensionNumbers((*range(axis), *range(axis + extra, rank - 1 + extra)), (axis,), (axis,))
    sizes = tuple(1 if d == axis else n for d, n in enumerate(shape))
    return gather(x, linear.expand_dims(rows, (extra,)), numbers, sizes, mode=GatherScatterMode.CLIP)


def astype(x: ArrayLike, dtype: DTypeLike | None, /, *, copy: bool = False, device: Placement = None) -> Array:
    """The array with another dtype.

    Args:
        x: array of any dtype, any shape.
        dtype: dtype of the result.
        copy: bool: make a copy even where none is needed.
        device: device or sharding: where the result lies; None for the default device.

    Returns:
        array of that dtype and the shape of x.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.astype(jnp.array([1.5]), int)
        Array([1], dtype=int32)
    """
    dt = asked_dtype("astype", dtype) if dtype is not None else dtypes.canonicalize(float)
    return array(operand("astype", x), dt, copy=bool(copy), device=device)


def ndim(a: ArrayLike | Sequence[Any]) -> int:
    """The number of axes.

    Args:
        a: array of any dtype, any shape.

    Returns:
        int.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.ndim(jnp.ones((2, 3)))
        2
    """
    return len(shape(a))


def shape(a: ArrayLike | Sequence[Any]) -> tuple[Size, ...]:
    """The shape.

    Args:
        a: array of any dtype, any shape.

    Returns:
        tuple of ints.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.shape(jnp.ones((2, 3)))
        (2, 3)
    """
    return shape_of(array(a) if isinstance(a, (list, tuple)) else operand("shape", a))


def size(a: ArrayLike | Sequence[Any], axis: Axis = None) -> Size:
    """The number of elements, or the size of axes.

    Args:
        a: array of any dtype, any shape.
        axis: int, tuple of ints, or None for all: the axes.

    Returns:
        int.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.size(jnp.ones((2, 3)))
        6
    """
    dims = shape(a)
    return math.prod(dims[d] for d in canonical_axes(axis, len(dims)))


def isscalar(element: object) -> bool:
    """Whether something is a number or an array of rank 0.

    Args:
        element: any value.

    Returns:
        bool.

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
        raise NotImplementedError("view: random keys are not numbers; weft.random.key_data(key) returns their words.")
    if dtypes.is_bool(have):
        v, have = linear.convert(v, dtypes.uint8), dtypes.uint8
    if dtypes.is_bool(dt):
        return linear.convert(view(v, dtypes.uint8), dtypes.bool_)
    if dtypes.is_complex(dt) and dt != have:  # each imaginary part is paired with a real part
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


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices of an array along an axis.

    Args:
        x: array of any dtype, of rank at least 1.
        axis: int, the axis; negative ones count from the end.

    Returns:
        tuple of arrays of the dtype of x and its shape without the axis.

    Raises:
        ValueError: for a scalar.

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
