"""Choosing elements: where, select, take, nonzero, diagonals, triangles, insert and delete."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Callable, Sequence, overload

from ..base import dtypes
from ..runtime.jit import inner_jit
from ..core.trace import Tracer, get_aval
from ..base.errors import ConcretizationTypeError, TracerBoolConversionError, at_user_line
from ..primitives import elementwise as el
from ..primitives import linear
from ..primitives import shape as ops
from ..primitives.index import GatherDimensionNumbers, GatherScatterMode, gather, gather_fill
from ..primitives.positions import narrowed, wide_index, wrap_index
from ..primitives.reduce import cumsum_p
from ..primitives.sort import sort_p
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..transforms.stage import concretization_error
from ..typing import Array, ArrayLike, DTypeLike, ShapeLike
from .creation import array, asarray, lower_mask
from .indexing import _index_dtype, _nonzero
from .shapes import concatenate, moveaxis, ravel, take_rows
from .ufuncs import where_jit
from .util import (
    accumulator,
    asked_dtype,
    broadcast_shapes,
    broadcast_to,
    canonical_axis,
    canonical_shape,
    expand_ranks,
    flat_host,
    index_dtype,
    no_out,
    on_device,
    operand,
    promote,
    promote_shapes,
    static_int,
    strong,
    to_bool,
)

if TYPE_CHECKING:
    from ..core.types import Value
    from ..base.dtypes import ElementType

__all__ = [
    "apply_along_axis",
    "argwhere",
    "choose",
    "compress",
    "delete",
    "diag",
    "diag_indices",
    "diag_indices_from",
    "diagflat",
    "diagonal",
    "extract",
    "fill_diagonal",
    "flatnonzero",
    "insert",
    "nonzero",
    "put",
    "put_along_axis",
    "ravel_multi_index",
    "select",
    "take",
    "take_along_axis",
    "trace",
    "tril",
    "tril_indices",
    "tril_indices_from",
    "triu",
    "triu_indices",
    "triu_indices_from",
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

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.flatnonzero(jnp.array([[0, 5], [6, 0]]))
        Array([1, 2], dtype=int32)
    """
    return nonzero(ravel(a), size=size, fill_value=fill_value)[0]


def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The positions of elements that are not zero, one row for each.

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


@inner_jit(name="_take", static_argnums=(2, 3, 4))
def _take(x: Value, indices: Any, axis: Any, mode: str | None, fill_value: Value) -> Value:
    dt = dtype_of(x)
    shape, extra, rank = shape_of(x), len(shape_of(indices)), len(shape_of(x))
    n = shape[axis]
    if mode == "wrap" or mode != "clip" and not dtypes.is_unsigned(dtype_of(indices)):
        indices = wide_index(indices, n)
    if mode == "wrap":
        indices = el.rem(
            el.add(el.rem(indices, scalar_like(indices, n)), scalar_like(indices, n)), scalar_like(indices, n)
        )
    elif mode != "clip" and not dtypes.is_unsigned(dtype_of(indices)):
        indices = where_jit(el.lt(indices, scalar_like(indices, 0)), el.add(indices, scalar_like(indices, n)), indices)
    parsed = GatherScatterMode.CLIP if mode in ("clip", "wrap") else GatherScatterMode.from_any(mode)
    numbers = GatherDimensionNumbers((*range(axis), *range(axis + extra, rank - 1 + extra)), (axis,), (axis,))
    sizes = tuple(1 if d == axis else m for d, m in enumerate(shape))
    return gather(
        x,
        linear.broadcast_in_dim(indices, (*shape_of(indices), 1), tuple(range(extra))),
        numbers,
        sizes,
        mode=parsed,
        fill_value=gather_fill(dt, fill_value),
    )


def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The elements (or slices) at integer positions along an axis (None: of the flattened array).

    Out of bounds: NaN or the smallest integer (mode "fill", the default), the nearest element ("clip"), or wrapped
    round ("wrap").

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.take(jnp.array([10, 20]), jnp.array([1, 0]))
        Array([20, 10], dtype=int32)
    """
    no_out("take", out)
    x = on_device(operand("take", a))
    indices = on_device(operand("take", indices))
    indices = linear.convert(indices, dtypes.int32) if dtypes.is_bool(get_aval(indices).dtype) else indices
    if not dtypes.is_int(get_aval(indices).dtype):
        raise ValueError(f"take: indices must be integers, got {get_aval(indices)}. Convert them with astype(int).")
    if mode == "raise":
        raise NotImplementedError(
            "take: mode='raise' can't raise from a compiled program; use 'fill', 'clip' or 'wrap'."
        )
    if axis is None:
        x, axis = ravel(x), 0
    axis = canonical_axis(axis, len(shape_of(x)))
    if shape_of(x)[axis] == 0:
        if math.prod(shape_of(indices)):
            raise IndexError(f"take: can't take from the empty axis {axis} of shape {shape_of(x)}.")
        return linear.full((*shape_of(x)[:axis], *shape_of(indices), *shape_of(x)[axis + 1 :]), 0, dtype_of(x))
    index = linear.convert(indices, dtypes.int32) if get_aval(indices).weak_type else indices
    return _take(x, index, axis, mode, fill_value)


@inner_jit(name="take_along_axis", static_argnums=(2, 3, 4, 5))
def _take_along(x: Value, indices: Any, axis: Any, mode: str | None, fill_value: Value, wrap: bool) -> Value:
    shape, rank = shape_of(x), len(shape_of(x))
    n = shape[axis]
    if wrap:
        indices = el.select_n_p.bind(
            el.lt(indices, scalar_like(indices, 0)), indices, el.add(indices, scalar_like(indices, n))
        )
    others = [d for d in range(rank) if d != axis]
    lead = broadcast_shapes([tuple(shape[d] for d in others), tuple(shape_of(indices)[d] for d in others)])
    wide = list(lead)
    wide.insert(axis, n)
    x = broadcast_to(x, tuple(wide))
    wide[axis] = shape_of(indices)[axis]
    indices = broadcast_to(indices, tuple(wide))
    batch = tuple(others)
    numbers = GatherDimensionNumbers((), (axis,), (axis,), batch, batch)
    parsed = GatherScatterMode.from_any(mode)
    return gather(
        x,
        linear.reshape(indices, (*wide, 1)),
        numbers,
        (1,) * rank,
        mode=parsed,
        fill_value=gather_fill(dtype_of(x), fill_value),
    )


def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: str | None = None,
    fill_value: ArrayLike | None = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Array:
    """Elements along an axis at positions that differ from row to row; other axes broadcast.

    Negative positions count from the end, but with wrap_negative_indices=False they are out of bounds.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.take_along_axis(jnp.array([[1, 2], [3, 4]]), jnp.array([[1], [0]]), 1).tolist()
        [[2], [3]]
    """
    x, indices = on_device(operand("take_along_axis", arr)), on_device(operand("take_along_axis", indices))
    if not dtypes.is_int(get_aval(indices).dtype):
        raise TypeError(f"take_along_axis: indices must be integers, got {get_aval(indices)}.")
    if axis is None:
        if len(shape_of(indices)) != 1:
            raise ValueError("take_along_axis: indices must be 1D if axis=None.")
        x, axis = ravel(x), 0
    if len(shape_of(x)) != len(shape_of(indices)):
        raise ValueError(
            f"take_along_axis: indices and arr must have the same number of dimensions; got shapes {shape_of(indices)}"
            f" and {shape_of(x)}."
        )
    wrap = mode != "promise_in_bounds" if wrap_negative_indices is None else bool(wrap_negative_indices)
    dt = _index_dtype([indices], shape_of(x))
    return _take_along(x, narrowed(indices, dt), canonical_axis(axis, len(shape_of(x))), mode, fill_value, wrap)


def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Array:
    """A new array with `values` at positions that differ from row to row along an axis; give inplace=False.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.put_along_axis(jnp.zeros((2, 2)), jnp.array([[1], [0]]), 9., 1, inplace=False).tolist()
        [[0.0, 9.0], [9.0, 0.0]]
    """
    if inplace:
        raise ValueError("arrays are immutable: call put_along_axis with inplace=False and use its result.")
    x, indices = on_device(operand("put_along_axis", arr)), on_device(operand("put_along_axis", indices))
    if axis is None:
        return put_along_axis(ravel(x), indices, values, 0, False, mode=mode).reshape(shape_of(x))
    axis = canonical_axis(axis, len(shape_of(x)))
    shape = shape_of(indices)
    index = tuple(
        (
            indices
            if d == axis
            else linear.reshape(
                ops.iota(dtypes.int32, (shape_of(x)[d],), 0),
                tuple(shape_of(x)[d] if e == d else 1 for e in range(len(shape))),
            )
        )
        for d in range(len(shape))
    )
    return x.at[index].set(values, mode=mode)


def put(a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True) -> Array:
    """A new array with `v` at flat positions; give inplace=False.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.put(jnp.zeros(3), jnp.array([1]), 5., inplace=False)
        Array([0., 5., 0.], dtype=float32)
    """
    if inplace:
        raise ValueError("arrays are immutable: call put with inplace=False and use its result.")
    if mode == "raise":
        raise NotImplementedError("put: mode='raise' can't raise from a compiled program; use 'clip' or 'wrap'.")
    if mode not in (None, "clip", "wrap"):
        raise ValueError(f"put: mode takes 'clip' or 'wrap', got {mode!r}.")
    x, ind = on_device(operand("put", a)), ravel(ind)
    values = ravel(v)
    n, size = shape_of(ind)[0], math.prod(shape_of(x))
    if not shape_of(values)[0] or not n or not size:
        return x
    values = take_rows(
        values, el.rem(ops.iota(dtypes.int32, (n,), 0), linear.full((n,), shape_of(values)[0], dtypes.int32)), 0
    )
    ind = wide_index(ind, size)
    low = -size if mode is None and not dtypes.is_unsigned(dtype_of(ind)) else 0
    ind = (
        el.rem(ind, scalar_like(ind, size))
        if mode == "wrap"
        else el.clamp(scalar_like(ind, low), ind, scalar_like(ind, size - 1))
    )
    return ravel(x).at[ind].set(values, mode="drop").reshape(shape_of(x))


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

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.extract(jnp.array([True, False]), jnp.array([1, 2]))
        Array([1], dtype=int32)
    """
    return compress(ravel(condition), arr, size=size, fill_value=fill_value)


def choose(a: ArrayLike, choices: Array | Sequence[ArrayLike], out: None = None, mode: str = "raise") -> Array:
    """For each element, that of the array in `choices` which `a` names.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.choose(jnp.array([1, 0]), [jnp.array([1, 2]), jnp.array([3, 4])])
        Array([3, 2], dtype=int32)
    """
    no_out("choose", out)
    x = operand("choose", a)
    choices = [linear.convert(v, dtype_of(v)) for v in promote("choose", *choices)]
    n = len(choices)
    if not dtypes.is_int(get_aval(x).dtype):
        raise ValueError(f"choose: a must be integers, got {get_aval(x)}. Convert it with astype(int).")
    x = wide_index(x, n)
    if mode == "clip":
        x = el.clamp(scalar_like(x, 0), x, scalar_like(x, n - 1))
    elif mode == "wrap":
        x = el.rem(el.add(el.rem(x, scalar_like(x, n)), scalar_like(x, n)), scalar_like(x, n))
    elif isinstance(x, Tracer):
        raise ConcretizationTypeError(
            concretization_error(x, "choose with mode='raise' looks at the values; use mode='clip' or 'wrap'")
        )
    elif any(not 0 <= v < n for v in flat_host(x)):
        raise ValueError("choose: invalid entry in choice array.")
    shape = broadcast_shapes([shape_of(v) for v in (x, *choices)])
    return el.select_n_p.bind(
        linear.convert(broadcast_to(x, shape), dtypes.int32), *[broadcast_to(c, shape) for c in choices]
    )


@inner_jit(name="_diag", static_argnums=(1,))
def _diag(v: Value, k: int) -> Value:
    v = ops.pad(v, scalar_like(v, 0), ((max(0, k), max(0, -k), 0),))
    n = shape_of(v)[0]
    rows, columns = ops.iota(dtypes.int32, (n, n), 0), ops.iota(dtypes.int32, (n, n), 1)
    on_diagonal = el.eq(el.add(rows, scalar_like(rows, k)), columns)
    # column j holds element j for k >= 0, row i element i for k < 0
    return where_jit(on_diagonal, linear.expand_dims(v, (0 if k else 1,)), scalar_like(v, 0))


def diag(v: ArrayLike, k: int = 0) -> Array:
    """A matrix with `v` on its k-th diagonal, or the k-th diagonal of a matrix.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.diag(jnp.array([1, 2])).tolist()
        [[1, 0], [0, 2]]
    """
    x, k = on_device(operand("diag", v)), static_int("k", k)
    rank = len(shape_of(x))
    if rank == 1:
        return _diag(x, k)
    if rank == 2:
        return diagonal(x, k)
    raise ValueError(f"diag input must be 1d or 2d, got shape {shape_of(x)}.")


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """A matrix with the flattened `v` on its k-th diagonal.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.diagflat(jnp.array([1, 2])).tolist()
        [[1, 0], [0, 2]]
    """
    return strong(_diag(ravel(v), static_int("k", k)))


def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonal of two axes, as the last axis.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.diagonal(jnp.array([[1, 2], [3, 4]]))
        Array([1, 4], dtype=int32)
    """
    x = on_device(operand("diagonal", a))
    if len(shape_of(x)) < 2:
        raise ValueError(f"diagonal requires an array of at least two dimensions, got shape {shape_of(x)}.")
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    n, m = shape_of(x)[-2:]
    offset = static_int("offset", offset)
    length = max(0, min(n + min(offset, 0), m - max(offset, 0)))
    i = ops.iota(dtypes.int32, (length,), 0)
    rows, columns = el.add(i, scalar_like(i, max(0, -offset))), el.add(i, scalar_like(i, max(0, offset)))
    return strong(x[..., rows, columns])


@inner_jit(name="trace", static_argnums=(2, 3, 4))
def _trace(x: Value, offset: Value, axis1: int, axis2: int, dt: ElementType) -> Value:
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    shape = shape_of(x)
    rows, columns = ops.iota(dtypes.int32, shape[-2:], 0), ops.iota(dtypes.int32, shape[-2:], 1)
    mask = el.eq(el.add(rows, broadcast_to(linear.convert(offset, dtypes.int32), shape[-2:])), columns)
    masked = where_jit(mask, x, linear.full(shape, 0, dtype_of(x)))
    return linear.reduce_sum(linear.convert(masked, dt), (len(shape) - 2, len(shape) - 1))


def trace(
    a: ArrayLike,
    offset: int | ArrayLike = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """The sum of the diagonal of two axes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.trace(jnp.array([[1, 2], [3, 4]]))
        Array(5, dtype=int32)
    """
    no_out("trace", out)
    x = operand("trace", a)
    if len(shape_of(x)) < 2:
        raise ValueError(f"trace takes arrays of rank 2 or more, got shape {shape_of(x)}.")
    if canonical_axis(int(axis1), len(shape_of(x))) == canonical_axis(int(axis2), len(shape_of(x))):
        raise ValueError(f"trace: axis1 and axis2 must differ, got {axis1} and {axis2}.")
    offset = operand("trace", offset)
    if not dtypes.is_int(dtype_of(offset)) or shape_of(offset):
        raise ValueError(f"trace: offset must be an integer, got {get_aval(offset)}.")
    return _trace(x, offset, int(axis1), int(axis2), asked_dtype("trace", dtype) or accumulator(get_aval(x).dtype))


def _triangle(x: Any, k: int, below: bool) -> Array:
    shape = shape_of(x)
    mask = lower_mask(shape[-2], shape[-1], k if below else k - 1)
    if len(shape) > 2:
        mask = linear.broadcast_in_dim(mask, shape, (len(shape) - 2, len(shape) - 1))
    zeros = linear.full(shape, 0, dtype_of(x), get_aval(x).weak_type)
    return el.select_n_p.bind(mask, zeros, x) if below else el.select_n_p.bind(mask, x, zeros)


@inner_jit(name="tril", static_argnums=(1,))
def _tril(x: Any, k: int) -> Array:
    return _triangle(x, k, True)


@inner_jit(name="triu", static_argnums=(1,))
def _triu(x: Any, k: int) -> Array:
    return _triangle(x, k, False)


def _matrix(name: str, m: ArrayLike) -> Any:
    x = operand(name, m)
    if len(shape_of(x)) < 2:
        raise ValueError(f"{name} takes arrays of rank 2 or more, got shape {shape_of(x)}.")
    return x


def tril(m: ArrayLike, k: int = 0) -> Array:
    """The array with everything above the k-th diagonal set to zero, over the last two axes.

    Example:
        >>> import weft.numpy as jnp
        >>> y = jnp.tril(jnp.ones((2, 2)))
    """
    return _tril(_matrix("tril", m), static_int("k", k))


def triu(m: ArrayLike, k: int = 0) -> Array:
    """The array with everything below the k-th diagonal set to zero, over the last two axes.

    Example:
        >>> import weft.numpy as jnp
        >>> y = jnp.triu(jnp.ones((2, 2)))
    """
    return _triu(_matrix("triu", m), static_int("k", k))


def _columns(pairs: list[tuple[int, int]]) -> tuple[Array, Array]:
    return array([i for i, _ in pairs], index_dtype()), array([j for _, j in pairs], index_dtype())


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The positions at and below the k-th diagonal of an n × m matrix.

    Example:
        >>> import weft.numpy as jnp
        >>> [i.tolist() for i in jnp.tril_indices(2)]
        [[0, 1, 1], [0, 0, 1]]
    """
    canonical_shape((n, n if m is None else m))
    pairs = [(i, j) for i in range(n) for j in range(min(n if m is None else m, max(0, i + k + 1)))]
    return _columns(pairs)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The positions at and above the k-th diagonal of an n × m matrix.

    Example:
        >>> import weft.numpy as jnp
        >>> [i.tolist() for i in jnp.triu_indices(2)]
        [[0, 0, 1], [0, 1, 1]]
    """
    pairs = [(i, j) for i in range(n) for j in range(max(0, i + k), n if m is None else m)]
    return _columns(pairs)


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """`tril_indices` for the shape of a matrix.

    Example:
        >>> import weft.numpy as jnp
        >>> [i.tolist() for i in jnp.tril_indices_from(jnp.eye(2))]
        [[0, 1, 1], [0, 0, 1]]
    """
    n, m = shape_of(operand("tril_indices_from", arr))
    return tril_indices(n, k, m)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """`triu_indices` for the shape of a matrix.

    Example:
        >>> import weft.numpy as jnp
        >>> [i.tolist() for i in jnp.triu_indices_from(jnp.eye(2))]
        [[0, 0, 1], [0, 1, 1]]
    """
    n, m = shape_of(operand("triu_indices_from", arr))
    return triu_indices(n, k, m)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The positions of the main diagonal of an array with `ndim` axes of size n.

    Example:
        >>> import weft.numpy as jnp
        >>> [i.tolist() for i in jnp.diag_indices(2)]
        [[0, 1], [0, 1]]
    """
    return (ops.iota(index_dtype(), (n,), 0),) * ndim


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """`diag_indices` for the shape of an array.

    Example:
        >>> import weft.numpy as jnp
        >>> [i.tolist() for i in jnp.diag_indices_from(jnp.eye(2))]
        [[0, 1], [0, 1]]
    """
    shape = shape_of(operand("diag_indices_from", arr))
    if len(set(shape)) != 1 or len(shape) < 2:
        raise ValueError(f"diag_indices_from takes arrays whose axes have one size, got shape {shape}.")
    return diag_indices(shape[0], len(shape))


def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True) -> Array:
    """A new array with `val` on its main diagonal; give inplace=False.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fill_diagonal(jnp.zeros((2, 2)), 3., inplace=False).tolist()
        [[3.0, 0.0], [0.0, 3.0]]
    """
    if wrap:
        raise NotImplementedError(
            "fill_diagonal: wrap=True is not supported; fill the blocks of a tall matrix one by one."
        )
    if inplace:
        raise NotImplementedError("arrays are immutable: call fill_diagonal with inplace=False and use its result.")
    x = on_device(operand("fill_diagonal", a))
    n = min(shape_of(x))
    i = ops.iota(dtypes.int32, (n,), 0)
    val = ravel(val)
    m = shape_of(val)[0]
    val = val[:n] if m >= n or not m else val[el.rem(i, scalar_like(i, m))]
    return x.at[(i,) * len(shape_of(x))].set(val)


def delete(
    arr: ArrayLike, obj: ArrayLike | slice, axis: int | None = None, *, assume_unique_indices: bool = False
) -> Array:
    """The array without the slices at concrete positions along an axis (None: of the flattened array).

    With `assume_unique_indices` an array of distinct positions may be traced.

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
    if shape_of(at) == (1,):  # all of the values go there
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
    if have is not None and dtypes.is_int(have) and math.prod(dims) - 1 > dtypes.iinfo(have).max:
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
