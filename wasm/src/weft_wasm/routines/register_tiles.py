"""Products by tiles of results in the registers of one invocation, for targets that schedule by themselves (WebGPU).

A tile of r × c results loads r + c elements for each term, where r · c results apart load 2 · r · c; products are bound
by their loads. Each result is still summed in the order of its terms. The columns of a tile lie apart, so that adjacent
invocations read and write adjacent elements; rows and columns behind the last repeat it and are not stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from weft_wasm.ir.affine import linear_index
from weft_wasm.ir.nodes import Const, Declare, Expr, For, If, Kernel, Let, Load, Local, Stmt, Var, gt, i32, minimum
from weft_wasm.routines.gemm import Element, Routine, Sink, accumulate, plain_nest
from weft_wasm.routines.implicit_gemm import Product, implicit_gemm, loops_of, wrap
from weft_wasm.routines.implicit_gemm import Sink as WindowSink

ENOUGH = 256  # invocations: fewer leave a device idle
SIDES = ((8, 4), (4, 4), (2, 4), (4, 2), (2, 2))  # rows and columns of tiles, the best first


@dataclass(frozen=True, slots=True)
class Side:
    """`extent` rows, or columns, in `count` tiles of `size`. apart: those of a tile lie `count` from each other."""

    extent: int
    size: int
    apart: bool = False

    @property
    def count(self) -> int:
        return -(-self.extent // self.size)

    def place(self, tile: Expr, k: int) -> Expr:
        """The index of number k of a tile."""
        return tile + k * self.count if self.apart else tile * self.size + k

    def whole(self, k: int) -> bool:
        """Whether number k of each tile exists."""
        return (k * self.count + self.count if self.apart else (self.count - 1) * self.size + k + 1) <= self.extent

    def bind(self, tile: Expr, name: str) -> tuple[list[Stmt], list[Expr]]:
        """(statements, the indices that a tile reads)."""
        last = i32(self.extent - 1)
        lets: list[Stmt] = []
        places: list[Expr] = []
        for k in range(self.size):
            place = self.place(tile, k)
            var = Var(f"{name}{k}")
            lets.append(Let(var, place if self.whole(k) else minimum(place, last)))
            places.append(var)
        return lets, places

    def guarded(self, tile: Expr, k: int, body: list[Stmt]) -> list[Stmt]:
        """The body, where number k exists."""
        return body if self.whole(k) else [If(gt(i32(self.extent), self.place(tile, k)), body)]


def tile_of(batch: int, m: int, n: int) -> tuple[int, int]:
    """The rows and columns of tiles that leave the device enough to do; (1, 1) for small products and vectors.

    >>> tile_of(1, 512, 512), tile_of(1, 1, 4096)
    ((8, 4), (1, 1))
    """
    fitting = ((r, c) for r, c in SIDES if r <= m and c <= n and batch * -(-m // r) * -(-n // c) >= ENOUGH)
    return next(fitting, (1, 1))


def tiled_product(
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
    tile: tuple[int, int] | None = None,
) -> Routine:
    """A product of `batch` matrices, accumulated in dtype; operands and results as for `gemm`.

    >>> from weft_wasm.ir.nodes import Buffer, Store
    >>> x, y, out = (Buffer(s, "f32", (64, 64), r) for s, r in (("x", "input"), ("y", "input"), ("out", "output")))
    >>> routine = tiled_product("matmul", 64, 64, 64, lambda _, i, k: x[i * 64 + k], lambda _, k, j: y[k * 64 + j],
    ...                         lambda _, i, j, value: [Store(out, i * 64 + j, value)], tile=(4, 4))
    >>> [loop.extent for loop in (routine.kernels[0].body[0].body[0], routine.kernels[0].body[0].body[0].body[0])]
    [16, 16]
    """
    height, width = tile or tile_of(batch, m, n)
    if height == width == 1:
        return Routine([Kernel(name, [plain_nest(m, n, k, a, b, store, batch, dtype)])], [])
    bi, it, jt, kk = Var("b"), Var("i"), Var("j"), Var("k")
    rows, columns = Side(m, height), Side(n, width, True)
    row_lets, row = rows.bind(it, "row")
    column_lets, column = columns.bind(jt, "column")
    body = tile_body(
        rows,
        columns,
        (it, jt),
        dtype,
        lambda r: a(bi, row[r], kk),
        lambda c: b(bi, kk, column[c]),
        lambda steps: [For(kk, k, steps, "reduce")],
        lambda r, c, value: store(bi, rows.place(it, r), columns.place(jt, c), value),
    )
    tiles = For(jt, columns.count, [*row_lets, *column_lets, *body], "parallel")
    return Routine([Kernel(name, [For(bi, batch, [For(it, rows.count, [tiles], "parallel")], "parallel")])], [])


def tile_body(
    rows: Side,
    columns: Side,
    tile: tuple[Expr, Expr],
    dtype: str,
    left: Callable[[int], Expr],
    right: Callable[[int], Expr],
    terms: Callable[[list[Stmt]], list[Stmt]],
    store: Callable[[int, int, Expr], list[Stmt]],
) -> list[Stmt]:
    """The statements of one tile: accumulators, the loops over its terms, which `terms` puts around a step, and stores.

    left(r), right(c): the elements of row r and column c for a term. store(r, c, value): statements that put a result
    away.
    """
    sums = [[Local(f"acc{r}_{c}", dtype) for c in range(columns.size)] for r in range(rows.size)]
    lefts = [Var(f"a{r}", dtype) for r in range(rows.size)]
    rights = [Var(f"b{c}", dtype) for c in range(columns.size)]
    steps: list[Stmt] = [Let(var, left(r)) for r, var in enumerate(lefts)]
    steps += [Let(var, right(c)) for c, var in enumerate(rights)]
    steps += [accumulate(acc, lefts[r], rights[c]) for r, line in enumerate(sums) for c, acc in enumerate(line)]
    body: list[Stmt] = [Declare(acc, Const(0, dtype)) for line in sums for acc in line]
    body += terms(steps)
    for r, line in enumerate(sums):
        put: list[Stmt] = []
        for c, acc in enumerate(line):
            put += columns.guarded(tile[1], c, store(r, c, acc))
        body += rows.guarded(tile[0], r, put)
    return body


def tiled_windows(
    name: str, p: Product, store: WindowSink, *, dtype: str = "f32", tile: tuple[int, int] | None = None
) -> Routine:
    """A product whose rows are windows (`implicit_gemm`): a tile takes rows along their last axis."""
    (last, stride), before = p.rows[-1], p.rows[:-1]
    height, width = tile or tile_of(p.group[0] * p.m // last, last, p.n)
    if height == width == 1:
        return implicit_gemm(name, p, store, dtype=dtype, plain=True)
    outer, terms = loops_of([n for n, _ in before], "uvw"), loops_of([n for n, _ in p.terms], "rst")
    g, it, jt = Var("g"), Var("i"), Var("j")
    at, t = [v for v, _ in outer], [v for v, _ in terms]
    across = stride < p.group[1]  # adjacent invocations take adjacent rows
    rows, columns = Side(last, height, across), Side(p.n, width, not across)
    row_lets, row = rows.bind(it, "row")
    column_lets, column = columns.bind(jt, "column")
    first = p.start + linear_index([g, *at], [s for _, s in (p.group, *before)])
    term = linear_index(t, [s for _, s in p.terms])
    begin = Var("begin")
    body = tile_body(
        rows,
        columns,
        (it, jt),
        dtype,
        lambda r: Load(p.x, begin + row[r] * stride + term),
        lambda c: p.b(g, t, column[c]),
        lambda steps: wrap(terms, steps, "reduce"),
        lambda r, c, value: store(
            g,
            [linear_index([*at, rows.place(it, r)], strides, first) for first, strides in p.results],
            columns.place(jt, c),
            value,
        ),
    )
    # rows and groups as they lie in x, and columns beside groups, as they are in results
    lies = [*zip(outer, [s for _, s in before]), ((it, rows.count), stride * (1 if across else height))]
    lies += [((g, p.group[0]), p.group[1]), ((jt, columns.count), p.group[1])]
    loops = [loop for loop, _ in sorted(lies, key=lambda x: -x[1])]
    return Routine([Kernel(name, wrap(loops, [Let(begin, first), *row_lets, *column_lets, *body], "parallel"))], [])
