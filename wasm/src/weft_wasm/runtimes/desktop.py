"""wasmtime as the runtime of the backend."""

from __future__ import annotations

from collections.abc import Sequence

from weft_wasm.artifact import Artifact
from weft_wasm.runtimes.interface import Call, HostFunction, unloading
from weft_wasm.runtimes.wasmtime_device import WasmtimeDevice


class DesktopRuntime:
    """The runtime of `WasmBackend` on wasmtime: memory, and programs as calls."""

    kind, interruptible = "wasmtime", True

    def __init__(
        self, threads: int = 1, limit: int | None = None, memory64: bool = False, patience: float | None = None
    ) -> None:
        self.features = ("simd128", "relaxed-simd", *(("memory64",) if memory64 else ()))
        self.device, self.threads = WasmtimeDevice(limit, threads, memory64, patience), threads
        self.alloc, self.free, self.write, self.read, self.stats = (
            self.device.alloc,
            self.device.release,
            self.device.write,
            self.device.read,
            self.device.stats,
        )

        self.peek, self.poke = self.read, self.write  # for addresses inside a running program's buffers

    def load(self, artifact: Artifact, donated: Sequence[int] = (), functions: Sequence[HostFunction] = ()) -> Call:
        """A function from input addresses to output addresses. functions: the functions that the program calls, on
        lists of addresses.
        """
        device, loaded, given = self.device, self.device.load(artifact, functions), frozenset(donated)
        return unloading(lambda handles: device.run(loaded, handles, given), device.unload_later, loaded)
