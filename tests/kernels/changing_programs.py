"""Loop-IR programs in which a value changes that a compiler might take to stay as it is: one for each place that
decides so.

`CASES[name]` is (program, inputs), and the outputs where the interpreter would take long. Every target must compute
what the interpreter does.
"""

from collections.abc import Callable

import numpy as np
from kernel_harness import run_interpreted
from weft_wasm.interpreter import interpret
from weft_wasm.ir import nodes
from weft_wasm.ir.nodes import (
    Assign,
    Binary,
    Buffer,
    Call,
    Const,
    Convert,
    Copy,
    Declare,
    For,
    If,
    Kernel,
    Let,
    Local,
    MulAdd,
    Program,
    Select,
    Store,
    Switch,
    Var,
    While,
    f32,
    i32,
)
from weft_wasm.routines.gemm import gemm

Case = tuple[Program, list[np.ndarray]] | tuple[Program, list[np.ndarray], list[np.ndarray]]
CASES: dict[str, Case] = {}


def case(f):
    """Registers the program that f returns, with the arrays it runs on."""
    CASES[f.__name__] = f()
    return f


def ints(name: str, *shape: int, role: str = "input") -> Buffer:
    return Buffer(name, "i32", shape, role)


def floats(name: str, *shape: int, role: str = "input") -> Buffer:
    return Buffer(name, "f32", shape, role)


def each(n: int, body, kind: str = "parallel", **schedule) -> For:
    """A loop; `body(i)` gives its statements."""
    i = Var("i")
    return For(i, n, body(i), kind, **schedule)


def elementwise(name: str, out: Buffer, value) -> Kernel:
    """out[i] = value(i)"""
    return Kernel(name, [each(out.size, lambda i: [Store(out, i, value(i))])])


# ---- the program level: loads in tests, extents, indices
# -----------------------------------------------------------------


@case
def flag_that_copies_write() -> Case:
    """Nothing but copies writes the flag of the inner loop: its load must not move before the outer loop."""
    x, out = ints("x", 4), ints("out", 4, role="output")
    yes, flag, n = Buffer("yes", "bool", (), "constant", b"\1"), Buffer("flag", "bool", ()), ints("n", role="temp")
    no, more, t = Buffer("no", "bool", (), "constant", b"\0"), Buffer("more", "bool", ()), Var("t")
    count = Kernel("count", [Store(n, i32(0), n[0] + 1)])
    again = Kernel("again", [Store(more, i32(0), nodes.lt(n[0], x[t]))])
    body = [
        Copy(flag, yes, 1),
        Kernel("zero", [Store(n, i32(0), i32(0))]),
        While([], flag[0], [count, again, Copy(flag, more, 1)]),
        Kernel("put", [Store(out, t, n[0])]),
    ]
    return Program("flag", [x], [out], [flag, more, n], [Copy(flag, no, 1), For(t, 4, body)], [yes, no]), [
        np.array([3, 4, 5, 2])
    ]


@case
def flag_that_a_kernel_writes() -> Case:
    x, out = ints("x", 4), ints("out", 4, role="output")
    flag, n = Buffer("flag", "bool", ()), ints("n", role="temp")
    t = Var("t")
    body = [
        Kernel("begin", [Store(n, i32(0), i32(0)), Store(flag, i32(0), nodes.lt(i32(0), x[t]))]),
        While([], flag[0], [Kernel("step", [Store(n, i32(0), n[0] + 1), Store(flag, i32(0), nodes.lt(n[0], x[t]))])]),
        Kernel("put", [Store(out, t, n[0])]),
    ]
    return Program("flag", [x], [out], [flag, n], [For(t, 4, body)]), [np.array([3, 0, 5, 2])]


@case
def flag_that_the_condition_of_an_outer_while_writes() -> Case:
    x, out = ints("x", 5), ints("out", 5, role="output")
    flag, t = Buffer("flag", "bool", ()), ints("t", role="temp")
    step = Kernel("step", [Store(out, t[0], x[t[0]]), Store(t, i32(0), t[0] + 1)])
    cond = [Kernel("test", [Store(flag, i32(0), nodes.lt(t[0], 5))])]
    begin = Kernel("begin", [Store(t, i32(0), i32(0))])
    return Program("while", [x], [out], [flag, t], [begin, For(Var("k"), 1, [While(cond, flag[0], [step])])]), [
        np.arange(5)
    ]


@case
def extent_that_a_kernel_writes() -> Case:
    """The inner loop runs as often as the outer one says, which is another number each time."""
    out, n = ints("out", 6, role="output"), ints("n", role="temp")
    t, s = Var("t"), Var("s")
    body = [Kernel("extent", [Store(n, i32(0), t * 2)]), For(s, n[0], [Kernel("add", [Store(out, t, out[t] + s + 1)])])]
    return Program("extent", [], [out], [n], [elementwise("zero", out, lambda i: i32(0)), For(t, 6, body)]), []


@case
def extent_that_the_loop_changes() -> Case:
    """An extent counts as it was when the loop began, at the program level and in a kernel."""
    x, out, inside, n = (
        ints("x", 8),
        ints("out", 8, role="output"),
        ints("inside", 8, role="output"),
        ints("n", role="temp"),
    )
    t, s = Var("t"), Var("s")
    begin = Kernel("begin", [Store(n, i32(0), i32(5))])
    loop = For(t, n[0], [Kernel("step", [Store(n, i32(0), i32(2)), Store(out, t, x[t])])])
    kernel = Kernel(
        "inside", [Store(n, i32(0), i32(5)), For(s, n[0], [Store(n, i32(0), i32(2)), Store(inside, s, x[s])])]
    )
    zero = [elementwise("zero", b, lambda i: i32(0)) for b in (out, inside)]
    return Program("extent", [x], [out, inside], [n], [*zero, begin, loop, kernel]), [np.arange(8) + 1]


@case
def branch_that_a_kernel_chooses() -> Case:
    out, which = ints("out", 7, role="output"), ints("which", role="temp")
    t = Var("t")
    branches = [[Kernel(f"put{k}", [Store(out, t, i32(10 * k) + t)])] for k in range(3)]
    body = [Kernel("choose", [Store(which, i32(0), nodes.rem(t * 2, 3))]), Switch(which[0], branches)]
    return Program("switch", [], [out], [which], [For(t, 7, body)]), []


@case
def test_that_a_copy_changes() -> Case:
    x, out, flag = Buffer("x", "bool", (6,), "input"), ints("out", 6, role="output"), Buffer("flag", "bool", ())
    t = Var("t")
    put = [[Kernel("put", [Store(out, t, i32(k))])] for k in (1, 2)]
    return Program("if", [x], [out], [flag], [For(t, 6, [Copy(flag, x, 1, 0, t), If(flag[0], *put)])]), [
        np.array([1, 0, 0, 1, 0, 1])
    ]


@case
def places_of_copies_that_change() -> Case:
    x, out, at = ints("x", 10), ints("out", 10, role="output"), ints("at", 2, role="temp")
    t = Var("t")
    kernel = Kernel("places", [Store(at, i32(0), i32(8) - t * 2), Store(at, i32(1), t * 2)])
    return Program("copies", [x], [out], [at], [For(t, 5, [kernel, Copy(out, x, 2, at[0], at[1])])]), [np.arange(10)]


@case
def overlapping_copy_in_a_loop() -> Case:
    x, out = ints("x", 9), ints("out", 9, role="output")
    return Program("shift", [x], [out], [], [Copy(out, x, 9), For(Var("t"), 3, [Copy(out, out, 8, 1, 0)])]), [
        np.arange(9)
    ]


# ---- loads and what is computed from them, in kernels
# ----------------------------------------------------------------------


def _changed_by(statements, n: int = 6) -> Case:
    """out[t] = state[0] for t in order, where `statements(state, t)` change the state after it was read."""
    state, out = ints("state", 1, role="output"), ints("out", n, role="output")
    t = Var("t")
    load = state[0]
    body = [Store(out, t, load * 10), *statements(state, t)]
    return Program("state", [], [out, state], [], [Kernel("k", [Store(state, i32(0), i32(1)), For(t, n, body)])]), []


@case
def load_before_a_store() -> Case:
    return _changed_by(lambda state, t: [Store(state, i32(0), state[0] + t)])


@case
def load_before_a_store_in_a_branch() -> Case:
    return _changed_by(
        lambda state, t: [
            If(nodes.lt(t, 3), [Store(state, i32(0), state[0] + 5)], [Store(state, i32(0), state[0] - 1)])
        ]
    )


@case
def load_before_a_store_in_a_switch() -> Case:
    return _changed_by(
        lambda state, t: [Switch(nodes.rem(t, 3), [[], [Store(state, i32(0), t)], [Store(state, i32(0), t + 100)]])]
    )


@case
def load_before_a_store_in_an_inner_loop() -> Case:
    return _changed_by(lambda state, t: [each(2, lambda i: [Store(state, i32(0), state[0] + i + t)], "sequential")])


@case
def load_before_a_store_in_an_outlined_loop() -> Case:
    return _changed_by(
        lambda state, t: [For(Var("i"), 1, [Store(state, i32(0), state[0] + t + 1)], "sequential", outline=True)]
    )


@case
def load_before_a_store_in_a_while() -> Case:
    def loop(state, t):
        left = Local("left", "i32")
        return [
            Declare(left, t),
            While([], nodes.gt(left, 0), [Assign(left, left - 1), Store(state, i32(0), state[0] + 3)]),
        ]

    return _changed_by(loop)


@case
def load_before_a_store_in_the_condition_of_a_while() -> Case:
    def loop(state, t):
        left = Local("left", "i32")
        return [
            Declare(left, t),
            While([Store(state, i32(0), state[0] + 1)], nodes.gt(left, 0), [Assign(left, left - 1)]),
        ]

    return _changed_by(loop)


@case
def one_load_node_around_a_store() -> Case:
    """The same node in three statements: what it reads is another value in each."""
    state, out = ints("state", 1, role="output"), ints("out", 3, role="output")
    load, a, b = state[0], Var("a"), Var("b")
    body = [
        Store(state, i32(0), i32(7)),
        Let(a, load),
        Store(state, i32(0), load + 1),
        Let(b, load),
        Store(state, i32(0), load * 2),
        Store(out, i32(0), a),
        Store(out, i32(1), b),
        Store(out, i32(2), load),
    ]
    return Program("node", [], [out, state], [], [Kernel("k", body)]), []


@case
def one_load_node_in_loops_with_a_store_between() -> Case:
    """Inner loops do not change what they read, the one around them does."""
    x, scale, out = floats("x", 5), floats("scale", 1, role="output"), floats("out", 4, role="output")
    t, i, j, acc = Var("t"), Var("i"), Var("j"), Local("acc", "f32")
    load = scale[0]
    body = [
        Declare(acc, f32(0.0)),
        For(i, 5, [Assign(acc, MulAdd(x[i], load, acc))], "reduce"),
        Store(scale, i32(0), load + 1.0),
        For(j, 5, [Assign(acc, MulAdd(x[j], load, acc))], "reduce"),
        Store(out, t, acc),
    ]
    kernel = Kernel("k", [Store(scale, i32(0), f32(2.0)), For(t, 4, body)])
    return Program("loops", [x], [out, scale], [], [kernel]), [np.arange(5)]


@case
def one_load_node_in_vector_loops_with_a_store_between() -> Case:
    """Likewise with vectors of it."""
    x, scale, out = floats("x", 37), floats("scale", 1, role="output"), floats("out", 3, 37, role="output")
    t, i = Var("t"), Var("i")
    load = scale[0]
    body = [
        For(i, 37, [Store(out, t * 37 + i, Binary("div", x[i] * load, load + 1.0))], "parallel", 2),
        Store(scale, i32(0), load * 3.0),
    ]
    kernel = Kernel("k", [Store(scale, i32(0), f32(1.0)), For(t, 3, body)])
    return Program("loops", [x], [out, scale], [], [kernel]), [np.arange(37)]


@case
def divisor_that_changes_between_vector_loops() -> Case:
    """One division in two loops over the same vectors, and over rows, by another number each time."""
    x, d, out = floats("x", 64), floats("d", 1, role="output"), floats("out", 4, 128, role="output")
    t, i, j = Var("t"), Var("i"), Var("j")
    one, other = (Binary("div", x[v], d[0]) for v in (i, j))
    body = [
        For(i, 64, [Store(out, t * 128 + i, one)], "parallel", 1),
        Store(d, i32(0), d[0] * 2.0),
        For(j, 64, [Store(out, t * 128 + j + 64, other)], "parallel", 1),
        Store(d, i32(0), d[0] + 1.0),
    ]
    return Program("divide", [x], [out, d], [], [Kernel("k", [Store(d, i32(0), f32(1.0)), For(t, 4, body)])]), [
        np.arange(64) * 840.0
    ]


@case
def function_of_a_value_that_changes() -> Case:
    """The expansion of one call, and of one conversion, on what is in memory at the time."""
    state, out, half = (
        floats("state", 1, role="output"),
        floats("out", 4, role="output"),
        Buffer("half", "f16", (1,), "output"),
    )
    load = Convert(half[0], "f32")
    value = Call("exp", state[0]) + load
    body: list = [Store(state, i32(0), f32(0.0)), Store(half, i32(0), Convert(f32(0.5), "f16"))]
    for k in range(4):
        body += [
            Store(out, i32(k), value),
            Store(state, i32(0), state[0] + 1.0),
            Store(half, i32(0), Convert(load * 2.0, "f16")),
        ]
    return Program("calls", [], [out, state, half], [], [Kernel("k", body)]), []


@case
def index_that_changes() -> Case:
    """Pointers of an inner loop are made from an index in memory, a local and a binding, which the outer loop
    changes.
    """
    x, at, out = ints("x", 40), ints("at", 1, role="output"), ints("out", 3, 4, role="output")
    t, j, step, place = Var("t"), Var("j"), Var("step"), Local("place", "i32")
    inner = For(j, 4, [Store(out, t * 4 + j, x[at[0] + j] + x[place + j] * 100 + x[step * 2 + j] * 10_000)])
    body = [Let(step, t * 3), inner, Store(at, i32(0), at[0] + 9), Assign(place, place + 2)]
    kernel = Kernel("k", [Store(at, i32(0), i32(1)), Declare(place, i32(5)), For(t, 3, body)])
    return Program("index", [x], [out, at], [], [kernel]), [np.arange(40)]


@case
def local_that_changes_in_the_loop() -> Case:
    x, out = ints("x", 30), ints("out", 8, role="output")
    i, at = Var("i"), Local("at", "i32")
    body = [Store(out, i, x[at * 2 + 1]), Assign(at, at + i)]
    return Program(
        "local",
        [x],
        [out],
        [],
        [
            Kernel(
                "k",
                [
                    Declare(at, i32(0)),
                    For(i, 5, body),
                    For(Var("r"), 3, [Store(out, i32(5), at)]),
                    each(2, lambda k: [Store(out, k + 6, at + k)]),
                ],
            )
        ],
    ), [np.arange(30)]


@case
def branch_that_is_rare() -> Case:
    """What a rare branch computes is not there where it was not taken."""
    x, out = floats("x", 16), floats("out", 16, 2, role="output")
    i = Var("i")
    shared = Call("log", x[i] + 2.0)
    rare = Select(nodes.lt(x[i], f32(0.0)), shared * 2.0, x[i], rare=True)
    body = [Store(out, i * 2, rare), Store(out, i * 2 + 1, rare + shared)]
    data = np.where(np.arange(16) == 9, -1.0, np.arange(16))
    return Program("rare", [x], [out], [], [Kernel("k", [For(i, 16, body, "parallel", 1)])]), [data]


@case
def loop_that_may_not_run() -> Case:
    """A load may only move before a loop that runs: before this one its index is outside."""
    x, n, out = ints("x", 4), ints("n", 1), ints("out", 2, role="output")
    i, t = Var("i"), Var("t")
    inner = For(i, n[0], [Store(out, i32(0), x[nodes.clamp(0, n[0] + 1, 3)] + i)])
    kernel = Kernel("k", [Store(out, i32(0), i32(-1)), For(t, 2, [inner, Store(out, i32(1), t)])])
    return Program("none", [x, n], [out], [], [kernel]), [np.arange(4), np.array([0])]


# ---- loops that run in another way than they are written
# --------------------------------------------------------------------


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


# ---- kernels and functions that are kept once
# -----------------------------------------------------------------------------


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
# ---------------------------------------------------------------------------------------------------------


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
# ------------------------------------------------------------------


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
# ----------------------------------------------------------------------------------------------------

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
