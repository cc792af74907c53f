"""odeint against SciPy's integrators and closed forms; its gradients against differences."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import weft
import weft.numpy as jnp
from weft.base.config import enable_x64
from weft.experimental.ode import odeint

pytestmark = pytest.mark.slow

TIMES = np.linspace(0.0, 3.0, 5)


def pendulum(y, t, a, drag):
    return {"p": y["v"], "v": -a * jnp.sin(y["p"]) - drag["k"] * y["v"]}


@pytest.fixture(autouse=True)
def double():
    with enable_x64(True):
        yield


def test_a_pendulum_as_scipy_has_it():
    want = solve_ivp(
        lambda t, y: [y[1], -2 * np.sin(y[0]) - 0.3 * y[1]], (0, 3), [1.0, 0.0], t_eval=TIMES, rtol=1e-11, atol=1e-11
    ).y
    got = odeint(pendulum, {"p": 1.0, "v": 0.0}, TIMES, 2.0, {"k": 0.3})
    np.testing.assert_allclose(np.asarray(got["p"]), want[0], atol=1e-7)
    np.testing.assert_allclose(np.asarray(got["v"]), want[1], atol=1e-7)
    loose = odeint(pendulum, {"p": 1.0, "v": 0.0}, TIMES, 2.0, {"k": 0.3}, rtol=1e-3, atol=1e-3)
    assert 1e-7 < np.abs(np.asarray(loose["p"]) - want[0]).max() < 1e-2  # what is tolerated is used


def test_gradients():
    def loss(p, v, a, k, ts):
        return (odeint(pendulum, {"p": p, "v": v}, ts, a, {"k": k})["p"] ** 2).sum()

    value = weft.jit(loss)
    at = [1.0, 0.0, 2.0, 0.3, TIMES]
    grads = weft.jit(weft.grad(loss, (0, 1, 2, 3, 4)))(*at)
    for i in range(4):
        ends = [value(*[x + s * 1e-5 if j == i else x for j, x in enumerate(at)]) for s in (1, -1)]
        np.testing.assert_allclose(float(grads[i]), float(ends[0] - ends[1]) / 2e-5, rtol=1e-4)
    for i in range(5):
        step = np.eye(5)[i] * 1e-5
        np.testing.assert_allclose(
            float(grads[4][i]), float(value(*at[:4], TIMES + step) - value(*at[:4], TIMES - step)) / 2e-5, rtol=1e-4
        )


def test_closed_over_batched_complex_and_integer():
    decay = lambda a: odeint(lambda y, t: -a * y, 1.0, jnp.array([0.0, 1.0]))[-1]
    np.testing.assert_allclose(
        np.asarray(weft.jit(weft.vmap(weft.value_and_grad(decay)))(jnp.array([1.0, 2.0]))),
        [np.exp([-1, -2]), -np.exp([-1, -2])],
        rtol=1e-6,
    )
    np.testing.assert_allclose(
        np.asarray(odeint(lambda y, t: 1j * y, 1 + 0j, jnp.array([0.0, 1.0, 1.0, 2.0]))),
        np.exp(1j * np.array([0, 1, 1, 2])),
        rtol=1e-6,
    )
    # an integer has no derivative
    steps = lambda a: odeint(lambda y, t, n: -a * y * n, 1.0, jnp.array([0.0, 0.5]), 2)[-1]
    np.testing.assert_allclose(float(weft.grad(steps)(1.0)), -np.exp(-1), rtol=1e-6)


def test_limits_and_repeated_times():
    decay = lambda **kw: np.asarray(odeint(lambda y, t: -y, 1.0, jnp.array([0.0, 0.0, 1.0]), **kw))
    np.testing.assert_allclose(decay(), [1, 1, np.exp(-1)], rtol=1e-6)
    # short steps are exact
    np.testing.assert_allclose(decay(hmax=0.05, rtol=1e-2, atol=1e-2), [1, 1, np.exp(-1)], rtol=1e-7)
    # one step is not enough
    assert abs(decay(mxstep=1)[-1] - np.exp(-1)) > 1e-4


def test_bad_input():
    with pytest.raises(TypeError, match="must be arrays or scalars"):
        odeint(lambda y, t: y, "y", TIMES)
    with pytest.raises(TypeError, match="floats of shape"):
        odeint(lambda y, t: y, 1.0, jnp.arange(3))
    with pytest.raises(TypeError, match="floating-point"):
        odeint(lambda y, t: y, 1, TIMES)
    with pytest.raises(TypeError, match="what y0 is"):
        odeint(lambda y, t: (y, y), 1.0, TIMES)
    with pytest.raises(TypeError, match="forward-mode"):
        weft.jvp(lambda a: odeint(lambda y, t: -a * y, 1.0, TIMES), (1.0,), (1.0,))
