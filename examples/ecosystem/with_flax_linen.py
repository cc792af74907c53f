"""flax.linen: a transformer block with dropout learns to reverse short sequences; batch norm, scan over layers,
remat and a train state.
"""

import weft.as_jax  # noqa: F401  `import jax` gives weft
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax import serialization
from flax.training import train_state


class Block(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x, train):
        y = nn.MultiHeadDotProductAttention(num_heads=4)(nn.LayerNorm()(x))
        x = x + nn.Dropout(0.05, deterministic=not train)(y)
        return x + nn.Dense(self.width)(nn.gelu(nn.Dense(2 * self.width)(nn.LayerNorm()(x)))), None


class Model(nn.Module):
    vocabulary: int
    width: int = 32

    @nn.compact
    def __call__(self, tokens, train: bool):
        x = nn.Embed(self.vocabulary, self.width)(tokens)
        x = x + self.param("positions", nn.initializers.normal(0.1), (tokens.shape[-1], self.width))
        stack = nn.scan(
            nn.remat(Block, static_argnums=(2,)),
            variable_axes={"params": 0},
            split_rngs={"params": True, "dropout": True},
            length=2,
            in_axes=nn.broadcast,
        )
        x, _ = stack(self.width)(x, train)
        return nn.Dense(self.vocabulary)(nn.LayerNorm()(x))


class Convolution(nn.Module):
    @nn.compact
    def __call__(self, x, train: bool):
        x = nn.Conv(4, (3, 3), strides=2)(x)
        x = nn.BatchNorm(use_running_average=not train, momentum=0.9)(x)
        return nn.avg_pool(nn.relu(x), (2, 2), (2, 2)).reshape(x.shape[0], -1)


def main() -> dict:
    model = Model(8)
    tokens = jax.random.randint(jax.random.key(0), (64, 6), 0, 8)
    params = model.init(jax.random.key(1), tokens, False)["params"]
    blocks = "ScanBlock_0" if "ScanBlock_0" in params else next(k for k in params if "Block" in k)
    assert jax.tree.leaves(params[blocks])[0].shape[0] == 2
    state = train_state.TrainState.create(apply_fn=model.apply, params=params, tx=optax.adamw(3e-3))

    @jax.jit
    def step(state, key):
        def loss(params):
            logits = state.apply_fn({"params": params}, tokens, True, rngs={"dropout": key})
            return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, ::-1]).mean()

        value, grads = jax.value_and_grad(loss)(state.params)
        return state.apply_gradients(grads=grads), value

    losses = []
    for i in range(120):
        state, value = step(state, jax.random.key(i))
        losses.append(float(value))
    accuracy = float((model.apply({"params": state.params}, tokens, False).argmax(-1) == tokens[:, ::-1]).mean())
    assert losses[-1] < 0.2 and accuracy > 0.95, (losses[::20], accuracy)
    restored = serialization.from_bytes(params, serialization.to_bytes(state.params))
    assert all(map(jnp.array_equal, jax.tree.leaves(restored), jax.tree.leaves(state.params)))

    images = jax.random.normal(jax.random.key(2), (4, 8, 8, 1))
    net = Convolution()
    variables = net.init(jax.random.key(3), images, True)
    out, updated = jax.jit(lambda v: net.apply(v, images, True, mutable=["batch_stats"]))(variables)
    assert not jnp.array_equal(
        updated["batch_stats"]["BatchNorm_0"]["mean"], variables["batch_stats"]["BatchNorm_0"]["mean"]
    )
    assert "Model" in model.tabulate(jax.random.key(0), tokens, False)
    return {
        "loss at the start": losses[0],
        "loss after 5 steps": losses[4],
        "accuracy": accuracy,
        "convolution": float(out.sum()),
    }


if __name__ == "__main__":
    print(main())
