"""Samplers with JAX's bits: uniform and integer ones exactly, the others to the accuracy of the elementary functions."""
from __future__ import annotations

import math

from .. import dtypes
from ..control.call import inner_jit
from ..core.jaxpr import TypedScalar
from ..core.trace import get_aval
from ..ops import elementwise as el
from ..ops.linear import broadcast_in_dim, broadcast_to_rank_shape, convert, full, squeeze, stop_gradient_p
from ..ops.random_bits import random_bits_p, random_split_p
from ..ops.reduce import argmax
from ..ops.rules import scalar_like, shape_of
from ..ops.shape import iota, slice_
from ..ops.sort import sort_p
from .keys import canonical_shape, size_of, typed


def _float_dtype(dtype, who: str):
    dt = dtypes.canonicalize(float if dtype is None else dtype)
    if not dtypes.is_float(dt):
        raise ValueError(f"dtype argument to `{who}` must be a float dtype, got {dtypes.name(dt)}.")
    return dt


def _scalar(value, dt):
    """A Python scalar as a strongly typed host scalar, everything else as it is."""
    return convert(value, dt) if dtypes.is_python_scalar(value) else value


def two_keys(key):
    """Both halves of a split key."""
    pair = random_split_p.bind(key, shape=(2,))
    return [squeeze(slice_(pair, (i,), (i + 1,)), (0,)) for i in (0, 1)]


def _fit(x, shape):
    """`x` with leading axes of size 1 up to the rank of `shape`."""
    mine = shape_of(x)
    if len(mine) > len(shape):
        raise ValueError(f"a parameter of shape {mine} does not broadcast to the sample shape {shape}.")
    return x if len(mine) == len(shape) else broadcast_in_dim(x, (1,) * (len(shape) - len(mine)) + mine, tuple(range(len(shape) - len(mine), len(shape))))


def bits(key, shape=(), dtype=None, *, out_sharding=None):
    """Uniform random unsigned integers.

    Example:
        >>> import weft
        >>> weft.random.bits(weft.random.key(0), dtype="uint8").dtype
        dtype('uint8')
    """
    key, _ = typed(key, "bits")
    dt = dtypes.canonicalize("uint32" if dtype is None else dtype)
    if not dtypes.is_unsigned(dt):
        raise ValueError(f"dtype argument to `bits` must be an unsigned int dtype, got {dtypes.name(dt)}.")
    return random_bits_p.bind(key, bit_width=dtypes.bits(dt), shape=canonical_shape(shape))


def uniform(key, shape=(), dtype=None, minval=0.0, maxval=1.0, *, out_sharding=None):
    """Uniform samples from [minval, maxval).

    Args:
        key: a key.
        shape: the shape of the result.
        dtype: a float dtype.
        minval, maxval: numbers or arrays that broadcast to `shape`.

    Example:
        >>> import weft
        >>> weft.random.uniform(weft.random.key(1), (2,)).shape
        (2,)
    """
    key, _ = typed(key, "uniform")
    dt = _float_dtype(dtype, "uniform")
    strong = dtypes.canonicalize(float)
    return _uniform(key, _scalar(minval, strong), _scalar(maxval, strong), shape=canonical_shape(shape), dtype=dt)


_MANTISSA = {"float16": (10, 16), "bfloat16": (7, 16), "float32": (23, 32), "float64": (52, 64)}


@inner_jit(static_argnames=("shape", "dtype"))
def _uniform(key, minval, maxval, *, shape, dtype):
    """Random mantissas under the exponent of 1, minus 1."""
    minval, maxval = _fit(convert(minval, dtype), shape), _fit(convert(maxval, dtype), shape)
    mantissa, width = _MANTISSA[dtype.name]
    word = dtypes.dtype(f"uint{width}")
    drawn = 8 if mantissa < 8 else width
    raw = random_bits_p.bind(key, bit_width=drawn, shape=shape)
    raw = convert(raw, word)
    one = {"float16": 0x3C00, "bfloat16": 0x3F80, "float32": 0x3F800000, "float64": 0x3FF0000000000000}[dtype.name]
    raw = el.or_(el.shift_right_logical(raw, scalar_like(raw, drawn - mantissa)), scalar_like(raw, one))
    floats = el.bitcast(raw, dtype)
    floats = el.sub(floats, scalar_like(floats, 1))
    return el.max_(minval, broadcast_to_rank_shape(el.add(el.mul(floats, el.sub(maxval, minval)), minval), shape))


def randint(key, shape, minval, maxval, dtype=None, *, out_sharding=None):
    """Uniform random integers from [minval, maxval).

    Example:
        >>> import weft
        >>> bool((weft.random.randint(weft.random.key(0), (100,), 0, 10) < 10).all())
        True
    """
    key, _ = typed(key, "randint")
    dt = dtypes.canonicalize(int if dtype is None else dtype)
    if not dtypes.is_int(dt):
        raise TypeError(f"randint only accepts integer dtypes, got {dtypes.name(dt)}.")
    for bound in (minval, maxval):
        if not dtypes.is_int(get_aval(bound).dtype):
            raise TypeError(f"randint takes integer bounds, got {dtypes.name(get_aval(bound).dtype)}.")
    strong = dtypes.canonicalize(int)
    return _randint(key, _wide_scalar(minval, strong), _wide_scalar(maxval, strong), shape=canonical_shape(shape), dtype=dt)


def _wide_scalar(value, dt):
    if isinstance(value, int) and not dtypes.iinfo(dt).min <= value <= dtypes.iinfo(dt).max:
        return TypedScalar(value, get_aval(convert(0, dtypes.dtype("uint32" if dt == dtypes.int32 else "uint64"))))
    return _scalar(value, dt)


@inner_jit(name="clip")
def _clip(x, lo, hi):
    return el.min_(hi, el.max_(lo, x))


@inner_jit(static_argnames=("shape", "dtype"))
def _randint(key, minval, maxval, *, shape, dtype):
    """Two words for each sample: (high · 2^bits + low) mod span, so that the bias is small."""
    limits = dtypes.iinfo(dtype)
    top = _clip(*_clip_args(int(limits.max), get_aval(maxval).dtype))
    overflow = el.gt(maxval, top)
    minval, maxval = [convert(_clip(v, *_bounds(limits, get_aval(v).dtype)), dtype) for v in (minval, maxval)]
    minval, maxval = _fit(minval, shape), _fit(maxval, shape)
    width = dtypes.bits(dtype)
    word = dtypes.dtype(f"uint{width}")
    k1, k2 = two_keys(key)
    high, low = [random_bits_p.bind(k, bit_width=width, shape=shape) for k in (k1, k2)]
    span = convert(el.sub(maxval, minval), word)
    span = el.select(el.le(maxval, minval), full(shape_of(span), 1, word), span)
    full_range = el.and_(_like_rank(overflow, span), el.gt(maxval, minval))
    span = el.select(full_range, el.add(span, scalar_like(span, 1)), span)
    half = el.rem(scalar_like(span, 1 << (width // 2)), span)
    multiplier = el.rem(el.mul(half, half), span)
    offset = el.add(el.mul(el.rem(high, span), multiplier), el.rem(low, span))
    offset = el.rem(offset, span)
    return broadcast_to_rank_shape(el.add(minval, convert(offset, dtype)), shape)


def _like_rank(x, y):
    return _fit(x, shape_of(y)) if shape_of(x) else x


def _clip_args(value: int, dt):
    limits = dtypes.iinfo(dt)
    return [convert(min(value, int(limits.max)), dt), convert(int(limits.min), dt), convert(int(limits.max), dt)]


def _bounds(limits, dt):
    """The limits of the result's dtype as values of the bound's."""
    mine = dtypes.iinfo(dt)
    return convert(max(int(limits.min), int(mine.min)), dt), convert(min(int(limits.max), int(mine.max)), dt)


def normal(key, shape=(), dtype=None, *, out_sharding=None):
    """Standard normal samples, real or (for a complex dtype) complex of variance 1.

    Example:
        >>> import weft
        >>> weft.random.normal(weft.random.key(0), (3,)).shape
        (3,)
    """
    key, _ = typed(key, "normal")
    dt = dtypes.canonicalize(float if dtype is None else dtype)
    if not dtypes.is_inexact(dt):
        raise ValueError(f"dtype argument to `normal` must be a float or complex dtype, got {dtypes.name(dt)}.")
    return _normal(key, shape=canonical_shape(shape), dtype=dt)


@inner_jit(static_argnames=("shape", "dtype"))
def _normal(key, *, shape, dtype):
    if dtypes.is_complex(dtype):
        k1, k2 = two_keys(key)
        part = dtypes.real_of(dtype)
        re, im = _normal_real(k1, shape=shape, dtype=part), _normal_real(k2, shape=shape, dtype=part)
        z = el.complex_(re, im)
        return el.mul(z, scalar_like(z, 1 / math.sqrt(2)))
    return _normal_real(key, shape=shape, dtype=dtype)


_ABOVE_MINUS_ONE = {"float16": -1 + 2.0 ** -11, "bfloat16": -1 + 2.0 ** -8, "float32": -1 + 2.0 ** -24, "float64": -1 + 2.0 ** -53}


@inner_jit(static_argnames=("shape", "dtype"))
def _normal_real(key, *, shape, dtype):
    u = _uniform(key, convert(_ABOVE_MINUS_ONE[dtype.name], dtype), convert(1.0, dtype), shape=shape, dtype=dtype)
    return el.mul(scalar_like(u, math.sqrt(2)), el.erf_inv(u))


def truncated_normal(key, lower, upper, shape=None, dtype=None, *, out_sharding=None):
    """Standard normal samples from [lower, upper].

    Example:
        >>> import weft
        >>> bool((abs(weft.random.truncated_normal(weft.random.key(0), -1., 1., (50,))) <= 1).all())
        True
    """
    key, _ = typed(key, "truncated_normal")
    dt = _float_dtype(dtype, "truncated_normal")
    shape = _broadcast(get_aval(lower).shape, get_aval(upper).shape) if shape is None else canonical_shape(shape)
    return _truncated_normal(key, _own(lower), _own(upper), shape=shape, dtype=dt)


def _own(value):
    return _scalar(value, dtypes.python_scalar_dtype(value)) if dtypes.is_python_scalar(value) else value


def _broadcast(a: tuple, b: tuple) -> tuple:
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    if any(m != n and 1 not in (m, n) for m, n in zip(a, b)):
        raise ValueError(f"incompatible shapes for broadcasting: {a} and {b}.")
    return tuple(max(m, n) if 0 not in (m, n) else 0 for m, n in zip(a, b))


@inner_jit(static_argnames=("shape", "dtype"))
def _truncated_normal(key, lower, upper, *, shape, dtype):
    lower, upper = convert(lower, dtype), convert(upper, dtype)
    root = scalar_like(lower, math.sqrt(2))
    u = _uniform(key, el.erf(el.div(lower, root)), el.erf(el.div(upper, root)), shape=shape, dtype=dtype)
    out = el.mul(scalar_like(u, math.sqrt(2)), el.erf_inv(u))
    inside = lambda v, to: el.nextafter(stop_gradient_p.bind(v), scalar_like(v, to))
    return _clip(out, _fit(inside(lower, math.inf), shape) if shape_of(lower) else inside(lower, math.inf),
                 _fit(inside(upper, -math.inf), shape) if shape_of(upper) else inside(upper, -math.inf))


def bernoulli(key, p=0.5, shape=None, mode: str = "low", *, out_sharding=None):
    """Booleans that are True with probability `p`.

    Example:
        >>> import weft
        >>> weft.random.bernoulli(weft.random.key(0), 0.5, (3,)).dtype
        dtype('bool')
    """
    key, _ = typed(key, "bernoulli")
    if mode not in ("low", "high"):
        raise ValueError(f"bernoulli's mode is 'high' or 'low', got {mode!r}.")
    p = _own(p)
    dt = get_aval(p).dtype
    if not dtypes.is_float(dt):
        p, dt = convert(p, dtypes.canonicalize(float)), dtypes.canonicalize(float)
    shape = get_aval(p).shape if shape is None else canonical_shape(shape)
    return _bernoulli(key, p, shape=shape, mode=mode)


@inner_jit(static_argnames=("shape", "mode"))
def _bernoulli(key, p, *, shape, mode):
    dt = get_aval(p).dtype
    if mode == "high":
        u1, u2 = [_uniform(k, convert(0.0, dt), convert(1.0, dt), shape=shape, dtype=dt) for k in two_keys(key)]
        u2 = el.mul(u2, scalar_like(u2, 2.0 ** -dtypes.finfo(dt).nmant))
        return el.lt(el.sub(u2, _fit(p, shape) if shape_of(p) else p), el.neg(u1))
    strong = dtypes.canonicalize(float)
    u = _uniform(key, convert(0.0, strong), convert(1.0, strong), shape=shape, dtype=dt)
    return broadcast_to_rank_shape(el.lt(u, _fit(p, shape) if shape_of(p) else p), shape)


def _unit(key, shape, dt):
    strong = dtypes.canonicalize(float)
    return _uniform(key, convert(0.0, strong), convert(1.0, strong), shape=shape, dtype=dt)


def exponential(key, shape=(), dtype=None, *, out_sharding=None):
    """Exponential samples of rate 1.

    Example:
        >>> import weft
        >>> bool((weft.random.exponential(weft.random.key(0), (9,)) >= 0).all())
        True
    """
    key, _ = typed(key, "exponential")
    return _exponential(key, shape=canonical_shape(shape), dtype=_float_dtype(dtype, "exponential"))


@inner_jit(static_argnames=("shape", "dtype"))
def _exponential(key, *, shape, dtype):
    return el.neg(el.log1p(el.neg(_unit(key, shape, dtype))))


def gumbel(key, shape=(), dtype=None, mode: str | None = None, *, out_sharding=None):
    """Standard Gumbel samples.

    Example:
        >>> import weft
        >>> weft.random.gumbel(weft.random.key(0), (2,)).shape
        (2,)
    """
    key, _ = typed(key, "gumbel")
    if mode not in (None, "low"):
        raise ValueError(f"gumbel offers mode 'low', got {mode!r}.")
    return _gumbel(key, shape=canonical_shape(shape), dtype=_float_dtype(dtype, "gumbel"))


@inner_jit(static_argnames=("shape", "dtype"))
def _gumbel(key, *, shape, dtype):
    tiny = convert(float(dtypes.finfo(dtype).tiny), dtype)
    u = _uniform(key, tiny, convert(1.0, dtypes.canonicalize(float)), shape=shape, dtype=dtype)
    return el.neg(el.log(el.neg(el.log(u))))


def categorical(key, logits, axis: int = -1, shape=None, replace: bool = True, mode: str | None = None, *, out_sharding=None):
    """Indices along `axis` drawn with probabilities softmax(logits).

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.random.categorical(weft.random.key(0), jnp.zeros((4, 3))).shape
        (4,)
    """
    key, _ = typed(key, "categorical")
    if not replace:
        raise ValueError("categorical draws with replacement; use choice(replace=False) for sampling without.")
    full_shape = get_aval(logits).shape
    axis = axis % len(full_shape)
    batch = full_shape[:axis] + full_shape[axis + 1:]
    shape = batch if shape is None else canonical_shape(shape)
    if shape[len(shape) - len(batch):] != batch:
        raise ValueError(f"categorical: shape {shape} must end with the logits' batch shape {batch}.")
    lead = shape[:len(shape) - len(batch)]
    drawn = (*lead, *full_shape)
    dt = get_aval(logits).dtype
    noise = gumbel(key, drawn, dt if dtypes.is_float(dt) else None, mode)
    total = el.add(noise, _fit(convert(logits, get_aval(noise).dtype), drawn))
    return argmax(total, axis + len(lead), int)


def logistic(key, shape=(), dtype=None, *, out_sharding=None):
    """Standard logistic samples."""
    key, _ = typed(key, "logistic")
    return _logistic(key, shape=canonical_shape(shape), dtype=_float_dtype(dtype, "logistic"))


@inner_jit(static_argnames=("shape", "dtype"))
def _logistic(key, *, shape, dtype):
    tiny = convert(float(dtypes.finfo(dtype).tiny), dtype)
    u = _uniform(key, tiny, convert(1.0, dtypes.canonicalize(float)), shape=shape, dtype=dtype)
    return el.log(el.div(u, el.sub(scalar_like(u, 1), u)))


def laplace(key, shape=(), dtype=None, *, out_sharding=None):
    """Standard Laplace samples."""
    key, _ = typed(key, "laplace")
    return _laplace(key, shape=canonical_shape(shape), dtype=_float_dtype(dtype, "laplace"))


@inner_jit(static_argnames=("shape", "dtype"))
def _laplace(key, *, shape, dtype):
    strong = dtypes.canonicalize(float)
    eps = convert(-1.0 + float(dtypes.finfo(dtype).epsneg), strong)
    u = _uniform(key, eps, convert(1.0, strong), shape=shape, dtype=dtype)
    return el.mul(el.sign(u), el.log1p(el.neg(el.abs_(u))))


def cauchy(key, shape=(), dtype=None, *, out_sharding=None):
    """Standard Cauchy samples."""
    key, _ = typed(key, "cauchy")
    return _cauchy(key, shape=canonical_shape(shape), dtype=_float_dtype(dtype, "cauchy"))


@inner_jit(static_argnames=("shape", "dtype"))
def _cauchy(key, *, shape, dtype):
    eps = convert(float(dtypes.finfo(dtype).eps), dtype)
    u = _uniform(key, eps, convert(1.0, dtypes.canonicalize(float)), shape=shape, dtype=dtype)
    return el.tan(el.mul(scalar_like(u, math.pi), el.sub(u, scalar_like(u, 0.5))))


@inner_jit(static_argnames=("axis",))
def _shuffle(key, x, *, axis=0):
    """Sorts by random words, as many times as makes ties unlikely."""
    shape = shape_of(x)
    rounds = math.ceil(3 * math.log(max(1, size_of(shape))) / math.log(0xFFFFFFFF))
    for _ in range(rounds):
        key, sub = two_keys(key)
        words = random_bits_p.bind(sub, bit_width=32, shape=shape)
        _, x = sort_p.bind(words, x, dimension=axis, is_stable=True, num_keys=1)
    return x


def shuffled(key, x, axis: int = 0):
    return _shuffle(key, x, axis=axis)


def shuffled_range(key, n: int):
    """The numbers 0 … n-1 in random order."""
    return _shuffle(key, iota(dtypes.canonicalize(int), (n,), 0), axis=0)
