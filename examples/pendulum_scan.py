"""A double pendulum, integrated inside one compiled scan."""

import weft
import weft.numpy as jnp
from weft import plot

G = 9.81
DT = 0.01


def acceleration(angles, speeds):
    """Angular accelerations of two equal masses on two equal rods."""
    a1, a2 = angles
    w1, w2 = speeds
    d = a1 - a2
    below = 3.0 - jnp.cos(2.0 * d)
    first = -3.0 * G * jnp.sin(a1) - G * jnp.sin(a1 - 2.0 * a2)
    first = first - 2.0 * jnp.sin(d) * (w2**2 + w1**2 * jnp.cos(d))
    second = 2.0 * jnp.sin(d) * (2.0 * w1**2 + 2.0 * G * jnp.cos(a1) + w2**2 * jnp.cos(d))
    return jnp.stack([first, second]) / below


def rate(state):
    return jnp.stack([state[1], acceleration(state[0], state[1])])


def runge_kutta(state, _):
    k1 = rate(state)
    k2 = rate(state + DT / 2 * k1)
    k3 = rate(state + DT / 2 * k2)
    k4 = rate(state + DT * k3)
    state = state + DT / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return state, state[0]


@weft.jit
def simulate(angles):
    start = jnp.stack([angles, jnp.zeros(2)])
    _, path = weft.lax.scan(runge_kutta, start, None, length=2000)
    return path


# Two starts, a thousandth of a radian apart, in one call.
starts = jnp.array([[2.0, 2.5], [2.001, 2.5]])
paths = weft.vmap(simulate)(starts)

seconds = jnp.arange(2000) * DT
plot.line(seconds, {"one start": paths[0, :, 1], "0.001 away": paths[1, :, 1]}, title="second angle", xlabel="seconds")
distance = jnp.sqrt(jnp.sum((paths[0] - paths[1]) ** 2, axis=-1))
plot.figure(title="their distance", xlabel="seconds", yscale="log").line(seconds, distance)

# The second mass, on its way through the plane.
x = jnp.sin(paths[0]).sum(axis=-1)
y = -jnp.cos(paths[0]).sum(axis=-1)
plot.figure(title="the path of the second mass", aspect="equal").line(x, y, width=1)

for t in (1, 5, 10, 15):
    print(f"after {t:2d} s they are {float(distance[t * 100 - 1]):.4f} apart")
