"""Covariance, correlation and convolution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..base import dtypes
from ..lax.dots import PrecisionLike
from ..core.trace import get_aval
from ..primitives import elementwise as el, transcendental
from ..primitives import linear
from ..primitives import shape as ops
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..typing import Array, ArrayLike, DTypeLike
from .products import dot, matmul
from .reductions import mean
from .shapes import take_rows
from .joining import concatenate
from .util import asked_dtype, on_device, operand, promote, promote_inexact

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = ["convolve", "corrcoef", "correlate", "cov"]


def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """The covariance matrix of variables in rows (or columns).

    Args:
        m: array of numbers, of rank at most 2.
        y: array of numbers, further variables; None for none.
        rowvar: bool: variables are rows, observations columns.
        bias: bool: divide by n, not by n - 1.
        ddof: int, subtracted from n in the divisor; None for what `bias` says.
        fweights: array of integers, shape (n,): how often each observation occurs; None for once.
        aweights: array of floats, shape (n,): how much each observation counts; None for all alike.
        dtype: dtype of the result; None for floats, or complex numbers.

    Returns:
        array of that dtype, shape (k, k) for k variables.

    Raises:
        ValueError: for arrays and weights of other shapes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.cov(jnp.array([[1., 2.], [2., 4.]])).tolist()
        [[0.5, 1.0], [1.0, 2.0]]
    """
    dt = asked_dtype("cov", dtype)
    if dt is not None and not dtypes.is_inexact(dt):
        raise ValueError(f"cov: dtype must be a float or complex one, got {dtypes.name(dt)}.")
    xs = [on_device(v) for v in promote_inexact("cov", m, *([] if y is None else [y]))]
    rows = []
    for x in xs:
        if len(shape_of(x)) > 2:
            raise ValueError(f"cov takes arrays of rank 2 at most, got shape {shape_of(x)}.")
        x = (
            linear.reshape(x, (1, math.prod(shape_of(x))))
            if len(shape_of(x)) < 2
            else x
            if rowvar
            else linear.transpose(x, (1, 0))
        )
        rows.append(x)
    x = concatenate(rows, 0)
    x = x if dt is None else linear.convert(x, dt)
    ddof = (0 if bias else 1) if ddof is None else ddof
    weights = None
    for name, w in (("fweights", fweights), ("aweights", aweights)):
        if w is not None:
            w = on_device(operand("cov", w))
            if name == "fweights" and not dtypes.is_int(dtype_of(w)):
                raise TypeError(f"cov: fweights must be integer, got {get_aval(w)}.")
            if shape_of(w) != shape_of(x)[1:]:
                raise RuntimeError(
                    f"cov: incompatible numbers of samples and {name}: {shape_of(x)[1]} and shape {shape_of(w)}."
                )
            w = linear.convert(w, dtype_of(x))
            weights = w if weights is None else el.mul(weights, w)
    if weights is None:
        center, norm = mean(x, 1, keepdims=True), scalar_like(x, shape_of(x)[1] - ddof)
        left = x
    else:
        total = linear.reduce_sum(weights, (0,))
        left = el.mul(x, linear.expand_dims(weights, (0,)))
        center = el.div(linear.expand_dims(linear.reduce_sum(left, (1,)), (1,)), total)
        if aweights is None:
            norm = el.sub(total, scalar_like(total, ddof))
        else:
            aw = linear.convert(on_device(operand("cov", aweights)), dtype_of(x))
            norm = el.sub(
                total, el.mul(scalar_like(total, ddof), el.div(linear.reduce_sum(el.mul(weights, aw), (0,)), total))
            )
    centered = el.sub(x, center)
    other = centered if weights is None else el.mul(centered, linear.expand_dims(weights, (0,)))
    other = el.conj(other) if dtypes.is_complex(dtype_of(other)) else other
    out = el.div(matmul(centered, linear.transpose(other, (1, 0))), norm)
    return linear.reshape(out, ()) if shape_of(out) == (1, 1) else out


def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None) -> Array:
    """The matrix of correlation coefficients of variables in rows (or columns).

    Args:
        x: array of numbers, of rank at most 2.
        y: array of numbers, further variables; None for none.
        rowvar: bool: variables are rows, observations columns.
        dtype: dtype of the result; None for floats, or complex numbers.

    Returns:
        array of that dtype, shape (k, k) for k variables.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.corrcoef(jnp.array([[1., 2.], [2., 4.]])).shape
        (2, 2)
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if not shape_of(c):
        return el.div(c, c)
    n = shape_of(c)[0]
    i = ops.iota(dtypes.int32, (n,), 0)
    d = transcendental.sqrt(el.real(c[i, i]) if dtypes.is_complex(dtype_of(c)) else c[i, i])
    d = linear.convert(d, dtype_of(c))
    out = el.div(el.div(c, linear.expand_dims(d, (1,))), linear.expand_dims(d, (0,)))
    return out if dtypes.is_complex(dtype_of(out)) else el.clamp(scalar_like(out, -1), out, scalar_like(out, 1))


def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The discrete convolution of two vectors; mode 'full', 'same' or 'valid'.

    Args:
        a: array of numbers, shape (n,).
        v: array of numbers, shape (m,).
        mode: 'full', 'same' or 'valid'.
        precision: `lax.Precision` or its name: how exact the products are; None for the default.
        preferred_element_type: dtype of the result; None for that to which the arguments promote.

    Returns:
        array of the dtype to which both promote, shape (n + m - 1,) in mode 'full'.

    Raises:
        ValueError: for arrays that are no vectors, empty ones, and another mode.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.convolve(jnp.array([1., 2.]), jnp.array([1., 1.]))
        Array([1., 3., 2.], dtype=float32)
    """
    return _convolve("convolve", a, v, mode, True, precision, preferred_element_type)


def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The cross-correlation of two vectors; mode 'full', 'same' or 'valid'.

    Args:
        a: array of numbers, shape (n,).
        v: array of numbers, shape (m,).
        mode: 'full', 'same' or 'valid'.
        precision: `lax.Precision` or its name: how exact the products are; None for the default.
        preferred_element_type: dtype of the result; None for that to which the arguments promote.

    Returns:
        array of the dtype to which both promote, shape (n + m - 1,) in mode 'full'.

    Raises:
        ValueError: for arrays that are no vectors, empty ones, and another mode.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.correlate(jnp.array([1., 2., 3.]), jnp.array([1., 1.]))
        Array([3., 5.], dtype=float32)
    """
    _, v2 = promote("correlate", a, v)
    return _convolve(
        "correlate",
        a,
        el.conj(on_device(v2)) if dtypes.is_complex(dtype_of(v2)) else v,
        mode,
        False,
        precision,
        preferred_element_type,
    )


def _convolve(
    name: str, a: Value, v: Value, mode: str, reverse: bool, precision: PrecisionLike, preferred: DTypeLike | None
) -> Value:
    """The convolution as a product with the matrix of all shifted windows."""
    x, w = [on_device(u) for u in promote_inexact(name, a, v)]
    preferred = asked_dtype(name, preferred)
    if preferred is not None and dtypes.bits(preferred) < dtypes.bits(dtype_of(x)):
        raise TypeError(
            f"{name}: preferred_element_type {dtypes.name(preferred)} must not be narrower than the dtype"
            f" {dtypes.name(dtype_of(x))} of the operands."
        )
    if len(shape_of(x)) != 1 or len(shape_of(w)) != 1:
        raise ValueError(f"{name} takes vectors, got shapes {shape_of(x)} and {shape_of(w)}.")
    n, m = shape_of(x)[0], shape_of(w)[0]
    if not n or not m:
        raise ValueError(f"{name}: inputs cannot be empty, got shapes ({n},) and ({m},).")
    flip_result = False
    if n < m:
        x, w, n, m = w, x, m, n
        flip_result = not reverse
    w = ops.rev(w, (0,)) if reverse else w
    total = {"full": n + m - 1, "same": n, "valid": n - m + 1}.get(mode)
    if total is None:
        raise ValueError(f"{name}: mode must be one of 'full', 'same', 'valid', got {mode!r}.")
    lead = {"full": m - 1, "same": m // 2 if not reverse else (m - 1) - (m - 1) // 2, "valid": 0}[mode]
    if mode == "same" and not reverse and flip_result:
        lead = m - 1 - m // 2
    padded = ops.pad(x, scalar_like(x, 0), ((lead, max(0, total + m - 1 - lead - n), 0),))
    rows = el.add(ops.iota(dtypes.int32, (total, m), 0), ops.iota(dtypes.int32, (total, m), 1))
    out = dot(take_rows(padded, rows, 0), w, precision=precision, preferred_element_type=preferred)
    return ops.rev(out, (0,)) if flip_result else out
