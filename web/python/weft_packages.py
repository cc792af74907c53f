"""Packages of a program: those that its imports lack before it runs, and the reason if one can't be loaded.

The page (src/kernel/packages.ts) loads what the lock file names; what else is missing comes from the package index,
through micropip. weft stands for jax and jaxlib, which no index is asked for.
"""

import ast
import importlib.abc
import importlib.util
import io
import os
import re
import shlex
import sys
import zipfile
from collections.abc import Collection
from importlib.machinery import ModuleSpec
from json import dumps, loads  # imported by themselves, since a program may patch its json
from types import CodeType

from pyodide.code import find_imports

import weft_state

STANDS_FOR = frozenset({"jax", "jaxlib"})
# Distributions whose name differs from that of their module; the lock file knows those of Pyodide's distribution.
DISTRIBUTIONS = {
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "dotenv": "python-dotenv",
    "haiku": "dm-haiku",
    "tensorflow_probability": "tensorflow-probability",
    "umap": "umap-learn",
}
MOST_WHEEL_BYTES = 512 * 2**20  # unpacked, in Python's memory
FOLDER = "/tmp/wheels"

_IMPORT = re.compile(r"(?:^|[;:])[ \t]*(?:from[ \t]+(\w+)|import[ \t]+([^\n;#]+))", re.MULTILINE)
_PIP = re.compile(r"^([ \t]*)[%!][ \t]*(?:python3? -m )?(?:uv )?pip3?[ \t]+install\b(.*)$", re.MULTILINE)
_WHEEL = re.compile(
    r"[A-Za-z0-9_.]{1,100}-[A-Za-z0-9_.!+]{1,60}(?:-\d\w{0,20})?-[\w.]{1,60}-\w{1,60}-(?P<platform>[\w.]{1,120})\.whl"
)
# Options of pip that change nothing in a page.
_IDLE_OPTIONS = frozenset({"-q", "-qq", "--quiet", "-U", "--upgrade", "--user", "--no-cache-dir", "-y"})

_reasons: dict[str, str] = {}  # why a module can't be imported, by its name
_in_lock: frozenset[str] = frozenset()


class ReasonFinder(importlib.abc.MetaPathFinder):
    """Raises an error at an import that tells why the module could not be loaded. It comes after all other finders."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if fullname in _reasons and _is_import(sys._getframe(2).f_code):
            raise ModuleNotFoundError(_reasons[fullname], name=fullname)
        return None


def _is_import(code: CodeType) -> bool:
    """Whether a module is looked for to be imported: `importlib.util.find_spec` only asks whether it is there."""
    return code.co_name == "_find_and_load_unlocked"


def install(in_lock: Collection[str]) -> None:
    """Prepares for programs. `in_lock` are the names of the modules in packages of the lock file."""
    global _in_lock
    _in_lock = frozenset(in_lock)
    sys.meta_path.append(ReasonFinder())


def explain(name: str, reason: str) -> None:
    """Notes why the module `name` can't be imported; an empty reason forgets it."""
    if reason:
        _reasons[name] = f"No module named {name!r}: {reason}"
    else:
        _reasons.pop(name, None)


def examine(source: str) -> str:
    """What a program needs: names of modules that nothing finds, and requirements of its `%pip install` lines, in
    JSON.
    """
    try:
        python, requirements = without_pip(source)
    except SyntaxError:  # which the run raises too, where it can be shown
        python, requirements = "", []
    return dumps({"missing": _missing(python), "requirements": requirements})


def _missing(source: str) -> list[str]:
    """Top-level names of modules that the source imports, or a module of the reader that it imports, and that nothing
    finds.
    """
    lacking: dict[str, None] = {}
    seen: set[str] = set(STANDS_FOR)
    sources = [source]
    while sources:
        text = sources.pop()
        for name in _imported(text):
            if name in seen or name in sys.modules:
                continue
            seen.add(name)
            if name in sys.stdlib_module_names and name not in _in_lock:
                continue
            spec = _find(name)
            origin = spec.origin if spec is not None else None
            if spec is None and f"{name}.py" not in text:  # else the program writes the module itself
                lacking[name] = None
            elif origin is not None and origin.startswith(weft_state.FOLDER) and origin.endswith(".py"):
                with open(origin, errors="replace") as file:
                    sources.append(file.read())
    return list(lacking)


def _find(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None


def _imported(source: str) -> list[str]:
    """Top-level names of the modules that a source imports. Reading it costs time, so a search finds first whether it
    may import anything that is not there.
    """
    quick = {
        part.split()[0].split(".")[0]
        for match in _IMPORT.finditer(source)
        for part in (match[1] or match[2]).split(",")
        if part.strip()
    }
    if all(name in sys.modules or name in STANDS_FOR or name in sys.stdlib_module_names - _in_lock for name in quick):
        return []
    return find_imports(source)


def without_pip(source: str, filename: str = "program.py") -> tuple[str, list[str]]:
    """The source with its `%pip install` and `!pip install` lines as comments, and what these ask for.

    Raises:
        SyntaxError: such a line has an option that means nothing in a page.
    """
    if not _PIP.search(source):
        return source, []
    try:
        ast.parse(source)
    except SyntaxError:
        pass
    else:
        return source, []  # the lines stand in a string
    requirements: list[str] = []
    for match in _PIP.finditer(source):
        line = source.count("\n", 0, match.start()) + 1
        requirements += _requirements(match[2], (filename, line, 1, match[0]))
    return _PIP.sub(lambda match: f"{match[1]}pass  # {match[0].strip()}", source), requirements


def _requirements(text: str, place: tuple[str, int, int, str]) -> list[str]:
    try:
        words = shlex.split(text, comments=True)
    except ValueError as error:
        raise SyntaxError(f"%pip install: {error}", place) from None
    for word in words:
        if word.startswith("-") and word not in _IDLE_OPTIONS or "git+" in word:
            message = (
                f"%pip install: a page can't do {word!r}. "
                "Name packages of the index, or the address of a wheel of pure Python"
            )
            raise SyntaxError(message, place)
    named = [word for word in words if not word.startswith("-")]
    return [word for word in named if re.split(r"[^\w.-]", word)[0].lower() not in STANDS_FOR]


def distribution(name: str) -> str:
    """The package of the index that has a module."""
    return DISTRIBUTIONS.get(name, name)


def decline(names: str, requirements: str, source: str) -> None:
    """Notes that the reader does not want what modules and `%pip install` lines ask for (lists in JSON)."""
    for requirement in loads(requirements):
        print(f"%pip install {requirement}: not installed, as you chose. Run again to be asked", file=sys.stderr)
    for name in loads(names):
        explain(name, f"you chose not to install {distribution(name)!r} from {source}. Run again to be asked")


async def install_from_index(names: str, requirements: str, index: str) -> None:
    """Installs what modules and `%pip install` lines ask for (lists in JSON) from the package index.

    What can't be had is noted for the imports that need it; a line that fails says so on standard error, as pip does.
    """
    import micropip
    import weft.as_jax  # noqa: F401 - says to the installer that jax is there

    if index:
        micropip.set_index_urls([index])
    for requirement in loads(requirements):
        try:
            await micropip.install(requirement)
        except Exception as error:
            print(f"%pip install {requirement}: {_why(error)}", file=sys.stderr)
    for name in loads(names):
        if _find(name) is not None:
            continue
        package = distribution(name)
        try:
            await micropip.install(package)
            explain(name, "" if _find(name) else f"the package {package!r} of the index has no such module")
        except Exception as error:
            explain(name, _why(error))


def _why(error: Exception) -> str:
    text = str(error).strip().split("\n")[0]
    if "Can't fetch metadata" in text:
        wanted = re.search(r"metadata for '([^']+)'", text)
        return (
            f"the package index gave no answer for {wanted[1] if wanted else 'it'!r}: "
            "it has no such package, or there is no network. "
            "Check the name, run again when the network is there, or drop a wheel on the page"
        )
    if "pure Python 3 wheel" in text:
        return f"{text}. A page takes wheels of pure Python, and those built for Pyodide"
    return f"{text}. Run again when the network is there, or drop a wheel on the page"


def check_wheel(name: str, data: bytes) -> str:
    """The reason why a wheel can't be installed; an empty string if it can."""
    match = _WHEEL.fullmatch(name)
    if match is None:
        return "its name is not that of a wheel, such as package-1.0-py3-none-any.whl"
    platform = match["platform"]
    if platform != "any" and not platform.endswith("wasm32"):
        return f"it is made for {platform}; a page takes wheels for any platform (…-none-any.whl) and for Pyodide"
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
    except zipfile.BadZipFile:
        return "it is damaged: not a zip archive"
    if sum(entry.file_size for entry in entries) > MOST_WHEEL_BYTES:
        return f"unpacked it has more than {MOST_WHEEL_BYTES // 2**20} MiB"
    for entry in entries:
        if entry.filename.startswith(("/", "\\")) or ".." in re.split(r"[/\\]", entry.filename):
            return f"it has a file outside of its own folder: {entry.filename!r}"
    if not any(entry.filename.endswith(".dist-info/METADATA") for entry in entries):
        return "it has no .dist-info/METADATA"
    return ""


async def install_wheel(name: str, data: bytes) -> str:
    """Installs a wheel that the reader gave; returns why that failed, or an empty string."""
    import micropip
    import weft.as_jax  # noqa: F401

    problem = check_wheel(name, data)
    if problem:
        return problem
    os.makedirs(FOLDER, exist_ok=True)
    path = os.path.join(FOLDER, name)
    with open(path, "wb") as file:
        file.write(data)
    try:
        try:
            await micropip.install(f"emfs:{path}", reinstall=True)
        except ValueError:  # a requirement can't be loaded; importing it tells why
            await micropip.install(f"emfs:{path}", reinstall=True, deps=False)
    except Exception as error:
        return str(error).strip().split("\n")[0]
    finally:
        os.remove(path)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        tops = {re.split(r"[/.]", entry)[0] for entry in archive.namelist()}
    for module in list(sys.modules):
        if module.split(".")[0] in tops:
            del sys.modules[module]  # an older version
    for top in tops:
        explain(top, "")
    return ""
