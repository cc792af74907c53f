"""Matrix multiplication: out[b, i, j] = Σ_k A[b, i, k] · B[b, k, j], in loop IR.

Operands are functions from indices to expressions, so transposes, strides, casts and fused producers cost nothing:
packing evaluates them once per element. The packed-panel algorithm (GotoBLAS): panels of B [k][NR] and of A [k][MR] for
a slice of k, and a micro kernel with MR × NR accumulators in registers. Small products and vectors get the plain
nest; targets that schedule by themselves have tiles of their own (register_tiles.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from weft_wasm.ir.affine import linear
from weft_wasm.ir.nodes import (
    FLOATS,
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
    MulAdd,
    Stmt,
    Store,
    Var,
    gt,
    i32,
    le,
    minimum,
    sub,
)
from weft_wasm.ir.traversal import walk_expr
from weft_wasm.ir.rewriting import fresh

SMALL = 8192  # products of fewer terms are not packed
WORTH = 4_000_000  # products of fewer terms stay on one thread
PACKING_WORTH = 100_000  # likewise for packing this many elements
NARROW = 128  # columns: products with fewer read rows in place
DEEP = 64  # terms: products of fewer are not turned over, as their results would be stored against the grain
SHARED_COLUMNS = 4  # panels of columns that a thread takes at once
# rows that may each be in a different page and be read repeatedly: the processor's translation buffers hold this many
KNOWN_PAGES = 1024
IN_A_LINE = 2  # panels of columns that a line of the cache holds
STREAMED = 1 << 20  # bytes of columns: more of them come from memory when they are packed
KEPT = 4 << 20  # bytes of packed columns that a thread keeps while it goes over the rows of a matrix

_T = TypeVar("_T")
Element = Callable[[Expr, Expr, Expr], Expr]  # (batch, row, column) -> value
Sink = Callable[[Expr, Expr, Expr, Expr], list[Stmt]]  # (batch, row, column, value) -> statements


@dataclass(frozen=True, slots=True)
class Tile:
    """mr × nr accumulators; k in slices of at most kc; mc rows of A packed at a time; nc columns of B; the k loop
    unrolled.
    """

    mr: int = 6
    nr: int = 8
    kc: int = 640
    mc: int = 96
    nc: int = 2048
    unroll: int = 4


def default_tile(dtype: str, features: frozenset[str] = frozenset()) -> Tile:
    """Measured choices: V8 halves its speed where accumulators and operands exceed 15 live vectors."""
    mr = 6 if "relaxed-simd" in features else 5
    return Tile(mr=mr, nr=4 if ITEMSIZE[dtype] == 8 else 8, mc=96 // mr * mr)


@dataclass(slots=True)
class Routine:
    """Kernels to put into a program, or loops around them, and the temps that they need."""

    kernels: Sequence[Kernel | For]
    temps: list[Buffer]


def gemm(
    name: str,
    m: int,
    n: int,
    k: int,
    a: Element,
    b: Element,
    store: Sink,
    *,
    batch: int = 1,
    dtype: str = "f32",
    features: frozenset[str] = frozenset(),
    tile: Tile | None = None,
    plain: bool = False,
) -> Routine:
    """A product of `batch` matrices, accumulated in dtype (what a and b return).

    a(batch, i, k), b(batch, k, j): values as expressions of i32 indices. store(batch, i, j, value): statements that put
    one result away; bias, activation and conversion go there. plain: the bare loop nest.

    >>> x, y, out = (Buffer(s, "f32", (64, 64), r) for s, r in (("x", "input"), ("y", "input"), ("out", "output")))
    >>> routine = gemm("matmul", 64, 64, 64, lambda _, i, k: x[i * 64 + k], lambda _, k, j: y[k * 64 + j],
    ...                lambda _, i, j, value: [Store(out, i * 64 + j, value)])
    >>> [kernel.name for kernel in routine.kernels]
    ['matmul']
    """
    tile = tile or default_tile(dtype, frozenset(features))
    if plain or k == 0 or m < 4 or n < 4 or k < 4 or m * n * k < SMALL:
        return Routine([Kernel(name, [plain_nest(m, n, k, a, b, store, batch, dtype)])], [])
    # few columns: as rows, they fill their panels
    if batch == 1 and k >= DEEP and n * _ceil_div(m, tile.nr) < 0.8 * m * _ceil_div(n, tile.nr):
        flip = lambda use: lambda z, i, j, *value: use(z, j, i, *value)  # noqa: E731
        return _Packed(name, n, m, k, flip(b), flip(a), flip(store), batch, dtype, tile).routine()
    return _Packed(name, m, n, k, a, b, store, batch, dtype, tile).routine()


def accumulate(acc: Local, x: Expr, y: Expr) -> Assign:
    """acc += x · y; of booleans, acc or (x and y)."""
    if acc.dtype in FLOATS:
        return Assign(acc, MulAdd(x, y, acc))
    if acc.dtype == "bool":
        return Assign(acc, Binary("or", acc, Binary("and", x, y)))
    return Assign(acc, Binary("add", acc, Binary("mul", x, y)))


def plain_nest(m: int, n: int, k: int, a: Element, b: Element, store: Sink, batch: int, dtype: str) -> For:
    bi, i, j, kk = Var("b"), Var("i"), Var("j"), Var("k")
    acc = Local("acc", dtype)
    body: list[Stmt] = [
        Declare(acc, Const(0, dtype)),
        For(kk, k, [accumulate(acc, a(bi, i, kk), b(bi, kk, j))], "reduce"),
        *store(bi, i, j, acc),
    ]
    return For(bi, batch, [For(i, m, [For(j, n, body, "parallel")], "parallel")], "parallel")


@dataclass(frozen=True, slots=True)
class Panels:
    """The rows of a matrix divided evenly into as few panels of at most `most` rows as possible: `tall` panels of
    `height` rows, the others of one row less.
    """

    extent: int
    most: int

    @property
    def count(self) -> int:
        return _ceil_div(self.extent, self.most)

    @property
    def height(self) -> int:
        return _ceil_div(self.extent, self.count)

    @property
    def tall(self) -> int:
        return self.extent - self.count * (self.height - 1)

    def each(self, panel: Expr, body: Callable[[int, Expr], list[Stmt]]) -> list[Stmt]:
        """body(rows, first row) of the panel with that number."""
        tall = body(self.height, panel * self.height)
        if self.tall == self.count or (type(panel) is Const and panel.value < self.tall):
            return tall
        return [If(gt(i32(self.tall), panel), tall, body(self.height - 1, panel * (self.height - 1) + self.tall))]


class _Packed:
    """A product by packed panels: how its operands are accessed and what threads share (in the constructor), and the
    loops of each variant (methods).
    """

    def __init__(
        self, name: str, m: int, n: int, k: int, a: Element, b: Element, store: Sink, batch: int, dtype: str, t: Tile
    ) -> None:
        self.name, self.batch, self.dtype, self.nr = name, batch, dtype, t.nr
        self.bi, self.ks, self.ip = (Var(s) for s in ("b", "ks", "ip"))
        self.slices = _ceil_div(k, t.kc)
        even = k % self.slices == 0
        worth = m * n * k >= WORTH
        self.by_batch = batch >= 4 and batch * m * n * k >= WORTH
        # many matrices: blocks of rows, each of which other kernels may take on before the next; else few rows, or many
        in_turn = self.by_batch and even and k * n * ITEMSIZE[dtype] <= KEPT
        self.blocks = _even_blocks(m, 2 * t.mc) if in_turn else 1
        self.ib = Var("ib")
        if self.blocks > 1:
            m, a, store = (
                m // self.blocks,
                _below(self.ib * (m // self.blocks), a),
                _below(self.ib * (m // self.blocks), store),
            )
        self.m, self.n, self.k, self.a, self.b, self.store = m, n, k, a, b, store
        # the last slice is filled up with zeros
        self.kc = k // self.slices if even else _ceil_div(_ceil_div(k, self.slices), t.unroll) * t.unroll
        self.panels, self.column_panels = Panels(m, t.mr), _ceil_div(n, t.nr)
        # rows: all of them stay in the second-level cache, and columns are packed when they are needed
        self.few = self.blocks == 1 and m <= 2 * t.mc
        # rows are read in place if packing them would take longer than it saves
        self.in_place = even and (self.few or self.blocks > 1 or n <= NARROW) and _is_row(a, dtype)
        # the first panel of rows packs the columns that it reads
        self.fill = self.few and even and n % t.nr == 0 and _is_row(b, dtype)
        # a longer body of the loop over terms pays where the columns come from memory
        self.unroll = t.unroll if self.fill and k * n * ITEMSIZE[dtype] > STREAMED else min(t.unroll, 2)
        # all terms of some columns before the next, as nothing is packed for a slice
        self.across = self.few and self.in_place and k <= KNOWN_PAGES
        self.row_blocks = (
            1 if self.few or self.blocks > 1 else _ceil_div(self.panels.count, max(1, t.mc // self.panels.height))
        )
        self.block_rows = _ceil_div(self.panels.count, self.row_blocks)  # even ones, for threads that share them
        self.together = IN_A_LINE if n % (IN_A_LINE * t.nr) == 0 else 1
        if self.blocks > 1:
            self.block_columns = self.slices * self.column_panels
        else:
            self.block_columns = self.together if self.few else max(1, min(t.nc // t.nr, self.column_panels))
        # threads share the batch, or the blocks of rows, or the columns of few rows, where the product is worth it
        self.by_rows = not self.by_batch and self.row_blocks >= 2 and worth
        self.by_columns = not self.by_batch and self.few and worth and self.column_panels >= 2 * SHARED_COLUMNS
        self._make_buffers()

    def _make_buffers(self) -> None:
        """Packed panels, partial sums, and an edge for the last columns: `private` where threads would meet in them."""
        own = {True: "private", False: "temp"}
        name, dtype, mr, nr = self.name, self.dtype, self.panels.height, self.nr
        # panels of columns whose partial sums are kept
        kept = self.block_columns if self.across else self.column_panels
        self.panel_a = Buffer(f"{name}.a", dtype, (self.block_rows, self.kc, mr), own[self.by_batch or self.by_rows])
        self.panel_b = Buffer(
            f"{name}.b", dtype, (self.block_columns, self.kc, nr), own[self.by_batch or self.by_columns]
        )
        self.partial = Buffer(
            f"{name}.c",
            dtype,
            (self.panels.count * kept, mr, nr),
            own[self.by_batch or (self.by_columns and self.across)],
        )
        self.edge = Buffer(f"{name}.edge", dtype, (mr, nr), own[self.by_batch or self.by_rows or self.by_columns])
        used = [
            (self.panel_a, not self.in_place),
            (self.panel_b, not self.fill or self.panels.count > 1),
            (self.partial, self.slices > 1),
            (self.edge, self.n % nr > 0),
        ]
        self.temps = [buffer for buffer, wanted in used if wanted]

    def routine(self) -> Routine:
        way = self._in_turn if self.blocks > 1 else self._few_rows if self.few else self._many_rows
        body = _shared(self.bi, self.batch, way(), int(self.by_batch))
        if not self.by_batch:
            return Routine([Kernel(self.name, [body])], self.temps)
        plain = plain_nest(self.m, self.n, self.k, self.a, self.b, self.store, self.batch, self.dtype)
        if self.blocks > 1:
            plain = replace(plain, body=[For(self.ib, self.blocks, plain.body, "parallel")])
        return Routine([Kernel(self.name, [body], plain=[plain], depth=2 if self.blocks > 1 else 1)], self.temps)

    # ---- the ways

    def _in_turn(self) -> list[Stmt]:
        """All columns packed, then block after block of rows."""
        p, jp, slot = Var("p"), Var("jp"), self.ks * self.column_panels
        packed = For(self.ks, self.slices, [For(p, self.column_panels, self._pack_columns(slot + p, p, self.kc))])
        product = For(jp, self.column_panels, [self._times_rows(slot + jp, jp, i32(0), self.panels.count)])
        block = For(self.ks, self.slices, [*self._pack_rows(i32(0), self.panels.count, self.kc), product])
        return [packed, For(self.ib, self.blocks, fresh([block], {}))]

    def _few_rows(self) -> list[Stmt]:
        """Some columns at a time, which share the lines of the cache."""
        jp, p = Var("jp"), Var("p")
        first, count = jp * self.together, self.panels.count
        some_terms, terms = _part("terms", self.kc, self.k, self.ks)
        if self.fill:
            body: list[Stmt] = [For(p, self.together, self._product(p, first + p, i32(0), i32(0), packing=True))]
            if count > 1:
                body += fresh(
                    [
                        For(
                            p,
                            self.together,
                            [For(self.ip, count - 1, self._product(p, first + p, i32(0), self.ip + 1))],
                        )
                    ],
                    {},
                )
        else:
            body = [
                *self._pack_columns(i32(0), first, terms, self.together),
                For(p, self.together, [self._times_rows(p, first + p, i32(0), count)]),
            ]
        tasks = _ceil_div(SHARED_COLUMNS, self.together) if self.by_columns else 0
        columns = lambda body: _shared(jp, self.column_panels // self.together, body, tasks)  # noqa: E731
        if self.across:
            return [columns([For(self.ks, self.slices, body)])]
        packing = self.by_columns and self.m * self.kc >= PACKING_WORTH
        return [
            For(
                self.ks, self.slices, [*some_terms, *self._pack_rows(i32(0), count, terms, int(packing)), columns(body)]
            )
        ]

    def _many_rows(self) -> list[Stmt]:
        """Block after block of rows times columns that are packed before."""
        jb, ib, jp, p = Var("jb"), self.ib, Var("jp"), Var("p")
        first_row, first_column = ib * self.block_rows, jb * self.block_columns
        some_columns, columns = _part("columns", self.block_columns, self.column_panels, jb)
        some_rows, rows = _part("rows", self.block_rows, self.panels.count, ib)
        some_terms, terms = _part("terms", self.kc, self.k, self.ks)
        packing = self.by_rows and self.n * self.kc >= PACKING_WORTH
        pack = _shared(p, columns, self._pack_columns(p, first_column + p, terms), 8 if packing else 0)
        product = For(jp, columns, [self._times_rows(jp, first_column + jp, first_row, rows)])
        block = _shared(
            ib, self.row_blocks, [*some_rows, *self._pack_rows(first_row, rows, terms), product], int(self.by_rows)
        )
        parts = _ceil_div(self.column_panels, self.block_columns)
        return [For(jb, parts, [*some_columns, For(self.ks, self.slices, [*some_terms, pack, block])])]

    # ---- the steps

    def _pack_rows(self, first_panel: Expr, count: int | Expr, terms: int | Expr, tasks: int = 0) -> list[Stmt]:
        if self.in_place:
            return []
        p, kc = Var("p"), self.kc

        def pack(height: int, first: Expr) -> list[Stmt]:
            return _pack(
                self.panel_a,
                p * (kc * self.panels.height),
                lambda i, kk: self.a(self.bi, i, self.ks * kc + kk),
                first,
                height,
                terms,
                kc,
            )

        return [_shared(p, count, self.panels.each(first_panel + p, pack), tasks)]

    def _pack_columns(self, slot: Expr, panel: Expr, terms: int | Expr, count: int = 1) -> list[Stmt]:
        kc, nr = self.kc, self.nr
        return _pack(
            self.panel_b,
            slot * (kc * nr),
            lambda j, kk: self.b(self.bi, self.ks * kc + kk, j),
            panel * nr,
            nr,
            terms,
            kc,
            self.n,
            count,
        )

    def _times_rows(self, slot: Expr, panel: Expr, first_panel: Expr, count: int | Expr) -> For:
        return For(self.ip, count, self._product(slot, panel, first_panel, self.ip))

    def _product(self, slot: Expr, panel: Expr, first_panel: Expr, number: Expr, packing: bool = False) -> list[Stmt]:
        """A panel of columns, in a slot or on its way there (packing), times the panel of rows with that number from
        the first.
        """
        return self.panels.each(
            first_panel + number,
            lambda height, first: self._tile(slot, panel, first_panel + number, number, height, first, packing),
        )

    def _tile(
        self, slot: Expr, panel: Expr, row_panel: Expr, number: Expr, height: int, first: Expr, packing: bool
    ) -> list[Stmt]:
        n, nr, kc, bi, ks, store, edge = self.n, self.nr, self.kc, self.bi, self.ks, self.store, self.edge
        column, jv, kk = panel * nr, Var("jv"), Var("k")
        accumulators = [Local(f"acc{r}", self.dtype) for r in range(height)]
        vector = Var("bv", self.dtype)
        packed = slot * (kc * nr) + kk * nr + jv
        steps: list[Stmt] = [Let(vector, self.b(bi, ks * kc + kk, column + jv) if packing else self.panel_b[packed])]
        if packing and self.panels.count > 1:
            steps.append(Store(self.panel_b, packed, vector))
        for r, acc in enumerate(accumulators):
            left = (
                self.a(bi, first + r, ks * kc + kk)
                if self.in_place
                else self.panel_a[number * (kc * self.panels.height) + kk * height + r]
            )
            steps.append(accumulate(acc, left, vector))
        body: list[Stmt] = [Declare(acc, Const(0, self.dtype)) for acc in accumulators]
        body.append(For(kk, kc, steps, "reduce", unroll=self.unroll))
        put = [s for r, acc in enumerate(accumulators) for s in store(bi, first + r, column + jv, acc)]
        whole, last = le(column, n - nr), le(i32(self.slices - 1), ks)
        if n % nr:
            put = [If(whole, put, [Store(edge, jv + r * nr, acc) for r, acc in enumerate(accumulators)])]
        if self.slices > 1:
            place = (row_panel * self.block_columns + slot) if self.across else (row_panel * self.column_panels + panel)
            sums = [self.partial[place * (self.panels.height * nr) + r * nr + jv] for r in range(height)]
            body.append(If(gt(ks, 0), [Assign(acc, Binary("add", acc, sum_)) for acc, sum_ in zip(accumulators, sums)]))
            put = [If(last, put, [Store(self.partial, sum_.index, acc) for acc, sum_ in zip(accumulators, sums)])]
        out: list[Stmt] = [For(jv, nr, body + put, "parallel", vector=_vectors(nr, self.dtype), outline=True)]
        if n % nr:
            row, c = Var("r"), Var("c")
            spill: list[Stmt] = [
                For(row, height, [For(c, n % nr, store(bi, first + row, column + c, edge[row * nr + c]))])
            ]
            out.append(If(whole, [], [If(last, spill)] if self.slices > 1 else spill))
        return out


def _even_blocks(m: int, most: int) -> int:
    """Into how many equal blocks, of at most `most` rows and at least a third of that, m rows can be divided; 1 if
    they can't.
    """
    return next((count for count in range(_ceil_div(m, most), 3 * m // most + 1) if m % count == 0), 1)


def _below(first: Expr, use: Callable[..., _T]) -> Callable[..., _T]:
    """An Element or a Sink whose rows count from `first`."""
    return lambda b, i, *rest: use(b, first + i, *rest)


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def _shared(var: Var, extent: int | Expr, body: list[Stmt], tasks: int) -> For:
    """A loop that threads share, `tasks` iterations at a time; in order where that is 0, as iterations may use the
    same panels.
    """
    return For(var, extent, body, "parallel" if tasks else "sequential", tasks=tasks)


def _part(name: str, size: int, total: int, number: Expr) -> tuple[list[Stmt], Expr | int]:
    """How many of `total` are in part `number` where a part has `size`: (statements that bind it, the extent)."""
    if total % size == 0:
        return [], size
    extent = Var(name)
    return [Let(extent, minimum(i32(size), sub(i32(total), number * size)))], extent


def _vectors(width: int, dtype: str) -> int:
    """How many vectors at a time a loop over the width of a panel takes."""
    return 1 << max(1, width * ITEMSIZE[dtype] // 16).bit_length() - 1


def _pack(
    panel: Buffer,
    start: Expr,
    element: Callable[[Expr, Expr], Expr],
    first: Expr,
    width: int,
    terms: int | Expr,
    kc: int,
    limit: int | None = None,
    count: int = 1,
) -> list[Stmt]:
    """panel[start + k·width + r] = element(first + r, k); k from `terms` to kc is zero, and from `limit` on rows
    repeat the last one. Lanes run along whichever index the operand is contiguous in. `count` panels one after the
    other: along the rows of a matrix, they share the lines of the cache.
    """
    z, r = Var("z"), Var("r")

    def row(at: Expr, first: Expr, k: Expr) -> For:
        lane = Var("r")
        return For(
            lane, width, [Store(panel, at + lane, element(first + lane, k))], "parallel", _vectors(width, panel.dtype)
        )

    def rows(along: str, clamped: bool) -> list[Stmt]:
        k = Var("k")
        at = start + k * width
        if along == "r":
            return [For(k, terms, [row(at + q * (kc * width), first + q * width, k) for q in range(count)])]
        clamps = (
            [Let(Var(f"row{q}"), minimum(first + q, i32(limit - 1))) for q in range(width)]
            if clamped and limit is not None
            else []
        )
        names: list[Expr] = [let.var for let in clamps] if clamps else [first + q for q in range(width)]
        return [
            *clamps,
            For(
                k,
                terms,
                [Store(panel, at + q, element(row, k)) for q, row in enumerate(names)],
                "parallel",
                int(along == "k"),
            ),
        ]

    probe = element(first + r, z)
    along = (
        "k" if _contiguous(probe, z) else "r" if width * ITEMSIZE[panel.dtype] >= 16 and _contiguous(probe, r) else ""
    )
    if count > 1 and (along != "r" or type(terms) is not int):
        number = Var("q")
        return [
            For(
                number,
                count,
                _pack(panel, start + number * (kc * width), element, first + number * width, width, terms, kc, limit),
            )
        ]
    body = rows(along, False)
    if limit is not None and limit % width:
        body = [If(le(first, limit - width), body, rows(along if along == "k" else "", True))]
    if type(terms) is not int:
        body.append(
            For(z, kc - terms, [For(r, width, [Store(panel, start + (terms + z) * width + r, Const(0, panel.dtype))])])
        )
    return body


def _is_row(a: Element, dtype: str) -> bool:
    """Whether rows of the operand are contiguous elements of dtype."""
    k = Var("k")
    e = a(Var("b"), Var("i"), k)
    return type(e) is Load and e.dtype == dtype and _contiguous(e, k)


def _contiguous(e: Expr, var: Var) -> bool:
    """Whether the elements that e loads are contiguous along var."""
    indices = [linear(x.index)[0] for x in walk_expr(e) if type(x) is Load]
    strides = {terms.get(var, 0) for terms in indices}
    hidden = any(any(x is var for x in walk_expr(t)) for terms in indices for t in terms if type(t) is not Var)
    return 1 in strides and strides <= {0, 1} and not hidden
