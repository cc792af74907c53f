"""Reductions of `weft.numpy` that ignore NaN."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable

from ..base import dtypes
from ..core.trace import get_aval
from ..base.dtypes import ElementType
from ..primitives import elementwise as el, transcendental
from ..primitives import linear
from ..primitives import reduce as ops
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..runtime.jit import inner_jit
from ..typing import Array, ArrayLike, Axis, DTypeLike
from .reductions import all, argmax, argmin, fit, mask, max, mean, min, prod, sum, var
from .cumulative import cumulative, running
from .ufuncs import where_jit
from .util import operand

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = [
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
]


def _without_nan(x: Any, identity: float) -> Any:
    return where_jit(el.ne(x, x), scalar_like(x, identity), x) if dtypes.is_inexact(dtype_of(x)) else x


@inner_jit(name="nancumsum", static_argnums=(1, 2))
def _nancumsum(x: Any, axis: int, dt: ElementType) -> Array:
    return running(ops.cumsum_p, _without_nan(x, 0), axis, dt)


def nancumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """The running sum, NaN counting as 0, along `axis` (None: of the flattened array).

    Args:
        a: array of numbers or booleans, any shape.
        axis: int, the axis; None for the flattened array.
        dtype: dtype of the result; None for that of the argument.
        out: None, since arrays are immutable.

    Returns:
        array of the shape of a, or (n,) of the flattened one, of its dtype; booleans and narrow integers are widened.

    Example:
        >>> import weft.numpy as jnp
        >>> y = jnp.nancumsum(jnp.array([1, 2, 3]))
    """
    return cumulative("nancumsum", _nancumsum, a, axis, dtype, out)


@inner_jit(name="nancumprod", static_argnums=(1, 2))
def _nancumprod(x: Any, axis: int, dt: ElementType) -> Array:
    return running(ops.cumprod_p, _without_nan(x, 1), axis, dt)


def nancumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """The running product, NaN counting as 1, along `axis` (None: of the flattened array).

    Args:
        a: array of numbers or booleans, any shape.
        axis: int, the axis; None for the flattened array.
        dtype: dtype of the result; None for that of the argument.
        out: None, since arrays are immutable.

    Returns:
        array of the shape of a, or (n,) of the flattened one, of its dtype; booleans and narrow integers are widened.

    Example:
        >>> import weft.numpy as jnp
        >>> y = jnp.nancumprod(jnp.array([1, 2, 3]))
    """
    return cumulative("nancumprod", _nancumprod, a, axis, dtype, out)


def _nan_last(x: Any, sign: int) -> Any:
    return where_jit(el.ne(x, x), scalar_like(x, sign * math.inf), x) if dtypes.is_float(dtype_of(x)) else x


def _nanarg(
    name: str, base: Callable[..., Array], sign: int, a: ArrayLike, axis: int | None, out: None, keepdims: bool | None
) -> Array:
    x = operand(name, a)
    found = base(_nan_last(x, sign), axis, out, keepdims)
    if not dtypes.is_float(get_aval(x).dtype):
        return found
    nothing = all(el.ne(x, x), axis, keepdims=bool(keepdims))
    return where_jit(nothing, scalar_like(found, -1), found)


def nanargmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """`argmax` ignoring NaN; -1 where there is nothing else.

    Args:
        a: array of real numbers, any shape.
        axis: int, the axis; None for the flattened array.
        out: None, since arrays are immutable.
        keepdims: bool: the reduced axes stay, with size 1.

    Returns:
        array of integers, the shape of a without the axis.

    Example:
        >>> import weft.numpy as jnp
        >>> y = jnp.nanargmax(jnp.array([jnp.nan, 5., 3.]))
    """
    return _nanarg("nanargmax", argmax, -1, a, axis, out, keepdims)


def nanargmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """`argmin` ignoring NaN; -1 where there is nothing else.

    Args:
        a: array of real numbers, any shape.
        axis: int, the axis; None for the flattened array.
        out: None, since arrays are immutable.
        keepdims: bool: the reduced axes stay, with size 1.

    Returns:
        array of integers, the shape of a without the axis.

    Example:
        >>> import weft.numpy as jnp
        >>> y = jnp.nanargmin(jnp.array([jnp.nan, 5., 3.]))
    """
    return _nanarg("nanargmin", argmin, 1, a, axis, out, keepdims)


def nansum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """`sum` with NaN counting as 0.

    Args:
        a: array of numbers or booleans, any shape.
        axis: int, tuple of ints, or None for all: the axes to reduce.
        dtype: dtype of the result; None for that of the argument.
        out: None, since arrays are immutable.
        keepdims: bool: the reduced axes stay, with size 1.
        initial: number to start from; None for the identity of the operation.
        where: array of booleans that broadcasts to a: which elements count; None for all.

    Returns:
        array of the dtype of a and its shape without the axes.

    Example:
        >>> import weft.numpy as jnp
        >>> y = jnp.nansum(jnp.array([jnp.nan, 5., 3.]))
    """
    return sum(_without_nan(operand("nansum", a), 0), axis, dtype, out, keepdims, initial, where)


def nanprod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """`prod` with NaN counting as 1.

    Args:
        a: array of numbers or booleans, any shape.
        axis: int, tuple of ints, or None for all: the axes to reduce.
        dtype: dtype of the result; None for that of the argument.
        out: None, since arrays are immutable.
        keepdims: bool: the reduced axes stay, with size 1.
        initial: number to start from; None for the identity of the operation.
        where: array of booleans that broadcasts to a: which elements count; None for all.

    Returns:
        array of the dtype of a and its shape without the axes.

    Example:
        >>> import weft.numpy as jnp
        >>> y = jnp.nanprod(jnp.array([jnp.nan, 5., 3.]))
    """
    return prod(_without_nan(operand("nanprod", a), 1), axis, dtype, out, keepdims, initial, where)


def _nan_extremum(
    name: str,
    base: Callable[..., Array],
    sign: int,
    a: ArrayLike,
    axis: Axis,
    out: None,
    keepdims: bool,
    initial: ArrayLike | None,
    where: ArrayLike | None,
) -> Array:
    x = operand(name, a)
    if not dtypes.is_inexact(get_aval(x).dtype):
        return base(x, axis, out, keepdims, initial, where)
    result = base(where_jit(el.ne(x, x), scalar_like(x, sign * math.inf), x), axis, out, keepdims, initial, where)
    nothing = all(el.ne(x, x), axis, keepdims=keepdims)
    return result if initial is not None else where_jit(nothing, scalar_like(result, math.nan), result)


def nanmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """`max` ignoring NaN; NaN where there is nothing else.

    Args:
        a: array of real numbers, any shape.
        axis: int, tuple of ints, or None for all: the axes to reduce.
        out: None, since arrays are immutable.
        keepdims: bool: the reduced axes stay, with size 1.
        initial: number to start from; None for the identity of the operation.
        where: array of booleans that broadcasts to a: which elements count; None for all.

    Returns:
        array of the dtype of a and its shape without the axes.

    Example:
        >>> import weft.numpy as jnp
        >>> y = jnp.nanmax(jnp.array([jnp.nan, 5., 3.]))
    """
    return _nan_extremum("nanmax", max, -1, a, axis, out, keepdims, initial, where)


def nanmin(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """`min` ignoring NaN; NaN where there is nothing else.

    Args:
        a: array of real numbers, any shape.
        axis: int, tuple of ints, or None for all: the axes to reduce.
        out: None, since arrays are immutable.
        keepdims: bool: the reduced axes stay, with size 1.
        initial: number to start from; None for the identity of the operation.
        where: array of booleans that broadcasts to a: which elements count; None for all.

    Returns:
        array of the dtype of a and its shape without the axes.

    Example:
        >>> import weft.numpy as jnp
        >>> y = jnp.nanmin(jnp.array([jnp.nan, 5., 3.]))
    """
    return _nan_extremum("nanmin", min, 1, a, axis, out, keepdims, initial, where)


def _not_nan(x: Value, where: Value) -> Value:
    good = el.eq(x, x)
    return (
        good
        if where is None
        else el.and_(*[linear.broadcast_in_dim(*fit(v, shape_of(x))) for v in (good, mask(where))])
    )


def nanmean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """The mean ignoring NaN.

    Args:
        a: array of numbers or booleans, any shape.
        axis: int, tuple of ints, or None for all: the axes to reduce.
        dtype: dtype of the result; None for that of the argument.
        out: None, since arrays are immutable.
        keepdims: bool: the reduced axes stay, with size 1.
        where: array of booleans that broadcasts to a: which elements count; None for all.

    Returns:
        array of floats or complex numbers, the shape of a without the axes.

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.nanmean(jnp.array([jnp.nan, 5., 3.])))
        4.0
    """
    x = operand("nanmean", a)
    if not dtypes.is_inexact(get_aval(x).dtype):
        return mean(x, axis, dtype, out, keepdims, where=where)
    return mean(x, axis, dtype, out, keepdims, where=_not_nan(x, where))


def nanvar(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The variance ignoring NaN.

    Args:
        a: array of numbers or booleans, any shape.
        axis: int, tuple of ints, or None for all: the axes to reduce.
        dtype: dtype of the result; None for that of the argument.
        out: None, since arrays are immutable.
        ddof: int, subtracted from the number of elements in the divisor.
        keepdims: bool: the reduced axes stay, with size 1.
        where: array of booleans that broadcasts to a: which elements count; None for all.
        mean: array of floats, a mean that is known, with the reduced axes of size 1; None to compute it.

    Returns:
        array of floats, the shape of a without the axes.

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.nanvar(jnp.array([jnp.nan, 5., 3.])))
        1.0
    """
    x = operand("nanvar", a)
    return var(
        x,
        axis,
        dtype,
        out,
        ddof,
        keepdims,
        where=_not_nan(x, where) if dtypes.is_inexact(get_aval(x).dtype) else where,
        mean=mean,
    )


def nanstd(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The standard deviation ignoring NaN.

    Args:
        a: array of numbers or booleans, any shape.
        axis: int, tuple of ints, or None for all: the axes to reduce.
        dtype: dtype of the result; None for that of the argument.
        out: None, since arrays are immutable.
        ddof: int, subtracted from the number of elements in the divisor.
        keepdims: bool: the reduced axes stay, with size 1.
        where: array of booleans that broadcasts to a: which elements count; None for all.
        mean: array of floats, a mean that is known, with the reduced axes of size 1; None to compute it.

    Returns:
        array of floats, the shape of a without the axes.

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.nanstd(jnp.array([jnp.nan, 5., 3.])))
        1.0
    """
    return transcendental.sqrt(nanvar(a, axis, dtype, out, ddof, keepdims, where, mean))
