"""The interpreter of the loop IR: slow, obvious, the oracle of the emitters. Scalars are Python numbers, rounded to
their dtype after every operation; buffers are bytes (`interpret_memory.py`).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any, assert_never

from weft_wasm.elementary import expansion
from weft_wasm.interpreter.memory import InterpretError, Memory, StrictMemory
from weft_wasm.ir.nodes import (
    INTEGERS,
    ITEMSIZE,
    SIGNED,
    STORAGE_FLOATS,
    Assign,
    Barrier,
    Binary,
    Bitcast,
    Call,
    Compare,
    Const,
    Convert,
    Buffer,
    Copy,
    Declare,
    Expr,
    Fail,
    For,
    HostCall,
    If,
    Instance,
    Kernel,
    Let,
    Load,
    Local,
    MulAdd,
    Node,
    Poll,
    Program,
    Select,
    Stmt,
    Store,
    Switch,
    Unary,
    Var,
    While,
    int_range,
    wrap,
)
from weft_wasm.ir.rewriting import expanded
from weft_wasm.ir.traversal import constants_of

Scalar = Any  # a bool, int or float, as the dtype beside it says
Visit = Callable[[Expr], Scalar]  # the value of an operand, computed once for each statement
_FORMAT = {
    "bool": "<?",
    "i8": "<b",
    "u8": "<B",
    "i16": "<h",
    "u16": "<H",
    "i32": "<i",
    "u32": "<I",
    "i64": "<q",
    "u64": "<Q",
    "f16": "<e",
    "f32": "<f",
    "f64": "<d",
}


_WHOLE: dict[str, Callable[[float], int]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "round_even": round,
    "round_away": lambda y: math.trunc(y) + (abs(y - math.trunc(y)) >= 0.5) * (1 if y > 0 else -1),
}


class TooLong(InterpretError):
    """The program runs more statements than it was given."""


def run(program: Program, inputs: Sequence[bytes], most: int | None = None, strict: bool = False) -> list[bytes]:
    """The outputs' bytes for the inputs' bytes. InterpretError on an index out of bounds or a Fail.

    most: how many statements and iterations may run; then TooLong is raised, so that every program ends.
    strict: refuse everything that targets may do in different ways (see `StrictMemory`; also the bits of a computed
        NaN).
    """
    memory = StrictMemory() if strict else Memory()
    for buffer, data in zip(program.inputs, inputs, strict=True):
        memory.begin(buffer, data)
    for buffer in constants_of(program):
        memory.begin(buffer, buffer.content)
    for buffer in (*program.outputs, *program.temps):
        memory.begin(buffer)
    _Machine(memory, most, strict, [b for b in program.temps if b.role == "private"]).block(program.body)
    return [memory.result(b) for b in program.outputs]


def round_to(value: Scalar, dtype: str) -> Scalar:
    """A Python number as the nearest value of dtype (integers wrap)."""
    if dtype in INTEGERS:
        return wrap(int(value), dtype)
    if dtype == "bool":
        return bool(value)
    if dtype == "f32":
        try:
            return struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            return math.copysign(math.inf, value)
    return float(value)


def to_bits(value: Scalar, dtype: str) -> bytes:
    if dtype == "bf16":
        (bits,) = struct.unpack("<I", struct.pack("<f", value))
        return struct.pack("<H", bits >> 16)
    return struct.pack(_FORMAT[dtype], value)


def from_bits(data: bytes, dtype: str) -> Scalar:
    if dtype == "bf16":
        return struct.unpack("<f", b"\0\0" + data)[0]
    if dtype == "bool":
        return data != b"\0"
    return struct.unpack(_FORMAT[dtype], data)[0]


def to_storage(value: float, dtype: str) -> float:
    """The nearest f16/bf16 value, ties to even."""
    if value != value or math.isinf(value):
        return value
    nearest: float
    if dtype == "f16":
        try:
            (nearest,) = struct.unpack("<e", struct.pack("<e", value))
        except OverflowError:
            nearest = math.copysign(math.inf, value)
        return nearest
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    (nearest,) = struct.unpack("<f", struct.pack("<I", bits))
    return nearest


class _Machine:
    def __init__(
        self, memory: Memory, most: int | None = None, strict: bool = False, private: Sequence[Buffer] = ()
    ) -> None:
        self.memory, self.strict, self.private = memory, strict, private
        self.env: dict[Expr, Scalar] = {}
        self.left = math.inf if most is None else most
        self.instances: dict[Instance, Kernel] = {}

    # ---- statements

    def block(self, body: list[Stmt]) -> None:
        for s in body:
            self.statement(s)

    def instance(self, s: Instance) -> Kernel:
        found = self.instances.get(s)
        if found is None:
            found = self.instances[s] = expanded(s)
        return found

    def statement(self, s: Stmt) -> None:
        self.step()
        match s:
            case Kernel():
                for b in (*s.workgroup, *self.private):
                    self.memory.begin(b)
                self.block(s.body)
            case Instance():
                self.statement(self.instance(s))
            case For():
                extent = self.value(s.extent) if isinstance(s.extent, Node) else s.extent
                self.memory.enter(s)
                for k in range(extent):
                    self.step()
                    self.memory.iteration(k)
                    self.env[s.var] = k
                    self.block(s.body)
                self.memory.leave()
            case While():
                while True:
                    self.step()
                    self.block(s.cond)
                    if not self.value(s.test):
                        break
                    self.block(s.body)
            case If():
                self.block(s.then if self.value(s.test) else s.orelse)
            case Switch():
                self.block(s.branches[min(max(self.value(s.index), 0), len(s.branches) - 1)])
            case Let():
                self.env[s.var] = self.value(s.value)
            case Declare():
                self.env[s.local] = self.value(s.init)
            case Assign():
                self.env[s.local] = self.value(s.value)
            case Store():
                index = self.value(s.index)
                self.memory.store(s.buffer, index, to_bits(self.value(s.value), s.buffer.dtype))
            case Copy():
                to, start = (self.value(x) if isinstance(x, Node) else x for x in (s.dst_index, s.src_index))
                self.memory.copy(s.dst, to, s.src, start, s.count)
            case HostCall():
                raise InterpretError(f"call {s.number}: there is no host")
            case Fail():
                raise InterpretError(f"fail {s.code}")
            case Barrier() | Poll():
                pass
            case _:
                assert_never(s)

    def step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise TooLong("there are more statements to run")

    # ---- expressions

    def value(self, root: Expr) -> Scalar:
        memo: dict[Expr, Scalar] = {}

        def visit(e: Expr) -> Scalar:
            if e not in memo:
                memo[e] = self.evaluate(e, visit)
            return memo[e]

        return visit(root)

    def evaluate(self, e: Expr, v: Visit) -> Scalar:
        match e:
            case Const():
                return round_to(e.value, e.dtype)
            case Var() | Local():
                return self.env[e]
            case Load():
                return from_bits(self.memory.load(e.buffer, v(e.index)), e.dtype)
            case Unary():
                return self.unary(e, v)
            case Binary():
                return self.binary(e, v)
            case Compare():
                a, b = v(e.a), v(e.b)
                return {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[e.op]
            case Select():
                if e.rare:
                    return v(e.a) if v(e.cond) else v(e.b)
                a, b = v(e.a), v(e.b)
                return a if v(e.cond) else b
            case Convert():
                return self.convert(v(e.x), e.x.dtype, e.dtype)
            case Bitcast():
                x = v(e.x)
                if self.strict and x != x and type(e.x) is not Load:
                    raise InterpretError(f"the bits of a NaN that was computed are taken: {e!r}")
                return from_bits(to_bits(x, e.x.dtype), e.dtype)
            case MulAdd():
                return round_to(round_to(v(e.a) * v(e.b), e.dtype) + v(e.c), e.dtype)
            case Call():
                return v(expansion.expand(e))
            case _:
                assert_never(e)

    def convert(self, x: Scalar, src: str, dst: str) -> Scalar:
        if dst == "bool":
            return x != 0
        if dst in STORAGE_FLOATS:
            return to_storage(round_to(x, "f32"), dst)
        if dst in INTEGERS and isinstance(x, float):
            lo, hi = int_range(dst)
            return 0 if x != x else int(min(max(x, lo), hi)) if math.isinf(x) or not lo <= x <= hi else int(x)
        return round_to(x, dst)

    def unary(self, e: Unary, v: Visit) -> Scalar:
        x, dtype = v(e.x), e.dtype
        bits = 8 * ITEMSIZE[dtype]
        match e.op:
            case "neg":
                return round_to(-x, dtype)
            case "abs":
                return round_to(abs(x), dtype)
            case "not":
                return (not x) if dtype == "bool" else round_to(~x, dtype)
            case "popcount":
                return (x & ((1 << bits) - 1)).bit_count()
            case "clz":
                return bits - (x & ((1 << bits) - 1)).bit_length()
            case "sqrt":
                return math.nan if x < 0 else round_to(math.sqrt(x), dtype)
        if math.isinf(x) or x != x or x == 0:
            return x
        return math.copysign(float(_WHOLE[e.op](x)), x)

    def binary(self, e: Binary, v: Visit) -> Scalar:
        a, b, op, dtype = v(e.a), v(e.b), e.op, e.dtype
        if dtype in INTEGERS:
            return round_to(integer_binary(op, a, b, dtype), dtype)
        match op:
            case "and":
                return a and b
            case "or":
                return a or b
            case "xor":
                return a != b
            case "add":
                return round_to(a + b, dtype)
            case "sub":
                return round_to(a - b, dtype)
            case "mul":
                return round_to(a * b, dtype)
            case "div":
                if b == 0:
                    nan = a != a or a == 0 or b != b
                    return math.nan if nan else math.copysign(math.inf, a) * math.copysign(1, b)
                return round_to(a / b, dtype)
            case "rem":
                if a != a or b != b or b == 0 or math.isinf(a):
                    return math.nan
                return math.fmod(a, b)
        if a != a or b != b:
            return math.nan
        if a == b == 0:  # -0.0 is below 0.0
            negative = math.copysign(1, a) < 0, math.copysign(1, b) < 0
            return -0.0 if (any(negative) if op == "min" else all(negative)) else 0.0
        return min(a, b) if op == "min" else max(a, b)


def integer_binary(op: str, a: int, b: int, dtype: str) -> int:
    """Exact; the caller wraps."""
    bits = 8 * ITEMSIZE[dtype]
    if op in ("shl", "shr"):
        amount = b & ((1 << bits) - 1)
        if op == "shl":
            return a << amount if amount < bits else 0
        return a >> min(amount, bits - 1) if dtype in SIGNED or amount < bits else 0
    if op in ("div", "rem"):
        if b == 0:
            return -1 if op == "div" else a
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return quotient if op == "div" else a - b * quotient
    return {
        "add": a + b,
        "sub": a - b,
        "mul": a * b,
        "min": min(a, b),
        "max": max(a, b),
        "and": a & b,
        "or": a | b,
        "xor": a ^ b,
    }[op]
