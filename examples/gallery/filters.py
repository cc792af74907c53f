# %% [markdown]
# # Filters on the camera
#
# Blur, sharpen, find edges: each is a small table of numbers that slides over the picture. With
# weights $w$, every pixel becomes a sum of its neighbours,
#
# $$y_{ij} = \sum_{a,b} w_{ab}\, x_{i+a,\,j+b}.$$
#
# Press *Start* below, and the filters run on what your camera sees. Nothing leaves your machine:
# the page computes them. Without a camera they run on a picture that is computed here.

# %%
import jax
import jax.numpy as jnp
from weft import plot
from weft.widgets import camera, interact

WIDTH, HEIGHT = 240, 180


# %%
@jax.jit
def still_life():
    """Three balls in front of a wall, for those without a camera."""
    y, x = jnp.meshgrid(jnp.linspace(0, 1, HEIGHT), jnp.linspace(0, 4 / 3, WIDTH), indexing="ij")
    wall = 0.6 + 0.15 * jnp.sin(40 * x)[..., None] * jnp.array([1.0, 0.8, 0.5])
    picture = jnp.where((y > 0.75)[..., None], jnp.array([0.35, 0.25, 0.2]), wall)
    balls = [
        (0.35, 0.6, 0.22, (0.9, 0.3, 0.2)),
        (0.8, 0.5, 0.3, (0.2, 0.5, 0.8)),
        (1.1, 0.7, 0.14, (0.9, 0.8, 0.3)),
    ]
    for a, b, r, colour in balls:
        depth = r**2 - (x - a) ** 2 - (y - b) ** 2
        z = jnp.sqrt(jnp.maximum(depth, 0.0)) / r
        light = jnp.clip(
            0.25 + 0.6 * z - 0.5 * (x - a) / r * 0.6 - 0.5 * (y - b) / r * 0.8, 0.05, 1.2
        )
        picture = jnp.where(
            (depth > 0)[..., None],
            light[..., None] * jnp.array(colour) + 0.3 * z[..., None] ** 20,
            picture,
        )
    return jnp.clip(picture, 0, 1)


# %% [markdown]
# ## The filters
#
# A Gaussian blur is two passes of one dimension: $w_{ab} = g_a g_b$, which takes $2n$ products in
# place of $n^2$. Sharpening adds what a blur takes away. Edges are where the brightness changes:
# the length of its gradient, by [Irwin
# Sobel's](https://www.researchgate.net/publication/239398674) tables of 1968.


# %%
def slide(image, table):
    """Each colour of an image, filtered by itself; the border repeats the last pixels."""
    rows, columns = table.shape
    padded = jnp.pad(image, ((rows // 2,) * 2, (columns // 2,) * 2, (0, 0)), mode="edge")
    return sum(
        table[a, b] * padded[a : a + HEIGHT, b : b + WIDTH]
        for a in range(rows)
        for b in range(columns)
    )


def blur(image, width=2.0):
    g = jnp.exp(-0.5 * (jnp.arange(-6, 7) / width) ** 2)
    g = g / g.sum()
    return slide(slide(image, g[:, None]), g[None, :])


def edges(image):
    grey = image.mean(-1, keepdims=True)
    across = jnp.array([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])
    steep = jnp.sqrt(slide(grey, across) ** 2 + slide(grey, across.T) ** 2)
    return jnp.broadcast_to(steep, image.shape)


# %% [markdown]
# Others are no sums at all: a poster keeps four levels of each colour, and a drawing divides the
# picture by its blurred self, so that only what differs from its surroundings stays dark.


# %%
def sharpen(image):
    return image + 1.5 * (image - blur(image))


def poster(image):
    return jnp.round(3 * blur(image, 1.0)) / 3


def pencil(image):
    grey = image.mean(-1, keepdims=True)
    return jnp.broadcast_to((grey / (blur(grey, 3.0) + 0.02)) ** 3, image.shape)


FILTERS = {"edges": edges, "blur": blur, "sharpen": sharpen, "poster": poster, "pencil": pencil}
compiled = {name: jax.jit(lambda x, f=f: jnp.clip(f(x), 0, 1)) for name, f in FILTERS.items()}

still = still_life()
figure = plot.figure(columns=3, height=190)
for name in ("plain", *FILTERS):
    figure.panel(title=name).image(still if name == "plain" else compiled[name](still))
figure

# %% [markdown]
# ## Live

# %%


@interact(picture=camera(WIDTH, HEIGHT), filter=list(FILTERS))
def live(picture, filter="pencil"):
    image = still if picture is None else picture.astype(jnp.float32) / 255
    plot.figure(height=360).image(compiled[filter](image))


# %% [markdown]
# ## Do they do what they should?
#
# A blur neither adds nor removes light, up to the border; and a plain surface has no edges.

# %%
cover = compiled["poster"](still)
light_lost = abs(float(blur(still)[12:-12, 12:-12].mean() / still[12:-12, 12:-12].mean()) - 1)
plain_edges = float(jnp.abs(edges(jnp.full((HEIGHT, WIDTH, 3), 0.5))).max())
softer = float(
    jnp.abs(jnp.diff(blur(still), axis=1)).mean() / jnp.abs(jnp.diff(still, axis=1)).mean()
)
print(f"light lost {light_lost:.2%}, edges of a plain surface {plain_edges:.1e}")
print(f"after the blur, steps between pixels are {softer:.0%} as high")

# %% [markdown]
# ## Try next
#
# - Emboss: the table `[[-2, -1, 0], [-1, 1, 1], [0, 1, 2]]`.
# - Keep the last picture, and show the difference: the camera becomes a detector of motion.
# - A lens: `jax.scipy.ndimage.map_coordinates` reads pixels at places that are pulled towards the
#   middle.
