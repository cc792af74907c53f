"""Counts of values, and histograms in one, two and more dimensions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Sequence

from ..base import dtypes
from ..core.trace import Tracer, get_aval
from ..base.errors import ConcretizationTypeError
from ..primitives import elementwise as el
from ..primitives import linear
from ..primitives.gather import ScatterDimensionNumbers
from ..primitives.scatter import scatter_add
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..transforms.stage import concretization_error
from ..typing import Array, ArrayLike, OutSharding
from . import comparisons, reductions, ufuncs
from .creation import asarray
from .differences import diff
from .grids import ix_
from .ranges import linspace
from .selecting import ravel_multi_index, where
from .shapes import ravel
from .joining import concatenate
from .sorting import searchsorted
from .util import broadcast_to, flat_host, index_dtype, laid_out, on_device, operand, promote_inexact, static_int

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = ["bincount", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]


def _count_into(positions: Value, weights: Value, length: int) -> Value:
    """Sums of `weights` by position; positions out of bounds are dropped."""
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    return scatter_add(
        linear.full((length,), 0, dtype_of(weights)), linear.expand_dims(positions, (1,)), weights, numbers
    )


def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """How often each of 0, 1, 2, … appears (or the sum of its weights). Under jit `length` fixes the size of the
    result.

    Args:
        x: array of integers that are not negative, shape (n,).
        weights: array of numbers, shape (n,); None for ones.
        minlength: int, the least size of the result.
        length: int, the size of the result; larger numbers are left out.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of integers, or of the dtype of the weights, shape (length,).

    Raises:
        ConcretizationTypeError: for a traced array without `length`.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.bincount(jnp.array([1, 1, 3]))
        Array([0, 2, 0, 1], dtype=int32)
    """
    x = on_device(operand("bincount", x))
    if dtypes.is_inexact(get_aval(x).dtype):
        raise TypeError(f"bincount takes integers, got {get_aval(x)}.")
    if len(shape_of(x)) != 1:
        raise ValueError(f"bincount takes a vector, got shape {shape_of(x)}.")
    x = linear.convert(x, dtypes.int32) if dtypes.is_bool(dtype_of(x)) else x
    if length is None:
        if isinstance(x, Tracer):
            raise ConcretizationTypeError(
                concretization_error(
                    x,
                    "bincount needs the values, because the number of results depends on them; "
                    "give it length=… to use it under jit",
                )
            )
        length = max(max(flat_host(x), default=-1) + 1, static_int("minlength", minlength))
    weights = linear.full(shape_of(x), 1, index_dtype()) if weights is None else on_device(operand("bincount", weights))
    if shape_of(weights) != shape_of(x):
        raise ValueError(
            f"bincount: weights of shape {shape_of(weights)} must have the shape {shape_of(x)} of the positions."
        )
    if dtypes.is_bool(dtype_of(weights)):
        raise TypeError(
            f"bincount adds up the weights, which can't be booleans, got {get_aval(weights)}; convert them with astype."
        )
    zero = scalar_like(x, 0)
    return laid_out(
        "bincount", lambda: _count_into(el.max_(x, zero), weights, static_int("length", length)), out_sharding
    )


def histogram_bin_edges(
    a: ArrayLike, bins: ArrayLike = 10, range: Sequence[ArrayLike] | None = None, weights: ArrayLike | None = None
) -> Array:
    """The edges of evenly spaced bins over the range of `a` (or a given one).

    Args:
        a: array of numbers or booleans, any shape.
        bins: int, how many bins; or the vector of their edges, ascending.
        range: (lowest, highest); None for those of a.
        weights: array of real numbers that broadcasts to a: how much each element counts; None for all alike.

    Returns:
        array of floats, shape (bins + 1,).

    Raises:
        TypeError: `bins` is the name of a method, which would look at values.
        ValueError: the array is empty, and `range` is not given.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.histogram_bin_edges(jnp.array([0., 4.]), 2).tolist()
        [0.0, 2.0, 4.0]
    """
    if isinstance(bins, str):
        raise TypeError(
            f"histogram: bins must be a number or edges, got {bins!r}: named methods look at values, which programs"
            " don't have while they are traced."
        )
    (x,) = promote_inexact("histogram_bin_edges", a)
    if not isinstance(bins, int) and shape_of(operand("histogram", bins)):
        return linear.convert(asarray(bins), dtype_of(x))
    n = static_int("bins", bins)
    x = ravel(x)
    if range is None:
        if not shape_of(x)[0]:
            raise ValueError("histogram: an empty array has no range; say which with range=(low, high).")
        lo, hi = x.min(), x.max()
    else:
        lo, hi = [linear.convert(operand("histogram", v), dtype_of(x)) for v in range]
        lo, hi = on_device(lo), on_device(hi)
    flat = el.eq(lo, hi)
    half = scalar_like(lo, 0.5)
    lo, hi = el.select_n_p.bind(flat, lo, el.sub(lo, half)), el.select_n_p.bind(flat, hi, el.add(hi, half))
    return linspace(lo, hi, n + 1, dtype=dtype_of(x))


def histogram(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: Sequence[ArrayLike] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array]:
    """(counts, edges) of values in bins; the last bin includes its upper edge.

    Args:
        a: array of numbers or booleans, any shape.
        bins: int, how many bins; or the vector of their edges, ascending.
        range: (lowest, highest); None for those of a.
        weights: array of real numbers that broadcasts to a: how much each element counts; None for all alike.
        density: bool: divide the counts by their sum and the size of the bins.

    Returns:
        (counts, edges): floats of shape (bins,) and (bins + 1,).

    Raises:
        ValueError: the weights do not have the shape of the array.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.histogram(jnp.array([0., 1., 4.]), 2)[0].tolist()
        [2.0, 1.0]
    """
    x = ravel(operand("histogram", a))
    if weights is not None and shape_of(operand("histogram", weights)) != shape_of(a):
        raise ValueError(
            f"histogram: weights of shape {shape_of(weights)} must have the shape {shape_of(a)} of the array."
        )
    edges = histogram_bin_edges(x, bins, range, weights)
    x, *given = promote_inexact("histogram", x, *([] if weights is None else [weights]))
    n = shape_of(edges)[0] - 1
    w = ravel(given[0]) if given else linear.full(shape_of(x), 1, dtype_of(x))
    position = searchsorted(edges, x, "right")
    last = edges[n]
    position = el.select_n_p.bind(
        el.eq(x, broadcast_to(last, shape_of(x))), position, linear.full(shape_of(x), n, dtypes.int32)
    )
    inside = el.and_(el.ge(position, scalar_like(position, 1)), el.le(position, scalar_like(position, n)))
    position = el.select_n_p.bind(
        inside, linear.full(shape_of(x), n, dtypes.int32), el.sub(position, scalar_like(position, 1))
    )
    counts = _count_into(position, w, n)
    if density:
        widths = diff(edges)
        counts = linear.convert(counts, dtype_of(widths))
        counts = el.div(el.div(counts, widths), linear.reduce_sum(counts, (0,)))
    return counts, edges


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: ArrayLike | Sequence[ArrayLike] = 10,
    range: Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """(counts, edges along x, edges along y) of points in rectangles.

    Args:
        x, y: array of real numbers, shape (n,).
        bins: a number or edges for both axes, or one of them for each.
        range: (lowest, highest) of each axis, or None for an axis whose points say it.
        weights: array of real numbers, shape (n,): how much each point counts; None for all alike.
        density: bool: divide the counts by their sum and the size of the bins.

    Returns:
        (counts, edges along x, edges along y): numbers of shape (nx, ny); floats of shape (nx + 1,) and (ny + 1,).

    Raises:
        ValueError: `x` or `y` does not have one axis.
        TypeError: `x` and `y` have different sizes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.histogram2d(jnp.array([0., 1., 1.]), jnp.array([0., 0., 1.]), bins=2)[0].tolist()
        [[1, 0], [1, 1]]
    """
    x, y = operand("histogram2d", x), operand("histogram2d", y)
    each: Any = bins
    if len(shape_of(x)) != 1 or len(shape_of(y)) != 1:
        raise ValueError(f"histogram2d takes vectors, got shapes {shape_of(x)} and {shape_of(y)}.")
    if shape_of(x) != shape_of(y):
        raise TypeError(f"histogram2d: x and y must have one size, got {shape_of(x)[0]} and {shape_of(y)[0]}.")
    if hasattr(each, "__len__") and len(each) not in (1, 2):
        each = [asarray(each)] * 2
    points = concatenate([v[:, None] for v in promote_inexact("histogram2d", x, y)], 1)
    counts, (first, second) = histogramdd(points, each, range, weights, density)
    return counts, first, second


def histogramdd(
    sample: ArrayLike,
    bins: ArrayLike | Sequence[ArrayLike] = 10,
    range: Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """(counts, list of edges along each axis) of points in boxes; `sample` has a point in each row.

    Args:
        sample: array of real numbers, shape (n, d): a point in each row.
        bins: a number for all axes, or a number or edges for each.
        range: (lowest, highest) of each axis, or None for an axis whose points say it.
        weights: array of real numbers, shape (n,): how much each point counts; None for all alike.
        density: bool: divide the counts by their sum and the size of the bins.

    Returns:
        (counts, edges): numbers with an axis for each of the d dimensions, and a list of d vectors of floats.

    Raises:
        ValueError: for another rank, and for bins, ranges or weights that do not fit it.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.histogramdd(jnp.array([[0., 0.], [1., 1.]]), bins=2)[0].tolist()
        [[1, 0], [0, 1]]
    """
    (points,) = promote_inexact("histogramdd", sample)
    if weights is not None:
        points, weights = promote_inexact("histogramdd", points, weights)
    if len(shape_of(points)) != 2:
        raise ValueError(f"histogramdd takes a matrix with one point in each row, got shape {shape_of(points)}.")
    n, rank = shape_of(points)
    if weights is not None and shape_of(weights) != (n,):
        raise ValueError(
            f"histogramdd: there should be one weight for each sample, got shape {shape_of(weights)} for {n} samples."
        )
    if range is not None and (len(range) != rank or any(r is not None and shape_of(asarray(r)) != (2,) for r in range)):
        raise ValueError(f"histogramdd: range must hold a pair or None for each of {rank} axes, got {range}.")
    each: Any = bins
    if hasattr(each, "__len__") and getattr(each, "shape", None) != ():
        if len(each) != rank:
            raise ValueError(f"histogramdd: there should be bins for each dimension, got {len(each)} for {rank}.")
    else:
        each = [each] * rank
    columns = [points[:, d] for d, _ in enumerate(each)]
    edges = [
        histogram_bin_edges(x, b, None if range is None else range[d], weights)
        for d, (x, b) in enumerate(zip(columns, each))
    ]
    places = []
    for x, e in zip(columns, edges):
        place = searchsorted(e, x, "right")
        # the last bin includes its upper edge
        places.append(where(comparisons.equal(x, e[-1]), ufuncs.subtract(place, 1), place))
    shape = tuple(shape_of(e)[0] + 1 for e in edges)
    boxes = ravel_multi_index(tuple(places), shape, mode="clip")
    counts = bincount(boxes, weights, length=math.prod(shape)).reshape(shape)
    counts = counts[(slice(1, -1),) * rank]  # drops the bins outside of the edges
    if density:
        counts = ufuncs.divide(counts, reductions.sum(counts))
        for width in ix_(*[diff(e) for e in edges]):
            counts = ufuncs.divide(counts, width)
    return counts, edges
