"""Writes expected.json and rare_expected.json next to this file: what real JAX gives for every expression of cases.py
and rare_cases.py.

<a Python with jax 0.10.2> tests/numpy/make_expected.py
"""

import pathlib
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent)]
import cases  # noqa: E402
import rare_cases  # noqa: E402
from frozen import outcome, write  # noqa: E402

warnings.simplefilter("ignore")
for module, name in ((cases, "expected.json"), (rare_cases, "rare_expected.json")):
    scope = {"jax": jax, "jnp": jnp, "lax": jax.lax, "nn": jax.nn, "np": np}
    exec(module.SETUP, scope)
    write(HERE / name, {text: outcome(text, scope) for text in module.expressions()})
