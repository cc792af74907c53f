# %% [markdown]
# # A ray marcher
#
# How far is it from here to the nearest surface? A function that knows, $d(p)$, is a whole scene:
# to find what a ray meets, go ahead by that distance, ask again, and so on. Nothing can be passed
# on the way, so the steps are as long as they may be
# ([Hart](https://graphics.stanford.edu/courses/cs348b-20-spring-content/uploads/hart.pdf), 1996):
#
# $$t \leftarrow t + d(o + t\,r).$$
#
# And the direction in which the distance grows fastest is the normal of the surface: $n = \nabla
# d$, which `jax.grad` computes exactly.

# %%
import jax
import jax.numpy as jnp
from weft import plot
from weft.widgets import interact

WIDTH, HEIGHT, MARCH = 240, 160, 48

# %% [markdown]
# ## The scene
#
# Distances to simple bodies are short formulas, many of them collected by [Inigo
# Quilez](https://iquilezles.org/articles/distfunctions/). The smaller of two distances is the
# union; a smooth minimum melts them together.


# %%
def length(v):
    return jnp.sqrt(jnp.sum(v * v) + 1e-9)


def sphere(p, centre, radius):
    return length(p - jnp.array(centre)) - radius


def torus(p, centre, large, small):
    q = p - jnp.array(centre)
    return length(jnp.stack([length(q[:2]) - large, q[2]])) - small


def melt(a, b, k):
    h = jnp.clip(0.5 + 0.5 * (b - a) / k, 0.0, 1.0)
    return b + (a - b) * h - k * h * (1 - h)


def bodies(p, melting):
    ring = torus(p, (0.0, 0.25, 0.0), 1.0, 0.28)
    balls = jnp.minimum(sphere(p, (-0.2, 0.3, 0.0), 0.55), sphere(p, (1.0, 0.9, 0.3), 0.4))
    return melt(ring, balls, melting)


def scene(p, melting):
    return jnp.minimum(bodies(p, melting), p[1] + 1.0)  # and a floor


# %% [markdown]
# ## Light
#
# One ray at a time, as if there were no others; `vmap` makes a picture of it. A second march
# towards the sun tells what lies in shadow: the narrowest gap on the way makes it soft.


# %%
def march(origin, ray, melting):
    def ahead(_, t):
        return jnp.minimum(t + scene(origin + t * ray, melting), 12.0)

    return jax.lax.fori_loop(0, MARCH, ahead, 0.0)


def shadow(p, sun, melting):
    def ahead(_, state):
        t, light = state
        d = scene(p + t * sun, melting)
        return t + jnp.clip(d, 0.03, 0.3), jnp.minimum(light, 8.0 * jnp.maximum(d, 0.0) / t)

    return jax.lax.fori_loop(0, MARCH // 2, ahead, (0.05, 1.0))[1]


def colour(origin, ray, sun, melting):
    t = march(origin, ray, melting)
    p = origin + t * ray
    normal = jax.grad(scene)(p, melting)
    light = jnp.maximum(normal @ sun, 0.0) * shadow(p + 0.02 * normal, sun, melting)
    shine = jnp.maximum(normal @ (sun - ray) / length(sun - ray), 0.0) ** 40 * light
    tile = (jnp.floor(p[0]) + jnp.floor(p[2])) % 2
    floor = jnp.where(tile > 0, 0.75, 0.55) * jnp.ones(3)
    own = jnp.where(bodies(p, melting) < p[1] + 1.0, jnp.array([0.95, 0.45, 0.25]), floor)
    sky = jnp.array([0.55, 0.7, 0.9]) + 0.25 * (1 - ray[1])
    lit = (
        own * (light * jnp.array([1.0, 0.95, 0.85]) + 0.3 * (0.6 + 0.4 * normal[1])) + 0.4 * shine
    )
    return jnp.where(t < 11.5, lit, sky)


# %% [markdown]
# ## The camera
#
# A ray for each pixel, from a point that goes around the scene.


# %%
@jax.jit
def picture(angle, sun_height, melting):
    eye = jnp.array([4.2 * jnp.sin(angle), 1.4, 4.2 * jnp.cos(angle)])
    ahead = -eye / length(eye)
    right = jnp.cross(ahead, jnp.array([0.0, 1.0, 0.0]))
    right = right / length(right)
    up = jnp.cross(right, ahead)
    x = jnp.linspace(-0.75, 0.75, WIDTH)
    y = jnp.linspace(0.5, -0.5, HEIGHT)
    rays = ahead + x[None, :, None] * right + y[:, None, None] * up
    rays = rays / jnp.sqrt(jnp.sum(rays**2, -1, keepdims=True))
    sun = jnp.stack([0.6, sun_height, 0.5])
    each = jax.vmap(jax.vmap(lambda ray: colour(eye, ray, sun / length(sun), melting)))
    return (255 * jnp.clip(each(rays), 0, 1) ** 0.8).astype(jnp.uint8)


@interact(angle=(-3.0, 3.0), sun=(0.2, 2.0), melting=(0.01, 0.8))
def look(angle=0.5, sun=0.9, melting=0.25):
    plot.figure(height=420).image(picture(angle, sun, melting))


# %% [markdown]
# ## Is it right?
#
# The gradient of a distance has length one, wherever the distance is exact. And a ball of radius
# 0.4 must look as large as geometry says; a ray straight at it travels the distance to its centre
# less the radius.

# %%
cover = picture(0.5, 0.9, 0.25)
points = jax.random.uniform(jax.random.key(0), (500, 3), minval=-2.0, maxval=2.0)
slopes = jax.vmap(jax.grad(lambda p: torus(p, (0.0, 0.25, 0.0), 1.0, 0.28)))(points)
unit = float(jnp.abs(jnp.sqrt(jnp.sum(slopes**2, -1)) - 1).max())
eye, target = jnp.array([1.0, 4.0, 0.3]), jnp.array([1.0, 0.9, 0.3])
travelled = march(eye, (target - eye) / length(target - eye), 0.01)
error = abs(float(travelled - (length(target - eye) - 0.4)))
print(
    f"lengths of normals are off by {unit:.1e} at most, the distance to the ball by {error:.1e}"
)

# %% [markdown]
# ## Try next
#
# - Repeat space: `p = (p + 2) % 4 - 2` at the beginning of `bodies` makes an endless hall of
#   them.
# - Reflect: call `colour` once more from the point, along $r - 2(r \cdot n)\,n$, and mix the two.
# - The picture is differentiable. Which `melting` makes it most like another picture? `jax.grad`
#   of the difference says in which direction to go.
