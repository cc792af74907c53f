"""`import weft.as_jax` makes `import jax` resolve to weft in this process.

Opt-in: nothing else in weft imports this module. If real jax has been imported already, ImportError says so; the two
can't share a process. `jax.x.y` is the very module `weft.x.y`, so classes and functions are the same objects under both
names; what libraries take from jax beyond its public modules stands in `weft.compat`.

From then on `importlib.metadata.version("jax")` is the release whose names weft has, so that micropip installs
libraries that depend on jax in a page. On a desktop pip runs in a process of its own and wants files: `python -m
weft.as_jax install` writes them into the environment.

Example:
    >>> import weft.as_jax
    >>> import jax, jax.numpy as jnp
    >>> jax.grad(jnp.sin)(0.0)
    Array(1., dtype=float32, weak_type=True)
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Sequence, cast

import weft

from .base.annotations import override
from .compat import MODULES, NAMES, PACKAGES, Named

if TYPE_CHECKING:
    from importlib.abc import Loader

# The release whose names and semantics weft has; libraries compare with it.
VERSION = "0.10.2"


class _Facade(ModuleType):
    """The module `jax`: the names of `weft`, under jax's version."""

    @override
    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        if name in PACKAGES or name in MODULES or name in NAMES:
            return importlib.import_module(f"jax.{name}")
        try:
            return getattr(weft, name)
        except AttributeError:
            raise AttributeError(
                f"module 'jax' has no attribute {name!r}: weft, which replaces jax here, does not have it."
            ) from None

    @override
    def __dir__(self):
        return sorted({*dir(weft), *self.__dict__, "core", "extend", "interpreters", "api_util"})


def _exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ModuleNotFoundError, ValueError):  # a module that is no package, or has no spec
        return False


def _place(name: str) -> str | None:
    """Weft's module for the module `name` of jax, if it has one."""
    if name in MODULES:
        return "weft." + MODULES[name]
    own = "weft." + name.removeprefix("_src.")
    return own if _exists(own) else None


class _Finder:  # not of importlib.abc, which takes 7 ms to load
    """Finds `jax.x.y`, and the distributions that stand for jax's."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        name = fullname.removeprefix("jax.")
        if name != fullname and (name in PACKAGES or name in NAMES or _place(name) is not None):
            return importlib.machinery.ModuleSpec(fullname, cast("Loader", self), is_package=True)
        return None

    def create_module(self, spec):
        name = spec.name.removeprefix("jax.")
        place = _place(name)
        if name in NAMES or place is None:
            return Named(spec.name, NAMES.get(name, ""), place)
        module = importlib.import_module(place)
        self.own_spec = module.__spec__
        return module

    def exec_module(self, module):
        if not isinstance(module, Named):
            module.__spec__ = self.own_spec  # the import system has put ours in its place

    def find_distributions(self, context=None):
        """What `importlib.metadata` is told: jax is there, and jaxlib too where no real one can be."""
        from .compat.standin import distributions

        return distributions(getattr(context, "name", None), getattr(context, "path", sys.path))


def install(stub: Any = None) -> None:
    """Puts weft in jax's place; called by importing this module.

    `stub` is the module of the stand-in distribution (weft.compat.standin) that is being imported as `jax`.
    """
    present = sys.modules.get("jax")
    if isinstance(present, _Facade):
        return
    if (
        present is not None
        and present is not stub
        and getattr(present, "__file__", None)
        and not getattr(present, "stands_for_weft", False)
    ):
        raise ImportError(
            "real jax is imported in this process already, and weft can't stand for it beside it. "
            "Import weft.as_jax before anything that imports jax, or run in a new process."
        )
    facade = _Facade("jax", "weft under the name of jax")
    facade.__path__ = []
    facade.__dict__.update(__version__=VERSION, __version_info__=tuple(int(part) for part in VERSION.split(".")))
    for name in [name for name in sys.modules if name.startswith("jax.")]:
        del sys.modules[name]
    sys.modules["jax"] = facade
    finder: Any = _Finder()
    sys.meta_path.insert(0, finder)


if __name__ == "__main__":
    from weft.compat.standin import main

    main(sys.argv[1:])
else:
    install()
