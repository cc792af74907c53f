"""Writes sweep_expected.json next to this file: what real JAX gives for every call of sweep_cases.py, in every dtype,
or in those that are named; and sweep_parameters.json, for the calls of sweep_parameters.py.

    <a Python with jax 0.10.2> tests/numpy/make_sweep_expected.py [DTYPE… or parameters]
"""

import json
import os
import pathlib
import sys
import warnings

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

HERE = pathlib.Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent)]
import sweep_parameters  # noqa: E402
from frozen import split  # noqa: E402
from sweep_cases import DTYPES, arguments, calls, outcome  # noqa: E402

warnings.simplefilter("ignore")
asked = sys.argv[1:] or [*DTYPES, "parameters"]
if "parameters" in asked:
    asked.remove("parameters")
    scope = {"jax": jax, "jnp": jnp, "lax": jax.lax, "np": np}
    exec(sweep_parameters.SETUP, scope)
    results = {text: outcome(text, scope, jax.errors) for text in split(sweep_parameters.CALLS)}
    (HERE / "sweep_parameters.json").write_text(json.dumps(results, separators=(",", ":"), indent=0) + "\n")
    print(len(results), "results")
for dtype in asked:
    found = {}
    with jax.enable_x64(dtype == "float64"):
        scope = arguments(jnp, np, dtype)
        for name, texts in calls().items():
            print(dtype, name, end="\033[K\r", flush=True)
            found[name] = [outcome(text, scope, jax.errors) for text in texts]
    path = HERE / "sweep_expected.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    results[dtype] = found
    lines = [
        f"{json.dumps(d)}: {{\n"
        + ",\n".join(f"{json.dumps(n)}: {json.dumps(v, separators=(',', ':'))}" for n, v in by.items())
        + "}"
        for d, by in results.items()
    ]
    path.write_text("{\n" + ",\n".join(lines) + "}\n")
    print(dtype, len(found), "functions,", sum(map(len, found.values())), "results")
