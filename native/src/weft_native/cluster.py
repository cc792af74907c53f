"""The processes that compute together: jaxlib's runtime service in process 0, and a client of it in each."""

from __future__ import annotations

import atexit
import ctypes
import os
import socket
import sys
import threading
import time
from typing import Any, NamedTuple, Sequence

import jaxlib._jax as _jax
from weft.base.config import config
from weft.base.errors import BackendError, at_user_line
from weft.runtime import guards

from . import watch


class Cluster(NamedTuple):
    """What the clients of devices need to know about the other processes."""

    client: Any  # of the runtime service
    service: Any  # the service itself in process 0, None elsewhere
    process: int
    processes: int
    gpus: Sequence[int] | None  # which of the host's GPUs are this process's
    host: str = "localhost"  # the address of process 0
    watch: Any = None  # notices when other processes end


joined: Cluster | None = None  # one for the process, as for devices
made_clients: dict = {}  # the existing clients of devices (client.py's), which were made too early to join a cluster
ended: list[int] = []  # the processes that have ended without leaving, in order
_registered: list[bool] = []
_preemption: Any = None  # jaxlib's manager of preemption notices, once it is asked for one
# Seconds in which a program that has lost a process may end by itself, with its own error; process 0, without whose
# service XLA ends the others, stays a little longer; and the time in which the end of a process becomes known.
_TO_END, _LONGER, _TO_KNOW = 5.0, 2.0, 1.0


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
    began = time.monotonic()
    if process == 0:
        _check_free(bind_address)
    else:
        _wait_for_first(address, process, init_timeout)
    service = None
    if process == 0:
        service = _jax.get_distributed_runtime_service(
            bind_address,
            count,
            heartbeat_timeout=heartbeat,
            cluster_register_timeout=init_timeout + 1,
            shutdown_timeout=shutdown_timeout,
            recoverable=config.enable_recoverability,
        )
        _keep(service)  # without it, XLA ends this process and the others, whatever they do
    client = _jax.get_distributed_runtime_client(
        address,
        process,
        init_timeout=init_timeout + 1,
        heartbeat_timeout=heartbeat,
        shutdown_timeout=shutdown_timeout,
        use_compression=True,
    )
    missing = threading.Timer(max(0, init_timeout + began - time.monotonic()), _say_missing, (address, count, process))
    missing.daemon = True
    missing.start()
    try:
        client.connect()  # XLA ends the process where this takes too long
    finally:
        missing.cancel()
    host = address.rpartition(":")[0].strip("[]")
    watching: Any = None
    ended.clear()
    if count > 1:
        watching = watch.Center(client, host, _has_ended) if process == 0 else watch.Member(client, process, _has_ended)
    joined = Cluster(client, service, process, count, gpus, host, watching)
    if not _registered:
        _registered.append(True)
        guards.explain_with(explained)
        atexit.register(_leave_at_exit)


def _check_free(bind_address: str) -> None:
    """Raises RuntimeError for an address on which process 0 can't listen."""
    host, _, port = bind_address.rpartition(":")
    host = host.strip("[]")
    try:
        family = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)[0][0]
        socket.create_server((host, int(port)), family=family).close()
    except OSError as e:
        raise RuntimeError(
            f"process 0 can't listen on {bind_address}: {e.strerror}. Choose another port in coordinator_address, or"
            " another address in coordinator_bind_address."
        ) from None


def _wait_for_first(address: str, process: int, seconds: float) -> None:
    """Waits until process 0 listens. Raises RuntimeError if it does not."""
    host, _, port = address.rpartition(":")
    limit = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection((host.strip("[]"), int(port)), min(seconds, 5)).close()
            return
        except OSError as e:
            if time.monotonic() > limit:
                raise RuntimeError(
                    f"process {process} could not reach process 0 at {address} within {seconds} s ({e}). See whether"
                    " process 0 runs, and whether this machine may connect to that port."
                ) from None
            time.sleep(0.1)


def _say_missing(address: str, count: int, process: int) -> None:
    proxies = sorted(name for name in os.environ if name.lower().endswith("_proxy"))
    hint = f" {', '.join(proxies)} may send the connections elsewhere: unset them." if proxies else ""
    print(
        f"weft: process {process} has waited long enough for all {count} processes to join at {address}; what XLA says"
        " next names those that did not come. See whether all were started with the same address and number of"
        f" processes, and what those printed, or pass a longer initialization_timeout.{hint}",
        file=sys.stderr,
        flush=True,
    )


def me() -> str:
    """This process, for messages."""
    return "the only process" if joined is None else f"process {joined.process} of {joined.processes}"


def check_mine(device) -> None:
    """Raises ValueError for a device of another process."""
    if device.process_index != device.client.process_index():
        raise ValueError(
            at_user_line(
                f"{device} belongs to process {device.process_index}, and this is {me()}, which can't put a value"
                " there. Use a device of weft.local_devices(), or a sharding over devices of all processes."
            )
        )


# the end -------------------------------------------------------------------------------------------------------------


def _has_ended(process: int) -> None:
    """Another process has ended without leaving: says so, and ends this one unless it ends by itself."""
    ended.append(process)
    if config.enable_recoverability or joined is None or len(ended) > 1:
        return
    print(f"weft: {explanation()}", file=sys.stderr, flush=True)
    timer = threading.Timer(_TO_END + (_LONGER if joined.process == 0 else 0), os._exit, (1,))
    timer.daemon = True
    timer.start()


def explanation() -> str:
    """What has happened to the others, and what a user can do."""
    which = f"process {ended[0]}"  # the others that follow ended because of it
    return (
        f"{which} of {joined.processes if joined else '?'} ended without weft.distributed.shutdown(), and {me()}"
        f" can't compute without it. See the last lines that {which} printed, mend the cause, and start all processes"
        " again, from the last checkpoint."
    )


def explained(error: Exception) -> Exception:
    """An error of the runtime, as that of a lost process where it is one."""
    if joined is None or joined.processes == 1 or not any(word in str(error) for word in _OF_OTHERS):
        return error
    if joined.watch is not None and not ended:
        joined.watch.wait(_TO_KNOW)  # the connection may have broken before we were told
    return BackendError(at_user_line(f"{explanation()} ({str(error).splitlines()[0]})")) if ended else error


# Words of the errors of collectives whose other side is gone.
_OF_OTHERS = ("Gloo", "gloo", "closed by peer", "NCCL", "MPI")


def leave(failed: bool = False) -> None:
    """Disconnects, after all processes have reached this point; after a failure, without waiting for that."""
    global joined, _preemption
    if joined is None:
        return
    if failed and joined.watch is not None and not ended:
        joined.watch.wait(_TO_KNOW)  # it may have failed because another one has ended
    cluster, joined = joined, None
    if _preemption is not None:
        _preemption.shutdown()  # before the client, on which it depends
        _preemption = None
    failed = failed or bool(ended)
    if failed:
        _keep(cluster.client)  # its destructor waits for the others
    else:
        cluster.client.shutdown()
    if cluster.watch is not None:
        cluster.watch.leave(not failed, _TO_END + _LONGER / 2)
    if cluster.service is not None and not failed:
        cluster.service.shutdown()


def _leave_at_exit() -> None:
    """Leaves when the program ends. One that ends with an error doesn't wait for the others, which wait for it."""
    leave(failed="last_value" in vars(sys) and not sys.flags.interactive)


def _keep(thing: Any) -> None:
    """Lets an object of C++ live until the process ends."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


# what clients of devices ask for -------------------------------------------------------------------------------------


def _collectives(cluster: Cluster) -> Any:
    """How CPUs of several processes exchange data."""
    chosen = config.cpu_collectives_implementation
    if chosen == "gloo":
        local = cluster.host in ("localhost", "127.0.0.1", "::1")
        return _jax.make_gloo_tcp_collectives(
            distributed_client=cluster.client, hostname="127.0.0.1" if local else None
        )
    if chosen == "mpi":
        if not os.environ.get("MPITRAMPOLINE_LIB"):
            raise BackendError(
                "jax_cpu_collectives_implementation is 'mpi', and MPITRAMPOLINE_LIB names no library: XLA reaches MPI"
                " through MPItrampoline. Build MPIwrapper for your MPI and set MPITRAMPOLINE_LIB to its"
                " libmpiwrapper.so, or use 'gloo'."
            )
        made = _jax.make_mpi_collectives()
        made.Init()
        atexit.register(made.Finalize)
        return made
    raise BackendError(
        f"jax_cpu_collectives_implementation is {chosen!r}, which jaxlib does not have; use 'gloo' or 'mpi'."
    )


def cpu_options() -> dict:
    """The arguments of the CPU client: the number of this process, and how many there are."""
    if joined is None:
        return dict(distributed_client=None, node_id=0, num_nodes=1, collectives=None)
    return dict(
        distributed_client=joined.client,
        node_id=joined.process,
        num_nodes=joined.processes,
        collectives=_collectives(joined),
        get_local_topology_timeout_minutes=config.cpu_get_local_topology_timeout_minutes,
        get_global_topology_timeout_minutes=config.cpu_get_global_topology_timeout_minutes,
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


# what programs ask for -----------------------------------------------------------------------------------------------


def live_processes(processes: Sequence[int]) -> list[int]:
    """Those of some processes that still answer, the same in all that do; waits until these have asked too."""
    return sorted(processes) if joined is None else sorted(joined.client.get_live_nodes(list(processes)))


def reached_preemption_sync_point(step: int) -> bool:
    """Whether all processes are to save at this step, because one has been told to end (SIGTERM)."""
    global _preemption
    if joined is None:
        return False
    if _preemption is None:
        _preemption = _jax.create_preemption_sync_manager()
        _preemption.initialize(joined.client)
    return _preemption.reached_sync_point(step)
