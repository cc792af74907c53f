# %% [markdown]
# # A transformer, trained live
#
# The machine behind today's language models, small enough for this page: it reads letters and
# guesses the next one. Each position asks all earlier ones; how well a question $q$ fits a key
# $k$ decides how much of the value $v$ it takes:
#
# $$\mathrm{attention}(Q, K, V) = \mathrm{softmax}\!\left(\frac{Q K^\top}{\sqrt d} + M\right) V,$$
#
# where $M$ is $-\infty$ for what comes later ([Vaswani and
# others](https://arxiv.org/abs/1706.03762), 2017).

# %%
import jax
import jax.numpy as jnp
from weft import plot

STEPS, BATCH, CONTEXT, WIDTH, HEADS, LAYERS = 300, 16, 48, 64, 4, 2

POEM = """Shall I compare thee to a summer's day?
Thou art more lovely and more temperate:
Rough winds do shake the darling buds of May,
And summer's lease hath all too short a date:
Sometime too hot the eye of heaven shines,
And often is his gold complexion dimm'd;
And every fair from fair sometime declines,
By chance, or nature's changing course, untrimm'd;
But thy eternal summer shall not fade
Nor lose possession of that fair thou ow'st;
Nor shall Death brag thou wander'st in his shade,
When in eternal lines to time thou grow'st:
So long as men can breathe or eyes can see,
So long lives this, and this gives life to thee.
"""  # Shakespeare's Sonnet 18

letters = sorted(set(POEM))
text = jnp.array([letters.index(letter) for letter in POEM])
print(len(text), "letters,", len(letters), "different ones")

# %% [markdown]
# ## The weights


# %%
def init(key):
    normal = lambda key, *shape: jax.random.normal(key, shape) * 0.6 / shape[0] ** 0.5

    def block(key):
        k1, k2, k3, k4 = jax.random.split(key, 4)
        return {
            "qkv": normal(k1, WIDTH, 3 * WIDTH),
            "out": normal(k2, WIDTH, WIDTH),
            "up": normal(k3, WIDTH, 4 * WIDTH),
            "down": normal(k4, 4 * WIDTH, WIDTH),
        }

    k1, k2, k3 = jax.random.split(key, 3)
    return {
        "letters": normal(k1, len(letters), WIDTH),
        "places": normal(k2, CONTEXT, WIDTH),
        "blocks": [block(k) for k in jax.random.split(k3, LAYERS)],
    }


# %% [markdown]
# ## The model
#
# Attention gathers, a small network thinks, and both add to what was there. The functions are for
# one text; `vmap` makes them for a batch.


# %%
def norm(x):
    return (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 1e-5)


def attention(x, block):
    q, k, v = jnp.split((norm(x) @ block["qkv"]).reshape(len(x), HEADS, -1), 3, axis=-1)
    fit = jnp.einsum("qhd,khd->hqk", q, k) / q.shape[-1] ** 0.5
    weights = jax.nn.softmax(jnp.where(jnp.tri(len(x), dtype=bool), fit, -1e9))
    return jnp.einsum("hqk,khd->qhd", weights, v).reshape(len(x), -1) @ block["out"], weights


def model(params, tokens):
    """Scores of the next letter after each of the tokens, and the attention of the last block."""
    x = params["letters"][tokens] + params["places"][: len(tokens)]
    for block in params["blocks"]:
        gathered, weights = attention(x, block)
        x = x + gathered
        x = x + jax.nn.gelu(norm(x) @ block["up"]) @ block["down"]
    return norm(x) @ params["letters"].T, weights


def loss(params, windows):
    scores, _ = jax.vmap(model, (None, 0))(params, windows[:, :-1])
    log_p = jax.nn.log_softmax(scores)
    return -jnp.mean(jnp.take_along_axis(log_p, windows[:, 1:, None], axis=2))


# %% [markdown]
# ## Training
#
# Random windows of the poem, and Adam. A guess that knows nothing has a loss of $\log$ of the
# number of letters.


# %%
@jax.jit
def step(state, i):
    params, m, v = state
    starts = jax.random.randint(
        jax.random.fold_in(jax.random.key(1), i), (BATCH,), 0, len(text) - CONTEXT - 1
    )
    windows = jax.vmap(lambda at: jax.lax.dynamic_slice(text, (at,), (CONTEXT + 1,)))(starts)
    value, slope = jax.value_and_grad(loss)(params, windows)
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, slope)
    v = jax.tree.map(lambda v, g: 0.98 * v + 0.02 * g * g, v, slope)
    rate = 4e-3 * jnp.minimum((i + 1) / 40, 1.0) * (1 - i / STEPS)
    params = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), params, m, v)
    return (params, m, v), value


params = init(jax.random.key(0))
zeros = jax.tree.map(jnp.zeros_like, params)
state = params, zeros, zeros
for i in range(STEPS):
    state, value = step(state, i)
    if i % 10 == 9:
        plot.curve("loss", i, value, xlabel="step", yscale="log")
params, final_loss = state[0], float(value)
print(f"{sum(leaf.size for leaf in jax.tree.leaves(params)):,} weights, loss {final_loss:.3f}")

# %% [markdown]
# ## It continues
#
# Letter after letter is drawn from what the model thinks likely. The window has a fixed length,
# so that one compiled program serves all letters.


# %%
@jax.jit
def next_letter(tokens, length, key):
    scores, _ = model(params, tokens)
    return jax.random.categorical(key, scores[length - 1] / 0.5)


def write(start, count=120):
    said = [letters.index(letter) for letter in start]
    for i in range(count):
        window = said[-CONTEXT:]
        padded = jnp.array(window + [0] * (CONTEXT - len(window)))
        said.append(int(next_letter(padded, len(window), jax.random.key(i))))
    return "".join(letters[k] for k in said)


continued = write("But thy eternal")
print(continued)
share = sum(word in POEM.split() for word in continued.split()[:-1]) / len(continued.split()[:-1])

# %% [markdown]
# ## Where it looks
#
# One head of the last block: rows are positions, bright squares are the earlier letters that they
# read from.

# %%
line = POEM[: CONTEXT - 8]
_, weights = model(params, text[: len(line)])
figure = plot.figure(columns=2, height=300)
for head in range(2):
    figure.panel(title=f"head {head + 1}").image(weights[head], cmap="magma", colorbar=False)
cover = weights[0] / weights[0].max()
figure

# %% [markdown]
# ## Try next
#
# - It has learned the poem by heart. Keep the last two lines from it: does it guess them better
#   than chance?
# - Replace `0.5` in `next_letter` by 1.5 (wild) or 0.1 (timid).
# - Paste a longer text into `POEM`, and choose *WebGPU* or a host above for more layers.
