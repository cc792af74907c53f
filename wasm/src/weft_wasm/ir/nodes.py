"""The loop IR: loops over flat buffers with scalar expressions, neutral between WebAssembly and WGSL.

A `Program` is buffers and a list of statements: kernels, and the control flow around them. Inside a `Kernel` there are
loops, scalar bindings and stores. Expressions are DAGs: **a node that is referred to twice in one statement is
evaluated once**; to share a value between statements bind it with `Let`. Nodes are compared by identity.

Every expression has a scalar dtype (`expr.dtype`), one of `ITEMSIZE`. `f16` and `bf16` are storage types: they come
from `Load` and `Convert`, go to `Store` and `Convert`, and nothing computes on them. An index is an `i32` expression
that counts elements of a flat buffer, and must be in bounds whenever it is evaluated (`Select` evaluates both sides;
clamp the index or use `If`).

Semantics where targets differ, the same everywhere (they are XLA's):
  - integer arithmetic wraps; `x / 0` is -1 (all bits set), `x % 0` is x, `INT_MIN / -1` is INT_MIN, `%` has the sign of
      x;
  - a shift by the width or more (unsigned reading of the amount) gives 0, or the sign for `shr` of a signed dtype;
  - float `min`/`max` propagate NaN; `ne` is true and the other comparisons are false for NaN;
  - float → integer truncates and saturates, NaN gives 0; integer → narrower integer wraps; anything → bool is `x != 0`.

Example: out[i] = max(x[i] * 2 + bias[0], 0) over 100 elements.

    >>> x, bias = Buffer("x", "f32", (100,), "input"), Buffer("bias", "f32", (), "input")
    >>> out, i = Buffer("out", "f32", (100,), "output"), Var("i", "i32")
    >>> body = [For(i, 100, [Store(out, i, maximum(x[i] * 2.0 + bias[0], f32(0.0)))], kind="parallel")]
    >>> from weft_wasm.ir.text import describe
    >>> print(describe(Program("relu", [x, bias], [out], [], [Kernel("relu", body)])))
    program relu(x: f32[100], bias: f32[]) -> (out: f32[100])
      kernel relu
        parallel i < 100
          out[i] = max(((x[i] * 2.0) + bias[0]), 0.0)
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, final

from weft.base.annotations import override

ITEMSIZE = {
    "bool": 1,
    "i8": 1,
    "u8": 1,
    "i16": 2,
    "u16": 2,
    "i32": 4,
    "u32": 4,
    "i64": 8,
    "u64": 8,
    "f16": 2,
    "bf16": 2,
    "f32": 4,
    "f64": 8,
}
MOST_ELEMENTS = 1 << 31  # of a buffer: an index is an i32
SIGNED = frozenset(("i8", "i16", "i32", "i64"))
UNSIGNED = frozenset(("u8", "u16", "u32", "u64"))
INTEGERS = SIGNED | UNSIGNED
FLOATS = frozenset(("f32", "f64"))
STORAGE_FLOATS = frozenset(("f16", "bf16"))

UNARY_OPS = frozenset(
    ("neg", "abs", "not", "floor", "ceil", "trunc", "round_even", "round_away", "sqrt", "popcount", "clz")
)
BINARY_OPS = frozenset(("add", "sub", "mul", "div", "rem", "min", "max", "and", "or", "xor", "shl", "shr"))
COMPARE_OPS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
# Functions without an instruction: scalar_math.py writes them in terms of the above, for f32 and f64. `sign` is 0 for
# 0, NaN for NaN.
MATH_UNARY = frozenset(
    (
        "exp",
        "exp2",
        "expm1",
        "log",
        "log1p",
        "log2",
        "sin",
        "cos",
        "tan",
        "sinh",
        "cosh",
        "tanh",
        "asin",
        "acos",
        "atan",
        "asinh",
        "acosh",
        "atanh",
        "rsqrt",
        "cbrt",
        "erf",
        "erfc",
        "erf_inv",
        "erfcx",
        "lgamma",
        "digamma",
        "logistic",
        "sign",
    )
)
MATH_BINARY = frozenset(("pow", "atan2", "nextafter"))
# What those of MATH_UNARY call where their operand is large, which is rare: a target may make functions of them.
MATH_LARGE = frozenset(("sin_large", "cos_large", "tan_large"))
LOOP_KINDS = frozenset(("parallel", "sequential", "reduce"))
REDUCE_OPS = frozenset(("add", "mul", "min", "max", "and", "or", "xor"))
ROLES = frozenset(("input", "output", "temp", "constant", "workgroup", "private"))


ALIGNMENT = 64  # bytes: buffers begin at multiples of it


def padded(nbytes: int) -> int:
    """Bytes that a buffer occupies (at least one unit, so that addresses are distinct)."""
    return max(ALIGNMENT, -(-nbytes // ALIGNMENT) * ALIGNMENT)


@final
class Buffer:
    """Flat storage of `size` elements. Row-major, dense; `shape` is kept for the artifact's metadata.

    role: "input", "output", "temp" (planned into the arena), "constant" (carries `data: bytes`), "workgroup" (declared
        by a kernel),
    "private" (each thread's own, for the time of a kernel).
    label: the dtype the artifact's metadata names, if it isn't `dtype` (a complex array is stored as f32 with shape
    (..., 2)). `buffer[index]` builds a `Load`.
    """

    __slots__ = ("name", "dtype", "shape", "role", "data", "label", "size", "nbytes")
    shape: tuple[int, ...]
    label: str
    size: int
    nbytes: int

    def __init__(
        self,
        name: str,
        dtype: str,
        shape: Sequence[int],
        role: str = "temp",
        data: bytes | None = None,
        label: str | None = None,
    ):
        self.name, self.dtype, self.shape, self.role, self.data = name, dtype, tuple(shape), role, data
        self.label = label or dtype
        self.size = math.prod(self.shape)
        self.nbytes = self.size * ITEMSIZE[dtype]

    @property
    def content(self) -> bytes:
        """The bytes of a constant."""
        if self.data is None:
            raise ValueError(f"{self!r} has no data; its role is {self.role}")
        return self.data

    def __getitem__(self, index: Expr | int) -> Load:
        return Load(self, index if isinstance(index, Node) else Const(index, "i32"))

    @override
    def __repr__(self) -> str:
        return f"{self.name}: {self.dtype}[{','.join(map(str, self.shape))}]"


# ---- expressions


class Node:
    """Base of expressions. `+ - * & | ^ << >> / %` build nodes (a Python number takes the other side's dtype); `-x`,
    `~x` too. They never change.

    Code that treats each kind separately takes an `Expr`, the union of the kinds, so that the type checker reports a
    missing kind.
    """

    __slots__ = ("_loaded", "_below", "_linear")
    dtype: str
    # What `traversal.py` and `affine.py` have found out of a node.
    _loaded: tuple[Buffer, ...]
    _below: list[Expr]
    _linear: tuple[dict[Expr, int], int]

    @override
    def __repr__(self) -> str:
        return shown(self)

    # `self` is one of the kinds of `Expr`, which the base class can't express.

    def __add__(self: Any, other: Operand) -> Expr:
        return add(self, other)

    def __radd__(self: Any, other: Operand) -> Expr:
        return add(lift(other, self.dtype), self)

    def __sub__(self: Any, other: Operand) -> Expr:
        return sub(self, other)

    def __rsub__(self: Any, other: Operand) -> Expr:
        return sub(lift(other, self.dtype), self)

    def __mul__(self: Any, other: Operand) -> Expr:
        return mul(self, other)

    def __rmul__(self: Any, other: Operand) -> Expr:
        return mul(lift(other, self.dtype), self)

    def __truediv__(self: Any, other: Operand) -> Expr:
        return Binary("div", self, lift(other, self.dtype))

    def __rtruediv__(self: Any, other: Operand) -> Expr:
        return Binary("div", lift(other, self.dtype), self)

    def __floordiv__(self: Any, other: Operand) -> Expr:
        return div(self, other)

    def __mod__(self: Any, other: Operand) -> Expr:
        return rem(self, other)

    def __and__(self: Any, other: Operand) -> Expr:
        return Binary("and", self, lift(other, self.dtype))

    def __or__(self: Any, other: Operand) -> Expr:
        return Binary("or", self, lift(other, self.dtype))

    def __xor__(self: Any, other: Operand) -> Expr:
        return Binary("xor", self, lift(other, self.dtype))

    def __lshift__(self: Any, other: Operand) -> Expr:
        return Binary("shl", self, lift(other, self.dtype))

    def __rshift__(self: Any, other: Operand) -> Expr:
        return Binary("shr", self, lift(other, self.dtype))

    def __neg__(self: Any) -> Expr:
        return Unary("neg", self)

    def __invert__(self: Any) -> Expr:
        return Unary("not", self)


Number: TypeAlias = bool | int | float


@final
class Const(Node):
    """A literal: bool, int (in the dtype's range) or float (nan and inf allowed)."""

    __slots__ = ("value", "dtype")
    value: Number  # as dtype says

    def __init__(self, value: float, dtype: str):
        self.value, self.dtype = value, dtype


@final
class Var(Node):
    """An immutable scalar: bound by a `For` (i32) or a `Let`. The object is the variable; the name is for people."""

    __slots__ = ("name", "dtype")

    def __init__(self, name: str, dtype: str = "i32"):
        self.name, self.dtype = name, dtype


@final
class Local(Node):
    """A mutable scalar: introduced by `Declare`, changed by `Assign`. Using it as an expression reads it."""

    __slots__ = ("name", "dtype")

    def __init__(self, name: str, dtype: str):
        self.name, self.dtype = name, dtype


@final
class Load(Node):
    __slots__ = ("buffer", "index", "dtype")

    def __init__(self, buffer: Buffer, index: Expr):
        self.buffer, self.index, self.dtype = buffer, index, buffer.dtype


@final
class Unary(Node):
    """`neg abs` numbers; `not` bool and integers (bitwise); `popcount clz` integers; the rest floats."""

    __slots__ = ("op", "x", "dtype")

    def __init__(self, op: str, x: Expr):
        self.op, self.x, self.dtype = op, x, x.dtype


@final
class Binary(Node):
    """`add sub mul div rem min max` numbers; `and or xor` bool and integers; `shl shr` integers. Both sides have the
    dtype of the result.
    """

    __slots__ = ("op", "a", "b", "dtype")

    def __init__(self, op: str, a: Expr, b: Expr):
        self.op, self.a, self.b, self.dtype = op, a, b, a.dtype


@final
class Compare(Node):
    __slots__ = ("op", "a", "b")
    dtype = "bool"

    def __init__(self, op: str, a: Expr, b: Expr):
        self.op, self.a, self.b = op, a, b


@final
class Select(Node):
    """`a` where `cond`, else `b`; both are evaluated. `rare=True` promises nothing more, but hints that `cond` is
    seldom true, and lets an emitter skip `a` when no lane needs it (slow paths of functions).
    """

    __slots__ = ("cond", "a", "b", "rare", "dtype")

    def __init__(self, cond: Expr, a: Expr, b: Expr, rare: bool = False):
        self.cond, self.a, self.b, self.rare, self.dtype = cond, a, b, rare, a.dtype


@final
class Convert(Node):
    """The value of x in another dtype (see the module docstring for the semantics)."""

    __slots__ = ("x", "dtype")

    def __init__(self, x: Expr, dtype: str):
        self.x, self.dtype = x, dtype


@final
class Bitcast(Node):
    """The bits of x read as a dtype of the same size."""

    __slots__ = ("x", "dtype")

    def __init__(self, x: Expr, dtype: str):
        self.x, self.dtype = x, dtype


@final
class MulAdd(Node):
    """a * b + c, rounded once or twice as the target likes. Floats."""

    __slots__ = ("a", "b", "c", "dtype")

    def __init__(self, a: Expr, b: Expr, c: Expr):
        self.a, self.b, self.c, self.dtype = a, b, c, a.dtype


@final
class Call(Node):
    """A function of MATH_UNARY, MATH_LARGE or MATH_BINARY, on f32 or f64."""

    __slots__ = ("fn", "args", "dtype")

    def __init__(self, fn: str, *args: Expr):
        self.fn, self.args, self.dtype = fn, args, args[0].dtype


Expr: TypeAlias = Const | Var | Local | Load | Unary | Binary | Compare | Select | Convert | Bitcast | MulAdd | Call
Operand: TypeAlias = Expr | int | float


# ---- statements


@final
@dataclass(slots=True, eq=False)
class For:
    """Runs body for var = 0 … extent-1. `extent` is an int or a uniform i32 expression (≤ 0 runs nothing).

    kind: the meaning.
      "sequential"  in order.
      "parallel"    iterations are independent; any order, or at once. They may not assign a Local declared outside.
      "reduce"      the body changes Locals declared outside, each only as `acc = acc ⊕ e` with ⊕ in REDUCE_OPS (or
                    `acc = MulAdd(a, b, acc)`), where nothing else in the body reads acc. It may store, each
                    iteration to an element of its own. Iterations may be regrouped.
    vector, unroll: the schedule, which changes speed and rounding only.
      vector=n      n SIMD vectors at a time (parallel and reduce loops only; inner control flow must not depend on
      var).
                    Loops inside are jammed: a parallel vector loop around a reduction keeps n vectors of accumulators.
      unroll=n      n copies of the body an iteration; n ≥ extent leaves no loop.
      outline=True  Wasm: the loop is a function of its own, so that engines allocate registers for it alone and
                    optimise it while it is still being called. It must not assign a Local from outside.
      tasks=n       Wasm: threads may share the iterations of a parallel loop, at least n at a time (`tasks.py`).
    """

    var: Var
    extent: int | Expr
    body: list[Stmt]
    kind: str = "sequential"
    vector: int = 0
    unroll: int = 1
    outline: bool = False
    tasks: int = 0

    @property
    def count(self) -> int:
        """The extent of a loop, which must be an int."""
        if type(self.extent) is not int:
            raise TypeError(f"the extent of the loop over {self.var.name} is not an int: {self.extent!r}")
        return self.extent


@final
@dataclass(slots=True, eq=False)
class While:
    """Runs `cond` (statements), then ends if `test` is false, else runs `body`, and again. At program level `cond`
    holds kernels and `test` is a Load.
    """

    cond: list[Stmt]
    test: Expr
    body: list[Stmt]


@final
@dataclass(slots=True, eq=False)
class If:
    test: Expr
    then: list[Stmt]
    orelse: list[Stmt] = field(default_factory=list)


@final
@dataclass(slots=True, eq=False)
class Switch:
    """Runs branches[clamp(index, 0, n-1)]; index is i32."""

    index: Expr
    branches: list[list[Stmt]]


@final
@dataclass(slots=True, eq=False)
class Let:
    var: Var
    value: Expr


@final
@dataclass(slots=True, eq=False)
class Declare:
    local: Local
    init: Expr


@final
@dataclass(slots=True, eq=False)
class Assign:
    local: Local
    value: Expr


@final
@dataclass(slots=True, eq=False)
class Store:
    """buffer[index] = value; the value has the buffer's dtype, the buffer isn't an input or a constant."""

    buffer: Buffer
    index: Expr
    value: Expr


@final
@dataclass(slots=True, eq=False)
class Barrier:
    """All invocations of a workgroup reach it before one passes; their writes are visible then. It has no effect in
    WebAssembly.
    """


@final
@dataclass(slots=True, eq=False)
class Poll:
    """Ends the program where its host has asked for that (the word at STOP, docs/artifact.md). Nothing in WGSL."""


@final
@dataclass(slots=True, eq=False)
class Kernel:
    """A piece of work without host control flow: one Wasm function, one WGSL dispatch (its outermost parallel loops are
    the grid). It may use the variables of the program-level loops around it. `workgroup` declares workgroup buffers.

    plain: loops that read and write the same, one iteration of the outermost as one of the body's, where those of the
        body don't show it.
    depth: how many of the outermost loops of `plain` are so; each is the last statement of the one around it in the
        body.
    parts: the kernels that it was made of, in their order.
    """

    name: str
    body: list[Stmt]
    workgroup: list[Buffer] = field(default_factory=list)
    plain: list[Stmt] = field(default_factory=list)
    depth: int = 1
    parts: list[Kernel] = field(default_factory=list)


@final
@dataclass(slots=True, eq=False)
class Instance:
    """Program level: `kernel` once more, on other buffers: `buffers` has what stands in the place of each of its own
    that is another one here. Different buffers stay different, and keep their types and sizes.
    """

    name: str
    kernel: Kernel
    buffers: dict[Buffer, Buffer]


@final
@dataclass(slots=True, eq=False)
class Copy:
    """Program level: `count` elements from src[src_index:] to dst[dst_index:] (same dtype; may overlap within a
    buffer).
    """

    dst: Buffer
    src: Buffer
    count: int
    dst_index: Expr | int = 0
    src_index: Expr | int = 0


@final
@dataclass(slots=True, eq=False)
class Fail:
    """Program level: ends the program with an error code (> 0), a key of `Program.errors`."""

    code: int


@final
@dataclass(slots=True, eq=False)
class HostCall:
    """Program level: calls function `number` of the host, which reads the arguments and writes the results; where it
    fails, so does the program.

    table: an i32 temp, into which the addresses of the arguments and results are put; two elements for each, as they
        may have 64 bits.
    """

    number: int
    table: Buffer
    arguments: list[Buffer]
    results: list[Buffer]


Stmt: TypeAlias = (
    For
    | While
    | If
    | Switch
    | Let
    | Declare
    | Assign
    | Store
    | Barrier
    | Poll
    | Kernel
    | Instance
    | Copy
    | Fail
    | HostCall
)


class Called(Protocol):
    """The host function of a call: it gets the arrays `ins` and makes the arrays `outs`."""

    @property
    def name(self) -> str: ...

    @property
    def ins(self) -> Sequence[object]: ...

    @property
    def outs(self) -> Sequence[object]: ...


@final
@dataclass(slots=True, eq=False, repr=False)
class Program:
    """Buffers and statements. The program level holds Kernel, Instance, Copy, HostCall, Fail, Poll, and For
    (sequential or parallel), While, If, Switch around them. What a temp holds before an iteration of a parallel loop
    writes to it is undefined; of other buffers, iterations write different parts.

    donated: {output index: input index}; the output may be the very storage of the input, so the program must be right
    when it is (the planner never checks it). An output may also be read back by later kernels.
    constants: every Buffer of role "constant"; collected by `constants_of` if left empty.
    errors: texts of `Fail` codes. calls: what its host calls do, for whoever loads it.
    """

    name: str
    inputs: list[Buffer]
    outputs: list[Buffer]
    temps: list[Buffer]
    body: list[Stmt]
    constants: list[Buffer] = field(default_factory=list)
    donated: dict[int, int] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)
    calls: Sequence[Called] = field(default_factory=list)

    @override
    def __repr__(self) -> str:
        return shown(self)


@functools.singledispatch
def shown(x: object) -> str:
    """The text that `repr` shows of expressions and programs; `text.py` makes it."""
    return object.__repr__(x)


# ---- constructors that fold trivial operations (most of what lowering builds is index arithmetic)


def lift(x: Operand, dtype: str) -> Expr:
    """A Python number as a Const of dtype; an expression as it is."""
    return x if isinstance(x, Node) else Const(x, dtype)


def wrap(value: int, dtype: str) -> int:
    """An integer modulo the width of dtype, in its range."""
    bits = 8 * ITEMSIZE[dtype]
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype in SIGNED and value >> (bits - 1) else value


def int_range(dtype: str) -> tuple[int, int]:
    """The least and greatest value of an integer dtype (bool: 0, 1)."""
    if dtype == "bool":
        return 0, 1
    bits = 8 * ITEMSIZE[dtype]
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if dtype in SIGNED else (0, (1 << bits) - 1)


def whole(e: Const) -> int:
    """The value of a constant of an integer dtype."""
    if isinstance(e.value, int):
        return e.value
    raise TypeError(f"a constant of dtype {e.dtype} that is {e.value!r}")


def i32(x: int) -> Const:
    return Const(x, "i32")


def f32(x: float) -> Const:
    return Const(x, "f32")


def add(a: Expr, b: Operand) -> Expr:
    b = lift(b, a.dtype)
    if a.dtype in INTEGERS:
        if type(b) is Const:
            if type(a) is Const:
                return Const(wrap(whole(a) + whole(b), a.dtype), a.dtype)
            if b.value == 0:
                return a
        elif type(a) is Const and a.value == 0:
            return b
    return Binary("add", a, b)


def sub(a: Expr, b: Operand) -> Expr:
    b = lift(b, a.dtype)
    if type(b) is Const and a.dtype in INTEGERS:
        if type(a) is Const:
            return Const(wrap(whole(a) - whole(b), a.dtype), a.dtype)
        if b.value == 0:
            return a
    return Binary("sub", a, b)


def mul(a: Expr, b: Operand) -> Expr:
    b = lift(b, a.dtype)
    if a.dtype in INTEGERS:
        if type(a) is Const:
            a, b = b, a
        if type(b) is Const:
            if type(a) is Const:
                return Const(wrap(whole(a) * whole(b), a.dtype), a.dtype)
            if b.value == 1:
                return a
            if b.value == 0:
                return b
    return Binary("mul", a, b)


def div(a: Expr, b: Operand) -> Expr:
    """Quotient; integers truncate (use it on non-negative indices)."""
    b = lift(b, a.dtype)
    if type(b) is Const and a.dtype in INTEGERS:
        if b.value == 1:
            return a
        if type(a) is Const and a.value >= 0 and b.value > 0:
            return Const(a.value // b.value, a.dtype)
    return Binary("div", a, b)


def rem(a: Expr, b: Operand) -> Expr:
    b = lift(b, a.dtype)
    if type(b) is Const and a.dtype in INTEGERS:
        if b.value == 1:
            return Const(0, a.dtype)
        if type(a) is Const and a.value >= 0 and b.value > 0:
            return Const(a.value % b.value, a.dtype)
    return Binary("rem", a, b)


def minimum(a: Expr, b: Operand) -> Expr:
    return Binary("min", a, lift(b, a.dtype))


def maximum(a: Expr, b: Operand) -> Expr:
    return Binary("max", a, lift(b, a.dtype))


def clamp(lo: Operand, x: Expr, hi: Operand) -> Expr:
    return minimum(maximum(x, lo), hi)


def eq(a: Expr, b: Operand) -> Expr:
    return Compare("eq", a, lift(b, a.dtype))


def ne(a: Expr, b: Operand) -> Expr:
    return Compare("ne", a, lift(b, a.dtype))


def lt(a: Expr, b: Operand) -> Expr:
    return Compare("lt", a, lift(b, a.dtype))


def le(a: Expr, b: Operand) -> Expr:
    return Compare("le", a, lift(b, a.dtype))


def gt(a: Expr, b: Operand) -> Expr:
    return Compare("gt", a, lift(b, a.dtype))


def ge(a: Expr, b: Operand) -> Expr:
    return Compare("ge", a, lift(b, a.dtype))


def select(cond: Expr, a: Expr, b: Operand) -> Expr:
    return Select(cond, a, lift(b, a.dtype))


def convert(x: Expr, dtype: str) -> Expr:
    return x if x.dtype == dtype else Convert(x, dtype)


def bitcast(x: Expr, dtype: str) -> Expr:
    return x if x.dtype == dtype else Bitcast(x, dtype)
