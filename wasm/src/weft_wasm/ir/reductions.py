"""Reduce loops: the locals that they change, by which operation, and from which initial value."""

from __future__ import annotations

import math

from weft_wasm.ir.nodes import FLOATS, SIGNED, Assign, Binary, Const, Declare, Expr, For, Local, MulAdd, int_range
from weft_wasm.ir.traversal import walk


def assigned_outside(s: For) -> list[Local]:
    """Locals that the loop assigns and doesn't declare, each once."""
    declared = {inner.local for inner in walk(s.body) if type(inner) is Declare}
    return list(
        dict.fromkeys(inner.local for inner in walk(s.body) if type(inner) is Assign and inner.local not in declared)
    )


def reduction(s: Assign) -> tuple[str | None, tuple[Expr, ...]]:
    """(⊕, the other operands) of `acc = acc ⊕ e`; (None, ()) for other expressions."""
    value, acc = s.value, s.local
    if type(value) is Binary:
        if value.a is acc:
            return value.op, (value.b,)
        if value.b is acc:
            return value.op, (value.a,)
    if type(value) is MulAdd and value.c is acc:
        return "add", (value.a, value.b)
    return None, ()


def reductions(s: For) -> dict[Local, str]:
    """The ⊕ of every local that a reduce loop changes."""
    outside = set(assigned_outside(s))
    return {
        inner.local: reduction(inner)[0] or ""
        for inner in walk(s.body)
        if type(inner) is Assign and inner.local in outside
    }


def identity(op: str, dtype: str) -> Const:
    """The value that ⊕ leaves everything unchanged by."""
    if dtype == "bool":
        return Const(op == "and", dtype)
    if dtype in FLOATS:
        return Const({"add": -0.0, "mul": 1.0, "min": math.inf, "max": -math.inf}[op], dtype)
    low, high = int_range(dtype)
    ones = -1 if dtype in SIGNED else high
    return Const({"add": 0, "mul": 1, "min": high, "max": low, "and": ones, "or": 0, "xor": 0}[op], dtype)
