"""Writes the page's own Pyodide lock file: the packages a page loads, and nothing of Pyodide's distribution.

    python tools/web/make_lock.py --pyodide node_modules/pyodide --wheels DIR --out FILE [--prefix packages/]

Each wheel's dependencies come from its metadata, with the markers of a page; one that is not among the wheels is an
error, since a page has no index to find it in.
"""

import argparse
import email.parser
import hashlib
import json
import sys
import zipfile
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from pyodide_lock import PackageSpec, PyodideLockSpec
from pyodide_lock.spec import InfoSpec


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
    depends = []
    for text in metadata.get_all("Requires-Dist") or []:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate(environment):
            depends.append(canonicalize_name(requirement.name))
    return PackageSpec(
        name=canonicalize_name(metadata["Name"]),
        version=metadata["Version"],
        file_name=wheel.name,
        install_dir="site",
        sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        imports=sorted(top.split(".")[0] for top in tops),
        depends=sorted(depends),
    )


def break_cycles(packages: dict[str, PackageSpec]) -> None:
    """Drops each dependency that leads back to a package on its own path.

    Pyodide installs a package after its dependencies, and would wait for ever for two that name each other, as the
    language and its backends do. A page loads all packages of its lock file, so nothing is lost.
    """
    done: set[str] = set()

    def visit(name: str, path: frozenset[str]) -> None:
        path |= {name}
        spec = packages[name]
        spec.depends = [other for other in spec.depends if other not in path]
        for other in spec.depends:
            if other not in done:
                visit(other, path)
        done.add(name)

    for name in packages:
        if name not in done:
            visit(name, frozenset())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pyodide", type=Path, required=True, help="folder of the npm package, for its versions")
    parser.add_argument("--wheels", type=Path, required=True, help="folder with the wheels, or subfolders of them")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()

    # Pyodide's own lock file has entries for its tools, which the library does not know: only its description is read.
    version = json.loads((arguments.pyodide / "package.json").read_text())["version"]
    info = InfoSpec(version=version, **json.loads((arguments.pyodide / "pyodide-lock.json").read_text())["info"])
    environment = page_environment(info.python)
    packages = {}
    addresses = {}
    for wheel in sorted(arguments.wheels.rglob("*.whl")):
        spec = read_wheel(wheel, environment)
        if spec.name in packages:
            print(f"two wheels of {spec.name} in {arguments.wheels}: remove the older one", file=sys.stderr)
            return 1
        packages[spec.name] = spec
        addresses[spec.name] = wheel.relative_to(arguments.wheels).as_posix()
    missing = {
        f"{spec.name} needs {name}" for spec in packages.values() for name in spec.depends if name not in packages
    }
    if missing:
        print("; ".join(sorted(missing)) + f": not in {arguments.wheels}", file=sys.stderr)
        return 1
    break_cycles(packages)
    lock = PyodideLockSpec(info=info, packages=packages)
    lock.check_wheel_filenames()
    for name, spec in lock.packages.items():
        spec.file_name = addresses[name]
    lock.to_json(arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
