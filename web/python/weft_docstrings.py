"""The language's docstrings, which a page fetches when a program asks for help.

In place of each docstring, the bytecode of a page has a mark with a number (tools/web/compile_python.py). Marks pass
through whatever is made of docstrings as a program is imported: templates, copies by functools.wraps. Once the texts
are fetched, they replace the marks in all objects there are, and in each module imported from then on.
"""

import builtins
import gc
import inspect
import json
import re
import sys
from _sitebuiltins import _Helper
from collections.abc import Callable
from importlib.machinery import ModuleSpec, SourcelessFileLoader
from types import CodeType, FunctionType
from typing import Any

MARK = "help() fetches this docstring [{}]"
_MARKS = re.compile(re.escape(MARK).replace(r"\{\}", r"(\d+)"))


class Docstrings:
    """The docstrings of the modules in one archive.

    Args:
        package: the package whose modules have marks.
        fetch: fetches the texts, a list in JSON; a mark's number is an index into it.
    """

    def __init__(self, package: str, fetch: Callable[[], str]):
        self.package = package
        self.fetch = fetch
        self.texts: list[str] | None = None

    def complete(self) -> None:
        """Fetches the texts unless they are here, and replaces the marks; raises what `fetch` raises."""
        if self.texts is not None:
            return
        self.texts = json.loads(self.fetch())
        sys.meta_path.insert(0, self)
        gc.unfreeze()  # the page has put aside what was there before the first program (weft_kernel.warm_up)
        for thing in gc.get_objects():
            if isinstance(text := _docstring(thing), str) and _MARKS.search(text):
                thing.__doc__ = self.filled(text)

    def filled(self, text: str) -> str:
        """The text with docstrings in place of marks."""
        texts = self.texts or []
        return _MARKS.sub(lambda mark: texts[int(mark[1])], text)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name.partition(".")[0] != self.package:
            return None
        found = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not self)
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and isinstance(spec.loader, SourcelessFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path, self)
        return spec


class _Loader(SourcelessFileLoader):
    """Loads bytecode with docstrings in place of its marks."""

    def __init__(self, name: str, path: str, docstrings: Docstrings):
        super().__init__(name, path)
        self.docstrings = docstrings

    def get_code(self, fullname: str) -> CodeType | None:
        code = super().get_code(fullname)
        return code and self.filled(code)

    def filled(self, code: CodeType) -> CodeType:
        def constant(value: Any) -> Any:
            if isinstance(value, CodeType):
                return self.filled(value)
            return self.docstrings.filled(value) if isinstance(value, str) else value

        return code.replace(co_consts=tuple(map(constant, code.co_consts)))


def _docstring(thing: Any) -> Any:
    """The docstring of the object itself; None if only its class has one."""
    kind = type(thing)  # isinstance would ask a proxy for its object's class
    if issubclass(kind, (FunctionType, property)):
        return thing.__doc__
    try:
        return (type if issubclass(kind, type) else object).__getattribute__(thing, "__dict__").get("__doc__")
    except AttributeError:
        return None


def _title(thing: Any) -> str:
    """A description of a value without its docstring: its name and signature, if it has them."""
    try:
        return f"{thing.__name__}{inspect.signature(thing)}"
    except (AttributeError, TypeError, ValueError):
        return repr(thing)


class Help(_Helper):
    """Python's `help`, which fetches docstrings first.

    Where they can't be fetched, it says so and shows the signature. `help.docstrings.complete()` only fetches them.
    """

    def __init__(self, docstrings: Docstrings):
        self.docstrings = docstrings

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        try:
            self.docstrings.complete()
        except Exception as error:
            print(f"Docstrings are fetched when help() is first called, and can't be now: {error}. Call it again later")
            for thing in args:
                print(_title(thing))
            return
        super().__call__(*args, **kwargs)


def install(package: str, fetch: Callable[[], str]) -> None:
    """From now on, `help` fetches docstrings; arguments as for Docstrings."""
    builtins.help = Help(Docstrings(package, fetch))
