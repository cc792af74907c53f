"""The programs of tests/kernels on WebGPU: their tests run with the WebGPU device in place of wasmtime."""

import numpy as np
import pytest
import test_gemm
import test_plan
import test_random_programs
import test_scalar_math
import test_schedule
import test_sort
from kernel_harness import assert_same, random_array, run_interpreted
from weft_wasm.ir import UNARY_OPS, Binary, Buffer, Call, For, Kernel, Program, Select, Store, Unary, Var
from webgpu_harness import SUPPORTED, run_webgpu

pytestmark = [pytest.mark.usefixtures("device"), pytest.mark.xdist_group("webgpu")]


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


def test_huge_arguments():
    test_scalar_math.test_huge_arguments("f32", 6.5)


def test_float_remainder():
    test_scalar_math.test_float_remainder("f32")


@pytest.mark.parametrize("shape", [s for s in test_gemm.SHAPES if s[0] * s[1] * s[2] < 1_200_000], ids=str)
def test_gemm_shapes(shape):
    test_gemm.check(*shape, plain=True)


@pytest.mark.parametrize("dtype", ["i32", "u8", "bool"])
def test_gemm_dtypes(dtype):
    test_gemm.check(29, 35, 41, dtype=dtype, plain=True)


@pytest.mark.parametrize("shape", [(5, 7, 9), (33, 17, 65)], ids=str)
def test_gemm_packed(shape):
    """The nest that Wasm runs is right here too, in one invocation."""
    test_gemm.check(*shape)


@pytest.mark.parametrize("dtype", ["f32", "i32", "u8", "bool", "bf16", "f16"])
@pytest.mark.parametrize("shape", [(1, 0), (3, 7), (3, 33), (1, 1000)], ids=str)
def test_sequential_sort(dtype, shape):
    test_sort.test_keys_with_indices(dtype, shape)


def test_sequential_sort_by_several_keys():
    test_sort.test_several_keys(3)


@pytest.mark.parametrize("shape", [(5000, 3), (3, 9000), (1, 100_003), (300, 300)], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_sums(shape, axis):
    test_schedule.test_sums(shape, axis)
