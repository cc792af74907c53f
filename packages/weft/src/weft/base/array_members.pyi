"""What every array has, for type checkers and editors: the operators, methods and properties that
`numpy.array_methods` and the backends install.
"""

from typing import Any, Iterator, Sequence

import numpy as np

from .annotations import override
from .avals import ShapedArray, Shape, Size
from .dtypes import DTypeLike, ElementType
from .layout import Format
from .mesh import Sharding
from .shard import Shard
from ..numpy.updates import IndexUpdateHelper
from ..typing import Array, ArrayLike, Axis, OutSharding, Placement
from .devices import Device

class ArrayMembers:
    @property
    def aval(self) -> ShapedArray: ...
    @property
    def shape(self) -> Shape: ...
    @property
    def dtype(self) -> ElementType: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> Size: ...
    @property
    def nbytes(self) -> Size: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def weak_type(self) -> bool: ...
    @property
    def T(self) -> Array:
        """The array with its axes reversed."""
    @property
    def mT(self) -> Array:
        """The array with its last two axes swapped."""
    @property
    def real(self) -> Array: ...
    @property
    def imag(self) -> Array: ...
    @property
    def at(self) -> IndexUpdateHelper:
        """Names places: `x.at[idx].set(y)` is a new array in which they are changed."""

    @property
    def device(self) -> Device | Sharding: ...
    @property
    def sharding(self) -> Sharding: ...
    @property
    def format(self) -> Format: ...
    @property
    def committed(self) -> bool: ...
    def addressable_data(self, index: int) -> Array:
        """The part of the array on one of its devices."""
    @property
    def addressable_shards(self) -> list[Shard]: ...
    @property
    def global_shards(self) -> list[Shard]: ...
    @property
    def is_fully_addressable(self) -> bool: ...
    @property
    def is_fully_replicated(self) -> bool: ...
    def devices(self) -> set[Device]: ...
    def block_until_ready(self) -> Array:
        """The array itself, once it is computed."""
    def copy_to_host_async(self) -> None: ...
    def is_ready(self) -> bool: ...
    def is_deleted(self) -> bool: ...
    def delete(self) -> None:
        """Frees the memory. The array can't be used afterwards."""
    def to_device(self, device: Device | Sharding, *, stream: None = None) -> Array:
        """The array on another device."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Array]: ...
    def __reversed__(self) -> Iterator[Array]: ...
    def __contains__(self, item: ArrayLike) -> bool: ...
    def __getitem__(self, idx: Any) -> Array: ...
    def __bool__(self) -> bool: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __complex__(self) -> complex: ...
    def __index__(self) -> int: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]: ...
    def __array_namespace__(self, *, api_version: str | None = None) -> Any: ...
    def __dlpack__(self, **keywords: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __abs__(self) -> Array: ...
    def __neg__(self) -> Array: ...
    def __pos__(self) -> Array: ...
    def __invert__(self) -> Array: ...
    def __round__(self, ndigits: int | None = None) -> Array: ...
    @override
    def __eq__(self, other: ArrayLike) -> Array: ...  # type: ignore[override]  # elementwise, as NumPy's
    @override
    def __ne__(self, other: ArrayLike) -> Array: ...  # type: ignore[override]  # elementwise, as NumPy's
    def __lt__(self, other: ArrayLike) -> Array: ...
    def __le__(self, other: ArrayLike) -> Array: ...
    def __gt__(self, other: ArrayLike) -> Array: ...
    def __ge__(self, other: ArrayLike) -> Array: ...
    def __add__(self, other: ArrayLike) -> Array: ...
    def __sub__(self, other: ArrayLike) -> Array: ...
    def __mul__(self, other: ArrayLike) -> Array: ...
    def __truediv__(self, other: ArrayLike) -> Array: ...
    def __floordiv__(self, other: ArrayLike) -> Array: ...
    def __mod__(self, other: ArrayLike) -> Array: ...
    def __pow__(self, other: ArrayLike) -> Array: ...
    def __matmul__(self, other: ArrayLike) -> Array: ...
    def __and__(self, other: ArrayLike) -> Array: ...
    def __or__(self, other: ArrayLike) -> Array: ...
    def __xor__(self, other: ArrayLike) -> Array: ...
    def __lshift__(self, other: ArrayLike) -> Array: ...
    def __rshift__(self, other: ArrayLike) -> Array: ...
    def __divmod__(self, other: ArrayLike) -> tuple[Array, Array]: ...
    def __radd__(self, other: ArrayLike) -> Array: ...
    def __rsub__(self, other: ArrayLike) -> Array: ...
    def __rmul__(self, other: ArrayLike) -> Array: ...
    def __rtruediv__(self, other: ArrayLike) -> Array: ...
    def __rfloordiv__(self, other: ArrayLike) -> Array: ...
    def __rmod__(self, other: ArrayLike) -> Array: ...
    def __rpow__(self, other: ArrayLike) -> Array: ...
    def __rmatmul__(self, other: ArrayLike) -> Array: ...
    def __rand__(self, other: ArrayLike) -> Array: ...
    def __ror__(self, other: ArrayLike) -> Array: ...
    def __rxor__(self, other: ArrayLike) -> Array: ...
    def __rlshift__(self, other: ArrayLike) -> Array: ...
    def __rrshift__(self, other: ArrayLike) -> Array: ...
    def __rdivmod__(self, other: ArrayLike) -> tuple[Array, Array]: ...
    def all(
        self, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
    ) -> Array:
        """Whether all elements are true (not zero)."""
    def any(
        self, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
    ) -> Array:
        """Whether some element is true (not zero)."""
    def argmax(self, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
        """The index of the first maximum."""
    def argmin(self, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
        """The index of the first minimum."""
    def argpartition(self, kth: int, axis: int = -1) -> Array: ...
    def argsort(
        self,
        axis: int | None = -1,
        *,
        kind: None = None,
        order: None = None,
        stable: bool = True,
        descending: bool = False,
        dtype: DTypeLike | None = None,
    ) -> Array:
        """The indices that sort the array."""
    def astype(self, dtype: DTypeLike | None, copy: bool = False, device: Placement = None) -> Array:
        """The array with another dtype."""
    def byteswap(self) -> Array: ...
    def choose(self, choices: Array | Sequence[ArrayLike], out: None = None, mode: str = "raise") -> Array: ...
    def clip(self, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
        """The array limited to [min, max]."""
    def compress(
        self,
        condition: ArrayLike,
        axis: int | None = None,
        *,
        out: None = None,
        size: int | None = None,
        fill_value: ArrayLike = 0,
    ) -> Array: ...
    def conj(self) -> Array: ...
    def conjugate(self) -> Array: ...
    def copy(self) -> Array: ...
    def cumprod(self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """The product of the elements up to each."""
    def cumsum(self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """The sum of the elements up to each."""
    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array: ...
    def dot(
        self,
        b: ArrayLike,
        *,
        precision: Any = None,
        preferred_element_type: DTypeLike | None = None,
        out_sharding: OutSharding = None,
    ) -> Array: ...
    def flatten(self, order: str = "C", *, out_sharding: OutSharding = None) -> Array:
        """The elements in one row."""
    def item(self, *args: Any) -> Any:
        """One element as a Python number."""
    def max(
        self,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """The maximum."""
    def mean(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
    ) -> Array:
        """The mean."""
    def min(
        self,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """The minimum."""
    def nonzero(
        self, *, size: int | None = None, fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None
    ) -> tuple[Array, ...]:
        """The indices of the elements that are not zero, along each axis."""
    def partition(self, kth: int, axis: int = -1) -> Array: ...
    def prod(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        promote_integers: bool = True,
    ) -> Array:
        """The product."""
    def ptp(self, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
        """The maximum less the minimum."""
    def ravel(self, order: str = "C", *, out_sharding: OutSharding = None) -> Array:
        """The elements in one row."""
    def repeat(
        self,
        repeats: ArrayLike,
        axis: int | None = None,
        *,
        total_repeat_length: int | None = None,
        out_sharding: OutSharding = None,
    ) -> Array: ...
    def reshape(
        self, *args: Any, order: str = "C", copy: bool | None = None, out_sharding: OutSharding = None
    ) -> Array:
        """The same elements with another shape."""
    def round(self, decimals: int = 0, out: None = None) -> Array: ...
    def searchsorted(
        self, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *, method: str = "scan"
    ) -> Array: ...
    def sort(
        self,
        axis: int | None = -1,
        *,
        kind: None = None,
        order: None = None,
        stable: bool = True,
        descending: bool = False,
    ) -> Array:
        """The elements in ascending order."""
    def squeeze(self, axis: Axis = None) -> Array:
        """The array without its axes of size 1."""
    def std(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: int = 0,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
        mean: ArrayLike | None = None,
        correction: int | float | None = None,
    ) -> Array:
        """The standard deviation."""
    def sum(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        promote_integers: bool = True,
    ) -> Array:
        """The sum."""
    def swapaxes(self, axis1: int, axis2: int) -> Array: ...
    def take(
        self,
        indices: ArrayLike,
        axis: int | None = None,
        out: None = None,
        mode: str | None = None,
        unique_indices: bool = False,
        indices_are_sorted: bool = False,
        fill_value: ArrayLike | None = None,
    ) -> Array: ...
    def _host(self) -> Any: ...
    def tobytes(self, order: str = "C") -> bytes: ...
    def tolist(self) -> Any:
        """The elements as nested Python lists (a number for rank 0)."""
    def trace(
        self,
        offset: int | ArrayLike = 0,
        axis1: int = 0,
        axis2: int = 1,
        dtype: DTypeLike | None = None,
        out: None = None,
    ) -> Array:
        """The sum of a diagonal."""
    def transpose(self, *args: Any) -> Array:
        """The array with its axes in another order (reversed by default)."""
    def var(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: int = 0,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
        mean: ArrayLike | None = None,
        correction: int | float | None = None,
    ) -> Array:
        """The variance."""
    def view(self, dtype: DTypeLike | None = None, type: None = None) -> Array:
        """The same bytes as another dtype."""
