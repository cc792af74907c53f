"""diffrax: a neural differential equation learns a spiral; adaptive and implicit steps, two adjoints, and a
stochastic equation.
"""

import weft.as_jax  # noqa: F401  `import jax` gives weft
import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import optax


class Field(eqx.Module):
    mlp: eqx.nn.MLP

    def __init__(self, key):
        self.mlp = eqx.nn.MLP(2, 2, 32, 1, activation=jnp.tanh, key=key)

    def __call__(self, t, y, args):
        return self.mlp(y)


def solve(field, y0, times):
    return diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        diffrax.Tsit5(),
        times[0],
        times[-1],
        0.1,
        y0,
        saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=diffrax.PIDController(1e-3, 1e-6),
    ).ys


def main() -> dict:
    times = jnp.linspace(0.0, 3.0, 16)
    matrix = jnp.array([[-0.1, 2.0], [-2.0, -0.1]])
    starts = jnp.array([[2.0, 0.0], [1.5, 0.5], [1.0, 1.0]])
    truth = jax.vmap(lambda y0: solve(lambda t, y, args: jnp.tanh(y) @ matrix, y0, times))(starts)
    model, optimizer = Field(jax.random.key(0)), optax.adam(1e-2)

    def loss(model):
        return jnp.mean((jax.vmap(lambda y0: solve(model, y0, times))(starts) - truth) ** 2)

    @eqx.filter_jit
    def step(model, state):
        value, grads = eqx.filter_value_and_grad(loss)(model)
        updates, state = optimizer.update(grads, state)
        return eqx.apply_updates(model, updates), state, value

    state, losses = optimizer.init(eqx.filter(model, eqx.is_inexact_array)), []
    for _ in range(120):
        model, state, value = step(model, state)
        losses.append(float(value))
    assert losses[-1] < 0.3 * losses[0], losses[::20]

    def decay(rate, solver, adjoint=diffrax.RecursiveCheckpointAdjoint()):
        return diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, rate: -rate * y),
            solver,
            0.0,
            1.0,
            0.0125,
            jnp.array(1.0),
            args=rate,
            adjoint=adjoint,
        ).ys[0]

    for solver in (diffrax.Euler(), diffrax.Heun(), diffrax.Dopri5()):
        assert abs(float(decay(2.0, solver)) - 0.1353353) < 5e-3
    grads = [
        float(jax.grad(decay)(2.0, diffrax.Tsit5(), adjoint))
        for adjoint in (diffrax.RecursiveCheckpointAdjoint(), diffrax.DirectAdjoint())
    ]
    assert all(abs(g + 0.1353353) < 1e-3 for g in grads), grads
    stiff = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, args: -100.0 * (y - jnp.cos(t))),
        diffrax.Kvaerno3(),
        0.0,
        1.0,
        0.002,
        jnp.array(0.0),
        stepsize_controller=diffrax.PIDController(1e-3, 1e-4),
    ).ys[0]
    assert abs(float(stiff) - 0.54866) < 2e-3, stiff
    brownian = diffrax.VirtualBrownianTree(0.0, 1.0, 1e-3, (), jax.random.key(1))
    terms = diffrax.MultiTerm(
        diffrax.ODETerm(lambda t, y, args: -y), diffrax.ControlTerm(lambda t, y, args: 0.1, brownian)
    )
    noisy = diffrax.diffeqsolve(terms, diffrax.EulerHeun(), 0.0, 1.0, 0.01, 1.0).ys[0]
    return {
        "loss at the start": losses[0],
        "loss after 5 steps": losses[4],
        "stiff": float(stiff),
        "stochastic": float(noisy),
    }


if __name__ == "__main__":
    print(main())
