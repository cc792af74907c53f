"""How a vector loop runs: how many lanes it has, and which iterations run in lanes, which of them twice, and which
one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from weft_wasm.emit_wasm.address import Addresses
from weft_wasm.emit_wasm.scope import Scope
from weft_wasm.emit_wasm.storage import Storage
from weft_wasm.emit_wasm.values import Expansions
from weft_wasm.ir.affine import linear
from weft_wasm.ir.nodes import ITEMSIZE, Assign, Declare, Expr, For, Let, Load, Stmt, Store
from weft_wasm.ir.traversal import expressions, operands, walk, walk_expr


class Run(NamedTuple):
    """Iterations from start below stop with `vectors` vectors at a time; 0: one by one."""

    start: int
    stop: int
    vectors: int


class LanePlan:
    """Plans the vector loops of one function."""

    def __init__(self, scope: Scope, storage: Storage, addresses: Addresses, expansions: Expansions):
        self.scope, self.storage, self.addresses, self.expansions = scope, storage, addresses, expansions

    def lanes(self, body: Sequence[Stmt]) -> int:
        """2 where a 64-bit value takes part, else 4."""
        pending: list[Expr] = []
        for s in walk(body):
            if type(s) is Declare:
                pending.append(s.init)
            elif type(s) is Let or type(s) is Assign or type(s) is Store:
                pending.append(s.value)
        seen: set[Expr] = set()
        while pending:
            e = pending.pop()
            if e in seen:
                continue
            seen.add(e)
            if ITEMSIZE[e.dtype] == 8:
                return 2
            if type(e) is not Load:  # whose index is computed as a scalar
                expanded = self.expansions.of(e)
                pending += operands(e) if expanded is None else (expanded,)
        return 4

    def runs(self, s: For, extent: int, lanes: int) -> list[Run]:
        """All iterations in order. In a parallel loop, the last run may pass the end or repeat iterations, if that has
        no visible effect.
        """
        tail = extent % lanes
        pads = tail > 0 and self._may_pad(s, extent, lanes)
        if extent < lanes and not pads:
            return [Run(0, extent, 0)]
        whole = extent - tail
        if pads:
            whole, tail = whole + lanes, 0
        main = whole // (lanes * s.vector) * (lanes * s.vector)
        runs = [Run(0, main, s.vector), Run(main, whole, 1)]
        if tail:
            runs.append(
                Run(extent - lanes, extent, 1)
                if s.kind == "parallel" and self._may_repeat(s)
                else Run(whole, extent, 0)
            )
        return [r for r in runs if r.start < r.stop]

    def _may_pad(self, s: For, extent: int, lanes: int) -> bool:
        """Whether the last vector may pass the end: everything that it touches there is in the padding of a buffer."""
        if s.kind != "parallel" or self.scope.depth:
            return False
        if any(type(inner) is not Let and type(inner) is not Store for inner in s.body):
            return False
        over = -extent % lanes
        for buffer, index in self.addresses.accesses(s.body):
            terms, const = linear(index)
            stride = terms.get(s.var, 0)
            if any(t is not s.var for t in terms) or stride not in (0, 1):
                return False
            if stride == 1:
                padded = -(-buffer.nbytes // 64) * 64
                if const < 0 or (const + extent + over) * ITEMSIZE[buffer.dtype] > padded:
                    return False
        stores = [(inner.buffer.size, linear(inner.index)) for inner in s.body if type(inner) is Store]
        return all(const + extent == size and terms.get(s.var) == 1 for size, (terms, const) in stores)

    def _may_repeat(self, s: For) -> bool:
        """Whether iterations may run twice: nothing that the loop writes is read by it."""
        written = {inner.buffer for inner in walk(s.body) if type(inner) is Store}
        reads = {
            node.buffer
            for inner in walk(s.body)
            for e in expressions(inner)
            for node in walk_expr(e)
            if type(node) is Load
        }
        return not any(self.storage.overlap(w, r) for w in written for r in reads)
