"""Windows of signal processing, as lists of numbers of the host: scipy.signal's names, their periodic form.

F. Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform" (1978); A. Nuttall, "Some
windows with very good sidelobe behavior" (1981).
"""

from __future__ import annotations

import math
from typing import Any

_PI = math.pi


def _cosines(*weights):
    """The sum of (-1)^k a_k cos(2 pi k t) for t in [0, 1]."""
    return lambda t, n: sum((-1) ** k * a * math.cos(2 * _PI * k * t) for k, a in enumerate(weights))


def _parzen(t, n):
    x = abs(t - 0.5) * (n - 1) / n * 2
    return 2 * (1 - x) ** 3 if x > 0.5 else 1 - 6 * x**2 * (1 - x)


def _bohman(t, n):
    x = abs(2 * t - 1)
    return (1 - x) * math.cos(_PI * x) + math.sin(_PI * x) / _PI if 0 < t < 1 else 0.0


def _triangle(t, n):
    edge = n + 1 if n % 2 else n
    return 1 - abs(2 * t - 1) * (n - 1) / edge


def _tukey(t, n, alpha=0.5):
    if alpha <= 0:
        return 1.0
    edge = min(t, 1 - t) / (min(alpha, 1) / 2)
    return 0.5 * (1 - math.cos(_PI * edge)) if edge < 1 else 1.0


def _bessel(x):
    """The modified Bessel function of the first kind of order 0, by its series."""
    term = total = 1.0
    k = 0
    while term > 1e-18 * total:
        k += 1
        term *= (x / 2 / k) ** 2
        total += term
    return total


def _exponential(t, n, center=None, tau=1.0):
    return math.exp(-abs(t * (n - 1) - ((n - 1) / 2 if center is None else center)) / tau)


# name: a function of the place t in [0, 1], the number of places, and parameters
_SHAPES = {
    "boxcar": lambda t, n: 1.0,
    "triang": _triangle,
    "parzen": _parzen,
    "bohman": _bohman,
    "blackman": _cosines(0.42, 0.5, 0.08),
    "nuttall": _cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "blackmanharris": _cosines(0.35875, 0.48829, 0.14128, 0.01168),
    "flattop": _cosines(0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368),
    "bartlett": lambda t, n: 1 - abs(2 * t - 1),
    "barthann": lambda t, n: 0.62 - 0.48 * abs(t - 0.5) + 0.38 * math.cos(2 * _PI * (t - 0.5)),
    "hamming": _cosines(0.54, 0.46),
    "hann": _cosines(0.5, 0.5),
    "cosine": lambda t, n: math.sin(_PI * (t * (n - 1) + 0.5) / n),
    "lanczos": lambda t, n: math.sin(_PI * (2 * t - 1)) / (_PI * (2 * t - 1)) if t != 0.5 else 1.0,
    "exponential": _exponential,
    "tukey": _tukey,
    "kaiser": lambda t, n, beta: _bessel(beta * math.sqrt(max(0.0, 1 - (2 * t - 1) ** 2))) / _bessel(beta),
    "gaussian": lambda t, n, std: math.exp(-0.5 * ((t - 0.5) * (n - 1) / std) ** 2),
    "general_gaussian": lambda t, n, p, sig: math.exp(-0.5 * abs((t - 0.5) * (n - 1) / sig) ** (2 * p)),
    "general_cosine": lambda t, n, weights: _cosines(*weights)(t, n),
    "general_hamming": lambda t, n, alpha: _cosines(alpha, 1 - alpha)(t, n),
}
_ALIASES = {
    "box": "boxcar",
    "ones": "boxcar",
    "rect": "boxcar",
    "rectangular": "boxcar",
    "triangle": "triang",
    "tri": "triang",
    "par": "parzen",
    "bman": "bohman",
    "bmn": "bohman",
    "black": "blackman",
    "blk": "blackman",
    "nut": "nuttall",
    "blackharr": "blackmanharris",
    "bkh": "blackmanharris",
    "flat": "flattop",
    "flt": "flattop",
    "bart": "bartlett",
    "brt": "bartlett",
    "brthan": "barthann",
    "bth": "barthann",
    "hamm": "hamming",
    "ham": "hamming",
    "han": "hann",
    "halfcosine": "cosine",
    "sinc": "lanczos",
    "poisson": "exponential",
    "tuk": "tukey",
    "ksr": "kaiser",
    "gauss": "gaussian",
    "gss": "gaussian",
    "general gaussian": "general_gaussian",
    "general gauss": "general_gaussian",
    "general_gauss": "general_gaussian",
    "ggs": "general_gaussian",
    "general cosine": "general_cosine",
    "general hamming": "general_hamming",
}
_NEED = ("kaiser", "gaussian", "general_gaussian", "general_cosine", "general_hamming")


def window(spec: Any, n: int) -> list[float]:
    """The periodic window of n places: one period of the symmetric window of n + 1. `spec` is a name, (name,
    parameters…), or the beta of a Kaiser window.
    """
    if isinstance(spec, (int, float)):
        spec = ("kaiser", float(spec))
    name, *params = (spec,) if isinstance(spec, str) else spec
    known = _ALIASES.get(name, name)
    if known not in _SHAPES:
        raise ValueError(f"window {name!r} is not one of {', '.join(sorted(_SHAPES))}; give another as an array.")
    if known in _NEED and not params:
        raise ValueError(f"window {name!r} needs parameters: give a tuple ({name!r}, …).")
    if n <= 1:
        return [1.0] * n
    return [_SHAPES[known](i / n, n + 1, *params) for i in range(n)]
