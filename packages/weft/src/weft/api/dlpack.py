"""Exchanging arrays with other libraries through DLPack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base import dtypes
from .. import numpy

if TYPE_CHECKING:
    from ..typing import Array, DTypeLike, Placement

__all__ = ["from_dlpack", "is_supported_dtype"]


def from_dlpack(external_array: Any, device: Placement = None, copy: bool | None = None) -> Array:
    """Makes an array from any object that offers DLPack. Like `weft.numpy.from_dlpack`, but takes its arguments by
    position too.

    Args:
        external_array: object with `__dlpack__` and `__dlpack_device__`: an array of any dtype that DLPack has, and any
            shape.
        device: device or sharding; None for where the array is.
        copy: bool: True always copies, False never; None copies if it must.

    Returns:
        array of the same dtype and shape.

    Example:
        >>> import numpy, weft
        >>> weft.dlpack.from_dlpack(numpy.ones(2, 'float32'))
        Array([1., 1.], dtype=float32)
    """
    return numpy.from_dlpack(external_array, device=device, copy=copy)


def is_supported_dtype(dtype: DTypeLike) -> bool:
    """Whether arrays of a dtype can be exchanged: all can but random keys, 4-bit integers and 8-bit floats.

    Args:
        dtype: dtype or its name.

    Returns:
        bool.

    Example:
        >>> import weft
        >>> weft.dlpack.is_supported_dtype("bfloat16"), weft.dlpack.is_supported_dtype("int4")
        (True, False)
    """
    dt = dtypes.dtype(dtype)
    return not dtypes.is_key(dt) and dt != dtypes.float0 and dtypes.bits(dt) >= (16 if dtypes.is_float(dt) else 8)
