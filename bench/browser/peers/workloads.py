"""The workloads of bench/browser/peers.mjs in weft: the same source in the page and on a desktop.

`prepare(name, arrays)` compiles one for its inputs and keeps it; `measure(name, calls)` is the time of a call in ms.
"""

import time
from typing import Any, Callable, Sequence

import weft
import weft.numpy as jnp
from weft import lax

STEPS = 10_000


def chain(x):
    return jnp.tanh(x) * 0.5 + jnp.sin(x) * x + jnp.exp(-x * x)


def softmax(x):
    return weft.nn.softmax(x, axis=-1)


def layer_norm(x):
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5)


def mlp(w1, b1, w2, b2, w3, b3, x):
    x = jnp.maximum(x @ w1 + b1, 0)
    x = jnp.maximum(x @ w2 + b2, 0)
    return x @ w3 + b3


def mlp_train(w1, b1, w2, b2, w3, b3, x, y):
    def loss(params):
        return -(weft.nn.log_softmax(mlp(*params, x)) * y).sum(axis=-1).mean()

    params = (w1, b1, w2, b2, w3, b3)
    return [p - 0.01 * g for p, g in zip(params, weft.grad(loss)(params))]


def conv(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def attention(q, k, v):
    scores = jnp.einsum("hqd,hkd->hqk", q, k) * (q.shape[-1] ** -0.5)
    return jnp.einsum("hqk,hkd->hqd", softmax(scores), v)


def scan(x, w):
    return lax.scan(lambda x, _: (0.99 * x + 0.01 * jnp.tanh(x @ w), None), x, None, length=STEPS)[0]


def svd(a):
    return jnp.linalg.svd(a, full_matrices=False)


def successor(x):
    return x + 1


# name -> the function, and whether users would put it under jit
WORKLOADS: dict[str, tuple[Callable, bool]] = {
    **{f"matmul_{n}": (jnp.matmul, True) for n in (256, 512, 1024, 2048)},
    "chain_1m": (chain, True),
    "chain_16m": (chain, True),
    "softmax": (softmax, True),
    "layer_norm": (layer_norm, True),
    "sum_axis0": (lambda x: x.sum(axis=0), True),
    "sum_axis1": (lambda x: x.sum(axis=1), True),
    "mlp_forward": (mlp, True),
    "mlp_train": (mlp_train, True),
    "conv_56": (conv, True),
    "conv_28": (conv, True),
    "attention": (attention, True),
    "scan": (scan, True),
    "sort": (jnp.sort, True),
    "cumsum": (jnp.cumsum, True),
    "fft": (jnp.fft.fft, True),
    "cholesky": (jnp.linalg.cholesky, True),
    "svd": (svd, True),
    "eager": (successor, False),
    "jit": (successor, True),
    "readback": (successor, True),
    "exported": (successor, True),  # in the page without Python
}

_ready: dict[str, Callable[[], Any]] = {}


def prepare(name: str, arrays: Sequence) -> list:
    """Makes `name` ready to be measured and returns its results, all real."""
    fun, jitted = WORKLOADS[name]
    if name == "fft":
        arrays = [lax.complex(*arrays)]
    fun = weft.jit(fun) if jitted else fun
    call: Callable[[], Any] = lambda: fun(*arrays)
    _ready[name] = (lambda: call().tolist()) if name in ("readback", "exported") else call
    out = call()
    if name == "svd":  # the signs of singular vectors are free, their product is not
        u, s, vt = out
        return [s, (u * s) @ vt]
    if name == "fft":
        return [out.real, out.imag]
    return list(out) if isinstance(out, (tuple, list)) else [out]


def measure(name: str, calls: int) -> float:
    """Time of one call in ms, the mean over `calls`, each waited for, after one that is not counted: the caches are
    full of what others have left.
    """
    call, wait, clock = _ready[name], weft.block_until_ready, time.perf_counter
    wait(call())
    start = clock()
    for _ in range(calls):
        wait(call())
    return (clock() - start) * 1e3 / calls


def forget(name: str) -> None:
    """Lets the inputs of `name` go."""
    _ready.pop(name, None)
