"""Gather: slices of an array at indices that are an array themselves."""

from __future__ import annotations

import enum
import math
from typing import TYPE_CHECKING, Any, NamedTuple, Sequence

from ..base import dtypes, limits
from ..base.avals import as_size, shaped, tangent_aval
from ..core.primitive import Primitive, Zero
from ..core.shardings import checked, parts_of, refuse
from ..core.wire import AXES, FLAG, NOTHING, SCALAR, SIZES, either, member, param_type, portable, record
from ..core.trace import get_aval
from ..base.errors import type_error
from ..base.host import np
from .elementwise import neg
from .linear import moveaxis
from .rules import dtype_of, shape_of


if TYPE_CHECKING:
    from ..base.avals import ShapedArray
    from ..core.trace import Axis
    from ..core.shardings import Parts
    from ..core.types import Dims, ElementType, Params, Shape, Size, Value


@param_type
class GatherScatterMode(enum.Enum):
    """The treatment of indices out of bounds: CLIP moves them inside, FILL_OR_DROP reads a fill value and drops
    updates, PROMISE_IN_BOUNDS leaves the result undefined. ONE_HOT drops updates as FILL_OR_DROP does, and is a mode of
    scatters only.
    """

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


gather_p = Primitive(
    "gather",
    wire=portable(
        dimension_numbers=record("GatherDimensionNumbers", AXES, AXES, AXES, AXES, AXES),
        slice_sizes=SIZES,
        indices_are_sorted=FLAG,
        unique_indices=FLAG,
        mode=member("GatherScatterMode"),
        fill_value=either(NOTHING, SCALAR),
    ),
)


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
        return isinstance(value, (bool, int, float)) and limits.iinfo(dt).min <= value <= limits.iinfo(dt).max
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
        raise type_error(f"gather: the fill_value {fill_value!r} is not a value of dtype {dtypes.name(x.dtype)}.")
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
    """The value read out of bounds: NaN, the smallest signed or the largest unsigned integer, unless the call gives
    one.
    """
    if fill_value is not None or dtypes.is_key(dt):  # for keys, the fill value of their words
        return fill_value
    if dtypes.is_inexact(dt):
        return math.nan
    if dtypes.is_bool(dt):
        return True
    info = limits.iinfo(dt)
    return int(info.min if dtypes.is_signed(dt) else info.max)


def _gather_jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Value, Value]:
    out = gather_p.bind(*primals, **params)
    t = tangents[0]
    if type(t) is Zero:
        return out, Zero(tangent_aval(get_aval(out)))
    return out, gather_p.bind(t, primals[1], **{**params, "fill_value": 0})


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
gather_p.batch = _gather_batch


def _gather_shard(params: Params, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> list[Parts]:
    """Axes of the array that are taken whole are divided as in the array, the others come from the indices."""
    numbers, (x, indices) = params["dimension_numbers"], ins
    sizes = params["slice_sizes"]
    cure = "Say how the result shall be divided: x.at[…].get(out_sharding=weft.P(…))."
    batch = dict(zip(numbers.start_indices_batching_dims, numbers.operand_batching_dims))
    for i, part in enumerate(parts_of(x)):
        if part is not None and sizes[i] != x.shape[i] and i not in batch.values():
            refuse("gather", ins, f"it takes parts of axis {i}, which is divided", cure)
    parts: list[Any] = [None] * len(outs[0].shape)
    kept = [i for i in range(len(x.shape)) if i not in (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)]
    for d, i in zip(numbers.offset_dims, kept):
        parts[d] = parts_of(x)[i]
    rest = [d for d in range(len(parts)) if d not in numbers.offset_dims]
    for j, d in enumerate(rest):
        its, mine = parts_of(indices)[j], parts_of(x)[batch[j]] if j in batch else None
        if its is not None and mine is None and any(n != m for n, m in zip(sizes, x.shape)) and j not in batch:
            refuse("gather", ins, "the indices are divided, and each device needs all of the array", cure)
        parts[d] = its if its is not None else mine
    return [checked("gather", ins, parts, cure)]


gather_p.shard = _gather_shard


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
        # Caches of programs compare parameters as numbers, and -0.0 equals 0.0: so an operation gives the zero its
        # sign.
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
