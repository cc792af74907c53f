"""The functions of one float dtype, after the classic argument reductions (Cody-Waite, Payne-Hanek) with minimax
polynomials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from weft_wasm.elementary.pi import pi_bits, pi_parts, two_over_pi
from weft_wasm.ir.nodes import Bitcast, Call, Const, Convert, Expr, MulAdd, Select, Unary, eq, gt, le, lt, ne

INF, NAN = float("inf"), float("nan")
LN2 = math.log(2.0)


def _sqrt(x: Expr) -> Expr:
    return Unary("sqrt", x)


def _abs(x: Expr) -> Expr:
    return Unary("abs", x)


class Float:
    """The differences between f32 and f64: bit layout and polynomials."""

    def __init__(self, dtype: str, p: dict[str, list[float]]):
        self.dtype, self.p = dtype, p
        self.f32 = dtype == "f32"
        self.mantissa = 23 if self.f32 else 52
        self.bits = 32 if self.f32 else 64
        self.int, self.uint = ("i32", "u32") if self.f32 else ("i64", "u64")
        self.bias = 127 if self.f32 else 1023
        self.magic = 1.5 * 2.0**self.mantissa  # adding it rounds to an integer, whose bits are then the low bits
        self.tiny = 2.0 ** (1 - self.bias)
        self.max_exp = (self.bias + 1) * LN2  # exp overflows from here on
        self.sign_bit = 1 << (self.bits - 1)
        ln2_hi, self.ln2_lo = (
            (0.693359375, -2.12194440054690583e-4) if self.f32 else (0.6931471803691238, 1.9082149292705877e-10)
        )
        self.ln2_hi = ln2_hi
        self.low_bits = 12 if self.f32 else 27  # that `head` clears: products of two heads are exact
        bits = self.mantissa + 1 - self.low_bits
        self.two_thirds_hi = math.floor(2 / 3 * 2**bits) / 2**bits
        self.two_thirds_lo = float(Fraction(2, 3) - Fraction(self.two_thirds_hi))

    # small vocabulary

    def c(self, value: float) -> Const:
        return Const(value, self.dtype)

    def i(self, value: int) -> Const:
        return Const(value, self.int)

    def u(self, value: int) -> Const:
        return Const(value, self.uint)

    def poly(self, name: str | Sequence[float], x: Expr) -> Expr:
        coefficients = self.p[name] if isinstance(name, str) else name
        result: Expr = self.c(coefficients[-1])
        for k in reversed(coefficients[:-1]):
            result = MulAdd(result, x, self.c(k))
        return result

    def as_int(self, x: Expr) -> Expr:
        return Bitcast(x, self.int)

    def as_float(self, x: Expr) -> Expr:
        return Bitcast(x, self.dtype)

    def copysign(self, magnitude: Expr, sign: Expr) -> Expr:
        """|magnitude| must have a clear sign bit already."""
        return self.as_float(self.as_uint(magnitude) | (self.as_uint(sign) & self.u(self.sign_bit)))

    def as_uint(self, x: Expr) -> Expr:
        return Bitcast(x, self.uint)

    def two_to(self, k: Expr) -> Expr:
        """2^k of an integer expression in the exponent range."""
        return self.as_float((k + self.i(self.bias)) << self.mantissa)

    # exponentials

    def _reduce_exp(self, x: Expr) -> tuple[Expr, Expr, Expr]:
        """(k as float, magic + k, r) with x = k·ln2 + r, |r| ≤ ln2/2."""
        shifted = MulAdd(x, self.c(1 / LN2), self.c(self.magic))
        k = shifted - self.magic
        r = MulAdd(k, self.c(-self.ln2_lo), MulAdd(k, self.c(-self.ln2_hi), x))
        return k, shifted, r

    def _exp_tail(self, r: Expr) -> Expr:
        """e^r - 1 for small r."""
        return MulAdd(r * r, self.poly("exp", r), r)

    def _scaled_exp(self, x: Expr, per_two: float, low: float, rest: Callable[[Expr, Expr], Expr]) -> Expr:
        """f32: e^r · 2^k, where k is the integer next to x·per_two, 127 at most, and r = rest(x, k). 2^k is a separate
        number, 0 for k = -127, so that overflow and underflow need no special treatment and NaN stays NaN; `low` is
        true where k = -127 begins.
        """
        x = maximum_number(x, self.c(low))
        zero = self.magic + self.bias  # for k = 0 the low bits hold the exponent of 1
        shifted = minimum_number(self.c(zero + self.bias), MulAdd(x, self.c(per_two), self.c(zero)))
        return self.poly("exp_wide", rest(x, shifted - zero)) * self.as_float(self.as_int(shifted) << self.mantissa)

    def exp(self, x: Expr) -> Expr:
        if self.f32:
            return self._exp_f32(x)
        _, shifted, r = self._reduce_exp(x)
        return self._finish_exp(x, r, shifted, -708.3964185322641, 709.782712893384)

    def _exp_f32(self, x: Expr, low: Expr | None = None) -> Expr:
        """e^(x + low)"""

        def rest(x: Expr, k: Expr) -> Expr:
            r = MulAdd(k, self.c(-self.ln2_lo), MulAdd(k, self.c(-self.ln2_hi), x))
            return r if low is None else r + low

        return self._scaled_exp(x, 1 / LN2, -88.0, rest)

    def exp2(self, x: Expr) -> Expr:
        if self.f32:
            return self._scaled_exp(x, 1.0, -127.0, lambda x, k: (x - k) * LN2)
        shifted = x + self.magic
        return self._finish_exp(x, (x - (shifted - self.magic)) * LN2, shifted, -1022.0, 1023.9999999999999)

    def _finish_exp(self, x: Expr, r: Expr, shifted: Expr, low: float, high: float) -> Expr:
        """e^r · 2^k for x between low and high; 0 below, infinity above."""
        body = self.as_float(self.as_int(self._exp_tail(r) + 1.0) + (self.as_int(shifted) << self.mantissa))
        return Select(le(x, high), Select(lt(x, low), self.c(0.0), body), x + INF)

    def expm1(self, x: Expr) -> Expr:
        _, shifted, r = self._reduce_exp(x)
        # 2^(k-1)
        half = self.as_float(self.i((self.bias - 1) << self.mantissa) + (self.as_int(shifted) << self.mantissa))
        body = MulAdd(self._exp_tail(r), half, half - 0.5) * 2.0
        body = Select(lt(_abs(x), LN2 / 2), self._exp_tail(x), body)
        body = Select(lt(x, -17.5 if self.f32 else -37.5), self.c(-1.0), body)
        high = 88.72283935546875 if self.f32 else 709.782712893384
        return Select(eq(x, 0.0), x, Select(le(x, high), body, x + INF))

    def logistic(self, x: Expr) -> Expr:
        return 1.0 / (self.exp(-x) + 1.0)

    def sinh(self, x: Expr) -> Expr:
        a = _abs(x)
        t = self.expm1(a)
        body = (t + t / (t + 1.0)) * 0.5
        e = self.exp(a * 0.5)
        large = Select(gt(a, self.max_exp - 1.0), (e * 0.5) * e, body, rare=True)
        return self.copysign(large, x)

    def cosh(self, x: Expr) -> Expr:
        a = _abs(x)
        e = self.exp(a)
        h = self.exp(a * 0.5)
        return Select(gt(a, self.max_exp - 1.0), (h * 0.5) * h, e * 0.5 + 0.5 / e, rare=True)

    def tanh(self, x: Expr) -> Expr:
        a = _abs(x)
        if self.f32:  # 2t/(1 + t²), where t = tanh(x/2), up to where the result rounds to 1
            h = Select(gt(a, 9.02), self.c(4.51), a * 0.5)
            z = h * h
            t = h - h * z * (self.poly("tanh_r", z) / self.poly("tanh_q", z))
            y = (t + t) / MulAdd(t, t, self.c(1.0))
            return self.copysign(Select(gt(y, 1.0), self.c(1.0), y), x)
        t = self.expm1(minimum_number(a, self.c(22.0)) * 2.0)
        return Select(ne(x, x), x, self.copysign(t / (t + 2.0), x))

    # logarithms

    def split(self, x: Expr) -> tuple[Expr, Expr]:
        """(k as float, m) with x = m·2^k, √½ ≤ m < √2; x positive and finite."""
        subnormal = lt(x, self.tiny)
        bits = self.as_int(Select(subnormal, x * 2.0**self.mantissa, x))
        half = 0x3F3504F3 if self.f32 else 0x3FE6A09E667F3BCD
        k = (bits - self.i(half)) >> self.mantissa
        m = self.as_float(bits - (k << self.mantissa))
        k = k - Select(subnormal, self.i(self.mantissa), self.i(0))
        if self.f32:
            return Convert(k, "f32"), m
        return Convert(Convert(k, "i32"), "f64"), m

    def _log_tail(self, f: Expr) -> tuple[Expr, Expr]:
        """(f²/2, s·(f²/2 + R)) with log(1+f) = f - (f²/2 - s·(f²/2 + R))."""
        s = f / (f + 2.0)
        z = s * s
        half = f * f * 0.5
        return half, s * (half + z * self.poly("log", z))

    def log_finite(self, x: Expr) -> Expr:
        k, m = self.split(x)
        f = m - 1.0
        half, tail = self._log_tail(f)
        return MulAdd(k, self.c(self.ln2_hi), f - (half - MulAdd(k, self.c(self.ln2_lo), tail)))

    def _log_special(self, x: Expr, body: Expr) -> Expr:
        special = Select(eq(x, 0.0), self.c(-INF), Select(lt(x, 0.0), self.c(NAN), x))
        return Select(gt(x, 0.0) & lt(x, INF), body, special)

    def log(self, x: Expr) -> Expr:
        return self._log_special(x, self.log_finite(x))

    def log2(self, x: Expr) -> Expr:
        k, m = self.split(x)
        f = m - 1.0
        half, tail = self._log_tail(f)
        return self._log_special(x, MulAdd(f - (half - tail), self.c(1 / LN2), k))

    def log1p(self, x: Expr) -> Expr:
        u = x + 1.0
        lost = x - (u - 1.0)
        lost = Select(gt(x, 1.0), 1.0 - (u - x), lost)
        body = self.log_finite(u) + lost / u
        special = Select(eq(x, -1.0), self.c(-INF), Select(lt(x, -1.0), self.c(NAN), x))
        body = Select(gt(x, -1.0) & lt(x, INF), body, special)
        return Select(lt(_abs(x), self.tiny), x, body)

    def asinh(self, x: Expr) -> Expr:
        a = _abs(x)
        square = a * a
        body = self.log1p(a + square / (_sqrt(square + 1.0) + 1.0))
        huge = self.log(a) + LN2
        return self.copysign(Select(gt(a, 2.0**30), huge, body, rare=True), x)

    def acosh(self, x: Expr) -> Expr:
        t = x - 1.0
        body = self.log1p(t + _sqrt(t * t + t * 2.0))
        body = Select(gt(x, 2.0**30), self.log(x) + LN2, body, rare=True)
        return Select(lt(x, 1.0), self.c(NAN), body)

    def atanh(self, x: Expr) -> Expr:
        a = _abs(x)
        return self.copysign(self.log1p(a * 2.0 / (1.0 - a)) * 0.5, x)

    # circular functions

    def _reduce_pi(self, x: Expr) -> tuple[Expr, Expr]:
        """(quadrant bits, r) with x = quadrant·π/2 + r, for moderate x."""
        shifted = MulAdd(x, self.c(2 / math.pi), self.c(self.magic))
        k = shifted - self.magic
        r = x
        for part in pi_parts(self.f32):
            r = MulAdd(k, self.c(-part), r)
        return self.as_uint(shifted), r

    def _reduce_pi_large(self, x: Expr) -> tuple[Expr, Expr]:
        """The same for any finite x, after Payne and Hanek: only the bits of 2/π that matter are multiplied."""
        width, words = self.bits, two_over_pi(self.bits)
        bits = self.as_uint(_abs(x))
        m = (bits & self.u((1 << self.mantissa) - 1)) | self.u(1 << self.mantissa)
        # x = m·2^e; the bits of 2/π before position e - 2 only give multiples of 4
        start = Bitcast(bits >> self.mantissa, self.int) - self.i(self.bias + self.mantissa + 2 - width)
        position = Bitcast(start, self.uint)
        index, shift = position >> width.bit_length() - 1, position & self.u(width - 1)
        window = []
        tests = [eq(index, n) for n in range(len(words) - 4)]
        for k in range(4):
            word: Expr = self.u(0)
            for n, test in enumerate(tests):
                word = Select(test, self.u(words[n + k]), word)
            window.append(word)
        back = self.u(width) - shift
        hi, mid, lo = ((window[k] << shift) | (window[k + 1] >> back) for k in range(3))
        low = self._mul_high(m, lo)
        middle = m * mid + low
        carry = Select(lt(middle, low), self.u(1), self.u(0))
        top = m * hi + self._mul_high(m, mid) + carry
        quadrant = (top + self.u(1 << (width - 3))) >> (width - 2)
        fraction = Bitcast(top - (quadrant << (width - 2)), self.int)
        # fraction · π/2 rounded once: the product of the heads, of so few bits each, is exact
        size = 12 if self.f32 else 26
        half = 1 << width - 4 - size  # the tail has a sign, so that a small fraction is all tail and nothing cancels
        rest = ((fraction + self.i(half)) & self.i(2 * half - 1)) - self.i(half)
        head, tail = Convert(fraction - rest, self.dtype), Convert(rest, self.dtype)
        scale = 2.0 ** (2 - width)
        half_pi = math.floor(math.pi / 2 * 2.0 ** (size - 1)) * 2.0 ** (1 - size)
        rest_of_pi = float(Fraction(pi_bits(200), 2**201) - Fraction(half_pi))
        small = tail * (math.pi / 2 * scale) + Convert(middle, self.dtype) * (math.pi / 2 * scale * 2.0**-width)
        r = head * (half_pi * scale) + (head * (rest_of_pi * scale) + small)
        negative = lt(x, 0.0)
        return Select(negative, -quadrant, quadrant), Select(negative, -r, r)

    def _mul_high(self, a: Expr, b: Expr) -> Expr:
        """The high word of the product of two words."""
        half, mask = self.bits // 2, self.u((1 << self.bits // 2) - 1)
        a0, a1, b0, b1 = a & mask, a >> half, b & mask, b >> half
        cross = a1 * b0 + ((a0 * b0) >> half)
        return a1 * b1 + (cross >> half) + ((a0 * b1 + (cross & mask)) >> half)

    def sin_cos(self, r: Expr) -> tuple[Expr, Expr]:
        z = r * r
        return MulAdd(r * z, self.poly("sin", z), r), MulAdd(
            z * z, self.poly("cos", z), MulAdd(z, self.c(-0.5), self.c(1.0))
        )

    def _circular(self, name: str, x: Expr, moderate: Expr) -> Expr:
        """`moderate`, where x is that; else the function of MATH_LARGE with that name."""
        limit = 10000.0 if self.f32 else 1e6
        return Select(lt(_abs(x), limit) ^ Const(True, "bool"), Call(name, x), moderate, rare=True)

    def _large(self, x: Expr, finish: Callable[[Expr, Expr], Expr]) -> Expr:
        """`finish` of the quadrant and the rest of any finite x."""
        return Select(lt(_abs(x), INF), finish(*self._reduce_pi_large(x)), self.c(NAN))

    def sin(self, x: Expr) -> Expr:
        return self._circular("sin_large", x, self._sine_wide(x, 0))

    def cos(self, x: Expr) -> Expr:
        return self._circular("cos_large", x, self._sine_wide(x, 1))

    def sin_large(self, x: Expr, shift: int = 0) -> Expr:
        def finish(quadrant: Expr, r: Expr) -> Expr:
            q = quadrant + self.u(shift)
            s, c = self.sin_cos(r)
            value = Select(eq(q & self.u(1), 0), s, c)
            return self.as_float(self.as_uint(value) ^ ((q & self.u(2)) << (self.bits - 2)))

        return self._large(x, finish)

    def cos_large(self, x: Expr) -> Expr:
        return self.sin_large(x, 1)

    def _sine_wide(self, x: Expr, shift: int) -> Expr:
        """sin (shift 0) or cos (shift 1) of moderate x: relative to the nearest zero of the function, so that one
        polynomial suffices.
        """
        shifted = MulAdd(x, self.c(1 / math.pi), self.c(-0.5 * shift)) + self.magic
        k = (shifted - self.magic) * 2.0 + float(shift)  # x = k·π/2 + r
        r = x
        for part in pi_parts(self.f32):
            r = MulAdd(k, self.c(-part), r)
        z = r * r
        s = MulAdd(r * z, self.poly("sin_wide", z), r)
        turns = self.as_uint(shifted) + self.u(shift)
        value = self.as_float(self.as_uint(s) ^ (turns << (self.bits - 1)))
        return value if shift else Select(eq(x, 0.0), x, value)

    def tan(self, x: Expr) -> Expr:
        return Select(eq(x, 0.0), x, self._circular("tan_large", x, self._tangent(*self._reduce_pi(x))))

    def tan_large(self, x: Expr) -> Expr:
        return self._large(x, self._tangent)

    def _tangent(self, quadrant: Expr, r: Expr) -> Expr:
        s, c = self.sin_cos(r)
        odd = eq(quadrant & self.u(1), 1)
        return Select(odd, -c, s) / Select(odd, s, c)

    def _asin_small(self, a: Expr, z: Expr) -> Expr:
        return MulAdd(a * z, self.poly("asin", z), a)

    def _asin_parts(self, x: Expr) -> tuple[Expr, Expr]:
        """(|x| ≤ ½, asin of |x| there, else of √((1-|x|)/2))."""
        a = _abs(x)
        small = le(a, 0.5)
        z = Select(small, a * a, (1.0 - a) * 0.5)
        return small, self._asin_small(Select(small, a, _sqrt(z)), z)

    def asin(self, x: Expr) -> Expr:
        small, part = self._asin_parts(x)
        large = self.c(math.pi / 2) - (
            part * 2.0 - self.c(6.123233995736766e-17 if not self.f32 else -4.371139000186241e-08)
        )
        return self.copysign(Select(small, part, large), x)

    def acos(self, x: Expr) -> Expr:
        small, part = self._asin_parts(x)
        low = self.c(6.123233995736766e-17 if not self.f32 else -4.371139000186241e-08)
        near_half = self.c(math.pi / 2) - (Select(lt(x, 0.0), -part, part) - low)
        two = part * 2.0
        far = Select(lt(x, 0.0), self.c(math.pi) - (two - low * 2.0), two)
        return Select(small, near_half, far)

    def _atan_unit(self, a: Expr) -> Expr:
        """atan for 0 ≤ a ≤ 1."""
        upper = gt(a, math.sqrt(2) - 1)
        t = Select(upper, (a - 1.0) / (a + 1.0), a)
        z = t * t
        return MulAdd(t * z, self.poly("atan", z), t) + Select(upper, self.c(math.pi / 4), self.c(0.0))

    def atan(self, x: Expr) -> Expr:
        a = _abs(x)
        large = gt(a, 1.0)
        part = self._atan_unit(Select(large, 1.0 / a, a))
        return self.copysign(_abs(Select(large, self.c(math.pi / 2) - part, part)), x)

    def atan2(self, y: Expr, x: Expr) -> Expr:
        ay, ax = _abs(y), _abs(x)
        steep = gt(ay, ax)
        hi, lo = Select(steep, ay, ax), Select(steep, ax, ay)
        ratio = Select(eq(hi, lo), self.c(1.0), lo / hi)
        ratio = Select(eq(hi, 0.0), self.c(0.0), ratio)
        part = self._atan_unit(ratio)
        part = Select(steep, self.c(math.pi / 2) - part, part)
        left = lt(self.as_int(x), 0)  # -0.0 counts as negative
        part = Select(left, self.c(math.pi) - part, part)
        return Select(ne(x, x), x, Select(ne(y, y), y, self.copysign(part, y)))

    # roots and powers

    def rsqrt(self, x: Expr) -> Expr:
        return 1.0 / _sqrt(x)

    def cbrt(self, x: Expr) -> Expr:
        a = _abs(x)
        subnormal, huge = lt(a, self.tiny), gt(a, self.c(2.0**100 if self.f32 else 2.0**1000))
        scale = lambda x, small: Select(subnormal, x * 2.0**small, Select(huge, x * 2.0**-small, x))  # noqa: E731
        y = scale(a, 3 * 18)
        guess = Convert(self.as_uint(y) >> (self.bits - 32 if not self.f32 else 0), "u32")
        start = 0x2A5119F2 if self.f32 else 0x2A9F7893  # a third of the exponent, plus two thirds of the bias
        third = third_of(guess) + Const(start, "u32")
        t: Expr = self.as_float(third if self.f32 else Convert(third, "u64") << 32)
        for _ in range(2 if self.f32 else 3):
            cube = t * t * t
            t = t * ((cube + y * 2.0) / (cube * 2.0 + y))
        t = t - (t - y / (t * t)) * (1.0 / 3.0)  # one Newton step corrects the rounding of the above
        return Select(gt(a, 0.0) & lt(a, INF), self.copysign(scale(t, -18), x), x)

    def pow(self, x: Expr, y: Expr) -> Expr:
        a = _abs(x)
        body = self._pow_positive(a, y)
        whole = eq(Unary("trunc", y), y)
        half = y * 0.5
        odd = whole & ne(Unary("trunc", half), half)
        negative = lt(self.as_int(x), 0)
        result = Select(negative & odd, -body, body)
        result = Select(lt(x, 0.0) & ~whole & lt(a, INF), self.c(NAN), result)
        one = eq(y, 0.0) | eq(x, 1.0) | (eq(x, -1.0) & eq(_abs(y), INF))
        return Select(one, self.c(1.0), result)

    def _pow_positive(self, a: Expr, y: Expr) -> Expr:
        hi, lo = self.log_parts(a)  # so that the exponent keeps its low bits
        y_hi = self.head(y)
        y_lo = y - y_hi
        main = y_hi * hi
        rest = y_lo * hi + y * lo
        total = main + rest
        low = Select(lt(_abs(total), self.max_exp + 100.0), (main - total) + rest, self.c(0.0))
        if self.f32:
            value = self._exp_f32(total, low)
        else:
            value = self.exp(total) * (1.0 + low)
        finite = gt(a, 0.0) & lt(a, INF) & lt(_abs(y), 1e30 if self.f32 else 1e300)
        return Select(finite, value, self.exp(y * self.log(a)))

    def log_parts(self, a: Expr) -> tuple[Expr, Expr]:
        """(hi, lo): log(a) = hi + lo for positive finite a, and hi of so few bits that its product with a head is
        exact.
        """
        k, m = self.split(a)
        f = m - 1.0
        s = f / (f + 2.0)
        s_hi = self.head(s)
        d = f + 2.0
        d_hi = self.head(d)
        s_lo = ((f - s_hi * d_hi) - s_hi * (f - (d_hi - 2.0))) / d  # f = s·d exactly enough
        # log((1+s)/(1-s)) = 2s + ⅔s³ + …: y multiplies the error, so the second term is in two parts too
        z = s * s
        z_hi = self.head(s_hi * s_hi)
        z_lo = (s_hi * s_hi - z_hi) + s_lo * (s_hi * 2.0 + s_lo)
        cube = s_hi * z_hi
        cube_hi = self.head(cube)
        cube_lo = (cube - cube_hi) + (s_hi * z_lo + s_lo * z)
        second = cube_hi * self.two_thirds_hi
        second_lo = cube_hi * self.two_thirds_lo + cube_lo * (2.0 / 3.0)
        series = [2 / (2 * n + 5) for n in range(5 if self.f32 else 12)]
        tail = s * z * z * self.poly(series, z) + second_lo + s_lo * 2.0 + k * self.ln2_lo
        big = k * self.ln2_hi
        first = big + s_hi * 2.0
        both = first + second
        low = ((big - first) + s_hi * 2.0) + ((first - both) + second) + tail
        hi = self.head(both + low)
        return hi, (both - hi) + low

    def head(self, x: Expr) -> Expr:
        """x with the low half of its mantissa cleared."""
        return self.as_float(self.as_uint(x) & self.u((1 << self.bits) - (1 << self.low_bits)))

    # error function

    def _erfc_large(self, a: Expr) -> Expr:
        """erfc for a ≥ 1."""
        a = minimum_number(a, self.c(12.0 if self.f32 else 30.0))
        e, rest = self._exp_of_square(a, -1)
        return MulAdd(e, rest, e) * self._erfcx_large(a)

    def _erfcx_large(self, a: Expr) -> Expr:
        """erfcx for a from 1 up to 12 (f64: 30)."""
        return self.poly("erfcx", (a - 2.0) / (a + 2.0)) / (a * 2.0 + 1.0)

    def _exp_of_square(self, a: Expr, sign: int) -> tuple[Expr, Expr]:
        """(e, r): exp(sign·a²) is e·(1 + r), without the error that rounding a² would bring."""
        head = self.head(a)
        rest = (a - head) * (a + head) if sign > 0 else (head - a) * (head + a)  # small: exp of it is its Taylor series
        e = self.exp(head * head if sign > 0 else -(head * head))
        return e, rest * self.poly([1 / math.factorial(n) for n in range(1, 7)], rest)

    def _erf_excess(self, x: Expr) -> Expr:
        """erf(x) - x for |x| < 1."""
        first, *rest = self.p["erf"]
        return x * self.poly([first - 1.0, *rest], x * x)

    def erf(self, x: Expr) -> Expr:
        a = _abs(x)
        small = self._erf_excess(a) + a
        body = self.copysign(Select(lt(a, 1.0), small, 1.0 - self._erfc_large(a)), x)
        return Select(ne(x, x), x, body)

    def erfc(self, x: Expr) -> Expr:
        a = _abs(x)
        large = self._erfc_large(a)
        small = (1.0 - x) - self._erf_excess(x)
        body = Select(lt(a, 1.0), small, Select(lt(x, 0.0), 2.0 - large, large))
        return Select(ne(x, x), x, body)

    def erfcx(self, x: Expr) -> Expr:
        """exp(x²)·erfc(x)."""
        a = _abs(x)
        inner = self.exp(x * x) * ((1.0 - x) - self._erf_excess(x))
        limit = self.c(12.0 if self.f32 else 30.0)
        bounded = minimum_number(a, limit)
        large = self._erfcx_large(bounded)
        e, rest = self._exp_of_square(bounded, 1)
        inverse = 1.0 / a  # beyond the limit the asymptotic series (DLMF 7.12.1)
        series = [1.0]
        for n in range(1, 4 if self.f32 else 8):
            series.append(series[-1] * (0.5 - n))
        tail = inverse * self.poly(series, inverse * inverse) * (1 / math.sqrt(math.pi))
        right = Select(gt(a, limit), tail, large)
        body = Select(lt(a, 1.0), inner, Select(lt(x, 0.0), e * (rest * 2.0 + 2.0) - large, right))
        return Select(ne(x, x), x, body)

    def erf_inv(self, x: Expr) -> Expr:
        a = _abs(x)
        w = -self.log((1.0 - a) * (a + 1.0))
        central = self.poly(_ERFINV_CENTRAL, w - 2.5)
        root = _sqrt(w)
        tail = self.poly(_ERFINV_TAIL, root - 3.0)
        if not self.f32:  # which is nearer to 1, where the function is nearly linear
            tail = Select(lt(w, 16.0), tail, self.poly(_ERFINV_END, root - 5.0))
        y = Select(lt(w, 5.0), central, tail) * a
        if not self.f32:
            for _ in range(2):  # Halley steps on erf(y) = a, on the side where it isn't cancelled
                error = Select(lt(a, 0.5), self.erf(y) - a, (1.0 - a) - self.erfc(y))
                step = error / (self.exp(-(y * y)) * (2 / math.sqrt(math.pi)))
                y = y - step / (y * step + 1.0)
        y = Select(eq(a, 1.0), self.c(INF), Select(gt(a, 1.0), self.c(NAN), y))
        return Select(eq(x, 0.0) | ne(x, x), x, self.copysign(_abs(y), x))

    # neighbours

    def nextafter(self, x: Expr, y: Expr) -> Expr:
        bits = self.as_int(x)
        away = gt(x, 0.0) ^ lt(y, x)
        moved = self.as_float(Select(away, bits + 1, bits - 1))
        smallest = self.copysign(self.as_float(self.i(1)), y)
        result = Select(eq(x, 0.0), smallest, moved)
        return Select(ne(x, x), x, Select(ne(y, y), y, Select(eq(x, y), y, result)))

    def sign(self, x: Expr) -> Expr:
        return Select(gt(x, 0.0), self.c(1.0), Select(lt(x, 0.0), self.c(-1.0), x))


def minimum_number(a: Expr, b: Expr) -> Expr:
    """The smaller operand, b for NaN: one comparison, which is cheaper than a NaN-propagating min."""
    return Select(lt(a, b), a, b)


def maximum_number(a: Expr, b: Expr) -> Expr:
    """The larger, a for NaN."""
    return Select(lt(a, b), b, a)


def third_of(a: Expr) -> Expr:
    """About a third of a u32, by 1/3 = ¼ + 1/16 + …: a first guess needs no more."""
    quarter = (a >> 2) + (a >> 4)
    return quarter + (quarter >> 4) + (quarter >> 8) + (quarter >> 16)


_ERFINV_CENTRAL = [
    1.50140941,
    0.246640727,
    -0.00417768164,
    -0.00125372503,
    0.00021858087,
    -4.39150654e-06,
    -3.5233877e-06,
    3.43273939e-07,
    2.81022636e-08,
]
_ERFINV_TAIL = [
    2.83297682,
    1.00167406,
    0.00943887047,
    -0.0076224613,
    0.00573950773,
    -0.00367342844,
    0.00134934322,
    0.000100950558,
    -0.000200214257,
]
_ERFINV_END = [4.8498665, 1.0101172]
