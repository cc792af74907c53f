"""Linear algebra: LAPACK's kernels on the CPU, XLA's own or the primitives' loops elsewhere.

The kernels are jaxlib's FFI custom calls: matrices column-major in their two minor axes, attributes that are letters as their codes, the last result
`info`, which is not 0 for a matrix where the kernel failed.
"""
from __future__ import annotations

import math

from jaxlib import lapack
from jaxlib.cpu import _lapack
from jaxlib.mlir import ir
from weft import dtypes
from weft.avals import shaped
from weft.core.primitive import registry
from weft.errors import BackendError

from ..compat import xc
from .registry import rule

_LETTER = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_ready: list = []


def ensure_lapack() -> None:
    """Registers the kernels and finds the LAPACK that SciPy brings, once; a program that calls them before this ends the process."""
    if not _ready:
        for platform, targets in lapack.registrations().items():
            for name, value, api_version in targets:
                xc.register_custom_call_target(name, value, platform=platform, api_version=api_version)
        _lapack.initialize()
        _ready.append(True)


def _layout(b, rank: int, matrix: bool):
    minor_first = [rank - 2, rank - 1, *range(rank - 3, -1, -1)] if matrix else list(range(rank - 1, -1, -1))
    return b.attr(f"dense<{minor_first}> : tensor<{rank}xindex>" if rank else "dense<> : tensor<0xindex>")


def call(b, kernel: str, dtype, operands, ins, outs, batch: int, alias=(), **letters):
    """One LAPACK kernel on stacks with `batch` leading axes; `alias` are the (operand, result) pairs that share memory."""
    ensure_lapack()
    target = f"lapack_{_LETTER[dtypes.name(dtype)]}{kernel}_ffi"
    layout = lambda avals: ir.ArrayAttr.get([_layout(b, len(a.shape), len(a.shape) - batch == 2) for a in avals])
    text = ", ".join(f"{k} = {ord(v) if isinstance(v, str) else int(v)} : {'ui8' if isinstance(v, str) else 'i32'}" for k, v in letters.items())
    tuple_index = lambda o: f"[{o}]" if len(outs) > 1 else "[]"
    aliases = ", ".join(f"#stablehlo.output_operand_alias<output_tuple_indices = {tuple_index(o)}, operand_index = {i}, operand_tuple_indices = []>"
                        for i, o in alias)
    return b.ops("stablehlo.custom_call", operands, [b.type(a) for a in outs], {
        "call_target_name": ir.StringAttr.get(target), "api_version": b.int_attr(4, 32), "backend_config": b.attr(f"{{{text}}}"),
        "operand_layouts": layout(ins), "result_layouts": layout(outs), "output_operand_aliases": b.attr(f"[{aliases}]"),
        "mhlo.frontend_attributes": b.attr(f'{{num_batch_dims = "{batch}"}}')})


def decomposed(b, name: str, ins, operands, params: dict) -> list:
    """The primitive's loop, where there is no kernel."""
    simpler = b.decomposition(registry[name], tuple(ins), params)
    return b.equations(simpler.jaxpr, [b.embed(c) for c in simpler.consts], operands, located=False)


def unless(b, ok, value, aval, otherwise=math.nan):
    """`value` for the matrices where `ok` holds, NaN for the others."""
    rank = len(ok.type.shape)
    wide = b.broadcast(ok, range(rank), aval.shape, dtypes.bool_)
    nan = complex(otherwise, otherwise) if dtypes.is_complex(aval.dtype) else otherwise
    return b.select(wide, value, b.splat(nan, aval.dtype, aval.shape), aval.shape, aval.dtype)


def info_is(b, direction: str, info, aval):
    return b.compare(direction, info, b.splat(0, dtypes.int32, aval.shape), aval)


def _batch(aval):
    return aval.shape[:-2]


@rule("cholesky")
def _cholesky(b, ins, outs, x):
    (aval,) = ins
    if b.platform != "cpu":
        return b.op("stablehlo.cholesky", [x], b.type(aval), {"lower": b.bool_attr(True)})
    if 0 in aval.shape:
        return x
    info = shaped(_batch(aval), dtypes.int32)
    out, code = call(b, "potrf", aval.dtype, [x], ins, [aval, info], len(_batch(aval)), [(0, 0)], uplo="L")
    return unless(b, info_is(b, "EQ", code, info), out, aval)


@rule("triangular_solve")
def _triangular_solve(b, ins, outs, a, x, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    (a_aval, aval) = ins
    if 0 in aval.shape:
        return x
    if b.platform != "cpu" or dtypes.name(aval.dtype) not in _LETTER:
        how = "ADJOINT" if conjugate_a else "TRANSPOSE" if transpose_a else "NO_TRANSPOSE"
        return b.op("stablehlo.triangular_solve", [a, x], b.type(aval), {
            "left_side": b.bool_attr(left_side), "lower": b.bool_attr(lower), "unit_diagonal": b.bool_attr(unit_diagonal),
            "transpose_a": b.attr(f"#stablehlo<transpose {how}>")})
    return call(b, "trsm", aval.dtype, [a, x], ins, [aval], len(_batch(aval)), [(1, 0)], side="L" if left_side else "R",
                uplo="L" if lower else "U", trans_x="C" if conjugate_a else "T" if transpose_a else "N", diag="U" if unit_diagonal else "N")[0]


@rule("lu")
def _lu(b, ins, outs, x):
    (aval,) = ins
    if b.platform != "cpu" or 0 in aval.shape:
        return decomposed(b, "lu", ins, [x], {})
    info = shaped(_batch(aval), dtypes.int32)
    factors, pivots, code = call(b, "getrf", aval.dtype, [x], ins, [aval, outs[1], info], len(_batch(aval)), [(0, 0)])
    pivots = b.op("stablehlo.subtract", [pivots, b.splat(1, dtypes.int32, outs[1].shape)], b.type(outs[1]))      # LAPACK counts from 1
    (perm,) = decomposed(b, "lu_pivots_to_permutation", [outs[1]], [pivots], {"permutation_size": aval.shape[-2]})
    return [unless(b, info_is(b, "GE", code, info), factors, aval), pivots, perm]


@rule("geqrf")
def _geqrf(b, ins, outs, x):
    (aval,) = ins
    if b.platform != "cpu" or 0 in aval.shape:
        return decomposed(b, "geqrf", ins, [x], {})
    return call(b, "geqrf", aval.dtype, [x], ins, outs, len(_batch(aval)), [(0, 0)])


@rule("householder_product")
def _householder_product(b, ins, outs, a, taus):
    if b.platform != "cpu" or 0 in ins[0].shape:
        return decomposed(b, "householder_product", ins, [a, taus], {})[0]
    kernel = "ungqr" if dtypes.is_complex(ins[0].dtype) else "orgqr"
    return call(b, kernel, ins[0].dtype, [a, taus], ins, outs, len(_batch(ins[0])), [(0, 0)])[0]


def _needs_cpu(b, name: str):
    if b.platform != "cpu":
        raise BackendError(f"{name} is computed on the CPU only, and this program is compiled for {b.platform}. "
                           f"Compute it there: with weft.default_device(weft.devices('cpu')[0]).")


def _zero(b, aval):
    return b.splat(0, aval.dtype, aval.shape)


def _cut(b, value, aval, axis: int, start: int, shape):
    """`shape` of a value, from `start` of one axis on."""
    if tuple(aval.shape) == tuple(shape):
        return value
    starts = [start if d == axis % len(shape) else 0 for d in range(len(shape))]
    return b.op("stablehlo.slice", [value], b.tensor(shape, aval.dtype), {
        "start_indices": b.i64s(starts), "limit_indices": b.i64s([s + n for s, n in zip(starts, shape)]), "strides": b.i64s([1] * len(shape))})


@rule("eigh")
def _eigh(b, ins, outs, x, *, lower, sort_eigenvalues, subset_by_index, algorithm):
    (aval,) = ins
    _needs_cpu(b, "eigh")
    if 0 in aval.shape:
        return [_zero(b, a) for a in outs]
    kernel = "heevd" if dtypes.is_complex(aval.dtype) else "syevd"
    info, values = shaped(_batch(aval), dtypes.int32), outs[1].update(shape=aval.shape[:-1])
    v, w, code = call(b, kernel, aval.dtype, [x], ins, [aval, values, info], len(_batch(aval)), [(0, 0)], mode="V", uplo="L" if lower else "U")
    ok = info_is(b, "EQ", code, info)
    v, w = unless(b, ok, v, aval), unless(b, ok, w, values)
    start = subset_by_index[0] if subset_by_index else 0
    return [_cut(b, v, aval, -1, start, outs[0].shape), _cut(b, w, values, -1, start, outs[1].shape)]


@rule("svd")
def _svd(b, ins, outs, x, *, full_matrices, compute_uv, subset_by_index, algorithm):
    (aval,) = ins
    _needs_cpu(b, "svd")
    *batch, m, n = aval.shape
    k = min(m, n)
    if 0 in aval.shape:
        return [_zero(b, outs[0]), *[_identity(b, a) for a in outs[1:]]]
    wide = full_matrices and compute_uv
    s, u, vt = outs[0].update(shape=(*batch, k)), aval.update(shape=(*batch, m, m if wide else k)), aval.update(shape=(*batch, n if wide else k, n))
    info = shaped(tuple(batch), dtypes.int32)
    _, *found, code = call(b, "gesdd", aval.dtype, [x], ins, [aval, s, u, vt, info], len(batch), [(0, 0)],
                           mode="A" if wide else "S" if compute_uv else "N")
    ok = info_is(b, "EQ", code, info)
    found = [unless(b, ok, v, a) for v, a in zip(found, (s, u, vt))]
    start = subset_by_index[0] if subset_by_index else 0
    axes = (-1, -1, -2)
    return [_cut(b, v, a, axis, start, out.shape) for v, a, axis, out in zip(found, (s, u, vt), axes, outs)]


def _identity(b, aval):
    if not aval.shape or 0 in aval.shape:
        return _zero(b, aval)
    rank = len(aval.shape)
    whole = aval.update(dtype=dtypes.int32)
    same = b.compare("EQ", b.iota(aval.shape, rank - 2, dtypes.int32), b.iota(aval.shape, rank - 1, dtypes.int32), whole)
    return b.convert(same, aval.shape, aval.dtype)


@rule("eig")
def _eig(b, ins, outs, x, *, compute_left_eigenvectors, compute_right_eigenvectors, enable_eigvec_derivs, implementation):
    (aval,) = ins
    _needs_cpu(b, "eig")
    if 0 in aval.shape:
        return [_zero(b, a) for a in outs]
    w, info = outs[0], shaped(_batch(aval), dtypes.int32)
    vectors = aval.update(dtype=w.dtype)
    is_complex = dtypes.is_complex(aval.dtype)
    values = [w] if is_complex else [w.update(dtype=dtypes.real_of(w.dtype))] * 2
    *found, left, right, code = call(b, "geev", aval.dtype, [x], ins, [*values, vectors, vectors, info], len(_batch(aval)),
                                     compute_left="V" if compute_left_eigenvectors else "N",
                                     compute_right="V" if compute_right_eigenvectors else "N")
    value = found[0] if is_complex else b.op("stablehlo.complex", found, b.type(w))
    ok = info_is(b, "EQ", code, info)
    kept = [(value, w), *[(left, vectors)] * compute_left_eigenvectors, *[(right, vectors)] * compute_right_eigenvectors]
    return [unless(b, ok, v, a) for v, a in kept]


@rule("hessenberg")
def _hessenberg(b, ins, outs, x):
    (aval,) = ins
    _needs_cpu(b, "hessenberg")
    if 0 in aval.shape or aval.shape[-1] == 1:
        return [x, _zero(b, outs[1])]
    info = shaped(_batch(aval), dtypes.int32)
    a, taus, code = call(b, "gehrd", aval.dtype, [x], ins, [aval, outs[1], info], len(_batch(aval)), [(0, 0)], low=1, high=aval.shape[-1])
    ok = info_is(b, "EQ", code, info)
    return [unless(b, ok, a, aval), unless(b, ok, taus, outs[1])]


@rule("schur")
def _schur(b, ins, outs, x, *, compute_schur_vectors, sort_eig_vals, select_callable):
    (aval,) = ins
    _needs_cpu(b, "schur")
    if 0 in aval.shape:
        return [_zero(b, a) for a in outs]
    info = shaped(_batch(aval), dtypes.int32)
    is_complex = dtypes.is_complex(aval.dtype)
    w = aval.update(shape=aval.shape[:-1])
    results = [aval, aval, *([w] if is_complex else [w, w]), info, info]
    t, vectors, *_, code = call(b, "gees", aval.dtype, [x], ins, results, len(_batch(aval)), [(0, 0)],
                                mode="V" if compute_schur_vectors else "N", sort="N")
    ok = info_is(b, "EQ", code, info)
    return [unless(b, ok, v, aval) for v in (t, vectors)[:len(outs)]]
