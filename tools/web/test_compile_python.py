"""Archives of bytecode: what a first visit loads, and what comes later."""

import importlib.util
import marshal
import zipfile
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("compile_python", Path(__file__).with_name("compile_python.py"))
assert spec is not None and spec.loader is not None
compile_python = importlib.util.module_from_spec(spec)
spec.loader.exec_module(compile_python)


@pytest.mark.parametrize(
    "name, pattern",
    [
        ("a/b/c.py", "a.b.c"),
        ("a/b/c.py", "a.b"),
        ("a/b/__init__.py", "a.b"),
        ("a/b/c.py", "a.*"),
        ("a/b/c.py", "a.[!c]"),
        ("a.py", "a"),
    ],
)
def test_a_pattern_names_a_module_or_a_package_it_lies_in(name: str, pattern: str):
    assert compile_python.comes_later(name, ["other", pattern])


@pytest.mark.parametrize(
    "name, pattern", [("a/__init__.py", "a.*"), ("ab.py", "a"), ("a/bc.py", "a.b"), ("b/a.py", "a")]
)
def test_a_pattern_names_nothing_else(name: str, pattern: str):
    assert not compile_python.comes_later(name, [pattern])


def test_an_archive_becomes_two(tmp_path: Path):
    files = {
        "lib/__init__.py": "'''Doc.'''\nassert True",
        "lib/rare.py": "x = 1",
        "lib/data.txt": "text",
        "lib-1.dist-info/RECORD": "",
    }
    with zipfile.ZipFile(tmp_path / "source.zip", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    first, rest = tmp_path / "first.zip", tmp_path / "rest.zip"
    result = compile_python.compile_archive(tmp_path / "source.zip", first, rest, "/site/", 0, ["lib.rare"])
    assert result == (2, ["lib.rare"], [])
    with zipfile.ZipFile(first) as archive, zipfile.ZipFile(rest) as later:
        assert later.namelist() == ["lib/rare.pyc"]
        assert archive.namelist() == ["lib/__init__.pyc", "lib/data.txt", "lib-1.dist-info/RECORD"]
        code = marshal.loads(archive.read("lib/__init__.pyc")[16:])
        assert (code.co_filename, code.co_consts[0]) == ("/site/lib/__init__.py", "Doc.")
        record = archive.read("lib-1.dist-info/RECORD").decode()
    names = [line.split(",")[0] for line in record.splitlines()]
    assert names == ["lib/__init__.pyc", "lib/data.txt", "lib/rare.pyc", "lib-1.dist-info/RECORD"]


def test_every_module_of_ours_that_comes_later_is_there():
    """A name that fits no file would leave the module on a first visit, under the name that it has now."""
    root = Path(__file__).parents[2]
    sources = [root / name for name in ("packages/weft/src", "packages/weft-remote/src", "wasm/src", "web/python")]
    files = [file.relative_to(source).as_posix() for source in sources for file in source.rglob("*.py")]
    names = Path(__file__).with_name("later.txt").read_text().splitlines()
    ours = [name for name in names if name.startswith("weft")]
    assert len(ours) > 40
    assert not [name for name in ours if not any(compile_python.comes_later(file, [name]) for file in files)]
