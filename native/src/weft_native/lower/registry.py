"""The table of lowering rules, by primitive name.

A rule is a function `(b, ins, outs, *operands, **params)`: the builder, the operands' and results' avals, the operands'
MLIR values and the equation's parameters. It returns a value, or a list of values for a primitive with multiple
results.
"""

from __future__ import annotations

from typing import Callable

from weft.base import dtypes

rules: dict[str, Callable] = {}
# Primitives whose operands are broadcast to the shape of the result before their rule is called.
broadcasting: set[str] = set()


def rule(*names: str) -> Callable:
    """Makes the decorated function the rule of the primitives `names`."""

    def decorate(f):
        rules.update(dict.fromkeys(names, f))
        return f

    return decorate


def elementwise(*names: str) -> Callable:
    """`rule` for primitives whose operands broadcast."""
    broadcasting.update(names)
    return rule(*names)


def stored(dtype):
    """A dtype with the values of another that has at least 8 bits: XLA sorts nothing smaller rightly, and reduces it
    with nothing else.
    """
    if dtypes.bits(dtype) >= 8:
        return dtype
    return (
        dtypes.dtype("bfloat16")
        if dtypes.is_float(dtype)
        else dtypes.dtype("int8" if dtypes.is_signed(dtype) else "uint8")
    )


def widened(lower):
    """A rule of a primitive that moves and compares elements; elements of fewer than 8 bits are processed in the form
    that `stored` returns.
    """

    def wide(b, ins, outs, *operands, **params):
        inside, results = [[a.update(dtype=stored(a.dtype)) for a in avals] for avals in (ins, outs)]
        made = lower(
            b,
            inside,
            results,
            *[v if a.dtype == w.dtype else b.convert(v, a.shape, w.dtype) for v, a, w in zip(operands, ins, inside)],
            **params,
        )
        return [v if a.dtype == w.dtype else b.convert(v, a.shape, a.dtype) for v, a, w in zip(made, outs, results)]

    return wide
