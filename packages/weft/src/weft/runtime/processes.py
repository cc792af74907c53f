"""The processes of a computation, and their devices. There is one process unless it has joined others
(`weft.distributed.initialize`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.errors import warn
from .device import devices, get_backend

if TYPE_CHECKING:
    from .backend import Device


def process_index(backend: str | None = None) -> int:
    """The number of this process among the processes of the computation.

    Args:
        backend: name of a platform, such as 'cpu'; None for the default one.

    Returns:
        int.

    Example:
        >>> import weft
        >>> weft.process_index()
        0
    """
    found, platform = get_backend(backend)
    return found.capabilities.process_index(platform)


def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of all processes that have devices.

    Args:
        backend: name of a platform, such as 'cpu'; None for the default one.

    Returns:
        list of ints.

    Example:
        >>> import weft
        >>> weft.process_indices()
        [0]
    """
    return sorted({d.process_index for d in devices(backend)})


def process_count(backend: str | None = None) -> int:
    """How many processes there are.

    Args:
        backend: name of a platform, such as 'cpu'; None for the default one.

    Returns:
        int.

    Example:
        >>> import weft
        >>> weft.process_count()
        1
    """
    return max(process_indices(backend)) + 1


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """The devices of one process, this one by default.

    Args:
        process_index: int; None for this process.
        backend: name of a platform, such as 'cpu'; None for the default one.
        host_id: an old name of `process_index`.

    Returns:
        list of devices.

    Raises:
        ValueError: if there is no such process.

    Example:
        >>> import weft
        >>> weft.local_devices() == weft.devices()
        True
    """
    if host_id is not None:
        process_index = host_id
    mine = process_index_of(backend) if process_index is None else process_index
    if mine not in process_indices(backend):
        raise ValueError(f"there is no process {mine}; there are {process_indices(backend)}.")
    return [d for d in devices(backend) if d.process_index == mine]


process_index_of = process_index  # `local_devices` has a parameter of that name


def device_count(backend: str | None = None) -> int:
    """How many devices there are, in all processes.

    Args:
        backend: name of a platform, such as 'cpu'; None for the default one.

    Returns:
        int.

    Raises:
        BackendError: if the platform is not available.

    Example:
        >>> import weft
        >>> weft.device_count() == len(weft.devices())
        True
    """
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """How many devices this process has.

    Args:
        backend: name of a platform, such as 'cpu'; None for the default one.

    Returns:
        int.

    Raises:
        BackendError: if the platform is not available.

    Example:
        >>> import weft
        >>> weft.local_device_count() == len(weft.local_devices())
        True
    """
    return len(local_devices(backend=backend))


def _renamed(old: str, new: str) -> None:
    warn(f"weft.{old} is called weft.{new} now; the old name will go.")


def host_id(backend: str | None = None) -> int:
    """The old name of `process_index`; it warns.

    Args:
        backend: name of a platform, such as 'cpu'; None for the default one.

    Returns:
        int.

    Example:
        >>> import weft, warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     weft.host_id()
        0
    """
    _renamed("host_id", "process_index")
    return process_index(backend)


def host_ids(backend: str | None = None) -> list[int]:
    """The old name of `process_indices`; it warns.

    Args:
        backend: name of a platform, such as 'cpu'; None for the default one.

    Returns:
        list of ints.

    Example:
        >>> import weft, warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     weft.host_ids()
        [0]
    """
    _renamed("host_ids", "process_indices")
    return process_indices(backend)


def host_count(backend: str | None = None) -> int:
    """The old name of `process_count`; it warns.

    Args:
        backend: name of a platform, such as 'cpu'; None for the default one.

    Returns:
        int.

    Example:
        >>> import weft, warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     weft.host_count()
        1
    """
    _renamed("host_count", "process_count")
    return process_count(backend)
