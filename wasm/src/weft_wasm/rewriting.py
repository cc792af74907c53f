"""Statements rewritten: leaves replaced, names made anew, every kernel of a program changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from weft_wasm.ir import (
    Assign,
    Declare,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Local,
    Program,
    Store,
    Switch,
    Var,
    While,
    blocks,
    substitute,
    walk,
)  # fmt: skip


def rewrite(body: list, mapping: dict[Expr, Expr], memo: dict | None = None) -> list:
    """The statements with leaves replaced."""
    memo = {} if memo is None else memo

    def new(e):
        return substitute(e, mapping, memo) if isinstance(e, Expr) else e

    out = []
    for s in body:
        match s:
            case For():
                out.append(replace(s, extent=new(s.extent), body=rewrite(s.body, mapping, memo)))
            case While():
                out.append(While(rewrite(s.cond, mapping, memo), new(s.test), rewrite(s.body, mapping, memo)))
            case If():
                out.append(If(new(s.test), rewrite(s.then, mapping, memo), rewrite(s.orelse, mapping, memo)))
            case Switch():
                out.append(Switch(new(s.index), [rewrite(b, mapping, memo) for b in s.branches]))
            case Let():
                out.append(Let(s.var, new(s.value)))
            case Declare():
                out.append(Declare(s.local, new(s.init)))
            case Assign():
                out.append(Assign(mapping.get(s.local, s.local), new(s.value)))
            case Store():
                out.append(Store(s.buffer, new(s.index), new(s.value)))
            case _:
                out.append(s)
    return out


def fresh(body: list, mapping: dict[Expr, Expr]) -> list:
    """A copy of body with leaves replaced and new names for all that it binds (so that both can stand in one block)."""
    mapping = dict(mapping)
    for s in walk(body):
        if type(s) is Let or type(s) is For:
            mapping[s.var] = Var(s.var.name, s.var.dtype)
        elif type(s) is Declare:
            mapping[s.local] = Local(s.local.name, s.local.dtype)

    def rename(statements: list) -> list:
        for s in statements:
            match s:
                case Let():
                    s.var = mapping[s.var]
                case For():
                    s.var = mapping[s.var]
                case Declare():
                    s.local = mapping[s.local]
            for inner in blocks(s):
                rename(inner)
        return statements

    return rename(rewrite(body, mapping))


def map_blocks(body: list, change: Callable[[list], list]) -> list:
    """Statements of the program level with every block of them changed, inner ones first."""
    out = []
    for s in body:
        match s:
            case For():
                s = replace(s, body=map_blocks(s.body, change))
            case While():
                s = While(map_blocks(s.cond, change), s.test, map_blocks(s.body, change))
            case If():
                s = If(s.test, map_blocks(s.then, change), map_blocks(s.orelse, change))
            case Switch():
                s = Switch(s.index, [map_blocks(b, change) for b in s.branches])
        out.append(s)
    return change(out)


def map_kernels(program: Program, change: Callable[[list], list]) -> Program:
    """The program with every kernel's statements changed."""
    each = lambda s: replace(s, body=change(s.body)) if type(s) is Kernel else s  # noqa: E731
    return replace(program, body=map_blocks(program.body, lambda block: list(map(each, block))))
