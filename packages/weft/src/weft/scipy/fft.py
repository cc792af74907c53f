"""weft.scipy.fft: discrete cosine transforms."""

from __future__ import annotations

import math
import operator
from typing import Sequence

from ..base import dtypes
from ..lax.elementwise import complex as lax_complex
from .. import numpy as jnp
from ..numpy.util import canonical_axes, on_device, promote_inexact

__all__ = ["dct", "dctn", "idct", "idctn"]


def _wanted(name: str, x, type, norm):
    if type != 2:
        raise NotImplementedError(f"{name}: only the transform of type 2 is computed, got type={type!r}.")
    if norm not in (None, "backward", "ortho"):
        raise ValueError(f"{name}: norm must be None, 'backward' or 'ortho', got {norm!r}.")
    x = on_device(promote_inexact(name, x)[0])
    if not dtypes.is_complex(x.dtype):
        x = x.astype(x.dtype if dtypes.bits(x.dtype) >= 32 else jnp.float32)
    return x


def _fit(name: str, x, axis: int, n):
    n = x.shape[axis] if n is None else operator.index(n)
    if n < 1:
        raise TypeError(f"{name}: the length of a transform must be at least 1, got {n}.")
    x = jnp.moveaxis(x, axis, -1)
    have = x.shape[-1]
    return x[..., :n] if n <= have else jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, n - have)])


def _turns(n: int, dt):
    """exp(-i pi k / 2n)."""
    return jnp.array(
        [complex(math.cos(math.pi * k / (2 * n)), -math.sin(math.pi * k / (2 * n))) for k in range(n)],
        dtypes.complex_of(dt),
    )


def _rows(factors, x):
    """Factors of the last axis with the rank of x: programs may forbid to broadcast ranks."""
    return factors.reshape((1,) * (x.ndim - 1) + factors.shape)


def _by_parts(f, x, *rest):
    """A real linear transform of complex numbers."""
    return lax_complex(f(x.real, *rest), f(x.imag, *rest)) if dtypes.is_complex(x.dtype) else f(x, *rest)


# J. Makhoul, "A fast cosine transform in one and two dimensions" (1980): a Fourier transform of the even elements, then
# the odd ones backwards.
def _forward(x):
    n = x.shape[-1]
    order = jnp.array([*range(0, n, 2), *reversed(range(1, n, 2))])
    return 2 * (jnp.fft.fft(x[..., order]) * _rows(_turns(n, x.dtype), x)).real


def _backward(y):
    n = y.shape[-1]
    mirrored = jnp.concatenate([jnp.zeros_like(y[..., :1]), y[..., :0:-1]], -1)
    v = jnp.fft.ifft(lax_complex(y, -mirrored) * _rows(jnp.conj(_turns(n, y.dtype)), y)).real / 2
    place = [0] * n
    for k, i in enumerate([*range(0, n, 2), *reversed(range(1, n, 2))]):
        place[i] = k
    return v[..., jnp.array(place)]


def _scale(n: int, norm: str | None, dt):
    return jnp.array([math.sqrt((1 if k else 0.5) / (2 * n)) for k in range(n)] if norm == "ortho" else [1.0], dt)


def dct(x, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None):
    """The cosine transform of type 2 along an axis, 2 sum(x[j] cos(pi k (2 j + 1) / (2 n))), of x cut or padded with
    zeros to n.

    norm 'ortho' makes it orthogonal. Real x becomes float32 at least.

    Args:
        x: array of real numbers, rank at least 1.
        type: int, 2.
        n: int, the size of the transform; None for the size of the axis.
        axis: int, the axis; negative ones count from the end.
        norm: 'ortho'; None or 'backward' for no factor.

    Returns:
        array of floats, of size n along the axis.

    Raises:
        NotImplementedError: for another type. ValueError: for another norm, or an axis out of range. TypeError: for n <
            1.

    Source: Makhoul, "A fast cosine transform in one and two dimensions" (1980).

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import fft
        >>> fft.dct(jnp.ones(2)).tolist()
        [4.0, 0.0]
    """
    x = _wanted("dct", x, type, norm)
    (axis,) = canonical_axes(axis, x.ndim)
    return _along("dct", x, n, axis, norm, False)


def idct(x, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None):
    """The inverse of `dct`, with the same arguments.

    Args:
        x: array of real numbers, rank at least 1.
        type: int, 2.
        n: int, the size of the transform; None for the size of the axis.
        axis: int, the axis; negative ones count from the end.
        norm: 'ortho'; None or 'backward' for no factor.

    Returns:
        array of floats, of size n along the axis.

    Source: Makhoul, "A fast cosine transform in one and two dimensions" (1980).

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import fft
        >>> fft.idct(jnp.array([4., 0.])).tolist()
        [1.0, 1.0]
    """
    x = _wanted("idct", x, type, norm)
    (axis,) = canonical_axes(axis, x.ndim)
    return _along("idct", x, n, axis, norm, True)


def _along(name: str, x, n, axis: int, norm, inverse: bool):
    x = _fit(name, x, axis, n)
    scale = _rows(_scale(x.shape[-1], norm, x.dtype), x)
    out = _by_parts(_backward, x / scale) if inverse else _by_parts(_forward, x) * scale
    return jnp.moveaxis(out, -1, axis)


def _many(name: str, x, type, s, axes, norm, inverse: bool):
    x = _wanted(name, x, type, norm)
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    axes = canonical_axes(tuple(axes) if not isinstance(axes, int) else axes, x.ndim)
    if len(set(axes)) < len(axes):
        raise ValueError(f"{name}: axes must differ, got {tuple(axes)}.")
    if s is not None and len(s) != len(axes):
        raise ValueError(f"{name}: s must have one length for each axis, got {tuple(s)} for the axes {tuple(axes)}.")
    for axis, n in zip(axes, s or [None] * len(axes)):
        x = _along(name, x, n, axis, norm, inverse)
    return x


def dctn(x, type: int = 2, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None):
    """`dct` along several axes (all by default, or the last ones that `s` has lengths for).

    Args:
        x: array of real numbers, any shape.
        type: int, 2.
        s: sequence of ints, the size of the transform along each of the axes; None for the sizes of x.
        axes: sequence of ints, the axes; None for all.
        norm: 'ortho'; None or 'backward' for no factor.

    Returns:
        array of floats, with the sizes s along the axes.

    Raises:
        NotImplementedError: for another type. ValueError: for another norm, repeated axes, or lengths that do not fit
            them.

    Source: Makhoul, "A fast cosine transform in one and two dimensions" (1980).

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import fft
        >>> fft.dctn(jnp.ones((1, 2))).tolist()
        [[8.0, 0.0]]
    """
    return _many("dctn", x, type, s, axes, norm, False)


def idctn(x, type: int = 2, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None):
    """The inverse of `dctn`, with the same arguments.

    Args:
        x: array of real numbers, any shape.
        type: int, 2.
        s: sequence of ints, the size of the transform along each of the axes; None for the sizes of x.
        axes: sequence of ints, the axes; None for all.
        norm: 'ortho'; None or 'backward' for no factor.

    Returns:
        array of floats, with the sizes s along the axes.

    Source: Makhoul, "A fast cosine transform in one and two dimensions" (1980).

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import fft
        >>> fft.idctn(jnp.array([[8., 0.]])).tolist()
        [[1.0, 1.0]]
    """
    return _many("idctn", x, type, s, axes, norm, True)


def __dir__() -> list[str]:
    return sorted(__all__)
