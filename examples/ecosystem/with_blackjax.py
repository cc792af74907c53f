"""blackjax: NUTS with window adaptation, HMC and a random walk on a posterior whose mean and covariance are known."""

import weft.as_jax  # noqa: F401  `import jax` gives weft
import blackjax
import jax
import jax.numpy as jnp


def main() -> dict:
    x = jnp.stack([jnp.ones(40), jnp.linspace(-1.0, 1.0, 40)], -1)
    y = x @ jnp.array([1.0, 2.0]) + 0.5 * jax.random.normal(jax.random.key(0), (40,))

    def log_density(w):
        return -0.5 * jnp.sum((y - x @ w) ** 2) / 0.25 - 0.5 * jnp.sum(w**2) / 100.0

    precision = x.T @ x / 0.25 + jnp.eye(2) / 100.0
    mean, cov = jnp.linalg.solve(precision, x.T @ y / 0.25), jnp.linalg.inv(precision)

    warmup = blackjax.window_adaptation(blackjax.nuts, log_density)
    (state, parameters), _ = warmup.run(jax.random.key(1), jnp.zeros(2), num_steps=400)
    kernel = jax.jit(blackjax.nuts(log_density, **parameters).step)

    def one(state, key):
        state, info = kernel(key, state)
        return state, (state.position, info.acceptance_rate, info.is_divergent)

    _, (draws, acceptance, divergent) = jax.lax.scan(one, state, jax.random.split(jax.random.key(2), 1500))
    assert jnp.allclose(draws.mean(0), mean, atol=0.03), (draws.mean(0), mean)
    assert (
        jnp.allclose(jnp.cov(draws.T), cov, atol=0.006) and not divergent.any() and 0.6 < float(acceptance.mean()) < 1.0
    )

    hmc = blackjax.hmc(log_density, step_size=0.05, inverse_mass_matrix=jnp.ones(2), num_integration_steps=10)
    first, _ = jax.jit(hmc.step)(jax.random.key(3), hmc.init(jnp.zeros(2)))
    walk = blackjax.normal_random_walk(log_density, 0.1 * jnp.eye(2))
    steps = jax.vmap(lambda k: walk.step(k, walk.init(mean))[0].position)(jax.random.split(jax.random.key(4), 64))
    assert 0 < int((steps != mean).any(-1).sum()) < 64
    return {
        "mean of the posterior": float(mean.sum()),
        "first step of HMC": float(first.position.sum()),
        "random walk": float(steps.mean()),
    }


if __name__ == "__main__":
    print(main())
