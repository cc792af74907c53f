"""Reductions down the columns of a matrix, row by row.

Walking down one column after the other would touch a new page of memory at every step. So all columns of a part of the
matrix are reduced together, a few rows at a time. Intermediate results are in arrays as long as a row, which stay in
the first-level cache.
"""

from __future__ import annotations

from collections.abc import Callable

from weft_wasm.passes.accumulators import SIDE_BY_SIDE, exact_add, extrema_by_bits, is_sum
from weft_wasm.ir.nodes import (
    FLOATS,
    ITEMSIZE,
    Assign,
    Binary,
    Buffer,
    Call,
    Const,
    Declare,
    Expr,
    For,
    Let,
    Load,
    Local,
    Stmt,
    Store,
    Var,
    i32,
)
from weft_wasm.ir.traversal import expressions, loaded, substitute, walk, walk_expr
from weft_wasm.ir.reductions import assigned_outside
from weft_wasm.ir.rewriting import fresh, rewrite

ROWS = 64  # whose sums are kept apart, so that rounding errors stay small
FAR = 1 << 10  # bytes between rows: nearer ones are walked down
COLUMNS = 64  # fewer are not worth it
PARTS = (2048, 1024, 512)  # columns in a part, for threads that share them
NODES = 100  # of expressions in a loop: fewer rows at a time for what computes much

Stride = Callable[[Expr, Var], int | None]


def interchanged(axis: For, body: list[Stmt], vectors: int, stride: Stride, temps: list[Buffer]) -> list[Stmt] | None:
    """The nest whose `body` reduces down each column of `axis`, as loops over rows; None if it has another form, or
    would not gain. `temps` gets the buffers that it needs.
    """
    loops = {k: s for k, s in enumerate(body) if type(s) is For}
    if axis.count < COLUMNS or not loops or any(type(s) not in (Declare, Let, For, Store) for s in body):
        return None
    last = max(loops)
    if any(type(s) is Store for s in body[:last]) or not all(_is_far(axis, s, stride) for s in loops.values()):
        return None
    changed = [acc for s in loops.values() for acc in assigned_outside(s)]
    # a value bound between two loops that change it would differ after the second
    if len(set(changed)) < len(changed):
        return None
    before = [x for s in body[: last + 1] for x in (_in_integers(s) if type(s) is For else [s])]
    return _Interchange(axis, before, body[last + 1 :], vectors, temps).nest()


def _in_integers(loop: For) -> list[Stmt]:
    before, loop, after = extrema_by_bits(loop)
    return [*before, loop, *after]


def _is_far(axis: For, loop: For, stride: Stride) -> bool:
    """Whether a loop reduces, each separately, rows that are far apart in memory."""
    accumulators = set(assigned_outside(loop))
    steps = [s for s in loop.body if isinstance(s, (Let, Assign))]
    if loop.kind != "reduce" or type(loop.extent) is not int or loop.extent < 2 * ROWS or len(steps) < len(loop.body):
        return False
    far = False
    for s in steps:
        for node in walk_expr(s.value):
            if node in accumulators and not (type(s) is Assign and s.local is node):
                return False
            if type(node) is Load:
                along, down = stride(node.index, axis.var), stride(node.index, loop.var)
                if along not in (0, 1) or (along == 1 and down is None):
                    return False
                if along == 1 and down:
                    if abs(down) * ITEMSIZE[node.dtype] < FAR:
                        return False
                    far = True
    return far


class _Interchange:
    """Builds the nest of `interchanged`: the reductions, and the operations on their results. Inside, a column is
    identified by its number in its part, `here`.
    """

    def __init__(self, axis: For, body: list[Stmt], rest: list[Stmt], vectors: int, temps: list[Buffer]):
        self.axis, self.body, self.rest, self.vectors, self.temps = axis, body, rest, vectors, temps
        self.here = Var("here")
        self.known: dict[Var | Local, Expr] = {}

    def nest(self) -> list[Stmt]:
        extent = self.axis.count
        self.width = next((w for w in PARTS if extent >= 2 * w), extent)
        whole, rest = divmod(extent, self.width)
        if whole == 1:
            return self.part(i32(0), extent)
        number = Var(f"{self.axis.var.name}.o")
        out: list[Stmt] = [For(number, whole, self.part(number * self.width, self.width), "parallel")]
        return out + (self.part(i32(whole * self.width), rest) if rest else [])

    def part(self, first: Expr, columns: int) -> list[Stmt]:
        """The whole body for some columns. `self.known` holds its results: locals as buffers, bindings as expressions.
        The buffers are private to this part, so that threads can share its loop.
        """
        self.columns, self.known = columns, {self.axis.var: first + self.here}
        out: list[Stmt] = []
        for s in self.body:
            match s:
                case Declare():
                    self.known[s.local] = substitute(s.init, self.known)
                case Let():
                    self.known[s.var] = substitute(s.value, self.known)
                case Assign():
                    self.known[s.local] = substitute(s.value, self.known)
                case For():
                    out += self.reduce(s)
                case _:
                    raise TypeError(f"{type(s).__name__} does not stand before a reduction")
        return [*out, self.lanes(self.at_last())]

    def at_last(self) -> list[Stmt]:
        """The operations on the results. Values read from memory are bound before the first store, which may change
        memory.
        """
        known = dict(self.known)
        bound: list[Stmt] = []
        used = {node for s in walk(self.rest) for e in expressions(s) for node in walk_expr(e)}
        for name, e in self.known.items():
            if any(b.role != "private" for b in loaded(e)) and name in used:
                known[name] = var = Var(name.name, name.dtype)
                bound.append(Let(var, e))
        return [*bound, *fresh(self.rest, known)]

    def reduce(self, loop: For) -> list[Stmt]:
        """One loop over all rows; its locals are known afterwards."""
        accumulators = assigned_outside(loop)
        sums = [acc for acc in accumulators if acc.dtype in FLOATS and is_sum(loop.body, acc)]
        totals = {acc: self.array(acc, "") for acc in accumulators}
        parts = {acc: self.array(acc, ".part") for acc in sums}
        lost = {acc: self.array(acc, ".lost") for acc in sums}
        begin: list[Stmt] = [Store(totals[acc], self.here, self.known.pop(acc)) for acc in accumulators]
        begin += [Store(b, self.here, Const(0.0, b.dtype)) for b in lost.values()]
        out: list[Stmt] = [self.lanes(begin)]
        if sums:
            number, (whole, rest) = Var(f"{loop.var.name}.o"), divmod(loop.count, ROWS)
            out.append(
                For(
                    number,
                    whole,
                    [*self.rows(loop, number * ROWS, ROWS, totals | parts, sums), self.add_up(totals, parts, lost)],
                )
            )
            if rest:
                out += [
                    *self.rows(loop, i32(whole * ROWS), rest, totals | parts, sums),
                    self.add_up(totals, parts, lost),
                ]
        else:
            out += self.rows(loop, i32(0), loop.count, totals, sums)
        for acc in accumulators:
            value: Expr = Load(totals[acc], self.here)
            self.known[acc] = Binary("add", value, Load(lost[acc], self.here)) if acc in lost else value
        return out

    def rows(self, loop: For, first: Expr, count: int, into: dict[Local, Buffer], sums: list[Local]) -> list[Stmt]:
        """Combines `count` rows with the values in the arrays; sums start again."""
        together = self.together(loop)
        whole, rest = divmod(count, together)
        step = Var(loop.var.name)
        out: list[Stmt] = [self.step(loop, first, together, into, sums, True)] if whole else []
        if whole > 1:
            out.append(
                For(step, whole - 1, [self.step(loop, step * together + together + first, together, into, sums, False)])
            )
        return out + ([self.step(loop, first + i32(whole * together), rest, into, sums, not whole)] if rest else [])

    def together(self, loop: For) -> int:
        """How many rows are combined at once."""
        seen: set[Expr] = set()
        nodes = [node for s in loop.body for e in expressions(s) for node in walk_expr(e, seen)]
        return 1 if any(type(node) is Call for node in nodes) else max(1, min(SIDE_BY_SIDE, NODES // len(nodes)))

    def step(self, loop: For, first: Expr, count: int, into: dict[Local, Buffer], sums: list[Local], new: bool) -> For:
        """Combines `count` rows at once: sums in several locals, so that additions don't wait for each other."""
        several = max(1, min(4, count) // len(into))
        locals_of = {
            acc: [Local(f"{acc.name}{k or ''}", acc.dtype) for k in range(several if acc in sums else 1)]
            for acc in into
        }
        statements: list[Stmt] = []
        for acc, parts in locals_of.items():
            held: Expr = Load(into[acc], self.here)
            statements += [Declare(part, Const(0.0, acc.dtype) if acc in sums else held) for part in parts]
        for k in range(count):
            statements += fresh(
                loop.body,
                self.known
                | {loop.var: first + i32(k)}
                | {acc: parts[k % len(parts)] for acc, parts in locals_of.items()},
            )
        for acc, parts in locals_of.items():
            values: list[Expr] = [*parts]
            while len(values) > 1:
                values = [
                    Binary("add", *pair) if len(pair) == 2 else pair[0]
                    for pair in (values[k : k + 2] for k in range(0, len(values), 2))
                ]
            value = Binary("add", Load(into[acc], self.here), values[0]) if acc in sums and not new else values[0]
            statements.append(Store(into[acc], self.here, value))
        return self.lanes(statements)

    def add_up(self, totals: dict[Local, Buffer], parts: dict[Local, Buffer], lost: dict[Local, Buffer]) -> For:
        """Adds the sums of some rows to those of all rows, and the rounding errors to the accumulated ones."""
        statements: list[Stmt] = []
        for acc, part in parts.items():
            total, error = Local(f"{acc.name}.sum", acc.dtype), Local(f"{acc.name}.error", acc.dtype)
            statements += [Declare(total, Load(totals[acc], self.here)), Declare(error, Load(lost[acc], self.here))]
            statements += fresh(exact_add(total, Load(part, self.here), error), {})
            statements += [Store(totals[acc], self.here, total), Store(lost[acc], self.here, error)]
        return self.lanes(statements)

    def array(self, acc: Local, name: str) -> Buffer:
        """One number for each column of a part."""
        buffer = Buffer(f"{acc.name}{name}.{len(self.temps)}", acc.dtype, (self.width,), "private")
        self.temps.append(buffer)
        return buffer

    def lanes(self, statements: list[Stmt]) -> For:
        """A loop over the columns of the part."""
        lane = Var(self.axis.var.name)
        return For(lane, self.columns, rewrite(statements, {self.here: lane}), "parallel", self.vectors)
