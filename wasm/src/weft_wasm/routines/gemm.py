"""Matrix multiplication: out[b, i, j] = Σ_k A[b, i, k] · B[b, k, j], in loop IR.

Operands are functions from indices to expressions, so transposes, strides, casts and fused producers cost nothing: packing
evaluates them once per element. The packed-panel algorithm (GotoBLAS): panels of B [k][NR] and of A [k][MR] for a slice of k, and a
micro kernel with MR × NR accumulators in registers. Small products, vectors, and targets that schedule by themselves get the plain nest.
"""

from __future__ import annotations

from dataclasses import dataclass
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

WORTH = 4_000_000  # products of fewer terms stay on one thread
PACKING_WORTH = 100_000  # likewise for packing this many elements
SHARED_COLUMNS = 8  # panels of columns that a thread takes at once

Element = Callable[[Expr, Expr, Expr], Expr]  # (batch, row, column) -> value
Sink = Callable[[Expr, Expr, Expr, Expr], list]  # (batch, row, column, value) -> statements


@dataclass(frozen=True, slots=True)
class Tile:
    """mr × nr accumulators; k in slices of at most kc; mc rows of A packed at a time; nc columns of B; the k loop unrolled."""

    mr: int = 6
    nr: int = 8
    kc: int = 256
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
    return _packed(name, m, n, k, a, b, store, batch, dtype, tile)


def _accumulate(acc: Local, x: Expr, y: Expr) -> Assign:
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
        For(kk, k, [_accumulate(acc, a(bi, i, kk), b(bi, kk, j))], "reduce"),
        *store(bi, i, j, acc),
    ]
    return [For(bi, batch, [For(i, m, [For(j, n, body, "parallel")], "parallel")], "parallel")]


def _packed(name, m, n, k, a, b, store, batch, dtype, t: Tile) -> Routine:
    lanes = 2 if ITEMSIZE[dtype] == 8 else 4
    mr, nr, unroll = t.mr, t.nr, t.unroll
    slices = _ceil_div(k, t.kc)
    kc = _ceil_div(_ceil_div(k, slices), unroll) * unroll  # even slices; the last one is filled up with zeros
    row_panels, column_panels = _ceil_div(m, mr), _ceil_div(n, nr)
    block_rows = max(1, min(t.mc // mr, row_panels))
    block_columns = max(1, min(t.nc // nr, column_panels))
    row_blocks = _ceil_div(row_panels, block_rows)
    block_rows = _ceil_div(row_panels, row_blocks)  # even ones, for threads that share them
    # threads share the batch, or the blocks of rows, or the columns, where the product is worth it
    each = m * n * k
    by_batch = batch >= 4 and batch * each >= WORTH
    by_rows = not by_batch and row_blocks >= 2 and each >= WORTH
    by_columns = not (by_batch or by_rows) and each >= WORTH and column_panels >= 2 * SHARED_COLUMNS
    own = {True: "private", False: "temp"}
    panel_a = Buffer(f"{name}.a", dtype, (block_rows, kc, mr), own[by_batch or by_rows])
    panel_b = Buffer(f"{name}.b", dtype, (block_columns, kc, nr), own[by_batch])
    partial = Buffer(f"{name}.c", dtype, (row_panels * column_panels, mr, nr), own[by_batch])
    edge = Buffer(f"{name}.edge", dtype, (mr, nr), own[by_batch or by_rows or by_columns])
    temps = [panel_a, panel_b] + ([partial] if slices > 1 else []) + ([edge] if m % mr or n % nr else [])
    bi, ks, jb, ib = Var("b"), Var("ks"), Var("jb"), Var("ib")
    columns, rows, valid = Var("columns"), Var("rows"), Var("valid")

    inner = [
        _let(rows, minimum(i32(block_rows), sub(i32(row_panels), ib * block_rows)), row_panels % block_rows == 0, block_rows),
        *_pack(panel_a, lambda i, kk: a(bi, i, kk), ib * (block_rows * mr), rows, m, ks * kc, valid, kc, mr),
        *_tiles(panel_a, panel_b, partial, edge, store, bi, ib * block_rows, jb * block_columns, rows, columns, ks, slices, kc, m, n,
                column_panels, t, lanes, dtype, SHARED_COLUMNS if by_columns else 0),
    ]  # fmt: skip
    body: list = [
        _let(valid, minimum(i32(kc), sub(i32(k), ks * kc)), k % kc == 0, kc),
        *_pack(
            panel_b, lambda j, kk: b(bi, kk, j), jb * (block_columns * nr), columns, n, ks * kc, valid, kc, nr,
            8 if (by_rows or by_columns) and n * kc >= PACKING_WORTH else 0,
        ),
        For(ib, row_blocks, inner, "parallel", tasks=1) if by_rows else For(ib, row_blocks, inner),
    ]
    count = minimum(i32(block_columns), sub(i32(column_panels), jb * block_columns))
    body = [_let(columns, count, column_panels % block_columns == 0, block_columns), For(ks, slices, body)]
    products = [For(jb, _ceil_div(column_panels, block_columns), body)]
    kernel = Kernel(name, [For(bi, batch, products, "parallel", tasks=1) if by_batch else For(bi, batch, products)])
    return Routine([kernel], temps)


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def _let(var: Var, value: Expr, static: bool, constant: int) -> Let:
    return Let(var, i32(constant) if static else value)


def _pack(panel, element, first, count, limit, k0, valid, kc, width, tasks=0) -> list:
    """panel[p][k][r] = element(first + p·width + r, k0 + k); rows beyond the matrix repeat the last one, k beyond it is zero. Lanes run along
    whichever index the operand is contiguous in. Threads share the panels, `tasks` at a time."""
    p, z, r = Var("p"), Var("z"), Var("r")
    lanes = 16 // ITEMSIZE[panel.dtype]

    def rows(along: str, clamped: bool) -> list:
        k, lane = Var("k"), Var("r")
        at = (p * kc + k) * width
        if along == "row":
            store = Store(panel, at + lane, element(first + p * width + lane, k0 + k))
            return [For(k, valid, [For(lane, width, [store], "parallel", vector=max(1, width // lanes))])]
        lets, stores = [], []
        for q in range(width):
            row: Expr = first + p * width + q
            if clamped:
                bound = Var(f"row{q}")
                lets.append(Let(bound, minimum(row, i32(limit - 1))))
                row = bound
            stores.append(Store(panel, at + q, element(row, k0 + k)))
        return [*lets, For(k, valid, stores, "parallel", vector=int(along == "k"))]

    probe = element(first + p * width + r, k0 + z)
    along = "row" if width >= lanes and _contiguous(probe, r) else "k" if _contiguous(probe, z) else ""
    body = rows(along, bool(limit % width))
    if along == "row" and limit % width:
        body = [If(le(first + p * width, limit - width), body, rows("", True))]
    zero = Store(panel, (p * kc + valid + z) * width + r, Const(0, panel.dtype))
    fill = For(z, sub(i32(kc), valid), [For(r, width, [zero])])
    return [For(p, count, [*body, fill], "parallel", tasks=tasks)]


def _contiguous(e: Expr, var: Var) -> bool:
    """Whether what e loads lies side by side as var counts."""
    forms: dict = {}
    strides = {linear(x.index, forms)[0].get(var, 0) for x in walk_expr(e) if type(x) is Load}
    hidden = any(t is not var and any(x is var for x in walk_expr(t)) for terms, _ in forms.values() for t in terms if type(t) is not Var)
    return 1 in strides and strides <= {0, 1} and not hidden


def _tiles(panel_a, panel_b, partial, edge, store, bi, row_panel, column_panel, rows, columns, ks, slices, kc, m, n, column_panels, t,
           lanes, dtype, tasks) -> list:  # fmt: skip
    """The micro kernel over all pairs of packed panels; threads share those of columns, `tasks` at a time."""
    mr, nr = t.mr, t.nr
    jp, ip, jv, k, r, c = (Var(s) for s in ("jp", "ip", "jv", "k", "r", "c"))
    accumulators = [Local(f"acc{q}", dtype) for q in range(mr)]
    row, column = (row_panel + ip) * mr, (column_panel + jp) * nr
    vector = Var("bv", dtype)
    steps: list = [Let(vector, panel_b[(jp * kc + k) * nr + jv])]
    steps += [_accumulate(acc, panel_a[(ip * kc + k) * mr + q], vector) for q, acc in enumerate(accumulators)]
    body: list = [Declare(acc, Const(0, dtype)) for acc in accumulators]
    body.append(For(k, kc, steps, "reduce", unroll=t.unroll))
    ragged = m % mr or n % nr
    fits = (
        le(row, m - mr) & le(column, n - nr) if m % mr and n % nr else le(row, m - mr) if m % mr else le(column, n - nr)
    )
    direct = [s for q, acc in enumerate(accumulators) for s in store(bi, row + q, column + jv, acc)]
    if ragged:
        direct = [If(fits, direct, [Store(edge, jv + q * nr, acc) for q, acc in enumerate(accumulators)])]
    if slices > 1:

        def at(q: int) -> Expr:
            return ((row_panel + ip) * column_panels + column_panel + jp) * (mr * nr) + q * nr + jv

        body.append(
            If(gt(ks, 0), [Assign(acc, Binary("add", acc, Load(partial, at(q)))) for q, acc in enumerate(accumulators)])
        )
        put = [Store(partial, at(q), acc) for q, acc in enumerate(accumulators)]
        body.append(If(gt(i32(slices - 1), ks), put, direct))
    else:
        body += direct
    tile: list = [For(jv, nr, body, "parallel", vector=nr // lanes, outline=True)]
    if ragged:
        last = le(i32(slices - 1), ks)
        spill = For(r, minimum(i32(mr), sub(i32(m), row)), [
            For(c, minimum(i32(nr), sub(i32(n), column)), store(bi, row + r, column + c, edge[r * nr + c]))
        ])  # fmt: skip
        tile.append(If(fits, [], [If(last, [spill])]))
    return [For(jp, columns, [For(ip, rows, tile)], "parallel" if tasks else "sequential", tasks=tasks)]
