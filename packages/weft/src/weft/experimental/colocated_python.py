"""Python functions that run where the devices are: in programs of several hosts that one process controls. weft's
devices are of the process itself, so these functions run in it.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Sequence

from ..base.annotations import override
from ..base.errors import at_user_line
from ..base.mesh import Mesh, grid_mesh
from ..runtime.device import devices as all_devices
from ..runtime.processes import process_count, process_index

__all__ = ["colocated_cpu_devices", "colocated_python", "colocated_python_class"]


class _Beside:
    """A function or a class that is called in the process of its arguments' devices, which is this one."""

    def __init__(self, called: Callable[..., Any]):
        functools.update_wrapper(self, called, updated=())
        self._called = called

    def specialize(self, *_: Any, **types: Any) -> _Beside:
        """The same function: nothing is compiled for types."""
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if process_count() > 1:
            name = getattr(self, "__name__", "a function")
            raise RuntimeError(
                at_user_line(
                    f"colocated_python calls {name} in this process alone, and there are {process_count()}. Call the"
                    " function itself in each of them."
                )
            )
        return self._called(*args, **kwargs)

    @override
    def __repr__(self) -> str:
        return f"colocated_python({self._called!r})"


def colocated_cpu_devices(devices_or_mesh: Sequence[Any] | Mesh) -> Any:
    """The CPU devices beside other devices of this process.

    Args:
        devices_or_mesh: sequence of devices, or a `Mesh`.

    Returns:
        as many CPU devices in the same order: a list, or a mesh of the same axes; CPU devices stay as they are.

    Raises:
        ValueError: if there are fewer CPU devices.

    Example:
        >>> import weft
        >>> from weft.experimental import colocated_python
        >>> colocated_python.colocated_cpu_devices(weft.devices("cpu")) == weft.devices("cpu")
        True
    """
    mesh = devices_or_mesh if isinstance(devices_or_mesh, Mesh) else None
    given = list(devices_or_mesh.flat_devices if isinstance(devices_or_mesh, Mesh) else devices_or_mesh)
    if all([d.platform == "cpu" for d in given]):
        return devices_or_mesh
    cpus = [d for d in all_devices("cpu") if d.process_index == process_index()]
    if len(cpus) < len(given):
        raise ValueError(
            at_user_line(
                f"there are {len(cpus)} CPU devices beside {len(given)} devices; set jax_num_cpu_devices to"
                f" {len(given)} before the first array is made."
            )
        )
    found = cpus[: len(given)]
    return found if mesh is None else grid_mesh(found, mesh.axis_sizes, mesh.axis_names, mesh.axis_types)


def colocated_python(fun: Callable[..., Any]) -> _Beside:
    """A function that runs beside the devices of its arguments, in this process.

    Args:
        fun: function of arrays and anything else.

    Returns:
        function like fun, with a method `specialize`, which returns it.

    Raises:
        RuntimeError: when it is called, if there are several processes.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental.colocated_python import colocated_python
        >>> int(colocated_python(jnp.sum)(jnp.arange(3)))
        3
    """
    return _Beside(fun)


def colocated_python_class(cls: type) -> _Beside:
    """A class whose instances live beside devices, in this process.

    Args:
        cls: class.

    Returns:
        function that makes an instance.

    Raises:
        RuntimeError: when it is called, if there are several processes.

    Example:
        >>> from weft.experimental.colocated_python import colocated_python_class
        >>> colocated_python_class(dict)(step=1)["step"]
        1
    """
    return _Beside(cls)
