# %% [markdown]
# # Evolution balances a pole
#
# A cart can be pushed to the left or to the right, and a pole stands on it that wants to fall.
# Nobody tells the controller what to do; many try, and those that keep the pole up longer have
# more influence on the next ones.
#
# With random changes $\epsilon_i$ of the weights $\theta$ and returns $R_i$, evolution strategies
# move along
#
# $$\theta \leftarrow \theta + \alpha\, \frac{1}{n \sigma} \sum_i R_i\, \epsilon_i,$$
#
# an estimate of the gradient that needs no derivative ([Salimans and
# others](https://arxiv.org/abs/1703.03864), 2017).

# %%
import jax
import jax.numpy as jnp
from weft import plot
from weft.widgets import animate

GENERATIONS, PAIRS, LENGTH, SPREAD, RATE = 60, 48, 300, 0.4, 0.5

# %% [markdown]
# ## The cart
#
# Mechanics as in [Barto, Sutton and Anderson](https://doi.org/10.1109/TSMC.1983.6313077) (1983):
# a cart of 1 kg, a pole of 0.1 kg and half a metre to its middle, a force of at most 10 N, fifty
# decisions a second.


# %%
def physics(state, force):
    x, v, angle, turning = state
    pull = (force + 0.05 * turning**2 * jnp.sin(angle)) / 1.1
    falling = 9.8 * jnp.sin(angle) - jnp.cos(angle) * pull
    turn = falling / (0.5 * (4 / 3 - 0.1 * jnp.cos(angle) ** 2 / 1.1))
    push = pull - 0.05 * turn * jnp.cos(angle) / 1.1
    return jnp.stack(
        [x + 0.02 * v, v + 0.02 * push, angle + 0.02 * turning, turning + 0.02 * turn]
    )


def controller(weights, state):
    """Four weights are enough: the force is a bounded sum of what the cart feels."""
    return 10.0 * jnp.tanh(weights @ state)


# %% [markdown]
# ## A life
#
# A life ends when the pole leans over 12° or the cart is 2.4 m away; the return is its length,
# and a little for standing in the middle. What is over stays over: a number that is 1 at first
# and then 0 is carried along.


# %%
def live(weights, key):
    def step(carry, _):
        state, alive = carry
        state = physics(state, controller(weights, state))
        alive = alive * (jnp.abs(state[2]) < 0.21) * (jnp.abs(state[0]) < 2.4)
        return (state, alive), (state, alive * (1 - 0.2 * jnp.abs(state[0])))

    start = jax.random.uniform(key, (4,), minval=-0.1, maxval=0.1)
    _, (path, rewards) = jax.lax.scan(step, (start, 1.0), None, length=LENGTH)
    return rewards.sum(), path


# %% [markdown]
# ## Evolution
#
# Every change is tried with both signs, which takes noise out of the estimate. Returns count by
# their ranks, so that no single life decides. `vmap` lives all lives at once.


# %%
@jax.jit
def generation(weights, key):
    k1, k2 = jax.random.split(key)
    half = jax.random.normal(k1, (PAIRS, 4))
    changes = jnp.concatenate([half, -half])
    returns, _ = jax.vmap(live)(weights + SPREAD * changes, jax.random.split(k2, 2 * PAIRS))
    ranks = returns.argsort().argsort() / (2 * PAIRS - 1) - 0.5
    return weights + RATE / SPREAD * (ranks @ changes) / PAIRS, returns


weights = jnp.zeros(4)
for i in range(GENERATIONS):
    weights, returns = generation(weights, jax.random.key(i))
    plot.curve(
        "seconds upright",
        i,
        {"mean": returns.mean() / 50, "best": returns.max() / 50},
        xlabel="generation",
    )
print("weights of place, speed, angle, turning:", weights)

# %% [markdown]
# ## Is it good?
#
# A hundred new lives, none of which evolution has seen.

# %%
keys = jax.random.split(jax.random.key(1000), 100)
_, paths = jax.jit(jax.vmap(live, (None, 0)))(weights, keys)
upright = float(jnp.mean(jnp.abs(paths[:, -1, 2]) < 0.21))
first = float(jnp.mean(jax.vmap(live, (None, 0))(jnp.zeros(4), keys)[0]) / 50)
print(f"{upright:.0%} of the poles stand after {LENGTH / 50:.0f} s;", end=" ")
print(f"without control they fall after {first:.1f} s")

cover = plot.figure(title="angle of ten poles", xlabel="seconds", ylabel="degrees", height=260)
for path in paths[:10]:
    cover.line(jnp.arange(LENGTH) / 50, path[:, 2] * 180 / jnp.pi, width=1.5)
cover

# %%


def film():
    for x, _, angle, _ in paths[0, : LENGTH // 2]:
        figure = plot.figure(height=240, xlim=(-1.5, 1.5), ylim=(-0.2, 1.2), aspect="equal")
        figure.line([x - 0.2, x + 0.2], [0, 0], width=12, color="C0")
        figure.line([x, x + jnp.sin(angle)], [0, jnp.cos(angle)], width=5, color="C1")
        yield


animate(film, fps=50)

# %% [markdown]
# ## Try next
#
# - Let the pole begin at the bottom (`angle` near π), reward `jnp.cos(angle)`, and give the
#   controller a hidden layer.
# - The physics is differentiable: `jax.grad` of the return through all 300 steps is the other
#   way. Which needs fewer lives?
# - Change the length of the pole after training. How much does the controller bear?
