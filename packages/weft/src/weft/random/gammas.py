"""Gamma random numbers, and the distributions that are made of them.

Marsaglia & Tsang, "A simple method for generating gamma variables" (ACM TOMS 26, 2000). Below 1 the shape parameter is
raised by one and the sample multiplied by a power of a uniform number, as their section 6 says.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, Sequence

from ..base import dtypes, limits
from ..base.avals import shaped, tangent_aval
from ..base.config import config, enable_x64
from ..decompositions.incomplete import random_gamma_grad
from ..higher_order.while_loop import while_loop
from ..higher_order.prefix import map_
from ..core.primitive import Primitive, Zero
from ..core.trace import get_aval
from ..base.errors import at_user_line, type_error
from ..lax.common import canonical_shape, on_device, operand
from ..numpy.util import broadcast_shapes, broadcast_to, promote_inexact
from ..primitives import elementwise as el, transcendental
from ..primitives import linear
from ..primitives.random_bits import FRY, key_primitive, random_split_p
from ..primitives.reduce import reduce_max, reduce_or
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..primitives.shape import slice_
from ..runtime.jit import inner_jit
from ..transforms.physical import lower_types
from ..transforms.stage import inline_call, stage_closed
from ..typing import Array, ArrayLike, DTypeLike, OutSharding, Shape
from ..transforms.auto_axes import takes_out_sharding
from .keys import as_key
from .sampling import _float, _normal_real, _shape, _uniform
from .discrete import _rademacher
from .continuous import exponential

if TYPE_CHECKING:
    from ..base.avals import AbstractValue, Size
    from ..core.types import Value
    from ..base.dtypes import ElementType, KeyDType

__all__ = [
    "ball",
    "beta",
    "chisquare",
    "dirichlet",
    "f",
    "gamma",
    "generalized_normal",
    "loggamma",
    "random_gamma_p",
    "t",
]


def parts(keys: Any, n: int) -> list[Any]:
    """Each key of an array of keys split in `n`: that many arrays of keys of the same shape."""
    shape = shape_of(keys)
    made, zeros = random_split_p.bind(keys, shape=(n,)), (0,) * len(shape)
    return [linear.squeeze(slice_(made, (*zeros, i), (*shape, i + 1)), (len(shape),)) for i in range(n)]


def _any(x: Value) -> Value:
    return reduce_or(x, tuple(range(len(shape_of(x)))))


def _one_each(keys: Value, a: Value, log_space: bool) -> Value:
    """A sample for each of `n` keys and parameters. The loop goes on for elements whose sample was rejected; the others
    keep theirs.
    """
    dt = dtype_of(a)
    like = lambda value: linear.full(shape_of(a), value, dt)
    large = a >= 1
    d = el.select(large, a, a + 1) - 1 / 3
    c = 1 / 3 / transcendental.sqrt(d)

    def draw(state: Sequence[Value]) -> tuple[Value, Value, Value]:
        keys, x, v = state
        again = v <= 0
        keys, sub = parts(keys, 2)
        new = _normal_real(sub, (), dt)
        return keys, el.select(again, new, x), el.select(again, 1 + new * c, v)

    def rejected(x2: Value, v: Value, u: Value) -> Value:
        return (u >= 1 - 0.0331 * (x2 * x2)) & (
            transcendental.log(u) >= x2 * 0.5 + d * ((1 - v) + transcendental.log(v))
        )

    def attempt(state: Sequence[Value]) -> tuple[Any, ...]:
        keys, *old = state
        keys, for_x, for_u = parts(keys, 3)
        _, x, v = while_loop(lambda s: _any(s[2] <= 0), draw, (for_x, like(0), like(-1)))
        new, again = (x * x, v * v * v, _uniform(for_u, 0.0, 1.0, shape=(), dtype=dt)), rejected(*old)
        return keys, *[el.select(again, n, o) for n, o in zip(new, old)]

    keys, last = parts(keys, 2)
    v = while_loop(lambda s: _any(rejected(*s[1:])), attempt, (keys, like(0), like(1), like(2)))[2]
    u = _uniform(last, 0.0, 1.0, shape=(), dtype=dt)
    if log_space:
        log_u = transcendental.log1p(-u)
        return transcendental.log(d) + transcendental.log(v) + el.select(large | (log_u == 0), like(0), log_u * (1 / a))
    return d * v * el.select(large, like(1), (1 - u) ** (1 / a))


def _sample(keys: Value, a: Value, *, log_space: bool) -> Value:
    shape = shape_of(a)
    n = math.prod(shape)
    made = random_split_p.bind(keys, shape=(math.prod(shape[len(shape_of(keys)) :]),))
    made, flat = linear.reshape(made, (n,)), linear.reshape(a, (n,))
    if dtype_of(keys) == FRY:
        out = _one_each(made, flat, log_space)
    else:  # these generators derive the numbers for an array of keys from its first key
        one = lambda xs: linear.squeeze(_one_each(*(*[linear.expand_dims(x, (0,)) for x in xs], log_space)), (0,))
        out = map_(one, (made, flat))
    return linear.reshape(out, shape)


def _abstract(key: AbstractValue, a: AbstractValue, *, log_space: bool) -> AbstractValue:
    if not dtypes.is_key(key.dtype) or not dtypes.is_float(a.dtype) or a.shape[: len(key.shape)] != key.shape:
        raise type_error(
            f"random_gamma takes keys and floats whose shape begins with that of the keys, got {key} and {a}."
        )
    return shaped(a.shape, a.dtype)


def _on_raw(dtype: KeyDType, raw: Value, a: Value, *, log_space: bool) -> Value:
    """The program on keys, rewritten as every program is."""
    avals = [shaped(shape_of(raw)[:-1], dtype), shaped(shape_of(a), dtype_of(a))]
    with enable_x64(config.enable_x64 or dtypes.bits(dtype_of(a)) > 32):  # it may come from where such numbers are kept
        sample = stage_closed(lambda keys, a: [_sample(keys, a, log_space=log_space)], avals, "random_gamma")
        return inline_call(lower_types(sample), [raw, a])[0]


def _jvp(primals: Sequence[Value], tangents: Sequence[Value], *, log_space: bool) -> tuple[Any, Any]:
    """Implicit differentiation: the cumulative probability of the sample stays the same."""
    out = random_gamma_p.bind(*primals, log_space=log_space)
    t, a = tangents[1], primals[1]
    if type(t) is Zero:
        return out, Zero(tangent_aval(get_aval(out)))
    if not log_space:
        return out, el.mul(t, random_gamma_grad(a, out))
    sample = transcendental.exp(out)
    tiny = linear.full(shape_of(out), float(limits.finfo(dtype_of(out)).tiny), dtype_of(out))
    sample = el.select(el.eq(sample, scalar_like(sample, 0)), tiny, sample)
    return out, el.mul(t, el.div(random_gamma_grad(a, sample), sample))


random_gamma_p: Primitive = key_primitive("random_gamma", _abstract, _on_raw)
random_gamma_p.jvp = _jvp


@inner_jit(name="_gamma", static_argnames=("shape", "dtype", "log_space"))
def _gamma(key: Value, a: Value, *, shape: tuple[Size, ...], dtype: ElementType, log_space: bool = True) -> Value:
    a = linear.convert(a, dtype)
    a = a if shape_of(a) == shape else broadcast_to(a, shape)
    return random_gamma_p.bind(key, a, log_space=log_space)


def _params(
    name: str, key: Value, shape: Shape | None, dtype: DTypeLike | None, *params: Value
) -> tuple[Value, tuple[Size, ...], ElementType, *tuple[Value, ...]]:
    """(key, shape, dtype, parameters) of a sampler of floats, checked."""
    key, _ = as_key(name, key)
    dtype = _float(name, dtype)
    values = [operand(name, p) for p in params]
    return (key, _shape(shape, *values, name=name), dtype, *values)


@takes_out_sharding
def gamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Numbers of the gamma distribution with shape parameter `a` and scale 1, differentiable in `a`.

    `shape` defaults to that of `a`, and must be what both broadcast to.

    Args:
        key: random key, one or an array of them under vmap.
        a: array of floats, positive: the shape parameter.
        shape: @shape; None for that to which the parameters broadcast.
        dtype: dtype of floats; the initializer's own default.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Raises:
        ValueError: for a dtype that is no float, or a shape that does not fit.

    Source: Marsaglia and Tsang, "A simple method for generating gamma variables" (2000).

    Example:
        >>> import weft
        >>> weft.random.gamma(weft.random.key(0), 2.0, (3,)).shape
        (3,)
    """
    key, shape, dtype, a = _params("gamma", key, shape, dtype, a)
    return _gamma(key, a, shape=shape, dtype=dtype, log_space=False)


@takes_out_sharding
def loggamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Logarithms of gamma random numbers, which do not underflow where `a` is small. Arguments as `gamma`'s.

    Args:
        key: random key, one or an array of them under vmap.
        a: array of floats, positive: the shape parameter.
        shape: @shape; None for that to which the parameters broadcast.
        dtype: dtype of floats; the initializer's own default.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Raises:
        ValueError: for a dtype that is no float, or a shape that does not fit.

    Source: Marsaglia and Tsang, "A simple method for generating gamma variables" (2000).

    Example:
        >>> import weft
        >>> bool(weft.random.loggamma(weft.random.key(0), 1e-6) > -weft.numpy.inf)
        True
    """
    key, shape, dtype, a = _params("loggamma", key, shape, dtype, a)
    return _gamma(key, a, shape=shape, dtype=dtype)


@inner_jit(name="_beta", static_argnames=("shape", "dtype"))
def _beta(key: Value, a: Value, b: Value, *, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    a, b = [
        _gamma(k, broadcast_to(linear.convert(v, dtype), shape), shape=shape, dtype=dtype)
        for k, v in zip(parts(key, 2), (a, b))
    ]
    top = el.max_(a, b)
    a, b = transcendental.exp(a - top), transcendental.exp(b - top)
    return a / (a + b)


@takes_out_sharding
def beta(
    key: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Numbers of the beta distribution with parameters `a` and `b`, differentiable in both.

    Args:
        key: random key, one or an array of them under vmap.
        a: array of floats, positive: the shape parameter.
        b: array of floats, positive, which broadcasts with a.
        shape: @shape; None for that to which the parameters broadcast.
        dtype: dtype of floats; the initializer's own default.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Raises:
        ValueError: for a dtype that is no float, or shapes that do not fit.

    Source: X / (X + Y) of gamma numbers X and Y (Devroye, "Non-uniform random variate generation", 1986, IX.3).

    Example:
        >>> import weft
        >>> 0 < float(weft.random.beta(weft.random.key(0), 2.0, 3.0)) < 1
        True
    """
    key, shape, dtype, a, b = _params("beta", key, shape, dtype, a, b)
    return _beta(key, a, b, shape=shape, dtype=dtype)


@inner_jit(name="_dirichlet", static_argnames=("shape", "dtype"))
def _dirichlet(key: Value, alpha: Value, *, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    logs = _gamma(key, linear.convert(alpha, dtype), shape=(*shape, shape_of(alpha)[-1]), dtype=dtype)
    axis = len(shape)
    top = el.max_(scalar_like(logs, -math.inf), reduce_max(logs, (axis,)))
    exps = transcendental.exp(logs - linear.stop_gradient_p.bind(linear.expand_dims(top, (axis,))))
    return exps / linear.expand_dims(linear.reduce_sum(exps, (axis,)), (axis,))


@takes_out_sharding
def dirichlet(
    key: ArrayLike,
    alpha: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Vectors of the Dirichlet distribution: `shape` (alpha.shape[:-1] by default) of them, each of the size of alpha's
    last axis, with the sum 1.

    Args:
        key: random key, one or an array of them under vmap.
        alpha: array of floats, positive, shape (..., n).
        shape: int or sequence of ints, the shape of the result without its last axis; None for that of alpha without
            its own.
        dtype: dtype of floats; the initializer's own default.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape (*shape, n).

    Raises:
        ValueError: if alpha has no axis, for a dtype that is no float, or a shape that does not fit.

    Source: gamma numbers divided by their sum (Devroye, "Non-uniform random variate generation", 1986, XI.4).

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.random.dirichlet(weft.random.key(0), jnp.ones(3), (4,)).shape
        (4, 3)
    """
    key, _ = as_key("dirichlet", key)
    dtype = _float("dirichlet", dtype)
    alpha = on_device(operand("dirichlet", alpha))
    batch = shape_of(alpha)[:-1]
    if not shape_of(alpha):
        raise ValueError(
            at_user_line(
                "dirichlet: alpha must have at least one axis, the last of which holds the parameters of one vector;"
                " got a scalar."
            )
        )
    shape = batch if shape is None else canonical_shape(shape)
    if broadcast_shapes([shape, batch]) != shape:
        raise ValueError(
            at_user_line(f"dirichlet: the batch shape {batch} of alpha does not broadcast to the shape {shape}.")
        )
    return _dirichlet(key, alpha, shape=shape, dtype=dtype)


@inner_jit(name="_chisquare", static_argnames=("shape", "dtype"))
def _chisquare(key: Value, df: Value, *, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    return transcendental.exp(_gamma(key, linear.convert(df, dtype) / 2, shape=shape, dtype=dtype)) * 2


@takes_out_sharding
def chisquare(
    key: ArrayLike,
    df: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Numbers of the chi-squared distribution with `df` degrees of freedom.

    Args:
        key: random key, one or an array of them under vmap.
        df: array of floats, positive.
        shape: @shape; None for that to which the parameters broadcast.
        dtype: dtype of floats; the initializer's own default.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Raises:
        ValueError: for a dtype that is no float, or a shape that does not fit.

    Source: twice a gamma number with shape parameter df / 2 (Devroye, "Non-uniform random variate generation", 1986,
    IX.3).

    Example:
        >>> import weft
        >>> float(weft.random.chisquare(weft.random.key(0), 3)) > 0
        True
    """
    key, shape, dtype, df = _params("chisquare", key, shape, dtype, df)
    return _chisquare(key, df, shape=shape, dtype=dtype)


@inner_jit(name="_f", static_argnames=("shape", "dtype"))
def _f(key: Value, dfnum: Value, dfden: Value, *, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    dfden, dfnum = linear.convert(dfden, dtype), linear.convert(dfnum, dtype)
    for_den, for_num = parts(key, 2)
    num, den = [_chisquare(k, df, shape=shape, dtype=dtype) / df for k, df in ((for_num, dfnum), (for_den, dfden))]
    return num / den


@takes_out_sharding
def f(
    key: ArrayLike,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Numbers of the F distribution with `dfnum` and `dfden` degrees of freedom.

    Args:
        key: random key, one or an array of them under vmap.
        dfnum: array of floats, positive.
        dfden: array of floats, positive, which broadcasts with dfnum.
        shape: @shape; None for that to which the parameters broadcast.
        dtype: dtype of floats; the initializer's own default.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Raises:
        ValueError: for a dtype that is no float, or a shape that does not fit.

    Source: a quotient of chi-squared numbers (Devroye, "Non-uniform random variate generation", 1986, IX.3).

    Example:
        >>> import weft
        >>> float(weft.random.f(weft.random.key(0), 3, 4)) > 0
        True
    """
    key, shape, dtype, dfnum, dfden = _params("f", key, shape, dtype, dfnum, dfden)
    return _f(key, dfnum, dfden, shape=shape, dtype=dtype)


@inner_jit(name="_t", static_argnames=("shape", "dtype"))
def _t(key: Value, df: Value, *, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    df = linear.convert(df, dtype)
    for_normal, for_gamma = parts(key, 2)
    half = df / 2
    return _normal_real(for_normal, shape, dtype) * transcendental.sqrt(
        half / _gamma(for_gamma, half, shape=shape, dtype=dtype, log_space=False)
    )


@takes_out_sharding
def t(
    key: ArrayLike,
    df: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Numbers of Student's t distribution with `df` degrees of freedom, differentiable in `df`.

    Args:
        key: random key, one or an array of them under vmap.
        df: array of floats, positive.
        shape: @shape; None for that to which the parameters broadcast.
        dtype: dtype of floats; the initializer's own default.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Raises:
        ValueError: for a dtype that is no float, or a shape that does not fit.

    Source: a normal number over the root of a gamma number (Devroye, "Non-uniform random variate generation", 1986,
    IX.5).

    Example:
        >>> import weft
        >>> weft.random.t(weft.random.key(0), 3, (2,)).shape
        (2,)
    """
    key, shape, dtype, df = _params("t", key, shape, dtype, df)
    return _t(key, df, shape=shape, dtype=dtype)


@inner_jit(name="_generalized_normal", static_argnames=("shape", "dtype"))
def _generalized_normal(key: Value, p: Value, *, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    for_gamma, for_sign = parts(key, 2)
    size = _gamma(for_gamma, 1 / p, shape=shape, dtype=dtype, log_space=False)
    return _rademacher(for_sign, shape, dtype) * transcendental.pow_(*_ranked(size, linear.convert(1 / p, dtype)))


def _ranked(x: Value, y: Value) -> tuple[Value, Value]:
    return x, y if not shape_of(y) else broadcast_to(y, shape_of(x))


@takes_out_sharding
def generalized_normal(
    key: ArrayLike, p: float, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: OutSharding = None
) -> Array:
    """Numbers with the density exp(-|x|**p), up to a factor.

    Args:
        key: random key, one or an array of them under vmap.
        p: array of floats, positive.
        shape: int or sequence of ints, the shape of the result.
        dtype: dtype of floats; the initializer's own default.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Raises:
        ValueError: for a dtype that is no float, or a shape of `p` that does not broadcast to `shape`.

    Example:
        >>> import weft
        >>> weft.random.generalized_normal(weft.random.key(0), 1.5, (2,)).shape
        (2,)
    """
    key, shape, dtype, p = _params("generalized_normal", key, shape, dtype, p)
    return _generalized_normal(key, *promote_inexact("generalized_normal", p), shape=shape, dtype=dtype)


@inner_jit(name="_ball", static_argnames=("d", "shape", "dtype"))
def _ball(key: Value, p: Value, *, d: int, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    """Barthe, Guédon, Mendelson & Naor, "A probabilistic approach to the geometry of the lpⁿ-ball" (Annals of
    Probability 33, 2005).
    """
    for_normal, for_radius = parts(key, 2)
    g = _generalized_normal(for_normal, p, shape=(*shape, d), dtype=dtype)
    e = exponential(for_radius, shape, dtype)
    total = linear.reduce_sum(transcendental.pow_(el.abs_(g), linear.convert(p, dtype)), (len(shape),)) + e
    return g / linear.expand_dims(transcendental.pow_(total, linear.convert(1 / p, dtype)), (len(shape),))


@takes_out_sharding
def ball(
    key: ArrayLike,
    d: int,
    p: float = 2,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Vectors of size `d`, uniform in the unit ball of the norm of order `p`; the result has the shape (*shape, d).

    Args:
        key: random key, one or an array of them under vmap.
        d: int, the size of the vectors.
        p: number, the order of the norm, at least 1.
        shape: int or sequence of ints: how many vectors.
        dtype: dtype of floats; the initializer's own default.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape (*shape, d).

    Raises:
        TypeError: for a `d` that is no integer. ValueError: for a dtype that is no float.

    Source: Barthe et al., "A probabilistic approach to the geometry of the ℓp-ball" (2005).

    Example:
        >>> import weft
        >>> weft.random.ball(weft.random.key(0), 3, shape=(2,)).shape
        (2, 3)
    """
    key, shape, dtype = _params("ball", key, shape, dtype)
    try:
        d = operator.index(d)
    except TypeError:
        raise TypeError(at_user_line(f"ball: the size d of the vectors must be an integer, got {d!r}.")) from None
    return _ball(key, *promote_inexact("ball", p), d=d, shape=shape, dtype=dtype)
