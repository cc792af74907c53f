"""weft.scipy.linalg against SciPy."""

import numpy as np
import pytest
import scipy.linalg as reference

import weft
import weft.numpy as jnp
from weft.scipy import linalg

pytestmark = pytest.mark.slow

TYPES = ["float32", "float64", "complex64", "complex128"]


@pytest.fixture(params=TYPES)
def case(request):
    """(dtype, a random matrix, comparison)."""
    double = request.param in ("float64", "complex128")
    rng = np.random.default_rng(0)
    a = rng.normal(size=(4, 4)) + (1j * rng.normal(size=(4, 4)) if "complex" in request.param else 0)
    tol = 1e-10 if double else 3e-4
    with weft.enable_x64(double):
        yield (
            a.astype(request.param),
            lambda x, y: np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tol, atol=tol),
        )


def test_exponential(case):
    a, close = case
    for scale in (0.01, 1.0, 4.0):
        close(
            np.asarray(linalg.expm(jnp.asarray(a * scale))) / np.exp(4 * scale),
            reference.expm(a * scale) / np.exp(4 * scale),
        )
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
            close(
                linalg.lu_solve(linalg.lu_factor(j(a)), j(rhs), trans),
                reference.lu_solve(reference.lu_factor(a), rhs, trans),
            )
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


@pytest.mark.parametrize(
    "call,error,words",
    [
        (lambda: linalg.expm(jnp.eye(2, dtype="bfloat16")), TypeError, "bfloat16"),
        (lambda: linalg.expm(jnp.ones((2, 3))), ValueError, r"\(2, 3\)"),
        (lambda: linalg.solve(jnp.eye(2), jnp.ones(2), assume_a="zz"), ValueError, "'zz'"),
        (lambda: linalg.solve_triangular(jnp.eye(2), jnp.ones(2), trans=5), ValueError, "5"),
        (lambda: linalg.qr(jnp.eye(2), mode="x"), ValueError, "'x'"),
        (lambda: linalg.schur(jnp.eye(2), output="x"), ValueError, "'x'"),
    ],
)
def test_wrong_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4)])
def test_qr_with_pivoting_and_products_with_q(shape):
    rng = np.random.default_rng(0)
    with weft.enable_x64(True):
        a, m, k = rng.normal(size=shape) + 1j * rng.normal(size=shape), shape[0], min(shape)
        for mode in ("full", "economic", "r"):
            for got, want in zip(linalg.qr(a, mode=mode, pivoting=True), reference.qr(a, mode=mode, pivoting=True)):
                np.testing.assert_allclose(got, want, atol=1e-12)
        for mode, c in (
            ("right", rng.normal(size=(2, m)) + 0j),
            ("left", rng.normal(size=(k, 2)) + 0j),
            ("right", rng.normal(size=m) + 0j),
            ("left", rng.normal(size=k) + 0j),
        ):
            for pivoting in (False, True):
                for conjugate in (False, True):
                    got = linalg.qr_multiply(a, c, mode, pivoting, conjugate)
                    want = reference.qr_multiply(a, c, mode, pivoting, conjugate)
                    for x, y in zip(got, want):
                        np.testing.assert_allclose(x, y, atol=1e-12)
    with pytest.raises(ValueError, match="columns"):
        linalg.qr_multiply(np.ones((3, 2)), np.ones((2, 2)))
    with pytest.raises(ValueError, match="'x'"):
        linalg.qr_multiply(np.ones((3, 2)), np.ones((2, 3)), mode="x")


def test_polar():
    rng = np.random.default_rng(0)
    with weft.enable_x64(True):
        for shape in ((5, 3), (3, 5), (4, 4)):
            a = rng.normal(size=shape) + 1j * rng.normal(size=shape)
            for side in ("left", "right"):
                want = reference.polar(a, side)
                for method in ("svd", "qdwh"):
                    if method == "qdwh" and (shape[0] < shape[1]) == (side == "right") and shape[0] != shape[1]:
                        with pytest.raises(NotImplementedError, match="method='svd'"):
                            linalg.polar(a, side, method=method)
                        continue
                    for x, y in zip(linalg.polar(a, side, method=method), want):
                        np.testing.assert_allclose(x, y, atol=1e-12)
    for wrong in (dict(side="q"), dict(method="q")):
        with pytest.raises(ValueError, match="'q'"):
            linalg.polar(np.eye(2), **wrong)


def test_eigh_tridiagonal():
    rng = np.random.default_rng(0)
    with weft.enable_x64(True):
        for n in (1, 2, 6):
            d, e = rng.normal(size=n), rng.normal(size=n - 1)
            w, v = map(np.asarray, linalg.eigh_tridiagonal(d, e))
            dense = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
            np.testing.assert_allclose(w, np.linalg.eigvalsh(dense), atol=1e-12)
            np.testing.assert_allclose(dense @ v, v * w, atol=1e-12)
        np.testing.assert_allclose(
            linalg.eigh_tridiagonal(d, e, eigvals_only=True, select="i", select_range=(1, 3)), w[1:4], atol=1e-12
        )
        np.testing.assert_allclose(
            weft.grad(lambda d: linalg.eigh_tridiagonal(d, e, eigvals_only=True)[0])(d), v[:, 0] ** 2, atol=1e-12
        )
    for call, error in (
        (lambda: linalg.eigh_tridiagonal(np.ones(3), np.ones(3)), ValueError),
        (lambda: linalg.eigh_tridiagonal(np.ones(3), np.ones(2), select="q"), ValueError),
        (lambda: linalg.eigh_tridiagonal(np.ones(3), np.ones(2), select="v", select_range=(0, 1)), NotImplementedError),
        (lambda: linalg.eigh_tridiagonal(np.ones(3), np.ones(2), select="i"), ValueError),
    ):
        with pytest.raises(error, match="eigh_tridiagonal"):
            call()


def test_svd_drivers():
    a = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")
    for driver in ("gesdd", "gesvd"):
        u, s, vh = map(np.asarray, linalg.svd(a, full_matrices=False, lapack_driver=driver))
        np.testing.assert_allclose(u * s @ vh, a, atol=1e-5)
    with pytest.raises(ValueError, match="'fast'"):
        linalg.svd(a, lapack_driver="fast")
