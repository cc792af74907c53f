"""A worker: the sessions of one process, and the connections that the front hands to it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, BinaryIO, ParamSpec

import numpy as np
from weft.base.annotations import override
from weft.base.avals import shaped
from weft.base.devices import addressable
from weft.runtime.backend import Device
from weft.runtime.device import backend_of
from weft_remote import protocol as p
from weft_remote.codec import Message
from weft_remote.errors import LimitError

from . import state
from .control import (
    Alive,
    Answered,
    Ask,
    Attach,
    Channel,
    Closed,
    Ended,
    Finish,
    Give,
    Granted,
    Leave,
    Make,
    Move,
    Moved,
    Need,
    Rest,
    Restore,
    Restored,
    Returned,
    Said,
    Save,
    Sought,
    Up,
)
from .limits import MIB, Limits
from .link import PARTING, Link
from .memory import Tally, of_host
from .programs import Programs
from .shelf import Shelf, hand
from .session import HostSession
from .totals import totals
from .values import host_bytes

WATCH_SECONDS = 0.25
SPARE = 16 * MIB  # bytes that a worker may use and does not, above which it gives them back
REST_SECONDS = 1.0  # for which a client has been away before its session is put on disk
RETRY_SECONDS = 30.0  # after which a session is put on disk for which there was no room
PARK_SECONDS = 5.0  # in which a short operation is done before its session moves
STUCK_SECONDS = 10.0  # for which a session may compute after its end in a process that others share
STUCK = 3  # the exit code then
ONE = np.zeros(1, np.float32)  # what a device is asked to hold
ONE_TYPE = shaped((1,), ONE.dtype)
P = ParamSpec("P")
log = logging.getLogger("weft.host")


class Worker:
    """Performs the operations of its sessions, in threads; the connections are served by one event loop.

    Args:
        channel: to the front.
        devices: of this process.
        limits: of each session.
        memory: what all sessions together may use; None asks the front for each session's share.
        done: called when a session of this worker has ended and its client is gone.
        executables: the front stores them.
    """

    alone = False  # for one session

    def __init__(
        self,
        channel: Channel,
        devices: list[Device],
        limits: Limits,
        memory: Tally | None = None,
        done: Callable[[], None] = lambda: None,
        executables: bool = False,
    ):
        self.channel, self.devices, self.limits, self.done = channel, devices, limits, done
        self.shelf = Shelf(self.send, self.alone) if executables else None
        self.programs = Programs(limits, self.shelf)
        self.memory = Share(self) if memory is None else memory
        self.sessions: dict[str, HostSession] = {}
        self.opening: set[asyncio.Task[None]] = set()
        self.restoring: dict[str, list[tuple[Attach, socket.socket]]] = {}  # connections that wait for their session
        self.abandoned: list[tuple[HostSession, float]] = []  # ended, but still computing: threads can't be stopped
        self.sending = threading.Lock()
        self.answers: list[Granted] = []
        self.answered = threading.Condition()

    def run(self) -> None:
        """Serves until the front is gone."""
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.stopped = asyncio.Event()
        listener = threading.Thread(target=self._listen, name="control", daemon=True)
        listener.start()
        mine = addressable(self.devices)
        self.send(Up(tuple([text for d in mine for text in (d.platform, str(d.device_kind))])))
        watching = asyncio.ensure_future(self._watch())
        await self.stopped.wait()
        watching.cancel()
        for session in list(self.sessions.values()):
            session.close(p.End("ConnectionLost", "the host has ended; its arrays are gone."))

    # the front --------------------------------------------------------------------------------------------------------

    def send(self, message: Message) -> None:
        """From any thread. What can't be said any more is not said."""
        with self.sending:
            try:
                self.channel.send(message)
            except Closed:
                pass

    def _listen(self) -> None:
        try:
            while True:
                for message in self.channel.receive(take_descriptors=True):
                    if isinstance(message, Attach):
                        connection = socket.socket(fileno=self.channel.descriptors.pop(0))
                        self._call(self._attach, message, connection)
                    elif isinstance(message, Save):
                        self._call(self._save, message, open(self.channel.descriptors.pop(0), "wb"))
                    elif isinstance(message, Restore):
                        self._call(self._restore, message, open(self.channel.descriptors.pop(0), "rb"))
                    elif isinstance(message, Sought) and self.shelf is not None:
                        file = open(self.channel.descriptors.pop(0), "rb") if message.found else None
                        self.shelf.answer(message, file)
                    elif isinstance(message, Give) and self.shelf is not None:
                        self.shelf.give(message.what, socket.socket(fileno=self.channel.descriptors.pop(0)))
                    elif isinstance(message, Make):
                        connection = socket.socket(fileno=self.channel.descriptors.pop(0))
                        threading.Thread(target=self._make, args=(message, connection), daemon=True).start()
                    elif isinstance(message, Leave):
                        self._call(self._leave, message)
                    elif isinstance(message, Moved):
                        self._call(self._moved, message)
                    elif isinstance(message, Finish):
                        self._call(self._finish, message)
                    elif isinstance(message, Ask):
                        threading.Thread(target=self._look, name="look", daemon=True).start()
                    elif isinstance(message, Granted):
                        with self.answered:
                            self.answers.append(message)
                            self.answered.notify()
        except Closed:
            self.lost()

    def _look(self) -> None:
        """Writes to each device, and reads that back: one that computes can do so, one that is out of order can not."""
        for device in addressable(self.devices):
            host_bytes(backend_of(device).put(ONE, ONE_TYPE, device, True))
        self.send(Answered())

    def _make(self, message: Make, connection: socket.socket) -> None:
        """Compiles a program for the host to store: this process has done nothing else, and ends then."""
        try:
            with connection.makefile("rb") as source:
                data = source.read()
            (m,) = p.decode(message.what)
            assert isinstance(m, (p.Compile, p.CompileSpread))
            hand(lambda: self.programs.dumped(m, data, self.devices), connection)
        except Exception as e:
            log.warning("a program can't be compiled to be stored: %s: %s", type(e).__name__, e)
        self.done()

    def lost(self) -> None:
        """The front is gone, and with it the clients."""
        self._call(self.stopped.set)

    def _call(self, call: Callable[P, None], *args: P.args, **named: P.kwargs) -> None:
        try:
            self.loop.call_soon_threadsafe(lambda: call(*args, **named))
        except RuntimeError:  # the loop has ended
            pass

    def need(self, size: int) -> Granted:
        """Asks the front for the right to use so many bytes more; one thread at a time does so."""
        with self.answered:
            self.send(Need(size))
            self.answered.wait_for(lambda: self.answers)
            return self.answers.pop(0)

    # the event loop ---------------------------------------------------------------------------------------------------

    def _attach(self, message: Attach, connection: socket.socket) -> None:
        if message.session in self.restoring:
            self.restoring[message.session].append((message, connection))
            return
        session = self.sessions.get(message.session)
        if session is None and not message.fresh:  # it has just ended; the front knows why when its client asks again
            connection.close()
            return
        if session is None:
            session = self._session(message)
        self._open(session, message, connection)

    def _open(self, session: HostSession, message: Attach, connection: socket.socket) -> None:
        connection.setblocking(False)
        link = Link(session, self.limits, self.loop, message.begun, message.deflate)
        self._keep(self._connect(link, connection))

    def _session(self, message: Attach | Restore) -> HostSession:
        made = HostSession(
            self.programs,
            self.devices,
            self.limits,
            self.memory,
            message.name,
            self._forget,
            message.session,
            message.secret,
            self.move,
        )
        self.sessions[message.session] = made
        return made

    async def _connect(self, link: Link, connection: socket.socket) -> None:
        try:
            await self.loop.connect_accepted_socket(lambda: link, connection)
        except OSError:  # the client is gone already
            connection.close()
            link.connection_lost(None)

    def _finish(self, message: Finish) -> None:
        session = self.sessions.get(message.session)
        if session is not None:
            session.close(p.End(message.error, message.message))

    # sessions that move -----------------------------------------------------------------------------------------------

    @property
    def move(self) -> Callable[[HostSession], None] | None:
        """Asks for another process for a session, where it has one for itself."""
        return None

    def _save(self, message: Save, file: BinaryIO) -> None:
        session = self.sessions.get(message.session)
        if session is None:  # it has just ended
            file.close()
            return
        session.leave()
        self._keep(self._saved(session, file, message.wait))

    async def _saved(self, session: HostSession, file: BinaryIO, wait: bool) -> None:
        def write() -> None:
            with contextlib.suppress(OSError), file:  # if nobody reads it, the client is told that the session is lost
                state.write(state.save(session), file)

        # two steps: what the thread has told the event loop before it stopped, its last replies, comes between them
        await asyncio.to_thread(session.performer.park, PARK_SECONDS)
        await asyncio.to_thread(write)
        if not wait:
            self._moved(Moved(session.id, True))

    def _moved(self, message: Moved) -> None:
        session = self.sessions.get(message.session)
        if session is not None and message.well:
            del self.sessions[message.session]
            session.performer.close()
            self.done()
        elif session is not None:
            session.stay()

    def _leave(self, message: Leave) -> None:
        session = self.sessions.get(message.session)
        if session is not None:
            session.leaving = True
            self._rest(session, session.kept or self.limits.grace)

    def _rest(self, session: HostSession, seconds: float) -> None:
        """Has a session go on disk if it has nothing to do."""
        tried = time.monotonic() - session.stayed_at < RETRY_SECONDS
        if session.end is None and not (session.moving or tried or session.performer.is_busy()):
            session.moving = True
            self.send(Rest(session.id, int(seconds)))

    def _restore(self, message: Restore, file: BinaryIO) -> None:
        if isinstance(self.memory, Share):
            self.memory.give(-message.granted)
        self.restoring[message.session] = []
        self._keep(self._restored(self._session(message), file))

    async def _restored(self, session: HostSession, file: BinaryIO) -> None:
        def run() -> None:
            with file:
                state.restore(session, state.read(file))

        try:
            await asyncio.to_thread(run)
        except Exception as e:
            log.exception("session %s", session.name, extra={"session": session.id})
            why = "the session could not go on in another process; its arrays are gone. Connect again."
            self._not_restored(session, p.End("ConnectionLost", f"{why} ({type(e).__name__})"))
            return
        self.send(Restored(session.id))
        session.left_at = time.monotonic()
        session.performer.start()
        for message, connection in self.restoring.pop(session.id):
            self._attach(message, connection)

    def _not_restored(self, session: HostSession, end: p.End) -> None:
        """Tells those who wait for a session that it is lost."""
        session.end = end
        del self.sessions[session.id]
        self.send(Ended(session.id, end.error, end.message, False))
        for message, connection in self.restoring.pop(session.id):
            self._open(session, message, connection)
        self.loop.call_later(2 * PARTING, self.done)

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs something in the loop, which holds its tasks weakly."""
        task = self.loop.create_task(work)
        self.opening.add(task)
        task.add_done_callback(self.opening.discard)

    def _forget(self, session: HostSession) -> None:
        """A session has ended, or its client has left after that."""
        if self.sessions.pop(session.id, None) is not None:
            assert session.end is not None
            self.send(totals(session))
            self.send(Ended(session.id, session.end.error, session.end.message, session.closed))
            self.abandoned.append((session, time.monotonic()))
        if session.link is None:
            self.done()

    async def _watch(self) -> None:
        """Ends sessions that compute for too long, or whose client has not returned."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            now, instant = time.monotonic(), self.loop.time()
            for session in list(self.sessions.values()):
                running = session.overdue(now)
                if session.reports.is_waiting:  # for its client, who may be about to come back
                    running = 0.0
                if session.link is not None:
                    session.link.watch(instant)
                    session.tell_progress()
                away = 0.0 if session.left_at is None else now - session.left_at
                patience = session.kept or self.limits.grace
                if session.end is None and away > patience:
                    session.close(p.End("ConnectionLost", "the session was not taken up again in time."))
                elif session.end is None and running and away > self.limits.unattended and not session.kept:
                    session.fail(unattended(self.limits))
                elif session.leaving or session.kept and away > REST_SECONDS:
                    self._rest(session, patience - away)
                self.send(Alive(session.id, int(running * 1000), 0 if session.kept else int(away * 1000)))
                self.send(totals(session))
            self.abandoned = [
                (s, at) for s, at in self.abandoned if (t := s.performer.thread) is not None and t.is_alive()
            ]
            for _, at in self.abandoned:
                self.stuck(now - at)
            if isinstance(self.memory, Share):
                self.memory.trim()

    def stuck(self, seconds: float) -> None:
        """A session that has ended computes on."""


def unattended(limits: Limits) -> LimitError:
    """Why a session ends that computes without its client."""
    return LimitError(
        f"the client was away for {limits.unattended:g} s while the session computed, and a host goes on no longer"
        " without it."
    )


class Share(Tally):
    """What a worker may use of the bytes of all sessions: as much as the front has granted."""

    def __init__(self, worker: Worker):
        super().__init__(0, of_host(0).exceeded)
        self.worker = worker

    @override
    def take(self, size: int, what: str) -> None:
        with self.lock:
            used = self._up_to_date()
            if used + size > self.limit:
                answer = self.worker.need(used + size - self.limit)
                self.limit += answer.bytes
                if used + size > self.limit:
                    raise LimitError(self.exceeded.format(what=what, size=size, used=answer.used, limit=answer.limit))
            self.count += size

    def trim(self) -> None:
        """Gives back what is not used."""
        if self.lock.acquire(blocking=False):  # else a thread asks for more at this moment
            try:
                extra = self.limit - self._up_to_date() - SPARE
                if extra > 0:
                    self.limit -= extra
                    self.worker.send(Returned(extra))
            finally:
                self.lock.release()


class SaidHandler(logging.Handler):
    """Sends log entries to the front: a process with a stranger's programs has no file of the host's to write to."""

    def __init__(self, worker: Worker):
        super().__init__()
        self.worker = worker

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self.worker.send(Said(record.levelno, self.format(record)[:8000], str(vars(record).get("session", ""))))


class ForkedWorker(Worker):
    """A worker with a process of its own, which ends with its only session, or with the front."""

    def __init__(self, channel: Channel, devices: list[Device], limits: Limits, alone: bool, executables: bool = False):
        self.alone = alone
        memory = None if alone else of_host(limits.total_bytes)
        super().__init__(channel, devices, limits, memory, self._done, executables)
        root = logging.getLogger()
        root.handlers.clear()
        root.addHandler(SaidHandler(self))

    @override
    def lost(self) -> None:
        os._exit(0)

    @override
    def stuck(self, seconds: float) -> None:
        if not self.alone and seconds > STUCK_SECONDS:  # its device is lost for all until the process ends
            os._exit(STUCK)

    @property
    @override
    def move(self) -> Callable[[HostSession], None] | None:
        return (lambda session: self.send(Move(session.id))) if self.alone else None

    def _done(self) -> None:
        if self.alone:  # computations end with the process; nothing else can stop them
            os._exit(0)
