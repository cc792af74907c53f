"""Schedules: how a loop nest runs. A `Schedule` is data, `apply` rewrites a nest by it, `auto` chooses one for every nest of a program.

None of it changes what a program computes, except the rounding of float sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from weft_wasm.affine import Linear, linear
from weft_wasm.ir import (
    FLOATS,
    ITEMSIZE,
    Assign,
    Binary,
    Bitcast,
    Buffer,
    Call,
    Compare,
    Const,
    Declare,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    Local,
    MulAdd,
    Program,
    Select,
    Store,
    Switch,
    Var,
    While,
    blocks,
    convert,
    expressions,
    i32,
    substitute,
    walk,
    walk_expr,
)  # fmt: skip

SUM_BLOCK = 256  # a long float sum is a sum of blocks of this many terms, added up in f64
ROWS = 64  # rows of a matrix whose sum over columns is kept apart, so that rounding errors stay small
SIDE_BY_SIDE = 8  # rows that it reads at once: as many streams as a processor reads ahead
BIG = 16  # nodes in a body above which unrolling a vector loop only makes code


class ScheduleError(ValueError):
    """A schedule that doesn't fit its loop nest: an axis that isn't there, or a rewrite that would change the result."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """How to run a perfect nest of parallel loops; axes are loop variables' names.

    tile: {axis: size} splits the axis into an outer loop `axis.o` and an inner one of that size, `axis`.
    order: the axes from outermost (names after tiling; unnamed ones keep their order, outside the named ones).
    vector: the axis that runs in SIMD lanes, with `vectors` of them at a time.
    unroll: {axis: copies}.
    """

    tile: dict[str, int] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    vector: str | None = None
    vectors: int = 1
    unroll: dict[str, int] = field(default_factory=dict)


def nest_of(loop: For) -> tuple[list[For], list]:
    """(the perfectly nested parallel loops from loop inwards, the body of the innermost)."""
    loops, body = [loop], loop.body
    while len(body) == 1 and type(body[0]) is For and body[0].kind == "parallel" and type(body[0].extent) is int:
        loops.append(body[0])
        body = body[0].body
    return loops, body


def apply(schedule: Schedule, loop: For) -> For:
    """The nest that starts at loop, rewritten. ScheduleError if it doesn't fit."""
    loops, body = nest_of(loop)
    names = [x.var.name for x in loops]
    for axis in (*schedule.tile, *schedule.unroll, *((schedule.vector,) if schedule.vector else ())):
        if axis not in names:
            raise ScheduleError(f"the nest {names} has no axis {axis!r}")
    axes: list[For] = []
    mapping: dict[Expr, Expr] = {}
    for x in loops:
        size = schedule.tile.get(x.var.name)
        if size is None or size >= x.extent:
            axes.append(x)
            continue
        if x.extent % size:
            raise ScheduleError(f"tile {size} doesn't divide the extent {x.extent} of {x.var.name}")
        outer, inner = Var(f"{x.var.name}.o"), Var(x.var.name)
        mapping[x.var] = outer * size + inner
        axes += [For(outer, x.extent // size, [], "parallel"), For(inner, size, [], "parallel")]
    ordered = [x for x in axes if x.var.name not in schedule.order]
    for name in schedule.order:
        match = [x for x in axes if x.var.name == name]
        if not match:
            raise ScheduleError(f"the nest has no axis {name!r} to order")
        ordered += match
    if mapping:
        body = rewrite(body, mapping)
    for x in reversed(ordered):
        name = x.var.name
        vector = schedule.vectors if name == schedule.vector else 0
        body = [For(x.var, x.extent, body, x.kind, vector, schedule.unroll.get(name, x.unroll))]
    return body[0]


def rewrite(body: list, mapping: dict[Expr, Expr], memo: dict | None = None) -> list:
    """The statements with leaves replaced."""
    memo = {} if memo is None else memo

    def new(e):
        return substitute(e, mapping, memo) if isinstance(e, Expr) else e

    out = []
    for s in body:
        match s:
            case For():
                out.append(replace(s, extent=new(s.extent), body=rewrite(s.body, mapping, memo)))
            case While():
                out.append(While(rewrite(s.cond, mapping, memo), new(s.test), rewrite(s.body, mapping, memo)))
            case If():
                out.append(If(new(s.test), rewrite(s.then, mapping, memo), rewrite(s.orelse, mapping, memo)))
            case Switch():
                out.append(Switch(new(s.index), [rewrite(b, mapping, memo) for b in s.branches]))
            case Let():
                out.append(Let(s.var, new(s.value)))
            case Declare():
                out.append(Declare(s.local, new(s.init)))
            case Assign():
                out.append(Assign(mapping.get(s.local, s.local), new(s.value)))
            case Store():
                out.append(Store(s.buffer, new(s.index), new(s.value)))
            case _:
                out.append(s)
    return out


# ---- the automatic choice ---------------------------------------------------------------------------------------------------


def auto(program: Program, features: frozenset[str] = frozenset()) -> Program:
    """The program with every nest scheduled for SIMD. Loops that carry a schedule already stay as they are.

    Without "simd128" the vector loops run as scalar ones; long sums are in blocks all the same.
    """
    temps: list[Buffer] = []
    program = map_kernels(program, lambda body: _Chooser(temps).block(body))
    return replace(program, temps=[*program.temps, *temps])


def map_blocks(body: list, change: Callable[[list], list]) -> list:
    """Statements of the program level with every block of them changed, inner ones first."""
    out = []
    for s in body:
        match s:
            case For():
                s = replace(s, body=map_blocks(s.body, change))
            case While():
                s = While(map_blocks(s.cond, change), s.test, map_blocks(s.body, change))
            case If():
                s = If(s.test, map_blocks(s.then, change), map_blocks(s.orelse, change))
            case Switch():
                s = Switch(s.index, [map_blocks(b, change) for b in s.branches])
        out.append(s)
    return change(out)


def map_kernels(program: Program, change: Callable[[list], list]) -> Program:
    """The program with every kernel's statements changed."""
    each = lambda s: replace(s, body=change(s.body)) if type(s) is Kernel else s  # noqa: E731
    return replace(program, body=map_blocks(program.body, lambda block: list(map(each, block))))


class _Chooser:
    """Schedules the nests of one kernel. `temps` gets the buffers that they need."""

    def __init__(self, temps: list[Buffer]) -> None:
        self.temps = temps
        self.forms: dict[Expr, Linear] = {}

    def block(self, body: list) -> list:
        return [x for s in body for x in self.statement(s)]

    def statement(self, s) -> list:
        match s:
            case For():
                return self.nest(s)
            case While():
                return [While(self.block(s.cond), s.test, self.block(s.body))]
            case If():
                return [If(s.test, self.block(s.then), self.block(s.orelse))]
            case Switch():
                return [Switch(s.index, [self.block(b) for b in s.branches])]
        return [s]

    def nest(self, s: For) -> list:
        if any(type(inner) is For and (inner.vector or inner.unroll > 1) for inner in walk([s])):
            return [s]  # scheduled by whoever wrote it
        if s.kind == "reduce":
            return self.reduction(s)
        if s.kind == "sequential" or type(s.extent) is not int:
            if s.kind == "parallel" and self.may_vectorise(s.body) and self.score(s.body, s.var) > 0:
                return [replace(s, vector=1)]
            return [replace(s, body=self.block(s.body))]
        loops, body = nest_of(s)
        axis = self.vector_axis(loops, body)
        if axis is None:
            inner = self.block(body)
            for x in reversed(loops):
                inner = [replace(x, body=inner)]
            return inner
        reduces = any(type(x) is For for x in walk(body))
        vectors = (4 if axis.extent >= 16 else 2 if axis.extent >= 8 else 1) if reduces or _size(body) <= BIG else 1
        by_rows = self.sum_by_rows(axis, body, vectors)
        if by_rows is not None:
            for x in reversed([x for x in loops if x is not axis]):
                by_rows = [replace(x, body=by_rows)]
            return by_rows
        body = self.blocked(body)
        order = [x for x in loops if x is not axis] + [axis]
        for x in reversed(order):
            body = [replace(x, body=body, vector=vectors if x is axis else 0)]
        return body

    def vector_axis(self, loops: list[For], body: list) -> For | None:
        """The parallel axis to run in lanes; None if none pays, or a reduction inside vectorises better."""
        if not self.may_vectorise(body):
            return None
        scored = [(self.score(body, x.var), k, x) for k, x in enumerate(loops) if x.extent >= 2]
        if not scored:
            return None
        best, _, axis = max(scored, key=lambda item: item[:2])
        if best <= 0:
            return None
        inner = [x for x in body if type(x) is For and x.kind == "reduce"]
        if (
            inner
            and max(self.score(x.body, x.var) if type(x.extent) is int and x.extent >= 8 else -1 for x in inner) > best
        ):
            return None
        return axis

    def may_vectorise(self, body: list) -> bool:
        """Whether control flow inside doesn't stand in the way (tests that could depend on the lane)."""
        return all(
            type(x) in (Let, Declare, Assign, Store, For) and not (type(x) is For and isinstance(x.extent, Expr))
            for x in walk(body)
        )

    def score(self, body: list, var: Var, depth: int = 0) -> float:
        """How well accesses suit lanes along var: the weight of contiguous ones minus what gathers cost."""
        total = 0.0
        seen: set[Expr] = set()
        for s in body:
            weight = 1.0 if depth == 0 else 4.0
            if type(s) is Store:
                stride = self.stride(s.index, var)
                if stride == 0:
                    return -1e9
                total += weight if stride == 1 else -weight
            for e in expressions(s):
                for node in walk_expr(e, seen):
                    if type(node) is Load:
                        stride = self.stride(node.index, var)
                        total += weight if stride == 1 else 0 if stride == 0 else -weight
                    elif type(node) in (Binary, MulAdd) and node.dtype in FLOATS:
                        total += 0.05
            for inner in blocks(s):
                total += self.score(inner, var, depth + 1)
        if depth == 0 and total <= 0 and _size(body) > 3 * BIG:
            return 0.1  # much arithmetic: lanes pay although loads don't line up
        return total

    def stride(self, index: Expr, var: Var) -> int | None:
        """Elements an index moves when var does: a constant, or None."""
        terms, _ = linear(index, self.forms)
        if any(t is not var and type(t) is not Var and any(node is var for node in walk_expr(t)) for t in terms):
            return None
        return terms.get(var, 0)

    # ---- reductions

    def reduction(self, s: For) -> list:
        inner_loops = any(type(x) is For for x in walk(s.body))
        if inner_loops or type(s.extent) is not int or not self.reducible(s):
            return self.block_sum(replace(s, body=self.block(s.body)), 1 if inner_loops else 32)
        if s.extent < 64:
            return self.block_sum(replace(s, vector=1), SUM_BLOCK)
        before, loop, after = extrema_by_bits(s)
        return before + self.block_sum(replace(loop, vector=2 if before else 4), SUM_BLOCK) + after

    def reducible(self, s: For) -> bool:
        simple = all(type(x) in (Let, Assign) for x in walk(s.body))
        return simple and s.extent >= 8 and self.score(s.body, s.var) > 0

    def sum_by_rows(self, axis: For, body: list, vectors: int) -> list | None:
        """A reduction over rows far apart: a few rows at a time over all columns, with partial results in the output. Walking down one
        column after the other would touch a new page at every step."""
        match body:
            case [Declare() as start, For(kind="reduce") as loop, Store() as store] if store.value is start.local:
                pass
            case _:
                return None
        if (
            type(loop.extent) is not int
            or loop.extent < 2 * ROWS
            or axis.extent < 64
            or any(type(x) is not Assign for x in loop.body)
        ):
            return None
        nodes = [node for e in (start.init, *(x.value for x in loop.body)) for node in walk_expr(e)]
        for node in nodes:
            # every operand is a matrix larger than the output, so that it can't be the output's storage
            if type(node) is Load and not (
                abs(self.stride(node.index, loop.var) or 0) * ITEMSIZE[node.dtype] >= 1024
                and self.stride(node.index, axis.var) == 1
                and node.buffer.nbytes > store.buffer.nbytes
            ):
                return None
        width = next((w for w in (2048, 1024, 512) if axis.extent % w == 0 and axis.extent > w), axis.extent)  # columns in a part, for threads that share them
        part = Var(f"{axis.var.name}.o")
        summing = start.local.dtype in FLOATS and self.is_sum(loop.body, start.local)
        zero = Const(0.0, start.local.dtype)

        def place(lane: Expr) -> tuple[Expr, Expr]:
            """(the column of a lane, where the output holds it)."""
            column = part * width + lane if width < axis.extent else lane
            return column, substitute(store.index, {axis.var: column})

        def lanes(value: Callable[[Expr], list]) -> For:
            lane = Var(axis.var.name)
            return For(lane, width, value(lane), "parallel", vectors)

        def rows(first: Expr | int, count: int, into: Buffer, fresh_: bool) -> For:
            """Combines `count` rows with what `into` holds, or (`fresh_`) puts their combination there."""

            def body_of(lane: Expr) -> list:
                column, index = place(lane)
                at = lane if into is not store.buffer else index
                ways = min(4, count) if summing else 1
                accs = [Local(f"{start.local.name}{k or ''}", start.local.dtype) for k in range(ways)]
                begin = zero if summing else substitute(start.init, {axis.var: column}) if fresh_ else Load(into, at)
                steps: list = [Declare(acc, begin) for acc in accs]
                for k in range(count):
                    steps += rewrite(loop.body, {axis.var: column, loop.var: first + i32(k), start.local: accs[k % ways]})
                values: list[Expr] = [*accs]
                while len(values) > 1:
                    values = [Binary("add", *values[k : k + 2]) if k + 1 < len(values) else values[k] for k in range(0, len(values), 2)]
                value = values[0] if fresh_ or not summing else Binary("add", Load(into, at), values[0])
                return [*steps, Store(into, at, value)]

            return lanes(body_of)

        def block(first: Expr | int, count: int, into: Buffer, fresh_: bool) -> list:
            """The same, `SIDE_BY_SIDE` rows at a time."""
            whole, rest = divmod(count, SIDE_BY_SIDE)
            step = Var(loop.var.name)
            out: list = [rows(first, SIDE_BY_SIDE, into, fresh_)] if whole else []
            if whole > 1:
                out.append(For(step, whole - 1, [rows(step * SIDE_BY_SIDE + SIDE_BY_SIDE + first, SIDE_BY_SIDE, into, False)]))
            return out + ([rows(first + i32(whole * SIDE_BY_SIDE), rest, into, fresh_ and not whole)] if rest else [])

        if not summing:
            out = block(i32(0), loop.extent, store.buffer, True)
        else:
            partial = Buffer(f"{store.buffer.name}.part", start.local.dtype, (width,), "private")
            self.temps.append(partial)

            def add(lane: Expr) -> list:
                column, index = place(lane)
                return [Store(store.buffer, index, Binary("add", Load(store.buffer, index), Load(partial, lane)))]

            def begin(lane: Expr) -> list:
                column, index = place(lane)
                return [Store(store.buffer, index, substitute(start.init, {axis.var: column}))]

            blocks_, rest = divmod(loop.extent, ROWS)
            number = Var(f"{loop.var.name}.o")
            out = [lanes(begin), For(number, blocks_, [*block(number * ROWS, ROWS, partial, True), lanes(add)])]
            out += [*block(i32(blocks_ * ROWS), rest, partial, True), lanes(add)] if rest else []
        return [For(part, axis.extent // width, out, "parallel")] if width < axis.extent else out

    def blocked(self, body: list) -> list:
        """Long float sums inside a vector loop, in blocks."""
        out = []
        for s in body:
            if type(s) is For and s.kind == "reduce":
                out += self.block_sum(replace(s, body=self.blocked(s.body)), 32, in_lanes=True)
            elif type(s) is For:
                out.append(replace(s, body=self.blocked(s.body)))
            else:
                out.append(s)
        return out

    def block_sum(self, s: For, block: int, in_lanes: bool = False) -> list:
        """acc += Σ over n terms → acc += Σ over blocks of Σ over `block` terms, so that rounding errors do not grow with n. The blocks' sums are added
        in f64, or, in the lanes of a vector loop (`in_lanes`), with what each addition loses kept beside the total."""
        if type(s.extent) is not int or s.extent < 32 or s.extent < 2 * block:
            return [s]
        declared = {x.local for x in walk(s.body) if type(x) is Declare}
        targets = {x.local for x in walk(s.body) if type(x) is Assign} - declared
        sums = [acc for acc in targets if acc.dtype in FLOATS and self.is_sum(s.body, acc)]
        if not sums or (block == 1 and all(acc.dtype == "f64" for acc in sums)):
            return [s]
        totals = {acc: Local(f"{acc.name}.sum", acc.dtype if in_lanes else "f64") for acc in sums}
        lost = {acc: Local(f"{acc.name}.lost", acc.dtype) for acc in sums} if in_lanes else {}
        out: list = [Declare(local, Const(0.0, local.dtype)) for local in (*totals.values(), *lost.values())]
        whole = s.extent // block
        for start, count, size in ((0, whole, block), (whole * block, 1, s.extent - whole * block)):
            if not size:
                continue
            outer, inner = Var(f"{s.var.name}.o"), Var(s.var.name)
            place: Expr = outer if block == 1 else inner + start if count == 1 else outer * block + inner + start
            partials = {acc: Local(f"{acc.name}.part", acc.dtype) for acc in sums}
            body = fresh(s.body, {s.var: place} | partials)
            steps = [Declare(part, Const(0.0, acc.dtype)) for acc, part in partials.items()]
            steps += body if block == 1 else [For(inner, size, body, "reduce", s.vector, s.unroll)]
            for acc, part in partials.items():
                steps += _exact_add(totals[acc], part, lost[acc]) if in_lanes else [Assign(totals[acc], Binary("add", totals[acc], convert(part, "f64")))]
            out += steps if count == 1 else [For(outer, count, steps, "sequential" if in_lanes else "reduce")]
        ends = {acc: Binary("add", total, lost[acc]) if in_lanes else convert(total, acc.dtype) for acc, total in totals.items()}
        return out + [Assign(acc, Binary("add", acc, end)) for acc, end in ends.items()]

    def is_sum(self, body: list, acc: Local) -> bool:
        for x in walk(body):
            if type(x) is Assign and x.local is acc:
                value = x.value
                if not (type(value) is MulAdd and value.c is acc) and not (
                    type(value) is Binary and value.op == "add" and (value.a is acc or value.b is acc)
                ):
                    return False
        return True


def extrema_by_bits(s: For) -> tuple[list, For, list]:
    """(before, loop, after): a reduction with its f32 maxima and minima found in integers, where they are one instruction each. A SIMD maximum of
    floats takes many on x86, because of NaN and of the sign of zero. As signed numbers the bits of floats that are not negative are ordered as
    those are, as unsigned ones the bits of negative floats backwards, and each NaN lies beyond the infinity of its sign."""
    before, body, after = [], [], []
    for x in s.body:
        value = x.value
        if type(x) is not Assign or type(value) is not Binary or value.op not in ("min", "max") or value.dtype != "f32":
            body.append(x)
            continue
        acc = x.local
        term = value.b if value.a is acc else value.a
        top, most, least = (Local(f"{acc.name}.{name}", dtype) for name, dtype in (("top", "i32"), ("most", "u32"), ("least", "u32")))
        start = Const(float("-inf") if value.op == "max" else float("inf"), "f32")
        before += [Declare(local, Bitcast(start, local.dtype)) for local in (top, most, least)]
        bits = Var("bits", "i32")
        body += [Let(bits, Bitcast(term, "i32")), Assign(top, Binary("max", top, bits))]
        body += [Assign(local, Binary(op, local, Bitcast(bits, "u32"))) for local, op in ((most, "max"), (least, "min"))]
        inner = Select(Compare("ge", top, i32(0)), top, Bitcast(least, "i32")) if value.op == "max" else Bitcast(Select(
            Compare("ge", most, Const(1 << 31, "u32")), most, least), "i32")  # fmt: skip
        nan = Binary("or", Compare("gt", top, i32(0x7F800000)), Compare("gt", most, Const(0xFF800000, "u32")))
        after.append(Assign(acc, Binary(value.op, acc, Select(nan, Const(float("nan"), "f32"), Bitcast(inner, "f32")))))
    return before, replace(s, body=body), after


def _exact_add(total: Local, part: Expr, lost: Local) -> list:
    """total += part, and lost += what the rounding took (D. Knuth's two-sum); nothing where the sum is not finite."""
    whole, moved = Var("whole", total.dtype), Var("moved", total.dtype)
    error = Var("error", total.dtype)
    return [
        Let(whole, Binary("add", total, part)),
        Let(moved, Binary("sub", whole, total)),
        Let(error, Binary("add", Binary("sub", total, Binary("sub", whole, moved)), Binary("sub", part, moved))),
        Assign(lost, Binary("add", lost, Select(Compare("eq", error, error), error, Const(0.0, total.dtype)))),
        Assign(total, whole),
    ]


def fresh(body: list, mapping: dict[Expr, Expr]) -> list:
    """A copy of body with leaves replaced and new names for all that it binds (so that both can stand in one block)."""
    mapping = dict(mapping)
    for s in walk(body):
        if type(s) is Let or type(s) is For:
            mapping[s.var] = Var(s.var.name, s.var.dtype)
        elif type(s) is Declare:
            mapping[s.local] = Local(s.local.name, s.local.dtype)

    def rename(statements: list) -> list:
        for s in statements:
            match s:
                case Let():
                    s.var = mapping[s.var]
                case For():
                    s.var = mapping[s.var]
                case Declare():
                    s.local = mapping[s.local]
            for inner in blocks(s):
                rename(inner)
        return statements

    return rename(rewrite(body, mapping))


def _size(body: list) -> int:
    """Nodes in the expressions of body."""
    seen: set[Expr] = set()
    return sum(1 for s in walk(body) for e in expressions(s) for _ in walk_expr(e, seen)) + 8 * sum(
        1 for e in seen if type(e) is Call
    )
