"""Writes sparse_expected.json next to this file: what real JAX gives for every expression of sparse_cases.py.

<a Python with jax 0.10.2 and scipy> tests/sparse/make_sparse_expected.py
"""

import pathlib
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent)]
from frozen import outcome, write  # noqa: E402
from sparse_cases import SETUP, description, expressions  # noqa: E402

warnings.simplefilter("ignore")
scope = {"jax": jax, "jnp": jnp, "np": np}
exec(SETUP, scope)
write(HERE / "sparse_expected.json", {text: outcome(text, scope, description(np)) for text in expressions()})
