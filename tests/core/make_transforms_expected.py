"""Writes transforms_expected.json next to this file: what real JAX gives for every expression of transform_cases.py.

    <a Python with jax 0.10.2> tests/core/make_transforms_expected.py
"""
import json
import pathlib
import sys
import warnings

import jax
import jax.ad_checkpoint
import jax.custom_batching
import jax.custom_derivatives
import jax.experimental.jet
import jax.experimental.ode
import jax.numpy as jnp
import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from transform_cases import SETUP, evaluate, expressions  # noqa: E402

warnings.simplefilter("ignore")
scope = {"jax": jax, "jnp": jnp, "lax": jax.lax, "np": np}
exec(SETUP, scope)
results = {text: evaluate(text, scope) for text in expressions()}
(HERE / "transforms_expected.json").write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in results.items()) + "\n}\n")
print(len(results), "results,", sum(v[0] == "error" for v in results.values()), "of them errors")
