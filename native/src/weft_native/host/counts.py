"""What a session has done so far: counted in its worker, told to the front a few times a second, and checked there."""

from __future__ import annotations

from weft.base.errors import BackendError

from .control import Totals

# What a session can't have done between two reports, however long a compilation held its worker up.
MOST = {"calls": 1 << 28, "compilations": 1 << 20, "compiling_us": 1 << 40, "received": 1 << 43, "sent": 1 << 43}


class Counts:
    """Totals of a session. Each is changed by one thread at a time."""

    def __init__(self) -> None:
        self.calls = self.compilations = 0
        self.compile_seconds = 0.0
        self.received = self.sent = 0  # bytes
        self.program = ""  # the last that was called

    def called(self, program: str) -> None:
        self.calls += 1
        self.program = program

    def compiled(self, seconds: float) -> None:
        self.compilations += 1
        self.compile_seconds += seconds


def check(before: Totals, after: Totals) -> None:
    """Raises BackendError for a report that can't follow another one: nothing that a worker says is believed."""
    for name, most in MOST.items():
        old, new = getattr(before, name), getattr(after, name)
        if not 0 <= new - old <= most:
            raise BackendError(f"a session's {name} went from {old} to {new}")
