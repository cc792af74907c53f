"""weft.nn gives what real JAX gave (nn_expected.json, written by make_expected.py); products of quantized blocks
follow their definition.
"""

import json
import pathlib
import sys

import numpy as np
import pytest
from frozen import check

import weft
import weft.numpy as jnp
from weft import nn

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from nn_cases import scope  # noqa: E402

EXPECTED = json.loads((HERE / "nn_expected.json").read_text())
SCOPE = scope(weft, jnp, np)
QUICK = [name for name in EXPECTED if name.startswith("A(")][:4]


@pytest.mark.parametrize("text", [t if t in QUICK else pytest.param(t, marks=pytest.mark.slow) for t in EXPECTED])
def test_as_jax(text):
    check(text, SCOPE, EXPECTED[text], weft.errors, tolerance={"float32": 5e-6, "complex64": 5e-6})


def blocks(x, scales):
    return np.asarray(x, np.float32) * np.repeat(np.asarray(scales, np.float32), x.shape[-1] // scales.shape[-1], -1)


@pytest.mark.slow
def test_scaled_matmul_is_the_product_of_scaled_blocks():
    rng = np.random.default_rng(0)
    x, y = [jnp.array(rng.normal(size=s), "float8_e4m3fn") for s in ((2, 3, 64), (2, 4, 64))]
    s, t = [jnp.array(2.0 ** rng.integers(-3, 3, shape), "float8_e8m0fnu") for shape in ((2, 3, 2), (2, 4, 2))]
    got = nn.scaled_matmul(x, y, s, t)
    np.testing.assert_allclose(got, np.einsum("bmk,bnk->bmn", blocks(x, s), blocks(y, t)), rtol=1e-5)
    assert nn.scaled_matmul(x, y, s, t, "bfloat16").dtype == jnp.bfloat16


@pytest.mark.slow
@pytest.mark.parametrize("mode, tolerance", [("mxfp8", 0.06), ("nvfp4", 0.35)])
def test_quantized_products_are_near_the_exact_ones(mode, tolerance):
    rng = np.random.default_rng(1)
    a, b = jnp.array(rng.normal(size=(5, 2, 64)), "float32"), jnp.array(rng.normal(size=(2, 64, 32)), "float32")
    numbers = (((2,), (1,)), ((1,), (0,)))
    config = nn.get_scaled_dot_general_config(mode)
    f = lambda a, b: nn.scaled_dot_general(a, b, numbers, configs=[config] * 3)
    exact = lambda a, b: weft.lax.dot_general(a, b, numbers)
    assert float(jnp.abs(f(a, b) - exact(a, b)).mean()) < tolerance * 64**0.5
    ct = jnp.array(rng.normal(size=(2, 5, 32)), "float32")
    for got, want in zip(weft.vjp(f, a, b)[1](ct), weft.vjp(exact, a, b)[1](ct)):
        assert float(jnp.abs(got - want).mean()) < tolerance * 64**0.5


@pytest.mark.parametrize(
    "call, words",
    [
        (
            lambda: nn.dot_product_attention(jnp.ones((1, 4, 3, 8)), jnp.ones((1, 4, 2, 8)), jnp.ones((1, 4, 2, 8))),
            ("heads", "3 and 2"),
        ),
        (
            lambda: nn.scaled_dot_general(jnp.ones((2, 30)), jnp.ones((2, 30)), (((1,), (1,)), ((), ())), configs=[]),
            ("configs", "0"),
        ),
        (lambda: nn.initializers.orthogonal()(weft.random.key(0), (3,)), ("orthogonal", "(3,)")),
        (lambda: nn.softmax([1.0]), ("softmax", "list")),
    ],
)
def test_errors_name_the_function_and_the_argument(call, words):
    with pytest.raises((TypeError, ValueError)) as e:
        call()
    assert all(w in str(e.value) for w in words), str(e.value)


@pytest.mark.parametrize("function", [nn.softmax, nn.log_softmax])
def test_what_a_mask_leaves_out_has_no_derivative(function):
    x, mask = jnp.array([[10.0, jnp.inf, -2.0], [1.0, jnp.nan, 0.2]]), jnp.array([[1, 0, 1], [0, 0, 0]], bool)
    got = weft.jacrev(lambda x: function(x, where=mask))(x)
    kept = weft.jacrev(function)(jnp.array([10.0, -2.0]))
    assert np.array_equal(got[0, ::2, 0, ::2], kept) and np.isfinite(got).all()
    assert np.count_nonzero(got) == np.count_nonzero(kept)
