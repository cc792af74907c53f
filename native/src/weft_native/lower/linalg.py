"""Linear algebra: LAPACK's kernels on the CPU, the GPU plugin's on a GPU, XLA's own or the primitives' loops elsewhere.

The kernels are jaxlib's FFI custom calls: matrices column-major in their two minor axes, attributes that are letters as
their codes, the last result `info`, which is not 0 for a matrix where the kernel failed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from jaxlib import lapack
from jaxlib.cpu import _lapack
from jaxlib.mlir import ir
from weft.base import dtypes
from weft.base.avals import shaped
from weft.core.primitive import registry
from weft.primitives.spectral import EighImplementation, EigImplementation, SvdAlgorithm

from ..compat import xc
from .registry import rule

_LETTER = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_ready: list = []


class Gpu(NamedTuple):
    """How a GPU platform's kernels are called."""

    prefix: str  # of jaxlib's own kernels
    solver: str  # and of the vendor's libraries
    sparse: str


GPUS = {"cuda": Gpu("cu", "cusolver", "cusparse"), "rocm": Gpu("hip", "hipsolver", "hipsparse")}
GPUS["gpu"] = GPUS["cuda"]  # the names of CUDA clients' platforms
_MAGMA = {None: "auto", True: "on", False: "off"}


def ensure_lapack() -> None:
    """Registers the kernels and finds the LAPACK that SciPy brings, once; a program that calls them before this ends
    the process.
    """
    if not _ready:
        for platform, targets in lapack.registrations().items():
            for name, value, api_version in targets:
                xc.register_custom_call_target(name, value, platform=platform, api_version=api_version)
        _lapack.initialize()
        _ready.append(True)


def lapack_call(b, kernel: str, dtype, operands, ins, outs, batch: int, alias=(), **attributes):
    """One of LAPACK's kernels, in the variant for `dtype`."""
    ensure_lapack()
    return call(b, f"lapack_{_LETTER[dtypes.name(dtype)]}{kernel}_ffi", operands, ins, outs, batch, alias, **attributes)


def solver_call(b, kernel: str, operands, ins, outs, batch: int, alias=(), **attributes):
    """One of the GPU vendor's dense kernels, which take every dtype."""
    return call(b, f"{GPUS[b.platform].solver}_{kernel}_ffi", operands, ins, outs, batch, alias, **attributes)


def _layout(b, rank: int, matrix: bool):
    minor_first = [rank - 2, rank - 1, *range(rank - 3, -1, -1)] if matrix else list(range(rank - 1, -1, -1))
    return b.attr(f"dense<{minor_first}> : tensor<{rank}xindex>" if rank else "dense<> : tensor<0xindex>")


def _attribute(value) -> str:
    """A letter by its code, a bool, a number, or a text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value} : i32"
    return f"{ord(value)} : ui8" if len(value) == 1 else f'"{value}"'


def call(b, target: str, operands, ins, outs, batch: int | None, alias=(), columns: bool = True, **attributes):
    """A kernel on stacks with `batch` leading axes (None: it takes no such number, or finds it itself); `alias` are the
    (operand, result) pairs that share memory.

    Matrices are column-major, or row-major where `columns` is False.
    """
    layout = lambda avals: ir.ArrayAttr.get(
        [_layout(b, len(a.shape), columns and len(a.shape) - (batch or 0) == 2) for a in avals]
    )
    text = ", ".join(f"{k} = {_attribute(v)}" for k, v in attributes.items())
    tuple_index = lambda o: f"[{o}]" if len(outs) > 1 else "[]"
    aliases = ", ".join(
        f"#stablehlo.output_operand_alias<output_tuple_indices = {tuple_index(o)}, operand_index = {i},"
        " operand_tuple_indices = []>"
        for i, o in alias
    )
    more = {} if batch is None else {"mhlo.frontend_attributes": b.attr(f'{{num_batch_dims = "{batch}"}}')}
    return b.ops(
        "stablehlo.custom_call",
        operands,
        [b.type(a) for a in outs],
        {
            "call_target_name": ir.StringAttr.get(target),
            "api_version": b.int_attr(4, 32),
            "backend_config": b.attr(f"{{{text}}}"),
            "operand_layouts": layout(ins),
            "result_layouts": layout(outs),
            "output_operand_aliases": b.attr(f"[{aliases}]"),
            **more,
        },
    )


def decomposed(b, name: str, ins, operands, params: dict) -> list:
    """The primitive's loop, for platforms without a kernel."""
    if registry[name].decompose is None:
        raise _lacks(b, name, "Compute it on the CPU: with weft.default_device(weft.devices('cpu')[0]).")
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


def _rank(aval) -> int:
    """How many batch axes a stack of matrices has."""
    return len(aval.shape) - 2


def _infos(aval):
    return shaped(_batch(aval), dtypes.int32)


@rule("cholesky")
def _cholesky(b, ins, outs, x):
    (aval,) = ins
    if 0 in aval.shape:
        return x
    info, rank = _infos(aval), _rank(aval)
    if b.platform == "cpu":
        out, code = lapack_call(b, "potrf", aval.dtype, [x], ins, [aval, info], rank, [(0, 0)], uplo="L")
    elif b.platform in GPUS:
        out, code = solver_call(b, "potrf", [x], ins, [aval, info], rank, [(0, 0)], lower=True)
    else:
        return lower_part(b, b.op("stablehlo.cholesky", [x], b.type(aval), {"lower": b.bool_attr(True)}), aval)
    return unless(b, info_is(b, "EQ", code, info), lower_part(b, out, aval), aval)


def lower_part(b, x, aval):
    """Zeros above the diagonal, where a kernel leaves what it was given: a program from elsewhere may read them."""
    *_, row, column = range(len(aval.shape))
    rows, columns = (b.iota(aval.shape, d, dtypes.int32) for d in (row, column))
    below = b.compare("GE", rows, columns, shaped(aval.shape, dtypes.int32))
    return b.select(below, x, b.splat(0, aval.dtype, aval.shape), aval.shape, aval.dtype)


@rule("cholesky_update")
def _cholesky_update(b, ins, outs, r, w):
    aval, _ = ins
    if GPUS.get(b.platform) is GPUS["cuda"] and len(aval.shape) == 2 and 0 not in aval.shape:
        return call(b, "cu_cholesky_update_ffi", [r, w], ins, ins, None, [(0, 0), (1, 1)], columns=False)[0]
    return decomposed(b, "cholesky_update", ins, [r, w], {})[0]


@rule("symmetric_product")
def _symmetric_product(b, ins, outs, a, c, *, alpha, beta):
    aval, _ = ins
    if GPUS.get(b.platform) is GPUS["cuda"] and 0 not in aval.shape:
        scalar = shaped((), aval.dtype)
        factors = [b.splat(v, aval.dtype, ()) for v in (alpha, beta)]
        return call(
            b,
            "cusolver_syrk_ffi",
            [a, c, *factors],
            [*ins, scalar, scalar],
            outs,
            None,
            [(1, 0)],
            columns=False,
            transpose=False,
        )[0]
    return decomposed(b, "symmetric_product", ins, [a, c], dict(alpha=alpha, beta=beta))[0]


@rule("triangular_solve")
def _triangular_solve(b, ins, outs, a, x, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    _, aval = ins
    if 0 in aval.shape:
        return x
    if b.platform != "cpu" or dtypes.name(aval.dtype) not in _LETTER:
        how = "ADJOINT" if conjugate_a else "TRANSPOSE" if transpose_a else "NO_TRANSPOSE"
        return b.op(
            "stablehlo.triangular_solve",
            [a, x],
            b.type(aval),
            {
                "left_side": b.bool_attr(left_side),
                "lower": b.bool_attr(lower),
                "unit_diagonal": b.bool_attr(unit_diagonal),
                "transpose_a": b.attr(f"#stablehlo<transpose {how}>"),
            },
        )
    return lapack_call(
        b,
        "trsm",
        aval.dtype,
        [a, x],
        ins,
        [aval],
        _rank(aval),
        [(1, 0)],
        side="L" if left_side else "R",
        uplo="L" if lower else "U",
        trans_x="C" if conjugate_a else "T" if transpose_a else "N",
        diag="U" if unit_diagonal else "N",
    )[0]


def _permutation(b, pivots, ins, out):
    (aval,) = ins
    if b.platform in GPUS and 0 not in out.shape:
        return call(
            b, f"{GPUS[b.platform].prefix}_lu_pivots_to_permutation", [pivots], ins, [out], len(aval.shape) - 1
        )[0]
    return decomposed(b, "lu_pivots_to_permutation", ins, [pivots], {"permutation_size": out.shape[-1]})[0]


@rule("lu_pivots_to_permutation")
def _lu_pivots_to_permutation(b, ins, outs, pivots, *, permutation_size):
    return _permutation(b, pivots, ins, outs[0])


def _from_one(b, value, aval):
    """Converts numbers that count from 1, as in Fortran, to numbers that count from 0."""
    return b.op("stablehlo.subtract", [value, b.splat(1, dtypes.int32, aval.shape)], b.type(aval))


@rule("lu")
def _lu(b, ins, outs, x):
    (aval,) = ins
    info, rank = _infos(aval), _rank(aval)
    results = [aval, outs[1], info]
    if 0 in aval.shape or b.platform != "cpu" and b.platform not in GPUS:
        return decomposed(b, "lu", ins, [x], {})
    if b.platform == "cpu":
        factors, pivots, code = lapack_call(b, "getrf", aval.dtype, [x], ins, results, rank, [(0, 0)])
    else:
        factors, pivots, code = solver_call(b, "getrf", [x], ins, results, rank, [(0, 0)])
    pivots = _from_one(b, pivots, outs[1])
    factors = unless(b, info_is(b, "GE", code, info), factors, aval)
    return [factors, pivots, _permutation(b, pivots, [outs[1]], outs[2])]


@rule("geqrf")
def _geqrf(b, ins, outs, x):
    (aval,) = ins
    if b.platform == "cpu" and 0 not in aval.shape:
        return lapack_call(b, "geqrf", aval.dtype, [x], ins, outs, _rank(aval), [(0, 0)])
    if b.platform in GPUS and 0 not in aval.shape:
        return solver_call(b, "geqrf", [x], ins, outs, _rank(aval), [(0, 0)])
    return decomposed(b, "geqrf", ins, [x], {})


@rule("geqp3")
def _geqp3(b, ins, outs, x, *, use_magma):
    (aval,) = ins
    taus, order = outs[1:]
    # every column is free to move
    operands, all_ins, results = [x, b.splat(0, dtypes.int32, order.shape)], [aval, order], [aval, order, taus]
    if b.platform == "cpu" and 0 not in aval.shape:
        factors, found, scales = lapack_call(
            b, "geqp3", aval.dtype, operands, all_ins, results, _rank(aval), [(0, 0), (1, 1)]
        )
    elif b.platform in GPUS and 0 not in aval.shape:
        factors, found, scales = call(
            b,
            f"{GPUS[b.platform].prefix}hybrid_geqp3",
            operands,
            all_ins,
            results,
            _rank(aval),
            [(0, 0), (1, 1)],
            magma=_MAGMA[use_magma],
        )
    else:
        return decomposed(b, "geqp3", ins, [x], {"use_magma": use_magma})
    return [factors, scales, _from_one(b, found, order)]


@rule("householder_product")
def _householder_product(b, ins, outs, a, taus):
    aval, _ = ins
    if b.platform == "cpu" and 0 not in aval.shape:
        kernel = "ungqr" if dtypes.is_complex(aval.dtype) else "orgqr"
        return lapack_call(b, kernel, aval.dtype, [a, taus], ins, outs, _rank(aval), [(0, 0)])[0]
    if b.platform in GPUS and 0 not in aval.shape:
        return solver_call(b, "orgqr", [a, taus], ins, outs, _rank(aval), [(0, 0)])[0]
    return decomposed(b, "householder_product", ins, [a, taus], {})[0]


@rule("ormqr")
def _ormqr(b, ins, outs, a, taus, c, *, left, transpose):
    aval, _, last = ins
    how = dict(left=left, transpose=transpose)
    if b.platform == "cpu" and 0 not in aval.shape and 0 not in last.shape:
        kernel = "unmqr" if dtypes.is_complex(aval.dtype) else "ormqr"
        return lapack_call(b, kernel, aval.dtype, [a, taus, c], ins, outs, _rank(aval), [(2, 0)], **how)[0]
    if b.platform in GPUS and 0 not in aval.shape and 0 not in last.shape:
        return solver_call(b, "ormqr", [a, taus, c], ins, outs, _rank(aval), [(2, 0)], **how)[0]
    return decomposed(b, "ormqr", ins, [a, taus, c], how)[0]


def _lacks(b, what: str, hint: str):
    return NotImplementedError(f"{what} is not computed on {b.platform}. {hint}")


def _needs_cpu(b, name: str):
    if b.platform != "cpu":
        raise _lacks(b, name, "Compute it on the CPU: with weft.default_device(weft.devices('cpu')[0]).")


def _zero(b, aval):
    return b.splat(0, aval.dtype, aval.shape)


def _cut(b, value, aval, axis: int, start: int, shape):
    """`shape` of a value, beginning at `start` along one axis."""
    if tuple(aval.shape) == tuple(shape):
        return value
    starts = [start if d == axis % len(shape) else 0 for d in range(len(shape))]
    return b.op(
        "stablehlo.slice",
        [value],
        b.tensor(shape, aval.dtype),
        {
            "start_indices": b.i64s(starts),
            "limit_indices": b.i64s([s + n for s, n in zip(starts, shape)]),
            "strides": b.i64s([1] * len(shape)),
        },
    )


@rule("eigh")
def _eigh(b, ins, outs, x, *, lower, sort_eigenvalues, subset_by_index, algorithm):
    (aval,) = ins
    if algorithm is EighImplementation.QDWH or algorithm is EighImplementation.JACOBI and b.platform == "cpu":
        raise _lacks(
            b,
            f"eigh with the implementation {algorithm.name}",
            "Leave implementation out, or take EighImplementation.QR.",
        )
    if 0 in aval.shape:
        return [_zero(b, a) for a in outs]
    info, values = _infos(aval), outs[1].update(shape=aval.shape[:-1])
    if b.platform == "cpu":
        kernel = "heevd" if dtypes.is_complex(aval.dtype) else "syevd"
        v, w, code = lapack_call(
            b,
            kernel,
            aval.dtype,
            [x],
            ins,
            [aval, values, info],
            _rank(aval),
            [(0, 0)],
            mode="V",
            uplo="L" if lower else "U",
        )
    elif b.platform in GPUS:
        code_of = {None: 0, EighImplementation.QR: 1, EighImplementation.JACOBI: 2}
        v, w, code = solver_call(
            b,
            "syevd",
            [x],
            ins,
            [aval, values, info],
            _rank(aval),
            [(0, 0)],
            lower=lower,
            algorithm=chr(code_of[algorithm]),
        )
    else:
        return decomposed(
            b,
            "eigh",
            ins,
            [x],
            dict(lower=lower, sort_eigenvalues=sort_eigenvalues, subset_by_index=subset_by_index, algorithm=algorithm),
        )
    ok = info_is(b, "EQ", code, info)
    v, w = unless(b, ok, v, aval), unless(b, ok, w, values)
    start = subset_by_index[0] if subset_by_index else 0
    return [_cut(b, v, aval, -1, start, outs[0].shape), _cut(b, w, values, -1, start, outs[1].shape)]


@rule("svd")
def _svd(b, ins, outs, x, *, full_matrices, compute_uv, subset_by_index, algorithm):
    (aval,) = ins
    *batch, m, n = aval.shape
    k = min(m, n)
    if 0 in aval.shape:
        return [_zero(b, outs[0]), *[_identity(b, a) for a in outs[1:]]]
    algorithm = SvdAlgorithm.DEFAULT if algorithm is None else algorithm
    wide = full_matrices and compute_uv
    s, u, vt = (
        outs[0].update(shape=(*batch, k)),
        aval.update(shape=(*batch, m, m if wide else k)),
        aval.update(shape=(*batch, n if wide else k, n)),
    )
    info = _infos(aval)
    if b.platform == "cpu":
        kernels = {SvdAlgorithm.DEFAULT: "gesdd", SvdAlgorithm.DIVIDE_AND_CONQUER: "gesdd", SvdAlgorithm.QR: "gesvd"}
        if algorithm not in kernels:
            raise _lacks(b, f"svd with the algorithm {algorithm.name}", "Leave algorithm out, or take SvdAlgorithm.QR.")
        _, *found, code = lapack_call(
            b,
            kernels[algorithm],
            aval.dtype,
            [x],
            ins,
            [aval, s, u, vt, info],
            len(batch),
            [(0, 0)],
            mode="A" if wide else "S" if compute_uv else "N",
        )
    elif b.platform in GPUS:
        found, code = _gpu_svd(b, x, aval, s, info, algorithm, full_matrices, compute_uv)
    else:
        return decomposed(
            b,
            "svd",
            ins,
            [x],
            dict(full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index, algorithm=None),
        )
    ok = info_is(b, "EQ", code, info)
    found = [unless(b, ok, v, a) for v, a in zip(found, (s, u, vt)[: len(outs)])]
    start = subset_by_index[0] if subset_by_index else 0
    axes = (-1, -1, -2)
    return [_cut(b, v, a, axis, start, out.shape) for v, a, axis, out in zip(found, (s, u, vt), axes, outs)]


def _gpu_svd(b, x, aval, s, info, algorithm, full_matrices: bool, compute_uv: bool):
    """([s, u, vᴴ], info) by the vendor's kernels: Jacobi's up to 1,024 rows and columns, else QR's."""
    *batch, m, n = aval.shape
    k, rank = min(m, n), len(batch)
    if algorithm is SvdAlgorithm.DEFAULT:
        algorithm = SvdAlgorithm.JACOBI if max(m, n) <= 1024 else SvdAlgorithm.QR
    if algorithm is SvdAlgorithm.DIVIDE_AND_CONQUER and GPUS[b.platform] is GPUS["cuda"]:
        raise _lacks(
            b,
            "svd with the algorithm DIVIDE_AND_CONQUER",
            "Leave algorithm out, or take SvdAlgorithm.QR, JACOBI or POLAR.",
        )
    stack = lambda rows, columns: aval.update(shape=(*batch, rows, columns))
    if algorithm in (SvdAlgorithm.QR, SvdAlgorithm.DIVIDE_AND_CONQUER):
        # these kernels want m >= n: a wide matrix is read row by row, which transposes it and swaps u and vᴴ
        transposed = m < n
        u, vt = stack(m, m if full_matrices else k), stack(n if full_matrices else k, n)
        sides = [vt, u] if transposed else [u, vt]
        sides = sides if compute_uv else [aval.update(shape=tuple(batch))] * 2
        _, values, first, second, code = solver_call(
            b,
            "gesvd" if algorithm is SvdAlgorithm.QR else "gesdd",
            [x],
            [aval],
            [aval, s, *sides, info],
            rank,
            [(0, 0)],
            columns=not transposed,
            full_matrices=full_matrices,
            compute_uv=compute_uv,
            transposed=transposed,
        )
        return [values, *([second, first] if transposed else [first, second])][: 3 if compute_uv else 1], code
    jacobi = algorithm is SvdAlgorithm.JACOBI  # which gives all vectors
    whole = full_matrices or jacobi
    u, v = stack(m, m if whole else k), stack(n, n if whole else k)
    _, values, left, right, code = solver_call(
        b,
        "gesvdj" if jacobi else "gesvdp",
        [x],
        [aval],
        [aval, s, u, v, info],
        rank,
        [(0, 0)],
        full_matrices=whole,
        compute_uv=compute_uv,
    )
    if not compute_uv:
        return [values], code
    vt = stack(v.shape[-1], n)
    right = b.op("stablehlo.transpose", [right], b.type(vt), {"permutation": b.i64s([*range(rank), rank + 1, rank])})
    right = _conjugate(b, right, vt)
    u_shape, vt_shape = (*batch, m, m if full_matrices else k), (*batch, n if full_matrices else k, n)
    return [values, _cut(b, left, u, -1, 0, u_shape), _cut(b, right, vt, -2, 0, vt_shape)], code


def _conjugate(b, value, aval):
    if not dtypes.is_complex(aval.dtype):
        return value
    part = b.tensor(aval.shape, dtypes.real_of(aval.dtype))
    re, im = [b.op(f"stablehlo.{p}", [value], part) for p in ("real", "imag")]
    return b.op("stablehlo.complex", [re, b.op("stablehlo.negate", [im], part)], b.type(aval))


def _identity(b, aval):
    if not aval.shape or 0 in aval.shape:
        return _zero(b, aval)
    rank = len(aval.shape)
    whole = aval.update(dtype=dtypes.int32)
    same = b.compare(
        "EQ", b.iota(aval.shape, rank - 2, dtypes.int32), b.iota(aval.shape, rank - 1, dtypes.int32), whole
    )
    return b.convert(same, aval.shape, aval.dtype)


@rule("eig")
def _eig(
    b, ins, outs, x, *, compute_left_eigenvectors, compute_right_eigenvectors, enable_eigvec_derivs, implementation
):
    (aval,) = ins
    if b.platform == "cpu" and implementation not in (None, EigImplementation.LAPACK):
        raise ValueError(f"eig: the CPU has the implementation LAPACK, not {implementation.name}.")
    if implementation is EigImplementation.CUSOLVER:
        raise _lacks(
            b,
            "eig with the implementation CUSOLVER",
            "Take EigImplementation.LAPACK, which runs on the host, or MAGMA.",
        )
    if b.platform not in GPUS:
        _needs_cpu(b, "eig")
    if 0 in aval.shape:
        return [_zero(b, a) for a in outs]
    w, info = outs[0], _infos(aval)
    vectors = aval.update(dtype=w.dtype)
    is_complex = dtypes.is_complex(aval.dtype)
    results = [*([w] if is_complex else [w.update(dtype=dtypes.real_of(w.dtype))] * 2), vectors, vectors, info]
    if b.platform == "cpu":
        *found, left, right, code = lapack_call(
            b,
            "geev",
            aval.dtype,
            [x],
            ins,
            results,
            _rank(aval),
            compute_left="V" if compute_left_eigenvectors else "N",
            compute_right="V" if compute_right_eigenvectors else "N",
        )
    else:
        magma = {None: "auto", EigImplementation.MAGMA: "on", EigImplementation.LAPACK: "off"}[implementation]
        *found, left, right, code = call(
            b,
            f"{GPUS[b.platform].prefix}hybrid_eig_{'comp' if is_complex else 'real'}",
            [x],
            ins,
            results,
            _rank(aval),
            left=compute_left_eigenvectors,
            magma=magma,
            right=compute_right_eigenvectors,
        )
    value = found[0] if is_complex else b.op("stablehlo.complex", found, b.type(w))
    ok = info_is(b, "EQ", code, info)
    kept = [
        (value, w),
        *[(left, vectors)] * compute_left_eigenvectors,
        *[(right, vectors)] * compute_right_eigenvectors,
    ]
    return [unless(b, ok, v, a) for v, a in kept]


@rule("hessenberg")
def _hessenberg(b, ins, outs, x):
    (aval,) = ins
    if b.platform != "cpu":
        return decomposed(b, "hessenberg", ins, [x], {})
    if 0 in aval.shape or aval.shape[-1] == 1:
        return [x, _zero(b, outs[1])]
    info = _infos(aval)
    a, taus, code = lapack_call(
        b, "gehrd", aval.dtype, [x], ins, [aval, outs[1], info], _rank(aval), [(0, 0)], low=1, high=aval.shape[-1]
    )
    ok = info_is(b, "EQ", code, info)
    return [unless(b, ok, a, aval), unless(b, ok, taus, outs[1])]


@rule("schur")
def _schur(b, ins, outs, x, *, compute_schur_vectors, sort_eig_vals, select_callable):
    (aval,) = ins
    _needs_cpu(b, "schur")
    if sort_eig_vals:
        raise _lacks(b, "schur with sorted eigenvalues", "Leave sort_eig_vals and select_callable out.")
    if 0 in aval.shape:
        return [_zero(b, a) for a in outs]
    info = _infos(aval)
    is_complex = dtypes.is_complex(aval.dtype)
    w = aval.update(shape=aval.shape[:-1])
    results = [aval, aval, *([w] if is_complex else [w, w]), info, info]
    t, vectors, *_, code = lapack_call(
        b,
        "gees",
        aval.dtype,
        [x],
        ins,
        results,
        _rank(aval),
        [(0, 0)],
        mode="V" if compute_schur_vectors else "N",
        sort="N",
    )
    ok = info_is(b, "EQ", code, info)
    return [unless(b, ok, v, aval) for v in (t, vectors)[: len(outs)]]


@rule("tridiagonal")
def _tridiagonal(b, ins, outs, a, *, lower):
    (aval,) = ins
    info = _infos(aval)
    if b.platform == "cpu" and 0 not in aval.shape:
        kernel = "hetrd" if dtypes.is_complex(aval.dtype) else "sytrd"
        *found, code = lapack_call(
            b, kernel, aval.dtype, [a], ins, [*outs, info], _rank(aval), [(0, 0)], uplo="L" if lower else "U"
        )
    elif b.platform in GPUS and 0 not in aval.shape:
        *found, code = solver_call(b, "sytrd", [a], ins, [*outs, info], _rank(aval), [(0, 0)], lower=lower)
    else:
        return decomposed(b, "tridiagonal", ins, [a], {"lower": lower})
    ok = info_is(b, "EQ", code, info)
    return [unless(b, ok, v, o) for v, o in zip(found, outs)]


@rule("tridiagonal_solve")
def _tridiagonal_solve(b, ins, outs, dl, d, du, x, *, perturb_singular):
    diagonal, _, _, aval = ins
    operands, rank = [dl, d, du, x], _rank(aval)
    if 0 in aval.shape:
        return x
    if b.platform != "cpu" and b.platform not in GPUS:
        return decomposed(b, "tridiagonal_solve", ins, operands, {"perturb_singular": perturb_singular})[0]
    if perturb_singular:
        if b.platform == "cpu":
            ensure_lapack()
        target = (
            "tridiagonal_solve_perturbed_ffi"
            if b.platform == "cpu"
            else f"{GPUS[b.platform].prefix}_tridiagonal_solve_perturbed"
        )
        return call(b, target, operands, ins, outs, rank)[0]
    if b.platform in GPUS:
        return call(b, f"{GPUS[b.platform].sparse}_gtsv2_ffi", operands, ins, outs, rank, [(3, 0)])[0]
    info = _infos(aval)
    *_, out, code = lapack_call(
        b,
        "gtsv",
        aval.dtype,
        operands,
        ins,
        [diagonal, diagonal, diagonal, aval, info],
        rank,
        [(i, i) for i in range(4)],
    )
    return unless(b, info_is(b, "EQ", code, info), out, aval)
