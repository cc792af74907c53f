"""Lanes of the vector on the stack: one scalar in all of them, one of them as a scalar. A bool is a mask as wide as
a lane.
"""

from __future__ import annotations

from weft_wasm.binary import encode
from weft_wasm.emit_wasm.function import Function
from weft_wasm.emit_wasm.tables import CORE, EXTRACT, REPLACE, SPLAT
from weft_wasm.binary.encode import OP


def to_mask(fn: Function, lanes: int) -> None:
    """An i32 0/1 as the lane value 0 or all ones."""
    fn.code += encode.i32_const(-1) + OP["i32.mul"]
    if lanes == 2:
        fn.code += OP["i64.extend_i32_s"]


def splat(fn: Function, dtype: str, lanes: int) -> None:
    """The scalar on the stack in all lanes."""
    if dtype == "bool":
        to_mask(fn, lanes)
        fn.code += SPLAT["i64" if lanes == 2 else "i32"]
    else:
        fn.code += SPLAT[CORE[dtype]]


def extract(fn: Function, dtype: str, lane: int, lanes: int) -> None:
    """One lane of the vector on the stack as a scalar."""
    if dtype == "bool":
        fn.code += EXTRACT["i32"] + bytes((lane * (4 // lanes),)) + encode.i32_const(1) + OP["i32.and"]
    else:
        fn.code += EXTRACT[CORE[dtype]] + bytes((lane,))


def insert(fn: Function, dtype: str, lane: int, lanes: int) -> None:
    """The scalar on the stack into a lane of the vector below it."""
    if dtype == "bool":
        to_mask(fn, lanes)
        fn.code += REPLACE["i64" if lanes == 2 else "i32"] + bytes((lane,))
    else:
        fn.code += REPLACE[CORE[dtype]] + bytes((lane,))
