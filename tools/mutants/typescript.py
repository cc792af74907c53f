"""Faults in TypeScript, found by its tokens: what stands in strings, comments and types is left alone. A formatter
writes operators between blanks and generics without.
"""

from __future__ import annotations

import pathlib
import re
from typing import Iterator

from candidates import Mutant

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)
    |(?P<word>[A-Za-z_$][\w$]*)
    |(?P<number>\b\d[\d_]*\b(?![.xn]))
    |(?P<operator>(?<=\ )(?:===|!==|<=|>=|<|>|\+|-|\*|/|%|&&|\|\||\?\?|>>>|<<|&|\|)(?=\ ))""",
    re.S | re.X,
)
OPERATORS = {
    "===": ("comparison changed", "!=="),
    "!==": ("comparison changed", "==="),
    "<": ("comparison changed", "<="),
    "<=": ("comparison changed", "<"),
    ">": ("comparison changed", ">="),
    ">=": ("comparison changed", ">"),
    "+": ("operator changed", "-"),
    "-": ("operator changed", "+"),
    "*": ("operator changed", "+"),
    "%": ("operator changed", "*"),
    "&&": ("condition dropped", "||"),
    "||": ("condition dropped", "&&"),
    "??": ("condition dropped", "&&"),
    ">>>": ("operator changed", ">>"),
    "<<": ("operator changed", ">>"),
}
# a call or an assignment to what is there already
STATEMENT = re.compile(r"^[ ]+(?:await )?[\w.!?\[\]]+(?:\([^\n]*\)| [+\-|&]?= [^\n{]*);$", re.M)
CONDITION = re.compile(r"\bif \(([^()\n]*(?:\([^()\n]*\)[^()\n]*)*)\)")
FUNCTION = re.compile(
    r"(?:function |const |(?:private |async |static )*)(\w+)\s*(?:=\s*)?(?:async )?\([^\n]*\)[^\n;]*(?:=>|\{)$", re.M
)
LEFT_ALONE = re.compile(r"^\s*(?:import|export type|type|export interface|interface|throw|\*|//|declare)\b")


def find(file: str, text: str) -> Iterator[Mutant]:
    """The faults of one file."""
    names = [
        (m.start(), m.group(1))
        for m in FUNCTION.finditer(text)
        if m.group(1) not in ("if", "for", "while", "switch", "catch")
    ]

    def mutant(start: int, end: int, operator: str, replacement: str) -> Mutant:
        at, until = len(text[:start].encode()), len(text[:end].encode())
        function = next((name for where, name in reversed(names) if where <= start), "")
        return Mutant(
            file,
            text.count("\n", 0, start) + 1,
            function,
            operator,
            at,
            until,
            text[start:end],
            replacement,
            (at, until),
            False,
        )

    silent: list[tuple[int, int]] = []
    for m in TOKEN.finditer(text):
        line = text[text.rfind("\n", 0, m.start()) + 1 : m.end()]
        if m.lastgroup in ("comment", "text"):
            silent.append(m.span())
        elif LEFT_ALONE.match(line):
            continue
        elif m.lastgroup == "operator" and m.group() in OPERATORS:
            yield mutant(*m.span(), *OPERATORS[m.group()])
        elif m.lastgroup == "number":
            yield mutant(*m.span(), "off by one", str(int(m.group().replace("_", "")) + 1))
        elif m.group() in ("true", "false") and not line.rstrip().endswith((": true", ": false")):
            yield mutant(*m.span(), "condition dropped", "false" if m.group() == "true" else "true")
    quiet = lambda m: any(a <= m.start() < b for a, b in silent)
    for m in STATEMENT.finditer(text):
        if (
            not quiet(m)
            and not LEFT_ALONE.match(m.group())
            and not re.match(r"\s*(?:const|let|return|super)\b", m.group())
        ):
            yield mutant(m.start() + len(m.group()) - len(m.group().lstrip()), m.end(), "statement left out", ";")
    for m in CONDITION.finditer(text):
        if not quiet(m) and not text[m.end() :].lstrip().startswith("throw"):
            for value in ("true", "false"):
                yield mutant(*m.span(1), "condition dropped", value)


def find_all(root: pathlib.Path, patterns: list[str]) -> list[Mutant]:
    return [
        m
        for f in sorted({f for p in patterns for f in root.glob(p)})
        for m in find(str(f.relative_to(root)), f.read_text())
    ]
