"""Names of a module that load when they are first used."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, Mapping


class LazyNames:
    """Names that a module imports from other modules of its package when they are first used.

    A module makes an instance from its `globals()`, where names are stored once they are found, and uses its `find` as
    `__getattr__` and its `names` as `__dir__`. The tables are literals: `tests/meta/test_imports.py` reads them, and
    they count as imports.

    Args:
        module: the `globals()` of the module.
        names: module of the package -> the names that it has, separated by blanks.
        modules: the modules of the package that are names themselves, separated by blanks. Those that are not
            installed are left out.

    Example:
        >>> from weft.base.lazy import LazyNames
        >>> lazy = LazyNames({"__name__": "weft", "__package__": "weft"}, {"api.refs": "Ref new_ref"}, "numpy")
        >>> lazy.find("numpy").__name__, lazy.names()
        ('weft.numpy', ['Ref', 'new_ref', 'numpy'])
    """

    __slots__ = ("_module", "_places", "_modules")

    def __init__(self, module: dict[str, Any], names: Mapping[str, str], modules: str = ""):
        self._module, self._modules = module, modules.split()
        self._places = {name: place for place, group in names.items() for name in group.split()}

    def find(self, name: str) -> Any:
        """The value of a name. Raises AttributeError for an unknown name."""
        package = self._module["__package__"]
        place = self._places.get(name)
        if place is not None:
            value = self._module[name] = getattr(import_module(f"{package}.{place}"), name)
            return value
        if name in self._modules and self._is_installed(name):
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {self._module['__name__']!r} has no attribute {name!r}")

    def names(self) -> list[str]:
        """All names that `find` knows."""
        return [*self._places, *filter(self._is_installed, self._modules)]

    def _is_installed(self, name: str) -> bool:
        return find_spec(f"{self._module['__package__']}.{name}") is not None
