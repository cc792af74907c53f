"""ragged_dot_general: a product in which one axis of the left operand falls into groups of given sizes.

If that axis is free, each group is multiplied by its own matrix on the right. If it is contracted, each group gives a
product. If it is a batch axis, groups have no effect. Elements after the last group count as zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Sequence

from ..base import dtypes
from ..base.avals import tangent_aval
from ..core.primitive import Primitive, UndefinedPrimal, Zero
from ..core.shardings import SAY, whole
from ..core.wire import AXES, NOTHING, param_type, portable, record
from .dot import DOT_NUMBERS, PRODUCT, dot_abstract, dot_general, dot_general_p
from ..core.trace import get_aval
from ..base.errors import type_error
from ..base.host import np
from .elementwise import and_, ge, lt, select, sub
from .linear import add_any, broadcast_in_dim, broadcast_to_axis, convert, full, moveaxis, reduce_sum, transpose
from .reduce import cumsum
from .rules import dtype_of, is_linear_arg, shape_of
from .shape import iota

if TYPE_CHECKING:
    from ..base.avals import ShapedArray
    from ..core.trace import Axis
    from ..core.shardings import Parts
    from ..core.types import Dims, ElementType, Params, Value


@param_type
class RaggedDotDimensionNumbers(NamedTuple):
    """The dimension numbers of `ragged_dot_general`: those of dot_general, the ragged axis of lhs, and the group axis
    of rhs, if it has one.
    """

    dot_dimension_numbers: tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]
    lhs_ragged_dimensions: tuple[int, ...]
    rhs_group_dimensions: tuple[int, ...]


ragged_dot_general_p = Primitive(
    "ragged_dot_general",
    basic=False,
    wire=portable(
        ragged_dot_dimension_numbers=record("RaggedDotDimensionNumbers", DOT_NUMBERS, AXES, AXES),
        group_offset=NOTHING,
        **PRODUCT,
    ),
)


class _Mode(NamedTuple):
    """The kind of the ragged axis, its position, and the axes of lhs along which groups may differ."""

    kind: str  # "free", "contracted" or "batch"
    axis: int
    prefix: tuple[Any, ...]


def _mode(rank: int, numbers: RaggedDotDimensionNumbers) -> _Mode:
    ((contracting, _), (batch, _)), (axis,) = numbers.dot_dimension_numbers, numbers.lhs_ragged_dimensions
    if axis in batch:
        return _Mode("batch", axis, tuple(batch[: batch.index(axis)]))
    if axis in contracting:
        return _Mode("contracted", axis, (*batch, *contracting[: contracting.index(axis)]))
    free = [d for d in range(rank) if d not in (*contracting, *batch)]
    return _Mode("free", axis, (*batch, *free[: free.index(axis)]))


def _abstract(
    lhs: ShapedArray,
    rhs: ShapedArray,
    group_sizes: ShapedArray,
    *,
    ragged_dot_dimension_numbers: Any,
    precision: Any,
    preferred_element_type: ElementType | None,
    group_offset: Any,
    out_sharding: Any,
) -> ShapedArray:
    numbers = ragged_dot_dimension_numbers
    if not dtypes.is_int(group_sizes.dtype):
        raise type_error(f"ragged_dot_general: group_sizes must have an integer dtype, got {group_sizes}.")
    if len(numbers.lhs_ragged_dimensions) != 1:
        raise type_error(
            f"ragged_dot_general expects exactly one lhs ragged dimension, got {numbers.lhs_ragged_dimensions}."
        )
    (xc, yc), (xb, yb) = numbers.dot_dimension_numbers
    for name, dims, aval in (
        ("lhs contracting and batch", (*xc, *xb), lhs),
        ("rhs contracting and batch", (*yc, *yb), rhs),
        ("lhs ragged", numbers.lhs_ragged_dimensions, lhs),
        ("rhs group", numbers.rhs_group_dimensions, rhs),
    ):
        if any(not 0 <= d < len(aval.shape) for d in dims):
            raise type_error(f"ragged_dot_general: {name} dimensions {dims} are out of range for shape {aval.shape}.")
    mode, groups = _mode(len(lhs.shape), numbers), numbers.rhs_group_dimensions
    if mode.kind == "free":
        if len(groups) != 1:
            raise type_error(
                "ragged_dot_general requires exactly one rhs group dimension when the lhs ragged dimension is"
                f" noncontracting, got {groups}."
            )
        if groups[0] in (*yc, *yb):
            raise type_error(
                f"ragged_dot_general: the rhs group dimension {groups[0]} must be neither contracted nor batched, got"
                f" {numbers}."
            )
    elif groups:
        raise type_error(
            "ragged_dot_general requires no group dimensions in the rhs when the lhs ragged dimension is contracting"
            f" or batch, got {groups}."
        )
    count = group_sizes.shape[-1] if group_sizes.shape else None
    prefix = tuple(lhs.shape[d] for d in mode.prefix)
    if count is None or group_sizes.shape not in ((count,), (*prefix, count)):
        raise type_error(
            f"ragged_dot_general: group_sizes must have shape {('g',)} or {(*prefix, 'g')}, got {group_sizes.shape}."
        )
    if groups and rhs.shape[groups[0]] != count:
        raise type_error(
            f"ragged_dot_general: the rhs group dimension {groups[0]} of shape {rhs.shape} must have the size {count}"
            " of group_sizes."
        )
    without = rhs.shape if not groups else rhs.shape[: groups[0]] + rhs.shape[groups[0] + 1 :]
    lower = lambda ds: tuple(d - (bool(groups) and d > groups[0]) for d in ds)
    out = dot_abstract(
        lhs,
        rhs.update(shape=without),
        dimension_numbers=((xc, lower(yc)), (xb, lower(yb))),
        precision=precision,
        preferred_element_type=preferred_element_type,
        out_sharding=None,
    )
    return out.update(shape=(count, *out.shape)) if mode.kind == "contracted" else out


def _in_groups(group_sizes: Value, mode: _Mode, shape: tuple[Any, ...]) -> Value:
    """(group, *shape of lhs): which elements belong to which group."""
    sizes = shape_of(group_sizes)
    if dtypes.bits(dtype_of(group_sizes)) < 32:  # their sum would wrap round
        group_sizes = convert(group_sizes, dtypes.int32)
    ends = cumsum(group_sizes, len(sizes) - 1)
    starts = sub(ends, group_sizes)
    wide = (sizes[-1], *shape)
    lead = [d + 1 for d in mode.prefix] if len(sizes) > 1 else []
    order = sorted(lead)
    spread = lambda v: broadcast_in_dim(
        transpose(v, (len(sizes) - 1, *[lead.index(d) for d in order])), wide, (0, *order)
    )
    place = iota(dtype_of(group_sizes), wide, mode.axis + 1)
    return and_(ge(place, spread(starts)), lt(place, spread(ends)))


def _expanded(lhs: Value, mask: Value) -> Value:
    """lhs once for each group, zero outside it."""
    return select(mask, broadcast_to_axis(lhs, shape_of(mask)[0]), full(shape_of(mask), 0, dtype_of(lhs)))


def _dense(mode: _Mode, numbers: RaggedDotDimensionNumbers) -> tuple[Value, Value]:
    """dot_general's dimension numbers for lhs with the axis of groups in front."""
    (xc, yc), (xb, yb) = numbers.dot_dimension_numbers
    up = lambda ds: tuple(d + 1 for d in ds)
    if mode.kind == "free":
        return ((0, *up(xc)), (numbers.rhs_group_dimensions[0], *yc)), (up(xb), tuple(yb))
    return (up(xc), tuple(yc)), (up(xb), tuple(yb))


def _decompose(
    lhs: Value,
    rhs: Value,
    group_sizes: Value,
    *,
    ragged_dot_dimension_numbers: Any,
    precision: Any,
    preferred_element_type: ElementType | None,
    group_offset: Any,
    out_sharding: Any,
) -> Value:
    numbers = ragged_dot_dimension_numbers
    mode = _mode(len(shape_of(lhs)), numbers)
    how = dict(precision=precision, preferred_element_type=preferred_element_type)
    if mode.kind == "batch":
        return dot_general(lhs, rhs, numbers.dot_dimension_numbers, **how)
    out = dot_general(_expanded(lhs, _in_groups(group_sizes, mode, shape_of(lhs))), rhs, _dense(mode, numbers), **how)
    return moveaxis(out, len(numbers.dot_dimension_numbers[1][0]), 0) if mode.kind == "contracted" else out


def _reference(
    lhs: Value,
    rhs: Value,
    group_sizes: Value,
    *,
    ragged_dot_dimension_numbers: Any,
    precision: Any,
    preferred_element_type: ElementType | None,
    group_offset: Any,
    out_sharding: Any,
) -> Any:
    numbers = ragged_dot_dimension_numbers
    mode = _mode(lhs.ndim, numbers)
    how = dict(precision=precision, preferred_element_type=preferred_element_type, out_sharding=None)
    if mode.kind == "batch":
        return dot_general_p.reference(lhs, rhs, dimension_numbers=numbers.dot_dimension_numbers, **how)
    sizes = np.broadcast_to(group_sizes, (*[lhs.shape[d] for d in mode.prefix], group_sizes.shape[-1]))
    parts = np.zeros((sizes.shape[-1], *lhs.shape), lhs.dtype)
    for place in np.ndindex(*sizes.shape[:-1]):
        start = 0
        for g, n in enumerate(sizes[place]):
            at = [slice(None)] * lhs.ndim
            for d, i in zip(mode.prefix, place):
                at[d] = i
            # sizes may be negative: they have not been checked
            at[mode.axis] = slice(max(start, 0), max(start + int(n), 0))
            place_: tuple[Any, ...] = (g, *at)
            parts[place_] = lhs[tuple(at)]
            start += int(n)
    out = dot_general_p.reference(parts, rhs, dimension_numbers=_dense(mode, numbers), **how)
    return np.moveaxis(out, len(numbers.dot_dimension_numbers[1][0]), 0) if mode.kind == "contracted" else out


def _jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Value, Value]:
    lhs, rhs, sizes = primals
    out = ragged_dot_general_p.bind(lhs, rhs, sizes, **params)
    aval = tangent_aval(get_aval(out))
    terms = []
    if aval.dtype != dtypes.float0:
        if type(tangents[0]) is not Zero:
            terms.append(ragged_dot_general_p.bind(tangents[0], rhs, sizes, **params))
        if type(tangents[1]) is not Zero:
            terms.append(ragged_dot_general_p.bind(lhs, tangents[1], sizes, **params))
    return out, Zero(aval) if not terms else terms[0] if len(terms) == 1 else add_any(*terms)


def _transpose(
    ct: Value,
    lhs: Value,
    rhs: Value,
    group_sizes: Value,
    *,
    ragged_dot_dimension_numbers: Any,
    precision: Any,
    preferred_element_type: ElementType | None,
    **_: Any,
) -> list[Value | None]:
    """The derivative of the product with lhs expanded into groups; the derivative of the expansion sums the parts of
    each group.
    """
    numbers, linear = ragged_dot_dimension_numbers, is_linear_arg(lhs)
    shape = lhs.aval.shape if linear else shape_of(lhs)
    mode = _mode(len(shape), numbers)
    how = dict(precision=precision, preferred_element_type=preferred_element_type, out_sharding=None)
    if mode.kind == "batch":
        return [*dot_general_p.transpose(ct, lhs, rhs, dimension_numbers=numbers.dot_dimension_numbers, **how), None]
    if mode.kind == "contracted":
        ct = moveaxis(ct, 0, len(numbers.dot_dimension_numbers[1][0]))
    mask = _in_groups(group_sizes, mode, shape)
    wide = UndefinedPrimal(lhs.aval.update(shape=shape_of(mask))) if linear else _expanded(lhs, mask)
    ct_lhs, ct_rhs = dot_general_p.transpose(ct, wide, rhs, dimension_numbers=_dense(mode, numbers), **how)
    if linear:
        ct_lhs = reduce_sum(select(mask, ct_lhs, full(shape_of(mask), 0, dtype_of(ct_lhs))), (0,))
    return [ct_lhs, ct_rhs, None]


def _batch(
    axis: Axis, args: Sequence[Value], dims: Dims, *, ragged_dot_dimension_numbers: Any, **params: Any
) -> tuple[Value, Any]:
    """Adds a batch axis in front of the others."""
    numbers = ragged_dot_dimension_numbers
    lhs, rhs = [
        broadcast_to_axis(x, axis.size, axis.placed) if d is None else moveaxis(x, d, 0) for x, d in zip(args[:2], dims)
    ]
    sizes = args[2] if dims[2] is None else moveaxis(args[2], dims[2], 0)
    mode = _mode(len(shape_of(lhs)) - 1, numbers)
    unbatched = len(shape_of(sizes)) - (dims[2] is not None)
    if dims[2] is not None or unbatched > 1:  # groups for each of the axes before, including the new one
        want = (axis.size, *[shape_of(lhs)[d + 1] for d in mode.prefix], shape_of(sizes)[-1])
        have = tuple(range(dims[2] is None, 1 if unbatched == 1 else len(want) - 1))
        sizes = broadcast_in_dim(sizes, want, (*have, len(want) - 1))
    (xc, yc), (xb, yb) = numbers.dot_dimension_numbers
    up = lambda ds: tuple(d + 1 for d in ds)
    new = RaggedDotDimensionNumbers(
        ((up(xc), up(yc)), ((0, *up(xb)), (0, *up(yb)))),
        up(numbers.lhs_ragged_dimensions),
        up(numbers.rhs_group_dimensions),
    )
    out = ragged_dot_general_p.bind(lhs, rhs, sizes, ragged_dot_dimension_numbers=new, **params)
    return out, int(mode.kind == "contracted")


p = ragged_dot_general_p
p.abstract, p.reference, p.decompose, p.jvp, p.transpose, p.batch = (
    _abstract,
    _reference,
    _decompose,
    _jvp,
    _transpose,
    _batch,
)


def _shard(params: Params, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> list[Parts]:
    name = "ragged_dot_general"
    for a in ins:
        whole(name, [a], range(len(a.shape)), "it multiplies group by group", SAY)
    return [(None,) * len(outs[0].shape)]


p.shard = _shard
del p
