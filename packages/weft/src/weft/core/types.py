"""Short names for the types that signatures of the language speak of."""

from __future__ import annotations

from typing import Any, Sequence, TypeAlias

from ..base.avals import AbstractValue, Shape, ShapedArray, Size
from ..base.dtypes import DTypeLike, ElementType

# a value that has a type for `get_aval`: an array of any backend, a tracer, a host array or a number
Value: TypeAlias = Any
Params: TypeAlias = dict[str, Any]  # the parameters of an equation by name
Dims: TypeAlias = Sequence[int | Any]  # for each argument the axis along which it is batched, or None

__all__ = ["AbstractValue", "DTypeLike", "Dims", "ElementType", "Params", "Shape", "ShapedArray", "Size", "Value"]
