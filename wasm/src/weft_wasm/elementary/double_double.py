"""Numbers of twice the precision of f64: the sum of two floats, the second at most half a unit in the last place of the
first (T. J. Dekker, "A floating-point technique for extending the available precision", 1971). For sums whose leading
terms cancel. Errors are a few units of 2^-106.

Products are rounded by themselves: none of this may become a `MulAdd`.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft_wasm.ir.nodes import Const, Expr

Coefficient = float | tuple[float, float]
SPLIT = 2.0**27 + 1


class Pair:
    """hi + lo; without lo a float that is exact."""

    __slots__ = ("hi", "lo", "_halves")

    def __init__(self, hi: Expr, lo: Expr | None = None):
        self.hi, self.lo = hi, lo
        self._halves: tuple[Expr, Expr] | None = None

    @property
    def rest(self) -> Expr:
        """The low part of an operation's result."""
        if self.lo is None:
            raise ValueError("an exact float has no rest")
        return self.lo

    @property
    def halves(self) -> tuple[Expr, Expr]:
        """Two floats with the sum hi, products of which are exact (G. W. Veltkamp)."""
        if self._halves is None:
            far = self.hi * SPLIT
            head = far - (far - self.hi)
            self._halves = head, self.hi - head
        return self._halves

    def __add__(self, other: Pair) -> Pair:
        """Accurate to the last bits if the signs are equal, else to the last bits of the larger operand."""
        total = self.hi + other.hi
        moved = total - self.hi
        lost = (self.hi - (total - moved)) + (other.hi - moved)
        for lo in (self.lo, other.lo):
            lost = lost if lo is None else lost + lo
        return _ordered_sum(total, lost)

    def __neg__(self) -> Pair:
        return Pair(-self.hi, None if self.lo is None else -self.lo)

    def __sub__(self, other: Pair) -> Pair:
        return self + -other

    def __mul__(self, other: Pair) -> Pair:
        product = self.hi * other.hi
        (a, b), (c, d) = self.halves, other.halves
        lost = ((a * c - product) + a * d + b * c) + b * d
        for hi, lo in ((self.hi, other.lo), (other.hi, self.lo)):
            lost = lost if lo is None else lost + hi * lo
        return _ordered_sum(product, lost)

    def scaled(self, power: Expr | float) -> Pair:
        """Multiplies by a power of two, or by minus one."""
        return Pair(self.hi * power, None if self.lo is None else self.lo * power)

    def reciprocal(self) -> Pair:
        guess = Pair(1.0 / self.hi)
        return _ordered_sum(guess.hi, guess.hi * (constant(1.0) - self * guess).hi)


def _ordered_sum(a: Expr, b: Expr) -> Pair:
    """a + b exactly, where |a| ≥ |b|."""
    total = a + b
    return Pair(total, b - (total - a))


def constant(value: Coefficient) -> Pair:
    hi, lo = value if isinstance(value, tuple) else (value, 0.0)
    return Pair(Const(hi, "f64"), Const(lo, "f64") if lo else None)


def polynomial(coefficients: Sequence[Coefficient], x: Pair) -> Pair:
    """By Horner's rule, constant term first. The last coefficients may be single floats; then so are their terms."""
    *rest, last = coefficients
    total = constant(last)
    for coefficient in reversed(rest):
        if isinstance(coefficient, tuple):
            total = constant(coefficient) + total * x
        else:
            total = Pair(total.hi * x.hi + coefficient)
    return total
