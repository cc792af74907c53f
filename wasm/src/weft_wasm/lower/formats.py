"""Numbers of eight bits and fewer: from a byte to its number, and back.

In memory each takes a byte, as on the host, with zeros in the bits above. Integers are computed in i8 or u8, floats in
f32. Every operation's result is rounded to its format, so that programs give the same results as if each operation were
computed in that format.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from weft_wasm.ir import nodes
from weft_wasm.ir.nodes import Binary, Bitcast, Const, Convert, Expr, Select, Unary


class Int(NamedTuple):
    bits: int
    signed: bool


class Float(NamedTuple):
    """exponent: its bits and bias; special: "ieee" (infinities and NaN), "fn" (NaN is all ones), "fnuz" (NaN is -0),
    "none" (neither: numbers saturate).
    """

    exponent: int
    mantissa: int
    bias: int
    special: str


FORMATS: dict[str, Int | Float] = {
    "i4": Int(4, True),
    "u4": Int(4, False),
    "i2": Int(2, True),
    "u2": Int(2, False),
    "f4e2m1fn": Float(2, 1, 1, "none"),
    "f8e3m4": Float(3, 4, 3, "ieee"),
    "f8e4m3": Float(4, 3, 7, "ieee"),
    "f8e5m2": Float(5, 2, 15, "ieee"),
    "f8e4m3fn": Float(4, 3, 7, "fn"),
    "f8e4m3fnuz": Float(4, 3, 8, "fnuz"),
    "f8e4m3b11fnuz": Float(4, 3, 11, "fnuz"),
    "f8e5m2fnuz": Float(5, 2, 16, "fnuz"),
    "f8e8m0fnu": Float(8, 0, 127, "power"),
}
# Operations whose result is an operand's, or as small.
KEEPS = frozenset(
    ("select_n", "max", "min", "clamp", "rem", "convert_element_type", "reduce_precision", "sign", "nextafter")
)
# likewise of f16 and bf16; an integer's negative may not fit
EXACT = frozenset(("neg", "abs", "floor", "ceil", "round"))


def computed(name: str) -> str:
    """The dtype that a format is computed in."""
    kind = FORMATS[name]
    return "f32" if isinstance(kind, Float) else "i8" if kind.signed else "u8"


def u32(value: int) -> Const:
    return Const(value, "u32")


def decode(byte: Expr, name: str) -> Expr:
    """The number that a u8 represents."""
    kind = FORMATS[name]
    if isinstance(kind, Int):
        return round_to_format(Bitcast(byte, computed(name)), name)
    bits: Expr = Convert(byte, "u32")
    if kind.special == "power":
        power = Select(nodes.eq(bits, u32(0)), Const(2.0**-127, "f32"), Bitcast(Binary("shl", bits, u32(23)), "f32"))
        return Select(nodes.eq(bits, u32(255)), Const(math.nan, "f32"), power)
    e, m, bias, special = kind
    size = Binary("and", bits, u32((1 << (e + m)) - 1))
    normal = Bitcast(nodes.add(Binary("shl", size, u32(23 - m)), u32((127 - bias) << 23)), "f32")
    small = nodes.mul(Convert(Bitcast(size, "i32"), "f32"), 2.0 ** (1 - bias - m))
    value: Expr = Select(nodes.lt(size, u32(1 << m)), small, normal)
    if special == "ieee":
        top = ((1 << e) - 1) << m
        value = Select(
            nodes.ge(size, u32(top)),
            Select(nodes.eq(size, u32(top)), Const(math.inf, "f32"), Const(math.nan, "f32")),
            value,
        )
    elif special == "fn":
        value = Select(nodes.eq(size, u32((1 << (e + m)) - 1)), Const(math.nan, "f32"), value)
    sign = Binary("and", bits, u32(1 << (e + m)))
    value = Select(nodes.ne(sign, u32(0)), Unary("neg", value), value)
    return Select(nodes.eq(bits, u32(128)), Const(math.nan, "f32"), value) if special == "fnuz" else value


def encode(x: Expr, name: str) -> Expr:
    """The u8 of a computed number: the nearest, ties to even."""
    kind = FORMATS[name]
    if isinstance(kind, Int):
        return Binary("and", Bitcast(x, "u8"), Const((1 << kind.bits) - 1, "u8"))
    bits = Bitcast(x, "u32")
    size = Binary("and", bits, u32(0x7FFFFFFF))
    nan = nodes.ne(x, x)
    if kind.special == "power":
        up = Binary("shr", nodes.add(size, u32(0x400000)), u32(23))  # halfway between two powers goes to the larger
        low = Select(nodes.lt(size, u32(0x00400000)), u32(255), Select(nodes.lt(size, u32(0x00600000)), u32(0), u32(1)))
        code = Select(nodes.lt(size, u32(0x00800000)), low, up)
        code = Select(Binary("or", nan, nodes.le(x, Const(0.0, "f32"))), u32(255), Binary("min", code, u32(255)))
        return Convert(code, "u8")
    e, m, bias, special = kind
    drop = 23 - m
    last = Binary("and", Binary("shr", size, u32(drop)), u32(1))
    rounded = Binary("shr", nodes.add(size, nodes.add(last, u32((1 << (drop - 1)) - 1))), u32(drop))
    normal = nodes.sub(rounded, u32((127 - bias) << m))
    small = Bitcast(
        Convert(
            Unary(
                "round_even",
                nodes.mul(Binary("min", Unary("abs", x), Const(2.0 ** (1 - bias), "f32")), 2.0 ** (bias - 1 + m)),
            ),
            "i32",
        ),
        "u32",
    )
    code = Select(nodes.lt(size, u32((128 - bias) << 23)), small, normal)
    top = (1 << (e + m)) - 1
    infinite = ((1 << e) - 1) << m
    most = {"ieee": infinite - 1, "fn": top - 1, "fnuz": top, "none": top}[special]
    over = {"ieee": infinite, "fn": top, "fnuz": 1 << (e + m), "none": top}[special]
    large = Binary("or", nodes.gt(code, u32(most)), nodes.ge(size, u32(0x7F800000)))
    code = Select(large, u32(over), code)
    sign = Binary("shl", Binary("shr", bits, u32(31)), u32(e + m))
    if special == "fnuz":  # neither -0 nor a NaN with a sign
        none = Binary("or", nodes.eq(code, u32(0)), nodes.eq(code, u32(over)))
        return Convert(Select(nan, u32(over), Binary("or", code, Select(none, u32(0), sign))), "u8")
    quiet = {"ieee": infinite | 1 << (m - 1), "fn": top, "none": 0}[special]
    return Convert(
        Select(nan, u32(quiet) if special != "none" else u32(1 << (e + m)), code)
        | (sign if special != "none" else Select(nan, u32(0), sign)),
        "u8",
    )


def round_to_format(x: Expr, name: str) -> Expr:
    """A computed number brought back into its format."""
    kind = FORMATS[name]
    if isinstance(kind, Float):
        return decode(encode(x, name), name)
    if not kind.signed:
        return Binary("and", x, Const((1 << kind.bits) - 1, "u8"))
    gap = Const(8 - kind.bits, "i8")
    return Binary("shr", Binary("shl", x, gap), gap)


def converted(x: Expr, name: str) -> Expr:
    """A number of any dtype in a format; floats become integers by truncation, and stay within their range."""
    kind = FORMATS[name]
    if isinstance(kind, Float):
        return round_to_format(to_f32(x), name)
    if x.dtype in nodes.FLOATS:
        low, high = limits(name)
        x = Binary("min", Binary("max", x, Const(float(low), x.dtype)), Const(float(high), x.dtype))
    return round_to_format(nodes.convert(x, computed(name)), name)


def to_f32(x: Expr) -> Expr:
    """x as f32; of f64 rounded to odd, so that rounding once more is rounding once."""
    if x.dtype != "f64":
        return nodes.convert(x, "f32")
    near = Convert(x, "f32")
    back = Convert(near, "f64")
    bits = Bitcast(near, "u32")
    inexact = Binary(
        "and", nodes.ne(back, x), Binary("and", nodes.eq(Binary("and", bits, u32(1)), u32(0)), nodes.eq(x, x))
    )
    step = Select(nodes.gt(Unary("abs", x), Unary("abs", back)), u32(1), u32(0xFFFFFFFF))
    return Select(inexact, Bitcast(nodes.add(bits, step), "f32"), near)


def ends(name: str) -> tuple[float, float]:
    """The least and the greatest value of a format of floats: infinities, where it has them."""
    kind = FORMATS[name]
    if not isinstance(kind, Float):
        raise TypeError(f"{name} is not a format of floats")
    if kind.special == "ieee":
        return -math.inf, math.inf
    if kind.special == "power":
        return 2.0**-kind.bias, 2.0 ** (2**kind.exponent - 2 - kind.bias)
    lacking = 2 if kind.special == "fn" else 1  # its largest number is one less: that is NaN
    most = (2 - lacking * 2.0**-kind.mantissa) * 2.0 ** (2**kind.exponent - 1 - kind.bias)
    return -most, most


def limits(name: str) -> tuple[int, int]:
    """The least and the largest integer of a format."""
    kind = FORMATS[name]
    if not isinstance(kind, Int):
        raise TypeError(f"{name} is not a format of integers")
    bits, signed = kind
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
