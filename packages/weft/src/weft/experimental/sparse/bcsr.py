"""BCSR: batches of matrices by rows."""

from __future__ import annotations

from typing import Any, Sequence

from ...base.annotations import override
from ... import numpy as jnp
from ...base.registration import register_pytree_node_class
from .base import JAXSparse, SparseInfo, each, operator, with_batch
from .bcoo import BCOO, _extract, bcoo_fromdense
from .bcoo_dot import bcoo_dot_general
from .bcoo_shape import bcoo_broadcast_in_dim, bcoo_concatenate
from .csr import pointers, rows_of


@register_pytree_node_class
class BCSR(JAXSparse):
    """Matrices by rows: `data` [batch…, nse, dense…], `indices` (columns) [batch…, nse] and `indptr` (where rows begin)
    [batch…, rows + 1].

    Raises:
        ValueError: for shapes that do not fit.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental.sparse import BCSR
        >>> BCSR.fromdense(jnp.array([[0., 2.], [3., 0.]])) @ jnp.ones(2)
        Array([2., 3.], dtype=float32)
    """

    n_batch = property(lambda self: self.indices.ndim - 1)
    n_sparse = 2
    n_dense = property(lambda self: self.data.ndim - self.indices.ndim)
    nse = property(lambda self: self.indices.shape[-1], doc="How many elements are stored (for each batch).")
    _info = property(lambda self: SparseInfo(self.shape, self.indices_sorted, self.unique_indices))
    __matmul__, __rmatmul__ = operator(jnp.matmul), operator(jnp.matmul, True)

    def __init__(
        self, args: tuple, *, shape: Sequence[int], indices_sorted: bool = False, unique_indices: bool = False
    ):
        self.data, self.indices, self.indptr = map(jnp.asarray, args)
        self.shape, self.indices_sorted, self.unique_indices = tuple(shape), bool(indices_sorted), bool(unique_indices)
        n = self.n_batch
        if self.n_dense < 0 or n + 2 + self.n_dense != len(self.shape) or self.data.shape[n] != self.nse:
            raise ValueError(
                f"BCSR: data of shape {self.data.shape} and indices of shape {self.indices.shape} do not fit shape"
                f" {self.shape}."
            )
        if self.indptr.shape[n:] != (self.shape[n] + 1,):
            raise ValueError(
                f"BCSR: indptr must have one element more than there are rows, {self.shape[n] + 1}, got shape"
                f" {self.indptr.shape}."
            )

    @classmethod
    def fromdense(
        cls, mat, *, nse: int | None = None, index_dtype: Any = "int32", n_dense: int = 0, n_batch: int = 0
    ) -> "BCSR":
        """The elements of dense matrices that are not 0. Under jit `nse` must be given."""
        return bcsr_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> "BCSR":
        """The same as a BCOO with two sparse axes."""
        if arr.n_sparse != 2:
            raise NotImplementedError(f"BCSR.from_bcoo takes arrays with two sparse axes, got {arr.n_sparse}.")
        arr = arr.sort_indices()
        data, indices = arr._full()
        starts = each(lambda rows: pointers(rows[:, 0], arr._sparse[0]), arr.n_batch)(indices)
        return cls(
            (data, indices[..., 1], starts), shape=arr.shape, indices_sorted=True, unique_indices=arr.unique_indices
        )

    @classmethod
    def from_scipy_sparse(cls, mat, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0) -> "BCSR":
        """From a matrix of scipy.sparse."""
        return cls.from_bcoo(BCOO.from_scipy_sparse(mat, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch))

    @classmethod
    def _empty(
        cls, shape, *, dtype=None, index_dtype="int32", n_dense: int = 0, n_batch: int = 0, nse: int = 0
    ) -> "BCSR":
        return cls.from_bcoo(
            BCOO._empty(shape, dtype=dtype, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch, nse=nse)
        )

    @classmethod
    def _eye(cls, N, M, k, *, dtype=None, index_dtype="int32", n_dense: int = 0, n_batch: int = 0) -> "BCSR":
        return cls.from_bcoo(BCOO._eye(N, M, k, dtype=dtype, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch))

    @override
    def _layout(self) -> dict:
        return {"n_batch": self.n_batch, "n_dense": self.n_dense}

    def to_bcoo(self) -> BCOO:
        """The same as BCOO."""
        batch = self.shape[: self.n_batch]
        rows = each(lambda p: rows_of(p, self.nse), self.n_batch)(with_batch(self.indptr, batch))
        indices = jnp.stack([rows, with_batch(self.indices, batch)], -1)
        return BCOO(
            (self.data, indices),
            shape=self.shape,
            indices_sorted=self.indices_sorted,
            unique_indices=self.unique_indices,
        )

    @override
    def todense(self):
        """The same as a dense array."""
        return self.to_bcoo().todense()

    @override
    def transpose(self, axes=None):
        """Rows can't become columns in this format: NotImplementedError."""
        raise NotImplementedError("BCSR has no transpose; use to_bcoo().transpose().")

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> "BCSR":
        """The same with one element at each index, in order."""
        return BCSR.from_bcoo(self.to_bcoo().sum_duplicates(nse, remove_zeros))

    @override
    def tree_flatten(self):
        return (self.data, self.indices, self.indptr), self._info

    @override
    @classmethod
    def tree_unflatten(cls, aux_data, children):
        self = object.__new__(cls)
        self.data, self.indices, self.indptr = children
        self.shape, self.indices_sorted, self.unique_indices = aux_data
        if (
            hasattr(self.data, "ndim")
            and hasattr(self.indices, "ndim")
            and self.n_batch + 2 + self.n_dense != len(self.shape)
        ):
            batch = self.indices.shape[:-1]  # vmap took batch axes away, or added some
            self.shape = (*batch, *self.shape[len(self.shape) - 2 - self.n_dense :])
        return self


def bcsr_fromdense(
    mat, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: Any = "int32"
) -> BCSR:
    """Makes a BCSR array of a dense one: the elements that are not 0.

    Args:
        mat: a dense array of any dtype with n_batch + 2 + n_dense axes.
        nse: how many elements each batch stores; int. It must be given under jit; by default it is as many as there
            are.
        n_batch, n_dense: how many leading axes are batch axes, and how many trailing ones are dense; ints.
        index_dtype: the integer dtype of indices.

    Returns:
        a BCSR of the same shape and dtype.

    Raises:
        ValueError: there are not two sparse axes.
        ConcretizationTypeError: `nse` is missing under a transformation.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> sparse.bcsr_fromdense(jnp.eye(2))
        BCSR(float32[2, 2], nse=2)
    """
    mat = jnp.asarray(mat)
    if mat.ndim - n_batch - n_dense != 2:
        raise ValueError(
            f"bcsr_fromdense: there must be two sparse axes; shape {mat.shape} with n_batch={n_batch},"
            f" n_dense={n_dense} has {mat.ndim - n_batch - n_dense}."
        )
    return BCSR.from_bcoo(bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype))


def bcsr_todense(mat: BCSR):
    """Makes a dense array of a BCSR.

    Args:
        mat: a BCSR of any dtype.

    Returns:
        a dense array of the same shape and dtype.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> sparse.bcsr_todense(sparse.bcsr_fromdense(jnp.eye(2))).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    return mat.todense()


def bcsr_extract(indices, indptr, mat):
    """The elements of dense matrices at the places that a BCSR stores.

    Args:
        indices: the columns: integers of shape (*batch, nse).
        indptr: where each row begins: integers of shape (*batch, rows + 1).
        mat: a dense array of any dtype and of shape (*batch, rows, columns, *dense).

    Returns:
        an array of the dtype of `mat` and of shape (*batch, nse, *dense).

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> sparse.bcsr_extract(jnp.array([1, 0]), jnp.array([0, 1, 2]), jnp.arange(4.).reshape(2, 2))
        Array([1., 2.], dtype=float32)
    """
    indices, indptr, mat = jnp.asarray(indices), jnp.asarray(indptr), jnp.asarray(mat)
    rows = each(lambda p: rows_of(p, indices.shape[-1]), indptr.ndim - 1)(indptr)
    return _extract(jnp.stack([rows, indices], -1), mat)


def bcsr_dot_general(
    lhs, rhs, *, dimension_numbers: Any, precision: Any = None, preferred_element_type: Any = None, out_sharding=None
):
    """The product of a BCSR and another array; see `bcoo_dot_general`.

    Args:
        lhs, rhs: BCSR or dense arrays of any dtypes.
        dimension_numbers, precision, preferred_element_type, out_sharding: as for `bcoo_dot_general`.

    Returns:
        an array of the shape that `weft.lax.dot_general` gives: dense if an operand is dense, otherwise a BCOO.

    Raises:
        TypeError: the axes or their sizes do not fit.
        NotImplementedError: `out_sharding` is given.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> m = sparse.bcsr_fromdense(jnp.eye(2))
        >>> sparse.bcsr_dot_general(m, jnp.ones(2), dimension_numbers=(([1], [0]), ([], [])))
        Array([1., 1.], dtype=float32)
    """
    lhs, rhs = (x.to_bcoo() if isinstance(x, BCSR) else x for x in (lhs, rhs))
    return bcoo_dot_general(
        lhs,
        rhs,
        dimension_numbers=dimension_numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )


def bcsr_broadcast_in_dim(
    mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding=None
) -> BCSR:
    """`bcoo_broadcast_in_dim` of a BCSR.

    Args:
        mat: a BCSR of any dtype.
        shape, broadcast_dimensions, sharding: as for `bcoo_broadcast_in_dim`.

    Returns:
        a BCSR of the dtype of `mat` and the given shape.

    Raises:
        ValueError: the shape of `mat` does not broadcast.
        NotImplementedError: `sharding` is given, or the result would not have two sparse axes.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> m = sparse.bcsr_fromdense(jnp.eye(2))
        >>> sparse.bcsr_broadcast_in_dim(m, shape=[3, 2, 2], broadcast_dimensions=[1, 2])
        BCSR(float32[3, 2, 2], nse=2, n_batch=1)
    """
    return BCSR.from_bcoo(
        bcoo_broadcast_in_dim(mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions, sharding=sharding)
    )


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """`bcoo_concatenate` of BCSR arrays.

    Args:
        operands: a sequence of BCSR arrays of any dtypes.
        dimension: the axis; int.

    Returns:
        a BCSR of the promoted dtype, whose shape adds up the sizes along the axis.

    Raises:
        ValueError: there are no arrays, or their layouts or shapes differ.
        NotImplementedError: the axis is dense.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> sparse.bcsr_concatenate([sparse.bcsr_fromdense(jnp.eye(2))] * 2, dimension=0)
        BCSR(float32[4, 2], nse=4)
    """
    return BCSR.from_bcoo(bcoo_concatenate([m.to_bcoo() for m in operands], dimension=dimension))


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """Adds up elements at the same index, and sorts the indices.

    Args:
        mat: a BCSR of any shape and dtype.
        nse: how many elements each batch stores; int. It must be given under jit; by default it is as many as there
            are.

    Returns:
        a BCSR of the same shape and dtype with unique, sorted indices.

    Raises:
        ConcretizationTypeError: `nse` is missing under a transformation.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> sparse.bcsr_sum_duplicates(sparse.bcsr_fromdense(jnp.eye(2)), nse=3)
        BCSR(float32[2, 2], nse=3)
    """
    return mat.sum_duplicates(nse, remove_zeros=False)


def bcsr_eliminate_zeros(mat: BCSR, nse: int | None = None) -> BCSR:
    """Removes stored elements that are 0, adds up elements at the same index, and sorts the indices.

    Args:
        mat: a BCSR of any shape and dtype.
        nse: how many elements each batch stores; int. It must be given under jit; by default it is as many as there
            are.

    Returns:
        a BCSR of the same shape and dtype with unique, sorted indices.

    Raises:
        ConcretizationTypeError: `nse` is missing under a transformation.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental.sparse.bcsr import bcsr_eliminate_zeros, bcsr_fromdense
        >>> bcsr_eliminate_zeros(bcsr_fromdense(jnp.eye(2), nse=4))
        BCSR(float32[2, 2], nse=2)
    """
    return mat.sum_duplicates(nse, remove_zeros=True)
