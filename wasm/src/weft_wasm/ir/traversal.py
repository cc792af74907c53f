"""Walks over the loop IR: operands and blocks of nodes, reads and writes of statements, and expressions with other
leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from weft_wasm.ir.nodes import (
    Assign,
    Barrier,
    Binary,
    Bitcast,
    Buffer,
    Call,
    Compare,
    Const,
    Convert,
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
    MulAdd,
    Node,
    Poll,
    Program,
    Select,
    Stmt,
    Store,
    Switch,
    Unary,
    Var,
    While,
    add,
    div,
    mul,
    rem,
    sub,
)
from weft_wasm.ir.kinds import covering, of, same


def operands(e: Expr) -> tuple[Expr, ...]:
    """The direct operands of an expression (a Load's is its index)."""
    return _OPERANDS[type(e)](e)


_OPERANDS: dict[type, Callable[[Any], tuple[Expr, ...]]] = covering(
    Expr,
    {
        **same((), Const, Var, Local),
        **of(Unary, Convert, Bitcast, lambda e: (e.x,)),
        **of(Binary, Compare, lambda e: (e.a, e.b)),
        **of(Load, lambda e: (e.index,)),
        **of(Select, lambda e: (e.cond, e.a, e.b)),
        **of(MulAdd, lambda e: (e.a, e.b, e.c)),
        **of(Call, lambda e: e.args),
    },
)


_Node = TypeVar("_Node")


def rebuild(e: Expr, new: Sequence[Expr]) -> Expr:
    """The same node on other operands."""
    return _REBUILD[type(e)](e, new)


_FOLD: dict[str, Callable[[Expr, Expr], Expr]] = {"add": add, "sub": sub, "mul": mul, "div": div, "rem": rem}
_Rebuild: TypeAlias = Callable[[_Node, Sequence[Expr]], Expr]


def _on(kind: type[_Node], function: _Rebuild[_Node]) -> dict[type, _Rebuild[Any]]:
    return {kind: function}


_REBUILD: dict[type, _Rebuild[Any]] = covering(
    Expr,
    {
        **_on(Load, lambda e, n: Load(e.buffer, n[0])),
        **_on(Unary, lambda e, n: Unary(e.op, n[0])),
        **_on(Binary, lambda e, n: _FOLD[e.op](n[0], n[1]) if e.op in _FOLD else Binary(e.op, n[0], n[1])),
        **_on(Compare, lambda e, n: Compare(e.op, n[0], n[1])),
        **_on(Select, lambda e, n: Select(n[0], n[1], n[2], e.rare)),
        **_on(Convert, lambda e, n: Convert(n[0], e.dtype)),
        **_on(Bitcast, lambda e, n: Bitcast(n[0], e.dtype)),
        **_on(MulAdd, lambda e, n: MulAdd(*n)),
        **_on(Call, lambda e, n: Call(e.fn, *n)),
    },
    leaves=(Const, Var, Local),
)


def substitute(e: Expr, mapping: Mapping[Any, Expr], memo: dict[Expr, Expr] | None = None) -> Expr:
    """e with the leaves (Var, Local, …) of mapping replaced. Shared nodes stay shared; pass one memo to share nodes
    between calls.
    """
    memo = {} if memo is None else memo
    hit = mapping.get(e) or memo.get(e)
    if hit is not None:
        return hit
    old = _OPERANDS[type(e)](e)
    if not old:
        return e
    new = [substitute(x, mapping, memo) for x in old]
    result = e if all(a is b for a, b in zip(old, new)) else rebuild(e, new)
    memo[e] = result
    return result


def walk_expr(e: Expr, seen: set[Expr] | None = None) -> list[Expr]:
    """Every node of the DAG once, operands first; those in `seen` are left out, and it grows."""
    found = [*_below(e), e]
    if seen is None:
        return found
    new = [node for node in found if node not in seen] if seen else found
    seen.update(new)
    return new


def _below(e: Expr) -> list[Expr]:
    """The nodes that an expression is made of; found once for each root, and stored on it (without itself: that would
    be a cycle).
    """
    try:
        return e._below
    except AttributeError:
        found: list[Expr] = []
        _visit(e, set(), found)
        found.pop()
        e._below = found
        return found


def _visit(e: Expr, visited: set[Expr], found: list[Expr]) -> None:
    visited.add(e)
    for x in _OPERANDS[type(e)](e):
        if x not in visited:
            _visit(x, visited, found)
    found.append(e)


def loaded(e: Expr) -> tuple[Buffer, ...]:
    """The buffers that e reads, in order of first use; computed once for each node, and stored on it."""
    try:
        return e._loaded
    except AttributeError:
        found: dict[Buffer, None] = {b: None for x in operands(e) for b in loaded(x)}
        if type(e) is Load:
            found[e.buffer] = None
        e._loaded = tuple(found)
        return e._loaded


def blocks(s: Stmt) -> tuple[list[Stmt], ...]:
    """The statement lists inside a statement."""
    return _BLOCKS[type(s)](s)


_BLOCKS: dict[type, Callable[[Any], tuple[list[Stmt], ...]]] = covering(
    Stmt,
    {
        **of(For, Kernel, lambda s: (s.body,)),
        **of(While, lambda s: (s.cond, s.body)),
        **of(If, lambda s: (s.then, s.orelse)),
        **of(Switch, lambda s: tuple(s.branches)),
        **same((), Let, Declare, Assign, Store, Barrier, Poll, Instance, Copy, Fail, HostCall),
    },
)


def expressions(s: Stmt) -> tuple[Expr, ...]:
    """The expressions in a statement itself, not those in its blocks."""
    return _EXPRESSIONS[type(s)](s)


def _no_ints(*xs: Expr | int) -> tuple[Expr, ...]:
    return tuple(x for x in xs if isinstance(x, Node))


_EXPRESSIONS: dict[type, Callable[[Any], tuple[Expr, ...]]] = covering(
    Stmt,
    {
        **of(For, lambda s: _no_ints(s.extent)),
        **of(While, If, lambda s: (s.test,)),
        **of(Let, Assign, lambda s: (s.value,)),
        **of(Switch, lambda s: (s.index,)),
        **of(Declare, lambda s: (s.init,)),
        **of(Store, lambda s: (s.index, s.value)),
        **of(Copy, lambda s: _no_ints(s.dst_index, s.src_index)),
        **same((), Barrier, Poll, Kernel, Instance, Fail, HostCall),
    },
)


_Effects: TypeAlias = tuple[Sequence[Buffer], Sequence[Buffer]]


def effects(s: Stmt) -> _Effects:
    """(read, written) buffers of a statement itself, besides those that its expressions load and its blocks access.

    Questions about changes of memory are answered here or by the functions below.
    """
    return _EFFECTS[type(s)](s)


_EFFECTS: dict[type, Callable[[Any], _Effects]] = covering(
    Stmt,
    {
        **of(Store, lambda s: ((), (s.buffer,))),
        **of(Copy, lambda s: ((s.src,), (s.dst,))),
        **of(HostCall, lambda s: (s.arguments, (s.table, *s.results))),
        **of(Instance, lambda s: _in_place(s, touched(s.kernel.body))),
        **same(((), ()), For, While, If, Switch, Let, Declare, Assign, Barrier, Poll, Kernel, Fail),
    },
)


def _in_place(s: Instance, used: _Effects) -> _Effects:
    """The buffers that stand in the place of a kernel's."""
    reads, writes = ([s.buffers.get(b, b) for b in group] for group in used)
    return reads, writes


def walk(body: Sequence[Stmt]) -> list[Stmt]:
    """Every statement in the blocks of body, outer first."""
    found: list[Stmt] = []
    _collect(body, found)
    return found


_NESTED = (For, Kernel, While, If, Switch)  # the statements that have blocks


def _collect(body: Sequence[Stmt], found: list[Stmt]) -> None:
    for s in body:
        found.append(s)
        if type(s) in _NESTED:
            for block in _BLOCKS[type(s)](s):
                _collect(block, found)


def touched(body: Sequence[Stmt]) -> tuple[list[Buffer], list[Buffer]]:
    """(read, written) buffers of the statements and their blocks, each in order of first use."""
    reads: dict[Buffer, None] = {}
    writes: dict[Buffer, None] = {}
    for s in walk(body):
        kind = type(s)
        for e in _EXPRESSIONS[kind](s):
            for b in loaded(e):
                reads[b] = None
        if type(s) is Store:
            writes[s.buffer] = None
        elif type(s) is Copy or type(s) is HostCall or type(s) is Instance:
            read, wrote = effects(s)
            reads.update(dict.fromkeys(read))
            writes.update(dict.fromkeys(wrote))
    return list(reads), list(writes)


def written(body: Sequence[Stmt]) -> list[Buffer]:
    """The buffers that the statements and their blocks write, in order of first use."""
    return list(dict.fromkeys(b for s in walk(body) for b in effects(s)[1]))


def may_end(s: Stmt) -> bool:
    """Whether a statement itself, not one in its blocks, may end the program, so that the statements after it do not
    run.
    """
    return type(s) is Fail or type(s) is HostCall


def constants_of(program: Program) -> list[Buffer]:
    """The constant buffers that the program reads."""
    return program.constants or [b for b in touched(program.body)[0] if b.role == "constant"]
