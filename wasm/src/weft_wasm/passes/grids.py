"""Makes one kernel of each parallel loop of the program level: the grid of a kernel that a user wrote. Temps that only
its iterations use become private buffers, so that threads can share the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weft_wasm.ir.nodes import (
    Buffer,
    Copy,
    Expr,
    Fail,
    For,
    HostCall,
    If,
    Instance,
    Kernel,
    Let,
    Load,
    Poll,
    Program,
    Stmt,
    Store,
    Switch,
    Var,
    While,
    div,
    i32,
    rem,
)
from weft_wasm.ir.rewriting import expanded, fresh, renamed
from weft_wasm.ir.traversal import touched, walk

MOST_PRIVATE = 1 << 24  # bytes of each thread for one kernel


def join(program: Program) -> Program:
    """The program with a kernel in the place of each parallel loop around kernels."""
    outside = _uses(program.body)
    made: list[Buffer] = []
    gone: set[Buffer] = set()

    def block(body: list[Stmt]) -> list[Stmt]:
        return [x for s in body for x in statement(s)]

    def statement(s: Stmt) -> list[Stmt]:
        match s:
            case For(kind="parallel"):
                found = _kernel(s, outside)
                if found is None:
                    return [replace(s, kind="sequential", body=block(s.body))]
                kernel, rooms = found
                made.extend(rooms.values())
                gone.update(rooms)
                return [kernel]
            case For():
                return [replace(s, body=block(s.body))]
            case While():
                return [While(block(s.cond), s.test, block(s.body))]
            case If():
                return [If(s.test, block(s.then), block(s.orelse))]
            case Switch():
                return [Switch(s.index, [block(b) for b in s.branches])]
            case _:
                return [s]

    if not any(type(s) is For and s.kind == "parallel" for s in _program_level(program.body)):
        return program
    body = block(program.body)
    return replace(program, body=body, temps=[*[b for b in program.temps if b not in gone], *made])


def _program_level(body: Sequence[Stmt]) -> list[Stmt]:
    """The statements around kernels."""
    found: list[Stmt] = []
    for s in body:
        found.append(s)
        match s:
            case For():
                found += _program_level(s.body)
            case While():
                found += _program_level([*s.cond, *s.body])
            case If():
                found += _program_level([*s.then, *s.orelse])
            case Switch():
                found += [x for b in s.branches for x in _program_level(b)]
            case _:
                pass
    return found


def _uses(body: Sequence[Stmt]) -> dict[Buffer, int]:
    """How many statements of the program level, that are none of control flow alone, use each buffer."""
    count: dict[Buffer, int] = {}
    for s in _program_level(body):
        for b in _touched(s):
            count[b] = count.get(b, 0) + 1
    return count


def _touched(s: Stmt) -> set[Buffer]:
    """The buffers that a statement uses itself."""
    match s:
        case Kernel():
            return {b for group in touched(s.body) for b in group}
        case Instance():
            return _touched(expanded(s))
        case Copy():
            return {s.dst, s.src}
        case HostCall():
            return {s.table, *s.arguments, *s.results}
        case For() | While() | If() | Switch():
            return {b for e in _own(s) for b in _loaded(e)}
        case _:
            return set()


def _own(s: For | While | If | Switch) -> list[Expr]:
    match s:
        case For():
            return [] if isinstance(s.extent, int) else [s.extent]
        case Switch():
            return [s.index]
        case _:
            return [s.test]


def _loaded(e: Expr) -> set[Buffer]:
    return {b for group in touched([Let(Var("x", e.dtype), e)]) for b in group}


def _kernel(loop: For, everywhere: dict[Buffer, int]) -> tuple[Kernel, dict[Buffer, Buffer]] | None:
    """The kernel that runs a loop, and its temps with the private buffers in their place; None where there is something
    inside that a kernel can't do.
    """
    loops, body = [loop], loop.body
    while len(body) == 1 and type(inner := body[0]) is For and inner.kind == "parallel":
        loops.append(inner)
        body = inner.body
    if any(type(x.extent) is not int for x in loops):
        return None
    statements = _inside(body)
    if statements is None:
        return None
    own = _uses([loop])
    rooms = {
        b: Buffer(b.name, b.dtype, b.shape, "private", label=b.label)
        for b, n in own.items()
        if b.role == "temp" and everywhere[b] == n
    }
    if sum(b.nbytes for b in own if b in rooms or b.role == "private") > MOST_PRIVATE:
        return None
    statements = renamed(statements, rooms)
    var, total = Var("g"), 1
    inside: list[Stmt] = []
    mapping: dict[Expr, Expr] = {}
    for x in reversed(loops):
        own_index = mapping[x.var] = Var(x.var.name)
        at = div(var, total) if total > 1 else var
        inside.insert(0, Let(own_index, rem(at, x.count) if x is not loops[0] else at))
        total *= x.count
    body = [*inside, *fresh(statements, mapping)]
    names = (s.name for s in _program_level([loop]) if type(s) is Kernel or type(s) is Instance)
    return Kernel(f"grid_{next(names, loop.var.name)}", [For(var, total, body, "parallel")]), rooms


def _inside(body: Sequence[Stmt]) -> list[Stmt] | None:
    """Statements of the program level as those of a kernel, without loops that threads share; None where there is
    something that a kernel can't do.
    """
    out: list[Stmt] = []
    for s in body:
        match s:
            case Kernel():
                if s.workgroup:
                    return None
                out += _unshared(fresh(s.body, {}))
            case Instance():
                out += _unshared(fresh(expanded(s).body, {}))
            case Copy():
                if s.dst is s.src:
                    return None
                c = Var("c")
                at = [c + (i32(i) if isinstance(i, int) else i) for i in (s.dst_index, s.src_index)]
                out.append(For(c, s.count, [Store(s.dst, at[0], Load(s.src, at[1]))], "parallel", vector=1))
            case For():
                inner = _inside(s.body)
                if inner is None:
                    return None
                out.append(replace(s, kind="sequential", body=inner))
            case While():
                cond, inner = _inside(s.cond), _inside(s.body)
                if cond is None or inner is None:
                    return None
                out.append(While(cond, s.test, inner))
            case If():
                then, orelse = _inside(s.then), _inside(s.orelse)
                if then is None or orelse is None:
                    return None
                out.append(If(s.test, then, orelse))
            case Switch():
                branches = [_inside(b) for b in s.branches]
                if any(b is None for b in branches):
                    return None
                out.append(Switch(s.index, [b for b in branches if b is not None]))
            case HostCall() | Fail() | Poll():
                return None
            case _:
                raise TypeError(f"{type(s).__name__} is not a statement of the program level")
    return out


def _unshared(body: list[Stmt]) -> list[Stmt]:
    """A copy that is one's own, whose loops one thread runs."""
    for s in walk(body):
        if type(s) is For and s.tasks:
            s.tasks = 0
    return body
