# %% [markdown]
# # Galaxies collide
#
# Every star pulls every other. Newton's law for the acceleration of star $i$, softened by a small
# length $\varepsilon$ so that close encounters stay finite, is
#
# $$a_i = \sum_j \frac{m_j\,(x_j - x_i)}{\left(|x_j - x_i|^2 + \varepsilon^2\right)^{3/2}}.$$
#
# Two discs of stars fall towards each other here; tides draw out arms and bridges, as in the
# famous simulations of [Toomre and Toomre](https://ui.adsabs.harvard.edu/abs/1972ApJ...178..623T)
# (1972).

# %%
import jax
import jax.numpy as jnp
from weft import plot
from weft.widgets import animate

STARS, FRAMES, PER_FRAME, DT = 600, 120, 4, 0.01  # stars cost their square
SOFTENING = 0.25

# %% [markdown]
# ## All pairs at once
#
# With $w_{ij} = m_j / r_{ij}^3$ the sum is a product of matrices, $a = Wx - x \sum_j w_{ij}$, and
# so are the squared distances, $r_{ij}^2 = |x_i|^2 + |x_j|^2 - 2\,x_i \cdot x_j$. The energy is
# what the simulation must keep, so we compute it too.


# %%
def inverse_distance(x):
    squares = jnp.sum(x * x, axis=1)
    apart = squares[:, None] + squares[None, :] - 2 * x @ x.T
    return jax.lax.rsqrt(jnp.maximum(apart, 0.0) + SOFTENING**2)


def acceleration(x, mass):
    near = inverse_distance(x)
    weight = mass * near * near * near
    return weight @ x - x * jnp.sum(weight, axis=1, keepdims=True)


@jax.jit
def energy(x, v, mass):
    pairs = mass[:, None] * mass[None, :] * inverse_distance(x)
    potential = -0.5 * (jnp.sum(pairs) - jnp.sum(mass**2) / SOFTENING)
    return 0.5 * jnp.sum(mass[:, None] * v**2) + potential


# %% [markdown]
# ## Steps that keep the energy
#
# Euler's method lets planets spiral away. The *leapfrog* moves positions and velocities in turn,
#
# $$v \leftarrow v + \tfrac{h}{2} a(x), \qquad x \leftarrow x + h\,v, \qquad v \leftarrow v + \tfrac{h}{2} a(x).$$
#
# It is symplectic: the energy wavers a little, but never drifts.


# %%
@jax.jit
def advance(x, v, mass):
    def step(state, _):
        x, v, a = state
        v = v + 0.5 * DT * a
        x = x + DT * v
        a = acceleration(x, mass)  # serves the next step's first half too
        return (x, v + 0.5 * DT * a, a), None

    x, v, _ = jax.lax.scan(step, (x, v, acceleration(x, mass)), None, length=PER_FRAME)[0]
    return x, v


# %% [markdown]
# ## Two discs
#
# A heavy centre and light stars on circles around it, at the speed that balances gravity.


# %%
def galaxy(key, count, at, moving, tilt):
    k1, k2, k3 = jax.random.split(key, 3)
    r = 0.25 + 0.9 * jnp.sqrt(jax.random.uniform(k1, (count,)))
    angle = 2 * jnp.pi * jax.random.uniform(k2, (count,))
    disc = jnp.stack(
        [r * jnp.cos(angle), r * jnp.sin(angle), 0.02 * jax.random.normal(k3, (count,))], -1
    )
    around = jnp.stack([-jnp.sin(angle), jnp.cos(angle), jnp.zeros(count)], -1)
    speed = jnp.sqrt(r**2 / (r**2 + SOFTENING**2) ** 1.5)[:, None]
    turn = jnp.array(
        [[1, 0, 0], [0, jnp.cos(tilt), -jnp.sin(tilt)], [0, jnp.sin(tilt), jnp.cos(tilt)]]
    )
    x = jnp.concatenate([jnp.zeros((1, 3)), disc @ turn.T]) + jnp.array(at)
    v = jnp.concatenate([jnp.zeros((1, 3)), speed * around @ turn.T]) + jnp.array(moving)
    mass = jnp.concatenate([jnp.ones(1), jnp.full(count, 0.05 / count)])
    return x, v, mass


k1, k2 = jax.random.split(jax.random.key(0))
one = galaxy(k1, STARS // 2, (-1.3, -0.7, 0.0), (0.3, 0.0, 0.0), 0.3)
other = galaxy(k2, STARS // 2, (1.3, 0.7, 0.0), (-0.3, 0.0, 0.0), -0.9)
x, v, mass = (jnp.concatenate(pair) for pair in zip(one, other))
origin = jnp.arange(len(mass)) >= len(one[2])

# %% [markdown]
# ## Watch
#
# Colours tell the galaxies apart.


# %%
def draw(x, height=420):
    figure = plot.figure(height=height, xlim=(-3.3, 3.3), ylim=(-2.2, 2.2), aspect="equal")
    for k in (0, 1):
        figure.scatter(x[origin == k, 0], x[origin == k, 1], color=f"C{k}", size=3)
    return figure


energies, start = [float(energy(x, v, mass))], v


def collide():
    global x, v
    for _ in range(FRAMES):
        x, v = advance(x, v, mass)
        energies.append(float(energy(x, v, mass)))
        draw(x)
        yield


animate(collide, fps=60)

# %%
drift = abs(energies[-1] / energies[0] - 1)
waver = max(abs(e / energies[0] - 1) for e in energies)
momentum = float(jnp.abs(jnp.sum(mass[:, None] * (v - start), axis=0)).max())
print(f"energy: {drift:.1e} off at the end, at most {waver:.1e}; momentum: {momentum:.1e} off")
time = jnp.arange(FRAMES + 1) * PER_FRAME * DT
plot.figure(title="energy", height=200).line(time, jnp.array(energies), xlabel="time")
cover = draw(x)
cover

# %% [markdown]
# ## Try next
#
# - Let one disc turn the other way (`-speed`): its arms stay short. Tides tear most where they
#   turn along.
# - Replace the leapfrog by Euler's method, `x + DT * v` and `v + DT * a`, and watch the energy.
# - Raise `STARS` to 4000 and choose *WebGPU* or a host above: 16 million pairs for each step.
