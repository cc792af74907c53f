"""What a program asks of accuracy is given, or refused: of float32 products that are to be computed in float64, and
of elementary functions.
"""

import numpy as np
import pytest

import weft
from weft import lax
from weft.errors import BackendError

T = np.linspace(-5, 5, 1001).astype(np.float32)


@pytest.fixture(autouse=True)
def on_wasm():
    with weft.default_device(weft.devices("wasm")[0]):
        yield


def test_products_in_float64():
    rng = np.random.default_rng(0)
    x, y = (
        rng.standard_normal((2, 9, 300)).astype(np.float32) * 100,
        rng.standard_normal((2, 300, 5)).astype(np.float32) * 100,
    )
    exact = (x.astype(np.float64) @ y.astype(np.float64)).astype(np.float32)
    run = lambda precision: np.asarray(weft.jit(lambda x, y: lax.batch_matmul(x, y, precision=precision))(x, y))
    for precision in (
        "F64_F64_F64",
        lax.DotAlgorithmPreset.F64_F64_F64,
        lax.DotAlgorithm("float32", "float32", "float64"),
    ):
        np.testing.assert_array_equal(run(precision), exact)
    assert (run("F32_F32_F32") != exact).any()
    for precision in ("BF16_BF16_F32", "TF32_TF32_F32", "highest", None):
        np.testing.assert_allclose(run(precision), exact, rtol=1e-5, atol=0.5)


@pytest.mark.parametrize(
    "accuracy, exact",
    [
        (None, False),
        (lax.AccuracyMode.HIGHEST, False),
        (lax.Tolerance(ulps=5), False),
        (lax.Tolerance(rtol=1e-6), False),
        (lax.Tolerance(ulps=1), True),
        (lax.Tolerance(rtol=6.1e-8), True),
        (lax.Tolerance(atol=1e-7), True),
    ],
)
def test_functions_within_a_tolerance(accuracy, exact):
    for function, reference in ((lax.sin, np.sin), (lax.tanh, np.tanh)):
        got = np.asarray(weft.jit(lambda x: function(x, accuracy=accuracy))(T))
        want = reference(T.astype(np.float64)).astype(np.float32)
        assert (got == want).all() == exact
        np.testing.assert_allclose(got, want, rtol=5e-7)


def test_what_no_float_can_hold_is_refused():
    for accuracy in (lax.Tolerance(rtol=1e-9), lax.Tolerance(atol=1e-12)):
        with pytest.raises(
            BackendError, match=r"sin: .* float32 with a relative error of 6.0e-08 at best(.|\n)*test_accuracy.py"
        ):
            weft.jit(lambda x: lax.sin(x, accuracy=accuracy))(T)
    with pytest.raises(BackendError, match="exp: .*complex"):
        weft.jit(lambda x: lax.exp(x, accuracy=lax.Tolerance(ulps=9)))(T.astype(np.complex64))
    with pytest.raises(BackendError, match="exp: .*float64"), weft.enable_x64(True):
        weft.jit(lambda x: lax.exp(x, accuracy=lax.Tolerance(ulps=1)))(T.astype(np.float64))
    with pytest.raises(BackendError, match="exp: "):  # an absolute error says nothing of a function without bounds
        weft.jit(lambda x: lax.exp(x, accuracy=lax.Tolerance(atol=1e-5)))(T)
