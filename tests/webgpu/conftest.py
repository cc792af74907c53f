"""Lets the tests of this folder import their harness and those of the kernels and the Wasm backend; without an
adapter, tests that need one are skipped.
"""

import sys
from pathlib import Path

import pytest
from platforms import need

TESTS = Path(__file__).parent.parent
sys.path[:0] = [str(TESTS / name) for name in ("webgpu", "kernels", "wasm")]


@pytest.fixture(scope="session")
def device():
    """The WebGPU device of the tests, one for the session."""
    need("webgpu")
    import webgpu_harness

    return webgpu_harness.device()


@pytest.fixture(scope="session")
def backend(device):
    """A verifying backend, known to weft as "webgpu"."""
    from weft.runtime.device import backend_for, register_backend
    from weft_wasm.backends.webgpu import WebGpuBackend

    register_backend(WebGpuBackend, "webgpu")
    made = backend_for("webgpu")
    made.check = True
    return made


def pytest_collection_modifyitems(config, items):
    """Of the tests borrowed from the Wasm backend, those that say something new here: 64-bit dtypes are refused alike,
    and the functions of half precision are those of float32.
    """
    dropped = [
        item
        for item in items
        if item.module.__name__.endswith("test_language") and hasattr(item, "callspec") and _repeats(item)
    ]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if item not in set(dropped)]


def _repeats(item) -> bool:
    values = [str(v) for v in item.callspec.params.values()]
    if any(v in ("float64", "int64", "uint64") for v in values):
        return "add" not in values
    return (
        item.originalname == "test_functions"
        and any(v in ("float16", "bfloat16") for v in values)
        and "exp" not in values
    )
