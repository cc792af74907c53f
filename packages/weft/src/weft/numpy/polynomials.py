"""Polynomials as vectors of coefficients, the highest power first."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable

from ..base import dtypes, limits
from ..runtime.jit import inner_jit
from ..primitives import elementwise as el
from ..primitives import linear
from ..primitives import shape as ops
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..typing import Array, ArrayLike
from . import comparisons, diagonals, elementary, linalg, reductions, cumulative, selecting, ufuncs
from .products import dot
from .ranges import arange
from .shapes import roll
from .sorting import argsort
from .statistics import convolve
from .ufuncs import add, multiply
from .util import on_device, operand, promote, promote_inexact, static_int, in_own_terms

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = [
    "poly",
    "polyadd",
    "polyder",
    "polydiv",
    "polyfit",
    "polyint",
    "polymul",
    "polysub",
    "polyval",
    "roots",
    "vander",
]


def _coefficients(name: str, promote: Callable[..., list[Any]], *args: Value) -> list[Any]:
    """Promoted vectors."""
    out = [on_device(x) for x in promote(name, *args)]
    for x in out:
        if len(shape_of(x)) != 1:
            kind = ValueError if shape_of(x) else IndexError if name in ("polyadd", "polysub") else TypeError
            raise kind(f"{name} takes vectors of coefficients, got shape {shape_of(x)}.")
    return out


def poly(seq_of_zeros: ArrayLike) -> Array:
    """The polynomial with the given zeros, or the characteristic polynomial of a square matrix.

    Args:
        seq_of_zeros: array of numbers, shape (n,) or (n, n).

    Returns:
        array of floats or complex numbers, shape (n + 1,), the highest power first.

    Raises:
        ValueError: for a matrix that is empty or not square.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.poly(jnp.array([1., 2.]))
        Array([ 1., -3.,  2.], dtype=float32)
    """
    (zeros,) = [on_device(x) for x in promote_inexact("poly", seq_of_zeros)]
    shape = shape_of(zeros)
    if len(shape) == 2 and shape[0] == shape[1] and shape[0]:
        zeros = linalg.eigvals(zeros)
    elif len(shape) > 1:
        raise ValueError(f"poly: input must be 1d or non-empty square 2d array, got shape {shape}.")
    zeros = linear.reshape(zeros, (math.prod(shape_of(zeros)),))
    dt = dtype_of(zeros)
    if not shape_of(zeros)[0]:
        return linear.full((), 1, dt)
    out = linear.full((1,), 1, dt)
    for k in range(shape_of(zeros)[0]):
        zero = ops.slice_(zeros, (k,), (k + 1,))
        out = el.sub(
            ops.pad(out, scalar_like(out, 0), ((0, 1, 0),)),
            ops.pad(el.mul(out, zero), scalar_like(out, 0), ((1, 0, 0),)),
        )
    return out


@inner_jit(name="polyadd")
def _add(a: Value, b: Value) -> Value:
    if shape_of(a)[0] < shape_of(b)[0]:
        a, b = b, a
    return el.add(a, ops.pad(b, scalar_like(b, 0), ((shape_of(a)[0] - shape_of(b)[0], 0, 0),)))


def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The sum of two polynomials.

    Args:
        a1, a2: array of numbers, shape (n,): coefficients, the highest power first.

    Returns:
        array of the dtype to which both promote, shape (n,), where n is the larger size.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.polyadd(jnp.array([1, 2, 3]), jnp.array([5, 0]))
        Array([1, 7, 3], dtype=int32)
    """
    return _add(*_coefficients("polyadd", promote, a1, a2))


def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The difference of two polynomials.

    Args:
        a1, a2: array of numbers, shape (n,): coefficients, the highest power first.

    Returns:
        array of the dtype to which both promote, shape (n,), where n is the larger size.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.polysub(jnp.array([1, 2, 3]), jnp.array([5, 0]))
        Array([ 1, -3,  3], dtype=int32)
    """
    a, b = _coefficients("polysub", promote, a1, a2)
    return _add(a, el.neg(b))


def _trimmed(x: Value) -> Value:
    """A concrete vector without its leading zeros."""
    values = x.tolist()
    first = next((k for k, v in enumerate(values) if v), len(values))
    return x[first:] if first else x


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials; `trim_leading_zeros` looks at concrete values.

    Args:
        a1, a2: array of numbers, shape (n,): coefficients, the highest power first.
        trim_leading_zeros: bool.

    Returns:
        array of the dtype to which both promote, shape (n + m - 1,).

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.polymul(jnp.array([1., 2.]), jnp.array([1., 3.]))
        Array([1., 5., 6.], dtype=float32)
    """
    a, b = _coefficients("polymul", promote_inexact, a1, a2)
    if trim_leading_zeros and shape_of(a)[0] > 1 and shape_of(b)[0] > 1:
        a, b = _trimmed(a), _trimmed(b)
    a, b = [x if shape_of(x)[0] else linear.full((1,), 0, dtype_of(x)) for x in (a, b)]
    return convolve(a, b, mode="full")


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """(quotient, remainder) of two polynomials; `trim_leading_zeros` shortens the remainder, for concrete values.

    Args:
        u, v: array of numbers, shape (n,): coefficients, the highest power first.
        trim_leading_zeros: bool.

    Returns:
        (quotient, remainder), vectors of floats or complex numbers.

    Raises:
        IndexError: for a divisor without coefficients.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.polydiv(jnp.array([1., 5., 7.]), jnp.array([1., 2.]))
        (Array([1., 3.], dtype=float32), Array([0., 0., 1.], dtype=float32))
    """
    rest, v = _coefficients("polydiv", promote_inexact, u, v)
    m, n = shape_of(rest)[0] - 1, shape_of(v)[0] - 1
    if n < 0:
        raise IndexError("polydiv: the divisor has no coefficients.")
    quotient = []
    for k in range(m - n + 1):
        factor = el.div(ops.slice_(rest, (k,), (k + 1,)), ops.slice_(v, (0,), (1,)))
        quotient.append(factor)
        rest = el.sub(rest, ops.pad(el.mul(factor, v), scalar_like(v, 0), ((k, m - n - k, 0),)))
    found = ops.concatenate(quotient, 0) if quotient else linear.full((1,), 0, dtype_of(rest))
    return found, (_trimmed(rest) if trim_leading_zeros else rest)


def polyder(p: ArrayLike, m: int = 1) -> Array:
    """The m-th derivative of a polynomial.

    Args:
        p: array of numbers, shape (n,): coefficients, the highest power first.
        m: int, how often.

    Returns:
        array of floats or complex numbers, shape (n - m,).

    Raises:
        ValueError: for m < 0.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.polyder(jnp.array([1., 2., 3.]))
        Array([2., 2.], dtype=float32)
    """
    (left,), m = _coefficients("polyder", promote_inexact, p), static_int("m", m)
    if m < 0:
        raise ValueError(f"polyder: the order of the derivative must not be negative, got {m}.")
    n = shape_of(left)[0]
    for _ in range(min(m, n)):
        n -= 1
        powers = linear.convert(ufuncs.subtract(n, arange(n)), dtype_of(left))
        left = el.mul(ops.slice_(left, (0,), (n,)), powers)
    return left


def polyint(p: ArrayLike, m: int = 1, k: int | ArrayLike | None = None) -> Array:
    """The m-th integral of a polynomial, with the constants of integration `k` (a number, or one for each integral; 0
    by default).

    Args:
        p: array of numbers, shape (n,): coefficients, the highest power first.
        m: int, how often.
        k: number, or array of shape (m,): the constants; None for 0.

    Returns:
        array of floats or complex numbers, shape (n + m,).

    Raises:
        ValueError: for m < 0, or another number of constants.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.polyint(jnp.array([2., 2.]), k=5.)
        Array([1., 2., 5.], dtype=float32)
    """
    given, constants = promote_inexact("polyint", p, 0 if k is None else k)
    (out,), constants, m = _coefficients("polyint", promote, given), on_device(constants), static_int("m", m)
    if m < 0:
        raise ValueError(f"polyint: the order of the integral must not be negative, got {m}; polyder differentiates.")
    if shape_of(constants) not in ((), (1,), (m,)):
        raise ValueError(
            f"polyint: k must be a scalar or a rank-1 array of length 1 or m={m}, got shape {shape_of(constants)}."
        )
    constants = linear.broadcast_in_dim(constants, (m,), (0,) if shape_of(constants) else ())
    for j in range(m):
        n = shape_of(out)[0]
        powers = linear.convert(ufuncs.subtract(n, arange(n)), dtype_of(out))
        out = ops.concatenate([el.div(out, powers), ops.slice_(constants, (j,), (j + 1,))], 0)
    return out


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """The zeros of a polynomial, complex. Leading zeros are taken off, which needs concrete values; with
    strip_zeros=False, as under jit, NaN stands for the zeros that they would have given.

    Args:
        p: array of numbers, shape (n,): coefficients, the highest power first.
        strip_zeros: bool: take off leading zeros.

    Returns:
        array of complex numbers, shape (n - 1,) without the leading zeros.

    Raises:
        ValueError: for anything but a vector. ConcretizationTypeError: for a traced one with strip_zeros=True.

    Example:
        >>> import weft.numpy as jnp
        >>> sorted(float(abs(z)) for z in jnp.roots(jnp.array([1., -3., 2.])))
        [1.0, 2.0]
    """
    (p,) = promote_inexact("roots", p)
    p = on_device(p)
    if not shape_of(p):
        p = linear.reshape(p, (1,))
    (p,) = _coefficients("roots", promote, p)
    n = shape_of(p)[0] - 1
    if strip_zeros:
        p = _trimmed(p)
        return _roots(p)
    if n < 1:
        return _roots(p)
    # leading zeros go to the end, where each gives a root 0; as many of the smallest roots are NaN then
    zero = el.eq(p, scalar_like(p, 0))
    leading = reductions.sum(cumulative.cumprod(linear.convert(zero, dtypes.int32)))
    found = _roots(roll(p, el.neg(leading)))
    found = found[argsort(el.abs_(found), descending=True)]
    lost = comparisons.greater_equal(arange(n), ufuncs.subtract(n, leading))
    return selecting.where(lost, complex(math.nan, math.nan), found)


def _roots(p: Value) -> Value:
    """The eigenvalues of the companion matrix."""
    n = shape_of(p)[0] - 1
    if n < 1:
        return linear.full(
            (0,), 0, dtypes.complex_of(dtype_of(p)) if not dtypes.is_complex(dtype_of(p)) else dtype_of(p)
        )
    first = el.neg(el.div(ops.slice_(p, (1,), (n + 1,)), ops.slice_(p, (0,), (1,))))
    shifted = (
        diagonals.diag(linear.full((n - 1,), 1, dtype_of(p)), -1) if n > 1 else linear.full((1, 1), 0, dtype_of(p))
    )
    return linalg.eigvals(ops.concatenate([linear.expand_dims(first, (0,)), ops.slice_(shifted, (1, 0), (n, n))], 0))


@in_own_terms
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Array | tuple[Array, ...]:
    """The polynomial of degree `deg` that is nearest to the points (x, y), by least squares.

    Args:
        x: array of numbers, shape (n,).
        y: a vector, or a matrix with one set of values in each column.
        deg: int, the degree.
        rcond: singular values below this times the largest count as zero.
        full: return (p, residuals, rank, singular values, rcond).
        w: the weight of each point's distance.
        cov: return (p, covariance of p), scaled by the residuals, or 'unscaled'.

    Returns:
        array of floats or complex numbers, shape (deg + 1,) or (deg + 1, k): coefficients, the highest power first;
        with `full` or `cov` a tuple that begins with it.

    Raises:
        TypeError: for shapes that do not fit. ValueError: for deg < 0, and for too few points to scale the covariance.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.polyfit(jnp.arange(4.), 2 * jnp.arange(4.) + 1, 1).round(3).tolist()
        [2.0, 1.0]
    """
    x, y = [on_device(v) for v in promote_inexact("polyfit", x, y)]
    deg = static_int("deg", deg)
    if deg < 0:
        raise ValueError(f"polyfit: expected deg >= 0, got {deg}.")
    if len(shape_of(x)) != 1 or not shape_of(x)[0]:
        raise TypeError(f"polyfit: expected a non-empty vector for x, got shape {shape_of(x)}.")
    if len(shape_of(y)) not in (1, 2) or shape_of(y)[0] != shape_of(x)[0]:
        raise TypeError(
            f"polyfit: expected a vector or matrix y with as many rows as x, got shapes {shape_of(y)} and"
            f" {shape_of(x)}."
        )
    n = shape_of(x)[0]
    rcond = n * float(limits.finfo(dtype_of(x)).eps) if rcond is None else rcond
    left, right = vander(x, deg + 1), y
    if w is not None:
        weights = linear.convert(on_device(operand("polyfit", w)), dtype_of(x))
        if shape_of(weights) != (n,):
            raise TypeError(f"polyfit: expected a vector of {n} weights, got shape {shape_of(weights)}.")
        column = weights[:, None]
        left, right = (
            ufuncs.multiply(left, column),
            ufuncs.multiply(right, weights if len(shape_of(y)) == 1 else column),
        )
    scale = elementary.sqrt(reductions.sum(ufuncs.multiply(left, left), 0))
    found, residuals, rank, s = linalg.lstsq(ufuncs.divide(left, scale), right, rcond)
    found = ufuncs.divide(found.T, scale).T
    if full:
        return found, residuals, rank, s, on_device(operand("polyfit", rcond))
    if not cov:
        return found
    left = ufuncs.divide(left, scale)
    base = ufuncs.divide(linalg.inv(dot(left.T, left)), ufuncs.multiply(scale[:, None], scale))
    if cov == "unscaled":
        factor: Any = 1
    else:
        if n <= deg + 1:
            raise ValueError(
                f"polyfit: the number of data points must exceed order to scale the covariance matrix, got {n} for"
                f" degree {deg}; use cov='unscaled'."
            )
        factor = ufuncs.divide(residuals, n - (deg + 1))
    return found, ufuncs.multiply(base, factor) if len(shape_of(y)) == 1 else ufuncs.multiply(base[:, :, None], factor)


def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """The value of a polynomial whose coefficients start with the highest power.

    Args:
        p: array of numbers, shape (n,): coefficients, the highest power first.
        x: array of numbers, any shape.
        unroll: int, how many steps of the loop are written out at once.

    Returns:
        array of the dtype to which both promote, the shape of x.

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.polyval(jnp.array([1., 0., 2.]), 3.))
        11.0
    """
    coefficients, x = [on_device(v) for v in promote("polyval", p, x)]
    out = linear.full(shape_of(x), 0, dtype_of(x))
    for i in range(shape_of(coefficients)[0]):
        out = add(multiply(out, x), coefficients[i])
    return out


def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """The matrix of powers of a vector.

    Args:
        x: array of numbers, shape (n,).
        N: int, the number of columns; None for n.
        increasing: bool: the lowest power first.

    Returns:
        array of the dtype of x, shape (n, N).

    Raises:
        ValueError: for an x that is no vector, and a negative N.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.vander(jnp.array([2, 3])).tolist()
        [[2, 1], [3, 1]]
    """
    x = on_device(operand("vander", x))
    if len(shape_of(x)) != 1:
        raise ValueError("x must be a one-dimensional array")
    n = shape_of(x)[0] if N is None else static_int("N", N)
    if n < 0:
        raise ValueError(f"vander: N must not be negative, got {n}.")
    columns = [linear.full(shape_of(x), 1, dtype_of(x))]
    for _ in range(n - 1):
        columns.append(el.mul(columns[-1], x))
    columns = columns[:n] if increasing else columns[:n][::-1]
    return (
        ops.concatenate([linear.expand_dims(c, (1,)) for c in columns], 1)
        if columns
        else linear.full((shape_of(x)[0], 0), 0, dtype_of(x))
    )
