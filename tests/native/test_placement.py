"""Arrays over devices: parts, memories, layouts, hints. What is printed for eight CPU devices is what jax 0.10.2 prints
there (`placement_expected.json`, written by make_placement_expected.py); what jax gets wrong or refuses is tested by
itself.
"""

import json
import pathlib
import pickle
import sys

import numpy as np
import pytest
from platforms import need, on, under_test

need("cpu")

import weft
import weft.numpy as jnp
from weft.errors import BackendError
from weft.experimental import layout as layouts
from weft.experimental.compute_on import compute_on
from weft.experimental.layout import Format, Layout, with_layout_constraint
from weft.experimental.shard_alike import shard_alike
from weft.memory import Space
from weft.sharding import AxisType, NamedSharding, SingleDeviceSharding
from weft.sharding import PartitionSpec as P

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from placement_cases import cases  # noqa: E402

EXPECTED = json.loads((HERE / "placement_expected.json").read_text())
X = np.arange(64.0, dtype=np.float32).reshape(8, 8)


class Names:
    """The modules under the names by which the cases know them."""

    jax, jnp, np, layout, shard_alike = weft, jnp, np, layouts, shard_alike
    sharding = weft.sharding


@pytest.fixture(scope="module")
def made():
    return cases(Names)


@pytest.fixture(scope="module")
def mesh():
    return weft.make_mesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2, devices=weft.devices("cpu")[:8])


@pytest.mark.parametrize("name", EXPECTED)
def test_as_jax(name, made):
    assert made[name]() == EXPECTED[name]


def test_every_case_has_been_recorded(made):
    assert set(made) == set(EXPECTED)


# memories ------------------------------------------------------------------------------------------------------------


def pointer(x) -> int:
    return x.addressable_data(0).unsafe_buffer_pointer()


def test_memories_are_where_they_say(mesh):
    """A move to another memory is another buffer. (jax 0.10.2 can't move an array on one device back.)"""
    device = weft.devices("cpu")[0]
    for here in (SingleDeviceSharding(device), NamedSharding(mesh, P("x"))):
        x = weft.device_put(X, here)
        there = weft.device_put(x, here.with_memory_kind("pinned_host"))
        back = weft.device_put(there, here)
        assert there.sharding.memory_kind == "pinned_host" and back.sharding.memory_kind == "device"
        assert len({pointer(x), pointer(there), pointer(back)}) == 3
        for y in (there, back):
            np.testing.assert_array_equal(y, X)
            assert weft.device_put(y, y.sharding) is y


def test_programs_take_and_give_arrays_of_the_hosts_memory(mesh):
    device = weft.devices("cpu")[0]
    f = weft.jit(lambda x: x + 1)
    for here in (SingleDeviceSharding(device), NamedSharding(mesh, P("x"))):
        x, there = weft.device_put(X, here), weft.device_put(X, here.with_memory_kind("pinned_host"))
        for value in (x, there, x, there):  # known calls run in C++
            np.testing.assert_array_equal(f(value), X + 1)
            np.testing.assert_array_equal(value + 1, X + 1)
            assert f(value).sharding.memory_kind == "device"


def test_the_space_of_a_program_s_result():
    f = weft.jit(lambda x: (weft.device_put(x * 2, Space.Host), x, weft.device_put(x, Space.Device)))
    kinds = [y.sharding.memory_kind for y in f(X)]
    assert kinds == ["pinned_host", "device", "device"]
    nested = weft.jit(lambda x: weft.jit(lambda x: weft.device_put(x, Space.Host))(x))(X)
    assert nested.sharding.memory_kind == "pinned_host"
    assert 'mhlo.memory_kind = "pinned_host"' in f.lower(X).as_text()
    text = f.lower(X).as_text()
    assert "annotate_device_placement" not in text  # the CPU has no other memory than the host's


def test_derivatives_and_batches_through_memories():
    x = jnp.arange(3.0)
    f = lambda x: (weft.device_put(x, Space.Host) ** 2).sum()
    np.testing.assert_array_equal(weft.grad(f)(x), 2 * x)
    np.testing.assert_array_equal(weft.vmap(lambda x: weft.device_put(x, Space.Host) * 2)(x), 2 * x)


def test_any_space_moves_nothing():
    x = jnp.arange(3.0)
    assert weft.device_put(x, Space.Any) is not None and weft.device_put(x, Space.Any).sharding == x.sharding


@pytest.mark.parametrize("platform", under_test("wasm", "webgpu", "reference"))
def test_a_backend_without_the_memory_says_so(platform):
    with on(platform):
        with pytest.raises(ValueError, match="has no memory of kind 'pinned_host'; it has 'device'"):
            weft.device_put(jnp.ones(3), Space.Host)
        assert weft.device_put(jnp.ones(3), Space.Device).sharding.memory_kind == "device"


# layouts -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def columns():
    return weft.device_put(X, Format(Layout((1, 0)), SingleDeviceSharding(weft.devices("cpu")[0])))


def test_programs_take_arrays_in_any_layout(columns, mesh):
    """Also known calls in C++, operators, and programs over several devices."""
    plain = weft.device_put(X, weft.devices("cpu")[0])
    spread = NamedSharding(mesh, P("x", "y"))
    both = weft.device_put(X, spread), weft.device_put(X, Format(Layout((1, 0)), spread))
    f, g = weft.jit(lambda x: x + 1), weft.jit(lambda x, y: x * y)
    for x in (plain, columns, plain, columns, *both, *both):
        np.testing.assert_array_equal(f(x), X + 1)
        np.testing.assert_array_equal(g(x, 3.0), X * 3)
        np.testing.assert_array_equal(x * 2, X * 2)
        np.testing.assert_allclose(jnp.cos(x), np.cos(X), rtol=1e-6)
        np.testing.assert_array_equal(x[1], X[1])
        assert f(x).format.layout.major_to_minor == (0, 1)


def test_an_array_in_another_layout_moves(columns, mesh):
    """XLA copies its elements to another device row by row, and calls them columns (jax 0.10.2 then computes with
    wrong numbers).
    """
    for where in (weft.devices("cpu")[2], NamedSharding(mesh, P("y")), NamedSharding(mesh, P())):
        moved = weft.device_put(columns, where)
        np.testing.assert_array_equal(moved, X)
        np.testing.assert_array_equal(moved + 1, X + 1)
    np.testing.assert_array_equal(weft.device_put(columns, Space.Host) + 1, X + 1)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(columns)), X)
    np.testing.assert_array_equal(np.from_dlpack(columns), X)


def test_the_layouts_of_a_program(columns):
    here = columns.sharding
    f = weft.jit(lambda x: x.T + 1, in_shardings=Format(Layout((1, 0)), here), out_shardings=Format(Layout((1, 0))))
    for x in (columns, X, columns):
        y = f(x)
        np.testing.assert_array_equal(y, X.T + 1)
        assert y.format.layout.major_to_minor == (1, 0)
    assert 'mhlo.layout_mode = "{0,1}"' in f.lower(X).as_text()
    with pytest.raises(ValueError, match="does not match the layout on the respective arg"):
        weft.jit(lambda x: x + 1, in_shardings=Format(Layout((0, 1)), here))(columns)
    with pytest.raises(ValueError, match="it must name each of their 2 axes once"):
        weft.jit(lambda x: x, out_shardings=Format(Layout((0, 1, 2))))(X)
    with pytest.raises(ValueError, match="it must name each of their 1 axes once"):
        weft.device_put(jnp.ones(3), Format(Layout((1, 0)), here))


def test_layouts_inside_of_programs():
    f = weft.jit(lambda x: with_layout_constraint(x * 2, Layout((1, 0))) + 1)
    np.testing.assert_array_equal(f(X), 2 * X + 1)
    assert "LayoutConstraint" in f.lower(X).as_text()
    rows = weft.vmap(lambda x: with_layout_constraint(x, Layout((1, 0))), in_axes=1)
    text = str(weft.make_jaxpr(rows)(np.zeros((2, 3, 4), np.float32)))
    assert "major_to_minor=(1, 2, 0)" in text
    np.testing.assert_array_equal(weft.grad(lambda x: f(x)[0, 1])(X)[0], 2.0 * (np.arange(8) == 1))


@pytest.mark.parametrize("platform", under_test("wasm", "webgpu", "reference"))
def test_backends_with_one_layout(platform):
    with on(platform) as device:
        x = jnp.asarray(X)
        assert x.format.layout.is_row_major
        assert weft.device_put(x, Format(Layout((0, 1)), SingleDeviceSharding(device))).shape == (8, 8)
        with pytest.raises(BackendError, match="keeps arrays row by row"):
            weft.device_put(x, Format(Layout((1, 0)), SingleDeviceSharding(device)))
        with pytest.raises(BackendError, match="keeps arrays row by row"):
            weft.jit(lambda x: x + 1, out_shardings=Format(Layout((1, 0))))(x)
        np.testing.assert_array_equal(weft.jit(lambda x: x + 1, out_shardings=Format(Layout.AUTO))(x), X + 1)
        y = weft.jit(lambda x: with_layout_constraint(x, Layout((1, 0))) + 1)(x)
        np.testing.assert_array_equal(y, X + 1)


# hints ---------------------------------------------------------------------------------------------------------------


def test_what_the_host_computes_is_marked():
    @compute_on("device_host")
    @weft.jit
    def inner(x):
        return jnp.sin(x)

    def f(x):
        with compute_on("device_host"):
            y = x * 2
        return inner(y) + 1

    text = weft.jit(f).lower(X).as_text()
    marked = [line for line in text.splitlines() if '_xla_compute_type = "host"' in line]
    assert any("multiply" in line for line in marked) and any("call @" in line or "sine" in line for line in marked)
    assert not any("add" in line for line in marked)
    np.testing.assert_allclose(weft.jit(f)(X), np.sin(2 * X) + 1, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(weft.grad(lambda x: f(x).sum())(jnp.asarray(X))[0], 2 * np.cos(2 * X[0]), rtol=1e-4)
    with pytest.raises(ValueError, match="'gpu_stream:' and a number; got 'moon'"):
        with compute_on("moon"):
            pass


@pytest.mark.parametrize("platform", under_test("wasm", "reference"))
def test_hints_change_no_value(platform):
    with on(platform):

        @weft.jit
        def f(x):
            with compute_on("device_host"):
                y = x * 2
            x, y = shard_alike(x, y)
            return x + y

        np.testing.assert_array_equal(f(X), 3 * X)


def test_two_arrays_are_laid_out_alike(mesh):
    def f(x):
        y = jnp.zeros_like(x) * x.sum()
        return shard_alike(x, y)[1] * 2

    assert weft.jit(f)(weft.device_put(X, NamedSharding(mesh, P("x", "y")))).sharding.spec == P("x", "y")
    with pytest.raises(ValueError, match="arrays of one shape"):
        shard_alike(X, X[0])
    with pytest.raises(ValueError, match="of one structure"):
        shard_alike([X], (X,))


def test_a_deleted_array_has_no_parts(mesh):
    x = weft.device_put(X, NamedSharding(mesh, P("x")))
    x.delete()
    for read in (lambda: x.addressable_data(0), lambda: x.addressable_shards, lambda: x.global_shards):
        with pytest.raises(RuntimeError, match="deleted"):
            read()


def test_arrays_that_are_gone(columns):
    """C++ has no layout of them, and crashes if it is asked."""
    f = weft.jit(lambda x: x + 1, donate_argnums=0)
    x = jnp.asarray(X)
    for _ in range(3):
        x = f(x)
    np.testing.assert_array_equal(x, X + 3)
    there = weft.device_put(X, SingleDeviceSharding(weft.devices("cpu")[0], memory_kind="pinned_host"))
    for gone in (x, columns, there):
        gone.delete()
        for use in (lambda y: y.format, f, lambda y: y * 2, lambda y: weft.device_put(y, weft.devices("cpu")[1])):
            with pytest.raises(RuntimeError, match="deleted"):
                use(gone)


def test_parts_of_another_dtype_are_refused(mesh):
    with pytest.raises(ValueError, match="dtype is bfloat16, and data_callback gave an array of float32"):
        weft.make_array_from_callback((8, 8), NamedSharding(mesh, P("x")), lambda i: X[i], dtype=jnp.bfloat16)


@pytest.mark.parametrize("platform", under_test("cpu", "wasm", "webgpu", "reference"))
def test_a_backend_of_one_device_takes_a_mesh_of_it(platform):
    with on(platform):
        device = weft.devices(platform)[0]
        with weft.set_mesh(weft.make_mesh((1,), ("z",), devices=[device])):
            for y in (jnp.arange(3), weft.jit(jnp.sin)(X), jnp.asarray(X), weft.device_put(X, P("z")) + X):
                assert y.devices() == {device}
