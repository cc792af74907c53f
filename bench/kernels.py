"""Kernels of one's own (weft.experimental.pallas) beside naive programs: the least processor time of a call, in ms.

python bench/kernels.py [platform] [--runs N]     the platform is wasm (one thread; the default), cpu or webgpu

"one by one" is the naive program without jit, each operation a program of its own. Threads that the backend starts are
not counted: on cpu read the column of elapsed time.
"""

import argparse
import functools
import time

import weft
import weft.numpy as jnp
from weft import lax
from weft.experimental import pallas as pl


def shape(x):
    return weft.ShapeDtypeStruct(x.shape, x.dtype)


def naive_product(x, y):
    return (x[:, :, None] * y).sum(1)


def product_kernel(x_ref, y_ref, o_ref):
    @pl.when(pl.program_id(2) == 0)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += x_ref[...] @ y_ref[...]


def product(x, y, size=128, **more):
    n = x.shape[0]
    tile = functools.partial(pl.BlockSpec, (size, size))
    return pl.pallas_call(
        product_kernel,
        shape(x),
        grid=(n // size,) * 3,
        in_specs=[tile(lambda i, j, k: (i, k)), tile(lambda i, j, k: (k, j))],
        out_specs=tile(lambda i, j, k: (i, j)),
        **more,
    )(x, y)


def naive_softmax(x):
    e = jnp.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def softmax_kernel(x_ref, o_ref):
    x = x_ref[...]
    e = jnp.exp(x - x.max(axis=1, keepdims=True))
    o_ref[...] = e * (1 / e.sum(axis=1, keepdims=True))


def softmax(x, rows=4, **more):
    block = pl.BlockSpec((rows, x.shape[1]), lambda i: (i, 0))
    return pl.pallas_call(softmax_kernel, shape(x), grid=x.shape[0] // rows, in_specs=[block], out_specs=block, **more)(
        x
    )


def naive_attention(q, k, v, causal=False):
    n, d = q.shape[1:]
    scores = q @ k.transpose(0, 2, 1) / d**0.5
    if causal:
        scores = jnp.where(jnp.arange(n)[:, None] >= jnp.arange(n), scores, -jnp.inf)
    return weft.nn.softmax(scores) @ v


def attention_kernel(q_ref, k_ref, v_ref, o_ref, *, causal, step):
    i, (size, d) = pl.program_id(1), q_ref.shape
    q = q_ref[...] / d**0.5

    def block(t, carry, last=False):
        out, top, total = carry
        k, v = k_ref[pl.ds(t * step, step)], v_ref[pl.ds(t * step, step)]
        scores = q @ k.T
        if last:
            scores = jnp.where(jnp.arange(size)[:, None] >= jnp.arange(size), scores, -jnp.inf)
        new = jnp.maximum(top, scores.max(axis=1, keepdims=True))
        weights, old = jnp.exp(scores - new), jnp.exp(top - new)
        return out * old + weights @ v, new, total * old + weights.sum(axis=1, keepdims=True)

    begin = jnp.zeros((size, d)), jnp.full((size, 1), -jnp.inf), jnp.zeros((size, 1))
    before = lax.fori_loop(0, i if causal else k_ref.shape[0] // step, block, begin)
    out, _, total = block(i, before, last=True) if causal else before
    o_ref[...] = out / total


def attention(q, k, v, causal=False, size=64, step=64, **more):
    heads, n, d = q.shape
    mine = pl.BlockSpec((None, size, d), lambda h, i: (h, i, 0))
    everything = pl.BlockSpec((None, n, d), lambda h, i: (h, 0, 0))
    kernel = functools.partial(attention_kernel, causal=causal, step=step)
    specs = dict(in_specs=[mine, everything, everything], out_specs=mine)
    return pl.pallas_call(kernel, shape(q), grid=(heads, n // size), **specs, **more)(q, k, v)


def programs():
    """(title, function, operands, whether it is compiled as one)."""
    keys = weft.random.split(weft.random.key(0), 3)
    x, y = weft.random.normal(keys[0], (2, 512, 512))
    rows = weft.random.normal(keys[1], (2048, 1024))
    heads = list(weft.random.normal(keys[2], (3, 4, 2048, 64)))
    causal = functools.partial(naive_attention, causal=True)
    yield "product 512³, naive", naive_product, (x, y), True
    yield "product 512³, x @ y", jnp.matmul, (x, y), True
    yield "product 512³, kernel", product, (x, y), True
    yield "product 512³, kernel as a loop", functools.partial(product, interpret=True), (x, y), True
    yield "softmax 2048 × 1024, naive, one by one", naive_softmax, (rows,), False
    yield "softmax 2048 × 1024, naive", naive_softmax, (rows,), True
    yield "softmax 2048 × 1024, kernel", softmax, (rows,), True
    yield "softmax 2048 × 1024, kernel as a loop", functools.partial(softmax, interpret=True), (rows,), True
    yield "attention 4 × 2048 × 64, naive, one by one", naive_attention, heads, False
    yield "attention 4 × 2048 × 64, naive", naive_attention, heads, True
    yield "attention 4 × 2048 × 64, kernel", attention, heads, True
    yield "causal attention, naive", causal, heads, True
    yield "causal attention, kernel", functools.partial(attention, causal=True), heads, True


def measure(f, args, runs):
    """The least (processor time, elapsed time) of a call, in ms."""
    weft.block_until_ready(f(*args))
    found = []
    for _ in range(runs):
        start = time.thread_time(), time.perf_counter()
        weft.block_until_ready(f(*args))
        found.append((time.thread_time() - start[0], time.perf_counter() - start[1]))
    return [1e3 * min(times) for times in zip(*found)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("platform", nargs="?", default="wasm")
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args()
    weft.config.update("jax_default_device", weft.devices(options.platform)[0])
    print(f"{'':44}{'processor':>10}{'elapsed':>10}")
    for title, f, args, whole in programs():
        own, elapsed = measure(weft.jit(f) if whole else f, args, options.runs)
        print(f"{title:44}{own:10.1f}{elapsed:10.1f}", flush=True)
