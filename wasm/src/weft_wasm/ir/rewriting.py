"""Statements rewritten: leaves replaced, names made anew, every kernel of a program changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, assert_never

from weft_wasm.ir.nodes import (
    Assign,
    Barrier,
    Binary,
    Copy,
    Declare,
    Expr,
    Fail,
    For,
    HostCall,
    If,
    Kernel,
    Let,
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
from weft_wasm.ir.traversal import substitute, walk


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

    def new(e: Expr) -> Expr:
        return substitute(e, mapping, known)

    out: list[Stmt] = []
    for s in body:
        match s:
            case For():
                extent = new(s.extent) if isinstance(s.extent, Node) else s.extent
                out.append(replace(s, extent=extent, body=rewrite(s.body, mapping, known)))
            case While():
                out.append(While(rewrite(s.cond, mapping, known), new(s.test), rewrite(s.body, mapping, known)))
            case If():
                out.append(If(new(s.test), rewrite(s.then, mapping, known), rewrite(s.orelse, mapping, known)))
            case Switch():
                out.append(Switch(new(s.index), [rewrite(b, mapping, known) for b in s.branches]))
            case Let():
                out.append(Let(s.var, new(s.value)))
            case Declare():
                out.append(Declare(s.local, new(s.init)))
            case Assign():
                local = mapping.get(s.local, s.local)
                if type(local) is not Local:
                    raise TypeError(f"{s.local.name} is assigned, so it can't become {local!r}")
                out.append(Assign(local, assigned(s, new)))
            case Store():
                out.append(Store(s.buffer, new(s.index), new(s.value)))
            case Barrier() | Poll():
                out.append(s)
            case Kernel() | Copy() | HostCall() | Fail():
                raise TypeError(f"{type(s).__name__} is not a statement of a kernel")
            case _:
                assert_never(s)
    return out


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
            case Kernel() | Copy() | HostCall() | Fail() | Poll():
                out.append(s)
            case Let() | Declare() | Assign() | Store() | Barrier():
                raise TypeError(f"{type(s).__name__} is not a statement of the program level")
            case _:
                assert_never(s)
    return change(out)


def map_kernels(program: Program, change: Callable[[list[Stmt]], list[Stmt]]) -> Program:
    """The program with every kernel's statements changed."""
    each = lambda s: replace(s, body=change(s.body)) if type(s) is Kernel else s  # noqa: E731
    return replace(program, body=map_blocks(program.body, lambda block: list(map(each, block))))
