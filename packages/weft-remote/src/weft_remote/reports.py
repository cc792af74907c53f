"""What programs report while they run on a host, and the functions of this process that get it. Of some, the program
waits for the results.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

from weft.base import dtypes
from weft.base.avals import ShapedArray

from . import protocol as p
from .errors import ProtocolError
from .turn import Turn

ROOM = 64 << 20  # bytes of reports that wait for the program here; the host waits with more

KEPT = 64  # errors of functions that are remembered
Function = Callable[[list[memoryview]], bytes | None]
# sends the result of the function that a report has called; None if it raised an error
Send = Callable[[int, bytes | None], None]


class Reporter(NamedTuple):
    """The callbacks of a program: a function for each, and the types of its operands. Those that are `asked` give the
    bytes of their results, for which the program waits.
    """

    functions: Sequence[Function]
    operands: Sequence[Sequence[ShapedArray]]
    asked: frozenset[int] = frozenset()

    def sizes(self, function: int) -> list[int]:
        if function >= len(self.functions):
            raise ProtocolError(f"the host reports to function {function} of {len(self.functions)}.")
        return [prod(a.shape) * dtypes.itemsize(a.dtype) for a in self.operands[function]]


class Report(NamedTuple):
    """All values of one call."""

    number: int  # of its last part
    op: int
    reporter: Reporter
    function: int
    data: bytes

    @property
    def is_asked(self) -> bool:
        return self.function in self.reporter.asked

    def call(self) -> bytes | None:
        values, at = [], 0
        for size in self.reporter.sizes(self.function):
            values.append(memoryview(self.data)[at : at + size])
            at += size
        return self.reporter.functions[self.function](values)


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
        self.calling = Turn()
        self.answering: int | None = None  # the thread that calls a function for whose result a program waits
        self.raised: OrderedDict[int, Exception] = OrderedDict()  # by a function of the program of an operation

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
                self.complete.append(Report(m.number, m.op, reporter, m.function, data))

    def confirm(self) -> p.Reported | None:
        """What the host should hear now: it sends more while there is room."""
        if self.size > ROOM or self.confirmed == self.last:
            return None
        self.confirmed = self.last
        return p.Reported(self.last)

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to call, and nothing of which the host should hear."""
        return not self.complete and self.confirmed == self.last

    @property
    def ready(self) -> bool:
        """Whether there are reports and nobody is at work on them."""
        return bool(self.complete) and self.calling.holder is None

    def deliver(self, look: Callable[[], None], send: Send) -> None:
        """Calls the functions of all complete reports, unless a function that is being called waits for the host.
        `look()` raises if the program must stop.
        """
        if not self.complete:
            return
        token = object()
        try:
            if not self.calling.take(token):
                return
            while (report := self._next()) is not None:
                if report.is_asked:
                    self._answer(report, send)
                else:
                    report.call()
                look()
        finally:
            if self.calling.holder is token:
                self.calling.holder = None

    def _answer(self, report: Report, send: Send) -> None:
        self.answering = threading.get_ident()
        try:
            result = report.call()
        except Exception as e:  # whoever waits for the program gets it
            self.raised[report.op] = e
            while len(self.raised) > KEPT:
                self.raised.popitem(last=False)
            send(report.number, None)
        else:
            send(report.number, result)
        finally:
            self.answering = None

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
