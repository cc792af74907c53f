"""Writes explicit_expected.json with real jax. Run in a process of its own: `python
tests/native/make_explicit_expected.py`, where jax 0.10.2 is installed.
"""

import json
import os
import pathlib
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
HERE = pathlib.Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent)]

import jax  # noqa: E402
import numpy as np  # noqa: E402
from explicit_cases import SETUP, expressions, outcome  # noqa: E402

scope = {"jax": jax, "jnp": jax.numpy, "lax": jax.lax, "P": jax.P, "np": np}
exec(SETUP, scope)
with jax.set_mesh(scope["mesh"]):
    found = {text: outcome(text, scope, jax.tree.leaves) for text in expressions()}
(HERE / "explicit_expected.json").write_text(json.dumps(found, indent=0) + "\n")
print(len(found), "results,", sum(isinstance(v, dict) for v in found.values()), "of them errors")
