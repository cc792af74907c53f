"""Reductions as accumulators: how each begins and combines."""

from __future__ import annotations

from typing import Callable

from weft_wasm.ir.nodes import Binary, Const, Expr
from weft_wasm.lower import graph
from weft_wasm.lower.types import highest, lowest, scalar_dtype


def _zero(storage: str) -> Const:
    kind = scalar_dtype(storage)
    return Const(False if kind == "bool" else 0.0 if kind[0] == "f" else 0, kind)


def _one(storage: str) -> Const:
    kind = scalar_dtype(storage)
    return Const(True if kind == "bool" else 1.0 if kind[0] == "f" else 1, kind)


def _all_ones(storage: str) -> Const:
    if storage == "bool":
        return Const(True, "bool")
    return Const(-1, scalar_dtype(storage)) if storage[0] == "i" else highest(storage)


def _combine(op: str, for_bool: str) -> Callable[[Expr, Expr], Expr]:
    return lambda a, b: Binary(for_bool if a.dtype == "bool" else op, a, b)


# primitive: (initial value of a dtype, combination)
REDUCERS: dict[str, tuple[Callable[[str], Const], Callable[[Expr, Expr], Expr]]] = {
    "reduce_sum": (_zero, _combine("add", "or")),
    "reduce_prod": (_one, _combine("mul", "and")),
    "reduce_max": (lowest, _combine("max", "or")),
    "reduce_min": (highest, _combine("min", "and")),
    "reduce_and": (_all_ones, _combine("and", "and")),
    "reduce_or": (_zero, _combine("or", "or")),
    "reduce_xor": (_zero, _combine("xor", "xor")),
}
CUMULATIVE = {"cumsum": "reduce_sum", "cumprod": "reduce_prod", "cummax": "reduce_max", "cummin": "reduce_min"}
graph.known.update(REDUCERS)
graph.known.update(CUMULATIVE)
graph.known.update(("argmax", "argmin", "cumlogsumexp"))
