"""Writes linalg_expected.json next to this file: what real JAX does with every case of linalg_cases.py.

<a Python with jax 0.10.2> tests/ops/make_linalg_expected.py
"""

import json
import pathlib
import sys
import warnings

import jax
import jax.numpy as jnp
from jax import lax

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from linalg_cases import (
    CALLS,
    DTYPES,
    EDGES,
    ERRORS,
    JAXPRS,
    PLATFORMS,
    REAL,
    REAL_CALLS,
    error_of,
    helpers,
    kernels,
)  # noqa: E402

warnings.simplefilter("ignore")
names = {"lax": lax, "linalg": lax.linalg, "jnp": jnp, **helpers(jnp, jax.jvp)}


def calls(function, shapes, dtype, platform):
    try:
        return kernels(
            jax.jit(function)
            .trace(*[jax.ShapeDtypeStruct(s, dtype) for s in shapes])
            .lower(lowering_platforms=(platform,))
            .as_text()
        )
    except Exception as e:
        return type(e).__name__


out = {"errors": {e: error_of(e, names) for e in ERRORS}}
out["jaxprs"] = {
    e: (lambda f, shapes: str(jax.make_jaxpr(f)(*[jnp.ones(s) for s in shapes])))(*eval(e, dict(names))) for e in JAXPRS
}
with jax.enable_x64(True):
    out["calls"] = {
        f"{name} {dtype} {platform}": calls(eval(f, dict(names)), shapes, dtype, platform)
        for cases, types in ((CALLS, DTYPES), (REAL_CALLS, REAL))
        for name, (f, shapes) in cases.items()
        for dtype in types
        for platform in PLATFORMS
    }
    value = lambda f, args: float(f(*map(jnp.asarray, args)))
    out["edges"] = {name: [value(getattr(lax, name), args) for args in rows] for name, rows in EDGES.items()}
(HERE / "linalg_expected.json").write_text(
    "{\n"
    + ",\n".join(
        f"{json.dumps(k)}: {{\n" + ",\n".join(f"{json.dumps(n)}: {json.dumps(v)}" for n, v in part.items()) + "}"
        for k, part in out.items()
    )
    + "}\n"
)
print({k: len(v) for k, v in out.items()})
