"""Functions of matrices of `weft.scipy.linalg`: square roots and any others, by Schur's form; Sylvester's equation;
the derivative of the exponential.
"""

from __future__ import annotations

from typing import Callable

from ...base import dtypes
from ... import numpy as jnp
from ...api.autodiff import jvp
from ...lax import dynamic_slice_in_dim, dynamic_update_slice_in_dim, fori_loop
from ...lax import linalg as lax
from ...core.trace import get_aval
from ...numpy.util import on_device, promote_inexact, in_own_terms
from ...primitives.linalg import check_matrix
from .factorisations import expm, schur


def _inexact(name: str, *args) -> list:
    return [on_device(x) for x in promote_inexact(name, *args)]


def _square(name: str, argument: str, x):
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"{name}: {argument} must be a square matrix, of shape [..., n, n], got {x.shape}.")


def _adjoint(x):
    return jnp.conj(jnp.swapaxes(x, -1, -2))


def _diagonal(x):
    return jnp.diagonal(x, axis1=-2, axis2=-1)


def _by_diagonals(n: int, start, entry: Callable):
    """A triangular matrix that grows from its diagonal: `entry(so far)` gives all elements, those of the next
    diagonal by those of the ones before.
    """
    i, j = jnp.arange(n)[:, None], jnp.arange(n)
    return fori_loop(1, n, lambda p, f: jnp.where(j - i == p, entry(f), f), start) if n > 1 else start


def _off(x):
    return jnp.triu(x, 1)


def _quotient(a, b, instead):
    zero = b == 0
    return jnp.where(zero, instead, a / jnp.where(zero, 1, b))


@in_own_terms
def sqrtm(A, blocksize: int = 1):
    """The principal square root of square matrices [..., n, n]: a complex matrix.

    Args:
        A: array of floats or complex numbers, shape (..., n, n).
        blocksize: int, 1.

    Returns:
        array of complex numbers, the shape of A.

    Raises:
        ValueError: if A is not square. NotImplementedError: for another blocksize than 1, and for derivatives, which
            Schur's form has not.

    Source: Björck and Hammarling, "A Schur method for the square root of a matrix" (1983).

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> linalg.sqrtm(jnp.array([[4., 0.], [0., 9.]])).real.tolist()
        [[2.0, 0.0], [0.0, 3.0]]
    """
    if blocksize > 1:
        raise NotImplementedError(f"sqrtm: the algorithm works on single elements; leave blocksize={blocksize} out.")
    (x,) = _inexact("sqrtm", A)
    _square("sqrtm", "A", x)
    x = x.astype(jnp.float32) if dtypes.bits(x.dtype) == 16 else x
    # in which real eigenvalues stay real
    t, z = schur(x, output="complex") if dtypes.is_complex(x.dtype) else rsf2csf(*schur(x))
    root = jnp.sqrt(_diagonal(t))
    sums = root[..., :, None] + root[..., None, :]

    def entry(f):
        rest = t - jnp.matmul(_off(f), _off(f))
        return _quotient(rest, sums, jnp.where(rest == 0, 0, jnp.nan))

    r = _by_diagonals(x.shape[-1], root[..., None] * jnp.eye(x.shape[-1], dtype=t.dtype), entry)
    return jnp.matmul(jnp.matmul(z, r), _adjoint(z))


def funm(A, func: Callable, disp: bool = True):
    """The matrix function that `func`, which works on each element of an array, stands for, of a square matrix A;
    (value, estimated error) without `disp`.

    By Schur's form and Parlett's recurrence, which loses accuracy where eigenvalues are close to each other. The result
    is complex.

    Args:
        A: array of floats or complex numbers, shape (n, n).
        func: function of an array, elementwise.
        disp: bool: return the value alone.

    Returns:
        array of complex numbers, the shape of A.

    Raises:
        ValueError: if A is no square matrix. NotImplementedError: for derivatives, which Schur's form has not.

    Source: Golub and Van Loan, "Matrix computations" (2013), 9.1.4.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> linalg.funm(jnp.array([[1., 0.], [0., 2.]]), jnp.square).real.tolist()
        [[1.0, 0.0], [0.0, 4.0]]
    """
    (x,) = _inexact("funm", A)
    if x.ndim != 2 or x.shape[0] != x.shape[1]:
        raise ValueError(
            f"funm: A must be one square matrix, of shape [n, n], got {x.shape}; map over stacks with weft.vmap."
        )
    t, z = schur(x, output="complex") if dtypes.is_complex(x.dtype) else rsf2csf(*schur(x))
    values = jnp.diag(t)
    return _of_triangle(t, z, func(values).astype(t.dtype), disp)


@in_own_terms
def _of_triangle(t, z, out, disp: bool):
    """A function of a matrix from its Schur form, and from the function of the diagonal."""
    values, size = jnp.diag(t), t.shape[0]
    gaps = values[None, :] - values[:, None]
    eps = jnp.finfo(t.dtype).eps

    def entry(f):
        top = t * (out[None, :] - out[:, None]) + jnp.matmul(_off(t), _off(f)) - jnp.matmul(_off(f), _off(t))
        return _quotient(top, gaps, top / eps)

    f = _by_diagonals(size, jnp.diag(out), entry)
    value = jnp.matmul(jnp.matmul(z, f), _adjoint(z))
    if disp:
        return value
    least = (
        jnp.min(jnp.where(jnp.triu(jnp.ones(t.shape, bool), 1), jnp.abs(gaps), jnp.inf))
        if size > 1
        else jnp.asarray(0.0)
    )
    least = jnp.where(least == 0, eps, least)
    error = jnp.minimum(1, jnp.maximum(eps, eps / least * jnp.linalg.norm(jnp.triu(t, 1), 1)))
    return value, jnp.where(jnp.isfinite(value).all(), error, jnp.inf)


@in_own_terms
def rsf2csf(T, Z, check_finite: bool = True):
    """(T, Z) of the complex Schur form, from that of the real one, whose T has blocks of size 2.

    Args:
        T, Z: array of floats, shape (n, n).
        check_finite: bool, without effect.

    Returns:
        pair of arrays of complex numbers, shape (n, n).

    Raises:
        ValueError: unless both are square, of one shape.

    Source: Golub and Van Loan, "Matrix computations" (2013), 7.4.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> t, z = linalg.rsf2csf(*linalg.schur(jnp.array([[0., 1.], [-1., 0.]])))
        >>> jnp.abs(jnp.diag(t).imag).round(4).tolist()
        [1.0, 1.0]
    """
    T, Z = _inexact("rsf2csf", T, Z)
    _square("rsf2csf", "T", T)
    _square("rsf2csf", "Z", Z)
    if T.shape[-1] != Z.shape[-1]:
        raise ValueError(f"rsf2csf: T and Z must have the same shape, got {T.shape} and {Z.shape}.")
    dt = dtypes.complex_of(T.dtype) if not dtypes.is_complex(T.dtype) else T.dtype
    n = T.shape[-1]
    eps = float(jnp.finfo(dt).eps)
    index = jnp.arange(n)

    def turn(step, state):
        t, z = state
        m = n - 1 - step
        rows = dynamic_slice_in_dim(t, m - 1, 2, 0)
        (a, b), (c, d) = dynamic_slice_in_dim(rows, m - 1, 2, 1)
        half, product = (a - d) / 2, b * c
        root = jnp.sqrt(half * half + product)
        # an eigenvalue of the block, less its last element: the larger one, in which no digits cancel
        mu = jnp.where(jnp.abs(half + root) < jnp.abs(half - root), half - root, half + root)
        size = jnp.sqrt(jnp.abs(mu) ** 2 + jnp.abs(c) ** 2)
        on = jnp.abs(c) > eps * (jnp.abs(a) + jnp.abs(d))
        safe = jnp.where(on, size, 1)
        cosine, sine = jnp.where(on, mu / safe, 1), jnp.where(on, c / safe, 0)
        g = jnp.stack([jnp.stack([jnp.conj(cosine), sine]), jnp.stack([-sine, cosine])])
        rows = jnp.where(index >= m - 1, jnp.matmul(g, rows), rows)
        t = dynamic_update_slice_in_dim(t, rows, m - 1, 0)
        columns = dynamic_slice_in_dim(t, m - 1, 2, 1)
        columns = jnp.where((index <= m)[:, None], jnp.matmul(columns, _adjoint(g)), columns)
        t = dynamic_update_slice_in_dim(t, columns, m - 1, 1)
        t = jnp.where((index == m)[:, None] & (index == m - 1), 0, t)
        columns = dynamic_slice_in_dim(z, m - 1, 2, 1)
        return t, dynamic_update_slice_in_dim(z, jnp.matmul(columns, _adjoint(g)), m - 1, 1)

    one = lambda t, z: fori_loop(0, n - 1, turn, (t, z)) if n > 1 else (t, z)
    return jnp.vectorize(one, signature="(n,n),(n,n)->(n,n),(n,n)")(T.astype(dt), Z.astype(dt))


def solve_sylvester(A, B, C, *, method: str = "schur", tol: float = 1e-8):
    """X with A X + X B = C, for A [..., m, m], B [..., n, n] and C [..., m, n].

    By Schur's form, or with method 'eigen' by eigenvectors, for matrices that have them. NaN where the sum of an
    eigenvalue of A and one of B is less than `tol`.

    Args:
        A: array of floats or complex numbers, shape (..., m, m).
        B: array of floats or complex numbers, shape (..., n, n).
        C: array of floats or complex numbers, shape (..., m, n).
        method: 'schur' or 'eigen'.
        tol: number.

    Returns:
        array of floats or complex numbers, the shape of C.

    Raises:
        ValueError: for another method, or shapes that do not fit.

    Source: Bartels and Stewart, "Solution of the matrix equation AX + XB = C" (1972).

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> linalg.solve_sylvester(jnp.array([[2.]]), jnp.array([[1.]]), jnp.array([[6.]])).round(4).tolist()
        [[2.0]]
    """
    A, B, C = _inexact("solve_sylvester", A, B, C)
    if any(x.ndim < 2 for x in (A, B, C)) or A.shape[-2:] != C.shape[-2:-1] * 2 or B.shape[-2:] != C.shape[-1:] * 2:
        raise ValueError(
            f"solve_sylvester: A must be [..., m, m], B [..., n, n] and C [..., m, n], got {A.shape}, {B.shape} and"
            f" {C.shape}."
        )
    check_matrix("solve_sylvester", get_aval(C))
    if method not in ("schur", "eigen"):
        raise ValueError(f"solve_sylvester: method must be 'schur' or 'eigen', got {method!r}.")
    one = _sylvester_by_schur if method == "schur" else _sylvester_by_eigenvectors
    x, sums = jnp.vectorize(one, signature="(m,m),(n,n),(m,n)->(m,n),(m,n)")(A, B, C)
    x = x if dtypes.is_complex(C.dtype) else x.real
    return jnp.where(jnp.any(jnp.abs(sums) < tol, (-2, -1), keepdims=True), jnp.nan, x)


def _sylvester_by_schur(A, B, C):
    (r, u), (s, v) = (schur(x, output="complex") for x in (A, B))
    f = jnp.matmul(jnp.matmul(_adjoint(u), C.astype(r.dtype)), v)
    m, n = f.shape

    def column(k, y):
        here = jnp.arange(n) == k
        right = jnp.where(here, f - jnp.matmul(y, s), 0).sum(1)  # the columns of y from k on are still 0
        shift = jnp.where(here, jnp.diag(s), 0).sum()
        solved = lax.triangular_solve(
            r + shift * jnp.eye(m, dtype=r.dtype), right[:, None], left_side=True, lower=False
        )
        return jnp.where(here, solved, y)

    y = fori_loop(0, n, column, jnp.zeros_like(f))
    return jnp.matmul(jnp.matmul(u, y), _adjoint(v)), jnp.diag(r)[:, None] + jnp.diag(s)


def _sylvester_by_eigenvectors(A, B, C):
    (p, u), (q, v) = (jnp.linalg.eig(x) for x in (A, B))
    sums = p[:, None] + q
    y = jnp.matmul(jnp.linalg.solve(u, C.astype(u.dtype)), v) / sums
    return jnp.matmul(jnp.matmul(u, y), jnp.linalg.inv(v)), sums


def expm_frechet(A, E, *, method: str | None = None, compute_expm: bool = True):
    """(exp(A), its derivative at A in direction E), of square matrices [..., n, n]; the derivative alone without
    `compute_expm`.

    `method` None or 'SPS' differentiates the algorithm of `expm`; 'blockEnlarge' takes the exponential of [[A, E], [0,
    A]].

    Args:
        A, E: array of floats or complex numbers, shape (..., n, n).
        method: None, 'SPS' or 'blockEnlarge'.
        compute_expm: bool.

    Returns:
        pair of arrays of floats or complex numbers, the shape of A.

    Raises:
        ValueError: for matrices that are not square, of different shapes, or another method.

    Source: Al-Mohy and Higham, "Computing the Fréchet derivative of the matrix exponential" (2009).

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> linalg.expm_frechet(jnp.zeros((1, 1)), jnp.ones((1, 1)))[1].tolist()
        [[1.0]]
    """
    A, E = _inexact("expm_frechet", A, E)
    _square("expm_frechet", "A", A)
    _square("expm_frechet", "E", E)
    if A.shape != E.shape:
        raise ValueError(f"expm_frechet: A and E must have the same shape, got {A.shape} and {E.shape}.")
    if method not in (None, "SPS", "blockEnlarge"):
        raise ValueError(f"expm_frechet: method must be None, 'SPS' or 'blockEnlarge', got {method!r}.")
    n = A.shape[-1]
    if method == "blockEnlarge":
        both = expm(jnp.concatenate([jnp.concatenate([A, E], -1), jnp.concatenate([jnp.zeros_like(A), A], -1)], -2))
        value, slope = both[..., :n, :n], both[..., :n, n:]
    else:
        value, slope = jvp(expm, (A,), (E,))
    return (value, slope) if compute_expm else slope
