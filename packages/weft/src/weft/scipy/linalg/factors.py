"""Factorisations of `weft.scipy.linalg` that build on others: products with Q, polar decompositions, tridiagonal
eigenvalues.
"""

from __future__ import annotations

from typing import Any

from ...base import dtypes
from ...lax import linalg as lax
from ...numpy.products import matmul
from ...numpy.util import on_device, operand, promote_inexact
from ...primitives import elementwise as el
from ...primitives import linalg as ops
from ...primitives import matrix
from ...primitives.rules import dtype_of, scalar_like, shape_of
from ...primitives.shape import pad


def _inexact(name: str, *args) -> list:
    return [on_device(x) for x in promote_inexact(name, *args)]


def qr_multiply(
    a,
    c,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
):
    """(c Q, R), or (Q c, R) with mode 'left', for a = Q R, without forming Q; with `pivoting` also the order of a's
    columns.

    a is [..., m, n]; c is [..., p, m], or [..., k, p] for mode 'left' with k = min(m, n); a vector c is one row
    (column). `conjugate` takes Q's conjugate.

    Args:
        a: array of floats or complex numbers, shape (..., m, n).
        c: array of numbers: a matrix or vector that fits.
        mode: 'left' or 'right'.
        pivoting, conjugate: bool.
        overwrite_a, overwrite_c: bool, without effect.

    Returns:
        (product, R), of the dtype to which both promote; with `pivoting` also the order.

    Raises:
        ValueError: for another mode, or sizes that do not fit.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> a = jnp.array([[1., 1.], [1., 2.], [1., 3.]])
        >>> qtb, r = linalg.qr_multiply(a, jnp.array([1., 2., 3.]))
        >>> linalg.solve_triangular(r, qtb).round(3).tolist()
        [0.0, 1.0]
    """
    if mode not in ("left", "right"):
        raise ValueError(f"qr_multiply: mode must be 'right' or 'left', got {mode!r}.")
    a, c = _inexact("qr_multiply", a, c)
    m, n = shape_of(a)[-2:]
    k, left, vector = min(m, n), mode == "left", len(shape_of(c)) == 1
    if vector:
        c = c[:, None] if left else c[None, :]
    if shape_of(c)[-2 if left else -1] != (k if left else m):
        raise ValueError(
            f"qr_multiply: with mode={mode!r} c must have {k if left else m} {'rows' if left else 'columns'} for a of"
            f" shape {shape_of(a)}, got shape {shape_of(c)}."
        )
    factors, taus, *order = ops.geqp3_p.bind(a, use_magma=None) if pivoting else ops.geqrf_p.bind(a)
    c = matrix.conjugate(c) if conjugate else c
    c = matrix.pad_to(c, m, shape_of(c)[-1]) if left else c
    out = lax.ormqr(factors[..., :k], taus, c, left=left)
    out = matrix.conjugate(out) if conjugate else out
    out = out if left else out[..., :k]
    if vector:
        out = out[..., 0] if left else out[..., 0, :]
    return (out, matrix.triu(factors[..., :k, :]), *order)


def polar(a, side: str = "right", *, method: str = "qdwh", eps: float | None = None, max_iterations: int | None = None):
    """(u, p) with a = u p (`side` 'left': a = p u), u with orthonormal columns (rows) and p Hermitian and positive
    semidefinite.

    method 'qdwh' iterates (see `weft.lax.linalg.qdwh` for eps and max_iterations) on one matrix with m >= n (m <= n for
    'left'); 'svd' takes stacks and all shapes.

    Args:
        a: array of floats or complex numbers, shape (..., m, n).
        side: 'left' or 'right'.
        method: 'qdwh' or 'svd'.
        eps: number, when the iteration has converged.
        max_iterations: int.

    Returns:
        (u, p), of the dtype of a.

    Raises:
        ValueError: for another side or method. NotImplementedError: for a shape that 'qdwh' does not take.

    Source: Nakatsukasa et al., "Optimizing Halley's iteration for computing the matrix polar decomposition" (2010).

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> a = jnp.array([[0., 2.], [3., 0.]])
        >>> u, p = linalg.polar(a)
        >>> bool(jnp.allclose(u @ p, a, atol=1e-5))
        True
    """
    if side not in ("left", "right"):
        raise ValueError(f"polar: side must be 'right' or 'left', got {side!r}.")
    if method not in ("qdwh", "svd"):
        raise ValueError(f"polar: method must be 'qdwh' or 'svd', got {method!r}.")
    (x,) = _inexact("polar", a)
    if method == "svd":
        u, s, vh = lax.svd(x, full_matrices=False)
        p = (
            matmul(matrix.scale_columns(matrix.mH(vh), s), vh)
            if side == "right"
            else matmul(matrix.scale_columns(u, s), matrix.mH(u))
        )
        return matmul(u, vh), p
    m, n = shape_of(x)[-2:]
    if m < n and side == "right" or m > n and side == "left":
        raise NotImplementedError(
            f"polar: method='qdwh' takes matrices with {'m >= n' if side == 'right' else 'm <= n'} for side={side!r},"
            f" got shape {shape_of(x)}. Use method='svd'."
        )
    u, p, _, _ = lax.qdwh(x if side == "right" else matrix.mH(x), eps=eps, max_iterations=max_iterations)
    return (u, p) if side == "right" else (matrix.mH(u), p)


def eigh_tridiagonal(
    d,
    e,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple | None = None,
    tol: float | None = None,
    key: Any = None,
):
    """(eigenvalues, eigenvectors) of the real symmetric matrix with the diagonals d [n] and e [n-1]; the ascending
    eigenvalues alone with `eigvals_only`.

    `select` 'i' keeps the eigenvalues number select_range[0] to select_range[1]. The matrix is factored whole by
    `eigh`, to rounding, so that `tol` and `key`, which steer iterations, have nothing to do.

    Args:
        d: array of floats, shape (n,).
        e: array of floats, shape (n - 1,).
        eigvals_only: bool.
        select: 'a', all, 'i', by number, or 'v', by value.
        select_range: two numbers.
        tol: number, without effect.
        key: without effect.

    Returns:
        (eigenvalues, eigenvectors): floats of shape (k,) and (n, k).

    Raises:
        ValueError: for sizes that do not fit, another select, or 'i' without a range. NotImplementedError: for select
            'v', whose result has no fixed size.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> linalg.eigh_tridiagonal(jnp.array([2., 2.]), jnp.array([1.]), eigvals_only=True).round(4).tolist()
        [1.0, 3.0]
    """
    d, e = [on_device(operand("eigh_tridiagonal", v)) for v in (d, e)]
    if any(dtypes.name(dtype_of(v)) not in ("float32", "float64") for v in (d, e)):
        raise TypeError(
            f"eigh_tridiagonal takes diagonals of float32 or float64, got {dtypes.name(dtype_of(d))} and"
            f" {dtypes.name(dtype_of(e))}: convert them with astype. weft.scipy.linalg.eigh takes complex matrices."
        )
    d, e = _inexact("eigh_tridiagonal", d, e)
    if len(shape_of(d)) != 1 or shape_of(e) != (max(shape_of(d)[0] - 1, 0),):
        raise ValueError(
            f"eigh_tridiagonal takes diagonals of shapes (n,) and (n - 1,), got {shape_of(d)} and {shape_of(e)}."
        )
    if select not in ("a", "i", "v"):
        raise ValueError(f"eigh_tridiagonal: select must be 'a', 'i' or 'v', got {select!r}.")
    if select == "v":
        raise NotImplementedError(
            "eigh_tridiagonal: with select='v' the size of the result depends on values; take all eigenvalues and a"
            " mask."
        )
    n = shape_of(d)[0]
    first, last = 0, n - 1
    if select == "i":
        if select_range is None:
            raise ValueError("eigh_tridiagonal: select='i' needs select_range, the first and the last index.")
        first, last = map(int, select_range)
    if not 0 <= first <= last < max(n, 1):
        raise ValueError(f"eigh_tridiagonal: select_range {(first, last)} must name indices within 0..{n - 1}.")
    whole = matrix.diagonal_matrix(d)
    if n > 1:  # eigh reads the lower triangle: e goes below the diagonal
        whole = el.add(whole, pad(matrix.diagonal_matrix(e), scalar_like(e, 0), [(1, 0, 0), (0, 1, 0)]))
    v, w = lax.eigh(whole, symmetrize_input=False)
    w, v = w[first : last + 1], v[:, first : last + 1]
    return w if eigvals_only else (w, v)
