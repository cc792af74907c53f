"""Requests a second for a program that a host publishes by name, with and without batches.

    python bench/inference.py [--clients N] [--seconds S]

The program is a network of three layers of 2048 × 2048, of which one request reads all 50 MB of weights. Clients send a
vector each and wait for the answer. Prints requests a second and their latencies, and the ratio.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

import aiohttp
import numpy as np
import weft
import weft.numpy as jnp
from weft import export, random

WIDTH, LAYERS, TOKEN = 2048, 3, "bench"


def publish(folder: pathlib.Path) -> None:
    weights = [random.normal(random.key(i), (WIDTH, WIDTH)) / WIDTH**0.5 for i in range(LAYERS)]

    def network(x: weft.Array) -> weft.Array:
        for w in weights:
            x = jnp.tanh(x @ w)
        return x[:10]

    made = export.export(weft.jit(network))(weft.ShapeDtypeStruct((WIDTH,), np.float32))
    (folder / "network.weft").write_bytes(made.serialize())


@contextlib.contextmanager
def host(folder: pathlib.Path, batch: int) -> Iterator[str]:
    command = [sys.executable, "-W", "ignore", "-m", "weft_native.host", "--port", "0", "--token", TOKEN]
    more = ["--platform", "cpu", "--serve", str(folder), "--batch", str(batch)]
    process = subprocess.Popen([*command, *more], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"ws(://\S+)", process.stdout.readline())
        assert found is not None
        yield "http" + found[1]
    finally:
        process.terminate()
        process.wait()


async def measure(url: str, clients: int, seconds: float) -> list[float]:
    """The seconds that each request took."""
    out = io.BytesIO()
    np.save(out, np.random.default_rng(0).normal(size=WIDTH).astype(np.float32))
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/octet-stream"}
    async with aiohttp.ClientSession(url, headers=headers, connector=aiohttp.TCPConnector(limit=0)) as session:

        async def client(until: float) -> list[float]:
            took = []
            while (began := time.perf_counter()) < until:
                async with session.post("/v1/programs/network", data=out.getvalue()) as response:
                    assert response.status == 200, await response.text()
                    await response.read()
                took.append(time.perf_counter() - began)
            return took

        async def all_of_them(duration: float) -> list[float]:
            until = time.perf_counter() + duration
            return [t for found in await asyncio.gather(*[client(until) for _ in range(clients)]) for t in found]

        await all_of_them(seconds / 2)  # every size of batch is compiled
        return await all_of_them(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    rates = {}
    print("| requests of one call | requests a second | median (ms) | p99 (ms) |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        publish(pathlib.Path(folder))
        for batch in (1, 32):
            with host(pathlib.Path(folder), batch) as url:
                took = asyncio.run(measure(url, options.clients, options.seconds))
            rates[batch] = len(took) / options.seconds
            median, p99 = (1e3 * float(np.percentile(took, q)) for q in (50, 99))
            print(f"| {batch} | {rates[batch]:.0f} | {median:.1f} | {p99:.1f} |", flush=True)
    print(f"\nBatches answer {rates[32] / rates[1]:.1f} times as many.")


if __name__ == "__main__":
    main()
