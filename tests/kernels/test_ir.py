"""Assumptions of every pass: each kind of statement and expression is known to the walkers, and says what it reads
and writes.
"""

from typing import get_args

import numpy as np
import pytest
from kernel_harness import NUMPY, assert_same, run_interpreted, run_wasm
from weft_wasm.interpreter import interpret
from weft_wasm.ir import nodes, traversal
from weft_wasm.interpreter.interpret import InterpretError
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
    Copy,
    Declare,
    Expr,
    Fail,
    For,
    HostCall,
    If,
    Instance,
    Kernel,
    Let,
    Local,
    MulAdd,
    Poll,
    Program,
    Select,
    Stmt,
    Store,
    Switch,
    Unary,
    Var,
    While,
    f32,
    i32,
)
from weft_wasm.ir.kinds import covering
from weft_wasm.ir.rewriting import fresh, map_blocks, rewrite
from weft_wasm.ir.text import lines

X, Y, Z = Buffer("x", "f32", (8,), "input"), Buffer("y", "f32", (8,)), Buffer("z", "f32", (8,), "input")
TABLE = Buffer("table", "i32", (4,))
I, V, ACC = Var("i"), Var("v", "f32"), Local("acc", "f32")
TEST = nodes.lt(X[0], Y[1])
WORK = Store(Y, I, X[I])

# One of each kind, the buffers that it reads (in the order of first use) and those that it writes.
STATEMENTS = [
    (For(I, TABLE[0], [WORK]), [TABLE, X], [Y]),
    (While([Store(TABLE, i32(0), i32(1))], TEST, [WORK]), [X, Y], [TABLE, Y]),
    (If(TEST, [WORK], [Store(TABLE, i32(0), i32(1))]), [X, Y], [Y, TABLE]),
    (Switch(TABLE[1], [[WORK], []]), [TABLE, X], [Y]),
    (Let(V, X[3]), [X], []),
    (Declare(ACC, X[3]), [X], []),
    (Assign(ACC, ACC + Y[2]), [Y], []),
    (Store(Y, TABLE[2], X[0]), [TABLE, X], [Y]),
    (Barrier(), [], []),
    (Poll(), [], []),
    (Kernel("k", [WORK]), [X], [Y]),
    (Instance("again", Kernel("k", [WORK]), {X: Z}), [Z], [Y]),
    (Copy(Y, X, 2, TABLE[0], 3), [TABLE, X], [Y]),
    (Fail(1), [], []),
    (HostCall(0, TABLE, [X], [Y]), [X], [TABLE, Y]),
]
LEAVES = [Const(1.0, "f32"), V, ACC]
EXPRESSIONS = [
    (X[I], 1),
    (Unary("neg", V), 1),
    (Binary("add", V, ACC), 2),
    (Compare("lt", V, ACC), 2),
    (Select(TEST, V, ACC), 3),
    (Convert(V, "i32"), 1),
    (Bitcast(V, "i32"), 1),
    (MulAdd(V, ACC, V), 3),
    (Call("pow", V, ACC), 2),
]


def test_there_is_a_sample_of_each_kind():
    assert {type(s) for s, _, _ in STATEMENTS} == set(get_args(Stmt))
    assert {type(e) for e in (*LEAVES, *(e for e, _ in EXPRESSIONS))} == set(get_args(Expr))


@pytest.mark.parametrize("s,reads,writes", STATEMENTS, ids=lambda x: type(x).__name__)
def test_what_statements_read_and_write(s, reads, writes):
    assert traversal.touched([s]) == (reads, writes)


@pytest.mark.parametrize("e,count", EXPRESSIONS, ids=lambda x: type(x).__name__)
def test_expressions_are_rebuilt_of_their_operands(e, count):
    old = traversal.operands(e)
    assert len(old) == count and traversal.walk_expr(e)[-1] is e
    new = [Var(f"n{k}", x.dtype) for k, x in enumerate(old)]
    copy = traversal.rebuild(e, new)
    assert type(copy) is type(e) and copy.dtype == e.dtype and list(traversal.operands(copy)) == new
    mapping = dict(zip(old, new))
    same = traversal.substitute(e, mapping)
    assert type(same) is type(e) and list(traversal.operands(same)) == [mapping[x] for x in old]


@pytest.mark.parametrize("s", [s for s, _, _ in STATEMENTS], ids=lambda s: type(s).__name__)
def test_every_rewriter_knows_every_statement_of_its_level(s):
    assert list(lines([s], 0))
    program_level = type(s) in (Kernel, Instance, Copy, Fail, HostCall)
    both = type(s) in (For, While, If, Switch, Poll)
    if program_level:
        for rewriter in (rewrite, fresh):
            with pytest.raises(TypeError, match=f"{type(s).__name__} is not a statement of a kernel"):
                rewriter([s], {})
    else:
        mapping = {X[0]: f32(0.0), ACC: Local("other", "f32")}
        assert [type(x) for x in traversal.walk(fresh([s], mapping))] == [type(x) for x in traversal.walk([s])]
    if program_level:
        assert map_blocks([s], lambda block: block) == [s]
    elif not both:
        with pytest.raises(TypeError, match="is not a statement of the program level"):
            map_blocks([s], lambda block: block)


def test_a_table_that_forgets_a_kind_is_refused():
    table = dict.fromkeys(get_args(Stmt), 0)
    assert covering(Stmt, table) is table
    del table[Copy]
    with pytest.raises(TypeError, match="no entry for Copy"):
        covering(Stmt, table)
    with pytest.raises(TypeError, match="an entry for Var, which should have none"):
        covering(Expr, dict.fromkeys(get_args(Expr), 0), leaves=(Var,))


def test_what_is_assigned_becomes_a_local_only():
    with pytest.raises(TypeError, match="acc is assigned"):
        rewrite([Assign(ACC, f32(1.0))], {ACC: f32(2.0)})


@pytest.mark.parametrize("count,to,start", [(3, 6, 0), (3, 0, 6), (3, -1, 0), (3, 0, -1), (9, 0, 0)])
def test_the_interpreter_refuses_copies_out_of_bounds(count, to, start):
    """The verifier knows constant places only; a bytearray would grow or shrink."""
    out, at = Buffer("out", "f32", (8,), "output"), Buffer("at", "i32", (2,), "input")
    program = Program("p", [X, at], [out], [], [Copy(out, X, 8), Copy(out, X, count, at[0], at[1])])
    data = np.arange(8, dtype=np.float32)
    with pytest.raises(InterpretError, match=f"{count} elements at"):
        run_interpreted(program, data, np.array([to, start], np.int32))
    np.testing.assert_array_equal(
        run_interpreted(
            Program("p", [X, at], [out], [], [Copy(out, X, 8), Copy(out, X, 2, at[0], at[1])]),
            data,
            np.array([6, 1], np.int32),
        )[0],
        [0, 1, 2, 3, 4, 5, 1, 2],
    )


# ---- the strict interpreter


def _strict(*body, temps=(), outputs=1):
    x = Buffer("x", "f32", (8,), "input")
    outs = [Buffer(f"o{k}", "f32", (8,), "output") for k in range(outputs)]
    program = Program("p", [x], outs, list(temps), [Kernel("k", [s for f in body for s in f(x, *outs)])])
    return interpret.run(program, [np.arange(8, dtype=np.float32).tobytes()], strict=True)


def _each(store, kind="parallel"):
    def statements(x, o):
        i = Var("i")
        return [For(i, 8, store(x, o, i), kind)]

    return statements


FILL = _each(lambda x, o, i: [Store(o, i, x[i])])
SCRATCH = Buffer("s", "f32", (8,), "private")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            [_each(lambda x, o, i: [Store(o, i32(0), x[i])])],
            "iterations 0 and 1 of the parallel loop over i both touch element 0 of o0",
        ),
        ([FILL, _each(lambda x, o, i: [Store(o, i, o[nodes.minimum(i + 1, 7)])])], "both touch element 1"),
        (
            [FILL, _each(lambda x, o, i: [Store(o, i, o[nodes.maximum(i - 1, 0)])], "reduce")],
            "of the reduce loop over i",
        ),
        ([FILL, _each(lambda x, o, i: [Let(Var("a", "f32"), o[i32(7)]), Store(o, i, x[i])])], "of which several and 7"),
        ([_each(lambda x, o, i: [Store(o, i, o[i])])], "element 0 of o0: f32.8. is read, and was never written"),
        ([lambda x, o: [Store(o, i32(0), x[0])]], "element 1 of o0: f32.8. is never written"),
        (
            [
                FILL,
                _each(lambda x, o, i: [If(nodes.eq(i, 0), [Store(SCRATCH, i32(0), x[i])]), Store(o, i, SCRATCH[0])]),
            ],
            "element 0 of s: f32.8.",
        ),
        (
            [_each(lambda x, o, i: [Store(o, i, nodes.convert(nodes.bitcast(x[i] - x[i] / 0.0, "u32"), "f32"))])],
            "the bits of a NaN that was computed",
        ),
    ],
    ids=["one place", "ahead", "behind", "several", "never written", "not wholly", "own", "NaN"],
)
def test_what_targets_may_do_in_different_ways_is_refused(body, said):
    with pytest.raises(interpret.InterpretError, match=said):
        _strict(*body, temps=[SCRATCH])


@pytest.mark.parametrize(
    "body",
    [
        [FILL],
        [FILL, _each(lambda x, o, i: [Store(o, i, o[i] + x[i32(3)])])],
        [FILL, _each(lambda x, o, i: [Store(o, i, o[nodes.maximum(i - 1, 0)])], "sequential")],
        [_each(lambda x, o, i: [Store(SCRATCH, i32(0), x[i]), Store(o, i, SCRATCH[0])])],
    ],
    ids=["each its own", "one is read by all", "in order", "a buffer of each thread's own"],
)
def test_what_they_must_do_alike_is_not(body):
    assert len(_strict(*body, temps=[SCRATCH])) == 1


def test_a_buffer_of_each_threads_own_lasts_for_one_kernel():
    x, out = Buffer("x", "f32", (8,), "input"), Buffer("o", "f32", (8,), "output")
    i = Var("i")
    kernels = [
        Kernel("a", [For(i, 8, [Store(SCRATCH, i, x[i])], "parallel")]),
        Kernel("b", [For(i, 8, [Store(out, i, SCRATCH[i])], "parallel")]),
    ]
    with pytest.raises(interpret.InterpretError, match="element 0 of s: f32.8. is read, and was never written"):
        interpret.run(Program("p", [x], [out], [SCRATCH], kernels), [bytes(32)], strict=True)


def test_copies_take_what_was_written_with_them():
    x, out, part = Buffer("x", "f32", (8,), "input"), Buffer("o", "f32", (8,), "output"), Buffer("part", "f32", (8,))
    i = Var("i")
    half = Kernel("half", [For(i, 4, [Store(part, i, x[i])], "parallel")])
    read = Kernel("read", [Store(out, i32(7), part[5])])

    def strict(*body):
        return interpret.run(
            Program("p", [x], [out], [part], list(body)), [np.arange(8, dtype=np.float32).tobytes()], strict=True
        )

    assert np.frombuffer(strict(Copy(out, x, 8))[0], np.float32).tolist() == [*range(8)]
    assert np.frombuffer(strict(half, Copy(out, x, 8), Copy(out, part, 4, 2, 0))[0], np.float32).tolist() == [
        0,
        1,
        0,
        1,
        2,
        3,
        6,
        7,
    ]
    for body, element, said in [
        ([Copy(out, x, 7)], 7, "is never written"),
        ([Copy(out, x, 7, 1)], 0, "is never written"),
        ([half, Copy(out, part, 8)], 4, "is never written"),
        ([Copy(out, x, 8), half, Copy(out, part, 3, 5, 2)], 7, "is never written"),
        ([Copy(out, x, 8), half, read], 5, "is read, and was never written"),
    ]:
        with pytest.raises(InterpretError, match=f"element {element} of .* {said}"):
            strict(*body)
    assert strict(Copy(out, x, 8), Copy(part, x, 8), read)


EDGES = [
    0.0,
    -0.0,
    1 + 2**-11,
    1 + 2**-11 + 2**-40,
    1 + 3 * 2**-11 - 2**-40,
    1 + 2**-8,
    1 + 2**-8 + 2**-40,
    1 + 2**-24 + 2**-50,
    2**-24 * 1.5,
    2.0**-25,
    2**-25 * (1 + 2**-40),
    65519.99999999999,
    65520.0,
    -2.5,
    2.5,
    127.5,
    255.99,
    1e9,
    3e9,
    -3e9,
    1e19,
    3.4e38,
    3.5e38,
    1e-40,
    1e300,
    float("inf"),
    float("-inf"),
    float("nan"),
]


@pytest.mark.parametrize("src", NUMPY)
def test_conversions(src):
    """The interpreter rounds as compiled programs do: half precision from f64 by way of f32."""
    n, i = len(EDGES), Var("i")
    with np.errstate(all="ignore"):
        values = np.array(EDGES)
        if src[0] in "iu":
            info = np.iinfo(NUMPY[src])
            values = np.array(
                [min(max(int(x), info.min), info.max) for x in EDGES[:-3]] + [info.min, info.max, 1], NUMPY[src]
            )
        data = values.astype(NUMPY[src])
    x, outs = Buffer("x", src, (n,), "input"), [Buffer(f"o{d}", d, (n,), "output") for d in NUMPY]
    program = Program(
        "p",
        [x],
        outs,
        [],
        [Kernel("k", [For(i, n, [Store(o, i, nodes.convert(x[i], o.dtype)) for o in outs], "sequential")])],
    )
    for dst, got, want in zip(NUMPY, run_interpreted(program, data), run_wasm(program, data)):
        assert_same(got, want, f"{src} to {dst}")
    if src == "f64":
        assert run_interpreted(program, data)[list(NUMPY).index("f16")][3] == 1, "rounded twice"
    x = Buffer("x", "f32", (8,), "output")
    with pytest.raises(interpret.TooLong):
        interpret.run(Program("p", [], [x], [], [Kernel("k", [For(Var("i"), 1 << 30, [])])]), [], most=1000)
