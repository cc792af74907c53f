"""The methods that only jaxlib's C++ `ArrayImpl` needs to be an Array of weft; `weft.runtime.array` installs the
others.
"""

from __future__ import annotations

from operator import attrgetter

import numpy as np
import jaxlib._jax as _jax
from jaxlib import xla_client as xc
from weft.base import dtypes, source_info
from weft.base.layout import Format
from weft.base.avals import ShapedArray
from weft.runtime.array import register_array_class
from weft.runtime.guards import DELETED, deleted

from . import cluster, compat
from . import sharding as placing

ArrayImpl = xc.ArrayImpl
_SINGLE = xc.SingleDeviceSharding
_free, _wait = ArrayImpl.delete, ArrayImpl.block_until_ready
OWN = (
    "shape",
    "dtype",
    "ndim",
    "size",
    "weak_type",
    "nbytes",
    "itemsize",
    "device",
    "devices",
    "sharding",
    "format",
    "committed",
    "_host",
    "_live",
    "addressable_shards",
    "global_shards",
    "is_fully_addressable",
    "is_fully_replicated",
    "_is_readable",
    "block_until_ready",
    "is_ready",
    "is_deleted",
    "delete",
    "__array__",
    "__dlpack__",
    "__dlpack_device__",
    "aval",
)


def _host(self) -> np.ndarray:
    """The value as a read-only NumPy array; on the CPU it shares the array's memory, elsewhere it is fetched once."""
    if self.is_deleted():
        raise deleted(self)
    value = self._npy_value
    if value is None:
        single = type(self._sharding) is _SINGLE
        try:
            if single:
                try:
                    return np.asarray(memoryview(self))  # it refers to this array, which must not keep it
                except BufferError:  # on another device than the CPU, or of a dtype that Python's buffers do not have
                    pass
            value = compat.to_numpy(self) if single else placing.assemble(self)
        except _jax.JaxRuntimeError as e:
            raise cluster.explained(e) from None
        value.flags.writeable = False
        self._npy_value = value
    return value


def _delete(self) -> None:
    """Frees the array's memory at once."""
    if not self.is_deleted():
        self.gone = f"{DELETED} at {source_info.current(2)}"
        _free(self)


def _block_until_ready(self):
    """Waits until the array has been computed; the array."""
    if self.is_deleted():
        raise deleted(self)
    try:
        return _wait(self)
    except _jax.JaxRuntimeError as e:
        raise cluster.explained(e) from None


def _array(self, dtype=None, copy=None):
    value = self._host()
    if dtype is not None and dtype != value.dtype:
        return value.astype(dtype)
    return value.copy() if copy else value


def _device(self):
    """The device of an array, or its sharding if it is on several devices."""
    made = self._sharding
    return made._device if type(made) is _SINGLE else placing.from_xla(made)


def _devices(self) -> set:
    made = self._sharding
    return {made._device} if type(made) is _SINGLE else placing.from_xla(made).device_set


def _dlpack(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    here = self.__dlpack_device__()
    if dl_device is not None and tuple(dl_device) != here:
        raise BufferError(
            f"this array lives on DLPack device {here}; copy it with weft.device_put before exporting it to"
            f" {dl_device}."
        )
    return compat.to_dlpack(self.clone() if not copy else _copied(self), stream)


def _copied(array):
    return xc.batched_copy_array_to_devices_with_sharding(
        [array], [xc.DeviceList((array.device,))], [array.sharding], [xc.ArrayCopySemantics.ALWAYS_COPY]
    )[0]


def _shards(self) -> list:
    if self.is_deleted():
        raise deleted(self)
    return placing.shards(self)


def _global_shards(self) -> list:
    if self.is_deleted():
        raise deleted(self)
    return placing.global_shards(self)


_DLPACK_DEVICES = {"cpu": 1, "gpu": 2, "cuda": 2, "rocm": 10}


def _dlpack_device(self) -> tuple[int, int]:
    if type(self._sharding) is not _SINGLE:
        raise BufferError(
            f"an array on {len(self.devices())} devices can't be exported through DLPack; export its addressable_shards"
            " one by one."
        )
    platform = self.device.platform
    if platform not in _DLPACK_DEVICES:
        raise BufferError(f"arrays of platform {platform!r} can't be exported through DLPack; use numpy.asarray(x).")
    return _DLPACK_DEVICES[platform], self.device.local_hardware_id or 0


def install() -> None:
    """Makes ArrayImpl a class of weft's arrays."""
    cls = ArrayImpl
    cls._weft_own = OWN
    cls.shape, cls.dtype = property(attrgetter("aval.shape")), property(attrgetter("aval.dtype"))
    cls.weak_type = property(attrgetter("aval.weak_type"))
    cls.ndim = property(lambda self: len(self.aval.shape))
    cls.size = property(attrgetter("aval.size"))
    cls.itemsize = property(lambda self: dtypes.itemsize(self.aval.dtype))
    cls.nbytes = property(lambda self: self.aval.size * dtypes.itemsize(self.aval.dtype))
    cls.sharding = property(lambda self: placing.from_xla(self._sharding))
    cls.format = property(lambda self: Format(placing.layout_of(self), self.sharding))
    cls.committed = property(attrgetter("_committed"))
    cls.device, cls.devices = property(_device), _devices
    cls.addressable_shards, cls.global_shards = property(_shards), property(_global_shards)
    cls.is_fully_addressable = property(
        lambda self: type(self._sharding) is _SINGLE or placing.from_xla(self._sharding).is_fully_addressable
    )
    cls._is_readable = property(lambda self: type(self._sharding) is _SINGLE or placing.readable(self))
    cls.is_fully_replicated = property(
        lambda self: type(self._sharding) is _SINGLE or placing.from_xla(self._sharding).is_fully_replicated
    )
    cls._host, cls.__array__, cls.delete, cls.block_until_ready = _host, _array, _delete, _block_until_ready
    cls.__dlpack__, cls.__dlpack_device__ = _dlpack, _dlpack_device
    cls.copy_to_host_async = lambda self: self._copy_single_device_array_to_host_async()
    cls.__array_priority__ = 100
    register_array_class(cls, _aval)


def _aval(array) -> ShapedArray:
    return array.aval
