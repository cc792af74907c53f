"""The transport of CPython processes. The thread that waits for a reply reads the socket itself, and every thread sends
by itself: a call crosses to no other thread. A thread of the transport reads while nobody waits.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from websockets.exceptions import InvalidHandshake, InvalidStatus, InvalidURI
from weft.base.annotations import override
from weft.base.errors import BackendError
from weft.serialization.binary import DeserializationError

from .errors import ConnectionLost, LimitError, ProtocolError, full, lost
from .session import LOG, Session, Transport
from .turn import Turn
from .wire import Wire

BEAT, SILENCE = 5.0, 15.0  # seconds without a byte after which a host is asked whether it is there, and taken for gone
REFUSED = 1.0  # seconds after which a host at whose address nothing listens is taken for gone
AWAY = (502, 503, 504)  # with which a proxy says that it can't reach the host
RESTART, LATER = 1012, 1013  # with which a host closes a connection that starts again, or can't have it now
TIDY = 0.1  # seconds that freed arrays wait for company
TICK = 0.002  # seconds that an operation waits at most for the next one
IDLE = 0.02  # seconds without a waiting thread after which the transport's own reads
PARTING = 1.0  # seconds in which a host answers the end of a session
_PAUSES = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0)  # between attempts to take a connection up again


MAIN, SIGINT = threading.main_thread().ident, int(_signal.SIGINT)
# Those of `signal` look for an enum, which takes longer than all else that is done for a small call.
set_handler: Callable[[int, Any], Any] = _signal.signal
get_handler: Callable[[int], Any] = _signal.getsignal


class ComeAgain(EOFError):
    """The host closes the connection, and says to connect again."""


class ThreadTransport(Transport):
    """Carries a session's frames over one connection after another."""

    def __init__(
        self, session: Session, timeout: float, patience: float | None = None, compression: bool | None = None
    ):
        self.session, self.timeout, self.queueing, self.compression = session, timeout, patience, compression
        self.wire: Wire | None = None
        self.queued: Wire | None = None  # a connection for which the host has no place yet
        self.lock = threading.RLock()  # `with` takes it in less time than the condition, which is Python
        self.changed = threading.Condition(self.lock)
        self.reader: int | None = None  # the thread that reads the socket
        self.waiting = 0  # threads of the program that want to
        self.left = 0.0  # when the last of them was done
        self.sending = Turn()
        self.awake = self.tidying = self.ended = False
        self.held = False  # the system took no more bytes; whoever reads sends the rest
        # of a lost connection: since when, why, and when to try again
        self.gone: float | None = None
        self.why = ""
        self.patience = self.refused = 0.0
        self.pauses: Iterator[float] = iter(_PAUSES)
        self.poked, self.poker = socket.socketpair()
        for end in (self.poked, self.poker):
            end.setblocking(False)
        self.thread = threading.Thread(target=self._keep, name=f"weft-remote {session.url}", daemon=True)

    @override
    def open(self) -> None:
        try:
            self._begin()
        except InvalidURI as e:
            raise ConnectionLost(f"{self.session.url!r} is not a websocket address: {e}. Use ws://host:port.") from None
        except (OSError, InvalidHandshake, EOFError) as e:
            if isinstance(e, ComeAgain):
                raise ConnectionLost(f"{self.session.url} says to connect again later: {e}") from None
            raise self._final(e) or ConnectionLost(
                f"no connection to {self.session.url}: {e}. Is the host running (`weft-host`), and are address and port"
                " right?"
            ) from None
        self.thread.start()

    def _begin(self) -> None:
        """The first connection, which may have to wait for its place. A session that is taken up may end at this
        moment, and its process with the connection that it was given; asked again, the host says why.
        """
        pauses, again = iter(_PAUSES), 3 if self.session.granted is not None else 0
        until = time.monotonic() + self.timeout
        while True:
            try:
                self._connect()
                while self.wire is None:
                    self._stand(BEAT, self.queueing)
                    until = time.monotonic() + self.timeout
                return
            except EOFError as e:
                again -= 1
                if time.monotonic() > until or again < 0 and not isinstance(e, ComeAgain):
                    raise
                time.sleep(next(pauses, _PAUSES[-1]))

    @override
    async def open_async(self) -> None:
        await asyncio.to_thread(self.open)

    def _connect(self) -> None:
        """Connects and logs in; the session has its place then, or waits for it."""
        wire = Wire(self.session.address(), self.session.offers(), self.timeout, self.poked, self.compression)
        with self._keeping(wire):
            until = time.monotonic() + self.timeout
            while not (frames := wire.receive()):
                if time.monotonic() > until:
                    raise TimeoutError("the host does not greet")
                wire.wait(until - time.monotonic())
            self._greeted(wire, frames.popleft())

    def _greeted(self, wire: Wire, frame: bytes) -> None:
        """A frame of a host that has not let the session in yet."""
        if not self.session.start(frame):
            self.queued = wire
            return
        self.queued, self.gone, self.pauses = None, None, iter(_PAUSES)
        self.wire = wire
        self.wake()

    def _stand(self, seconds: float, patience: float | None = None) -> None:
        """Waits for its place; returns when that has changed, or after some time."""
        wire = self.queued
        assert wire is not None
        with self._keeping(wire):
            if patience is not None and self.session.waited > patience:
                raise full(self.session.url, patience)
            left = seconds if patience is None else min(seconds, patience - self.session.waited)
            wire.wait(max(0.0, left))
            while self.queued is wire and (frames := wire.receive()):
                self._greeted(wire, frames.popleft())
            if self.queued is wire:
                self._look_for_life(wire)

    @contextlib.contextmanager
    def _keeping(self, wire: Wire) -> Iterator[None]:
        """Closes a connection that doesn't come to be the session's."""
        try:
            yield
        except BaseException as e:
            self.queued = None
            wire.close()
            if isinstance(e, EOFError):
                again = ComeAgain(wire.reason()) if wire.code in (RESTART, LATER) else None
                raise closed(wire) or again or e from None
            raise

    @staticmethod
    def _look_for_life(wire: Wire) -> None:
        """Asks a silent host whether it is there. Raises EOFError if it does not answer."""
        silent = time.monotonic() - wire.heard
        if silent > SILENCE:
            raise EOFError(f"the host has not answered for {SILENCE:g} s")
        if silent > BEAT:
            wire.ping()

    def _final(self, error: Exception) -> Exception | None:
        """The error of the session if it is of no use to try again."""
        if isinstance(error, InvalidStatus) and error.response.status_code not in AWAY:
            return ConnectionLost(f"{self.session.url} refused the connection: {error}.")
        return None

    # sending ----------------------------------------------------------------------------------------------------------

    @override
    def wake(self) -> None:
        self.awake = True
        token = object()
        while self.awake:
            try:
                if not self.sending.take(token):  # the thread that sends looks again
                    return
                self.awake = False
                self._send()
            finally:
                if self.sending.holder is token:
                    self.sending.holder = None

    @override
    def wake_soon(self) -> None:
        """What comes just after a wait is often followed by the next one, and by its request: they go out together."""
        if time.monotonic() - self.left < TICK / 2:
            self.awake = True
        else:
            self.wake()

    def _send(self) -> None:
        wire = self.wire
        if wire is None:
            return
        try:
            self.held = False
            while not self.held and (frame := self.session.outgoing() if wire.flush() else None) is not None:
                wire.send(frame)
                self.held = bool(wire.unsent)
            if wire.unsent:
                self.held = True
                if self.reader != threading.get_ident():
                    self._poke()
        except Exception:  # the connection is lost; who reads notices that and resumes it
            self._poke()
        except BaseException:  # Ctrl-C: what of the frame is sent, nobody knows; the next connection sends it again
            wire.close()
            self._poke()
            raise

    @override
    def wake_later(self) -> None:
        if not self.tidying:
            self.tidying = True
            self._poke()

    def _poke(self) -> None:
        """Has the transport's thread look; takes no lock."""
        try:
            self.poker.send(b"\0")
        except OSError:  # it has enough to look at, or has ended
            pass

    # receiving --------------------------------------------------------------------------------------------------------

    @override
    def wait(self, done: Callable[[], bool]) -> None:
        """Ctrl-C ends it between two frames: an exception within one would lose the messages in it."""
        if threading.get_ident() != MAIN or get_handler(SIGINT) is None:  # or a handler that is not Python's
            self._wait(done)
            return
        caught: list[tuple[int, FrameType | None]] = []

        def note(number: int, frame: FrameType | None) -> None:
            caught.append((number, frame))
            self._poke()

        handler = set_handler(SIGINT, note)
        try:
            self._wait(lambda: bool(caught) or done())
        finally:
            set_handler(SIGINT, handler)
            for number, frame in caught:
                if callable(handler):
                    handler(number, frame)

    def _wait(self, done: Callable[[], bool]) -> None:
        with self.lock:
            self.waiting += 1
        if self.awake:
            self.wake()
        try:
            finished = done()
            while not finished:
                with self.lock:
                    if self.reader is not None:
                        self._poke()
                        self.changed.wait_for(lambda: done() or self.ended or self.reader is None)
                    if self.ended and not done():  # no more frames will arrive
                        raise ConnectionLost(
                            f"the session on {self.session.url} has ended. Connect again with weft.remote.connect."
                        )
                    if self.reader is not None:
                        return  # done, by who reads
                    self.reader = threading.get_ident()
                try:
                    while not (finished := done()) and not self.ended:
                        self._step(BEAT)
                finally:
                    self._stop_reading()
        finally:
            with self.lock:
                self.waiting -= 1
                self.left = time.monotonic()

    def _stop_reading(self) -> None:
        with self.lock:
            self.reader = None
            if self.waiting > 1 or self.ended:
                self.changed.notify_all()

    @override
    async def until(self, done: Callable[[], bool]) -> None:
        await asyncio.to_thread(self.wait, done)

    @override
    def can_wait(self) -> bool:
        return True

    @override
    def look(self) -> None:
        """Python itself is interrupted."""

    @override
    def relieve(self) -> None:
        self.wait(lambda: self.session.log_bytes() <= LOG // 2 or self.session.failure is not None)

    def _step(self, seconds: float) -> None:
        """Receives what comes within some time, and takes up a lost connection again. One thread at a time."""
        wire = self.wire
        try:
            if wire is None:
                self._again(seconds)
                return
            wire.wait(seconds)
            frames = wire.receive()
            while frames:
                self.session.receive(frames.popleft())
                if self.waiting > 1 or self.thread is threading.current_thread():
                    self._tell()
            if self.held or self.awake:
                self.wake()
            self._look_for_life(wire)
        except (BackendError, DeserializationError) as e:  # the host has ended the session, or is not a host
            self._fail(e)
        except (OSError, EOFError) as e:
            self._lose(wire, e)

    def _tell(self) -> None:
        with self.changed:
            self.changed.notify_all()

    def _lose(self, wire: Wire | None, error: Exception) -> None:
        """A connection is lost."""
        self.wire = None
        final = None
        if wire is not None:
            wire.close()
            try:
                for frame in wire.frames:  # the host's own words come before how the connection ended
                    self.session.receive(frame)
                final = closed(wire)
            except (BackendError, DeserializationError) as e:
                final = e
        if final is not None:
            self._fail(final)
        elif self.session.closed:
            self._end()
        else:
            self.why = str(error)
            self.gone = time.monotonic()
            self.patience = self.session.welcome.grace_ms / 1000
            # a host that starts again listens to nobody meanwhile
            self.refused = self.patience if wire is not None and wire.code == RESTART else REFUSED
            self.pauses = iter(_PAUSES)

    def _again(self, seconds: float) -> None:
        """Tries once to take up a lost connection, or waits for some time for its place."""
        if self.session.closed:
            self._end()
            return
        began = self.gone if self.gone is not None else time.monotonic()
        try:
            if self.queued is None:
                self._connect()
            else:
                self.gone = time.monotonic()  # it is lost since then, if this connection is lost too
                self._stand(seconds)
            return
        except (OSError, InvalidHandshake, EOFError) as e:
            if isinstance(e, ComeAgain):  # the host has the session
                self.gone = began = time.monotonic()
                self.refused = self.patience
            final = self._final(e)
            patience = (
                min(self.patience, self.refused)
                if isinstance(e, (ConnectionRefusedError, InvalidStatus))
                else self.patience
            )
            if final is not None or time.monotonic() - began > patience:
                self._fail(final or lost(self.session.url, str(e) or self.why))
                return
        time.sleep(next(self.pauses, _PAUSES[-1]))

    def _fail(self, error: Exception) -> None:
        self.session.fail(error)
        self._end()

    def _end(self) -> None:
        self.ended = True
        for wire in (self.wire, self.queued):
            if wire is not None:
                wire.close()
        self.wire = self.queued = None
        self._tell()
        self._poke()

    # the transport's thread -------------------------------------------------------------------------------------------

    def _keep(self) -> None:
        """Reads while nobody waits, sends what waited, and tidies up."""
        due: float | None = None
        while not self.ended:
            if self.awake:
                self.wake()
            if self.tidying and due is None:
                due = time.monotonic() + TIDY
            if due is not None and time.monotonic() >= due:
                due, self.tidying = None, False
                self.session.tidy()
                self.wake()
            pause = BEAT if due is None else max(0.0, due - time.monotonic())
            with self.changed:
                quiet = time.monotonic() - self.left
                if self.waiting or self.reader is not None or quiet < IDLE:
                    self.changed.wait(min(pause, IDLE if self.waiting else TICK))
                    continue
                self.reader = threading.get_ident()
            try:
                self._step(pause)
            except Exception as e:  # all waiting threads must be notified
                self._fail(BackendError(f"the connection to {self.session.url} failed: {type(e).__name__}: {e}"))
                raise
            finally:
                with self.changed:
                    self.reader = None
                    self.changed.notify_all()
        self.poker.close()
        self.poked.close()

    @override
    def close(self, at_once: bool = False) -> None:
        self.wake()
        if threading.current_thread() is self.thread:
            self._end()
            return
        until = time.monotonic() + (0.0 if at_once else min(PARTING, self.timeout))
        while not self.ended and time.monotonic() < until:
            with self.changed:
                if self.reader is not None:
                    self._poke()
                    self.changed.wait(0.05)
                    continue
                self.reader = threading.get_ident()
            try:
                self._step(0.05)
            finally:
                self._stop_reading()
        self._end()
        if self.thread.ident is not None:
            self.thread.join(self.timeout)


def closed(wire: Wire) -> Exception | None:
    """The error of a session whose connection the host has closed for good."""
    if wire.code not in (1002, 1003, 1007, 1008, 1009):
        return None
    kind = LimitError if wire.code == 1009 else ProtocolError
    return kind(f"the host closed the connection: {wire.reason()}.")
