"""Sorting and selecting the largest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Sequence

from ..base import dtypes
from ..base.avals import array_aval, shaped, tangent_aval
from ..core.jaxpr import round_scalar
from ..core.primitive import Primitive, Zero
from ..core.shardings import along
from ..core.wire import FINITE, FLAG, INTEGER, SIZE, portable
from ..core.trace import get_aval
from ..base.errors import at_user_line, type_error
from ..base.host import np
from .bitwise import from_total_order, in_total_order, total_order
from .gather import GatherDimensionNumbers, GatherScatterMode, gather
from .linear import broadcast_to_axis, expand_dims, moveaxis, zeros
from .rules import check_kind, shape_of
from .shape import iota, rev, slice_

if TYPE_CHECKING:
    from ..base.avals import ShapedArray
    from ..core.trace import Axis
    from ..core.types import Dims, Value

sort_p = Primitive("sort", multiple_results=True, wire=portable(dimension=INTEGER, is_stable=FLAG, num_keys=INTEGER))


def _sort_abstract(*xs: Any, dimension: int, is_stable: bool, num_keys: int) -> list[ShapedArray]:
    if not xs:
        raise type_error("sort takes at least one operand, got none.")
    if any(x.shape != xs[0].shape for x in xs):
        raise type_error(f"sort: operands must have one shape, got {[x.shape for x in xs]}.")
    if not 0 <= dimension < len(xs[0].shape):
        raise type_error(f"sort: dimension {dimension} is out of range for shape {xs[0].shape}.")
    if any(dtypes.is_key(x.dtype) for x in xs[:num_keys]):
        raise type_error(f"sort does not accept dtype {dtypes.name(xs[0].dtype)}: random keys have no order.")
    if not 1 <= num_keys <= len(xs):
        raise ValueError(
            at_user_line(f"sort: num_keys {num_keys} must lie between 1 and the number of operands {len(xs)}.")
        )
    return [shaped(x.shape, x.dtype, x.weak_type) for x in xs]


def sort_key(x: Value) -> list[Value]:
    """NumPy keys in lax's total order: -0 and 0 equal, NaN equal to NaN and last, complex by real part and then
    imaginary.
    """
    if dtypes.is_complex(x.dtype):
        return [*sort_key(x.real), *sort_key(x.imag)]
    if dtypes.is_float(x.dtype):
        wide = x.astype(np.float64)
        nan = np.isnan(wide)
        return [nan, np.where(nan | (wide == 0), 0.0, wide)]
    return [x]


def _sort_reference(*xs: Any, dimension: int, is_stable: bool, num_keys: int) -> Any:
    rows = [np.moveaxis(x, dimension, -1) for x in xs]
    keys = [k for x in rows[:num_keys] for k in sort_key(x)]
    order = np.lexsort(tuple(reversed(keys)), axis=-1)
    return [np.moveaxis(np.take_along_axis(x, order, -1), -1, dimension) for x in rows]


def take_along(x: Value, order: Value, dimension: int) -> Value:
    """`x` rearranged along `dimension` by an array of positions (of the same shape but along `dimension`)."""
    rank = len(shape_of(x))
    if 0 in shape_of(order):
        return zeros(shaped(shape_of(order), get_aval(x).dtype))
    x, order = moveaxis(x, dimension, rank - 1), moveaxis(order, dimension, rank - 1)
    numbers = GatherDimensionNumbers((), (rank - 1,), (rank - 1,), tuple(range(rank - 1)), tuple(range(rank - 1)))
    out = gather(x, expand_dims(order, (rank,)), numbers, (1,) * rank, mode=GatherScatterMode.PROMISE_IN_BOUNDS)
    return moveaxis(out, rank - 1, dimension)


def _sort_jvp(
    primals: Sequence[Value], tangents: Sequence[Value], *, dimension: int, is_stable: bool, num_keys: int
) -> tuple[Value, Value]:
    if all(type(t) is Zero for t in tangents):
        outs = sort_p.bind(*primals, dimension=dimension, is_stable=is_stable, num_keys=num_keys)
        return outs, [Zero(tangent_aval(get_aval(o))) for o in outs]
    positions = iota(dtypes.int32, shape_of(primals[0]), dimension)
    *outs, order = sort_p.bind(*primals, positions, dimension=dimension, is_stable=is_stable, num_keys=num_keys)
    return outs, [
        Zero(tangent_aval(get_aval(o))) if type(t) is Zero else take_along(t, order, dimension)
        for o, t in zip(outs, tangents)
    ]


def _sort_batch(
    axis: Axis, args: Sequence[Value], dims: Dims, *, dimension: int, is_stable: bool, num_keys: int
) -> tuple[Value, Any]:
    args = [
        broadcast_to_axis(x, axis.size, axis.placed) if d is None else moveaxis(x, d, 0) for x, d in zip(args, dims)
    ]
    return sort_p.bind(*args, dimension=dimension + 1, is_stable=is_stable, num_keys=num_keys), [0] * len(args)


sort_p.abstract, sort_p.reference, sort_p.jvp, sort_p.batch = _sort_abstract, _sort_reference, _sort_jvp, _sort_batch
sort_p.shard = along("sort", "dimension")

top_k_p = Primitive("top_k", multiple_results=True, basic=False, wire=portable(k=SIZE, axis=INTEGER))


def _top_k_abstract(x: ShapedArray, *, k: int, axis: int) -> list[ShapedArray]:
    check_kind("top_k", x, "biuf")
    if not 0 <= axis < len(x.shape) or not 0 <= k <= x.shape[axis]:
        raise ValueError(f"top_k: k={k} must lie between 0 and the size of axis {axis} of shape {x.shape}.")
    shape = tuple(k if d == axis else n for d, n in enumerate(x.shape))
    return [shaped(shape, x.dtype, x.weak_type), shaped(shape, dtypes.int32)]


def _top_k_reference(x: Value, *, k: int, axis: int) -> Any:
    flipped = np.moveaxis(x, axis, -1)[..., ::-1]
    n = flipped.shape[-1]
    order = n - 1 - np.argsort(total_order(flipped), axis=-1, kind="stable")[..., ::-1][..., :k]
    return [
        np.moveaxis(np.take_along_axis(np.moveaxis(x, axis, -1), order, -1), -1, axis),
        np.moveaxis(order, -1, axis).astype(np.int32),
    ]


def _top_k_decompose(x: Value, *, k: int, axis: int) -> Value:
    """Sorts the reversed array upwards and reads it backwards: equal elements keep their order. Unlike `sort`, which
    takes the two zeros for equal and every NaN for the largest, `top_k` has IEEE's total order.
    """
    shape, dt = shape_of(x), get_aval(x).dtype
    positions = rev(iota(dtypes.int32, shape, axis), (axis,))
    upwards = rev(in_total_order(x), (axis,))
    ordered, order = sort_p.bind(upwards, positions, dimension=axis, is_stable=True, num_keys=1)
    cut = lambda v: slice_(
        rev(v, (axis,)), (0,) * len(shape), tuple(k if d == axis else n for d, n in enumerate(shape))
    )
    return [from_total_order(cut(ordered), dt), cut(order)]


def _top_k_jvp(primals: Sequence[Value], tangents: Sequence[Value], *, k: int, axis: int) -> tuple[Value, Value]:
    values, order = top_k_p.bind(*primals, k=k, axis=axis)
    (t,) = tangents
    zero = Zero(tangent_aval(get_aval(order)))
    return [values, order], [
        Zero(tangent_aval(get_aval(values))) if type(t) is Zero else take_along(t, order, axis),
        zero,
    ]


def _top_k_batch(axis_: Axis, args: Sequence[Value], dims: Dims, *, k: int, axis: int) -> tuple[Value, Any]:
    return top_k_p.bind(moveaxis(args[0], dims[0], 0), k=k, axis=axis + 1), [0, 0]


top_k_p.abstract, top_k_p.reference, top_k_p.decompose = _top_k_abstract, _top_k_reference, _top_k_decompose
top_k_p.jvp, top_k_p.batch = _top_k_jvp, _top_k_batch
top_k_p.shard = along("top_k", "axis")

# approx_top_k --------------------------------------------------------------------------------------------------------

approx_top_k_p = Primitive(
    "approx_top_k",
    multiple_results=True,
    basic=False,
    wire=portable(
        k=SIZE,
        reduction_dimension=INTEGER,
        recall_target=FINITE,
        is_max_k=FLAG,
        reduction_input_size_override=INTEGER,
        aggregate_to_topk=FLAG,
    ),
)


def approx_top_k_size(size: int, rank: int, k: int, recall_target: float, aggregate: bool, size_override: int) -> int:
    """How many candidates approx_top_k gives of `size` elements: k, or as many as a TPU has before it picks the k among
    them.

    The candidates are the maxima of bins: with M bins the expected recall is ((M - 1) / M) ** (k - 1) (Chern et al.,
    "TPU-KNN", 2022).
    """
    lanes = 1024 if rank == 1 else 128
    if aggregate:
        return k
    if size <= lanes:
        return size
    if k == 1:
        return lanes
    if recall_target == 1.0:
        return size
    bins = min(max(int((1 - k) / math.log(float(round_scalar(recall_target, dtypes.float32).real))), lanes), size)
    halvings = ((size_override if size_override >= 0 else size) // bins).bit_length() - 1
    halvings = min(halvings, (size // lanes - 1).bit_length())
    if halvings <= 0:
        return size
    tiles = -(-size // lanes)
    return -(-tiles // (1 << halvings)) * lanes


def _approx_abstract(
    x: ShapedArray,
    *,
    k: int,
    reduction_dimension: int,
    recall_target: float,
    is_max_k: bool,
    reduction_input_size_override: int,
    aggregate_to_topk: bool,
) -> list[ShapedArray]:
    name = "approx_max_k" if is_max_k else "approx_min_k"
    if not -len(x.shape) <= reduction_dimension < len(x.shape):
        raise ValueError(
            f"{name}: reduction_dimension {reduction_dimension} is out of range for an array of shape {x.shape}."
        )
    if not dtypes.is_float(x.dtype):
        raise ValueError(f"{name}: operand must be a floating type, got {x}.")
    size = x.shape[reduction_dimension]
    if not 0 <= k <= size:
        raise ValueError(f"{name}: k must lie between 0 and the size {size} of axis {reduction_dimension}, got {k}.")
    if not 0 < recall_target <= 1:
        raise ValueError(f"{name}: recall_target must lie in (0, 1], got {recall_target}.")
    if reduction_input_size_override >= 0 and reduction_input_size_override < size:
        raise ValueError(
            f"{name}: reduction_input_size_override must be at least the size {size} of the axis, got"
            f" {reduction_input_size_override}."
        )
    axis = reduction_dimension % len(x.shape)
    n = approx_top_k_size(size, len(x.shape), k, recall_target, aggregate_to_topk, reduction_input_size_override)
    shape = (*x.shape[:axis], n, *x.shape[axis + 1 :])
    return [shaped(shape, x.dtype, x.weak_type), shaped(shape, dtypes.int32)]


def _approx_decompose(x: Value, *, reduction_dimension: int, is_max_k: bool, **params: Any) -> Value:
    """Exact: there is no faster way than sorting on processors without a TPU's lanes."""
    shape = shape_of(x)
    axis = reduction_dimension % len(shape)
    out, _ = _approx_abstract(
        array_aval(get_aval(x)), reduction_dimension=reduction_dimension, is_max_k=is_max_k, **params
    )
    if is_max_k:
        return top_k_p.bind(x, k=out.shape[axis], axis=axis)
    ordered = sort_p.bind(x, iota(dtypes.int32, shape, axis), dimension=axis, is_stable=True, num_keys=1)
    return [slice_(v, (0,) * len(shape), out.shape) for v in ordered]


def _approx_reference(x: Value, *, reduction_dimension: int, is_max_k: bool, **params: Any) -> Any:
    axis = reduction_dimension % x.ndim
    out, _ = _approx_abstract(
        shaped(x.shape, x.dtype), reduction_dimension=reduction_dimension, is_max_k=is_max_k, **params
    )
    if is_max_k:
        return _top_k_reference(x, k=out.shape[axis], axis=axis)
    first = tuple(slice(0, n) for n in out.shape)
    order = np.moveaxis(np.lexsort(tuple(reversed(sort_key(np.moveaxis(x, axis, -1)))), axis=-1), -1, axis)[first]
    return [np.take_along_axis(x, order, axis), order.astype(np.int32)]


def _approx_jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Value, Value]:
    values, order = approx_top_k_p.bind(*primals, **params)
    (t,) = tangents
    axis = params["reduction_dimension"] % len(shape_of(order))
    return [values, order], [
        Zero(tangent_aval(get_aval(values))) if type(t) is Zero else take_along(t, order, axis),
        Zero(tangent_aval(get_aval(order))),
    ]


def _approx_batch(
    axis: Axis, args: Sequence[Value], dims: Dims, *, reduction_dimension: int, **params: Any
) -> tuple[Value, Any]:
    x = moveaxis(args[0], dims[0], 0)
    reduction_dimension = reduction_dimension % (len(shape_of(x)) - 1) + 1
    return approx_top_k_p.bind(x, reduction_dimension=reduction_dimension, **params), [0, 0]


approx_top_k_p.abstract, approx_top_k_p.reference, approx_top_k_p.decompose = (
    _approx_abstract,
    _approx_reference,
    _approx_decompose,
)
approx_top_k_p.jvp, approx_top_k_p.batch = _approx_jvp, _approx_batch
approx_top_k_p.shard = along("approx_top_k", "reduction_dimension")
