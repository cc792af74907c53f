"""Bits packed into bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base import dtypes
from ..core.trace import get_aval
from ..primitives import elementwise as el, bitwise
from ..primitives import linear
from ..primitives import shape as ops
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..runtime.jit import inner_jit
from ..typing import Array, ArrayLike
from . import reductions
from .shapes import ravel
from .util import canonical_axis, on_device, operand, static_int, to_bool

if TYPE_CHECKING:
    from ..core.types import Value


__all__ = ["packbits", "unpackbits"]


def _shifts(name: str, bitorder: str) -> Value:
    """The shift of each bit of a byte from the lowest one, in the order of the bits."""
    if bitorder not in ("little", "big"):
        raise ValueError(f"{name}: bitorder must be 'little' or 'big', got {bitorder!r}.")
    up = ops.iota(dtypes.uint8, (8,), 0)
    return up if bitorder == "little" else ops.rev(up, (0,))


@inner_jit(name="packbits", static_argnums=(1, 2))
def _pack(bits: Value, axis: Any, bitorder: str) -> Value:
    bits = linear.moveaxis(bits, axis, len(shape_of(bits)) - 1)
    *lead, n = shape_of(bits)
    missing = -n % 8
    bits = ops.pad(
        linear.convert(bits, dtypes.uint8),
        scalar_like(linear.full((), 0, dtypes.uint8), 0),
        ((0, 0, 0),) * len(lead) + ((0, missing, 0),),
    )
    bits = linear.reshape(bits, (*lead, (n + missing) // 8, 8))
    shifts = linear.broadcast_in_dim(_shifts("packbits", bitorder), shape_of(bits), (len(lead) + 1,))
    out = reductions.sum(bitwise.shift_left(bits, shifts), -1, dtype=dtypes.uint8)
    return linear.moveaxis(out, len(lead), axis)


def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Whether elements are nonzero, eight to a byte along an axis (None: of the flattened array), zeros behind the
    last.

    Args:
        a: array of integers or booleans, any shape.
        axis: int, the axis; None for the flattened array.
        bitorder: 'big' or 'little': which bit the first element is.

    Returns:
        array of uint8, whose size along the axis is n / 8, rounded up.

    Raises:
        TypeError: for anything but integers and booleans. ValueError: for an unknown bit order.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.packbits(jnp.array([1, 0, 1]))
        Array([160], dtype=uint8)
    """
    x = on_device(operand("packbits", a))
    if not (dtypes.is_int(dtype_of(x)) or dtypes.is_bool(dtype_of(x))):
        raise TypeError(f"packbits takes integers or booleans, got {get_aval(x)}.")
    x, axis = (ravel(x), 0) if axis is None else (x, canonical_axis(axis, len(shape_of(x))))
    return _pack(to_bool("packbits", x), axis, bitorder)


@inner_jit(name="unpackbits", static_argnums=(1, 2, 3))
def _unpack(x: Value, axis: Any, count: int | None, bitorder: str) -> Value:
    x = linear.moveaxis(x, axis, len(shape_of(x)) - 1)
    *lead, n = shape_of(x)
    wide = (*lead, n, 8)
    bytes_ = linear.broadcast_in_dim(x, wide, tuple(range(len(lead) + 1)))
    shifts = linear.broadcast_in_dim(_shifts("unpackbits", bitorder), wide, (len(lead) + 1,))
    bits = linear.reshape(el.and_(bitwise.shift_right_logical(bytes_, shifts), scalar_like(bytes_, 1)), (*lead, 8 * n))
    keep = 8 * n if count is None else count if count >= 0 else max(0, 8 * n + count)
    bits = ops.pad(bits, scalar_like(bits, 0), ((0, 0, 0),) * len(lead) + ((0, keep - 8 * n, 0),))
    return linear.moveaxis(bits, len(lead), axis)


def unpackbits(a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Array:
    """The bits of bytes along an axis (None: of the flattened array): `count` of them, all but the last -count, or all.

    Args:
        a: array of uint8, any shape.
        axis: int, the axis; None for the flattened array.
        count: int, how many bits; negative to leave out the last ones; None for all.
        bitorder: 'big' or 'little': which bit comes first.

    Returns:
        array of uint8, whose size along the axis is `count`.

    Raises:
        TypeError: for a dtype other than uint8. ValueError: for an unknown bit order.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.unpackbits(jnp.array([160], 'uint8'), count=3)
        Array([1, 0, 1], dtype=uint8)
    """
    x: Any = on_device(operand("unpackbits", a))
    if dtype_of(x) != dtypes.uint8:
        raise TypeError(f"unpackbits takes bytes (uint8), got {get_aval(x)}.")
    x, axis = (ravel(x), 0) if axis is None else (x, canonical_axis(axis, len(shape_of(x))))
    return _unpack(x, axis, None if count is None else static_int("count", count), bitorder)
