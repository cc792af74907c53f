"""haiku: an LSTM with a linear readout learns to continue a sine wave; parameters and state as haiku keeps them."""

import weft.as_jax  # noqa: F401  `import jax` gives weft
import haiku as hk
import jax
import jax.numpy as jnp
import optax


def forward(x):
    """Predicts each next value of sequences (time, batch, 1)."""
    core = hk.LSTM(24)
    out, _ = hk.dynamic_unroll(core, x, core.initial_state(x.shape[1]))
    out = hk.LayerNorm(-1, True, True)(out)
    return hk.BatchApply(hk.Linear(1))(out)


def counted(x):
    calls = hk.get_state("calls", (), jnp.int32, init=jnp.zeros)
    hk.set_state("calls", calls + 1)
    return hk.nets.MLP([8, 1], activation=jnp.tanh)(x) + hk.BatchNorm(True, True, 0.9)(x, is_training=True)


def main() -> dict:
    model = hk.without_apply_rng(hk.transform(forward))
    phase = jnp.arange(8) * 0.7
    wave = jnp.sin(jnp.arange(41)[:, None] * 0.3 + phase)[..., None]
    x, y = wave[:-1], wave[1:]
    params = model.init(jax.random.key(0), x)
    optimizer = optax.adam(1e-2)

    def loss(params):
        return jnp.mean((model.apply(params, x) - y) ** 2)

    @jax.jit
    def step(params, state):
        value, grads = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(params, updates), state, value

    state, losses = optimizer.init(params), []
    for _ in range(200):
        params, state, value = step(params, state)
        losses.append(float(value))
    assert losses[-1] < 0.01 * losses[0], losses[::40]

    stateful = hk.transform_with_state(counted)
    p, s = stateful.init(jax.random.key(1), jnp.ones((4, 1)))
    for _ in range(3):
        out, s = jax.jit(stateful.apply)(p, s, None, jnp.linspace(0.0, 1.0, 4)[:, None])
    assert int(s["~"]["calls"]) == 3
    assert hk.data_structures.tree_size(params) == sum(v.size for v in jax.tree.leaves(params))
    assert "lstm" in str(hk.experimental.tabulate(model)(x)).lower()
    return {"loss at the start": losses[0], "loss after 20 steps": losses[19], "batch norm": float(out.sum())}


if __name__ == "__main__":
    print(main())
