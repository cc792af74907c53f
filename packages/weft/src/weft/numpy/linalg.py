"""weft.numpy.linalg: norms, products, factorisations and linear systems."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Sequence, overload

from ..base import dtypes
from ..lax import linalg as lax
from ..lax.dots import PrecisionLike
from ..runtime.jit import inner_jit
from ..primitives import elementwise as el
from ..primitives import linear, matrix
from ..primitives import linalg as ops
from ..primitives.reduce import reduce_max, reduce_min, reduce_prod
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..primitives.shape import iota
from ..typing import Array, ArrayLike, DTypeLike, OutSharding
from . import products, selecting
from .products import vecdot
from .selecting import take_along_axis
from .shapes import matrix_transpose
from .sorting import argsort as _argsort
from .ufuncs import abs as _abs
from .util import (
    accumulator,
    broadcast_shapes,
    broadcast_to,
    canonical_axes,
    canonical_axis,
    float_dtype,
    index_dtype,
    on_device,
    operand,
    promote_inexact,
    static_int,
    strong,
)

if TYPE_CHECKING:
    from ..base.avals import Size
    from ..core.types import Value

__all__ = [
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]


def matmul(
    x1: ArrayLike, x2: ArrayLike, /, *, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """`weft.numpy.matmul`, as the array API standard has it.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.matmul(jnp.ones((2, 3)), jnp.ones(3))
        Array([3., 3.], dtype=float32)
    """
    return products.matmul(x1, x2, precision=precision, preferred_element_type=preferred_element_type)


def tensordot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axes: int | tuple[Sequence[int], Sequence[int]] = 2,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """`weft.numpy.tensordot`, as the array API standard has it.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.tensordot(jnp.ones((2, 3)), jnp.ones((2, 3)))
        Array(6., dtype=float32)
    """
    return products.tensordot(
        x1, x2, axes, precision=precision, preferred_element_type=preferred_element_type, out_sharding=out_sharding
    )


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products x1[i] x2[j] of two vectors.

    Raises:
        ValueError: for arrays that are not vectors.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([3, 4])).tolist()
        [[3, 4], [6, 8]]
    """
    x, y = operand("outer", x1), operand("outer", x2)
    if len(shape_of(x)) != 1 or len(shape_of(y)) != 1:
        raise ValueError(
            f"outer takes vectors, got x1 of shape {shape_of(x)} and x2 of shape {shape_of(y)}. Flatten them with ravel"
            " first."
        )
    return products.outer(x, y)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The cross product of vectors of three components.

    Raises:
        ValueError: where the axis has another size.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
        Array([0, 0, 1], dtype=int32)
    """
    sizes = [shape_of(x)[canonical_axis(axis, len(shape_of(x)))] for x in (operand("cross", x1), operand("cross", x2))]
    if sizes != [3, 3]:
        raise ValueError(
            f"cross takes vectors of 3 components along axis {axis}, got {sizes[0]} of x1 and {sizes[1]} of x2."
            " weft.numpy.cross takes 2 as well."
        )
    return products.cross(x1, x2, axis=axis)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The diagonals of the last two axes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]]))
        Array([1, 4], dtype=int32)
    """
    return selecting.diagonal(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The sums of the diagonals of the last two axes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.trace(jnp.ones((3, 2, 2)))
        Array([2., 2., 2.], dtype=float32)
    """
    return selecting.trace(x, offset, -2, -1, dtype)


class SlogdetResult(NamedTuple):
    """The sign of a determinant and the logarithm of its absolute value."""

    sign: Array
    logabsdet: Array


class EighResult(NamedTuple):
    """Eigenvalues and eigenvectors of Hermitian matrices."""

    eigenvalues: Array
    eigenvectors: Array


class EigResult(NamedTuple):
    """Eigenvalues and eigenvectors."""

    eigenvalues: Array
    eigenvectors: Array


class SVDResult(NamedTuple):
    """U, the singular values and Vᴴ."""

    U: Array
    S: Array
    Vh: Array


class QRResult(NamedTuple):
    """Q and R."""

    Q: Array
    R: Array


def _inexact(name: str, *args: Value) -> list[Any]:
    return [on_device(x) for x in promote_inexact(name, *args)]


def _square(name: str, a: Value) -> Value:
    (x,) = _inexact(name, a)
    shape = shape_of(x)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(f"Argument to {name} must have shape [..., n, n], got {shape}.")
    return x


def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The lower (or upper) triangular factor of Hermitian positive-definite matrices [..., n, n]; NaN where they are
    not positive-definite.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.cholesky(jnp.array([[4., 2.], [2., 2.]])).tolist()
        [[2.0, 0.0], [1.0, 1.0]]
    """
    (x,) = _inexact("cholesky", a)
    return _cholesky(x, bool(upper), bool(symmetrize_input))


@inner_jit(name="cholesky", static_argnums=(1, 2))
def _cholesky(x: Value, upper: bool, symmetrize: bool) -> Value:
    if upper and not symmetrize:
        x = matrix.mH(x)
    factor = lax.cholesky(x, symmetrize_input=symmetrize)
    return matrix.mH(factor) if upper else factor


@overload
def qr(a: ArrayLike, mode: Literal["r"]) -> Array: ...
@overload
def qr(a: ArrayLike, mode: Literal["reduced", "complete", "raw", "full"] = "reduced") -> QRResult: ...
@overload
def qr(a: ArrayLike, mode: str) -> Array | QRResult: ...
def qr(a: ArrayLike, mode: str = "reduced") -> Array | QRResult:
    """(Q, R) with a = Q R; mode 'reduced' (Q is [..., m, k]), 'complete' ([..., m, m]), 'r' (R alone) or 'raw'
    (reflections and their factors).

    Raises:
        ValueError: for another mode.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.qr(jnp.ones((3, 2))).Q.shape
        (3, 2)
    """
    mode = "complete" if mode == "full" else mode
    if mode not in ("reduced", "complete", "r", "raw"):
        raise ValueError(f"Unsupported QR decomposition mode {mode!r}; modes are 'reduced', 'complete', 'r' and 'raw'.")
    (x,) = _inexact("qr", a)
    if mode == "raw":
        reflections, taus = ops.geqrf_p.bind(x)
        return QRResult(matrix.mT(reflections), taus)
    q, r = _qr(x, mode == "complete")
    return r if mode == "r" else QRResult(q, r)


@inner_jit(name="qr", static_argnums=(1,))
def _qr(x: Value, full: bool) -> Value:
    return lax.qr(x, full_matrices=full)


def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """x with a x = b, for square a [..., n, n] and b [n] or [..., n, k]; leading axes broadcast.

    A singular a gives infinities or NaN, not an error.

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
    """The permutation that undoes one: where each number stands."""
    shape = shape_of(perm)
    n, rank = shape[-1], len(shape)
    wide = (*shape, n)
    same = el.eq(matrix.columns(perm, n), iota(dtypes.int32, wide, rank))  # [..., i, j]: perm[i] = j
    return linear.reduce_sum(
        el.select(same, iota(dtypes.int32, wide, rank - 1), linear.full(wide, 0, dtypes.int32)), (rank - 1,)
    )


def inv(a: ArrayLike) -> Array:
    """The inverses of square matrices [..., n, n]; infinities or NaN where they are singular.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.inv(jnp.array([[2., 0.], [0., 4.]])).tolist()
        [[0.5, 0.0], [0.0, 0.25]]
    """
    return _inv(_square("inv", a))


@inner_jit(name="inv")
def _inv(x: Value) -> Value:
    return _solve(x, matrix.eye(shape_of(x), dtype_of(x)))


def _parity(pivots: Value) -> Value:
    """Whether each factorisation swapped an odd number of rows, as 0 or 1."""
    shape = shape_of(pivots)
    swaps = linear.convert(el.ne(pivots, iota(dtypes.int32, shape, len(shape) - 1)), dtypes.int32)
    count = linear.reduce_sum(swaps, (len(shape) - 1,))
    return el.rem(count, scalar_like(count, 2))


def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """(sign, logabsdet) of determinants of [..., n, n], without overflow; (0, -inf) for singular matrices.

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
        el.mul(_slogdet(q)[0], reduce_prod(el.sign(on), (last,))), linear.reduce_sum(el.log(el.abs_(on)), (last,))
    )


@inner_jit(name="slogdet")
def _slogdet(x: Value) -> tuple[Value, Value]:
    if dtypes.bits(dtype_of(x)) == 16 and shape_of(x)[-1] < 3:  # too narrow for LU
        d = _det(x)
        return el.sign(d), el.log(el.abs_(d))
    lu, pivots, _ = lax.lu(x)
    on = matrix.diagonal(lu)
    last = len(shape_of(on)) - 1
    flips = linear.convert(_parity(pivots), dtype_of(on))
    sign = el.mul(reduce_prod(el.sign(on), (last,)), el.sub(scalar_like(on, 1), el.mul(flips, scalar_like(on, 2))))
    return sign, linear.reduce_sum(el.log(el.abs_(on)), (last,))


def det(a: ArrayLike) -> Array:
    """The determinants of square matrices [..., n, n].

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
    # small ones by their polynomial, which has its derivatives at singular matrices too
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
        return restore(el.sqrt(total(squares)))
    size = _abs(x)
    if len(axes) == 1:
        if order in (math.inf, -math.inf):
            return restore(extremum(axes)(size, axes))
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
    return restore(extremum((second,))(inner, (last,)))


def _largest(order: Any, empty: bool) -> Value:
    """The reduction to the largest (order > 0) or smallest of sizes; the largest of none is 0, the smallest an
    error.
    """
    if empty and order < 0:
        raise ValueError(f"norm: of no elements there is none of order {order}; the smallest of them has no identity.")
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

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.linalg.vector_norm(jnp.array([3., 4.])))
        5.0
    """
    x = strong(on_device(operand("vector_norm", x)))
    if not dtypes.is_inexact(dtype_of(x)):  # sums and extrema stay integers
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

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.matrix_norm(jnp.array([[3., 0.], [0., 4.]]))
        Array(5., dtype=float32)
    """
    return norm(x, ord, (-2, -1), keepdims)


def matrix_power(a: ArrayLike, n: int) -> Array:
    """A square matrix to a static integer power; negative powers invert it.

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


def multi_dot(arrays: Sequence[ArrayLike], *, precision: PrecisionLike = None) -> Array:
    """The product of several matrices, the cheapest order first.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.multi_dot([jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones((4, 1))]).shape
        (2, 1)
    """
    xs = [on_device(operand("multi_dot", a)) for a in arrays]
    if len(xs) < 2:
        raise ValueError("multi_dot needs at least two arrays.")
    shapes = [shape_of(x) for x in xs]
    if any(len(s) != 2 for s in shapes[1:-1]) or any(len(s) not in (1, 2) for s in (shapes[0], shapes[-1])):
        raise ValueError(f"multi_dot takes matrices, and vectors first and last, got shapes {shapes}.")
    if any(a[-1] != b[0] for a, b in zip(shapes, shapes[1:])):
        raise ValueError(f"multi_dot: the last size of each array must be the first of the next, got shapes {shapes}.")
    while len(xs) > 2:
        costs = [
            (shape_of(a)[-1] * shape_of(b)[-1] * (shape_of(a)[0] if len(shape_of(a)) > 1 else 1), i)
            for i, (a, b) in enumerate(zip(xs, xs[1:]))
        ]
        i = min(costs)[1]
        xs[i : i + 2] = [matmul(xs[i], xs[i + 1], precision=precision)]
    return matmul(*xs, precision=precision)


def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """(eigenvalues, eigenvectors) of Hermitian matrices [..., n, n], eigenvalues ascending, vectors in columns.

    Raises:
        ValueError: for a UPLO other than None, 'L' and 'U'.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.eigh(jnp.array([[2., 0.], [0., 1.]])).eigenvalues.tolist()
        [1.0, 2.0]
    """
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"UPLO must be one of None, 'L', or 'U', got {UPLO}")
    (x,) = _inexact("eigh", a)
    v, w = _eigh(x, UPLO != "U", bool(symmetrize_input))
    return EighResult(w, v)


@inner_jit(name="eigh", static_argnums=(1, 2))
def _eigh(x: Value, lower: bool, symmetrize: bool) -> Any:
    return lax.eigh(x, lower=lower, symmetrize_input=symmetrize)


def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """The eigenvalues of Hermitian matrices, ascending.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.eigvalsh(jnp.array([[2., 0.], [0., 1.]])).tolist()
        [1.0, 2.0]
    """
    return eigh(a, UPLO, symmetrize_input).eigenvalues


def eig(a: ArrayLike) -> EigResult:
    """(eigenvalues, eigenvectors) of square matrices, complex; vectors in columns of length 1. Computed on the CPU.

    Example:
        >>> import weft.numpy as jnp
        >>> sorted(jnp.linalg.eig(jnp.array([[0., 1.], [-1., 0.]])).eigenvalues.imag.tolist())
        [-1.0, 1.0]
    """
    (x,) = _inexact("eig", a)
    return EigResult(*lax.eig(x, compute_left_eigenvectors=False))


def eigvals(a: ArrayLike) -> Array:
    """The eigenvalues of square matrices, complex, in no order; differentiable where they are distinct.

    Example:
        >>> import weft.numpy as jnp
        >>> sorted(jnp.linalg.eigvals(jnp.array([[3., 1.], [0., 2.]])).real.tolist())
        [2.0, 3.0]
    """
    (x,) = _inexact("eigvals", a)
    return lax.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> SVDResult: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool,
    compute_uv: Literal[False],
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    *,
    compute_uv: Literal[False],
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array: ...
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array | SVDResult:
    """(U, S, Vᴴ) with a = U diag(S) Vᴴ; S alone without `compute_uv`. `hermitian` takes the values from `eigh`.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.svd(jnp.ones((3, 2)), full_matrices=False).U.shape
        (3, 2)
    """
    (x,) = _inexact("svd", a)
    if hermitian:
        if subset_by_index is not None:
            raise ValueError("svd: subset_by_index and hermitian can't both be given.")
        return _hermitian_svd(x, compute_uv)
    if not compute_uv:
        return _svd(x, False, False, subset_by_index)
    return SVDResult(*_svd(x, bool(full_matrices), True, subset_by_index))


@inner_jit(name="svd", static_argnums=(1, 2, 3))
def _svd(x: Value, full: bool, uv: bool, subset: tuple[int, int] | None) -> Any:
    return lax.svd(x, full_matrices=full, compute_uv=uv, subset_by_index=subset)


def _hermitian_svd(x: Value, compute_uv: bool) -> Any:
    w, v = eigh(x)
    order = _argsort(-_abs(w))
    s = take_along_axis(_abs(w), order, -1)
    if not compute_uv:
        return s
    v = take_along_axis(v, order[..., None, :], -1)
    sign = linear.convert(el.sign(take_along_axis(w, order, -1)), dtype_of(v))
    return SVDResult(v, s, matrix.mH(el.mul(v, matrix.rows(sign, shape_of(v)[-2]))))


def svdvals(x: ArrayLike, /) -> Array:
    """The singular values, descending.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.svdvals(jnp.array([[0., 2.], [1., 0.]])).tolist()
        [2.0, 1.0]
    """
    return svd(x, compute_uv=False)


def _cutoff(s: Any, shape: tuple[Size, ...], rtol: Value) -> Value:
    """The size below which singular values count as zero, [...]."""
    if rtol is None:
        rtol = max(shape[-2:]) * float(dtypes.finfo(dtype_of(s)).eps)
    largest = reduce_max(s, (len(shape_of(s)) - 1,))
    return largest * linear.convert(operand("rtol", rtol), dtype_of(s))


def matrix_rank(
    M: ArrayLike, rtol: ArrayLike | None = None, *, hermitian: bool = False, tol: ArrayLike | None = None
) -> Array:
    """How many singular values exceed `rtol` times the largest one (by default max(m, n) eps), or `tol` itself.

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


def pinv(
    a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False, *, rcond: ArrayLike | None = None
) -> Array:
    """The Moore-Penrose inverse [..., n, m] of a [..., m, n]; singular values up to `rtol` times the largest (10 max(m,
    n) eps) count as zero.

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
        rtol = 10 * max(shape_of(x)[-2:]) * float(dtypes.finfo(dtype_of(x)).eps)
    u, s, vh = svd(x, full_matrices=False, hermitian=hermitian)
    live = s > _cutoff(s, shape_of(x), rtol)[..., None]
    one, zero = linear.full(shape_of(s), 1, dtype_of(s)), linear.full(shape_of(s), 0, dtype_of(s))
    inverse = el.select(live, el.div(one, el.select(live, s, one)), zero)
    return matmul(matrix.scale_columns(matrix.mH(vh), inverse), matrix.mH(u))


def cond(x: ArrayLike, p: int | float | str | None = None) -> Array:
    """The condition number: the largest singular value over the smallest, or norm(x, p) norm(inv(x), p).

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


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """(x, residuals, rank, singular values) of the least-squares problem a x = b, for a [m, n] and b [m] or [m, k].

    With `numpy_resid` the residuals are empty where a has not full rank or m <= n, which can't be under jit.

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
        max(m, n) * float(dtypes.finfo(dtype_of(s)).eps)
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
