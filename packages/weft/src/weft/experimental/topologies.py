"""Descriptions of devices to compile for: those that are there."""

from __future__ import annotations

from typing import Any, Sequence

from ..base.errors import at_user_line
from ..runtime.device import devices as all_devices
from ..base.mesh import Mesh
from .mesh_utils import create_device_mesh

__all__ = ["TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]


class TopologyDescription:
    """A list of devices."""

    def __init__(self, devices: list):
        self.devices = devices


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """The devices of a platform.

    Args:
        platform: its name; str. If it is left out, the default platform is meant.

    Returns:
        a `TopologyDescription`, whose `devices` are a list.

    Raises:
        RuntimeError: no platform of this name is available.

    Example:
        >>> from weft.experimental import topologies
        >>> len(topologies.get_attached_topology("cpu").devices) > 0
        True
    """
    return TopologyDescription(list(all_devices() if platform is None else all_devices(platform)))


def get_topology_desc(topology_name: str = "", platform: str | None = None, **kwargs) -> TopologyDescription:
    """Always raises: no backend of weft compiles for devices that are not there.

    Args:
        topology_name: the name of an arrangement of devices; str.
        platform: the name of a platform; str.
        **kwargs: options of the platform.

    Returns:
        never.

    Raises:
        NotImplementedError: always, as in JAX on CPUs.
    """
    raise NotImplementedError(
        at_user_line(
            f"get_topology_desc: topology {topology_name!r} is not implemented for {platform or 'cpu'}, where programs"
            " are compiled for the devices that are there. Use get_attached_topology."
        )
    )


def make_mesh(
    topo: TopologyDescription, mesh_shape: Sequence[int], axis_names: tuple, *, contiguous_submeshes: bool = False
) -> Any:
    """A mesh over the devices of a topology.

    Args:
        topo: the topology, as `get_attached_topology` returns it.
        mesh_shape: the shape of the mesh; ints whose product is the number of devices.
        axis_names: a name for each axis; a tuple of str.
        contiguous_submeshes: must be False, since it concerns the physical grid of a TPU.

    Returns:
        a `weft.sharding.Mesh`.

    Raises:
        ValueError: the number of devices is not the product of the shape, or the option of TPUs is set.

    Example:
        >>> from weft.experimental import topologies
        >>> device = topologies.get_attached_topology("cpu").devices[:1]
        >>> topologies.make_mesh(topologies.TopologyDescription(device), (1,), ("x",)).size
        1
    """
    return Mesh(create_device_mesh(mesh_shape, topo.devices, contiguous_submeshes=contiguous_submeshes), axis_names)


def __dir__() -> list[str]:
    return sorted(__all__)
