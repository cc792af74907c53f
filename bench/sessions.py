"""Many sessions at once on one host: each calls a program of a millisecond once a second and reads the result.

    python bench/sessions.py [--sessions 500] [--seconds 60] [--workers session] [--hostile]

Prints the latencies from when a call was due to when its result was there, how many calls the session with the fewest
had answered, and the memory of the host's processes after a tenth of the time and at the end (the proportional set
size: pages that processes share count once). --hostile adds a session that computes without end, and compiles.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

import numpy as np
import weft
import weft.numpy as jnp
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException
from weft.base.avals import shaped
from weft.serialization.programs import content_hash, serialize
from weft.transforms.portable import portable
from weft_remote import protocol as p

TOKEN = "bench"
X = np.ones(256, np.float32)


def program(fun) -> bytes:
    return serialize(portable(weft.make_jaxpr(fun)(X).jaxpr)[0])


def step(turns: int):
    return lambda x: weft.lax.fori_loop(0, turns, lambda i, v: jnp.sin(v) + 1, x)


def of_a_millisecond() -> int:
    """The turns of `step` that take a millisecond here."""
    turns = 2000
    f, x = weft.jit(step(turns)), jnp.asarray(X)
    f(x).block_until_ready()
    times = []
    for _ in range(20):
        began = time.perf_counter()
        f(x).block_until_ready()
        times.append(time.perf_counter() - began)
    return max(1, round(turns * 1e-3 / min(times)))


class Client:
    def __init__(self, url: str, data: bytes):
        self.url, self.data, self.ops = url, data, iter(range(1, 1 << 40))
        self.latencies: list[float] = []

    async def talk(self, kind, *fields) -> int:
        op = next(self.ops)
        await self.socket.send(p.encode(kind(op, *fields)))
        return op

    async def answered(self, op: int) -> None:
        """Returns once operation `op` has its whole reply."""
        while True:
            for message in p.decode(await self.socket.recv()):
                if isinstance(message, (p.End, p.Error)):
                    raise ConnectionError(f"the host says: {message}")
                if getattr(message, "op", None) == op and isinstance(message, (p.Data, p.Ready)):
                    await self.socket.send(p.encode(p.Settled((op,))))
                    return

    async def begin(self, gate: asyncio.Semaphore) -> None:
        async with gate:
            self.socket = await connect(
                f"{self.url}/session",
                subprotocols=p.offered(TOKEN, b""),
                compression=None,
                max_size=None,
                open_timeout=120,
                ping_interval=None,
            )
            await self.socket.recv()
            digest = content_hash(self.data)
            await self.talk(p.Put, 1, shaped(X.shape, "float32"), 0, X.tobytes())
            await self.talk(p.Program, digest, len(self.data), self.data)
            await self.talk(p.Compile, 2, digest, 0, "step", (False,))
            await self.call(10)

    async def call(self, handle: int) -> None:
        await self.talk(p.Execute, 2, (1,), (handle,))
        op = await self.talk(p.Fetch, handle)
        await self.talk(p.Free, (handle,))
        await self.answered(op)

    async def run(self, start: float, seconds: float) -> None:
        due = start + random.random()
        for k in range(int(seconds)):
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            await self.call(11 + k)
            self.latencies.append(time.perf_counter() - due)
            due += 1.0


async def hostile(url: str) -> None:
    """A session that computes without end in many calls, and compiles large programs."""
    endless = program(lambda x: weft.lax.while_loop(lambda v: v[0] > -1, lambda v: jnp.sin(v) ** 2 + 1, x))
    while True:
        client = Client(url, endless)
        with contextlib.suppress(OSError, WebSocketException):  # the host ends it: the next one
            await client.begin(asyncio.Semaphore(1))
        await asyncio.sleep(0.1)


def memory(pid: int) -> int:
    """Bytes of a process and those that it has started."""
    total = 0
    for line in subprocess.check_output(["ps", "-eo", "pid,ppid"], text=True).splitlines()[1:]:
        child, parent = map(int, line.split())
        if parent == pid:
            total += memory(child)
    with contextlib.suppress(OSError):
        rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
        total += 1024 * int(re.search(r"^Pss: +(\d+)", rollup, re.M)[1])
    return total


async def measure(options, url: str, pid: int, data: bytes) -> None:
    clients = [Client(url, data) for _ in range(options.sessions)]
    gate, began = asyncio.Semaphore(16), time.perf_counter()
    await asyncio.gather(*[c.begin(gate) for c in clients])
    print(f"{options.sessions} sessions have begun     {time.perf_counter() - began:8.1f} s")
    other = asyncio.ensure_future(hostile(url)) if options.hostile else None
    start = time.perf_counter() + 1
    running = asyncio.gather(*[c.run(start, options.seconds) for c in clients])
    await asyncio.sleep(1 + options.seconds / 10)
    first = await asyncio.to_thread(memory, pid)
    await running
    last = await asyncio.to_thread(memory, pid)
    if other is not None:
        other.cancel()
    times = np.sort([t for c in clients for t in c.latencies])
    print(f"calls answered               {len(times):8}, at least {min(len(c.latencies) for c in clients)} of each")
    for share in (0.5, 0.9, 0.99, 1.0):
        print(f"latency, {share:5.0%}               {1e3 * times[int(share * (len(times) - 1))]:8.1f} ms")
    print(
        f"memory of the host           {first / 2**20:8.0f} MiB, and {last / 2**20:.0f} at the end: {last / first:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--workers", default="session", choices=("session", "device"))
    parser.add_argument("--hostile", action="store_true")
    options = parser.parse_args()
    turns = of_a_millisecond()
    command = [sys.executable, "-m", "weft_native.host", "--port", "0", "--token", TOKEN, "--platform", "cpu"]
    command += ["--workers", options.workers, "--sessions", str(options.sessions + 10), "--seconds", "10"]
    command += ["--session-bytes", str(64 << 20), "--total-bytes", str(1 << 40)]
    with tempfile.TemporaryFile() as log:
        host = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            url = re.search(r"ws://\S+", host.stdout.readline())[0]
            asyncio.run(measure(options, url, host.pid, program(step(turns))))
        finally:
            host.terminate()
            host.wait()


if __name__ == "__main__":
    main()
