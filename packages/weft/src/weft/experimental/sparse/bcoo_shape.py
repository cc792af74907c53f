"""Shapes of BCOO arrays: slices, reshapes, sums, concatenation; and elementwise products, which broadcast."""

from __future__ import annotations

import math
from typing import Any, Sequence

from ...base import promotion
from ... import lax, numpy as jnp
from ...lax.common import canonical_axes
from ...lax.indexing import GatherDimensionNumbers
from ...base.source_info import api_boundary
from .base import each, inside, spread, with_batch
from .bcoo import BCOO, _bcoo, _extract, bcoo_sum_duplicates


def _kinds(mat: BCOO, axes: Sequence[int]) -> tuple[list, list, list]:
    """Axes by kind, each counted from the first of its kind."""
    n, s = mat.n_batch, mat.n_batch + mat.n_sparse
    return [a for a in axes if a < n], [a - n for a in axes if n <= a < s], [a - s for a in axes if a >= s]


def _without(sizes: Sequence[int], axes: Sequence[int]) -> tuple:
    return tuple(size for k, size in enumerate(sizes) if k not in axes)


def _drop_columns(mat: BCOO, axes: Sequence[int]) -> tuple:
    """(data, indices) without some sparse axes; padding stays padding, or is 0."""
    data, indices = mat._clean()
    kept = [k for k in range(mat.n_sparse) if k not in axes]
    good = inside(indices, mat._sparse)[..., None]
    if not kept:
        return data, indices[..., :0]
    sizes = jnp.array([mat._sparse[k] for k in kept], indices.dtype)
    return data, jnp.where(good, jnp.stack([indices[..., k] for k in kept], -1), sizes)


@api_boundary
def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """The sum over axes. Elements that fall onto the same index are not added, but stored one by one.

    Args:
        mat: a BCOO of any shape and dtype.
        axes: the axes to sum over; ints.

    Returns:
        a BCOO of the same dtype without these axes.

    Raises:
        AxisError: an axis does not exist.
        TypeError: `mat` is not a BCOO.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> sparse.bcoo_reduce_sum(sparse.eye(3), axes=[0]).todense()
        Array([1., 1., 1.], dtype=float32)
    """
    _bcoo("bcoo_reduce_sum", mat)
    axes = sorted(set(canonical_axes(tuple(dict.fromkeys(int(a) for a in axes)), mat.ndim, "axes")))
    batch, sparse, dense = _kinds(mat, axes)
    n = mat.n_batch
    data, indices = _drop_columns(mat, sparse) if sparse else mat._full()
    if dense:
        data = jnp.sum(data, tuple(n + 1 + k for k in dense), dtype=data.dtype)
    if batch:  # their elements are stored side by side
        nse = math.prod(mat._batch[k] for k in batch) * mat.nse
        target = range(n - len(batch), n)
        data, indices = (jnp.moveaxis(x, batch, target) for x in (data, indices))
        kept = _without(mat._batch, batch)
        data, indices = (x.reshape(*kept, nse, *x.shape[n + 1 :]) for x in (data, indices))
    return BCOO(
        (data, indices),
        shape=_without(mat.shape, axes),
        unique_indices=mat.unique_indices and not sparse and not batch,
        indices_sorted=mat.indices_sorted and not sparse and not batch,
    )


@api_boundary
def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """Removes axes of size 1.

    Args:
        arr: a BCOO of any shape and dtype.
        dimensions: the axes to remove; ints.

    Returns:
        a BCOO of the same dtype without these axes.

    Raises:
        AxisError: an axis does not exist.
        ValueError: an axis does not have size 1.

    Example:
        >>> from weft.experimental import sparse
        >>> sparse.bcoo_squeeze(sparse.eye(1, 3), dimensions=[0])
        BCOO(float32[3], nse=1)
    """
    _bcoo("bcoo_squeeze", arr)
    axes = canonical_axes(tuple(dimensions), arr.ndim, "dimensions")
    if any(arr.shape[a] != 1 for a in axes):
        raise ValueError(
            f"bcoo_squeeze: axes must have size 1, got dimensions={tuple(dimensions)} for shape {arr.shape}."
        )
    batch, sparse, dense = _kinds(arr, axes)
    data, indices = _drop_columns(arr, sparse) if sparse else arr._full()
    data = jnp.squeeze(data, (*batch, *[arr.n_batch + 1 + k for k in dense]))
    return BCOO(
        (data, jnp.squeeze(indices, tuple(batch))),
        shape=_without(arr.shape, axes),
        indices_sorted=arr.indices_sorted,
        unique_indices=arr.unique_indices,
    )


@api_boundary
def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """Reverses the elements along axes.

    Args:
        operand: a BCOO of any shape and dtype.
        dimensions: the axes; ints.

    Returns:
        a BCOO of the same shape and dtype.

    Raises:
        TypeError: an axis does not exist.

    Example:
        >>> from weft.experimental import sparse
        >>> sparse.bcoo_rev(sparse.eye(2), [0]).todense()
        Array([[0., 1.],
               [1., 0.]], dtype=float32)
    """
    _bcoo("bcoo_rev", operand)
    if any(not 0 <= d < operand.ndim for d in dimensions):
        raise TypeError(f"bcoo_rev: dimensions {tuple(dimensions)} must be axes of shape {operand.shape}.")
    batch, sparse, dense = _kinds(operand, dimensions)
    data, indices = operand._full()
    data = jnp.flip(data, (*batch, *[operand.n_batch + 1 + k for k in dense]))
    indices = jnp.flip(indices, tuple(batch))
    if sparse:
        flipped = jnp.where(
            jnp.array([k in sparse for k in range(operand.n_sparse)]),
            jnp.array(operand._sparse, indices.dtype) - 1 - indices,
            indices,
        )
        indices = jnp.where(
            inside(indices, operand._sparse)[..., None], flipped, jnp.array(operand._sparse, indices.dtype)
        )
    return operand._with(
        data, indices, indices_sorted=operand.indices_sorted and not sparse, unique_indices=operand.unique_indices
    )


def _window(mat: BCOO, starts: Sequence, sizes: Sequence[int], strides: Sequence[int]) -> BCOO:
    """Elements at starts + k strides, k < sizes, along sparse axes; starts may be traced."""
    data, indices = mat._clean()
    start = jnp.stack([jnp.asarray(s).astype(indices.dtype) for s in starts])
    stride, size = jnp.array(strides, indices.dtype), jnp.array(sizes, indices.dtype)
    moved = indices - start
    place = moved // stride
    good = jnp.all((moved >= 0) & (place < size) & (moved % stride == 0), -1) & inside(indices, mat._sparse)
    out = BCOO(
        (jnp.where(spread(good, data), data, jnp.zeros((), data.dtype)), jnp.where(good[..., None], place, size)),
        shape=(*mat._batch, *sizes, *mat._dense),
        unique_indices=mat.unique_indices,
    )
    return bcoo_sum_duplicates(out, math.prod(sizes)) if out.nse > math.prod(sizes) else out


@api_boundary
def bcoo_slice(
    mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> BCOO:
    """The elements between two indices of each axis, as `weft.lax.slice` takes them.

    Args:
        mat: a BCOO of any shape and dtype.
        start_indices, limit_indices: the first index of each axis, and the one after the last; ints.
        strides: the step along each axis; positive ints; 1 by default.

    Returns:
        a BCOO of the same dtype.

    Raises:
        ValueError: there is not one index for each axis, or an index is out of bounds.

    Example:
        >>> from weft.experimental import sparse
        >>> sparse.bcoo_slice(sparse.eye(3), start_indices=[0, 1], limit_indices=[2, 3]).todense()
        Array([[0., 0.],
               [1., 0.]], dtype=float32)
    """
    _bcoo("bcoo_slice", mat)
    strides = [1] * mat.ndim if strides is None else list(strides)
    if not len(start_indices) == len(limit_indices) == len(strides) == mat.ndim or any(
        not 0 <= a <= b <= n or s < 1 for a, b, s, n in zip(start_indices, limit_indices, strides, mat.shape)
    ):
        raise ValueError(
            f"bcoo_slice: start_indices={list(start_indices)}, limit_indices={list(limit_indices)} and"
            f" strides={strides} do not fit shape {mat.shape}."
        )
    n, s = mat.n_batch, mat.n_batch + mat.n_sparse
    cuts = [slice(a, b, t) for a, b, t in zip(start_indices, limit_indices, strides)]
    data, indices = mat._full()
    data = data[(*cuts[:n], slice(None), *cuts[s:])]
    indices = indices[tuple(cuts[:n])]
    sizes = [len(range(c.start, c.stop, c.step)) for c in cuts]
    cut = BCOO(
        (data, indices),
        shape=(*sizes[:n], *mat._sparse, *sizes[s:]),
        indices_sorted=mat.indices_sorted,
        unique_indices=mat.unique_indices,
    )
    if sizes[n:s] == list(mat._sparse):
        return cut
    return _window(cut, start_indices[n:s], sizes[n:s], strides[n:s])


@api_boundary
def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """A part of a given size that begins at indices which may be traced, as `weft.lax.dynamic_slice` takes it.

    Args:
        mat: a BCOO of any shape and dtype.
        start_indices: an integer scalar for each axis. It is moved so that the part lies inside.
        slice_sizes: the shape of the part; ints.

    Returns:
        a BCOO of shape `slice_sizes` and the same dtype.

    Raises:
        ValueError: there is not one index and one size for each axis.
        TypeError: a size is negative, or larger than the axis.

    Example:
        >>> from weft.experimental import sparse
        >>> sparse.bcoo_dynamic_slice(sparse.eye(3), [1, 0], [1, 3]).todense()
        Array([[0., 1., 0.]], dtype=float32)
    """
    _bcoo("bcoo_dynamic_slice", mat)
    if len(start_indices) != mat.ndim or len(slice_sizes) != mat.ndim:
        raise ValueError(
            f"bcoo_dynamic_slice: start_indices and slice_sizes must have one entry for each axis of shape {mat.shape}."
        )
    if any(not 0 <= k <= n for k, n in zip(slice_sizes, mat.shape)):
        raise TypeError(f"bcoo_dynamic_slice: slice_sizes {tuple(slice_sizes)} must be at most the shape, {mat.shape}.")
    n, s = mat.n_batch, mat.n_batch + mat.n_sparse
    starts = [jnp.asarray(a) for a in start_indices]
    starts = [
        jnp.clip(jnp.where(a < 0, a + size, a), 0, size - k) for a, size, k in zip(starts, mat.shape, slice_sizes)
    ]
    sizes = list(slice_sizes)
    data, indices = mat._full()
    data = lax.dynamic_slice(data, [*starts[:n], 0, *starts[s:]], (*sizes[:n], mat.nse, *sizes[s:]))
    indices = lax.dynamic_slice(indices, [*starts[:n], 0, 0], (*sizes[:n], mat.nse, mat.n_sparse))
    cut = BCOO((data, indices), shape=(*sizes[:n], *mat._sparse, *sizes[s:]), unique_indices=mat.unique_indices)
    return _window(cut, starts[n:s], sizes[n:s], [1] * mat.n_sparse) if mat.n_sparse else cut


@api_boundary
def bcoo_gather(
    operand: BCOO,
    start_indices,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> BCOO:
    """`weft.lax.gather` of a BCOO. Indices out of bounds are moved inside.

    Args:
        operand: a BCOO of any shape and dtype.
        start_indices: where the slices begin: integers of shape (*batch, number of indexed axes).
        dimension_numbers: a `weft.lax.GatherDimensionNumbers`.
        slice_sizes: the shape of a slice; ints.
        unique_indices, indices_are_sorted, mode: have no effect.
        fill_value: must be None.

    Returns:
        a BCOO of the same dtype.

    Raises:
        NotImplementedError: there are batching dimensions, or a `fill_value`.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> sparse.eye(3)[jnp.array([2, 0])].todense()
        Array([[0., 0., 1.],
               [1., 0., 0.]], dtype=float32)
    """
    _bcoo("bcoo_gather", operand)
    start_indices = jnp.asarray(start_indices)
    n = start_indices.ndim - 1
    offset, collapsed, start_map = (
        dimension_numbers.offset_dims,
        dimension_numbers.collapsed_slice_dims,
        dimension_numbers.start_index_map,
    )
    if dimension_numbers.operand_batching_dims or fill_value is not None:
        raise NotImplementedError("bcoo_gather: operand_batching_dims and fill_value are not supported.")

    def one(start):
        starts = [0] * operand.ndim
        for k, axis in enumerate(start_map):
            starts[axis] = start[k]
        return bcoo_squeeze(bcoo_dynamic_slice(operand, starts, slice_sizes), dimensions=collapsed)

    result = each(one, n)(start_indices)
    if tuple(offset) == tuple(range(n, n + len(offset))):
        return result
    place = iter(range(n))  # batch axes elsewhere become sparse, and can then move
    order = [offset.index(k) + n if k in offset else next(place) for k in range(result.ndim)]
    return result.update_layout(n_batch=0).transpose(order)


@api_boundary
def bcoo_reshape(
    mat: BCOO, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, sharding=None
) -> BCOO:
    """Changes the shape of a BCOO, without mixing batch, sparse and dense axes.

    Args:
        mat: a BCOO of any shape and dtype.
        new_sizes: the new shape; ints.
        dimensions: the axes in their order, or None; another order is refused.
        sharding: must be None.

    Returns:
        a BCOO of the new shape and the same dtype.

    Raises:
        TypeError: the new shape has another number of elements.
        ValueError: axes of different kinds would mix.
        NotImplementedError: `dimensions` change the order, or `sharding` is given.

    Example:
        >>> from weft.experimental import sparse
        >>> sparse.bcoo_reshape(sparse.eye(2), new_sizes=[4]).todense()
        Array([1., 0., 0., 1.], dtype=float32)
    """
    _bcoo("bcoo_reshape", mat)
    if sharding is not None or dimensions is not None and tuple(dimensions) != tuple(range(mat.ndim)):
        raise NotImplementedError("bcoo_reshape takes no sharding, and dimensions only in order; transpose before.")
    new = tuple(int(n) for n in new_sizes)
    if math.prod(new) != mat.size:
        raise TypeError(
            f"bcoo_reshape: an array of shape {mat.shape} has {mat.size} elements, new_sizes={new} {math.prod(new)}."
        )
    batch, dense = (
        (
            [0]
            if not mat.n_batch
            else [
                k
                for k in range(1, len(new) + 1)
                if new[:k] == mat._batch or math.prod(new[:k]) == math.prod(mat._batch)
            ]
        ),
        0,
    )
    if mat.n_dense:
        fits = [k for k in range(1, len(new) + 1) if math.prod(new[len(new) - k :]) == math.prod(mat._dense)]
        dense = fits[0] if fits else -1
    if not batch or dense < 0 or batch[0] + dense > len(new):
        raise ValueError(
            f"bcoo_reshape: new_sizes={new} mix batch, sparse and dense axes of shape {mat.shape} with"
            f" n_batch={mat.n_batch}, n_dense={mat.n_dense}."
        )
    n, s = batch[0], len(new) - dense
    data, indices = mat._full()
    good = inside(indices, mat._sparse)[..., None]
    flat = jnp.zeros(indices.shape[:-1], indices.dtype)
    for k, size in enumerate(mat._sparse):
        flat = flat * size + indices[..., k]
    parts = []
    for size in reversed(new[n:s]):
        parts.append(flat % size if size else flat)
        flat = flat // max(size, 1)
    indices = (
        jnp.where(good, jnp.stack(parts[::-1], -1), jnp.array(new[n:s], indices.dtype))
        if parts
        else jnp.zeros((*indices.shape[:-1], 0), indices.dtype)
    )
    data = jnp.where(spread(good[..., 0], data), data, jnp.zeros((), data.dtype))
    return BCOO(
        (data.reshape(*new[:n], mat.nse, *new[s:]), indices.reshape(*new[:n], mat.nse, s - n)),
        shape=new,
        indices_sorted=mat.indices_sorted and n == mat.n_batch,
        unique_indices=mat.unique_indices,
    )


@api_boundary
def bcoo_broadcast_in_dim(
    mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding=None
) -> BCOO:
    """`weft.lax.broadcast_in_dim` of a BCOO. New axes in front become batch axes; along others each element is stored
    repeatedly.

    Args:
        mat: a BCOO of any shape and dtype.
        shape: the new shape.
        broadcast_dimensions: for each axis of `mat` the axis of the result; ints.
        sharding: must be None.

    Returns:
        a BCOO of the new shape and the same dtype.

    Raises:
        ValueError: the shape of `mat` does not broadcast.
        NotImplementedError: `sharding` is given.

    Example:
        >>> from weft.experimental import sparse
        >>> sparse.bcoo_broadcast_in_dim(sparse.eye(2), shape=[3, 2, 2], broadcast_dimensions=[1, 2])
        BCOO(float32[3, 2, 2], nse=2, n_batch=1)
    """
    _bcoo("bcoo_broadcast_in_dim", mat)
    if sharding is not None:
        raise NotImplementedError("bcoo_broadcast_in_dim takes no sharding.")
    shape, places = tuple(shape), tuple(broadcast_dimensions)
    if len(places) != mat.ndim or any(a not in (1, shape[p]) for a, p in zip(mat.shape, places)):
        raise ValueError(f"bcoo_broadcast_in_dim: shape {mat.shape} does not broadcast to {shape} along {places}.")
    batch, sparse, dense = (
        places[: mat.n_batch],
        places[mat.n_batch : mat.n_batch + mat.n_sparse],
        places[mat.n_batch + mat.n_sparse :],
    )
    n = sparse[0] if sparse else dense[0] if dense else len(shape)
    s = dense[0] if dense else len(shape)
    data, indices = mat._clean()
    data, indices = (
        x.reshape(*[mat.shape[batch.index(k)] if k in batch else 1 for k in range(n)], *x.shape[mat.n_batch :])
        for x in (data, indices)
    )
    data, indices = (jnp.broadcast_to(x, (*shape[:n], *x.shape[n:])) for x in (data, indices))
    data = data.reshape(
        *data.shape[: n + 1], *[mat._dense[dense.index(k)] if k in dense else 1 for k in range(s, len(shape))]
    )
    data = jnp.broadcast_to(data, (*data.shape[: n + 1], *shape[s:]))
    good = inside(indices, mat._sparse)[..., None]
    cols = [
        indices[..., sparse.index(k)] if k in sparse else jnp.zeros(indices.shape[:-1], indices.dtype)
        for k in range(n, s)
    ]
    indices = jnp.where(good, jnp.stack(cols, -1), jnp.array(shape[n:s], indices.dtype)) if cols else indices[..., :0]
    grow = [k for k in range(n, s) if shape[k] != (mat._sparse[sparse.index(k)] if k in sparse else 1)]
    for k in grow:
        copies = jnp.broadcast_to(indices[..., None, :], (*indices.shape[:-1], shape[k], indices.shape[-1]))
        column = jnp.where(inside(copies, shape[n:s]), jnp.arange(shape[k], dtype=indices.dtype), shape[k])
        copies = copies.at[..., k - n].set(column)
        indices = copies.reshape(*shape[:n], -1, s - n)
        data = jnp.repeat(data, shape[k], n)
    return BCOO(
        (data, indices), shape=shape, indices_sorted=mat.indices_sorted and not grow, unique_indices=mat.unique_indices
    )


@api_boundary
def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Joins BCOO arrays along a batch axis or a sparse axis.

    Args:
        operands: a sequence of BCOO arrays of any dtypes with the same layout, whose shapes differ along the axis
            at most.
        dimension: the axis; int.

    Returns:
        a BCOO of the promoted dtype, whose shape adds up the sizes along the axis.

    Raises:
        ValueError: there are no arrays, or their layouts or shapes differ.
        AxisError: the axis does not exist.
        NotImplementedError: the axis is dense.

    Example:
        >>> from weft.experimental import sparse
        >>> sparse.bcoo_concatenate([sparse.eye(2), sparse.eye(2)], dimension=0)
        BCOO(float32[4, 2], nse=4)
    """
    if not operands:
        raise ValueError("bcoo_concatenate needs at least one array.")
    if not all(isinstance(m, BCOO) for m in operands):
        raise ValueError(f"bcoo_concatenate takes BCOO arrays, got {', '.join(type(m).__name__ for m in operands)}.")
    first = operands[0]
    if any((m.n_batch, m.n_dense, m.ndim) != (first.n_batch, first.n_dense, first.ndim) for m in operands):
        raise ValueError("bcoo_concatenate: the arrays must have the same numbers of batch, sparse and dense axes.")
    (dimension,) = canonical_axes(dimension, first.ndim, "dimension")
    if any(_without(m.shape, [dimension]) != _without(first.shape, [dimension]) for m in operands):
        raise ValueError(
            f"bcoo_concatenate: shapes must agree but for axis {dimension}, got"
            f" {', '.join(str(m.shape) for m in operands)}."
        )
    n = first.n_batch
    if dimension >= n + first.n_sparse:
        raise NotImplementedError(
            "bcoo_concatenate: dense axes can't be concatenated; lower n_dense with update_layout."
        )
    shape = (*first.shape[:dimension], sum(m.shape[dimension] for m in operands), *first.shape[dimension + 1 :])
    dtype = promotion.result_type(*[m.data for m in operands])
    parts = [m._full() for m in operands]
    if dimension < n:
        nse = max(m.nse for m in operands)
        pad = lambda x, fill: jnp.concatenate(
            [x, jnp.broadcast_to(fill, (*x.shape[:n], nse - x.shape[n], *x.shape[n + 1 :])).astype(x.dtype)], n
        )
        parts = [
            (pad(data, jnp.zeros((), data.dtype)), pad(indices, jnp.array(first._sparse, indices.dtype)))
            for data, indices in parts
        ]
        data, indices = (jnp.concatenate([p[k] for p in parts], dimension) for k in (0, 1))
        return BCOO(
            (data.astype(dtype), indices),
            shape=shape,
            indices_sorted=all(m.indices_sorted for m in operands),
            unique_indices=all(m.unique_indices for m in operands),
        )
    sizes, offset, moved = shape[n : n + first.n_sparse], 0, []
    for m, (_, indices) in zip(operands, parts):
        good = inside(indices, m._sparse)[..., None]
        moved.append(jnp.where(good, indices.at[..., dimension - n].add(offset), jnp.array(sizes, indices.dtype)))
        offset += m.shape[dimension]
    return BCOO(
        (jnp.concatenate([d.astype(dtype) for d, _ in parts], n), jnp.concatenate(moved, n)),
        shape=shape,
        unique_indices=all(m.unique_indices for m in operands),
    )


@api_boundary
def bcoo_multiply_dense(sp_mat: BCOO, v):
    """The data of the elementwise product of a sparse and a dense array.

    Args:
        sp_mat: a BCOO of any shape and dtype.
        v: a dense array that broadcasts to the shape of `sp_mat`.

    Returns:
        an array of the shape that `sp_mat.data` has with all batch axes in full, for a BCOO with the indices of
        `sp_mat`.

    Raises:
        NotImplementedError: the sparse array would have to be broadcast.
        ValueError: the shapes do not fit.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> sparse.bcoo_multiply_dense(sparse.eye(2), jnp.array([3., 4.]))
        Array([3., 4.], dtype=float32)
    """
    _bcoo("bcoo_multiply_dense", sp_mat)
    v = jnp.asarray(v)
    shape = jnp.broadcast_shapes(sp_mat.shape, v.shape)
    if shape != sp_mat.shape:
        raise NotImplementedError(
            f"bcoo_multiply_dense: the product must have the shape of the sparse array, {sp_mat.shape}, got a dense"
            f" array of shape {v.shape}. Broadcast the sparse array first."
        )
    if not v.ndim:
        return sp_mat.data * v
    return sp_mat._full()[0] * _values_at(sp_mat, v)


def _values_at(mat: BCOO, v):
    """The values of a dense array that broadcasts to the shape of `mat`, where `mat` has elements."""
    v = v.reshape((1,) * (mat.ndim - v.ndim) + v.shape)
    n, s = mat.n_batch, mat.n_batch + mat.n_sparse
    indices = mat._full()[1]
    good = inside(indices, mat._sparse)[..., None]
    indices = jnp.where(
        good,
        jnp.where(jnp.array([size == 1 for size in v.shape[n:s]]), 0, indices),
        jnp.array(v.shape[n:s], indices.dtype),
    )
    return jnp.broadcast_to(_extract(indices, with_batch(v, mat._batch)), (*mat._batch, mat.nse, *mat._dense))


@api_boundary
def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The elementwise product of two sparse arrays. Axes of size 1 are broadcast.

    Args:
        lhs, rhs: BCOO arrays of any dtypes with the same number of axes and of dense axes.

    Returns:
        a BCOO of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: the arrays have different numbers of axes.
        NotImplementedError: the arrays have different numbers of dense axes.
        ValueError: the shapes do not broadcast.

    Example:
        >>> from weft.experimental import sparse
        >>> sparse.bcoo_multiply_sparse(sparse.eye(2), sparse.eye(2)).todense()
        Array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    _bcoo("bcoo_multiply_sparse", lhs, rhs)
    if lhs.ndim != rhs.ndim:
        raise TypeError(
            f"bcoo_multiply_sparse: the arrays must have the same number of axes, got shapes {lhs.shape} and"
            f" {rhs.shape}."
        )
    if lhs.n_dense != rhs.n_dense:
        raise NotImplementedError(
            "bcoo_multiply_sparse: the arrays must have as many dense axes; change one with update_layout."
        )
    shape = jnp.broadcast_shapes(lhs.shape, rhs.shape)
    n = min(lhs.n_batch, rhs.n_batch)
    lhs, rhs = (m.update_layout(n_batch=n) for m in (lhs, rhs))
    sizes = shape[n : n + lhs.n_sparse]

    def one(a, a_rows, b, b_rows):
        match = inside(a_rows, lhs._sparse)[:, None] & inside(b_rows, rhs._sparse)[None]
        cols = []
        for k, (p, q) in enumerate(zip(lhs._sparse, rhs._sparse)):
            x, y = a_rows[:, None, k], b_rows[None, :, k]
            match = match & (x == y) if p == q else match
            cols.append(jnp.broadcast_to(y if p == 1 else x, match.shape))
        values = a[:, None] * b[None]
        rows = (
            jnp.stack([jnp.where(match, c, size).reshape(-1) for c, size in zip(cols, sizes)], -1)
            if cols
            else jnp.zeros((match.size, 0), a_rows.dtype)
        )
        return (
            jnp.where(spread(match, values), values, jnp.zeros((), values.dtype)).reshape(-1, *values.shape[2:]),
            rows,
        )

    data, indices = each(one, n)(*[with_batch(x, shape[:n]) for m in (lhs, rhs) for x in m._full()])
    return BCOO((data, indices), shape=shape, unique_indices=lhs.unique_indices and rhs.unique_indices)


@api_boundary
def bcoo_conv_general_dilated(
    lhs,
    rhs,
    *,
    window_strides,
    padding,
    lhs_dilation=None,
    rhs_dilation=None,
    dimension_numbers=None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision=None,
    preferred_element_type=None,
    out_sharding=None,
) -> BCOO:
    """The convolution of two signals with one channel each. Every pair of stored elements contributes one product.

    Args:
        lhs: a BCOO or dense array of shape (1, 1, n) and any dtype.
        rhs: a BCOO or dense array of shape (1, 1, m) and any dtype.
        window_strides, lhs_dilation, rhs_dilation: must be 1, or None.
        padding: [(low, high)], or 'VALID' or 'SAME'.
        dimension_numbers, out_sharding: must be None.
        feature_group_count, batch_group_count: must be 1.
        precision: has no effect.
        preferred_element_type: the dtype of the result; by default the promoted dtype.

    Returns:
        a BCOO of shape (1, 1, n + low + high - m + 1).

    Raises:
        NotImplementedError: a shape or an option is another one. Use `weft.lax.conv_general_dilated` with dense
            arrays.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> x = sparse.BCOO.fromdense(jnp.array([[[0., 1., 0., 0.]]]))
        >>> sparse.bcoo_conv_general_dilated(x, jnp.array([[[2., 3.]]]), window_strides=[1], padding=[(0, 0)]).todense()
        Array([[[3., 2., 0.]]], dtype=float32)
    """
    lhs, rhs = (x if isinstance(x, BCOO) else _all_stored(x) for x in (lhs, rhs))
    plain = all(all(k == 1 for k in option or ()) for option in (window_strides, lhs_dilation, rhs_dilation))
    if (
        lhs.ndim != 3
        or rhs.ndim != 3
        or lhs.shape[:2] != (1, 1)
        or rhs.shape[:2] != (1, 1)
        or not plain
        or dimension_numbers is not None
        or feature_group_count != 1
        or batch_group_count != 1
        or out_sharding is not None
    ):
        raise NotImplementedError(
            "bcoo_conv_general_dilated convolves arrays of shapes (1, 1, n) and (1, 1, m) with stride 1, without"
            " dilation, groups and dimension_numbers."
        )
    n, m = lhs.shape[2], rhs.shape[2]
    ((low, high),) = lax.padtype_to_pads((n,), (m,), (1,), padding) if isinstance(padding, str) else padding
    size = max(0, n + low + high - m + 1)
    a, b = (x.update_layout(n_batch=2, n_dense=0, on_inefficient=None) for x in (lhs, rhs))
    (x, p), (y, q) = ((data[0, 0], rows[0, 0, :, 0]) for data, rows in (a._clean(), b._clean()))
    place = p[:, None] - q[None] + low
    good = (place >= 0) & (place < size) & (p < n)[:, None] & (q < m)[None]
    values = jnp.where(good, x[:, None] * y[None], jnp.zeros((), promotion.result_type(x, y)))
    values = values if preferred_element_type is None else values.astype(preferred_element_type)
    out = BCOO((values.reshape(1, 1, -1), jnp.where(good, place, size).reshape(1, 1, -1, 1)), shape=(1, 1, size))
    return bcoo_sum_duplicates(out, size) if out.nse > size else out


def _all_stored(x) -> BCOO:
    """A dense array with all of its elements stored."""
    x = jnp.asarray(x)
    return BCOO((x[..., None], jnp.zeros((*x.shape, 1, 0), "int32")), shape=x.shape)
