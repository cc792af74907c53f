"""What programs report while they run on a host, and the functions of this process that get it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

from weft.base import dtypes
from weft.base.avals import ShapedArray

from . import protocol as p
from .errors import ProtocolError

ROOM = 64 << 20  # bytes of reports that wait for the program here; the host waits with more

Function = Callable[[list[memoryview]], None]


class Reporter(NamedTuple):
    """The debug callbacks of a program: a function for each, and the types of its operands."""

    functions: Sequence[Function]
    operands: Sequence[Sequence[ShapedArray]]

    def sizes(self, function: int) -> list[int]:
        if function >= len(self.functions):
            raise ProtocolError(f"the host reports to function {function} of {len(self.functions)}.")
        return [prod(a.shape) * dtypes.itemsize(a.dtype) for a in self.operands[function]]


class Report(NamedTuple):
    """All values of one call."""

    op: int
    reporter: Reporter
    function: int
    data: bytes

    def call(self) -> None:
        values, at = [], 0
        for size in self.reporter.sizes(self.function):
            values.append(memoryview(self.data)[at : at + size])
            at += size
        self.reporter.functions[self.function](values)


class Reports:
    """The reports of a session, in the order of the host. The transport's thread takes them; whoever waits for the host
    calls the functions, one at a time.
    """

    def __init__(self) -> None:
        self.last = 0  # the number of the last report that came
        self.confirmed = 0  # the last of which the host was notified on this connection
        self.reporters: dict[int, Reporter] = {}  # by operation, until the host has answered it
        self.part: bytearray = bytearray()
        self.part_of: tuple[int, int] | None = None  # the operation and function of an incomplete report
        self.complete: deque[Report] = deque()
        self.size = 0  # of the complete ones
        self.lock = threading.Lock()
        self.calling = threading.Lock()

    def take(self, m: p.Report) -> None:
        """A part of a report. Raises ProtocolError for one that does not fit."""
        if m.number <= self.last:  # sent again, on a new connection
            return
        if m.number != self.last + 1:
            raise ProtocolError(f"report {m.number} came after {self.last}.")
        self.last = m.number
        if self.part_of not in (None, (m.op, m.function)):
            raise ProtocolError("the host began a report within another one.")
        self.part_of = None if m.last else (m.op, m.function)
        reporter = self.reporters.get(m.op)
        if reporter is None:  # of a program that was stopped
            return
        size = sum(reporter.sizes(m.function))
        self.part += m.data
        if len(self.part) > size or m.last and len(self.part) != size:
            raise ProtocolError(f"the host reports {len(self.part)} bytes where function {m.function} takes {size}.")
        if m.last:
            data, self.part = bytes(self.part), bytearray()
            with self.lock:
                self.size += size
                self.complete.append(Report(m.op, reporter, m.function, data))

    def confirm(self) -> p.Reported | None:
        """What the host should hear now: it sends more while there is room."""
        if self.size > ROOM or self.confirmed == self.last:
            return None
        self.confirmed = self.last
        return p.Reported(self.last)

    @property
    def ready(self) -> bool:
        """Whether there are reports and nobody is at work on them."""
        return bool(self.complete) and not self.calling.locked()

    def deliver(self, look: Callable[[], None]) -> None:
        """Calls the functions of all complete reports, unless a function that is being called waits for the host.
        `look()` raises if the program must stop.
        """
        if not self.complete or not self.calling.acquire(blocking=False):
            return
        try:
            while (report := self._next()) is not None:
                report.call()
                look()
        finally:
            self.calling.release()

    def _next(self) -> Report | None:
        with self.lock:
            if not self.complete:
                return None
            report = self.complete.popleft()
            self.size -= len(report.data)
            return report

    def cancel(self, through: int) -> None:
        """Drops the reports of the operations up to this one, also those that are still to come."""
        with self.lock:
            self.complete.clear()
            self.size = 0
            self.part = bytearray()
            for op in [op for op in self.reporters if op <= through]:
                del self.reporters[op]
