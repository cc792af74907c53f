"""How exact sums are: relative to the sum of the terms' sizes, against `math.fsum` and float64. XLA's errors on the
same data are up to 2e-7 for sums, 1e-5 for products with a vector, and 3e-7 for cumulative sums; a chain of additions
has up to 1e-2.
"""

import math

import numpy as np
import pytest
import weft
import weft.numpy as jnp

N = 1 << 18
rng = np.random.default_rng(0)
normal = (rng.normal(size=N // 2) * 1e5).astype(np.float32)
DATA = {
    "constant": np.full(N, 0.1, np.float32),
    "uniform": rng.random(N).astype(np.float32),
    "normal": rng.normal(size=N).astype(np.float32),
    "large first": np.concatenate([[1e8], np.ones(N - 1)]).astype(np.float32),
    "alternating": (np.where(np.arange(N) % 2, -1, 1) * rng.random(N) * 1e4).astype(np.float32),
    "of all sizes": (10.0 ** rng.uniform(-6, 6, N)).astype(np.float32),
    "cancelling": np.concatenate([normal, -normal[::-1]]),
}


@pytest.mark.parametrize("name", DATA)
def test_sums_are_exact_to_rounding(name):
    x = DATA[name]
    square = x.reshape(512, -1)
    total, mean, dot, rows, columns, times, onto, running, back = weft.jit(
        lambda x, a: (
            x.sum(),
            x.mean(),
            jnp.dot(x, jnp.ones_like(x)),
            a.sum(1),
            a.sum(0),
            a @ jnp.ones(a.shape[1]).astype("float32"),
            jnp.ones(a.shape[0]).astype("float32") @ a,
            jnp.cumsum(x),
            weft.lax.cumsum(a, 0, reverse=True),
        )
    )(x, square)
    wide, size = square.astype(np.float64), np.abs(square.astype(np.float64))

    def off(got, want, scale):
        return np.max(np.abs(np.asarray(got, np.float64) - want) / scale)

    whole, whole_size = math.fsum(x.tolist()), size.sum()
    for got, want, scale in (
        (total, whole, whole_size),
        (np.asarray(mean, np.float64) * N, whole, whole_size),
        (dot, whole, whole_size),
        (rows, wide.sum(1), size.sum(1)),
        (columns, wide.sum(0), size.sum(0)),
        (times, wide.sum(1), size.sum(1)),
        (onto, wide.sum(0), size.sum(0)),
        (running, np.cumsum(x.astype(np.float64)), np.cumsum(np.abs(x.astype(np.float64)))),
        (back, wide[::-1].cumsum(0)[::-1], size[::-1].cumsum(0)[::-1]),
    ):
        assert off(got, want, scale) < 2.5e-7


@pytest.mark.parametrize(
    "shape,axis",
    [
        ((1 << 25,), None),
        ((1 << 13, 1 << 12), None),
        ((1 << 13, 1 << 12), 0),
        ((1 << 12, 1 << 13), 1),
        ((64, 1 << 10, 64), 1),
        ((64, 1 << 10, 64), (0, 2)),
    ],
)
def test_ones_are_counted(shape, axis):
    x = jnp.ones(shape, "float32")
    want = np.ones(shape, bool).sum(axis)
    assert (np.asarray(weft.jit(lambda x: x.sum(axis))(x)) == want).all()
    if len(shape) == 1:
        assert float(weft.jit(lambda x: jnp.dot(x, x))(x)) == want


def test_what_is_not_finite_stays_so():
    for value in (np.inf, -np.inf, np.nan):
        for shape, at in (((5000,), 4321), ((300, 70), (150, 3)), ((300, 3), (7, 1))):
            x = np.ones(shape, np.float32)
            x[at] = value
            for axis in range(x.ndim):
                np.testing.assert_array_equal(np.asarray(weft.jit(lambda x: x.sum(axis))(x)), x.sum(axis))
    x = np.full((400, 8), 3e38, np.float32)
    assert (np.asarray(weft.jit(lambda x: x.sum(0))(x)) == np.inf).all()


LARGE = {
    "float32": (69, 4099),
    "float64": (37, 4099),
    "int32": (3, 100_003),
    "uint8": (1003, 1051),
    "bfloat16": (1003, 1051),
    "bool": (515, 2053),
}


@pytest.mark.parametrize("dtype", LARGE)
@pytest.mark.parametrize("axis", [1, None])
def test_large_arrays_are_reduced_from_several_places(dtype, axis):
    with weft.enable_x64():
        rng = np.random.default_rng(3)
        shape = LARGE[dtype]
        x = (
            jnp.asarray(rng.integers(0, 2, shape), bool)
            if dtype == "bool"
            else (
                jnp.asarray(rng.integers(0, 100, shape), dtype)
                if "int" in dtype
                else jnp.asarray(rng.normal(size=shape), dtype)
            )
        )
        wide = np.asarray(x.astype("float64" if "float" in dtype else "int64"))
        kept = lambda got: np.asarray(got.astype(wide.dtype))  # noqa: E731
        for op in ("max", "min", "any", "all"):
            np.testing.assert_array_equal(
                kept(weft.jit(lambda x: getattr(jnp, op)(x, axis))(x)), np.asarray(getattr(wide, op)(axis), wide.dtype)
            )
        total = weft.jit(lambda x: jnp.sum(x, axis, dtype="float32" if dtype == "bfloat16" else None))(x)
        np.testing.assert_allclose(
            kept(total),
            wide.sum(axis),
            rtol=0 if dtype in ("int32", "bool", "uint8") else 2.5e-7,
            atol=np.abs(wide).sum(axis).max() * 2.5e-7 * ("float" in dtype),
        )
        both = weft.jit(lambda x: (jnp.sum(x * x, axis), jnp.max(x, axis) - jnp.min(x, axis)))(x.astype("float32"))
        square = wide.astype(np.float64) ** 2
        np.testing.assert_allclose(np.asarray(both[0]), square.sum(axis), rtol=3e-7)
        np.testing.assert_array_equal(
            np.asarray(both[1]), (np.asarray(x.astype("float32")).max(axis) - np.asarray(x.astype("float32")).min(axis))
        )
