"""Imports of modules that lie in archives which the page has not fetched yet.

A first visit fetches what most programs import. The other modules of the standard library and of the language stay on
the server until a program imports one of them: then the page fetches the archive it lies in, once, while the import
waits.
"""

import os
import sys
from collections.abc import Callable, Iterable
from importlib.machinery import ModuleSpec, PathFinder


class LaterFinder:
    """Finds the modules of one archive, which is fetched when the first of them is looked for.

    Args:
        folder: where `fetch` unpacks the archive.
        modules: full names of the modules in it, packages and what is in them.
        fetch: fetches the archive and unpacks it.
    """

    def __init__(self, folder: str, modules: Iterable[str], fetch: Callable[[], object]):
        self.folder = folder
        self.modules = frozenset(modules)
        self.fetch = fetch
        self.fetched = False

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name not in self.modules:
            return None
        if not self.fetched:
            try:
                self.fetch()
            except Exception as error:
                text = f"{name} is fetched when it is first imported, and can't be now: {error}. Import it again later"
                raise ImportError(text, name=name) from error
            self.fetched = True
            PathFinder.invalidate_caches()
        # Not `path`: a package of the standard library has its first modules in a zip file, and the others here.
        return PathFinder.find_spec(name, [os.path.join(self.folder, *name.split(".")[:-1])])


def install(folder: str, modules: Iterable[str], fetch: Callable[[], object]) -> None:
    """From now on, modules that nothing else finds are looked for in an archive too; arguments as for LaterFinder."""
    sys.meta_path.append(LaterFinder(folder, modules, fetch))
