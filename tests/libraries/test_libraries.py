"""stax and optimizers give what real JAX's give (library_expected.json), and train a network."""

import json
import pathlib
import sys

import numpy as np
import pytest
from frozen import check

import weft
import weft.numpy as jnp
from weft.example_libraries import optimizers, stax

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from library_cases import SETUP, expressions  # noqa: E402

EXPECTED = json.loads((HERE / "library_expected.json").read_text())


@pytest.fixture(scope="module")
def scope():
    names = {"jax": weft, "jnp": jnp, "np": np}
    exec(SETUP, names)
    return names


def test_a_network_has_a_layer():
    with pytest.raises(ValueError, match="at least one layer"):
        stax.serial()


@pytest.mark.slow
@pytest.mark.parametrize("text", expressions())
def test_as_jax(text, scope):
    check(text, scope, EXPECTED[text], weft.errors, tolerance={"float32": 1e-5})


def train(steps: int) -> tuple[float, float, float]:
    """A small network that tells which of three directions an image is closest to: (first loss, last loss,
    accuracy).
    """
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(3, 16)).astype("float32")
    labels = rng.integers(0, 3, 96)
    images = jnp.asarray(directions[labels] + 0.3 * rng.normal(size=(96, 16)).astype("float32"))
    targets = jnp.asarray(np.eye(3, dtype="float32")[labels])
    init_params, predict = stax.serial(stax.Dense(16), stax.Relu, stax.Dense(3), stax.LogSoftmax)
    opt_init, opt_update, get_params = optimizers.momentum(0.1, mass=0.9)

    def loss(params, batch):
        inputs, targets = batch
        return -jnp.mean(jnp.sum(predict(params, inputs) * targets, axis=1))

    @weft.jit
    def update(i, opt_state, batch):
        return opt_update(i, weft.grad(loss)(get_params(opt_state), batch), opt_state)

    _, params = init_params(weft.random.key(0), (-1, 16))
    opt_state = opt_init(params)
    first = float(loss(params, (images, targets)))
    for i in range(steps):
        part = slice(32 * (i % 3), 32 * (i % 3) + 32)
        opt_state = update(i, opt_state, (images[part], targets[part]))
    params = get_params(opt_state)
    right = jnp.mean(jnp.argmax(predict(params, images), axis=1) == jnp.asarray(labels))
    return first, float(loss(params, (images, targets))), float(right)


@pytest.mark.parametrize("platform", [pytest.param("cpu", marks=pytest.mark.slow), "wasm"])
def test_a_network_learns(platform):
    with weft.default_device(weft.devices(platform)[0]):
        first, last, accuracy = train(30)
    assert first > 0.9 and last < 0.1 and accuracy > 0.98, (first, last, accuracy)
