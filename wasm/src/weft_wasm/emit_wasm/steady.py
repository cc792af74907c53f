"""What a loop does not change is made once before it: loads that it repeats, vectors of constants, reciprocals of what it divides by."""

from __future__ import annotations

from weft_wasm import scalar_math
from weft_wasm.emit_wasm.expressions import constant_key
from weft_wasm.emit_wasm.interleave import Interleaving
from weft_wasm.emit_wasm.tables import SCALAR
from weft_wasm.encode import V128
from weft_wasm.ir import (
    Assign,
    Binary,
    Bitcast,
    Buffer,
    Compare,
    Const,
    Expr,
    For,
    Let,
    Load,
    MulAdd,
    Select,
    Store,
    Unary,
    Var,
    blocks,
    expressions,
    may_end,
    operands,
    walk,
    walk_expr,
    written,
)  # fmt: skip

MAX_HOISTED = 24
WORTH_DIVIDING = 8  # vectors of a loop from which a reciprocal pays


class Steady(Interleaving):
    """Adds values that a loop's body finds in locals. Each `hold_…` returns those locals, for the loop's end to release."""

    def __init__(self, params: list[int], features: frozenset[str]):
        super().__init__(params, features)
        self.body_loads: dict[int, tuple[dict[Load, None], list[Buffer]]] = {}
        self.reciprocals: list[Var] = []

    def hold_loads(self, body: list, var: Var) -> list[tuple[int, int]]:
        """Loads that the loop repeats unchanged go before it. Engines can't do this: any store might change memory."""
        loads, changed = self.steady_loads(body)
        held: list[tuple[int, int]] = []
        memo: dict[Expr, bool] = {var: False}
        for load in loads:
            if len(held) >= MAX_HOISTED:
                break
            if (load, None) in self.hoisted or not self.available(load.index, memo):
                continue
            if any(self.overlap(load.buffer, b) for b in changed):
                continue
            self.open(load)
            self.scalar(load)
            local = self.new_local(SCALAR[load.dtype])
            self.set(local)
            held.append((SCALAR[load.dtype], local))
            self.hoisted[(load, None)] = local
            if self.vec is not None:
                splat = self.new_local(V128)
                self.get(local)
                self._splat(load.dtype)
                self.set(splat)
                held.append((V128, splat))
                self.hoisted[(load, "splat")] = splat
            self.close()
        return held

    def steady_loads(self, body: list) -> tuple[dict[Load, None], list[Buffer]]:
        """(loads that every iteration of body runs, buffers that body writes)."""
        hit = self.body_loads.get(id(body))
        if hit is None:
            loads: dict[Load, None] = {}
            seen: set[Expr] = set()

            def visit(statements: list, certain: bool) -> bool:
                """Whether the program may end in these statements; what comes after does not run in every iteration then."""
                ends = False
                for s in statements:
                    if certain and not ends:
                        for e in expressions(s):
                            for node in walk_expr(e, seen):
                                if type(node) is Load:
                                    loads[node] = None
                    runs = certain and not ends and type(s) is For and type(s.extent) is int and s.extent > 0
                    for inner in blocks(s):
                        ends |= visit(inner, runs)
                    ends |= may_end(s)
                return ends

            visit(body, True)
            hit = self.body_loads[id(body)] = (loads, written(body))
        return hit

    def hold_constants(self, body: list) -> list[int]:
        """Locals that hold the vector constants of a loop's body: engines make a constant anew wherever it stands, in three instructions."""
        seen: set[Expr] = set()

        def visit(e: Expr) -> None:
            if e in seen:
                return
            seen.add(e)
            if type(e) is Const:
                if constant_key(e) not in self.held_constants:
                    self._vector_constant(e)
                    self.held_constants[constant_key(e)] = local = self.new_local(V128)
                    self.set(local)
            elif scalar_math.needs_expansion(e):
                visit(self.expanded(e))
            elif type(e) is Select and e.rare:
                visit(e.cond)
                visit(e.b)
            elif type(e) is not Load:
                shift = type(e) is Binary and e.op in ("shl", "shr")
                for x in operands(e)[: 1 if shift else None]:
                    visit(x)

        for s in walk(body):
            if type(s) in (Let, Assign, Store):
                visit(s.value)
        return list(self.held_constants.values())

    def hold_reciprocals(self, body: list) -> list[tuple[int, int]]:
        """For the divisions of a vector loop by what it does not change: their quotients made of r = 1/d. With q = a·r, q + (a - q·d)·r is the rounded a/d
        as far as products are added exactly (P. Markstein, 1990), which "relaxed-simd" does on the processors of today, and one ulp off at most where a or
        the result is next to the smallest numbers. Where it is no number, because a, d, r or the result is infinite or none, the division decides."""
        if not self.relaxed:
            return []
        held: list[int] = []
        divisors: dict[Expr, tuple[Var, Var, Var]] = {}
        memo: dict[Expr, bool] = {}
        for e in _divisions(body):
            if not self._steady(e.b, memo):
                continue
            if e.b not in divisors:
                divisors[e.b] = names = Var("minus_d", e.dtype), Var("r", e.dtype), Var("sign", e.dtype)
                for name, value in zip(names, (Unary("neg", e.b), Binary("div", Const(1.0, e.dtype), e.b), Const(-0.0, e.dtype))):
                    self.open(value)
                    self.vector(value, 0)
                    self.close()
                    held.append(self.new_local(V128))
                    self.set(held[-1])
                    self.env[name] = [held[-1]] * self.vec.vectors
            minus_d, r, sign = divisors[e.b]
            q = e.a * r
            better = MulAdd(MulAdd(q, minus_d, e.a), r, q)
            word = "u32" if e.dtype == "f32" else "u64"
            signed = Bitcast(Bitcast(better, word) | (Bitcast(q, word) & Bitcast(sign, word)), e.dtype)  # of -0 the sum made 0
            self.quotients[e] = Select(Compare("ne", better, better), Binary("div", e.a, Unary("neg", minus_d)), signed, rare=True)
        self.reciprocals = [name for names in divisors.values() for name in names]
        return [(V128, local) for local in held]

    def forget_reciprocals(self) -> None:
        """At the end of the loop."""
        for name in self.reciprocals:
            del self.env[name]
        self.reciprocals = []
        self.quotients.clear()

    def _steady(self, e: Expr, memo: dict[Expr, bool]) -> bool:
        """Whether the vector loop being entered leaves e as it is."""
        if type(e) is Load:
            return (e, None) in self.hoisted
        if type(e) in (Const, Var) or not operands(e):
            return type(e) is Const or self.available(e, memo)
        return all(self._steady(x, memo) for x in operands(e))


def _divisions(body: list) -> dict[Binary, None]:
    """The divisions of floats in the statements of body."""
    seen: set[Expr] = set()
    nodes = [e for s in walk(body) if type(s) in (Let, Assign, Store) for e in walk_expr(s.value, seen)]
    return {e: None for e in nodes if type(e) is Binary and e.op == "div" and e.dtype in ("f32", "f64")}
