"""Schedules change how nests run, never what they compute."""

import numpy as np
import pytest
from kernel_harness import run_interpreted, run_wasm
from weft_wasm.ir import nodes
from weft_wasm.ir.nodes import Assign, Buffer, Call, Declare, For, Kernel, Local, Program, Store, Var, f32, i32
from weft_wasm.ir.traversal import walk
from weft_wasm.passes.schedule import schedule_loops
from weft_wasm.ir.verify import verify


@pytest.mark.parametrize("order", ["ij", "ji"])  # from outside inwards
@pytest.mark.parametrize("vector", [0, 1, 2, 4])  # of the innermost loop
@pytest.mark.parametrize("unroll", [{}, {"j": 3}, {"i": 6, "j": 6}], ids=str)
@pytest.mark.parametrize("rows,columns", [(12, 24), (5, 7)])
def test_nests_run_as_they_say(rows, columns, unroll, vector, order):
    x, out = Buffer("x", "f32", (rows, columns), "input"), Buffer("out", "f32", (columns, rows), "output")
    i, j = Var("i"), Var("j")
    extents = {"i": (i, rows), "j": (j, columns)}
    body = [Store(out, j * rows + i, x[i * columns + j] + 1.0)]
    for axis in reversed(order):
        body = [For(*extents[axis], body, "parallel", vector if axis == order[1] else 0, unroll.get(axis, 1))]
    program = Program("nest", [x], [out], [], [Kernel("nest", body)])
    verify(program)
    data = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
    np.testing.assert_array_equal(run_wasm(program, data, schedule=False)[0], data.T + 1)
    np.testing.assert_array_equal(run_interpreted(program, data)[0], data.T + 1)


@pytest.mark.parametrize("vector", [1, 2])
@pytest.mark.parametrize("length", [-3, 0, 3, 4, 8, 21, 37])
def test_reductions_of_a_length_that_only_the_program_knows_run_in_lanes(length, vector):
    x, n, out = (
        Buffer("x", "f32", (37,), "input"),
        Buffer("n", "i32", (1,), "input"),
        Buffer("out", "f32", (2,), "output"),
    )
    j, total, top = Var("j"), Local("total", "f32"), Local("top", "f32")
    steps = [Assign(total, total + x[j]), Assign(top, nodes.Binary("max", top, x[j]))]
    loop = For(j, n[0], steps, "reduce", vector=vector)
    body = [Declare(total, f32(1.0)), Declare(top, f32(-7.0)), loop, Store(out, i32(0), total), Store(out, i32(1), top)]
    program = Program("sum", [x, n], [out], [], [Kernel("sum", body)])
    verify(program)
    data = np.arange(37, dtype=np.float32) % 11 - 4
    part = data[: max(length, 0)]
    want = [1 + part.sum(), max([-7, *part])]
    np.testing.assert_array_equal(run_wasm(program, data, [length], schedule=False)[0], want)
    np.testing.assert_array_equal(run_interpreted(program, data, [length])[0], want)


def vector_axes(program: Program) -> list[str]:
    return [s.var.name for s in walk(schedule_loops(program).body) if type(s) is For and s.vector]


def reduction(rows: int, columns: int, axis: int) -> Program:
    x, out = (
        Buffer("x", "f32", (rows, columns), "input"),
        Buffer("out", "f32", (columns if axis == 0 else rows,), "output"),
    )
    i, j, acc = Var("i"), Var("j"), Local("acc", "f32")
    outer, inner = ((j, columns), (i, rows)) if axis == 0 else ((i, rows), (j, columns))
    body = [
        Declare(acc, f32(0.0)),
        For(*inner, [Assign(acc, acc + x[i * columns + j])], "reduce"),
        Store(out, outer[0], acc),
    ]
    return Program("sum", [x], [out], [], [Kernel("sum", [For(*outer, body, "parallel")])])


def test_auto_finds_the_contiguous_axis():
    assert set(vector_axes(reduction(64, 64, 0))) == {"j"}
    assert set(vector_axes(reduction(64, 64, 1))) == {"j"}
    x, out, i = Buffer("x", "f32", (100,), "input"), Buffer("out", "f32", (100,), "output"), Var("i")
    flat = For(i, 100, [Store(out, i, Call("exp", x[i]))], "parallel")
    assert vector_axes(Program("exp", [x], [out], [], [Kernel("exp", [flat])])) == ["i"]


@pytest.mark.parametrize(
    ("rows", "columns", "want"), [(1, 1, []), (1, 2, ["j"]), (5, 2, ["j"]), (2, 1, ["i"]), (7, 1, ["i"]), (1, 9, ["j"])]
)
def test_axes_of_one_element_have_no_lanes(rows, columns, want):
    """Nor is their stride one that counts; those of two have."""
    x, out, i, j = (
        Buffer("x", "f32", (rows, columns), "input"),
        Buffer("out", "f32", (rows, columns), "output"),
        Var("i"),
        Var("j"),
    )
    at = i * columns + j
    loop = For(i, rows, [For(j, columns, [Store(out, at, Call("exp", x[at]))], "parallel")], "parallel")
    assert vector_axes(Program("exp", [x], [out], [], [Kernel("exp", [loop])])) == want


@pytest.mark.parametrize(
    "shape", [(4096, 8), (5000, 3), (10_000, 21), (1003, 70), (3, 9000), (4, 4097), (1, 100_003), (300, 300)], ids=str
)
@pytest.mark.parametrize("axis", [0, 1])
def test_sums(shape, axis):
    rng = np.random.default_rng(0)
    data = rng.normal(size=shape).astype(np.float32)
    program = reduction(*shape, axis)
    verify(schedule_loops(program))
    np.testing.assert_allclose(
        run_wasm(program, data)[0], data.sum(axis, dtype=np.float64), atol=2e-5 * np.sqrt(shape[axis])
    )


def test_a_sum_of_many_ones_is_exact():
    """2^25 float32 ones: a naive accumulator stops at 2^24."""
    n = 1 << 25
    x, out = Buffer("x", "f32", (n,), "input"), Buffer("out", "f32", (), "output")
    j, acc = Var("j"), Local("acc", "f32")
    body = [Declare(acc, f32(0.0)), For(j, n, [Assign(acc, acc + x[j])], "reduce"), Store(out, i32(0), acc)]
    program = Program("sum", [x], [out], [], [Kernel("sum", body)])
    for features in (("simd128",), ()):
        assert run_wasm(program, np.ones(n, np.float32), features=features)[0] == n


def test_softmax_of_the_documentation():
    rows, n = 16, 100
    x, out = Buffer("x", "f32", (rows, n), "input"), Buffer("out", "f32", (rows, n), "output")
    r, j, k, m, q = (Var(name) for name in "rjkmq")
    top, total = Local("top", "f32"), Local("total", "f32")
    at = lambda c: r * n + c  # noqa: E731
    body = [
        For(
            r,
            rows,
            [
                Declare(top, f32(float("-inf"))),
                For(j, n, [Assign(top, nodes.maximum(top, x[at(j)]))], "reduce"),
                For(k, n, [Store(out, at(k), Call("exp", x[at(k)] - top))], "parallel"),
                Declare(total, f32(0.0)),
                For(m, n, [Assign(total, total + out[at(m)])], "reduce"),
                For(q, n, [Store(out, at(q), out[at(q)] / total)], "parallel"),
            ],
            "parallel",
        )
    ]
    program = Program("softmax", [x], [out], [], [Kernel("softmax", body)])
    assert sorted(vector_axes(program)) == ["j", "k", "m", "q"]
    data = np.random.default_rng(0).normal(size=(rows, n)).astype(np.float32)
    e = np.exp(data - data.max(1, keepdims=True))
    np.testing.assert_allclose(run_wasm(program, data)[0], e / e.sum(1, keepdims=True), rtol=1e-5)


def test_lanes_do_not_share_a_row_however_much_there_is_to_compute():
    """Each iteration writes the same temp and reads it: no lanes over it, although nothing else lines up."""
    rows, n = 9, 7
    x, out, row = (
        Buffer("x", "f32", (rows, n), "input"),
        Buffer("out", "f32", (n, rows), "output"),
        Buffer("row", "f32", (n,)),
    )
    i, j, k = (Var(name) for name in "ijk")
    e = x[i * n + (n - 1 - j)]
    for step in range(40):
        e = e * (1.0 + step / 50) + nodes.convert((i * (step + 2) + j) % 5, "f32")
    body = [
        For(
            i,
            rows,
            [
                For(j, n, [Store(row, j, e)], "parallel"),
                For(k, n, [Store(out, k * rows + i, row[(k * 3) % n])], "parallel"),
            ],
            "parallel",
        )
    ]
    program = Program("rows", [x], [out], [row], [Kernel("rows", body)])
    assert "i" not in vector_axes(program)
    data = np.random.default_rng(0).normal(size=(rows, n)).astype(np.float32)
    np.testing.assert_allclose(run_wasm(program, data)[0], run_interpreted(program, data)[0], rtol=1e-5)


@pytest.mark.parametrize("rows,columns,at_once", [(64, 8192, 8), (1 << 13, 64, 8), (64, 64, 1), (3, 1 << 18, 1)])
def test_rows_of_a_large_matrix_are_summed_side_by_side(rows, columns, at_once):
    program = schedule_loops(reduction(rows, columns, 1))
    verify(program)
    assert {
        sum(type(x) is Store for x in s.body) for s in walk(program.body) if type(s) is For and s.kind == "parallel"
    } == {at_once}


@pytest.mark.parametrize("count,streams", [(1 << 20, 8), (1000, 1)])
def test_a_long_sum_is_read_from_several_places(count, streams):
    x, out = Buffer("x", "f32", (count,), "input"), Buffer("out", "f32", (), "output")
    j, acc = Var("j"), Local("acc", "f32")
    body = [Declare(acc, f32(0.0)), For(j, count, [Assign(acc, acc + x[j])], "reduce"), Store(out, i32(0), acc)]
    program = schedule_loops(Program("sum", [x], [out], [], [Kernel("sum", body)]))
    verify(program)
    assert max(len(s.body) for s in walk(program.body) if type(s) is For and s.vector) == streams
