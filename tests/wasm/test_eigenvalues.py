"""Schur's form and general eigenvalues by QR steps in the module."""

import numpy as np
import pytest
import weft
from weft import lax

pytestmark = pytest.mark.slow
rng = np.random.default_rng(0)
factors = weft.jit(lambda a: (lax.linalg.schur(a), lax.linalg.eig(a)))
H = lambda q: q.conj().swapaxes(-1, -2)


def check(a, tolerance):
    """The factors multiply to the matrix, the basis is orthonormal; eigenvectors are such, from both sides."""
    n = a.shape[-1]
    scale = np.abs(a).max() or 1.0
    (t, z), (w, left, right) = factors(a)
    t, z, w, left, right = map(np.asarray, (t, z, w, left, right))
    assert np.abs(z @ t @ H(z) - a).max() < tolerance * scale and np.abs(H(z) @ z - np.eye(n)).max() < tolerance
    assert not np.tril(t, -1 if np.iscomplexobj(a) else -2).any()
    assert np.abs(a @ right - right * w[..., None, :]).max() < tolerance * scale
    assert np.abs(H(left) @ a - w[..., :, None] * H(left)).max() < tolerance * scale
    for v in (left, right):
        np.testing.assert_allclose(np.linalg.norm(v, axis=-2), 1, atol=tolerance)
    if not np.iscomplexobj(a):
        below = np.diagonal(t, -1, -2, -1)
        assert not (below[..., 1:] * below[..., :-1]).any(), "blocks of two stand apart"
        pair = below != 0
        np.testing.assert_array_equal(w[..., :-1][pair], w[..., 1:][pair].conj())
        assert (w[..., :-1][pair].imag > 0).all()
    return w


@pytest.mark.parametrize(
    "dtype,tolerance", [("float64", 1e-12), ("complex128", 1e-12), ("float32", 1e-4), ("complex64", 1e-4)]
)
@pytest.mark.parametrize("shape", [(1, 1), (6, 6), (3, 4, 4)])
def test_random(dtype, tolerance, shape):
    a = rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype[0] == "c" else 0)
    w = check(a.astype(dtype), tolerance)
    for got, m in zip(w.reshape(-1, shape[-1]), a.astype(dtype).reshape(-1, *shape[-2:])):
        want = np.linalg.eigvals(m.astype("complex128"))
        assert max(np.abs(want - x).min() for x in got) < 100 * tolerance


@pytest.mark.parametrize("size", [1e25, 1e-25])
def test_squares_of_float32_neither_overflow_nor_vanish(size):
    check((size * rng.normal(size=(6, 6))).astype("float32"), 1e-4)


@pytest.mark.parametrize(
    "name,a",
    [
        ("zero", np.zeros((6, 6))),
        ("identity", np.eye(6)),
        ("cycle", np.roll(np.eye(6), 1, 0)),
        ("rotation", np.kron(np.eye(3), [[0.0, 1], [-1, 0]])),
        ("symmetric", (lambda m: m + m.T)(rng.normal(size=(6, 6)))),
        ("triangular", np.triu(rng.normal(size=(6, 6)))),
        ("companion", np.diag(np.ones(5), -1) + np.outer(np.eye(6)[0], [1.0, -2, 3, -4, 5, 1])),
        ("large", 1e150 * rng.normal(size=(6, 6))),
        ("small", 1e-150 * rng.normal(size=(6, 6))),
        ("swap", np.kron(np.eye(3), [[0, 2.0], [0, 1]])),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_special(name, a):
    for m in (a, a.astype("complex128")):
        check(m, 1e-11)


@pytest.mark.parametrize("size", [1e30, 1e-30])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_squares_of_single_precision_neither_overflow_nor_vanish(dtype, size):
    a = rng.normal(size=(6, 6)) + (1j * rng.normal(size=(6, 6)) if dtype == "complex64" else 0)
    got, want = check((size * a).astype(dtype), 1e-4) / size, np.linalg.eigvals(a)
    assert max(np.abs(want - x).min() for x in got) < 1e-3


def test_what_is_not_finite_gives_nan():
    a = np.ones((2, 3, 3))
    a[1, 0, 2] = np.inf
    w = np.asarray(weft.jit(lambda a: lax.linalg.eig(a)[0])(a))
    assert np.isfinite(w[0]).all() and np.isnan(w[1]).all()
