"""The sort routine against NumPy's stable sorts."""

import numpy as np
import pytest
from kernel_harness import NUMPY, random_array, run_interpreted, run_wasm
from weft_wasm.ir import nodes
from weft_wasm.ir.nodes import Buffer, Program
from weft_wasm.routines.radix import radix_sort
from weft_wasm.routines.sort import sort
from weft_wasm.routines.sort_parallel import sort_parallel


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
    routine = sort("sort", batch, n, [lambda i: x[i], lambda i: nodes.rem(i, max(n, 1))], [out, index])
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


ROUTINES = {"merged": sort, "by digits": lambda *args: radix_sort(*args[:5]), "in parallel": sort_parallel}


@pytest.mark.parametrize("way", ROUTINES)
@pytest.mark.parametrize("run", [run_wasm, run_interpreted], ids=["compiled", "interpreted"])
def test_all_small_sizes(way, run):
    """Runs, passes and levels of the network come and go with the size: every one of them, several operands in two
    rows.
    """
    if run is run_interpreted:
        sizes = [0, 1, 2, 7, 8, 9, 16, 17, 24, 33]
    else:
        sizes = [*range(70), 127, 128, 129, 130, 257, 515]
    rng = np.random.default_rng(0)
    for n in sizes if way != "by digits" else sizes[1::4]:  # digits are counted alike whatever the size
        inputs = [Buffer(f"x{k}", d, (2, n), "input") for k, d in enumerate(("u8", "i32"))]
        outputs = [Buffer(f"o{k}", d, (2, n), "output") for k, d in enumerate(("u8", "i32"))]
        routine = ROUTINES[way]("sort", 2, n, [lambda i, b=b: b[i] for b in inputs], outputs, 1)
        keys, values = rng.integers(0, n // 3 + 1, (2, n)).astype(np.uint8), rng.permutation(2 * n).reshape(2, n)
        got = run(Program("sort", inputs, outputs, routine.temps, list(routine.kernels)), keys, values)
        expected = np.argsort(keys, axis=-1, kind="stable")
        for a, b in zip(got, (keys, values)):
            np.testing.assert_array_equal(a, np.take_along_axis(b, expected, -1), err_msg=str(n))


def test_interpreter_agrees():
    x, out = Buffer("x", "f32", (2, 21), "input"), Buffer("o", "f32", (2, 21), "output")
    routine = sort("sort", 2, 21, [lambda i: x[i]], [out])
    program = Program("sort", [x], [out], routine.temps, routine.kernels)
    data = random_array(np.random.default_rng(1), "f32", (2, 21))
    np.testing.assert_array_equal(run_wasm(program, data)[0], run_interpreted(program, data)[0])


@pytest.mark.parametrize(
    "dtype", ["f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool", "bf16", "f16"]
)
@pytest.mark.parametrize("shape", [(1, 1), (2, 9), (3, 1000), (1, 5000)], ids=str)
def test_by_digits(dtype, shape):
    batch, n = shape
    x, out, index = (
        Buffer("x", dtype, shape, "input"),
        Buffer("o", dtype, shape, "output"),
        Buffer("i", "i32", shape, "output"),
    )
    routine = radix_sort("sort", batch, n, [lambda i: x[i], lambda i: nodes.rem(i, n)], [out, index])
    data = random_array(np.random.default_rng(n), dtype, shape)
    keys, positions = run_wasm(Program("sort", [x], [out, index], routine.temps, routine.kernels), data)
    expected = np.argsort(order(data), axis=-1, kind="stable")
    np.testing.assert_array_equal(positions, expected)
    bits = lambda a: np.ascontiguousarray(a).view(f"u{a.dtype.itemsize}")  # noqa: E731
    np.testing.assert_array_equal(bits(keys), bits(np.take_along_axis(data, expected, -1)))
