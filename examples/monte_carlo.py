"""Random walks, and pi from random points."""

import weft
import weft.numpy as jnp
from weft import random

try:
    from weft_page import curve, line  # figures beside the output of the playground
except ImportError:
    curve = line = lambda *args, **kwargs: None


# How far does a walk of n steps get? About the square root of n.
@weft.jit
def walks(key):
    steps = random.normal(key, (500, 400))  # 500 walkers
    return jnp.cumsum(steps, axis=1)


paths = walks(random.key(1))
steps = jnp.arange(1, 401)
line(steps, paths[0], label="walks: one of them")
line(steps, jnp.sqrt(jnp.mean(paths**2, axis=0)), label="walks: typical distance")
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
    curve("pi", i, estimate)
    if i % 10 == 0:
        print(f"{20000 * i:8d} points: pi is about {estimate:.5f}")
