"""Fixtures of the tests of the XLA backend."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from conftest_native import backend, check, cpu  # noqa: E402, F401
