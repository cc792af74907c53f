"""The interface between the backends and their runtimes: memory, and programs as calls. There are four runtimes:
wasmtime's and wgpu-py's, and the page's two (web/CONTRACT.md).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from weft.base.errors import BackendError

from weft_wasm.artifact import Artifact

if TYPE_CHECKING:
    from typing_extensions import Buffer  # bytes-like, with any C-contiguous content

Call = Callable[[list[int]], list[int]]  # from handles of inputs to those of outputs
HostFunction = Callable[[list[int]], None]  # a function that a module calls, on addresses
# a function that a plan calls: from the words of its arguments to those of its results
BytesFunction = Callable[[list[bytes]], list[bytes]]

Program = TypeVar("Program")


def unloading(call: Call, unload: Callable[[Program], object], program: Program) -> Call:
    """`call`, with which its program is unloaded: nothing can run it any more once the call is collected, in any
    thread. So `unload` need not wait.
    """
    weakref.finalize(call, unload, program).atexit = False
    return call


class DeviceLost(BackendError):
    """A WebGPU device is gone, with all that was on it: its driver has ended it, or the browser has taken it away. weft
    goes on with a new device, so programs see this only if that one is lost as well. Arrays that have no copy on the
    host are named where they are used next.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.sin(jnp.arange(3.0))  # doctest: +SKIP
        Traceback (most recent call last):
        weft_wasm.runtimes.interface.DeviceLost: the WebGPU device was lost (its driver has ended it). Call the program
        again.
    """

    def __init__(self, reason: str):
        super().__init__(f"the WebGPU device was lost ({reason}). Call the program again.")
        self.reason = reason


class Memory(Protocol):
    """Memory of a device. Handles are ints: addresses, or numbers of buffers."""

    @property
    def kind(self) -> str:
        """The name of the device for people."""

    def alloc(self, nbytes: int, /) -> int:
        """A handle of a new buffer. Raises DeviceMemoryError if there is no room."""

    def free(self, handle: int, /) -> None:
        """Frees a buffer, at once or before the next one is allocated. It must not wait, because finalisers call it."""

    def write(self, handle: int, data: Buffer, /) -> None:
        """Copies a bytes-like object to the beginning of a buffer."""

    def read(self, handle: int, nbytes: int, /) -> bytes:
        """A copy of the first bytes of a buffer."""

    def stats(self) -> dict[str, int]:
        """The numbers of bytes: "allocated", their "peak", and "free"."""


class WasmRuntime(Memory, Protocol):
    """The runtime of `WasmBackend`. It may have a `store` of compiled programs."""

    @property
    def features(self) -> Sequence[str]:
        """The features of the engine, of `compile.KNOWN_FEATURES`."""

    @property
    def threads(self) -> int:
        """How many threads share long loops now."""

    @property
    def interruptible(self) -> bool:
        """Whether a program can be stopped while it runs: by the page, or by Ctrl-C."""

    def peek(self, pointer: int, nbytes: int, /) -> bytes:
        """`read` for addresses inside a running program's buffers."""

    def poke(self, pointer: int, data: Buffer, /) -> None:
        """`write` to there."""

    def load(self, artifact: Artifact, donated: Sequence[int] = (), functions: Sequence[HostFunction] = ()) -> Call:
        """A program as a call, which stays loaded as long as the call exists. donated: the inputs that may be
        overwritten. functions: the functions that the program calls.
        """


class GpuRuntime(Memory, Protocol):
    """The runtime of `WebGpuBackend`. It may have a `store` of compiled programs. Its methods and calls raise
    DeviceLost once the driver or the browser has taken the device away.
    """

    @property
    def limits(self) -> Mapping[str, int]:
        """The device's limits by WebGPU's names."""

    @property
    def first(self) -> int:
        """The first handle of this device: lower ones were of devices that are lost."""

    def renew(self) -> None:
        """Goes on with a new device, on which nothing is loaded. Raises BackendError if there is none."""

    def wait(self) -> None:
        """Returns when everything queued has run."""

    def load(self, artifact: Artifact, donated: Sequence[int] = (), functions: Sequence[BytesFunction] = ()) -> Call:
        """A program as a call, which stays loaded as long as the call exists. donated: the inputs that may be
        overwritten. functions: the functions that the program calls.
        """


class Store(Protocol):
    """A store of bytes by key, such as a page's."""

    def get(self, key: str, /) -> bytes | None: ...

    def put(self, key: str, data: bytes, /) -> None: ...

    def delete(self, key: str, /) -> None: ...
