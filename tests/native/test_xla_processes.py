"""weft.distributed: two processes of two devices each, and what is refused."""

import socket
import subprocess
import sys
import textwrap

import pytest

import weft
from weft.base.errors import BackendError
from weft_native import cluster

PROGRAM = textwrap.dedent("""
    import sys
    import weft
    weft.config.update("jax_num_cpu_devices", 2)
    assert not weft.distributed.is_initialized()
    limits = {"initialization_timeout": 60, "shutdown_timeout_seconds": 60}
    weft.distributed.initialize("localhost:" + sys.argv[2], 2, int(sys.argv[1]), **limits)
    import weft.numpy as jnp
    me = weft.process_index()
    assert (me, weft.process_count(), weft.process_indices()) == (int(sys.argv[1]), 2, [0, 1])
    from weft_native import cluster
    assert (cluster.joined.service is not None) == (me == 0)      # the address is that of process 0
    assert cluster.gpu_options() == {"node_id": me, "num_nodes": 2}
    assert (weft.device_count(), weft.local_device_count()) == (4, 2)
    assert [d.process_index for d in weft.local_devices(1 - me)] == [1 - me] * 2
    x = jnp.arange(3.0)
    assert x.device == weft.local_devices()[0]      # values live here, whoever the first device belongs to
    print(me, weft.jit(lambda x: x * 2 + me)(x).tolist())
    try:
        weft.distributed.initialize("localhost:1", 2, 0)
    except RuntimeError as e:
        assert "only be called once" in str(e)
    weft.distributed.shutdown()
    assert not weft.distributed.is_initialized()
""")


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]


def test_two_processes_see_each_other():
    port = free_port()
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(i), str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(2)
    ]
    try:
        for i, process in enumerate(started):
            out, err = process.communicate(timeout=120)
            assert process.returncode == 0, err[-2000:]
            assert out.strip() == f"{i} {[float(i), 2.0 + i, 4.0 + i]}"
    finally:
        for process in started:
            process.kill()


@pytest.mark.parametrize(
    "arguments,match",
    [
        (dict(), "coordinator_address should be defined"),
        (dict(coordinator_address="localhost:1"), "num_processes should be defined"),
        (dict(coordinator_address="localhost:1", num_processes=2, process_id=5), "process_id=5, num_processes=2"),
        (dict(coordinator_address="localhost", num_processes=2, process_id=0), "must be 'host:port'"),
        (dict(cluster_detection_method="slurm"), "not started by srun of Slurm"),
        (dict(cluster_detection_method="torque"), "'torque' is unknown; weft knows"),
        (dict(slice_index=0), "TPU slices"),
    ],
)
def test_wrong_arguments(arguments, match, monkeypatch):
    for name in ("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match=match):
        weft.distributed.initialize(**arguments)


@pytest.mark.parametrize("wrong", (dict(num_processes="2"), dict(process_id=True), dict(process_id=0.0)))
def test_arguments_that_are_no_numbers(wrong):
    with pytest.raises(TypeError, match=f"{next(iter(wrong))} must be an int; got"):
        weft.distributed.initialize(
            **{"coordinator_address": "localhost:1", "num_processes": 2, "process_id": 0, **wrong}
        )


@pytest.mark.parametrize(
    "chosen, match", (("mpi", "MPITRAMPOLINE_LIB names no library"), ("megascale", "'gloo' or 'mpi'"))
)
def test_collectives_that_are_not_there(monkeypatch, chosen, match):
    monkeypatch.delenv("MPITRAMPOLINE_LIB", raising=False)
    monkeypatch.setattr(cluster, "joined", cluster.Cluster(None, None, 1, 4, None))
    with pytest.raises(BackendError, match=match):
        weft.config.update("jax_cpu_collectives_implementation", chosen)
        try:
            cluster.cpu_options()
        finally:
            weft.config.update("jax_cpu_collectives_implementation", "gloo")


def test_too_late():
    weft.devices("cpu")
    with pytest.raises(RuntimeError, match="before anything that looks for a device"):
        weft.distributed.initialize("localhost:1", 1, 0)
    assert weft.distributed.is_initialized() is False
    weft.distributed.shutdown()  # there is nothing to leave


def test_the_gpus_of_a_process(monkeypatch):
    assert cluster.gpu_options() == {}
    for gpus, visible in [(None, {}), ([], {"visible_devices": []}), ((2, 3), {"visible_devices": [2, 3]})]:
        monkeypatch.setattr(cluster, "joined", cluster.Cluster(None, None, 1, 4, gpus))
        assert cluster.gpu_options() == {"node_id": 1, "num_nodes": 4, **visible}


def test_one_process():
    assert weft.process_index() == 0 and weft.process_count() == 1 and weft.process_indices() == [0]
    for old, new, want in [
        (weft.host_count, "process_count", 1),
        (weft.host_id, "process_index", 0),
        (weft.host_ids, "process_indices", [0]),
    ]:
        with pytest.warns(UserWarning, match=new) as warned:
            assert old() == want
        assert [w.filename for w in warned] == [__file__], "it points at the call"
    with pytest.raises(ValueError, match="no process 3"):
        weft.local_devices(process_index=3)
