"""Frames of the protocol and what they hold, for clients and hosts in every language: `vectors.json` beside this file.

`python tests/remote/vectors.py` writes it anew, and the table of messages in docs/protocol.md. The tests of Python
(`test_vectors.py`) and of JavaScript (`wasm/runtime/test/host.test.ts`) read it.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import Any

from weft.base.avals import ShapedArray, shaped
from weft_remote import protocol as p

PATH = pathlib.Path(__file__).with_name("vectors.json")
PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/protocol.md"
BEGIN, END = "<!-- messages -->\n", "<!-- end of messages -->\n"
KINDS = {  # annotation of a field -> its name in the document
    "int": "number",
    "bool": "truth",
    "str": "text",
    "bytes": "bytes",
    "Bulk": "bytes",
    "Copied": "bytes",
    "Ints": "numbers",
    "Bools": "truths",
    "Strings": "texts",
    "ShapedArray": "type",
}
HASH = bytes(range(32))
TEXT = 'größer als 2³¹\n\t"0"'  # more than one byte a character, and characters that logs escape

MESSAGES = [
    p.Welcome("s-1", bytes(range(250, 256)), 0, 60_000, 4 << 20, 8 << 20, ("cuda", "NVIDIA H200", "cpu", "")),
    p.Welcome("", b"", 2**40, 0, 1, 0, ()),
    p.End("LimitError", TEXT),
    p.Bye(),
    p.Received(127),
    p.Received(128),
    p.Settled(()),
    p.Settled((1, 300, 2**32)),
    p.Credit(3, 2**31),
    p.Beat(),
    p.Cancel(16_384),
    p.Reported(2**53 - 1),
    p.Waiting(3, 7),
    p.Waiting(1, 300),
    p.Put(1, 1, shaped((2, 3), "float32"), 0, bytes(24)),
    p.Put(2, 2, shaped((), "bool", True), 1, b"\x01"),
    p.Put(3, 3, shaped((0, 5), "bfloat16"), 0, b""),
    p.Part(4, 1, b"\x80\xff"),
    p.Program(5, HASH, 3, b"abc"),
    p.ProgramPart(6, HASH, b"d"),
    p.Compile(7, 4, HASH, 0, TEXT, (True, False)),
    p.Execute(8, 4, (1, 2), (5, 6)),
    p.Execute(9, 4, (), ()),
    p.ExecuteReporting(10, 4, (1,), (7,)),
    p.ExecuteFetching(10, 4, (1,), (7, 8, 9), (0, 2)),
    p.Result(11, 3, True, bytes(4)),
    p.Result(11, 3, False, b""),
    p.Raised(12, 2**40),
    p.Keep(17, 86_400),
    p.Forget(18, HASH),
    p.CompileSpread(13, 4, HASH, (0, 1, 2, 3), (1, 4, 2, 2, 2), (1, 1, 1, 0, 2, 2, 0, 2, 1, 0, 0), TEXT, (False,)),
    p.Copy(14, 9, 5, 1),
    p.Fetch(11, 5),
    p.Wait(12, 5),
    p.Free(13, (1, 2, 3)),
    p.Inspect(14, 4, "text", "stablehlo"),
    p.Ping(15),
    p.Data(11, 8, 4, b"\x00\x01\x02\x03"),
    p.Ready(15),
    p.Text(14, TEXT),
    p.Error(11, 8, "FloatingPointError", "a division by zero"),
    p.Report(1, 10, 0, True, bytes(4)),
    p.Kept(17, 3_600),
    p.Progress(8, TEXT, "running", 70_000, 300),
    p.Compiled(7, 1_234_567),
]

# frames that nobody sends: each names what is wrong, and is refused by every reader
WRONG = {
    "an empty frame": "",
    "an unknown message": "ff",
    "a message that ends before its fields": "05",
    "a number that ends too early": "0580",
    "a number beyond all limits": "05" + "ff" * 20 + "01",
    "more bytes than there are": "03" + "05" + "41",
    "more items than there are bytes": "06" + "ffff03",
    "a truth value of 2": "24" + "010a000200",
    "a text that is not UTF-8": "03" + "01ff00",
    "an array of rank 65": "10" + "0101" + "07" + b"float32".hex() + "00" + "41" + "01" * 65 + "00" + "00",
    "a second message that is cut": "08" + "1a",
}


def plain(value: Any) -> Any:
    """A field as JSON: bytes in hexadecimal digits."""
    if isinstance(value, (bytes, memoryview)):
        return bytes(value).hex()
    if isinstance(value, ShapedArray):
        return {"dtype": value.dtype.name, "weak": value.weak_type, "shape": list(value.shape)}
    return [plain(v) for v in value] if isinstance(value, tuple) else value


def fields(message: p.Message) -> dict[str, Any]:
    return {f.name: plain(getattr(message, f.name)) for f in dataclasses.fields(message)}


def vectors() -> dict[str, Any]:
    return {
        "version": p.VERSION,
        "messages": [{"message": type(m).__name__, "fields": fields(m), "frame": p.encode(m).hex()} for m in MESSAGES],
        "wrong": [{"what": what, "frame": frame} for what, frame in WRONG.items()],
    }


def text() -> str:
    return json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n"


def rows() -> str:
    """The table of the messages, from their definitions."""
    made = ["| code | message | fields | meaning |", "|---|---|---|---|"]
    for code, cls in sorted(p.LANGUAGE.classes.items()):
        given = ", ".join(f"{f.name}: {KINDS[str(f.type)]}" for f in dataclasses.fields(cls)) or "none"
        made.append(f"| {code} | `{cls.__name__}` | {given} | {' '.join((cls.__doc__ or '').split())} |")
    return "\n".join(made) + "\n"


def page(old: str) -> str:
    """The document, its table made anew."""
    before, rest = old.split(BEGIN)
    return before + BEGIN + "\n" + rows() + "\n" + END + rest.split(END)[1]


if __name__ == "__main__":
    PATH.write_text(text())
    PAGE.write_text(page(PAGE.read_text()))
