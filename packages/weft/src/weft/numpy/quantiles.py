"""Order statistics: quantiles, percentiles and medians."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..base import dtypes
from ..runtime.jit import inner_jit
from ..core.trace import get_aval
from ..primitives import elementwise as el
from ..primitives import linear
from ..primitives import shape as ops
from ..primitives.reduce import cumsum_p, reduce_or
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..primitives.sort import sort_p
from ..typing import Array, ArrayLike, OutSharding
from .shapes import take_rows
from .ufuncs import where_jit
from .util import canonical_axes, laid_out, no_complex, on_device, operand, promote_inexact

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]
_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


@inner_jit(name="quantile", static_argnums=(2, 3, 4, 5))
def _quantile(
    x: Value, q: Value, axes: Any, method: str, keepdims: bool, ignore_nan: Value, weights: Value = None
) -> Value:
    shape = shape_of(x)
    kept = [d for d in range(len(shape)) if d not in axes]
    n = math.prod(shape[d] for d in axes)
    as_rows = lambda v: linear.reshape(linear.transpose(v, (*kept, *axes)), (*[shape[d] for d in kept], n))
    rows = as_rows(x)
    last = len(kept)
    nan = el.ne(rows, rows)
    if not ignore_nan:
        bad = linear.broadcast_in_dim(reduce_or(nan, (last,)), shape_of(rows), tuple(range(last)))
        rows = where_jit(bad, scalar_like(rows, math.nan), rows)
    weights = linear.full(shape_of(rows), 1, dtype_of(q)) if weights is None else as_rows(weights)
    weights = where_jit(nan, scalar_like(weights, 0), weights) if ignore_nan else weights
    rows, weights = (
        sort_p.bind(rows, weights, dimension=last, is_stable=True, num_keys=1)
        if method == "inverted_cdf"
        else (*sort_p.bind(rows, dimension=last, is_stable=True, num_keys=1), None)
    )
    q_shape = shape_of(q)
    if ignore_nan:
        counts = linear.reduce_sum(linear.convert(el.not_(nan), dtype_of(q)), (last,))
    else:
        counts = linear.full(shape_of(rows)[:-1], n, dtype_of(q))
    top = el.sub(counts, scalar_like(counts, 1))
    lead = shape_of(counts)
    both = (*q_shape, *lead)
    spread = lambda v, front: linear.broadcast_in_dim(
        v, both, tuple(range(len(q_shape))) if front else tuple(range(len(q_shape), len(both)))
    )
    position = el.mul(spread(q, True), spread(top, False))
    low, high = el.floor(position), el.ceil(position)
    weight = el.sub(position, low)
    limit = spread(el.max_(top, scalar_like(top, 0)), False)
    clip = lambda v: linear.convert(el.clamp(scalar_like(v, 0), v, limit), dtypes.int32)

    def pick(index: Value) -> Value:
        """rows[..., index] for every quantile."""
        cells = math.prod(lead)
        flat = linear.reshape(rows, (cells * n,))
        base = el.mul(ops.iota(dtypes.int32, (cells,), 0), linear.full((cells,), n, dtypes.int32))
        offset = linear.broadcast_in_dim(linear.reshape(base, lead), both, tuple(range(len(q_shape), len(both))))
        return take_rows(flat, linear.reshape(el.add(index, offset), (math.prod(both),)), 0)

    if method == "inverted_cdf":  # the first element at which the cumulative weight reaches q
        total = linear.reduce_sum(weights, (last,))
        share = el.div(cumsum_p.bind(weights, axis=last, reverse=False), linear.expand_dims(total, (last,)))
        wide = (*both, n)
        below = el.lt(
            linear.broadcast_in_dim(share, wide, tuple(range(len(q_shape), len(wide)))),
            linear.broadcast_in_dim(q, wide, tuple(range(len(q_shape)))),
        )
        index = linear.reduce_sum(linear.convert(below, dtypes.int32), (len(both),))
        a = b = linear.reshape(pick(el.min_(index, scalar_like(index, n - 1))), both)
        no_weight = el.not_(el.gt(total, scalar_like(total, 0)))
        a = el.select_n_p.bind(spread(no_weight, False), a, linear.full(both, math.nan, dtype_of(a)))
    else:
        a, b = [linear.reshape(pick(clip(v)), both) for v in (low, high)]
    if method == "linear":
        weight = linear.convert(weight, dtype_of(a))
        out = el.add(el.mul(a, el.sub(scalar_like(weight, 1), weight)), el.mul(b, weight))
        out = el.select_n_p.bind(el.and_(el.eq(a, b), el.eq(weight, weight)), out, a)
    elif method == "midpoint":
        out = el.mul(el.add(a, b), scalar_like(a, 0.5))
    elif method == "nearest":
        out = el.select_n_p.bind(el.le(weight, scalar_like(weight, 0.5)), b, a)
    else:
        out = b if method == "higher" else a
    if ignore_nan:
        none = spread(el.lt(top, scalar_like(top, 0)), False)
        out = el.select_n_p.bind(none, out, linear.full(both, math.nan, dtype_of(out)))
    return linear.expand_dims(out, tuple(len(q_shape) + d for d in axes)) if keepdims and axes else out


def _quantile_of(
    name: str,
    a: Value,
    q: Value,
    axis: Any,
    out: Value,
    overwrite_input: bool,
    method: str,
    keepdims: bool,
    ignore_nan: bool,
    weights: Value,
) -> Value:
    if out is not None or overwrite_input:
        raise ValueError(
            f"{name}: arrays are immutable, so out must be None and overwrite_input False; use the result."
        )
    if weights is not None and method in _METHODS and method != "inverted_cdf":
        raise NotImplementedError(f"{name}: only method='inverted_cdf' takes weights, got {method!r}.")
    if method not in _METHODS:
        raise ValueError(f"{name}: method must be one of {', '.join(_METHODS)}, got {method!r}.")
    (x,) = promote_inexact(name, a)
    if dtypes.is_complex(dtype_of(x)):
        raise ValueError(f"{name} does not take complex numbers, got {get_aval(x)}.")
    dt = dtype_of(x)
    x, q = promote_inexact(name, x, q)
    if len(shape_of(q)) > 1:
        raise ValueError(
            f"{name}: q must be a number or a vector, got shape {shape_of(q)}; flatten it, and reshape the result."
        )
    x = on_device(x)
    axes, shape = canonical_axes(axis, len(shape_of(x))), shape_of(x)
    if 0 in [shape[d] for d in axes]:
        raise (IndexError if ignore_nan else TypeError)(
            f"{name} needs at least one element along the axes {axes} of shape {shape}."
        )
    if 0 in shape:
        rest = tuple(1 if d in axes else n for d, n in enumerate(shape) if keepdims or d not in axes)
        return linear.full((*shape_of(q), *rest), math.nan, dt)
    if weights is not None:
        weights = on_device(linear.convert(operand(name, weights), dtype_of(x)))
        if shape_of(weights) != shape:
            if axis is None or shape_of(weights) != tuple(shape[d] for d in axes):
                raise ValueError(
                    f"{name}: weights of shape {shape_of(weights)} must have the shape {shape} of the array, or that of"
                    f" the axes over which it is reduced, {tuple(shape[d] for d in axes)}."
                )
            weights = linear.broadcast_in_dim(weights, shape, axes)
    return linear.convert(_quantile(x, on_device(q), axes, method, bool(keepdims), ignore_nan, weights), dt)


def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The q-quantiles (0 ≤ q ≤ 1) over `axis`; axes of q come first in the result. NaN if there is one.

    Between two elements `method` decides: linear, lower, higher, midpoint, nearest or inverted_cdf, which alone takes
    `weights`.

    Args:
        a: array of real numbers, any shape.
        q: array of floats from 0 to 1, of rank at most 1.
        axis: int, tuple of ints, or None for all: the axes to reduce.
        out: None, since arrays are immutable.
        overwrite_input: bool, without effect.
        method: 'linear', 'lower', 'higher', 'midpoint' or 'nearest': what lies between two elements.
        keepdims: bool: the reduced axes stay, with size 1.
        weights: array of real numbers that broadcasts to a: how much each element counts; None for all alike.

    Returns:
        array of floats: the shape of q, then that of a without the axes.

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.quantile(jnp.array([1., 2., 4.]), 0.5))
        2.0
    """
    return _quantile_of("quantile", a, q, axis, out, overwrite_input, method, keepdims, False, weights)


def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """`quantile` ignoring NaN.

    Args:
        a: array of real numbers, any shape.
        q: array of floats from 0 to 1, of rank at most 1.
        axis: int, tuple of ints, or None for all: the axes to reduce.
        out: None, since arrays are immutable.
        overwrite_input: bool, without effect.
        method: 'linear', 'lower', 'higher', 'midpoint' or 'nearest': what lies between two elements.
        keepdims: bool: the reduced axes stay, with size 1.
        weights: array of real numbers that broadcasts to a: how much each element counts; None for all alike.

    Returns:
        array of floats: the shape of q, then that of a without the axes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.nanquantile(jnp.array([jnp.nan, 1., 3.]), .5)
        Array(2., dtype=float32)
    """
    return _quantile_of("nanquantile", a, q, axis, out, overwrite_input, method, keepdims, True, weights)


def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """`quantile` with q from 0 to 100.

    Args:
        a: array of real numbers, any shape.
        q: array of real numbers from 0 to 100, of rank at most 1.
        axis: int, tuple of ints, or None for all: the axes to reduce.
        out: None, since arrays are immutable.
        overwrite_input: bool, without effect.
        method: 'linear', 'lower', 'higher', 'midpoint' or 'nearest': what lies between two elements.
        keepdims: bool: the reduced axes stay, with size 1.
        weights: array of real numbers that broadcasts to a: how much each element counts; None for all alike.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of floats: the shape of q, then that of a without the axes.

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.percentile(jnp.array([1., 2., 4.]), 50))
        2.0
    """
    (q,) = promote_inexact("percentile", q)
    return laid_out(
        "percentile",
        lambda: quantile(
            a, el.div(q, scalar_like(q, 100)), axis, out, overwrite_input, method, keepdims, weights=weights
        ),
        out_sharding,
    )


def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """`percentile` ignoring NaN.

    Args:
        a: array of real numbers, any shape.
        q: array of real numbers from 0 to 100, of rank at most 1.
        axis: int, tuple of ints, or None for all: the axes to reduce.
        out: None, since arrays are immutable.
        overwrite_input: bool, without effect.
        method: 'linear', 'lower', 'higher', 'midpoint' or 'nearest': what lies between two elements.
        keepdims: bool: the reduced axes stay, with size 1.
        weights: array of real numbers that broadcasts to a: how much each element counts; None for all alike.

    Returns:
        array of floats: the shape of q, then that of a without the axes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.nanpercentile(jnp.array([jnp.nan, 1., 3.]), 50)
        Array(2., dtype=float32)
    """
    (q,) = promote_inexact("nanpercentile", q)
    return nanquantile(a, el.div(q, scalar_like(q, 100)), axis, out, overwrite_input, method, keepdims, weights=weights)


@inner_jit(name="median", static_argnums=(1, 2))
def _median(x: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    return _quantile(linear.convert(x, dtype_of(x)), scalar_like(x, 0.5), axes, "midpoint", keepdims, False)


def median(
    a: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """The median over `axis`; NaN if there is one.

    Args:
        a: array of real numbers, any shape.
        axis: int, tuple of ints, or None for all: the axes to reduce.
        out: None, since arrays are immutable.
        overwrite_input: bool, without effect.
        keepdims: bool: the reduced axes stay, with size 1.

    Returns:
        array of floats, the shape of a without the axes.

    Raises:
        ValueError: `out` or `overwrite_input` is given, since arrays are immutable.

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.median(jnp.array([1., 4., 2.])))
        2.0
    """
    if out is not None or overwrite_input:
        raise ValueError("median: arrays are immutable, so out must be None and overwrite_input False; use the result.")
    (x,) = promote_inexact("median", a)
    no_complex("median", x)
    axes, shape = canonical_axes(axis, len(shape_of(x))), shape_of(x)
    if 0 in shape:
        return _quantile_of("median", x, 0.5, axis, None, False, "midpoint", keepdims, False, None)
    return _median(x, axes, bool(keepdims))


def nanmedian(
    a: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """The median ignoring NaN.

    Args:
        a: array of real numbers, any shape.
        axis: int, tuple of ints, or None for all: the axes to reduce.
        out: None, since arrays are immutable.
        overwrite_input: bool, without effect.
        keepdims: bool: the reduced axes stay, with size 1.

    Returns:
        array of floats, the shape of a without the axes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.nanmedian(jnp.array([jnp.nan, 1., 3.]))
        Array(2., dtype=float32)
    """
    return nanquantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)
