"""Random counts: Poisson, binomial and multinomial numbers.

Poisson: Knuth's product of uniform numbers (The Art of Computer Programming 2, 3.4.1) below 10, Hörmann's transformed
rejection PTRS ("The transformed rejection method for generating Poisson random variables", Insurance: Mathematics and
Economics 12, 1993) from there on.
Binomial: sums of geometric numbers (Devroye, Non-Uniform Random Variate Generation, X.4.3) for a mean of at most 10,
and Hörmann's BTRS ("The generation of binomial random variates", Journal of Statistical Computation and Simulation 46,
1993) above.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..base import dtypes
from ..higher_order.scan import scan
from ..higher_order.while_loop import while_loop
from ..base.errors import at_user_line
from ..lax.common import canonical_shape, on_device, operand
from ..numpy.ufuncs import _clip
from ..numpy.util import broadcast_to, promote_inexact
from ..primitives import elementwise as el, transcendental
from ..primitives import linear
from ..primitives.random_bits import random_clone_p, random_split_p
from ..primitives.reduce import cumsum
from ..primitives.rules import dtype_of, shape_of
from ..primitives.special import lgamma
from ..runtime.jit import inner_jit
from ..typing import Array, ArrayLike, DTypeLike, OutSharding, Shape
from ..transforms.auto_axes import takes_out_sharding
from .gammas import _any, parts
from .keys import as_key, key_impl
from .sampling import _float, _shape, _uniform

if TYPE_CHECKING:
    from ..base.avals import Size
    from ..core.types import Value
    from ..base.dtypes import ElementType

__all__ = ["binomial", "multinomial", "poisson"]


def _where(which: Value, x: Value, value: Value) -> Value:
    """`x` where a condition holds, and a constant elsewhere."""
    return el.select(which, x, linear.full(shape_of(x), value, dtype_of(x)))


def _reject(key: Value, propose: Callable[..., Any], shape: tuple[Size, ...], dtype: ElementType) -> Value:
    """Numbers from `propose(u, v) -> (value, accepted)` with u in [-1/2, 1/2) and v in [0, 1); the first that is
    accepted of each element.
    """

    def attempt(state: Sequence[Value]) -> tuple[Value, Value, Value]:
        key, out, done = state
        key, for_u, for_v = parts(key, 3)
        u, v = [_uniform(k, 0.0, 1.0, shape=shape, dtype=dtype) for k in (for_u, for_v)]
        value, accepted = propose(u - 0.5, v)
        return key, el.select(accepted, value, out), done | accepted

    # accepted elements are drawn again while others are not accepted yet, as in the loops of JAX
    start = (key, linear.full(shape, -1, dtype), linear.full(shape, False, dtypes.bool_))
    return while_loop(lambda s: _any(el.not_(s[2])), attempt, start)[1]


def _poisson_knuth(key: Value, lam: Value, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    def multiply(state: Sequence[Value]) -> tuple[Value, Value, Value]:
        key, k, log_product = state
        key, sub = parts(key, 2)
        k = el.select(log_product > -lam, k + 1, k)
        return key, k, log_product + transcendental.log(_uniform(sub, 0.0, 1.0, shape=shape, dtype=dtype_of(lam)))

    start = (key, linear.full(shape, 0, dtype), linear.full(shape, 0, dtype_of(lam)))
    return while_loop(lambda s: _any(s[2] > -lam), multiply, start)[1] - 1


def _poisson_rejection(key: Value, lam: Value, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    log_lam = transcendental.log(lam)
    b = 0.931 + 2.53 * transcendental.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)

    def propose(u: Value, v: Value) -> tuple[Value, Value]:
        us = 0.5 - el.abs_(u)
        k = el.floor((2 * a / us + b) * u + lam + 0.43)
        s = transcendental.log(v * inverse_alpha / (a / (us * us) + b))
        bound = -lam + k * log_lam - lgamma(k + 1)
        outside = (k < 0) | ((us < 0.013) & (v > us))
        return k, ((us >= 0.07) & (v <= v_r)) | (el.not_(outside) & (s <= bound))

    return linear.convert(_reject(key, propose, shape, dtype_of(lam)), dtype)


@inner_jit(name="_poisson", static_argnums=(2, 3))
def _poisson(key: Value, lam: Value, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    small = (lam != lam) | (lam < 10)
    knuth = _poisson_knuth(key, _where(small, lam, 0), shape, dtype)
    rejection = _poisson_rejection(random_clone_p.bind(key), _where(el.not_(small), lam, 1e5), shape, dtype)
    return _where(lam != 0, el.select(small, knuth, rejection), 0)


@takes_out_sharding
def poisson(
    key: ArrayLike,
    lam: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Integers of the Poisson distribution with mean `lam`; -1 where that is NaN or negative.

    Args:
        key: random key, one or an array of them under vmap.
        lam: array of floats, not negative.
        shape: @shape; None for that to which the parameters broadcast.
        dtype: dtype of integers; None for the default one.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Raises:
        ValueError: for a dtype that is no integer, or a shape that does not fit.
        NotImplementedError: for keys of another generator than threefry2x32. Under vmap their draws depend on each
            other, and the rejection of draws needs not end.

    Source: Knuth, "The art of computer programming" 2, 3.4.1, for small means; Hörmann, "The transformed rejection
    method for generating Poisson random variables" (1993), for others.

    Example:
        >>> import weft
        >>> int(weft.random.poisson(weft.random.key(0), 4.0)) >= 0
        True
    """
    key, _ = as_key("poisson", key)
    if (generator := key_impl(key)) != "threefry2x32":
        raise NotImplementedError(
            at_user_line(
                f"poisson is only implemented for keys of the generator threefry2x32, not {generator}. Make such a key:"
                " weft.random.key(seed, impl='threefry2x32')."
            )
        )
    dtype = dtypes.canonicalize(int if dtype is None else dtype)
    if not dtypes.is_int(dtype):
        raise ValueError(
            at_user_line(
                f"poisson: counts are integers, got the dtype {dtypes.name(dtype)}. Convert them: poisson(…).astype(…)."
            )
        )
    lam = operand("poisson", lam)
    shape = _shape(shape, lam, name="poisson")
    return _poisson(key, broadcast_to(linear.convert(lam, dtypes.float32), shape), shape, dtype)


# log k! less Stirling's approximation of it at k + 1, for k = 0 … 9
_STIRLING = [
    math.lgamma(k + 1) - ((k + 0.5) * math.log(k + 1) - (k + 1) + 0.5 * math.log(2 * math.pi)) for k in range(10)
]


def _stirling_rest(k: Value) -> Value:
    """log k! minus Stirling's approximation: from a table up to k = 9. From there on it is a constant, the series at
    k + 1 = 10, as in JAX, although the true difference falls further.
    """
    x = _clip(k, 0, 9) + 1
    rest = (1 / 12 - (1 / 360 - 1 / 1260 / (x * x)) / (x * x)) / x
    table = linear.full(shape_of(k), _STIRLING[9], dtype_of(k))
    for i in range(8, -1, -1):
        table = el.select(k < i + 1, linear.full(shape_of(k), _STIRLING[i], dtype_of(k)), table)
    return el.select(k <= 9, table, rest)


def _binomial_inversion(key: Value, n: Value, p: Value, shape: tuple[Size, ...]) -> Value:
    log_q = transcendental.log1p(-p)

    def add(state: Sequence[Value]) -> tuple[Value, Value, Value]:
        key, count, trials = state
        sub, key = parts(key, 2)
        count = el.select(trials <= n, count + 1, count)
        return (
            key,
            count,
            trials + el.ceil(transcendental.log(_uniform(sub, 0.0, 1.0, shape=shape, dtype=dtype_of(p))) / log_q),
        )

    zero = linear.full(shape, 0, dtype_of(n))
    return while_loop(lambda s: _any(s[2] <= n), add, (key, zero, zero))[1] - 1


def _binomial_rejection(key: Value, n: Value, p: Value, shape: tuple[Size, ...]) -> Value:
    deviation = transcendental.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    v_r = 0.92 - 4.2 / b
    r = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    m = el.floor((n + 1) * p)

    def propose(u: Value, v: Value) -> tuple[Value, Value]:
        us = 0.5 - el.abs_(u)
        k = el.floor((2 * a / us + b) * u + c)
        s = transcendental.log(v * alpha / (a / (us * us) + b))
        bound = (
            (m + 0.5) * transcendental.log((m + 1) / (r * (n - m + 1)))
            + (n + 1) * transcendental.log((n - m + 1) / (n - k + 1))
            + (k + 0.5) * transcendental.log(r * (n - k + 1) / (k + 1))
            + _stirling_rest(m)
            + _stirling_rest(n - m)
            - _stirling_rest(k)
            - _stirling_rest(n - k)
        )
        return k, ((us >= 0.07) & (v <= v_r)) | (el.not_((k < 0) | (k > n)) & (s <= bound))

    return _reject(key, propose, shape, dtype_of(n))


@inner_jit(name="_binomial", static_argnums=(3, 4), inline=True)
def _binomial(key: Value, n: Value, p: Value, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    n, p = broadcast_to(n, shape), broadcast_to(p, shape)
    below_half = p < 0.5
    q = el.select(below_half, p, 1 - p)
    bad_n, bad_q, infinite = (n != n) | (n < 0), (q != q) | (q < 0), el.abs_(n) == math.inf
    q_safe = _where(el.not_(bad_q), q, 0.01)
    few = bad_n | (n * q_safe <= 10)
    whole = el.floor(n)
    by_inversion = linear.convert(_binomial_inversion(key, _where(few, whole, 0), q_safe, shape), dtype)
    by_rejection = linear.convert(
        _binomial_rejection(
            random_clone_p.bind(key), _where(el.not_(few), whole, 1e4), _where(el.not_(few), q_safe, 0.5), shape
        ),
        dtype,
    )
    out = _where(el.not_(bad_q | bad_n), el.select(few, by_inversion, by_rejection), math.nan)
    out = _where(el.not_(infinite & el.not_(bad_q | bad_n)), out, math.inf)
    return el.select(below_half | bad_n | (q != q) | infinite, out, linear.convert(whole, dtype) - out)


def binomial(
    key: ArrayLike, n: ArrayLike, p: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """The number of successes, as floats, in `n` trials of probability `p`; NaN where n is negative, p is not in [0,
    1], or either is NaN.

    Args:
        key: random key, one or an array of them under vmap.
        n: array of floats: how many trials.
        p: array of floats from 0 to 1, which broadcasts with n.
        shape: @shape; None for that to which the parameters broadcast.
        dtype: dtype of floats; the initializer's own default.

    Returns:
        array of that dtype and shape.

    Raises:
        ValueError: for a dtype that is no float, or a shape that does not fit.

    Source: Devroye, "Non-uniform random variate generation" (1986), X.4.3, for small means; Hörmann, "The generation of
    binomial random variates" (1993), for others.

    Example:
        >>> import weft
        >>> 0 <= float(weft.random.binomial(weft.random.key(0), 10, 0.3)) <= 10
        True
    """
    key, _ = as_key("binomial", key)
    dtype = _float("binomial", dtype)
    n, p = operand("binomial", n), operand("binomial", p)
    shape = _shape(shape, n, p, name="binomial")
    n, p = promote_inexact("binomial", n, p)
    return _binomial(key, linear.convert(n, dtype_of(n)), linear.convert(p, dtype_of(p)), shape, dtype)


def multinomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    unroll: int | bool = 1,
) -> Array:
    """How `n` trials fall into classes with probabilities `p` along the last axis: the first class by a binomial
    number, the rest likewise.

    `n` broadcasts to shape[:-1] and `p` to `shape`, which is p.shape by default. `unroll` as `lax.scan`'s.

    Args:
        key: random key, one or an array of them under vmap.
        n: array of numbers: how many trials.
        p: array of floats, shape (..., classes).
        shape: int or sequence of ints, the shape of the result; None for that of p.
        dtype: dtype of floats; the initializer's own default.
        unroll: int or bool: how many classes are written out at once.

    Returns:
        array of that dtype and shape.

    Raises:
        ValueError: if shapes do not fit, or `p` has no axis.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> float(weft.random.multinomial(weft.random.key(0), 10, jnp.array([0.2, 0.8])).sum())
        10.0
    """
    key, _ = as_key("multinomial", key)
    dtype = dtypes.canonicalize(float if dtype is None else dtype)
    n, p = [on_device(x) for x in promote_inexact("multinomial", n, p)]
    shape = shape_of(p) if shape is None else canonical_shape(shape)
    if not shape:
        raise ValueError(
            at_user_line(
                "multinomial: p must have at least one axis, the last of which holds the probabilities of the classes;"
                " got a scalar."
            )
        )
    n, p = broadcast_to(n, shape[:-1]), linear.moveaxis(broadcast_to(p, shape), len(shape) - 1, 0)
    rest = cumsum(p, 0, True)
    ratios = p / _where(rest != 0, rest, 1)

    def one_class(left: Value, x: Value) -> tuple[Value, Value]:
        ratio, key = x
        count = _binomial(key, left, _clip(ratio, 0, 1), shape[:-1], dtype_of(n))
        return left - count, linear.convert(count, dtype)

    counts = scan(one_class, n, (ratios, random_split_p.bind(key, shape=shape[-1:])), unroll=unroll)[1]
    return linear.moveaxis(counts, 0, len(shape) - 1)
