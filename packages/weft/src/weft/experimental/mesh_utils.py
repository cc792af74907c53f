"""Grids of devices for `weft.sharding.Mesh`."""
from __future__ import annotations

import math
from typing import Any, Sequence

from ..host import np, require_numpy
from ..runtime.device import devices as all_devices


def create_device_mesh(mesh_shape: Sequence[int], devices: Sequence[Any] | None = None, *, contiguous_submeshes: bool = False,
                       allow_split_physical_axes: bool = False):
    """The devices as a NumPy array of a shape, in their order, which is how XLA lays out CPUs and GPUs.

    Raises: ValueError if there are not as many devices as the shape has entries, or for options that concern a TPU's own grid.

    Example:
        >>> import weft
        >>> from weft.experimental import mesh_utils
        >>> weft.sharding.Mesh(mesh_utils.create_device_mesh((1,), weft.devices()[:1]), ("x",)).size
        1
    """
    require_numpy("create_device_mesh")
    if contiguous_submeshes or allow_split_physical_axes:
        raise ValueError("create_device_mesh: contiguous_submeshes and allow_split_physical_axes concern the grid of a TPU, of which weft knows nothing; "
                         "leave them out.")
    found = list(all_devices() if devices is None else devices)
    if math.prod(mesh_shape) != len(found):
        raise ValueError(f"Number of devices {len(found)} must equal the product of mesh_shape {tuple(mesh_shape)}.")
    grid = np.empty(len(found), dtype=object)
    grid[:] = found
    return grid.reshape(tuple(mesh_shape))
