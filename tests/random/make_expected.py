"""Writes expected.json next to this file: what real JAX draws for every case of draw_cases.py.

<a Python with jax 0.10.2> tests/random/make_expected.py
"""

import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent)]
from draw_cases import draw  # noqa: E402
from frozen import write  # noqa: E402

write(HERE / "expected.json", draw(jax, jnp, np))
