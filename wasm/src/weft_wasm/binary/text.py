"""Modules as WebAssembly text, instruction by instruction, to be read and to be assembled again.

The names of functions are comments: the format wants names to differ, which those of a module need not.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from weft_wasm.binary.decode import (
    CODE,
    CUSTOM,
    EXPORTS,
    FUNCTIONS,
    GLOBALS,
    HEAD,
    IMPORTS,
    SHARED,
    TYPES,
    ModuleError,
    Reader,
)
from weft_wasm.binary.encode import F32, F64, I32, I64, OP, V128, VOID

TYPE_NAMES = {I32: "i32", I64: "i64", F32: "f32", F64: "f64", V128: "v128"}
NAMES = {code: name for name, code in OP.items()}
PREFIXES = frozenset((0xFC, 0xFD, 0xFE))
INDEXED = frozenset("br br_if call local.get local.set local.tee global.get global.set".split())
SHUFFLED = 16  # bytes of a vector's constant, and lanes of a shuffle


def module_text(code: bytes) -> str:
    """A module in the text format, which an assembler turns into the same sections.

    Raises:
        ModuleError: the bytes are not a module, or have an instruction that the compiler never writes.
    """
    if code[: len(HEAD)] != HEAD:
        raise ModuleError(f"it begins with {code[:8]!r}")
    return "\n".join(_Printer(code).lines())


class _Printer:
    def __init__(self, code: bytes):
        self.sections: dict[int, Reader] = {}
        self.names: dict[int, str] = {}  # of functions
        whole = Reader(code, len(HEAD), len(code))
        while whole.at < whole.end:
            number, size = whole.byte(), whole.unsigned()
            start = whole.at
            whole.take(size)
            section = Reader(code, start, start + size)
            if number != CUSTOM:
                self.sections[number] = section
            elif section.name() == "name":
                self._read_names(section)
        self.imported = 0

    def _read_names(self, section: Reader) -> None:
        while section.at < section.end:
            kind, size = section.byte(), section.unsigned()
            if kind != 1:
                section.take(size)
                continue
            for _ in range(section.unsigned()):
                number = section.unsigned()
                self.names[number] = section.name()

    def lines(self) -> Iterator[str]:
        yield "(module"
        for number, lines in (
            (TYPES, self._types),
            (IMPORTS, self._imports),
            (GLOBALS, self._globals),
            (EXPORTS, self._exports),
        ):
            if number in self.sections:
                yield from lines(self.sections[number])
        if FUNCTIONS in self.sections and CODE in self.sections:
            yield from self._functions(self.sections[FUNCTIONS], self.sections[CODE])
        yield ")"

    def _types(self, section: Reader) -> Iterator[str]:
        for number in range(section.unsigned()):
            section.byte()
            params, results = (_value_types(section) for _ in range(2))
            inside = "".join(
                f" ({kind} {' '.join(each)})" for kind, each in (("param", params), ("result", results)) if each
            )
            yield f"  (type (;{number};) (func{inside}))"

    def _imports(self, section: Reader) -> Iterator[str]:
        for _ in range(section.unsigned()):
            module, name, kind = section.name(), section.name(), section.byte()
            if kind == 0:
                what = f"(func (;{self.imported};) (type {section.unsigned()}))"
                self.names[self.imported] = name
                self.imported += 1
            else:
                flags, least, most = section.byte(), section.unsigned(), section.unsigned()
                wide, shared = "i64 " if flags & 4 else "", " shared" if flags & SHARED else ""
                what = f"(memory {wide}{least} {most}{shared})"
            yield f'  (import "{module}" "{name}" {what})'

    def _globals(self, section: Reader) -> Iterator[str]:
        for number in range(section.unsigned()):
            kind, changes = TYPE_NAMES[section.byte()], section.byte()
            value, _ = self._instruction(section), section.byte()
            yield f"  (global (;{number};) {f'(mut {kind})' if changes else kind} ({value}))"

    def _exports(self, section: Reader) -> Iterator[str]:
        kinds = ("func", "table", "memory", "global")
        for _ in range(section.unsigned()):
            name, kind, number = section.name(), kinds[section.byte()], section.unsigned()
            yield f'  (export "{name}" ({kind} {number}))'

    def _functions(self, types: Reader, code: Reader) -> Iterator[str]:
        of = [types.unsigned() for _ in range(types.unsigned())]
        code.unsigned()
        for number, kind in enumerate(of, self.imported):
            size = code.unsigned()
            body = Reader(code.data, code.at, code.at + size)
            code.take(size)
            yield f"  (func (;{number}{' ' * bool(self.names.get(number))}{self.names.get(number, '')};) (type {kind})"
            local_types = [
                name for count, name in ((body.unsigned(), TYPE_NAMES[body.byte()]) for _ in range(body.unsigned()))
                for _ in range(count)
            ]  # fmt: skip
            if local_types:
                yield f"    (local {' '.join(local_types)})"
            yield from self._body(body)
            yield "  )"

    def _body(self, body: Reader) -> Iterator[str]:
        depth = 2
        while body.at < body.end:
            text = self._instruction(body)
            word = text.partition(" ")[0]
            if word == "end" and depth == 2:
                return
            yield "  " * (depth - (word in ("end", "else"))) + text
            depth += (word in ("block", "loop", "if")) - (word == "end")

    def _instruction(self, at: Reader) -> str:
        first = at.byte()
        prefix = bytes((first,))
        if first in PREFIXES:
            start = at.at
            at.unsigned()
            prefix += at.data[start : at.at]
            if prefix == b"\xfc\x0a":
                prefix += at.take(2)
        name = NAMES.get(prefix)
        if name is None:
            raise ModuleError(f"it has the instruction {prefix.hex()} before byte {at.at}, which no program has")
        return name + self._immediates(name, at)

    def _immediates(self, name: str, at: Reader) -> str:
        if name in ("block", "loop", "if"):
            kind = at.byte()
            return "" if kind == VOID else f" (result {TYPE_NAMES[kind]})"
        if name in INDEXED:
            number = at.unsigned()
            return f" {number}" + (f" (;{self.names[number]};)" if name == "call" and self.names.get(number) else "")
        if name == "br_table":
            return "".join(f" {at.unsigned()}" for _ in range(at.unsigned() + 1))
        if name in ("i32.const", "i64.const"):
            return f" {_signed(at)}"
        if name in ("f32.const", "f64.const"):
            return f" {float_text(at.take(4 if name == 'f32.const' else 8))}"
        if name == "v128.const":
            return " i32x4 " + " ".join(f"0x{word:08x}" for word in struct.unpack("<4I", at.take(SHUFFLED)))
        if name == "i8x16.shuffle":
            return "".join(f" {lane}" for lane in at.take(SHUFFLED))
        found = _memory_argument(at) if ".load" in name or ".store" in name else ""
        return found + (f" {at.byte()}" if name.endswith("_lane") else "")


def _value_types(section: Reader) -> list[str]:
    return [TYPE_NAMES[section.byte()] for _ in range(section.unsigned())]


def _memory_argument(at: Reader) -> str:
    align, offset = at.unsigned(), _unsigned_64(at)
    return (f" offset={offset}" if offset else "") + f" align={1 << align}"


def _unsigned_64(at: Reader) -> int:
    value = shift = 0
    while True:
        byte = at.byte()
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value


def _signed(at: Reader) -> int:
    start = at.at
    value = _unsigned_64(at)
    bits = 7 * (at.at - start)
    return value - (1 << bits) if value >> (bits - 1) else value


def float_text(data: bytes) -> str:
    """A float's bytes as the format writes it, exactly: hexadecimal, or with the payload of a NaN."""
    bits, mantissa = (32, 23) if len(data) == 4 else (64, 52)
    word = int.from_bytes(data, "little")
    sign, payload = "-" * (word >> (bits - 1)), word & ((1 << mantissa) - 1)
    exponent = (word >> mantissa) & ((1 << (bits - 1 - mantissa)) - 1)
    if exponent == (1 << (bits - 1 - mantissa)) - 1:
        return f"{sign}nan:0x{payload:x}" if payload else f"{sign}inf"
    (value,) = struct.unpack("<f" if bits == 32 else "<d", data)
    return str(value.hex())


__all__ = ["float_text", "module_text"]
