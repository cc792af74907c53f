"""weft.scipy.interpolate: functions through points of a grid."""

from __future__ import annotations

import functools
import itertools
import operator
from typing import Any, Sequence

from ..base import dtypes
from .. import numpy as jnp
from ..numpy.util import operand, promote_inexact
from ..base.source_info import api_boundary
from ..base.registration import register_pytree_node_class

__all__ = ["RegularGridInterpolator"]

_METHODS = ("linear", "nearest")


def _method(name: str) -> str:
    if name not in _METHODS:
        raise ValueError(f"RegularGridInterpolator: method must be 'linear' or 'nearest', got {name!r}.")
    return name


@register_pytree_node_class
class RegularGridInterpolator:
    """The function that is `values` at the points of a rectangular grid; a pytree.

    Args:
        points: for each of the first axes of `values` its increasing coordinates.
        values: an array; axes after the grid's are kept in results.
        method: 'linear' or 'nearest'.
        fill_value: the result outside of the grid; None goes on beyond it.

    Call it with points of shape (…, n), or with a tuple of n arrays that broadcast; `method` may differ for a call.

    Raises:
        ValueError: for an unknown method, and for points that do not fit the values.
        NotImplementedError: for bounds_error, since values are not known while a function is traced.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy.interpolate import RegularGridInterpolator
        >>> RegularGridInterpolator((jnp.array([0., 1., 3.]),), jnp.array([0., 10., 20.]))(jnp.array([0.5, 2.]))
        Array([ 5., 15.], dtype=float32)
    """

    def __init__(
        self,
        points: Sequence,
        values: Any,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: Any = float("nan"),
    ):
        if bounds_error:
            raise NotImplementedError(
                "RegularGridInterpolator: bounds_error=True can't be, since values are not known under jit; use"
                " fill_value."
            )
        self.method = _method(method)
        self.bounds_error = False
        values = operand("RegularGridInterpolator", values)
        if len(points) > jnp.ndim(values):
            raise ValueError(
                f"RegularGridInterpolator: there are {len(points)} arrays of points, but values has {jnp.ndim(values)}"
                " dimensions."
            )
        (values,) = promote_inexact("RegularGridInterpolator", values)
        self.grid = tuple(jnp.asarray(operand("RegularGridInterpolator", p)) for p in points)
        self.values = jnp.asarray(values)
        for k, p in enumerate(self.grid):
            if p.shape != self.values.shape[k : k + 1]:
                raise ValueError(
                    f"RegularGridInterpolator: points[{k}] must have shape {self.values.shape[k : k + 1]}, as values"
                    f" has along axis {k}, got {p.shape}."
                )
        self.fill_value = fill_value
        if fill_value is not None:
            fill = jnp.asarray(fill_value)
            if dtypes.is_complex(fill.dtype) and not dtypes.is_complex(self.values.dtype):
                raise ValueError(
                    "RegularGridInterpolator: fill_value must be None, or of a type that values of"
                    f" {dtypes.name(self.values.dtype)} can hold, got {dtypes.name(fill.dtype)}."
                )

    def tree_flatten(self):
        return (self.grid, self.values, self.fill_value), self.method

    @classmethod
    def tree_unflatten(cls, method, children):
        self = object.__new__(cls)
        self.grid, self.values, self.fill_value = children
        self.method, self.bounds_error = method, False
        return self

    @api_boundary
    def __call__(self, xi, method: str | None = None):
        method = self.method if method is None else _method(method)
        n = len(self.grid)
        if isinstance(xi, tuple):
            points = jnp.broadcast_arrays(*xi)
            if len(points) != n:
                raise ValueError(
                    f"RegularGridInterpolator: the grid has {n} dimensions, got {len(points)} coordinates."
                )
        else:
            xi = jnp.asarray(xi)
            if n == 1 and (xi.ndim == 1 or xi.shape[-1] != 1):
                xi = xi[..., None]
            if xi.size % n:
                raise TypeError(f"RegularGridInterpolator: points must be of shape (…, {n}), got shape {xi.shape}.")
            xi = xi if xi.ndim > 1 and xi.shape[-1] == n else xi.reshape(-1, n)
            points = [xi[..., k] for k in range(n)]
        cells = [self._cell(x, p) for x, p in zip(points, self.grid)]
        out: Any = 0
        if method == "nearest":
            out = self.values[tuple(jnp.where(part <= 0.5, i, i + 1) for i, part in cells)]
        else:
            more = (1,) * (self.values.ndim - n)
            sides = [((i, 1 - part), (i + 1, part)) for i, part in cells]
            for corner in itertools.product(*sides):
                index, weights = zip(*corner)
                weight = functools.reduce(operator.mul, weights)
                out = out + self.values[index] * weight.reshape(weight.shape + more)
        if self.fill_value is None:
            return out
        outside = functools.reduce(operator.or_, [(x < p[0]) | (x > p[-1]) for x, p in zip(points, self.grid)])
        return jnp.where(
            outside.reshape(outside.shape + (1,) * (out.ndim - outside.ndim)),
            jnp.asarray(self.fill_value, out.dtype),
            out,
        )

    @staticmethod
    def _cell(x, points):
        """(the cell in which x lies, how far along it)."""
        i = jnp.clip(jnp.searchsorted(points, x) - 1, 0, max(points.size - 2, 0))
        left, right = points[i], points[jnp.minimum(i + 1, points.size - 1)]
        return i, (x - left) / jnp.where(right == left, 1, right - left)


def __dir__() -> list[str]:
    return sorted(__all__)
