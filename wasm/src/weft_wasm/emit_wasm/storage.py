"""Where buffers are: the Wasm locals that hold their addresses, and which of them may share memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from weft_wasm.ir.nodes import Buffer

Overlap: TypeAlias = Callable[[Buffer, Buffer], bool]


class Storage:
    """at: the local with the address of each buffer. overlap(a, b): whether two buffers may share memory."""

    __slots__ = ("at", "overlap", "_views", "_viewed")

    def __init__(self, overlap: Overlap):
        self.at: dict[Buffer, int] = {}
        self.overlap = overlap
        self._views: dict[Buffer, Buffer] = {}
        self._viewed: dict[Buffer, Buffer] = {}

    def bits(self, buffer: Buffer) -> Buffer:
        """A buffer of 16-bit floats as a buffer of their bits."""
        view = self._views.get(buffer)
        if view is None:
            view = self._views[buffer] = Buffer(buffer.name, "u16", buffer.shape, buffer.role)
            self._viewed[view] = buffer
        return view

    def of(self, buffer: Buffer) -> Buffer:
        """The buffer that owns the memory: the viewed buffer of a view, or the buffer itself."""
        return self._viewed.get(buffer, buffer)
