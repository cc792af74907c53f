"""Narrow outputs of a program, whose elements have no gaps between them: a word holds four or two.

Where a kernel computes an output as it lies in memory, each invocation computes the elements of whole words. Other
outputs are computed in temps with a word for each element, which a last kernel packs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from weft_wasm.emit_wgsl.shader import WORD
from weft_wasm.ir.affine import linear, linear_index
from weft_wasm.ir.nodes import (
    ITEMSIZE,
    Binary,
    Bitcast,
    Buffer,
    Convert,
    Expr,
    For,
    Kernel,
    Let,
    Load,
    Program,
    Stmt,
    Store,
    Var,
    i32,
)
from weft_wasm.ir.rewriting import fresh
from weft_wasm.ir.traversal import touched, walk


def packed_bytes(b: Buffer) -> int:
    """The bytes of a buffer whose elements have no gaps between them, in whole words."""
    return -(-b.size * ITEMSIZE[b.dtype] // WORD) * WORD


def is_narrow(b: Buffer) -> bool:
    """Whether a word would hold several elements of a buffer."""
    return packed_bytes(b) < WORD * b.size


def words_of(b: Buffer) -> Buffer:
    """A narrow output as its words."""
    return Buffer(b.name, "u32", (packed_bytes(b) // WORD,), b.role)


def pack(words: Buffer, elements: Buffer) -> Kernel:
    """Puts elements that have a word each where they have no gaps between them."""
    each, w = WORD // ITEMSIZE[elements.dtype], Var("w")
    parts: list[Expr] = []
    for k in range(each):
        at: Expr = w * each + k
        if elements.size % each:
            at = Binary("min", at, i32(elements.size - 1))  # what lies behind the last element, nobody reads
        parts.append(Load(elements, at))
    return Kernel("pack", [For(w, words.size, [Store(words, w, joined(parts))], "parallel")])


def joined(elements: Sequence[Expr]) -> Expr:
    """The word of narrow elements."""
    size = ITEMSIZE[elements[0].dtype]
    whole: Expr | None = None
    for k, x in enumerate(elements):
        bits = Convert(x, "u32") if x.dtype == "bool" else Bitcast(x, "u32") & ((1 << 8 * size) - 1)
        whole = bits if whole is None else whole | (bits << 8 * size * k)
    assert whole is not None
    return whole


def packed_where_computed(p: Program, words: Mapping[Buffer, Buffer]) -> tuple[list[Stmt], set[Buffer]]:
    """The program's body with kernels that compute whole words, and the outputs for which it could be done."""
    mentions: dict[Buffer, int] = {}
    for s in p.body:
        reads, writes = touched([s])
        for b in reads:
            mentions[b] = mentions.get(b, 0) + 2  # read: not as words
        for b in writes:
            mentions[b] = mentions.get(b, 0) + 1
    alone = {b for b in words if mentions.get(b) == 1}
    body: list[Stmt] = []
    done: set[Buffer] = set()
    for s in p.body:
        if type(s) is Kernel and (mine := alone.intersection(touched([s])[1])):
            stores = [x.buffer for x in walk(s.body) if type(x) is Store]
            once = {b for b in mine if stores.count(b) == 1}
            changed = [_of_words(x, once, words, done) for x in s.body]
            s = replace(s, body=changed, plain=[], depth=1, parts=[])
        body.append(s)
    return body, done


def _of_words(s: Stmt, outputs: set[Buffer], words: Mapping[Buffer, Buffer], done: set[Buffer]) -> Stmt:
    """A loop nest whose innermost loop computes whole words of outputs, if it can; those are added to `done`."""
    if type(s) is not For or s.kind != "parallel" or isinstance(s.extent, Expr):
        return s
    if len(s.body) == 1 and type(s.body[0]) is For:
        return replace(s, body=[_of_words(s.body[0], outputs, words, done)])
    if any(type(x) not in (Let, Store) for x in s.body):
        return s
    stores = {x.buffer: x for x in s.body if type(x) is Store and x.buffer in outputs}
    each = max((WORD // ITEMSIZE[b.dtype] for b in stores), default=1)
    if each == 1 or s.extent % each or not all(_lies_along(s.var, x, each) for x in stores.values()):
        return s
    w = Var("w")
    body: list[Stmt] = []
    elements: dict[Buffer, list[Expr]] = {b: [] for b in stores}
    for k in range(each):
        for x in fresh(s.body, {s.var: w * each + k}):
            if type(x) is Store and x.buffer in stores:
                elements[x.buffer].append(x.value)
            else:
                body.append(x)
    for b, store in stores.items():
        per = WORD // ITEMSIZE[b.dtype]
        terms, constant = linear(store.index)
        strides = {(w if v is s.var else v): (each if v is s.var else c) // per for v, c in terms.items()}
        first = linear_index(list(strides), list(strides.values()), constant // per)
        for k in range(each // per):
            body.append(Store(words[b], first + k if k else first, joined(elements[b][k * per : (k + 1) * per])))
    done.update(stores)
    return For(w, s.extent // each, body, s.kind)


def _lies_along(v: Var, store: Store, each: int) -> bool:
    """Whether consecutive values of a variable mean consecutive elements, so many of which begin a word."""
    terms, constant = linear(store.index)
    rest = [c for term, c in terms.items() if term is not v]
    return terms.get(v) == 1 and constant % each == 0 and all(c % each == 0 for c in rest)
