"""Matrix multiplication: out[b, i, j] = Σ_k A[b, i, k] · B[b, k, j], in loop IR.

Operands are functions from indices to expressions, so transposes, strides, casts and fused producers cost nothing: packing
evaluates them once per element. The packed-panel algorithm (GotoBLAS): panels of B [k][NR] and of A [k][MR] for a slice of k, and a
micro kernel with MR × NR accumulators in registers. Small products, vectors, and targets that schedule by themselves get the plain nest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from collections.abc import Callable

from weft_wasm.affine import linear
from weft_wasm.ir import (
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
    Store,
    Var,
    gt,
    i32,
    le,
    minimum,
    sub,
    walk_expr,
)  # fmt: skip
from weft_wasm.rewriting import fresh

WORTH = 4_000_000  # products of fewer terms stay on one thread
PACKING_WORTH = 100_000  # likewise for packing this many elements
NARROW = 128  # columns: products of fewer read rows where they lie
DEEP = 64  # terms: products of fewer are not turned over, as their results would be stored against the grain
SHARED_COLUMNS = 4  # panels of columns that a thread takes at once
KNOWN_PAGES = 1024  # rows that may each lie in a page of its own and be gone through again and again: processors remember where so many are
IN_A_LINE = 2  # panels of columns that a line of the cache holds
KEPT = 4 << 20  # bytes of packed columns that a thread keeps while it goes over the rows of a matrix

Element = Callable[[Expr, Expr, Expr], Expr]  # (batch, row, column) -> value
Sink = Callable[[Expr, Expr, Expr, Expr], list]  # (batch, row, column, value) -> statements


@dataclass(frozen=True, slots=True)
class Tile:
    """mr × nr accumulators; k in slices of at most kc; mc rows of A packed at a time; nc columns of B; the k loop unrolled."""

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
    """Kernels to put into a program, and the temps that they need."""

    kernels: list[Kernel]
    temps: list[Buffer]


def gemm(name: str, m: int, n: int, k: int, a: Element, b: Element, store: Sink, *, batch: int = 1, dtype: str = "f32",
         features: frozenset[str] = frozenset(), tile: Tile | None = None, plain: bool = False) -> Routine:  # fmt: skip
    """A product of `batch` matrices, accumulated in dtype (what a and b return).

    a(batch, i, k), b(batch, k, j): values as expressions of i32 indices. store(batch, i, j, value): statements that put one result away;
    bias, activation and conversion go there. plain: the bare loop nest (WebGPU, or a schedule of one's own).

    >>> x, y, out = (Buffer(s, "f32", (64, 64), r) for s, r in (("x", "input"), ("y", "input"), ("out", "output")))
    >>> routine = gemm("matmul", 64, 64, 64, lambda _, i, k: x[i * 64 + k], lambda _, k, j: y[k * 64 + j],
    ...                lambda _, i, j, value: [Store(out, i * 64 + j, value)])
    >>> [kernel.name for kernel in routine.kernels]
    ['matmul']
    """
    tile = tile or default_tile(dtype, frozenset(features))
    if plain or k == 0 or m < 4 or n < 4 or k < 4 or m * n * k < 8192:
        return Routine([Kernel(name, _plain_nest(m, n, k, a, b, store, batch, dtype))], [])
    if batch == 1 and k >= DEEP and n * _ceil_div(m, tile.nr) < 0.8 * m * _ceil_div(n, tile.nr):  # few columns: as rows, they fill their panels
        flip = lambda use: lambda z, i, j, *value: use(z, j, i, *value)  # noqa: E731
        return _packed(name, n, m, k, flip(b), flip(a), flip(store), batch, dtype, tile)
    return _packed(name, m, n, k, a, b, store, batch, dtype, tile)


def accumulate(acc: Local, x: Expr, y: Expr) -> Assign:
    """acc += x · y; of booleans, acc or (x and y)."""
    if acc.dtype in FLOATS:
        return Assign(acc, MulAdd(x, y, acc))
    if acc.dtype == "bool":
        return Assign(acc, Binary("or", acc, Binary("and", x, y)))
    return Assign(acc, Binary("add", acc, Binary("mul", x, y)))


def _plain_nest(m, n, k, a, b, store, batch, dtype) -> list:
    bi, i, j, kk = Var("b"), Var("i"), Var("j"), Var("k")
    acc = Local("acc", dtype)
    body: list = [
        Declare(acc, Const(0, dtype)),
        For(kk, k, [accumulate(acc, a(bi, i, kk), b(bi, kk, j))], "reduce"),
        *store(bi, i, j, acc),
    ]
    return [For(bi, batch, [For(i, m, [For(j, n, body, "parallel")], "parallel")], "parallel")]


@dataclass(frozen=True, slots=True)
class Panels:
    """The rows of a matrix in as few panels of at most `most` rows as they fit in, evenly: `tall` panels of `height` rows, the others of one row less."""

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

    def each(self, panel: Expr, body: Callable[[int, Expr], list]) -> list:
        """body(rows, first row) of the panel with that number."""
        tall = body(self.height, panel * self.height)
        if self.tall == self.count or panel == i32(0):
            return tall
        return [If(gt(i32(self.tall), panel), tall, body(self.height - 1, panel * (self.height - 1) + self.tall))]


def _packed(name, m, n, k, a, b, store, batch, dtype, t: Tile) -> Routine:
    slices = _ceil_div(k, t.kc)
    even = k % slices == 0
    each = m * n * k
    by_batch = batch >= 4 and batch * each >= WORTH
    bi, ks, jb, ib, jp, ip = (Var(s) for s in ("b", "ks", "jb", "ib", "jp", "ip"))
    in_turn = _even_blocks(m, 2 * t.mc) if by_batch and even and k * n * ITEMSIZE[dtype] <= KEPT else 1
    if in_turn > 1:  # blocks of rows; what other kernels do with a block of the result may come before the next
        m, a, store = m // in_turn, _below(ib * (m // in_turn), a), _below(ib * (m // in_turn), store)
    kc = k // slices if even else _ceil_div(_ceil_div(k, slices), t.unroll) * t.unroll  # the last slice is filled up with zeros
    panels, column_panels = Panels(m, t.mr), _ceil_div(n, t.nr)
    mr, nr = panels.height, t.nr
    few = in_turn > 1 or m <= 2 * t.mc  # rows: all of them stay in the second cache, and panels of columns are packed when their turn comes
    in_place = even and (few or n <= NARROW) and _is_row(a, dtype)  # rows are read where they lie: packing them would take longer than it saves
    fill = few and in_turn == 1 and even and n % nr == 0 and _is_row(b, dtype)  # the first panel of rows packs the columns that it reads
    row_blocks = 1 if few else _ceil_div(panels.count, max(1, t.mc // mr))
    block_rows = _ceil_div(panels.count, row_blocks)  # even ones, for threads that share them
    together = IN_A_LINE if n % (IN_A_LINE * nr) == 0 else 1
    block_columns = slices * column_panels if in_turn > 1 else together if few else max(1, min(t.nc // nr, column_panels))
    # threads share the batch, or the blocks of rows, or the columns, where the product is worth it
    by_rows = not by_batch and row_blocks >= 2 and each >= WORTH
    by_columns = not (by_batch or by_rows) and each >= WORTH and column_panels >= 2 * SHARED_COLUMNS
    own = {True: "private", False: "temp"}
    panel_a = Buffer(f"{name}.a", dtype, (block_rows, kc, mr), own[by_batch or by_rows])
    panel_b = Buffer(f"{name}.b", dtype, (block_columns, kc, nr), own[by_batch or (by_columns and few)])
    across = few and in_place and in_turn == 1 and k <= KNOWN_PAGES  # all terms of some columns before the next: nothing is packed for a slice that others want
    sums = block_columns if across else column_panels  # panels of columns whose partial sums are kept
    partial = Buffer(f"{name}.c", dtype, (panels.count * sums, mr, nr), own[by_batch or (by_columns and across)])
    edge = Buffer(f"{name}.edge", dtype, (mr, nr), own[by_batch or by_rows or by_columns])
    temps = ([] if in_place else [panel_a]) + ([] if fill and panels.count == 1 else [panel_b]) + ([partial] if slices > 1 else []) + ([edge] if n % nr else [])
    some_columns, columns = _part("columns", block_columns, column_panels, jb)
    some_rows, rows = _part("rows", block_rows, panels.count, ib)
    some_terms, terms = _part("terms", kc, k, ks)

    def pack_rows(first_panel: Expr, tasks: int) -> list:
        if in_place:
            return []
        p = Var("p")

        def pack(height: int, first: Expr) -> list:
            return _pack(panel_a, p * (kc * mr), lambda i, kk: a(bi, i, ks * kc + kk), first, height, terms, kc)

        return [_shared(p, rows, panels.each(first_panel + p, pack), tasks)]

    def pack_columns(slot: Expr, panel: Expr, count: int = 1) -> list:
        return _pack(panel_b, slot * (kc * nr), lambda j, kk: b(bi, ks * kc + kk, j), panel * nr, nr, terms, kc, n, count)

    def product(slot: Expr, panel: Expr, first_panel: Expr, number: Expr, packing: bool = False) -> list:
        """A panel of columns, in a slot or on its way there (packing), times the panel of rows with that number from the first."""

        def tile(height: int, first: Expr) -> list:
            column, jv, kk = panel * nr, Var("jv"), Var("k")
            accumulators = [Local(f"acc{r}", dtype) for r in range(height)]
            vector = Var("bv", dtype)
            packed = slot * (kc * nr) + kk * nr + jv
            steps: list = [Let(vector, b(bi, ks * kc + kk, column + jv) if packing else panel_b[packed])]
            if packing and panels.count > 1:
                steps.append(Store(panel_b, packed, vector))
            left = [a(bi, first + r, ks * kc + kk) if in_place else panel_a[number * (kc * mr) + kk * height + r] for r in range(height)]
            steps += [accumulate(acc, x, vector) for acc, x in zip(accumulators, left)]
            body: list = [Declare(acc, Const(0, dtype)) for acc in accumulators]
            body.append(For(kk, kc, steps, "reduce", unroll=t.unroll))
            put = [s for r, acc in enumerate(accumulators) for s in store(bi, first + r, column + jv, acc)]
            whole, last = le(column, n - nr), le(i32(slices - 1), ks)
            if n % nr:
                put = [If(whole, put, [Store(edge, jv + r * nr, acc) for r, acc in enumerate(accumulators)])]
            if slices > 1:
                place = ((first_panel + number) * sums + (slot if across else panel)) * (mr * nr)
                places = [place + r * nr + jv for r in range(height)]
                body.append(If(gt(ks, 0), [Assign(acc, Binary("add", acc, partial[at])) for acc, at in zip(accumulators, places)]))
                put = [If(last, put, [Store(partial, at, acc) for acc, at in zip(accumulators, places)])]
            out: list = [For(jv, nr, body + put, "parallel", vector=_vectors(nr, dtype), outline=True)]
            if n % nr:
                r, c = Var("r"), Var("c")
                spill: list = [For(r, height, [For(c, n % nr, store(bi, first + r, column + c, edge[r * nr + c]))])]
                out.append(If(whole, [], [If(last, spill)] if slices > 1 else spill))
            return out

        return panels.each(first_panel + number, tile)

    def multiply(slot: Expr, panel: Expr, first_panel: Expr) -> For:
        return For(ip, rows, product(slot, panel, first_panel, ip))

    shared = SHARED_COLUMNS if by_columns else 0
    products: list
    if in_turn > 1:
        q, slot = Var("p"), ks * column_panels
        packed = For(ks, slices, [For(q, column_panels, pack_columns(slot + q, q))])
        block = For(ks, slices, [*pack_rows(i32(0), 0), For(jp, column_panels, [multiply(slot + jp, jp, i32(0))])])
        products = [packed, For(ib, in_turn, fresh([block], {}))]
    elif few:
        q, first_column = Var("p"), jp * together
        if fill:
            body = [For(q, together, product(q, first_column + q, i32(0), i32(0), packing=True))]
            if panels.count > 1:
                body += fresh([For(q, together, [For(ip, panels.count - 1, product(q, first_column + q, i32(0), ip + 1))])], {})
        else:
            body = [*pack_columns(i32(0), first_column, together), For(q, together, [multiply(q, first_column + q, i32(0))])]
        columns_of = lambda body: _shared(jp, column_panels // together, body, _ceil_div(shared, together))  # noqa: E731
        if across:
            products = [columns_of([For(ks, slices, body)])]
        else:
            products = [For(ks, slices, [*some_terms, *pack_rows(i32(0), int(by_columns and m * kc >= PACKING_WORTH)), columns_of(body)])]
    else:
        q, first_row, first_column = Var("p"), ib * block_rows, jb * block_columns
        column = _shared(jp, columns, [multiply(jp, first_column + jp, first_row)], shared)
        pack = _shared(q, columns, pack_columns(q, first_column + q), 8 if (by_rows or by_columns) and n * kc >= PACKING_WORTH else 0)
        blocks = _shared(ib, row_blocks, [*some_rows, *pack_rows(first_row, 0), column], int(by_rows))
        products = [For(jb, _ceil_div(column_panels, block_columns), [*some_columns, For(ks, slices, [*some_terms, pack, blocks])])]
    plain = _plain_nest(m, n, k, a, b, store, batch, dtype) if by_batch else []
    if in_turn > 1:
        plain = [replace(plain[0], body=[For(ib, in_turn, plain[0].body, "parallel")])]
    return Routine([Kernel(name, [_shared(bi, batch, products, int(by_batch))], plain=plain, depth=2 if in_turn > 1 else 1)], temps)


def _even_blocks(m: int, most: int) -> int:
    """Into how many equal blocks, of at most `most` rows and at least a third of that, m rows can be divided; 1 if they can't."""
    return next((count for count in range(_ceil_div(m, most), 3 * m // most + 1) if m % count == 0), 1)


def _below(first: Expr, use: Callable) -> Callable:
    """An Element or a Sink whose rows count from `first`."""
    return lambda b, i, *rest: use(b, first + i, *rest)


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def _shared(var: Var, extent: int | Expr, body: list, tasks: int) -> For:
    """A loop that threads share, `tasks` iterations at a time; in order where that is 0, as iterations may use the same panels."""
    return For(var, extent, body, "parallel" if tasks else "sequential", tasks=tasks)


def _part(name: str, size: int, total: int, number: Expr) -> tuple[list, Expr | int]:
    """How many of `total` are in part `number` where a part has `size`: (statements that bind it, the extent)."""
    if total % size == 0:
        return [], size
    extent = Var(name)
    return [Let(extent, minimum(i32(size), sub(i32(total), number * size)))], extent


def _vectors(width: int, dtype: str) -> int:
    """How many vectors at a time a loop over the width of a panel takes."""
    return 1 << max(1, width * ITEMSIZE[dtype] // 16).bit_length() - 1


def _pack(panel, start, element, first, width, terms, kc, limit=None, count=1) -> list:
    """panel[start + k·width + r] = element(first + r, k); k from `terms` to kc is zero, and from `limit` on rows repeat the last one. Lanes run along
    whichever index the operand is contiguous in. `count` panels one after the other: along the rows of a matrix, they share the lines of the cache."""
    z, r = Var("z"), Var("r")

    def row(at: Expr, first: Expr, k: Expr) -> For:
        lane = Var("r")
        return For(lane, width, [Store(panel, at + lane, element(first + lane, k))], "parallel", _vectors(width, panel.dtype))

    def rows(along: str, clamped: bool) -> list:
        k = Var("k")
        at = start + k * width
        if along == "r":
            return [For(k, terms, [row(at + q * (kc * width), first + q * width, k) for q in range(count)])]
        names = [Var(f"row{q}") if clamped else first + q for q in range(width)]
        lets = [Let(row, minimum(first + q, i32(limit - 1))) for q, row in enumerate(names)] if clamped else []
        return [*lets, For(k, terms, [Store(panel, at + q, element(row, k)) for q, row in enumerate(names)], "parallel", int(along == "k"))]

    probe = element(first + r, z)
    along = "k" if _contiguous(probe, z) else "r" if width * ITEMSIZE[panel.dtype] >= 16 and _contiguous(probe, r) else ""
    if count > 1 and (along != "r" or type(terms) is not int):
        q = Var("q")
        return [For(q, count, _pack(panel, start + q * (kc * width), element, first + q * width, width, terms, kc, limit))]
    body = rows(along, False)
    if limit is not None and limit % width:
        body = [If(le(first, limit - width), body, rows(along if along == "k" else "", True))]
    if type(terms) is not int:
        body.append(For(z, kc - terms, [For(r, width, [Store(panel, start + (terms + z) * width + r, Const(0, panel.dtype))])]))
    return body


def _is_row(a: Element, dtype: str) -> bool:
    """Whether rows of the operand are elements of dtype that lie side by side."""
    k = Var("k")
    e = a(Var("b"), Var("i"), k)
    return type(e) is Load and e.dtype == dtype and _contiguous(e, k)


def _contiguous(e: Expr, var: Var) -> bool:
    """Whether what e loads lies side by side as var counts."""
    forms: dict = {}
    strides = {linear(x.index, forms)[0].get(var, 0) for x in walk_expr(e) if type(x) is Load}
    hidden = any(t is not var and any(x is var for x in walk_expr(t)) for terms, _ in forms.values() for t in terms if type(t) is not Var)
    return 1 in strides and strides <= {0, 1} and not hidden
