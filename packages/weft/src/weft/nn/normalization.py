"""Functions that normalize along axes, such as softmax, and one-hot vectors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..base import dtypes
from ..base.avals import as_size
from ..runtime.jit import inner_jit
from ..core.trace import axis_size_of, get_aval
from ..base.errors import at_user_line, type_error
from ..lax.collectives import axis_index, pmax
from ..numpy import elementary, reductions, ufuncs
from ..numpy.creation import asarray
from ..numpy.selecting import where
from ..numpy.util import canonical_axis, on_device, operand, split_names
from ..primitives import elementwise as el, transcendental
from ..primitives import linear
from ..primitives.reduce import reduce_max
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..primitives.shape import iota
from ..scipy.special import logsumexp as logsumexp
from ..typing import Array, ArrayLike, Axis, AxisName, DTypeLike

if TYPE_CHECKING:
    from ..core.types import Value
    from ..base.dtypes import ElementType

from .activations import _axes, _float, _of_rank

__all__ = ["log_softmax", "logmeanexp", "one_hot", "softmax", "standardize"]


def _logits(name: str, x: Value) -> Any:
    if dtypes.is_bool(dtype_of(operand(name, x))):
        raise type_error(f"{name} takes numbers, got bool. Convert the array with astype(float).")
    return on_device(_float(name, x))


def _shifted(x: Value, axes: tuple[int, ...], where_: Value, names: tuple[Any, ...] = ()) -> Value:
    """x minus its maximum; the maximum is treated as a constant."""
    top = (
        reductions.max(x, axes, keepdims=False, initial=-math.inf, where=where_)
        if where_ is not None
        else _max_with_floor(x, axes)
    )
    if where_ is not None:  # masked elements have no derivative, even if all are masked
        x = where(where_, x, -math.inf)
    top = linear.stop_gradient_p.bind(linear.expand_dims(top, axes))
    return el.sub(x, pmax(top, names) if names else top)


def _max_with_floor(x: Value, axes: tuple[int, ...]) -> Value:
    return el.max_(scalar_like(x, -math.inf), reduce_max(x, axes))


@inner_jit(name="log_softmax", static_argnums=(1, 2))
def _log_softmax(x: Value, axes: tuple[int, ...], names: tuple[Any, ...], where_: Value = None) -> Value:
    shifted = _shifted(x, axes, where_, names)
    total = reductions.sum(transcendental.exp(shifted), (*axes, *names), keepdims=True, where=where_)
    out = el.sub(shifted, transcendental.log(total))
    return out if where_ is None else where(where_, out, -math.inf)


def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """log(softmax(x)).

    Args:
        x: array of floats, any shape; integers are converted to floats.
        axis: int, tuple of ints, or None for all: the axes.
        where: array of booleans that broadcasts to x: which elements count; None for all.

    Returns:
        array of floats, the shape of x.

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

    Args:
        x: array of floats, any shape; integers are converted to floats.
        axis: int, tuple of ints, or None for all: the axes.
        where: array of booleans that broadcasts to x: which elements count; None for all.

    Returns:
        array of floats, the shape of x.

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

    Args:
        x: array of floats, any shape; integers are converted to floats.
        axis: int, tuple of ints, or None for all: the axes.
        where: array of booleans that broadcasts to x: which elements count; None for all.
        keepdims: bool: the reduced axes stay, with size 1.

    Returns:
        array of floats, the shape of x without the axes.

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

    Args:
        x: array of floats, any shape; integers are converted to floats.
        axis: int, tuple of ints, or None for all: the axes.
        mean, variance: array of floats that broadcasts to x; None to compute it.
        epsilon: number, added to the variance.
        where: array of booleans that broadcasts to x: which elements count; None for all.
        algorithm: 'fast' or 'stable'.

    Returns:
        array of floats, the shape of x.

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

    Args:
        x: array of integers, any shape.
        num_classes: int, the size of the vectors.
        dtype: dtype of the result; None for the default floats.
        axis: int, or name of a mapped axis: where the vectors lie in the result.

    Returns:
        array of that dtype, the shape of x with one axis more.

    Raises:
        ValueError: `axis` is the name of a mapped axis whose size is not `num_classes`.

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
