"""The editor's index: every public name is in it, with its signature, docstring and the line that defines it."""

import importlib
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NAMES = json.loads((ROOT / "tests/meta/names.json").read_text())
MODULES = [name for name in NAMES if name.startswith("jax")]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, str]]:
    folder = tmp_path_factory.mktemp("index")
    files = [folder / "index.json", folder / "sources.json"]
    subprocess.run([sys.executable, ROOT / "tools/web/make_index.py", *files], check=True)
    index, sources = (json.loads(file.read_text()) for file in files)
    return index, sources


def entry(index: dict[str, Any], module: str, name: str) -> Any:
    found = index["modules"][module]["names"].get(name)
    return index["entries"][found] if isinstance(found, int) else found


def weft_module(name: str) -> ModuleType:
    return importlib.import_module(name.replace("jax", "weft", 1))


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_of_jax_that_weft_has(made, module):
    index, _ = made
    ours = weft_module(module)
    names = [name for name in dict(NAMES[module]) if hasattr(ours, name) and f"{module}.{name}" not in index["aliases"]]
    assert [name for name in names if entry(index, ours.__name__, name) is None] == []


@pytest.mark.parametrize("module", ["jax", "jax.numpy", "jax.lax", "jax.random", "jax.nn", "jax.scipy.linalg"])
def test_signatures_have_the_parameters_of_the_functions(made, module):
    index, _ = made
    ours = weft_module(module)
    checked = 0
    for name in dict(NAMES[module]):
        value, found = getattr(ours, name, None), entry(index, ours.__name__, name)
        if not inspect.isfunction(value) or not isinstance(found, dict):
            continue
        parameters = inspect.signature(value).parameters.values()
        text = found["signature"]
        pattern = r".*[(,] ?\**".join(["", *(rf"{parameter.name}\b" for parameter in parameters)])
        assert re.match(pattern, text), (name, text)
        for parameter in parameters:
            if isinstance(parameter.annotation, str):
                assert f"{parameter.name}: {parameter.annotation}" in text, name
        checked += 1
    assert checked > 20


def test_a_signature_is_written_as_in_source(made):
    index, _ = made
    found = entry(index, "weft.random", "normal")
    assert found["signature"] == (
        "(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: OutSharding = None)"
        " -> Array"
    )
    assert entry(index, "weft.numpy", "add")["signature"] == "(x: ArrayLike, y: ArrayLike, /) -> Array"
    assert entry(index, "numpy", "sin")["signature"].startswith("(x, /, out=None, *,")


def test_lines_are_those_that_define_the_names(made):
    index, sources = made
    for module, name in [("weft.numpy", "sum"), ("weft", "vmap"), ("weft.lax", "scan"), ("weft.numpy", "add")]:
        found = entry(index, module, name)
        line = sources[found["module"]].split("\n")[found["line"] - 1]
        assert line.startswith(f"def {name}("), line
    placed = [e for e in index["entries"] if e["kind"] == "function" and "module" in e]
    assert len(placed) > 1000
    for found in placed:
        assert 0 < found["line"] <= sources[found["module"]].count("\n"), found["name"]


def test_docstrings_are_whole_and_without_indentation(made):
    index, _ = made
    doc = entry(index, "weft", "vmap")["doc"]
    assert doc.startswith("Maps `fun` over an additional axis of its arguments.\n\nArgs:\n    fun: ")
    assert "\nExample:\n    >>> " in doc


def test_arrays_have_their_members(made):
    index, _ = made
    members = {name: index["entries"][n] for name, n in index["entries"][index["types"]["Array"]]["members"].items()}
    assert members["shape"]["kind"] == "property" and members["shape"]["returns"] == "Shape"
    assert members["at"]["returns"] == "IndexUpdateHelper"
    assert members["sum"]["signature"].startswith("(axis: Axis = None, ")
    assert members["sum"]["signature"].endswith(" -> Array")
    assert "set" in index["entries"][index["types"]["IndexUpdateRef"]]["members"]
    helper = index["entries"][index["types"]["IndexUpdateHelper"]]
    assert helper["special"]["__getitem__"] == "(index: Any) -> IndexUpdateRef"
    assert index["entries"][index["types"]["SVDResult"]]["fields"] == ["U", "S", "Vh"]


def test_modules_do_not_show_what_they_import_for_themselves(made):
    index, _ = made
    assert {"annotations", "Any", "TYPE_CHECKING", "api", "core", "runtime"}.isdisjoint(
        index["modules"]["weft"]["names"]
    )
    assert "Distribution" not in index["modules"]["weft.scipy.stats.norm"]["names"]
    assert "Any" not in index["modules"]["weft.typing"]["names"]
    assert index["modules"]["weft"]["names"]["numpy"] == "weft.numpy"


def test_names_of_jax_that_stand_elsewhere(made):
    index, _ = made
    assert index["aliases"]["jax"] == "weft"
    assert index["aliases"]["jax.core"] == "weft.compat.core"
    assert all(module in index["modules"] for module in index["aliases"].values())
