"""Functions whose authors say how they are partitioned: XLA's partitioner asks Python for each device's part."""

from __future__ import annotations

import itertools
import uuid
from types import SimpleNamespace
from typing import Any, Callable, Sequence

from jaxlib import xla_client as xc
from jaxlib.mlir import ir
from weft.base.avals import ShapeDtypeStruct, shaped
from weft.base.errors import BackendError
from weft.base.mesh import Mesh, NamedSharding, P
from weft.base.tree import tree_flatten
from weft.core.primitive import exact
from weft.core.trace import Axis, mapped_axes
from weft.higher_order.custom_partitioning import Partitioning
from weft.higher_order.sharding_rule import SdyShardingRule, parse_rule, rule_text
from weft.transforms.stage import stage_closed

from ..compat import failures
from ..sharding import from_hlo, hlo_sharding
from .registry import rule

_TARGET = "CustomSPMDPartitioning"  # to which XLA passes the word that says which function it is
# Programs on disk name functions of other processes: no two processes may have one name for two functions.
_PROCESS, _numbers = uuid.uuid4().hex, itertools.count()
_names: dict[tuple[Any, ...], str] = {}
_known: dict[str, tuple[Partitioning, Mesh, str, Callable[..., bytes]]] = {}


@rule("custom_partitioning")
def _custom_partitioning(b, ins, outs, *operands, call, how):
    if b.members is not None or not b.partitions or len(b.partitions.devices) == 1:
        return b.inline(call, operands)
    if how.asks_callbacks:
        raise BackendError(
            f"custom_partitioning: {how.name} says how shardings propagate by functions, which XLA's partitioner"
            f" doesn't call. Give {how.name}.def_partition a sharding_rule, such as 'i j -> i j'.\n  at {b.loc}"
        )
    mesh = b.partitions.mesh
    attributes = {
        "call_target_name": ir.StringAttr.get(_TARGET),
        "api_version": b.int_attr(2, 32),
        "backend_config": ir.StringAttr.get(_name(how, mesh, b)),
    }
    found = _rule_of(how, mesh, ins, outs)
    if found is not None:
        try:
            text = rule_text(found, [a.shape for a in ins], [a.shape for a in outs])
        except ValueError as e:
            raise ValueError(f"custom_partitioning: {how.name}: {e}\n  at {b.loc}") from None
        attributes["sdy.sharding_rule"] = ir.Attribute.parse(text)
    return b.ops("stablehlo.custom_call", operands, [b.type(a) for a in outs], attributes)


def _name(how: Partitioning, mesh: Mesh, b) -> str:
    key = (*exact({"how": how}), mesh, b.platform)
    if not _names:
        xc.register_custom_call_partitioner(_TARGET, _propagated, _partitioned, _inferred, True)
    if key not in _names:
        _names[key] = f"{_PROCESS}-{next(_numbers)}"
        _known[_names[key]] = (how, mesh, b.platform, b.part)
    return _names[key]


def _rule_of(how: Partitioning, mesh: Mesh, ins: Sequence, outs: Sequence) -> SdyShardingRule | None:
    found: Any = how.rule
    if callable(found):
        structs = lambda avals: [ShapeDtypeStruct(a.shape, a.dtype) for a in avals]
        args, results = how.in_tree.unflatten(structs(ins)), how.out_tree.unflatten(structs(outs))
        found = found(*how.static_args, mesh, args, results)
    return parse_rule(found) if isinstance(found, str) else found


# what XLA calls -----------------------------------------------------------------------------------------------------


# The first two are asked where Shardy, which has propagated shardings by then, has left one open.
def _propagated(sharding, shape, word):
    return sharding


def _inferred(arg_shapes, arg_shardings, result_shape, word):
    return xc.HloSharding.replicate()


def _partitioned(arg_shapes, arg_shardings, result_shape, result_sharding, word):
    """(a program of one device's part, how its arguments are divided, how its results are)"""
    try:
        return _part(arg_shapes, arg_shardings, result_shape, result_sharding, *_known[_text(word)])
    except Exception as e:
        failures.append(e)
        raise


def _text(word) -> str:
    return word.decode() if isinstance(word, bytes) else word


def _part(arg_shapes, arg_shardings, result_shape, result_sharding, how: Partitioning, mesh: Mesh, platform, lower):
    several = result_shape.is_tuple()
    result_shapes = result_shape.tuple_shapes() if several else [result_shape]
    result_shardings = result_sharding.tuple_elements() if several else [result_sharding]
    args = [_struct(how, mesh, *pair) for pair in zip(arg_shapes, arg_shardings)]
    results = [_struct(how, mesh, *pair) for pair in zip(result_shapes, result_shardings)]
    given = how.partition(*how.static_args, mesh, how.in_tree.unflatten(args), how.out_tree.unflatten(results))
    mesh, fun, wanted_results, wanted_args = given
    ins = _shardings(how, "arguments", wanted_args, how.in_tree)
    outs = _shardings(how, "results", wanted_results, how.out_tree)
    parts = [shaped(s.shard_shape(tuple(x.shape)), x.dtype) for s, x in zip(ins, args)]
    with mapped_axes(*[Axis(n, size, True) for n, size in mesh.shape_tuple]):
        closed = stage_closed(_flat(how, fun), parts, f"what a device computes of {how.name}")
    for made, sharding, whole in zip(closed.out_avals, outs, results):
        expected = shaped(sharding.shard_shape(tuple(whole.shape)), whole.dtype)
        if (made.shape, made.dtype) != (expected.shape, expected.dtype):
            raise ValueError(
                f"custom_partitioning: each device's part of a result of {how.name} is {expected.str_short()} by its"
                f" sharding {sharding}, and the function that computes it returns {made.str_short()}. Let partition"
                " return the sharding that its function makes."
            )
    divided = [hlo_sharding(s, len(x.shape)) for s, x in zip(outs, results)]
    return (
        lower(closed, f"part_of_{how.name}", platform, mesh),
        [hlo_sharding(s, len(x.shape)) for s, x in zip(ins, args)],
        xc.HloSharding.tuple_sharding(result_shape, divided) if several else divided[0],
    )


def _struct(how: Partitioning, mesh: Mesh, shape, sharding) -> Any:
    dims = tuple(shape.dimensions())
    place: Any = NamedSharding(mesh, P()) if sharding is None else sharding
    if how.decode_shardings and sharding is not None:
        place = from_hlo(sharding, mesh, len(dims))
        if place is None:
            raise BackendError(
                f"custom_partitioning: the axes of {mesh} can't say how XLA divides an array of {how.name}:"
                f" {sharding}. Take it as it is, with decode_shardings=False."
            )
    if how.decode_shardings:
        spec = place.spec.partitions
        place = place.update(spec=P(*spec, *[None] * (len(dims) - len(spec))))
        return ShapeDtypeStruct(dims, shape.numpy_dtype(), sharding=place)
    return SimpleNamespace(shape=dims, dtype=shape.numpy_dtype(), sharding=place)


def _shardings(how: Partitioning, what: str, given: Any, tree) -> list[NamedSharding]:
    flat, structure = tree_flatten(given)
    if structure != tree or not all(isinstance(s, NamedSharding) for s in flat):
        raise ValueError(
            f"custom_partitioning: partition of {how.name} returns shardings of the {what}, NamedShardings in the"
            f" structure {tree}; got {given}."
        )
    return flat


def _flat(how: Partitioning, fun: Callable) -> Callable:
    def flat(*xs):
        leaves, tree = tree_flatten(fun(*how.in_tree.unflatten(xs)))
        if tree != how.out_tree:
            raise ValueError(
                f"custom_partitioning: what a device computes of {how.name} has the structure {tree}, and the"
                f" function itself returns {how.out_tree}."
            )
        return leaves

    return flat
