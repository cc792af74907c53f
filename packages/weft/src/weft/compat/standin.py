"""The distribution that stands for jax where libraries depend on it: metadata, and a module `jax` of one line.

    python -m weft.as_jax install [folder]      writes it into this environment (or a folder); `pip uninstall jax` takes
    it away python -m weft.as_jax wheel [folder]        writes it as a wheel, for pip or micropip

With it pip finds the requirement `jax>=…` met and fetches neither jax nor jaxlib, and `import jax` gives weft in every
process of the environment.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import os
import sys
import sysconfig
import zipfile
from typing import Callable, Iterator

from ..base.annotations import override

VERSION = "0.10.2"
_MODULE = """\"\"\"weft under the name of jax; written by `python -m weft.as_jax install`.\"\"\"
stands_for_weft = True
import weft.as_jax  # noqa: E402  puts weft in the place of this module
"""


def _metadata(name: str) -> str:
    return (
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {VERSION}\nSummary: weft, which stands for {name} in this"
        " environment\nRequires-Python: >=3.11\nRequires-Dist: weft\n"
        # what jax brings
        + (
            "".join(f"Requires-Dist: {other}\n" for other in ("ml_dtypes", "numpy", "opt_einsum", "scipy"))
            if name == "jax"
            else ""
        )
    )


def _files(name: str) -> dict[str, str]:
    """The files of the distribution, by path, without its record."""
    info = f"{name}-{VERSION}.dist-info"
    files = {
        f"{info}/METADATA": _metadata(name),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: weft\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if name == "jax":
        files["jax/__init__.py"] = _MODULE
    return files


def _record(files: dict[str, str], info: str) -> str:
    rows = []
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(text.encode())}\n")
    return "".join(rows) + f"{info}/RECORD,,\n"


def _names() -> list[str]:
    """The distributions to stand in for. In a page these include jaxlib, since the real one does not exist there."""
    return ["jax", "jaxlib"] if sys.platform == "emscripten" else ["jax"]


def write_wheel(folder: str = ".", name: str = "jax") -> str:
    """Writes the wheel of the stand-in into a folder; returns its path."""
    info, files = f"{name}-{VERSION}.dist-info", _files(name)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{name}-{VERSION}-py3-none-any.whl")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for file, text in {**files, f"{info}/RECORD": _record(files, info)}.items():
            wheel.writestr(zipfile.ZipInfo(file, (1980, 1, 1, 0, 0, 0)), text)
    return path


def write_into(folder: str | None = None, name: str = "jax") -> str:
    """Writes the stand-in into a folder of modules (this environment's); FileExistsError where another jax is
    installed.
    """
    folder = sysconfig.get_path("purelib") if folder is None else folder
    for found in importlib.metadata.distributions(name=name, path=[folder]):
        if "weft" not in (found.metadata["Summary"] or ""):
            raise FileExistsError(
                f"{name} {found.version} is installed in {folder}, and weft would stand in its place. Uninstall it"
                f" first (python -m pip uninstall {name}), or make an environment for weft."
            )
    info, files = f"{name}-{VERSION}.dist-info", _files(name)
    files[f"{info}/INSTALLER"] = "weft\n"
    for file, text in {**files, f"{info}/RECORD": _record(files, info)}.items():
        path = os.path.join(folder, *file.split("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="\n") as f:
            f.write(text)
    return os.path.join(folder, info)


class _InMemory(importlib.metadata.Distribution):
    """The stand-in for a process in whose environment nothing is installed."""

    def __init__(self, name: str):
        self._own_files = {
            path.rpartition("/")[2]: text for path, text in _files(name).items() if ".dist-info/" in path
        }

    @override
    def read_text(self, filename):
        return self._own_files.get(filename)

    @override
    def locate_file(self, path):
        return path


def distributions(name: str | None, path) -> Iterator[importlib.metadata.Distribution]:
    """The stand-ins that a search for `name` (None: for all) on `path` finds: those that no file on the path
    provides.
    """
    if list(path or ()) != sys.path:  # somebody looks into one folder
        return
    for own in _names():
        if name in (None, own) and not _on_path(own):
            yield _InMemory(own)


def _on_path(name: str) -> bool:
    return (
        next(
            iter(
                importlib.metadata.MetadataPathFinder.find_distributions(
                    importlib.metadata.DistributionFinder.Context(name=name)
                )
            ),
            None,
        )
        is not None
    )


def main(args: list[str]) -> None:
    """The command line: `install [folder]` or `wheel [folder]`."""
    commands: dict[str, Callable[..., str]] = {"install": write_into, "wheel": write_wheel}
    if not args or args[0] not in commands or len(args) > 2:
        raise SystemExit("usage: python -m weft.as_jax install [folder]\n       python -m weft.as_jax wheel [folder]")
    for name in _names():
        try:
            print(commands[args[0]](*args[1:], name=name))
        except OSError as e:
            raise SystemExit(str(e)) from None
