"""Stable sort of long rows by one key: digits from the least significant up, each pass a count sort (LSD radix sort),
in loop IR.

A value's key is computed where it is read, so that only the operands themselves move. All passes' digits are counted
while the operands are read for the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft_wasm.ir.nodes import (
    ITEMSIZE,
    SIGNED,
    STORAGE_FLOATS,
    Assign,
    Binary,
    Buffer,
    Const,
    Convert,
    Declare,
    Expr,
    For,
    Kernel,
    Let,
    Local,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
    bitcast,
    convert,
    eq,
    i32,
    lt,
    ne,
)
from weft_wasm.routines.gemm import Routine
from weft_wasm.routines.sort import Place

DIGIT = 11  # bits of a digit: 2,048 places to write to stay in the cache


@dataclass(frozen=True, slots=True)
class Digits:
    """How keys of a dtype are cut: `passes` digits of `bits` bits."""

    passes: int
    bits: int

    @classmethod
    def of(cls, dtype: str) -> Digits:
        width = 32 if dtype in STORAGE_FLOATS else 8 * ITEMSIZE[dtype]
        bits = 8 if width <= 16 else DIGIT
        return cls(-(-width // bits), bits)


def worth(n: int, dtype: str) -> bool:
    """Whether a row is long enough for the passes over the counts to be small beside those over the row."""
    digits = Digits.of(dtype)
    return n >= digits.passes * (1 << digits.bits) // 2


def key(value: Expr) -> Expr:
    """An unsigned number in the order of `lax.sort`: NaNs are equal and last, -0.0 equals 0.0."""
    if value.dtype in STORAGE_FLOATS:
        value = Convert(value, "f32")
    dtype = value.dtype
    if dtype in ("f32", "f64"):
        word, signed, width = ("u32", "i32", 32) if dtype == "f32" else ("u64", "i64", 64)
        value = Select(eq(value, Const(0.0, dtype)), Const(0.0, dtype), value)
        value = Select(ne(value, value), Const(float("nan"), dtype), value)
        bits = bitcast(value, word)
        return Select(lt(bitcast(value, signed), 0), Unary("not", bits), bits | Const(1 << width - 1, word))
    word = "u64" if ITEMSIZE[dtype] == 8 else "u32"
    if dtype in SIGNED:
        wide = convert(value, "i" + word[1:])
        width = 8 * ITEMSIZE[dtype]
        return (
            bitcast(wide, word) ^ Const(1 << width - 1, word) if width >= 32 else bitcast(wide + (1 << width - 1), word)
        )
    return convert(value, word)


def radix_sort(
    name: str, batch: int, n: int, elements: Sequence[Callable[[Expr], Expr]], outputs: Sequence[Buffer]
) -> Routine:
    """Sorts operands elements[k](flat index) into outputs[k], each of batch · n elements, by the first of them; see
    `sort.sort`.

    >>> x, out = Buffer("x", "u8", (3, 1000), "input"), Buffer("out", "u8", (3, 1000), "output")
    >>> radix_sort("sort", 3, 1000, [lambda i: x[i]], [out]).temps
    [sort.0: u8[1000], sort.count: i32[1,256]]
    """
    digits = Digits.of(outputs[0].dtype)
    buckets = 1 << digits.bits
    temps = [Buffer(f"{name}.{k}", out.dtype, (n,)) for k, out in enumerate(outputs)]
    count = Buffer(f"{name}.count", "i32", (digits.passes, buckets))
    b = Var("b")
    places: list[list[Place]] = [[(out, b * n) for out in outputs], [(temp, i32(0)) for temp in temps]]
    now = digits.passes % 2  # the last pass ends in the outputs
    body = _count(elements, b * n, places[now], count, n, digits)
    for p in range(digits.passes):
        body += _scatter(places[now], places[1 - now], count, p, n, digits)
        now = 1 - now
    return Routine([Kernel(name, [For(b, batch, body)])], [*temps, count])


def _digit(k: Expr, p: int, digits: Digits) -> Expr:
    shifted = Binary("shr", k, Const(p * digits.bits, k.dtype)) if p else k
    return convert(shifted & Const((1 << digits.bits) - 1, k.dtype), "i32")


def _count(
    elements: Sequence[Callable[[Expr], Expr]], offset: Expr, to: Sequence[Place], count: Buffer, n: int, digits: Digits
) -> list[Stmt]:
    """Puts the operands into `to`, and where each bucket of each pass begins into `count`."""
    z, i, p, d = Var("z"), Var("i"), Var("p"), Var("d")
    values = [Var(f"v{k}", buffer.dtype) for k, (buffer, _) in enumerate(to)]
    place, whole = Var("key", key(values[0]).dtype), 1 << digits.bits
    tally: list[Stmt] = []
    for k in range(digits.passes):
        at = Var(f"at{k}")
        tally += [Let(at, _digit(place, k, digits) + k * whole), Store(count, at, count[at] + 1)]
    total, held = Local("total", "i32"), Var("held")
    return [
        For(z, digits.passes * whole, [Store(count, z, i32(0))], "parallel"),
        For(
            i,
            n,
            [
                *(Let(v, element(offset + i)) for v, element in zip(values, elements)),
                *(Store(buffer, base + i, v) for (buffer, base), v in zip(to, values)),
                Let(place, key(values[0])),
                *tally,
            ],
            outline=True,
        ),
        For(
            p,
            digits.passes,
            [
                Declare(total, i32(0)),
                For(
                    d,
                    whole,
                    [Let(held, count[p * whole + d]), Store(count, p * whole + d, total), Assign(total, total + held)],
                ),
            ],
        ),
    ]


def _scatter(source: Sequence[Place], to: Sequence[Place], count: Buffer, p: int, n: int, digits: Digits) -> list[Stmt]:
    """One pass: every element moves to the next place of its bucket."""
    i, at, place = Var("i"), Var("at"), Var("place")
    values = [Var(f"v{k}", buffer.dtype) for k, (buffer, _) in enumerate(source)]
    return [
        For(
            i,
            n,
            [
                *(Let(v, buffer[base + i]) for v, (buffer, base) in zip(values, source)),
                Let(at, _digit(key(values[0]), p, digits) + (p << digits.bits)),
                Let(place, count[at]),
                Store(count, at, place + 1),
                *(Store(buffer, base + place, v) for (buffer, base), v in zip(to, values)),
            ],
            outline=True,
        )
    ]
