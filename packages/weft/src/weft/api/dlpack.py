"""Exchanging arrays with other libraries through DLPack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base import dtypes
from .. import numpy

if TYPE_CHECKING:
    from ..typing import Array, DTypeLike, Placement

__all__ = ["from_dlpack", "is_supported_dtype"]


def from_dlpack(external_array: Any, device: Placement = None, copy: bool | None = None) -> Array:
    """An array from any object that offers DLPack: `weft.numpy.from_dlpack`, whose arguments may be given by position.

    Example:
        >>> import numpy, weft
        >>> weft.dlpack.from_dlpack(numpy.ones(2, 'float32'))
        Array([1., 1.], dtype=float32)
    """
    return numpy.from_dlpack(external_array, device=device, copy=copy)


def is_supported_dtype(dtype: DTypeLike) -> bool:
    """Whether arrays of this dtype can be exchanged: all but random keys, 4-bit integers and 8-bit floats.

    Example:
        >>> import weft
        >>> weft.dlpack.is_supported_dtype("bfloat16"), weft.dlpack.is_supported_dtype("int4")
        (True, False)
    """
    dt = dtypes.dtype(dtype)
    return not dtypes.is_key(dt) and dt != dtypes.float0 and dtypes.bits(dt) >= (16 if dtypes.is_float(dt) else 8)
