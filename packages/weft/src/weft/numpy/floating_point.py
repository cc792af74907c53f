"""Rarer elementwise functions: pieces of floats, special values, integer number theory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..base import dtypes, limits
from ..higher_order.while_loop import while_loop
from ..core.trace import get_aval
from ..base.errors import type_error
from ..primitives import elementwise as el, bitwise, transcendental
from ..primitives import linear
from ..primitives.reduce import reduce_or
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..runtime.jit import inner_jit
from ..typing import Array, ArrayLike
from .comparisons import signbit
from .ufuncs import where_jit
from .complex_parts import imag
from .util import (
    no_complex,
    no_out,
    on_device,
    operand,
    promote,
    promote_inexact,
    promote_shapes,
    promote_strong,
    strong,
)

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = [
    "copysign",
    "frexp",
    "gcd",
    "heaviside",
    "iscomplex",
    "iscomplexobj",
    "isneginf",
    "isposinf",
    "isreal",
    "isrealobj",
    "lcm",
    "ldexp",
    "nan_to_num",
    "spacing",
]


def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """0 below zero, 1 above, x2 at zero.

    Args:
        x1: array of real numbers, any shape.
        x2: array of real numbers that broadcasts with x1.

    Returns:
        array of floats, the broadcast shape.

    Raises:
        TypeError: for complex numbers.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.heaviside(jnp.array([-1., 0.]), 0.5)
        Array([0. , 0.5], dtype=float32)
    """
    x, y = promote_shapes("heaviside", *promote_strong("heaviside", x1, x2, by=1))
    zero, one = scalar_like(x, 0), scalar_like(x, 1)
    step = where_jit(el.gt(x, zero), one, where_jit(el.lt(x, zero), zero, y))
    return where_jit(el.ne(x, x), x, step)


def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """|x1| with the sign of x2.

    Args:
        x1: array of real numbers, any shape.
        x2: array of real numbers that broadcasts with x1.

    Returns:
        array of floats, the broadcast shape.

    Raises:
        TypeError: an argument is complex.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.copysign(1., jnp.array([-2., 3.]))
        Array([-1.,  1.], dtype=float32)
    """
    x, y = promote_shapes("copysign", *promote_inexact("copysign", x1, x2))
    if dtypes.is_complex(dtype_of(x)):
        raise type_error(
            f"copysign does not take complex numbers, which have no sign, got {get_aval(x)} and {get_aval(y)}."
        )
    size = el.abs_(x)
    return where_jit(signbit(y), el.neg(size), size)


def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 * 2**x2.

    Args:
        x1: array of real numbers, any shape.
        x2: array of integers that broadcasts with x1.

    Returns:
        array of floats, the broadcast shape.

    Raises:
        ValueError: for an x2 that is no integer, and for complex numbers.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.ldexp(jnp.array([1.5]), 2)
        Array([6.], dtype=float32)
    """
    (x,) = promote_inexact("ldexp", x1)
    y = operand("ldexp", x2)
    if dtypes.is_inexact(get_aval(y).dtype):
        raise ValueError(f"ldexp takes integers as x2, got {get_aval(y)}.")
    no_complex("ldexp", x)
    x, y = promote_shapes("ldexp", x, linear.convert(y, dtypes.int32))
    # two factors, so that exponents of subnormal results do not underflow on the way
    half = bitwise.shift_right_arithmetic(y, scalar_like(y, 1))
    two = lambda e: transcendental.exp2(linear.convert(e, dtype_of(x)))
    return el.mul(el.mul(x, two(half)), two(el.sub(y, half)))


def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether x is positive infinity.

    Args:
        x: array of real numbers, any shape.
        out: None, since arrays are immutable.

    Returns:
        array of booleans, the shape of x.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.isposinf(jnp.array([jnp.inf, 1.]))
        Array([ True, False], dtype=bool)
    """
    return _is_infinity("isposinf", x, math.inf, out)


def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether x is negative infinity.

    Args:
        x: array of real numbers, any shape.
        out: None, since arrays are immutable.

    Returns:
        array of booleans, the shape of x.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.isneginf(jnp.array([-jnp.inf, 1.]))
        Array([ True, False], dtype=bool)
    """
    return _is_infinity("isneginf", x, -math.inf, out)


def _is_infinity(name: str, x: Value, which: Value, out: Value) -> Value:
    no_out(name, out)
    x = operand(name, x)
    dt = get_aval(x).dtype
    if dtypes.is_complex(dt):
        raise ValueError(f"{name} does not take complex numbers.")
    return (
        strong(el.eq(x, scalar_like(x, which)))
        if dtypes.is_float(dt)
        else linear.full(shape_of(x), False, dtypes.bool_)
    )


def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """NaN replaced by `nan`, infinities by the largest finite numbers (or `posinf`, `neginf`).

    Args:
        x: array of numbers or booleans, any shape.
        copy: bool, which must be True, since arrays are immutable.
        nan: number in place of NaN.
        posinf: number in place of infinity; None for the largest finite one.
        neginf: number in place of minus infinity; None for the smallest finite one.

    Returns:
        array of the dtype and shape of x.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.nan_to_num(jnp.array([jnp.nan, 1.]))
        Array([0., 1.], dtype=float32)
    """
    x = operand("nan_to_num", x)
    dt = get_aval(x).dtype
    if dtypes.is_complex(dt):
        return el.complex_(
            nan_to_num(el.real(x), copy, nan, posinf, neginf), nan_to_num(el.imag(x), copy, nan, posinf, neginf)
        )
    if not dtypes.is_float(dt):
        return on_device(x)
    info = limits.finfo(dt)
    shape = shape_of(x)
    fill = lambda v: (
        linear.broadcast_to_rank_shape(linear.convert(v, dt), shape) if not shape_of(v) else linear.convert(v, dt)
    )
    pick = lambda test, value, out: el.select_n_p.bind(test, out, fill(value))
    out = pick(el.ne(x, x), nan, x)
    out = pick(isposinf(x), float(info.max) if posinf is None else posinf, out)
    return pick(isneginf(x), float(info.min) if neginf is None else neginf, out)


def iscomplexobj(x: ArrayLike) -> bool:
    """Whether x has a complex dtype.

    Args:
        x: array of any dtype, any shape.

    Returns:
        bool.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.iscomplexobj(jnp.ones(2))
        False
    """
    if x is None or isinstance(x, str):  # as NumPy, which converts them to an array first
        return False
    if isinstance(x, (list, tuple)):
        return any(map(iscomplexobj, x))
    if isinstance(x, dtypes._ScalarType):
        return dtypes.is_complex(x.dtype)
    return dtypes.is_complex(get_aval(operand("iscomplexobj", x)).dtype)


def isrealobj(x: ArrayLike) -> bool:
    """Whether x has no complex dtype.

    Args:
        x: array of any dtype, any shape.

    Returns:
        bool.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.isrealobj(jnp.ones(2))
        True
    """
    return not iscomplexobj(x)


def isreal(x: ArrayLike) -> Array:
    """Whether the imaginary part is zero.

    Args:
        x: array of numbers or booleans, any shape.

    Returns:
        array of booleans, the shape of x.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.isreal(jnp.array([1j, 1.]))
        Array([False,  True], dtype=bool)
    """
    part = imag(x)
    return _of_array(el.eq(part, scalar_like(part, 0)))


def iscomplex(x: ArrayLike) -> Array:
    """Whether the imaginary part is not zero.

    Args:
        x: array of numbers or booleans, any shape.

    Returns:
        array of booleans, the shape of x.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.iscomplex(jnp.array([1j, 1.]))
        Array([ True, False], dtype=bool)
    """
    part = imag(x)
    return _of_array(el.ne(part, scalar_like(part, 0)))


def _of_array(x: Value) -> Value:
    return strong(x) if shape_of(x) else x


def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """(mantissa in [0.5, 1), exponent) with x = mantissa * 2**exponent.

    Args:
        x: array of real numbers, any shape.

    Returns:
        (mantissas, exponents): floats and int32, both of the shape of x.

    Raises:
        TypeError: for complex numbers.

    Example:
        >>> import weft.numpy as jnp
        >>> m, e = jnp.frexp(jnp.array([6.]))
    """
    (x,) = promote_inexact("frexp", x)
    dt = dtype_of(x)
    info = limits.finfo(dt)
    # scale subnormals up first, read the exponent from the bits
    tiny = el.lt(el.abs_(x), scalar_like(x, float(info.tiny)))
    shift = int(info.nmant) + 1
    scaled = el.select_n_p.bind(tiny, x, el.mul(x, scalar_like(x, 2.0**shift)))
    bits = bitwise.bitcast(scaled, f"int{dtypes.bits(dt)}")
    mask = (1 << int(info.nexp)) - 1
    field = el.and_(bitwise.shift_right_logical(bits, scalar_like(bits, int(info.nmant))), scalar_like(bits, mask))
    bias = (mask >> 1) - 1
    field = linear.convert(field, dtypes.int32)
    exponent = el.sub(field, scalar_like(field, bias))
    exponent = el.select_n_p.bind(tiny, exponent, el.sub(exponent, scalar_like(exponent, shift)))
    cleared = el.or_(
        el.and_(bits, scalar_like(bits, ~(mask << int(info.nmant)))), scalar_like(bits, bias << int(info.nmant))
    )
    special = el.or_(el.not_(el.is_finite(x)), el.eq(x, scalar_like(x, 0)))
    fill = linear.full(shape_of(x), 0, dtypes.int32)
    return el.select_n_p.bind(special, bitwise.bitcast(cleared, dt), x), el.select_n_p.bind(special, exponent, fill)


def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greatest common divisor of integers.

    Args:
        x1: array of integers, any shape.
        x2: array of integers that broadcasts with x1.

    Returns:
        array of integers, the broadcast shape; never negative.

    Raises:
        ValueError: for other dtypes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.gcd(jnp.array([12, 7]), 18)
        Array([6, 1], dtype=int32)
    """
    x, y = _integers("gcd", x1, x2)
    shape, weak = shape_of(el.add(x, y)), get_aval(x).weak_type and get_aval(y).weak_type
    x, y = [
        linear.broadcast_to_rank_shape(v, shape)
        for v in (
            el.abs_(x) if dtypes.is_signed(dtype_of(x)) else x,
            el.abs_(y) if dtypes.is_signed(dtype_of(y)) else y,
        )
    ]

    def step(pair: Value) -> tuple[Value, Value]:
        a, b = pair
        done = el.eq(b, scalar_like(b, 0))
        safe = el.select_n_p.bind(done, b, linear.full(shape, 1, dtype_of(b), weak and not shape))
        return el.select_n_p.bind(done, b, a), el.select_n_p.bind(done, el.rem(a, safe), b)

    go_on = lambda pair: reduce_or(el.ne(pair[1], scalar_like(pair[1], 0)), range(len(shape)))
    return while_loop(go_on, step, (x, y))[0]


def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The least common multiple of integers.

    Args:
        x1: array of integers, any shape.
        x2: array of integers that broadcasts with x1.

    Returns:
        array of integers, the broadcast shape; never negative.

    Raises:
        ValueError: for other dtypes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.lcm(jnp.array([4, 6]), 10)
        Array([20, 30], dtype=int32)
    """
    x, y = _integers("lcm", x1, x2)
    d = gcd(x, y)
    one = scalar_like(d, 1)
    safe = where_jit(el.eq(d, scalar_like(d, 0)), one, d)
    out = el.mul(x, el.div(y, safe))
    return el.abs_(out) if dtypes.is_signed(dtype_of(out)) else out


def _integers(name: str, x1: Value, x2: Value) -> tuple[Value, Value]:
    x, y = promote_shapes(name, *promote(name, x1, x2))
    if not dtypes.is_int(dtype_of(x)):
        raise ValueError(f"{name} takes integers, got {get_aval(x)} and {get_aval(y)}.")
    return x, y


@inner_jit(name="spacing")
def _spacing(x: Value) -> Value:
    zero, far = el.eq(x, scalar_like(x, 0)), linear.full(shape_of(x), math.inf, dtype_of(x))
    far = el.select_n_p.bind(el.lt(x, scalar_like(x, 0)), far, el.neg(far))
    step = el.sub(el.nextafter(x, far), x)
    step = linear.stop_gradient_p.bind(step)
    least = linear.full(shape_of(x), float(limits.finfo(dtype_of(x)).smallest_subnormal), dtype_of(x))
    step = el.select_n_p.bind(zero, step, el.select_n_p.bind(signbit(x), least, el.neg(least)))
    return el.select_n_p.bind(el.is_finite(x), linear.full(shape_of(x), math.nan, dtype_of(x)), step)


def spacing(x: ArrayLike, /) -> Array:
    """The distance from x to the next number away from zero.

    Args:
        x: array of real numbers, any shape.

    Returns:
        array of floats, the shape of x.

    Raises:
        ValueError: for complex numbers.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.spacing(jnp.float32(1))
        Array(1.1920929e-07, dtype=float32)
    """
    (x,) = promote_inexact("spacing", x)
    if dtypes.is_complex(dtype_of(x)):
        raise ValueError(f"spacing is not defined for complex numbers, got {get_aval(x)}.")
    return _spacing(on_device(linear.convert(x, dtype_of(x))))
