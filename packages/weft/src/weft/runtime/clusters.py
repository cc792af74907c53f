"""What launchers and schedulers tell a program in its environment about its processes: how many there are, which one
this is, and where process 0 is.
"""

from __future__ import annotations

import os
import re
import socket
import zlib
from importlib import import_module
from typing import Callable, Mapping, NamedTuple

_PORTS = 1 << 12  # the last of the ports, from which those of jobs are chosen by the job's number


class Found(NamedTuple):
    """What an environment says; None for what it does not say."""

    address: str | None = None
    processes: int | None = None
    process: int | None = None
    gpus: list[int] | None = None


def detected(method: str | None, environ: Mapping[str, str]) -> Found:
    """What the environment says; `method` names the only cluster that is looked for.

    Raises ValueError for a method that is not known or whose cluster is not there, and for an environment that lacks
    something.
    """
    if method == "deactivate":
        return Found()
    if method is not None and method not in _CLUSTERS:
        names = ", ".join(map(repr, [*_CLUSTERS, "deactivate"]))
        raise ValueError(f"cluster_detection_method {method!r} is unknown; weft knows {names}.")
    for name, cluster in _CLUSTERS.items():
        if name == method or method is None and not cluster.only_by_name:
            missing = [v for v in cluster.variables if v not in environ]
            if not missing:
                return cluster.read(environ)
            if method is not None:
                raise ValueError(
                    f"this process was not started by {cluster.title}: {' and '.join(missing)}"
                    f" {'is' if len(missing) == 1 else 'are'} not set. Pass coordinator_address, num_processes and"
                    " process_id, or start it there."
                )
    return Found()


def _port(environ: Mapping[str, str], job: int) -> str:
    return environ.get("JAX_COORDINATOR_PORT") or str(65536 - _PORTS + job % _PORTS)


def _one_gpu(environ: Mapping[str, str], local: str) -> list[int] | None:
    """The GPU of a process that shares its machine with others: the one of its own number, unless the scheduler shows
    it only one.
    """
    shown = environ.get("CUDA_VISIBLE_DEVICES")
    return None if shown is not None and "," not in shown else [int(environ[local])]


def _variables(environ: Mapping[str, str]) -> Found:
    return Found(None, int(environ["JAX_NUM_PROCESSES"]), int(environ["JAX_PROCESS_ID"]))


def _open_mpi(environ: Mapping[str, str]) -> Found:
    count = int(environ["OMPI_COMM_WORLD_SIZE"])
    launcher = environ.get("OMPI_MCA_orte_hnp_uri")
    address = None
    if launcher is not None:  # "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911"; Open MPI 5 does not set it
        host = re.search(r"tcp://([^,:]+)|tcp6://\[([^,\]]+)", launcher)
        if host is None:
            raise ValueError(
                f"OMPI_MCA_orte_hnp_uri has no address ({launcher!r}). Pass coordinator_address, or set"
                " JAX_COORDINATOR_ADDRESS with mpirun -x."
            )
        number = host[1] or f"[{host[2]}]"
        address = f"{number}:{_port(environ, int(launcher.partition('.')[0]) >> 12)}"
    elif environ.get("OMPI_COMM_WORLD_LOCAL_SIZE") == str(count):
        address = f"127.0.0.1:{_port(environ, zlib.crc32(environ.get('PMIX_NAMESPACE', '').encode()))}"
    return Found(address, count, int(environ["OMPI_COMM_WORLD_RANK"]), _one_gpu(environ, "OMPI_COMM_WORLD_LOCAL_RANK"))


def _slurm(environ: Mapping[str, str]) -> Found:
    # "node001", "node001,host2", "node[001-015],host2" or "node[001,007-015],host2"
    nodes = environ["SLURM_STEP_NODELIST"]
    first = re.match(r"([^,\[]+)(?:\[([^,\-\]]+))?", nodes)
    if first is None:
        raise ValueError(f"SLURM_STEP_NODELIST names no machine ({nodes!r}). Pass coordinator_address.")
    return Found(
        f"{first[1]}{first[2] or ''}:{_port(environ, int(environ['SLURM_JOB_ID']))}",
        int(environ["SLURM_NTASKS"]),
        int(environ["SLURM_PROCID"]),
        _one_gpu(environ, "SLURM_LOCALID"),
    )


def _cloud_tpu(environ: Mapping[str, str]) -> Found:
    workers = environ.get("TPU_PROCESS_ADDRESSES", environ["TPU_WORKER_HOSTNAMES"]).split(",")
    slices, own = int(environ.get("MEGASCALE_NUM_SLICES", "1")), int(environ.get("MEGASCALE_SLICE_ID", "0"))
    first = environ.get("MEGASCALE_COORDINATOR_ADDRESS") or workers[0]
    port = environ.get("JAX_COORDINATOR_PORT", "8482")
    return Found(
        f"{first.partition(':')[0]}:{port}",
        len(workers) * slices,
        int(environ["TPU_WORKER_ID"]) + own * len(workers),
    )


def _kubernetes(environ: Mapping[str, str]) -> Found:
    """An indexed Job: its pods are called <job>-<index>, and know each other's names by a headless service."""
    process, pod = int(environ["JOB_COMPLETION_INDEX"]), environ["HOSTNAME"]
    count = environ.get("JAX_NUM_PROCESSES")
    address = environ.get("JAX_COORDINATOR_ADDRESS")
    if count is None:
        raise ValueError(
            "JAX_NUM_PROCESSES is not set, and a pod can't see how many pods its Job has. Set it in the Job's env to"
            " the number in `parallelism`."
        )
    if address is None:
        domain = socket.getfqdn(pod).partition(".")[2].partition(".")[0]
        if not domain or not pod.endswith(f"-{process}"):
            raise ValueError(
                f"the name of pod 0 does not follow from that of this one ({socket.getfqdn(pod)}). Give the Job's pods"
                " a `subdomain`, the name of a headless service that selects them, or set JAX_COORDINATOR_ADDRESS."
            )
        job = pod.removesuffix(f"-{process}")
        address = f"{job}-0.{domain}:{environ.get('JAX_COORDINATOR_PORT', '55527')}"
    return Found(address, int(count), process)


def _mpi4py(environ: Mapping[str, str]) -> Found:
    world = import_module("mpi4py.MPI").COMM_WORLD
    here = f"{socket.gethostname()}:{_port(environ, os.getpid())}"
    local = world.Split_type(import_module("mpi4py.MPI").COMM_TYPE_SHARED).Get_rank()
    return Found(world.bcast(here, root=0), world.Get_size(), world.Get_rank(), [local])


class _Cluster(NamedTuple):
    title: str
    variables: tuple[str, ...]  # those that it sets in each process
    read: Callable[[Mapping[str, str]], Found]
    only_by_name: bool = False


_CLUSTERS = {
    "variables": _Cluster(
        "weft-run, or something else that says so", ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID"), _variables
    ),
    "ompi": _Cluster(
        "Open MPI", ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"), _open_mpi
    ),
    "slurm": _Cluster(
        "srun of Slurm",
        ("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID"),
        _slurm,
    ),
    "gketpu": _Cluster("a TPU slice of Kubernetes Engine", ("TPU_WORKER_HOSTNAMES", "TPU_WORKER_ID"), _cloud_tpu),
    "k8s": _Cluster(
        "an indexed Job of Kubernetes", ("KUBERNETES_SERVICE_HOST", "JOB_COMPLETION_INDEX", "HOSTNAME"), _kubernetes
    ),
    "mpi4py": _Cluster("an MPI that mpi4py knows", (), _mpi4py, only_by_name=True),
}
