"""A kernel of the loop IR as dispatches: which loops form the grid, and what runs in one invocation.

The statements of a kernel run one after the other. A nest of parallel loops at its top level becomes a grid, so the
statements before and after it need separate dispatches. Bindings that a later dispatch needs are evaluated again there.
This is correct as long as nothing that they read has been written since; if that is uncertain, the whole kernel runs in
one invocation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from weft_wasm.ir.nodes import Assign, Declare, Expr, For, Kernel, Let, Load, Local, Stmt, Var
from weft_wasm.ir.traversal import expressions, touched, walk, walk_expr


@dataclass(slots=True)
class Dispatch:
    """prologue, then the body for every point of the grid `loops` (outer to inner; none: one invocation). `stride`: a
    loop of an extent known only to the device, whose iterations the invocations share out.
    """

    name: str
    prologue: list[Let]
    loops: list[tuple[Var, int]] = field(default_factory=list)
    body: list[Stmt] = field(default_factory=list)
    stride: For | None = None

    @property
    def size(self) -> int:
        total = 1
        for _, extent in self.loops:
            total *= extent
        return total

    def statements(self) -> list[Stmt]:
        """Its statements, for questions about buffers and variables."""
        return [*self.prologue, *([self.stride] if self.stride else self.body)]


def split(kernel: Kernel) -> list[Dispatch]:
    """The dispatches of a kernel, in order."""
    whole = [Dispatch(kernel.name, [], [], kernel.body)]
    if kernel.workgroup:
        return whole
    _, written = touched(kernel.body)
    segments: list[list[Stmt]] = []  # runs of sequential statements, and parallel loops alone
    for s in kernel.body:
        if _parallel(s):
            segments.append([s])
        elif segments and not _parallel(segments[-1][0]):
            segments[-1].append(s)
        else:
            segments.append([s])
    lets: dict[Expr, Let] = {}
    found: list[Dispatch] = []
    for segment in segments:
        prologue = _needed(segment, lets)
        for let in prologue:
            if any(
                type(node) is Local or (type(node) is Load and node.buffer in written) for node in walk_expr(let.value)
            ):
                return whole
        if any(type(e) is Local for e in free(segment)):
            return whole
        found += _dispatch(kernel.name, prologue, segment)
        lets.update((s.var, s) for s in segment if type(s) is Let)
    return found


def _parallel(s: Stmt) -> TypeGuard[For]:
    return type(s) is For and s.kind == "parallel"


def free(body: Sequence[Stmt]) -> list[Var | Local]:
    """Variables and locals that statements use and don't bind."""
    bound: set[Expr] = set()
    used: dict[Var | Local, None] = {}
    seen: set[Expr] = set()
    for s in walk(body):
        if type(s) is For or type(s) is Let:
            bound.add(s.var)
        elif type(s) is Declare:
            bound.add(s.local)
        elif type(s) is Assign:
            used[s.local] = None
        for e in expressions(s):
            for node in walk_expr(e, seen):
                if type(node) is Var or type(node) is Local:
                    used[node] = None
    return [v for v in used if v not in bound]


def _needed(segment: Sequence[Stmt], lets: dict[Expr, Let]) -> list[Let]:
    """The earlier bindings that a segment uses, with those that they use."""
    wanted: dict[Expr, None] = {}

    def visit(v: Expr) -> None:
        if v in lets and v not in wanted:
            for node in walk_expr(lets[v].value):
                visit(node)
            wanted[v] = None

    for v in free(segment):
        visit(v)
    return [lets[v] for v in wanted]


def _dispatch(name: str, prologue: list[Let], segment: list[Stmt]) -> list[Dispatch]:
    loop = segment[0]
    if not _parallel(loop):
        # bindings alone do nothing
        return [Dispatch(name, prologue, [], segment)] if any(type(s) not in (Let, Declare) for s in segment) else []
    if isinstance(loop.extent, Expr):
        return [Dispatch(name, prologue, [], [], loop)]
    loops, body = [(loop.var, loop.extent)], loop.body
    while body:  # a nest, possibly with bindings between its loops
        *between, last = body
        if not _parallel(last) or isinstance(last.extent, Expr) or any(type(s) is not Let for s in between):
            break
        loops.append((last.var, last.extent))
        body = [*between, *last.body]
    return [Dispatch(name, prologue, loops, body)] if all(extent > 0 for _, extent in loops) else []
