"""Factorisations and linear systems against NumPy's LAPACK, in every dtype, batched, singular, empty, and with wrong
arguments.
"""

import functools

import numpy as np
import pytest
import scipy.linalg
from platforms import on, under_test

import weft
import weft.numpy as jnp
from weft import lax
from weft.decompositions import factorise
from weft.primitives.linalg import cholesky_p

pytestmark = pytest.mark.slow

linalg = lax.linalg
TYPES = ["float32", "float64", "complex64", "complex128"]


def random(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if "complex" in dtype else x).astype(dtype)


def mH(x):
    return np.swapaxes(np.asarray(x), -1, -2).conj()


@pytest.fixture(params=TYPES)
def dtype(request):
    with weft.enable_x64(request.param in ("float64", "complex128")):
        yield request.param


def tol(dtype):
    return 1e-10 if dtype in ("float64", "complex128") else 2e-4


def close(a, b, dtype):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tol(dtype), atol=tol(dtype))


def test_cholesky(dtype):
    a = random((2, 5, 5), dtype)
    spd = a @ mH(a) + 5 * np.eye(5, dtype=dtype)
    out = jnp.linalg.cholesky(jnp.asarray(spd))
    assert out.dtype == dtype
    close(out, np.linalg.cholesky(spd), dtype)
    close(jnp.linalg.cholesky(jnp.asarray(spd), upper=True), mH(np.linalg.cholesky(spd)), dtype)


def test_lu(dtype):
    for m, n in ((4, 4), (5, 3), (3, 5)):
        a = random((2, m, n), dtype)
        lu, pivots, perm = map(np.asarray, linalg.lu(jnp.asarray(a)))
        k = min(m, n)
        low, up = np.tril(lu[..., :k], -1) + np.eye(m, k), np.triu(lu[:, :k])
        close(np.take_along_axis(a, perm[..., None], 1), low @ up, dtype)
        close(linalg.lu_pivots_to_permutation(jnp.asarray(pivots), m), perm, dtype)


EVERYWHERE = under_test("cpu", "wasm", "webgpu", "reference")


@pytest.mark.parametrize("platform", EVERYWHERE)
@pytest.mark.parametrize("batch", [(), (2,)], ids=str)
def test_nothing_is_left_above_a_factor(batch, platform):
    """LAPACK leaves its operand there, and XLA says nothing of it."""
    a = random((*batch, 4, 4), "float32")
    spd = a @ mH(a) + 5 * np.eye(4, dtype=np.float32)
    with on(platform):
        factor = np.asarray(weft.jit(cholesky_p.bind)(spd))
        failed = np.asarray(weft.jit(cholesky_p.bind)(-spd))
    close(factor, np.linalg.cholesky(spd), "float32")
    assert (np.triu(factor, 1) == 0).all() and np.isnan(failed).all()


@pytest.mark.parametrize("platform", EVERYWHERE)
@pytest.mark.parametrize("batch", [(), (2,), (2, 3)], ids=str)
def test_the_rows_of_a_batch_of_any_rank(batch, platform):
    a = random((*batch, 4, 4), "float32")
    with on(platform):
        lu, pivots, perm = map(np.asarray, weft.jit(linalg.lu)(a))
    low, up = np.tril(lu, -1) + np.eye(4), np.triu(lu)
    close(np.take_along_axis(a, perm[..., None], -2), low @ up, "float32")
    close(linalg.lu_pivots_to_permutation(jnp.asarray(pivots), 4), perm, "float32")


def test_qr(dtype):
    for m, n in ((4, 4), (5, 3), (3, 5)):
        a = random((2, m, n), dtype)
        for mode in ("reduced", "complete"):
            for got, want in zip(jnp.linalg.qr(jnp.asarray(a), mode), np.linalg.qr(a, mode)):
                close(got, want, dtype)
        close(jnp.linalg.qr(jnp.asarray(a), "r"), np.linalg.qr(a, "r"), dtype)


def test_eigh(dtype):
    a = random((2, 4, 4), dtype)
    a = a + mH(a)
    w, v = map(np.asarray, jnp.linalg.eigh(jnp.asarray(a)))
    close(w, np.linalg.eigh(a)[0], dtype)
    close(v * w[:, None] @ mH(v), a, dtype)
    close(linalg.eigh(jnp.asarray(a), subset_by_index=(1, 3))[1], w[:, 1:3], dtype)
    close(jnp.linalg.eigvalsh(jnp.asarray(np.tril(a)), "L", symmetrize_input=False), w, dtype)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
def test_svd(dtype, shape):
    a = random((2, *shape), dtype)
    k = min(shape)
    for full in (False, True):
        u, s, vh = map(np.asarray, jnp.linalg.svd(jnp.asarray(a), full_matrices=full))
        assert (u.shape, vh.shape) == tuple(x.shape for x in np.linalg.svd(a, full_matrices=full)[::2])
        close(s, np.linalg.svd(a, compute_uv=False), dtype)
        close(u[..., :k] * s[:, None] @ vh[:, :k], a, dtype)
    close(jnp.linalg.pinv(jnp.asarray(a)), np.linalg.pinv(a), dtype)
    close(linalg.svd(jnp.asarray(a), subset_by_index=(0, 2), full_matrices=False)[1], s[:, :2], dtype)
    close(linalg.svd(jnp.asarray(a), subset_by_index=(1, 3), full_matrices=False, compute_uv=False), s[:, 1:3], dtype)
    # with two axes in front of a matrix's, so that none of its own has the same number from either end
    stacks = jnp.asarray(a[:, None])
    u, s, vh = map(np.asarray, linalg.svd(stacks, full_matrices=False))
    for got, want in zip(
        linalg.svd(stacks, subset_by_index=(1, 3), full_matrices=False), (u[..., 1:3], s[..., 1:3], vh[..., 1:3, :])
    ):
        close(got, want, dtype)


def test_hermitian_svd(dtype):
    a = random((4, 4), dtype)
    a = a + mH(a)
    u, s, vh = map(np.asarray, jnp.linalg.svd(jnp.asarray(a), hermitian=True))
    close(s, np.linalg.svd(a, compute_uv=False), dtype)
    close(u * s @ vh, a, dtype)


def test_eig(dtype):
    a = random((2, 4, 4), dtype)
    w, left, right = map(np.asarray, linalg.eig(jnp.asarray(a)))
    close(a @ right, right * w[:, None], dtype)
    close(mH(left) @ a, w[..., None] * mH(left), dtype)
    close(np.linalg.norm(right, axis=-2), np.ones((2, 4)), dtype)


@pytest.mark.parametrize("platform", under_test("cpu", "reference"))
@pytest.mark.parametrize("a", [np.full((5, 5), 2.0), [[0, 1], [0, 0]], [[1, 1, 0], [0, 1, 1], [0, 0, 1]]])
def test_eigenvectors_of_repeated_eigenvalues(a, platform):
    """There may be fewer than the matrix has rows."""
    a = np.float32(a)
    with on(platform):
        w, left, right = map(np.asarray, linalg.eig(a))
        np.testing.assert_allclose(left.conj().T @ a, w[:, None] * left.conj().T, atol=2e-2)
        np.testing.assert_allclose(a @ right, right * w, atol=2e-2)
        np.testing.assert_allclose(np.linalg.norm(left, axis=0), 1, rtol=1e-5)


def test_schur_and_hessenberg(dtype):
    a = random((2, 4, 4), dtype)
    t, z = map(np.asarray, linalg.schur(jnp.asarray(a)))
    close(z @ t @ mH(z), a, dtype)
    close(np.tril(t, -2), np.zeros_like(a), dtype)
    h, taus = linalg.hessenberg(jnp.asarray(a))
    q = np.zeros_like(a)
    q[:, 0, 0], q[:, 1:, 1:] = 1, np.asarray(linalg.householder_product(h[:, 1:, :-1], taus))
    close(q @ np.triu(np.asarray(h), -1) @ mH(q), a, dtype)


def test_solve_inv_det(dtype):
    a, b, v = random((2, 4, 4), dtype), random((2, 4, 3), dtype, 1), random((4,), dtype, 2)
    close(jnp.linalg.solve(jnp.asarray(a), jnp.asarray(b)), np.linalg.solve(a, b), dtype)
    close(jnp.linalg.solve(jnp.asarray(a), jnp.asarray(v)), np.linalg.solve(a, v[:, None])[..., 0], dtype)
    close(jnp.linalg.solve(jnp.asarray(a[0]), jnp.asarray(b)), np.linalg.solve(a[0][None], b), dtype)
    close(jnp.linalg.inv(jnp.asarray(a)), np.linalg.inv(a), dtype)
    for n in range(5):
        close(jnp.linalg.det(jnp.asarray(a[:, :n, :n])), np.linalg.det(a[:, :n, :n]), dtype)
    for got, want in zip(jnp.linalg.slogdet(jnp.asarray(a)), np.linalg.slogdet(a)):
        close(got, want, dtype)
    close(jnp.linalg.matrix_power(jnp.asarray(a), -2), np.linalg.matrix_power(a, -2), dtype)


def test_what_singular_values_give(dtype):
    a, b = random((5, 3), dtype), random((5, 2), dtype, 1)
    for got, want in zip(jnp.linalg.lstsq(jnp.asarray(a), jnp.asarray(b)), np.linalg.lstsq(a, b, rcond=None)):
        close(got, want, dtype)
    close(jnp.linalg.lstsq(jnp.asarray(a), jnp.asarray(b[:, 0]))[0], np.linalg.lstsq(a, b[:, 0], rcond=None)[0], dtype)
    for p in (None, 2, -2):
        close(jnp.linalg.cond(jnp.asarray(a), p), np.linalg.cond(a, p), dtype)
    close(jnp.linalg.cond(jnp.asarray(a[:3]), 1), np.linalg.cond(a[:3], 1), dtype)
    for p in (2, -2, "nuc"):
        close(jnp.linalg.norm(jnp.asarray(a), p), np.linalg.norm(a, p), dtype)
    low = a[:, :1] @ a[:1]
    assert int(jnp.linalg.matrix_rank(jnp.asarray(low))) == 1 == np.linalg.matrix_rank(low, rtol=1e-5)


def test_loops_are_lapack_s_factorisations(dtype):
    """What backends without LAPACK run."""
    a = random((2, 4, 3), dtype)
    for primitive, args in ((linalg.ops.lu_p, (a,)), (linalg.ops.geqrf_p, (a,)), (linalg.ops.cholesky_p, (mH(a) @ a,))):
        want = primitive.bind(*map(jnp.asarray, args))
        got = primitive.decompose(*map(jnp.asarray, args))
        for x, y in zip(*((got, want) if primitive.multiple_results else ([jnp.tril(got)], [jnp.tril(want)]))):
            close(x, y, dtype)
    h, taus = linalg.ops.geqrf_p.bind(jnp.asarray(a))
    close(factorise._householder_product(h, taus), linalg.householder_product(h, taus), dtype)


@pytest.fixture
def on_wasm():
    with weft.default_device(weft.devices("wasm")[0]):
        yield


def test_singular_values_of_a_larger_matrix(on_wasm):
    rng = np.random.default_rng(0)
    for x in (rng.normal(size=(60, 60)), rng.normal(size=(90, 50)) * 10.0 ** -np.arange(50)):
        x = x.astype("float32")
        s, u, vh = map(
            np.asarray,
            weft.jit(
                lambda x: linalg.svd_p.decompose(
                    x, full_matrices=False, compute_uv=True, subset_by_index=None, algorithm=None
                )
            )(x),
        )
        size = np.linalg.norm(x, 2)
        np.testing.assert_allclose(s, np.linalg.svd(x.astype("float64"))[1], atol=5e-6 * size)
        np.testing.assert_allclose(u * s @ vh, x, atol=5e-6 * size)
        np.testing.assert_allclose(u.T @ u, np.eye(len(s)), atol=1e-5)
        np.testing.assert_allclose(vh @ vh.T, np.eye(len(s)), atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_thousands_of_rotations_lengthen_no_vector(on_wasm, dtype):
    """Backward errors in eps. With sines and cosines that are rounded each for itself they were 26 to 56 for svd, 78
    to 121 for eigh.
    """
    with weft.enable_x64(dtype == "float64"):
        x = random((100, 100), dtype)
        h = (x + x.T) / 2
        v, w = map(
            np.asarray,
            weft.jit(
                lambda h: linalg.eigh_p.decompose(
                    h, lower=True, sort_eigenvalues=True, subset_by_index=None, algorithm=None
                )
            )(h),
        )
        s, u, vh = map(
            np.asarray,
            weft.jit(
                lambda x: linalg.svd_p.decompose(
                    x, full_matrices=False, compute_uv=True, subset_by_index=None, algorithm=None
                )
            )(x),
        )
    v, w, s, u, vh, x, h = (a.astype(np.longdouble) for a in (v, w, s, u, vh, x, h))
    size = lambda a: np.sqrt((a * a).sum())
    error = lambda a, scale: size(a) / scale / np.finfo(dtype).eps
    for q in (v, u, vh.T):
        assert error(q.T @ q - np.eye(100), 10) <= 20
    assert error(h @ v - v * w, size(h)) <= 20 and error(u * s @ vh - x, size(x)) <= 25


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_large_matrices_are_factored_by_blocks(dtype):
    with weft.enable_x64(dtype == "complex128"):
        a, b = random((2, 150, 150), dtype) / 12, random((2, 150, 20), dtype)
        a = a @ mH(a) + np.eye(150, dtype=dtype)
        low = np.asarray(weft.jit(linalg.ops.cholesky_p.decompose)(a))
        close(np.tril(low), np.linalg.cholesky(a), dtype)
        params = dict(conjugate_a=False, unit_diagonal=False)
        solve = linalg.ops.triangular_solve_p.decompose
        for lower in (True, False):
            for transpose in (True, False):
                m = np.tril(low) if lower else np.triu(mH(low))
                op = np.swapaxes(m, -1, -2) if transpose else m
                close(
                    op @ np.asarray(solve(m, b, left_side=True, lower=lower, transpose_a=transpose, **params)), b, dtype
                )
                close(
                    np.asarray(solve(m, mH(b), left_side=False, lower=lower, transpose_a=transpose, **params)) @ op,
                    mH(b),
                    dtype,
                )
        a[1, 149, 149] = -1
        bad = np.asarray(linalg.ops.cholesky_p.decompose(jnp.asarray(a)))
        assert np.isnan(bad[1]).all() and not np.isnan(bad[0]).any()


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_jacobi_s_rotations(dtype):
    """Eigenvalues of backends without LAPACK: stacks, both triangles, NaN."""
    with weft.enable_x64(dtype == "complex128"):
        a = random((2, 5, 5), dtype)
        a = a + mH(a)
        params = dict(sort_eigenvalues=True, subset_by_index=None, algorithm=None)
        for lower in (True, False):
            v, w = map(
                np.asarray,
                weft.jit(lambda x: linalg.eigh_p.decompose(x, lower=lower, **params))(
                    np.tril(a) if lower else np.triu(a)
                ),
            )
            close(w, np.linalg.eigvalsh(a), dtype)
            close(a @ v, v * w[:, None], dtype)
        assert np.isnan(np.asarray(linalg.eigh_p.decompose(jnp.full((2, 2), jnp.nan), lower=True, **params)[0])).all()


@pytest.mark.parametrize(
    "dtype,algorithm", [("float32", None), ("complex128", None), ("float32", linalg.SvdAlgorithm.JACOBI)]
)
def test_singular_values_without_lapack(dtype, algorithm):
    """Stacks, every shape, singular matrices, parts of the result, NaN."""
    with weft.enable_x64(dtype == "complex128"), weft.default_device(weft.devices("wasm")[0]):

        @functools.partial(weft.jit, static_argnums=(1, 2, 3))
        def loops(x, full, vectors, part):
            return linalg.svd_p.decompose(
                x, full_matrices=full, compute_uv=vectors, subset_by_index=part, algorithm=algorithm
            )

        def svd(x, full=False, vectors=True, part=None):
            return list(map(np.asarray, loops(x, full, vectors, part)))

        def right(x, s, u, vh, full):
            k, want = min(x.shape[-2:]), np.linalg.svd(x, full_matrices=full)
            assert (u.shape, vh.shape) == (want[0].shape, want[2].shape)
            close(s, want[1], dtype)
            close(u[..., :k] * s[..., None, :] @ vh[..., :k, :], x, dtype)
            close(mH(u) @ u, np.broadcast_to(np.eye(u.shape[-1]), (*x.shape[:-2], *u.shape[-1:] * 2)), dtype)
            close(vh @ mH(vh), np.broadcast_to(np.eye(vh.shape[-2]), (*x.shape[:-2], *vh.shape[-2:-1] * 2)), dtype)

        for shape in ((2, 5, 3), (3, 5), (4, 4), (1, 1)):
            x = random(shape, dtype)
            x[..., -1] = x[..., 0]
            for full in (True, False):
                right(x, *svd(x, full), full)
        n = 4
        steps = np.arange(n)
        for x in (
            np.zeros((n, n)),
            np.eye(n),
            np.diag([1, 0, 2, 0]),
            np.ones((n, n)),
            np.tril(np.ones((n, n))),
            np.diag(np.ones(n - 1), 1),
            np.diag(10.0**-steps),
            10.0 ** -(steps[:, None] + steps),
            np.diag([1.0, 1, 1, 0]) + np.diag(np.ones(n - 1), 1),
        ):
            right(x.astype(dtype), *svd(x.astype(dtype)), False)
        x = random((5, 4), dtype)
        for scale in (1e-15, 1e15):
            close(svd(x * x.dtype.type(scale))[0] / scale, svd(x)[0], dtype)
        close(svd(x, vectors=False, part=(1, 3))[0], np.linalg.svd(x)[1][1:3], dtype)
        s, u, vh = svd(x, part=(0, 2))
        close(u.conj().T @ x, s[:, None] * vh, dtype)
        x[0, 0] = np.nan
        assert all(np.isnan(out).all() for out in svd(x))
        with pytest.raises(NotImplementedError, match="POLAR"):
            linalg.svd_p.decompose(
                jnp.eye(2),
                compute_uv=True,
                subset_by_index=None,
                full_matrices=True,
                algorithm=linalg.SvdAlgorithm.POLAR,
            )


def gauge_free():
    """Functions of factorisations that do not depend on the signs and phases of vectors."""
    projection = lambda v: v @ jnp.conj(v).T
    yield "svd U", (4, 3), lambda a: projection(jnp.linalg.svd(a, full_matrices=False).U[:, :1])
    yield "svd V", (3, 4), lambda a: projection(jnp.conj(jnp.linalg.svd(a, full_matrices=False).Vh[:1]).T)
    yield "svd low rank", (4, 4), lambda a: (lambda u, s, vh: u[:, :2] @ vh[:2])(*jnp.linalg.svd(a))
    yield "eigh", (4, 4), lambda a: projection(jnp.linalg.eigh(a).eigenvectors[:, :2])
    yield "eigvals", (3, 3), lambda a: jnp.sum(jnp.linalg.eigvals(a) ** 3)
    yield "qr", (4, 3), lambda a: jnp.linalg.qr(a).Q
    yield "qr r", (3, 3), lambda a: jnp.linalg.qr(a).R
    for shape in ((5, 2), (2, 5), (4, 4)):
        yield "qr full", shape, lambda a: linalg.qr(a)[0]
        yield "qr full r", shape, lambda a: linalg.qr(a)[1]
        yield "qr pivoting", shape, lambda a: linalg.qr(a, pivoting=True)[0]
        yield "qr pivoting r", shape, lambda a: linalg.qr(a, pivoting=True, full_matrices=False)[1]
    yield "eig right", (3, 3), lambda a: projection(linalg.eig(a, enable_eigvec_derivs=True)[2][:, :1])
    yield (
        "eig left",
        (3, 3),
        lambda a: projection(linalg.eig(a, enable_eigvec_derivs=True, compute_right_eigenvectors=False)[1][:, :1]),
    )
    yield "tridiagonal_solve", (4, 4), lambda a: linalg.tridiagonal_solve(a[0], a[1] + 3, a[2], a)
    yield "tridiagonal_solve of one row", (4, 1), lambda a: linalg.tridiagonal_solve(a[0], a[1] + 3, a[2], a[3:])
    yield "lu", (3, 4), lambda a: linalg.lu(a)[0]
    yield "lu", (4, 3), lambda a: linalg.lu(a)[0]
    yield "cholesky", (3, 3), lambda a: jnp.linalg.cholesky(a @ jnp.conj(a).T + 2 * jnp.eye(3))
    yield "solve", (3, 3), lambda a: jnp.linalg.solve(a, jnp.conj(a))
    yield "pinv", (4, 2), jnp.linalg.pinv
    yield "slogdet", (4, 4), lambda a: jnp.linalg.slogdet(a).logabsdet
    yield "det", (4, 4), jnp.linalg.det


def slopes(f, x, t, ct):
    """f's value, its jvp, its vjp: one program."""
    out, tangent = weft.jvp(f, (x,), (t,))
    return out, tangent, weft.vjp(f, x)[1](ct)[0]


@pytest.mark.parametrize("name,shape,f", list(gauge_free()), ids=[f"{name} {shape}" for name, shape, _ in gauge_free()])
@pytest.mark.parametrize("dtype", ["float64", pytest.param("complex128", marks=pytest.mark.slow)])
def test_derivatives(name, shape, f, dtype):
    with weft.enable_x64(True):
        x, t, step = random(shape, dtype, 3), random(shape, dtype, 4), 1e-6
        g = weft.jit(f)
        out = weft.eval_shape(f, x)
        ct = random(out.shape, str(out.dtype), 5)
        want = (np.asarray(g(x + step * t)) - np.asarray(g(x - step * t))) / (2 * step)
        _, got, back = weft.jit(lambda *a: slopes(f, *a))(x, t, ct)
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(np.sum(np.asarray(back) * t).real, np.sum(ct * want).real, rtol=1e-4, atol=1e-4)


def test_failures_are_nan():
    nan = jnp.full((2, 2), jnp.nan)
    assert np.isnan(np.tril(np.asarray(jnp.linalg.cholesky(-jnp.eye(2))))[[0, 1, 1], [0, 0, 1]]).all()
    both = jnp.linalg.cholesky(jnp.stack([jnp.eye(2), -jnp.eye(2)]))
    assert np.array_equal(both[0], np.eye(2)) and np.isnan(np.asarray(both[1])).any()
    for out in (*linalg.eigh(nan), *linalg.svd(nan), *linalg.eig(nan), linalg.lu(nan)[0]):
        assert np.isnan(np.asarray(out)).all()
    assert not np.isfinite(np.asarray(jnp.linalg.inv(jnp.ones((2, 2))))).any()
    assert float(jnp.linalg.det(jnp.ones((4, 4)))) == 0
    assert jnp.linalg.slogdet(jnp.ones((4, 4))) == (0, -np.inf)


def test_empty_matrices():
    assert linalg.cholesky(jnp.ones((0, 0))).shape == (0, 0)
    assert [x.shape for x in linalg.lu(jnp.ones((0, 3)))] == [(0, 3), (0,), (0,)]
    assert [x.tolist() for x in linalg.svd(jnp.ones((0, 3)))] == [[], [], np.eye(3).tolist()]
    assert [x.shape for x in linalg.qr(jnp.ones((0, 3)))] == [(0, 0), (0, 3)]
    assert [x.shape for x in linalg.eigh(jnp.ones((0, 0)))] == [(0, 0), (0,)]
    assert jnp.linalg.solve(jnp.ones((0, 0)), jnp.ones((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("left,right", [(True, True), (True, False), (False, True), (False, False)])
def test_eigenvectors_keep_their_length_and_phase(left, right):
    """Right and left vectors of a matrix with complex eigenvalues move as LAPACK's do, together and each alone."""
    with weft.enable_x64(True):
        x, t = jnp.asarray(random((4, 4), "float64", 5)), jnp.asarray(random((4, 4), "float64", 6))
        f = lambda a: linalg.eig(
            a, compute_left_eigenvectors=left, compute_right_eigenvectors=right, enable_eigvec_derivs=left or right
        )
        outs, got = weft.jvp(f, (x,), (t,))
        assert len(got) == 1 + left + right
        for out, g, ahead, behind in zip(outs, got, f(x + 1e-6 * t), f(x - 1e-6 * t), strict=True):
            assert g.dtype == out.dtype == "complex128"
            np.testing.assert_allclose(np.asarray(g), (np.asarray(ahead) - np.asarray(behind)) / 2e-6, atol=1e-6)


def test_qr_pivoting(dtype):
    for shape in ((2, 5, 3), (3, 5), (4, 4)):
        a = random(shape, dtype)
        for full in (False, True):
            q, r, p = map(np.asarray, linalg.qr(jnp.asarray(a), pivoting=True, full_matrices=full))
            assert p.dtype == np.int32
            close(q @ r, np.take_along_axis(a, p[..., None, :], -1), dtype)
        sizes = np.abs(np.diagonal(r, axis1=-2, axis2=-1))
        assert (np.diff(sizes) <= 1e-6).all()
    assert [x.tolist() for x in linalg.qr(jnp.ones((0, 3)), pivoting=True)] == [[], [], [0, 1, 2]]


def test_ormqr(dtype):
    a, c = random((2, 5, 3), dtype), random((2, 5, 4), dtype, 1)
    h, taus = linalg.ops.geqrf_p.bind(jnp.asarray(a))
    q = np.linalg.qr(a, "complete")[0]
    close(linalg.ormqr(h, taus, jnp.asarray(c)), q @ c, dtype)
    close(linalg.ormqr(h, taus, jnp.asarray(c), transpose=True), mH(q) @ c, dtype)
    close(linalg.ormqr(h, taus, jnp.asarray(mH(c)), left=False), mH(c) @ q, dtype)
    close(linalg.ormqr(h, taus, jnp.asarray(mH(c)), left=False, transpose=True), mH(c) @ mH(q), dtype)


def test_tridiagonal(dtype):
    a = random((2, 5, 5), dtype)
    whole = a + mH(a)
    for lower in (True, False):
        packed, d, e, taus = map(
            np.asarray, linalg.tridiagonal(jnp.asarray(np.tril(whole) if lower else np.triu(whole)), lower=lower)
        )
        assert taus.dtype == dtype and d.dtype == np.zeros(0, dtype).real.dtype
        t = np.stack([np.diag(x) + np.diag(y, 1) + np.diag(y, -1) for x, y in zip(d, e)])
        close(np.linalg.eigvalsh(t), np.linalg.eigvalsh(whole), dtype)
        q = np.zeros_like(a)
        inner = np.asarray(linalg.householder_product(jnp.asarray(packed[:, 1:, :-1]), jnp.asarray(taus)))
        if lower:
            q[:, 0, 0], q[:, 1:, 1:] = 1, inner
            close(q @ t @ mH(q), whole, dtype)


def test_tridiagonal_solve(dtype):
    for n in (1, 2, 6):
        dl, d, du, b = [random((3, n), dtype, i) for i in range(3)] + [random((3, n, 2), dtype, 3)]
        dense = np.stack([np.diag(y) + np.diag(x[1:], -1) + np.diag(z[:-1], 1) for x, y, z in zip(dl, d, du)])
        out = linalg.tridiagonal_solve(*map(jnp.asarray, (dl, d, du, b)))
        np.testing.assert_allclose(dense @ np.asarray(out), b, rtol=50 * tol(dtype), atol=50 * tol(dtype))
        close(weft.vmap(linalg.tridiagonal_solve)(*map(jnp.asarray, (dl, d, du, b))), out, dtype)
    one = jnp.ones(3, dtype)
    assert np.isnan(
        np.asarray(linalg.tridiagonal_solve(0 * one, one * jnp.array([1, 0, 1]), 0 * one, one[:, None]))
    ).all()
    finite = np.asarray(
        linalg.tridiagonal_solve(0 * one, one * jnp.array([1, 0, 1]), 0 * one, one[:, None], perturb_singular=True)
    ).ravel()
    np.testing.assert_allclose(finite, [1, 1 / np.finfo(dtype).eps, 1])


@pytest.mark.parametrize("dtype", ["float32", "float64"], indirect=True)  # it is for real numbers
def test_cholesky_update(dtype):
    r, w = np.triu(random((4, 4), dtype)), random((4,), dtype, 1)
    out = np.asarray(linalg.cholesky_update(jnp.asarray(r), jnp.asarray(w)))
    close(out.T @ out, r.T @ r + np.outer(w, w), dtype)
    close(np.tril(out, -1), np.zeros((4, 4)), dtype)
    stacks = weft.vmap(linalg.cholesky_update)(jnp.asarray(np.stack([r, 2 * r])), jnp.asarray(np.stack([w, w])))
    close(stacks[0], out, dtype)
    assert not np.asarray(linalg.cholesky_update(jnp.zeros((2, 2)), jnp.zeros(2))).any()


def test_qdwh(dtype):
    for shape in ((5, 3), (1, 1)):
        for scale in (1e-3, 1e3):
            x = (random(shape, dtype) * scale).astype(dtype)
            u, h, count, converged = linalg.qdwh(jnp.asarray(x))
            left, right = scipy.linalg.polar(x)
            close(u, left, dtype)
            close(np.asarray(h) / scale, right / scale, dtype)
            assert bool(converged) and int(count) == (6 if tol(dtype) < 1e-6 else 4)
    x = random((5, 3), dtype)
    u = np.asarray(linalg.qdwh(jnp.asarray(x), dynamic_shape=(4, 2))[0])
    close(u[:4, :2], scipy.linalg.polar(x[:4, :2])[0], dtype)
    assert not u[4].any() and not u[:, 2].any()
    _, _, count, converged = linalg.qdwh(jnp.asarray(x), max_iterations=2)
    assert int(count) == 2 and not bool(converged)


def test_algorithms_of_the_cpu(dtype):
    a = random((4, 3), dtype)
    for algorithm in (linalg.SvdAlgorithm.DEFAULT, linalg.SvdAlgorithm.QR, linalg.SvdAlgorithm.DIVIDE_AND_CONQUER):
        u, s, vh = map(np.asarray, linalg.svd(jnp.asarray(a), full_matrices=False, algorithm=algorithm))
        close(u * s @ vh, a, dtype)
    square = a[:3] + mH(a[:3])
    close(
        linalg.eigh(jnp.asarray(square), implementation=linalg.EighImplementation.QR)[1],
        np.linalg.eigvalsh(square),
        dtype,
    )
    with pytest.warns(DeprecationWarning, match="use_magma"):
        linalg.eig(jnp.asarray(square), use_magma=False)
    with pytest.raises(ValueError, match="SvdAlgorithm.QR"):
        linalg.svd(jnp.asarray(a), algorithm="fast")


@pytest.mark.parametrize(
    "name", ["geqp3", "ormqr", "cholesky_update", "hessenberg", "tridiagonal", "tridiagonal_solve"]
)
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_loops_of_the_newer_primitives(name, dtype):
    """What backends without a kernel run is what LAPACK gives, and what the references say."""
    with weft.enable_x64(dtype == "complex128"):
        compare_loops(name, dtype)


def compare_loops(name, dtype):
    matrix = lambda *shape, seed=0: random(shape, dtype, seed)
    ops, tri = linalg.ops, linalg._tridiagonal
    for primitive, args, params in (
        (ops.geqp3_p, (matrix(2, 4, 3),), dict(use_magma=None)),
        (ops.geqp3_p, (matrix(3, 5),), dict(use_magma=None)),
        *[
            (
                ops.ormqr_p,
                (0.3 * matrix(2, 4, 3), matrix(2, k), matrix(2, *((4, 5) if left else (5, 4)), seed=1)),
                dict(left=left, transpose=transpose),
            )
            for k, left, transpose in ((2, True, False), (3, True, True), (3, False, False), (2, False, True))
        ],
        *[(ops.cholesky_update_p, (np.triu(matrix(2, 4, 4)), matrix(2, 4, seed=1)), {})] * ("float" in dtype),
        *[(linalg.hessenberg_p, (matrix(*shape),), {}) for shape in ((2, 4, 4), (1, 1), (2, 2))],
        *[
            (tri.tridiagonal_p, (matrix(*shape),), dict(lower=lower))
            for shape, lower in (((2, 5, 5), True), ((4, 4), False), ((1, 1), True))
        ],
        *[
            (
                tri.tridiagonal_solve_p,
                (*[matrix(2, n, seed=i) for i in range(3)], matrix(2, n, 3)),
                dict(perturb_singular=p),
            )
            for n, p in ((1, False), (2, True), (6, False))
        ],
    ):
        if primitive.name != name:
            continue
        args = [a.astype(dtype) for a in args]
        want = primitive.bind(*map(jnp.asarray, args), **params)
        loops = weft.jit(lambda *a, primitive=primitive, params=params: primitive.decompose(*a, **params))
        for got in (loops(*args), primitive.reference(*args, **params)):
            for x, y in zip(*((got, want) if primitive.multiple_results else ([got], [want]))):
                np.testing.assert_allclose(
                    np.asarray(x), np.asarray(y), rtol=20 * tol(dtype), atol=20 * tol(dtype), err_msg=str(primitive)
                )


@pytest.mark.parametrize("name", ["cholesky", "lu", "qr", "eigh", "svd", "eig", "schur", "hessenberg"])
def test_half_precision_is_refused(name):
    for dtype in ("bfloat16", "float16"):
        with pytest.raises(NotImplementedError, match=dtype):
            getattr(linalg, name)(jnp.eye(2, dtype=dtype))
    if name not in ("cholesky", "eigh"):
        with pytest.raises(TypeError, match="does not accept dtype int32"):
            getattr(linalg, name)(jnp.eye(2, dtype="int32"))


@pytest.mark.parametrize(
    "call,error,words",
    [
        (lambda: linalg.cholesky(jnp.ones((2, 3))), TypeError, r"\(2, 3\)"),
        (lambda: linalg.cholesky(jnp.ones(3)), TypeError, r"\(3,\)"),
        (
            lambda: linalg.triangular_solve(jnp.eye(3), jnp.eye(3, dtype="complex64")),
            TypeError,
            "float32 and complex64",
        ),
        (
            lambda: linalg.triangular_solve(jnp.eye(3), jnp.ones((2, 2)), left_side=True),
            ValueError,
            r"\(3, 3\) and \(2, 2\)",
        ),
        (lambda: linalg.householder_product(jnp.ones((2, 3)), jnp.ones(2)), ValueError, "as many rows as columns"),
        (lambda: linalg.lu_pivots_to_permutation(jnp.ones(2), 3), TypeError, "float32"),
        (lambda: jnp.linalg.inv(jnp.ones((2, 3))), ValueError, r"\(2, 3\)"),
        (lambda: jnp.linalg.det(jnp.ones((2, 3))), ValueError, r"\(2, 3\)"),
        (lambda: jnp.linalg.solve(jnp.ones((2, 3)), jnp.ones(2)), ValueError, r"\(2, 3\)"),
        (lambda: jnp.linalg.solve(jnp.eye(3), jnp.ones((2, 2))), ValueError, r"\(2, 2\)"),
        (lambda: jnp.linalg.qr(jnp.eye(2), mode="x"), ValueError, "'x'"),
        (lambda: jnp.linalg.eigh(jnp.eye(2), UPLO="Z"), ValueError, "Z"),
        (lambda: jnp.linalg.norm(jnp.eye(2), "x"), ValueError, "'x'"),
        (lambda: jnp.linalg.slogdet(jnp.eye(2), method="x"), ValueError, "'x'"),
        (lambda: linalg.cholesky(jnp.ones((2, 3)), symmetrize_input=False), ValueError, r"\(2, 3\)"),
        (
            lambda: weft.jvp(lambda a: linalg.svd(a)[0], (jnp.ones((3, 2)),), (jnp.ones((3, 2)),)),
            NotImplementedError,
            "full_matrices=False",
        ),
        (
            lambda: weft.jvp(lambda a: linalg.eig(a)[2], (jnp.ones((2, 2)),), (jnp.ones((2, 2)),)),
            NotImplementedError,
            "enable_eigvec_derivs=True",
        ),
    ],
)
def test_wrong_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("platform", under_test("reference", "cpu", "wasm"))
def test_no_backend_ignores_that_eigenvalues_are_to_be_sorted(platform):
    with on(platform), pytest.raises(NotImplementedError, match="[Ll]eave sort_eig_vals and select_callable out"):
        linalg.schur(jnp.eye(3), sort_eig_vals=True)


@pytest.mark.parametrize("lower", [True, False])
def test_the_reference_of_eigh_reads_the_triangle_that_is_named(lower):
    a = np.array([[1, 2], [5, 3]], np.float32)
    v, w = lax.linalg.eigh_p.reference(a, lower=lower, sort_eigenvalues=True, subset_by_index=None, algorithm=None)
    np.testing.assert_allclose(w, np.linalg.eigvalsh(a, "L" if lower else "U"), rtol=1e-6)
    whole = np.array([[1, 5], [5, 3]] if lower else [[1, 2], [2, 3]], np.float32)
    np.testing.assert_allclose(whole @ v, v * w, rtol=1e-5, atol=1e-5)


EMPTY = [
    *[(name, shape) for name in ("lu", "qr", "svd") for shape in ((0, 0), (2, 0, 0), (0, 3), (3, 0), (2, 3, 0))],
    *[(name, (2, 0, 0)) for name in ("cholesky", "eig", "eigh", "schur", "hessenberg")],
    *[(name, (0, 0)) for name in ("cholesky", "eig", "eigh", "schur", "hessenberg")],
    *[(name, (0, 2, 2)) for name in ("cholesky", "eig", "eigh", "schur", "hessenberg", "lu", "qr", "svd")],
]


@pytest.mark.parametrize("platform", under_test("cpu", "wasm", "webgpu"))
@pytest.mark.parametrize("name,shape", EMPTY)
def test_matrices_without_entries(name, shape, platform):
    for dtype in ("float32", "complex64"):
        f = lambda x: getattr(lax.linalg, name)(x)
        x = np.zeros(shape, dtype)
        got, want = [weft.tree.leaves(weft.jit(f, backend=p)(x)) for p in (platform, "reference")]
        assert [(g.shape, g.dtype) for g in got] == [(w.shape, w.dtype) for w in want]
        for g, w in zip(got, want):
            np.testing.assert_array_equal(np.abs(np.asarray(g)), np.abs(np.asarray(w)))
