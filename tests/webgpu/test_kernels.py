"""The programs of tests/kernels on WebGPU: their tests run with the WebGPU device in place of wasmtime."""

import numpy as np
import pytest
import test_gemm
import test_plan
import test_random_programs
import test_scalar_math
import test_schedule
import test_sort
import test_windows
from kernel_harness import assert_same, random_array, run_interpreted
from random_kernels import Kernels
from weft_wasm.ir.nodes import (
    Assign,
    Binary,
    Buffer,
    Call,
    Const,
    Declare,
    For,
    Kernel,
    Local,
    Program,
    Store,
    Var,
    f32,
    i32,
    maximum,
)
from weft_wasm.routines.register_tiles import tiled_product, tiled_windows
from weft_wasm.routines.sort_parallel import sort_parallel
from webgpu_harness import SUPPORTED, kernels, run_webgpu

pytestmark = pytest.mark.usefixtures("device")


@pytest.fixture(autouse=True)
def on_webgpu(monkeypatch):
    """Everything that the borrowed tests compile runs on WebGPU."""
    for module in (test_gemm, test_plan, test_random_programs, test_scalar_math, test_schedule, test_sort):
        monkeypatch.setattr(module, "run_wasm", run_webgpu)
    monkeypatch.setattr(test_random_programs, "DTYPES", SUPPORTED)
    monkeypatch.setattr(test_random_programs, "COMPUTE", [d for d in SUPPORTED if d not in ("f16", "bf16")])
    monkeypatch.setattr(test_scalar_math, "N", 20_000)


@pytest.mark.parametrize("block", range(4))
def test_elementwise(block):
    for seed in range(20 * block, 20 * block + 20):
        rng = np.random.default_rng(seed)
        program = test_random_programs.elementwise_program(rng)
        inputs = [random_array(rng, b.dtype, b.shape) for b in program.inputs]
        for a, b in zip(run_webgpu(program, *inputs), run_interpreted(program, *inputs)):
            assert_same(a, b, f"seed {seed}\n{program}")


@pytest.mark.parametrize("seed", [k for k in range(36) if k % 9 not in (4, 5, 8)])  # the others are 64-bit dtypes
def test_reductions(seed):
    test_random_programs.test_reductions(seed)


@pytest.mark.parametrize("block", range(4))
def test_kernels_and_control_flow(block):
    for seed in range(100 + 5 * block, 100 + 5 * block + 5):
        made = Kernels(seed)
        program, data = made.program(), made.data()
        for got, want in zip(run_webgpu(program, *data), run_interpreted(program, *data), strict=True):
            np.testing.assert_array_equal(got, want, f"seed {seed}\n{program}")


@pytest.mark.parametrize("extent", [-3, 0, 1, 17, 100])
def test_dynamic_extents(extent):
    test_random_programs.test_dynamic_extents(extent, 0)


@pytest.mark.parametrize("index", [-5, 0, 1, 2, 7])
def test_control_flow(index):
    test_random_programs.test_control_flow(index)


@pytest.mark.parametrize("seed", range(12))
def test_plans(seed):
    test_plan.test_no_overlap_of_live_buffers(seed)


@pytest.mark.parametrize("kind", ["if", "switch", "while"])
def test_conditional_writes_survive(kind):
    test_plan.test_conditional_writes_survive(kind)


def test_loop_carries():
    test_plan.test_loop_carries_live_through_the_loop()


@pytest.mark.parametrize("n", [1, 37])
def test_in_place(n):
    test_plan.test_in_place(n)


@pytest.mark.parametrize("case", ["read later", "other index", "read after the write"])
def test_not_in_place(case):
    test_plan.test_not_in_place(case)


@pytest.mark.parametrize("fn", [f for f in test_scalar_math.CASES if f not in ("lgamma", "digamma")])
def test_accuracy(fn):
    test_scalar_math.test_accuracy(fn, "f32")


@pytest.mark.parametrize("fn", test_scalar_math.CASES)
def test_special_values(fn):
    test_scalar_math.test_special_values_and_both_paths(fn, "f32")


@pytest.mark.parametrize("fn", ["pow", "atan2", "nextafter"])
def test_two_argument_special_values(fn):
    test_scalar_math.test_two_argument_special_values(fn, "f32")


def test_powers_keep_the_low_bits_of_the_exponent():
    """exp(y · log x) would multiply the error of the logarithm by up to 88."""
    rng = np.random.default_rng(4)
    x = np.concatenate(
        [np.exp(rng.uniform(-80, 80, 20_000)), 1 + rng.normal(size=20_000) / 1000, rng.uniform(0, 4, 20_000)]
    ).astype(np.float32)
    limit = 87 / np.maximum(abs(np.log(x.astype(np.float64))), 1e-6)
    y = (limit * rng.uniform(-1, 1, x.size)).astype(np.float32)
    want = x.astype(np.float64) ** y
    error = abs(test_scalar_math.evaluate("pow", x, y) - want) / np.spacing(want.astype(np.float32))
    assert error.max() <= 2.5, (error.max(), x[error.argmax()], y[error.argmax()])


def test_huge_arguments():
    test_scalar_math.test_huge_arguments("f32", 6.5)


def test_float_remainder():
    test_scalar_math.test_float_remainder("f32", 0)


@pytest.mark.parametrize("shape", [s for s in test_gemm.SHAPES if s[0] * s[1] * s[2] < 1_200_000], ids=str)
def test_gemm_shapes(shape):
    test_gemm.check(*shape, plain=True)


@pytest.mark.parametrize("dtype", ["i32", "u8", "bool"])
def test_gemm_dtypes(dtype):
    test_gemm.check(29, 35, 41, dtype=dtype, plain=True)


@pytest.mark.parametrize("tile", [(4, 4), (5, 7), None], ids=str)
@pytest.mark.parametrize("shape", [(5, 7, 9), (33, 17, 65), (97, 131, 77), (9, 300, 70), (4, 4, 5000)], ids=str)
def test_gemm_in_registers(shape, tile):
    epilogue = lambda bias, value: maximum(value + bias, 0.0)  # noqa: E731
    test_gemm.check(*shape, routine=tiled_product, tile=tile, batch=2, epilogue=epilogue)


@pytest.mark.parametrize("case", test_windows.CASES)
def test_windows_in_registers(case):
    test_windows.check(case, run_webgpu, routine=tiled_windows, tile=(3, 4))


@pytest.mark.parametrize("shape", [(5, 7, 9), (33, 17, 65)], ids=str)
def test_gemm_packed(shape):
    """The nest that Wasm runs is right here too, in one invocation."""
    test_gemm.check(*shape)


def test_sequential_sort():
    test_sort.test_keys_with_indices("f32", (3, 33))


@pytest.mark.parametrize("dtype", ["f32", "i32", "u8", "bool", "bf16", "f16"])
@pytest.mark.parametrize("shape", [(1, 0), (1, 1), (3, 2), (3, 7), (2, 64), (3, 33), (1, 5000)], ids=str)
def test_parallel_sort(dtype, shape, monkeypatch):
    monkeypatch.setattr(test_sort, "sort", sort_parallel)
    test_sort.test_keys_with_indices(dtype, shape)


@pytest.mark.parametrize("num_keys", [1, 2, 3])
def test_parallel_sort_by_several_keys(num_keys, monkeypatch):
    monkeypatch.setattr(test_sort, "sort", sort_parallel)
    test_sort.test_several_keys(num_keys)


@pytest.mark.parametrize("shape", [(5000, 3), (3, 9000), (1, 100_003), (300, 300)], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_sums(shape, axis):
    test_schedule.test_sums(shape, axis)


def test_softmax_shared_by_a_workgroup():
    """Reductions and parallel loops over one row, each of which reads what the one before wrote."""
    rows, n = 5, 3000
    x, out = Buffer("x", "f32", (rows, n), "input"), Buffer("out", "f32", (rows, n), "output")
    r, j, k, m, q = (Var(name) for name in "rjkmq")
    top, total = Local("top", "f32"), Local("total", "f32")
    body = [
        For(
            r,
            rows,
            [
                Declare(top, f32(float("-inf"))),
                For(j, n, [Assign(top, Binary("max", top, x[r * n + j]))], "reduce"),
                For(k, n, [Store(out, r * n + k, Call("exp", x[r * n + k] - top))], "parallel"),
                Declare(total, f32(0.0)),
                For(m, n, [Assign(total, total + out[r * n + m])], "reduce"),
                For(q, n, [Store(out, r * n + q, out[r * n + q] / total)], "parallel"),
            ],
            "parallel",
        )
    ]
    program = Program("softmax", [x], [out], [], [Kernel("softmax", body)])
    data = np.random.default_rng(0).normal(size=(rows, n)).astype(np.float32)
    e = np.exp(data - data.max(1, keepdims=True))
    np.testing.assert_allclose(run_webgpu(program, data)[0], e / e.sum(1, keepdims=True), rtol=1e-5)
    (text,) = kernels(program)
    assert text.count("storageBarrier") == 2 and "var<workgroup>" in text


BITWISE, ARITHMETIC = ["and", "or", "xor"], ["add", "mul", "min", "max"]
REDUCTIONS = [
    (dtype, op)
    for dtype in ("bool", "i8", "u16", "i32", "u32", "f32")
    for op in (BITWISE if dtype == "bool" else ARITHMETIC if dtype == "f32" else BITWISE + ARITHMETIC)
]


@pytest.mark.parametrize("dtype,op", REDUCTIONS)
def test_reductions_shared_by_a_workgroup(dtype, op):
    n, rng = 1001, np.random.default_rng(0)
    x, out, i, j, acc = (
        Buffer("x", dtype, (3, n), "input"),
        Buffer("out", dtype, (3,), "output"),
        Var("i"),
        Var("j"),
        Local("acc", dtype),
    )
    start = Const(True if dtype == "bool" else 3, dtype)
    body = [Declare(acc, start), For(j, n, [Assign(acc, Binary(op, acc, x[i * n + j]))], "reduce"), Store(out, i, acc)]
    program = Program("reduce", [x], [out], [], [Kernel("reduce", [For(i, 3, body, "parallel")])])
    assert "var<workgroup>" in kernels(program)[0]
    data = random_array(rng, dtype, x.shape)
    if dtype == "f32":
        data = np.nan_to_num(data, posinf=1, neginf=-1).clip(-2, 2) if op in ("add", "mul") else data
    for a, b in zip(run_webgpu(program, data), run_interpreted(program, data)):
        if dtype == "f32" and op in ("add", "mul"):
            np.testing.assert_allclose(a, b, rtol=1e-4)
        else:
            assert_same(a, b, op)


@pytest.mark.parametrize("n", [1 << 16, 300_000])
def test_a_sum_of_many_ones_is_exact(n):
    x, out, j, acc = (
        Buffer("x", "f32", (n,), "input"),
        Buffer("out", "f32", (), "output"),
        Var("j"),
        Local("acc", "f32"),
    )
    body = [Declare(acc, f32(0.0)), For(j, n, [Assign(acc, acc + x[j])], "reduce"), Store(out, i32(0), acc)]
    assert run_webgpu(Program("sum", [x], [out], [], [Kernel("sum", body)]), np.ones(n))[0] == n
