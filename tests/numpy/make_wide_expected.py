"""Writes wide_expected.json next to this file: the types that real JAX gives the results of wide_cases.py with 64 bits
on.

<a Python with jax 0.10.2> tests/numpy/make_wide_expected.py
"""

import json
import pathlib
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path.append(str(HERE))
from wide_cases import types  # noqa: E402

warnings.simplefilter("ignore")
with jax.enable_x64(True):
    found = types(jax, jnp, np)
(HERE / "wide_expected.json").write_text(
    "{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()) + "\n}\n"
)
print(len(found), "expressions")
