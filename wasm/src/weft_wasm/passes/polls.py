"""Inserts polls, where a program checks whether it must stop: in loops around kernels, and in the loops of kernels that
take long.

A poll costs about a nanosecond. It is placed where that cost is negligible: in iterations that take hundreds of times
as long, or, if iterations are short, once for each run of many. No code runs much longer than `LONG` without a poll.
Times are the estimates of `threads.Costs`, which may be wrong by a few times; people notice tenths of a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weft_wasm.ir.nodes import (
    FLOATS,
    ITEMSIZE,
    Binary,
    Const,
    Copy,
    Expr,
    For,
    If,
    Instance,
    Kernel,
    Poll,
    Program,
    Stmt,
    Switch,
    Var,
    While,
    whole,
)
from weft_wasm.ir.reductions import reductions
from weft_wasm.ir.rewriting import fresh
from weft_wasm.ir.traversal import touched
from weft_wasm.passes.threads import BYTE, LANES, UNIT, Costs

LONG = 10_000_000  # ns: shorter code has no poll inside
SHORT = 500  # ns: iterations that take less share a poll
RUN = 1_000_000  # ns: iterations that share a poll take about this long together


def place(program: Program) -> Program:
    """The program with polls, as it will run: scheduled, its buffers in their places."""
    return replace(program, body=_Placing().block(program.body))


class _Placing:
    """Polls for one program; each of its kernels is looked at once."""

    def __init__(self) -> None:
        self.known: dict[Kernel, tuple[Kernel, float]] = {}  # the kernel with polls, and how long it runs

    def kernel(self, s: Kernel) -> tuple[Kernel, float]:
        found = self.known.get(s)
        if found is None:
            most = _Most(s.body)
            costs = Costs(most)
            time = costs.of(s.body)
            found = self.known[s] = (replace(s, body=_long(s.body, most, costs)) if time >= LONG else s), time
        return found

    def block(self, body: Sequence[Stmt], begins: bool = False) -> list[Stmt]:
        """Program-level statements, with a poll wherever `LONG` has passed since the last. begins: they begin with
        one, as the body of a loop does.
        """
        out: list[Stmt] = [Poll()] if begins else []
        passed = 0.0
        for s in body:
            match s:
                case For():
                    s = replace(s, body=self.block(s.body, begins=True))
                case While():
                    s = While(self.block(s.cond), s.test, self.block(s.body, begins=True))
                case If():
                    s = If(s.test, self.block(s.then), self.block(s.orelse))
                case Switch():
                    s = Switch(s.index, [self.block(b) for b in s.branches])
                case Kernel():
                    s, time = self.kernel(s)
                    passed += time
                case Instance():
                    kernel, time = self.kernel(s.kernel)
                    s = replace(s, kernel=kernel)
                    passed += time
                case Copy():
                    passed += BYTE * s.count * ITEMSIZE[s.dst.dtype]
            out.append(s)
            if passed >= LONG / 2:
                out.append(Poll())
                passed = 0.0
        return out


class _Most:
    """How often loops of unknown extent run at most: not more often than the kernel's largest array has elements."""

    def __init__(self, body: Sequence[Stmt]):
        self.body, self.largest = body, 0

    def __call__(self, extent: Expr) -> int:
        if type(extent) is Const:
            return max(whole(extent), 0)
        if type(extent) is Binary and extent.op == "min":
            return min(self(extent.a), self(extent.b))
        if not self.largest:
            self.largest = max((b.size for group in touched(self.body) for b in group), default=1)
        return self.largest


def _long(body: Sequence[Stmt], most: _Most, costs: Costs) -> list[Stmt]:
    """Statements of a kernel, with polls in the loops that take long."""
    out: list[Stmt] = []
    for s in body:
        match s:
            case For():
                out += _loop(s, most, costs)
            case If():
                out.append(If(s.test, _long(s.then, most, costs), _long(s.orelse, most, costs)))
            case Switch():
                out.append(Switch(s.index, [_long(b, most, costs) for b in s.branches]))
            case _:
                out.append(s)
    return out


def _loop(s: For, most: _Most, costs: Costs) -> list[Stmt]:
    extent = s.extent if isinstance(s.extent, int) else most(s.extent)
    each = costs.of(s.body) / (LANES if s.vector else 1)
    if extent < 1 or each * extent < LONG:
        return [s]
    if not s.vector and each >= SHORT:
        return [replace(s, body=[Poll(), *(_long(s.body, most, costs) if each >= LONG else s.body)])]
    return _runs(s, max(1, int(RUN / max(each, 1e-3)) // UNIT) * UNIT)


def _runs(s: For, size: int) -> list[Stmt]:
    """A loop of short iterations as a loop over runs of `size` iterations, and the remaining iterations. In a vector
    loop this would change the sums, so it stays whole: sums are in blocks already (`accumulators.py`).
    """
    extent = s.extent
    sums = s.kind == "reduce" and s.vector and any(acc.dtype in FLOATS for acc in reductions(s))
    if not isinstance(extent, int) or extent < 2 * size or sums:
        return [s]
    run, inner, rest = Var(f"{s.var.name}.run"), Var(s.var.name), Var(s.var.name)
    kind = "parallel" if s.kind == "parallel" else "sequential"
    body = replace(s, var=inner, extent=size, body=fresh(s.body, {s.var: run * size + inner}), tasks=0)
    out: list[Stmt] = [For(run, extent // size, [Poll(), body], kind, tasks=-(-s.tasks // size))]
    if left := extent % size:  # shared by threads as well, for these may have values of their own
        out.append(replace(s, var=rest, extent=left, body=fresh(s.body, {s.var: rest + (extent - left)})))
    return out
