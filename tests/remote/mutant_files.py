"""Files, frames and arrays whose parts were changed: what `export`, the wire and `weft.numpy.load` are given by
somebody who knows their formats.

Writers are recorded field by field (`Recording`); a mutant has some fields changed, left out, doubled, exchanged, and
check sums that fit.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import Any
from unittest import mock

from weft.serialization.binary import Writer

Field = tuple  # (kind, value), the kind being a method of `Writer`, or ("raw", bytes)
NAMES = (
    "float32",
    "int8",
    "bool",
    "uint64",
    "complex128",
    "bfloat16",
    "int4",
    "uint2",
    "float8_e8m0fnu",
    "float0",
    "key<fry>",
    "object",
    "O",
    "",
    "n",
    "n + 1",
    "2*n",
    "-1",
    "n - n",
    "floordiv(n, 0)",
    "mod(n, 2)",
    "n**9",
    "cpu",
    "wasm",
    "\ud800",
    "x" * 400,
    "a",
    "b",
)
NUMBERS = (
    0,
    1,
    2,
    3,
    4,
    7,
    63,
    65,
    127,
    128,
    1 << 16,
    (1 << 31) - 1,
    1 << 32,
    (1 << 48) + 1,
    (1 << 63) - 1,
    (1 << 64) - 1,
    1 << 70,
)


class Recording(Writer):
    """A writer that knows what was written."""

    def __init__(self):
        super().__init__()
        self.fields: list[Field] = []

    def _note(self, kind: str, value, write: Callable) -> None:
        fields, self.fields = self.fields, []  # not those that writing this one writes
        write(self, value)
        self.fields = [*fields, (kind, value)]

    def byte(self, value):
        self._note("byte", value, Writer.byte)

    def unsigned(self, value):
        self._note("unsigned", value, Writer.unsigned)

    def float64(self, value):
        self._note("float64", value, Writer.float64)

    def bytes(self, value):
        self._note("bytes", bytes(value) if not isinstance(value, Writer) else value, Writer.bytes)

    def string(self, value):
        self._note("string", value, Writer.string)


def recorded(module, write: Callable[[], Any]) -> list[list[Field]]:
    """The fields of each writer that `module` made while `write` ran."""
    made: list[Recording] = []

    def make():
        made.append(Recording())
        return made[-1]

    with mock.patch.object(module, "Writer", make):
        write()
    return [w.fields for w in made]


def emit(fields: list[Field]) -> bytes:
    """The bytes of fields, whatever they are."""
    w = Writer()
    for kind, value in fields:
        if kind == "raw":
            w.data += value
        elif kind == "byte":
            w.byte(value & 0xFF)
        else:
            getattr(w, kind)(value)
    return bytes(w.data)


def changed(rng: random.Random, field: Field) -> Field:
    """A field with another value, or of another kind."""
    kind, value = field
    if rng.random() < 0.04:
        return rng.choice(
            [
                ("unsigned", rng.choice(NUMBERS)),
                ("string", rng.choice(NAMES)),
                ("byte", rng.randrange(256)),
                ("raw", rng.randbytes(rng.randrange(9))),
            ]
        )
    if kind == "byte":
        return kind, rng.choice((value + 1, value ^ 1, value ^ 2, value ^ 4, 0, 255, rng.randrange(256)))
    if kind == "unsigned":
        return kind, rng.choice((value + 1, max(value - 1, 0), value * 2, value ^ 1, value // 2, *NUMBERS))
    if kind == "string":
        return kind, rng.choice((*NAMES, value + "x", value[:-1], value.upper()))
    if kind == "float64":
        return kind, rng.choice((-value, float("nan"), float("inf"), 0.0))
    return kind, changed_bytes(rng, bytes(value))


def changed_bytes(rng: random.Random, data: bytes) -> bytes:
    """Bytes cut, made longer, with some replaced: values that an array's dtype does not have, and others that it
    has.
    """
    at = rng.randrange(len(data) + 1)
    return rng.choice(
        [
            lambda: data[:at],
            lambda: data[at:],
            lambda: data + rng.randbytes(rng.randrange(1, 9)),
            lambda: data[:at] + rng.randbytes(1) + data[at + 1 :],
            lambda: data[:at] + bytes([rng.choice((2, 3, 7, 8, 15, 16, 127, 128, 255))]) + data[at + 1 :],
            lambda: bytes(len(data)),
            lambda: b"\xff" * len(data),
            lambda: data[::-1],
            lambda: rng.randbytes(len(data)),
            lambda: data * 2,
            lambda: b"",
        ]
    )()


def mutant_fields(rng: random.Random, fields: list[Field], others: list[list[Field]]) -> list[Field]:
    """Fields of a mutant."""
    fields = list(fields)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        kind, at = rng.randrange(12), rng.randrange(len(fields)) if fields else 0
        if not fields or kind == 0:
            fields.insert(at, rng.choice(rng.choice(others)))
        elif kind <= 7:
            fields[at] = changed(rng, fields[at])
        elif kind == 8:
            del fields[at]
        elif kind == 9:
            fields.insert(at, fields[at])
        elif kind == 10:
            other = rng.randrange(len(fields))
            fields[at], fields[other] = fields[other], fields[at]
        else:
            other = rng.choice(others)
            start = rng.randrange(len(other))
            fields[at : at + rng.randrange(1, 6)] = other[start : start + rng.randrange(1, 6)]
    return fields


def mutant_npy(rng: random.Random, data: bytes) -> bytes:
    """A .npy file with another header: `data` begins with its own."""
    size = struct.unpack("<H", data[8:10])[0]
    header, body = data[10 : 10 + size].decode("latin1"), data[10 + size :]
    for _ in range(rng.choice((1, 1, 2))):
        old, new = rng.choice(
            [
                (
                    "<f4",
                    rng.choice(
                        (
                            "<f8",
                            ">f4",
                            "|b1",
                            "<i2",
                            "<c8",
                            "|V2",
                            "|O",
                            "<U4",
                            "f4",
                            "<f3",
                            "|u1",
                            "<f99999",
                            "",
                            "<",
                            "<i4",
                            "|S2",
                        )
                    ),
                ),
                ("False", rng.choice(("True", "0", "None", "'no'", "[]"))),
                (
                    "'shape': (",
                    rng.choice(("'shape': (-1, ", "'shape': (0, ", "'shape': (1, ", "'shape': [", "'form': (")),
                ),
                (
                    "(2, 3)",
                    rng.choice(
                        (
                            "(3, 2)",
                            "(6,)",
                            "6",
                            "()",
                            "(2, 3, 1)",
                            "(2**40, 3)",
                            "(2.0, 3)",
                            "(True, 6)",
                            "(99999999999, 99999999999)",
                            "(2, -3)",
                            "((2,), 3)",
                        )
                    ),
                ),
                ("}", rng.choice(("", ", 'x': 1}", "} + {}", "}" * 200))),
                ("{", rng.choice(("{" * 300, "[", "__import__('os')"))),
            ]
        )
        header = header.replace(old, new, 1)
    if rng.random() < 0.3:
        body = changed_bytes(rng, body)
    version = rng.choice((b"\x01\x00", b"\x01\x00", b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x09\x09", b"\x00\x00"))
    encoded = header.encode("latin1", "replace")
    count = len(encoded) if rng.random() < 0.9 else rng.choice((0, 1, len(encoded) + 5, 65535))
    length = struct.pack("<H", count & 0xFFFF) if version[0] <= 1 else struct.pack("<I", count)
    out = b"\x93NUMPY" + version + length + encoded + body
    return out if rng.random() < 0.95 else out[: rng.randrange(len(out))]
