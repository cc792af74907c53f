"""Linear systems: solutions, inverses, powers and least squares."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...base import dtypes, limits
from ...lax import linalg as lax
from ...runtime.jit import inner_jit
from ...primitives import elementwise as el
from ...primitives import linear, matrix
from ...primitives import linalg as ops
from ...primitives.rules import dtype_of, shape_of
from ...primitives.shape import iota
from ...typing import Array, ArrayLike
from ..util import broadcast_shapes, broadcast_to, canonical_axes, index_dtype, on_device, operand, static_int
from .decompositions import _cutoff, _inexact, _square, svd
from .products import matmul

if TYPE_CHECKING:
    from ...core.types import Value

__all__ = ["inv", "lstsq", "matrix_power", "pinv", "solve", "tensorinv", "tensorsolve"]


def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """x with a x = b, for square a [..., n, n] and b [n] or [..., n, k]; leading axes broadcast.

    A singular a gives infinities or NaN, not an error.

    Args:
        a: array of numbers, shape (..., n, n).
        b: array of numbers, shape (n,) or (..., n, k).

    Returns:
        array of floats or complex numbers, the shape of b with the leading axes broadcast.

    Raises:
        ValueError: if a is not square, or sizes do not fit.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.solve(jnp.array([[2., 0.], [0., 4.]]), jnp.array([2., 4.])).tolist()
        [1.0, 1.0]
    """
    a, b = _inexact("solve", a, b)
    a_shape, b_shape = shape_of(a), shape_of(b)
    if len(a_shape) < 2 or a_shape[-1] != a_shape[-2]:
        raise ValueError(f"The first argument to solve must have shape [..., n, n], got {a_shape}.")
    if not b_shape or b_shape[-1 if len(b_shape) == 1 else -2] != a_shape[-1]:
        raise ValueError(
            f"The second argument to solve must have shape [n] or [..., n, k] with n = {a_shape[-1]}, got {b_shape}"
            f" (the first has {a_shape})."
        )
    return _solve(a, b)


@inner_jit(name="solve")
def _solve(a: Value, b: Value) -> Value:
    vector = len(shape_of(b)) == 1
    b = linear.expand_dims(b, (1,)) if vector else b
    batch = broadcast_shapes([shape_of(a)[:-2], shape_of(b)[:-2]])
    out = lu_solve(lax.lu(a), batch, b)
    return linear.squeeze(out, (len(batch) + 1,)) if vector else out


def lu_solve(factors: Any, batch: tuple[Any, ...], b: ArrayLike, trans: int = 0) -> Array:
    """x with a x = b (aᵀ x = b for trans 1, aᴴ for 2) from a's (LU, pivots, permutation), over broadcast leading
    axes.
    """
    lu, _, perm = factors
    lu, b = broadcast_to(lu, (*batch, *shape_of(lu)[-2:])), broadcast_to(b, (*batch, *shape_of(b)[-2:]))
    perm = broadcast_to(perm, (*batch, shape_of(perm)[-1]))
    if not trans:
        out = lax.triangular_solve(lu, ops.permute_rows(b, perm), left_side=True, lower=True, unit_diagonal=True)
        return lax.triangular_solve(lu, out, left_side=True, lower=False)
    how = dict(left_side=True, transpose_a=True, conjugate_a=trans == 2)
    out = lax.triangular_solve(lu, b, lower=False, **how)
    return ops.permute_rows(lax.triangular_solve(lu, out, lower=True, unit_diagonal=True, **how), _inverse(perm))


def _inverse(perm: Value) -> Value:
    """The inverse permutation: the position of each number."""
    shape = shape_of(perm)
    n, rank = shape[-1], len(shape)
    wide = (*shape, n)
    same = el.eq(matrix.columns(perm, n), iota(dtypes.int32, wide, rank))  # [..., i, j]: perm[i] = j
    return linear.reduce_sum(
        el.select(same, iota(dtypes.int32, wide, rank - 1), linear.full(wide, 0, dtypes.int32)), (rank - 1,)
    )


def inv(a: ArrayLike) -> Array:
    """The inverses of square matrices [..., n, n]; infinities or NaN where they are singular.

    Args:
        a: array of numbers, shape (..., n, n).

    Returns:
        array of floats or complex numbers, the shape of a.

    Raises:
        ValueError: if a is not square.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.inv(jnp.array([[2., 0.], [0., 4.]])).tolist()
        [[0.5, 0.0], [0.0, 0.25]]
    """
    return _inv(_square("inv", a))


@inner_jit(name="inv")
def _inv(x: Value) -> Value:
    return _solve(x, matrix.eye(shape_of(x), dtype_of(x)))


def matrix_power(a: ArrayLike, n: int) -> Array:
    """A square matrix to a static integer power; negative powers invert it.

    Args:
        a: array of numbers, shape (..., n, n).
        n: int, the power.

    Returns:
        array of the dtype and shape of a.

    Raises:
        TypeError: for a power that is no int.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.matrix_power(2 * jnp.eye(2), 3).tolist()
        [[8.0, 0.0], [0.0, 8.0]]
    """
    x, n = on_device(operand("matrix_power", a)), static_int("n", n)
    shape = shape_of(x)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise TypeError(f"matrix_power takes square matrices, got shape {shape}.")
    if n < 0:
        x, n = inv(x), -n
    if n == 0:
        same = el.eq(iota(dtypes.int32, shape, len(shape) - 2), iota(dtypes.int32, shape, len(shape) - 1))
        return linear.convert(same, dtype_of(x))
    out: Any = None
    while n:
        if n & 1:
            out = x if out is None else matmul(out, x)
        n >>= 1
        x = matmul(x, x) if n else x
    return out


def pinv(
    a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False, *, rcond: ArrayLike | None = None
) -> Array:
    """The Moore-Penrose inverse [..., n, m] of a [..., m, n]; singular values up to `rtol` times the largest (10 max(m,
    n) eps) count as zero.

    Args:
        a: array of numbers, shape (..., m, n).
        rtol: number or array of shape (...): singular values below this times the largest count as zero.
        hermitian: bool: a is Hermitian.
        rcond: as rtol, by NumPy's older name.

    Returns:
        array of floats or complex numbers, shape (..., n, m).

    Raises:
        ValueError: `a` has fewer than two axes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.pinv(jnp.array([[2., 0.], [0., 0.]])).tolist()
        [[0.5, 0.0], [0.0, 0.0]]
    """
    (x,) = _inexact("pinv", a)
    if len(shape_of(x)) < 2:
        raise ValueError(f"pinv takes matrices [..., m, n], got shape {shape_of(x)}.")
    rtol = rcond if rtol is None else rtol
    if rtol is None:
        rtol = 10 * max(shape_of(x)[-2:]) * float(limits.finfo(dtype_of(x)).eps)
    u, s, vh = svd(x, full_matrices=False, hermitian=hermitian)
    live = s > _cutoff(s, shape_of(x), rtol)[..., None]
    one, zero = linear.full(shape_of(s), 1, dtype_of(s)), linear.full(shape_of(s), 0, dtype_of(s))
    inverse = el.select(live, el.div(one, el.select(live, s, one)), zero)
    return matmul(matrix.scale_columns(matrix.mH(vh), inverse), matrix.mH(u))


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """(x, residuals, rank, singular values) of the least-squares problem a x = b, for a [m, n] and b [m] or [m, k].

    With `numpy_resid` the residuals are empty where a has not full rank or m <= n, which can't be under jit.

    Args:
        a: array of numbers, shape (m, n).
        b: array of numbers, shape (m,) or (m, k).
        rcond: number: singular values below this times the largest count as zero; None for eps max(m, n).
        numpy_resid: bool: the residuals as NumPy returns them.

    Returns:
        (x, residuals, rank, singular values): x has shape (n,) or (n, k), the residuals (k,); the rank is an integer.

    Raises:
        TypeError: `a` does not have two axes, or `b` has neither one nor two.
        ValueError: `a` and `b` have different numbers of rows.

    Example:
        >>> import weft.numpy as jnp
        >>> x, *_ = jnp.linalg.lstsq(jnp.array([[1., 0.], [0., 2.], [0., 0.]]), jnp.array([1., 4., 5.]))
        >>> x.round(4).tolist()
        [1.0, 2.0]
    """
    a, right = _inexact("lstsq", a, b)
    if len(shape_of(a)) != 2 or len(shape_of(right)) not in (1, 2):
        raise TypeError(f"lstsq takes a matrix and a vector or matrix, got shapes {shape_of(a)} and {shape_of(right)}.")
    m, n = shape_of(a)
    if shape_of(right)[0] != m:
        raise ValueError(f"Leading dimensions of input arrays must match: {shape_of(a)} and {shape_of(right)}.")
    single = len(shape_of(right)) == 1
    right = right[:, None] if single else right
    u, s, vh = svd(a, full_matrices=False)
    rcond = (
        max(m, n) * float(limits.finfo(dtype_of(s)).eps)
        if rcond is None or isinstance(rcond, (int, float)) and rcond < 0
        else rcond
    )
    live = s > _cutoff(s, (m, n), rcond)
    rank = linear.reduce_sum(linear.convert(live, index_dtype()), (0,))
    one, zero = linear.full(shape_of(s), 1, dtype_of(s)), linear.full(shape_of(s), 0, dtype_of(s))
    inverse = el.select(live, el.div(one, el.select(live, s, one)), zero)
    x = matmul(matrix.mH(vh), matrix.scale_rows(matmul(matrix.mH(u), right), inverse))
    if numpy_resid and (int(rank) < n or m <= n):
        residuals = linear.full((0,), 0, dtype_of(s))
    else:
        off = right - matmul(a, x)
        residuals = linear.reduce_sum(matrix.real_part(el.mul(off, matrix.conjugate(off))), (0,))
    return x[:, 0] if single else x, residuals, rank, s


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse with respect to `tensordot(tensorinv(a), a, ind)`: the first `ind` axes against the others.

    Args:
        a: array of numbers, whose first `ind` axes have as many elements as the others.
        ind: int, how many axes stand on the left.

    Returns:
        array of floats or complex numbers, the axes of a with the two groups exchanged.

    Raises:
        ValueError: for ind < 1, and where the two groups of axes have different sizes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.tensorinv(jnp.eye(4).reshape(4, 2, 2), ind=1).shape
        (2, 2, 4)
    """
    (x,) = _inexact("tensorinv", a)
    ind, shape = static_int("ind", ind), shape_of(x)
    if ind <= 0:
        raise ValueError(f"tensorinv: ind must be a positive integer; got {ind}.")
    n = math.prod(shape[:ind])
    if n != math.prod(shape[ind:]):
        raise ValueError(
            f"tensorinv is only possible when the product of the first {ind} dimensions equals that of the others; got"
            f" shape {shape}."
        )
    return linear.reshape(inv(linear.reshape(x, (n, n))), (*shape[ind:], *shape[:ind]))


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: tuple[int, ...] | None = None) -> Array:
    """The x with `tensordot(a, x, x.ndim) == b`; `axes` of `a` are moved behind the others first.

    Args:
        a: array of numbers, shape (*b.shape, ...).
        b: array of numbers, any shape.
        axes: ints, the axes of a that are moved to the end; None for none.

    Returns:
        array of floats or complex numbers, the shape of the other axes of a.

    Raises:
        ValueError: where a's leading axes are not those of b, or its others have another size.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.tensorsolve(2 * jnp.eye(4).reshape(2, 2, 4), jnp.ones((2, 2)))
        Array([0.5, 0.5, 0.5, 0.5], dtype=float32)
    """
    a, b = _inexact("tensorsolve", a, b)
    if axes is not None:
        moved = canonical_axes(tuple(axes), len(shape_of(a)), "axes")
        a = linear.transpose(a, [d for d in range(len(shape_of(a))) if d not in moved] + list(moved))
    lead, rest = shape_of(a)[: len(shape_of(b))], shape_of(a)[len(shape_of(b)) :]
    if lead != shape_of(b):
        raise ValueError(
            f"tensorsolve: after moving axes to the end, leading axes of a must match b; got shapes {shape_of(a)} and"
            f" {shape_of(b)}."
        )
    n = math.prod(lead)
    if n != math.prod(rest):
        raise ValueError(f"tensorsolve: the leading axes {lead} of a and its others {rest} must have one product.")
    return linear.reshape(solve(linear.reshape(a, (n, n)), linear.reshape(b, (n,))), rest)
