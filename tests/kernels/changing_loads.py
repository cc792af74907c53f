"""Programs in which what is loaded changes: tests, extents and indices, and values in kernels."""

import numpy as np
from weft_wasm.ir import nodes
from weft_wasm.ir.nodes import (
    Assign,
    Binary,
    Buffer,
    Call,
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
from changing_cases import Case, case, each, elementwise, floats, ints


# ---- the program level: loads in tests, extents, indices


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
