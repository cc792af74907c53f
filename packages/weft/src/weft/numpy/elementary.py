"""Elementary functions of `weft.numpy`. They take real and complex numbers; integers become floats."""

from __future__ import annotations

import math
from typing import Any

from ..base.annotations import alias
from ..base import dtypes
from ..core.trace import Tracer, aval_of, get_aval
from ..primitives import elementwise as el, transcendental
from ..primitives import linear
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..runtime.jit import inner_jit
from ..typing import Array, ArrayLike
from .util import elementwise_example, promote_inexact, promote_strong, strong

__all__ = [
    "acos",
    "acosh",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cbrt",
    "cos",
    "cosh",
    "deg2rad",
    "degrees",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log10",
    "log1p",
    "log2",
    "rad2deg",
    "radians",
    "sin",
    "sinc",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]
_INEXACT = frozenset(dtypes.dtype(n) for n in ("bfloat16", "float16", "float32", "float64", "complex64", "complex128"))
_TAKES = "numbers (integers and booleans as floats)"
_GIVES = "floats (complex numbers for complex ones)"
_example = elementwise_example("jnp.array([0.5, 0.25])", _TAKES, _GIVES)


def _real(name: str, x: ArrayLike) -> Any:
    """`x`; integers become floats."""
    if getattr(x, "dtype", None) in _INEXACT and (type(x) in aval_of or isinstance(x, Tracer)):
        return x  # most calls need no promotion
    return promote_inexact(name, x)[0]


@inner_jit(name="log2")
def _log2(x: Any) -> Array:
    return _logarithm(x, 2)


@inner_jit(name="log10")
def _log10(x: Any) -> Array:
    return _logarithm(x, 10)


def _logarithm(x: Any, base: int) -> Array:
    x = linear.convert(x, dtype_of(x))  # for Python numbers JAX returns no weak type
    return el.div(transcendental.log(x), scalar_like(x, math.log(base)))


def _scaled(x: Any, by: float) -> Array:
    return strong(el.mul(x, scalar_like(x, by))) if shape_of(x) else el.mul(x, scalar_like(x, by))


@inner_jit(name="sinc")
def _sinc(x: Any) -> Array:
    scaled = el.mul(scalar_like(x, math.pi), x)
    zero = el.eq(x, scalar_like(x, 0))
    one = linear.full(shape_of(x), 1, dtype_of(x), get_aval(x).weak_type)
    safe = el.select_n_p.bind(zero, scaled, one)
    # the Taylor series near zero keeps the derivatives right there
    series = el.sub(one, el.div(el.square(scaled), scalar_like(x, 6)))
    return el.select_n_p.bind(zero, el.div(transcendental.sin(safe), safe), series)


@_example
def sin(x: ArrayLike, /) -> Array:
    """The sine of x in radians."""
    return transcendental.sin(_real("sin", x))


@_example
def cos(x: ArrayLike, /) -> Array:
    """The cosine of x in radians."""
    return transcendental.cos(_real("cos", x))


@_example
def tan(x: ArrayLike, /) -> Array:
    """The tangent of x in radians."""
    return transcendental.tan(_real("tan", x))


@_example
def arcsin(x: ArrayLike, /) -> Array:
    """The inverse sine."""
    return transcendental.asin(_real("arcsin", x))


@_example
def arccos(x: ArrayLike, /) -> Array:
    """The inverse cosine."""
    return transcendental.acos(_real("arccos", x))


@_example
def arctan(x: ArrayLike, /) -> Array:
    """The inverse tangent."""
    return transcendental.atan(_real("arctan", x))


@_example
def sinh(x: ArrayLike, /) -> Array:
    """The hyperbolic sine."""
    return transcendental.sinh(_real("sinh", x))


@_example
def cosh(x: ArrayLike, /) -> Array:
    """The hyperbolic cosine."""
    return transcendental.cosh(_real("cosh", x))


@_example
def tanh(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent."""
    return transcendental.tanh(_real("tanh", x))


@_example
def arcsinh(x: ArrayLike, /) -> Array:
    """The inverse hyperbolic sine."""
    return transcendental.asinh(_real("arcsinh", x))


@elementwise_example("jnp.array([1.5])", _TAKES, _GIVES)
def arccosh(x: ArrayLike, /) -> Array:
    """The inverse hyperbolic cosine."""
    return transcendental.acosh(_real("arccosh", x))


@_example
def arctanh(x: ArrayLike, /) -> Array:
    """The inverse hyperbolic tangent."""
    return transcendental.atanh(_real("arctanh", x))


@_example
def exp(x: ArrayLike, /) -> Array:
    """e to the power x."""
    return transcendental.exp(_real("exp", x))


@_example
def exp2(x: ArrayLike, /) -> Array:
    """2 to the power x."""
    return transcendental.exp2(_real("exp2", x))


@_example
def expm1(x: ArrayLike, /) -> Array:
    """exp(x) - 1, exact near 0."""
    return transcendental.expm1(_real("expm1", x))


@_example
def log(x: ArrayLike, /) -> Array:
    """The natural logarithm."""
    return transcendental.log(_real("log", x))


@_example
def log1p(x: ArrayLike, /) -> Array:
    """log(1 + x), exact near 0."""
    return transcendental.log1p(_real("log1p", x))


@_example
def sqrt(x: ArrayLike, /) -> Array:
    """The square root."""
    return transcendental.sqrt(_real("sqrt", x))


@_example
def cbrt(x: ArrayLike, /) -> Array:
    """The cube root."""
    return transcendental.cbrt(_real("cbrt", x))


@_example
def log2(x: ArrayLike, /) -> Array:
    """The logarithm to base 2."""
    return _log2(_real("log2", x))


@_example
def log10(x: ArrayLike, /) -> Array:
    """The logarithm to base 10."""
    return _log10(_real("log10", x))


@_example
def deg2rad(x: ArrayLike, /) -> Array:
    """Degrees as radians."""
    return _scaled(_real("deg2rad", x), math.pi / 180)


@_example
def rad2deg(x: ArrayLike, /) -> Array:
    """Radians as degrees."""
    return _scaled(_real("rad2deg", x), 180 / math.pi)


@_example
def sinc(x: ArrayLike, /) -> Array:
    """sin(pi x) / (pi x), 1 at 0."""
    return _sinc(*promote_strong("sinc", _real("sinc", x)))


asin = alias(arcsin, "asin")
acos = alias(arccos, "acos")
atan = alias(arctan, "atan")
asinh = alias(arcsinh, "asinh")
acosh = alias(arccosh, "acosh")
atanh = alias(arctanh, "atanh")
radians = alias(deg2rad, "radians")
degrees = alias(rad2deg, "degrees")
