"""Writes placement_expected.json: what real jax 0.10.2 gives for placement_cases.py on eight CPU devices.

PYTHON_WITH_JAX tests/native/make_placement_expected.py
"""

import json
import os
import pathlib
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import layout
from jax.experimental.shard_alike import shard_alike as alike

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from placement_cases import cases


class Names:
    sharding, shard_alike = jax.sharding, alike


Names.jax, Names.jnp, Names.np, Names.layout = jax, jnp, np, layout
found = {name: f() for name, f in cases(Names).items()}
(HERE / "placement_expected.json").write_text(json.dumps(found, indent=1) + "\n")
