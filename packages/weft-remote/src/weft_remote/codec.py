"""Frozen messages as bytes: a code byte and the fields in order, each written and read as its annotation says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar, dataclass_transform

from weft.base import dtypes
from weft.base.avals import ShapedArray, countable, shaped
from weft.serialization.binary import DeserializationError, Reader, Writer

if TYPE_CHECKING:
    from typing_extensions import Buffer

Ints = tuple[int, ...]
Bools = tuple[bool, ...]
Strings = tuple[str, ...]
# Outgoing data may be a view of what is sent. Incoming data is a view of the frame, which whoever keeps it copies, or
# bytes of its own.
Bulk: TypeAlias = "bytes | memoryview"
Copied: TypeAlias = "bytes | memoryview"
MAX_RANK = 64
LONG = 4096  # bytes that are copied as few times as possible

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


def _write_ints(w: Writer, values: Ints) -> None:
    """As `_write_sequence` would, in less time: each call has some."""
    w.unsigned(len(values))
    data = w.data
    for value in values:
        while value > 0x7F:
            data.append(value & 0x7F | 0x80)
            value >>= 7
        data.append(value)


def _read_ints(r: Reader) -> Ints:
    """As `_read_sequence` would, in less time."""
    count, data, at = r.count(), r.data, r.at
    if count == 1 and (value := data[at]) < 0x80:  # `count` has seen that there is a byte
        r.at = at + 1
        return (value,)
    return tuple([r.unsigned() for _ in range(count)])


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
    "Bulk": (Writer.bytes, Reader.view),
    "Copied": (Writer.bytes, Reader.bytes),
    "Ints": (_write_ints, _read_ints),
    "Bools": (_write_sequence(lambda w, v: w.byte(1 if v else 0)), _read_sequence(_read_bool)),
    "Strings": (_write_sequence(Writer.string), _read_sequence(Reader.string)),
    "ShapedArray": (_write_aval, _read_aval),
}


@dataclass(frozen=True, slots=True)
class Message:
    """Base of messages."""

    code: ClassVar[int]
    codec: ClassVar[tuple[tuple[str, Callable[[Writer, Any], None], Callable[[Reader], Any]], ...]]  # of each field
    readers: ClassVar[tuple[Callable[[Reader], Any], ...]]  # the last of each
    tail: ClassVar[str]  # the last field, if it is bytes


class Language:
    """The messages that two programs exchange; `message` adds one."""

    def __init__(self) -> None:
        self.classes: dict[int, type[Message]] = {}

    def decode(self, frame: Buffer) -> Iterable[Message]:
        """The messages of a frame, one by one. Raises DeserializationError at the first that is invalid."""
        r = Reader(frame)
        if not r.left():
            r.fail("a frame is empty")
        while r.left():
            start = r.at
            cls = self.classes.get(code := r.byte())
            if cls is None:
                raise DeserializationError(f"there is no message {code}", start)
            yield cls(*[read(r) for read in cls.readers])


@dataclass_transform(frozen_default=True)
def message(language: Language, code: int) -> Callable[[type[M]], type[M]]:
    """Adds a class of messages to a language."""

    def define(cls: type[M]) -> type[M]:
        made = dataclass(frozen=True, slots=True)(cls)
        made.code, made.codec = code, tuple((f.name, *_FIELDS[str(f.type)]) for f in fields(made))
        made.tail = made.codec[-1][0] if made.codec and made.codec[-1][1] is Writer.bytes else ""
        made.readers = tuple([read for _, _, read in made.codec])
        if language.classes.setdefault(code, made) is not made:
            raise ValueError(f"message code {code} is taken")
        return made

    return define


def encode(*messages: Message) -> bytes:
    """A frame of messages. Frames can be joined: their concatenated bytes are the frame of all messages."""
    w = Writer()
    for message in messages:
        w.byte(message.code)
        for name, write, _ in message.codec:
            value = getattr(message, name)
            if name == message.tail and len(value) >= LONG and message is messages[-1]:
                w.unsigned(len(value))
                return b"".join((w.data, value))
            write(w, value)
    return bytes(w.data)
