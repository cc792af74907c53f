"""Hosts, workers and clients that are killed, and connections that are cut, at random moments: no result is lost, wrong
or doubled, and sessions that have nothing to do with it go on. WEFT_FAULT_ROUNDS says how often.
"""

import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import weft
import weft.numpy as jnp
import weft.remote
from hosts import TOKEN, becomes, lives
from platforms import need
from proxy import Proxy
from weft import lax
from weft.errors import BackendError
from weft_remote import errors

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes for sessions are Linux's")
ROUNDS = int(os.environ.get("WEFT_FAULT_ROUNDS", "6"))

CLIENT = """
import sys, numpy as np, weft, weft.remote
s = weft.remote.connect(sys.argv[1], token=sys.argv[2], name="victim")
f = weft.jit(lambda x: weft.numpy.sin(x) + 1, device=s.devices()[0])
x = weft.device_put(np.ones(1000, np.float32), s.devices()[0])
print("ready", flush=True)
while True:
    x = f(x)
    x.block_until_ready()
"""


class World:
    """A host on one port, which may be started again, and a session beside that must not notice anything."""

    def __init__(self, folder, seed: int):
        self.folder, self.random = folder, random.Random(seed)
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.port = server.getsockname()[1]
        self.url = f"ws://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        options = ["--platform", "cpu", "--log-level", "info", "--token", TOKEN, "--port", str(self.port)]
        command = [sys.executable, "-W", "ignore", "-m", "weft_native.host", *options, "--guesses", "1000000"]
        with open(self.folder / "host.log", "a") as log:
            self.host = subprocess.Popen(
                [*command, "--jobs", str(self.folder / "jobs")], stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert "weft-host ws://" in self.host.stdout.readline(), self.log()
        self.stop = threading.Event()
        self.calls, self.failed = 0, []
        self.beside = threading.Thread(target=self._beside)
        self.beside.start()

    def end(self, number: int = signal.SIGTERM) -> None:
        if number != signal.SIGKILL:
            self.stop.set()
            self.beside.join(60)
        self.host.send_signal(number)
        self.host.wait(60)
        self.host.stdout.close()
        self.stop.set()
        self.beside.join(60)

    def log(self) -> str:
        return (self.folder / "host.log").read_text()

    def process(self, name: str) -> int:
        """The process of the newest session of this name."""
        return int(re.findall(rf"session \d+ '{name}' (?:begins|goes on) in process (\d+)", self.log())[-1])

    def connect(self, url: str = "", name: str = "") -> weft.remote.Session:
        return weft.remote.connect(url or self.url, token=TOKEN, name=name)

    def _beside(self) -> None:
        try:
            with self.connect(name="beside") as session:
                count = weft.jit(lambda n: n + 1, device=session.devices()[0])
                n = weft.device_put(np.int32(0), session.devices()[0])
                while not self.stop.is_set():
                    n = count(n)
                    self.calls += 1
                    assert int(n) == self.calls
                    time.sleep(0.02)
        except Exception as e:
            self.failed.append(e)

    # what can happen --------------------------------------------------------------------------------------------------

    def cut(self) -> None:
        """A connection breaks again and again while a session counts."""
        with Proxy(self.port) as proxy, self.connect(proxy.url) as session:
            device = session.devices()[0]
            count = weft.jit(lambda n, x: (n + 1, x * 2 + n), device=device)
            n, total = weft.device_put(np.int32(0), device), 60
            for k in range(total):
                n, y = count(n, np.full(self.random.randrange(1, 60_000), k, np.int32))
                if self.random.random() < 0.2:
                    proxy.cut_after = self.random.randrange(300_000)
                if self.random.random() < 0.1:
                    proxy.cut()
                if self.random.random() < 0.3:
                    assert (np.asarray(y) == 3 * k).all()
            assert int(n) == total

    def worker(self) -> None:
        """The process of a session dies while it computes."""
        with contextlib.suppress(BackendError), self.connect(name="dies") as session:
            device = session.devices()[0]
            f = weft.jit(lambda x: jnp.sin(x) + 1, device=device)
            x = weft.device_put(np.ones(1000, np.float32), device)
            timer = threading.Timer(self.random.random() / 2, os.kill, (self.process("dies"), signal.SIGKILL))
            timer.start()
            with pytest.raises(BackendError, match="out of memory|killed"):
                while True:
                    x = f(x)
                    x.block_until_ready()

    def client(self) -> None:
        """A client dies; its session ends."""
        client = subprocess.Popen([sys.executable, "-c", CLIENT, self.url, TOKEN], stdout=subprocess.PIPE, text=True)
        try:
            assert client.stdout.readline() == "ready\n"
            time.sleep(self.random.random() / 5)
        finally:
            client.kill()
            client.wait()
            client.stdout.close()
        # it computes no more, and is kept for the time of grace
        worker = self.process("victim")
        ticks = lambda: open(f"/proc/{worker}/stat").read().rsplit(")", 1)[1].split()[11]

        def is_quiet() -> bool:
            before = ticks()
            time.sleep(0.2)
            return int(ticks()) - int(before) <= 2

        assert becomes(is_quiet)

    def stopped(self) -> None:
        """A client stops an endless loop, and its connection breaks at that moment."""
        with Proxy(self.port) as proxy, self.connect(proxy.url, "stops") as session:
            device = session.devices()[0]
            x = weft.device_put(np.arange(100_000, dtype=np.float32), device)
            loop = weft.jit(lambda v: lax.while_loop(lambda c: c[0] > -1, lambda c: jnp.sin(c) ** 2 + 1, v))
            for _ in range(self.random.randrange(1, 3)):
                loop(x)
                time.sleep(self.random.random() / 2)
                session.cancel()
                time.sleep(self.random.random() / 4)
                proxy.cut()
            np.testing.assert_array_equal(x * 2, np.arange(100_000) * 2.0)

    def rest(self) -> None:
        """A session that is put on disk, or taken up from there, loses its process at some moment: it has the right
        values, or says that it is lost.
        """
        session = self.connect(name="rests")
        x = weft.device_put(np.arange(300_000, dtype=np.float32), session.devices()[0])
        text = weft.remote.keep([x + 1], seconds=60)
        process = self.process("rests")
        session.leave()
        killed = self.random.random() < 0.5
        time.sleep(1 + self.random.random() / 2)
        if killed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        for _ in range(2):
            try:
                session, (y,) = weft.remote.resume(self.url, text, token=TOKEN)
                np.testing.assert_array_equal(y, np.arange(300_000) + 1)
                session.leave()
            except BackendError:
                assert killed
                return
            time.sleep(1.3 * self.random.random())
        weft.remote.resume(self.url, text, token=TOKEN)[0].close()

    def all_of_it(self) -> None:
        """The host dies: clients hear of it, its workers end, and what was on disk is there when it starts again."""
        kept = self.connect(name="kept")
        x = weft.device_put(np.arange(1000, dtype=np.float32), kept.devices()[0])
        text = weft.remote.keep([x * 3], seconds=60)
        kept.leave()
        with self.connect(name="left") as session:
            session.ping()
            worker = self.process("left")
            assert becomes(lambda: list((self.folder / "jobs").glob("*.json")))
            self.end(signal.SIGKILL)
            assert becomes(lambda: not lives(worker))
            with pytest.raises(errors.ConnectionLost):
                session.ping()
        assert not self.failed or all(isinstance(e, errors.ConnectionLost) for e in self.failed), self.failed
        self.start()
        session, (y,) = weft.remote.resume(self.url, text, token=TOKEN)
        with session:
            np.testing.assert_array_equal(y, np.arange(1000) * 3.0)


KINDS = ("cut", "worker", "client", "stopped", "rest", "all_of_it")


@pytest.mark.timeout(120 + 20 * ROUNDS)
def test_whatever_dies_the_others_go_on_and_nothing_is_wrong(tmp_path):
    need("cpu")
    world = World(tmp_path, ROUNDS)
    try:
        for k in range(ROUNDS):
            kind = KINDS[k] if k < len(KINDS) else world.random.choice(KINDS)
            before, host = world.calls, world.host
            getattr(world, kind)()
            assert not world.failed, (k, kind, world.failed, world.log()[-2000:])
            if world.host is host:
                assert becomes(lambda: world.calls > before or world.failed) and not world.failed, (k, kind)
    finally:
        world.end()
