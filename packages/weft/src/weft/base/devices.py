"""The abstract class of devices, and what a group of them says: its grid, and which of them are this process's."""

from __future__ import annotations

import itertools
from typing import Any, Protocol, Sequence, runtime_checkable


@runtime_checkable
class Device(Protocol):
    """One device. `repr` and `str` are for people; devices of one backend differ in `id`."""

    id: int
    platform: str
    process_index: int
    device_kind: str

    @property
    def backend(self) -> Any:
        """The Backend that it belongs to."""


def addressable(devices: Sequence[Any]) -> tuple[Any, ...]:
    """Those of some devices of one platform that belong to this process."""
    if not devices:
        return ()
    here = devices[0].backend.capabilities.process_index(devices[0].platform)
    return tuple([d for d in devices if d.process_index == here])


def flatten_devices(devices: Any) -> tuple[list[Any], tuple[int, ...]]:
    """(devices in row-major order, shape) of an array or nested sequence of devices."""
    if hasattr(devices, "shape") and hasattr(devices, "flat"):
        return list(devices.flat), tuple(devices.shape)
    if isinstance(devices, (list, tuple)):
        if devices and isinstance(devices[0], (list, tuple)):
            parts = [flatten_devices(d) for d in devices]
            if len({shape for _, shape in parts}) != 1:
                raise ValueError(
                    "the devices of a mesh must make a full grid; the nested sequences have different lengths."
                )
            return [d for flat, _ in parts for d in flat], (len(parts), *parts[0][1])
        return list(devices), (len(devices),)
    return [devices], ()


def local_grid(devices: Sequence[Any], sizes: Sequence[int]) -> Any:
    """The part of a grid of devices that belongs to this process, as nested lists. Raises ValueError if that is no
    grid.
    """
    mine = set(addressable(devices))
    places = [place for place, d in zip(itertools.product(*map(range, sizes)), devices) if d in mine]
    if not places:
        raise ValueError("no device of this mesh belongs to this process, so it has no part of it.")
    axes = [range(min(along), max(along) + 1) for along in zip(*places)]
    by_place = dict(zip(itertools.product(*map(range, sizes)), devices))
    if len(places) != len(list(itertools.product(*axes))):
        raise ValueError(
            "the devices of this process are not a grid within the mesh, so they make no mesh. Make the mesh with"
            " weft.make_mesh, which keeps the devices of a process together."
        )

    def nested(place: tuple[int, ...]) -> Any:
        k = len(place)
        return by_place[place] if k == len(axes) else [nested((*place, i)) for i in axes[k]]

    return nested(())
