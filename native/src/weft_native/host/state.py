"""A session as bytes, with which another process goes on: what it holds, what it owes its client, and what it has not
begun.

The bytes are messages of a language of their own, each after its length; those of a client stand in them as they came.
They are read as strictly as if they came from a client: the process that wrote them ran a client's programs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO, Protocol

from weft_remote import protocol as p
from weft_remote.codec import Bulk, Language, Message, encode, message
from weft_remote.errors import ProtocolError

from .memory import Charge
from .performer import Performer
from .session import HostSession
from .store import Compiled
from .values import Answer, Failed, Incoming, Stored, Transfer, finished, host_bytes, is_gone

LONGEST = 64 << 20  # bytes of one message; texts about programs may be long
_LENGTH = struct.Struct("<I")
_state = Language()
STOPPED = "this was stopped by its client."


@message(_state, 1)
class Head(Message):
    """The first message: how far the client's operations and the reports have come."""

    received: int
    cancelled: int
    reports: int
    kept: int  # seconds for which the session outlives its connection


@message(_state, 2)
class Said(Message):
    """A message of the client's that has been performed, and is performed again."""

    data: Bulk


@message(_state, 3)
class Failure(Message):
    """The value of a handle that has none."""

    handle: int
    origin: int
    error: str
    message: str


@message(_state, 4)
class Owed(Message):
    """A reply that the client has not settled."""

    op: int
    data: Bulk


@message(_state, 5)
class Download(Message):
    """The bytes of an array that the client has not settled; the rest of `size` follows."""

    op: int
    size: int
    data: Bulk


@message(_state, 6)
class More(Message):
    """More bytes of the last `Download`."""

    data: Bulk


@message(_state, 7)
class Report(Message):
    """A report that the client has not confirmed."""

    data: Bulk


@message(_state, 8)
class Next(Message):
    """An operation that has not begun."""

    data: Bulk


@message(_state, 9)
class Whole(Message):
    """The last message."""


END = _LENGTH.pack(1) + encode(Whole())  # the last bytes of a session that is whole


class _Stream(Protocol):
    def write(self, data: bytes, /) -> object: ...


def write(messages: list[Message] | Iterator[Message], file: _Stream) -> None:
    """Writes messages, each after its length."""
    for said in messages:
        body = encode(said)
        file.write(_LENGTH.pack(len(body)) + body)


def read(file: BinaryIO) -> Iterator[Message]:
    """The messages of a session. Raises EOFError where they end too early, DeserializationError for what is none."""
    while True:
        (size,) = _LENGTH.unpack(_exactly(file, _LENGTH.size))
        if size > LONGEST:
            raise ProtocolError(f"a message of {size} bytes in the state of a session")
        for found in _state.decode(_exactly(file, size)):
            if isinstance(found, Whole):
                return
            yield found


def _exactly(file: BinaryIO, size: int) -> bytes:
    parts, missing = [], size
    while missing:
        part = file.read(min(missing, p.CHUNK))
        if not part:
            raise EOFError("the state of a session ends too early")
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def save(session: HostSession) -> Iterator[Message]:
    """What is left of a session whose performer is parked and whose client is disconnected. What is under way counts as
    stopped.
    """
    performer = session.performer
    current = performer.current
    yield Head(session.received, session.cancelled, session.reports.last, session.kept)
    yield from _programs(performer)
    defined = set()
    for handle, value in list(performer.store.values.items()):
        defined.add(handle)
        yield from _value(performer, handle, value)
    for incoming in list(performer.store.arrays.values()):
        yield from _array(incoming.message, memoryview(incoming.data))
    waiting = list(performer.waiting)  # before the replies: what is read meanwhile is owed as a reply
    replies = session.replies.copy()
    for op in waiting:
        if op not in replies:
            yield Owed(op, p.encode(p.Error(op, op, "BackendError", STOPPED)))
    if isinstance(current, p.Execution):
        yield from [Failure(h, current.op, "BackendError", STOPPED) for h in current.results if h not in defined]
        answered = current.op in replies or current.op in waiting
        if not isinstance(current, p.Execute) and not answered:
            yield Owed(current.op, p.encode(p.Error(current.op, current.op, "BackendError", STOPPED)))
    elif isinstance(current, (p.Compile, p.CompileSpread)) and current.handle not in defined:
        yield Said(p.encode(current))
    for op, reply in replies.items():
        yield from _owed(op, reply)
    for answer in list(session.reports.unconfirmed.values()):
        yield Report(p.encode(answer.message))
    for operation, _ in list(performer.queue):
        yield Next(p.encode(operation))
    yield Whole()


def _programs(performer: Performer) -> Iterator[Message]:
    values = list(performer.store.values.values())
    needed = {value.message.program: value.known for value in values if isinstance(value, Compiled)}
    for digest, known in {**needed, **performer.store.known}.items():
        yield from _program(p.Program(0, digest, len(known.data), b""), memoryview(known.data))
    for incoming in list(performer.store.parts.values()):
        yield from _program(incoming.message, memoryview(incoming.data))


def _program(m: p.Program, data: memoryview) -> Iterator[Message]:
    yield Said(p.encode(p.Program(m.op, m.hash, m.size, bytes(data[: p.CHUNK]))))
    for at in range(p.CHUNK, len(data), p.CHUNK):
        yield Said(p.encode(p.ProgramPart(m.op, m.hash, bytes(data[at : at + p.CHUNK]))))


def _value(performer: Performer, handle: int, value: Stored | Compiled | Failed) -> Iterator[Message]:
    match value:
        case Failed():
            yield Failure(handle, value.origin, value.error, value.message)
        case Compiled():
            yield Said(p.encode(value.message))
        case Stored() if not finished(value.array) or is_gone(value.array):
            yield Failure(handle, 0, "BackendError", STOPPED)
        case Stored():
            try:
                data = host_bytes(value.array)
            except Exception as e:  # its computation has failed; whoever reads it gets the error
                failed = performer.failed(0, e)
                yield Failure(handle, failed.origin, failed.error, failed.message)
                return
            yield from _array(p.Put(0, handle, value.aval, value.index, b""), data)


def _array(m: p.Put, data: memoryview) -> Iterator[Message]:
    yield Said(p.encode(p.Put(m.op, m.handle, m.aval, m.device, bytes(data[: p.CHUNK]))))
    for at in range(p.CHUNK, len(data), p.CHUNK):
        yield Said(p.encode(p.Part(m.op, m.handle, bytes(data[at : at + p.CHUNK]))))


def _owed(op: int, reply: Answer | Transfer) -> Iterator[Message]:
    if isinstance(reply, Answer):
        yield Owed(op, p.encode(reply.message))
        return
    yield Download(op, len(reply.data), reply.data[: p.CHUNK])
    for at in range(p.CHUNK, len(reply.data), p.CHUNK):
        yield More(reply.data[at : at + p.CHUNK])


def restore(session: HostSession, messages: Iterator[Message]) -> None:
    """Brings a new session to where another one has stopped, in a thread of its own. The event loop of the session does
    nothing with it meanwhile.
    """
    performer = session.performer
    coming: tuple[int, Incoming[Download]] | None = None  # a reply of which more follows
    head = next(messages, None)
    if not isinstance(head, Head):
        raise ProtocolError("the state of a session begins with something else")
    session.received, session.cancelled, session.reports.last = head.received, head.cancelled, head.reports
    session.kept = min(head.kept, int(session.limits.job_seconds))
    for said in messages:
        match said:
            case Said():
                performer.restore(_one(said.data))
            case Failure():
                performer.store.define(said.handle, Failed(said.origin, said.error, said.message))
            case Owed():
                charge = Charge(session.reply_bytes, session.memory, len(said.data), "a reply")
                session.replies[said.op] = Answer(_one(said.data), charge)
            case Download():
                charge = Charge(session.reply_bytes, session.memory, said.size, "a reply", 0)
                coming = said.op, Incoming(said, said.size, charge)
                _take(session, *coming, said.data)
            case More() if coming is not None:
                _take(session, *coming, said.data)
            case Report():
                session.reports.restore(_one(said.data))
            case Next():
                performer.restore_later(_one(said.data), len(said.data))
            case _:
                raise ProtocolError(f"{type(said).__name__} at the wrong place in the state of a session")


def _one(data: Bulk) -> p.Message:
    found = list(p.decode(data))
    if len(found) != 1:
        raise ProtocolError(f"{len(found)} messages in the place of one")
    return found[0]


def _take(session: HostSession, op: int, incoming: Incoming[Download], data: Bulk) -> None:
    if incoming.take(bytes(data)):
        session.replies[op] = Transfer(None, memoryview(incoming.data), incoming.charge)
