"""distrax: a mixture is fitted by maximum likelihood, and a normalising flow's densities and samples agree."""

import weft.as_jax  # noqa: F401  `import jax` gives weft
import distrax
import jax
import jax.numpy as jnp
import optax


def mixture(params):
    return distrax.MixtureSameFamily(
        distrax.Categorical(logits=params["logits"]), distrax.Normal(params["mean"], jnp.exp(params["log_scale"]))
    )


def main() -> dict:
    truth = {
        "logits": jnp.log(jnp.array([0.3, 0.7])),
        "mean": jnp.array([-2.0, 1.5]),
        "log_scale": jnp.log(jnp.array([0.5, 1.0])),
    }
    data = mixture(truth).sample(seed=jax.random.key(0), sample_shape=(2000,))
    params = {"logits": jnp.zeros(2), "mean": jnp.array([-1.0, 1.0]), "log_scale": jnp.zeros(2)}
    optimizer = optax.adam(5e-2)

    @jax.jit
    def step(params, state):
        value, grads = jax.value_and_grad(lambda p: -mixture(p).log_prob(data).mean())(params)
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(params, updates), state, value

    state = optimizer.init(params)
    first = None
    for _ in range(300):
        params, state, value = step(params, state)
        first = float(value) if first is None else first
    assert jnp.allclose(params["mean"], truth["mean"], atol=0.15), params
    assert jnp.allclose(jax.nn.softmax(params["logits"]), jnp.array([0.3, 0.7]), atol=0.05), params

    flow = distrax.Transformed(
        distrax.MultivariateNormalDiag(jnp.zeros(2), jnp.ones(2)),
        distrax.Chain([distrax.Block(distrax.Tanh(), 1), distrax.Block(distrax.ScalarAffine(0.5, 2.0), 1)]),
    )
    sample, density = flow.sample_and_log_prob(seed=jax.random.key(1), sample_shape=(5,))
    assert jnp.allclose(density, flow.log_prob(sample), atol=1e-3)
    kl = distrax.Normal(0.0, 1.0).kl_divergence(distrax.Normal(1.0, 2.0))
    entropy = distrax.Beta(2.0, 3.0).entropy()
    return {
        "loss at the start": first,
        "loss at the end": float(value),
        "mean": float(data.mean()),
        "kl": float(kl),
        "entropy": float(entropy),
    }


if __name__ == "__main__":
    print(main())
