"""Positions along axes. Users pass them as integers of any dtype; an operation on a narrow dtype must not wrap round if
the axis is longer than its largest number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base import dtypes, limits
from ..base.avals import SymbolicSize
from ..core.jaxpr import TypedScalar
from .elementwise import add, lt, max_, min_, select_n_p
from .linear import convert
from .rules import dtype_of, scalar_like, scalar_of

if TYPE_CHECKING:
    from ..core.types import ElementType, Size, Value


def holding(dt: ElementType, *sizes: Size) -> ElementType:
    """A dtype of integers, or a wider one that can represent the sizes of axes."""
    wider = [
        dt,
        *[wide for wide in (dtypes.int32, dtypes.canonicalize(dtypes.int64)) if dtypes.bits(wide) > dtypes.bits(dt)],
    ]
    fits = lambda dt: all(
        [dtypes.bits(dt) >= 32 if isinstance(n, SymbolicSize) else n <= limits.iinfo(dt).max for n in sizes]
    )
    return next((wide for wide in wider if fits(wide)), wider[-1])


def wide_index(index: Value, *sizes: Size) -> Value:
    """An index in a dtype that can represent the sizes of axes, so that computations with both do not wrap round."""
    return convert(index, holding(dtype_of(index), *sizes))


def known_index(index: Value) -> int | None:
    """The number of an index that the host knows."""
    return index.val if type(index) is TypedScalar else index if dtypes.is_python_scalar(index) else None


def narrowed(index: Value, dt: ElementType) -> Value:
    """An index converted to `dt`. A number that is too large (or small) becomes the largest (or smallest) number of
    `dt`, which is still out of bounds.
    """
    value = known_index(index)
    (low, high), (least, most) = [(info.min, info.max) for info in map(limits.iinfo, (dt, dtype_of(index)))]
    if value is not None:
        return scalar_of(min(max(value, low), high), dt)
    if most > high:
        index = min_(index, scalar_like(index, high))
    if least < low:
        index = max_(index, scalar_like(index, low))
    return convert(index, dt)


def wrap_index(index: Value, size: Size) -> Value:
    """An integer index (or an array of them), with negative ones counted from the end, in a dtype that can represent
    the size.
    """
    if dtypes.is_unsigned(dtype_of(index)):
        return index
    index, value = wide_index(index, size), known_index(index)
    if value is not None:
        return scalar_like(index, value + size if value < 0 else value)
    return select_n_p.bind(lt(index, scalar_like(index, 0)), index, add(index, scalar_like(index, size)))
