# %% [markdown]
# # Physics as a loss
#
# A wave that steepens until it nearly breaks: Burgers' equation describes it with a little
# viscosity $\nu$,
#
# $$u_t + u\,u_x = \nu\,u_{xx}, \qquad u(x, 0) = -\sin(\pi x), \qquad u(\pm 1, t) = 0.$$
#
# A network $u_\theta(x, t)$ can learn the solution without ever seeing it. Its loss is how much
# it violates the equation, at random points ([Raissi, Perdikaris and
# Karniadakis](https://arxiv.org/abs/1711.10561), 2017).

# %%
import jax
import jax.numpy as jnp
from weft import plot

STEPS, POINTS, WIDTH = 1500, 384, 24
NU = 0.1 / jnp.pi  # 0.01 / π makes a shock, and takes far longer

# %% [markdown]
# ## The network
#
# The conditions need no loss: a factor that is 0 at the beginning and at the walls makes them
# true for any weights, $u = -\sin(\pi x) + t\,(1 - x^2)\,N_\theta(x, t)$.


# %%
def init(key, sizes=(2, WIDTH, WIDTH, WIDTH, 1)):
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        (jax.random.normal(k, (m, n)) / m**0.5, jnp.zeros(n))
        for k, m, n in zip(keys, sizes, sizes[1:])
    ]


def u(params, x, t):
    """The solution at one point."""
    h = jnp.stack([2 * x, 2 * t - 1])
    for w, b in params[:-1]:
        h = jnp.tanh(h @ w + b)
    w, b = params[-1]
    return -jnp.sin(jnp.pi * x) + t * (1 - x**2) * (h @ w + b)[0]


# %% [markdown]
# ## The equation
#
# It reads as it is written: derivatives of the network are `grad` of it, and `grad` of `grad`.
# The loss is then differentiated once more, by the weights.


# %%
def residual(params, x, t):
    u_t = jax.grad(u, 2)(params, x, t)
    u_x = jax.grad(u, 1)(params, x, t)
    u_xx = jax.grad(jax.grad(u, 1), 1)(params, x, t)
    return u_t + u(params, x, t) * u_x - NU * u_xx


def loss(params, key):
    k1, k2 = jax.random.split(key)
    x = jax.random.uniform(k1, (POINTS,), minval=-1.0)
    t = jax.random.uniform(k2, (POINTS,))
    return jnp.mean(jax.vmap(residual, (None, 0, 0))(params, x, t) ** 2)


# %% [markdown]
# ## Training
#
# New points in each step, and Adam, written out.


# %%
@jax.jit
def step(state, i):
    params, m, v = state
    value, slope = jax.value_and_grad(loss)(params, jax.random.fold_in(jax.random.key(1), i))
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, slope)
    v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, slope)
    rate = 5e-3 * (1 - i / STEPS)
    params = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), params, m, v)
    return (params, m, v), value


params = init(jax.random.key(0))
zeros = jax.tree.map(jnp.zeros_like, params)
state = params, zeros, zeros
for i in range(STEPS):
    state, value = step(state, i)
    if i % 20 == 0:
        plot.curve("violation of the equation", i, value, xlabel="step", yscale="log")
params = state[0]

# %% [markdown]
# ## The exact solution
#
# Cole and Hopf found around 1950 that $u = -2\nu\,\varphi_x / \varphi$ turns the equation into
# that of heat. The solution is a quotient of two integrals over a normal distribution, which a
# fine sum computes:
#
# $$u(x,t) = -\frac{\int \sin(\pi(x-\eta))\, g(x-\eta)\, e^{-\eta^2/4\nu t}\, d\eta}
# {\int g(x-\eta)\, e^{-\eta^2/4\nu t}\, d\eta}, \qquad g(y) = e^{-\cos(\pi y)/2\pi\nu}.$$


# %%
def exact(x, t):
    eta = jnp.linspace(-8.0, 8.0, 801) * jnp.sqrt(2 * NU * t + 1e-9)
    y = x - eta
    log_weight = -jnp.cos(jnp.pi * y) / (2 * jnp.pi * NU) - eta**2 / (4 * NU * t + 2e-9)
    weight = jax.nn.softmax(log_weight)
    return -jnp.sum(jnp.sin(jnp.pi * y) * weight)


x, t = jnp.linspace(-1, 1, 101), jnp.linspace(0, 1, 51)
over = lambda f: jax.jit(jax.vmap(jax.vmap(f, (0, None)), (None, 0)))(x, t)
found, wanted = over(lambda x, t: u(params, x, t)), over(exact)
error = float(jnp.sqrt(jnp.mean((found - wanted) ** 2) / jnp.mean(wanted**2)))
print(f"relative error of the solution: {error:.2%}")

# %%
figure = plot.figure(columns=2, height=280)
picture = figure.panel(title="the network", xlabel="t", ylabel="x")
picture.image(found.T, origin="lower", extent=(0, 1, -1, 1), cmap="coolwarm")
curves = figure.panel(title="the wave steepens", xlabel="x")
for k, moment in enumerate((0, 20, 50)):
    curves.line(x, found[moment], label=f"t = {float(t[moment]):.1f}", color=f"C{k}")
    curves.line(x, wanted[moment], color=f"C{k}", style="dotted")
cover = 0.5 - 0.5 * found.T
figure

# %% [markdown]
# ## Try next
#
# - Plot `residual` over the plane: where is the equation hardest? Draw more points there.
# - Take $\nu$ from the weights too: `init` gives it a first value, and a few measurements of $u$
#   decide it.
# - Another equation is three lines: heat, waves, or $u_{tt} = -\sin u$.
