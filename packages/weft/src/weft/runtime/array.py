"""Arrays: the Python array class of the backends that have no array class, and the only module that installs methods
and operators on all classes of arrays.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Callable, Self

from ..base.annotations import override
from ..base import dtypes, monitoring, source_info
from ..base.array import Array as Array
from ..base.avals import ShapedArray
from ..core.shardings import placed_of, with_parts, with_placed
from ..core.trace import Tracer, add_type, array_types, get_aval
from ..base.host import as_view, from_bytes, to_numpy
from ..base.mesh import NamedSharding, P, SingleDeviceSharding
from ..base.shard import Shard
from .guards import DELETED, check_transfer, deleted

if TYPE_CHECKING:
    from ..core.types import Value
    from .partition import Where


Array.register(Tracer)

_classes: list[type[Any]] = [Tracer]
_methods: dict[str, Any] = {}


def install_methods(methods: dict[str, Any], of_tracers_alone: bool = False) -> None:
    """Puts methods and properties on tracers and, unless they are of tracers alone, on every array class there is or
    will be.
    """
    if of_tracers_alone:
        return _install(Tracer, methods)
    _methods.update(methods)
    for cls in _classes:
        _install(cls, methods)


def _install(cls: type[Any], methods: dict[str, Any]) -> None:
    keep = getattr(cls, "_weft_own", ())
    for name, method in methods.items():
        if name not in keep:
            setattr(cls, name, method)


def installed_method(name: str) -> Any:
    """The value installed under a name; None before that."""
    return _methods.get(name)


def override_methods(cls: type[Any], methods: dict[str, Any]) -> None:
    """Gives a class of arrays methods that replace those installed on all classes."""
    for name, method in methods.items():
        setattr(cls, name, method)
    cls._weft_own = (*getattr(cls, "_weft_own", ()), *methods)


def register_array_class(cls: type[Any], aval: Callable[[Any], ShapedArray] = lambda x: x.aval) -> None:
    """Makes `cls` a class of arrays. Its own attributes named in `cls._weft_own` are left as they are."""
    Array.register(cls)
    add_type(cls, aval)
    _classes.append(cls)
    array_types.add(cls)
    _install(cls, _methods)


class BufferArray:
    """An array of a backend written in Python: an aval and a handle that the backend understands.

    `backend.read(handle, nbytes)` gives the bytes (waiting if it must), `backend.release(handle)` frees them.
    """

    __slots__ = ("aval", "handle", "device_", "committed", "_cache", "gone", "__weakref__")
    _weft_own = ("aval", "_host")
    __array_priority__ = Array.__array_priority__  # NumPy's operators leave the work to ours

    def __init__(self, aval: ShapedArray, handle: Any, device: Where, committed: bool = False):
        self.aval, self.handle, self.device_, self.committed, self._cache = aval, handle, device, committed, None

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: len(self.aval.shape))
    size = property(lambda self: self.aval.size)
    weak_type = property(lambda self: self.aval.weak_type)
    nbytes = property(lambda self: self.aval.size * dtypes.itemsize(self.aval.dtype))
    device = property(lambda self: self.device_)
    sharding = property(lambda self: SingleDeviceSharding(self.device_))
    addressable_shards = global_shards = property(
        lambda self: [Shard(self.device_, self.sharding, self.aval.shape, self)]
    )
    is_fully_replicated = is_fully_addressable = _is_readable = property(lambda self: True)

    def devices(self) -> set[Any]:
        return {self.device_}

    def _live(self) -> Any:
        if self.handle is None:
            raise deleted(self)
        return self.handle

    def _host(self) -> Any:
        """The value as a host array, fetched once."""
        if self._cache is None:
            check_transfer("device_to_host", lambda: f"{self.aval.str_short(short_dtypes=False)} from {self.device_}")
            handle, nbytes = self._live(), self.nbytes
            data = monitoring.recorded(
                monitoring.TRANSFER, self.device_.backend.read, handle, nbytes, to="host", bytes=nbytes
            )
            self._cache = from_bytes(data, self.aval.shape, self.aval.dtype)
        return self._cache

    def __buffer__(self, flags: int) -> memoryview:
        """The value's bytes for memoryview and other readers of memory, from Python 3.12 on."""
        return as_view(self._host())

    def is_deleted(self) -> bool:
        return self.handle is None

    def delete(self, how: str = "") -> None:
        if self.handle is not None:
            self.gone = how or f"{DELETED} at {source_info.current(2)}"
            handle, self.handle, self._cache = self.handle, None, None
            self.device_.backend.release(handle)

    def is_ready(self) -> bool:
        return self.device_.backend.is_ready(self._live())

    def block_until_ready(self) -> Self:
        self.device_.backend.wait(self._live())
        return self

    def __del__(self) -> None:
        # it may have been stopped while it was made; the interpreter may shut down, or the backend be gone
        with suppress(Exception):
            if self.handle is not None:
                self.device_.backend.release(self.handle)


register_array_class(BufferArray)


class KeyArray:
    """An array of random keys: a dtype of keys over a raw uint32 array with one more axis."""

    __slots__ = ("aval", "raw", "consumed", "consumed_at")  # the last two: see runtime.key_reuse
    _weft_own = (
        "aval",
        "_host",
        "__repr__",
        "__str__",
        "__array__",
        "__float__",
        "__int__",
        "__bool__",
        "__index__",
        "__complex__",
        "tolist",
        "item",
        "__reduce__",
    )

    def __init__(self, aval: ShapedArray, raw: Any):
        placed = placed_of(get_aval(raw))
        if placed is None:
            aval = with_placed(aval, None)
        else:  # the axis of the words is whole
            aval = with_parts(aval, raw.aval, placed.spec.partitions[: len(aval.shape)])
        self.aval, self.raw, self.consumed_at = aval, raw, ""
        self.consumed: bool | frozenset[int] | None = False

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: len(self.aval.shape))
    size = property(lambda self: self.aval.size)
    weak_type = property(lambda self: False)
    nbytes = property(lambda self: self.raw.nbytes)
    device = property(lambda self: self.raw.device)
    is_fully_replicated = property(lambda self: self.raw.is_fully_replicated)
    is_fully_addressable = property(lambda self: self.raw.is_fully_addressable)
    _is_readable = property(lambda self: self.raw._is_readable)

    @property
    def sharding(self) -> Any:
        """The sharding of the words, without their axis."""
        found = self.raw.sharding
        return found.update(spec=P(*found.spec.partitions[: self.ndim])) if isinstance(found, NamedSharding) else found

    addressable_shards = property(lambda self: self._shards(self.raw.addressable_shards))
    global_shards = property(lambda self: self._shards(self.raw.global_shards))

    def _shards(self, raw: list[Any]) -> list[Any]:
        words, sharding = self.raw.ndim - self.ndim, self.sharding
        keys = lambda x: None if x is None else KeyArray(self.aval.update(shape=x.shape[:-words]), x)
        return [Shard(s.device, sharding, self.shape, keys(s.data)) for s in raw]

    committed = property(lambda self: self.raw.committed)

    def devices(self) -> set[Any]:
        return self.raw.devices()

    def is_deleted(self) -> bool:
        return self.raw.is_deleted()

    def delete(self) -> None:
        self.raw.delete()

    def is_ready(self) -> bool:
        return self.raw.is_ready()

    def block_until_ready(self) -> Self:
        self.raw.block_until_ready()
        return self

    def _host(self) -> Any:
        raise TypeError("a random key has no numeric value. weft.random.key_data(key) gives its words.")

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return KeyArray, (self.aval, self.raw)

    @override
    def __repr__(self) -> str:
        return f"Array({self.aval.shape}, dtype={self.aval.dtype}) overlaying:\n{self.raw}"

    __str__ = __repr__

    def __array__(self, *args: Value, **kw: Any) -> Any:
        self._host()

    def tolist(self) -> Any:
        self._host()

    item = __float__ = __int__ = __bool__ = __index__ = __complex__ = tolist


register_array_class(KeyArray)


def numpy_value(x: Value) -> Any:
    """An array as a numpy.ndarray."""
    return to_numpy(x._host())
