"""Elementwise functions of `weft.lax` of one operand."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, TypeAlias

from ..base import dtypes
from ..core.primitive import Primitive, param_type
from ..core.trace import get_aval
from ..base.errors import type_error
from ..primitives import elementwise as ops, bitwise, transcendental
from ..primitives import linear, special
from ..primitives.transcendental import AccuracyMode, Tolerance
from ..primitives.rules import dtype_of, scalar_like
from ..base.tree import tree_map
from ..typing import Array, ArrayLike, Tree
from .common import elementwise_example as example, operand as checked

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = [
    "AccuracyMode",
    "RoundingMethod",
    "Tolerance",
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "bitwise_not",
    "cbrt",
    "ceil",
    "clz",
    "conj",
    "cos",
    "cosh",
    "digamma",
    "erf",
    "erf_inv",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "imag",
    "is_finite",
    "lgamma",
    "log",
    "log1p",
    "logistic",
    "neg",
    "population_count",
    "real",
    "reciprocal",
    "reduce_precision",
    "round",
    "rsqrt",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "stop_gradient",
    "tan",
    "tanh",
]

Accuracy: TypeAlias = AccuracyMode | Tolerance | None


@param_type
class RoundingMethod(enum.IntEnum):
    """How `round` treats halves."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def _accurate(primitive: Primitive, x: ArrayLike, accuracy: Accuracy) -> Array:
    name = primitive.name
    if accuracy is None:
        return primitive.bind(checked(name, x))
    if not isinstance(accuracy, (AccuracyMode, Tolerance)):
        raise TypeError(f"{name}: accuracy must be a lax.AccuracyMode, a lax.Tolerance or None, got {accuracy!r}.")
    return primitive.bind(checked(name, x), accuracy=accuracy)


@example("neg(1.5)")
def neg(x: ArrayLike) -> Array:
    """-x."""
    return ops.neg_p.bind(checked("neg", x))


@example("sign(-2.0)")
def sign(x: ArrayLike) -> Array:
    """-1, 0 or 1 (x/|x| for complex numbers)."""
    return ops.sign_p.bind(checked("sign", x))


@example("floor(1.5)")
def floor(x: ArrayLike) -> Array:
    """The largest integer that is not above x, as a float."""
    return ops.floor_p.bind(checked("floor", x))


@example("ceil(1.5)")
def ceil(x: ArrayLike) -> Array:
    """The smallest integer that is not below x, as a float."""
    return ops.ceil_p.bind(checked("ceil", x))


@example("is_finite(1.5)")
def is_finite(x: ArrayLike) -> Array:
    """Whether x is neither infinite nor NaN."""
    return ops.is_finite_p.bind(checked("is_finite", x))


@example("exp(1.5)")
def exp(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """e to the power x."""
    return _accurate(transcendental.exp_p, x, accuracy)


@example("exp2(1.5)")
def exp2(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """2 to the power x."""
    return _accurate(transcendental.exp2_p, x, accuracy)


@example("log(1.5)")
def log(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The natural logarithm."""
    return _accurate(transcendental.log_p, x, accuracy)


@example("expm1(1.5)")
def expm1(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """exp(x) - 1, exact near 0."""
    return _accurate(transcendental.expm1_p, x, accuracy)


@example("log1p(1.5)")
def log1p(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """log(1 + x), exact near 0."""
    return _accurate(transcendental.log1p_p, x, accuracy)


@example("tanh(1.5)")
def tanh(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The hyperbolic tangent."""
    return _accurate(transcendental.tanh_p, x, accuracy)


@example("logistic(1.5)")
def logistic(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """1 / (1 + exp(-x))."""
    return _accurate(transcendental.logistic_p, x, accuracy)


@example("sin(1.5)")
def sin(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The sine of x in radians."""
    return _accurate(transcendental.sin_p, x, accuracy)


@example("cos(1.5)")
def cos(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The cosine of x in radians."""
    return _accurate(transcendental.cos_p, x, accuracy)


@example("tan(1.5)")
def tan(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The tangent of x in radians."""
    return _accurate(transcendental.tan_p, x, accuracy)


@example("asin(0.5)")
def asin(x: ArrayLike) -> Array:
    """The inverse sine."""
    return transcendental.asin_p.bind(checked("asin", x))


@example("acos(0.5)")
def acos(x: ArrayLike) -> Array:
    """The inverse cosine."""
    return transcendental.acos_p.bind(checked("acos", x))


@example("atan(0.5)")
def atan(x: ArrayLike) -> Array:
    """The inverse tangent."""
    return transcendental.atan_p.bind(checked("atan", x))


@example("sinh(0.5)")
def sinh(x: ArrayLike) -> Array:
    """The hyperbolic sine."""
    return transcendental.sinh_p.bind(checked("sinh", x))


@example("cosh(0.5)")
def cosh(x: ArrayLike) -> Array:
    """The hyperbolic cosine."""
    return transcendental.cosh_p.bind(checked("cosh", x))


@example("asinh(0.5)")
def asinh(x: ArrayLike) -> Array:
    """The inverse hyperbolic sine."""
    return transcendental.asinh_p.bind(checked("asinh", x))


@example("acosh(1.5)")
def acosh(x: ArrayLike) -> Array:
    """The inverse hyperbolic cosine."""
    return transcendental.acosh_p.bind(checked("acosh", x))


@example("atanh(0.5)")
def atanh(x: ArrayLike) -> Array:
    """The inverse hyperbolic tangent."""
    return transcendental.atanh_p.bind(checked("atanh", x))


@example("sqrt(2.0)")
def sqrt(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The square root."""
    return _accurate(transcendental.sqrt_p, x, accuracy)


@example("rsqrt(2.0)")
def rsqrt(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """1 / sqrt(x)."""
    return _accurate(transcendental.rsqrt_p, x, accuracy)


@example("cbrt(2.0)")
def cbrt(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The cube root."""
    return _accurate(transcendental.cbrt_p, x, accuracy)


@example("erf(0.5)")
def erf(x: ArrayLike) -> Array:
    """The error function."""
    return transcendental.erf_p.bind(checked("erf", x))


@example("erfc(0.5)")
def erfc(x: ArrayLike) -> Array:
    """1 - erf(x), exact in the tail."""
    return transcendental.erfc_p.bind(checked("erfc", x))


@example("erf_inv(0.5)")
def erf_inv(x: ArrayLike) -> Array:
    """The inverse of erf."""
    return transcendental.erf_inv_p.bind(checked("erf_inv", x))


@example("lgamma(2.5)")
def lgamma(x: ArrayLike) -> Array:
    """log |gamma(x)|."""
    return special.lgamma_p.bind(checked("lgamma", x))


@example("digamma(2.5)")
def digamma(x: ArrayLike) -> Array:
    """The derivative of lgamma."""
    return special.digamma_p.bind(checked("digamma", x))


@example("square(2.5)")
def square(x: ArrayLike) -> Array:
    """x * x."""
    return ops.square_p.bind(checked("square", x))


@example("bitwise_not(5)")
def bitwise_not(x: ArrayLike) -> Array:
    """Each bit inverted; logical not for booleans."""
    return ops.not_p.bind(checked("bitwise_not", x))


@example("population_count(5)")
def population_count(x: ArrayLike) -> Array:
    """The number of bits that are set."""
    return bitwise.population_count_p.bind(checked("population_count", x))


@example("clz(5)")
def clz(x: ArrayLike) -> Array:
    """The number of leading zero bits."""
    return bitwise.clz_p.bind(checked("clz", x))


@example("real(1.5 + 1j)")
def real(x: ArrayLike) -> Array:
    """The real part of complex x."""
    return ops.real_p.bind(checked("real", x))


@example("imag(1.5 + 1j)")
def imag(x: ArrayLike) -> Array:
    """The imaginary part of complex x."""
    return ops.imag_p.bind(checked("imag", x))


def abs(x: ArrayLike) -> Array:
    """The absolute value; real for complex x.

    Raises:
        TypeError: for booleans and unsigned integers, which have none.

    Example:
        >>> from weft import lax
        >>> float(lax.abs(-1.5))
        1.5
    """
    x = checked("abs", x)
    if dtypes.is_unsigned(dtype_of(x)):
        raise type_error(
            f"abs does not accept dtype {dtypes.name(dtype_of(x))}: it takes signed ints, floats and complex numbers."
        )
    return ops.abs_p.bind(x)


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """x rounded to the nearest integer; halves go away from zero, or to even.

    Example:
        >>> from weft import lax
        >>> float(lax.round(2.5, lax.RoundingMethod.TO_NEAREST_EVEN))
        2.0
    """
    return ops.round_p.bind(checked("round", x), rounding_method=RoundingMethod(rounding_method))


def conj(x: ArrayLike) -> Array:
    """The complex conjugate; floats become complex.

    Example:
        >>> from weft import lax
        >>> lax.conj(1 + 2j).item()
        (1-2j)
    """
    return ops.conj(checked("conj", x))


def reciprocal(x: ArrayLike) -> Array:
    """1 / x.

    Example:
        >>> from weft import lax
        >>> float(lax.reciprocal(4.0))
        0.25
    """
    x = checked("reciprocal", x)
    return ops.div(scalar_like(x, 1), x)


def reduce_precision(operand: float | ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """x rounded to a float format of fewer bits, kept in its own dtype.

    Example:
        >>> from weft import lax
        >>> y = lax.reduce_precision(1.1, 8, 7)
    """
    return bitwise.reduce_precision_p.bind(
        checked("reduce_precision", operand), exponent_bits=int(exponent_bits), mantissa_bits=int(mantissa_bits)
    )


def stop_gradient(x: Tree) -> Tree:
    """The same value(s) without derivative; `x` may be any pytree.

    Example:
        >>> from weft import lax
        >>> float(lax.stop_gradient(1.5))
        1.5
    """

    def stop(leaf: Value) -> Value:
        leaf = checked("stop_gradient", leaf)
        return linear.stop_gradient_p.bind(leaf) if dtypes.is_inexact(get_aval(leaf).dtype) else leaf

    return tree_map(stop, x)
