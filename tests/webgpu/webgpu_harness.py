"""Runs loop-IR programs on NumPy arrays through wgpu-py."""

import functools
import json
import os

import numpy as np
from kernel_harness import NUMPY
from weft_wasm.emit_wgsl import DEFAULT_LIMITS, compile_webgpu
from weft_wasm.ir.nodes import Program

SUPPORTED = ["bool", "i8", "u8", "i16", "u16", "i32", "u32", "f32", "f16", "bf16"]


@functools.cache
def device():
    os.environ.setdefault("XDG_RUNTIME_DIR", "/tmp")
    from weft_wasm.runtimes.wgpu_device import WgpuDevice

    return WgpuDevice()


def run_webgpu(
    program: Program, *inputs: np.ndarray, features=(), schedule=True, limits=DEFAULT_LIMITS
) -> list[np.ndarray]:
    """Outputs of the compiled program; all its memory is given back. features and schedule are of the Wasm harness,
    and ignored.
    """
    d = device()
    before = d.stats()["allocated"]
    loaded = d.load(compile_webgpu(program, limits))
    handles = []
    for b, x in zip(program.inputs, inputs, strict=True):
        data = np.ascontiguousarray(x, NUMPY[b.dtype]).tobytes()
        handles.append(d.alloc(len(data)))
        d.write(handles[-1], data)
    outputs = d.run(loaded, handles)
    parts = [d.read(h, b.nbytes) for h, b in zip(outputs, program.outputs, strict=True)]
    for h in handles + outputs:
        d.free(h)
    d.unload(loaded)
    assert d.stats()["allocated"] == before
    return [np.frombuffer(data, NUMPY[b.dtype]).reshape(b.shape) for data, b in zip(parts, program.outputs)]


def kernels(program: Program, limits=DEFAULT_LIMITS) -> list[str]:
    """The WGSL of the compiled program."""
    return [k["wgsl"] for k in plan_of(program, limits)["kernels"]]


def plan_of(program: Program, limits=DEFAULT_LIMITS) -> dict:
    return json.loads(compile_webgpu(program, limits).code)
