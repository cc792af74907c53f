"""Norms and other numbers of matrices: determinants, ranks, condition numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from ...base import dtypes
from ...lax import linalg as lax
from ...runtime.jit import inner_jit
from ...primitives import elementwise as el, transcendental
from ...primitives import linear, matrix
from ...primitives.reduce import reduce_max, reduce_min, reduce_prod
from ...primitives.rules import dtype_of, scalar_like, shape_of
from ...primitives.shape import iota
from ...typing import Array, ArrayLike
from ..ufuncs import abs as _abs
from ..util import accumulator, canonical_axes, float_dtype, index_dtype, on_device, operand, promote_inexact, strong
from .decompositions import _cutoff, _inexact, _square, qr, svd
from .solving import inv

if TYPE_CHECKING:
    from ...core.types import Value

__all__ = ["cond", "det", "matrix_norm", "matrix_rank", "norm", "slogdet", "vector_norm"]


class SlogdetResult(NamedTuple):
    """The sign of a determinant and the logarithm of its absolute value."""

    sign: Array
    logabsdet: Array


def _parity(pivots: Value) -> Value:
    """Whether each factorisation swapped an odd number of rows, as 0 or 1."""
    shape = shape_of(pivots)
    swaps = linear.convert(el.ne(pivots, iota(dtypes.int32, shape, len(shape) - 1)), dtypes.int32)
    count = linear.reduce_sum(swaps, (len(shape) - 1,))
    return el.rem(count, scalar_like(count, 2))


def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """(sign, logabsdet) of determinants of [..., n, n], without overflow; (0, -inf) for singular matrices.

    Args:
        a: array of numbers, shape (..., n, n).
        method: 'lu' or 'qr', the factorization; None for 'lu'.

    Returns:
        (signs, logarithms), of shape (...): the sign has the dtype of a, the logarithm is a float.

    Raises:
        ValueError: if a is not square, or for a method other than None, 'lu' or 'qr'.

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.linalg.slogdet(-jnp.eye(3)).sign)
        -1.0
    """
    if method not in (None, "lu", "qr"):
        raise ValueError(f"slogdet: method must be None, 'lu' or 'qr', got {method!r}.")
    x = _square("slogdet", a)
    if method != "qr":
        return SlogdetResult(*_slogdet(x))
    q, r = qr(x)
    on = matrix.diagonal(r)
    last = len(shape_of(on)) - 1
    return SlogdetResult(
        el.mul(_slogdet(q)[0], reduce_prod(el.sign(on), (last,))),
        linear.reduce_sum(transcendental.log(el.abs_(on)), (last,)),
    )


@inner_jit(name="slogdet")
def _slogdet(x: Value) -> tuple[Value, Value]:
    if dtypes.bits(dtype_of(x)) == 16 and shape_of(x)[-1] < 3:  # by the polynomial of det, not by LU
        d = _det(x)
        return el.sign(d), transcendental.log(el.abs_(d))
    lu, pivots, _ = lax.lu(x)
    on = matrix.diagonal(lu)
    last = len(shape_of(on)) - 1
    flips = linear.convert(_parity(pivots), dtype_of(on))
    sign = el.mul(reduce_prod(el.sign(on), (last,)), el.sub(scalar_like(on, 1), el.mul(flips, scalar_like(on, 2))))
    return sign, linear.reduce_sum(transcendental.log(el.abs_(on)), (last,))


def det(a: ArrayLike) -> Array:
    """The determinants of square matrices [..., n, n].

    Args:
        a: array of numbers, shape (..., n, n).

    Returns:
        array of floats or complex numbers, shape (...).

    Raises:
        ValueError: if a is not square.

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.linalg.det(jnp.array([[1., 2.], [3., 4.]])))
        -2.0
    """
    return _det(_square("det", a))


@inner_jit(name="det")
def _det(x: Value) -> Value:
    n = shape_of(x)[-1]
    at = lambda i, j: x[..., i, j]
    # small determinants by their polynomial, which has derivatives at singular matrices too
    if n == 0:
        return linear.full(shape_of(x)[:-2], 1, dtype_of(x))
    if n == 1:
        return at(0, 0)
    if n == 2:
        return at(0, 0) * at(1, 1) - at(0, 1) * at(1, 0)
    if n == 3:
        return (
            at(0, 0) * at(1, 1) * at(2, 2)
            + at(0, 1) * at(1, 2) * at(2, 0)
            + at(0, 2) * at(1, 0) * at(2, 1)
            - at(0, 2) * at(1, 1) * at(2, 0)
            - at(0, 0) * at(1, 2) * at(2, 1)
            - at(0, 1) * at(1, 0) * at(2, 2)
        )
    lu, pivots, _ = lax.lu(x)
    on = matrix.diagonal(lu)
    flips = linear.convert(_parity(pivots), dtype_of(on))
    return el.mul(
        reduce_prod(on, (len(shape_of(on)) - 1,)), el.sub(scalar_like(on, 1), el.mul(flips, scalar_like(on, 2)))
    )


@inner_jit(name="norm", static_argnums=(1, 2, 3))
def _norm(x: Value, order: Any, axes: tuple[int, ...], keepdims: bool) -> Value:
    restore = lambda out: linear.expand_dims(out, axes) if keepdims and axes else out
    total = lambda v: linear.reduce_sum(v, axes)
    extremum = lambda along: _largest(order, 0 in [shape_of(x)[d] for d in along])
    if order is None or order == "fro" or order == 2 and len(axes) == 1:
        squares = el.real(el.mul(x, el.conj(x))) if dtypes.is_complex(dtype_of(x)) else el.mul(x, x)
        return restore(transcendental.sqrt(total(squares)))
    size = _abs(x)
    if len(axes) == 1:
        if order in (math.inf, -math.inf):
            return restore(extremum(axes)(size, axes))
        if order == 0:
            return restore(total(linear.convert(el.ne(x, scalar_like(x, 0)), dtype_of(size))))
        if order == 1:
            return restore(total(size))
        power = scalar_like(size, order)
        return restore(transcendental.pow_(total(transcendental.pow_(size, power)), scalar_like(size, 1 / order)))
    row, column = axes
    first, second = (column, row) if order in (math.inf, -math.inf) else (row, column)
    inner = linear.reduce_sum(size, (first,))
    last = second - (second > first)
    return restore(extremum((second,))(inner, (last,)))


def _largest(order: Any, empty: bool) -> Value:
    """The largest (order > 0) or the smallest of sizes. Without sizes the largest is 0, and the smallest raises."""
    if empty and order < 0:
        raise ValueError(
            f"norm: an array without elements has no norm of order {order}, because a minimum has no identity."
        )
    return (lambda v, axes: linear.reduce_sum(v, axes)) if empty else reduce_max if order > 0 else reduce_min


@inner_jit(name="norm", static_argnums=(1, 2, 3))
def _spectral_norm(x: Value, order: Any, axes: tuple[int, ...], keepdims: bool) -> Value:
    rest = [d for d in range(len(shape_of(x))) if d not in axes]
    s = lax.svd(linear.transpose(x, (*rest, *axes)), compute_uv=False)
    last = (len(rest),)
    out = linear.reduce_sum(s, last) if order == "nuc" else _largest(order, not shape_of(s)[-1])(s, last)
    return linear.expand_dims(out, axes) if keepdims else out


def norm(
    x: ArrayLike,
    ord: int | float | str | None = None,
    axis: tuple[int, ...] | int | None = None,
    keepdims: bool = False,
) -> Array:
    """The norm of a vector or matrix (2 or Frobenius by default) over one or two axes.

    Over two axes the orders 2, -2 and 'nuc' are the largest, the smallest and the sum of the singular values.

    Args:
        x: array of numbers or booleans, any shape.
        ord: number, infinity, 'fro' or 'nuc'; None for the 2-norm of all elements.
        axis: int for vectors, two ints for matrices; None for all axes.
        keepdims: bool: the reduced axes stay, with size 1.

    Returns:
        array of floats, the shape of x without the axes.

    Raises:
        ValueError: for an order that does not exist, or more than two axes.

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.linalg.norm(jnp.array([3., 4.])))
        5.0
    """
    (x,) = promote_inexact("norm", x)
    x = strong(on_device(x))
    rank = len(shape_of(x))
    if axis is None and ord is None:
        return _norm(x, None, tuple(range(rank)), bool(keepdims))
    axes = canonical_axes(axis, rank)
    if len(axes) not in (1, 2):
        raise ValueError(f"norm takes one or two axes, got {axes} for shape {shape_of(x)}.")
    if (
        isinstance(ord, str)
        and len(axes) == 1
        or len(axes) == 2
        and ord not in (None, "fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)
    ):
        raise ValueError(f"Invalid order {ord!r} for {'matrix' if len(axes) == 2 else 'vector'} norm.")
    if len(axes) == 2 and ord in ("nuc", 2, -2):
        return _spectral_norm(x, ord, axes, bool(keepdims))
    return _norm(x, ord, axes, bool(keepdims))


def vector_norm(
    x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, ord: int | float | str = 2
) -> Array:
    """The norm of vectors along axes (None: of the flattened array).

    Args:
        x: array of numbers or booleans, any shape.
        axis: int, tuple of ints, or None for all: the axes.
        keepdims: bool: the reduced axes stay, with size 1.
        ord: number or infinity.

    Returns:
        array of floats, the shape of x without the axes.

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.linalg.vector_norm(jnp.array([3., 4.])))
        5.0
    """
    x = strong(on_device(operand("vector_norm", x)))
    if not dtypes.is_inexact(dtype_of(x)):  # sums and extrema of integers stay integers
        exact = ord in (1, math.inf, -math.inf)
        x = linear.convert(x, float_dtype() if not exact else accumulator(dtype_of(x)) if ord == 1 else dtype_of(x))
    rank = len(shape_of(x))
    axes = canonical_axes(axis, rank)
    order = [d for d in range(rank) if d not in axes]
    flat = linear.reshape(
        linear.transpose(x, (*order, *axes)),
        (*[shape_of(x)[d] for d in order], math.prod(shape_of(x)[d] for d in axes)),
    )
    out = _norm(flat, ord, (len(order),), False)
    return linear.expand_dims(out, axes) if keepdims and axes else out


def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: int | float | str = "fro") -> Array:
    """The norm of matrices in the last two axes.

    Args:
        x: array of numbers, shape (..., m, n).
        keepdims: bool: the reduced axes stay, with size 1.
        ord: 1, -1, 2, -2, infinity, -infinity, 'fro' or 'nuc'.

    Returns:
        array of floats, shape (...).

    Raises:
        ValueError: for an order that does not exist.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.matrix_norm(jnp.array([[3., 0.], [0., 4.]]))
        Array(5., dtype=float32)
    """
    return norm(x, ord, (-2, -1), keepdims)


def matrix_rank(
    M: ArrayLike, rtol: ArrayLike | None = None, *, hermitian: bool = False, tol: ArrayLike | None = None
) -> Array:
    """How many singular values exceed `rtol` times the largest one (by default max(m, n) eps), or `tol` itself.

    Args:
        M: array of numbers, shape (..., m, n).
        rtol: number or array of shape (...), relative to the largest singular value; None for max(m, n) eps.
        hermitian: bool: M is Hermitian.
        tol: number or array of shape (...), in place of rtol.

    Returns:
        array of integers, shape (...).

    Raises:
        ValueError: both `rtol` and `tol` are given.

    Example:
        >>> import weft.numpy as jnp
        >>> int(jnp.linalg.matrix_rank(jnp.ones((3, 3))))
        1
    """
    if rtol is not None and tol is not None:
        raise ValueError(
            "matrix_rank: only one of rtol, a share of the largest singular value, and tol, a size itself, can be"
            " given."
        )
    (x,) = _inexact("matrix_rank", M)
    if len(shape_of(x)) < 2:
        largest = reduce_max(_abs(x), tuple(range(len(shape_of(x)))))
        return linear.convert(el.ne(largest, scalar_like(largest, 0)), dtypes.int32)
    s = svd(x, compute_uv=False, hermitian=hermitian)
    bound = _cutoff(s, shape_of(x), rtol) if tol is None else on_device(operand("matrix_rank", tol))
    above = linear.convert(s > bound[..., None], index_dtype())
    return linear.reduce_sum(above, (len(shape_of(above)) - 1,))


def cond(x: ArrayLike, p: int | float | str | None = None) -> Array:
    """The condition number: the largest singular value over the smallest, or norm(x, p) norm(inv(x), p).

    Args:
        x: array of numbers, shape (..., m, n).
        p: order of the norm, as `matrix_norm` takes it; None for 2.

    Returns:
        array of floats, shape (...).

    Raises:
        ValueError: if x is not square, for another order than 2 and -2.

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.linalg.cond(jnp.array([[4., 0.], [0., 2.]])))
        2.0
    """
    (x,) = _inexact("cond", x)
    if len(shape_of(x)) < 2:
        raise ValueError(f"cond takes arrays of at least two dimensions, got shape {shape_of(x)}.")
    if 0 in shape_of(x):
        raise ValueError(f"cond: an empty matrix has no condition number, got shape {shape_of(x)}.")
    if p is None or p in (2, -2):
        s = svd(x, compute_uv=False)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return norm(x, p, (-2, -1)) * norm(inv(x), p, (-2, -1))
