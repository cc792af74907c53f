"""A Wasm device that detects accesses outside of the buffers of a program."""

from __future__ import annotations

from weft_wasm.backends.wasm import WasmBackend, WasmDevice
from weft_wasm.runtimes.desktop import DesktopRuntime
from weft_wasm.ir.nodes import padded

EDGE = 64  # bytes on both sides of every buffer
POISON = b"\xff"  # NaN to floats: what is read before it is written, or beside a buffer, spoils the result


class GuardedRuntime(DesktopRuntime):
    """Puts edges around all buffers, and poison into them. `broken` says which edges a program has written to."""

    def __init__(self, relaxed: bool = True, **options):
        super().__init__(**options)
        if not relaxed:
            self.features = tuple(f for f in self.features if f != "relaxed-simd")
        self.sizes: dict[int, int] = {}
        self.broken: list[str] = []
        self.take, self.give_back = self.device.alloc, self.device.free
        self.alloc = self.device.alloc = self.guarded_alloc
        self.free = self.device.free = self.guarded_free

    def guarded_alloc(self, nbytes: int) -> int:
        size = padded(nbytes)
        pointer = self.take(size + 2 * EDGE) + EDGE
        self.sizes[pointer] = size
        self.write(pointer - EDGE, POISON * (size + 2 * EDGE))
        return pointer

    def guarded_free(self, pointer: int) -> None:
        size = self.sizes.pop(pointer, None)
        if size is None:  # allocated before there were guards
            return self.give_back(pointer)
        for where, at in (("before", pointer - EDGE), ("behind", pointer + size)):
            if self.read(at, EDGE) != POISON * EDGE:
                self.broken.append(f"something was written {where} a buffer of {size} bytes")
        self.give_back(pointer - EDGE)

    def check(self) -> None:
        """Fails where an edge is no longer whole."""
        broken, self.broken = self.broken, []
        assert not broken, broken


def guarded_device(**options) -> WasmDevice:
    """The device of a backend of its own on a GuardedRuntime."""
    return WasmBackend(GuardedRuntime(**options)).devices()[0]
