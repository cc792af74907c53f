"""Writes pallas_expected.json next to this file: what real JAX gives for each kernel of pallas_cases.py.

<a Python with jax 0.10.2> tests/experimental/make_pallas_expected.py
"""

import functools
import json
import pathlib
import sys

import jax
import numpy as np
from jax.experimental import pallas as pl

HERE = pathlib.Path(__file__).parent
sys.path.append(str(HERE))
from pallas_cases import cases  # noqa: E402


def described(x):
    x = np.asarray(x)
    return [str(x.dtype), list(x.shape), [float(f"{v:.8g}") for v in x.astype(np.float64).ravel()]]


found = {}
for name, (f, args) in cases(jax, pl, functools.partial(pl.pallas_call, interpret=True)).items():
    try:
        found[name] = [described(x) for x in jax.tree.leaves(f(*args))]
    except Exception as e:  # what real JAX can't do; the test compares these with NumPy
        print(f"{name}: {type(e).__name__}", file=sys.stderr)
lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(found[name])}" for name in found)
(HERE / "pallas_expected.json").write_text(f"{{\n{lines}\n}}\n")
