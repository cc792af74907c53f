"""One small calculation on one platform: `python -m weft.doctor.calculation PLATFORM [URL]`, in a process of its own,
because what is wrong with a driver often ends the process or never returns.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import weft
import weft.numpy as jnp
import weft.remote
from weft.base.errors import BackendError

MARK = "weft.doctor: "  # begins the line of the result
TOKEN = "WEFT_HOST_TOKEN"
TOLERANCE = 1e-4  # of float32 with the fast functions of a GPU; a wrong kernel is off by far more

X = [[0.5, -1.0, 0.25], [1.5, 0.75, -0.5], [-0.25, 2.0, 1.0], [0.0, 0.5, -1.5]]
W = [[0.3, -0.2], [0.1, 0.4], [-0.6, 0.7]]


def expected() -> tuple[float, list[list[float]], list[float]]:
    """The value, gradient and sorted rows of `calculation` by Python's floats."""
    hidden = [[math.tanh(sum(x * W[k][j] for k, x in enumerate(row))) for j in range(2)] for row in X]
    slopes = [[2 * h * (1 - h * h) for h in row] for row in hidden]
    gradient = [[sum(X[i][k] * slopes[i][j] for i in range(len(X))) for j in range(2)] for k in range(3)]
    return sum(h * h for row in hidden for h in row), gradient, sorted(h for row in hidden for h in row)


@weft.jit
def calculation(x: Any, w: Any) -> Any:
    """A product, a function, a sum, their gradient, and a sort: the value, the gradient, and the sorted values."""

    def loss(w):
        hidden = jnp.tanh(jnp.matmul(x, w, precision="highest"))
        return jnp.sum(hidden * hidden), hidden

    (value, hidden), gradient = weft.value_and_grad(loss, has_aux=True)(w)
    return value, gradient, jnp.sort(hidden.ravel())


def calculate(platform: str) -> dict[str, Any]:
    """Runs the calculation on a platform's first device, and says what it took. Raises what the backend raises, and
    BackendError if the numbers are wrong.
    """
    devices = weft.devices(platform)
    with weft.default_device(devices[0]):
        x, w = jnp.asarray(X, jnp.float32), jnp.asarray(W, jnp.float32)
        begin = time.perf_counter()
        value, gradient, ordered = calculation(x, w)
        got = [float(value), *_flat(gradient.tolist()), *ordered.tolist()]
        middle = time.perf_counter()
        calculation(x, w)[0].block_until_ready()
        again = time.perf_counter() - middle
    total, slopes, rows = expected()
    want = [total, *_flat(slopes), *rows]
    error = max(abs(a - b) / max(1.0, abs(b)) for a, b in zip(got, want))
    if not error <= TOLERANCE:
        raise BackendError(
            f"the results are wrong: {got[:3]} instead of {want[:3]}. Update the device's driver, and report this."
        )
    return {
        "devices": len(devices),
        "kind": str(devices[0].device_kind),
        "error": error,
        "first": middle - begin,
        "again": again,
    }


def _flat(rows: list[list[float]]) -> list[float]:
    return [x for row in rows for x in row]


@contextlib.contextmanager
def connected(url: str | None) -> Iterator[None]:
    """A session on the host at an address, or on one that runs here for as long as the block."""
    if url is not None:
        with weft.remote.connect(url, token=os.environ.get(TOKEN, "")):
            yield
        return
    token = secrets.token_urlsafe(16)
    command = [sys.executable, "-W", "ignore", "-m", "weft_native.host", "--port", "0", "--platform", "cpu"]
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        process = subprocess.Popen(
            command, env={**os.environ, TOKEN: token}, stdout=subprocess.PIPE, stderr=log, text=True
        )
        try:
            assert process.stdout is not None
            found = re.search(r"wss?://[\d.:]+", process.stdout.readline())
            if found is None:
                process.wait(20)
                log.seek(0)
                raise BackendError(
                    f"a host can't be started here: {log.read().strip()[-500:] or 'it printed no address'}"
                )
            with weft.remote.connect(found[0], token=token):
                yield
        finally:
            process.terminate()
            process.wait(20)


def main(arguments: list[str]) -> None:
    """Prints the result as one line of JSON: of `calculate`, or the error's class and message."""
    platform, *rest = arguments
    try:
        with connected(rest[0] if rest else None) if platform == "remote" else contextlib.nullcontext():
            result = calculate(platform)
    except (RuntimeError, ValueError, TypeError, ImportError, OSError) as e:
        result = {"failed": type(e).__name__, "message": str(e)}
    print(f"\n{MARK}{json.dumps(result)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
