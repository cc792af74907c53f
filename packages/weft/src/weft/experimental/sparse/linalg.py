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
    """x with A x = b for the square CSR matrix A of (data, indices, indptr).

    The matrix is made dense and factored, so that `tol` and `reorder`, which steer sparse factorisations, have nothing
    to do; for large systems use `weft.scipy.sparse.linalg`.

    Raises:
        ValueError: for shapes that do not fit, and for a `reorder` that is not 0 to 3.

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
    """(theta [k], U [n, k], iterations): the k largest eigenvalues of a symmetric A and their eigenvectors, from a
    guess X [n, k] of those, in at most m iterations.

    A is a matrix [n, n], dense or sparse, or a function of [n, j] arrays. Each iteration takes the best vectors among
    the present ones, their residuals and the last directions (LOBPCG of Knyazev, 2001, without preconditioner). It
    ends when every residual is at most 10 n tol (|theta| + |A u|), where tol is the dtype's eps.

    Raises:
        ValueError: for shapes or dtypes that do not fit, and where 5 k >= n (use `weft.numpy.linalg.eigh`).
        TypeError: for complex numbers.

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
