"""Elementwise primitives as scalar expressions.

A rule takes the node and its operands' elements (f16 and bf16 already as f32) and gives the result's element. `COSTS`
are rough numbers of instructions; 1 where nothing is said.
"""

from __future__ import annotations

import functools
import math
from typing import Callable, Sequence

from weft_wasm.ir import nodes
from weft_wasm.ir.nodes import Binary, Bitcast, Call, Const, Convert, Expr, Select, Unary, convert
from weft_wasm.lower import formats, graph
from weft_wasm.lower.graph import Node
from weft_wasm.lower.formats import FORMATS, Int
from weft_wasm.lower.types import memory_dtype, narrow, widen

Rule = Callable[[Node, Sequence[Expr]], Expr]
ELEMENT_RULES: dict[str, Rule] = {}
COSTS: dict[str, int] = {}
DEPTHS: dict[str, Callable[[Node], int]] = {}  # of those that nest more than DEPTH operations
MATH_COST = 24  # a function that is a polynomial
DEPTH = 3


def rule(name: str, cost: int = 1, depth: Callable[[Node], int] | None = None) -> Callable[[Rule], Rule]:
    """Registers the rule of an elementwise primitive. depth: how many operations nest in what it makes of a node, at
    most; DEPTH where it isn't given.
    """

    def register(f: Rule) -> Rule:
        ELEMENT_RULES[name] = f
        COSTS[name] = cost
        if depth is not None:
            DEPTHS[name] = depth
        graph.known.add(name)
        return f

    return register


def dtypes_of(node: Node) -> tuple[str, str]:
    """(storage dtype of the last operand, of the result)."""
    return node.inputs[-1].dtype, node.outputs[0].dtype


def as_number(e: Expr) -> Expr:
    """A bool as an i32 0 or 1; everything else as it is."""
    return Convert(e, "i32") if e.dtype == "bool" else e


def signed_twin(dtype: str) -> str:
    return "i" + dtype[1:]


def unsigned_twin(dtype: str) -> str:
    return "u" + dtype[1:]


# ---- arithmetic

rule("add")(lambda n, a: nodes.add(a[0], a[1]))
rule("add_any")(lambda n, a: nodes.add(a[0], a[1]) if a[0].dtype != "bool" else Binary("or", a[0], a[1]))
rule("sub")(lambda n, a: nodes.sub(a[0], a[1]))
rule("mul")(lambda n, a: nodes.mul(a[0], a[1]))
rule("neg")(lambda n, a: Unary("neg", a[0]))
rule("div", 4)(lambda n, a: Binary("div", a[0], a[1]))
rule("rem", 6)(lambda n, a: Binary("rem", a[0], a[1]))
rule("square")(lambda n, a: nodes.mul(a[0], a[0]))
rule("not")(lambda n, a: Unary("not", a[0]))
rule("and")(lambda n, a: Binary("and", a[0], a[1]))
rule("or")(lambda n, a: Binary("or", a[0], a[1]))
rule("xor")(lambda n, a: Binary("xor", a[0], a[1]))


def _extremum(op: str, of_bools: str, start: float) -> Rule:
    """Where an extremum starts, the other operand is the result."""

    def extremum(n: Node, a: Sequence[Expr]) -> Expr:
        first, second = a
        for x, y in ((first, second), (second, first)):
            if type(x) is Const and x.value == start:
                return y
        return Binary(of_bools if first.dtype == "bool" else op, first, second)

    return extremum


rule("max")(_extremum("max", "or", -math.inf))
rule("min")(_extremum("min", "and", math.inf))


@rule("clamp", 2)
def _clamp(n: Node, a: Sequence[Expr]) -> Expr:
    lo, x, hi = a
    if x.dtype == "bool":
        return Binary("and", Binary("or", x, lo), hi)
    return Binary("min", Binary("max", x, lo), hi)


@rule("abs")
def _abs(n: Node, a: Sequence[Expr]) -> Expr:
    return a[0] if a[0].dtype in nodes.UNSIGNED else Unary("abs", a[0])


@rule("sign", 2)
def _sign(n: Node, a: Sequence[Expr]) -> Expr:
    (x,) = a
    if x.dtype in nodes.FLOATS:
        return Call("sign", x)
    one, zero = Const(1, x.dtype), Const(0, x.dtype)
    positive = Select(nodes.gt(x, zero), one, zero)
    return positive if x.dtype in nodes.UNSIGNED else Select(nodes.lt(x, zero), Const(-1, x.dtype), positive)


@rule("integer_pow", 2, lambda node: 2 * abs(node.params["y"]).bit_length())
def _integer_pow(node: Node, a: Sequence[Expr]) -> Expr:
    (x,) = a
    n = node.params["y"]
    one = Const(1.0 if x.dtype in nodes.FLOATS else 1, x.dtype)
    if n == 0:
        return one
    powers, k = [x], abs(n)  # x to 1, 2, 4, …, as far as they are wanted
    while k > 1:
        k >>= 1
        powers.append(nodes.mul(powers[-1], powers[-1]))
    result = functools.reduce(nodes.mul, [power for k, power in enumerate(powers) if abs(n) >> k & 1])
    return Binary("div", one, result) if n < 0 else result


@rule("population_count")
def _population_count(n: Node, a: Sequence[Expr]) -> Expr:
    return Unary("popcount", _own_bits(n, a[0]))


@rule("clz")
def _clz(n: Node, a: Sequence[Expr]) -> Expr:
    kind = FORMATS.get(n.inputs[0].dtype)
    return nodes.sub(Unary("clz", _own_bits(n, a[0])), 8 - kind.bits if isinstance(kind, Int) else 0)


def _own_bits(n: Node, x: Expr) -> Expr:
    """An integer without the sign by which a narrow one is extended."""
    kind = FORMATS.get(n.inputs[0].dtype)
    return Binary("and", x, Const((1 << kind.bits) - 1, x.dtype)) if isinstance(kind, Int) and kind.signed else x


def _unary(op: str) -> Rule:
    return lambda n, a: Unary(op, a[0])


for _name in ("floor", "ceil", "sqrt"):
    rule(_name, 4 if _name == "sqrt" else 1)(_unary(_name))


@rule("round")
def _round(n: Node, a: Sequence[Expr]) -> Expr:
    return Unary("round_even" if n.params["rounding_method"] == 1 else "round_away", a[0])


@rule("is_finite")
def _is_finite(n: Node, a: Sequence[Expr]) -> Expr:
    return nodes.lt(Unary("abs", a[0]), Const(math.inf, a[0].dtype))


# ---- comparisons, selection


def _comparison(op: str) -> Rule:
    return lambda n, a: nodes.Compare(op, as_number(a[0]), as_number(a[1]))


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    rule(_name)(_comparison(_name))


@rule("select_n")
def _select_n(n: Node, a: Sequence[Expr]) -> Expr:
    which, *cases = a
    if which.dtype == "bool":
        return cases[0] if len(cases) == 1 else Select(which, cases[1], cases[0])
    out = cases[-1]
    for k in range(len(cases) - 2, -1, -1):
        out = Select(nodes.le(which, Const(k, which.dtype)), cases[k], out)
    return out


# ---- shifts


@rule("shift_left")
def _shift_left(n: Node, a: Sequence[Expr]) -> Expr:
    return Binary("shl", a[0], a[1])


def _shift_as(twin: Callable[[str], str], x: Expr, y: Expr) -> Expr:
    other = twin(x.dtype)
    return nodes.bitcast(Binary("shr", nodes.bitcast(x, other), nodes.bitcast(y, other)), x.dtype)


rule("shift_right_logical")(lambda n, a: _shift_as(unsigned_twin, _own_bits(n, a[0]), a[1]))


@rule("shift_right_arithmetic")
def _shift_right_arithmetic(n: Node, a: Sequence[Expr]) -> Expr:
    x, y = a
    kind = FORMATS.get(n.inputs[0].dtype)
    if type(kind) is Int and not kind.signed:  # its highest bit counts as a sign
        spare = Const(8 - kind.bits, "i8")
        x = nodes.bitcast(Binary("shr", Binary("shl", nodes.bitcast(x, "i8"), spare), spare), x.dtype)
    return _shift_as(signed_twin, x, y)


# ---- functions


def _call(fn: str) -> Rule:
    return lambda n, a: Call(fn, a[0])


for _name in sorted(nodes.MATH_UNARY - {"log2", "sign"}):  # log2 is not a primitive, and sign has its own rule
    rule(_name, MATH_COST if _name != "rsqrt" else 5)(_call(_name))
rule("atan2", 2 * MATH_COST)(lambda n, a: Call("atan2", a[0], a[1]))
rule("pow", 3 * MATH_COST)(lambda n, a: Call("pow", a[0], convert(a[1], a[0].dtype)))


@rule("nextafter", 8)
def _nextafter(n: Node, a: Sequence[Expr]) -> Expr:
    storage, _ = dtypes_of(n)
    x, y = a
    if storage not in nodes.STORAGE_FLOATS and storage not in FORMATS:
        return Call("nextafter", x, y)
    # one step in the bits of the narrow format, away from or towards zero
    word = "u16" if storage in nodes.STORAGE_FLOATS else "u8"
    sign = 1 << (15 if word == "u16" else 3 if storage == "f4e2m1fn" else 7)
    bits = Convert(nodes.bitcast(narrow(x, storage), word), "i32")
    up = Select(nodes.gt(x, Const(0.0, "f32")), nodes.gt(y, x), nodes.lt(y, x))
    step: Expr = Convert(Binary("add", bits, Select(up, nodes.i32(1), nodes.i32(-1))), word)
    if storage.endswith("fnuz"):
        step = Select(nodes.eq(step, Const(sign, word)), Const(0, word), step)
    tiny = Select(nodes.gt(y, x), Const(1, word), Const(sign | 1, word))
    moved = widen(nodes.bitcast(Select(nodes.eq(x, 0.0), tiny, step), memory_dtype(storage)), storage)
    return Select(Binary("or", nodes.ne(x, x), nodes.ne(y, y)), nodes.add(x, y), Select(nodes.eq(x, y), y, moved))


# ---- conversions


@rule("convert_element_type")
def _convert(n: Node, a: Sequence[Expr]) -> Expr:
    (x,) = a
    _, new = dtypes_of(n)
    if new in nodes.STORAGE_FLOATS:
        return Convert(Convert(x, new), "f32")
    return formats.converted(x, new) if new in FORMATS else convert(x, new)


@rule("reduce_precision", 6, lambda node: 13)
def _reduce_precision(n: Node, a: Sequence[Expr]) -> Expr:
    (x,) = a
    exponent_bits, mantissa_bits = n.params["exponent_bits"], n.params["mantissa_bits"]
    wide_mantissa, wide_exponent = (52, 11) if x.dtype == "f64" else (23, 8)
    word = "u64" if x.dtype == "f64" else "u32"
    bits: Expr = Bitcast(x, word)
    sign_bit = 1 << (wide_mantissa + wide_exponent)
    drop = wide_mantissa - mantissa_bits
    if drop > 0:
        last = Binary("and", Binary("shr", bits, Const(drop, word)), Const(1, word))
        bits = Binary("add", bits, Binary("add", last, Const((1 << (drop - 1)) - 1, word)))
        bits = Binary("and", bits, Const(((1 << (wide_mantissa + wide_exponent + 1)) - 1) & ~((1 << drop) - 1), word))
    if exponent_bits < wide_exponent:
        bias, wide_bias = (1 << (exponent_bits - 1)) - 1, (1 << (wide_exponent - 1)) - 1
        sign = Binary("and", bits, Const(sign_bit, word))
        body: Expr = Binary("and", bits, Const(sign_bit - 1, word))
        largest = ((wide_bias + bias) << wide_mantissa) | (((1 << wide_mantissa) - 1) & ~((1 << max(drop, 0)) - 1))
        least = (wide_bias - bias + 1) << wide_mantissa
        infinity = Const(((1 << wide_exponent) - 1) << wide_mantissa, word)
        body = Select(
            nodes.gt(body, Const(largest, word)),
            infinity,
            Select(nodes.lt(body, Const(least, word)), Const(0, word), body),
        )
        bits = Binary("or", sign, body)
    return Select(nodes.eq(x, x), Bitcast(bits, x.dtype), x)


def bitcast_same_size(x: Expr, old: str, new: str) -> Expr:
    """The bits of a value of storage dtype `old` as storage dtype `new` of the same size."""
    return widen(nodes.bitcast(narrow(x, old), memory_dtype(new)), new)
