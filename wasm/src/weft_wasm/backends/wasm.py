"""The Wasm backend: compiles jaxprs to WebAssembly and runs them, under wasmtime or in the page that Python runs in."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import Any, Callable, Iterator, Sequence

from weft.base.annotations import override
from weft.base import collector, monitoring, source_info
from weft.base.config import config
from weft.base.avals import ShapedArray
from weft.core.jaxpr import Jaxpr, subjaxprs
from weft.base.errors import BackendError
from weft.base.host import to_bytes
from weft.runtime.backend import Capabilities, CompileOptions, FastCall, nothing

from weft_wasm.ir import nodes
from weft_wasm.ir.instances import runs
from weft_wasm.artifact import Artifact
from weft_wasm.backends.cache import Programs, programs_of
from weft_wasm.backends import kernel_times
from weft_wasm.backends.calls import Calls, WasmArray
from weft_wasm.backends.kernel_times import KernelTimer
from weft_wasm.runtimes.host_calls import perform_at
from weft_wasm.compile import KNOWN_FEATURES, compile_program, memory_plan
from weft_wasm.passes.buffers import Slot
from weft_wasm.passes.pipeline import After, verifying
from weft_wasm.lower.loop_nests import Module
from weft_wasm.lower.program import lower
from weft_wasm.lower.types import STORED, LoweringError, array_type
from weft_wasm.ir.addresses import LIMIT, LIMIT_64, WIDER, most_bytes
from weft_wasm.runtimes.interface import WasmRuntime
from weft_wasm.ir.text import describe

# the package weft_wasm
source_info.register_exclusion(os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep)


class WasmDevice:
    """The only device of the backend: a WebAssembly memory."""

    id, platform, process_index = 0, "wasm", 0

    def __init__(self, backend: WasmBackend, kind: str):
        self.backend, self.device_kind = backend, kind

    @override
    def __repr__(self) -> str:
        return "WasmDevice(id=0)"

    @property
    def threads(self) -> int:
        """How many threads share the long loops of programs now. In a page 1 unless it is cross-origin isolated, and
        until its workers have started.
        """
        return self.backend.runtime.threads

    @property
    def interruptible(self) -> bool:
        """Whether a program can be stopped while it runs. In a page only if it is cross-origin isolated, since the page
        has to reach the device's memory.
        """
        return self.backend.runtime.interruptible

    def memory_stats(self) -> dict[str, int]:
        """Bytes in use, their peak, and bytes that can still be allocated."""
        return self.backend.runtime.stats()


def _facts(device: WasmDevice) -> list[tuple[str, str]]:
    stops = "yes" if device.interruptible else "no: the page is not isolated"
    names = {"allocated": "Memory in use", "peak": "Peak of memory", "free": "Memory that is left"}
    sizes = [(names[key], f"{value:,} bytes") for key, value in device.memory_stats().items()]
    return [*sizes, ("Threads", str(device.threads)), ("Programs can be stopped", stops)]


class WasmBackend:
    """Arrays are addresses in the device's memory; a handle is such an address (an int)."""

    name, platforms, branches_of = "wasm", ("wasm",), ("cpu",)

    def __init__(self, runtime: WasmRuntime | None = None):
        self.runtime = runtime if runtime is not None else default_runtime()
        self.features = frozenset(self.runtime.features) & KNOWN_FEATURES
        self._devices = [WasmDevice(self, self.runtime.kind)]
        # receives each program and the output of each pass, which is verified if jaxprs are
        self.after: After | None = None
        self.calls = Calls(self, self._devices[0])
        self.capabilities = Capabilities(
            dtypes=STORED,
            array_type=WasmArray,
            apply=self.calls.apply,
            jit=self.jit,
            forget_calls=self.calls.eager.clear,
            facts=_facts,
            lowered_text=self.lowered_text,
            branches_of=self.branches_of,
            takes_compiler_options=True,
            times_kernels=True,
        )
        # the calls of arrays, without a method between
        self.read, self.release = self.runtime.read, self.runtime.free

    def devices(self, platform: str | None = None) -> list[WasmDevice]:
        if platform not in (None, "wasm"):
            raise BackendError(f"the wasm backend has no devices of platform {platform!r}; its platform is 'wasm'.")
        return self._devices

    def put(self, value: Any, aval: ShapedArray, device: WasmDevice, committed: bool) -> WasmArray:
        data = to_bytes(value)
        handle = self.runtime.alloc(data.nbytes)
        self.runtime.write(handle, data)
        return WasmArray(aval, handle, device, committed)

    def jit(
        self,
        fun: Callable[..., Any],
        miss: Callable[..., tuple[Any, Any]],
        static_argnums: Sequence[int],
        static_argnames: Sequence[str],
        name: str,
    ) -> FastCall:
        """A callable that runs known calls with little Python."""
        if static_argnums or static_argnames:
            return FastCall(lambda *args, **kwargs: miss(*args, **kwargs)[0], nothing)
        return self.calls.jit(miss)

    def is_ready(self, handle: int) -> bool:
        return True

    def wait(self, handle: int) -> None:
        """Programs run to their end before they return."""

    def compile(self, jaxpr: Jaxpr, device: WasmDevice, options: CompileOptions) -> WasmExecutable:
        timer = KernelTimer(waits=False) if kernel_times.wanted(self.name, options.options) else None
        programs = self.programs if timer is None else None
        key = programs.key(jaxpr, options.name, options.donated, self.features) if programs is not None else None
        artifact = programs.get(key) if programs is not None and key is not None else None
        if artifact is not None:
            return WasmExecutable(self, jaxpr, artifact, options)
        after = self.after or (verifying() if config.verify_jaxprs else None)
        marked = None if timer is None else timer.mark
        with collector.paused():
            forms = lower(jaxpr, options.name, options.donated, self.features)
            artifact = compile_program(forms[0], self.features, check=False, after=after, instrument=marked)
        needed, most = artifact.metadata["scratch"], most_bytes(self.features)
        if needed >= most:
            wider = f", or {WIDER}" if LIMIT <= needed < LIMIT_64 else ""
            raise LoweringError(
                f"{options.name} needs {needed} bytes for what it computes on the way: here WebAssembly addresses"
                f" {most >> 30} GiB. Compute in parts (weft.lax.map with batch_size), keep less for the derivative"
                f" (weft.checkpoint), or use the cpu backend{wider}."
            )
        if programs is not None and key is not None:
            programs.put(key, artifact)
        return WasmExecutable(self, jaxpr, artifact, options, forms, timer)

    @functools.cached_property
    def programs(self) -> Programs | None:
        """The artifacts of earlier visits, if the runtime stores them."""
        return programs_of(self.runtime)

    @staticmethod
    def write_page(*args: Any, **kwargs: Any) -> list[Path]:
        """Writes a program for pages without Python; see `weft_wasm.page`."""
        from weft_wasm.page import write_page

        return write_page(*args, **kwargs)

    def lowered_text(
        self,
        jaxpr: Jaxpr,
        device: WasmDevice,
        options: CompileOptions,
        dialect: str | None = None,
        *,
        debug_info: bool = False,
    ) -> str:
        """The program in loop IR (dialect None or "ir"), or its groups ("groups"); debug_info adds the user's line
        of each equation.
        """
        program, module = lower(jaxpr, options.name, (), self.features)
        text = text_of(dialect, jaxpr, program, module)
        return "\n".join([text, *source_lines(jaxpr)]) if debug_info else text


def source_lines(jaxpr: Jaxpr) -> Iterator[str]:
    """The origin of each equation: its scopes and the line of the user's code."""
    for eqn in jaxpr.eqns:
        scopes = "/".join(map(str, (*getattr(eqn.source_info, "names", ()), eqn.primitive.name)))
        yield f"; {scopes} at {eqn.source_info}"
        for inner in subjaxprs(eqn.params):
            yield from source_lines(inner)


class WasmExecutable:
    """A compiled program, loaded into the device."""

    def __init__(
        self,
        backend: WasmBackend,
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
        self.device = backend._devices[0]
        self.donated = tuple(k for k, d in enumerate(options.donated) if d)
        self.out_avals = [array_type(v) for v in jaxpr.outvars]
        functions: list[Callable[..., Any]] = (
            [functools.partial(perform_at, c, backend.runtime, self.device) for c in self.module.calls]
            if "calls" in artifact.metadata
            else []
        )
        if timer is not None:
            functions = [*functions, *timer.functions()]
        self.call = monitoring.recorded(
            monitoring.LOAD,
            backend.runtime.load,
            *((artifact, self.donated, functions) if functions else (artifact, self.donated)),
            fun_name=options.name,
        )

    @functools.cached_property
    def forms(self) -> tuple[nodes.Program, Module]:
        """The loop IR and how it was fused; made again for a program that an earlier visit compiled."""
        return lower(self.jaxpr, self.options.name, self.options.donated, self.backend.features)

    @property
    def program(self) -> nodes.Program:
        """The loop IR."""
        return self.forms[0]

    @property
    def module(self) -> Module:
        """How the program was fused."""
        return self.forms[1]

    def execute(self, args: Sequence[WasmArray]) -> list[WasmArray]:
        """Runs on arrays of this device. Donated ones are deleted."""
        handles = [x.handle for x in args]
        if None in handles:
            for x in args:
                x._live()
        if self.donated:
            self.check_donations(handles)
        outs = self.call(handles)
        for k in self.donated:
            args[k].handle = args[k]._cache = None
        device, committed = self.device, True in [x.committed for x in args]
        return [WasmArray(a, h, device, committed) for a, h in zip(self.out_avals, outs)]

    def check_donations(self, handles: list[int]) -> None:
        for k in self.donated:
            if handles.count(handles[k]) != 1:
                raise ValueError(
                    f"argument {k} of {self.artifact.name} is donated and also passed as another argument; donate a"
                    " copy, or do not donate it."
                )

    def as_text(self, stage: str | None = None) -> str:
        """None or "ir": the loop IR; "groups": which operations are fused; "jaxpr"; "wat": the module in WebAssembly's
        text format; "plan": where its temporary buffers lie, and when they are used.
        """
        if stage == "wat":
            from weft_wasm.binary.text import module_text  # pages fetch it when it is first asked for

            return module_text(self.artifact.code)
        if stage == "plan":
            return "\n".join(map(str, self.memory_plan()))
        return text_of(stage, self.jaxpr, self.program, self.module)

    def memory_plan(self) -> list[Slot]:
        """Where the temporary buffers lie in the program's memory. A program that an earlier visit compiled, is
        scheduled again for it.
        """
        return memory_plan(self.program)

    def as_bytes(self) -> bytes:
        """The artifact as a `.weft` container."""
        return self.artifact.to_bytes()

    def cost_analysis(self) -> dict[str, int]:
        """Sizes in bytes, and how many kernels there are."""
        return {
            "kernels": len(runs(self.program.body)),
            "code bytes": len(self.artifact.code),
            "constant bytes": len(self.artifact.constants),
        }

    def memory_analysis(self) -> dict[str, int]:
        """Bytes of arguments, results and scratch."""
        meta = self.artifact.metadata
        return {
            "argument_size_in_bytes": sum(s["bytes"] for s in meta["inputs"]),
            "output_size_in_bytes": sum(s["bytes"] for s in meta["outputs"]),
            "alias_size_in_bytes": sum(s["bytes"] for s in meta["outputs"] if s["alias"] is not None),
            "temp_size_in_bytes": meta["scratch"],
        }


def text_of(stage: str | None, jaxpr: Jaxpr, program: nodes.Program, module: Module) -> str:
    """A program in one of its intermediate forms."""
    if stage in (None, "ir"):
        return describe(program)
    if stage == "groups":
        return "\n".join(
            "\n".join("    " * depth + line for line in str(plan).splitlines()) for depth, plan in module.plans
        )
    if stage == "jaxpr":
        return str(jaxpr)
    raise ValueError(f"the wasm backend shows programs as 'ir', 'groups', 'jaxpr', 'plan' or 'wat', not {stage!r}.")


def default_runtime() -> WasmRuntime:
    """The page's runtime in Pyodide, wasmtime's elsewhere. Raises BackendError, with the reason, if there is none."""
    if sys.platform == "emscripten":
        try:
            from weft_wasm.runtimes.page import PyodideRuntime
        except ImportError as e:
            raise BackendError(
                f"this page doesn't offer a WebAssembly device ({e}); register @weft/runtime's page object as"
                " _weft_page, see web/CONTRACT.md."
            ) from e
        return PyodideRuntime()
    try:
        from weft_wasm.runtimes.desktop import DesktopRuntime
    except ImportError as e:
        raise BackendError(
            f"the wasm backend needs wasmtime outside a browser ({e}): pip install 'weft-wasm[wasmtime]'."
        ) from e
    return DesktopRuntime(memory64=os.environ.get("WEFT_WASM_MEMORY64", "0") != "0")


__all__ = ["WasmBackend", "WasmDevice", "WasmExecutable"]
