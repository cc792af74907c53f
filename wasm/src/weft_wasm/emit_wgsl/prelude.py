"""WGSL functions that give operations the loop IR's semantics where the language leaves them open.

WGSL lets an implementation assume that NaN and infinity never occur, reassociate float sums, and flush subnormals. An
integer division by zero or a long shift has other results than in XLA, and a constant expression may not overflow. So
NaN is tested in the bits, values that must not be folded pass through `zero` (a word that is 0, but known only when the
kernel runs), and the other operations are written out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_COMPARE = {"eq": "==", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}

FUNCTIONS: dict[str, str] = {
    # values that the compiler must not change
    "as_f32": "fn as_f32(bits: u32) -> f32 { return bitcast<f32>(bits ^ zero); }",
    "keep_f32": "fn keep_f32(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ zero); }",
    "keep_i32": "fn keep_i32(x: i32) -> i32 { return x ^ bitcast<i32>(zero); }",
    "keep_u32": "fn keep_u32(x: u32) -> u32 { return x ^ zero; }",
    "keep_bool": "fn keep_bool(x: bool) -> bool { return x != (zero != 0u); }",
    # floats
    "is_nan": "fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }",
    # Mesa 22 miscompiles the built-in function below a select
    "abs_f32": "fn abs_f32(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) & 0x7fffffffu); }",
    "total_order": "fn total_order(x: f32) -> i32 { let b = bitcast<i32>(x); return b ^ ((b >> 31u) & 0x7fffffff); }",
    "order": "fn order(x: f32) -> i32 { let b = bitcast<i32>(x); return select(b, -(b & 0x7fffffff), b < 0); }",
    "min_f32": (
        """fn min_f32(a: f32, b: f32) -> f32 {
  let least = select(b, a, total_order(a) < total_order(b));
  return select(select(least, b, is_nan(b)), a, is_nan(a));
}"""
    ),
    "max_f32": (
        """fn max_f32(a: f32, b: f32) -> f32 {
  let greatest = select(b, a, total_order(a) > total_order(b));
  return select(select(greatest, b, is_nan(b)), a, is_nan(a));
}"""
    ),
    # C's fmod, exactly: long division of the mantissas
    "rem_f32": (
        """fn rem_f32(a: f32, b: f32) -> f32 {
  let sign = bitcast<u32>(a) & 0x80000000u;
  var x = bitcast<u32>(a) & 0x7fffffffu;
  var y = bitcast<u32>(b) & 0x7fffffffu;
  if (x >= 0x7f800000u || y > 0x7f800000u || y == 0u) { return as_f32(0x7fc00000u); }
  if (x < y) { return a; }
  var ex = i32(x >> 23u);
  var ey = i32(y >> 23u);
  if (ex == 0) { let s = countLeadingZeros(x) - 8u; x = x << s; ex = 1 - i32(s); }
  else { x = (x & 0x7fffffu) | 0x800000u; }
  if (ey == 0) { let s = countLeadingZeros(y) - 8u; y = y << s; ey = 1 - i32(s); }
  else { y = (y & 0x7fffffu) | 0x800000u; }
  for (; ex > ey; ex--) {
    if (x >= y) { x = x - y; }
    x = x << 1u;
  }
  if (x >= y) { x = x - y; }
  if (x == 0u) { return as_f32(sign); }
  let s = countLeadingZeros(x) - 8u;
  x = x << s;
  ex = ex - i32(s);
  if (ex > 0) { return as_f32(sign | ((x & 0x7fffffu) | (u32(ex) << 23u))); }
  return as_f32(sign | (x >> u32(1 - ex)));
}"""
    ),
    "f32_to_i32": (
        """fn f32_to_i32(x: f32) -> i32 {
  let inside = i32(select(x, 0.0f, is_nan(x) | (order(x) >= 0x4f000000) | (order(x) <= -0x4f000000)));
  let above_least = select(inside, i32(0x80000000u), order(x) <= -0x4f000000);
  return select(select(above_least, 0x7fffffff, order(x) >= 0x4f000000), 0, is_nan(x));
}"""
    ),
    "f32_to_u32": (
        """fn f32_to_u32(x: f32) -> u32 {
  let inside = u32(select(x, 0.0f, is_nan(x) | (order(x) >= 0x4f800000) | (order(x) <= 0)));
  return select(select(inside, 0xffffffffu, order(x) >= 0x4f800000), 0u, is_nan(x));
}"""
    ),
    # integers
    "div_i32": (
        """fn div_i32(a: i32, b: i32) -> i32 {
  let safe = (b != 0) & ((b != -1) | (a != i32(0x80000000u)));
  return select(select(a, -1, b == 0), a / select(1, b, safe), safe);
}"""
    ),
    "div_u32": "fn div_u32(a: u32, b: u32) -> u32 { return select(0xffffffffu, a / select(1u, b, b != 0u), b != 0u); }",
    "rem_i32": (
        """fn rem_i32(a: i32, b: i32) -> i32 {
  let safe = (b != 0) & (b != -1);
  let d = select(1, b, safe);
  return select(select(a, 0, b == -1), a - (a / d) * d, safe);
}"""
    ),
    "rem_u32": "fn rem_u32(a: u32, b: u32) -> u32 { return select(a, a % select(1u, b, b != 0u), b != 0u); }",
    "shl_i32": "fn shl_i32(a: i32, n: u32) -> i32 { return select(0, a << (n & 31u), n < 32u); }",
    "shl_u32": "fn shl_u32(a: u32, n: u32) -> u32 { return select(0u, a << (n & 31u), n < 32u); }",
    "shr_i32": "fn shr_i32(a: i32, n: u32) -> i32 { return a >> min(n, 31u); }",
    "shr_u32": "fn shr_u32(a: u32, n: u32) -> u32 { return select(0u, a >> (n & 31u), n < 32u); }",
}
for _name, _symbol in _COMPARE.items():
    # `_c`: the right side is a finite constant; `_x`: it may be an infinity that the compiler knows
    FUNCTIONS[f"{_name}_f32"] = (
        f"fn {_name}_f32(a: f32, b: f32) -> bool {{ return (a {_symbol} b) & !is_nan(a) & !is_nan(b); }}"
    )
    FUNCTIONS[f"{_name}_f32_c"] = f"fn {_name}_f32_c(a: f32, b: f32) -> bool {{ return (a {_symbol} b) & !is_nan(a); }}"
    FUNCTIONS[f"{_name}_f32_x"] = (
        f"fn {_name}_f32_x(a: f32, b: f32) -> bool {{ return (order(a) {_symbol} order(b)) & !is_nan(a) &"
        " !is_nan(b); }"
    )

_ORDER = {name: k for k, name in enumerate(FUNCTIONS)}
_CALL = re.compile(r"\b([a-z_][a-z0-9_]*)\(")
_NEEDS = {name: {f for f in _CALL.findall(text) if f in FUNCTIONS and f != name} for name, text in FUNCTIONS.items()}


def texts(names: Iterable[str]) -> list[str]:
    """The functions and those that they call, in an order that does not depend on that of the names."""
    wanted, pending = set(), list(names)
    while pending:
        name = pending.pop()
        if name not in wanted:
            wanted.add(name)
            pending.extend(_NEEDS[name])
    return [FUNCTIONS[name] for name in sorted(wanted, key=_ORDER.__getitem__)]
