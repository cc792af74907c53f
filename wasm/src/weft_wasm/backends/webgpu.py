"""The WebGPU backend: compiles jaxprs to WGSL kernels and runs them, through wgpu-py or on the device of the page
that Python runs in.
"""

from __future__ import annotations

import json
import sys
from functools import cached_property, partial
from typing import Any, Callable, Mapping, Sequence

from weft.base.annotations import override
from weft.base import collector, dtypes, monitoring
from weft.base.avals import AbstractValue, ShapedArray
from weft.core.jaxpr import Jaxpr, subjaxprs
from weft.base.errors import BackendError
from weft.base.host import to_bytes
from weft.runtime.array import BufferArray
from weft.runtime.backend import Capabilities, CompileOptions

from weft_wasm.ir import nodes
from weft_wasm.artifact import Artifact
from weft_wasm.backends import kernel_times
from weft_wasm.backends.kernel_times import KernelTimer
from weft_wasm.backends.wasm import source_lines
from weft_wasm.backends.cache import Programs, programs_of
from weft_wasm.emit_wgsl import DEFAULT_LIMITS, WgslError, as_words, compile_webgpu, from_words, memory_plan
from weft_wasm.lower.types import Callback
from weft_wasm.lower.loop_nests import Module
from weft_wasm.runtimes.host_calls import perform
from weft_wasm.lower.program import lower
from weft_wasm.lower.types import STORED, LoweringError, array_type
from weft_wasm.passes.buffers import Slot
from weft_wasm.runtimes.interface import DeviceLost, GpuRuntime

WORD = 4
SMALL = 256  # bytes of an array that the backend keeps, should the device be lost: constants are in no variable
DTYPES = STORED - {"int64", "uint64", "float64", "complex128"}


class WebGpuDevice:
    """The only device of the backend."""

    id, platform, process_index = 0, "webgpu", 0

    def __init__(self, backend: WebGpuBackend, kind: str):
        self.backend, self.device_kind = backend, kind

    @override
    def __repr__(self) -> str:
        return "WebGpuDevice(id=0)"

    def memory_stats(self) -> dict[str, int]:
        """Bytes in use, their peak, and bytes of free buffers that are kept for reuse."""
        return self.backend.runtime.stats()


def _facts(device: WebGpuDevice) -> list[tuple[str, str]]:
    names = {"allocated": "Memory in use", "peak": "Peak of memory", "free": "Memory kept for reuse"}
    sizes = [(names[key], f"{value:,} bytes") for key, value in device.memory_stats().items()]
    limits = [(f"Limit {name}", f"{value:,}") for name, value in device.backend.runtime.limits.items()]
    return [("Adapter", device.device_kind), *sizes, *limits]


class WebGpuBackend:
    """Arrays are buffers of the device; a handle is the runtime's number of a buffer."""

    name, platforms = "webgpu", ("webgpu",)

    def __init__(self, runtime: GpuRuntime | None = None):
        self.runtime = runtime if runtime is not None else default_runtime()
        self._devices = [WebGpuDevice(self, self.runtime.kind)]
        self.capabilities = Capabilities(
            dtypes=DTYPES,
            lowered_text=self.lowered_text,
            takes_compiler_options=True,
            times_kernels=True,
            facts=_facts,
        )
        self.check = False  # verify programs between passes; tests turn it on
        self.small: dict[int, bytes] = {}  # handle → the bytes of small arrays of the host, such as constants
        self.generation = 0  # how many devices were lost
        self.reason = ""  # why the last of them was

    def devices(self, platform: str | None = None) -> list[WebGpuDevice]:
        if platform not in (None, "webgpu"):
            raise BackendError(f"the webgpu backend has no devices of platform {platform!r}; its platform is 'webgpu'.")
        return self._devices

    def put(self, value: Any, aval: ShapedArray, device: WebGpuDevice, committed: bool) -> BufferArray:
        refuse_wide(aval, "an array", "")
        data = memoryview(to_bytes(value))
        try:
            handle = self._upload(data)
        except DeviceLost as e:
            self.renew(e)
            handle = self._upload(data)
        if data.nbytes <= SMALL:
            self.small[handle] = bytes(data)
        return self.array(aval, handle, committed)

    def _upload(self, data: memoryview) -> int:
        handle = self.runtime.alloc(data.nbytes)
        self.runtime.write(handle, data)
        return handle

    def array(self, aval: ShapedArray, handle: int, committed: bool = False) -> BufferArray:
        return BufferArray(aval, handle, self._devices[0], committed)

    def read(self, handle: int, nbytes: int) -> bytes:
        try:
            if handle >= self.runtime.first:
                return self.runtime.read(handle, nbytes)
        except DeviceLost as e:
            self.renew(e)
        if handle not in self.small:
            raise self.lost("this array")
        return self.small[handle]

    def release(self, handle: int) -> None:
        self.small.pop(handle, None)
        if handle >= self.runtime.first:
            self.runtime.free(handle)

    def renew(self, reason: DeviceLost) -> None:
        """Goes on with a new device. Programs are loaded into it when they are called, arrays are lost."""
        self.runtime.renew()
        self.generation += 1
        self.reason = reason.reason
        self._devices[0].device_kind = self.runtime.kind

    def lost(self, what: str) -> BackendError:
        """The error of an array that was on a device that is lost."""
        return BackendError(
            f"{what} was lost with its WebGPU device ({self.reason}). Compute it again; there is a new device. Arrays"
            " that were read before, as by numpy.asarray, are still there."
        )

    def revived(self, arrays: Sequence[BufferArray]) -> list[int]:
        """The handles of arrays. Those whose device is lost, and of which there is a copy on the host, are uploaded
        again.
        """
        for k, x in enumerate(arrays):
            if x.handle is not None and x.handle < self.runtime.first:
                small = self.small.get(x.handle)
                if small is None and x._cache is None:
                    raise self.lost(f"argument {k}, {x.aval.str_short()},")
                data = to_bytes(x._cache) if small is None else memoryview(small)
                handle = self._upload(data)
                if small is not None:
                    self.small[handle] = self.small.pop(x.handle)
                x.handle = handle
        return [x._live() for x in arrays]

    def is_ready(self, handle: int) -> bool:
        return True

    def wait(self, handle: int) -> None:
        try:
            if handle >= self.runtime.first:
                return self.runtime.wait()
        except DeviceLost as e:
            self.renew(e)
        if handle not in self.small:
            raise self.lost("this array")

    def compile(self, jaxpr: Jaxpr, device: WebGpuDevice, options: CompileOptions) -> WebGpuExecutable:
        check_dtypes(jaxpr)
        timer = KernelTimer(waits=True) if kernel_times.wanted(self.name, options.options) else None
        programs, engine = self.programs if timer is None else None, ("webgpu", *map(str, self.runtime.limits.items()))
        key = programs.key(jaxpr, options.name, options.donated, engine) if programs is not None else None
        artifact = programs.get(key) if programs is not None and key is not None else None
        if artifact is not None:
            return WebGpuExecutable(self, jaxpr, artifact, options)
        with collector.paused():
            forms = lower(jaxpr, options.name, plain=True)
            program = forms[0] if timer is None else timer.mark(forms[0])
            artifact = compiled(program, self.runtime.limits, self.check)
        if programs is not None and key is not None:
            programs.put(key, artifact)
        return WebGpuExecutable(self, jaxpr, artifact, options, forms, timer)

    @staticmethod
    def page_program(jaxpr: Jaxpr, name: str, arguments: Sequence[str]) -> Artifact:
        """A program for the WebGPU devices of pages, of whatever machine. arguments: the names of its leading ones.
        Raises LoweringError, whose first argument can be shown to anybody, for programs that they can't run.
        """
        check_dtypes(jaxpr, arguments)
        return compiled(lower(jaxpr, name, plain=True)[0], DEFAULT_LIMITS)

    @cached_property
    def programs(self) -> Programs | None:
        """The artifacts of earlier visits, if the runtime stores them."""
        return programs_of(self.runtime)

    def lowered_text(
        self,
        jaxpr: Jaxpr,
        device: WebGpuDevice,
        options: CompileOptions,
        dialect: str | None = None,
        *,
        debug_info: bool = False,
    ) -> str:
        """The program in loop IR (dialect None or "ir"), or its groups ("groups"); debug_info adds the user's line
        of each equation.
        """
        program, module = lower(jaxpr, options.name, plain=True)
        text = text_of(dialect, jaxpr, program, module, None)
        return "\n".join([text, *source_lines(jaxpr)]) if debug_info else text


class WebGpuExecutable:
    """A compiled program, loaded into the device."""

    def __init__(
        self,
        backend: WebGpuBackend,
        jaxpr: Jaxpr,
        artifact: Artifact,
        options: CompileOptions,
        forms: tuple[nodes.Program, Module] | None = None,
        timer: KernelTimer | None = None,
    ):
        self.backend, self.jaxpr, self.artifact, self.options = backend, jaxpr, artifact, options
        self.timer = timer
        if forms is not None:
            self.forms = forms
        self.donated = tuple(k for k, d in enumerate(options.donated) if d)
        self.out_avals = [array_type(v) for v in jaxpr.outvars]
        try:
            self.load()
        except DeviceLost as e:
            backend.renew(e)
            self.load()

    def load(self) -> None:
        """Loads the program into the device that there is."""
        functions: list[Callable[..., Any]] = (
            [partial(on_words, c, self.backend.devices()[0]) for c in self.module.calls]
            if "calls" in self.artifact.metadata
            else []
        )
        if self.timer is not None:
            functions = [*functions, *self.timer.functions()]
        self.call = monitoring.recorded(
            monitoring.LOAD,
            self.backend.runtime.load,
            *((self.artifact, self.donated, functions) if functions else (self.artifact, self.donated)),
            fun_name=self.options.name,
        )
        self.generation = self.backend.generation

    @cached_property
    def forms(self) -> tuple[nodes.Program, Module]:
        """The loop IR and how it was fused; made again for a program that an earlier visit compiled."""
        return lower(self.jaxpr, self.options.name, plain=True)

    @property
    def program(self) -> nodes.Program:
        """The loop IR."""
        return self.forms[0]

    @property
    def module(self) -> Module:
        """How the program was fused."""
        return self.forms[1]

    def execute(self, args: Sequence[BufferArray]) -> list[BufferArray]:
        """Queues the program on arrays of this device. Donated ones are deleted."""
        handles = [x._live() for x in args]
        for k in self.donated:
            if handles.count(handles[k]) != 1:
                raise ValueError(
                    f"argument {k} of {self.artifact.name} is donated and also passed as another argument; donate a"
                    " copy, or do not donate it."
                )
        if self.backend.generation:  # a device was lost before
            outs = self._call_again(args)
        else:
            try:
                outs = self.call(handles)
            except DeviceLost as e:
                self.backend.renew(e)
                outs = self._call_again(args)
        for k in self.donated:
            self.backend.small.pop(args[k].handle, None)
            args[k].handle = args[k]._cache = None
        committed = any(x.committed for x in args)
        return [self.backend.array(a, h, committed) for a, h in zip(self.out_avals, outs)]

    def _call_again(self, args: Sequence[BufferArray]) -> list[int]:
        """A call after a device was lost, and again if this one is lost meanwhile."""
        try:
            return self._call_here(args)
        except DeviceLost as e:
            self.backend.renew(e)
            return self._call_here(args)

    def _call_here(self, args: Sequence[BufferArray]) -> list[int]:
        if self.generation != self.backend.generation:
            self.load()
        return self.call(self.backend.revived(args))

    def as_text(self, stage: str | None = None) -> str:
        """None or "ir": the loop IR; "wgsl": the kernels; "plan": buffers and steps; "groups": which operations are
        fused; "jaxpr".
        """
        return text_of(stage, self.jaxpr, self.program, self.module, self.artifact)

    def memory_plan(self) -> list[Slot]:
        """Where the temporary buffers lie in the program's memory; planned again for it."""
        return memory_plan(self.program, self.backend.runtime.limits)

    def as_bytes(self) -> bytes:
        """The artifact as a `.weft` container."""
        return self.artifact.to_bytes()

    def cost_analysis(self) -> dict[str, int]:
        """Sizes in bytes, and how many kernels there are."""
        return {
            "kernels": len(json.loads(self.artifact.code)["kernels"]),
            "code bytes": len(self.artifact.code),
            "constant bytes": len(self.artifact.constants),
        }

    def memory_analysis(self) -> dict[str, int]:
        """Bytes of arguments, results and scratch."""
        meta = self.artifact.metadata
        return {
            "argument_size_in_bytes": sum(s["bytes"] for s in meta["inputs"]),
            "output_size_in_bytes": sum(s["bytes"] for s in meta["outputs"]),
            "alias_size_in_bytes": 0,
            "temp_size_in_bytes": meta["scratch"],
        }


def on_words(call: Callback, device: WebGpuDevice, words: Sequence[bytes]) -> list[bytes]:
    """The host functions that a program calls, on arrays in the form that they have on the device."""
    size = lambda aval: WORD if dtypes.is_complex(aval.dtype) else dtypes.itemsize(aval.dtype)
    arguments = [from_words(data, size(a)) for data, a in zip(words, call.ins)]
    return [as_words(data, len(data) // size(a) * WORD) for data, a in zip(perform(call, device, arguments), call.outs)]


def text_of(stage: str | None, jaxpr: Jaxpr, program: nodes.Program, module: Module, artifact: Artifact | None) -> str:
    """A program in one of its intermediate forms."""
    if stage in (None, "ir"):
        return repr(program)
    if stage == "groups":
        return "\n".join(
            "\n".join("    " * depth + line for line in str(plan).splitlines()) for depth, plan in module.plans
        )
    if stage == "jaxpr":
        return str(jaxpr)
    if artifact is not None and stage in ("wgsl", "plan"):
        plan = json.loads(artifact.code)
        if stage == "wgsl":
            return "\n".join(f"// kernel {k}\n{kernel['wgsl']}" for k, kernel in enumerate(plan["kernels"]))
        return "\n".join(json.dumps(part) for part in (*plan["buffers"], *plan["steps"]))
    raise ValueError(f"the webgpu backend shows programs as 'ir', 'wgsl', 'plan', 'groups' or 'jaxpr', not {stage!r}.")


def compiled(program: nodes.Program, limits: Mapping[str, int], check: bool = False) -> Artifact:
    try:
        return compile_webgpu(program, limits, check=check)
    except WgslError as e:
        raise LoweringError(str(e)) from None


def check_dtypes(jaxpr: Jaxpr, arguments: Sequence[str] = ()) -> None:
    """LoweringError for the first operation on a dtype that WebGPU devices do not have, naming it and the user's
    line. arguments: names of the leading ones.
    """
    for k, v in enumerate(jaxpr.invars):
        refuse_wide(v.aval, arguments[k] if k < len(arguments) else f"argument {k}", "")
    for eqn in jaxpr.eqns:
        for atom in (*eqn.invars, *eqn.outvars):
            refuse_wide(atom.aval, eqn.primitive.name, f" At {eqn.source_info}")
        for inner in subjaxprs(eqn.params):
            check_dtypes(inner)


def refuse_wide(aval: AbstractValue, who: str, where: str) -> None:
    if not isinstance(aval, ShapedArray):
        return
    name = dtypes.name(aval.dtype)
    if not dtypes.is_key(aval.dtype) and dtypes.itemsize(aval.dtype) > WORD and name != "complex64":
        raise LoweringError(
            f"{who} has dtype {name} ({aval.str_short()}), which WebGPU devices do not have",
            f": convert to a 32-bit dtype (x.astype('{_narrower(name)}')), or use the wasm or cpu backend.{where}",
        )


def _narrower(name: str) -> str:
    return "complex64" if name == "complex128" else "float32" if name.startswith("float") else name.replace("64", "32")


def default_runtime() -> GpuRuntime:
    """The page's runtime in Pyodide, wgpu-py's elsewhere. Raises BackendError, with the reason, if there is none."""
    if sys.platform == "emscripten":
        try:
            from weft_wasm.runtimes.page_gpu import PyodideGpu
        except ImportError as e:
            raise BackendError(
                f"this page doesn't offer a WebGPU device ({e}); register @weft/runtime's page object as _weft_page, "
                "see web/CONTRACT.md."
            ) from e
        return PyodideGpu()
    try:
        from weft_wasm.runtimes.wgpu_device import NoAdapterError, WgpuRuntime
    except ImportError as e:
        raise BackendError(
            f"the webgpu backend needs wgpu outside a browser ({e}): pip install 'weft-wasm[webgpu]'."
        ) from e
    try:
        return WgpuRuntime()
    except NoAdapterError as e:
        raise BackendError(str(e)) from None


__all__ = ["WebGpuBackend", "WebGpuDevice", "WebGpuExecutable"]
