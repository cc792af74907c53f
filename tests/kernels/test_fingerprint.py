"""Kernels that differ only in names are emitted once; with any other difference they are emitted separately."""

import itertools

import numpy as np
import pytest
from kernel_harness import run_interpreted, run_wasm
from weft_wasm.emit_wasm.functions import uses
from weft_wasm.ir.fingerprint import fingerprint
from weft_wasm.ir.nodes import (
    Assign,
    Barrier,
    Binary,
    Bitcast,
    Buffer,
    Call,
    Compare,
    Const,
    Convert,
    Declare,
    For,
    If,
    Kernel,
    Let,
    Load,
    Local,
    MulAdd,
    Poll,
    Program,
    Select,
    Store,
    Switch,
    Unary,
    Var,
    While,
    f32,
    i32,
)

X, Y, OUT = Buffer("x", "f32", (8,), "input"), Buffer("y", "f32", (8,), "input"), Buffer("out", "f32", (8,), "output")
A, B, N = Var("a", "f32"), Var("b", "f32"), Var("n")
STORE = Store(OUT, i32(0), A)


def of(*body):
    """The fingerprint, with all that could be used from outside in one order."""
    return fingerprint(list(body), [X, Y, OUT], [A, B, N])


def value(e):
    return [Store(OUT, i32(0), e)]


def declared(*rest, dtype="f32", init=1.0):
    acc = Local("acc", dtype)
    return [Declare(acc, Const(init, dtype)), *[s(acc) for s in rest]]


ALIKE_BUT = {
    "loops": [
        [For(Var("i"), 8, [STORE], **o)]
        for o in (
            {},
            {"kind": "parallel"},
            {"kind": "reduce"},
            {"vector": 1},
            {"vector": 2},
            {"unroll": 2},
            {"outline": True},
            {"tasks": 1},
            {"tasks": 4},
        )
    ]
    + [
        [For(Var("i"), 7, [STORE])],
        [For(Var("i"), N, [STORE])],
        [For(Var("i"), i32(8), [STORE])],
        [For(Var("i"), 8, [STORE, STORE])],
        [For(Var("i"), 8, [])],
        [For(Var("i"), 8, []), STORE],
        [STORE],
        [],
    ],
    "variables of loops": [
        [For(i := Var("i"), 8, [For(j := Var("j"), 8, [Store(OUT, pick(i, j), A)])])]
        for pick in (lambda i, j: i, lambda i, j: j, lambda i, j: N)
    ],
    "constants": [value(Const(c, "f32")) for c in (0.0, -0.0, 1.0, float("nan"))]
    + [[Store(OUT, Const(k, "i32"), A)] for k in (1, 2)],
    "operations": [value(Binary(op, A, B)) for op in ("add", "sub", "mul", "max")]
    + [
        value(Binary("sub", B, A)),
        value(Unary("neg", A)),
        value(Unary("abs", A)),
        value(MulAdd(A, B, A)),
        value(MulAdd(B, A, A)),
        value(Call("exp", A)),
        value(Call("log", A)),
        value(A),
        value(B),
        value(Binary("add", A, A)),
    ],
    "choices": [value(Select(Compare(op, A, B), A, B, **o)) for op in ("lt", "le") for o in ({}, {"rare": True})]
    + [value(Select(Compare("lt", A, B), B, A))],
    "conversions": [value(Convert(Convert(A, d), "f32")) for d in ("i32", "u32", "f64")]
    + [value(Bitcast(Bitcast(A, d), "f32")) for d in ("i32", "u32")],
    "loads": [value(Load(X, i32(0))), value(Load(Y, i32(0))), value(Load(X, i32(1))), value(Load(X, N))],
    "stores": [[Store(OUT, i32(0), A)], [Store(X, i32(0), A)], [Store(OUT, N, A)], [Store(OUT, i32(0), B)]],
    "bindings": [
        [Let(t := Var("t", "f32"), e), Store(OUT, i32(0), use(t))]
        for e, use in ((A, lambda t: t), (B, lambda t: t), (A, lambda t: A), (A, lambda t: t + t))
    ]
    + [
        declared(lambda acc: Store(OUT, i32(0), acc)),
        declared(lambda acc: Store(OUT, i32(0), acc), init=2.0),
        declared(lambda acc: Store(OUT, i32(0), Convert(acc, "f32")), dtype="f64"),
        declared(lambda acc: Assign(acc, A), lambda acc: Store(OUT, i32(0), acc)),
        declared(lambda acc: Assign(acc, B), lambda acc: Store(OUT, i32(0), acc)),
        declared(lambda acc: Store(OUT, i32(0), acc), lambda acc: Assign(acc, A)),
    ],
    "branches": [
        [If(Compare("lt", N, i32(3)), [STORE], [])],
        [If(Compare("lt", N, i32(3)), [], [STORE])],
        [If(Compare("lt", N, i32(4)), [STORE], [])],
        [If(Compare("lt", N, i32(3)), [STORE], [STORE])],
        [Switch(N, [[STORE], []])],
        [Switch(N, [[], [STORE]])],
        [Switch(N, [[STORE], [], []])],
        [Switch(N + 1, [[STORE], []])],
        [While([], Compare("lt", N, i32(3)), [STORE])],
        [While([STORE], Compare("lt", N, i32(3)), [])],
        [Barrier(), STORE],
        [STORE, Barrier()],
        [Poll(), STORE],
    ],
}


@pytest.mark.parametrize("what", ALIKE_BUT)
def test_what_differs(what):
    prints = [of(*body) for body in ALIKE_BUT[what]]
    for (k, a), (q, b) in itertools.combinations(enumerate(prints), 2):
        assert a != b, (k, q)


def test_what_is_outside():
    """The buffers' dtypes, sizes and roles, the variables' dtypes, and which is which."""
    i = Var("i")
    made = []
    for dtype, shape, role in (
        ("f32", (8,), "input"),
        ("f32", (9,), "input"),
        ("f32", (8,), "temp"),
        ("u32", (8,), "input"),
    ):
        x = Buffer("x", dtype, shape, role)
        made.append(fingerprint([For(i, 4, [Store(OUT, i, Convert(x[i], "f32"))])], [x, OUT], []))
    assert len(set(made)) == 4
    assert len({fingerprint([], [], [Var("v", d)]) for d in ("i32", "f32", "f64")}) == 3
    assert fingerprint([Store(OUT, i32(0), X[i32(0)] - Y[i32(0)])], [X, Y, OUT], []) != fingerprint(
        [Store(OUT, i32(0), X[i32(0)] - Y[i32(0)])], [Y, X, OUT], []
    )


def test_names_make_no_difference():
    def body(x, out, i, t):
        return [For(i, 8, [Let(t, x[i] * 2.0), Store(out, i, t + 1.0)], "parallel")]

    other = Buffer("other", "f32", (8,), "input"), Buffer("result", "f32", (8,), "output")
    one, two = body(X, OUT, Var("i"), Var("t", "f32")), body(*other, Var("k"), Var("value", "f32"))
    assert fingerprint(one, uses(one).buffers, []) == fingerprint(two, uses(two).buffers, [])


@pytest.mark.parametrize("schedule", [False, True])
def test_kernels_that_go_through_parts_of_the_same_arrays(schedule):
    """Their bodies and arrays are alike, how far they go is not."""
    first, second = Buffer("first", "f32", (8,), "output"), Buffer("second", "f32", (8,), "output")

    def filled(out, n):
        i, j = Var("i"), Var("j")
        return [
            Kernel("fill", [For(i, 8, [Store(out, i, f32(0.0))], "parallel")]),
            Kernel("add", [For(j, n, [Store(out, j, X[j] + 1.0)], "parallel")]),
        ]

    program = Program("p", [X], [first, second], [], [*filled(first, 8), *filled(second, 3)])
    data = np.arange(8, dtype=np.float32)
    for got, want, known in zip(
        run_wasm(program, data, schedule=schedule), (data + 1, [1, 2, 3, 0, 0, 0, 0, 0]), run_interpreted(program, data)
    ):
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(got, known)
