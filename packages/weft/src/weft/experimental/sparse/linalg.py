"""Linear systems and eigenvalues with sparse matrices."""

from __future__ import annotations

from typing import Any, Callable

from ...base import dtypes
from ... import lax, numpy as jnp
from ...base.source_info import api_boundary
from .csr import CSR

__all__ = ["lobpcg_standard", "spsolve"]


@api_boundary
def spsolve(data, indices, indptr, b, tol: float = 1e-6, reorder: int = 1):
    """Solves A x = b, where A is a square matrix in the CSR format.

    The matrix is made dense and factored, so `tol` and `reorder`, which concern sparse factorisations, have no effect.
    For large systems use `weft.scipy.sparse.linalg`.

    Args:
        data, indices, indptr: the elements of A (nse,), their columns (nse,), and where each row begins (n + 1,): a
            float or complex array and two integer ones.
        b: the right-hand side, of shape (n,) and a float or complex dtype.
        tol: has no effect.
        reorder: 0, 1, 2 or 3; has no effect.

    Returns:
        x, of shape (n,).

    Raises:
        ValueError: `b` does not have the shape (n,), or `reorder` is not 0 to 3.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> m = sparse.CSR.fromdense(jnp.array([[2., 0.], [0., 4.]]))
        >>> sparse.linalg.spsolve(m.data, m.indices, m.indptr, jnp.ones(2))
        Array([0.5 , 0.25], dtype=float32)
    """
    if reorder not in (0, 1, 2, 3):
        raise ValueError(f"spsolve: reorder must be 0, 1, 2 or 3, got {reorder}.")
    b, n = jnp.asarray(b), jnp.shape(indptr)[0] - 1
    if b.ndim != 1 or b.shape[0] != n:
        raise ValueError(
            f"spsolve: b must be of shape ({n},), as many elements as indptr says there are rows, got {b.shape}."
        )
    return jnp.linalg.solve(CSR((data, indices, indptr), shape=(n, n)).todense(), b)


@api_boundary
def lobpcg_standard(A: Any, X, m: int = 100, tol: float | None = None):
    """The k largest eigenvalues of a symmetric matrix, and their eigenvectors.

    Each iteration takes the best vectors among the present ones, their residuals and the last directions. It ends when
    every residual is at most 10 n tol (|theta| + |A u|).

    Source: A. Knyazev, "Toward the optimal preconditioned eigensolver: locally optimal block preconditioned conjugate
    gradient method" (2001); here without a preconditioner.

    Args:
        A: a symmetric matrix of shape (n, n), dense or sparse, or a function from arrays of shape (n, j) to A times
            them.
        X: the first guess of the eigenvectors, of shape (n, k) with 5 k < n and a real floating-point dtype.
        m: the largest number of iterations; int.
        tol: the tolerance; float; by default the eps of the dtype.

    Returns:
        (theta, U, iterations): the eigenvalues (k,) from the largest on, the eigenvectors (n, k) as columns, and an
        int32 scalar.

    Raises:
        ValueError: shapes or dtypes do not fit, or 5 k >= n. Use `weft.numpy.linalg.eigh` then.
        TypeError: X is complex.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> m = sparse.BCOO.fromdense(jnp.diag(jnp.arange(1., 21.)))
        >>> sparse.linalg.lobpcg_standard(m, jnp.ones((20, 1)))[0].round(3).tolist()
        [20.0]
    """
    X = jnp.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"lobpcg_standard: X must be [n, k], the first guess of k vectors, got shape {X.shape}.")
    n, k = X.shape
    if not 0 < 5 * k < n:
        raise ValueError(
            f"lobpcg_standard: X must hold at least one vector and fewer than n / 5, got {k} of size {n}. Use"
            " weft.numpy.linalg.eigh for so many."
        )
    if dtypes.is_complex(X.dtype):
        raise TypeError(f"lobpcg_standard takes real numbers, got {dtypes.name(X.dtype)}. Use weft.numpy.linalg.eigh.")
    apply: Callable = A if callable(A) else lambda v: A @ v
    if not callable(A) and A.shape != (n, n):
        raise ValueError(f"lobpcg_standard: A must be of shape {(n, n)}, as X of shape {X.shape} asks, got {A.shape}.")
    start = jnp.linalg.qr(X)[0]
    image = apply(start)
    if image.shape != (n, k) or image.dtype != X.dtype:
        raise ValueError(
            f"lobpcg_standard: A must take {dtypes.name(X.dtype)}{[n, k]} to the same, got"
            f" {dtypes.name(image.dtype)}{list(image.shape)}."
        )
    bound = 10 * n * (float(jnp.finfo(X.dtype).eps) if tol is None else tol)
    size = lambda v: jnp.sqrt((v * v).sum(0))

    def state(i, u, image, directions):
        theta = (u * image).sum(0)
        rest = image - u * theta
        return i, u, theta, rest, directions, jnp.any(size(rest) > bound * (jnp.abs(theta) + size(image)))

    def step(carry):
        i, u, _, rest, directions, _ = carry
        unit = lambda v: v / jnp.where(size(v) > 0, size(v), 1)
        # Householder's Q is orthonormal even where columns depend on each other; what it has instead of them only
        # widens the search
        basis = jnp.linalg.qr(jnp.concatenate([u, unit(rest), unit(directions)], 1))[0]
        images = apply(basis)
        w = jnp.linalg.eigh(basis.T @ images)[1][:, : -k - 1 : -1]
        return state(i + 1, basis @ w, images @ w, basis[:, k:] @ w[k:])

    i, u, theta, *_ = lax.while_loop(
        lambda s: (s[0] < m) & s[-1], step, state(jnp.int32(0), start, image, jnp.zeros_like(start))
    )
    order = jnp.argsort(-theta)
    return theta[order], u[:, order], i


def __dir__() -> list[str]:
    return sorted(__all__)
