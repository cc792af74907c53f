"""Operations that targets lack, written in the loop IR: elementary functions, float remainder, half-precision
storage.

`needs_expansion(e)` says whether an emitter without an instruction for e should use `expand(e)`, an equivalent DAG of
plain arithmetic (no branches, so it vectorises; slow paths are `Select(rare=True)`). Error bounds, tested in
tests/kernels/test_scalar_math.py, are in elementary/.
"""

from __future__ import annotations

from weft_wasm import elementary
from weft_wasm.ir.nodes import (
    STORAGE_FLOATS,
    Binary,
    Bitcast,
    Call,
    Const,
    Convert,
    Expr,
    Load,
    Select,
    Unary,
    bitcast,
    convert,
    ge,
    gt,
    lt,
    maximum,
    minimum,
    ne,
)


def needs_expansion(e: Expr) -> bool:
    """Whether e is written in other nodes rather than emitted."""
    if type(e) is Call:
        return True
    if type(e) is Unary:
        return e.op == "round_away"
    if type(e) is Binary:
        return e.op == "rem" and e.dtype in ("f32", "f64")
    if type(e) is Load:
        return e.dtype in STORAGE_FLOATS
    if type(e) is Convert:
        return (e.dtype in STORAGE_FLOATS and e.x.dtype != e.dtype) or (
            e.x.dtype in STORAGE_FLOATS and e.dtype != "f32"
        )
    return type(e) is Bitcast and (e.dtype in STORAGE_FLOATS or e.x.dtype in STORAGE_FLOATS)


def expand(e: Expr, f64: bool = True) -> Expr:
    """e in simpler nodes (which may need expansion again). f64: whether the target has that dtype."""
    if type(e) is Call:
        return elementary.function(e, f64)
    if type(e) is Unary:
        return round_away(e.x)
    if type(e) is Binary:
        return elementary.remainder(e)
    if type(e) is Convert:
        if e.x.dtype in STORAGE_FLOATS:
            return Convert(Convert(e.x, "f32"), e.dtype)
        return nearest(convert(e.x, "f32"), e.dtype)
    if type(e) is not Bitcast:
        raise TypeError(f"{e!r} needs no expansion")
    if e.dtype in STORAGE_FLOATS:
        return decode_bits(convert(bitcast(e.x, "u16"), "u32"), e.dtype)
    return bitcast(encode(e.x), e.dtype)


def u32(x: int) -> Const:
    return Const(x, "u32")


# ---- half-precision storage: a value of dtype f16/bf16 is held as the f32 it equals


def decode(load: Expr, dtype: str) -> Expr:
    """The value of 16 stored bits (u16)."""
    return decode_bits(convert(load, "u32"), dtype)


def encode(value: Expr) -> Expr:
    """The 16 bits (u16) of an f16/bf16 value."""
    return convert(encode_bits(Convert(value, "f32"), value.dtype), "u16")


def decode_bits(bits: Expr, dtype: str) -> Expr:
    """u32 bits → value."""
    if dtype == "bf16":
        return Bitcast(bits << 16, "f32")
    sign = (bits & 0x8000) << 16
    body = bits & 0x7FFF
    # shift exponent and mantissa into place, then rebias by a multiplication, which is right for subnormals too
    scaled = Bitcast(body << 13, "f32") * Const(2.0**112, "f32")
    special = Bitcast((body << 13) | u32(0x7F800000), "f32")
    return Bitcast(Bitcast(Select(ge(body, 0x7C00), special, scaled), "u32") | sign, "f32")


def encode_bits(x: Expr, dtype: str) -> Expr:
    """f32 → u32 bits of the nearest f16/bf16 (ties to even)."""
    bits = Bitcast(x, "u32")
    if dtype == "bf16":
        rounded = (bits + u32(0x7FFF) + ((bits >> 16) & 1)) >> 16
        return Select(ne(x, x), ((bits >> 16) & 0x8000) | u32(0x7FC0), rounded)
    power, large = _above(bits)
    # the sum counts f16's steps above the power of two; where that is the smallest, the code is this number
    steps = Bitcast(x + large, "u32") - Bitcast(large, "u32")
    code = minimum((power >> 13) - u32(113 << 10) + steps, u32(0x7C00))
    return Select(gt(bits & 0x7FFFFFFF, 0x7F800000), u32(0x7E00), code) | ((bits >> 16) & 0x8000)


def _above(bits: Expr) -> tuple[Expr, Expr]:
    """(bits of the power of two below an f32, between 2^-14 and 2^16; 2^13 times that with the number's sign). To
    their sum the processor rounds as f16 does.
    """
    power = minimum(maximum(bits & u32(0x7F800000), u32(113 << 23)), u32(143 << 23))
    return power, Bitcast((power + u32(13 << 23)) | (bits & u32(0x80000000)), "f32")


def nearest(x: Expr, dtype: str) -> Expr:
    """f32 → the nearest f16/bf16 value as f32 (ties to even): the same as encoding and decoding, in fewer steps."""
    bits = Bitcast(x, "u32")
    if dtype == "bf16":
        return Select(ne(x, x), x, Bitcast((bits + u32(0x7FFF) + ((bits >> 16) & 1)) & u32(0xFFFF0000), "f32"))
    _, large = _above(bits)
    value = (((x + large) - large) * Const(2.0**112, "f32")) * Const(2.0**-112, "f32")  # from 2^16 on infinite
    return Bitcast(Bitcast(value, "u32") | (bits & u32(0x80000000)), "f32")  # a difference of zero has lost its sign


# ---- small things


def round_away(x: Expr) -> Expr:
    """Nearest integer, ties away from zero."""
    one = Const(1.0, x.dtype)
    whole = Unary("trunc", x)
    step = Select(lt(x, 0.0), -one, one)
    return Select(ge(Unary("abs", x - whole), 0.5), whole + step, whole)
