"""Writes stats_expected.json next to this file: what real JAX gives for every expression of stats_cases.py.

<a Python with jax 0.10.2> tests/scipy/make_stats_expected.py
"""

import pathlib
import sys
import warnings

import jax
import jax.numpy as jnp
import jax.scipy.stats as stats
import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import frozen  # noqa: E402
from stats_cases import SETUP, expressions  # noqa: E402

warnings.simplefilter("ignore")
jax.config.update("jax_enable_x64", True)
scope = {"jax": jax, "jnp": jnp, "stats": stats, "np": np}
exec(SETUP, scope)
frozen.write(HERE / "stats_expected.json", {text: frozen.outcome(text, scope) for text in expressions()})
