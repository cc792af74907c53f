"""The examples in docstrings run, and print what they say."""

import doctest
import importlib
import pathlib
import pkgutil

import pytest

import weft

SKIP = {"weft.as_jax", "weft.remote"}  # they change the process, or need a host
# Families whose functions compile much: left to the full run.
LONG = (
    "weft.scipy",
    "weft.experimental",
    "weft.example_libraries",
    "weft.image",
    "weft.random",
    "weft.nn",
    "weft.numpy",
    "weft.lax",
)
ROOT = pathlib.Path(weft.__file__).parent
# Modules of the compiler whose error classes have pages; that of WebGPU devices needs one.
OF_ERRORS = (
    "weft_wasm.contents",
    "weft_wasm.lower.types",
    "weft_wasm.runtimes.memory",
    "weft_wasm.runtimes.wasmtime_device",
)


def modules():
    for info in pkgutil.walk_packages([str(ROOT)], "weft."):
        if info.name not in SKIP:
            yield pytest.param(info.name, marks=[pytest.mark.slow] if info.name.startswith(LONG) else [])
    yield from OF_ERRORS


@pytest.mark.parametrize("name", modules())
def test_examples(name):
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert result.failed == 0, (
        f"{result.failed} of {result.attempted} examples of {name} fail; run python -m doctest on it"
    )
