"""Random walks, and pi from random points."""

import weft
import weft.numpy as jnp
from weft import plot, random


# How far does a walk of n steps get? About the square root of n.
@weft.jit
def walks(key):
    steps = random.normal(key, (500, 400))  # 500 walkers
    return jnp.cumsum(steps, axis=1)


paths = walks(random.key(1))
steps = jnp.arange(1, 401)
figure = plot.figure(title="500 random walks", columns=2)
figure.panel(xlabel="step").line(steps, paths[:5].T, color="C7", width=1)
typical = jnp.sqrt(jnp.mean(paths**2, axis=0))
figure.band(steps, -typical, typical, label="typical distance").line(steps, typical, label="typical distance")
figure.panel(title="where they end").histogram(paths[:, -1])
print("distance after 400 steps:", jnp.sqrt(jnp.mean(paths[:, -1] ** 2)), "(the square root is 20)")


# How many points of a square lie in the circle? pi quarters of them.
@weft.jit
def inside(key):
    points = random.uniform(key, (20000, 2), minval=-1.0, maxval=1.0)
    return jnp.sum(jnp.sum(points**2, axis=1) < 1.0)


hits = 0
for i in range(1, 51):
    hits += int(inside(random.fold_in(random.key(2), i)))
    estimate = 4 * hits / (20000 * i)
    plot.curve("pi", 20000 * i, estimate, xlabel="points")
    if i % 10 == 0:
        print(f"{20000 * i:8d} points: pi is about {estimate:.5f}")
