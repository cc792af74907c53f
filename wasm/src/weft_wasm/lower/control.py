"""Loops and branches inside the program: scan, while, cond.

A carry is one buffer that the body reads and writes; results of each step go right into their row of the stacked result. The body's
values are written over the carry where nothing reads the old one afterwards, else into a temp that is copied at the end.
"""

from __future__ import annotations

from typing import Sequence

from weft.core.jaxpr import ClosedJaxpr

from weft_wasm import ir
from weft_wasm.ir import For, Load, Switch, Var, While
from weft_wasm.lower import graph
from weft_wasm.lower.blocks import ZERO
from weft_wasm.lower.emit import Body, Place, opaque, row_of
from weft_wasm.lower.graph import Node, Value

graph.known.update(("scan", "while", "cond"))


def body_of(body: Body, closed: ClosedJaxpr, operands: Sequence[Value | None], places: Sequence[Place | None], targets: Sequence[Place | None]) -> list:
    """The statements of a jaxpr whose arguments are in places (or are constants of the outer graph)."""
    constants = {k: x for k, x in enumerate(operands) if x is not None and x.constant is not None}
    inner = graph.build(closed.jaxpr, closed.consts, constants)
    module = body.module
    module.depth += 1
    where = {v: p for v, p in zip(inner.inputs, places) if p is not None}
    statements = Body(module, inner, where, targets).emit()
    module.depth -= 1
    return statements


def place_of_operand(body: Body, x: Value) -> Place | None:
    return None if x.constant is not None else body.place_of(x)


@opaque("scan")
def emit_scan(body: Body, node: Node) -> list:
    p = node.params
    n_consts, n_carry, length = p["num_consts"], p["num_carry"], p["length"]
    consts, carry, xs = node.inputs[:n_consts], node.inputs[n_consts : n_consts + n_carry], node.inputs[n_consts + n_carry :]
    carry_places = [body.places[v] for v in node.outputs[:n_carry]]
    out = initialise(body, carry, carry_places)
    if length == 0:
        return out
    t = Var("t")
    row = ir.sub(ir.i32(length - 1), t) if p["reverse"] else t
    places = [place_of_operand(body, x) for x in consts] + carry_places
    places += [None if x.constant is not None else row_of(body.place_of(x), row, x.shape[1:]) for x in xs]
    targets = [*carry_places, *[row_of(body.places[y], row, y.shape[1:]) for y in node.outputs[n_carry:]]]
    operands = [*consts, *[None] * n_carry, *xs]
    steps = body_of(body, p["jaxpr"], operands, places, targets)
    return [*out, For(t, length, steps)] if steps else out


def initialise(body: Body, carry: Sequence[Value], places: Sequence[Place]) -> list:
    """Puts initial values into their carries, all of them read before any is written over."""
    moves = [(v, p) for v, p in zip(carry, places) if body.place_of(v) != p]
    written = {p.buffer for _, p in moves}
    first: list = []
    out: list = []
    for v, p in moves:
        sources = {body.place_of(x).buffer for x in body.planner.leaves(v)} if v.constant is None else set()
        if sources & written and len(moves) > 1:
            spare = body.new_place(v)
            first += body.fill(v, spare)
            out += [ir.Copy(p.buffer, spare.buffer, v.size, 0 if p.offset is None else p.offset)] if v.size else []
        else:
            out += body.fill(v, p)
    return first + out


@opaque("while")
def emit_while(body: Body, node: Node) -> list:
    p = node.params
    n_cond, n_body = p["cond_nconsts"], p["body_nconsts"]
    cond_consts, body_consts, carry = node.inputs[:n_cond], node.inputs[n_cond : n_cond + n_body], node.inputs[n_cond + n_body :]
    places = [body.places[v] for v in node.outputs]
    out = initialise(body, carry, places)
    flag = Place(body.module.temp("bool", (), "flag"))
    nothing = [None] * len(carry)
    test = body_of(body, p["cond_jaxpr"], [*cond_consts, *nothing], [*[place_of_operand(body, x) for x in cond_consts], *places], [flag])
    steps = body_of(body, p["body_jaxpr"], [*body_consts, *nothing], [*[place_of_operand(body, x) for x in body_consts], *places], places)
    return [*out, While(test, Load(flag.buffer, ZERO), steps)]


@opaque("cond")
def emit_cond(body: Body, node: Node) -> list:
    index, *operands = node.inputs
    branches = node.params["branches"]
    targets = [body.places[v] for v in node.outputs]
    places = [place_of_operand(body, x) for x in operands]
    if index.constant is not None:
        return body_of(body, branches[min(max(int(index.constant), 0), len(branches) - 1)], operands, places, targets)
    bodies = [body_of(body, branch, operands, places, targets) for branch in branches]
    where = body.place_of(index)
    return [Switch(Load(where.buffer, where.at(())), bodies)]
