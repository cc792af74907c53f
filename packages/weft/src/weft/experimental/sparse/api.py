"""Making sparse arrays of each format, and dense ones of them."""
from __future__ import annotations

import math
import operator
from typing import Any, Callable, Sequence

from ... import numpy as jnp, random
from ...source_info import api_boundary
from .base import JAXSparse, each
from .bcoo import BCOO
from .bcsr import BCSR
from .coo import COO
from .csr import CSC, CSR
from .transform import todense_p

_FORMATS = {"bcoo": BCOO, "bcsr": BCSR, "coo": COO, "csr": CSR, "csc": CSC}


def _format(name: str):
    if name not in _FORMATS:
        raise ValueError(f"sparse_format {name!r} is not one of {', '.join(map(repr, _FORMATS))}.")
    return _FORMATS[name]


def todense(arr):
    """A sparse array as a dense one; dense arrays as they are, and sparse ones inside of `sparsify` too.

    Example:
        >>> from weft.experimental import sparse
        >>> sparse.todense(sparse.eye(2))
        Array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    return arr.todense() if isinstance(arr, JAXSparse) else todense_p.bind(jnp.asarray(arr))


@api_boundary
def empty(shape: Sequence[int], dtype: Any = None, index_dtype: Any = "int32", sparse_format: str = "bcoo", **kwds) -> JAXSparse:
    """An array that stores nothing, in the format 'bcoo', 'bcsr', 'coo', 'csr' or 'csc'; for the first two `kwds` may be n_batch, n_dense and nse.

    Example:
        >>> from weft.experimental import sparse
        >>> sparse.empty((2, 3))
        BCOO(float32[2, 3], nse=0)
    """
    return _format(sparse_format)._empty(tuple(shape), dtype=float if dtype is None else dtype, index_dtype=index_dtype, **kwds)


@api_boundary
def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, index_dtype: Any = "int32", sparse_format: str = "bcoo", **kwds) -> JAXSparse:
    """The N × M matrix with ones on diagonal `k`; formats and `kwds` as for `empty`.

    Example:
        >>> from weft.experimental import sparse
        >>> sparse.eye(2, 3, k=1).todense()
        Array([[0., 1., 0.],
               [0., 0., 1.]], dtype=float32)
    """
    N, M, k = (operator.index(n) for n in (N, N if M is None else M, k))
    return _format(sparse_format)._eye(N, M, k, dtype=float if dtype is None else dtype, index_dtype=index_dtype, **kwds)


@api_boundary
def random_bcoo(key, shape: Sequence[int], *, dtype: Any = float, indices_dtype: Any = None, nse: int | float = 0.2, n_batch: int = 0, n_dense: int = 0,
                unique_indices: bool = True, sorted_indices: bool = False, generator: Callable = random.uniform, **kwds) -> BCOO:
    """A BCOO with elements at random places.

    Args:
        nse: how many elements (for each batch), or, below 1, which part of all.
        unique_indices, sorted_indices: whether the places differ, and are in order.
        generator: (key, shape, dtype, **kwds) -> the elements.

    Raises: ValueError for more elements than there are places.

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
    batch, sparse, dense = shape[:n_batch], shape[n_batch:n_batch + n_sparse], shape[n_batch + n_sparse:]
    places = math.prod(sparse)
    count = math.ceil(nse * places) if 0 <= nse < 1 else operator.index(nse)
    if not 0 <= count <= places:
        raise ValueError(f"random_bcoo: nse={nse} must be between 0 and the number of places, {places}.")
    keys = random.split(key, 1 + math.prod(batch))

    def some(key):
        flat = random.choice(key, places, (count,), replace=not unique_indices).astype(indices_dtype or "int32")
        return jnp.stack(jnp.unravel_index(flat, sparse), -1).astype(indices_dtype or "int32") if sparse else jnp.zeros((count, 0), indices_dtype or "int32")
    indices = each(some, 1)(keys[1:]).reshape(*batch, count, n_sparse)
    out = BCOO((generator(keys[0], (*batch, count, *dense), dtype, **kwds), indices), shape=shape, unique_indices=unique_indices)
    return out.sort_indices() if sorted_indices else out
