"""Functions of `weft.numpy` that join arrays, take them apart and repeat their elements."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Sequence, TypeAlias

from ..base import dtypes
from ..base.host import np
from ..core.trace import Tracer
from ..base.errors import ConcretizationTypeError
from ..primitives import elementwise as el
from ..primitives import linear
from ..primitives import shape as ops
from ..primitives.reduce import cumsum_p
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..transforms.stage import concretization_error
from ..typing import Array, ArrayLike, DTypeLike, OutSharding, Shape, ShapeLike, SizeLike
from .creation import array
from .util import (
    asked_dtype,
    canonical_axis,
    canonical_shape,
    flat_host,
    on_device,
    laid_out,
    operand,
    promote,
    static_int,
)
from .util import broadcast_to as _broadcast_to

if TYPE_CHECKING:
    from ..core.types import Value

from .shapes import _part, _array, ravel, take_rows

__all__ = ["append", "concat", "concatenate", "repeat", "resize", "stack", "tile"]


Arrays: TypeAlias = "Array | np.ndarray[Any, Any] | Sequence[ArrayLike]"


def sequence(name: str, arrays: Arrays) -> list[Any]:
    """The arrays that a function of several arrays gets: a sequence of them, or the rows of one."""
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

    Args:
        arrays: sequence of arrays, of any dtype and one shape but for the axis; or an array, whose first axis is taken
            apart.
        axis: int, the axis; None for the flattened array.
        dtype: dtype of the result; None for that of the argument.

    Returns:
        array of the dtype to which all promote, as long along the axis as all together.

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

    Args:
        arrays: sequence of arrays, of any dtype and one shape but for the axis.
        axis: int, the axis; None for the flattened array.

    Returns:
        array of the dtype to which all promote, as long along the axis as all together.

    Raises:
        ValueError: for an empty sequence.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.concat([jnp.arange(2), jnp.arange(1)]).shape
        (3,)
    """
    return concatenate(arrays, axis)


def stack(arrays: Arrays, axis: int = 0, out: None = None, dtype: DTypeLike | None = None) -> Array:
    """The arrays along a new axis.

    Args:
        arrays: sequence of arrays of any dtype, of one shape.
        axis: int, the position of the new axis.
        out: None, since arrays are immutable.
        dtype: dtype of the result; None for that of the argument.

    Returns:
        array of the dtype to which all promote, with one axis more.

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


def tile(A: ArrayLike, reps: SizeLike | Shape) -> Array:
    """The array repeated as a whole along its axes.

    Args:
        A: array of any dtype, any shape.
        reps: int or sequence of ints: how often along each axis.

    Returns:
        array of the dtype of A, each axis as many times as long.

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

    Args:
        a: array of any dtype, any shape.
        repeats: int, or array of integers with one for each element along the axis.
        axis: int, the axis; None for the flattened array.
        total_repeat_length: int, the size of the result along the axis, which must be known under jit for an array of
            repeats.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of the dtype of a, longer along the axis.

    Raises:
        ValueError: a count is negative, or there is neither one count nor one for each element of the axis.
        ConcretizationTypeError: the counts are not known under a transformation, and `total_repeat_length` is not
            given.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.repeat(jnp.arange(2), 2)
        Array([0, 0, 1, 1], dtype=int32)
    """
    if out_sharding is not None:
        return laid_out(
            "repeat", lambda: repeat(a, repeats, axis, total_repeat_length=total_repeat_length), out_sharding
        )
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


def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """`values` behind `arr` along an axis (None: both flattened).

    Args:
        arr: array of any dtype, any shape.
        values: array of any dtype, with the shape of arr but for the axis.
        axis: int, the axis; None for the flattened array.

    Returns:
        array of the dtype to which both promote, longer along the axis.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.append(jnp.arange(2), 5)
        Array([0, 1, 5], dtype=int32)
    """
    return concatenate([operand("append", arr), operand("append", values)], axis)


def resize(a: ArrayLike, new_shape: ShapeLike) -> Array:
    """The flattened array repeated as often as needed to fill `new_shape`.

    Args:
        a: array of any dtype, any shape.
        new_shape: int or sequence of ints.

    Returns:
        array of the dtype of a and that shape.

    Raises:
        ValueError: for negative sizes.

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
