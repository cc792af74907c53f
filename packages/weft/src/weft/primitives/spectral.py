"""Eigenvalues and singular values: eigh, svd, eig, schur, hessenberg, with their derivatives."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, Sequence

from ..base import dtypes
from ..base.avals import shaped
from ..core.primitive import Primitive, Zero, unsupported
from ..core.shardings import leading
from ..core.wire import FALSE, FLAG, INTEGER, NOTHING, either, member, param_type, portable, row
from ..base.errors import at_user_line
from ..base.host import np
from .elementwise import abs_, add, complex_, div, eq, imag, mul, neg, real, select, sub
from .linalg import _batch, _per_matrix, _zeros, check_matrix, solve_with_lu
from .linear import convert, full, reduce_sum
from .matrix import columns, conjugate, diagonal, index, mH, matmul, real_part, rows, scale_columns, scale_rows
from .reduce import argmax
from .rules import dtype_of, shape_of

if TYPE_CHECKING:
    from ..base.avals import ShapedArray
    from ..core.types import ElementType, Value


@param_type
class EigImplementation(enum.Enum):
    """Whose kernel computes eigenvalues of general matrices: LAPACK's on the CPU; on a GPU cuSOLVER's, MAGMA's, or
    LAPACK's on the host.
    """

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


@param_type
class EighImplementation(enum.Enum):
    """How eigenvalues of Hermitian matrices are computed: QR everywhere, Jacobi's rotations on a GPU, a polar
    iteration on a TPU.
    """

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


@param_type
class SvdAlgorithm(enum.Enum):
    """How singular values are computed; DEFAULT is the platform's choice."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


def _gaps(w: Value, gap: Value) -> Value:
    """1 / gap(w_i, w_j) for i != j, and 0 where i = j."""
    n = shape_of(w)[-1]
    wide = gap(columns(w, n), rows(w, n))
    shape = shape_of(wide)
    same = eq(index(shape, -2), index(shape, -1))
    one, zero = full(shape, 1, dtype_of(w)), full(shape, 0, dtype_of(w))
    return select(same, zero, div(one, select(same, one, wide)))


def _real(dt: ElementType) -> Value:
    return dtypes.real_of(dt) if dtypes.is_complex(dt) else dt


def _complex(dt: ElementType) -> Value:
    return dt if dtypes.is_complex(dt) else dtypes.complex_of(dt)


def _subset(name: str, subset: tuple[int, int] | None, n: int) -> int:
    """How many values a subset_by_index names."""
    if subset is None:
        return n
    start, end = subset
    if not 0 <= start < end <= n:
        raise ValueError(f"{name}: subset_by_index must name a range within 0..{n}, got {tuple(subset)}.")
    return end - start


# eigh ----------------------------------------------------------------------------------------------------------------

SUBSET = either(NOTHING, row(INTEGER, INTEGER))
eigh_p = Primitive(
    "eigh",
    multiple_results=True,
    wire=portable(
        lower=FLAG,
        sort_eigenvalues=FLAG,
        subset_by_index=SUBSET,
        algorithm=either(NOTHING, member("EighImplementation")),
    ),
)


def _eigh_abstract(
    x: ShapedArray, *, lower: bool, sort_eigenvalues: bool, subset_by_index: tuple[int, int] | None, algorithm: Any
) -> list[ShapedArray]:
    check_matrix("eigh", x, square=True)
    k = _subset("eigh", subset_by_index, x.shape[-1])
    return [x.update(shape=(*x.shape[:-1], k)), shaped((*x.shape[:-2], k), _real(x.dtype), x.weak_type)]


def _eigh_reference(
    x: Value, *, lower: bool, sort_eigenvalues: bool, subset_by_index: tuple[int, int] | None, algorithm: Any
) -> Any:
    def one(a: Value) -> tuple[Value, Value]:
        n = a.shape[-1]
        if not np.all(np.isfinite(a)):
            return np.full_like(a, np.nan), np.full(n, np.nan, a.real.dtype)
        w, v = np.linalg.eigh(a, UPLO="L" if lower else "U")
        return v, w

    v, w = _per_matrix(one, x, outs=2) if x.size else (x, np.zeros(x.shape[:-1], x.real.dtype))
    start, end = subset_by_index or (0, x.shape[-1])
    return [v[..., start:end], w[..., start:end]]


def _eigh_jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Value, Value]:
    """M. Giles (2008), 3.1: dw = diag(Vᴴ dA V), dV = V (F ∘ Vᴴ dA V) with F_ij = 1 / (w_j - w_i)."""
    v, w = eigh_p.bind(*primals, **params)
    (t,) = tangents
    if type(t) is Zero:
        return [v, w], _zeros([v, w])
    if shape_of(v)[-1] != shape_of(v)[-2]:
        raise NotImplementedError(
            "eigh with subset_by_index has no derivative: it needs all eigenvectors. Slice the full result instead."
        )
    turned = matmul(mH(v), matmul(t, v))
    weights = convert(_gaps(w, lambda i, j: sub(j, i)), dtype_of(v))
    return [v, w], [matmul(v, mul(weights, turned)), real_part(diagonal(turned))]


eigh_p.abstract, eigh_p.reference, eigh_p.jvp, eigh_p.batch = _eigh_abstract, _eigh_reference, _eigh_jvp, _batch(eigh_p)
eigh_p.shard = leading("eigh", (2,))

# svd -----------------------------------------------------------------------------------------------------------------

svd_p = Primitive(
    "svd",
    multiple_results=True,
    wire=portable(
        full_matrices=FLAG, compute_uv=FLAG, subset_by_index=SUBSET, algorithm=either(NOTHING, member("SvdAlgorithm"))
    ),
)


def _svd_abstract(
    x: ShapedArray, *, full_matrices: bool, compute_uv: bool, subset_by_index: tuple[int, int] | None, algorithm: Any
) -> list[ShapedArray]:
    check_matrix("svd", x)
    *batch, m, n = x.shape
    k = _subset("svd", subset_by_index, min(m, n))
    if subset_by_index is not None and full_matrices and k != min(m, n):
        raise ValueError("svd: full_matrices and subset_by_index can't both be set.")
    s = shaped((*batch, k), _real(x.dtype), x.weak_type)
    if not compute_uv:
        return [s]
    return [
        s,
        x.update(shape=(*batch, m, m if full_matrices else k)),
        x.update(shape=(*batch, n if full_matrices else k, n)),
    ]


def _svd_reference(
    x: Value, *, full_matrices: bool, compute_uv: bool, subset_by_index: tuple[int, int] | None, algorithm: Any
) -> Any:
    *batch, m, n = x.shape
    k = min(m, n)
    if not x.size:
        s = np.zeros((*batch, k), x.real.dtype)
        side = lambda size, a, b: np.broadcast_to(np.eye(a, b, dtype=x.dtype), (*batch, a, b))
        return (
            [s] if not compute_uv else [s, side(m, m, m if full_matrices else k), side(n, n if full_matrices else k, n)]
        )

    def one(a: Value) -> tuple[Value, Value, Value]:
        if not np.all(np.isfinite(a)):
            return (
                np.full(k, np.nan, a.real.dtype),
                np.full((m, m if full_matrices else k), np.nan, a.dtype),
                np.full((n if full_matrices else k, n), np.nan, a.dtype),
            )
        u, s, vt = np.linalg.svd(a, full_matrices=full_matrices)
        return s, u, vt

    s, u, vt = _per_matrix(one, x, outs=3)
    if subset_by_index is not None:
        a, b = subset_by_index
        s = s[..., a:b]
        u, vt = (u, vt) if full_matrices else (u[..., a:b], vt[..., a:b, :])
    return [s, u, vt] if compute_uv else [s]


def _svd_jvp(
    primals: Sequence[Value],
    tangents: Sequence[Value],
    *,
    full_matrices: bool,
    compute_uv: bool,
    subset_by_index: tuple[int, int] | None,
    algorithm: Any,
) -> tuple[Value, Value]:
    """J. Townsend, "Differentiating the singular value decomposition" (2016)."""
    (a,), (t,) = primals, tangents
    if type(t) is Zero:
        outs = svd_p.bind(
            a, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index, algorithm=algorithm
        )
        return outs, _zeros(outs)
    if full_matrices and compute_uv and shape_of(a)[-1] != shape_of(a)[-2]:
        raise NotImplementedError(
            "svd with full_matrices=True is not differentiable: the extra vectors are not unique. Use"
            " full_matrices=False."
        )
    if subset_by_index is not None and compute_uv:
        raise NotImplementedError(
            "svd with subset_by_index has no derivative for its vectors. Slice the full result instead."
        )
    s, u, vt = svd_p.bind(a, full_matrices=False, compute_uv=True, subset_by_index=subset_by_index, algorithm=algorithm)
    v, uh = mH(vt), mH(u)
    turned = matmul(uh, matmul(t, v))  # Uᴴ dA V
    ds = real_part(diagonal(turned))
    if not compute_uv:
        return [s], [ds]
    dt = dtype_of(u)
    weights = convert(_gaps(s, lambda i, j: mul(sub(j, i), add(j, i))), dt)  # 1 / (s_j² - s_i²)
    right, left = scale_columns(turned, s), scale_rows(turned, s)  # (dP) S and S (dP)
    du = matmul(u, mul(weights, add(right, mH(right))))
    dv = matmul(v, mul(weights, add(left, mH(left))))
    inverse = div(full(shape_of(s), 1, dtype_of(s)), s)
    if dtypes.is_complex(dt):  # the phases that U and V may turn by together
        on = diagonal(turned)
        twist = mul(sub(on, convert(real_part(on), dt)), convert(inverse, dt))
        du = add(du, scale_columns(u, twist))
    m, n = shape_of(a)[-2:]
    if m > n:
        outside = matmul(t, v)
        du = add(du, scale_columns(sub(outside, matmul(u, matmul(uh, outside))), inverse))
    if n > m:
        outside = matmul(mH(t), u)
        dv = add(dv, scale_columns(sub(outside, matmul(v, matmul(vt, outside))), inverse))
    return [s, u, vt], [ds, du, mH(dv)]


svd_p.abstract, svd_p.reference, svd_p.jvp, svd_p.batch = _svd_abstract, _svd_reference, _svd_jvp, _batch(svd_p)
svd_p.shard = leading("svd", (2,))

# eig -----------------------------------------------------------------------------------------------------------------

eig_p = Primitive(
    "eig",
    multiple_results=True,
    wire=portable(
        compute_left_eigenvectors=FLAG,
        compute_right_eigenvectors=FLAG,
        enable_eigvec_derivs=FLAG,
        implementation=either(NOTHING, member("EigImplementation")),
    ),
)


def _eig_abstract(
    x: ShapedArray,
    *,
    compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool,
    enable_eigvec_derivs: bool,
    implementation: Any,
) -> list[ShapedArray]:
    check_matrix("eig", x, square=True)
    dt = _complex(x.dtype)
    vectors = shaped(x.shape, dt, x.weak_type)
    return [
        shaped(x.shape[:-1], dt, x.weak_type),
        *[vectors] * (compute_left_eigenvectors + compute_right_eigenvectors),
    ]


def _left_vectors(a: Value, w: Value, right: Value) -> Value:
    """The left eigenvectors of a matrix. Where the right ones are no basis, as may be those of repeated eigenvalues:
    the adjoint's eigenvectors, each with the nearest eigenvalue that no other has.
    """
    if np.linalg.cond(right) < 0.01 / np.finfo(right.dtype).eps:
        return np.linalg.inv(right).conj().T
    values, vectors = np.linalg.eig(a.conj().T)
    rest, found = list(range(len(w))), []
    for value in w:
        found.append(min(rest, key=lambda k: abs(values[k].conj() - value)))
        rest.remove(found[-1])
    return vectors[:, found]


def _eig_reference(
    x: Value,
    *,
    compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool,
    enable_eigvec_derivs: bool,
    implementation: Any,
) -> Any:
    dt = np.result_type(x.dtype, np.complex64)

    def one(a: Value) -> tuple[Value, Value, Value]:
        n = a.shape[-1]
        if not np.all(np.isfinite(a)):
            nan = complex(np.nan, np.nan)
            return np.full(n, nan, dt), np.full((n, n), nan, dt), np.full((n, n), nan, dt)
        w, right = np.linalg.eig(a)
        left = _left_vectors(a, w, right)
        return w.astype(dt), (left / np.linalg.norm(left, axis=0)).astype(dt), right.astype(dt)

    w, left, right = _per_matrix(one, x, outs=3) if x.size else (np.zeros(x.shape[:-1], dt), x.astype(dt), x.astype(dt))
    return [w, *[left] * compute_left_eigenvectors, *[right] * compute_right_eigenvectors]


def _eigen_slopes(w: Value, v: Value, t: Value) -> tuple[Value, Value]:
    """The tangents of eigenvalues and of the vectors that belong to them, for a tangent of the matrix: M. Giles (2008),
    3.1, with X = V⁻¹ dA V: dw = diag(X) and, up to each vector's length and phase, dV = V (F ∘ X), F_ij = 1 / (w_j -
    w_i).
    """
    turned = solve_with_lu(v, matmul(t, v))
    dv = matmul(v, mul(_gaps(w, lambda i, j: sub(j, i)), turned))
    # LAPACK's vectors have length 1, and their largest entry is real: both stay so
    last = len(shape_of(v)) - 2
    largest = argmax(abs_(v), last, dtypes.int32)
    here = convert(eq(index(shape_of(v), -2), rows(largest, shape_of(v)[-2])), dtype_of(v))
    pick = lambda x: reduce_sum(mul(here, x), (last,))
    along = real(reduce_sum(mul(conjugate(v), dv), (last,)))
    turn = complex_(neg(along), neg(div(imag(pick(dv)), real(pick(v)))))
    return diagonal(turned), add(dv, scale_columns(v, turn))


def _eig_jvp(
    primals: Sequence[Value],
    tangents: Sequence[Value],
    *,
    compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool,
    enable_eigvec_derivs: bool,
    implementation: Any,
) -> tuple[Value, Value]:
    (a,), (t,) = primals, tangents
    vectors = compute_left_eigenvectors or compute_right_eigenvectors
    params = dict(enable_eigvec_derivs=enable_eigvec_derivs, implementation=implementation)
    if type(t) is Zero:
        outs = eig_p.bind(
            a,
            compute_left_eigenvectors=compute_left_eigenvectors,
            compute_right_eigenvectors=compute_right_eigenvectors,
            **params,
        )
        return outs, _zeros(outs)
    if vectors and not enable_eigvec_derivs:
        raise NotImplementedError(
            "eigenvectors of matrices that are not symmetric have derivatives only where each eigenvalue is simple."
            " Pass enable_eigvec_derivs=True to eig to say so, differentiate the eigenvalues alone, or use eigh for"
            " symmetric matrices."
        )
    w, *vs = eig_p.bind(
        a,
        compute_left_eigenvectors=compute_left_eigenvectors,
        compute_right_eigenvectors=compute_right_eigenvectors or not vectors,
        **params,
    )
    t = convert(t, dtype_of(w))
    if not vectors:
        return [w], [diagonal(solve_with_lu(vs[0], matmul(t, vs[0])))]
    # left vectors are the right vectors of the conjugate transpose, whose eigenvalues are the conjugates
    slopes = [_eigen_slopes(conjugate(w), vs[0], mH(t))] if compute_left_eigenvectors else []
    slopes += [_eigen_slopes(w, vs[-1], t)] if compute_right_eigenvectors else []
    dw = slopes[-1][0] if compute_right_eigenvectors else conjugate(slopes[0][0])
    return [w, *vs], [dw, *[dv for _, dv in slopes]]


eig_p.abstract, eig_p.reference, eig_p.jvp, eig_p.batch = _eig_abstract, _eig_reference, _eig_jvp, _batch(eig_p)
eig_p.shard = leading("eig", (2,))

# hessenberg, schur ---------------------------------------------------------------------------------------------------

hessenberg_p = Primitive("hessenberg", multiple_results=True, wire=portable())
hessenberg_p.shard = leading("hessenberg", (2,))
schur_p = Primitive(
    "schur",
    multiple_results=True,
    wire=portable(compute_schur_vectors=FLAG, sort_eig_vals=FALSE, select_callable=NOTHING),
)
schur_p.shard = leading("schur", (2,))


def _hessenberg_abstract(x: ShapedArray) -> list[ShapedArray]:
    check_matrix("hessenberg", x, square=True)
    return [x, shaped((*x.shape[:-2], max(x.shape[-1] - 1, 0)), x.dtype, x.weak_type)]


def _hessenberg_reference(x: Value) -> Any:
    """Reflections from both sides, as LAPACK's gehrd stores them."""

    def one(a: Value) -> tuple[Value, Value]:
        wide = np.complex128 if np.iscomplexobj(a) else np.float64
        a, n = a.astype(wide), a.shape[0]
        taus = np.zeros(n - 1, wide)
        for k in range(n - 2 if wide == np.float64 else n - 1):
            h, tau = np.linalg.qr(a[k + 1 :, k : k + 1], mode="raw")
            v = h.T[:, 0].copy()
            stored, v[0] = v.copy(), 1
            taus[k] = tau[0]
            rest = a[:, k + 1 :]
            rest -= tau[0] * np.outer(rest @ v, v.conj())
            block = a[k + 1 :, k + 1 :]
            block -= np.conj(tau[0]) * np.outer(v, v.conj() @ block)
            a[k + 1 :, k] = stored
        return a, taus

    return _per_matrix(one, x, outs=2) if x.size else [x, np.zeros((*x.shape[:-2], max(x.shape[-1] - 1, 0)), x.dtype)]


hessenberg_p.abstract, hessenberg_p.reference, hessenberg_p.batch = (
    _hessenberg_abstract,
    _hessenberg_reference,
    _batch(hessenberg_p),
)
hessenberg_p.jvp = unsupported("hessenberg has no derivative rule: its reflections are not unique")


def unsorted() -> NotImplementedError:
    """The error of every backend for a Schur form with sorted eigenvalues; it can be traced, as in JAX."""
    return NotImplementedError(
        at_user_line("schur: eigenvalues are not sorted; leave sort_eig_vals and select_callable out.")
    )


def _schur_abstract(
    x: ShapedArray, *, compute_schur_vectors: bool, sort_eig_vals: bool, select_callable: Any
) -> list[ShapedArray]:
    check_matrix("schur", x, square=True)
    return [x, x] if compute_schur_vectors else [x]


def _schur_reference(x: Value, *, compute_schur_vectors: bool, sort_eig_vals: bool, select_callable: Any) -> Any:
    """An orthonormal basis of the spaces that eigenvectors span, one after the other. For a conjugate pair of a real
    matrix, the real and the imaginary part are used.
    """
    if sort_eig_vals:
        raise unsorted()

    def one(a: Value) -> tuple[Value, Value]:
        w, v = np.linalg.eig(a)
        if not np.iscomplexobj(a):
            v = np.stack([v[:, i].imag if w[i].imag < 0 else v[:, i].real for i in range(len(w))], 1)
        z = np.linalg.qr(v)[0]
        return np.triu(z.conj().T @ a @ z, -1), z

    outs = _per_matrix(one, x, outs=2) if x.size else [x, x]
    return outs[: 1 + compute_schur_vectors]


schur_p.abstract, schur_p.reference, schur_p.batch = _schur_abstract, _schur_reference, _batch(schur_p)
schur_p.jvp = unsupported("schur has no derivative rule: the factors are not unique")
