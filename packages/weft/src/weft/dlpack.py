"""Exchanging arrays with other libraries through DLPack."""
from __future__ import annotations

from . import dtypes
from .numpy import from_dlpack as from_dlpack

__all__ = ["from_dlpack", "is_supported_dtype"]


def is_supported_dtype(dtype) -> bool:
    """Whether arrays of this dtype can be exchanged: all but random keys, 4-bit integers and 8-bit floats.

    Example:
        >>> import weft
        >>> weft.dlpack.is_supported_dtype("bfloat16"), weft.dlpack.is_supported_dtype("int4")
        (True, False)
    """
    dt = dtypes.dtype(dtype)
    return not dtypes.is_key(dt) and dt != dtypes.float0 and dtypes.bits(dt) >= (16 if dtypes.is_float(dt) else 8)
