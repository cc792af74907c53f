"""A function of one point, its picture, and the picture of its slope."""

import weft
import weft.numpy as jnp
from weft import plot


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

figure = plot.figure(title="Two hills and a ripple", columns=2, height=240, aspect="equal")
extent = (-2, 2, -2, 2)  # row 0 of the pictures is where y is -2: at the bottom
figure.panel(title="height").image(z, origin="lower", extent=extent)
most = float(jnp.max(jnp.abs(g)))  # so that level ground is grey
for k, direction in enumerate(("to the right", "upwards")):
    panel = figure.panel(title=f"slope {direction}")
    panel.image(g[..., k], origin="lower", extent=extent, cmap="coolwarm", vmin=-most, vmax=most)
uphill = figure.panel(title="uphill").contour(axis, axis, z, levels=10)
few = slice(4, None, 8)
uphill.quiver(axis[few], axis[few], g[few, few, 0], g[few, few, 1])

# Walk uphill from one point, following the gradient.
p = jnp.array([-0.2, 0.6])
path = [p]
for _ in range(60):
    p = p + 0.1 * slope(p)
    path.append(p)
path = jnp.stack(path)
uphill.line(path[:, 0], path[:, 1], label="a walk", color="C1", width=3)
print("a summit is at", p)
print("its height is ", height(p))
print("its slope is  ", slope(p))
