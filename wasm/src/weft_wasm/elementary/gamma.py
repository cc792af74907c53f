"""The gamma functions: reflection, recurrence, Stirling's series.

Their zeros among the negative numbers are differences of terms that are larger than the result, down to nothing next to
a zero: there f64 computes in twice its precision (`double_double.py`). f32 is computed in f64 and needs none of that.
"""

from __future__ import annotations

import math
from fractions import Fraction

from weft_wasm.elementary.double_double import Coefficient, Pair, constant, polynomial
from weft_wasm.elementary.functions import Float
from weft_wasm.elementary.pi import pi_bits
from weft_wasm.elementary.polynomials import PAIRS
from weft_wasm.ir.nodes import Expr, Select, Unary, eq, gt, le, lt

INF, NAN = float("inf"), float("nan")
# Bernoulli numbers: B2k / (2k (2k-1)) and B2k / 2k
STIRLING = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400]
DIGAMMA = [1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160]
DIGAMMA_ZERO = 1.4616321449683622, 9.549995429965697e-17
LN2 = 0.6931471805599453, 2.3190468138462996e-17


def parts(value: Fraction) -> tuple[float, float]:
    """The nearest float, and the remainder."""
    return float(value), float(value - Fraction(float(value)))


PI = parts(Fraction(pi_bits(200), 2**200))
EXP: list[Coefficient] = [
    *(parts(Fraction(1, math.factorial(k))) for k in range(15)),
    *(1 / math.factorial(k) for k in range(15, 23)),
]


class Gamma:
    """lgamma and digamma. zeros: whether the results around all zeros must be accurate to the last bits."""

    def __init__(self, float: Float, zeros: bool = True):
        self.float, self.zeros = float, zeros and not float.f32

    def lgamma(self, x: Expr) -> Expr:
        # Γ(z) = (z-1)(z-2)…y Γ(y) with y between ¾ and 2¼, where lgamma is (y-1)(y-2)·P around its zeros; Stirling's
        # series above 8¼
        reflect = lt(x, 0.0)
        z = Unary("abs", x)
        below = lt(z, 0.75)
        product = Select(below, z, self.float.c(1.0))
        y = Select(below, z + 1.0, z)
        for _ in range(6):
            high = gt(y, 2.25)
            y = Select(high, y - 1.0, y)
            product = Select(high, product * y, product)
        large = gt(y, 2.25)
        r = 1.0 / z
        log = self.float.log(Select(large, z, product))
        stirling = r * self.float.poly(STIRLING, r * r)
        series = (z - 0.5) * (log - 1.0) + (0.5 * math.log(2 * math.pi) - 0.5) + stirling
        small = (y - 1.0) * (y - 2.0) * self.float.poly("lgamma", y - 1.5)
        body = Select(large, series, small + Select(below, -log, log))
        # Γ(x)Γ(-x) = -π/(x sin πx)
        sine = Unary("abs", self.float.sin((x - Unary("round_even", x)) * math.pi))
        factor = Select(
            large, self.float.c(math.sqrt(2 / math.pi)), Select(below, self.float.c(1.0), z * product) / math.pi
        )
        mirrored = self._mirrored_lgamma(z, sine * factor, large, Select(large, stirling, small))
        result = Select(reflect, mirrored, body, rare=True)
        if self.zeros:
            result = Select(lt(x, -1.0) & gt(x, -18.5), self._lgamma_by_factors(x), result, rare=True)
        pole = le(x, 0.0) & eq(Unary("floor", x), x)
        return Select(pole | eq(z, INF), self.float.c(INF), result)

    def _mirrored_lgamma(self, z: Expr, factor: Expr, large: Expr, rest: Expr) -> Expr:
        """-(log(factor) + rest), and for large z also -((z + ½)·log(z) - z): terms that cancel are added without
        rounding errors.
        """
        hi, lo = self.float.log_parts(factor)
        log_hi, log_lo = self.float.log_parts(z)
        head = self.float.head(z)
        total, lost = self._sum([head * log_hi, -z, log_hi * 0.5, hi])
        lost = lost + ((z - head) * log_hi + (z + 0.5) * log_lo)
        return -(Select(large, total, hi) + (Select(large, lost, self.float.c(0.0)) + (lo + rest)))

    def _lgamma_by_factors(self, x: Expr) -> Expr:
        """-log|1/Γ(x)|, where 1/Γ(x) = x (x+1) … y / Γ(1+y), 0 < y < 1. Below -18.5, zeros are too close to poles to be
        distinguished from them.
        """
        y = x - Unary("floor", x)
        product = polynomial(PAIRS["rgamma"], Pair(y - 0.5)) * Pair(y) * Pair(x)
        for k in range(1, 19):
            product = product * Pair(Select(lt(x, float(-k)), x + float(k), self.float.c(1.0)))
        log = self.float.log(Unary("abs", product.hi))
        return -(log + product.rest / product.hi)

    def _sum(self, terms: list[Expr]) -> tuple[Expr, Expr]:
        """The sum of the terms, and its rounding error (D. Knuth's two-sum)."""
        total, *others = terms
        lost: Expr = self.float.c(0.0)
        for term in others:
            before, total = total, total + term
            moved = total - before
            lost = lost + ((before - (total - moved)) + (term - moved))
        return total, lost

    def digamma(self, x: Expr) -> Expr:
        # log(y) - Σ 1/(z + k) - 1/2y - …, y = z + k from 8 on; terms cancel that are larger than the result, so they
        # are added up exactly
        reflect = lt(x, 0.0)
        z = Unary("abs", x)
        y: Expr = z
        terms: list[Expr] = []
        for _ in range(8):
            low = lt(y, 8.0)
            terms.append(Select(low, -1.0 / y, self.float.c(0.0)))
            y = Select(low, y + 1.0, y)
        # ψ(x) = ψ(z) + 1/z - π cot(πx)
        terms[0] = Select(reflect, Select(lt(z, 8.0), self.float.c(0.0), 1.0 / z), terms[0])
        hi, lo = self.float.log_parts(y)
        total, lost = self._sum([hi, *reversed(terms)])
        r = 1.0 / y
        z2 = r * r
        rest = lost + (lo - (r * 0.5 + z2 * self.float.poly(DIGAMMA, z2)))
        f = Select(reflect, x - Unary("round_even", x), x)
        sine, cosine = self._sin_cos_pi(f)
        result = Select(reflect, total + (rest - math.pi * cosine / sine), total + rest, rare=True)
        result = Select(lt(Unary("abs", f), 1e-20), -1.0 / f, result)  # next to a pole nothing else is left
        if self.zeros:
            zero, beyond = DIGAMMA_ZERO
            result = Select(
                gt(x, 1.0) & lt(x, 3.0), ((x - zero) - beyond) * self.float.poly("digamma", x - 2.0), result
            )
            result = Select(
                lt(x, -0.0625) & lt(Unary("abs", result), 64.0), self._digamma_between_poles(x), result, rare=True
            )
        pole = eq(x, 0.0) | reflect & eq(Unary("floor", x), x)
        return Select(pole | eq(x, -INF), self.float.c(NAN), Select(eq(x, INF), x, result))

    def _digamma_between_poles(self, x: Expr) -> Expr:
        """ψ(1-x) - π·cot(πx) with all its bits."""
        c, s = (Pair(-x) + constant(shift) for shift in (4.5, 8.5))
        square = c * c  # Σ 1/(k-x), k = 1 … 8, by pairs
        shifted, *others = ((square - constant((k + 0.5) ** 2)).reciprocal() for k in range(4))
        for term in others:
            shifted = shifted + term
        w = (s * s).reciprocal()
        psi = self._log_pair(s) + w * polynomial(PAIRS["digamma_tail"], w) - (c * shifted).scaled(2.0)
        f = x - Unary("round_even", x)
        size = Unary("abs", f)
        near_half = gt(size, 0.25)
        g = Pair(Select(near_half, 0.5 - size, size))
        tan = polynomial(PAIRS["tan_pi"], g * g) * g  # of half the angle
        ends, middle = constant(1.0) - tan * tan, tan.scaled(2.0)
        over, under = (
            Pair(*(Select(near_half, p, q) for p, q in ((a.hi, b.hi), (a.rest, b.rest))))
            for a, b in ((middle, ends), (ends, middle))
        )
        return (psi * under - (constant(PI) * over).scaled(self.float.copysign(self.float.c(1.0), f))).hi / under.hi

    def _log_pair(self, x: Pair) -> Pair:
        """log(m) is the float l nearest to it, and m / e^l - 1; x = m·2^k."""
        k, m = self.float.split(x.hi)
        log = Pair(self.float.log_finite(m))
        rest = Pair(m, x.rest * (m / x.hi)) * polynomial(EXP, -log) - constant(1.0)
        return Pair(k) * constant(LN2) + log + Pair(rest.hi)

    def _sin_cos_pi(self, f: Expr) -> tuple[Expr, Expr]:
        """Of π·f for |f| ≤ ½, by the angle to the nearer of 0 and ½."""
        a = Unary("abs", f)
        near_half = gt(a, 0.25)
        sine, cosine = self.float.sin_cos(Select(near_half, 0.5 - a, a) * math.pi)
        return self.float.copysign(Select(near_half, cosine, sine), f), Select(near_half, sine, cosine)
