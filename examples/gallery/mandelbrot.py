# %% [markdown]
# # The Mandelbrot set
#
# Take a point $c$ of the plane of complex numbers, begin at $z = 0$, and repeat
#
# $$z \leftarrow z^2 + c.$$
#
# For some $c$ the numbers stay near zero for ever: these form the Mandelbrot set. For all others
# they run away, and the picture shows how fast. The idea is of Pierre Fatou and Gaston Julia,
# around 1918; Benoit Mandelbrot drew it in 1980.

# %%
import time

import jax
import jax.numpy as jnp
from weft import plot
from weft.widgets import animate, interact

WIDTH, HEIGHT, ITERATIONS, FRAMES = 320, 200, 80, 90  # more iterations show finer threads


# %% [markdown]
# ## One picture, compiled
#
# All points take part in one loop, and two real numbers stand for each complex one. When $|z|$
# passes a bound, the number of steps until then is made smooth by the part of a step that was
# missing,
#
# $$\nu = n + 1 - \log_2 \log_2 |z_n|,$$
#
# so that the colours have no steps ([Linas
# Vepstas](https://linas.org/art-gallery/escape/escape.html)).


# %%
@jax.jit
def mandelbrot(x, y, width):
    """How long each point of a window around (x, y) takes to escape; 0 for those that never do."""
    across = x + width * jnp.linspace(-0.5, 0.5, WIDTH)
    up = y + width * HEIGHT / WIDTH * jnp.linspace(-0.5, 0.5, HEIGHT)
    a, b = jnp.meshgrid(across, up)

    def step(_, state):
        re, im, count = state
        near = re * re + im * im < 64.0  # what is gone stays where it was first seen
        return (
            jnp.where(near, re * re - im * im + a, re),
            jnp.where(near, 2 * re * im + b, im),
            jnp.where(near, count + 1.0, count),
        )

    zero = jnp.zeros_like(a)
    re, im, count = jax.lax.fori_loop(0, ITERATIONS, step, (zero, zero, zero))
    size = jnp.maximum(re * re + im * im, 64.0)
    smooth = count + 1 - jnp.log2(0.5 * jnp.log2(size))
    return jnp.where(count < ITERATIONS, jnp.maximum(smooth, 0.0), 0.0)


# %% [markdown]
# Colours come from a cosine for each of red, green and blue, an idea of [Inigo
# Quilez](https://iquilezles.org/articles/palettes/): $\tfrac12 + \tfrac12\cos(2\pi(\nu/50 +
# \varphi))$. They are computed in the same program, which leaves bytes for the page to show.


# %%
@jax.jit
def picture(x, y, width):
    count = mandelbrot(x, y, width)
    phase = jnp.array([0.0, 0.1, 0.2])
    colours = 0.5 - 0.5 * jnp.cos(2 * jnp.pi * (0.15 * jnp.sqrt(count)[..., None] + phase))
    return jnp.where(count[..., None] > 0, 255 * colours, 0.0).astype(jnp.uint8)


whole = picture(-0.6, 0.0, 3.2)
cover = plot.figure(title="The whole set", height=400).image(
    whole, origin="lower", extent=(-2.2, 1.0, -1.0, 1.0)
)
cover

# %% [markdown]
# ## Its area
#
# Nobody knows a formula for the area of the set; the best estimates say 1.5066. Counting pixels
# comes near, from above, as points that escape late still count.

# %%
inside = float(jnp.mean(mandelbrot(-0.6, 0.0, 3.2) == 0.0))
area = inside * 3.2 * 3.2 * HEIGHT / WIDTH
print(f"area: {area:.3f}")

# %% [markdown]
# ## A dive
#
# The window becomes 5 % smaller with each frame, around a point in the “valley of sea horses”.
# `animate` shows what the generator yields, up to 60 times a second.

# %%
X, Y = -0.743644, 0.131826
begun = time.perf_counter()


def dive():
    for i in range(FRAMES):
        plot.figure(height=400).image(
            picture(X, Y, 3.0 * 0.95**i), origin="lower", colorbar=False
        )
        yield


animate(dive, fps=60)
rate = FRAMES / (time.perf_counter() - begun)
print(
    f"{rate:.0f} frames per second, each of {WIDTH * HEIGHT * ITERATIONS / 1e6:.1f} million steps"
)

# %% [markdown]
# ## Look around

# %%


@interact(x=(-2.0, 0.5), y=(-1.1, 1.1), zoom=(0.0, 12.0))
def look(x=X, y=Y, zoom=6.0):
    plot.figure(height=400).image(picture(x, y, 3.0 / 2**zoom), origin="lower", colorbar=False)


# %% [markdown]
# ## Try next
#
# - Beyond a zoom of about $2^{15}$ the picture falls into blocks: 32-bit numbers end there.
#   Choose *64-bit types* in the menu and go on to $2^{40}$.
# - The Julia set of a point: begin at the pixel, and add one constant $c$ for all.
# - How fast does the derivative $\partial z/\partial c$ grow? `jax.jvp` carries it through the
#   same loop, and $|z|\log|z|/|z'|$ estimates the distance from the set.
