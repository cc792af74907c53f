"""Writes lax_expected.json next to this file: what real JAX gives for every expression of lax_cases.py.

    <a Python with jax 0.10.2> tests/ops/make_lax_expected.py
"""
import json
import pathlib
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from lax_cases import evaluate

warnings.simplefilter("ignore")
results = evaluate({"jax": jax, "jnp": jnp, "lax": jax.lax, "np": np})
pathlib.Path(__file__).with_name("lax_expected.json").write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in results.items()) + "\n}\n")
print(len(results), "results,", sum(v[0] == "error" for v in results.values()), "of them errors")
