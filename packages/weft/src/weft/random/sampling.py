"""Uniform and normal numbers, and the helpers that other distributions share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..base import dtypes
from ..base.limits import finfo, iinfo
from ..base.avals import shaped
from ..base.dtypes import ElementType
from ..runtime.jit import inner_jit
from ..core.jaxpr import TypedScalar
from ..core.trace import get_aval
from ..base.errors import at_user_line
from ..base.host import from_flat, to_bytes
from ..lax.common import canonical_shape, on_device, operand
from ..numpy import shapes, ufuncs
from ..numpy.util import broadcast_shapes
from ..primitives import elementwise as el, bitwise, transcendental
from ..primitives import linear
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..typing import Array, ArrayLike, DTypeLike, OutSharding, Shape
from ..transforms.auto_axes import takes_out_sharding
from .keys import as_key, halves, raw_bits

if TYPE_CHECKING:
    from ..base.avals import Size
    from ..core.types import Value

__all__ = ["normal", "randint", "truncated_normal", "uniform"]


def _float(name: str, dtype: DTypeLike | None, allow_complex: bool = False) -> ElementType:
    dt = dtypes.canonicalize(float if dtype is None else dtype)
    if dtypes.bits(dt) < 8:
        raise TypeError(
            f"{name}: random numbers are made of 8, 16, 32 or 64 bits, got the dtype {dtypes.name(dt)}. Convert others:"
            " x.astype(…)."
        )
    if not (dtypes.is_float(dt) or allow_complex and dtypes.is_complex(dt)):
        raise ValueError(f"dtype argument to `{name}` must be a float dtype, got {dtypes.name(dt)}.")
    return dt


def _shape(shape: Shape | None, *params: Value, name: str) -> tuple[Size, ...]:
    """The shape of the result: the requested one, to which the parameters must broadcast, or else theirs."""
    shapes = [shape_of(p) for p in params]
    wanted = None if shape is None else canonical_shape(shape)
    try:
        found = broadcast_shapes([*shapes, () if wanted is None else wanted])
    except ValueError:
        found = None
    if found is None or wanted not in (None, found):
        what = " and ".join(map(str, shapes))
        raise ValueError(
            at_user_line(
                f"{name}: parameters of shape {what} do not broadcast to"
                f" {'one shape' if wanted is None else f'the shape {wanted}'}."
            )
        )
    return found


@inner_jit(name="_uniform", static_argnames=("shape", "dtype"))
def _uniform(key: Value, minval: Value, maxval: Value, *, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    """Random mantissa bits make a number in [1, 2), which is moved to [minval, maxval)."""
    minval, maxval = [linear.convert(v, dtype) for v in (minval, maxval)]
    minval, maxval = [
        (
            linear.broadcast_in_dim(
                v,
                (1,) * (len(shape) - len(shape_of(v))) + shape_of(v),
                tuple(range(len(shape) - len(shape_of(v)), len(shape))),
            )
            if shape
            else v
        )
        for v in (minval, maxval)
    ]
    info, width = finfo(dtype), dtypes.bits(dtype)
    mantissa = int(info.nmant)
    drawn = 8 if mantissa < 8 else width
    words = raw_bits(key, drawn, shape)
    unsigned = dtypes.dtype(f"uint{width}")
    words = linear.convert(words, unsigned)
    words = bitwise.shift_right_logical(words, scalar_like(words, drawn - mantissa))
    words = el.or_(words, scalar_like(words, int.from_bytes(to_bytes(from_flat([1.0], (), dtype)), "little")))
    floats = bitwise.bitcast(words, dtype)
    floats = el.sub(floats, scalar_like(floats, 1))
    out = el.add(el.mul(floats, el.sub(maxval, minval)), minval)
    return el.max_(minval, out)


@takes_out_sharding
def uniform(
    key: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Uniform numbers in [minval, maxval).

    Args:
        key: random key, one or an array of them under vmap.
        shape: int or sequence of ints, the shape of the result.
        dtype: dtype of floats; the initializer's own default.
        minval: array of floats that broadcasts to the shape: the lower bound.
        maxval: array of floats that broadcasts to the shape: the upper bound, which does not occur.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Raises:
        ValueError: for a dtype that is no float, or bounds that do not broadcast to the shape.

    Example:
        >>> import weft
        >>> x = weft.random.uniform(weft.random.key(0), (3,))
        >>> bool((x >= 0).all() and (x < 1).all())
        True
    """
    key, _ = as_key("uniform", key)
    minval, maxval = operand("uniform", minval), operand("uniform", maxval)
    return _uniform(
        key, minval, maxval, shape=_shape(shape, minval, maxval, name="uniform"), dtype=_float("uniform", dtype)
    )


def _typed(value: complex, dt: ElementType) -> TypedScalar:
    """A number of a dtype, rounded."""
    return linear.convert(value, dt)


@inner_jit(name="_normal_real", static_argnums=(1, 2))
def _normal_real(key: Value, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    lo = _after(-1.0, dtype)
    u = _uniform(key, _typed(lo, dtype), _typed(1.0, dtype), shape=shape, dtype=dtype)
    return el.mul(_typed(math.sqrt(2), dtype), transcendental.erf_inv(u))


def _after(value: float, dt: ElementType) -> float:
    """The number of dtype `dt` next to -1 in the direction of 0."""
    return value + 2.0 ** -(int(finfo(dt).nmant) + 1)


@inner_jit(name="_normal", static_argnums=(1, 2))
def _normal(key: Value, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    if not dtypes.is_complex(dtype):
        return _normal_real(key, shape, dtype)
    a, b = halves(key)
    re, im = [linear.convert(_normal_real(k, shape, dtypes.real_of(dtype)), dtype) for k in (a, b)]
    out = el.add(re, el.mul(_typed(1j, dtype), im))
    return el.div(out, _typed(complex(math.sqrt(2)), dtype))


@takes_out_sharding
def normal(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: OutSharding = None
) -> Array:
    """Numbers of the standard normal distribution.

    Args:
        key: random key, one or an array of them under vmap.
        shape: int or sequence of ints, the shape of the result.
        dtype: dtype of floats or complex numbers; None for the default floats.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Raises:
        ValueError: for another dtype.

    Source: √2 times the inverse error function of a uniform number (Giles, "Approximating the erfinv function", 2012).

    Example:
        >>> import weft
        >>> weft.random.normal(weft.random.key(0), (2, 3)).shape
        (2, 3)
    """
    key, _ = as_key("normal", key)
    return _normal(key, canonical_shape(shape), _float("normal", dtype, True))


@inner_jit(name="_truncated_normal", static_argnums=(3, 4))
def _truncated_normal(key: Value, lower: Value, upper: Value, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    lower, upper = [linear.convert(v, dtype) for v in (lower, upper)]
    root = _typed(math.sqrt(2), dtype)
    a, b = transcendental.erf(el.div(lower, root)), transcendental.erf(el.div(upper, root))
    out = el.mul(root, transcendental.erf_inv(_uniform(key, a, b, shape=shape, dtype=dtype)))
    # rounding may reach the bounds themselves, which are excluded
    lo = el.nextafter(linear.stop_gradient_p.bind(lower), _typed(math.inf, dtype))
    hi = el.nextafter(linear.stop_gradient_p.bind(upper), _typed(-math.inf, dtype))
    return ufuncs._clip(
        out,
        *[shapes.expand_dims(v, tuple(range(len(shape) - len(shape_of(v))))) if shape_of(v) else v for v in (lo, hi)],
    )


@takes_out_sharding
def truncated_normal(
    key: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Normal numbers between two bounds.

    Args:
        key: random key, one or an array of them under vmap.
        lower: array of floats: the lower bound.
        upper: array of floats that broadcasts with lower: the upper bound.
        shape: @shape; None for that to which the parameters broadcast.
        dtype: dtype of floats; the initializer's own default.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Raises:
        ValueError: for a dtype that is no float, or a shape that does not fit.

    Source: inversion by the error function and its inverse (Devroye, "Non-uniform random variate generation", 1986,
    II.2).

    Example:
        >>> import weft
        >>> weft.random.truncated_normal(weft.random.key(0), -2., 2., (3,)).shape
        (3,)
    """
    key, _ = as_key("truncated_normal", key)
    lower, upper = operand("truncated_normal", lower), operand("truncated_normal", upper)
    return _truncated_normal(
        key, lower, upper, _shape(shape, lower, upper, name="truncated_normal"), _float("truncated_normal", dtype)
    )


@inner_jit(name="_randint", static_argnums=(3, 4))
def _randint(key: Value, minval: Value, maxval: Value, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    info, width = iinfo(dtype), dtypes.bits(dtype)
    lo, hi = int(info.min), int(info.max)
    given = iinfo(dtype_of(maxval))
    bound = lambda v: TypedScalar(v, shaped((), dtype_of(maxval)))
    top = bound(min(max(hi, int(given.min)), int(given.max)))
    beyond = el.gt(maxval, top)
    limits = [
        TypedScalar(min(max(v, int(i.min)), int(i.max)), shaped((), dtype_of(x)))
        for x in (minval, maxval)
        for i in (iinfo(dtype_of(x)),)
        for v in (lo, hi)
    ]
    minval = linear.convert(ufuncs._clip(minval, *limits[:2]), dtype)
    maxval = linear.convert(ufuncs._clip(maxval, *limits[2:]), dtype)
    grow = lambda v: (
        linear.broadcast_in_dim(
            v,
            (1,) * (len(shape) - len(shape_of(v))) + shape_of(v),
            tuple(range(len(shape) - len(shape_of(v)), len(shape))),
        )
        if shape
        else v
    )
    minval, maxval, beyond = grow(minval), grow(maxval), grow(beyond) if shape_of(beyond) else beyond
    k1, k2 = halves(key)
    unsigned = dtypes.dtype(f"uint{width}")
    high, low = raw_bits(k1, width, shape), raw_bits(k2, width, shape)
    span = linear.convert(el.sub(maxval, minval), unsigned)
    span = el.select_n_p.bind(el.le(maxval, minval), span, linear.full(shape_of(span), 1, unsigned))
    span = el.select_n_p.bind(
        linear.broadcast_to_rank_shape(el.and_(beyond, el.gt(maxval, minval)), shape_of(span)),
        span,
        el.add(span, scalar_like(span, 1)),
    )
    # 2**width mod span, from its square root so that it fits
    factor = el.rem(scalar_like(span, 1 << (width // 2)), span)
    factor = el.rem(el.mul(factor, factor), span)
    offset = el.add(el.mul(el.rem(high, span), factor), el.rem(low, span))
    return el.add(minval, linear.convert(el.rem(offset, span), dtype))


@takes_out_sharding
def randint(
    key: ArrayLike,
    shape: Shape,
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Uniform integers in [minval, maxval).

    Args:
        key: random key, one or an array of them under vmap.
        shape: int or sequence of ints, the shape of the result.
        minval: array of integers that broadcasts to the shape: the lower bound.
        maxval: array of integers that broadcasts to the shape: the upper bound, which does not occur.
        dtype: dtype of integers; None for the default one.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Raises:
        TypeError: for a dtype that is no integer.

    Example:
        >>> import weft
        >>> x = weft.random.randint(weft.random.key(0), (5,), 0, 3)
        >>> bool((x < 3).all())
        True
    """
    key, _ = as_key("randint", key)
    dt = dtypes.canonicalize(int if dtype is None else dtype)
    if not dtypes.is_int(dt):
        raise TypeError(f"randint only accepts integer dtypes, got {dtypes.name(dt)}.")
    minval, maxval = [
        v if dtypes.is_int(get_aval(v).dtype) else linear.convert(v, dtypes.canonicalize(int))
        for v in (operand("randint", minval), operand("randint", maxval))
    ]
    shape = _shape(shape, minval, maxval, name="randint")
    if dtypes.bits(dt) < 32:  # drawn as int32 within the limits of the dtype
        info = iinfo(dt)
        lo = ufuncs._clip(on_device(linear.convert(minval, dtypes.int32)), int(info.min), int(info.max))
        hi = ufuncs._clip(on_device(linear.convert(maxval, dtypes.int32)), int(info.min), int(info.max) + 1)
        return linear.convert(_randint(key, lo, hi, shape, dtypes.int32), dt)
    return _randint(key, minval, maxval, shape, dt)


def _tiny(dt: ElementType) -> float:
    return float(finfo(dt).tiny)


def _two_uniforms(key: Value, shape: tuple[Size, ...], dtype: ElementType) -> tuple[Value, Value]:
    """(leading bits, bits behind them) of uniform numbers in [0, 1) of twice the precision."""
    pair = _uniform(key, minval=0.0, maxval=1.0, shape=(2, *shape), dtype=dtype)
    return pair[0], el.mul(scalar_like(pair, float(finfo(dtype).eps)), pair[1])
