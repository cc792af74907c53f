"""weft.numpy.fft: discrete Fourier transforms."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, Sequence

from ..base import dtypes
from ..symbolic.dims import is_constant_shape
from ..base.errors import type_error
from ..lax.fft import FftType
from ..lax.fft import fft as _lax_fft
from ..primitives import elementwise as el
from ..primitives import linear
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..primitives.shape import iota, slice_
from ..runtime.jit import inner_jit
from ..typing import Array, ArrayLike, Axis, DTypeLike, Placement, Shape
from .padding import pad
from .shapes import roll
from .ufuncs import divide
from .creation import array, placed
from .util import asked_dtype, canonical_axes, float_dtype, inexact_dtype, on_device, operand, static_int

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

_INVERSE = (FftType.IFFT, FftType.IRFFT)


def _fit(x: Value, sizes: Any, axes: Sequence[int]) -> Value:
    """`x` cut or padded with zeros at the end of axes to `sizes`."""
    wanted = dict(zip(axes, sizes))
    full = tuple(wanted.get(d, n) for d, n in enumerate(shape_of(x)))
    cut = tuple(min(n, s) for n, s in zip(shape_of(x), full))
    if cut != shape_of(x):
        x = slice_(x, (0,) * len(cut), cut)
    return x if full == cut else pad(x, [(0, s - n) for s, n in zip(full, cut)])


@inner_jit(name="fft", static_argnums=(1, 2, 3, 4))
def _transform(x: Value, kind: Any, sizes: Any, axes: Any, norm: str | None) -> Value:
    rank = len(shape_of(x))
    if kind != FftType.RFFT and not dtypes.is_complex(dtype_of(x)):
        x = linear.convert(x, dtypes.complex_of(inexact_dtype(dtype_of(x))))
    order = [d for d in range(rank) if d not in axes] + list(axes)
    x = linear.transpose(x, order)
    have = shape_of(x)[rank - len(axes) :]
    if sizes is None:
        sizes = (*have[:-1], 2 * (have[-1] - 1)) if kind == FftType.IRFFT else have
    if any(n < 1 for n in sizes):
        if kind == FftType.RFFT and sizes[-1] < 1:
            raise ValueError(f"FFT lengths must be positive, got {sizes}.")
        last = sizes[-1] // 2 + 1 if kind == FftType.RFFT else max(0, sizes[-1])
        dt = (
            dtypes.real_of(dtype_of(x))
            if kind == FftType.IRFFT
            else dtypes.complex_of(dtype_of(x))
            if kind == FftType.RFFT
            else dtype_of(x)
        )
        # without elements there is nothing to transform
        out = linear.full((*shape_of(x)[: rank - len(axes)], *have[:-1], last), 0, dt)
        return linear.transpose(out, sorted(range(rank), key=order.__getitem__))
    out = _in_parts(x, kind, sizes)
    if norm in (None, "backward"):
        return linear.transpose(out, sorted(range(rank), key=order.__getitem__))
    count = math.prod(sizes)
    if not is_constant_shape(sizes):
        raise type_error(
            f"fft: norm={norm!r} needs lengths that are known, got {sizes}; use norm='backward' and scale the result"
            " yourself."
        )
    factor = {
        None: 1.0,
        "backward": 1.0,
        "ortho": math.sqrt(count) if kind in _INVERSE else 1 / math.sqrt(count),
        "forward": float(count) if kind in _INVERSE else 1 / count,
    }[norm]
    if factor != 1.0:
        out = el.mul(out, scalar_like(out, factor))
    return linear.transpose(out, sorted(range(rank), key=order.__getitem__))


def _in_parts(x: Value, kind: Any, sizes: Any) -> Value:
    """The transform over the last len(sizes) axes, three at a time: the real axis first forwards and last backwards."""
    if len(sizes) <= 3:
        return _lax_fft(x, kind, sizes)
    if kind == FftType.IRFFT:
        return _lax_fft(_over_others(x, FftType.IFFT, sizes[:-3], 3), kind, sizes[-3:])
    inner = FftType.FFT if kind == FftType.RFFT else kind
    return _over_others(_lax_fft(x, kind, sizes[-3:]), inner, sizes[:-3], 3)


def _over_others(x: Value, kind: Any, sizes: Any, last: int) -> Value:
    """The transform over the axes before the `last` ones."""
    rank, n = len(shape_of(x)), len(sizes)
    axes = range(rank - last - n, rank - last)
    order = [d for d in range(rank) if d not in axes] + list(axes)
    out = _in_parts(linear.transpose(x, order), kind, sizes)
    return linear.transpose(out, sorted(range(rank), key=order.__getitem__))


def _run(name: str, kind: Any, a: Value, s: Any, axes: Any, norm: str | None) -> Value:
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f'Invalid norm value {norm}; should be "backward","ortho" or "forward".')
    x = on_device(operand(name, a))
    rank = len(shape_of(x))
    if kind == FftType.RFFT:
        if dtypes.is_complex(dtype_of(x)):
            raise ValueError(f"only real valued inputs supported for rfft, got {dtypes.name(dtype_of(x))}; use fft.")
        if not dtypes.is_float(dtype_of(x)):
            x = linear.convert(x, float_dtype())
    if s is not None:
        s = tuple(operator.index(n) for n in s)
        if any(n < 1 for n in s):
            raise ValueError(f"Shape should be positive, got {s}.")
        if axes is not None and len(axes) != len(s):
            raise ValueError(f"{name}: s and axes must have one length, got {s} and {tuple(axes)}.")
    if axes is None:
        axes = range(rank) if s is None else range(rank - len(s), rank)
    axes = tuple(canonical_axes(tuple(axes), rank))
    if not axes:
        return (
            linear.convert(x, dtypes.complex_of(inexact_dtype(dtype_of(x))))
            if kind in (FftType.FFT, FftType.IFFT)
            else x
        )
    if s is not None:
        x = _fit(x, (*s[:-1], s[-1] // 2 + 1) if kind == FftType.IRFFT else s, axes)
    return _transform(x, kind, s, axes, norm)


def _run1(name: str, kind: Any, a: Value, n: int | None, axis: Any, norm: str | None) -> Value:
    if isinstance(axis, (tuple, list)):
        raise ValueError(
            f"weft.numpy.fft.{name} does not support multiple axes. Please use weft.numpy.fft.{name}n. Got axis ="
            f" {axis!r}."
        )
    return _run(name, kind, a, None if n is None else (n,), (axis,), norm)


def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The Fourier transform along an axis, cut or padded with zeros to `n`.

    norm 'backward' (or None) divides the inverse by n, 'forward' the transform itself, 'ortho' both by sqrt(n).

    Args:
        a: array of numbers, rank at least 1.
        n: int, the size of the transform; None for the size of the axis.
        axis: int, the axis; negative ones count from the end.
        norm: 'backward', 'ortho' or 'forward': which transform is divided; None for 'backward'.

    Returns:
        array of complex numbers, of size n along the axis.

    Raises:
        ValueError: for another norm, an axis out of range, or n < 1.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fft.fft(jnp.array([1., 0.])).real.tolist()
        [1.0, 1.0]
    """
    return _run1("fft", FftType.FFT, a, n, axis, norm)


def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `fft`.

    Args:
        a: array of numbers, rank at least 1.
        n: int, the size of the transform; None for the size of the axis.
        axis: int, the axis; negative ones count from the end.
        norm: 'backward', 'ortho' or 'forward': which transform is divided; None for 'backward'.

    Returns:
        array of complex numbers, of size n along the axis.

    Raises:
        ValueError: for another norm, an axis out of range, or n < 1.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fft.ifft(jnp.array([1., 1.])).real.tolist()
        [1.0, 0.0]
    """
    return _run1("ifft", FftType.IFFT, a, n, axis, norm)


def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The Fourier transform of real values: its first n // 2 + 1 terms, the others being their conjugates.

    Args:
        a: array of real numbers, rank at least 1.
        n: int, the size of the transform; None for the size of the axis.
        axis: int, the axis; negative ones count from the end.
        norm: 'backward', 'ortho' or 'forward': which transform is divided; None for 'backward'.

    Returns:
        array of complex numbers, of size n // 2 + 1 along the axis.

    Raises:
        ValueError: for another norm, an axis out of range, or n < 1.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fft.rfft(jnp.ones(4)).real.tolist()
        [4.0, 0.0, 0.0]
    """
    return _run1("rfft", FftType.RFFT, a, n, axis, norm)


def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `rfft`, `n` real values (2 (m - 1) by default).

    Args:
        a: array of numbers, rank at least 1.
        n: int, the size of the result; None for 2 (m - 1), where the axis has size m.
        axis: int, the axis; negative ones count from the end.
        norm: 'backward', 'ortho' or 'forward': which transform is divided; None for 'backward'.

    Returns:
        array of floats, of size n along the axis.

    Raises:
        ValueError: for another norm, an axis out of range, or n < 1.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fft.irfft(jnp.array([4., 0., 0.])).tolist()
        [1.0, 1.0, 1.0, 1.0]
    """
    return _run1("irfft", FftType.IRFFT, a, n, axis, norm)


_SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The transform of values that are symmetric up to conjugation, given their first half: real.

    Args:
        a: array of numbers, rank at least 1.
        n: int, the size of the result; None for 2 (m - 1), where the axis has size m.
        axis: int, the axis; negative ones count from the end.
        norm: 'backward', 'ortho' or 'forward': which transform is divided; None for 'backward'.

    Returns:
        array of floats, of size n along the axis.

    Raises:
        ValueError: for another norm, an axis out of range, or n < 1.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fft.hfft(jnp.array([1., 0., 0.])).tolist()
        [1.0, 1.0, 1.0, 1.0]
    """
    x = on_device(operand("hfft", a))
    return _run1(
        "hfft", FftType.IRFFT, el.conj(x) if dtypes.is_complex(dtype_of(x)) else x, n, axis, _SWAPPED.get(norm, norm)
    )


def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `hfft`.

    Args:
        a: array of real numbers, rank at least 1.
        n: int, the size of the transform; None for the size of the axis.
        axis: int, the axis; negative ones count from the end.
        norm: 'backward', 'ortho' or 'forward': which transform is divided; None for 'backward'.

    Returns:
        array of complex numbers, of size n // 2 + 1 along the axis.

    Raises:
        ValueError: for another norm, an axis out of range, or n < 1.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fft.ihfft(jnp.ones(4)).real.tolist()
        [1.0, 0.0, 0.0]
    """
    return el.conj(_run1("ihfft", FftType.RFFT, a, n, axis, _SWAPPED.get(norm, norm)))


def _two(name: str, axes: Sequence[int] | None) -> Sequence[int] | None:
    if axes is not None and len(axes) != 2:
        raise ValueError(f"weft.numpy.fft.{name} only supports 2 axes. Got axes = {axes!r}.")
    return axes


def fftn(a: ArrayLike, s: Shape | None = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Array:
    """The Fourier transform over several axes (all by default), each cut or padded to its size in `s`.

    Args:
        a: array of numbers, any shape.
        s: sequence of ints, the size of the transform along each of the axes; None for the sizes of a.
        axes: sequence of ints, the axes; None for all, or the last ones where s is given.
        norm: 'backward', 'ortho' or 'forward': which transform is divided; None for 'backward'.

    Returns:
        array of complex numbers, with the sizes s along the axes.

    Raises:
        ValueError: for an unknown norm, axes out of range, or sizes that do not fit the axes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fft.fftn(jnp.ones((4, 4))).shape
        (4, 4)
    """
    return _run("fftn", FftType.FFT, a, s, axes, norm)


def fft2(a: ArrayLike, s: Shape | None = None, axes: Sequence[int] | None = (-2, -1), norm: str | None = None) -> Array:
    """The Fourier transform over two axes, each cut or padded to its size in `s`.

    Args:
        a: array of numbers, rank at least 2.
        s: sequence of ints, the size of the transform along each of the axes; None for the sizes of a.
        axes: two ints, the axes.
        norm: 'backward', 'ortho' or 'forward': which transform is divided; None for 'backward'.

    Returns:
        array of complex numbers, with the sizes s along the axes.

    Raises:
        ValueError: for an unknown norm, axes out of range, or sizes that do not fit the axes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fft.fft2(jnp.ones((4, 4))).shape
        (4, 4)
    """
    return _run("fft2", FftType.FFT, a, s, _two("fft2", axes), norm)


def ifftn(a: ArrayLike, s: Shape | None = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Array:
    """The inverse Fourier transform over several axes (all by default), each cut or padded to its size in `s`.

    Args:
        a: array of numbers, any shape.
        s: sequence of ints, the size of the transform along each of the axes; None for the sizes of a.
        axes: sequence of ints, the axes; None for all, or the last ones where s is given.
        norm: 'backward', 'ortho' or 'forward': which transform is divided; None for 'backward'.

    Returns:
        array of complex numbers, with the sizes s along the axes.

    Raises:
        ValueError: for an unknown norm, axes out of range, or sizes that do not fit the axes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fft.ifftn(jnp.ones((4, 4))).shape
        (4, 4)
    """
    return _run("ifftn", FftType.IFFT, a, s, axes, norm)


def ifft2(
    a: ArrayLike, s: Shape | None = None, axes: Sequence[int] | None = (-2, -1), norm: str | None = None
) -> Array:
    """The inverse Fourier transform over two axes, each cut or padded to its size in `s`.

    Args:
        a: array of numbers, rank at least 2.
        s: sequence of ints, the size of the transform along each of the axes; None for the sizes of a.
        axes: two ints, the axes.
        norm: 'backward', 'ortho' or 'forward': which transform is divided; None for 'backward'.

    Returns:
        array of complex numbers, with the sizes s along the axes.

    Raises:
        ValueError: for an unknown norm, axes out of range, or sizes that do not fit the axes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fft.ifft2(jnp.ones((4, 4))).shape
        (4, 4)
    """
    return _run("ifft2", FftType.IFFT, a, s, _two("ifft2", axes), norm)


def rfftn(a: ArrayLike, s: Shape | None = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Array:
    """The Fourier transform of real values, halved along the last axis, over several axes (all by default), each cut or
    padded to its size in `s`.

    Args:
        a: array of real numbers, any shape.
        s: sequence of ints, the size of the transform along each of the axes; None for the sizes of a.
        axes: sequence of ints, the axes; None for all, or the last ones where s is given.
        norm: 'backward', 'ortho' or 'forward': which transform is divided; None for 'backward'.

    Returns:
        array of complex numbers: the last of the axes has size n // 2 + 1, the others those of s.

    Raises:
        ValueError: for an unknown norm, axes out of range, or sizes that do not fit the axes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fft.rfftn(jnp.ones((4, 4))).shape
        (4, 3)
    """
    return _run("rfftn", FftType.RFFT, a, s, axes, norm)


def rfft2(
    a: ArrayLike, s: Shape | None = None, axes: Sequence[int] | None = (-2, -1), norm: str | None = None
) -> Array:
    """The Fourier transform of real values, halved along the last axis, over two axes, each cut or padded to its size
    in `s`.

    Args:
        a: array of real numbers, rank at least 2.
        s: sequence of ints, the size of the transform along each of the axes; None for the sizes of a.
        axes: two ints, the axes.
        norm: 'backward', 'ortho' or 'forward': which transform is divided; None for 'backward'.

    Returns:
        array of complex numbers: the last of the axes has size n // 2 + 1, the other that of s.

    Raises:
        ValueError: for an unknown norm, axes out of range, or sizes that do not fit the axes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fft.rfft2(jnp.ones((4, 4))).shape
        (4, 3)
    """
    return _run("rfft2", FftType.RFFT, a, s, _two("rfft2", axes), norm)


def irfftn(a: ArrayLike, s: Shape | None = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Array:
    """The inverse of the transform of real values over several axes (all by default), each cut or padded to its size in
    `s`.

    Args:
        a: array of numbers, any shape.
        s: sequence of ints, the size of the transform along each of the axes; None for the sizes of a.
        axes: sequence of ints, the axes; None for all, or the last ones where s is given.
        norm: 'backward', 'ortho' or 'forward': which transform is divided; None for 'backward'.

    Returns:
        array of floats, with the sizes s along the axes; the last is 2 (m - 1) without s.

    Raises:
        ValueError: for an unknown norm, axes out of range, or sizes that do not fit the axes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fft.irfftn(jnp.ones((4, 4))).shape
        (4, 6)
    """
    return _run("irfftn", FftType.IRFFT, a, s, axes, norm)


def irfft2(
    a: ArrayLike, s: Shape | None = None, axes: Sequence[int] | None = (-2, -1), norm: str | None = None
) -> Array:
    """The inverse of the transform of real values over two axes, each cut or padded to its size in `s`.

    Args:
        a: array of numbers, rank at least 2.
        s: sequence of ints, the size of the transform along each of the axes; None for the sizes of a.
        axes: two ints, the axes.
        norm: 'backward', 'ortho' or 'forward': which transform is divided; None for 'backward'.

    Returns:
        array of floats, with the sizes s along the axes; the last is 2 (m - 1) without s.

    Raises:
        ValueError: for an unknown norm, axes out of range, or sizes that do not fit the axes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fft.irfft2(jnp.ones((4, 4))).shape
        (4, 6)
    """
    return _run("irfft2", FftType.IRFFT, a, s, _two("irfft2", axes), norm)


def fftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Placement = None) -> Array:
    """The frequencies of the terms of `fft` of n samples at distance d: 0, 1, …, -1 over (d n), in `dtype`.

    Args:
        n: int, the number of samples.
        d: number, the distance of samples in units of time.
        dtype: dtype of floats; None for float32.
        device: device or sharding: where the result lies; None for the default device.

    Returns:
        array of floats, shape (n,), in cycles per unit of time.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fft.fftfreq(4).tolist()
        [0.0, 0.25, -0.5, -0.25]
    """
    n, d = _samples("fftfreq", n, d)
    dt = asked_dtype("fftfreq", dtype) or float_dtype()
    k = [(k + n // 2) % n - n // 2 for k in range(math.ceil(n))]
    return placed(linear.convert(divide(array(k, float_dtype()), d * n), dt), device)


def rfftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Placement = None) -> Array:
    """The frequencies of the terms of `rfft` of n samples at distance d. A `dtype` of integers gives floats all the
    same.

    Args:
        n: int, the number of samples.
        d: number, the distance of samples in units of time.
        dtype: dtype of floats; None for float32.
        device: device or sharding: where the result lies; None for the default device.

    Returns:
        array of floats, shape (n // 2 + 1,), in cycles per unit of time.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fft.rfftfreq(4).tolist()
        [0.0, 0.25, 0.5]
    """
    n, d = _samples("rfftfreq", n, d)
    dt = asked_dtype("rfftfreq", dtype) or float_dtype()
    count = n // 2 + 1 if n % 2 == 0 else (n + 1) // 2
    return placed(divide(iota(dt, (max(0, int(count)),), 0), linear.convert(d * n, dt)), device)


def _samples(name: str, n: int, d: Value) -> tuple[Value, Value]:
    """`n`, which must be concrete, and `d`, which may be traced."""
    if isinstance(n, (list, tuple)) or getattr(n, "shape", ()) != ():
        raise ValueError(f"The n argument of weft.numpy.fft.{name} only takes an int. Got n = {n}.")
    if isinstance(d, (list, tuple)):
        raise ValueError(f"The d argument of weft.numpy.fft.{name} only takes a single value. Got d = {d}.")
    operand(name, n), operand(name, d)
    if isinstance(d, complex):
        raise TypeError(f"{name}: d must be real, got {d}.")
    return n if isinstance(n, (int, float)) else static_int("n", n), d


def _shift(name: str, x: Value, axes: Axis, sign: int) -> Value:
    x = on_device(operand(name, x))
    shape = shape_of(x)
    axes = canonical_axes(axes, len(shape))
    return roll(x, tuple(shape[d] // 2 if sign > 0 else -(shape[d] // 2) for d in axes), axes) if axes else x


def fftshift(x: ArrayLike, axes: Axis = None) -> Array:
    """`x` rolled so that the term of frequency zero stands in the middle.

    Args:
        x: array of any dtype, any shape.
        axes: int, tuple of ints, or None for all: the axes.

    Returns:
        array of the dtype and shape of x.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fft.fftshift(jnp.arange(4)).tolist()
        [2, 3, 0, 1]
    """
    return _shift("fftshift", x, axes, 1)


def ifftshift(x: ArrayLike, axes: Axis = None) -> Array:
    """The inverse of `fftshift`.

    Args:
        x: array of any dtype, any shape.
        axes: int, tuple of ints, or None for all: the axes.

    Returns:
        array of the dtype and shape of x.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fft.ifftshift(jnp.arange(5)).tolist()
        [2, 3, 4, 0, 1]
    """
    return _shift("ifftshift", x, axes, -1)


def __dir__() -> list[str]:
    return sorted(__all__)
