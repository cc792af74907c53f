"""The page's WebAssembly device as the runtime of the backend: see web/CONTRACT.md."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Sequence

import _weft_page as page
import pyodide_js
from pyodide.ffi import JsException, create_proxy, to_js

from weft.base.errors import JaxRuntimeError

from weft_wasm.artifact import Artifact
from weft_wasm.runtimes.memory import DeviceMemoryError
from weft_wasm.runtimes.interface import Call, HostFunction, unloading

if TYPE_CHECKING:
    from typing_extensions import Buffer

SMALL = 64  # bytes of device.small
HOST_FAILED = -1  # a program's code where a function of the host raised


class PyodideRuntime:
    """The runtime of `WasmBackend` on `_weft_page.device`: memory, and programs as calls."""

    kind = "browser"

    def __init__(self) -> None:
        self.device = page.device
        self.features = tuple(page.features.to_py())
        self.store = kept_programs()
        # bound once: looking a method up on a proxy costs more than calling it
        self.free, self._view, self._alloc, self._fetch = (
            self.device.free,
            self.device.view,
            self.device.alloc,
            self.device.fetch,
        )
        self._take, self._taken = self.device.small.assign_to, bytearray(SMALL)

    def alloc(self, nbytes: int) -> int:
        """The address of a new buffer."""
        try:
            address: int = self._alloc(nbytes)
            return address
        except JsException as e:
            raise failure("an array", e) from None

    def write(self, pointer: int, data: Buffer) -> None:
        """Copies a bytes-like object to the device."""
        view = memoryview(data)
        if view.nbytes:
            self._view(pointer, view.nbytes).assign(view)

    def read(self, pointer: int, nbytes: int) -> bytes:
        """A copy of device bytes."""
        if 0 < nbytes <= SMALL:
            self._fetch(pointer, nbytes)
            self._take(self._taken)
            return bytes(self._taken[:nbytes])
        return self._view(pointer, nbytes).to_bytes() if nbytes else b""

    def peek(self, pointer: int, nbytes: int) -> bytes:
        """`read` for addresses inside a running program's buffers."""
        return self.device.inside(pointer, nbytes).to_bytes() if nbytes else b""

    def poke(self, pointer: int, data: Buffer) -> None:
        """`write` to there."""
        view = memoryview(data)
        if view.nbytes:
            self.device.inside(pointer, view.nbytes).assign(view)

    @property
    def threads(self) -> int:
        return int(self.device.threads)

    @property
    def interruptible(self) -> bool:
        return bool(self.device.interruptView())

    def stats(self) -> dict[str, int]:
        counts: dict[str, int] = self.device.stats().to_py()
        return counts

    def load(self, artifact: Artifact, donated: Sequence[int] = (), functions: Sequence[HostFunction] = ()) -> Call:
        """A function from input addresses to output addresses. functions: the functions that the program calls, on
        lists of addresses.
        """
        if functions:
            return self.with_calls(artifact, donated, functions)
        # its bytes are made here, so the page need not compare their checksum
        number = self.device.load(to_js(artifact.to_bytes()), None, True)
        entry = self.device.entry(number, *donated)
        count = len(artifact.metadata["outputs"])
        name = artifact.name
        if count <= 1:

            def call(handles: list[int]) -> list[int]:
                try:
                    return [entry(*handles)]
                except JsException as e:
                    raise failure(name, e) from None

            return unloading(call if count else lambda handles: call(handles)[:0], self.device.unload, number)
        results = self.device.results(number)
        # 64-bit addresses arrive as doubles
        pointers = array("d", bytes(8 * count)) if "memory64" in self.features else array("I", bytes(4 * count))

        def call_many(handles: list[int]) -> list[int]:
            try:
                entry(*handles)
            except JsException as e:
                raise failure(name, e) from None
            results.assign_to(pointers)
            return [int(p) for p in pointers]

        return unloading(call_many, self.device.unload, number)

    def with_calls(self, artifact: Artifact, donated: Sequence[int], functions: Sequence[HostFunction]) -> Call:
        """`load` of a program that calls the host."""
        raised: list[BaseException] = []

        def host(number: int, addresses: Any) -> int:
            try:
                functions[number]([int(p) for p in addresses.to_py()])
            except BaseException as e:
                raised.append(e)
                return HOST_FAILED
            return 0

        proxy = create_proxy(host)
        number = self.device.load(to_js(artifact.to_bytes()), proxy, True)

        def unload(number: int) -> None:
            self.device.unload(number)
            proxy.destroy()

        def call(handles: list[int]) -> list[int]:
            try:
                results: list[int] = self.device.run(number, to_js(handles), to_js(list(donated))).to_py()
                return results
            except JsException as e:
                raise raised.pop() if raised else failure(artifact.name, e) from None

        return unloading(call, unload, number)


class Store:
    """The page's cache of compiled programs, as bytes by key."""

    def __init__(self, kept: Any) -> None:
        self.kept, self.delete = kept, kept.delete

    def get(self, key: str) -> bytes | None:
        found = self.kept.get(key)
        return found.to_bytes() if found else None

    def put(self, key: str, data: bytes) -> None:
        self.kept.put(key, to_js(data))


def kept_programs() -> Store | None:
    """The store of the page, if it has one."""
    kept = getattr(page, "cache", None)
    return Store(kept) if kept else None


def interrupt() -> KeyboardInterrupt:
    """The exception for a stop. If the page has also interrupted Python, that interrupt is withdrawn: one stop is one
    exception.
    """
    try:
        pyodide_js.checkInterrupt()
    except KeyboardInterrupt:
        pass
    return KeyboardInterrupt()


def failure(name: str, e: Any) -> BaseException:
    """The Python exception for an error that a call of the page's device threw."""
    if getattr(e, "name", "") == "WeftInterrupted":
        return interrupt()
    classes: dict[str, type[Exception]] = {
        "WeftMemoryError": DeviceMemoryError,
        "WeftProgramError": JaxRuntimeError,
    }
    return classes.get(getattr(e, "name", ""), RuntimeError)(f"{name}: {e.message}")
