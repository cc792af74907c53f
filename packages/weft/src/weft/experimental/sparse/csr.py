"""CSR and CSC: a matrix by rows, or by columns."""

from __future__ import annotations

from typing import Any, Sequence

from ...base.annotations import override
from ... import numpy as jnp
from ...base.registration import register_pytree_node_class
from .base import JAXSparse
from .bcoo import BCOO, bcoo_fromdense
from .coo import _two, dense, matmul, matrix_product


def rows_of(indptr, nse: int):
    """The row of each element; past the last one for padding."""
    return (jnp.searchsorted(indptr, jnp.arange(nse, dtype=indptr.dtype), side="right") - 1).astype(indptr.dtype)


def pointers(rows, n: int):
    """Where each row begins among sorted rows."""
    return jnp.concatenate(
        [jnp.zeros(1, rows.dtype), jnp.cumsum(jnp.zeros(n, rows.dtype).at[rows].add(1, mode="drop"), dtype=rows.dtype)]
    )


class _Compressed(JAXSparse):
    _axis = 0  # the compressed axis

    def __init__(self, args: tuple, *, shape: Sequence[int]):
        self.data, self.indices, self.indptr = map(jnp.asarray, args)
        self.shape = tuple(shape)

    @classmethod
    def _of(cls, m: BCOO):
        m = m.sort_indices() if cls._axis == 0 else m.transpose().sort_indices()
        shape = m.shape if cls._axis == 0 else m.shape[::-1]
        return cls((m.data, m.indices[:, 1], pointers(m.indices[:, 0], m.shape[0])), shape=shape)

    @classmethod
    def fromdense(cls, mat, *, nse: int | None = None, index_dtype: Any = "int32"):
        """The elements of a matrix that are not 0; under jit `nse` must be given."""
        mat = jnp.asarray(mat)
        _two(cls.__name__, mat.shape)
        return cls._of(bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype))

    @classmethod
    def _empty(cls, shape, *, dtype=None, index_dtype="int32"):
        _two(cls.__name__, shape)
        return cls._of(BCOO._empty(shape, dtype=dtype, index_dtype=index_dtype))

    @classmethod
    def _eye(cls, N, M, k, *, dtype=None, index_dtype="int32"):
        return cls._of(BCOO._eye(N, M, k, dtype=dtype, index_dtype=index_dtype))

    def _triples(self) -> tuple:
        rows = rows_of(self.indptr, self.nse)
        return (self.data, rows, self.indices) if self._axis == 0 else (self.data, self.indices, rows)

    @override
    def todense(self):
        """The same as a dense array."""
        return dense(*(*self._triples(), self.shape))

    @override
    def transpose(self, axes=None):
        """The transposed matrix: CSR becomes CSC and the other way round."""
        if axes is not None:
            raise NotImplementedError(f"{type(self).__name__}.transpose takes no axes.")
        return (CSC if self._axis == 0 else CSR)((self.data, self.indices, self.indptr), shape=self.shape[::-1])

    @override
    def tree_flatten(self):
        return (self.data, self.indices, self.indptr), self.shape

    @override
    @classmethod
    def tree_unflatten(cls, aux_data, children):
        self = object.__new__(cls)
        self.data, self.indices, self.indptr = children
        self.shape = aux_data
        return self

    __matmul__ = matmul


@register_pytree_node_class
class CSR(_Compressed):
    """A matrix by rows: (data [nse], columns [nse], where each row begins [rows + 1]).

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental.sparse import CSR
        >>> CSR.fromdense(jnp.array([[0., 2.], [3., 0.]])) @ jnp.ones(2)
        Array([2., 3.], dtype=float32)
    """


@register_pytree_node_class
class CSC(_Compressed):
    """A matrix by columns: (data [nse], rows [nse], where each column begins [columns + 1]).

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> sparse.CSC.fromdense(jnp.array([[0., 2.], [3., 0.]])).indptr
        Array([0, 1, 2], dtype=int32)
    """

    _axis = 1


def csr_fromdense(mat, *, nse: int | None = None, index_dtype: Any = "int32") -> CSR:
    """Makes a CSR matrix of a dense one: the elements that are not 0.

    Args:
        mat: a dense array of shape (rows, columns) and any dtype.
        nse: how many elements are stored; int. It must be given under jit; by default it is as many as there are.
        index_dtype: the integer dtype of indices.

    Returns:
        a CSR of the same shape and dtype.

    Raises:
        ValueError: `mat` does not have two axes.
        ConcretizationTypeError: `nse` is missing under a transformation.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> sparse.csr_fromdense(jnp.eye(2))
        CSR(float32[2, 2], nse=2)
    """
    return CSR.fromdense(mat, nse=nse, index_dtype=index_dtype)


def csr_todense(mat: CSR):
    """Makes a dense array of a CSR matrix.

    Args:
        mat: a CSR of any dtype.

    Returns:
        a dense array of the same shape and dtype.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> sparse.csr_todense(sparse.csr_fromdense(jnp.eye(2))).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    return mat.todense()


def csr_matvec(mat: CSR, v, transpose: bool = False):
    """The product of a CSR matrix and a vector.

    Args:
        mat: a CSR of shape (rows, columns) and any dtype.
        v: a vector of shape (columns,), or (rows,) with `transpose`.
        transpose: whether the transposed matrix is multiplied; bool.

    Returns:
        a vector of shape (rows,), or (columns,) with `transpose`.

    Raises:
        ValueError: the shapes do not fit.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> sparse.csr_matvec(sparse.csr_fromdense(jnp.eye(2)), jnp.ones(2))
        Array([1., 1.], dtype=float32)
    """
    return matrix_product(*(*mat._triples(), mat.shape, v, transpose, "csr_matvec"))


def csr_matmat(mat: CSR, B, *, transpose: bool = False):
    """The product of a CSR matrix and a dense matrix.

    Args:
        mat: a CSR of shape (rows, columns) and any dtype.
        B: a dense array of shape (columns, n), or (rows, n) with `transpose`.
        transpose: whether the transposed matrix is multiplied; bool.

    Returns:
        a dense array of shape (rows, n), or (columns, n) with `transpose`.

    Raises:
        ValueError: the shapes do not fit.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> sparse.csr_matmat(sparse.csr_fromdense(jnp.eye(2)), jnp.ones((2, 1))).tolist()
        [[1.0], [1.0]]
    """
    return matrix_product(*(*mat._triples(), mat.shape, B, transpose, "csr_matmat"))
