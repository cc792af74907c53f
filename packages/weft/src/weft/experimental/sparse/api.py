"""Making sparse arrays of each format, and dense ones of them."""

from __future__ import annotations

import operator
from typing import Any, Sequence

from ... import numpy as jnp
from ...base.source_info import api_boundary
from .base import JAXSparse
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
    """Makes a dense array of a sparse one. Dense arrays are returned as they are. It also works inside of `sparsify`.

    Args:
        arr: a sparse or dense array of any shape and dtype.

    Returns:
        a dense array of the same shape and dtype.

    Example:
        >>> from weft.experimental import sparse
        >>> sparse.todense(sparse.eye(2))
        Array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    return arr.todense() if isinstance(arr, JAXSparse) else todense_p.bind(jnp.asarray(arr))


@api_boundary
def empty(
    shape: Sequence[int], dtype: Any = None, index_dtype: Any = "int32", sparse_format: str = "bcoo", **kwds
) -> JAXSparse:
    """A sparse array that stores no elements.

    Args:
        shape: the shape; two sizes for the formats of matrices.
        dtype: the dtype of elements; float by default.
        index_dtype: the integer dtype of indices.
        sparse_format: 'bcoo', 'bcsr', 'coo', 'csr' or 'csc'.
        **kwds: for 'bcoo' and 'bcsr' `n_batch`, `n_dense` and `nse`, as for `bcoo_fromdense`.

    Returns:
        a sparse array of zeros.

    Raises:
        ValueError: the format does not exist, or the shape has too few or too many axes for it.

    Example:
        >>> from weft.experimental import sparse
        >>> sparse.empty((2, 3))
        BCOO(float32[2, 3], nse=0)
    """
    return _format(sparse_format)._empty(
        tuple(shape), dtype=float if dtype is None else dtype, index_dtype=index_dtype, **kwds
    )


@api_boundary
def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: Any = None,
    index_dtype: Any = "int32",
    sparse_format: str = "bcoo",
    **kwds,
) -> JAXSparse:
    """A sparse matrix with ones on a diagonal.

    Args:
        N: how many rows it has; int.
        M: how many columns it has; int; N by default.
        k: which diagonal: 0 is the main one, a positive int one above it.
        dtype: the dtype of elements; float by default.
        index_dtype, sparse_format: as for `empty`.
        **kwds: for 'bcoo' and 'bcsr' `n_batch` and `n_dense`.

    Returns:
        a sparse array of shape (N, M).

    Raises:
        ValueError: the format does not exist, or there are more batch and dense axes than the two of a matrix.

    Example:
        >>> from weft.experimental import sparse
        >>> sparse.eye(2, 3, k=1).todense()
        Array([[0., 1., 0.],
               [0., 0., 1.]], dtype=float32)
    """
    N, M, k = (operator.index(n) for n in (N, N if M is None else M, k))
    return _format(sparse_format)._eye(
        N, M, k, dtype=float if dtype is None else dtype, index_dtype=index_dtype, **kwds
    )
