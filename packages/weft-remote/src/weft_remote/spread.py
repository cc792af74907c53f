"""Arrays over several devices of a host: one array for each device, which the host knows, and the sharding, which only
the client knows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from weft.base import dtypes
from weft.base.annotations import override
from weft.base.avals import ShapedArray, shaped
from weft.base.errors import BackendError
from weft.base.host import adopted, from_flat, joined, part
from weft.base.mesh import AbstractMesh, Mesh, NamedSharding, P, Sharding, axes_of, type_of_sharding
from weft.base.shard import Shard
from weft.core.shardings import with_placed
from weft.core.trace import get_aval
from weft.primitives.dynamic_slice import dynamic_slice_p
from weft.primitives.linear import copy_p
from weft.runtime.array import BufferArray, register_array_class
from weft.runtime.dispatch import executable_for, single_equation
from weft.runtime.partition import Partition

from .errors import ProtocolError

Index = tuple[slice, ...]


class Devices(Protocol):
    """What arrays over several devices need of their backend."""

    def put(self, value: Any, aval: ShapedArray, where: Any, committed: bool) -> BufferArray:
        """A host array on a device."""

    def copied(self, x: BufferArray, device: Any, committed: bool) -> BufferArray:
        """An array on another device of its session."""


class Parts(NamedTuple):
    """The handle of an array over several devices: its part on each."""

    arrays: Sequence[BufferArray]


class SpreadArray(BufferArray):
    """An array over several devices of a host."""

    __slots__ = ()
    _weft_own = ("aval", "_host")
    _cache: Any
    device_: Any  # the sharding

    def __init__(self, aval: ShapedArray, sharding: Sharding, parts: Sequence[BufferArray]):
        typed = with_placed(aval, type_of_sharding(sharding, len(aval.shape)))
        super().__init__(typed, Parts(parts), sharding, True)

    sharding = property(lambda self: self.device_)
    addressable_shards = global_shards = property(
        lambda self: [
            Shard(d, self.device_, self.aval.shape, x) for d, x in zip(self.device_._devices(), self._live().arrays)
        ]
    )
    is_fully_replicated = property(lambda self: self.device_.is_fully_replicated)

    @override
    def devices(self) -> set[Any]:
        return set(self.device_._devices())

    @override
    def _host(self) -> Any:
        """The whole value; copies of a part are read once, and all parts together."""
        if self._cache is None:
            arrays = self._live().arrays
            parts = {_key(i): (i, x) for i, x in zip(indices(self.device_, self.aval), arrays)}
            self.device_.backend.capabilities.prefetch(*[x for _, x in parts.values()])
            found = [(index, x._host()) for index, x in parts.values()]
            self._cache = joined(found, self.aval.shape, self.aval.dtype)
        return self._cache

    @override
    def __del__(self) -> None:
        """Its parts free themselves; somebody may hold them."""


register_array_class(SpreadArray)


def indices(sharding: Sharding, aval: ShapedArray) -> list[Index]:
    """The slices of an array that each device holds."""
    return list(sharding.devices_indices_map(aval.shape).values())


def _key(index: Index) -> tuple[tuple[Any, Any], ...]:
    return tuple([(s.start, s.stop) for s in index])


def part_type(aval: ShapedArray, sharding: Sharding) -> ShapedArray:
    return shaped(sharding.shard_shape(aval.shape), aval.dtype, aval.weak_type)


# making and moving them -----------------------------------------------------------------------------------------------


def put(backend: Devices, value: Any, aval: ShapedArray, sharding: Sharding) -> SpreadArray:
    """A host array over the devices of a sharding; each part crosses the line once."""
    made: dict[Any, BufferArray] = {}  # by the part and the host's session
    parts, whole = [], adopted(value)
    for device, index in zip(sharding._devices(), indices(sharding, aval)):
        key = _key(index), device.session
        if key in made:
            parts.append(backend.copied(made[key], device, True))
            continue
        made[key] = backend.put(part(whole, index), part_type(aval, sharding), device, True)
        parts.append(made[key])
    return SpreadArray(aval, sharding, parts)


def moved(backend: Devices, x: BufferArray, aval: ShapedArray, where: Any, committed: bool) -> BufferArray:
    """An array of a host on another device of it, or as a sharding says."""
    if isinstance(x, SpreadArray):
        if isinstance(where, Sharding):
            if where.is_equivalent_to(x.sharding, len(aval.shape)):
                return SpreadArray(aval, where, x._live().arrays)
            if where._devices() == x.sharding._devices():
                return exchanged(x, where)
        x = _on_one(x, where)
    if isinstance(where, Sharding):
        parts = [
            backend.copied(_slice(x, index, part_type(aval, where)), device, True)
            for device, index in zip(where._devices(), indices(where, aval))
        ]
        return SpreadArray(aval, where, parts)
    return backend.copied(x, where, committed)


def _on_one(x: SpreadArray, where: Any) -> BufferArray:
    """The whole array on one of its devices, if possible that where it is wanted."""
    if not x.is_fully_replicated:
        x = exchanged(x, NamedSharding(_mesh_of(x.sharding), P()))
    wanted = where._devices()[0] if isinstance(where, Sharding) else where
    arrays: Sequence[BufferArray] = x._live().arrays
    return next((part for part in arrays if part.device is wanted), arrays[0])


def _slice(x: BufferArray, index: Index, part: ShapedArray) -> BufferArray:
    if part.shape == x.shape:
        return x
    starts = [from_flat((s.start or 0,), (), dtypes.int32) for s in index]
    found: BufferArray = dynamic_slice_p.bind(x, *starts, slice_sizes=part.shape)
    return found


def exchanged(x: SpreadArray, sharding: Sharding) -> SpreadArray:
    """The array with another sharding over the same devices, by a program."""
    closed = single_equation(copy_p, (get_aval(x),), {})
    place = Partition(sharding._devices(), (x.sharding,), (sharding,), _mesh_of(sharding))
    executable, _ = executable_for(closed, place, "reshard")
    (made,) = executable.execute([x])
    assert isinstance(made, SpreadArray)
    return made


def _mesh_of(sharding: Sharding) -> Mesh:
    mesh = getattr(sharding, "mesh", None)
    return mesh if isinstance(mesh, Mesh) else Mesh(list(sharding._devices()), ("d",))


# programs over several devices ----------------------------------------------------------------------------------------


class Layout(NamedTuple):
    """How a program is spread over devices, as the message `CompileSpread` says it."""

    devices: tuple[int, ...]
    grids: tuple[int, ...]
    specs: tuple[int, ...]


def layout(place: Partition, arguments: Sequence[ShapedArray], results: Sequence[ShapedArray]) -> Layout:
    """The placement of a program's arguments and results. Raises ValueError for one that does not divide them
    evenly.
    """
    meshes: dict[Mesh | AbstractMesh, int] = {place.mesh: 0}
    specs: list[int] = []
    outs = place.outs if place.outs is not None else (None,) * len(results)
    for sharding, aval in zip((*place.ins, *outs), (*arguments, *results), strict=True):
        if sharding is None or isinstance(sharding, NamedSharding) and P.UNCONSTRAINED in sharding.spec.partitions:
            specs.append(0)  # the compiler chooses
        elif isinstance(sharding, NamedSharding):
            sharding.shard_shape(aval.shape)
            names = sharding.mesh.axis_names
            specs += [1 + meshes.setdefault(sharding.mesh, len(meshes)), len(sharding.spec)]
            for entry in sharding.spec:
                axes = axes_of(entry)
                specs += [len(axes), *[names.index(a) for a in axes]]
        else:
            raise BackendError(
                f"a host has no arrays on a {type(sharding).__name__}; use a NamedSharding or one device."
            )
    grids = [n for mesh in meshes for n in (len(mesh.axis_sizes), *mesh.axis_sizes)]
    return Layout(tuple([d.index for d in place.devices]), tuple(grids), tuple(specs))


def chosen(place: Partition, avals: Sequence[ShapedArray], ask: Callable[[], str]) -> list[Sharding]:
    """The sharding of each result. `ask` gives those that the compiler has chosen, as JSON."""
    outs = list(place.outs if place.outs is not None else (None,) * len(avals))
    if not any(s is None or P.UNCONSTRAINED in s.spec.partitions for s in outs):
        return outs
    names, found = place.mesh.axis_names, json.loads(ask())
    try:
        entries = [[tuple([names[a] for a in axes]) for axes in entry] for entry in found]
        made: list[Sharding] = [
            NamedSharding(place.mesh, P(*[e[0] if len(e) == 1 else e or None for e in entry])) for entry in entries
        ]
        for sharding, aval in zip(made, avals, strict=True):
            sharding.shard_shape(aval.shape)
    except (IndexError, TypeError, ValueError) as e:
        raise ProtocolError(f"the host names no shardings of results: {e}") from None
    return made
