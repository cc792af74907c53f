"""The wheels: what they hold, and that type checkers read them."""

import pathlib
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROJECTS = ("packages/weft", "packages/weft-remote", "native", "wasm")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory) -> dict[str, zipfile.ZipFile]:
    built = {}
    for project in PROJECTS:
        folder = tmp_path_factory.mktemp("wheel")
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
            cwd=ROOT / project,
            check=True,
            capture_output=True,
        )
        built[project] = zipfile.ZipFile(next(folder.glob("*.whl")))
    return built


def modules(wheel: zipfile.ZipFile) -> set[str]:
    return {name for name in wheel.namelist() if ".dist-info/" not in name}


@pytest.mark.parametrize("project", PROJECTS)
def test_a_wheel_holds_all_of_its_package(wheels, project):
    source = ROOT / project / "src"
    assert modules(wheels[project]) == {
        str(p.relative_to(source)) for p in source.rglob("*") if p.is_file() and "__pycache__" not in p.parts
    }


@pytest.mark.parametrize("project", PROJECTS)
def test_type_checkers_read_what_a_wheel_installs(wheels, project):
    """Its package is marked as typed (PEP 561)."""
    found = modules(wheels[project])
    packages = {name.split("/")[0] for name in found}
    assert packages and packages == {name.removesuffix("/py.typed") for name in found if name.endswith("/py.typed")}
