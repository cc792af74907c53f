"""How much sooner a second process has the first result of a jitted function with the persistent compile cache.

    python bench/compile_cache.py

The program is the gradient step of a transformer (12 layers, width 512, vocabulary 1,000, batch 8 x 128, written in plain weft.numpy), in two
processes over one empty cache folder. Printed are, for each, the seconds from the call of the jitted function to its result (import and
parameters not counted), its phases, and the ratio of the two.
"""
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

LAYERS, WIDTH, VOCABULARY, BATCH, LENGTH, HEADS = 12, 512, 1000, 8, 128, 8


def parameters(jnp, np):
    """Weights of a small standard deviation, from a fixed seed."""
    rng = np.random.default_rng(0)
    make = lambda *shape: jnp.asarray(rng.standard_normal(shape, dtype=np.float32) * 0.02)
    layer = lambda: {"norm1": jnp.ones(WIDTH), "qkv": make(WIDTH, 3 * WIDTH), "out": make(WIDTH, WIDTH),
                     "norm2": jnp.ones(WIDTH), "up": make(WIDTH, 4 * WIDTH), "down": make(4 * WIDTH, WIDTH)}
    return {"tokens": make(VOCABULARY, WIDTH), "places": make(LENGTH, WIDTH), "layers": [layer() for _ in range(LAYERS)], "norm": jnp.ones(WIDTH)}


def make_step(lib, jnp):
    """(parameters, tokens) -> (parameters after a step of gradient descent, loss)."""
    def normalise(x, scale):
        mean = jnp.mean(x, -1, keepdims=True)
        return (x - mean) / jnp.sqrt(jnp.mean((x - mean) ** 2, -1, keepdims=True) + 1e-5) * scale

    def attention(p, x):
        q, k, v = [jnp.reshape(part, (BATCH, LENGTH, HEADS, -1)) for part in jnp.split(x @ p["qkv"], 3, -1)]
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(q.shape[-1])
        scores = jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH), bool)), scores, -1e9)
        return jnp.reshape(jnp.einsum("bhqk,bkhd->bqhd", lib.nn.softmax(scores), v), x.shape) @ p["out"]

    def loss(params, tokens):
        x = params["tokens"][tokens] + params["places"]
        for p in params["layers"]:
            x = x + attention(p, normalise(x, p["norm1"]))
            x = x + lib.nn.gelu(normalise(x, p["norm2"]) @ p["up"]) @ p["down"]
        logits = lib.nn.log_softmax(normalise(x, params["norm"]) @ params["tokens"].T)[:, :-1]
        return -jnp.mean(jnp.take_along_axis(logits, tokens[:, 1:, None], -1))

    def step(params, tokens):
        value, gradient = lib.value_and_grad(loss)(params, tokens)
        return lib.tree.map(lambda p, g: p - 0.1 * g, params, gradient), value
    return step


def measure(folder: str) -> dict[str, float]:
    """Seconds to the first result, in this process."""
    import numpy as np
    import weft as lib
    import weft.numpy as jnp
    lib.config.update("jax_platforms", "cpu")
    lib.config.update("jax_compilation_cache_dir", folder)
    lib.nn, lib.monitoring      # what an import would load
    phases: dict[str, float] = {}
    lib.monitoring.register_event_duration_secs_listener(lambda event, seconds, **_: phases.__setitem__(event, phases.get(event, 0) + seconds))
    params = parameters(jnp, np)
    tokens = jnp.asarray(np.random.default_rng(1).integers(0, VOCABULARY, (BATCH, LENGTH)).astype(np.int32))
    lib.block_until_ready((params, tokens))
    step = lib.jit(make_step(lib, jnp))
    phases.clear()
    start = time.perf_counter()
    _, loss = step(params, tokens)
    loss = float(loss)
    return {"seconds": time.perf_counter() - start, "loss": loss, **{k.rsplit("/", 1)[-1]: v for k, v in phases.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    folder = parser.parse_args().measure
    if folder:
        print(json.dumps(measure(folder)))
        return
    with tempfile.TemporaryDirectory() as folder:
        runs = [json.loads(subprocess.run([sys.executable, os.path.abspath(__file__), "--measure", folder], check=True, capture_output=True,
                                          text=True).stdout.splitlines()[-1]) for _ in range(2)]
    for which, run in zip(("first", "second"), runs):
        print(f"{which:7}", "  ".join(f"{name} {value:.3f}" for name, value in run.items()))
    print(f"ratio   {runs[1]['seconds'] / runs[0]['seconds']:.3f}")


if __name__ == "__main__":
    main()
