"""Sort for targets with many invocations: a network of compare-exchange steps, each of which is one parallel loop over
pairs.

The bitonic network with every comparison ascending: a step of stage k mirrors the two halves of blocks of 2^k elements,
the steps after it compare at distances 2^(k-2) … 1. Elements missing to a power of two count as larger than all others,
so such pairs are left out. An index as the last key makes the sort stable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft_wasm.ir.nodes import Binary, Buffer, Expr, For, If, Kernel, Let, Select, Stmt, Store, Var, eq, ge, i32, lt
from weft_wasm.routines.gemm import Routine
from weft_wasm.routines.sort import less


def sort_parallel(
    name: str,
    batch: int,
    n: int,
    elements: Sequence[Callable[[Expr], Expr]],
    outputs: Sequence[Buffer],
    num_keys: int = 1,
) -> Routine:
    """Sorts operands elements[k](flat index) into outputs[k], as `sort.sort` does; its statements are of the program
    level.

    >>> x, out = Buffer("x", "f32", (3, 10), "input"), Buffer("out", "f32", (3, 10), "output")
    >>> len(sort_parallel("sort", 3, 10, [lambda i: x[i]], [out]).kernels)
    2
    """
    if n == 0 or batch == 0:
        return Routine([], [])
    order = Buffer(f"{name}.order", "i32", (batch, n))
    i, k = Var("i"), Var("k")
    at = i * n + k
    fill = [Store(b, at, element(at)) for b, element in zip(outputs, elements)]
    start = Kernel(name, [For(i, batch, [For(k, n, [*fill, Store(order, at, k)], "parallel")], "parallel")])
    levels = (n - 1).bit_length()  # the network is for 2^levels
    if levels == 0:
        return Routine([start], [order])
    t = Var("t")
    return Routine(
        [start, For(t, levels * (levels + 1) // 2, [_step(name, t, levels, batch, n, [*outputs, order], num_keys)])],
        [order],
    )


def _step(name: str, t: Var, levels: int, batch: int, n: int, buffers: Sequence[Buffer], num_keys: int) -> Kernel:
    """Compares and exchanges all pairs of step t. The last buffer is the order."""
    row, p = Var("row"), Var("p")
    stage, within, half, rest, low, high = (Var(s) for s in ("stage", "within", "half", "rest", "low", "high"))
    # stage k has k + 1 steps: count the stages that are over
    over: Expr = i32(0)
    for k in range(1, levels):
        over = over + Select(ge(t, k * (k + 1) // 2), i32(1), i32(0))
    size = Binary("shl", i32(1), half)
    a = [Var(f"a{k}", b.dtype) for k, b in enumerate(buffers)]
    c = [Var(f"c{k}", b.dtype) for k, b in enumerate(buffers)]
    keys = [*range(num_keys), len(buffers) - 1]
    base = row * n
    exchange: list[Stmt] = [
        *(Let(v, b[base + low]) for v, b in zip(a, buffers)),
        *(Let(v, b[base + high]) for v, b in zip(c, buffers)),
        If(
            less([c[k] for k in keys], [a[k] for k in keys]),
            [
                *(Store(b, base + low, v) for v, b in zip(c, buffers)),
                *(Store(b, base + high, v) for v, b in zip(a, buffers)),
            ],
        ),
    ]
    body: list[Stmt] = [
        Let(rest, Binary("and", p, size - 1)),
        Let(low, Binary("shl", Binary("shr", p, half), half + 1) + rest),
        Let(high, low + Select(eq(within, 0), size * 2 - 1 - rest * 2, size)),
        If(lt(high, n), exchange),
    ]
    return Kernel(
        f"{name}.step",
        [
            Let(stage, over),
            Let(within, t - Binary("shr", stage * (stage + 1), i32(1))),
            Let(half, stage - within),  # log2 of half a block
            For(row, batch, [For(p, 1 << (levels - 1), body, "parallel")], "parallel"),
        ],
    )
