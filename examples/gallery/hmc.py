# %% [markdown]
# # Hamiltonian Monte Carlo
#
# A regression gives one curve; Bayes gives all curves that the data allow, each as often as it is
# plausible. To draw from this *posterior*, imagine a ball on a landscape whose height is
# $U(\theta) = -\log p(\theta \mid \text{data})$. Kick it in a random direction, let it roll
# without friction for a while, and note where it is:
#
# $$H(\theta, p) = U(\theta) + \tfrac12 |p|^2, \qquad \dot\theta = p, \qquad \dot p = -\nabla U(\theta).$$
#
# Rolling carries it far, and `jax.grad` gives the slope. The method is of Duane, Kennedy,
# Pendleton and Roweth (1987); [Betancourt's introduction](https://arxiv.org/abs/1701.02434)
# explains why it works.

# %%
import jax
import jax.numpy as jnp
from weft import plot

WARMUP, SAMPLES, CHAINS, LEAPS = 200, 400, 8, 12

AGES = jnp.array(
    [66, 70, 69, 68, 67, 72, 73, 70, 57, 63, 70, 78, 67, 53, 67, 75, 70, 81, 76, 79, 75, 76, 58.0]
)
FAILED = jnp.array([0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1.0])

# %% [markdown]
# ## The data
#
# Temperatures at 23 starts of the Space Shuttle before January 1986, in °F, and whether a seal
# was damaged ([Dalal, Fowlkes and Hoadley](https://www.jstor.org/stable/2290069), 1989). At the
# start of Challenger it was 31 °F. Logistic regression says that the log odds of damage change in
# proportion to the temperature,
#
# $$P(\text{damage}) = \frac{1}{1 + e^{-(\alpha + \beta t)}},$$
#
# with wide normal priors on both numbers, and $t$ in units of ten degrees from 70.

# %%
t = (AGES - 70.0) / 10.0


def potential(theta):
    """Minus the logarithm of the posterior, up to a constant."""
    odds = theta[0] + theta[1] * t
    likelihood = jnp.sum(FAILED * odds - jax.nn.softplus(odds))
    prior = -0.5 * jnp.sum(theta**2) / 5.0**2
    return -(likelihood + prior)


# %% [markdown]
# ## Roll
#
# The leapfrog keeps the energy nearly. What is lost is settled by accepting the end with
# probability $\min(1, e^{H_\text{begin} - H_\text{end}})$, which makes the draws exact
# (Metropolis).


# %%
def roll(theta, p, size):
    def leap(state, _):
        theta, p = state
        p = p - 0.5 * size * jax.grad(potential)(theta)
        theta = theta + size * p
        p = p - 0.5 * size * jax.grad(potential)(theta)
        return (theta, p), theta

    (theta, p), path = jax.lax.scan(leap, (theta, p), None, length=LEAPS)
    return theta, p, path


def draw(theta, key, size):
    k1, k2 = jax.random.split(key)
    kick = jax.random.normal(k1, theta.shape)
    new, p, _ = roll(theta, kick, size)
    lost = potential(new) + 0.5 * p @ p - potential(theta) - 0.5 * kick @ kick
    chance = jnp.exp(jnp.minimum(0.0, -lost))
    return jnp.where(jax.random.uniform(k2) < chance, new, theta), chance


# %% [markdown]
# ## Chains
#
# While warming up, each step adapts its size until four of five rolls are accepted. `scan` runs a
# chain, `vmap` runs eight of them, `jit` makes one program of all.


# %%
def chain(key):
    def one(state, inputs):
        theta, log_size = state
        key, rate = inputs
        theta, chance = draw(theta, key, jnp.exp(log_size))
        return (theta, log_size + rate * (chance - 0.8)), (theta, chance)

    k1, k2 = jax.random.split(key)
    keys = jax.random.split(k2, WARMUP + SAMPLES)
    rates = jnp.where(jnp.arange(WARMUP + SAMPLES) < WARMUP, 0.1, 0.0)
    _, (draws, chances) = jax.lax.scan(
        one, (jax.random.normal(k1, (2,)), jnp.log(0.1)), (keys, rates)
    )
    return draws[WARMUP:], chances[WARMUP:]


draws, chances = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(0), CHAINS))
flat = draws.reshape(-1, 2)
accepted = float(chances.mean())
print(f"{len(flat)} draws, {accepted:.0%} of the rolls accepted")

# %% [markdown]
# ## Can they be trusted?
#
# If chains that began elsewhere tell the same, their spread within and between agrees: $\hat R$
# is near 1. And as there are but two numbers here, a fine grid gives the posterior without any
# sampling, to compare with.

# %%
within = draws.var(axis=1).mean(0)
between = draws.mean(1).var(0, ddof=1)
r_hat = jnp.sqrt((within + between) / within)

a, b = jnp.linspace(-4, 3, 120), jnp.linspace(-7, 2, 120)
grid = jnp.stack(jnp.meshgrid(a, b), -1)
height = jax.vmap(jax.vmap(potential))(grid)
weight = jnp.exp(height.min() - height)
exact = jnp.sum(weight[..., None] * grid, (0, 1)) / weight.sum()
mean = flat.mean(0)
error = float(jnp.abs(mean - exact).max())
print("R-hat", r_hat, " mean", mean, " on the grid", exact)

cover = plot.figure(title="the posterior", xlabel="α", ylabel="β", height=360)
cover.contour(a, b, weight, levels=7).scatter(flat[::4, 0], flat[::4, 1], size=3, color="C1")
_, _, path = roll(flat[-1], jnp.array([1.5, -1.0]), 0.1)
cover.line(path[:, 0], path[:, 1], color="C2", width=3, label="one roll")
cover

# %% [markdown]
# ## What it says
#
# Each draw is a curve; together they give a probability and how sure one can be of it.

# %%
fahrenheit = jnp.linspace(28, 84, 100)
curves = jax.nn.sigmoid(flat[:, :1] + flat[:, 1:] * (fahrenheit - 70) / 10)
low, median, high = jnp.quantile(curves, jnp.array([0.05, 0.5, 0.95]), axis=0)
figure = plot.figure(
    title="damage of a seal", xlabel="temperature (°F)", ylabel="probability", height=320
)
figure.band(fahrenheit, low, high, label="90 %", color="C0").line(
    fahrenheit, median, label="median", color="C0"
)
figure.scatter(AGES, FAILED, label="flights", color="C1", size=8)
figure.line([31, 31], [0, 1], label="Challenger, 31 °F", style="dashed", color="C3")
at_31 = float(jnp.mean(jax.nn.sigmoid(flat[:, 0] + flat[:, 1] * -3.9)))
print(f"at 31 °F: {at_31:.0%}")

# %% [markdown]
# ## Try next
#
# - Let the step be ten times as large: how many rolls are accepted? And with a single leap, how
#   far do chains get?
# - `import blackjax` and replace `chain` by its NUTS, which finds the number of leaps by itself;
#   `import optax` and begin at the maximum that `optax.adam` finds. The page fetches both.
# - Give the priors a scale of 1 in place of 5: does the answer at 31 °F change? It should give
#   you pause.
