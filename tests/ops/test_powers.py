"""Powers whose exponents are no floats: an odd one must not become an even one, on any backend."""

import numpy as np
import platforms
import pytest

import weft
from weft import lax


@pytest.mark.parametrize("platform", platforms.under_test("cpu", "reference", "wasm", "webgpu"))
@pytest.mark.parametrize("exponent", [(1 << 53) + 1, (1 << 62) + 1, -(1 << 62) - 1, 1 << 62])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_an_odd_exponent_keeps_the_sign(platform, exponent, dtype):
    x = np.array([-1, 1, 0.5, -2], dtype)
    zero, large = np.array([0, np.inf]) if exponent > 0 else np.array([np.inf, 0])
    sign = -1 if exponent % 2 else 1
    got = weft.jit(lambda v: lax.integer_pow(v, exponent))(weft.device_put(x, weft.devices(platform)[0]))
    # of complex numbers that are this large, backends give infinities or NaNs
    count = 2 if dtype == "complex64" else 4
    np.testing.assert_array_equal(np.asarray(got)[:count], np.array([sign, 1, zero, sign * large], dtype)[:count])
