"""Scalar expressions: each node pushes its value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from weft_wasm.binary import encode
from weft_wasm.emit_wasm import packing
from weft_wasm.emit_wasm.address import Addresses
from weft_wasm.emit_wasm.function import Function
from weft_wasm.emit_wasm.scope import Lane, Name, Scope
from weft_wasm.emit_wasm.tables import CORE, LOAD, SCALAR, SCALAR_OP, WRAP_BITS, WRAPPED, scalar_convert
from weft_wasm.emit_wasm.values import Expansions, Held, Shared
from weft_wasm.binary.encode import I32, I64, OP, memarg
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
    int_range,
)
from weft_wasm.ir.kinds import covering, method

_EQZ = {I32: OP["i32.eqz"], I64: OP["i64.eqz"]}


class LargeFunctions(Protocol):
    """Where the functions of MATH_LARGE are functions of the module."""

    def large(self, fn: str, dtype: str, lanes: int = 0) -> int:
        """The number of such a function: of one value, or of a vector of so many."""


class Scalars:
    """Scalar expressions of one function. `at` is None, or (vector, lane) to evaluate one lane of an expression that
    the vector loop varies.
    """

    def __init__(
        self,
        fn: Function,
        scope: Scope,
        shared: Shared,
        held: Held,
        expansions: Expansions,
        addresses: Addresses,
        functions: LargeFunctions,
    ):
        self.fn, self.scope, self.shared, self.held = fn, scope, shared, held
        self.expansions, self.addresses, self.functions = expansions, addresses, functions

    def alone(self, e: Expr) -> None:
        """Pushes the value of e, as all that a statement computes."""
        self.shared.open(e)
        self.push(e)
        self.shared.close()

    def push(self, e: Expr, at: Lane | None = None) -> None:
        """Pushes the value of e."""
        if type(e) is Const:
            return self._constant(e)
        if type(e) is Var or type(e) is Local:
            return self._variable(e, at)
        if at is not None and not self.scope.varying(e):
            at = None
        cache = self.shared.cache
        local = cache.get((e, at))
        if local is None and at is None:
            local = self.held.scalars.get(e)
        if local is not None:
            return self.fn.get(local)
        if at is not None:
            vector = cache.get((e, at[0]))
            if vector is not None:
                self.fn.get(vector)
                return packing.extract(self.fn, e.dtype, at[1], self.scope.vector.lanes)
        expanded = self.expansions.of(e)
        if expanded is not None:
            self.push(expanded, at)
        else:
            _BY_KIND[type(e)](self, e, at)
        if self.shared.refs.get(e, 1) > 1 or (at is None and self.scope.lanes is not None):
            local = self.shared.temporary(SCALAR[e.dtype])
            self.shared.cache[(e, at)] = local
            self.fn.tee(local)

    def compute(self, e: Expr, at: Lane | None) -> None:
        """Pushes the value of a node that has instructions, whether it was computed before or not."""
        _BY_KIND[type(e)](self, e, at)

    def address(self, buffer: Buffer, index: Expr, extra: int = 0, at: Lane | None = None) -> int:
        """Pushes an address of buffer[index + extra] and returns the offset immediate that goes with it."""
        return self.addresses.push(self, buffer, index, extra, at)

    def _constant(self, e: Const) -> None:
        kind = CORE[e.dtype]
        if kind == "f32":
            self.fn.code += encode.f32_const(e.value)
        elif kind == "f64":
            self.fn.code += encode.f64_const(e.value)
        elif kind in ("i64", "u64"):
            self.fn.code += encode.i64_const(int(e.value))
        else:
            self.fn.code += encode.i32_const(int(e.value))

    def _variable(self, e: Name, at: Lane | None) -> None:
        bound = self.scope.env[e]
        if isinstance(bound, list):
            if at is None:
                raise RuntimeError(f"{e.name} has another value in each lane")
            self.fn.get(bound[at[0]])
            return packing.extract(self.fn, e.dtype, at[1], self.scope.vector.lanes)
        extra = self.scope.offset.get(e, 0)
        if at is not None and e is self.scope.vector.var:
            extra += at[0] * self.scope.vector.lanes + at[1]
        if bound is None:
            return self.fn.const(extra)
        self.fn.get(bound)
        if extra:
            self.fn.const(extra)
            self.fn.code += OP["i32.add"]

    def load(self, e: Load, at: Lane | None) -> None:
        extra = 0 if at is None else self.addresses.lane_extra(e.index, *at)
        offset = self.address(e.buffer, e.index, extra, at)
        self.fn.code += LOAD[e.dtype] + memarg(ITEMSIZE[e.dtype], offset)

    def _unary(self, e: Unary, at: Lane | None) -> None:
        op, kind, dtype = e.op, CORE[e.dtype], e.dtype
        code, prefix = self.fn.code, kind if kind[0] == "f" else "i" + kind[1:]
        if op in ("neg", "abs", "not") and kind[0] != "f":
            wasm, zero = SCALAR[dtype], encode.i32_const(0) if prefix == "i32" else encode.i64_const(0)
            if op == "neg":
                code += zero
                self.push(e.x, at)
                code += OP[f"{prefix}.sub"]
            elif op == "not":
                self.push(e.x, at)
                if dtype == "bool":
                    code += OP["i32.eqz"]
                    return
                code += (encode.i32_const(-1) if prefix == "i32" else encode.i64_const(-1)) + OP[f"{prefix}.xor"]
            elif dtype in SIGNED:
                x = self.shared.temporary(wasm)
                code += zero
                self.push(e.x, at)
                self.fn.tee(x)
                code += OP[f"{prefix}.sub"]
                self.fn.get(x)
                self.fn.get(x)
                code += zero + OP[f"{prefix}.lt_s"] + OP["select"]
            else:
                self.push(e.x, at)
        elif op in ("clz", "popcount"):
            self.push(e.x, at)
            bits = WRAP_BITS.get(dtype, 0)
            if bits and dtype in SIGNED:
                code += encode.i32_const((1 << (32 - bits)) - 1) + OP["i32.and"]
            code += SCALAR_OP[(op, kind)]
            if bits and op == "clz":
                code += encode.i32_const(bits) + OP["i32.sub"]
            return
        else:
            self.push(e.x, at)
            code += SCALAR_OP[(op, kind)]
        if op in WRAPPED:
            self._wrap(dtype)

    def _wrap(self, dtype: str) -> None:
        if dtype in WRAP_BITS:
            if dtype in SIGNED:
                self.fn.code += OP["i32.extend8_s"] if dtype == "i8" else OP["i32.extend16_s"]
            else:
                self.fn.code += encode.i32_const((1 << (32 - WRAP_BITS[dtype])) - 1) + OP["i32.and"]

    def _binary(self, e: Binary, at: Lane | None) -> None:
        op, kind, code = e.op, CORE[e.dtype], self.fn.code
        if kind[0] != "f":
            if op in ("div", "rem"):
                self._divide(e, at)
                return self._wrap(e.dtype)
            if op in ("shl", "shr") and not (type(e.b) is Const and 0 <= e.b.value < 8 * ITEMSIZE[e.dtype]):
                self._shift(e, at)
                return self._wrap(e.dtype)
            if op in ("min", "max"):
                a, b = self._pair(e, at)
                for local in (a, b, a, b):
                    self.fn.get(local)
                code += SCALAR_OP[("lt" if op == "min" else "gt", kind)] + OP["select"]
                return
        self.push(e.a, at)
        self.push(e.b, at)
        code += SCALAR_OP[(op, kind)]
        if op in WRAPPED:
            self._wrap(e.dtype)

    def _pair(self, e: Binary, at: Lane | None) -> tuple[int, int]:
        a, b = self.shared.temporary(SCALAR[e.dtype]), self.shared.temporary(SCALAR[e.dtype])
        self.push(e.a, at)
        self.fn.set(a)
        self.push(e.b, at)
        self.fn.set(b)
        return a, b

    def _divide(self, e: Binary, at: Lane | None) -> None:
        """Division that never traps: x / 0 is -1, x % 0 is x, and INT_MIN / -1 wraps."""
        kind, code = CORE[e.dtype], self.fn.code
        wide = kind in ("i64", "u64")
        literal, eqz, prefix = (
            (encode.i64_const if wide else encode.i32_const),
            _EQZ[I64 if wide else I32],
            "i64" if wide else "i32",
        )
        if type(e.b) is Const and e.b.value not in (0, -1):
            self.push(e.a, at)
            self.push(e.b, at)
            code += SCALAR_OP[(e.op, kind)]
            return
        a, b = self._pair(e, at)
        signed_div = e.op == "div" and kind in SIGNED

        def bad() -> None:
            self.fn.get(b)
            self.fn.code.extend(eqz)
            if signed_div:
                self.fn.get(b)
                self.fn.code.extend(literal(-1) + OP[f"{prefix}.eq"] + OP["i32.or"])

        # the result for an invalid b, then the quotient by a valid divisor, then the test
        if e.op == "rem":
            self.fn.get(a)
        elif signed_div:
            code += literal(-1) + literal(0)
            self.fn.get(a)
            code += OP[f"{prefix}.sub"]
            self.fn.get(b)
            code += eqz + OP["select"]
        else:
            code += literal(-1)
        self.fn.get(a)
        code += literal(1)
        self.fn.get(b)
        bad()
        code += OP["select"] + SCALAR_OP[(e.op, kind)]
        bad()
        code += OP["select"]

    def _shift(self, e: Binary, at: Lane | None) -> None:
        """A shift by the width or more gives 0 or the sign."""
        kind, code = CORE[e.dtype], self.fn.code
        wide = kind in ("i64", "u64")
        literal, prefix, bits = (encode.i64_const, "i64", 64) if wide else (encode.i32_const, "i32", 32)
        a, b = self._pair(e, at)
        if e.op == "shr" and kind in SIGNED:
            self.fn.get(a)
            self.fn.get(b)
            code += literal(bits - 1)
            self.fn.get(b)
            code += literal(bits) + OP[f"{prefix}.lt_u"] + OP["select"] + OP[f"{prefix}.shr_s"]
            return
        self.fn.get(a)
        self.fn.get(b)
        code += SCALAR_OP[(e.op, kind)] + literal(0)
        self.fn.get(b)
        code += literal(bits) + OP[f"{prefix}.lt_u"] + OP["select"]

    def _compare(self, e: Compare, at: Lane | None) -> None:
        self.push(e.a, at)
        self.push(e.b, at)
        self.fn.code += SCALAR_OP[(e.op, CORE[e.a.dtype])]

    def _select(self, e: Select, at: Lane | None) -> None:
        if e.rare:
            return self._rare(e, at)
        self.push(e.a, at)
        self.push(e.b, at)
        self.push(e.cond, at)
        self.fn.code += OP["select"]

    def _rare(self, e: Select, at: Lane | None) -> None:
        result = self.shared.temporary(SCALAR[e.dtype])
        self.push(e.b, at)
        self.fn.set(result)
        self.push(e.cond, at)
        self.fn.code += OP["if"] + bytes((encode.VOID,))
        outer, self.shared.cache = self.shared.cache, dict(self.shared.cache)
        self.push(e.a, at)
        self.fn.set(result)
        self.shared.cache = outer
        self.fn.code += OP["end"]
        self.fn.get(result)

    def _convert(self, e: Convert, at: Lane | None) -> None:
        src, dst = e.x.dtype, e.dtype
        self.push(e.x, at)
        if dst == "bool":
            kind = CORE[src]
            if SCALAR[src] in _EQZ:
                self.fn.code += _EQZ[SCALAR[src]] + OP["i32.eqz"]
            else:
                self.fn.code += (encode.f32_const(0.0) if kind == "f32" else encode.f64_const(0.0)) + OP[f"{kind}.ne"]
            return
        self.fn.code += scalar_convert(CORE[src], CORE[dst])
        if dst in WRAP_BITS:
            if CORE[src][0] == "f":
                self._saturate(dst)
            elif src != "bool":
                self._wrap(dst)

    def _saturate(self, dtype: str) -> None:
        """Clamps the i32 on the stack into a narrow dtype."""
        lo, hi = int_range(dtype)
        unsigned = dtype not in SIGNED
        x = self.shared.temporary(I32)
        self.fn.set(x)
        compare = OP["i32.lt_u"] if unsigned else OP["i32.lt_s"]
        self.fn.get(x)
        self.fn.const(hi)
        self.fn.get(x)
        self.fn.const(hi)
        self.fn.code += compare + OP["select"]
        if not unsigned:
            self.fn.set(x)
            self.fn.get(x)
            self.fn.const(lo)
            self.fn.get(x)
            self.fn.const(lo)
            self.fn.code += OP["i32.gt_s"] + OP["select"]

    def _bitcast(self, e: Bitcast, at: Lane | None) -> None:
        self.push(e.x, at)
        src, dst = CORE[e.x.dtype], CORE[e.dtype]
        if src[0] != dst[0] and "f" in (src[0], dst[0]):
            wasm = {"u32": "i32", "u64": "i64"}
            self.fn.code += OP[f"{wasm.get(dst, dst)}.reinterpret_{wasm.get(src, src)}"]
        elif e.dtype in WRAP_BITS:
            self._wrap(e.dtype)

    def _muladd(self, e: MulAdd, at: Lane | None) -> None:
        prefix = e.dtype
        self.push(e.a, at)
        self.push(e.b, at)
        self.fn.code += OP[f"{prefix}.mul"]
        self.push(e.c, at)
        self.fn.code += OP[f"{prefix}.add"]

    def _call(self, e: Call, at: Lane | None) -> None:
        """A function of MATH_LARGE; all others are expanded."""
        for x in e.args:
            self.push(x, at)
        self.fn.code += OP["call"] + encode.unsigned(self.functions.large(e.fn, e.dtype))


_BY_KIND: dict[type, Callable[[Scalars, Any, Lane | None], None]] = covering(
    Expr,
    {
        **method(Load, Scalars.load),
        **method(Unary, Scalars._unary),
        **method(Binary, Scalars._binary),
        **method(Compare, Scalars._compare),
        **method(Select, Scalars._select),
        **method(Convert, Scalars._convert),
        **method(Bitcast, Scalars._bitcast),
        **method(MulAdd, Scalars._muladd),
        **method(Call, Scalars._call),
    },
    leaves=(Const, Var, Local),
)
