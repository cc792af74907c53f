"""Puts the sources of the documentation together for Sphinx.   python tools/site/prepare.py build/docs/source [--short]

What is written by hand stands in docs/site. The rest is made of what the project has: a page for each public name and
each error, the gallery from examples/gallery, and the pages of docs/ and bench/results that readers look for.

The reference has more than a thousand pages. With --short it consists of FEW, which builds in seconds: for writers, and
for tests of how pages look and work.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import pathlib
import re
import shutil
import sys
import textwrap
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

from weft.base.errors import OwnRuntimeError

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULES = {
    "weft": "Transformations, devices, arrays",
    "weft.numpy": "NumPy's functions",
    "weft.numpy.linalg": "Linear algebra",
    "weft.numpy.fft": "Fourier transforms",
    "weft.lax": "Operations and control flow",
    "weft.lax.linalg": "Decompositions",
    "weft.random": "Random numbers",
    "weft.nn": "Neural networks",
    "weft.nn.initializers": "Initial weights",
    "weft.scipy.special": "Special functions",
    "weft.scipy.linalg": "Linear algebra, as SciPy has it",
    "weft.scipy.signal": "Signals",
    "weft.scipy.stats": "Statistics",
    "weft.scipy.optimize": "Minimisation",
    "weft.scipy.ndimage": "Images and grids",
    "weft.image": "Resizing images",
    "weft.tree": "Trees of arrays",
    "weft.tree_util": "Trees of arrays, the longer list",
    "weft.plot": "Figures and widgets",
    "weft.export": "Programs in files and pages",
    "weft.remote": "Accelerator hosts",
    "weft.sharding": "Arrays over several devices",
    "weft.debug": "Looking inside of programs",
    "weft.profiler": "Where time goes",
    "weft.ffi": "Compiled functions of one's own",
    "weft.dtypes": "Types of elements",
    "weft.stages": "Programs between tracing and running",
    "weft.memory": "Memories of devices",
    "weft.experimental.checkpoints": "Checkpoints of training runs",
    "weft.experimental.layout": "The order of axes in memory",
    "weft.experimental.checkify": "Checks inside of programs",
    "weft.experimental.pallas": "Kernels of one's own",
    "weft.experimental.sparse": "Sparse arrays",
    "weft.experimental.jet": "Taylor series",
    "weft.experimental.ode": "Differential equations",
}
# Pages that the project has anyway, and where the site has them.
PAGES = {
    "docs/accuracy.md": "about/accuracy.md",
    "docs/coverage.md": "about/coverage.md",
    "docs/ecosystem.md": "about/libraries.md",
    "docs/mutants.md": "about/mutants.md",
    "docs/random-coverage.md": "about/random-coverage.md",
    "docs/scaling.md": "about/scaling.md",
    "docs/backends.md": "internals/backends.md",
    "docs/loop-ir.md": "internals/loop-ir.md",
    "docs/artifact.md": "internals/artifact.md",
    "ARCHITECTURE.md": "internals/architecture.md",
}
FOLDERS = {"docs/internals": "internals", "docs/decisions": "decisions", "bench/results": "benchmarks"}
LINK = re.compile(r"\[([^\]\n]+)\]\(([^)\s]+)\)")


# The modules that --short leaves in the reference, and the names of them, with which pages by hand and tests begin.
FEW = {"weft": ("grad", "jit", "vmap", "checkpoint", "custom_jvp", "custom_vjp"), "weft.numpy": ("einsum", "where")}


class Entry(NamedTuple):
    name: str
    kind: str  # function, class or data
    summary: str


def entries(module: str) -> Iterator[Entry]:
    """The public names of a module that are not modules."""
    space = importlib.import_module(module)
    for name in sorted(dir(space), key=str.lower):
        if name.startswith("_"):
            continue
        value = getattr(space, name)
        if inspect.ismodule(value):
            continue
        if getattr(value, "__module__", "") == "builtins" and isinstance(value, (type, types.GenericAlias)):
            yield Entry(name, "data", "")  # such as dict, whose docstring is Python's
            continue
        kind = "class" if inspect.isclass(value) else "function" if callable(value) else "data"
        text = "" if kind == "data" else inspect.getdoc(value) or ""
        yield Entry(name, kind, " ".join(text.split("\n\n")[0].split()))


_described: set[int] = set()  # the identities of what has a page: another name of it is not indexed again


def page_of(module: str, entry: Entry) -> str:
    title = f"{module}.{entry.name}"
    # An orphan: the side bar, which stands on every page, lists modules alone.
    lines = [":orphan:", "", title, "=" * len(title), ""]
    lines += [
        f":doc:`{module} <../{module}>`",
        "",
        f".. currentmodule:: {module}",
        "",
        f".. auto{entry.kind}:: {entry.name}",
    ]
    if entry.kind == "class":
        lines.append("   :members:")
    value = getattr(importlib.import_module(module), entry.name)
    if id(value) in _described:
        lines.append("   :no-index:")
    _described.add(id(value))
    return "\n".join([*lines, ""])


def first_sentence(text: str) -> str:
    sentence = re.split(r"(?<=[.:])\s", text, maxsplit=1)[0].rstrip(":")
    return sentence.replace("|", "\\|")


def reference(target: pathlib.Path, whole: bool) -> None:
    """A page for each module, with a table of its names, and a page for each name."""
    target.mkdir()
    overview = ["# Reference", "", "Every public name, with its arguments and an example to run.", ""]
    overview += ["```{toctree}", ":titlesonly:", ""]
    for module, title in MODULES.items():
        if not whole and module not in FEW:
            continue
        found = [entry for entry in entries(module) if whole or entry.name in FEW[module]]
        folder = target / module
        folder.mkdir()
        rows = []
        for entry in found:
            if entry.kind == "data":
                rows.append(f"| `{entry.name}` | |")
                continue
            # Names that differ in case alone are one file on some systems.
            file = entry.name if entry.name.lower() == entry.name else f"{entry.name}-class"
            (folder / f"{file}.rst").write_text(page_of(module, entry))
            rows.append(f"| [{entry.name}]({module}/{file}.rst) | {first_sentence(entry.summary)} |")
        text = [f"# {module}", "", f"{title}.", "", "| name | |", "|---|---|", *rows, ""]
        (target / f"{module}.md").write_text("\n".join(text))
        overview.append(module)
    (target / "index.md").write_text("\n".join([*overview, "```", ""]))


# The modules whose exception classes have a page.
ERRORS = (
    "weft.errors",
    "weft.serialization.portable",
    "weft.serialization.binary",
    "weft.experimental.checkify",
    "weft.experimental.checkpoints",
    "weft.experimental.multihost_utils",
    "weft.experimental.sparse.base",
    "weft_remote.errors",
    "weft_wasm.contents",
    "weft_wasm.lower.types",
    "weft_wasm.runtimes.interface",
    "weft_wasm.runtimes.memory",
    "weft_wasm.runtimes.wasmtime_device",
    "weft_wasm.runtimes.wgpu_device",
)


def error_classes() -> Iterator[tuple[str, str]]:
    """Module and name of each error that users may see; `tests/site/test_errors.py` finds what is missing."""
    for module in ERRORS:
        for name in sorted(dir(importlib.import_module(module))):
            value = getattr(importlib.import_module(module), name)
            if name.startswith("_") or not (inspect.isclass(value) and issubclass(value, Exception)):
                continue
            if issubclass(value, Warning):
                continue
            if module == "weft.errors" or value.__module__ == module:
                yield module, name


def described_here(error: type) -> str:
    """The docstring of a class as a page has it: what stands below "Example:" is a paragraph like others."""
    text, _, example = inspect.cleandoc(error.__doc__ or "").partition("\nExample:\n")
    return text.replace("`", "``") + "\n" + textwrap.dedent(example)


def errors(target: pathlib.Path) -> None:
    """A page for each error class: what causes it, an example, and what to do instead. `errors.json` at the root of the
    documentation lists them by the full names of classes, for the links of messages in the page.
    """
    target.mkdir()
    pages: dict[str, str] = {}
    text = [
        "# Errors",
        "",
        "What each error means, what causes it, and what to do. Messages in the page link here.",
        "",
    ]
    text += ["```{toctree}", ":titlesonly:", ""]
    for module, name in sorted(error_classes(), key=lambda found: (found[1].lower(), ERRORS.index(found[0]))):
        page = [name, "=" * len(name), "", f".. currentmodule:: {module}", ""]
        if (module, name) == (
            "weft.errors",
            "JaxRuntimeError",
        ):  # whose class and text are the compiled runtime's, where there is one
            page += [f".. exception:: {name}", "", textwrap.indent(described_here(OwnRuntimeError), "   "), ""]
        else:
            page += [f".. autoexception:: {name}()", "   :show-inheritance:", ""]
            _described.add(id(getattr(importlib.import_module(module), name)))
        # classes of the core have the short addresses
        file = f"{module.rpartition('.')[2]}.{name}" if (target / f"{name}.rst").exists() else name
        (target / f"{file}.rst").write_text("\n".join(page))
        text.append(file)
        pages[f"{module}.{name}"] = f"errors/{file}.html"
    (target.parent / "extra").mkdir(exist_ok=True)
    (target.parent / "extra" / "errors.json").write_text(json.dumps(pages))
    (target / "index.md").write_text("\n".join([*text, "```", ""]))


def gallery(target: pathlib.Path) -> None:
    """Cards that open the documents of the gallery in the playground."""
    source = ROOT / "examples" / "gallery"
    target.mkdir()
    pictures = target.parent / "extra" / "gallery"  # Sphinx does not look for pictures in HTML
    pictures.mkdir(parents=True)
    listed: list[dict[str, Any]] = json.loads((source / "gallery.json").read_text())
    text = [
        "# Gallery",
        "",
        "Programs to read, run and change. Each opens in the playground as a copy of your own.",
        "",
    ]
    text += ['<ul class="gallery">']
    for item in listed:
        picture = ""
        if thumbnail := item.get("thumbnail"):
            shutil.copy(source / thumbnail, pictures)
            picture = f'<img src="{pathlib.Path(thumbnail).name}" alt="" loading="lazy" width="320" height="200">'
        text.append(
            f'<li><a href="../../#example={item["file"].removesuffix(".py")}">{picture}<strong>{item["title"]}</strong>'
            f"<span>{item['description']}</span></a></li>"
        )
    (target / "index.md").write_text("\n".join([*text, "</ul>", ""]))


def copied(target: pathlib.Path) -> None:
    """The project's own pages, with their links to each other; links to what the site does not have become text."""
    places = {pathlib.PurePosixPath(a): pathlib.PurePosixPath(b) for a, b in PAGES.items()}
    for folder, place in FOLDERS.items():
        for path in sorted((ROOT / folder).glob("*.md")):
            name = "index.md" if path.name == "README.md" else path.name
            places[pathlib.PurePosixPath(folder, path.name)] = pathlib.PurePosixPath(place, name)
    for source, place in places.items():
        file = target / place
        file.parent.mkdir(exist_ok=True)

        def link(match: re.Match[str], source: pathlib.PurePosixPath = source, place: Any = place) -> str:
            text, address = match.groups()
            if "://" in address or address.startswith("#"):
                return match[0]
            path, _, anchor = address.partition("#")
            found = pathlib.PurePosixPath(os.path.normpath(source.parent / path))
            if found not in places:
                return text if text.startswith("`") else f"`{text}`"
            return f"[{text}]({os.path.relpath(places[found], place.parent)}{'#' + anchor if anchor else ''})"

        text = LINK.sub(link, (ROOT / source).read_text())
        if place.name == "index.md":
            text += "\n\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n"
        file.write_text(text)
    benchmarks = sorted(p.stem for p in (target / "benchmarks").glob("*.md"))
    lines = ["# Benchmarks", "", "What was measured, with the command that prints each figure.", "", "```{toctree}", ""]
    (target / "benchmarks" / "index.md").write_text("\n".join([*lines, *benchmarks, "```", ""]))


def main(target: pathlib.Path, whole: bool) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(ROOT / "docs" / "site", target)
    shutil.copy(ROOT / "web" / "favicon.svg", target / "_static")
    errors(target / "errors")  # before the reference: what has a page here is not indexed there
    reference(target / "reference", whole)
    gallery(target / "gallery")
    copied(target)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), "--short" not in sys.argv)
