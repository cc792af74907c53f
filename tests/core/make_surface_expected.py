"""Writes surface_expected.json next to this file: what real JAX gives for every expression of surface_cases.py.

<a Python with jax 0.10.2> tests/core/make_surface_expected.py
"""

import functools
import pathlib
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent)]
from frozen import describe_tree, outcome, write  # noqa: E402
from surface_cases import SETUP, expressions  # noqa: E402

warnings.simplefilter("ignore")
scope = {"jax": jax, "jnp": jnp, "lax": jax.lax, "np": np}
exec(SETUP, scope)
describe = functools.partial(describe_tree, jax=jax, np=np)
write(HERE / "surface_expected.json", {text: outcome(text, scope, describe) for text in expressions()})
