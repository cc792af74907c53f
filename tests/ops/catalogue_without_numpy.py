"""Runs every row of the catalogue compiled to WebAssembly where NumPy is blocked, and prints the values: one JSON
line for each row.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import weft  # noqa: E402
import weft.numpy as jnp  # noqa: E402
from catalogue import ROWS, needs_numpy  # noqa: E402

assert weft.base.host.np is None and "numpy" not in sys.modules
weft.config.update("jax_platforms", "wasm")


def plain(value):
    """Nested lists with NaN and infinities as words, complex numbers as pairs."""
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    return (
        [plain(v) for v in value]
        if isinstance(value, list)
        else value
        if isinstance(value, (bool, int))
        else repr(float(value))
    )


for row in ROWS:
    if needs_numpy(row):
        continue
    args = [jnp.asarray(a) for a in row.sample()]
    out = weft.jit(row.fun)(*args)
    grads = None
    floats = [i for i, spec in enumerate(row.args) if spec.startswith("f32")]
    if row.grad:
        grads = [
            g.tolist() for g in weft.grad(lambda *xs, row=row: jnp.sum(row.fun(*xs)), argnums=tuple(floats))(*args)
        ]
    print(
        json.dumps(
            [row.id, str(out.dtype), list(out.shape), plain(out.tolist()), [plain(g) for g in grads] if grads else None]
        )
    )
assert "numpy" not in sys.modules
