"""Observers of programs: they learn of each program when it is compiled, and may watch its calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..base.source_info import SourceInfo
from ..core.jaxpr import ClosedJaxpr


class NewProgram(NamedTuple):
    """A program that was just compiled: its name, what was traced, where it runs, and the line that needed it."""

    name: str
    closed: ClosedJaxpr
    device: Any
    executable: Any
    where: SourceInfo


# Each takes a NewProgram and returns the executable to use: the program's own, or one that watches its calls.
observers: list[Callable[[NewProgram], Any]] = []


def observed(program: NewProgram) -> Any:
    """Tells the observers of a program; the executable to use for it."""
    for observe in observers:
        program = program._replace(executable=observe(program))
    return program.executable
