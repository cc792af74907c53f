"""Random vectors and matrices, and two distributions of numbers that are computed from normal ones."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from ..base.errors import at_user_line
from ..lax.common import canonical_shape, on_device, operand
from ..numpy.einsum import einsum
from ..numpy.linalg import cholesky, eigh, qr, svd
from ..numpy.diagonals import diagonal
from ..numpy.util import broadcast_shapes, broadcast_to, promote_inexact
from ..primitives import elementwise as el, transcendental
from ..primitives import linear
from ..primitives.rules import shape_of
from ..runtime.jit import inner_jit
from ..typing import Array, ArrayLike, DTypeLike, OutSharding, Shape
from ..transforms.auto_axes import takes_out_sharding
from .gammas import _params, _ranked, parts
from .keys import as_key
from .sampling import _float, _normal, _normal_real, _uniform
from .continuous import _maxwell
from .discrete import _rademacher

if TYPE_CHECKING:
    from ..base.avals import Size
    from ..core.types import Value
    from ..base.dtypes import ElementType

__all__ = ["double_sided_maxwell", "multivariate_normal", "orthogonal", "wald"]


@inner_jit(name="_wald", static_argnames=("shape", "dtype"))
def _wald(key: Value, mean: Value, *, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    """Michael, Schucany & Haas, "Generating random variates using transformations with multiple roots" (The American
    Statistician 30, 1976).
    """
    for_normal, for_choice = parts(key, 2)
    mean = broadcast_to(linear.convert(mean, dtype), shape)
    v = _normal_real(for_normal, shape, dtype)
    z = _uniform(for_choice, 0.0, 1.0, shape=shape, dtype=dtype)
    y, square = el.integer_pow(v, 2), el.integer_pow(mean, 2)
    root = transcendental.sqrt(4 * mean * y + square * el.integer_pow(y, 2))
    x = mean + square * y / 2 - mean / 2 * root
    return el.select(z <= mean / (mean + x), x, square / x)


@takes_out_sharding
def wald(
    key: ArrayLike,
    mean: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Numbers of the Wald (inverse Gaussian) distribution with the given mean and scale 1.

    Args:
        key: random key, one or an array of them under vmap.
        mean: array of floats, positive.
        shape: @shape; None for that to which the parameters broadcast.
        dtype: dtype of floats; the initializer's own default.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Raises:
        ValueError: for a dtype that is no float, or a shape that does not fit.

    Source: Michael, Schucany and Haas, "Generating random variates using transformations with multiple roots" (1976).

    Example:
        >>> import weft
        >>> float(weft.random.wald(weft.random.key(0), 2.0)) > 0
        True
    """
    key, shape, dtype, mean = _params("wald", key, shape, dtype, mean)
    return _wald(key, mean, shape=shape, dtype=dtype)


@inner_jit(name="_double_sided_maxwell", static_argnames=("shape", "dtype"))
def _double_sided_maxwell(
    key: Value, loc: Value, scale: Value, *, shape: tuple[Size, ...], dtype: ElementType
) -> Value:
    for_size, for_sign = parts(key, 2)
    signed = _rademacher(for_sign, shape, dtype) * _maxwell(for_size, shape, dtype)
    return el.add(*_ranked(el.mul(*_ranked(signed, linear.convert(scale, dtype))), linear.convert(loc, dtype)))


@takes_out_sharding
def double_sided_maxwell(
    key: ArrayLike,
    loc: ArrayLike,
    scale: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Maxwell numbers of either sign, times `scale`, plus `loc`.

    The result has the shape (*shape, *parameters) where `parameters` is what loc and scale broadcast to, twice that
    where shape is (): JAX's choice.

    Args:
        key: random key, one or an array of them under vmap.
        loc: array of floats.
        scale: array of floats, which broadcasts with loc.
        shape: int or sequence of ints.
        dtype: dtype of floats; the initializer's own default.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype, of the shape that is said above.

    Raises:
        ValueError: for a dtype that is no float.

    Example:
        >>> import weft
        >>> weft.random.double_sided_maxwell(weft.random.key(0), 0.0, 1.0, (2,)).shape
        (2,)
    """
    key, _ = as_key("double_sided_maxwell", key)
    dtype = _float("double_sided_maxwell", dtype)
    loc, scale = operand("double_sided_maxwell", loc), operand("double_sided_maxwell", scale)
    params = broadcast_shapes([shape_of(loc), shape_of(scale)])
    return _double_sided_maxwell(key, loc, scale, shape=(*(canonical_shape(shape) or params), *params), dtype=dtype)


@inner_jit(name="_multivariate_normal", static_argnames=("shape", "dtype", "method"))
def _multivariate_normal(
    key: Value, mean: Value, cov: Value, *, shape: tuple[Size, ...], dtype: ElementType, method: str
) -> Value:
    if method == "cholesky":
        factor = cholesky(cov)
    elif method == "eigh":
        values, vectors = eigh(cov)
        factor = vectors * transcendental.sqrt(linear.expand_dims(values, (len(shape_of(values)) - 1,)))
    else:
        vectors, values, _ = svd(cov)
        factor = vectors * transcendental.sqrt(linear.expand_dims(values, (len(shape_of(values)) - 1,)))
    normal = _normal_real(key, (*shape, shape_of(mean)[-1]), dtype)
    return mean + einsum("...ij,...j->...i", factor, normal)


@takes_out_sharding
def multivariate_normal(
    key: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Vectors (*shape, n) of the normal distribution with mean (…, n) and covariance (…, n, n).

    `shape` defaults to what the leading axes of both broadcast to. `method` takes a root of the covariance: 'cholesky'
    is the fastest and needs a definite one (NaN otherwise); 'eigh' and 'svd' take semi-definite ones too.

    Args:
        key: random key, one or an array of them under vmap.
        mean: array of floats, shape (..., n).
        cov: array of floats, shape (..., n, n).
        shape: int or sequence of ints: how many vectors; None for the leading axes of both.
        dtype: dtype of floats; the initializer's own default.
        method: 'cholesky', 'eigh' or 'svd'.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape (*shape, n).

    Raises:
        ValueError: for another method, a dtype that is no float, or shapes that do not fit.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.random.multivariate_normal(weft.random.key(0), jnp.zeros(2), jnp.eye(2), (3,)).shape
        (3, 2)
    """
    key, _ = as_key("multivariate_normal", key)
    dtype = _float("multivariate_normal", dtype)
    mean, cov = [on_device(x) for x in promote_inexact("multivariate_normal", mean, cov)]
    if method not in ("svd", "eigh", "cholesky"):
        raise ValueError(at_user_line(f"multivariate_normal: method is 'cholesky', 'eigh' or 'svd', got {method!r}."))
    if not shape_of(mean) or shape_of(cov)[-2:] != shape_of(mean)[-1:] * 2:
        raise ValueError(
            at_user_line(
                f"multivariate_normal takes a mean of shape (…, n) and a cov of shape (…, n, n), got {shape_of(mean)}"
                f" and {shape_of(cov)}."
            )
        )
    batch = broadcast_shapes([shape_of(mean)[:-1], shape_of(cov)[:-2]])
    shape = batch if shape is None else canonical_shape(shape)
    if broadcast_shapes([shape, batch]) != shape:
        raise ValueError(
            at_user_line(
                f"multivariate_normal: the batch shape {batch} of mean and cov does not broadcast to the shape {shape}."
            )
        )
    return _multivariate_normal(key, mean, cov, shape=shape, dtype=dtype, method=method)


@inner_jit(name="_orthogonal", static_argnames=("shape", "n", "dtype", "m"))
def _orthogonal(key: Value, *, shape: tuple[Size, ...], n: int, dtype: ElementType, m: int) -> Value:
    """Mezzadri, "How to generate random matrices from the classical compact groups" (Notices of the AMS 54, 2007)."""
    q, r = qr(_normal(key, (*shape, max(n, m), min(n, m)), dtype))
    q = el.mul(q, linear.expand_dims(el.sign(diagonal(r, 0, -2, -1)), (len(shape),)))
    rank = len(shape)
    return q if n >= m else linear.transpose(q, (*range(rank), rank + 1, rank))


@takes_out_sharding
def orthogonal(
    key: ArrayLike,
    n: int,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    m: int | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Random orthogonal (for complex dtypes unitary) matrices (*shape, n, m), uniform in the Haar measure; `m` is n by
    default.

    With m != n the rows or columns, whichever are fewer, are orthonormal.

    Args:
        key: random key, one or an array of them under vmap.
        n: int, the number of rows.
        shape: int or sequence of ints: how many matrices.
        dtype: dtype of floats or complex numbers; None for the default floats.
        m: int, the number of columns; None for n.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape (*shape, n, m).

    Raises:
        TypeError: for an `n` or `m` that is no integer. ValueError: for a dtype that is neither float nor complex.

    Source: Mezzadri, "How to generate random matrices from the classical compact groups" (2007).

    Example:
        >>> import weft, weft.numpy as jnp
        >>> q = weft.random.orthogonal(weft.random.key(0), 3)
        >>> bool(jnp.allclose(q @ q.T, jnp.eye(3), atol=1e-5))
        True
    """
    key, _ = as_key("orthogonal", key)
    try:
        n, m = operator.index(n), operator.index(n if m is None else m)
    except TypeError:
        raise TypeError(at_user_line(f"orthogonal: n and m are integers, got n={n!r}, m={m!r}.")) from None
    return _orthogonal(key, shape=canonical_shape(shape), n=n, dtype=_float("orthogonal", dtype, True), m=m)
