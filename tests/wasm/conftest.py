"""Fixtures of the tests of the Wasm backend."""

import pathlib
import sys

import pytest
from platforms import need

need("wasm")
sys.path.insert(0, str(pathlib.Path(__file__).parent))

import weft  # noqa: E402
from wasm_harness import backend  # noqa: E402


@pytest.fixture(autouse=True)
def wasm():
    """Computations of a test run on the Wasm backend, with 64-bit dtypes."""
    backend()
    before = weft.config.platforms
    weft.config.update("jax_platforms", "wasm")
    with weft.enable_x64(True):
        yield
    weft.config.update("jax_platforms", before)
