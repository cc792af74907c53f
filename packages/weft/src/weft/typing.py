"""Types for annotations: what functions take as arrays and as dtypes, and short names for what signatures repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Hashable, Protocol, Sequence, SupportsIndex, TypeAlias

from .base.annotations import Tree as Tree
from .base.array import Array as Array, ArrayLike as ArrayLike
from .base.avals import SymbolicSize
from .base.devices import Device
from .base.dtypes import SupportsDType
from .base.host import has_numpy, np
from .base.mesh import NamedSharding, PartitionSpec, Sharding
from .primitives.gather import GatherScatterMode

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from .base.dtypes import DTypeLike

    class SupportsArray(Protocol):
        """An object that can become an array of NumPy's."""

        def __array__(self) -> np.ndarray[Any, Any]: ...

    class SupportsJaxArray(Protocol):
        """An object that stands for an array."""

        def __jax_array__(self) -> Array: ...
elif has_numpy:
    DTypeLike = str | type[Any] | np.dtype | SupportsDType
else:
    DTypeLike = str | type[Any] | SupportsDType

# What becomes an array: one, a number, sequences of these in sequences, a buffer of bytes.
Nested: TypeAlias = "ArrayLike | Sequence[Any] | SupportsArray | SupportsJaxArray | Buffer"
SizeLike: TypeAlias = SupportsIndex | SymbolicSize  # what stands for a size,
Shape: TypeAlias = Sequence[SizeLike]  # for a shape,
ShapeLike: TypeAlias = SizeLike | Shape  # and for a shape where a size is one too
Axis: TypeAlias = int | Sequence[int] | None  # an axis, several, or all of them
AxisName: TypeAlias = Hashable | tuple[Hashable, ...]  # the name of a mapped axis, or several
Placement: TypeAlias = Device | Sharding | None  # where an array goes; None: where it would without
OutSharding: TypeAlias = NamedSharding | PartitionSpec | None  # how a result lies over the devices of a mesh
Mode: TypeAlias = str | GatherScatterMode | None  # what becomes of indices out of bounds

__all__ = ["ArrayLike", "DTypeLike"]


def __dir__() -> list[str]:
    return sorted(__all__)
