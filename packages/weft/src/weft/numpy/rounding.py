"""Rounding of `weft.numpy`, and splitting numbers into integer and fractional parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ..base.annotations import alias
from ..base import dtypes
from ..core.trace import get_aval
from ..base.errors import type_error
from ..primitives import elementwise as el
from ..primitives import linear
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..runtime.jit import inner_jit
from ..typing import Array, ArrayLike
from .util import elementwise_example, on_device, operand, promote_inexact, static_int

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = ["around", "ceil", "fix", "floor", "modf", "rint", "round", "trunc"]
_example = elementwise_example("jnp.array([1.5, -0.5])", "real numbers", "the dtype of x")


def _rounded(name: str, op: Callable[[Any], Array], x: ArrayLike) -> Array:
    x = operand(name, x)
    dt = get_aval(x).dtype
    if dtypes.is_complex(dt):
        raise type_error(f"{name} does not take complex numbers.")
    return on_device(x) if dtypes.is_int(dt) or dtypes.is_bool(dt) else op(x)


@_example
def floor(x: ArrayLike, /) -> Array:
    """The largest integer that is not above x."""
    return _rounded("floor", el.floor, x)


@_example
def ceil(x: ArrayLike, /) -> Array:
    """The smallest integer that is not below x."""
    return _rounded("ceil", el.ceil, x)


@inner_jit(name="trunc")
def _trunc(x: Any) -> Array:
    return el.select_n_p.bind(el.lt(x, scalar_like(x, 0)), el.floor(x), el.ceil(x))


def trunc(x: ArrayLike) -> Array:
    """x without its fraction.

    Args:
        x: array of real numbers, any shape.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for complex numbers.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.trunc(jnp.array([1.5, -1.5]))
        Array([ 1., -1.], dtype=float32)
    """
    return _rounded("trunc", _trunc, x)


fix = trunc


def rint(x: ArrayLike, /) -> Array:
    """The nearest integer as a float, halves to even.

    Args:
        x: array of numbers or booleans, any shape.

    Returns:
        array of floats or complex numbers, the shape of x.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.rint(jnp.array([0.5, 1.5]))
        Array([0., 2.], dtype=float32)
    """
    strong = not dtypes.is_inexact(get_aval(operand("rint", x)).dtype)
    (x,) = promote_inexact("rint", x)
    x = linear.convert(x, dtype_of(x)) if strong else x
    return (
        el.complex_(el.round_(el.real(x), 1), el.round_(el.imag(x), 1))
        if dtypes.is_complex(dtype_of(x))
        else el.round_(x, 1)
    )


@inner_jit(name="round", static_argnums=(1,))
def _round(x: Value, decimals: int) -> Any:
    dt = dtype_of(x)
    if dtypes.is_complex(dt):
        return el.complex_(_round_float(el.real(x), decimals), _round_float(el.imag(x), decimals))
    return _round_float(x, decimals)


def _round_float(x: Value, decimals: int) -> Value:
    if decimals == 0:
        return el.round_(x, 1)
    dt = dtype_of(x)
    wide = linear.convert(x, dtypes.float32) if dtypes.bits(dt) < 32 else x
    factor = scalar_like(wide, 10.0 ** (decimals if decimals > 0 else -decimals))
    scale, back = (el.mul, el.div) if decimals > 0 else (el.div, el.mul)
    return linear.convert(
        back(el.round_(scale(wide, factor), 1), factor), dt, get_aval(x).weak_type and not shape_of(x)
    )


def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Rounded to a number of decimals (negative ones round to tens, hundreds, …); halves to even.

    Args:
        a: array of numbers or booleans, any shape.
        decimals: int, how many digits behind the point.
        out: None, since arrays are immutable.

    Returns:
        array of the dtype and shape of a.

    Raises:
        NotImplementedError: `out` is given, or integers are rounded to negative decimals.
        ValueError: `a` is boolean.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.round(jnp.array([1.25, 2.5]), 1)
        Array([1.2, 2.5], dtype=float32)
    """
    if out is not None:
        raise NotImplementedError(
            "weft.numpy.round: the 'out' argument is not supported, since arrays are immutable; use the result."
        )
    a, decimals = operand("round", a), static_int("decimals", decimals)
    dt = get_aval(a).dtype
    if dtypes.is_bool(dt):
        raise ValueError(f"round does not take booleans, got {get_aval(a)}; convert them with astype.")
    if dtypes.is_int(dt):
        if decimals < 0:
            raise NotImplementedError(
                "round of integers to negative decimals is not implemented; convert to a float first."
            )
        return on_device(a)
    return _round(a, int(decimals))


around = alias(round, "around")


def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """(fraction, integer part), both with the sign of x.

    Args:
        x: array of real numbers, any shape.
        out: None, since arrays are immutable.

    Returns:
        (fractions, whole parts), arrays of floats of the shape of x.

    Raises:
        TypeError: for complex numbers.

    Example:
        >>> import weft.numpy as jnp
        >>> f, i = jnp.modf(jnp.array([1.5]))
    """
    if out is not None:
        raise NotImplementedError(
            "modf: the argument 'out' is not supported, since arrays are immutable; use the result."
        )
    (x,) = promote_inexact("modf", x)
    whole = trunc(x)
    return el.sub(x, whole), whole
