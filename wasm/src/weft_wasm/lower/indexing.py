"""Updates of part of an array: dynamic_update_slice and the scatters."""

from __future__ import annotations

import math

from weft.primitives.gather import GatherScatterMode

from weft_wasm.ir import nodes
from weft_wasm.ir.nodes import Binary, Const, Expr, For, If, Let, Stmt, Var, add
from weft_wasm.lower import graph
from weft_wasm.lower.blocks import Blocks, Source, choose, linear, merge, regroup
from weft_wasm.lower.loop_nests import GraphLowering, Place, Reader, opaque, wrap
from weft_wasm.lower.graph import Node
from weft_wasm.lower.reductions import REDUCERS
from weft_wasm.lower.views import clamped_start, inside_bounds, window_dims

graph.known.update(("dynamic_update_slice", "scatter", "scatter-add", "scatter-mul", "scatter-min", "scatter-max"))


def begin(body: GraphLowering, node: Node) -> tuple[Place, list[Stmt]]:
    """(the result's place, statements after which it holds the operand)."""
    place = body.places[node.outputs[0]]
    return place, body.fill(node.inputs[0], place)


@opaque("dynamic_update_slice")
def emit_update(body: GraphLowering, node: Node) -> list[Stmt]:
    x, update, *starts = node.inputs
    place, out = begin(body, node)
    if update.size == 0:
        return out
    special = [n != m for n, m in zip(x.shape, update.shape)]
    view = merge(list(update.shape), [Source(n, d, 1, int(s)) for d, (n, s) in enumerate(zip(x.shape, special))])
    loops, blocks = body.nest(choose(update.size, view.splits(frozenset()) | body.planner.splits(update)))
    statements: list[Stmt] = []
    head: list[Stmt] = []
    reader = Reader(body)
    at: list[tuple[int, Expr]] = []
    for d, (n, m, part) in enumerate(zip(x.shape, update.shape, regroup(blocks, update.shape))):
        if n == m:
            at += part
        else:
            start = Var(f"start{d}")
            head.append(Let(start, clamped_start(reader.element(starts[d], ()), n - m)))
            at.append((n, add(linear(part), start)))
    statements.append(place.store(tuple(at), reader.element(update, blocks)))
    return [*out, body.kernel("update", head + wrap(loops, statements))]


@opaque("scatter", "scatter-add", "scatter-mul", "scatter-min", "scatter-max")
def emit_scatter(body: GraphLowering, node: Node) -> list[Stmt]:
    """Updates one after another, so that indices may repeat."""
    x, indices, updates = node.inputs
    p = node.params
    dn, mode = p["dimension_numbers"], p["mode"]
    place, out = begin(body, node)
    if updates.size == 0 or x.size == 0:
        return out
    window_axes = window_dims(len(x.shape), dn.inserted_window_dims, dn.operand_batching_dims)
    batch_axes = [d for d in range(len(updates.shape)) if d not in dn.update_window_dims]
    sizes = [1] * len(x.shape)
    for d, u in zip(window_axes, dn.update_window_dims):
        sizes[d] = updates.shape[u]
    # loops over the places first, then over each window
    variables = {d: Var(f"u{d}") for d in range(len(updates.shape)) if updates.shape[d] > 1}
    part = {d: ((updates.shape[d], variables[d]),) if d in variables else () for d in range(len(updates.shape))}
    here = tuple(b for d in batch_axes for b in part[d])
    reader = Reader(body)
    head: list[Stmt] = []
    depth = indices.shape[-1]
    starts: dict[int, Expr] = {}
    inside: Expr | None = None
    for k, d in enumerate(dn.scatter_dims_to_operand_dims):
        raw = reader.element(indices, (*here, (depth, nodes.i32(k))) if depth > 1 else here)
        limit = x.shape[d] - sizes[d]
        var = Var(f"start{d}")
        head.append(Let(var, clamped_start(raw, max(limit, 0))))
        starts[d] = var
        if mode != GatherScatterMode.CLIP:
            test = inside_bounds(raw, limit) if limit >= 0 else Const(False, "bool")
            if test is not None:
                inside = test if inside is None else Binary("and", inside, test)
    window = dict(zip(window_axes, dn.update_window_dims))
    batching = dict(zip(dn.operand_batching_dims, dn.scatter_indices_batching_dims))
    at: list[tuple[int, Expr]] = []
    for d, n in enumerate(x.shape):
        if d in batching:
            e: Expr = linear(part[batch_axes[batching[d]]])
        else:
            e = linear(part[window[d]]) if d in window else nodes.i32(0)
            if d in starts:
                e = add(starts[d], e)
        if n != 1:
            at.append((n, e))
    where: Blocks = tuple(at)
    blocks = tuple(b for d in range(len(updates.shape)) for b in part[d])
    value = combined(node, place, where, reader.element(updates, blocks))
    store: list[Stmt] = [place.store(where, value)]
    # axes of the updates along which no two indices are equal: each index gets its own invocation if there are many
    apart: set[int] = set()
    if body.module.plain:
        alone = math.prod(updates.shape[d] for d in batch_axes) == 1
        apart.update(u for d, u in window.items() if alone or sizes[d] == x.shape[d])
        apart.update(batch_axes[k] for k in batching.values())
    own = [(variables[d], updates.shape[d]) for d in sorted(apart) if d in variables]
    inner = [(variables[d], updates.shape[d]) for d in dn.update_window_dims if d in variables and d not in apart]
    outer = [(variables[d], updates.shape[d]) for d in batch_axes if d in variables and d not in apart]
    core = wrap(inner, store, "parallel" if inner else "sequential")
    if inside is not None:
        core = [If(inside, core)]
    statements = [*head, *core]
    for var, n in reversed(outer):
        statements = [For(var, n, statements, "sequential")]
    return [*out, body.kernel("scatter", wrap(own, statements))]


_COMBINE = {
    "scatter-add": "reduce_sum",
    "scatter-mul": "reduce_prod",
    "scatter-min": "reduce_min",
    "scatter-max": "reduce_max",
}


def combined(node: Node, place: Place, where: Blocks, update: Expr) -> Expr:
    """The value of a place after one update."""
    return REDUCERS[_COMBINE[node.op]][1](place.load(where), update) if node.op in _COMBINE else update
