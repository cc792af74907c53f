"""Factorisations of stacks of matrices and triangular systems, with their derivatives.

All take arrays of shape [..., m, n] and work on each matrix, so batching only adds a leading axis.
`decompositions.factorise` has their loops, for backends without LAPACK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..base import dtypes
from ..base.avals import shaped, tangent_aval
from ..core.primitive import Primitive, UndefinedPrimal, Zero, unsupported
from ..core.shardings import leading
from ..core.wire import FINITE, FLAG, NOTHING, SIZE, either, portable
from ..core.trace import get_aval
from ..base.errors import at_user_line, type_error
from ..base.host import np
from .elementwise import add, eq, ge, mul, neg, select, sub
from .linear import add_any, broadcast_to_axis, convert, full, moveaxis
from .matrix import (
    columns,
    conjugate,
    diagonal,
    diagonal_matrix,
    eye,
    index,
    mH,
    matmul,
    mT,
    pad_to,
    real_part,
    rows,
    tril,
    triu,
)
from .rules import dtype_of, is_linear_arg, scalar_like, shape_of
from .shape import concatenate, slice_
from .sort import take_along

if TYPE_CHECKING:
    from ..base.avals import ShapedArray
    from ..core.trace import Axis
    from ..core.types import Dims, Value

LAPACK_DTYPES = ("float32", "float64", "complex64", "complex128")


def check_matrix(name: str, x: Value, square: bool = False) -> None:
    """Raises unless `x` is a stack of (square) matrices of a dtype that factorisations are computed in."""
    if not dtypes.is_inexact(x.dtype):
        raise type_error(
            f"{name} does not accept dtype {dtypes.name(x.dtype)} at position 0. It takes float32, float64, complex64"
            " and complex128; convert the matrix with astype."
        )
    if dtypes.name(x.dtype) not in LAPACK_DTYPES:
        raise NotImplementedError(
            f"{name} is not computed in {dtypes.name(x.dtype)}. Convert the matrix with astype('float32')."
        )
    if len(x.shape) < 2:
        raise type_error(f"{name} takes arrays of at least two dimensions, got shape {x.shape}.")
    if square and x.shape[-1] != x.shape[-2]:
        raise ValueError(f"{name} takes square matrices, of shape (..., n, n), got shape {x.shape}.")


def check_same(name: str, *avals: tuple[ShapedArray, int]) -> None:
    """Raises unless the operands have one dtype and as many batch axes, of equal sizes. Each operand is given with its
    number of own axes.
    """
    first = avals[0][0]
    if any(a.dtype != first.dtype for a, _ in avals):
        raise type_error(
            f"{name} requires arguments to have the same dtypes, got"
            f" {', '.join(dtypes.name(a.dtype) for a, _ in avals)}."
        )
    for a, own in avals:
        if len(a.shape) < own:
            raise type_error(f"{name} takes an operand of at least {own} dimensions where it got shape {a.shape}.")
    batches = [a.shape[: len(a.shape) - own] for a, own in avals]
    shapes = ", ".join(str(a.shape) for a, _ in avals)
    if len(set(map(len, batches))) > 1:
        raise type_error(f"{name} requires operands with the same number of batch dimensions, got shapes {shapes}.")
    if len(set(batches)) > 1:
        raise ValueError(f"{name} requires operands with equal batch dimensions, got shapes {shapes}.")


def _batch(primitive: Primitive) -> Callable[..., Any]:
    """The batching of a primitive on stacks of matrices: it gets one more leading axis."""

    def batch(axis: Axis, args: Sequence[Value], dims: Dims, **params: Any) -> tuple[Value, Any]:
        args = [
            broadcast_to_axis(x, axis.size, axis.placed) if d is None else moveaxis(x, d, 0) for x, d in zip(args, dims)
        ]
        out = primitive.bind(*args, **params)
        return out, [0] * len(out) if primitive.multiple_results else 0

    return batch


def _zeros(outs: Value) -> list[Any]:
    return [Zero(tangent_aval(get_aval(o))) for o in outs]


def _zero_like(x: Value) -> Value:
    return Zero(tangent_aval(get_aval(x)))


def _per_matrix(f: Callable[..., Any], *xs: Any, outs: int = 1) -> Value:
    """`f` of each matrix of a stack, stacked again."""
    batch = xs[0].shape[:-2]
    if not batch:
        return f(*xs)
    flat = [x.reshape(-1, *x.shape[-2:]) for x in xs]
    results = [f(*one) for one in zip(*flat)]
    if not results:
        raise ValueError("an empty stack of matrices has no factorisation to compute")
    if outs == 1:
        return np.stack(results).reshape(*batch, *results[0].shape)
    return [np.stack(r).reshape(*batch, *r[0].shape) for r in zip(*results)]


# cholesky ------------------------------------------------------------------------------------------------------------

cholesky_p = Primitive("cholesky", wire=portable())
cholesky_p.shard = leading("cholesky", (2,))


def _cholesky_abstract(x: ShapedArray) -> ShapedArray:
    check_matrix("cholesky", x, square=True)
    return x


def _cholesky_reference(x: Value) -> Any:
    def one(a: Value) -> Value:
        try:
            return np.linalg.cholesky(a)
        except np.linalg.LinAlgError:
            return np.full_like(a, np.nan)

    return _per_matrix(one, x) if x.size else x


def _cholesky_jvp(primals: Sequence[Value], tangents: Sequence[Value]) -> tuple[Value, Value]:
    """I. Murray, "Differentiation of the Cholesky decomposition" (2016), equation 8: dL = L Φ(L⁻¹ dA L⁻ᴴ)."""
    factor = tril(cholesky_p.bind(*primals))
    (t,) = tangents
    if type(t) is Zero:
        return factor, _zero_like(factor)
    inner = triangular_solve(factor, t, left_side=False, lower=True, transpose_a=True, conjugate_a=True)
    inner = triangular_solve(factor, inner, left_side=True, lower=True)
    on_diagonal = diagonal(inner)
    half = sub(tril(inner), diagonal_matrix(mul(on_diagonal, scalar_like(on_diagonal, 0.5))))
    return factor, matmul(factor, half)


cholesky_p.abstract, cholesky_p.reference, cholesky_p.jvp, cholesky_p.batch = (
    _cholesky_abstract,
    _cholesky_reference,
    _cholesky_jvp,
    _batch(cholesky_p),
)

# triangular_solve ----------------------------------------------------------------------------------------------------

triangular_solve_p = Primitive(
    "triangular_solve",
    wire=portable(left_side=FLAG, lower=FLAG, transpose_a=FLAG, conjugate_a=FLAG, unit_diagonal=FLAG),
)
triangular_solve_p.shard = leading("triangular_solve", (2, 2))


def _triangular_abstract(
    a: ShapedArray,
    b: ShapedArray,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> ShapedArray:
    if a.dtype != b.dtype:
        raise type_error(
            f"triangular_solve requires arguments to have the same dtypes, got {dtypes.name(a.dtype)} and"
            f" {dtypes.name(b.dtype)}."
        )
    if not dtypes.is_inexact(a.dtype):
        raise type_error(
            f"triangular_solve does not accept dtype {dtypes.name(a.dtype)}; convert the arrays with astype."
        )
    if conjugate_a and not transpose_a:
        raise type_error(
            "triangular_solve: conjugate_a goes with transpose_a; conjugate the matrix first (weft.numpy.conj)."
        )
    check_same("triangular_solve", (a, 2), (b, 2))
    if a.shape[-1] != a.shape[-2]:
        raise ValueError(
            "The first argument to triangular_solve must be square matrices, of shape (..., n, n), got shape"
            f" {a.shape}."
        )
    if b.shape[-2 if left_side else -1] != a.shape[-1]:
        raise ValueError(
            f"Incompatible shapes for arguments to triangular_solve: {a.shape} and {b.shape} (left_side={left_side})."
        )
    return shaped(b.shape, b.dtype, a.weak_type and b.weak_type)


def _triangular_reference(
    a: Value, b: Value, *, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool, unit_diagonal: bool
) -> Any:
    wide = np.complex128 if np.iscomplexobj(a) else np.float64
    t = (np.tril if lower else np.triu)(a.astype(wide))
    n = a.shape[-1]
    if unit_diagonal:
        t[..., range(n), range(n)] = 1
    t = t.conj() if conjugate_a else t
    t, lower = (np.swapaxes(t, -1, -2), not lower) if transpose_a else (t, lower)
    x = b.astype(wide)
    if not left_side:
        t, x, lower = np.swapaxes(t, -1, -2), np.swapaxes(x, -1, -2), not lower
    x = x.copy()
    with np.errstate(all="ignore"):
        for i in range(n) if lower else reversed(range(n)):
            done = slice(0, i) if lower else slice(i + 1, n)
            x[..., i, :] = (x[..., i, :] - np.einsum("...k,...kj->...j", t[..., i, done], x[..., done, :])) / t[
                ..., i, i, None
            ]
    return (x if left_side else np.swapaxes(x, -1, -2)).astype(b.dtype)


def _triangular_jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Value, Value]:
    """From op(A) X = B: dX = op(A)⁻¹ (dB - op(dA) X); see M. Giles, "An extended collection of matrix derivative
    results" (2008), 2.3.1.
    """
    (a, b), (ta, tb) = primals, tangents
    x = triangular_solve_p.bind(a, b, **params)
    if type(ta) is Zero and type(tb) is Zero:
        return x, _zero_like(x)
    if type(ta) is not Zero:
        k = -1 if params["unit_diagonal"] else 0
        ta = tril(ta, k) if params["lower"] else triu(ta, -k)
        ta = mT(ta) if params["transpose_a"] else ta
        ta = conjugate(ta) if params["conjugate_a"] else ta
        moved = neg(matmul(ta, x) if params["left_side"] else matmul(x, ta))
        tb = moved if type(tb) is Zero else add_any(tb, moved)
    return x, triangular_solve_p.bind(a, tb, **params)


def _triangular_transpose(ct: Value, a: Value, b: Value, *, transpose_a: bool, **params: Any) -> list[Value | None]:
    if is_linear_arg(a):
        raise NotImplementedError("triangular_solve is linear in its right-hand side, not in the triangular matrix.")
    return [None, triangular_solve(a, ct, transpose_a=not transpose_a, **params)]


triangular_solve_p.abstract, triangular_solve_p.reference, triangular_solve_p.jvp = (
    _triangular_abstract,
    _triangular_reference,
    _triangular_jvp,
)
triangular_solve_p.transpose, triangular_solve_p.batch = _triangular_transpose, _batch(triangular_solve_p)


def triangular_solve(
    a: Value,
    b: Value,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Value:
    """X with op(A) X = B (left_side) or X op(A) = B, where A is triangular."""
    complex_a = dtypes.is_complex(dtype_of(a))
    if conjugate_a and not transpose_a:
        a, conjugate_a = conjugate(a), False
    return triangular_solve_p.bind(
        a,
        b,
        left_side=bool(left_side),
        lower=bool(lower),
        transpose_a=bool(transpose_a),
        conjugate_a=bool(conjugate_a and complex_a),
        unit_diagonal=bool(unit_diagonal),
    )


# lu ------------------------------------------------------------------------------------------------------------------

lu_p = Primitive("lu", multiple_results=True, wire=portable())
lu_p.shard = leading("lu", (2,))


def _lu_abstract(x: ShapedArray) -> list[ShapedArray]:
    check_matrix("lu", x)
    *batch, m, n = x.shape
    return [x, shaped((*batch, min(m, n)), dtypes.int32), shaped((*batch, m), dtypes.int32)]


def _lu_reference(x: Value) -> Any:
    def one(a: Value) -> tuple[Value, Value, Value]:
        wide = np.complex128 if np.iscomplexobj(a) else np.float64
        a, (m, n) = a.astype(wide), a.shape
        pivots, perm = np.zeros(min(m, n), np.int32), np.arange(m, dtype=np.int32)
        for k in range(min(m, n)):
            p = k + int(np.argmax(np.abs(a[k:, k].real) + np.abs(a[k:, k].imag)))
            pivots[k], a[[k, p]], perm[[k, p]] = p, a[[p, k]], perm[[p, k]]
            if a[k, k] != 0:
                a[k + 1 :, k] /= a[k, k]
            a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
        return a, pivots, perm

    if not x.size:
        *batch, m, n = x.shape
        return x, np.zeros((*batch, min(m, n)), np.int32), np.broadcast_to(np.arange(m, dtype=np.int32), (*batch, m))
    return _per_matrix(one, x, outs=3)


def permute_rows(x: Value, order: Sequence[int]) -> Value:
    """Row i is row order[..., i] of the matrices."""
    if 0 in shape_of(x):
        return x
    return take_along(x, columns(order, shape_of(x)[-1]), len(shape_of(x)) - 2)


def solve_with_lu(a: Value, b: Value) -> Value:
    """x with a x = b."""
    lu, _, perm = lu_p.bind(a)
    x = triangular_solve(lu, permute_rows(b, perm), left_side=True, lower=True, unit_diagonal=True)
    return triangular_solve(lu, x, left_side=True, lower=False)


def _lu_jvp(primals: Sequence[Value], tangents: Sequence[Value]) -> tuple[Value, Value]:
    """With X = L⁻¹ P dA U⁻¹: dL = L tril(X, -1), dU = triu(X) U, after L or U is made square with ones on its diagonal;
    F. de Hoog et al., "Sensitivity of the LU factorisation" (2011).
    """
    lu, pivots, perm = lu_p.bind(*primals)
    (t,) = tangents
    if type(t) is Zero:
        return [lu, pivots, perm], _zeros([lu, pivots, perm])
    *batch, m, n = shape_of(lu)
    k = min(m, n)
    lead = (0,) * len(batch)
    part = lambda x, r, c: slice_(x, (*lead, 0, 0), (*batch, r, c))
    below = add(tril(pad_to(part(lu, m, k), m, m), -1), eye((*batch, m, m), dtype_of(lu)))
    above = triu(pad_to(part(lu, k, n), n, n))
    if n > k:  # ones on the part of the diagonal that U does not have
        i = index((*batch, n, n), -2)
        missing = eq(
            index((*batch, n, n), -1), select(ge(i, scalar_like(i, k)), i, full(shape_of(i), -1, dtypes.int32))
        )
        above = add(above, convert(missing, dtype_of(lu)))
    x = triangular_solve(below, permute_rows(t, perm), left_side=True, lower=True, unit_diagonal=True)
    x = triangular_solve(above, x, left_side=False, lower=False)
    lower = matmul(below, pad_to(part(tril(x, -1), m, k), m, m))
    upper = matmul(pad_to(part(triu(x), k, n), n, n), above)
    both = add(pad_to(part(lower, m, k), m, n), pad_to(part(upper, k, n), m, n))
    return [lu, pivots, perm], [both, _zero_like(pivots), _zero_like(perm)]


lu_p.abstract, lu_p.reference, lu_p.jvp, lu_p.batch = _lu_abstract, _lu_reference, _lu_jvp, _batch(lu_p)

lu_pivots_to_permutation_p = Primitive("lu_pivots_to_permutation", basic=False, wire=portable(permutation_size=SIZE))
lu_pivots_to_permutation_p.shard = leading("lu_pivots_to_permutation", (1,))


def _pivots_abstract(pivots: ShapedArray, *, permutation_size: int) -> ShapedArray:
    if pivots.dtype != dtypes.int32:
        raise type_error(
            f"lu_pivots_to_permutation does not accept dtype {dtypes.name(pivots.dtype)} at position 0; pivots are"
            " int32."
        )
    if len(pivots.shape) < 1:
        raise ValueError(f"Argument to lu_pivots_to_permutation must have rank at least 1, got shape {pivots.shape}.")
    if permutation_size < pivots.shape[-1]:
        raise ValueError(
            f"permutation_size {permutation_size} must be at least the number of pivots, {pivots.shape[-1]}."
        )
    return shaped((*pivots.shape[:-1], permutation_size), dtypes.int32)


def _pivots_reference(pivots: Value, *, permutation_size: int) -> Any:
    out = np.broadcast_to(np.arange(permutation_size, dtype=np.int32), (*pivots.shape[:-1], permutation_size)).copy()
    for where in np.ndindex(pivots.shape[:-1]):
        row = out[where]
        for i, p in enumerate(pivots[where]):
            other = row[p] if 0 <= p < permutation_size else 0  # indices outside refer to no row
            if 0 <= p < permutation_size:
                row[p] = row[i]
            row[i] = other
    return out


def _pivots_jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Value, Value]:
    out = lu_pivots_to_permutation_p.bind(*primals, **params)
    return out, _zero_like(out)


lu_pivots_to_permutation_p.abstract, lu_pivots_to_permutation_p.reference = _pivots_abstract, _pivots_reference
lu_pivots_to_permutation_p.jvp, lu_pivots_to_permutation_p.batch = _pivots_jvp, _batch(lu_pivots_to_permutation_p)

# cholesky_update -----------------------------------------------------------------------------------------------------

cholesky_update_p = Primitive("cholesky_update", wire=portable())
cholesky_update_p.shard = leading("cholesky_update", (2, 1))


def _update_abstract(r: ShapedArray, w: ShapedArray) -> ShapedArray:
    check_matrix("cholesky_update", r)
    if dtypes.is_complex(r.dtype):
        raise type_error(
            f"cholesky_update does not accept dtype {dtypes.name(r.dtype)} at position 0; it takes floats."
        )
    check_same("cholesky_update", (r, 2), (w, 1))
    if r.shape[-1] != r.shape[-2] or w.shape[-1] != r.shape[-1]:
        raise ValueError(
            f"cholesky_update takes a square matrix and a vector of its size, got shapes {r.shape} and {w.shape}."
        )
    return r


def _update_reference(r: Value, w: Value) -> Any:
    """Rotations of r's rows and w that leave nothing of w."""
    r, w, out = r.astype(np.float64), w.astype(np.float64), r.dtype
    r, w = r.copy(), w.copy()
    with np.errstate(all="ignore"):
        for k in range(r.shape[-1]):
            length = np.hypot(r[..., k, k], w[..., k])
            safe = np.where(length == 0, 1, length)
            c, s = np.where(length == 0, 1, r[..., k, k] / safe), w[..., k] / safe
            row = r[..., k, :].copy()
            r[..., k, :] = c[..., None] * row + s[..., None] * w
            w = c[..., None] * w - s[..., None] * row
    return np.triu(r).astype(out)


cholesky_update_p.abstract, cholesky_update_p.reference, cholesky_update_p.batch = (
    _update_abstract,
    _update_reference,
    _batch(cholesky_update_p),
)
cholesky_update_p.jvp = unsupported(
    "cholesky_update has no derivative rule; differentiate cholesky of r.T @ r + outer(w, w)"
)

# qr ------------------------------------------------------------------------------------------------------------------

MAGMA = either(NOTHING, FLAG)
geqrf_p = Primitive("geqrf", multiple_results=True, wire=portable())
geqrf_p.shard = leading("geqrf", (2,))
# the same with columns swapped: (factors, taus, the columns' order)
geqp3_p = Primitive("geqp3", multiple_results=True, wire=portable(use_magma=MAGMA))
geqp3_p.shard = leading("geqp3", (2, 1))
householder_product_p = Primitive("householder_product", wire=portable())
householder_product_p.shard = leading("householder_product", (2, 1))
qr_p = Primitive(
    "qr", multiple_results=True, basic=False, wire=portable(pivoting=FLAG, full_matrices=FLAG, use_magma=MAGMA)
)
qr_p.shard = leading("qr", (2,))


def _geqrf_abstract(x: ShapedArray) -> list[ShapedArray]:
    check_matrix("qr", x)
    *batch, m, n = x.shape
    return [x, shaped((*batch, min(m, n)), x.dtype, x.weak_type)]


def _geqrf_reference(x: Value) -> Any:
    def one(a: Value) -> tuple[Value, Value]:
        h, tau = np.linalg.qr(a, mode="raw")
        return h.T, tau

    *batch, m, n = x.shape
    return _per_matrix(one, x, outs=2) if x.size else [x, np.zeros((*batch, min(m, n)), x.dtype)]


def _geqp3_abstract(x: ShapedArray, *, use_magma: bool | None) -> list[ShapedArray]:
    *batch, m, n = x.shape
    return [*_geqrf_abstract(x), shaped((*batch, n), dtypes.int32)]


def _geqp3_reference(x: Value, *, use_magma: bool | None) -> Any:
    """Before each reflection, the longest of the remaining columns is swapped to the front."""

    def one(a: Value) -> tuple[Value, Value, Value]:
        kind, wide = a.dtype, np.complex128 if np.iscomplexobj(a) else np.float64
        a, (m, n) = a.astype(wide), a.shape
        taus, perm = np.zeros(min(m, n), wide), np.arange(n, dtype=np.int32)
        for k in range(min(m, n)):
            p = k + int(np.argmax(np.linalg.norm(a[k:, k:], axis=0)))
            a[:, [k, p]], perm[[k, p]] = a[:, [p, k]], perm[[p, k]]
            h, tau = np.linalg.qr(a[k:, k : k + 1], mode="raw")
            a[k:, k], taus[k] = h[0], tau[0]
            v = np.concatenate([np.ones(1), h[0, 1:]])
            a[k:, k + 1 :] -= np.conj(tau[0]) * np.outer(v, v.conj() @ a[k:, k + 1 :])
        return a.astype(kind), taus.astype(kind), perm

    *batch, m, n = x.shape
    if not x.size:
        return [x, np.zeros((*batch, min(m, n)), x.dtype), np.broadcast_to(np.arange(n, dtype=np.int32), (*batch, n))]
    return _per_matrix(one, x, outs=3)


geqrf_p.abstract, geqrf_p.reference, geqrf_p.batch = _geqrf_abstract, _geqrf_reference, _batch(geqrf_p)
geqp3_p.abstract, geqp3_p.reference, geqp3_p.batch = _geqp3_abstract, _geqp3_reference, _batch(geqp3_p)
geqrf_p.jvp = geqp3_p.jvp = unsupported(
    "the Householder form of a QR factorisation has no derivative rule; differentiate qr"
)


def _householder_abstract(a: ShapedArray, taus: ShapedArray) -> ShapedArray:
    check_matrix("householder_product", a)
    m, n = a.shape[-2:]
    if m < n:
        raise ValueError(
            "The first argument to householder_product must have at least as many rows as columns, got shape"
            f" {a.shape}."
        )
    check_same("householder_product", (a, 2), (taus, 1))
    if taus.shape[-1] > n:
        raise ValueError(
            f"The second argument to householder_product must have shape (..., k) with k <= {n}, got shapes {a.shape}"
            f" and {taus.shape}."
        )
    return shaped(a.shape, a.dtype, a.weak_type)


def _householder_reference(a: Value, taus: Value) -> Any:
    *batch, m, n = a.shape
    q = np.broadcast_to(np.eye(m, n, dtype=a.dtype), a.shape).copy()
    for k in reversed(range(taus.shape[-1])):
        v = a[..., :, k].copy()
        v[..., :k], v[..., k] = 0, 1
        q = q - taus[..., k, None, None] * v[..., :, None] * np.einsum("...i,...ij->...j", v.conj(), q)[..., None, :]
    return q


householder_product_p.abstract, householder_product_p.reference = _householder_abstract, _householder_reference
householder_product_p.batch = _batch(householder_product_p)
householder_product_p.jvp = unsupported("householder_product has no derivative rule; differentiate qr")


ormqr_p = Primitive("ormqr", wire=portable(left=FLAG, transpose=FLAG))
ormqr_p.shard = leading("ormqr", (2, 1, 2))


def _ormqr_abstract(a: ShapedArray, taus: ShapedArray, c: ShapedArray, *, left: bool, transpose: bool) -> ShapedArray:
    check_matrix("ormqr", a)
    check_same("ormqr", (a, 2), (taus, 1), (c, 2))
    m, size = a.shape[-2], c.shape[-2 if left else -1]
    if size != m:
        side = "rows" if left else "columns"
        raise ValueError(
            f"ormqr with left={left}: c must have as many {side} as the reflections in a have rows, got shapes"
            f" {a.shape} and {c.shape}."
        )
    if taus.shape[-1] > min(a.shape[-2:]):
        raise ValueError(f"ormqr: there are more taus than reflections, got shapes {a.shape} and {taus.shape}.")
    return c


def _ormqr_reference(a: Value, taus: Value, c: Value, *, left: bool, transpose: bool) -> Any:
    *batch, m, n = a.shape
    k = taus.shape[-1]
    wide = np.complex128 if np.iscomplexobj(a) else np.float64
    full_a = np.zeros((*batch, m, m), wide)
    full_a[..., :k] = a[..., :k]
    q = _householder_reference(full_a, taus.astype(wide))
    q = np.swapaxes(q, -1, -2).conj() if transpose else q
    return (q @ c if left else c @ q).astype(c.dtype)


def _ormqr_jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Value, Value]:
    """It is linear in the matrix that is multiplied."""
    if any(type(t) is not Zero for t in tangents[:2]):
        raise NotImplementedError(
            at_user_line("ormqr has no derivative rule for its reflections; differentiate qr and multiply by its Q")
        )
    (a, taus, c), t = primals, tangents[2]
    out = ormqr_p.bind(a, taus, c, **params)
    return out, _zero_like(out) if type(t) is Zero else ormqr_p.bind(a, taus, t, **params)


def _ormqr_transpose(ct: Value, a: Value, taus: Value, c: Value, *, left: bool, transpose: bool) -> list[Value | None]:
    if type(c) is not UndefinedPrimal or any(type(x) is UndefinedPrimal for x in (a, taus)):
        raise NotImplementedError("ormqr is linear in the matrix that is multiplied, not in the reflections.")
    return [
        None,
        None,
        ct if type(ct) is Zero else conjugate(ormqr_p.bind(a, taus, conjugate(ct), left=left, transpose=not transpose)),
    ]


ormqr_p.abstract, ormqr_p.reference, ormqr_p.batch = _ormqr_abstract, _ormqr_reference, _batch(ormqr_p)
ormqr_p.jvp, ormqr_p.transpose = _ormqr_jvp, _ormqr_transpose


def _qr_abstract(x: ShapedArray, *, pivoting: bool, full_matrices: bool, use_magma: bool | None) -> list[ShapedArray]:
    check_matrix("qr", x)
    *batch, m, n = x.shape
    k = m if full_matrices else min(m, n)
    return [
        x.update(shape=(*batch, m, k)),
        x.update(shape=(*batch, k, n)),
        *[shaped((*batch, n), dtypes.int32)] * pivoting,
    ]


def _qr_decompose(x: Value, *, pivoting: bool, full_matrices: bool, use_magma: bool | None) -> Value:
    *batch, m, n = shape_of(x)
    lead = (0,) * len(batch)
    if m == 0 or n == 0:
        k = m if full_matrices else 0
        return [
            eye((*batch, m, k), dtype_of(x)),
            full((*batch, k, n), 0, dtype_of(x)),
            *([index((*batch, n), -1)] if pivoting else ()),
        ]
    r, taus, *order = geqp3_p.bind(x, use_magma=use_magma) if pivoting else geqrf_p.bind(x)
    if m < n:
        q = householder_product_p.bind(slice_(r, (*lead, 0, 0), (*batch, m, m)), taus)
    elif full_matrices:
        q = householder_product_p.bind(pad_to(r, m, m), taus)
    else:
        q, r = householder_product_p.bind(r, taus), slice_(r, (*lead, 0, 0), (*batch, n, n))
    return [q, triu(r), *order]


def _block(x: Value, rows_: Value, columns_: Value) -> Value:
    """The part of matrices between two rows and two columns, (start, stop) each."""
    *batch, _, _ = shape_of(x)
    lead = (0,) * len(batch)
    return slice_(x, (*lead, rows_[0], columns_[0]), (*batch, rows_[1], columns_[1]))


def _reduced_qr_jvp(q: Value, r: Value, t: Value) -> tuple[Value, Value]:
    """S. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra functions with application in optimum
    experimental design" (2010), section 3.2: with W = Qᴴ dA R⁻¹ and the skew part S of W below the diagonal, dQ = Q (S
    - W) + dA R⁻¹ and dR = (W - S) R.
    """
    t_rinv = triangular_solve(r, t, left_side=False, lower=False)
    w = matmul(mH(q), t_rinv)
    below = tril(w, -1)
    skew = sub(below, mH(below))
    if dtypes.is_complex(dtype_of(w)):  # the diagonal of R stays real
        on = diagonal(w)
        skew = add(skew, diagonal_matrix(sub(on, convert(real_part(on), dtype_of(on)))))
    return add(matmul(q, sub(skew, w)), t_rinv), matmul(sub(w, skew), r)


def _completed(q: Value, dq: Value, k: int, m: int) -> Value:
    """The tangents of the m - k columns that complete Q.

    Q = 1 - V T Vᴴ, for V = (V₁, V₂) with V₁ square. Its first columns Q₁ give W = V₂ V₁⁻¹ = B (A - 1)⁻¹, for their
    upper part A and their lower part B, and the others are (0, 1) + (Q₁ - (1, 0)) Wᴴ.
    """
    *batch, _, _ = shape_of(q)
    first = _block(q, (0, m), (0, k))
    top, bottom = _block(first, (0, k), (0, k)), _block(first, (k, m), (0, k))
    d_top, d_bottom = _block(dq, (0, k), (0, k)), _block(dq, (k, m), (0, k))
    less_one = mH(sub(top, eye(shape_of(top), dtype_of(q))))
    w = solve_with_lu(less_one, mH(bottom))  # Wᴴ
    dw = solve_with_lu(less_one, sub(mH(d_bottom), matmul(mH(d_top), w)))
    return add(matmul(dq, w), matmul(sub(first, eye((*batch, m, k), dtype_of(q))), dw))


def _qr_jvp(
    primals: Sequence[Value], tangents: Sequence[Value], *, pivoting: bool, full_matrices: bool, use_magma: bool | None
) -> tuple[Value, Value]:
    (x,), (t,) = primals, tangents
    *batch, m, n = shape_of(x)
    k, axis = min(m, n), len(batch)
    outs = q, r, *order = qr_p.bind(x, pivoting=pivoting, full_matrices=full_matrices and m != n, use_magma=use_magma)
    if type(t) is Zero or not k:
        return outs, _zeros(outs)
    t = take_along(t, rows(order[0], m), axis + 1) if pivoting else t
    wide, tall = n > m, shape_of(q)[-1] > k
    square = (lambda v: _block(v, (0, k), (0, k))) if wide or tall else (lambda v: v)
    first = (lambda v: _block(v, (0, m), (0, k))) if wide or tall else (lambda v: v)
    dq, dr = _reduced_qr_jvp(first(q), square(r), first(t))
    if wide:  # X₂ = Q R₂ in the columns that are left
        rest = lambda v: _block(v, (0, m), (k, n))
        dr = concatenate([dr, matmul(mH(q), sub(rest(t), matmul(dq, rest(r))))], axis + 1)
    if tall:
        dq, dr = concatenate([dq, _completed(q, dq, k, m)], axis + 1), pad_to(dr, m, n)
    return outs, [dq, dr, *_zeros(order)]


def _qr_reference(x: Value, *, pivoting: bool, full_matrices: bool, use_magma: bool | None) -> list[Value]:
    order = [_geqp3_reference(x, use_magma=use_magma)[2]] if pivoting else []
    ordered = np.take_along_axis(x, order[0][..., None, :], -1) if pivoting else x
    return [*np.linalg.qr(ordered, mode="complete" if full_matrices else "reduced"), *order]


qr_p.abstract, qr_p.reference, qr_p.decompose, qr_p.jvp, qr_p.batch = (
    _qr_abstract,
    _qr_reference,
    _qr_decompose,
    _qr_jvp,
    _batch(qr_p),
)

# symmetric_product ---------------------------------------------------------------------------------------------------

symmetric_product_p = Primitive("symmetric_product", basic=False, wire=portable(alpha=FINITE, beta=FINITE))
symmetric_product_p.shard = leading("symmetric_product", (2, 2))


def _symmetric_abstract(a: ShapedArray, c: ShapedArray, *, alpha: Value, beta: Value) -> ShapedArray:
    check_matrix("symmetric_product", a)
    if dtypes.is_complex(a.dtype):
        raise type_error(
            f"symmetric_product does not accept dtype {dtypes.name(a.dtype)} at position 0; it takes floats."
        )
    check_same("symmetric_product", (a, 2), (c, 2))
    if c.shape != (*a.shape[:-1], a.shape[-2]):
        raise ValueError(
            f"symmetric_product takes A of shape (..., m, k) and C of shape (..., m, m), got {a.shape} and {c.shape}."
        )
    return shaped(c.shape, c.dtype)


def _symmetric_decompose(a: Value, c: Value, *, alpha: Value, beta: Value) -> Value:
    product = matmul(a, mT(a))
    return add(mul(product, scalar_like(product, alpha)), mul(c, scalar_like(c, beta)))


def _symmetric_jvp(
    primals: Sequence[Value], tangents: Sequence[Value], *, alpha: Value, beta: Value
) -> tuple[Value, Value]:
    (a, c), (ta, tc) = primals, tangents
    out = symmetric_product_p.bind(a, c, alpha=alpha, beta=beta)
    terms = []
    if type(ta) is not Zero:
        half = matmul(ta, mT(a))
        terms.append(mul(add(half, mT(half)), scalar_like(half, alpha)))
    if type(tc) is not Zero:
        terms.append(mul(tc, scalar_like(tc, beta)))
    return out, _zero_like(out) if not terms else terms[0] if len(terms) == 1 else add(*terms)


symmetric_product_p.reference = lambda a, c, *, alpha, beta: np.asarray(
    alpha * (a @ np.swapaxes(a, -1, -2)) + beta * c, c.dtype
)
symmetric_product_p.abstract, symmetric_product_p.decompose = _symmetric_abstract, _symmetric_decompose
symmetric_product_p.jvp, symmetric_product_p.batch = _symmetric_jvp, _batch(symmetric_product_p)
