"""Docstrings that a page fetches: marks in bytecode, and the texts that replace them."""

import importlib.util
import inspect
import json
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).parent


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


compile_python = load(HERE / "compile_python.py")
weft_docstrings = load(HERE.parents[1] / "web/python/weft_docstrings.py")

SOURCE = '''"""The module's."""

import dataclasses
import functools

def completed(f):
    f.__doc__ = f"""{f.__doc__}

    And more of {f.__name__}."""
    return f

@completed
def function(x):
    """The function's.

    In two paragraphs.
    """

@functools.wraps(function)
def wrapper(x):
    """No one's."""

class Callable:
    def __init__(self, f):
        self.__doc__ = f.__doc__

    def __call__(self):
        pass

instance = Callable(function)

@dataclasses.dataclass(frozen=True)
class Data:
    """The class's."""
    x: int = 0

    @property
    def value(self):
        """The property's."""

    def method(self):
        """The method's."""

def bare():
    return "not a docstring"
'''


def read(module: ModuleType) -> list[str | None]:
    names = module.function, module.wrapper, module.instance, module.Data, module.Data.value, module.Data.method
    return [thing.__doc__ for thing in (module, *names, module.bare)]


@pytest.fixture
def docstrings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Docstrings apart from the bytecode of a package that is ready to be imported."""
    with zipfile.ZipFile(tmp_path / "source.zip", "w") as archive:
        for name in ("__init__", "first", "second"):
            archive.writestr(f"marked/{name}.py", SOURCE)
    files = [str(tmp_path / name) for name in ("source.zip", "first.zip", "rest.zip")]
    *_, texts = compile_python.compile_archive(*files, "/site/", 0, [], weft_docstrings.MARK)
    zipfile.ZipFile(tmp_path / "first.zip").extractall(tmp_path / "site")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setattr(sys, "meta_path", sys.meta_path[:])
    yield weft_docstrings.Docstrings("marked", lambda: json.dumps(texts))
    for name in [name for name in sys.modules if name.partition(".")[0] == "marked"]:
        del sys.modules[name]


def test_texts_replace_marks_wherever_they_went(docstrings):
    natively = ModuleType("natively")
    exec(SOURCE, natively.__dict__)
    import marked.first  # type: ignore[import-not-found]

    before = read(marked.first)
    assert all("help() fetches this docstring [" in text for text in before[:-1])
    assert "And more of function." in before[1]
    docstrings.complete()
    assert read(marked.first) == read(natively)

    import marked.second  # once the texts are here

    assert read(marked.second) == read(natively)
    assert inspect.getdoc(marked.second.Data(1).method) == "The method's."


def test_help_without_docstrings_shows_signatures(docstrings, capsys: pytest.CaptureFixture[str]):
    import marked.first

    def refuse() -> str:
        raise OSError("no connection")

    show = weft_docstrings.Help(weft_docstrings.Docstrings("marked", refuse))
    show(marked.first.bare)
    show(3)
    said = "Docstrings are fetched when help() is first called, and can't be now: no connection. Call it again later\n"
    assert capsys.readouterr().out == f"{said}bare()\n{said}3\n"
    show = weft_docstrings.Help(docstrings)
    show(marked.first.Data.method)
    assert "The method's." in capsys.readouterr().out
