"""A function of one point, its picture, and the picture of its slope."""

import weft
import weft.numpy as jnp

try:
    from weft_page import image  # figures beside the output of the playground
except ImportError:
    image = lambda *args, **kwargs: None


def height(p):
    """Two hills and a ripple, at one point p = (x, y)."""
    x, y = p
    hills = jnp.exp(-((x - 0.7) ** 2 + y**2)) - 0.8 * jnp.exp(-((x + 0.7) ** 2 + (y - 0.4) ** 2) * 2.0)
    return hills + 0.06 * jnp.sin(6.0 * x) * jnp.cos(5.0 * y)


slope = weft.grad(height)  # of one point, to two numbers

axis = jnp.linspace(-2.0, 2.0, 96)


def picture(f):
    """f on every point of the plane: two vmaps around it."""
    row = weft.vmap(lambda x, y: f(jnp.stack([x, y])), in_axes=(0, None))
    return weft.jit(weft.vmap(row, in_axes=(None, 0)))(axis, axis)


z = picture(height)
g = picture(slope)

image(z, label="height")
image(g[..., 0], label="slope to the right")
image(g[..., 1], label="slope upwards")
image(jnp.sqrt(jnp.sum(g**2, axis=-1)), label="steepness")

# Walk uphill from one point, following the gradient.
p = jnp.array([-0.2, 0.6])
for _ in range(60):
    p = p + 0.1 * slope(p)
print("a summit is at", p)
print("its height is ", height(p))
print("its slope is  ", slope(p))
