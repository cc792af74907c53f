"""`lax.rng_uniform`: no two draws are alike, so tests ask how its numbers are spread."""

import numpy as np
import pytest
import weft
from platforms import on, under_test
from weft import lax


@pytest.mark.parametrize("platform", under_test("cpu", "wasm", "webgpu", "reference"))
@pytest.mark.parametrize("low, high", [(2.0, 6.0), (-3, 40)], ids=["floats", "integers"])
def test_numbers_lie_evenly_between_the_bounds(low, high, platform):
    kind = np.float32 if isinstance(low, float) else np.int32
    with on(platform):
        got = np.asarray(weft.jit(lambda: lax.rng_uniform(kind(low), kind(high), (4000,)))())
        other = np.asarray(weft.jit(lambda: lax.rng_uniform(kind(low), kind(high), (4000,)))())
    assert got.dtype == kind and got.min() >= low and got.max() < high and (got != other).any()
    counts, _ = np.histogram(got.astype(np.float64), np.linspace(low, high, 5))
    assert (abs(counts - 1000) < 200).all(), counts  # seven times the deviation of a count
