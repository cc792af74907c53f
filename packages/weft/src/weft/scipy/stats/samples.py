"""Statistics of samples: the most frequent value, ranks, the standard error of the mean."""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

from ...base import dtypes
from ... import numpy as jnp
from ...lax import cummax
from ...numpy.util import canonical_axis, float_dtype, on_device, operand, promote_inexact


class ModeResult(NamedTuple):
    mode: Any
    count: Any


def _check_policy(name: str, nan_policy: str) -> None:
    if nan_policy not in ("propagate", "omit", "raise"):
        raise ValueError(f"{name}: nan_policy must be 'propagate', got {nan_policy!r}.")
    if nan_policy != "propagate":
        raise NotImplementedError(
            f"{name}: nan_policy={nan_policy!r} depends on values that are not known while a function is traced; "
            "only 'propagate' is computed. Look for NaN beforehand."
        )


def _group_starts(x):
    """Whether each value of `x`, sorted along its last axis, differs from the one before it."""
    return jnp.concatenate([jnp.ones((*x.shape[:-1], 1), bool), x[..., 1:] != x[..., :-1]], -1)


def _starts_so_far(starts):
    """For each element the position where its group starts."""
    return cummax(jnp.where(starts, jnp.arange(starts.shape[-1]), 0), axis=starts.ndim - 1)


def mode(a, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """(mode, count): the most frequent value along an axis (of all with None), the least of them, and how often it is
    there.

    Raises:
        ValueError: for an axis out of range. NotImplementedError: for another nan_policy than 'propagate'.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import stats
        >>> [int(v) for v in stats.mode(jnp.array([3, 1, 3, 2]))]
        [3, 2]
    """
    _check_policy("mode", nan_policy)
    x = jnp.atleast_1d(on_device(operand("mode", a)))
    rank = None if axis is not None else x.ndim
    if axis is None:
        x, axis = x.ravel(), 0
    else:
        axis = canonical_axis(operator.index(axis), x.ndim)
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    if x.size == 0:
        value = jnp.full(shape, math.nan, x.dtype if dtypes.is_inexact(x.dtype) else float_dtype())
        count = jnp.zeros(shape, int if x.shape[axis] else value.dtype)
    else:
        x = jnp.sort(jnp.moveaxis(x, axis, -1), axis=-1)
        length = jnp.arange(x.shape[-1]) - _starts_so_far(_group_starts(x)) + 1
        best = length.argmax(-1, keepdims=True)
        value, count = jnp.take_along_axis(x, best, -1)[..., 0], length.max(-1)
    if keepdims:
        value, count = (v.reshape((1,) * rank) if rank else jnp.expand_dims(v, axis) for v in (value, count))
    return ModeResult(value, count)


def rankdata(a, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate"):
    """Ranks from 1 along an axis, as floats; of all elements, flattened, by default. NaN where there is one.

    Equal values get the 'average', 'min' or 'max' of their ranks, consecutive ones ('ordinal'), or count once
    ('dense').

    Raises:
        ValueError: for another method or an axis out of range. NotImplementedError: for another nan_policy than
            'propagate'.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import stats
        >>> stats.rankdata(jnp.array([3, 1, 3])).tolist()
        [2.5, 1.0, 2.5]
    """
    _check_policy("rankdata", nan_policy)
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise ValueError(f"rankdata: unknown method {method!r}; it is 'average', 'min', 'max', 'dense' or 'ordinal'.")
    x = jnp.atleast_1d(on_device(operand("rankdata", a)))
    x = x.ravel() if axis is None else jnp.moveaxis(x, axis, -1)
    n = x.shape[-1]
    order = jnp.argsort(x, axis=-1)
    if n == 0:
        return x.astype(float_dtype())
    if method == "ordinal":
        ranks = jnp.broadcast_to(jnp.arange(1, n + 1), x.shape)
    else:
        starts = _group_starts(jnp.take_along_axis(x, order, -1))
        if method == "dense":
            ranks = starts.astype(int).cumsum(-1)
        else:
            first = _starts_so_far(starts)
            ends = jnp.concatenate([starts[..., 1:], jnp.ones((*x.shape[:-1], 1), bool)], -1)
            last = n - 1 - jnp.flip(_starts_so_far(jnp.flip(ends, -1)), -1)
            ranks = {"min": first + 1, "max": last + 1, "average": (first + last).astype(float_dtype()) / 2 + 1}[method]
    ranks = jnp.take_along_axis(ranks, jnp.argsort(order, axis=-1), -1).astype(float_dtype())
    if dtypes.is_inexact(x.dtype):
        ranks = jnp.where(jnp.isnan(x).any(-1, keepdims=True), math.nan, ranks)
    return ranks if axis is None else jnp.moveaxis(ranks, -1, axis)


def sem(a, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False):
    """The standard error of the mean along an axis: the standard deviation, of n - ddof degrees of freedom, over
    sqrt(n). With nan_policy 'omit' without NaN.

    Raises:
        ValueError: for another nan_policy, or an axis out of range.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import stats
        >>> float(stats.sem(jnp.array([1., 3.])))
        1.0
    """
    if nan_policy not in ("propagate", "omit"):
        raise ValueError(f"sem: nan_policy must be 'propagate' or 'omit', got {nan_policy!r}.")
    (x,) = promote_inexact("sem", a)
    x = on_device(x)
    if axis is None and not keepdims:
        x, axis = x.ravel(), 0
    axes = tuple(range(x.ndim)) if axis is None else canonical_axis(operator.index(axis), x.ndim)
    if nan_policy == "omit":
        count = (~jnp.isnan(x)).sum(axes, keepdims=keepdims)
        return jnp.nanstd(x, axes, ddof=ddof, keepdims=keepdims) / jnp.sqrt(count.astype(x.dtype))
    n = x.size if axis is None else x.shape[axes]
    return (jnp.std(x, axes, ddof=ddof, keepdims=keepdims) / math.sqrt(n)).astype(x.dtype)
