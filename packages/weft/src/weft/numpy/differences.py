"""Differences, gradients, interpolation and integration of sampled functions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..base import dtypes, promotion
from ..runtime.jit import inner_jit
from ..core.trace import get_aval
from ..primitives import elementwise as el
from ..primitives import linear
from ..primitives import shape as ops
from ..primitives.reduce import cumsum_p
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..primitives.sort import sort_p
from ..typing import Array, ArrayLike, Axis
from .creation import asarray
from .shapes import moveaxis, ravel, take_rows
from .joining import concatenate
from .sorting import searchsorted
from .ufuncs import where_jit
from .util import (
    in_own_terms,
    broadcast_to,
    canonical_axes,
    canonical_axis,
    float_dtype,
    no_complex,
    on_device,
    operand,
    promote,
    promote_inexact,
    static_int,
    strong,
)

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = ["diff", "ediff1d", "gradient", "interp", "trapezoid", "unwrap"]


def diff(
    a: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None, append: ArrayLike | None = None
) -> Array:
    """The differences of neighbours along an axis, `n` times.

    Args:
        a: array of numbers or booleans, any shape.
        n: int, how many times.
        axis: int, the axis; negative ones count from the end.
        prepend: array or number that stands before a along the axis; None for nothing.
        append: array or number that stands behind a along the axis; None for nothing.

    Returns:
        array of the dtype of a (of booleans, for booleans); along the axis it is shorter by n.

    Raises:
        ValueError: for a negative n, and for a scalar.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.diff(jnp.array([1, 4, 9]))
        Array([3, 5], dtype=int32)
    """
    x = on_device(operand("diff", a))
    n = static_int("n", n)
    if n == 0:
        return x
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}.")
    if not shape_of(x):
        raise ValueError("diff requires input that is at least one dimensional.")
    axis = canonical_axis(axis, len(shape_of(x)))
    parts = [x]
    lift = lambda v: (
        broadcast_to(v, tuple(1 if d == axis else m for d, m in enumerate(shape_of(x)))) if not shape_of(v) else v
    )
    parts = (
        ([lift(operand("diff", prepend))] if prepend is not None else [])
        + parts
        + ([lift(operand("diff", append))] if append is not None else [])
    )
    x = concatenate(parts, axis)
    for _ in range(n):
        shape = shape_of(x)
        cut = lambda lo, hi: ops.slice_(
            x,
            tuple(lo if d == axis else 0 for d in range(len(shape))),
            tuple(max(lo, m + hi) if d == axis else m for d, m in enumerate(shape)),
        )
        if shape[axis] == 0:
            return x
        x = (el.ne if dtypes.is_bool(dtype_of(x)) else el.sub)(cut(1, 0), cut(0, -1))
    return x


def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Array:
    """The differences of neighbours of the flattened array.

    Args:
        ary: array of numbers, any shape.
        to_end: array of the dtype of ary that follows the differences; None for nothing.
        to_begin: array of the dtype of ary that precedes the differences; None for nothing.

    Returns:
        array of the dtype of ary, shape (n,).

    Raises:
        TypeError: `ary` is boolean.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.ediff1d(jnp.array([1, 4, 9]))
        Array([3, 5], dtype=int32)
    """
    x = ravel(ary)
    if dtypes.is_bool(dtype_of(x)):
        raise TypeError(f"ediff1d takes numbers, got {get_aval(x)}; use diff, or convert it with astype.")
    x = diff(x)
    parts = (
        ([ravel(linear.convert(asarray(to_begin), dtype_of(x)))] if to_begin is not None else [])
        + [x]
        + ([ravel(linear.convert(asarray(to_end), dtype_of(x)))] if to_end is not None else [])
    )
    return concatenate(parts)


def _gradient_at(x: Value, places: Any, d: int, at: Value) -> Value:
    """Derivatives along an axis whose points have coordinates: the differences on both sides, weighted so that they are
    exact for parabolas.
    """
    n = shape_of(x)[d]
    if shape_of(places) != (n,):
        raise ValueError(f"gradient: coordinates must have the length {n} of axis {d}, got shape {shape_of(places)}.")
    gaps = linear.broadcast_in_dim(
        el.sub(places[1:], places[:-1]), tuple(n - 1 if e == d else m for e, m in enumerate(shape_of(x))), (d,)
    )
    slopes = el.div(el.sub(at(x, 1, n), at(x, 0, n - 1)), gaps)
    before, after = at(gaps, 0, n - 2), at(gaps, 1, n - 1)
    middle = el.div(
        el.add(el.mul(at(slopes, 0, n - 2), after), el.mul(at(slopes, 1, n - 1), before)), el.add(before, after)
    )
    parts = [at(slopes, 0, 1), middle, at(slopes, n - 2, n - 1)]
    return ops.concatenate(parts if n > 2 else [parts[0], parts[2]], d)


def gradient(
    f: ArrayLike, *varargs: ArrayLike, axis: Axis = None, edge_order: int | None = None
) -> Array | list[Array]:
    """Central differences along axes, one-sided at the ends; spacings are numbers, or the coordinates along an axis.

    Args:
        f: array of numbers, any shape; at least two elements along each axis.
        *varargs: one spacing for all axes, or one for each: a number, or the vector of coordinates.
        axis: int, tuple of ints, or None for all: the axes.
        edge_order: must be None; differences at the ends have order 1.

    Returns:
        array of floats or complex numbers of the shape of f, or a list of them, one for each axis.

    Raises:
        NotImplementedError: `edge_order` is given.
        TypeError: there is neither one spacing nor one for each axis.
        ValueError: an axis has fewer than two elements.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.gradient(jnp.array([1., 4., 9.]))
        Array([3., 4., 5.], dtype=float32)
    """
    if edge_order is not None:
        raise NotImplementedError("gradient: edge_order is not supported.")
    x, *given = promote_inexact("gradient", f, *varargs)
    x = on_device(x)
    axes = canonical_axes(axis, len(shape_of(x)))
    spacings = given or [1.0]
    if len(spacings) == 1:
        spacings = spacings * len(axes)
    if len(spacings) != len(axes):
        raise TypeError(f"gradient: {len(varargs)} spacings for {len(axes)} axes.")
    out = []
    for d, h in zip(axes, spacings):
        n = shape_of(x)[d]
        if n < 2:
            raise ValueError(f"gradient needs at least 2 elements along axis {d}, got {n}.")
        at = lambda v, lo, hi: ops.slice_(
            v,
            tuple(lo if e == d else 0 for e in range(len(shape_of(v)))),
            tuple(hi if e == d else m for e, m in enumerate(shape_of(v))),
        )
        if shape_of(h):
            out.append(_gradient_at(x, on_device(h), d, at))
            continue
        h = linear.convert(h, dtype_of(x), get_aval(x).weak_type)
        middle = el.div(el.mul(el.sub(at(x, 2, n), at(x, 0, n - 2)), scalar_like(x, 0.5)), h)
        first, last = (
            el.div(el.sub(at(x, 1, 2), at(x, 0, 1)), h),
            el.div(el.sub(at(x, n - 1, n), at(x, n - 2, n - 1)), h),
        )
        out.append(ops.concatenate([first, middle, last] if n > 2 else [first, last], d))
    return out[0] if len(out) == 1 else out


@inner_jit(name="interp", static_argnames=("period", "extend"))
def _interp(x: Value, xp: Value, fp: Value, left: Value, right: Value, *, period: Value, extend: Value) -> Value:
    if period is not None:
        wrap = lambda v: el.sub(v, el.mul(el.floor(el.div(v, scalar_like(v, period))), scalar_like(v, period)))
        x, xp = wrap(x), wrap(xp)
        xp, fp = sort_p.bind(xp, fp, dimension=0, is_stable=True, num_keys=1)
        n = shape_of(xp)[0]
        xp = ops.concatenate(
            [el.sub(xp[n - 1 :], scalar_like(xp, period)), xp, el.add(xp[:1], scalar_like(xp, period))], 0
        )
        fp = ops.concatenate([fp[n - 1 :], fp, fp[:1]], 0)
    n = shape_of(xp)[0]
    i = el.clamp(
        scalar_like(ops.iota(dtypes.int32, (1,), 0), 1),
        searchsorted(xp, x, "right"),
        scalar_like(ops.iota(dtypes.int32, (1,), 0), max(n - 1, 1)),
    )
    i = el.min_(i, scalar_like(i, n - 1))
    before = el.max_(el.sub(i, scalar_like(i, 1)), scalar_like(i, 0))
    pick = lambda v, k: take_rows(v, k, 0)
    df, dx, delta = (
        el.sub(pick(fp, i), pick(fp, before)),
        el.sub(pick(xp, i), pick(xp, before)),
        el.sub(x, pick(xp, before)),
    )
    none = el.eq(dx, scalar_like(dx, 0))
    safe = el.select_n_p.bind(none, dx, linear.full(shape_of(dx), 1, dtype_of(dx), get_aval(dx).weak_type))
    share, df, start = promote("interp", el.div(delta, safe), df, pick(fp, before))
    out = el.select_n_p.bind(none, el.add(start, el.mul(share, df)), start)
    if period is None:
        if "left" not in extend:
            out = where_jit(el.lt(x, xp[0]), fp[0] if left is None else left, out)
        if "right" not in extend:
            out = where_jit(el.gt(x, xp[n - 1]), fp[n - 1] if right is None else right, out)
    return out


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | str | None = None,
    right: ArrayLike | str | None = None,
    period: float | None = None,
) -> Array:
    """Linear interpolation through the points (xp, fp), xp increasing; `left` and `right` stand outside of them, or
    'extrapolate' the outermost pieces.

    Args:
        x: array of real numbers, any shape: where to interpolate.
        xp: vector of real numbers, ascending, or arrays of shape (..., n).
        fp: vector of numbers of the size of xp.
        left: number below the first point, 'extrapolate', or None for fp[0].
        right: number above the last point, 'extrapolate', or None for fp[-1].
        period: number, the period of xp, or None.

    Returns:
        array of the dtype of fp as float or complex number, and the shape of x.

    Raises:
        ValueError: for arrays of other ranks, and for period 0.

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.interp(0.5, jnp.array([0., 1.]), jnp.array([2., 4.])))
        3.0
    """
    x, xp = [on_device(v) for v in promote_inexact("interp", x, xp)]
    (fp,) = promote_inexact("interp", fp)
    no_complex("interp", x, xp)
    if len(shape_of(xp)) != 1 or shape_of(xp) != shape_of(fp):
        raise ValueError(f"interp: xp and fp must be vectors of one size, got {shape_of(xp)} and {shape_of(fp)}.")
    if period == 0:
        raise ValueError("interp: period must not be 0.")
    extend = tuple(side for side, value in (("left", left), ("right", right)) if isinstance(value, str))
    if any(value != "extrapolate" for value in (left, right) if isinstance(value, str)):
        raise ValueError(
            f"interp: the only text that left and right take is 'extrapolate', got {left!r} and {right!r}."
        )
    left, right = [None if isinstance(value, str) else value for value in (left, right)]
    return _interp(
        x, xp, on_device(fp), left, right, period=None if period is None else abs(float(period)), extend=extend
    )


def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """The integral along an axis by the trapezoidal rule.

    Args:
        y: array of numbers, any shape.
        x: array of real numbers, the coordinates along the axis; None for distances `dx`.
        dx: number, the distance of neighbours.
        axis: int, the axis; negative ones count from the end.

    Returns:
        array of floats or complex numbers, the shape of y without the axis.

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.trapezoid(jnp.array([1., 2., 3.])))
        4.0
    """
    if x is None:
        y, dx = promote_inexact("trapezoid", *promote_inexact("trapezoid", y), dx)
        y = moveaxis(strong(y), axis, -1)
        step = dx
    else:
        y, x = promote_inexact("trapezoid", y, x)
        y = moveaxis(strong(y), axis, -1)
        step = diff(x) if len(shape_of(x)) == 1 else moveaxis(diff(x, axis=axis), axis, -1)
    n = shape_of(y)[-1]
    both = el.add(y[..., 1:], y[..., : n - 1])
    step = broadcast_to(step, shape_of(both))
    return linear.reduce_sum(el.mul(el.mul(both, step), scalar_like(both, 0.5)), (len(shape_of(both)) - 1,))


@in_own_terms
def unwrap(p: ArrayLike, discont: float | None = None, axis: int = -1, period: float = 2 * math.pi) -> Array:
    """Angles without jumps of more than half a period along an axis.

    Args:
        p: array of real numbers, any shape.
        discont: number, the smallest jump that is taken out; None for half a period.
        axis: int, the axis; negative ones count from the end.
        period: number, the period.

    Returns:
        array of floats, the shape of p.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.unwrap(jnp.array([0., 4., 8.]), period=4.).tolist()
        [0.0, 0.0, 0.0]
    """
    (x,) = promote_inexact("unwrap", p)
    no_complex("unwrap", x)
    # integers with an integer period stay integers
    given = promotion.promote((get_aval(p).dtype, False), (get_aval(period).dtype, True))[0]
    x = linear.convert(on_device(x), given if dtypes.is_inexact(given) else float_dtype())
    axis = canonical_axis(axis, len(shape_of(x)))
    if shape_of(x)[axis] == 0:
        return linear.convert(x, given)
    half = period / 2 if dtypes.is_inexact(given) else period // 2
    d = diff(x, axis=axis)
    shifted = el.add(d, scalar_like(d, half))
    wrapped = el.sub(
        el.sub(shifted, el.mul(el.floor(el.div(shifted, scalar_like(d, period))), scalar_like(d, period))),
        scalar_like(d, half),
    )
    wrapped = el.select_n_p.bind(
        el.and_(el.eq(wrapped, scalar_like(d, -half)), el.gt(d, scalar_like(d, 0))),
        wrapped,
        linear.full(shape_of(d), half, dtype_of(d)),
    )
    correction = el.sub(wrapped, d)
    limit = max(half, half if discont is None else discont)
    correction = el.select_n_p.bind(
        el.lt(el.abs_(d), scalar_like(d, limit)), correction, linear.full(shape_of(d), 0, dtype_of(d))
    )
    total = cumsum_p.bind(correction, axis=axis, reverse=False)
    first = ops.slice_(x, (0,) * len(shape_of(x)), tuple(1 if e == axis else m for e, m in enumerate(shape_of(x))))
    rest = ops.slice_(x, tuple(1 if e == axis else 0 for e in range(len(shape_of(x)))), shape_of(x))
    return linear.convert(ops.concatenate([first, el.add(rest, total)], axis), given)
