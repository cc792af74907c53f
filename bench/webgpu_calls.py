"""What a jit call of a tiny function takes on WebGPU on the desktop: from Python to the submit of its commands, and the
submit; and the same commands by wgpu-py's own objects, and by the functions under them, in the same run.

python bench/webgpu_calls.py
"""

import statistics
import time

import weft
import weft.numpy as jnp
import wgpu
from weft_wasm.runtimes import wgpu_commands
from weft_wasm.runtimes.wgpu_device import USAGE

ROUNDS, CALLS = 15, 300
KERNEL = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < 8) { y[id.x] = x[id.x] + 1; }
}
"""


class Timed:
    """The functions of wgpu-native that commands use, with the seconds that submits take."""

    def __init__(self, functions):
        self.submit, self.seconds = functions.wgpuQueueSubmit, 0.0
        self.wgpuCommandEncoderFinish = functions.wgpuCommandEncoderFinish

    def wgpuQueueSubmit(self, *args):
        before = time.perf_counter()
        self.submit(*args)
        self.seconds += time.perf_counter() - before


def microseconds(call, wait, timed):
    """(outside of submits, in them): medians of a call."""
    before, submits = [], []
    for _ in range(ROUNDS):
        timed.seconds, start = 0.0, time.perf_counter()
        for _ in range(CALLS):
            call()
        whole = time.perf_counter() - start
        wait()
        before.append((whole - timed.seconds) / CALLS * 1e6)
        submits.append(timed.seconds / CALLS * 1e6)
    return statistics.median(before), statistics.median(submits)


def alone(device):
    """The same kernel without weft, with a bind group that is made once: (by objects, by functions, a wait)."""
    buffers = [device.create_buffer(size=64, usage=USAGE) for _ in range(2)]
    module = device.create_shader_module(code=KERNEL)
    pipeline = device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "main"})
    entries = [{"binding": k, "resource": {"buffer": b}} for k, b in enumerate(buffers)]
    group = device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)

    def by_objects():
        encoder = device.create_command_encoder()
        compute = encoder.begin_compute_pass()
        compute.set_pipeline(pipeline)
        compute.set_bind_group(0, group)
        compute.dispatch_workgroups(1)
        compute.end()
        device.queue.submit([encoder.finish()])

    def by_functions():
        commands = wgpu_commands.Commands(device)
        commands.dispatch(pipeline, group, (1, 1, 1))
        commands.submit()

    return by_objects, by_functions, lambda: device.queue.read_buffer(buffers[1])


def main():
    device = weft.devices("webgpu")[0]
    own = device.backend.runtime.device.device
    timed = wgpu_commands.libf = Timed(wgpu_commands.libf)
    tiny = weft.jit(lambda x: x + 1)
    x = weft.device_put(jnp.arange(8.0), device)

    def call():
        nonlocal x
        x = tiny(x)

    call()
    before, submit = microseconds(call, lambda: x.block_until_ready(), timed)
    by_objects, by_functions, read = alone(own)
    objects, _ = microseconds(by_objects, read, timed)
    functions = sum(microseconds(by_functions, read, timed))
    print(f"wgpu {wgpu.__version__}, {device.device_kind}")
    print(f"weft.jit(lambda x: x + 1): {before:.0f} us from Python to the submit, {submit:.0f} us in it")
    print(f"its commands alone, with the submit: {objects:.0f} us by wgpu-py's objects, {functions:.0f} by functions")


if __name__ == "__main__":
    main()
