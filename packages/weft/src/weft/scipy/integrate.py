"""weft.scipy.integrate: integrals of samples."""

from __future__ import annotations

from .. import numpy as jnp
from ..numpy.util import operand
from ..base.source_info import api_boundary

__all__ = ["trapezoid"]


@api_boundary
def trapezoid(y, x=None, dx=1.0, axis: int = -1):
    """The integral of `y` along `axis` by the trapezoidal rule, with samples at `x` or `dx` apart.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import integrate
        >>> integrate.trapezoid(jnp.array([0., 1., 2.]))
        Array(2., dtype=float32)
    """
    return jnp.trapezoid(operand("trapezoid", y), x, dx, axis)
