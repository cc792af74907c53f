"""The errors of results: in units in the last place, or relative to the norm of their operands."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import ml_dtypes
import numpy as np
from accuracy_cases import Arrays, Pointwise, Whole
from accuracy_exact import EXACT, VALUES, exact, rounded

CHUNK = 16  # points of which mpmath says the error at a time, until none of the others can be worse
FAR = 1e9  # ulp; a larger error means an unrelated result, such as a number in place of zero


class Found(NamedTuple):
    """The largest error and where it occurs."""

    error: float
    where: str


def ulps(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Errors in units in the last place of the results; infinite where one is NaN and the other is not.

    An infinity counts as the first number that is too large, and below the smallest normal number zero will do."""
    info, wide = ml_dtypes.finfo(got.dtype), want.dtype.type
    top, tiny = wide(2) ** info.maxexp, wide(info.tiny)
    with np.errstate(all="ignore"):
        g, w = [np.where(abs(v) > top, np.copysign(top, v), v) for v in (got.astype(wide), want)]
        unit = np.spacing(np.clip(abs(w), tiny, wide(info.max)).astype(got.dtype)).astype(wide)
        error = np.where(np.isnan(g) & np.isnan(w), 0, np.where(np.isnan(g) | np.isnan(w), np.inf, abs(g - w) / unit))
        return np.where((abs(w) < tiny) & (abs(g) <= tiny), 0, error).astype(np.float64)


def worst(case: Pointwise, args: Arrays, got: np.ndarray, want: np.ndarray) -> Found:
    """The largest error at arguments that are finite, not zero, and have a value in mpmath."""
    plain = np.logical_and.reduce([np.isfinite(x) & (x != 0) for x in args]) & ~np.ma.getmaskarray(want)
    errors = np.where(plain, ulps(got, np.ma.getdata(want)), -1)
    best = Found(0.0, "")
    order = np.argsort(errors)[::-1]
    for start in range(0, len(order), CHUNK):
        some = order[start : start + CHUNK]
        if best.error >= errors[some[0]]:  # no other error is larger
            break
        rows = [tuple(float(x[k]) for x in args) for k in some]
        values = exact(case.name, rows) if case.name in EXACT else [None] * len(rows)
        for k, value in zip(some, values):
            error = float(errors[k])
            if value is not None:
                error = float(ulps(got[k : k + 1], np.array([rounded(value, want.dtype.type)]))[0])
            if error > best.error:
                best = Found(error, at(args, k))
    return best


def worst_complex(args: Arrays, got: np.ndarray, want: np.ndarray) -> Found:
    """The largest distance from the exact result, in units in the last place of its size."""
    kind = args[0].real.dtype
    unit = np.spacing(np.maximum(abs(want), np.finfo(kind).tiny).astype(kind)).astype(want.real.dtype)
    with np.errstate(invalid="ignore"):
        error = np.where(np.isfinite(got), abs(got.astype(want.dtype) - want) / unit, np.inf)
    k = int(np.argmax(error))
    return Found(float(error[k]), at(args, k) if error[k] else "")


def at(args: Arrays, k: int) -> str:
    """The arguments at one of the points, with enough digits to identify them in their dtype."""
    return ", ".join(str(x[k]).strip("()") for x in args)


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.clongdouble if np.iscomplexobj(x) else np.longdouble)


def _norm(x: np.ndarray) -> float:
    return float(np.sqrt((abs(x) ** 2).sum()))


def _orthogonal(q: np.ndarray) -> float:
    """How far the columns are from being orthonormal."""
    n = q.shape[-1]
    return _norm(q.T @ q - np.eye(n)) / math.sqrt(n)


def _parts(family: str, args: Arrays, outs: Arrays) -> Iterator[float]:
    """The residual of a decomposition, relative to its operand."""
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
    eps = float(ml_dtypes.finfo(kind).eps)
    if not all(np.isfinite(out).all() for out in outs):
        return math.inf
    wide, got = [_wide(x) for x in args], [_wide(out) for out in outs]
    if case.name not in VALUES:
        return max(_parts(case.family, wide, got)) / eps
    want = VALUES[case.name](*wide)
    off, tiny = abs(got[0] - want), ml_dtypes.finfo(kind).tiny
    unit = lambda size: np.spacing(np.maximum(abs(size), np.longdouble(tiny)).astype(kind)).astype(np.longdouble)
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
