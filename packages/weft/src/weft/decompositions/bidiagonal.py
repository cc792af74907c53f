"""Singular values by way of two diagonals: the decomposition of svd, for backends without LAPACK.

G. Golub and C. Van Loan, "Matrix Computations", 4th edition, 5.4.8 and 8.6: reflections from both sides leave the
diagonal and the first superdiagonal. Implicit QR steps, whose shift is the smaller singular value of the last two rows,
reduce the superdiagonal to zero; each starts at the top of the last block that has not converged. J. Demmel and W.
Kahan, "Accurate Singular Values of Bidiagonal Matrices" (1990), on when the shift is zero.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Sequence

from ..base import dtypes, limits
from ..primitives.dot import dot_general
from ..primitives.elementwise import (
    abs_,
    add,
    and_,
    div,
    eq,
    ge,
    gt,
    le,
    lt,
    max_,
    min_,
    mul,
    ne,
    neg,
    select,
    sign,
    sub,
)
from ..primitives.transcendental import sqrt
from ..primitives.linear import convert, full, reshape
from ..primitives.matrix import columns, conjugate, eye, index, mH, mT, matmul, real_part, where_each
from ..primitives.reduce import reduce_max, reduce_min
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..primitives.shape import concatenate, slice_
from ..primitives.sort import sort_p, take_along
from ..primitives.spectral import SvdAlgorithm, svd_p
from .factorise import _at, _keep, _loop, _outer, _over, _put, _reflection, _times, _triangular_solve
from .jacobi import _finite, _svd as by_rotations
from ..higher_order.scan import scan
from ..higher_order.while_loop import while_loop

if TYPE_CHECKING:
    from ..core.types import Value

STEPS = 30  # QR steps for each singular value; about two are taken


def _bidiagonal(x: Value) -> Value:
    """(d, e, left, right) of a matrix with no more columns than rows: d and e the diagonals of B = Qᴴ x P, which are
    real, and left and right the reflections whose products Q and P are: (their vectors as rows, their factors).
    """
    m, n = shape_of(x)
    real = dtype_of(real_part(x))
    reflections = lambda size: (full((n, size), 0, dtype_of(x)), full((n,), 0, dtype_of(x)))

    def step(k: Value, carry: Sequence[Value]) -> tuple[Any, Any, Any, Any, Any]:
        a, d, e, (vs, taus), (us, sigmas) = carry
        v, tau, head, _ = _reflection(_at(a, -1, k), k)
        a = sub(a, _outer(mul(v, _over(v, conjugate(tau))), _times(a, conjugate(v))))
        d, left = _put(d, -1, k, real_part(head)), (_put(vs, -2, k, v), _put(taus, -1, k, tau))
        # the row's rest, from k + 1 on; past the last column nothing is reflected
        after = min_(add(k, scalar_like(k, 1)), scalar_like(k, n - 1))
        more = lt(k, scalar_like(k, n - 1))
        u, sigma, head, _ = _reflection(conjugate(_at(a, -2, k)), after)
        sigma = select(more, sigma, scalar_like(sigma, 0))
        image = dot_general(a, u, (((1,), (0,)), ((), ())), precision=("highest", "highest"))
        a = sub(a, _outer(mul(image, _over(image, sigma)), conjugate(u)))
        head = select(more, real_part(head), full((), 0, real))
        return a, d, _put(e, -1, k, head), left, (_put(us, -2, k, u), _put(sigmas, -1, k, sigma))

    zeros = full((n,), 0, real)
    return _loop(n, step, (x, zeros, zeros, reflections(m), reflections(n)))[1:]


def _product(vs: Value, taus: Value, count: int) -> Value:
    """The first `count` columns of H₁ H₂ …, H = 1 - tau v vᴴ with the v as rows: 1 - V T Vᴴ, where T's inverse is upper
    triangular and has the products vᵢᴴ vⱼ above its diagonal of 1 / tau (T. Joffrain et al., "Accumulating Householder
    transformations, revisited", 2006).
    """
    k, m = shape_of(vs)
    live = ne(taus, full((k,), 0, dtype_of(taus)))
    vs = _keep(columns(live, m), vs)
    products = matmul(conjugate(vs), mT(vs))
    one = full((k,), 1, dtype_of(taus))
    inverse = select(eq(index((k, k), -2), index((k, k), -1)), columns(div(one, select(live, taus, one)), k), products)
    rest = slice_(conjugate(vs), (0, 0), (k, count))
    rest = _triangular_solve(
        inverse, rest, left_side=True, lower=False, transpose_a=False, conjugate_a=False, unit_diagonal=False
    )
    return sub(eye((m, count), dtype_of(vs)), matmul(mT(vs), rest))


def _givens(f: Value, g: Value) -> tuple[Value, Value, Value]:
    """(c, s, r) with c f + s g = r and c g - s f = 0. Over thousands of rotations, the errors of c² + s² - 1 add up.
    The larger of c and s is therefore computed as one minus a small term that is rounded separately, which makes the
    errors small and unbiased.
    """
    swap = gt(abs_(g), abs_(f))
    large, small = select(swap, g, f), select(swap, f, g)
    some = ne(large, scalar_like(large, 0))
    ratio = div(small, select(some, large, scalar_like(large, 1)))
    square = add(mul(ratio, ratio), scalar_like(ratio, 1))
    root = sqrt(square)
    lacking = div(mul(ratio, ratio), add(root, square))  # 1 - 1 / root
    near, far = sub(scalar_like(root, 1), lacking), sub(ratio, mul(ratio, lacking))
    return select(swap, far, near), select(swap, near, far), mul(large, root)


def _least(f: Value, g: Value, h: Value) -> Value:
    """The smaller singular value of ((f, g), (0, h)), all at least zero."""
    length = lambda a, b: sqrt(add(mul(a, a), mul(b, b)))
    twice = add(length(add(f, h), g), length(sub(f, h), g))  # the larger of the two; their product is f h
    some = gt(twice, scalar_like(twice, 0))
    return select(
        some, div(mul(scalar_like(f, 2), mul(f, h)), select(some, twice, scalar_like(twice, 1))), scalar_like(f, 0)
    )


def _diagonalize(d: Value, above: Value, w: Value, split: int) -> Value:
    """(d, w) once nothing is left of B, which has d on its diagonal and above[k] over d[k] (above has a 0 at both
    ends). Rotations from the left turn the first `split` columns of w's rows, those from the right the others.
    """
    n, real = shape_of(d)[0], dtype_of(d)
    wide = shape_of(w)[1]
    eps = float(limits.finfo(real).eps)
    at = index((n,), 0)
    at_above, none = index((n + 1,), 0), full((n + 1,), 0, real)
    from_left = lt(index((wide,), 0), full((wide,), split, dtypes.int32))
    size = max_(reduce_max(abs_(d), (0,)), reduce_max(abs_(above), (0,)))
    small = mul(size, scalar_like(size, eps / 4))
    next_of = lambda k: add(k, scalar_like(k, 1))

    def without_small(d: Value, above: Value) -> Value:
        sizes, no = abs_(d), full((1,), 0, real)
        beside = add(concatenate([no, sizes], 0), concatenate([sizes, no], 0))
        return select(le(abs_(above), max_(mul(beside, full((n + 1,), eps, real)), _over(above, small))), none, above)

    def last(flags: Value) -> Value:
        return reduce_max(select(flags, at_above, full((n + 1,), 0, dtypes.int32)), (0,))

    def turn(start: Value, state: Value) -> tuple[Any, Any, Any, Any, Any, Any]:
        """Removes the entry g beside f. The entry that this creates below the diagonal is removed by a rotation of
        rows, which leaves the next f and g.
        """
        k, f, g, d, above, w = state
        after = next_of(k)
        x, y, z, far = _at(d, -1, k), _at(above, -1, after), _at(d, -1, after), _at(above, -1, next_of(after))
        c, s, r = _givens(f, g)
        above = _put(above, -1, k, select(eq(k, start), scalar_like(r, 0), r))
        x, y, low, z = add(mul(c, x), mul(s, y)), sub(mul(c, y), mul(s, x)), mul(s, z), mul(c, z)
        c_left, s_left, r = _givens(x, low)
        f, z, g, far = (
            add(mul(c_left, y), mul(s_left, z)),
            sub(mul(c_left, z), mul(s_left, y)),
            mul(s_left, far),
            mul(c_left, far),
        )
        d, above = _put(_put(d, -1, k, r), -1, after, z), _put(_put(above, -1, after, f), -1, next_of(after), far)
        top, bottom = _at(w, -2, k), _at(w, -2, after)
        c, s = [
            convert(select(from_left, _over(top, left), _over(top, right)), dtype_of(w))
            for left, right in ((c_left, c), (s_left, s))
        ]
        w = _put(_put(w, -2, k, add(mul(c, top), mul(s, bottom))), -2, after, sub(mul(c, bottom), mul(s, top)))
        return after, f, g, d, above, w

    def step(state: Value) -> tuple[Value, Value, Value, Value]:
        count, d, above, w = state
        end = last(ne(above, none))
        start = last(and_(eq(above, none), lt(at_above, _over(above, end))))
        inside = and_(ge(at, _over(d, start)), le(at, _over(d, end)))
        least = reduce_min(select(inside, abs_(d), _over(d, size)), (0,))
        first, over = _at(d, -1, start), sub(end, scalar_like(end, 1))
        shift = _least(abs_(_at(d, -1, over)), abs_(_at(above, -1, end)), abs_(_at(d, -1, end)))
        none_needed = le(least, mul(small, scalar_like(small, 4)))
        safe = select(none_needed, scalar_like(first, 1), first)
        shifted = mul(sub(abs_(first), shift), add(sign(safe), div(shift, safe)))
        f = select(none_needed, first, shifted)
        _, _, _, d, above, w = while_loop(
            lambda state: lt(state[0], end),
            lambda state: turn(start, state),
            (start, f, _at(above, -1, next_of(start)), d, above, w),
        )
        return next_of(count), d, without_small(d, above), w

    def go_on(state: Value) -> Value:
        count, _, above, _ = state
        return and_(lt(count, scalar_like(count, STEPS * n)), gt(reduce_max(abs_(above), (0,)), scalar_like(size, 0)))

    return while_loop(go_on, step, (full((), 0, dtypes.int32), d, without_small(d, above), w))[1::2]


def _svd_matrix(x: Value, full_matrices: bool, compute_uv: bool) -> list[Value]:
    """(s, u, vᴴ) of a matrix with no more columns than rows, whose entries are at most 1 in size."""
    m, n = shape_of(x)
    d, e, (vs, taus), (us, sigmas) = _bidiagonal(x)
    real = dtype_of(d)
    no = full((1,), 0, real)
    width, split = (m if full_matrices else n) if compute_uv else 0, m if compute_uv else 0
    if compute_uv:
        left = mT(_product(vs, taus, width))
        w = concatenate([slice_(left, (0, 0), (n, m)), mT(_product(us, sigmas, n))], 1)
    else:
        w = full((n, 1), 0, real)
    d, w = _diagonalize(d, concatenate([no, slice_(e, (0,), (n - 1,)), no], 0), w, split)
    keys, order = sort_p.bind(neg(abs_(d)), index((n,), 0), dimension=0, is_stable=True, num_keys=1)
    s = neg(keys)
    if not compute_uv:
        return [s]
    flip = columns(
        convert(select(lt(d, full((n,), 0, real)), full((n,), -1, real), full((n,), 1, real)), dtype_of(x)), n
    )
    w = concatenate([slice_(w, (0, 0), (n, m)), mul(slice_(w, (0, m), (n, m + n)), flip)], 1)
    w = take_along(w, columns(order, m + n), 0)
    u, vh = slice_(w, (0, 0), (n, m)), conjugate(slice_(w, (0, m), (n, m + n)))
    if width > n:
        u = concatenate([u, slice_(left, (n, 0), (m, m))], 0)
    return [s, mT(u), vh]


def _svd(
    x: Value, *, full_matrices: bool, compute_uv: bool, subset_by_index: tuple[int, int] | None, algorithm: Any
) -> list[Value]:
    *batch, m, n = shape_of(x)
    params = dict(
        full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index, algorithm=algorithm
    )
    if algorithm not in (None, SvdAlgorithm.DEFAULT, SvdAlgorithm.QR, SvdAlgorithm.JACOBI):
        raise NotImplementedError(
            f"svd: this backend computes by QR steps or Jacobi's rotations, not with the algorithm {algorithm.name}. "
            "Leave it out, or use the cpu backend."
        )
    if m < n:
        s, *sides = _svd(mH(x), **params)
        return [s, *map(mH, reversed(sides))]
    if not n:
        sides = [eye((*batch, m, m if full_matrices else 0), dtype_of(x)), full((*batch, 0, 0), 0, dtype_of(x))]
        nothing = full((*batch, 0), 0, dtype_of(real_part(x)))
        return _part([nothing, *(sides if compute_uv else [])], subset_by_index, full_matrices)
    ok = _finite(x)
    x = where_each(ok, x, 0)
    largest = reduce_max(abs_(x), (len(batch), len(batch) + 1))
    zero, one = [full(shape_of(largest), value, dtype_of(largest)) for value in (0, 1)]
    scale = select(gt(largest, zero), largest, one)
    x = div(x, convert(_over(x, scale), dtype_of(x)))
    if algorithm is SvdAlgorithm.JACOBI:
        outs = by_rotations(x, **params)
    elif batch:  # how many steps a matrix takes is its own affair
        stack = reshape(x, (math.prod(batch), m, n))
        outs = scan(lambda carry, x: (carry, _svd_matrix(x, full_matrices, compute_uv)), (), stack)[1]
        outs = _part([reshape(out, (*batch, *shape_of(out)[1:])) for out in outs], subset_by_index, full_matrices)
    else:
        outs = _part(_svd_matrix(x, full_matrices, compute_uv), subset_by_index, full_matrices)
    outs[0] = mul(outs[0], _over(outs[0], scale))
    return [where_each(ok, out, math.nan) for out in outs]


def _part(outs: list[Any], subset: Value, full_matrices: bool) -> list[Any]:
    """Of the values, and of the vectors unless all are wanted, those from subset[0] up to subset[1]."""
    if subset is None:
        return outs
    s, *sides = outs
    batch, zeros = shape_of(s)[:-1], (0,) * (len(shape_of(s)) - 1)
    outs = [slice_(s, (*zeros, subset[0]), (*batch, subset[1])), *sides]
    if sides and not full_matrices:
        u, vh = sides
        outs[1:] = (
            slice_(u, (*zeros, 0, subset[0]), (*shape_of(u)[:-1], subset[1])),
            slice_(vh, (*zeros, subset[0], 0), (*batch, subset[1], shape_of(vh)[-1])),
        )
    return outs


svd_p.add_rules(decompose=_svd)
