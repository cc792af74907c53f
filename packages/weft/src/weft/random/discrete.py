"""Choices, permutations and distributions of integers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..base import dtypes
from ..base.dtypes import ElementType
from ..runtime.jit import inner_jit
from ..core.trace import Tracer, get_aval
from ..lax.common import canonical_axis, canonical_shape, on_device, operand, static_int
from ..numpy import reductions, cumulative, sorting, taking, ufuncs
from ..numpy.util import broadcast_shapes, broadcast_to, promote_inexact
from ..primitives import elementwise as el, transcendental
from ..primitives import linear
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..primitives.shape import iota
from ..primitives.sort import sort_p, top_k_p
from ..typing import Array, ArrayLike, DTypeLike, OutSharding, Shape
from ..transforms.auto_axes import takes_out_sharding
from .keys import as_key, halves, raw_bits
from .continuous import gumbel
from .sampling import _shape, _two_uniforms, _typed, _uniform, randint, uniform

if TYPE_CHECKING:
    from ..base.avals import Size
    from ..core.types import Value


__all__ = ["bernoulli", "categorical", "choice", "geometric", "permutation", "rademacher"]


@inner_jit(name="_shuffle", static_argnums=(2,))
def _shuffle(key: Value, x: Value, axis: int) -> Value:
    """Shuffles by sorting random words, repeatedly, so that ties have no effect."""
    rounds = math.ceil(3 * math.log(max(1, math.prod(shape_of(x)))) / math.log(2**32 - 1))
    for _ in range(rounds):
        key, sub = halves(key)
        _, x = sort_p.bind(raw_bits(sub, 32, shape_of(x)), x, dimension=axis, is_stable=True, num_keys=1)
    return x


@takes_out_sharding
def permutation(
    key: ArrayLike, x: int | ArrayLike, axis: int = 0, independent: bool = False, *, out_sharding: OutSharding = None
) -> Array:
    """The numbers 0 … x-1, or the slices of an array along an axis, in random order.

    Args:
        key: random key, one or an array of them under vmap.
        x: int, or array of any dtype.
        axis: int, the axis; negative ones count from the end.
        independent: bool: each vector along the axis in an order of its own.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of integers, shape (x,), or of the dtype and shape of the array x.

    Raises:
        TypeError: `x` is a scalar that is not an integer.

    Example:
        >>> import weft
        >>> sorted(weft.random.permutation(weft.random.key(0), 4).tolist())
        [0, 1, 2, 3]
    """
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

    Args:
        key: random key, one or an array of them under vmap.
        a: int, or array of any dtype.
        shape: int or sequence of ints, the shape of the result.
        replace: bool: elements may come several times.
        p: array of floats, one for each slice; None for all alike.
        axis: int, the axis of a whose slices are drawn.
        mode: 'low' or 'high': how many bits are drawn; None for the default.

    Returns:
        array of the dtype of a; `shape` stands in place of the axis.

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
        return linear.full((*shape, *rest), 0, dtypes.canonicalize(dtypes.int64) if whole else dtype_of(a))
    if n <= 0:
        raise ValueError("a must be greater than 0 unless no samples are taken.")
    if not replace and draws > n:
        raise ValueError(f"Cannot take a larger sample ({draws}) than population ({n}) when 'replace=False'.")
    pick = (
        (lambda i: linear.convert(i, dtypes.canonicalize(dtypes.int64)))
        if whole
        else (lambda i: taking.take(a, i, axis))
    )
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
        total = cumulative.cumsum(p)
        r = ufuncs.multiply(total[-1], ufuncs.subtract(1, uniform(key, shape, dtype=dtype_of(p))))
        return pick(sorting.searchsorted(total, r))
    scores = el.add(gumbel(key, (n,), dtype_of(p), mode), transcendental.log(p))
    return pick(linear.reshape(top_k_p.bind(scores, k=draws, axis=0)[1], shape))


@inner_jit(name="_bernoulli", static_argnums=(2, 3))
def _bernoulli(key: Value, p: Value, shape: tuple[Size, ...], fine: bool = False) -> Value:
    dt = dtype_of(p)
    p = linear.convert(p, dt)
    if fine:
        high, low = _two_uniforms(key, shape, dt)
        return el.lt(low, el.sub(broadcast_to(p, shape) if shape_of(p) else p, high))
    return el.lt(_uniform(key, 0.0, 1.0, shape=shape, dtype=dt), p if not shape_of(p) else broadcast_to(p, shape))


@takes_out_sharding
def bernoulli(
    key: ArrayLike,
    p: ArrayLike = 0.5,
    shape: Shape | None = None,
    mode: str = "low",
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """True with probability `p`; mode 'high' draws twice as many bits, for small probabilities.

    Args:
        key: random key, one or an array of them under vmap.
        p: array of floats from 0 to 1.
        shape: int or sequence of ints, the shape of the result; None for that of p.
        mode: 'low' or 'high': how many bits are drawn.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of booleans, of that shape.

    Raises:
        ValueError: for a shape to which p does not broadcast, or another mode.

    Example:
        >>> import weft
        >>> weft.random.bernoulli(weft.random.key(0), 0.3, (3,)).dtype
        dtype('bool')
    """
    if mode not in ("low", "high"):
        raise ValueError(f"bernoulli: mode takes 'low' or 'high', got {mode!r}.")
    key, _ = as_key("bernoulli", key)
    p = operand("bernoulli", p)
    if not dtypes.is_float(get_aval(p).dtype):
        raise TypeError(f"bernoulli probability `p` must have a floating dtype, got {get_aval(p)}.")
    return _bernoulli(key, linear.convert(p, get_aval(p).dtype), _shape(shape, p, name="bernoulli"), mode == "high")


@takes_out_sharding
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

    Args:
        key: random key, one or an array of them under vmap.
        logits: array of floats, any shape with the axis.
        axis: int, the axis; negative ones count from the end.
        shape: int or sequence of ints, the shape of the result, whose last axes are those of the logits without the
            axis; None for these alone.
        replace: bool: an index may come several times.
        mode: 'low' or 'high': how many bits are drawn; None for the default.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of integers, of that shape.

    Raises:
        ValueError: if the shape does not fit, or more is asked for than there is without replacement.

    Source: the largest of logits plus Gumbel noise (Gumbel, "Statistical theory of extreme values", 1954).

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.random.categorical(weft.random.key(0), jnp.zeros((4, 3))).shape
        (4,)
    """
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


@takes_out_sharding
def rademacher(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: OutSharding = None
) -> Array:
    """-1 or 1 with equal probability.

    Args:
        key: random key, one or an array of them under vmap.
        shape: int or sequence of ints, the shape of the result.
        dtype: dtype of integers or floats; None for the default integers.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Example:
        >>> import weft
        >>> set(weft.random.rademacher(weft.random.key(0), (9,)).tolist()) <= {-1, 1}
        True
    """
    key, _ = as_key("rademacher", key)
    return _rademacher(key, canonical_shape(shape), dtypes.canonicalize(int if dtype is None else dtype))


@inner_jit(name="_geometric", static_argnums=(2, 3))
def _geometric(key: Value, p: Value, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    u = _uniform(key, 0.0, 1.0, shape=shape, dtype=dtype_of(p))
    u = ufuncs.where_jit(el.eq(u, scalar_like(u, 0)), 1, u)
    out = el.floor(el.div(transcendental.log(u), broadcast_to(transcendental.log1p(el.neg(p)), shape)))
    return linear.convert(el.add(out, scalar_like(out, 1)), dtype)


@takes_out_sharding
def geometric(
    key: ArrayLike,
    p: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """The number of trials up to the first success of probability `p`.

    Args:
        key: random key, one or an array of them under vmap.
        p: array of floats, in (0, 1].
        shape: @shape; None for that to which the parameters broadcast.
        dtype: dtype of integers; None for the default one.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Raises:
        ValueError: for a dtype that is no integer, or a shape that does not fit.

    Source: inversion (Devroye, "Non-uniform random variate generation", 1986, X.2).

    Example:
        >>> import weft
        >>> weft.random.geometric(weft.random.key(0), .5, (3,)).shape
        (3,)
    """
    key, _ = as_key("geometric", key)
    (p,) = promote_inexact("geometric", p)
    dt = dtypes.canonicalize(int if dtype is None else dtype)
    if not dtypes.is_int(dt):
        raise ValueError(f"geometric: dtype must be an integer one, got {dtypes.name(dt)}.")
    return _geometric(key, linear.convert(p, get_aval(p).dtype), _shape(shape, p, name="geometric"), dt)
