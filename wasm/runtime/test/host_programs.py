"""Writes exported programs, with arguments and results as JSON, into the folder that is named: for hosts.test.ts."""

import json
import pathlib
import sys

import numpy as np
import weft
import weft.numpy as jnp
from weft import export, lax

W = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def layers(x, state):
    """Constants, a tuple in a dict, a scalar and several dtypes."""
    y = jnp.tanh(x @ W)
    kinds = (y > 0, jnp.round(y * 100).astype(jnp.int8), jnp.sum(y, axis=0) + 1j)
    return {"y": y, "kinds": kinds, "n": state["n"] + 1}


def step(state, x):
    """A loop's step, whose state may be donated."""
    return state + x, jnp.sum(state)


def many(x):
    """Many equations."""
    for _ in range(300):
        x = jnp.sin(x)
    return x


def endless(x):
    """A loop that does not end for any x above 0."""
    return lax.while_loop(lambda v: v[0] > 0, lambda v: v + 1, x)


def large(x):
    """Results that don't come in one reply."""
    return jnp.arange(20_000, dtype=jnp.float32) + x, x > 1, jnp.full((150, 150), x)


F4 = np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3)
PROGRAMS = {
    "layers": (layers, (F4, {"n": np.int32(4)})),
    "step": (step, (np.arange(4, dtype=np.float64), np.float64(0.5))),
    "many": (many, (F4,)),
    "large": (large, (np.float32(2.5),)),
    "endless": (endless, (np.ones(2, np.float32),)),
}


def plain(value):
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    value = np.asarray(value)
    numbers = value.view(value.real.dtype).ravel() if value.dtype.kind == "c" else value.ravel()
    return {"dtype": str(value.dtype), "shape": list(value.shape), "numbers": numbers.astype(float).tolist()}


folder = pathlib.Path(sys.argv[1])
with weft.enable_x64(True):
    for name, (function, args) in PROGRAMS.items():
        (folder / f"{name}.weft").write_bytes(export.export(weft.jit(function))(*args).serialize())
        result = None if name == "endless" else plain(function(*args))
        (folder / f"{name}.json").write_text(json.dumps({"args": plain(args), "result": result}))

# for pages and hosts: its arguments are narrower than JavaScript's arrays, and a tree's keys have another order
with weft.enable_x64(True):
    export.web(
        lambda halves, b: {"b": b["10"] * 2, "9": (halves * 2).sum(), "10": halves.astype(jnp.bfloat16)},
        weft.ShapeDtypeStruct((4,), jnp.bfloat16),
        {"9": weft.ShapeDtypeStruct((), jnp.float64), "10": weft.ShapeDtypeStruct((2,), jnp.int64)},
        path=folder / "site",
        name="mixed",
        host=True,
    )
