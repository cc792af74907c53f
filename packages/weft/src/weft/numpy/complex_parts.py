"""The parts of complex numbers: real, imaginary, conjugate, angle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.annotations import alias
from ..base import dtypes
from ..core.trace import get_aval
from ..primitives import elementwise as el, transcendental
from ..primitives import linear
from ..primitives.rules import dtype_of, shape_of
from ..typing import Array, ArrayLike
from .elementary import rad2deg
from .util import (
    float_dtype,
    on_device,
    operand,
)

if TYPE_CHECKING:
    pass


__all__ = ["angle", "conj", "conjugate", "imag", "real"]


def conjugate(x: ArrayLike, /) -> Array:
    """The complex conjugate; real x as it is.

    Args:
        x: array of numbers or booleans, any shape.

    Returns:
        array of the dtype and shape of x.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.conj(jnp.array([1 + 2j]))
        Array([1.-2.j], dtype=complex64)
    """
    x = operand("conj", x)
    return el.conj(x) if dtypes.is_complex(get_aval(x).dtype) else on_device(x)


conj = alias(conjugate, "conj")


def real(val: ArrayLike, /) -> Array:
    """The real part.

    Args:
        val: array of numbers or booleans, any shape.

    Returns:
        array of real numbers, the shape of val.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.real(jnp.array([1 + 2j]))
        Array([1.], dtype=float32)
    """
    val = operand("real", val)
    return el.real(val) if dtypes.is_complex(get_aval(val).dtype) else on_device(val)


def imag(val: ArrayLike, /) -> Array:
    """The imaginary part; 0 for real numbers.

    Args:
        val: array of numbers or booleans, any shape.

    Returns:
        array of real numbers, the shape of val.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.imag(jnp.array([1 + 2j]))
        Array([2.], dtype=float32)
    """
    val = operand("imag", val)
    aval = get_aval(val)
    return el.imag(val) if dtypes.is_complex(aval.dtype) else linear.full(aval.shape, 0, aval.dtype, aval.weak_type)


def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The angle of complex numbers in the plane, in radians or degrees.

    Args:
        z: array of numbers or booleans, any shape.
        deg: bool: in degrees.

    Returns:
        array of floats, the shape of z.

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.angle(1j)) > 1.57
        True
    """
    z = operand("angle", z)
    # for a single real number JAX returns the default float
    if not dtypes.is_inexact(dtype_of(z)) or dtypes.is_float(dtype_of(z)) and not shape_of(z):
        z = linear.convert(z, float_dtype())
    z = on_device(z)
    re, im = (
        (el.real(z), el.imag(z))
        if dtypes.is_complex(dtype_of(z))
        else (z, linear.full(shape_of(z), 0, dtype_of(z), get_aval(z).weak_type))
    )
    out = transcendental.atan2(im, re)
    return rad2deg(out) if deg else out
