"""Running reductions along an axis, and the positions of extrema."""

from __future__ import annotations

import math

from weft_wasm import ir
from weft_wasm.ir import Assign, Binary, Call, Const, Declare, Expr, For, Let, Local, Select, Stmt, Unary, Var, convert, sub
from weft_wasm.lower.blocks import Blocks, Shape
from weft_wasm.lower.emit import Body, Reader, opaque, wrap
from weft_wasm.lower.graph import Node
from weft_wasm.lower.reductions import CUMULATIVE, REDUCERS
from weft_wasm.lower.types import lowest, scalar_dtype


def around(shape: Shape, axis: int) -> tuple[int, int, int]:
    """(elements outside the axis, along it, inside it)."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def blocks_of(*parts: tuple[int, Expr]) -> Blocks:
    return tuple(p for p in parts if p[0] > 1)


@opaque(*CUMULATIVE, "cumlogsumexp")
def emit_cumulative(body: Body, node: Node) -> list[Stmt]:
    (x,) = node.inputs
    out = node.outputs[0]
    if out.size == 0:
        return []
    outer, n, inner = around(x.shape, node.params["axis"])
    kind = scalar_dtype(out.dtype)
    start, combine = REDUCERS[CUMULATIVE[node.op]] if node.op in CUMULATIVE else (lowest, log_add_exp)
    initial = start(out.dtype)
    if node.op == "cumsum" and kind == "f32" and not body.module.plain:  # in f64, so that errors do not grow along the axis
        kind, initial = "f64", Const(0.0, "f64")
    o, i, t = Var("o"), Var("i"), Var("t")
    at = sub(ir.i32(n - 1), t) if node.params["reverse"] else t
    where = blocks_of((outer, o), (n, at), (inner, i))
    acc, value = Local("acc", kind), Var("x", kind)
    steps: list[Stmt] = [
        Let(value, convert(Reader(body).element(x, where), kind)),
        Assign(acc, combine(acc, value)),
        body.places[out].store(where, convert(acc, scalar_dtype(out.dtype))),
    ]
    loops = [(v, m) for v, m in ((o, outer), (i, inner)) if m > 1]
    return [body.kernel(node.op, wrap(loops, [Declare(acc, initial), For(t, n, steps, "sequential")]))]


def log_add_exp(a: Expr, b: Expr) -> Expr:
    """log(exp(a) + exp(b)) without overflow."""
    top, low = Binary("max", a, b), Binary("min", a, b)
    grown = ir.add(top, Call("log1p", Call("exp", ir.sub(low, top))))
    return Select(ir.eq(low, Const(-math.inf, a.dtype)), top, Select(ir.eq(top, Const(math.inf, a.dtype)), top, grown))


@opaque("argmax", "argmin")
def emit_extremum_position(body: Body, node: Node) -> list[Stmt]:
    """The extremum, then the least index that holds it; NaN is an extremum. Both loops vectorise."""
    (x,) = node.inputs
    out = node.outputs[0]
    if out.size == 0:
        return []
    (axis,) = node.params["axes"]
    outer, n, inner = around(x.shape, axis)
    start, combine = REDUCERS["reduce_max" if node.op == "argmax" else "reduce_min"]
    o, i, t, u = Var("o"), Var("i"), Var("t"), Var("u")
    initial = start(x.dtype)
    best, index = Local("best", initial.dtype), Local("index", "i32")
    here = Reader(body).element(x, blocks_of((outer, o), (n, t), (inner, i)))
    again = Reader(body).element(x, blocks_of((outer, o), (n, u), (inner, i)))
    top = Var("top", initial.dtype)
    if initial.dtype == "bool":
        hit: Expr = Unary("not", Binary("xor", again, top))
    else:
        hit = ir.eq(again, top)
    if initial.dtype in ir.FLOATS:
        hit = Binary("or", hit, ir.ne(again, again))
    inside: list[Stmt] = [
        Declare(best, initial),
        For(t, n, [Assign(best, combine(best, here))], "reduce"),
        Let(top, best),
        Declare(index, ir.i32(n)),
        For(u, n, [Assign(index, Binary("min", index, Select(hit, u, ir.i32(n))))], "reduce"),
        body.places[out].store(blocks_of((outer, o), (inner, i)), convert(index, scalar_dtype(out.dtype))),
    ]
    loops = [(v, m) for v, m in ((o, outer), (i, inner)) if m > 1]
    return [body.kernel(node.op, wrap(loops, inside))]
