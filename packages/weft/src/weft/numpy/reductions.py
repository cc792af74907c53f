"""Reductions of `weft.numpy`: sum, max, mean, var, cumsum, argmax, … and those that ignore NaN."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable, Literal, overload

from ..base.annotations import alias
from ..base import dtypes
from ..base.avals import Size
from ..base.dtypes import ElementType
from ..runtime.jit import inner_jit
from ..core.trace import get_aval
from ..base.errors import type_error
from ..lax.collectives import axis_size, pmax, pmin, psum
from ..primitives import elementwise as el, transcendental
from ..primitives import linear
from ..primitives import reduce as ops
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..typing import Array, ArrayLike, Axis, DTypeLike
from .ufuncs import where_jit
from .util import (
    accumulator,
    asked_dtype,
    canonical_axes,
    canonical_axis,
    index_dtype,
    inexact_dtype,
    no_out,
    on_device,
    operand,
    promote_inexact,
    size_along,
    split_names,
    strong,
    to_bool,
)

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "average",
    "count_nonzero",
    "max",
    "mean",
    "min",
    "prod",
    "ptp",
    "std",
    "sum",
    "var",
]


def _keep(x: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    return linear.expand_dims(x, axes) if keepdims and axes else x


def mask(where: ArrayLike) -> Any:
    """The mask of the elements that count, checked to be boolean."""
    where = operand("where", where)
    if not dtypes.is_bool(get_aval(where).dtype):
        raise ValueError(
            f"where must be None or booleans, got {get_aval(where)}; compare, or convert it with astype(bool)."
        )
    return where


def _initial(name: str, initial: Value, dt: ElementType) -> Value:
    initial = operand(name, initial)
    if shape_of(initial):
        raise ValueError(f"{name}: initial must be a scalar, got {get_aval(initial)}.")
    return linear.convert(initial, dt)


def _masked(x: Value, where: Value, identity: Value) -> Value:
    """`x` with `identity` where the mask is false."""
    if where is None:
        return x
    return where_jit(mask(where), x, scalar_like(x, identity))


def _accumulated(
    name: str,
    op: Callable[..., Array],
    identity: int,
    join: Callable[..., Array],
    across: Callable[..., Any] | None,
    a: ArrayLike,
    axis: Axis,
    dtype: DTypeLike | None,
    out: None,
    keepdims: bool,
    initial: ArrayLike | None,
    where: ArrayLike | None,
    promote_integers: bool,
) -> Array:
    """A sum or a product."""
    no_out(name, out)
    x = operand(name, a)
    aval = get_aval(x)
    axis, names = split_names(axis)
    if names and across is None:
        raise NotImplementedError(
            f"{name} is not computed over named axes ({', '.join(names)}); gather them first, with weft.lax.all_gather."
        )
    axes = canonical_axes(axis, len(aval.shape))
    dt = asked_dtype(name, dtype)
    if dt is None:
        dt = accumulator(aval.dtype) if promote_integers or dtypes.is_bool(aval.dtype) else aval.dtype
    x = linear.convert(
        (
            _masked(x, where, identity)
            if not dtypes.is_bool(aval.dtype) or where is None
            else _masked(linear.convert(x, dt), where, identity)
        ),
        dt,
    )
    narrow = dtypes.is_float(dt) and dtypes.bits(dt) < 32
    found = op(linear.convert(x, dtypes.float32) if narrow else x, axes) if axes else x
    found = across(found, names) if across is not None and names else found
    found = linear.convert(found, dt) if narrow else found
    if initial is not None:
        found = join(found, _initial(name, initial, dt))
    return on_device(_keep(found, axes, keepdims))


def sum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """The sum over `axis` (None: all axes, an int, or a tuple of ints); `keepdims` keeps reduced axes with size 1.

    Only elements where `where` is true count. Booleans and integers are added up as the widest integers that are on (32
    bits, or 64).

    Args:
        a: array of numbers or booleans, any shape.
        axis: int, tuple of ints, or None for all: the axes to reduce.
        dtype: dtype of the result; None for that of the argument.
        out: None, since arrays are immutable.
        keepdims: bool: the reduced axes stay, with size 1.
        initial: number to start from; None for the identity of the operation.
        where: array of booleans that broadcasts to a: which elements count; None for all.
        promote_integers: bool: add up narrow integers as the widest ones that are on.

    Returns:
        array of the dtype of a and its shape without the axes.

    Raises:
        ValueError: for an axis out of bounds.

    Example:
        >>> import weft.numpy as jnp
        >>> y = jnp.sum(jnp.array([[3, 1], [2, 5]]), axis=0)
    """
    return _accumulated(
        "sum", linear.reduce_sum, 0, el.add, psum, a, axis, dtype, out, keepdims, initial, where, promote_integers
    )


def prod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """The product over `axis` (None: all axes, an int, or a tuple of ints); `keepdims` keeps reduced axes with size 1.

    Only elements where `where` is true count. Booleans and integers are added up as the widest integers that are on (32
    bits, or 64).

    Args:
        a: array of numbers or booleans, any shape.
        axis: int, tuple of ints, or None for all: the axes to reduce.
        dtype: dtype of the result; None for that of the argument.
        out: None, since arrays are immutable.
        keepdims: bool: the reduced axes stay, with size 1.
        initial: number to start from; None for the identity of the operation.
        where: array of booleans that broadcasts to a: which elements count; None for all.
        promote_integers: bool: add up narrow integers as the widest ones that are on.

    Returns:
        array of the dtype of a and its shape without the axes.

    Raises:
        ValueError: for an axis out of bounds.

    Example:
        >>> import weft.numpy as jnp
        >>> y = jnp.prod(jnp.array([[3, 1], [2, 5]]), axis=0)
    """
    return _accumulated(
        "prod", ops.reduce_prod, 1, el.mul, None, a, axis, dtype, out, keepdims, initial, where, promote_integers
    )


def _extremum(
    name: str,
    op: Callable[..., Array],
    highest: bool,
    join: Callable[..., Array],
    across: Callable[..., Any],
    a: ArrayLike,
    axis: Axis,
    out: None,
    keepdims: bool,
    initial: ArrayLike | None,
    where: ArrayLike | None,
) -> Array:
    no_out(name, out)
    x = operand(name, a)
    aval = get_aval(x)
    axis, names = split_names(axis)
    axes = canonical_axes(axis, len(aval.shape))
    if where is not None and initial is None:
        raise ValueError(f"{name} with a mask needs `initial`, the value where the mask leaves nothing.")
    if initial is None and size_along(aval.shape, axes) == 0:
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity.")
    x = _masked(x, where, ops._limit(aval.dtype, highest))
    found = linear.convert(op(x, axes) if axes else x, aval.dtype)
    found = across(found, names) if names else found
    if initial is not None:
        found = join(found, _initial(name, initial, aval.dtype))
    return on_device(_keep(found, axes, keepdims))


def max(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The maximum over `axis` (None: all axes, an int, or a tuple of ints); `keepdims` keeps reduced axes with size 1.

    Only elements where `where` is true count. An empty array needs `initial`.

    Args:
        a: array of numbers or booleans, any shape.
        axis: int, tuple of ints, or None for all: the axes to reduce.
        out: None, since arrays are immutable.
        keepdims: bool: the reduced axes stay, with size 1.
        initial: number to start from; None for the identity of the operation.
        where: array of booleans that broadcasts to a: which elements count; None for all.

    Returns:
        array of the dtype of a and its shape without the axes.

    Raises:
        ValueError: for an axis out of bounds.

    Example:
        >>> import weft.numpy as jnp
        >>> y = jnp.max(jnp.array([[3, 1], [2, 5]]), axis=0)
    """
    return _extremum("max", ops.reduce_max, False, el.max_, pmax, a, axis, out, keepdims, initial, where)


def min(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The minimum over `axis` (None: all axes, an int, or a tuple of ints); `keepdims` keeps reduced axes with size 1.

    Only elements where `where` is true count. An empty array needs `initial`.

    Args:
        a: array of numbers or booleans, any shape.
        axis: int, tuple of ints, or None for all: the axes to reduce.
        out: None, since arrays are immutable.
        keepdims: bool: the reduced axes stay, with size 1.
        initial: number to start from; None for the identity of the operation.
        where: array of booleans that broadcasts to a: which elements count; None for all.

    Returns:
        array of the dtype of a and its shape without the axes.

    Raises:
        ValueError: for an axis out of bounds.

    Example:
        >>> import weft.numpy as jnp
        >>> y = jnp.min(jnp.array([[3, 1], [2, 5]]), axis=0)
    """
    return _extremum("min", ops.reduce_min, True, el.min_, pmin, a, axis, out, keepdims, initial, where)


amax = alias(max, "amax")
amin = alias(min, "amin")


def _truth(
    name: str,
    op: Callable[..., Array],
    identity: bool,
    a: ArrayLike,
    axis: Axis,
    out: None,
    keepdims: bool,
    where: ArrayLike | None,
) -> Array:
    no_out(name, out)
    x = to_bool(name, a)
    axes = canonical_axes(axis, len(shape_of(x)))
    x = _masked(x, where, identity)
    return on_device(strong(_keep(op(x, axes) if axes else x, axes, keepdims)))


def all(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
) -> Array:
    """Whether all elements are true (not zero) over `axis` (None: all axes, an int, or a tuple of ints); `keepdims`
    keeps reduced axes with size 1.

    Only elements where `where` is true count.

    Args:
        a: array of numbers or booleans, any shape.
        axis: int, tuple of ints, or None for all: the axes to reduce.
        out: None, since arrays are immutable.
        keepdims: bool: the reduced axes stay, with size 1.
        where: array of booleans that broadcasts to a: which elements count; None for all.

    Returns:
        array of booleans, the shape of a without the axes.

    Raises:
        ValueError: for an axis out of bounds.

    Example:
        >>> import weft.numpy as jnp
        >>> y = jnp.all(jnp.array([[3, 1], [2, 5]]), axis=0)
    """
    return _truth("all", ops.reduce_and, True, a, axis, out, keepdims, where)


def any(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
) -> Array:
    """Whether some element is true (not zero) over `axis` (None: all axes, an int, or a tuple of ints); `keepdims`
    keeps reduced axes with size 1.

    Only elements where `where` is true count.

    Args:
        a: array of numbers or booleans, any shape.
        axis: int, tuple of ints, or None for all: the axes to reduce.
        out: None, since arrays are immutable.
        keepdims: bool: the reduced axes stay, with size 1.
        where: array of booleans that broadcasts to a: which elements count; None for all.

    Returns:
        array of booleans, the shape of a without the axes.

    Raises:
        ValueError: for an axis out of bounds.

    Example:
        >>> import weft.numpy as jnp
        >>> y = jnp.any(jnp.array([[3, 1], [2, 5]]), axis=0)
    """
    return _truth("any", ops.reduce_or, False, a, axis, out, keepdims, where)


def _count(shape: tuple[Size, ...], axes: Any, where: Value, dt: ElementType, names: tuple[Any, ...] = ()) -> Value:
    """How many elements the mask selects; None without a mask."""
    if where is None:
        return None
    return _across(
        linear.reduce_sum(linear.broadcast_in_dim(*fit(linear.convert(mask(where), dt), shape)), axes), names
    )


def _across(x: Value, names: tuple[Any, ...]) -> Value:
    """The sum over named axes."""
    return psum(x, names) if names else x


def _size(shape: tuple[Size, ...], axes: tuple[int, ...], names: tuple[Any, ...]) -> Size:
    return size_along(shape, axes) * (axis_size(names) if names else 1)


def fit(x: Any, shape: tuple[Size, ...]) -> tuple[Any, tuple[Size, ...], tuple[int, ...]]:
    """The arguments of a broadcast_in_dim that gives `x` leading axes up to a shape."""
    mine = shape_of(x)
    return x, shape, tuple(range(len(shape) - len(mine), len(shape)))


def mean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """The mean over `axis`; integers give floats.

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
        >>> jnp.mean(jnp.array([[1, 3], [2, 6]]), axis=1)
        Array([2., 4.], dtype=float32)
    """
    no_out("mean", out)
    x = operand("mean", a)
    aval = get_aval(x)
    dt = asked_dtype("mean", dtype)
    if dt is None:
        dt = inexact_dtype(aval.dtype)
    computed = dtypes.float32 if dtypes.is_float(dt) and dtypes.bits(dt) < 32 else dt
    axis, names = split_names(axis)
    axes = canonical_axes(axis, len(aval.shape))
    x = linear.convert(x, computed)
    count = _count(aval.shape, axes, where, computed, names)
    total = _keep(_across(linear.reduce_sum(_masked(x, where, 0), axes), names), axes, keepdims)
    n = _size(aval.shape, axes, names)
    out_ = el.div(total, scalar_like(total, n) if count is None else _keep(count, axes, keepdims))
    return on_device(linear.convert(out_, dt))


@overload
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: Literal[False] = False,
    keepdims: bool = False,
) -> Array: ...
@overload
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    *,
    returned: Literal[True],
    keepdims: bool = False,
) -> tuple[Array, Array]: ...
def average(
    a: ArrayLike, axis: Axis = None, weights: ArrayLike | None = None, returned: bool = False, keepdims: bool = False
) -> Array | tuple[Array, Array]:
    """The mean, weighted by `weights` (of the shape of `a`, or of its axis).

    Args:
        a: array of numbers or booleans, any shape.
        axis: int, tuple of ints, or None for all: the axes to reduce.
        weights: array of real numbers that broadcasts to a: how much each element counts; None for all alike.
        returned: bool: return the sum of the weights too.
        keepdims: bool: the reduced axes stay, with size 1.

    Returns:
        array of floats or complex numbers, the shape of a without the axes; with `returned` a pair.

    Raises:
        ValueError: for weights of another shape.

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.average(jnp.array([1., 3.]), weights=jnp.array([3., 1.])))
        1.5
    """
    if weights is None:
        out = mean(a, axis, keepdims=keepdims)
        n = size_along(shape_of(a), canonical_axes(axis, len(shape_of(a))))
        return (out, linear.full(shape_of(out), n, dtype_of(out))) if returned else out
    x, w = promote_inexact("average", a, weights)
    if shape_of(w) != shape_of(x):
        if axis is None or isinstance(axis, (tuple, list)) or len(shape_of(w)) != 1:
            raise ValueError(
                f"average: weights of shape {shape_of(w)} need an axis, or the shape {shape_of(x)} of the array."
            )
        d = canonical_axis(axis, len(shape_of(x)))
        if shape_of(x)[d] != shape_of(w)[0]:
            raise ValueError(f"average: {shape_of(w)[0]} weights for an axis of size {shape_of(x)[d]}.")
        w = linear.broadcast_in_dim(w, shape_of(x), (d,))
    total = sum(w, axis, keepdims=keepdims)
    out = el.div(sum(el.mul(x, w), axis, keepdims=keepdims), total)
    return (out, total) if returned else out


@inner_jit(name="_var", static_argnames=("axes", "dtype", "keepdims", "names"))
def _var(
    x: Value,
    ddof: Any,
    where: Value = None,
    center: Value = None,
    *,
    axes: tuple[int, ...],
    dtype: ElementType,
    keepdims: bool,
    names: tuple[Any, ...] = (),
) -> Value:
    aval = get_aval(x)
    computed = dtypes.float32 if dtypes.is_float(dtype) and dtypes.bits(dtype) < 32 else dtype
    if not (dtypes.is_complex(aval.dtype) and not dtypes.is_complex(computed)):
        x = linear.convert(x, computed)
    center = (
        mean(x, (*axes, *names), keepdims=True, where=where) if center is None else linear.convert(center, dtype_of(x))
    )
    centered = el.sub(x, center)
    squares = (
        el.real(el.mul(centered, el.conj(centered))) if dtypes.is_complex(dtype_of(centered)) else el.square(centered)
    )
    real = dtype_of(squares)
    count = _count(aval.shape, axes, where, real, names)
    ddof = linear.convert(ddof, real)
    n = linear.convert(_size(aval.shape, axes, names), real) if count is None else count
    norm = el.sub(n, ddof)
    out = el.div(_across(linear.reduce_sum(_masked(squares, where, 0), axes), names), norm)
    out = where_jit(el.gt(norm, scalar_like(norm, 0)), out, math.nan)
    return linear.convert(_keep(out, axes, keepdims), dtypes.real_of(dtype) if dtypes.is_complex(dtype) else dtype)


def _var_arguments(
    name: str, a: Value, axis: Any, dtype: ElementType, ddof: Any, correction: int | float | None
) -> tuple[Any, Any, Any, Any, Any]:
    x = operand(name, a)
    aval = get_aval(x)
    dt = asked_dtype(name, dtype)
    if dt is None:
        dt = inexact_dtype(aval.dtype)
    elif not dtypes.is_inexact(dt):
        raise ValueError(f"{name}: dtype must be a float or complex one, got {dtypes.name(dt)}.")
    elif dtypes.is_complex(aval.dtype) and not dtypes.is_complex(dt):
        raise ValueError(
            f"{name} of complex numbers is not computed in {dtypes.name(dt)}; take it of their real and imaginary"
            " parts."
        )
    if correction is not None:
        if not isinstance(ddof, int) or ddof:
            raise ValueError(f"{name}: give ddof or correction, not both.")
        ddof = correction
    axis, names = split_names(axis)
    return x, canonical_axes(axis, len(aval.shape)), names, dt, ddof


def _center(name: str, mean: Value) -> Value:
    """A mean that is known already, with the reduced axes of size 1."""
    return None if mean is None else operand(name, mean)


def var(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array:
    """The variance over `axis`: the mean of |x - mean|², divided by n - ddof. A `mean` that is known has the reduced
    axes with size 1.

    Args:
        a: array of numbers or booleans, any shape.
        axis: int, tuple of ints, or None for all: the axes to reduce.
        dtype: dtype of the result; None for that of the argument.
        out: None, since arrays are immutable.
        ddof: int, subtracted from the number of elements in the divisor.
        keepdims: bool: the reduced axes stay, with size 1.
        where: array of booleans that broadcasts to a: which elements count; None for all.
        mean: array of floats, a mean that is known, with the reduced axes of size 1; None to compute it.
        correction: number, in place of ddof; None for ddof.

    Returns:
        array of floats, the shape of a without the axes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.var(jnp.array([1., 3.]))
        Array(1., dtype=float32)
    """
    no_out("var", out)
    x, axes, names, dt, ddof = _var_arguments("var", a, axis, dtype, ddof, correction)
    out_ = _var(x, ddof, where, _center("var", mean), axes=axes, dtype=dt, keepdims=bool(keepdims), names=names)
    return out_ if dtype is None else linear.convert(out_, dt)


@inner_jit(name="_std", static_argnames=("axes", "dtype", "keepdims", "names"))
def _std(
    x: Value,
    ddof: Any,
    where: Value = None,
    center: Value = None,
    *,
    axes: tuple[int, ...],
    dtype: ElementType,
    keepdims: bool,
    names: tuple[Any, ...] = (),
) -> Value:
    return transcendental.sqrt(_var(x, ddof, where, center, axes=axes, dtype=dtype, keepdims=keepdims, names=names))


def std(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array:
    """The standard deviation over `axis`: the square root of `var`.

    Args:
        a: array of numbers or booleans, any shape.
        axis: int, tuple of ints, or None for all: the axes to reduce.
        dtype: dtype of the result; None for that of the argument.
        out: None, since arrays are immutable.
        ddof: int, subtracted from the number of elements in the divisor.
        keepdims: bool: the reduced axes stay, with size 1.
        where: array of booleans that broadcasts to a: which elements count; None for all.
        mean: array of floats, a mean that is known, with the reduced axes of size 1; None to compute it.
        correction: number, in place of ddof; None for ddof.

    Returns:
        array of floats, the shape of a without the axes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.std(jnp.array([1., 3.]))
        Array(1., dtype=float32)
    """
    no_out("std", out)
    x, axes, names, dt, ddof = _var_arguments("std", a, axis, dtype, ddof, correction)
    out_ = _std(x, ddof, where, _center("std", mean), axes=axes, dtype=dt, keepdims=bool(keepdims), names=names)
    return out_ if dtype is None else linear.convert(out_, dt)


def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """Maximum minus minimum over `axis`.

    Args:
        a: array of numbers or booleans, any shape.
        axis: int, tuple of ints, or None for all: the axes to reduce.
        out: None, since arrays are immutable.
        keepdims: bool: the reduced axes stay, with size 1.

    Returns:
        array of the dtype of a and its shape without the axes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.ptp(jnp.array([1, 5, 3]))
        Array(4, dtype=int32)
    """
    no_out("ptp", out)
    return el.sub(max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))


def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """How many elements are not zero.

    Args:
        a: array of numbers or booleans, any shape.
        axis: int, tuple of ints, or None for all: the axes to reduce.
        keepdims: bool: the reduced axes stay, with size 1.

    Returns:
        array of integers, the shape of a without the axes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.count_nonzero(jnp.array([1, 0, 3]))
        Array(2, dtype=int32)
    """
    return sum(to_bool("count_nonzero", a), axis, dtype=index_dtype(), keepdims=keepdims)


def _arg(
    name: str, op: Callable[..., Array], a: ArrayLike, axis: int | None, out: None, keepdims: bool | None
) -> Array:
    no_out(name, out)
    x = operand(name, a)
    aval = get_aval(x)
    axis = None if axis is None else canonical_axis(axis, len(aval.shape))
    if (aval.size if axis is None else aval.shape[axis]) == 0:
        raise ValueError(f"attempt to get {name} of an empty sequence.")
    if dtypes.is_complex(aval.dtype):
        raise type_error(
            f"{name} does not take complex numbers, got {aval}; use it of their real parts, imaginary parts, or"
            " absolute values."
        )
    if axis is None:
        found = op(linear.reshape(x, (math.prod(aval.shape),)), 0, index_dtype())
        return linear.reshape(found, (1,) * len(aval.shape)) if keepdims else found
    found = op(x, axis, index_dtype())
    return linear.expand_dims(found, (axis,)) if keepdims else found


def argmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The index of the first maximum (NaN counts as one) along `axis` (None: in the flattened array).

    Args:
        a: array of numbers or booleans, any shape.
        axis: int, the axis; None for the flattened array.
        out: None, since arrays are immutable.
        keepdims: bool: the reduced axes stay, with size 1.

    Returns:
        array of integers, the shape of a without the axis.

    Raises:
        ValueError: for an empty array.

    Example:
        >>> import weft.numpy as jnp
        >>> y = jnp.argmax(jnp.array([1., 5., 3.]))
    """
    return _arg("argmax", ops.argmax, a, axis, out, keepdims)


def argmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The index of the first minimum (NaN counts as one) along `axis` (None: in the flattened array).

    Args:
        a: array of numbers or booleans, any shape.
        axis: int, the axis; None for the flattened array.
        out: None, since arrays are immutable.
        keepdims: bool: the reduced axes stay, with size 1.

    Returns:
        array of integers, the shape of a without the axis.

    Raises:
        ValueError: for an empty array.

    Example:
        >>> import weft.numpy as jnp
        >>> y = jnp.argmin(jnp.array([1., 5., 3.]))
    """
    return _arg("argmin", ops.argmin, a, axis, out, keepdims)
