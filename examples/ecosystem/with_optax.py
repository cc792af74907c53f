"""optax: a small network learns the two-spirals problem with AdamW, a warm-up schedule and clipped gradients."""

import weft.as_jax  # noqa: F401  `import jax` gives weft
import jax
import jax.numpy as jnp
import optax


def spirals(key, n=200):
    turn = jnp.sqrt(jax.random.uniform(key, (n,))) * 3 * jnp.pi
    side = jnp.arange(n) % 2
    sign = 1.0 - 2.0 * side
    return jnp.stack([sign * turn * jnp.cos(turn), sign * turn * jnp.sin(turn)], -1) / 8.0, side


def network(params, x):
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def main() -> dict:
    x, y = spirals(jax.random.key(0))
    sizes = [2, 64, 64, 2]
    keys = jax.random.split(jax.random.key(1), len(sizes) - 1)
    params = [(jax.random.normal(k, (m, n)) * (2 / m) ** 0.5, jnp.zeros(n)) for k, m, n in zip(keys, sizes, sizes[1:])]
    schedule = optax.warmup_cosine_decay_schedule(0.0, 2e-2, 50, 500)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=1e-4))

    def loss(params):
        return optax.softmax_cross_entropy_with_integer_labels(network(params, x), y).mean()

    @jax.jit
    def step(params, state):
        value, grads = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    state = optimizer.init(params)
    first = float(loss(params))
    losses = []
    for _ in range(500):
        params, state, value = step(params, state)
        losses.append(float(value))
    accuracy = float((network(params, x).argmax(-1) == y).mean())
    assert losses[-1] < 0.05 and accuracy > 0.98, (losses[-1], accuracy)
    return {"loss at the start": first, "loss after 10 steps": losses[9], "accuracy": accuracy}


if __name__ == "__main__":
    print(main())
