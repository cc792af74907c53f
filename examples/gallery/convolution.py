# %% [markdown]
# # A convolutional network
#
# A filter is a small window that slides over an image and asks everywhere the same question: is
# there an edge here? A convolutional network learns which questions to ask. With $3\times3$
# weights $w$ it computes
#
# $$y_{ij} = \sum_{a=0}^{2} \sum_{b=0}^{2} w_{ab}\; x_{i+a,\,j+b},$$
#
# for several filters at once, and then filters of their answers. The idea is Kunihiko Fukushima's
# (1980); learning by gradients came with [LeCun and
# others](http://yann.lecun.com/exdb/publis/pdf/lecun-89e.pdf) (1989), who read zip codes.

# %%
import jax
import jax.numpy as jnp
from weft import plot

STEPS, BATCH, FILTERS = 600, 64, 12

# Images of 8×8 pixels from 0 to 16, each with its label.
with open("digits.bin", "rb") as file:
    rows = jnp.array(list(file.read()), dtype=jnp.float32).reshape(-1, 65)
rows = rows[jax.random.permutation(jax.random.key(0), len(rows))]
images, labels = rows[:, :64].reshape(-1, 8, 8, 1) / 16.0, rows[:, 64].astype(jnp.int32)
train, test = slice(0, 1500), slice(1500, None)

# %% [markdown]
# ## The network
#
# Two layers of filters, each followed by a ReLU; between them the largest of each $2\times2$
# pixels is kept, so that a stroke may lie a little to the side. A linear layer makes ten scores
# of what is left.


# %%
def convolve(x, w):
    return jax.lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def pool(x):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def init(key):
    k1, k2, k3 = jax.random.split(key, 3)
    return {
        "first": jax.random.normal(k1, (3, 3, 1, FILTERS)) * (2 / 9) ** 0.5,
        "second": jax.random.normal(k2, (3, 3, FILTERS, 24)) * (2 / (9 * FILTERS)) ** 0.5,
        "last": jax.random.normal(k3, (2 * 2 * 24, 10)) * 0.1,
        "bias": jnp.zeros(10),
    }


def scores(params, x):
    h = pool(jax.nn.relu(convolve(x, params["first"])))
    h = pool(jax.nn.relu(convolve(h, params["second"])))
    return h.reshape(len(x), -1) @ params["last"] + params["bias"]


def loss(params, x, label):
    return -jnp.mean(
        jnp.take_along_axis(jax.nn.log_softmax(scores(params, x)), label[:, None], axis=1)
    )


# %% [markdown]
# ## Training
#
# Gradient descent with momentum; the derivative of a convolution is a convolution too.


# %%
@jax.jit
def step(params, velocity, i):
    chosen = jax.random.randint(jax.random.fold_in(jax.random.key(2), i), (BATCH,), 0, train.stop)
    value, slope = jax.value_and_grad(loss)(params, images[chosen], labels[chosen])
    rate = 0.1 * (1 - i / STEPS)
    velocity = jax.tree.map(lambda v, g: 0.9 * v - rate * g, velocity, slope)
    return jax.tree.map(jnp.add, params, velocity), velocity, value


params = init(jax.random.key(1))
velocity = jax.tree.map(jnp.zeros_like, params)
for i in range(STEPS):
    params, velocity, value = step(params, velocity, i)
    if i % 10 == 0:
        plot.curve("loss", i, value, yscale="log", xlabel="step")

guesses = jax.jit(scores)(params, images[test]).argmax(1)
accuracy = float(jnp.mean(guesses == labels[test]))
weights = sum(leaf.size for leaf in jax.tree.leaves(params))
print(f"{accuracy:.1%} of the unseen images are read right, with {weights:,} weights")

# %% [markdown]
# ## What it confuses
#
# Rows are the digits that were written, columns those that were read.

# %%
table = jnp.zeros((10, 10), jnp.int32).at[labels[test], guesses].add(1)
plot.figure(height=330).heatmap(
    table, annotate=True, cmap="viridis", xlabel="read", ylabel="written"
)

# %% [markdown]
# ## What it looks for
#
# The filters of the first layer, and below each the answers to one image: bright where the filter
# finds what it seeks. Some find horizontal edges, some vertical ones, some corners.

# %%
filters = params["first"][:, :, 0].transpose(2, 0, 1)
answers = jax.nn.relu(convolve(images[test][:1], params["first"]))[0].transpose(2, 0, 1)
figure = plot.figure(columns=6, height=120)
for k in range(6):
    most = float(jnp.abs(filters[k]).max())
    figure.panel().image(filters[k], cmap="coolwarm", vmin=-most, vmax=most, colorbar=False)
for k in range(6):
    figure.panel().image(answers[k], cmap="magma", colorbar=False)
cover = (
    jnp.concatenate([jnp.concatenate(list(answers[i : i + 3]), 1) for i in (0, 3)], 0)
    / answers.max()
)
figure

# %% [markdown]
# ## Try next
#
# - Which pixels decide? `jax.grad` of one score with respect to the image shows it.
# - Halve `FILTERS` until it fails: how few suffice?
# - A network without filters has to learn each stroke at each place anew. *Draw a digit* has one:
#   compare the numbers of weights.
