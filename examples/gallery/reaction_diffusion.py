# %% [markdown]
# # Reaction and diffusion
#
# Two substances spread over a plate. One, $u$, is fed everywhere; the other, $v$, eats it and
# multiplies:
#
# $$\dot u = D_u \nabla^2 u - u v^2 + F\,(1 - u), \qquad \dot v = D_v \nabla^2 v + u v^2 - (F + k)\,v.$$
#
# From a few drops of $v$ come spots that divide like cells, stripes like those of a zebra, or
# labyrinths, as $F$ and $k$ decide. Alan Turing proposed in 1952 that animals get their patterns
# so; these equations are Gray and Scott's (1984), and their zoo was drawn by [John
# Pearson](https://arxiv.org/abs/patt-sol/9304003) in 1993.

# %%
import time

import jax
import jax.numpy as jnp
from weft import plot
from weft.widgets import animate

SIZE, FRAMES, PER_FRAME = 128, 240, 12  # 256 and more on a fast machine

PATTERNS = {
    "dividing spots": (0.0367, 0.0649),
    "labyrinth": (0.029, 0.057),
    "worms": (0.058, 0.065),
}

# %% [markdown]
# ## One step
#
# The Laplacian compares each cell with its eight neighbours; `jnp.roll` makes the plate a torus.
# `scan` takes many steps in one compiled program, between two pictures.


# %%
def laplacian(z):
    near = sum(jnp.roll(z, by, axis) for axis in (0, 1) for by in (-1, 1))
    far = sum(jnp.roll(jnp.roll(z, i, 0), j, 1) for i in (-1, 1) for j in (-1, 1))
    return 0.2 * near + 0.05 * far - z


@jax.jit
def advance(u, v, feed, kill):
    def step(state, _):
        u, v = state
        eaten = u * v * v
        u = u + laplacian(u) - eaten + feed * (1 - u)
        v = v + 0.5 * laplacian(v) + eaten - (feed + kill) * v
        return (u, v), None

    return jax.lax.scan(step, (u, v), None, length=PER_FRAME)[0]


# %% [markdown]
# ## A few drops

# %%


def drops(key, count=12):
    """A plate full of u, with drops of v at random places."""
    y, x = jnp.meshgrid(jnp.arange(SIZE), jnp.arange(SIZE), indexing="ij")
    places = jax.random.uniform(key, (count, 2), maxval=SIZE)
    near = jax.vmap(lambda p: (y - p[0]) ** 2 + (x - p[1]) ** 2 < 16.0)(places).any(0)
    v = jnp.where(near, 0.5, 0.0)
    return 1.0 - v, v


u, v = drops(jax.random.key(3))
feed, kill = PATTERNS["dividing spots"]
begun = time.perf_counter()


def grow():
    global u, v
    for _ in range(FRAMES):
        u, v = advance(u, v, feed, kill)
        plot.figure(height=400).image(v, cmap="magma", vmin=0.0, vmax=0.4, colorbar=False)
        yield


animate(grow, fps=60)
rate = FRAMES / (time.perf_counter() - begun)
print(f"{FRAMES * PER_FRAME} steps, {rate:.0f} frames per second")

# %% [markdown]
# ## What decides
#
# The same drops under other conditions: a difference of a few thousandths makes other animals.
# `vmap` runs the three plates side by side in one program.

# %%
conditions = jnp.array(list(PATTERNS.values()))
plates = jax.vmap(lambda _: jnp.stack(drops(jax.random.key(3))))(conditions)
side_by_side = jax.jit(
    jax.vmap(lambda plate, c: jnp.stack(advance(plate[0], plate[1], c[0], c[1])))
)
for _ in range(FRAMES):
    plates = side_by_side(plates, conditions)

zoo = plot.figure(title=f"After {FRAMES * PER_FRAME} steps", columns=3, height=240)
for name, plate in zip(PATTERNS, plates):
    zoo.panel(title=name).image(plate[1], cmap="magma", vmin=0.0, vmax=0.4, colorbar=False)
zoo

# %%
cover = plates[1, 1] / 0.4
covered = [float(jnp.mean(plate[1] > 0.15)) for plate in plates]
print({name: f"{share:.0%} covered" for name, share in zip(PATTERNS, covered)})

# %% [markdown]
# ## Try next
#
# - Let the conditions change over the plate: `feed = jnp.linspace(0.01, 0.08, SIZE)[:, None]`,
#   and `kill` along the other axis. The plate becomes a map of all patterns.
# - Disturb a grown pattern: set `v` to zero in a square, and watch it heal.
# - `jax.grad` reaches through the steps: which `feed` and `kill` make a pattern that covers
#   exactly a third?
