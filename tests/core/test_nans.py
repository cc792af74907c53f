"""debug_nans and debug_infs: the operation and the user's line, eagerly, compiled, in loops and derivatives, on
every backend.
"""

import numpy as np
import pytest
from platforms import need

import weft
import weft.numpy as jnp
from weft import lax

XS = np.float32([1.0, -1.0])
PROGRAMS = {
    "eager": (jnp.log, -1.0, "log"),
    "operator": (lambda x: (x - x) / (x - x), jnp.ones(2), "div"),
    "jit": (weft.jit(lambda x: jnp.log(x) + 1), -1.0, "log"),
    "jit in jit": (weft.jit(lambda x: weft.jit(jnp.sqrt)(x) * 2), -1.0, "sqrt"),
    "vmap of jit": (weft.vmap(weft.jit(jnp.log)), XS, "log"),
    "checkpoint": (weft.jit(weft.checkpoint(jnp.log)), -1.0, "log"),
    "scan": (lambda xs: lax.scan(lambda c, x: (c, jnp.sqrt(x)), 0.0, xs), XS, "sqrt"),
    "scan in jit": (
        weft.jit(lambda xs: lax.scan(lambda c, x: (c + jnp.sqrt(x), x), 0.0, xs, reverse=True)),
        XS,
        "sqrt",
    ),
    "while": (
        weft.jit(lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, jnp.sqrt(s[1] - 1)), (0, x))),
        1.0,
        "sqrt",
    ),
    "cond": (weft.jit(lambda x: lax.cond(x < 0, jnp.log, jnp.exp, x)), -1.0, "log"),
    "grad": (weft.grad(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0)), 0.0, "mul"),
    "donated": (weft.jit(lambda x: jnp.log(x) + 1, donate_argnums=0), jnp.float32(-1.0), "log"),
    "compiled ahead": (lambda x: weft.jit(jnp.log).lower(1.0).compile()(x), -1.0, "log"),
    "callback": (
        lambda x: weft.pure_callback(lambda _: np.float32("nan"), weft.ShapeDtypeStruct((), "float32"), x),
        1.0,
        "pure_callback",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_operation_and_the_line_are_named(name):
    f, x, primitive = PROGRAMS[name]
    with weft.debug_nans(True):
        for _ in range(2):  # a call that is known raises too
            with pytest.raises(
                FloatingPointError, match=rf"invalid value \(nan\) encountered in {primitive}\n  at .*test_nans.py"
            ):
                f(x)


def test_good_results_pass():
    f = weft.jit(lambda x, key: (jnp.log(x) + weft.random.normal(key), jnp.arange(3), key))
    with weft.debug_nans(True), weft.debug_infs(True):
        for _ in range(2):
            assert np.isfinite(f(2.0, weft.random.key(0))[0])
        assert float(jnp.max(jnp.ones(3))) == 1.0


@pytest.mark.parametrize("platform", ["cpu", "reference", "wasm"])
def test_programs_that_were_compiled_before_are_looked_at(platform):
    need(platform)
    before = weft.config.platforms
    weft.config.update("platforms", platform)
    try:
        f, x = weft.jit(lambda x: jnp.log(x)), jnp.float32(-1.0)
        for _ in range(2):
            assert np.isnan(np.asarray(f(x)))
        with weft.debug_nans(True), pytest.raises(FloatingPointError, match="log"):
            f(x)
        assert np.isnan(np.asarray(f(x)))
    finally:
        weft.config.update("platforms", before)


def test_infinities_apart_from_nans():
    f = weft.jit(jnp.log)
    with weft.debug_infs(True):
        for g in (jnp.log, f):
            assert np.isnan(g(-1.0))
            with pytest.raises(FloatingPointError, match=r"invalid value \(inf\) encountered in log"):
                g(0.0)
    with weft.debug_nans(True):
        assert np.isinf(f(0.0))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "complex64"])
def test_dtypes(dtype):
    with weft.debug_infs(True), pytest.raises(FloatingPointError, match="inf"):
        jnp.exp(jnp.full(2, 1e4, dtype))


def test_prints_are_not_repeated_while_the_operation_is_found(capfd):
    def f(x):
        weft.debug.print("x {}", x)
        return jnp.log(x)

    with weft.debug_nans(True), pytest.raises(FloatingPointError, match="log"):
        weft.jit(f)(-1.0)
    weft.effects_barrier()
    assert capfd.readouterr().out == "x -1.0\n"


def test_iterations_are_repeated_with_their_own_rows():
    def step(c, x):
        return c, lax.cond(x > 0, lambda x: x, lambda x: jnp.log(x), x)

    with weft.debug_nans(True), pytest.raises(FloatingPointError, match="log"):
        weft.jit(lambda xs: lax.scan(step, 0.0, xs))(jnp.array([1.0, 2.0, -1.0]))
