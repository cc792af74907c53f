"""Writing and reading untrusted bytes: every length is checked against the number of bytes left before anything is
allocated.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NoReturn, Sequence

from ..base.errors import WeftError

if TYPE_CHECKING:
    from typing_extensions import Buffer


class DeserializationError(WeftError):
    """The bytes are not a valid file: truncated, damaged, of another version, or not a well-formed program. The message
    names the offset. No part of the bytes has been run. Write them again with this version of weft.

    Example:
        >>> from weft import export
        >>> export.deserialize(b"not a program")  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft.serialization.binary.DeserializationError: …
    """

    def __init__(self, message: str, offset: int = 0):
        super().__init__(f"{message} (at byte {offset})")
        self.offset = offset


def printable(text: str) -> str:
    """Untrusted text for messages and logs. Characters that are not printable, such as a new line, a terminal's escape
    or half of a surrogate pair, are written as Python escapes.

    Example:
        >>> printable("f(x) ≥ 0\\n\\x1b[2J")
        'f(x) ≥ 0\\\\n\\\\x1b[2J'
    """
    return (
        text
        if text.isprintable()
        else "".join([c if c.isprintable() else c.encode("unicode_escape").decode() for c in text])
    )


class Writer:
    """Appends integers, strings and bytes to `data`."""

    __slots__ = ("data",)

    def __init__(self) -> None:
        self.data = bytearray()

    def byte(self, value: int) -> None:
        self.data.append(value)

    def unsigned(self, value: int) -> None:
        """An integer of any size at 7 bits a byte, least significant first."""
        if value < 0:
            raise ValueError(f"{value} is negative")
        data = self.data
        while value > 0x7F:
            data.append(value & 0x7F | 0x80)
            value >>= 7
        data.append(value)

    def signed(self, value: int) -> None:
        """The same for signed integers; small ones of both signs are short."""
        self.unsigned(value << 1 if value >= 0 else (-value << 1) - 1)

    def float64(self, value: float) -> None:
        self.data += struct.pack("<d", value)

    def bytes(self, value: Any) -> None:
        value = memoryview(value).cast("B") if not isinstance(value, (bytes, bytearray)) else value
        self.unsigned(len(value))
        self.data += value

    def string(self, value: str) -> None:
        self.bytes(value.encode("utf-8", "surrogatepass"))


class Reader:
    """Reads what a `Writer` wrote. Raises DeserializationError for all other bytes."""

    __slots__ = ("data", "at", "end")

    def __init__(self, data: Buffer):
        self.data = memoryview(data).cast("B")
        self.at, self.end = 0, len(self.data)

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        raise DeserializationError(message, self.at if at is None else at)

    def left(self) -> int:
        return self.end - self.at

    def byte(self) -> int:
        if self.at >= self.end:
            self.fail("the data ends where a byte is expected")
        value = self.data[self.at]
        self.at += 1
        return value

    def unsigned(self, limit: int = (1 << 64) - 1) -> int:
        """An integer of at most `limit`."""
        start, value, shift = self.at, 0, 0
        while True:
            if self.at >= self.end:
                self.fail("the data ends where a byte is expected")
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 126:
                self.fail("an integer is too long", start)
        if value > limit:
            self.fail(f"{value} is more than {limit}", start)
        return value

    def signed(self, bits: int = 65) -> int:
        value = self.unsigned((1 << bits) - 1)
        return -((value + 1) >> 1) if value & 1 else value >> 1

    def count(self, limit: int | None = None) -> int:
        """The number of items that follow; each takes a byte at least, so there can't be more than there are bytes."""
        start = self.at
        value = self.unsigned()
        if value > self.left() or limit is not None and value > limit:
            self.fail(
                f"{value} items are announced, {self.left()} bytes are left"
                + (f" and {limit} items allowed" if limit is not None else ""),
                start,
            )
        return value

    def index(self, table: Sequence[Any]) -> int:
        """A position in `table`."""
        start = self.at
        value = self.unsigned()
        if value >= len(table):
            self.fail(f"there is no entry {value} in a table of {len(table)}", start)
        return value

    def float64(self) -> float:
        return struct.unpack("<d", self.bytes(8))[0]

    def bytes(self, size: int | None = None) -> bytes:
        """`size` bytes, or as many as a count in front of them says."""
        return bytes(self.view(size))

    def view(self, size: int | None = None) -> memoryview:
        """The same without a copy, valid as long as the data."""
        size = self.count() if size is None else size
        if size > self.left():
            self.fail(f"{size} bytes are announced, {self.left()} are left")
        self.at += size
        return self.data[self.at - size : self.at]

    def string(self) -> str:
        start = self.at
        try:
            return str(self.view(), "utf-8", "surrogatepass")
        except UnicodeDecodeError:
            self.fail("a string is not UTF-8", start)

    def finish(self) -> None:
        """Checks that nothing is left."""
        if self.left():
            self.fail(f"{self.left()} bytes follow the end")
