"""Expressions: each node pushes its value, as a scalar or as the lanes of one vector of the current vector loop."""

from __future__ import annotations

import struct

from weft_wasm import encode, scalar_math
from weft_wasm.emit_wasm.address import Addresses
from weft_wasm.emit_wasm.tables import (
    CORE,
    EXTRACT,
    LANE_BYTES_LOAD,
    LANE_BYTES_STORE,
    LANE_ZERO_LOAD,
    LOAD,
    REPLACE,
    SCALAR,
    SCALAR_OP,
    SHAPE,
    SPLAT,
    STORE,
    VECTOR_OP,
    VECTOR_SHIFT,
    WRAP_BITS,
    scalar_convert,
    shuffle_words,
    vector_convert,
)  # fmt: skip
from weft_wasm.encode import I32, I64, OP, V128, memarg
from weft_wasm.ir import (
    ITEMSIZE,
    SIGNED,
    Binary,
    Bitcast,
    Buffer,
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
    operands,
)  # fmt: skip

_WRAPPED = frozenset(("add", "sub", "mul", "neg", "shl", "not", "div", "abs"))
_EQZ = {I32: OP["i32.eqz"], I64: OP["i64.eqz"]}
_ZEROS = bytes(16)


def constant_key(e: Const) -> tuple[str, str]:
    """What tells constants apart: 0.0 and -0.0 are equal as numbers."""
    return e.dtype, repr(e.value)


class Expressions(Addresses):
    """Adds expressions. `scalar(e, at)`: at is None, or (vector, lane) to evaluate one lane of a varying expression."""

    def __init__(self, params: list[int], features: frozenset[str]):
        super().__init__(params, features)
        self.refs: dict[Expr, int] = {}
        self.cache: dict[tuple, int] = {}
        self.hoisted: dict[tuple, int] = {}
        self.temporaries: list[tuple[int, int]] = []
        self.expansions: dict[Expr, Expr] = {}
        self.views: dict[Buffer, Buffer] = {}
        self.held_constants: dict[tuple[str, str], int] = {}
        self.quotients: dict[Expr, Expr] = {}  # what stands for a division in the current vector loop
        self.relaxed = "relaxed-simd" in features

    # ---- statements open and close the scope of shared nodes

    def open(self, *roots: Expr) -> None:
        self.refs, self.cache = {}, {}
        for e in roots:
            self._count(e)

    def close(self) -> None:
        for kind, local in self.temporaries:
            self.release(kind, local)
        self.temporaries.clear()
        self.refs, self.cache = {}, {}  # the locals that it names may be given away from now on

    def _count(self, e: Expr) -> None:
        refs = self.refs
        n = refs.get(e)
        if n:
            refs[e] = n + 1
            return
        refs[e] = 1
        if e in self.quotients:
            self._count(self.quotients[e])
        elif scalar_math.needs_expansion(e):
            self._count(self.expanded(e))
        else:
            for x in operands(e):
                self._count(x)

    def expanded(self, e: Expr) -> Expr:
        hit = self.expansions.get(e)
        if hit is None:
            if type(e) is Load:
                view = self.views.get(e.buffer)
                if view is None:
                    view = self.views[e.buffer] = Buffer(e.buffer.name, "u16", e.buffer.shape, e.buffer.role)
                    self.view_of[view] = e.buffer
                hit = scalar_math.decode(Load(view, e.index), e.dtype)
            else:
                hit = scalar_math.expand(e)
            self.expansions[e] = hit
        return hit

    def temporary(self, kind: int) -> int:
        local = self.new_local(kind)
        self.temporaries.append((kind, local))
        return local

    # ---- scalars

    def scalar(self, e: Expr, at=None) -> None:
        """Pushes the value of e."""
        kind = type(e)
        if kind is Const:
            return self._constant(e)
        if kind is Var or kind is Local:
            return self._variable(e, at)
        if at is not None and not self.varying(e):
            at = None
        local = self.cache.get((e, at))
        if local is None:
            local = self.hoisted.get((e, at))
        if local is not None:
            return self.get(local)
        if at is not None and (e, at[0]) in self.cache:
            self.get(self.cache[(e, at[0])])
            return self._extract(e.dtype, at[1])
        if scalar_math.needs_expansion(e):
            self.scalar(self.expanded(e), at)
        else:
            _SCALAR[kind](self, e, at)
        if self.refs.get(e, 1) > 1 or (self.vec and at is None):
            local = self.temporary(SCALAR[e.dtype])
            self.cache[(e, at)] = local
            self.tee(local)

    def _constant(self, e: Const) -> None:
        kind = CORE[e.dtype]
        if kind == "f32":
            self.code += encode.f32_const(e.value)
        elif kind == "f64":
            self.code += encode.f64_const(e.value)
        elif kind in ("i64", "u64"):
            self.code += encode.i64_const(int(e.value))
        else:
            self.code += encode.i32_const(int(e.value))

    def _variable(self, e: Expr, at) -> None:
        bound = self.env[e]
        if type(bound) is list:
            self.get(bound[at[0]])
            return self._extract(e.dtype, at[1])
        extra = self.offset.get(e, 0)
        if at is not None and e is self.vec.var:
            extra += at[0] * self.vec.lanes + at[1]
        if bound is None:
            return self.const(extra)
        self.get(bound)
        if extra:
            self.const(extra)
            self.code += OP["i32.add"]

    def _scalar_load(self, e: Load, at) -> None:
        extra = 0
        if at is not None:
            extra = self.linear(e.index)[0].get(self.vec.var, 0) * (at[0] * self.vec.lanes + at[1])
        offset = self.address(e.buffer, e.index, extra, at)
        self.code += LOAD[e.dtype] + memarg(ITEMSIZE[e.dtype], offset)

    def _scalar_unary(self, e: Unary, at) -> None:
        op, kind, dtype = e.op, CORE[e.dtype], e.dtype
        code, prefix = self.code, kind if kind[0] == "f" else "i" + kind[1:]
        if op in ("neg", "abs", "not") and kind[0] != "f":
            wasm, zero = SCALAR[dtype], encode.i32_const(0) if prefix == "i32" else encode.i64_const(0)
            if op == "neg":
                code += zero
                self.scalar(e.x, at)
                code += OP[f"{prefix}.sub"]
            elif op == "not":
                self.scalar(e.x, at)
                if dtype == "bool":
                    code += OP["i32.eqz"]
                    return
                code += (encode.i32_const(-1) if prefix == "i32" else encode.i64_const(-1)) + OP[f"{prefix}.xor"]
            elif dtype in SIGNED:
                x = self.temporary(wasm)
                code += zero
                self.scalar(e.x, at)
                self.tee(x)
                code += OP[f"{prefix}.sub"]
                self.get(x)
                self.get(x)
                code += zero + OP[f"{prefix}.lt_s"] + OP["select"]
            else:
                self.scalar(e.x, at)
        elif op in ("clz", "popcount"):
            self.scalar(e.x, at)
            bits = WRAP_BITS.get(dtype, 0)
            if bits and dtype in SIGNED:
                code += encode.i32_const((1 << (32 - bits)) - 1) + OP["i32.and"]
            code += SCALAR_OP[(op, kind)]
            if bits and op == "clz":
                code += encode.i32_const(bits) + OP["i32.sub"]
            return
        else:
            self.scalar(e.x, at)
            code += SCALAR_OP[(op, kind)]
        if op in _WRAPPED:
            self._wrap(dtype)

    def _wrap(self, dtype: str) -> None:
        if dtype in WRAP_BITS:
            if dtype in SIGNED:
                self.code += OP["i32.extend8_s"] if dtype == "i8" else OP["i32.extend16_s"]
            else:
                self.code += encode.i32_const((1 << (32 - WRAP_BITS[dtype])) - 1) + OP["i32.and"]

    def _scalar_binary(self, e: Binary, at) -> None:
        op, kind, code = e.op, CORE[e.dtype], self.code
        if kind[0] != "f":
            if op in ("div", "rem"):
                self._divide(e, at)
                return self._wrap(e.dtype)
            if op in ("shl", "shr") and not (type(e.b) is Const and 0 <= e.b.value < 8 * ITEMSIZE[e.dtype]):
                self._shift(e, at)
                return self._wrap(e.dtype)
            if op in ("min", "max"):
                a, b = self._pair(e, at)
                self.get(a), self.get(b), self.get(a), self.get(b)
                code += SCALAR_OP[("lt" if op == "min" else "gt", kind)] + OP["select"]
                return
        self.scalar(e.a, at)
        self.scalar(e.b, at)
        code += SCALAR_OP[(op, kind)]
        if op in _WRAPPED:
            self._wrap(e.dtype)

    def _pair(self, e: Binary, at) -> tuple[int, int]:
        a, b = self.temporary(SCALAR[e.dtype]), self.temporary(SCALAR[e.dtype])
        self.scalar(e.a, at)
        self.set(a)
        self.scalar(e.b, at)
        self.set(b)
        return a, b

    def _divide(self, e: Binary, at) -> None:
        """Division that never traps: x / 0 is -1, x % 0 is x, and INT_MIN / -1 wraps."""
        kind, code = CORE[e.dtype], self.code
        wide = kind in ("i64", "u64")
        literal, eqz, prefix = (
            (encode.i64_const if wide else encode.i32_const),
            _EQZ[I64 if wide else I32],
            "i64" if wide else "i32",
        )
        if type(e.b) is Const and e.b.value not in (0, -1):
            self.scalar(e.a, at)
            self.scalar(e.b, at)
            code += SCALAR_OP[(e.op, kind)]
            return
        a, b = self._pair(e, at)
        signed_div = e.op == "div" and kind in SIGNED

        def bad() -> None:
            self.get(b)
            self.code.extend(eqz)
            if signed_div:
                self.get(b)
                self.code.extend(literal(-1) + OP[f"{prefix}.eq"] + OP["i32.or"])

        # what to give when b is unfit, then the quotient by a fit divisor, then the test
        if e.op == "rem":
            self.get(a)
        elif signed_div:
            code += literal(-1) + literal(0)
            self.get(a)
            code += OP[f"{prefix}.sub"]
            self.get(b)
            code += eqz + OP["select"]
        else:
            code += literal(-1)
        self.get(a)
        code += literal(1)
        self.get(b)
        bad()
        code += OP["select"] + SCALAR_OP[(e.op, kind)]
        bad()
        code += OP["select"]

    def _shift(self, e: Binary, at) -> None:
        """A shift by the width or more gives 0 or the sign."""
        kind, code = CORE[e.dtype], self.code
        wide = kind in ("i64", "u64")
        literal, prefix, bits = (encode.i64_const, "i64", 64) if wide else (encode.i32_const, "i32", 32)
        a, b = self._pair(e, at)
        if e.op == "shr" and kind in SIGNED:
            self.get(a)
            self.get(b)
            code += literal(bits - 1)
            self.get(b)
            code += literal(bits) + OP[f"{prefix}.lt_u"] + OP["select"] + OP[f"{prefix}.shr_s"]
            return
        self.get(a)
        self.get(b)
        code += SCALAR_OP[(e.op, kind)] + literal(0)
        self.get(b)
        code += literal(bits) + OP[f"{prefix}.lt_u"] + OP["select"]

    def _scalar_compare(self, e: Compare, at) -> None:
        self.scalar(e.a, at)
        self.scalar(e.b, at)
        self.code += SCALAR_OP[(e.op, CORE[e.a.dtype])]

    def _scalar_select(self, e: Select, at) -> None:
        if e.rare:
            return self._scalar_rare(e, at)
        self.scalar(e.a, at)
        self.scalar(e.b, at)
        self.scalar(e.cond, at)
        self.code += OP["select"]

    def _scalar_rare(self, e: Select, at) -> None:
        result = self.temporary(SCALAR[e.dtype])
        self.scalar(e.b, at)
        self.set(result)
        self.scalar(e.cond, at)
        self.code += OP["if"] + bytes((encode.VOID,))
        outer, self.cache = self.cache, dict(self.cache)
        self.scalar(e.a, at)
        self.set(result)
        self.cache = outer
        self.code += OP["end"]
        self.get(result)

    def _scalar_convert(self, e: Convert, at) -> None:
        src, dst = e.x.dtype, e.dtype
        self.scalar(e.x, at)
        if dst == "bool":
            kind = CORE[src]
            if SCALAR[src] in _EQZ:
                self.code += _EQZ[SCALAR[src]] + OP["i32.eqz"]
            else:
                self.code += (encode.f32_const(0.0) if kind == "f32" else encode.f64_const(0.0)) + OP[f"{kind}.ne"]
            return
        self.code += scalar_convert(CORE[src], CORE[dst])
        if dst in WRAP_BITS:
            if CORE[src][0] == "f":
                self._saturate(dst)
            elif src != "bool":
                self._wrap(dst)

    def _saturate(self, dtype: str) -> None:
        """Clamps the i32 on the stack into a narrow dtype."""
        lo, hi = scalar_math.int_range(dtype)
        unsigned = dtype not in SIGNED
        x = self.temporary(I32)
        self.set(x)
        compare = OP["i32.lt_u"] if unsigned else OP["i32.lt_s"]
        self.get(x)
        self.const(hi)
        self.get(x)
        self.const(hi)
        self.code += compare + OP["select"]
        if not unsigned:
            self.set(x)
            self.get(x)
            self.const(lo)
            self.get(x)
            self.const(lo)
            self.code += OP["i32.gt_s"] + OP["select"]

    def _scalar_bitcast(self, e: Bitcast, at) -> None:
        self.scalar(e.x, at)
        src, dst = CORE[e.x.dtype], CORE[e.dtype]
        if src[0] != dst[0] and "f" in (src[0], dst[0]):
            wasm = {"u32": "i32", "u64": "i64"}
            self.code += OP[f"{wasm.get(dst, dst)}.reinterpret_{wasm.get(src, src)}"]
        elif e.dtype in WRAP_BITS:
            self._wrap(e.dtype)

    def _scalar_muladd(self, e: MulAdd, at) -> None:
        prefix = e.dtype
        self.scalar(e.a, at)
        self.scalar(e.b, at)
        self.code += OP[f"{prefix}.mul"]
        self.scalar(e.c, at)
        self.code += OP[f"{prefix}.add"]

    # ---- lanes

    def vector(self, e: Expr, u: int) -> None:
        """Pushes vector number u of e."""
        kind = type(e)
        if kind is Const:
            return self._vector_constant(e)
        if not self.varying(e):
            local = self.cache.get((e, "splat"))
            if local is None:
                local = self.hoisted.get((e, "splat"))
            if local is None:
                local = self.temporary(V128)
                if (
                    kind is Load
                    and ITEMSIZE[e.dtype] >= 4
                    and (e, None) not in self.hoisted
                    and (e, None) not in self.cache
                ):
                    offset = self.address(e.buffer, e.index)
                    size = ITEMSIZE[e.dtype]
                    self.code += OP[f"v128.load{size * 8}_splat"] + memarg(size, offset)
                else:
                    self.scalar(e)
                    self._splat(e.dtype)
                if kind is not Var and kind is not Local:
                    self.cache[(e, "splat")] = local
                    self.tee(local)
                return
            return self.get(local)
        if kind is Var or kind is Local:
            bound = self.env[e]
            if type(bound) is list:
                return self.get(bound[u])
            self.scalar(e)  # the loop variable: its value in lane 0, plus 0 1 2 3
            first = u * self.vec.lanes
            self.code += (
                OP["i32x4.splat"] + OP["v128.const"] + struct.pack("<4i", *range(first, first + 4)) + OP["i32x4.add"]
            )
            return
        local = self.cache.get((e, u))
        if local is None:
            local = self.hoisted.get((e, u))
        if local is not None:
            return self.get(local)
        if e in self.quotients:
            self.vector(self.quotients[e], u)
        elif scalar_math.needs_expansion(e):
            self.vector(self.expanded(e), u)
        else:
            _VECTOR[kind](self, e, u)
        if self.refs.get(e, 1) > 1:
            local = self.temporary(V128)
            self.cache[(e, u)] = local
            self.tee(local)

    def _vector_constant(self, e: Const) -> None:
        local = self.held_constants.get(constant_key(e))
        if local is not None:
            return self.get(local)
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
        self.code += OP["v128.const"] + data

    def _to_mask(self) -> None:
        """An i32 0/1 as the lane value 0 or all ones."""
        self.code += encode.i32_const(-1) + OP["i32.mul"]
        if self.vec.lanes == 2:
            self.code += OP["i64.extend_i32_s"]

    def _splat(self, dtype: str) -> None:
        if dtype == "bool":
            self._to_mask()
            self.code += SPLAT["i64" if self.vec.lanes == 2 else "i32"]
        else:
            self.code += SPLAT[CORE[dtype]]

    def _extract(self, dtype: str, lane: int) -> None:
        if dtype == "bool":
            self.code += EXTRACT["i32"] + bytes((lane * (4 // self.vec.lanes),)) + encode.i32_const(1) + OP["i32.and"]
        else:
            self.code += EXTRACT[CORE[dtype]] + bytes((lane,))

    def _lanewise(self, e: Expr, u: int, evaluate) -> None:
        """evaluate(lane) pushes scalars; they become a vector."""
        dtype = e.dtype
        mask = "i64" if self.vec.lanes == 2 else "i32"
        for lane in range(self.vec.lanes):
            evaluate(lane)
            if lane == 0:
                self._splat(dtype)
                continue
            if dtype == "bool":
                self._to_mask()
            self.code += REPLACE[mask if dtype == "bool" else CORE[dtype]] + bytes((lane,))

    def _by_lanes(self, e: Expr, u: int) -> None:
        """An operation that SIMD lacks: its operands as vectors, the operation lane by lane."""
        for x in operands(e):
            if type(x) not in (Const, Var, Local) and self.varying(x) and (x, u) not in self.cache:
                self.vector(x, u)
                if (x, u) in self.cache:
                    self.code += OP["drop"]
                elif (x, u) in self.hoisted:
                    self.code += OP["drop"]
                    self.cache[(x, u)] = self.hoisted[(x, u)]
                else:
                    self.cache[(x, u)] = local = self.temporary(V128)
                    self.set(local)
        self._lanewise(e, u, lambda lane: _SCALAR[type(e)](self, e, (u, lane)))

    def stride(self, index: Expr) -> int | None:
        """Elements between neighbouring lanes of an index, or None if that isn't a constant."""
        terms, _ = self.linear(index)
        if any(t is not self.vec.var and self.varying(t) for t in terms):
            return None
        return terms.get(self.vec.var, 0)

    def _vector_load(self, e: Load, u: int) -> None:
        lanes, dtype, code = self.vec.lanes, e.dtype, self.code
        size, stride = ITEMSIZE[dtype], self.stride(e.index)
        if stride != 1:
            if size >= 4:
                offsets = []
                for lane in reversed(range(lanes)):
                    extra = self._lane_extra(e.index, u, lane)
                    offsets.append(self.address(e.buffer, e.index, extra, (u, lane)))
                code += LANE_ZERO_LOAD[size] + memarg(size, offsets.pop())
                for lane in range(1, lanes):
                    code += LANE_BYTES_LOAD[size] + memarg(size, offsets.pop()) + bytes((lane,))
                return
            return self._lanewise(e, u, lambda lane: self._scalar_load(e, (u, lane)))
        offset = self.address(e.buffer, e.index, u * lanes)
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

    def _lane_extra(self, index: Expr, u: int, lane: int) -> int:
        return self.linear(index)[0].get(self.vec.var, 0) * (u * self.vec.lanes + lane)

    def vector_store(self, buffer: Buffer, index: Expr, value: Expr, u: int) -> None:
        """Stores vector u of value."""
        lanes, code = self.vec.lanes, self.code
        size, dtype = ITEMSIZE[buffer.dtype], buffer.dtype
        if self.stride(index) == 1:
            offset = self.address(buffer, index, u * lanes)
            self.vector(value, u)
            if dtype == "bool" and lanes == 2:
                self._twice(shuffle_words([0, 2]))
            if size * lanes == 16:
                code += OP["v128.store"] + memarg(16, offset)
                return
            if size < 4:
                if dtype == "bool":
                    code += OP["i32x4.neg"]
                self._twice(OP["i8x16.shuffle"] + bytes(((0, 4, 8, 12) if size == 1 else (0, 1, 4, 5, 8, 9, 12, 13)) + (0,) * (12 if size == 1 else 8)))  # fmt: skip
            code += LANE_BYTES_STORE[size * lanes] + memarg(size * lanes, offset) + b"\0"
            return
        held = self.temporary(V128)
        self.vector(value, u)
        self.set(held)
        for lane in range(lanes):
            offset = self.address(buffer, index, self._lane_extra(index, u, lane), (u, lane))
            self.get(held)
            self._extract(value.dtype, lane)
            code += STORE[dtype] + memarg(size, offset)

    def _twice(self, shuffle: bytes) -> None:
        held = self.temporary(V128)
        self.tee(held)
        self.get(held)
        self.code += shuffle

    def _vector_wrap(self, dtype: str) -> None:
        if dtype in WRAP_BITS:
            amount = encode.i32_const(WRAP_BITS[dtype])
            self.code += amount + OP["i32x4.shl"] + amount + OP["i32x4.shr_s" if dtype in SIGNED else "i32x4.shr_u"]

    def _vector_unary(self, e: Unary, u: int) -> None:
        op, kind = e.op, CORE[e.dtype]
        if op == "not":
            self.vector(e.x, u)
            self.code += OP["v128.not"]
            return self._vector_wrap(e.dtype) if e.dtype != "bool" else None
        if op == "abs" and kind in ("u32", "u64"):
            return self.vector(e.x, u)
        code = VECTOR_OP.get((op, kind))
        if code is None:
            return self._by_lanes(e, u)
        self.vector(e.x, u)
        self.code += code
        if op in _WRAPPED:
            self._vector_wrap(e.dtype)

    def _vector_binary(self, e: Binary, u: int) -> None:
        op, kind = e.op, CORE[e.dtype]
        if op in ("shl", "shr"):
            if type(e.b) is Const and 0 <= e.b.value < 8 * ITEMSIZE[e.dtype]:
                self.vector(e.a, u)
                self.const(e.b.value)
                self.code += VECTOR_SHIFT[(op, kind)]
                return self._vector_wrap(e.dtype) if op == "shl" else None
            return self._by_lanes(e, u)
        if op in ("min", "max") and kind[0] == "f" and Const in (type(e.a), type(e.b)) and self._vector_clip(e, u):
            return
        code = VECTOR_OP.get((op, kind))
        if code is None:
            return self._by_lanes(e, u)
        self.vector(e.a, u)
        self.vector(e.b, u)
        self.code += code
        if op in _WRAPPED:
            self._vector_wrap(e.dtype)

    def _vector_clip(self, e: Binary, u: int) -> bool:
        """The larger or smaller of x and a constant, if that is `x < c ? c : x` (`c < x ? c : x`), one instruction of x86 where others take eight."""
        x, c = (e.a, e.b) if type(e.b) is Const else (e.b, e.a)
        zero = str(float(c.value)) if c.value == 0 else ""
        if c.value != c.value or (e.op == "min" and zero == "-0.0"):
            return False
        self.vector(x, u)
        self.vector(c, u)
        self.code += OP[f"{SHAPE[e.dtype]}.p{e.op}"]
        if e.op == "max" and zero == "0.0":  # of -0 and 0 it kept -0
            self.vector(c, u)
            self.code += OP[f"{SHAPE[e.dtype]}.add"]
        return True

    def _vector_compare(self, e: Compare, u: int) -> None:
        op, dtype = e.op, e.a.dtype
        if dtype == "bool":
            if op not in ("eq", "ne"):
                return self._by_lanes(e, u)
            self.vector(e.a, u)
            self.vector(e.b, u)
            self.code += OP["v128.xor"] + (OP["v128.not"] if op == "eq" else b"")
            return
        code = VECTOR_OP.get((op, CORE[dtype]))
        if code is None:
            return self._by_lanes(e, u)
        self.vector(e.a, u)
        self.vector(e.b, u)
        self.code += code
        if self.vec.lanes == 2 and ITEMSIZE[dtype] < 8:
            self.code += OP["i64x2.extend_low_i32x4_s"]

    def _vector_select(self, e: Select, u: int) -> None:
        if e.rare:
            return self._vector_rare(e, u)
        least = _extremum(e)
        if least is not None:
            op, a, b = least
            self.vector(a, u)
            self.vector(b, u)
            self.code += op
            return
        self.vector(e.a, u)
        self.vector(e.b, u)
        self.vector(e.cond, u)
        self._narrow_mask(e.dtype)
        self._choose(e.dtype)

    def _narrow_mask(self, dtype: str) -> None:
        if self.vec.lanes == 2 and dtype != "bool" and ITEMSIZE[dtype] < 8:
            self._twice(shuffle_words([0, 2]))

    def _choose(self, dtype: str) -> None:
        if self.relaxed and dtype != "bool":
            wide = self.vec.lanes == 2 and ITEMSIZE[dtype] == 8
            self.code += OP["i64x2.relaxed_laneselect" if wide else "i32x4.relaxed_laneselect"]
        else:
            self.code += OP["v128.bitselect"]

    def _vector_rare(self, e: Select, u: int) -> None:
        result, mask = self.temporary(V128), self.temporary(V128)
        self.vector(e.b, u)
        self.set(result)
        self.vector(e.cond, u)
        self.tee(mask)
        self.code += OP["v128.any_true"] + OP["if"] + bytes((encode.VOID,))
        outer, self.cache = self.cache, dict(self.cache)
        self.vector(e.a, u)
        self.get(result)
        self.get(mask)
        self._narrow_mask(e.dtype)
        self._choose(e.dtype)
        self.set(result)
        self.cache = outer
        self.code += OP["end"]
        self.get(result)

    def _vector_convert(self, e: Convert, u: int) -> None:
        src, dst, lanes, code = e.x.dtype, e.dtype, self.vec.lanes, self.code
        if dst == "bool":
            self.vector(e.x, u)
            if src != "bool":
                self.vector(Const(0, src), u)
                code += VECTOR_OP[("ne", CORE[src])]
                if lanes == 2 and ITEMSIZE[src] < 8:
                    code += OP["i64x2.extend_low_i32x4_s"]
            return
        if src == "bool":
            self.vector(e.x, u)
            self._narrow_mask(dst)
            self.vector(Const(1, dst), u)
            code += OP["v128.and"]
            return
        if dst in WRAP_BITS and CORE[src][0] == "f":
            return self._by_lanes(e, u)
        if (CORE[src], CORE[dst]) in (("i64", "i32"), ("i64", "u32"), ("u64", "i32"), ("u64", "u32")):
            self.vector(e.x, u)
            self._twice(shuffle_words([0, 2]))
            return self._vector_wrap(dst)
        convert = vector_convert(CORE[src], CORE[dst])
        if convert is None:
            return self._by_lanes(e, u)
        self.vector(e.x, u)
        code += convert
        self._vector_wrap(dst)

    def _vector_bitcast(self, e: Bitcast, u: int) -> None:
        self.vector(e.x, u)
        self._vector_wrap(e.dtype)

    def _vector_muladd(self, e: MulAdd, u: int) -> None:
        shape = "f32x4" if e.dtype == "f32" else "f64x2"
        self.vector(e.a, u)
        self.vector(e.b, u)
        if self.relaxed:
            self.vector(e.c, u)
            self.code += OP[f"{shape}.relaxed_madd"]
        else:
            self.code += OP[f"{shape}.mul"]
            self.vector(e.c, u)
            self.code += OP[f"{shape}.add"]


def _extremum(e: Select) -> tuple[bytes, Expr, Expr] | None:
    """(instruction, a, b) for `a < b ? b : a` or `b < a ? b : a` of floats, which are one instruction of SIMD."""
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


_SCALAR = {
    Load: Expressions._scalar_load, Unary: Expressions._scalar_unary, Binary: Expressions._scalar_binary,
    Compare: Expressions._scalar_compare, Select: Expressions._scalar_select, Convert: Expressions._scalar_convert,
    Bitcast: Expressions._scalar_bitcast, MulAdd: Expressions._scalar_muladd,
}  # fmt: skip
_VECTOR = {
    Load: Expressions._vector_load, Unary: Expressions._vector_unary, Binary: Expressions._vector_binary,
    Compare: Expressions._vector_compare, Select: Expressions._vector_select, Convert: Expressions._vector_convert,
    Bitcast: Expressions._vector_bitcast, MulAdd: Expressions._vector_muladd,
}  # fmt: skip
