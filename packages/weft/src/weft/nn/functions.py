"""Activation functions and what networks are made of."""
from __future__ import annotations

import math
from typing import Callable

from .. import dtypes
from .. import numpy as jnp
from ..control.call import inner_jit
from ..control.custom import custom_jvp
from ..core.trace import get_aval
from ..lax import broadcasted_iota, erfc, logistic, rsqrt, stop_gradient


def _piecewise_jvp(fun: custom_jvp, slope: Callable) -> custom_jvp:
    """Gives `fun` the tangent slope(x) · t, which is 0 where a plain derivative would be undecided."""
    fun.defjvps(lambda t, out, x: jnp.where(slope(x), t, jnp.zeros_like(t)))
    return fun


@inner_jit(name="relu")
def _relu(x):
    return jnp.maximum(x, 0)


@custom_jvp
def relu(x):
    """max(x, 0), with derivative 0 at 0.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.nn.relu(jnp.array([-1., 2.]))
        Array([0., 2.], dtype=float32)
    """
    return _relu(x)


_piecewise_jvp(relu, lambda x: x > 0)


@inner_jit(name="relu6")
def _relu6(x):
    return jnp.minimum(jnp.maximum(x, 0), 6.0)


@custom_jvp
def relu6(x):
    """min(max(x, 0), 6)."""
    return _relu6(x)


_piecewise_jvp(relu6, lambda x: (x > 0) & (x < 6))


def identity(x):
    """`x` itself, as an array."""
    return jnp.asarray(x)


def sigmoid(x):
    """1 / (1 + exp(-x)).

    Example:
        >>> import weft
        >>> weft.nn.sigmoid(0.0)
        Array(0.5, dtype=float32, weak_type=True)
    """
    return logistic(_inexact(x))


def _inexact(x):
    x = jnp.asarray(x)
    return x if dtypes.is_inexact(get_aval(x).dtype) else x.astype(float)


@inner_jit
def softplus(x):
    """log(1 + exp(x))."""
    return jnp.logaddexp(x, 0.0)


@inner_jit
def log_sigmoid(x):
    """log(sigmoid(x))."""
    return -softplus(-jnp.asarray(x))


@inner_jit
def squareplus(x, b=4):
    """(x + sqrt(x² + b)) / 2."""
    x = jnp.asarray(x)
    return (x + jnp.sqrt(jnp.square(x) + b)) / 2.0


@inner_jit
def sparse_plus(x):
    """0 up to -1, (x + 1)² / 4 up to 1, x beyond."""
    x = jnp.asarray(x)
    return jnp.where(x <= -1.0, 0.0, jnp.where(x >= 1.0, x, (x + 1.0) ** 2 / 4))


@inner_jit
def sparse_sigmoid(x):
    """The derivative of `sparse_plus`: 0 up to -1, (x + 1) / 2 up to 1, 1 beyond."""
    return 0.5 * jnp.clip(jnp.asarray(x) + 1.0, 0.0, 2.0)


@inner_jit
def soft_sign(x):
    """x / (|x| + 1)."""
    x = jnp.asarray(x)
    return x / (jnp.abs(x) + 1)


@inner_jit
def silu(x):
    """x · sigmoid(x); also known as swish."""
    x = jnp.asarray(x)
    return x * sigmoid(x)


swish = silu


@inner_jit
def mish(x):
    """x · tanh(softplus(x))."""
    x = jnp.asarray(x)
    return x * jnp.tanh(softplus(x))


@inner_jit
def elu(x, alpha=1.0):
    """x where positive, alpha · (exp(x) - 1) elsewhere."""
    x = jnp.asarray(x)
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0.0, x)))


@inner_jit
def selu(x):
    """The self-normalising exponential linear unit (Klambauer et al., 2017)."""
    return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717)


@inner_jit
def celu(x, alpha=1.0):
    """max(x, 0) + alpha · (exp(min(x, 0) / alpha) - 1)."""
    return jnp.maximum(x, 0.0) + alpha * jnp.expm1(jnp.minimum(x, 0.0) / alpha)


@inner_jit
def leaky_relu(x, negative_slope=0.01):
    """x where not negative, negative_slope · x elsewhere."""
    x = jnp.asarray(x)
    return jnp.where(x >= 0, x, negative_slope * x)


@inner_jit
def hard_tanh(x):
    """x, clipped to [-1, 1]."""
    x = jnp.asarray(x)
    return jnp.where(x > 1, 1, jnp.where(x < -1, -1, x))


@inner_jit
def hard_sigmoid(x):
    """relu6(x + 3) / 6."""
    return relu6(jnp.asarray(x) + 3.0) / 6.0


@inner_jit
def hard_silu(x):
    """x · hard_sigmoid(x)."""
    x = jnp.asarray(x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu


def gelu(x, approximate: bool = True):
    """x · Φ(x), Φ the normal distribution function; by default its tanh approximation (Hendrycks & Gimpel, 2016)."""
    x = _inexact(x)
    if approximate:
        root = jnp.asarray(math.sqrt(2 / math.pi), get_aval(x).dtype)
        return x * (0.5 * (1.0 + jnp.tanh(root * (x + 0.044715 * (x ** 3)))))
    return 0.5 * x * erfc(-x * math.sqrt(0.5))


@inner_jit(static_argnames=("axis",))
def _glu(x, *, axis):
    a, b = jnp.split(x, 2, axis)
    return a * sigmoid(b)


def glu(x, axis: int = -1):
    """The first half of `x` along `axis`, gated by the sigmoid of the second."""
    x = jnp.asarray(x)
    if x.shape[axis] % 2:
        raise ValueError(f"glu: axis {axis} of shape {x.shape} must have an even size.")
    return _glu(x, axis=axis)


def tanh(x):
    """The hyperbolic tangent."""
    return jnp.tanh(x)


def softmax(x, axis=-1, where=None):
    """exp(x) / sum(exp(x)) along `axis`, without overflow.

    Args:
        where: elements that count; the others get 0.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.nn.softmax(jnp.array([0., 0.]))
        Array([0.5, 0.5], dtype=float32)
    """
    x = _inexact(x)
    unnormalized = jnp.exp(x - stop_gradient(jnp.max(x, axis, where=where, initial=-jnp.inf, keepdims=True)))
    result = unnormalized / jnp.sum(unnormalized, axis, where=where, keepdims=True)
    return result if where is None else jnp.where(where, result, 0)


@inner_jit(name="log_softmax", static_argnames=("axis",))
def _log_softmax(x, *, axis):
    shifted = x - stop_gradient(jnp.max(x, axis, initial=-jnp.inf, keepdims=True))
    return shifted - jnp.log(jnp.sum(jnp.exp(shifted), axis, keepdims=True))


def log_softmax(x, axis=-1, where=None):
    """log(softmax(x)) along `axis`.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.nn.log_softmax(jnp.zeros(2))
        Array([-0.6931472, -0.6931472], dtype=float32)
    """
    x = _inexact(x)
    if where is None:
        return _log_softmax(x, axis=axis if isinstance(axis, int) or axis is None else tuple(axis))
    shifted = x - stop_gradient(jnp.max(x, axis, where=where, initial=-jnp.inf, keepdims=True))
    total = jnp.sum(jnp.exp(shifted), axis, where=where, keepdims=True)
    return jnp.where(where, shifted - jnp.log(total), -jnp.inf)


def logsumexp(a, axis=None, b=None, keepdims: bool = False, return_sign: bool = False, where=None):
    """log(sum(b · exp(a))) along `axis`, without overflow; with `return_sign`, of its absolute value, and the sign.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.nn.logsumexp(jnp.zeros(4))
        Array(1.3862944, dtype=float32)
    """
    a = _inexact(a)
    top = jnp.max(a, axis, keepdims=keepdims, where=where, initial=-jnp.inf)
    top = stop_gradient(jnp.where(jnp.isfinite(top), top, jnp.zeros_like(top)))
    top_kept = top if keepdims else jnp.expand_dims(top, _axes(axis, a.ndim))
    terms = jnp.exp(a - top_kept)
    if b is not None:
        terms = jnp.where(b == 0, 0, terms * b)
    total = jnp.sum(terms, axis, keepdims=keepdims, where=where)
    sign = jnp.sign(total)
    out = jnp.log(jnp.abs(total)) + top
    if return_sign:
        return out, sign
    return out if b is None else jnp.where(sign < 0, jnp.nan, out)


def _axes(axis, rank: int):
    return tuple(range(rank)) if axis is None else axis


def logmeanexp(x, axis=None, where=None, keepdims: bool = False):
    """log(mean(exp(x))) along `axis`, without overflow."""
    total = logsumexp(x, axis, where=where, keepdims=keepdims)
    count = jnp.size(x) if axis is None else math.prod(jnp.shape(x)[a] for a in (axis if isinstance(axis, tuple) else (axis,)))
    return total - (math.log(count) if where is None else jnp.log(jnp.sum(jnp.broadcast_to(where, jnp.shape(x)), axis, keepdims=keepdims)))


@inner_jit
def log1mexp(x):
    """log(1 - exp(-x)) for positive x, without cancellation (Mächler, 2012)."""
    x = jnp.asarray(x)
    small = x < math.log(2)
    return jnp.where(small, jnp.log(-jnp.expm1(-jnp.where(small, x, 1.0))), jnp.log1p(-jnp.exp(-jnp.where(small, 1.0, x))))


@inner_jit(name="_one_hot", static_argnames=("num_classes", "dtype", "axis"))
def _one_hot(x, *, num_classes, dtype, axis):
    axis = axis % (x.ndim + 1)
    shape = [1] * (x.ndim + 1)
    shape[axis] = num_classes
    return (jnp.expand_dims(x, axis) == broadcasted_iota(get_aval(x).dtype, tuple(shape), axis)).astype(dtype)


def one_hot(x, num_classes: int, *, dtype=None, axis: int = -1):
    """Rows with a 1 at index `x` and 0 elsewhere; all 0 for an index out of range.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.nn.one_hot(jnp.array([0, 2]), 3)
        Array([[1., 0., 0.],
               [0., 0., 1.]], dtype=float32)
    """
    try:
        classes = num_classes.__index__()
    except (AttributeError, TypeError) as e:
        raise TypeError(f"one_hot: num_classes must be a concrete integer, got {num_classes!r}.") from e
    return _one_hot(jnp.asarray(x), num_classes=classes, dtype=dtypes.canonicalize(float if dtype is None else dtype), axis=axis)


def standardize(x, axis=-1, mean=None, variance=None, epsilon=1e-5, where=None, *, algorithm: str = "fast"):
    """(x - mean) / sqrt(variance + epsilon) along `axis`; the fast variance is mean(x²) - mean(x)², the safe one mean((x - mean)²)."""
    if algorithm not in ("fast", "safe"):
        raise ValueError(f"standardize: algorithm is 'fast' or 'safe', got {algorithm!r}.")
    x = _inexact(x)
    mean = jnp.mean(x, axis, keepdims=True, where=where) if mean is None else mean
    if variance is None:
        if algorithm == "fast":
            variance = jnp.clip(jnp.mean(jnp.square(x), axis, keepdims=True, where=where) - jnp.square(mean), 0)
        else:
            variance = jnp.mean(jnp.square(x - mean), axis, keepdims=True, where=where)
    return (x - mean) * rsqrt(jnp.asarray(variance + epsilon))
