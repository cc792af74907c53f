"""The peers' workloads (shared table of peers) on the Wasm backend under wasmtime, one thread: medians in ms.

python bench/wasm_workloads.py [name …] [--text groups|ir]
"""

import argparse
import statistics
import time

import weft
import weft.numpy as jnp
from weft import lax


def random(*shape, seed=0):
    return weft.random.normal(weft.random.PRNGKey(seed), shape)


def softmax(x):
    return weft.nn.softmax(x, axis=-1)


def layer_norm(x):
    mean = x.mean(axis=-1, keepdims=True)
    var = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5)


def mlp_init():
    sizes = (784, 512, 512, 10)
    return [(random(n, m) * 0.05, jnp.zeros(m)) for n, m in zip(sizes, sizes[1:])]


def mlp(params, x):
    for w, b in params[:-1]:
        x = jnp.maximum(x @ w + b, 0)
    return x @ params[-1][0] + params[-1][1]


def mlp_train(params, x, y):
    def loss(params):
        return -(weft.nn.log_softmax(mlp(params, x)) * y).sum(axis=-1).mean()

    grads = weft.grad(loss)(params)
    return weft.tree_util.tree_map(lambda p, g: p - 0.01 * g, params, grads)


def attention(q, k, v):
    scores = jnp.einsum("hqd,hkd->hqk", q, k) * (64**-0.5)
    return jnp.einsum("hqk,hkd->hqd", softmax(scores), v)


def recurrent(x, w):
    return lax.fori_loop(0, 10_000, lambda _, x: 0.99 * x + 0.01 * jnp.tanh(x @ w), x)


WORKLOADS = {
    "matmul 256": (lambda a, b: a @ b, lambda: (random(256, 256), random(256, 256))),
    "matmul 512": (lambda a, b: a @ b, lambda: (random(512, 512), random(512, 512))),
    "matmul 1024": (lambda a, b: a @ b, lambda: (random(1024, 1024), random(1024, 1024))),
    "matvec 2048": (lambda a, b: a @ b, lambda: (random(2048, 2048), random(2048))),
    "vecmat 2048": (lambda a, b: b @ a, lambda: (random(2048, 2048), random(2048))),
    "chain 1M": (lambda x: jnp.tanh(x) * 0.5 + jnp.sin(x) * x + jnp.exp(-x * x), lambda: (random(1 << 20),)),
    "softmax": (softmax, lambda: (random(4096, 1024),)),
    "layer norm": (layer_norm, lambda: (random(4096, 1024),)),
    "sum axis 0": (lambda x: x.sum(axis=0), lambda: (random(4096, 4096),)),
    "sum axis 1": (lambda x: x.sum(axis=1), lambda: (random(4096, 4096),)),
    "transpose": (lambda x: x.T + 1, lambda: (random(2048, 2048),)),
    "mlp train": (mlp_train, lambda: (mlp_init(), random(128, 784), weft.nn.one_hot(jnp.arange(128) % 10, 10))),
    "mlp forward": (mlp, lambda: (mlp_init(), random(128, 784))),
    "attention": (attention, lambda: (random(8, 512, 64), random(8, 512, 64, seed=1), random(8, 512, 64, seed=2))),
    "recurrence": (recurrent, lambda: (random(64), random(64, 64) * 0.1)),
    "sort 1M": (lambda x: jnp.sort(x), lambda: (random(1 << 20),)),
    "cumsum 1M": (lambda x: jnp.cumsum(x), lambda: (random(1 << 20),)),
    "random 1M": (lambda k: weft.random.normal(k, (1 << 20,)), lambda: (weft.random.PRNGKey(0),)),
    "gather rows": (
        lambda x, i: x[i],
        lambda: (random(10000, 64), weft.random.randint(weft.random.PRNGKey(1), (20000,), 0, 10000)),
    ),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--text")
    parser.add_argument("--platform", default="wasm")
    args = parser.parse_args()
    weft.config.update("jax_platforms", args.platform)
    for name, (fun, make) in WORKLOADS.items():
        if args.names and name not in args.names:
            continue
        values = make()
        t = time.perf_counter()
        compiled = weft.jit(fun).lower(*values).compile()
        compile_ms = (time.perf_counter() - t) * 1e3
        if args.text:
            print(compiled.as_text(args.text))
        times = []
        start = time.perf_counter()
        while len(times) < 30 and (len(times) < 3 or time.perf_counter() - start < 1.5):
            t = time.perf_counter()
            weft.block_until_ready(compiled(*values))
            times.append(time.perf_counter() - t)
        print(f"{name:14} {statistics.median(times) * 1e3:9.2f} ms   compile {compile_ms:6.0f} ms", flush=True)


if __name__ == "__main__":
    main()
