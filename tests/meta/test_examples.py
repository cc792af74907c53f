"""Every public function of the library has an example in its docstring; tests/meta/test_doctests.py runs them."""

import importlib
import inspect
import json
import pathlib

import pytest

NAMES = json.loads((pathlib.Path(__file__).parent / "names.json").read_text())

FAMILIES = ("numpy", "numpy.linalg", "numpy.fft", "lax", "lax.linalg", "nn", "nn.initializers", "random", "tree")
# Functions without an example, and why.
WITHOUT = {"precv": "it needs two devices", "DotDimensionNumbers": "a type alias", "Initializer": "a type alias"}


def functions(family: str):
    """The family's public functions by name: JAX's, or its own where names.json does not have the module; not what
    its modules import.
    """
    module = importlib.import_module(f"weft.{family}")
    for name in NAMES.get(f"jax.{family}") or getattr(module, "__all__", None) or dir(module):
        value = getattr(module, name, None)
        if (
            not name.startswith("_")
            and callable(value)
            and not isinstance(value, type)
            and not inspect.ismodule(value)
            and (f"jax.{family}" in NAMES or (getattr(value, "__module__", None) or "").startswith(f"weft.{family}"))
        ):
            yield name, value


@pytest.mark.parametrize("family", FAMILIES)
def test_every_function_has_an_example(family):
    found = dict(functions(family))
    assert found
    without = {n for n, f in found.items() if ">>>" not in (f.__doc__ or "")} - set(WITHOUT)
    assert not without, f"no example in the docstrings of {', '.join(sorted(without))}"
