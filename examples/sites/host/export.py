"""Exports the programs of the three pages: a classifier of digits, a training loop, and a writer of letters.

    python export.py

Training takes a few seconds, on whatever weft finds here. The pages need no Python.
"""

import json
import os
from pathlib import Path

import numpy as np
import weft
import weft.numpy as jnp
from weft import export, lax, random

HERE = Path(__file__).resolve().parent
OUT = HERE / "program"
F32 = lambda *shape: weft.ShapeDtypeStruct(shape, jnp.float32)


def adam(grads, moments, count, rate):
    """The changes of parameters, and the moments of the gradients."""
    first = weft.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], grads)
    second = weft.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, moments[1], grads)
    unbias = lambda v, decay: v / (1 - decay**count)
    change = lambda m, v: -rate * unbias(m, 0.9) / (jnp.sqrt(unbias(v, 0.99)) + 1e-8)
    return weft.tree.map(change, first, second), (first, second)


def fit(loss, params, steps, rate):
    """The parameters after `steps` steps on `loss(params, key)`."""

    def step(i, state):
        params, moments = state
        grads = weft.grad(loss)(params, random.key(i))
        changes, moments = adam(grads, moments, i + 1.0, rate)
        return weft.tree.map(jnp.add, params, changes), moments

    zeros = weft.tree.map(jnp.zeros_like, params)
    return weft.jit(lambda p, z: lax.fori_loop(0, steps, step, (p, (z, z)))[0])(params, zeros)


def dense(key, n, m):
    return {"w": random.normal(key, (n, m)) / jnp.sqrt(n), "b": jnp.zeros(m)}


# classify.html: ten scores for a drawn digit of 8 × 8 -----------------------------------------------------------------


def scores(params, picture):
    hidden = weft.nn.relu((picture - 0.5) @ params[0]["w"] + params[0]["b"])
    return weft.nn.softmax(hidden @ params[1]["w"] + params[1]["b"])


def classifier(data):
    """The trained classifier, and which part of the pictures that it has not seen it knows."""
    pictures, digits = jnp.asarray(data[:, :64] / np.float32(16)), jnp.asarray(data[:, 64].astype(np.int32))
    params = [dense(random.key(0), 64, 48), dense(random.key(1), 48, 10)]

    def loss(params, key):
        chosen = random.randint(key, (64,), 0, 1500)
        return -jnp.mean(jnp.log(scores(params, pictures[chosen])[jnp.arange(64), digits[chosen]] + 1e-9))

    params = fit(loss, params, 800, 0.01)
    return params, float(jnp.mean(scores(params, pictures[1500:]).argmax(1) == digits[1500:]))


# train.html: two spirals, a hundred steps a call ----------------------------------------------------------------------


def spirals(key, n):
    """Points of two spirals, and the spiral of each."""
    turn, which, noise = random.split(key, 3)
    t, side = random.uniform(turn, (n,)) * 3 * jnp.pi + 0.5, random.bernoulli(which, 0.5, (n,))
    angle = t + jnp.pi * side
    points = jnp.stack([jnp.cos(angle), jnp.sin(angle)], 1) * (t / 10)[:, None]
    return points + 0.02 * random.normal(noise, points.shape), side


def likely(params, points):
    """How likely each point is of the second spiral, as a logit."""
    x = points * 3
    for layer in params[:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return (x @ params[-1]["w"] + params[-1]["b"])[:, 0]


def begin(seed):
    """The state of the training."""
    keys = random.split(random.key(seed), 3)
    params = [dense(keys[0], 2, 64), dense(keys[1], 64, 64), dense(keys[2], 64, 1)]
    zeros = weft.tree.map(jnp.zeros_like, params)
    return {"params": params, "moments": (zeros, zeros), "count": jnp.float32(0)}


def train(state, rate):
    """A hundred steps: the state, and the mean loss."""

    def loss(params, key):
        points, side = spirals(key, 256)
        logits = likely(params, points)
        return jnp.mean(jnp.logaddexp(0.0, jnp.where(side, -logits, logits)))

    def step(state, _):
        count = state["count"] + 1
        value, grads = weft.value_and_grad(loss)(state["params"], random.key(count.astype(jnp.int32)))
        changes, moments = adam(grads, state["moments"], count, rate)
        return {
            "params": weft.tree.map(jnp.add, state["params"], changes),
            "moments": moments,
            "count": count,
        }, value

    state, losses = lax.scan(step, state, None, 100)
    return state, losses.mean()


def picture(state):
    """What the network says of 64 × 64 places, from 0 to 255."""
    x, y = jnp.meshgrid(jnp.linspace(-1, 1, 64), jnp.linspace(1, -1, 64))
    found = weft.nn.sigmoid(likely(state["params"], jnp.stack([x.ravel(), y.ravel()], 1)))
    return jnp.round(255 * found).astype(jnp.uint8)


# write.html: a letter for each call -----------------------------------------------------------------------------------

TEXT = """
it was the wind that told the sea, and the sea that told the sand, that all the birds were flying home across the
darkening land. the wind went on to tell the hill, the hill to tell the tree, and every leaf that heard of it was
singing of the sea. then came the night, and came the rain, and sand and sea were one, and all the birds were far away
and flying to the sun.
"""
WORDS = " ".join(TEXT.split())
LETTERS = sorted(set(WORDS))
UNITS = 96


def cell(params, hidden, letter):
    """The next state, and a logit for each letter."""
    x = jnp.concatenate([params["letters"][letter], hidden])
    gate = weft.nn.sigmoid(x @ params["gate"]["w"] + params["gate"]["b"])
    new = jnp.tanh(
        jnp.concatenate([params["letters"][letter], gate * hidden]) @ params["new"]["w"] + params["new"]["b"]
    )
    hidden = (1 - gate) * hidden + gate * new
    return hidden, hidden @ params["out"]["w"] + params["out"]["b"]


def writer():
    keys = random.split(random.key(2), 4)
    params = {
        "letters": random.normal(keys[0], (len(LETTERS), 32)) / 4,
        "gate": dense(keys[1], 32 + UNITS, UNITS),
        "new": dense(keys[2], 32 + UNITS, UNITS),
        "out": dense(keys[3], UNITS, len(LETTERS)),
    }
    text = jnp.array([LETTERS.index(c) for c in WORDS])

    def loss(params, key):
        starts = random.randint(key, (16,), 0, len(WORDS) - 65)

        def one(start):
            window = lax.dynamic_slice(text, (start,), (65,))
            step = lambda hidden, letter: cell(params, hidden, letter)
            _, logits = lax.scan(step, jnp.zeros(UNITS), window[:-1])
            return -jnp.mean(weft.nn.log_softmax(logits)[jnp.arange(64), window[1:]])

        return jnp.mean(weft.vmap(one)(starts))

    return fit(loss, params, 600, 0.01)


def following(params, state, letter, heat):
    """The next letter, drawn with the temperature `heat`; the state has the key."""
    hidden, logits = cell(params, state["hidden"], letter)
    key, use = random.split(random.wrap_key_data(state["key"]))
    found = random.categorical(use, logits / jnp.maximum(heat, 1e-3))
    return {"hidden": hidden, "key": random.key_data(key)}, found.astype(jnp.int32)


def write_program(name, fun, *args):
    (OUT / f"{name}.weft").write_bytes(export.export(weft.jit(fun))(*args).serialize())


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    data = np.fromfile(os.environ.get("DIGITS", HERE.parents[1] / "digits/digits.bin"), np.uint8).reshape(-1, 65)
    params, known = classifier(data)
    print(f"the classifier knows {known:.1%} of the digits that it has not seen")
    export.web(lambda picture: scores(params, picture), F32(64), path=OUT, name="classify", target="auto", host=True)
    state = weft.eval_shape(begin, 0)
    write_program("begin", begin, weft.ShapeDtypeStruct((), jnp.int32))
    write_program("train", train, state, F32())
    write_program("picture", picture, state)
    letters = writer()
    write_program(
        "following",
        lambda state, letter, heat: following(letters, state, letter, heat),
        {"hidden": F32(UNITS), "key": weft.ShapeDtypeStruct((2,), jnp.uint32)},
        weft.ShapeDtypeStruct((), jnp.int32),
        F32(),
    )
    (OUT / "letters.json").write_text(json.dumps({"letters": LETTERS, "units": UNITS}))
