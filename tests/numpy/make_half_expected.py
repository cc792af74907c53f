"""Writes half_expected.json next to this file: what real JAX gives for the cases of half_cases.py.

<a Python with jax 0.10.2> tests/numpy/make_half_expected.py
"""

import pathlib
import sys
import warnings

import jax
import jax.scipy.linalg
import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent)]
from frozen import outcome, write  # noqa: E402
from half_cases import evaluate, expressions  # noqa: E402

warnings.simplefilter("ignore")
write(HERE / "half_expected.json", {f"{d}: {e}": evaluate(d, e, outcome, jax, np) for d, e in expressions()})
