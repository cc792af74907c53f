"""Calls of Python functions from compiled programs: through the module's import, and as a step of a plan."""

import numpy as np
import pytest
import weft
from platforms import on, under_test
import weft.numpy as jnp
from weft import lax
from weft.experimental import io_callback


@pytest.fixture(params=under_test("wasm", "webgpu"), autouse=True)
def platform(request, wasm):
    weft.config.update("jax_platforms", request.param)
    with weft.enable_x64(request.param == "wasm"), on(request.param):
        yield request.param


def shape(*sizes, dtype="float32"):
    return weft.ShapeDtypeStruct(sizes, dtype)


def test_prints_of_loops_stand_in_order(capsys):
    @weft.jit
    def f(n, x):
        def body(i, c):
            weft.debug.print("{i}: {c}", i=i, c=c, ordered=True)
            return c * 2

        return lax.cond(x > 0, lambda: lax.fori_loop(0, n, body, x), lambda: x)

    assert float(f(3, jnp.float32(1))) == 8
    assert float(f(3, jnp.float32(-1))) == -1
    assert capsys.readouterr().out == "0: 1.0\n1: 2.0\n2: 4.0\n"


def test_equal_calls_happen_each():
    seen = []
    weft.jit(lambda x: [weft.debug.callback(seen.append, x), weft.debug.callback(seen.append, x)])(1.0)
    assert [float(v) for v in seen] == [1, 1]


def test_results_take_part():
    f = lambda x: weft.pure_callback(lambda v: np.sin(np.asarray(v)), shape(3), x)
    x = np.float32([1, 2, 3])
    np.testing.assert_allclose(
        np.asarray(weft.jit(lambda x: (f(x) + f(x * 2))[::-1])(x)), (np.sin(x) + np.sin(2 * x))[::-1], rtol=1e-6
    )
    total, rows = weft.jit(lambda x: lax.scan(lambda c, v: (c + v, f(v * jnp.ones(3, "float32"))), jnp.float32(0), x))(
        x
    )
    np.testing.assert_allclose(np.asarray(rows), np.sin(x)[:, None] * np.ones(3), rtol=1e-6)


def test_other_programs_run_inside():
    # the memory grows meanwhile
    big = lambda v: np.asarray(jnp.ones((300, 300)) @ jnp.ones((300, 300)))[0, :3] * np.asarray(v)
    f = weft.jit(lambda x: weft.pure_callback(big, shape(3), x) + 1)
    np.testing.assert_array_equal(np.asarray(f(np.float32([1, 2, 3]))), [301, 601, 901])


@pytest.mark.parametrize("dtype", ["complex64", "int8", "bool", "bfloat16", "int4", "float8_e5m2"])
def test_dtypes(dtype):
    x = jnp.asarray([1, 0, 1]).astype(dtype)
    seen = []
    out = weft.jit(lambda x: weft.pure_callback(lambda v: (seen.append(v.dtype), v)[1], shape(3, dtype=dtype), x))(x)
    assert out.dtype == dtype == seen[0] and (np.asarray(out) == np.asarray(x)).all()


def test_an_error_is_raised_where_the_program_was_called():
    f = weft.jit(lambda x: weft.pure_callback(lambda v: {}[3], shape(), x))
    for _ in range(2):
        # as on XLA; libraries look for the name in it
        with pytest.raises(weft.errors.JaxRuntimeError, match="KeyError: 3") as caught:
            f(1.0)
        assert isinstance(caught.value.__cause__, KeyError)
    g = weft.jit(lambda x: weft.pure_callback(lambda v: np.zeros(4, "float32"), shape(3), x))
    with pytest.raises(weft.errors.JaxRuntimeError, match="ValueError.*(float32\\[3\\]|f32\\[3\\])"):
        g(1.0)


def test_inputs_outputs_happen_once_each():
    seen = []
    f = weft.jit(
        lambda x: io_callback(lambda v: (seen.append(float(v)), np.float32(len(seen)))[1], shape(), x, ordered=True)
    )
    assert [float(f(float(k))) for k in range(3)] == [1, 2, 3] and seen == [0, 1, 2]
