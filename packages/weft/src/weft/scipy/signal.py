"""weft.scipy.signal: convolution and spectral analysis."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Sequence

from ..base import dtypes
from .. import numpy as jnp
from ..lax.common import canonical_axes, canonical_axis
from ..lax.convolution import conv_general_dilated
from ..numpy import fft
from ..numpy.util import float_dtype, promote_inexact, in_own_terms
from ..base.source_info import api_boundary
from .window_functions import window as make_window

__all__ = [
    "convolve",
    "convolve2d",
    "correlate",
    "correlate2d",
    "csd",
    "detrend",
    "fftconvolve",
    "istft",
    "stft",
    "welch",
]

_MODES = ("full", "same", "valid")


def _pair(name: str, in1, in2, mode: str) -> tuple:
    """Both inputs as arrays of one floating-point dtype; with mode 'valid' the larger one first."""
    for what, x in (("in1", in1), ("in2", in2)):
        if isinstance(x, (list, tuple)):
            raise AttributeError(f"{name}: {what} must be an array, got a {type(x).__name__}; use weft.numpy.array(…).")
    in1, in2 = (jnp.asarray(x) for x in promote_inexact(name, in1, in2))
    if mode not in _MODES:
        raise ValueError(f"{name}: mode must be 'full', 'same' or 'valid', got {mode!r}.")
    if in1.ndim != in2.ndim:
        raise ValueError(
            f"{name}: in1 and in2 must have the same number of dimensions, got shapes {in1.shape} and {in2.shape}."
        )
    if mode == "valid" and not all(m >= n for m, n in zip(in1.shape, in2.shape)):
        if not all(m <= n for m, n in zip(in1.shape, in2.shape)):
            raise ValueError(
                f"{name}: with mode='valid' one input must be at least as large as the other in every dimension, got"
                f" shapes {in1.shape} and {in2.shape}."
            )
        in1, in2 = in2, in1
    return in1, in2


def _convolve(name: str, in1, in2, mode: str, precision, late: bool = False):
    """`late` chooses the later of two middles of the full result, as SciPy does for correlations of matrices."""
    in1, in2 = _pair(name, in1, in2, mode)
    if not in1.size or not in2.size:
        raise ValueError(f"{name}: zero-size arrays are not supported, got shapes {in1.shape} and {in2.shape}.")
    middle = [(n - 1 + late) // 2 for n in in2.shape]
    padding = {
        "full": [(n - 1, n - 1) for n in in2.shape],
        "same": [(n - 1 - m, m) for n, m in zip(in2.shape, middle)],
        "valid": [(0, 0)] * in1.ndim,
    }[mode]
    return conv_general_dilated(
        in1[None, None], jnp.flip(in2)[None, None], (1,) * in1.ndim, padding, precision=precision
    )[0, 0]


@api_boundary
def fftconvolve(in1, in2, mode: str = "full", axes: Sequence[int] | None = None):
    """The convolution of two arrays of one rank, by Fourier transforms along `axes` (all by default).

    mode: 'full', the middle of it of in1's shape ('same'), or where the inputs overlap wholly ('valid').

    Args:
        in1: array of numbers, any shape.
        in2: array of numbers, of the rank of in1.
        mode: 'full', 'same' or 'valid'.
        axes: int or sequence of ints; None for all.

    Returns:
        array of floats or complex numbers, as large as the mode says.

    Raises:
        ValueError: for an unknown mode, and for shapes that differ outside of `axes`.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import signal
        >>> signal.fftconvolve(jnp.array([1., 2.]), jnp.array([1., 1.])).round(4)
        Array([1., 3., 2.], dtype=float32)
    """
    in1, in2 = jnp.asarray(in1), jnp.asarray(in2)
    if in1.ndim != in2.ndim:
        raise ValueError(
            f"fftconvolve: in1 and in2 must have the same number of dimensions, got shapes {in1.shape} and {in2.shape}."
        )
    axes = canonical_axes(axes, in1.ndim, "axes")
    if any(in1.shape[a] != in2.shape[a] for a in range(in1.ndim) if a not in axes):
        raise ValueError(
            f"fftconvolve: axes that are not convolved must have the same sizes, got shapes {in1.shape} and {in2.shape}"
            f" with axes={axes}."
        )
    wanted = in1.shape
    in1, in2 = _pair("fftconvolve", in1, in2, mode)
    if not axes:
        return in1 * in2
    full = [in1.shape[a] + in2.shape[a] - 1 for a in axes]
    real = not dtypes.is_complex(in1.dtype)
    there, back = (fft.rfftn, fft.irfftn) if real else (fft.fftn, fft.ifftn)
    narrow = in1.dtype if dtypes.bits(in1.dtype) < 32 else None
    a, b = (x if narrow is None else x.astype(jnp.float32) for x in (in1, in2))
    out = back(there(a, full, axes) * there(b, full, axes), full, axes)
    out = out if narrow is None else out.astype(narrow)
    if mode == "full":
        return out
    sizes = (
        wanted
        if mode == "same"
        else [m - n + 1 if i in axes else m for i, (m, n) in enumerate(zip(in1.shape, in2.shape))]
    )
    return out[tuple(slice((n - m) // 2, (n - m) // 2 + m) for n, m in zip(out.shape, sizes))]


def _by_method(name: str, in1, in2, mode, method, precision):
    if method not in ("auto", "direct", "fft"):
        raise ValueError(f"{name}: method must be 'auto', 'direct' or 'fft', got {method!r}.")
    return fftconvolve(in1, in2, mode) if method == "fft" else _convolve(name, in1, in2, mode, precision)


@api_boundary
def convolve(in1, in2, mode: str = "full", method: str = "auto", precision: Any = None):
    """The convolution of two arrays of one rank.

    mode: 'full', the middle of it of in1's shape ('same'), or where the inputs overlap wholly ('valid'). method:
    'direct' (and 'auto') sums products, 'fft' uses `fftconvolve`.

    Args:
        in1: array of numbers, any shape.
        in2: array of numbers, of the rank of in1.
        mode: 'full', 'same' or 'valid'.
        method: 'auto', 'direct' or 'fft'.
        precision: `lax.Precision` or its name: how exact the products are.

    Returns:
        array of the dtype to which both promote, as large as the mode says.

    Raises:
        ValueError: for an unknown mode or method, and for shapes that do not fit.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import signal
        >>> signal.convolve(jnp.array([1., 2.]), jnp.array([1., 1.]))
        Array([1., 3., 2.], dtype=float32)
    """
    return _by_method("convolve", in1, in2, mode, method, precision)


@api_boundary
def correlate(in1, in2, mode: str = "full", method: str = "auto", precision: Any = None):
    """The cross-correlation of two arrays of one rank; arguments as for `convolve`.

    Args:
        in1: array of numbers, any shape.
        in2: array of numbers, of the rank of in1.
        mode: 'full', 'same' or 'valid'.
        method: 'auto', 'direct' or 'fft'.
        precision: `lax.Precision` or its name: how exact the products are.

    Returns:
        array of the dtype to which both promote, as large as the mode says.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import signal
        >>> signal.correlate(jnp.array([1., 2., 3.]), jnp.array([0., 1.]), mode='valid')
        Array([2., 3.], dtype=float32)
    """
    return _by_method("correlate", in1, _mirrored("correlate", in2), mode, method, precision)


def _mirrored(name: str, x):
    if isinstance(x, (list, tuple)):
        raise AttributeError(f"{name}: in2 must be an array, got a {type(x).__name__}; use weft.numpy.array(…).")
    return jnp.flip(jnp.conj(x))


def _plane(name: str, in1, in2, boundary, fillvalue) -> None:
    if boundary != "fill" or fillvalue != 0:
        raise NotImplementedError(
            f"{name}: only boundary='fill' with fillvalue=0 is computed; pad in1 with weft.numpy.pad and use"
            " mode='valid'."
        )
    if jnp.ndim(in1) != 2 or jnp.ndim(in2) != 2:
        raise ValueError(f"{name} takes arrays of rank 2, got shapes {jnp.shape(in1)} and {jnp.shape(in2)}.")


@api_boundary
def convolve2d(in1, in2, mode: str = "full", boundary: str = "fill", fillvalue: float = 0, precision: Any = None):
    """The convolution of two matrices; modes as for `convolve`. Beyond the edges in1 is zero.

    Args:
        in1, in2: array of numbers, of rank 2.
        mode: 'full', 'same' or 'valid'.
        boundary: 'fill': zeros.
        fillvalue: 0.
        precision: `lax.Precision` or its name: how exact the products are.

    Returns:
        array of the dtype to which both promote, as large as the mode says.

    Raises:
        ValueError: for another mode, and other ranks. NotImplementedError: for another boundary or fillvalue.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import signal
        >>> signal.convolve2d(jnp.ones((3, 3)), jnp.ones((2, 2)), mode='valid')
        Array([[4., 4.],
               [4., 4.]], dtype=float32)
    """
    _plane("convolve2d", in1, in2, boundary, fillvalue)
    return _convolve("convolve2d", in1, in2, mode, precision)


@api_boundary
def correlate2d(in1, in2, mode: str = "full", boundary: str = "fill", fillvalue: float = 0, precision: Any = None):
    """The cross-correlation of two matrices; as `convolve2d` with in2 mirrored and conjugated.

    Args:
        in1, in2: array of numbers, of rank 2.
        mode: 'full', 'same' or 'valid'.
        boundary: 'fill': zeros.
        fillvalue: 0.
        precision: `lax.Precision` or its name: how exact the products are.

    Returns:
        array of the dtype to which both promote, as large as the mode says.

    Raises:
        ValueError: for another mode, and other ranks. NotImplementedError: for another boundary or fillvalue.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import signal
        >>> signal.correlate2d(jnp.ones((3, 3)), jnp.ones((2, 2)), mode='valid')
        Array([[4., 4.],
               [4., 4.]], dtype=float32)
    """
    _plane("correlate2d", in1, in2, boundary, fillvalue)
    return _convolve("correlate2d", in1, _mirrored("correlate2d", in2), mode, precision, late=True)


@api_boundary
@in_own_terms
def detrend(data, axis: int = -1, type: str = "linear", bp: int | Sequence[int] = 0, overwrite_data: None = None):
    """`data` less its best fit along `axis`: a line ('linear') between every two of the breakpoints `bp`, or the mean
    ('constant').

    Args:
        data: array of numbers, any shape.
        axis: int, the axis; negative ones count from the end.
        type: 'linear' or 'constant'.
        bp: int or sequence of ints: where pieces begin.
        overwrite_data: bool, without effect.

    Returns:
        array of floats or complex numbers, the shape of data.

    Raises:
        ValueError: for an unknown type, and for breakpoints outside of the data.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import signal
        >>> signal.detrend(jnp.array([0., 3., 0.]))
        Array([-1.,  2., -1.], dtype=float32)
    """
    if overwrite_data is not None:
        raise NotImplementedError("detrend: arrays are immutable, so overwrite_data has no meaning; leave it out.")
    if type not in ("linear", "constant"):
        raise ValueError(f"detrend: type must be 'linear' or 'constant', got {type!r}.")
    data = jnp.asarray(promote_inexact("detrend", jnp.asarray(data))[0])
    if not -data.ndim <= axis < data.ndim:
        raise IndexError(f"detrend: axis {axis} is out of bounds for an array of dimension {data.ndim}.")
    if type == "constant":
        return data - jnp.mean(data, axis, keepdims=True)
    moved = jnp.moveaxis(data, axis, -1)
    n = moved.shape[-1]
    points = sorted({0, n, *(int(b) for b in ((bp,) if isinstance(bp, int) else bp))})
    if points[0] < 0 or points[-1] > n:
        raise ValueError(
            f"detrend: breakpoints bp={bp} must be non-negative and less than the data's length along the axis, {n}."
        )
    return jnp.moveaxis(
        jnp.concatenate([_without_line(moved[..., a:b]) for a, b in zip(points, points[1:])], -1), -1, axis
    )


def _without_line(x):
    n = x.shape[-1]
    x = x - jnp.mean(x, -1, keepdims=True)
    t = (jnp.arange(n) - (n - 1) / 2).astype(dtypes.real_of(x.dtype))
    return x - jnp.sum(x * t, -1, keepdims=True) / max(n * (n * n - 1) / 12, 0.5) * t  # a single number has no slope


# Spectra -------------------------------------------------------------------------------------------------------------


def _window_of(name: str, spec, nperseg, length: int):
    """(window, nperseg) for signals of a length."""
    if isinstance(spec, (str, tuple)):
        nperseg = min(256 if nperseg is None else nperseg, length)
        return jnp.array(make_window(spec, nperseg)), nperseg
    win = jnp.asarray(spec)
    if win.ndim != 1:
        raise ValueError(f"{name}: window must be a name, a tuple or an array of rank 1, got shape {win.shape}.")
    if length < win.shape[0]:
        raise ValueError(f"{name}: window of {win.shape[0]} elements is longer than the signal of {length}.")
    if nperseg not in (None, win.shape[0]):
        raise ValueError(f"{name}: nperseg={nperseg} is different from the length of window, {win.shape[0]}.")
    return win, win.shape[0]


def _positive(name: str, nperseg) -> int | None:
    if nperseg is not None and int(nperseg) < 1:
        raise ValueError(f"{name}: nperseg must be a positive integer, got {nperseg}.")
    return None if nperseg is None else int(nperseg)


def _overlap(name: str, noverlap, nperseg: int) -> int:
    noverlap = nperseg // 2 if noverlap is None else int(noverlap)
    if noverlap >= nperseg:
        raise ValueError(f"{name}: noverlap must be less than nperseg, got {noverlap} and {nperseg}.")
    return noverlap


def _detrender(detrend_: Any, axis: int, rank: int) -> Callable:
    """The argument `detrend` as a function of segments along the last axis."""
    if not detrend_ and not callable(detrend_):
        return lambda x: x
    if not callable(detrend_):
        return partial(detrend, type=detrend_, axis=-1)
    return detrend_ if axis == rank - 1 else lambda x: jnp.moveaxis(detrend_(jnp.moveaxis(x, -1, axis)), axis, -1)


def _pad_last(x, before: int, after: int):
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(before, after)])


def _extended(name: str, x, boundary, n: int):
    """`x` with n more elements at both ends of its last axis."""
    if boundary not in ("even", "odd", "constant", "zeros", None):
        raise ValueError(f"{name}: boundary must be 'even', 'odd', 'constant', 'zeros' or None, got {boundary!r}.")
    if boundary is None or not n:
        return x
    if boundary == "zeros":
        return _pad_last(x, n, n)
    if boundary == "constant":
        return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(n, n)], mode="edge")
    if n > x.shape[-1] - 1:
        raise ValueError(
            f"{name}: boundary={boundary!r} extends the signal by {n} elements, which must be less than its length,"
            f" {x.shape[-1]}."
        )
    left, right = x[..., n:0:-1], x[..., -2 : -n - 2 : -1]
    if boundary == "odd":
        left, right = 2 * x[..., :1] - left, 2 * x[..., -1:] - right
    return jnp.concatenate([left, x, right], -1)


def _spectra(
    name: str,
    x,
    y,
    fs,
    window,
    nperseg,
    noverlap,
    nfft,
    detrend,
    onesided,
    scaling,
    axis,
    mode,
    boundary=None,
    padded=False,
):
    """(frequencies, times, spectra of the segments of x, times the conjugates of y's with mode 'psd'); segments lie
    along the last axis.
    """
    if y is not None and jnp.ndim(y) != jnp.ndim(x):
        raise ValueError(
            f"{name}: x and y must have the same number of dimensions, got {jnp.ndim(x)} and {jnp.ndim(y)}."
        )
    x, *other = [
        jnp.asarray(a) for a in promote_inexact(name, jnp.asarray(x), *([] if y is None else [jnp.asarray(y)]))
    ]
    axis = canonical_axis(axis, x.ndim)
    nperseg = _positive(name, nperseg)
    if any(not a.size for a in (x, *other)):
        if other:
            shape = jnp.broadcast_shapes(*[(*a.shape[:axis], *a.shape[axis + 1 :]) for a in (x, *other)])
            empty = jnp.zeros((*shape[:axis], min(x.shape[axis], other[0].shape[axis]), *shape[axis:]), x.dtype)
        else:
            empty = jnp.zeros(x.shape, x.dtype)
        return empty, empty, empty
    x, *other = (jnp.moveaxis(a, axis, -1) for a in (x, *other))
    if other:
        shape = jnp.broadcast_shapes(x.shape[:-1], other[0].shape[:-1])
        longest = max(x.shape[-1], other[0].shape[-1])
        x, *other = (
            _pad_last(jnp.broadcast_to(a, (*shape, a.shape[-1])), 0, longest - a.shape[-1]) for a in (x, *other)
        )
    win, nperseg = _window_of(name, window, nperseg, x.shape[-1])
    nfft = nperseg if nfft is None else int(nfft)
    if nfft < nperseg:
        raise ValueError(f"{name}: nfft must be greater than or equal to nperseg, got {nfft} and {nperseg}.")
    step = nperseg - _overlap(name, noverlap, nperseg)
    if scaling not in ("density", "spectrum"):
        raise ValueError(f"{name}: scaling must be 'density' or 'spectrum', got {scaling!r}.")
    win = win.astype(x.dtype)
    scale = (
        1 / (fs * jnp.sum(jnp.real(win * jnp.conj(win)))) if scaling == "density" else 1 / jnp.real(jnp.sum(win)) ** 2
    )
    onesided = onesided and not dtypes.is_complex(x.dtype)
    prepare = _detrender(detrend, axis, x.ndim)

    def transform(a):
        a = _extended(name, a, boundary, nperseg // 2)
        if padded:
            a = _pad_last(a, 0, -(a.shape[-1] - nperseg) % step % nperseg)
        count = (a.shape[-1] - nperseg) // step + 1
        places = jnp.arange(count)[:, None] * step + jnp.arange(nperseg)
        return a.shape[-1], (fft.rfft if onesided else fft.fft)(win * prepare(a[..., places]), nfft)

    length, out = transform(x)
    if mode == "psd":
        out = jnp.conj(out) * transform(other[0])[1] if other else jnp.real(out * jnp.conj(out))
    out = out * (scale if mode == "psd" else jnp.sqrt(scale)).astype(dtypes.real_of(out.dtype))
    if onesided and mode == "psd":  # the other half of the frequencies has the same values
        out = out.at[..., 1 : (-1 if nfft % 2 == 0 else None)].multiply(2)
    frequencies = (fft.rfftfreq if onesided else fft.fftfreq)(nfft, 1 / fs)
    times = jnp.arange(nperseg / 2, length - nperseg / 2 + 1, step) / fs
    if boundary is not None:
        times = times - nperseg / 2 / fs
    return frequencies, times, jnp.moveaxis(jnp.moveaxis(out, -1, -2), -2, axis)


@api_boundary
@in_own_terms
def stft(
    x,
    fs=1.0,
    window: Any = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple:
    """(frequencies, times, the Fourier transforms of overlapping segments): the short-time Fourier transform of `x`
    along `axis`.

    Args:
        x: array of numbers, rank at least 1.
        fs: samples in a unit of time.
        window: a name, (name, parameters…) or an array, by which each segment is multiplied.
        nperseg: int, the size of segments; None for 256, or that of the window.
        noverlap: int, how far segments overlap; None for half a segment.
        nfft: int, the size of transforms; None for nperseg.
        detrend: what is taken from each segment: 'constant', 'linear', a function of it, or False.
        return_onesided: for real x, give non-negative frequencies alone.
        boundary: how x goes on at both ends: 'even', 'odd', 'constant', 'zeros' or None.
        padded: append zeros until a whole number of segments fits.
        axis: int, the axis; negative ones count from the end.

    Returns:
        (frequencies, times, transforms): vectors of floats, and an array of complex numbers with the axes of both.

    Raises:
        ValueError: for unknown windows and boundaries, and for sizes that do not fit.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import signal
        >>> signal.stft(jnp.ones(32), nperseg=8)[2].shape
        (5, 9)
    """
    return _spectra(
        "stft",
        x,
        None,
        fs,
        window,
        nperseg,
        noverlap,
        nfft,
        detrend,
        return_onesided,
        "spectrum",
        axis,
        "stft",
        boundary,
        padded,
    )


def _median_bias(n: int) -> float:
    """The expected median of n spectra over their expected mean, for white noise."""
    return 1 + sum(1 / (2 * k + 1) - 1 / (2 * k) for k in range(1, (n - 1) // 2 + 1))


@api_boundary
@in_own_terms
def csd(
    x,
    y,
    fs=1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple:
    """(frequencies, cross power spectral density of x and y), by Welch's method; of x alone where y is None.

    scaling: 'density' (power for each unit of frequency) or 'spectrum' (power). average: over segments, by 'mean' or
        'median'. Others as for `stft`.

    Args:
        x: array of numbers, rank at least 1.
        y: array of numbers that broadcasts with x; None for x.
        fs: number, samples in a unit of time.
        window: name, (name, parameters…), or array of shape (nperseg,): the factor of each segment.
        nperseg: int, the size of segments; None for 256, or that of the window.
        noverlap: int, how far segments overlap; None for half a segment.
        nfft: int, the size of transforms; None for nperseg.
        detrend: 'constant', 'linear', a function, or False: what is taken out of each segment.
        return_onesided: bool: of real data only frequencies that are not negative.
        scaling: 'density' or 'spectrum'.
        axis: int, the axis; negative ones count from the end.
        average: 'mean' or 'median'.

    Returns:
        (frequencies, densities): a vector of floats, and an array of numbers whose axis is that of the frequencies.

    Raises:
        ValueError: for sizes of segments that do not fit.

    Source: Welch, "The use of fast Fourier transform for the estimation of power spectra" (1967).

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import signal
        >>> signal.csd(jnp.arange(32.), jnp.ones(32), nperseg=8)[1].shape
        (5,)
    """
    frequencies, _, out = _spectra(
        "csd", x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, "psd"
    )
    if out.ndim == jnp.ndim(x):  # an empty signal has no segments
        return frequencies, out
    if average not in ("mean", "median"):
        raise ValueError(f"csd: average must be 'median' or 'mean', got {average!r}.")
    if average == "mean":
        return frequencies, jnp.mean(out, -1)
    bias = _median_bias(out.shape[-1])
    middle = lambda part: jnp.median(part, -1) / bias
    return frequencies, (
        middle(jnp.real(out)) + 1j * middle(jnp.imag(out)) if dtypes.is_complex(out.dtype) else middle(out)
    )


@api_boundary
@in_own_terms
def welch(
    x,
    fs=1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple:
    """(frequencies, power spectral density of x) by Welch's method: the mean over overlapping segments. Arguments as
    for `csd`.

    Args:
        x: array of numbers, rank at least 1.
        fs: number, samples in a unit of time.
        window: name, (name, parameters…), or array of shape (nperseg,): the factor of each segment.
        nperseg: int, the size of segments; None for 256, or that of the window.
        noverlap: int, how far segments overlap; None for half a segment.
        nfft: int, the size of transforms; None for nperseg.
        detrend: 'constant', 'linear', a function, or False: what is taken out of each segment.
        return_onesided: bool: of real data only frequencies that are not negative.
        scaling: 'density' or 'spectrum'.
        axis: int, the axis; negative ones count from the end.
        average: 'mean' or 'median'.

    Returns:
        (frequencies, densities): a vector of floats, and an array of floats whose axis is that of the frequencies.

    Raises:
        ValueError: for sizes of segments that do not fit.

    Source: Welch, "The use of fast Fourier transform for the estimation of power spectra" (1967).

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import signal
        >>> f, p = signal.welch(jnp.sin(jnp.arange(64.) * jnp.pi / 4), nperseg=16)
        >>> float(f[p.argmax()])
        0.125
    """
    return csd(x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)


@api_boundary
@in_own_terms
def istft(
    Zxx,
    fs=1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple:
    """(times, signal) from its short-time Fourier transform, as `stft` gives it with the same arguments.

    Args:
        Zxx: the transforms; frequencies lie along `freq_axis`, segments along `time_axis`.
        fs: number, samples in a unit of time.
        window: name, (name, parameters…), or array of shape (nperseg,): the factor of each segment.
        nperseg: int, the size of segments; None for 256, or that of the window.
        noverlap: int, how far segments overlap; None for half a segment.
        nfft: int, the size of transforms; None for nperseg.
        input_onesided: Zxx has non-negative frequencies alone, and the signal is real.
        boundary: the signal was extended at both ends, which is undone.
        time_axis, freq_axis: int, the axes of times and of frequencies.

    Returns:
        (times, signal): a vector of floats, and an array of numbers along whose last axis the times lie.

    Raises:
        ValueError: for sizes that do not fit.

    Source: Griffin and Lim, "Signal estimation from modified short-time Fourier transform" (1984).

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import signal
        >>> signal.istft(signal.stft(jnp.arange(32.), nperseg=8)[2])[1][:3].round(3)
        Array([0., 1., 2.], dtype=float32)
    """
    Z = jnp.asarray(Zxx)
    if Z.ndim < 2:
        raise ValueError(f"istft: Zxx must have at least two dimensions, got shape {Z.shape}.")
    time, frequency = canonical_axis(time_axis, Z.ndim, "time_axis"), canonical_axis(freq_axis, Z.ndim, "freq_axis")
    if time == frequency:
        raise ValueError(f"istft: time_axis and freq_axis must differ, got {time_axis} and {freq_axis}.")
    default = 2 * (Z.shape[frequency] - 1) if input_onesided else Z.shape[frequency]
    nperseg = _positive("istft", nperseg) or default
    if nfft is None:
        nfft = nperseg if input_onesided and nperseg == default + 1 else default
    if nfft < nperseg:
        raise ValueError(f"istft: nfft={nfft} must be at least nperseg={nperseg}.")
    step = nperseg - _overlap("istft", noverlap, nperseg)
    win = jnp.array(make_window(window, nperseg)) if isinstance(window, (str, tuple)) else jnp.asarray(window)
    if win.shape != (nperseg,):
        raise ValueError(f"istft: window must have length {nperseg} (nperseg), got shape {win.shape}.")
    Z = jnp.moveaxis(Z, (time, frequency), (-2, -1))
    parts = (fft.irfft if input_onesided else fft.ifft)(Z, nfft)[..., :nperseg]
    win = win.astype(dtypes.real_of(parts.dtype))
    count = Z.shape[-2]
    places = jnp.arange(count)[:, None] * step + jnp.arange(nperseg)
    total = (
        jnp.zeros((*parts.shape[:-2], nperseg + (count - 1) * step), parts.dtype)
        .at[..., places]
        .add(parts * win * jnp.sum(win))
    )
    norm = jnp.zeros(total.shape[-1], win.dtype).at[places].add(jnp.broadcast_to(win * win, places.shape))
    if boundary:
        inner = slice(nperseg // 2, -(nperseg // 2) or None)
        total, norm = total[..., inner], norm[inner]
    out = total / jnp.where(norm > 1e-10, norm, 1)
    if out.ndim > 1 and time != Z.ndim - 1:
        out = jnp.moveaxis(out, -1, time - (frequency < time))
    return jnp.arange(out.shape[0], dtype=float_dtype()) / fs, out


def __dir__() -> list[str]:
    return sorted(__all__)
