# %% [markdown]
# # A Gaussian process
#
# A curve through a few noisy points, with honest error bars: narrow where there are data, wide
# where there are none. A Gaussian process says that values at any points have a joint normal
# distribution, whose covariance is a function of the points, the *kernel*:
#
# $$f(x_1), \dots, f(x_n) \sim \mathcal N(0, K), \qquad K_{ij} = a^2 e^{-(x_i - x_j)^2 / 2\ell^2}.$$
#
# Two numbers describe it: how far values reach, $a$, and over what distance $\ell$ they forget
# each other. The book is Rasmussen and Williams, [Gaussian Processes for Machine
# Learning](https://gaussianprocess.org/gpml/) (2006).

# %%
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve, solve_triangular
from weft import plot
from weft.widgets import interact

POINTS, STEPS = 24, 150


def truth(x):
    return jnp.sin(3.0 * x) * jnp.exp(-0.15 * x**2)


k1, k2, k3 = jax.random.split(jax.random.key(5), 3)
x = jnp.concatenate(
    [
        jax.random.uniform(k1, (POINTS // 2,), minval=-3.0, maxval=-0.8),
        jax.random.uniform(k2, (POINTS // 2,), minval=0.6, maxval=3.0),
    ]
)
y = truth(x) + 0.1 * jax.random.normal(k3, (POINTS,))
grid = jnp.linspace(-4.0, 4.0, 160)

# %% [markdown]
# ## What the data say
#
# Conditioning a normal distribution on some of its values gives a normal distribution again. With
# the noise $\sigma$ added on the diagonal, and $k_*$ the covariances of a new point with the
# data,
#
# $$\mu_* = k_*^\top (K + \sigma^2 I)^{-1} y, \qquad v_* = k_{**} - k_*^\top (K + \sigma^2 I)^{-1} k_*.$$
#
# A Cholesky factor $LL^\top = K + \sigma^2 I$ solves both, and its diagonal gives the determinant
# that the likelihood needs.


# %%
def kernel(theta, a, b):
    distance = (a[:, None] - b[None, :]) / jnp.exp(theta["length"])
    return jnp.exp(2 * theta["reach"] - 0.5 * distance**2)


def factor(theta):
    return jnp.linalg.cholesky(
        kernel(theta, x, x) + jnp.exp(2 * theta["noise"]) * jnp.eye(POINTS)
    )


@jax.jit
def posterior(theta, at):
    """Mean and standard deviation of the curve at some points."""
    lower = factor(theta)
    across = kernel(theta, x, at)
    mean = across.T @ cho_solve((lower, True), y)
    rest = solve_triangular(lower, across, lower=True)
    variance = jnp.exp(2 * theta["reach"]) - jnp.sum(rest**2, axis=0)
    return mean, jnp.sqrt(jnp.maximum(variance, 1e-9))


# %% [markdown]
# ## Learn the kernel
#
# How plausible are the data, if the kernel has these parameters? The log marginal likelihood
# weighs the fit against the volume of curves that a kernel allows, so that it does not overfit:
#
# $$\log p(y) = -\tfrac12 y^\top (K + \sigma^2 I)^{-1} y - \sum_i \log L_{ii} - \tfrac n2 \log 2\pi.$$
#
# `jax.grad` differentiates the Cholesky factorization too. Logarithms of the parameters keep them
# positive.


# %%
def negative_log_likelihood(theta):
    lower = factor(theta)
    fit = 0.5 * y @ cho_solve((lower, True), y)
    return fit + jnp.sum(jnp.log(jnp.diag(lower))) + 0.5 * POINTS * jnp.log(2 * jnp.pi)


@jax.jit
def step(theta, momentum):
    value, slope = jax.value_and_grad(negative_log_likelihood)(theta)
    momentum = jax.tree.map(lambda m, g: 0.9 * m - 0.002 * g, momentum, slope)
    return jax.tree.map(jnp.add, theta, momentum), momentum, value


theta = {"length": jnp.log(2.0), "reach": jnp.log(0.5), "noise": jnp.log(0.5)}
momentum = jax.tree.map(jnp.zeros_like, theta)
for i in range(STEPS):
    theta, momentum, value = step(theta, momentum)
    plot.curve("negative log likelihood", i, value, xlabel="step")

learned = {name: float(jnp.exp(value)) for name, value in theta.items()}
print({name: round(value, 3) for name, value in learned.items()}, "— the noise was 0.1")


# %%
def draw(theta):
    mean, deviation = posterior(theta, grid)
    figure = plot.figure(height=340, xlabel="x", ylim=(-2.0, 2.0))
    figure.band(grid, mean - 2 * deviation, mean + 2 * deviation, label="95 %", color="C0")
    figure.line(grid, mean, label="mean", color="C0").line(
        grid, truth(grid), label="truth", color="C2", style="dashed"
    )
    return figure.scatter(x, y, label="data", color="C1", size=7)


cover = draw(theta)
mean, deviation = posterior(theta, grid)
inside = float(jnp.mean(jnp.abs(truth(grid) - mean) < 2 * deviation))
print(f"{inside:.0%} of the true curve lies in the band")

# %% [markdown]
# ## Turn the knobs
#
# A short length forgets at once and explains nothing between the points; a long one is sure of
# curves that the data refute.

# %%


@interact(length=(0.1, 3.0), reach=(0.2, 2.0), noise=(0.02, 0.6))
def by_hand(length=learned["length"], reach=learned["reach"], noise=learned["noise"]):
    chosen = {"length": jnp.log(length), "reach": jnp.log(reach), "noise": jnp.log(noise)}
    draw(chosen)
    print(f"negative log likelihood {float(negative_log_likelihood(chosen)):.2f}")


# %% [markdown]
# ## Try next
#
# - Draw whole curves from the posterior: its covariance has a Cholesky factor too, and
#   `jax.random.normal` does the rest.
# - Multiply the kernel by $\exp(-2\sin^2(\pi d)/\ell^2)$: now it knows that the curve repeats.
# - Where would one more measurement teach most? Take the point where `deviation` is largest,
#   measure `truth` there, and repeat: this is Bayesian optimization's first step.
