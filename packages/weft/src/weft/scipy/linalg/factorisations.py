"""Factorisations of matrices, systems that they solve, and the matrix exponential.

`overwrite_…` and `check_finite` are taken and have no effect: arrays are immutable, and values are not known while a
function is traced.
"""

from __future__ import annotations

import math
from typing import Any

from ...base import dtypes, promotion
from ...higher_order.while_loop import fori_loop
from ...lax import linalg as lax
from ...numpy import linalg as _np
from ...numpy.diagonals import tril, triu
from ...numpy.linalg import solving
from ...numpy.products import matmul
from ...numpy.util import on_device, operand, promote_inexact
from ...primitives import elementwise as el, transcendental
from ...primitives import linear, matrix
from ...primitives import linalg as ops
from ...primitives.reduce import reduce_max
from ...primitives.rules import dtype_of, scalar_like, shape_of
from ...primitives.shape import pad as ops_pad
from .factors import eigh_tridiagonal, polar, qr_multiply

__all__ = [
    "block_diag",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "det",
    "eigh",
    "eigh_tridiagonal",
    "expm",
    "hessenberg",
    "inv",
    "lu",
    "lu_factor",
    "lu_solve",
    "polar",
    "qr",
    "qr_multiply",
    "schur",
    "solve",
    "solve_triangular",
    "svd",
]


def _inexact(name: str, *args) -> list:
    return [on_device(x) for x in promote_inexact(name, *args)]


def cholesky(a, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True):
    """The upper (or lower) triangular factor of Hermitian positive-definite matrices.

    Args:
        a: array of floats or complex numbers, shape (..., n, n).
        lower: bool: the lower factor.
        overwrite_a, check_finite: bool, without effect.

    Returns:
        array of the dtype and shape of a.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> linalg.cholesky(jnp.array([[4., 2.], [2., 2.]])).tolist()
        [[2.0, 1.0], [0.0, 1.0]]
    """
    return _np.cholesky(a, upper=not lower)


def cho_factor(a, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True):
    """(factor, lower), for `cho_solve`.

    Args:
        a: array of floats or complex numbers, shape (..., n, n).
        lower: bool: the lower factor.
        overwrite_a, check_finite: bool, without effect.

    Returns:
        (factor, lower): an array of the dtype and shape of a, and a bool.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> linalg.cho_solve(linalg.cho_factor(2 * jnp.eye(2)), jnp.ones(2)).round(4).tolist()
        [0.5, 0.5]
    """
    return cholesky(a, lower), lower


def cho_solve(c_and_lower: tuple, b, overwrite_b: bool = False, check_finite: bool = True):
    """x with a x = b, from a's `cho_factor`.

    Args:
        c_and_lower: what `cho_factor` returns.
        b: array of numbers, shape (n,) or (..., n, k).
        overwrite_b, check_finite: bool, without effect.

    Returns:
        array of floats or complex numbers, the shape of b.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> linalg.cho_solve((2 * jnp.eye(2), True), jnp.ones(2)).tolist()
        [0.25, 0.25]
    """
    factor, lower = c_and_lower
    c, b = _inexact("cho_solve", factor, b)
    single = len(shape_of(b)) == 1
    b = b[:, None] if single else b
    how = dict(left_side=True, lower=bool(lower))
    b = lax.triangular_solve(c, b, transpose_a=not lower, conjugate_a=not lower, **how)
    b = lax.triangular_solve(c, b, transpose_a=bool(lower), conjugate_a=bool(lower), **how)
    return b[:, 0] if single else b


def det(a, overwrite_a: bool = False, check_finite: bool = True):
    """The determinants of square matrices; as `weft.numpy.linalg.det`.

    Args:
        a: array of floats or complex numbers, shape (..., n, n).
        overwrite_a, check_finite: bool, without effect.

    Returns:
        array of floats or complex numbers, shape (...).

    Raises:
        ValueError: if a is not square.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> float(linalg.det(jnp.array([[2.0, 0.0], [0.0, 3.0]])))
        6.0
    """
    return _np.det(a)


def inv(a, overwrite_a: bool = False, check_finite: bool = True):
    """The inverses of square matrices; as `weft.numpy.linalg.inv`.

    Args:
        a: array of floats or complex numbers, shape (..., n, n).
        overwrite_a, check_finite: bool, without effect.

    Returns:
        array of floats or complex numbers, the shape of a.

    Raises:
        ValueError: if a is not square.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]])).tolist()
        [[0.5, 0.0], [0.0, 0.25]]
    """
    return _np.inv(a)


def eigh(
    a,
    b=None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
):
    """(eigenvalues, eigenvectors) of Hermitian matrices; the eigenvalues alone with `eigvals_only`.

    Args:
        a: array of floats or complex numbers, shape (..., n, n).
        b: None: the problem has no second matrix.
        lower: bool: the lower triangle is read.
        eigvals_only: bool.
        overwrite_a, overwrite_b, turbo: bool, without effect.
        eigvals: None: all are computed.
        type: int, 1: the problem a v = w v.
        check_finite: bool, without effect.

    Returns:
        (eigenvalues, eigenvectors): floats of shape (..., n), and an array of the dtype and shape of a.

    Raises:
        NotImplementedError: for b, eigvals and another type.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> linalg.eigh(jnp.array([[2., 0.], [0., 1.]]), eigvals_only=True).tolist()
        [1.0, 2.0]
    """
    if b is not None or eigvals is not None or type != 1:
        raise NotImplementedError("eigh: only the standard problem, with b=None, eigvals=None and type=1, is computed.")
    (x,) = _inexact("eigh", a)
    v, w = lax.eigh(x, lower=lower, symmetrize_input=False)
    return w if eigvals_only else (w, v)


_DRIVERS = {"gesdd": lax.SvdAlgorithm.DEFAULT, "gesvd": lax.SvdAlgorithm.QR}


def svd(
    a,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
):
    """(U, s, Vᴴ); s alone without `compute_uv`. The driver is 'gesdd' (divide and conquer) or 'gesvd' (QR).

    Args:
        a: array of floats or complex numbers, shape (..., m, n).
        full_matrices: bool: U and V are square, (m, m) and (n, n); else (m, k) and (k, n) with k = min(m, n).
        compute_uv: bool.
        overwrite_a, check_finite: bool, without effect.
        lapack_driver: 'gesdd' or 'gesvd'.

    Returns:
        (U, s, Vᴴ): of the dtype of a, and s of floats, shape (..., k).

    Raises:
        ValueError: for another driver.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> linalg.svd(jnp.array([[0., 2.], [1., 0.]]), compute_uv=False, lapack_driver='gesvd').tolist()
        [2.0, 1.0]
    """
    if lapack_driver not in _DRIVERS:
        raise ValueError(f"svd: lapack_driver must be 'gesdd' or 'gesvd', got {lapack_driver!r}.")
    (x,) = _inexact("svd", a)
    return lax.svd(x, full_matrices=bool(full_matrices), compute_uv=bool(compute_uv), algorithm=_DRIVERS[lapack_driver])


def lu_factor(a, overwrite_a: bool = False, check_finite: bool = True):
    """(LU, pivots), for `lu_solve`.

    Args:
        a: array of floats or complex numbers, shape (..., m, n).
        overwrite_a, check_finite: bool, without effect.

    Returns:
        (LU, pivots): an array of the dtype and shape of a, and int32 of shape (..., min(m, n)).

    Raises:
        ValueError: `a` is not a square matrix, or a stack of such.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> linalg.lu_solve(linalg.lu_factor(jnp.array([[2., 0.], [0., 4.]])), jnp.array([2., 4.])).tolist()
        [1.0, 1.0]
    """
    (x,) = _inexact("lu_factor", a)
    if shape_of(x)[-1:] != shape_of(x)[-2:-1]:
        raise ValueError(f"lu_factor takes square matrices, of shape [..., n, n], got {shape_of(x)}.")
    factors, pivots, _ = lax.lu(x)
    return factors, pivots


def lu_solve(lu_and_piv: tuple, b, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True):
    """x with a x = b (`trans` 1: aᵀ x = b, 2: aᴴ x = b), from a's `lu_factor`.

    Args:
        lu_and_piv: what `lu_factor` returns.
        b: array of numbers, shape (n,) or (n, k).
        trans: int, 0, 1 or 2.
        overwrite_b, check_finite: bool, without effect.

    Returns:
        array of floats or complex numbers, the shape of b.

    Raises:
        ValueError: `trans` is not 0, 1 or 2, or `b` does not fit the factors.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> a = jnp.array([[2.0, 0.0], [0.0, 4.0]])
        >>> linalg.lu_solve(linalg.lu_factor(a), jnp.array([2.0, 4.0])).tolist()
        [1.0, 1.0]
    """
    factors, pivots = lu_and_piv
    factors, b = _inexact("lu_solve", factors, b)
    if trans not in (0, 1, 2):
        raise ValueError(f"lu_solve: trans must be 0, 1 or 2, got {trans!r}.")
    single = len(shape_of(b)) == 1
    if shape_of(b)[-1 if single else -2] != shape_of(factors)[-1]:
        raise ValueError(f"lu_solve: b of shape {shape_of(b)} does not fit factors of shape {shape_of(factors)}.")
    perm = lax.lu_pivots_to_permutation(pivots, shape_of(factors)[-1])
    out = solving.lu_solve((factors, pivots, perm), shape_of(factors)[:-2], b[:, None] if single else b, trans)
    return out[..., 0] if single else out


def lu(a, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True):
    """(P, L, U) with a = P L U; (P L, U) with `permute_l`.

    Args:
        a: array of floats or complex numbers, shape (..., m, n).
        permute_l: bool.
        overwrite_a, check_finite: bool, without effect.

    Returns:
        (P, L, U), of the dtype of a: shapes (..., m, m), (..., m, k) and (..., k, n) with k = min(m, n).

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> p, l, u = linalg.lu(jnp.array([[1., 2.], [4., 4.]]))
        >>> (p @ l @ u).tolist()
        [[1.0, 2.0], [4.0, 4.0]]
    """
    (x,) = _inexact("lu", a)
    factors, _, perm = lax.lu(x)
    *batch, m, n = shape_of(x)
    k = min(m, n)
    lower = tril(factors[..., :k], -1) + matrix.eye((m, k), dtype_of(x))
    upper = triu(factors[..., :k, :])
    if permute_l:
        return ops.permute_rows(lower, solving._inverse(perm)), upper
    wide = (*batch, m, m)
    return linear.convert(el.eq(matrix.index(wide, -2), matrix.rows(perm, m)), dtype_of(x)), lower, upper


def qr(
    a,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
):
    """(Q, R); mode 'full', 'economic' or 'r' (a tuple of R alone). With `pivoting` the order P of a's columns, a[:, P]
    = Q R, comes last.

    Args:
        a: array of floats or complex numbers, shape (..., m, n).
        overwrite_a: bool, without effect.
        lwork: without effect.
        mode: 'full', 'economic' or 'r'.
        pivoting: bool.
        check_finite: bool, without effect.

    Returns:
        (Q, R), of the dtype of a: shapes (..., m, m) and (..., m, n), or with k = min(m, n) in place of m for
        'economic'.

    Raises:
        ValueError: for another mode.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> linalg.qr(jnp.ones((3, 2)), mode='economic')[0].shape
        (3, 2)
    """
    if mode not in ("full", "r", "economic"):
        raise ValueError(f"Unsupported QR decomposition mode {mode!r}; modes are 'full', 'r' and 'economic'.")
    (x,) = _inexact("qr", a)
    out = lax.qr(x, pivoting=pivoting, full_matrices=mode != "economic")
    return out[1:] if mode == "r" else out


def schur(a, output: str = "real"):
    """(T, Z) with a = Z T Zᴴ; `output` 'complex' makes T triangular for real a too.

    Args:
        a: array of floats or complex numbers, shape (..., n, n).
        output: 'real' or 'complex'.

    Returns:
        (T, Z), of floats or complex numbers, the shape of a.

    Raises:
        ValueError: for another output.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> T, Z = linalg.schur(jnp.array([[1.0, 2.0], [0.0, 3.0]]))
        >>> bool(jnp.allclose(Z @ T @ Z.T, jnp.array([[1.0, 2.0], [0.0, 3.0]]), atol=1e-5))
        True
    """
    if output not in ("real", "complex"):
        raise ValueError(f"Expected 'output' to be either 'real' or 'complex', got {output!r}.")
    (x,) = _inexact("schur", a)
    if output == "complex" and not dtypes.is_complex(dtype_of(x)):
        x = linear.convert(x, dtypes.complex_of(dtype_of(x)))
    return lax.schur(x)


def hessenberg(a, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True):
    """H, zero below its first subdiagonal; (H, Q) with a = Q H Qᴴ with `calc_q`.

    Args:
        a: array of floats or complex numbers, shape (..., n, n).
        calc_q: bool.
        overwrite_a, check_finite: bool, without effect.

    Returns:
        array of the dtype and shape of a, or a pair of them.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> linalg.hessenberg(jnp.ones((3, 3))).shape
        (3, 3)
    """
    (x,) = _inexact("hessenberg", a)
    factors, taus = lax.hessenberg(x)
    upper = triu(factors, -1)
    if not calc_q:
        return upper
    *batch, n, _ = shape_of(x)
    if n < 2:
        return upper, matrix.eye(shape_of(x), dtype_of(x))
    inner = lax.householder_product(factors[..., 1:, :-1], taus)
    config = [(0, 0, 0)] * len(batch) + [(1, 0, 0)] * 2
    padded = ops_pad(inner, scalar_like(inner, 0), config)
    place = el.add(matrix.index(shape_of(x), -2), matrix.index(shape_of(x), -1))
    corner = linear.convert(el.eq(place, scalar_like(place, 0)), dtype_of(x))
    return upper, padded + corner


def solve(
    a,
    b,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
):
    """x with a x = b; assume_a 'pos' takes Cholesky's factorisation of the upper (`lower`: lower) triangle, the others
    LU.

    Args:
        a: array of floats or complex numbers, shape (..., n, n).
        b: array of numbers, shape (n,) or (..., n, k).
        lower: bool: the lower triangle is read, for 'pos'.
        overwrite_a, overwrite_b, debug, check_finite: bool, without effect.
        assume_a: 'gen', 'sym', 'her' or 'pos'.

    Returns:
        array of floats or complex numbers, the shape of b.

    Raises:
        ValueError: for another assume_a than 'gen', 'sym', 'her' and 'pos'.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> linalg.solve(4 * jnp.eye(2), jnp.ones(2), assume_a='pos').tolist()
        [0.25, 0.25]
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ValueError(f"Expected assume_a to be one of ['gen', 'sym', 'her', 'pos']; got {assume_a!r}")
    if assume_a != "pos":
        return _np.solve(a, b)
    a, b = _inexact("solve", a, b)
    return cho_solve((_np.cholesky(a, upper=not lower, symmetrize_input=True), lower), b)


def solve_triangular(
    a,
    b,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
):
    """x with op(a) x = b for triangular a; trans 0 or 'N', 1 or 'T', 2 or 'C' says what op is.

    Args:
        a: array of floats or complex numbers, shape (..., n, n).
        b: array of numbers, shape (n,) or (..., n, k).
        trans: 0, 1, 2, 'N', 'T' or 'C'.
        lower: bool: a is lower triangular.
        unit_diagonal: bool: the diagonal counts as ones.
        overwrite_b, debug, check_finite: bool, without effect.

    Returns:
        array of floats or complex numbers, the shape of b.

    Raises:
        ValueError: for another trans.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> linalg.solve_triangular(jnp.array([[2., 0.], [1., 1.]]), jnp.array([4., 3.]), lower=True).tolist()
        [2.0, 1.0]
    """
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise ValueError(f"Invalid 'trans' value {trans}; it is 0 ('N'), 1 ('T') or 2 ('C').")
    a, b = _inexact("solve_triangular", a, b)
    single = len(shape_of(b)) == 1
    out = lax.triangular_solve(
        a,
        b[:, None] if single else b,
        left_side=True,
        lower=lower,
        transpose_a=trans not in (0, "N"),
        conjugate_a=trans in (2, "C"),
        unit_diagonal=unit_diagonal,
    )
    return out[:, 0] if single else out


def block_diag(*arrs):
    """One matrix with the given ones along its diagonal, zeros elsewhere.

    Args:
        *arrs: arrays of numbers, of rank at most 2.

    Returns:
        array of the dtype to which all promote, of rank 2.

    Raises:
        ValueError: for higher ranks.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> linalg.block_diag(jnp.ones((1, 2)), 2 * jnp.ones((1, 1))).tolist()
        [[1.0, 1.0, 0.0], [0.0, 0.0, 2.0]]
    """
    xs = [on_device(operand("block_diag", a)) for a in arrs] or [linear.full((1, 0), 0.0, dtypes.float32)]
    if any(len(shape_of(x)) > 2 for x in xs):
        raise ValueError(f"block_diag takes matrices, got shapes {[shape_of(x) for x in xs]}.")
    dt = promotion.promote(*[(dtype_of(x), False) for x in xs])[0]
    xs = [linear.reshape(linear.convert(x, dt), ((1, 1) + shape_of(x))[-2:]) for x in xs]
    height, width, top, left, out = sum(shape_of(x)[0] for x in xs), sum(shape_of(x)[1] for x in xs), 0, 0, None
    for x in xs:
        m, n = shape_of(x)
        block = ops_pad(x, scalar_like(x, 0), [(top, height - top - m, 0), (left, width - left - n, 0)])
        out, top, left = (
            block if out is None else (el.or_ if dtypes.is_bool(dt) else el.add)(out, block),
            top + m,
            left + n,
        )
    return out


# N. Higham, "The scaling and squaring method for the matrix exponential revisited" (2005), table 2.3: the largest
# 1-norm each degree is exact for.
# fmt: off
_PADE = {
    3: (120.0, 60.0, 12.0, 1.0),
    5: (30240.0, 15120.0, 3360.0, 420.0, 30.0, 1.0),
    7: (17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0),
    13: (
        64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
        10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
    ),
}
# fmt: on


def expm(A, *, upper_triangular: bool = False, max_squarings: int = 16):
    """The exponential of square matrices [..., n, n]: scaling, a Padé approximation, and squaring; NaN where more than
    `max_squarings` are needed.

    Args:
        A: array of floats or complex numbers, shape (..., n, n).
        upper_triangular: bool: A is.
        max_squarings: int.

    Returns:
        array of floats or complex numbers, the shape of A.

    Raises:
        ValueError: if A is not square.

    Source: Higham, "The scaling and squaring method for the matrix exponential revisited" (2005).

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> linalg.expm(jnp.zeros((2, 2))).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    (x,) = _inexact("expm", A)
    shape, dt = shape_of(x), dtype_of(x)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(f"expm takes square matrices, of shape [..., n, n], got {shape}.")
    if dtypes.name(dt) not in ops.LAPACK_DTYPES:
        raise TypeError(f"expm: {dtypes.name(dt)} is not supported; convert the matrix with astype('float32').")
    if 0 in shape:
        return x
    double = dtypes.name(dt) in ("float64", "complex128")
    degree, limit = (13, 5.371920351148152) if double else (7, 3.925724783138660)
    size = reduce_max(linear.reduce_sum(el.abs_(x), (len(shape) - 2,)), (len(shape) - 2,))
    ratio = el.ceil(el.div(transcendental.log(el.div(size, scalar_like(size, limit))), scalar_like(size, math.log(2))))
    squarings = el.max_(
        scalar_like(size, 0), el.select(el.is_finite(ratio), ratio, linear.full(shape_of(ratio), 0, dtype_of(ratio)))
    )
    x = el.div(x, _wide(linear.convert(transcendental.exp2(squarings), dt), shape))
    coefficients, eye = _PADE[degree], matrix.eye(shape, dt)
    square, power = matmul(x, x), eye
    even: Any = None
    odd: Any = None
    for k in range(0, degree + 1, 2):
        terms = [el.mul(power, scalar_like(power, coefficients[k + j])) for j in (0, 1)]
        even, odd = (terms[0], terms[1]) if even is None else (el.add(even, terms[0]), el.add(odd, terms[1]))
        power = matmul(power, square) if k + 2 <= degree else power
    odd = matmul(x, odd)
    above, below = el.add(even, odd), el.sub(even, odd)
    out = (
        _np.solve(below, above)
        if not upper_triangular
        else lax.triangular_solve(below, above, left_side=True, lower=False)
    )

    def step(i, r):
        more = el.lt(linear.convert(i, dtype_of(squarings)), squarings)
        return el.select(_wide(more, shape), matmul(r, r), r)

    out = fori_loop(0, max_squarings, step, out)
    enough = el.le(squarings, scalar_like(squarings, max_squarings))
    return el.select(_wide(enough, shape), out, linear.full(shape, math.nan, dt))


def _wide(per_matrix, shape):
    return linear.broadcast_in_dim(per_matrix, shape, tuple(range(len(shape) - 2)))
