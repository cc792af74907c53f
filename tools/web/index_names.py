"""What an editor knows of Python's modules without running them: names, kinds, signatures, docstrings and places.

`Index` looks at objects. `standard_library` runs inside Pyodide, whose modules a page has; `make_index.py` runs beside
the language. What is imported here is of the standard library, and web/python/weft_signatures.py.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import json
import sys
import types
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from weft_signatures import SCALARS, annotation, signature_of

# Modules of the standard library that an editor does not offer: they act when imported, or a page has no use for them.
UNWANTED = {"antigravity", "this", "idlelib", "lib2to3", "tkinter", "turtle", "turtledemo", "ensurepip", "pydoc_data"}
SPECIAL = ("__call__", "__getitem__", "__enter__")


def docstring(value: Any) -> str:
    """The docstring of the object itself, without indentation: nothing for what only its class describes."""
    text = getattr(value, "__doc__", None)
    if not isinstance(text, str) or (not isinstance(value, type) and text == getattr(type(value), "__doc__", None)):
        return ""
    return inspect.cleandoc(text)


class Index:
    """Collects entries. An entry is a dictionary: kind, name, and of signature, doc, module, line, members, bases, type
    and value what it has. Modules map names to entries, by number, or to other modules, by name.

    Args:
        with_docs: keep docstrings.
        place: where an object is defined: (module, line), or None.
        has_members: whether the members of a class are kept.
    """

    def __init__(
        self,
        with_docs: bool,
        place: Callable[[Any, str], tuple[str, int] | None] = lambda value, name: None,
        has_members: Callable[[type], bool] = lambda cls: True,
    ):
        self.with_docs, self.place, self.has_members = with_docs, place, has_members
        self.entries: list[dict[str, Any]] = []
        self.modules: dict[str, dict[str, Any]] = {}
        self._known: dict[int, int] = {}
        self._kept: list[Any] = []  # so that their ids stay theirs

    def add_module(self, module: types.ModuleType, names: Iterable[str], public: Callable[[str], bool]) -> None:
        """Adds a module's names; `public` says which modules may be seen as names of others."""
        found: dict[str, int | str] = {}
        for name in sorted(names):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    value = getattr(module, name)
            except (AttributeError, ImportError):
                continue
            if not isinstance(value, types.ModuleType):
                found[name] = self.add(value, name)
            elif public(value.__name__):
                found[name] = value.__name__
        self.modules[module.__name__] = {"names": found}
        if self.with_docs and (text := docstring(module)):
            self.modules[module.__name__]["doc"] = text

    def add(self, value: Any, name: str) -> int:
        """The number of an object's entry, which is made unless it is there."""
        scalar = isinstance(value, SCALARS)
        if not scalar and id(value) in self._known:
            number = self._known[id(value)]
            if self.entries[number]["name"] == name:
                return number
        number = len(self.entries)
        entry = self.describe(value, name)
        self.entries.append(entry)
        if not scalar:
            self._known.setdefault(id(value), number)
            self._kept.append(value)
        if isinstance(value, type) and self.has_members(value):
            entry["members"] = self.members(value)
            if special := self.special(value):
                entry["special"] = special
            if isinstance(fields := getattr(value, "_fields", None), tuple):
                entry["fields"] = list(fields)
        return number

    def describe(self, value: Any, name: str) -> dict[str, Any]:
        entry: dict[str, Any] = {"kind": kind_of(value), "name": name}
        if callable(value) and (signature := signature_of(value)):
            entry["signature"] = signature
        if entry["kind"] == "value":
            entry["type"] = type(value).__name__
            if isinstance(value, SCALARS) and len(repr(value)) <= 60:
                entry["value"] = repr(value)
        if self.with_docs and (text := docstring(value)):
            entry["doc"] = text
        if (place := self.place(value, name)) is not None:
            entry["module"], entry["line"] = place
        return entry

    def members(self, cls: type) -> dict[str, int]:
        """The public members of a class and its bases, but for those that every object has."""
        found: dict[str, int] = {}
        for name in dir(cls):
            if name.startswith("_"):
                continue
            owner = next((base for base in cls.__mro__ if name in vars(base)), None)
            if owner is None or owner is object:
                continue
            value = vars(owner)[name]
            found[name] = self.add_member(value, name)
        for base in reversed(cls.__mro__):
            for name, kind in annotations_of(base).items():
                if not name.startswith("_") and name not in found:
                    self.entries.append({"kind": "property", "name": name, "returns": annotation(kind)})
                    found[name] = len(self.entries) - 1
        return found

    def special(self, cls: type) -> dict[str, str]:
        """The signatures that say what calls, indices and `with` make of an object."""
        found = {}
        for name in SPECIAL:
            method = getattr(cls, name, None)
            if isinstance(method, types.FunctionType) and " -> " in (signature := signature_of(method) or ""):
                found[name] = without_first(signature)
        return found

    def add_member(self, value: Any, name: str) -> int:
        if id(value) in self._known:
            return self._known[id(value)]
        bare = inspect.unwrap(getattr(value, "__func__", None) or getattr(value, "fget", None) or value)
        entry = self.describe(bare, name)
        if isinstance(value, property) or not callable(bare):
            entry["kind"] = "property"
            if signature := entry.pop("signature", None):
                _, arrow, returns = signature.rpartition(" -> ")
                if arrow:
                    entry["returns"] = returns
        else:
            entry["kind"] = "method"
            if not isinstance(value, staticmethod) and "signature" in entry:
                entry["signature"] = without_first(entry["signature"])
        self.entries.append(entry)
        self._known[id(value)] = len(self.entries) - 1
        self._kept.append(value)
        return len(self.entries) - 1


def annotations_of(cls: type) -> dict[str, Any]:
    """The annotations of the class itself; none where they name what is not there."""
    try:
        return inspect.get_annotations(cls)
    except Exception:
        return {}


def kind_of(value: Any) -> str:
    if isinstance(value, type):
        return "class"
    return "function" if callable(value) else "value"


def without_first(signature: str) -> str:
    """A method's signature without its object."""
    depth = 0
    for end, char in enumerate(signature):
        depth += (char in "([{") - (char in ")]}")
        if depth == 0 or (depth == 1 and char == ","):
            rest = signature[end + 1 :].lstrip() if char == "," else signature[end:]
            return ("(" + rest.removeprefix("/, ")).replace("(/)", "()", 1) if char == "," else "(" + rest
    return signature


def standard_library() -> str:
    """JSON of the builtins, and of the public names of each public module of the standard library."""
    index = Index(with_docs=False, has_members=lambda cls: cls.__module__ == "builtins")
    names = sorted(name for name in sys.stdlib_module_names if not name.startswith("_") and name not in UNWANTED)
    # Packages of the standard library whose own modules are what one imports.
    names += ["collections.abc", "concurrent.futures", "importlib.metadata", "importlib.resources", "importlib.util"]
    names += ["os.path", "unittest.mock", "urllib.parse", "urllib.request", "xml.etree.ElementTree", "http.client"]
    names += ["email.message", "json.decoder", "logging.handlers", "multiprocessing.pool", "wsgiref.simple_server"]
    known = set(names)
    for name in names:
        try:
            module = importlib.import_module(name)
        except Exception:  # what the page's Python lacks can't be offered
            known.discard(name)
            continue
        offered = getattr(module, "__all__", None) or [entry for entry in dir(module) if not entry.startswith("_")]
        index.add_module(module, offered, known.__contains__)
        if name != module.__name__:  # os.path
            index.modules[name] = index.modules.pop(module.__name__)
    found = {
        name: index.add(getattr(builtins, name), name)
        for name in dir(builtins)
        if name[0] != "_" or name == "__import__"
    }
    return json.dumps({"entries": index.entries, "modules": index.modules, "builtins": found})


def lines_of(source: str) -> dict[str, int]:
    """The line of each definition in a module's source, by qualified name: functions, classes, assigned names."""
    found: dict[str, int] = {}

    def visit(nodes: list[ast.stmt], prefix: str) -> None:
        for node in nodes:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    found.setdefault(prefix + node.name, node.lineno)
                    if isinstance(node, ast.ClassDef):
                        visit(node.body, f"{prefix}{node.name}.")
                case ast.Assign():
                    for target in node.targets:
                        for name in ast.walk(target):
                            if isinstance(name, ast.Name):
                                found.setdefault(prefix + name.id, node.lineno)
                case ast.AnnAssign(target=ast.Name(id=name)):
                    found.setdefault(prefix + name, node.lineno)
                case ast.If():
                    visit(node.body + node.orelse, prefix)

    visit(ast.parse(source).body, "")
    return found
