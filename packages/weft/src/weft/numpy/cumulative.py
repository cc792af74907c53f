"""Running sums and products of `weft.numpy`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable

from ..base import dtypes
from ..core.primitive import Primitive
from ..base.dtypes import ElementType
from ..runtime.jit import inner_jit
from ..core.trace import get_aval
from ..primitives import linear
from ..primitives import reduce as ops
from ..primitives.rules import dtype_of, shape_of
from ..primitives.shape import concatenate
from ..typing import Array, ArrayLike, DTypeLike
from .util import (
    accumulator,
    asked_dtype,
    canonical_axis,
    no_out,
    operand,
    to_bool,
)

if TYPE_CHECKING:
    pass


__all__ = ["cumprod", "cumsum", "cumulative_prod", "cumulative_sum"]


def running(primitive: Primitive, x: Any, axis: int, dt: ElementType) -> Array:
    """Running results along an axis, in a dtype."""
    return primitive.bind(linear.convert(x, dt), axis=axis, reverse=False)


@inner_jit(name="cumsum", static_argnums=(1, 2))
def _cumsum(x: Any, axis: int, dt: ElementType) -> Array:
    return running(ops.cumsum_p, x, axis, dt)


@inner_jit(name="cumprod", static_argnums=(1, 2))
def _cumprod(x: Any, axis: int, dt: ElementType) -> Array:
    return running(ops.cumprod_p, x, axis, dt)


def cumulative(
    name: str,
    run: Callable[[Any, int, ElementType], Array],
    a: ArrayLike,
    axis: int | None,
    dtype: DTypeLike | None,
    out: None,
) -> Array:
    """`run` for the axis and dtype that a user gave."""
    no_out(name, out)
    x = operand(name, a)
    dt = asked_dtype(name, dtype)
    if dt is None:
        dt = get_aval(x).dtype if not dtypes.is_bool(get_aval(x).dtype) else dtypes.canonicalize(int)
    if axis is None:
        x, axis = linear.reshape(x, (math.prod(shape_of(x)),)), 0
    if dtypes.is_bool(dt):  # whether the sums (or products) of so many truths are none
        return to_bool(name, run(to_bool(name, x), canonical_axis(axis, len(shape_of(x))), dtypes.int32))
    return run(x, canonical_axis(axis, len(shape_of(x))), dt)


def cumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """The running sum along `axis` (None: of the flattened array).

    Args:
        a: array of numbers or booleans, any shape.
        axis: int, the axis; None for the flattened array.
        dtype: dtype of the result; None for that of the argument.
        out: None, since arrays are immutable.

    Returns:
        array of the shape of a, or (n,) of the flattened one; booleans and narrow integers are widened.

    Example:
        >>> import weft.numpy as jnp
        >>> y = jnp.cumsum(jnp.array([1, 2, 3]))
    """
    return cumulative("cumsum", _cumsum, a, axis, dtype, out)


def cumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """The running product along `axis` (None: of the flattened array).

    Args:
        a: array of numbers or booleans, any shape.
        axis: int, the axis; None for the flattened array.
        dtype: dtype of the result; None for that of the argument.
        out: None, since arrays are immutable.

    Returns:
        array of the shape of a, or (n,) of the flattened one; booleans and narrow integers are widened.

    Example:
        >>> import weft.numpy as jnp
        >>> y = jnp.cumprod(jnp.array([1, 2, 3]))
    """
    return cumulative("cumprod", _cumprod, a, axis, dtype, out)


def _with_initial(
    name: str,
    base: Callable[..., Array],
    identity: int,
    x: ArrayLike,
    axis: int | None,
    dtype: DTypeLike | None,
    include_initial: bool,
) -> Array:
    x = operand(name, x)
    rank = len(shape_of(x))
    if rank == 0:
        raise ValueError(f"{name} takes arrays of rank 1 or more, got a scalar.")
    if axis is None:
        if rank != 1:
            raise ValueError(f"{name} needs an axis for an array of rank {rank}.")
        axis = 0
    axis = canonical_axis(axis, rank)
    out = base(x, axis, dtype)
    if not include_initial:
        return out
    shape = tuple(1 if d == axis else n for d, n in enumerate(shape_of(out)))
    return concatenate([linear.full(shape, identity, dtype_of(out)), out], axis)


def cumulative_sum(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """`cumsum` with the array API's signature; `include_initial` puts the identity in front.

    Args:
        x: array of numbers or booleans, any shape.
        axis: int, the axis; None for that of a vector.
        dtype: dtype of the result; None for that of the argument.
        include_initial: bool.

    Returns:
        array of numbers, the shape of x, with one element more along the axis if the identity comes first.

    Raises:
        ValueError: without an axis, for an x of rank 2 and more.

    Example:
        >>> import weft.numpy as jnp
        >>> y = jnp.cumulative_sum(jnp.array([1, 2]), include_initial=True)
    """
    if dtype is None:  # the standard requires it of the product too, but JAX does not do it
        dtype = accumulator(dtype_of(operand("cumulative_sum", x)))
    return _with_initial("cumulative_sum", cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """`cumprod` with the array API's signature; `include_initial` puts the identity in front.

    Args:
        x: array of numbers or booleans, any shape.
        axis: int, the axis; None for that of a vector.
        dtype: dtype of the result; None for that of the argument.
        include_initial: bool.

    Returns:
        array of numbers, the shape of x, with one element more along the axis if the identity comes first.

    Raises:
        ValueError: without an axis, for an x of rank 2 and more.

    Example:
        >>> import weft.numpy as jnp
        >>> y = jnp.cumulative_prod(jnp.array([1, 2]), include_initial=True)
    """
    return _with_initial("cumulative_prod", cumprod, 1, x, axis, dtype, include_initial)
