"""A decoder-only transformer and its gradient step in plain jax.numpy, for the benchmarks that run it under weft and
under jax.

Whoever imports this has imported jax, or `weft.as_jax`.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

LAYERS, WIDTH, HEADS, VOCABULARY, BATCH, LENGTH = 12, 512, 8, 1000, 8, 128


def parameters(layers: int = LAYERS, width: int = WIDTH, vocabulary: int = VOCABULARY, length: int = LENGTH) -> dict:
    """Host arrays, so that making them costs neither library anything."""
    rng = np.random.default_rng(0)

    def matrix(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    return {
        "embedding": matrix(vocabulary, width),
        "positions": 0.02 * matrix(length, width),
        "layers": [
            {
                "norm1": np.ones(width, np.float32),
                "qkv": matrix(width, 3 * width),
                "out": matrix(width, width),
                "norm2": np.ones(width, np.float32),
                "up": matrix(width, 4 * width),
                "down": matrix(4 * width, width),
            }
            for _ in range(layers)
        ],
        "norm": np.ones(width, np.float32),
    }


def normalise(x, scale):
    mean = jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.var(x, axis=-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale


def attention(p, x, heads):
    batch, length, width = x.shape
    q, k, v = jnp.split((x @ p["qkv"]).reshape(batch, length, heads, -1), 3, axis=-1)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(width / heads)
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)
    return mixed.reshape(batch, length, width) @ p["out"]


def loss(params, tokens, heads=HEADS):
    x = params["embedding"][tokens] + params["positions"]
    for p in params["layers"]:
        x = x + attention(p, normalise(x, p["norm1"]), heads)
        x = x + jax.nn.gelu(normalise(x, p["norm2"]) @ p["up"]) @ p["down"]
    logits = normalise(x, params["norm"]) @ params["embedding"].T
    log_probabilities = jax.nn.log_softmax(logits[:, :-1])
    return -jnp.mean(jnp.take_along_axis(log_probabilities, tokens[:, 1:, None], axis=-1))


@partial(jax.jit, donate_argnums=0)
def step(params, tokens):
    """One step of gradient descent; returns the new parameters and the loss."""
    value, gradient = jax.value_and_grad(loss)(params, tokens)
    return jax.tree_util.tree_map(lambda p, g: p - 0.01 * g, params, gradient), value


def tokens(batch: int = BATCH, length: int = LENGTH, vocabulary: int = VOCABULARY):
    return np.random.default_rng(1).integers(0, vocabulary, (batch, length), dtype=np.int32)
