"""What launchers and schedulers say in the environment (`weft.distributed.initialize()` without arguments)."""

import socket
import sys
import types

import pytest

from weft.runtime.clusters import Found, detected
from weft.runtime.distributed import _gpus

SLURM = {
    "SLURM_JOB_ID": "4097",
    "SLURM_STEP_NODELIST": "node001",
    "SLURM_NTASKS": "8",
    "SLURM_PROCID": "3",
    "SLURM_LOCALID": "1",
}
MPI = {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "0"}
URI = "OMPI_MCA_orte_hnp_uri"
POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": "2", "HOSTNAME": "train-2"}
TPU = {"TPU_WORKER_HOSTNAMES": "t-0.svc,t-1.svc", "TPU_WORKER_ID": "1"}


def test_nothing():
    assert detected(None, {}) == detected("deactivate", SLURM) == Found(None, None, None, None)


def test_variables():
    said = {"JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "1"}
    assert detected(None, {**said, **SLURM}) == Found(None, 2, 1), "they come before what a scheduler says"
    assert detected("slurm", {**said, **SLURM}).process == 3


@pytest.mark.parametrize(
    "nodes, first",
    [
        ("node001", "node001"),
        ("node001,host2", "node001"),
        ("node[001-015],host2", "node001"),
        ("node[001,007-015],host2", "node001"),
        ("gpu-a[7],b", "gpu-a7"),
    ],
)
def test_slurm(nodes, first):
    found = detected(None, {**SLURM, "SLURM_STEP_NODELIST": nodes})
    assert found == Found(f"{first}:61441", 8, 3, [1])
    assert detected(None, {**SLURM, "JAX_COORDINATOR_PORT": "99"}).address == "node001:99"


def test_slurm_outside_of_a_step_is_no_cluster():
    """A batch script has the variables of the job, but it is one process."""
    assert detected(None, {k: v for k, v in SLURM.items() if "STEP" not in k}) == Found()
    with pytest.raises(ValueError, match=r"not started by srun of Slurm: SLURM_STEP_NODELIST is not set"):
        detected("slurm", {k: v for k, v in SLURM.items() if "STEP" not in k})
    with pytest.raises(ValueError, match="names no machine"):
        detected("slurm", {**SLURM, "SLURM_STEP_NODELIST": ""})


@pytest.mark.parametrize("shown, gpus", [(None, [1]), ("0,1,2", [1]), ("5", None)])
def test_the_gpu_of_a_process(shown, gpus):
    more = {} if shown is None else {"CUDA_VISIBLE_DEVICES": shown}
    assert detected(None, {**SLURM, **more}).gpus == gpus, "a scheduler that shows one GPU has chosen"


def test_the_gpus_that_are_named(monkeypatch):
    found = Found(None, 2, 1, [1])
    assert _gpus(3, found) == [3] and _gpus((0, 2), found) == [0, 2] and _gpus(None, found) == [1]
    monkeypatch.setenv("JAX_LOCAL_DEVICE_IDS", "4,5")
    assert _gpus(None, found) == [4, 5] and _gpus([], found) == []


@pytest.mark.parametrize(
    "uri, address",
    [
        ("1531576320.0;tcp://10.96.0.1,10.148.0.1,10.108.0.1:34911", "10.96.0.1:62624"),
        ("1314521088.0;tcp6://[fe80::b9b,2620:10d::2]:43370", "[fe80::b9b]:62880"),
    ],
)
def test_open_mpi(uri, address):
    assert detected(None, {**MPI, URI: uri}) == Found(address, 4, 2, [0])


def test_open_mpi_5():
    """It does not say where the launcher is; on one machine that is known."""
    alone = {**MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "4", "PMIX_NAMESPACE": "prterun-a-1@1"}
    found = detected("ompi", alone)
    assert found.address.startswith("127.0.0.1:") and 61440 <= int(found.address[10:]) < 65536
    assert detected("ompi", {**alone, "PMIX_NAMESPACE": "prterun-a-2@1"}).address != found.address
    assert detected("ompi", {**MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}).address is None
    with pytest.raises(ValueError, match="has no address"):
        detected("ompi", {**MPI, URI: "nothing"})


def test_kubernetes(monkeypatch):
    monkeypatch.setattr(socket, "getfqdn", lambda name: f"{name}.trainers.space.svc.cluster.local")
    assert detected(None, {**POD, "JAX_NUM_PROCESSES": "4"}) == Found("train-0.trainers:55527", 4, 2)
    said = {"JAX_NUM_PROCESSES": "4", "JAX_COORDINATOR_ADDRESS": "a:1", "JAX_COORDINATOR_PORT": "7"}
    assert detected("k8s", {**POD, **said}).address == "a:1"
    with pytest.raises(ValueError, match=r"JAX_NUM_PROCESSES is not set.*`parallelism`"):
        detected(None, POD)
    monkeypatch.setattr(socket, "getfqdn", lambda name: name)
    with pytest.raises(ValueError, match="`subdomain`"):
        detected(None, {**POD, "JAX_NUM_PROCESSES": "4"})
    assert detected(None, {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOSTNAME": "web"}) == Found(), "not such a Job"


def test_cloud_tpu():
    assert detected(None, TPU) == Found("t-0.svc:8482", 2, 1)
    slices = {"MEGASCALE_NUM_SLICES": "3", "MEGASCALE_SLICE_ID": "2", "MEGASCALE_COORDINATOR_ADDRESS": "first:80"}
    assert detected(None, {**TPU, **slices}) == Found("first:8482", 6, 5)
    both = {**TPU, "TPU_PROCESS_ADDRESSES": "p:8471,q:8471", **POD}
    assert detected(None, both) == Found("p:8482", 2, 1), "a slice comes before the Job that its pods are of"


def test_mpi4py(monkeypatch):
    world = types.SimpleNamespace(
        bcast=lambda address, root: "first:5", Get_size=lambda: 4, Get_rank=lambda: 3, Split_type=lambda kind: local
    )
    local = types.SimpleNamespace(Get_rank=lambda: 1)
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", types.SimpleNamespace(COMM_WORLD=world, COMM_TYPE_SHARED=1))
    monkeypatch.setitem(sys.modules, "mpi4py", types.ModuleType("mpi4py"))
    assert detected("mpi4py", {}) == Found("first:5", 4, 3, [1])
    assert detected(None, {}) == Found(), "only where it is asked for"


def test_unknown_methods():
    with pytest.raises(ValueError, match=r"'torque' is unknown; weft knows 'variables', 'ompi', .*'deactivate'"):
        detected("torque", {})
