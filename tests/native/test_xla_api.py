"""The language's own entry points on XLA: jit's caches, transformations around compiled calls, ahead-of-time
compilation.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, namedtuple

import numpy as np
import pytest
from platforms import need

need("cpu")
import weft
import weft.numpy as jnp
from weft import lax
from weft.primitives import linear

pytestmark = pytest.mark.usefixtures("on_xla")


@pytest.fixture
def on_xla(backend):
    before = weft.config.platforms
    weft.config.update("jax_platforms", "cpu")
    yield
    weft.config.update("jax_platforms", before)


def array(value, dtype=np.float32):
    return weft.device_put(np.asarray(value, dtype))


def counting(fun):
    """(jit of fun, list with one entry for each trace)."""
    traces = []

    def counted(*args, **kw):
        traces.append(1)
        return fun(*args, **kw)

    return counted, traces


def twice(x):
    return lax.add(x, x)


def test_traced_once_for_each_type():
    fun, traces = counting(twice)
    f = weft.jit(fun)
    for _ in range(3):
        assert f(array([1, 2]))._host().tolist() == [2, 4]
    assert len(traces) == 1
    f(array([1, 2, 3])), f(array([1, 2], np.int32)), f(array([3, 4, 5]))
    assert len(traces) == 3
    f(1.0), f(2.0), f(3), f(np.float32(1))
    assert len(traces) == 6  # weak f32, weak i32, f32


def test_x64_is_another_program():
    fun, traces = counting(twice)
    f = weft.jit(fun)
    x = np.array([1.0, 2.0])
    assert f(x).dtype == np.float32
    with weft.enable_x64(True):
        assert f(x).dtype == np.float64 and f(x).dtype == np.float64
    assert f(x).dtype == np.float32 and len(traces) == 2


def test_static_arguments():
    fun, traces = counting(lambda x, n, *, flip=False: lax.integer_pow(x, -n if flip else n))
    f = weft.jit(fun, static_argnums=1, static_argnames="flip")
    x = array([2.0])
    assert [
        f(x, 2)._host()[0],
        f(x, 2)._host()[0],
        f(x, 3)._host()[0],
        f(x, 2, flip=True)._host()[0],
        f(x, 2, flip=True)._host()[0],
    ] == [4, 4, 8, 0.25, 0.25]
    assert len(traces) == 3
    with pytest.raises(ValueError, match="[Nn]on-hashable"):
        f(x, [1])


Point = namedtuple("Point", "x y")


class Registered:
    def __init__(self, value, tag):
        self.value, self.tag = value, tag


weft.tree_util.register_pytree_node(
    Registered, lambda r: ((r.value,), r.tag), lambda tag, children: Registered(children[0], tag)
)


@pytest.mark.parametrize(
    "tree",
    [{"a": [1.0, None, (2.0,)], "b": Point(3.0, {})}, OrderedDict(z=1.0, a=2.0), [], (Registered(1.0, "t"),), None],
)
def test_pytrees_go_in_and_out(tree):
    fun, traces = counting(lambda t: weft.tree.map(twice, t))
    f = weft.jit(fun)
    arrays = weft.tree.map(array, tree)
    want = weft.tree.map(lambda v: 2 * v, tree)
    for _ in range(3):
        got = f(arrays)
        assert weft.tree.structure(got) == weft.tree.structure(arrays) and type(got) is type(arrays)
        assert [float(v._host()) for v in weft.tree.leaves(got)] == weft.tree.leaves(want)
    assert len(traces) == 1


def test_aux_data_is_part_of_the_type():
    fun, traces = counting(lambda r: Registered(twice(r.value), r.tag))
    f = weft.jit(fun)
    assert (
        f(Registered(array(1), "a")).tag == "a"
        and f(Registered(array(1), "b")).tag == "b"
        and f(Registered(array(1), "a")).tag == "a"
    )
    assert len(traces) == 2


def test_calls_inside_transformations_reach_the_language():
    """Compiled before, with arrays that are not traced: the call must still be seen where something traces."""
    f = weft.jit(twice)
    x = array([1.0, 2.0])
    f(x), f(x)
    assert "jit" in str(weft.make_jaxpr(lambda y: lax.mul(f(x), y))(x))
    np.testing.assert_allclose(
        weft.grad(lambda y: linear.reduce_sum(lax.mul(f(x), lax.mul(y, f(y))), (0,)))(x)._host(), [8.0, 32.0]
    )
    assert weft.vmap(f)(x)._host().tolist() == [2, 4]
    assert weft.jit(lambda y: f(lax.add(y, f(x))))(x)._host().tolist() == [6, 12]
    assert f(x)._host().tolist() == [2, 4]


def test_disable_jit_runs_the_function():
    seen = []
    f = weft.jit(lambda x: (seen.append(type(x)), x)[1])
    x = array([1.0])
    f(x), f(x)
    with weft.disable_jit(True):
        f(x)
    assert len(seen) == 2 and seen[1] is type(x)


def test_donation():
    f = weft.jit(lambda x, y: (lax.add(x, y), y), donate_argnums=0)
    for _ in range(3):
        x, y = array([1, 2]), array([3, 4])
        out, same = f(x, y)
        assert out._host().tolist() == [4, 6] and same._host().tolist() == [3, 4]
        assert x.is_deleted() and not y.is_deleted()
        with pytest.raises((RuntimeError, ValueError), match="deleted"):
            f(x, y)


def test_committed_arguments_decide():
    f = weft.jit(twice)
    (cpu,) = weft.devices("cpu")[:1]
    assert not f(array([1])).committed
    assert f(weft.device_put(np.ones(1, np.float32), cpu)).committed
    assert not f(array([1])).committed


def test_ahead_of_time():
    lowered = weft.jit(lambda x: lax.sin(x)).lower(weft.ShapeDtypeStruct((3,), "float32"))
    assert "stablehlo.sine" in lowered.as_text() and "HloModule" in lowered.as_text("hlo")
    exe = lowered.compile()
    np.testing.assert_allclose(exe(array([1, 2, 3]))._host(), np.sin([1, 2, 3]), rtol=1e-6)
    assert (
        exe.as_text().startswith("HloModule")
        and exe.cost_analysis()
        and exe.memory_analysis()["output_size_in_bytes"] == 12
    )
    with pytest.raises(TypeError):  # XLA itself would read the integers as floats
        exe(array([1, 2, 3], np.int32))


def test_texts_show_the_arguments_that_are_kept():
    for keep in (False, True):
        lowered = weft.jit(lambda x, y: lax.sin(y), keep_unused=keep).lower(np.float32(1), np.ones(3, np.float32))
        main = next(line for line in lowered.as_text().splitlines() if "@main" in line)
        assert ("tensor<f32>" in main) == keep and "tensor<3xf32>" in main


def test_random_keys_in_and_out():
    from weft.primitives.random_bits import FRY, random_bits_p, random_seed_p, random_split_p

    key = weft.jit(lambda s: random_seed_p.bind(s, impl=FRY))(np.uint32(7))
    f = weft.jit(lambda k: (random_split_p.bind(k, shape=(2,)), random_bits_p.bind(k, bit_width=32, shape=(3,))))
    for _ in range(3):
        keys, bits = f(key)
        assert keys.shape == (2,) and keys.dtype == FRY
        assert bits._host().tolist() == random_bits_p.bind(key, bit_width=32, shape=(3,))._host().tolist()


def test_threads_have_their_own_configuration():
    f = weft.jit(twice)
    x, out = np.array([1.0]), {}
    f(x)

    def other():
        with weft.enable_x64(True):
            out["other"] = f(x).dtype

    with weft.enable_x64(True):
        here = f(x).dtype
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert here == out["other"] == np.float64 and f(x).dtype == np.float32


def test_closed_over_arrays_are_arguments_of_the_program():
    table = array(np.arange(1000))
    f = weft.jit(lambda x: lax.mul(x, table))
    for k in (1, 2, 3):
        assert f(array(np.full(1000, k)))._host()[999] == 999 * k
    assert "dense" not in f.lower(array(np.ones(1000))).as_text()


def test_errors_of_the_language_pass_through():
    f = weft.jit(lambda x, y: lax.add(x, y))
    with pytest.raises(TypeError, match="shapes"):
        f(array([1, 2]), array([1, 2, 3]))
    with pytest.raises(TypeError, match="not an array"):
        f(array([1, 2]), object())
    with pytest.raises(TypeError, match="not an array"):
        f(array([1, 2]), "text")
    assert f(array([1]), array([2]))._host().tolist() == [3]


def test_a_call_that_c_cached_is_staged_inside_a_trace():
    f, x = weft.jit(lambda x: x + 1), jnp.float32(2)
    assert [float(f(x)) for _ in range(3)] == [3, 3, 3]
    assert [eqn.primitive.name for eqn in weft.make_jaxpr(lambda: f(x))().eqns] == ["jit"]
    assert float(f(x)) == 3
