"""Fit a noisy wave by gradient descent."""

import weft
import weft.numpy as jnp
from weft import plot, random


def init(key, hidden=32):
    k1, k2, k3 = random.split(key, 3)
    return {
        "w1": random.normal(k1, (1, hidden)) * 3.0,
        "b1": random.uniform(k2, (hidden,), minval=-4.0, maxval=4.0),
        "w2": random.normal(k3, (hidden, 1)) * 0.2,
        "b2": jnp.zeros(1),
    }


def predict(params, x):
    h = jnp.tanh(x[:, None] @ params["w1"] + params["b1"])
    return (h @ params["w2"] + params["b2"])[:, 0]


def loss(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


@weft.jit
def step(params, momentum, x, y):
    value, grads = weft.value_and_grad(loss)(params, x, y)
    momentum = weft.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
    params = weft.tree.map(lambda p, m: p - 0.05 * m, params, momentum)
    return params, momentum, value


key_x, key_noise, key_params = random.split(random.key(0), 3)
x = random.uniform(key_x, (200,), minval=-2.0, maxval=2.0)
y = jnp.sin(2.5 * x) * jnp.exp(-0.2 * x**2) + 0.1 * random.normal(key_noise, (200,))
plot.scatter(x, y, label="data", title="a noisy wave")

params = init(key_params)
momentum = weft.tree.map(jnp.zeros_like, params)
for i in range(1001):
    params, momentum, value = step(params, momentum, x, y)
    if i % 20 == 0:
        plot.curve("loss", i, value, xlabel="step", yscale="log")
        print(f"step {i:4d}  loss {float(value):.5f}")

grid = jnp.linspace(-2.0, 2.0, 200)
plot.line(grid, predict(params, grid), label="fit")
