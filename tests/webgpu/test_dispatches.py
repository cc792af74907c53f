"""Which loops become a dispatch, how many invocations share a point, how long loops are cut, and the texts of
expressions.
"""

import re

import numpy as np
import pytest
from weft_wasm.emit_wgsl import chunks, workgroup_reductions
from weft_wasm.emit_wgsl.dispatches import split
from weft_wasm.ir.nodes import (
    Assign,
    Buffer,
    Const,
    Declare,
    For,
    If,
    Kernel,
    Let,
    Local,
    Program,
    Store,
    Var,
    f32,
    i32,
    lt,
)
from weft_wasm.ir.traversal import walk
from webgpu_harness import kernels, plan_of, run_webgpu

gpu = pytest.mark.usefixtures("device")


def summed(points: int, terms: int, kind: str = "reduce") -> Kernel:
    """A sum of `terms` terms for each of `points` points."""
    x, out = Buffer("x", "f32", (terms,), "input"), Buffer("out", "f32", (points,), "output")
    i, k, acc = Var("i"), Var("k"), Local("acc", "f32")
    body = [Declare(acc, f32(0.0)), For(k, terms, [Assign(acc, acc + x[k])], kind), Store(out, i, acc)]
    return Kernel("sums", [For(i, points, body, "parallel")])


@pytest.mark.parametrize(
    ("points", "terms", "want"),
    [
        (1, workgroup_reductions.LONG, 64),
        (1, workgroup_reductions.LONG - 1, 0),
        (workgroup_reductions.FEW, workgroup_reductions.LONG, 64),
        (workgroup_reductions.FEW + 1, workgroup_reductions.LONG, 0),
        (workgroup_reductions.FEW + 1, workgroup_reductions.VERY_LONG, 256),
        (workgroup_reductions.FEW + 1, workgroup_reductions.VERY_LONG - 1, 0),
        (5, 16 * workgroup_reductions.LONG - 1, 64),
        (5, 16 * workgroup_reductions.LONG, 256),
    ],
)
def test_invocations_share_what_is_long(points, terms, want):
    (d,) = split(summed(points, terms))
    assert workgroup_reductions.threads(d) == want
    (d,) = split(summed(points, terms, "sequential"))
    assert workgroup_reductions.threads(d) == 0, "its terms are in order"


# ---- grids


@pytest.mark.parametrize("n", [1, 63, 64, 65, 128, 64 * 10, 64 * 10 + 1, 64 * 23])
def test_points_outside_are_left_out_where_there_are_any(n):
    """Groups have 64 points, and a line of the grid at most 5 groups here."""
    x, out, i = Buffer("x", "f32", (n,), "input"), Buffer("out", "f32", (n,), "output"), Var("i")
    program = Program("p", [x], [out], [], [Kernel("k", [For(i, n, [Store(out, i, x[i] + 1.0)], "parallel")])])
    limits = {"maxComputeWorkgroupsPerDimension": 5}
    (step,), (text,) = plan_of(program, limits)["steps"], kernels(program, limits)
    columns, lines, deep = step["groups"]
    groups = -(-n // 64)
    assert deep == 1 and columns <= 5 and groups <= columns * lines < groups + lines, (
        "no line of groups more than there must be"
    )
    assert (f"if (point >= {n}u) {{ return; }}" in text) == (64 * columns * lines > n)


# ---- loops that are cut


def test_iterations_of_nested_loops_and_branches():
    def loop(n, *body):
        return For(Var("i"), n, list(body))

    test = lt(Var("n"), 3)
    assert chunks.iterations([loop(5), loop(7)]) == 12 and chunks.iterations([loop(5, loop(7))]) == 5 * 8
    assert chunks.iterations([If(test, [loop(5)], [loop(9)])]) == 9 and chunks.iterations([If(test, [loop(5)])]) == 5
    assert (
        chunks.iterations([loop(10, If(test, [loop(6)]))]) == 10 * 7
        and chunks.iterations([loop(Var("n"), loop(6))]) == 7
    )


def test_short_loops_are_left_as_they_are():
    n = chunks.LIMIT
    assert chunks.chunked(summed(3, n, "sequential"), None) is None
    with pytest.raises(TypeError):  # it asks for a buffer
        chunks.chunked(summed(3, n + 1, "sequential"), None)


@gpu
def test_long_loops_in_grids_of_two_axes():
    """The grid of each part is the whole one. What is bound before the loop from what it changes is kept as it was;
    another kernel's part stays one.
    """
    n, shape = chunks.LIMIT + 5, (2, 3)
    x, out, last = (
        Buffer("x", "i32", (n,), "input"),
        Buffer("out", "i32", shape, "output"),
        Buffer("last", "i32", shape, "output"),
    )
    a, b, c, d, t, acc, old = Var("a"), Var("b"), Var("c"), Var("d"), Var("t"), Local("acc", "i32"), Var("old")
    at = a * 3 + b
    long = [
        Let(old, out[at]),
        Declare(acc, a),
        For(t, n, [Assign(acc, acc + x[t] * (b + 1)), Store(out, at, acc)]),
        Store(last, at, acc * 10 + old),
    ]
    kernel = Kernel(
        "k",
        [
            For(c, 2, [For(d, 3, [Store(out, c * 3 + d, c * 7 + d)], "parallel")], "parallel"),
            For(a, 2, [For(b, 3, long, "parallel")], "parallel"),
        ],
    )
    program = Program("p", [x], [out, last], [], [kernel])
    made = chunks.chunked(kernel, lambda name, dtype, shape: Buffer(name, dtype, shape))
    assert [type(s) for s in made] == [Kernel, Kernel, For, Kernel]
    assert all(isinstance(s.var, Var) for s in walk(made) if type(s) is Let) and all(
        isinstance(s.local, Local) for s in walk(made) if type(s) is Declare
    )
    data = np.random.default_rng(0).integers(-9, 9, n)
    got_out, got_last = run_webgpu(program, data)
    start, total = np.arange(2)[:, None], data.sum() * (np.arange(3) + 1)
    np.testing.assert_array_equal(got_out, start + total)
    np.testing.assert_array_equal(got_last, (start + total) * 10 + np.arange(2)[:, None] * 7 + np.arange(3))


@gpu
@pytest.mark.parametrize("outer", [1, 3])
def test_long_loops_inside_of_loops_and_after_another(outer):
    """However they lie, no invocation has more iterations than systems let it have: Mesa's llvmpipe leaves what is
    longer without a word.
    """
    n = 2 * chunks.LIMIT + 9
    out, i, t, u, v = Buffer("out", "i32", (4,), "output"), Var("i"), Var("t"), Var("u"), Var("v")
    acc, low = Local("acc", "i32"), Local("low", "i32")
    body = [
        Declare(acc, i),
        Declare(low, i32(0)),
        For(t, outer, [Assign(acc, acc * 3), For(u, n, [Assign(acc, acc + 1)]), Assign(low, low + acc)]),
        For(v, n, [Assign(low, low + (v + 1 - v))]),
        Store(out, i, acc - low),
    ]
    (got,) = run_webgpu(Program("p", [], [out], [], [Kernel("k", [For(i, 4, body, "parallel")])]))
    acc, low = np.arange(4), np.zeros(4, int)
    for _ in range(outer):
        acc = acc * 3 + n
        low += acc
    np.testing.assert_array_equal(got, acc - (low + n))


# ---- texts


def test_deep_expressions_are_cut():
    """Parsers of shaders recurse."""
    x, out, i = Buffer("x", "f32", (8,), "input"), Buffer("out", "f32", (8,), "output"), Var("i")
    value = x[i]
    for k in range(100):
        value = value + float(k + 1)
    program = Program("p", [x], [out], [], [Kernel("k", [For(i, 8, [Store(out, i, value)], "parallel")])])
    (text,) = kernels(program)

    def depth(line: str) -> int:
        levels = np.cumsum([(c == "(") - (c == ")") for c in line])
        return int(levels.max(initial=0))

    assert 12 < max(depth(line) for line in text.split("@compute")[1].splitlines()) < 40
    assert 100 // 12 - 1 <= len(re.findall(r"let t_\d+ = ", text)) <= 100 // 12 + 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.5, "1.5f"),
        (-2.0, "-2.0f"),
        (2.0**-126, "1.1754943508222875e-38f"),
        (3e38, "3.0000000054977558e+38f"),
        (2.0**-127, "as_f32(0x00400000u)"),
        (-1e-45, "as_f32(0x80000001u)"),
        (-0.0, "as_f32(0x80000000u)"),
        (0.0, "0.0f"),
        (np.inf, "as_f32(0x7f800000u)"),
        (np.nan, "as_f32(0x7fc00000u)"),
    ],
)
def test_constants(value, text):
    """Numbers are written as such, but what compilers may change, by its bits."""
    out = Buffer("out", "f32", (1,), "output")
    program = Program("p", [], [out], [], [Kernel("k", [Store(out, i32(0), Const(value, "f32"))])])
    assert text in kernels(program)[0].split("@compute")[1]
