"""Stores executables for the sessions of a host: finds them on disk, and has new ones made.

A worker may have been taken over by its program, so nothing that it has compiled is stored where processes are for one
session each. A fresh process is given the program's bytes and nothing else, and what it makes is stored under the hash
of what it was given. So who takes an executable from here runs what that program made of a process: the same as if the
program had been compiled in his own.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from weft.serialization.programs import content_hash
from weft_remote import protocol as p
from weft_remote.errors import LimitError, ProtocolError

from . import processor
from .control import Give, Make, Offer, OfferPart, Seek, Sought
from .executables import Executables, name_of
from .limits import MIB, Limits
from .metrics import Metrics
from .workers import Peer, Pool

log = logging.getLogger("weft.host")
TAKE_SECONDS = 20.0  # in which there must be a process that compiles
QUIET_SECONDS = 30.0  # in which a worker must give what it has offered
NICE = 19  # a program that is compiled again, only for others, yields to all of them
QUEUE, QUEUE_BYTES = 256, 64 * MIB  # programs that wait to be compiled for the disk, and their bytes
QUEUE_EACH = 64  # of one worker
TELL_SECONDS = 60.0  # between two log entries about a disk that takes nothing


@dataclass
class Dealings:
    """What the front and one worker have said to each other about executables."""

    what: bytes = b""  # that it asked for last
    asking: bool = False  # it has no answer yet
    open: bool = False  # it may offer that
    size: int = 0  # of the program that it offers
    data: bytearray | None = None  # that has come of it
    waiting: int = 0  # of its programs in the queue


@dataclass(eq=False)
class Work:
    """An executable that is to be stored."""

    peer: Peer
    session: str
    name: str
    what: bytes
    data: bytes | bytearray  # of the program; none if the worker gives what it has compiled itself


class Keeper:
    """Stores the executables of one host.

    Args:
        pool: the workers.
        executables: the folder.
        limits: of a session.
        metrics: of the host.
        charge: counts processor time of a process that compiled for a session: its id, and seconds.
    """

    def __init__(
        self,
        pool: Pool,
        executables: Executables,
        limits: Limits,
        metrics: Metrics,
        charge: Callable[[str, float], None],
    ):
        self.pool, self.executables, self.limits, self.metrics = pool, executables, limits, metrics
        self.charge = charge
        self.dealings: WeakKeyDictionary[Peer, Dealings] = WeakKeyDictionary()
        self.queue: deque[Work] = deque()
        self.current: Work | None = None
        self.told_at = -TELL_SECONDS
        self.tasks: set[asyncio.Task[None]] = set()
        metrics.executable_bytes.set_function(lambda: executables.size)

    def receive(self, peer: Peer, message: Seek | Offer | OfferPart) -> None:
        """What a worker says. Raises ProtocolError for what none says that was not taken over."""
        dealings = self.dealings.setdefault(peer, Dealings())
        match message:
            case Seek():
                if dealings.asking:
                    raise ProtocolError("a worker asks for two executables at once.")
                dealings.what, dealings.asking, dealings.open = message.what, True, False
                self._run(self._seek(peer, dealings))
            case Offer():
                if not dealings.open or dealings.what != message.what or dealings.data is not None:
                    raise ProtocolError("a worker offers a program for which it has not asked.")
                if not (0 < message.size <= self.limits.program_bytes if self.pool.alone else message.size == 0):
                    raise ProtocolError(f"a worker offers a program of {message.size} bytes.")
                dealings.open, dealings.size, dealings.data = False, message.size, bytearray()
                self._take(peer, message.session, dealings, message.data)
            case OfferPart():
                if dealings.data is None:
                    raise ProtocolError("a worker gives a part of a program that it does not offer.")
                self._take(peer, message.session, dealings, message.data)

    async def _seek(self, peer: Peer, dealings: Dealings) -> None:
        name = name_of(dealings.what)
        file = await asyncio.to_thread(self.executables.open, name)
        (self.metrics.executable_misses if file is None else self.metrics.executable_hits).inc()
        dealings.asking, dealings.open = False, self._has_room(name, dealings)
        try:
            peer.send(Sought(file is not None, dealings.open), None if file is None else file.fileno())
        finally:
            if file is not None:
                file.close()

    def _has_room(self, name: str, dealings: Dealings) -> bool:
        """Whether an executable of this name would be stored."""
        waiting = [*self.queue, *([] if self.current is None else [self.current])]
        return (
            all(work.name != name for work in waiting)
            and len(waiting) < QUEUE
            and dealings.waiting < QUEUE_EACH
            and sum(len(work.data) for work in waiting) < QUEUE_BYTES
        )

    def _take(self, peer: Peer, session: str, dealings: Dealings, data: bytes) -> None:
        assert dealings.data is not None
        dealings.data += data
        if len(dealings.data) < dealings.size:
            return
        given, dealings.data = dealings.data, None
        if len(given) > dealings.size:
            raise ProtocolError("a worker offers more of a program than there is.")
        m = described(dealings.what)
        if self.pool.alone and content_hash(given) != m.program:
            raise ProtocolError("a worker offers a program that has another hash.")
        name = name_of(dealings.what)
        if self._has_room(name, dealings):  # another worker may have offered it meanwhile
            dealings.waiting += 1
            self.queue.append(Work(peer, session, name, dealings.what, given))
            if self.current is None:
                self._run(self._work())

    async def _work(self) -> None:
        """Stores what waits, one after another."""
        while self.current is None and self.queue:
            work = self.current = self.queue.popleft()
            try:
                await self._store(work)
            except TimeoutError:
                self._failed(work, "no process is there to compile it")
            except (OSError, EOFError, LimitError) as e:
                self._failed(work, str(e))
            finally:
                self.current = None
                if (dealings := self.dealings.get(work.peer)) is not None:
                    dealings.waiting -= 1

    async def _store(self, work: Work) -> None:
        maker: Peer | None = None
        if self.pool.alone:
            maker = await self.pool.lend(TAKE_SECONDS, self.limits.seconds, NICE)
        mine, its = socket.socketpair()
        with mine:
            message = Give(work.what) if maker is None else Make(work.what)
            (maker or work.peer).send(message, its.fileno())
            its.close()
            mine.settimeout(QUIET_SECONDS if maker is None else self.limits.seconds)
            try:
                size = await asyncio.to_thread(self._carry, work, mine)
            finally:
                if maker is not None:  # it waits until the socket is closed
                    seconds = processor.seconds(maker.pid) or 0.0
                    self.metrics.processor.inc(seconds)
                    self.charge(work.session, seconds)
        self.metrics.executables_stored.labels("yes").inc()
        log.info("an executable of %d bytes is stored as %s", size, work.name)

    def _carry(self, work: Work, connection: socket.socket) -> int:
        connection.sendall(work.data)
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as source:
            return self.executables.write(work.name, source)

    def _failed(self, work: Work, why: str) -> None:
        """Nothing is lost but time: the program is compiled again when it is needed."""
        self.metrics.executables_stored.labels("no").inc()
        if time.monotonic() - self.told_at >= TELL_SECONDS:
            self.told_at = time.monotonic()
            log.warning("an executable can't be stored in %s: %s", self.executables.folder, why)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)


def described(what: bytes) -> p.Compile | p.CompileSpread:
    """What is compiled. Raises ProtocolError for anything else."""
    found = list(p.decode(what))
    if len(found) != 1 or not isinstance(found[0], (p.Compile, p.CompileSpread)) or p.encode(found[0]) != what:
        raise ProtocolError("no program is described so.")
    return found[0]
