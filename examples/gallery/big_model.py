# %% [markdown]
# # A model too big for a page
#
# A page has a few gigabytes and one processor. This document asks how far that goes, and hands
# the rest to a machine with an accelerator: the same program, with its weights there and this
# page as its front.
#
# A layer of a transformer of width $d$ has about $12 d^2$ weights, and a token costs two
# operations for each, forward ([Kaplan and others](https://arxiv.org/abs/2001.08361), 2020, table
# 1):
#
# $$N \approx 12\, L\, d^2, \qquad C \approx 2N \text{ for each token}.$$

# %%
import time

import jax
import jax.numpy as jnp
from weft import plot

ADDRESS, TOKEN = "", ""  # as weft-host prints them; left empty, all runs here
WIDTHS, LAYERS, TOKENS = (64, 128, 256, 384), 2, 64

# %% [markdown]
# ## The model
#
# Blocks of a transformer without ornaments. All layers have one shape, so that their weights form
# one array for each kind, and `scan` compiles a single layer however many there are.


# %%
def init(key, width):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    normal = lambda key, m, n: jax.random.normal(key, (LAYERS, m, n)) / m**0.5
    return {
        "qkv": normal(k1, width, 3 * width),
        "out": normal(k2, width, width),
        "up": normal(k3, width, 4 * width),
        "down": normal(k4, 4 * width, width),
    }


def norm(x):
    return x / jnp.sqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


@jax.jit
def forward(params, x):
    def layer(x, w):
        q, k, v = jnp.split(norm(x) @ w["qkv"], 3, axis=-1)
        fit = jnp.where(jnp.tri(len(x), dtype=bool), q @ k.T / q.shape[-1] ** 0.5, -1e9)
        x = x + jax.nn.softmax(fit) @ v @ w["out"]
        return x + jax.nn.gelu(norm(x) @ w["up"]) @ w["down"], None

    return jax.lax.scan(layer, x, params)[0]


# %% [markdown]
# ## How fast is this page?
#
# Each width runs once to compile and then three times. `block_until_ready` waits for the result,
# without which only the asking would be timed.


# %%
def measure(params, x):
    """Seconds of one forward pass, and its result."""
    result = jax.block_until_ready(forward(params, x))
    begun = time.perf_counter()
    for _ in range(3):
        result = jax.block_until_ready(forward(params, x))
    return (time.perf_counter() - begun) / 3, result


counted, speeds = [], []
for width in WIDTHS:
    params = init(jax.random.key(0), width)
    x = jax.random.normal(jax.random.key(1), (TOKENS, width))
    weights = sum(leaf.size for leaf in jax.tree.leaves(params))
    seconds, here = measure(params, x)
    counted.append(weights / (12 * LAYERS * width**2))
    speeds.append(2 * weights * TOKENS / seconds / 1e9)
    print(f"width {width}: {weights:,} weights, {1e3 * seconds:.1f} ms, {speeds[-1]:.2f} GFLOP/s")

cover = plot.figure(height=260, title="speed", xlabel="width", ylabel="GFLOP/s")
cover.line(jnp.array(WIDTHS), jnp.array(speeds), markers=True, ylim=(0.0, 1.2 * max(speeds)))
cover

# %% [markdown]
# ## What would a big one need?
#
# At the best of these speeds, and with 32 bits for each weight.

# %%
MODELS = {"GPT-2": (12, 768), "GPT-2 XL": (48, 1600), "GPT-3": (96, 12288)}
for name, (layers, width) in MODELS.items():
    size = 12 * layers * width**2
    seconds = 2 * size / (max(speeds) * 1e9)
    print(f"{name}: {size / 1e9:.2f} billion weights, {4 * size / 2**30:.1f} GiB", end=", ")
    print(f"{seconds:.3g} s for a token here")

# %% [markdown]
# ## Hand it over
#
# Start `weft-host` on the machine that has the accelerator, and copy what it prints into
# `ADDRESS` and `TOKEN`. The weights are then *made* there: what travels is the program, one input
# and one result, a few kilobytes. A whole document runs there if you choose *Host* above.

# %%
if ADDRESS:
    import weft.remote

    session = weft.remote.connect(ADDRESS, token=TOKEN)
    device = jax.devices("remote")[0]
    with jax.default_device(device):
        there_params = init(jax.random.key(0), WIDTHS[-1])
        seconds, there = measure(there_params, jax.device_put(x, device))
    difference = float(jnp.abs(jax.device_get(there) - jax.device_get(here)).max())
    print(f"{device}: {1e3 * seconds:.1f} ms; results differ by {difference:.1e} at most")
else:
    difference = 0.0
    print("No host is named, so nothing was handed over: all of this ran here.")

# %% [markdown]
# ## Try next
#
# - Choose *WebGPU* above and run again: how much faster is the widest model, and why not the
#   narrowest?
# - `params` in `jnp.bfloat16` take half the memory. What becomes of the result?
# - Train: `jax.grad` of a loss over `forward` costs about three times as much, as Kaplan and
#   others say. Does it?
