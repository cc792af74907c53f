"""IR operations as WebAssembly instructions, for scalars and for SIMD lanes.

A scalar of a dtype lives in the Wasm type SCALAR[dtype]: narrow integers and bool as i32 in their own range, f16/bf16
as f32. In a vector loop every value has the same number of lanes, 4 or 2 (2 as soon as a 64-bit dtype takes part).
32-bit and narrower values use the first lanes as i32x4/f32x4, 64-bit ones i64x2/f64x2; a bool is a mask as wide as 16 /
lanes bytes.
"""

from __future__ import annotations

from weft_wasm.binary.encode import F32, F64, I32, I64, OP
from weft_wasm.ir.nodes import ITEMSIZE, SIGNED

SCALAR = {dtype: I32 for dtype in ("bool", "i8", "u8", "i16", "u16", "i32", "u32")}
SCALAR |= {"i64": I64, "u64": I64, "f32": F32, "f16": F32, "bf16": F32, "f64": F64}

# The dtype whose instructions a dtype borrows: narrow integers compute as i32/u32 and are wrapped afterwards.
CORE = {"bool": "u32", "i8": "i32", "i16": "i32", "u8": "u32", "u16": "u32", "f16": "f32", "bf16": "f32"}
CORE |= {d: d for d in ("i32", "u32", "i64", "u64", "f32", "f64")}
PREFIX = {"i32": "i32", "u32": "i32", "i64": "i64", "u64": "i64", "f32": "f32", "f64": "f64"}
SHAPE = {"i32": "i32x4", "u32": "i32x4", "i64": "i64x2", "u64": "i64x2", "f32": "f32x4", "f64": "f64x2"}

_SIGN_DEPENDENT = frozenset(("div", "rem", "shr", "lt", "le", "gt", "ge", "min", "max"))
_RENAME = {"round_even": "nearest", "popcount": "popcnt"}


def _instruction(op: str, core: str, shapes: dict[str, str]) -> bytes | None:
    name = f"{shapes[core]}.{_RENAME.get(op, op)}"
    if core in ("i32", "u32", "i64", "u64") and op in _SIGN_DEPENDENT:
        name += "_s" if core in SIGNED else "_u"
    return OP.get(name)


_ALL_OPS = (
    "add sub mul div rem min max and or xor shl shr eq ne lt le gt ge neg abs floor ceil trunc round_even sqrt"
    " popcount clz"
).split()
SCALAR_OP = {(op, c): code for c in PREFIX for op in _ALL_OPS if (code := _instruction(op, c, PREFIX))}
VECTOR_OP = {(op, c): code for c in SHAPE for op in _ALL_OPS if (code := _instruction(op, c, SHAPE))}
VECTOR_SHIFT: dict[tuple[str, str], bytes] = {}  # by one amount for all lanes
for _c in ("i32", "u32", "i64", "u64"):
    VECTOR_OP |= {(op, _c): OP[f"v128.{op}"] for op in ("and", "or", "xor")}
    VECTOR_SHIFT |= {(op, _c): VECTOR_OP.pop((op, _c)) for op in ("shl", "shr")}
for _c in ("u32", "u64"):
    VECTOR_OP.pop(("abs", _c))

# (bytes in memory, signed) -> scalar load; stores by bytes.
LOAD = {
    "bool": OP["i32.load8_u"],
    "i8": OP["i32.load8_s"],
    "u8": OP["i32.load8_u"],
    "i16": OP["i32.load16_s"],
    "u16": OP["i32.load16_u"],
    "f16": OP["i32.load16_u"],
    "bf16": OP["i32.load16_u"],
    "i32": OP["i32.load"],
    "u32": OP["i32.load"],
    "i64": OP["i64.load"],
    "u64": OP["i64.load"],
    "f32": OP["f32.load"],
    "f64": OP["f64.load"],
}
STORE = {
    "bool": OP["i32.store8"],
    "i8": OP["i32.store8"],
    "u8": OP["i32.store8"],
    "i16": OP["i32.store16"],
    "u16": OP["i32.store16"],
    "f16": OP["i32.store16"],
    "bf16": OP["i32.store16"],
    "i32": OP["i32.store"],
    "u32": OP["i32.store"],
    "i64": OP["i64.store"],
    "u64": OP["i64.store"],
    "f32": OP["f32.store"],
    "f64": OP["f64.store"],
}
LANE_BYTES_LOAD = {4: OP["v128.load32_lane"], 8: OP["v128.load64_lane"]}
LANE_BYTES_STORE = {
    1: OP["v128.store8_lane"],
    2: OP["v128.store16_lane"],
    4: OP["v128.store32_lane"],
    8: OP["v128.store64_lane"],
}
LANE_ZERO_LOAD = {4: OP["v128.load32_zero"], 8: OP["v128.load64_zero"]}

SPLAT = {c: OP[f"{s}.splat"] for c, s in SHAPE.items()}
EXTRACT = {c: OP[f"{s}.extract_lane"] for c, s in SHAPE.items()}
REPLACE = {c: OP[f"{s}.replace_lane"] for c, s in SHAPE.items()}


def scalar_convert(src: str, dst: str) -> bytes:
    """Instructions that convert between core dtypes (not bool, not narrow)."""
    s, d = PREFIX[src], PREFIX[dst]
    sign_src, sign_dst = ("s" if src in SIGNED else "u"), ("s" if dst in SIGNED else "u")
    if s == d:
        return b""
    if d in ("f32", "f64"):
        if s in ("f32", "f64"):
            return OP["f64.promote_f32"] if d == "f64" else OP["f32.demote_f64"]
        return OP[f"{d}.convert_{s}_{sign_src}"]
    if s in ("f32", "f64"):
        return OP[f"{d}.trunc_sat_{s}_{sign_dst}"]
    return OP["i32.wrap_i64"] if d == "i32" else OP[f"i64.extend_i32_{sign_src}"]


def vector_convert(src: str, dst: str) -> bytes | None:
    """The same for lanes (4 lanes for 32-bit pairs, 2 if 64 bits take part); None: there is no such instruction, use
    one lane at a time.
    """
    s, d = PREFIX[src], PREFIX[dst]
    if s == d:
        return b""
    sign_src, sign_dst = ("s" if src in SIGNED else "u"), ("s" if dst in SIGNED else "u")
    table = {
        ("i32", "f32"): f"f32x4.convert_i32x4_{sign_src}",
        ("f32", "i32"): f"i32x4.trunc_sat_f32x4_{sign_dst}",
        ("f32", "f64"): "f64x2.promote_low_f32x4",
        ("f64", "f32"): "f32x4.demote_f64x2_zero",
        ("i32", "f64"): f"f64x2.convert_low_i32x4_{sign_src}",
        ("f64", "i32"): f"i32x4.trunc_sat_f64x2_{sign_dst}_zero",
        ("i32", "i64"): f"i64x2.extend_low_i32x4_{sign_src}",
    }
    name = table.get((s, d))
    return OP[name] if name else None


def shuffle_words(lanes: list[int], width: int = 4) -> bytes:
    """i8x16.shuffle of (x, y) that moves the given lanes of `width` bytes to the front; lanes of y are numbered after
    those of x.
    """
    taken = [lane * width + b for lane in lanes for b in range(width)]
    return OP["i8x16.shuffle"] + bytes((taken + [0] * 16)[:16])


WRAP_BITS = {d: 32 - 8 * ITEMSIZE[d] for d in ("i8", "u8", "i16", "u16")}
# operations after which a narrow integer may be out of its range
WRAPPED = frozenset(("add", "sub", "mul", "neg", "shl", "not", "div", "abs"))
