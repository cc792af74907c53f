# %% [markdown]
# # Diffusion in the plane
#
# A model that makes pictures learns one thing: to take a little noise away. Begin with pure
# noise, take a little away again and again, and something appears. Here the “pictures” are points
# of the plane, so you can see all that happens.
#
# Noise is added to a point $x_0$ in proportions that depend on a time $t$ between 0 and 1,
#
# $$x_t = \cos(\tfrac\pi2 t)\, x_0 + \sin(\tfrac\pi2 t)\,\epsilon, \qquad \epsilon \sim \mathcal N(0, 1),$$
#
# and a network learns to guess $\epsilon$ from $x_t$ and $t$ ([Ho, Jain and
# Abbeel](https://arxiv.org/abs/2006.11239), 2020).

# %%
import jax
import jax.numpy as jnp
from weft import plot
from weft.widgets import animate

STEPS, BATCH, WIDTH, POINTS = 2500, 256, 96, 800


def spiral(key, n):
    k1, k2 = jax.random.split(key)
    turn = 3 * jnp.pi * jnp.sqrt(jax.random.uniform(k1, (n,), minval=0.06))
    points = jnp.stack([turn * jnp.cos(turn), turn * jnp.sin(turn)], -1) / 6.0
    return points + 0.04 * jax.random.normal(k2, (n, 2))


data = spiral(jax.random.key(0), POINTS)
figure = plot.figure(columns=3, height=200, xlim=(-2.6, 2.6), ylim=(-2.6, 2.6), aspect="equal")
for k, t in enumerate((0.0, 0.3, 1.0)):
    noise = jax.random.normal(jax.random.key(k), data.shape)
    noisy = jnp.cos(jnp.pi / 2 * t) * data + jnp.sin(jnp.pi / 2 * t) * noise
    figure.panel(title=f"t = {t}").scatter(noisy[:, 0], noisy[:, 1], size=2)
figure

# %% [markdown]
# ## The network
#
# Three layers; time enters as a few sines and cosines, so that the network can tell moments
# apart.


# %%
def init(key, sizes=(2 + 8, WIDTH, WIDTH, WIDTH, 2)):
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        (jax.random.normal(k, (m, n)) * (2 / m) ** 0.5, jnp.zeros(n))
        for k, m, n in zip(keys, sizes, sizes[1:])
    ]


def guess(params, x, t):
    """The noise in x, of shape (n, 2), at times t, of shape (n,)."""
    waves = t[:, None] * jnp.pi * jnp.array([0.5, 1.0, 2.0, 4.0])
    h = jnp.concatenate([x, jnp.sin(waves), jnp.cos(waves)], axis=-1)
    for w, b in params[:-1]:
        h = jax.nn.silu(h @ w + b)
    w, b = params[-1]
    return h @ w + b


def loss(params, key):
    k1, k2, k3 = jax.random.split(key, 3)
    x0 = data[jax.random.randint(k1, (BATCH,), 0, POINTS)]
    t = jax.random.uniform(k2, (BATCH,))
    noise = jax.random.normal(k3, (BATCH, 2))
    angle = jnp.pi / 2 * t[:, None]
    x = jnp.cos(angle) * x0 + jnp.sin(angle) * noise
    return jnp.mean((guess(params, x, t) - noise) ** 2)


# %% [markdown]
# ## Training
#
# Adam, written out: running means of the slope and of its square give each weight a step of its
# own.


# %%
@jax.jit
def step(state, i):
    params, m, v = state
    value, slope = jax.value_and_grad(loss)(params, jax.random.fold_in(jax.random.key(2), i))
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, slope)
    v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, slope)
    rate = 4e-3 * (1 - i / STEPS)
    params = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), params, m, v)
    return (params, m, v), value


params = init(jax.random.key(1))
zeros = jax.tree.map(jnp.zeros_like, params)
state, total = (params, zeros, zeros), 0.0
for i in range(STEPS):
    state, value = step(state, i)
    total = total + value
    if i % 50 == 49:
        plot.curve("loss", i, total / 50, xlabel="step")
        final_loss, total = float(total) / 50, 0.0
params = state[0]

# %% [markdown]
# ## From noise to a spiral
#
# Backwards in time: guess the noise, see which point $\hat x_0$ that would leave, and mix the two
# again with a little less noise ([Song, Meng and Ermon](https://arxiv.org/abs/2010.02502), 2021):
#
# $$x_s = \cos(\tfrac\pi2 s)\,\hat x_0 + \sin(\tfrac\pi2 s)\,\hat\epsilon, \qquad s < t.$$


# %%
@jax.jit
def less_noise(x, t, s):
    noise = guess(params, x, jnp.full(len(x), t))
    x0 = (x - jnp.sin(jnp.pi / 2 * t) * noise) / jnp.cos(jnp.pi / 2 * t)
    return jnp.cos(jnp.pi / 2 * s) * jnp.clip(x0, -2, 2) + jnp.sin(jnp.pi / 2 * s) * noise


def appear():
    global x
    times = jnp.linspace(0.99, 0.0, 61)
    for t, s in zip(times, times[1:]):
        x = less_noise(x, t, s)
        figure = plot.figure(height=380, xlim=(-2.6, 2.6), ylim=(-2.6, 2.6), aspect="equal")
        figure.scatter(x[:, 0], x[:, 1], size=3, title=f"t = {float(s):.2f}")
        yield


x = jax.random.normal(jax.random.key(7), (POINTS, 2))
animate(appear, fps=30)

# %% [markdown]
# ## How good is it?
#
# The distance from each new point to the nearest of the data, compared with that of fresh points
# of the true spiral.


# %%
@jax.jit
def distance(a, b):
    return jnp.sqrt(jnp.min(jnp.sum((a[:, None] - b[None]) ** 2, -1), axis=1)).mean()


fresh = spiral(jax.random.key(99), POINTS)
made, true = float(distance(x, data)), float(distance(fresh, data))
covered = float(distance(data, x))
print(f"from new points to the data {made:.3f}, from true ones {true:.3f}")
print(f"from the data to new points {covered:.3f}")
cover = plot.figure(height=300, aspect="equal").scatter(x[:, 0], x[:, 1], size=3, color="C0")
cover

# %% [markdown]
# ## Try next
#
# - Take four steps in place of 60 (`jnp.linspace(0.99, 0.0, 5)`). Why do the points end between
#   the arms?
# - Give the network the arm as a third input, leave it out one time in ten, and choose at the end
#   what appears.
# - Other data: `jnp.argwhere` of a drawing on a `canvas` gives the points of whatever you draw.
