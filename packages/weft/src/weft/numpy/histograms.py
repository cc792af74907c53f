"""Histograms in two and more dimensions."""

from __future__ import annotations

import math
from typing import Any, Sequence

from ..primitives.rules import shape_of
from ..typing import Array, ArrayLike
from . import comparisons, reductions, ufuncs
from .creation import asarray
from .grids import ix_
from .selecting import ravel_multi_index, where
from .shapes import concatenate
from .sorting import searchsorted
from .statistics import bincount, diff, histogram_bin_edges
from .util import operand, promote_inexact

__all__ = ["histogram2d", "histogramdd"]


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
        bins: a number or edges for both axes, or one of them for each.
        range: (lowest, highest) of each axis, or None for an axis whose points say it.
        weights: how much each point counts. density: divide by the total and by the area.

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
        bins: a number for all axes, or a number or edges for each.
        range: (lowest, highest) of each axis, or None for an axis whose points say it.
        weights: how much each point counts. density: divide by the total and by the volume.

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
        # the last box has its upper edge
        places.append(where(comparisons.equal(x, e[-1]), ufuncs.subtract(place, 1), place))
    shape = tuple(shape_of(e)[0] + 1 for e in edges)
    counts = bincount(ravel_multi_index(tuple(places), shape, mode="clip"), weights, length=math.prod(shape)).reshape(
        shape
    )
    counts = counts[(slice(1, -1),) * rank]  # without what lies outside of the edges
    if density:
        counts = ufuncs.divide(counts, reductions.sum(counts))
        for width in ix_(*[diff(e) for e in edges]):
            counts = ufuncs.divide(counts, width)
    return counts, edges
