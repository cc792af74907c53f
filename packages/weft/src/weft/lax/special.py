"""Special functions of `weft.lax` beyond erf and lgamma: zeta and polygamma, Bessel functions, incomplete gamma and
beta functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..decompositions import incomplete
from ..core.trace import get_aval
from ..primitives import special as ops
from ..primitives.rules import check_kind, same_dtype
from ..runtime.jit import inner_jit
from ..typing import Array, ArrayLike
from .common import on_device, operand
from .shape import broadcast_in_dim, broadcast_shapes

if TYPE_CHECKING:
    from ..core.primitive import Primitive
    from ..core.types import Value

__all__ = [
    "bessel_i0e",
    "bessel_i1e",
    "betainc",
    "igamma",
    "igamma_grad_a",
    "igammac",
    "polygamma",
    "random_gamma_grad",
    "zeta",
]


def _bind(primitive: Primitive, *args: Value) -> Value:
    return primitive.bind(*[operand(primitive.name, x) for x in args])


_random_gamma_grad = inner_jit(incomplete.random_gamma_grad, name="random_gamma_grad", inline=True)


def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """The m-th derivative of digamma at x; NaN unless m is a whole number >= 0. m and x share one float dtype.

    Differentiable in x.

    Args:
        m: array of floats, any shape: the order of the derivative.
        x: array of the dtype of m and its shape; sizes of 1 and scalars broadcast.

    Returns:
        array of the dtype of the arguments and the broadcast shape.

    Raises:
        TypeError: for a dtype that is no float, or shapes that do not fit.
        ValueError: for the derivative with respect to m.

    Example:
        >>> from weft import lax
        >>> round(float(lax.polygamma(1.0, 1.0)), 4)
        1.6449
    """
    return _bind(ops.polygamma_p, m, x)


def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """Hurwitz's zeta function, the sum of (q + k)**-x over k = 0, 1, …; NaN for x < 1. Differentiable in both.

    Args:
        x: array of floats, any shape: the exponent.
        q: array of the dtype of x and its shape; sizes of 1 and scalars broadcast.

    Returns:
        array of the dtype of the arguments and the broadcast shape.

    Raises:
        TypeError: for a dtype that is no float, or shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> round(float(lax.zeta(2.0, 1.0)), 4)
        1.6449
    """
    return _bind(ops.zeta_p, x, q)


def bessel_i0e(x: ArrayLike) -> Array:
    """exp(-|x|) I0(x), the modified Bessel function of order 0, scaled so that it does not overflow.

    Args:
        x: array of floats, any shape.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for a dtype that is no float.

    Example:
        >>> from weft import lax
        >>> round(float(lax.bessel_i0e(1.0)), 4)
        0.4658
    """
    return _bind(ops.bessel_i0e_p, x)


def bessel_i1e(x: ArrayLike) -> Array:
    """exp(-|x|) I1(x), the modified Bessel function of order 1, scaled so that it does not overflow.

    Args:
        x: array of floats, any shape.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for a dtype that is no float.

    Example:
        >>> from weft import lax
        >>> float(lax.bessel_i1e(0.0))
        0.0
    """
    return _bind(ops.bessel_i1e_p, x)


def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized lower incomplete gamma function, the integral of exp(-t) tᵃ⁻¹ from 0 to x over Γ(a); NaN for
    negative a or x.

    Args:
        a: array of floats, any shape: the shape parameter, positive.
        x: array of the dtype of a and its shape (sizes of 1 and scalars broadcast): the bound, at least 0.

    Returns:
        array of the dtype of the arguments and the broadcast shape.

    Raises:
        TypeError: for a dtype that is no float, or shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> round(float(lax.igamma(1.0, 2.0)), 4)
        0.8647
    """
    return _bind(ops.igamma_p, a, x)


def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized upper incomplete gamma function, 1 - igamma(a, x), exact where that is small.

    Args:
        a: array of floats, any shape: the shape parameter, positive.
        x: array of the dtype of a and its shape (sizes of 1 and scalars broadcast): the bound, at least 0.

    Returns:
        array of the dtype of the arguments and the broadcast shape.

    Raises:
        TypeError: for a dtype that is no float, or shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> round(float(lax.igammac(1.0, 2.0)), 4)
        0.1353
    """
    return _bind(ops.igammac_p, a, x)


def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of igamma(a, x) with respect to a.

    Args:
        a: array of floats, any shape: the shape parameter, positive.
        x: array of the dtype of a and its shape (sizes of 1 and scalars broadcast): the bound, at least 0.

    Returns:
        array of the dtype of the arguments and the broadcast shape.

    Raises:
        TypeError: for a dtype that is no float, or shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> bool(lax.igamma_grad_a(1.0, 2.0) < 0)
        True
    """
    return _bind(ops.igamma_grad_a_p, a, x)


def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Array:
    """dx/da for a sample x of the gamma distribution of shape a, as the sample moves when its rank stays the same.

    Args:
        a: array of floats, any shape: the shape parameter, positive.
        x: array of the dtype of a, of a shape that broadcasts with its: the samples.

    Returns:
        array of the dtype of the arguments and the broadcast shape.

    Raises:
        TypeError: for a dtype that is no float, or dtypes that differ.
        ValueError: for shapes that do not fit.

    Example:
        >>> from weft import lax
        >>> round(float(lax.random_gamma_grad(1.0, 1.0)), 3)
        1.174
    """
    a, x = [on_device(operand("random_gamma_grad", v)) for v in (a, x)]
    avals = [get_aval(a), get_aval(x)]
    same_dtype("random_gamma_grad", avals)
    check_kind("random_gamma_grad", avals[0], "f")
    shape = broadcast_shapes(avals[0].shape, avals[1].shape)
    wide = [
        v if aval.shape == shape else broadcast_in_dim(v, shape, tuple(range(len(shape) - len(aval.shape), len(shape))))
        for v, aval in zip((a, x), avals)
    ]
    return _random_gamma_grad(*wide)


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function, the integral of tᵃ⁻¹ (1-t)ᵇ⁻¹ from 0 to x over B(a, b), for x in 0..1.
    Differentiable in x.

    Parameters may be large: where real jax loses all digits, or gives inf, this and its derivative are right. A result
    is NaN where nothing is known of it.

    Args:
        a: array of floats, any shape: the first parameter, positive.
        b: array of the dtype of a and its shape (sizes of 1 and scalars broadcast): the second parameter, positive.
        x: array of the dtype of a and its shape (sizes of 1 and scalars broadcast): the bound, in [0, 1].

    Returns:
        array of the dtype of the arguments and the broadcast shape.

    Raises:
        TypeError: for a dtype that is no float, or shapes that do not fit.
        ValueError: for the derivative with respect to a or b.

    Example:
        >>> from weft import lax
        >>> round(float(lax.betainc(2.0, 1.0, 0.5)), 4)
        0.25
    """
    return _bind(ops.regularized_incomplete_beta_p, a, b, x)


bessel_i0e_p, bessel_i1e_p, igamma_p, igammac_p, igamma_grad_a_p = (
    ops.bessel_i0e_p,
    ops.bessel_i1e_p,
    ops.igamma_p,
    ops.igammac_p,
    ops.igamma_grad_a_p,
)
polygamma_p, zeta_p, regularized_incomplete_beta_p = ops.polygamma_p, ops.zeta_p, ops.regularized_incomplete_beta_p
