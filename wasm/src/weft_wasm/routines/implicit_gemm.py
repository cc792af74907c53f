"""Products whose left matrix consists of windows of an array: out[g, i, j] = Σ_t x[place(g, i) + offset(t)] · b(g, t,
j), in loop IR.

Convolutions are such products: a row is a window, a term is a position in it. Rows may overlap, so the micro kernel
reads them from x in place, each from its address in a table (the indirect convolution of M. Dukhan, 2019), and only b
is packed. The walk over the terms follows axes with constant strides, so that no index is divided.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft_wasm.ir.affine import linear_index, row_major
from weft_wasm.ir.nodes import (
    ITEMSIZE,
    Assign,
    Binary,
    Buffer,
    Const,
    Declare,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    Local,
    Stmt,
    Store,
    Var,
    gt,
    i32,
    le,
    minimum,
    sub,
)
from weft_wasm.routines import gemm
from weft_wasm.routines.gemm import Routine, Tile, accumulate, default_tile

Axis = tuple[int, int]  # (extent, elements of x between adjacent indices)
# an index of results: that of the first row, and the strides along the axes of the rows
Index = tuple[int, Sequence[int]]
Term = Callable[[Expr, Sequence[Expr], Expr], Expr]  # (group, an index for each axis of the terms, column) -> value
# (group, indices of the row, column, value) -> statements
Sink = Callable[[Expr, Sequence[Expr], Expr, Expr], list[Stmt]]

TERMS = 640  # at most this many at a time: a panel of b stays in the first-level cache
ROWS = 96  # rows whose windows stay in the second-level cache while all columns pass
SMALL = 16_384  # products of fewer terms gain nothing from packing
MOST_WRITTEN = 12  # steps of a loop's body
NARROW = 4  # likewise those of fewer columns, where lanes can run over rows instead


@dataclass(frozen=True, slots=True)
class Product:
    """The operands: x from `start` on, its groups, rows and terms as axes, and b with n columns; and the indices of
    rows in the results.
    """

    x: Buffer
    start: Expr
    group: Axis
    rows: Sequence[Axis]
    terms: Sequence[Axis]
    n: int
    b: Term
    results: Sequence[Index]

    @property
    def m(self) -> int:
        return math.prod(n for n, _ in self.rows)

    @property
    def k(self) -> int:
        return math.prod(n for n, _ in self.terms)


@dataclass(frozen=True, slots=True)
class Slices:
    """Terms in slices that are summed one after the other: `outer` axes count slices, `inner` axes form one slice.

    `cut` axes of the terms are outer only; the next one is in both, `step` elements for each slice and `rest` for the
    last (0: all are equal).
    """

    outer: list[Axis]
    inner: list[Axis]
    cut: int
    rest: int = 0

    @classmethod
    def of(cls, terms: Sequence[Axis], most: int) -> Slices:
        """Slices of at most about `most` terms."""
        size, cut = 1, len(terms) - 1
        while cut > 0 and size * terms[cut][0] <= most:
            size *= terms[cut][0]
            cut -= 1
        n, stride = terms[cut]
        step = min(n, max(1, most // size))
        even = max(d for d in range(1, step + 1) if n % d == 0)
        if 2 * even >= step:
            step = even
        else:  # the innermost loop has a constant extent
            step = n if cut == len(terms) - 1 else -(-n // -(-n // step))
        outer = [*terms[:cut], (-(-n // step), step * stride)]
        return cls(outer, [(step, stride), *terms[cut + 1 :]], cut, n % step)

    @property
    def count(self) -> int:
        return math.prod(n for n, _ in self.outer)

    @property
    def size(self) -> int:
        return math.prod(n for n, _ in self.inner)

    def extents(self, at: Sequence[Expr]) -> list[int | Expr]:
        """The lengths of the loops of the slice at these outer indices."""
        extents: list[int | Expr] = [n for n, _ in self.inner]
        if self.rest:
            step, n = self.inner[0][0], self.outer[-1][0]
            extents[0] = minimum(i32(step), sub(i32((n - 1) * step + self.rest), at[-1] * step))
        return extents

    def indices(self, at: Sequence[Expr], inside: Sequence[Expr]) -> list[Expr]:
        """The index along each axis of the terms."""
        return [*at[: self.cut], at[-1] * self.inner[0][0] + inside[0], *inside[1:]]


def implicit_gemm(
    name: str,
    p: Product,
    store: Sink,
    *,
    dtype: str = "f32",
    features: frozenset[str] = frozenset(),
    plain: bool = False,
) -> Routine:
    """The product, accumulated in dtype (that of x). store(group, indices, column, value): statements that store one
    result.

    plain: the bare loop nest. Sums of two neighbours:

    >>> x, y = Buffer("x", "f32", (9,), "input"), Buffer("y", "f32", (8,), "output")
    >>> product = Product(x, i32(0), (1, 0), [(8, 1)], [(2, 1)], 1, lambda g, t, j: Const(1.0, "f32"), [(0, [1])])
    >>> routine = implicit_gemm("pairs", product, lambda g, at, j, value: [Store(y, at[0], value)])
    >>> [kernel.name for kernel in routine.kernels]
    ['pairs']
    """
    each = p.m * p.n * p.k
    beside = p.rows[-1][1] == 1  # lanes may run over rows
    if plain or each <= SMALL or p.n == 1 or p.n < NARROW and beside:
        return Routine([Kernel(name, _plain_nest(p, store, dtype))], [])
    return _tiled(name, p, store, dtype, default_tile(dtype, features))


def loops_of(extents: Sequence[int | Expr], names: str) -> list[tuple[Var, int | Expr]]:
    return [(Var(names[min(d, len(names) - 1)]), n) for d, n in enumerate(extents)]


def wrap(loops: Sequence[tuple[Var, int | Expr]], body: list[Stmt], kind: str = "sequential") -> list[Stmt]:
    for var, n in reversed(loops):
        body = [For(var, n, body, kind)]
    return body


def _plain_nest(p: Product, store: Sink, dtype: str) -> list[Stmt]:
    """Rows and groups as they lie in x; columns beside groups, as they are in results."""
    rows, terms = loops_of([n for n, _ in p.rows], "uvw"), loops_of([n for n, _ in p.terms], "rst")
    g, j, acc = Var("g"), Var("j"), Local("acc", dtype)
    r, t = [v for v, _ in rows], [v for v, _ in terms]
    place = linear_index([g, *r, *t], [s for _, s in (p.group, *p.rows, *p.terms)])
    body: list[Stmt] = [
        Declare(acc, Const(0, dtype)),
        *wrap(terms, [accumulate(acc, Load(p.x, p.start + place), p.b(g, t, j))], "reduce"),
        *store(g, [linear_index(r, strides, first) for first, strides in p.results], j, acc),
    ]
    loops = [*zip(rows, [s for _, s in p.rows]), ((g, p.group[0]), p.group[1]), ((j, p.n), p.group[1])]
    return wrap([loop for loop, _ in sorted(loops, key=lambda x: -x[1])], body, "parallel")


def _tiled(name: str, p: Product, store: Sink, dtype: str, t: Tile) -> Routine:
    lanes = 2 if ITEMSIZE[dtype] == 8 else 4
    mr, nr, m, n = t.mr, t.nr, p.m, p.n
    slices = Slices.of(p.terms, TERMS)
    row_panels, column_panels = -(-m // mr), -(-n // nr)
    row_blocks = -(-row_panels // max(1, ROWS // mr))
    block_rows = -(-row_panels // row_blocks)
    # threads share the groups, or the blocks of rows, or the columns, where the product is worth it
    each, groups = m * n * p.k, p.group[0]
    by_group = groups >= 4 and groups * each >= gemm.WORTH
    by_rows = not by_group and row_blocks >= 2 and each >= gemm.WORTH
    by_columns = not (by_group or by_rows) and each >= gemm.WORTH and column_panels >= 2 * gemm.SHARED_COLUMNS
    own = {True: "private", False: "temp"}
    lines = [(0, [s for _, s in p.rows]), *(index for index in p.results if _tabled(index, p.rows))]
    table = Buffer(f"{name}.rows", "i32", (len(lines), row_panels * mr))
    panel = Buffer(f"{name}.b", dtype, (column_panels, slices.size, nr), own[by_group])
    partial = Buffer(f"{name}.c", dtype, (row_panels, column_panels, mr, nr), own[by_group])
    edge = Buffer(f"{name}.edge", dtype, (mr, nr), own[by_group or by_rows or by_columns])
    temps = [table, panel] + ([partial] if slices.count > 1 else []) + ([edge] if m % mr or n % nr else [])

    g, ib, jp, ip, rows = Var("g"), Var("ib"), Var("jp"), Var("ip"), Var("rows")
    outer = loops_of([e for e, _ in slices.outer], "uvw")
    at = [v for v, _ in outer]
    start = p.start + g * p.group[1] + linear_index(at, [s for _, s in slices.outer])
    tile = _Tile(p, slices, t, lanes, table, panel, partial, edge, store, dtype)
    columns = For(
        jp,
        column_panels,
        [For(ip, rows, tile.statements(g, at, start, ib * block_rows + ip, jp))],
        "parallel" if by_columns else "sequential",
        tasks=gemm.SHARED_COLUMNS if by_columns else 0,
    )
    block: list[Stmt] = [Let(rows, minimum(i32(block_rows), sub(i32(row_panels), ib * block_rows))), columns]
    body = [
        *_pack(
            p,
            slices,
            panel,
            g,
            at,
            nr,
            lanes,
            8 if (by_rows or by_columns) and n * slices.size >= gemm.PACKING_WORTH else 0,
        ),
        For(ib, row_blocks, block, "parallel", tasks=1) if by_rows else For(ib, row_blocks, block),
    ]
    body = wrap(outer, body)
    return Routine(
        [
            Kernel(
                name,
                [
                    *_fill_table(p, lines, table),
                    For(g, groups, body, "parallel", tasks=1) if by_group else For(g, groups, body),
                ],
            )
        ],
        temps,
    )


def _tabled(index: Index, rows: Sequence[Axis]) -> bool:
    """Whether an index of rows is neither their number nor constant."""
    first, strides = index
    return any(strides) and (first != 0 or list(strides) != list(row_major([n for n, _ in rows])))


def _fill_table(p: Product, lines: Sequence[Index], table: Buffer) -> list[Stmt]:
    """A row of the table for each index of rows; the index into x comes first. The entries that fill up the last panel
    repeat the last row.
    """
    loops, r = loops_of([n for n, _ in p.rows], "uvw"), Var("r")
    at, width = [v for v, _ in loops], table.shape[1]
    number = linear_index(at, row_major([n for n, _ in p.rows]))
    writes: list[Stmt] = [
        Store(table, number + line * width, linear_index(at, strides, first))
        for line, (first, strides) in enumerate(lines)
    ]
    last = [first + sum((n - 1) * s for (n, _), s in zip(p.rows, strides)) for first, strides in lines]
    fills: list[Stmt] = [Store(table, r + (line * width + p.m), i32(value)) for line, value in enumerate(last)]
    return [*wrap(loops, writes, "parallel"), For(r, width - p.m, fills)]


def _pack(
    p: Product, slices: Slices, panel: Buffer, g: Expr, at: Sequence[Expr], nr: int, lanes: int, tasks: int
) -> list[Stmt]:
    """panel[q][term][c] = b(g, term, q·nr + c); columns beyond the matrix repeat the last one."""
    q = Var("q")
    steps = row_major([n for n, _ in slices.inner])

    def copy(column: Callable[[Expr], Expr], vector: int) -> list[Stmt]:
        c, loops = Var("c"), loops_of(slices.extents(at), "rst")
        inside = [v for v, _ in loops]
        value = p.b(g, slices.indices(at, inside), column(q * nr + c))
        place = (q * slices.size + linear_index(inside, steps)) * nr + c
        return wrap(loops, [For(c, nr, [Store(panel, place, value)], "parallel", vector=vector)])

    body = copy(lambda j: j, nr // lanes)
    if p.n % nr:
        body = [If(le(q * nr, p.n - nr), body, copy(lambda j: minimum(j, i32(p.n - 1)), 0))]
    return [For(q, panel.shape[0], body, "parallel", tasks=tasks)]


def _merged(axes: Sequence[Axis], fixed: int) -> list[Axis]:
    """Axes, with those joined that have a common stride; the first `fixed` are kept."""
    out: list[Axis] = []
    for n, s in axes:
        if len(out) > fixed and out[-1][1] == n * s:
            out[-1] = (out[-1][0] * n, s)
        else:
            out.append((n, s))
    return out


@dataclass(frozen=True, slots=True)
class _Tile:
    """The micro kernel: mr rows of x by a packed panel of nr columns."""

    p: Product
    slices: Slices
    t: Tile
    lanes: int
    table: Buffer
    panel: Buffer
    partial: Buffer
    edge: Buffer
    store: Sink
    dtype: str

    def sums(
        self, at: Sequence[Expr], places: Sequence[Expr], column: Expr, jv: Expr, accumulators: Sequence[Local]
    ) -> list[Stmt]:
        """acc[q] += Σ x[place q + offset] · panel over a slice."""
        ragged = 1 if self.slices.rest else 0
        axes = _merged(self.slices.inner, ragged)
        extents = [*self.slices.extents(at)[:ragged], *(n for n, _ in axes[ragged:])]
        loops = loops_of(extents, "rst")
        inside = [v for v, _ in loops]
        offset = linear_index(inside, [s for _, s in axes])
        vector = Var("bv", self.dtype)
        term = linear_index(inside, row_major([n for n, _ in axes]))
        body: list[Stmt] = [Let(vector, Load(self.panel, (column * self.slices.size + term) * self.t.nr + jv))]
        body += [accumulate(acc, Load(self.p.x, place + offset), vector) for place, acc in zip(places, accumulators)]
        written = 1  # unrolled steps: short loops completely, the first long one partly
        for var, run in reversed(loops):
            if type(run) is int and written * run <= MOST_WRITTEN:
                body = [For(var, run, body, "reduce", unroll=run)]
                written *= run
            else:
                body = [For(var, run, body, "reduce", unroll=self.t.unroll if written == 1 else 1)]
                written = MOST_WRITTEN + 1
        return body

    def indices(self, row: Expr) -> list[Expr]:
        """The indices of a row in results."""
        out: list[Expr] = []
        line = 0
        for index in self.p.results:
            if _tabled(index, self.p.rows):
                line += 1
                out.append(Load(self.table, row + line * self.table.shape[1]))
            else:
                out.append(row if any(index[1]) else i32(index[0]))
        return out

    def statements(self, g: Expr, at: Sequence[Expr], start: Expr, row_panel: Expr, column_panel: Expr) -> list[Stmt]:
        mr, nr, m, n = self.t.mr, self.t.nr, self.p.m, self.p.n
        jv, r, c = Var("jv"), Var("r"), Var("c")
        row, column = row_panel * mr, column_panel * nr
        accumulators = [Local(f"acc{q}", self.dtype) for q in range(mr)]
        places = [Var(f"row{q}") for q in range(mr)]
        body: list[Stmt] = [Let(place, start + Load(self.table, row + q)) for q, place in enumerate(places)]
        body += [Declare(acc, Const(0, self.dtype)) for acc in accumulators]
        body += self.sums(at, places, column_panel, jv, accumulators)
        number = linear_index(at, row_major([n for n, _ in self.slices.outer]))
        last = le(i32(self.slices.count - 1), number)
        fits = [
            le(i, size - step) if size > step else Const(False, "bool")
            for i, size, step in ((row, m, mr), (column, n, nr))
            if size % step
        ]
        inside = fits[0] & fits[1] if len(fits) == 2 else fits[0] if fits else None
        put: list[Stmt] = [Store(self.edge, jv + q * nr, acc) for q, acc in enumerate(accumulators)]
        if m >= mr and n >= nr:
            direct = [
                s for q, acc in enumerate(accumulators) for s in self.store(g, self.indices(row + q), column + jv, acc)
            ]
            put = direct if inside is None else [If(inside, direct, put)]
        if self.slices.count > 1:
            before = [(row_panel * self.partial.shape[1] + column_panel) * (mr * nr) + q * nr + jv for q in range(mr)]
            added: list[Stmt] = [
                Assign(acc, Binary("add", acc, Load(self.partial, b))) for b, acc in zip(before, accumulators)
            ]
            body.append(If(gt(number, 0), added))
            put = [If(last, put, [Store(self.partial, b, acc) for b, acc in zip(before, accumulators)])]
        out: list[Stmt] = [For(jv, nr, [*body, *put], "parallel", vector=nr // self.lanes, outline=True)]
        if inside is not None:
            loops = [(r, minimum(i32(mr), sub(i32(m), row))), (c, minimum(i32(nr), sub(i32(n), column)))]
            spill = wrap(loops, self.store(g, self.indices(row + r), column + c, self.edge[r * nr + c]))
            out.append(If(inside, [], [If(last, spill)] if self.slices.count > 1 else spill))
        return out
