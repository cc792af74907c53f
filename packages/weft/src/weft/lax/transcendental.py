"""Exponentials, logarithms, roots, trigonometric and hyperbolic functions, and the gamma and error functions."""

from __future__ import annotations

from typing import TypeAlias

from ..core.primitive import Primitive
from ..primitives import special, transcendental
from ..primitives.transcendental import AccuracyMode, Tolerance
from ..typing import Array, ArrayLike
from .common import operand as checked

__all__ = [
    "AccuracyMode",
    "Tolerance",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cbrt",
    "cos",
    "cosh",
    "digamma",
    "erf",
    "erf_inv",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "lgamma",
    "log",
    "log1p",
    "logistic",
    "rsqrt",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]

Accuracy: TypeAlias = AccuracyMode | Tolerance | None


def _accurate(primitive: Primitive, x: ArrayLike, accuracy: Accuracy) -> Array:
    name = primitive.name
    if accuracy is None:
        return primitive.bind(checked(name, x))
    if not isinstance(accuracy, (AccuracyMode, Tolerance)):
        raise TypeError(f"{name}: accuracy must be a lax.AccuracyMode, a lax.Tolerance or None, got {accuracy!r}.")
    return primitive.bind(checked(name, x), accuracy=accuracy)


def exp(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Computes e to the power x.

    Args:
        x: array of floats or complex numbers, any shape.
        accuracy: `lax.AccuracyMode` or `lax.Tolerance`: how exact the result must be; None for the backend's way.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype, or an `accuracy` of another type.

    Example:
        >>> from weft import lax
        >>> round(float(lax.exp(1.5)), 4)
        4.4817
    """
    return _accurate(transcendental.exp_p, x, accuracy)


def exp2(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Computes 2 to the power x.

    Args:
        x: array of floats or complex numbers, any shape.
        accuracy: `lax.AccuracyMode` or `lax.Tolerance`: how exact the result must be; None for the backend's way.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype, or an `accuracy` of another type.

    Example:
        >>> from weft import lax
        >>> round(float(lax.exp2(1.5)), 4)
        2.8284
    """
    return _accurate(transcendental.exp2_p, x, accuracy)


def log(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Computes the natural logarithm; NaN for negative floats, the principal branch for complex numbers.

    Args:
        x: array of floats or complex numbers, any shape.
        accuracy: `lax.AccuracyMode` or `lax.Tolerance`: how exact the result must be; None for the backend's way.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype, or an `accuracy` of another type.

    Example:
        >>> from weft import lax
        >>> round(float(lax.log(1.5)), 4)
        0.4055
    """
    return _accurate(transcendental.log_p, x, accuracy)


def expm1(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Computes exp(x) - 1 without loss of digits near 0.

    Args:
        x: array of floats or complex numbers, any shape.
        accuracy: `lax.AccuracyMode` or `lax.Tolerance`: how exact the result must be; None for the backend's way.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype, or an `accuracy` of another type.

    Example:
        >>> from weft import lax
        >>> round(float(lax.expm1(1.5)), 4)
        3.4817
    """
    return _accurate(transcendental.expm1_p, x, accuracy)


def log1p(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Computes log(1 + x) without loss of digits near 0; NaN for floats below -1.

    Args:
        x: array of floats or complex numbers, any shape.
        accuracy: `lax.AccuracyMode` or `lax.Tolerance`: how exact the result must be; None for the backend's way.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype, or an `accuracy` of another type.

    Example:
        >>> from weft import lax
        >>> round(float(lax.log1p(1.5)), 4)
        0.9163
    """
    return _accurate(transcendental.log1p_p, x, accuracy)


def tanh(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Computes the hyperbolic tangent.

    Args:
        x: array of floats or complex numbers, any shape.
        accuracy: `lax.AccuracyMode` or `lax.Tolerance`: how exact the result must be; None for the backend's way.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype, or an `accuracy` of another type.

    Example:
        >>> from weft import lax
        >>> round(float(lax.tanh(1.5)), 4)
        0.9051
    """
    return _accurate(transcendental.tanh_p, x, accuracy)


def logistic(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Computes the logistic function, 1 / (1 + exp(-x)).

    Args:
        x: array of floats or complex numbers, any shape.
        accuracy: `lax.AccuracyMode` or `lax.Tolerance`: how exact the result must be; None for the backend's way.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype, or an `accuracy` of another type.

    Example:
        >>> from weft import lax
        >>> round(float(lax.logistic(1.5)), 4)
        0.8176
    """
    return _accurate(transcendental.logistic_p, x, accuracy)


def sin(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Computes the sine of x in radians.

    Args:
        x: array of floats or complex numbers, any shape.
        accuracy: `lax.AccuracyMode` or `lax.Tolerance`: how exact the result must be; None for the backend's way.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype, or an `accuracy` of another type.

    Example:
        >>> from weft import lax
        >>> round(float(lax.sin(1.5)), 4)
        0.9975
    """
    return _accurate(transcendental.sin_p, x, accuracy)


def cos(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Computes the cosine of x in radians.

    Args:
        x: array of floats or complex numbers, any shape.
        accuracy: `lax.AccuracyMode` or `lax.Tolerance`: how exact the result must be; None for the backend's way.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype, or an `accuracy` of another type.

    Example:
        >>> from weft import lax
        >>> round(float(lax.cos(1.5)), 4)
        0.0707
    """
    return _accurate(transcendental.cos_p, x, accuracy)


def tan(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Computes the tangent of x in radians.

    Args:
        x: array of floats or complex numbers, any shape.
        accuracy: `lax.AccuracyMode` or `lax.Tolerance`: how exact the result must be; None for the backend's way.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype, or an `accuracy` of another type.

    Example:
        >>> from weft import lax
        >>> round(float(lax.tan(1.5)), 4)
        14.1014
    """
    return _accurate(transcendental.tan_p, x, accuracy)


def asin(x: ArrayLike) -> Array:
    """Computes the inverse sine in radians, in [-π/2, π/2]; NaN for floats beyond [-1, 1].

    Args:
        x: array of floats or complex numbers, any shape.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> round(float(lax.asin(0.5)), 4)
        0.5236
    """
    return transcendental.asin_p.bind(checked("asin", x))


def acos(x: ArrayLike) -> Array:
    """Computes the inverse cosine in radians, in [0, π]; NaN for floats beyond [-1, 1].

    Args:
        x: array of floats or complex numbers, any shape.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> round(float(lax.acos(0.5)), 4)
        1.0472
    """
    return transcendental.acos_p.bind(checked("acos", x))


def atan(x: ArrayLike) -> Array:
    """Computes the inverse tangent in radians, in [-π/2, π/2].

    Args:
        x: array of floats or complex numbers, any shape.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> round(float(lax.atan(0.5)), 4)
        0.4636
    """
    return transcendental.atan_p.bind(checked("atan", x))


def sinh(x: ArrayLike) -> Array:
    """Computes the hyperbolic sine.

    Args:
        x: array of floats or complex numbers, any shape.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> round(float(lax.sinh(0.5)), 4)
        0.5211
    """
    return transcendental.sinh_p.bind(checked("sinh", x))


def cosh(x: ArrayLike) -> Array:
    """Computes the hyperbolic cosine.

    Args:
        x: array of floats or complex numbers, any shape.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> round(float(lax.cosh(0.5)), 4)
        1.1276
    """
    return transcendental.cosh_p.bind(checked("cosh", x))


def asinh(x: ArrayLike) -> Array:
    """Computes the inverse hyperbolic sine.

    Args:
        x: array of floats or complex numbers, any shape.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> round(float(lax.asinh(0.5)), 4)
        0.4812
    """
    return transcendental.asinh_p.bind(checked("asinh", x))


def acosh(x: ArrayLike) -> Array:
    """Computes the inverse hyperbolic cosine; NaN for floats below 1.

    Args:
        x: array of floats or complex numbers, any shape.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> round(float(lax.acosh(1.5)), 4)
        0.9624
    """
    return transcendental.acosh_p.bind(checked("acosh", x))


def atanh(x: ArrayLike) -> Array:
    """Computes the inverse hyperbolic tangent; NaN for floats beyond [-1, 1].

    Args:
        x: array of floats or complex numbers, any shape.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> round(float(lax.atanh(0.5)), 4)
        0.5493
    """
    return transcendental.atanh_p.bind(checked("atanh", x))


def sqrt(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Computes the square root; NaN for negative floats.

    Args:
        x: array of floats or complex numbers, any shape.
        accuracy: `lax.AccuracyMode` or `lax.Tolerance`: how exact the result must be; None for the backend's way.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype, or an `accuracy` of another type.

    Example:
        >>> from weft import lax
        >>> round(float(lax.sqrt(2.0)), 4)
        1.4142
    """
    return _accurate(transcendental.sqrt_p, x, accuracy)


def rsqrt(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Computes 1 / sqrt(x).

    Args:
        x: array of floats or complex numbers, any shape.
        accuracy: `lax.AccuracyMode` or `lax.Tolerance`: how exact the result must be; None for the backend's way.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype, or an `accuracy` of another type.

    Example:
        >>> from weft import lax
        >>> round(float(lax.rsqrt(2.0)), 4)
        0.7071
    """
    return _accurate(transcendental.rsqrt_p, x, accuracy)


def cbrt(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Computes the real cube root, negative for negative x.

    Args:
        x: array of floats, any shape.
        accuracy: `lax.AccuracyMode` or `lax.Tolerance`: how exact the result must be; None for the backend's way.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype, or an `accuracy` of another type.

    Example:
        >>> from weft import lax
        >>> round(float(lax.cbrt(2.0)), 4)
        1.2599
    """
    return _accurate(transcendental.cbrt_p, x, accuracy)


def erf(x: ArrayLike) -> Array:
    """Computes the error function, 2/√π times the integral of exp(-t²) from 0 to x.

    Args:
        x: array of floats, any shape.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> round(float(lax.erf(0.5)), 4)
        0.5205
    """
    return transcendental.erf_p.bind(checked("erf", x))


def erfc(x: ArrayLike) -> Array:
    """Computes the complementary error function, 1 - erf(x), without loss of digits in the tail.

    Args:
        x: array of floats, any shape.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> round(float(lax.erfc(0.5)), 4)
        0.4795
    """
    return transcendental.erfc_p.bind(checked("erfc", x))


def erf_inv(x: ArrayLike) -> Array:
    """Computes the inverse of the error function; NaN beyond [-1, 1].

    Args:
        x: array of floats, any shape.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> round(float(lax.erf_inv(0.5)), 4)
        0.4769
    """
    return transcendental.erf_inv_p.bind(checked("erf_inv", x))


def lgamma(x: ArrayLike) -> Array:
    """Computes log |Γ(x)|, the logarithm of the gamma function's absolute value.

    Args:
        x: array of floats, any shape.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> round(float(lax.lgamma(2.5)), 4)
        0.2847
    """
    return special.lgamma_p.bind(checked("lgamma", x))


def digamma(x: ArrayLike) -> Array:
    """Computes the digamma function, the derivative of lgamma.

    Args:
        x: array of floats, any shape.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> round(float(lax.digamma(2.5)), 4)
        0.7032
    """
    return special.digamma_p.bind(checked("digamma", x))
