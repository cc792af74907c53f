"""How the packages are built: long files and functions, imports inside functions, modules and the arrows between them.

    python bench/structure.py COMMIT...

Prints a row of figures for each commit. Docstrings don't count as lines of a function; an import for the type checker
alone counts as an arrow, and so does one inside a function.
"""

import ast
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
TITLES = ("commit", "files over 500 lines", "longest function", "functions over 40 lines", "imports inside functions")
MORE = ("modules", "arrows", "circles")


def modules_of(folder: pathlib.Path) -> dict[str, pathlib.Path]:
    found = {}
    for path in sorted(folder.rglob("*.py")):
        if "src" in path.relative_to(folder).parts:
            parts = path.with_suffix("").parts
            parts = parts[parts.index("src", len(folder.parts)) + 1 :]
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = function.body[0]
    has_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    text = (first.end_lineno or 0) - first.lineno + 1 if has_text else 0
    return (function.end_lineno or 0) - function.lineno + 1 - text


def imported(module: str, path: pathlib.Path, tree: ast.Module, known: dict[str, pathlib.Path]) -> set[str]:
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            base = [*package[: len(package) - node.level + 1]] if node.level else []
            home = ".".join([*base, *([node.module] if node.module else [])])
            names |= {f"{home}.{a.name}" if f"{home}.{a.name}" in known else home for a in node.names}
        elif isinstance(node, ast.Import):
            names |= {a.name for a in node.names}
    return {n for n in names if n in known and n != module}


def circles(graph: dict[str, set[str]]) -> list[int]:
    """The sizes of the sets of modules that reach each other, by Tarjan's algorithm."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(v: str) -> None:
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in graph[v]:
            if w not in index:
                visit(w)
            if w in stack:
                low[v] = min(low[v], low[w])
        if low[v] == index[v]:
            at = stack.index(v)
            if len(stack) - at > 1:
                found.append(len(stack) - at)
            del stack[at:]

    for v in graph:
        if v not in index:
            visit(v)
    return sorted(found, reverse=True)


def measure(commit: str) -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "archive", commit, "packages", "native", "wasm/src"], cwd=ROOT, capture_output=True, check=True
        )
        subprocess.run(["tar", "x", "-C", folder], input=archive.stdout, check=True)
        known = modules_of(pathlib.Path(folder))
        texts = {m: p.read_text() for m, p in known.items()}
        trees = {m: ast.parse(text) for m, text in texts.items()}
        functions = [
            n for t in trees.values() for n in ast.walk(t) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))
        ]
        inside = {id(n) for f in functions for n in ast.walk(f) if isinstance(n, (ast.Import, ast.ImportFrom))}
        graph = {m: imported(m, p, trees[m], known) for m, p in known.items()}
        sizes = [lines_of(f) for f in functions]
        return [
            commit,
            sum(text.count("\n") > 500 for text in texts.values()),
            max(sizes),
            sum(n > 40 for n in sizes),
            len(inside),
            len(known),
            sum(map(len, graph.values())),
            circles(graph),
        ]


if __name__ == "__main__":
    sys.setrecursionlimit(10_000)
    print(" | ".join([*TITLES, *MORE]))
    for name in sys.argv[1:]:
        print(" | ".join(map(str, measure(name))))
