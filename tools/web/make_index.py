"""Writes what the page's editor knows of weft: an index of all public names, and the sources that it can open.

    python tools/web/make_index.py INDEX.json SOURCES.json

The index has, for each public name, its kind, signature, docstring and place, and what the names of jax stand for. The
sources are one object from module to text. The page fetches both when its editor first needs them.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import json
import pathlib
import pkgutil
import re
import sys
import types
from collections.abc import Iterator
from typing import Any

import weft
from weft import compat
from weft.numpy import ufunc

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "web" / "python"))
from index_names import Index, docstring, lines_of, without_first  # noqa: E402
from weft_signatures import signature_of  # noqa: E402

SOURCE = pathlib.Path(weft.__file__).parent
# The folders of the package that are no modules of users: docs/decisions/028-rooms.md.
ROOMS = {"base", "core", "symbolic", "serialization", "primitives", "transforms", "higher_order", "effects"}
ROOMS |= {"decompositions", "runtime", "api", "compat"}
# What is a name of weft as it is, though it stands inside: weft.checkpoint_policies.
NAMESPACES = {"weft.higher_order.policies"}
# Programs in pages import it too; of it the names and signatures.
NUMPY = ("numpy", "numpy.linalg", "numpy.fft", "numpy.random")


def public_modules() -> dict[str, types.ModuleType]:
    """The modules that users import, by name: the root's, jax's, experimental ones, and what holds them."""
    of_jax = json.loads((ROOT / "tests" / "meta" / "names.json").read_text())
    names = {name.replace("jax", "weft", 1) for name in of_jax if name.startswith("jax")}
    names |= {f"weft.{info.name}" for info in pkgutil.iter_modules(weft.__path__) if info.name not in ROOMS}
    for package in ("weft.experimental", "weft.example_libraries"):
        inside = pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}.")
        names |= {info.name for info in inside if info.name.count(".") == 2 or _has_all(info.name)}
    names |= {name.rpartition(".")[0] for name in names if "." in name}
    return {name: importlib.import_module(name) for name in sorted(names) if "._" not in name}


def _has_all(name: str) -> bool:
    return hasattr(importlib.import_module(name), "__all__")


def public_names(module: types.ModuleType) -> list[str]:
    """What `dir` shows, but for names that a module imports for itself: without `as`, as mypy understands it."""
    if (listed := getattr(module, "__all__", None)) is not None:
        return list(listed)
    own: set[str] = set()
    for node in ast.parse(source_of(module.__name__)).body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            own |= {a.asname or a.name.partition(".")[0] for a in node.names if a.asname is None or a.asname != a.name}
    return [name for name in dir(module) if not name.startswith("_") and name not in own]


@functools.cache
def source_of(module: str) -> str:
    """The source of a module of the package."""
    path = SOURCE.joinpath(*module.split(".")[1:])
    return (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text()


@functools.cache
def lines(module: str) -> dict[str, int]:
    try:
        return lines_of(source_of(module))
    except FileNotFoundError:  # a module that the compiler of another package has
        return {}


def place(value: Any, name: str) -> tuple[str, int] | None:
    """The module and line where an object is defined, if it is one of weft's."""
    bare = inspect.unwrap(value) if callable(value) else value
    module = getattr(bare, "__module__", None) or ""
    if not isinstance(module, str) or not module.startswith("weft."):
        return None
    known = lines(module)
    for key in (getattr(bare, "__qualname__", None), getattr(bare, "__name__", None), name):
        if isinstance(key, str) and key in known:
            return module, known[key]
    code = getattr(bare, "__code__", None)
    return (module, code.co_firstlineno) if isinstance(code, types.CodeType) else None


class WeftIndex(Index):
    """An index that knows the language's own kinds of objects."""

    def __init__(self) -> None:
        super().__init__(with_docs=True, place=place)
        self.types: dict[str, int] = {}
        self.classes = _classes()
        self.types["Array"] = self.add(weft.Array, "Array")

    def describe(self, value: Any, name: str) -> dict[str, Any]:
        entry = super().describe(value, name)
        if isinstance(value, ufunc):
            function = inspect.unwrap(value._key[0])
            entry["signature"] = signature_of(function)
            if (where := place(function, name)) is not None:
                entry["module"], entry["line"] = where
        return entry

    def members(self, cls: type) -> dict[str, int]:
        found = super().members(cls)
        if cls is weft.Array:
            found |= self.members_of_arrays()
        return found

    def members_of_arrays(self) -> dict[str, int]:
        """From the stub that types them: arrays have classes of their backends, which get their methods at run time."""
        stub = SOURCE / "base" / "array_members.pyi"
        (cls,) = [node for node in ast.parse(stub.read_text()).body if isinstance(node, ast.ClassDef)]
        found: dict[str, int] = {}
        example = weft.numpy.zeros(1)
        for node in cls.body:
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
                continue
            method = inspect.unwrap(getattr(type(example), node.name, None) or weft)
            entry: dict[str, Any] = {"kind": "method", "name": node.name}
            returns = ast.unparse(node.returns) if node.returns else ""
            if any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list):
                entry |= {"kind": "property", "returns": returns}
            else:
                entry["signature"] = without_first(f"({_parameters(node.args)}) -> {returns}")
            if text := (docstring(method) if method is not weft else "") or ast.get_docstring(node):
                entry["doc"] = text
            if where := place(method, node.name):
                entry["module"], entry["line"] = where
            found[node.name] = len(self.entries)
            self.entries.append(entry)
        return found

    def add_types(self) -> None:
        """Adds the classes of what functions return and attributes hold, and of what those do."""
        done = 0
        while done < len(self.entries):
            entry = self.entries[done]
            done += 1
            returns = entry.get("returns") or entry.get("signature", "").rpartition(" -> ")[2]
            special = " ".join(s.rpartition(" -> ")[2] for s in entry.get("special", {}).values())
            for name in [*re.findall(r"\w+", f"{returns} {special}"), entry.get("type", "")]:
                if name[:1] != "_" and name not in self.types and name in self.classes:
                    self.types[name] = -1  # a class whose members return it
                    self.types[name] = self.add(self.classes[name], name)


def _parameters(arguments: ast.arguments) -> str:
    """The parameters with blanks around the `=` of those that have annotations, as everywhere else."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    parts = [_parameter(arg, value) for arg, value in zip(positional, defaults)]
    if arguments.vararg:
        parts.append("*" + _parameter(arguments.vararg, None))
    elif arguments.kwonlyargs:
        parts.append("*")
    parts += [_parameter(arg, value) for arg, value in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    if arguments.kwarg:
        parts.append("**" + _parameter(arguments.kwarg, None))
    return ", ".join(parts)


def _parameter(arg: ast.arg, value: ast.expr | None) -> str:
    text = arg.arg + (f": {ast.unparse(arg.annotation)}" if arg.annotation else "")
    return text if value is None else f"{text} = {ast.unparse(value)}"


def _classes() -> dict[str, type]:
    """The classes of the language by name; those of two places are left out."""
    found: dict[str, type | None] = {}
    for module in [m for name, m in sys.modules.items() if name.startswith("weft.")]:
        for name, value in list(vars(module).items()):
            if isinstance(value, type) and value.__module__.startswith("weft.") and value.__name__ == name:
                found[name] = value if found.get(name, value) is value else None
    return {name: cls for name, cls in found.items() if cls is not None}


def names_of_jax() -> Iterator[tuple[str, types.ModuleType]]:
    """The public modules of jax that have another name here."""
    for name, where in compat.MODULES.items():
        if not name.startswith("_") and "._" not in name:
            yield f"jax.{name}", importlib.import_module(f"weft.{where}")


def make_index() -> dict[str, Any]:
    modules = public_modules()
    index = WeftIndex()
    aliases = {name: module.__name__ for name, module in names_of_jax()}
    hidden = {name: importlib.import_module(name) for name in [*aliases.values(), *NAMESPACES]}
    for name, module in (modules | hidden).items():
        names = public_names(module)
        names += [inner.rpartition(".")[2] for inner in modules if inner.rpartition(".")[0] == name]
        index.add_module(module, set(names), (modules.keys() | NAMESPACES).__contains__)
    index.add_types()
    index.with_docs = False
    for name in NUMPY:
        module = importlib.import_module(name)
        index.add_module(module, getattr(module, "__all__", dir(module)), NUMPY.__contains__)
    aliases["jax"] = "weft"
    return {"entries": index.entries, "modules": index.modules, "types": index.types, "aliases": aliases}


def make_sources() -> dict[str, str]:
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = ["weft", *path.relative_to(SOURCE).with_suffix("").parts]
        found[".".join(parts).removesuffix(".__init__")] = path.read_text()
    return found


if __name__ == "__main__":
    for target, data in zip(sys.argv[1:], (make_index(), make_sources()), strict=True):
        pathlib.Path(target).write_text(json.dumps(data, separators=(",", ":"), ensure_ascii=False))
