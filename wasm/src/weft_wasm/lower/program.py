"""A jaxpr as a loop-IR program."""

from __future__ import annotations

from typing import Sequence

from weft.base import dtypes
from weft.base.config import config, enable_x64
from weft.base.lazy import LazyNames
from weft.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var
from weft.core.primitive import registry

from weft_wasm.ir.nodes import Buffer, Program

# (the families register themselves).
from weft_wasm.lower import (  # noqa: F401
    accuracy,
    arrange,
    callbacks,
    control,
    convolutions,
    dots,
    fourier,
    graph,
    indexing,
    sequences,
)
from weft_wasm.lower.complexes import real_program
from weft_wasm.lower.loop_nests import GraphLowering, Module, Place
from weft_wasm.lower.fuse import Group
from weft_wasm.lower.graph import Value
from weft_wasm.lower.types import array_type, has_wide, memory_dtype

# What few programs need is loaded with them: a primitive is in the registry once its module has been imported.
_late = LazyNames(globals(), {"kernels": "emit_call"})


def lower(
    jaxpr: Jaxpr,
    name: str = "main",
    donated: Sequence[bool] = (),
    features: frozenset[str] = frozenset(),
    plain: bool = False,
) -> tuple[Program, Module]:
    """The program of a jaxpr without constvars, and a description of how it was fused.

    donated: for each argument, whether its storage may become a result's. features: of the target, see
        `compile.KNOWN_FEATURES`.
    plain: no packed matrix products (targets that schedule by themselves). Raises LoweringError for programs that can't
        be compiled.
    """
    if "pallas_call" in registry:
        _late.find("emit_call")
    if has_wide(jaxpr) and not config.enable_x64:  # it was traced while numbers of 64 bits were not narrowed
        with enable_x64(True):
            return lower(jaxpr, name, donated, features, plain)
    real = real_program(jaxpr)
    g = graph.build(real.jaxpr, real.consts) if isinstance(real, ClosedJaxpr) else graph.build(real)
    module = Module(features, plain)
    for v in (*g.inputs, *g.outputs):
        module.check_size(v)
    inputs = [
        Buffer(f"in{k}", memory_dtype(v.dtype), v.shape, "input", label=label(v, a))
        for k, (v, a) in enumerate(zip(g.inputs, jaxpr.invars))
    ]
    outputs = [
        Buffer(f"out{k}", memory_dtype(v.dtype), v.shape, "output", label=label(v, a))
        for k, (v, a) in enumerate(zip(g.outputs, jaxpr.outvars))
    ]
    places = {v: Place(b) for v, b in zip(g.inputs, inputs)}
    body = GraphLowering(module, g, places, [Place(b) for b in outputs])
    statements = body.emit()
    aliases = donations(body, donated, inputs, outputs)
    program = Program(
        name, inputs, outputs, module.temps, statements, list(module.constants.values()), aliases, calls=module.calls
    )
    return program, module


def label(v: Value, a: Var | Literal) -> str:
    """The artifact's name for the dtype of an argument or result."""
    return {"complex64": "c64", "complex128": "c128"}.get(dtypes.name(array_type(a).dtype), v.dtype)


def donations(
    body: GraphLowering, donated: Sequence[bool], inputs: list[Buffer], outputs: list[Buffer]
) -> dict[int, int]:
    """{output: input} that can share storage: it is written only at or after the last read of the input."""
    out: dict[int, int] = {}
    free = [k for k, d in enumerate(donated) if d]
    delivered_late = {v for v, t in zip(body.graph.outputs, body.targets) if body.places.get(v) != t}
    for k, v in enumerate(body.graph.outputs):
        if v in delivered_late or v.node is None:
            continue
        for i in free:
            x = body.graph.inputs[i]
            if (
                x.shape == v.shape
                and x.dtype == v.dtype
                and inputs[i].nbytes
                and x not in body.graph.outputs
                and unread_when_written(body, v, x)
            ):
                out[k] = i
                free.remove(i)
                break
    return out


def unread_when_written(body: GraphLowering, v: Value, x: Value) -> bool:
    """Whether input x is read for the last time before output v's storage is written."""
    place = body.places[v]
    first = min(k for k, g in enumerate(body.plan.groups) for m in g.members if body.places.get(m) == place)
    group = body.plan.groups[first]
    for k, same in body.plan.readers.get(x, ()):
        if k < first or (
            k == first and same and group.kind in ("loop", "reduce") and not read_later(body, group, place, x)
        ):
            continue
        if k == first and group.kind == "opaque" and body.in_place(group.origin):
            ins = group.origin.inputs
            writers = [
                (s, j)
                for s, j in body.in_place(group.origin)
                if body.places.get(group.members[s]) == place and ins[j] is x
            ]
            if (
                writers
                and ins.count(x) == 1
                and not any(x in body.planner.leaves(y) for j, y in enumerate(ins) if j != writers[0][1])
            ):
                continue
        return False
    return True


def read_later(body: GraphLowering, group: Group, place: Place, x: Value) -> bool:
    """Whether members of a group that are computed after the one at that place, whose element has been stored by then,
    read x.
    """
    written = next(k for k, m in enumerate(group.members) if body.places.get(m) == place)
    return any(x in body.planner.leaves(y) for m in group.members[written + 1 :] for y in m.origin.inputs)
