"""A client's connection from its handshake until a worker has it: it waits, is refused, or is handed on."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace

from aiohttp import web
from weft.base.annotations import override
from weft.serialization.binary import DeserializationError
from weft_remote import protocol as p
from weft_remote.deflate import Deflate, Terms, answer
from weft_remote.errors import ProtocolError
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.server import ServerProtocol

from .control import Attach
from .link import PING, SILENCE, STALL
from .tls import Carrier
from .workers import Peer

STOP_SECONDS = 1.0  # in which a client takes what it is told at the end
POLICY_VIOLATION, RESTART, TRY_AGAIN_LATER = 1008, 1012, 1013
WORD = 1024  # bytes of what a client says that waits, and how many more it may say in a second
UNREAD = 4096  # bytes that a client has not taken, above which it is told its place later


class Left(Exception):
    """The client has gone."""


class Later(Exception):
    """The connection ends, and its client should come again: what it asks for is not lost.

    Args:
        code: with which it is closed.
        why: for the client.
    """

    def __init__(self, code: int, why: str):
        super().__init__(why)
        self.code, self.why = code, why


class _Handed(web.WebSocketResponse):
    """The answer to a handshake whose connection goes elsewhere: nothing is sent on it afterwards."""

    handed = False

    @override
    async def write_eof(self) -> None:  # type: ignore[override]
        if not self.handed:
            await super().write_eof()


class Arrival:
    """A connection.

    Args:
        request: with which its client came.
        compression: whether its messages may be compressed.
    """

    def __init__(self, request: web.Request, compression: bool = False):
        self.request = request
        offered = request.headers.getall("Sec-WebSocket-Extensions", []) if compression else []
        self.extension, self.deflate = answer(offered) or ("", ())
        self.offers = [
            o.strip() for text in request.headers.getall("Sec-WebSocket-Protocol", []) for o in text.split(",")
        ]
        self.line: Line | None = None  # once its client waits
        self.response: web.StreamResponse = web.Response()  # to the request, as far as it has gone

    async def greet(self, gone: Callable[[Exception], None]) -> Line:
        """Completes the handshake of a client that is to wait; `gone` is called if it doesn't."""
        transport = await self._take()
        self.line = Line(transport, gone, self.deflate)
        transport.resume_reading()
        return self.line

    async def hand(self, peer: Peer, message: Attach) -> web.StreamResponse:
        """Gives the connection to a worker. Raises Left if there is none any more."""
        line = self.line
        transport = await self._take() if line is None else line.transport
        transport.pause_reading()  # what the client sends now is for the worker
        message = replace(message, begun=b"" if line is None else bytes(line.begun), deflate=self.deflate)
        async with asyncio.timeout(STALL):
            while transport.get_write_buffer_size():
                await asyncio.sleep(0.01)
        if transport.is_closing() or line is not None and line.left:
            raise Left
        before = transport.get_protocol() if line is None else line.before
        assert isinstance(before, asyncio.Protocol)
        if transport.get_extra_info("ssl_object") is not None:
            carrier = Carrier(transport)
            try:
                peer.send(message, carrier.descriptor)
            finally:
                os.close(carrier.descriptor)
            await carrier.carry()
            before.connection_lost(None)
            return self.response
        descriptor = os.dup(transport.get_extra_info("socket").fileno())
        try:
            peer.send(message, descriptor)  # a client whose worker has just ended asks again, and is told
        finally:
            os.close(descriptor)
            if line is not None:
                line.gone = None
            transport.abort()  # without a shutdown: the worker has the socket too
        return self.response

    async def _take(self) -> asyncio.Transport:
        """Completes the handshake, and has the connection for itself, of which nothing is read."""
        transport = self.request.transport
        if transport is None:
            raise Left
        transport.pause_reading()
        response = _Handed(protocols=(p.SUBPROTOCOL,), compress=False, timeout=STOP_SECONDS)
        response.headers["Server"] = "weft-host"
        if self.extension:
            response.headers["Sec-WebSocket-Extensions"] = self.extension
        await response.prepare(self.request)
        response.handed, self.response = True, response
        return transport

    async def part(self, end: p.End) -> web.StreamResponse:
        """Tells the client why it gets no session, and closes the connection."""
        # The reason travels again in the closing frame, which has room for 123 bytes.
        reason = end.message.encode("ascii", "replace")[:120]
        if self.line is not None:
            self.line.send(end)
            await self.line.close(POLICY_VIOLATION, reason.decode())
            return self.response
        spoken = [o for o in self.offers if o.startswith("weft.")]
        spoken.sort(key=lambda offer: offer != p.SUBPROTOCOL)
        response = web.WebSocketResponse(protocols=spoken[:1], compress=False, timeout=STOP_SECONDS, max_msg_size=1024)
        response.headers["Server"] = "weft-host"
        await response.prepare(self.request)
        await response.send_bytes(p.encode(end))
        await response.close(code=POLICY_VIOLATION, message=reason)
        return response

    async def leave(self) -> web.StreamResponse:
        """The client has gone; nothing is left to be done for its connection."""
        if self.line is None:
            raise ConnectionResetError
        await self.line.close(1000, "")
        return self.response

    async def later(self, code: int, why: str) -> web.StreamResponse:
        """Closes the connection in the way that clients take for a lost one, so that they try again: the session lives
        on.
        """
        reason = why.encode("ascii", "replace")[:120]
        if self.line is not None:
            await self.line.close(code, reason.decode())
            return self.response
        response = web.WebSocketResponse(protocols=(p.SUBPROTOCOL,), compress=False, timeout=STOP_SECONDS)
        await response.prepare(self.request)
        await response.close(code=code, message=reason)
        return response


class Line(asyncio.Protocol):
    """The connection of a client that waits. It may say that it is there, and that it goes; what it has begun to say
    when its turn comes is for the worker.
    """

    def __init__(self, transport: asyncio.Transport, gone: Callable[[Exception], None], deflate: Terms = ()):
        before = transport.get_protocol()
        assert isinstance(before, asyncio.Protocol)
        self.transport, self.before = transport, before
        self.gone: Callable[[Exception], None] | None = gone
        self.protocol = ServerProtocol(state=State.OPEN, max_size=WORD)
        self.protocol.extensions = [Deflate(*deflate)] if deflate else []
        self.begun = bytearray()  # of a frame that is not complete
        self.loop = asyncio.get_running_loop()
        self.since = self.heard = self.asked = self.loop.time()
        self.said = 0
        self.lost = self.loop.create_future()
        transport.set_protocol(self)

    def send(self, message: p.Message) -> None:
        if self.protocol.state is State.OPEN:
            self.protocol.send_binary(p.encode(message))
            self._flush()

    @property
    def takes(self) -> bool:
        """Whether its client reads what is sent."""
        return self.transport.get_write_buffer_size() < UNREAD

    @property
    def left(self) -> bool:
        """Whether its client has gone."""
        return self.gone is None or self.transport.is_closing()

    async def close(self, code: int, reason: str) -> None:
        """Returns when the connection is closed."""
        self.gone = None
        if self.protocol.state is State.OPEN:
            self.protocol.send_close(code, reason)
            self._flush()
        await asyncio.wait([self.lost], timeout=STOP_SECONDS)
        self.transport.abort()

    def watch(self, now: float) -> None:
        """Asks a silent client whether it is there, and gives up one that does not answer."""
        if now - self.heard > SILENCE:
            self.transport.abort()
        elif now - max(self.heard, self.asked) > PING:
            self.asked = now
            self.protocol.send_ping(b"")
            self._flush()

    @override
    def data_received(self, data: bytes) -> None:
        self.heard = self.loop.time()
        self.said += len(data)
        try:
            if self.said > WORD * (1 + self.heard - self.since):
                raise ProtocolError("a client that waits for its session says nothing but that it is there.")
            for k in range(len(data)):  # so that it is known where a frame ends
                self.protocol.receive_data(data[k : k + 1])
                self.begun += data[k : k + 1]
                for event in self.protocol.events_received():
                    assert isinstance(event, Frame)
                    self.begun.clear()
                    self._take(event)
            if self.protocol.parser_exc is not None:  # the client was told so
                self._leave(Left())
        except (ProtocolError, DeserializationError) as e:
            self._leave(e)
        self._flush()

    def _take(self, frame: Frame) -> None:
        if frame.opcode is Opcode.CLOSE:
            self._leave(Left())
        elif frame.opcode in (Opcode.TEXT, Opcode.CONT) or frame.opcode is Opcode.BINARY and not frame.fin:
            raise ProtocolError("a client that waits for its session says nothing but that it is there.")
        elif frame.opcode is Opcode.BINARY:
            for message in p.decode(bytes(frame.data)):
                if isinstance(message, p.Bye):
                    self._leave(Left())
                elif isinstance(message, p.Beat):
                    self.send(message)
                else:
                    raise ProtocolError(f"{type(message).__name__} came before there is a session.")

    def _leave(self, why: Exception) -> None:
        gone, self.gone = self.gone, None
        if gone is not None:
            gone(why)

    def _flush(self) -> None:
        for data in self.protocol.data_to_send():
            if not data:  # the websocket is closed
                self.transport.close()
            elif not self.transport.is_closing():
                self.transport.write(data)

    @override
    def eof_received(self) -> None:
        self._leave(Left())

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if not self.lost.done():
            self.lost.set_result(None)
        self._leave(Left())
        self.before.connection_lost(exc)
