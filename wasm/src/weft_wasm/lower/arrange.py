"""concatenate and sort."""

from __future__ import annotations

import math
from collections.abc import Callable

from weft_wasm.ir import nodes
from weft_wasm.ir.nodes import Expr, Stmt
from weft_wasm.lower import graph
from weft_wasm.lower.blocks import Blocks, choose, linear, regroup
from weft_wasm.lower.loop_nests import GraphLowering, Reader, opaque, wrap
from weft_wasm.lower.graph import Node, Value
from weft_wasm.lower.types import narrow
from weft_wasm.routines import radix
from weft_wasm.routines.sort import sort
from weft_wasm.routines.sort_parallel import sort_parallel

graph.known.update(("concatenate", "sort"))


@opaque("concatenate")
def emit_concatenate(body: GraphLowering, node: Node) -> list[Stmt]:
    """Each operand stored into its part of the result."""
    out = node.outputs[0]
    d = node.params["dimension"]
    place = body.places[out]
    inside = math.prod(out.shape[d + 1 :])
    start = 0
    nests: list[Stmt] = []
    for x in node.inputs:
        if x.size:
            # the result in blocks (outer, along · inside)
            row, whole = x.shape[d] * inside, out.shape[d] * inside
            splits = body.planner.splits(x) | (frozenset((row,)) if row != x.size else frozenset())
            loops, blocks = body.nest(choose(x.size, splits))
            flat = body_index(blocks, x.size // row, row, whole, start * inside)
            index = flat if place.offset is None else nodes.add(place.offset, flat)
            nests += wrap(loops, [nodes.Store(place.buffer, index, narrow(Reader(body).element(x, blocks), out.dtype))])
        start += x.shape[d]
    return [body.kernel("concatenate", nests)] if nests else []


def body_index(blocks: Blocks, outer: int, row: int, whole: int, start: int) -> Expr:
    """The flat position in rows of `whole` elements of the element that blocks name in rows of `row`, from `start`
    on.
    """
    o, i = regroup(blocks, [outer, row])
    return nodes.add(nodes.add(nodes.mul(linear(o), whole), linear(i)), start)


@opaque("sort")
def emit_sort(body: GraphLowering, node: Node) -> list[Stmt]:
    xs = node.inputs
    n = xs[0].shape[-1]
    if not xs[0].size:
        return []
    batch = xs[0].size // n

    def operand(x: Value) -> Callable[[Expr], Expr]:
        return lambda flat: raw(body, x, flat)

    outs = [body.places[o] for o in node.outputs]
    # the routine writes whole buffers: use a temp if the target is a part of one
    buffers = [p.buffer if p.offset is None else body.module.temp(o.dtype, o.shape) for p, o in zip(outs, node.outputs)]
    name, elements, num_keys = body.module.name("sort_"), [operand(x) for x in xs], node.params["num_keys"]
    if body.module.plain:
        routine = sort_parallel(name, batch, n, elements, buffers, num_keys)
    elif num_keys == 1 and radix.worth(n, buffers[0].dtype):
        routine = radix.radix_sort(name, batch, n, elements, buffers)
    else:
        routine = sort(name, batch, n, elements, buffers, num_keys)
    body.module.temps += routine.temps
    copies = [
        nodes.Copy(p.buffer, b, o.size, p.offset)
        for p, b, o in zip(outs, buffers, node.outputs)
        if p.offset is not None
    ]
    return [*routine.kernels, *copies]


def raw(body: GraphLowering, x: Value, flat: Expr) -> Expr:
    """An element as it is stored."""
    e = Reader(body).element(x, ((x.size, flat),) if x.size > 1 else ())
    if e.dtype != x.dtype:
        return e.x if type(e) is nodes.Convert and e.x.dtype == x.dtype else nodes.Convert(e, x.dtype)
    return e
