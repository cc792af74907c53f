"""Factorisations as loops over columns: the decompositions of linear algebra's primitives, for backends without LAPACK.

Each is the textbook algorithm (G. Golub and C. Van Loan, "Matrix Computations", 4th edition, chapters 3 to 5) on whole stacks of matrices: the
work of a step is masked rather than cut out, so that shapes do not depend on the step.
"""
from __future__ import annotations

import math

from .. import dtypes
from ..ops.dot import dot_general
from ..ops.elementwise import add, abs_, and_, div, eq, ge, gt, imag, is_finite, lt, mul, ne, neg, not_, real, select, sqrt, sub
from ..ops.index import dynamic_slice_p, dynamic_update_slice_p
from ..ops.linalg import cholesky_p, geqrf_p, householder_product_p, lu_p, lu_pivots_to_permutation_p, triangular_solve_p
from ..ops.linear import broadcast_in_dim, convert, full, reduce_sum, reshape
from ..ops.matrix import columns, conjugate, eye, index, mT, real_part, rows, where_each
from ..ops.reduce import argmax
from ..ops.rules import dtype_of, scalar_like, shape_of
from .loops import fori_loop


def _loop(count: int, step, carry):
    """step(i, carry) for each int32 i below count (loops count in int64 where 64-bit types are on)."""
    return fori_loop(0, count, lambda i, c: step(convert(i, dtypes.int32), c), carry)


def _at(x, axis: int, i):
    """x at position i of an axis (negative), without it."""
    shape = shape_of(x)
    axis %= len(shape)
    sizes = (*shape[:axis], 1, *shape[axis + 1:])
    starts = [i if d == axis else scalar_like(i, 0) for d in range(len(shape))]
    return reshape(dynamic_slice_p.bind(x, *starts, slice_sizes=sizes), shape[:axis] + shape[axis + 1:])


def _put(x, axis: int, i, v):
    """x with v at position i of an axis (negative)."""
    shape = shape_of(x)
    axis %= len(shape)
    starts = [i if d == axis else scalar_like(i, 0) for d in range(len(shape))]
    return dynamic_update_slice_p.bind(x, reshape(v, (*shape[:axis], 1, *shape[axis + 1:])), *starts)


def _zeros(x):
    return full(shape_of(x), 0, dtype_of(x))


def _positions(v):
    """The position along the last axis of v."""
    return index(shape_of(v), -1)


def _keep(mask, x):
    return select(mask, x, _zeros(x))


def _outer(u, v):
    """u vᵀ of vectors in the last axis."""
    return mul(columns(u, shape_of(v)[-1]), rows(v, shape_of(u)[-1]))


def _over(v, scalar):
    """v[..., k] with scalar[...] beside each k."""
    return broadcast_in_dim(scalar, shape_of(v), tuple(range(len(shape_of(scalar)))))


def _times(x, v):
    """Σ_k x[..., k, j] v[..., k]."""
    rank = len(shape_of(x))
    batch = tuple(range(rank - 2))
    return dot_general(v, x, (((rank - 2,), (rank - 2,)), (batch, batch)), precision=("highest", "highest"))


def _cholesky(x):
    """Column by column, taking each column's part off what is right of it; all NaN where a pivot is not positive."""
    n = shape_of(x)[-1]
    positive = full(shape_of(x)[:-2], True, dtypes.bool_)

    def step(j, carry):
        a, ok = carry
        column = _at(a, -1, j)
        pivot = real_part(_at(column, -1, j))
        ok = and_(ok, and_(gt(pivot, scalar_like(pivot, 0)), is_finite(pivot)))
        root = convert(sqrt(pivot), dtype_of(x))
        below = gt(_positions(column), broadcast_in_dim(j, shape_of(column), ()))
        factor = _keep(below, div(column, _over(column, root)))
        a = sub(a, _outer(factor, conjugate(factor)))
        here = eq(_positions(column), broadcast_in_dim(j, shape_of(column), ()))
        return _put(a, -1, j, select(here, _over(column, root), factor)), ok
    out, ok = _loop(n, step, (x, positive))
    return where_each(ok, out, math.nan)


def _triangular_solve(a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    """Row by row, from the row that has one unknown."""
    n = shape_of(a)[-1]
    a = conjugate(a) if conjugate_a else a
    if transpose_a:
        a, lower = mT(a), not lower
    if not left_side:
        a, b, lower = mT(a), mT(b), not lower

    def step(k, x):
        i = k if lower else sub(scalar_like(k, n - 1), k)
        row = _at(a, -2, i)
        at, here = _positions(row), broadcast_in_dim(i, shape_of(row), ())
        known = _keep(lt(at, here) if lower else gt(at, here), row)
        rest = sub(_at(x, -2, i), _times(x, known))
        return _put(x, -2, i, rest if unit_diagonal else div(rest, _over(rest, _at(row, -1, i))))
    x = _loop(n, step, b) if n else b
    return x if left_side else mT(x)


def _lu(x):
    """Partial pivoting: the largest of a column's rest is swapped into the pivot's row."""
    *batch, m, n = shape_of(x)
    size = min(m, n)
    pivots = full((*batch, size), 0, dtypes.int32)
    perm = index((*batch, m), -1)
    if not m or not n:
        return [x, pivots, perm]

    def step(k, carry):
        a, pivots, perm = carry
        column = _at(a, -1, k)
        at, here = _positions(column), broadcast_in_dim(k, shape_of(column), ())
        # the cheaper absolute value, as LAPACK takes
        length = add(abs_(real(column)), abs_(imag(column))) if dtypes.is_complex(dtype_of(column)) else abs_(column)
        p = argmax(select(ge(at, here), length, full(shape_of(length), -1, dtype_of(length))), len(batch), dtypes.int32)
        there = _over(column, p)
        is_pivot, is_here = eq(at, there), eq(at, here)
        row_k = _at(a, -2, k)
        row_p = reduce_sum(_keep(columns(is_pivot, n), a), (len(batch),))
        a = select(columns(is_pivot, n), rows(row_k, m), a)
        a = select(columns(is_here, n), rows(row_p, m), a)
        chosen = reduce_sum(_keep(is_pivot, perm), (len(batch),))
        perm = select(is_pivot, _over(perm, _at(perm, -1, k)), perm)
        perm = select(is_here, _over(perm, chosen), perm)
        column = _at(a, -1, k)
        pivot = _over(column, _at(column, -1, k))
        divided = select(ne(pivot, _zeros(pivot)), div(column, pivot), column)
        factor = _keep(gt(at, here), divided)
        right = _positions(row_p)
        a = sub(a, _outer(factor, _keep(gt(right, broadcast_in_dim(k, shape_of(right), ())), row_p)))
        a = _put(a, -1, k, select(gt(at, here), divided, column))
        return a, _put(pivots, -1, k, p), perm
    return list(_loop(size, step, (x, pivots, perm)))


def _pivots(pivots, *, permutation_size):
    """The swaps of a factorisation, done on the numbers 0, 1, …"""
    *batch, k = shape_of(pivots)
    perm = index((*batch, permutation_size), -1)

    def step(i, perm):
        p = _at(pivots, -1, i)
        at, here, there = _positions(perm), broadcast_in_dim(i, shape_of(perm), ()), _over(perm, p)
        chosen = reduce_sum(_keep(eq(at, there), perm), (len(batch),))
        perm = select(eq(at, there), _over(perm, _at(perm, -1, i)), perm)
        return select(eq(at, here), _over(perm, chosen), perm)
    return _loop(k, step, perm) if k else perm


def _geqrf(x):
    """Householder reflections H = 1 - tau v vᴴ with v[k] = 1; v is stored below R, as LAPACK does."""
    *batch, m, n = shape_of(x)
    size = min(m, n)
    taus = full((*batch, size), 0, dtype_of(x))
    if not m or not n:
        return [x, taus]
    is_complex = dtypes.is_complex(dtype_of(x))

    def step(k, carry):
        a, taus = carry
        column = _at(a, -1, k)
        at, here = _positions(column), broadcast_in_dim(k, shape_of(column), ())
        alpha = _at(column, -1, k)
        tail = _keep(gt(at, here), column)
        rest = reduce_sum(real_part(mul(tail, conjugate(tail))), (len(batch),))
        size_alpha = real_part(mul(alpha, conjugate(alpha)))
        length = sqrt(add(rest, size_alpha))
        head = real_part(alpha)
        zero = full(shape_of(length), 0, dtype_of(length))
        beta = select(gt(head, zero), neg(length), length)
        # nothing to reflect: the column is zero below the diagonal (and its head real)
        still = eq(rest, zero)
        if is_complex:
            still = and_(still, eq(size_alpha, mul(head, head)))
        one = full(shape_of(length), 1, dtype_of(length))
        beta_c = convert(select(still, one, beta), dtype_of(x))
        tau = _keep(not_(still), div(sub(beta_c, alpha), beta_c))
        scale = sub(alpha, beta_c)
        scale = select(still, convert(one, dtype_of(x)), scale)
        v = _keep(broadcast_in_dim(not_(still), shape_of(tail), tuple(range(len(batch)))), div(tail, _over(tail, scale)))
        full_v = add(v, _keep(eq(at, here), full(shape_of(v), 1, dtype_of(v))))
        # H is applied conjugated, so that Hᴴ A is R: A - conj(tau) v (vᴴ A), right of the column
        product = _times(a, conjugate(full_v))
        update = _outer(mul(full_v, _over(full_v, conjugate(tau))), product)
        right = gt(index(shape_of(a), -1), broadcast_in_dim(k, shape_of(a), ()))
        a = sub(a, _keep(right, update))
        new_head = select(still, alpha, beta_c)
        stored = select(eq(at, here), _over(column, new_head), select(gt(at, here), v, column))
        return _put(a, -1, k, stored), _put(taus, -1, k, tau)
    return list(_loop(size, step, (x, taus)))


def _householder_product(a, taus):
    """The first columns of H₁ H₂ …, from the last reflection back."""
    *batch, m, n = shape_of(a)
    count = shape_of(taus)[-1]

    def step(j, q):
        k = sub(scalar_like(j, count - 1), j)
        column = _at(a, -1, k)
        at, here = _positions(column), broadcast_in_dim(k, shape_of(column), ())
        v = select(eq(at, here), full(shape_of(column), 1, dtype_of(column)), _keep(gt(at, here), column))
        return sub(q, _outer(mul(v, _over(v, _at(taus, -1, k))), _times(q, conjugate(v))))
    q = eye((*batch, m, n), dtype_of(a))
    return _loop(count, step, q) if count else q


for _primitive, _meaning in ((cholesky_p, _cholesky), (triangular_solve_p, _triangular_solve), (lu_p, _lu), (lu_pivots_to_permutation_p, _pivots),
                          (geqrf_p, _geqrf), (householder_product_p, _householder_product)):
    _primitive.decompose = _meaning
