"""Scatters: slices written, added, multiplied … at indices that are an array themselves."""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..base import dtypes
from ..base.avals import shaped, tangent_aval
from ..core.interpret import interpret
from ..core.primitive import Primitive, Zero
from ..core.shardings import parts_of, refuse, whole
from ..core.wire import AXES, FLAG, NOTHING, member, portable, record, row
from ..core.trace import get_aval
from ..base.errors import type_error
from ..base.host import np
from .elementwise import add, div as _div, eq, mul, neg, select
from .linear import broadcast_to_axis, convert, full, moveaxis, reshape, zeros
from .rules import check_kind, dtype_of, is_linear_arg, shape_of
from .shape import iota
from .gather import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    _check_apart,
    _check_axes,
    _check_batching,
    _positions,
    gather,
    gather_p,
)

if TYPE_CHECKING:
    from ..base.avals import ShapedArray
    from ..core.trace import Axis
    from ..core.shardings import Parts, ShardRule
    from ..core.types import Dims, Params, Shape, Value


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


_SCATTER = {
    "dimension_numbers": record("ScatterDimensionNumbers", AXES, AXES, AXES, AXES, AXES),
    "indices_are_sorted": FLAG,
    "unique_indices": FLAG,
    "mode": member("GatherScatterMode"),
    "update_jaxpr": NOTHING,
    "update_consts": row(),
}


def _scatter_reference(
    combine: Callable[[Any, Any], Any] | None,
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
    window_dims = [d for d in range(x.ndim) if d not in dn.inserted_window_dims and d not in dn.operand_batching_dims]
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


def _scatter_shard(name: str) -> ShardRule:
    """The array keeps its division. Axes into which indices point must be whole; the others are written alike by the
    updates, and indices are known to all devices.
    """

    def rule(params: Params, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> list[Parts]:
        numbers, (x, indices, updates) = params["dimension_numbers"], ins
        cure = "Say how the result shall be divided: x.at[…].set(…, out_sharding=weft.P(…))."
        whole(name, ins[:1], numbers.scatter_dims_to_operand_dims, "it writes at indices", cure)
        window = [i for i in range(len(x.shape)) if i not in numbers.inserted_window_dims]
        window = [i for i in window if i not in numbers.operand_batching_dims]
        given = parts_of(updates)
        for d, i in zip(numbers.update_window_dims, window):
            if given[d] is not None and given[d] != parts_of(x)[i]:
                refuse(name, ins, f"axis {d} of the updates is not divided as axis {i} of the array", cure)
        batch = dict(zip(numbers.scatter_indices_batching_dims, numbers.operand_batching_dims))
        rest = [d for d in range(len(given)) if d not in numbers.update_window_dims]
        for j, d in enumerate(rest):
            for part in (given[d], parts_of(indices)[j]):
                if part is not None and part != (parts_of(x)[batch[j]] if j in batch else None):
                    refuse(name, ins, "the indices or updates are divided, and each device needs all of them", cure)
        return [parts_of(x)]

    return rule


def _scatter_primitive(name: str, combine: Callable[[Any, Any], Any] | None, *, arithmetic: bool = False) -> Primitive:
    primitive = Primitive(name, wire=portable(**_SCATTER))

    def abstract(x: ShapedArray, indices: ShapedArray, updates: ShapedArray, **params: Any) -> ShapedArray:
        if arithmetic:
            check_kind(name, x, "iufc")
        return _scatter_abstract(x, indices, updates, **params)

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
            broadcast_to_axis(v, axis.size, axis.placed) if d is None else moveaxis(v, d, 0) for v, d in zip(args, dims)
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

    primitive.abstract, primitive.batch, primitive.shard = abstract, batch, _scatter_shard(name)
    primitive.reference = functools.partial(_scatter_reference, combine)
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
    """If several updates write to one place, the one that takes effect is found by scattering their numbers; only that
    one has a tangent.
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
    """Only scatters to distinct places are linear directly; the jvp rule rewrote all others."""
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
    """Exact for places to which at most one update is written."""
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


# The rules of scatters use gather, and so follow it; the part that gather's own rule needs comes last.
gather_p.add_rules(transpose=_gather_transpose)
