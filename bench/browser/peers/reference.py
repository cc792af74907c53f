"""Inputs and exact results of the workloads of bench/browser/peers.mjs, and their times outside of a browser.

python reference.py data FOLDER NAME …      writes inputs, results in float64 arithmetic, and FOLDER/manifest.json
python reference.py numpy|weft FOLDER NAME …   prints {name: ms} as JSON, one thread
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Callable

if sys.argv[1:2] != ["data"]:  # before NumPy and XLA start their threads
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import numpy as np  # noqa: E402

STEPS = 10_000
Arrays = list[np.ndarray]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape, dtype=np.float32)


def symmetric(n: int, radius: float) -> np.ndarray:
    """With eigenvalues up to `radius`, so that the recurrence settles at a point and rounding errors die out."""
    a = normal(n, n)
    a = a + a.T
    return (a * (radius / np.abs(np.linalg.eigvalsh(a)).max())).astype(np.float32)


def positive_definite(n: int) -> np.ndarray:
    a = normal(n, n)
    return (a @ a.T / n + np.eye(n, dtype=np.float32)).astype(np.float32)


def mlp_inputs() -> Arrays:
    sizes = (784, 512, 512, 10)
    params = [
        p
        for n, m in zip(sizes, sizes[1:])
        for p in (normal(n, m) * np.float32(n**-0.5), normal(m, seed=1) * np.float32(0.1))
    ]
    return [*params, normal(128, 784)]


def one_hot() -> np.ndarray:
    return np.eye(10, dtype=np.float32)[np.arange(128) % 10]


INPUTS: dict[str, Callable[[], Arrays]] = {
    **{f"matmul_{n}": lambda n=n: [normal(n, n), normal(n, n, seed=1)] for n in (256, 512, 1024, 2048)},
    "chain_1m": lambda: [normal(1 << 20)],
    "chain_16m": lambda: [normal(1 << 24)],
    "softmax": lambda: [normal(4096, 1024)],
    "layer_norm": lambda: [normal(4096, 1024)],
    "sum_axis0": lambda: [normal(4096, 4096)],
    "sum_axis1": lambda: [normal(4096, 4096)],
    "mlp_forward": mlp_inputs,
    "mlp_train": lambda: [*mlp_inputs(), one_hot()],
    "conv_56": lambda: [normal(1, 56, 56, 64), normal(3, 3, 64, 64) / 24],
    "conv_28": lambda: [normal(32, 28, 28, 32), normal(3, 3, 32, 64) / 17],
    "attention": lambda: [normal(8, 512, 64, seed=s) for s in range(3)],
    "scan": lambda: [normal(64), symmetric(64, 2.0)],
    "sort": lambda: [normal(1 << 20)],
    "cumsum": lambda: [normal(1 << 20)],
    "fft": lambda: [normal(1 << 18, seed=s) for s in range(2)],
    "cholesky": lambda: [positive_definite(512)],
    "svd": lambda: [normal(256, 256)],
    **{name: lambda: [normal(4)] for name in ("eager", "jit", "readback", "exported")},
}

# largest difference allowed, relative to the largest result; 1e-4 where not named
TOLERANCES = {
    "sort": 0.0,
    "mlp_train": 2e-6,
    "cumsum": 1e-3,
    "svd": 1e-3,
    "eager": 1e-6,
    "jit": 1e-6,
    "readback": 1e-6,
    "exported": 1e-6,
}


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layer_norm(x):
    mean = x.mean(axis=-1, keepdims=True)
    centred = x - mean
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + x.dtype.type(1e-5))


def mlp(w1, b1, w2, b2, w3, b3, x):
    x = np.maximum(x @ w1 + b1, 0)
    x = np.maximum(x @ w2 + b2, 0)
    return x @ w3 + b3


def mlp_train(w1, b1, w2, b2, w3, b3, x, y):
    h1 = np.maximum(x @ w1 + b1, 0)
    h2 = np.maximum(h1 @ w2 + b2, 0)
    d3 = (softmax(h2 @ w3 + b3) - y) / x.dtype.type(len(x))
    d2 = d3 @ w3.T * (h2 > 0)
    d1 = d2 @ w2.T * (h1 > 0)
    grads = (x.T @ d1, d1.sum(axis=0), h1.T @ d2, d2.sum(axis=0), h2.T @ d3, d3.sum(axis=0))
    rate = x.dtype.type(0.01)
    return [p - rate * g for p, g in zip((w1, b1, w2, b2, w3, b3), grads)]


def conv(x, w):
    n, height, width, channels = x.shape
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    patches = [padded[:, i : i + height, j : j + width] for i in range(3) for j in range(3)]
    return (np.concatenate(patches, axis=-1).reshape(-1, 9 * channels) @ w.reshape(9 * channels, -1)).reshape(
        n, height, width, -1
    )


def attention(q, k, v):
    return softmax(q @ k.swapaxes(-1, -2) * q.dtype.type(q.shape[-1] ** -0.5)) @ v


def scan(x, w):
    keep, add = x.dtype.type(0.99), x.dtype.type(0.01)
    for _ in range(STEPS):
        x = keep * x + add * np.tanh(x @ w)
    return x


def fft(re, im):
    return np.fft.fft(re + 1j * im)


REFERENCE: dict[str, Callable] = {
    **{f"matmul_{n}": np.matmul for n in (256, 512, 1024, 2048)},
    **{
        name: lambda x: np.tanh(x) * x.dtype.type(0.5) + np.sin(x) * x + np.exp(-x * x)
        for name in ("chain_1m", "chain_16m")
    },
    "softmax": softmax,
    "layer_norm": layer_norm,
    "sum_axis0": lambda x: x.sum(axis=0),
    "sum_axis1": lambda x: x.sum(axis=1),
    "mlp_forward": mlp,
    "mlp_train": mlp_train,
    "conv_56": conv,
    "conv_28": conv,
    "attention": attention,
    "scan": scan,
    "sort": np.sort,
    "cumsum": np.cumsum,
    "fft": fft,
    "cholesky": np.linalg.cholesky,
    "svd": lambda a: np.linalg.svd(a, full_matrices=False),
    **{name: lambda x: x + x.dtype.type(1) for name in ("eager", "jit", "readback", "exported")},
}


def expected(name: str, inputs: Arrays) -> Arrays:
    """Results in float64 arithmetic, as the peers give them: real, and of an SVD the singular values and the product
    of the factors.
    """
    exact = [x.astype(np.float64) for x in inputs]
    if name == "svd":
        return [np.linalg.svd(exact[0], compute_uv=False), exact[0]]
    out = REFERENCE[name](*exact)
    if name == "fft":
        return [out.real, out.imag]
    return out if isinstance(out, list) else [out]


def write_data(folder: Path, names: list[str]) -> None:
    manifest = {}
    for name in names:
        inputs = INPUTS[name]()
        entry = manifest[name] = {"tolerance": TOLERANCES.get(name, 1e-4), "inputs": [], "outputs": []}
        for kind, arrays in (("inputs", inputs), ("outputs", expected(name, inputs))):
            for k, x in enumerate(arrays):
                file = f"{name}.{kind}{k}.f32"
                np.ascontiguousarray(x, dtype="<f4").tofile(folder / file)
                entry[kind].append({"file": file, "shape": list(x.shape)})
    (folder / "manifest.json").write_text(json.dumps(manifest))


def read_inputs(folder: Path, name: str) -> Arrays:
    specs = json.loads((folder / "manifest.json").read_text())[name]["inputs"]
    return [np.fromfile(folder / s["file"], dtype="<f4").reshape(s["shape"]) for s in specs]


def median_ms(measure: Callable[[int], float], rounds: int = 9) -> float:
    """The median over rounds of at least 30 ms; `measure(calls)` is the time of one call in ms."""
    measure(1)
    calls = max(1, min(20_000, int(30 / max(measure(1), 1e-4))))
    rounds = max(3, min(rounds, int(3000 / max(measure(calls) * calls, 1e-4))))
    return sorted(measure(calls) for _ in range(rounds))[rounds // 2]


def time_numpy(name: str, inputs: Arrays) -> float:
    fun = REFERENCE[name]
    if name == "fft":
        z = (inputs[0] + 1j * inputs[1]).astype(np.complex64)
        fun, inputs = np.fft.fft, [z]
    if name in ("readback", "exported"):
        fun = lambda x: (x + np.float32(1)).tolist()

    def measure(calls: int) -> float:
        start = time.perf_counter()
        for _ in range(calls):
            fun(*inputs)
        return (time.perf_counter() - start) * 1e3 / calls

    return median_ms(measure)


def time_weft(name: str, inputs: Arrays) -> float:
    import weft.numpy as jnp
    import workloads

    workloads.prepare(name, [jnp.asarray(x) for x in inputs])
    try:
        return median_ms(lambda calls: workloads.measure(name, calls))
    finally:
        workloads.forget(name)


def export(folder: Path) -> None:
    """Writes the function that pages call without Python."""
    import weft
    import workloads

    weft.export.web(workloads.successor, weft.ShapeDtypeStruct((4,), np.float32), path=folder)


def main(what: str, folder: str, *names: str) -> None:
    if what == "data":
        write_data(Path(folder), list(names))
        return
    if what == "export":
        export(Path(folder))
        return
    time_one = {"numpy": time_numpy, "weft": time_weft}[what]
    if what == "weft":
        import weft

        weft.config.update("jax_platforms", "cpu")
    print(json.dumps({name: time_one(name, read_inputs(Path(folder), name)) for name in names}))


if __name__ == "__main__":
    main(*sys.argv[1:])
