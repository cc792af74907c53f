"""Writes image_expected.json next to this file: what real JAX gives for every expression of image_cases.py.

<a Python with jax 0.10.2> tests/image/make_expected.py
"""

import pathlib
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from frozen import outcome, split, write  # noqa: E402
from image_cases import cases, scope  # noqa: E402

warnings.simplefilter("ignore")
given = scope(jax, jnp, np)
write(HERE / "image_expected.json", {text: outcome(text, given) for text in split(cases())})
