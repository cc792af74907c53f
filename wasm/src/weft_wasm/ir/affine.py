"""Linear forms of index expressions."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from weft_wasm.ir.nodes import Binary, Const, Expr, Var, add, mul, whole, wrap
from weft_wasm.ir.traversal import walk_expr

Linear = tuple[dict[Expr, int], int]


def linear(e: Expr) -> Linear:
    """index = Σ coefficient · term + constant, modulo 2^32; a term is a variable or an expression that isn't linear.
    Found once for each sum and product, and stored on it.

    >>> from weft_wasm.ir.nodes import Var
    >>> i, j = Var("i"), Var("j")
    >>> linear((i + 2) * 10 + j)
    ({i: 10, j: 1}, 20)
    """
    try:
        return e._linear
    except AttributeError:
        found = _linear(e)
        if e not in found[0]:  # that would be a cycle
            e._linear = found
        return found


def _linear(e: Expr) -> Linear:
    if type(e) is Const:
        return {}, whole(e)
    if type(e) is Binary:
        if e.op in ("add", "sub"):
            (terms_a, c_a), (terms_b, c_b) = linear(e.a), linear(e.b)
            sign = 1 if e.op == "add" else -1
            terms = dict(terms_a)
            for term, c in terms_b.items():
                c = wrap(terms.get(term, 0) + sign * c, "i32")
                if c:
                    terms[term] = c
                else:
                    terms.pop(term, None)
            return terms, wrap(c_a + sign * c_b, "i32")
        if e.op == "mul":
            a, b = linear(e.a), linear(e.b)
            if a[0] and b[0]:
                return {e: 1}, 0
            (terms, c), k = (a, b[1]) if not b[0] else (b, a[1])
            return _scaled(terms, c, k)
        if e.op == "shl" and type(e.b) is Const and 0 <= whole(e.b) < 31:
            terms, c = linear(e.a)
            return _scaled(terms, c, 1 << whole(e.b))
    return {e: 1}, 0


def _scaled(terms: dict[Expr, int], c: int, k: int) -> Linear:
    scaled = {term: wrap(x * k, "i32") for term, x in terms.items()}
    return {term: x for term, x in scaled.items() if x}, wrap(c * k, "i32")


def linear_index(indices: Sequence[Expr], strides: Sequence[int], offset: int = 0) -> Expr:
    """Σ index·stride + offset."""
    total: Expr = Const(offset, "i32")
    for index, stride in zip(indices, strides):
        total = add(total, mul(index, stride))
    return total


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Element strides of a dense array."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def distinct(terms: Mapping[Expr, int], extents: Mapping[Var, int | Expr], unknown: Collection[Expr] = ()) -> bool:
    """Whether an index with these terms differs in each iteration of a nest of loops; False if that is uncertain.
    `extents` are those of the loops by their variables, `unknown` are variables that may depend on them.

    >>> from weft_wasm.ir.nodes import Var
    >>> i, j = Var("i"), Var("j")
    >>> distinct({i: 10, j: 1}, {i: 4, j: 10}), distinct({i: 9, j: 1}, {i: 4, j: 10}), distinct({j: 1}, {i: 4, j: 10})
    (True, False, False)
    """
    inside = {*extents, *unknown}
    if any(t in unknown or t not in extents and any(node in inside for node in walk_expr(t)) for t in terms):
        return False
    reach: float = 0
    for var, extent in sorted(extents.items(), key=lambda item: abs(terms.get(item[0], 0))):
        step = abs(terms.get(var, 0))
        if extent == 1:
            continue
        if step <= reach:
            return False
        reach += step * (extent - 1) if type(extent) is int else math.inf
    return True
