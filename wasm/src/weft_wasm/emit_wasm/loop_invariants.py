"""Loop-invariant code, which runs once before the loop: repeated loads, constant vectors, reciprocals of divisors."""

from __future__ import annotations

from collections.abc import Sequence

from weft_wasm.emit_wasm import packing
from weft_wasm.emit_wasm.function import Function
from weft_wasm.emit_wasm.scalars import Scalars
from weft_wasm.emit_wasm.scope import Scope
from weft_wasm.emit_wasm.storage import Storage
from weft_wasm.emit_wasm.tables import SCALAR
from weft_wasm.emit_wasm.values import Expansions, Held, Shared, constant_key
from weft_wasm.emit_wasm.vectors import Vectors
from weft_wasm.binary.encode import V128
from weft_wasm.ir.nodes import (
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
    Stmt,
    Store,
    Unary,
    Var,
)
from weft_wasm.ir.traversal import blocks, expressions, may_end, operands, walk, walk_expr, written

MAX_HOISTED = 24


class LoopInvariants:
    """Computes loop-invariant values before a loop. Each `hold_…` returns the locals (with their types) that are
    released at the end of the loop.
    """

    def __init__(
        self,
        fn: Function,
        scope: Scope,
        storage: Storage,
        shared: Shared,
        held: Held,
        expansions: Expansions,
        scalars: Scalars,
        vectors: Vectors,
    ):
        self.fn, self.scope, self.storage, self.shared = fn, scope, storage, shared
        self.held, self.expansions, self.scalars, self.vectors = held, expansions, scalars, vectors
        # by the identity of the statements' list, which is stored, so that no other list can have it
        self._loads: dict[int, tuple[Sequence[Stmt], dict[Load, None], list[Buffer]]] = {}
        self._reciprocals: list[Var] = []

    # ---- loads

    def hold_loads(self, body: Sequence[Stmt], var: Var) -> list[tuple[int, int]]:
        """Loads that the loop repeats unchanged are moved before it. Engines can't do this, because any store might
        change memory.
        """
        loads, changed = self.invariant_loads(body)
        locals_: list[tuple[int, int]] = []
        memo: dict[Expr, bool] = {var: False}
        for load in loads:
            if len(locals_) >= MAX_HOISTED:
                break
            if load in self.held.scalars or not self.scope.available(load.index, memo):
                continue
            if any(self.storage.overlap(load.buffer, b) for b in changed):
                continue
            self.shared.open(load)
            self.scalars.push(load)
            local = self.fn.new_local(SCALAR[load.dtype])
            self.fn.set(local)
            locals_.append((SCALAR[load.dtype], local))
            self.held.scalars[load] = local
            if self.scope.lanes is not None:
                locals_.append((V128, self._hold_splat(load, local)))
            self.shared.close()
        return locals_

    def hold_splats(self, body: Sequence[Stmt]) -> list[tuple[int, int]]:
        """Loads of a vector loop's body that loops around it hold, in all lanes."""
        loads, _ = self.invariant_loads(body)
        return [(V128, self._hold_splat(e, local)) for e, local in self.held.scalars.items() if e in loads]

    def _hold_splat(self, e: Expr, scalar: int) -> int:
        local = self.fn.new_local(V128)
        self.fn.get(scalar)
        packing.splat(self.fn, e.dtype, self.scope.vector.lanes)
        self.fn.set(local)
        self.held.splats[e] = local
        return local

    def invariant_loads(self, body: Sequence[Stmt]) -> tuple[dict[Load, None], list[Buffer]]:
        """(loads that every iteration of body runs, buffers that body writes)."""
        hit = self._loads.get(id(body))
        if hit is None:
            loads: dict[Load, None] = {}
            seen: set[Expr] = set()

            def visit(statements: Sequence[Stmt], certain: bool) -> bool:
                """Whether the program may end in these statements; the statements after them do not run in every
                iteration then.
                """
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
            hit = self._loads[id(body)] = (body, loads, written(body))
        return hit[1:]

    # ---- constants

    def hold_constants(self, body: Sequence[Stmt]) -> list[tuple[int, int]]:
        """The constant vectors of a loop's body: engines build a constant at every use, with three instructions."""
        held, locals_ = self.held.constants, list[tuple[int, int]]()
        seen: set[Expr] = set()
        values = [s.value for s in walk(body) if type(s) is Let or type(s) is Assign or type(s) is Store]
        pending: list[Expr] = values[::-1]
        while pending:
            e = pending.pop()
            if e in seen:
                continue
            seen.add(e)
            if type(e) is Const:
                key = constant_key(e)
                if key not in held:
                    self.vectors.constant(e)
                    held[key] = self.fn.new_local(V128)
                    self.fn.set(held[key])
                    locals_.append((V128, held[key]))
                continue
            expanded = self.expansions.of(e)
            if expanded is not None:
                pending.append(expanded)
            elif type(e) is Select and e.rare:
                pending += (e.b, e.cond)
            elif type(e) is not Load:
                shift = type(e) is Binary and e.op in ("shl", "shr")
                pending += operands(e)[:1] if shift else operands(e)[::-1]
        return locals_

    # ---- reciprocals

    def hold_reciprocals(self, body: Sequence[Stmt]) -> list[tuple[int, int]]:
        """For the divisions of a vector loop by what it does not change: their quotients made of r = 1/d. With q = a·r,
        q + (a - q·d)·r is the rounded a/d as far as products are added exactly (P. Markstein, 1990), which
        "relaxed-simd" does on the processors of today, and one ulp off at most where a or the result is next to the
        smallest numbers. Where it is no number, because a, d, r or the result is infinite or none, the division
        decides.
        """
        if not self.vectors.relaxed:
            return []
        locals_: list[tuple[int, int]] = []
        divisors: dict[Expr, tuple[Var, Var, Var]] = {}
        memo: dict[Expr, bool] = {}
        for e in _divisions(body):
            if not self._is_invariant(e.b, memo):
                continue
            if e.b not in divisors:
                divisors[e.b] = names = Var("minus_d", e.dtype), Var("r", e.dtype), Var("sign", e.dtype)
                values: tuple[Expr, ...] = (
                    Unary("neg", e.b),
                    Binary("div", Const(1.0, e.dtype), e.b),
                    Const(-0.0, e.dtype),
                )
                for name, value in zip(names, values):
                    self.shared.open(value)
                    self.vectors.push(value, 0)
                    self.shared.close()
                    local = self.fn.new_local(V128)
                    locals_.append((V128, local))
                    self.fn.set(local)
                    self.scope.env[name] = [local] * self.scope.vector.vectors
            minus_d, r, sign = divisors[e.b]
            q = e.a * r
            better = MulAdd(MulAdd(q, minus_d, e.a), r, q)
            word = "u32" if e.dtype == "f32" else "u64"
            # of -0 the sum made 0
            signed = Bitcast(Bitcast(better, word) | (Bitcast(q, word) & Bitcast(sign, word)), e.dtype)
            self.held.quotients[e] = Select(
                Compare("ne", better, better), Binary("div", e.a, Unary("neg", minus_d)), signed, rare=True
            )
        self._reciprocals = [name for names in divisors.values() for name in names]
        return locals_

    def forget_reciprocals(self) -> None:
        """At the end of the loop."""
        for name in self._reciprocals:
            del self.scope.env[name]
        self._reciprocals = []
        self.held.quotients.clear()

    def _is_invariant(self, e: Expr, memo: dict[Expr, bool]) -> bool:
        """Whether the vector loop being entered leaves e as it is."""
        if type(e) is Load:
            return e in self.held.scalars
        if type(e) is Const:
            return True
        if type(e) is Var or not operands(e):
            return self.scope.available(e, memo)
        return all(self._is_invariant(x, memo) for x in operands(e))


def _divisions(body: Sequence[Stmt]) -> dict[Binary, None]:
    """The divisions of floats in the statements of body."""
    seen: set[Expr] = set()
    nodes = [
        e
        for s in walk(body)
        if type(s) is Let or type(s) is Assign or type(s) is Store
        for e in walk_expr(s.value, seen)
    ]
    return {e: None for e in nodes if type(e) is Binary and e.op == "div" and e.dtype in ("f32", "f64")}
