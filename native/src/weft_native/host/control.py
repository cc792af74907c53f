"""What the front of a host and its workers tell each other: messages over a pair of Unix sockets.

A worker runs a stranger's programs, so the front believes nothing that comes from one: it checks each message, never
waits for a worker, and takes no file descriptors from it.
"""

from __future__ import annotations

import array
import os
import socket
import struct
from collections.abc import Iterable

from weft.serialization.binary import DeserializationError
from weft_remote.codec import Ints, Language, Message, Strings, encode, message

LONGEST = 64 << 10  # bytes of a message
_LENGTH = struct.Struct("<I")
_control = Language()


# from the front to a worker -------------------------------------------------------------------------------------------


@message(_control, 1)
class Attach(Message):
    """A client's connection, whose socket comes with this message: the first of a new session, or the next of one.
    `begun` has what was read of it and is not a whole frame.
    """

    session: str
    secret: bytes
    name: str
    fresh: bool
    begun: bytes = b""
    deflate: Ints = ()  # the terms on which messages are compressed; none of them are without


@message(_control, 2)
class Finish(Message):
    """A session ends for this reason, of which its client is told."""

    session: str
    error: str
    message: str


@message(_control, 3)
class Granted(Message):
    """The answer to `Need`: `bytes` more, 0 if there are not so many. All sessions have `used` of `limit`."""

    bytes: int
    used: int
    limit: int


@message(_control, 4)
class Save(Message):
    """A session goes on elsewhere: what is left of it goes into the file that comes along. The worker ends then, or
    waits for `Moved`.
    """

    session: str
    wait: bool


@message(_control, 5)
class Restore(Message):
    """A session goes on here, from what the file holds that comes along. The right to use `granted` bytes comes too."""

    session: str
    secret: bytes
    name: str
    granted: int


@message(_control, 6)
class Ask(Message):
    """Does the device answer?"""


@message(_control, 7)
class Moved(Message):
    """What was saved of a session is where it should be, or it is not, and the session goes on here."""

    session: str
    well: bool


@message(_control, 8)
class Leave(Message):
    """The host is about to stop: a session goes on disk as soon as it has nothing to do."""

    session: str


@message(_control, 9)
class Sought(Message):
    """The answer to `Seek`: whether a file with the executable comes along, and whether one that is compiled would be
    stored.
    """

    found: bool
    wanted: bool


@message(_control, 10)
class Make(Message):
    """To a process that has no session: compile what this message of the protocol describes, whose program comes over
    the socket that comes along; the executable goes back over it.
    """

    what: bytes


@message(_control, 11)
class Give(Message):
    """Write the executable that was offered into the socket that comes along."""

    what: bytes


# from a worker to the front -------------------------------------------------------------------------------------------


@message(_control, 16)
class Up(Message):
    """The worker can take sessions. The platform and kind of each device in turn."""

    devices: Strings


@message(_control, 17)
class Alive(Message):
    """Comes a few times a second. For how long a session has computed, and for how long its client has been away."""

    session: str
    running_ms: int
    away_ms: int


@message(_control, 18)
class Ended(Message):
    """A session has ended; its client was told why, if it was there."""

    session: str
    error: str
    message: str
    closed: bool  # by its client


@message(_control, 24)
class Totals(Message):
    """What a session has done since it began: counts, microseconds, bytes; what it holds, what waits, and what it does
    now, in words.
    """

    session: str
    calls: int = 0
    compilations: int = 0
    compiling_us: int = 0
    received: int = 0
    sent: int = 0
    held: int = 0
    queued: int = 0
    doing: str = ""


@message(_control, 25)
class Answered(Message):
    """It does."""


@message(_control, 19)
class Need(Message):
    """The worker asks for the right to use more bytes, at least `bytes`."""

    bytes: int


@message(_control, 21)
class Said(Message):
    """An entry for the host's log."""

    level: int
    text: str
    session: str  # that it is about, or ""


@message(_control, 20)
class Returned(Message):
    """The worker gives back the right to use bytes."""

    bytes: int


@message(_control, 22)
class Move(Message):
    """A session needs another process: what its client has stopped does not end in this one."""

    session: str


@message(_control, 23)
class Rest(Message):
    """A session has nothing to do, and its client is away, who wants it kept for so many seconds more, or the host is
    about to stop.
    """

    session: str
    seconds: int


@message(_control, 26)
class Restored(Message):
    """A session goes on here; what it was restored from is not needed any more."""

    session: str


@message(_control, 27)
class Seek(Message):
    """Is there an executable of what this message of the protocol describes? A session waits for it."""

    session: str
    what: bytes


@message(_control, 28)
class Offer(Message):
    """There was none that could be used. The program, of which more may follow, in case that the host stores another;
    `size` is 0 if the worker gives its own.
    """

    session: str
    what: bytes
    size: int
    data: bytes


@message(_control, 29)
class OfferPart(Message):
    """More of the program of an `Offer`."""

    session: str
    data: bytes


# between the front and the process that starts workers ----------------------------------------------------------------


@message(_control, 32)
class Fork(Message):
    """Start a worker, for one session or for all, with or without a sandbox; its end of a channel comes along."""

    number: int
    alone: bool
    enclosed: bool


@message(_control, 35)
class Chosen(Message):
    """The platform of the devices, "" if there are none. The first message."""

    platform: str


@message(_control, 33)
class Forked(Message):
    """The worker has this process id."""

    number: int
    pid: int


@message(_control, 34)
class Exited(Message):
    """A worker's process has ended, with an exit code or by a signal (the other is 0), what it wrote to stderr, and
    the processor time that it has taken.
    """

    number: int
    status: int
    signal: int
    words: str
    processor_us: int


class Closed(Exception):
    """The other side is gone."""


class Channel:
    """One end of a control channel."""

    def __init__(self, end: socket.socket):
        self.socket = end
        self.received = bytearray()
        self.descriptors: list[int] = []

    @staticmethod
    def pair() -> tuple[Channel, Channel]:
        one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        return Channel(one), Channel(other)

    def send(self, message: Message, descriptor: int | None = None) -> None:
        """Raises Closed if the other side is gone, BlockingIOError if this side never waits and the other is slow."""
        body = encode(message)
        data = _LENGTH.pack(len(body)) + body
        rights = [] if descriptor is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))]
        try:
            sent = self.socket.sendmsg([data], rights)
            if sent < len(data):
                self.socket.sendall(data[sent:])
        except BlockingIOError:
            raise
        except OSError as e:
            raise Closed(str(e)) from None

    def receive(self, take_descriptors: bool = False) -> Iterable[Message]:
        """The messages that are there, after waiting for one if this side waits. Descriptors that came with them are in
        `descriptors` if they are taken. Raises Closed at the end, DeserializationError for what is no message.
        """
        try:
            if take_descriptors:
                data, descriptors, _, _ = socket.recv_fds(self.socket, LONGEST, 8)
                self.descriptors += descriptors
            else:
                data = self.socket.recv(LONGEST)
        except BlockingIOError:
            return
        except OSError as e:
            raise Closed(str(e)) from None
        if not data:
            raise Closed("closed")
        self.received += data
        while len(self.received) >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(self.received)
            if size > LONGEST:
                raise DeserializationError(f"a control message of {size} bytes")
            if len(self.received) < _LENGTH.size + size:
                return
            body = bytes(self.received[_LENGTH.size : _LENGTH.size + size])
            del self.received[: _LENGTH.size + size]
            yield from _control.decode(body)

    def close(self) -> None:
        self.socket.close()
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors.clear()
