"""The page's WebGPU device as the runtime of the backend: see web/CONTRACT.md."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Sequence

import _weft_page as page
from js import Uint8Array
from pyodide.ffi import JsException, can_run_sync, create_proxy, run_sync, to_js

from weft.base.errors import BackendError

from weft_wasm.artifact import Artifact
from weft_wasm.runtimes.page import interrupt, kept_programs
from weft_wasm.runtimes.interface import BytesFunction, Call, DeviceLost, unloading

if TYPE_CHECKING:
    from typing_extensions import Buffer


def wait_for(promise: Any, what: str) -> Any:
    """The promise's value; BackendError where the browser can't suspend Python."""
    if not can_run_sync():
        raise BackendError(
            f"{what} has to wait for the GPU, and this browser can't suspend Python (it lacks JSPI,"
            " WebAssembly.Suspending, or the program was not started with runPythonAsync). Use a current Chromium, or"
            " the wasm backend."
        )
    try:
        return run_sync(promise)
    except JsException as e:
        if getattr(e, "name", "") == "WeftInterrupted":
            raise interrupt() from None
        raise failed(what, e) from None


def failed(what: str, e: JsException) -> Exception:
    """The error of a call that the page's device has refused."""
    if page.gpu and page.gpu.lost:
        return DeviceLost(str(page.gpu.lost))
    return RuntimeError(f"{what}: {e.message}")


class PyodideGpu:
    """The runtime of `WebGpuBackend` on `_weft_page.gpu`: buffers, and programs as calls."""

    def __init__(self) -> None:
        if not page.gpu:
            raise BackendError(
                "this browser offers no WebGPU adapter; use the wasm backend, or turn WebGPU on (Chromium: chrome://gpu"
                " tells why it is off)."
            )
        self.store = kept_programs()
        self._begin()

    def renew(self) -> None:
        if not wait_for(page.renewGpu(), "going on with a new WebGPU device"):
            raise BackendError(
                "the WebGPU device was lost, and the browser gives no other one; use the wasm backend, or reload the"
                " page."
            )
        self._begin()

    def _begin(self) -> None:
        self.device = page.gpu
        self.first = int(self.device.first)
        self.kind = str(self.device.adapter) or "browser"  # which may keep the adapter's name to itself
        self.limits: dict[str, int] = self.device.limits.to_py()
        # bound once: looking a method up on a proxy costs more than calling it
        self._alloc, self.free, self._write, self._read = (
            self.device.alloc,
            self.device.free,
            self.device.write,
            self.device.read,
        )

    def alloc(self, nbytes: int) -> int:
        """A handle of a new buffer."""
        try:
            return int(self._alloc(nbytes))
        except JsException as e:
            raise failed("allocating an array", e) from None

    def write(self, handle: int, data: Buffer) -> None:
        """Queues a copy of a bytes-like object into the buffer."""
        view = memoryview(data)
        if view.nbytes:
            there = Uint8Array.new(view.nbytes)
            there.assign(view)
            try:
                self._write(handle, there)
            except JsException as e:
                raise failed("writing an array", e) from None

    def read(self, handle: int, nbytes: int) -> bytes:
        """A copy of device bytes, after everything that was queued."""
        return wait_for(self._read(handle, nbytes), "reading an array").to_bytes() if nbytes else b""

    def wait(self) -> None:
        """Returns when everything queued has run."""
        wait_for(self.device.synchronize(), "waiting for an array")

    def stats(self) -> dict[str, int]:
        counts: dict[str, int] = self.device.stats().to_py()
        return counts

    def load(self, artifact: Artifact, donated: Sequence[int] = (), functions: Sequence[BytesFunction] = ()) -> Call:
        """A function from input handles to output handles. functions: the host functions that the program calls."""
        name = artifact.name
        raised: list[BaseException] = []

        def host(number: int, arguments: Any) -> Any:
            try:
                return to_js(functions[number]([a.to_bytes() for a in arguments]))
            except BaseException as e:
                raised.append(e)
                raise

        proxies = [create_proxy(host)] if functions else []
        device = self.device
        number = wait_for(device.load(to_js(artifact.to_bytes()), *proxies), f"compiling {name}")

        def unload(number: int) -> None:
            device.unload(number)
            for proxy in proxies:
                proxy.destroy()

        entry = self.device.entry(number, *donated)
        count, waits = len(artifact.metadata["outputs"]), self.device.isAsync(number)
        results = self.device.results(number)
        handles_out = array("I", bytes(4 * count))

        def call(handles: list[int]) -> list[int]:
            try:
                first = entry(*handles)
            except JsException as e:
                raise failed(name, e) from None
            if waits:
                try:
                    first = wait_for(first, f"a loop, a branch or a call of {name} that depends on data")
                except RuntimeError:
                    if raised:
                        raise raised.pop() from None
                    raise
            if count <= 1:
                return [first][:count]
            results.assign_to(handles_out)
            return handles_out.tolist()

        return unloading(call, unload, number)
