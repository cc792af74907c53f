"""equinox: a convolutional network with dropout and batch norm learns to tell striped pictures apart, in filtered
jit and grad.
"""

import weft.as_jax  # noqa: F401  `import jax` gives weft
import equinox as eqx
import jax
import jax.numpy as jnp


class Net(eqx.Module):
    conv: eqx.nn.Conv2d
    norm: eqx.nn.BatchNorm
    drop: eqx.nn.Dropout
    head: eqx.nn.MLP
    classes: int = eqx.field(static=True)

    def __init__(self, classes: int, key):
        k1, k2 = jax.random.split(key)
        self.conv = eqx.nn.Conv2d(1, 8, 3, padding=1, key=k1)
        self.norm = eqx.nn.BatchNorm(8, axis_name="batch", mode="ema")
        self.drop = eqx.nn.Dropout(0.1)
        self.head = eqx.nn.MLP(8, classes, 32, 1, key=k2)
        self.classes = classes

    def __call__(self, x, state, key):
        x, state = self.norm(self.conv(x), state)
        x = jax.nn.relu(x).mean((1, 2))
        return self.head(self.drop(x, key=key)), state


def pictures(key, n=96):
    """Stripes across (0), down (1), and a checkerboard (2), with noise."""
    rows, columns = jnp.mgrid[:8, :8]
    patterns = jnp.stack([rows % 2, columns % 2, (rows + columns) % 2]).astype(jnp.float32)
    labels = jnp.arange(n) % 3
    return patterns[labels][:, None] + 0.3 * jax.random.normal(key, (n, 1, 8, 8)), labels


def loss_fn(model, state, x, y, keys):
    logits, state = jax.vmap(model, axis_name="batch", in_axes=(0, None, 0), out_axes=(0, None))(x, state, keys)
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1).mean(), state


@eqx.filter_jit
def step(model, state, x, y, key):
    (loss, state), grads = eqx.filter_value_and_grad(loss_fn, has_aux=True)(
        model, state, x, y, jax.random.split(key, x.shape[0])
    )
    model = eqx.apply_updates(model, jax.tree.map(lambda g: -0.2 * g, grads))
    return model, state, loss


def main() -> dict:
    x, y = pictures(jax.random.key(0))
    model, state = eqx.nn.make_with_state(Net)(3, key=jax.random.key(1))
    losses = []
    for i in range(150):
        model, state, loss = step(model, state, x, y, jax.random.key(2 + i))
        losses.append(float(loss))
    assert losses[-1] < 0.3 * losses[0], losses[::30]
    test_x, test_y = pictures(jax.random.key(99))
    inference = eqx.nn.inference_mode(model)
    logits, _ = jax.vmap(inference, axis_name="batch", in_axes=(0, None, None), out_axes=(0, None))(test_x, state, None)
    accuracy = float((logits.argmax(-1) == test_y).mean())
    assert accuracy > 0.95, accuracy
    arrays, rest = eqx.partition(model, eqx.is_array)
    assert eqx.tree_equal(eqx.combine(arrays, rest), model)
    try:
        eqx.filter_jit(lambda v: eqx.error_if(v, v.min() < 0, "negative"))(jnp.array([-1.0])).block_until_ready()
        raise SystemExit("error_if did not raise")
    except eqx.EquinoxRuntimeError as e:
        assert "negative" in str(e)
    return {"loss at the start": losses[0], "loss after 20 steps": losses[19], "accuracy": accuracy}


if __name__ == "__main__":
    print(main())
