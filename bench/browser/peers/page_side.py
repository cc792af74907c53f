"""What bench/browser/peers/page.mjs asks of Python in the playground's worker; answers go out as messages of the
type "bench".
"""

import os
import time
from typing import Any

import js
import weft
import weft.numpy as jnp
import workloads
from pyodide.ffi import to_js


def _answer(value: Any) -> None:
    js.postMessage(to_js({"type": "bench", "value": value}, dict_converter=js.Object.fromEntries))


def prepare(name: str, inputs: list[dict]) -> None:
    """Inputs are files of float32 in the current directory, each taken away once read. Answers with the results."""
    arrays = []
    for spec in inputs:
        with open(spec["file"], "rb") as f:
            arrays.append(jnp.frombuffer(f.read(), dtype=jnp.float32).reshape(spec["shape"]))
        os.remove(spec["file"])
    outs = []
    for x in workloads.prepare(name, arrays):
        data = memoryview(weft.device_get(x)).cast("B")
        copy = js.Uint8Array.new(data.nbytes)
        copy.assign(data)
        outs.append(js.Float32Array.new(copy.buffer))
    _answer(outs)


def measure(name: str, calls: int) -> None:
    _answer(workloads.measure(name, calls))


def forget(name: str) -> None:
    workloads.forget(name)
    _answer(None)


def empty_call(calls: int) -> None:
    """Time in ms of a call from Python of a WebAssembly function that does nothing."""
    module = js.WebAssembly.Module.new(
        to_js(bytes.fromhex("0061736d01000000010401600000030201000705010166000 00a040102000b".replace(" ", "")))
    )
    f = js.WebAssembly.Instance.new(module).exports.f
    start = time.perf_counter()
    for _ in range(calls):
        f()
    _answer((time.perf_counter() - start) * 1e3 / calls)
