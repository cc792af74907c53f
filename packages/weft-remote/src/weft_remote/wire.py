"""A websocket of a CPython process, without an event loop: any thread may send, one at a time may receive, none waits
here but for the connection to be made.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Sequence

from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from .deflate import Offer
from .errors import ProtocolError

RECEIVE = 256 << 10  # bytes that are taken from the system at once
SLOW = 0.005  # seconds that connecting takes on a line that is slower than compression


class Wire:
    """An open connection; what is written to the other end of `poked` ends a wait.

    Args:
        address: of the host.
        protocols: that the client offers.
        timeout: seconds in which the connection is made.
        poked: one end of a pair of sockets.
        compression: whether the client offers it; None leaves it to how long connecting takes.

    Raises:
        OSError: nothing listens there, or the network fails.
        TimeoutError: there is no answer in time.
        websockets.exceptions.InvalidURI: the address is none.
        websockets.exceptions.InvalidHandshake: what listens there is no websocket server, or refuses.
    """

    def __init__(
        self,
        address: str,
        protocols: Sequence[str],
        timeout: float,
        poked: socket.socket,
        compression: bool | None = None,
    ):
        self.poked = poked
        uri = parse_uri(address)
        began = time.monotonic()
        until = began + timeout
        self.socket = socket.create_connection((uri.host, uri.port), timeout)
        compression = time.monotonic() - began >= SLOW if compression is None else compression
        try:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if uri.secure:
                context = ssl.create_default_context()
                self.socket = context.wrap_socket(self.socket, server_hostname=uri.host)
            self.protocol = ClientProtocol(
                uri,
                subprotocols=[Subprotocol(name) for name in protocols],
                extensions=[Offer()] if compression else None,
                max_size=None,
            )
            self.guard = threading.Lock()  # of the protocol, and of TLS, which reads and writes by turns
            self.unsent: deque[memoryview] = deque()
            self.parts: list[bytes] = []
            self.frames: deque[bytes] = deque()
            self.heard = time.monotonic()
            self._shake_hands(until)
            self.socket.setblocking(False)
            self.descriptor = self.socket.fileno()
        except BaseException:
            self.socket.close()
            raise
        self.readable, self.both = select.poll(), select.poll()
        self.readable.register(self.socket, select.POLLIN)
        self.both.register(self.socket, select.POLLIN | select.POLLOUT)
        for look in (self.readable, self.both):
            look.register(poked, select.POLLIN)

    def _shake_hands(self, until: float) -> None:
        self.protocol.send_request(self.protocol.connect())
        self.socket.sendall(b"".join(self.protocol.data_to_send()))
        while self.protocol.state is State.CONNECTING and self.protocol.handshake_exc is None:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError("no answer came in time")
            self.socket.settimeout(left)
            data = self.socket.recv(RECEIVE)
            if data:
                self.protocol.receive_data(data)
            else:
                self.protocol.receive_eof()
        if self.protocol.handshake_exc is not None:
            raise self.protocol.handshake_exc
        self._take_events()

    def send(self, frame: bytes) -> None:
        """Sends a frame; what the system does not take now waits for `flush`."""
        with self.guard:
            self.protocol.send_binary(frame)
            self._push()

    def ping(self) -> None:
        with self.guard:
            self.protocol.send_ping(b"")
            self._push()

    def flush(self) -> bool:
        """Sends what waits; whether nothing does any more."""
        if self.unsent:
            with self.guard:
                self._push()
        return not self.unsent

    def _push(self) -> None:
        for data in self.protocol.data_to_send():
            if data:
                self.unsent.append(memoryview(data))
        while self.unsent:
            try:
                sent = self.socket.send(self.unsent[0])
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return
            if sent < len(self.unsent[0]):
                self.unsent[0] = self.unsent[0][sent:]
            else:
                self.unsent.popleft()

    def wait(self, seconds: float) -> bool:
        """Returns when something has come, when something waits to be sent and can be, or after a time; whether someone
        pokes who wants more.
        """
        if isinstance(self.socket, ssl.SSLSocket) and self.socket.pending():
            return False
        ready = (self.both if self.unsent else self.readable).poll(max(0.0, seconds) * 1000)
        for descriptor, _ in ready:
            if descriptor != self.descriptor:
                self.poked.recv(4096)
                return True
        return False

    def receive(self) -> deque[bytes]:
        """The frames that have come; whoever takes one removes it. Raises EOFError once the connection is closed."""
        if not self.frames:
            self._receive()
        return self.frames

    def _receive(self) -> None:
        with self.guard:
            try:
                data = self.socket.recv(RECEIVE)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return
            if data:
                self.heard = time.monotonic()
                self.protocol.receive_data(data)
            else:
                self.protocol.receive_eof()
            self._take_events()
            with contextlib.suppress(OSError):  # what has come counts; the next receive tells that no more does
                self._push()
            if not data and not self.frames or self.protocol.close_rcvd is not None and not self.frames:
                raise EOFError(self.reason())

    def _take_events(self) -> None:
        for event in self.protocol.events_received():
            if not isinstance(event, Frame):  # the answer to the handshake
                continue
            if event.opcode is Opcode.TEXT:
                raise ProtocolError("the host sent text; a frame is binary.")
            if event.opcode in (Opcode.BINARY, Opcode.CONT):
                self.parts.append(bytes(event.data))
                if event.fin:
                    self.frames.append(self.parts[0] if len(self.parts) == 1 else b"".join(self.parts))
                    self.parts.clear()

    @property
    def code(self) -> int | None:
        """With which the host has closed the connection."""
        return self.protocol.close_rcvd.code if self.protocol.close_rcvd is not None else None

    def reason(self) -> str:
        """Why the connection is closed."""
        received = self.protocol.close_rcvd
        return "it broke off" if received is None else f"{received.code} {received.reason}".strip()

    def close(self) -> None:
        """Says good-bye, if that is still possible, and closes the connection."""
        with self.guard:
            try:
                if self.protocol.state is State.OPEN:
                    self.protocol.send_close(1000)
                self._push()
            except OSError:
                pass
            self.socket.close()
