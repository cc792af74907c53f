"""Meshes, shardings, arrays over several devices, jit with shardings, shard_map."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.sharding import AbstractDevice, AbstractMesh, AxisType, Mesh, NamedSharding, P, SingleDeviceSharding

pytestmark = pytest.mark.slow

X = np.arange(16.0, dtype=np.float32).reshape(8, 2)


@pytest.fixture(scope="module")
def mesh():
    return weft.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# meshes and specs ----------------------------------------------------------------------------------------------------


def test_meshes(mesh):
    assert repr(mesh) == "Mesh(axis_sizes=(4, 2), axis_names=('x', 'y'), axis_types=(Auto, Auto))"
    assert str(mesh) == "Mesh('x': 4, 'y': 2, axis_types=(Auto, Auto))"
    assert mesh.devices.shape == (4, 2) and mesh.size == 8 and dict(mesh.shape) == {"x": 4, "y": 2}
    assert mesh == Mesh(np.array(weft.devices()).reshape(4, 2), ("x", "y")) and hash(mesh) == hash(
        weft.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    )
    cpu = AbstractDevice("cpu", None, "cpu")
    assert (
        mesh.abstract_mesh == AbstractMesh((4, 2), ("x", "y"), abstract_device=cpu) != AbstractMesh((4, 2), ("x", "y"))
    )
    assert str(mesh.abstract_mesh).endswith("device_kind=cpu, num_cores=None, platform=cpu)")
    chip = AbstractDevice("TPU v5", 2, "tpu")
    assert mesh.abstract_mesh.update(axis_sizes=(2, 2), abstract_device=chip).abstract_device == chip
    assert mesh.device_ids[1, 1] == weft.devices()[3].id
    assert weft.sharding.get_mesh().empty
    with weft.set_mesh(mesh):
        assert weft.sharding.get_mesh() == mesh and weft.sharding.get_abstract_mesh().axis_names == ("x", "y")
    with mesh:
        assert weft.sharding.get_mesh() is mesh
    assert weft.sharding.get_mesh().empty


def test_a_sharding_over_a_mesh_without_devices_says_so():
    nowhere = NamedSharding(AbstractMesh((2,), ("x",)), P("x"))
    assert nowhere.shard_shape((4, 3)) == (2, 3)
    with pytest.raises(ValueError, match="has no devices, and no mesh with these axes is set"):
        weft.device_put(X, nowhere)


@pytest.mark.parametrize(
    "call,error,match",
    [
        (lambda: weft.make_mesh((4, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2), ValueError, "16 devices"),
        (lambda: weft.make_mesh((8,), ("x", "y"), axis_types=(AxisType.Auto,)), ValueError, "one name for each axis"),
        (lambda: weft.make_mesh((4, 2), ("x", "x"), axis_types=(AxisType.Auto,) * 2), ValueError, "different names"),
        (lambda: Mesh([weft.devices()[0]] * 2, ("x",)), ValueError, "only once"),
        (lambda: weft.make_mesh((8,), ("x",), axis_types=("explicit",)), TypeError, "AxisType"),
        (lambda: NamedSharding(weft.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,)), P("z")), ValueError, "'z'"),
        (lambda: P("x", ("x", "y")), ValueError, "twice"),
        (lambda: NamedSharding(weft.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,)), ("x",)), TypeError, "weft.P"),
        (
            lambda: NamedSharding(weft.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,)), P(None, "x")).shard_shape(
                (8,)
            ),
            ValueError,
            "rank",
        ),
        (
            lambda: NamedSharding(weft.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,)), P("x")).shard_shape((12,)),
            ValueError,
            "partitioned 8 times, but the dimension size is 12",
        ),
    ],
)
def test_mistakes(call, error, match):
    with pytest.raises(error, match=match):
        call()


@pytest.mark.parametrize(
    "spec,shape,index_of_5",
    [
        (P(), (8, 8), (slice(None), slice(None))),
        (P("x"), (2, 8), (slice(4, 6), slice(None))),
        (P(None, "y"), (8, 4), (slice(None), slice(4, 8))),
        (P(("x", "y")), (1, 8), (slice(5, 6), slice(None))),
        (P(("y", "x")), (1, 8), (slice(6, 7), slice(None))),
        (P("y", "x"), (4, 2), (slice(4, 8), slice(4, 6))),
    ],
)
def test_indices(mesh, spec, shape, index_of_5):
    """As jax has them for the same mesh."""
    sharding = NamedSharding(mesh, spec)
    assert sharding.shard_shape((8, 8)) == shape
    assert sharding.devices_indices_map((8, 8))[weft.devices()[5]] == index_of_5
    value = np.arange(64).reshape(8, 8)
    array = weft.device_put(value, sharding)
    assert (
        array.sharding == sharding and array.sharding.is_fully_replicated == (spec == P()) == array.is_fully_replicated
    )
    np.testing.assert_array_equal(np.asarray(array), value)
    for shard in array.addressable_shards:
        np.testing.assert_array_equal(np.asarray(shard.data), value[shard.index])
        assert shard.data.devices() == {shard.device}
    assert sorted(s.replica_id for s in array.global_shards) == sorted(
        i for i in range(8 // (64 // int(np.prod(shape)))) for _ in range(64 // int(np.prod(shape)))
    )


def test_equivalence_and_pickles(mesh):
    assert NamedSharding(mesh, P("x")) != NamedSharding(mesh, P("x", None))
    assert NamedSharding(mesh, P("x")).is_equivalent_to(NamedSharding(mesh, P("x", None)), 2)
    assert not NamedSharding(mesh, P("x")).is_equivalent_to(NamedSharding(mesh, P("y")), 2)
    assert pickle.loads(pickle.dumps(P("x", None, ("y", "z")))) == P("x", None, ("y", "z"))
    assert SingleDeviceSharding(weft.devices()[1]) == weft.device_put(1.0, weft.devices()[1]).sharding


# moving --------------------------------------------------------------------------------------------------------------


def test_device_put(mesh):
    sx, sy = NamedSharding(mesh, P("x")), NamedSharding(mesh, P("y"))
    for value in (X, jnp.asarray(X), weft.device_put(X, weft.devices()[3]), weft.device_put(X, sy)):
        moved = weft.device_put(value, sx)
        assert moved.sharding == sx and moved.committed
        np.testing.assert_array_equal(np.asarray(moved), X)
    other = NamedSharding(weft.make_mesh((4,), ("x",), devices=weft.devices()[4:]), P("x"))
    np.testing.assert_array_equal(np.asarray(weft.device_put(weft.device_put(X, sx), other)), X)
    back = weft.device_put(weft.device_put(X, sx), weft.devices()[2])
    assert back.devices() == {weft.devices()[2]}
    tree = weft.device_put({"a": X, "b": (X, X)}, {"a": sx, "b": weft.devices()[1]})
    assert tree["a"].sharding == sx and tree["b"][1].devices() == {weft.devices()[1]}
    with weft.set_mesh(mesh):
        assert weft.device_put(X, P("y")).sharding == sy
    with pytest.raises(ValueError, match="mesh"):
        weft.device_put(X, P("y"))
    with pytest.raises(ValueError, match="prefix"):
        weft.device_put({"a": X}, {"b": sx})


def test_host_memory_may_change_afterwards(mesh):
    host = X.copy()
    for where in (NamedSharding(mesh, P("x")), NamedSharding(mesh, P()), weft.devices()[1]):
        array = weft.device_put(host, where)
        host[:] = 0
        np.testing.assert_array_equal(np.asarray(array), X)
        host[:] = X


def test_donating_and_aliasing(mesh):
    x = jnp.asarray(X)
    weft.device_put(x, weft.devices()[3], donate=True)
    assert x.is_deleted()
    y = weft.device_put(X, weft.devices()[3])
    assert weft.device_put(y, weft.devices()[3], donate=True) is y and not y.is_deleted()
    z = weft.device_put(y, weft.devices()[3], may_alias=False)
    assert z is not y and z.unsafe_buffer_pointer() != y.unsafe_buffer_pointer()
    with pytest.raises(ValueError, match="may_alias and donate"):
        weft.device_put(y, weft.devices()[3], donate=True, may_alias=True)


def test_moving_is_differentiable(mesh):
    f = lambda x: (weft.device_put(jnp.sin(x), NamedSharding(mesh, P("x"))) ** 2).sum()
    np.testing.assert_allclose(np.asarray(weft.grad(f)(X)), np.sin(2 * X), atol=1e-5)
    np.testing.assert_allclose(np.asarray(weft.jit(weft.grad(f))(X)), np.sin(2 * X), atol=1e-5)
    g = lambda x: (weft.device_put(x, weft.devices()[2]) ** 2).sum()
    out = weft.grad(g)(jnp.asarray(X))
    np.testing.assert_allclose(np.asarray(out), 2 * X)
    assert weft.jvp(g, (jnp.asarray(X),), (jnp.ones_like(X),))[1] == 2 * X.sum()


def test_arrays_made_of_parts(mesh):
    sharding = NamedSharding(mesh, P("x", "y"))
    asked = []
    array = weft.make_array_from_callback((8, 2), sharding, lambda index: (asked.append(index), X[index])[1])
    assert len(asked) == 8
    np.testing.assert_array_equal(np.asarray(array), X)
    again = weft.make_array_from_single_device_arrays((8, 2), sharding, [s.data for s in array.addressable_shards])
    np.testing.assert_array_equal(np.asarray(again * 2), X * 2)
    np.testing.assert_array_equal(np.asarray(weft.make_array_from_process_local_data(sharding, X)), X)
    with pytest.raises(ValueError, match="8 per-device arrays"):
        weft.make_array_from_single_device_arrays((8, 2), sharding, [array.addressable_shards[0].data])
    with pytest.raises(ValueError, match="shape"):
        weft.make_array_from_callback((8, 2), sharding, lambda index: X)


def test_stacking_over_devices():
    devices = weft.local_devices()[:3]
    out = weft.device_put_sharded([{"a": np.full(2, i, np.float32)} for i in range(3)], devices)
    assert out["a"].tolist() == [[0, 0], [1, 1], [2, 2]] and out["a"].devices() == set(devices)
    assert weft.device_put_replicated(np.arange(2), devices).tolist() == [[0, 1]] * 3
    for shards, match in (
        ([1, 2], "must equal"),
        ([1, np.ones(2), 3], "consistent shapes"),
        ([1, (2,), 3], "structure"),
    ):
        with pytest.raises(ValueError, match=match):
            weft.device_put_sharded(shards, devices)


# computing -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [P("x"), P(None, "y"), P("x", "y"), P(("x", "y")), P()], ids=str)
def test_computation_follows_data(mesh, spec):
    x = weft.device_put(X, NamedSharding(mesh, spec))
    for f in (
        lambda x: x + 1,
        lambda x: x @ x.T,
        jnp.sum,
        lambda x: x.T,
        lambda x: x.reshape(16),
        lambda x: x[2:5],
        lambda x: jnp.sort(x, 0),
        lambda x: x.at[3].set(0),
        lambda x: jnp.fft.fft(x).real,
        lambda x: jnp.cumsum(x, 0),
        lambda x: x * np.ones((8, 2), np.float32),
        lambda x: jnp.linalg.norm(x),
        lambda x: x > 3,
    ):
        for g in (f, weft.jit(f)):
            out = g(x)
            assert out.devices() == set(weft.devices())
            np.testing.assert_allclose(np.asarray(out), np.asarray(f(jnp.asarray(X))), rtol=1e-5, atol=1e-5)


def test_results_keep_the_layout(mesh):
    x = weft.device_put(X, NamedSharding(mesh, P("x")))
    assert (x + 1).sharding == NamedSharding(mesh, P("x")) and jnp.sum(x, 1).sharding.spec == P("x")
    assert weft.jit(lambda x: x.T)(x).sharding.spec == P(None, "x") and jnp.sum(x).is_fully_replicated


def test_jit_with_shardings(mesh):
    sx, sy, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P("y")), NamedSharding(mesh, P())
    f = weft.jit(
        lambda a, b: {"sum": a["v"] + b, "product": a["v"] * b},
        in_shardings=({"v": sx}, None),
        out_shardings={"sum": sy, "product": whole},
    )
    for _ in range(2):
        out = f({"v": X}, X)
        assert out["sum"].sharding == sy and out["product"].sharding == whole
        np.testing.assert_array_equal(np.asarray(out["sum"]), X + X)
    with weft.set_mesh(mesh):
        assert weft.jit(lambda x: x, out_shardings=P("y"))(X).sharding == sy
    assert weft.jit(weft.jit(lambda x: x + 1, out_shardings=sy))(X).sharding == sy
    assert weft.jit(lambda x, n: x * n, in_shardings=(sx,), static_argnums=1)(X, 3).sharding == sx
    np.testing.assert_allclose(
        np.asarray(weft.grad(lambda x: (weft.jit(jnp.sin, in_shardings=sx)(x) ** 2).sum())(X)), np.sin(2 * X), atol=1e-5
    )


def test_jit_refuses(mesh):
    sx = NamedSharding(mesh, P("x"))
    with pytest.raises(ValueError, match="does not match the sharding on the respective arg"):
        weft.jit(lambda x: x, in_shardings=sx)(weft.device_put(X, NamedSharding(mesh, P("y"))))
    with pytest.raises(ValueError, match="by position"):
        weft.jit(lambda x, y: x, in_shardings=sx)(X, y=X)
    with pytest.raises(RuntimeError, match="set_mesh"):
        weft.jit(lambda x: x, in_shardings=P("x"))(X)
    with pytest.raises(ValueError, match="partitioned 4 times"):
        weft.jit(lambda x: x, in_shardings=sx)(X[:7])
    with pytest.raises(ValueError, match="prefix"):
        weft.jit(lambda x: x, in_shardings=(sx, sx))(X)
    with pytest.raises(TypeError, match="shardings and specs"):
        weft.jit(lambda x: x, in_shardings="x")(X)
    with pytest.raises(ValueError, match="incompatible devices"):
        weft.device_put(X, sx) + weft.device_put(X, weft.devices()[1])
    with pytest.raises(ValueError, match="incompatible devices"):
        weft.jit(lambda x, y: x + y)(weft.device_put(X, sx), weft.device_put(X, weft.devices()[1]))


def test_jit_on_a_device():
    for options in (dict(device=weft.devices()[2]), dict(backend="cpu")):
        out = weft.jit(lambda x: x + 1, **options)(X)
        assert out.devices() == {options.get("device", weft.devices()[0])}


def test_donation_over_devices(mesh):
    sx = NamedSharding(mesh, P("x"))
    for options in (dict(), dict(in_shardings=sx, out_shardings=sx)):
        x = weft.device_put(X, sx)
        f = weft.jit(lambda x: x + 1, donate_argnums=0, **options)
        y = f(x)
        assert x.is_deleted() and y.sharding == sx
        np.testing.assert_array_equal(np.asarray(f(y)), X + 2)


def test_constants_that_lie_over_devices(mesh):
    w = weft.device_put(X, NamedSharding(mesh, P("x")))
    np.testing.assert_array_equal(np.asarray(weft.jit(lambda x: x + w)(X)), X + X)


def test_constraints(mesh):
    sx, sy = NamedSharding(mesh, P("x")), NamedSharding(mesh, P(None, "y"))
    f = lambda x: lax.with_sharding_constraint(jnp.sin(x), sx)
    for g in (f, weft.jit(f)):
        out = g(X)
        assert out.sharding == sx
        np.testing.assert_allclose(np.asarray(out), np.sin(X), rtol=1e-6)
    assert weft.device_put(out, sy).sharding == sy
    with pytest.raises(ValueError, match="with_sharding_constraint for axes of type Auto"):
        weft.reshard(out, sy)
    assert "sharding_constraint" in str(weft.make_jaxpr(f)(X))
    np.testing.assert_allclose(
        np.asarray(weft.jit(weft.grad(lambda x: f(x).sum()))(X)), np.cos(X), rtol=1e-5, atol=1e-6
    )
    with mesh:
        assert weft.jit(lambda x: lax.with_sharding_constraint(x, P("y")))(X).sharding.spec == P("y")
    with pytest.raises(ValueError, match="partitioned"):
        weft.jit(f)(X[:3])
    # traced, not only where it runs
    for spec in (P(None, "x", None), P(P.UNCONSTRAINED, "x", None), P(None, None, None)):
        with pytest.raises(ValueError, match="rank at least 3, but was applied to a value of rank 2"):
            weft.eval_shape(lambda x: lax.with_sharding_constraint(x, NamedSharding(mesh, spec)), X)


def test_spmd_axis_name(mesh):
    """The mapped axis lies along the named axis of the mesh, in constraints and in shard_map."""
    f = lambda v: lax.with_sharding_constraint(jnp.sin(v), NamedSharding(mesh, P("y")))
    assert weft.jit(weft.vmap(f, spmd_axis_name="x"))(X).sharding.spec == P("x", "y")
    assert "UNCONSTRAINED" in str(weft.make_jaxpr(weft.vmap(f))(X))
    whole = lambda v: lax.with_sharding_constraint(jnp.sin(v), NamedSharding(mesh, P()))
    assert weft.jit(weft.vmap(whole, spmd_axis_name=("x", "y")))(X).sharding.spec == P(("x", "y"))
    g = weft.shard_map(lambda v: lax.psum(v, "y"), mesh=mesh, in_specs=P("y"), out_specs=P())
    out = weft.vmap(g, spmd_axis_name="x")(X)
    assert out.sharding.spec == P("x")
    np.testing.assert_allclose(np.asarray(out), X.sum(1, keepdims=True))
    np.testing.assert_allclose(np.asarray(weft.vmap(g)(X)), X.sum(1, keepdims=True))
    with pytest.raises(ValueError, match="spmd_axis_name"):
        weft.vmap(g, spmd_axis_name="x")(X[:6])


def test_lowering_ahead_of_time(mesh):
    sx = NamedSharding(mesh, P("x"))
    lowered = weft.jit(lambda x: x * 2, in_shardings=sx).lower(weft.ShapeDtypeStruct((8, 2), np.float32))
    assert 'sdy.mesh @mesh = <["x"=4, "y"=2]>' in lowered.as_text() and "num_partitions = 8" in lowered.as_text()
    assert lowered.compile()(X).sharding.spec == P("x")
    by_type = weft.jit(lambda x: x * 2).lower(weft.ShapeDtypeStruct((8, 2), np.float32, sharding=sx))
    assert "sdy.sharding" in by_type.as_text()


# shard_map -----------------------------------------------------------------------------------------------------------


def test_shard_map(mesh):
    seen = []

    def body(x, w):
        seen.append((x.shape, w.shape))
        return lax.psum(x * w, "x"), x + lax.axis_index("y")

    f = weft.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P()), out_specs=(P(None, "y"), P("x", "y")))
    total, shifted = f(X, np.float32(2))
    assert seen[0] == ((2, 1), ())
    np.testing.assert_allclose(np.asarray(total), 2 * X.reshape(4, 2, 2).sum(0))
    np.testing.assert_allclose(np.asarray(shifted), X + [0, 1])
    assert shifted.sharding.spec == P("x", "y")


REFERENCE = {
    "grad": lambda f: weft.grad(lambda x, w: (f(x, w) ** 2).sum(), argnums=(0, 1)),
    "jvp": lambda f: lambda x, w: weft.jvp(f, (x, w), (x, 1.0)),
    "hessian": lambda f: weft.hessian(lambda x, w: (f(x, w) ** 2).sum(), argnums=1),
    "vmap": lambda f: lambda x, w: weft.vmap(f, in_axes=(None, 0))(x, jnp.stack([w, w * 2])),
    "jit": lambda f: weft.jit(f),
    "checkpoint": lambda f: weft.jit(weft.grad(lambda x, w: weft.checkpoint(f)(x, w).sum())),
}


@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize("name", REFERENCE)
def test_transformations_of_shard_map(mesh, name, check_vma):
    f = weft.shard_map(
        lambda x, w: jnp.sin(lax.psum(x * w, "x")),
        mesh=mesh,
        in_specs=(P("x", "y"), P()),
        out_specs=P(None, "y"),
        check_vma=check_vma,
    )
    plain = lambda x, w: jnp.sin((x * w).reshape(4, 2, 2).sum(0))
    got, want = (REFERENCE[name](g)(jnp.asarray(X / 10), jnp.float32(0.7)) for g in (f, plain))
    for a, b in zip(weft.tree_util.tree_leaves(got), weft.tree_util.tree_leaves(want)):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-5)


def test_shard_map_over_some_axes(mesh):
    """Along the other axes the compiler lays values out, as it likes or as it is told."""

    def body(x):
        assert x.shape == (2, 2)
        return x * lax.axis_index("x") + lax.psum(x, "x")

    f = weft.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    want = X * np.repeat(np.arange(4), 2)[:, None] + np.tile(X.reshape(4, 2, 2).sum(0), (4, 1))
    np.testing.assert_allclose(np.asarray(weft.jit(f)(weft.device_put(X, NamedSharding(mesh, P("x", "y"))))), want)


def test_shard_map_checks_copies(mesh):
    over = dict(mesh=mesh, in_specs=P("x"), out_specs=P())
    with pytest.raises(ValueError, match="check_vma=False"):
        weft.shard_map(lambda x: x, **over)(X)
    with pytest.raises(ValueError, match="the same along"):
        weft.shard_map(lambda x: lax.psum(x, "x") * lax.axis_index("x"), **over)(X)
    with pytest.raises(ValueError, match="the same along"):
        weft.shard_map(
            lambda x: lax.scan(lambda c, _: (c * lax.axis_index("y"), ()), lax.psum(x, "x"), None, length=2)[0], **over
        )(X)
    np.testing.assert_array_equal(np.asarray(weft.shard_map(lambda x: x, **over, check_vma=False)(X)), X[:2])
    np.testing.assert_allclose(
        np.asarray(weft.shard_map(lambda x: weft.jit(lambda y: lax.pmean(y, "x") + 1)(x), **over)(X)),
        X.reshape(4, 2, 2).mean(0) + 1,
    )


@pytest.mark.parametrize(
    "options,match",
    [
        (dict(in_specs=P("z"), out_specs=P()), "names an axis"),
        (dict(out_specs=P()), "in_specs"),
        (dict(in_specs=P(None, None, "x"), out_specs=P()), "more entries"),
        (dict(in_specs=P(None, "x"), out_specs=P()), "multiple of 4"),
        (dict(in_specs=(P(), P()), out_specs=P()), "prefix"),
        (dict(in_specs=P("x"), out_specs=P("x"), axis_names={"q"}), "axes of the mesh"),
    ],
)
def test_shard_map_mistakes(mesh, options, match):
    with pytest.raises(ValueError, match=match):
        weft.shard_map(lambda x: x, mesh=mesh, **options)(X)


def test_smap_and_the_context_mesh(mesh):
    with weft.set_mesh(mesh):
        shifted = weft.smap(lambda x: x + lax.axis_index("x"), in_axes=0, out_axes=0, axis_name="x")
        assert shifted(np.arange(8)).tolist() == [0, 1, 3, 4, 6, 7, 9, 10]
        total = weft.shard_map(lambda x: lax.psum(x, ("x", "y")), in_specs=P(("x", "y")), out_specs=P())
        assert total(np.arange(8)).tolist() == [28]
    with pytest.raises(ValueError, match="needs a mesh"):
        weft.shard_map(lambda x: x, in_specs=P(), out_specs=P())(X)


def test_shard_map_means_vmap(mesh):
    """Its interpretation on one device, which the reference interpreter and other backends use."""
    from weft.core.interpret import interpret

    def body(x, y):
        c, ys = lax.scan(
            lambda c, t: (c + lax.ppermute(c, "x", [(i, (i + 1) % 4) for i in range(4)]) * t, c.sum()),
            x,
            jnp.arange(3.0),
        )
        return c, lax.all_gather(y, ("y", "x"), tiled=True), lax.psum(ys, ("x", "y"))

    f = weft.shard_map(
        body,
        mesh=mesh,
        in_specs=(P(("x", "y")), P(None, "y")),
        out_specs=(P(("x", "y")), P(None, "x"), P()),
        check_vma=False,
    )
    args = (X, np.arange(8.0, dtype=np.float32).reshape(4, 2))
    for a, b in zip(f(*args), interpret(weft.make_jaxpr(f)(*args), args)):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-6)


# how many devices ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "before,count",
    [
        ("import os; os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=3'", 3),
        ("import os; os.environ['JAX_NUM_CPU_DEVICES'] = '5'", 5),
        ("import weft; weft.config.update('jax_num_cpu_devices', 2)", 2),
    ],
)
def test_virtual_devices(before, count):
    code = (
        f"import os; os.environ.pop('JAX_NUM_CPU_DEVICES', None)\n{before}\nimport weft; assert"
        f" weft.device_count('cpu') == {count}, weft.devices()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_count_is_for_good():
    with pytest.raises(RuntimeError, match="can't change any more"):
        weft.devices("cpu") and weft.config.update("jax_num_cpu_devices", 3)
    weft.config.update("jax_num_cpu_devices", 8)


# xla_computation -----------------------------------------------------------------------------------------------------


def test_xla_computation():
    f = lambda x, n, y: ({"a": x @ y}, lax.psum(y, "i") * n)
    c, shapes = weft.xla_computation(f, static_argnums=1, axis_env=[("i", 4)], return_shape=True)(
        np.ones((2, 3), np.float32), 2, np.ones((3, 4), np.float32)
    )
    text = c.as_hlo_text()
    assert "f32[2,3]" in text and "replica_groups={{0,1,2,3}}" in text and len(c.as_serialized_hlo_module_proto()) > 100
    assert shapes[0]["a"].shape == (2, 4) and shapes[1].shape == (3, 4)
    every = lambda x: (
        lax.all_gather(x, "i"),
        lax.ppermute(x, "i", [(0, 1)]),
        lax.all_to_all(x, "i", 0, 0),
        lax.psum_scatter(x, "i"),
        lax.axis_index("i"),
    )
    text = weft.xla_computation(every, axis_env=[("j", 2), ("i", 4)])(np.ones((4, 2), np.float32)).as_hlo_text()
    for word in (
        "all-gather",
        "collective-permute",
        "all-to-all",
        "reduce-scatter",
        "replica-id",
        "{{0,1,2,3},{4,5,6,7}}",
    ):
        assert word in text
    assert "parameter(1)" not in weft.xla_computation(lambda x, y: x + y, tuple_args=True)(1.0, 2.0).as_hlo_text()
    assert (
        "input_output_alias"
        in weft.xla_computation(lambda x: x + 1, donate_argnums=0)(np.ones(3, np.float32)).as_hlo_text()
    )
    w = jnp.arange(3.0)
    assert "constant({0, 1, 2})" in weft.xla_computation(lambda x: x + w)(1.0).as_hlo_text()
    with pytest.raises(ValueError, match="in_parts"):
        weft.xla_computation(lambda x: x, in_parts=1)


# callbacks and the rest ----------------------------------------------------------------------------------------------


def test_callbacks_over_devices(mesh, capfd):
    x = weft.device_put(X, NamedSharding(mesh, P("x")))
    f = weft.jit(lambda x: weft.pure_callback(np.sin, weft.ShapeDtypeStruct((8, 2), "float32"), x) + 1)
    np.testing.assert_allclose(np.asarray(f(x)), np.sin(X) + 1, rtol=1e-6)
    seen = []

    @weft.jit
    def g(x):
        weft.debug.callback(lambda s: seen.append(float(s)), x.sum())
        return weft.experimental.io_callback(np.cos, weft.ShapeDtypeStruct((8, 2), "float32"), x)

    np.testing.assert_allclose(np.asarray(g(x)), np.cos(X), rtol=1e-6)
    weft.effects_barrier()
    assert seen == [120.0]
    weft.pmap(lambda v: weft.debug.callback(lambda s: seen.append(float(s)), v))(X[:, 0])
    weft.effects_barrier()
    assert sorted(seen[1:]) == X[:, 0].tolist()
    with pytest.raises(ValueError, match="ordered debug callbacks"):
        weft.jit(lambda x: weft.debug.print("{x}", x=x, ordered=True))(x)


def test_pmaps_of_several_sizes_in_one_program():
    f = weft.jit(
        lambda x: (
            weft.pmap(lambda v: v + lax.psum(v, "i"), axis_name="i")(x),
            weft.pmap(lambda v: v * lax.axis_index("j"), axis_name="j")(x[:3]),
        )
    )
    a, b = f(X)
    np.testing.assert_allclose(np.asarray(a), X + X.sum(0))
    np.testing.assert_allclose(np.asarray(b), X[:3] * np.arange(3)[:, None])


def test_meshes_of_one_set_of_devices_mix(mesh):
    other = NamedSharding(weft.make_mesh((8,), ("z",), axis_types=(AxisType.Auto,)), P("z"))
    x, y = weft.device_put(X, NamedSharding(mesh, P("y"))), weft.device_put(X, other)
    np.testing.assert_array_equal(np.asarray(x + y), X + X)
    np.testing.assert_array_equal(np.asarray(weft.jit(lambda a, b: a - b)(y, x)), X * 0)
    np.testing.assert_array_equal(np.asarray(weft.pmap(lambda v: v + 1)(x)), X + 1)


def test_debug_nans_sees_programs_over_devices(mesh):
    x = weft.device_put(X, NamedSharding(mesh, P("x")))
    with weft.debug_nans(True):
        for f in (weft.jit(lambda x: jnp.log(x - 5)), lambda x: x / 0, weft.pmap(lambda v: jnp.log(-v - 1))):
            with pytest.raises(FloatingPointError):
                f(x)


def test_dlpack_is_for_one_device(mesh):
    with pytest.raises(BufferError, match="addressable_shards"):
        weft.device_put(X, NamedSharding(mesh, P("x"))).__dlpack__()


def test_keys_lie_over_devices(mesh):
    keys = weft.device_put(weft.random.split(weft.random.key(0), 8), NamedSharding(mesh, P("x")))
    assert (
        keys.sharding.spec == P("x") and keys.addressable_shards[0].data.shape == (2,) and not keys.is_fully_replicated
    )
    np.testing.assert_array_equal(
        np.asarray(weft.random.key_data(keys)),
        np.asarray(weft.random.key_data(weft.random.split(weft.random.key(0), 8))),
    )
    assert weft.random.key(0).sharding == SingleDeviceSharding(weft.devices()[0])


def test_an_array_on_a_mesh_of_one_device_is_computed_with_eagerly():
    x = weft.device_put(
        np.arange(3.0, dtype=np.float32),
        weft.NamedSharding(weft.make_mesh((1,), ("i",), axis_types=(AxisType.Auto,)), weft.P("i")),
    )
    np.testing.assert_allclose(jnp.sin(x) + x[1] + (x @ x), np.sin([0, 1, 2]) + 6, rtol=1e-6)
    np.testing.assert_array_equal(x + weft.device_put(np.ones(3, np.float32), weft.devices()[0]), [1, 2, 3])


# references ----------------------------------------------------------------------------------------------------------


def double(ref):
    ref[...] = ref[...] * 2
    return ref[...].sum(keepdims=True)


@pytest.mark.parametrize("jit", [weft.jit, lambda f: f])
def test_references_are_cut_like_arrays(jit):
    line = weft.make_mesh((8,), ("i",), axis_types=(AxisType.Auto,))
    for start in (
        np.arange(8.0, dtype=np.float32),
        weft.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(line, P("i"))),
    ):
        ref = weft.new_ref(start)
        np.testing.assert_array_equal(
            jit(weft.shard_map(double, mesh=line, in_specs=P("i"), out_specs=P("i")))(ref), np.arange(8) * 2
        )
        np.testing.assert_array_equal(ref[...], np.arange(8) * 2)
    ref = weft.new_ref(np.zeros(8, np.float32))
    # closed over: the same on all devices
    add = lambda x: [ref.__setitem__(0, ref[0] + lax.psum(x, "i")[0]), x + ref[0]][1]
    np.testing.assert_array_equal(
        jit(weft.shard_map(add, mesh=line, in_specs=P("i"), out_specs=P("i")))(np.ones(8, np.float32)), [9] * 8
    )
    assert ref[0] == 8


def test_a_choice_that_differs_between_devices_may_write_to_a_reference():
    line = weft.make_mesh((8,), ("i",), axis_types=(AxisType.Auto,))

    def body(x):
        ref = weft.new_ref(x)
        lax.cond(x[0] > 3, lambda r: r.__setitem__(..., r[...] * 2), lambda r: None, ref)
        return ref[...]

    x = np.arange(8, dtype=np.float32)
    for wrapped in (lambda f: f, weft.jit):
        got = wrapped(weft.shard_map(body, mesh=line, in_specs=P("i"), out_specs=P("i")))(x)
        np.testing.assert_array_equal(got, np.where(x > 3, x * 2, x))

    def same_on_all(ref, x):  # what one device writes, the others would not see
        lax.cond(x[0] > 3, lambda r: r.__setitem__(0, 1.0), lambda r: None, ref)
        return x

    with pytest.raises(ValueError, match="differs between devices .along 'i'.*same on all"):
        weft.shard_map(same_on_all, mesh=line, in_specs=(P(), P("i")), out_specs=P("i"))(
            weft.new_ref(np.zeros(2, np.float32)), x
        )


def test_references_inside_of_shard_map():
    line = weft.make_mesh((8,), ("i",), axis_types=(AxisType.Auto,))

    def body(x):
        ref = weft.new_ref(x)
        total, _ = lax.scan(
            lambda c, _: [ref.addupdate(jnp.ones(2)), (c + lax.psum(ref[...].sum(), "i"), None)][1], 0.0, None, length=3
        )
        ref[0] = ref[0] ** 2
        return total, ref[...]

    f = weft.shard_map(body, mesh=line, in_specs=P("i"), out_specs=(P(), P("i")))
    x = np.arange(16.0, dtype=np.float32)
    total, rows = weft.jit(f)(x)
    want = x + 3
    want[::2] **= 2
    np.testing.assert_allclose(rows, want)
    assert total == 3 * x.sum() + 16 * (1 + 2 + 3)
    np.testing.assert_allclose(weft.grad(lambda x: f(x)[1].sum())(x), np.where(np.arange(16) % 2, 1, 2 * (x + 3)))
    with pytest.raises(ValueError, match="differs between devices"):
        weft.shard_map(lambda r, x: r.__setitem__(..., x), mesh=line, in_specs=(P(), P("i")), out_specs=P())(
            weft.new_ref(np.zeros(2, np.float32)), x
        )


@pytest.mark.parametrize("wrap", [lambda f: f, weft.jit], ids=["eager", "jit"])
def test_references_that_do_not_vary_with_the_argument_at_first(wrap):
    """The tangents of a reference begin as zeros, which differ between devices as what it holds does."""
    mesh = weft.make_mesh((4, 2), ("b", "a"), axis_types=(AxisType.Auto,) * 2)

    def weighted(w, x):
        ref = weft.new_ref(x)
        ref[...] = ref[...] * w
        ref[0] += 1.0
        return ref[...].sum()

    over = lambda f, ins: wrap(weft.shard_map(f, mesh=mesh, in_specs=ins, out_specs=P(("b", "a"))))
    x = np.arange(1.0, 17.0, dtype=np.float32)
    values, slopes = over(
        lambda w, x: tuple(y[None] for y in weft.jvp(lambda w: weighted(w, x), (w,), (1.0,))), (P(), P(("b", "a")))
    )(np.float32(3), x)
    np.testing.assert_allclose(values, 3 * x.reshape(8, 2).sum(1) + 1)
    np.testing.assert_allclose(slopes, x.reshape(8, 2).sum(1))
    back = over(lambda ws, x: weft.grad(weighted)(ws[0], x)[None], (P(("b", "a")), P(("b", "a"))))
    np.testing.assert_allclose(back(np.arange(8, dtype=np.float32), x), x.reshape(8, 2).sum(1))


@pytest.mark.parametrize(
    "over",
    [
        lambda f: weft.shard_map(
            f, mesh=weft.make_mesh((8,), ("i",), axis_types=(AxisType.Auto,)), in_specs=P("i"), out_specs=P("i")
        ),
        weft.pmap,
    ],
)
def test_bad_values_are_named_by_the_operation_on_a_device(over):
    def body(x):
        y = lax.scan(lambda c, _: (jnp.sqrt(c - 1), None), x + 8, None, length=2)[0]
        return y + 1

    def branching(x):
        return lax.cond(lax.axis_index("i").sum() > 2, jnp.log, lambda x: x, x)

    x = np.arange(8.0, dtype=np.float32)
    x[5] = -8
    with weft.debug_nans(True):
        for f in (over(body), weft.jit(over(body))):
            with pytest.raises(
                FloatingPointError, match=r"\(nan\) encountered in sqrt\n  at .*test_sharding.py:\d+ \(<lambda>\)"
            ):
                f(x)
        np.testing.assert_allclose(over(body)(x * 0 + 9), np.sqrt(np.sqrt(16.0) - 1) + 1, rtol=1e-6)
        with pytest.raises(FloatingPointError, match="encountered in cond"):
            weft.shard_map(
                branching,
                mesh=weft.make_mesh((8,), ("i",), axis_types=(AxisType.Auto,)),
                in_specs=P("i"),
                out_specs=P("i"),
            )(x)


def test_ordered_callbacks_over_devices_come_in_the_order_of_the_program():
    line, seen = weft.make_mesh((8,), ("i",), axis_types=(AxisType.Auto,)), []

    def double(x):
        def call(v):
            seen.append(np.asarray(v).ravel().tolist())
            return np.asarray(v) * 2

        return weft.experimental.io_callback(call, weft.ShapeDtypeStruct(x.shape, x.dtype), x, ordered=True)

    twice = lambda x: lax.scan(lambda c, _: (double(c), None), x, None, length=2)[0]
    x = np.arange(1.0, 9.0, dtype=np.float32)
    # as one program: once each
    np.testing.assert_array_equal(weft.jit(twice)(weft.device_put(x, NamedSharding(line, P("i")))), 4 * x)
    weft.effects_barrier()
    assert seen == [x.tolist(), (2 * x).tolist()]
    for over in (
        lambda f: weft.jit(weft.shard_map(f, mesh=line, in_specs=P("i"), out_specs=P("i"), check_vma=False)),
        weft.pmap,
    ):
        seen.clear()
        # as programs of devices: in each device's order
        np.testing.assert_array_equal(over(lambda x: lax.cond(x.sum() > 0, twice, double, x))(x), 4 * x)
        weft.effects_barrier()
        assert sorted(seen) == sorted([[v] for v in x] + [[2 * v] for v in x]) and all(
            seen.index([v]) < len(seen) - 1 - seen[::-1].index([2 * v]) for v in x
        )
    with pytest.raises(ValueError, match="ordered debug callbacks .* runs on 8"):
        weft.jit(lambda x: [weft.debug.print("{}", x, ordered=True), x][1])(
            weft.device_put(x, NamedSharding(line, P("i")))
        )


@pytest.mark.parametrize(
    "make",
    [
        lambda kind: weft.sharding.SingleDeviceSharding(weft.devices("cpu")[0], memory_kind=kind),
        lambda kind: weft.NamedSharding(
            weft.make_mesh((1,), ("x",), devices=weft.devices("cpu")[:1]), weft.P("x"), memory_kind=kind
        ),
    ],
)
def test_kinds_of_memory(make):
    # of a mesh without devices
    assert weft.NamedSharding(weft.sharding.get_mesh(), weft.P()).memory_kind == "device"
    assert [make(kind).memory_kind for kind in (None, "device", "pinned_host")] == ["device", "device", "pinned_host"]
    with pytest.raises(ValueError, match="no memory of kind 'tape'; it has 'device', "):
        make("tape")
