"""The limits of element types: finfo, iinfo, and the numbers that max and min start from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .annotations import override
from .host import has_numpy, np
from .dtypes import (
    DTypeLike,
    ElementType,
    _as_dtype,
    _by_name,
    bits,
    is_bool,
    is_complex,
    is_float,
    is_int,
    is_signed,
    name,
    real_of,
)

if TYPE_CHECKING:
    pass

if has_numpy:
    import ml_dtypes


class _IntInfo:
    def __init__(self, dt: ElementType):
        self.bits, self.dtype = bits(dt), dt
        self.min = -(1 << (self.bits - 1)) if is_signed(dt) else 0
        self.max = (1 << (self.bits - (1 if is_signed(dt) else 0))) - 1


class _FloatInfo:
    """Formats as IEEE 754 lays them out, but for the largest number and the smallest exponent where those are given."""

    def __init__(
        self,
        name: str,
        total: int,
        mantissa: int,
        exponent: int,
        largest: float | None = None,
        minexp: int | None = None,
    ):
        bias = (1 << (exponent - 1)) - 1
        self.dtype, self.bits, self.nmant, self.nexp = _by_name[name], total, mantissa, exponent
        self.eps, self.epsneg = 2.0**-mantissa, 2.0 ** -(mantissa + 1)
        self.max = (2.0 - 2.0**-mantissa) * 2.0**bias if largest is None else largest
        self.minexp = 1 - bias if minexp is None else minexp
        self.maxexp = math.frexp(self.max)[1]
        self.tiny = self.smallest_normal = 2.0**self.minexp
        self.min = -self.max if name != "float8_e8m0fnu" else self.tiny  # which has no sign
        self.smallest_subnormal = self.tiny * 2.0**-mantissa
        self.precision = int(mantissa * 0.30103)
        self.resolution = 10.0**-self.precision


_FINFO = {
    info.dtype.name: info
    for info in (
        _FloatInfo("bfloat16", 16, 7, 8),
        _FloatInfo("float16", 16, 10, 5),
        _FloatInfo("float32", 32, 23, 8),
        _FloatInfo("float64", 64, 52, 11),
        _FloatInfo("float8_e3m4", 8, 4, 3),
        _FloatInfo("float8_e4m3", 8, 3, 4),
        _FloatInfo("float8_e4m3fn", 8, 3, 4, 448.0),
        _FloatInfo("float8_e5m2", 8, 2, 5),
        _FloatInfo("float8_e4m3b11fnuz", 8, 3, 4, 30.0, -10),
        _FloatInfo("float8_e4m3fnuz", 8, 3, 4, 240.0, -7),
        _FloatInfo("float8_e5m2fnuz", 8, 2, 5, 57344.0, -15),
        _FloatInfo("float8_e8m0fnu", 8, 0, 8, 2.0**127, -127),
        _FloatInfo("float4_e2m1fn", 4, 1, 2, 6.0),
        _FloatInfo("float6_e2m3fn", 6, 3, 2, 7.5),
        _FloatInfo("float6_e3m2fn", 6, 2, 3, 28.0),
    )
}


class _Limits(type):
    """The metaclass of `finfo` and `iinfo`, whose instances are NumPy's where that is installed."""

    of: tuple[type[Any], ...]

    @override
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.of)


class finfo(metaclass=_Limits):
    """Machine limits of a float dtype, or of the parts of a complex one.

    Numbers are NumPy's scalars of that dtype, and Python's floats where NumPy is not installed.

    Raises:
        ValueError: for a dtype that is neither.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.finfo(jnp.bfloat16).bits
        16
    """

    of = (np.finfo, ml_dtypes.finfo) if has_numpy else (_FloatInfo,)
    dtype: ElementType
    bits: int
    eps: Any  # from 1 to the next larger number
    epsneg: Any  # from 1 to the next smaller number
    max: Any
    min: Any
    tiny: Any  # the smallest positive normal number
    smallest_normal: Any
    smallest_subnormal: Any
    resolution: Any  # 10 ** -precision
    precision: int  # decimal digits that survive a conversion
    nmant: int  # bits of the mantissa
    nexp: int  # bits of the exponent
    minexp: int  # the exponent of the smallest normal number
    maxexp: int  # the smallest exponent that is too large

    def __new__(cls, dtype: DTypeLike) -> finfo:
        dt = _as_dtype(dtype)
        part = real_of(dt) if is_complex(dt) else dt
        if has_numpy:
            limits: Any = ml_dtypes.finfo(part)
        elif part.name in _FINFO:
            limits = _FINFO[part.name]
        else:
            raise ValueError(
                f"data type {name(dt)} not inexact: finfo takes a float dtype; iinfo has the limits of integers."
            )
        return limits


class iinfo(metaclass=_Limits):
    """Machine limits of an integer dtype, as Python's integers.

    Raises:
        ValueError: for a dtype that is none.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.iinfo(jnp.int8).max
        127
    """

    of = (np.iinfo, ml_dtypes.iinfo) if has_numpy else (_IntInfo,)
    dtype: ElementType
    bits: int
    max: int
    min: int

    def __new__(cls, int_type: DTypeLike | int) -> iinfo:
        dt = _as_dtype(int if type(int_type) is int else int_type)
        if has_numpy:
            limits: Any = ml_dtypes.iinfo(dt)
        elif is_int(dt):
            limits = _IntInfo(dt)
        else:
            raise ValueError(
                f"Invalid integer data type {name(dt)}: iinfo takes an integer dtype; finfo has the limits of floats."
            )
        return limits


def lowest(dt: ElementType) -> bool | int | float | complex:
    """The identity of max: minus infinity, or the smallest value of a dtype without infinities."""
    if is_bool(dt):
        return False
    if is_complex(dt):
        return complex(-math.inf, -math.inf)
    return (-math.inf if has_infinity(dt) else float(finfo(dt).min)) if is_float(dt) else int(iinfo(dt).min)


def highest(dt: ElementType) -> bool | int | float | complex:
    """The identity of min: infinity, or the largest value of a dtype without infinities."""
    if is_bool(dt):
        return True
    if is_complex(dt):
        return complex(math.inf, math.inf)
    return (math.inf if has_infinity(dt) else float(finfo(dt).max)) if is_float(dt) else int(iinfo(dt).max)


def has_infinity(dt: ElementType) -> bool:
    """Whether a float dtype has infinities; those named fn, fnuz, fnu are finite."""
    return not name(dt).endswith(("fn", "fnuz", "fnu"))
