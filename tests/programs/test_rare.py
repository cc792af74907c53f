"""Combinations that random programs hardly ever meet, with the places of the compiler that only these reach:
tools/random_coverage/reasons.toml says that they are tested here.
"""

import functools
import operator

import ml_dtypes
import numpy as np
import pytest
from platforms import on, under_test

import weft
import weft.numpy as jnp
from weft import lax
from weft.core.interpret import interpret
from weft.experimental import pallas as pl


@pytest.fixture(params=under_test("cpu", "wasm", "webgpu"), autouse=True)
def platform(request):
    with on(request.param):
        yield request.param


def check(f, *args) -> None:
    """The results of a function are those of the reference interpreter."""
    got, want = weft.tree.leaves(weft.jit(f)(*args)), interpret(weft.make_jaxpr(f)(*args), list(args))
    for g, w in zip(got, want, strict=True):
        assert g.shape == np.shape(w) and g.dtype == w.dtype
        np.testing.assert_allclose(
            np.asarray(g).astype("complex64"), np.asarray(w).astype("complex64"), rtol=1e-4, atol=1e-5
        )


def over(kernel, block, x, grid=3):
    shape = weft.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(kernel, shape, grid=grid, in_specs=[block], out_specs=block)


def test_unsigned_integers_of_few_bits_are_shifted_as_signed_ones():
    x = np.arange(16).astype(ml_dtypes.uint4)
    check(lambda x: lax.shift_right_arithmetic(x, jnp.full((16,), 1, "uint4")).astype("int32"), x)


@pytest.mark.parametrize("name, values", [("float8_e8m0fnu", [1, 2, 0.5, 4]), ("int4", [-4, 3, 0]), ("uint2", [1, 2])])
def test_extrema_of_formats(name, values):
    x = np.array(values).astype(getattr(ml_dtypes, name))
    check(lambda x: [f(x, (0,)).astype("float32") for f in (lax.reduce_max, lax.reduce_min)], x)
    check(lambda x: [f(x, (0,)).astype("float32") for f in (lax.reduce_max, lax.reduce_min)], x[:0])


def test_complex_updates_at_places_of_few_bits_in_each_member_of_a_batch():
    x = (np.arange(12).reshape(3, 4) + 1j).astype(np.complex64)
    places, updates = np.array([[1], [3], [0]], np.int8), np.array([10, 20, 30j], np.complex64)
    numbers = lax.ScatterDimensionNumbers(
        (), (1,), (1,), operand_batching_dims=(0,), scatter_indices_batching_dims=(0,)
    )
    check(lambda x, u: lax.scatter_mul(x, places, u, numbers), x, updates)


def test_a_product_of_complex_and_real_numbers_that_shall_be_real():
    x, y = (np.arange(6).reshape(2, 3) + 1j).astype(np.complex64), np.ones((3, 2), np.float32)
    check(lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type="float32"), x, y)


def test_more_numbers_from_memory_than_a_loop_holds():
    scalars = [np.float32(k) for k in range(30)]
    check(lambda x, *s: functools.reduce(operator.add, [x * v for v in s]), np.ones(50, np.float32), *scalars)


def test_a_branch_of_a_kernel_needs_a_block_as_a_whole():
    def kernel(x, o):
        v = x[...]
        o[...] = lax.cond(v[0] > 1, lax.cumsum, lax.sort, v)

    x = np.arange(12, dtype=np.float32)[::-1].reshape(4, 3)
    check(over(kernel, pl.BlockSpec((4, None), lambda i: (0, i)), x), x)


def test_a_kernel_has_equal_parts():
    def kernel(x, o):
        v = x[...]
        for _ in range(6):
            v = jnp.tanh(v @ v) + lax.cumsum(v)
        o[...] = v

    x = np.linspace(-1, 1, 48, dtype=np.float32).reshape(3, 4, 4)
    check(over(kernel, pl.BlockSpec((None, 4, 4), lambda i: (i, 0, 0)), x), x)


def test_a_kernel_calls_the_host():
    def kernel(x, o):
        o[...] = weft.pure_callback(lambda v: np.asarray(v) * 2, weft.ShapeDtypeStruct((4,), "float32"), x[...])

    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    check(over(kernel, pl.BlockSpec((None, 4), lambda i: (i, 0)), x), x)


def test_the_index_of_a_loop_is_an_operand_of_a_kernel():
    def kernel(k, o):
        o[...] = 10 * k[...] + lax.iota("int32", 2)

    rows = pl.pallas_call(kernel, weft.ShapeDtypeStruct((2,), "int32"))
    check(lambda: lax.map(rows, lax.iota("int32", 3)))
    check(lambda: lax.fori_loop(0, 3, lambda k, x: x + rows(k), jnp.zeros(2, "int32")))
