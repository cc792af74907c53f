"""COO: a matrix as rows, columns and data."""

from __future__ import annotations

from typing import Any, Sequence

from ...base.annotations import override
from ... import numpy as jnp
from ...base.registration import register_pytree_node_class
from .base import JAXSparse, accumulate
from .bcoo import BCOO, bcoo_fromdense


def matrix_product(data, row, col, shape: tuple, B, transpose: bool, name: str):
    """The product with a vector or matrix; of the transposed matrix with `transpose`."""
    if transpose:
        row, col, shape = col, row, shape[::-1]
    B = jnp.asarray(B)
    if B.shape[:1] != shape[1:]:
        raise ValueError(f"{name}: a matrix of shape {shape} can't be multiplied with an array of shape {B.shape}.")
    good = (row >= 0) & (row < shape[0]) & (col >= 0) & (col < shape[1])
    values = jnp.where(good, data, jnp.zeros((), data.dtype))
    products = values.reshape(-1, *[1] * (B.ndim - 1)) * B[jnp.where(good, col, 0)]
    return accumulate((shape[0], *B.shape[1:]), products.dtype, jnp.where(good, row, shape[0]), products)


def dense(data, row, col, shape: tuple):
    return BCOO((data, jnp.stack([row, col], 1)), shape=shape).todense()


def matmul(self, other):
    if isinstance(other, JAXSparse):
        raise NotImplementedError(
            f"{type(self).__name__} is multiplied with dense arrays only; use BCOO for products of two sparse matrices."
        )
    other = jnp.asarray(other)
    if other.ndim not in (1, 2):
        raise NotImplementedError(
            f"{type(self).__name__} is multiplied with arrays of rank 1 or 2, got shape {other.shape}."
        )
    data, row, col = self._triples()
    dtype = jnp.result_type(data, other)
    return matrix_product(data.astype(dtype), row, col, self.shape, other.astype(dtype), False, type(self).__name__)


@register_pytree_node_class
class COO(JAXSparse):
    """A matrix as (data, row, col), each of shape [nse]; rows out of bounds are padding.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental.sparse import COO
        >>> COO.fromdense(jnp.array([[0., 2.], [3., 0.]])) @ jnp.ones(2)
        Array([2., 3.], dtype=float32)
    """

    def __init__(self, args: tuple, *, shape: Sequence[int], rows_sorted: bool = False, cols_sorted: bool = False):
        self.data, self.row, self.col = map(jnp.asarray, args)
        self.shape = tuple(shape)
        self._rows_sorted, self._cols_sorted = rows_sorted, cols_sorted

    @classmethod
    def fromdense(cls, mat, *, nse: int | None = None, index_dtype: Any = "int32") -> "COO":
        """The elements of a matrix that are not 0."""
        return coo_fromdense(mat, nse=nse, index_dtype=index_dtype)

    @classmethod
    def _empty(cls, shape, *, dtype=None, index_dtype="int32") -> "COO":
        _two("COO", shape)
        nothing = jnp.zeros(0, index_dtype)
        return cls((jnp.zeros(0, dtype), nothing, nothing), shape=shape, rows_sorted=True, cols_sorted=True)

    @classmethod
    def _eye(cls, N, M, k, *, dtype=None, index_dtype="int32") -> "COO":
        m = BCOO._eye(N, M, k, dtype=dtype, index_dtype=index_dtype)
        return cls((m.data, m.indices[:, 0], m.indices[:, 1]), shape=m.shape, rows_sorted=True, cols_sorted=True)

    def _triples(self) -> tuple:
        return self.data, self.row, self.col

    @override
    def todense(self):
        """The same as a dense array."""
        return dense(*(*self._triples(), self.shape))

    @override
    def transpose(self, axes=None) -> "COO":
        """The transposed matrix."""
        if axes is not None:
            raise NotImplementedError("COO.transpose takes no axes.")
        return COO(
            (self.data, self.col, self.row),
            shape=self.shape[::-1],
            rows_sorted=self._cols_sorted,
            cols_sorted=self._rows_sorted,
        )

    @override
    def tree_flatten(self):
        return (self.data, self.row, self.col), (self.shape, self._rows_sorted, self._cols_sorted)

    @override
    @classmethod
    def tree_unflatten(cls, aux_data, children):
        self = object.__new__(cls)
        self.data, self.row, self.col = children
        self.shape, self._rows_sorted, self._cols_sorted = aux_data
        return self

    __matmul__ = matmul


def _two(name: str, shape) -> None:
    if len(shape) != 2:
        raise ValueError(f"{name} is a format of matrices, got shape {tuple(shape)}.")


def coo_fromdense(mat, *, nse: int | None = None, index_dtype: Any = "int32") -> COO:
    """Makes a COO matrix of a dense one: the elements that are not 0.

    Args:
        mat: a dense array of shape (rows, columns) and any dtype.
        nse: how many elements are stored; int. It must be given under jit; by default it is as many as there are.
        index_dtype: the integer dtype of indices.

    Returns:
        a COO of the same shape and dtype.

    Raises:
        ValueError: `mat` does not have two axes.
        ConcretizationTypeError: `nse` is missing under a transformation.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> sparse.coo_fromdense(jnp.eye(2))
        COO(float32[2, 2], nse=2)
    """
    mat = jnp.asarray(mat)
    _two("COO", mat.shape)
    m = bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype)
    return COO((m.data, m.indices[:, 0], m.indices[:, 1]), shape=m.shape, rows_sorted=True)


def coo_todense(mat: COO):
    """Makes a dense array of a COO matrix.

    Args:
        mat: a COO of any dtype.

    Returns:
        a dense array of the same shape and dtype.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> sparse.coo_todense(sparse.coo_fromdense(jnp.eye(2))).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    return mat.todense()


def coo_matvec(mat: COO, v, transpose: bool = False):
    """The product of a COO matrix and a vector.

    Args:
        mat: a COO of shape (rows, columns) and any dtype.
        v: a vector of shape (columns,), or (rows,) with `transpose`.
        transpose: whether the transposed matrix is multiplied; bool.

    Returns:
        a vector of shape (rows,), or (columns,) with `transpose`.

    Raises:
        ValueError: the shapes do not fit.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> sparse.coo_matvec(sparse.coo_fromdense(jnp.eye(2)), jnp.ones(2))
        Array([1., 1.], dtype=float32)
    """
    return matrix_product(*(*mat._triples(), mat.shape, v, transpose, "coo_matvec"))


def coo_matmat(mat: COO, B, *, transpose: bool = False):
    """The product of a COO matrix and a dense matrix.

    Args:
        mat: a COO of shape (rows, columns) and any dtype.
        B: a dense array of shape (columns, n), or (rows, n) with `transpose`.
        transpose: whether the transposed matrix is multiplied; bool.

    Returns:
        a dense array of shape (rows, n), or (columns, n) with `transpose`.

    Raises:
        ValueError: the shapes do not fit.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> sparse.coo_matmat(sparse.coo_fromdense(jnp.eye(2)), jnp.ones((2, 1))).tolist()
        [[1.0], [1.0]]
    """
    return matrix_product(*(*mat._triples(), mat.shape, B, transpose, "coo_matmat"))
