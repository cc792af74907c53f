"""Tridiagonal matrices: reducing a Hermitian matrix to one, and solving their systems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..base import dtypes
from ..base.avals import shaped
from ..core.primitive import Primitive, Zero, unsupported
from ..core.shardings import leading
from ..core.wire import FLAG, portable
from ..base.errors import type_error
from ..base.host import np
from .elementwise import add, mul, neg
from .linalg import LAPACK_DTYPES, _batch, _per_matrix, _zero_like, check_matrix, check_same
from .linear import add_any, full, reshape
from .matrix import columns
from .rules import dtype_of, is_linear_arg, scalar_like, shape_of
from .shape import pad, slice_

if TYPE_CHECKING:
    from ..base.avals import ShapedArray
    from ..core.types import Value

# tridiagonal ---------------------------------------------------------------------------------------------------------

tridiagonal_p = Primitive("tridiagonal", multiple_results=True, wire=portable(lower=FLAG))
tridiagonal_p.shard = leading("tridiagonal", (2,))


def _tridiagonal_abstract(a: ShapedArray, *, lower: bool) -> list[ShapedArray]:
    check_matrix("tridiagonal", a, square=True)
    *batch, n, _ = a.shape
    if n == 0:
        raise ValueError(f"tridiagonal takes matrices of at least one row, got shape {a.shape}.")
    real = dtypes.real_of(a.dtype) if dtypes.is_complex(a.dtype) else a.dtype
    return [a, shaped((*batch, n), real), shaped((*batch, n - 1), real), shaped((*batch, n - 1), a.dtype)]


def _tridiagonal_reference(a: Value, *, lower: bool) -> Any:
    """Reflections from both sides, as LAPACK's sytrd stores them. The upper triangle is treated as the lower one with
    rows and columns reversed.
    """

    def one(a: Value) -> Value:
        n, wide = a.shape[0], np.complex128 if np.iscomplexobj(a) else np.float64
        kept = a.astype(wide)
        a = kept if lower else kept[::-1, ::-1]
        h = np.tril(a, -1) + np.tril(a, -1).conj().T + np.diag(a.diagonal().real).astype(wide)
        taus, e, stored = np.zeros(n - 1, wide), np.zeros(n - 1), a.copy()
        for k in range(n - 1):
            reflected, tau = np.linalg.qr(h[k + 1 :, k : k + 1], mode="raw")
            v = reflected[0].copy()
            e[k], taus[k], v[0] = v[0].real, tau[0], 1
            block = h[k + 1 :, k + 1 :]
            block -= np.conj(tau[0]) * np.outer(v, v.conj() @ block)
            block -= tau[0] * np.outer(block @ v, v.conj())
            stored[k + 1 :, k] = np.concatenate([e[k : k + 1], v[1:]])
        d = h.diagonal().real
        stored[range(n), range(n)] = d
        return (stored, d, e, taus) if lower else (stored[::-1, ::-1], d[::-1], e[::-1], taus[::-1])

    outs = (
        _per_matrix(one, a, outs=4)
        if a.size
        else [np.zeros(v.shape, v.dtype) for v in _tridiagonal_abstract(shaped(a.shape, a.dtype), lower=lower)]
    )
    real = a.real.dtype
    return [outs[0].astype(a.dtype), outs[1].astype(real), outs[2].astype(real), outs[3].astype(a.dtype)]


tridiagonal_p.abstract, tridiagonal_p.reference, tridiagonal_p.batch = (
    _tridiagonal_abstract,
    _tridiagonal_reference,
    _batch(tridiagonal_p),
)
tridiagonal_p.jvp = unsupported(
    "tridiagonal has no derivative rule: its reflections are not unique; differentiate eigh"
)

# tridiagonal_solve ---------------------------------------------------------------------------------------------------

tridiagonal_solve_p = Primitive("tridiagonal_solve", wire=portable(perturb_singular=FLAG))
tridiagonal_solve_p.shard = leading("tridiagonal_solve", (1, 1, 1, 2))


def _solve_abstract(
    dl: ShapedArray, d: ShapedArray, du: ShapedArray, b: ShapedArray, *, perturb_singular: bool
) -> ShapedArray:
    if dtypes.is_inexact(dl.dtype) and dtypes.bits(dl.dtype) == 16:
        raise NotImplementedError(
            f"tridiagonal_solve is not computed in {dtypes.name(dl.dtype)}. Convert the diagonals with"
            " astype('float32')."
        )
    if dtypes.name(dl.dtype) not in LAPACK_DTYPES:
        raise type_error(
            f"tridiagonal_solve does not accept dtype {dtypes.name(dl.dtype)} at position 0. It takes"
            f" {', '.join(LAPACK_DTYPES)}."
        )
    check_same("tridiagonal_solve", (dl, 1), (d, 1), (du, 1), (b, 2))
    if not dl.shape == d.shape == du.shape:
        raise type_error(
            f"tridiagonal_solve requires diagonals of one shape, got {dl.shape}, {d.shape} and {du.shape}."
        )
    if b.shape[-2] != d.shape[-1]:
        raise type_error(
            f"tridiagonal_solve requires as many rows of b as the diagonals are long, got shapes {d.shape} and"
            f" {b.shape}."
        )
    return b


def _solve_reference(dl: Value, d: Value, du: Value, b: Value, *, perturb_singular: bool) -> Any:
    """Gaussian elimination with rows swapped: U has two diagonals above its own."""
    if not b.size:
        return b
    wide = np.complex128 if np.iscomplexobj(b) else np.float64
    n, limits = d.shape[-1], np.finfo(b.dtype)

    def one(below: Value, on: Value, above: Value, x: Value) -> Value:
        on, x = on.astype(wide), x.astype(wide)
        above, far = np.append(above[:-1].astype(wide), 0), np.zeros(n, wide)
        for i in range(n - 1):
            row, right = np.array([on[i], above[i], 0]), np.array([wide(below[i + 1]), on[i + 1], above[i + 1]])
            if abs(row[0]) < abs(right[0]):
                row, right = right, row
                x[[i, i + 1]] = x[[i + 1, i]]
            factor = right[0] / row[0] if row[0] else 0
            on[i], above[i], far[i] = row
            on[i + 1], above[i + 1] = right[1:] - factor * row[1:]
            x[i + 1] -= factor * x[i]
        if perturb_singular:
            largest = max(np.abs(on).max(), np.abs(above).max(), np.abs(far).max())
            on = np.where(np.abs(on) < limits.tiny, max(limits.eps * largest, limits.tiny), on)
        elif not np.all(on):
            return np.full_like(x, np.nan)
        for i in reversed(range(n)):
            x[i] = (x[i] - (above[i] * x[i + 1] if i + 1 < n else 0) - (far[i] * x[i + 2] if i + 2 < n else 0)) / on[i]
        return x

    out = np.empty(b.shape, b.dtype)
    with np.errstate(all="ignore"):
        for at in np.ndindex(b.shape[:-2]):
            out[at] = one(dl[at], d[at], du[at], b[at])
    return out


def _part(v: Value, start: int, stop: int) -> Value:
    """v[..., start:stop, :] of stacks of matrices."""
    *batch, n, k = shape_of(v)
    return slice_(v, (*(0,) * len(batch), start, 0), (*batch, stop, k))


def _shift(v: Value, by: int) -> Value:
    """Rows shifted down by `by` (up if it is negative); zeros are shifted in."""
    shape = shape_of(v)
    moved = _part(v, 0, shape[-2] - by) if by > 0 else _part(v, -by, shape[-2])
    return pad(moved, scalar_like(v, 0), [(0, 0, 0)] * (len(shape) - 2) + [(max(by, 0), max(-by, 0), 0), (0, 0, 0)])


def _times(dl: Value, d: Value, du: Value, x: Value) -> Value:
    """The product of a tridiagonal matrix and x."""
    k = shape_of(x)[-1]
    out = mul(columns(d, k), x)
    if shape_of(x)[-2] > 1:
        out = add(out, add(mul(columns(dl, k), _shift(x, 1)), mul(columns(du, k), _shift(x, -1))))
    return out


def _solve_jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Value, Value]:
    """From A X = B: dX = A⁻¹ (dB - dA X)."""
    (dl, d, du, b), (*diagonals, tb) = primals, tangents
    x = tridiagonal_solve_p.bind(dl, d, du, b, **params)
    if any(type(t) is not Zero for t in diagonals):
        t_dl, t_d, t_du = [full(shape_of(d), 0, dtype_of(d)) if type(t) is Zero else t for t in diagonals]
        moved = neg(_times(t_dl, t_d, t_du, x))
        tb = moved if type(tb) is Zero else add_any(tb, moved)
    if type(tb) is Zero:
        return x, _zero_like(x)
    return x, tridiagonal_solve_p.bind(dl, d, du, tb, **params)


def _solve_transpose(ct: Value, dl: Value, d: Value, du: Value, b: Value, **params: Any) -> list[Value | None]:
    if any(map(is_linear_arg, (dl, d, du))):
        raise NotImplementedError("tridiagonal_solve is linear in its right-hand side, not in the matrix.")
    row = lambda v, by: reshape(_shift(columns(v, 1), by), shape_of(v)) if shape_of(v)[-1] else v
    return [None, None, None, tridiagonal_solve_p.bind(row(du, 1), d, row(dl, -1), ct, **params)]


tridiagonal_solve_p.abstract, tridiagonal_solve_p.reference, tridiagonal_solve_p.jvp = (
    _solve_abstract,
    _solve_reference,
    _solve_jvp,
)
tridiagonal_solve_p.transpose, tridiagonal_solve_p.batch = _solve_transpose, _batch(tridiagonal_solve_p)
