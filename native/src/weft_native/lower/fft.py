"""The Fourier transform, which XLA has."""

from __future__ import annotations

from .registry import rule

_KINDS = ("FFT", "IFFT", "RFFT", "IRFFT")


@rule("fft")
def _fft(b, ins, outs, x, *, fft_type, fft_lengths):
    if 0 in ins[0].shape or 0 in outs[0].shape:
        return b.splat(0, outs[0].dtype, outs[0].shape)
    return b.op(
        "stablehlo.fft",
        [x],
        b.type(outs[0]),
        {"fft_type": b.attr(f"#stablehlo<fft_type {_KINDS[int(fft_type)]}>"), "fft_length": b.i64s(fft_lengths)},
    )
