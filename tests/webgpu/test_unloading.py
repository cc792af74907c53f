"""Programs without references are removed from the device, with their constants and pipelines."""

import gc

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from platforms import first_device, need


@pytest.mark.parametrize("platform", ["wasm", "webgpu"])
def test_a_program_is_unloaded_with_its_function(platform):
    need(platform)
    device = first_device(platform)
    loaded = device.backend.runtime.device

    def held():
        gc.collect()
        return loaded.stats()["allocated"], len(loaded._pipelines) if platform == "webgpu" else loaded.live

    with weft.default_device(device):
        x = jnp.arange(1000.0)
        g = weft.jit(lambda x: (x * 3).sum())
        g(x)
        f = weft.jit(lambda x: jnp.abs(jnp.fft.fft(x))[:2])  # has a table of roots
        np.testing.assert_allclose(f(x)[0], 499500, rtol=1e-6)
        with_f = held()
        del f
        weft.clear_caches()
        without_f = held()
        assert without_f[0] < with_f[0] and without_f[1] < with_f[1]
        assert g(x) == 3 * 499500
