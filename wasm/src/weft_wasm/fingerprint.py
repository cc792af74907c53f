"""What two kernels have in common that compile to the same function: all but the identity of their buffers and variables."""

from __future__ import annotations

from collections.abc import Sequence

from weft_wasm.ir import (
    Assign,
    Barrier,
    Binary,
    Bitcast,
    Buffer,
    Call,
    Compare,
    Const,
    Convert,
    Declare,
    Expr,
    For,
    If,
    Let,
    Load,
    MulAdd,
    Select,
    Store,
    Switch,
    Unary,
    While,
    operands,
)

# What an expression is besides its operands; a constant by its text, which tells -0.0 from 0.0.
_LABEL = {
    Const: lambda e: ("const", repr(e.value), e.dtype),
    Load: lambda e: "load",
    Unary: lambda e: e.op,
    Binary: lambda e: e.op,
    Compare: lambda e: e.op,
    Select: lambda e: "rare" if e.rare else "select",
    Convert: lambda e: ("convert", e.dtype),
    Bitcast: lambda e: ("bitcast", e.dtype),
    MulAdd: lambda e: "muladd",
    Call: lambda e: ("call", e.fn),
}


def fingerprint(body: list, buffers: Sequence[Buffer], variables: Sequence[Expr]) -> tuple:
    """The statements with numbers for names: `buffers` and `variables` from outside, then whatever is bound or computed, in the order of their use."""
    numbers: dict = {name: k for k, name in enumerate((*buffers, *variables))}
    words: list = [*((b.dtype, b.nbytes, b.role) for b in buffers), *(v.dtype for v in variables)]

    def new(name) -> None:
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

    def block(statements: list) -> None:
        words.append(len(statements))
        for s in statements:
            statement(s)

    def statement(s) -> None:
        kind = type(s)
        if kind is For:
            words.append((kind, s.extent if isinstance(s.extent, int) else None, s.kind, s.vector, s.unroll, s.outline, s.tasks))
            if isinstance(s.extent, Expr):
                expression(s.extent)
            new(s.var)
            block(s.body)
        elif kind is Let or kind is Declare:
            words.append(kind)
            expression(s.value if kind is Let else s.init)
            name = s.var if kind is Let else s.local
            words.append(name.dtype)
            new(name)
        elif kind is Assign:
            words.append((kind, numbers[s.local]))
            expression(s.value)
        elif kind is Store:
            words.append((kind, numbers[s.buffer]))
            expression(s.index)
            expression(s.value)
        elif kind is While:
            words.append(kind)
            block(s.cond)
            expression(s.test)
            block(s.body)
        elif kind is If:
            words.append(kind)
            expression(s.test)
            block(s.then)
            block(s.orelse)
        elif kind is Switch:
            words.append((kind, len(s.branches)))
            expression(s.index)
            for branch in s.branches:
                block(branch)
        elif kind is Barrier:
            words.append(kind)
        else:
            raise TypeError(f"{kind.__name__} is not a statement of a kernel")

    block(body)
    return tuple(words)
