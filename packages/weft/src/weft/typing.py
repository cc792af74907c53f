"""Types for annotations: what functions take as arrays and as dtypes."""
from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from .host import has_numpy, np
from .runtime.array import Array


@runtime_checkable
class SupportsDType(Protocol):
    """An object with a dtype."""

    @property
    def dtype(self) -> Any: ...


if has_numpy:
    ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
    DTypeLike = str | type[Any] | np.dtype | SupportsDType
else:
    ArrayLike = Array | bool | int | float | complex
    DTypeLike = str | type[Any] | SupportsDType

__all__ = ["ArrayLike", "DTypeLike"]
