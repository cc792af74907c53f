"""Long sequential loops as several dispatches: systems end a dispatch that takes seconds, and Mesa's llvmpipe silently leaves a shader's loops after
65,535 iterations altogether."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeGuard

from weft_wasm.affine import linear_index, row_major
from weft_wasm.emit_wgsl import rows
from weft_wasm.emit_wgsl.dispatches import Dispatch, free, split
from weft_wasm.ir import Buffer, Declare, Expr, For, If, Kernel, Let, Load, Local, Stmt, Store, Var, lt
from weft_wasm.traversal import walk_expr, written

LIMIT = 1 << 15  # iterations of one invocation

NewTemp = Callable[[str, str, tuple[int, ...]], Buffer]


def iterations(body: Sequence[Stmt]) -> int:
    """The iterations of all loops in statements, as far as they are known."""
    total = 0
    for s in body:
        if type(s) is For:
            total += (1 if isinstance(s.extent, Expr) else s.extent) * (1 + iterations(s.body))
        elif type(s) is If:
            total += max(iterations(s.then), iterations(s.orelse))
    return total


def chunked(kernel: Kernel, temp: NewTemp) -> list[Stmt] | None:
    """Statements of the program level that do what the kernel does with at most about LIMIT iterations in an invocation; None if it is fine as it
    is, or if what the loop carries can't be told. `temp(name, dtype, shape)` makes a buffer."""
    if kernel.workgroup or iterations(kernel.body) <= LIMIT:
        return None
    out: list[Stmt] = []
    changed = False
    for d in split(kernel):
        parts = None if d.stride or rows.threads(d) else _parts(d, temp)
        changed |= parts is not None
        out += parts if parts is not None else [Kernel(d.name, [*d.prologue, *(_grid(d, d.body) if not d.stride else [d.stride])])]
    return out if changed else None


def _grid(d: Dispatch, body: list[Stmt]) -> list[Stmt]:
    for var, extent in reversed(d.loops):
        body = [For(var, extent, body, "parallel")]
    return body


def _parts(d: Dispatch, temp: NewTemp) -> list[Stmt] | None:
    at, loop = next(((k, s) for k, s in enumerate(d.body) if _long(s)), (0, None))
    if loop is None:
        return None
    before, after = d.body[:at], d.body[at + 1 :]
    changed = written(d.body)
    # bindings are made again in each part, or kept like locals where what they were made from may have changed
    lets = [s for s in before if type(s) is Let and _stable(s, changed)]
    carried: list[Var | Local] = [name for s in before if s not in lets and (name := _bound(s)) is not None]
    if not all(_stable(s, changed) for s in d.prologue) or any(type(e) is Local and e not in carried for e in free([loop, *after])):
        return None
    extents = [extent for _, extent in d.loops]
    point = linear_index([var for var, _ in d.loops], row_major(extents))
    kept = {name: temp(name.name, name.dtype, (*extents, 1)) for name in carried}
    save = [Store(kept[name], point, name) for name in carried]
    restore = [*(_binding(name, Load(kept[name], point)) for name in carried), *lets]

    def part(body: list[Stmt]) -> list[Stmt]:
        """A kernel of these statements; cut in turn, where they hold another long loop."""
        kernel = Kernel(d.name, [*d.prologue, *_grid(d, body)])
        return chunked(kernel, temp) or [kernel]

    count = max(1, LIMIT // (1 + iterations(loop.body)))
    chunk, inside = Var(f"{loop.var.name}.chunk"), Var(loop.var.name)
    if count == 1:
        step: list[Stmt] = [Let(loop.var, chunk), *loop.body]
    else:
        step = [For(inside, count, [Let(loop.var, chunk * count + inside), If(lt(loop.var, loop.extent), loop.body)])]
    chunks = For(chunk, -(-loop.count // count), part([*restore, *step, *save]))
    return [*(part([*before, *save]) if len(lets) < len(before) else []), chunks, *(part([*restore, *after]) if after else [])]


def _long(s: Stmt) -> TypeGuard[For]:
    """Whether it is a loop that may have to be cut."""
    if type(s) is not For or isinstance(s.extent, Expr) or s.extent * (1 + iterations(s.body)) <= LIMIT:
        return False
    return s.extent > 1


def _bound(s: Stmt) -> Var | Local | None:
    """What a statement binds for those after it."""
    return s.var if type(s) is Let else s.local if type(s) is Declare else None


def _binding(name: Var | Local, value: Expr) -> Let | Declare:
    return Let(name, value) if type(name) is Var else Declare(name, value)


def _stable(s: Let, changed: list[Buffer]) -> bool:
    """Whether a binding made again is the same, although some buffers and all locals may have changed."""
    return not any(type(e) is Local or (type(e) is Load and e.buffer in changed) for e in walk_expr(s.value))
