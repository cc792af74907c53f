"""Learn to read handwritten digits: a small network and Adam, written from scratch."""

import os
import time

import weft
import weft.numpy as jnp
from weft import plot, random

HIDDEN, BATCH, RATE, STEPS, TRAIN = 128, 64, 2e-3, 700, 1500


def load(name="digits.bin"):
    """1,797 images of 8×8 pixels and their labels: a byte for each pixel (0 to 16), then one for the label."""
    folder = os.path.dirname(globals().get("__file__", ""))
    path = next(p for p in (name, os.path.join(folder, name)) if os.path.exists(p))
    with open(path, "rb") as f:
        rows = jnp.array(list(f.read()), dtype=jnp.float32).reshape(-1, 65)
    return rows[:, :64] / 16.0, rows[:, 64].astype(jnp.int32)


def init(key):
    k1, k2 = random.split(key)
    return {
        "w1": random.normal(k1, (64, HIDDEN)) * (2 / 64) ** 0.5,
        "b1": jnp.zeros(HIDDEN),
        "w2": random.normal(k2, (HIDDEN, 10)) * (1 / HIDDEN) ** 0.5,
        "b2": jnp.zeros(10),
    }


def logits(params, x):
    h = weft.nn.relu(x @ params["w1"] + params["b1"])
    return h @ params["w2"] + params["b2"]


def loss(params, x, labels):
    log_p = weft.nn.log_softmax(logits(params, x))
    return -jnp.mean(jnp.sum(log_p * weft.nn.one_hot(labels, 10), axis=1))


def adam(params, grads, m, v, t):
    m = weft.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = weft.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
    scale = RATE * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    params = weft.tree.map(lambda p, m, v: p - scale * m / (jnp.sqrt(v) + 1e-8), params, m, v)
    return params, m, v


@weft.jit
def step(state, key, images, labels):
    params, m, v, t = state
    rows = random.randint(random.fold_in(key, t), (BATCH,), 0, TRAIN)
    value, grads = weft.value_and_grad(loss)(params, images[rows], labels[rows])
    t = t + 1
    return (*adam(params, grads, m, v, t.astype(jnp.float32)), t), value


@weft.jit
def accuracy(params, images, labels):
    return jnp.mean(jnp.argmax(logits(params, images), axis=1) == labels)


def train(steps=STEPS, watch=lambda i, value, seconds: None):
    """Trains, and returns the accuracy on images that were not trained on."""
    start = time.perf_counter()
    key, key_params, key_order = random.split(random.PRNGKey(0), 3)
    images, labels = load()
    order = random.permutation(key_order, len(labels))
    images, labels = images[order], labels[order]
    train_set, test_set = (images[:TRAIN], labels[:TRAIN]), (images[TRAIN:], labels[TRAIN:])
    params = init(key_params)
    zeros = weft.tree.map(jnp.zeros_like, params)
    state = params, zeros, zeros, jnp.int32(0)
    for i in range(steps):
        state, value = step(state, key, *train_set)
        watch(i, value, time.perf_counter() - start)
    return float(accuracy(state[0], *test_set))


def show(i, value, seconds):
    if i % 10 == 0:
        plot.curve("loss", i, value, xlabel="step", yscale="log")
    if i % 100 == 0 or i == STEPS - 1:
        print(f"step {i:4d}  loss {float(value):.4f}  {seconds:6.2f} s")


if __name__ == "__main__":
    print(f"test accuracy {train(watch=show):.1%}")
