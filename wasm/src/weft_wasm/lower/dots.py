"""dot_general as matrix products: free, batch and contracting axes become one index each, whatever their order in
the operands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from weft_wasm.ir import nodes
from weft_wasm.ir.nodes import Const, Expr, Let, Stmt, Var, convert
from weft_wasm.lower import fuse, graph
from weft_wasm.lower.blocks import Blocks, View, transpose_view
from weft_wasm.lower.loop_nests import GraphLowering, Reader, opaque
from weft_wasm.lower.graph import Node, Value
from weft_wasm.lower.types import scalar_dtype, rounded_to_storage
from weft_wasm.routines.gemm import gemm
from weft_wasm.routines.register_tiles import tiled_product

graph.known.add("dot_general")
# types in which products by tiles are summed; booleans take longer that way
TILED = ("f32", "f64", "i32", "u32", "i64", "u64")
SMALL = 40_960  # products of fewer terms gain nothing from packing


def sizes(node: Node) -> tuple[int, int, int, int]:
    """(batch, rows, columns, terms)."""
    x, y = node.inputs
    (xc, yc), (xb, yb) = node.params["dimension_numbers"]
    batch = math.prod(x.shape[d] for d in xb)
    terms = math.prod(x.shape[d] for d in xc)
    rows = math.prod(n for d, n in enumerate(x.shape) if d not in (*xb, *xc))
    columns = math.prod(n for d, n in enumerate(y.shape) if d not in (*yb, *yc))
    return batch, rows, columns, terms


def operand_view(x: Value, batch: Sequence[int], contract: Sequence[int], free_first: bool) -> View:
    """How [batch, free, contract] (or [batch, contract, free]) maps to the operand."""
    free = [d for d in range(len(x.shape)) if d not in (*batch, *contract)]
    order = [*batch, *free, *contract] if free_first else [*batch, *contract, *free]
    return transpose_view(tuple(x.shape[d] for d in order), order)


def accumulator(dtype: str, operand: str) -> str:
    """The dtype in which products of operands are summed for a result dtype."""
    kind, own = scalar_dtype(dtype), scalar_dtype(operand)
    if own in nodes.FLOATS and kind not in nodes.FLOATS:  # the sum is rounded, not its terms
        return own
    return {"i8": "i32", "i16": "i32", "u8": "u32", "u16": "u32"}.get(kind, kind)


def results(body: GraphLowering, group: fuse.Group, where: Blocks, value: Expr) -> list[Stmt]:
    """Statements that put an element of a product away, and compute the elementwise members of its group."""
    out = group.origin.outputs[0]
    statements: list[Stmt] = []
    several = len(group.members) > 1
    reader = Reader(body, statements if several else None, where)
    value = convert(value, scalar_dtype(out.dtype))
    reader.remember(out, where, rounded_to_storage(value, out.dtype))
    stores: list[Stmt] = []
    for v in group.members:
        e = reader.memo[out, where] if v is out else reader.compute(v, where)
        if v is not out and several and v.users and type(e) is not nodes.Const:
            var = Var(f"y{len(reader.memo)}", e.dtype)
            statements.append(Let(var, e))
            e = var
            reader.remember(v, where, e)
        if v in body.places and (v is not out or v in body.plan.stored or not several):
            stores.append(body.places[v].store(where, e))
    return statements + stores


@opaque("dot_general")
def emit_dot(body: GraphLowering, group: fuse.Group) -> list[Stmt]:
    """The product and, in its innermost store, the elementwise members of the group."""
    node = group.origin
    x, y = node.inputs
    (xc, yc), (xb, yb) = node.params["dimension_numbers"]
    batch, m, n, k = sizes(node)
    kind = accumulator(node.outputs[0].dtype, x.dtype)
    view_x, view_y = operand_view(x, xb, xc, True), operand_view(y, yb, yc, False)

    def blocks(*parts: tuple[int, Expr]) -> Blocks:
        return tuple(p for p in parts if p[0] > 1)

    def read(v: Value, view: View, at: Blocks) -> Expr:
        if v.size == 0:  # no index of it can be made
            return Const(0, kind)
        return convert(Reader(body).element(v, view.apply(at)), kind)

    def a(b: Expr, i: Expr, t: Expr) -> Expr:
        return read(x, view_x, blocks((batch, b), (m, i), (k, t)))

    def b(b: Expr, t: Expr, j: Expr) -> Expr:
        return read(y, view_y, blocks((batch, b), (k, t), (n, j)))

    def sink(b: Expr, i: Expr, j: Expr, value: Expr) -> list[Stmt]:
        return results(body, group, blocks((batch, b), (m, i), (n, j)), value)

    name = body.module.name("dot_")
    if body.module.plain:
        return list(tiled_product(name, m, n, k, a, b, sink, batch=batch, dtype=kind).kernels)
    routine = gemm(
        name,
        m,
        n,
        k,
        a,
        b,
        sink,
        batch=batch,
        dtype=kind,
        features=body.module.features,
        plain=kind not in TILED or m * n * k <= SMALL,
    )
    body.module.temps += routine.temps
    return list(routine.kernels)
