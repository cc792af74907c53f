"""The tests of the Wasm backend's primitives, collected again and run on WebGPU against the reference rules."""

import numpy as np
import pytest
import test_control
import test_elementwise
import test_structure
import wasm_harness
import weft
import weft.numpy as jnp
from test_control import *  # noqa: F403
from test_elementwise import *  # noqa: F403
from test_structure import *  # noqa: F403
from weft_wasm.lower.types import LoweringError

pytestmark = pytest.mark.slow


def wide(x) -> bool:
    return np.asarray(x).dtype.itemsize > 4


@pytest.fixture(autouse=True)
def on_webgpu(backend, monkeypatch):
    """What the borrowed tests compile runs on WebGPU; 64-bit dtypes are refused there."""
    checked = wasm_harness.check

    def check(fun, *args, **options):
        if not any(wide(x) for x in args):
            try:
                return checked(fun, *args, **options)
            except LoweringError as e:  # a 64-bit dtype in the middle
                assert "64" in str(e) and "WebGPU devices do not have" in str(e), e
                return None
        with weft.enable_x64(True), pytest.raises(LoweringError, match="(64|128).*WebGPU devices do not have"):
            checked(fun, *args, **options)

    monkeypatch.setattr(wasm_harness, "backend", lambda: backend)
    for module in (test_control, test_elementwise, test_structure):
        monkeypatch.setattr(module, "check", check)
    before = weft.config.platforms
    weft.config.update("jax_platforms", "webgpu")
    with weft.enable_x64(False):
        yield
    weft.config.update("jax_platforms", before)


def test_complex_numbers_are_planes():
    z = (np.arange(6) + 1j).astype(np.complex64).reshape(2, 3)
    with weft.default_device(weft.devices("webgpu")[0]):
        got = weft.jit(lambda x: (x * x + 1, jnp.exp(x * 0.1), x.sum(1), jnp.fft.fft(x)))(z)
    for g, w in zip(got, (z * z + 1, np.exp(z * 0.1), z.sum(1), np.fft.fft(z))):
        np.testing.assert_allclose(np.asarray(g), w, rtol=1e-5, atol=1e-5)
