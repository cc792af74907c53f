"""A WebGPU device that is lost: a new one takes its place, and what was only there is missed where it is used."""

import os
import subprocess
import sys

import pytest
from platforms import need

need("webgpu")

BEGIN = """
import numpy as np, weft, weft.numpy as jnp
from weft.errors import BackendError
device = weft.devices("webgpu")[0]
def lose():
    device.backend.runtime.device.device.destroy()
def error(f):
    try:
        f()
    except BackendError as e:
        return str(e)
double = weft.jit(lambda v: 2 * v)
x, read = jnp.arange(4.0), jnp.arange(3.0)
np.asarray(read)
"""


def run(source: str) -> str:
    """What a program prints in a process of its own, whose device can be lost."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BEGIN + source],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "JAX_PLATFORMS": "webgpu"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "use", ["np.asarray(x)", "double(x)", "x + 1", "x.block_until_ready()", "weft.jit(lambda v: v + 3)(x)"]
)
def test_what_was_only_there_is_missed(use):
    said = run(f"double(x); lose(); print(error(lambda: {use})); print(double(jnp.ones(2)), jnp.ones(2).device)")
    first, after = said.strip().splitlines()
    assert "was lost with its WebGPU device (its driver has ended it). Compute it again" in first
    assert after == "[2. 2.] WebGpuDevice(id=0)"


def test_what_was_read_is_uploaded_again():
    assert (
        run("double(read); lose(); print(double(read), read + 1, np.asarray(read))")
        == "[0. 2. 4.] [1. 2. 3.] [0. 1. 2.]\n"
    )


def test_small_arrays_of_the_host_are_kept():
    """Constants of a program are in no variable that one could compute again."""
    source = (
        "c, big = jnp.float32(2), weft.device_put(np.ones(1000, np.float32), device); f = weft.jit(lambda v: v * c)\n"
    )
    source += "f(read); lose(); print(f(read), c, jnp.array([1, 2]) + 1, error(lambda: np.asarray(big))[:14])"
    assert run(source) == "[0. 2. 4.] 2.0 [2 3] this array was\n"


@pytest.mark.parametrize(
    "first", ["jnp.ones(2)", "double(read)", "weft.jit(lambda v: v - 1)(read)", "weft.device_put(np.ones(2), device)"]
)
def test_whatever_comes_first_finds_the_new_device(first):
    """And the next loss, too; programs that were compiled before run on each."""
    source = f"""
double(read)
for _ in range(3):
    lose()
    {first}
    assert double(read).tolist() == [0, 2, 4] and double(jnp.ones(1)).tolist() == [2]
print(device.memory_stats()["allocated"] < 10_000, device.backend.generation)
"""
    assert run(source) == "True 3\n"


def test_loops_and_donated_arrays():
    source = """
loop = weft.jit(lambda n: weft.lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2), (0, jnp.float32(1))))
take = weft.jit(lambda v: v + 1, donate_argnums=0)
n = jnp.int32(5)
int(n), loop(n)
lose()
print(loop(n)[1], take(jnp.ones(2)))
lose()
print(error(lambda: take(x)), x.is_deleted())
"""
    first, second = run(source).strip().splitlines()
    assert first == "32.0 [2. 2.]" and second.startswith("argument 0, f32[4], was lost") and second.endswith("False")


def test_freed_arrays_and_programs_of_a_lost_device_trouble_nobody():
    source = """
import gc
kept = [jnp.full(8, k) for k in range(20)]
functions = [weft.jit(lambda v, k=k: v + k) for k in range(3)]
[f(read) for f in functions]
lose()
y = jnp.ones(8)
del kept, functions
gc.collect()
print(y + jnp.zeros(8), device.memory_stats()["allocated"])
"""
    said = run(source)
    assert said.startswith("[1. 1. 1. 1. 1. 1. 1. 1.]") and int(said.split()[-1]) < 5000
