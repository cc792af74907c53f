"""Schedules: how loop nests run. `auto` chooses the order of the loops of every nest of a program, and which of them
run in SIMD lanes.

Scheduling does not change the results of a program, except for the rounding of float sums.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import assert_never

from weft_wasm.passes.accumulators import SUM_BLOCK, extrema_by_bits, in_blocks, with_more_accumulators, side_by_side
from weft_wasm.ir.affine import linear
from weft_wasm.passes.column_reductions import interchanged
from weft_wasm.ir.nodes import (
    FLOATS,
    Assign,
    Barrier,
    Binary,
    Buffer,
    Call,
    Copy,
    Declare,
    Expr,
    Fail,
    For,
    HostCall,
    If,
    Instance,
    Kernel,
    Let,
    Load,
    MulAdd,
    Poll,
    Program,
    Stmt,
    Store,
    Switch,
    Var,
    While,
)
from weft_wasm.ir.traversal import blocks, expressions, walk, walk_expr
from weft_wasm.ir.reductions import reduction, reductions
from weft_wasm.ir.rewriting import map_blocks

BIG = 16  # nodes in a body above which unrolling a vector loop only makes code


def nest_of(loop: For) -> tuple[list[For], list[Stmt]]:
    """(the perfectly nested parallel loops from loop inwards, the body of the innermost)."""
    loops, body = [loop], loop.body
    while len(body) == 1 and type(inner := body[0]) is For and inner.kind == "parallel" and type(inner.extent) is int:
        loops.append(inner)
        body = inner.body
    return loops, body


def schedule_loops(program: Program) -> Program:
    """The program with every nest scheduled for SIMD. Loops that carry a schedule already stay as they are.

    Without "simd128" the vector loops run as scalar loops; long sums are in blocks nevertheless.
    """
    temps: list[Buffer] = []
    made: dict[Kernel, tuple[Kernel, list[Buffer]]] = {}

    def scheduled(kernel: Kernel) -> tuple[Kernel, list[Buffer]]:
        """A kernel's schedule, and the temps that it needs."""
        found = made.get(kernel)
        if found is None:
            own: list[Buffer] = []
            found = made[kernel] = replace(kernel, body=_Chooser(own).block(kernel.body)), own
        return found

    def each(s: Stmt) -> Stmt:
        if type(s) is Kernel:
            kernel, own = scheduled(s)
            temps.extend(own)
            return kernel
        if type(s) is Instance:
            kernel, own = scheduled(s.kernel)
            copies = {b: Buffer(b.name, b.dtype, b.shape, b.role, label=b.label) for b in own}
            temps.extend(copies.values())
            return replace(s, kernel=kernel, buffers=s.buffers | copies)
        return s

    body = map_blocks(program.body, lambda block: list(map(each, block)))
    return replace(program, body=body, temps=[*program.temps, *temps])


class _Chooser:
    """Schedules the nests of one kernel. `temps` gets the buffers that they need."""

    def __init__(self, temps: list[Buffer]) -> None:
        self.temps = temps

    def block(self, body: list[Stmt]) -> list[Stmt]:
        return [x for s in body for x in self.statement(s)]

    def statement(self, s: Stmt) -> list[Stmt]:
        match s:
            case For():
                return self.nest(s)
            case While():
                return [While(self.block(s.cond), s.test, self.block(s.body))]
            case If():
                return [If(s.test, self.block(s.then), self.block(s.orelse))]
            case Switch():
                return [Switch(s.index, [self.block(b) for b in s.branches])]
            case Let() | Declare() | Assign() | Store() | Barrier() | Poll():
                return [s]
            case Kernel() | Instance() | Copy() | HostCall() | Fail():
                raise TypeError(f"{type(s).__name__} is not a statement of a kernel")
            case _:
                assert_never(s)

    def nest(self, s: For) -> list[Stmt]:
        if any(type(inner) is For and (inner.vector or inner.unroll > 1) for inner in walk([s])):
            return [s]  # scheduled by its author
        if s.kind == "reduce":
            return self.reduction(s)
        if s.kind == "sequential" or type(s.extent) is not int:
            if s.kind == "parallel" and self.may_vectorise(s.body) and self.score(s.body, s.var) > 0:
                return [replace(s, vector=1)]
            return [replace(s, body=self.block(s.body))]
        loops, body = nest_of(s)
        axis = self.vector_axis(loops, body)
        if axis is None:
            inner: list[Stmt] = [replace(x, body=self.block(x.body)) for x in side_by_side(loops[-1], body, BIG)]
            for x in reversed(loops[:-1]):
                inner = [replace(x, body=inner)]
            return inner
        reduces = any(type(x) is For for x in walk(body))
        vectors = (4 if axis.count >= 16 else 2 if axis.count >= 8 else 1) if reduces or _size(body) <= BIG else 1
        rows = interchanged(axis, body, vectors, self.stride, self.temps)
        if rows is not None:
            for x in reversed([x for x in loops if x is not axis]):
                rows = [replace(x, body=rows)]
            return rows
        body = self.blocked(body)
        order = [x for x in loops if x is not axis] + [axis]
        for x in reversed(order):
            body = [replace(x, body=body, vector=vectors if x is axis else 0)]
        return body

    def vector_axis(self, loops: list[For], body: list[Stmt]) -> For | None:
        """The parallel axis to run in lanes; None if none pays, or a reduction inside vectorises better."""
        if not self.may_vectorise(body):
            return None
        scored = [(self.score(body, x.var), k, x) for k, x in enumerate(loops) if x.count >= 2]
        if not scored:
            return None
        best, _, axis = max(scored, key=lambda item: item[:2])
        if best <= 0:
            return None
        inner = [x for x in body if type(x) is For and x.kind == "reduce"]
        if (
            inner
            and max(self.score(x.body, x.var) if type(x.extent) is int and x.extent >= 8 else -1 for x in inner) > best
        ):
            return None
        return axis

    def may_vectorise(self, body: list[Stmt]) -> bool:
        """Whether inner control flow permits lanes (tests that could depend on the lane do not)."""
        return all(
            type(x) in (Let, Declare, Assign, Store, For) and not (type(x) is For and type(x.extent) is not int)
            for x in walk(body)
        )

    def score(self, body: list[Stmt], var: Var, depth: int = 0) -> float:
        """How well accesses suit lanes along var: the weight of contiguous accesses minus the cost of gathers."""
        total = 0.0
        seen: set[Expr] = set()
        for s in body:
            weight = 1.0 if depth == 0 else 4.0
            if type(s) is Store:
                stride = self.stride(s.index, var)
                if stride == 0:  # lanes would write the same element
                    return -math.inf
                total += weight if stride == 1 else -weight
            for e in expressions(s):
                for node in walk_expr(e, seen):
                    if type(node) is Load:
                        stride = self.stride(node.index, var)
                        total += weight if stride == 1 else 0 if stride == 0 else -weight
                    elif type(node) in (Binary, MulAdd) and node.dtype in FLOATS:
                        total += 0.05
            for inner in blocks(s):
                total += self.score(inner, var, depth + 1)
        if depth == 0 and -math.inf < total <= 0 and _size(body) > 3 * BIG:
            return 0.1  # much arithmetic: lanes pay although loads don't line up
        return total

    def stride(self, index: Expr, var: Var) -> int | None:
        """The number of elements by which an index moves when var does: a constant, or None."""
        terms, _ = linear(index)
        if any(t is not var and type(t) is not Var and any(node is var for node in walk_expr(t)) for t in terms):
            return None
        return terms.get(var, 0)

    # ---- reductions

    def reduction(self, s: For) -> list[Stmt]:
        inner_loops = any(type(x) is For for x in walk(s.body))
        if inner_loops or type(s.extent) is not int or not self.reducible(s):
            return in_blocks(replace(s, body=self.block(s.body)), 1 if inner_loops else 32)
        return [
            x for part in with_more_accumulators(s, BIG) for x in (self.in_lanes(part) if type(part) is For else [part])
        ]

    def in_lanes(self, s: For) -> list[Stmt]:
        """A reduction in vectors, as many at a time as leave registers for its operands."""
        if s.count < 64:
            return [replace(s, vector=1)]
        before, loop, after = extrema_by_bits(s)
        sums = len(reductions(loop))
        plain = (
            len(loop.body) == 1
            and type(only := loop.body[0]) is Assign
            and any(type(e) is Load for e in reduction(only)[1])
        )
        vectors = 8 if plain else 4 if sums <= 2 else 2 if sums <= 4 else 1
        return before + in_blocks(replace(loop, vector=vectors), SUM_BLOCK * vectors) + after

    def reducible(self, s: For) -> bool:
        simple = all(type(x) in (Let, Assign, Store) for x in walk(s.body))
        return simple and s.count >= 8 and self.score(s.body, s.var) > 0

    def blocked(self, body: list[Stmt]) -> list[Stmt]:
        """Long float sums inside a vector loop, in blocks."""
        out: list[Stmt] = []
        for s in body:
            if type(s) is For and s.kind == "reduce":
                out += in_blocks(replace(s, body=self.blocked(s.body)), 32, in_lanes=True)
            elif type(s) is For:
                out.append(replace(s, body=self.blocked(s.body)))
            else:
                out.append(s)
        return out


def _size(body: list[Stmt]) -> int:
    """Nodes in the expressions of body."""
    seen: set[Expr] = set()
    return sum(1 for s in walk(body) for e in expressions(s) for _ in walk_expr(e, seen)) + 8 * sum(
        1 for e in seen if type(e) is Call
    )
