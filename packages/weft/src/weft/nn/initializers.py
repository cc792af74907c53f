"""Initial values of parameters: functions (key, shape, dtype) -> array."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol, Sequence, TypeAlias

from ..base import dtypes
from .. import random
from ..lax.common import canonical_shape
from ..numpy.util import broadcast_to
from ..primitives import elementwise as el, transcendental
from ..primitives import linear
from ..primitives.shape import pad
from ..typing import Array, ArrayLike, DTypeLike, OutSharding, Shape

if TYPE_CHECKING:
    from ..base.avals import Size
    from ..core.types import Value
    from ..base.dtypes import ElementType

__all__ = [
    "Initializer",
    "constant",
    "delta_orthogonal",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]


class Initializer(Protocol):
    """A function that makes the initial values of a parameter."""

    def __call__(
        self, key: ArrayLike, shape: Shape, dtype: DTypeLike | None = None, out_sharding: OutSharding = None
    ) -> Array: ...


Axes: TypeAlias = int | Sequence[int]


def _dtype(dtype: DTypeLike | None) -> ElementType:
    return dtypes.canonicalize(float if dtype is None else dtype)


def zeros(key: ArrayLike, shape: Shape, dtype: DTypeLike | None = None, out_sharding: OutSharding = None) -> Array:
    """Zeros.

    Args:
        key: ignored.
        shape: int or sequence of ints, the shape of the result.
        dtype: dtype of the result.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Example:
        >>> import weft
        >>> weft.nn.initializers.zeros(weft.random.key(0), (2,))
        Array([0., 0.], dtype=float32)
    """
    return linear.full(canonical_shape(shape), 0, _dtype(dtype))


def ones(key: ArrayLike, shape: Shape, dtype: DTypeLike | None = None, out_sharding: OutSharding = None) -> Array:
    """Ones.

    Args:
        key: ignored.
        shape: int or sequence of ints, the shape of the result.
        dtype: dtype of the result.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Example:
        >>> import weft
        >>> weft.nn.initializers.ones(weft.random.key(0), (2,))
        Array([1., 1.], dtype=float32)
    """
    return linear.full(canonical_shape(shape), 1, _dtype(dtype))


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """One value everywhere.

    Args:
        value: number or array that broadcasts to the shape.
        dtype: dtype of floats; the initializer's own default.

    Returns:
        initializer: a function of (key, shape, dtype) that returns an array of that dtype and shape.

    Example:
        >>> import weft
        >>> weft.nn.initializers.constant(2.)(weft.random.key(0), (2,))
        Array([2., 2.], dtype=float32)
    """

    def init(key: ArrayLike, shape: Shape, dtype: DTypeLike | None = dtype, out_sharding: OutSharding = None) -> Array:
        from_dtype = _dtype(dtype)
        return broadcast_to(linear.convert(value, from_dtype), canonical_shape(shape))

    return init


def uniform(scale: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Uniform numbers in [0, scale).

    Args:
        scale: number, the upper bound.
        dtype: dtype of floats; the initializer's own default.

    Returns:
        initializer: a function of (key, shape, dtype) that returns an array of that dtype and shape.

    Example:
        >>> import weft
        >>> weft.nn.initializers.uniform()(weft.random.key(0), (2, 3)).shape
        (2, 3)
    """

    def init(key: ArrayLike, shape: Shape, dtype: DTypeLike | None = dtype, out_sharding: OutSharding = None) -> Array:
        out = random.uniform(key, shape, _dtype(dtype))
        return el.mul(out, linear.convert(scale, _dtype(dtype)))

    return init


def normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Normal numbers with a standard deviation.

    Args:
        stddev: number, the standard deviation.
        dtype: dtype of floats; the initializer's own default.

    Returns:
        initializer: a function of (key, shape, dtype) that returns an array of that dtype and shape.

    Example:
        >>> import weft
        >>> weft.nn.initializers.normal(0.1)(weft.random.key(0), (2, 3)).shape
        (2, 3)
    """

    def init(key: ArrayLike, shape: Shape, dtype: DTypeLike | None = dtype, out_sharding: OutSharding = None) -> Array:
        return el.mul(random.normal(key, shape, _dtype(dtype)), linear.convert(stddev, _dtype(dtype)))

    return init


def truncated_normal(
    stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None, lower: ArrayLike = -2.0, upper: ArrayLike = 2.0
) -> Initializer:
    """Normal numbers with a standard deviation, cut at `lower` and `upper` standard deviations.

    Args:
        stddev: number, the standard deviation.
        dtype: dtype of floats; the initializer's own default.
        lower: number, the lower bound in standard deviations.
        upper: number, the upper bound in standard deviations.

    Returns:
        initializer: a function of (key, shape, dtype) that returns an array of that dtype and shape.

    Example:
        >>> import weft
        >>> weft.nn.initializers.truncated_normal()(weft.random.key(0), (2, 3)).shape
        (2, 3)
    """

    def init(key: ArrayLike, shape: Shape, dtype: DTypeLike | None = dtype, out_sharding: OutSharding = None) -> Array:
        return el.mul(
            random.truncated_normal(key, lower, upper, shape, _dtype(dtype)), linear.convert(stddev, _dtype(dtype))
        )

    return init


def _fans(shape: Sequence[Any], in_axis: Axes, out_axis: Axes, batch_axis: Axes) -> tuple[float, float]:
    if len(shape) <= 1:
        raise ValueError(
            f"Can't compute input and output sizes of a {len(shape)}-dimensional weights tensor. Must be at least 2D."
        )
    size = lambda axes: math.prod(shape[a] for a in (axes if isinstance(axes, (tuple, list)) else (axes,)))
    receptive = math.prod(shape) / size(in_axis) / size(out_axis) / size(batch_axis)
    return size(in_axis) * receptive, size(out_axis) * receptive


def variance_scaling(
    scale: ArrayLike,
    mode: str,
    distribution: str,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """Numbers whose variance is scale / n, where n is the number of inputs, of outputs, or their mean.

    Args:
        scale: number, n times the variance.
        mode: 'fan_in', 'fan_out', 'fan_avg' or 'fan_geo_avg': what n is.
        distribution: 'uniform', 'normal' or 'truncated_normal'.
        in_axis: int or sequence of ints: the axes of inputs.
        out_axis: int or sequence of ints: the axes of outputs.
        batch_axis: int or sequence of ints: the axes that are neither.
        dtype: dtype of floats; the initializer's own default.

    Returns:
        initializer: a function of (key, shape, dtype) that returns an array of that dtype and shape.

    Raises:
        ValueError: for an unknown mode or distribution, and weights of rank below 2.

    Source: He et al., "Delving deep into rectifiers" (2015).

    Example:
        >>> import weft
        >>> init = weft.nn.initializers.variance_scaling(1.0, 'fan_in', 'normal')
        >>> init(weft.random.key(0), (4, 2)).shape
        (4, 2)
    """

    def init(key: ArrayLike, shape: Shape, dtype: DTypeLike | None = dtype, out_sharding: OutSharding = None) -> Array:
        shape, dt = canonical_shape(shape), _dtype(dtype)
        fan_in, fan_out = _fans(shape, in_axis, out_axis, batch_axis)
        n = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}.get(mode)
        if mode == "fan_geo_avg":
            n = math.sqrt(fan_in * fan_out)
        if n is None:
            raise ValueError(
                f"invalid mode for variance scaling initializer: {mode!r}; use 'fan_in', 'fan_out', 'fan_avg' or"
                " 'fan_geo_avg'."
            )
        real = dtypes.real_of(dt) if dtypes.is_complex(dt) else dt
        variance = linear.convert(scale / n, real)
        if dtypes.is_complex(dt) and distribution in ("uniform", "truncated_normal"):
            stddev = (
                transcendental.sqrt(linear.convert(2 * scale / n, real))
                if distribution == "uniform"
                else el.div(transcendental.sqrt(variance), linear.convert(0.95311164380491208, real))
            )
            return el.mul(_in_disk(key, shape, dt, distribution == "uniform"), linear.convert(stddev, dt))
        if distribution == "normal":
            return el.mul(random.normal(key, shape, dt), _root(variance, dt))
        if distribution == "uniform":
            return el.mul(random.uniform(key, shape, dt, -1), _root(linear.convert(3 * scale / n, real), dt))
        if distribution == "truncated_normal":
            # the standard deviation of a standard normal cut at two standard deviations
            stddev = el.div(transcendental.sqrt(variance), linear.convert(0.87962566103423978, real))
            return el.mul(random.truncated_normal(key, -2, 2, shape, dt), linear.convert(stddev, dt))
        raise ValueError(
            f"invalid distribution for variance scaling initializer: {distribution!r}; use 'normal', 'uniform' or"
            " 'truncated_normal'."
        )

    return init


def _in_disk(key: Value, shape: tuple[Size, ...], dt: ElementType, is_uniform: bool) -> Value:
    """Complex numbers with uniform angles: uniform in the unit disk, or normal and cut at the absolute value 2."""
    for_radius, for_angle = random.split(key)
    t = random.uniform(for_radius, shape, dtypes.real_of(dt))
    radius = linear.convert(transcendental.sqrt(t) if is_uniform else t, dt)
    if not is_uniform:
        radius = transcendental.sqrt(el.neg(transcendental.log(1 - (1 - math.exp(-4)) * radius)))
    angle = linear.convert(2 * math.pi * random.uniform(for_angle, shape, dtypes.real_of(dt)), dt)
    return el.mul(radius, transcendental.exp(el.mul(linear.convert(1j, dt), angle)))


def _root(variance: Value, dt: ElementType) -> Value:
    return linear.convert(transcendental.sqrt(variance), dt)


def glorot_uniform(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: DTypeLike | None = None
) -> Initializer:
    """Glorot and Bengio's uniform initialization (2010).

    Args:
        in_axis: int or sequence of ints: the axes of inputs.
        out_axis: int or sequence of ints: the axes of outputs.
        batch_axis: int or sequence of ints: the axes that are neither.
        dtype: dtype of floats; the initializer's own default.

    Returns:
        initializer: a function of (key, shape, dtype) that returns an array of that dtype and shape.

    Source: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks" (2010).

    Example:
        >>> import weft
        >>> weft.nn.initializers.glorot_uniform()(weft.random.key(0), (2, 3)).shape
        (2, 3)
    """
    return variance_scaling(1.0, "fan_avg", "uniform", in_axis, out_axis, batch_axis, dtype)


def glorot_normal(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: DTypeLike | None = None
) -> Initializer:
    """Glorot and Bengio's normal initialization (2010).

    Args:
        in_axis: int or sequence of ints: the axes of inputs.
        out_axis: int or sequence of ints: the axes of outputs.
        batch_axis: int or sequence of ints: the axes that are neither.
        dtype: dtype of floats; the initializer's own default.

    Returns:
        initializer: a function of (key, shape, dtype) that returns an array of that dtype and shape.

    Source: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks" (2010).

    Example:
        >>> import weft
        >>> weft.nn.initializers.glorot_normal()(weft.random.key(0), (2, 3)).shape
        (2, 3)
    """
    return variance_scaling(1.0, "fan_avg", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


def lecun_uniform(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: DTypeLike | None = None
) -> Initializer:
    """LeCun's uniform initialization (1998).

    Args:
        in_axis: int or sequence of ints: the axes of inputs.
        out_axis: int or sequence of ints: the axes of outputs.
        batch_axis: int or sequence of ints: the axes that are neither.
        dtype: dtype of floats; the initializer's own default.

    Returns:
        initializer: a function of (key, shape, dtype) that returns an array of that dtype and shape.

    Source: LeCun et al., "Efficient backprop" (1998).

    Example:
        >>> import weft
        >>> weft.nn.initializers.lecun_uniform()(weft.random.key(0), (2, 3)).shape
        (2, 3)
    """
    return variance_scaling(1.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def lecun_normal(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: DTypeLike | None = None
) -> Initializer:
    """LeCun's normal initialization (1998).

    Args:
        in_axis: int or sequence of ints: the axes of inputs.
        out_axis: int or sequence of ints: the axes of outputs.
        batch_axis: int or sequence of ints: the axes that are neither.
        dtype: dtype of floats; the initializer's own default.

    Returns:
        initializer: a function of (key, shape, dtype) that returns an array of that dtype and shape.

    Source: LeCun et al., "Efficient backprop" (1998).

    Example:
        >>> import weft
        >>> weft.nn.initializers.lecun_normal()(weft.random.key(0), (2, 3)).shape
        (2, 3)
    """
    return variance_scaling(1.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


def he_uniform(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: DTypeLike | None = None
) -> Initializer:
    """He's uniform initialization (2015).

    Args:
        in_axis: int or sequence of ints: the axes of inputs.
        out_axis: int or sequence of ints: the axes of outputs.
        batch_axis: int or sequence of ints: the axes that are neither.
        dtype: dtype of floats; the initializer's own default.

    Returns:
        initializer: a function of (key, shape, dtype) that returns an array of that dtype and shape.

    Source: He et al., "Delving deep into rectifiers" (2015).

    Example:
        >>> import weft
        >>> weft.nn.initializers.he_uniform()(weft.random.key(0), (2, 3)).shape
        (2, 3)
    """
    return variance_scaling(2.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def he_normal(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: DTypeLike | None = None
) -> Initializer:
    """He's normal initialization (2015).

    Args:
        in_axis: int or sequence of ints: the axes of inputs.
        out_axis: int or sequence of ints: the axes of outputs.
        batch_axis: int or sequence of ints: the axes that are neither.
        dtype: dtype of floats; the initializer's own default.

    Returns:
        initializer: a function of (key, shape, dtype) that returns an array of that dtype and shape.

    Source: He et al., "Delving deep into rectifiers" (2015).

    Example:
        >>> import weft
        >>> weft.nn.initializers.he_normal()(weft.random.key(0), (2, 3)).shape
        (2, 3)
    """
    return variance_scaling(2.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


xavier_uniform = glorot_uniform
xavier_normal = glorot_normal
kaiming_uniform = he_uniform
kaiming_normal = he_normal


def orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Initializer:
    """Orthogonal matrices times `scale`: flattened but for `column_axis`, the weights have orthonormal columns, or rows
    where those are fewer.

    Saxe, McClelland & Ganguli, "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks"
    (2014).

    Args:
        scale: number, the factor.
        column_axis: int, the axis of the columns.
        dtype: dtype of floats; the initializer's own default.

    Returns:
        initializer: a function of (key, shape, dtype) that returns an array of that dtype and shape.

    Raises:
        ValueError: for shapes of rank below 2, or a dtype that is neither float nor complex.

    Example:
        >>> import weft
        >>> weft.nn.initializers.orthogonal()(weft.random.key(0), (4, 2)).shape
        (4, 2)
    """

    def init(key: ArrayLike, shape: Shape, dtype: DTypeLike | None = dtype, out_sharding: OutSharding = None) -> Array:
        shape, dt = canonical_shape(shape), _dtype(dtype)
        if len(shape) < 2:
            raise ValueError(f"orthogonal initializer: weights must have at least two axes, got the shape {shape}.")
        m = shape[column_axis]
        axis = column_axis % len(shape)
        rest = shape[:axis] + shape[axis + 1 :]
        out = random.orthogonal(key, math.prod(rest), (), dt, m)
        out = linear.moveaxis(linear.reshape(out, (*rest, m)), len(rest), axis)
        return el.mul(linear.convert(scale, dt), out)

    return init


def delta_orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Initializer:
    """Convolution kernels (…, inputs, outputs) that are zero but for an orthogonal matrix in the middle, times `scale`.

    Xiao et al., "Dynamical isometry and a mean field theory of CNNs" (2018).

    Args:
        scale: number, the factor.
        column_axis: int, the axis of the columns.
        dtype: dtype of floats; the initializer's own default.

    Returns:
        initializer: a function of (key, shape, dtype) that returns an array of that dtype and shape.

    Raises:
        ValueError: for shapes of another rank than 3, 4 or 5, or with more inputs than outputs.

    Example:
        >>> import weft
        >>> weft.nn.initializers.delta_orthogonal()(weft.random.key(0), (3, 2, 4)).shape
        (3, 2, 4)
    """

    def init(key: ArrayLike, shape: Shape, dtype: DTypeLike | None = dtype, out_sharding: OutSharding = None) -> Array:
        shape, dt = canonical_shape(shape), _dtype(dtype)
        if len(shape) not in (3, 4, 5):
            raise ValueError(f"delta_orthogonal initializer: kernels have 3, 4 or 5 axes, got the shape {shape}.")
        if shape[-1] < shape[-2]:
            raise ValueError(
                f"delta_orthogonal initializer: there must not be more inputs than outputs, got {shape[-2]} and"
                f" {shape[-1]}."
            )
        matrix = orthogonal(scale, column_axis, dt)(key, shape[-2:])
        low = [(n - 1) // 2 for n in shape[:-2]]
        matrix = linear.expand_dims(matrix, tuple(range(len(low))))
        return pad(
            matrix, linear.convert(0, dt), tuple((a, n - 1 - a, 0) for a, n in zip(low, shape)) + ((0, 0, 0),) * 2
        )

    return init


def __dir__() -> list[str]:
    return sorted(__all__)
