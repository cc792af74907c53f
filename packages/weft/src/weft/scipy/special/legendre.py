"""Associated Legendre functions of the first kind."""

from __future__ import annotations

import math
import operator
from typing import Any

from ...base import dtypes
from ...base.errors import at_user_line
from ... import numpy as jnp
from ...lax import scan
from ...numpy.util import on_device, operand, in_own_terms


def _points(name: str, m: Any, n: Any, z: Any) -> tuple[int, Any]:
    top = operator.index(n)
    if operator.index(m) != top or top < 0:
        raise NotImplementedError(
            at_user_line(
                f"{name} computes all orders up to the largest degree: m and n must be the same number from 0 on, got"
                f" m={m} and n={n}."
            )
        )
    z = on_device(operand(name, z))
    if dtypes.name(z.dtype) not in ("float32", "float64"):
        raise TypeError(
            at_user_line(f"{name} takes float32 or float64, got {dtypes.name(z.dtype)}. Convert z with astype.")
        )
    if z.ndim != 1:
        raise ValueError(at_user_line(f"{name}: z must have one dimension, got shape {z.shape}. Use z.ravel()."))
    return top, z


@in_own_terms
def _tables(top: int, z: Any, normalized: bool) -> tuple[Any, Any]:
    """The functions and their slopes (those of the plain functions alone), each of shape (order, degree, point)."""
    order = jnp.arange(top + 1, dtype=z.dtype)[:, None]
    # those whose degree is the order: a product of odd numbers, times (1 - z²) to half the order
    odd = jnp.sqrt((2 * order + 1) / jnp.maximum(2 * order, 1)) if normalized else 2 * order - 1
    first = math.sqrt(1 / (4 * math.pi)) if normalized else 1.0
    scale = jnp.cumprod(jnp.where(order == 0, first, -odd), axis=0)
    square = 1 - z * z
    power = lambda e: jnp.where(e == 0, 1, square ** jnp.where(e == 0, 1, e))
    diagonal = scale * power(order / 2)
    slopes = jnp.where(order == 0, 0, -scale * order * z * power(order / 2 - 1))

    def climb(state, degree):  # from two degrees to the next, for each order
        here, below, rises, rose = state
        if normalized:
            wide = jnp.where(degree > order, degree * degree - order * order, 1)
            a = jnp.sqrt((4 * degree * degree - 1) / wide)
            low = jnp.where(degree > order + 1, jnp.square(degree - 1) - order * order, 0)
            b = jnp.sqrt(low / jnp.where(degree > 1, 4 * jnp.square(degree - 1) - 1, 1))
            next_, grows = a * (z * here - b * below), rises
        else:
            by = jnp.where(degree > order, degree - order, 1)
            next_ = ((2 * degree - 1) * z * here - (degree + order - 1) * below) / by
            grows = ((2 * degree - 1) * (here + z * rises) - (degree + order - 1) * rose) / by
        pick = lambda above, at: jnp.where(degree > order, above, jnp.where(degree == order, at, 0))
        next_, grows = pick(next_, diagonal), pick(grows, slopes)
        return (next_, here, grows, rises), (next_, grows)

    zero = jnp.zeros_like(diagonal)
    start, rise = jnp.where(order == 0, diagonal, 0), zero
    _, (values, grown) = scan(climb, (start, zero, rise, zero), jnp.arange(1, top + 1, dtype=z.dtype))
    by_order = lambda first, rest: jnp.moveaxis(jnp.concatenate([first[None], rest]), 0, 1)
    return by_order(start, values), by_order(rise, grown)


def lpmn(m: int, n: int, z: Any) -> tuple[Any, Any]:
    """The associated Legendre functions of the first kind of all orders and degrees up to n, and their derivatives.

    Args:
        m: int, the largest order, which must be n.
        n: int, the largest degree.
        z: array of float32 or float64, shape (k,), from -1 to 1.

    Returns:
        two arrays of the dtype of z, shape (n + 1, n + 1, k): the values, by order and degree, and the derivatives in
        z. Those whose order is above the degree are 0.

    Raises:
        NotImplementedError: if m is not n.
        TypeError: for another dtype.
        ValueError: if z has another rank.

    Source: DLMF 14.7.10, 14.10.3.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import special
        >>> values, slopes = special.lpmn(2, 2, jnp.array([0.5]))
        >>> float(values[0, 2, 0]), float(slopes[0, 2, 0])
        (-0.125, 1.5)
    """
    return _tables(*_points("lpmn", m, n, z), False)


def lpmn_values(m: int, n: int, z: Any, is_normalized: bool) -> Any:
    """The associated Legendre functions of the first kind of all orders and degrees up to n.

    Args:
        m: int, the largest order, which must be n.
        n: int, the largest degree.
        z: array of float32 or float64, shape (k,), from -1 to 1.
        is_normalized: bool: scale them so that the spherical harmonics have unit norm.

    Returns:
        array of the dtype of z, shape (n + 1, n + 1, k), by order and degree; 0 where the order is above the degree.

    Raises:
        NotImplementedError: if m is not n.
        TypeError: for another dtype.
        ValueError: if z has another rank.

    Source: DLMF 14.7.10, 14.10.3, 14.30.1.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import special
        >>> round(float(special.lpmn_values(2, 2, jnp.array([0.5]), False)[1, 1, 0]), 4)
        -0.866
    """
    return _tables(*_points("lpmn_values", m, n, z), bool(is_normalized))[0]
