"""The functions that docs/accuracy.md measures, and their inputs. It needs only what jax needs itself, so that real
jax can run the same cases in a process of its own.

    python tools/accuracy_cases.py INPUTS.npz RESULTS.npz

evaluates in jax, on the CPU, the functions that the first file has arguments for.
"""

from __future__ import annotations

import functools
import importlib
import math
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import ml_dtypes
import numpy as np

Arrays = list[np.ndarray]
KINDS: dict[str, type] = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
HALVES = ("f16", "bf16")
HALF = tuple(KINDS[kind] for kind in HALVES)
POINTS = 60_000  # points of an elementwise function in one dtype
FEW = 2_000  # points of one whose exact values take long
IN_HALVES = ("sum", "positive", "values", "product")  # the families of functions of arrays that they are measured of
# What jax lacks: it refuses these types, and does not come to an end in the last.
WITHOUT_JAX = {**dict.fromkeys(("ndtr", "log_ndtr", "ndtri", "spence"), HALVES), "exp1": ("bf16",)}
DOUBLE = (np.float64,)
BOTH = (np.float32, np.float64)
INF = math.inf


class Pointwise(NamedTuple):
    """An elementwise function.

    path: where jax has it, or what makes it of the module `jax`. domain: of float64, of each argument. focus: where
    it does something. marks: values, zeros and edges of it, whose neighbours are taken. slow: the dtypes in which its
    exact values take long, so that there are fewer points."""

    name: str
    path: str | Callable[[Any], Callable]
    domain: tuple[tuple[float, float], ...] = ((-INF, INF),)
    focus: tuple[tuple[float, float], ...] = ((-10, 10),)
    marks: tuple[float, ...] = (0.0,)
    slow: tuple[type, ...] = ()

    @property
    def arity(self) -> int:
        return len(self.domain)


def one(
    name: str,
    path: Any,
    domain: tuple[float, float] = (-INF, INF),
    focus: tuple[float, float] = (-10, 10),
    marks: Sequence[float] = (0.0,),
    slow: tuple[type, ...] = (),
) -> Pointwise:
    return Pointwise(name, path, (domain,), (focus,), tuple(marks), slow)


def two(
    name: str,
    path: Any,
    domains: Sequence[tuple[float, float]],
    focus: Sequence[tuple[float, float]],
    slow: tuple[type, ...] = (),
) -> Pointwise:
    return Pointwise(name, path, tuple(domains), tuple(focus), (), slow)


ALL, UNIT, POSITIVE = (-INF, INF), (-1.0, 1.0), (0.0, INF)
PI = tuple(k * math.pi / 2 for k in (*range(-8, 9), 22, 355, 710, 1e5, 3e7))

POINTWISE = [
    one("neg", "lax.neg"),
    one("abs", "lax.abs"),
    one("sign", "lax.sign"),
    *[
        one(name, f"lax.{name}", marks=(0.0, 0.5, 1.0, 1.5, 2.0, 2.5, -0.5, -1.0, -2.5))
        for name in ("floor", "ceil", "round")
    ],
    one("reduce_precision", lambda jax: lambda x: jax.lax.reduce_precision(x, jax.numpy.finfo(x.dtype).nexp, 5)),
    *[two(name, f"lax.{name}", (ALL, ALL), (UNIT, UNIT)) for name in ("max", "min", "nextafter")],
    two("add", "lax.add", (ALL, ALL), (UNIT, UNIT)),
    two("sub", "lax.sub", (ALL, ALL), (UNIT, UNIT)),
    two("mul", "lax.mul", (ALL, ALL), (UNIT, UNIT)),
    two("div", "lax.div", (ALL, ALL), (UNIT, UNIT)),
    one("reciprocal", "numpy.reciprocal"),
    two("rem", "lax.rem", (ALL, ALL), ((-1e4, 1e4), (-10, 10))),
    two("mod", "numpy.mod", (ALL, ALL), ((-1e4, 1e4), (-10, 10))),
    one("square", "lax.square"),
    one("integer_pow 3", lambda jax: lambda x: jax.lax.integer_pow(x, 3)),
    one("integer_pow -5", lambda jax: lambda x: jax.lax.integer_pow(x, -5)),
    one("sqrt", "lax.sqrt", POSITIVE, (0, 4)),
    one("rsqrt", "lax.rsqrt", POSITIVE, (0, 4)),
    one("cbrt", "lax.cbrt", ALL, (-8, 8)),
    two("hypot", "numpy.hypot", (ALL, ALL), (UNIT, UNIT)),
    two("pow", "lax.pow", (POSITIVE, ALL), ((0, 4), (-8, 8))),
    one("exp", "lax.exp", (-760, 720), (-20, 20), (0, 88.72283, -87.33655, 709.782712893384, -708.3964185322641)),
    one("exp2", "lax.exp2", (-1080, 1030), (-20, 20), (0, 128, -126, 1024, -1022)),
    one("expm1", "lax.expm1", (-760, 720), (-3, 3), (0, 88.72283, 709.782712893384)),
    one("log", "lax.log", POSITIVE, (0, 4), (1.0,)),
    one("log1p", "lax.log1p", (-1, INF), (-1, 3), (0.0, -1.0)),
    one("log2", "numpy.log2", POSITIVE, (0, 4), (1.0, 8.0)),
    one("log10", "numpy.log10", POSITIVE, (0, 4), (1.0, 1000.0)),
    two("logaddexp", "numpy.logaddexp", (ALL, ALL), ((-20, 20), (-20, 20))),
    two("logaddexp2", "numpy.logaddexp2", (ALL, ALL), ((-20, 20), (-20, 20))),
    one("sin", "lax.sin", ALL, (-10, 10), PI),
    one("cos", "lax.cos", ALL, (-10, 10), PI),
    one("tan", "lax.tan", ALL, (-10, 10), PI),
    one("sinc", "numpy.sinc", (-1e6, 1e6), (-6, 6), (0, 1, 2, 5)),
    one("asin", "lax.asin", UNIT, UNIT, (0, 1, -1, 0.5)),
    one("acos", "lax.acos", UNIT, UNIT, (0, 1, -1, 0.5)),
    one("atan", "lax.atan", ALL, (-3, 3), (0, 1)),
    two("atan2", "lax.atan2", (ALL, ALL), (UNIT, UNIT)),
    one("sinh", "lax.sinh", (-720, 720), (-3, 3), (0, 88.72283, 89.41599)),
    one("cosh", "lax.cosh", (-720, 720), (-3, 3), (0, 88.72283, 89.41599)),
    one("tanh", "lax.tanh", ALL, (-3, 3), (0, 9.0, 19.0)),
    one("asinh", "lax.asinh", ALL, (-3, 3), (0,)),
    one("acosh", "lax.acosh", (1, INF), (1, 4), (1,)),
    one("atanh", "lax.atanh", UNIT, UNIT, (0, 1, -1)),
    one("logistic", "lax.logistic", (-760, 760), (-20, 20), (0, -87.33655, -708.3964)),
    one("erf", "lax.erf", ALL, (-4, 4), (0, 3.92, 5.92)),
    one("erfc", "lax.erfc", (-INF, 28), (-3, 10), (0, 9.19, 26.5)),
    one("erfcx", "scipy.special.erfcx", (-26, INF), (-3, 10), (0, 1, 12, 30)),
    one("erf_inv", "lax.erf_inv", UNIT, UNIT, (0, 1, -1), slow=DOUBLE),
    one(
        "lgamma",
        "lax.lgamma",
        (-1e3, INF),
        (-5, 10),
        (1, 2, -2.457024738220801, -2.747682646727413, -3.143580888349980, -1, -2),
        slow=DOUBLE,
    ),
    one(
        "digamma",
        "lax.digamma",
        (-1e3, INF),
        (-5, 10),
        (1.461632144968362, -0.504083008264455, -1.573498473162391, -1, -2),
        slow=DOUBLE,
    ),
    two("igamma", "lax.igamma", ((1e-3, 1e3), (1e-3, 1e3)), ((0.1, 20), (0.1, 20)), slow=DOUBLE),
    two("igammac", "lax.igammac", ((1e-3, 1e3), (1e-3, 1e3)), ((0.1, 20), (0.1, 20)), slow=DOUBLE),
    two("igamma_grad_a", "lax.igamma_grad_a", ((1e-2, 1e2), (1e-2, 1e2)), ((0.1, 20), (0.1, 20)), slow=BOTH),
    two("zeta", "lax.zeta", ((1.001, 100), (1e-2, 1e4)), ((1.1, 10), (0.1, 10)), slow=DOUBLE),
    one("polygamma 1", lambda jax: lambda x: jax.lax.polygamma(x * 0 + 1, x), (1e-3, 1e6), (0.1, 10), (), slow=DOUBLE),
    Pointwise(
        "betainc", "lax.betainc", ((1e-2, 1e3), (1e-2, 1e3), (0, 1)), ((0.5, 10), (0.5, 10), (0, 1)), (), slow=DOUBLE
    ),
    one("bessel_i0e", "lax.bessel_i0e", ALL, (-20, 20), (0, 8), slow=DOUBLE),
    one("bessel_i1e", "lax.bessel_i1e", ALL, (-20, 20), (0, 8), slow=DOUBLE),
    one("softplus", "nn.softplus", ALL, (-20, 20)),
    one("log_sigmoid", "nn.log_sigmoid", ALL, (-20, 20)),
    one("silu", "nn.silu", (-1e30, 1e30), (-20, 20), (0, -1.278464542761074)),
    one("elu", "nn.elu", ALL, (-5, 5)),
    one("gelu", lambda jax: lambda x: jax.nn.gelu(x, approximate=False), (-1e30, 1e30), (-6, 6), (0, -0.7517915)),
    one("mish", "nn.mish", (-1e30, 1e30), (-10, 10)),
    one("logit", "scipy.special.logit", (0, 1), (0, 1), (0.5, 1)),
    one("ndtr", "scipy.special.ndtr", ALL, (-10, 10)),
    one("log_ndtr", "scipy.special.log_ndtr", (-1e15, INF), (-20, 10), (0, -5, -20, 5), slow=DOUBLE),
    one("ndtri", "scipy.special.ndtri", (0, 1), (0, 1), (0.5, 0.1353352832), slow=DOUBLE),
    two("xlogy", "scipy.special.xlogy", (ALL, POSITIVE), (UNIT, (0, 4))),
    one("entr", "scipy.special.entr", POSITIVE, (0, 4), (1,)),
    one("spence", "scipy.special.spence", (0, 1e30), (0, 4), (1,), slow=DOUBLE),
    # jax does not terminate below 0.01
    one("exp1", "scipy.special.exp1", (1e-2, 700), (0.01, 4), (1,), slow=DOUBLE),
    one("expi", "scipy.special.expi", (1e-2, 700), (0.01, 4), (0.37250741078136663,), slow=DOUBLE),
    two("betaln", "scipy.special.betaln", ((1e-3, 1e6), (1e-3, 1e6)), ((0.1, 10), (0.1, 10)), slow=DOUBLE),
]
SPECIAL = (0.0, -0.0, INF, -INF, math.nan, 1.0, -1.0, 0.5, -0.5, 2.0)


def points(case: Pointwise, kind: type, count: int | None = None) -> Arrays:
    """The arguments of an elementwise function, the same each time.

    They are special values, neighbours of marks, random bits, and places in the domain and the focus; of one argument
    of 16 bits all numbers. No subnormal numbers are among them."""
    if kind in HALF and case.arity == 1:
        return _inside(case, kind, [np.concatenate([np.array(SPECIAL, kind), _numbers(kind)])])
    rng, info = np.random.default_rng([len(case.name), *map(ord, case.name)]), ml_dtypes.finfo(kind)
    count = count or (FEW if is_slow(case, kind) else POINTS)
    bits = np.dtype(f"u{info.dtype.itemsize}")
    columns = []
    for (lo, hi), (a, b) in zip(case.domain, case.focus):
        lo, hi = max(lo, -float(info.max)), min(hi, float(info.max))
        anything = rng.integers(0, 1 << (8 * info.dtype.itemsize), 8 * count, dtype=bits).view(kind)
        with np.errstate(invalid="ignore"):
            anything = anything.astype(np.float64)
            anything = anything[(anything >= lo) & (anything <= hi)][: count // 4]
        least = max(lo, float(info.tiny)) if lo >= 0 else float(info.tiny)
        sizes = np.exp(rng.uniform(math.log(least), math.log(max(hi, -lo)), count // 4))
        signs = rng.choice([-1, 1], sizes.size) if lo < 0 < hi else 1.0
        columns.append(
            np.concatenate(
                [anything, (sizes * signs).clip(lo, hi), rng.uniform(a, b, count - len(anything) - len(sizes))]
            ).astype(kind)
        )
    if case.arity > 1:
        for column in columns[1:]:
            rng.shuffle(column)
        near = columns[0][: count // 8].astype(np.float64) * (1 + max(1e-3, 2 * float(info.eps)))
        lo, hi = case.domain[1]
        columns[1][: len(near)] = near.clip(max(lo, -float(info.max)), min(hi, float(info.max)))  # of about one size
        special = np.array(np.meshgrid(*[SPECIAL] * case.arity)).reshape(case.arity, -1)
    else:
        marks = np.array([m for m in case.marks if abs(m) < info.max], kind)
        steps = np.concatenate([np.arange(40), 2.0 ** np.arange(6, info.nmant)])
        with np.errstate(over="ignore"):
            around = np.concatenate(
                [marks[:, None] + s * steps * np.spacing(np.maximum(abs(marks), info.eps))[:, None] for s in (-1, 1)]
            ).ravel()
            near = np.concatenate([s * 2.0 ** rng.uniform(info.minexp + 2, 0, 200) for s in (-1, 1)])  # of zero
        special = np.concatenate([SPECIAL, around, near])[None]
    return _inside(case, kind, [np.concatenate([s.astype(kind), c]) for s, c in zip(special, columns)])


def is_slow(case: Pointwise, kind: type) -> bool:
    return (np.float32 if kind in HALF else kind) in case.slow


def _numbers(kind: type) -> np.ndarray:
    """All numbers of a type of 16 bits."""
    every = np.arange(1 << 16, dtype=np.uint16).view(kind)
    with np.errstate(invalid="ignore"):  # which bfloat16's NaNs are said to be
        return every[np.isfinite(every)]


def _inside(case: Pointwise, kind: type, args: Arrays) -> Arrays:
    """Those in the domain of a function, with zeros in place of subnormal numbers."""
    info = ml_dtypes.finfo(kind)
    inside = np.ones(len(args[0]), bool)
    for x, (lo, hi) in zip(args, case.domain):
        wide = x.astype(np.float64)
        x[(wide != 0) & (abs(wide) < info.tiny)] = 0
        inside &= ~np.isfinite(wide) | (wide >= lo) & (wide <= hi)
    return [np.ascontiguousarray(x[inside]) for x in args]


# complex functions ---------------------------------------------------------------------------------------------------


class Complex(NamedTuple):
    """An elementwise function of complex numbers.

    size: the least and greatest of the parts of its arguments. marks: numbers whose neighbours are taken."""

    name: str
    path: str | Callable[[Any], Callable]
    size: tuple[float, float] = (1e-12, 1e12)
    marks: tuple[complex, ...] = (0, 1, -1, 1j)
    arity: int = 1


SMALL = (1e-12, 80.0)  # of which exponentials are neither too large nor too small
COMPLEX = [
    *[Complex(f"complex {name}", f"lax.{name}", arity=2, marks=()) for name in ("add", "sub", "mul", "div")],
    Complex("complex pow", "lax.pow", (1e-3, 5.0), (), 2),
    *[
        Complex(f"complex {name}", path)
        for name, path in (
            ("abs", "lax.abs"),
            ("square", "lax.square"),
            ("reciprocal", "numpy.reciprocal"),
            ("sqrt", "lax.sqrt"),
            ("rsqrt", "lax.rsqrt"),
            ("log", "lax.log"),
            ("log1p", "lax.log1p"),
            ("sign", "lax.sign"),
            ("integer_pow 3", lambda jax: lambda z: jax.lax.integer_pow(z, 3)),
        )
    ],
    *[
        Complex(f"complex {name}", f"lax.{name}", SMALL, marks)
        for name, marks in (
            ("exp", (0,)),
            ("expm1", (0,)),
            ("exp2", (0,)),
            ("logistic", (0, math.pi * 1j)),
            ("sin", (0, math.pi)),
            ("cos", (math.pi / 2,)),
            ("tan", (0, math.pi / 2)),
            ("sinh", (0, math.pi * 1j)),
            ("cosh", (math.pi / 2 * 1j,)),
            ("tanh", (0, math.pi / 2 * 1j)),
        )
    ],
    *[Complex(f"complex {name}", f"lax.{name}") for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")],
]
PLANE = 8_000  # points of a complex function
PARTS = {np.float32: np.complex64, np.float64: np.complex128}


def plane(case: Complex, kind: type) -> Arrays:
    """The arguments of a complex function, the same each time: parts of all sizes, and neighbours of marks in all
    directions. None stands on an axis, where cuts are."""
    rng, info = np.random.default_rng([len(case.name), *map(ord, case.name)]), np.finfo(kind)
    lo, hi = np.log(case.size)
    columns = []
    for _ in range(case.arity):
        sizes = lambda a, b: np.exp(rng.uniform(a, b, PLANE // 2)) * rng.choice([-1, 1], PLANE // 2)
        either = sizes(lo, hi) + 1j * sizes(lo, hi)
        moderate = sizes(max(lo, -3), min(hi, 2)) + 1j * sizes(max(lo, -3), min(hi, 2))
        far = 2.0 ** rng.uniform(-info.nmant, 0, (len(case.marks), 200))
        near = (
            np.array(case.marks, complex).reshape(-1, 1) + far * np.exp(1j * rng.uniform(0, 2 * math.pi, far.shape))
        ).ravel()
        z = np.concatenate([either, moderate, near]).astype(PARTS[kind])
        z.real[z.real == 0], z.imag[z.imag == 0] = info.tiny, info.tiny
        columns.append(z)
    return columns


# arrays --------------------------------------------------------------------------------------------------------------


class Whole(NamedTuple):
    """A function of arrays.

    family: how its error is measured. make(rng): float64 arguments of each of its cases."""

    name: str
    family: str
    path: str | Callable[[Any], Callable]
    make: Callable[[np.random.Generator], dict[str, list[np.ndarray]]]


def _vectors(rng: np.random.Generator) -> dict[str, Arrays]:
    return {
        **{f"{n:,} normal": [rng.normal(size=n)] for n in (10, 1000, 1_000_000)},
        **{f"{n:,} in 0 … 1": [rng.uniform(size=n)] for n in (1000, 1_000_000)},
        "1,000 of many sizes": [rng.normal(size=1000) * 10.0 ** rng.uniform(-12, 12, 1000)],
        "1000 × 300": [rng.normal(size=(1000, 300))],
    }


def _factors(rng: np.random.Generator) -> dict[str, Arrays]:
    return {f"{n:,} in 0.9 … 1.1": [np.exp(rng.uniform(-0.1, 0.1, n))] for n in (10, 1000, 100_000)}


def _rows(rng: np.random.Generator) -> dict[str, Arrays]:
    return {
        "64 × 10": [rng.normal(size=(64, 10))],
        "8 × 1,000, times 10": [10 * rng.normal(size=(8, 1000))],
        "4 × 50,000": [rng.normal(size=(4, 50_000))],
        "64 × 10, plus 500": [500 + rng.normal(size=(64, 10))],
        "8 × 1,000, times 50": [50 * rng.normal(size=(8, 1000))],
    }


def _pairs(rng: np.random.Generator) -> dict[str, Arrays]:
    sizes = ((1, 10_000, 1), (5, 7, 3), (64, 64, 64), (256, 256, 256), (33, 1000, 17), (300, 2000, 1))
    return {f"{m} × {k:,} × {n}": [rng.normal(size=(m, k)), rng.normal(size=(k, n))] for m, k, n in sizes}


def _convolved(rng: np.random.Generator) -> dict[str, Arrays]:
    return {
        "2×8×28×28, 16 of 3×3": [rng.normal(size=(2, 8, 28, 28)), rng.normal(size=(16, 8, 3, 3))],
        "1×64×14×14, 8 of 5×5": [rng.normal(size=(1, 64, 14, 14)), rng.normal(size=(8, 64, 5, 5))],
    }


def _signals(rng: np.random.Generator) -> dict[str, Arrays]:
    return {f"{n:,}": [rng.normal(size=n)] for n in (8, 60, 97, 1024, 1000, 4099, 65_536)}


def _square(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(n, n))


def _matrices(rng: np.random.Generator) -> dict[str, Arrays]:
    hilbert = 1 / (1.0 + np.arange(12)[:, None] + np.arange(12))
    thin = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 40))
    return {
        **{f"{n} × {n}": [_square(n, rng)] for n in (3, 16, 100)},
        "Hilbert's, 12 × 12": [hilbert],
        "of rank 3, 40 × 40": [thin],
        "16 × 16, times 1e15": [1e15 * _square(16, rng)],
        "16 × 16, times 1e-15": [1e-15 * _square(16, rng)],
        "60 × 20": [rng.normal(size=(60, 20))],
    }


def _only_square(make: Callable) -> Callable:
    return lambda rng: {name: args for name, args in make(rng).items() if args[0].shape[-1] == args[0].shape[-2]}


def _symmetric(rng: np.random.Generator) -> dict[str, Arrays]:
    """At most 40 × 40: WebGPU's software adapter takes more than ten minutes for 100 × 100."""
    squares = {name: a for name, [a] in _only_square(_matrices)(rng).items() if len(a) <= 40}
    squares["40 × 40"] = 2 * _square(40, rng)
    return {name: [(a + a.T) / 2] for name, a in squares.items()}


def _definite(rng: np.random.Generator) -> dict[str, Arrays]:
    return {f"{n} × {n}": [(lambda a: a @ a.T + np.eye(n))(_square(n, rng))] for n in (3, 16, 100)}


def _systems(rng: np.random.Generator) -> dict[str, Arrays]:
    return {f"{n} × {n}": [_square(n, rng), rng.normal(size=(n, 3))] for n in (3, 16, 100)}


def _triangles(rng: np.random.Generator) -> dict[str, Arrays]:
    return {name: [np.tril(a) + np.sign(np.diag(np.diag(a))) * 3, b] for name, (a, b) in _systems(rng).items()}


WHOLE = [
    Whole("sum", "sum", lambda jax: lambda x: x.sum(0), _vectors),
    Whole("mean", "sum", lambda jax: lambda x: x.mean(0), _vectors),
    Whole("cumsum", "sum", lambda jax: lambda x: jax.numpy.cumsum(x, 0), _vectors),
    Whole("var", "positive", lambda jax: lambda x: x.var(0), _vectors),
    Whole("norm", "positive", lambda jax: lambda x: jax.numpy.sqrt((x * x).sum(0)), _vectors),
    Whole("prod", "positive", "numpy.prod", _factors),
    Whole("cumprod", "positive", "numpy.cumprod", _factors),
    Whole("softmax", "positive", lambda jax: lambda x: jax.nn.softmax(x, -1), _rows),
    Whole("log_softmax", "values", lambda jax: lambda x: jax.nn.log_softmax(x, -1), _rows),
    Whole("logsumexp", "values", lambda jax: lambda x: jax.nn.logsumexp(x, -1), _rows),
    Whole("dot", "product", "numpy.matmul", _pairs),
    Whole("convolution", "product", lambda jax: lambda x, w: jax.lax.conv(x, w, (1, 1), "VALID"), _convolved),
    Whole("fft", "transform", "numpy.fft.fft", _signals),
    Whole("ifft", "transform", "numpy.fft.ifft", _signals),
    Whole("rfft", "transform", "numpy.fft.rfft", _signals),
    Whole("cholesky", "cholesky", lambda jax: jax.numpy.linalg.cholesky, _definite),
    Whole("lu", "lu", lambda jax: jax.lax.linalg.lu, _only_square(_matrices)),
    Whole("qr", "qr", lambda jax: lambda a: tuple(jax.numpy.linalg.qr(a)), _matrices),
    Whole("eigh", "eigh", lambda jax: lambda a: tuple(jax.numpy.linalg.eigh(a)), _symmetric),
    Whole("svd", "svd", lambda jax: lambda a: tuple(jax.numpy.linalg.svd(a, full_matrices=False)), _matrices),
    Whole("solve", "solve", "numpy.linalg.solve", _systems),
    Whole(
        "triangular_solve",
        "solve",
        lambda jax: lambda a, b: jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=True),
        _triangles,
    ),
]


def arguments(case: Whole, kind: type) -> dict[str, Arrays]:
    """name of a case -> arguments, the same each time; in types of 16 bits those whose sums are numbers of the type."""
    made = case.make(np.random.default_rng([len(case.name), *map(ord, case.name)]))
    if kind in HALF:
        most = float(ml_dtypes.finfo(kind).max)
        made = {name: args for name, args in made.items() if all(abs(x).sum(0).max() < most for x in args)}
    return {name: [np.ascontiguousarray(x, kind) for x in args] for name, args in made.items()}


# running them --------------------------------------------------------------------------------------------------------

Case: TypeAlias = Pointwise | Complex | Whole
CASES: dict[str, Case] = {case.name: case for case in (*POINTWISE, *COMPLEX, *WHOLE)}


def kinds_of(case: Case) -> list[str]:
    """The dtypes in which a case is measured: complex numbers, Fourier transforms and decompositions have no parts of
    16 bits.
    """
    half = case.family in IN_HALVES if isinstance(case, Whole) else isinstance(case, Pointwise)
    without = WITHOUT_JAX.get(case.name, ()) if half else HALVES
    return [kind for kind in KINDS if kind not in without]


def function(name: str, api: Any) -> Callable:
    """The function of a case, from jax or from weft."""
    path = CASES[name].path
    if not isinstance(path, str):
        return path(api)
    for part in path.split(".")[:-1]:
        importlib.import_module(f"{api.__name__}.{'.'.join(path.split('.')[: path.split('.').index(part) + 1])}")
    return functools.reduce(getattr, path.split("."), api)


def evaluate(name: str, api: Any, args: Sequence[np.ndarray]) -> Arrays:
    """The results as host arrays, of the compiled function."""
    for module in ("numpy.linalg", "numpy.fft", "lax.linalg", "nn", "scipy.special"):
        importlib.import_module(f"{api.__name__}.{module}")
    out = api.jit(function(name, api))(*args)
    return [np.asarray(x) for x in (out if isinstance(out, (tuple, list)) else [out])]


# NumPy's files do not know bfloat16: its bits are written, under the names of arrays with `BITS` at their end.
BITS = "/bits of bfloat16"


def save(file: str, arrays: Mapping[str, np.ndarray]) -> None:
    is_new = {key: x.dtype == ml_dtypes.bfloat16 for key, x in arrays.items()}
    np.savez(file, **{key + BITS * is_new[key]: x.view(np.uint16) if is_new[key] else x for key, x in arrays.items()})


def load(file: str) -> dict[str, np.ndarray]:
    with np.load(file) as data:
        return {
            key.removesuffix(BITS): data[key].view(ml_dtypes.bfloat16) if key.endswith(BITS) else data[key]
            for key in data.files
        }


def main(inputs: str, results: str) -> None:
    """Arguments stand under "name/dtype/case/k", results likewise."""
    import jax

    jax.config.update("jax_enable_x64", True)
    found: dict[str, np.ndarray] = {}
    calls: dict[str, list[np.ndarray]] = {}
    for key, x in load(inputs).items():
        calls.setdefault(key.rpartition("/")[0], []).append(x)
    for call, args in calls.items():
        for k, out in enumerate(evaluate(call.split("/")[0], jax, args)):
            found[f"{call}/{k}"] = out
    save(results, found)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*sys.argv[1:3])
