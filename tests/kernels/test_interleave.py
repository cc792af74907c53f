"""Stores of neighbouring elements in vector loops, which are transposed in registers: against the interpreter and
NumPy.
"""

import numpy as np
import pytest
from kernel_harness import assert_same, random_array, run_interpreted, run_wasm
from weft_wasm.compile import compile_program
from weft_wasm.ir.nodes import Binary, Buffer, For, Kernel, Program, Store, Var


def columns(dtype: str, count: int, rows: int, stride: int, vector: int) -> Program:
    """out[r][q] = x[q][r] + x[0][q] for q < count; the elements of a row beyond stay what a first loop made them."""
    x, out = Buffer("x", dtype, (count, rows), "input"), Buffer("out", dtype, (rows, stride), "output")
    r, z = Var("r"), Var("z")
    stores = [Store(out, r * stride + q, Binary("add", x[r + q * rows], x[q])) for q in range(count)]
    return Program(
        "columns",
        [x],
        [out],
        [],
        [Kernel("columns", [For(z, rows * stride, [Store(out, z, x[0])]), For(r, rows, stores, "parallel", vector)])],
    )


@pytest.mark.parametrize("vector", [1, 2])
@pytest.mark.parametrize("dtype", ["f32", "f64", "i32", "u8"])
@pytest.mark.parametrize("count, stride", [(2, 2), (2, 5), (3, 3), (4, 4), (5, 6), (6, 6), (8, 9)])
def test_columns_become_rows(count, stride, dtype, vector):
    rng = np.random.default_rng(count)
    for rows in (8, 12, 19):
        program = columns(dtype, count, rows, stride, vector)
        x = random_array(rng, dtype, (count, rows))
        assert_same(run_wasm(program, x)[0], run_interpreted(program, x)[0])


def test_a_value_that_a_neighbour_writes():
    """b reads what a has just stored: nothing is regrouped."""
    n = 16
    x, out = Buffer("x", "f32", (n,), "input"), Buffer("out", "f32", (n, 2), "output")
    i = Var("i")
    program = Program(
        "chain",
        [x],
        [out],
        [],
        [
            Kernel(
                "chain", [For(i, n, [Store(out, i * 2, x[i]), Store(out, i * 2 + 1, out[i * 2] + 1.0)], "parallel", 1)]
            )
        ],
    )
    x_ = np.arange(n, dtype=np.float32)
    np.testing.assert_array_equal(run_wasm(program, x_)[0], np.stack([x_, x_ + 1], 1))


def test_whole_vectors_are_stored():
    """Six columns of floats: four lanes of four by one instruction each, pairs of the rest."""
    wide = compile_program(columns("f32", 6, 64, 6, 1)).code
    assert wide.count(b"\xfd\x5b") == 4 and b"\xfd\x5a" not in wide  # v128.store64_lane; v128.store32_lane
