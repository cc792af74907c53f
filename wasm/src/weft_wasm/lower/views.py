"""Primitives whose elements are elements of an operand, somewhere else: views, padding, dynamic slices, gathers, iota.

`VIEWS[op](node)` is the static view of operand 0. `ELEMENTS[op](reader, node, slot, blocks)` gives an element where
that takes arithmetic on indices; `reader.element(value, blocks)` reads operands.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Callable, Collection, Protocol

from weft.primitives.gather import GatherScatterMode

from weft_wasm.ir import nodes
from weft_wasm.ir.nodes import Binary, Const, Convert, Expr, Select, add, i32
from weft_wasm.lower import graph
from weft_wasm.lower.blocks import (
    IDENTITY,
    NONE,
    Blocks,
    Shape,
    Source,
    Splits,
    View,
    broadcast_view,
    linear,
    merge,
    regroup,
    slice_view,
    trailing,
    transpose_view,
)
from weft_wasm.lower.elementwise import bitcast_same_size
from weft_wasm.lower.formats import FORMATS, converted, limits
from weft_wasm.lower.graph import Node, Value
from weft_wasm.lower.random_bits import COST as THREEFRY_COST, DEPTH as THREEFRY_DEPTH
from weft_wasm.lower.random_bits import threefry2x32
from weft_wasm.lower.types import LoweringError, constant, scalar_dtype


class Elements(Protocol):
    """Reads operands, for rules: `emit.Reader`."""

    def element(self, v: Value, blocks: Blocks) -> Expr: ...

    def remember(self, v: Value, blocks: Blocks, e: Expr) -> None: ...


Element = Callable[[Elements, Node, int, Blocks], Expr]
VIEWS: dict[str, Callable[[Node], View]] = {
    "reshape": lambda n: IDENTITY,
    "broadcast_in_dim": lambda n: broadcast_view(
        n.outputs[0].shape, n.inputs[0].shape, n.params["broadcast_dimensions"]
    ),
    "transpose": lambda n: transpose_view(n.outputs[0].shape, n.params["permutation"]),
    "slice": lambda n: slice_view(
        n.outputs[0].shape,
        n.inputs[0].shape,
        n.params["start_indices"],
        n.params["strides"] or (1,) * len(n.inputs[0].shape),
    ),
    "rev": lambda n: merge(
        list(n.outputs[0].shape),
        [
            Source(size, d, -1, size - 1) if d in n.params["dimensions"] else Source(size, d)
            for d, size in enumerate(n.outputs[0].shape)
        ],
    ),
}
ELEMENTS: dict[str, Element] = {}
SPLITS: dict[str, Callable[[Node], Splits]] = {}
COSTS: dict[str, int] = {}
DEPTHS: dict[str, Callable[[Node], int]] = {}  # as of elementwise rules
graph.known.update(VIEWS)


def view_of(node: Node) -> View:
    """The view of a node of VIEWS."""
    view = node.cache.get("view")
    if view is None:
        view = node.cache["view"] = VIEWS[node.op](node)
    return view


def operand_view(node: Node, j: int) -> View:
    """How operand j of an elementwise node is broadcast to the result."""
    x, out = node.inputs[j], node.outputs[0]
    if x.size == out.size:
        return IDENTITY
    view = node.cache.get(j)
    if view is None:
        view = node.cache[j] = broadcast_view(out.shape, x.shape, range(len(x.shape)))
    return view


def element_rule(
    name: str,
    cost: int,
    splits: Callable[[Node], Splits] | None = None,
    depth: Callable[[Node], int] | None = None,
) -> Callable[[Element], Element]:
    def register(f: Element) -> Element:
        ELEMENTS[name], COSTS[name] = f, cost
        if depth is not None:
            DEPTHS[name] = depth
        SPLITS[name] = splits or (lambda node: NONE)
        graph.known.add(name)
        return f

    return register


def all_edges(shape: Shape) -> Splits:
    """A split after every axis."""
    return frozenset(trailing(shape))


# ---- iota, threefry, bitcast


def _iota_splits(node: Node) -> Splits:
    shape, d = node.outputs[0].shape, node.params["dimension"]
    return broadcast_view(shape, (shape[d],), (d,)).splits(NONE)


@element_rule("iota", 1, _iota_splits)
def _iota(reader: Elements, node: Node, slot: int, blocks: Blocks) -> Expr:
    shape, d = node.outputs[0].shape, node.params["dimension"]
    sizes = [math.prod(shape[:d]), shape[d], math.prod(shape[d + 1 :])]
    index = linear(regroup(blocks, sizes)[1])
    dtype = node.outputs[0].dtype
    if dtype in FORMATS:
        return converted(index, dtype)
    return nodes.convert(index, scalar_dtype(dtype)) if type(index) is not Const else constant(index.value, dtype)


@element_rule("threefry2x32", THREEFRY_COST // 2, depth=lambda node: THREEFRY_DEPTH)
def _threefry(reader: Elements, node: Node, slot: int, blocks: Blocks) -> Expr:
    args = [reader.element(x, operand_view(node, j).apply(blocks)) for j, x in enumerate(node.inputs)]
    words = threefry2x32(args)
    reader.remember(node.outputs[1 - slot], blocks, words[1 - slot])
    return words[slot]


def _bitcast_splits(node: Node) -> Splits:
    x, out = node.inputs[0], node.outputs[0]
    return frozenset((out.size // x.size,)) if x.size and out.size > x.size else NONE


@element_rule("bitcast_convert_type", 1, _bitcast_splits, lambda node: 10)
def _bitcast(reader: Elements, node: Node, slot: int, blocks: Blocks) -> Expr:
    x, out = node.inputs[0], node.outputs[0]
    old, new = x.dtype, out.dtype
    if old == new:  # booleans and complex numbers have no other
        return reader.element(x, blocks)
    if x.size != out.size and (old in FORMATS or new in FORMATS):
        raise LoweringError(
            f"bitcast_convert_type between {old} and {new} of another size can't be compiled: a number takes a whole"
            f" byte here. At {node.info}"
        )
    if x.size == out.size:
        return bitcast_same_size(reader.element(x, blocks), old, new)
    narrow, wide = (new, old) if out.size > x.size else (old, new)
    ratio = nodes.ITEMSIZE[wide] // nodes.ITEMSIZE[narrow]
    bits = 8 * nodes.ITEMSIZE[narrow]
    words = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}
    narrow_word, wide_word = words[nodes.ITEMSIZE[narrow]], words[nodes.ITEMSIZE[wide]]
    if out.size > x.size:
        outer, inner = regroup(blocks, [x.size, ratio])
        whole = bitcast_same_size(reader.element(x, outer), old, wide_word)
        shift = Binary("mul", Convert(linear(inner), wide_word), Const(bits, wide_word))
        return bitcast_same_size(Convert(Binary("shr", whole, shift), narrow_word), narrow_word, new)
    terms: list[Expr] = []
    for k in range(ratio):
        term = Convert(bitcast_same_size(reader.element(x, (*blocks, (ratio, i32(k)))), old, narrow_word), wide_word)
        terms.append(Binary("shl", term, Const(bits * k, wide_word)) if k else term)
    return bitcast_same_size(functools.reduce(lambda a, b: Binary("or", a, b), terms), wide_word, new)


# ---- pad


def _pad_view(node: Node) -> View:
    view = node.cache.get("view")
    if view is None:
        x, out = node.inputs[0], node.outputs[0]
        sources: list[Source | None] = [
            Source(n, d, 1, 0) if (lo, hi, inner) == (0, 0, 0) else Source(n, d, 1, -lo if lo else -(1 << 30))
            for d, (n, (lo, hi, inner)) in enumerate(zip(x.shape, node.params["padding_config"]))
        ]
        view = node.cache["view"] = merge(list(out.shape), sources)
    return view


@element_rule("pad", 3, lambda n: _pad_view(n).splits(NONE), lambda n: 4 + 4 * len(n.inputs[0].shape))
def _pad(reader: Elements, node: Node, slot: int, blocks: Blocks) -> Expr:
    x, fill = node.inputs
    out = node.outputs[0]
    value = reader.element(fill, ())
    if x.size == 0:
        return value
    inside: Expr | None = None
    at: list[tuple[int, Expr]] = []
    special = [d for d, c in enumerate(node.params["padding_config"]) if tuple(c) != (0, 0, 0)]
    sizes: list[int] = []
    start = 0
    for d in special:
        sizes += [math.prod(out.shape[start:d]), out.shape[d]]
        start = d + 1
    sizes.append(math.prod(out.shape[start:]))
    parts = regroup(blocks, sizes)
    for k, d in enumerate(special):
        n = x.shape[d]
        lo, hi, inner = node.params["padding_config"][d]
        at += parts[2 * k]
        i: Expr = add(linear(parts[2 * k + 1]), -lo)
        tests = []
        if inner:
            step = inner + 1
            tests.append(nodes.eq(nodes.rem(i, step), 0))
            # i may be negative: divide something that isn't
            low_ok = nodes.ge(i, 0)
            i = Binary("div", nodes.maximum(i, 0), i32(step))
            tests += [low_ok, nodes.lt(i, n)]
        else:
            if lo > 0:
                tests.append(nodes.ge(i, 0))
            if hi > 0:
                tests.append(nodes.lt(i, n))
        for t in tests:
            inside = t if inside is None else Binary("and", inside, t)
        at.append((n, nodes.clamp(0, i, n - 1) if tests else i))
    at += parts[-1]
    element = reader.element(x, tuple((n, e) for n, e in at if n != 1))
    return element if inside is None else Select(inside, element, value)


# ---- dynamic_slice


def clamped_start(start: Expr, limit: int) -> Expr:
    """A start index of any integer dtype, moved into 0 … limit, as i32."""
    if limit == 0:
        return i32(0)
    if start.dtype in ("i64", "u64", "u32"):
        low = start if start.dtype in nodes.UNSIGNED else nodes.maximum(start, 0)
        return nodes.convert(nodes.minimum(low, limit), "i32")
    if type(start) is Const:
        return i32(min(max(nodes.whole(start), 0), limit))
    return nodes.clamp(0, nodes.convert(start, "i32"), limit)


def inside_bounds(start: Expr, limit: int) -> Expr | None:
    """Whether 0 ≤ start ≤ limit in the start's own dtype; None if that is certain."""
    bits = 8 * nodes.ITEMSIZE[start.dtype]
    top = (1 << (bits - (start.dtype in nodes.SIGNED))) - 1
    upper = nodes.le(start, limit) if limit < top else None
    if start.dtype in nodes.UNSIGNED:
        return upper
    lower = nodes.ge(start, 0)
    return lower if upper is None else Binary("and", lower, upper)


def _dynamic_view(node: Node) -> View:
    view = node.cache.get("view")
    if view is None:
        x, out = node.inputs[0], node.outputs[0]
        view = node.cache["view"] = merge(
            list(out.shape), [Source(n, d, 1, 0 if n == m else 1) for d, (n, m) in enumerate(zip(x.shape, out.shape))]
        )
    return view


@element_rule("dynamic_slice", 2, lambda n: _dynamic_view(n).splits(NONE))
def _dynamic_slice(reader: Elements, node: Node, slot: int, blocks: Blocks) -> Expr:
    x, *starts = node.inputs
    out = node.outputs[0]
    at: list[tuple[int, Expr]] = []
    parts = regroup(blocks, _runs(out.shape, [n != m for n, m in zip(x.shape, out.shape)]))
    k = 0
    for d, (n, m) in enumerate(zip(x.shape, out.shape)):
        if n == m:
            if d == 0 or x.shape[d - 1] != out.shape[d - 1]:
                at += parts[k]
                k += 1
            continue
        start = clamped_start(reader.element(starts[d], ()), n - m)
        at.append((n, add(linear(parts[k]), start)))
        k += 1
    return reader.element(x, tuple((n, e) for n, e in at if n != 1))


def _runs(shape: Shape, special: list[bool]) -> list[int]:
    """Sizes with neighbouring axes that aren't special multiplied."""
    out: list[int] = []
    for d, n in enumerate(shape):
        if d and not special[d] and not special[d - 1]:
            out[-1] *= n
        else:
            out.append(n)
    return out


# ---- gather


def window_dims(rank: int, collapsed: Collection[int], batching: Collection[int]) -> list[int]:
    """Operand axes that a window has."""
    return [d for d in range(rank) if d not in collapsed and d not in batching]


@element_rule("gather", 6, lambda n: all_edges(n.outputs[0].shape), lambda n: 4 + 4 * len(n.inputs[0].shape))
def _gather(reader: Elements, node: Node, slot: int, blocks: Blocks) -> Expr:
    x, indices = node.inputs
    out = node.outputs[0]
    p = node.params
    dn, mode, sizes = p["dimension_numbers"], p["mode"], p["slice_sizes"]
    fill = mode == GatherScatterMode.FILL_OR_DROP
    fill_value = constant(_fill(out, p["fill_value"]), out.dtype)
    if x.size == 0:
        return fill_value
    parts = regroup(blocks, out.shape)
    batch = [parts[d] for d in range(len(out.shape)) if d not in dn.offset_dims]
    here = tuple(b for part in batch for b in part)
    window = dict(
        zip(
            window_dims(len(x.shape), dn.collapsed_slice_dims, dn.operand_batching_dims),
            [parts[d] for d in dn.offset_dims],
        )
    )
    depth = indices.shape[-1]
    starts = {
        d: reader.element(indices, (*here, (depth, i32(k))) if depth > 1 else here)
        for k, d in enumerate(dn.start_index_map)
    }
    batching = dict(zip(dn.operand_batching_dims, dn.start_indices_batching_dims))
    inside: Expr | None = None
    at: list[tuple[int, Expr]] = []
    for d, n in enumerate(x.shape):
        limit = n - sizes[d]
        if d in batching:
            e: Expr = linear(batch[batching[d]])
        else:
            e = linear(window[d]) if d in window else i32(0)
            if d in starts:
                e = add(clamped_start(starts[d], limit), e)
                if fill:
                    test = inside_bounds(starts[d], limit)
                    if test is not None:
                        inside = test if inside is None else Binary("and", inside, test)
        if n != 1:
            at.append((n, e))
    element = reader.element(x, tuple(at))
    return element if inside is None else Select(inside, element, fill_value)


def _fill(out: Value, fill_value: Any) -> Any:
    if fill_value is not None:
        return fill_value
    if out.dtype in FORMATS and out.dtype[0] != "f":
        return limits(out.dtype)[out.dtype[0] == "u"]
    if out.dtype in nodes.SIGNED:
        return -(1 << (8 * nodes.ITEMSIZE[out.dtype] - 1))
    if out.dtype in nodes.UNSIGNED:
        return (1 << (8 * nodes.ITEMSIZE[out.dtype])) - 1
    return True if out.dtype == "bool" else math.nan
