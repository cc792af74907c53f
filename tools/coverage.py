"""Writes docs/coverage.md: for each public name of jax, whether weft has it and what tests it. `make coverage`

    python tools/coverage.py            write the page
    python tools/coverage.py grad scan  say which rows and test files use these functions

What is tested is read off the tests themselves. The operation catalogue (tests/ops/catalogue.py) is traced row by row,
and a row counts for each public function that its code calls; `test_catalogue.py` says what is done with a row.
Anything else counts as tested when a test file, or an example in a docstring, names it.
"""

from __future__ import annotations

import argparse
import ast
import collections
import doctest
import importlib
import inspect
import json
import pathlib
import re
import sys
from typing import Any, Iterable, Iterator, NamedTuple

import weft
from weft import compat
from weft.base import dtypes
from weft.base.avals import shaped
from weft.transforms.stage import stage

ROOT = pathlib.Path(__file__).resolve().parents[1]
NAMES, PAGE = ROOT / "tests" / "meta" / "names.json", ROOT / "docs" / "coverage.md"
# The modules of the page: those of names.json but for small ones.
MODULES = [
    m
    for m in json.loads(NAMES.read_text())
    if m in ("jax", "jax.debug", "jax.export", "jax.experimental.checkify", "jax.image", "jax.ops")
    or m.startswith(("jax.lax", "jax.tree", "jax.numpy", "jax.random", "jax.nn", "jax.scipy"))
]
OPERATIONS = ("jax.lax", "jax.lax.linalg")  # their functions have rows in the catalogue
TESTED = ("value", "jit", "jvp", "vjp", "vmap")
BACKENDS = {"xla": "x", "wasm": "w", "webgpu": "g", "reference": "r"}

sys.path[:0] = [str(ROOT / "tests" / "ops"), str(ROOT / "tests")]
import platforms  # noqa: E402


class Entry(NamedTuple):
    """A public name of jax, and its state in weft."""

    module: str
    name: str
    kind: str  # module, class, function, value
    present: bool
    parameters: tuple | None  # (weft's, jax's) where they differ
    tested: dict  # "value", "jit", … -> the backends on which the catalogue tests it
    rows: list  # ids of its rows
    files: list  # test files that name it

    @property
    def complete(self) -> bool:
        return self.present and self.parameters is None


def find(dotted: str) -> Any:
    """The object of weft under a dotted name of jax or weft; None where there is none."""
    parts = dotted.split(".")
    found: Any = weft
    for i, part in enumerate(parts[1:], 2):
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(".".join(["weft", *parts[1:i]]))
            except ImportError:
                return behind_jax(".".join(parts[1:]))
    return found


def behind_jax(name: str) -> Any:
    """A module that only `weft.as_jax` provides, under jax's name."""
    if name in compat.MODULES:
        return importlib.import_module("weft." + compat.MODULES[name])
    return (
        compat.Named(f"jax.{name}", compat.NAMES.get(name, ""), None)
        if name in compat.NAMES or name in compat.PACKAGES
        else None
    )


def parameters(value: Any) -> list[str] | None:
    """Names of the public parameters, with their stars."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    try:
        return [
            stars.get(p.kind, "") + p.name
            for p in inspect.signature(value).parameters.values()
            if not p.name.startswith("_")
        ]
    except (TypeError, ValueError):
        return None


def takes(have: list[str], want: list[str]) -> bool:
    """Whether parameters `have` contain `want` in the same order; more are no harm to calls written for jax."""
    rest = iter(have)
    return all(name in rest for name in want)


def innermost(value: Any) -> Any:
    """The function under jit and other wrappers."""
    while True:
        inner = getattr(value, "__wrapped__", None) or getattr(value, "fun", None)
        if not callable(inner) or inner is value:
            return value
        value = inner


# the catalogue -------------------------------------------------------------------------------------------------------


def _called_by_a_row(frame) -> bool:
    back = frame.f_back
    # the wrapper that hides frames of functions
    while back is not None and back.f_code.co_filename.endswith("source_info.py"):
        back = back.f_back
    return back is not None and back.f_code.co_filename.startswith(str(ROOT / "tests" / "ops"))


def functions_called(fun, codes: dict) -> set:
    """The public functions that `fun()` calls, not counting what those call in turn unless that is the row's own code;
    `codes` maps their code objects to names.
    """
    called: set = set()
    active: list = []

    def watch(frame, event, _):
        if frame.f_code in codes:
            if event == "call":
                if not active or _called_by_a_row(frame):
                    called.add(frame.f_code)
                active.append(frame)
            elif event == "return" and active and active[-1] is frame:
                active.pop()

    sys.setprofile(watch)
    try:
        fun()
    finally:
        sys.setprofile(None)
    return called


def backends() -> list[str]:
    """Where test_catalogue.py runs each row: on all platforms under test."""
    return [{"cpu": "xla"}.get(p, p) for p in platforms.ALL]


def catalogue(functions: dict) -> dict:
    """name -> (row, backends) of the rows whose code calls it; `functions` maps dotted names to objects."""
    from catalogue import ROWS

    made = collections.defaultdict(dict)
    for name, value in functions.items():
        code = getattr(innermost(value), "__code__", None)
        if code is not None:
            made[code][name] = id(innermost(value))
    # Functions that a factory makes share one code object, which doesn't tell which of them was called.
    codes = {code: list(names) for code, names in made.items() if len(set(names.values())) == 1}
    found = collections.defaultdict(list)
    for row in ROWS:
        avals = [shaped(tuple(a.shape), dtypes.dtype(a.dtype)) for a in row.sample()]
        for code in functions_called(lambda: stage(lambda *xs: [row.fun(*xs)], avals), codes):
            for name in codes[code]:
                found[name].append((row, backends()))
    return found


def tested(rows: Iterable) -> dict:
    """What test_catalogue.py does with rows: each is run eagerly, compiled and batched, those with `grad` are
    differentiated.
    """
    result = {what: set() for what in TESTED}
    for row, backends in rows:
        for what in TESTED:
            if row.grad or what not in ("jvp", "vjp"):
                result[what].update(backends)
    return result


# test files ----------------------------------------------------------------------------------------------------------


_ALIASES = {
    "jnp": "weft.numpy",
    "lax": "weft.lax",
    "jsp": "weft.scipy",
    "stats": "weft.scipy.stats",
    "special": "weft.scipy.special",
    "nn": "weft.nn",
    "random": "weft.random",
    "initializers": "weft.nn.initializers",
    "linalg": "weft.scipy.linalg",
    "fft": "weft.numpy.fft",
}
_DOTTED = re.compile(rf"(?<![\w.])(weft|jax|{'|'.join(_ALIASES)})((?:\.[a-zA-Z_]\w*)+)")


def names_used(source: str) -> set[str]:
    """Dotted names of weft (or jax) that a program mentions."""
    tree = ast.parse(source)
    home: dict[str, str] = {"weft": "weft"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                home[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                home[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    used = set()
    for node in ast.walk(tree):
        parts, inner = [], node
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name) and inner.id in home:
            used.add(".".join([home[inner.id], *reversed(parts)]))
    # the expressions that frozen comparisons evaluate, and tables of names: WORDS_ARE says to which module a file's
    # words belong
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    owner = re.search(r'^WORDS_ARE = "([\w.]+)"', source, re.MULTILINE)
    for text in texts:
        used |= {_ALIASES.get(first, first) + rest for first, rest in _DOTTED.findall(text)}
        if owner is not None:
            used |= {f"{owner.group(1)}.{word}" for word in re.findall(r"[A-Za-z_]\w*", text)}
    return {name for name in used if name.split(".")[0] in ("weft", "jax")}


def programs() -> Iterator[tuple[str, str]]:
    """(file, source) of each test file, and of the examples in each docstring."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if not path.name.startswith("make_"):
            yield str(path.relative_to(ROOT)), path.read_text()
    for path in sorted((ROOT / "tests").rglob("*expected.json")):
        yield str(path.relative_to(ROOT)), repr(path.read_text())
    parser = doctest.DocTestParser()
    for path in sorted((ROOT / "packages" / "weft" / "src").rglob("*.py")):
        docs = [
            ast.get_docstring(n)
            for n in ast.walk(ast.parse(path.read_text()))
            if isinstance(n, (ast.FunctionDef, ast.ClassDef, ast.Module))
        ]
        examples = [e.source for d in docs if d for e in parser.get_examples(d)]
        if examples:
            yield (
                str(path.relative_to(ROOT)),
                "import weft, weft.numpy as jnp\nfrom weft import lax\n" + "".join(examples),
            )


def files_naming() -> dict:
    """id of an object -> the files that name it; an object with two public names counts under both."""
    found = collections.defaultdict(list)
    for file, source in programs():
        for value in {id(v): v for v in map(find, names_used(source)) if v is not None}.values():
            found[id(value)].append(file)
    return found


# the page ------------------------------------------------------------------------------------------------------------


def entries(modules: Iterable[str] = MODULES) -> list[Entry]:
    """Every public name of the modules."""
    frozen = json.loads(NAMES.read_text())
    values = {f"{m}.{n}": find(f"{m}.{n}") for m in modules for n in frozen[m]}
    rows = catalogue({name: v for name, v in values.items() if v is not None})
    files = files_naming()
    made = []
    for module in modules:
        for name, (kind, wanted, *_) in frozen[module].items():
            value, dotted = values[f"{module}.{name}"], f"{module}.{name}"
            have = parameters(value) if value is not None and wanted is not None and kind == "function" else None
            want = [p.split("=")[0] for p in wanted or () if p not in ("/", "*")]
            present = value is not None or name == "newaxis"  # which is None
            made.append(
                Entry(
                    module,
                    name,
                    kind,
                    present,
                    None if have is None or takes(have, want) else (have, want),
                    tested(rows[dotted]),
                    [row.id for row, _ in rows[dotted]],
                    files[id(value)] if value is not None else [],
                )
            )
    return made


def cell(entry: Entry, what: str) -> str:
    return "".join(letter for name, letter in BACKENDS.items() if name in entry.tested[what]) or "·"


def section(module: str, found: list[Entry]) -> list[str]:
    present, complete = sum(e.present for e in found), sum(e.complete for e in found)
    lines = [f"## {module}", "", f"{present} of {len(found)} names present, {complete} with jax's parameters.", ""]
    absent = [e.name for e in found if not e.present]
    if absent:
        lines += ["Absent: " + ", ".join(f"`{n}`" for n in absent) + ".", ""]
    others = [f"`{e.name}`" for e in found if e.present and e.kind != "function"]
    if others:
        lines += [f"Classes, values and modules: {', '.join(others)}.", ""]
    functions = [e for e in found if e.present and e.kind == "function"]
    columns = TESTED if any(e.rows for e in functions) else ()
    if functions:
        lines += [f"| {' | '.join(('function', 'parameters', *columns, 'tests'))} |", "|---" * (len(columns) + 3) + "|"]
        for e in functions:
            same = (
                "✓"
                if e.parameters is None
                else f"{', '.join(e.parameters[0])} (jax: {', '.join(e.parameters[1])})".replace("*", "\\*")
            )
            tested = "✓" if e.files or e.rows else "·"
            lines.append(f"| {' | '.join((f'`{e.name}`', same, *[cell(e, what) for what in columns], tested))} |")
        lines.append("")
    return lines


def page(found: list[Entry]) -> str:
    """The text of docs/coverage.md."""
    version = json.loads(NAMES.read_text())["version"]
    lines = [
        "# What weft has of jax",
        "",
        (
            f"`make coverage` writes this page from the public names of jax {version} (`tests/meta/names.json`) and"
            " from the tests. In the columns of the operation catalogue,"
        ),
        (
            "each letter is a backend:"
            f" {', '.join(f'{letter} {name}' for name, letter in BACKENDS.items())}. `tests` says whether a row, a test"
            " file or an example uses the function."
        ),
        "",
        "| module | names | present | with jax's parameters | functions | tested |",
        "|---|---|---|---|---|---|",
    ]
    groups = {m: [e for e in found if e.module == m] for m in dict.fromkeys(e.module for e in found)}
    for module, group in {**groups, "all": found}.items():
        functions = [e for e in group if e.kind == "function"]
        lines.append(
            f"| {module} | {len(group)} | {sum(e.present for e in group)} | {sum(e.complete for e in group)} |"
            f" {len(functions)} | {sum(bool(e.files or e.rows) for e in functions)} |"
        )
    lines.append("")
    for module, group in groups.items():
        lines += section(module, group)
    return "\n".join(lines)


def explain(found: list[Entry], names: list[str]) -> None:
    for e in found:
        if e.name in names:
            differ = "" if e.parameters is None else f", parameters {e.parameters[0]} for {e.parameters[1]}"
            print(f"{e.module}.{e.name}: {'present' if e.present else 'absent'}{differ}")
            print("  rows: ", *e.rows or ["none"], sep="\n    ")
            print("  files:", *e.files or ["none"], sep="\n    ")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="functions of jax")
    asked = parser.parse_args().names
    all_entries = entries()
    if asked:
        explain(all_entries, asked)
    else:
        PAGE.write_text(page(all_entries))
        print(f"{PAGE.relative_to(ROOT)}: {sum(e.complete for e in all_entries)} of {len(all_entries)} names")
