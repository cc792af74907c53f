"""The wire protocol: frozen messages and one explicit binary codec.

A frame is one binary websocket message and holds one or more messages, each a code byte and its fields in order. The
first frame of a connection holds one `Hello`, answered by a `Welcome` or an `End`.

Every message from a client with a field `op` is an operation. Operations are numbered 1, 2, 3, … over the whole
session, across its connections. The host acknowledges operations with `Received` from time to time, so that the client
knows what to send again on a new connection. The client acknowledges complete replies with `Settled`, so that the host
knows what it need not send again.

Clients choose the handles of arrays and programs, so they never wait for one. An operation that fails gives its results
the failure; whoever reads one of them, directly or through others, gets it. Uploads flow as fast as the host reads its
socket; downloads stop when `window` bytes are under way without a `Credit`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar, dataclass_transform, get_args

from weft.base import dtypes
from weft.base.avals import ShapedArray, countable, shaped
from weft.serialization.binary import DeserializationError, Reader, Writer

if TYPE_CHECKING:
    from typing_extensions import Buffer

# the versions of the protocol that this release speaks; Beat and Cancel came with 2, reports with 3
LOWEST, VERSION = 1, 3
CHUNK = 1 << 20  # bytes of bulk data in one message
HEADER = 4096  # room in a frame beside bulk data

Ints = tuple[int, ...]
Bools = tuple[bool, ...]
Strings = tuple[str, ...]
Bulk: TypeAlias = "bytes | memoryview"  # outgoing data may be a view; incoming data is bytes
MAX_RANK = 64

T = TypeVar("T")
M = TypeVar("M", bound="Message")


def _write_sequence(write: Callable[[Writer, T], None]) -> Callable[[Writer, Sequence[T]], None]:
    def run(w: Writer, values: Sequence[T]) -> None:
        w.unsigned(len(values))
        for v in values:
            write(w, v)

    return run


def _read_sequence(read: Callable[[Reader], T]) -> Callable[[Reader], tuple[T, ...]]:
    return lambda r: tuple([read(r) for _ in range(r.count())])


def _read_bool(r: Reader) -> bool:
    start, value = r.at, r.byte()
    if value > 1:
        r.fail("a truth value is 0 or 1", start)
    return value == 1


_write_ints = _write_sequence(Writer.unsigned)


def _write_aval(w: Writer, aval: ShapedArray) -> None:
    w.string(dtypes.name(aval.dtype))
    w.byte(aval.weak_type)
    _write_ints(w, aval.shape)


def _read_aval(r: Reader) -> ShapedArray:
    start, name = r.at, r.string()
    if name not in dtypes._TABLE:  # not dtypes.dtype: NumPy would accept its own syntax
        r.fail(f"there is no dtype {name!r}", start)
    weak = _read_bool(r)
    start, rank = r.at, r.count()
    if rank > MAX_RANK:
        r.fail(f"an array of rank {rank}", start)
    aval = shaped(tuple([r.unsigned(1 << 48) for _ in range(rank)]), dtypes.dtype(name), weak)
    if not countable(aval.shape, aval.dtype):
        r.fail(f"an array of type {aval.str_short()} is too large", start)
    return aval


# annotation -> (write, read); the annotation describes the values, which a dict's type can't express (hence Any)
_FIELDS: dict[str, tuple[Callable[[Writer, Any], None], Callable[[Reader], Any]]] = {
    "int": (Writer.unsigned, Reader.unsigned),
    "bool": (lambda w, v: w.byte(1 if v else 0), _read_bool),
    "str": (Writer.string, Reader.string),
    "bytes": (Writer.bytes, Reader.bytes),
    "Bulk": (Writer.bytes, Reader.bytes),
    "Ints": (_write_ints, _read_sequence(Reader.unsigned)),
    "Bools": (_write_sequence(lambda w, v: w.byte(1 if v else 0)), _read_sequence(_read_bool)),
    "Strings": (_write_sequence(Writer.string), _read_sequence(Reader.string)),
    "ShapedArray": (_write_aval, _read_aval),
}
_classes: dict[int, type[Message]] = {}


@dataclass(frozen=True, slots=True)
class Message:
    """Base of messages."""

    code: ClassVar[int]
    codec: ClassVar[tuple[tuple[str, Callable[[Writer, Any], None], Callable[[Reader], Any]], ...]]  # of each field


@dataclass_transform(frozen_default=True)
def _message(code: int) -> Callable[[type[M]], type[M]]:
    def define(cls: type[M]) -> type[M]:
        made = dataclass(frozen=True, slots=True)(cls)
        made.code, made.codec = code, tuple((f.name, *_FIELDS[str(f.type)]) for f in fields(made))
        if _classes.setdefault(code, made) is not made:
            raise ValueError(f"message code {code} is taken")
        return made

    return define


# a session ----------------------------------------------------------------------------------------------------------


@_message(1)
class Hello(Message):
    """Opens a session, or resumes the one whose secret `session` is (empty: a new one)."""

    lowest: int
    highest: int
    token: str
    session: bytes
    name: str


@_message(2)
class Welcome(Message):
    """The session is open. `received` operations of it are known; `devices` holds the platform and kind of each device
    in turn.
    """

    version: int
    session: bytes
    received: int
    grace_ms: int
    frame: int
    window: int
    devices: Strings


@_message(3)
class End(Message):
    """The host ends the session, for this reason; nothing of it is left."""

    error: str
    message: str


@_message(4)
class Bye(Message):
    """The client ends the session."""


@_message(5)
class Received(Message):
    """The host has received all operations up to this one."""

    op: int


@_message(6)
class Settled(Message):
    """The client has the complete replies of these operations."""

    ops: Ints


@_message(7)
class Credit(Message):
    """The client has this many bytes of the reply of an operation."""

    fetch: int
    received: int


@_message(8)
class Beat(Message):
    """The client is alive; the host answers with the same message at once, even while it computes."""


@_message(9)
class Cancel(Message):
    """The client does not need the results of the operations up to this one: those that have not begun fail."""

    through: int


@_message(10)
class Reported(Message):
    """The client has the reports up to this one."""

    through: int


# operations -----------------------------------------------------------------------------------------------------------


@_message(16)
class Put(Message):
    """An array from the client, in row-major order; data that does not fit into `data` follows in `Part`s."""

    op: int
    handle: int
    aval: ShapedArray
    device: int
    data: bytes


@_message(17)
class Part(Message):
    """More bytes of a `Put`."""

    op: int
    handle: int
    data: bytes


@_message(18)
class Program(Message):
    """A serialized jaxpr of `size` bytes, known by its hash from now on; bytes that do not fit follow in
    `ProgramPart`s.
    """

    op: int
    hash: bytes
    size: int
    data: bytes


@_message(19)
class ProgramPart(Message):
    """More bytes of a `Program`."""

    op: int
    hash: bytes
    data: bytes


@_message(20)
class Compile(Message):
    """Compiles a program for a device; `handle` names the result. A failure is reported at once, by an `Error` of this
    operation.
    """

    op: int
    handle: int
    program: bytes
    device: int
    name: str
    donated: Bools


@_message(21)
class Execute(Message):
    """Runs a compiled program on arrays; `results` are the handles of its results."""

    op: int
    program: int
    arguments: Ints
    results: Ints


@_message(22)
class Fetch(Message):
    """Asks for the bytes of an array: `Data`."""

    op: int
    handle: int


@_message(23)
class Wait(Message):
    """Asks for a `Ready` as soon as an array is computed."""

    op: int
    handle: int


@_message(24)
class Free(Message):
    """Forgets arrays and compiled programs."""

    op: int
    handles: Ints


@_message(25)
class Inspect(Message):
    """Requests a `Text` about a compiled program: what = "text" (of a stage, or ""), "cost" or "memory" (as JSON)."""

    op: int
    program: int
    what: str
    stage: str


@_message(26)
class Ping(Message):
    """Asks for a `Ready`."""

    op: int


@_message(27)
class ExecuteReporting(Message):
    """`Execute` of a program that reports values while it runs. `Ready` follows its last `Report`."""

    op: int
    program: int
    arguments: Ints
    results: Ints


# replies --------------------------------------------------------------------------------------------------------------


@_message(32)
class Data(Message):
    """`data` at `offset` of an array of `size` bytes."""

    op: int
    size: int
    offset: int
    data: Bulk


@_message(33)
class Ready(Message):
    """The operation is done."""

    op: int


@_message(34)
class Text(Message):
    """A text."""

    op: int
    text: str


@_message(35)
class Error(Message):
    """The operation has no result, because operation `origin` failed."""

    op: int
    origin: int
    error: str
    message: str


@_message(36)
class Report(Message):
    """Values for debug callback `function` of the program of operation `op`: its operands one after another, in parts
    of which one is the last. Reports are numbered 1, 2, 3, … over the whole session.
    """

    number: int
    op: int
    function: int
    last: bool
    data: Bulk


Operation: TypeAlias = (
    Put | Part | Program | ProgramPart | Compile | Execute | Fetch | Wait | Free | Inspect | Ping | ExecuteReporting
)
OPERATIONS: tuple[type[Operation], ...] = get_args(Operation)


def encode(*messages: Message) -> bytes:
    """A frame of messages. Frames can be joined: their concatenated bytes are the frame of all messages."""
    w = Writer()
    for message in messages:
        w.byte(message.code)
        for name, write, _ in message.codec:
            write(w, getattr(message, name))
    return bytes(w.data)


def decode(frame: Buffer) -> Iterable[Message]:
    """The messages of a frame, one by one. Raises DeserializationError at the first that is invalid."""
    r = Reader(frame)
    if not r.left():
        r.fail("a frame is empty")
    while r.left():
        start = r.at
        cls = _classes.get(code := r.byte())
        if cls is None:
            raise DeserializationError(f"there is no message {code}", start)
        yield cls(*[read(r) for _, _, read in cls.codec])
