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
    """The devices as a NumPy array of a shape, in their order, which is how XLA lays out CPUs and GPUs.

    Raises:
        ValueError: if there are not as many devices as the shape has entries, or for options that concern a TPU's own
            grid.

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
    """A grid of granules (slices, or with `process_is_granule` processes) of shape `dcn_mesh_shape`, each a grid of
    devices of shape `mesh_shape`.

    Axis i of the result has the size dcn_mesh_shape[i] * mesh_shape[i].

    Raises:
        ValueError: if devices know nothing of slices, or there are not as many granules as that shape has entries.

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
