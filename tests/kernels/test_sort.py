"""The sort routine against NumPy's stable sorts."""

import numpy as np
import pytest
from kernel_harness import NUMPY, random_array, run_interpreted, run_wasm
from weft_wasm import ir
from weft_wasm.ir import Buffer, Program
from weft_wasm.routines.radix import radix_sort
from weft_wasm.routines.sort import sort


def order(a: np.ndarray) -> np.ndarray:
    """Values that sort as lax.sort does: integers by size, NaN last, zeros equal."""
    return (
        np.unique(a, return_inverse=True)[1].reshape(a.shape)
        if a.dtype.kind not in "V"
        else order(a.astype(np.float32))
    )


@pytest.mark.parametrize("dtype", ["f32", "f64", "i32", "u8", "i64", "u64", "bool", "bf16", "f16"])
@pytest.mark.parametrize("shape", [(1, 0), (1, 1), (3, 7), (2, 8), (2, 9), (4, 16), (3, 33), (1, 1000)], ids=str)
def test_keys_with_indices(dtype, shape):
    batch, n = shape
    x, out, index = (
        Buffer("x", dtype, shape, "input"),
        Buffer("o", dtype, shape, "output"),
        Buffer("i", "i32", shape, "output"),
    )
    routine = sort("sort", batch, n, [lambda i: x[i], lambda i: ir.rem(i, max(n, 1))], [out, index])
    data = random_array(np.random.default_rng(n), dtype, shape)
    keys, positions = run_wasm(Program("sort", [x], [out, index], routine.temps, routine.kernels), data)
    expected = np.argsort(order(data), axis=-1, kind="stable")
    np.testing.assert_array_equal(positions, expected)
    bits = lambda a: np.ascontiguousarray(a).view(f"u{a.dtype.itemsize}")  # noqa: E731
    np.testing.assert_array_equal(bits(keys), bits(np.take_along_axis(data, expected, -1)))


@pytest.mark.parametrize("num_keys", [1, 2, 3])
def test_several_keys(num_keys):
    rng = np.random.default_rng(0)
    n, dtypes = 300, ["i8", "f32", "u16"]
    inputs = [Buffer(f"x{k}", d, (2, n), "input") for k, d in enumerate(dtypes)]
    outputs = [Buffer(f"o{k}", d, (2, n), "output") for k, d in enumerate(dtypes)]
    routine = sort("sort", 2, n, [lambda i, b=b: b[i] for b in inputs], outputs, num_keys)
    program = Program("sort", inputs, outputs, routine.temps, routine.kernels)
    data = [rng.integers(0, 4, (2, n)).astype(NUMPY[d]) for d in dtypes]
    got = run_wasm(program, *data)
    for row in range(2):
        expected = np.lexsort([data[k][row] for k in reversed(range(num_keys))])
        for a, b in zip(got, data):
            np.testing.assert_array_equal(a[row], b[row][expected])


def test_interpreter_agrees():
    x, out = Buffer("x", "f32", (2, 21), "input"), Buffer("o", "f32", (2, 21), "output")
    routine = sort("sort", 2, 21, [lambda i: x[i]], [out])
    program = Program("sort", [x], [out], routine.temps, routine.kernels)
    data = random_array(np.random.default_rng(1), "f32", (2, 21))
    np.testing.assert_array_equal(run_wasm(program, data)[0], run_interpreted(program, data)[0])


@pytest.mark.parametrize("dtype", ["f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool", "bf16", "f16"])
@pytest.mark.parametrize("shape", [(1, 1), (2, 9), (3, 1000), (1, 5000)], ids=str)
def test_by_digits(dtype, shape):
    batch, n = shape
    x, out, index = Buffer("x", dtype, shape, "input"), Buffer("o", dtype, shape, "output"), Buffer("i", "i32", shape, "output")
    routine = radix_sort("sort", batch, n, [lambda i: x[i], lambda i: ir.rem(i, n)], [out, index])
    data = random_array(np.random.default_rng(n), dtype, shape)
    keys, positions = run_wasm(Program("sort", [x], [out, index], routine.temps, routine.kernels), data)
    expected = np.argsort(order(data), axis=-1, kind="stable")
    np.testing.assert_array_equal(positions, expected)
    bits = lambda a: np.ascontiguousarray(a).view(f"u{a.dtype.itemsize}")  # noqa: E731
    np.testing.assert_array_equal(bits(keys), bits(np.take_along_axis(data, expected, -1)))
