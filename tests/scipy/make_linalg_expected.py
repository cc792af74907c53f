"""Writes linalg_expected.json next to this file: what real JAX gives for every expression of matrix_cases.py.

<a Python with jax 0.10.2> tests/scipy/make_linalg_expected.py
"""

import pathlib
import sys
import warnings

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import frozen  # noqa: E402
from matrix_cases import SETUP, expressions  # noqa: E402

warnings.simplefilter("ignore")
jax.config.update("jax_enable_x64", True)
scope = {"jax": jax, "jnp": jnp, "linalg": jsp.linalg, "fft": jsp.fft, "special": jsp.special, "np": np}
exec(SETUP, scope)
frozen.write(HERE / "linalg_expected.json", {text: frozen.outcome(text, scope) for text in expressions()})
