"""flax.nnx: a variational autoencoder with batch norm and dropout learns two clusters, with nnx's jit, grad,
optimizer, state and split.
"""

import weft.as_jax  # noqa: F401  `import jax` gives weft
import jax
import jax.numpy as jnp
import optax
from flax import nnx


class Autoencoder(nnx.Module):
    def __init__(self, size: int, latent: int, rngs: nnx.Rngs):
        self.encode = nnx.Sequential(nnx.Linear(size, 32, rngs=rngs), nnx.relu, nnx.Linear(32, 2 * latent, rngs=rngs))
        self.norm = nnx.BatchNorm(size, rngs=rngs)
        self.drop = nnx.Dropout(0.05, rngs=rngs)
        self.decode = nnx.Sequential(nnx.Linear(latent, 32, rngs=rngs), nnx.relu, nnx.Linear(32, size, rngs=rngs))
        self.rngs = rngs
        self.calls = nnx.Variable(jnp.array(0))

    def __call__(self, x):
        self.calls[...] += 1
        mean, log_scale = jnp.split(self.encode(self.drop(self.norm(x))), 2, axis=-1)
        z = mean + jnp.exp(log_scale) * jax.random.normal(self.rngs.noise(), mean.shape)
        return self.decode(z), mean, log_scale


def loss_fn(model, x):
    out, mean, log_scale = model(x)
    kl = 0.5 * (mean**2 + jnp.exp(2 * log_scale) - 1 - 2 * log_scale).sum(-1)
    return ((out - x) ** 2).sum(-1).mean() + 0.01 * kl.mean()


@nnx.jit
def step(model, optimizer, x):
    loss, grads = nnx.value_and_grad(loss_fn)(model, x)
    optimizer.update(model, grads)
    return loss


def main() -> dict:
    centres = jnp.stack([jnp.linspace(-1.0, 1.0, 8), jnp.linspace(1.0, -1.0, 8)])
    x = centres[jnp.arange(128) % 2] + 0.05 * jax.random.normal(jax.random.key(0), (128, 8))
    model = Autoencoder(8, 2, nnx.Rngs(0, noise=1, dropout=2))
    optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
    losses = [float(step(model, optimizer, x)) for _ in range(150)]
    assert losses[-1] < 0.1 * losses[0], losses[::30]
    assert int(model.calls[...]) == 150 and float(jnp.abs(model.norm.mean[...]).sum()) > 0

    graph, params, rest = nnx.split(model, nnx.Param, ...)
    same = nnx.merge(graph, params, rest)
    model.eval(), same.eval()
    assert jnp.array_equal(model.norm(x), same.norm(x))
    assert sum(p.size for p in jax.tree.leaves(params)) == 8 * 32 + 32 + 32 * 4 + 4 + 2 * 8 + 2 * 32 + 32 + 32 * 8 + 8

    @nnx.vmap(in_axes=(0, None), out_axes=0)
    def ensemble(key, x):
        return nnx.Linear(8, 1, rngs=nnx.Rngs(key))(x)

    many = ensemble(jax.random.split(jax.random.key(5), 3), x)
    assert many.shape == (3, 128, 1)

    @nnx.scan(length=4, in_axes=nnx.Carry, out_axes=nnx.Carry)
    def powers(y):
        return y * 2

    assert float(powers(jnp.array(1.0))) == 16.0
    return {"loss at the start": losses[0], "loss after 5 steps": losses[4], "ensemble": float(many.sum())}


if __name__ == "__main__":
    print(main())
