"""weft.experimental.random: each draw is that of weft.random for the next key of the counter; and the experimental
modules about meshes and processes.
"""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import random as r
from weft.experimental import mesh_utils, multihost_utils as mhu, topologies
from weft.experimental.random import stateful_rng

BASE = r.key(0)
KEY = lambda i: r.fold_in(BASE, i)
DRAWS = [
    (lambda g: r.key_data(g.key()), lambda k: r.key_data(k)),
    (lambda g: r.key_data(g.key((2,))), lambda k: r.key_data(r.split(k, (2,)))),
    (
        lambda g: g.uniform(1, jnp.array([2.0, 3.0])),
        lambda k: r.uniform(k, (2,), minval=1, maxval=jnp.array([2.0, 3.0])),
    ),
    (lambda g: g.random(3), lambda k: r.uniform(k, (3,))),
    (lambda g: g.normal(2.0, 3.0, (2,)), lambda k: r.normal(k, (2,)) * 3 + 2),
    (lambda g: g.normal(size=2, dtype="float16"), lambda k: r.normal(k, (2,), "float16")),
    (lambda g: g.integers(5), lambda k: r.randint(k, (), 0, 5)),
    (lambda g: g.integers(1, 9, (3,)), lambda k: r.randint(k, (3,), 1, 9)),
    (lambda g: r.key_data(g.spawn(2)[1]._base_key), lambda k: r.key_data(r.split(k)[1])),
    (lambda g: r.key_data(g.split(2)._base_key), lambda k: r.key_data(r.split(k))),
]


@pytest.mark.parametrize("draw, plain", DRAWS)
def test_draws_are_those_of_the_next_key(draw, plain):
    g = stateful_rng(0)
    for i in range(2):
        np.testing.assert_array_equal(draw(g), plain(KEY(i)))


def test_in_programs_and_under_vmap():
    g = stateful_rng(0)
    first = weft.jit(lambda g: g.uniform())(g)
    assert float(first) == float(r.uniform(KEY(0))) and float(g.uniform()) == float(r.uniform(KEY(1)))
    many = weft.vmap(lambda g: g.uniform())(g.split(2))
    np.testing.assert_array_equal(many, [r.uniform(r.fold_in(k, 0)) for k in r.split(KEY(2))])


@pytest.mark.parametrize(
    "bad",
    [
        lambda: stateful_rng(1.5),
        lambda: stateful_rng(r.PRNGKey(0)),
        lambda: stateful_rng(BASE),
        lambda: stateful_rng(0).key("a"),
    ],
)
def test_bad_seeds(bad):
    with pytest.raises(TypeError):
        bad()


def test_one_process_is_a_cluster_of_one():
    mesh = weft.make_mesh((1,), ("x",), devices=weft.devices()[:1])
    assert mhu.process_allgather(jnp.ones(2)).shape == (1, 2)
    assert mhu.process_allgather({"a": np.ones(2)}, tiled=True)["a"].shape == (2,)
    assert (
        mhu.broadcast_one_to_all({"a": jnp.arange(2)})["a"].tolist() == [0, 1]
        and mhu.sync_global_devices("here") is None
    )
    mhu.assert_equal({"a": 1})
    assert mhu.reached_preemption_sync_point(3) is False
    whole = mhu.host_local_array_to_global_array({"a": np.arange(4.0)}, mesh, mhu.P("x"))["a"]
    assert whole.sharding.spec == mhu.P("x") and mhu.global_array_to_host_local_array(
        whole, mesh, mhu.P("x")
    ).tolist() == [0, 1, 2, 3]
    with mhu.live_devices(weft.devices()) as found:
        assert found == weft.devices()
    with pytest.raises(ValueError, match="pspecs"):
        mhu.host_local_array_to_global_array(np.arange(4.0), mesh, None)
    with pytest.raises(ValueError, match="is_source"):
        mhu.broadcast_one_to_all(1, is_source=False)


class FakeDevice:
    def __init__(self, id, process_index):
        self.id, self.process_index = id, process_index


def test_hybrid_meshes_and_topologies():
    devices = [FakeDevice(i, i // 4) for i in range(8)]
    grid = mesh_utils.create_hybrid_device_mesh((2, 2), (2, 1), devices, process_is_granule=True)
    assert [[d.id for d in row] for row in grid] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    grid = mesh_utils.create_hybrid_device_mesh(
        (2, 2), (1, 2), devices[::-1], process_is_granule=True, should_sort_granules_by_key=False
    )
    assert [[d.process_index for d in row] for row in grid] == [[1, 1, 0, 0]] * 2
    with pytest.raises(ValueError, match="slice_index"):
        mesh_utils.create_hybrid_device_mesh((2, 2), (2, 1), devices)
    with pytest.raises(ValueError, match="granules 2"):
        mesh_utils.create_hybrid_device_mesh((2, 2), (3, 1), devices, process_is_granule=True)
    topology = topologies.get_attached_topology("cpu")
    assert topologies.make_mesh(topologies.TopologyDescription(topology.devices[:1]), (1,), ("x",)).axis_names == ("x",)
    with pytest.raises(NotImplementedError, match="get_attached_topology"):
        topologies.get_topology_desc("v5e", "tpu")
