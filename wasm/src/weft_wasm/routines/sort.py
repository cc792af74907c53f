"""Stable sort of several operands by lexicographic keys along the last axis of [batch, n], in loop IR: insertion sort
of short runs, then bottom-up merges between the outputs and one temp per operand, without branches on the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft_wasm.ir.nodes import (
    FLOATS,
    STORAGE_FLOATS,
    Assign,
    Binary,
    Buffer,
    Convert,
    Declare,
    Expr,
    For,
    Kernel,
    Let,
    Local,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
    While,
    convert,
    eq,
    gt,
    i32,
    lt,
    maximum,
    minimum,
    ne,
)
from weft_wasm.routines.gemm import Routine

Place = tuple[Buffer, Expr]  # where a row begins
RUN = 8  # insertion sort below this length


def less(a: Sequence[Expr], b: Sequence[Expr]) -> Expr:
    """a < b in lexicographic order; NaNs are equal and last, -0.0 equals 0.0."""
    x, y = a[0], b[0]
    if x.dtype in STORAGE_FLOATS:
        x, y = Convert(x, "f32"), Convert(y, "f32")
    below = lt(x, y)
    same = eq(x, y)
    if x.dtype in FLOATS:
        x_nan, y_nan = ne(x, x), ne(y, y)
        below = below | (y_nan & Unary("not", x_nan))
        same = same | (x_nan & y_nan)
    if len(a) == 1:
        return below
    return below | (same & less(a[1:], b[1:]))


def sort(
    name: str,
    batch: int,
    n: int,
    elements: Sequence[Callable[[Expr], Expr]],
    outputs: Sequence[Buffer],
    num_keys: int = 1,
) -> Routine:
    """Sorts operands elements[k](flat index) into outputs[k], each of batch · n elements, by the first num_keys of
    them.

    Stable and ascending, as `lax.sort`. The outputs may not be storage that `elements` reads, unless element for
    element.

    >>> x, out = Buffer("x", "f32", (3, 10), "input"), Buffer("out", "f32", (3, 10), "output")
    >>> sort("sort", 3, 10, [lambda i: x[i]], [out]).temps
    [sort.0: f32[10]]
    """
    temps = [Buffer(f"{name}.{k}", out.dtype, (n,)) for k, out in enumerate(outputs)]
    passes = max(0, (-(-n // RUN) - 1).bit_length())
    b = Var("b")
    here = [(buffer, b * n) for buffer in outputs]
    there = [(buffer, i32(0)) for buffer in temps]
    start = there if passes % 2 else here
    body = _runs(elements, b * n, start, n, num_keys)
    width = Var("width")
    if passes % 2:
        body += [Let(width, i32(RUN)), *_merge(there, here, width, n, num_keys)]
    if passes >= 2:
        p, first, second = Var("p"), Var("width1"), Var("width2")
        base = 2 * RUN if passes % 2 else RUN
        body.append(
            For(
                p,
                passes // 2,
                [
                    Let(first, Binary("shl", i32(base), p * 2)),
                    *_merge(here, there, first, n, num_keys),
                    Let(second, first * 2),
                    *_merge(there, here, second, n, num_keys),
                ],
            )
        )
    return Routine([Kernel(name, [For(b, batch, body)] if n else [])], temps if passes else [])


def _runs(
    elements: Sequence[Callable[[Expr], Expr]], offset: Expr, to: Sequence[Place], n: int, num_keys: int
) -> list[Stmt]:
    """Insertion sort of runs of RUN elements into the buffers `to`."""
    r, q = Var("r"), Var("q")
    low, at = Var("low"), Local("at", "i32")
    position = Var("position")
    values = [Var(f"v{k}", buffer.dtype) for k, (buffer, _) in enumerate(to)]
    previous = Var("previous")
    held = [buffer[base + previous] for buffer, base in to]
    go = gt(at, low) & less(values[:num_keys], held[:num_keys])
    insert: list[Stmt] = [
        Let(position, low + q),
        *(Let(value, element(offset + position)) for value, element in zip(values, elements)),
        Declare(at, position),
        While(
            [Let(previous, maximum(at - 1, low))],
            go,
            [
                *(Store(buffer, base + at, buffer[base + at - 1]) for buffer, base in to),
                Assign(at, at - 1),
            ],
        ),
        *(Store(buffer, base + at, value) for (buffer, base), value in zip(to, values)),
    ]
    count = minimum(i32(RUN), i32(n) - low)
    return [For(r, -(-n // RUN), [Let(low, r * RUN), For(q, count, insert)])]


def _merge(source: Sequence[Place], to: Sequence[Place], width: Expr, n: int, num_keys: int) -> list[Stmt]:
    """Merges adjacent sorted runs of `width`."""
    r = Var("r")
    low, middle, high = Var("low"), Var("middle"), Var("high")
    i, j, k = Local("i", "i32"), Local("j", "i32"), Local("k", "i32")
    keys = source[:num_keys]
    left = [Var(f"left{q}", buffer.dtype) for q, (buffer, _) in enumerate(keys)]
    right = [Var(f"right{q}", buffer.dtype) for q, (buffer, _) in enumerate(keys)]
    take, step, pick = Var("take", "bool"), Var("step"), Var("pick")
    step_value = convert(take, "i32")
    body: list[Stmt] = [
        Let(low, r * (width * 2)),
        Let(middle, minimum(low + width, i32(n))),
        Let(high, minimum(low + width * 2, i32(n))),
        Declare(i, low),
        Declare(j, middle),
        Declare(k, low),
        While(
            [],
            lt(i, middle) & lt(j, high),
            [
                *(Let(v, buffer[base + i]) for v, (buffer, base) in zip(left, keys)),
                *(Let(v, buffer[base + j]) for v, (buffer, base) in zip(right, keys)),
                Let(take, less(right, left)),
                # choosing the address is a conditional move; choosing a float would be a branch
                Let(pick, Select(take, j, i)),
                *(Store(buffer, base + k, old[off + pick]) for (buffer, base), (old, off) in zip(to, source)),
                Let(step, step_value),
                Assign(j, j + step),
                Assign(i, i + 1 - step),
                Assign(k, k + 1),
            ],
        ),
    ]
    for index, end in ((i, middle), (j, high)):
        rest = Var("rest")
        copy: list[Stmt] = [
            Store(buffer, base + k + rest, old[off + index + rest]) for (buffer, base), (old, off) in zip(to, source)
        ]
        body += [For(rest, end - index, copy), Assign(k, k + maximum(end - index, i32(0)))]
    pairs = Var("pairs")
    return [Let(pairs, (i32(n) + width * 2 - 1) // (width * 2)), For(r, pairs, body, outline=True)]
