"""One websocket connection of a session, from when its handshake is done."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from typing import Any, Protocol

from weft.base.annotations import override
from weft.serialization.binary import DeserializationError
from weft_remote import protocol as p
from weft_remote.deflate import Deflate, Terms
from weft_remote.errors import LimitError, ProtocolError
from websockets.exceptions import PayloadTooBig
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.server import ServerProtocol

from .counts import Counts
from .limits import Limits

log = logging.getLogger("weft.host")
PING, SILENCE = 10.0, 30.0  # seconds without a byte after which a client is asked whether it is there, and given up
STALL = 30.0  # seconds for which a client may leave the bytes unread that are sent
PARTING = 1.0  # seconds in which a client closes a connection that the host has ended
PIECE = 4 << 10  # bytes of compressed messages that are taken apart at once
BUFFER = 256 << 10  # bytes that wait for the system to send them
POLICY_VIOLATION, SERVICE_RESTART = 1008, 1012


class Carried(Protocol):
    """What a link needs of the session that it carries."""

    counts: Counts
    id: str
    name: str
    end: p.End | None

    def attach(self, link: Link) -> None: ...
    def left(self, link: Link) -> None: ...
    def accept(self, message: p.Message, size: int) -> None: ...
    def acknowledge(self, size: int) -> None: ...
    def is_full(self) -> bool: ...
    def outgoing(self) -> bytes | None: ...
    def fail(self, error: Exception) -> None: ...


class Link(asyncio.Protocol):
    """Carries a session's messages over a socket; everything happens in the worker's event loop.

    Args:
        session: whose messages they are.
        limits: of the session.
        loop: of the worker.
        begun: what was read of the socket before.
        deflate: the terms on which messages are compressed.
    """

    def __init__(
        self,
        session: Carried,
        limits: Limits,
        loop: asyncio.AbstractEventLoop,
        begun: bytes = b"",
        deflate: Terms = (),
    ):
        self.session, self.limits, self.loop, self.begun = session, limits, loop, begun
        self.protocol = ServerProtocol(state=State.OPEN, max_size=limits.frame_bytes)
        self.protocol.extensions = [Deflate(*deflate)] if deflate else []
        self.unread: deque[bytes | memoryview] = deque()  # bytes that have come, and are not yet taken apart
        self.transport: Any = None  # of a socket
        self.parts: list[bytes] = []  # of a message that came in several frames
        self.frames: deque[bytes] = deque()  # complete messages that wait for room in the session's queue
        self.messages: Iterator[p.Message] | None = None  # the rest of one of them, `left` of its bytes uncounted
        self.left = self.size = 0
        self.heard = self.asked = loop.time()
        self.held_since: float | None = None  # when the client stopped to take what is sent
        self.parting = self.lost = self.awake = False
        self.taking = False  # messages that have come, after which what they are answered is sent

    # the socket -------------------------------------------------------------------------------------------------------

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.transport.set_write_buffer_limits(high=BUFFER)
        if self.session.end is None:
            self.session.attach(self)
            if self.begun:
                self.data_received(self.begun)
        else:
            self.part(self.session.end)

    @override
    def data_received(self, data: bytes) -> None:
        self.heard = self.loop.time()
        self.session.counts.received += len(data)
        self.unread.append(data)
        self.taking = True
        try:
            self.proceed()
        finally:
            self.taking = False
        if self.awake:
            self._send()
        self._flush()

    def _read(self) -> bool:
        """Takes apart some of the bytes that have come; False if there are none. What may be compressed is taken in
        small pieces, as far as the session has room: a few bytes can stand for many.
        """
        if not self.unread:
            return False
        data = self.unread.popleft()
        if self.protocol.extensions and len(data) > PIECE:
            view = memoryview(data)
            self.unread.appendleft(view[PIECE:])
            data = view[:PIECE]
        self.protocol.receive_data(bytes(data))
        for frame in self.protocol.events_received():
            assert isinstance(frame, Frame)
            self._take(frame)
        if isinstance(self.protocol.parser_exc, PayloadTooBig):
            self.session.fail(LimitError(f"a frame exceeds {self.limits.frame_bytes} bytes."))
        return True

    def _take(self, frame: Frame) -> None:
        if self.parting:
            return
        if frame.opcode is Opcode.TEXT:
            self.session.fail(ProtocolError("messages are binary."))
        elif frame.opcode in (Opcode.BINARY, Opcode.CONT):
            self.parts.append(bytes(frame.data))
            if frame.fin:
                self.frames.append(self.parts[0] if len(self.parts) == 1 else b"".join(self.parts))
                self.parts.clear()

    @override
    def eof_received(self) -> None:
        self.protocol.receive_eof()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self.session.left(self)

    @override
    def pause_writing(self) -> None:
        self.held_since = self.loop.time()

    @override
    def resume_writing(self) -> None:
        self.held_since = None
        self.wake()

    # messages ---------------------------------------------------------------------------------------------------------

    def proceed(self) -> None:
        """Gives the session the messages that have come, as far as it has room."""
        session = self.session
        try:
            while True:
                if self.parting or self.messages is None and not self.frames:
                    if not self._read():
                        break
                    continue
                if self.messages is None:
                    frame = self.frames.popleft()
                    self.messages, self.left, self.size = iter(p.decode(frame)), len(frame), len(frame)
                for message in self.messages:
                    session.accept(message, self.left)
                    self.left = 0
                    if session.end is not None:
                        break
                    if session.is_full():
                        self.transport.pause_reading()
                        return
                self.messages = None
                if session.end is None:
                    session.acknowledge(self.size)
        except (ProtocolError, LimitError, DeserializationError) as e:
            session.fail(e)
        except Exception as e:
            log.exception("session %s", session.name, extra={"session": session.id})
            session.fail(e)
        if not self.lost:
            self.transport.resume_reading()
            if not self.taking:
                self._flush()

    def wake(self) -> None:
        """The session has something to say."""
        if not self.awake:
            self.awake = True
            if not self.taking:
                self.loop.call_soon(self._send)

    def _send(self) -> None:
        self.awake = False
        while not self.parting and self.held_since is None and (frame := self.session.outgoing()) is not None:
            self.protocol.send_binary(frame)
            self._flush()

    def send(self, frame: bytes) -> None:
        self.protocol.send_binary(frame)
        self._flush()

    def _flush(self) -> None:
        for data in self.protocol.data_to_send():
            if self.transport.is_closing():
                return
            if data:
                self.session.counts.sent += len(data)
                self.transport.write(data)
            elif self.transport.can_write_eof():  # the websocket is closed
                self.parting = True
                self.transport.write_eof()
                self.loop.call_later(PARTING, self.transport.abort)

    # the end ----------------------------------------------------------------------------------------------------------

    def part(self, end: p.End | None) -> None:
        """Tells the client why its session ends, and closes the connection; None says that another one has taken its
        place.
        """
        if self.parting or self.lost:
            return
        self.parting = True
        self.frames.clear()
        if self.protocol.state is State.OPEN:
            if end is not None:
                self.protocol.send_binary(p.encode(end))
            # The reason travels again in the closing frame, which has room for 123 bytes.
            reason = "" if end is None else end.message.encode("ascii", "replace")[:120].decode()
            self.protocol.send_close(1000 if end is None else POLICY_VIOLATION, reason)
        self._flush()
        self.transport.resume_reading()
        self.loop.call_later(PARTING, self.transport.abort)

    def abort(self) -> None:
        """Ends the connection without a word: the client will ask again."""
        self.parting = True
        self.transport.abort()

    def say_restart(self) -> None:
        """Ends the connection since the host starts again: the client may ask for longer than it usually does."""
        if not (self.parting or self.lost):
            self.parting = True
            self.frames.clear()
            if self.protocol.state is State.OPEN:
                self.protocol.send_close(SERVICE_RESTART)
                self._flush()
            self.loop.call_later(PARTING, self.transport.abort)

    def watch(self, now: float) -> None:
        """Asks a silent client whether it is there, and gives up one that does not answer or does not read."""
        if self.lost or self.parting:
            return
        if self.held_since is not None and now - self.held_since > STALL:
            self.session.fail(LimitError(f"the client has not read what was sent to it for {STALL:g} s."))
            self.transport.abort()
        elif self.transport.is_reading() and now - self.heard > SILENCE:
            self.transport.abort()
        elif now - max(self.heard, self.asked) > PING:
            self.asked = now
            self.protocol.send_ping(b"")
            self._flush()
