"""The functions of MATH_LARGE, each the same in all modules: what sine, cosine and tangent do with large numbers.

Making one takes longer than the rest of a small program. So `large_data.py` has the usual ones, and
tools/large_functions.py writes it anew after a change of the emitter; a test compares the two.
"""

from __future__ import annotations

import functools
import zlib
from base64 import b64decode
from itertools import accumulate, pairwise

from weft_wasm import elementary
from weft_wasm.binary.encode import V128
from weft_wasm.emit_wasm.function import Function
from weft_wasm.emit_wasm.large_data import PREPARED
from weft_wasm.emit_wasm.parts import Parts
from weft_wasm.emit_wasm.scope import Lanes
from weft_wasm.emit_wasm.tables import SCALAR
from weft_wasm.ir.nodes import Call, For, Var

Code = tuple[bytes, bytes]  # the types of the locals, one byte each, and the instructions


class _Nothing:
    """The functions of a function of MATH_LARGE, which calls no others."""

    def large(self, fn: str, dtype: str, lanes: int = 0) -> int:
        raise TypeError(f"{fn} is called by a function of MATH_LARGE")

    def takes(self, s: For) -> bool:
        raise TypeError("a function of MATH_LARGE has no loops")


@functools.cache
def large_code(fn: str, dtype: str, lanes: int, relaxed: bool) -> Code:
    """A function of one value (lanes 0), or of a vector of so many; relaxed: whether it may round products once."""
    if (dtype, lanes, relaxed) in PREPARED:
        return _prepared(dtype, lanes, relaxed)[fn]
    return make_large_code(fn, dtype, lanes, relaxed)


@functools.cache
def _prepared(dtype: str, lanes: int, relaxed: bool) -> dict[str, Code]:
    """The functions of large_data.py of one type, by name."""
    sizes, packed = PREPARED[dtype, lanes, relaxed]
    data = zlib.decompress(b64decode(packed))
    parts = [data[a:b] for a, b in pairwise(accumulate((n for pair in sizes.values() for n in pair), initial=0))]
    return dict(zip(sizes, zip(parts[::2], parts[1::2])))


def make_large_code(fn: str, dtype: str, lanes: int, relaxed: bool) -> Code:
    """The same, made by the emitter."""
    x = Var("x", dtype)
    function = Function([V128 if lanes else SCALAR[dtype]])
    parts = Parts(function, lambda a, b: False, frozenset(("relaxed-simd",) if relaxed else ()), _Nothing())
    value = elementary.function(Call(fn, x))
    if lanes:
        parts.scope.env[x], parts.scope.lanes = [0], Lanes(Var("i"), lanes, 1)
        parts.shared.open(value)
        parts.vectors.push(value, 0)
        parts.shared.close()
    else:
        parts.scope.env[x] = 0
        parts.scalars.alone(value)
    return bytes(function.local_types), bytes(function.code)
