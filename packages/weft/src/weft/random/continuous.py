"""Distributions that a formula computes from uniform and normal numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable

from ..base.limits import finfo
from ..base.dtypes import ElementType
from ..runtime.jit import inner_jit
from ..lax.common import canonical_shape, operand
from ..numpy import ufuncs
from ..numpy.linalg import norm
from ..numpy.util import broadcast_to
from ..primitives import elementwise as el, transcendental
from ..primitives import linear
from ..primitives.rules import scalar_like, shape_of
from ..typing import Array, ArrayLike, DTypeLike, OutSharding, Shape
from ..transforms.auto_axes import takes_out_sharding
from .keys import as_key
from .sampling import _float, _normal, _shape, _tiny, _two_uniforms, _typed, _uniform, normal

if TYPE_CHECKING:
    from ..base.avals import Size
    from ..core.types import Value


__all__ = [
    "cauchy",
    "exponential",
    "gumbel",
    "laplace",
    "logistic",
    "lognormal",
    "maxwell",
    "pareto",
    "rayleigh",
    "triangular",
    "weibull_min",
]


@inner_jit(name="_exponential", static_argnums=(1, 2))
def _exponential(key: Any, shape: Any, dtype: Any) -> Array:
    return el.neg(transcendental.log1p(el.neg(_uniform(key, 0.0, 1.0, shape=shape, dtype=dtype))))


@inner_jit(name="_laplace", static_argnums=(1, 2))
def _laplace(key: Any, shape: Any, dtype: Any) -> Array:
    u = _uniform(key, _typed(-1.0 + float(finfo(dtype).epsneg), dtype), 1.0, shape=shape, dtype=dtype)
    return el.mul(el.sign(u), transcendental.log1p(el.neg(el.abs_(u))))


@inner_jit(name="_cauchy", static_argnums=(1, 2))
def _cauchy(key: Any, shape: Any, dtype: Any) -> Array:
    u = _uniform(key, _typed(float(finfo(dtype).eps), dtype), 1.0, shape=shape, dtype=dtype)
    return transcendental.tan(el.mul(scalar_like(u, math.pi), el.sub(u, scalar_like(u, 0.5))))


@inner_jit(name="_logistic", static_argnums=(1, 2))
def _logistic(key: Any, shape: Any, dtype: Any) -> Array:
    u = _uniform(key, _typed(_tiny(dtype), dtype), 1.0, shape=shape, dtype=dtype)
    return el.sub(transcendental.log(u), transcendental.log1p(el.neg(u)))


@inner_jit(name="_gumbel", static_argnums=(1, 2))
def _gumbel(key: Any, shape: Any, dtype: Any) -> Array:
    # in jaxprs keyword arguments are ordered by name
    return el.neg(
        transcendental.log(
            el.neg(
                transcendental.log(
                    _uniform(key, minval=_typed(_tiny(dtype), dtype), maxval=1.0, shape=shape, dtype=dtype)
                )
            )
        )
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
    key, _ = as_key(name, key)
    return run(key, canonical_shape(shape), _float(name, dtype))


@takes_out_sharding
def exponential(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: OutSharding = None
) -> Array:
    """Numbers of the exponential distribution.

    Args:
        key: random key, one or an array of them under vmap.
        shape: int or sequence of ints, the shape of the result.
        dtype: dtype of floats; the initializer's own default.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Raises:
        ValueError: for a dtype that is no float.

    Source: inversion, -log(1 - u) of a uniform number u (Devroye, "Non-uniform random variate generation", 1986, II.2).

    Example:
        >>> import weft
        >>> weft.random.exponential(weft.random.key(0), (2,)).shape
        (2,)
    """
    return _by_uniform("exponential", _exponential, key, shape, dtype, out_sharding)


@takes_out_sharding
def laplace(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: OutSharding = None
) -> Array:
    """Numbers of the Laplace distribution.

    Args:
        key: random key, one or an array of them under vmap.
        shape: int or sequence of ints, the shape of the result.
        dtype: dtype of floats; the initializer's own default.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Raises:
        ValueError: for a dtype that is no float.

    Source: inversion (Devroye, "Non-uniform random variate generation", 1986, II.2).

    Example:
        >>> import weft
        >>> weft.random.laplace(weft.random.key(0), (2,)).shape
        (2,)
    """
    return _by_uniform("laplace", _laplace, key, shape, dtype, out_sharding)


@takes_out_sharding
def cauchy(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: OutSharding = None
) -> Array:
    """Numbers of the Cauchy distribution.

    Args:
        key: random key, one or an array of them under vmap.
        shape: int or sequence of ints, the shape of the result.
        dtype: dtype of floats; the initializer's own default.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Raises:
        ValueError: for a dtype that is no float.

    Source: inversion, the tangent of a uniform angle (Devroye, "Non-uniform random variate generation", 1986, II.2).

    Example:
        >>> import weft
        >>> weft.random.cauchy(weft.random.key(0), (2,)).shape
        (2,)
    """
    return _by_uniform("cauchy", _cauchy, key, shape, dtype, out_sharding)


@takes_out_sharding
def logistic(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: OutSharding = None
) -> Array:
    """Numbers of the logistic distribution.

    Args:
        key: random key, one or an array of them under vmap.
        shape: int or sequence of ints, the shape of the result.
        dtype: dtype of floats; the initializer's own default.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Raises:
        ValueError: for a dtype that is no float.

    Source: inversion (Devroye, "Non-uniform random variate generation", 1986, II.2).

    Example:
        >>> import weft
        >>> weft.random.logistic(weft.random.key(0), (2,)).shape
        (2,)
    """
    return _by_uniform("logistic", _logistic, key, shape, dtype, out_sharding)


@takes_out_sharding
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

    Args:
        key: random key, one or an array of them under vmap.
        shape: int or sequence of ints, the shape of the result.
        dtype: dtype of floats; the initializer's own default.
        mode: 'low' or 'high'; None for 'low'.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Raises:
        ValueError: for a dtype that is no float, or another mode.

    Source: inversion, -log(-log(u)) of a uniform number u (Devroye, "Non-uniform random variate generation", 1986,
    II.2).

    Example:
        >>> import weft
        >>> weft.random.gumbel(weft.random.key(0), (2,)).shape
        (2,)
    """
    if mode not in (None, "low", "high"):
        raise ValueError(f"gumbel: mode takes 'low' or 'high', got {mode!r}.")
    if mode != "high":
        return _by_uniform("gumbel", _gumbel, key, shape, dtype, out_sharding)
    return _high_gumbel(as_key("gumbel", key)[0], canonical_shape(shape), _float("gumbel", dtype))


@inner_jit(name="_gumbel", static_argnums=(1, 2))
def _high_gumbel(key: Value, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    """From numbers near 0 that have all their bits, so that the largest results are as fine as the others."""
    high, low = _two_uniforms(key, shape, dtype)
    fine = el.add(el.add(high, low), scalar_like(high, _tiny(dtype)))
    u = ufuncs.where_jit(el.ge(high, scalar_like(high, 0.5)), high, fine)
    return el.neg(transcendental.log(el.neg(transcendental.log1p(el.neg(u)))))


@inner_jit(name="_pareto", static_argnums=(2, 3))
def _pareto(key: Value, b: Value, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    return transcendental.exp(el.div(exponential(key, shape, dtype), _fit(linear.convert(b, dtype), shape)))


def _fit(x: Value, shape: tuple[Any, ...]) -> Value:
    return x if not shape_of(x) else broadcast_to(x, shape)


@takes_out_sharding
def pareto(
    key: ArrayLike,
    b: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Numbers of the Pareto distribution with exponent `b`.

    Args:
        key: random key, one or an array of them under vmap.
        b: array of floats, positive.
        shape: @shape; None for that to which the parameters broadcast.
        dtype: dtype of floats; the initializer's own default.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Raises:
        ValueError: for a dtype that is no float, or a shape that does not fit.

    Source: inversion, (1 - u)^(-1/b) of a uniform number u (Devroye, "Non-uniform random variate generation", 1986,
    II.2).

    Example:
        >>> import weft
        >>> weft.random.pareto(weft.random.key(0), 2., (3,)).shape
        (3,)
    """
    key, _ = as_key("pareto", key)
    return _pareto(key, operand("pareto", b), _shape(shape, b, name="pareto"), _float("pareto", dtype))


@inner_jit(name="_weibull_min", static_argnums=(3, 4))
def _weibull_min(key: Value, scale: Value, concentration: Value, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    u = _uniform(key, 0, 1, shape=shape, dtype=dtype)
    power = el.div(scalar_like(u, 1), linear.convert(concentration, dtype))
    out = transcendental.pow_(el.neg(transcendental.log1p(el.neg(u))), _fit(power, shape))
    return el.mul(out, _fit(linear.convert(scale, dtype), shape))


@takes_out_sharding
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

    Args:
        key: random key, one or an array of them under vmap.
        scale: array of floats, positive.
        concentration: array of floats, positive, which broadcasts with the scale.
        shape: int or sequence of ints, the shape of the result.
        dtype: dtype of floats; the initializer's own default.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Raises:
        ValueError: for a dtype that is no float.

    Source: inversion (Devroye, "Non-uniform random variate generation", 1986, II.2).

    Example:
        >>> import weft
        >>> weft.random.weibull_min(weft.random.key(0), 1., 2., (3,)).shape
        (3,)
    """
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
    return el.mul(scale, transcendental.sqrt(el.mul(transcendental.log(u), scalar_like(u, -2))))


@takes_out_sharding
def rayleigh(
    key: ArrayLike,
    scale: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Numbers of the Rayleigh distribution.

    Args:
        key: random key, one or an array of them under vmap.
        scale: array of floats, positive.
        shape: @shape; None for that to which the parameters broadcast.
        dtype: dtype of floats; the initializer's own default.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Raises:
        ValueError: for a dtype that is no float, or a shape that does not fit.

    Source: inversion (Devroye, "Non-uniform random variate generation", 1986, II.2).

    Example:
        >>> import weft
        >>> weft.random.rayleigh(weft.random.key(0), 2., (3,)).shape
        (3,)
    """
    key, _ = as_key("rayleigh", key)
    return _rayleigh(key, operand("rayleigh", scale), _shape(shape, scale, name="rayleigh"), _float("rayleigh", dtype))


@takes_out_sharding
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

    Args:
        key: random key, one or an array of them under vmap.
        left: array of floats, the lower bound.
        mode: array of floats between the bounds.
        right: array of floats, the upper bound; all three broadcast.
        shape: @shape; None for that to which the parameters broadcast.
        dtype: dtype of floats; the initializer's own default.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Raises:
        ValueError: for a dtype that is no float, or a shape that does not fit.

    Source: inversion (Devroye, "Non-uniform random variate generation", 1986, II.2).

    Example:
        >>> import weft
        >>> weft.random.triangular(weft.random.key(0), 0., .5, 1., (3,)).shape
        (3,)
    """
    key, _ = as_key("triangular", key)
    dt = _float("triangular", dtype)
    shape = _shape(shape, *[operand("triangular", v) for v in (left, mode, right)], name="triangular")
    left, mode, right = [broadcast_to(linear.convert(v, dt), shape) for v in (left, mode, right)]
    fc = el.div(el.sub(mode, left), el.sub(right, left))
    u = _uniform(key, 0.0, 1.0, shape=shape, dtype=dt)
    low = el.add(left, transcendental.sqrt(el.mul(el.mul(u, el.sub(right, left)), el.sub(mode, left))))
    high = el.sub(
        right,
        transcendental.sqrt(el.mul(el.mul(el.sub(scalar_like(u, 1), u), el.sub(right, left)), el.sub(right, mode))),
    )
    return el.select_n_p.bind(el.lt(u, fc), high, low)


@takes_out_sharding
def lognormal(
    key: ArrayLike,
    sigma: ArrayLike = 1.0,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """exp of normal numbers with standard deviation `sigma`.

    Args:
        key: random key, one or an array of them under vmap.
        sigma: array of floats, not negative.
        shape: @shape; None for that to which the parameters broadcast.
        dtype: dtype of floats; the initializer's own default.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Raises:
        ValueError: for a dtype that is no float, or a shape that does not fit.

    Example:
        >>> import weft
        >>> weft.random.lognormal(weft.random.key(0), 1., (3,)).shape
        (3,)
    """
    dt = _float("lognormal", dtype)
    sigma = linear.convert(operand("lognormal", sigma), dt)
    return transcendental.exp(
        el.mul(normal(key, _shape(shape, sigma, name="lognormal"), dt, out_sharding=out_sharding), sigma)
    )


@inner_jit(name="_maxwell", static_argnums=(1, 2))
def _maxwell(key: Value, shape: tuple[Size, ...], dtype: ElementType) -> Value:
    return norm(_normal(key, (*shape, 3), dtype), axis=-1)


@takes_out_sharding
def maxwell(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: OutSharding = None
) -> Array:
    """Numbers of the one-sided Maxwell distribution.

    Args:
        key: random key, one or an array of them under vmap.
        shape: int or sequence of ints, the shape of the result.
        dtype: dtype of floats; the initializer's own default.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Raises:
        ValueError: for a dtype that is no float.

    Example:
        >>> import weft
        >>> weft.random.maxwell(weft.random.key(0), (3,)).shape
        (3,)
    """
    key, _ = as_key("maxwell", key)
    return _maxwell(key, canonical_shape(shape), _float("maxwell", dtype))
