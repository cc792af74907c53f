"""Slices that start where numbers on the device say, read and written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..base import dtypes
from ..base.avals import shaped, tangent_aval
from ..core.primitive import Primitive, Zero
from ..core.shardings import parts_of, refuse, resized
from ..core.wire import SIZES, portable
from ..core.trace import get_aval
from ..base.errors import at_user_line, type_error
from ..base.host import np
from .linear import broadcast_to_axis, convert, expand_dims, full, moveaxis, zeros
from .rules import dtype_of, is_linear_arg, scalar_like, shape_of
from .shape import concatenate
from .gather import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers, gather_p
from .scatter import scatter_p

if TYPE_CHECKING:
    from ..base.avals import ShapedArray
    from ..core.trace import Axis
    from ..core.shardings import Parts
    from ..core.types import Dims, Params, Shape, Size, Value


dynamic_slice_p = Primitive("dynamic_slice", wire=portable(slice_sizes=SIZES))
dynamic_update_slice_p = Primitive("dynamic_update_slice", wire=portable())


def _check_starts(name: str, x: Value, starts: Sequence[Value]) -> None:
    if len(starts) != len(x.shape):
        raise ValueError(at_user_line(f"{name}: {len(starts)} start indices for an operand of shape {x.shape}."))
    if any(s.shape or not dtypes.is_int(s.dtype) for s in starts):
        raise type_error(f"{name}: start indices must be integer scalars, got {', '.join(map(format, starts))}.")
    if len({dtypes.is_signed(s.dtype) for s in starts}) > 1:
        # no type of XLA's indices holds both negative numbers and those above int64's greatest
        raise type_error(
            f"{name}: start indices must be all signed or all unsigned, got {', '.join(map(format, starts))}."
        )


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
dynamic_slice_p.shard = resized("dynamic_slice")
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
    x = broadcast_to_axis(x, axis.size, axis.placed) if dims[0] is None else moveaxis(x, dims[0], 0)
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


def _dynamic_update_shard(params: Params, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> list[Parts]:
    x, update = ins[:2]
    for i, (mine, its) in enumerate(zip(parts_of(x), parts_of(update))):
        if its is not None and its != mine:
            refuse("dynamic_update_slice", ins, f"axis {i} of the update is not divided as that of the array")
    return [parts_of(x)]


dynamic_update_slice_p.shard = _dynamic_update_shard
