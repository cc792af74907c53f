"""How reductions accumulate: long sums of floats in blocks, large arrays from several places at once, extrema of
floats in integers.
"""

from __future__ import annotations

import functools
from dataclasses import replace

from weft_wasm.ir.nodes import (
    FLOATS,
    ITEMSIZE,
    Assign,
    Binary,
    Bitcast,
    Call,
    Compare,
    Const,
    Declare,
    Expr,
    For,
    Let,
    Load,
    Local,
    MulAdd,
    Select,
    Stmt,
    Store,
    Var,
    convert,
    i32,
)
from weft_wasm.ir.traversal import walk, walk_expr
from weft_wasm.ir.reductions import assigned_outside, identity, reductions
from weft_wasm.ir.rewriting import fresh, rewrite

SUM_BLOCK = 64  # a long float sum is a sum of blocks of this many terms for each vector that adds them, added up in f64
SIDE_BY_SIDE = 8  # rows read at once: as many streams as a processor reads ahead
FROM_MEMORY = 1 << 20  # bytes: what is larger comes from memory, which one stream does not keep busy


def is_sum(body: list[Stmt], acc: Local) -> bool:
    """Whether body does nothing with acc but add to it."""
    for x in walk(body):
        if type(x) is Assign and x.local is acc:
            value = x.value
            if not (type(value) is MulAdd and value.c is acc) and not (
                type(value) is Binary and value.op == "add" and (value.a is acc or value.b is acc)
            ):
                return False
    return True


def in_blocks(s: For, block: int, in_lanes: bool = False) -> list[Stmt]:
    """acc += Σ over n terms → acc += Σ over blocks of Σ over `block` terms, so that rounding errors do not grow with n.
    The blocks' sums are added in f64, or, in the lanes of a vector loop (`in_lanes`), with the rounding error of each
    addition kept beside the total.
    """
    if type(s.extent) is not int or s.extent < 32 or s.extent < 2 * block:
        return [s]
    sums = [acc for acc in assigned_outside(s) if acc.dtype in FLOATS and is_sum(s.body, acc)]
    if not sums or (block == 1 and all(acc.dtype == "f64" for acc in sums)):
        return [s]
    totals = {acc: Local(f"{acc.name}.sum", acc.dtype if in_lanes else "f64") for acc in sums}
    lost = {acc: Local(f"{acc.name}.lost", acc.dtype) for acc in sums} if in_lanes else {}
    out: list[Stmt] = [Declare(local, Const(0.0, local.dtype)) for local in (*totals.values(), *lost.values())]
    whole = s.extent // block
    for start, count, size in ((0, whole, block), (whole * block, 1, s.extent - whole * block)):
        if not size:
            continue
        outer, inner = Var(f"{s.var.name}.o"), Var(s.var.name)
        place: Expr = outer if block == 1 else inner + start if count == 1 else outer * block + inner + start
        partials = {acc: Local(f"{acc.name}.part", acc.dtype) for acc in sums}
        body = fresh(s.body, {s.var: place} | partials)
        steps: list[Stmt] = [Declare(part, Const(0.0, acc.dtype)) for acc, part in partials.items()]
        steps += body if block == 1 else [For(inner, size, body, "reduce", s.vector, s.unroll)]
        for acc, part in partials.items():
            steps += (
                exact_add(totals[acc], part, lost[acc])
                if in_lanes
                else [Assign(totals[acc], Binary("add", totals[acc], convert(part, "f64")))]
            )
        out += steps if count == 1 else [For(outer, count, steps, "sequential" if in_lanes else "reduce")]
    ends = {
        acc: Binary("add", total, lost[acc]) if in_lanes else convert(total, acc.dtype) for acc, total in totals.items()
    }
    return out + [Assign(acc, Binary("add", acc, end)) for acc, end in ends.items()]


def exact_add(total: Local, part: Expr, lost: Local) -> list[Stmt]:
    """total += part, and lost += the rounding error (D. Knuth's two-sum); no change if the sum is not finite."""
    whole, moved = Var("whole", total.dtype), Var("moved", total.dtype)
    error = Var("error", total.dtype)
    return [
        Let(whole, Binary("add", total, part)),
        Let(moved, Binary("sub", whole, total)),
        Let(error, Binary("add", Binary("sub", total, Binary("sub", whole, moved)), Binary("sub", part, moved))),
        Assign(lost, Binary("add", lost, Select(Compare("eq", error, error), error, Const(0.0, total.dtype)))),
        Assign(total, whole),
    ]


def with_more_accumulators(s: For, most: int) -> list[Stmt]:
    """A long reduction from several places on at once; as it is where that would not pay (see `_count`)."""
    ops, count = reductions(s), _count(s, 1, most)
    if len(ops) != 1 or not count:
        return [s]
    ((acc, op),), each = ops.items(), s.count // count
    parts = [Local(f"{acc.name}{k}", acc.dtype) for k in range(count)]
    body = [x for k, part in enumerate(parts) for x in fresh(s.body, {s.var: s.var + k * each, acc: part})]
    out: list[Stmt] = [Declare(part, identity(op, acc.dtype)) for part in parts]
    out.append(replace(s, extent=each, body=body))
    if s.count % count:
        rest = Var(s.var.name)
        out.append(replace(s, var=rest, extent=s.count % count, body=fresh(s.body, {s.var: rest + count * each})))
    if op != "add" or acc.dtype != "f32":
        return out + [Assign(acc, Binary(op, acc, part)) for part in parts]
    wide: list[Expr] = [convert(part, "f64") for part in parts]
    total = functools.reduce(lambda a, b: Binary("add", a, b), wide)
    return [*out, Assign(acc, Binary("add", acc, convert(total, "f32")))]  # a surrounding loop adds to acc too


def side_by_side(rows: For, body: list[Stmt], most: int) -> list[For]:
    """A long loop over rows that reduces each by itself: some rows at a time; as it is where it is something else,
    or it would not pay.
    """
    extent, loops = rows.count, [(k, s) for k, s in enumerate(body) if type(s) is For]
    count = _count(loops[0][1], extent, most) if len(loops) == 1 else 0
    if not count or extent < count or any(type(s) is Store for s in body[: loops[0][0]]):
        return [rows]
    outer, whole, k = Var(f"{rows.var.name}.o"), extent // count, loops[0][0]
    copies = [fresh(body, {rows.var: outer * count + i32(c)}) for c in range(count)]
    first, *others = [s for copy in copies if type(s := copy[k]) is For]
    together = replace(first, body=[*first.body, *(s for x in others for s in rewrite(x.body, {x.var: first.var}))])
    out = [
        For(
            outer,
            whole,
            [*(s for c in copies for s in c[:k]), together, *(s for c in copies for s in c[k + 1 :])],
            "parallel",
        )
    ]
    if extent % count:
        rest = Var(rows.var.name)
        out.append(For(rest, extent % count, fresh(body, {rows.var: rest + whole * count}), "parallel"))
    return out


def _count(s: For, times: int, most: int) -> int:
    """How many streams a reduction with this many iterations should read, so that memory is kept busy: 0 if it reads
    little, or if a term has more than `most` nodes, so that functions need the registers.
    """
    steps = [x for x in s.body if isinstance(x, (Let, Assign))]
    if s.kind != "reduce" or type(s.extent) is not int or len(steps) < len(s.body):
        return 0
    seen: set[Expr] = set()
    nodes = [node for x in steps for node in walk_expr(x.value, seen)]
    size = sum(ITEMSIZE[node.dtype] for node in nodes if type(node) is Load)
    if len(nodes) > most or times * s.extent * size < FROM_MEMORY or any(type(node) is Call for node in nodes):
        return 0
    extrema = any(type(node) is Binary and node.op in ("min", "max") for node in nodes)  # each takes three registers
    return SIDE_BY_SIDE // 2 if extrema else SIDE_BY_SIDE


def extrema_by_bits(s: For) -> tuple[list[Stmt], For, list[Stmt]]:
    """(before, loop, after): a reduction with its f32 maxima and minima computed on integers, where each is one
    instruction. A SIMD maximum of floats takes many on x86, because of NaN and of the sign of zero. As signed integers,
    the bits of nonnegative floats have the order of the floats; as unsigned ones, the bits of negative floats have the
    reverse order; and each NaN is beyond the infinity of its sign.
    """
    before: list[Stmt] = []
    body: list[Stmt] = []
    after: list[Stmt] = []
    for x in s.body:
        if (
            type(x) is not Assign
            or type(x.value) is not Binary
            or x.value.op not in ("min", "max")
            or x.value.dtype != "f32"
        ):
            body.append(x)
            continue
        acc, value = x.local, x.value
        term = value.b if value.a is acc else value.a
        top, most, least = (
            Local(f"{acc.name}.{name}", dtype) for name, dtype in (("top", "i32"), ("most", "u32"), ("least", "u32"))
        )
        start = Const(float("-inf") if value.op == "max" else float("inf"), "f32")
        before += [Declare(local, Bitcast(start, local.dtype)) for local in (top, most, least)]
        bits = Var("bits", "i32")
        body += [Let(bits, Bitcast(term, "i32")), Assign(top, Binary("max", top, bits))]
        body += [
            Assign(local, Binary(op, local, Bitcast(bits, "u32"))) for local, op in ((most, "max"), (least, "min"))
        ]
        inner = (
            Select(Compare("ge", top, i32(0)), top, Bitcast(least, "i32"))
            if value.op == "max"
            else Bitcast(Select(Compare("ge", most, Const(1 << 31, "u32")), most, least), "i32")
        )
        nan = Binary("or", Compare("gt", top, i32(0x7F800000)), Compare("gt", most, Const(0xFF800000, "u32")))
        after.append(Assign(acc, Binary(value.op, acc, Select(nan, Const(float("nan"), "f32"), Bitcast(inner, "f32")))))
    return before, replace(s, body=body), after
