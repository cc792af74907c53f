"""Programs whose loops run in another way than they are written."""

import numpy as np
from weft_wasm.interpreter import interpret
from weft_wasm.ir import nodes
from weft_wasm.ir.nodes import (
    Assign,
    Convert,
    Declare,
    For,
    Kernel,
    Let,
    Local,
    MulAdd,
    Program,
    Store,
    Var,
    f32,
    i32,
)
from weft_wasm.routines.gemm import gemm
from changing_cases import CASES, Case, case, each, elementwise, floats


# ---- loops that run in another way than they are written


def _in_place(n: int, size: int | None = None, donated: bool = False) -> Case:
    """b[i] = a[i] * 2 + 1 where b may lie where a does: no iteration may run twice."""
    x, a, out = floats("x", n), floats("a", size or n, role="temp"), floats("out", n, role="output")
    if donated:
        body = [elementwise("double", out, lambda i: x[i] * 2.0 + 1.0)]
        return Program("donated", [x], [out], [], body, donated={0: 0}), [np.arange(n)]
    b = floats("b", n, role="temp")
    body = [
        Kernel("fill", [each(n, lambda i: [Store(a, i, x[i])])]),
        elementwise("double", b, lambda i: a[i] * 2.0 + 1.0),
    ]
    return Program("in_place", [x], [out], [a, b], [*body, elementwise("put", out, lambda i: b[i])]), [np.arange(n)]


for _n in (5, 7, 10, 64, 67):
    CASES[f"in_place_{_n}"] = _in_place(_n)
    CASES[f"in_place_in_a_larger_one_{_n}"] = _in_place(_n, _n + 30)
    CASES[f"in_place_of_an_argument_{_n}"] = _in_place(_n, donated=True)


@case
def in_place_inside_a_loop() -> Case:
    """The tail of each row, in place: rows inside a loop have no padding, and may not run twice."""
    x, a, b, out = (
        floats("x", 3, 10),
        floats("a", 3, 10, role="temp"),
        floats("b", 3, 10, role="temp"),
        floats("out", 3, 10, role="output"),
    )
    i, j = Var("i"), Var("j")
    double = Kernel(
        "double", [For(i, 3, [For(j, 10, [Store(b, i * 10 + j, a[i * 10 + j] * 2.0 + 1.0)], "parallel")], "parallel")]
    )
    body = [elementwise("fill", a, lambda i: x[i]), double, elementwise("put", out, lambda i: b[i])]
    return Program("rows", [x], [out], [a, b], body), [np.arange(30).reshape(3, 10)]


@case
def several_iterations_store_the_same_element() -> Case:
    """Each i stores b[i] three times, always the same value, which it has from a[i]: b must not lie where a does."""
    x, a, b, out = (
        floats("x", 16),
        floats("a", 16, role="temp"),
        floats("b", 16, role="temp"),
        floats("out", 16, role="output"),
    )
    i, r = Var("i"), Var("r")
    again = Kernel("again", [For(r, 3, [For(i, 16, [Store(b, i, a[i] * 2.0 + 1.0)], "parallel")], "parallel")])
    body = [elementwise("fill", a, lambda i: x[i]), again, elementwise("put", out, lambda i: b[i])]
    return Program("again", [x], [out], [a, b], body), [np.arange(16)]


@case
def places_that_fall_together() -> Case:
    """Likewise where an index is divided."""
    x, a, b, out = (
        floats("x", 32),
        floats("a", 32, role="temp"),
        floats("b", 32, role="temp"),
        floats("out", 32, role="output"),
    )
    i = Var("i")
    half = i // 2
    again = Kernel("again", [For(i, 64, [Store(b, half, a[half] * 2.0 + 1.0)], "parallel")])
    body = [elementwise("fill", a, lambda i: x[i]), again, elementwise("put", out, lambda i: b[i])]
    return Program("halves", [x], [out], [a, b], body), [np.arange(32)]


@case
def shifted_in_one_kernel() -> Case:
    """An output may not lie where its neighbour is read."""
    x, a, b, out = (
        floats("x", 33),
        floats("a", 33, role="temp"),
        floats("b", 33, role="temp"),
        floats("out", 33, role="output"),
    )
    shifted = elementwise("shift", b, lambda i: a[nodes.clamp(0, i - 1, 32)] * 2.0)
    body = [elementwise("fill", a, lambda i: x[i]), shifted, elementwise("put", out, lambda i: b[i])]
    return Program("shifted", [x], [out], [a, b], body), [np.arange(33)]


@case
def stores_side_by_side_that_read_each_other() -> Case:
    """The second of two neighbouring stores reads what the first has put away."""
    x, out = floats("x", 40), floats("out", 80, role="output")
    i = Var("i")
    body = [Store(out, i * 2, x[i] + 1.0), Store(out, i * 2 + 1, out[i * 2] * 10.0)]
    return Program("neighbours", [x], [out], [], [Kernel("k", [For(i, 40, body, "parallel", 1)])]), [np.arange(40)]


@case
def stores_side_by_side_in_place() -> Case:
    """Pairs that swap, where the result may lie where the operand does."""
    x, a, b, out = (
        floats(name, 48, role=role) for name, role in (("x", "input"), ("a", "temp"), ("b", "temp"), ("out", "output"))
    )
    i = Var("i")
    u, v = Var("u", "f32"), Var("v", "f32")
    swap = [Let(u, a[i * 2]), Let(v, a[i * 2 + 1]), Store(b, i * 2, v), Store(b, i * 2 + 1, u)]
    body = [
        elementwise("fill", a, lambda i: x[i]),
        Kernel("swap", [For(i, 24, swap, "parallel", 1)]),
        elementwise("put", out, lambda i: b[i]),
    ]
    return Program("swap", [x], [out], [a, b], body), [np.arange(48)]


@case
def sums_that_are_stored_on_the_way() -> Case:
    """A reduce loop that also stores; and one that reads what it stored just now."""
    x, out, sums = floats("x", 50), floats("out", 50, role="output"), floats("sums", 2, role="output")
    i, acc, top = Var("i"), Local("acc", "f32"), Local("top", "f32")
    body = [Store(out, i, x[i] * 2.0), Assign(acc, acc + out[i]), Assign(top, nodes.maximum(top, out[i]))]
    kernel = [
        Declare(acc, f32(0.0)),
        Declare(top, f32(-1e9)),
        For(i, 50, body, "reduce"),
        Store(sums, i32(0), acc),
        Store(sums, i32(1), top),
    ]
    return Program("sums", [x], [out, sums], [], [Kernel("k", kernel)]), [np.arange(50)]


@case
def reduction_of_what_the_loop_before_has_written() -> Case:
    """Rows that are written, reduced in another order, and written again: the loops must not become one where they
    read other elements.
    """
    n, m = 300, 131
    x, a, out = floats("x", n, m), floats("a", n, m, role="temp"), floats("out", n, 2, role="output")
    i, j, k, acc, rev = Var("i"), Var("j"), Var("k"), Local("acc", "f32"), Local("rev", "f32")
    first = Kernel("first", [For(i, n, [For(j, m, [Store(a, i * m + j, x[i * m + j] + 1.0)], "parallel")], "parallel")])
    i2 = Var("i")
    weighted = MulAdd(a[i2 * m + (m - 1) - k], Convert(k, "f32"), rev)
    second = Kernel(
        "second",
        [
            For(
                i2,
                n,
                [
                    Declare(acc, f32(0.0)),
                    Declare(rev, f32(0.0)),
                    For(k, m, [Assign(acc, acc + a[i2 * m + k]), Assign(rev, weighted)], "reduce"),
                    Store(out, i2 * 2, acc),
                    Store(out, i2 * 2 + 1, rev),
                ],
                "parallel",
            )
        ],
    )
    data = np.arange(n * m).reshape(n, m) % 7
    sums = np.stack([(data + 1).sum(1), ((data + 1)[:, ::-1] * np.arange(m)).sum(1)], 1)
    return Program("rows", [x], [out], [a], [first, second]), [data], [sums]


def _rows_of_another(read, write=lambda i: i) -> Case:
    """a[i] = x[i] + 1 by rows, then out[write(i)] = a[read(i)] * 2: kernels that must not go row by row together."""
    n, m = 64, 600
    x, a, out = floats("x", n, m), floats("a", n, m, role="temp"), floats("out", n, m, role="output")
    i, j, i2, j2 = Var("i"), Var("j"), Var("i"), Var("j")
    first = Kernel("first", [For(i, n, [For(j, m, [Store(a, i * m + j, x[i * m + j] + 1.0)], "parallel")], "parallel")])
    second = Kernel(
        "second",
        [
            For(
                i2,
                n,
                [For(j2, m, [Store(out, write(i2) * m + j2, a[read(i2) * m + j2] * 2.0)], "parallel")],
                "parallel",
            )
        ],
    )
    data = np.arange(n * m).reshape(n, m) % 11
    rows, want = np.arange(n), np.zeros((n, m))
    want[_on_host(write, rows)] = (data[_on_host(read, rows)] + 1.0) * 2.0
    return Program("rows", [x], [out], [a], [first, second]), [data], [want]


def _on_host(index, rows: np.ndarray) -> list[int]:
    """What an index is for each row."""
    machine = interpret._Machine(interpret.Memory())
    return [machine.value(index(i32(int(r)))) for r in rows]


CASES["rows_before"] = _rows_of_another(lambda i: nodes.clamp(0, i - 1, 63))
CASES["rows_after"] = _rows_of_another(lambda i: nodes.clamp(0, i + 1, 63))
CASES["rows_backwards"] = _rows_of_another(lambda i: i32(63) - i)
CASES["rows_of_which_one_is_read"] = _rows_of_another(lambda i: i32(63))
CASES["rows_written_backwards"] = _rows_of_another(lambda i: i, lambda i: i32(63) - i)


@case
def rows_that_are_written_after_others_were_read() -> Case:
    """The first kernel reads row i + 1 of what the second one writes: it must read all of them before."""
    n, m = 64, 600
    x, a, out = floats("x", n, m), floats("a", n, m, role="temp"), floats("out", n, m, role="output")
    i, j, i2, j2 = Var("i"), Var("j"), Var("i"), Var("j")
    begin = elementwise("begin", a, lambda i: x[i])
    ahead = nodes.clamp(0, i + 1, n - 1) * m + j
    first = Kernel(
        "first", [For(i, n, [For(j, m, [Store(out, i * m + j, a[ahead] + a[i * m + j])], "parallel")], "parallel")]
    )
    second = Kernel("second", [For(i2, n, [For(j2, m, [Store(a, i2 * m + j2, f32(0.0))], "parallel")], "parallel")])
    last = elementwise("last", out2 := floats("out2", n, m, role="output"), lambda i: a[i])
    data = np.arange(n * m).reshape(n, m) % 13
    return (
        Program("rows", [x], [out, out2], [a], [begin, first, second, last]),
        [data],
        [data + data[[*range(1, n), n - 1]], data * 0],
    )


@case
def product_of_what_its_neighbour_writes() -> Case:
    """A product whose second operand the kernel before it writes row by row, in a batch: rows of one batch are all
    wanted at once.
    """
    b, n = 5, 96
    x, y, w, out = (
        floats("x", b, n, n),
        floats("y", b, n, n),
        floats("w", b, n, n, role="temp"),
        floats("out", b, n, n, role="output"),
    )
    z, i, j = Var("z"), Var("i"), Var("j")
    at = z * (n * n) + i * n + j
    first = Kernel(
        "first", [For(z, b, [For(i, n, [For(j, n, [Store(w, at, y[at] * 2.0)], "parallel")], "parallel")], "parallel")]
    )
    routine = gemm(
        "product",
        n,
        n,
        n,
        lambda z, i, k: x[z * (n * n) + i * n + k],
        lambda z, k, j: w[z * (n * n) + k * n + j],
        lambda z, i, j, value: [Store(out, z * (n * n) + i * n + j, value)],
        batch=b,
    )
    data = (np.arange(b * n * n).reshape(b, n, n) % 5, np.arange(b * n * n).reshape(b, n, n) % 3)
    return (
        Program("product", [x, y], [out], [w, *routine.temps], [first, *routine.kernels]),
        list(data),
        [data[0] @ (2.0 * data[1])],
    )


@case
def long_loop_of_rows_that_keep_a_row() -> Case:
    """A loop that threads share, with a row of its own in each iteration."""
    n, m = 256, 1500
    x, out, row = floats("x", n, m), floats("out", n, m, role="output"), floats("row", m, role="private")
    i, j, k = Var("i"), Var("j"), Var("k")
    body = [
        For(j, m, [Store(row, j, x[i * m + j] * 2.0)], "parallel"),
        For(k, m, [Store(out, i * m + k, row[i32(m - 1) - k] + 1.0)], "parallel"),
    ]
    data = np.arange(n * m).reshape(n, m) % 17
    return (
        Program("rows", [x], [out], [row], [Kernel("k", [For(i, n, body, "parallel")])]),
        [data],
        [data[:, ::-1] * 2.0 + 1.0],
    )


@case
def column_sums_onto_what_was_there() -> Case:
    """Sums of columns, which run row by row: what was bound before them is as it was before the first store after
    them.
    """
    m, n = 200, 300
    x, y = floats("x", m, n), floats("y", n)
    out, twice, last = (floats(name, n, role="output") for name in ("out", "twice", "last"))
    i, j, k, acc, prev, start = (
        Var("i"),
        Var("j"),
        Var("k"),
        Local("acc", "f32"),
        Var("prev", "f32"),
        Local("start", "f32"),
    )
    begin = Kernel("begin", [For(k, n, [Store(out, k, y[k])], "parallel")])
    sums = Kernel(
        "sums",
        [
            For(
                j,
                n,
                [
                    Let(prev, out[j]),
                    Declare(start, out[j] * 3.0),
                    Declare(acc, f32(0.0)),
                    For(i, m, [Assign(acc, acc + x[i * n + j])], "reduce"),
                    Store(out, j, prev + acc),
                    Store(twice, j, prev * 2.0),
                    Store(last, j, start + acc),
                ],
                "parallel",
            )
        ],
    )
    data, before = np.arange(m * n).reshape(m, n) % 9, np.arange(n) % 5
    total = data.sum(0)
    return (
        Program("sums", [x, y], [out, twice, last], [], [begin, sums]),
        [data, before],
        [before + total, before * 2, before * 3 + total],
    )


@case
def column_sums_that_go_on() -> Case:
    """Two loops add to one local, which is bound between them."""
    m, n = 200, 300
    x, first, both = floats("x", m, n), floats("first", n, role="output"), floats("both", n, role="output")
    i, j, k, acc, half = Var("i"), Var("j"), Var("k"), Local("acc", "f32"), Var("half", "f32")
    sums = Kernel(
        "sums",
        [
            For(
                j,
                n,
                [
                    Declare(acc, f32(0.0)),
                    For(i, m, [Assign(acc, acc + x[i * n + j])], "reduce"),
                    Let(half, acc),
                    For(k, m, [Assign(acc, acc + x[k * n + j])], "reduce"),
                    Store(first, j, half),
                    Store(both, j, acc),
                ],
                "parallel",
            )
        ],
    )
    data = np.arange(m * n).reshape(m, n) % 9
    return Program("sums", [x], [first, both], [], [sums]), [data], [data.sum(0), data.sum(0) * 2]


@case
def row_sums_onto_what_was_there() -> Case:
    """Likewise with rows so long that some are reduced side by side."""
    m, n = 9, 40_000
    x, y, out, twice = (
        floats("x", m, n),
        floats("y", m),
        floats("out", m, role="output"),
        floats("twice", m, role="output"),
    )
    i, j, k, acc, prev = Var("i"), Var("j"), Var("k"), Local("acc", "f32"), Var("prev", "f32")
    begin = Kernel("begin", [For(k, m, [Store(out, k, y[k])], "parallel")])
    sums = Kernel(
        "sums",
        [
            For(
                i,
                m,
                [
                    Let(prev, out[i]),
                    Declare(acc, f32(0.0)),
                    For(j, n, [Assign(acc, acc + x[i * n + j])], "reduce"),
                    Store(out, i, prev + acc),
                    Store(twice, i, prev * 2.0),
                ],
                "parallel",
            )
        ],
    )
    data, before = np.arange(m * n).reshape(m, n) % 3, np.arange(m) % 5
    return Program("sums", [x, y], [out, twice], [], [begin, sums]), [data, before], [before + data.sum(1), before * 2]


@case
def long_sum_of_what_the_loop_has_stored() -> Case:
    """A sum so long that it is cut in blocks, of what the same iteration has stored."""
    n = 1000
    x, out, total = floats("x", n), floats("out", n, role="output"), floats("total", 1, role="output")
    i, acc = Var("i"), Local("acc", "f32")
    body = [Store(out, i, out[i] + x[i]), Assign(acc, acc + out[i]), Store(out, i, out[i] * 2.0)]
    kernel = [Declare(acc, f32(0.0)), For(i, n, body, "reduce"), Store(total, i32(0), acc)]
    return Program("sum", [x], [out, total], [], [elementwise("one", out, lambda i: f32(1.0)), Kernel("k", kernel)]), [
        np.arange(n) % 8
    ]


@case
def name_of_a_loop_and_then_of_a_binding() -> Case:
    """A variable that counted in one loop is bound to something negative later, in indices that stay inside."""
    x, out = floats("x", 400), floats("out", 2, 8, role="output")
    v, i, j = Var("v"), Var("i"), Var("j")
    first = For(v, 8, [Store(out, v, x[v + 300])])
    second = For(
        i, 1, [Let(v, i - 200_000), For(j, 8, [Store(out, j + 8, x[v + j + 200_150] + x[v + v + j + 400_000])])]
    )
    return Program("name", [x], [out], [], [Kernel("k", [first, second])]), [np.arange(400)]
