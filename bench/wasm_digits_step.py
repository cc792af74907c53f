"""Trace, compile and step times of the digits training step (MLP 64-128-10, Adam, batch 64) on the Wasm backend.

python bench/wasm_digits_step.py [--profile] [--platform wasm|cpu]
"""

import argparse
import cProfile
import pstats
import time

import weft
import weft.numpy as jnp
from weft import lax

SIZES = (64, 128, 10)


def init(key):
    params = []
    for n, m in zip(SIZES, SIZES[1:]):
        key, sub = weft.random.split(key)
        params.append({"w": weft.random.normal(sub, (n, m)) * (2.0 / n) ** 0.5, "b": jnp.zeros((m,))})
    return params


def loss(params, x, y):
    for layer in params[:-1]:
        x = jnp.maximum(x @ layer["w"] + layer["b"], 0.0)
    logits = x @ params[-1]["w"] + params[-1]["b"]
    logp = logits - lax.stop_gradient(logits.max(axis=1, keepdims=True))
    logp = logp - jnp.log(jnp.exp(logp).sum(axis=1, keepdims=True))
    onehot = (y[:, None] == jnp.arange(10)[None, :]).astype(jnp.float32)
    return -(logp * onehot).sum(axis=1).mean()


def adam(grads, params, m, v, t, lr=1e-3, b1=0.9, b2=0.999, eps=1e-8):
    tmap = weft.tree_util.tree_map
    m = tmap(lambda m, g: b1 * m + (1 - b1) * g, m, grads)
    v = tmap(lambda v, g: b2 * v + (1 - b2) * g * g, v, grads)
    c1, c2 = 1 - b1**t, 1 - b2**t
    params = tmap(lambda p, m, v: p - lr * (m / c1) / (jnp.sqrt(v / c2) + eps), params, m, v)
    return params, m, v


def step(params, m, v, t, key, images, labels):
    key, sub = weft.random.split(key)
    index = weft.random.randint(sub, (64,), 0, images.shape[0])
    value, grads = weft.value_and_grad(loss)(params, images[index], labels[index])
    params, m, v = adam(grads, params, m, v, t)
    return params, m, v, t + 1.0, key, value


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--platform", default="wasm")
    parser.add_argument("--text", default=None)
    args = parser.parse_args()
    weft.config.update("jax_platforms", args.platform)
    params = init(weft.random.PRNGKey(0))
    zeros = weft.tree_util.tree_map(jnp.zeros_like, params)
    key = weft.random.PRNGKey(1)
    images, labels = (
        weft.random.uniform(weft.random.PRNGKey(2), (1437, 64)),
        weft.random.randint(weft.random.PRNGKey(3), (1437,), 0, 10),
    )
    state = (params, zeros, zeros, jnp.float32(1.0), key)
    profile = cProfile.Profile()
    best = None
    for _ in range(3):
        jitted = weft.jit(lambda *a: step(*a))
        if args.profile:
            profile.enable()
        t0 = time.perf_counter()
        traced = jitted.trace(*state, images, labels)
        t1 = time.perf_counter()
        lowered = traced.lower().compile()
        t2 = time.perf_counter()
        profile.disable()
        best = min(best or (9, 9), (t1 - t0, t2 - t1), key=sum)
    if args.text:
        print(lowered.as_text(args.text))
    if args.profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(35)
    out = lowered(*state, images, labels)
    n = 300
    losses = []
    for _ in range(2):
        t3 = time.perf_counter()
        for _ in range(n):
            out = jitted(*out[:5], images, labels)
        losses.append(float(out[5]))
        steps = n / (time.perf_counter() - t3)
    print(
        f"trace {best[0] * 1e3:.0f} ms, compile {best[1] * 1e3:.0f} ms, {steps:.0f} steps/s, loss {losses}, equations"
        f" {len(traced.jaxpr.eqns)}"
    )


if __name__ == "__main__":
    main()
