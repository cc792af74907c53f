"""Times of kernels: each kernel that runs is there, with its count, and the results are as otherwise."""

import time

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from platforms import need, on
from weft import lax
from weft.errors import BackendError

TIMED = ("wasm", "webgpu")


def net(w, x):
    for _ in range(3):
        x = jnp.tanh(x @ w)
    return x.sum(0)


@pytest.mark.parametrize("platform", TIMED)
def test_each_kernel_has_a_time(platform):
    need(platform)
    with on(platform):
        w, x = jnp.ones((64, 64)) / 64, jnp.ones((128, 64))
        start = time.perf_counter()
        times = weft.profiler.kernel_times(net, w, x)
        elapsed = time.perf_counter() - start
        kernels = weft.jit(net).lower(w, x).compile().cost_analysis()["kernels"]
    # on WebGPU a kernel of the loop IR may become several shaders
    assert len(times) >= 2 and sum(t.calls for t in times) <= kernels
    assert all(type(t.name) is str and t.seconds > 0 and t.calls >= 1 for t in times)
    assert sum(t.seconds for t in times) < elapsed
    assert [t.seconds for t in times] == sorted([t.seconds for t in times], reverse=True)


@pytest.mark.parametrize("platform", TIMED)
def test_kernels_in_loops_count_each_time(platform):
    need(platform)

    def f(x):
        return lax.fori_loop(0, 7, lambda k, x: jnp.sin(x) @ x, x)

    with on(platform):
        times = weft.profiler.kernel_times(f, jnp.ones((32, 32)))
    assert 7 in [t.calls for t in times]


def test_the_timed_program_gives_the_same():
    need("wasm")
    with on("wasm"):
        x = jnp.arange(4096.0).reshape(64, 64) / 4096
        f = weft.jit(lambda x: (jnp.sin(x) @ x).sum(0))
        timed = f.lower(x).compile({"kernel_times": True})
        np.testing.assert_array_equal(np.asarray(timed(x)), np.asarray(f(x)))


def test_callbacks_of_the_program_run_too():
    need("wasm")
    seen = []

    def f(x):
        weft.debug.callback(lambda v: seen.append(float(v)), x.sum())
        return jnp.cumsum(x)

    with on("wasm"):
        assert weft.profiler.kernel_times(f, jnp.ones(8))
        weft.effects_barrier()
    assert seen == [8.0, 8.0]


def test_donated_arguments_stay():
    need("wasm")
    with on("wasm"):
        x = jnp.ones(64)
        weft.profiler.kernel_times(weft.jit(lambda x: x + 1, donate_argnums=0), x)
        assert float(x.sum()) == 64


def test_others_say_what_they_lack():
    need("cpu")
    with on("cpu"), pytest.raises(BackendError, match="does not time kernels.*profiler.trace"):
        weft.profiler.kernel_times(jnp.sin, jnp.ones(3))


@pytest.mark.parametrize("platform", TIMED)
def test_unknown_options_are_refused(platform):
    need(platform)
    with on(platform), pytest.raises(BackendError, match="no option fast_math.*kernel_times"):
        weft.jit(jnp.sin).lower(jnp.ones(3)).compile({"fast_math": True})
