"""Kernels and instances of kernels alike: which kernel a statement runs, and on which buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from weft_wasm.ir.nodes import Buffer, Instance, Kernel, Stmt
from weft_wasm.ir.traversal import blocks, touched

Run: TypeAlias = Kernel | Instance


def model_of(s: Run) -> Kernel:
    """The kernel that a statement runs, perhaps on other buffers."""
    return s if type(s) is Kernel else s.kernel


def given(s: Run, b: Buffer) -> Buffer:
    """What stands in the place of a buffer of the kernel."""
    return b if type(s) is Kernel else s.buffers.get(b, b)


def statements(body: Sequence[Stmt]) -> list[Stmt]:
    """The statements of the program level, outer ones first; not those of kernels."""
    found: list[Stmt] = []
    for s in body:
        found.append(s)
        if type(s) is not Kernel:
            for block in blocks(s):
                found += statements(block)
    return found


def runs(body: Sequence[Stmt]) -> list[Run]:
    """The kernels and instances of a program level, in order."""
    return [s for s in statements(body) if type(s) is Kernel or type(s) is Instance]


def models(body: Sequence[Stmt]) -> list[Kernel]:
    """The different kernels that a program level runs."""
    return list(dict.fromkeys(map(model_of, runs(body))))


class Touched:
    """The buffers that statements read and write; each kernel is looked at once."""

    def __init__(self) -> None:
        self._known: dict[Kernel, tuple[list[Buffer], list[Buffer]]] = {}

    def model(self, kernel: Kernel) -> tuple[list[Buffer], list[Buffer]]:
        """(read, written) buffers of a kernel, each in order of first use."""
        found = self._known.get(kernel)
        if found is None:
            found = self._known[kernel] = touched(kernel.body)
        return found

    def of(self, s: Run) -> tuple[list[Buffer], list[Buffer]]:
        """Likewise of a kernel or an instance."""
        reads, writes = self.model(model_of(s))
        if type(s) is Kernel:
            return reads, writes
        return [given(s, b) for b in reads], [given(s, b) for b in writes]
