"""The WebAssembly binary format: opcodes by name, LEB128, and a module builder that writes straight into bytearrays."""

from __future__ import annotations

import struct
from itertools import groupby
from typing import Sequence

I32, I64, F32, F64, V128 = 0x7F, 0x7E, 0x7D, 0x7C, 0x7B
VOID = 0x40


def unsigned(value: int) -> bytes:
    """LEB128 of a non-negative integer."""
    if value < 128:
        return bytes((value,))
    out = bytearray()
    while value > 127:
        out.append((value & 127) | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def signed(value: int) -> bytes:
    """Signed LEB128."""
    if -64 <= value < 64:
        return bytes((value & 127,))
    out = bytearray()
    while not -64 <= value < 64:
        out.append((value & 127) | 128)
        value >>= 7
    out.append(value & 127)
    return bytes(out)


# Instructions of one type, in the order of their opcodes.
_COMPARE_INTEGERS = "{0}.eqz {0}.eq {0}.ne {0}.lt_s {0}.lt_u {0}.gt_s {0}.gt_u {0}.le_s {0}.le_u {0}.ge_s {0}.ge_u"
_COMPARE_FLOATS = "{0}.eq {0}.ne {0}.lt {0}.gt {0}.le {0}.ge"
_INTEGERS = (
    "{0}.clz {0}.ctz {0}.popcnt {0}.add {0}.sub {0}.mul {0}.div_s {0}.div_u {0}.rem_s {0}.rem_u {0}.and "
    "{0}.or {0}.xor {0}.shl {0}.shr_s {0}.shr_u {0}.rotl {0}.rotr"
)
_FLOATS = (
    "{0}.abs {0}.neg {0}.ceil {0}.floor {0}.trunc {0}.nearest {0}.sqrt {0}.add {0}.sub {0}.mul {0}.div "
    "{0}.min {0}.max {0}.copysign"
)

# (first opcode, the instructions from there on; "-" where none of ours has one)
_PLAIN = (
    (0x00, "unreachable nop block loop if else"),
    (0x0B, "end br br_if br_table return call"),
    (0x1A, "drop select"),
    (0x20, "local.get local.set local.tee global.get global.set"),
    (0x28, "i32.load i64.load f32.load f64.load i32.load8_s i32.load8_u i32.load16_s i32.load16_u"),
    (0x36, "i32.store i64.store f32.store f64.store i32.store8 i32.store16"),
    (0x41, "i32.const i64.const f32.const f64.const"),
    (0x45, _COMPARE_INTEGERS.format("i32")),
    (0x50, _COMPARE_INTEGERS.format("i64")),
    (0x5B, _COMPARE_FLOATS.format("f32")),
    (0x61, _COMPARE_FLOATS.format("f64")),
    (0x67, _INTEGERS.format("i32")),
    (0x79, _INTEGERS.format("i64")),
    (0x8B, _FLOATS.format("f32")),
    (0x99, _FLOATS.format("f64")),
    (
        0xA7,
        (
            "i32.wrap_i64 i32.trunc_f32_s i32.trunc_f32_u i32.trunc_f64_s i32.trunc_f64_u i64.extend_i32_s "
            "i64.extend_i32_u i64.trunc_f32_s i64.trunc_f32_u i64.trunc_f64_s i64.trunc_f64_u f32.convert_i32_s "
            "f32.convert_i32_u f32.convert_i64_s f32.convert_i64_u f32.demote_f64 f64.convert_i32_s "
            "f64.convert_i32_u f64.convert_i64_s f64.convert_i64_u f64.promote_f32 i32.reinterpret_f32 "
            "i64.reinterpret_f64 f32.reinterpret_i32 f64.reinterpret_i64 i32.extend8_s i32.extend16_s"
        ),
    ),
)
# after the prefix 0xFC
_SATURATING = (
    (
        0x00,
        (
            "i32.trunc_sat_f32_s i32.trunc_sat_f32_u i32.trunc_sat_f64_s i32.trunc_sat_f64_u i64.trunc_sat_f32_s "
            "i64.trunc_sat_f32_u i64.trunc_sat_f64_s i64.trunc_sat_f64_u"
        ),
    ),
)
# after the prefix 0xFD
_SIMD = (
    (
        0x00,
        (
            "v128.load v128.load8x8_s v128.load8x8_u v128.load16x4_s v128.load16x4_u v128.load32x2_s "
            "v128.load32x2_u v128.load8_splat v128.load16_splat v128.load32_splat v128.load64_splat v128.store "
            "v128.const i8x16.shuffle i8x16.swizzle i8x16.splat i16x8.splat i32x4.splat i64x2.splat f32x4.splat "
            "f64x2.splat"
        ),
    ),
    (
        0x1B,
        (
            "i32x4.extract_lane i32x4.replace_lane i64x2.extract_lane i64x2.replace_lane f32x4.extract_lane "
            "f32x4.replace_lane f64x2.extract_lane f64x2.replace_lane"
        ),
    ),
    (
        0x37,
        (
            "i32x4.eq i32x4.ne i32x4.lt_s i32x4.lt_u i32x4.gt_s i32x4.gt_u i32x4.le_s i32x4.le_u i32x4.ge_s "
            "i32x4.ge_u f32x4.eq f32x4.ne f32x4.lt f32x4.gt f32x4.le f32x4.ge f64x2.eq f64x2.ne f64x2.lt f64x2.gt "
            "f64x2.le f64x2.ge v128.not v128.and v128.andnot v128.or v128.xor v128.bitselect v128.any_true "
            "v128.load8_lane v128.load16_lane v128.load32_lane v128.load64_lane v128.store8_lane "
            "v128.store16_lane v128.store32_lane v128.store64_lane v128.load32_zero v128.load64_zero "
            "f32x4.demote_f64x2_zero f64x2.promote_low_f32x4"
        ),
    ),
    (0x67, "f32x4.ceil f32x4.floor f32x4.trunc f32x4.nearest"),
    (0x74, "f64x2.ceil f64x2.floor"),
    (0x7A, "f64x2.trunc"),
    (0x87, "i16x8.extend_low_i8x16_s - i16x8.extend_low_i8x16_u"),
    (0x94, "f64x2.nearest"),
    (
        0xA0,
        (
            "i32x4.abs i32x4.neg - i32x4.all_true i32x4.bitmask - - i32x4.extend_low_i16x8_s "
            "i32x4.extend_high_i16x8_s i32x4.extend_low_i16x8_u i32x4.extend_high_i16x8_u i32x4.shl i32x4.shr_s "
            "i32x4.shr_u i32x4.add - - i32x4.sub - - - i32x4.mul i32x4.min_s i32x4.min_u i32x4.max_s i32x4.max_u"
        ),
    ),
    (
        0xC0,
        (
            "i64x2.abs i64x2.neg - i64x2.all_true i64x2.bitmask - - i64x2.extend_low_i32x4_s "
            "i64x2.extend_high_i32x4_s i64x2.extend_low_i32x4_u i64x2.extend_high_i32x4_u i64x2.shl i64x2.shr_s "
            "i64x2.shr_u i64x2.add - - i64x2.sub - - - i64x2.mul i64x2.eq i64x2.ne i64x2.lt_s i64x2.gt_s "
            "i64x2.le_s i64x2.ge_s"
        ),
    ),
    (
        0xE0,
        (
            "f32x4.abs f32x4.neg - f32x4.sqrt f32x4.add f32x4.sub f32x4.mul f32x4.div f32x4.min f32x4.max "
            "f32x4.pmin f32x4.pmax f64x2.abs f64x2.neg - f64x2.sqrt f64x2.add f64x2.sub f64x2.mul f64x2.div "
            "f64x2.min f64x2.max f64x2.pmin f64x2.pmax i32x4.trunc_sat_f32x4_s i32x4.trunc_sat_f32x4_u "
            "f32x4.convert_i32x4_s f32x4.convert_i32x4_u i32x4.trunc_sat_f64x2_s_zero "
            "i32x4.trunc_sat_f64x2_u_zero f64x2.convert_low_i32x4_s f64x2.convert_low_i32x4_u"
        ),
    ),
    (
        0x105,
        (
            "f32x4.relaxed_madd f32x4.relaxed_nmadd f64x2.relaxed_madd f64x2.relaxed_nmadd "
            "i8x16.relaxed_laneselect i16x8.relaxed_laneselect i32x4.relaxed_laneselect i64x2.relaxed_laneselect"
        ),
    ),
)


def _opcodes() -> dict[str, bytes]:
    """Opcodes without immediates (control and memory ones included, whose immediates the caller appends)."""
    table = {"i32.atomic.load": b"\xfe\x10", "memory.copy": b"\xfc\x0a\x00\x00"}
    for prefix, runs in ((b"", _PLAIN), (b"\xfc", _SATURATING), (b"\xfd", _SIMD)):
        for start, names in runs:
            for code, name in enumerate(names.split(), start):
                if name != "-":
                    table[name] = prefix + unsigned(code) if prefix else bytes((code,))
    return table


OP = _opcodes()

# ALIGN[bytes] is the alignment immediate of an access of that width: natural alignment is only a hint, so it is always
# 0 for vectors (they may start anywhere) and the element's own for scalars.
ALIGN = {1: b"\x00", 2: b"\x01", 4: b"\x02", 8: b"\x03", 16: b"\x00"}


def memarg(width: int, offset: int) -> bytes:
    """Immediates of a load or store."""
    return ALIGN[width] + unsigned(offset)


# Traps unless the word at the address on the stack is 0.
POLL = OP["i32.atomic.load"] + memarg(4, 0) + OP["if"] + bytes((VOID,)) + OP["unreachable"] + OP["end"]


def i32_const(value: int) -> bytes:
    if value >= 1 << 31:
        value -= 1 << 32
    return b"\x41" + signed(value)


def i64_const(value: int) -> bytes:
    if value >= 1 << 63:
        value -= 1 << 64
    return b"\x42" + signed(value)


def f32_const(value: float) -> bytes:
    return b"\x43" + f32_bytes(value)


def f64_const(value: float) -> bytes:
    return b"\x44" + struct.pack("<d", value)


def f32_bytes(value: float) -> bytes:
    """The nearest float32; overflow rounds to infinity."""
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return struct.pack("<f", float("inf") if value > 0 else float("-inf"))


MAX_PAGES, MAX_PAGES_64 = 1 << 16, 1 << 18  # of 64 KiB; more than 16 GiB no browser gives


def function_type(params: Sequence[int], results: Sequence[int]) -> bytes:
    return b"\x60" + unsigned(len(params)) + bytes(params) + unsigned(len(results)) + bytes(results)


# The functions that a module may import from its host, docs/artifact.md, by the type of addresses.
HOST = {
    pointer: {"call": function_type((I32, pointer), (I32,)), "share": function_type((I32, pointer, I32, I32), ())}
    for pointer in (I32, I64)
}


class Module:
    """Collects functions and writes a module that imports memory ("weft", "memory") and, as functions 0 …, what
    `imports` names of HOST from "weft"; it exports functions by name. pointer: the type of addresses. With "share"
    among them it exports the global "threads", which is 1.

    >>> m = Module()
    >>> m.export("main", m.function([I32], [I32], [], OP["local.get"] + b"\\0"))
    >>> m.to_bytes()[:4]
    b'\\x00asm'
    """

    def __init__(self, imports: Sequence[str] = (), pointer: int = I32):
        self.host, self.pointer = HOST[pointer], pointer
        self.types: dict[bytes, int] = {}
        self.functions: list[int] = []
        self.bodies: list[bytes] = []
        self.names: list[str] = []
        self.exports: list[tuple[str, int]] = []
        self.known: dict[tuple[int, bytes], int] = {}
        self.tasks: dict[int, int] = {}  # the numbers of functions that threads run
        self.imports = list(imports)  # functions, which are numbered before all others
        for name in imports:
            self.types.setdefault(self.host[name], len(self.types))

    def function(
        self, params: list[int], results: list[int], local_types: Sequence[int], code: bytes, name: str = ""
    ) -> int:
        """Adds a function (its code without the final `end`) and returns its index; equal functions are stored once."""
        signature = function_type(params, results)
        type_index = self.types.setdefault(signature, len(self.types))
        groups = [(len(list(same)), t) for t, same in groupby(local_types)]
        body = bytearray(unsigned(len(groups)))
        for count, t in groups:
            body += unsigned(count)
            body.append(t)
        body += code
        body.append(0x0B)
        key = (type_index, bytes(body))
        if key not in self.known:
            self.known[key] = len(self.imports) + len(self.functions)
            self.functions.append(type_index)
            self.bodies.append(key[1])
            self.names.append(name)
        return self.known[key]

    def task(self, function: int) -> int:
        """Exports a function as "task0", "task1", …, for hosts with threads, and returns the number."""
        if function not in self.tasks:
            self.tasks[function] = len(self.tasks)
            self.export(f"task{self.tasks[function]}", function)
        return self.tasks[function]

    def export(self, name: str, function: int) -> None:
        self.exports.append((name, function))

    def to_bytes(self) -> bytes:
        out = bytearray(b"\0asm\x01\0\0\0")

        def section(number: int, items: list[bytes]) -> None:
            content = unsigned(len(items)) + b"".join(items)
            out.append(number)
            out.extend(unsigned(len(content)))
            out.extend(content)

        section(1, list(self.types))
        kind, most = (1, MAX_PAGES) if self.pointer == I32 else (5, MAX_PAGES_64)
        memory = MEMORY_IMPORT + bytes((kind, 1)) + unsigned(most)
        section(
            2,
            [
                memory,
                *(
                    _name("weft") + _name(name) + b"\x00" + unsigned(self.types[self.host[name]])
                    for name in self.imports
                ),
            ],
        )
        section(3, [unsigned(t) for t in self.functions])
        shares = "share" in self.imports
        if shares:
            section(6, [bytes((I32, 1)) + i32_const(1) + b"\x0b"])
        globals_ = [_name("threads") + b"\x03\x00"] if shares else []
        section(7, [*(_name(name) + b"\x00" + unsigned(index) for name, index in self.exports), *globals_])
        section(10, [unsigned(len(body)) + body for body in self.bodies])
        names = b"".join(unsigned(k) + _name(n) for k, n in enumerate(self.names, len(self.imports)))
        names = unsigned(len(self.names)) + names
        custom = _name("name") + b"\x01" + unsigned(len(names)) + names
        out.append(0)
        out.extend(unsigned(len(custom)))
        out.extend(custom)
        return bytes(out)


def shared_memory_flag(code: bytes) -> int:
    """The position in the module's bytes of the flags of its memory. Bit 1 says that several threads share it; the host
    sets it.
    """
    at = code.index(MEMORY_IMPORT)
    return at + len(MEMORY_IMPORT)


def custom_section(name: str, content: bytes) -> bytes:
    """A section that engines leave alone, to be put behind a module."""
    body = _name(name) + content
    return b"\0" + unsigned(len(body)) + body


def _name(text: str) -> bytes:
    data = text.encode()
    return unsigned(len(data)) + data


MEMORY_IMPORT = _name("weft") + _name("memory") + b"\x02"
