"""Choosing elements: where, select, nonzero, compress, insert, delete, and flat positions of indices."""

from __future__ import annotations

import functools
import math
from typing import Any, Callable, Sequence, overload

from ..base import dtypes, limits
from ..core.trace import Tracer, get_aval
from ..base.errors import ConcretizationTypeError, TracerBoolConversionError, at_user_line
from ..primitives import elementwise as el
from ..primitives import linear
from ..primitives import shape as ops
from ..primitives.positions import narrowed, wide_index, wrap_index
from ..primitives.reduce import cumsum_p
from ..primitives.sort import sort_p
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..transforms.stage import concretization_error
from ..typing import Array, ArrayLike, DTypeLike, ShapeLike
from .creation import array, asarray
from .indexing import _nonzero
from .shapes import moveaxis, ravel, take_rows
from .joining import concatenate
from .taking import take
from .ufuncs import where_jit
from .util import (
    asked_dtype,
    broadcast_shapes,
    broadcast_to,
    canonical_axis,
    expand_ranks,
    flat_host,
    index_dtype,
    no_out,
    on_device,
    operand,
    promote,
    promote_shapes,
    static_int,
    to_bool,
)

__all__ = [
    "apply_along_axis",
    "argwhere",
    "compress",
    "delete",
    "extract",
    "flatnonzero",
    "insert",
    "nonzero",
    "ravel_multi_index",
    "select",
    "unravel_index",
    "where",
]


@overload
def where(
    condition: ArrayLike,
    x: ArrayLike,
    y: ArrayLike,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
) -> Array: ...
@overload
def where(
    condition: ArrayLike,
    x: None = None,
    y: None = None,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
) -> tuple[Array, ...]: ...
def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
) -> Array | tuple[Array, ...]:
    """`x` where the condition is true, else `y`; with the condition alone, the positions where it is true (see
    `nonzero`).

    Args:
        condition: array of booleans, any shape.
        x, y: array of any dtype that broadcasts with the others.
        size: int, how many are returned, which must be known under jit; None for as many as there are.
        fill_value: number that fills the result up to `size`.

    Returns:
        array of the dtype to which x and y promote, the broadcast shape; a tuple of positions with the condition alone.

    Raises:
        ValueError: if only one of x and y is given, or shapes do not broadcast.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.where(jnp.array([True, False]), 1, 2)
        Array([1, 2], dtype=int32, weak_type=True)
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise TypeError("either both or neither of x and y must be given to where.")
    if size is not None or fill_value is not None:
        raise ValueError("where with three arguments takes neither size nor fill_value.")
    condition, x, y = to_bool("where", condition), operand("where", x), operand("where", y)
    broadcast_shapes([shape_of(condition), shape_of(x), shape_of(y)])
    return where_jit(condition, x, y)


def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0) -> Array:
    """The first choice whose condition is true, else `default`.

    Args:
        condlist: sequence of arrays of booleans.
        choicelist: sequence of arrays of any dtype, as many, which broadcast with the conditions.
        default: number or array.

    Returns:
        array of the dtype to which the choices promote, the broadcast shape.

    Raises:
        ValueError: for lists of different lengths, and for empty ones.

    Example:
        >>> import weft.numpy as jnp
        >>> x = jnp.arange(3)
        >>> jnp.select([x < 1, x < 2], [10, 20], 30).tolist()
        [10, 20, 30]
    """
    condlist, choicelist = list(condlist), list(choicelist)
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError(
            f"select takes as many choices as conditions, and at least one; got {len(condlist)} and {len(choicelist)}."
        )
    *choices, out = promote("select", *choicelist, default)
    for condition, choice in reversed(list(zip(condlist, choices))):
        out = where(condition, choice, out)
    return out


def nonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None
) -> tuple[Array, ...]:
    """The positions of elements that are not zero, one array for each axis. Under jit `size` says how many to return.

    Args:
        a: array of numbers or booleans, any shape.
        size: int, how many are returned, which must be known under jit; None for as many as there are.
        fill_value: number that fills the result up to `size`.

    Returns:
        tuple of vectors of integers, one for each axis.

    Raises:
        ConcretizationTypeError: for a traced array without `size`.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.nonzero(jnp.array([0, 5, 6]))
        (Array([1, 2], dtype=int32),)
    """
    x = on_device(operand("nonzero", a))
    shape = shape_of(x)
    if not shape:
        raise ValueError("nonzero takes arrays of rank 1 or more; use jnp.atleast_1d(x).nonzero().")
    if size is None:
        if isinstance(x, Tracer):
            raise ConcretizationTypeError(
                concretization_error(
                    x,
                    "nonzero needs the values, because the number of results depends on them; "
                    "give it size=… to use it under jit",
                )
            )
        return tuple(array(rows, index_dtype()) for rows in _nonzero(x))
    size, total = static_int("size", size), math.prod(shape)
    flags = linear.reshape(to_bool("nonzero", x), (total,))
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value or 0,) * len(shape)
    if total == 0 or size == 0:
        return tuple(broadcast_to(linear.convert(f, index_dtype()), (size,)) for f in fills)
    # the k-th result is the number of elements that have at most k true ones up to and including them
    ends = cumsum_p.bind(linear.convert(flags, index_dtype()), axis=0, reverse=False)
    order = ops.iota(index_dtype(), (size,), 0)
    before = el.le(linear.expand_dims(ends, (0,)), linear.expand_dims(order, (1,)))
    flat = linear.reduce_sum(linear.convert(before, index_dtype()), (1,))
    count = linear.reduce_sum(linear.convert(flags, index_dtype()), (0,))
    found = el.lt(order, count)
    out = []
    stride = total
    for n, f in zip(shape, fills):
        stride //= max(n, 1)
        index = el.rem(el.div(flat, scalar_like(flat, max(stride, 1))), scalar_like(flat, n))
        out.append(el.select_n_p.bind(found, broadcast_to(linear.convert(f, index_dtype()), (size,)), index))
    return tuple(out)


def flatnonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None
) -> Array:
    """The positions of elements that are not zero in the flattened array.

    Args:
        a: array of numbers or booleans, any shape.
        size: int, how many are returned, which must be known under jit; None for as many as there are.
        fill_value: number that fills the result up to `size`.

    Returns:
        array of integers, shape (size,).

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.flatnonzero(jnp.array([[0, 5], [6, 0]]))
        Array([1, 2], dtype=int32)
    """
    return nonzero(ravel(a), size=size, fill_value=fill_value)[0]


def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The positions of elements that are not zero, one row for each.

    Args:
        a: array of numbers or booleans, any shape.
        size: int, how many are returned, which must be known under jit; None for as many as there are.
        fill_value: number that fills the result up to `size`.

    Returns:
        array of integers, shape (size, rank).

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.argwhere(jnp.array([0, 5, 6])).tolist()
        [[1], [2]]
    """
    x = on_device(operand("argwhere", a))
    if not shape_of(x):
        n = 1 if size is None and bool(flat_host(x)[0]) else size or 0
        return linear.full((n, 0), 0, index_dtype())
    columns = nonzero(x, size=size, fill_value=fill_value)
    return ops.concatenate([linear.expand_dims(c, (1,)) for c in columns], 1)


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    out: None = None,
) -> Array:
    """The slices along an axis where the condition is true.

    Args:
        condition: array of booleans, shape (n,).
        a: array of any dtype, any shape.
        axis: int, the axis; None for the flattened array.
        size: int, how many are returned, which must be known under jit; None for as many as there are.
        fill_value: number that fills the result up to `size`.
        out: None, since arrays are immutable.

    Returns:
        array of the dtype of a, of size `size` along the axis.

    Raises:
        ValueError: the condition does not have one axis, is true beyond the axis of `a`, or `size` is not positive or
            exceeds the axis.
        TracerBoolConversionError: the values of the condition are not known under a transformation, and `size` is not
            given.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.compress(jnp.array([True, False]), jnp.array([1, 2]))
        Array([1], dtype=int32)
    """
    no_out("compress", out)
    x = ravel(a) if axis is None else on_device(operand("compress", a))
    axis = canonical_axis(axis or 0, len(shape_of(x)))
    if size is not None and not 0 < size <= shape_of(x)[axis]:
        raise ValueError(
            f"compress: size must be positive and not above the size {shape_of(x)[axis]} of the axis, got {size}."
        )
    n = shape_of(x)[axis]
    mask = on_device(operand("compress", condition))
    if len(shape_of(mask)) != 1:
        raise ValueError(f"compress: the condition must have rank 1, got shape {shape_of(mask)}.")
    if size is None and isinstance(mask, Tracer):
        raise TracerBoolConversionError(
            concretization_error(mask, "compress needs the condition, because the number of results depends on it")
        )
    if size is None and any(map(bool, flat_host(mask[n:]))):
        raise ValueError(
            f"compress: the condition of size {shape_of(mask)[0]} is true beyond the size {n} of the axis."
        )
    (rows,) = nonzero(mask[:n], size=size, fill_value=n if size is not None else None)
    return take(x, rows, axis, mode="fill", fill_value=fill_value)


def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0) -> Array:
    """The elements of the flattened array where the condition is true.

    Args:
        condition: array of booleans, as many elements as arr.
        arr: array of any dtype, any shape.
        size: int, how many are returned, which must be known under jit; None for as many as there are.
        fill_value: number that fills the result up to `size`.

    Returns:
        array of the dtype of arr, shape (size,).

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.extract(jnp.array([True, False]), jnp.array([1, 2]))
        Array([1], dtype=int32)
    """
    return compress(ravel(condition), arr, size=size, fill_value=fill_value)


def delete(
    arr: ArrayLike, obj: ArrayLike | slice, axis: int | None = None, *, assume_unique_indices: bool = False
) -> Array:
    """The array without the slices at concrete positions along an axis (None: of the flattened array).

    With `assume_unique_indices` an array of distinct positions may be traced.

    Args:
        arr: array of any dtype, any shape.
        obj: int, slice, or array of integers or booleans: the positions.
        axis: int, the axis; None for the flattened array.
        assume_unique_indices: bool: promises that no position occurs twice.

    Returns:
        array of the dtype of arr, shorter along the axis.

    Raises:
        ValueError: a mask does not have the size of the axis.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.delete(jnp.array([1, 2, 3]), 1)
        Array([1, 3], dtype=int32)
    """
    x = ravel(arr) if axis is None else on_device(operand("delete", arr))
    axis = canonical_axis(axis or 0, len(shape_of(x)))
    n = shape_of(x)[axis]
    if assume_unique_indices and isinstance(obj, Tracer) and dtypes.is_int(get_aval(obj).dtype):
        at = wrap_index(ravel(obj), n)
        kept = linear.full((n,), True, dtypes.bool_).at[at].set(False)
        return take_rows(x, nonzero(kept, size=n - shape_of(at)[0])[0], axis)
    if not isinstance(obj, slice) and shape_of(operand("delete", obj)) != (n,) and dtypes.is_bool(dtype_of(obj)):
        raise ValueError(f"delete: a mask must have the shape ({n},) of the axis, got {shape_of(obj)}.")
    gone = set(_positions(obj, n))
    return take_rows(x, array([i for i in range(n) if i not in gone], dtypes.int32), axis)


def _positions(obj: object, n: int) -> list[Any]:
    if isinstance(obj, slice):
        return list(range(*obj.indices(n)))
    if isinstance(obj, Tracer):
        raise ConcretizationTypeError(
            concretization_error(obj, "delete needs the positions, because the result's shape depends on them")
        )
    values = list(obj) if isinstance(obj, (list, tuple, range)) else flat_host(operand("delete", obj))
    if isinstance(obj, (list, tuple)) or getattr(obj, "ndim", 0) > 0:
        if values and all(isinstance(v, bool) for v in values):
            return [i for i, v in enumerate(values) if v]
        kind: type[Exception] = IndexError
    else:
        kind = ValueError
    if any(not isinstance(v, int) for v in values):
        raise ValueError(f"delete: positions must be integers, got {values}.")
    if any(not -n <= v < n for v in values):
        raise kind(f"delete: a position of {values} is out of bounds for size {n}.")
    return [v + n if v < 0 else v for v in values]


def insert(arr: ArrayLike, obj: ArrayLike | slice, values: ArrayLike, axis: int | None = None) -> Array:
    """The array with `values` put in before positions along an axis (None: of the flattened array); those out of bounds
    mean its ends.

    Args:
        arr: array of any dtype, any shape.
        obj: int, slice, or array of integers: the positions.
        values: array that broadcasts to the places, and converts to the dtype of arr.
        axis: int, the axis; None for the flattened array.

    Returns:
        array of the dtype of arr, longer along the axis.

    Raises:
        ValueError: for positions that are no integers.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.insert(jnp.array([1, 3]), 1, 2)
        Array([1, 2, 3], dtype=int32)
    """
    x = ravel(arr) if axis is None else on_device(operand("insert", arr))
    axis = canonical_axis(axis or 0, len(shape_of(x)))
    n = shape_of(x)[axis]
    at = array(range(*obj.indices(n)), dtypes.int32) if isinstance(obj, slice) else on_device(operand("insert", obj))
    if not dtypes.is_int(dtype_of(at)):
        raise ValueError(f"insert: positions must be integers, got {get_aval(at)}. Convert them with astype(int).")
    scalar, at = not shape_of(at), narrowed(ravel(at), dtypes.int32)
    values = linear.convert(asarray(values), dtype_of(x))
    if shape_of(at) == (1,):  # all values are inserted there
        values = expand_ranks(values, len(shape_of(x)))
        values = moveaxis(values, 0, axis) if scalar else values
        at = broadcast_to(at, (shape_of(values)[axis],))
    count = shape_of(at)[0]
    both = ops.concatenate(
        [x, broadcast_to(values, tuple(count if d == axis else m for d, m in enumerate(shape_of(x))))], axis
    )
    at = where(el.lt(at, scalar_like(at, 0)), el.add(at, scalar_like(at, n)), at)
    at = el.clamp(scalar_like(at, 0), at, scalar_like(at, n))
    two = scalar_like(at, 2)
    # before element i is 2 i, the element 2 i + 1
    after = el.add(el.mul(ops.iota(dtypes.int32, (n,), 0), two), scalar_like(at, 1))
    keys = ops.concatenate([after, el.mul(at, two)], 0)
    order = sort_p.bind(keys, ops.iota(dtypes.int32, (n + count,), 0), dimension=0, is_stable=True, num_keys=1)[1]
    return take_rows(both, order, axis)


def unravel_index(indices: ArrayLike, shape: ShapeLike) -> tuple[Array, ...]:
    """Flat positions as one position for each axis; those out of bounds are moved inside. Sizes may be traced.

    Args:
        indices: array of integers, any shape.
        shape: sequence of ints.

    Returns:
        tuple of arrays of integers of the shape of `indices`, one for each axis.

    Example:
        >>> import weft.numpy as jnp
        >>> [int(i) for i in jnp.unravel_index(5, (2, 3))]
        [1, 2]
    """
    flat = on_device(operand("unravel_index", indices))
    flat = linear.convert(flat, dtypes.int32, True) if dtypes.is_bool(dtype_of(flat)) else flat
    aval = get_aval(flat)
    sizes: Any = shape
    given = list(sizes) if isinstance(sizes, (list, tuple)) or getattr(sizes, "ndim", 0) > 0 else [sizes]
    dt, computed = (
        aval.dtype,
        dtypes.int32 if dtypes.is_int(aval.dtype) and dtypes.bits(aval.dtype) < 32 else aval.dtype,
    )
    weak = all([get_aval(n).weak_type for n in [flat, *given]])
    flat = linear.convert(flat, computed)
    sizes = [broadcast_to(linear.convert(operand("unravel_index", n), computed), aval.shape) for n in given]
    one = linear.full(aval.shape, 1, computed)
    total = functools.reduce(el.mul, sizes, one)
    flat = where(el.lt(flat, scalar_like(flat, 0)), el.add(flat, total), el.min_(flat, el.sub(total, one)))
    flat = el.max_(flat, scalar_like(flat, 0))
    out: list[Any] = []
    for n in reversed(sizes):
        n = el.max_(n, one)
        out.insert(0, linear.convert(el.rem(flat, n), dt, weak))
        flat = el.div(flat, n) if dtypes.is_int(computed) else el.floor(el.div(flat, n))
    return tuple(out)


def ravel_multi_index(
    multi_index: Sequence[ArrayLike],
    dims: Sequence[int],
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """One position for each axis as flat positions, of an integer `dtype`.

    Args:
        multi_index: sequence of arrays of integers, one for each axis, which broadcast.
        dims: sequence of ints, the shape.
        mode: 'raise', 'clip' or 'wrap', or one for each axis: what becomes of positions out of bounds.
        order: 'C' or 'F': whether the last axis or the first one varies fastest.
        dtype: dtype of integers; None for the default one.

    Returns:
        array of integers, the broadcast shape.

    Raises:
        ValueError: for positions out of bounds, with mode 'raise'.

    Example:
        >>> import weft.numpy as jnp
        >>> int(jnp.ravel_multi_index((1, 2), (2, 3)))
        5
    """
    dt = asked_dtype("ravel_multi_index", dtype)
    if dt is not None and not dtypes.is_int(dt):
        raise ValueError(f"ravel_multi_index: dtype must be an integer one, got {dtypes.name(dt)}.")
    parts = [on_device(i) for i in promote("ravel_multi_index", *multi_index)]
    if len(parts) != len(dims):
        raise ValueError(f"ravel_multi_index: {len(parts)} positions for {len(dims)} axes.")
    have = dtype_of(parts[0]) if dt is None and parts else dt
    if have is not None and dtypes.is_int(have) and math.prod(dims) - 1 > limits.iinfo(have).max:
        raise ValueError(
            at_user_line(
                f"ravel_multi_index: positions in an array of shape {tuple(dims)} do not fit dtype {dtypes.name(have)}."
                " Ask for a wider one: dtype='int32'."
            )
        )
    parts = parts if dt is None else [linear.convert(wide_index(i, *dims), dt) for i in parts]
    checked = []
    for i, n in zip(parts, dims):
        if mode == "clip":
            i = el.clamp(scalar_like(i, 0), i, scalar_like(i, n - 1))
        elif mode == "wrap":
            i = el.rem(el.add(el.rem(i, scalar_like(i, n)), scalar_like(i, n)), scalar_like(i, n))
        elif isinstance(i, Tracer):
            raise ConcretizationTypeError(
                concretization_error(i, "ravel_multi_index with mode='raise' looks at the values; use 'clip' or 'wrap'")
            )
        elif any(not 0 <= v < n for v in flat_host(i)):
            raise ValueError("ravel_multi_index: invalid entry in coordinates array.")
        checked.append(i)
    pairs = list(zip(checked, dims))
    total: Any = None
    stride = 1
    if order not in ("C", "F"):
        raise ValueError(f"ravel_multi_index: order takes 'C' or 'F', got {order!r}.")
    for i, n in reversed(pairs) if order == "C" else pairs:
        term = el.mul(i, scalar_like(i, stride))
        total = term if total is None else el.add(*promote_shapes("ravel_multi_index", total, term))
        stride *= n
    return total if dt is None else linear.convert(total, dt)


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: object, **kwargs: object) -> Array:
    """A function of vectors applied to every vector along an axis.

    Args:
        func1d: function of a vector.
        axis: int, the axis; negative ones count from the end.
        arr: array of any dtype, any shape.
        *args, **kwargs: further arguments of the function.

    Returns:
        array of the dtype that the function returns, whose axes stand in place of the axis.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.apply_along_axis(jnp.sum, 0, jnp.ones((2, 3)))
        Array([2., 2., 2.], dtype=float32)
    """
    x = on_device(operand("apply_along_axis", arr))
    shape = shape_of(x)
    axis = canonical_axis(axis, len(shape))
    lead = [n for d, n in enumerate(shape) if d != axis]
    rows = linear.reshape(moveaxis(x, axis, -1), (math.prod(lead), shape[axis]))
    outs = [asarray(func1d(rows[i], *args, **kwargs)) for i in range(math.prod(lead))]
    stacked = concatenate([linear.expand_dims(o, (0,)) for o in outs], 0)
    inner = shape_of(stacked)[1:]
    full = linear.reshape(stacked, (*lead, *inner))
    k = len(lead)
    return linear.transpose(full, (*range(axis), *range(k, k + len(inner)), *range(axis, k)))
