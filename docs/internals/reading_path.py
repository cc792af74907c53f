"""The path through the code: what the tables of the chapters name, and how many lines that is.

`python docs/internals/reading_path.py` prints it, file by file. A row of a table is `| [file](address) | parts | what
for |`; the parts are names in backquotes, `Class.method` among them, or the word "all".
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MOST = 3000  # lines that a newcomer reads in an hour or so
ROW = re.compile(r"^\| \[[^\]]+\]\((?P<file>[^)]+)\) \| (?P<parts>[^|]+) \|", re.M)
CHAPTER = re.compile(r"^\d+\. \[[^\]]+\]\((?P<file>[\w-]+\.md)\)", re.M)


class Part(NamedTuple):
    """Lines `first` to `last` of a file, of which `name` is made; "all" is the whole file."""

    file: Path
    name: str
    first: int
    last: int

    @property
    def lines(self) -> int:
        return self.last - self.first + 1


def chapters() -> list[Path]:
    """The chapters in the order in which README.md lists them."""
    return [HERE / name for name in CHAPTER.findall((HERE / "README.md").read_text())]


def path_of(chapter: Path) -> list[Part]:
    """What a chapter says to read. Raises LookupError for a file or a name that does not exist."""
    found = []
    for row in ROW.finditer(chapter.read_text()):
        file = (chapter.parent / row["file"]).resolve()
        if not file.is_file():
            raise LookupError(f"{chapter.name} names {row['file']}, and there is no such file")
        text = file.read_text()
        places = {"all": (1, text.count("\n"))} | (_of_python(text) if file.suffix == ".py" else _of_typescript(text))
        for name in re.findall(r"`([^`]+)`", row["parts"]) or [row["parts"].strip()]:
            if name not in places:
                raise LookupError(f"{chapter.name} names {name} of {row['file']}, where there is no such name")
            found.append(Part(file, name, *places[name]))
    return found


def _of_python(text: str) -> dict[str, tuple[int, int]]:
    """The lines of each function, class, method and assignment."""
    places: dict[str, tuple[int, int]] = {}

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            lines = node.lineno, node.end_lineno or node.lineno
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                lines = min([node.lineno, *[d.lineno for d in node.decorator_list]]), lines[1]
                places[prefix + node.name] = lines
                if isinstance(node, ast.ClassDef):
                    visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    names = target.elts if isinstance(target, ast.Tuple) else [target]
                    places.update((prefix + ast.unparse(name), lines) for name in names)

    visit(ast.parse(text).body, "")
    return places


DECLARATION = re.compile(r"^(?:export )?(?:async )?(?:function|class|interface|const) (\w+)")
METHOD = re.compile(r"^  (?:(?:private|static|async|get) )*(\w+)\(.*\{$")


def _of_typescript(text: str) -> dict[str, tuple[int, int]]:
    """The lines of each function, class, interface, constant and method, as prettier lays them out."""
    places: dict[str, tuple[int, int]] = {}
    lines, inside = text.splitlines(), ""
    for k, line in enumerate(lines):
        declared, method = DECLARATION.match(line), METHOD.match(line)
        if not declared and not (method and inside):
            continue
        indent = "" if declared else "  "
        one = line.endswith(";") or line.endswith("}")
        last = k if one else next(i for i in range(k + 1, len(lines)) if re.match(indent + r"[})\]]", lines[i]))
        if declared:
            inside = declared[1] if "class" in line.split(declared[1])[0] else ""
            places[declared[1]] = k + 1, last + 1
        elif method:
            places[f"{inside}.{method[1]}"] = k + 1, last + 1
    return places


def main() -> int:
    total = 0
    for chapter in chapters():
        parts = path_of(chapter)
        print(f"{chapter.name}: {sum(p.lines for p in parts)} lines")
        for p in parts:
            print(f"    {str(p.file.relative_to(ROOT)):65} {p.name:35} {p.lines:5}")
        total += sum(p.lines for p in parts)
    print(f"{total} lines in all, of at most {MOST}")
    return int(total > MOST)


if __name__ == "__main__":
    sys.exit(main())
