"""weft.image gives what real JAX gave (image_expected.json, written by make_expected.py), and what the kernels'
formulas say.
"""

import json
import math
import pathlib
import sys

import numpy as np
import pytest
from frozen import check

import weft
import weft.numpy as jnp
from weft import image

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from image_cases import scope  # noqa: E402

EXPECTED = json.loads((HERE / "image_expected.json").read_text())
SCOPE = scope(weft, jnp, np)
QUICK = (
    "im.resize(x, (7, 2), 'linear')",
    "im.resize(x, (2, 5), 'nearest', antialias=False)",
    "im.resize(x, (2, 2), 'foo')",
)


@pytest.mark.parametrize("text", [t if t in QUICK else pytest.param(t, marks=pytest.mark.slow) for t in EXPECTED])
def test_as_jax(text):
    check(text, SCOPE, EXPECTED[text], weft.errors, tolerance={"float32": 2e-5, "complex64": 2e-5})


def keys_cubic(x):
    x = abs(x)
    return 1.5 * x**3 - 2.5 * x**2 + 1 if x < 1 else -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2 if x < 2 else 0


def lanczos(a):
    return lambda x: np.sinc(x) * np.sinc(x / a) if abs(x) < a else 0


KERNELS = {"linear": lambda x: max(0, 1 - abs(x)), "cubic": keys_cubic, "lanczos3": lanczos(3), "lanczos5": lanczos(5)}


@pytest.mark.slow
@pytest.mark.parametrize("method", KERNELS)
@pytest.mark.parametrize("sizes", [(5, 9), (9, 4)])
def test_weights_follow_the_formula(method, sizes):
    """One axis, as image libraries do it: the kernel stretched by the ratio of sizes where the image shrinks, its
    weights with the sum 1.
    """
    n, m = sizes
    ratio = n / m
    width = max(ratio, 1)
    weights = np.array([[KERNELS[method](((j + 0.5) * ratio - 0.5 - i) / width) for i in range(n)] for j in range(m)])
    x = np.random.default_rng(0).normal(size=n)
    np.testing.assert_allclose(
        image.resize(jnp.array(x, "float32"), (m,), method),
        (weights / weights.sum(1, keepdims=True)) @ x,
        rtol=1e-4,
        atol=1e-5,
    )


@pytest.mark.slow
def test_area_averages_and_nearest_copies():
    x = np.arange(24.0, dtype="float32").reshape(4, 6)
    np.testing.assert_allclose(image.resize(x, (2, 2), "area"), x.reshape(2, 2, 2, 3).mean((1, 3)), rtol=1e-6)
    np.testing.assert_array_equal(image.resize(x, (8, 6), "nearest"), x.repeat(2, 0))
    places = [math.floor((i + 0.5) * 6 / 4) for i in range(4)]
    np.testing.assert_array_equal(image.resize(x, (4, 4), "nearest"), x[:, places])


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: image.resize(jnp.ones((2, 2)), (2, 2, 2), "linear"), ("resize", "(2, 2, 2)", "(2, 2)")),
        (lambda: image.resize(jnp.ones((0, 2)), (1, 2), "linear"), ("resize", "size 0")),
        (lambda: image.resize([1.0], (2,), "linear"), ("resize", "list")),
        (lambda: image.resize(jnp.ones(2), (2,), "box"), ("box", "lanczos3")),
        (
            lambda: image.scale_and_translate(jnp.ones((2, 2)), (3, 3), (0,), jnp.ones(1), jnp.ones(1), "linear"),
            ("axis 1", "spatial_dims"),
        ),
    ],
)
def test_errors_name_the_function_and_the_argument(call, words):
    with pytest.raises((TypeError, ValueError)) as e:
        call()
    assert all(w in str(e.value) for w in words), str(e.value)
