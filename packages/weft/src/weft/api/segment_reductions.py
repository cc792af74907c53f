"""Reductions over segments: elements with the same segment number are combined. The public names are
`weft.ops.segment_sum` and so on.
"""

from __future__ import annotations

import operator

from ..base import dtypes, limits
from .. import numpy as jnp
from ..core.trace import Tracer
from ..base.errors import ConcretizationTypeError
from ..lax.common import operand

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]


def _segment(
    name: str,
    method: str,
    reduce,
    start,
    data,
    segment_ids,
    num_segments,
    indices_are_sorted,
    unique_indices,
    bucket_size,
    mode,
    out_sharding,
):
    if out_sharding is not None:
        raise ValueError(f"{name} takes no out_sharding; apply weft.lax.with_sharding_constraint to its result.")
    data, ids = [jnp.asarray(operand(name, v)) for v in (data, segment_ids)]
    if not (dtypes.is_int(ids.dtype) or dtypes.is_bool(ids.dtype)):
        raise TypeError(f"{name}: segment_ids must be integers, got dtype {dtypes.name(ids.dtype)}.")
    if ids.shape != data.shape[: ids.ndim]:
        raise ValueError(
            f"{name}: segment_ids of shape {ids.shape} must have the leading shape of data, which is {data.shape}."
        )
    if num_segments is None:
        if isinstance(ids, Tracer):
            raise ConcretizationTypeError(
                f"{name}: how many segments there are depends on the values of segment_ids, which are not known while a"
                " function is traced. Pass num_segments."
            )
        num_segments = int(ids.max()) + 1 if ids.size else 0
    num_segments = operator.index(num_segments)
    if num_segments < 0:
        raise ValueError(f"{name}: num_segments must be non-negative, got {num_segments}.")
    kept = data.shape[ids.ndim :]
    identity = start(data.dtype)
    options = dict(
        indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, mode=mode, wrap_negative_indices=False
    )
    ids = ids.astype(jnp.int32) if dtypes.is_bool(ids.dtype) else ids  # a mask would be an index of another kind
    if bucket_size is None:
        return getattr(jnp.full((num_segments, *kept), identity, data.dtype).at[ids], method)(data, **options)
    flat_ids, flat = ids.reshape(-1), data.reshape(-1, *kept)
    count = max(1, -(-flat_ids.shape[0] // bucket_size))
    bucket = jnp.arange(flat_ids.shape[0]) // bucket_size
    out = getattr(jnp.full((count, num_segments, *kept), identity, data.dtype).at[bucket, flat_ids], method)(
        flat, **{**options, "indices_are_sorted": False}
    )
    return reduce(out, axis=0).astype(data.dtype)


def _lowest(dt):
    return False if dtypes.is_bool(dt) else limits.iinfo(dt).min if dtypes.is_int(dt) else -jnp.inf


def _highest(dt):
    return True if dtypes.is_bool(dt) else limits.iinfo(dt).max if dtypes.is_int(dt) else jnp.inf


_DOC = """The {what} of the elements of `data` with each segment number.

    result[i] combines data[k] for segment_ids[k] == i.

    Args:
        data: an array.
        segment_ids: integers; their shape is the leading part of `data`'s. Elements whose number is not in
            0..num_segments-1 are left out.
        num_segments: how many segments there are; the largest number plus one by default, which can't be traced.
        indices_are_sorted, unique_indices: promises about segment_ids that may make it faster.
        bucket_size: combines runs of this many elements first, for accuracy.
        mode: what to do with numbers out of range, as for `x.at[…]`.

    Raises:
        TypeError: for segment numbers that are not integers.
        ValueError: for shapes that don't fit.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.ops.{name}(jnp.array([1., 2., 3., 4.]), jnp.array([0, 0, 1, 1])){result}
    """


def _make(name: str, what: str, method: str, reduce, start, result: str):
    def function(
        data,
        segment_ids,
        num_segments=None,
        indices_are_sorted=False,
        unique_indices=False,
        bucket_size=None,
        mode=None,
        out_sharding=None,
    ):
        return _segment(
            name,
            method,
            reduce,
            start,
            data,
            segment_ids,
            num_segments,
            indices_are_sorted,
            unique_indices,
            bucket_size,
            mode,
            out_sharding,
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _DOC.format(what=what, name=name, result="\n        " + result)
    return function


segment_sum = _make("segment_sum", "sum", "add", jnp.sum, lambda dt: 0, "Array([3., 7.], dtype=float32)")
segment_prod = _make("segment_prod", "product", "multiply", jnp.prod, lambda dt: 1, "Array([ 2., 12.], dtype=float32)")
segment_max = _make("segment_max", "maximum", "max", jnp.max, _lowest, "Array([2., 4.], dtype=float32)")
segment_min = _make("segment_min", "minimum", "min", jnp.min, _highest, "Array([1., 3.], dtype=float32)")
