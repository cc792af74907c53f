"""Loop-IR programs in which a value changes that a compiler might take to stay as it is: one for each place that
decides so.

`CASES[name]` is (program, inputs), and the outputs where the interpreter would take long. Every target must compute
what the interpreter does.
"""

from collections.abc import Callable

import numpy as np
from kernel_harness import run_interpreted
from weft_wasm.ir import nodes
from weft_wasm.ir.nodes import (
    Assign,
    Buffer,
    Const,
    Copy,
    Declare,
    For,
    If,
    Kernel,
    Let,
    Local,
    Program,
    Select,
    Store,
    Var,
    f32,
    i32,
)
import changing_loads  # noqa: F401  puts its cases into the table, as the next does
import changing_loops  # noqa: F401
from changing_cases import CASES, Case, case, elementwise, floats, ints

# ---- kernels and functions that are kept once


@case
def kernels_that_differ_in_one_number() -> Case:
    """Kernels alike but for a constant (and the sign of a zero), a size, an operation, or what overlaps are
    functions of their own.
    """
    x, outs = floats("x", 9), [floats(f"out{k}", 9, role="output") for k in range(6)]
    values = [
        lambda i: x[i] * 0.0,
        lambda i: x[i] * Const(-0.0, "f32"),
        lambda i: x[i] + 0.0,
        lambda i: x[i] - 0.0,
        lambda i: Select(nodes.lt(x[i], f32(4.0)), x[i], f32(1.0)),
        lambda i: Select(nodes.le(x[i], f32(4.0)), x[i], f32(1.0)),
    ]
    return Program("alike", [x], outs, [], [elementwise("k", b, v) for b, v in zip(outs, values)]), [np.arange(9) - 4]


@case
def equal_kernels_on_other_buffers() -> Case:
    """One function for kernels that differ in nothing but buffers, in place and not."""
    n = 10
    x, out, first = floats("x", n), floats("out", n, role="output"), floats("first", n, role="output")
    a, b, c = (floats(s, n, role="temp") for s in "abc")
    twice = lambda dst, src: elementwise("twice", dst, lambda i: src[i] * 2.0 + 1.0)  # noqa: E731
    body = [twice(a, x), twice(first, a), twice(b, a), twice(c, b), twice(out, c)]
    return Program("alike", [x], [out, first], [a, b, c], body), [np.arange(n)]


@case
def kernels_on_other_rows_of_a_loop() -> Case:
    """The variables of the program's loops are what they are at each call, also where a loop runs once, or is inside
    another.
    """
    x, out = ints("x", 24), ints("out", 4, 3, 2, role="output")
    t, s, u, w = (Var(name) for name in "tsuw")
    at = t * 6 + s * 2 + u
    kernel = Kernel("put", [Store(out, at, x[at] * 10 + t + s * 2 + w)])
    loops: list = [kernel]
    for v, n in ((w, 1), (u, 2), (s, 3), (t, 4)):
        loops = [For(v, n, loops)]
    return Program("rows", [x], [out], [], loops), [np.arange(24)]


# ---- what temps hold


@case
def carries_that_swap() -> Case:
    x, y = ints("x", 5), ints("y", 5)
    a, b, spare = (ints(s, 5, role=r) for s, r in (("a", "output"), ("b", "output"), ("spare", "temp")))
    swap = [Copy(spare, a, 5), elementwise("next", a, lambda i: b[i] + 1), Copy(b, spare, 5)]
    return Program("swap", [x, y], [a, b], [spare], [Copy(a, x, 5), Copy(b, y, 5), For(Var("t"), 3, swap)]), [
        np.arange(5),
        np.arange(5) * 10,
    ]


@case
def carry_that_an_iteration_may_keep() -> Case:
    """A temp that only some iterations write holds its value in the others, while another temp comes and goes."""
    out = ints("out", 8, role="output")
    kept, other, flag = ints("kept", 4, role="temp"), ints("other", 4, role="temp"), Buffer("flag", "bool", ())
    t = Var("t")
    body = [
        Kernel("test", [Store(flag, i32(0), nodes.eq(nodes.rem(t, 3), 0))]),
        If(flag[0], [elementwise("keep", kept, lambda i: t * 10 + i)]),
        elementwise("put", out, lambda i: Select(nodes.eq(i, t), kept[nodes.rem(i, 4)], out[i])),
        elementwise("other", other, lambda i: t * 1000 + i),
        Kernel("use", [Store(out, i32(7), other[2])]),
    ]
    return (
        Program("kept", [], [out], [kept, other, flag], [elementwise("zero", out, lambda i: i32(0)), For(t, 7, body)]),
        [],
    )


@case
def carry_that_a_kernel_keeps() -> Case:
    """Likewise where the kernel itself decides whether it writes."""
    out = ints("out", 8, role="output")
    kept, other = ints("kept", 4, role="temp"), ints("other", 4, role="temp")
    t, i = Var("t"), Var("i")
    body = [
        Kernel("keep", [If(nodes.eq(nodes.rem(t, 3), 0), [For(i, 4, [Store(kept, i, t * 10 + i)], "parallel")])]),
        elementwise("put", out, lambda i: Select(nodes.eq(i, t), kept[nodes.rem(i, 4)], out[i])),
        elementwise("other", other, lambda i: t * 1000 + i),
        Kernel("use", [Store(out, i32(7), other[2])]),
    ]
    return Program("kept", [], [out], [kept, other], [elementwise("zero", out, lambda i: i32(0)), For(t, 7, body)]), []


@case
def rows_that_are_written_one_by_one() -> Case:
    """Each iteration writes one element of a temp and reads those of the iterations before, while another temp comes
    and goes.
    """
    x, out = ints("x", 6), ints("out", 6, role="output")
    seen, other = ints("seen", 6, role="temp"), ints("other", 6, role="temp")
    t, i, acc = Var("t"), Var("i"), Local("acc", "i32")
    total = [Declare(acc, i32(0)), For(i, t + 1, [Assign(acc, acc + seen[i])], "reduce"), Store(out, t, acc)]
    body = [
        Kernel("write", [Store(seen, t, x[t])]),
        Kernel("sum", total),
        elementwise("other", other, lambda i: i * 1000 + t),
        Kernel("use", [Store(out, t, out[t] + other[0] * 0)]),
    ]
    return Program("seen", [x], [out], [seen, other], [For(t, 6, body)]), [np.arange(6) + 1]


@case
def rows_that_are_copied_one_by_one() -> Case:
    """Likewise with copies."""
    x, out = ints("x", 6), ints("out", 6, role="output")
    seen, other = ints("seen", 6, role="temp"), ints("other", 6, role="temp")
    t, i, acc = Var("t"), Var("i"), Local("acc", "i32")
    total = [Declare(acc, i32(0)), For(i, t + 1, [Assign(acc, acc + seen[i])], "reduce"), Store(out, t, acc)]
    body = [
        Copy(seen, x, 1, t, t),
        Kernel("sum", total),
        elementwise("other", other, lambda i: i * 1000 + t),
        Kernel("use", [Store(out, t, out[t] + other[0] * 0)]),
    ]
    return Program("seen", [x], [out], [seen, other], [For(t, 6, body)]), [np.arange(6) + 1]


@case
def sum_that_a_kernel_carries() -> Case:
    """A kernel that begins a sum in the first iteration and adds to it in the others."""
    x, out = ints("x", 6), ints("out", 6, role="output")
    total, other = ints("total", 1, role="temp"), ints("other", 6, role="temp")
    t = Var("t")
    body = [
        Kernel("add", [If(nodes.eq(t, 0), [Store(total, i32(0), i32(0))]), Store(total, i32(0), total[0] + x[t])]),
        Kernel("put", [Store(out, t, total[0])]),
        elementwise("other", other, lambda i: i * 1000 + t),
        Kernel("use", [Store(out, t, out[t] + other[0] * 0)]),
    ]
    return Program("sum", [x], [out], [total, other], [For(t, 6, body)]), [np.arange(6) + 1]


# ---- WebGPU: what is computed again in another dispatch


@case
def binding_that_later_loops_need() -> Case:
    """A binding made before a loop that changes what it was made from, and used after it."""
    state, out = ints("state", 70, role="output"), ints("out", 70, role="output")
    first = Var("first")
    i, j, k = Var("i"), Var("j"), Var("k")
    body = [
        For(i, 70, [Store(state, i, i * 3)], "parallel"),
        Let(first, state[5]),
        For(j, 70, [Store(state, j, i32(7))], "parallel"),
        For(k, 70, [Store(out, k, first + state[k] + k)], "parallel"),
    ]
    return Program("binding", [], [out, state], [], [Kernel("k", body)]), []


@case
def rows_shared_by_a_workgroup() -> Case:
    """Long rows that are read in another order than they are written in, where the third array may lie where the
    first does.
    """
    n, m = 3, 700
    x, a, b, c, out = (
        floats("x", n, m),
        *(floats(s, n, m, role="temp") for s in "abc"),
        floats("out", n, m, role="output"),
    )

    def by_rows(name: str, body) -> Kernel:
        i = Var("i")
        return Kernel(name, [For(i, n, body(i), "parallel")])

    def middle(i):
        p, q, k, s, acc = Var("p"), Var("q"), Var("k"), Var("s"), Local("acc", "f32")
        return [
            For(p, 7, [For(q, 100, [Store(b, i * m + p * 100 + q, a[i * m + q * 7 + p])], "parallel")], "parallel"),
            For(k, m, [Store(c, i * m + k, x[i * m + k] * 2.0)], "parallel"),
            Declare(acc, f32(0.0)),
            For(s, m, [Assign(acc, acc + b[i * m + s])], "reduce"),
            For(r := Var("r"), m, [Store(out, i * m + r, acc + b[i * m + r] + c[i * m + r])], "parallel"),
        ]

    fill = by_rows("fill", lambda i: [For(j := Var("j"), m, [Store(a, i * m + j, x[i * m + j] + 1.0)], "parallel")])
    return Program("rows", [x], [out], [a, b, c], [fill, by_rows("middle", middle)]), [
        np.arange(n * m).reshape(n, m) % 19
    ]


@case
def long_loop_that_changes_what_it_reads() -> Case:
    """A loop so long that WebGPU cuts it into dispatches, with a local and a binding from before it."""
    state, out = ints("state", 2, role="output"), ints("out", 2, role="output")
    i, first, acc = Var("i"), Var("first"), Local("acc", "i32")
    step = [Store(state, i32(0), nodes.rem(state[0] * 5 + 1, 1009)), Assign(acc, acc + state[0] + first)]
    body = [
        Store(state, i32(0), i32(3)),
        Store(state, i32(1), i32(4)),
        Let(first, state[1]),
        Declare(acc, i32(0)),
        For(i, 70_000, step),
        Store(out, i32(0), acc),
        Store(out, i32(1), first),
    ]
    return Program("long", [], [out, state], [], [Kernel("k", body)]), []


# ---- what they compute

_known: dict[str, list[np.ndarray]] = {}


def check(name: str, run: Callable[..., list[np.ndarray]]) -> None:
    """Compares `run(program, *inputs)` with what a case computes."""
    program, inputs, *known = CASES[name]
    if name not in _known:
        _known[name] = known[0] if known else run_interpreted(program, *inputs)
    for got, want in zip(run(program, *inputs), _known[name], strict=True):
        if got.dtype.kind in "biu":
            np.testing.assert_array_equal(got, want)
        else:
            np.testing.assert_allclose(got.astype("f8"), want.astype("f8"), rtol=1e-5, atol=1e-6)
