"""How long each kernel of a program takes: the host functions that its marks (`passes/marks.py`) call."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from weft.errors import BackendError

from weft_wasm.ir.nodes import Program
from weft_wasm.passes.marks import mark_kernels

OPTION = "kernel_times"


def wanted(backend: str, options: Sequence[tuple[str, Any]]) -> bool:
    """Whether a compilation's options ask for times. Raises BackendError for options that the compiler lacks."""
    given = {name: value for name, value in options if name != "keep_unused"}
    if unknown := sorted(given.keys() - {OPTION}):
        raise BackendError(
            f"the {backend} backend's compiler has no option {', '.join(unknown)}; it has {OPTION!r} alone, which"
            " weft.profiler.kernel_times sets."
        )
    return bool(given.get(OPTION, False))


class KernelTimer:
    """Marks the kernels of a program, and adds up the time between the two marks of each, over the runs since `clear`.

    waits: the marks wait for what was queued before them.
    """

    def __init__(self, waits: bool):
        self.waits, self.names = waits, list[str]()
        self.clear()

    def mark(self, program: Program) -> Program:
        """The program with marks; it becomes the one that is timed."""
        program, self.names = mark_kernels(program, self.waits)
        self.clear()
        return program

    def clear(self) -> None:
        self.seconds, self.calls, self._begun = [0.0] * len(self.names), [0] * len(self.names), 0.0

    def functions(self) -> list[Callable[[Any], list[bytes]]]:
        """What the marks call, in their order."""
        return [f for k in range(len(self.names)) for f in (self._begin, partial(self._end, k))]

    def _begin(self, arguments: Any) -> list[bytes]:
        self._begun = time.perf_counter()
        return []

    def _end(self, k: int, arguments: Any) -> list[bytes]:
        self.seconds[k] += time.perf_counter() - self._begun
        self.calls[k] += 1
        return []

    def rows(self) -> list[tuple[str, float, int]]:
        """(name, seconds, calls) of each kernel that ran, the longest first."""
        rows = [row for row in zip(self.names, self.seconds, self.calls) if row[2]]
        return sorted(rows, key=lambda row: -row[1])
