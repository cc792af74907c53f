"""Several processes as one computation: each sees the devices of all processes, and programs may span them."""

from __future__ import annotations

import os
from typing import Sequence

from .clusters import Found, detected
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

    Under weft-run, Slurm (srun), Open MPI (mpirun), in an indexed Job of Kubernetes and in TPU slices of Kubernetes
    Engine, no argument is necessary: the environment has what they say.

    Args:
        coordinator_address: str: "host:port" of process 0, the same in all processes; None for the environment variable
            JAX_COORDINATOR_ADDRESS, or for what the cluster says.
        num_processes: int: how many processes there are; None for JAX_NUM_PROCESSES, or for what the cluster says.
        process_id: int: the number of this process, from 0; None for JAX_PROCESS_ID, or for what the cluster says.
        local_device_ids: int or sequence of ints: which of its host's GPUs this process uses; None for
            JAX_LOCAL_DEVICE_IDS, or for all. Under Slurm and Open MPI it is one for each process.
        cluster_detection_method: the cluster to ask: "variables" (the three above), "ompi", "slurm", "gketpu", "k8s" or
            "mpi4py"; None for the first of those that is there, without "mpi4py"; "deactivate" for none.
        initialization_timeout: int: how long to wait for the other processes to join, in seconds.
        heartbeat_timeout_seconds: int: after how many seconds a silent process is taken for dead. A process that ends
            is noticed at once.
        shutdown_timeout_seconds: int: how long to wait for the other processes to leave, in seconds.
        coordinator_bind_address: str: where process 0 listens; None for JAX_COORDINATOR_BIND_ADDRESS, or for the
            coordinator's port, on all interfaces unless the coordinator is an address of this machine alone.
        slice_index: None, the only value that is taken: weft does not join slices of TPUs.
        partition_index: None, the only value that is taken.

    Returns:
        None.

    Raises:
        ValueError: for arguments that are missing or don't fit.
        RuntimeError: if a device was used before, this function was called before, or the others don't come in time.

    Example:
        >>> import weft
        >>> weft.distributed.initialize("localhost:1234", num_processes=2, process_id=0)    # doctest: +SKIP
    """
    if slice_index is not None or partition_index is not None:
        raise ValueError(
            "slice_index and partition_index are for TPU slices, which weft does not join yet; leave them out."
        )
    found = Found()
    if cluster_detection_method is not None or None in (coordinator_address, num_processes, process_id):
        given = {
            "JAX_COORDINATOR_ADDRESS": coordinator_address,
            "JAX_NUM_PROCESSES": num_processes,
            "JAX_PROCESS_ID": process_id,
        }
        said = {name: str(value) for name, value in given.items() if value is not None}
        found = detected(cluster_detection_method, {**os.environ, **said})
    coordinator_address = coordinator_address or os.environ.get("JAX_COORDINATOR_ADDRESS") or found.address
    num_processes = found.processes if num_processes is None else num_processes
    process_id = found.process if process_id is None else process_id
    if coordinator_address is None or num_processes is None or process_id is None:
        name = (
            "coordinator_address"
            if coordinator_address is None
            else "num_processes"
            if num_processes is None
            else "process_id"
        )
        raise ValueError(
            f"{name} should be defined: weft.distributed.initialize('host:port', num_processes=2, process_id=0). Or"
            " start the processes with weft-run, srun or mpirun, which define it."
        )
    for name, number in (("num_processes", num_processes), ("process_id", process_id)):
        if isinstance(number, bool) or not isinstance(number, int):
            raise TypeError(f"{name} must be an int; got {number!r}.")
    if not 0 <= process_id < num_processes:
        raise ValueError(
            f"process_id must be in 0..num_processes-1. Got process_id={process_id}, num_processes={num_processes}."
        )
    host, colon, port = coordinator_address.rpartition(":")
    if not colon or not host or not port.isdigit():
        raise ValueError(f"coordinator_address must be 'host:port'; got {coordinator_address!r}.")
    backend_for("cpu").capabilities.xla.cluster.join(
        coordinator_address,
        num_processes,
        process_id,
        coordinator_bind_address or os.environ.get("JAX_COORDINATOR_BIND_ADDRESS") or _listens(coordinator_address),
        _gpus(local_device_ids, found),
        initialization_timeout,
        heartbeat_timeout_seconds,
        shutdown_timeout_seconds,
    )


def _listens(address: str) -> str:
    """Where process 0 listens: on this machine alone if the others are there, else on all interfaces."""
    host, _, port = address.rpartition(":")
    return address if host in ("localhost", "127.0.0.1", "[::1]") else f"[::]:{port}"


def _gpus(given: int | Sequence[int] | None, found: Found) -> list[int] | None:
    if given is not None:
        return [given] if isinstance(given, int) else list(given)
    named = os.environ.get("JAX_LOCAL_DEVICE_IDS")
    return [int(i) for i in named.split(",")] if named else found.gpus


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
