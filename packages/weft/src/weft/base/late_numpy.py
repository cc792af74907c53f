"""NumPy that comes after the language: a page begins without it, and fetches it when a program imports it.

The language goes on as it began, with host arrays of its own; NumPy's arrays and dtypes are converted where they come
in and go out.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Callable, Sequence, cast

if TYPE_CHECKING:  # importlib.abc imports much that nothing else here needs
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_callbacks: list[Callable[[Any], object]] = []


def when_numpy_comes(callback: Callable[[Any], object]) -> None:
    """Calls callback(numpy) once a program has imported NumPy, at once if one has already."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "ndarray"):
        callback(numpy)
        return
    if not _callbacks:
        sys.meta_path.insert(0, _Finder())
    _callbacks.append(callback)


class _Finder:
    """Finds nothing itself, but hears of NumPy's import."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "numpy":
            return None
        sys.meta_path.remove(self)
        try:
            spec = find_spec("numpy")
        finally:
            sys.meta_path.insert(0, self)
        if spec is not None and spec.loader is not None:
            spec.loader = cast("Loader", _Loader(spec.loader))
        return spec


class _Loader:
    """Loads as another does, and tells those who wait for NumPy."""

    def __init__(self, inner: Loader):
        self.inner = inner

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self.inner  # what asks the module for its loader finds the real one
        self.inner.exec_module(module)
        for callback in _callbacks:
            callback(module)
