# %% [markdown]
# # A neural differential equation
#
# Foxes eat hares; hares multiply. Lotka (1925) and Volterra (1926) wrote down the law,
#
# $$\dot x = a x - b x y, \qquad \dot y = c\, x y - d\, y.$$
#
# Suppose that we don't know it, and have a few noisy counts only. Put a network in the place of
# the law, $\dot z = f_\theta(z)$, solve the equation, and let `jax.grad` find the weights through
# all steps of the solver ([Chen and others](https://arxiv.org/abs/1806.07366), 2018).

# %%
import jax
import jax.numpy as jnp
from weft import plot

STEPS, HIDDEN, DT, COUNT = 1200, 24, 0.1, 100  # steps of the training, and of the solver

# %% [markdown]
# ## A solver
#
# The classical method of Runge and Kutta, as one `scan`. It takes any law as an argument, the
# true one and the network.


# %%
def solve(law, start, count):
    def step(z, _):
        k1 = law(z)
        k2 = law(z + 0.5 * DT * k1)
        k3 = law(z + 0.5 * DT * k2)
        k4 = law(z + DT * k3)
        z = z + DT / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return z, z

    _, path = jax.lax.scan(step, start, None, length=count)
    return jnp.concatenate([start[None], path])


def nature(z):
    x, y = z
    return jnp.stack([0.9 * x - 0.8 * x * y, 0.6 * x * y - 0.7 * y])


start = jnp.array([1.2, 0.5])
truth = solve(nature, start, 2 * COUNT)
time = DT * jnp.arange(2 * COUNT + 1)
seen = jnp.arange(0, COUNT + 1, 2)
counts = truth[seen] + 0.03 * jax.random.normal(jax.random.key(0), (len(seen), 2))

# %% [markdown]
# ## The network
#
# Numbers of animals are positive, and change in proportion to themselves; so the network gives
# the rates of growth, $\dot z = z \cdot f_\theta(z)$. This is all that it is told.


# %%
def init(key):
    k1, k2 = jax.random.split(key)
    return {
        "w1": jax.random.normal(k1, (2, HIDDEN)),
        "b1": jnp.zeros(HIDDEN),
        "w2": jax.random.normal(k2, (HIDDEN, 2)) * 0.1,
        "b2": jnp.zeros(2),
    }


def network(params):
    return lambda z: z * (jnp.tanh(z @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"])


def loss(params):
    """Short flights from each count to the next three, which are easier to learn than one long one."""
    flights = jax.vmap(lambda z: solve(network(params), z, 6)[jnp.array([2, 4, 6])])(counts[:-3])
    wanted = jnp.stack([counts[k : len(counts) - 3 + k] for k in (1, 2, 3)], 1)
    return jnp.mean((flights - wanted) ** 2)


# %%
@jax.jit
def step(state, i):
    params, m, v = state
    value, slope = jax.value_and_grad(loss)(params)
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, slope)
    v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, slope)
    rate = 1e-2 * (1 - i / STEPS)
    params = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), params, m, v)
    return (params, m, v), value


params = init(jax.random.key(1))
zeros = jax.tree.map(jnp.zeros_like, params)
state = params, zeros, zeros
for i in range(STEPS):
    state, value = step(state, i)
    if i % 20 == 0:
        plot.curve("loss", i, value, xlabel="step", yscale="log")
params = state[0]

# %% [markdown]
# ## Beyond what it has seen
#
# The counts end in the middle. Does the learned law go on as nature does?

# %%
learned = jax.jit(lambda params: solve(network(params), counts[0], 2 * COUNT))(params)
error_seen = float(jnp.sqrt(jnp.mean((learned - truth)[: COUNT + 1] ** 2)))
error_unseen = float(jnp.sqrt(jnp.mean((learned - truth)[COUNT + 1 :] ** 2)))
print(f"off by {error_seen:.3f} where there were counts, by {error_unseen:.3f} after them")

figure = plot.figure(height=320, xlabel="time", ylabel="animals")
for k, animal in enumerate(("hares", "foxes")):
    figure.line(time, learned[:, k], label=f"{animal}, learned", color=f"C{k}")
    figure.line(time, truth[:, k], label=f"{animal}, truth", color=f"C{k}", style="dotted")
    figure.scatter(time[seen], counts[:, k], color=f"C{k}", size=5)
figure

# %% [markdown]
# ## The law itself
#
# Arrows are what the network has learned about each state, the ring is the solution. Far from the
# ring it never saw anything, and what it says there is a guess.

# %%
a, b = jnp.linspace(0.3, 2.6, 12), jnp.linspace(0.3, 2.6, 12)
states = jnp.stack(jnp.meshgrid(a, b), -1)
arrows = jax.vmap(jax.vmap(network(params)))(states)
cover = plot.figure(height=360, xlabel="hares", ylabel="foxes", aspect="equal")
cover.quiver(a, b, arrows[..., 0], arrows[..., 1])
cover.line(learned[:, 0], learned[:, 1], color="C1", width=3)
cover

# %% [markdown]
# ## Try next
#
# - Train on the whole flight at once, from the first count: what goes wrong, and why do short
#   flights help?
# - Tell it less: `network` without the factor `z`.
# - `import diffrax`: its solvers choose their steps by themselves, and the page fetches it.
