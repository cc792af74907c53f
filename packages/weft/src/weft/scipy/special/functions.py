"""The special functions that programs use most."""

from __future__ import annotations

import math
from typing import Literal, overload

from ...base import dtypes, limits
from ...higher_order.custom_jvp import custom_jvp
from ...lax import special as incomplete
from ...lax.collectives import pmax
from ...numpy import comparisons, reductions, ufuncs
from ...numpy.selecting import where as _where
from ...numpy.util import canonical_axes, on_device, promote_inexact, promote_shapes, split_names
from ...primitives import elementwise as el, transcendental
from ...primitives import linear
from ...primitives import special as gammas
from ...primitives.reduce import reduce_max
from ...primitives.rules import dtype_of, scalar_like, shape_of
from ...typing import Array, ArrayLike, Axis
from .complexes import gamma_complex

__all__ = [
    "beta",
    "betainc",
    "betaln",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfinv",
    "expit",
    "factorial",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "kl_div",
    "log_softmax",
    "logit",
    "logsumexp",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "rel_entr",
    "softmax",
    "xlog1py",
    "xlogy",
    "zeta",
]


def _unary(name: str, text: str, op, source: str):
    def function(x):
        (x,) = promote_inexact(name, x)
        return op(x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{text}

    Args:
        x: array of real numbers, any shape; integers are converted to floats.

    Returns:
        array of floats, the shape of x.

    Raises:
        TypeError: for lists, and for complex numbers unless the function is defined for them.

    Source: {source}.

    Example:
        >>> from weft.scipy import special
        >>> y = special.{name}(0.5)
    """
    return function


_BERKSON = 'Berkson, "Application of the logistic function to bio-assay" (1944)'
erf = _unary("erf", "The error function.", transcendental.erf, "DLMF 7.2.1")
erfc = _unary("erfc", "1 - erf(x), exact in the tail.", transcendental.erfc, "DLMF 7.2.2")
erfinv = _unary("erfinv", "The inverse of erf.", transcendental.erf_inv, "DLMF 7.17.1")
gammaln = _unary("gammaln", "log |gamma(x)|.", gammas.lgamma, "DLMF 5.2.1")
digamma = _unary("digamma", "The derivative of gammaln.", gammas.digamma, "DLMF 5.2.2")
psi = digamma
expit = _unary("expit", "1 / (1 + exp(-x)).", transcendental.logistic, _BERKSON)
logit = _unary(
    "logit",
    "log(x / (1 - x)).",
    lambda x: el.sub(transcendental.log(x), transcendental.log1p(el.neg(x))),
    _BERKSON,
)


def ndtri(p):
    """The inverse of the normal distribution function.

    Args:
        p: array of floats from 0 to 1, any shape.

    Returns:
        array of floats, the shape of p.

    Raises:
        TypeError: for complex numbers and lists.

    Source: Abramowitz and Stegun, "Handbook of mathematical functions" (1964), 26.2.

    Example:
        >>> from weft.scipy import special
        >>> float(special.ndtri(0.5))
        0.0
    """
    (p,) = promote_inexact("ndtri", p)
    if dtypes.bits(dtype_of(p)) < 32:
        return linear.convert(_ndtri(linear.convert(p, dtypes.float32)), dtype_of(p))
    return _ndtri(p)


_TAIL = 0.05  # below this 2 p - 1 loses too many digits of p


@custom_jvp
def _ndtri(p):
    """In the middle by erf_inv; in the tails by Newton's steps for the logarithm of erfc(t) = 2 p, which is almost a
    parabola.
    """
    like = lambda c: scalar_like(p, c)
    upper = el.gt(p, like(0.5))
    rest = _where(upper, el.sub(like(1), p), p)
    q = el.max_(el.mul(like(2), el.min_(rest, like(_TAIL))), like(float(limits.finfo(dtype_of(p)).tiny)))
    size = el.neg(transcendental.log(q))
    t = transcendental.sqrt(el.sub(size, el.mul(like(0.5), transcendental.log(el.mul(like(math.pi), size)))))
    for _ in range(4):
        tail = transcendental.erfc(t)
        slope = el.mul(
            el.mul(tail, transcendental.exp(el.mul(t, t))), like(math.sqrt(math.pi) / 2)
        )  # of t by -log(erfc)
        t = el.add(t, el.mul(transcendental.log(el.div(tail, q)), slope))
    far = el.mul(like(-math.sqrt(2)), t)
    far = _where(el.eq(rest, like(0)), -math.inf, _where(el.lt(rest, like(0)), math.nan, far))
    inside = el.sub(el.mul(like(2), p), like(1))
    y = transcendental.erf_inv(inside)
    slope = el.mul(transcendental.exp(el.mul(y, y)), like(math.sqrt(math.pi) / 2))
    # XLA's is up to 27 ulp off
    y = _where(el.lt(rest, like(_TAIL)), y, el.add(y, el.mul(el.sub(inside, transcendental.erf(y)), slope)))
    middle = el.mul(like(math.sqrt(2)), y)
    return _where(el.lt(rest, like(_TAIL)), _where(upper, el.neg(far), far), middle)


@_ndtri.defjvp
def _ndtri_jvp(primals, tangents):
    (p,), (dp,) = primals, tangents
    out = _ndtri(p)
    return out, el.mul(
        dp,
        el.mul(
            scalar_like(p, math.sqrt(2 * math.pi)), transcendental.exp(el.mul(scalar_like(p, 0.5), el.mul(out, out)))
        ),
    )


def ndtr(x):
    """The normal distribution function.

    Args:
        x: array of numbers, rank at least 1.

    Returns:
        array of floats, the shape of x.

    Raises:
        TypeError: for complex numbers and lists.

    Source: Abramowitz and Stegun, "Handbook of mathematical functions" (1964), 26.2.2.

    Example:
        >>> from weft.scipy import special
        >>> float(special.ndtr(0.0))
        0.5
    """
    (x,) = promote_inexact("ndtr", x)
    w = el.mul(x, scalar_like(x, math.sqrt(0.5)))
    half = scalar_like(x, 0.5)
    tail = el.mul(half, transcendental.erfc(el.abs_(w)))
    middle = el.add(half, el.mul(half, transcendental.erf(w)))
    return _where(
        el.lt(el.abs_(w), scalar_like(x, math.sqrt(0.5))),
        middle,
        _where(el.gt(w, scalar_like(x, 0)), el.sub(scalar_like(x, 1), tail), tail),
    )


def gamma(x):
    """The gamma function.

    Args:
        x: array of numbers, rank at least 1.

    Returns:
        array of floats, or of complex numbers if x has such, the shape of x.

    Raises:
        TypeError: for lists.

    Source: DLMF 5.2.1.

    Example:
        >>> from weft.scipy import special
        >>> round(float(special.gamma(4.0)), 3)
        6.0
    """
    (x,) = promote_inexact("gamma", x)
    if dtypes.is_complex(dtype_of(x)):
        return gamma_complex(on_device(x))
    size = transcendental.exp(gammas.lgamma(x))
    whole = el.floor(x)
    odd = el.ne(el.sub(whole, el.mul(scalar_like(x, 2), el.floor(el.div(whole, scalar_like(x, 2))))), scalar_like(x, 0))
    out = _where(comparisons.logical_and(el.lt(x, scalar_like(x, 0)), odd), el.neg(size), size)
    pole = comparisons.logical_and(el.lt(x, scalar_like(x, 0)), el.eq(x, whole))
    return _where(pole, math.nan, out)


def _broadcasting(name: str, args: tuple, op):
    return op(*promote_shapes(name, *promote_inexact(name, *args)))


def gammainc(a, x):
    """The regularized lower incomplete gamma function.

    Args:
        a: array of real numbers, not negative: the shape parameter.
        x: array of real numbers, not negative, which broadcasts with a.

    Returns:
        array of floats, the broadcast shape.

    Raises:
        TypeError: for complex numbers and lists.

    Source: DLMF 8.2.4.

    Example:
        >>> from weft.scipy import special
        >>> round(float(special.gammainc(1.0, 2.0)), 4)
        0.8647
    """
    return _broadcasting("gammainc", (a, x), incomplete.igamma)


def gammaincc(a, x):
    """The regularized upper incomplete gamma function, 1 - gammainc(a, x).

    Args:
        a: array of real numbers, not negative: the shape parameter.
        x: array of real numbers, not negative, which broadcasts with a.

    Returns:
        array of floats, the broadcast shape.

    Raises:
        TypeError: for complex numbers and lists.

    Source: DLMF 8.2.4.

    Example:
        >>> from weft.scipy import special
        >>> round(float(special.gammaincc(1.0, 2.0)), 4)
        0.1353
    """
    return _broadcasting("gammaincc", (a, x), incomplete.igammac)


def betainc(a, b, x):
    """The regularized incomplete beta function; differentiable in x.

    Args:
        a: array of real numbers, positive.
        b: array of real numbers, positive, which broadcasts with a.
        x: array of real numbers from 0 to 1, which broadcasts with both.

    Returns:
        array of floats, the broadcast shape.

    Raises:
        TypeError: for complex numbers and lists.

    Source: DLMF 8.17.2.

    Example:
        >>> from weft.scipy import special
        >>> round(float(special.betainc(2.0, 1.0, 0.5)), 4)
        0.25
    """
    return _broadcasting("betainc", (a, b, x), incomplete.betainc)


def zeta(x, q=None):
    """Hurwitz's zeta function, the sum of (q + k)**-x over k = 0, 1, …; Riemann's (q = 1) without q. NaN for x < 1.

    Args:
        x: array of real numbers, at least 1.
        q: array of real numbers, which broadcasts with x; None for 1.

    Returns:
        array of floats, the broadcast shape.

    Raises:
        TypeError: for complex numbers and lists.

    Source: DLMF 25.11.1.

    Example:
        >>> from weft.scipy import special
        >>> round(float(special.zeta(2.0)), 4)
        1.6449
    """
    return _broadcasting("zeta", (x, 1.0 if q is None else q), incomplete.zeta)


def polygamma(n, x):
    """The n-th derivative of digamma; NaN unless n is a whole number >= 0.

    Args:
        n: array of whole numbers, not negative.
        x: array of real numbers, which broadcasts with n.

    Returns:
        array of floats, the broadcast shape.

    Raises:
        TypeError: for complex numbers and lists.

    Source: DLMF 5.15.1.

    Example:
        >>> from weft.scipy import special
        >>> round(float(special.polygamma(1, 1.0)), 4)
        1.6449
    """
    return _broadcasting("polygamma", (n, x), incomplete.polygamma)


i0e = _unary(
    "i0e", "exp(-|x|) I0(x), the scaled modified Bessel function of order 0.", gammas.bessel_i0e, "DLMF 10.25.2"
)
i1e = _unary(
    "i1e", "exp(-|x|) I1(x), the scaled modified Bessel function of order 1.", gammas.bessel_i1e, "DLMF 10.25.2"
)
i0 = _unary(
    "i0",
    "The modified Bessel function of order 0.",
    lambda x: el.mul(transcendental.exp(el.abs_(x)), gammas.bessel_i0e(x)),
    "DLMF 10.25.2",
)
i1 = _unary(
    "i1",
    "The modified Bessel function of order 1.",
    lambda x: el.mul(transcendental.exp(el.abs_(x)), gammas.bessel_i1e(x)),
    "DLMF 10.25.2",
)


_LARGE = 10  # from where on eight terms of Stirling's series are exact in float64


def _stirling_rest(z):
    """gammaln(z) - ((z - 1/2) log z - z + log(2 pi) / 2) for large z."""
    inverse = 1 / z
    square, total = inverse * inverse, gammas.STIRLING[-1]
    for coefficient in reversed(gammas.STIRLING[:-1]):
        total = total * square + coefficient
    return total * inverse


@custom_jvp
def _log1p_ratio(x, y):
    """log1p(x / y) of positive numbers, whose derivative does not square them: that may overflow."""
    return transcendental.log1p(x / y)


@_log1p_ratio.defjvp
def _log1p_ratio_jvp(primals, tangents):
    (x, y), (tx, ty) = primals, tangents
    return _log1p_ratio(x, y), (tx - x / y * ty) / (x + y)


def betaln(a, b):
    """log of the beta function.

    Args:
        a: array of real numbers, positive.
        b: array of real numbers, positive, which broadcasts with a.

    Returns:
        array of floats, the broadcast shape.

    Raises:
        TypeError: for lists.

    Source: DLMF 5.12.1.

    Example:
        >>> from weft.scipy import special
        >>> round(float(special.betaln(2.0, 1e6)), 4)
        -27.631
    """
    a, b = promote_shapes("betaln", *promote_inexact("betaln", a, b))
    ordered = el.le(a, b)
    less, more = _where(ordered, a, b), _where(ordered, b, a)
    # gammaln of large numbers is large: its differences are taken by Stirling's formula, in which the large terms
    # cancel exactly
    far = comparisons.logical_and(
        comparisons.logical_and(el.ge(more, scalar_like(more, _LARGE)), el.lt(more, scalar_like(more, math.inf))),
        el.gt(less, scalar_like(less, 0)),
    )
    both = comparisons.logical_and(far, el.ge(less, scalar_like(less, _LARGE)))
    p, q = _where(far, less, 1.0), _where(far, more, _LARGE)
    rest = _stirling_rest(q) - _stirling_rest(p + q) - (q - 0.5) * _log1p_ratio(p, q)
    large = _where(both, p, _LARGE)
    both_large = (
        rest + _stirling_rest(large) - large * _log1p_ratio(q, large) + 0.5 * transcendental.log(2 * math.pi / large)
    )
    small = _where(both, 1.0, p)
    one_large = rest + gammas.lgamma(small) + small * (1 - transcendental.log(p + q))
    x, y = _where(far, 1.0, a), _where(far, 1.0, b)
    near = el.sub(el.add(gammas.lgamma(x), gammas.lgamma(y)), gammas.lgamma(el.add(x, y)))
    return _where(both, both_large, _where(far, one_large, near))


def beta(a, b):
    """The beta function of positive numbers.

    Args:
        a: array of real numbers, positive.
        b: array of real numbers, positive, which broadcasts with a.

    Returns:
        array of floats, the broadcast shape.

    Raises:
        TypeError: for lists.

    Source: DLMF 5.12.1.

    Example:
        >>> from weft.scipy import special
        >>> round(float(special.beta(2.0, 3.0)), 4)
        0.0833
    """
    return transcendental.exp(betaln(a, b))


def factorial(n, exact: bool = False):
    """n! as a float; 0 for negative n.

    Args:
        n: array of real numbers, any shape.
        exact: bool, which must be False: the result is a float.

    Returns:
        array of floats, the shape of n.

    Raises:
        NotImplementedError: for exact=True.

    Source: DLMF 5.4.1.

    Example:
        >>> from weft.scipy import special
        >>> round(float(special.factorial(4)))
        24
    """
    if exact:
        raise NotImplementedError("factorial: exact=True is not supported; the result is a float.")
    (n,) = promote_inexact("factorial", n)
    return _where(el.lt(n, scalar_like(n, 0)), 0.0, transcendental.exp(gammas.lgamma(el.add(n, scalar_like(n, 1)))))


def _product_with_log(name: str, log, slope_y):
    @custom_jvp
    def function(x, y):
        x, y = promote_shapes(name, *promote_inexact(name, x, y))
        nothing = comparisons.logical_and(el.eq(x, scalar_like(x, 0)), el.eq(y, y))
        return _where(nothing, 0.0, el.mul(x, log(y)))

    @function.defjvp
    def jvp(primals, tangents):
        (x, y), (tx, ty) = primals, tangents
        out = function(x, y)
        dx, dy = log(promote_inexact(name, y)[0]), slope_y(x, y)
        tangent = ufuncs.add(ufuncs.multiply(tx, dx), ufuncs.multiply(ty, dy))
        return out, linear.convert(linear.broadcast_to_rank_shape(tangent, shape_of(out)), dtype_of(out))

    function.__name__ = name
    return function


_xlogy = _product_with_log("xlogy", transcendental.log, lambda x, y: ufuncs.divide(x, y))
_xlog1py = _product_with_log("xlog1py", transcendental.log1p, lambda x, y: ufuncs.divide(x, ufuncs.add(1, y)))


def xlogy(x, y):
    """x * log(y), 0 where x is 0 and y a number.

    Args:
        x: array of numbers, rank at least 1.
        y: array of real numbers, which broadcasts with x.

    Returns:
        array of floats, the broadcast shape.

    Example:
        >>> from weft.scipy import special
        >>> float(special.xlogy(0.0, 0.0))
        0.0
    """
    return _xlogy(*promote_inexact("xlogy", x, y))


def xlog1py(x, y):
    """x * log(1 + y), 0 where x is 0.

    Args:
        x: array of numbers, rank at least 1.
        y: array of real numbers, which broadcasts with x.

    Returns:
        array of floats, the broadcast shape.

    Example:
        >>> from weft.scipy import special
        >>> float(special.xlog1py(0.0, -1.0))
        0.0
    """
    return _xlog1py(*promote_inexact("xlog1py", x, y))


def entr(x):
    """-x * log(x), 0 at 0 and -inf below.

    Args:
        x: array of numbers, rank at least 1.

    Returns:
        array of floats, the shape of x.

    Source: Shannon, "A mathematical theory of communication" (1948).

    Example:
        >>> from weft.scipy import special
        >>> float(special.entr(1.0))
        -0.0
    """
    (x,) = promote_inexact("entr", x)
    return _where(el.lt(x, scalar_like(x, 0)), -math.inf, el.neg(_xlogy(x, x)))


def rel_entr(p, q):
    """p * log(p / q), 0 where p is 0 and inf where it has no value.

    Args:
        p: array of real numbers, any shape.
        q: array of real numbers, which broadcasts with p.

    Returns:
        array of floats, the broadcast shape.

    Source: Kullback and Leibler, "On information and sufficiency" (1951).

    Example:
        >>> from weft.scipy import special
        >>> float(special.rel_entr(0.0, 1.0))
        0.0
    """
    p, q = promote_shapes("rel_entr", *promote_inexact("rel_entr", p, q))
    zero = scalar_like(p, 0)
    both = comparisons.logical_and(el.gt(p, zero), el.gt(q, zero))
    none = comparisons.logical_and(el.eq(p, zero), el.ge(q, zero))
    safe_p, safe_q = _where(both, p, 1.0), _where(both, q, 1.0)
    return _where(both, el.sub(_xlogy(safe_p, safe_p), _xlogy(safe_p, safe_q)), _where(none, 0.0, math.inf))


def kl_div(p, q):
    """rel_entr(p, q) - p + q.

    Args:
        p: array of real numbers, any shape.
        q: array of real numbers, which broadcasts with p.

    Returns:
        array of floats, the broadcast shape.

    Source: Kullback and Leibler, "On information and sufficiency" (1951).

    Example:
        >>> from weft.scipy import special
        >>> float(special.kl_div(1.0, 1.0))
        0.0
    """
    return ufuncs.add(ufuncs.subtract(rel_entr(p, q), p), q)


@overload
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: Literal[False] = False,
    where: ArrayLike | None = None,
) -> Array: ...
@overload
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    *,
    return_sign: Literal[True],
    where: ArrayLike | None = None,
) -> tuple[Array, Array]: ...
@overload
def logsumexp(
    a: ArrayLike, axis: Axis, b: ArrayLike | None, keepdims: bool, return_sign: bool, where: ArrayLike | None = None
) -> Array | tuple[Array, Array]: ...
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Array | tuple[Array, Array]:
    """log(sum(b * exp(a))) without overflow.

    With `return_sign` also the sign of the sum, which without it must not be negative (NaN).

    Args:
        a: array of numbers, any shape.
        axis: int, tuple of ints, or None for all: the axes.
        b: array of numbers that broadcasts to a; None for ones.
        keepdims: bool: the reduced axes stay, with size 1.
        return_sign: bool.
        where: array of booleans that broadcasts to a: which elements count; None for all.

    Returns:
        array of floats or complex numbers, the shape of a without the axes; with `return_sign` a pair.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import special
        >>> float(special.logsumexp(jnp.array([1000., -1000.])))
        1000.0
    """
    if b is not None:
        a, b = promote_inexact("logsumexp", a, b)
        a = _where(comparisons.not_equal(b, 0), a, -math.inf)
    else:
        (a,) = promote_inexact("logsumexp", a)
    a = on_device(a)
    axis, names = split_names(axis)
    axes = canonical_axes(axis, len(shape_of(a)))
    if any(shape_of(a)[d] == 0 for d in axes):
        top = reductions.max(a, axes, initial=-math.inf)
    elif where is None:
        real = el.real(a) if dtypes.is_complex(dtype_of(a)) else a
        top = el.max_(scalar_like(real, -math.inf), reduce_max(real, axes))
    else:
        top = reductions.max(a, axes, initial=-math.inf, where=where)
    top = linear.stop_gradient_p.bind(
        el.select_n_p.bind(el.is_finite(top), linear.full(shape_of(top), 0, dtype_of(top)), top)
    )
    top = linear.convert(pmax(top, names) if names else top, dtype_of(a))
    exps = transcendental.exp(el.sub(a, linear.expand_dims(top, axes) if axes else top))
    if b is not None:
        exps = ufuncs.multiply(exps, b)
    total = reductions.sum(exps, (*axes, *names), where=where)
    if dtypes.is_complex(dtype_of(total)):
        sign = el.sign(total)
        out = (
            el.add(transcendental.log(el.abs_(total)), el.real(top))
            if return_sign
            else el.add(transcendental.log(total), top)
        )
    else:
        sign = el.sign(total)
        out = el.add(transcendental.log(el.abs_(total)), top)
        if not return_sign and b is not None:
            out = _where(el.lt(sign, scalar_like(sign, 0)), math.nan, out)
    if keepdims:
        out, sign = linear.expand_dims(out, axes), linear.expand_dims(sign, axes)
    return (out, sign) if return_sign else out


def softmax(x, /, *, axis=None):
    """exp(x) divided by its sum.

    Args:
        x: array of numbers, rank at least 1.
        axis: int, tuple of ints, or None for all: the axes.

    Returns:
        array of floats, the shape of x.

    Example:
        >>> from weft.scipy import special
        >>> import weft.numpy as jnp
        >>> special.softmax(jnp.zeros(2)).tolist()
        [0.5, 0.5]
    """
    return transcendental.exp(log_softmax(x, axis=axis))


def log_softmax(x, /, *, axis=None):
    """log(softmax(x)).

    Args:
        x: array of numbers, rank at least 1.
        axis: int, tuple of ints, or None for all: the axes.

    Returns:
        array of floats, the shape of x.

    Example:
        >>> from weft.scipy import special
        >>> import weft.numpy as jnp
        >>> special.log_softmax(jnp.zeros(1)).tolist()
        [0.0]
    """
    return ufuncs.subtract(x, logsumexp(x, axis, keepdims=True))
