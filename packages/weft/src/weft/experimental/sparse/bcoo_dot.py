"""Products of BCOO arrays with dense ones and with each other."""

from __future__ import annotations

import math
from typing import Any, Sequence

from ...base import dtypes, promotion
from ... import numpy as jnp
from ...base.errors import type_error
from ...lax.dots import dot_general
from ...base.source_info import api_boundary
from ...api.vmap import vmap
from .base import accumulate, columns, each, inside, spread
from .bcoo import BCOO, _extract, bcoo_sum_duplicates, bcoo_update_layout


def _labels(name: str, lhs_shape, rhs_shape, dimension_numbers) -> tuple[list, list, list]:
    """A label for each axis of both operands, equal for axes that belong together, and those of the result in order."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = (
        [tuple(int(d) for d in dims) for dims in pair] for pair in dimension_numbers
    )
    if len(lhs_contract) != len(rhs_contract) or len(lhs_batch) != len(rhs_batch):
        raise type_error(f"{name}: contracting and batch dimensions come in pairs, got {dimension_numbers}.")
    left, right = list(range(len(lhs_shape))), [len(lhs_shape) + k for k in range(len(rhs_shape))]
    for what, mine, others in (("contracting", lhs_contract, rhs_contract), ("batch", lhs_batch, rhs_batch)):
        for a, b in zip(mine, others):
            if not 0 <= a < len(left) or not 0 <= b < len(right) or lhs_shape[a] != rhs_shape[b]:
                raise type_error(
                    f"{name} requires {what} dimensions to have the same shape, got {dimension_numbers} for shapes"
                    f" {tuple(lhs_shape)} and {tuple(rhs_shape)}."
                )
            right[b] = left[a]
    batch = [left[a] for a in lhs_batch]
    out = [*batch, *[n for n in left if n not in right], *[n for n in right if n not in left]]
    return left, right, out


def _with_dense(data, indices, shape, left: list, rhs, right: list, out: list, precision):
    """(product, its labels) of a sparse array and a dense one. Axes of the result are the labels of `out`, in some
    order.
    """
    n_batch = indices.ndim - 2
    if n_batch:  # one batch axis at a time
        label = left[0]
        shared = label in right
        rest: list = []

        def one(data, indices, rhs):
            value, order = _with_dense(
                data,
                indices,
                shape[1:],
                left[1:],
                rhs,
                [n for n in right if n != label],
                [n for n in out if n != label],
                precision,
            )
            rest[:] = order
            return value

        value = vmap(one, in_axes=(0, 0, right.index(label) if shared else None))(data, indices, rhs)
        return (value, [label, *rest]) if label in out else (jnp.sum(value, 0), rest)
    n_sparse = indices.shape[1]
    sparse, dense = left[:n_sparse], left[n_sparse:]
    good = inside(indices, shape[:n_sparse])
    rows = dict(zip(sparse, columns(jnp.where(good[:, None], indices, 0))))
    data = jnp.where(spread(good, data), data, jnp.zeros((), data.dtype))
    paired = [n for n in sparse if n in right]
    rhs = jnp.moveaxis(rhs, [right.index(n) for n in paired], range(len(paired)))
    rest = [n for n in right if n not in paired]
    entry = max([*left, *right], default=0) + 1
    gathered, of_rhs = (rhs[tuple(rows[n] for n in paired)], [entry, *rest]) if paired else (rhs, rest)
    kept = [n for n in sparse if n in out]
    inner = [n for n in [*dense, *rest] if n in out]
    inner = list(dict.fromkeys(inner))
    values = jnp.einsum(
        data, [entry, *dense], gathered, of_rhs, [entry, *inner] if kept else inner, precision=precision
    )
    if not kept:
        return values, inner
    sizes = tuple(shape[sparse.index(n)] for n in kept)
    return accumulate((*sizes, *values.shape[1:]), values.dtype, tuple(rows[n] for n in kept), values), [*kept, *inner]


def _sparse_dense(lhs: BCOO, left, rhs, right, out, precision):
    data, indices = lhs._full()
    dtype = promotion.result_type(data, rhs)
    value, order = _with_dense(data.astype(dtype), indices, lhs.shape, left, rhs.astype(dtype), right, out, precision)
    return value.transpose([order.index(n) for n in out])


def _sparse_sparse(lhs: BCOO, left, rhs: BCOO, right, out) -> BCOO:
    """Every pair of elements whose paired indices agree gives one of the result."""
    lhs, rhs = (bcoo_update_layout(m, n_dense=0) for m in (lhs, rhs))
    batch = out[: next((k for k, n in enumerate(out) if n not in left or n not in right), len(out))]
    n = 0  # batch axes that both have in front, in the result's order
    while n < min(lhs.n_batch, rhs.n_batch, len(batch)) and left[n] == right[n] == batch[n]:
        n += 1
    lhs, rhs = (bcoo_update_layout(m, n_batch=n) for m in (lhs, rhs))
    shape = {**dict(zip(left, lhs.shape)), **dict(zip(right, rhs.shape))}
    sizes = [shape[k] for k in out[n:]]
    left, right = left[n:], right[n:]
    dtype = promotion.result_type(lhs.data, rhs.data)

    def one(a, a_rows, b, b_rows):
        match = inside(a_rows, lhs._sparse)[:, None] & inside(b_rows, rhs._sparse)[None]
        for k, label in enumerate(left):
            if label in right:
                match = match & (a_rows[:, None, k] == b_rows[None, :, right.index(label)])
        values = jnp.where(match, a[:, None] * b[None], jnp.zeros((), dtype))
        picked = [
            jnp.broadcast_to(
                a_rows[:, None, left.index(k)] if k in left else b_rows[None, :, right.index(k)], match.shape
            )
            for k in out[n:]
        ]
        picked = [jnp.where(match, p, size).reshape(-1) for p, size in zip(picked, sizes)]
        return values.reshape(-1), jnp.stack(picked, -1) if picked else jnp.zeros((match.size, 0), a_rows.dtype)

    (a, a_rows), (b, b_rows) = lhs._full(), rhs._full()
    data, indices = each(one, n)(a.astype(dtype), a_rows, b.astype(dtype), b_rows)
    result = BCOO((data, indices), shape=[shape[k] for k in out])
    return bcoo_sum_duplicates(result, math.prod(sizes)) if result.nse > math.prod(sizes) else result


@api_boundary
def bcoo_dot_general(
    lhs, rhs, *, dimension_numbers: Any, precision: Any = None, preferred_element_type: Any = None, out_sharding=None
):
    """The product of two arrays, of which one or both are sparse, over given axes.

    Args:
        lhs, rhs: BCOO or dense arrays of any dtypes.
        dimension_numbers: ((lhs contracting axes, rhs contracting axes), (lhs batch axes, rhs batch axes)), as for
            `weft.lax.dot_general`.
        precision: of the dense products inside.
        preferred_element_type: the dtype of the result; by default the operands' promoted dtype.
        out_sharding: must be None.

    Returns:
        an array of the shape that `weft.lax.dot_general` gives: dense if an operand is dense, otherwise a BCOO.

    Raises:
        TypeError: the axes or their sizes do not fit.
        NotImplementedError: `out_sharding` is given.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> x = jnp.arange(4.).reshape(2, 2)
        >>> sparse.bcoo_dot_general(sparse.eye(2), x, dimension_numbers=(([1], [0]), ([], [])))
        Array([[0., 1.],
               [2., 3.]], dtype=float32)
    """
    if out_sharding is not None:
        raise NotImplementedError(
            "bcoo_dot_general takes no out_sharding; apply weft.lax.with_sharding_constraint to its result."
        )
    lhs, rhs = (x if isinstance(x, BCOO) else jnp.asarray(x) for x in (lhs, rhs))
    if not isinstance(lhs, BCOO) and not isinstance(rhs, BCOO):
        return dot_general(
            lhs, rhs, dimension_numbers, precision=precision, preferred_element_type=preferred_element_type
        )
    left, right, out = _labels("bcoo_dot_general", lhs.shape, rhs.shape, dimension_numbers)
    if not isinstance(rhs, BCOO):
        result = _sparse_dense(lhs, left, rhs, right, out, precision)
    elif not isinstance(lhs, BCOO):
        result = _sparse_dense(rhs, right, lhs, left, out, precision)
    else:
        result = _sparse_sparse(lhs, left, rhs, right, out)
    if preferred_element_type is None:
        return result
    wanted = dtypes.canonicalize(preferred_element_type)
    if isinstance(result, BCOO):
        return result._with(
            result.data.astype(wanted),
            result.indices,
            indices_sorted=result.indices_sorted,
            unique_indices=result.unique_indices,
        )
    return result.astype(wanted)


@api_boundary
def bcoo_dot_general_sampled(A, B, indices, *, dimension_numbers: Any):
    """Elements of the product of two dense arrays. If `indices` cover all axes of the product, the other elements are
    not computed.

    Args:
        A, B: dense arrays of any dtypes.
        indices: the places of the elements in the product: integers of shape (*batch, nse, n_sparse).
        dimension_numbers: as for `bcoo_dot_general`.

    Returns:
        an array of shape (*batch, nse, *dense), where `dense` are the axes of the product that `indices` do not
        cover.

    Raises:
        TypeError: the axes or their sizes do not fit.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> sparse.bcoo_dot_general_sampled(jnp.ones((2, 3)), jnp.ones((3, 2)), jnp.array([[0, 1]]),
        ...                                 dimension_numbers=(([1], [0]), ([], [])))
        Array([3.], dtype=float32)
    """
    A, B, indices = jnp.asarray(A), jnp.asarray(B), jnp.asarray(indices)
    left, right, out = _labels("bcoo_dot_general_sampled", A.shape, B.shape, dimension_numbers)
    n_batch, n_sparse = indices.ndim - 2, indices.shape[-1]
    if n_batch or n_sparse != len(out):
        return _extract(indices, dot_general(A, B, dimension_numbers))
    shape = {**dict(zip(left, A.shape)), **dict(zip(right, B.shape))}
    good = inside(indices, [shape[n] for n in out])
    rows = dict(zip(out, columns(jnp.where(good[:, None], indices, 0))))

    def gathered(x, labels: list) -> tuple:
        kept = [n for n in labels if n in rows]
        if not kept:
            return x, labels
        return jnp.moveaxis(x, [labels.index(n) for n in kept], range(len(kept)))[tuple(rows[n] for n in kept)], [
            -1,
            *[n for n in labels if n not in rows],
        ]

    entry = max([*left, *right], default=0) + 1
    operands: Sequence = [
        part
        for x, labels in (gathered(A, left), gathered(B, right))
        for part in (x, [entry if n == -1 else n for n in labels])
    ]
    values = jnp.einsum(*operands, [entry] if rows else [])
    return jnp.where(good, values, jnp.zeros((), values.dtype))
