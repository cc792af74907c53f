"""Values that a client's programs report while they run: the client's debug callbacks stay with the client, and a
function of the host's own, which sends its operands, takes their place here.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, Protocol

from weft.base.errors import BackendError
from weft.base.tree import tree_flatten
from weft.core import effects
from weft.core.jaxpr import ClosedJaxpr, Jaxpr, map_jaxprs, subjaxprs
from weft.effects.callback import HostFunction, debug_callback_p
from weft.primitives.inspection import debug_report_p
from weft_remote import protocol as p
from weft_remote.errors import ProtocolError

from .memory import Charge, Tally
from .values import Answer, host_bytes

ROOM = 4 << 20  # bytes of reports that the client has not confirmed; with more, programs wait
WEIGHT = 256  # bytes that a report takes beside its data
LOOK = 0.2  # seconds between two looks whether a program that waits must stop


class Client(Protocol):
    """What reports need of a session."""

    end: p.End | None
    cancelled: int
    outbox: deque[p.Message]
    reply_bytes: Tally
    memory: Tally

    def tell(self, call: Callable[..., None], /, *args: Any) -> None:
        """Has the event loop call a function."""

    def wake(self) -> None:
        """There is something to send."""


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

    def program(self, jaxpr: Jaxpr) -> Jaxpr:
        """A client's program in which functions of this session stand for its reports."""
        return _with_functions(jaxpr, self._function, {})

    def _function(self, number: int, operands: int) -> HostFunction:
        tree = tree_flatten(((0,) * operands, {}))[1]
        return HostFunction(_Function(self, number), tree)

    # in the threads of programs ---------------------------------------------------------------------------------------

    def report(self, function: int, arrays: tuple[Any, ...]) -> None:
        values = [view for x in arrays if (view := host_bytes(x)).nbytes]
        parts = [view[at : at + p.CHUNK] for view in values for at in range(0, len(view), p.CHUNK)] or [memoryview(b"")]
        total = sum(map(len, parts)) + WEIGHT * len(parts)
        charge = Charge(self.session.reply_bytes, self.session.memory, total, "a report")
        with self.sending:
            for k, part in enumerate(parts):
                self._wait_for_room(len(part) + WEIGHT)
                self.session.tell(self._send, self.op, function, k == len(parts) - 1, bytes(part), charge)

    def _wait_for_room(self, size: int) -> None:
        with self.changed:
            while self.size + size > ROOM and not self._stopped():
                self.changed.wait(LOOK)
            if self._stopped():
                raise BackendError("this was stopped by its client.")
            self.size += size

    def _stopped(self) -> bool:
        return self.session.end is not None or self.op <= self.session.cancelled

    # in the event loop ------------------------------------------------------------------------------------------------

    def _send(self, op: int, function: int, last: bool, data: bytes, charge: Charge) -> None:
        if self.session.end is not None:
            return
        self.last += 1
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
    """Reports its arguments to function `number` of the client."""

    __name__ = "report"

    def __init__(self, reports: Reports, number: int):
        self.reports, self.number = reports, number

    def __call__(self, *arrays: Any) -> None:
        self.reports.report(self.number, arrays)


def _with_functions(jaxpr: Jaxpr, function: Callable[[int, int], HostFunction], made: dict[Jaxpr, Jaxpr]) -> Jaxpr:
    if jaxpr not in made:
        eqns = []
        for eqn in jaxpr.eqns:
            if eqn.primitive is debug_report_p:
                effect = effects.ordered_debug if eqn.params["ordered"] else effects.debug
                callback = function(eqn.params["number"], len(eqn.invars))
                params = {"callback": callback, "effect": effect, "partitioned": False}
                eqn = eqn.replace(primitive=debug_callback_p, params=params)
            elif eqn.effects and subjaxprs(eqn.params):
                inner = lambda closed: ClosedJaxpr(_with_functions(closed.jaxpr, function, made), closed.consts)
                eqn = eqn.replace(params={k: map_jaxprs(v, inner) for k, v in eqn.params.items()})
            eqns.append(eqn)
        made[jaxpr] = jaxpr.replace(eqns=eqns)
    return made[jaxpr]
