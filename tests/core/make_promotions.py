"""Prints the promotion table of real jax: run it with an interpreter that has jax, and keep the output as
promotions.json.
"""

import itertools
import json

import jax

jax.config.update("jax_enable_x64", True)
from jax import numpy as jnp  # noqa: E402

names = [
    "bool",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    "bfloat16",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
values = {n: jnp.zeros((), n) for n in names} | {"int64*": 0, "float64*": 0.0, "complex128*": 0j}
table = {}
for a, b in itertools.product(values, repeat=2):
    r = jnp.add(values[a], values[b]) if not (a == b == "bool") else jnp.logical_and(values[a], values[b])
    table[f"{a} {b}"] = [str(r.dtype), bool(r.weak_type)]
print(json.dumps(table, indent=0))
