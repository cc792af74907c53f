"""What the tests of flax and numpyro, run on weft, have found."""

import functools

import numpy as np
import pytest
from platforms import need, on

import weft
import weft.numpy as jnp
from weft import lax
from weft.sharding import AxisType

X = np.arange(4, dtype=np.float32)


class Parameter:
    """As a library's variable: it stands for an array, and shows all of that array's attributes as its own."""

    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return self.value

    def __getattr__(self, name):
        if name == "value":
            raise AttributeError(name)
        return getattr(self.value, name)

    def __mul__(self, other):
        return self.value * other


@pytest.mark.parametrize("platform", ["reference", "cpu", "wasm"])
def test_an_object_that_stands_for_a_tracer(platform):
    need(platform)

    def f(x):
        p = Parameter(x)
        return jnp.sum(jnp.sin(p) * p + jnp.ones(4) * p + lax.add(p, p))

    wanted = np.cos(X) * X + np.sin(X) + 3
    with on(platform):
        for g in (weft.grad(f), weft.jit(weft.grad(f)), weft.grad(weft.jit(f)), weft.grad(weft.checkpoint(f))):
            np.testing.assert_allclose(g(X), wanted, rtol=1e-5)


# custom derivatives ---------------------------------------------------------------------------------------------------


@weft.custom_vjp
def counted(x, count):
    return 2 * x, count


counted.defvjp(lambda x, count: ((2 * x, count), None), lambda _, ct: (2 * ct[0], jnp.float32(7)))


@weft.custom_vjp
def stopped(x):
    return x


stopped.defvjp(lambda x: (x, None), lambda _, ct: (None,))


def test_a_rule_that_is_not_linear_runs_for_zeros():
    """Floats of eight bits learn their scales this way: rules give new statistics in the place of cotangents."""
    runs = {
        "whose cotangent is None": (lambda x, n: stopped(counted(x, n)[0]) + x, [1, 7]),
        "before other operations": (lambda x, n: stopped(jnp.sin(counted(x, n)[0])) + x, [1, 7]),
        "before a loop": (
            lambda x, n: stopped(lax.scan(lambda c, _: (2 * c, None), counted(x, n)[0], None, 2)[0]) + x,
            [1, 7],
        ),
        "which is stopped before": (lambda x, n: stopped(lax.stop_gradient(counted(x, n)[0]) + x) + x, [1, 0]),
        "in jit": (lambda x, n: weft.jit(lambda x, n: stopped(counted(x, n)[0]))(x, n) + x, [1, 7]),
        "in a loop": (
            lambda x, n: lax.scan(lambda c, _: (stopped(counted(c, n)[0]) + c, None), x, None, 2)[0],
            [1, 14],
        ),
        "in a checkpoint": (lambda x, n: weft.checkpoint(lambda x, n: stopped(counted(x, n)[0]) + x)(x, n), [1, 7]),
        "which is not used": (lambda x, n: (counted(x, n), 3 * x)[1], [3, 0]),
        "which is stopped": (lambda x, n: lax.stop_gradient(counted(x, n)[0]) + x, [1, 0]),
        "with a result that is not used": (lambda x, n: weft.jit(lambda x, n: (counted(x, n)[0], x))(x, n)[1], [1, 0]),
    }
    for name, (f, wanted) in runs.items():
        for g in (weft.grad(f, (0, 1)), weft.jit(weft.grad(f, (0, 1)))):
            assert [float(v) for v in g(1.0, 1.0)] == wanted, name


def test_a_cotangent_stands_for_all_below_it():
    @weft.custom_vjp
    def f(tree, x):
        return tree["a"] * tree["b"][0] * x

    f.defvjp(lambda tree, x: (f(tree, x), x), lambda x, ct: (ct * x, None))
    grads = weft.grad(f, (0, 1))({"a": 2.0, "b": [3.0]}, 5.0)
    assert [float(v) for v in weft.tree.leaves(grads)] == [5, 5, 0]


def test_a_partial_function_is_whole():
    """Its arguments are no leaves, even if they are no arrays."""
    inner = functools.partial(lambda names, x, y: x * len(names) + y, ("a", "b"))
    outer = weft.tree_util.Partial(inner, 2.0)
    assert weft.tree.leaves(outer) == [2.0] and float(weft.jit(lambda f, y: f(y))(outer, 1.0)) == 5
    again = weft.tree_util.Partial(inner, 3.0)
    assert weft.tree.structure(outer) == weft.tree.structure(again)
    twice = weft.tree_util.Partial(outer, 4.0)
    assert float(twice()) == 8 and weft.tree.leaves(weft.tree.map(lambda x: x, outer)) == [2.0]


# functions ------------------------------------------------------------------------------------------------------------


def test_a_dtype_has_a_dtype():
    for given in (np.dtype("int64"), jnp.int32, int, "int64", np.int32):
        assert lax.dtype(given) == np.int32
    assert lax.dtype(jnp.bfloat16) == jnp.bfloat16 and lax.dtype(1.5) == np.float32
    with pytest.raises(TypeError, match="list"):
        lax.dtype([1])


def test_keys_are_close_if_they_are_equal():
    key = weft.random.key(0)
    keys = weft.random.split(key)
    assert jnp.allclose(key, key) and not jnp.allclose(key, keys[0])
    assert jnp.isclose(keys, keys[0]).tolist() == [True, False]


def test_axes_of_an_ellipsis_are_summed_where_the_result_has_none():
    x = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    np.testing.assert_allclose(jnp.einsum("a...->a", x), x.sum((1, 2)))
    np.testing.assert_allclose(
        jnp.einsum("ab...,bc...->ac", x, np.ones((3, 5, 4))), np.einsum("abd,bcd->ac", x, np.ones((3, 5, 4)))
    )
    np.testing.assert_allclose(jnp.einsum("ab...,bc...->ac", x[..., 0], np.ones((3, 5))), x[..., 0] @ np.ones((3, 5)))


def test_what_both_lists_of_static_arguments_leave_out_is_traced():
    def f(a, b):
        return a if b == "twice" else 2 * a

    assert float(weft.jit(f, static_argnums=(), static_argnames=("b",))(1.0, b="twice")) == 1
    with pytest.raises(TypeError, match="b"):
        weft.jit(f, static_argnums=(), static_argnames=("b",))(1.0, "twice")

    @functools.wraps(f)
    def wrapper(everything):  # whose signature is another function's
        return f(**everything)

    assert float(weft.jit(wrapper, static_argnums=(), static_argnames=("b",))({"a": 1.0, "b": 2.0})) == 2


# places ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def mesh():
    need("cpu")
    devices = weft.devices("cpu")
    if len(devices) < 4:
        pytest.skip("needs four CPU devices")
    return weft.make_mesh((2, 2), ("r", "c"), axis_types=(AxisType.Auto,) * 2, devices=devices[:4])


LIKE = {
    "zeros_like": jnp.zeros_like,
    "ones_like": jnp.ones_like,
    "empty_like": jnp.empty_like,
    "full_like": lambda x: jnp.full_like(x, 3),
    "of another dtype": lambda x: jnp.zeros_like(x, dtype="int32"),
    "lax.full_like": lambda x: lax.full_like(x, 3),
    "in a pytree": lambda x: weft.tree.map(jnp.zeros_like, [x])[0],
}


@pytest.mark.parametrize("name", LIKE)
def test_what_is_made_like_an_array_lies_as_that_does(mesh, name):
    where = weft.NamedSharding(mesh, weft.P("r", "c"))
    x = weft.device_put(np.ones((4, 4), np.float32), where)
    out = LIKE[name](x)
    assert out.sharding == where and out.committed and len({np.asarray(out).tobytes()}) == 1
    with weft.set_mesh(mesh):
        assert LIKE[name](x).sharding == where
    assert jnp.zeros_like(x, shape=(2,)).sharding != where
    there = weft.device_put(np.ones(3, np.float32), weft.devices("cpu")[1])
    assert LIKE[name](there).device == there.device and LIKE[name](there).committed
    assert not LIKE[name](jnp.ones(3)).committed
    assert jnp.zeros_like(weft.device_put(jnp.asarray(1.0), there.device), device=mesh.devices[0, 0]).committed


def test_arrays_of_one_value_over_devices(mesh):
    where = weft.NamedSharding(mesh, weft.P("r"))
    for out in (lax.full((4,), 2.0, sharding=where), jnp.zeros(4, device=where), jnp.full((4, 2), 1, device=where)):
        assert out.sharding == where and out.committed
    keys = weft.device_put(weft.random.split(weft.random.key(0), 4), where)
    assert jnp.zeros_like(keys).sharding == where


def test_a_mesh_without_devices_is_the_one_that_is_set(mesh):
    where, given = (weft.NamedSharding(m, weft.P("r")) for m in (mesh, mesh.abstract_mesh))
    x = jnp.arange(4.0)
    with weft.set_mesh(mesh):
        for out in (
            lax.with_sharding_constraint(x, given),
            weft.device_put(x, given),
            weft.jit(lambda x: 2 * x, out_shardings=given)(x),
            jnp.zeros(4, device=given),
        ):
            assert out.sharding == where
    y = weft.device_put(x, weft.NamedSharding(mesh, weft.P()))
    assert lax.with_sharding_constraint(y, given).sharding == where  # its own mesh has these axes
    with pytest.raises(ValueError, match="no mesh with these axes is set"):
        weft.device_put(x, given)
    with weft.set_mesh(weft.make_mesh((4,), ("r",), devices=weft.devices("cpu")[:4])):
        with pytest.raises(ValueError, match="no mesh with these axes is set"):
            weft.device_put(x, given)


def test_keys_that_lie_on_devices_are_mapped(mesh):
    keys = weft.device_put(weft.random.split(weft.random.key(0), 1), weft.devices("cpu")[1])
    wanted = weft.vmap(weft.random.normal)(keys)
    np.testing.assert_allclose(weft.pmap(weft.random.normal, devices=weft.devices("cpu")[:1])(keys), wanted, rtol=1e-6)
