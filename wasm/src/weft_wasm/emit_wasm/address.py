"""Addresses: linear forms of indices, pointers that loops increment.

The address of `buffer[index]` is `pointer + Σ rest·scale + offset`. When a loop is entered, every access in its body
gets a pointer that already holds the part of its index which is linear in variables known there; the loop adds a
constant to it per iteration. Accesses whose indices differ by a constant share the pointer and differ in the
instruction's offset immediate. Indices are i32; addresses are too, or, with "memory64", i64.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from weft_wasm.ir.affine import linear
from weft_wasm.emit_wasm.function import Function
from weft_wasm.emit_wasm.scope import Lane, Scope
from weft_wasm.emit_wasm.storage import Storage
from weft_wasm.emit_wasm.values import Shared
from weft_wasm.ir.nodes import ITEMSIZE, Buffer, Expr, Load, Stmt, Store, Var
from weft_wasm.ir.traversal import blocks, expressions, walk_expr

# An offset immediate is added without wrapping, so a pointer that may be before its buffer must not have one that is
# larger than the lowest address that a host allocates.
SAFE_OFFSET = 64

Terms: TypeAlias = tuple[tuple[Expr, int], ...]  # expressions with their coefficients


class Evaluator(Protocol):
    """The interface to scalar expressions that addresses use; scalar expressions use addresses too."""

    def push(self, e: Expr, at: Lane | None = None) -> None:
        """Pushes the value of e, or of one lane of it."""


class Access(NamedTuple):
    """How to reach buffer[index] inside the current loop: a local with a pointer, terms still to add, the constant that
    it includes already, and whether it can't be before the buffer.
    """

    pointer: int
    rest: Terms
    base: int
    positive: bool


class Addresses:
    """The addresses of one function. loops: whether its loops have pointers; without them, an address is computed where
    it is used.
    """

    def __init__(self, fn: Function, scope: Scope, storage: Storage, shared: Shared, loops: bool = True):
        self.fn, self.scope, self.storage, self.shared, self.loops = fn, scope, storage, shared, loops
        self.known: dict[tuple[Buffer, Expr], Access] = {}
        # by the identity of the statements' list, which is stored, so that no other list can have it
        self._accesses: dict[int, tuple[Sequence[Stmt], list[tuple[Buffer, Expr]]]] = {}
        self._outer: list[tuple[dict[tuple[Buffer, Expr], Access], list[int]]] = []

    # ---- indices

    def stride(self, index: Expr) -> int | None:
        """The number of elements between adjacent lanes of an index; None if that is not a constant."""
        terms, _ = linear(index)
        var, varying = self.scope.vector.var, self.scope.varying
        if any(t is not var and varying(t) for t in terms):
            return None
        return terms.get(var, 0)

    def lane_extra(self, index: Expr, vector: int, lane: int) -> int:
        """Elements from where an index is in the first lane to where it is in another."""
        lanes = self.scope.vector
        return linear(index)[0].get(lanes.var, 0) * (vector * lanes.lanes + lane)

    def accesses(self, body: Sequence[Stmt]) -> list[tuple[Buffer, Expr]]:
        """Every distinct buffer[index] in body."""
        hit = self._accesses.get(id(body))
        if hit is None:
            found: dict[tuple[Buffer, Expr], None] = {}
            seen: set[Expr] = set()

            for s in body:
                for e in expressions(s):
                    for node in walk_expr(e, seen):
                        if type(node) is Load:
                            found[(node.buffer, node.index)] = None
                if type(s) is Store:
                    found[(s.buffer, s.index)] = None
                for block in blocks(s):
                    for key in self.accesses(block):
                        found[key] = None
            hit = self._accesses[id(body)] = (body, list(found))
        return hit[1]

    # ---- pointers

    def enter(self, evaluator: Evaluator, body: Sequence[Stmt], var: Var, step: int) -> list[tuple[int, int]]:
        """Makes pointers for a loop about to run (its variable is set); returns (pointer, bytes per iteration).
        `leave` ends it.
        """
        pointers: list[int] = []
        self._outer.append((self.known, pointers))
        if not self.loops:
            return []
        self.known = dict(self.known)
        groups: dict[tuple[int, Terms, Terms, int], list[tuple[Buffer, Expr, int, Access]]] = {}
        memo: dict[Expr, bool] = {var: False}  # as part of a term that isn't linear
        lanes = self.scope.lanes
        for buffer, index in self.accesses(body):
            terms, const = linear(index)
            known = self.known.get((buffer, index))
            if known is None:
                known = Access(
                    self.storage.at[self.storage.of(buffer)], tuple(terms.items()), 0, self.positive(terms.items())
                )
            taken = tuple(
                (t, c)
                for t, c in known.rest
                if t is var or self.scope.available(t, memo) or (lanes is not None and t is lanes.var)
            )
            if not taken:
                continue
            rest = tuple(item for item in known.rest if item not in taken)
            groups.setdefault((known.pointer, taken, rest, ITEMSIZE[buffer.dtype]), []).append(
                (buffer, index, const, known)
            )
        increments = []
        self.shared.open()  # terms that aren't linear are computed here, between statements
        for (pointer, taken, rest, size), members in groups.items():
            steps = sum(c for t, c in taken if t is var) * step * size
            smallest = min(const - known.base for _, _, const, known in members)
            shift = smallest if smallest < 0 or not members[0][3].positive else 0
            local = self.fn.new_local(self.fn.pointer)
            pointers.append(local)
            self.fn.get(pointer)
            for t, c in taken:
                self._add_term(evaluator, t, c * size, None)
            if shift:
                self.fn.add_bytes(shift * size)
            self.fn.set(local)
            if steps:
                increments.append((local, steps))
            for buffer, index, _, known in members:
                self.known[(buffer, index)] = Access(local, rest, known.base + shift, known.positive)
        self.shared.close()
        return increments

    def leave(self) -> None:
        """The end of a loop: its pointers are given back."""
        self.known, pointers = self._outer.pop()
        for local in pointers:
            self.fn.release(self.fn.pointer, local)

    def positive(self, terms: Iterable[tuple[Expr, int]]) -> bool:
        """Whether a sum of terms can't be negative."""
        return all(c >= 0 and (t in self.scope.loop_vars) for t, c in terms)

    def _add_term(self, evaluator: Evaluator, t: Expr, scale: int, at: Lane | None) -> None:
        """Adds t · scale to the address on the stack; of an unrolled variable its base value."""
        where = self.scope.env[t] if type(t) is Var else []
        if where is None:
            return
        if type(where) is int:
            self.fn.get(where)
        else:
            evaluator.push(t, at)
        self.fn.as_bytes()
        self.fn.scale(scale)
        self.fn.add()

    def push(self, evaluator: Evaluator, buffer: Buffer, index: Expr, extra: int = 0, at: Lane | None = None) -> int:
        """Pushes an address of buffer[index + extra] and returns the offset immediate that goes with it."""
        terms, const = linear(index)
        size = ITEMSIZE[buffer.dtype]
        buffer = self.storage.of(buffer)
        known = self.known.get((buffer, index))
        rest: Iterable[tuple[Expr, int]]
        if known is None:
            pointer, rest, positive = self.storage.at[buffer], terms.items(), self.positive(terms.items())
        else:
            pointer, rest, base, positive = known
            const -= base
        const += extra
        offsets = self.scope.offset
        for t, c in terms.items():
            if t in offsets:
                const += c * offsets[t]
        self.fn.get(pointer)
        for t, c in rest:
            self._add_term(evaluator, t, c * size, at)
        offset = const * size
        if offset < 0 or offset >= 1 << 30 or (offset > SAFE_OFFSET and not positive):
            self.fn.add_bytes(offset)
            return 0
        return offset
