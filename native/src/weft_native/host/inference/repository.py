"""The exported programs of a folder: `NAME.weft`, or `NAME/VERSION.weft` with whole numbers as versions."""

from __future__ import annotations

import logging
import os
import pathlib
import re
from collections.abc import Iterator
from typing import NamedTuple

from weft import export
from weft.base.errors import WeftError

from .errors import RequestError
from .values import Signature

log = logging.getLogger("weft.host")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
VERSION = re.compile(r"[1-9][0-9]{0,8}")
FILE = ".weft"


class Published(NamedTuple):
    """A program that requests may name."""

    name: str
    version: int
    exported: export.Exported
    signature: Signature


class Repository:
    """What a folder publishes. A name in a request is looked up here, and never part of a path."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.programs: dict[str, dict[int, Published]] = {}
        self._seen: dict[pathlib.Path, tuple[int, int]] = {}  # of each file, when it was changed and its size

    def scan(self) -> list[Published]:
        """Reads files that are new or have changed, and forgets those that are gone; what was read. A file that is no
        program is logged, and what its name stood for before stays.
        """
        found, read = {}, []
        programs = {name: dict(versions) for name, versions in self.programs.items()}
        for name, version, path in self._files():
            try:
                state = path.stat()
                seen = found[path] = (state.st_mtime_ns, state.st_size)
                if self._seen.get(path) == seen:
                    continue
                exported = export.deserialize(path.read_bytes())
            except (OSError, WeftError) as e:
                log.error("%s is not served: %s", path, e)
                continue
            made = Published(name, version, exported, Signature(exported))
            programs.setdefault(name, {})[version] = made
            read.append(made)
        for path in self._seen.keys() - found.keys():
            name, version = self._named(path)
            programs.get(name, {}).pop(version, None)
            if not programs.get(name, True):
                del programs[name]
        self.programs, self._seen = programs, found  # at once: requests are answered meanwhile
        return read

    def find(self, name: str, version: str | None = None) -> Published:
        """A program by its name; the newest version if none is named. Raises RequestError."""
        versions = self.programs.get(name)
        if not versions:
            known = ", ".join(sorted(self.programs)) or "none"
            raise RequestError(404, f"there is no program {name[:64]!r} here; there are: {known}.")
        if version is None:
            return versions[max(versions)]
        if not VERSION.fullmatch(version) or int(version) not in versions:
            known = ", ".join(map(str, sorted(versions)))
            raise RequestError(404, f"{name} has no version {version[:16]!r}; it has {known}.")
        return versions[int(version)]

    def all(self) -> list[Published]:
        return [self.programs[name][v] for name in sorted(self.programs) for v in sorted(self.programs[name])]

    def _files(self) -> Iterator[tuple[str, int, pathlib.Path]]:
        for entry in sorted(os.scandir(self.folder), key=lambda e: e.name):
            if entry.is_dir():
                for file in sorted(pathlib.Path(entry.path).glob("*" + FILE)):
                    if NAME.fullmatch(entry.name) and VERSION.fullmatch(file.stem):
                        yield entry.name, int(file.stem), file
                    else:
                        log.error("%s is not served: it is not NAME/VERSION%s", file, FILE)
            elif entry.name.endswith(FILE):
                path = pathlib.Path(entry.path)
                if NAME.fullmatch(path.stem):
                    yield path.stem, 1, path
                else:
                    log.error("%s is not served: its name is no name of a program", path)

    def _named(self, path: pathlib.Path) -> tuple[str, int]:
        return (path.stem, 1) if path.parent == self.folder else (path.parent.name, int(path.stem))
