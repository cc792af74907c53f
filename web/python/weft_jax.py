"""Makes weft stand for jax in a page when a program first imports `jax`."""

import importlib.abc
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType


class JaxFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `jax`. The finder that `weft.as_jax` installs finds the modules in it."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if fullname == "jax":
            return ModuleSpec(fullname, self)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        import weft.as_jax  # noqa: F401

        return sys.modules["jax"]

    def exec_module(self, module: ModuleType) -> None:
        pass  # the module is complete


def install() -> None:
    """From now on, `import jax` gives weft, unless a package of that name is found."""
    sys.meta_path.append(JaxFinder())
