"""Writes sampler_expected.json next to this file: what real JAX gives for every expression of sampler_cases.py.

<a Python with jax 0.10.2> tests/random/make_sampler_expected.py
"""

import pathlib
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from frozen import write  # noqa: E402
from sampler_cases import outcomes  # noqa: E402

warnings.simplefilter("ignore")
write(HERE / "sampler_expected.json", {name: run() for name, run in outcomes(jax, jnp, np).items()})
