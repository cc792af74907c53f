"""Values that a client's programs report while they run: the client's callbacks stay with the client, and a function of
the host's own, which sends its operands, takes their place here. If the program needs results, it waits for the
client's.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from weft.base.avals import ShapedArray
from weft.base.errors import BackendError
from weft.base.tree import tree_flatten
from weft.core import effects
from weft.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, map_jaxprs, subjaxprs
from weft.effects.callback import HostFunction, debug_callback_p, io_callback_p
from weft.primitives.inspection import debug_report_p, remote_callback_p, result_types
from weft_remote import protocol as p
from weft_remote.errors import LimitError, ProtocolError

from .limits import Limits
from .memory import Charge, Tally
from .programs import nbytes
from .values import Answer, host_array, host_bytes

ROOM = 4 << 20  # bytes of reports that the client has not confirmed; with more, programs wait
WEIGHT = 256  # bytes that a report takes beside its data
LOOK = 0.2  # seconds between two looks whether a program that waits must stop
STOPPED = "this was stopped by its client."


class Client(Protocol):
    """What reports need of a session."""

    end: p.End | None
    moved: bool  # it goes on elsewhere
    cancelled: int
    limits: Limits
    outbox: deque[p.Message]
    reply_bytes: Tally
    memory: Tally

    def tell(self, call: Callable[..., None], /, *args: Any) -> None:
        """Has the event loop call a function."""

    def wake(self) -> None:
        """There is something to send."""


class Question:
    """A report for whose results a program waits."""

    __slots__ = ("size", "charge", "data", "state")

    def __init__(self, size: int, charge: Charge):
        self.size, self.charge = size, charge
        self.data = bytearray()
        self.state = "open"  # then "answered" or "raised"

    def take(self, m: p.Result) -> None:
        """A part of the results. Raises ProtocolError for one that does not fit."""
        have = len(self.data) + len(m.data)
        if have > self.size or m.last and have != self.size:
            raise ProtocolError(f"a function returned {have} bytes, and its program takes {self.size}.")
        self.data += m.data
        if m.last:
            self.state = "answered"


class Reports:
    """The reports of one session."""

    def __init__(self, session: Client):
        self.session = session
        self.op = 0  # the operation that runs; a program that reports runs alone
        self.last = 0
        self.unconfirmed: OrderedDict[int, Answer] = OrderedDict()
        self.size = 0  # of the unconfirmed ones
        self.changed = threading.Condition()
        self.sending = threading.Lock()  # a report's parts follow each other, whichever threads call
        self.questions: dict[int, Question] = {}  # by the number of the report

    def program(self, jaxpr: Jaxpr) -> Jaxpr:
        """A client's program in which functions of this session stand for its reports."""
        return _with_functions(jaxpr, self, {})

    # in the threads of programs ---------------------------------------------------------------------------------------

    def ask(self, function: int, arrays: tuple[Any, ...], types: Sequence[ShapedArray]) -> list[Any]:
        """The results of a function of the client's. Raises BackendError if it has none."""
        sizes = [nbytes(a) for a in types]
        charge = Charge(self.session.reply_bytes, self.session.memory, sum(sizes) + WEIGHT, "a callback's result")
        question = Question(sum(sizes), charge)
        limit = self.session.limits.answer
        self.report(function, arrays, question)
        until = time.monotonic() + limit
        with self.changed:
            while question.state == "open" and not self._stopped() and time.monotonic() < until:
                self.changed.wait(LOOK)
        self.session.tell(self._forget, question)
        if question.state == "raised":
            raise BackendError("a function that the program calls raised an error at its client.")
        if question.state == "open":
            if self._stopped():
                raise BackendError(STOPPED)
            raise LimitError(f"the client has not answered a callback of its program for {limit:g} s.")
        results, at = [], 0
        for aval, size in zip(types, sizes):
            results.append(host_array(question.data[at : at + size], aval))
            at += size
        return results

    def report(self, function: int, arrays: tuple[Any, ...], question: Question | None = None) -> None:
        values = [view for x in arrays if (view := host_bytes(x)).nbytes]
        parts = [view[at : at + p.CHUNK] for view in values for at in range(0, len(view), p.CHUNK)] or [memoryview(b"")]
        total = sum(map(len, parts)) + WEIGHT * len(parts)
        charge = Charge(self.session.reply_bytes, self.session.memory, total, "a report")
        with self.sending:
            for k, part in enumerate(parts):
                self._wait_for_room(len(part) + WEIGHT)
                last = k == len(parts) - 1
                self.session.tell(self._send, self.op, function, last, bytes(part), charge, question if last else None)

    def _wait_for_room(self, size: int) -> None:
        with self.changed:
            while self.size + size > ROOM and not self._stopped():
                self.changed.wait(LOOK)
            if self._stopped():
                raise BackendError(STOPPED)
            self.size += size

    def _stopped(self) -> bool:
        return self.session.end is not None or self.op <= self.session.cancelled

    # in the event loop ------------------------------------------------------------------------------------------------

    @property
    def is_waiting(self) -> bool:
        """Whether a program waits for its client."""
        return bool(self.questions)

    def look(self) -> None:
        """Has a program that waits look whether it must stop."""
        with self.changed:
            self.changed.notify_all()

    def answer(self, m: p.Result | p.Raised) -> None:
        """A part of what a function returned, or that it did not. Raises ProtocolError for one that does not fit."""
        if m.report > self.last:
            raise ProtocolError(f"a result came for report {m.report}, and the last one is {self.last}.")
        question = self.questions.get(m.report)
        if question is None:  # of a program that was stopped
            return
        with self.changed:
            if isinstance(m, p.Raised):
                question.state = "raised"
            else:
                question.take(m)
            if question.state != "open":
                del self.questions[m.report]
                self.changed.notify_all()

    def _forget(self, question: Question) -> None:
        """Nobody waits for the answer any more."""
        for number in [n for n, q in self.questions.items() if q is question]:
            del self.questions[number]

    def _send(self, op: int, function: int, last: bool, data: bytes, charge: Charge, question: Question | None) -> None:
        if self.session.end is not None or self.session.moved:
            return
        self.last += 1
        if question is not None:
            self.questions[self.last] = question
        answer = Answer(p.Report(self.last, op, function, last, data), charge)
        self.unconfirmed[self.last] = answer
        self.session.outbox.append(answer.message)
        self.session.wake()

    def confirm(self, through: int) -> None:
        """The client has the reports up to this one."""
        freed = 0
        while self.unconfirmed and next(iter(self.unconfirmed)) <= through:
            _, answer = self.unconfirmed.popitem(last=False)
            assert isinstance(answer.message, p.Report)
            freed += len(answer.message.data) + WEIGHT
        with self.changed:
            self.size -= freed
            self.changed.notify_all()

    def restore(self, report: p.Message) -> None:
        """A report that was not confirmed when its session came here."""
        if not isinstance(report, p.Report):
            raise ProtocolError(f"{type(report).__name__} is no report.")
        size = len(report.data) + WEIGHT
        charge = Charge(self.session.reply_bytes, self.session.memory, size, "a report")
        self.unconfirmed[report.number] = Answer(report, charge)
        self.size += size

    def again(self) -> None:
        """Sends all that is not confirmed, on a new connection."""
        self.session.outbox.extend([answer.message for answer in self.unconfirmed.values()])


class _Function:
    """Reports its arguments to function `number` of the client, and returns the results of the types that a program
    waits for.
    """

    __name__ = "report"

    def __init__(self, reports: Reports, number: int, types: Sequence[ShapedArray] | None = None):
        self.reports, self.number, self.types = reports, number, types

    def __call__(self, *arrays: Any) -> Any:
        if self.types is None:
            return self.reports.report(self.number, arrays)
        return self.reports.ask(self.number, arrays, self.types)


def _with_functions(jaxpr: Jaxpr, reports: Reports, made: dict[Jaxpr, Jaxpr]) -> Jaxpr:
    if jaxpr not in made:
        eqns = []
        for eqn in jaxpr.eqns:
            if eqn.primitive in (debug_report_p, remote_callback_p):
                eqn = _with_function(eqn, reports)
            elif eqn.effects and subjaxprs(eqn.params):
                inner = lambda closed: ClosedJaxpr(_with_functions(closed.jaxpr, reports, made), closed.consts)
                eqn = eqn.replace(params={k: map_jaxprs(v, inner) for k, v in eqn.params.items()})
            eqns.append(eqn)
        made[jaxpr] = jaxpr.replace(eqns=eqns)
    return made[jaxpr]


def _with_function(eqn: JaxprEqn, reports: Reports) -> JaxprEqn:
    """A callback to a function of this process in place of one that a client's program holds."""
    given, arguments = eqn.params, tree_flatten(((0,) * len(eqn.invars), {}))[1]
    if eqn.primitive is debug_report_p:
        callback = HostFunction(_Function(reports, given["number"]), arguments)
        effect = effects.ordered_debug if given["ordered"] else effects.debug
        return eqn.replace(
            primitive=debug_callback_p, params={"callback": callback, "effect": effect, "partitioned": False}
        )
    types = result_types(given["shapes"], given["dtypes"])
    results = tree_flatten([0] * len(types))[1]
    params = {
        "callback": HostFunction(_Function(reports, given["number"], types), arguments, result=results),
        "result_avals": tuple(types),
        "sharding": None,
        "ordered": given["ordered"],
    }
    return eqn.replace(primitive=io_callback_p, params=params)
