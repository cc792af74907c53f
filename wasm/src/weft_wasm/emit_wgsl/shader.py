"""Expressions and statements of the loop IR as WGSL: one table from nodes to text.

Every dtype of at most 32 bits is held in a 32-bit scalar: integers in i32 or u32, in their dtype's range; f16 and bf16
in the f32 that they equal. An element of a dtype narrower than 32 bits takes a word of its buffer, with its bits in the
low end and zeros above; in buffers that a program begins with, several share a word.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any, assert_never

from weft_wasm.elementary import expansion
from weft_wasm.emit_wgsl import prelude
from weft_wasm.ir.nodes import (
    INTEGERS,
    ITEMSIZE,
    SIGNED,
    STORAGE_FLOATS,
    Assign,
    Barrier,
    Binary,
    Bitcast,
    Buffer,
    Call,
    Compare,
    Const,
    Convert,
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
    Poll,
    Select,
    Stmt,
    Store,
    Switch,
    Unary,
    Var,
    While,
    int_range,
)
from weft_wasm.ir.traversal import operands, walk_expr
from weft_wasm.ir.kinds import covering, method

TYPES = {
    "bool": "bool",
    "i8": "i32",
    "i16": "i32",
    "i32": "i32",
    "u8": "u32",
    "u16": "u32",
    "u32": "u32",
    "f16": "f32",
    "bf16": "f32",
    "f32": "f32",
}
NARROW = {name: 8 * ITEMSIZE[name] for name in TYPES if ITEMSIZE[name] < 4 and name != "bool"}
WORD = 4  # bytes
UNROLL = (8, 4, 2)  # iterations of a short loop that are written out
SHORT = 4  # statements
NESTING = 12  # deeper expressions are cut by a `let`: parsers of shaders recurse


class WgslError(ValueError):
    """A program holds a dtype that WebGPU devices do not have (f64, i64, u64, complex numbers). The message names the
    kernel and the dtype; convert the operands to 32 bits, or run that part on another backend.
    """


def storage(dtype: str) -> str:
    """The element type of a buffer."""
    return dtype if dtype in ("i32", "f32") else "u32"


def is_packed(buffer: Buffer) -> bool:
    """Whether a word of a buffer holds several elements: those with which a program begins do, and are only read."""
    return buffer.nbytes < WORD * buffer.size


def type_of(dtype: str, where: str) -> str:
    """The WGSL type of a value. Raises WgslError if there is none."""
    try:
        return TYPES[dtype]
    except KeyError:
        raise WgslError(
            f"{where} computes in {dtype}, which WebGPU devices do not have; use 32-bit dtypes there, or the wasm or"
            " cpu backend"
        ) from None


class Shader:
    """The text of one entry point. `place(buffer)` gives (variable, element type, first element) of a buffer."""

    def __init__(self, name: str, place: Callable[[Buffer], tuple[str, str, int]]):
        self.name, self.place = name, place
        self.lines: list[str] = []
        self.depth = 1
        self.env: dict[Expr, str] = {}
        self.helpers: set[str] = set()
        self.functions: dict[str, str] = {}  # functions made of expanded expressions, by name
        self.count = 0

    # ---- text

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def fresh(self, name: str) -> str:
        self.count += 1
        word = re.sub(r"\W", "_", name)
        return f"{word if word[:1].isalpha() else 'v' + word}_{self.count}"

    def helper(self, name: str) -> str:
        self.helpers.add(name)
        return name

    def type(self, dtype: str) -> str:
        return type_of(dtype, f"kernel {self.name}")

    def functions_text(self) -> str:
        return "\n".join([*prelude.texts(self.helpers), *self.functions.values()])

    # ---- expressions

    def values(self, *roots: Expr) -> list[str]:
        """Texts of expressions of one statement; shared nodes are computed once, in lines before it."""
        seen: set[Expr] = set()
        order = [node for root in roots for node in walk_expr(root, seen)]
        uses: dict[Expr, int] = {}
        for node in (*(x for n in order for x in operands(n)), *roots):
            uses[node] = uses.get(node, 0) + 1
        known: dict[Expr, str] = {}
        nesting: dict[Expr, int] = {}
        for node in order:
            kind = type(node)
            if kind is Var or kind is Local:
                known[node] = self.env[node]
                continue
            parts = operands(node)
            deep = 1 + max((nesting.get(x, 0) for x in parts), default=0)
            text = _EMIT[kind](self, node, [known[x] for x in parts])
            if kind is not Const and (uses[node] > 1 or deep > NESTING):
                name = self.fresh("t")
                self.line(f"let {name} = {text};")
                text, deep = name, 0
            known[node], nesting[node] = text, deep
        return [known[root] for root in roots]

    def value(self, root: Expr) -> str:
        return self.values(root)[0]

    def call(self, name: str, *args: str) -> str:
        return f"{self.helper(name)}({', '.join(args)})"

    def expanded(self, name: str, params: Sequence[Var], build: Callable[[], Expr], args: Sequence[str]) -> str:
        """A call of a separate function, whose body is an expression of its parameters."""
        if name not in self.functions:
            # keeps its place before functions that its body calls are added after it; WGSL has no order
            self.functions[name] = ""
            inner = Shader(self.name, self.place)
            inner.helpers, inner.functions = self.helpers, self.functions
            inner.env = {v: v.name for v in params}
            result = build()
            text = inner.value(result)
            head = ", ".join(f"{v.name}: {self.type(v.dtype)}" for v in params)
            self.functions[name] = "\n".join(
                [f"fn {name}({head}) -> {self.type(result.dtype)} {{", *inner.lines, f"  return {text};", "}"]
            )
        return f"{name}({', '.join(args)})"

    def const(self, e: Const) -> str:
        kind = self.type(e.dtype)
        if kind == "bool":
            return "true" if e.value else "false"
        if kind == "u32":
            return f"{e.value}u"
        if kind == "i32":
            return f"{e.value}i" if e.value > -(1 << 31) else "i32(0x80000000u)"
        x = to_f32(e.value)
        if not math.isfinite(x) or 0 < abs(x) < 2.0**-126 or (x == 0 and math.copysign(1, x) < 0):
            return self.call("as_f32", f"0x{f32_bits(x):08x}u")
        return f"{x!r}f"

    def runtime(self, e: Expr, text: str) -> str:
        """A text that is not a constant expression (those are refused if they overflow, and folded without regard to
        NaN).
        """
        return self.call(f"keep_{self.type(e.dtype)}", text) if type(e) is Const else text

    def keep(self, e: Expr, text: str) -> str:
        """An addend that the compiler must not reassociate. (Applied twice it has no effect: x ^ zero ^ zero is x.)"""
        additive = type(e) is MulAdd or (type(e) is Binary and e.op in ("add", "sub", "mul") and e.dtype == "f32")
        return self.call("keep_f32", text) if additive else self.factor(e, text)

    def factor(self, e: Expr, text: str) -> str:
        """A factor: a zero that the compiler knew would make the product zero, which is wrong for NaN and infinity."""
        return self.call("as_f32", f"0x{f32_bits(e.value):08x}u") if type(e) is Const and e.value == 0 else text

    def wrapped(self, text: str, dtype: str) -> str:
        """An integer result brought into the range of a narrow dtype."""
        bits = NARROW.get(dtype)
        if bits is None:
            return text
        if dtype in SIGNED:
            return f"(({text} << {32 - bits}u) >> {32 - bits}u)"
        return f"({text} & {(1 << bits) - 1:#x}u)"

    # ---- memory

    def element(self, buffer: Buffer, index: str) -> tuple[str, str]:
        """(the reference to an element, the type of the storage)."""
        variable, kind, offset = self.place(buffer)
        unit = "u" if is_packed(buffer) else "i"
        return f"{variable}[{index} + {offset}{unit}]" if offset else f"{variable}[{index}]", kind

    def overlap(self, a: Buffer, b: Buffer) -> bool:
        """Whether two buffers share storage."""
        (x, _, first), (y, _, second) = self.place(a), self.place(b)
        return a is b or x == y and first < second + b.size and second < first + a.size

    def load(self, e: Load, index: str) -> str:
        text, kind = self.stored(e.buffer, index)
        return self.decode(text, kind, e.dtype)

    def stored(self, buffer: Buffer, index: str) -> tuple[str, str]:
        """(an element as it is stored, the type of that)."""
        if not is_packed(buffer):
            return self.element(buffer, index)
        bits = 8 * ITEMSIZE[buffer.dtype]
        at = self.fresh("at")
        self.line(f"let {at} = u32({index});")
        word, kind = self.element(buffer, f"({at} / {32 // bits}u)")
        return f"(({word} >> ({at} % {32 // bits}u * {bits}u)) & {(1 << bits) - 1:#x}u)", kind

    def decode(self, text: str, kind: str, dtype: str) -> str:
        if kind == storage(dtype) and TYPES.get(dtype) == kind and dtype not in NARROW:
            return text
        word = text if kind == "u32" else f"bitcast<u32>({text})"
        if dtype == "bool":
            return f"({word} != 0u)"
        if dtype in STORAGE_FLOATS:
            bits = Var("bits", "u32")
            return self.expanded(f"decode_{dtype}", [bits], lambda: expansion.decode_bits(bits, dtype), [word])
        target = self.type(dtype)
        if dtype in NARROW:
            return self.wrapped(f"bitcast<i32>({word})", dtype) if target == "i32" else word
        return word if target == "u32" else f"bitcast<{target}>({word})"

    def encode(self, text: str, dtype: str, kind: str) -> str:
        if dtype == "bool":
            word = f"u32({text})"
        elif dtype in STORAGE_FLOATS:
            x = Var("x", "f32")
            word = self.expanded(f"encode_{dtype}", [x], lambda: expansion.encode_bits(x, dtype), [text])
        elif dtype in NARROW and self.type(dtype) == "i32":
            word = f"(bitcast<u32>({text}) & {(1 << NARROW[dtype]) - 1:#x}u)"
        elif self.type(dtype) == kind:
            return text
        else:
            word = f"bitcast<u32>({text})"
        return word if kind == "u32" else f"bitcast<{kind}>({word})"

    # ---- statements

    def block(self, body: Sequence[Stmt]) -> None:
        for s in body:
            self.statement(s)

    def statement(self, s: Stmt) -> None:
        match s:
            case For():
                self.loop(s)
            case While():
                self.loop_while(s)
            case If():
                self.branch(s)
            case Switch():
                self.switch(s)
            case Let():
                self.let(s)
            case Declare():
                self.declare(s)
            case Assign():
                self.assign(s)
            case Store():
                self.store(s)
            case Barrier() | Poll():
                pass  # the invocations of a dispatch do not share anything
            case Kernel() | Instance() | Copy() | HostCall() | Fail():
                raise TypeError(f"{type(s).__name__} is not a statement of a kernel")
            case _:
                assert_never(s)

    def braces(self, head: str, body: Sequence[Stmt]) -> None:
        self.line(f"{head} {{")
        self.depth += 1
        self.block(body)
        self.depth -= 1
        self.line("}")

    def let(self, s: Let) -> None:
        name = self.fresh(s.var.name)
        self.line(f"let {name}: {self.type(s.var.dtype)} = {self.value(s.value)};")
        self.env[s.var] = name

    def declare(self, s: Declare) -> None:
        name = self.fresh(s.local.name)
        self.line(f"var {name}: {self.type(s.local.dtype)} = {self.value(s.init)};")
        self.env[s.local] = name

    def assign(self, s: Assign) -> None:
        self.line(f"{self.env[s.local]} = {self.value(s.value)};")

    def store(self, s: Store) -> None:
        if is_packed(s.buffer):
            raise TypeError(f"a store to {s.buffer!r}, of which a word holds several elements")
        x = s.value
        if type(x) is Load and x.dtype == s.buffer.dtype and ITEMSIZE[x.dtype] < WORD:  # also the bits of a NaN
            index, source = self.values(s.index, x.index)
            value, _ = self.stored(x.buffer, source)
            self.line(f"{self.element(s.buffer, index)[0]} = {value};")
            return
        index, value = self.values(s.index, x)
        text, kind = self.element(s.buffer, index)
        self.line(f"{text} = {self.encode(value, s.buffer.dtype, kind)};")

    def loop(self, s: For, start: str = "0i", step: str = "1i") -> None:
        if isinstance(s.extent, Expr):
            end = self.fresh("end")
            self.line(f"let {end} = {self.value(s.extent)};")
        else:
            end = f"{s.extent}i"
        name = self.env[s.var] = self.fresh(s.var.name)
        copies = unrolled(s) if step == "1i" else 1
        if copies == 1:
            return self.braces(f"for (var {name} = {start}; {name} < {end}; {name} += {step})", s.body)
        self.line(f"for (var {name} = {start}; {name} < {end}; {name} += {copies}i) {{")
        self.depth += 1
        for k in range(copies):
            self.line("{")
            self.depth += 1
            if k:
                self.env[s.var] = self.fresh(s.var.name)
                self.line(f"let {self.env[s.var]} = {name} + {k}i;")
            self.block(s.body)
            self.depth -= 1
            self.line("}")
        self.depth -= 1
        self.line("}")

    def loop_while(self, s: While) -> None:
        self.line("loop {")
        self.depth += 1
        self.block(s.cond)
        self.line(f"if (!({self.value(s.test)})) {{ break; }}")
        self.block(s.body)
        self.depth -= 1
        self.line("}")

    def branch(self, s: If) -> None:
        self.braces(f"if ({self.value(s.test)})", s.then)
        if s.orelse:
            self.braces("else", s.orelse)

    def switch(self, s: Switch) -> None:
        self.line(f"switch (clamp({self.value(s.index)}, 0i, {len(s.branches) - 1}i)) {{")
        self.depth += 1
        for k, body in enumerate(s.branches):
            self.braces("default:" if k == len(s.branches) - 1 else f"case {k}i:", body)
        self.depth -= 1
        self.line("}")


def unrolled(s: For) -> int:
    """How many iterations are written out one after the other: of a short loop over terms, the steps of the loop take
    as long as its body. Measured in Chromium; products by tiles are long, and slower so.
    """
    if s.kind != "reduce" or isinstance(s.extent, Expr) or len(s.body) > SHORT:
        return 1
    if not all(type(x) in (Let, Assign) for x in s.body):
        return 1
    return next((n for n in UNROLL if s.extent % n == 0), 1)


def to_f32(x: float) -> float:
    nearest: float
    try:
        (nearest,) = struct.unpack("<f", struct.pack("<f", x))
    except OverflowError:
        nearest = math.copysign(math.inf, x)
    return nearest


def f32_bits(x: float) -> int:
    bits: int
    (bits,) = struct.unpack("<I", struct.pack("<f", x))
    return bits


# ---- the table: (shader, node, texts of its operands) -> text


def _const(s: Shader, e: Const, parts: list[str]) -> str:
    return s.const(e)


def _load(s: Shader, e: Load, parts: list[str]) -> str:
    return s.load(e, parts[0])


def _unary(s: Shader, e: Unary, parts: list[str]) -> str:
    x = s.runtime(e.x, parts[0])
    kind = s.type(e.dtype)
    match e.op:
        case "neg":
            return s.wrapped(f"(-{x})" if kind != "u32" else f"(0u - {x})", e.dtype)
        case "abs":
            if kind == "f32":
                return s.call("abs_f32", x)
            return s.wrapped(f"abs({x})", e.dtype)
        case "not":
            return f"(!{x})" if kind == "bool" else s.wrapped(f"(~{x})", e.dtype)
        case "popcount":
            return f"countOneBits({_low_bits(x, e.dtype)})"
        case "clz":
            lost = 32 - NARROW.get(e.dtype, 32)
            return (
                f"(countLeadingZeros({_low_bits(x, e.dtype)}) - {lost}{kind[0]})" if lost else f"countLeadingZeros({x})"
            )
        case "round_away":
            v = Var("x", "f32")
            return s.expanded("round_away", [v], lambda: expansion.round_away(v), [x])
    return f"{'round' if e.op == 'round_even' else e.op}({x})"  # floor ceil trunc sqrt


def _low_bits(x: str, dtype: str) -> str:
    bits = NARROW.get(dtype)
    return f"({x} & {(1 << bits) - 1:#x}{'i' if dtype in SIGNED else 'u'})" if bits else x


_SYMBOL = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^"}


def _binary(s: Shader, e: Binary, parts: list[str]) -> str:
    kind = s.type(e.dtype)
    a, b = s.runtime(e.a, parts[0]), parts[1]
    if kind == "bool":
        return f"({a} != {b})" if e.op == "xor" else f"({a} {_SYMBOL[e.op]} {b})"
    if kind == "f32":
        return _float_binary(s, e, *parts)
    if e.op in ("shl", "shr"):
        return s.wrapped(_shift(s, e, a, b, kind), e.dtype)
    if e.op in ("div", "rem"):
        known = type(e.b) is Const and e.b.value > 0
        quick = known and (e.op == "div" or kind == "u32")
        text = f"({a} {'/' if e.op == 'div' else '%'} {b})" if quick else s.call(f"{e.op}_{kind}", a, b)
        return s.wrapped(text, e.dtype)
    if e.op in ("min", "max"):
        return f"{e.op}({a}, {b})"
    return s.wrapped(f"({a} {_SYMBOL[e.op]} {b})", e.dtype)


def _shift(s: Shader, e: Binary, a: str, b: str, kind: str) -> str:
    if type(e.b) is Const and 0 <= e.b.value < 32:
        return f"({a} {'<<' if e.op == 'shl' else '>>'} {e.b.value}u)"
    return s.call(f"{e.op}_{kind}", a, b if kind == "u32" else f"bitcast<u32>({s.runtime(e.b, b)})")


def _float_binary(s: Shader, e: Binary, a: str, b: str) -> str:
    if e.op in ("min", "max", "rem"):
        return s.call(f"{e.op}_f32", a, b)
    if e.op in ("add", "sub"):
        a, b = s.keep(e.a, a), s.keep(e.b, b)
    else:
        a, b = s.factor(e.a, a), s.factor(e.b, b)
    if type(e.a) is Const and type(e.b) is Const and e.a.value:
        a = s.call("keep_f32", a)
    if e.a is e.b and e.op in ("sub", "div"):  # not 0 or 1 for NaN and infinity
        b = s.call("keep_f32", b)
    return f"({a} {_SYMBOL[e.op]} {b})"


def _mul_add(s: Shader, e: MulAdd, parts: list[str]) -> str:
    a, b, c = s.factor(e.a, parts[0]), s.factor(e.b, parts[1]), parts[2]
    if type(e.a) is Const and type(e.b) is Const and e.a.value:
        a = s.call("keep_f32", a)
    return f"({a} * {b} + {s.keep(e.c, c)})"


def _compare(s: Shader, e: Compare, parts: list[str]) -> str:
    kind = s.type(e.a.dtype)
    a, b = s.runtime(e.a, parts[0]), parts[1]
    if kind == "bool":
        if e.op in ("eq", "ne"):
            return f"({a} {'==' if e.op == 'eq' else '!='} {b})"
        a, b = f"u32({a})", f"u32({b})"
    elif kind == "f32":
        return _float_compare(s, e, a, b)
    return f"({a} {_COMPARE_SYMBOL[e.op]} {b})"


_COMPARE_SYMBOL = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_MIRROR = {"eq": "eq", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def _float_compare(s: Shader, e: Compare, a: str, b: str) -> str:
    if e.a is e.b and e.op in ("eq", "ne"):
        return ("!" if e.op == "eq" else "") + s.call("is_nan", a)
    op, sign = ("eq", "!") if e.op == "ne" else (e.op, "")
    form = ""
    if type(e.b) is Const:
        form = "_c" if math.isfinite(to_f32(e.b.value)) else "_x"
    elif type(e.a) is Const:
        return sign + _float_compare(s, Compare(_MIRROR[op], e.b, e.a), b, a)
    return sign + s.call(f"{op}_f32{form}", a, b)


def _select(s: Shader, e: Select, parts: list[str]) -> str:
    cond, a, b = parts
    s.type(e.dtype)
    return f"select({b}, {a}, {cond})"


def _convert(s: Shader, e: Convert, parts: list[str]) -> str:
    source, target = e.x.dtype, e.dtype
    old, new = s.type(source), s.type(target)
    x = s.runtime(e.x, parts[0])
    if target in STORAGE_FLOATS:
        if source == target:
            return x
        v = Var("x", "f32")
        as_float = x if old == "f32" else f"f32({x})"
        # not `scalar_math.nearest`: a shader's compiler may take x + large - large for x
        return s.expanded(
            f"round_{target}", [v], lambda: expansion.decode_bits(expansion.encode_bits(v, target), target), [as_float]
        )
    if new == "bool":
        return x if old == "bool" else f"((bitcast<u32>({x}) << 1u) != 0u)" if old == "f32" else f"({x} != 0{old[0]})"
    if target in INTEGERS and old == "f32":
        text = s.call(f"f32_to_{new}", x)
        low, high = int_range(target)
        return f"clamp({text}, {low}{new[0]}, {high}{new[0]})" if target in NARROW else text
    text = x if old == new else f"{new}({x})"
    return s.wrapped(text, target) if target in NARROW and old != "bool" and not _fits(source, target) else text


def _fits(source: str, target: str) -> bool:
    (a, b), (low, high) = int_range(source), int_range(target)
    return low <= a and b <= high


def _bitcast(s: Shader, e: Bitcast, parts: list[str]) -> str:
    source, target = e.x.dtype, e.dtype
    old, new = s.type(source), s.type(target)
    x = s.runtime(e.x, parts[0])
    if type(e.x) is Load and source in NARROW and target == "u32":
        return s.stored(e.x.buffer, s.value(e.x.index))[0]  # also the bits of a NaN
    if source in STORAGE_FLOATS or target in STORAGE_FLOATS:
        return s.decode(s.encode(x, source, "u32"), "u32", target)
    if source in NARROW:
        return x if old == new else s.wrapped(f"bitcast<{new}>({x})", target)
    return x if old == new else f"bitcast<{new}>({x})"


def _call(s: Shader, e: Call, parts: list[str]) -> str:
    s.type(e.dtype)
    params = [Var(name, "f32") for name in ("x", "y")[: len(parts)]]
    return s.expanded(f"weft_{e.fn}", params, lambda: expansion.expand(Call(e.fn, *params), f64=False), parts)


_EMIT: dict[type, Callable[[Shader, Any, list[str]], str]] = covering(
    Expr,
    {
        **method(Const, _const),
        **method(Load, _load),
        **method(Unary, _unary),
        **method(Binary, _binary),
        **method(Compare, _compare),
        **method(Select, _select),
        **method(Convert, _convert),
        **method(Bitcast, _bitcast),
        **method(MulAdd, _mul_add),
        **method(Call, _call),
    },
    leaves=(Var, Local),
)
