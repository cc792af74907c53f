"""A fingerprint of kernels that compile to the same function: everything except the identity of their buffers and
variables.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, assert_never

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
    Select,
    Stmt,
    Store,
    Switch,
    Unary,
    Var,
    While,
)
from weft_wasm.ir.traversal import operands
from weft_wasm.ir.kinds import covering, of, same

# The properties of an expression besides its operands; a constant is represented by its text, which distinguishes -0.0
# from 0.0.
_LABEL: dict[type, Callable[[Any], Hashable]] = covering(
    Expr,
    {
        **of(Const, lambda e: ("const", repr(e.value), e.dtype)),
        **same("load", Load),
        **of(Unary, Binary, Compare, lambda e: e.op),
        **of(Select, lambda e: "rare" if e.rare else "select"),
        **of(Convert, lambda e: ("convert", e.dtype)),
        **of(Bitcast, lambda e: ("bitcast", e.dtype)),
        **same("muladd", MulAdd),
        **of(Call, lambda e: ("call", e.fn)),
    },
    leaves=(Var, Local),
)


def fingerprint(body: list[Stmt], buffers: Sequence[Buffer], variables: Sequence[Expr]) -> tuple[Hashable, ...]:
    """The statements with numbers for names: `buffers` and `variables` from outside, then bound names and computed
    nodes, in the order of their use.
    """
    numbers: dict[Buffer | Expr, int] = {name: k for k, name in enumerate((*buffers, *variables))}
    words: list[Hashable] = [*((b.dtype, b.nbytes, b.role) for b in buffers), *(v.dtype for v in variables)]

    def new(name: Expr) -> None:
        numbers[name] = len(numbers)

    def expression(e: Expr) -> None:
        known = numbers.get(e)
        if known is not None:
            words.append(known)
            return
        for x in operands(e):
            expression(x)
        words.append(_LABEL[type(e)](e))
        if type(e) is Load:
            words.append(numbers[e.buffer])
        new(e)

    def block(statements: list[Stmt]) -> None:
        words.append(len(statements))
        for s in statements:
            statement(s)

    def statement(s: Stmt) -> None:
        kind = type(s).__name__
        match s:
            case For():
                words.append(
                    (
                        kind,
                        s.extent if isinstance(s.extent, int) else None,
                        s.kind,
                        s.vector,
                        s.unroll,
                        s.outline,
                        s.tasks,
                    )
                )
                if isinstance(s.extent, Node):
                    expression(s.extent)
                new(s.var)
                block(s.body)
            case Let():
                words.append(kind)
                expression(s.value)
                words.append(s.var.dtype)
                new(s.var)
            case Declare():
                words.append(kind)
                expression(s.init)
                words.append(s.local.dtype)
                new(s.local)
            case Assign():
                words.append((kind, numbers[s.local]))
                expression(s.value)
            case Store():
                words.append((kind, numbers[s.buffer]))
                expression(s.index)
                expression(s.value)
            case While():
                words.append(kind)
                block(s.cond)
                expression(s.test)
                block(s.body)
            case If():
                words.append(kind)
                expression(s.test)
                block(s.then)
                block(s.orelse)
            case Switch():
                words.append((kind, len(s.branches)))
                expression(s.index)
                for branch in s.branches:
                    block(branch)
            case Barrier() | Poll():
                words.append(kind)
            case Kernel() | Instance() | Copy() | HostCall() | Fail():
                raise TypeError(f"{kind} is not a statement of a kernel")
            case _:
                assert_never(s)

    block(body)
    return tuple(words)
