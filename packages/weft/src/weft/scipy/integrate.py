"""weft.scipy.integrate: integrals of samples."""

from __future__ import annotations

from .. import numpy as jnp
from ..numpy.util import operand
from ..base.source_info import api_boundary

__all__ = ["trapezoid"]


@api_boundary
def trapezoid(y, x=None, dx=1.0, axis: int = -1):
    """The integral of `y` along `axis` by the trapezoidal rule, with samples at `x` or `dx` apart.

    Args:
        y: array of numbers, any shape.
        x: array of real numbers, the coordinates along the axis; None for distances `dx`.
        dx: number, the distance of neighbours.
        axis: int, the axis; negative ones count from the end.

    Returns:
        array of floats or complex numbers, the shape of y without the axis.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import integrate
        >>> integrate.trapezoid(jnp.array([0., 1., 2.]))
        Array(2., dtype=float32)
    """
    return jnp.trapezoid(operand("trapezoid", y), x, dx, axis)


def __dir__() -> list[str]:
    return sorted(__all__)
