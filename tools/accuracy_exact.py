"""The reference values of docs/accuracy.md: the functions of accuracy_cases.py in wider types, which find the worst
points, and in mpmath, which gives the errors there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

import mpmath
import numpy as np
import scipy.special
from accuracy_cases import Arrays, Complex, Pointwise
from mpmath import mp
from mpmath.libmp import ComplexResult, NoConvergence

PRECISION = 220  # bits that mpmath computes with

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


def _reduced(x):
    """To six digits, of which the first is not stored."""
    part, exponent = np.frexp(x)
    return np.ldexp(np.rint(part * 2**6) / 2**6, exponent)


# In a type with more digits than the arguments': long double for float64, float64 for the others.
WIDE: dict[str, Callable[..., np.ndarray]] = {
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": lambda x: np.trunc(x + np.copysign(0.5, x)),
    "reduce_precision": _reduced,
    "max": np.maximum,
    "min": np.minimum,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "reciprocal": np.reciprocal,
    "rem": np.fmod,
    "mod": np.mod,
    "square": np.square,
    "integer_pow 3": lambda x: x * x * x,
    "integer_pow -5": lambda x: 1 / (x * x * x * x * x),
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "cbrt": np.cbrt,
    "hypot": np.hypot,
    "pow": np.power,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "log2": np.log2,
    "log10": np.log10,
    "logaddexp": _logaddexp,
    "logaddexp2": _logaddexp2,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinc": _sinc,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": _softplus,
    "log_sigmoid": lambda x: -_softplus(-x),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "mish": lambda x: x * np.tanh(_softplus(x)),
    "logit": lambda x: np.where(x < 0.25, np.log(x) - np.log1p(-x), np.log1p((2 * x - 1) / (1 - x))),
    "xlogy": lambda x, y: np.where(x == 0, 0, x * np.log(y)),
    "entr": lambda x: np.where(x == 0, 0, -x * np.log(x)),
}
# In float64, for float32 and the types of 16 bits.
DOUBLE: dict[str, Callable[..., np.ndarray]] = {
    "erf": scipy.special.erf,
    "erfc": scipy.special.erfc,
    "erf_inv": scipy.special.erfinv,
    "erfcx": scipy.special.erfcx,
    "lgamma": scipy.special.gammaln,
    "digamma": scipy.special.psi,
    "igamma": scipy.special.gammainc,
    "igammac": scipy.special.gammaincc,
    "zeta": scipy.special.zeta,
    "polygamma 1": lambda x: scipy.special.polygamma(1, x),
    "betainc": scipy.special.betainc,
    "bessel_i0e": scipy.special.i0e,
    "bessel_i1e": scipy.special.i1e,
    "gelu": lambda x: x * scipy.special.ndtr(x),
    "ndtr": scipy.special.ndtr,
    "log_ndtr": scipy.special.log_ndtr,
    "ndtri": scipy.special.ndtri,
    "spence": scipy.special.spence,
    "betaln": scipy.special.betaln,
    "exp1": scipy.special.exp1,
    "expi": scipy.special.expi,
}


def _ndtr(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _lgamma(x):
    return mp.log(abs(mp.gamma(x))) if x < 0.5 else mp.loggamma(x)


def _log1pexp(x):
    return mp.log1p(mp.exp(x)) if x < 500 else x


def _igamma(a, x):
    with mp.workprec(2000):  # enough for one minus it
        return x**a * mp.exp(-x) * mp.hyp1f1(1, a + 1, x) / mp.gamma(a + 1)


def _zeta(s, q):
    """The sum of Euler and Maclaurin after as many terms as it needs. mpmath's own is only absolutely exact, and the
    result may be tiny."""
    count = max(0, int(s + 40 - q))
    a = q + count
    rest = a ** (1 - s) / (s - 1) + a**-s / 2
    weights = [mp.bernoulli(n) / mp.factorial(n) for n in range(2, 60, 2)]
    corrections = [w * mp.rf(s, 2 * k - 1) * a ** (1 - s - 2 * k) for k, w in enumerate(weights, 1)]
    return mp.fsum([*[(q + n) ** -s for n in range(count)], rest, *corrections])


def _igamma_grad_a(a, x):
    with mp.workprec(2000):
        h = mp.mpf(2) ** -400
        return (_igamma(a + h, x) - _igamma(a - h, x)) / (2 * h)


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
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "reciprocal": lambda x: 1 / x,
    "square": lambda x: x * x,
    "integer_pow 3": lambda x: x**3,
    "integer_pow -5": lambda x: x**-5,
    "sqrt": mp.sqrt,
    "rsqrt": lambda x: 1 / mp.sqrt(x),
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    "hypot": mp.hypot,
    "pow": lambda x, y: x**y,
    "exp": mp.exp,
    "exp2": lambda x: mp.mpf(2) ** x,
    "expm1": mp.expm1,
    "log": mp.log,
    "log1p": mp.log1p,
    "log2": lambda x: mp.log(x, 2),
    "log10": mp.log10,
    "logaddexp": lambda x, y: max(x, y) + _log1pexp(-abs(x - y)),
    "logaddexp2": lambda x, y: max(x, y) + (mp.log1p(mp.mpf(2) ** -abs(x - y)) / mp.ln2 if abs(x - y) < 2000 else 0),
    "sin": mp.sin,
    "cos": mp.cos,
    "tan": mp.tan,
    "sinc": lambda x: mp.sinpi(x) / (mp.pi * x),
    "asin": mp.asin,
    "acos": mp.acos,
    "atan": mp.atan,
    "atan2": mp.atan2,
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "tanh": lambda x: mp.tanh(x) if abs(x) < 1e4 else mp.sign(x),
    "asinh": mp.asinh,
    "acosh": mp.acosh,
    "atanh": mp.atanh,
    "logistic": lambda x: 1 / (1 + mp.exp(-x)),
    "softplus": lambda x: _log1pexp(x),
    "log_sigmoid": lambda x: -_log1pexp(-x),
    "silu": lambda x: x / (1 + mp.exp(-x)),
    "elu": lambda x: x if x > 0 else mp.expm1(x),
    "mish": lambda x: x * mp.tanh(_log1pexp(x)) if x < 500 else x,
    "logit": lambda x: mp.log(x / (1 - x)),
    "xlogy": lambda x, y: x * mp.log(y),
    "entr": lambda x: -x * mp.log(x),
    "erf": mp.erf,
    "erfc": lambda x: mp.erfc(x) if x < 1e3 else mp.mpf(0),
    "erf_inv": mp.erfinv,
    "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
    "lgamma": _lgamma,
    "digamma": mp.digamma,
    "igamma": _igamma,
    "igammac": lambda a, x: 1 - _igamma(a, x),
    "igamma_grad_a": _igamma_grad_a,
    "zeta": _zeta,
    "polygamma 1": lambda x: _zeta(mp.mpf(2), x),
    "betainc": lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
    "bessel_i0e": lambda x: mp.besseli(0, x) * mp.exp(-abs(x)),
    "bessel_i1e": lambda x: mp.besseli(1, x) * mp.exp(-abs(x)),
    "gelu": lambda x: x * _ndtr(x) if x < 1e3 else x,
    "ndtr": lambda x: _ndtr(x) if x > -1e3 else mp.mpf(0),
    "log_ndtr": lambda x: mp.log(_ndtr(x)) if x < 0 else mp.log1p(-_ndtr(-x)),
    "ndtri": _ndtri,
    "exp1": mp.e1,
    "expi": mp.ei,
    "spence": lambda x: mp.polylog(2, 1 - x).real,
    "betaln": lambda a, b: mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b),
}


# Of complex numbers.
EXACT_COMPLEX: dict[str, Callable] = {
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "pow": lambda x, y: x**y,
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "abs": abs,
    "sign": lambda x: x / abs(x),
    "integer_pow 3": lambda x: x**3,
    "exp2": lambda x: mp.mpf(2) ** x,
    "logistic": lambda x: 1 / (1 + mp.exp(-x)),
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / mp.sqrt(x),
    "log1p": lambda x: mp.log(1 + x),
    "expm1": lambda x: mp.exp(x) - 1,
    **{name: getattr(mp, name) for name in "sqrt log exp sin cos tan sinh cosh tanh".split()},
    **{name: getattr(mp, name) for name in "asin acos atan asinh acosh atanh".split()},
}


def exact_complex(name: str, rows: Sequence[tuple[complex, ...]], wide: type) -> np.ndarray:
    """The values, rounded to the wider type."""
    mp.prec = PRECISION
    found = np.empty(len(rows), np.result_type(wide, np.complex64))
    for k, at in enumerate(rows):
        value = mp.mpc(EXACT_COMPLEX[name](*[mp.mpc(z) for z in at]))
        found.real[k], found.imag[k] = rounded(value.real, wide), rounded(value.imag, wide)
    return found


UNKNOWN = (ZeroDivisionError, ValueError, ComplexResult, NoConvergence, OverflowError, RecursionError)


def exact(name: str, rows: Sequence[tuple[float, ...]]) -> list[mpmath.mpf | None]:
    """The value at each of the arguments; None at poles, where it is complex, and where mpmath gives up."""
    mp.prec = PRECISION
    found = []
    for at in rows:
        try:
            value = EXACT[name](*map(mp.mpf, at))
        except UNKNOWN:
            value = None
        found.append(None if value is None or isinstance(value, mp.mpc) or not mp.isfinite(value) else +value)
    return found


def rounded(value: mpmath.mpf, wide: type) -> np.floating:
    """A value in the wider type; an infinity or zero if it is too large or too small for that."""
    limit = np.finfo(wide)
    size = mp.log(abs(value), 2) if value else -mp.inf
    if size >= limit.maxexp or size < limit.minexp:
        return wide(0 if size < 0 else math.copysign(math.inf, value))
    return wide(mpmath.nstr(value, 25))


def reference(case: Pointwise | Complex, args: Arrays, pool: Executor) -> np.ndarray:
    """The values in a wider type, nearly exact; for complex functions those of mpmath."""
    wide = np.longdouble if args[0].real.dtype == np.float64 else np.float64
    rows = list(zip(*[x.tolist() for x in args]))
    if isinstance(case, Complex):
        name = case.name.removeprefix("complex ")
        parts = [pool.submit(exact_complex, name, rows[k : k + 400], wide) for k in range(0, len(rows), 400)]
        return np.concatenate([part.result() for part in parts])
    if case.name == "nextafter":
        return np.nextafter(*args).astype(wide)
    table = WIDE if case.name in WIDE else DOUBLE if wide is np.float64 else {}
    if case.name in table:
        with np.errstate(all="ignore"):
            return np.asarray(table[case.name](*[x.astype(wide) for x in args]), wide)
    jobs = [pool.submit(exact, case.name, rows[k : k + 200]) for k in range(0, len(rows), 200)]
    values = [v for job in jobs for v in job.result()]
    return np.ma.masked_invalid(np.array([np.nan if v is None else rounded(v, wide) for v in values], wide))


# functions of arrays


def _prefix(x: np.ndarray) -> np.ndarray:
    """Running sums without noticeable rounding: a coarse part, whose sums are exact, and a fine one."""
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
    "sum": lambda x: x.sum(0),
    "mean": lambda x: x.mean(0),
    "cumsum": _prefix,
    "var": lambda x: x.var(0),
    "norm": lambda x: np.sqrt((x * x).sum(0)),
    "prod": np.prod,
    "cumprod": np.cumprod,
    "softmax": _softmax,
    "log_softmax": lambda x: x - _logsumexp(x)[..., None],
    "logsumexp": _logsumexp,
    "dot": np.matmul,
    "convolution": _conv,
    "fft": np.fft.fft,
    "ifft": np.fft.ifft,
    "rfft": np.fft.rfft,
}
