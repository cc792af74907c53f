"""Running reductions along long axes: in parts on some backends, so sizes around those of parts, and errors that
don't grow with the axis.
"""

import numpy as np
import pytest
import weft
from platforms import need, under_test
from weft import lax

PLATFORMS = under_test("wasm", "webgpu")  # XLA scans as jax does
DTYPES = {"wasm": (np.float32, np.float64), "webgpu": (np.float32,)}
RUNNING = {
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    "cummax": np.maximum.accumulate,
    "cummin": np.minimum.accumulate,
    "cumlogsumexp": np.logaddexp.accumulate,
}


def on(platform: str, name: str, x: np.ndarray, axis: int = 0, reverse: bool = False) -> np.ndarray:
    need(platform)
    with weft.default_device(weft.devices(platform)[0]), weft.enable_x64(x.dtype == np.float64):
        return np.asarray(weft.jit(lambda x: getattr(lax, name)(x, axis=axis, reverse=reverse))(x))


def running(name: str, x: np.ndarray, axis: int, reverse: bool) -> np.ndarray:
    x = np.flip(x, axis) if reverse else x
    out = RUNNING[name](x.astype(np.longdouble), axis=axis)
    return np.flip(out, axis) if reverse else out


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", RUNNING)
@pytest.mark.parametrize(
    "shape,axis",
    [((64,), 0), ((65,), 0), ((4097,), 0), ((2, 129, 3), 1), ((3, 16385), 1), ((16448, 2), 0), ((70_001,), 0)],
    ids=str,
)
def test_parts_of_all_sizes(name, shape, axis, platform):
    rng = np.random.default_rng(0)
    x = rng.choice([-1, 1], shape) * (1 + rng.normal(size=shape) / 1e6) if name == "cumprod" else rng.normal(size=shape)
    for dtype in DTYPES[platform][-1:]:
        given = x.astype(dtype)
        for reverse in (False, True):
            want = running(name, given, axis, reverse)
            scale = running("cumsum", abs(given), axis, reverse) if name == "cumsum" else np.maximum(abs(want), 1)
            error = abs(on(platform, name, given, axis, reverse) - want) / scale / np.finfo(dtype).eps
            assert error.max() <= (2000 if name == "cumprod" else 5), (reverse, error.max())


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", ["cumsum", "cumlogsumexp"])
def test_errors_do_not_grow_along_the_axis(name, platform):
    """Of 500,000 elements an addition after the other has lost hundreds of units in the last place."""
    rng = np.random.default_rng(1)
    for dtype in DTYPES[platform]:
        for x in (
            rng.uniform(size=500_000),
            np.linspace(0, 1, 500_000),
            *([rng.normal(size=500_000) - 30] if name == "cumlogsumexp" else []),
        ):
            x = x.astype(dtype)
            want = (
                np.cumsum(x.astype(np.longdouble))
                if name == "cumsum"
                else np.log(np.cumsum(np.exp(x.astype(np.longdouble))))
            )
            error = abs(on(platform, name, x) - want) / np.spacing(np.maximum(abs(want), 1).astype(dtype))
            assert error.max() <= 4, (dtype, error.max(), error.argmax())


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("n", [40, 20_000])
def test_special_values_of_running_logarithms_of_sums(platform, n):
    inf = np.inf
    for head in (
        [-inf, -inf, 1, -inf, 2],
        [inf, 1, inf, -inf],
        [-inf, 3, inf, 4, inf],
        [1, np.nan, 2, inf],
        [-1e30, 0, 1e30, 5],
        [0, -1000, 0.5, 90, 89.5],
        [-inf] * 9,
    ):
        x = np.resize(np.float32(head[-1]), n)
        x[: len(head)] = head
        x[n // 2 : n // 2 + len(head)] = head
        with np.errstate(invalid="ignore"):
            want = np.logaddexp.accumulate(x.astype(np.float64))
        np.testing.assert_allclose(on(platform, "cumlogsumexp", x), want, rtol=1e-6)
