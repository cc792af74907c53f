"""Which loops threads share.

A loop with `tasks=n` may be cut into runs of at least n iterations that threads take one after the other. The results
of a program do not depend on the number of threads: the cuts of vector loops are made here, once. Sharing costs
microseconds (a thread has to wake up), so only loops that take much longer are marked, by an estimate of their time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from weft_wasm.ir.nodes import (
    ITEMSIZE,
    Assign,
    Buffer,
    Call,
    Declare,
    Expr,
    For,
    Let,
    Load,
    Node,
    Program,
    Stmt,
    Store,
    Var,
)
from weft_wasm.ir.traversal import blocks, expressions, touched, walk_expr
from weft_wasm.ir.rewriting import fresh, map_kernels

WORTH = 150_000  # ns: a shorter loop stays on one thread
GRAIN = 20_000  # ns: the shortest run of iterations that a thread takes at once
RUNS = 64  # and the most runs of one loop,
LONGEST = 10_000_000  # ns: no run takes longer than this, so that a program can be stopped between runs
UNIT = 64  # runs of vector loops are multiples of this many elements
NODE, CALL, BYTE = 0.25, 4.0, 0.06  # ns for a scalar operation, a function such as exp, a byte of memory
LANES = 3  # about how many times faster a vector loop is


def share(program: Program) -> Program:
    """The program with the loops marked that are worth sharing. Kernels with marked loops stay as they are."""
    return map_kernels(program, lambda body: _Sharing().block(body, frozenset()))


class _Sharing:
    """Marks the loops of one kernel."""

    def __init__(self) -> None:
        self.costs = Costs()

    def block(self, body: list[Stmt], outside: frozenset[Buffer]) -> list[Stmt]:
        """The statements with every outermost loop shared for which that pays. outside: private buffers of each thread
        that are used around these statements; in a shared loop they would have another thread's values.
        """
        out: list[Stmt] = []
        for k, s in enumerate(body):
            if type(s) is For and type(s.extent) is int and not s.tasks and self.costs.of([s]) >= WORTH:
                own, around = private([s]), outside | private([*body[:k], *body[k + 1 :]])
                if s.kind == "parallel" and not own & around and not (s.vector and own):
                    out += self.shared(s, around)
                else:
                    out.append(s if s.vector else replace(s, body=self.block(s.body, around)))
            else:
                out.append(s)
        return out

    def shared(self, s: For, around: frozenset[Buffer]) -> list[Stmt]:
        """A parallel loop that takes long: it or a loop just inside it marked, or cut in two if its iterations run in
        lanes.
        """
        each = self.costs.of(s.body) / (LANES if s.vector else 1)
        extent = s.count
        if s.vector:
            return _cut(s, extent, each)
        if extent < 4 and len(s.body) == 1 and type(s.body[0]) is For and each >= WORTH:
            return [replace(s, body=self.block(s.body, around))]
        return [replace(s, tasks=grain(extent, each)) if extent > 1 else replace(s, body=self.block(s.body, around))]


def _cut(s: For, extent: int, each: float) -> list[Stmt]:
    """A vector loop as a shared loop over runs of it, and what is left over."""
    longest = LONGEST / max(each, 1e-3)
    size = max(1, -(-int(max(GRAIN / max(each, 1e-3), min(extent / RUNS, longest))) // UNIT)) * UNIT
    count = extent // size
    if count < 2:
        return [s]
    outer, inner, rest = Var(f"{s.var.name}.o"), Var(s.var.name), Var(s.var.name)
    run = replace(s, var=inner, extent=size, body=fresh(s.body, {s.var: outer * size + inner}))
    cut: list[Stmt] = [For(outer, count, [run], "parallel", tasks=1)]
    if extent % size:
        cut.append(replace(s, var=rest, extent=extent % size, body=fresh(s.body, {s.var: rest + count * size})))
    return cut


def private(body: Sequence[Stmt]) -> frozenset[Buffer]:
    """Each thread's own buffers that statements use."""
    return frozenset(b for group in touched(body) for b in group if b.role == "private")


def grain(extent: int, each: float) -> int:
    """How many iterations of `each` ns a thread takes at once."""
    return max(1, int(GRAIN / max(each, 1e-3)), extent // RUNS)


class Costs:
    """Estimates of the time of statements, in ns, found once for each block. Branches count as the dearest, a loop as
    often as it runs or, where that is not known, as `most` says of its extent.
    """

    def __init__(self, most: Callable[[Expr], int] = lambda extent: 1):
        self.most = most
        self._known: dict[int, tuple[Sequence[Stmt], float]] = {}  # by the block's identity; the block is kept alive

    def of(self, body: Sequence[Stmt]) -> float:
        """The estimate for the statements of a block, which must not change any more."""
        known = self._known.get(id(body))
        if known is None:
            known = self._known[id(body)] = body, self._sum(body)
        return known[1]

    def _sum(self, body: Sequence[Stmt]) -> float:
        total = 0.0
        seen: set[Expr] = set()
        for s in body:
            for e in expressions(s):
                total += sum(map(_node, walk_expr(e, seen)))
            if type(s) is Store:
                total += BYTE * ITEMSIZE[s.buffer.dtype]
            elif type(s) is For:
                inner = self.of(s.body) * (self.most(s.extent) if isinstance(s.extent, Node) else s.extent)
                total += inner / LANES if s.vector else inner
            elif type(s) not in (Let, Assign, Declare):
                total += max(map(self.of, blocks(s)), default=0.0)
        return total


def _node(e: Expr) -> float:
    if type(e) is Load:
        return NODE + BYTE * ITEMSIZE[e.dtype]
    return CALL if type(e) is Call else NODE
