"""Lets the tests of this folder import their harness and the programs of tests/kernels; skips those that need an adapter where there is none."""

import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "kernels")]


@pytest.fixture(scope="session")
def device():
    """The WebGPU device of the tests, one for the session."""
    import webgpu_harness

    try:
        return webgpu_harness.device()
    except (ImportError, RuntimeError) as e:
        pytest.skip(f"no WebGPU device: {e}")
