"""Loops and branches inside the program: scan, while, cond.

A carry is one buffer that the body reads and writes; results of each step go directly into their row of the stacked
result. The body's values overwrite the carry if nothing reads the old one afterwards; otherwise they go into a temp
that is copied at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Sequence

from weft.core.jaxpr import ClosedJaxpr

from weft_wasm.ir import nodes
from weft_wasm.ir.nodes import Expr, For, Load, Stmt, Switch, Var, While
from weft_wasm.lower import graph
from weft_wasm.lower.blocks import ZERO
from weft_wasm.lower.loop_nests import GraphLowering, Place, opaque, row_of
from weft_wasm.lower.graph import Node, Value
from weft_wasm.lower.types import constant

graph.known.update(("scan", "while", "cond"))


@dataclass(slots=True)
class Counters:
    """Carries of a loop over t that may be counters. initial: their initial values, by argument of the body. steps: the
    amounts, found by `body_of`, by which counters grow in each iteration.
    """

    t: Var
    initial: dict[int, nodes.Number]
    steps: dict[int, int] = field(default_factory=dict)


def body_of(
    body: GraphLowering,
    closed: ClosedJaxpr,
    operands: Sequence[Value | None],
    places: Sequence[Place | None],
    targets: Sequence[Place | None],
    counters: Counters | None = None,
) -> list[Stmt]:
    """The statements of a jaxpr whose arguments are in places, or known: constants and loop variables of the outer
    graph.
    """
    constants = {k: x.constant for k, x in enumerate(operands) if x is not None and x.constant is not None}
    candidates = Counters(Var("t"), {}) if counters is None else counters
    scalars: dict[Value, Expr] = {}
    targets = list(targets)

    def adjust(inputs: list[Value], outputs: list[Value]) -> list[Value]:
        for k, initial in candidates.initial.items():
            slot = k - first_carry
            step = step_of(outputs[slot], inputs[k])
            if step is not None:
                dtype = inputs[k].dtype
                scalars[inputs[k]] = nodes.add(
                    nodes.mul(nodes.convert(candidates.t, dtype), step), constant(initial, dtype)
                )
                outputs = [*outputs[:slot], inputs[k], *outputs[slot + 1 :]]
                targets[slot] = None
                candidates.steps[k] = step
        return outputs

    first_carry = next((k for k, x in enumerate(operands) if x is None), 0)
    inner = graph.build(closed.jaxpr, closed.consts, constants, adjust)
    where = {}
    for k, (v, p) in enumerate(zip(inner.inputs, places)):
        if v in scalars:
            continue
        x = operands[k]
        if x is not None and x in body.scalars:
            scalars[v] = body.scalars[x]
        elif p is not None:
            where[v] = p
    module = body.module
    module.depth += 1
    statements = GraphLowering(module, inner, where, targets, scalars).emit()
    module.depth -= 1
    return statements


def step_of(out: Value, carry: Value) -> int | None:
    """The constant that a loop adds to an integer scalar in each step, if that is all it does."""
    if (
        out is carry
        or out.node is None
        or out.node.op not in ("add", "sub")
        or carry.shape
        or carry.dtype not in nodes.INTEGERS
    ):
        return None
    a, b = out.node.inputs
    if a is carry and b.constant is not None:
        return int(b.constant) if out.node.op == "add" else -int(b.constant)
    return int(a.constant) if b is carry and a.constant is not None and out.node.op == "add" else None


def place_of_operand(body: GraphLowering, x: Value) -> Place | None:
    return None if x.constant is not None else body.place_of(x)


@opaque("scan")
def emit_scan(body: GraphLowering, node: Node) -> list[Stmt]:
    p = node.params
    n_consts, n_carry, length = p["num_consts"], p["num_carry"], p["length"]
    consts, carry, xs = (
        node.inputs[:n_consts],
        node.inputs[n_consts : n_consts + n_carry],
        node.inputs[n_consts + n_carry :],
    )
    carry_places = [body.places[v] for v in node.outputs[:n_carry]]
    if length == 0:
        return initialise(body, carry, carry_places)
    t = Var(f"t{body.module.depth or ''}")
    row = nodes.sub(nodes.i32(length - 1), t) if p["reverse"] else t
    places: list[Place | None] = [*(place_of_operand(body, x) for x in consts), *carry_places]
    places += [None if x.constant is not None else row_of(body.placed(x), row, x.shape[1:]) for x in xs]
    targets = [*carry_places, *[row_of(body.places[y], row, y.shape[1:]) for y in node.outputs[n_carry:]]]
    operands = [*consts, *[None] * n_carry, *xs]
    counters = Counters(
        t,
        {
            n_consts + i: x.constant
            for i, x in enumerate(carry)
            if x.constant is not None and not x.shape and x.dtype in nodes.INTEGERS
        },
    )
    steps = body_of(body, p["jaxpr"], operands, places, targets, counters)
    counted = {k - n_consts: step for k, step in counters.steps.items()}
    kept = [i for i in range(n_carry) if i not in counted]
    out = initialise(body, [carry[i] for i in kept], [carry_places[i] for i in kept])
    if steps:
        out.append(For(t, length, steps))
    for i, step in counted.items():
        v = node.outputs[i]
        if v.users or v in body.planner.outputs:
            last = constant(nodes.wrap(int(carry[i].constant) + length * step, v.dtype), v.dtype)
            out.append(body.kernel("count", [carry_places[i].store((), last)]))
    return out


def initialise(body: GraphLowering, carry: Sequence[Value], places: Sequence[Place]) -> list[Stmt]:
    """Puts initial values into their carries. A carry uses the storage of a value from before the loop only if the
    value is its initial value and no other operand reads it (`GraphLowering.dies_at`, `GraphLowering.may_write`): no
    initial value is read from a carry after another one has been put into it.
    """
    out: list[Stmt] = []
    for v, p in zip(carry, places):
        out += body.fill(v, p)
    return out


@opaque("while")
def emit_while(body: GraphLowering, node: Node) -> list[Stmt]:
    p = node.params
    n_cond, n_body = p["cond_nconsts"], p["body_nconsts"]
    cond_consts, body_consts, carry = (
        node.inputs[:n_cond],
        node.inputs[n_cond : n_cond + n_body],
        node.inputs[n_cond + n_body :],
    )
    places = [body.places[v] for v in node.outputs]
    out = initialise(body, carry, places)
    flag = Place(body.module.temp("bool", (), "flag"))
    nothing = [None] * len(carry)
    test = body_of(
        body,
        p["cond_jaxpr"],
        [*cond_consts, *nothing],
        [*[place_of_operand(body, x) for x in cond_consts], *places],
        [flag],
    )
    steps = body_of(
        body,
        p["body_jaxpr"],
        [*body_consts, *nothing],
        [*[place_of_operand(body, x) for x in body_consts], *places],
        places,
    )
    return [*out, While(test, Load(flag.buffer, ZERO), steps)]


@opaque("cond")
def emit_cond(body: GraphLowering, node: Node) -> list[Stmt]:
    index, *operands = node.inputs
    branches = node.params["branches"]
    targets = [body.places[v] for v in node.outputs]
    places = [place_of_operand(body, x) for x in operands]
    if index.constant is not None:
        return body_of(body, branches[min(max(int(index.constant), 0), len(branches) - 1)], operands, places, targets)
    bodies = [body_of(body, branch, operands, places, targets) for branch in branches]
    known = body.scalar(index)
    if known is None:
        where = body.placed(index)
        known = Load(where.buffer, where.at(()))
    return [Switch(known, bodies)]
