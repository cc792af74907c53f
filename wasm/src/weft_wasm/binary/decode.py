"""The imports and exports of a WebAssembly module, read from its bytes before an engine sees them. The engine checks
the code of the functions.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from weft_wasm.binary.encode import HOST, I32, I64, MAX_PAGES, MAX_PAGES_64, MEMORY_IMPORT, function_type, i32_const

HEAD = b"\0asm\x01\0\0\0"
CUSTOM, TYPES, IMPORTS, FUNCTIONS, GLOBALS, EXPORTS, CODE = 0, 1, 2, 3, 6, 7, 10
KNOWN = (CUSTOM, TYPES, IMPORTS, FUNCTIONS, GLOBALS, EXPORTS, CODE)
NAMES = {4: "tables", 5: "memories", 8: "a start", 9: "elements", 11: "data", 12: "a count of data", 13: "tags"}
ABI = "weft.abi"
MOST_FUNCTIONS = 1 << 20
THREADS = bytes((1, I32, 1)) + i32_const(1) + b"\x0b"  # the only global: the number of threads
SHARED = 2  # the bit of a memory that threads share


class ModuleError(ValueError):
    """Bytes that are not a module of the ABI."""


@dataclass
class Parts:
    """memory: the byte that says what the memory is. wide: whether addresses have 64 bits. imports: of functions.
    tasks: how many are exported.
    abi: what the section of that name holds, in which the compiler says what the module takes and gives.
    """

    memory: int = -1
    wide: bool = False
    imports: list[str] = field(default_factory=list)
    tasks: int = 0
    abi: bytes | None = None


class Reader:
    """A part of the module, read from its beginning."""

    def __init__(self, data: bytes, at: int, end: int):
        self.data, self.at, self.end = data, at, end

    def byte(self) -> int:
        if self.at >= self.end:
            raise ModuleError(f"it breaks off at byte {self.at}")
        self.at += 1
        return self.data[self.at - 1]

    def unsigned(self) -> int:
        """A number below 2^32."""
        value = 0
        for shift in range(0, 35, 7):
            byte = self.byte()
            value |= (byte & 127) << shift
            if byte < 128:
                if value >= 1 << 32:
                    break
                return value
        raise ModuleError(f"the number before byte {self.at} is too large")

    def take(self, count: int) -> bytes:
        if count > self.end - self.at:
            raise ModuleError(f"it breaks off at byte {self.end}, {count} bytes are wanted at {self.at}")
        self.at += count
        return self.data[self.at - count : self.at]

    def name(self) -> str:
        return self.take(self.unsigned()).decode("latin1")

    def done(self) -> None:
        if self.at != self.end:
            raise ModuleError(f"{self.end - self.at} bytes are left at byte {self.at}")


def parts(code: bytes) -> Parts:
    """The imports and exports of a module. Raises ModuleError for a module that no compiler of this ABI writes."""
    if code[: len(HEAD)] != HEAD:
        raise ModuleError(f"it begins with {code[:8]!r}")
    found = Parts()
    sections = _sections(code, found)
    types = _types(sections.get(TYPES))
    functions = _imports(sections.get(IMPORTS), types, found)
    if (section := sections.get(FUNCTIONS)) is not None:
        count = section.unsigned()
        if count > MOST_FUNCTIONS:
            raise ModuleError(f"it has {count} functions")
        functions += [section.unsigned() for _ in range(count)]
        section.done()
    if (section := sections.get(GLOBALS)) is not None and section.take(section.end - section.at) != THREADS:
        raise ModuleError("it has globals other than the number of threads")
    _exports(
        sections.get(EXPORTS), [types[k] if k < len(types) else b"" for k in functions], GLOBALS in sections, found
    )
    return found


def _sections(code: bytes, parts: Parts) -> dict[int, Reader]:
    whole = Reader(code, len(HEAD), len(code))
    found: dict[int, Reader] = {}
    while whole.at < whole.end:
        number, size = whole.byte(), whole.unsigned()
        start = whole.at
        whole.take(size)
        if number not in KNOWN:
            raise ModuleError(f"it has {NAMES.get(number, f'a section {number}')}, which no program has")
        if number == CUSTOM:
            custom = Reader(code, start, start + size)
            if custom.name() == ABI:
                if parts.abi is not None:
                    raise ModuleError(f"it has a section {ABI} twice")
                parts.abi = custom.take(custom.end - custom.at)
            continue
        if number in found:
            raise ModuleError(f"it has section {number} twice")
        found[number] = Reader(code, start, start + size)
    return found


def _types(section: Reader | None) -> list[bytes]:
    """The signatures, as bytes."""
    if section is None:
        return []
    found = []
    for _ in range(section.unsigned()):
        start = section.at
        if section.byte() != 0x60:
            raise ModuleError(f"the type at byte {start} is not that of a function")
        section.take(section.unsigned())
        section.take(section.unsigned())
        found.append(section.data[start : section.at])
    section.done()
    return found


def _imports(section: Reader | None, types: list[bytes], found: Parts) -> list[int]:
    """Reads the memory and the functions that are imported; the types of these."""
    if section is None:
        raise ModuleError("it imports no memory")
    count = section.unsigned()
    if count < 1 or section.take(min(len(MEMORY_IMPORT), section.end - section.at)) != MEMORY_IMPORT:
        raise ModuleError("its first import is not the memory of weft")
    found.memory = section.at
    kind, least, most = section.byte() & ~SHARED, section.unsigned(), section.unsigned()
    if kind not in (1, 5) or least > 1 or most != (MAX_PAGES if kind == 1 else MAX_PAGES_64):
        raise ModuleError(f"its memory is of kind {kind} with {least} to {most} pages")
    found.wide = kind == 5
    used = []
    for _ in range(count - 1):
        module, name, kind, number = section.name(), section.name(), section.byte(), section.unsigned()
        wanted = HOST[I64 if found.wide else I32].get(name)
        if module != "weft" or wanted is None or kind != 0 or name in found.imports:
            raise ModuleError(f"it imports {module[:40]!r} {name[:40]!r}, which no host has")
        if number >= len(types) or types[number] != wanted:
            raise ModuleError(f"it imports {name} as a function of another type")
        found.imports.append(name)
        used.append(number)
    section.done()
    return used


def _exports(section: Reader | None, functions: list[bytes], threads: bool, found: Parts) -> None:
    pointer = I64 if found.wide else I32
    main, task = function_type((pointer,), (I32,)), function_type((pointer, I32, I32, I32), ())
    exported: dict[str, tuple[int, int]] = {}
    for _ in range(section.unsigned() if section is not None else 0):
        assert section is not None
        name, kind, number = section.name(), section.byte(), section.unsigned()
        if name in exported:
            raise ModuleError(f"it exports {name[:40]!r} twice")
        exported[name] = kind, number
    if section is not None:
        section.done()
    for name, (kind, number) in exported.items():
        if name == "threads":
            if (kind, number) != (3, 0) or not threads:
                raise ModuleError("it exports threads, which is not its global")
            continue
        if kind != 0 or number >= len(functions) or functions[number] != (main if name == "main" else task):
            raise ModuleError(f"it exports {name[:40]!r}, which is not a function of the type that hosts call")
    found.tasks = sum(name not in ("main", "threads") for name in exported)
    if "main" not in exported or any(f"task{k}" not in exported for k in range(found.tasks)):
        raise ModuleError(
            f"it exports {', '.join(sorted(exported))[:80] or 'nothing'}, not main and tasks by their numbers"
        )
    if found.tasks and not ("threads" in exported and "share" in found.imports):
        raise ModuleError("it has tasks, and does not import share and export threads")


__all__ = ["ABI", "ModuleError", "Parts", "parts"]
