"""Krylov methods for linear systems whose matrix is a function, an array or a sparse matrix, with the derivatives that
the system defines.

M. Hestenes and E. Stiefel, "Methods of conjugate gradients for solving linear systems" (1952); H. van der Vorst,
"Bi-CGSTAB" (1992); Y. Saad and M. Schultz, "GMRES" (1986).
"""

from __future__ import annotations

from functools import partial
from typing import Any, Callable

from ...base import dtypes, limits
from ... import numpy as jnp
from ...api.tracing import eval_shape
from ...higher_order.while_loop import fori_loop, while_loop
from ...higher_order.solve import custom_linear_solve
from ...core.trace import get_aval, is_array_like
from ...api.ravel import ravel_pytree
from ...base.source_info import api_boundary
from ...base.tree import tree_flatten, tree_map

__all__ = ["bicgstab", "cg", "gmres"]


def _operator(name: str, argument: str, f) -> Callable:
    if callable(f):
        return f
    shape = getattr(f, "shape", None)
    if shape is None or isinstance(f, (list, tuple)) or not (is_array_like(f) or hasattr(f, "todense")):
        raise TypeError(f"{name}: {argument} must be a function or a square matrix, got {f!r:.80}.")
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"{name}: {argument} must be a square matrix, but has shape {tuple(shape)}.")
    return lambda x: f @ x


def _norm(x):
    return jnp.sqrt(_squared(x))


def _squared(x):
    return jnp.real(jnp.vdot(x, x))


def _cg(A, b, x, M, tol, atol, maxiter):
    limit = _limit(b, tol, atol) ** 2

    def unfinished(state):
        _, r, gamma, _, k = state
        return ((gamma if M is None else _squared(r)) > limit) & (k < maxiter)

    def step(state):
        x, r, gamma, p, k = state
        Ap = A(p)
        alpha = (gamma / jnp.real(jnp.vdot(p, Ap))).astype(b.dtype)
        x, r = x + alpha * p, r - alpha * Ap
        z = r if M is None else M(r)
        new = jnp.real(jnp.vdot(r, z))
        return x, r, new, z + (new / gamma).astype(b.dtype) * p, k + 1

    r = b - A(x)
    z = r if M is None else M(r)
    return while_loop(unfinished, step, (x, r, jnp.real(jnp.vdot(r, z)), z, 0))[0]


def _bicgstab(A, b, x, M, tol, atol, maxiter):
    limit = _limit(b, tol, atol) ** 2
    M = M or (lambda v: v)

    def unfinished(state):
        _, r, *_, k = state
        return (_squared(r) > limit) & (k < maxiter) & (k >= 0)

    def step(state):
        x, r, rho, alpha, omega, p, q, k = state
        new_rho = jnp.vdot(shadow, r)
        p = r + new_rho / rho * (alpha / omega) * (p - omega * q)
        p_hat = M(p)
        q = A(p_hat)
        alpha = new_rho / jnp.vdot(shadow, q)
        s = r - alpha * q
        early = _squared(s) < limit
        s_hat = M(s)
        t = A(s_hat)
        omega = jnp.vdot(t, s) / jnp.vdot(t, t)
        half = x + alpha * p_hat
        x, r = jnp.where(early, half, half + omega * s_hat), jnp.where(early, s, s - omega * t)
        broken = (omega == 0) | (alpha == 0) | (new_rho == 0)
        return x, r, new_rho, alpha, omega, p, q, jnp.where(broken, -1, k + 1)

    r = shadow = b - A(x)
    one, zero = jnp.ones((), b.dtype), jnp.zeros_like(b)
    return while_loop(unfinished, step, (x, r, one, one, one, zero, zero, jnp.int32(0)))[0]


def _limit(b, tol, atol):
    """The norm of the residual at which a solution is good."""
    return jnp.maximum(tol * _norm(b), atol).astype(dtypes.real_of(b.dtype))


def _unit(v, floor=0.0):
    """(v / |v|, |v|); zeros where the norm is at most `floor`."""
    norm = _norm(v)
    good = norm > floor
    return jnp.where(good, v / jnp.where(good, norm, 1).astype(v.dtype), 0), jnp.where(good, norm, 0)


def _arnoldi(A, M, V, k):
    """The next vector of the orthonormal basis V [n, restart + 1], and its coefficients, column k of H;
    orthogonalized twice, by classical Gram and Schmidt.
    """
    w = M(A(V[:, k]))
    before, h = _norm(w), jnp.zeros(V.shape[1], V.dtype)
    for _ in range(2):
        part = jnp.conj(V).T @ w
        w, h = w - V @ part, h + part
    # what is left of a vector inside the space is rounding
    v, norm = _unit(w, limits.finfo(V.dtype).eps * before)
    return V.at[:, k + 1].set(v), h.at[k + 1].set(norm.astype(V.dtype))


def _gmres_batched(A, M, x, residual, norm, target, restart):
    """One cycle: the whole Krylov space, then the least-squares solution in it."""
    V = jnp.zeros((x.size, restart + 1), x.dtype).at[:, 0].set(residual)
    H = jnp.eye(restart, restart + 1, dtype=x.dtype)  # rows that no step reaches change nothing

    def step(state):
        V, H, k, _ = state
        V, h = _arnoldi(A, M, V, k)
        return V, H.at[k].set(h), k + 1, h[k + 1] == 0

    V, H, *_ = while_loop(lambda s: (s[2] < restart) & ~s[3], step, (V, H, 0, jnp.array(False)))
    e1 = jnp.zeros(restart + 1, x.dtype).at[0].set(norm.astype(x.dtype))
    y = jnp.linalg.lstsq(H.T, e1)[0]
    return x + V[:, :-1] @ y


def _gmres_incremental(A, M, x, residual, norm, target, restart):
    """One cycle that stops as soon as the residual is small: each column of H is made triangular by Givens rotations
    when it is there.
    """
    V = jnp.zeros((x.size, restart + 1), x.dtype).at[:, 0].set(residual)
    R = jnp.eye(restart, restart + 1, dtype=x.dtype)
    beta = jnp.zeros(restart + 1, x.dtype).at[0].set(norm.astype(x.dtype))

    def step(state):
        V, R, beta, rotations, k, _ = state
        V, column = _arnoldi(A, M, V, k)
        column = fori_loop(0, k, lambda i, c: _rotate(c, i, *rotations[i]), column)
        a, b = column[k], column[k + 1]
        size = jnp.sqrt(_abs2(a) + _abs2(b)).astype(x.dtype)
        pair = jnp.where(size == 0, jnp.array([1, 0], x.dtype), jnp.stack([a, b]) / jnp.where(size == 0, 1, size))
        rotations = rotations.at[k].set(pair)
        beta = _rotate(beta, k, *pair)
        return (
            V,
            R.at[k].set(_rotate(column, k, *pair)),
            beta,
            rotations,
            k + 1,
            jnp.abs(beta[k + 1]).astype(norm.dtype),
        )

    V, R, beta, _, k, _ = while_loop(
        lambda s: (s[4] < restart) & (s[5] > target), step, (V, R, beta, jnp.zeros((restart, 2), x.dtype), 0, norm)
    )
    live = jnp.where(jnp.arange(restart) < k, beta[:-1], 0)
    from_triangle = jnp.linalg.lstsq(R[:, :-1].T, live)[0]  # a singular system has a column of zeros
    return x + V[:, :-1] @ from_triangle


def _abs2(x):
    return jnp.real(x * jnp.conj(x))


def _rotate(v, i, c, s):
    """The rotation that takes (c, s) to (1, 0), applied to elements i and i + 1."""
    a, b = v[i], v[i + 1]
    return v.at[i].set(jnp.conj(c) * a + jnp.conj(s) * b).at[i + 1].set(c * b - s * a)


def _gmres(A, b, x, M, tol, atol, maxiter, *, restart, cycle):
    M = M or (lambda v: v)
    size = _norm(b)
    limit = _limit(b, tol, atol)
    target = _norm(M(b)) * jnp.minimum(1, limit / jnp.where(size == 0, 1, size))

    def step(state):
        x, unit, norm, k = state
        x = cycle(A, M, x, unit, norm, target, restart)
        return x, *_unit(M(b - A(x))), k + 1

    return while_loop(lambda s: (s[2] > limit) & (s[3] < maxiter), step, (x, *_unit(M(b - A(x))), 0))[0]


def _solve(name: str, method: Callable, A, b, x0, tol, atol, maxiter, M, symmetric: bool = False):
    A = _operator(name, "A", A)
    M = None if M is None else _operator(name, "M", M)
    leaves, tree = tree_flatten(b)
    for x in leaves:
        if not is_array_like(x):
            raise TypeError(f"{name}: b must be an array, or a pytree of arrays, got {x!r:.80} in it.")
    if not all(dtypes.is_inexact(get_aval(x).dtype) for x in leaves):
        raise TypeError(
            f"{name}: b must be of floating-point dtypes, got"
            f" {', '.join(dtypes.name(get_aval(x).dtype) for x in leaves)}; convert it with astype."
        )
    if x0 is None:
        x0 = tree_map(jnp.zeros_like, b)
    start, start_tree = tree_flatten(x0)
    if start_tree != tree:
        raise ValueError(f"{name}: x0 and b must have one tree structure, got {start_tree} and {tree}.")
    # an x may be an array's type alone
    shapes = lambda xs: [get_aval(x).shape if is_array_like(x) else x.shape for x in xs]
    if shapes(start) != shapes(leaves):
        raise ValueError(
            f"{name}: arrays in x0 and b must have matching shapes, got {shapes(start)} and {shapes(leaves)}."
        )
    size = sum(get_aval(x).size for x in leaves)
    maxiter = 10 * size if maxiter is None else maxiter

    def solve(matvec, b):
        flat, unravel = ravel_pytree(b)

        def on_vectors(f, what):
            def g(v):
                out = f(unravel(v))
                got, got_tree = tree_flatten(out)
                if got_tree != tree or shapes(got) != shapes(leaves):
                    raise ValueError(
                        f"{name}: {what} must return a value like b, {tree} with shapes {shapes(leaves)}; it gives"
                        f" {got_tree} with shapes {shapes(got)}."
                    )
                return ravel_pytree(out)[0].astype(flat.dtype)

            return g

        start = ravel_pytree(x0)[0].astype(flat.dtype)
        return unravel(method(on_vectors(matvec, "A"), flat, start, M and on_vectors(M, "M"), tol, atol, maxiter))

    check = tree_flatten(eval_shape(A, b))
    if check[1] != tree or shapes(check[0]) != shapes(leaves):
        raise ValueError(
            f"{name}: A must return a value like b, {tree} with shapes {shapes(leaves)}; it gives {check[1]} with"
            f" shapes {shapes(check[0])}."
        )
    # a real operator of cg's is its own transpose; a Hermitian one is not
    symmetric = symmetric and not any(dtypes.is_complex(get_aval(x).dtype) for x in leaves)
    return custom_linear_solve(A, b, solve, transpose_solve=solve, symmetric=symmetric)


@api_boundary
def cg(A, b, x0=None, *, tol: float = 1e-05, atol: float = 0.0, maxiter: int | None = None, M=None) -> tuple[Any, None]:
    """Solves A x = b for a Hermitian positive-definite A by conjugate gradients.

    The derivatives with respect to `b` and the arrays in A are solutions of linear systems too.

    Source: M. Hestenes and E. Stiefel, "Methods of conjugate gradients for solving linear systems" (1952).

    Args:
        A: a square matrix, dense or sparse, or a linear function of pytrees like `b`.
        b: the right-hand side: an array, or a pytree of arrays, of any shapes and a floating-point or complex
            dtype.
        x0: where the iteration begins, like `b`; zeros by default.
        tol, atol: the iteration ends when |b - A x| <= max(tol |b|, atol); floats.
        maxiter: the largest number of steps; int; ten times the number of unknowns by default.
        M: the preconditioner, a matrix or function near A's inverse.

    Returns:
        (x, None), where x has the structure, shapes and dtypes of `b`.

    Raises:
        TypeError: `A` or `b` has a wrong type, or the sizes of a matrix and `b` differ.
        ValueError: a matrix is not square, or `A`, `M` or `x0` does not fit `b`.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy.sparse.linalg import cg
        >>> cg(lambda x: 2 * x, jnp.array([2., 4.]))[0]
        Array([1., 2.], dtype=float32)
    """
    return _solve("cg", _cg, A, b, x0, tol, atol, maxiter, M, symmetric=True), None


@api_boundary
def bicgstab(
    A, b, x0=None, *, tol: float = 1e-05, atol: float = 0.0, maxiter: int | None = None, M=None
) -> tuple[Any, None]:
    """Solves A x = b for any square A by stabilized biconjugate gradients.

    Source: H. van der Vorst, "Bi-CGSTAB" (1992).

    Args:
        A, b, x0, tol, atol, maxiter, M: as for `cg`; b is of any shapes and a floating-point or complex dtype.

    Returns:
        (x, None), where x has the structure, shapes and dtypes of `b`.

    Raises:
        TypeError: `A` or `b` has a wrong type, or the sizes of a matrix and `b` differ.
        ValueError: a matrix is not square, or `A`, `M` or `x0` does not fit `b`.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy.sparse.linalg import bicgstab
        >>> bicgstab(jnp.array([[2., 1.], [0., 1.]]), jnp.array([4., 2.]))[0].round(3)
        Array([1., 2.], dtype=float32)
    """
    return _solve("bicgstab", _bicgstab, A, b, x0, tol, atol, maxiter, M), None


@api_boundary
def gmres(
    A,
    b,
    x0=None,
    *,
    tol: float = 1e-05,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M=None,
    solve_method: str = "batched",
) -> tuple[Any, Any]:
    """Solves A x = b for any square A by generalized minimal residuals.

    Source: Y. Saad and M. Schultz, "GMRES" (1986).

    Args:
        A, b, x0, tol, atol, M: as for `cg`; b is of any shapes and a floating-point or complex dtype.
        restart: the largest dimension of the Krylov space, after which the method begins again; int.
        maxiter: the largest number of restarts; int; ten times the number of unknowns by default.
        solve_method: 'batched' builds the whole space and then solves in it; 'incremental' looks at the residual
            after each vector.

    Returns:
        (x, info), where x has the structure, shapes and dtypes of `b`, and info is an integer scalar: -1 if x has a
        NaN, otherwise 0.

    Raises:
        TypeError: `A` or `b` has a wrong type, or the sizes of a matrix and `b` differ.
        ValueError: a matrix is not square, or `A`, `M` or `x0` does not fit `b`.
        IndexError: `restart` is less than 1.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy.sparse.linalg import gmres
        >>> gmres(jnp.array([[2., 1.], [0., 1.]]), jnp.array([4., 2.]))[0].round(3)
        Array([1., 2.], dtype=float32)
    """
    cycles = {"batched": _gmres_batched, "incremental": _gmres_incremental}
    if solve_method not in cycles:
        raise ValueError(f"gmres: invalid solve_method {solve_method!r}; use 'batched' or 'incremental'.")
    size = sum(get_aval(x).size for x in tree_flatten(b)[0] if is_array_like(x))
    restart = min(restart, size)
    if restart < 1 <= size:
        raise IndexError(f"gmres: restart must be at least 1, got {restart}.")
    x = _solve("gmres", partial(_gmres, restart=restart, cycle=cycles[solve_method]), A, b, x0, tol, atol, maxiter, M)
    broken = jnp.isnan(sum(jnp.sum(jnp.abs(leaf)) for leaf in tree_flatten(x)[0]))
    return x, jnp.where(broken, -1, 0)


def __dir__() -> list[str]:
    return sorted(__all__)
