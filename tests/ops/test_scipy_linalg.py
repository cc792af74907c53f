"""weft.scipy.linalg against SciPy."""
import numpy as np
import pytest
import scipy.linalg as reference

import weft
import weft.numpy as jnp
from weft.scipy import linalg

TYPES = ["float32", "float64", "complex64", "complex128"]


@pytest.fixture(params=TYPES)
def case(request):
    """(dtype, a random matrix, comparison)."""
    double = request.param in ("float64", "complex128")
    rng = np.random.default_rng(0)
    a = rng.normal(size=(4, 4)) + (1j * rng.normal(size=(4, 4)) if "complex" in request.param else 0)
    tol = 1e-10 if double else 3e-4
    with weft.enable_x64(double):
        yield a.astype(request.param), lambda x, y: np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tol, atol=tol)


def test_exponential(case):
    a, close = case
    for scale in (0.01, 1.0, 4.0):
        close(np.asarray(linalg.expm(jnp.asarray(a * scale))) / np.exp(4 * scale), reference.expm(a * scale) / np.exp(4 * scale))
    stack = np.stack([a, 3 * a])
    close(linalg.expm(jnp.asarray(stack)), np.stack([linalg.expm(jnp.asarray(x)) for x in stack]))
    close(linalg.expm(jnp.asarray(np.triu(a)), upper_triangular=True), reference.expm(np.triu(a)))
    assert np.isnan(np.asarray(linalg.expm(jnp.asarray(a * 1e6), max_squarings=2))).all()


def test_exponential_s_derivative():
    with weft.enable_x64(True):
        rng = np.random.default_rng(1)
        a, t = rng.normal(size=(2, 3, 3))
        _, got = weft.jvp(linalg.expm, (jnp.asarray(a),), (jnp.asarray(t),))
        np.testing.assert_allclose(np.asarray(got), reference.expm_frechet(a, t, compute_expm=False), rtol=1e-9)
        back = weft.grad(lambda x: jnp.sum(linalg.expm(x) * t))(jnp.asarray(a))
        np.testing.assert_allclose(np.asarray(back), reference.expm_frechet(a.T, t, compute_expm=False), rtol=1e-9)


def test_systems(case):
    a, close = case
    b = a[:, :2] + 1
    spd = a @ a.conj().T + 4 * np.eye(4, dtype=a.dtype)
    j = jnp.asarray
    close(linalg.solve(j(a), j(b)), reference.solve(a, b))
    for lower in (False, True):
        close(linalg.cholesky(j(spd), lower), reference.cholesky(spd, lower))
        close(linalg.cho_solve(linalg.cho_factor(j(spd), lower), j(b)), reference.solve(spd, b))
        close(linalg.solve(j(spd), j(b[:, 0]), lower=lower, assume_a="pos"), reference.solve(spd, b[:, 0]))
        for trans in (0, 1, 2, "N", "T", "C"):
            close(linalg.solve_triangular(j(spd), j(b), trans, lower), reference.solve_triangular(spd, b, trans, lower))
    for trans in (0, 1, 2):
        for rhs in (b, b[:, 0]):
            close(linalg.lu_solve(linalg.lu_factor(j(a)), j(rhs), trans), reference.lu_solve(reference.lu_factor(a), rhs, trans))
    close(linalg.inv(j(a)), reference.inv(a))
    close(linalg.det(j(a)), reference.det(a))


def test_factorisations(case):
    a, close = case
    j = jnp.asarray
    for m in (a, a[:, :2], a[:2]):
        for got, want in zip(linalg.lu(j(m)), reference.lu(m)):
            close(got, want)
        for got, want in zip(linalg.lu(j(m), permute_l=True), reference.lu(m, permute_l=True)):
            close(got, want)
        for got, want in zip(linalg.qr(j(m), mode="economic"), reference.qr(m, mode="economic")):
            close(got, want)
        close(linalg.svd(j(m), compute_uv=False), reference.svd(m, compute_uv=False))
    h, q = map(np.asarray, linalg.hessenberg(j(a), calc_q=True))
    close(q @ h @ q.conj().T, a)
    t, z = map(np.asarray, linalg.schur(j(a), output="complex"))
    close(z @ t @ z.conj().T, a)
    close(np.tril(t, -1), np.zeros_like(t))
    close(linalg.eigh(j(a), eigvals_only=True), reference.eigh(a, eigvals_only=True))
    close(linalg.block_diag(j(a), 2.0, j(a[0])), reference.block_diag(a, 2.0, a[0]))


@pytest.mark.parametrize("call,error,words", [
    (lambda: linalg.expm(jnp.eye(2, dtype="bfloat16")), TypeError, "bfloat16"),
    (lambda: linalg.expm(jnp.ones((2, 3))), ValueError, r"\(2, 3\)"),
    (lambda: linalg.solve(jnp.eye(2), jnp.ones(2), assume_a="zz"), ValueError, "'zz'"),
    (lambda: linalg.solve_triangular(jnp.eye(2), jnp.ones(2), trans=5), ValueError, "5"),
    (lambda: linalg.qr(jnp.eye(2), mode="x"), ValueError, "'x'"),
    (lambda: linalg.schur(jnp.eye(2), output="x"), ValueError, "'x'"),
])
def test_wrong_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call()
