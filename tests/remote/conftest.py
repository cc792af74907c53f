"""Fixtures of the offload tests."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from hosts import host, run_host, session  # noqa: E402, F401
