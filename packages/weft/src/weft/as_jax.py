"""`import weft.as_jax` makes `import jax` resolve to weft in this process.

Opt-in: nothing else in weft imports this module. If real jax has been imported already, ImportError says so; the two can't share a
process. `jax.x.y` is the very module `weft.x.y`, so classes and functions are the same objects under both names.

Example:
    >>> import weft.as_jax
    >>> import jax, jax.numpy as jnp
    >>> jax.grad(jnp.sin)(0.0)
    Array(1., dtype=float32, weak_type=True)
"""
from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType

import weft

# The release whose names and semantics weft has; libraries compare with it.
VERSION = "0.10.2"


class _Facade(ModuleType):
    """The module `jax`: the names of `weft`, under jax's version."""

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return getattr(weft, name)
        except AttributeError:
            raise AttributeError(f"module 'jax' has no attribute {name!r}: weft, which stands for jax here, does not have it.") from None

    def __dir__(self):
        return sorted({*dir(weft), *self.__dict__})


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `jax.x.y` as `weft.x.y`."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname.startswith("jax.") and importlib.util.find_spec("weft." + fullname[4:]) is not None:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec):
        module = importlib.import_module("weft." + spec.name[4:])
        self.own_spec = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = self.own_spec      # the import system has put ours in its place


def install() -> None:
    """Puts weft in jax's place; called by importing this module."""
    present = sys.modules.get("jax")
    if isinstance(present, _Facade):
        return
    if present is not None and getattr(present, "__file__", None):
        raise ImportError("real jax is imported in this process already, and weft can't stand for it beside it. "
                          "Import weft.as_jax before anything that imports jax, or run in a new process.")
    facade = _Facade("jax", "weft under the name of jax")
    facade.__path__ = []
    facade.__version__ = VERSION
    facade.__version_info__ = tuple(int(part) for part in VERSION.split("."))
    for name in [name for name in sys.modules if name.startswith("jax.")]:
        del sys.modules[name]
    sys.modules["jax"] = facade
    sys.meta_path.insert(0, _Finder())


install()
