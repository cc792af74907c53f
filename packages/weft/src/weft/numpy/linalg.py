"""weft.numpy.linalg: norms and the products that need no factorisation."""
from __future__ import annotations

import math

from .. import dtypes
from ..runtime.jit import inner_jit
from ..ops import elementwise as el
from ..ops import linear
from ..ops.reduce import reduce_max, reduce_min
from ..ops.rules import dtype_of, scalar_like, shape_of
from ..ops.shape import iota
from .products import cross, matmul, outer, tensordot, vecdot
from .selecting import diagonal, trace
from .shapes import matrix_transpose
from .ufuncs import abs as _abs
from .util import canonical_axes, on_device, operand, promote_inexact, static_int

__all__ = ["cross", "diagonal", "matmul", "matrix_norm", "matrix_power", "matrix_transpose", "multi_dot", "norm", "outer", "tensordot", "trace", "vecdot",
           "vector_norm"]


@inner_jit(name="norm", static_argnums=(1, 2, 3))
def _norm(x, order, axes, keepdims):
    restore = lambda out: linear.expand_dims(out, axes) if keepdims and axes else out
    total = lambda v: linear.reduce_sum(v, axes)
    if order is None or order == "fro" or order == 2 and len(axes) == 1:
        squares = el.real(el.mul(x, el.conj(x))) if dtypes.is_complex(dtype_of(x)) else el.mul(x, x)
        return restore(el.sqrt(total(squares)))
    size = _abs(x)
    if len(axes) == 1:
        if order == math.inf:
            return restore(reduce_max(size, axes))
        if order == -math.inf:
            return restore(reduce_min(size, axes))
        if order == 0:
            return restore(total(linear.convert(el.ne(x, scalar_like(x, 0)), dtype_of(size))))
        if order == 1:
            return restore(total(size))
        power = scalar_like(size, order)
        return restore(el.pow_(total(el.pow_(size, power)), scalar_like(size, 1 / order)))
    row, column = axes
    first, second = (column, row) if order in (math.inf, -math.inf) else (row, column)
    inner = linear.reduce_sum(size, (first,))
    last = second - (second > first)
    return restore((reduce_max if order > 0 else reduce_min)(inner, (last,)))


def norm(x, ord=None, axis=None, keepdims: bool = False):
    """The norm of a vector or matrix (2 or Frobenius by default) over one or two axes.

    Matrix norms of order 2, -2 and 'nuc' need singular values and are not here.

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.linalg.norm(jnp.array([3., 4.])))
        5.0
    """
    (x,) = promote_inexact("norm", x)
    x = on_device(x)
    rank = len(shape_of(x))
    if axis is None and ord is None:
        return _norm(x, None, tuple(range(rank)), bool(keepdims))
    axes = canonical_axes(axis, rank)
    if len(axes) not in (1, 2):
        raise ValueError(f"norm takes one or two axes, got {axes} for shape {shape_of(x)}.")
    if isinstance(ord, str) and (ord != "fro" or len(axes) == 1):
        raise ValueError(f"norm: order {ord!r} is not defined over {len(axes)} axes, or needs singular values.")
    if len(axes) == 2 and ord not in (None, "fro", 1, -1, math.inf, -math.inf):
        raise NotImplementedError(f"norm: the matrix norm of order {ord!r} needs singular values, which weft does not compute yet.")
    return _norm(x, ord, axes, bool(keepdims))


def vector_norm(x, /, *, axis=None, keepdims: bool = False, ord=2):
    """The norm of vectors along axes (None: of the flattened array).

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.linalg.vector_norm(jnp.array([3., 4.])))
        5.0
    """
    (x,) = promote_inexact("vector_norm", x)
    x = on_device(x)
    rank = len(shape_of(x))
    axes = canonical_axes(axis, rank)
    order = [d for d in range(rank) if d not in axes]
    flat = linear.reshape(linear.transpose(x, (*order, *axes)), (*[shape_of(x)[d] for d in order], math.prod(shape_of(x)[d] for d in axes)))
    out = _norm(flat, ord, (len(order),), False)
    return linear.expand_dims(out, axes) if keepdims and axes else out


def matrix_norm(x, /, *, keepdims: bool = False, ord="fro"):
    """The norm of matrices in the last two axes."""
    return norm(x, ord, (-2, -1), keepdims)


def matrix_power(a, n: int):
    """A square matrix to a static power that is not negative.

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
        raise NotImplementedError("matrix_power: negative powers need an inverse, which weft does not compute yet.")
    if n == 0:
        same = el.eq(iota(dtypes.int32, shape, len(shape) - 2), iota(dtypes.int32, shape, len(shape) - 1))
        return linear.convert(same, dtype_of(x))
    out = None
    while n:
        if n & 1:
            out = x if out is None else matmul(out, x)
        n >>= 1
        x = matmul(x, x) if n else x
    return out


def multi_dot(arrays, *, precision=None):
    """The product of several matrices, the cheapest order first.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.multi_dot([jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones((4, 1))]).shape
        (2, 1)
    """
    xs = [on_device(operand("multi_dot", a)) for a in arrays]
    if len(xs) < 2:
        raise ValueError("multi_dot needs at least two arrays.")
    while len(xs) > 2:
        costs = [(shape_of(a)[-1] * shape_of(b)[-1] * (shape_of(a)[0] if len(shape_of(a)) > 1 else 1), i) for i, (a, b) in enumerate(zip(xs, xs[1:]))]
        i = min(costs)[1]
        xs[i:i + 2] = [matmul(xs[i], xs[i + 1], precision=precision)]
    return matmul(*xs, precision=precision)

