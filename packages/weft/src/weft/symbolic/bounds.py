"""Bounds of a symbolic dimension's value: intervals, sharpened by the constraints of its scope and by properties of the
operations.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, TypeAlias

from . import dims
from .dims import ONE, Dim

if TYPE_CHECKING:
    from ..core.types import Size
    from .dims import Factor, Scope

Interval: TypeAlias = tuple[float, float]  # the least and the largest value; infinite where unknown

_DEPTH = 3  # constraints that are combined for one answer
# expressions examined for one answer: the problem is hard in general, and a file may contain any expression
_EFFORT = 400


def bounds(x: Size) -> Interval:
    """(lower, upper) of an expression over all values of its variables that the constraints allow; infinite where
    unknown.
    """
    if not isinstance(x, Dim):
        return x, x
    known = x.scope.known_bounds
    if x not in known:
        known[x] = _Search().run(x, _DEPTH, ())
    return known[x]


class _Search:
    """The search for one bound. It counts its steps."""

    def __init__(self) -> None:
        self.left = _EFFORT

    def run(self, x: Size, depth: int, used: tuple[Dim, ...]) -> Interval:
        """Bounds of `x` by intervals, then of the rest after multiples of constraints are subtracted."""
        if not isinstance(x, Dim):
            return x, x
        self.left -= 1
        low, high = self.interval(x, depth)
        if not depth:
            return low, high
        low, high = self.alternatives(x, depth, used, low, high)
        have = dict(x.terms)
        for p in [*x.scope.positive, *[p for m in have for f, _ in m for p in dims.promises(f, x.scope)]]:  # p >= 0
            if p in used:
                continue
            for monomial, c in p.terms:
                mine = have.get(monomial)
                if monomial == ONE or mine is None or self.left <= 0 or low == high:
                    continue
                # |c| x = ±|mine| p + rest, so that `rest` without this monomial bounds |c| x from below (+) or above
                # (-)
                scale, same = abs(c), (mine > 0) == (c > 0)
                rest = x * scale - p * abs(mine) if same else x * scale + p * abs(mine)
                r_low, r_high = self.run(rest, depth - 1, (*used, p))
                if same and r_low > -inf:
                    low = max(low, -(-r_low // scale))
                elif not same and r_high < inf:
                    high = min(high, r_high // scale)
        return low, high

    def interval(self, x: Dim, depth: int) -> Interval:
        low: float = 0
        high: float = 0
        for monomial, c in x.terms:
            a: float = 1
            b: float = 1
            for f, n in monomial:
                u, v = self.factor(f, x.scope, depth, alone=monomial == ((f, 1),))
                ends = [_power(u, n), _power(v, n)] + ([0] if u < 0 < v and n % 2 == 0 else [])
                a, b = _product((a, b), (min(ends), max(ends)))
            a, b = _product((a, b), (c, c))
            low, high = low + a, high + b
        return low, high

    def factor(self, f: Factor, scope: Scope, depth: int, alone: bool) -> Interval:
        if not f.operands:  # for a variable that is a whole term, `run` uses the constraints
            return (
                (1, inf)
                if alone or depth <= 0 or not scope.positive
                else self.run(scope.variable(f.name), depth - 1, ())
            )
        (a, b), (c, d) = [
            self.run(x, max(depth - 1, 0), ()) if self.left > 0 else (x, x) if not isinstance(x, Dim) else (-inf, inf)
            for x in f.operands
        ]
        if f.name == "max":
            return max(a, c), max(b, d)
        if f.name == "min":
            return min(a, c), min(b, d)
        if f.name == "mod":
            if c > 0:
                return 0, min(d - 1, b) if a >= 0 else d - 1
            return (c + 1, 0) if d < 0 else (-inf, inf)
        if c <= 0 <= d:  # a division by a number that may be zero or change its sign
            return -inf, inf
        ends = [_floordiv(x, y) for x in (a, b) for y in (c, d)]
        return min(ends), max(ends)

    def alternatives(self, x: Dim, depth: int, used: tuple[Dim, ...], low: float, high: float) -> Interval:
        """Sharper bounds of an expression that is linear in a `max` or a `min`, which equals one of two expressions."""
        for monomial, c in x.terms:
            if (
                len(monomial) != 1
                or monomial[0][1] != 1
                or monomial[0][0].name not in ("max", "min")
                or not monomial[0][0].operands
            ):
                continue
            f = monomial[0][0]
            rest = dims.from_coefficients({m: k for m, k in x.terms if m != monomial}, x.scope)
            (a, b), (u, v) = [self.run(rest + y * c, depth - 1, used) for y in f.operands]
            pick = max if (f.name == "max") == (c > 0) else min
            low, high = max(low, pick(a, u)), min(high, pick(b, v))
        return low, high


def _power(x: float, n: int) -> float:
    return x**n if abs(x) != inf else inf if x > 0 or n % 2 == 0 else -inf


def _times(x: float, y: float) -> float:
    return 0 if not x or not y else x * y


def _product(a: Interval, b: Interval) -> Interval:
    ends = [_times(x, y) for x in a for y in b]
    return min(ends), max(ends)


def _floordiv(x: float, y: float) -> float:
    if abs(y) == inf:
        return (
            0
            if x == 0 or abs(x) != inf and (x > 0) == (y > 0)
            else (-1 if abs(x) != inf else inf if (x > 0) == (y > 0) else -inf)
        )
    if abs(x) == inf:
        return x if y > 0 else -x
    return x // y
