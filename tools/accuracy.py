"""Writes docs/accuracy.md: the largest error of each function on each backend, and of jax on the CPU beside it. `make accuracy`

    python tools/accuracy.py               write the page
    python tools/accuracy.py erf svd       print the rows of these functions

Real jax is asked for its results in a process of its own, whose interpreter WEFT_ORACLE_PYTHON names (build/oracle/bin/python if it is not set); it is never
imported here. What is measured stands in accuracy_cases.py. Approximate references find the worst points, and mpmath says how bad they are.
"""
from __future__ import annotations

import argparse
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from typing import NamedTuple

import mpmath
import numpy as np
import scipy.special
from mpmath import mp

import weft

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from accuracy_cases import CASES, COMPLEX, FEW, KINDS, PLANE, POINTS, POINTWISE, Arrays, Case, Complex, Pointwise, Whole, arguments, evaluate, plane, points  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "accuracy.md"
PLATFORMS = {"cpu": "XLA", "wasm": "Wasm", "webgpu": "WebGPU"}
JAX = "jax"
COLUMNS = (*PLATFORMS.values(), JAX)
CHUNK = 16               # points of which mpmath says the error at a time, until none of the others can be worse
PRECISION = 220          # bits that mpmath computes with
FAR = 1e9                # ulp; what is farther off is nothing like the result, such as a number in the place of zero

# the values of elementwise functions ---------------------------------------------------------------------------------

_pi = np.longdouble("3.14159265358979323846264338327950288")


def _softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-abs(x)))


def _logaddexp(x, y):
    with np.errstate(invalid="ignore"):
        return np.where(x == y, x + np.log(x.dtype.type(2)), np.maximum(x, y) + np.log1p(np.exp(-abs(x - y))))


def _logaddexp2(x, y):
    log2 = np.log(x.dtype.type(2))
    with np.errstate(invalid="ignore"):
        return np.where(x == y, x + 1, np.maximum(x, y) + np.log1p(np.exp2(-abs(x - y))) / log2)


def _sinc(x):
    turn = np.fmod(x, 2) * (_pi if x.dtype == np.longdouble else np.pi)
    return np.where(x == 0, 1, np.sin(turn) / (x * (_pi if x.dtype == np.longdouble else np.pi)))


# In a type with more digits than the arguments': float64 for float32, long double for float64.
WIDE: dict[str, Callable[..., np.ndarray]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "reciprocal": np.reciprocal, "rem": np.fmod, "mod": np.mod, "square": np.square,
    "integer_pow 3": lambda x: x * x * x, "integer_pow -5": lambda x: 1 / (x * x * x * x * x), "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "cbrt": np.cbrt,
    "hypot": np.hypot, "pow": np.power, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "log2": np.log2, "log10": np.log10,
    "logaddexp": _logaddexp, "logaddexp2": _logaddexp2, "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinc": _sinc, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "logistic": lambda x: 1 / (1 + np.exp(-x)), "softplus": _softplus, "log_sigmoid": lambda x: -_softplus(-x), "silu": lambda x: x / (1 + np.exp(-x)),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)), "mish": lambda x: x * np.tanh(_softplus(x)), "logit": lambda x: np.where(x < 0.25, np.log(x) - np.log1p(-x), np.log1p((2 * x - 1) / (1 - x))),
    "xlogy": lambda x, y: np.where(x == 0, 0, x * np.log(y)), "entr": lambda x: np.where(x == 0, 0, -x * np.log(x)),
}
# In float64, for float32.
DOUBLE: dict[str, Callable[..., np.ndarray]] = {
    "erf": scipy.special.erf, "erfc": scipy.special.erfc, "erf_inv": scipy.special.erfinv, "lgamma": scipy.special.gammaln, "digamma": scipy.special.psi,
    "igamma": scipy.special.gammainc, "igammac": scipy.special.gammaincc, "zeta": scipy.special.zeta, "polygamma 1": lambda x: scipy.special.polygamma(1, x),
    "betainc": scipy.special.betainc, "bessel_i0e": scipy.special.i0e, "bessel_i1e": scipy.special.i1e, "gelu": lambda x: x * scipy.special.ndtr(x),
    "ndtr": scipy.special.ndtr, "log_ndtr": scipy.special.log_ndtr, "ndtri": scipy.special.ndtri, "spence": scipy.special.spence, "betaln": scipy.special.betaln,
    "exp1": scipy.special.exp1, "expi": scipy.special.expi,
}


def _ndtr(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _lgamma(x):
    return mp.log(abs(mp.gamma(x))) if x < 0.5 else mp.loggamma(x)


def _log1pexp(x):
    return mp.log1p(mp.exp(x)) if x < 500 else x


def _igamma(a, x):
    with mp.workprec(2000):      # enough for one minus it
        return x**a * mp.exp(-x) * mp.hyp1f1(1, a + 1, x) / mp.gamma(a + 1)


def _ndtri(p):
    """Newton's steps for the logarithm from SciPy's value; each doubles the digits."""
    if p > 0.5:
        return -_ndtri(1 - p)
    x = mp.mpf(float(scipy.special.ndtri(float(p))))
    for _ in range(3):
        area = _ndtr(x)
        x -= area * mp.log(area / p) * mp.sqrt(2 * mp.pi) * mp.exp(x * x / 2)
    return x


# To any precision.
EXACT: dict[str, Callable] = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "div": lambda x, y: x / y, "reciprocal": lambda x: 1 / x,
    "square": lambda x: x * x, "integer_pow 3": lambda x: x**3, "integer_pow -5": lambda x: x**-5, "sqrt": mp.sqrt, "rsqrt": lambda x: 1 / mp.sqrt(x),
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)), "hypot": mp.hypot, "pow": lambda x, y: x**y, "exp": mp.exp, "exp2": lambda x: mp.mpf(2) ** x, "expm1": mp.expm1,
    "log": mp.log, "log1p": mp.log1p, "log2": lambda x: mp.log(x, 2), "log10": mp.log10, "logaddexp": lambda x, y: max(x, y) + _log1pexp(-abs(x - y)),
    "logaddexp2": lambda x, y: max(x, y) + (mp.log1p(mp.mpf(2) ** -abs(x - y)) / mp.ln2 if abs(x - y) < 2000 else 0), "sin": mp.sin, "cos": mp.cos, "tan": mp.tan,
    "sinc": lambda x: mp.sinpi(x) / (mp.pi * x), "asin": mp.asin, "acos": mp.acos, "atan": mp.atan, "atan2": mp.atan2, "sinh": mp.sinh, "cosh": mp.cosh,
    "tanh": lambda x: mp.tanh(x) if abs(x) < 1e4 else mp.sign(x), "asinh": mp.asinh, "acosh": mp.acosh, "atanh": mp.atanh, "logistic": lambda x: 1 / (1 + mp.exp(-x)),
    "softplus": lambda x: _log1pexp(x), "log_sigmoid": lambda x: -_log1pexp(-x), "silu": lambda x: x / (1 + mp.exp(-x)),
    "elu": lambda x: x if x > 0 else mp.expm1(x), "mish": lambda x: x * mp.tanh(_log1pexp(x)) if x < 500 else x, "logit": lambda x: mp.log(x / (1 - x)),
    "xlogy": lambda x, y: x * mp.log(y), "entr": lambda x: -x * mp.log(x), "erf": mp.erf, "erfc": lambda x: mp.erfc(x) if x < 1e3 else mp.mpf(0),
    "erf_inv": mp.erfinv, "lgamma": _lgamma, "digamma": mp.digamma, "igamma": _igamma,
    "igammac": lambda a, x: 1 - _igamma(a, x), "zeta": mp.zeta, "polygamma 1": lambda x: mp.zeta(2, x),
    "betainc": lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True), "bessel_i0e": lambda x: mp.besseli(0, x) * mp.exp(-abs(x)),
    "bessel_i1e": lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), "gelu": lambda x: x * _ndtr(x) if x < 1e3 else x, "ndtr": lambda x: _ndtr(x) if x > -1e3 else mp.mpf(0),
    "log_ndtr": lambda x: mp.log(_ndtr(x)) if x < 0 else mp.log1p(-_ndtr(-x)), "ndtri": _ndtri, "exp1": mp.e1, "expi": mp.ei,
    "spence": lambda x: mp.polylog(2, 1 - x).real, "betaln": lambda a, b: mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b),
}


class Found(NamedTuple):
    """The largest error and where it occurs."""
    error: float
    where: str


# Of complex numbers.
EXACT_COMPLEX: dict[str, Callable] = {
    "mul": lambda x, y: x * y, "div": lambda x, y: x / y, "pow": lambda x, y: x**y, "abs": abs, "square": lambda x: x * x, "reciprocal": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / mp.sqrt(x), "log1p": lambda x: mp.log(1 + x), "expm1": lambda x: mp.exp(x) - 1,
    **{name: getattr(mp, name) for name in ("sqrt", "log", "exp", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh")},
}


def _exact_complex(name: str, rows: Sequence[tuple[complex, ...]], wide: type) -> np.ndarray:
    mp.prec = PRECISION
    found = np.empty(len(rows), np.result_type(wide, np.complex64))
    for k, at in enumerate(rows):
        value = mp.mpc(EXACT_COMPLEX[name](*[mp.mpc(z) for z in at]))
        found.real[k], found.imag[k] = _rounded(value.real, wide), _rounded(value.imag, wide)
    return found


def worst_complex(case: Complex, args: Arrays, results: dict[str, np.ndarray], pool: Executor) -> dict[str, Found]:
    """The largest error of each column: the distance from the exact result, in units in the last place of its size."""
    kind = args[0].real.dtype
    wide = np.float64 if kind == np.float32 else np.longdouble
    rows = list(zip(*[x.tolist() for x in args]))
    jobs = [pool.submit(_exact_complex, case.name.removeprefix("complex "), rows[k:k + 400], wide) for k in range(0, len(rows), 400)]
    want = np.concatenate([job.result() for job in jobs])
    unit = np.spacing(np.maximum(abs(want), np.finfo(kind).tiny).astype(kind)).astype(wide)
    found = {}
    for column, got in results.items():
        with np.errstate(invalid="ignore"):
            error = np.where(np.isfinite(got), abs(got.astype(want.dtype) - want) / unit, np.inf)
        k = int(np.argmax(error))
        found[column] = Found(float(error[k]), ", ".join(str(x[k]).strip("()") for x in args))
    return found


def _exact(name: str, rows: Sequence[tuple[float, ...]]) -> list[mpmath.mpf | None]:
    """The value at each of the arguments; None at poles, where it is complex, and where mpmath gives up."""
    mp.prec = PRECISION
    found = []
    for at in rows:
        try:
            value = EXACT[name](*map(mp.mpf, at))
        except (ZeroDivisionError, ValueError, mpmath.libmp.ComplexResult, mpmath.libmp.NoConvergence, OverflowError, RecursionError):
            value = None
        found.append(None if value is None or isinstance(value, mp.mpc) or not mp.isfinite(value) else +value)
    return found


def _rounded(value: mpmath.mpf, wide: type) -> np.floating:
    """A value in the wider type; what is too large or too small for that as an infinity or zero."""
    limit = np.finfo(wide)
    size = mp.log(abs(value), 2) if value else -mp.inf
    if size >= limit.maxexp or size < limit.minexp:
        return wide(0 if size < 0 else math.copysign(math.inf, value))
    return wide(mpmath.nstr(value, 25))


def reference(case: Pointwise, args: Arrays, pool: Executor) -> np.ndarray:
    """The values in a wider type, nearly right."""
    kind = args[0].dtype
    wide = np.float64 if kind == np.float32 else np.longdouble
    table = WIDE if case.name in WIDE else DOUBLE if kind == np.float32 else {}
    with np.errstate(all="ignore"):
        if case.name in table:
            return np.asarray(table[case.name](*[x.astype(wide) for x in args]), wide)
        rows = list(zip(*[x.tolist() for x in args]))
        jobs = [pool.submit(_exact, case.name, rows[k:k + 200]) for k in range(0, len(rows), 200)]
        values = [v for job in jobs for v in job.result()]
        return np.ma.masked_invalid(np.array([np.nan if v is None else _rounded(v, wide) for v in values], wide))


def ulps(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Errors in units in the last place of the results; infinite where one is NaN and the other is not. An infinity counts as the first number that is too large,
    and below the smallest normal number zero will do."""
    info, wide = np.finfo(got.dtype), want.dtype.type
    top, tiny = wide(2) ** info.maxexp, wide(info.tiny)
    with np.errstate(all="ignore"):
        g, w = [np.where(abs(v) > top, np.copysign(top, v), v) for v in (got.astype(wide), want)]
        unit = np.spacing(np.clip(abs(w), tiny, info.max).astype(got.dtype)).astype(wide)
        error = np.where(np.isnan(g) & np.isnan(w), 0, np.where(np.isnan(g) | np.isnan(w), np.inf, abs(g - w) / unit))
        return np.where((abs(w) < tiny) & (abs(g) <= tiny), 0, error).astype(np.float64)


def worst(case: Pointwise, args: Arrays, got: np.ndarray, want: np.ndarray) -> Found:
    """The largest error at arguments that are finite and not zero, nor where mpmath knows no value."""
    plain = np.logical_and.reduce([np.isfinite(x) & (x != 0) for x in args]) & ~np.ma.getmaskarray(want)
    errors = np.where(plain, ulps(got, np.ma.getdata(want)), -1)
    best = Found(0.0, "")
    order = np.argsort(errors)[::-1]
    for start in range(0, len(order), CHUNK):
        some = order[start:start + CHUNK]
        if best.error >= errors[some[0]]:      # none of the rest is worse
            break
        rows = [tuple(float(x[k]) for x in args) for k in some]
        exact = _exact(case.name, rows) if case.name in EXACT else [None] * len(rows)
        for k, row, value in zip(some, rows, exact):
            error = float(errors[k])
            if value is not None:
                error = float(ulps(got[k:k + 1], np.array([_rounded(value, want.dtype.type)]))[0])
            if error > best.error:
                best = Found(error, ", ".join(_number(v, got.dtype) for v in row))
    return best


def _number(v: float, kind: np.dtype) -> str:
    return str(kind.type(v))


# the errors of functions of arrays -----------------------------------------------------------------------------------


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.clongdouble if np.iscomplexobj(x) else np.longdouble)


def _norm(x: np.ndarray) -> float:
    return float(np.sqrt((abs(x) ** 2).sum()))


def _prefix(x: np.ndarray) -> np.ndarray:
    """Running sums whose rounding is not felt: a coarse part of which they are exact, and a fine one."""
    coarse = np.round(x * np.longdouble(2**30)) / 2**30
    return np.cumsum(coarse, 0) + np.cumsum(x - coarse, 0)


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _logsumexp(x: np.ndarray) -> np.ndarray:
    top = x.max(-1, keepdims=True)
    return np.log(np.exp(x - top).sum(-1)) + top[..., 0]


def _conv(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, w)


VALUES: dict[str, Callable[..., np.ndarray]] = {
    "sum": lambda x: x.sum(0), "mean": lambda x: x.mean(0), "cumsum": _prefix, "var": lambda x: x.var(0), "norm": lambda x: np.sqrt((x * x).sum(0)), "prod": np.prod,
    "cumprod": np.cumprod, "softmax": _softmax, "log_softmax": lambda x: x - _logsumexp(x)[..., None], "logsumexp": _logsumexp, "dot": np.matmul, "convolution": _conv,
    "fft": np.fft.fft, "ifft": np.fft.ifft, "rfft": np.fft.rfft,
}


def _orthogonal(q: np.ndarray) -> float:
    """How far the columns are from being orthonormal."""
    n = q.shape[-1]
    return _norm(q.T @ q - np.eye(n)) / math.sqrt(n)


def _parts(family: str, args: Arrays, outs: Arrays) -> Iterator[float]:
    """What a decomposition leaves, relative to its operand."""
    a = args[0]
    size = _norm(a)
    match family:
        case "cholesky":
            yield _norm(outs[0] @ outs[0].T - a) / size
        case "lu":
            low, high = np.tril(outs[0], -1) + np.eye(len(a)), np.triu(outs[0])
            yield _norm(low @ high - a[outs[2].astype(int)]) / size
        case "qr":
            yield _norm(outs[0] @ outs[1] - a) / size
            yield _orthogonal(outs[0])
        case "eigh":
            values, vectors = outs
            yield _norm(a @ vectors - vectors * values) / size
            yield _orthogonal(vectors)
        case "svd":
            u, s, v = outs
            yield _norm((u * s) @ v - a) / size
            yield _orthogonal(u)
            yield _orthogonal(v.T)
        case "solve":
            yield _norm(a @ outs[0] - args[1]) / (size * _norm(outs[0]))


def error_of(case: Whole, args: Arrays, outs: Arrays) -> float:
    """The error of results, in the unit of its family."""
    kind = args[0].dtype
    eps = float(np.finfo(kind).eps)
    if not all(np.isfinite(out).all() for out in outs):
        return math.inf
    wide, got = [_wide(x) for x in args], [_wide(out) for out in outs]
    if case.name not in VALUES:
        return max(_parts(case.family, wide, got)) / eps
    want = VALUES[case.name](*wide)
    off = abs(got[0] - want)
    unit = lambda size: np.spacing(np.maximum(abs(size), np.finfo(kind).tiny).astype(kind)).astype(np.longdouble)
    match case.family:
        case "sum":
            return float((off / unit(VALUES[case.name](abs(wide[0])))).max())
        case "positive":
            return float(ulps(outs[0], want).max())
        case "values":
            return float((off / unit(np.maximum(abs(want), 1))).max())
        case "product":
            return float((off / (eps * VALUES[case.name](*map(abs, wide)))).max())
        case "transform":
            return _norm(got[0] - want) / _norm(want) / eps
    raise ValueError(f"{case.name}: nobody knows how errors of the family {case.family!r} are measured")


# measuring -----------------------------------------------------------------------------------------------------------


def calls(case: Case, kind: str) -> dict[str, Arrays]:
    if isinstance(case, Whole):
        return arguments(case, KINDS[kind])
    return {"points": points(case, KINDS[kind]) if isinstance(case, Pointwise) else plane(case, KINDS[kind])}


def on_weft(name: str, args: Arrays, platform: str) -> Arrays:
    with weft.default_device(weft.devices(platform)[0]), weft.enable_x64(args[0].real.dtype == np.float64), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return evaluate(name, weft, args)


def on_jax(names: Sequence[str]) -> dict[tuple[str, str, str], Arrays]:
    """(function, dtype, call) -> results of real jax."""
    python = os.environ.get("WEFT_ORACLE_PYTHON", str(ROOT / "build/oracle/bin/python"))
    with tempfile.TemporaryDirectory() as folder:
        inputs, results = pathlib.Path(folder, "inputs.npz"), pathlib.Path(folder, "results.npz")
        np.savez(inputs, **{f"{name}/{kind}/{call}/{k}": x for name in names for kind in KINDS for call, args in calls(CASES[name], kind).items()
                            for k, x in enumerate(args)})
        subprocess.run([python, str(ROOT / "tools/accuracy_cases.py"), str(inputs), str(results)], check=True)
        found: dict[tuple[str, str, str], Arrays] = {}
        with np.load(results) as data:
            for key in data.files:
                name, kind, call, _ = key.split("/")
                found.setdefault((name, kind, call), []).append(data[key])
    return found


class Row(NamedTuple):
    name: str
    kind: str
    cells: dict[str, Found]                       # of each column
    special: list[tuple[str, dict[str, str]]]     # arguments, and what each column gives there, where not all agree


def results_of(case: Case, kind: str, call: str, args: Arrays, peer: dict) -> dict[str, Arrays]:
    """The results of each column; WebGPU has no float64."""
    found = {column: on_weft(case.name, args, platform) for platform, column in PLATFORMS.items() if kind == "f32" or platform != "webgpu"}
    return {**found, **({JAX: peer[case.name, kind, call]} if peer else {})}


def measured(case: Case, kind: str, peer: dict, pool: Executor) -> Row:
    if isinstance(case, Whole):
        cells: dict[str, Found] = {}
        for call, args in calls(case, kind).items():
            for column, outs in results_of(case, kind, call, args, peer).items():
                error = error_of(case, args, outs)
                if column not in cells or error > cells[column].error:
                    cells[column] = Found(error, call)
        return Row(case.name, kind, cells, [])
    args = calls(case, kind)["points"]
    results = {column: outs[0] for column, outs in results_of(case, kind, "points", args, peer).items()}
    if isinstance(case, Complex):
        return Row(case.name, kind, worst_complex(case, args, results, pool), [])
    want = reference(case, args, pool)
    return Row(case.name, kind, {column: worst(case, args, got, want) for column, got in results.items()}, special(args, results))


def special(args: Arrays, results: dict[str, np.ndarray]) -> list[tuple[str, dict[str, str]]]:
    """Where an argument is zero, infinite or NaN: what each gives, if they don't agree in being finite, in sign or in being NaN."""
    found: dict[str, dict[str, str]] = {}
    odd = np.flatnonzero(np.logical_or.reduce([~np.isfinite(x) | (x == 0) for x in args]))
    for k in odd:
        values = {column: got[k] for column, got in results.items()}
        kinds = {str(v) if not np.isfinite(v) or v == 0 else "finite" for v in values.values()}
        if len(kinds) > 1:
            found[", ".join(_number(float(x[k]), x.dtype) for x in args)] = {column: f"{v:.4g}" for column, v in values.items()}
    return list(found.items())


# the page ------------------------------------------------------------------------------------------------------------

HEAD = """# Accuracy

Written by `tools/accuracy.py` (`make accuracy`); a test recomputes some rows and compares. The largest errors that were found, on XLA's CPU, as WebAssembly, on
WebGPU's software adapter (Mesa's lavapipe), and of jax 0.10.2 on the CPU beside them, with the arguments where they occur. Each compiles the function alone. Other
machines round some of these in other ways: XLA fuses multiplications and additions where the processor can, and other adapters of WebGPU have functions of their own.

An error of an elementwise function is in units in the last place (ulp) of the exact result, which mpmath gives to {precision} bits wherever another reference finds
a larger one than is known. A result that
is rounded correctly has an error of 0.5 at most; "> 10⁹" says that the result is nothing like the exact one: another number where that is zero, or zero, an infinity
or NaN where it is not. Of each function in float32, {points:,} places are tried: random bits, random sizes, places where the function does
something, and the neighbours of its zeros and edges; in float64 as many, or {few:,} where exact values take long. Subnormal numbers may be taken for zero
everywhere, as XLA does: no argument is one, and where the exact result is one, zero will do.
"""
WHOLE_HEAD = """
## {title}

{text}
"""
PLANE_HEAD = """
## Complex functions

Errors normwise: the distance from the exact result in units in the last place of its absolute value, at {points:,} places and next to zeros and poles, none of
them on an axis. A part that is much smaller than the other may be wrong in all of its digits.

"""
FAMILIES = {
    "Reductions": (("sum", "positive", "values"), "In ulp: of the result; for sums, running sums and means of the sum of the magnitudes, since what cancels leaves an error of any "
                   "relative size; for logarithms of sums of the result or of 1, whichever is larger. The last column of each says for which of the operands."),
    "Products": (("product",), "In eps (2⁻²³ and 2⁻⁵²), relative to the product of the magnitudes of the operands: |got − exact| / (eps · |a| |b|), the largest of all elements."),
    "Fourier transforms": (("transform",), "In eps, relative to the norm of the result."),
    "Decompositions": (("cholesky", "lu", "qr", "eigh", "svd", "solve"), "Backward errors in eps: of what the factors multiply to, ‖a − …‖ / ‖a‖ in the norm of "
                       "Frobenius, or of how far their columns are from being orthonormal, ‖qᵀq − 1‖ / √n, whichever is larger; of solutions ‖a x − b‖ / (‖a‖ ‖x‖)."),
}


def shown(error: float) -> str:
    if error > FAR:
        return "> 10⁹"
    return f"{error:.3g}" if error < 1000 else f"{error:.1e}"


def table(rows: Sequence[Row], where: str) -> str:
    columns = [c for c in COLUMNS if any(c in row.cells for row in rows)]
    lines = ["| function | " + " | ".join(f"{c} | {where}" for c in columns) + " |", "|---|" + "--:|---|" * len(columns)]
    for row in rows:
        cells = [row.cells.get(c) for c in columns]
        lines.append(f"| {row.name} | " + " | ".join(f"{shown(c.error)} | {c.where}" if c else "– | " for c in cells) + " |")
    return "\n".join(lines)


def page(rows: Sequence[Row]) -> str:
    names = [case.name for case in POINTWISE]
    parts = [HEAD.format(precision=PRECISION, points=POINTS, few=FEW)]
    for kind in KINDS:
        parts.append(f"\n## Elementwise functions, {KINDS[kind].__name__}\n\n" + table([r for r in rows if r.name in names and r.kind == kind], "at"))
    parts.append(PLANE_HEAD.format(points=PLANE))
    for kind in KINDS:
        parts.append(f"### Complex functions of {KINDS[kind].__name__}\n\n" + table([r for r in rows if r.name in {c.name for c in COMPLEX} and r.kind == kind], "at") + "\n")
    for title, (families, text) in FAMILIES.items():
        parts.append(WHOLE_HEAD.format(title=title, text=text))
        for kind in KINDS:
            chosen = [r for r in rows if isinstance(CASES[r.name], Whole) and CASES[r.name].family in families and r.kind == kind]
            parts.append(f"### {title}, {KINDS[kind].__name__}\n\n" + table(chosen, "of") + "\n")
    parts.append("## Zeros, infinities and NaN\n\nArguments where not all give a zero, an infinity of one sign, NaN, or another number.\n")
    parts.append("| function | dtype | arguments | " + " | ".join(COLUMNS) + " |\n|---|---|---|" + "---|" * len(COLUMNS))
    for row in rows:
        parts += [f"| {row.name} | {row.kind} | {at} | " + " | ".join(values.get(c, "–") for c in COLUMNS) + " |" for at, values in row.special]
    return "\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="functions; all if none is named, and the page is written")
    options = parser.parse_args()
    names = options.names or list(CASES)
    peer = on_jax(names)
    rows = []
    with ProcessPoolExecutor() as pool:
        for name in names:
            for kind in KINDS:
                row = measured(CASES[name], kind, peer, pool)
                rows.append(row)
                print(f"{name:16} {kind} ", "  ".join(f"{c} {shown(f.error)} ({f.where})" for c, f in row.cells.items()), flush=True)
                if options.names:
                    for at, values in row.special:
                        print(f"    {at}: {values}")
    if not options.names:
        PAGE.write_text(page(rows))


if __name__ == "__main__":
    main()
