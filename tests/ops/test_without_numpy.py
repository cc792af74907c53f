"""The language where NumPy is blocked: every row of the catalogue, its value and its gradient, computed without it
and compared with it.
"""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from platforms import need

import weft
import weft.numpy as jnp

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from catalogue import ROWS, needs_numpy  # noqa: E402

pytestmark = pytest.mark.slow

need("wasm")


def nested(value):
    return (
        [nested(v) for v in value]
        if isinstance(value, list)
        else value
        if isinstance(value, (bool, int))
        else float(value)
    )


def test_the_catalogue_runs_without_numpy():
    env = dict(os.environ, WEFT_NUMPY="0")
    done = subprocess.run(
        [sys.executable, str(HERE / "catalogue_without_numpy.py")], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    values = {line[0]: line[1:] for line in map(json.loads, done.stdout.splitlines())}
    rows = [r for r in ROWS if r.id in values]
    assert len(rows) == sum(not needs_numpy(r) for r in ROWS)
    for row in rows:
        dtype, shape, value, grads = values[row.id]
        args = [jnp.asarray(a) for a in row.sample()]
        want = np.asarray(row.fun(*args))
        assert (dtype, tuple(shape)) == (str(want.dtype), want.shape), row.id
        if want.dtype.kind == "c":
            want = np.stack([want.real, want.imag], -1)
        tolerance = max(row.rtol, 5e-5)
        np.testing.assert_allclose(
            np.array(nested(value), float).reshape(want.shape),
            want.astype(float),
            rtol=tolerance,
            atol=tolerance,
            err_msg=row.id,
        )
        if grads:
            floats = tuple(i for i, spec in enumerate(row.args) if spec.startswith("f32"))
            wanted = weft.grad(lambda *xs, row=row: jnp.sum(row.fun(*xs)), argnums=floats)(*args)
            for g, w in zip(grads, wanted):
                np.testing.assert_allclose(
                    np.array(nested(g), float).reshape(w.shape), np.asarray(w), rtol=1e-3, atol=1e-4, err_msg=row.id
                )
