"""Random numbers from keys. The same key, shape and dtype give JAX's numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable

from ..base import dtypes
from ..base.avals import shaped
from ..base.dtypes import ElementType
from ..runtime.jit import inner_jit
from ..core.jaxpr import TypedScalar
from ..core.trace import Tracer, get_aval
from ..base.errors import at_user_line
from ..base.host import from_flat, to_bytes
from ..lax.common import canonical_axis, canonical_shape, on_device, only, operand, static_int
from ..numpy import reductions, shapes, sorting, taking, ufuncs
from ..numpy.linalg import norm
from ..numpy.util import broadcast_shapes, broadcast_to, promote_inexact
from ..primitives import elementwise as el
from ..primitives import linear
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..primitives.shape import iota
from ..primitives.sort import sort_p, top_k_p
from ..typing import Array, ArrayLike, DTypeLike, OutSharding, Shape
from .keys import as_key, halves, raw_bits

if TYPE_CHECKING:
    from ..base.avals import Size
    from ..core.types import Value

__all__ = [
    "bernoulli",
    "categorical",
    "cauchy",
    "choice",
    "exponential",
    "geometric",
    "gumbel",
    "laplace",
    "logistic",
    "lognormal",
    "maxwell",
    "normal",
    "pareto",
    "permutation",
    "rademacher",
    "randint",
    "rayleigh",
    "triangular",
    "truncated_normal",
    "uniform",
    "weibull_min",
]


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
    """The shape of the result: the one asked for, which parameters broadcast to, or theirs."""
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
    info, width = dtypes.finfo(dtype), dtypes.bits(dtype)
    mantissa = int(info.nmant)
    drawn = 8 if mantissa < 8 else width
    words = raw_bits(key, drawn, shape)
    unsigned = dtypes.dtype(f"uint{width}")
    words = linear.convert(words, unsigned)
    words = el.shift_right_logical(words, scalar_like(words, drawn - mantissa))
    words = el.or_(words, scalar_like(words, int.from_bytes(to_bytes(from_flat([1.0], (), dtype)), "little")))
    floats = el.bitcast(words, dtype)
    floats = el.sub(floats, scalar_like(floats, 1))
    out = el.add(el.mul(floats, el.sub(maxval, minval)), minval)
    return el.max_(minval, out)


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

    Raises:
        ValueError: for a dtype that is no float, or bounds that do not broadcast to the shape.

    Example:
        >>> import weft
        >>> x = weft.random.uniform(weft.random.key(0), (3,))
        >>> bool((x >= 0).all() and (x < 1).all())
        True
    """
    only("uniform", out_sharding=out_sharding)
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
    return el.mul(_typed(math.sqrt(2), dtype), el.erf_inv(u))


def _after(value: float, dt: ElementType) -> float:
    """The number of dtype `dt` next to -1 in the direction of 0."""
    return value + 2.0 ** -(int(dtypes.finfo(dt).nmant) + 1)


@inner_jit(name="_normal", static_argnums=(1, 2))
def _normal(key: Value, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    if not dtypes.is_complex(dtype):
        return _normal_real(key, shape, dtype)
    a, b = halves(key)
    re, im = [linear.convert(_normal_real(k, shape, dtypes.real_of(dtype)), dtype) for k in (a, b)]
    out = el.add(re, el.mul(_typed(1j, dtype), im))
    return el.div(out, _typed(complex(math.sqrt(2)), dtype))


def normal(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: OutSharding = None
) -> Array:
    """Numbers of the standard normal distribution.

    Example:
        >>> import weft
        >>> weft.random.normal(weft.random.key(0), (2, 3)).shape
        (2, 3)
    """
    only("normal", out_sharding=out_sharding)
    key, _ = as_key("normal", key)
    return _normal(key, canonical_shape(shape), _float("normal", dtype, True))


@inner_jit(name="_truncated_normal", static_argnums=(3, 4))
def _truncated_normal(key: Value, lower: Value, upper: Value, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    lower, upper = [linear.convert(v, dtype) for v in (lower, upper)]
    root = _typed(math.sqrt(2), dtype)
    a, b = el.erf(el.div(lower, root)), el.erf(el.div(upper, root))
    out = el.mul(root, el.erf_inv(_uniform(key, a, b, shape=shape, dtype=dtype)))
    # rounding may reach the bounds themselves, which are excluded
    lo = el.nextafter(linear.stop_gradient_p.bind(lower), _typed(math.inf, dtype))
    hi = el.nextafter(linear.stop_gradient_p.bind(upper), _typed(-math.inf, dtype))
    return ufuncs._clip(
        out,
        *[shapes.expand_dims(v, tuple(range(len(shape) - len(shape_of(v))))) if shape_of(v) else v for v in (lo, hi)],
    )


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

    Example:
        >>> import weft
        >>> weft.random.truncated_normal(weft.random.key(0), -2., 2., (3,)).shape
        (3,)
    """
    only("truncated_normal", out_sharding=out_sharding)
    key, _ = as_key("truncated_normal", key)
    lower, upper = operand("truncated_normal", lower), operand("truncated_normal", upper)
    return _truncated_normal(
        key, lower, upper, _shape(shape, lower, upper, name="truncated_normal"), _float("truncated_normal", dtype)
    )


@inner_jit(name="_randint", static_argnums=(3, 4))
def _randint(key: Value, minval: Value, maxval: Value, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    info, width = dtypes.iinfo(dtype), dtypes.bits(dtype)
    lo, hi = int(info.min), int(info.max)
    given = dtypes.iinfo(dtype_of(maxval))
    bound = lambda v: TypedScalar(v, shaped((), dtype_of(maxval)))
    top = bound(min(max(hi, int(given.min)), int(given.max)))
    beyond = el.gt(maxval, top)
    limits = [
        TypedScalar(min(max(v, int(i.min)), int(i.max)), shaped((), dtype_of(x)))
        for x in (minval, maxval)
        for i in (dtypes.iinfo(dtype_of(x)),)
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

    Raises:
        TypeError: for a dtype that is no integer.

    Example:
        >>> import weft
        >>> x = weft.random.randint(weft.random.key(0), (5,), 0, 3)
        >>> bool((x < 3).all())
        True
    """
    only("randint", out_sharding=out_sharding)
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
        info = dtypes.iinfo(dt)
        lo = ufuncs._clip(on_device(linear.convert(minval, dtypes.int32)), int(info.min), int(info.max))
        hi = ufuncs._clip(on_device(linear.convert(maxval, dtypes.int32)), int(info.min), int(info.max) + 1)
        return linear.convert(_randint(key, lo, hi, shape, dtypes.int32), dt)
    return _randint(key, minval, maxval, shape, dt)


@inner_jit(name="_shuffle", static_argnums=(2,))
def _shuffle(key: Value, x: Value, axis: int) -> Value:
    """Sorts by random words, often enough that ties do not matter."""
    rounds = math.ceil(3 * math.log(max(1, math.prod(shape_of(x)))) / math.log(2**32 - 1))
    for _ in range(rounds):
        key, sub = halves(key)
        _, x = sort_p.bind(raw_bits(sub, 32, shape_of(x)), x, dimension=axis, is_stable=True, num_keys=1)
    return x


def permutation(
    key: ArrayLike, x: int | ArrayLike, axis: int = 0, independent: bool = False, *, out_sharding: OutSharding = None
) -> Array:
    """The numbers 0 … x-1, or the slices of an array along an axis, in random order.

    Example:
        >>> import weft
        >>> sorted(weft.random.permutation(weft.random.key(0), 4).tolist())
        [0, 1, 2, 3]
    """
    only("permutation", out_sharding=out_sharding)
    key, _ = as_key("permutation", key)
    x = operand("permutation", x)
    shape = shape_of(x)
    if not shape:
        if not dtypes.is_int(get_aval(x).dtype):
            raise TypeError("permutation of a scalar takes an integer.")
        return _shuffle(key, iota(dtypes.canonicalize(int), (max(0, static_int("x", x)),), 0), 0)
    axis = canonical_axis(axis, len(shape))
    if independent or len(shape) == 1:
        return _shuffle(key, on_device(x), axis)
    order = _shuffle(key, iota(dtypes.int32, (shape[axis],), 0), 0)
    return taking.take(x, order, axis, unique_indices=True)


def choice(
    key: ArrayLike,
    a: int | ArrayLike,
    shape: Shape = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Random elements of `a` (an array, or a number n for 0 … n-1), with probabilities `p`.

    Raises:
        ValueError: if there is nothing to choose from, or more is asked for than there is without replacement.

    Example:
        >>> import weft
        >>> weft.random.choice(weft.random.key(0), 5, (3,)).shape
        (3,)
    """
    if not isinstance(shape, (list, tuple)):
        raise TypeError(f"shape argument of weft.random.choice must be a sequence of integers, got {shape}.")
    shape = canonical_shape(shape)
    key, _ = as_key("choice", key)
    given: Any = operand("choice", a)
    a = given
    whole = not shape_of(a)
    axis = 0 if whole else canonical_axis(axis, len(shape_of(a)))
    if whole and dtypes.is_float(get_aval(a).dtype) and not isinstance(a, Tracer):
        a = int(given)
    n = static_int("a", a) if whole else shape_of(a)[axis]
    draws = math.prod(shape)
    if draws == 0:
        rest = () if whole else tuple(m for d, m in enumerate(shape_of(a)) if d != axis)
        return linear.full((*shape, *rest), 0, dtypes.int32 if whole else dtype_of(a))
    if n <= 0:
        raise ValueError("a must be greater than 0 unless no samples are taken.")
    if not replace and draws > n:
        raise ValueError(f"Cannot take a larger sample ({draws}) than population ({n}) when 'replace=False'.")
    pick = (lambda i: i) if whole else (lambda i: taking.take(a, i, axis))
    if p is None:
        if replace:
            return pick(randint(key, shape, 0, n))
        order = permutation(key, n if whole else a, axis)
        order = order[:draws] if whole else taking.take(order, iota(dtypes.int32, (draws,), 0), axis, mode="clip")
        rest = () if whole else shape_of(a)
        return (
            linear.reshape(order, shape) if whole else linear.reshape(order, (*rest[:axis], *shape, *rest[axis + 1 :]))
        )
    (p,) = promote_inexact("choice", p)
    p = on_device(p)
    if shape_of(p) != (n,):
        raise ValueError(
            f"p must be None or a 1D vector with the same size as a.shape[axis]: p has shape {shape_of(p)}, the size is"
            f" {n}."
        )
    if replace:
        total = reductions.cumsum(p)
        r = ufuncs.multiply(total[-1], ufuncs.subtract(1, uniform(key, shape, dtype=dtype_of(p))))
        return pick(sorting.searchsorted(total, r))
    scores = el.add(gumbel(key, (n,), dtype_of(p), mode), el.log(p))
    return pick(linear.reshape(top_k_p.bind(scores, k=draws, axis=0)[1], shape))


@inner_jit(name="_bernoulli", static_argnums=(2, 3))
def _bernoulli(key: Value, p: Value, shape: tuple[Size, ...], fine: bool = False) -> Value:
    dt = dtype_of(p)
    p = linear.convert(p, dt)
    if fine:
        high, low = _two_uniforms(key, shape, dt)
        return el.lt(low, el.sub(broadcast_to(p, shape) if shape_of(p) else p, high))
    return el.lt(_uniform(key, 0.0, 1.0, shape=shape, dtype=dt), p if not shape_of(p) else broadcast_to(p, shape))


def bernoulli(
    key: ArrayLike,
    p: ArrayLike = 0.5,
    shape: Shape | None = None,
    mode: str = "low",
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """True with probability `p`; mode 'high' draws twice as many bits, for small probabilities.

    Example:
        >>> import weft
        >>> weft.random.bernoulli(weft.random.key(0), 0.3, (3,)).dtype
        dtype('bool')
    """
    only("bernoulli", out_sharding=out_sharding)
    if mode not in ("low", "high"):
        raise ValueError(f"bernoulli: mode takes 'low' or 'high', got {mode!r}.")
    key, _ = as_key("bernoulli", key)
    p = operand("bernoulli", p)
    if not dtypes.is_float(get_aval(p).dtype):
        raise TypeError(f"bernoulli probability `p` must have a floating dtype, got {get_aval(p)}.")
    return _bernoulli(key, linear.convert(p, get_aval(p).dtype), _shape(shape, p, name="bernoulli"), mode == "high")


def _tiny(dt: ElementType) -> float:
    return float(dtypes.finfo(dt).tiny)


@inner_jit(name="_exponential", static_argnums=(1, 2))
def _exponential(key: Any, shape: Any, dtype: Any) -> Array:
    return el.neg(el.log1p(el.neg(_uniform(key, 0.0, 1.0, shape=shape, dtype=dtype))))


@inner_jit(name="_laplace", static_argnums=(1, 2))
def _laplace(key: Any, shape: Any, dtype: Any) -> Array:
    u = _uniform(key, _typed(-1.0 + float(dtypes.finfo(dtype).epsneg), dtype), 1.0, shape=shape, dtype=dtype)
    return el.mul(el.sign(u), el.log1p(el.neg(el.abs_(u))))


@inner_jit(name="_cauchy", static_argnums=(1, 2))
def _cauchy(key: Any, shape: Any, dtype: Any) -> Array:
    u = _uniform(key, _typed(float(dtypes.finfo(dtype).eps), dtype), 1.0, shape=shape, dtype=dtype)
    return el.tan(el.mul(scalar_like(u, math.pi), el.sub(u, scalar_like(u, 0.5))))


@inner_jit(name="_logistic", static_argnums=(1, 2))
def _logistic(key: Any, shape: Any, dtype: Any) -> Array:
    u = _uniform(key, _typed(_tiny(dtype), dtype), 1.0, shape=shape, dtype=dtype)
    return el.sub(el.log(u), el.log1p(el.neg(u)))


@inner_jit(name="_gumbel", static_argnums=(1, 2))
def _gumbel(key: Any, shape: Any, dtype: Any) -> Array:
    # jaxprs have keyword arguments in the order of their names
    return el.neg(
        el.log(el.neg(el.log(_uniform(key, minval=_typed(_tiny(dtype), dtype), maxval=1.0, shape=shape, dtype=dtype))))
    )


def _by_uniform(
    name: str,
    run: Callable[[Any, Any, Any], Array],
    key: ArrayLike,
    shape: Shape,
    dtype: DTypeLike | None,
    out_sharding: OutSharding,
) -> Array:
    """Numbers of a distribution that is a function of a uniform number."""
    only(name, out_sharding=out_sharding)
    key, _ = as_key(name, key)
    return run(key, canonical_shape(shape), _float(name, dtype))


def exponential(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: OutSharding = None
) -> Array:
    """Numbers of the exponential distribution.

    Example:
        >>> import weft
        >>> weft.random.exponential(weft.random.key(0), (2,)).shape
        (2,)
    """
    return _by_uniform("exponential", _exponential, key, shape, dtype, out_sharding)


def laplace(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: OutSharding = None
) -> Array:
    """Numbers of the Laplace distribution.

    Example:
        >>> import weft
        >>> weft.random.laplace(weft.random.key(0), (2,)).shape
        (2,)
    """
    return _by_uniform("laplace", _laplace, key, shape, dtype, out_sharding)


def cauchy(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: OutSharding = None
) -> Array:
    """Numbers of the Cauchy distribution.

    Example:
        >>> import weft
        >>> weft.random.cauchy(weft.random.key(0), (2,)).shape
        (2,)
    """
    return _by_uniform("cauchy", _cauchy, key, shape, dtype, out_sharding)


def logistic(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: OutSharding = None
) -> Array:
    """Numbers of the logistic distribution.

    Example:
        >>> import weft
        >>> weft.random.logistic(weft.random.key(0), (2,)).shape
        (2,)
    """
    return _by_uniform("logistic", _logistic, key, shape, dtype, out_sharding)


def gumbel(
    key: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    mode: str | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Numbers of the standard Gumbel distribution; mode 'high' draws twice as many bits, for more of the rare large
    ones.

    Example:
        >>> import weft
        >>> weft.random.gumbel(weft.random.key(0), (2,)).shape
        (2,)
    """
    if mode not in (None, "low", "high"):
        raise ValueError(f"gumbel: mode takes 'low' or 'high', got {mode!r}.")
    if mode != "high":
        return _by_uniform("gumbel", _gumbel, key, shape, dtype, out_sharding)
    only("gumbel", out_sharding=out_sharding)
    return _high_gumbel(as_key("gumbel", key)[0], canonical_shape(shape), _float("gumbel", dtype))


def _two_uniforms(key: Value, shape: tuple[Size, ...], dtype: ElementType) -> tuple[Value, Value]:
    """(leading bits, bits behind them) of uniform numbers in [0, 1) of twice the precision."""
    pair = _uniform(key, minval=0.0, maxval=1.0, shape=(2, *shape), dtype=dtype)
    return pair[0], el.mul(scalar_like(pair, float(dtypes.finfo(dtype).eps)), pair[1])


@inner_jit(name="_gumbel", static_argnums=(1, 2))
def _high_gumbel(key: Value, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    """From numbers near 0 that have all their bits, so that the largest results are as fine as the others."""
    high, low = _two_uniforms(key, shape, dtype)
    fine = el.add(el.add(high, low), scalar_like(high, _tiny(dtype)))
    u = ufuncs.where_jit(el.ge(high, scalar_like(high, 0.5)), high, fine)
    return el.neg(el.log(el.neg(el.log1p(el.neg(u)))))


def categorical(
    key: ArrayLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: Shape | None = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Indices along an axis with probabilities proportional to exp(logits).

    Raises:
        ValueError: if the shape does not fit, or more is asked for than there is without replacement.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.random.categorical(weft.random.key(0), jnp.zeros((4, 3))).shape
        (4,)
    """
    only("categorical", out_sharding=out_sharding)
    key, _ = as_key("categorical", key)
    logits = on_device(operand("categorical", logits))
    if not dtypes.is_inexact(dtype_of(logits)):
        raise ValueError(f"categorical: logits must be floats, got {get_aval(logits)}; convert them with astype.")
    rank = len(shape_of(logits))
    axis = canonical_axis(axis, rank)
    batch = tuple(n for d, n in enumerate(shape_of(logits)) if d != axis)
    shape = batch if shape is None else canonical_shape(shape)
    lead = shape[: len(shape) - len(batch)]
    if broadcast_shapes([shape, batch]) != shape:
        raise ValueError(f"categorical: the batch shape {batch} of the logits does not broadcast to the shape {shape}.")
    if replace:
        wide = list(shape[len(lead) :])
        at = axis - rank
        wide.insert(len(wide) + 1 + at, shape_of(logits)[axis])
        noise = gumbel(key, (*lead, *wide), dtype_of(logits), mode)
        scores = el.add(noise, linear.expand_dims(logits, tuple(range(len(lead)))) if lead else logits)
        return reductions.argmax(scores, axis=at)
    scores = el.add(logits, gumbel(key, shape_of(logits), dtype_of(logits), mode))
    k = math.prod(lead)
    if k > shape_of(logits)[axis]:
        raise ValueError(f"categorical without replacement: {k} samples of {shape_of(logits)[axis]}.")
    order = top_k_p.bind(linear.moveaxis(scores, axis, rank - 1), k=k, axis=rank - 1)[1]
    return linear.reshape(linear.moveaxis(order, rank - 1, 0), shape)


@inner_jit(name="_rademacher", static_argnums=(1, 2))
def _rademacher(key: Value, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    out = linear.convert(_bernoulli(key, _typed(0.5, dtypes.canonicalize(float)), shape), dtype)
    if dtypes.is_bool(dtype):  # -1 and 1 are both true
        return linear.full(shape, True, dtype)
    return el.sub(el.mul(scalar_like(out, 2), out), scalar_like(out, 1))


def rademacher(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: OutSharding = None
) -> Array:
    """-1 or 1 with equal probability.

    Example:
        >>> import weft
        >>> set(weft.random.rademacher(weft.random.key(0), (9,)).tolist()) <= {-1, 1}
        True
    """
    only("rademacher", out_sharding=out_sharding)
    key, _ = as_key("rademacher", key)
    return _rademacher(key, canonical_shape(shape), dtypes.canonicalize(int if dtype is None else dtype))


@inner_jit(name="_pareto", static_argnums=(2, 3))
def _pareto(key: Value, b: Value, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    return el.exp(el.div(exponential(key, shape, dtype), _fit(linear.convert(b, dtype), shape)))


def _fit(x: Value, shape: tuple[Any, ...]) -> Value:
    return x if not shape_of(x) else broadcast_to(x, shape)


def pareto(
    key: ArrayLike,
    b: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Numbers of the Pareto distribution with exponent `b`.

    Example:
        >>> import weft
        >>> weft.random.pareto(weft.random.key(0), 2., (3,)).shape
        (3,)
    """
    only("pareto", out_sharding=out_sharding)
    key, _ = as_key("pareto", key)
    return _pareto(key, operand("pareto", b), _shape(shape, b, name="pareto"), _float("pareto", dtype))


@inner_jit(name="_weibull_min", static_argnums=(3, 4))
def _weibull_min(key: Value, scale: Value, concentration: Value, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    u = _uniform(key, 0, 1, shape=shape, dtype=dtype)
    power = el.div(scalar_like(u, 1), linear.convert(concentration, dtype))
    out = el.pow_(el.neg(el.log1p(el.neg(u))), _fit(power, shape))
    return el.mul(out, _fit(linear.convert(scale, dtype), shape))


def weibull_min(
    key: ArrayLike,
    scale: ArrayLike,
    concentration: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Numbers of the Weibull distribution.

    Example:
        >>> import weft
        >>> weft.random.weibull_min(weft.random.key(0), 1., 2., (3,)).shape
        (3,)
    """
    only("weibull_min", out_sharding=out_sharding)
    key, _ = as_key("weibull_min", key)
    return _weibull_min(
        key,
        operand("weibull_min", scale),
        operand("weibull_min", concentration),
        canonical_shape(shape),
        _float("weibull_min", dtype),
    )


@inner_jit(name="_rayleigh", static_argnums=(2, 3))
def _rayleigh(key: Value, scale: Value, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    u = _uniform(key, 0.0, 1.0, shape=shape, dtype=dtype)
    scale = broadcast_to(linear.convert(scale, dtype), shape)
    return el.mul(scale, el.sqrt(el.mul(el.log(u), scalar_like(u, -2))))


def rayleigh(
    key: ArrayLike,
    scale: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Numbers of the Rayleigh distribution.

    Example:
        >>> import weft
        >>> weft.random.rayleigh(weft.random.key(0), 2., (3,)).shape
        (3,)
    """
    only("rayleigh", out_sharding=out_sharding)
    key, _ = as_key("rayleigh", key)
    return _rayleigh(key, operand("rayleigh", scale), _shape(shape, scale, name="rayleigh"), _float("rayleigh", dtype))


@inner_jit(name="_geometric", static_argnums=(2, 3))
def _geometric(key: Value, p: Value, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    u = _uniform(key, 0.0, 1.0, shape=shape, dtype=dtype_of(p))
    u = ufuncs.where_jit(el.eq(u, scalar_like(u, 0)), 1, u)
    out = el.floor(el.div(el.log(u), broadcast_to(el.log1p(el.neg(p)), shape)))
    return linear.convert(el.add(out, scalar_like(out, 1)), dtype)


def geometric(
    key: ArrayLike,
    p: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """The number of trials up to the first success of probability `p`.

    Example:
        >>> import weft
        >>> weft.random.geometric(weft.random.key(0), .5, (3,)).shape
        (3,)
    """
    only("geometric", out_sharding=out_sharding)
    key, _ = as_key("geometric", key)
    (p,) = promote_inexact("geometric", p)
    dt = dtypes.canonicalize(int if dtype is None else dtype)
    if not dtypes.is_int(dt):
        raise ValueError(f"geometric: dtype must be an integer one, got {dtypes.name(dt)}.")
    return _geometric(key, linear.convert(p, get_aval(p).dtype), _shape(shape, p, name="geometric"), dt)


def triangular(
    key: ArrayLike,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Numbers of the triangular distribution on [left, right] with its peak at `mode`.

    Example:
        >>> import weft
        >>> weft.random.triangular(weft.random.key(0), 0., .5, 1., (3,)).shape
        (3,)
    """
    only("triangular", out_sharding=out_sharding)
    key, _ = as_key("triangular", key)
    dt = _float("triangular", dtype)
    shape = _shape(shape, *[operand("triangular", v) for v in (left, mode, right)], name="triangular")
    left, mode, right = [broadcast_to(linear.convert(v, dt), shape) for v in (left, mode, right)]
    fc = el.div(el.sub(mode, left), el.sub(right, left))
    u = _uniform(key, 0.0, 1.0, shape=shape, dtype=dt)
    low = el.add(left, el.sqrt(el.mul(el.mul(u, el.sub(right, left)), el.sub(mode, left))))
    high = el.sub(
        right, el.sqrt(el.mul(el.mul(el.sub(scalar_like(u, 1), u), el.sub(right, left)), el.sub(right, mode)))
    )
    return el.select_n_p.bind(el.lt(u, fc), high, low)


def lognormal(
    key: ArrayLike,
    sigma: ArrayLike = 1.0,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """exp of normal numbers with standard deviation `sigma`.

    Example:
        >>> import weft
        >>> weft.random.lognormal(weft.random.key(0), 1., (3,)).shape
        (3,)
    """
    dt = _float("lognormal", dtype)
    sigma = linear.convert(operand("lognormal", sigma), dt)
    return el.exp(el.mul(normal(key, _shape(shape, sigma, name="lognormal"), dt, out_sharding=out_sharding), sigma))


@inner_jit(name="_maxwell", static_argnums=(1, 2))
def _maxwell(key: Value, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    return norm(_normal(key, (*shape, 3), dtype), axis=-1)


def maxwell(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: OutSharding = None
) -> Array:
    """Numbers of the one-sided Maxwell distribution.

    Example:
        >>> import weft
        >>> weft.random.maxwell(weft.random.key(0), (3,)).shape
        (3,)
    """
    only("maxwell", out_sharding=out_sharding)
    key, _ = as_key("maxwell", key)
    return _maxwell(key, canonical_shape(shape), _float("maxwell", dtype))
