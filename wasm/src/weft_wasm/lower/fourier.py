"""Fourier transforms: one primitive on planes, `fft_planes`, whose lengths have small factors, and every other
transform in terms of it.

Lengths with a large prime factor go by Bluestein's convolution (L. Bluestein, 1970); real transforms of even length are
complex ones of half of it.
"""

from __future__ import annotations

import math

from weft.base import dtypes
from weft.core.jaxpr import JaxprEqn
from weft.core.primitive import Primitive
from weft.base.host import from_flat
from weft.primitives.elementwise import add, mul, neg, sub
from weft.primitives.fft import FftType
from weft.primitives.linear import broadcast_in_dim, full, moveaxis, reshape
from weft.primitives.rules import dtype_of, scalar_of, shape_of
from weft.primitives.shape import concatenate, pad, rev, slice_

from weft_wasm.lower import graph
from weft_wasm.ir.nodes import Expr, Stmt
from weft_wasm.lower.complexes import Number, Pair, Real, multiply, rule
from weft_wasm.lower.loop_nests import GraphLowering, Place, Reader, opaque
from weft_wasm.lower.graph import Node
from weft_wasm.lower.types import array_type
from weft_wasm.routines import fft as routine

fft_planes_p = Primitive("fft_planes", multiple_results=True, foreign=True)
fft_planes_p.foreign = False  # the compiler's own: made here, lowered here, in no program of a user's
fft_planes_p.abstract = lambda re, im, *, scale: [re, im]
graph.known.add("fft_planes")


@opaque("fft_planes")
def emit_transform(body: GraphLowering, node: Node) -> list[Stmt]:
    re, im = node.inputs
    n = re.shape[-1]
    if not re.size:
        return []
    batch = re.size // n
    reader = Reader(body)

    def element(b: Expr, i: Expr) -> tuple[Expr, Expr]:
        where = tuple(part for part in ((batch, b), (n, i)) if part[0] > 1)
        return reader.element(re, where), reader.element(im, where)

    # separate storage: an output's may be that of an argument which the first pass still reads
    places = [body.places[o] for o in node.outputs]
    direct = [p.offset is None and p.buffer.role == "temp" for p in places]
    buffers = [p.buffer if ok else body.module.temp(o.dtype, o.shape) for p, ok, o in zip(places, direct, node.outputs)]
    to_re, to_im = buffers
    made = routine.fft(
        body.module.name("fft_"),
        batch,
        n,
        element,
        to_re,
        to_im,
        body.module.table,
        node.params["scale"],
        not body.module.plain,
    )
    body.module.temps += made.temps
    return [
        *made.kernels,
        *[p.copy(Place(b), o.size) for p, b, o in zip(places, buffers, node.outputs) if p.buffer is not b],
    ]


def along_last(x: Pair, scale: float = 1.0) -> Pair:
    """The transform over the last axis, times `scale`."""
    n = shape_of(x.re)[-1]
    if n <= 1 or 0 in shape_of(x.re):
        return Pair(*[mul(v, full(shape_of(v), scale, dtype_of(v))) for v in x]) if scale != 1.0 else x
    if routine.factors(n) is None:
        return bluestein(x, scale)
    return Pair(*fft_planes_p.bind(*x, scale=scale))


def swapped(x: Pair) -> Pair:
    return Pair(x.im, x.re)


def inverse_along_last(x: Pair, scale: float) -> Pair:
    """i conj(x) is x with its parts exchanged, so exchanging the parts of its transform gives the inverse."""
    return swapped(along_last(swapped(x), scale))


def table(values: list[float], like: Real) -> Real:
    """Constant rows of numbers beside the last axis of `like`."""
    shape = shape_of(like)
    return broadcast_in_dim(
        from_flat(values, (len(values),), dtype_of(like)), (*shape[:-1], len(values)), (len(shape) - 1,)
    )


def roots(count: int, n: int, like: Real) -> Pair:
    """exp(-2πi k/n) for k below count."""
    found = [routine.circle(k, n) for k in range(count)]
    return Pair(*[table([z[part] for z in found], like) for part in (0, 1)])


def bluestein(x: Pair, scale: float) -> Pair:
    """k j = (k² + j² - (k - j)²) / 2 makes the transform a convolution with a chirp."""
    shape = shape_of(x.re)
    n, lead = shape[-1], [(0, 0, 0)] * (len(shape) - 1)
    size = 1 << (2 * n - 2).bit_length()
    found = [routine.circle(k * k % (2 * n), 2 * n) for k in range(n)]
    chirp = Pair(*[table([z[part] for z in found], x.re) for part in (0, 1)])
    wide = Pair(*[pad(v, scalar_of(0.0, dtype_of(v)), [*lead, (0, size - n, 0)]) for v in multiply(x, chirp)])
    # its conjugate at the distances -(n - 1) … n - 1, modulo the size
    gap = [0.0] * (size - 2 * n + 1)
    parts = [
        [sign * v for v in (*part, *gap, *part[:0:-1])]
        for part, sign in (([z[0] for z in found], 1.0), ([z[1] for z in found], -1.0))
    ]
    kernel = along_last(Pair(*[from_flat(part, (size,), dtype_of(x.re)) for part in parts]))
    kernel = Pair(*[broadcast_in_dim(v, (*shape[:-1], size), (len(shape) - 1,)) for v in kernel])
    out = inverse_along_last(multiply(along_last(wide), kernel), scale / size)
    return multiply(Pair(*[cut(v, 0, n) for v in out]), chirp)


def cut(x: Real, start: int, stop: int, step: int = 1) -> Real:
    """Positions of the last axis."""
    shape = shape_of(x)
    lead = len(shape) - 1
    return slice_(x, (*[0] * lead, start), (*shape[:-1], stop), None if step == 1 else (*[1] * lead, step))


def mirrored(x: Pair, n: int) -> Pair:
    """The conjugates at n - k for k = 0 … the last position, of values of period n = the length."""
    back = lambda v: (
        concatenate([cut(v, 0, 1), rev(cut(v, 1, n), (len(shape_of(v)) - 1,))], len(shape_of(v)) - 1) if n > 1 else v
    )
    return Pair(back(x.re), neg(back(x.im)))


def halves(v: Real, factor: float) -> Real:
    return mul(v, full(shape_of(v), factor, dtype_of(v)))


def of_reals(x: Real) -> Pair:
    """The first half of the transform of real values over the last axis."""
    n = shape_of(x)[-1]
    zero = full(shape_of(x), 0.0, dtype_of(x))
    if n % 2 or n < 4:
        return Pair(*[cut(v, 0, n // 2 + 1) for v in along_last(Pair(x, zero))])
    m = n // 2
    z = along_last(Pair(cut(x, 0, n, 2), cut(x, 1, n, 2)))
    back = mirrored(z, m)
    even = Pair(halves(add(z.re, back.re), 0.5), halves(add(z.im, back.im), 0.5))
    odd = Pair(halves(sub(z.im, back.im), 0.5), halves(sub(back.re, z.re), 0.5))
    odd = multiply(odd, roots(m, n, odd.re))
    first = Pair(add(even.re, odd.re), add(even.im, odd.im))
    middle = cut(sub(even.re, odd.re), 0, 1)
    axis = len(shape_of(x)) - 1
    return Pair(
        concatenate([first.re, middle], axis), concatenate([first.im, full(shape_of(middle), 0.0, dtype_of(x))], axis)
    )


def to_reals(x: Pair, n: int, scale: float) -> Real:
    """The real values whose transform begins with x; the imaginary parts that must be zero do not count."""
    axis = len(shape_of(x.re)) - 1
    if n % 2 or n < 4:
        rest = (n - 1) // 2
        tail = Pair(*[rev(cut(v, 1, 1 + rest), (axis,)) for v in x])
        zero = full(shape_of(cut(x.im, 0, 1)), 0.0, dtype_of(x.im))
        im = [zero, cut(x.im, 1, 1 + rest), *([zero] if n % 2 == 0 else []), neg(tail.im)] if n > 1 else [zero]
        whole = Pair(
            concatenate([x.re, tail.re], axis) if rest else x.re, concatenate(im, axis) if len(im) > 1 else im[0]
        )
        return inverse_along_last(whole, scale).re
    m = n // 2
    first, last = Pair(*[cut(v, 0, m) for v in x]), Pair(*[rev(cut(v, 1, m + 1), (axis,)) for v in x])
    # the ends of the spectrum are real
    inner = lambda v: concatenate([full(shape_of(cut(v, 0, 1)), 0.0, dtype_of(v)), cut(v, 1, m)], axis)
    first, back = Pair(first.re, inner(first.im)), Pair(last.re, neg(inner(last.im)))
    even = Pair(add(first.re, back.re), add(first.im, back.im))
    w = roots(m, n, first.re)
    odd = multiply(Pair(sub(first.re, back.re), sub(first.im, back.im)), Pair(w.re, neg(w.im)))
    z = inverse_along_last(Pair(sub(even.re, odd.im), add(even.im, odd.re)), scale)
    shape = shape_of(z.re)
    return reshape(concatenate([reshape(v, (*shape, 1)) for v in z], axis + 1), (*shape[:-1], n))


@rule("fft")
def _fft(eqn: JaxprEqn, x: Number) -> Number:
    kind, lengths = FftType(eqn.params["fft_type"]), eqn.params["fft_lengths"]
    out = array_type(eqn.outvars[0])
    if 0 in out.shape or 0 in array_type(eqn.invars[0]).shape:
        zero = full(out.shape, 0.0, dtypes.real_of(out.dtype) if dtypes.is_complex(out.dtype) else out.dtype)
        return Pair(zero, zero) if dtypes.is_complex(out.dtype) else zero
    rank = len(out.shape)
    if kind == FftType.RFFT:
        x = of_reals(x)
    inverse = kind in (FftType.IFFT, FftType.IRFFT)
    scale = 1 / math.prod(lengths) if inverse else 1.0
    whole = lengths[:-1] if kind in (FftType.RFFT, FftType.IRFFT) else lengths
    first = rank - len(lengths)
    for k in range(len(whole)):  # the scale goes with the last axis that is transformed
        axis, last = first + k, kind == FftType.IFFT and k == len(whole) - 1
        x = Pair(*[moveaxis(v, axis, rank - 1) for v in x])
        x = inverse_along_last(x, scale if last else 1.0) if inverse else along_last(x)
        x = Pair(*[moveaxis(v, rank - 1, axis) for v in x])
    return to_reals(x, lengths[-1], scale) if kind == FftType.IRFFT else x
