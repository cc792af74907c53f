"""Activation functions, and related functions that normalize."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..base import dtypes
from ..runtime.jit import inner_jit
from ..higher_order.custom_jvp import custom_jvp
from ..numpy import comparisons, elementary, ufuncs
from ..numpy.selecting import where
from ..numpy.util import canonical_axis, on_device, operand, promote_inexact
from ..primitives import elementwise as el, transcendental
from ..primitives import linear
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..primitives.shape import slice_
from ..scipy.special import logsumexp as logsumexp
from ..typing import Array, ArrayLike

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "leaky_relu",
    "log1mexp",
    "log_sigmoid",
    "logsumexp",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "swish",
    "tanh",
]


def _float(name: str, x: Value) -> Value:
    (x,) = promote_inexact(name, x)
    return x


def identity(x: ArrayLike) -> Array:
    """x itself.

    Args:
        x: array of any dtype, any shape.

    Returns:
        array of the dtype and shape of x.

    Example:
        >>> import weft
        >>> weft.nn.identity(1.5)
        Array(1.5, dtype=float32, weak_type=True)
    """
    return on_device(operand("identity", x))


@custom_jvp
@inner_jit(name="relu")
def relu(x: ArrayLike) -> Array:
    """max(x, 0), whose derivative at 0 is 0.

    Args:
        x: array of real numbers, any shape.

    Returns:
        array of the dtype and shape of x.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.nn.relu(jnp.array([-1., 2.]))
        Array([0., 2.], dtype=float32)
    """
    return ufuncs.maximum(x, 0)


relu.defjvps(lambda t, out, x: el.select(el.gt(x, scalar_like(x, 0)), t, scalar_like(t, 0)))


@custom_jvp
@inner_jit(name="relu6")
def relu6(x: ArrayLike) -> Array:
    """min(max(x, 0), 6), whose derivative at 0 and 6 is 0.

    Args:
        x: array of real numbers, any shape.

    Returns:
        array of floats, the shape of x.

    Source: Krizhevsky, "Convolutional deep belief networks on CIFAR-10" (2010).

    Example:
        >>> import weft
        >>> float(weft.nn.relu6(7.0))
        6.0
    """
    return ufuncs.minimum(ufuncs.maximum(x, 0), 6.0)


relu6.defjvps(
    lambda t, out, x: el.select(el.and_(el.gt(x, scalar_like(x, 0)), el.lt(x, scalar_like(x, 6))), t, scalar_like(t, 0))
)


def sigmoid(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x)).

    Args:
        x: array of floats or complex numbers, any shape.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for integers and booleans.

    Example:
        >>> import weft
        >>> float(weft.nn.sigmoid(0.0))
        0.5
    """
    return transcendental.logistic(operand("sigmoid", x))


def tanh(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent.

    Args:
        x: array of numbers, any shape; integers are converted to floats.

    Returns:
        array of floats or complex numbers, the shape of x.

    Example:
        >>> import weft
        >>> float(weft.nn.tanh(0.0))
        0.0
    """
    return elementary.tanh(x)


def softplus(x: ArrayLike) -> Array:
    """log(1 + exp(x)).

    Args:
        x: array of floats, any shape; integers are converted to floats.

    Returns:
        array of floats, the shape of x.

    Source: Dugas et al., "Incorporating second-order functional knowledge for better option pricing" (2001).

    Example:
        >>> import weft
        >>> float(weft.nn.softplus(-1000.0))
        0.0
    """
    return ufuncs.logaddexp(x if dtypes.is_bool(dtype_of(operand("softplus", x))) else _float("softplus", x), 0.0)


@inner_jit(name="soft_sign")
def soft_sign(x: ArrayLike) -> Array:
    """x / (1 + |x|).

    Args:
        x: array of floats, any shape; integers are converted to floats.

    Returns:
        array of floats, the shape of x.

    Source: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks" (2010).

    Example:
        >>> import weft
        >>> import weft.numpy as jnp
        >>> weft.nn.soft_sign(jnp.array([-2., 0., 2.]))
        Array([-0.6666667,  0.       ,  0.6666667], dtype=float32)
    """
    return ufuncs.divide(x, ufuncs.add(ufuncs.abs(x), 1))


@inner_jit(name="silu")
def silu(x: ArrayLike) -> Array:
    """x * sigmoid(x), also called swish.

    Args:
        x: array of floats or complex numbers, any shape.

    Returns:
        array of the dtype and shape of x.

    Source: Elfwing et al., "Sigmoid-weighted linear units for neural network function approximation in reinforcement
    learning" (2018).

    Example:
        >>> import weft
        >>> float(weft.nn.silu(0.0))
        0.0
    """
    return ufuncs.multiply(x, sigmoid(x))


swish = silu


@inner_jit(name="mish")
def mish(x: ArrayLike) -> Array:
    """x * tanh(softplus(x)).

    Args:
        x: array of floats, any shape; integers are converted to floats.

    Returns:
        array of floats, the shape of x.

    Source: Misra, "Mish: a self regularized non-monotonic activation function" (2019).

    Example:
        >>> import weft
        >>> import weft.numpy as jnp
        >>> weft.nn.mish(jnp.array([-2., 0., 2.]))
        Array([-0.25250146,  0.        ,  1.943959  ], dtype=float32)
    """
    return ufuncs.multiply(x, elementary.tanh(softplus(x)))


@inner_jit(name="log_sigmoid")
def log_sigmoid(x: ArrayLike) -> Array:
    """log(sigmoid(x)).

    Args:
        x: array of floats, any shape; integers are converted to floats.

    Returns:
        array of floats, the shape of x.

    Example:
        >>> import weft
        >>> import weft.numpy as jnp
        >>> weft.nn.log_sigmoid(jnp.array([-2., 0., 2.]))
        Array([-2.126928 , -0.6931472, -0.126928 ], dtype=float32)
    """
    return ufuncs.negative(softplus(ufuncs.negative(x)))


@inner_jit(name="elu")
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x above 0, alpha * (exp(x) - 1) below.

    Args:
        x: array of floats, any shape; integers are converted to floats.
        alpha: number or array: the bound below, negated.

    Returns:
        array of floats, the shape of x.

    Source: Clevert et al., "Fast and accurate deep network learning by exponential linear units (ELUs)" (2015).

    Example:
        >>> import weft
        >>> float(weft.nn.elu(2.0))
        2.0
    """
    positive = comparisons.greater(x, 0)
    return where(positive, x, ufuncs.multiply(alpha, elementary.expm1(where(positive, 0.0, x))))


@inner_jit(name="leaky_relu")
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 0.01) -> Array:
    """x above 0, negative_slope * x below.

    Args:
        x: array of floats, any shape; integers are converted to floats.
        negative_slope: number or array.

    Returns:
        array of floats, the shape of x.

    Source: Maas et al., "Rectifier nonlinearities improve neural network acoustic models" (2013).

    Example:
        >>> import weft
        >>> float(weft.nn.leaky_relu(2.0))
        2.0
    """
    return where(comparisons.greater_equal(x, 0), x, ufuncs.multiply(negative_slope, x))


@inner_jit(name="hard_tanh")
def hard_tanh(x: ArrayLike) -> Array:
    """x limited to [-1, 1].

    Args:
        x: array of real numbers, any shape.

    Returns:
        array of the dtype and shape of x.

    Example:
        >>> import weft
        >>> import weft.numpy as jnp
        >>> weft.nn.hard_tanh(jnp.array([-2., 0., 2.]))
        Array([-1.,  0.,  1.], dtype=float32)
    """
    return where(comparisons.greater(x, 1), 1, where(comparisons.less(x, -1), -1, x))


@inner_jit(name="celu")
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0).

    Args:
        x: array of floats, any shape; integers are converted to floats.
        alpha: number or array.

    Returns:
        array of floats, the shape of x.

    Source: Barron, "Continuously differentiable exponential linear units" (2017).

    Example:
        >>> import weft
        >>> import weft.numpy as jnp
        >>> weft.nn.celu(jnp.array([-2., 0., 2.]))
        Array([-0.86466473,  0.        ,  2.        ], dtype=float32)
    """
    return ufuncs.add(
        ufuncs.maximum(x, 0.0), ufuncs.multiply(alpha, elementary.expm1(ufuncs.divide(ufuncs.minimum(x, 0.0), alpha)))
    )


@inner_jit(name="selu")
def selu(x: ArrayLike) -> Array:
    """The scaled exponential linear unit.

    Args:
        x: array of floats, any shape; integers are converted to floats.

    Returns:
        array of floats, the shape of x.

    Source: Klambauer et al., "Self-normalizing neural networks" (2017).

    Example:
        >>> import weft
        >>> float(weft.nn.selu(0.0))
        0.0
    """
    return ufuncs.multiply(1.0507009873554804934193349852946, elu(x, 1.6732632423543772848170429916717))


@inner_jit(name="gelu", static_argnums=(1,))
def _gelu_exact(x: Value, _: object) -> Value:
    half_root = scalar_like(x, math.sqrt(0.5))
    return el.mul(el.mul(scalar_like(x, 0.5), x), transcendental.erfc(el.mul(el.neg(x), half_root)))


def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """x times the probability that a normal number lies below x (by default through tanh, approximately).

    Args:
        x: array of floats, any shape; integers are converted to floats.
        approximate: bool: through tanh; else by the error function.

    Returns:
        array of floats, the shape of x.

    Source: Hendrycks and Gimpel, "Gaussian error linear units (GELUs)" (2016).

    Example:
        >>> import weft
        >>> float(weft.nn.gelu(0.0))
        0.0
    """
    x = _float("gelu", x)
    if not approximate:
        return _gelu_exact(x, 0)
    cubic = el.mul(scalar_like(x, 0.044715), el.integer_pow(x, 3))
    inner = el.mul(linear.convert(math.sqrt(2 / math.pi), dtype_of(x)), el.add(x, cubic))
    return el.mul(x, el.mul(scalar_like(x, 0.5), el.add(scalar_like(x, 1), transcendental.tanh(inner))))


@inner_jit(name="glu", static_argnums=(1,))
def _glu(x: Value, axis: Any) -> Value:
    shape = shape_of(x)
    n = shape[axis]
    part = lambda lo, hi: slice_(
        x,
        tuple(lo if d == axis else 0 for d in range(len(shape))),
        tuple(hi if d == axis else m for d, m in enumerate(shape)),
    )
    return el.mul(part(0, n // 2), transcendental.logistic(part(n // 2, n)))


def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The first half of an axis times the sigmoid of the second.

    Args:
        x: array of floats, of even size along the axis.
        axis: int, the axis; negative ones count from the end.

    Returns:
        array of the dtype of x, half as long along the axis.

    Raises:
        ValueError: for an odd size.

    Source: Dauphin et al., "Language modeling with gated convolutional networks" (2017).

    Example:
        >>> import weft
        >>> import weft.numpy as jnp
        >>> weft.nn.glu(jnp.array([1., 2., 0., 0.]))
        Array([0.5, 1. ], dtype=float32)
    """
    x = on_device(operand("glu", x))
    (axis,) = _of_rank("glu", axis, len(shape_of(x)))
    if shape_of(x)[axis] % 2:
        raise ValueError(f"glu: the size {shape_of(x)[axis]} of axis {axis} must be even.")
    return _glu(x, axis)


def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """(x + sqrt(x² + b)) / 2.

    Args:
        x: array of floats, any shape; integers are converted to floats.
        b: number or array, not negative.

    Returns:
        array of floats, the shape of x.

    Source: Barron, "Squareplus: a softplus-like algebraic rectifier" (2021).

    Example:
        >>> import weft
        >>> import weft.numpy as jnp
        >>> weft.nn.squareplus(jnp.array([-2., 0., 2.]))
        Array([0.41421354, 1.        , 2.4142137 ], dtype=float32)
    """
    x, b = promote_inexact("squareplus", _float("squareplus", x), b)
    return el.div(el.add(x, transcendental.sqrt(el.add(el.square(x), b))), scalar_like(x, 2))


def hard_sigmoid(x: ArrayLike) -> Array:
    """relu6(x + 3) / 6.

    Args:
        x: array of floats, any shape; integers are converted to floats.

    Returns:
        array of floats, the shape of x.

    Source: Howard et al., "Searching for MobileNetV3" (2019).

    Example:
        >>> import weft
        >>> import weft.numpy as jnp
        >>> weft.nn.hard_sigmoid(jnp.array([-2., 0., 2.]))
        Array([0.16666667, 0.5       , 0.8333334 ], dtype=float32)
    """
    return ufuncs.divide(relu6(ufuncs.add(x, 3.0)), 6.0)


def hard_silu(x: ArrayLike) -> Array:
    """x * hard_sigmoid(x).

    Args:
        x: array of floats, any shape; integers are converted to floats.

    Returns:
        array of floats, the shape of x.

    Source: Howard et al., "Searching for MobileNetV3" (2019).

    Example:
        >>> import weft
        >>> import weft.numpy as jnp
        >>> weft.nn.hard_silu(jnp.array([-2., 0., 2.]))
        Array([-0.33333334,  0.        ,  1.6666667 ], dtype=float32)
    """
    return ufuncs.multiply(x, hard_sigmoid(x))


hard_swish = hard_silu


def sparse_plus(x: ArrayLike) -> Array:
    """0 below -1, x above 1, a parabola between.

    Args:
        x: array of floats, any shape; integers are converted to floats.

    Returns:
        array of floats, the shape of x.

    Example:
        >>> import weft
        >>> import weft.numpy as jnp
        >>> weft.nn.sparse_plus(jnp.array([-2., 0., 2.]))
        Array([0.  , 0.25, 2.  ], dtype=float32)
    """
    return where(
        comparisons.less_equal(x, -1.0),
        0.0,
        where(comparisons.greater_equal(x, 1.0), x, ufuncs.divide(ufuncs.square(ufuncs.add(x, 1.0)), 4)),
    )


def sparse_sigmoid(x: ArrayLike) -> Array:
    """0 below -1, 1 above 1, a line between.

    Args:
        x: array of floats, any shape; integers are converted to floats.

    Returns:
        array of floats, the shape of x.

    Example:
        >>> import weft
        >>> import weft.numpy as jnp
        >>> weft.nn.sparse_sigmoid(jnp.array([-2., 0., 2.]))
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    return ufuncs.multiply(0.5, ufuncs.clip(ufuncs.add(x, 1.0), 0.0, 2.0))


def log1mexp(x: ArrayLike) -> Array:
    """log(1 - exp(-x)) for x > 0, exact at both ends.

    Args:
        x: array of floats, any shape; integers are converted to floats.

    Returns:
        array of floats, the shape of x.

    Source: Mächler, "Accurately computing log(1 - exp(-

    Example:
        >>> import weft
        >>> import weft.numpy as jnp
        >>> weft.nn.log1mexp(jnp.array([.5, 2.]))
        Array([-0.93275213, -0.14541346], dtype=float32)
    """
    (x,) = promote_inexact("log1mexp", x)
    c = math.log(2.0)
    return where(
        comparisons.less(x, c),
        elementary.log(ufuncs.negative(elementary.expm1(ufuncs.negative(x)))),
        elementary.log1p(ufuncs.negative(elementary.exp(ufuncs.negative(x)))),
    )


def _of_rank(name: str, axis: Any, rank: int) -> tuple[Any, ...]:
    """Axes whose sizes are needed, as a tuple. Raises IndexError if the array has fewer axes."""
    try:
        return _axes(axis, rank)
    except ValueError as e:
        raise IndexError(f"{name}: {e}") from None


def _axes(axis: Any, rank: int) -> tuple[Any, ...]:
    if axis is None:
        return tuple(range(rank))
    return tuple(sorted(canonical_axis(a, rank) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))))
