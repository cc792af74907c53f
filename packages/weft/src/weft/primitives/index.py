"""Dynamic slices, gather and scatter."""

from __future__ import annotations

import enum
import itertools
import math
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Sequence

from ..base import dtypes
from ..base.avals import as_size, shaped, tangent_aval
from ..core.interpret import interpret
from ..core.primitive import Primitive, Zero, param_type
from ..core.trace import get_aval
from ..base.errors import type_error
from ..base.host import np
from .elementwise import add, div as _div, eq, mul, neg, select
from .linear import broadcast_to_axis, convert, expand_dims, full, moveaxis, reshape, zeros
from .rules import check_kind, dtype_of, is_linear_arg, scalar_like, shape_of
from .shape import concatenate, iota

if TYPE_CHECKING:
    from ..base.avals import ShapedArray
    from ..core.trace import Axis
    from ..core.types import Dims, ElementType, Params, Shape, Size, Value

# dynamic_slice, dynamic_update_slice ---------------------------------------------------------------------------------

dynamic_slice_p = Primitive("dynamic_slice")
dynamic_update_slice_p = Primitive("dynamic_update_slice")


def _check_starts(name: str, x: Value, starts: Sequence[Value]) -> None:
    if len(starts) != len(x.shape):
        raise type_error(f"{name}: {len(starts)} start indices for an operand of shape {x.shape}.")
    if any(s.shape or not dtypes.is_int(s.dtype) for s in starts):
        raise type_error(f"{name}: start indices must be integer scalars, got {', '.join(map(format, starts))}.")


def _dynamic_slice_abstract(x: ShapedArray, *starts: Any, slice_sizes: Shape) -> ShapedArray:
    _check_starts("dynamic_slice", x, starts)
    if len(slice_sizes) != len(x.shape) or any(not 0 <= s <= n for s, n in zip(slice_sizes, x.shape)):
        raise type_error(f"dynamic_slice: slice_sizes {slice_sizes} must not exceed the operand's shape {x.shape}.")
    return shaped(slice_sizes, x.dtype, x.weak_type)


def _window(x_shape: Shape, starts: Sequence[Value], sizes: Sequence[Size]) -> Value:
    begin = [int(np.clip(int(s), 0, n - m)) for s, n, m in zip(starts, x_shape, sizes)]
    return tuple(slice(b, b + m) for b, m in zip(begin, sizes))


def _dynamic_slice_jvp(
    primals: Sequence[Value], tangents: Sequence[Value], *, slice_sizes: Shape
) -> tuple[Value, Value]:
    out = dynamic_slice_p.bind(*primals, slice_sizes=slice_sizes)
    t = tangents[0]
    return out, (
        Zero(tangent_aval(get_aval(out)))
        if type(t) is Zero
        else dynamic_slice_p.bind(t, *primals[1:], slice_sizes=slice_sizes)
    )


def _dynamic_slice_transpose(ct: Value, x: Value, *starts: Any, slice_sizes: Shape) -> list[Value | None]:
    return [dynamic_update_slice_p.bind(zeros(x.aval), ct, *starts)] + [None] * len(starts)


def _dynamic_slice_batch(axis: Axis, args: Sequence[Value], dims: Dims, *, slice_sizes: Shape) -> tuple[Value, Any]:
    x, *starts = args
    if all(d is None for d in dims[1:]):
        x = moveaxis(x, dims[0], 0)
        return (
            dynamic_slice_p.bind(
                x, scalar_like(starts[0], 0) if starts else 0, *starts, slice_sizes=(axis.size, *slice_sizes)
            ),
            0,
        )
    numbers = GatherDimensionNumbers(tuple(range(len(slice_sizes))), (), tuple(range(len(slice_sizes))), (), ())
    index = _stack_starts(axis, starts, dims[1:])
    return gather_p.batch(
        axis,
        [x, index],
        [dims[0], 0],
        dimension_numbers=numbers,
        slice_sizes=slice_sizes,
        indices_are_sorted=True,
        unique_indices=True,
        mode=GatherScatterMode.CLIP,
        fill_value=None,
    )


def _stack_starts(axis: Axis, starts: Sequence[Value], dims: Dims) -> Value:
    # 0 beside an int32 is an int64 where 64-bit types are on
    dt = max([dtype_of(s) for s in starts], key=dtypes.bits)
    cols = [broadcast_to_axis(s, axis.size) if d is None else s for s, d in zip(starts, dims)]
    return concatenate([expand_dims(convert(c, dt), (1,)) for c in cols], 1)


dynamic_slice_p.abstract, dynamic_slice_p.jvp = _dynamic_slice_abstract, _dynamic_slice_jvp
dynamic_slice_p.transpose, dynamic_slice_p.batch = _dynamic_slice_transpose, _dynamic_slice_batch
dynamic_slice_p.reference = lambda x, *starts, slice_sizes: x[_window(x.shape, starts, slice_sizes)]


def _dynamic_update_abstract(x: ShapedArray, update: ShapedArray, *starts: Any) -> ShapedArray:
    _check_starts("dynamic_update_slice", x, starts)
    if (
        x.dtype != update.dtype
        or len(update.shape) != len(x.shape)
        or any(m > n for m, n in zip(update.shape, x.shape))
    ):
        raise type_error(f"dynamic_update_slice: update {update} does not fit into operand {x}.")
    return shaped(x.shape, x.dtype, x.weak_type and update.weak_type)


def _dynamic_update_reference(x: Value, update: Value, *starts: Any) -> Any:
    x = np.array(x)
    x[_window(x.shape, starts, update.shape)] = update
    return x


def _dynamic_update_jvp(primals: Sequence[Value], tangents: Sequence[Value]) -> tuple[Value, Value]:
    x, update, *starts = primals
    out = dynamic_update_slice_p.bind(*primals)
    tx, tu = tangents[:2]
    if type(tx) is Zero and type(tu) is Zero:
        return out, Zero(tangent_aval(get_aval(out)))
    tx = full(shape_of(x), 0, dtype_of(x)) if type(tx) is Zero else tx
    tu = full(shape_of(update), 0, dtype_of(x)) if type(tu) is Zero else tu
    return out, dynamic_update_slice_p.bind(tx, tu, *starts)


def _dynamic_update_transpose(ct: Value, x: Value, update: Value, *starts: Any) -> list[Value | None]:
    sizes = update.aval.shape if is_linear_arg(update) else shape_of(update)
    ct_x = dynamic_update_slice_p.bind(ct, full(sizes, 0, dtype_of(ct)), *starts) if is_linear_arg(x) else None
    ct_u = dynamic_slice_p.bind(ct, *starts, slice_sizes=sizes) if is_linear_arg(update) else None
    return [ct_x, ct_u] + [None] * len(starts)


def _dynamic_update_batch(axis: Axis, args: Sequence[Value], dims: Dims) -> tuple[Value, Any]:
    x, update, *starts = args
    x = broadcast_to_axis(x, axis.size) if dims[0] is None else moveaxis(x, dims[0], 0)
    if all(d is None for d in dims[2:]):
        update = broadcast_to_axis(update, axis.size) if dims[1] is None else moveaxis(update, dims[1], 0)
        return dynamic_update_slice_p.bind(x, update, scalar_like(starts[0], 0) if starts else 0, *starts), 0
    rank = len(shape_of(x)) - 1
    numbers = ScatterDimensionNumbers(tuple(range(rank)), (), tuple(range(rank)), (), ())
    index = _stack_starts(axis, starts, dims[2:])
    return scatter_p.batch(
        axis,
        [x, index, update],
        [0, 0, dims[1]],
        dimension_numbers=numbers,
        indices_are_sorted=True,
        unique_indices=True,
        mode=GatherScatterMode.CLIP,
        update_jaxpr=None,
        update_consts=(),
    )


dynamic_update_slice_p.abstract, dynamic_update_slice_p.reference = _dynamic_update_abstract, _dynamic_update_reference
dynamic_update_slice_p.jvp, dynamic_update_slice_p.transpose = _dynamic_update_jvp, _dynamic_update_transpose
dynamic_update_slice_p.batch = _dynamic_update_batch

# gather --------------------------------------------------------------------------------------------------------------


@param_type
class GatherScatterMode(enum.Enum):
    """What happens to indices out of bounds: CLIP moves them in, FILL_OR_DROP reads a fill value and drops updates,
    PROMISE_IN_BOUNDS leaves it open. ONE_HOT drops updates as FILL_OR_DROP does, and is a mode of scatters only."""

    CLIP = 0
    FILL_OR_DROP = 1
    PROMISE_IN_BOUNDS = 2
    ONE_HOT = 3

    @staticmethod
    def from_any(s: Value) -> Value:
        if isinstance(s, GatherScatterMode):
            return s
        if s == "clip":
            return GatherScatterMode.CLIP
        if s is None or s in ("fill", "drop"):
            return GatherScatterMode.FILL_OR_DROP
        if s == "promise_in_bounds":
            return GatherScatterMode.PROMISE_IN_BOUNDS
        if s == "one_hot":
            return GatherScatterMode.ONE_HOT
        raise ValueError(
            f"unknown mode {s!r} of a gather or scatter; use 'clip', 'fill', 'drop' or 'promise_in_bounds'."
        )


@param_type
class GatherDimensionNumbers(NamedTuple):
    """How a gather's operand, indices and result correspond, as in XLA."""

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


@param_type
class ScatterDimensionNumbers(NamedTuple):
    """How a scatter's operand, indices and updates correspond, as in XLA."""

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


gather_p = Primitive("gather")


def _check_axes(name: str, rank: int, increasing: bool = True, **axes: Any) -> None:
    """Dimension numbers must be distinct axes of an array of `rank`, most of them in order."""
    for what, dims in axes.items():
        if len(set(dims)) != len(dims) or any(not 0 <= d < rank for d in dims):
            raise type_error(f"{name}: {what} {tuple(dims)} must be distinct and lie in 0 … {rank - 1}.")
        if increasing and list(dims) != sorted(dims):
            raise type_error(f"{name}: {what} {tuple(dims)} must be sorted.")


def _check_apart(name: str, batching: Sequence[int], **axes: Sequence[int]) -> None:
    """Axes along which an array is batched have no other part."""
    for what, dims in axes.items():
        if set(dims) & set(batching):
            raise type_error(
                f"{name}: {what} {tuple(dims)} and operand_batching_dims {tuple(batching)} must have no axis in common."
            )


def _check_batching(
    name: str, x: Value, indices: Value, operand_dims: Sequence[int], indices_dims: Sequence[int]
) -> None:
    sizes = [[a.shape[d] for d in dims] for a, dims in ((x, operand_dims), (indices, indices_dims))]
    if sizes[0] != sizes[1]:
        raise type_error(
            f"{name}: the operand's batching dimensions {tuple(operand_dims)} and those of the indices"
            f" {tuple(indices_dims)} must have the same sizes, got {sizes[0]} and {sizes[1]}."
        )


def _holds(dt: ElementType, value: Any) -> bool:
    """Whether a number becomes an element of a dtype without wrapping round or losing a part."""
    if dtypes.is_int(dt):
        return isinstance(value, (bool, int, float)) and dtypes.iinfo(dt).min <= value <= dtypes.iinfo(dt).max
    return dtypes.is_key(dt) or dtypes.is_complex(dt) or not isinstance(value, complex)


def _gather_abstract(
    x: ShapedArray,
    indices: ShapedArray,
    *,
    dimension_numbers: Any,
    slice_sizes: Shape,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: Any,
    fill_value: Any,
) -> ShapedArray:
    dn = dimension_numbers
    if not dtypes.is_int(indices.dtype):
        raise ValueError(f"gather: indices must be integers, got {indices}.")
    if mode == GatherScatterMode.ONE_HOT:
        raise ValueError("gather: 'one_hot' is a mode of scatters; use 'clip', 'fill' or 'promise_in_bounds'.")
    if len(slice_sizes) != len(x.shape) or any(not 0 <= s <= n for s, n in zip(slice_sizes, x.shape)):
        raise type_error(f"gather: slice_sizes {slice_sizes} must not exceed the operand's shape {x.shape}.")
    if not indices.shape or indices.shape[-1] != len(dn.start_index_map):
        raise type_error(
            f"gather: the indices' last axis must have one entry for each of start_index_map {dn.start_index_map}, got"
            f" shape {indices.shape}."
        )
    window = [
        s for d, s in enumerate(slice_sizes) if d not in dn.collapsed_slice_dims and d not in dn.operand_batching_dims
    ]
    if len(window) != len(dn.offset_dims):
        raise type_error(
            f"gather: offset_dims {dn.offset_dims} must name one axis for each of the {len(window)} axes of a slice."
        )
    rank = len(indices.shape) - 1 + len(window)
    _check_axes("gather", rank, offset_dims=dn.offset_dims)
    _check_axes(
        "gather",
        len(x.shape),
        collapsed_slice_dims=dn.collapsed_slice_dims,
        operand_batching_dims=dn.operand_batching_dims,
    )
    _check_apart(
        "gather",
        dn.operand_batching_dims,
        collapsed_slice_dims=dn.collapsed_slice_dims,
        start_index_map=dn.start_index_map,
    )
    _check_axes("gather", len(x.shape), False, start_index_map=dn.start_index_map)
    _check_axes("gather", len(indices.shape) - 1, False, start_indices_batching_dims=dn.start_indices_batching_dims)
    _check_batching("gather", x, indices, dn.operand_batching_dims, dn.start_indices_batching_dims)
    if any(
        not isinstance(s := slice_sizes[d], int) or s != 1 and (s, x.shape[d]) != (0, 0)
        for d in (*dn.collapsed_slice_dims, *dn.operand_batching_dims)
    ):
        raise type_error(
            f"gather: slice_sizes {slice_sizes} must be 1, or 0 of an empty axis, along collapsed_slice_dims"
            f" {dn.collapsed_slice_dims} and operand_batching_dims {dn.operand_batching_dims} of the operand's shape"
            f" {x.shape}."
        )
    if fill_value is not None and not _holds(x.dtype, fill_value):
        raise type_error(f"gather: the fill_value {fill_value!r} is no {dtypes.name(x.dtype)}.")
    window_sizes, batch_sizes = iter(window), iter(indices.shape[:-1])
    return shaped(
        tuple(next(window_sizes) if d in dn.offset_dims else next(batch_sizes) for d in range(rank)),
        x.dtype,
        x.weak_type,
    )


def _positions(
    shape: Sequence[Size],
    indices: Value,
    dn_batch_dims: Sequence[int],
    indices_batch_dims: Sequence[int],
    start_map: Sequence[int],
    window_dims: Sequence[int],
    window_shape: Shape,
) -> tuple[Value, Value]:
    """Full operand indices of every element of every window: integer arrays of shape (batch…, window…), one per
    operand axis.
    """
    batch_shape = indices.shape[:-1]
    nb, nw = len(batch_shape), len(window_shape)
    rank = len(shape)
    full_index = [np.zeros((1,) * (nb + nw), np.int64) for _ in range(rank)]
    starts = (np.minimum(indices, np.iinfo(np.int64).max) if indices.dtype == np.uint64 else indices).astype(np.int64)
    for k, d in enumerate(start_map):
        full_index[d] = starts[..., k].reshape(batch_shape + (1,) * nw)
    for d, b in zip(dn_batch_dims, indices_batch_dims):
        grid = [1] * (nb + nw)
        grid[b] = batch_shape[b]
        full_index[d] = np.arange(batch_shape[b]).reshape(grid)
    offsets = [np.zeros((1,) * (nb + nw), np.int64) for _ in range(rank)]
    for k, d in enumerate(window_dims):
        grid = [1] * (nb + nw)
        grid[nb + k] = window_shape[k]
        offsets[d] = np.arange(window_shape[k]).reshape(grid)
    return full_index, offsets


def _gather_reference(
    x: Value,
    indices: Value,
    *,
    dimension_numbers: Any,
    slice_sizes: Shape,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: Any,
    fill_value: Any,
) -> Any:
    dn = dimension_numbers
    window_dims = [d for d in range(x.ndim) if d not in dn.collapsed_slice_dims and d not in dn.operand_batching_dims]
    window_shape = tuple(slice_sizes[d] for d in window_dims)
    starts, offsets = _positions(
        x.shape,
        indices,
        dn.operand_batching_dims,
        dn.start_indices_batching_dims,
        dn.start_index_map,
        window_dims,
        window_shape,
    )
    shape = indices.shape[:-1] + window_shape
    inside = np.ones(shape, bool)
    at = []
    for d in range(x.ndim):
        limit = x.shape[d] - slice_sizes[d]
        inside = inside & ((starts[d] >= 0) & (starts[d] <= limit))
        at.append(np.broadcast_to(np.clip(starts[d], 0, max(limit, 0)) + offsets[d], shape))
    if x.size == 0 or not all(shape):
        out = np.full(shape, gather_fill(x.dtype, fill_value), x.dtype)
    else:
        out = x[tuple(at)]
        if mode == GatherScatterMode.FILL_OR_DROP:
            out = np.where(inside, out, np.array(gather_fill(x.dtype, fill_value), x.dtype))
    nb = indices.ndim - 1
    order = []
    window_axes, batch_axes = iter(range(nb, nb + len(window_shape))), iter(range(nb))
    for d in range(out.ndim):
        order.append(next(window_axes) if d in dn.offset_dims else next(batch_axes))
    return out.transpose(order)


def gather_fill(dt: ElementType, fill_value: Value) -> Value:
    """The value read out of bounds: NaN, the smallest signed or the largest unsigned integer, unless the call names
    one.
    """
    if fill_value is not None or dtypes.is_key(dt):  # of keys, that of their words
        return fill_value
    if dtypes.is_inexact(dt):
        return math.nan
    if dtypes.is_bool(dt):
        return True
    info = dtypes.iinfo(dt)
    return int(info.min if dtypes.is_signed(dt) else info.max)


def _gather_jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Value, Value]:
    out = gather_p.bind(*primals, **params)
    t = tangents[0]
    if type(t) is Zero:
        return out, Zero(tangent_aval(get_aval(out)))
    return out, gather_p.bind(t, primals[1], **{**params, "fill_value": 0})


def _gather_transpose(
    ct: Value,
    x: Value,
    indices: Value,
    *,
    dimension_numbers: Any,
    slice_sizes: Shape,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: Any,
    fill_value: Any,
) -> list[Value | None]:
    dn = dimension_numbers
    numbers = ScatterDimensionNumbers(
        dn.offset_dims,
        dn.collapsed_slice_dims,
        dn.start_index_map,
        dn.operand_batching_dims,
        dn.start_indices_batching_dims,
    )
    return [
        scatter_add(
            zeros(x.aval),
            indices,
            ct,
            numbers,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            mode=mode,
        ),
        None,
    ]


def _gather_batch(
    axis: Axis,
    args: Sequence[Value],
    dims: Dims,
    *,
    dimension_numbers: Any,
    slice_sizes: Shape,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: Any,
    fill_value: Any,
) -> tuple[Value, Any]:
    (x, indices), (dx, di) = args, dims
    dn = dimension_numbers
    rest = dict(unique_indices=unique_indices, mode=mode, fill_value=fill_value)
    up = lambda ds: tuple(d + 1 for d in ds)
    if di is None:
        x = moveaxis(x, dx, 0)
        offset = _inserted(dn.offset_dims)
        numbers = GatherDimensionNumbers(
            offset,
            up(dn.collapsed_slice_dims),
            up(dn.start_index_map),
            up(dn.operand_batching_dims),
            dn.start_indices_batching_dims,
        )
        return (
            gather_p.bind(
                x,
                indices,
                dimension_numbers=numbers,
                slice_sizes=(axis.size, *slice_sizes),
                indices_are_sorted=indices_are_sorted,
                **rest,
            ),
            0,
        )
    indices = moveaxis(indices, di, 0)
    if dx is None:
        numbers = dn._replace(
            offset_dims=up(dn.offset_dims), start_indices_batching_dims=up(dn.start_indices_batching_dims)
        )
        return (
            gather_p.bind(
                x, indices, dimension_numbers=numbers, slice_sizes=slice_sizes, indices_are_sorted=False, **rest
            ),
            0,
        )
    x = moveaxis(x, dx, 0)
    numbers = GatherDimensionNumbers(
        up(dn.offset_dims),
        up(dn.collapsed_slice_dims),
        up(dn.start_index_map),
        (0, *up(dn.operand_batching_dims)),
        (0, *up(dn.start_indices_batching_dims)),
    )
    return (
        gather_p.bind(
            x,
            indices,
            dimension_numbers=numbers,
            slice_sizes=(0 if shape_of(x)[0] == 0 else 1, *slice_sizes),
            indices_are_sorted=indices_are_sorted,
            **rest,
        ),
        0,
    )


def _inserted(offset_dims: Sequence[int]) -> tuple[Value, ...]:
    """Offset axes after a new one at position 0."""
    return (0, *[d + 1 for d in offset_dims])


gather_p.abstract, gather_p.reference, gather_p.jvp = _gather_abstract, _gather_reference, _gather_jvp
gather_p.transpose, gather_p.batch = _gather_transpose, _gather_batch


def gather(
    x: Value,
    indices: Value,
    dimension_numbers: Any,
    slice_sizes: Sequence[Size],
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> Value:
    """Slices of `x` of size `slice_sizes` at `indices`, arranged by `dimension_numbers`."""
    mode = GatherScatterMode.from_any(mode)
    if mode != GatherScatterMode.FILL_OR_DROP:
        fill_value = None
    if (
        type(fill_value) is float
        and fill_value == 0
        and math.copysign(1, fill_value) < 0
        and dtypes.is_float(dtype_of(x))
    ):
        # Parameters are compared as numbers wherever programs are kept, and -0.0 equals 0.0: so the zero has its sign
        # from an operation.
        return neg(
            gather(
                neg(x),
                indices,
                dimension_numbers,
                slice_sizes,
                indices_are_sorted=indices_are_sorted,
                unique_indices=unique_indices,
                mode=mode,
                fill_value=0.0,
            )
        )
    return gather_p.bind(
        x,
        indices,
        dimension_numbers=dimension_numbers,
        slice_sizes=tuple(map(as_size, slice_sizes)),
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=mode,
        fill_value=fill_value,
    )


# scatter -------------------------------------------------------------------------------------------------------------


def _scatter_abstract(
    x: ShapedArray, indices: ShapedArray, updates: ShapedArray, *, dimension_numbers: Any, **_: Any
) -> ShapedArray:
    dn = dimension_numbers
    if not dtypes.is_int(indices.dtype):
        raise ValueError(f"scatter: indices must be integers, got {indices}.")
    if x.dtype != updates.dtype:
        raise type_error(f"scatter: operand and updates must have one dtype, got {x} and {updates}.")
    window = len(x.shape) - len(dn.inserted_window_dims) - len(dn.operand_batching_dims)
    if len(dn.update_window_dims) != window:
        raise type_error(
            f"scatter: update_window_dims {dn.update_window_dims} must name {window} axes for operand shape {x.shape}."
        )
    if len(updates.shape) != len(indices.shape) - 1 + window:
        raise type_error(f"scatter: updates of shape {updates.shape} do not fit indices of shape {indices.shape}.")
    if not indices.shape or indices.shape[-1] != len(dn.scatter_dims_to_operand_dims):
        raise type_error(
            f"scatter: the indices' last axis must have one entry for each of {dn.scatter_dims_to_operand_dims}, got"
            f" shape {indices.shape}."
        )
    _check_axes("scatter", len(updates.shape), update_window_dims=dn.update_window_dims)
    _check_axes(
        "scatter",
        len(x.shape),
        inserted_window_dims=dn.inserted_window_dims,
        operand_batching_dims=dn.operand_batching_dims,
    )
    _check_apart(
        "scatter",
        dn.operand_batching_dims,
        inserted_window_dims=dn.inserted_window_dims,
        scatter_dims_to_operand_dims=dn.scatter_dims_to_operand_dims,
    )
    _check_axes("scatter", len(x.shape), False, scatter_dims_to_operand_dims=dn.scatter_dims_to_operand_dims)
    _check_axes(
        "scatter", len(indices.shape) - 1, False, scatter_indices_batching_dims=dn.scatter_indices_batching_dims
    )
    _check_batching("scatter", x, indices, dn.operand_batching_dims, dn.scatter_indices_batching_dims)
    batch = tuple(n for d, n in enumerate(updates.shape) if d not in dn.update_window_dims)
    if batch != indices.shape[:-1]:
        raise type_error(f"scatter: updates have batch sizes {batch}, indices {indices.shape[:-1]}.")
    sizes = [n for d, n in enumerate(x.shape) if d not in dn.inserted_window_dims and d not in dn.operand_batching_dims]
    if any(not updates.shape[d] <= n for d, n in zip(dn.update_window_dims, sizes)):
        raise type_error(
            f"scatter: a window of updates of shape {updates.shape} along update_window_dims {dn.update_window_dims}"
            f" must not exceed the operand's shape {x.shape}."
        )
    return shaped(x.shape, x.dtype, x.weak_type)


def _scatter_primitive(name: str, combine: Callable[[Any, Any], Any] | None, *, arithmetic: bool = False) -> Primitive:
    primitive = Primitive(name)

    def abstract(x: ShapedArray, indices: ShapedArray, updates: ShapedArray, **params: Any) -> ShapedArray:
        if arithmetic:
            check_kind(name, x, "iufc")
        return _scatter_abstract(x, indices, updates, **params)

    def reference(
        x: Value,
        indices: Value,
        updates: Value,
        *,
        dimension_numbers: Any,
        indices_are_sorted: bool,
        unique_indices: bool,
        mode: Any,
        update_jaxpr: Any,
        update_consts: Any,
    ) -> Any:
        dn = dimension_numbers
        nb = indices.ndim - 1
        window_axes = list(dn.update_window_dims)
        batch_axes = [d for d in range(updates.ndim) if d not in window_axes]
        updates = updates.transpose(batch_axes + window_axes)
        window_dims = [
            d for d in range(x.ndim) if d not in dn.inserted_window_dims and d not in dn.operand_batching_dims
        ]
        window_shape = updates.shape[nb:]
        starts, offsets = _positions(
            x.shape,
            indices,
            dn.operand_batching_dims,
            dn.scatter_indices_batching_dims,
            dn.scatter_dims_to_operand_dims,
            window_dims,
            window_shape,
        )
        sizes = [1] * x.ndim
        for d, n in zip(window_dims, window_shape):
            sizes[d] = n
        shape = updates.shape
        inside = np.ones(shape, bool)
        at = []
        for d in range(x.ndim):
            limit = x.shape[d] - sizes[d]
            if mode == GatherScatterMode.CLIP:
                starts[d] = np.clip(starts[d], 0, max(limit, 0))
            inside = inside & ((starts[d] >= 0) & (starts[d] <= limit))
            at.append(np.broadcast_to(starts[d] + offsets[d], shape))
        out = np.array(x)
        for pos in itertools.product(*map(range, shape)):
            if inside[pos]:
                where = tuple(int(a[pos]) for a in at)
                out[where] = (
                    interpret(update_jaxpr, [np.asarray(out[where]), np.asarray(updates[pos])])[0]
                    if combine is None and update_jaxpr is not None
                    else (updates[pos] if combine is None else combine(out[where], updates[pos]))
                )
        return out

    def batch(
        axis: Axis,
        args: Sequence[Value],
        dims: Dims,
        *,
        dimension_numbers: Any,
        indices_are_sorted: bool,
        **params: Any,
    ) -> tuple[Value, Any]:
        x, indices, updates = [
            broadcast_to_axis(v, axis.size) if d is None else moveaxis(v, d, 0) for v, d in zip(args, dims)
        ]
        dn = dimension_numbers
        up = lambda ds: tuple(d + 1 for d in ds)
        numbers = ScatterDimensionNumbers(
            up(dn.update_window_dims),
            up(dn.inserted_window_dims),
            up(dn.scatter_dims_to_operand_dims),
            (0, *up(dn.operand_batching_dims)),
            (0, *up(dn.scatter_indices_batching_dims)),
        )
        return (
            primitive.bind(
                x, indices, updates, dimension_numbers=numbers, indices_are_sorted=indices_are_sorted, **params
            ),
            0,
        )

    primitive.abstract, primitive.reference, primitive.batch = abstract, reference, batch
    return primitive


scatter_p = _scatter_primitive("scatter", None)
scatter_add_p = _scatter_primitive("scatter-add", lambda a, b: a + b, arithmetic=True)
scatter_mul_p = _scatter_primitive("scatter-mul", lambda a, b: a * b, arithmetic=True)
scatter_min_p = _scatter_primitive("scatter-min", lambda a, b: min(a, b) if a == a and b == b else a + b)
scatter_max_p = _scatter_primitive("scatter-max", lambda a, b: max(a, b) if a == a and b == b else a + b)


def _gather_numbers(dn: ScatterDimensionNumbers) -> GatherDimensionNumbers:
    return GatherDimensionNumbers(
        dn.update_window_dims,
        dn.inserted_window_dims,
        dn.scatter_dims_to_operand_dims,
        dn.operand_batching_dims,
        dn.scatter_indices_batching_dims,
    )


def _window_sizes(dn: Any, x_shape: Shape, update_shape: Shape) -> tuple[Any, ...]:
    sizes, window = [], iter(dn.update_window_dims)
    for d in range(len(x_shape)):
        sizes.append(
            (0 if x_shape[d] == 0 else 1)
            if d in dn.inserted_window_dims or d in dn.operand_batching_dims
            else update_shape[next(window)]
        )
    return tuple(sizes)


def _read_back(ct: Value, indices: Value, dn: Any, update_shape: Shape, params: Params, fill: int = 0) -> Value:
    """The elements of `ct` where a scatter wrote; `fill` where it dropped the update."""
    return gather(
        ct,
        indices,
        _gather_numbers(dn),
        _window_sizes(dn, shape_of(ct), update_shape),
        indices_are_sorted=params["indices_are_sorted"],
        unique_indices=params["unique_indices"],
        mode=params["mode"],
        fill_value=fill,
    )


def _scatter_linear(primitive: Primitive, sign: Callable[[Value], Value]) -> None:
    """The rules of a scatter that is linear in the array and the updates."""

    def jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Value, Value]:
        x, indices, updates = primals
        out = primitive.bind(*primals, **params)
        tx, _, tu = tangents
        if type(tx) is Zero and type(tu) is Zero:
            return out, Zero(tangent_aval(get_aval(out)))
        tx = full(shape_of(x), 0, dtype_of(x)) if type(tx) is Zero else tx
        tu = full(shape_of(updates), 0, dtype_of(x)) if type(tu) is Zero else tu
        return out, primitive.bind(tx, indices, tu, **params)

    def transpose(
        ct: Value, x: Value, indices: Value, updates: Value, *, dimension_numbers: Any, **params: Any
    ) -> list[Value | None]:
        update_shape = updates.aval.shape if is_linear_arg(updates) else shape_of(updates)
        return [
            ct if is_linear_arg(x) else None,
            None,
            sign(_read_back(ct, indices, dimension_numbers, update_shape, params)) if is_linear_arg(updates) else None,
        ]

    primitive.jvp, primitive.transpose = jvp, transpose


scatter_sub_p = _scatter_primitive("scatter-sub", lambda a, b: a - b, arithmetic=True)
scatter_sub_p.basic = False
scatter_sub_p.decompose = lambda x, indices, updates, **params: scatter_add_p.bind(x, indices, neg(updates), **params)
_scatter_linear(scatter_add_p, lambda ct: ct)
_scatter_linear(scatter_sub_p, neg)


def _scatter_jvp(
    primals: Sequence[Value], tangents: Sequence[Value], *, dimension_numbers: Any, **params: Any
) -> tuple[Value, Value]:
    """Which update wins where several write to one place is found by scattering their numbers; only the winner has a
    tangent.
    """
    x, indices, updates = primals
    tx, _, tu = tangents
    out = scatter_p.bind(*primals, dimension_numbers=dimension_numbers, **params)
    if type(tx) is Zero and type(tu) is Zero:
        return out, Zero(tangent_aval(get_aval(out)))
    dt = dtype_of(x)
    tx = full(shape_of(x), 0, dt) if type(tx) is Zero else tx
    tu = full(shape_of(updates), 0, dt) if type(tu) is Zero else tu
    if params["unique_indices"]:
        return out, scatter_p.bind(tx, indices, tu, dimension_numbers=dimension_numbers, **params)
    shape = shape_of(updates)
    numbers = add(reshape(iota(dtypes.int32, (math.prod(shape),), 0), shape), full((), 1, dtypes.int32))
    written = scatter_p.bind(
        full(shape_of(x), 0, dtypes.int32), indices, numbers, dimension_numbers=dimension_numbers, **params
    )
    winner = _read_back(written, indices, dimension_numbers, shape, params)
    kept_x = select(eq(written, full((), 0, dtypes.int32)), tx, full(shape_of(x), 0, dt))
    kept_u = select(eq(winner, numbers), tu, full(shape, 0, dt))
    return out, scatter_add(
        kept_x, indices, kept_u, dimension_numbers, indices_are_sorted=params["indices_are_sorted"], mode=params["mode"]
    )


def _scatter_transpose(
    ct: Value, x: Value, indices: Value, updates: Value, *, dimension_numbers: Any, **params: Any
) -> list[Value | None]:
    """Only scatters to distinct places are linear as they stand; others were rewritten by the jvp rule."""
    if not params["unique_indices"]:
        raise NotImplementedError(
            "the transpose of scatter needs unique_indices=True; use scatter_add for indices that may repeat."
        )
    update_shape = updates.aval.shape if is_linear_arg(updates) else shape_of(updates)
    ct_x = (
        scatter_p.bind(ct, indices, full(update_shape, 0, dtype_of(ct)), dimension_numbers=dimension_numbers, **params)
        if is_linear_arg(x)
        else None
    )
    return [
        ct_x,
        None,
        _read_back(ct, indices, dimension_numbers, update_shape, params) if is_linear_arg(updates) else None,
    ]


scatter_p.jvp, scatter_p.transpose = _scatter_jvp, _scatter_transpose


def _scatter_mul_jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Value, Value]:
    """Exact for places that at most one update reaches."""
    x, indices, updates = primals
    tx, _, tu = tangents
    out = scatter_mul_p.bind(*primals, **params)
    terms = []
    if type(tx) is not Zero:
        terms.append(scatter_mul_p.bind(tx, indices, updates, **params))
    if type(tu) is not Zero:
        if not params["unique_indices"]:
            raise NotImplementedError("the derivative of scatter_mul by its updates needs unique_indices=True.")
        dn = params["dimension_numbers"]
        there = _read_back(x, indices, dn, shape_of(updates), params)
        terms.append(scatter_add(full(shape_of(x), 0, dtype_of(x)), indices, mul(tu, there), dn, mode=params["mode"]))
    if not terms:
        return out, Zero(tangent_aval(get_aval(out)))
    return out, terms[0] if len(terms) == 1 else add(*terms)


def _scatter_mul_transpose(ct: Value, x: Value, indices: Value, updates: Value, **params: Any) -> list[Value | None]:
    if not is_linear_arg(x):
        raise NotImplementedError("scatter_mul is not linear in its updates")
    return [scatter_mul_p.bind(ct, indices, updates, **params), None, None]


scatter_mul_p.jvp, scatter_mul_p.transpose = _scatter_mul_jvp, _scatter_mul_transpose


def _scatter_extremum_jvp(primitive: Primitive) -> Callable[..., Any]:
    def jvp(
        primals: Sequence[Value], tangents: Sequence[Value], *, dimension_numbers: Any, **params: Any
    ) -> tuple[Value, Value]:
        x, indices, updates = primals
        tx, _, tu = tangents
        out = primitive.bind(*primals, dimension_numbers=dimension_numbers, **params)
        if type(tx) is Zero and type(tu) is Zero:
            return out, Zero(tangent_aval(get_aval(out)))
        dt, shape = dtype_of(x), shape_of(updates)
        tx = full(shape_of(x), 0, dt) if type(tx) is Zero else tx
        tu = full(shape, 0, dt) if type(tu) is Zero else tu
        more = dict(mode=params["mode"])
        x_wins = convert(eq(x, out), dt)
        u_wins = convert(eq(updates, _read_back(out, indices, dimension_numbers, shape, params)), dt)
        count = scatter_add(x_wins, indices, u_wins, dimension_numbers, **more)
        total = scatter_add(mul(tx, x_wins), indices, mul(tu, u_wins), dimension_numbers, **more)
        return out, mul(total, _reciprocal(count))

    return jvp


def _reciprocal(x: Value) -> Value:
    from_one = full(shape_of(x), 1, dtype_of(x))
    return _div(from_one, x)


scatter_min_p.jvp, scatter_max_p.jvp = _scatter_extremum_jvp(scatter_min_p), _scatter_extremum_jvp(scatter_max_p)


def scatter_add(
    x: Value,
    indices: Value,
    updates: Value,
    dimension_numbers: Any,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Value:
    """`x` with `updates` added at `indices`."""
    return scatter_add_p.bind(
        x,
        indices,
        updates,
        dimension_numbers=dimension_numbers,
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=GatherScatterMode.from_any(mode),
        update_jaxpr=None,
        update_consts=(),
    )
