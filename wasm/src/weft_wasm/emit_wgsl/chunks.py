"""Long loops as several dispatches: systems end a dispatch that takes seconds, and Mesa's llvmpipe silently leaves a
shader's loops altogether once an invocation has had 65,535 iterations, of all its loops together.

Loops whose length only the device knows are not cut. Lowering makes no such loops for WebGPU, except those over parts
of known sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from weft_wasm.ir.affine import linear_index, row_major
from weft_wasm.emit_wgsl import workgroup_reductions
from weft_wasm.emit_wgsl.dispatches import Dispatch, free, split
from weft_wasm.emit_wgsl.shader import WgslError
from weft_wasm.ir.nodes import (
    Assign,
    Binary,
    Buffer,
    Const,
    Declare,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    Local,
    Stmt,
    Store,
    Switch,
    Unary,
    Var,
    While,
    clamp,
    eq,
    i32,
    lt,
    whole,
)
from weft_wasm.ir.traversal import blocks, walk, walk_expr, written

LIMIT = 1 << 15  # iterations of one invocation

NewTemp = Callable[[str, str, tuple[int, ...]], Buffer]


def iterations(body: Sequence[Stmt]) -> int:
    """The iterations of all loops in statements, as far as they are known."""
    total = 0
    for s in body:
        if type(s) is For:
            total += trips(s) * (1 + iterations(s.body))
        elif type(s) is While:
            total += 1 + iterations([*s.cond, *s.body])
        else:
            total += max(map(iterations, blocks(s)), default=0)
    return total


def trips(s: For) -> int:
    """The most iterations that a loop may have itself; 1 where that isn't known."""
    if not isinstance(s.extent, Expr):
        return s.extent
    if type(s.extent) is Binary and s.extent.op == "min":
        return min((whole(x) for x in (s.extent.a, s.extent.b) if type(x) is Const), default=1)
    return 1


def chunked(kernel: Kernel, temp: NewTemp) -> list[Stmt] | None:
    """Program-level statements equivalent to the kernel, with at most about LIMIT iterations in an invocation; None if
    it needs no change. `temp(name, dtype, shape)` makes a buffer. Raises WgslError for long loops inside a loop of
    unknown length.
    """
    if kernel.workgroup or iterations(kernel.body) <= LIMIT:
        return None
    out: list[Stmt] = []
    changed = False
    for d in split(kernel):
        parts = _Cutter(d, temp).parts()
        changed |= parts is not None
        out += parts if parts is not None else [_kernel(d, d.body)]
    return out if changed else None


def _kernel(d: Dispatch, body: list[Stmt]) -> Kernel:
    """A kernel with the grid of a dispatch."""
    if d.stride:
        return Kernel(d.name, [*d.prologue, d.stride])
    for var, extent in reversed(d.loops):
        body = [For(var, extent, body, "parallel")]
    return Kernel(d.name, [*d.prologue, *body])


@dataclass(frozen=True, slots=True)
class _Scope:
    """The beginning of a part. guards: conditions under which it runs, outer first. kept: names whose values are in
    buffers. lets: bindings that are computed again.
    """

    guards: tuple[Expr, ...] = ()
    kept: tuple[tuple[Var | Local, Buffer], ...] = ()
    lets: tuple[Let, ...] = ()


class _Cutter:
    """Cuts the body of one dispatch. Values that pass from one part to the next are in buffers, with an element for
    each point of the grid.
    """

    def __init__(self, d: Dispatch, temp: NewTemp):
        self.d, self.temp = d, temp
        self.changed = written(d.body)
        self.width = 0 if d.stride else workgroup_reductions.threads(d)
        self.extents = [extent for _, extent in d.loops]
        self.point = linear_index([var for var, _ in d.loops], row_major(self.extents))

    def parts(self) -> list[Stmt] | None:
        d = self.d
        if d.stride is not None:
            if iterations(d.stride.body) > LIMIT:
                raise self.refusal(iterations(d.stride.body))
            return None
        return None if self.cost(d.body) <= LIMIT else self.cut(d.body, _Scope())

    def refusal(self, inside: int) -> WgslError:
        return WgslError(
            f"kernel {self.d.name} has a loop whose length only the device knows around {inside} iterations of others,"
            " which is too long for a dispatch of a WebGPU device; give the loop a known length, or use the wasm or"
            " cpu backend"
        )

    def cost(self, body: Sequence[Stmt]) -> int:
        """The iterations of one invocation; a workgroup divides the loops that it runs for a point among its
        invocations.
        """
        if not self.width:
            return iterations(body)
        total = 0
        for s in body:
            total += -(-iterations([s]) // self.width) if self.shared(s) else iterations([s])
        return total

    def shared(self, s: Stmt) -> bool:
        return self.width > 0 and type(s) is For and s.kind in ("reduce", "parallel")

    def cut(self, body: Sequence[Stmt], scope: _Scope) -> list[Stmt]:
        """Kernels equivalent to the statements, with loops around some."""
        segments: list[list[Stmt]] = [[]]
        total = 0
        for s in body:
            cost = self.cost([s])
            if total + cost > LIMIT:
                segments.append([])
                total = 0
            segments[-1].append(s)
            total += cost
        out: list[Stmt] = []
        for k, segment in enumerate(segments):
            later = set(free([s for rest in segments[k + 1 :] for s in rest]))
            bound = [s for s in segment if type(s) is Let or type(s) is Declare]
            lets = [s for s in bound if type(s) is Let and _stable(s, self.changed)]
            used = later.union(*(walk_expr(s.value) for s in lets))
            kept = tuple(
                (name, self.buffer(name.name, name.dtype))
                for s in bound
                if s not in lets and (name := _bound(s)) in used
            )
            after = replace(scope, kept=scope.kept + kept, lets=(*scope.lets, *lets))
            if len(segment) == 1 and self.cost(segment) > LIMIT:
                out += self.opened(segment[0], scope)
            elif len(segment) > len(lets):
                out.append(self.part(segment, scope, kept))
            scope = after
        return out

    def part(self, body: list[Stmt], scope: _Scope, kept: Sequence[tuple[Var | Local, Buffer]] = ()) -> Kernel:
        """A kernel of these statements. Before them, the values that they use are computed again; after them, changed
        values are stored.
        """
        used: set[Expr] = set(free(body))
        lets: list[Let] = []
        for let in reversed(scope.lets):
            if let.var in used:
                lets.insert(0, let)
                used.update(walk_expr(let.value))
        assigned = {s.local for s in walk(body) if type(s) is Assign}
        begin = [_binding(name, Load(b, self.point)) for name, b in scope.kept if name in used]
        end = [
            Store(b, self.point, name)
            for name, b in (*kept, *((name, b) for name, b in scope.kept if name in assigned))
        ]
        statements: list[Stmt] = [*begin, *lets, *body, *end]
        for guard in reversed(scope.guards):
            statements = [If(guard, statements)]
        return _kernel(self.d, statements)

    def opened(self, s: Stmt, scope: _Scope) -> list[Stmt]:
        """The parts of one statement that is too long."""
        match s:
            case For() if not isinstance(s.extent, Expr):
                return [self.loop(s, s.extent, scope)]
            case If():
                index, flag = self.choice(s.test, scope)
                return [flag, *self.branch(s.then, index, scope), *self.branch(s.orelse, Unary("not", index), scope)]
            case Switch():
                index, flag = self.choice(clamp(i32(0), s.index, i32(len(s.branches) - 1)), scope)
                return [
                    flag,
                    *(part for k, body in enumerate(s.branches) for part in self.branch(body, eq(index, k), scope)),
                ]
            case _:
                raise self.refusal(max(map(iterations, blocks(s)), default=0))

    def loop(self, s: For, extent: int, scope: _Scope) -> For:
        """A program-level loop; each of its iterations runs several iterations of this one, if that is not too much."""
        chunk, inside = Var(f"{s.var.name}.chunk"), Var(s.var.name)
        count = LIMIT // (1 + iterations(s.body))
        if count <= 1:
            return For(chunk, extent, self.cut([Let(s.var, chunk), *s.body], scope))
        if self.shared(s):
            count *= self.width
        step: list[Stmt] = [Let(s.var, chunk * count + inside), If(lt(s.var, extent), s.body)]
        return For(
            chunk,
            -(-extent // count),
            [self.part([For(inside, count, step, s.kind if self.shared(s) else "sequential")], scope)],
        )

    def choice(self, value: Expr, scope: _Scope) -> tuple[Expr, Kernel]:
        """(the choice, the kernel that stores it)"""
        b = self.buffer("chosen", value.dtype)
        return Load(b, self.point), self.part([Store(b, self.point, value)], scope)

    def branch(self, body: Sequence[Stmt], test: Expr, scope: _Scope) -> list[Stmt]:
        return self.cut(body, replace(scope, guards=(*scope.guards, test))) if body else []

    def buffer(self, name: str, dtype: str) -> Buffer:
        return self.temp(name, dtype, (*self.extents, 1))


def _bound(s: Let | Declare) -> Var | Local:
    """The bindings of a statement, for the statements after it."""
    return s.var if type(s) is Let else s.local


def _binding(name: Var | Local, value: Expr) -> Let | Declare:
    return Let(name, value) if type(name) is Var else Declare(name, value)


def _stable(s: Let, changed: list[Buffer]) -> bool:
    """Whether a binding made again is the same, although some buffers and all locals may have changed."""
    return not any(type(e) is Local or (type(e) is Load and e.buffer in changed) for e in walk_expr(s.value))
