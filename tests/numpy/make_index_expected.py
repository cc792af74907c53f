"""Writes index_expected.json next to this file: what real JAX gives for every expression of index_cases.py.

<a Python with jax 0.10.2> tests/numpy/make_index_expected.py
"""

import os
import pathlib
import sys
import warnings

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

HERE = pathlib.Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent)]
from frozen import outcome, write  # noqa: E402
from index_cases import SETUP, expressions  # noqa: E402

warnings.simplefilter("ignore")
scope = {"jax": jax, "jnp": jnp, "np": np}
exec(SETUP, scope)
write(HERE / "index_expected.json", {text: outcome(text, scope) for text in expressions()})
