"""Stores of adjacent elements in a vector loop, such as the columns of a packed panel or the parts of complex
numbers.

`for i: out[s·i] = a; out[s·i + 1] = b; …` would store every lane of every value separately. Instead the values are
transposed in registers, and elements that are adjacent in memory are stored at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from weft_wasm.emit_wasm.address import Addresses
from weft_wasm.emit_wasm.function import Function
from weft_wasm.emit_wasm.scalars import Scalars
from weft_wasm.emit_wasm.scope import Scope
from weft_wasm.emit_wasm.storage import Storage
from weft_wasm.emit_wasm.tables import LANE_BYTES_STORE, shuffle_words
from weft_wasm.emit_wasm.values import Shared
from weft_wasm.emit_wasm.vectors import Vectors
from weft_wasm.binary.encode import OP, V128, memarg
from weft_wasm.ir.affine import linear
from weft_wasm.ir.nodes import ITEMSIZE, Load, Stmt, Store
from weft_wasm.ir.traversal import walk_expr


class Interleaved:
    """Stores to adjacent elements, as one statement: as many as a vector has lanes, or two."""

    __slots__ = ("stores",)

    def __init__(self, stores: list[Store]):
        self.stores = stores


class Interleaving:
    """Finds such stores among the statements of a vector loop, and emits them."""

    def __init__(
        self,
        fn: Function,
        scope: Scope,
        storage: Storage,
        shared: Shared,
        addresses: Addresses,
        scalars: Scalars,
        vectors: Vectors,
    ):
        self.fn, self.scope, self.storage, self.shared = fn, scope, storage, shared
        self.addresses, self.scalars, self.vectors = addresses, scalars, vectors

    def grouped(self, body: Sequence[Stmt]) -> list[Stmt | Interleaved]:
        """The statements of a vector loop, with runs of stores to adjacent elements combined."""
        out: list[Stmt | Interleaved] = []
        run: list[Store] = []
        for s in body:
            if run and not (type(s) is Store and self._continues(run, s)):
                out += self._split(run)
                run = []
            if type(s) is Store and self._begins(s):
                run.append(s)
            else:
                out.append(s)
        return out + self._split(run)

    def _begins(self, s: Store) -> bool:
        stride = self.addresses.stride(s.index)
        whole = ITEMSIZE[s.buffer.dtype] * self.scope.vector.lanes == 16
        return whole and stride is not None and stride > 1 and not self._reads(s)

    def _continues(self, run: list[Store], s: Store) -> bool:
        (terms, const), (first, start) = linear(s.index), linear(run[0].index)
        return s.buffer is run[0].buffer and terms == first and const == start + len(run) and not self._reads(s)

    def _reads(self, s: Store) -> bool:
        """Whether a store depends on the values that adjacent stores may have written."""
        return any(type(e) is Load and self.storage.overlap(s.buffer, e.buffer) for e in walk_expr(s.value))

    def _split(self, run: list[Store]) -> list[Stmt | Interleaved]:
        out: list[Stmt | Interleaved] = []
        while run:
            size = next((n for n in (self.scope.vector.lanes, 2) if n <= len(run)), 1)
            out.append(Interleaved(run[:size]) if size > 1 else run[0])
            run = run[size:]
        return out

    def store(self, s: Interleaved) -> None:
        """Emits stores to adjacent elements."""
        index = s.stores[0].index
        lanes, stride = self.scope.vector.lanes, self.addresses.stride(index)
        self.shared.open(*(e for x in s.stores for e in (x.index, x.value)))
        values = [self.shared.temporary(V128) for _ in s.stores]
        for u in range(self.scope.vector.vectors):
            for x, local in zip(s.stores, values):
                self.vectors.push(x.value, u)
                self.fn.set(local)
            if len(values) == 2:
                self._pairs(s, u, values, whole=lanes == 2 or stride == 2)
            else:
                self._fours(s, u, values)
        self.shared.close()

    def _pairs(self, s: Interleaved, u: int, values: list[int], whole: bool) -> None:
        """Two values. whole: one pair ends where the next begins, or a vector has only two lanes."""
        lanes = self.scope.vector.lanes
        for half in range(2):
            if whole:
                self._put(s, u, half * (lanes // 2), OP["v128.store"], partial(self._zip, values, half, lanes))
                continue
            pair = self.shared.temporary(V128)
            self._zip(values, half, lanes)
            self.fn.set(pair)
            for lane in range(2):
                self._put(s, u, 2 * half + lane, LANE_BYTES_STORE[8], partial(self.fn.get, pair), 8, bytes((lane,)))

    def _fours(self, s: Interleaved, u: int, values: list[int]) -> None:
        # lanes 0 and 1 of the first two values, of the others; lanes 2 and 3 of the first two, of the others
        pairs = [self.shared.temporary(V128) for _ in range(4)]
        for k, local in enumerate(pairs):
            self._zip(values[k % 2 * 2 :], k // 2, 4)
            self.fn.set(local)
        for lane in range(4):
            self._put(s, u, lane, OP["v128.store"], partial(self._zip, pairs[lane // 2 * 2 :], lane % 2, 2))

    def _put(
        self,
        s: Interleaved,
        u: int,
        lane: int,
        instruction: bytes,
        push: Callable[[], None],
        size: int = 16,
        immediate: bytes = b"",
    ) -> None:
        """Stores the value that `push` pushes, at the address where the stores of a lane begin."""
        buffer, index = s.stores[0].buffer, s.stores[0].index
        offset = self.scalars.address(buffer, index, self.addresses.lane_extra(index, u, lane))
        push()
        self.fn.code += instruction + memarg(size, offset) + immediate

    def _zip(self, locals_: Sequence[int], half: int, lanes: int) -> None:
        """Pushes alternating lanes of the first two vectors, from their first or their second half."""
        self.fn.get(locals_[0])
        self.fn.get(locals_[1])
        first = half * lanes // 2
        self.fn.code += shuffle_words(
            [k + side * lanes for k in range(first, first + lanes // 2) for side in range(2)], 16 // lanes
        )
