"""Memory of the loop IR's interpreter: the contents of buffers, and, if it is strict, whether a program may access them
at that time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.base.annotations import override

from weft_wasm.ir.nodes import ITEMSIZE, Buffer, Copy, For, Instance, Kernel
from weft_wasm.ir.traversal import walk

SEVERAL = -1  # iterations


class InterpretError(RuntimeError):
    """The program did something undefined: an index out of bounds, or a Fail statement."""


class Memory:
    """Buffers as bytes. Bytes that were never written are 0xA5."""

    def __init__(self) -> None:
        self.bytes: dict[Buffer, bytearray] = {}

    def begin(self, buffer: Buffer, content: bytes | None = None) -> None:
        """A buffer with its contents; None: not written yet."""
        if content is not None and len(content) != buffer.nbytes:
            raise ValueError(f"{buffer!r} takes {buffer.nbytes} bytes, got {len(content)}")
        self.bytes[buffer] = bytearray(b"\xa5" * buffer.nbytes if content is None else content)

    def load(self, buffer: Buffer, index: int) -> bytes:
        """The bytes of an element."""
        return bytes(self.bytes[buffer][self.place(buffer, index, 1)])

    def store(self, buffer: Buffer, index: int, data: bytes) -> None:
        self.bytes[buffer][self.place(buffer, index, 1)] = data

    def copy(self, dst: Buffer, to: int, src: Buffer, start: int, count: int) -> None:
        """Copies elements, as if through a third place."""
        self.bytes[dst][self.place(dst, to, count)] = self.bytes[src][self.place(src, start, count)]

    def place(self, buffer: Buffer, index: int, count: int) -> slice:
        """The bytes of elements; InterpretError where there are not so many."""
        if not 0 <= index <= buffer.size - count:
            what = f"index {index} is" if count == 1 else f"{count} elements at {index} are"
            raise InterpretError(f"{what} outside {buffer!r}")
        return slice(index * ITEMSIZE[buffer.dtype], (index + count) * ITEMSIZE[buffer.dtype])

    def result(self, buffer: Buffer) -> bytes:
        """The final contents of an output."""
        return bytes(self.bytes[buffer])

    def enter(self, loop: For) -> None:
        """A loop begins."""

    def iteration(self, k: int) -> None:
        """So does an iteration of the innermost loop."""

    def leave(self) -> None:
        """The innermost loop ends."""


@dataclass(slots=True)
class _Loop:
    """A loop whose iterations may run in any order, and who has touched which element: the iteration, or SEVERAL,
    and whether it wrote. around: it is of the program level, where iterations have temps of their own.
    """

    loop: For
    around: bool
    k: int = 0
    touched: dict[tuple[Buffer, int], tuple[int, bool]] = field(default_factory=dict)


def _is_around_kernels(loop: For) -> bool:
    return any(type(s) in (Kernel, Instance, Copy) for s in walk(loop.body))


class StrictMemory(Memory):
    """Also refuses operations that the loop IR leaves undefined: loads of bytes that were never written, results that
    are not completely written, and iterations of a parallel or reduce loop that depend on each other.
    """

    def __init__(self) -> None:
        super().__init__()
        self.written: dict[Buffer, bytearray] = {}  # a byte for each element
        self.loops: list[_Loop | None] = []

    @override
    def begin(self, buffer: Buffer, content: bytes | None = None) -> None:
        super().begin(buffer, content)
        self.written[buffer] = bytearray((content is not None,)) * buffer.size

    @override
    def load(self, buffer: Buffer, index: int) -> bytes:
        data = super().load(buffer, index)
        if not self.written[buffer][index]:
            raise InterpretError(f"element {index} of {buffer!r} is read, and was never written")
        self._touch(buffer, index, False)
        return data

    @override
    def store(self, buffer: Buffer, index: int, data: bytes) -> None:
        super().store(buffer, index, data)
        self.written[buffer][index] = 1
        self._touch(buffer, index, True)

    @override
    def copy(self, dst: Buffer, to: int, src: Buffer, start: int, count: int) -> None:
        super().copy(dst, to, src, start, count)
        self.written[dst][to : to + count] = self.written[src][start : start + count]

    @override
    def result(self, buffer: Buffer) -> bytes:
        if not all(self.written[buffer]):
            raise InterpretError(f"element {self.written[buffer].index(0)} of {buffer!r} is never written")
        return super().result(buffer)

    @override
    def enter(self, loop: For) -> None:
        self.loops.append(None if loop.kind == "sequential" else _Loop(loop, _is_around_kernels(loop)))

    @override
    def iteration(self, k: int) -> None:
        loop = self.loops[-1]
        if loop is not None:
            loop.k = k

    @override
    def leave(self) -> None:
        self.loops.pop()

    def _touch(self, buffer: Buffer, index: int, writes: bool) -> None:
        """A thread's private buffer may be written repeatedly; only values that another iteration wrote must not be
        read from it.
        """
        for loop in self.loops:
            if loop is None:
                continue
            own = buffer.role == "private" or (buffer.role == "temp" and loop.around)
            k, wrote = loop.touched.get((buffer, index), (loop.k, False))
            if k != loop.k and (not writes if own and wrote else (writes or wrote) and not own):
                raise InterpretError(
                    f"iterations {'of which several' if k == SEVERAL else k} and {loop.k} of the {loop.loop.kind} loop"
                    f" over {loop.loop.var.name} both touch element {index} of {buffer!r}"
                )
            if k == loop.k or writes:
                loop.touched[buffer, index] = (loop.k, writes or (wrote and k == loop.k))
            else:
                loop.touched[buffer, index] = (SEVERAL, False)
