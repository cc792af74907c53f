"""chex: a dataclass of arrays goes through jit, grad and vmap; its assertions hold, and fail where they should; its
test variants agree.
"""

import weft.as_jax  # noqa: F401  `import jax` gives weft
import chex
import jax
import jax.numpy as jnp


@chex.dataclass(frozen=True)
class Trajectory:
    rewards: chex.Array
    values: chex.Array


def returns(trajectory: Trajectory, discount: float = 0.9) -> chex.Array:
    """Discounted returns, backwards through time."""
    chex.assert_equal_shape([trajectory.rewards, trajectory.values])
    chex.assert_type([trajectory.rewards, trajectory.values], float)

    def back(carry, reward):
        carry = reward + discount * carry
        return carry, carry

    return jax.lax.scan(back, 0.0, trajectory.rewards, reverse=True)[1]


def loss(trajectory: Trajectory) -> chex.Array:
    advantage = returns(trajectory) - trajectory.values
    return jnp.mean(advantage**2)


def fails(call) -> bool:
    try:
        call()
    except AssertionError:
        return True
    return False


def main() -> dict:
    t = Trajectory(rewards=jnp.linspace(0.0, 1.0, 8), values=jnp.ones(8))
    eager, compiled = jax.grad(loss)(t), jax.jit(jax.grad(loss))(t)
    chex.assert_trees_all_close(eager, compiled, rtol=1e-5)
    chex.assert_tree_all_finite(eager)
    chex.assert_shape(eager.rewards, (8,))
    chex.assert_trees_all_equal_shapes_and_dtypes(t, eager)
    many = jax.tree.map(lambda x: jnp.stack([x, 2 * x]), t)
    chex.assert_rank(jax.vmap(returns)(many), 2)
    assert fails(lambda: chex.assert_shape(t.values, (7,))) and fails(lambda: chex.assert_trees_all_close(t, eager))
    assert fails(lambda: chex.assert_tree_all_finite(t.replace(values=t.values / 0)))

    traced = []

    @jax.jit
    @chex.assert_max_traces(n=1)
    def once(x):
        traced.append(x)
        return x + 1

    once(jnp.ones(2)), once(jnp.ones(2))
    assert len(traced) == 1 and fails(lambda: once(jnp.ones(3)))

    @chex.chexify
    @jax.jit
    def checked(x):
        chex.assert_tree_all_finite(x)
        return jnp.log(x)

    checked(jnp.ones(2))
    chex.block_until_chexify_assertions_complete()
    chex.assert_devices_available(1, "cpu")
    return {
        "loss": float(loss(t)),
        "first reward's gradient": float(eager.rewards[0]),
        "last value's gradient": float(eager.values[-1]),
    }


if __name__ == "__main__":
    print(main())
