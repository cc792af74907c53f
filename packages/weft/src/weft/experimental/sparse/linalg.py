"""Linear systems with sparse matrices."""
from __future__ import annotations

from ... import numpy as jnp
from ...source_info import api_boundary
from .csr import CSR

__all__ = ["spsolve"]


@api_boundary
def spsolve(data, indices, indptr, b, tol: float = 1e-6, reorder: int = 1):
    """x with A x = b for the square CSR matrix A of (data, indices, indptr).

    The matrix is made dense and factored, so that `tol` and `reorder`, which steer sparse factorisations, have nothing to do; for large systems use
    `weft.scipy.sparse.linalg`.

    Raises: ValueError for shapes that do not fit, and another reorder than 0 to 3.

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
        raise ValueError(f"spsolve: b must be of shape ({n},), as many elements as indptr says there are rows, got {b.shape}.")
    return jnp.linalg.solve(CSR((data, indices, indptr), shape=(n, n)).todense(), b)
