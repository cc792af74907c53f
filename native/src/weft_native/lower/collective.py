"""Programs over several devices: shardings, shard_map and pmap, and the collectives inside them."""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence

import numpy as np
from jaxlib.mlir import ir
from weft.base import dtypes
from weft.base.avals import shaped
from weft.core.effects import any_ordered
from weft.core.trace import Axis, mapped_axes
from weft.base.errors import BackendError
from weft.base.mesh import AbstractMesh, AxisType, Mesh, NamedSharding, P, axes_of
from weft.transforms.stage import stage_closed

from .builder import dense_ints
from .callback import token_type
from .registry import rule, rules


class Members(NamedTuple):
    """The devices (or replicas) that run the part of a program that is being lowered."""

    sizes: tuple  # the grid they make
    names: tuple  # (axis name of the program, axis of the grid) pairs
    mesh: Any  # the Mesh of partitions; None for replicas
    # (axis name, value that holds the position along it), where the axes of the grid are not all manual
    indices: tuple = ()

    def axis(self, name) -> int:
        return next(i for n, i in reversed(self.names) if n == name)

    @property
    def key(self) -> tuple:
        return self.sizes, self.names, self.mesh, not self.indices


def replicas(axes: Sequence[Axis]) -> Members:
    """The members of a program whose named axes are replicas, the last axis running fastest."""
    return Members(tuple(a.size for a in axes), tuple((a.name, i) for i, a in enumerate(axes)), None)


def partitions(mesh: Mesh) -> Members:
    """The members of a program that is one device's part on a mesh."""
    return Members(mesh.axis_sizes, tuple((name, i) for i, name in enumerate(mesh.axis_names)), mesh)


# shardings -----------------------------------------------------------------------------------------------------------


def mesh_symbol(b, mesh: Mesh | AbstractMesh) -> tuple[str, dict]:
    """(symbol, its names of the axes) of a mesh in the module."""
    if mesh not in b.meshes:
        labels: dict = {}
        for i, name in enumerate(mesh.axis_names):
            plain = isinstance(name, str) and name.isidentifier() and name not in labels.values()
            labels[name] = name if plain else f"axis{i}"
        symbol = "mesh" if not b.meshes else f"mesh_{len(b.meshes)}"
        text = ", ".join(f'"{labels[n]}"={s}' for n, s in mesh.shape_tuple)
        ir.Operation.create(
            "sdy.mesh",
            attributes={"sym_name": ir.StringAttr.get(symbol), "mesh": ir.Attribute.parse(f"#sdy.mesh<[{text}]>")},
            loc=b.loc,
            ip=ir.InsertionPoint.at_block_begin(b.module.body),
        )
        b.meshes[mesh] = symbol, labels
    return b.meshes[mesh]


def _sharding_text(b, mesh: Mesh | AbstractMesh, spec, rank: int) -> str:
    symbol, labels = mesh_symbol(b, mesh)
    parts = []
    for i in range(rank):
        part = spec[i] if i < len(spec) else None
        parts.append(
            "{?}" if part is P.UNCONSTRAINED else "{" + ", ".join(f'"{labels[a]}"' for a in axes_of(part)) + "}"
        )
    return f"<@{symbol}, [{', '.join(parts)}]>"


def sharding_attr(b, sharding: NamedSharding, rank: int):
    """A sharding of a value of `rank` axes, as Shardy writes it."""
    return ir.Attribute.parse("#sdy.sharding" + _sharding_text(b, sharding.mesh, sharding.spec, rank))


@rule("sharding_constraint")
def _constraint(b, ins, outs, x, *, sharding, **_):
    if not b.partitions:
        return x
    return b.op(
        "sdy.sharding_constraint", [x], b.type(outs[0]), {"sharding": sharding_attr(b, sharding, len(outs[0].shape))}
    )


@rule("shard_alike")
def _shard_alike(b, ins, outs, x, y):
    if b.partitions and len(b.partitions.devices) > 1:
        group = b.groups = b.groups + 1
        for value in (x, y):
            b.ops("sdy.sharding_group", [value], [], {"group_id": b.int_attr(group - 1, 64)})
    return [x, y]


@rule("transfer")
def _transfer(b, ins, outs, *args, **_):
    return list(args)


# shard_map -----------------------------------------------------------------------------------------------------------


@rule("shard_map")
def _shard_map(b, ins, outs, *args, jaxpr, mesh, in_specs, out_specs, newly_manual_axes, **params):
    params.update(jaxpr=jaxpr, mesh=mesh, in_specs=in_specs, out_specs=out_specs, newly_manual_axes=newly_manual_axes)
    if isinstance(mesh, AbstractMesh):
        return _nested(b, ins, args, params)
    # fewer devices than the program has: all of them compute all of it
    if not b.partitions or mesh.flat_devices != b.partitions.devices:
        return _one_after_another(b, ins, args, params)
    extra = {n for n, t in zip(mesh.axis_names, mesh.axis_types) if t is AxisType.Manual}
    manual = newly_manual_axes | extra
    outer = b.members
    bound = tuple((n, i) for i, n in enumerate(mesh.axis_names) if n in newly_manual_axes)
    partial = len(manual) < len(mesh.axis_names)
    counters = [n for n, _ in bound] if partial else []
    avals = [*ins, *[shaped((mesh.shape[n],), dtypes.int32) for n in counters]]
    operands = [*args, *[b.iota(a.shape, 0, a.dtype) for a in avals[len(args) :]]]
    specs = [*in_specs, *[P(n) for n in counters]]
    local = [*jaxpr.in_avals, *[shaped((1,), dtypes.int32) for _ in counters]]
    symbol, labels = mesh_symbol(b, mesh)
    tokens = [token_type()] if any_ordered(jaxpr.effects) else []  # each device calls in the order of the program

    def per_value(specs, avals):
        texts = [_sharding_text(b, mesh, P(), 0) for _ in tokens]
        texts += [_sharding_text(b, mesh, s, len(a.shape)) for s, a in zip(specs, avals)]
        return ir.Attribute.parse(f"#sdy.sharding_per_value<[{', '.join(texts)}]>")

    axes = ", ".join(f'"{labels[n]}"' for n in mesh.axis_names if n in manual)
    made = ir.Operation.create(
        "sdy.manual_computation",
        results=[*tokens, *[b.type(a) for a in outs]],
        operands=[*[b.token for _ in tokens], *operands],
        regions=1,
        loc=b.loc,
        ip=b.ip,
        attributes={
            "in_shardings": per_value(specs, avals),
            "out_shardings": per_value(out_specs, outs),
            "manual_axes": ir.Attribute.parse(f"#sdy<manual_axes{{{axes}}}>"),
        },
    )
    types = [*tokens, *[b.type(a) for a in local]]
    block = made.regions[0].blocks.append(*types, arg_locs=[b.loc] * len(types))

    def body():
        b.token, *values = block.arguments if tokens else (b.token, *block.arguments)
        indices = tuple((n, b.reshape(v, (), dtypes.int32)) for n, v in zip(counters, values[len(args) :]))
        names = (*outer.names, *bound) if outer is not None and outer.mesh == mesh else bound
        b.members = Members(
            mesh.axis_sizes,
            names,
            mesh,
            ((*outer.indices, *indices) if outer is not None else indices) if partial else (),
        )
        with mapped_axes(*[Axis(n, mesh.shape[n], True) for n, _ in bound]):
            results = b.inline(jaxpr, values[: len(args)])
        return [b.token, *results] if tokens else results

    try:
        b.fill(block, body, "sdy.return")
    finally:
        b.members = outer
    if not tokens:
        return list(made.results)
    b.token, *results = made.results
    return results


def _nested(b, ins, args, params: dict):
    """A pmap inside another one: on a free axis of the outer mesh, or, if none is left, one after another on each
    device.
    """
    from weft.higher_order.shard_map import manual_axes, on_outer_axis  # there is such an equation, so it is loaded

    (axis,), members = manual_axes(params["mesh"], params["newly_manual_axes"]), b.members
    taken = {i for _, i in members.names} if members is not None else set()
    free = (
        [
            i
            for i, (n, t) in enumerate(zip(members.mesh.axis_sizes, members.mesh.axis_types))
            if i not in taken and t is AxisType.Manual and n == axis.size
        ]
        if members is not None and members.mesh is not None
        else []
    )
    if not free:
        return _one_after_another(b, ins, args, params)
    with mapped_axes(axis):
        program = stage_closed(lambda *xs: on_outer_axis(*xs, **params), ins)
        b.members = members._replace(names=(*members.names, (axis.name, free[0])))
        try:
            return b.inline(program, args)
        finally:
            b.members = members


def _one_after_another(b, ins, args, params: dict):
    from weft.higher_order.shard_map import by_vmap

    return b.inline(stage_closed(lambda *xs: by_vmap(*xs, **params), ins), args)


# collectives ---------------------------------------------------------------------------------------------------------


def _groups(b, names: Sequence, axis_index_groups=None) -> np.ndarray:
    """The members that communicate, one group in each row, in the order of their positions along `names`."""
    axes, sizes = _axes(b, names), b.members.sizes
    ids = np.arange(int(np.prod(sizes, dtype=int))).reshape(sizes)
    rows = np.moveaxis(ids, axes, range(len(sizes) - len(axes), len(sizes))).reshape(
        -1, int(np.prod([sizes[a] for a in axes], dtype=int))
    )
    if axis_index_groups is None:
        return rows
    return np.array([[row[m] for m in group] for row in rows for group in axis_index_groups])


def _axes(b, names) -> list:
    if b.members is None:
        raise BackendError(
            f"the program communicates over {names!r}, which nothing in it binds; call it through vmap, pmap or"
            " shard_map, or lower it with weft.xla_computation(axis_env=…)."
        )
    return [b.members.axis(n) for n in names]


def _integers(rows: np.ndarray):
    rows = np.ascontiguousarray(rows, np.int64)
    return dense_ints(rows, ir.RankedTensorType.get(rows.shape, ir.IntegerType.get_signless(64)))


def _attributes(b, groups: np.ndarray, global_ids: bool = True) -> dict:
    made = {"replica_groups": _integers(groups)}
    if b.members.mesh is not None:
        b.channels += 1
        made["channel_handle"] = ir.Attribute.parse(f"#stablehlo.channel_handle<handle = {b.channels}, type = 1>")
        if global_ids:
            made["use_global_device_ids"] = ir.UnitAttr.get()
    return made


def _combine(b, op: str, dtype):
    """The region of a reduction."""
    scalar = b.tensor((), dtype)
    return [([scalar, scalar], lambda x, y: [b.op(op, [x, y], scalar)])]


def _names(axis_name) -> tuple:
    return axis_name if isinstance(axis_name, tuple) else (axis_name,)


def _all_reduce(op: str, local: str):
    def lower(b, ins, outs, *args, axes, axis_index_groups):
        positions = tuple(a for a in axes if isinstance(a, int))
        names = tuple(a for a in axes if not isinstance(a, int))
        made = []
        for x, aval, out in zip(args, ins, outs):
            if positions:
                x = rules[local](b, [aval], [out], x, axes=positions, out_sharding=None)
            if names:
                x = b.ops(
                    "stablehlo.all_reduce",
                    [x],
                    [b.type(out)],
                    _attributes(b, _groups(b, names, axis_index_groups)),
                    _combine(b, op, out.dtype),
                )[0]
            made.append(x)
        return made

    return lower


for _name, _op, _local in (
    ("psum", "stablehlo.add", "reduce_sum"),
    ("pmax", "stablehlo.maximum", "reduce_max"),
    ("pmin", "stablehlo.minimum", "reduce_min"),
):
    rule(_name)(_all_reduce(_op, _local))


@rule("axis_index")
def _axis_index(b, ins, outs, *, axis_name):
    (axis,) = _axes(b, (axis_name,))
    for name, value in b.members.indices:
        if name == axis_name:
            return value
    sizes, ui32 = b.members.sizes, dtypes.uint32
    here = b.op(
        "stablehlo.partition_id" if b.members.mesh is not None else "stablehlo.replica_id", [], b.tensor((), ui32)
    )
    stride = int(np.prod(sizes[axis + 1 :], dtype=int))
    here = b.op("stablehlo.divide", [here, b.splat(stride, ui32)], b.tensor((), ui32))
    here = b.op("stablehlo.remainder", [here, b.splat(sizes[axis], ui32)], b.tensor((), ui32))
    return b.convert(here, (), dtypes.int32)


@rule("all_gather")
def _all_gather(b, ins, outs, x, *, axis_name, all_gather_dimension, axis_size, tiled, axis_index_groups):
    (aval,), d = ins, all_gather_dimension
    if not tiled:
        x = b.reshape(x, (*aval.shape[:d], 1, *aval.shape[d:]), aval.dtype)
    return b.ops(
        "stablehlo.all_gather",
        [x],
        [b.type(outs[0])],
        {"all_gather_dim": b.int_attr(d), **_attributes(b, _groups(b, _names(axis_name), axis_index_groups))},
    )[0]


@rule("reduce_scatter")
def _reduce_scatter(b, ins, outs, x, *, axis_name, scatter_dimension, axis_size, tiled, axis_index_groups):
    (aval,), d = ins, scatter_dimension
    shape = (*aval.shape[:d], aval.shape[d] // axis_size, *aval.shape[d + 1 :])
    made = b.ops(
        "stablehlo.reduce_scatter",
        [x],
        [b.tensor(shape, aval.dtype)],
        {"scatter_dimension": b.int_attr(d), **_attributes(b, _groups(b, _names(axis_name), axis_index_groups))},
        _combine(b, "stablehlo.add", aval.dtype),
    )[0]
    return made if tiled else b.reshape(made, outs[0].shape, aval.dtype)


@rule("all_to_all")
def _all_to_all(b, ins, outs, x, *, axis_name, split_axis, concat_axis, axis_index_groups, tiled):
    (aval,), groups = ins, _groups(b, _names(axis_name), axis_index_groups)
    shape, split, concat, n = list(aval.shape), split_axis, concat_axis, groups.shape[1]
    if not tiled:  # a new axis of size 1 takes the members; the split axis is left with size 1 and goes
        concat += concat > split
        shape.insert(concat, 1)
        split += split >= concat
        x = b.reshape(x, shape, aval.dtype)
    shape[split] //= n
    shape[concat] *= n
    made = b.ops(
        "stablehlo.all_to_all",
        [x],
        [b.tensor(shape, aval.dtype)],
        {
            "split_dimension": b.int_attr(split),
            "concat_dimension": b.int_attr(concat),
            "split_count": b.int_attr(n),
            **_attributes(b, groups, False),
        },
    )[0]
    return made if tiled else b.reshape(made, outs[0].shape, aval.dtype)


@rule("ppermute")
def _ppermute(b, ins, outs, x, *, axis_name, perm):
    pairs = np.array([[row[s], row[d]] for row in _groups(b, _names(axis_name)) for s, d in perm]).reshape(-1, 2)
    attributes = _attributes(b, pairs, False)
    attributes["source_target_pairs"] = attributes.pop("replica_groups")
    return b.op("stablehlo.collective_permute", [x], b.type(outs[0]), attributes)


@rule("pvary")
def _pvary(b, ins, outs, x, *, axes):
    return x
