"""Writes applied_expected.json next to this file: what real JAX gives for every expression of applied_cases.py.

<a Python with jax 0.10.2> tests/scipy/make_applied_expected.py
"""

import pathlib
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent)]
from applied_cases import SETUP, expressions  # noqa: E402
from frozen import outcome, write  # noqa: E402

warnings.simplefilter("ignore")
scope = {"jax": jax, "jnp": jnp, "np": np}
exec(SETUP, scope)
write(HERE / "applied_expected.json", {text: outcome(text, scope) for text in expressions()})
