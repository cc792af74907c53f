"""Factorisations as loops over columns: the decompositions of linear algebra's primitives, for backends without LAPACK.

Each is the textbook algorithm (G. Golub and C. Van Loan, "Matrix Computations", 4th edition, chapters 3 to 5) on whole
stacks of matrices: the work of a step is masked rather than cut out, so that shapes do not depend on the step.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..base import dtypes
from ..base.limits import finfo
from ..primitives.dot import dot_general
from ..primitives.elementwise import (
    add,
    abs_,
    and_,
    div,
    eq,
    ge,
    gt,
    imag,
    is_finite,
    lt,
    max_,
    min_,
    mul,
    ne,
    neg,
    not_,
    real,
    select,
    sub,
)
from ..primitives.transcendental import sqrt
from ..primitives.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from ..primitives.linalg import (
    cholesky_p,
    cholesky_update_p,
    geqp3_p,
    geqrf_p,
    householder_product_p,
    lu_p,
    lu_pivots_to_permutation_p,
    ormqr_p,
    triangular_solve_p,
)
from ..primitives.linear import broadcast_in_dim, convert, full, reduce_sum, reshape
from ..primitives.matrix import columns, conjugate, eye, index, mH, mT, matmul, real_part, rows, tril, triu, where_each
from ..primitives.reduce import argmax, reduce_max, reduce_min
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..primitives.shape import concatenate, rev, slice_
from ..primitives.spectral import hessenberg_p
from ..primitives.tridiagonal import tridiagonal_p, tridiagonal_solve_p
from ..higher_order.while_loop import fori_loop

if TYPE_CHECKING:
    from ..core.types import Value


def _loop(count: int, step: Callable[..., Any], carry: Sequence[Value]) -> Value:
    """step(i, carry) for each int32 i below count (loops count in int64 where 64-bit types are on)."""
    if not count:
        return carry  # a matrix without entries has no column that a step could take
    return fori_loop(0, count, lambda i, c: step(convert(i, dtypes.int32), c), carry)


def _at(x: Value, axis: int, i: Value) -> Value:
    """x at position i of an axis (negative), without it."""
    shape = shape_of(x)
    axis %= len(shape)
    sizes = (*shape[:axis], 1, *shape[axis + 1 :])
    starts = [i if d == axis else scalar_like(i, 0) for d in range(len(shape))]
    return reshape(dynamic_slice_p.bind(x, *starts, slice_sizes=sizes), shape[:axis] + shape[axis + 1 :])


def _put(x: Value, axis: int, i: Value, v: Value) -> Value:
    """x with v at position i of an axis (negative)."""
    shape = shape_of(x)
    axis %= len(shape)
    starts = [i if d == axis else scalar_like(i, 0) for d in range(len(shape))]
    return dynamic_update_slice_p.bind(x, reshape(v, (*shape[:axis], 1, *shape[axis + 1 :])), *starts)


def _zeros(x: Value) -> Value:
    return full(shape_of(x), 0, dtype_of(x))


def _positions(v: Value) -> Value:
    """The position along the last axis of v."""
    return index(shape_of(v), -1)


def _keep(mask: Value, x: Value) -> Value:
    return select(mask, x, _zeros(x))


def _outer(u: Value, v: Value) -> Value:
    """u vᵀ of vectors in the last axis."""
    return mul(columns(u, shape_of(v)[-1]), rows(v, shape_of(u)[-1]))


def _over(v: Value, scalar: Value) -> Value:
    """v[..., k] with scalar[...] beside each k."""
    return broadcast_in_dim(scalar, shape_of(v), tuple(range(len(shape_of(scalar)))))


def _times(x: Value, v: Value) -> Value:
    """Σ_k x[..., k, j] v[..., k]."""
    rank = len(shape_of(x))
    batch = tuple(range(rank - 2))
    return dot_general(v, x, (((rank - 2,), (rank - 2,)), (batch, batch)), precision=("highest", "highest"))


def _halves(n: int, block: int) -> int:
    """Where n rows are split in two, after whole blocks."""
    return block * (-(-n // block) // 2)


def _block(n: int) -> int:
    """Rows of a block: at least 64, and enough that there are at most eight blocks, since each block is compiled
    separately.
    """
    return max(64, -(-n // 8))


def _quarters(x: Value, k: int) -> tuple[Value, Value, Value]:
    """The matrices' parts left above, left below and right below, split at k."""
    *batch, m, n = shape_of(x)
    part = lambda i, j, m, n: slice_(x, (*[0] * len(batch), i, j), (*batch, m, n))
    return part(0, 0, k, k), part(k, 0, m, k), part(k, k, m, n)


def _cholesky(x: Value) -> Value:
    """By halves, which leaves most of the work to products; all NaN where a pivot is not positive."""
    block = _block(shape_of(x)[-1])

    def factor(a: Value) -> Value:
        n = shape_of(a)[-1]
        if n <= block:
            return _cholesky_columns(a)
        axis, k = len(shape_of(a)), _halves(n, block)
        first, side, last = _quarters(a, k)
        first, ok = factor(first)
        side = mH(_solve_lower(first, mH(side), block, False))  # side firstᴴ is the remaining part below
        last, ok_last = factor(sub(last, matmul(side, mH(side))))
        above = full((*shape_of(a)[:-2], k, n - k), 0, dtype_of(a))
        return concatenate(
            [concatenate([first, above], axis - 1), concatenate([side, last], axis - 1)], axis - 2
        ), and_(ok, ok_last)

    out, ok = factor(x)
    return where_each(ok, out, math.nan)


def _cholesky_columns(x: Value) -> Value:
    """Cholesky column by column; each column's part is subtracted from the columns to its right: (the factor, whether
    all pivots are positive).
    """
    positive = full(shape_of(x)[:-2], True, dtypes.bool_)

    def step(j: Value, carry: Sequence[Value]) -> tuple[Value, Value]:
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

    return _loop(shape_of(x)[-1], step, (x, positive))


def _triangular_solve(
    a: Value, b: Value, *, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool, unit_diagonal: bool
) -> Value:
    """By halves, down to blocks that are solved row by row."""
    a = conjugate(a) if conjugate_a else a
    if transpose_a:
        a, lower = mT(a), not lower
    if not left_side:
        a, b, lower = mT(a), mT(b), not lower
    if not shape_of(a)[-1]:
        return b
    block = _block(shape_of(a)[-1])
    if lower:
        x = _solve_lower(a, b, block, unit_diagonal)
    else:  # seen from the last row and column
        rank = len(shape_of(a))
        x = rev(_solve_lower(rev(a, (rank - 2, rank - 1)), rev(b, (rank - 2,)), block, unit_diagonal), (rank - 2,))
    return x if left_side else mT(x)


def _solve_lower(a: Value, b: Value, block: int, unit_diagonal: bool) -> Value:
    *batch, n, size = shape_of(b)
    if n > block and size > 1:  # for a single vector, rows are as fast as blocks
        k, lead = _halves(n, block), [0] * len(batch)
        first, side, last = _quarters(a, k)
        top = _solve_lower(first, slice_(b, (*lead, 0, 0), (*batch, k, size)), block, unit_diagonal)
        bottom = sub(slice_(b, (*lead, k, 0), (*batch, n, size)), matmul(side, top))
        return concatenate([top, _solve_lower(last, bottom, block, unit_diagonal)], len(batch))

    def step(i: Value, x: Value) -> Value:
        row = _at(a, -2, i)
        known = _keep(lt(_positions(row), broadcast_in_dim(i, shape_of(row), ())), row)
        rest = sub(_at(x, -2, i), _times(x, known))
        return _put(x, -2, i, rest if unit_diagonal else div(rest, _over(rest, _at(row, -1, i))))

    return _loop(n, step, b)


def _lu(x: Value) -> list[Value]:
    """Partial pivoting: the largest of a column's rest is swapped into the pivot's row."""
    *batch, m, n = shape_of(x)
    size = min(m, n)
    pivots = full((*batch, size), 0, dtypes.int32)
    perm = index((*batch, m), -1)
    if not m or not n:
        return [x, pivots, perm]

    def step(k: Value, carry: Sequence[Value]) -> tuple[Value, Value, Value]:
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


def _pivots(pivots: Value, *, permutation_size: int) -> Value:
    """The swaps of a factorisation, done on the numbers 0, 1, …"""
    *batch, k = shape_of(pivots)
    perm = index((*batch, permutation_size), -1)

    def step(i: Value, perm: Value) -> Value:
        p = _at(pivots, -1, i)
        at, here, there = _positions(perm), broadcast_in_dim(i, shape_of(perm), ()), _over(perm, p)
        chosen = reduce_sum(_keep(eq(at, there), perm), (len(batch),))
        perm = select(eq(at, there), _over(perm, _at(perm, -1, i)), perm)
        return select(eq(at, here), _over(perm, chosen), perm)

    return _loop(k, step, perm) if k else perm


def _reflection(column: Value, k: Value) -> tuple[Value, Value, Value, Value]:
    """(v, tau, head, still) of the reflection that reduces a column, from position k on, to `head` at k; v is 1 at k
    and 0 before it.

    Where there is nothing to reflect (`still`) tau is 0.
    """
    last = len(shape_of(column)) - 1
    at, here = _positions(column), broadcast_in_dim(k, shape_of(column), ())
    column = _keep(ge(at, here), column)
    # the largest entry becomes 1: squares of tiny entries would lose digits
    size = reduce_max(abs_(column), (last,))
    size = select(gt(size, _zeros(size)), size, full(shape_of(size), 1, dtype_of(size)))
    column = div(column, convert(_over(column, size), dtype_of(column)))
    alpha = _at(column, -1, k)
    tail = _keep(gt(at, here), column)
    rest = reduce_sum(real_part(mul(tail, conjugate(tail))), (last,))
    size_alpha = real_part(mul(alpha, conjugate(alpha)))
    length = sqrt(add(rest, size_alpha))
    head = real_part(alpha)
    zero, one = full(shape_of(length), 0, dtype_of(length)), full(shape_of(length), 1, dtype_of(length))
    sign = select(eq(head, zero), div(one, head), head)  # as LAPACK's SIGN, which tells zeros apart
    beta = select(gt(sign, zero), neg(length), length)
    still = eq(rest, zero)
    if dtypes.is_complex(dtype_of(column)):
        still = and_(still, eq(size_alpha, mul(head, head)))
    beta = convert(select(still, one, beta), dtype_of(column))
    tau = _keep(not_(still), div(sub(beta, alpha), beta))
    scale = select(still, convert(one, dtype_of(column)), sub(alpha, beta))
    v = _keep(broadcast_in_dim(not_(still), shape_of(tail), tuple(range(last))), div(tail, _over(tail, scale)))
    v = add(v, _keep(eq(at, here), full(shape_of(v), 1, dtype_of(v))))
    return v, tau, mul(select(still, alpha, beta), convert(size, dtype_of(alpha))), still


def _stored(column: Value, k: Value, v: Value, head: Value) -> Value:
    """A column with `head` at k and the reflection below it, as LAPACK keeps it."""
    at, here = _positions(column), broadcast_in_dim(k, shape_of(column), ())
    return select(eq(at, here), _over(column, head), select(gt(at, here), v, column))


def _reflect_column(k: Value, a: Value, taus: Value) -> tuple[Value, Value]:
    """One step of a QR factorisation: reduces column k, and applies the reflection to the columns to its right."""
    column = _at(a, -1, k)
    v, tau, head, _ = _reflection(column, k)
    # H is applied conjugated, so that Hᴴ A is R: A - conj(tau) v (vᴴ A)
    update = _outer(mul(v, _over(v, conjugate(tau))), _times(a, conjugate(v)))
    right = gt(index(shape_of(a), -1), broadcast_in_dim(k, shape_of(a), ()))
    a = sub(a, _keep(right, update))
    return _put(a, -1, k, _stored(column, k, v, head)), _put(taus, -1, k, tau)


def _geqrf(x: Value) -> list[Value]:
    """Householder reflections H = 1 - tau v vᴴ with v[k] = 1; v is stored below R, as LAPACK does."""
    *batch, m, n = shape_of(x)
    size = min(m, n)
    taus = full((*batch, size), 0, dtype_of(x))
    return list(_loop(size, lambda k, carry: _reflect_column(k, *carry), (x, taus))) if m and n else [x, taus]


def _swap_columns(a: Value, k: Value, p: Value) -> Value:
    """a with the columns k and p[...] of each matrix swapped; of vectors the entries."""
    at = index(shape_of(a), -1)
    there = eq(at, broadcast_in_dim(p, shape_of(a), tuple(range(len(shape_of(p))))))
    column_k = _at(a, -1, k)
    column_p = reduce_sum(_keep(there, a), (len(shape_of(a)) - 1,))
    spread = lambda v: broadcast_in_dim(v, shape_of(a), tuple(range(len(shape_of(v)))))
    a = select(there, spread(column_k), a)
    return select(eq(at, broadcast_in_dim(k, shape_of(a), ())), spread(column_p), a)


def _geqp3(x: Value, *, use_magma: bool | None) -> list[Value]:
    """The same with the longest of the remaining columns swapped to the front of them before each step."""
    *batch, m, n = shape_of(x)
    size = min(m, n)
    taus, perm = full((*batch, size), 0, dtype_of(x)), index((*batch, n), -1)
    if not m or not n:
        return [x, taus, perm]

    def step(k: Value, carry: Sequence[Value]) -> tuple[Any, ...]:
        a, taus, perm = carry
        below = ge(index(shape_of(a), -2), broadcast_in_dim(k, shape_of(a), ()))
        lengths = reduce_sum(_keep(below, real_part(mul(a, conjugate(a)))), (len(batch),))
        left = ge(_positions(lengths), broadcast_in_dim(k, shape_of(lengths), ()))
        p = argmax(select(left, lengths, full(shape_of(lengths), -1, dtype_of(lengths))), len(batch), dtypes.int32)
        a, perm = _swap_columns(a, k, p), _swap_columns(perm, k, p)
        return (*_reflect_column(k, a, taus), perm)

    return list(_loop(size, step, (x, taus, perm)))


def _householder_product(a: Value, taus: Value) -> Value:
    """The first columns of H₁ H₂ …, from the last reflection back."""
    *batch, m, n = shape_of(a)
    count = shape_of(taus)[-1]

    def step(j: Value, q: Value) -> Value:
        k = sub(scalar_like(j, count - 1), j)
        column = _at(a, -1, k)
        at, here = _positions(column), broadcast_in_dim(k, shape_of(column), ())
        v = select(eq(at, here), full(shape_of(column), 1, dtype_of(column)), _keep(gt(at, here), column))
        return sub(q, _outer(mul(v, _over(v, _at(taus, -1, k))), _times(q, conjugate(v))))

    q = eye((*batch, m, n), dtype_of(a))
    return _loop(count, step, q) if count else q


def _ormqr(a: Value, taus: Value, c: Value, *, left: bool, transpose: bool) -> Value:
    """Applies one reflection after another, the last of the product first."""
    if not left:  # c Q = (Qᴴ cᴴ)ᴴ
        return mH(_ormqr(a, taus, mH(c), left=True, transpose=not transpose))
    count = shape_of(taus)[-1]

    def step(j: Value, c: Value) -> Value:
        k = j if transpose else sub(scalar_like(j, count - 1), j)
        column, tau = _at(a, -1, k), _at(taus, -1, k)
        at, here = _positions(column), broadcast_in_dim(k, shape_of(column), ())
        v = select(eq(at, here), full(shape_of(column), 1, dtype_of(column)), _keep(gt(at, here), column))
        return sub(c, _outer(mul(v, _over(v, conjugate(tau) if transpose else tau)), _times(c, conjugate(v))))

    return _loop(count, step, c) if count and 0 not in shape_of(c) else c


def _cholesky_update(r: Value, w: Value) -> Value:
    """Rotations of r's rows and w, after which nothing is left of w."""

    def step(k: Value, carry: Sequence[Value]) -> tuple[Value, Value]:
        r, w = carry
        row, head = _at(r, -2, k), _at(w, -1, k)
        pivot = _at(row, -1, k)
        # the length of (pivot, head) without overflow
        larger, smaller = max_(abs_(pivot), abs_(head)), min_(abs_(pivot), abs_(head))
        nothing = eq(larger, _zeros(larger))
        one = full(shape_of(larger), 1, dtype_of(larger))
        ratio = div(smaller, select(nothing, one, larger))
        length = select(nothing, one, mul(larger, sqrt(add(one, mul(ratio, ratio)))))
        c, s = select(nothing, one, div(pivot, length)), div(head, length)
        new = add(mul(_over(row, c), row), mul(_over(w, s), w))
        return _put(r, -2, k, new), sub(mul(_over(w, c), w), mul(_over(row, s), row))

    n = shape_of(r)[-1]
    return triu(_loop(n, step, (r, w))[0]) if n else r


def _tridiagonal(a: Value, *, lower: bool) -> list[Value]:
    """Reflections from both sides, column by column. The upper triangle is treated as the lower one with rows and
    columns reversed.
    """
    *batch, n, _ = shape_of(a)
    rank = len(batch)
    flip = (lambda x, own: x) if lower else (lambda x, own: rev(x, tuple(range(rank, rank + own))))
    a = flip(a, 2)
    real_dtype = dtype_of(real_part(a))
    on = convert(eq(index(shape_of(a), -2), index(shape_of(a), -1)), dtypes.bool_)
    low = tril(a, -1)
    h = add(add(low, mH(low)), _keep(on, convert(real_part(a), dtype_of(a))))
    e, taus = full((*batch, n - 1), 0, real_dtype), full((*batch, n - 1), 0, dtype_of(a))

    def step(k: Value, carry: Sequence[Value]) -> tuple[Value, Value, Value, Value]:
        h, stored, e, taus = carry
        one = add(k, scalar_like(k, 1))
        v, tau, head, _ = _reflection(_at(h, -1, k), one)
        h = sub(h, _outer(mul(v, _over(v, conjugate(tau))), _times(h, conjugate(v))))
        # h v = Σ_j h[i, j] v[j], from the right
        h = sub(h, _outer(_times(mT(h), v), conjugate(mul(v, _over(v, conjugate(tau))))))
        stored = _put(stored, -1, k, _stored(_at(stored, -1, k), one, v, head))
        return h, stored, _put(e, -1, k, real_part(head)), _put(taus, -1, k, tau)

    h, stored, e, taus = _loop(n - 1, step, (h, a, e, taus)) if n > 1 else (h, a, e, taus)
    d = real_part(reduce_sum(_keep(on, h), (rank + 1,)))
    stored = select(on, rows(convert(d, dtype_of(a)), n), stored)
    return [flip(stored, 2), flip(d, 1), flip(e, 1), flip(taus, 1)]


def _hessenberg(a: Value) -> list[Value]:
    """Reflections from both sides, each of which leaves a column zero below its first subdiagonal."""
    *batch, n, _ = shape_of(a)
    taus = full((*batch, max(n - 1, 0)), 0, dtype_of(a))
    if n < 2:
        return [a, taus]

    def step(k: Value, carry: Sequence[Value]) -> tuple[Value, Value]:
        a, taus = carry
        one = add(k, scalar_like(k, 1))
        column = _at(a, -1, k)
        v, tau, head, _ = _reflection(column, one)
        a = sub(a, _outer(_times(mT(a), v), conjugate(mul(v, _over(v, conjugate(tau))))))
        update = _outer(mul(v, _over(v, conjugate(tau))), _times(a, conjugate(v)))
        a = sub(a, _keep(gt(index(shape_of(a), -1), broadcast_in_dim(k, shape_of(a), ())), update))
        return _put(a, -1, k, _stored(column, one, v, head)), _put(taus, -1, k, tau)

    return list(_loop(n - 1, step, (a, taus)))


def _tridiagonal_solve(dl: Value, d: Value, du: Value, b: Value, *, perturb_singular: Value) -> Value:
    """Gaussian elimination with rows swapped, downwards, and substitution upwards: U has two diagonals above its
    own.
    """
    n, zero = shape_of(d)[-1], _zeros(d)
    if not n or 0 in shape_of(b):
        return b
    last = eq(_positions(d), full(shape_of(d), n - 1, dtypes.int32))
    du = select(last, zero, du)

    def eliminate(i: Value, carry: Sequence[Value]) -> tuple[Value, Value, Value, Value]:
        on, above, far, x = carry
        j = add(i, scalar_like(i, 1))
        row = [_at(on, -1, i), _at(above, -1, i), full(shape_of(d)[:-1], 0, dtype_of(d))]
        below = [_at(dl, -1, j), _at(on, -1, j), _at(above, -1, j)]
        top, bottom = _at(x, -2, i), _at(x, -2, j)
        swap = lt(abs_(row[0]), abs_(below[0]))
        row, below = [select(swap, q, p) for p, q in zip(row, below)], [select(swap, p, q) for p, q in zip(row, below)]
        swap = broadcast_in_dim(swap, shape_of(top), tuple(range(len(shape_of(swap)))))
        top, bottom = select(swap, bottom, top), select(swap, top, bottom)
        empty = eq(row[0], _zeros(row[0]))
        factor = select(
            empty, _zeros(row[0]), div(below[0], select(empty, full(shape_of(empty), 1, dtype_of(d)), row[0]))
        )
        on, above, far = _put(on, -1, i, row[0]), _put(above, -1, i, row[1]), _put(far, -1, i, row[2])
        on, above = (
            _put(on, -1, j, sub(below[1], mul(factor, row[1]))),
            _put(above, -1, j, sub(below[2], mul(factor, row[2]))),
        )
        return on, above, far, _put(_put(x, -2, i, top), -2, j, sub(bottom, mul(_over(top, factor), top)))

    on, above, far, x = _loop(n - 1, eliminate, (d, du, zero, b)) if n > 1 else (d, du, zero, b)
    sizes, limits, axis = abs_(on), finfo(dtype_of(d)), len(shape_of(d)) - 1
    if perturb_singular:
        largest = reduce_max(max_(sizes, max_(abs_(above), abs_(far))), (axis,))
        least = max_(
            mul(largest, scalar_like(largest, float(limits.eps))),
            full(shape_of(largest), float(limits.tiny), dtype_of(largest)),
        )
        on = select(
            lt(sizes, full(shape_of(sizes), float(limits.tiny), dtype_of(sizes))),
            convert(_over(on, least), dtype_of(on)),
            on,
        )

    def substitute(j: Value, x: Value) -> Value:
        i = sub(scalar_like(j, n - 1), j)
        # past the end U holds zeros
        known = lambda v, by: _at(v, -2, min_(add(i, scalar_like(i, by)), scalar_like(i, n - 1)))
        rest = _at(x, -2, i)
        rest = sub(rest, mul(_over(rest, _at(above, -1, i)), known(x, 1)))
        rest = sub(rest, mul(_over(rest, _at(far, -1, i)), known(x, 2)))
        return _put(x, -2, i, div(rest, _over(rest, _at(on, -1, i))))

    out = _loop(n, substitute, x)
    if perturb_singular:
        return out
    regular = reduce_min(convert(ne(on, _zeros(on)), dtypes.int32), (axis,))
    return where_each(gt(regular, _zeros(regular)), out, math.nan)


for _primitive, _meaning in (
    (cholesky_p, _cholesky),
    (triangular_solve_p, _triangular_solve),
    (lu_p, _lu),
    (lu_pivots_to_permutation_p, _pivots),
    (geqrf_p, _geqrf),
    (geqp3_p, _geqp3),
    (householder_product_p, _householder_product),
    (ormqr_p, _ormqr),
    (cholesky_update_p, _cholesky_update),
    (tridiagonal_p, _tridiagonal),
    (tridiagonal_solve_p, _tridiagonal_solve),
    (hessenberg_p, _hessenberg),
):
    _primitive.add_rules(decompose=_meaning)
