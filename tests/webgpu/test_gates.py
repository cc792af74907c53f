"""Loops and branches whose kernels test their conditions themselves, so that the host need not read them first."""

import json
from unittest import mock

import numpy as np
import pytest
from weft_wasm.artifact import Artifact, ArtifactError
from weft_wasm.emit_wgsl import DEFAULT_LIMITS, compile_webgpu

import weft
import weft.numpy as jnp
from weft import lax
from weft.core.interpret import interpret
from weft.transforms.physical import lower_types

rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def on_webgpu(backend, monkeypatch):
    monkeypatch.setattr("weft_wasm.runtimes.wgpu_device.BATCH_SECONDS", 60)  # on a busy machine too
    with weft.default_device(backend.devices()[0]):
        yield


def submits(backend, fun, *args) -> int:
    """How often a call of a function submits, after its results were compared with the reference interpreter's."""
    args = [jnp.asarray(x) for x in args]
    closed = weft.make_jaxpr(fun)(*args)
    want = interpret(lower_types(closed), [np.asarray(x) for x in args])
    before = backend.runtime.device.submits
    got = weft.tree_util.tree_leaves(weft.jit(fun)(*args))
    count = backend.runtime.device.submits - before
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(g), w, rtol=1e-5, atol=1e-6)
    return count


def _of_every_device(monkeypatch) -> mock.Mock:
    """Programs are compiled for the limits that every device has."""
    changed = mock.Mock(side_effect=lambda program, limits, check: compile_webgpu(program, DEFAULT_LIMITS, check=check))
    monkeypatch.setattr("weft_wasm.backends.webgpu.compile_webgpu", changed)
    return changed


def collatz(n):
    def body(v):
        return jnp.where(v[0] % 2 == 0, v[0] // 2, 3 * v[0] + 1), v[1] + 1

    return lax.while_loop(lambda v: v[0] != 1, body, (n, 0))


def waits(fun, *args) -> list[bool]:
    """Whether each loop and branch of the program waits for the host."""
    steps = json.loads(weft.jit(fun).lower(*args).compile().executable.artifact.code)["steps"]
    found = []

    def walk(steps):
        for step in steps:
            if step["op"] in ("while", "switch"):
                found.append(not step["gated"])
            for inner in (step.get("cond", []), step.get("body", []), *step.get("branches", [])):
                walk(inner)

    walk(steps)
    return found


@pytest.mark.parametrize("n, most", [(1, 1), (2, 1), (8, 1), (6, 2), (7, 3), (27, 5), (97, 5)])
def test_iterations_are_launched_before_the_flag_is_read(backend, n, most):
    assert submits(backend, collatz, jnp.int32(n)) <= most + 1  # and the copy of the results


def test_slow_batches_grow_no_further(backend, monkeypatch):
    monkeypatch.setattr("weft_wasm.runtimes.wgpu_device.BATCH_SECONDS", 0)
    assert submits(backend, collatz, jnp.int32(97)) >= 118 // 4


def test_a_long_body_is_launched_once_at_a_time(backend, monkeypatch):
    monkeypatch.setattr("weft_wasm.runtimes.wgpu_device.MOST_LAUNCHES", 3)
    body = lambda v: (jnp.cumsum(jnp.sort(v[0])), v[1] + 1)
    assert submits(backend, lambda x: lax.while_loop(lambda v: v[1] < 3, body, (x, 0)), np.ones(30, np.float32)) == 4


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 11, 12, 13, 40])
def test_what_follows_the_last_iteration_changes_nothing(backend, count):
    """Values that swap places, a sum with barriers, a sort, an update in place, and temps that share memory."""

    def body(v):
        n, a, b, table = v
        total = jnp.sort(a * 2 - b)[::-1]
        return n + 1, b + total.mean(), a - jnp.cumsum(b) * 0.01, lax.dynamic_update_slice(table, a[:1] + n, (n % 7,))

    def fun(a, b, table):
        return lax.while_loop(lambda v: v[0] < count, body, (0, a, b, table))

    a, b = rng.standard_normal((2, 300)).astype(np.float32)
    assert submits(backend, fun, a, b, np.zeros(7, np.float32)) <= 12


def test_a_long_sum_within_a_loop(backend):
    def body(v):
        x, total, n = v
        return x * 0.5, total + x.sum(), n + 1

    x = rng.standard_normal(200_000).astype(np.float32)
    submits(backend, lambda x, n: lax.while_loop(lambda v: v[2] < n, body, (x, 0.0, 0)), x, 9)


@pytest.mark.parametrize("index", [-3, 0, 1, 2, 9])
def test_branches_do_not_wait(backend, index):
    branches = [jnp.sin, lambda x: jnp.sort(x)[::-1], lambda x: x]
    assert submits(backend, lambda i, x: lax.switch(i, branches, x), np.int32(index), rng.standard_normal(9)) == 1


def test_branches_within_loops_do_not_wait(backend):
    def step(s, x):
        s = lax.cond(
            x > 0, lambda s: lax.cond(s.sum() > 3, lambda s: s * 0.5, lambda s: s + x, s), lambda s: s[::-1], s
        )
        return s, s.max()

    fun = lambda s, xs: lax.scan(step, s, xs)
    assert submits(backend, fun, np.ones(3, np.float32), rng.standard_normal(12).astype(np.float32)) == 1


def test_a_branch_within_a_loop_of_unknown_length(backend):
    def body(v):
        x, n = v
        return lax.cond(n % 3 == 0, lambda x: x * 2, lambda x: jnp.flip(x) + n, x), n + 1

    fun = lambda x, n: lax.while_loop(lambda v: v[1] < n, body, (x, 0))
    assert waits(fun, jnp.ones(5), 1) == [False, False]
    assert submits(backend, fun, np.arange(5.0, dtype=np.float32), 17) <= 4


def kernels(fun, *args) -> int:
    """How many kernels the program launches, branches and bodies of loops once."""

    def count(steps):
        inner = [b for s in steps for b in (s.get("cond", []), s.get("body", []), *s.get("branches", []))]
        return sum(s["op"] == "dispatch" for s in steps) + sum(map(count, inner))

    return count(json.loads(weft.jit(fun).lower(*args).compile().executable.artifact.code)["steps"])


def test_a_condition_in_a_buffer_is_the_flag(backend):
    assert kernels(collatz, 7) == 3  # the start, the condition, the body
    both = lambda x, y: (lax.cond(x > y, jnp.sin, jnp.cos, x), y)
    assert kernels(both, 1.0, 2.0) == 3


def test_a_condition_that_changes_meanwhile_is_copied(backend):
    """A carried condition; a carried index, which the branch changes; one for two branches, one in another."""
    carried = lambda n: lax.while_loop(lambda v: v[0], lambda v: (v[1] < 3, v[1] + 1, v[2] * 2), (n > 0, n, 1.0))
    for n in (0, 1, 5):
        submits(backend, carried, jnp.int32(n))
    turn = lambda v: lax.switch(v[0], [lambda v: (v[0] + 1, v[1] + 3), lambda v: (v[0] - 1, v[1] * 2)], v)
    submits(backend, lambda i: lax.fori_loop(0, 7, lambda _, v: turn(v), (i, 1.0)), jnp.int32(0))

    def twice(p, x):
        inner = lambda x: lax.cond(p, lambda x: x + 1, lambda x: x - 1, x)
        x = lax.cond(p, lambda x: inner(x) * 2, lambda x: inner(x) * 3, x)
        return lax.cond(p, lambda x: x * 5, inner, x), inner(x)

    for p in (False, True):
        submits(backend, lambda x: twice(x > 0, x), jnp.float32(1 if p else -1))


def test_a_kernel_may_compute_more_conditions_than_it_can_bind(backend, monkeypatch):
    compile_webgpu = _of_every_device(monkeypatch)

    def fun(x):
        conditions = [x > k for k in range(12)]
        return sum(lax.cond(p, lambda v, k=k: v * k, lambda v: v + 1, x) for k, p in enumerate(conditions))

    for x in (-1.0, 3.5, 20.0):
        submits(backend, fun, jnp.float32(x))
    assert compile_webgpu.called


def test_what_has_to_wait_waits(backend):
    """Loops of unknown length in others, conditions deep in others, calls of the host."""
    inner = lambda x: lax.while_loop(lambda y: y < 10.0, lambda y: y * 2 + 1, x)
    nested = lambda x: lax.while_loop(lambda v: v[1] < 3, lambda v: (inner(v[0]) - 8, v[1] + 1), (x, 0))[0]
    assert waits(nested, 1.0) == [True, False]
    submits(backend, nested, jnp.float32(1))

    def deep(x, depth=4):
        if depth == 0:
            return x * 2
        return lax.cond(x > depth, lambda x: deep(x - 1, depth - 1), lambda x: deep(x + 0.5, depth - 1), x)

    found = waits(deep, 1.0)
    assert len(found) == 15 and sum(found) == 3  # the two outer levels
    for x in (0.0, 2.5, 3.0, 7.0):
        submits(backend, deep, jnp.float32(x))

    seen = []

    def told(x):
        seen.append(float(x))
        return x

    called = lambda x: lax.while_loop(
        lambda x: x < 9, lambda x: weft.pure_callback(told, weft.ShapeDtypeStruct((), jnp.float32), x) * 2, x
    )
    assert weft.jit(called)(1.0) == 16 and seen == [1, 2, 4, 8]


def test_conditions_fit_into_the_bindings_that_every_device_has(monkeypatch):
    """A kernel of eight arguments, within a loop and a branch."""
    compile_webgpu = _of_every_device(monkeypatch)

    def fun(n, *xs):
        def body(v):
            k, *xs = v
            mixed = lax.cond(k % 2 == 0, lambda *xs: sum(xs), lambda *xs: xs[0] - xs[-1], *xs)
            return k + 1, *[x + mixed / (3 + i) for i, x in enumerate(xs)]

        return lax.while_loop(lambda v: v[0] < n, body, (0, *xs))

    xs = rng.standard_normal((9, 5)).astype(np.float32)
    closed = weft.make_jaxpr(fun)(3, *xs)
    want = interpret(lower_types(closed), [np.int32(3), *xs])
    for g, w in zip(weft.jit(fun)(3, *xs), want):
        np.testing.assert_allclose(np.asarray(g), w, rtol=1e-5)
    assert compile_webgpu.called


def test_a_gated_plan_that_copies_or_waits_is_refused():
    artifact = weft.jit(collatz).lower(jnp.int32(1)).compile().executable.artifact
    plan = json.loads(artifact.code)
    (loop,) = [step for step in plan["steps"] if step["op"] == "while"]
    sizes = [buffer["bytes"] for buffer in plan["buffers"]]
    copy = {"op": "copy", "src": 0, "dst": len(sizes) - 1, "bytes": 4, "srcOffset": 0, "dstOffset": 0}
    free = {**loop, "body": [], "gated": False}
    for more in (copy, free, {"op": "loop", "count": 1, "body": [free], "counter": None}):
        loop["body"].append(more)
        changed = Artifact(artifact.metadata, json.dumps(plan).encode(), artifact.constants)
        with pytest.raises(ArtifactError, match="is gated, and has a step that copies, or waits for a value"):
            Artifact.from_bytes(changed.to_bytes())
        loop["body"].pop()
    loop["gated"] = "yes"
    with pytest.raises(ArtifactError, match="gated must be true or false"):
        Artifact.from_bytes(Artifact(artifact.metadata, json.dumps(plan).encode(), artifact.constants).to_bytes())
