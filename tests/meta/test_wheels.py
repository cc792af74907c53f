"""The wheels: each module of the package is in exactly one, and each stays small enough for a page."""
import pathlib
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TREE = ("packages/weft", "packages/weft-library", "packages/weft-extra")      # the wheels that share packages/weft/src
PROJECTS = (*TREE, "packages/weft-remote", "native", "wasm")
# What a trace needs. Every other folder of the package is a family that users call, and belongs to one of the other two.
LANGUAGE = {"api", "base", "core", "decompositions", "effects", "higher_order", "primitives", "runtime", "serialization", "symbolic", "transforms"}
LIMIT = 500_000      # bytes


@pytest.fixture(scope="module")
def wheels(tmp_path_factory) -> dict[str, zipfile.ZipFile]:
    built = {}
    for project in PROJECTS:
        folder = tmp_path_factory.mktemp("wheel")
        subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=ROOT / project, check=True, capture_output=True)
        built[project] = zipfile.ZipFile(next(folder.glob("*.whl")))
    return built


def modules(wheel: zipfile.ZipFile) -> set[str]:
    return {name for name in wheel.namelist() if ".dist-info/" not in name}


def test_each_module_is_in_exactly_one_of_the_three(wheels):
    found = [name for project in TREE for name in modules(wheels[project])]
    source = ROOT / "packages/weft/src"
    assert sorted(found) == sorted(str(p.relative_to(source)) for p in source.rglob("*") if p.is_file() and "__pycache__" not in p.parts)


def test_the_language_is_what_a_trace_needs(wheels):
    folders = {name.split("/")[1] for name in modules(wheels["packages/weft"]) if name.count("/") > 1}
    assert folders == LANGUAGE, "add the folder to the pyproject.toml of weft-library or weft-extra, and to `exclude` in packages/weft/pyproject.toml"


@pytest.mark.parametrize("project", PROJECTS)
def test_a_wheel_is_small(wheels, project):
    assert pathlib.Path(wheels[project].filename).stat().st_size <= LIMIT


@pytest.mark.parametrize("project", PROJECTS)
def test_type_checkers_read_what_a_wheel_installs(wheels, project):
    """Its package is marked as typed (PEP 561). The three that share one need a single marker, which the language brings: the others depend on it."""
    wheel = wheels[project]
    packages = {name.split("/")[0] for name in modules(wheel)}
    marked = {name.removesuffix("/py.typed") for name in modules(wheels["packages/weft"] if project in TREE else wheel) if name.endswith("/py.typed")}
    assert packages and packages == marked
    if project in TREE[1:]:
        metadata = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        assert "Requires-Dist: weft\n" in wheel.read(metadata).decode()
