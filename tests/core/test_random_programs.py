"""Random programs on XLA and Wasm against the reference interpreter: value, jvp, vjp and vmap. WEFT_RANDOM_PROGRAMS sets how many."""
import os

import numpy as np
import pytest

import weft
from weft.errors import BackendError
from weft.runtime.device import devices

from .helpers import value
from .random_programs import Program, shrink

COUNT = int(os.environ.get("WEFT_RANDOM_PROGRAMS", "40"))
START = int(os.environ.get("WEFT_RANDOM_START", "0"))


def transformed(program: Program):
    """name -> (function, arguments) of a program and of its derivatives and batching."""
    rng = np.random.default_rng(program.seed + 1)
    noise = lambda a: rng.normal(size=a.shape).astype(np.float32)
    args, tangents = program.args, [noise(a) for a in program.args]
    yield "value", program, args
    yield "jvp", lambda *xs: weft.jvp(program, xs[:len(args)], xs[len(args):]), [*args, *tangents]
    if program.reverse:
        yield "vjp", lambda *xs: weft.grad(lambda ys: sum((o * o).sum() for o in program(*ys)))(list(xs)), args
    yield "vmap", weft.vmap(program), [np.stack([a, noise(a)]) for a in args]


def run(name: str, fun, args, platform: str):
    with weft.default_device(devices(platform)[0]):
        return [value(x) for x in weft.tree.leaves(weft.jit(fun)(*args))]


def mismatch(program: Program, platform: str) -> str | None:
    for name, fun, args in transformed(program):
        got, want = run(name, fun, args, platform), run(name, fun, args, "reference")
        for g, w in zip(got, want):
            if g.shape != w.shape or g.dtype != w.dtype or not np.allclose(g, w, rtol=3e-4, atol=3e-4, equal_nan=True):
                return f"{name}: {platform} gives {g!r}, the reference {w!r}"
    return None


@pytest.mark.parametrize("platform", os.environ.get("WEFT_TEST_PLATFORMS", "cpu,wasm").split(","))
@pytest.mark.parametrize("seed", range(START, START + COUNT))
def test_agrees_with_the_reference(seed, platform):
    try:
        devices(platform)
    except BackendError as e:
        pytest.skip(str(e))
    program = Program(seed, reverse=seed % 4 != 3)
    problem = mismatch(program, platform)
    if problem:
        small = shrink(program, lambda p: mismatch(p, platform) is not None)
        jaxpr = weft.make_jaxpr(small)(*small.args)
        pytest.fail(f"{small!r}: {mismatch(small, platform)}\n{jaxpr}")
