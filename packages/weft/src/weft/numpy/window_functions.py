"""Window functions, and the modified Bessel function that one of them needs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..base import dtypes
from ..core.trace import get_aval
from ..lax.special import bessel_i0e
from ..primitives import elementwise as el, transcendental
from ..primitives import linear
from ..primitives.rules import dtype_of
from ..runtime.jit import inner_jit
from ..typing import Array, ArrayLike
from . import elementary, ufuncs
from .creation import ones
from .ranges import arange
from .util import float_dtype, on_device, promote_inexact

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = ["bartlett", "blackman", "hamming", "hanning", "i0", "kaiser"]


@inner_jit(name="i0")
def _i0(x: Value) -> Value:
    return el.mul(transcendental.exp(el.abs_(x)), bessel_i0e(x))


def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind, order 0.

    Args:
        x: array of real numbers, any shape; integers are converted to floats.

    Returns:
        array of floats, the shape of x.

    Raises:
        ValueError: for complex numbers.

    Source: DLMF 10.25.2.

    Example:
        >>> import weft.numpy as jnp
        >>> round(float(jnp.i0(1.0)), 4)
        1.2661
    """
    (x,) = promote_inexact("i0", x)
    if dtypes.is_complex(dtype_of(x)):
        raise ValueError(f"i0 takes real numbers, got {get_aval(x)}.")
    return _i0(on_device(x))


def _points(M: int) -> tuple[Array, int]:
    """0, 1, …, M - 1 as floats, and the last of them."""
    return linear.convert(arange(M), float_dtype()), M - 1


def _cosines(M: int, *weights: float) -> Array:
    """A sum of cosines with 0, 1, 2, … periods over the window."""
    M = int(M)
    if M <= 1:
        return ones(M, float_dtype())
    n, last = _points(M)
    angle = ufuncs.divide(ufuncs.multiply(2 * math.pi, n), last)
    out = ufuncs.add(weights[0], ufuncs.multiply(weights[1], elementary.cos(angle)))
    return (
        out
        if len(weights) == 2
        else ufuncs.add(out, ufuncs.multiply(weights[2], elementary.cos(ufuncs.multiply(2, angle))))
    )


def bartlett(M: int) -> Array:
    """The triangular window of M points (a concrete number).

    Args:
        M: int, the number of points.

    Returns:
        array of floats, shape (M,).

    Source: Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform" (1978).

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.bartlett(5).shape
        (5,)
    """
    M = int(M)
    if M <= 1:
        return ones(M, float_dtype())
    n, last = _points(M)
    return ufuncs.subtract(1, ufuncs.divide(ufuncs.abs(ufuncs.subtract(ufuncs.multiply(2, n), last)), last))


def blackman(M: int) -> Array:
    """The Blackman window of M points (a concrete number).

    Args:
        M: int, the number of points.

    Returns:
        array of floats, shape (M,).

    Source: Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform" (1978).

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.blackman(5).shape
        (5,)
    """
    return _cosines(M, 0.42, -0.5, 0.08)


def hamming(M: int) -> Array:
    """The Hamming window of M points (a concrete number).

    Args:
        M: int, the number of points.

    Returns:
        array of floats, shape (M,).

    Source: Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform" (1978).

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.hamming(5).shape
        (5,)
    """
    return _cosines(M, 0.54, -0.46)


def hanning(M: int) -> Array:
    """The Hann window of M points (a concrete number).

    Args:
        M: int, the number of points.

    Returns:
        array of floats, shape (M,).

    Source: Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform" (1978).

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.hanning(5).shape
        (5,)
    """
    return _cosines(M, 0.5, -0.5)


def kaiser(M: int, beta: ArrayLike) -> Array:
    """The Kaiser window of M points (a concrete number), narrower for larger `beta`.

    Args:
        M: int, the number of points.
        beta: number, the shape parameter.

    Returns:
        array of floats, shape (M,).

    Source: Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform" (1978).

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.kaiser(5, 3.0)[2])
        1.0
    """
    M = int(M)
    if M <= 1:
        return ones(M, float_dtype())
    n = linear.convert(arange(M), float_dtype())
    half = (M - 1) / 2
    beta = linear.convert(on_device(promote_inexact("kaiser", beta)[0]), float_dtype())
    place = ufuncs.divide(ufuncs.subtract(n, half), half)
    return ufuncs.divide(i0(ufuncs.multiply(beta, elementary.sqrt(ufuncs.subtract(1, ufuncs.square(place))))), i0(beta))
