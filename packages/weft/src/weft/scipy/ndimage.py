"""weft.scipy.ndimage: interpolates images between their pixels."""

from __future__ import annotations

import functools
import itertools
import operator
from typing import Any, Sequence

from ..base import dtypes
from .. import numpy as jnp
from ..numpy.util import operand
from ..base.source_info import api_boundary
from ..typing import Array

__all__ = ["map_coordinates"]


def _mirror(index, size: int):
    """Reflected at the centres of the first and last element: d c b | a b c d | c b a."""
    last = size - 1
    return jnp.abs((index + last) % (2 * last) - last) if last else jnp.zeros_like(index)


_FIX = {
    "constant": lambda index, size: index,
    "nearest": lambda index, size: jnp.clip(index, 0, size - 1),
    "wrap": lambda index, size: index % size,
    "mirror": _mirror,
    # at the edges: b a | a b c d | d c
    "reflect": lambda index, size: (_mirror(2 * index + 1, 2 * size + 1) - 1) // 2,
}


def _rounded(x):
    """To the nearest whole number, halves away from zero."""
    return x if not dtypes.is_inexact(x.dtype) else jnp.sign(x) * jnp.floor(jnp.abs(x) + 0.5)


def _places(coordinate, order: int) -> list:
    """(index, weight) of the elements that contribute to each coordinate."""
    if order == 0:
        return [(_rounded(coordinate).astype(jnp.int32), 1)]
    lower = jnp.floor(coordinate)
    part = coordinate - lower
    lower = lower.astype(jnp.int32)
    return [(lower, 1 - part), (lower + 1, part)]


@api_boundary
def map_coordinates(input, coordinates: Sequence, order: int, mode: str = "constant", cval: Any = 0.0):
    """Interpolates an array at given coordinates, linearly or by the nearest element.

    Args:
        input: an array of rank n and any real or complex dtype.
        coordinates: n arrays of real numbers, of one shape or of shapes that broadcast: positions along each axis,
            counted in elements.
        order: 0 takes the nearest element, 1 interpolates.
        mode: what lies outside: 'constant' (`cval`), 'nearest', 'wrap', 'mirror' or 'reflect'.
        cval: the value outside where the mode is 'constant'.

    Returns:
        The values, of the coordinates' shape and the input's dtype; integers are rounded.

    Raises:
        ValueError: if the number of coordinates is not that of the axes.
        NotImplementedError: for an unknown mode, and for orders above 1.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import ndimage
        >>> ndimage.map_coordinates(jnp.array([0., 10., 20.]), [jnp.array([0.5, 1.25])], order=1)
        Array([ 5. , 12.5], dtype=float32)
    """
    image = jnp.asarray(operand("map_coordinates", input))
    coordinates = [jnp.asarray(c) for c in coordinates]
    if len(coordinates) != image.ndim:
        raise ValueError(
            f"map_coordinates: coordinates must be a sequence of as many arrays as input has dimensions, {image.ndim},"
            f" got {len(coordinates)}."
        )
    if mode not in _FIX:
        raise NotImplementedError(f"map_coordinates: mode {mode!r} is not one of {', '.join(map(repr, sorted(_FIX)))}.")
    if order not in (0, 1):
        raise NotImplementedError(f"map_coordinates: order must be 0 (nearest) or 1 (linear), got {order}.")
    if any(not dtypes.is_int(c.dtype) and not dtypes.is_float(c.dtype) for c in coordinates):
        raise TypeError(
            f"map_coordinates: coordinates must be real, got {', '.join(dtypes.name(c.dtype) for c in coordinates)}."
        )
    try:
        jnp.broadcast_shapes(*[c.shape for c in coordinates])
    except ValueError as e:
        raise TypeError(f"map_coordinates: coordinates must have one shape: {e}") from None
    cval = jnp.asarray(cval, image.dtype)
    corners = [
        [(index, (index >= 0) & (index < n), _FIX[mode](index, n), weight) for index, weight in _places(c, order)]
        for c, n in zip(coordinates, image.shape)
    ]
    total: Array | int = 0
    for corner in itertools.product(*corners):
        _, inside, index, weights = zip(*corner)
        value = image[index]
        if mode == "constant":
            value = jnp.where(functools.reduce(operator.and_, inside), value, cval)
        total = total + functools.reduce(operator.mul, weights) * value
    found = jnp.asarray(total)
    return (found if dtypes.is_inexact(image.dtype) else _rounded(found)).astype(image.dtype)


def __dir__() -> list[str]:
    return sorted(__all__)
