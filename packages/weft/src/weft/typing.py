"""Types for annotations: what functions take as arrays and as dtypes."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from .dtypes import SupportsDType
from .host import has_numpy, np
from .runtime.array import Array

if TYPE_CHECKING:
    from .dtypes import DTypeLike

    ArrayLike: TypeAlias = Array | np.ndarray[Any, Any] | np.bool_ | np.number[Any] | bool | int | float | complex
elif has_numpy:
    ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
    DTypeLike = str | type[Any] | np.dtype | SupportsDType
else:
    ArrayLike = Array | bool | int | float | complex
    DTypeLike = str | type[Any] | SupportsDType

__all__ = ["ArrayLike", "DTypeLike"]
