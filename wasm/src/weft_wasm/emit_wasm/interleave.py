"""Stores of neighbouring elements in a vector loop, such as the columns of a packed panel or the parts of complex numbers.

`for i: out[s·i] = a; out[s·i + 1] = b; …` would put away every lane of every value by itself. Instead the values are transposed in
registers, and what lies side by side in memory is stored at once.
"""

from __future__ import annotations

from collections.abc import Callable

from weft_wasm.emit_wasm.expressions import Expressions
from weft_wasm.emit_wasm.tables import LANE_BYTES_STORE, shuffle_words
from weft_wasm.encode import OP, V128, memarg
from weft_wasm.ir import ITEMSIZE, Buffer, Load, Store, walk_expr


class Interleaved:
    """Stores to neighbouring elements, as one statement: as many as a vector has lanes, or two."""

    __slots__ = ("stores",)

    def __init__(self, stores: list[Store]):
        self.stores = stores


class Interleaving(Expressions):
    """Adds `Interleaved` to expressions. `overlap(a, b)` tells whether two buffers may share storage."""

    overlap: Callable[[Buffer, Buffer], bool]

    def interleaved(self, body: list) -> list:
        """The statements of a vector loop, with runs of stores to neighbouring elements as few."""
        out: list = []
        run: list[Store] = []
        for s in (*body, None):
            if run and not (type(s) is Store and self._continues(run, s)):
                out += self._split(run)
                run = []
            if type(s) is Store and self._begins(s):
                run.append(s)
            elif s is not None:
                out.append(s)
        return out

    def _begins(self, s: Store) -> bool:
        stride = self.stride(s.index)
        return ITEMSIZE[s.buffer.dtype] * self.vec.lanes == 16 and stride is not None and stride > 1 and not self._reads(s)

    def _continues(self, run: list[Store], s: Store) -> bool:
        (terms, const), (first, start) = self.linear(s.index), self.linear(run[0].index)
        return s.buffer is run[0].buffer and terms == first and const == start + len(run) and not self._reads(s)

    def _reads(self, s: Store) -> bool:
        """Whether a store depends on what its neighbours may have written."""
        return any(type(e) is Load and self.overlap(s.buffer, e.buffer) for e in walk_expr(s.value))

    def _split(self, run: list[Store]) -> list:
        out: list = []
        while run:
            size = next((n for n in (self.vec.lanes, 2) if n <= len(run)), 1)
            out.append(Interleaved(run[:size]) if size > 1 else run[0])
            run = run[size:]
        return out

    def store_interleaved(self, s: Interleaved) -> None:
        buffer, index = s.stores[0].buffer, s.stores[0].index
        lanes, stride = self.vec.lanes, self.stride(index)
        self.open(*(e for x in s.stores for e in (x.index, x.value)))
        values = [self.temporary(V128) for _ in s.stores]
        for u in range(self.vec.vectors):
            for x, local in zip(s.stores, values):
                self.vector(x.value, u)
                self.set(local)

            def store(lane: int, instruction: bytes, push: Callable[[], None], size: int = 16, immediate: bytes = b"") -> None:
                offset = self.address(buffer, index, self._lane_extra(index, u, lane))
                push()
                self.code += instruction + memarg(size, offset) + immediate

            if len(values) == 2:
                for half in range(2):
                    if lanes == 2 or stride == 2:
                        store(half * (lanes // 2), OP["v128.store"], lambda half=half: self._zip(*values, half, lanes))
                        continue
                    pair = self.temporary(V128)
                    self._zip(*values, half, lanes)
                    self.set(pair)
                    for lane in range(2):
                        store(2 * half + lane, LANE_BYTES_STORE[8], lambda pair=pair: self.get(pair), 8, bytes((lane,)))
                continue
            pairs = [self.temporary(V128) for _ in range(4)]  # of the first two values, of the others; of lanes 0 and 1, of 2 and 3
            for k, local in enumerate(pairs):
                self._zip(*values[k % 2 * 2 :][:2], k // 2, 4)
                self.set(local)
            for lane in range(4):
                store(lane, OP["v128.store"], lambda lane=lane: self._zip(*pairs[lane // 2 * 2 :][:2], lane % 2, 2))
        self.close()

    def _zip(self, a: int, b: int, half: int, lanes: int) -> None:
        """Pushes lanes of a and b in turn, those of their first half or of their second."""
        self.get(a)
        self.get(b)
        first = half * lanes // 2
        self.code += shuffle_words([k + side * lanes for k in range(first, first + lanes // 2) for side in range(2)], 16 // lanes)
