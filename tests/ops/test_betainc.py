"""The incomplete beta function and its derivative against mpmath, of parameters up to 1e30: nothing may be lost
where large numbers cancel.
"""

import functools
import math

import mpmath
import numpy as np
import pytest
from platforms import under_test

import weft
import weft.numpy as jnp
from weft import lax

PLATFORMS = [
    (platform, dtype)
    for platform in under_test("cpu", "reference", "wasm", "webgpu")
    for dtype in ("float32", "float64")
    if (platform, dtype) != ("webgpu", "float64")
]
RNG = np.random.default_rng(5)


def _points(dtype: str) -> list[tuple[float, float, float]]:
    """Around the mean of the beta distribution, where its integral is neither 0 nor 1; what overflowed; and next to
    subnormal numbers.
    """
    points = [
        (5.55e7, 6.8, 0.9999997),
        (6.8, 5.55e7, 3e-7),
        (2e15, 1e15, 0.6666667),
        (1e30, 1e30, 0.5),
        (3.0, 4.0, 1e-9),
        (0.25, 1e8, 1e-9),
        (5000.0, 5000.0, 0.51),
        (0.6, 0.6, 1.75e-38),
        (0.07, 0.07, 1.6e-307),
    ]
    for most in (1, 3, 5, 8, 12):
        for _ in range(10):
            a, b = 10 ** RNG.uniform(-1, most, 2)
            mean = a / (a + b)
            points.append(
                (
                    a,
                    b,
                    np.clip(
                        mean + RNG.normal() * 2 * math.sqrt(mean * (1 - mean) / (a + b + 1)), mean / 2, (1 + mean) / 2
                    ),
                )
            )
    rounded = [tuple(map(float, np.asarray(point, dtype))) for point in points]
    return [(a, b, x) for a, b, x in rounded if 0 < x < 1]


@functools.cache
def _exact(a: float, b: float, x: float) -> tuple[float, float]:
    """The function and its derivative, by integration of the derivative on one side."""
    with mpmath.workdps(50):
        p, q, u = map(mpmath.mpf, (a, b, x))
        log_beta = mpmath.loggamma(p) + mpmath.loggamma(q) - mpmath.loggamma(p + q)
        density = lambda t: mpmath.exp((p - 1) * mpmath.log(t) + (q - 1) * mpmath.log1p(-t) - log_beta)
        if p + q < 1000:
            return float(mpmath.betainc(p, q, 0, u, regularized=True)), float(density(u))
        lower = u < p / (p + q) and p >= 1 or q < 1  # where the derivative has no pole
        width = mpmath.sqrt(p * q / (p + q) ** 3)
        reach = [width * k for k in (0, 1, 3, 9, 27, 81, 243, 729)]
        ends = [u - min(s, u) if lower else u + min(s, 1 - u) for s in reach]
        tail = abs(mpmath.quad(density, sorted(set(ends))))
        return float(tail if lower else 1 - tail), float(density(u))


DTYPES = {dtype: _points(dtype) for dtype in ("float32", "float64")}


@pytest.mark.parametrize("platform, dtype", PLATFORMS)
def test_large_parameters_lose_nothing(platform, dtype):
    points = DTYPES[dtype]
    eps = float(np.finfo(dtype).eps)
    with weft.enable_x64(dtype == "float64"), weft.default_device(weft.devices(platform)[0]):
        a, b, x = [jnp.asarray(np.array(v, dtype)) for v in zip(*points)]
        got, slope = weft.jvp(lambda x: lax.betainc(a, b, x), (x,), (jnp.ones_like(x),))
    for point, value, derivative in zip(points, np.asarray(got, "float64"), np.asarray(slope, "float64")):
        want, want_derivative = _exact(*point)
        assert abs(value - want) <= eps * (200 * want + 50), (point, value, want)
        assert abs(derivative - want_derivative) <= 500 * eps * want_derivative, (point, derivative, want_derivative)
