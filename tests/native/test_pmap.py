"""pmap: axes, devices, static arguments, donation, nesting, and every transformation of it and in it."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax

pytestmark = pytest.mark.slow

X = np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)


def test_the_result_lies_over_the_devices():
    out = weft.pmap(lambda x: x * 2, axis_name="i")(X)
    assert isinstance(out.sharding, weft.NamedSharding) and out.sharding.spec == weft.P("i") and out.committed
    assert out.devices() == set(weft.devices()[:4])
    assert [s.data.shape for s in out.addressable_shards] == [(1, 3)] * 4
    np.testing.assert_array_equal(np.asarray(out), X * 2)


@pytest.mark.parametrize("in_axes,out_axes", [(0, 0), (1, 0), (1, 1), (-1, -1), ((1,), 1), ([0], 1)])
def test_axes(in_axes, out_axes):
    got = weft.pmap(lambda x: x * 2, in_axes=in_axes, out_axes=out_axes)(X)
    np.testing.assert_array_equal(
        np.asarray(got), np.asarray(weft.vmap(lambda x: x * 2, in_axes=in_axes, out_axes=out_axes)(X))
    )


def test_axes_of_trees_and_keyword_arguments():
    f = lambda d, y, *, z: {"sum": d["a"] + d["b"] * y + z, "y": y}
    args = {"a": X, "b": np.float32(3)}, np.float32(2)
    got = weft.pmap(f, in_axes=({"a": 0, "b": None}, None), out_axes={"sum": 0, "y": None})(*args, z=X)
    np.testing.assert_allclose(np.asarray(got["sum"]), X + 6 + X)
    assert got["y"].shape == () and got["y"].is_fully_replicated


def test_static_arguments_and_devices():
    calls = []

    def f(n, x, how):
        calls.append((n, how))
        return x * n if how == "times" else x + n

    g = weft.pmap(f, static_broadcasted_argnums=(0, 2), devices=weft.devices()[-4:])
    out = g(3, X, "times")
    assert out.devices() == set(weft.devices()[-4:])
    np.testing.assert_array_equal(np.asarray(out), X * 3)
    np.testing.assert_array_equal(np.asarray(g(3, X, "plus")), X + 3)
    g(3, X, "times")
    assert calls == [(3, "times"), (3, "plus")]


def test_arguments_that_lie_elsewhere_are_brought():
    x = weft.device_put(X, weft.devices()[6])
    np.testing.assert_array_equal(np.asarray(weft.pmap(lambda x: x + 1)(x)), X + 1)
    y = weft.pmap(lambda x: x, devices=weft.devices()[4:])(X)
    z = weft.pmap(lambda x, y: x + y)(y, x)
    assert z.devices() == set(weft.devices()[:4])
    np.testing.assert_array_equal(np.asarray(z), X + X)


def test_collectives_beside_random_numbers():
    """Random keys are lowered to words in programs where the axis of devices is in scope."""
    keys = weft.random.split(weft.random.key(0), 4)
    draw = lambda key: weft.random.normal(key, (3,))
    f = lambda key, x: lax.psum(draw(key) * x, "i") + lax.axis_index("i")
    want = (np.stack([draw(k) for k in keys]) * X).sum(0) + np.arange(4)[:, None]
    np.testing.assert_allclose(np.asarray(weft.pmap(f, axis_name="i")(keys, X)), want, rtol=1e-5, atol=1e-5)


def test_donation():
    x = weft.pmap(lambda x: x)(X)
    y = weft.pmap(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted()
    np.testing.assert_array_equal(np.asarray(y), X + 1)


def test_a_call_is_compiled_once():
    traced = []

    @weft.pmap
    def f(x):
        traced.append(1)
        return x + 1

    x = f(X)
    for _ in range(3):
        x = f(x)
    assert len(traced) == 1
    np.testing.assert_allclose(np.asarray(x), X + 4, rtol=1e-6)


def test_methods():
    class Scale:
        def __init__(self, by):
            self.by = by

        def __hash__(self):
            return 1

        def __eq__(self, other):
            return self.by == other.by

        @weft.tree_util.Partial
        def plain(x):
            return x

        f = weft.pmap(lambda self, x: x * self.by, static_broadcasted_argnums=0)

    np.testing.assert_array_equal(np.asarray(Scale(2).f(X)), X * 2)


@pytest.mark.parametrize(
    "call,match",
    [
        (lambda: weft.pmap(lambda x: x)(np.ones(9)), "needs 9 devices, and there are 8"),
        (lambda: weft.pmap(lambda x: x)(3.0), "has no such axis"),
        (lambda: weft.pmap(lambda x, y: x)(np.ones(3), np.ones(4)), "inconsistent sizes"),
        (lambda: weft.pmap(lambda x: x, axis_size=3)(np.ones(4)), "axis_size 3"),
        (lambda: weft.pmap(lambda x: x, in_axes=None)(np.ones(4)), "at least one argument with a mapped axis"),
        (lambda: weft.pmap(lambda x: x, in_axes=(0, 0))(np.ones(4)), "in_axes"),
        (
            lambda: weft.pmap(lambda x: x, devices=weft.devices()[:2])(np.ones(4)),
            "2 devices for a mapped axis of size 4",
        ),
        (lambda: weft.pmap(lambda x, n: x, static_broadcasted_argnums=1)(np.ones(4), [1]), "(?i)non-hashable"),
    ],
)
def test_mistakes(call, match):
    with pytest.raises(ValueError, match=match):
        call()


# transformations -----------------------------------------------------------------------------------------------------


def f(x, w):
    return jnp.sin(x * w).sum() * lax.psum(jnp.cos(x), "i")


PMAPPED, VMAPPED = (way(f, axis_name="i", in_axes=(0, None)) for way in (weft.pmap, weft.vmap))
LOSS = {
    "value": lambda g: g,
    "grad": lambda g: weft.grad(lambda x, w: (g(x, w) ** 2).sum(), argnums=(0, 1)),
    "jvp": lambda g: lambda x, w: weft.jvp(g, (x, w), (jnp.ones_like(x), jnp.float32(0.5))),
    "jacrev": lambda g: weft.jacrev(lambda x, w: g(x, w).sum(1), argnums=1),
    "hessian": lambda g: weft.hessian(lambda x, w: (g(x, w) ** 2).sum(), argnums=1),
    "vmap": lambda g: lambda x, w: weft.vmap(g, in_axes=(None, 0))(x, jnp.stack([w, 2 * w, 3 * w])),
    "vmap of the argument": lambda g: (
        lambda x, w: weft.vmap(g, in_axes=(1, None), out_axes=1)(jnp.stack([x, 2 * x], 1), w)
    ),
    "grad of vmap": lambda g: weft.grad(
        lambda x, w: (weft.vmap(g, in_axes=(None, 0))(x, jnp.stack([w, 2 * w])) ** 2).sum()
    ),
    "jit": lambda g: weft.jit(lambda x, w: g(x * 2, w) + 1),
    "jit of grad": lambda g: weft.jit(weft.grad(lambda x, w: (g(x, w) ** 2).sum())),
    "checkpoint": lambda g: weft.grad(lambda x, w: (weft.checkpoint(g)(x, w) ** 2).sum()),
    "linearize": lambda g: lambda x, w: weft.linearize(lambda x: g(x, w), x)[1](jnp.ones_like(x)),
    "scan": lambda g: lambda x, w: lax.scan(lambda c, _: (g(c, w) * 0.1, c), x, None, length=2),
}


@pytest.mark.parametrize("name", LOSS)
def test_transformations(name):
    got, want = (LOSS[name](g)(jnp.asarray(X), jnp.float32(0.7)) for g in (PMAPPED, VMAPPED))
    for a, b in zip(weft.tree_util.tree_leaves(got), weft.tree_util.tree_leaves(want)):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-4, atol=2e-5)


def test_transformations_inside():
    g = lambda x: weft.grad(lambda y: (jnp.sin(y) ** 2).sum())(x) + weft.vmap(lambda v: lax.pmean(v, "i"))(x)
    np.testing.assert_allclose(
        np.asarray(weft.pmap(g, axis_name="i")(X)), np.sin(2 * X) + X.mean(0), rtol=1e-5, atol=1e-6
    )


def test_a_result_that_is_the_same_everywhere():
    """With out_axes=None its cotangent is shared among the copies."""
    g = weft.pmap(lambda x: lax.psum(x**2, "i"), axis_name="i", out_axes=None)
    np.testing.assert_allclose(np.asarray(g(X)), (X**2).sum(0), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(weft.grad(lambda x: g(x).sum())(X)), 2 * X, rtol=1e-6)


def test_random_keys_and_effects():
    keys = weft.random.split(weft.random.key(0), 4)
    draw = lambda k: weft.random.normal(k, (2,))
    np.testing.assert_array_equal(np.asarray(weft.pmap(draw)(keys)), np.asarray(weft.vmap(draw)(keys)))


def test_control_flow_inside():
    g = lambda x: lax.while_loop(
        lambda c: c[1].sum() < 50,
        lambda c: (c[0] + 1, c[1] * 2 + lax.psum(c[0], "i")),
        (jnp.float32(0), jnp.abs(x) + 1),
    )
    for a, b in zip(weft.pmap(g, axis_name="i")(X[:2] * 0 + X[0]), weft.vmap(g, axis_name="i")(X[:2] * 0 + X[0])):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)


# nesting -------------------------------------------------------------------------------------------------------------


def test_nested_pmap_runs_on_all_devices():
    x = np.arange(8.0, dtype=np.float32).reshape(4, 2)
    inner = weft.pmap(
        lambda x: (lax.psum(x, "rows"), lax.psum(x, "cols"), lax.psum(x, ("rows", "cols"))), axis_name="cols"
    )
    r, c, both = weft.pmap(inner, axis_name="rows")(x)
    np.testing.assert_array_equal(np.asarray(r), np.broadcast_to(x.sum(0), (4, 2)))
    np.testing.assert_array_equal(np.asarray(c), np.broadcast_to(x.sum(1)[:, None], (4, 2)))
    assert (np.asarray(both) == x.sum()).all()
    assert r.devices() == set(weft.devices())
    after_others = weft.pmap(lambda x: inner(jnp.sin(x))[0], axis_name="rows")(x)
    assert after_others.devices() == set(weft.devices())


def test_code_around_a_nested_pmap():
    """What stands in the outer body beside the inner pmap, on values and on derivatives."""

    def outer(way):
        def body(x, w):
            y = way(lambda v, w: jnp.sin(v * w) + lax.psum(v, "j"), axis_name="j", in_axes=(0, None))(x, w)
            return y * lax.pmean(x, "i") + w

        return way(body, axis_name="i", in_axes=(0, None))

    x = np.random.default_rng(2).normal(size=(4, 2, 3)).astype(np.float32)
    p, v = outer(weft.pmap), outer(weft.vmap)
    np.testing.assert_allclose(np.asarray(p(x, 1.5)), np.asarray(v(x, 1.5)), rtol=1e-5, atol=1e-6)
    for a, b in zip(*[weft.grad(lambda x, w: (g(x, w) ** 2).sum(), argnums=(0, 1))(x, 1.5) for g in (p, v)]):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-5)
    inside = [
        way(lambda x: weft.grad(lambda x: (way(lambda v: jnp.sin(v), axis_name="j")(x) ** 2).sum())(x), axis_name="i")(
            x
        )
        for way in (weft.pmap, weft.vmap)
    ]
    np.testing.assert_allclose(np.asarray(inside[0]), np.asarray(inside[1]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(4, 3), (8, 2), (2, 2, 2), (2, 2, 3), (1, 4, 2)])
def test_nests_that_fit_and_that_do_not(shape):
    """Where there are too few devices for the inner axis, each device runs it one after another."""
    names = "ijk"[: len(shape)]

    def g(x):
        return x / lax.psum(x, tuple(names)) + lax.axis_index(names[-1]) - lax.psum(x, names[0])

    p, v = g, g
    for name in reversed(names):
        p, v = weft.pmap(p, axis_name=name), weft.vmap(v, axis_name=name)
    x = np.arange(1.0, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
    np.testing.assert_allclose(np.asarray(p(x)), np.asarray(v(x)), rtol=1e-5)


def test_two_nested_pmaps_of_one_size_share_an_axis():
    def body(x):
        return weft.pmap(lambda v: lax.psum(v, "a"), axis_name="a")(x) + weft.pmap(
            lambda v: v * lax.axis_index("b"), axis_name="b"
        )(x)

    x = np.arange(8.0, dtype=np.float32).reshape(4, 2)
    np.testing.assert_array_equal(np.asarray(weft.pmap(body)(x)), x.sum(1, keepdims=True) + x * [0, 1])


def test_lowering_ahead_of_time():
    g = weft.pmap(lambda x: lax.psum(x, "i"), axis_name="i")
    text = g.lower(X).as_text()
    assert "all_reduce" in text and "sdy.manual_computation" in text
    np.testing.assert_allclose(np.asarray(g.lower(X).compile()(X)), np.broadcast_to(X.sum(0), X.shape), rtol=1e-6)


def test_disable_jit_says_what_it_does():
    with weft.disable_jit():
        np.testing.assert_allclose(
            np.asarray(weft.pmap(lambda x: lax.psum(x, "i"), axis_name="i")(X)),
            np.broadcast_to(X.sum(0), X.shape),
            rtol=1e-6,
        )
