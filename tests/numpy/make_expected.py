"""Writes expected.json next to this file: what real JAX gives for every expression of cases.py.

    <a Python with jax 0.10.2> tests/numpy/make_expected.py
"""
import json
import pathlib
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from cases import evaluate  # noqa: E402

warnings.simplefilter("ignore")
results = evaluate({"jax": jax, "jnp": jnp, "lax": jax.lax, "nn": jax.nn, "np": np})
(HERE / "expected.json").write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in results.items()) + "\n}\n")
print(len(results), "results,", sum(v[0] == "error" for v in results.values()), "of them errors")
