"""Windows as an axis: its elements are those of NumPy's sliding windows, wherever the axis is placed."""

import numpy as np
import pytest

import weft.numpy as jnp
from platforms import on, under_test
from weft import lax
from weft.primitives.window import MANY, unfold


@pytest.mark.parametrize(
    "size,window,stride,dilation",
    [(9, 3, 1, 1), (9, 3, 2, 2), (9, 9, 1, 1), (9, 8, 1, 1), (2, 3, 1, 1), (3 * MANY, MANY + 1, 1, 1)],
)
def test_places_go_to_any_axis(size, window, stride, dilation):
    x = np.arange(2 * size * 3, dtype=np.float32).reshape(2, size, 3)
    starts = np.arange(0, size - (window - 1) * dilation, stride)
    want = x[:, starts[:, None] + np.arange(window) * dilation]
    for to in (None, 1, 2, 3):
        got = np.asarray(unfold(jnp.asarray(x), 1, window, stride, dilation, to))
        np.testing.assert_array_equal(got, np.moveaxis(want, 2, 2 if to is None else to))


@pytest.mark.parametrize("platform", under_test())
@pytest.mark.parametrize("size", [4, 100, (1 << 63) - 1])
def test_windows_that_are_larger_than_the_array_have_no_place(platform, size):
    with on(platform):
        out = lax.reduce_window(np.ones((3, 5), np.float32), -np.inf, lax.max, (size, 2), (1, 1), "VALID")
    assert out.shape == (0, 4) and np.asarray(out).size == 0
