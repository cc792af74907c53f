"""Statements rewritten: leaves replaced, names made anew, every kernel of a program changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, assert_never

from weft_wasm.ir.nodes import (
    Assign,
    Barrier,
    Binary,
    Buffer,
    Copy,
    Declare,
    Expr,
    Fail,
    For,
    HostCall,
    If,
    Instance,
    Kernel,
    Let,
    Load,
    Local,
    Node,
    Poll,
    Program,
    Stmt,
    Store,
    Switch,
    Var,
    While,
)
from weft_wasm.ir.reductions import reduction
from weft_wasm.ir.traversal import operands, rebuild, substitute, walk


def assigned(s: Assign, new: Callable[[Expr], Expr]) -> Expr:
    """The value of an assignment, rewritten. `acc ⊕ e` keeps that form even if e becomes a neutral constant: reduce
    loops are recognised by it.
    """
    if type(s.value) is Binary and reduction(s)[0] is not None:
        return Binary(s.value.op, new(s.value.a), new(s.value.b))
    return new(s.value)


def rewrite(body: Sequence[Stmt], mapping: Mapping[Any, Expr], memo: dict[Expr, Expr] | None = None) -> list[Stmt]:
    """The statements of a kernel with leaves replaced: variables and loads by expressions, locals that are assigned
    by locals.
    """
    known = {} if memo is None else memo

    def local(old: Local) -> Local:
        new = mapping.get(old, old)
        if type(new) is not Local:
            raise TypeError(f"{old.name} is assigned, so it can't become {new!r}")
        return new

    return _changed(body, lambda e: substitute(e, mapping, known), local, lambda b: b)


def renamed(body: Sequence[Stmt], buffers: Mapping[Buffer, Buffer]) -> list[Stmt]:
    """The statements of a kernel on other buffers, and otherwise the same, node by node."""
    known: dict[Expr, Expr] = {}

    def new(e: Expr) -> Expr:
        found = known.get(e)
        if found is None:
            old = operands(e)
            inner = [new(x) for x in old]
            if type(e) is Load and e.buffer in buffers:
                found = Load(buffers[e.buffer], inner[0])
            elif all(a is b for a, b in zip(old, inner)):
                found = e
            else:
                found = Binary(e.op, inner[0], inner[1]) if type(e) is Binary else rebuild(e, inner)
            known[e] = found
        return found

    return _changed(body, new, lambda x: x, lambda b: buffers.get(b, b))


def _changed(
    body: Sequence[Stmt],
    new: Callable[[Expr], Expr],
    local: Callable[[Local], Local],
    buffer: Callable[[Buffer], Buffer],
) -> list[Stmt]:
    """The statements of a kernel with other expressions, assigned locals and written buffers."""

    def block(body: Sequence[Stmt]) -> list[Stmt]:
        return _changed(body, new, local, buffer)

    out: list[Stmt] = []
    for s in body:
        match s:
            case For():
                extent = new(s.extent) if isinstance(s.extent, Node) else s.extent
                out.append(replace(s, extent=extent, body=block(s.body)))
            case While():
                out.append(While(block(s.cond), new(s.test), block(s.body)))
            case If():
                out.append(If(new(s.test), block(s.then), block(s.orelse)))
            case Switch():
                out.append(Switch(new(s.index), [block(b) for b in s.branches]))
            case Let():
                out.append(Let(s.var, new(s.value)))
            case Declare():
                out.append(Declare(s.local, new(s.init)))
            case Assign():
                out.append(Assign(local(s.local), assigned(s, new)))
            case Store():
                out.append(Store(buffer(s.buffer), new(s.index), new(s.value)))
            case Barrier() | Poll():
                out.append(s)
            case Kernel() | Instance() | Copy() | HostCall() | Fail():
                raise TypeError(f"{type(s).__name__} is not a statement of a kernel")
            case _:
                assert_never(s)
    return out


def expanded(s: Instance) -> Kernel:
    """The kernel that an instance is."""
    parts = [expanded(Instance(part.name, part, s.buffers)) for part in s.kernel.parts]
    body, plain = (renamed(statements, s.buffers) for statements in (s.kernel.body, s.kernel.plain))
    return Kernel(s.name, body, plain=plain, depth=s.kernel.depth, parts=parts)


def fresh(body: Sequence[Stmt], mapping: Mapping[Any, Expr]) -> list[Stmt]:
    """A copy of body with leaves replaced, and new names for all its bindings (so that both can be in one block)."""
    variables: dict[Expr, Var] = {}
    locals_: dict[Expr, Local] = {}
    for s in walk(body):
        if type(s) is Let or type(s) is For:
            variables[s.var] = Var(s.var.name, s.var.dtype)
        elif type(s) is Declare:
            locals_[s.local] = Local(s.local.name, s.local.dtype)
    copy = rewrite(body, {**mapping, **variables, **locals_})
    for s in walk(copy):
        if type(s) is Let or type(s) is For:
            s.var = variables[s.var]
        elif type(s) is Declare:
            s.local = locals_[s.local]
    return copy


def map_blocks(body: list[Stmt], change: Callable[[list[Stmt]], list[Stmt]]) -> list[Stmt]:
    """Program-level statements with every block of them changed, inner blocks first."""
    out: list[Stmt] = []
    for s in body:
        match s:
            case For():
                out.append(replace(s, body=map_blocks(s.body, change)))
            case While():
                out.append(While(map_blocks(s.cond, change), s.test, map_blocks(s.body, change)))
            case If():
                out.append(If(s.test, map_blocks(s.then, change), map_blocks(s.orelse, change)))
            case Switch():
                out.append(Switch(s.index, [map_blocks(b, change) for b in s.branches]))
            case Kernel() | Instance() | Copy() | HostCall() | Fail() | Poll():
                out.append(s)
            case Let() | Declare() | Assign() | Store() | Barrier():
                raise TypeError(f"{type(s).__name__} is not a statement of the program level")
            case _:
                assert_never(s)
    return change(out)


def map_kernels(program: Program, change: Callable[[list[Stmt]], list[Stmt]]) -> Program:
    """The program with every kernel's statements changed, as their text alone says: those of instances change once."""
    made: dict[Kernel, Kernel] = {}

    def changed(kernel: Kernel) -> Kernel:
        found = made.get(kernel)
        if found is None:
            found = made[kernel] = replace(kernel, body=change(kernel.body))
        return found

    def each(s: Stmt) -> Stmt:
        match s:
            case Kernel():
                return changed(s)
            case Instance():
                return replace(s, kernel=changed(s.kernel))
            case _:
                return s

    return replace(program, body=map_blocks(program.body, lambda block: list(map(each, block))))
