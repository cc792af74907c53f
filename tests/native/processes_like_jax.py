"""A program of several processes, for real jax and for weft that stands for it: prints what both must agree on."""

import os
import sys

if "weft" in sys.argv[1:]:
    import weft.as_jax  # noqa: F401

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils as mhu
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

jax.distributed.initialize(
    os.environ["JAX_COORDINATOR_ADDRESS"], int(os.environ["JAX_NUM_PROCESSES"]), int(os.environ["JAX_PROCESS_ID"])
)
me = jax.process_index()
mesh = Mesh(np.array(jax.devices()), ("x",))
where = NamedSharding(mesh, P("x"))
x = jax.make_array_from_process_local_data(where, np.arange(4, dtype=np.float32) + 10 * me)
local = NamedSharding(Mesh(np.array(jax.devices()).reshape(2, 2), ("a", "b")), P("b", "a"))


def show(name, compute):
    """The result, or the class of the error."""
    try:
        found = compute()
    except Exception as e:
        found = type(e).__name__
    print(name, "|", found, flush=True)


show("text", lambda: (repr(x), str(x), f"{x}"))
show("list", x.tolist)
show("get", lambda: jax.device_get(x))
show("length", lambda: len(x))
show("parts", lambda: [(s.index, s.replica_id, s.data.tolist()) for s in x.addressable_shards])
show("all parts", lambda: sorted([(s.device.id, s.index, s.replica_id, s.data is None) for s in x.global_shards]))
show("eager", lambda: ((x + 1).sharding.spec, float(jnp.sum(x))))
show("host value", lambda: jax.jit(jnp.add)(x, np.arange(8)).addressable_data(0).tolist())
show("own array", lambda: jax.jit(jnp.add)(x, jnp.arange(8)).addressable_data(1).tolist())
show("committed", lambda: jax.jit(jnp.add)(x, jax.device_put(jnp.arange(8), jax.local_devices()[0])))
show("mesh", lambda: (mesh.local_mesh.devices.shape, mesh.is_multi_process, [d.id for d in mesh.local_devices]))
show("sharding", lambda: (where.is_fully_addressable, sorted(d.id for d in where.addressable_devices)))
show("shape", lambda: jax.make_array_from_process_local_data(local, np.zeros((2, 3))).shape)
show(
    "shape given",
    lambda: jax.make_array_from_process_local_data(where, np.arange(8), (8,)).addressable_data(0).tolist(),
)
show("wrong shape", lambda: jax.make_array_from_process_local_data(where, np.arange(3), (8,)))
show("gather", lambda: mhu.process_allgather(x))
show("gather whole", lambda: mhu.process_allgather(x, tiled=True).tolist())
show("gather values", lambda: mhu.process_allgather(np.arange(2) * me).tolist())
show("gather tiled", lambda: mhu.process_allgather(np.float32(me), tiled=True).tolist())
show("first", lambda: mhu.broadcast_one_to_all(np.arange(3) + me).tolist())
show("source", lambda: int(mhu.broadcast_one_to_all(me + 5, is_source=me == 1)))
show("equal", lambda: mhu.assert_equal(3))
show("unequal", lambda: mhu.assert_equal(me))
show("together", lambda: mhu.sync_global_devices("here"))
made = mhu.host_local_array_to_global_array(np.arange(4) + 10 * me, mesh, P("x"))
show("global", lambda: (made.shape, str(made.dtype)))
show("local", lambda: mhu.global_array_to_host_local_array(made, mesh, P("x")).tolist())
show("copies", lambda: jax.device_put(np.arange(2.0), NamedSharding(mesh, P())).tolist())
show("moved", lambda: jax.device_put(x, NamedSharding(mesh, P())).tolist())
show("processes", lambda: (jax.process_count(), jax.process_indices(), [d.id for d in jax.local_devices()]))
show("pmap", lambda: jax.pmap(lambda v: jax.lax.psum(v, "i"), "i")(np.arange(2.0) + me * 2).tolist())
show("own device", lambda: [d.id for d in jnp.ones(3).devices()])
show("told to end", lambda: mhu.reached_preemption_sync_point(1))
