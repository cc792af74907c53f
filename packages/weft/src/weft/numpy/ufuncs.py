"""Elementwise functions of `weft.numpy`. Arguments promote to one dtype and broadcast to one shape."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..base.annotations import alias
from ..base import dtypes, promotion
from ..runtime.jit import inner_jit
from ..higher_order.custom_jvp import custom_jvp
from ..core.trace import Tracer, get_aval
from ..base.errors import type_error
from ..core.jaxpr import TypedScalar
from ..primitives import elementwise as el, bitwise, transcendental
from ..primitives import linear
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..typing import Array, ArrayLike
from .util import (
    broadcast_shapes,
    elementwise_example,
    no_complex,
    of_kind,
    on_device,
    operand,
    promote,
    promote_inexact,
    promote_shapes,
    promote_strong,
    promoted,
)

if TYPE_CHECKING:
    from ..base.avals import Size
    from ..core.types import Value
    from ..base.dtypes import ElementType

__all__ = [
    "abs",
    "absolute",
    "arctan2",
    "atan2",
    "bitwise_count",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_right_shift",
    "clip",
    "divide",
    "divmod",
    "fabs",
    "float_power",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "hypot",
    "invert",
    "left_shift",
    "mod",
    "nextafter",
    "positive",
    "pow",
    "power",
    "reciprocal",
    "remainder",
    "right_shift",
    "sign",
    "square",
    "true_divide",
]
_PROMOTED = "the dtype to which the arguments promote"
_example = elementwise_example("jnp.array([5, 3]), 2", "numbers or booleans", _PROMOTED)
_integer_example = elementwise_example("jnp.array([5, 3]), 2", "integers or booleans", _PROMOTED)
_quotient_example = elementwise_example("jnp.array([5., 3.]), 2.", "numbers", "floats or complex numbers")
_float_example = elementwise_example("jnp.array([5., 3.]), 2.", "real numbers", "floats")
_unary_example = elementwise_example("jnp.array([5, 3])", "numbers", "the dtype of x")
_unary_integer_example = elementwise_example("jnp.array([5, 3])", "integers", "integers")


def _floats(name: str, x: ArrayLike, y: ArrayLike) -> list[Any]:
    return promote_shapes(name, *promote_inexact(name, x, y))


def _bits(name: str, x: ArrayLike, y: ArrayLike, shift: bool = False) -> list[Any]:
    """Operands of one dtype of integers, or of booleans where nothing is shifted."""
    a, b = promoted(name, x, y)
    if shift and dtypes.is_bool(get_aval(a).dtype):
        a, b = linear.convert(a, dtypes.int32), linear.convert(b, dtypes.int32)
    if dtypes.is_inexact(get_aval(a).dtype):
        raise type_error(f"{name} takes integers or booleans, got {get_aval(a)} and {get_aval(b)}.")
    return [a, b]


@_example
def add(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x + y."""
    x, y = promoted("add", x, y)
    return el.or_(x, y) if dtypes.is_bool(dtype_of(x)) else el.add(x, y)


@_example
def subtract(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x - y."""
    return el.sub(*promoted("subtract", x, y))


@_example
def multiply(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x * y."""
    x, y = promoted("multiply", x, y)
    return el.and_(x, y) if dtypes.is_bool(dtype_of(x)) else el.mul(x, y)


@_quotient_example
def divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x / y, a float."""
    return el.div(*_floats("divide", x1, x2))


true_divide = alias(divide, "true_divide")


@_example
def maximum(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The larger of x and y; NaN if either is."""
    return el.max_(*promoted("maximum", x, y))


@_example
def minimum(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The smaller of x and y; NaN if either is."""
    return el.min_(*promoted("minimum", x, y))


@_integer_example
def bitwise_and(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Bitwise and."""
    return el.and_(*_bits("bitwise_and", x, y))


@_integer_example
def bitwise_or(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Bitwise or."""
    return el.or_(*_bits("bitwise_or", x, y))


@_integer_example
def bitwise_xor(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Bitwise exclusive or."""
    return el.xor(*_bits("bitwise_xor", x, y))


@_integer_example
def left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x shifted left by y bits."""
    return bitwise.shift_left(*_bits("left_shift", x, y, True))


@_integer_example
def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 shifted right by x2 bits; signed integers keep their sign."""
    x, y = _bits("right_shift", x1, x2, True)
    return (bitwise.shift_right_logical if dtypes.is_unsigned(dtype_of(x)) else bitwise.shift_right_arithmetic)(x, y)


bitwise_left_shift = alias(left_shift, "bitwise_left_shift")
bitwise_right_shift = alias(right_shift, "bitwise_right_shift")


@_float_example
def arctan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The angle of the point (x2, x1), in radians."""
    return transcendental.atan2(*_floats("arctan2", x1, x2))


atan2 = alias(arctan2, "atan2")


@inner_jit(name="hypot")
def _hypot(x: Any, y: Any) -> Array:
    x, y = el.abs_(x), el.abs_(y)
    hi, lo = el.max_(x, y), el.min_(x, y)
    zero = el.eq(hi, scalar_like(hi, 0))
    shape = shape_of(hi)
    like = lambda v: linear.full(shape, v, dtype_of(hi), get_aval(hi).weak_type)
    safe = el.select_n_p.bind(zero, hi, like(1))
    value = el.mul(safe, transcendental.sqrt(el.add(scalar_like(hi, 1), el.square(el.div(lo, safe)))))
    value = el.select_n_p.bind(zero, value, like(0))
    infinite = el.or_(el.eq(x, scalar_like(x, math.inf)), el.eq(y, scalar_like(y, math.inf)))
    return el.select_n_p.bind(infinite, value, like(math.inf))


def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """sqrt(x² + y²) without overflow.

    Args:
        x1: array of real numbers, any shape.
        x2: array of real numbers that broadcasts with x1.

    Returns:
        array of floats, the broadcast shape.

    Raises:
        ValueError: for complex numbers.

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.hypot(3., 4.))
        5.0
    """
    no_complex("hypot", operand("hypot", x1), operand("hypot", x2))
    return _hypot(*promote_shapes("hypot", *promote_strong("hypot", x1, x2)))


@_float_example
def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The number after x in the direction of y."""
    return el.nextafter(*_floats("nextafter", x, y))


@custom_jvp
def _logaddexp(x: Value, y: Value) -> Value:
    if dtypes.is_complex(dtype_of(x)):
        high = el.max_(x, y)
        out = el.add(
            high, transcendental.log1p(transcendental.exp(el.sub(el.add(x, y), el.mul(high, scalar_like(high, 2)))))
        )
        turn, angle = scalar_like(el.imag(out), 2 * math.pi), el.imag(out)  # into (-π, π]
        whole = el.ceil(el.sub(el.div(angle, turn), scalar_like(angle, 0.5)))
        return el.complex_(el.real(out), el.sub(angle, el.mul(whole, turn)))
    high, gap = el.max_(x, y), el.sub(x, y)
    same_infinity, total = el.ne(gap, gap), el.add(x, y)
    return el.select_n_p.bind(
        same_infinity, el.add(high, transcendental.log1p(transcendental.exp(el.neg(el.abs_(gap))))), total
    )


@_logaddexp.defjvp
def _logaddexp_jvp(primals: Sequence[Value], tangents: Sequence[Value]) -> tuple[Any, Any]:
    """Each tangent weighted by exp(operand - result), which is 1 where an infinity stands on both sides."""
    x, y = primals
    out = _logaddexp(x, y)

    def term(v: Value, t: Value) -> Value:
        gap = el.sub(v, out)
        undefined = el.ne(gap, gap)
        weight = transcendental.exp(
            el.select_n_p.bind(undefined, gap, linear.full(shape_of(gap), 0, dtype_of(gap), get_aval(gap).weak_type))
        )
        return el.mul(linear.broadcast_to_rank_shape(t, shape_of(out)), weight)

    return out, el.add(term(x, tangents[0]), term(y, tangents[1]))


_logaddexp.__name__ = "logaddexp"


@_quotient_example
def logaddexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """log(exp(x1) + exp(x2)) without overflow."""
    return _logaddexp(*_floats("logaddexp", x1, x2))


@inner_jit(name="logaddexp2")
def _logaddexp2(x: Any, y: Any) -> Array:
    ln2 = scalar_like(x, math.log(2))
    return el.div(_logaddexp(el.mul(x, ln2), el.mul(y, ln2)), ln2)


def logaddexp2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """log2(2**x1 + 2**x2) without overflow.

    Args:
        x1: array of numbers, any shape.
        x2: array of numbers that broadcasts with x1.

    Returns:
        array of floats or complex numbers, the broadcast shape.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.logaddexp2(jnp.array([3.]), 3.)
        Array([4.], dtype=float32)
    """
    return _logaddexp2(*promote_shapes("logaddexp2", *promote_strong("logaddexp2", x1, x2)))


def _nan_ignoring(op: Callable[..., Array], better: Callable[..., Array], x: Any, y: Any) -> Array:
    """x where it is better or y is NaN, else y: its derivative goes to one operand, at a tie to y."""
    if not dtypes.is_float(dtype_of(x)):
        return op(x, y)
    shape = shape_of(el.add(x, y))
    x, y = [linear.broadcast_to_rank_shape(v, shape) for v in (x, y)]
    return el.select_n_p.bind(el.or_(better(x, y), el.ne(y, y)), y, x)


@inner_jit(name="fmax")
def _fmax(x: Any, y: Any) -> Array:
    return _nan_ignoring(el.max_, el.gt, x, y)


@inner_jit(name="fmin")
def _fmin(x: Any, y: Any) -> Array:
    return _nan_ignoring(el.min_, el.lt, x, y)


@_example
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The larger of x1 and x2, ignoring NaN."""
    return _fmax(*promoted("fmax", x1, x2))


@_example
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The smaller of x1 and x2, ignoring NaN."""
    return _fmin(*promoted("fmin", x1, x2))


@_unary_example
def negative(x: ArrayLike, /) -> Array:
    """-x."""
    return el.neg(of_kind("negative", x))


@_unary_example
def positive(x: ArrayLike, /) -> Array:
    """x itself."""
    return on_device(of_kind("positive", x))


@elementwise_example("jnp.array([5, 3])", "numbers", "real numbers, of the dtype of x where that is real")
def abs(x: ArrayLike, /) -> Array:
    """The absolute value."""
    x = of_kind("abs", x)
    return on_device(x) if dtypes.is_bool(dtype_of(x)) or dtypes.is_unsigned(dtype_of(x)) else el.abs_(x)


absolute = alias(abs, "absolute")


@_unary_example
def square(x: ArrayLike, /) -> Array:
    """x * x; of booleans as int32."""
    x = of_kind("square", x)
    return el.square(linear.convert(x, dtypes.int32) if dtypes.is_bool(dtype_of(x)) else x)


@_unary_integer_example
def invert(x: ArrayLike, /) -> Array:
    """Each bit inverted; logical not for booleans."""
    return el.not_(of_kind("invert", x, "biu"))


bitwise_invert = alias(invert, "bitwise_invert")
bitwise_not = alias(invert, "bitwise_not")


@_unary_integer_example
def bitwise_count(x: ArrayLike, /) -> Array:
    """The number of bits that are set in |x|."""
    x = of_kind("bitwise_count", x, "biu")
    if dtypes.is_bool(dtype_of(x)):
        return linear.convert(on_device(x), dtypes.uint8)
    return linear.convert(bitwise.population_count(el.abs_(x) if dtypes.is_signed(dtype_of(x)) else x), dtypes.uint8)


def fabs(x: ArrayLike, /) -> Array:
    """The absolute value as a float.

    Args:
        x: array of real numbers, any shape.

    Returns:
        array of floats, the shape of x.

    Raises:
        TypeError: for complex numbers.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fabs(-1)
        Array(1., dtype=float32, weak_type=True)
    """
    (x,) = promote_inexact("fabs", x)
    if dtypes.is_complex(dtype_of(x)):
        raise type_error(f"fabs does not take complex numbers, got {get_aval(x)}; use abs.")
    return el.abs_(x)


def sign(x: ArrayLike, /) -> Array:
    """-1, 0 or 1; x/|x| for complex numbers.

    Args:
        x: array of numbers or booleans, any shape.

    Returns:
        array of the dtype and shape of x.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.sign(jnp.array([-2., 0.]))
        Array([-1.,  0.], dtype=float32)
    """
    return el.sign(operand("sign", x))


def reciprocal(x: ArrayLike, /) -> Array:
    """1 / x.

    Args:
        x: array of numbers or booleans, any shape.

    Returns:
        array of floats or complex numbers, the shape of x.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.reciprocal(jnp.array([2., 4.]))
        Array([0.5 , 0.25], dtype=float32)
    """
    (x,) = promote_inexact("reciprocal", x)
    return el.integer_pow(x, -1)


@inner_jit(name="floor_divide")
def _floor_divide_signed(x: Value, y: Value) -> Value:
    x, y = promote("floor_divide", x, y)
    q = el.div(x, y)
    if dtypes.is_unsigned(dtype_of(x)):
        return q
    adjust = el.and_(el.ne(el.sign(x), el.sign(y)), el.ne(el.rem(x, y), scalar_like(x, 0)))
    return where_jit(adjust, el.sub(q, scalar_like(q, 1)), q)


@inner_jit(name="floor_divide")
def _floor_divide_float(x: Value, y: Value) -> Value:
    x, y = promote("floor_divide", x, y)
    mod = el.rem(x, y)
    # what remains of a division by zero is NaN, but the quotient is infinite
    shape = broadcast_shapes([shape_of(x), shape_of(y)])
    by_zero = linear.broadcast_to_rank_shape(el.eq(y, scalar_like(y, 0)), shape)
    q = el.div(el.select_n_p.bind(by_zero, el.sub(x, mod), linear.broadcast_to_rank_shape(x, shape)), y)
    adjust = el.and_(el.ne(mod, scalar_like(mod, 0)), el.ne(el.sign(mod), el.sign(y)))
    q = el.select_n_p.bind(linear.broadcast_to_rank_shape(adjust, shape), q, el.sub(q, scalar_like(q, 1)))
    return el.round_(q, 0)


def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The largest integer not above x1 / x2; integer division by zero gives -1 (all ones).

    Args:
        x1: array of numbers or booleans, any shape.
        x2: array of numbers or booleans that broadcasts with x1.

    Returns:
        array of the dtype to which both promote, the broadcast shape.

    Raises:
        TypeError: for complex numbers.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.floor_divide(jnp.array([5, -5]), 2)
        Array([ 2, -3], dtype=int32)
    """
    x, y = _ready_for_jit("floor_divide", x1, x2)
    dt = _common(x, y)
    if dtypes.is_bool(dt):
        x, y, dt = linear.convert(x, dtypes.int32), linear.convert(y, dtypes.int32), dtypes.int32
    if dtypes.is_complex(dt):
        raise type_error("floor_divide does not take complex numbers.")
    return (_floor_divide_signed if dtypes.is_int(dt) else _floor_divide_float)(x, y)


def _common(*args: Value) -> ElementType:
    return promotion.promote(*[(a.dtype, a.weak_type) for a in map(get_aval, args)])[0]


def _ready_for_jit(name: str, *args: Value) -> list[Any]:
    """Arguments of one rank whose dtypes are promoted inside a jitted function."""
    return promote_shapes(name, *[operand(name, a) for a in args])


@inner_jit(name="_where")
def where_jit(condition: Any, x: Any, y: Any) -> Array:
    """The `where` that all functions use: dtypes promote, shapes broadcast."""
    x, y = promote("where", x, y)
    shapes = [shape_of(v) for v in (condition, x, y)]
    rank = max(map(len, shapes))
    shape = tuple(
        _widest([s[d - rank + len(s)] for s in shapes if d - rank + len(s) >= 0], shapes) for d in range(rank)
    )
    wide = lambda v: (
        v if shape_of(v) == shape else linear.broadcast_in_dim(v, shape, tuple(range(rank - len(shape_of(v)), rank)))
    )
    condition, x, y = condition if not shapes[0] else wide(condition), wide(x), wide(y)
    return el.select_n_p.bind(condition, y, x)


def _widest(sizes: Any, shapes: Sequence[tuple[Size, ...]]) -> int:
    wide = {n for n in sizes if n != 1}
    if len(wide) > 1:
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={shapes}.")
    return wide.pop() if wide else 1


@inner_jit(name="remainder")
def _remainder(x: Value, y: Value) -> Value:
    x, y = promote("remainder", x, y)
    zero = scalar_like(x, 0)
    if dtypes.is_int(dtype_of(x)):
        y = where_jit(el.eq(y, zero), linear.convert(1, dtype_of(y), get_aval(y).weak_type), y)
    mod = el.rem(x, y)
    shape = shape_of(mod)
    rest = el.ne(mod, zero)
    adjust = el.and_(el.ne(el.lt(mod, zero), el.lt(y, zero)), rest)
    return el.select_n_p.bind(linear.broadcast_to_rank_shape(adjust, shape), mod, el.add(mod, y))


def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder of floor division: it has the sign of x2.

    Args:
        x1: array of numbers or booleans, any shape.
        x2: array of numbers or booleans that broadcasts with x1.

    Returns:
        array of the dtype to which both promote, the broadcast shape.

    Raises:
        TypeError: for complex numbers.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.mod(jnp.array([5, -5]), 3)
        Array([2, 1], dtype=int32)
    """
    x, y = _ready_for_jit("remainder", x1, x2)
    if dtypes.is_bool(_common(x, y)):
        x, y = [linear.convert(v, dtypes.int32) for v in (x, y)]
    return _remainder(x, y)


mod = alias(remainder, "mod")


def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder of division towards zero: it has the sign of x1.

    Args:
        x1: array of numbers or booleans, any shape.
        x2: array of numbers or booleans that broadcasts with x1.

    Returns:
        array of the dtype to which both promote, the broadcast shape.

    Raises:
        TypeError: for complex numbers.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fmod(jnp.array([5, -5]), 3)
        Array([ 2, -2], dtype=int32)
    """
    x, y = promote_shapes("fmod", *promote("fmod", x1, x2))
    if dtypes.is_bool(dtype_of(x)):  # the remainder of a division by false is the dividend, as in JAX
        x, y = [linear.convert(v, dtypes.int32) for v in (x, y)]
    elif dtypes.is_int(dtype_of(x)):
        y = where_jit(el.eq(y, scalar_like(y, 0)), scalar_like(y, 1), y)
    return el.rem(x, y)


def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """(floor_divide, remainder).

    Args:
        x1: array of numbers or booleans, any shape.
        x2: array of numbers or booleans that broadcasts with x1.

    Returns:
        pair of arrays of the dtype to which both promote, the broadcast shape.

    Raises:
        TypeError: for complex numbers.

    Example:
        >>> import weft.numpy as jnp
        >>> q, r = jnp.divmod(jnp.array([5]), 3)
    """
    return floor_divide(x1, x2), remainder(x1, x2)


@inner_jit(name="_power")
def _power_of_integers(x: Value, y: Value) -> Value:
    """Repeated squaring over the low bits of the exponent; higher ones overflow for every base but -1, 0 and 1."""
    bits = 6
    shape = shape_of(el.mul(x, y))
    x, y = [linear.broadcast_to_rank_shape(v, shape) for v in (x, y)]
    acc = linear.full(shape, 1, dtype_of(x), get_aval(x).weak_type and not shape)
    one = scalar_like(y, 1)
    for i in range(bits):
        odd = el.ne(el.and_(y, one), scalar_like(y, 0))
        acc = el.select_n_p.bind(odd, acc, el.mul(acc, x))
        if i + 1 < bits:
            y, x = bitwise.shift_right_logical(y, one), el.mul(x, x)
    return acc


def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 to the power x2. A Python int as exponent gives exact repeated products; integers need exponents that are not
    negative.

    Args:
        x1: array of numbers or booleans, any shape.
        x2: array of numbers or booleans that broadcasts with x1.

    Returns:
        array of the dtype to which both promote, the broadcast shape.

    Raises:
        TypeError: for negative ints as exponents of integers.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.power(jnp.array([2, 3]), 2)
        Array([4, 9], dtype=int32)
    """
    x1, exponent = operand("power", x1), operand("power", x2, any_int=True)
    if (
        type(exponent) is not int
        and not isinstance(exponent, Tracer)
        and get_aval(exponent).shape == ()
        and not dtypes.is_inexact(get_aval(exponent).dtype)
    ):
        # a concrete exponent: exact products, and the base's dtype
        exponent = int(exponent.val if type(exponent) is TypedScalar else exponent)
    if type(exponent) is int and dtypes.is_bool(get_aval(x1).dtype):
        x1 = linear.convert(x1, dtypes.int32)
    base = get_aval(x1)
    if type(exponent) is int:
        if dtypes.is_int(base.dtype) and exponent < 0:
            raise type_error(
                f"Integers cannot be raised to negative powers, got {base} to the power {exponent}. Convert to a float"
                " first."
            )
        return el.integer_pow_p.bind(x1, y=exponent)
    if dtypes.is_inexact(base.dtype) and dtypes.is_int(get_aval(exponent).dtype) and not get_aval(exponent).weak_type:
        return transcendental.pow_(*promote_shapes("power", x1, exponent))
    x, y = promote_shapes("power", *promote("power", x1, exponent))
    dt = dtype_of(x)
    if dtypes.is_bool(dt):
        return _power_of_integers(linear.convert(x, dtypes.int32), linear.convert(y, dtypes.int32))
    return transcendental.pow_(x, y) if dtypes.is_inexact(dt) else _power_of_integers(x, y)


pow = alias(power, "pow")


def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x to the power y, as floats.

    Args:
        x: array of numbers or booleans, any shape.
        y: array of numbers or booleans that broadcasts with x.

    Returns:
        array of floats or complex numbers, the broadcast shape.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.float_power(2, -1)
        Array(0.5, dtype=float32, weak_type=True)
    """
    return transcendental.pow_(*promote_shapes("float_power", *promote_inexact("float_power", x, y)))


@inner_jit(name="clip")
def _clip(x: Value, lo: Value | None, hi: Value | None) -> Value:
    dt = dtype_of(x)
    if lo is not None:
        x = el.max_(linear.convert(lo, dt, get_aval(x).weak_type), x)
    if hi is not None:
        x = el.min_(linear.convert(hi, dt, get_aval(x).weak_type), x)
    return x


def clip(arr: ArrayLike | None = None, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
    """x limited to [min, max]; either bound may be None.

    Args:
        arr: array of numbers or booleans, any shape.
        min, max: number or array that broadcasts with arr; None for no bound.

    Returns:
        array of the dtype to which both promote, the broadcast shape.

    Raises:
        ValueError: for complex numbers.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.clip(jnp.array([-1., 0.5, 2.]), 0, 1)
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    lo, hi = min, max
    if arr is None:
        raise ValueError("clip needs an array.")
    given = [operand("clip", v) for v in (arr, lo, hi) if v is not None]
    if any(dtypes.is_complex(get_aval(v).dtype) for v in given):
        raise ValueError("clip does not take complex numbers, which have no order; clip real and imaginary parts.")
    ready = iter(promote_shapes("clip", *given))
    arr = next(ready)
    lo = None if lo is None else next(ready)
    hi = None if hi is None else next(ready)
    dt, weak = promotion.promote(*[(get_aval(v).dtype, get_aval(v).weak_type) for v in given])
    return _clip(
        linear.convert(arr, dt, weak) if not dtypes.is_python_scalar(arr) else on_device(linear.convert(arr, dt, weak)),
        lo,
        hi,
    )
