"""The processes that compute together: jaxlib's runtime service in process 0, and a client of it in each."""

from __future__ import annotations

import atexit
from typing import Any, NamedTuple, Sequence

import jaxlib._jax as _jax


class Cluster(NamedTuple):
    """What the clients of devices need to know about the other processes."""

    client: Any  # of the runtime service
    service: Any  # the service itself in process 0, None elsewhere
    process: int
    processes: int
    gpus: Sequence[int] | None  # which of the host's GPUs are this process's


joined: Cluster | None = None  # one for the process, as for devices
made_clients: dict = {}  # the existing clients of devices (client.py's), which were made too early to join a cluster


def join(
    address: str,
    count: int,
    process: int,
    bind_address: str,
    gpus,
    init_timeout: int,
    heartbeat: int,
    shutdown_timeout: int,
) -> None:
    """Starts the service in process 0 and connects to it."""
    global joined
    if joined is not None:
        raise RuntimeError("weft.distributed.initialize should only be called once.")
    if made_clients:
        raise RuntimeError(
            "weft.distributed.initialize must be called before anything that looks for a device: arrays,"
            " weft.devices(), jit calls."
        )
    service = (
        _jax.get_distributed_runtime_service(
            bind_address, count, heartbeat_timeout=heartbeat, shutdown_timeout=shutdown_timeout
        )
        if process == 0
        else None
    )
    client = _jax.get_distributed_runtime_client(
        address,
        process,
        init_timeout=init_timeout,
        heartbeat_timeout=heartbeat,
        shutdown_timeout=shutdown_timeout,
        use_compression=True,
    )
    client.connect()
    joined = Cluster(client, service, process, count, gpus)
    atexit.register(leave)


def leave() -> None:
    """Disconnects, after all processes have reached this point."""
    global joined
    if joined is not None:
        cluster, joined = joined, None
        cluster.client.shutdown()
        if cluster.service is not None:
            cluster.service.shutdown()


def cpu_options() -> dict:
    """The arguments of the CPU client: the number of this process, and how many there are."""
    if joined is None:
        return dict(distributed_client=None, node_id=0, num_nodes=1, collectives=None)
    return dict(
        distributed_client=joined.client,
        node_id=joined.process,
        num_nodes=joined.processes,
        collectives=_jax.make_gloo_tcp_collectives(distributed_client=joined.client),
    )


def gpu_options() -> dict:
    """The same for the options of a GPU plugin's client."""
    if joined is None:
        return {}
    visible = {} if joined.gpus is None else {"visible_devices": list(joined.gpus)}
    return {"node_id": joined.process, "num_nodes": joined.processes, **visible}


def runtime_client() -> Any:
    """The client of the runtime service; None outside a cluster."""
    return None if joined is None else joined.client
