"""Activation functions and their normalising relatives."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..base import dtypes
from ..base.avals import as_size
from ..runtime.jit import inner_jit
from ..higher_order.custom_jvp import custom_jvp
from ..core.trace import axis_size_of, get_aval
from ..base.errors import at_user_line, type_error
from ..lax.collectives import axis_index, pmax
from ..numpy import comparisons, elementary, reductions, ufuncs
from ..numpy.creation import asarray
from ..numpy.selecting import where
from ..numpy.util import canonical_axis, on_device, operand, promote_inexact, split_names
from ..primitives import elementwise as el, transcendental
from ..primitives import linear
from ..primitives.reduce import reduce_max
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..primitives.shape import iota, slice_
from ..scipy.special import logsumexp as logsumexp
from ..typing import Array, ArrayLike, Axis, AxisName, DTypeLike

if TYPE_CHECKING:
    from ..core.types import Value
    from ..base.dtypes import ElementType

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
    "log_softmax",
    "logmeanexp",
    "logsumexp",
    "mish",
    "one_hot",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softmax",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "standardize",
    "swish",
    "tanh",
]


def _float(name: str, x: Value) -> Value:
    (x,) = promote_inexact(name, x)
    return x


def identity(x: ArrayLike) -> Array:
    """x itself.

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

    Example:
        >>> import weft
        >>> float(weft.nn.tanh(0.0))
        0.0
    """
    return elementary.tanh(x)


def softplus(x: ArrayLike) -> Array:
    """log(1 + exp(x)).

    Example:
        >>> import weft
        >>> float(weft.nn.softplus(-1000.0))
        0.0
    """
    return ufuncs.logaddexp(x if dtypes.is_bool(dtype_of(operand("softplus", x))) else _float("softplus", x), 0.0)


@inner_jit(name="soft_sign")
def soft_sign(x: ArrayLike) -> Array:
    """x / (1 + |x|).

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

    Example:
        >>> import weft
        >>> float(weft.nn.leaky_relu(2.0))
        2.0
    """
    return where(comparisons.greater_equal(x, 0), x, ufuncs.multiply(negative_slope, x))


@inner_jit(name="hard_tanh")
def hard_tanh(x: ArrayLike) -> Array:
    """x limited to [-1, 1].

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

    Example:
        >>> import weft
        >>> import weft.numpy as jnp
        >>> weft.nn.hard_sigmoid(jnp.array([-2., 0., 2.]))
        Array([0.16666667, 0.5       , 0.8333334 ], dtype=float32)
    """
    return ufuncs.divide(relu6(ufuncs.add(x, 3.0)), 6.0)


def hard_silu(x: ArrayLike) -> Array:
    """x * hard_sigmoid(x).

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

    Example:
        >>> import weft
        >>> import weft.numpy as jnp
        >>> weft.nn.sparse_sigmoid(jnp.array([-2., 0., 2.]))
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    return ufuncs.multiply(0.5, ufuncs.clip(ufuncs.add(x, 1.0), 0.0, 2.0))


def log1mexp(x: ArrayLike) -> Array:
    """log(1 - exp(-x)) for x > 0, exact at both ends.

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


def _logits(name: str, x: Value) -> Any:
    if dtypes.is_bool(dtype_of(operand(name, x))):
        raise type_error(f"{name} takes numbers, got bool. Convert the array with astype(float).")
    return on_device(_float(name, x))


def _shifted(x: Value, axes: tuple[int, ...], where_: Value, names: tuple[Any, ...] = ()) -> Value:
    """(x minus its maximum without derivative)."""
    top = (
        reductions.max(x, axes, keepdims=False, initial=-math.inf, where=where_)
        if where_ is not None
        else _max_with_floor(x, axes)
    )
    if where_ is not None:  # what is masked gives no derivative, even where nothing is left
        x = where(where_, x, -math.inf)
    top = linear.stop_gradient_p.bind(linear.expand_dims(top, axes))
    return el.sub(x, pmax(top, names) if names else top)


def _max_with_floor(x: Value, axes: tuple[int, ...]) -> Value:
    return el.max_(scalar_like(x, -math.inf), reduce_max(x, axes))


def _of_rank(name: str, axis: Any, rank: int) -> tuple[Any, ...]:
    """Axes whose sizes are needed; IndexError where there are fewer."""
    try:
        return _axes(axis, rank)
    except ValueError as e:
        raise IndexError(f"{name}: {e}") from None


def _axes(axis: Any, rank: int) -> tuple[Any, ...]:
    if axis is None:
        return tuple(range(rank))
    return tuple(sorted(canonical_axis(a, rank) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))))


@inner_jit(name="log_softmax", static_argnums=(1, 2))
def _log_softmax(x: Value, axes: tuple[int, ...], names: tuple[Any, ...], where_: Value = None) -> Value:
    shifted = _shifted(x, axes, where_, names)
    total = reductions.sum(transcendental.exp(shifted), (*axes, *names), keepdims=True, where=where_)
    out = el.sub(shifted, transcendental.log(total))
    return out if where_ is None else where(where_, out, -math.inf)


def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """log(softmax(x)).

    Example:
        >>> import weft, weft.numpy as jnp
        >>> float(weft.nn.log_softmax(jnp.zeros(1))[0])
        0.0
    """
    x = _logits("log_softmax", x)
    axis, names = split_names(axis)
    return _log_softmax(x, _axes(axis, len(shape_of(x))), names, *(() if where is None else (where,)))


def softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """exp(x) divided by its sum over an axis.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.nn.softmax(jnp.zeros(2))
        Array([0.5, 0.5], dtype=float32)
    """
    x = _logits("softmax", x)
    axis, names = split_names(axis)
    axes = _axes(axis, len(shape_of(x)))
    exps = transcendental.exp(_shifted(x, axes, where, names))
    total = reductions.sum(exps, (*axes, *names), keepdims=True, where=where)
    out = el.div(exps, total)
    return out if where is None else _where(where, out, 0.0)


_where = where


def logmeanexp(x: ArrayLike, axis: Axis = None, where: ArrayLike | None = None, keepdims: bool = False) -> Array:
    """log of the mean of exp(x).

    Example:
        >>> import weft
        >>> import weft.numpy as jnp
        >>> weft.nn.logmeanexp(jnp.array([1., 1., 1.]))
        Array(1., dtype=float32)
    """
    out = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    count = reductions.count_nonzero(
        linear.full(shape_of(x), True, dtypes.bool_) if where is None else where, axis, keepdims
    )
    return ufuncs.subtract(out, elementary.log(linear.convert(count, dtype_of(out))))


@inner_jit(name="standardize", static_argnums=(1, 2, 3))
def _standardize(
    x: Value,
    axes: tuple[int, ...],
    epsilon: float,
    algorithm: str,
    mean: Value = None,
    variance: Value = None,
    where_: Value = None,
) -> Value:
    mean = reductions.mean(x, axes, keepdims=True, where=where_) if mean is None else mean
    if variance is None and algorithm == "stable":
        variance = reductions.mean(ufuncs.square(ufuncs.subtract(x, mean)), axes, keepdims=True, where=where_)
    elif variance is None:
        variance = ufuncs.subtract(
            reductions.mean(ufuncs.square(x), axes, keepdims=True, where=where_), ufuncs.square(mean)
        )
    return ufuncs.multiply(ufuncs.subtract(x, mean), transcendental.rsqrt(ufuncs.add(variance, epsilon)))


def standardize(
    x: ArrayLike,
    axis: Axis = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: float = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """x with mean 0 and variance 1 along an axis.

    The variance is the mean of x² less the square of the mean, or with `algorithm='stable'` the mean of (x - mean)²,
    exact where the mean is large.

    Raises:
        ValueError: for another algorithm. IndexError: for an axis out of range.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.nn.standardize(jnp.array([1., 3.])).shape
        (2,)
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(at_user_line(f"standardize: algorithm is 'fast' or 'stable', got {algorithm!r}."))
    x = on_device(_float("standardize", x))
    if dtypes.is_complex(dtype_of(x)):
        raise ValueError(
            at_user_line(f"standardize takes real numbers, got {get_aval(x)}. Pass real and imaginary parts.")
        )
    axis, names = split_names(axis)
    return _standardize(
        x, (*_of_rank("standardize", axis, len(shape_of(x))), *names), float(epsilon), algorithm, mean, variance, where
    )


@inner_jit(name="_one_hot", static_argnums=(1, 2, 3))
def _one_hot(x: Value, num_classes: int, dtype: ElementType, axis: Any) -> Value:
    rank = len(shape_of(x)) + 1
    lhs = linear.expand_dims(x, (axis,))
    shape = tuple(num_classes if d == axis else 1 for d in range(rank))
    classes = iota(dtype_of(x), shape, axis)
    return linear.convert(el.eq(lhs, classes), dtype)


def one_hot(x: ArrayLike, num_classes: int, *, dtype: DTypeLike | None = None, axis: int | AxisName = -1) -> Array:
    """For each integer a vector with a one at its place (all zeros where it is out of range).

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.nn.one_hot(jnp.array([0, 2]), 3).tolist()
        [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    x = asarray(x)
    x = linear.convert(x, dtype_of(x))
    dt = dtypes.canonicalize(float if dtype is None else dtype)
    if isinstance(axis, str):  # a mapped axis: each member gets its own class
        if axis_size_of(axis) != num_classes:
            raise ValueError(f"one_hot: axis {axis!r} has size {axis_size_of(axis)}, not num_classes={num_classes}.")
        here = linear.convert(axis_index(axis), dtype_of(x))
        return linear.convert(el.eq(x, here), dt)
    return _one_hot(x, as_size(num_classes), dt, canonical_axis(axis, len(shape_of(x)) + 1))
