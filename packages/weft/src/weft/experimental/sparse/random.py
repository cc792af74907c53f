"""Sparse arrays with elements at random places."""

from __future__ import annotations

import math
from typing import Any, Callable, Sequence

from ... import numpy as jnp, random as _random
from ...base.avals import as_size
from ...base.source_info import api_boundary
from .base import each
from .bcoo import BCOO

__all__ = ["random_bcoo"]


@api_boundary
def random_bcoo(
    key,
    shape: Sequence[int],
    *,
    dtype: Any = float,
    indices_dtype: Any = None,
    nse: int | float = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    sorted_indices: bool = False,
    generator: Callable = _random.uniform,
    **kwds,
) -> BCOO:
    """A sparse array with random elements at random places.

    Args:
        key: a random key.
        shape: the shape of the array.
        dtype: the dtype of elements; float by default.
        indices_dtype: the integer dtype of indices; int32 by default.
        nse: how many elements each batch stores (int), or, if it is below 1, which part of all places (float).
        n_batch, n_dense: how many leading axes are batch axes, and how many trailing ones are dense; ints.
        unique_indices: whether all places differ.
        sorted_indices: whether the indices are in lexicographic order.
        generator: (key, shape, dtype, **kwds) -> the elements.
        **kwds: options of the generator.

    Returns:
        a BCOO of this shape and dtype.

    Raises:
        ValueError: the array has fewer places than elements, or fewer axes than n_batch + n_dense.

    Example:
        >>> import weft
        >>> from weft.experimental import sparse
        >>> sparse.random_bcoo(weft.random.key(0), (3, 4), nse=5)
        BCOO(float32[3, 4], nse=5)
    """
    shape = tuple(shape)
    n_sparse = len(shape) - n_batch - n_dense
    if min(n_sparse, n_batch, n_dense) < 0:
        raise ValueError(f"random_bcoo: shape {shape} has no room for n_batch={n_batch} and n_dense={n_dense}.")
    batch, sparse, dense = shape[:n_batch], shape[n_batch : n_batch + n_sparse], shape[n_batch + n_sparse :]
    places = math.prod(sparse)
    count = math.ceil(nse * places) if 0 <= nse < 1 else as_size(nse)
    if not 0 <= count <= places:
        raise ValueError(f"random_bcoo: nse={nse} must be between 0 and the number of places, {places}.")
    keys = _random.split(key, 1 + math.prod(batch))

    def some(key):
        flat = _random.choice(key, places, (count,), replace=not unique_indices).astype(indices_dtype or "int32")
        return (
            jnp.stack(jnp.unravel_index(flat, sparse), -1).astype(indices_dtype or "int32")
            if sparse
            else jnp.zeros((count, 0), indices_dtype or "int32")
        )

    indices = each(some, 1)(keys[1:]).reshape(*batch, count, n_sparse)
    out = BCOO(
        (generator(keys[0], (*batch, count, *dense), dtype, **kwds), indices),
        shape=shape,
        unique_indices=unique_indices,
    )
    return out.sort_indices() if sorted_indices else out
