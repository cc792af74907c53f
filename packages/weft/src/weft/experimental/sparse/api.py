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
    """A sparse array as a dense one; dense arrays as they are, and sparse ones inside of `sparsify` too.

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
    """An array that stores nothing, in the format 'bcoo', 'bcsr', 'coo', 'csr' or 'csc'; for the first two `kwds` may
    be n_batch, n_dense and nse.

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
    """The N × M matrix with ones on diagonal `k`; formats and `kwds` as for `empty`.

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
