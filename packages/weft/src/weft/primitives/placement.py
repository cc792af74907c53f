"""Placement: constraints on the sharding of values inside a program, and moves between devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..core.primitive import Primitive, Zero
from ..core.shardings import cotangent_placed, each_same, parts_of, placed_of, same, with_placed
from ..core.wire import NAMES_DEVICES, portable, stays, word
from ..core.trace import get_aval
from ..base.layout import Format
from ..base.mesh import (
    AbstractMesh,
    Mesh,
    NamedSharding,
    P,
    Sharding,
    SingleDeviceSharding,
    type_of_sharding,
)
from .rules import linear_jvp

if TYPE_CHECKING:
    from ..base.avals import AbstractValue, ShapedArray
    from ..base.layout import Layout
    from ..core.trace import Axis
    from ..core.types import Dims, Params, Value

sharding_constraint_p = Primitive("sharding_constraint", basic=False, wire=NAMES_DEVICES)


def _abstract(x: ShapedArray, *, sharding: Any) -> ShapedArray:
    if P.UNCONSTRAINED not in sharding.spec.partitions:
        sharding.shard_shape(x.shape)
    sharding.check_compatible_aval(x.shape)
    return x


def _batch(axis: Axis, args: Sequence[Value], dims: Dims, *, sharding: Any) -> tuple[Value, Any]:
    """The new axis is cut along the mesh axes of `vmap(spmd_axis_name=…)`, or as the compiler chooses."""
    (x,), (dim,) = args, dims
    if dim is None:
        return constrain(x, sharding), None
    lead = P.UNCONSTRAINED if not axis.spmd else axis.spmd if len(axis.spmd) > 1 else axis.spmd[0]
    parts = [*sharding.spec, *[None] * (dim - len(sharding.spec))]
    parts.insert(dim, lead)
    return constrain(x, sharding.update(spec=P(*parts))), dim


def constrain(x: Value, sharding: Sharding | Format | None) -> Value:
    """`x` with the sharding `sharding` (None: any); of a Format, the sharding."""
    if isinstance(sharding, Format):
        sharding = sharding.sharding
    if isinstance(sharding, SingleDeviceSharding):
        return transfer_p.bind(x, devices=(sharding,), srcs=(None,))[0]
    return x if sharding is None else sharding_constraint_p.bind(x, sharding=sharding)


sharding_constraint_p.abstract, sharding_constraint_p.batch = _abstract, _batch
sharding_constraint_p.shard, sharding_constraint_p.linear_in_sums = same, True
sharding_constraint_p.reference = lambda x, *, sharding: x
sharding_constraint_p.jvp = linear_jvp(sharding_constraint_p)
sharding_constraint_p.transpose = lambda ct, x, *, sharding: [ct if type(ct) is Zero else constrain(ct, sharding)]
sharding_constraint_p.decompose = lambda x, *, sharding: x


def _shardings(params: Params) -> tuple[Sequence[Any], Sequence[Any]]:
    sharding = params["sharding"]
    named = isinstance(sharding.mesh, Mesh) and P.UNCONSTRAINED not in sharding.spec.partitions
    given = (sharding,) if named else ()
    return given, given


sharding_constraint_p.asks_shardings = _shardings

transfer_p = Primitive("transfer", multiple_results=True, basic=False, wire=NAMES_DEVICES)


def _put_jvp(primals: Sequence[Value], tangents: Sequence[Value], *, devices: Any, srcs: Any) -> tuple[Value, Value]:
    outs = transfer_p.bind(*primals, devices=devices, srcs=srcs)
    live = [i for i, t in enumerate(tangents) if type(t) is not Zero]
    moved = iter(
        transfer_p.bind(
            *[tangents[i] for i in live], devices=tuple(devices[i] for i in live), srcs=tuple(srcs[i] for i in live)
        )
        if live
        else ()
    )
    return outs, [t if type(t) is Zero else next(moved) for t in tangents]


def _put_transpose(cts: Sequence[Value], *xs: Any, devices: Any, srcs: Any) -> list[Value | None]:
    """Cotangents move back to where the values came from."""
    live = [i for i, ct in enumerate(cts) if type(ct) is not Zero]
    back = iter(
        transfer_p.bind(
            *[cts[i] for i in live], devices=tuple(srcs[i] for i in live), srcs=tuple(devices[i] for i in live)
        )
        if live
        else ()
    )
    return [next(back) if i in live else None for i in range(len(cts))]


def _transfer_abstract(*xs: Any, devices: Any, srcs: Any) -> list[Any]:
    return [
        with_placed(x, type_of_sharding(where, len(x.shape))) if isinstance(where, Sharding) else x
        for x, where in zip(xs, devices)
    ]


transfer_p.abstract, transfer_p.has_typed_results = _transfer_abstract, True
transfer_p.reference = lambda *xs, devices, srcs: list(xs)
transfer_p.jvp, transfer_p.transpose = _put_jvp, _put_transpose
transfer_p.batch = lambda axis, args, dims, **params: (transfer_p.bind(*args, **params), dims)
transfer_p.decompose = lambda *xs, devices, srcs: list(xs)

# A value moved to another memory of its device ("device", "pinned_host"). On a device with one memory, nothing moves.
to_memory_p = Primitive("device_put", wire=portable(memory=word("device", "pinned_host", "unpinned_host")))
to_memory_p.abstract = lambda x, *, memory: x
to_memory_p.reference = lambda x, *, memory: x
to_memory_p.decompose = lambda x, *, memory: x
to_memory_p.jvp = linear_jvp(to_memory_p)
to_memory_p.transpose = lambda ct, x, *, memory: [ct]
to_memory_p.shard, to_memory_p.linear_in_sums = same, True
to_memory_p.batch = lambda axis, args, dims, *, memory: (to_memory_p.bind(args[0], memory=memory), dims[0])

# The order in which the axes of a value lie in memory, inside a program.
layout_constraint_p = Primitive(
    "layout_constraint", basic=False, wire=stays("the order of axes in memory is a matter of one compiler")
)


def _laid_out(x: ShapedArray, *, layout: Layout) -> ShapedArray:
    layout.check_compatible_aval(x.shape)
    return x


def _batch_layout(axis: Axis, args: Sequence[Value], dims: Dims, *, layout: Layout) -> tuple[Value, Any]:
    """The new axis is the slowest."""
    (x,), (dim,) = args, dims
    if dim is None:
        return layout_constraint_p.bind(x, layout=layout), None
    order = (dim, *[i + (i >= dim) for i in layout.major_to_minor])
    return layout_constraint_p.bind(x, layout=layout.with_order(order)), dim


layout_constraint_p.abstract, layout_constraint_p.batch = _laid_out, _batch_layout
layout_constraint_p.reference = lambda x, *, layout: x
layout_constraint_p.jvp = linear_jvp(layout_constraint_p)
layout_constraint_p.transpose = lambda ct, x, *, layout: [
    ct if type(ct) is Zero else layout_constraint_p.bind(ct, layout=layout)
]
layout_constraint_p.shard, layout_constraint_p.linear_in_sums = same, True
layout_constraint_p.decompose = lambda x, *, layout: x

# Two values that the compiler gives one sharding, whichever.
shard_alike_p = Primitive("shard_alike", multiple_results=True, basic=False, wire=portable())


def _alike_jvp(primals: Sequence[Value], tangents: Sequence[Value]) -> tuple[list[Value], list[Value]]:
    outs = shard_alike_p.bind(*primals)
    return outs, list(tangents) if any(type(t) is Zero for t in tangents) else shard_alike_p.bind(*tangents)


def _alike_transpose(cts: Sequence[Value], x: Any, y: Any) -> list[Value]:
    return list(cts) if any(type(ct) is Zero for ct in cts) else shard_alike_p.bind(*cts)


def _alike_batch(axis: Axis, args: Sequence[Value], dims: Dims) -> tuple[list[Value], Any]:
    if dims[0] == dims[1]:
        return shard_alike_p.bind(*args), dims
    return list(args), dims  # their shapes differ now


shard_alike_p.abstract = lambda x, y: [x, y]
shard_alike_p.reference = lambda x, y: [x, y]
shard_alike_p.jvp, shard_alike_p.transpose, shard_alike_p.batch = _alike_jvp, _alike_transpose, _alike_batch
shard_alike_p.shard, shard_alike_p.linear_in_sums = each_same, True
shard_alike_p.decompose = lambda x, y: [x, y]

# reshard --------------------------------------------------------------------------------------------------------------

reshard_p = Primitive("reshard", hidden=("dst_sharding",), basic=False, wire=NAMES_DEVICES)


def _reshard_abstract(x: ShapedArray, *, dst_sharding: NamedSharding) -> ShapedArray:
    typed: ShapedArray = with_placed(x, type_of_sharding(dst_sharding, len(x.shape)))
    return typed


def _reshard_batch(axis: Axis, args: Sequence[Value], dims: Dims, *, dst_sharding: NamedSharding) -> tuple[Value, Any]:
    (x,), (dim,) = args, dims
    if dim is None:
        return reshard(x, dst_sharding), None
    rank = len(get_aval(x).shape) - 1
    parts = [*dst_sharding.spec, *[None] * (rank - len(dst_sharding.spec))]
    parts.insert(dim, parts_of(get_aval(x))[dim])
    return reshard(x, dst_sharding.update(spec=dst_sharding.spec.update(partitions=parts))), dim


def reshard(x: Value, sharding: NamedSharding) -> Value:
    """`x`, divided as the explicit axes of a sharding say."""
    return reshard_p.bind(x, dst_sharding=sharding)


def to_types(x: Value, mesh: AbstractMesh) -> Value:
    """`x` where axes of the mesh have other types: it stays where it is, and its type speaks of axes that are explicit
    there.
    """
    placed = placed_of(get_aval(x))
    return x if placed is None else reshard(x, NamedSharding(mesh, placed.spec))


def like_primal(ct: Value, aval: AbstractValue) -> Value:
    """A cotangent, divided as that of a value of type `aval` is."""
    mine, wanted = placed_of(get_aval(ct)), cotangent_placed(aval)
    if mine == wanted:
        return ct
    return reshard(ct, wanted or NamedSharding(mine.mesh, P(*[None] * len(aval.shape))))  # type: ignore[union-attr]


reshard_p.abstract, reshard_p.has_typed_results = _reshard_abstract, True
reshard_p.reference = lambda x, *, dst_sharding: x
reshard_p.jvp, reshard_p.batch = linear_jvp(reshard_p), _reshard_batch
reshard_p.transpose = lambda ct, x, *, dst_sharding: [ct]  # each cotangent is divided as its primal value wants it
reshard_p.decompose = lambda x, *, dst_sharding: x
reshard_p.shown = lambda params: []
