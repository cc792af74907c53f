"""Products of products on XLA with its optimiser, which may not multiply them in an order that overflows."""

import itertools

import numpy as np
import pytest
from platforms import need

import weft

need("cpu")
import weft.numpy as jnp
from weft import lax
from weft.base.config import enable_x64

# An exponent: four such factors are more than the dtype holds.
POWERS = {"float16": 8, "bfloat16": 100, "float32": 100, "float64": 900, "complex64": 100, "complex128": 900}
one = lambda x: np.ones((), x.dtype)
PRODUCTS = {
    "reduce_prod": lambda x: lax.reduce_prod(x, (0,)),
    "prod": lambda x: jnp.prod(x, axis=0),
    "reduce": lambda x: lax.reduce(x, one(x), lambda a, b: a * b + 0, (0,)),
    "reduce with a call": lambda x: lax.reduce(x, one(x), lambda a, b: weft.jit(lambda: a * b + 1 - 1)(), (0,)),
    "window": lambda x: lax.reduce_window(x, one(x), lax.mul, x.shape[:1] + (1,), (1, 1), "VALID")[0],
    "cumprod": lambda x: lax.cumprod(x, 0)[-1],
    "scatter": lambda x: jnp.ones((1, 3), x.dtype).at[jnp.zeros(len(x), int)].multiply(x)[0],
    "gradient": lambda x: weft.vmap(weft.grad(lambda x: jnp.prod(x).real), 1, 1)(x)[0],
}


@pytest.mark.parametrize("n", [4, 17, 100])
@pytest.mark.parametrize("dtype", POWERS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_factors_are_made_before_they_are_multiplied(name, dtype, n):
    power, product = POWERS[dtype], PRODUCTS[name]
    with enable_x64(True):
        x = np.full((n, 3), 2.0**power).astype(jnp.dtype(dtype))
        np.testing.assert_array_equal(np.asarray(weft.jit(lambda x: product(x * 2.0**-power))(x)), np.ones(3))
        np.testing.assert_array_equal(np.asarray(weft.jit(lambda x: product(x / 2.0**power))(x)), np.ones(3))


@pytest.mark.parametrize("dtype", POWERS)
def test_a_product_with_a_nan_is_nan(dtype):
    with enable_x64(True):
        x = np.ones((4, 3)).astype(jnp.dtype(dtype))
        x[2, 1] = np.nan
        got = np.asarray(weft.jit(lambda x: lax.reduce_prod(x * 2.0, (0,)))(x)).real
        np.testing.assert_array_equal(got.astype(float), [16, np.nan, 16])


ON_CPU = ("F16_F16_F16", "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "F32_F32_F32", "F64_F64_F64")


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
@pytest.mark.parametrize("name", ON_CPU)
def test_algorithms_of_small_products(name, dtype):
    """XLA refuses most algorithms where a product is a vector times a number, or of two vectors."""
    algorithm = lax.DotAlgorithmPreset[name]
    numbers = np.array([3, 1, 2, 0, 5, 4, 1, 2]).astype(dtype)
    for m, k, n in itertools.product((1, 2), repeat=3):
        x, y = numbers[: m * k].reshape(m, k), numbers[-k * n :].reshape(k, n)
        got = weft.jit(lambda x, y: lax.dot(x, y, precision=algorithm))(x, y)
        np.testing.assert_array_equal(np.asarray(got), x @ y)
    for x, y, dimensions in (
        (numbers, numbers[2], ((), ())),
        (numbers, numbers, ((0,), (0,))),
        (numbers[2], numbers, ((), ())),
    ):
        got = weft.jit(lambda x, y: lax.dot_general(x, y, (dimensions, ((), ())), precision=algorithm))(x, y)
        np.testing.assert_array_equal(np.asarray(got), np.tensordot(x, y, dimensions))
