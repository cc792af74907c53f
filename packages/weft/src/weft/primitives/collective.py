"""Primitives that communicate over named axes.

Under `vmap` they act on the batch axis: each primitive defines its effect on the stacked values of all members, and one
batching rule serves all primitives. Under `pmap` and `shard_map` a backend turns them into communication between
devices.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..base import dtypes
from ..base.avals import shaped, tangent_aval
from ..core.primitive import Primitive, Zero, unsupported
from ..core.shardings import each_same, resized
from ..core.wire import COMMUNICATES
from ..core.trace import axis_env, axis_size_of, get_aval
from ..base.errors import type_error
from ..base.host import from_flat
from .elementwise import add, eq, mul as _mul, select as _select
from .gather import GatherDimensionNumbers, gather as _gather
from .dynamic_slice import dynamic_slice_p as _dynamic_slice_p
from .linear import broadcast_in_dim, broadcast_to_axis, full, moveaxis, reduce_sum, reshape as _reshape, zeros
from .reduce import reduce_max, reduce_min
from .rules import is_linear_arg, linear_jvp, shape_of
from .shape import concatenate as _concatenate, iota, slice_ as _slice

if TYPE_CHECKING:
    from ..core.primitive import AbstractRule, TransposeRule
    from ..base.avals import ShapedArray
    from ..core.trace import Axis
    from ..core.types import Dims, Params, Value

_OUTSIDE = "a collective has a value only inside vmap, pmap or shard_map, which replace it"


def names_of(axis_name: Any) -> tuple[Any, ...]:
    """The axes of a collective that are names."""
    return tuple(
        a for a in (axis_name if isinstance(axis_name, (tuple, list)) else (axis_name,)) if not isinstance(a, int)
    )


def axis_size(names: Any) -> int:
    """The product of the sizes of named axes."""
    return math.prod(axis_size_of(n) for n in (names if isinstance(names, tuple) else (names,)))


def group_size(axis_name: Any, axis_index_groups: Any) -> int:
    """How many members communicate with each other."""
    return axis_size(axis_name) if axis_index_groups is None else len(axis_index_groups[0])


# what happens to the values of all members, stacked along axis 0 ------------------------------------------------------


def _take(rows: Sequence[Value], order: Sequence[int]) -> object:
    """The rows of a stack in another order, or some of them."""
    n, shape = shape_of(rows)[0], shape_of(rows)
    order = list(order)
    if order == list(range(n)):
        return rows
    if len(order) == 1:
        return _slice(rows, (order[0],) + (0,) * (len(shape) - 1), (order[0] + 1, *shape[1:]))
    numbers = GatherDimensionNumbers(tuple(range(1, len(shape))), (0,), (0,))
    return _gather(rows, from_flat(order, (len(order), 1), dtypes.int32), numbers, (1, *shape[1:]))


def _split_front(x: Value, dimension: int, parts: int, tiled: bool) -> Value:
    """(parts, …): the axis `dimension` cut into that many parts, which form a new first axis."""
    shape = shape_of(x)
    if tiled:
        x = _reshape(x, (*shape[:dimension], parts, shape[dimension] // parts, *shape[dimension + 1 :]))
    return moveaxis(x, dimension, 0)


def _merge(x: Value, dimension: int) -> Value:
    """The axes `dimension` and `dimension + 1` merged."""
    shape = shape_of(x)
    return _reshape(x, (*shape[:dimension], shape[dimension] * shape[dimension + 1], *shape[dimension + 2 :]))


def _gathered(rows: Sequence[Value], *, all_gather_dimension: int, tiled: bool, **_: Any) -> tuple[Value, Value]:
    out = moveaxis(rows, 0, all_gather_dimension)
    return (_merge(out, all_gather_dimension) if tiled else out), None


def _exchanged(
    rows: Sequence[Value], *, split_axis: int, concat_axis: int, tiled: bool, **_: Any
) -> tuple[Value, Value]:
    n = shape_of(rows)[0]
    parts = _split_front(rows, split_axis + 1, n, tiled)  # (destination, source, …)
    if tiled:
        return _merge(moveaxis(parts, 1, concat_axis + 1), concat_axis + 1), 0
    return moveaxis(parts, 1, concat_axis + 1), 0


def _scattered(rows: Sequence[Value], *, scatter_dimension: int, tiled: bool, **_: Any) -> tuple[Value, Value]:
    return _split_front(reduce_sum(rows, (0,)), scatter_dimension, shape_of(rows)[0], tiled), 0


def _permuted(rows: Sequence[Value], *, perm: Any, **_: Any) -> tuple[Value, Value]:
    n, source = shape_of(rows)[0], {dst: src for src, dst in perm}
    if len(source) == n:
        return _take(rows, [source[i] for i in range(n)]), 0
    wider = _concatenate([rows, full((1, *shape_of(rows)[1:]), 0, get_aval(rows).dtype)], 0)
    return _take(wider, [source.get(i, n) for i in range(n)]), 0


def _broadcast(rows: Sequence[Value], *, source: Any, **_: Any) -> tuple[Value, Value]:
    return _reshape(_take(rows, [source]), shape_of(rows)[1:]), None


def _in_groups(alone: Callable[..., Any], rows: Sequence[Value], groups: Any, params: Params) -> Value:
    """The results of all members where each group communicates for itself."""
    if groups is None:
        return alone(rows, **params)
    if len({len(g) for g in groups}) != 1:
        raise type_error(f"axis_index_groups of different sizes have no value under vmap; got {groups}.")
    parts = []
    for group in groups:
        out, dim = alone(_take(rows, group), **params)
        parts.append(broadcast_to_axis(out, len(group)) if dim is None else out)
    order = [m for group in groups for m in group]
    return _take(_concatenate(parts, 0), [order.index(i) for i in range(len(order))]), 0


def _stacked(axis: Axis, x: Value, dim: int) -> Value:
    return broadcast_to_axis(x, axis.size, axis.placed) if dim is None else moveaxis(x, dim, 0)


def _batch_member(
    axis: Axis, x: Value, dim: int, names: tuple[Any, ...], alone: Callable[..., Any], groups: Any, params: Params
) -> Value:
    """One operand of a collective over `names`, one of which is the batch axis: (result, its batch axis)."""
    rows, rest = _stacked(axis, x, dim), tuple(n for n in names if n != axis.name)
    if not rest:
        return _in_groups(alone, rows, groups, params)
    # The axes that are still unbound: fetch everybody's values, compute everybody's results, keep our own.
    local, sizes = shape_of(rows)[1:], tuple(axis.size if n == axis.name else axis_size_of(n) for n in names)
    for name in reversed(rest):
        rows = all_gather_p.bind(
            rows,
            axis_name=(name,),
            all_gather_dimension=0,
            axis_size=axis_size_of(name),
            tiled=False,
            axis_index_groups=None,
        )
    rows = _reshape(moveaxis(rows, len(rest), names.index(axis.name)), (math.prod(sizes), *local))
    out, out_dim = _in_groups(alone, rows, groups, params)
    if out_dim is None:
        return out, None
    out = _reshape(out, (*sizes, *shape_of(out)[1:]))
    starts = [full((), 0, dtypes.int32) if n == axis.name else axis_index_p.bind(axis_name=n) for n in names]
    starts += [full((), 0, dtypes.int32)] * (len(shape_of(out)) - len(names))
    kept = tuple(n if name == axis.name else 1 for name, n in zip(names, sizes))
    tail = shape_of(out)[len(names) :]
    return _reshape(_dynamic_slice_p.bind(out, *starts, slice_sizes=(*kept, *tail)), (axis.size, *tail)), 0


# reductions ----------------------------------------------------------------------------------------------------------


def _all_reduce(name: str, reduce: Callable[..., Any], scale_constant: Any) -> Primitive:
    """A reduction over named axes; positions among the axes are reduced in place."""
    primitive = Primitive(name, multiple_results=True, wire=COMMUNICATES)

    def abstract(*xs: ShapedArray, axes: tuple[Any, ...], axis_index_groups: Any) -> list[ShapedArray]:
        for axis in names_of(axes):
            axis_size_of(axis)
        positions = [a for a in axes if isinstance(a, int)]
        return [shaped(tuple(n for d, n in enumerate(x.shape) if d not in positions), x.dtype, x.weak_type) for x in xs]

    def batch(
        axis: Axis, args: Sequence[Value], dims: Dims, *, axes: tuple[int, ...], axis_index_groups: Any
    ) -> tuple[Value, Any]:
        if axis.name is None or axis.name not in axes:  # the positions are positions of one example
            moved = [x if d is None else moveaxis(x, d, 0) for x, d in zip(args, dims)]
            shifted = tuple(a + 1 if isinstance(a, int) else a for a in axes)
            batched = [i for i, d in enumerate(dims) if d is not None]
            plain = [i for i, d in enumerate(dims) if d is None]
            outs = [None] * len(args)
            for places, where in ((batched, shifted), (plain, axes)):
                if places:
                    for i, out in zip(
                        places,
                        primitive.bind(*[moved[i] for i in places], axes=where, axis_index_groups=axis_index_groups),
                    ):
                        outs[i] = out
            return outs, [None if d is None else 0 for d in dims]
        if axis_index_groups is not None:
            alone = lambda rows: (reduce(rows, (0,)), None)
            pairs = [
                _batch_member(axis, x, d, names_of(axes), alone, axis_index_groups, {}) for x, d in zip(args, dims)
            ]
            return [x for x, _ in pairs], [d for _, d in pairs]
        rest = tuple(a for a in axes if a != axis.name)
        outs = [scale_constant(x, axis.size) if d is None else reduce(x, (d,)) for x, d in zip(args, dims)]
        return (primitive.bind(*outs, axes=rest, axis_index_groups=None) if rest else outs), [None] * len(outs)

    primitive.abstract, primitive.batch, primitive.shard = abstract, batch, each_same
    primitive.reference = unsupported(_OUTSIDE)
    primitive.axis_names = lambda params: names_of(params["axes"])
    return primitive


psum_p = _all_reduce("psum", reduce_sum, lambda x, n: _times(x, n))
pmax_p = _all_reduce("pmax", reduce_max, lambda x, n: x)
pmin_p = _all_reduce("pmin", reduce_min, lambda x, n: x)


def _times(x: Value, n: int) -> Value:
    aval = get_aval(x)
    return _mul(x, full((), n, aval.dtype))


def _psum_jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Value, Value]:
    outs = psum_p.bind(*primals, **params)
    live = [t for t in tangents if type(t) is not Zero]
    sums = iter(psum_p.bind(*live, **params) if live else [])
    return outs, [Zero(tangent_aval(get_aval(o))) if type(t) is Zero else next(sums) for o, t in zip(outs, tangents)]


def _psum_transpose(
    cts: Sequence[Value], *xs: Any, axes: tuple[int, ...], axis_index_groups: Any
) -> list[Value | None]:
    positions, names = [a for a in axes if isinstance(a, int)], names_of(axes)
    # along these the cotangent is the same, and every member's
    same = checked(names) if axis_index_groups is None else ()
    names = tuple(n for n in names if n not in same)
    spread = []
    for c, x in zip(cts, xs):
        if is_linear_arg(x) and type(c) is not Zero:
            kept = tuple(d for d in range(len(x.aval.shape)) if d not in positions)
            copies = math.prod(axis_size_of(n) for n in same if n not in x.aval.vma)
            c = _times(c, copies) if copies > 1 else c
            spread.append(broadcast_in_dim(c, x.aval.shape, kept) if positions else c)
    sums = iter(psum_p.bind(*spread, axes=names, axis_index_groups=axis_index_groups) if names and spread else spread)
    return [next(sums) if is_linear_arg(x) and type(c) is not Zero else None for c, x in zip(cts, xs)]


psum_p.jvp, psum_p.transpose = _psum_jvp, _psum_transpose


for _p in (pmax_p, pmin_p):
    _p.jvp = unsupported(f"{_p} has no derivative; use weft.lax.psum, or weft.lax.all_gather and a local reduction.")


# types that say where values vary ------------------------------------------------------------------------------------


def checked(names: Any) -> tuple[Any, ...]:
    """The named axes along which, by the types, values vary."""
    known = {a.name for a in axis_env() if a.checked}
    return tuple(n for n in names if n in known)


def _reduced(params: Params, ins: Sequence[frozenset[Any]]) -> list[Value]:
    names = frozenset(checked(names_of(params["axes"])))
    return [v - names if params["axis_index_groups"] is None else v | names for v in ins]


def _everywhere(params: Params, ins: Sequence[frozenset[Any]]) -> list[Value]:
    return [ins[0].union(checked(names_of(params["axis_name"])))]


psum_p.vary = pmax_p.vary = pmin_p.vary = _reduced

pvary_p = Primitive("pvary", wire=COMMUNICATES)
pvary_p.abstract = lambda x, *, axes: x
pvary_p.vary = lambda params, ins: [ins[0].union(checked(params["axes"]))]
pvary_p.reference = pvary_p.decompose = lambda x, *, axes: x
pvary_p.jvp = linear_jvp(pvary_p)
# which is added up over the axes where it is used: transforms.varying_axes.sum_over_varying_axes
pvary_p.transpose = lambda ct, x, *, axes: [ct]
pvary_p.batch = lambda axis, args, dims, *, axes: (pvary_p.bind(*args, axes=axes), dims[0])
pvary_p.shard, pvary_p.linear_in_sums = each_same, True

# where a member stands -----------------------------------------------------------------------------------------------

axis_index_p = Primitive("axis_index", wire=COMMUNICATES)
axis_index_p.abstract = lambda *, axis_name: (axis_size_of(axis_name), shaped((), dtypes.int32))[1]
axis_index_p.vary = lambda params, ins: [frozenset(checked((params["axis_name"],)))]
axis_index_p.axis_names = lambda params: (params["axis_name"],)
axis_index_p.jvp = lambda primals, tangents, **params: (
    axis_index_p.bind(**params),
    Zero(tangent_aval(shaped((), dtypes.int32))),
)
axis_index_p.batch = lambda axis, args, dims, *, axis_name: (iota(dtypes.int32, (axis.size,), 0), 0)
axis_index_p.reference = unsupported(_OUTSIDE)


def member_index(names: tuple[Any, ...]) -> Value:
    """The position along several axes taken as one; the last axis varies fastest."""
    index = axis_index_p.bind(axis_name=names[0])
    for name in names[1:]:
        index = add(_mul(index, full((), axis_size_of(name), dtypes.int32)), axis_index_p.bind(axis_name=name))
    return index


# moving values -------------------------------------------------------------------------------------------------------


def _collective(
    name: str, alone: Callable[..., Any], dimensions: tuple[Any, ...], abstract: AbstractRule, transpose: TransposeRule
) -> Primitive:
    """A linear collective of one operand; `dimensions` names the parameters that are positions of its axes."""
    primitive = Primitive(name, wire=COMMUNICATES)

    def batch(axis: Axis, args: Sequence[Value], dims: Dims, **params: Any) -> tuple[Value, Any]:
        (x,), (dim,), names = args, dims, names_of(params["axis_name"])
        if axis.name is None or axis.name not in names:
            if dim is None:
                return primitive.bind(x, **params), None
            return (
                primitive.bind(moveaxis(x, dim, 0), **{k: v + 1 if k in dimensions else v for k, v in params.items()}),
                0,
            )
        inner = dict(params)
        member: tuple[Value, Any] = _batch_member(
            axis, x, dim, names, alone, inner.pop("axis_index_groups", None), inner
        )
        return member

    def jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Value, Value]:
        out, (t,) = primitive.bind(*primals, **params), tangents
        return out, Zero(tangent_aval(get_aval(out))) if type(t) is Zero else primitive.bind(t, **params)

    primitive.abstract, primitive.batch, primitive.jvp, primitive.transpose = abstract, batch, jvp, transpose
    primitive.shard = resized(name)
    primitive.axis_names = lambda params: names_of(params["axis_name"])
    primitive.reference, primitive.vary = unsupported(_OUTSIDE), _everywhere
    return primitive


def _all_gather_abstract(
    x: ShapedArray, *, axis_name: Any, all_gather_dimension: int, axis_size: int, tiled: bool, axis_index_groups: Any
) -> ShapedArray:
    d = all_gather_dimension
    if tiled:
        return shaped((*x.shape[:d], x.shape[d] * axis_size, *x.shape[d + 1 :]), x.dtype, x.weak_type)
    return shaped((*x.shape[:d], axis_size, *x.shape[d:]), x.dtype, x.weak_type)


def _all_gather_transpose(
    ct: Value,
    x: Value,
    *,
    axis_name: Any,
    all_gather_dimension: int,
    axis_size: int,
    tiled: bool,
    axis_index_groups: Any,
) -> list[Value | None]:
    return [
        reduce_scatter_p.bind(
            ct,
            axis_name=axis_name,
            scatter_dimension=all_gather_dimension,
            axis_size=axis_size,
            tiled=tiled,
            axis_index_groups=axis_index_groups,
        )
    ]


def _own_part(
    ct: Value, x: Value, *, axis_name: Any, all_gather_dimension: int, axis_size: int, tiled: bool
) -> list[Value | None]:
    """Each member's own part of a cotangent that is the same on all of them."""
    d, shape = all_gather_dimension, shape_of(ct)
    width = shape[d] // axis_size
    start = _mul(member_index(names_of(axis_name)), full((), width, dtypes.int32))
    starts = [start if i == d else full((), 0, dtypes.int32) for i in range(len(shape))]
    part = _dynamic_slice_p.bind(ct, *starts, slice_sizes=tuple(width if i == d else n for i, n in enumerate(shape)))
    return [part if tiled else _reshape(part, (*shape[:d], *shape[d + 1 :]))]


def _reduce_scatter_abstract(
    x: ShapedArray, *, axis_name: Any, scatter_dimension: int, axis_size: int, tiled: bool, axis_index_groups: Any
) -> ShapedArray:
    d, n = scatter_dimension, x.shape[scatter_dimension]
    if tiled and n % axis_size or not tiled and n != axis_size:
        raise type_error(
            f"psum_scatter: the axis {d} of {x.str_short()} has size {n}, which must be"
            f" {'a multiple of' if tiled else ''} the number of members, {axis_size}; pad the array, or scatter another"
            " axis."
        )
    return shaped((*x.shape[:d], *((n // axis_size,) if tiled else ()), *x.shape[d + 1 :]), x.dtype, x.weak_type)


def _reduce_scatter_transpose(
    ct: Value, x: Value, *, axis_name: Any, scatter_dimension: int, axis_size: int, tiled: bool, axis_index_groups: Any
) -> list[Value | None]:
    return [
        all_gather_p.bind(
            ct,
            axis_name=axis_name,
            all_gather_dimension=scatter_dimension,
            axis_size=axis_size,
            tiled=tiled,
            axis_index_groups=axis_index_groups,
        )
    ]


def _all_to_all_abstract(
    x: ShapedArray, *, axis_name: Any, split_axis: int, concat_axis: int, axis_index_groups: Any, tiled: bool
) -> ShapedArray:
    n, members = x.shape[split_axis], group_size(axis_name, axis_index_groups)
    if tiled and n % members or not tiled and n != members:
        raise type_error(
            f"all_to_all: the axis {split_axis} of {x.str_short()} has size {n}, which must be"
            f" {'a multiple of' if tiled else ''} the number of members, {members}; pad the array, or split another"
            " axis."
        )
    shape = list(x.shape)
    if tiled:
        shape[split_axis] //= members
        shape[concat_axis] *= members
    else:
        shape.insert(concat_axis, shape.pop(split_axis))
    return shaped(tuple(shape), x.dtype, x.weak_type)


def _all_to_all_transpose(
    ct: Value, x: Value, *, axis_name: Any, split_axis: int, concat_axis: int, axis_index_groups: Any, tiled: bool
) -> list[Value | None]:
    return [
        all_to_all_p.bind(
            ct,
            axis_name=axis_name,
            split_axis=concat_axis,
            concat_axis=split_axis,
            axis_index_groups=axis_index_groups,
            tiled=tiled,
        )
    ]


def _ppermute_transpose(ct: Value, x: Value, *, axis_name: Any, perm: Any) -> list[Value | None]:
    return [ppermute_p.bind(ct, axis_name=axis_name, perm=tuple((b, a) for a, b in perm))]


def _pbroadcast_transpose(ct: Value, x: Value, *, axis_name: Any, source: Any) -> list[Value | None]:
    """The source gets the sum of all cotangents, the others nothing."""
    names = names_of(axis_name)
    (total,) = psum_p.bind(ct, axes=names, axis_index_groups=None)
    return [_only_at(source, names, total)]


def _only_at(source: int, names: tuple[Any, ...], x: Value) -> Value:
    """`x` on one member, zeros on the others."""
    here = eq(member_index(names), full((), source, dtypes.int32))
    shape = shape_of(x)
    return _select(broadcast_in_dim(here, shape, ()) if shape else here, x, zeros(get_aval(x)))


def _pbroadcast_decompose(x: Value, *, axis_name: Any, source: Any) -> Value:
    names, dt = names_of(axis_name), get_aval(x).dtype
    if dtypes.is_bool(dt):
        (total,) = pmax_p.bind(_only_at(source, names, x), axes=names, axis_index_groups=None)
    else:
        (total,) = psum_p.bind(_only_at(source, names, x), axes=names, axis_index_groups=None)
    return total


all_gather_p = _collective(
    "all_gather", _gathered, ("all_gather_dimension",), _all_gather_abstract, _all_gather_transpose
)
all_gather_invariant_p = _collective(
    "all_gather_invariant",
    _gathered,
    ("all_gather_dimension",),
    lambda x, **params: _all_gather_abstract(x, axis_index_groups=None, **params),
    _own_part,
)
all_gather_invariant_p.decompose = lambda x, **params: all_gather_p.bind(x, axis_index_groups=None, **params)
all_gather_invariant_p.vary = lambda params, ins: [ins[0] - frozenset(checked(names_of(params["axis_name"])))]
reduce_scatter_p = _collective(
    "reduce_scatter", _scattered, ("scatter_dimension",), _reduce_scatter_abstract, _reduce_scatter_transpose
)
all_to_all_p = _collective(
    "all_to_all", _exchanged, ("split_axis", "concat_axis"), _all_to_all_abstract, _all_to_all_transpose
)
ppermute_p = _collective(
    "ppermute", _permuted, (), lambda x, *, axis_name, perm: (axis_size(axis_name), x)[1], _ppermute_transpose
)
pbroadcast_p = _collective(
    "pbroadcast", _broadcast, (), lambda x, *, axis_name, source: (axis_size(axis_name), x)[1], _pbroadcast_transpose
)
pbroadcast_p.decompose = _pbroadcast_decompose

# which axes are in scope decides whether there is a result at all
for _p in (
    psum_p,
    pmax_p,
    pmin_p,
    axis_index_p,
    all_gather_p,
    all_gather_invariant_p,
    reduce_scatter_p,
    all_to_all_p,
    ppermute_p,
    pbroadcast_p,
):
    _p.cache = None
