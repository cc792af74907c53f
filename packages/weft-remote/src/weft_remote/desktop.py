"""The transport of CPython processes: a thread with an asyncio loop and the `websockets` library."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
from websockets.typing import Subprotocol
from weft.base.annotations import override
from weft.serialization.binary import DeserializationError
from weft.base.errors import BackendError

from .errors import ConnectionLost, LimitError, ProtocolError, lost
from .session import LOG, Session, Transport

BEAT, SILENCE = 5.0, 10.0  # seconds between two pings, and seconds without an answer after which a peer counts as gone
REFUSED = 1.0  # seconds after which a host at whose address nothing listens is taken for gone
TIDY = 0.1  # seconds that freed arrays wait for company
_PAUSES = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0)  # between attempts to take a connection up again


class ThreadTransport(Transport):
    """Carries a session's frames in a thread of its own."""

    def __init__(self, session: Session, timeout: float):
        self.session, self.timeout = session, timeout
        self.changed = threading.Condition()
        self.loop = asyncio.new_event_loop()
        self.work = asyncio.Event()
        self.awake = self.tidying = self.ended = False
        self.opened: Exception | bool | None = None
        self.thread = threading.Thread(target=self._run, name=f"weft-remote {session.url}", daemon=True)

    @override
    def open(self) -> None:
        self.thread.start()
        with self.changed:
            self.changed.wait_for(lambda: self.opened is not None)
        if isinstance(self.opened, Exception):
            raise self.opened

    @override
    async def open_async(self) -> None:
        await asyncio.to_thread(self.open)

    # the interface of a transport -----------------------------------------------------------------------------------

    @override
    def wake(self) -> None:
        if not self.awake:
            self.awake = True
            try:
                self.loop.call_soon_threadsafe(self.work.set)
            except RuntimeError:  # the loop is closed, and with it the session
                pass

    @override
    def wake_later(self) -> None:
        if not self.tidying:
            self.tidying = True
            try:
                self.loop.call_soon_threadsafe(self.loop.call_later, TIDY, self._tidy)
            except RuntimeError:
                pass

    def _tidy(self) -> None:
        self.tidying = False
        self.work.set()

    @override
    def wait(self, done: Callable[[], bool]) -> None:
        with self.changed:
            self.changed.wait_for(lambda: self.ended or done())
        if not done():  # no more frames will arrive
            raise ConnectionLost(
                f"the session on {self.session.url} has ended. Connect again with weft.remote.connect."
            )

    @override
    async def until(self, done: Callable[[], bool]) -> None:
        await asyncio.to_thread(self.wait, done)

    @override
    def look(self) -> None:
        """Python itself is interrupted."""

    @override
    def relieve(self) -> None:
        self.wait(lambda: self.session.log_bytes() <= LOG // 2 or self.session.failure is not None)

    @override
    def close(self) -> None:
        self.awake = False
        self.wake()
        if threading.current_thread() is not self.thread:
            self.thread.join(self.timeout)

    # the thread -----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_until_complete(self._connections())
        except BaseException as e:  # all waiting threads must be notified
            self._fail(BackendError(f"the connection to {self.session.url} failed: {type(e).__name__}: {e}"))
            raise
        finally:
            self.ended = True
            self._tell()
            self.loop.close()

    def _tell(self, opened: Exception | bool | None = None) -> None:
        with self.changed:
            if opened is not None and self.opened is None:
                self.opened = opened
            self.changed.notify_all()

    async def _connections(self) -> None:
        """Opens one connection after another, until the session ends."""
        pauses = iter(_PAUSES)
        gone: float | None = None  # when the last connection was lost
        while True:
            try:
                async with asyncio.timeout(self.timeout):
                    socket = await connect(
                        self.session.address(),
                        subprotocols=[Subprotocol(name) for name in self.session.offers()],
                        max_size=None,
                        compression=None,
                        open_timeout=None,
                        ping_interval=BEAT,
                        ping_timeout=SILENCE,
                        user_agent_header=None,
                    )
                async with socket:
                    async with asyncio.timeout(self.timeout):
                        self.session.start(await _frame(socket))
                    self._tell(True)
                    gone, pauses = None, iter(_PAUSES)
                    await self._carry(socket)
                if self.session.closed:
                    return
            except (BackendError, DeserializationError) as e:  # the host has ended the session, or is not a host
                return self._fail(e)
            except InvalidURI as e:
                return self._fail(
                    ConnectionLost(f"{self.session.url!r} is not a websocket address: {e}. Use ws://host:port.")
                )
            except ConnectionClosed as e:
                if e.rcvd is not None and e.rcvd.code in (1002, 1003, 1007, 1008, 1009):
                    kind = LimitError if e.rcvd.code == 1009 else ProtocolError
                    return self._fail(kind(f"the host closed the connection: {e.rcvd.reason or e.rcvd.code}."))
                why: Exception = e
            except (OSError, InvalidHandshake, TimeoutError) as e:
                if isinstance(e, InvalidStatus):
                    return self._fail(ConnectionLost(f"{self.session.url} refused the connection: {e}."))
                why = e
            if self.session.closed:
                return
            if self.opened is None:
                return self._fail(
                    ConnectionLost(
                        f"no connection to {self.session.url}: {why}. Is the host running (`weft-host`), and are "
                        "address and port right?"
                    )
                )
            now = self.loop.time()
            gone = now if gone is None else gone
            patience = self.session.welcome.grace_ms / 1000
            if isinstance(why, ConnectionRefusedError):
                patience = min(patience, REFUSED)
            if now - gone > patience:
                return self._fail(lost(self.session.url, str(why)))
            await asyncio.sleep(next(pauses, _PAUSES[-1]))

    def _fail(self, error: Exception) -> None:
        self.session.fail(error)
        self._tell(error)

    async def _carry(self, socket: ClientConnection) -> None:
        """Sends and receives on one connection, until it or the session ends."""
        sender = asyncio.ensure_future(self._send(socket))
        receiver = asyncio.ensure_future(self._receive(socket))
        done, pending = await asyncio.wait([sender, receiver], return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        if receiver in done:  # the host's reason for the end matters more than the failure to send
            receiver.result()
        elif isinstance(sender.exception(), ConnectionClosed):
            await self._receive(socket)
        for task in done:
            task.result()

    async def _send(self, socket: ClientConnection) -> None:
        while True:
            self.awake = False
            self.work.clear()
            while (frame := self.session.outgoing()) is not None:
                await socket.send(frame)
            if self.session.closed:
                return
            await self.work.wait()

    async def _receive(self, socket: ClientConnection) -> None:
        while True:
            self.session.receive(await _frame(socket))
            self._tell()


async def _frame(socket: ClientConnection) -> bytes:
    message = await socket.recv()
    if isinstance(message, str):
        raise ProtocolError("the host sent text; a frame is binary.")
    return message
