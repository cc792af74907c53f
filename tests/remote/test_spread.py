"""Meshes of a host's devices: arrays that lie there as parts, programs over several devices, copies between them."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import weft
import weft.numpy as jnp
import weft.remote
from hosts import TOKEN, host_here, run_host
from platforms import need
from proxy import Proxy
from raw import Raw
from weft import NamedSharding, P, lax
from weft.base.avals import shaped
from weft.serialization.programs import content_hash, serialize
from weft.transforms.portable import portable
from weft_remote import protocol as p
from weft_remote.errors import LimitError

X = np.arange(16, dtype=np.float32).reshape(8, 2)
F32, ROW = shaped((8, 2), "float32"), shaped((4, 2), "float32")


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """A host with several devices, as tests/conftest.py asks for."""
    need("cpu")
    with run_host(tmp_path_factory.mktemp("several"), "--platform", "cpu") as running:
        yield running


@pytest.fixture
def devices(several):
    with several.connect(default=True) as session:
        found = session.devices()
        assert len(found) == 8
        yield found


@pytest.fixture
def mesh(devices):
    return weft.make_mesh((4, 2), ("x", "y"), (weft.sharding.AxisType.Auto,) * 2, devices=devices)


def session_of(mesh):
    return mesh.flat_devices[0].session


# arrays -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [P("x"), P("x", "y"), P(None, "y"), P(("x", "y")), P(), P(("y", "x"), None)])
def test_arrays_lie_there_as_parts(mesh, spec):
    where = NamedSharding(mesh, spec)
    for value in (X, jnp.asarray(X), weft.device_put(X, mesh.flat_devices[3])):
        x = weft.device_put(value, where)
        assert x.sharding == where and x.devices() == set(mesh.flat_devices) and x.committed
        assert x.shape == (8, 2) and x.nbytes == 64 and x.is_fully_replicated == (spec == P())
        np.testing.assert_array_equal(x, X)
        for shard in x.addressable_shards:
            assert shard.data.devices() == {shard.device}
            np.testing.assert_array_equal(shard.data, X[shard.index])
        assert x.block_until_ready() is x and x.is_ready()


@pytest.mark.parametrize("dtype", ["bool", "int4", "int8", "bfloat16", "float16", "complex64"])
def test_dtypes(mesh, dtype):
    x = (np.arange(8) % 2).astype(jnp.dtype(dtype))
    y = weft.device_put(x, NamedSharding(mesh, P("x"))).reshape(4, 2)
    assert y.dtype == x.dtype and np.asarray(y).tobytes() == x.reshape(4, 2).tobytes()


def test_random_keys(mesh):
    keys = weft.device_put(weft.random.split(weft.random.key(0), 8), NamedSharding(mesh, P("x")))
    assert keys.sharding.spec == P("x")
    want = weft.vmap(weft.random.uniform)(weft.random.split(weft.random.key(0), 8))
    np.testing.assert_allclose(weft.vmap(weft.random.uniform)(keys), want)


def test_copies_cross_the_line_once(mesh):
    """A part that several devices hold is sent to one of them, and read from one of them."""
    session, big = session_of(mesh), np.zeros(100_000, np.float32)
    before = session.stats.bytes_sent
    x = weft.device_put(big, NamedSharding(mesh, P()))
    session.ping()
    assert 400_000 <= session.stats.bytes_sent - before < 410_000
    before = session.stats.bytes_received
    np.asarray(x + 1)
    assert 400_000 <= session.stats.bytes_received - before < 410_000


def test_what_moves_between_devices_stays_there(mesh):
    session, devices = session_of(mesh), mesh.flat_devices
    big = np.arange(100_000, dtype=np.float32)
    x = weft.device_put(big, devices[0])
    session.ping()
    sent, received = session.stats.bytes_sent, session.stats.bytes_received
    there = weft.device_put(x, devices[5])
    spread = weft.device_put(there, NamedSharding(mesh, P("x")))
    other = weft.device_put(spread, NamedSharding(mesh, P(("y", "x"))))
    fewer = NamedSharding(weft.make_mesh((2,), ("a",), devices=devices[6:]), P("a"))
    back = weft.device_put(weft.device_put(other, fewer), devices[7])
    session.ping()
    assert session.stats.bytes_sent - sent < 20_000 and session.stats.bytes_received - received < 20_000
    assert back.devices() == {devices[7]} and there.devices() == {devices[5]}
    np.testing.assert_array_equal(back, big)
    np.testing.assert_array_equal(spread, big)


def test_types_say_how_values_are_divided(mesh):
    over = weft.make_mesh((4, 2), ("x", "y"), devices=mesh.flat_devices)
    rows = NamedSharding(over, P("x"))
    values = np.arange(64, dtype=np.float32).reshape(8, 8)
    x = weft.device_put(values, NamedSharding(over, P("x", "y")))
    total = weft.shard_map(lambda v: weft.lax.psum(v, "x"), mesh=over, out_specs=P(None, "y"))
    for made, shown, want in (
        (x, "float32[8@x,8@y]", values),
        (weft.jit(lambda x: x.T * 2)(x), "float32[8@y,8@x]", values.T * 2),
        (x.sum(0), "float32[8@y]", values.sum(0)),
        (weft.jit(lambda x: weft.reshard(x + 1, rows))(x), "float32[8@x,8]", values + 1),
        (jnp.dot(x, x, out_sharding=rows), "float32[8@x,8]", values @ values),
        (total(x), "float32[2,8@y]", values.reshape(4, 2, 8).sum(0)),
        (weft.device_put(x, over.flat_devices[5]), "float32[8,8]", values),
        (jnp.stack(list(x)), "float32[8,8]", values),
    ):
        assert str(weft.typeof(made)) == shown
        np.testing.assert_allclose(made, want, rtol=1e-6)


def test_deleting(mesh):
    x = weft.device_put(X, NamedSharding(mesh, P("x")))
    part = x.addressable_shards[1].data
    y = x + 1
    x.delete()
    assert x.is_deleted() and part.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        x + 1
    kept = y.addressable_shards[0].data
    del y  # a part may outlive the whole
    np.testing.assert_array_equal(kept, X[:2] + 1)


def test_arrays_made_of_parts(mesh):
    where = NamedSharding(mesh, P("x", "y"))
    parts = [weft.device_put(X[i], d) for d, i in where.devices_indices_map((8, 2)).items()]
    x = weft.make_array_from_single_device_arrays((8, 2), where, parts)
    np.testing.assert_array_equal(x * 2, X * 2)
    np.testing.assert_array_equal(weft.make_array_from_callback((8, 2), where, lambda i: X[i]), X)


# programs ---------------------------------------------------------------------------------------------------------


def test_computations_follow_their_arguments(mesh):
    x = weft.device_put(X, NamedSharding(mesh, P("x")))
    y = jnp.sin(x) * 2 + X
    assert y.sharding.is_equivalent_to(x.sharding, 2)
    np.testing.assert_allclose(y, np.sin(X) * 2 + X, rtol=1e-5)
    assert float(x.sum()) == X.sum() and x[3].tolist() == X[3].tolist() and (x @ x.T).shape == (8, 8)
    with pytest.raises(ValueError, match="incompatible devices"):
        x + weft.device_put(X, mesh.flat_devices[1])


def test_jit_with_shardings(mesh):
    rows, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
    f = weft.jit(lambda a, b: (a @ b, a.sum()), in_shardings=(rows, None), out_shardings=(rows, whole))
    product, total = f(X, np.ones((2, 3), np.float32))
    assert product.sharding == rows and total.sharding == whole
    np.testing.assert_allclose(product, X @ np.ones((2, 3), np.float32))
    assert float(total) == X.sum()
    text = f.lower(weft.device_put(X, rows), np.ones((2, 3), np.float32)).compile().as_text()
    assert "num_partitions=8" in text and "all-reduce" in text
    with pytest.raises(ValueError, match="can't be|divisible|partitioned 4 times"):
        weft.jit(lambda x: x, in_shardings=rows)(np.ones((7, 2), np.float32))
    np.testing.assert_allclose(f(X, np.ones((2, 3), np.float32))[0], X @ np.ones((2, 3), np.float32))


def test_results_whose_sharding_the_compiler_chooses(mesh):
    f = weft.jit(lambda x: (x + 1, x.T, x.sum(0), x.reshape(-1)))
    x = weft.device_put(X, NamedSharding(mesh, P("x", "y")))
    for got, want in zip(f(x), (X + 1, X.T, X.sum(0), X.reshape(-1))):
        np.testing.assert_allclose(got, want)
        assert got.devices() == set(mesh.flat_devices)
    assert f(x)[0].sharding.is_equivalent_to(x.sharding, 2)


def test_training_over_devices(mesh):
    """Loops, derivatives, random numbers, arrays that the function closes over, donation."""
    where, batches = NamedSharding(mesh, P(None, "x")), weft.random.normal(weft.random.key(0), (5, 16, 3))
    target = jnp.arange(3.0)
    loss = lambda w, b: jnp.mean((jnp.tanh(b @ w) - b @ target) ** 2)

    def train(w, batches):
        return lax.scan(lambda w, b: (w - 0.1 * weft.grad(loss)(w, b), loss(w, b)), w, batches)

    w, losses = weft.jit(train)(jnp.zeros(3), batches)
    start = weft.device_put(jnp.zeros(3), NamedSharding(mesh, P()))
    spread, over = weft.jit(train, donate_argnums=0)(start, weft.device_put(batches, where))
    assert start.is_deleted()
    np.testing.assert_allclose(spread, w, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(over, losses, rtol=1e-4)


COLLECTIVES = {
    "psum": lambda v: v + lax.psum(v.sum(), "x"),
    "pmax": lambda v: v * lax.pmax(lax.stop_gradient(v.max()), "x") / 8,
    "all_gather": lambda v: v + lax.all_gather(v, "x").sum(),
    "ppermute": lambda v: lax.ppermute(v, "x", [(i, (i + 1) % 4) for i in range(4)]),
    "psum_scatter": lambda v: v + lax.psum_scatter(lax.all_gather(v, "x", tiled=True), "x", tiled=True),
    "axis_index": lambda v: v * lax.axis_index("x"),
    "in a loop": lambda v: lax.fori_loop(0, 3, lambda i, c: c + lax.psum(c, "x") / 8, v),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_shard_map(mesh, name):
    f = lambda over: weft.shard_map(COLLECTIVES[name], mesh=over, in_specs=P("x"), out_specs=P("x"))
    got, slope = weft.jit(f(mesh))(X), weft.grad(lambda x: (f(mesh)(x) ** 2).sum())
    gradient = slope(weft.device_put(X, NamedSharding(mesh, P("x"))))
    assert got.sharding.spec == P("x")
    cpu = weft.make_mesh((4, 2), ("x", "y"), (weft.sharding.AxisType.Auto,) * 2, devices=weft.devices("cpu"))
    with weft.default_device(weft.devices("cpu")[0]):
        np.testing.assert_allclose(got, f(cpu)(X), rtol=1e-5)
        want = weft.grad(lambda x: (f(cpu)(x) ** 2).sum())(X)
    np.testing.assert_allclose(gradient, want, rtol=1e-5)


def test_shard_map_over_two_axes(mesh):
    body = lambda a, b: lax.psum(a @ b, "y")
    f = weft.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))
    np.testing.assert_allclose(f(X, X.T[:, :3]), X @ X.T[:, :3])


def test_pmap(devices):
    f = weft.pmap(lambda x, y: x * y + lax.psum(x, "i"), axis_name="i", in_axes=(0, None), devices=devices[:4])
    got = f(np.arange(4, dtype=np.float32), np.float32(10))
    assert got.tolist() == [6, 16, 26, 36] and got.devices() == set(devices[:4])


def test_constraints_inside_of_a_program(mesh):
    where = NamedSharding(mesh, P("y"))
    f = weft.jit(lambda x: lax.with_sharding_constraint(x.T * 2, where).sum(1))
    np.testing.assert_allclose(f(weft.device_put(X, NamedSharding(mesh, P("x")))), X.T.sum(1) * 2)


def test_prints_and_callbacks(mesh, capsys):
    x = weft.device_put(X, NamedSharding(mesh, P("x")))

    def f(x):
        weft.debug.print("sum {}", x.sum())
        return weft.pure_callback(lambda v: np.asarray(v) * 2, x, x) + 1

    np.testing.assert_array_equal(weft.jit(f)(x), X * 2 + 1)
    weft.effects_barrier()
    assert capsys.readouterr().out == f"sum {X.sum()}\n"


def test_a_mesh_of_one_device(session):
    """On a host whose programs run on one device each, too."""
    mesh = weft.make_mesh((1,), ("x",), devices=session.devices())
    x = weft.device_put(X, NamedSharding(mesh, P("x")))
    f = weft.shard_map(lambda v: v + lax.psum(v.sum(), "x"), mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    np.testing.assert_array_equal(f(x), X + X.sum())
    assert weft.jit(f)(x).devices() == set(session.devices())


def test_a_connection_that_breaks(several):
    with Proxy(several.port) as proxy, weft.remote.connect(proxy.url, token=TOKEN) as session:
        where = NamedSharding(weft.make_mesh((8,), ("x",), devices=session.devices()), P("x"))
        big = np.arange(800_000, dtype=np.float32)
        double = weft.jit(lambda x: x * 2)
        x = weft.device_put(big, where)
        for n in range(4):
            proxy.cut_after = 500_000 * n
            x = double(x)
            np.testing.assert_array_equal(x, big * 2 ** (n + 1))
        assert session.stats.connections > 2


# mistakes, and what hosts refuse ------------------------------------------------------------------------------------


def test_meshes_of_several_hosts_are_refused(several, devices):
    with several.connect() as other:
        mesh = weft.make_mesh((2,), ("x",), devices=[devices[0], other.devices()[0]])
        with pytest.raises(weft.errors.BackendError, match="a mesh of devices of several hosts(.|\n)*test_spread"):
            weft.device_put(X, NamedSharding(mesh, P("x")))
        there = weft.device_put(X, other.devices()[1])
        here = weft.device_put(there, devices[1])  # by way of this process
        np.testing.assert_array_equal(here + 1, X + 1)


def test_a_failure_is_inherited(several):
    """A result that is too large fails where it is read, through copies and parts."""
    with host_here("cpu", session_bytes=100_000) as running, weft.remote.connect(running.url, token=TOKEN) as session:
        devices = session.devices()
        small = weft.device_put(np.ones(10, np.float32), devices[0])
        grow = weft.jit(lambda x: jnp.broadcast_to(x[:, None], (10, 1000)) + 0.5)
        held = [grow(small) for _ in range(3)]
        copy = weft.device_put(held[2], devices[1])
        with pytest.raises(LimitError, match="a computation's result takes"):
            np.asarray(copy)
        del held
        where = NamedSharding(weft.make_mesh((2,), ("x",), devices=devices[:2]), P("x"))
        with pytest.raises(LimitError):
            np.asarray(weft.device_put(np.ones((100, 400), np.float32), where))
        assert float(small.sum()) == 10


def put(raw, handle: int, device: int, aval=ROW) -> None:
    raw.send(p.Put, handle, aval, device, bytes(4 * aval.size))


def program(raw, fun=lambda x: x + 1) -> bytes:
    data = serialize(portable(weft.make_jaxpr(fun)(F32).jaxpr)[0])
    raw.send(p.Program, content_hash(data), len(data), data)
    return content_hash(data)


def test_the_messages(several):
    with Raw(several.url) as raw:
        digest = program(raw)
        put(raw, 1, 2), put(raw, 2, 0)
        raw.send(p.CompileSpread, 3, digest, (2, 0), (1, 2), (1, 1, 1, 0, 0), "f", (False,))
        raw.send(p.Inspect, 3, "shardings", "")
        assert json.loads(raw.until(p.Text).text) == [[[0]]]
        raw.send(p.Execute, 3, (1, 2), (4, 5))
        raw.send(p.Copy, 6, 5, 1)
        raw.send(p.Fetch, 6)
        assert bytes(raw.until(p.Data).data) == np.ones(8, np.float32).tobytes()


PLACEMENTS = {
    "one device": ((0,), (1, 1), (1, 1, 1, 0, 0), "spread over two devices or more"),
    "a device twice": ((0, 0), (1, 2), (1, 1, 1, 0, 0), "each named once"),
    "no such device": ((0, 9), (1, 2), (1, 1, 1, 0, 0), "there is no device 9"),
    "no grid": ((0, 1), (), (1, 1, 1, 0, 0), "one grid of devices at least"),
    "a grid of another size": ((0, 1), (2, 2, 2), (1, 1, 1, 0, 0), "make no grid of the sizes"),
    "a grid that ends early": ((0, 1), (3, 2), (1, 1, 1, 0, 0), "ends too early"),
    "another grid": ((0, 1), (1, 2), (2, 1, 1, 0, 0), "there is no grid 1"),
    "another axis": ((0, 1), (1, 2), (1, 1, 1, 5, 0), "has no axis 5"),
    "an axis twice": ((0, 1), (1, 2), (1, 2, 1, 0, 1, 0, 0), "names one twice"),
    "too many entries": ((0, 1), (1, 2), (1, 3, 0, 0, 1, 0, 0), "can't be divided so"),
    "specs that end early": ((0, 1), (1, 2), (1, 1, 1), "ends too early"),
    "too many specs": ((0, 1), (1, 2), (1, 1, 1, 0, 0, 7), "more entries than the program"),
    "an open argument": ((0, 1), (1, 2), (0, 0), "chooses how results are divided, not arguments"),
    "uneven parts": ((0, 1, 2), (1, 3), (1, 1, 1, 0, 0), "can't be divided so"),
}


@pytest.mark.parametrize("case", PLACEMENTS)
def test_placements_that_no_client_names(several, case):
    devices, grids, specs, message = PLACEMENTS[case]
    with Raw(several.url) as raw:
        raw.send(p.CompileSpread, 3, program(raw), devices, grids, specs, "f", (False,))
        assert message in raw.end().message


def test_parts_on_other_devices_are_refused(several):
    for wrong in ((2, 1), (1, 3), (1,)):
        with Raw(several.url) as raw:
            digest = program(raw)
            put(raw, 1, 0), put(raw, 2, 1), put(raw, 3, 1, F32)
            raw.send(p.CompileSpread, 4, digest, (0, 1), (1, 2), (1, 1, 1, 0, 0), "f", (False,))
            raw.send(p.Execute, 4, wrong, (5, 6))
            assert "argument" in raw.end().message


def test_a_host_of_one_device_refuses(host):
    with Raw(host.url) as raw:
        raw.send(p.CompileSpread, 3, program(raw), (0, 1), (1, 2), (1, 1, 1, 0, 0), "f", (False,))
        assert "there is no device 1" in raw.end().message


WITHOUT_NUMPY = """
import itertools, sys
import weft, weft.numpy as jnp, weft.remote
from weft.base import host
from weft.sharding import Mesh, NamedSharding, PartitionSpec as P
assert not host.has_numpy
with weft.remote.connect(sys.argv[1], token=sys.argv[2], default=True) as session:
    mesh = Mesh([session.devices()[:2], session.devices()[2:4]], ("a", "b"))
    values = [[[100 * i + 10 * j + k for k in range(4)] for j in range(2)] for i in range(4)]
    x = jnp.array(values, "int16")
    specs = [P("a"), P(None, "b"), P(None, None, "b"), P("b", None, "a"), P(("a", "b")), P(None, None, ("b", "a")), P()]
    for spec, other in itertools.product(specs, specs):
        y = weft.device_put(x, NamedSharding(mesh, spec))
        z = weft.device_put(y + 1, NamedSharding(mesh, other))
        assert y.tolist() == values, spec
        assert (z - 1).tolist() == values, (spec, other)
    there = weft.device_put(x + 0, session.devices()[5])
    assert weft.device_put(there, NamedSharding(mesh, P("a", "b"))).tolist() == values
    assert weft.device_put(jnp.zeros((0, 4)), NamedSharding(mesh, P(None, "a"))).tolist() == []
    assert weft.pmap(lambda v: v * 2)(jnp.arange(8)).tolist() == list(range(0, 16, 2))
print("done")
"""


def test_a_client_without_numpy(several):
    """As in a page."""
    command = [sys.executable, "-W", "ignore", "-c", WITHOUT_NUMPY, several.url, TOKEN]
    environment = {**os.environ, "WEFT_NUMPY": "0"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.stdout == "done\n", done.stderr
