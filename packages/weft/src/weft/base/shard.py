"""The part of an array that is on one device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from .annotations import override

if TYPE_CHECKING:
    from .array import Array
    from .devices import Device
    from .mesh import Sharding


class Shard:
    """The part of an array that one device holds.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> jnp.arange(3).addressable_shards[0].index
        (slice(None, None, None),)
    """

    __slots__ = ("device", "_sharding", "_global_shape", "data", "index", "replica_id")
    data: Any  # an array, or None if only the sharding is known

    def __init__(self, device: Device, sharding: Sharding, global_shape: Sequence[int], data: Array | Any = None):
        self.device, self._sharding, self._global_shape, self.data = device, sharding, tuple(global_shape), data
        indices = sharding.devices_indices_map(self._global_shape)
        self.index = indices[device]
        same = [d for d, index in indices.items() if index == self.index]
        self.replica_id = same.index(device)

    @override
    def __repr__(self):
        return f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, data={self.data})"
