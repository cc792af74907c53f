"""Calls of Python functions from programs: debug_callback, pure_callback, io_callback. A module calls an import with
the addresses of arrays; a plan for WebGPU has a step for which its host reads them back.
"""

from __future__ import annotations

from typing import Any, Sequence

from weft.base.avals import ShapedArray
from weft.core.jaxpr import JaxprEqn
from weft.core.primitive import Primitive

from weft_wasm.ir import nodes
from weft_wasm.lower import graph
from weft_wasm.lower.complexes import apart, joined, rule, stored
from weft_wasm.lower.loop_nests import GraphLowering, opaque
from weft_wasm.lower.graph import Builder, Node, Value
from weft_wasm.lower.types import Callback, array_type, storage_dtype

NAMES = ("debug_callback", "pure_callback", "io_callback")
graph.known.add("host_call")


def call_of(name: str, params: dict[str, Any], ins: Sequence[ShapedArray]) -> Callback:
    return Callback(name, params["callback"], tuple(ins), tuple(params.get("result_avals", ())))


# callbacks of complex arrays, on arrays in their memory format
host_call_p = Primitive("host_call", multiple_results=True, foreign=True)
host_call_p.foreign, host_call_p.cache = False, None
host_call_p.abstract = lambda *avals, call, has: [stored(a) for a in call.outs]
host_call_p.effects = lambda params: params["has"]


@rule(*NAMES)
def _joined(eqn: JaxprEqn, *xs: Any) -> list[Any]:
    call = call_of(eqn.primitive.name, eqn.params, [array_type(a) for a in eqn.invars])
    outs = host_call_p.bind(*[joined(x) for x in xs], call=call, has=frozenset(eqn.effects))
    return [apart(x, a) for x, a in zip(outs, call.outs)]


@graph.rewrite(*NAMES, "host_call")
def _call(b: Builder, eqn: JaxprEqn, ins: list[Value]) -> list[Value]:
    call = (
        eqn.params["call"]
        if eqn.primitive is host_call_p
        else call_of(eqn.primitive.name, eqn.params, [array_type(a) for a in eqn.invars])
    )
    shapes = [
        (a.shape, storage_dtype(a.dtype, eqn.primitive.name, eqn.source_info)) for a in map(array_type, eqn.outvars)
    ]
    return b.add("host_call", ins, shapes, {"call": call}, eqn.source_info, bool(eqn.effects))


@opaque("host_call")
def emit_call(body: GraphLowering, node: Node) -> list[nodes.Stmt]:
    module = body.module
    out: list[nodes.Stmt] = []
    after: list[nodes.Stmt] = []
    arguments: list[nodes.Buffer] = []
    results: list[nodes.Buffer] = []
    for x in node.inputs:
        place = body.place_of(x)
        if place is None or place.offset is not None:
            place = body.new_place(x)
            out += body.fill(x, place)
        arguments.append(place.buffer)
    for v in node.outputs:
        place = body.places[v]
        if place.offset is not None:
            spare = body.new_place(v)
            after.append(place.copy(spare, v.size))
            place = spare
        results.append(place.buffer)
    table = module.temp("i32", (2 * max(len(arguments) + len(results), 1),), "addresses")
    module.calls.append(node.params["call"])
    return [*out, nodes.HostCall(len(module.calls) - 1, table, arguments, results), *after]
