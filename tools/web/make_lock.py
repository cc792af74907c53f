"""Writes the page's own Pyodide lock file: every package that a program in the page can load.

    python tools/web/make_lock.py --pyodide node_modules/pyodide --wheels DIR --out FILE [--bundled DIR]
        [--distribution FOLDER_OR_ADDRESS [--distribution-lock FILE]]

Three kinds of packages stand in it: our own wheels, which a page loads when it starts; bundled wheels, which the site
serves when a program imports them; and Pyodide's distribution, at an address or in a folder beside the wheels.
Dependencies of wheels come from their metadata, with the markers of a page.
"""

import argparse
import email.parser
import hashlib
import json
import sys
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from pyodide_lock import PackageSpec, PyodideLockSpec
from pyodide_lock.spec import InfoSpec


# What weft stands for in a page.
PROVIDED = frozenset({"jax", "jaxlib"})
# Requirements of bundled packages that have no wheel for a page, nor are needed to import them: flax reads and writes
# its checkpoints with them.
ABSENT = frozenset({"orbax-checkpoint", "orbax-export", "tensorstore"})

# What bundled packages need without saying so: einops asks NumPy for the arrays of jax too.
MORE = {"einops": ["numpy"]}


def page_environment(python: str) -> dict[str, str]:
    """The marker variables of Pyodide with the given Python version."""
    return {
        "extra": "",
        "implementation_name": "cpython",
        "implementation_version": python,
        "os_name": "posix",
        "platform_machine": "wasm32",
        "platform_python_implementation": "CPython",
        "platform_system": "Emscripten",
        "python_full_version": python,
        "python_version": ".".join(python.split(".")[:2]),
        "sys_platform": "emscripten",
    }


def read_wheel(wheel: Path, environment: dict[str, str]) -> PackageSpec:
    """The lock entry of one wheel."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata_name = next(name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = email.parser.Parser().parsestr(archive.read(metadata_name).decode())
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name and name.endswith((".py", ".pyc"))}
    depends = set()
    for text in metadata.get_all("Requires-Dist") or []:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate(environment):
            depends.add(canonicalize_name(requirement.name))
    return PackageSpec(
        name=canonicalize_name(metadata["Name"]),
        version=metadata["Version"],
        file_name=wheel.name,
        install_dir="site",
        sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        imports=sorted(top.split(".")[0] for top in tops),
        depends=sorted(depends),
    )


def read_wheels(folder: Path, environment: dict[str, str]) -> tuple[dict[str, PackageSpec], dict[str, str]]:
    """The lock entries of all wheels below a folder, and where each lies in it."""
    packages: dict[str, PackageSpec] = {}
    addresses = {}
    for wheel in sorted(folder.rglob("*.whl")):
        spec = read_wheel(wheel, environment)
        if spec.name in packages:
            raise SystemExit(f"two wheels of {spec.name} in {folder}: remove the older one")
        packages[spec.name] = spec
        addresses[spec.name] = wheel.relative_to(folder).as_posix()
    return packages, addresses


def read_distribution(lock: Path, base: str, others: Collection[str]) -> dict[str, dict[str, Any]]:
    """The entries of a distribution's lock file, with their files below `base`; those of `others` stand elsewhere.

    A folder may hold a part of the distribution: what lies beside the lock file, with all that it needs.
    """
    entries = json.loads(lock.read_text())["packages"]
    local = "://" not in base
    kept = {
        name: {field: entry[field] for field in PackageSpec.model_fields if field in entry}
        for name, entry in entries.items()
        if "file_name" in entry and not name.endswith("-tests") and name not in others
        if not local or (lock.parent / entry["file_name"]).is_file()
    }
    while True:
        lacking = [name for name, entry in kept.items() if not {*kept, *others}.issuperset(entry["depends"])]
        if not lacking:
            break
        for name in lacking:
            del kept[name]
    for entry in kept.values():
        entry["file_name"] = base + entry["file_name"]
    return kept


def break_cycles(packages: dict[str, PackageSpec]) -> None:
    """Drops each dependency that leads back to a package on its own path.

    Pyodide installs a package after its dependencies, and would wait for ever for two that name each other, as the
    language and its backends do. A page loads all of these, so nothing is lost.
    """
    done: set[str] = set()

    def visit(name: str, path: frozenset[str]) -> None:
        path |= {name}
        spec = packages[name]
        spec.depends = [other for other in spec.depends if other not in path]
        for other in spec.depends:
            if other not in done and other in packages:
                visit(other, path)
        done.add(name)

    for name in packages:
        if name not in done:
            visit(name, frozenset())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pyodide", type=Path, required=True, help="folder of the npm package, for its versions")
    parser.add_argument("--wheels", type=Path, required=True, help="folder with the wheels, or subfolders of them")
    parser.add_argument("--bundled", type=Path, help="folder with more wheels, whose files come below bundled/")
    parser.add_argument("--distribution", default="", help="where the files of Pyodide's distribution lie")
    parser.add_argument("--distribution-lock", type=Path, help="its lock file; that of the npm package if left out")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()

    # Pyodide's own lock file has entries for its tools, which the library does not know: only its description is read.
    version = json.loads((arguments.pyodide / "package.json").read_text())["version"]
    own_lock = arguments.pyodide / "pyodide-lock.json"
    info = InfoSpec(version=version, **json.loads(own_lock.read_text())["info"])
    environment = page_environment(info.python)
    packages, addresses = read_wheels(arguments.wheels, environment)
    bundled: dict[str, PackageSpec] = {}
    if arguments.bundled:
        bundled, places = read_wheels(arguments.bundled, environment)
        addresses |= {name: f"bundled/{place}" for name, place in places.items()}
    distribution = {}
    if arguments.distribution:
        lock_file = arguments.distribution_lock or own_lock
        distribution = read_distribution(lock_file, arguments.distribution, {*packages, *bundled})
    for name, spec in bundled.items():
        spec.depends = [other for other in spec.depends + MORE.get(name, []) if other not in PROVIDED | ABSENT]
    # A bundled package may need one that a part of the distribution lacks; importing it says so.
    for spec in bundled.values() if arguments.distribution_lock else ():
        spec.depends = [name for name in spec.depends if name in {*packages, *bundled, *distribution}]
    packages |= bundled
    missing = {
        f"{spec.name} needs {name}"
        for spec in packages.values()
        for name in spec.depends
        if name not in packages and name not in distribution
    }
    if missing:
        print("; ".join(sorted(missing)) + f": not in {arguments.wheels}", file=sys.stderr)
        return 1
    break_cycles(packages)
    lock = PyodideLockSpec(info=info, packages=packages)
    lock.check_wheel_filenames()
    for name, spec in lock.packages.items():
        spec.file_name = addresses[name]
    lock.packages |= {name: PackageSpec(**entry) for name, entry in distribution.items()}
    lock.to_json(arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
