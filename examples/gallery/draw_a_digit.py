# %% [markdown]
# # Draw a digit
#
# A small network learns to read handwriting in a few seconds, in this page. Then you draw a
# digit, and it says what it sees. The data are 1,797 images of 8×8 pixels, written by 43 people
# and published by the [University of California,
# Irvine](https://archive.ics.uci.edu/dataset/80/optical+recognition+of+handwritten+digits).

# %%
import jax
import jax.numpy as jnp
from weft import plot
from weft.widgets import canvas, interact

STEPS, BATCH, HIDDEN = 2000, 64, 192  # fewer of each are faster, and read a little worse

# A byte for each pixel, from 0 to 16, then one for the label.
with open("digits.bin", "rb") as file:
    rows = jnp.array(list(file.read()), dtype=jnp.float32).reshape(-1, 65)
rows = rows[jax.random.permutation(jax.random.key(0), len(rows))]
images, labels = rows[:, :64] / 16.0, rows[:, 64].astype(jnp.int32)
train, test = slice(0, 1500), slice(1500, None)

cover = images[:24].reshape(3, 8, 8, 8).transpose(0, 2, 1, 3).reshape(24, 64)
plot.figure(height=220).image(cover, cmap="gray", colorbar=False)

# %% [markdown]
# ## The network
#
# Two layers turn 64 pixels into ten scores. The softmax makes probabilities of them,
#
# $$p_k = \frac{e^{s_k}}{\sum_j e^{s_j}},\qquad s = W_2\,\mathrm{relu}(W_1 x + b_1) + b_2,$$
#
# and the loss is $-\log p$ of the right digit, averaged over the images.


# %%
def init(key):
    k1, k2 = jax.random.split(key)
    return {
        "w1": jax.random.normal(k1, (64, HIDDEN)) * (2 / 64) ** 0.5,
        "b1": jnp.zeros(HIDDEN),
        "w2": jax.random.normal(k2, (HIDDEN, 10)) * (1 / HIDDEN) ** 0.5,
        "b2": jnp.zeros(10),
    }


def scores(params, x):
    return jax.nn.relu(x @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]


def loss(params, x, label):
    log_p = jax.nn.log_softmax(scores(params, x))
    return -jnp.mean(jnp.take_along_axis(log_p, label[:, None], axis=1))


# %% [markdown]
# ## Images that are not quite where they should be
#
# Nobody draws in the middle of the field. Each step therefore moves every image by at most one
# pixel, and the network learns that a shifted three is still a three. `vmap` moves a whole batch,
# each image in its own direction.


# %%
def shift(image, by):
    padded = jnp.pad(image.reshape(8, 8), 1)
    return jax.lax.dynamic_slice(padded, by, (8, 8)).reshape(64)


@jax.jit
def step(params, velocity, key, rate):
    k1, k2 = jax.random.split(key)
    chosen = jax.random.randint(k1, (BATCH,), 0, train.stop)
    moved = jax.vmap(shift)(images[chosen], jax.random.randint(k2, (BATCH, 2), 0, 3))
    value, slope = jax.value_and_grad(loss)(params, moved, labels[chosen])
    velocity = jax.tree.map(lambda v, g: 0.9 * v - rate * g, velocity, slope)
    return jax.tree.map(jnp.add, params, velocity), velocity, value


# %%
params = init(jax.random.key(1))
velocity = jax.tree.map(jnp.zeros_like, params)
for i in range(STEPS):
    rate = 0.15 * (1 - i / STEPS)  # smaller and smaller steps
    params, velocity, value = step(params, velocity, jax.random.key(100 + i), rate)
    if i % 10 == 0:
        plot.curve("loss", i, value, yscale="log", xlabel="step")

guesses = scores(params, images[test]).argmax(1)
accuracy = float(jnp.mean(guesses == labels[test]))
print(f"{accuracy:.1%} of {len(guesses)} images that it has not seen are read right")

# %% [markdown]
# ## Your turn
#
# Draw a digit below, large. Your drawing has 32×32 pixels; it is cut to its frame and averaged
# down to 8×8, as the data were. Until you draw, and outside of a page, a digit of the test set
# takes its place.


# %%
def as_the_data(drawing):
    """A drawing of 32×32 pixels, cut to what is drawn, in 64 numbers."""
    there = drawing > 0.1
    ys, xs = jnp.where(there.any(1))[0], jnp.where(there.any(0))[0]
    middle = jnp.array([ys[0] + ys[-1], xs[0] + xs[-1]]) / 2.0
    size = max(int(ys[-1] - ys[0]), int(xs[-1] - xs[0]), 8) + 1.0
    grid = (jnp.arange(32) + 0.5) / 32 - 0.5
    where = jnp.meshgrid(middle[0] + size * grid, middle[1] + size * grid, indexing="ij")
    sampled = jax.scipy.ndimage.map_coordinates(drawing, where, order=1)
    return jnp.clip(sampled.reshape(8, 4, 8, 4).mean((1, 3)) * 1.4, 0, 1).reshape(64)


@interact(drawing=canvas(32, 32, label="draw here"))
def read(drawing):
    if drawing is None or drawing.max() == 0:
        drawing = jax.image.resize(images[test][0].reshape(8, 8), (32, 32), "linear")
    small = as_the_data(drawing)
    p = jax.nn.softmax(scores(params, small))
    figure = plot.figure(
        title=f"a {int(p.argmax())}, with probability {float(p.max()):.0%}", columns=2, height=220
    )
    figure.panel(title="what the network sees").image(
        small.reshape(8, 8), cmap="gray", colorbar=False
    )
    figure.panel(title="what it thinks", ylim=(0, 1)).bar([str(k) for k in range(10)], p)


# %% [markdown]
# ## Try next
#
# - Which digits does it confuse? Count pairs of label and guess in a table, and show it with
#   `plot.heatmap`.
# - Take the shifts away (`moved = images[chosen]`): the test hardly notices, but your drawings
#   will.
# - Draw a letter. The network has no way to say “none of these”: what would it need?
