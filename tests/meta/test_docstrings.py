"""Docstrings of public functions say what they take, return and raise, with shapes and dtypes, and show an example."""

import importlib
import inspect
import re

import pytest

# Where public functions are defined; others join as they are done.
MODULES = (
    "weft.lax.approximate",
    "weft.lax.barriers",
    "weft.lax.collectives",
    "weft.lax.dots",
    "weft.lax.elementwise",
    "weft.lax.exchange",
    "weft.lax.fft",
    "weft.lax.generator",
    "weft.lax.indexing",
    "weft.lax.placement",
    "weft.lax.platforms",
    "weft.lax.ragged",
    "weft.lax.reductions",
    "weft.lax.shape",
    "weft.lax.special",
    "weft.lax.transcendental",
    "weft.lax.unary",
    "weft.lax.window_reductions",
    "weft.plot.current",
)
SECTIONS = re.compile(r"^(Args|Returns|Raises|Example):\n((?:(?: .*)?\n)*)", re.MULTILINE)
ENTRY = re.compile(r"^    (\*{0,2}\w+(?:, \*{0,2}\w+)*):", re.MULTILINE)
DTYPE = re.compile(r"dtype|integer|float|complex|boolean|\b(bool|u?int)\d*s?\b|token|None")
SHAPE = re.compile(r"shape|scalar|rank|size|one int|\bint\b|token|None")


def functions():
    for module in MODULES:
        namespace = importlib.import_module(module)
        for name in namespace.__all__:
            function = getattr(namespace, name)
            if inspect.isfunction(inspect.unwrap(function)):
                yield pytest.param(function, id=f"{module}.{name}")


@pytest.mark.parametrize("function", list(functions()))
def test_docstring(function):
    sections = dict(SECTIONS.findall(inspect.cleandoc(function.__doc__ or "") + "\n"))
    parameters = set(inspect.signature(function).parameters)
    said = {name.strip("* ") for entry in ENTRY.findall(sections.get("Args", "")) for name in entry.split(",")}
    assert said == parameters, f"Args names {sorted(said)}; the parameters are {sorted(parameters)}"
    assert sections.get("Returns", "").strip(), "Returns is missing"
    assert ">>> " in sections.get("Example", ""), "Example is missing"
    types = sections.get("Args", "") + sections["Returns"]
    assert DTYPE.search(types), "Args and Returns name no dtype"
    assert SHAPE.search(types), "Args and Returns name no shape"
