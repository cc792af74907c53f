"""Several processes as one computation: each sees the devices of all processes, and programs may span them."""

from __future__ import annotations

import os
from typing import Sequence

from .device import backend_for

__all__ = ["initialize", "is_initialized", "shutdown"]


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
) -> None:
    """Joins this process with others. Each process calls it once, before anything that uses a device.

    Args:
        coordinator_address: str: "host:port" of process 0, the same in all processes; None for the environment variable
            JAX_COORDINATOR_ADDRESS.
        num_processes: int: how many processes there are.
        process_id: int: the number of this process, from 0.
        local_device_ids: int or sequence of ints: which of its host's GPUs this process uses; None for all.
        cluster_detection_method: None or "deactivate". Clusters are not detected, so the first three arguments are
            necessary.
        initialization_timeout: int: how long to wait for the other processes to join, in seconds.
        heartbeat_timeout_seconds: int: after how many seconds a silent process is taken for dead.
        shutdown_timeout_seconds: int: how long to wait for the other processes to leave, in seconds.
        coordinator_bind_address: str: where process 0 listens; None for the coordinator's port on all interfaces.
        slice_index: None, the only value that is taken: weft does not join slices of TPUs.
        partition_index: None, the only value that is taken.

    Returns:
        None.

    Raises:
        ValueError: for arguments that are missing or don't fit.
        RuntimeError: if a device was used before, or this function was called before.

    Example:
        >>> import weft
        >>> weft.distributed.initialize("localhost:1234", num_processes=2, process_id=0)    # doctest: +SKIP
    """
    coordinator_address = coordinator_address or os.environ.get("JAX_COORDINATOR_ADDRESS")
    if cluster_detection_method not in (None, "deactivate"):
        raise ValueError(
            f"weft detects no {cluster_detection_method!r} cluster. Pass coordinator_address, num_processes and"
            " process_id."
        )
    if slice_index is not None or partition_index is not None:
        raise ValueError(
            "slice_index and partition_index are for TPU slices, which weft does not join yet; leave them out."
        )
    if coordinator_address is None or num_processes is None or process_id is None:
        name = (
            "coordinator_address"
            if coordinator_address is None
            else "num_processes"
            if num_processes is None
            else "process_id"
        )
        raise ValueError(
            f"{name} should be defined: weft.distributed.initialize('host:port', num_processes=2, process_id=0)."
        )
    if not 0 <= process_id < num_processes:
        raise ValueError(
            f"process_id must be in 0..num_processes-1. Got process_id={process_id}, num_processes={num_processes}."
        )
    host, colon, port = coordinator_address.rpartition(":")
    if not colon or not host or not port.isdigit():
        raise ValueError(f"coordinator_address must be 'host:port'; got {coordinator_address!r}.")
    ids = (
        None
        if local_device_ids is None
        else [local_device_ids]
        if isinstance(local_device_ids, int)
        else list(local_device_ids)
    )
    backend_for("cpu").capabilities.xla.cluster.join(
        coordinator_address,
        num_processes,
        process_id,
        coordinator_bind_address or f"[::]:{port}",
        ids,
        initialization_timeout,
        heartbeat_timeout_seconds,
        shutdown_timeout_seconds,
    )


def is_initialized() -> bool:
    """Whether this process has joined others.

    Returns:
        bool.

    Example:
        >>> import weft
        >>> weft.distributed.is_initialized()
        False
    """
    return backend_for("cpu").capabilities.xla.cluster.joined is not None


def shutdown() -> None:
    """Waits until the other processes call this too, and leaves them. Does nothing if there are no other processes.

    Returns:
        None.

    Example:
        >>> import weft
        >>> weft.distributed.shutdown()
    """
    backend_for("cpu").capabilities.xla.cluster.leave()
