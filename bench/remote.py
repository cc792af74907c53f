"""Offload over loopback: round trip, calls a second, bytes a second.

    python bench/remote.py [--platform cpu] [--url ws://… --token …] [--delay MS] [--only-restart]

Prints one line for each figure, first those of a bare websockets echo of the same size. Without --url a host of its own
is started; --delay puts that many milliseconds between both sides. The last line, without --url, is of hosts that keep
executables: a program's first call, that of the next session, and that after a new start.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy as np
import weft
import weft.numpy as jnp
import weft.remote
from websockets.asyncio.client import connect

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "remote"))
from proxy import Proxy  # noqa: E402
import weft.as_jax  # noqa: E402, F401
import transformer_program as transformer  # noqa: E402


def best(run, repeat: int = 5) -> float:
    """The shortest of a few durations, in seconds."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


@contextlib.contextmanager
def own_host(platform: str, *options: str):
    host = subprocess.Popen(
        [sys.executable, "-m", "weft_native.host", "--port", "0", "--token", "bench", "--platform", platform, *options],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield re.search(r"ws://\S+", host.stdout.readline())[0], "bench"
    finally:
        host.terminate()
        host.wait()


ECHO = """
import asyncio
from websockets.asyncio.server import serve

async def echo(socket):
    async for message in socket:
        await socket.send(message)

async def main():
    async with serve(echo, "127.0.0.1", 0, compression=None, max_size=None) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.wait_closed()

asyncio.run(main())
"""


def echo(n: int = 1000) -> float:
    """Seconds of a round trip of 32 bytes to another process that answers with the same, by the websockets library."""

    async def talk(port: int) -> float:
        async with connect(f"ws://127.0.0.1:{port}", compression=None) as socket:
            times = []
            for _ in range(5):
                start = time.perf_counter()
                for _ in range(n):
                    await socket.send(bytes(32))
                    await socket.recv()
                times.append(time.perf_counter() - start)
            return min(times) / n

    server = subprocess.Popen([sys.executable, "-c", ECHO], stdout=subprocess.PIPE, text=True)
    try:
        return asyncio.run(talk(int(server.stdout.readline())))
    finally:
        server.terminate()
        server.wait()


def measure(session) -> None:
    device = session.devices()[0]
    print(f"{device}")
    bare = echo()
    print(f"bare websockets echo             {bare * 1e6:10.0f} us")
    session.ping()
    n = 200
    print(f"round trip                       {best(lambda: [session.ping() for _ in range(n)]) / n * 1e6:10.0f} us")
    step = weft.jit(lambda x: x * 0.5 + 1)
    x = step(weft.device_put(np.float32(0), device))

    def submit():
        y = x
        for _ in range(n):
            y = step(y)
        return y

    last: list = []
    print(f"jit call, submitted              {best(lambda: last.append(submit())) / n * 1e6:10.1f} us")
    session.ping()
    print(f"jit call, {n} in a row and read  {best(lambda: float(submit())) / n * 1e6:10.1f} us")
    each = best(lambda: [float(step(x)) for _ in range(n)]) / n
    print(f"jit call and read, each          {each * 1e6:10.0f} us, {each / bare:.1f} times the echo")
    fresh = iter(range(1, 1000))
    print(
        "new program: trace, send, compile, run, read"
        f" {best(lambda: float(weft.jit(lambda v, k=next(fresh): jnp.sin(v) * k)(x)), 3) * 1e3:6.1f} ms"
    )
    for mib in (1, 16, 64):
        host = np.zeros(mib << 18, np.float32)
        negate = weft.jit(lambda v: -v)

        def up():
            weft.device_put(host, device).block_until_ready()

        y = weft.device_put(host, device)

        def down():
            np.asarray(negate(y))

        down()
        print(f"{mib:3} MiB  up {mib / best(up, 3):6.0f} MiB/s   down {mib / best(down, 3):6.0f} MiB/s")
    train(session)
    print(session.stats)


def train(session, steps: int = 100) -> None:
    """How often a training loop stands still for the host, if its losses are read one by one after it."""
    device = session.devices()[0]
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((steps, 32, 8)).astype(np.float32), rng.standard_normal((steps, 32)).astype(np.float32)
    loss = lambda w, x, y: jnp.mean((jnp.tanh(x @ w) - y) ** 2)

    @weft.jit
    def step(w, x, y):
        value, slope = weft.value_and_grad(loss)(w, x, y)
        return w - 0.1 * slope, value

    w = weft.device_put(np.zeros(8, np.float32), device)
    before, start, losses = session.stats.waits, time.perf_counter(), []
    for k in range(steps):
        w, value = step(w, x[k], y[k])
        losses.append(value)
    assert all(np.isfinite([float(value) for value in losses]))
    took = time.perf_counter() - start
    waits = session.stats.waits - before
    print(f"{steps} training steps and their losses {took * 1e3:8.0f} ms, and {waits} waits for the host")


def first_call(url: str, token: str) -> float:
    """Seconds in which a new session sends, compiles, runs and reads the gradient of a small transformer."""
    weft.clear_caches()
    with weft.remote.connect(url, token=token) as session:
        device = session.devices()[0]
        parameters = weft.device_put(transformer.parameters(12, 64, 100, 32), device)
        tokens = weft.device_put(np.zeros((2, 32), np.int32), device)
        traced = weft.jit(weft.grad(lambda p, t: transformer.loss(p, t, 4))).lower(parameters, tokens)
        session.ping()
        start = time.perf_counter()
        np.asarray(traced.compile()(parameters, tokens)["norm"])
        return time.perf_counter() - start


def restart(platform: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        options = ("--executables", folder)
        with own_host(platform, *options) as address:
            first = first_call(*address)
            until = time.monotonic() + 60 + 10 * first
            while not any(path.suffix != ".part" for path in pathlib.Path(folder).iterdir()):
                if time.monotonic() > until:
                    raise SystemExit("the host has stored nothing")
                time.sleep(0.1)
            second = first_call(*address)
        with own_host(platform, *options) as address:
            third = first_call(*address)
    print(
        f"transformer gradient, first call {first * 1e3:10.0f} ms, in the next session {second * 1e3:.0f} ms, after a"
        f" new start {third * 1e3:.0f} ms: {third / first:.2f} of the first"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--platform", default="cpu")
    parser.add_argument("--url")
    parser.add_argument("--token")
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--only-restart", action="store_true")
    options = parser.parse_args()
    if options.only_restart:
        return restart(options.platform)
    with contextlib.ExitStack() as stack:
        url, token = (options.url, options.token) if options.url else stack.enter_context(own_host(options.platform))
        if options.delay:
            url = stack.enter_context(Proxy(int(url.rsplit(":", 1)[1]), options.delay / 1000)).url
        session = stack.enter_context(weft.remote.connect(url, token=token))
        measure(session)
    if not options.url:
        restart(options.platform)


if __name__ == "__main__":
    main()
