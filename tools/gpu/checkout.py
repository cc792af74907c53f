"""weft from a plain checkout, where nothing can be installed: what PYTHONPATH must have."""

from __future__ import annotations

import pathlib
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROJECTS = ("packages/weft", "packages/weft-remote", "native", "wasm")


def metadata(folder: pathlib.Path) -> None:
    """Writes what installers would: the names, versions and entry points of our distributions, by which weft finds its
    backends.
    """
    for project in PROJECTS:
        described = tomllib.loads((ROOT / project / "pyproject.toml").read_text())["project"]
        name, version = described["name"], described["version"]
        info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        groups = [
            f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())
            for group, entries in described.get("entry-points", {}).items()
        ]
        (info / "entry_points.txt").write_text("\n".join(groups))


def python_path(folder: pathlib.Path) -> list[str]:
    """The folders for PYTHONPATH; `folder` is given the metadata."""
    metadata(folder)
    return [str(folder), *[str(ROOT / project / "src") for project in PROJECTS]]
