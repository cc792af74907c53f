"""A client's session on the host: what came, what is to be sent, and how it ends."""

from __future__ import annotations

import asyncio
import functools
import logging
import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import ParamSpec

from weft.base.devices import addressable
from weft.runtime.backend import Device
from weft_remote import protocol as p
from weft_remote.errors import LimitError, ProtocolError, class_name

from .limits import WINDOW, Limits
from .counts import Counts
from .link import Link
from .memory import Tally
from .messages import public_text
from .performer import Performer
from .programs import Programs
from .reports import Reports
from .values import Answer, Transfer

log = logging.getLogger("weft.host")
P = ParamSpec("P")
PATIENCE = 0.1  # seconds in which a cancelled computation may end by itself


class HostSession:
    """Carries one client's operations to its `performer`, and the replies to the client. Everything happens in the
    worker's event loop.

    Args:
        programs: of the process.
        devices: that the session may use.
        limits: of the session.
        memory: what all sessions together may use.
        name: of the client, for the log.
        ended: called when the session has ended, and again when its client has left after that.
        id: of the session.
        secret: that a client knows who resumes it.
        move: asks for another process, where a session has one for itself; what it computes ends with this one.
    """

    def __init__(
        self,
        programs: Programs,
        devices: list[Device],
        limits: Limits,
        memory: Tally,
        name: str,
        ended: Callable[[HostSession], None],
        id: str = "",
        secret: bytes = b"",
        move: Callable[[HostSession], None] | None = None,
    ):
        self.devices, self.limits, self.memory, self.name, self.ended = devices, limits, memory, name, ended
        self.id, self.secret, self.move = id, secret, move
        self.can_move, self.moving, self.moved = move is not None, False, False
        self.stayed_at = -math.inf  # when it should have gone on elsewhere, and could not
        self.leaving = False  # the host is about to stop
        self.loop, self.loop_thread = asyncio.get_running_loop(), threading.get_ident()
        self.received = 0  # the last operation that came
        self.cancelled = 0  # the last that the client does not want any more
        self.beat = False  # the client asks whether the host is alive
        self.acknowledged = 0  # the last operation of which the client was notified
        self.unacknowledged = 0  # bytes since then
        self.end: p.End | None = None
        self.closed = False  # by its client
        self.counts = Counts()
        self.kept = 0  # seconds for which the session outlives its connection, if its client has asked
        self.left_at: float | None = None  # when the connection was lost
        self.link: Link | None = None
        self.outbox: deque[p.Message] = deque()
        self.replies: OrderedDict[int, Answer | Transfer] = OrderedDict()  # unsettled
        self.transfers: deque[int] = deque()
        self.reply_bytes = Tally(
            limits.session_bytes,
            "{what} takes {size} bytes; {used} of at most {limit} wait for the client to take them.",
        )
        self.reports = Reports(self)
        self.performer = Performer(self, programs, devices)

    # what comes -------------------------------------------------------------------------------------------------------

    def accept(self, message: p.Message, size: int) -> None:
        """Takes a message. Raises ProtocolError for one that is not allowed here."""
        if isinstance(message, p.NUMBERED):
            if message.op <= self.received:  # sent again, on a new connection
                return
            if message.op != self.received + 1:
                raise ProtocolError(f"operation {message.op} came after {self.received}.")
            self.received = message.op
            if isinstance(message, (p.Result, p.Raised)):
                self.reports.answer(message)
            else:
                self.performer.take(message, size)
        elif isinstance(message, p.Settled):
            for op in message.ops:
                self._forget_reply(op)
        elif isinstance(message, p.Credit):
            transfer = self.replies.get(message.fetch)
            if isinstance(transfer, Transfer) and transfer.credited < message.received <= transfer.sent:
                transfer.credited = message.received
                self.wake()
        elif isinstance(message, p.Reported):
            self.reports.confirm(message.through)
        elif isinstance(message, p.Beat):
            self.beat = True
            self.wake()
        elif isinstance(message, p.Cancel):
            self.cancelled = max(self.cancelled, message.through)  # some of them may come later
            self.reports.look()
            if self.can_move:
                self.loop.call_later(PATIENCE, self._stop_cancelled)
        elif isinstance(message, p.Bye):
            self.closed = True
            self.close(p.End("ConnectionLost", "the client has ended the session."))
        else:
            raise ProtocolError(f"a client does not send {type(message).__name__}.")

    def _stop_cancelled(self) -> None:
        """Nothing stops a computation but the end of its process: the session leaves it for another one."""
        if self.end is None and not self.moving and self.performer.is_cancelled_in_vain():
            assert self.move is not None
            self.moving = True
            self.move(self)

    def is_full(self) -> bool:
        """Whether no more messages can be taken now; the link is told when that has changed."""
        return self.end is None and (self.leaving or self.performer.is_full())

    def wake(self) -> None:
        """There is something to send."""
        if self.link is not None:
            self.link.wake()

    def proceed(self) -> None:
        self.performer.crowded = False
        if self.link is not None:
            self.link.proceed()

    def tell_progress(self) -> None:
        """Tells the client what takes long, from time to time."""
        message = self.performer.progress()
        if message is not None:
            self.outbox.append(message)
            self.wake()

    def acknowledge(self, size: int) -> None:
        """After each frame: acknowledges received operations from time to time."""
        self.unacknowledged += size
        if self.unacknowledged >= p.CHUNK or self.received - self.acknowledged >= 64:
            self.acknowledged, self.unacknowledged = self.received, 0
            self.outbox.append(p.Received(self.received))
            self.wake()

    def _forget_reply(self, op: int) -> None:
        self.replies.pop(op, None)

    def reply(self, op: int, reply: Answer | Transfer) -> None:
        """Sends a reply, and keeps it until the client has settled it.

        One that comes while the session moves goes along with it, or is sent when the session stays.
        """
        if self.end is not None:
            return
        if self.moved:
            self.replies[op] = reply
            return
        if len(self.replies) >= self.limits.replies:
            self.fail(LimitError(f"{self.limits.replies} replies wait for the client to take them."))
            return
        self.replies[op] = reply
        self._queue_reply(op, reply)

    def _queue_reply(self, op: int, reply: Answer | Transfer) -> None:
        if isinstance(reply, Transfer):
            self.transfers.append(op)
        else:
            self.outbox.append(reply.message)
        self.wake()

    def keep(self, op: int, seconds: int) -> None:
        """The client wants the session to outlive its connection."""
        longest = int(self.limits.job_seconds)
        if seconds and not longest:
            why = "this host keeps no sessions; its operator lets it with `weft-host --jobs FOLDER`."
            self.reply(op, Answer(p.Error(op, op, "LimitError", why)))
            return
        self.kept = min(seconds, longest)
        self.reply(op, Answer(p.Kept(op, self.kept)))

    def attach(self, link: Link) -> None:
        """A connection, the first or a new one. Everything that is not settled is sent on it from the beginning."""
        if self.link is not None:  # the client is back before its old connection was seen to be dead
            self.link.part(None)
        self.link, self.left_at = link, None
        link.send(p.encode(self._welcome()))
        self.outbox.clear()
        self.transfers.clear()
        self.reports.again()
        for op, reply in self.replies.items():
            if isinstance(reply, Transfer):
                reply.sent = reply.credited = 0
            self._queue_reply(op, reply)
        self.wake()

    def leave(self) -> None:
        """Goes on elsewhere: the client has to come back to find it there, and nothing changes here any more."""
        self.moved = True
        if self.link is not None:
            link, self.link = self.link, None
            if self.leaving:
                link.say_restart()
            else:
                link.abort()

    def stay(self) -> None:
        """Goes on here after all."""
        self.stayed_at = time.monotonic()
        if self.moved:
            self.performer.stay()
        self.moved = self.moving = False

    def left(self, link: Link) -> None:
        """A connection is gone."""
        if self.link is link:
            self.link, self.left_at = None, time.monotonic()
            if self.end is not None:
                self.ended(self)

    def _welcome(self) -> p.Welcome:
        mine = set(addressable(self.devices))
        kinds = [text for d in self.devices for text in (d.platform if d in mine else "", str(d.device_kind))]
        grace, frame = int(self.limits.grace * 1000), self.limits.frame_bytes
        return p.Welcome(self.id, self.secret, self.received, grace, frame, WINDOW, tuple(kinds))

    def outgoing(self) -> bytes | None:
        """The next frame for the client; None if there is nothing to send now."""
        parts: list[bytes] = []
        size = 0
        if self.beat:
            self.beat = False
            parts.append(p.encode(p.Beat()))
        while self.outbox and size < 256 << 10:
            parts.append(p.encode(self.outbox.popleft()))
            size += len(parts[-1])
        if parts:
            return b"".join(parts)
        for _ in range(len(self.transfers)):
            op = self.transfers.popleft()
            transfer = self.replies.get(op)
            if not isinstance(transfer, Transfer):  # settled meanwhile
                continue
            total = len(transfer.data)
            if transfer.sent - transfer.credited >= WINDOW:
                self.transfers.append(op)
                continue
            part = transfer.data[transfer.sent : transfer.sent + p.CHUNK]
            frame = p.encode(p.Data(op, total, transfer.sent, part))
            transfer.sent += len(part)
            if transfer.sent < total:
                self.transfers.append(op)
            return frame
        return None

    def fail(self, error: Exception) -> None:
        """Ends the session because of something that no session may do."""
        if self.end is None:
            # not the error, whose frames hold arrays
            extra = {"session": self.id}
            log.warning("session %s ends: %s: %s", self.name, class_name(error), str(error), extra=extra)
            self.close(p.End(class_name(error), public_text(error, self.performer.said)))

    def close(self, end: p.End) -> None:
        if self.end is None:
            self.end = end
            self.performer.close()
            if self.link is not None:
                self.link.part(end)
            self.replies.clear()
            self.ended(self)

    def overdue(self, now: float) -> float:
        """For how long it has computed; ends the session if that is longer than it may."""
        took = self.performer.computations.overdue(now)
        if took > self.limits.seconds:
            self.fail(LimitError(f"a compilation or computation took longer than {self.limits.seconds:g} s."))
        return took

    # any thread -----------------------------------------------------------------------------------------------------

    def tell(self, call: Callable[P, None], *args: P.args, **named: P.kwargs) -> None:
        """Has the event loop call a function, from any thread."""
        if threading.get_ident() == self.loop_thread:
            call(*args, **named)
            return
        try:
            self.loop.call_soon_threadsafe(functools.partial(call, *args, **named))
        except RuntimeError:  # the host has stopped
            pass
