"""Vector expressions: each node pushes the lanes of one vector of the surrounding vector loop."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from weft_wasm.binary import encode
from weft_wasm.emit_wasm import packing
from weft_wasm.emit_wasm.address import Addresses
from weft_wasm.emit_wasm.function import Function
from weft_wasm.emit_wasm.scalars import LargeFunctions, Scalars
from weft_wasm.emit_wasm.scope import Scope
from weft_wasm.emit_wasm.tables import (
    CORE,
    LANE_BYTES_LOAD,
    LANE_BYTES_STORE,
    LANE_ZERO_LOAD,
    SHAPE,
    STORE,
    VECTOR_OP,
    VECTOR_SHIFT,
    WRAP_BITS,
    WRAPPED,
    shuffle_words,
    vector_convert,
)
from weft_wasm.emit_wasm.values import Expansions, Held, Shared, constant_key
from weft_wasm.binary.encode import OP, V128, memarg
from weft_wasm.ir.nodes import (
    ITEMSIZE,
    SIGNED,
    Binary,
    Bitcast,
    Buffer,
    Call,
    Compare,
    Const,
    Convert,
    Expr,
    Load,
    Local,
    MulAdd,
    Select,
    Unary,
    Var,
    whole,
)
from weft_wasm.ir.traversal import operands
from weft_wasm.ir.kinds import covering, method


class Vectors:
    """Vector expressions of one function. `u` is the number of the vector in an iteration. relaxed: whether the
    target has relaxed SIMD.
    """

    def __init__(
        self,
        fn: Function,
        scope: Scope,
        shared: Shared,
        held: Held,
        expansions: Expansions,
        addresses: Addresses,
        scalars: Scalars,
        functions: LargeFunctions,
        relaxed: bool,
    ):
        self.fn, self.scope, self.shared, self.held, self.expansions = fn, scope, shared, held, expansions
        self.addresses, self.scalars, self.functions, self.relaxed = addresses, scalars, functions, relaxed

    def push(self, e: Expr, u: int) -> None:
        """Pushes vector number u of e."""
        if type(e) is Const:
            return self.constant(e)
        scope = self.scope
        if not (scope.vector.varying.get(e) or scope.varying(e)):
            return self._uniform(e)
        if type(e) is Var or type(e) is Local:
            bound = scope.env[e]
            if type(bound) is list:
                return self.fn.get(bound[u])
            self.scalars.push(e)  # the loop variable: its value in lane 0, plus 0 1 2 3
            first = u * scope.vector.lanes
            self.fn.code += (
                OP["i32x4.splat"] + OP["v128.const"] + struct.pack("<4i", *range(first, first + 4)) + OP["i32x4.add"]
            )
            return
        shared = self.shared
        local = shared.cache.get((e, u)) if shared.cache else None
        if local is not None:
            return self.fn.get(local)
        quotients = self.held.quotients
        instead = quotients[e] if e in quotients else self.expansions.of(e)
        if instead is not None:
            self.push(instead, u)
        else:
            _BY_KIND[type(e)](self, e, u)
        if shared.refs.get(e, 1) > 1:
            local = shared.temporary(V128)
            shared.cache[(e, u)] = local
            self.fn.tee(local)

    def _uniform(self, e: Expr) -> None:
        """Pushes a value that is the same in all lanes."""
        cache, held = self.shared.cache, self.held
        local = cache.get((e, "splat"))
        if local is None:
            local = held.splats.get(e)
        if local is not None:
            return self.fn.get(local)
        local = self.shared.temporary(V128)
        if type(e) is Load and ITEMSIZE[e.dtype] >= 4 and e not in held.scalars and (e, None) not in cache:
            offset = self.scalars.address(e.buffer, e.index)
            size = ITEMSIZE[e.dtype]
            self.fn.code += OP[f"v128.load{size * 8}_splat"] + memarg(size, offset)
        else:
            self.scalars.push(e)
            packing.splat(self.fn, e.dtype, self.scope.vector.lanes)
        if type(e) is not Var and type(e) is not Local:
            self.shared.cache[(e, "splat")] = local
            self.fn.tee(local)

    def constant(self, e: Const) -> None:
        local = self.held.constants.get(constant_key(e))
        if local is not None:
            return self.fn.get(local)
        kind = CORE[e.dtype]
        if e.dtype == "bool":
            data = (b"\xff" if e.value else b"\0") * 16
        elif kind == "f32":
            data = encode.f32_bytes(e.value) * 4
        elif kind == "f64":
            data = struct.pack("<d", e.value) * 2
        else:
            size = 8 if kind in ("i64", "u64") else 4
            data = (int(e.value) & ((1 << (8 * size)) - 1)).to_bytes(size, "little") * (16 // size)
        self.fn.code += OP["v128.const"] + data

    def _lanewise(self, e: Expr, evaluate: Callable[[int], None]) -> None:
        """evaluate(lane) pushes scalars; they become a vector."""
        lanes = self.scope.vector.lanes
        for lane in range(lanes):
            evaluate(lane)
            if lane == 0:
                packing.splat(self.fn, e.dtype, lanes)
            else:
                packing.insert(self.fn, e.dtype, lane, lanes)

    def _by_lanes(self, e: Expr, u: int) -> None:
        """An operation that SIMD lacks: its operands as vectors, the operation lane by lane."""
        for x in operands(e):
            if type(x) not in (Const, Var, Local) and self.scope.varying(x) and (x, u) not in self.shared.cache:
                self.push(x, u)
                if (x, u) in self.shared.cache:
                    self.fn.code += OP["drop"]
                else:
                    self.shared.cache[(x, u)] = local = self.shared.temporary(V128)
                    self.fn.set(local)
        self._lanewise(e, lambda lane: self.scalars.compute(e, (u, lane)))

    def _load(self, e: Load, u: int) -> None:
        lanes, dtype, code = self.scope.vector.lanes, e.dtype, self.fn.code
        size, stride = ITEMSIZE[dtype], self.addresses.stride(e.index)
        if stride != 1:
            if size >= 4:
                offsets = []
                for lane in reversed(range(lanes)):
                    extra = self.addresses.lane_extra(e.index, u, lane)
                    offsets.append(self.scalars.address(e.buffer, e.index, extra, (u, lane)))
                code += LANE_ZERO_LOAD[size] + memarg(size, offsets.pop())
                for lane in range(1, lanes):
                    code += LANE_BYTES_LOAD[size] + memarg(size, offsets.pop()) + bytes((lane,))
                return
            return self._lanewise(e, lambda lane: self.scalars.load(e, (u, lane)))
        offset = self.scalars.address(e.buffer, e.index, u * lanes)
        if size * lanes == 16:
            code += OP["v128.load"] + memarg(16, offset)
        elif size == 4:
            code += OP["v128.load64_zero"] + memarg(8, offset)
        elif size == 2:
            sign = "s" if dtype in SIGNED else "u"
            if lanes == 4:
                code += OP[f"v128.load16x4_{sign}"] + memarg(8, offset)
            else:
                code += OP["v128.load32_zero"] + memarg(4, offset) + OP[f"i32x4.extend_low_i16x8_{sign}"]
        else:
            sign = "s" if dtype in SIGNED else "u"
            if lanes == 4:
                code += OP["v128.load32_zero"] + memarg(4, offset)
            else:
                code += OP["v128.load16_splat"] + memarg(2, offset)
            code += OP[f"i16x8.extend_low_i8x16_{sign}"] + OP[f"i32x4.extend_low_i16x8_{sign}"]
            if dtype == "bool":
                code += OP["i32x4.neg"]
                if lanes == 2:
                    code += OP["i64x2.extend_low_i32x4_s"]

    def store(self, buffer: Buffer, index: Expr, value: Expr, u: int) -> None:
        """Stores vector u of value."""
        lanes, code = self.scope.vector.lanes, self.fn.code
        size, dtype = ITEMSIZE[buffer.dtype], buffer.dtype
        if self.addresses.stride(index) == 1:
            offset = self.scalars.address(buffer, index, u * lanes)
            self.push(value, u)
            if dtype == "bool" and lanes == 2:
                self._twice(shuffle_words([0, 2]))
            if size * lanes == 16:
                code += OP["v128.store"] + memarg(16, offset)
                return
            if size < 4:
                if dtype == "bool":
                    code += OP["i32x4.neg"]
                self._twice(
                    OP["i8x16.shuffle"]
                    + bytes(
                        ((0, 4, 8, 12) if size == 1 else (0, 1, 4, 5, 8, 9, 12, 13)) + (0,) * (12 if size == 1 else 8)
                    )
                )
            code += LANE_BYTES_STORE[size * lanes] + memarg(size * lanes, offset) + b"\0"
            return
        held = self.shared.temporary(V128)
        self.push(value, u)
        self.fn.set(held)
        for lane in range(lanes):
            offset = self.scalars.address(buffer, index, self.addresses.lane_extra(index, u, lane), (u, lane))
            self.fn.get(held)
            packing.extract(self.fn, value.dtype, lane, lanes)
            code += STORE[dtype] + memarg(size, offset)

    def _twice(self, shuffle: bytes) -> None:
        held = self.shared.temporary(V128)
        self.fn.tee(held)
        self.fn.get(held)
        self.fn.code += shuffle

    def _wrap(self, dtype: str) -> None:
        if dtype in WRAP_BITS:
            amount = encode.i32_const(WRAP_BITS[dtype])
            self.fn.code += amount + OP["i32x4.shl"] + amount + OP["i32x4.shr_s" if dtype in SIGNED else "i32x4.shr_u"]

    def _unary(self, e: Unary, u: int) -> None:
        op, kind = e.op, CORE[e.dtype]
        if op == "not":
            self.push(e.x, u)
            self.fn.code += OP["v128.not"]
            return self._wrap(e.dtype) if e.dtype != "bool" else None
        if op == "abs" and kind in ("u32", "u64"):
            return self.push(e.x, u)
        code = VECTOR_OP.get((op, kind))
        if code is None:
            return self._by_lanes(e, u)
        self.push(e.x, u)
        self.fn.code += code
        if op in WRAPPED:
            self._wrap(e.dtype)

    def _binary(self, e: Binary, u: int) -> None:
        op, kind = e.op, CORE[e.dtype]
        if op in ("shl", "shr"):
            if type(e.b) is Const and 0 <= e.b.value < 8 * ITEMSIZE[e.dtype]:
                self.push(e.a, u)
                self.fn.const(whole(e.b))
                self.fn.code += VECTOR_SHIFT[(op, kind)]
                return self._wrap(e.dtype) if op == "shl" else None
            return self._by_lanes(e, u)
        if op in ("min", "max") and kind[0] == "f":
            if type(e.b) is Const and self._clip(e, e.a, e.b, u):
                return
            if type(e.a) is Const and type(e.b) is not Const and self._clip(e, e.b, e.a, u):
                return
        code = VECTOR_OP.get((op, kind))
        if code is None:
            return self._by_lanes(e, u)
        self.push(e.a, u)
        self.push(e.b, u)
        self.fn.code += code
        if op in WRAPPED:
            self._wrap(e.dtype)

    def _clip(self, e: Binary, x: Expr, c: Const, u: int) -> bool:
        """The larger or smaller of x and a constant, if that is `x < c ? c : x` (`c < x ? c : x`), which is one
        instruction on x86; the other forms take eight.
        """
        zero = str(float(c.value)) if c.value == 0 else ""
        if c.value != c.value or (e.op == "min" and zero == "-0.0"):
            return False
        self.push(x, u)
        self.push(c, u)
        self.fn.code += OP[f"{SHAPE[e.dtype]}.p{e.op}"]
        if e.op == "max" and zero == "0.0":  # of -0 and 0 it returned -0
            self.push(c, u)
            self.fn.code += OP[f"{SHAPE[e.dtype]}.add"]
        return True

    def _compare(self, e: Compare, u: int) -> None:
        op, dtype = e.op, e.a.dtype
        if dtype == "bool":
            if op not in ("eq", "ne"):
                return self._by_lanes(e, u)
            self.push(e.a, u)
            self.push(e.b, u)
            self.fn.code += OP["v128.xor"] + (OP["v128.not"] if op == "eq" else b"")
            return
        code = VECTOR_OP.get((op, CORE[dtype]))
        if code is None:
            return self._by_lanes(e, u)
        self.push(e.a, u)
        self.push(e.b, u)
        self.fn.code += code
        if self.scope.vector.lanes == 2 and ITEMSIZE[dtype] < 8:
            self.fn.code += OP["i64x2.extend_low_i32x4_s"]

    def _select(self, e: Select, u: int) -> None:
        if e.rare:
            return self._rare(e, u)
        least = _extremum(e)
        if least is not None:
            op, a, b = least
            self.push(a, u)
            self.push(b, u)
            self.fn.code += op
            return
        self.push(e.a, u)
        self.push(e.b, u)
        self.push(e.cond, u)
        self._narrow_mask(e.dtype)
        self._choose(e.dtype)

    def _narrow_mask(self, dtype: str) -> None:
        if self.scope.vector.lanes == 2 and dtype != "bool" and ITEMSIZE[dtype] < 8:
            self._twice(shuffle_words([0, 2]))

    def _choose(self, dtype: str) -> None:
        if self.relaxed and dtype != "bool":
            wide = self.scope.vector.lanes == 2 and ITEMSIZE[dtype] == 8
            self.fn.code += OP["i64x2.relaxed_laneselect" if wide else "i32x4.relaxed_laneselect"]
        else:
            self.fn.code += OP["v128.bitselect"]

    def _rare(self, e: Select, u: int) -> None:
        result, mask = self.shared.temporary(V128), self.shared.temporary(V128)
        self.push(e.b, u)
        self.fn.set(result)
        self.push(e.cond, u)
        self.fn.tee(mask)
        self.fn.code += OP["v128.any_true"] + OP["if"] + bytes((encode.VOID,))
        outer, self.shared.cache = self.shared.cache, dict(self.shared.cache)
        self.push(e.a, u)
        self.fn.get(result)
        self.fn.get(mask)
        self._narrow_mask(e.dtype)
        self._choose(e.dtype)
        self.fn.set(result)
        self.shared.cache = outer
        self.fn.code += OP["end"]
        self.fn.get(result)

    def _convert(self, e: Convert, u: int) -> None:
        src, dst, lanes, code = e.x.dtype, e.dtype, self.scope.vector.lanes, self.fn.code
        if dst == "bool":
            self.push(e.x, u)
            if src != "bool":
                self.push(Const(0, src), u)
                code += VECTOR_OP[("ne", CORE[src])]
                if lanes == 2 and ITEMSIZE[src] < 8:
                    code += OP["i64x2.extend_low_i32x4_s"]
            return
        if src == "bool":
            self.push(e.x, u)
            self._narrow_mask(dst)
            self.push(Const(1, dst), u)
            code += OP["v128.and"]
            return
        if dst in WRAP_BITS and CORE[src][0] == "f":
            return self._by_lanes(e, u)
        if (CORE[src], CORE[dst]) in (("i64", "i32"), ("i64", "u32"), ("u64", "i32"), ("u64", "u32")):
            self.push(e.x, u)
            self._twice(shuffle_words([0, 2]))
            return self._wrap(dst)
        convert = vector_convert(CORE[src], CORE[dst])
        if convert is None:
            return self._by_lanes(e, u)
        self.push(e.x, u)
        code += convert
        self._wrap(dst)

    def _bitcast(self, e: Bitcast, u: int) -> None:
        self.push(e.x, u)
        self._wrap(e.dtype)

    def _muladd(self, e: MulAdd, u: int) -> None:
        shape = "f32x4" if e.dtype == "f32" else "f64x2"
        self.push(e.a, u)
        self.push(e.b, u)
        if self.relaxed:
            self.push(e.c, u)
            self.fn.code += OP[f"{shape}.relaxed_madd"]
        else:
            self.fn.code += OP[f"{shape}.mul"]
            self.push(e.c, u)
            self.fn.code += OP[f"{shape}.add"]

    def _call(self, e: Call, u: int) -> None:
        """A function of MATH_LARGE; all others are expanded."""
        for x in e.args:
            self.push(x, u)
        number = self.functions.large(e.fn, e.dtype, self.scope.vector.lanes)
        self.fn.code += OP["call"] + encode.unsigned(number)


def _extremum(e: Select) -> tuple[bytes, Expr, Expr] | None:
    """(instruction, a, b) for `a < b ? b : a` or `b < a ? b : a` of floats, each of which is one SIMD instruction."""
    test = e.cond
    if type(test) is not Compare or test.op not in ("lt", "gt") or e.dtype not in ("f32", "f64"):
        return None
    low, high = (test.a, test.b) if test.op == "lt" else (test.b, test.a)
    if e.a is high and e.b is low:
        name, a, b = "pmax", low, high
    elif e.a is low and e.b is high:
        name, a, b = "pmin", high, low
    else:
        return None
    return OP[f"{SHAPE[e.dtype]}.{name}"], a, b


_BY_KIND: dict[type, Callable[[Vectors, Any, int], None]] = covering(
    Expr,
    {
        **method(Load, Vectors._load),
        **method(Unary, Vectors._unary),
        **method(Binary, Vectors._binary),
        **method(Compare, Vectors._compare),
        **method(Select, Vectors._select),
        **method(Convert, Vectors._convert),
        **method(Bitcast, Vectors._bitcast),
        **method(MulAdd, Vectors._muladd),
        **method(Call, Vectors._call),
    },
    leaves=(Const, Var, Local),
)
