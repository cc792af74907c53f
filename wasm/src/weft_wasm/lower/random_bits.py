"""threefry2x32 as one expression for each word: 20 rounds without memory."""

from __future__ import annotations

from typing import Sequence

from weft_wasm.ir.nodes import Binary, Const, Expr
from weft_wasm.lower import graph

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
COST, DEPTH = 120, 72

graph.known.add("threefry2x32")


def threefry2x32(args: Sequence[Expr]) -> tuple[Expr, Expr]:
    """The two words of the hash of (x1, x2) under the key (k1, k2)."""
    k1, k2, x1, x2 = args

    def u32(v: int) -> Const:
        return Const(v, "u32")

    def rotate(x: Expr, r: int) -> Expr:
        return Binary("or", Binary("shl", x, u32(r)), Binary("shr", x, u32(32 - r)))

    keys = (k1, k2, Binary("xor", Binary("xor", k1, k2), u32(PARITY)))
    x1, x2 = Binary("add", x1, k1), Binary("add", x2, k2)
    for i in range(5):
        for r in ROTATIONS[i % 2]:
            x1 = Binary("add", x1, x2)
            x2 = Binary("xor", rotate(x2, r), x1)
        x1 = Binary("add", x1, keys[(i + 1) % 3])
        x2 = Binary("add", Binary("add", x2, keys[(i + 2) % 3]), u32(i + 1))
    return x1, x2
