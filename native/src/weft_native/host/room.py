"""Who may have a session now, and the queue of those who wait for that while a host is full."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from bisect import insort
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from weft.serialization.binary import DeserializationError
from weft_remote import protocol as p
from weft_remote.errors import LimitError, ProtocolError

from .arrivals import Arrival, Left, Line
from .grants import INNER, Grant
from .journal import Journal
from .limits import Limits
from .records import Record

TELL_SECONDS = 0.25  # between two words to a client about its place
TOLD = 2000  # clients that are told in a second, so that the front has time for others
AT_ONCE = 200  # of them without a pause


class Full(Exception):
    """There is no place, and no room in the queue; `elsewhere` there may be."""

    def __init__(self, message: str, elsewhere: bool):
        super().__init__(message)
        self.error, self.elsewhere = LimitError(message), elsewhere


class Over(Exception):
    """What a client waits for is not there any more."""


@dataclass(eq=False)
class Waiter:
    """A client that waits."""

    grant: Grant
    client: str
    address: str
    session: str  # that rests and is to be taken up; "" stands for a new one
    number: int
    turn: asyncio.Future[None]
    since: float = field(default_factory=time.monotonic)
    line: Line | None = None
    told: tuple[int, int] = (0, 0)  # its place, and of how many

    @property
    def rank(self) -> tuple[bool, int, int]:
        """Sessions that have begun come first, then those of tokens that don't yield to others, then who came first."""
        return not self.session, 0 if self.session else self.grant.nice, self.number

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.since


class Room:
    """The places for the sessions of a host.

    Args:
        limits: how many there are, and how many clients may wait.
        living: the sessions that have one.
        journal: of what happens.
    """

    def __init__(self, limits: Limits, living: Callable[[], list[Record]], journal: Journal):
        self.limits, self.living, self.journal = limits, living, journal
        self.coming: list[str] = []  # the tokens of sessions that have a place, and are about to begin
        self.waiters: list[Waiter] = []  # in their order
        self.numbers = itertools.count()
        self.telling: asyncio.Task[None] | None = None
        self.stale = False  # whether a place has changed that was told
        journal.metrics.waiting.set_function(lambda: len(self.waiters))
        journal.metrics.waiting_allowed.set(limits.queue)

    @property
    def free(self) -> int:
        """Places that nobody has."""
        return self.limits.sessions - len(self.living()) - len(self.coming)

    @property
    def takes(self) -> bool:
        """Whether a new session could begin, or wait."""
        return len(self.waiters) < self.limits.queue or self.begins

    @property
    def begins(self) -> bool:
        """Whether a new session could begin at once."""
        return not self.waiters and self.free > 0

    def awaits(self, session: str) -> bool:
        """Whether somebody waits for a session that rests."""
        return any(w.session == session for w in self.waiters)

    @contextlib.asynccontextmanager
    async def place(self, arrival: Arrival, grant: Grant, client: str, session: str = "") -> AsyncIterator[float]:
        """A place for a session that begins meanwhile, or for one that rests; the seconds that its client has waited.

        Raises:
            Full: the client can't even wait.
            Left: it has gone.
            Over: the session has ended.
            Later: the host is about to stop.
            ProtocolError: it says what it may not.
        """
        if not session:
            self._check(grant)
        waited = 0.0
        if not self.begins:
            if not session and (grant is INNER or len(self.waiters) >= self.limits.queue):
                waits = (
                    f" and {self.limits.queue} clients that wait" if self.limits.queue and grant is not INNER else ""
                )
                raise Full(f"the host has {self.limits.sessions} sessions already{waits}. Try again later.", True)
            waited = await self._wait(arrival, grant, client, session)
        else:
            self.coming.append(grant.id)
        try:
            yield waited
        finally:
            self.coming.remove(grant.id)
            self.look()

    def _check(self, grant: Grant) -> None:
        if grant.sessions is None:
            return
        have = [r.grant.id for r in self.living()] + self.coming + [w.grant.id for w in self.waiters]
        if have.count(grant.id) >= grant.sessions:
            raise Full(f"this token is for {grant.sessions} sessions at one time. Close one of them first.", False)

    async def _wait(self, arrival: Arrival, grant: Grant, client: str, session: str) -> float:
        """Returns when there is a place, which is counted in `coming`; after how many seconds."""
        turn = asyncio.get_running_loop().create_future()
        waiter = Waiter(grant, client, arrival.request.remote or "", session, next(self.numbers), turn)
        before = next((w for w in self.waiters if session and w.session == session), None)
        if before is not None:  # the client's connection was lost; this one stands where it stood
            waiter.number, waiter.since = before.number, before.since
            self.end(before, Left())
        insort(self.waiters, waiter, key=lambda w: w.rank)
        how = "left"
        try:
            waiter.line = line = await arrival.greet(lambda why: self.end(waiter, why))
            if waiter in self.waiters:
                self.journal.waits(client, waiter.address, grant, session, self.waiters.index(waiter) + 1)
                self._tell(waiter, self.waiters.index(waiter) + 1)
                self._changed()
            await turn
            if line.left:
                raise Left
            how = "served"
            return waiter.seconds
        except (ProtocolError, DeserializationError):
            how = "refused"
            raise
        except BaseException as e:
            how = how if isinstance(e, (Left, OSError)) else "ended"
            if turn.done() and turn.exception() is None:  # its turn has come just then
                self.coming.remove(grant.id)
            raise
        finally:
            if waiter in self.waiters:
                self._remove(waiter)
            self.journal.waited(client, waiter.address, grant, session, how, waiter.seconds)
            self.look()

    def look(self) -> None:
        """Gives free places to those who have waited longest."""
        while self.waiters and self.free > 0:
            waiter = self.waiters[0]
            self._remove(waiter)
            self.coming.append(waiter.grant.id)
            waiter.turn.set_result(None)

    def end(self, waiter: Waiter, why: Exception) -> None:
        """A client waits no more."""
        if waiter in self.waiters:
            self._remove(waiter)
            waiter.turn.set_exception(why)

    def cease(self, session: str) -> None:
        """A session that rests has ended: nobody waits for it any more."""
        for waiter in [w for w in self.waiters if w.session == session]:
            self.end(waiter, Over())

    def watch(self, holds: Callable[[Grant], bool], revoked: Callable[[], Exception]) -> None:
        """Lets those go who are silent, or whose token is good no more."""
        self.look()
        now = asyncio.get_running_loop().time()
        good = {grant: holds(grant) for grant in {w.grant for w in self.waiters}}
        for waiter in list(self.waiters):
            if not good[waiter.grant]:
                self.end(waiter, revoked())
            elif waiter.line is not None:
                waiter.line.watch(now)

    def _remove(self, waiter: Waiter) -> None:
        self.waiters.remove(waiter)
        self._changed()

    # what they are told -----------------------------------------------------------------------------------------------

    def _changed(self) -> None:
        self.stale = True
        if self.telling is None or self.telling.done():
            self.telling = asyncio.ensure_future(self._tell_all())

    async def _tell_all(self) -> None:
        while self.stale:
            self.stale = False
            await asyncio.sleep(max(TELL_SECONDS, len(self.waiters) / TOLD))
            for k, waiter in enumerate(list(self.waiters)):
                if k % AT_ONCE == AT_ONCE - 1:
                    await asyncio.sleep(0)
                if waiter.line is not None and not waiter.turn.done():
                    self._tell(waiter, k + 1)

    def _tell(self, waiter: Waiter, place: int) -> None:
        now = place, len(self.waiters)
        if waiter.told != now and waiter.line is not None:
            if waiter.line.takes:
                waiter.told = now
                waiter.line.send(p.Waiting(*now))
            else:
                self.stale = True  # later
