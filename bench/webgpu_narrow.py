"""Bools, integers of 8 bits and bfloat16 on WebGPU: what programs that give or take them cost.

    python bench/webgpu_narrow.py

Prints the least and the median time of 20 calls each, of an upload of 16 MiB, and the memory that 16 Mi numbers take.
Run it in two checkouts in turn to compare them.
"""

from __future__ import annotations

import statistics
import time

import numpy as np
import weft
import weft.numpy as jnp


def show(name: str, run) -> None:
    run()
    times = []
    for _ in range(20):
        start = time.perf_counter()
        weft.block_until_ready(run())
        times.append(time.perf_counter() - start)
    print(f"{name:30} least {min(times) * 1e3:8.2f} ms, median {statistics.median(times) * 1e3:8.2f} ms")


def main() -> None:
    device = weft.devices("webgpu")[0]
    print(device.device_kind)
    put = lambda x: weft.device_put(x, device)
    x, y = put(np.random.default_rng(0).standard_normal(1 << 20).astype(np.float32)), put(np.ones(16, np.float32))
    half = x.astype(jnp.bfloat16)
    for name, f, a in (
        ("16 > 0", lambda v: v > 0, y),
        ("1 Mi > 0", lambda v: v > 0, x),
        ("1 Mi to int8", lambda v: v.astype(jnp.int8), x),
        ("1 Mi to bfloat16", lambda v: v.astype(jnp.bfloat16), x),
        ("1 Mi bfloat16 times 2", lambda v: v * 2, half),
        ("sum of 1 Mi bfloat16", lambda v: v.astype(jnp.float32).sum(), half),
    ):
        compiled = weft.jit(f)
        show(name, lambda: compiled(a))
    host = np.ones(1 << 24, np.int8)
    show("upload of 16 Mi int8", lambda: put(host))
    before = device.memory_stats()["allocated"]
    kept = put(host)
    print(f"{kept.size >> 20} Mi int8 take {(device.memory_stats()['allocated'] - before) / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
