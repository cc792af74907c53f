"""Grids of devices for `weft.sharding.Mesh`."""

from __future__ import annotations

import math
from typing import Any, Sequence

from ..base.host import np, require_numpy
from ..runtime.device import devices as all_devices

__all__ = ["create_device_mesh", "create_hybrid_device_mesh"]


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
):
    """The devices in an array of a given shape, in their order.

    Args:
        mesh_shape: the shape; ints whose product is the number of devices.
        devices: the devices; by default all of the default platform.
        contiguous_submeshes, allow_split_physical_axes: must be False, since they concern the physical grid of a
            TPU.

    Returns:
        a NumPy array of devices (dtype object), of shape `mesh_shape`.

    Raises:
        ValueError: the number of devices is not the product of the shape, or an option of TPUs is set.

    Example:
        >>> import weft
        >>> from weft.experimental import mesh_utils
        >>> weft.sharding.Mesh(mesh_utils.create_device_mesh((1,), weft.devices()[:1]), ("x",)).size
        1
    """
    require_numpy("create_device_mesh")
    if contiguous_submeshes or allow_split_physical_axes:
        raise ValueError(
            "create_device_mesh: contiguous_submeshes and allow_split_physical_axes concern the grid of a TPU, of which"
            " weft knows nothing; leave them out."
        )
    found = list(all_devices() if devices is None else devices)
    if math.prod(mesh_shape) != len(found):
        raise ValueError(f"Number of devices {len(found)} must equal the product of mesh_shape {tuple(mesh_shape)}.")
    grid = np.empty(len(found), dtype=object)
    grid[:] = found
    return grid.reshape(tuple(mesh_shape))


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
):
    """An array of devices that are grouped into granules: slices, or processes with `process_is_granule`.

    Axis i of the result has the size dcn_mesh_shape[i] * mesh_shape[i].

    Args:
        mesh_shape: the shape of a granule; ints.
        dcn_mesh_shape: the shape in which granules are laid out: as many ints as in `mesh_shape`.
        devices: the devices; by default all of the default platform.
        process_is_granule: whether a granule is a process. Otherwise it is a slice of a TPU.
        should_sort_granules_by_key: whether granules are ordered by their number. Otherwise they keep the order of
            the devices.
        allow_split_physical_axes: must be False, since it concerns the physical grid of a TPU.

    Returns:
        a NumPy array of devices (dtype object).

    Raises:
        ValueError: devices have no slices, or the number of granules or of devices in one does not fit its shape.

    Example:
        >>> import weft
        >>> from weft.experimental import mesh_utils
        >>> mesh_utils.create_hybrid_device_mesh((1, 1), (1, 1), weft.devices()[:1], process_is_granule=True).shape
        (1, 1)
    """
    require_numpy("create_hybrid_device_mesh")
    found = list(all_devices() if devices is None else devices)
    attribute = "process_index" if process_is_granule else "slice_index"
    granules: dict = {}
    for d in found:
        if not hasattr(d, attribute):
            raise ValueError(f"Device {d} does not have attribute {attribute}. See `process_is_granule` option.")
        granules.setdefault(getattr(d, attribute), []).append(d)
    if math.prod(dcn_mesh_shape) != len(granules):
        raise ValueError(
            f"Number of slices/granules {len(granules)} must equal the product of dcn_mesh_shape"
            f" {tuple(dcn_mesh_shape)}."
        )
    keys = sorted(granules) if should_sort_granules_by_key else list(granules)
    grids = [
        create_device_mesh(mesh_shape, granules[k], allow_split_physical_axes=allow_split_physical_axes) for k in keys
    ]
    rank = len(mesh_shape)
    stacked = np.stack(grids).reshape((*dcn_mesh_shape, *mesh_shape))
    order = [axis for i in range(rank) for axis in (i, rank + i)]
    return stacked.transpose(order).reshape([m * n for m, n in zip(dcn_mesh_shape, mesh_shape)])


def __dir__() -> list[str]:
    return sorted(__all__)
