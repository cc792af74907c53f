"""The matrices, the functions of matrices and the cosine transforms: as real JAX has them (linalg_expected.json),
and as SciPy has them.
"""

import json
import pathlib
import sys

import numpy as np
import pytest
import scipy.fft
import scipy.linalg as reference

import weft
import weft.numpy as jnp
from weft.scipy import fft, linalg, special

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import checks  # noqa: E402
import frozen  # noqa: E402
from matrix_cases import SETUP, expressions  # noqa: E402

EXPECTED = json.loads((HERE / "linalg_expected.json").read_text())
RNG = np.random.default_rng(0)
SQUARE, OTHER = RNG.normal(size=(2, 5, 5))
TYPES = {"float32": 2e-3, "float64": 1e-10, "complex64": 2e-3, "complex128": 1e-10}


NAMES: dict = {}


@pytest.fixture
def scope():
    with weft.enable_x64(True), weft.default_device(checks.REFERENCE):
        if not NAMES:
            NAMES.update({"jax": weft, "jnp": jnp, "np": np, "linalg": linalg, "fft": fft, "special": special})
            exec(SETUP, NAMES)
        yield NAMES


@pytest.mark.slow
@pytest.mark.parametrize("text", expressions())
def test_as_jax(text, scope):
    frozen.check(
        text, scope, EXPECTED[text], weft.errors, tolerance={"float64": 1e-9, "float32": 2e-5, "complex128": 1e-9}
    )


@pytest.fixture(params=TYPES)
def matrices(request):
    """(a square matrix, another one, a smaller one, comparison) of each dtype."""
    double = request.param in ("float64", "complex128")
    turn = np.exp(0.4j) if "complex" in request.param else 1
    tol = TYPES[request.param]
    with weft.enable_x64(double), weft.default_device(None if double else checks.REFERENCE):
        a, b = ((x * turn).astype(request.param) for x in (SQUARE, OTHER))
        yield a, b, b[:3, :3], lambda x, y: checks.same(x, y, tol, tol * max(1, np.abs(np.asarray(y)).max()))


@pytest.mark.slow
def test_functions_of_matrices(matrices):
    a, b, c, close = matrices
    j = jnp.asarray
    root = linalg.sqrtm(j(a))
    close(root @ root, a)
    close(root, reference.sqrtm(a))
    close(linalg.funm(j(a), jnp.sin), reference.funm(a, np.sin))
    close(linalg.expm_frechet(j(a), j(b)), reference.expm_frechet(a, b))
    close(
        linalg.expm_frechet(j(a), j(b), method="blockEnlarge", compute_expm=False),
        reference.expm_frechet(a, b, compute_expm=False),
    )
    right = a[:, :3] + 1
    for method in ("schur", "eigen"):
        x = linalg.solve_sylvester(j(a), j(c), j(right), method=method)
        close(x, reference.solve_sylvester(a, c, right))
        assert x.dtype == a.dtype
    t, z = linalg.rsf2csf(*linalg.schur(j(a)))
    close(z @ t @ z.conj().T, a)
    close(z @ z.conj().T, np.eye(5))
    assert np.abs(np.tril(np.asarray(t), -1)).max() < 1e-5


def test_an_eigenvalue_of_a_block_keeps_its_digits():
    """Half the difference of the diagonal and the root nearly cancel in one of the block's two eigenvalues."""
    block = np.array([[0, 1], [1e-6, 1]], "float32")
    with weft.default_device(checks.REFERENCE):
        t, z = linalg.rsf2csf(jnp.asarray(block), jnp.eye(2))
        checks.same((z @ t @ z.conj().T).real, block, 0, 1e-6)


@pytest.mark.slow
def test_stacks_are_loops():
    stack = np.stack([SQUARE, OTHER]).astype("float32")
    with weft.default_device(checks.REFERENCE):
        for f in (
            linalg.sqrtm,
            lambda x: linalg.solve_sylvester(x, x, x),
            lambda x: linalg.expm_frechet(x, 2 * x)[1],
            lambda x: linalg.rsf2csf(*linalg.schur(x))[0],
        ):
            loop = np.stack([np.asarray(f(jnp.asarray(x))) for x in stack])
            checks.same(f(jnp.asarray(stack)), loop, 1e-3, 1e-3)
            checks.same(weft.jit(weft.vmap(f))(jnp.asarray(stack)), loop, 1e-3, 1e-3)


V = {
    "int32": np.array([3, 1, 4, 2], "int32"),
    "float32": np.array([3, 1, 4, 2], "float32"),
    "complex64": np.array([3, 1j, 4 - 1j, 2], "complex64"),
    "float16": np.array([3, 1, 4, 2], "float16"),
}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", V)
def test_matrices_from_vectors(dtype):
    v, j = V[dtype], jnp.asarray
    with weft.default_device(checks.REFERENCE):
        for n in (1, 2, 4):
            checks.same(linalg.toeplitz(j(v[:n]), j(v[::-1])), reference.toeplitz(v[:n], v[::-1]), 0, 0)
            checks.same(linalg.toeplitz(j(v[:n])), reference.toeplitz(v[:n]), 0, 0)
            checks.same(linalg.hankel(j(v[:n]), j(v[n - 1 :])), reference.hankel(v[:n], v[n - 1 :]), 0, 0)
            checks.same(linalg.circulant(j(v[:n])), reference.circulant(v[:n]), 0, 0)
            checks.same(linalg.fiedler(j(v[:n])), reference.fiedler(v[:n]) if n > 1 else np.zeros((1, 1)), 1e-6, 0)
            for mode in ("full", "same", "valid"):
                checks.same(linalg.convolution_matrix(j(v), n, mode), reference.convolution_matrix(v, n, mode), 0, 0)
            if n > 1:
                checks.same(linalg.companion(j(v[:n])), reference.companion(v[:n]), 2e-3, 0)
                checks.same(linalg.leslie(j(v[:n]), j(v[1:n])), reference.leslie(v[:n], v[1:n]), 0, 0)
                checks.same(linalg.fiedler_companion(j(v[:n])), reference.fiedler_companion(v[:n]), 2e-3, 0)
        assert linalg.toeplitz(j(v)).dtype == v.dtype
        for f in (linalg.toeplitz, linalg.hankel, linalg.circulant, linalg.companion, linalg.fiedler_companion):
            checks.same(weft.vmap(f)(jnp.stack([j(v), j(2 * v)])), f(jnp.stack([j(v), j(2 * v)])), 0, 0)


@pytest.mark.slow
def test_matrices_from_sizes():
    with weft.enable_x64(True), weft.default_device(checks.REFERENCE):
        for n in (1, 2, 5, 8):
            for name in ("hilbert", "dft", "helmert", "invhilbert"):
                checks.same(getattr(linalg, name)(n), getattr(reference, name)(n), 1e-14, 1e-14)
            for kind in ("symmetric", "lower", "upper"):
                checks.same(linalg.pascal(n, kind), reference.pascal(n, kind), 0, 0)
                checks.same(linalg.invpascal(n, kind), reference.invpascal(n, kind), 0, 0)
            checks.same(linalg.dft(n, "sqrtn"), reference.dft(n, "sqrtn"), 1e-14, 1e-14)
            checks.same(linalg.helmert(n, True), reference.helmert(n, True), 1e-14, 0)
        checks.same(linalg.hadamard(16), reference.hadamard(16), 0, 0)
        # to the last digit
        assert float(linalg.invhilbert(30)[14, 14]) == float(reference.invhilbert(30, exact=True)[14, 14])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "complex128"])
def test_cosine_transforms(dtype):
    x = (RNG.normal(size=(2, 3, 8)) * 9).astype(dtype)
    wide = x.astype("complex128" if dtype == "complex128" else "float64")
    double = dtype in ("float64", "complex128")
    rtol, atol = (1e-12, 1e-12) if double else (1e-5, 1e-3)
    with weft.enable_x64(double):
        for norm in (None, "ortho"):
            for axis, n in ((-1, None), (0, 5), (1, 2)):
                for name in ("dct", "idct"):
                    checks.same(
                        getattr(fft, name)(jnp.asarray(x), n=n, axis=axis, norm=norm),
                        getattr(scipy.fft, name)(wide, n=n, axis=axis, norm=norm),
                        rtol,
                        atol,
                    )
            for axes in (None, (0, 2), (1,)):
                for name in ("dctn", "idctn"):
                    checks.same(
                        getattr(fft, name)(jnp.asarray(x), axes=axes, norm=norm),
                        getattr(scipy.fft, name)(wide, axes=axes, norm=norm),
                        rtol,
                        atol,
                    )
        checks.same(fft.idct(fft.dct(jnp.asarray(x))), wide, rtol, atol)


@pytest.mark.slow
def test_derivatives_of_cosine_transforms_are_their_matrices():
    with weft.enable_x64(True):
        for f, g in ((fft.dct, scipy.fft.dct), (fft.idct, scipy.fft.idct)):
            for jac in (weft.jacfwd, weft.jacrev):
                checks.same(jac(f)(jnp.ones(5)), g(np.eye(5), axis=0), 1e-12, 1e-12)


def test_on_wasm():
    x = np.array([1.0, -2.0, 3.0, 0.5])
    checks.on_wasm(lambda x: (linalg.toeplitz(x), linalg.companion(x), fft.dct(x), fft.idctn(x, norm="ortho")), (x,))
