"""Writes symbolic_expected.json: what real jax says of symbolic_cases.py. Run with a Python that has jax: python
tests/core/make_symbolic_expected.py
"""

import json
import pathlib

import jax
from jax import export
from jax._src import core
from symbolic_cases import outcomes

found = {
    "jax": jax.__version__,
    "cases": outcomes(export.symbolic_shape, export.SymbolicScope, core.max_dim, core.min_dim),
}
(pathlib.Path(__file__).parent / "symbolic_expected.json").write_text(json.dumps(found, indent=1) + "\n")
