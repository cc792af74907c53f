"""The Fourier transform of `weft.lax`."""

from __future__ import annotations

from typing import Sequence

from ..base import dtypes
from ..primitives import fft as ops
from ..primitives import linear
from ..primitives.fft import FftType
from ..primitives.rules import dtype_of
from ..typing import Array, ArrayLike
from .common import ints, on_device, operand

__all__ = ["FftType", "fft"]


def fft(x: ArrayLike, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """Computes the discrete Fourier transform over the last one to three axes.

    fft_type is an `FftType` or its name: 'fft' and 'ifft' (complex), 'rfft' (of real values; the last axis becomes n //
    2 + 1) and 'irfft' (its inverse). `fft_lengths` are the sizes of those axes on the real side.

    Args:
        x: array of floats or complex numbers, any shape; of real numbers for 'rfft'.
        fft_type: `lax.FftType` or its name: 'fft' and 'ifft', 'rfft' (of real values; the last axis becomes n // 2 + 1)
            and 'irfft' (its inverse).
        fft_lengths: one to three ints, the sizes of those axes on the real side.

    Returns:
        array of the shape described: complex64 or complex128; of 'irfft' float32 or float64.

    Raises:
        ValueError: for an unknown type, more than three lengths, or lengths that do not fit.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> lax.fft(jnp.array([1., 0., 0., 0.]), 'rfft', (4,)).real.tolist()
        [1.0, 1.0, 1.0]
    """
    x = on_device(operand("fft", x))
    if isinstance(fft_type, str):
        if fft_type.upper() not in FftType.__members__:
            raise ValueError(f"Unknown FFT type {fft_type!r}; types are 'fft', 'ifft', 'rfft' and 'irfft'.")
        fft_type = FftType[fft_type.upper()]
    kind = FftType(fft_type)
    dt = dtype_of(x)
    if kind == FftType.RFFT:
        if dtypes.is_complex(dt):
            raise ValueError("only real valued inputs supported for rfft")
        if not dtypes.is_float(dt):
            x = linear.convert(x, dtypes.canonicalize(dtypes.float64))
    elif not dtypes.is_complex(dt):
        x = linear.convert(x, dtypes.complex_of(dt))
    return ops.fft(x, kind, ints(fft_lengths))
