"""Places that random programs don't reach, and the reasons for them. A place is named by its file, its function and
its text, which last longer than its line.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import pathlib
import tomllib
from typing import NamedTuple

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
SOURCE = ROOT / "wasm" / "src" / "weft_wasm"
REASONS = HERE / "reasons.toml"


class Place(NamedTuple):
    """Statements that are not reached, one after the other in one function, or a line that never goes on to one of
    the lines that it might.
    """

    file: str
    function: str
    texts: tuple[str, ...]  # of the lines that decide whether it is reached, then of its own
    line: int
    says: str

    def __str__(self) -> str:
        return f"`{self.file}`, `{self.function}`: {self.says}"


class Named(NamedTuple):
    """What a reason is for: `file::function::text`, where the text is a part of a line; without a text, all of the
    function.
    """

    file: str
    function: str
    text: str

    def __str__(self) -> str:
        return "::".join(part for part in self if part)

    def holds(self, place: Place) -> bool:
        return (place.file, place.function) == (self.file, self.function) and any(
            self.text in text for text in place.texts
        )


class Reason(NamedTuple):
    why: str
    places: tuple[Named, ...]


class Reasons(NamedTuple):
    all: tuple[Reason, ...]

    @classmethod
    def read(cls) -> Reasons:
        return cls(
            tuple(
                Reason(r["why"], tuple(Named(*(p.split("::", 2) + [""])[:3]) for p in r["places"]))
                for r in tomllib.loads(REASONS.read_text()).get("reason", [])
            )
        )

    def of(self, place: Place) -> Reason | None:
        """The most particular one: one that names a line goes before one for all of a function."""
        fitting = [(named.text != "", reason) for reason in self.all for named in reason.places if named.holds(place)]
        return max(fitting, key=lambda f: f[0])[1] if fitting else None

    def needless(self, unreached: list[Place]) -> list[Named]:
        return [
            named
            for reason in self.all
            for named in reason.places
            if not any(named.holds(place) for place in unreached)
        ]


def fingerprints() -> dict[str, str]:
    """What each file of the source holds, as a hash."""
    return {
        p.relative_to(SOURCE).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(SOURCE.rglob("*.py"))
    }


def require_unchanged(before: dict[str, str]) -> None:
    """Refuses to speak of lines by their numbers where the files are others than those that were measured."""
    now = fingerprints()
    changed = sorted(file for file in before.keys() | now.keys() if before.get(file) != now.get(file))
    if changed:
        raise RuntimeError(
            f"{len(changed)} measured files changed after the programs had begun to run:"
            f" {', '.join(changed[:5])}{', …' if changed[5:] else ''}. Lines of the one and the other are mixed: run"
            " `make test-random-coverage` again, and change nothing meanwhile."
        )


@functools.cache
def functions(file: str) -> dict[str, range]:
    """The lines of each function and class of a file, by the names in which they stand; those of the file itself by
    "".
    """
    text = (SOURCE / file).read_text()
    found = {"": range(1, text.count("\n") + 2)}

    def visit(node: ast.AST, outer: str) -> None:
        for child in ast.iter_child_nodes(node):
            name = outer
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                name = f"{outer}.{child.name}".lstrip(".")
                found[name] = range(child.lineno, (child.end_lineno or child.lineno) + 1)
            visit(child, name)

    visit(ast.parse(text), "")
    return found


def function_of(file: str, line: int) -> str:
    """The innermost function around a line."""
    return min(
        (name for name, lines in functions(file).items() if line in lines), key=lambda name: len(functions(file)[name])
    )


def exists(named: Named) -> bool:
    """Whether there is such a place in the source."""
    if not (SOURCE / named.file).is_file() or named.function not in functions(named.file):
        return False
    lines = (SOURCE / named.file).read_text().splitlines()
    return any(named.text in lines[k - 1] for k in functions(named.file)[named.function] if k <= len(lines))


def places(file: str, found: dict) -> list[Place]:
    """The unreached places of a file; found: what coverage.py's report in JSON says of it."""
    lines = [line.strip() for line in (SOURCE / file).read_text().splitlines()]
    missing = sorted(found["missing_lines"])
    statements = sorted({*missing, *found["executed_lines"], *found["excluded_lines"]})
    order = {line: k for k, line in enumerate(statements)}
    runs: list[list[int]] = []
    for line in missing:
        if (
            runs
            and order[line] == order[runs[-1][-1]] + 1
            and function_of(file, line) == function_of(file, runs[-1][-1])
        ):
            runs[-1].append(line)
        else:
            runs.append([line])
    arcs = [(start, end) for start, end in found["missing_branches"] if start not in missing]
    out = []
    for run in runs:
        before = [start for start, end in arcs if end in run]
        texts = tuple(lines[k - 1] for k in (*before, *run))
        more = f" and {len(run) - 1} more" if len(run) > 1 else ""
        after = f" after `{lines[before[0] - 1]}`" if before else ""
        out.append(Place(file, function_of(file, run[0]), texts, run[0], f"`{lines[run[0] - 1]}`{more}{after}"))
    for start, end in arcs:
        if end not in missing:
            where = "the end" if end < 0 else f"`{lines[end - 1]}`"
            out.append(
                Place(
                    file,
                    function_of(file, start),
                    (lines[start - 1],),
                    start,
                    f"`{lines[start - 1]}` never goes to {where}",
                )
            )
    return sorted(out, key=lambda place: place.line)
