"""Eigenvalues and singular values by Jacobi's rotations, for backends without LAPACK: the decomposition of eigh, and of
svd where it is asked for.

G. Golub and C. Van Loan, "Matrix Computations", 4th edition, 8.5 and 8.6.3: sweeps of rotations of two columns each,
until the entries to be eliminated are as small as rounding errors. A stack is swept until its last matrix has
converged.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Sequence

from ..base import dtypes, limits
from ..primitives.elementwise import abs_, add, and_, div, eq, gt, is_finite, lt, mul, ne, neg, rem, select, sign, sub
from ..primitives.transcendental import sqrt
from ..primitives.linalg import qr_p
from ..primitives.linear import broadcast_in_dim, convert, full, reduce_sum
from ..primitives.matrix import conjugate, diagonal, eye, index, mH, real_part, rows, scale_columns, tril, where_each
from ..primitives.reduce import reduce_and
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..primitives.shape import concatenate, slice_
from ..primitives.sort import sort_p, take_along
from ..primitives.spectral import EighImplementation, SvdAlgorithm, eigh_p
from .factorise import _at, _loop, _over, _put
from ..higher_order.while_loop import while_loop

if TYPE_CHECKING:
    from ..core.types import Value

SWEEPS = 40  # of which some ten are enough


def _rotation(alpha: Value, beta: Value, gamma: Value, on: Value) -> tuple[Value, Value, Value]:
    """(s, tau, e) so that c x - s ē y and s x + c ē y, c = 1 - s tau, are the columns that diagonalize ((alpha, gamma),
    (conj gamma, beta)); identity where not `on`. A c that is rounded would lengthen or shorten the columns a little,
    and each goes through hundreds of rotations.
    """
    size = abs_(gamma)
    one, zero = full(shape_of(size), 1, dtype_of(size)), full(shape_of(size), 0, dtype_of(size))
    on = and_(on, gt(size, zero))
    safe = select(on, size, one)
    ratio = div(sub(beta, alpha), mul(safe, full(shape_of(size), 2, dtype_of(size))))
    towards = select(lt(ratio, zero), neg(one), one)
    # without overflow: for large ratios the tangent is 1 / (2 ratio)
    length = abs_(ratio)
    large = gt(length, full(shape_of(size), 1e8, dtype_of(size)))
    root = select(large, length, sqrt(add(one, mul(select(large, one, ratio), select(large, one, ratio)))))
    t = div(towards, add(length, root))
    root = sqrt(add(one, mul(t, t)))
    phase = div(gamma, convert(safe, dtype_of(gamma)))
    s, tau = select(on, div(t, root), zero), select(on, div(t, add(one, root)), zero)
    return convert(s, dtype_of(gamma)), convert(tau, dtype_of(gamma)), select(on, phase, convert(one, dtype_of(gamma)))


def _turn(x: Value, axis: int, p: Value, q: Value, s: Value, tau: Value, e: Value) -> Value:
    """x with the columns (axis -1) or rows p and q replaced by c x_p - s ē x_q and s x_p + c ē x_q, c = 1 - s tau."""
    xp, xq = _at(x, axis, p), _at(x, axis, q)
    wide = lambda v: _over(xp, v)
    s, tau, xq = wide(s), wide(tau), mul(wide(conjugate(e)), xq)
    return _put(
        _put(x, axis, p, sub(xp, mul(s, add(xq, mul(tau, xp))))), axis, q, add(xq, mul(s, sub(xp, mul(tau, xq))))
    )


def _pairs(n: int, rotate: Value, carry: Sequence[Value]) -> Value:
    """One sweep: rotate(p, q, is_pair, carry) for all p and q below n, with is_pair where p < q."""

    def step(i: Value, carry: Sequence[Value]) -> Value:
        p, q = div(i, scalar_like(i, n)), rem(i, scalar_like(i, n))
        return rotate(p, q, lt(p, q), carry)

    return _loop(n * n, step, carry)


def _sweep_until(done: Value, sweep: Value, carry: Sequence[Value]) -> Value:
    """Sweeps until `done` of each matrix."""

    def proceed(state: Value) -> Value:
        k, carry = state
        finished = done(carry)
        return and_(
            lt(k, scalar_like(k, SWEEPS)),
            eq(reduce_and(finished, tuple(range(len(shape_of(finished))))), full((), False, dtypes.bool_)),
        )

    return while_loop(proceed, lambda state: (add(state[0], scalar_like(state[0], 1)), sweep(state[1])), (0, carry))[1]


def _square_sum(x: Value) -> Value:
    rank = len(shape_of(x))
    return reduce_sum(real_part(mul(x, conjugate(x))), (rank - 2, rank - 1))


def _finite(x: Value) -> Value:
    """Whether all entries of each matrix are finite."""
    rank = len(shape_of(x))
    return reduce_and(is_finite(abs_(mul(x, full(shape_of(x), 0, dtype_of(x))))), (rank - 2, rank - 1))


def _only_jacobi(name: str, algorithm: Any, *fine: Value) -> None:
    if algorithm not in (None, *fine):
        raise NotImplementedError(
            f"{name}: this backend computes by Jacobi's rotations, not with the algorithm {algorithm.name}. Leave it"
            " out, or use the cpu backend."
        )


def _spread(flag: Value, like: Value) -> Value:
    return broadcast_in_dim(flag, shape_of(like), ())


def _ordered(keys: Value, descending: bool) -> tuple[Value, Value]:
    """(keys in order, the positions they come from), along the last axis."""
    at = index(shape_of(keys), -1)
    found, order = sort_p.bind(
        neg(keys) if descending else keys, at, dimension=len(shape_of(keys)) - 1, is_stable=True, num_keys=1
    )
    return neg(found) if descending else found, order


def _columns_at(x: Value, order: Value) -> Value:
    return take_along(x, rows(order, shape_of(x)[-2]), len(shape_of(x)) - 1)


def _eigh(
    a: Value, *, lower: bool, sort_eigenvalues: bool, subset_by_index: tuple[int, int] | None, algorithm: Any
) -> list[Value]:
    _only_jacobi("eigh", algorithm, EighImplementation.JACOBI)
    *batch, n, _ = shape_of(a)
    a = a if lower else mH(a)
    ok = _finite(tril(a))
    a = where_each(ok, a, 0)
    on = eq(index(shape_of(a), -2), index(shape_of(a), -1))
    low = tril(a, -1)
    h = add(add(low, mH(low)), select(on, convert(real_part(a), dtype_of(a)), full(shape_of(a), 0, dtype_of(a))))
    eps = float(limits.finfo(dtype_of(a)).eps)

    def rotate(p: Value, q: Value, is_pair: Value, carry: Sequence[Value]) -> tuple[Value, Value]:
        h, v = carry
        row = _at(h, -2, p)
        alpha, beta, gamma = real_part(_at(row, -1, p)), real_part(_at(_at(h, -2, q), -1, q)), _at(row, -1, q)
        turn = _rotation(alpha, beta, gamma, _spread(is_pair, alpha))
        h = _turn(_turn(h, -1, p, q, *turn), -2, p, q, *map(conjugate, turn))
        return h, _turn(v, -1, p, q, *turn)

    def done(carry: Sequence[Value]) -> Value:
        off = select(on, full(shape_of(a), 0, dtype_of(a)), carry[0])
        whole = _square_sum(carry[0])
        return ne(
            gt(_square_sum(off), mul(whole, scalar_like(whole, eps * eps))), full(shape_of(whole), True, dtypes.bool_)
        )

    h, v = (
        _sweep_until(done, lambda carry: _pairs(n, rotate, carry), (h, eye(shape_of(a), dtype_of(a))))
        if n > 1
        else (h, eye(shape_of(a), dtype_of(a)))
    )
    w, order = _ordered(real_part(diagonal(h)), False)
    v = _columns_at(v, order)
    if subset_by_index is not None:
        start, end = subset_by_index
        lead = (0,) * len(batch)
        v, w = slice_(v, (*lead, 0, start), (*batch, n, end)), slice_(w, (*lead, start), (*batch, end))
    return [where_each(ok, v, math.nan), where_each(ok, w, math.nan)]


def _svd(
    x: Value, *, full_matrices: bool, compute_uv: bool, subset_by_index: tuple[int, int] | None, algorithm: Any
) -> list[Value]:
    """Columns are rotated until they are orthogonal: then their lengths are the singular values."""
    _only_jacobi("svd", algorithm, SvdAlgorithm.DEFAULT, SvdAlgorithm.JACOBI)
    *batch, m, n = shape_of(x)
    params = dict(
        full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index, algorithm=algorithm
    )
    if m < n:
        s, *sides = _svd(mH(x), **params)
        return [s, *map(mH, reversed(sides))]
    eps = float(limits.finfo(dtype_of(x)).eps)
    ok = _finite(x)
    x = where_each(ok, x, 0)
    axis = len(batch)

    def rotate(p: Value, q: Value, is_pair: Value, carry: Sequence[Value]) -> tuple[Value, Value, Value]:
        a, v, worst = carry
        ap, aq = _at(a, -1, p), _at(a, -1, q)
        alpha, beta = [reduce_sum(real_part(mul(c, conjugate(c))), (axis,)) for c in (ap, aq)]
        gamma = reduce_sum(mul(conjugate(ap), aq), (axis,))
        pair = _spread(is_pair, alpha)
        # how far from orthogonal, as a cosine
        lengths = sqrt(mul(alpha, beta))
        nothing = eq(lengths, full(shape_of(lengths), 0, dtype_of(lengths)))
        cosine = select(
            and_(pair, eq(nothing, full(shape_of(nothing), False, dtypes.bool_))),
            div(abs_(gamma), select(nothing, full(shape_of(lengths), 1, dtype_of(lengths)), lengths)),
            full(shape_of(lengths), 0, dtype_of(lengths)),
        )
        turn = _rotation(alpha, beta, gamma, pair)
        return _turn(a, -1, p, q, *turn), _turn(v, -1, p, q, *turn), select(gt(cosine, worst), cosine, worst)

    def sweep(carry: Sequence[Value]) -> Value:
        a, v, worst = carry
        return _pairs(n, rotate, (a, v, full(shape_of(worst), 0, dtype_of(worst))))

    v = eye((*batch, n, n), dtype_of(x))
    far = full(tuple(batch), math.inf, dtype_of(real_part(x)))
    a, v, _ = (
        _sweep_until(
            lambda carry: lt(carry[2], full(shape_of(far), 2 * eps * math.sqrt(m), dtype_of(far))), sweep, (x, v, far)
        )
        if n > 1
        else (x, v, far)
    )
    s, order = _ordered(sqrt(reduce_sum(real_part(mul(a, conjugate(a))), (axis,))), True)
    lead, (start, end) = (0,) * axis, subset_by_index or (0, n)
    kept = where_each(ok, slice_(s, (*lead, start), (*batch, end)), math.nan)
    if not compute_uv:
        return [kept]
    a, v = _columns_at(a, order), _columns_at(v, order)
    live = gt(s, full(shape_of(s), 0, dtype_of(s)))
    one = full(shape_of(s), 1, dtype_of(s))
    u = scale_columns(a, div(select(live, one, full(shape_of(s), 0, dtype_of(s))), select(live, s, one)))
    # Q completes u, up to the phases on R's diagonal
    q, r = qr_p.bind(u, pivoting=False, full_matrices=full_matrices, use_magma=None)
    phase = diagonal(slice_(r, (*lead, 0, 0), (*batch, n, n)))
    phase = select(live, sign(phase), convert(one, dtype_of(phase)))
    first = scale_columns(slice_(q, (*lead, 0, 0), (*batch, m, n)), phase)
    u = _put_columns(q, first) if full_matrices and m > n else first
    vt = mH(v)
    if not full_matrices:
        u, vt = slice_(u, (*lead, 0, start), (*batch, m, end)), slice_(vt, (*lead, start, 0), (*batch, end, n))
    return [kept, where_each(ok, u, math.nan), where_each(ok, vt, math.nan)]


def _put_columns(q: Value, first: Value) -> Value:
    """q with its leading columns replaced."""
    *batch, m, size = shape_of(q)
    n = shape_of(first)[-1]
    lead = (0,) * len(batch)
    return concatenate([first, slice_(q, (*lead, 0, n), (*batch, m, size))], len(batch) + 1)


eigh_p.add_rules(decompose=_eigh)
