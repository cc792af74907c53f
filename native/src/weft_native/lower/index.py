"""Dynamic slices, gather and scatter."""

from __future__ import annotations

import numpy as np
from weft.base import dtypes
from weft.base.limits import iinfo
from weft.base.avals import shaped
from weft.primitives.gather import GatherScatterMode, gather_fill
from weft.primitives.positions import holding

from .aliasing import apart
from .reduce import _MONOIDS, combine
from .registry import rule


@rule("dynamic_slice")
def _dynamic_slice(b, ins, outs, x, *starts, slice_sizes):
    return b.op(
        "stablehlo.dynamic_slice",
        [x, *_starts(b, starts, ins[1:], ins[0].shape, slice_sizes)],
        b.type(outs[0]),
        {"slice_sizes": b.i64s(slice_sizes)},
    )


@rule("dynamic_update_slice")
def _dynamic_update_slice(b, ins, outs, x, update, *starts):
    return b.op(
        "stablehlo.dynamic_update_slice",
        [apart(b, x, update, ins[0]), update, *_starts(b, starts, ins[2:], ins[0].shape, ins[1].shape)],
        b.type(outs[0]),
    )


def _counting(dtype, shape):
    """The dtype for indices of a dtype into an operand: XLA takes none of fewer than 8 bits, and clamps in it, so it
    must hold the sizes.
    """
    return holding(dtype if dtypes.bits(dtype) >= 8 else dtypes.int32, *shape)


def _starts(b, starts, avals, shape, sizes):
    """Start indices within bounds, of one type: the widest, since all are signed or all unsigned. Of two equally wide
    the unsigned one: the other was narrow and unsigned too.

    XLA clamps start indices as well, but it adds those of a slice of a slice before it does: the first slice then
    begins elsewhere.
    """
    kinds = [_counting(a.dtype, shape) for a in avals]
    wide = max(kinds, key=lambda dt: (dtypes.bits(dt), dtypes.is_unsigned(dt)), default=None)
    limits = [n - size for n, size in zip(shape, sizes)]
    return [_start(b, s, a.dtype, wide, limit) for s, a, limit in zip(starts, avals, limits)]


def _start(b, start, dtype, wide, limit):
    if limit == 0:
        return b.splat(0, wide)
    if dtype != wide:
        start = b.convert(start, (), wide)
    return b.op("stablehlo.clamp", [b.splat(0, wide), start, b.splat(limit, wide)], b.tensor((), wide))


def _indices(b, indices, aval, shape):
    """Indices and their type."""
    dt = _counting(aval.dtype, shape)
    return (indices, aval) if dt == aval.dtype else (b.convert(indices, aval.shape, dt), aval.update(dtype=dt))


def _list(values) -> str:
    return "[" + ", ".join(map(str, values)) + "]"


def _limits(shape, sizes, index_map, dtype) -> np.ndarray:
    """The largest start along each indexed axis, limited to the range of the index type."""
    top = iinfo(dtype).max
    return np.array([min(shape[d] - sizes[d], int(top)) for d in index_map], dtype)


def _in_bounds(b, indices, aval, limits):
    """For each index vector, whether the whole slice is inside the array."""
    boolean = b.tensor(aval.shape, dtypes.bool_)
    high = b.broadcast(b.constant(limits), [len(aval.shape) - 1], aval.shape, aval.dtype)
    fits = b.compare("LE", indices, high, aval)
    if dtypes.is_signed(aval.dtype):
        fits = b.op(
            "stablehlo.and", [fits, b.compare("GE", indices, b.splat(0, aval.dtype, aval.shape), aval)], boolean
        )
    scalar = b.tensor((), dtypes.bool_)
    return b.ops(
        "stablehlo.reduce",
        [fits, b.splat(True, dtypes.bool_)],
        [b.tensor(aval.shape[:-1], dtypes.bool_)],
        {"dimensions": b.i64s([len(aval.shape) - 1])},
        [([scalar, scalar], lambda p, q: [b.op("stablehlo.and", [p, q], scalar)])],
    )[0]


def _clipped(b, indices, aval, limits):
    high = b.broadcast(b.constant(limits), [len(aval.shape) - 1], aval.shape, aval.dtype)
    return b.op("stablehlo.clamp", [b.splat(0, aval.dtype, aval.shape), indices, high], b.type(aval))


@rule("gather")
def _gather(
    b, ins, outs, x, indices, *, dimension_numbers, slice_sizes, indices_are_sorted, unique_indices, mode, fill_value
):
    dn, operand, out = dimension_numbers, ins[0], outs[0]
    indices, index = _indices(b, indices, ins[1], operand.shape)
    if out.size == 0:
        return b.splat(0, out.dtype, out.shape)
    mode = GatherScatterMode.from_any(mode) if isinstance(mode, str) or mode is None else mode
    if operand.size == 0:  # nothing to read: every index is out of bounds
        return b.splat(gather_fill(out.dtype, fill_value), out.dtype, out.shape)
    numbers = b.attr(
        f"#stablehlo.gather<offset_dims = {_list(dn.offset_dims)}, collapsed_slice_dims ="
        f" {_list(dn.collapsed_slice_dims)}, operand_batching_dims = {_list(dn.operand_batching_dims)},"
        f" start_indices_batching_dims = {_list(dn.start_indices_batching_dims)}, start_index_map ="
        f" {_list(dn.start_index_map)}, index_vector_dim = {len(index.shape) - 1}>"
    )
    limits = _limits(operand.shape, slice_sizes, dn.start_index_map, index.dtype)
    if mode == GatherScatterMode.CLIP:  # XLA's gather does so too, but where it becomes a dynamic slice, see _starts
        indices = _clipped(b, indices, index, limits)
    # With PROMISE_IN_BOUNDS none is out of bounds.
    made = b.op(
        "stablehlo.gather",
        [x, indices],
        b.type(out),
        {
            "dimension_numbers": numbers,
            "slice_sizes": b.i64s(slice_sizes),
            "indices_are_sorted": b.bool_attr(indices_are_sorted),
        },
    )
    if mode != GatherScatterMode.FILL_OR_DROP:
        return made
    inside = _in_bounds(b, indices, index, limits)
    batch = [d for d in range(len(out.shape)) if d not in dn.offset_dims]
    inside = b.broadcast(inside, batch, out.shape, dtypes.bool_)
    return b.select(
        inside, made, b.splat(gather_fill(out.dtype, fill_value), out.dtype, out.shape), out.shape, out.dtype
    )


def _scatter(joined):
    def lower(
        b,
        ins,
        outs,
        x,
        indices,
        updates,
        *,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
        update_jaxpr=None,
        update_consts=(),
    ):
        dn, (operand, _, update) = dimension_numbers, ins
        indices, index = _indices(b, indices, ins[1], operand.shape)
        if update.size == 0 or operand.size == 0:
            return x
        if not dn.scatter_dims_to_operand_dims:
            # XLA treats a scatter without indices as a single update, so it gets an index along an axis of one element.
            rank = len(operand.shape)
            operand, index = operand.update(shape=(*operand.shape, 1)), index.update(shape=(*index.shape[:-1], 1))
            x, indices = b.reshape(x, operand.shape, operand.dtype), b.splat(0, index.dtype, index.shape)
            dn = dn._replace(
                inserted_window_dims=(*dn.inserted_window_dims, rank), scatter_dims_to_operand_dims=(rank,)
            )
        mode = GatherScatterMode.from_any(mode) if isinstance(mode, str) or mode is None else mode
        if mode == GatherScatterMode.CLIP:
            window = iter(dn.update_window_dims)
            sizes = [
                1 if d in dn.inserted_window_dims or d in dn.operand_batching_dims else update.shape[next(window)]
                for d in range(len(operand.shape))
            ]
            indices = _clipped(
                b, indices, index, _limits(operand.shape, sizes, dn.scatter_dims_to_operand_dims, index.dtype)
            )
        numbers = b.attr(
            f"#stablehlo.scatter<update_window_dims = {_list(dn.update_window_dims)}, "
            f"inserted_window_dims = {_list(dn.inserted_window_dims)}, "
            f"input_batching_dims = {_list(dn.operand_batching_dims)}, "
            f"scatter_indices_batching_dims = {_list(dn.scatter_indices_batching_dims)}, "
            f"scatter_dims_to_operand_dims = {_list(dn.scatter_dims_to_operand_dims)}, "
            f"index_vector_dim = {len(index.shape) - 1}>"
        )
        scalar = b.type(shaped((), operand.dtype))
        # XLA's scatter drops updates out of bounds, which FILL_OR_DROP requires.
        made = b.ops(
            "stablehlo.scatter",
            [apart(b, x, updates, operand), indices, updates],
            [b.type(operand)],
            {
                "scatter_dimension_numbers": numbers,
                "indices_are_sorted": b.bool_attr(indices_are_sorted),
                "unique_indices": b.bool_attr(unique_indices),
            },
            [([scalar, scalar], lambda old, new: joined(b, operand.dtype, old, new, update_jaxpr))],
        )[0]
        return made if operand.shape == outs[0].shape else b.reshape(made, outs[0].shape, outs[0].dtype)

    return lower


def _replace(b, dtype, old, new, jaxpr):
    """A plain scatter keeps the update; `scatter_apply` computes it from the old value."""
    return (
        [new]
        if jaxpr is None or not jaxpr.eqns and jaxpr.jaxpr.outvars == jaxpr.jaxpr.invars[1:2]
        else b.inline(jaxpr, [old, new])
    )


rule("scatter")(_scatter(_replace))
for _name, _monoid in (("add", "sum"), ("mul", "prod"), ("min", "min"), ("max", "max")):
    rule(f"scatter-{_name}")(
        _scatter(lambda b, dtype, old, new, jaxpr, _op=_MONOIDS[_monoid][0]: [combine(b, _op, old, new, dtype)])
    )
rule("scatter-sub")(_scatter(lambda b, dtype, old, new, jaxpr: [combine(b, "stablehlo.subtract", old, new, dtype)]))
