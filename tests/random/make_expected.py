"""Writes expected.json next to this file: what real JAX draws for every case of cases.py.

    <a Python with jax 0.10.2> tests/random/make_expected.py
"""
import json
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from cases import draw  # noqa: E402

results = draw(jax, jnp, np)
(HERE / "expected.json").write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in results.items()) + "\n}\n")
print(len(results), "draws")
