"""The remainder of floats, C's fmod: always exact, since the result is a multiple of the smaller operand's last
place.
"""

from __future__ import annotations

from weft_wasm.elementary.double_double import Pair
from weft_wasm.elementary.functions import Float, minimum_number
from weft_wasm.ir.nodes import Convert, Expr, Select, Unary, eq, gt, lt

NAN = float("nan")
FEW = 23  # bits of a quotient that f64 multiplies exactly by half of the divisor
TOP = 2.0**1020  # from here on a multiple of the divisor may overflow
F32_BITS = 28  # of a quotient that f64 multiplies exactly by an f32
F32_SPAN = 277  # no f32 is this power of two times another


def remainder(a: Expr, b: Expr, f64: Float, f32: Float) -> Expr:
    """a - trunc(a / b)·b without rounding, with the sign of a."""
    of = f32 if a.dtype == "f32" else f64
    size, by = Unary("abs", a), Unary("abs", b)
    rest = (
        Convert(_of_f32(Convert(size, "f64"), Convert(by, "f64")), "f32")
        if a.dtype == "f32"
        else _of_f64(size, by, f64)
    )
    return of.copysign(Select(lt(size, by), size, rest), a)


def _of_f32(size: Expr, by: Expr) -> Expr:
    """Long division in f64: each step takes the highest 28 bits off the quotient."""

    def step(r: Expr, unit: Expr) -> Expr:
        return r - Unary("trunc", r / unit) * unit

    long = size
    for bits in range(F32_SPAN // F32_BITS * F32_BITS, 0, -F32_BITS):
        long = step(long, by * 2.0**bits)
    return step(Select(gt(size, by * 2.0**F32_BITS), long, size, rare=True), by)


def _of_f64(size: Expr, by: Expr, of: Float) -> Expr:
    # The nearest multiple of b is subtracted, not the one below: then the remainder has no more bits than b. A short
    # quotient times either half of b is exact.
    quotient = Unary("round_even", size / by)
    head = of.head(by)
    short = (size - quotient * head) - quotient * (by - head)
    long = gt(size, minimum_number(by * 2.0**FEW, of.c(TOP)))
    rest = Select(long, _by_powers(size, by, of), short, rare=True)
    return Select(lt(rest, 0.0), rest + by, rest)


def _by_powers(size: Expr, by: Expr, of: Float) -> Expr:
    """The same for any quotient of whole numbers: size = m·2^e·last, by = n·last, and 2^e modulo n is computed by
    squaring.
    """
    scaled, bits, _ = _whole(size, of)
    unit, by_bits, last = _whole(by, of)
    n = Pair(unit)
    inverse = 1.0 / unit

    def reduced(x: Expr) -> Expr:
        return x - Unary("round_even", x * inverse) * unit

    def product(x: Pair, y: Pair, factor: Expr | None = None) -> Expr:
        """x·y (times 1 or 2) modulo n, by the quotient's nearest float: wrong by 2 at most, which the second
        reduction finds.
        """
        both = x * y if factor is None else (x * y).scaled(factor)
        taken = Pair(Unary("round_even", both.hi * inverse)) * n
        return reduced((both.hi - taken.hi) + (both.rest - taken.rest))

    e = bits - by_bits
    power = of.two_to(e >> 6)  # 2^32 at most: less than n / 2
    for k in reversed(range(6)):
        odd = eq((e >> k) & of.i(1), 1)
        same = Pair(power)
        power = product(same, same, Select(odd, of.c(2.0), of.c(1.0)))
    rest = product(Pair(reduced(scaled)), Pair(power))
    # b was made normal, of which only the last step may be too small a number to be so
    rest = Select(lt(by, of.tiny), (rest * last) * 2.0**-54, rest * last)
    return Select(gt(by, 0.0) & lt(size, float("inf")), rest, of.c(NAN))


def _whole(x: Expr, of: Float) -> tuple[Expr, Expr, Expr]:
    """(m, e, m's last place): a whole number between 2^52 and 2^53 and an exponent with x = m·2^e, up to a constant; x
    positive and finite. The last place is that of 2^54·x if x is subnormal.
    """
    subnormal = lt(x, of.tiny)
    normal = Select(subnormal, x * 2.0**54, x)
    bits = of.as_int(normal)
    whole = of.as_float((bits & of.i((1 << 52) - 1)) | of.i(1075 << 52))
    return whole, (bits >> 52) - Select(subnormal, of.i(54), of.i(0)), normal / whole
