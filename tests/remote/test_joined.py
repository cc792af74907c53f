"""Hosts that have joined each other: one mesh has the devices of all, and one session at a time computes on them."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import several
import weft
import weft.numpy as jnp
import weft.remote
from hosts import TOKEN, becomes
from platforms import need
from weft import NamedSharding, P, lax
from weft.base.errors import BackendError
from weft_remote.errors import LimitError

X = np.arange(16, dtype=np.float32).reshape(8, 2)


class Hosts:
    def __init__(self, folder, *more: str, count: int = 2):
        need("cpu")
        coordinator = f"127.0.0.1:{several.run.free_port()}"
        own = ["--port", "0", "--token", TOKEN, "--platform", "cpu", "--workers", "device", "--sessions", "1"]
        self.logs = [folder / f"host{i}.log" for i in range(count)]
        self.processes = []
        for i, log in enumerate(self.logs):
            joins = ["--coordinator", coordinator, "--processes", str(count), "--process", str(i), *more]
            with open(log, "w") as stderr:
                self.processes.append(
                    subprocess.Popen(
                        [sys.executable, "-W", "ignore", "-m", "weft_native.host", *own, *joins],
                        stdout=subprocess.PIPE,
                        stderr=stderr,
                        text=True,
                        env={**os.environ, "JAX_NUM_CPU_DEVICES": "2"},
                    )
                )
        self.said = [process.stdout.readline() for process in self.processes]
        assert all(self.said), [log.read_text() for log in self.logs]
        self.urls = [re.search(r"ws://[\d.:]+", line)[0] for line in self.said]

    def connect(self, **options):
        return weft.remote.connect_all(self.urls, **{"token": TOKEN, "timeout": 60, **options})

    def worker(self, i: int) -> int:
        """The process that has the devices of a host."""
        (zygote,) = _children(self.processes[i].pid)
        (found,) = _children(zygote)
        return found

    def stop(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(60)
            process.stdout.close()


def _children(process: int) -> list[int]:
    with open(f"/proc/{process}/task/{process}/children") as file:
        return [int(text) for text in file.read().split()]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    running = Hosts(tmp_path_factory.mktemp("joined"))
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture
def joined(hosts):
    with hosts.connect(default=True) as found:
        yield found


@pytest.fixture
def mesh(joined):
    return weft.make_mesh((4,), ("x",), (weft.sharding.AxisType.Auto,), devices=joined.devices())


def test_the_devices_of_all(hosts, joined):
    assert [d.index for d in joined.devices()] == [0, 1, 2, 3]
    assert [[d.index for d in s.devices()] for s in joined.sessions] == [[0, 1], [2, 3]]
    assert weft.devices()[:4] == joined.devices(), "in the order of the hosts, before those of other sessions"
    assert all("(cpu: 2 devices)" in line for line in hosts.said)
    assert repr(joined) == f"Joined({hosts.urls}, 4 devices)"


@pytest.mark.parametrize("spec", [P("x"), P(None), P(None, None)])
def test_arrays_lie_there_as_parts(mesh, spec):
    where = NamedSharding(mesh, spec)
    x = weft.device_put(X, where)
    assert x.sharding == where and [s.data.device for s in x.addressable_shards] == list(mesh.flat_devices)
    assert np.array_equal(x, X)
    for shard in x.addressable_shards:
        assert np.array_equal(shard.data, X[shard.index])


def test_programs_run_on_all(mesh):
    where = NamedSharding(mesh, P("x"))
    x = weft.device_put(X, where)
    step = weft.jit(lambda x, y: (jnp.sum(x * y), x + y))
    for k in range(3):
        total, more = step(x, X + k)
        assert float(total) == (X * (X + k)).sum() and np.array_equal(more, 2 * X + k)
    assert more.sharding.num_devices == 4
    again, _ = step(more, more)
    assert float(again) == ((2 * X + 2) ** 2).sum(), "results are arguments"
    moved = weft.device_put(x, NamedSharding(mesh, P(None, None)))
    assert np.array_equal(moved, X) and moved.is_fully_replicated
    psum = weft.shard_map(lambda v: lax.psum(v, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
    assert np.array_equal(psum(x), X.reshape(4, 2, 2).sum(0))
    grads = weft.jit(weft.grad(lambda x: jnp.sum(jnp.sin(x) ** 2)))(x)
    np.testing.assert_allclose(grads, np.sin(2 * X), rtol=1e-5, atol=1e-6)
    given = weft.jit(lambda x: x * 3, donate_argnums=0)(weft.device_put(X, where))
    assert np.array_equal(given, 3 * X)


def test_arrays_of_one_host_and_of_both(joined, mesh):
    one, other = joined.devices()[0], joined.devices()[3]
    x = weft.device_put(X, one)
    assert float(jnp.sum(x * 2)) == 2 * X.sum()
    y = weft.device_put(x, other)
    assert y.device == other and np.array_equal(y, X)
    z = weft.device_put(x, NamedSharding(mesh, P("x")))
    assert np.array_equal(z + 1, X + 1)
    assert np.array_equal(weft.device_put(z, other), X)
    halves = weft.make_mesh((2,), ("x",), devices=joined.sessions[1].devices())
    assert np.array_equal(weft.device_put(X, NamedSharding(halves, P("x"))) * 2, 2 * X), "those of one host"


def test_training_is_that_of_one_process(mesh):
    data = np.random.default_rng(0).normal(size=(4, 16, 3)).astype(np.float32)

    @weft.jit
    def step(w, x):
        loss = lambda w: jnp.mean((x @ w - jnp.sum(x, 1)) ** 2)
        return w - 0.1 * weft.grad(loss)(w)

    w, alone = weft.device_put(np.zeros(3, np.float32), NamedSharding(mesh, P())), np.zeros(3, np.float32)
    for x in data:
        w = step(w, weft.device_put(x, NamedSharding(mesh, P("x"))))
        alone = alone - 0.1 * 2 * x.T @ (x @ alone - x.sum(1)) / 16
    np.testing.assert_allclose(w, alone, atol=1e-5)


def test_what_is_refused(hosts, joined, mesh):
    x = weft.device_put(X, NamedSharding(mesh, P("x")))

    def says(x):
        weft.debug.print("{}", jnp.sum(x))
        return x

    with pytest.raises(BackendError, match="runs on several hosts, each of which would call it"):
        weft.jit(says)(x)
    with pytest.raises(LimitError), pytest.warns(RuntimeWarning, match="is full"):  # one session at a time
        weft.remote.connect(hosts.urls[0], token=TOKEN, wait=0)


def test_addresses_that_do_not_belong_together(hosts):
    with pytest.raises(ValueError, match="in the order of their --process"):
        weft.remote.connect_all(hosts.urls[::-1], token=TOKEN)
    with pytest.raises(ValueError, match="have 4 devices, and those at the given addresses have 2. Name all of them"):
        weft.remote.connect_all(hosts.urls[:1], token=TOKEN)
    with pytest.raises(ValueError, match="needs the addresses"):
        weft.remote.connect_all([], token=TOKEN)


def begun(joined):
    """An array over all devices, after a first computation."""
    mesh = weft.make_mesh((4,), ("x",), devices=joined.devices())
    x = weft.device_put(X, NamedSharding(mesh, P("x")))
    assert float(jnp.sum(x)) == X.sum()
    return x


def goes_on(running: Hosts, before: list[int]) -> None:
    """All hosts have other processes than before, and compute."""
    renewed = lambda i: (now := _worker(running, i)) is not None and now != before[i]
    assert becomes(lambda: renewed(0) and renewed(1), 60), [log.read_text() for log in running.logs]
    with running.connect() as found:
        begun(found)


@pytest.mark.parametrize("number", (0, 1))
def test_a_host_whose_process_ends(tmp_path, number):
    """Its session ends, and that of the others; the next one finds all hosts again."""
    running = Hosts(tmp_path)
    try:
        with running.connect() as found:
            x = begun(found)
            before = [running.worker(i) for i in range(2)]
            os.kill(before[number], signal.SIGKILL)
            began = time.monotonic()
            with pytest.raises(BackendError):
                while time.monotonic() < began + 60:
                    float(jnp.sum(x))
                    time.sleep(0.1)
            assert time.monotonic() - began < 40
        goes_on(running, before)
    finally:
        running.stop()


def test_a_computation_whose_other_half_never_comes(tmp_path):
    """It waits for as long as a computation may take. Then its process ends, since nothing else stops it."""
    running = Hosts(tmp_path, "--seconds", "2")
    try:
        with running.connect() as found:
            x = begun(found)
            before = [running.worker(i) for i in range(2)]
            lost = found.sessions[1]
            found.sessions[1].execute = lambda *args: None  # as a client that ends between two messages
            with pytest.raises(BackendError, match="took longer than 2 s"):
                (x + jnp.sum(x)).addressable_shards[0].data._host()
            del lost.execute
        goes_on(running, before)
    finally:
        running.stop()


def _worker(running: Hosts, i: int) -> int | None:
    with contextlib.suppress(ValueError, OSError):
        return running.worker(i)
    return None
