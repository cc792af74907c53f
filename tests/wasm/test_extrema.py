"""Long maxima and minima of f32, which are found in integers: every sign, zeros, NaN of both signs, ragged lengths."""

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from weft import lax

ROWS = {
    "both signs": lambda rng, n: rng.standard_normal(n),
    "negative": lambda rng, n: -np.exp(rng.standard_normal(n)),
    "positive": lambda rng, n: np.exp(rng.standard_normal(n)),
    "infinities": lambda rng, n: rng.choice([-np.inf, np.inf, 1.0], n),
    "minus infinity": lambda rng, n: np.full(n, -np.inf),
    "subnormal": lambda rng, n: rng.choice([1e-45, -1e-45, 3e-39], n),
    "negative zero": lambda rng, n: np.full(n, -0.0),
    "zeros": lambda rng, n: rng.choice([0.0, -0.0], n),
}


def check(f, x, expected):
    got = np.asarray(f(x))
    np.testing.assert_array_equal(got, expected)
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[~nan]), np.signbit(expected[~nan]))


@pytest.mark.parametrize("n", [63, 64, 65, 100, 515])
@pytest.mark.parametrize("op", ["max", "min"])
def test_rows(op, n):
    rng = np.random.default_rng(n)
    x = np.stack([row(rng, n) for row in ROWS.values()]).astype(np.float32)
    x = np.concatenate([x, x, x])
    x[len(ROWS) :: 2, n // 3] = np.nan
    x[len(ROWS) + 1 :: 4, n - 1] = -np.float32(np.nan)
    expected = np.sort(x)[:, -1 if op == "max" else 0]
    zero = expected == 0  # np.sort takes zeros as equal
    signs = np.signbit(x) | (x != 0)
    expected = np.where(
        zero, np.where(signs.all(1) if op == "max" else (np.signbit(x) & (x == 0)).any(1), -0.0, 0.0), expected
    )
    expected = np.where(np.isnan(x).any(1), np.nan, expected).astype(np.float32)
    check(weft.jit(lambda x: getattr(jnp, op)(x, axis=1)), x, expected)


@pytest.mark.parametrize("start", [-np.inf, 2.0, np.nan])
def test_start_and_several_results(start):
    x = np.random.default_rng(0).standard_normal((7, 300)).astype(np.float32)
    top = weft.jit(lambda x: lax.reduce(x, np.float32(start), lax.max, (1,)))
    check(top, x, np.full(7, np.nan, np.float32) if np.isnan(start) else np.maximum(x.max(1), np.float32(start)))
    both = weft.jit(lambda x: jnp.max(x, axis=1) - jnp.min(x * 2, axis=1))
    np.testing.assert_array_equal(np.asarray(both(x)), x.max(1) - (x * 2).min(1))


@pytest.mark.parametrize("op, start", [("max", -np.inf), ("min", np.inf)])
def test_where_an_extremum_starts(op, start):
    """Nothing is compared with it, and everything comes through."""
    f = weft.jit(lambda x: (getattr(lax, op)(np.float32(start), x), getattr(lax, op)(x, np.float32(start))))
    x = np.array([np.nan, -np.inf, np.inf, -0.0, 0.0, 1e-45, 2.0], np.float32)
    for got in f(x):
        check(lambda _: got, x, x)
    assert f"{op}(" not in f.lower(x).compile().as_text()
