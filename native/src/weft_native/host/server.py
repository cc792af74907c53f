"""The host's socket: who may connect, how a session begins and continues, and how invalid messages are handled."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import itertools
import logging
import time
from collections.abc import Sequence
from http import HTTPStatus
from urllib.parse import urlsplit

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from weft.serialization.binary import DeserializationError
from weft.runtime.backend import Device
from weft_remote import protocol as p
from weft_remote.errors import AuthenticationError, ConnectionLost, LimitError, ProtocolError, class_name

from .limits import WINDOW, Limits
from .memory import of_host
from .messages import public_text
from .programs import Programs
from .session import HostSession

log = logging.getLogger("weft.host")
LOOPBACK = ("localhost", "127.0.0.1", "::1")
HELLO_SECONDS, WATCH_SECONDS, STOP_SECONDS = 10.0, 0.25, 1.0
POLICY_VIOLATION = 1008


class Host:
    """Serves weft programs on devices of this machine.

    Args:
        devices: what clients may use.
        token: what they must know.
        limits: of each session.
        origins: web origins, beside those on loopback, whose pages may connect; programs that are no pages have none.
    """

    def __init__(self, devices: list[Device], token: str, limits: Limits = Limits(), origins: tuple[str, ...] = ()):
        if not token:
            raise ValueError("a host needs a token")
        self.devices, self.token, self.limits, self.origins = (
            devices,
            token.encode(),
            limits,
            {o.rstrip("/") for o in origins},
        )
        self.programs = Programs(limits)
        self.memory = of_host(limits.total_bytes)
        self.sessions: dict[bytes, HostSession] = {}
        self.abandoned: list[HostSession] = []  # ended, but still computing: threads can't be stopped
        self.numbers = itertools.count(1)

    async def serve(self, address: str, port: int) -> Server:
        """The websockets server; `watch` must run beside it."""
        return await serve(
            self.handle,
            address,
            port,
            compression=None,
            max_size=self.limits.frame_bytes,
            max_queue=4,
            ping_interval=20,
            ping_timeout=60,
            close_timeout=STOP_SECONDS,
            process_request=self.check_origin,
            server_header=None,
        )

    async def watch(self) -> None:
        """Ends sessions that compute for too long, or whose client has not returned."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            now = time.monotonic()
            for session in list(self.sessions.values()):
                session.overdue(now)
                if session.left_at is not None and now - session.left_at > self.limits.grace:
                    session.close(p.End("ConnectionLost", "the session was not taken up again in time."))

    async def stop(self, server: Server) -> None:
        """Tells all clients that the host is shutting down, and waits a moment so that the message arrives."""
        for session in list(self.sessions.values()):
            session.close(p.End("ConnectionLost", "the host is shutting down; its arrays are gone."))
        server.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(server.wait_closed(), STOP_SECONDS)

    # connections
    # --------------------------------------------------------------------------------------------------------

    def check_origin(self, connection: ServerConnection, request: Request) -> Response | None:
        """Refuses pages of origins that are not allowed. A browser sends the origin; other programs do not."""
        origin = request.headers.get("Origin")
        if origin is None or origin.rstrip("/") in self.origins:
            return None
        try:
            if urlsplit(origin).hostname in LOOPBACK:
                return None
        except ValueError:
            pass
        log.warning("refused a page of %.100r; --allow-origin would let it in", origin)
        return connection.respond(
            HTTPStatus.FORBIDDEN, "Pages of this origin may not connect; see weft-host --allow-origin.\n"
        )

    async def handle(self, socket: ServerConnection) -> None:
        """One connection: a greeting, then a session's messages."""
        session = None
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                first = await socket.recv()
            session, rest = self.greet(first)
            await self.carry(session, socket, rest)
        except ConnectionClosed:
            pass
        except TimeoutError:
            await self.refuse(socket, ProtocolError(f"no greeting came within {HELLO_SECONDS:g} s."))
        except (ProtocolError, LimitError, AuthenticationError, ConnectionLost, DeserializationError) as e:
            if session is not None:
                session.fail(e)
            await self.refuse(socket, e)
        except Exception as e:
            log.exception("connection failed")
            if session is not None:
                session.fail(e)
            await self.refuse(socket, ProtocolError("the host failed; its log says why."))
        finally:
            if session is not None and session.connection is socket and session.end is None:
                session.connection, session.left_at = None, time.monotonic()

    def greet(self, frame: str | bytes) -> tuple[HostSession, list[p.Message]]:
        """The session that a first frame requests, and the other messages of the frame."""
        if isinstance(frame, str):
            raise ProtocolError("messages are binary.")
        messages = p.decode(frame)
        hello = next(iter(messages))
        if not isinstance(hello, p.Hello):
            raise ProtocolError(f"a connection begins with a greeting, not with {type(hello).__name__}.")
        if not hmac.compare_digest(hello.token.encode("utf-8", "surrogatepass"), self.token):
            raise AuthenticationError(
                "the host does not know this token. Take the one that weft-host printed or was started with."
            )
        if not hello.lowest <= p.VERSION or not p.LOWEST <= hello.highest:
            raise ProtocolError(
                f"the client speaks versions {hello.lowest} to {hello.highest} of the protocol, the host {p.LOWEST} to"
                f" {p.VERSION}. Install the same release of weft on both sides."
            )
        if hello.session:
            session = next(
                (s for secret, s in self.sessions.items() if hmac.compare_digest(secret, hello.session)), None
            )
            if session is None:
                raise ConnectionLost("the host does not know the session any more; its arrays are gone. Connect again.")
        else:
            self.abandoned = [s for s in self.abandoned if s.thread is not None and s.thread.is_alive()]
            if len(self.sessions) + len(self.abandoned) >= self.limits.sessions:
                raise LimitError(f"the host has {self.limits.sessions} sessions already. Try again later.")
            name = f"{next(self.numbers)}{' ' + repr(hello.name[:40]) if hello.name else ''}"
            session = HostSession(self.programs, self.devices, self.limits, self.memory, name, self.forget)
            self.sessions[session.secret] = session
            log.info("session %s begins", name)
        session.version = min(hello.highest, p.VERSION)
        return session, list(messages)

    def forget(self, session: HostSession) -> None:
        self.sessions.pop(session.secret, None)
        if session.thread is not None:
            self.abandoned.append(session)

    def welcome(self, session: HostSession) -> bytes:
        """The answer to a greeting."""
        kinds = [text for d in self.devices for text in (d.platform, str(d.device_kind))]
        return p.encode(
            p.Welcome(
                session.version,
                session.secret,
                session.received,
                int(self.limits.grace * 1000),
                self.limits.frame_bytes,
                WINDOW,
                tuple(kinds),
            )
        )

    async def carry(self, session: HostSession, socket: ServerConnection, messages: Sequence[p.Message]) -> None:
        """Messages of a session in both directions, until it or the connection ends."""
        if session.connection is not None:  # the client is back before its old connection was seen to be dead
            asyncio.ensure_future(session.connection.close())
        session.attach(socket)
        await socket.send(self.welcome(session))
        sender = asyncio.ensure_future(self.send(session, socket))
        try:
            for message in messages:
                await session.accept(message, 0)
            while session.end is None:
                frame = await socket.recv()
                if isinstance(frame, str):
                    raise ProtocolError("messages are binary.")
                size = len(frame)
                for message in p.decode(frame):
                    await session.accept(message, size)
                    size = 0
                    if session.end is not None:
                        break
                session.acknowledge(len(frame))
        except ConnectionClosed as e:
            if e.sent is not None and e.sent.code == 1009:  # the frame was never read
                session.fail(LimitError(f"a frame exceeds {self.limits.frame_bytes} bytes."))
            raise
        finally:
            if session.end is None:
                sender.cancel()
            await asyncio.gather(sender, return_exceptions=True)

    async def send(self, session: HostSession, socket: ServerConnection) -> None:
        """Everything that a session has to say; last, why it ends."""
        try:
            while session.end is None:
                session.changed.clear()
                while session.end is None and (frame := session.outgoing()) is not None:
                    await socket.send(frame)
                if session.end is None:
                    await session.changed.wait()
            await self.part(socket, session.end)
        except ConnectionClosed:
            pass

    async def refuse(self, socket: ServerConnection, error: Exception) -> None:
        """Tells the client what was wrong, and closes the connection."""
        end = p.End(class_name(error), public_text(error, lambda path: False))
        log.warning("%s refused: %s: %s", socket.remote_address, end.error, end.message)
        await self.part(socket, end)

    async def part(self, socket: ServerConnection, end: p.End) -> None:
        """Tells the client why its session ends, and closes the connection."""
        try:
            await socket.send(p.encode(end))
            # The reason travels again in the closing frame, which has room for 123 bytes.
            await socket.close(POLICY_VIOLATION, end.message.encode("ascii", "replace")[:120].decode())
        except ConnectionClosed:
            pass
