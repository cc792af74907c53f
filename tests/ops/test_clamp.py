"""Complex numbers are clamped by their real parts, as in jax 0.10.2 on XLA (docs/decisions/027), on every backend."""

import numpy as np
import platforms
import pytest

import weft
from weft import lax

NAN = float("nan")
CASES = np.array(
    [  # low, x, high, what jax gives
        (0, 1 + 2j, 1, 1 + 2j),
        (0, 3 - 1j, 1, 1),
        (0, 1j, 1j, 0),
        (2j, 1j, 1, 2j),
        (1, 0.5 + 9j, 2j, 2j),
        (0, complex(NAN, 0), 2, 2),
        (0, complex(1, NAN), 2, complex(1, NAN)),
        (0, 1, complex(NAN, 0), complex(NAN, 0)),
        (0, 1, complex(1, NAN), 1),
        (complex(NAN, 0), 1, 2, 1),
    ],
    np.complex64,
)


@pytest.mark.parametrize("platform", platforms.under_test("cpu", "reference", "wasm", "webgpu"))
def test_complex_numbers_are_clamped_by_their_real_parts(platform):
    low, x, high, want = CASES.T
    with platforms.on(platform):
        for got in (
            lax.clamp(low, x, high),
            weft.jit(lax.clamp)(low, x, high),
            [lax.clamp(a, b[None], c)[0] for a, b, c in CASES[:, :3]],
        ):
            np.testing.assert_array_equal(np.asarray(got), want)


def test_they_have_no_derivative():
    with pytest.raises(TypeError, match="complex64"):
        weft.jvp(lambda x: lax.clamp(np.complex64(0), x, np.complex64(2)), (CASES[:, 1],), (CASES[:, 1],))


@pytest.mark.parametrize("platform", platforms.under_test("cpu", "reference", "wasm", "webgpu"))
def test_booleans_are_clamped(platform):
    """All combinations, more than once, so that vectors have them too; False is less than True."""
    low, x, high = np.tile(np.array(np.meshgrid(*[[False, True]] * 3)).reshape(3, -1), 5)
    with platforms.on(platform):
        for got in (lax.clamp(low, x, high), weft.jit(lax.clamp)(low, x, high)):
            np.testing.assert_array_equal(np.asarray(got), np.minimum(np.maximum(x, low), high))
