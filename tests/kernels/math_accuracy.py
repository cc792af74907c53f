"""The error of every elementary function of the Wasm backend, in units in the last place, against mpmath. `make
test-math`

    python tests/kernels/math_accuracy.py [sin pow …] [--points 1000000] [--dtype f32 --dtype f64] [--seed 0]

Half of the points have random bits, so that every magnitude comes up; the others lie where the function does something,
of lgamma and digamma many next to negative integers. An ulp is that of the exact result rounded to the dtype; results
below the smallest normal number may be zero. Exits with 1 where an error is above 4 ulp, or an infinity is not the
exact result's.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import mpmath
import numpy as np
from kernel_harness import NUMPY
from mpmath import mp

LIMIT = 4.0
BITS = {"f32": np.uint32, "f64": np.uint64}
CHUNK = 10_000


def _logistic(x):
    return 1 / (1 + mp.exp(-x))


def _erf_inv(x):
    return mp.erfinv(x)


def _lgamma(x):
    return mp.log(abs(mp.gamma(x))) if x < 0.5 else mp.loggamma(x)


# name: (exact function, where its domain begins and ends, where it does something)
ONE: dict[str, tuple[Callable, tuple[float, float], tuple[float, float]]] = {
    "exp": (mp.exp, (-800, 800), (-20, 20)),
    "exp2": (lambda x: mp.mpf(2) ** x, (-1100, 1100), (-20, 20)),
    "expm1": (mp.expm1, (-800, 800), (-3, 3)),
    "log": (mp.log, (0, math.inf), (0, 4)),
    "log2": (lambda x: mp.log(x) / mp.ln2, (0, math.inf), (0, 4)),
    "log1p": (mp.log1p, (-1, math.inf), (-1, 3)),
    "sin": (mp.sin, (-math.inf, math.inf), (-10, 10)),
    "cos": (mp.cos, (-math.inf, math.inf), (-10, 10)),
    "tan": (mp.tan, (-math.inf, math.inf), (-10, 10)),
    "sinh": (mp.sinh, (-800, 800), (-3, 3)),
    "cosh": (mp.cosh, (-800, 800), (-3, 3)),
    "tanh": (mp.tanh, (-math.inf, math.inf), (-3, 3)),
    "asin": (mp.asin, (-1, 1), (-1, 1)),
    "acos": (mp.acos, (-1, 1), (-1, 1)),
    "atan": (mp.atan, (-math.inf, math.inf), (-3, 3)),
    "asinh": (mp.asinh, (-math.inf, math.inf), (-3, 3)),
    "acosh": (mp.acosh, (1, math.inf), (1, 4)),
    "atanh": (mp.atanh, (-1, 1), (-1, 1)),
    "rsqrt": (lambda x: 1 / mp.sqrt(x), (0, math.inf), (0, 4)),
    "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), (-math.inf, math.inf), (-8, 8)),
    "erf": (mp.erf, (-math.inf, math.inf), (-4, 4)),
    "erfc": (mp.erfc, (-math.inf, 30), (-3, 10)),
    "erf_inv": (_erf_inv, (-1, 1), (-1, 1)),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), (-26, math.inf), (-3, 10)),
    "logistic": (_logistic, (-800, 800), (-20, 20)),
    "lgamma": (_lgamma, (-1e3, math.inf), (-5, 10)),
    "digamma": (mp.digamma, (-1e3, math.inf), (-5, 10)),
}
TWO: dict[str, Callable] = {"pow": lambda x, y: x**y, "atan2": mp.atan2}


def points(name: str, dtype: str, count: int, seed: int) -> list[np.ndarray]:
    """The arguments: one array, or two."""
    rng, kind = np.random.default_rng([seed, sum(map(ord, name))]), NUMPY[dtype]
    anything = lambda n: rng.integers(0, 1 << (8 * np.dtype(kind).itemsize), n, dtype=BITS[dtype]).view(kind)
    half = count // 2
    if name == "pow":
        base = np.concatenate([np.abs(anything(half)), rng.uniform(0, 4, count - half).astype(kind)])
        with np.errstate(all="ignore"):
            top = np.log(np.finfo(kind).max) / np.abs(np.log(base.astype(np.float64)))
        power = np.where(
            rng.random(count) < 0.5, rng.uniform(-1.02, 1.02, count) * top, rng.uniform(-8, 8, count)
        ).astype(kind)
        good = np.isfinite(base) & np.isfinite(power)
        return [base[good], power[good]]
    if name == "atan2":
        pairs = [np.concatenate([anything(half), rng.normal(size=count - half).astype(kind)]) for _ in range(2)]
        good = np.isfinite(pairs[0]) & np.isfinite(pairs[1])
        return [p[good] for p in pairs]
    _, (lo, hi), (a, b) = ONE[name]
    places = rng.uniform(a, b, count - half)
    if name.endswith("gamma"):
        poles = places[: len(places) // 2]
        poles[:] = -rng.integers(0, 40, len(poles)) + rng.choice([-1, 1], len(poles)) * 2.0 ** rng.uniform(
            -52, 0, len(poles)
        )
    x = np.concatenate([anything(4 * half), places.astype(kind)])
    with np.errstate(invalid="ignore"):
        x = x[np.isfinite(x) & (x >= lo) & (x <= hi)]
    return [x[-count:]]


def worst(name: str, dtype: str, args: list[np.ndarray], got: np.ndarray) -> tuple[float, tuple, float]:
    """(largest error in ulp, the arguments, the result there); infinite where a special value is wrong."""
    exact = TWO.get(name) or ONE[name][0]
    info, kind = np.finfo(NUMPY[dtype]), NUMPY[dtype]
    top, tiny, digits = mp.mpf(float(info.max)), float(info.tiny), info.nmant + 1
    result = (0.0, (), 0.0)
    mp.prec = 2 * digits + 20
    for k, value in enumerate(got.tolist()):
        at = tuple(float(a[k]) for a in args)
        try:
            want = exact(*map(mp.mpf, at))
        except (ZeroDivisionError, ValueError, mpmath.libmp.ComplexResult):
            continue  # a pole
        if isinstance(want, mp.mpc) or mp.isnan(want):
            continue
        if abs(want) > top * (1 + mp.mpf(2) ** -(digits + 1)):
            error = 0.0 if value == math.copysign(math.inf, want) else math.inf
        elif abs(want) < tiny and (value == 0 or abs(value) < 2 * tiny):
            # below the normal numbers 0 will do, as on XLA
            error = float(abs(value - want) / mp.mpf(tiny)) * 2 if abs(value) > tiny else 0.0
        elif not math.isfinite(value):
            error = math.inf
        else:
            unit = (
                mp.mpf(float(np.spacing(kind(abs(float(want))))))
                if abs(want) < top
                else mp.mpf(float(info.max)) * mp.mpf(2) ** -digits
            )
            error = float(abs(mp.mpf(value) - want) / unit)
        if error > result[0]:
            result = (error, at, value)
    return result


def measure(name: str, dtype: str, count: int, seed: int, pool: ProcessPoolExecutor) -> tuple[int, float, tuple, float]:
    """(points, largest error in ulp, where, the result there)."""
    from test_scalar_math import evaluate

    args = points(name, dtype, count, seed)
    got = evaluate(name, *args)
    jobs = [
        pool.submit(worst, name, dtype, [a[k : k + CHUNK] for a in args], got[k : k + CHUNK])
        for k in range(0, len(got), CHUNK)
    ]
    error, at, value = max((job.result() for job in jobs), key=lambda found: found[0])
    return len(got), error, at, value


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=[*ONE, *TWO])
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--dtype", action="append", choices=["f32", "f64"])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    bad = 0
    with ProcessPoolExecutor() as pool:
        for name in options.names:
            for dtype in options.dtype or ["f32", "f64"]:
                start = time.perf_counter()
                count, error, at, value = measure(name, dtype, options.points, options.seed, pool)
                bad += error > LIMIT
                print(
                    f"{name:9} {dtype}  {count:8} points  {error:8.3f} ulp at {', '.join(map(repr, at))} -> {value!r}  "
                    f"({time.perf_counter() - start:.0f} s){'  TOO MUCH' if error > LIMIT else ''}",
                    flush=True,
                )
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
