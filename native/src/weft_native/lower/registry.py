"""The table of lowering rules, by primitive name.

A rule is a function `(b, ins, outs, *operands, **params)`: the builder, the operands' and results' avals, the operands'
MLIR values and the equation's parameters. It returns a value, or a list of values for a primitive with multiple results.
"""
from __future__ import annotations

from typing import Callable

rules: dict[str, Callable] = {}
# Primitives whose operands are broadcast to the shape of the result before their rule is called.
broadcasting: set[str] = set()


def rule(*names: str) -> Callable:
    """Makes the decorated function the rule of the primitives `names`."""
    def decorate(f):
        for name in names:
            rules[name] = f
        return f
    return decorate


def elementwise(*names: str) -> Callable:
    """`rule` for primitives whose operands broadcast."""
    broadcasting.update(names)
    return rule(*names)
