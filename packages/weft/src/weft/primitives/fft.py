"""The discrete Fourier transform over the last one to three axes."""

from __future__ import annotations

import enum
import math
from typing import TYPE_CHECKING, Any, Sequence

from ..base import dtypes
from ..base.avals import shaped
from ..core.primitive import Primitive
from ..core.shardings import resized
from ..core.wire import SIZES, member, param_type, portable
from ..base.errors import type_error
from ..base.host import np
from .elementwise import conj, mul, real, select, eq, or_
from .linear import convert, full, moveaxis
from .matrix import index
from .rules import dtype_of, linear_jvp, scalar_like, shape_of
from .shape import pad

if TYPE_CHECKING:
    from ..base.avals import ShapedArray
    from ..core.trace import Axis
    from ..core.types import Dims, Shape, Value


@param_type
class FftType(enum.IntEnum):
    """Which transform: FFT and IFFT are complex, RFFT takes real values, IRFFT gives them."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


fft_p = Primitive("fft", wire=portable(fft_type=member("FftType"), fft_lengths=SIZES))


def _fft_abstract(x: ShapedArray, *, fft_type: Any, fft_lengths: Shape) -> ShapedArray:
    name = FftType(fft_type).name
    rank = len(fft_lengths)
    if not 1 <= rank <= 3:
        raise ValueError(
            f"{name} takes one to three fft_lengths, got {fft_lengths}. Transform the other axes in a second call."
        )
    if rank > len(x.shape):
        raise ValueError(
            f"{name} input shape {x.shape} must have at least {rank} dimensions for fft_lengths {fft_lengths}."
        )
    if fft_type == FftType.RFFT:
        if dtypes.name(x.dtype) not in ("float32", "float64"):
            raise ValueError(f"RFFT input must be float32 or float64, got {dtypes.name(x.dtype)}")
    elif not dtypes.is_complex(x.dtype):
        raise type_error(f"{name} input must be complex, got {dtypes.name(x.dtype)}; convert it with astype.")
    expected = (*fft_lengths[:-1], fft_lengths[-1] // 2 + 1) if fft_type == FftType.IRFFT else fft_lengths
    if x.shape[-rank:] != tuple(expected):
        raise ValueError(
            f"{name} input shape {x.shape} minor dimensions must be equal to"
            f" {'' if fft_type != FftType.IRFFT else 'fft_lengths[:-1] + [fft_lengths[-1] // 2 + 1] for '}fft_lengths"
            f" {tuple(fft_lengths)}"
        )
    if fft_type == FftType.RFFT:
        return shaped((*x.shape[:-1], fft_lengths[-1] // 2 + 1), dtypes.complex_of(x.dtype))
    if fft_type == FftType.IRFFT:
        return shaped((*x.shape[:-1], fft_lengths[-1]), dtypes.real_of(x.dtype))
    return shaped(x.shape, x.dtype)


def _fft_reference(x: Value, *, fft_type: Any, fft_lengths: Shape) -> Any:
    axes = tuple(range(-len(fft_lengths), 0))
    if not x.size or 0 in fft_lengths:
        aval = _fft_abstract(shaped(x.shape, x.dtype), fft_type=fft_type, fft_lengths=fft_lengths)
        return np.zeros(aval.shape, aval.dtype)
    if fft_type == FftType.FFT:
        return np.fft.fftn(x, axes=axes)
    if fft_type == FftType.IFFT:
        return np.fft.ifftn(x, axes=axes)
    if fft_type == FftType.RFFT:
        return np.fft.rfftn(x, axes=axes)
    return np.fft.irfftn(x, s=fft_lengths, axes=axes)


def _fft_transpose(ct: Value, x: Value, *, fft_type: Any, fft_lengths: Shape) -> list[Value | None]:
    lengths = tuple(fft_lengths)
    if fft_type in (FftType.FFT, FftType.IFFT):  # symmetric matrices
        return [fft(ct, fft_type, lengths)]
    if fft_type == FftType.RFFT:
        # the real part of the transform of the cotangent, whose second half is zero
        shape = shape_of(ct)
        whole = pad(ct, scalar_like(ct, 0), [(0, 0, 0)] * (len(shape) - 1) + [(0, lengths[-1] - shape[-1], 0)])
        return [real(fft(whole, FftType.FFT, lengths))]
    # each term but the first (and the middle one of an even length) represents two conjugate terms
    n = lengths[-1]
    out = fft(ct, FftType.RFFT, lengths)
    at = index(shape_of(out), -1)
    once = eq(at, scalar_like(at, 0))
    if n % 2 == 0:
        once = or_(once, eq(at, scalar_like(at, n // 2)))
    scale = 1 / math.prod(lengths)
    dt = dtype_of(ct)
    weight = select(once, full(shape_of(out), scale, dt), full(shape_of(out), 2 * scale, dt))
    return [conj(mul(out, convert(weight, dtype_of(out))))]


def _fft_batch(axis: Axis, args: Sequence[Value], dims: Dims, **params: Any) -> tuple[Value, Any]:
    return fft_p.bind(moveaxis(args[0], dims[0], 0), **params), 0


fft_p.abstract, fft_p.reference, fft_p.jvp = _fft_abstract, _fft_reference, linear_jvp(fft_p)
fft_p.transpose, fft_p.batch = _fft_transpose, _fft_batch
fft_p.shard = resized("fft")


def fft(x: Value, fft_type: FftType, fft_lengths: Shape) -> Value:
    """The transform of `x` over its last axes, whose sizes (of the real side) are `fft_lengths`."""
    return fft_p.bind(x, fft_type=FftType(fft_type), fft_lengths=tuple(fft_lengths))
