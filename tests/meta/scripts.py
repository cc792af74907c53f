"""The same for tests in TypeScript and JavaScript, from their text: those without an assertion, constant ones,
failures that are swallowed.
"""

from __future__ import annotations

import pathlib
import re

TEST = re.compile(r"^[ \t]*(?:test|it)\(\s*(?P<quote>[\"'`])(?P<name>.*?)(?P=quote)", re.M | re.S)
HELPER = re.compile(
    r"\b(?:async\s+)?function\s+(\w+)\s*\("
    r"|\b(?:const|let)\s+(\w+)\s*=\s*(?:async\s*)?(?:\([^()]*\)|\w+)\s*(?::[^=]+)?=>"
    r"|^\s+(?:async\s+)?(\w+)\([^()]*\)[^;{}()]*\{",
    re.M,
)
ASSERTS = re.compile(r"\bassert\b|\bexpect\s*[.(]|\bexecFileSync\(|\bthrow new Error")
CONSTANT = re.compile(
    r"\bassert(?:\.ok)?\(\s*(?:true|1|\"[^\"]+\"|'[^']+')\s*[,)]|\bexpect\(\s*(?:true|false|\d+)\s*\)"
    r"|\|\|\s*true\s*\)|\.toBeGreaterThanOrEqual\(0\).*length|length\s*>=\s*0"
)
SAME = re.compile(
    r"\bassert\.(?:equal|strictEqual|deepEqual)\(\s*([\w.\[\]]+)\s*,\s*\1\s*[,)]"
    r"|\bexpect\(\s*([\w.\[\]]+)\s*\)\.(?:toBe|toEqual)\(\s*\2\s*\)"
)
SWALLOWED = re.compile(r"catch\s*(?:\([^)]*\))?\s*\{\s*(?://[^\n]*\s*)?\}")


def body(text: str, start: int, arrow: bool = False) -> str:
    """From the brace after `start` to the one that closes it; strings and comments are skipped. An arrow may have an
    expression instead.
    """
    if arrow and not text[start:].lstrip().startswith("{"):
        return text[start : text.find(";", start)]
    at = text.find("{", start)
    depth, quote, i = 0, "", at
    while 0 <= i < len(text):
        c = text[i]
        if quote:
            if c == "\\":
                i += 1
            elif c == quote:
                quote = ""
        elif text.startswith("//", i):
            i = text.find("\n", i)
        elif c in "\"'`":
            quote = c
        elif c == "{":
            depth += 1
        elif c == "}":
            depth -= 1
            if depth == 0:
                return text[at : i + 1]
        i += 1
    return text[at:]


def helpers(texts: list[str]) -> set[str]:
    """Functions and methods that assert, themselves or through others."""
    bodies = {
        next(filter(None, m.groups())): body(text, m.end() - (m[3] is not None), m[2] is not None)
        for text in texts
        for m in HELPER.finditer(text)
    }
    found = {name for name, code in bodies.items() if ASSERTS.search(code)}
    while more := {
        name for name, code in bodies.items() if name not in found and any(re.search(rf"\b{f}\(", code) for f in found)
    }:
        found |= more
    return found - {"if", "for", "while", "switch", "catch", "test"}


def findings(path: pathlib.Path, shared: list[pathlib.Path]) -> list[str]:
    text = path.read_text()
    asserting = helpers([text, *[p.read_text() for p in shared]])
    line = lambda at: text.count("\n", 0, at) + 1
    found = []
    for m in TEST.finditer(text):
        code = body(text, text.find("=>", m.end()))
        if not ASSERTS.search(code) and not any(re.search(rf"\b{name}\(", code) for name in asserting):
            found.append((line(m.start()), f"{m['name']!r} asserts nothing"))
    for pattern, what in (
        (CONSTANT, "this assertion holds whatever happens"),
        (SAME, "this compares a value with itself"),
        (SWALLOWED, "a failure ends here, and nobody hears of it"),
    ):
        found += [(line(m.start()), what) for m in pattern.finditer(text)]
    return [f"{n}: {what}" for n, what in sorted(found)]
