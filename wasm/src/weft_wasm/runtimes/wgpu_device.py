"""Runs WebGPU artifacts in Python, through wgpu-py: buffers, pipelines, and the plan as one submit. Needs no NumPy."""

from __future__ import annotations

import json
import re
import struct
import time
import weakref
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import wgpu

from weft.base.errors import BackendError

from weft_wasm.artifact import Artifact, ArtifactError
from weft_wasm.runtimes.memory import DeviceMemoryError, Turns, exclusive
from weft_wasm.runtimes.interface import BytesFunction, Call, DeviceLost, unloading
from weft_wasm.runtimes.wgpu_commands import Commands

if TYPE_CHECKING:
    from typing_extensions import Buffer

ALIGN = 64
KEEP = 256 << 20  # bytes of free buffers that are kept
GROUPS = 1024  # bind groups of a program that are kept
FIRST_BATCH = 4  # iterations of a loop until its flag is read for the first time
MOST_LAUNCHES = 512  # kernels, until it is read again
BATCH_SECONDS = 0.02  # a batch that takes so long grows no further: whoever stops the program waits for its end
LIMITS = (
    "maxBufferSize",
    "maxStorageBufferBindingSize",
    "maxStorageBuffersPerShaderStage",
    "maxComputeWorkgroupsPerDimension",
)
USAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
LOST = "device is lost"  # in what wgpu-native says of it
P = ParamSpec("P")
T = TypeVar("T")
Step = dict[str, Any]  # of a plan (docs/artifact.md), or a kernel in it
_BINDING = re.compile(r"@binding\((\d+)\) var<storage, (read|read_write)>")


class NoAdapterError(RuntimeError):
    """This machine has no WebGPU adapter. Install a Vulkan driver (Debian's software one: libvulkan1 and
    mesa-vulkan-drivers), or use another platform.

    Example:
        >>> import weft
        >>> weft.devices("webgpu")  # doctest: +SKIP
        Traceback (most recent call last):
        weft_wasm.runtimes.wgpu_device.NoAdapterError: …
        >>> weft.devices("wasm")
        [WasmDevice(id=0)]
    """


def find_adapter(power: str) -> Any:
    """The best adapter of Vulkan, Metal or Direct3D. Raises NoAdapterError if there is none. (On OpenGL, wgpu gives
    wrong numbers.)
    """
    reason = "no driver was found"
    try:
        adapter = wgpu.gpu.request_adapter_sync(power_preference=power)
        if not adapter.info["backend_type"].startswith("OpenGL"):
            return adapter
        reason = "there is only OpenGL, which can't run compute kernels reliably"
    except (RuntimeError, OSError) as e:
        reason = str(e)
    raise NoAdapterError(
        f"there is no WebGPU adapter here: {reason}. Install a Vulkan driver, for example Debian's libvulkan1 and "
        "mesa-vulkan-drivers, or use another platform."
    )


@dataclass(slots=True, weakref_slot=True)
class Pipeline:
    """A compiled kernel, and the layout of its bindings."""

    compute: Any
    layout: Any


@dataclass(slots=True)
class DeviceBuffer:
    """A buffer, and a number that no other one of the device has had."""

    gpu: Any
    size: int
    number: int


@dataclass(slots=True)
class Loaded:
    """An artifact in a device: its plan, pipelines by kernel, buffers of constants by number in the plan, and bind
    groups by kernel and buffers: the buffers of small arrays come round again soon.
    """

    artifact: Artifact
    plan: dict[str, Any]
    pipelines: list[Pipeline]
    constants: dict[int, int]
    iota: Any | None
    functions: Sequence[BytesFunction]
    groups: dict[tuple[int, ...], Any] = field(default_factory=dict)

    def group(self, device: Any, kernel: int, buffers: Sequence[DeviceBuffer]) -> Any:
        key = kernel, *[buffer.number for buffer in buffers]
        found = self.groups.get(key)
        if found is None:
            if len(self.groups) == GROUPS:
                self.groups.clear()
            entries = [{"binding": k, "resource": {"buffer": buffer.gpu}} for k, buffer in enumerate(buffers)]
            found = device.create_bind_group(layout=self.pipelines[kernel].layout, entries=entries)
            self.groups[key] = found
        return found


class WgpuDevice:
    """One WebGPU device. Handles are ints; work is queued in order, and only `read` waits.

    >>> device = WgpuDevice()
    >>> p = device.alloc(8)
    >>> device.write(p, b"12345678")
    >>> device.read(p, 4)
    b'1234'
    >>> device.free(p)
    """

    def __init__(self, power: str = "high-performance", first: int = 1):
        self.adapter = find_adapter(power)
        wanted = {_dashed(name): self.adapter.limits[_dashed(name)] for name in LIMITS}
        self.device = self.adapter.request_device_sync(required_limits=wanted)
        self.queue = self.device.queue
        self.limits: dict[str, int] = {name: self.device.limits[_dashed(name)] for name in LIMITS}
        self.lock = Turns()
        self.submits = 0
        self.allocated = self.peak = self.pooled = 0
        self._buffers: dict[int, DeviceBuffer] = {}
        self._created = 0
        self._pool: dict[int, list[DeviceBuffer]] = {}  # free buffers by exact size
        # of loaded programs, by WGSL
        self._pipelines: weakref.WeakValueDictionary[str, Pipeline] = weakref.WeakValueDictionary()
        self._layouts: dict[tuple[str, ...], tuple[Any, Any]] = {}
        self.first = self._next = first  # handle
        self._sentinel = self._create(ALIGN)

    @property
    def next_handle(self) -> int:
        """Which no buffer of this device has had."""
        return self._next

    @property
    def name(self) -> str:
        """The adapter's name for itself."""
        return self.adapter.info.get("device") or self.adapter.info.get("description") or "WebGPU"

    # ---- buffers

    @exclusive
    def alloc(self, nbytes: int) -> int:
        """A buffer of at least nbytes. Raises DeviceMemoryError if the device can't bind one of that size."""
        size = max(ALIGN, -(-nbytes // ALIGN) * ALIGN)
        limit = min(self.limits["maxBufferSize"], self.limits["maxStorageBufferBindingSize"])
        if size > limit:
            raise DeviceMemoryError(
                f"a buffer of {nbytes} bytes is larger than this WebGPU device allows ({limit}). "
                "Split the array, or use the wasm or cpu backend."
            )
        free = self._pool.get(size)
        if free:
            buffer = free.pop()
            self.pooled -= size
        else:
            buffer = self._create(size)
        handle, self._next = self._next, self._next + 1
        self._buffers[handle] = buffer
        self.allocated += size
        self.peak = max(self.peak, self.allocated)
        return handle

    def _create(self, size: int) -> DeviceBuffer:
        try:
            self._created += 1
            return DeviceBuffer(self.device.create_buffer(size=size, usage=USAGE), size, self._created)
        except wgpu.GPUError as e:
            raise DeviceMemoryError(
                f"the WebGPU device has no room for {size} bytes ({e}). Delete arrays that are no longer needed."
            ) from None

    @exclusive
    def free(self, handle: int) -> None:
        buffer = self._buffers.pop(handle, None)
        if buffer is None:
            raise ValueError(f"buffer {handle} is not allocated (freed twice?)")
        self.allocated -= buffer.size
        if self.pooled + buffer.size > KEEP:
            buffer.gpu.destroy()
        else:
            self._pool.setdefault(buffer.size, []).append(buffer)
            self.pooled += buffer.size

    def release(self, handle: int) -> None:
        """Frees a buffer at the next turn; for finalisers."""
        self.lock.later(self.free, handle)

    def _buffer(self, handle: int) -> DeviceBuffer:
        try:
            return self._buffers[handle]
        except KeyError:
            raise ValueError(f"buffer {handle} is not allocated (freed or donated?)") from None

    @exclusive
    def write(self, handle: int, data: Buffer) -> None:
        """Queues a copy of a bytes-like object into the buffer."""
        view = memoryview(data).cast("B") if memoryview(data).nbytes else memoryview(b"")
        if len(view) > self._buffer(handle).size:
            raise ValueError(f"{len(view)} bytes don't fit into the {self._buffer(handle).size} of buffer {handle}")
        if len(view) % 4:
            view = memoryview(bytes(view) + bytes(-len(view) % 4))
        if len(view):
            self.queue.write_buffer(self._buffer(handle).gpu, 0, view)

    @exclusive
    def read(self, handle: int, nbytes: int) -> bytes:
        """A copy of device bytes, after everything that was queued."""
        if nbytes > self._buffer(handle).size:
            raise ValueError(f"buffer {handle} has {self._buffer(handle).size} bytes, {nbytes} asked for")
        return self._read(self._buffer(handle), nbytes)

    def _read(self, buffer: DeviceBuffer, nbytes: int, offset: int = 0) -> bytes:
        if nbytes == 0:
            return b""
        return bytes(self.queue.read_buffer(buffer.gpu, offset, -(-nbytes // 4) * 4)[:nbytes])

    # ---- programs

    @exclusive
    def load(self, artifact: Artifact | bytes, functions: Sequence[BytesFunction] = ()) -> Loaded:
        """Makes (or finds) the pipelines and copies the constants. functions: the host functions that the program
        calls.
        """
        if not isinstance(artifact, Artifact):
            artifact = Artifact.from_bytes(artifact)
        artifact.check()
        if artifact.kind != "webgpu":
            raise ValueError(f"a {artifact.kind} artifact can't run on a WebGPU device; compile the program for webgpu")
        if len(artifact.metadata.get("calls", ())) != len(functions):
            raise ValueError(
                f"{artifact.name} calls {len(artifact.metadata.get('calls', ()))} functions of the host,"
                f" {len(functions)} are given"
            )
        plan = json.loads(artifact.code)
        most = self.limits["maxComputeWorkgroupsPerDimension"]
        for step in steps_of(plan["steps"]):
            if step["op"] == "dispatch" and max(step["groups"]) > most:
                groups = " x ".join(map(str, step["groups"]))
                raise ArtifactError(
                    f"{artifact.name} runs {groups} workgroups, this WebGPU device at most {most} in a row: compile it"
                    " for this device"
                )
        pipelines = [self._pipeline(artifact.name, kernel) for kernel in plan["kernels"]]
        constants = {}
        for k, spec in enumerate(plan["buffers"]):
            if spec["role"] == "constant":
                constants[k] = self.alloc(spec["bytes"])
                self.write(constants[k], artifact.constants[spec["offset"] : spec["offset"] + spec["bytes"]])
        count = max(
            (step["count"] for step in steps_of(plan["steps"]) if step["op"] == "loop" and step["counter"] is not None),
            default=0,
        )
        iota = (
            self.device.create_buffer_with_data(
                data=array("i", range(count)).tobytes(), usage=wgpu.BufferUsage.COPY_SRC
            )
            if count
            else None
        )
        return Loaded(artifact, plan, pipelines, constants, iota, functions)

    def unload_later(self, loaded: Loaded) -> None:
        """Unloads a program at the next turn; for finalisers."""
        self.lock.later(self.unload, loaded)

    @exclusive
    def unload(self, loaded: Loaded) -> None:
        """Frees the constants, and the pipelines that no other program shares."""
        for handle in loaded.constants.values():
            self.free(handle)
        loaded.constants, loaded.pipelines, loaded.groups = {}, [], {}

    def _pipeline(self, program: str, kernel: Step) -> Pipeline:
        key = f"{kernel['entry']}\n{kernel['wgsl']}"
        made = self._pipelines.get(key)
        if made is None:
            access = tuple(a for _, a in sorted((int(k), a) for k, a in _BINDING.findall(kernel["wgsl"])))
            layout = self._layouts.get(access)
            if layout is None:
                kinds = {"read": wgpu.BufferBindingType.read_only_storage, "read_write": wgpu.BufferBindingType.storage}
                entries = [
                    {"binding": k, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": kinds[a]}}
                    for k, a in enumerate(access)
                ]
                group = self.device.create_bind_group_layout(entries=entries)
                layout = self._layouts[access] = group, self.device.create_pipeline_layout(bind_group_layouts=[group])
            try:
                module = self.device.create_shader_module(code=kernel["wgsl"])
                pipeline = self.device.create_compute_pipeline(
                    layout=layout[1], compute={"module": module, "entry_point": kernel["entry"]}
                )
            except wgpu.GPUError as e:
                raise RuntimeError(
                    f"program {program}: the WebGPU device refused a kernel: {e}\n{kernel['wgsl']}"
                ) from None
            made = self._pipelines[key] = Pipeline(pipeline, layout[0])
        return made

    @exclusive
    def run(self, loaded: Loaded, inputs: list[int], donated: frozenset[int] | set[int] = frozenset()) -> list[int]:
        """Queues the program and returns the handles of fresh outputs. donated: input indices whose buffers the
        caller gives away.
        """
        specs = loaded.artifact.metadata
        if len(inputs) != len(specs["inputs"]):
            raise ValueError(f"{loaded.artifact.name} takes {len(specs['inputs'])} inputs, got {len(inputs)}")
        outputs: list[int] = []
        temps: list[int] = []
        try:
            outputs += [self.alloc(spec["bytes"]) for spec in specs["outputs"]]
            buffers = []
            for k, spec in enumerate(loaded.plan["buffers"]):
                match spec["role"]:
                    case "input":
                        handle = inputs[spec["index"]]
                    case "output":
                        handle = outputs[spec["index"]]
                    case "constant":
                        handle = loaded.constants[k]
                    case _:
                        handle = self.alloc(spec["bytes"])
                        temps.append(handle)
                buffers.append(self._buffer(handle))
            run = _Run(self, loaded, buffers)
            try:
                run.steps(loaded.plan["steps"])
                if run.commands.pending:
                    run.submit()
            finally:
                run.commands.drop()
        except BaseException:
            for handle in outputs:
                self.free(handle)
            raise
        finally:
            for handle in temps:
                self.free(handle)
        for handle in {inputs[k] for k in donated}:
            self.free(handle)
        return outputs

    @exclusive
    def wait(self) -> None:
        """Returns when everything queued has run (reading is in order with it; wgpu-py 0.32 can't call
        on_submitted_work_done).
        """
        self._read(self._sentinel, 4)

    @exclusive
    def stats(self) -> dict[str, int]:
        """Bytes in use by arrays and constants, their peak, and bytes of free buffers that are kept."""
        return {"allocated": self.allocated, "peak": self.peak, "free": self.pooled}


class _Run:
    """One run: the commands encoded since the last submit."""

    def __init__(self, device: WgpuDevice, loaded: Loaded, buffers: list[DeviceBuffer]):
        self.device, self.loaded, self.buffers = device, loaded, buffers
        self.commands = Commands(device.device)
        self.groups: dict[int, Any] = {}  # bind groups by id of the steps that this run has encoded

    def steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            match step["op"]:
                case "dispatch":
                    self.dispatch(step)
                case "copy":
                    src, dst = self.buffers[step["src"]], self.buffers[step["dst"]]
                    offsets = step.get("srcOffset", 0), step.get("dstOffset", 0)
                    self.commands.copy(src.gpu, offsets[0], dst.gpu, offsets[1], step["bytes"])
                case "loop":
                    self.loop(step)
                case "while":
                    self.repeat(step)
                case "switch" if step.get("gated"):
                    for branch in step["branches"]:
                        self.steps(branch)
                case "switch":
                    branches = step["branches"]
                    self.steps(branches[min(max(self.word(step["index"]), 0), len(branches) - 1)])
                case "call":
                    self.call(step)

    def dispatch(self, step: Step) -> None:
        kernel, group = step["kernel"], self.groups.get(id(step))
        if group is None:
            group = self.loaded.group(self.device.device, kernel, [self.buffers[b] for b in step["bind"]])
            self.groups[id(step)] = group
        self.commands.dispatch(self.loaded.pipelines[kernel].compute, group, step["groups"])

    def loop(self, step: Step) -> None:
        for k in range(step["count"]):
            if step["counter"] is not None:
                self.commands.copy(self.loaded.iota, 4 * k, self.buffers[step["counter"]].gpu, 0, 4)
            self.steps(step["body"])

    def repeat(self, step: Step) -> None:
        if step.get("gated"):
            return self.repeat_gated(step)
        while True:
            self.steps(step["cond"])
            if not self.word(step["flag"]):
                return
            self.steps(step["body"])

    def repeat_gated(self, step: Step) -> None:
        """Launches several iterations before it reads the flag: once that is 0, kernels of the body do nothing."""
        most = max(1, MOST_LAUNCHES // (1 + launches(step["cond"]) + launches(step["body"])))
        batch = min(FIRST_BATCH, most)
        while True:
            before = time.perf_counter()
            for _ in range(batch):
                self.steps(step["cond"])
                self.steps(step["body"])
            if not self.word(step["flag"]):
                return
            if time.perf_counter() - before < BATCH_SECONDS:
                batch = min(2 * batch, most)

    def call(self, step: Step) -> None:
        """Submits, and calls a function on the current values of its arguments; its results are written before the
        commands that follow.
        """
        self.submit()
        arguments = [
            self.device._read(self.buffers[place["buffer"]], place["bytes"], place["offset"])
            for place in step["arguments"]
        ]
        for place, data in zip(step["results"], self.loaded.functions[step["number"]](arguments), strict=True):
            if data:
                self.device.queue.write_buffer(self.buffers[place["buffer"]].gpu, place["offset"], data)

    def word(self, number: int) -> int:
        """Submits, and reads the first i32 of a buffer of the plan."""
        self.submit()
        (value,) = struct.unpack("<i", self.device._read(self.buffers[number], 4))
        return int(value)

    def submit(self) -> None:
        self.commands.submit()
        self.device.submits += 1


def steps_of(steps: Sequence[Step]) -> Iterator[Step]:
    """All steps, those inside others too."""
    for step in steps:
        yield step
        for body in (step.get("body", ()), step.get("cond", ()), *step.get("branches", ())):
            yield from steps_of(body)


def launches(steps: Sequence[Step]) -> int:
    """About how many kernels steps launch."""
    count = 0
    for step in steps:
        match step["op"]:
            case "loop":
                count += step["count"] * launches(step["body"])
            case "switch":
                count += sum(map(launches, step["branches"]))
            case _:
                count += 1
    return count


def _dashed(name: str) -> str:
    return re.sub("[A-Z]", lambda m: "-" + m.group().lower(), name)


def noticing(method: Callable[P, T]) -> Callable[P, T]:
    """A method of a device that raises DeviceLost where it fails because the device is lost."""

    def call(*args: P.args, **named: P.kwargs) -> T:
        try:
            return method(*args, **named)
        except (wgpu.GPUError, MemoryError, RuntimeError) as e:
            if LOST in str(e).lower():
                raise DeviceLost("its driver has ended it") from None
            raise

    return call


class WgpuRuntime:
    """The runtime of `WebGpuBackend` on wgpu-py: buffers, and programs as calls."""

    def __init__(self) -> None:
        self._begin(WgpuDevice())

    def _begin(self, device: WgpuDevice) -> None:
        self.device = device
        self.kind, self.limits, self.first = device.name, device.limits, device.first
        self.alloc, self.write, self.read = noticing(device.alloc), noticing(device.write), noticing(device.read)
        self.wait, self.free, self.stats = noticing(device.wait), device.release, device.stats

    def renew(self) -> None:
        try:
            self._begin(WgpuDevice(first=self.device.next_handle))
        except (NoAdapterError, wgpu.GPUError) as e:
            raise BackendError(f"the WebGPU device was lost, and there is no other one: {e}") from None

    def load(self, artifact: Artifact, donated: Sequence[int] = (), functions: Sequence[BytesFunction] = ()) -> Call:
        """A function from input handles to output handles. functions: the host functions that the program calls."""
        device, given = self.device, frozenset(donated)
        loaded = noticing(device.load)(artifact, functions)
        run = noticing(device.run)
        return unloading(lambda handles: run(loaded, handles, given), device.unload_later, loaded)
