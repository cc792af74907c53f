"""Schur's form and general eigenvalues by shifted QR steps: the decompositions of schur and eig, for backends without
LAPACK.

G. Golub and C. Van Loan, "Matrix Computations", 4th edition, 7.5 (Francis's double shift for real matrices, a single
shift for complex ones) and 7.6.4; the standard form of a real 2x2 block is that of LAPACK's lanv2. One matrix at a
time, batched over stacks.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Sequence

from ..base import dtypes, limits
from ..core.trace import Axis
from ..primitives.elementwise import (
    abs_,
    and_,
    complex_,
    conj,
    eq,
    ge,
    gt,
    imag,
    is_finite,
    le,
    lt,
    max_,
    min_,
    ne,
    or_,
    real,
    select,
    sign,
)
from ..primitives.transcendental import sqrt
from ..primitives.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from ..primitives.linalg import householder_product_p
from ..primitives.linear import broadcast_in_dim, convert, full, reduce_sum, reshape
from ..primitives.matrix import (
    columns,
    conjugate,
    diagonal,
    eye,
    index,
    mH,
    matmul,
    pad_to,
    real_part,
    rows,
    triu,
    where_each,
)
from ..primitives.reduce import argmax, reduce_and, reduce_max
from ..primitives.rules import dtype_of, shape_of
from ..primitives.shape import slice_
from ..primitives.spectral import EigImplementation, eig_p, hessenberg_p, schur_p, unsorted
from ..transforms.batch import batch_flat
from ..higher_order.cond import cond
from .factorise import _at, _loop, _outer, _put, _reflection
from ..higher_order.while_loop import fori_loop, while_loop

if TYPE_CHECKING:
    from ..core.types import Value

STEPS = 40  # QR steps for each eigenvalue, of which two or three are enough


def _entry(x: Value, i: Value, j: Value) -> Value:
    return reshape(dynamic_slice_p.bind(x, i, j, slice_sizes=(1, 1)), ())


def _band(x: Value, i: Value, size: int, axis: int) -> Value:
    """`size` rows (axis 0) or columns (axis 1) of x from i on."""
    n, m = shape_of(x)
    return dynamic_slice_p.bind(
        x, *((i, 0) if axis == 0 else (0, i)), slice_sizes=(size, m) if axis == 0 else (n, size)
    )


def _put_band(x: Value, part: Any, i: Value, axis: int) -> Value:
    return dynamic_update_slice_p.bind(x, part, *((i, 0) if axis == 0 else (0, i)))


def _similar(h: Value, z: Value, q: Value, i: Value) -> tuple[Value, Value]:
    """(Qᴴ h Q, z Q) for a Q that differs from the identity in the rows and columns from i on, where it is q."""
    size = shape_of(q)[0]
    h = _put_band(h, matmul(mH(q), _band(h, i, size, 0)), i, 0)
    h = _put_band(h, matmul(_band(h, i, size, 1), q), i, 1)
    return h, _put_band(z, matmul(_band(z, i, size, 1), q), i, 1)


def _eps(x: Value) -> float:
    return float(limits.finfo(dtype_of(x)).eps)


def _signed(x: Value, y: Value) -> Value:
    """|x| with the sign of y, which is + for 0."""
    return select(lt(y, y * 0), -abs_(x), abs_(x))


def _of(*values: Value) -> Value:
    """Scalars as a vector."""
    out = full((len(values),), 0, dtype_of(values[0]))
    for k, v in enumerate(values):
        out = dynamic_update_slice_p.bind(out, reshape(v, (1,)), k)
    return out


def _standard(a: Value, b: Value, c: Value, d: Value) -> Value:
    """(cos, sin, block) of the rotation after which a real 2x2 matrix is triangular, or has equal diagonal entries
    and others of opposite signs.
    """
    zero, one = a * 0, a * 0 + 1
    guard = lambda x: select(eq(x, zero), one, x)
    gap = a - d
    p = gap * 0.5
    large, small = max_(abs_(b), abs_(c)), min_(abs_(b), abs_(c)) * sign(b) * sign(c)
    scale = guard(max_(abs_(p), large))
    z = p / scale * p + large / scale * small
    # real eigenvalues
    root = p + _signed(sqrt(scale) * sqrt(max_(z, zero)), p)
    tau = guard(sqrt(c * c + root * root))
    real_block = (root / tau, c / tau, d + root, b - c, zero, d - large / guard(root) * small)
    # a complex pair, or two that are nearly equal
    total = b + c
    tau = guard(sqrt(total * total + gap * gap))
    cs = sqrt(0.5 * (one + abs_(total) / tau))
    sn = -(p / (tau * cs)) * _signed(one, total)
    aa, bb, cc, dd = a * cs + b * sn, b * cs - a * sn, c * cs + d * sn, d * cs - c * sn
    b2, c2, mean = bb * cs + dd * sn, cc * cs - aa * sn, (a + d) * 0.5
    same = gt(b2 * c2, zero)
    rb, rc = sqrt(abs_(b2)), sqrt(abs_(c2))
    step, turn = _signed(rb * rc, c2), one / sqrt(guard(abs_(b2 + c2)))
    cs1, sn1 = select(same, rb * turn, one), select(same, rc * turn, zero)
    complex_block = (
        cs * cs1 - sn * sn1,
        cs * sn1 + sn * cs1,
        select(same, mean + step, mean),
        select(same, b2 - c2, b2),
        select(same, zero, c2),
        select(same, mean - step, mean),
    )
    pick = lambda test, x, y: tuple(select(test, u, v) for u, v in zip(x, y))
    out = pick(ge(z, full((), 4 * _eps(a), dtype_of(a))), real_block, complex_block)
    standing = or_(eq(c, zero), and_(eq(gap, zero), ne(sign(b), sign(c))))
    out = pick(eq(b, zero), (zero, one, d, -c, zero, a), out)
    return pick(standing, (one, zero, a, b, c, d), out)


def _deflated(h: Value, z: Value, low: Value) -> tuple[Value, Value]:
    """The 2x2 block at `low` in standard form."""
    at = [(_entry(h, low + i, low + j)) for i in (0, 1) for j in (0, 1)]
    c, s, *block = _standard(*at)
    h, z = _similar(h, z, reshape(_of(c, -s, s, c), (2, 2)), low)
    return dynamic_update_slice_p.bind(h, reshape(_of(*block), (2, 2)), low, low), z


def _shift(h: Value, high: Value, tries: Value) -> Value:
    """Wilkinson's shift of the last two rows; after ten steps in vain another."""
    a, b, c, d = [_entry(h, high - i, high - j) for i in (1, 0) for j in (1, 0)]
    p, bc = (a - d) * 0.5, b * c
    root = sqrt(p * p + bc)
    root = select(lt(real(p * conj(root)), real(p) * 0), -root, root)
    below = p + root
    none = eq(abs_(below), abs_(below) * 0)
    usual = d - select(none, bc * 0, bc / select(none, bc * 0 + 1, below))
    return select(eq(tries % 10, tries * 0 + 9), d + convert(abs_(c), dtype_of(c)), usual)


def _first(h: Value, low: Value, high: Value, tries: Value) -> Value:
    """The first column of the matrix whose factorisation the step is: h - shift, or, of real matrices, the product
    for two shifts.
    """
    at = lambda i, j: _entry(h, low + i, low + j)
    if dtypes.is_complex(dtype_of(h)):
        return _of(at(0, 0) - _shift(h, high, tries), at(1, 0))
    a, b, c, d = [_entry(h, high - i, high - j) for i in (1, 0) for j in (1, 0)]
    odd = eq(tries % 10, tries * 0 + 9)
    size = abs_(c) + abs_(_entry(h, high - 1, high - 2))
    total, product = select(odd, 1.5 * size, a + d), select(odd, size * size, a * d - b * c)
    return _of(
        at(0, 0) * at(0, 0) + at(0, 1) * at(1, 0) - total * at(0, 0) + product,
        at(1, 0) * (at(0, 0) + at(1, 1) - total),
        at(2, 1) * at(1, 0),
    )


def _sweep(h: Value, z: Value, low: Value, high: Value, tries: Value) -> Value:
    """One QR step on the rows and columns low … high: creates a bulge and chases it out."""
    first = _first(h, low, high, tries)
    size = shape_of(first)[0]

    def chase(k: Value, carry: Sequence[Value]) -> tuple[Value, Value]:
        h, z = carry
        k = convert(k, dtypes.int32)
        begin = eq(k, low)
        before = max_(k - 1, k * 0)
        column = reshape(dynamic_slice_p.bind(h, k, before, slice_sizes=(size, 1)), (size,))
        v, tau, head, _ = _reflection(select(begin, first, column), full((), 0, dtypes.int32))
        q = eye((size, size), dtype_of(h)) - _outer(v * tau, conjugate(v))
        h, z = _similar(h, z, q, k)
        cleared = _put(column * 0, -1, 0, head)
        kept = reshape(dynamic_slice_p.bind(h, k, before, slice_sizes=(size, 1)), (size,))
        return dynamic_update_slice_p.bind(h, reshape(select(begin, kept, cleared), (size, 1)), k, before), z

    return fori_loop(low, high, chase, (h, z))


def _triangular(h: Value, z: Value) -> tuple[Value, Value]:
    """(T, Z) from a Hessenberg matrix h and the basis z that it is expressed in; NaN if the steps do not converge."""
    n = shape_of(h)[0]
    pairs = not dtypes.is_complex(dtype_of(h))
    if n < 2:
        return h, z
    wide = n + 1 if pairs else n  # room for the bulge below the last row
    h, z = pad_to(h, wide, wide), pad_to(z, n, wide)
    row = index((wide,), 0)

    def proceed(state: Value) -> Value:
        _, _, high, _, left = state
        return and_(gt(high, high * 0), gt(left, left * 0))

    def step(state: Value) -> tuple[Any, Any, Any, Any, Any]:
        h, z, high, tries, left = state
        below = abs_(reduce_sum(select(eq(index((wide, wide), 0) - 1, index((wide, wide), 1)), h, h * 0), (1,)))
        on = abs_(diagonal(h))
        beside = on + dynamic_update_slice_p.bind(on, slice_(on, (0,), (wide - 1,)), 1)
        whole = reduce_max(on, (0,)) + reduce_max(below, (0,))
        limit = _eps(h) * select(eq(beside, beside * 0), broadcast_in_dim(whole, (wide,), ()), beside)
        split = or_(le(below, limit), eq(row, row * 0))
        split = and_(split, le(row, broadcast_in_dim(high, (wide,), ())))
        low = reduce_max(select(split, row, row * 0), (0,))
        gone = and_(split, gt(row, row * 0))
        h = select(and_(columns(gone, wide), eq(index((wide, wide), 0) - 1, index((wide, wide), 1))), h * 0, h)
        alone = eq(low, high)
        pair = eq(low + 1, high)
        done = or_(alone, pair) if pairs else alone

        def settle(h: Value, z: Value) -> Value:
            return cond(alone, lambda h, z: (h, z), lambda h, z: _deflated(h, z, low), h, z) if pairs else (h, z)

        h, z = cond(done, settle, lambda h, z: _sweep(h, z, low, high, tries), h, z)
        return h, z, select(done, low - 1, high), select(done, tries * 0, tries + 1), left - 1

    start = full((), n - 1, dtypes.int32), full((), 0, dtypes.int32), full((), STEPS * n, dtypes.int32)
    h, z, high, _, _ = while_loop(proceed, step, (h, z, *start))
    ok = le(high, high * 0)
    h, z = slice_(h, (0, 0), (n, n)), slice_(z, (0, 0), (n, n))
    return where_each(ok, triu(h, -1 if pairs else 0), math.nan), where_each(ok, z, math.nan)


def _reduced(a: Value) -> tuple[Value, Value]:
    """(H, Q) so that a = Q H Qᴴ with H in Hessenberg form."""
    n = shape_of(a)[0]
    if n < 2:
        return a, eye((n, n), dtype_of(a))
    stored, taus = hessenberg_p.bind(a)
    inner = householder_product_p.bind(slice_(stored, (1, 0), (n, n - 1)), taus)
    return triu(stored, -1), dynamic_update_slice_p.bind(eye((n, n), dtype_of(a)), inner, 1, 1)


def _each(f: Value, a: Value) -> list[Value]:
    """Applies f to every matrix of a stack, and scales the first result by the matrix's scale; NaN for matrices that
    are not finite.
    """
    *batch, n, _ = shape_of(a)
    ok = reduce_and(is_finite(abs_(a)), (len(batch), len(batch) + 1))
    a = where_each(ok, a, 0)
    # so that squares neither overflow nor vanish
    size = reduce_max(abs_(a), (len(batch), len(batch) + 1))
    most = full(shape_of(size), 1e100 if dtypes.name(dtype_of(size)) == "float64" else 1e12, dtype_of(size))
    fits = or_(eq(size, size * 0), and_(lt(size, most), gt(size, 1 / most)))
    scale = select(fits, size * 0 + 1, size)
    spread = lambda x: broadcast_in_dim(convert(scale, dtype_of(x)), shape_of(x), tuple(range(len(batch))))
    a = a / spread(a)
    if not batch:
        outs = list(f(a))
    else:
        count = math.prod(batch)
        outs, dims = batch_flat(lambda x: list(f(x)), Axis(None, count), [reshape(a, (count, n, n))], [0])
        assert all(d == 0 for d in dims)
        outs = [reshape(o, (*batch, *shape_of(o)[1:])) for o in outs]
    outs[0] = outs[0] * spread(outs[0])
    return [where_each(ok, o, math.nan) for o in outs]


def _schur(a: Value, *, compute_schur_vectors: bool, sort_eig_vals: bool, select_callable: Value) -> Value:
    if sort_eig_vals:
        raise unsorted()
    if not shape_of(a)[-1]:
        return [a] * (1 + compute_schur_vectors)
    return _each(lambda a: _triangular(*_reduced(a)), a)[: 1 + compute_schur_vectors]


def _substitute(t: Value, left: bool) -> Value:
    """The eigenvectors of an upper triangular matrix as columns, or (left) those of its conjugate transpose."""
    n = shape_of(t)[0]
    t = mH(t) if left else t
    on = diagonal(t)
    least = max_(
        reduce_max(reshape(abs_(t), (n * n,)), (0,)) * _eps(real_part(t)),
        full((), float(limits.finfo(dtype_of(real_part(t))).tiny), dtype_of(real_part(t))),
    )

    def row(k: Value, x: Value) -> Value:
        i = k if left else (n - 1) - k
        known = _at(t, -2, i)
        rest = reduce_sum(columns(known, n) * x, (0,))  # the entries that are not known yet are 0
        gap = _at(on, -1, i) - on
        gap = select(
            lt(abs_(gap), broadcast_in_dim(least, (n,), ())),
            broadcast_in_dim(convert(least, dtype_of(t)), (n,), ()),
            gap,
        )
        here = index((n,), 0)
        open_ = lt(here, i * (here * 0 + 1)) if left else gt(here, i * (here * 0 + 1))
        return _put(x, -2, i, select(open_, -rest / gap, _at(x, -2, i)))

    return _loop(n, row, eye((n, n), dtype_of(t)))


def _unit(v: Value) -> Value:
    """Columns of length 1 whose largest entry is real."""
    n = shape_of(v)[0]
    size = abs_(v)
    scale = reduce_max(size, (0,))
    v = v / convert(rows(scale, n), dtype_of(v))
    length = sqrt(reduce_sum(real(v * conj(v)), (0,)))
    here = convert(eq(index((n, n), 0), rows(argmax(size, 0, dtypes.int32), n)), dtype_of(v))
    pick = reduce_sum(here * v, (0,))
    phase = conj(pick) / convert(abs_(pick) * length, dtype_of(v))
    return v * rows(phase, n)


def _eig(
    a: Value,
    *,
    compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool,
    enable_eigvec_derivs: bool,
    implementation: Any,
) -> list[Any]:
    if implementation not in (None, EigImplementation.LAPACK):
        raise ValueError(
            f"eig: this backend computes by QR steps, not with the kernel {implementation.name}. Leave implementation"
            " out, or use the cpu backend."
        )
    kinds = (True,) * compute_left_eigenvectors + (False,) * compute_right_eigenvectors
    if not shape_of(a)[-1]:
        wide = dtype_of(complex_(real_part(a), real_part(a)))
        return [full(shape_of(a)[:-1], 0, wide), *[full(shape_of(a), 0, wide) for _ in kinds]]

    def one(a: Value) -> list[Value]:
        n = shape_of(a)[0]
        pairs = not dtypes.is_complex(dtype_of(a))
        t, z = _triangular(*_reduced(a))
        if not pairs:
            return [diagonal(t), *[_unit(matmul(z, _substitute(t, left))) for left in kinds]]
        # t[i, i - k]
        beside = lambda k: reduce_sum(select(eq(index((n, n), 0), index((n, n), 1) + k), t, t * 0), (1,))
        lower, upper = beside(1), beside(-1)
        first = ne(
            beside(-1) * 0 + reduce_sum(select(eq(index((n, n), 0) - 1, index((n, n), 1)), t, t * 0), (0,)), upper * 0
        )
        second = ne(lower, lower * 0)
        size = sqrt(abs_(upper)) * sqrt(
            abs_(reduce_sum(select(eq(index((n, n), 0) - 1, index((n, n), 1)), t, t * 0), (0,)))
        )
        size = select(first, size, size * 0)
        after = dynamic_update_slice_p.bind(size * 0, slice_(size, (0,), (n - 1,)), 1) if n > 1 else size * 0
        w = complex_(diagonal(t), size - after)
        if not kinds:
            return [w]
        wide = dtype_of(w)
        t2, z2 = _triangular(convert(t, wide), convert(z, wide))
        outs = []
        for left in kinds:
            v = _unit(matmul(z2, _substitute(t2, left)))
            # of a pair the first vector that belongs to the eigenvalue above the real axis; its conjugate is the second
            turned = ne(sign(imag(diagonal(t2))), sign(imag(w)))
            v = select(rows(turned, n), conj(v), v)
            before = dynamic_update_slice_p.bind(v, slice_(v, (0, 0), (n, n - 1)), 0, 1) if n > 1 else v
            v = select(rows(second, n), conj(before), v)
            outs.append(select(rows(or_(first, second), n), v, convert(real(v), wide)))
        return [w, *outs]

    return _each(one, a)


schur_p.add_rules(decompose=_schur)
eig_p.add_rules(decompose=_eig)
