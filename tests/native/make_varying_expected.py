"""Writes varying_expected.json with real jax. Run in a process of its own: `python
tests/native/make_varying_expected.py`, where jax 0.10.2 is installed.
"""

import json
import os
import pathlib

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax  # noqa: E402
from varying_cases import cases, leaves  # noqa: E402

here = pathlib.Path(__file__).with_name("varying_expected.json")
here.write_text(
    json.dumps({"jax": jax.__version__, "values": {name: leaves(f()) for name, f in cases(jax).items()}}) + "\n"
)
