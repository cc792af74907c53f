"""Arrays cut into several along an axis."""

from __future__ import annotations

from typing import Sequence

from ..primitives.rules import shape_of
from ..typing import Array, ArrayLike
from .shapes import _array
from .shapes import _part
from .util import canonical_axis, flat_host, operand, static_int

__all__ = ["array_split", "dsplit", "hsplit", "split", "vsplit"]


def array_split(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0) -> list[Array]:
    """Parts of an array along an axis, of nearly equal size or between indices.

    Args:
        ary: array of any dtype, any shape.
        indices_or_sections: int, how many parts; or the positions at which parts begin, concrete.
        axis: int, the axis; negative ones count from the end.

    Returns:
        list of arrays of the dtype of ary.

    Raises:
        ValueError: there are no sections, or the places to split at do not count upwards from 0 to the size of the
            axis.

    Example:
        >>> import weft.numpy as jnp
        >>> [p.shape for p in jnp.array_split(jnp.arange(5), 2)]
        [(3,), (2,)]
    """
    x = _array("array_split", ary)
    axis = canonical_axis(axis, len(shape_of(x)))
    n = shape_of(x)[axis]
    if isinstance(indices_or_sections, (list, tuple)) or getattr(indices_or_sections, "ndim", 0) > 0:
        given = (
            indices_or_sections if isinstance(indices_or_sections, (list, tuple)) else flat_host(indices_or_sections)
        )
        edges = [0, *[static_int("split index", v) for v in given], n]
        if any(lo > hi for lo, hi in zip(edges, edges[1:])):
            raise ValueError(
                f"split: places must count upwards from 0 to {n}, the size of axis {axis}, got {edges[1:-1]}; take"
                " x[lo:hi] for other parts."
            )
    else:
        parts = static_int("sections", indices_or_sections)
        if parts <= 0:
            raise ValueError(f"number of sections must be larger than 0, got {parts}.")
        edges = [i * (n // parts) + min(i, n % parts) for i in range(parts + 1)]
    return [_part(x, axis, lo, hi) for lo, hi in zip(edges, edges[1:])]


def split(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0) -> list[Array]:
    """Parts of an array along an axis, of equal size or between indices.

    Args:
        ary: array of any dtype, any shape.
        indices_or_sections: int, how many parts; or the positions at which parts begin, concrete.
        axis: int, the axis; negative ones count from the end.

    Returns:
        list of arrays of the dtype of ary.

    Raises:
        ValueError: if the size is not divisible.

    Example:
        >>> import weft.numpy as jnp
        >>> [p.shape for p in jnp.split(jnp.arange(4), 2)]
        [(2,), (2,)]
    """
    x = operand("split", ary)
    if not (isinstance(indices_or_sections, (list, tuple)) or getattr(indices_or_sections, "ndim", 0) > 0):
        n, parts = shape_of(x)[canonical_axis(axis, len(shape_of(x)))], static_int("sections", indices_or_sections)
        if parts <= 0 or n % parts:
            raise ValueError(
                f"array split does not result in an equal division: rest is {n % parts if parts > 0 else n}."
            )
    return array_split(x, indices_or_sections, axis)


def hsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """`split` along the second axis (the first of vectors).

    Args:
        ary: array of any dtype, any shape.
        indices_or_sections: int, how many parts; or the positions at which parts begin, concrete.

    Returns:
        list of arrays of the dtype of ary.

    Raises:
        ValueError: if the size is not divisible.

    Example:
        >>> import weft.numpy as jnp
        >>> [x.tolist() for x in jnp.hsplit(jnp.arange(4), 2)]
        [[0, 1], [2, 3]]
    """
    return split(ary, indices_or_sections, 0 if len(shape_of(operand("hsplit", ary))) == 1 else 1)


def vsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """`split` along the first axis.

    Args:
        ary: array of any dtype, of rank at least 1.
        indices_or_sections: int, how many parts; or the positions at which parts begin, concrete.

    Returns:
        list of arrays of the dtype of ary.

    Raises:
        ValueError: if the size is not divisible.

    Example:
        >>> import weft.numpy as jnp
        >>> [x.shape for x in jnp.vsplit(jnp.ones((4, 2)), 2)]
        [(2, 2), (2, 2)]
    """
    return split(ary, indices_or_sections, 0)


def dsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """`split` along the third axis.

    Args:
        ary: array of any dtype, of rank at least 3.
        indices_or_sections: int, how many parts; or the positions at which parts begin, concrete.

    Returns:
        list of arrays of the dtype of ary.

    Raises:
        ValueError: if the size is not divisible.

    Example:
        >>> import weft.numpy as jnp
        >>> [x.shape for x in jnp.dsplit(jnp.ones((2, 2, 4)), 2)]
        [(2, 2, 2), (2, 2, 2)]
    """
    return split(ary, indices_or_sections, 2)
