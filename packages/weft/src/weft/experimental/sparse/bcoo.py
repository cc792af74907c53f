"""BCOO: batched coordinates. Elements lie at rows of indices; leading axes are batches with indices of their own,
trailing axes are dense.
"""

from __future__ import annotations

import math
from typing import Any, Iterator, Sequence

from ...base.annotations import override
from ...base import dtypes
from ... import lax, numpy as jnp
from ...core.trace import Tracer
from ...base.errors import ConcretizationTypeError, at_user_line, warn
from ...base.source_info import api_boundary
from ...base.registration import register_pytree_node_class
from .base import (
    JAXSparse,
    SparseEfficiencyError,
    SparseEfficiencyWarning,
    SparseInfo,
    accumulate,
    columns,
    each,
    inside,
    operator,
    sparsified,
    spread,
    with_batch,
)


@register_pytree_node_class
class BCOO(JAXSparse):
    """A sparse array of any rank: `data` [batch…, nse, dense…] at `indices` [batch…, nse, n_sparse].

    Rows of indices out of bounds are padding; elements at equal indices add up.

    Args:
        args: (data, indices).
        shape: batch sizes, sparse sizes, dense sizes.
        indices_sorted, unique_indices: promises about the indices.

    Raises:
        ValueError: for shapes that do not fit.
        TypeError: for indices that are not integers.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental.sparse import BCOO
        >>> m = BCOO.fromdense(jnp.array([[0., 2.], [3., 0.]]))
        >>> m
        BCOO(float32[2, 2], nse=2)
        >>> m @ jnp.ones(2)
        Array([2., 3.], dtype=float32)
    """

    n_batch = property(lambda self: self.indices.ndim - 2)
    n_sparse = property(lambda self: self.indices.shape[-1])
    n_dense = property(lambda self: self.data.ndim - 1 - self.n_batch)
    nse = property(lambda self: self.indices.shape[-2], doc="How many elements are stored (for each batch).")
    _info = property(lambda self: SparseInfo(self.shape, self.indices_sorted, self.unique_indices))
    _batch = property(lambda self: self.shape[: self.n_batch])
    _sparse = property(lambda self: self.shape[self.n_batch : self.n_batch + self.n_sparse])
    _dense = property(lambda self: self.shape[self.n_batch + self.n_sparse :])

    def __init__(
        self, args: tuple, *, shape: Sequence[int], indices_sorted: bool = False, unique_indices: bool = False
    ):
        self.data, self.indices = map(jnp.asarray, args)
        self.shape, self.indices_sorted, self.unique_indices = tuple(shape), bool(indices_sorted), bool(unique_indices)
        _check(self)

    @classmethod
    def fromdense(
        cls, mat, *, nse: int | None = None, index_dtype: Any = "int32", n_dense: int = 0, n_batch: int = 0
    ) -> "BCOO":
        """The elements of a dense array that are not 0. Under jit `nse`, how many to store, must be given."""
        return bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(cls, mat, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0) -> "BCOO":
        """From a matrix of scipy.sparse."""
        if n_dense or n_batch:
            raise NotImplementedError(
                "BCOO.from_scipy_sparse makes matrices without batch and dense axes; use update_layout on the result."
            )
        coo = mat.tocoo()
        indices = jnp.stack([jnp.asarray(coo.row), jnp.asarray(coo.col)], 1).astype(index_dtype or "int32")
        return cls((jnp.asarray(coo.data), indices), shape=coo.shape)

    @classmethod
    def _empty(
        cls, shape, *, dtype=None, index_dtype="int32", n_dense: int = 0, n_batch: int = 0, nse: int = 0
    ) -> "BCOO":
        shape = tuple(shape)
        n_sparse = len(shape) - n_dense - n_batch
        if n_sparse < 0 or n_dense < 0 or n_batch < 0 or nse < 0:
            raise ValueError(
                f"empty: shape={shape} has no room for n_batch={n_batch} and n_dense={n_dense}, or nse={nse} is"
                " negative."
            )
        batch, sparse, dense = shape[:n_batch], shape[n_batch : n_batch + n_sparse], shape[n_batch + n_sparse :]
        indices = jnp.broadcast_to(jnp.array(sparse, index_dtype), (*batch, nse, n_sparse))
        return cls(
            (jnp.zeros((*batch, nse, *dense), dtype), indices), shape=shape, indices_sorted=True, unique_indices=True
        )

    @classmethod
    def _eye(
        cls, N: int, M: int, k: int, *, dtype=None, index_dtype="int32", n_batch: int = 0, n_dense: int = 0
    ) -> "BCOO":
        """Entries on diagonal `k`: one for each place that lies in both the rows and the columns."""
        n_sparse = 2 - n_batch - n_dense
        if n_sparse < 0:
            raise ValueError(f"eye: n_batch={n_batch} and n_dense={n_dense} are more than the two axes of a matrix.")
        first, count = max(0, -k), max(0, min(N - max(0, -k), M - max(0, k)))
        if not count:
            return cls._empty((N, M), dtype=dtype, index_dtype=index_dtype, n_batch=n_batch, n_dense=n_dense)
        rows = jnp.arange(first, first + count, dtype=index_dtype)
        if n_batch == n_dense == 0:
            return cls(
                (jnp.ones(count, dtype), jnp.stack([rows, rows + k], 1)),
                shape=(N, M),
                indices_sorted=True,
                unique_indices=True,
            )
        whole = jnp.eye(N, M, k, dtype)
        return bcoo_fromdense(
            whole, nse=count if n_batch == 0 else 1, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype
        )

    @override
    def _layout(self) -> dict:
        return {"n_batch": self.n_batch, "n_dense": self.n_dense}

    def _with(self, data, indices, shape=None, *, indices_sorted: bool = False, unique_indices: bool = False) -> "BCOO":
        return BCOO(
            (data, indices),
            shape=self.shape if shape is None else shape,
            indices_sorted=indices_sorted,
            unique_indices=unique_indices,
        )

    def _full(self) -> tuple:
        """(data, indices) with batch axes in full."""
        return with_batch(self.data, self._batch), with_batch(self.indices, self._batch)

    def _clean(self) -> tuple:
        """(data, indices) with batch axes in full, and 0 where indices are padding."""
        data, indices = self._full()
        return jnp.where(spread(inside(indices, self._sparse), data), data, jnp.zeros((), data.dtype)), indices

    @override
    def todense(self):
        """The same as a dense array."""
        return bcoo_todense(self)

    @override
    def transpose(self, axes: Sequence[int] | None = None) -> "BCOO":
        """The array with its axes in another order."""
        return bcoo_transpose(self, permutation=tuple(range(self.ndim))[::-1] if axes is None else tuple(axes))

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> "BCOO":
        """The same with one element at each index, in order; `nse` of them. Stored zeros go too with `remove_zeros`."""
        return _sum_duplicates(self, nse, remove_zeros)

    def sort_indices(self) -> "BCOO":
        """The same with its indices in lexicographic order."""
        return bcoo_sort_indices(self)

    def update_layout(
        self, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
    ) -> "BCOO":
        """The same with other numbers of batch and dense axes; see `bcoo_update_layout`."""
        return bcoo_update_layout(self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)

    @override
    def tree_flatten(self):
        return (self.data, self.indices), self._info

    @override
    @classmethod
    def tree_unflatten(cls, aux_data, children):
        self = object.__new__(cls)
        self.data, self.indices = children
        self.shape, self.indices_sorted, self.unique_indices = aux_data
        if hasattr(self.data, "ndim") and hasattr(self.indices, "ndim") and self.indices.ndim >= 2:
            rank = self.data.ndim - 1 + self.n_sparse
            if rank != len(self.shape) and self.n_dense >= 0:  # vmap took batch axes away, or added some
                batch = [max(a, b) for a, b in zip(self.data.shape, self.indices.shape)][: self.n_batch]
                self.shape = (*batch, *self.shape[len(self.shape) - self.n_sparse - self.n_dense :])
        return self

    # operators and methods of arrays

    __add__, __radd__ = operator(jnp.add), operator(jnp.add, True)
    __sub__, __rsub__ = operator(jnp.subtract), operator(jnp.subtract, True)
    __mul__, __rmul__ = operator(jnp.multiply), operator(jnp.multiply, True)
    __matmul__, __rmatmul__ = operator(jnp.matmul), operator(jnp.matmul, True)
    __truediv__, __rtruediv__ = operator(jnp.divide), operator(jnp.divide, True)
    __pow__, __rpow__ = operator(jnp.power), operator(jnp.power, True)
    __lt__ = operator(jnp.less)
    __le__ = operator(jnp.less_equal)
    __gt__ = operator(jnp.greater)
    __ge__ = operator(jnp.greater_equal)
    __eq__ = operator(jnp.equal)
    __ne__ = operator(jnp.not_equal)
    __hash__ = None

    @override
    def __neg__(self) -> "BCOO":
        return sparsified(jnp.negative)(self)

    @override
    def __pos__(self) -> "BCOO":
        return sparsified(jnp.positive)(self)

    def __abs__(self) -> "BCOO":
        return sparsified(jnp.abs)(self)

    def __bool__(self) -> bool:
        return True

    @override
    def __getitem__(self, index: Any) -> "BCOO":
        return sparsified(lambda x: x[index])(self)

    def __iter__(self) -> Iterator["BCOO"]:
        return iter([self[k] for k in range(len(self))])

    @override
    def sum(self, *args: Any, **kwargs: Any) -> Any:
        """The sum of elements, as of `weft.numpy.sum`."""
        return sparsified(lambda x: jnp.sum(x, *args, **kwargs))(self)

    def reshape(self, *args: Any, **kwargs: Any) -> "BCOO":
        """The same elements with another shape."""
        return sparsified(lambda x: x.reshape(*args, **kwargs))(self)

    def astype(self, *args: Any, **kwargs: Any) -> "BCOO":
        """The array with another dtype."""
        return sparsified(lambda x: x.astype(*args, **kwargs))(self)


def _check(m: BCOO) -> None:
    if m.indices.ndim < 2 or not dtypes.is_int(m.indices.dtype):
        raise TypeError(
            f"BCOO: indices must be integers of shape (batch…, nse, n_sparse), got {dtypes.name(m.indices.dtype)} of"
            f" shape {m.indices.shape}."
        )
    n = m.n_batch
    if m.n_dense < 0 or n + m.n_sparse + m.n_dense != len(m.shape):
        raise ValueError(
            f"BCOO: data of shape {m.data.shape} and indices of shape {m.indices.shape} do not fit shape {m.shape}."
        )
    for name, got, rest in (
        ("data", m.data.shape, (m.nse, *m._dense)),
        ("indices", m.indices.shape, (m.nse, m.n_sparse)),
    ):
        if got[n:] != rest or any(a not in (1, b) for a, b in zip(got, m._batch)):
            raise ValueError(
                f"BCOO: {name} must have shape {(*m._batch, *rest)} for shape {m.shape}, nse={m.nse}, n_batch={n}, got"
                f" {got}."
            )


def _bcoo(name: str, *mats) -> None:
    for m in mats:
        if not isinstance(m, BCOO):
            raise TypeError(f"{name} takes BCOO arrays, got {type(m).__name__}; make one with BCOO.fromdense.")


@api_boundary
def bcoo_todense(mat: BCOO):
    """Makes a dense array of a BCOO. Elements at the same index add up.

    Args:
        mat: a BCOO of any dtype.

    Returns:
        a dense array of the same shape and dtype.

    Raises:
        TypeError: `mat` is not a BCOO.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> sparse.bcoo_todense(sparse.eye(2))
        Array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    _bcoo("bcoo_todense", mat)
    inner = mat.shape[mat.n_batch :]

    def one(data, indices):
        if not indices.shape[-1]:
            return jnp.sum(data, 0, dtype=data.dtype)
        # a row with one index out of bounds must not wrap around
        safe = jnp.where(
            inside(indices, inner[: indices.shape[-1]])[:, None],
            indices,
            jnp.array(inner[: indices.shape[-1]], indices.dtype),
        )
        return accumulate(inner, data.dtype, columns(safe), data)

    return each(one, mat.n_batch)(*mat._full())


@api_boundary
def bcoo_fromdense(
    mat, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: Any = "int32"
) -> BCOO:
    """Makes a BCOO of a dense array: the elements that are not 0.

    Args:
        mat: a dense array of any shape and dtype.
        nse: how many elements each batch stores; int. It must be given under jit; by default it is as many as there
            are.
        n_batch, n_dense: how many leading axes are batch axes, and how many trailing ones are dense; ints.
        index_dtype: the integer dtype of indices.

    Returns:
        a BCOO of the same shape and dtype.

    Raises:
        ConcretizationTypeError: `nse` is missing under a transformation.
        ValueError: the array has fewer axes than n_batch + n_dense.
        TypeError: `nse` is negative.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> sparse.bcoo_fromdense(jnp.array([[0., 2.], [3., 0.]]), n_batch=1)
        BCOO(float32[2, 2], nse=1, n_batch=1)
    """
    mat = jnp.asarray(mat)
    n_sparse = mat.ndim - n_batch - n_dense
    if n_sparse < 0 or n_batch < 0 or n_dense < 0:
        raise ValueError(
            f"bcoo_fromdense: an array of shape {mat.shape} has no room for n_batch={n_batch} and n_dense={n_dense}."
        )
    mask = mat != 0
    if n_dense:
        mask = jnp.any(mask, tuple(range(mat.ndim - n_dense, mat.ndim)))
    if nse is None:
        if isinstance(mask, Tracer):
            raise ConcretizationTypeError(
                at_user_line(
                    "bcoo_fromdense: how many elements to store depends on values, which are not known while a function"
                    " is traced. Pass nse."
                )
            )
        counts = jnp.sum(mask, tuple(range(n_batch, mask.ndim)))
        nse = int(jnp.max(counts)) if counts.size else 0
    if nse < 0:
        raise TypeError(f"bcoo_fromdense: nse must not be negative, got {nse}.")
    sizes = mask.shape[n_batch:]

    def places(mask):
        if not n_sparse:
            return jnp.zeros((nse, 0), index_dtype)
        return jnp.stack(jnp.nonzero(mask, size=nse, fill_value=sizes), -1).astype(index_dtype)

    indices = each(places, n_batch)(mask)
    return BCOO((_extract(indices, mat), indices), shape=mat.shape, indices_sorted=True, unique_indices=True)


def _extract(indices, mat):
    """The elements of a dense array at indices; 0 at padding."""

    def one(indices, mat):
        if not indices.shape[-1]:  # one element; any more are padding
            return jnp.zeros((indices.shape[0], *mat.shape), mat.dtype).at[:1].set(mat)
        good = inside(indices, mat.shape[: indices.shape[-1]])
        got = (
            mat[columns(jnp.where(good[:, None], indices, 0))]
            if mat.size
            else jnp.zeros((indices.shape[0], *mat.shape[indices.shape[-1] :]), mat.dtype)
        )
        return jnp.where(spread(good, got), got, jnp.zeros((), mat.dtype))

    n_batch = indices.ndim - 2
    return each(one, n_batch)(with_batch(indices, mat.shape[:n_batch]), mat)


@api_boundary
def bcoo_extract(sparr: BCOO, arr, *, assume_unique: bool | None = None) -> BCOO:
    """The elements of a dense array at the places that a sparse one stores.

    Args:
        sparr: a BCOO, which gives the places.
        arr: a dense array of the same shape and of any dtype.
        assume_unique: whether no index occurs twice; by default as `sparr` says. Otherwise only the first of equal
            indices gets the element, and the others get 0.

    Returns:
        a BCOO of the shape and indices of `sparr` and the dtype of `arr`.

    Raises:
        TypeError: `sparr` is not a BCOO.
        ValueError: the shapes differ.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> sparse.bcoo_extract(sparse.eye(2), jnp.arange(4.).reshape(2, 2)).data
        Array([0., 3.], dtype=float32)
    """
    _bcoo("bcoo_extract", sparr)
    arr = jnp.asarray(arr)
    if arr.shape != sparr.shape:
        raise ValueError(f"bcoo_extract: the arrays must have the same shape, got {sparr.shape} and {arr.shape}.")
    data = _extract(sparr.indices, arr)
    if not (sparr.unique_indices if assume_unique is None else assume_unique):
        _, indices = sparr._full()

        def first(rows):
            same = jnp.all(rows[:, None] == rows[None], -1)
            return jnp.argmax(same, 1) == jnp.arange(rows.shape[0])

        data = jnp.where(spread(each(first, sparr.n_batch)(indices), data), data, jnp.zeros((), data.dtype))
    return sparr._with(data, sparr.indices, indices_sorted=sparr.indices_sorted, unique_indices=sparr.unique_indices)


@api_boundary
def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """Permutes the axes of a BCOO: batch, sparse and dense axes each among themselves.

    Args:
        mat: a BCOO of any shape and dtype.
        permutation: the axes in their new order; ints.

    Returns:
        a BCOO of the same dtype.

    Raises:
        TypeError: `permutation` is not a permutation of the axes.
        NotImplementedError: axes of different kinds would mix. Change the layout with `update_layout` first.

    Example:
        >>> from weft.experimental import sparse
        >>> sparse.bcoo_transpose(sparse.eye(2, 3, k=1), permutation=[1, 0])
        BCOO(float32[3, 2], nse=2)
    """
    _bcoo("bcoo_transpose", mat)
    permutation = tuple(int(p) for p in permutation)
    if sorted(permutation) != list(range(mat.ndim)):
        raise TypeError(f"bcoo_transpose: {permutation} is not a permutation of the axes of shape {mat.shape}.")
    n, s = mat.n_batch, mat.n_batch + mat.n_sparse
    batch, sparse, dense = permutation[:n], permutation[n:s], permutation[s:]
    for kind, axes, low, high in (("batch", batch, 0, n), ("dense", dense, s, mat.ndim)):
        if any(not low <= a < high for a in axes):
            raise NotImplementedError(
                f"bcoo_transpose can't permute {kind} axes with others: permutation {permutation} with n_batch={n},"
                f" n_dense={mat.n_dense}. Change the layout with update_layout first."
            )
    indices = (
        mat.indices.transpose(*batch, n, n + 1)[..., jnp.array([a - n for a in sparse], int)]
        if mat.n_sparse
        else mat.indices.transpose(*batch, n, n + 1)
    )
    data = mat.data.transpose(*batch, n, *[a - s + n + 1 for a in dense])
    same = sparse == tuple(range(n, s))
    return mat._with(
        data,
        indices,
        tuple(mat.shape[p] for p in permutation),
        indices_sorted=mat.indices_sorted and same,
        unique_indices=mat.unique_indices,
    )


@api_boundary
def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """Sorts the elements of a BCOO by their indices, in lexicographic order.

    Args:
        mat: a BCOO of any shape and dtype.

    Returns:
        a BCOO of the same shape and dtype.

    Raises:
        TypeError: `mat` is not a BCOO.

    Example:
        >>> from weft.experimental import sparse
        >>> sparse.bcoo_sort_indices(sparse.eye(2, 3, k=1).T).indices.tolist()
        [[1, 0], [2, 1]]
    """
    _bcoo("bcoo_sort_indices", mat)
    if mat.indices_sorted or not mat.n_sparse:
        return mat
    data, indices = mat._full()
    order = each(_order, mat.n_batch)(indices)
    take = each(lambda x, o: x[o], mat.n_batch)
    return mat._with(take(data, order), take(indices, order), indices_sorted=True, unique_indices=mat.unique_indices)


def _order(rows):
    """The lexicographic order of rows of indices."""
    return lax.sort((*columns(rows), jnp.arange(rows.shape[0])), num_keys=rows.shape[1])[-1]


@api_boundary
def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """Adds up elements at the same index, and sorts the indices.

    Args:
        mat: a BCOO of any shape and dtype.
        nse: how many elements each batch stores; int. It must be given under jit; by default it is as many as there
            are.

    Returns:
        a BCOO of the same shape and dtype with unique, sorted indices.

    Raises:
        TypeError: `mat` is not a BCOO.
        ConcretizationTypeError: `nse` is missing under a transformation.

    Example:
        >>> from weft.experimental import sparse
        >>> m = sparse.bcoo_concatenate([sparse.eye(2)] * 2, dimension=0)
        >>> sparse.bcoo_sum_duplicates(sparse.bcoo_reduce_sum(m, axes=[0])).data
        Array([2., 2.], dtype=float32)
    """
    return _sum_duplicates(mat, nse, remove_zeros=False)


def _sum_duplicates(mat: BCOO, nse: int | None, remove_zeros: bool) -> BCOO:
    _bcoo("bcoo_sum_duplicates", mat)
    data, indices = mat._clean()
    sizes = jnp.array(mat._sparse, indices.dtype)

    def group(data, rows):
        """(number of the group of each row, in order of the rows; first row of each group; how many groups)"""
        good = inside(rows, mat._sparse)
        if remove_zeros:
            good = good & jnp.any(data != 0, tuple(range(1, data.ndim)))
        rows = jnp.where(good[:, None], rows, sizes)
        order = _order(rows) if mat.n_sparse else jnp.argsort(~good)
        rows, good = rows[order], good[order]
        new = good & jnp.concatenate([jnp.ones(min(1, rows.shape[0]), bool), jnp.any(rows[1:] != rows[:-1], -1)])
        return data[order], rows, jnp.where(good, jnp.cumsum(new) - 1, rows.shape[0]), jnp.sum(new)

    data, indices, groups, counts = each(group, mat.n_batch)(data, indices)
    if nse is None:
        if isinstance(counts, Tracer):
            raise ConcretizationTypeError(
                at_user_line(
                    "bcoo_sum_duplicates: how many elements remain depends on values, which are not known while a"
                    " function is traced. Pass nse."
                )
            )
        nse = int(jnp.max(counts)) if counts.size else 0

    def collect(data, rows, groups):
        groups = jnp.where(groups < nse, groups, nse)
        return (
            accumulate((nse, *data.shape[1:]), data.dtype, groups, data),
            jnp.broadcast_to(sizes, (nse, rows.shape[1])).at[groups].set(rows, mode="drop"),
        )

    return mat._with(*each(collect, mat.n_batch)(data, indices, groups), indices_sorted=True, unique_indices=True)


def bcoo_eliminate_zeros(mat: BCOO, nse: int | None = None) -> BCOO:
    """Removes stored elements that are 0, adds up elements at the same index, and sorts the indices.

    Args:
        mat: a BCOO of any shape and dtype.
        nse: how many elements each batch stores; int. It must be given under jit; by default it is as many as there
            are.

    Returns:
        a BCOO of the same shape and dtype with unique, sorted indices.

    Raises:
        ConcretizationTypeError: `nse` is missing under a transformation.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental.sparse.bcoo import BCOO, bcoo_eliminate_zeros
        >>> bcoo_eliminate_zeros(BCOO((jnp.array([0., 2.]), jnp.array([[0], [1]])), shape=(3,)))
        BCOO(float32[3], nse=1)
    """
    return mat.sum_duplicates(nse, remove_zeros=True)


@api_boundary
def bcoo_update_layout(
    mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
) -> BCOO:
    """Changes how many axes are batch axes, and how many are dense.

    More of them are stored wastefully: each element once for each batch, or in a dense row of its own.

    Args:
        mat: a BCOO of any shape and dtype.
        n_batch, n_dense: the new numbers of axes; ints. By default they stay as they are.
        on_inefficient: 'error' refuses a wasteful layout, 'warn' warns of it, None allows it.

    Returns:
        a BCOO of the same shape and dtype.

    Raises:
        SparseEfficiencyError: the new layout is wasteful, and `on_inefficient` is 'error'.
        ValueError: the array has fewer axes than n_batch + n_dense, or `on_inefficient` is unknown.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> sparse.eye(3, n_batch=1).update_layout(n_batch=0)
        BCOO(float32[3, 3], nse=3)
    """
    _bcoo("bcoo_update_layout", mat)
    n_batch = mat.n_batch if n_batch is None else int(n_batch)
    n_dense = mat.n_dense if n_dense is None else int(n_dense)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > mat.ndim:
        raise ValueError(
            f"bcoo_update_layout: n_batch={n_batch} and n_dense={n_dense} must not be negative, nor more than the"
            f" {mat.ndim} axes."
        )
    if on_inefficient not in ("error", "warn", None):
        raise ValueError(f"bcoo_update_layout: on_inefficient must be 'error', 'warn' or None, got {on_inefficient!r}.")
    for name, old, new, sizes in (
        ("n_batch", mat.n_batch, n_batch, mat.shape[mat.n_batch : n_batch]),
        ("n_dense", mat.n_dense, n_dense, mat.shape[mat.ndim - n_dense : mat.ndim - mat.n_dense]),
    ):
        if new > old and math.prod(sizes) > 1 and on_inefficient is not None:
            message = (
                f"for a matrix of shape {mat.shape}, increasing {name} from {old} to {new} results in inefficient"
                " storage; on_inefficient=None allows it."
            )
            if on_inefficient == "error":
                raise SparseEfficiencyError(f"bcoo_update_layout: {message}")
            warn(message, SparseEfficiencyWarning)
    while mat.n_dense > n_dense:
        mat = _dense_to_sparse(mat)
    while mat.n_batch > n_batch:
        mat = _batch_to_sparse(mat)
    while mat.n_batch < n_batch:
        mat = _sparse_to_batch(mat)
    while mat.n_dense < n_dense:
        mat = _sparse_to_dense(mat)
    return mat


def _dense_to_sparse(mat: BCOO) -> BCOO:
    """The first dense axis becomes the last sparse one: each stored element becomes as many as the axis is long."""
    data, indices = mat._full()
    size = mat._dense[0]

    def one(data, rows):
        n = rows.shape[0]
        rows = jnp.repeat(rows, size, 0)
        last = jnp.tile(jnp.arange(size, dtype=rows.dtype), n)
        return data.reshape(n * size, *data.shape[2:]), jnp.concatenate([rows, last[:, None]], 1)

    return mat._with(
        *each(one, mat.n_batch)(data, indices), indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices
    )


def _batch_to_sparse(mat: BCOO) -> BCOO:
    """The last batch axis becomes the first sparse one."""
    data, indices = mat._full()
    size, nse = mat._batch[-1], mat.nse

    def one(data, rows):  # [size, nse, …]
        first = jnp.broadcast_to(jnp.arange(size, dtype=rows.dtype)[:, None, None], (size, nse, 1))
        first = jnp.where(inside(rows, mat._sparse)[..., None], first, size)  # padding stays padding
        return data.reshape(size * nse, *data.shape[2:]), jnp.concatenate([first, rows], -1).reshape(size * nse, -1)

    return mat._with(*each(one, mat.n_batch - 1)(data, indices), unique_indices=mat.unique_indices)


def _sparse_to_batch(mat: BCOO) -> BCOO:
    """The first sparse axis becomes the last batch axis: each batch stores all elements, and those of others as
    padding.
    """
    data, indices = mat._full()
    size, rest = mat._sparse[0], jnp.array(mat._sparse[1:], indices.dtype)

    def one(data, rows):
        mine = rows[:, 0] == jnp.arange(size, dtype=rows.dtype)[:, None]  # [size, nse]
        return (
            jnp.where(mine.reshape(*mine.shape, *[1] * (data.ndim - 1)), data, jnp.zeros((), data.dtype)),
            jnp.where(mine[..., None], rows[:, 1:], rest),
        )

    return mat._with(*each(one, mat.n_batch)(data, indices), unique_indices=mat.unique_indices and mat.n_sparse > 1)


def _sparse_to_dense(mat: BCOO) -> BCOO:
    """The last sparse axis becomes the first dense one: each element gets a row of its own."""
    data, indices = mat._full()
    size = mat._sparse[-1]

    def one(data, rows):
        n = rows.shape[0]
        rows_of = jnp.where(rows[:, -1] < 0, size, rows[:, -1])
        return (
            jnp.zeros((n, size, *data.shape[1:]), data.dtype).at[jnp.arange(n), rows_of].set(data, mode="drop"),
            rows[:, :-1],
        )

    return mat._with(*each(one, mat.n_batch)(data, indices), indices_sorted=mat.indices_sorted)
