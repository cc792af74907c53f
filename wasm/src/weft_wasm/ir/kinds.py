"""Tables by kind of node: which function takes the nodes of a class.

A dict's type can't express that the function for a class takes nodes of that class: it holds functions of `Any`. `of`
and `method` make its entries, and the type checker compares the two there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, get_args, overload

_T = TypeVar("_T")
_A = TypeVar("_A")
_B = TypeVar("_B")
_C = TypeVar("_C")
_S = TypeVar("_S")
_P = ParamSpec("_P")


def covering(union: object, table: dict[type, _T], leaves: tuple[type, ...] = ()) -> dict[type, _T]:
    """A table by kind. It must have an entry for each class of the union (`Expr`, `Stmt`) except those in `leaves`, and
    no others.

    >>> from weft_wasm.ir.nodes import Const, Expr
    >>> covering(Expr, {Const: 1})
    Traceback (most recent call last):
    TypeError: no entry for Binary, Bitcast, Call, Compare, Convert, Load, Local, MulAdd, Select, Unary, Var
    """
    wanted = set(get_args(union)) - set(leaves)
    if missing := wanted - table.keys():
        raise TypeError(f"no entry for {', '.join(sorted(c.__name__ for c in missing))}")
    if extra := table.keys() - wanted:
        raise TypeError(f"an entry for {', '.join(sorted(c.__name__ for c in extra))}, which should have none")
    return table


@overload
def of(a: type[_A], function: Callable[[_A], _T], /) -> dict[type, Callable[[Any], _T]]: ...
@overload
def of(a: type[_A], b: type[_B], function: Callable[[_A | _B], _T], /) -> dict[type, Callable[[Any], _T]]: ...
@overload
def of(
    a: type[_A], b: type[_B], c: type[_C], function: Callable[[_A | _B | _C], _T], /
) -> dict[type, Callable[[Any], _T]]: ...
def of(*kinds: Any) -> dict[type, Callable[[Any], Any]]:
    """The entries of a function, the last argument, that takes a node of one of the kinds before it.

    >>> from weft_wasm.ir.nodes import Var
    >>> of(Var, lambda e: e.name)[Var](Var("i", "i32"))
    'i'
    """
    *classes, function = kinds
    return dict.fromkeys(classes, function)


def same(value: _T, *kinds: type) -> dict[type, Callable[[Any], _T]]:
    """The entries of kinds for which the answer is always `value`."""
    return dict.fromkeys(kinds, lambda node: value)


def method(
    kind: type[_A], function: Callable[Concatenate[_S, _A, _P], _T]
) -> dict[type, Callable[Concatenate[_S, Any, _P], _T]]:
    """The entry of a method that takes a node of a kind first, or of a function that takes one second."""
    return {kind: function}
