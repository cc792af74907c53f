"""Shardings as jaxlib's C++ knows them, and arrays over several devices: made, moved, read."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np
from jaxlib import xla_client as xc
from weft.base.annotations import override
from weft.core.trace import is_array
from weft.base.devices import addressable
from weft.base.errors import BackendError, at_user_line
from weft.base.layout import Layout
from weft.base.memory import DEVICE
from weft.primitives.shape import slice_p
from weft.runtime.guards import deleted
from weft.runtime.partition import off_mesh
from weft.base.mesh import (
    AbstractMesh,
    Mesh,
    NamedSharding,
    P,
    Sharding,
    SingleDeviceSharding,
    type_of_sharding,
)
from weft.base.shard import Shard
from weft.core.shardings import with_placed

from . import cluster, compat

ArrayImpl = xc.ArrayImpl
_REPLICATED = xc.HloSharding.replicate()


class _Grid:
    """A mesh in the form that C++ needs. Each mesh has exactly one, so that equal shardings are found by identity."""

    __slots__ = ("axis_names", "devices", "size", "_internal_device_list", "mesh")

    def __init__(self, mesh: Mesh | AbstractMesh):
        self.mesh, self.axis_names, self.devices, self.size = mesh, mesh.axis_names, mesh.devices, mesh.size
        self._internal_device_list = xc.DeviceList(mesh.flat_devices)

    @override
    def __eq__(self, other: object) -> bool:
        return type(other) is _Grid and self.mesh == other.mesh

    @override
    def __hash__(self) -> int:
        return hash(self.mesh)


# Whether there may be arrays in another memory than their devices' own, or in another layout: not empty then.
unusual: list = []
_grids: dict = {}
_to_xla: dict = {}  # our shardings -> C++ objects
_from_xla: dict = {}  # and back


def to_xla(sharding: Sharding):
    """The C++ object for one of our shardings."""
    try:
        return _to_xla[sharding]
    except KeyError:
        pass
    if isinstance(sharding, SingleDeviceSharding):
        made = xc.SingleDeviceSharding(sharding._device, memory_kind=sharding._memory_kind)
    elif isinstance(sharding, NamedSharding):
        grid = _grids.get(sharding.mesh)
        if grid is None:
            grid = _grids[sharding.mesh] = _Grid(sharding.mesh)
        made = xc.NamedSharding(grid, sharding.spec, memory_kind=sharding._memory_kind)
    else:
        raise BackendError(
            f"XLA has no arrays on a {type(sharding).__name__}; use a NamedSharding or a SingleDeviceSharding."
        )
    if sharding.memory_kind != DEVICE:
        unusual.append(True)
    _to_xla[sharding], _from_xla[made] = made, sharding
    return made


def from_xla(made) -> Sharding:
    """Our sharding for a C++ object."""
    try:
        return _from_xla[made]
    except KeyError:
        sharding = SingleDeviceSharding(made._device, memory_kind=made._memory_kind)
        _to_xla.setdefault(sharding, made)
        return _from_xla.setdefault(made, sharding)


def hlo_sharding(sharding: NamedSharding, ndim: int):
    """How XLA writes a sharding: tiles over the devices in order, with copies along a last dimension."""
    mesh, parts = sharding.mesh, [sharding.spec[i] if i < len(sharding.spec) else None for i in range(ndim)]
    names = [
        ((p,) if not isinstance(p, tuple) else p) if p is not None and p is not P.UNCONSTRAINED else () for p in parts
    ]
    used = [a for group in names for a in group]
    if not used:
        return _REPLICATED
    sizes, rest = mesh.shape, [a for a in mesh.axis_names if a not in used]
    dims = [int(np.prod([sizes[a] for a in group], dtype=int)) for group in names]
    copies = int(np.prod([sizes[a] for a in rest], dtype=int))
    order = [mesh.axis_names.index(a) for a in used + rest]
    return xc.HloSharding.iota_tile(
        dims=dims + ([copies] if copies > 1 else []),
        reshape_dims=list(mesh.axis_sizes),
        transpose_perm=order,
        subgroup_types=[xc.OpSharding.Type.REPLICATED] if copies > 1 else [],
    )


def from_hlo(found, mesh: Mesh, ndim: int) -> NamedSharding | None:
    """The sharding on a mesh that XLA has chosen; None if the mesh's axes can't express it."""
    if found.is_replicated():
        return NamedSharding(mesh, P())
    tiles = list(found.tile_assignment_dimensions())
    place = np.empty((mesh.size, ndim), int)  # of each partition, the position of its tile
    for position, device in zip(np.ndindex(*tiles), found.tile_assignment_devices()):
        place[device] = position[:ndim]
    grid = place.reshape(*mesh.axis_sizes, ndim)
    moved: list = [[] for _ in range(ndim)]  # for each array axis (the stride of one step, the mesh axis)
    for k, name in enumerate(mesh.axis_names):
        if mesh.axis_sizes[k] > 1:
            step = np.take(grid, 1, k).reshape(-1, ndim)[0] - np.take(grid, 0, k).reshape(-1, ndim)[0]
            for d in np.flatnonzero(step):
                moved[d].append((int(step[d]), name))
    spec = [tuple(name for _, name in sorted(axes, reverse=True)) for axes in moved]
    try:
        made = NamedSharding(mesh, P(*[None if not s else s[0] if len(s) == 1 else s for s in _trimmed(spec)]))
    except ValueError:  # one mesh axis cuts two array axes
        return None
    parts, places = made._tiles(ndim)
    return made if parts == tuple(tiles[:ndim]) and places == [tuple(p) for p in place.tolist()] else None


def _trimmed(spec: list) -> list:
    while spec and not spec[-1]:
        spec.pop()
    return spec


# arrays --------------------------------------------------------------------------------------------------------------


def put(value: Any, aval, sharding: Sharding, committed: bool = True):
    """A host array, or an array on one device or several, as an array on the devices of a sharding. Of devices in other
    processes, those processes fill theirs.
    """
    made, places = to_xla(sharding), sharding.addressable_devices_indices_map(aval.shape)
    aval = typed(aval, sharding)
    devices, indices = list(places), list(places.values())
    if not devices:
        raise BackendError(
            at_user_line(
                f"no device of {sharding} belongs to this process ({cluster.me()}), so it can't put a value there."
                " Let the processes do it that have the devices."
            )
        )
    if (
        type(value) is ArrayImpl
        and type(value._sharding) is xc.SingleDeviceSharding
        and value._sharding._device.client is devices[0].client
    ):
        shards = [_part(value, index) for index in indices]
        return xc.batched_device_put(aval, made, shards, devices, committed, enable_x64=True)
    host = value._host() if is_array(value) else np.asarray(value, dtype=aval.dtype)
    copies: dict = {}  # private copies: devices may use the memory itself from now on
    for index in indices:
        key = tuple((s.start, s.stop) for s in index)
        if key not in copies:
            copies[key] = np.array(host[index], order="C")
    parts = [copies[tuple((s.start, s.stop) for s in index)] for index in indices]
    return xc.batched_device_put(aval, made, parts, devices, committed, enable_x64=True)


def _part(array, index: tuple):
    """A slice of an array on one device, computed there."""
    if all(s == slice(None) for s in index):
        return array
    starts = tuple(s.start or 0 for s in index)
    limits = tuple(n if s.stop is None else s.stop for s, n in zip(index, array.shape))
    with off_mesh():  # of which this is one device
        return slice_p.bind(array, start_indices=starts, limit_indices=limits, strides=None)


def assemble(array) -> np.ndarray:
    """The whole value of an array over several devices, on the host."""
    sharding = from_xla(array._sharding)
    if not readable(array):
        raise RuntimeError(
            at_user_line(
                f"an array of type {array.aval.str_short(short_dtypes=False)} can't be read here: parts of it are on"
                f" devices of other processes than this one ({cluster.me()}). Gather it first, in all processes:"
                " weft.experimental.multihost_utils.process_allgather(x, tiled=True); or read the parts that are here:"
                " x.addressable_shards."
            )
        )
    if sharding.is_fully_replicated:
        return compat.to_numpy(array._fully_replicated_shard())
    out = np.empty(array.aval.shape, array.aval.dtype)
    done = set()
    for part, index in zip(array._arrays, sharding.addressable_devices_indices_map(array.aval.shape).values()):
        key = tuple((s.start, s.stop) for s in index)
        if key not in done:  # copies are read once
            done.add(key)
            out[index] = compat.to_numpy(part)
    return out


def readable(array) -> bool:
    """Whether this process has all parts of an array, or a copy of each."""
    sharding = from_xla(array._sharding)
    if sharding.is_fully_addressable:
        return True
    everywhere, here = (
        {tuple((s.start, s.stop) for s in index) for index in places.values()}
        for places in (
            sharding.devices_indices_map(array.aval.shape),
            sharding.addressable_devices_indices_map(array.aval.shape),
        )
    )
    return everywhere == here


def shards(array) -> list:
    """The parts of an array that this process has, in the order of its devices."""
    sharding = from_xla(array._sharding)
    if isinstance(sharding, SingleDeviceSharding):
        return [Shard(sharding._device, sharding, array.aval.shape, array)]
    devices = addressable(sharding._devices())
    return [Shard(d, sharding, array.aval.shape, part) for d, part in zip(devices, array._arrays)]


def global_shards(array) -> list:
    """All parts of an array; those of other processes have no data."""
    mine = shards(array)
    if len(mine) == array.sharding.num_devices:
        return mine
    here = {shard.device: shard for shard in mine}
    sharding = from_xla(array._sharding)
    return [here[d] if d in here else Shard(d, sharding, array.aval.shape) for d in sharding._devices()]


def differ_in_memory(one, other) -> bool:
    """Whether two C++ shardings are the same but for the kind of memory."""
    kinds = [s._memory_kind or DEVICE for s in (one, other)]
    return kinds[0] != kinds[1] and from_xla(one).with_memory_kind(kinds[1]) == from_xla(other)


def is_whole_at(array, sharding) -> bool:
    """Whether an array on one device is there already as a sharding over a mesh of this device says."""
    made = array._sharding
    return (
        isinstance(sharding, NamedSharding)
        and type(made) is xc.SingleDeviceSharding
        and sharding._devices() == (made._device,)
        and (made._memory_kind or DEVICE) == sharding.memory_kind
    )


def to_memory(array, sharding: Sharding):
    """An array in another memory of its devices."""
    devices = xc.DeviceList(addressable(sharding._devices()))
    made = to_xla(sharding)
    return xc.batched_copy_array_to_devices_with_sharding(
        [array], [devices], [made], [xc.ArrayCopySemantics.ALWAYS_COPY]
    )[0]


def layout_of(array) -> Layout:
    """The order of an array's axes in memory."""
    if array.is_deleted():  # C++ would crash
        raise deleted(array)
    return from_xla_layout(array._pjrt_layout)


def from_xla_layout(found) -> Layout:
    """Our layout for that of PJRT."""
    made = found._xla_layout()
    bits = getattr(made, "element_size_in_bits", 0)
    return Layout(
        tuple(made.minor_to_major()[::-1]), tuple(map(tuple, made.tiling())), bits() if callable(bits) else bits
    )


def all_usual(values: Sequence) -> bool:
    """Whether arrays are as programs take them unless they say otherwise: in their devices' own memory, row by row. Ask
    before a program has taken them: C++ knows no layout of an array that is deleted.
    """
    return not unusual or all(
        [
            type(x) is not ArrayImpl
            or x.is_deleted()
            or x._sharding._memory_kind in (None, DEVICE)
            and layout_of(x).is_row_major
            for x in values
        ]
    )


def join(aval, sharding: Sharding, parts: Sequence):
    """Arrays, one on each device, as the parts of one array."""
    return ArrayImpl(typed(aval, sharding), to_xla(sharding), list(parts), True, _skip_checks=True)


def typed(aval, sharding: Sharding):
    """The type of an array that lies as a sharding says."""
    return with_placed(aval, type_of_sharding(sharding, len(aval.shape)))


def _hlo_sharding(made: xc.NamedSharding, ndim: int) -> xc.HloSharding:
    found = from_xla(made)
    if not isinstance(found, NamedSharding):
        raise TypeError(f"{made} was not made from a NamedSharding.")
    return hlo_sharding(found, ndim)


xc.NamedSharding._to_xla_hlo_sharding = _hlo_sharding
xc.NamedSharding.memory_kind = property(lambda made: made._memory_kind)
