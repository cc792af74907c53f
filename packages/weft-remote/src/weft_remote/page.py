"""The transport of a page: the websocket that the page gives to Python (`_weft_page`, see web/CONTRACT.md), and no
thread.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

import _weft_page as page
import pyodide_js
from js import Uint8Array, navigator
from pyodide.ffi import JsException, can_run_sync, run_sync
from weft.base.annotations import override

from . import protocol as p
from .errors import ConnectionLost, full, lost
from .session import LOG, Session, Transport

TIDY = 64  # freed arrays that wait for the next operation
_PAUSES = (0.05, 0.2, 0.3, 0.5, 1.0, 2.0)
REFUSED = 1.0  # seconds after which a host that can't be reached is taken for gone, while the page is online
SILENT = 4.0  # and one that does not answer at all
RESTART, LATER = "1012", "1013"  # with which a host closes a connection that starts again, or can't have it now
LOOK = 0.1  # seconds between two checks whether the program must stop
BEAT, SILENCE = 2.5, 10.0  # seconds of silence after which the host is asked whether it is there, and taken for gone


class Unreachable(ConnectionLost):
    """Nothing answers: another attempt may succeed."""


class Bytes(Protocol):
    """A Uint8Array of the page."""

    def to_bytes(self) -> bytes: ...
    def assign(self, data: bytes) -> None: ...


class Socket(Protocol):
    """A websocket of the page."""

    closeReason: str

    def send(self, data: Bytes) -> None: ...
    async def recv(self) -> Bytes | None: ...
    def close(self) -> None: ...


class PageTransport(Transport):
    """Sends at once; receives while the program waits."""

    def __init__(self, session: Session, patience: float | None = None):
        self.session, self.sending, self.queueing = session, False, patience
        self.socket: Socket | None = None
        self.receiving: asyncio.Future[bytes] | None = None  # a pending wait for the next frame

    @override
    def open(self) -> None:
        if not can_run_sync():
            raise RuntimeError(
                "connect() can't wait here: this browser does not suspend WebAssembly (JSPI). Write "
                "`session = await weft.remote.connect_async(url, token=…)`."
            )
        if not run_sync(self._open()):
            pyodide_js.checkInterrupt()  # raises if Python has been interrupted too: one stop is one exception
            raise KeyboardInterrupt

    @override
    async def open_async(self) -> None:
        if not await self._open():
            raise KeyboardInterrupt

    async def _open(self) -> bool:
        """The first connection; False if the program must stop before. A host that is about to stop has those come
        again who wait for it; perhaps there is another one.
        """
        tries = iter(_PAUSES)
        while True:
            try:
                return await self._connect() or await self._stand(self.queueing)
            except EOFError as e:
                pause = next(tries, None) if str(e).startswith(LATER) else None
                if pause is None:
                    raise ConnectionLost(f"{self.session.url} closed the connection: {e}.") from None
                await asyncio.sleep(pause)

    async def _connect(self) -> bool:
        """Connects and logs in; whether the session has its place, and does not wait for it."""
        try:
            socket: Socket = await page.open(self.session.address(), *self.session.offers())
        except JsException as e:
            raise Unreachable(
                f"no connection to {self.session.url}: {e.message} Is the host running (`weft-host`), and does it allow"
                " this page (`--allow-origin`)?"
            ) from None
        self.socket = socket
        begun = self.session.start(await _next(socket))
        if begun:
            self.wake()
        return begun

    async def _stand(self, patience: float | None = None) -> bool:
        """Waits for the session's place, on a connection that is there; False if the program must stop before."""
        try:
            begun = False
            while not begun:
                frame = await self._frame(patience)
                if frame is None:
                    self._hang_up()
                    return False
                begun = self.session.start(frame)
        except BaseException:
            self._hang_up()
            raise
        self.wake()
        return True

    # the interface of a transport -----------------------------------------------------------------------------------

    @override
    def wake(self) -> None:
        if self.sending:  # garbage collection, or a reply that is being handled
            return
        self.sending = True
        try:
            while (
                self.socket is not None
                and not self.socket.closeReason
                and (frame := self.session.outgoing()) is not None
            ):
                _send(self.socket, frame)
        except JsException:  # the connection is lost; the next wait notices that and resumes it
            pass
        finally:
            self.sending = False

    @override
    def wake_soon(self) -> None:
        self.wake()

    @override
    def wake_later(self) -> None:
        if len(self.session._garbage) >= TIDY:
            self.wake()

    @override
    def wait(self, done: Callable[[], bool]) -> None:
        if not done():
            if not can_run_sync():
                raise RuntimeError(
                    "this program can't stand still for the host here: the browser does not suspend WebAssembly (JSPI),"
                    " or the call does not come from the page's event loop. Write `await weft.remote.prefetch_async(x)`"
                    " before x is read, or use a browser with JSPI."
                )
            if not run_sync(self._until(done)):
                pyodide_js.checkInterrupt()  # raises if Python has been interrupted too: one stop is one exception
                raise KeyboardInterrupt

    @override
    async def until(self, done: Callable[[], bool]) -> None:
        """Receives until `done()`."""
        if not await self._until(done):
            self.session.cancel()
            raise KeyboardInterrupt

    async def _until(self, done: Callable[[], bool]) -> bool:
        """Receives until `done()`; False if the program must stop before. It does not raise: in a task, a
        KeyboardInterrupt would end the page's event loop too.
        """
        while not done():
            try:
                frame = await self._frame()
            except (EOFError, JsException) as e:
                if not await self._again(str(e)):
                    return False
                continue
            if frame is None:
                return False
            try:
                self.session.receive(frame)
            except Exception as e:  # the host has ended the session, or does not speak as a host does
                self.session.fail(e)
        return True

    async def _frame(self, patience: float | None = None) -> bytes | None:
        """The next frame; None if the program must stop before. Raises EOFError if the connection is closed, or the
        host silent, and LimitError if the session has waited for longer than so many seconds for its place.
        """
        if self.receiving is None:
            self.receiving = asyncio.ensure_future(_next(self.socket))
        quiet, asked, unsent = 0.0, False, 0
        while not (await asyncio.wait([self.receiving], timeout=LOOK))[0]:
            if stopped():
                return None
            if patience is not None and self.session.waited > patience:
                raise full(self.session.url, patience)
            left = getattr(self.socket, "unsent", 0)
            # bytes leaving the buffer show that there is a peer
            quiet, unsent = (0.0, left) if left != unsent else (quiet + LOOK, unsent)
            if quiet >= BEAT and not asked:
                asked = True
                self._ask()
            if quiet >= SILENCE:
                self._hang_up()
                raise EOFError(f"the host has not answered for {SILENCE:g} s")
        received, self.receiving = self.receiving, None
        return received.result()

    def _ask(self) -> None:
        """Asks the host whether it is there; also before there is a session to say it."""
        assert self.socket is not None
        if self.session.waits_since is None:
            self.session.ask()
        elif not self.socket.closeReason:
            _send(self.socket, p.encode(p.Beat()))

    def _hang_up(self) -> None:
        """Forgets a connection, and what was awaited from it."""
        if self.receiving is not None:
            self.receiving.cancel()
            self.receiving = None
        if self.socket is not None:
            self.socket.close()
            self.socket = None

    async def _again(self, why: str) -> bool:
        """Resumes a lost connection, within the time that the host grants; False if the program must stop before."""
        self.receiving = None
        left = self.session.welcome.grace_ms / 1000
        code = why.partition(" ")[0]
        if code in ("1002", "1003", "1007", "1008", "1009"):
            self.session.fail(ConnectionLost(f"the host closed the connection: {why}."))
            return True
        began, slept, pauses = time.monotonic(), 0.0, iter(_PAUSES)
        while True:
            try:
                if not await asyncio.wait_for(self._connect(), SILENT):
                    try:
                        return await self._stand()
                    finally:
                        began, slept = time.monotonic(), 0.0  # the host was there until now
                return True
            except (Unreachable, EOFError, JsException, TimeoutError) as e:
                if str(e).partition(" ")[0] in (RESTART, LATER):  # the host has the session
                    began, slept, code = time.monotonic(), 0.0, RESTART
                patience = REFUSED if isinstance(e, Unreachable) else SILENT
                patience = min(patience, left) if online() and code != RESTART else left
                if max(time.monotonic() - began, slept) > patience:
                    break
            except Exception as e:  # the host's own word, such as that it does not know the session
                self.session.fail(e)
                return True
            pause = next(pauses, _PAUSES[-1])
            slept += pause
            for _ in range(max(1, round(pause / LOOK))):
                await asyncio.sleep(min(pause, LOOK))
                if stopped():
                    return False
        self.session.fail(lost(self.session.url, why))
        return True

    @override
    def can_wait(self) -> bool:
        return bool(can_run_sync())

    @override
    def look(self) -> None:
        if stopped():
            pyodide_js.checkInterrupt()
            raise KeyboardInterrupt

    @override
    def relieve(self) -> None:
        if can_run_sync():
            self.wait(lambda: self.session.log_bytes() <= LOG // 2 or self.session.failure is not None)

    @override
    def close(self, at_once: bool = False) -> None:
        self.wake()
        if self.socket is not None:
            self.socket.close()


def stopped() -> bool:
    """Whether the page has asked for a stop, which is answered by this."""
    device = page.device
    asked = bool(device.interrupted)
    if asked:
        device.clearInterrupt()
    return asked


def online() -> bool:
    """Whether the browser has a network connection; without one, it is not the host that is gone."""
    return navigator.onLine is not False


async def _next(socket: Socket | None) -> bytes:
    """The next frame. Raises EOFError, with the reason, if the connection is closed, or was never opened."""
    message = await socket.recv() if socket is not None else None
    if not message:
        raise EOFError(socket.closeReason if socket is not None else "it was never open")
    return message.to_bytes()


def _send(socket: Socket, frame: bytes) -> None:
    data: Bytes = Uint8Array.new(len(frame))
    data.assign(frame)
    socket.send(data)
