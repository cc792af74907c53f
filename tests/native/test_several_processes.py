"""Programs of several processes: global arrays, collectives, training, exchange between processes, and what happens
when one of them ends.
"""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest
import several

GLOBAL = """
    mine = np.arange(4, dtype=np.float32) + 100 * me
    x = weft.make_array_from_process_local_data(spread, mine)
    assert mesh.is_multi_process and mesh.local_mesh.size == 2 and mesh.local_devices == weft.local_devices()
    assert not spread.is_fully_addressable and spread.addressable_devices == set(weft.local_devices())
    assert x.shape == (4 * count,) and not x.is_fully_addressable and x.sharding == spread

    shards = x.addressable_shards
    assert [s.device for s in shards] == [s.data.device for s in shards] == weft.local_devices()
    assert np.concatenate([s.data for s in shards]).tolist() == mine.tolist()
    assert [s.index for s in shards] == [(slice(4 * me + i, 4 * me + i + 2),) for i in (0, 2)]
    assert [s.data is None for s in x.global_shards] == [d.process_index != me for d in weft.devices()]
    assert x.addressable_data(1).tolist() == mine[2:].tolist()

    assert repr(x) == str(x) == f"Array(shape=({4 * count},), dtype=float32)"
    for read in (x.tolist, lambda: np.asarray(x), lambda: weft.device_get(x)):
        fails(RuntimeError, f"process {me} of {count}). Gather it first", read)

    # values that all processes have
    y = weft.jit(lambda x: jnp.sum(x))(x)
    want = sum(100 * 4 * i + 6 for i in range(count))
    assert float(y) == want and y.is_fully_replicated and not y.is_fully_addressable
    assert repr(y) == f"Array({want}., dtype=float32)", repr(y)

    # collectives
    both = lambda v: (weft.lax.psum(v, "x"), weft.lax.all_gather(v, "x", tiled=True))
    over = weft.shard_map(both, mesh=mesh, in_specs=weft.P("x"), out_specs=weft.P(), check_vma=False)
    total, whole = weft.jit(over)(x)
    everything = np.concatenate([np.arange(4, dtype=np.float32) + 100 * i for i in range(count)])
    assert whole.tolist() == everything.tolist()
    assert total.tolist() == everything.reshape(-1, 2).sum(0).tolist()

    # eager operations, host values and arrays of this process as operands, another sharding
    z = x * 2 + np.arange(4 * count) + jnp.ones(4 * count)
    assert np.concatenate([s.data for s in z.addressable_shards]).tolist() == (
        mine * 2 + np.arange(4 * count)[4 * me : 4 * me + 4] + 1
    ).tolist()
    assert weft.device_put(x, copied).tolist() == everything.tolist()
    again = weft.make_array_from_callback((4 * count,), spread, lambda index: everything[index])
    assert mhu.process_allgather(again == x, tiled=True).all()
    parts = [s.data for s in x.addressable_shards]
    joined = lambda parts: weft.make_array_from_single_device_arrays(x.shape, spread, parts)
    assert mhu.process_allgather(joined(parts) == x, tiled=True).all()
    fails(ValueError, "Expected 2 per-device arrays", lambda: joined(parts[:1]))

    # data of a process: its own part of an axis, or the whole axis
    rows = weft.NamedSharding(weft.make_mesh((count, 2), ("a", "b")), weft.P("a", "b"))
    block = np.full((1, 2), me, np.int32)
    whole = mhu.process_allgather(weft.make_array_from_process_local_data(rows, block), tiled=True)
    assert whole.tolist() == [[i] * 2 for i in range(count)]
    table = np.arange(2 * count, dtype=np.int32).reshape(count, 2)
    made = weft.make_array_from_process_local_data(rows, {"t": table}, {"t": (count, 2)})
    assert mhu.process_allgather(made["t"], tiled=True).tolist() == table.tolist()
    long = np.zeros((3, 2))
    makes = lambda: weft.make_array_from_process_local_data(rows, long, (2 * count, 2))
    fails(ValueError, "axis 0 of the data has 3 elements", makes)
    # each process has two parts that are not side by side
    grid = np.array(weft.devices()).reshape(count, 2).T
    crossed = weft.NamedSharding(weft.sharding.Mesh(grid, ("a", "b")), weft.P(("a", "b")))
    striped = weft.make_array_from_process_local_data(crossed, mine)
    assert mhu.process_allgather(striped, tiled=True).tolist() == [
        100.0 * i + j + k for j in (0, 2) for i in range(count) for k in (0, 1)
    ]
    uneven = weft.sharding.Mesh(np.roll(np.array(weft.devices()), 1).reshape(2, count), ("a", "b"))
    if count == 2:  # both processes have both halves along "a", in part
        torn = weft.NamedSharding(uneven, weft.P("a"))
        assert weft.make_array_from_process_local_data(torn, mine).shape == (4,)

    # keys
    keys = weft.device_put(weft.random.split(weft.random.key(0), 2 * count), spread)
    assert [s.data.shape for s in keys.addressable_shards] == [(1,), (1,)]
    assert [s.data is None for s in keys.global_shards] == [d.process_index != me for d in weft.devices()]
    normal = lambda k: weft.random.normal(k, (2 * count,))
    drawn = weft.jit(normal, out_shardings=spread)(weft.random.key(1))
    assert np.allclose(mhu.process_allgather(drawn, tiled=True), normal(weft.random.key(1)))

    # what a process can't do
    other = weft.local_devices((me + 1) % count)[0]
    fails(ValueError, f"belongs to process {(me + 1) % count}", lambda: weft.device_put(1.0, other))
    fails(ValueError, "process 1 has another value than process 0", lambda: weft.device_put(np.float32(me), copied))
    here = weft.device_put(mine, weft.local_devices()[0])
    fails(ValueError, "make_array_from_process_local_data", lambda: weft.device_put(here, copied))
    weft.config.update("jax_default_device", "cpu")
    assert jnp.arange(3).device == weft.local_devices()[0]
    assert weft.jit(lambda x: x + 1, backend="cpu")(1.0).device == weft.local_devices()[0]
    seen = []
    weft.jit(lambda x: weft.debug.callback(lambda v: seen.append(v), jnp.sum(x)))(x)
    weft.effects_barrier()
    assert all(float(v) == want for v in seen) and len(seen) >= (me == 0), seen
"""


@pytest.mark.parametrize("processes", (2, 4))
def test_global_arrays(tmp_path, processes):
    several.succeeds(processes, several.written(tmp_path, GLOBAL))


EXCHANGE = """
    tree = {"a": np.arange(3) + me, "b": (np.float64(me) / 3, np.zeros((0, 2)), np.array([True, me == 1]))}
    got = mhu.process_allgather(tree)
    assert got["a"].tolist() == [[i, i + 1, i + 2] for i in range(count)] and got["a"].dtype == np.arange(3).dtype
    assert got["b"][0].tolist() == [i / 3 for i in range(count)] and got["b"][0].dtype == np.float64, "all bits"
    assert got["b"][1].shape == (count, 0, 2) and got["b"][2].tolist() == [[True, i == 1] for i in range(count)]
    assert mhu.process_allgather(np.full((1, 2), me), tiled=True).tolist() == [[i, i] for i in range(count)]
    assert mhu.process_allgather(jnp.float32(me), tiled=True).tolist() == list(range(count))
    assert mhu.process_allgather(jnp.bfloat16(me + 0.5)).tolist() == [i + 0.5 for i in range(count)]
    x = weft.make_array_from_process_local_data(spread, np.arange(4) + 10 * me)
    fails(ValueError, "Pass tiled=True", lambda: mhu.process_allgather(x))

    for source in range(count):
        got = mhu.broadcast_one_to_all(tree, is_source=me == source)
        assert got["a"].tolist() == [source, source + 1, source + 2] and got["b"][0] == source / 3
    assert mhu.broadcast_one_to_all(np.uint8(me + 255 - 1)) == 254
    fails(ValueError, "no process is the source", lambda: mhu.broadcast_one_to_all(1, is_source=False))
    fails(ValueError, "[0, 1] are all the source", lambda: mhu.broadcast_one_to_all(1, is_source=me < 2))

    mhu.sync_global_devices("here")
    fails(AssertionError, "sync_global_devices name mismatch", lambda: mhu.sync_global_devices(f"at {me}"))
    mhu.assert_equal({"seed": 3, "none": np.float32("nan"), "zero": -0.0 if me else 0.0, "spanning": x})
    differ = lambda: mhu.assert_equal([1, me == 1], "seeds differ")
    fails(AssertionError, "seeds differ: process 1 has other values", differ)
    other_shapes = lambda: mhu.assert_equal(np.zeros(me + 1))
    fails(ValueError, "process 1 and process 0 do not call it with values of the same", other_shapes)
    first = lambda: mhu.process_allgather(1) if me else mhu.broadcast_one_to_all(1)
    fails(ValueError, "one of them calls another function", first)

    local = np.arange(4) + 10 * me
    cut, whole = mhu.host_local_array_to_global_array((local, local * 0 + 7), mesh, (weft.P("x"), weft.P()))
    assert cut.shape == (4 * count,) and whole.shape == (4,) and whole.tolist() == [7] * 4
    assert mhu.process_allgather(cut, tiled=True).tolist() == [10 * i + j for i in range(count) for j in range(4)]
    assert mhu.host_local_array_to_global_array(cut, mesh, weft.P("x")) is cut
    back = mhu.global_array_to_host_local_array(cut, mesh, weft.P("x"))
    assert back.is_fully_addressable and back.tolist() == local.tolist()
    assert mhu.global_array_to_host_local_array(back, mesh, weft.P("x")) is back
    keys = weft.random.split(weft.random.key(me), 2)
    spread_keys = mhu.host_local_array_to_global_array(keys, mesh, weft.P("x"))
    assert spread_keys.shape == (2 * count,)
    again = mhu.global_array_to_host_local_array(spread_keys, mesh, weft.P("x"))
    assert weft.random.key_data(again).tolist() == weft.random.key_data(keys).tolist()
    order = np.array(weft.devices()).reshape(count, 2).T.reshape(-1)
    torn = weft.sharding.Mesh(order, ("x",))
    fails(
        ValueError,
        "not a grid within the mesh",
        lambda: mhu.host_local_array_to_global_array(local, torn, weft.P("x")),
    )
    with mhu.live_devices(weft.devices()) as live:
        assert live == weft.devices()
"""


def test_exchange_between_processes(tmp_path):
    several.succeeds(2, several.written(tmp_path, EXCHANGE))


TRAINING = """
    import json
    key = weft.random.key(0)
    w0, w1 = weft.random.normal(key, (8, 16)) * 0.3, weft.random.normal(weft.random.key(1), (16, 1)) * 0.3
    data = np.random.default_rng(0).normal(size=(5, 16, 8)).astype(np.float32)
    rows = 16 // count
    over = weft.make_mesh((weft.device_count(),), ("x",), (weft.sharding.AxisType.Auto,))  # rows meet columns
    spread, columns = weft.NamedSharding(over, weft.P("x")), weft.NamedSharding(over, weft.P(None, "x"))
    params = weft.device_put((w0, w1), (columns, spread))

    def loss(params, x):
        hidden = jnp.tanh(x @ params[0])
        return jnp.mean((hidden @ params[1] - jnp.sum(x, 1, keepdims=True)) ** 2)

    @weft.jit
    def step(params, x):
        value, grads = weft.value_and_grad(loss)(params, x)
        return weft.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    losses = []
    for batch in data:
        x = weft.make_array_from_process_local_data(spread, batch[me * rows : (me + 1) * rows])
        params, value = step(params, x)
        losses.append(float(value))
    assert params[0].sharding.num_devices == 4
    whole = mhu.process_allgather(params, tiled=True)
    print(json.dumps([losses, whole[0].tolist(), whole[1].tolist()]))
"""


def test_training_is_that_of_one_process(tmp_path):
    path = several.written(tmp_path, TRAINING)
    (alone,) = several.succeeds(1, path, devices=4)
    losses, *want = json.loads(alone[-1])
    assert losses[-1] < losses[0] / 2
    for processes in (2, 4):
        for lines in several.succeeds(processes, path, devices=4 // processes):
            got_losses, *got = json.loads(lines[-1])
            np.testing.assert_allclose(got_losses, losses, atol=1e-5)
            for a, b in zip(got, want):
                np.testing.assert_allclose(a, b, atol=1e-5)


PMAP = """
    total = weft.pmap(lambda v: (v + 1, weft.lax.psum(v, "i")), axis_name="i")
    for call in range(2):
        one, every = total(np.arange(2.0) + 10 * me)
        assert one.tolist() == [10 * me + 1, 10 * me + 2] and every.tolist() == [22.0] * 2
        assert one.is_fully_addressable and one.shape == (2,)
    again, _ = total(one)
    assert again.tolist() == [10 * me + 2, 10 * me + 3]
    columns = weft.pmap(lambda a, b, n: (a * b) ** n, in_axes=(1, None, None), out_axes=1, static_broadcasted_argnums=2)
    table = np.arange(6.0).reshape(3, 2) + me
    assert columns(table, 2.0, 2).tolist() == ((table * 2) ** 2).tolist()
    here = weft.pmap(lambda v: weft.lax.psum(v, "i"), axis_name="i", devices=weft.local_devices())
    assert here(np.arange(2.0) + me).tolist() == [2 * me + 1] * 2, "the devices of this process alone"
    fails(ValueError, "pmap over 3 entries in each of 2 processes", lambda: total(np.arange(3.0)))
    fails(ValueError, "at least one argument with a mapped axis", lambda: weft.pmap(lambda v: v, in_axes=None)(1.0))
    fails(ValueError, "inconsistent sizes", lambda: weft.pmap(jnp.add)(np.ones(2), np.ones(1)))
"""


def test_pmap_over_all_processes(tmp_path):
    several.succeeds(2, several.written(tmp_path, PMAP))


def test_the_ten_lines_of_the_documentation(tmp_path):
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs/site/how-to/several-processes.md").read_text()
    program = page.partition("```python\n")[2].partition("```")[0]
    shown = [line.strip() for line in page.splitlines() if line.startswith("    [")]
    path = several.written(tmp_path, program, several.STDOUT)
    for i, (line,) in enumerate(several.succeeds(4, path, devices=1)):
        (told,) = [text for text in shown if text.startswith(f"[{i}]")]
        shape, _, mean = told[4:].rpartition(" ")
        assert line.startswith(shape) and float(line.split()[-1]) == pytest.approx(float(mean), abs=1e-6)


# the end of a process ------------------------------------------------------------------------------------------------

STEPS = """
    import time
    x = weft.make_array_from_process_local_data(spread, np.ones(1, np.float32))
    step = weft.jit(lambda x: x / jnp.sum(x))
    for i in range(100_000):
        x = step(x)
        x.block_until_ready()
        if i == 5:
            print("computes", flush=True)
"""


def test_one_killed_in_a_step(tmp_path):
    path = several.written(tmp_path, STEPS)
    with several.Alone(3, path) as processes:
        for i in range(3):
            processes.wait_for(i, "computes")
        processes.kill(1)
        for i in (0, 2):
            code, err, seconds = processes.end_of(i, 60)
            assert code == 1 and seconds < 20, (code, seconds, err)
            assert (
                f"process 1 of 3 ended without weft.distributed.shutdown(), and process {i} of 3 can't compute" in err
            )
            assert "start all processes again, from the last checkpoint" in err


def test_the_first_process_killed(tmp_path):
    """XLA's own client ends the others, with a message of its own: the service that they need was in that process."""
    with several.Alone(2, several.written(tmp_path, STEPS)) as processes:
        for i in range(2):
            processes.wait_for(i, "computes")
        processes.kill(0)
        code, err, seconds = processes.end_of(1, 60)
        assert code in (1, -signal.SIGABRT) and seconds < 20
        assert "process 0 of 2 ended" in err or "the leader task was preempted/died" in err.replace("Either the", "the")


def test_one_that_fails_does_not_wait_for_the_others(tmp_path):
    """They wait for it in a step. Before, all waited until the time-out of the shutdown."""
    failing = STEPS + "        if i == 20 and me == 1:\n            raise KeyError('the eleventh')\n"
    with several.Alone(2, several.written(tmp_path, failing)) as processes:
        code, err, seconds = processes.end_of(1, 60)
        assert code == 1 and "KeyError: 'the eleventh'" in err and seconds < 50
        code, err, seconds = processes.end_of(0, 60)
        assert code == 1 and "process 1 of 2 ended without" in err and seconds < 20


def test_processes_that_leave_are_not_missed(tmp_path):
    """Each waits for the others when it leaves: the service that they need is in the first one."""
    early = """
        import time
        time.sleep(2 if me else 0)
        before = time.monotonic()
        if len(sys.argv) > 1:
            weft.distributed.shutdown()
        print(time.monotonic() - before)
        import atexit
        if me:
            here = weft.pmap(lambda v: weft.lax.psum(v, "i"), axis_name="i", devices=weft.local_devices())
            atexit.register(lambda: print("leaves", flush=True))
            assert len(sys.argv) > 1 or here(np.arange(2.0)).tolist() == [1, 1], "process 0 is still there"
    """
    path = several.written(tmp_path, early)
    first, second = several.succeeds(2, path, "leave")
    assert float(first[0]) > 1.5 and float(second[0]) < 1.5
    for _ in range(2):  # at the end of the program
        done = several.weft_run("-n", 2, "--devices", 2, path)
        assert done.returncode == 0 and "ended" not in done.stderr, done.stderr[-2000:]


def joining(path, process: int, port: int) -> subprocess.CompletedProcess:
    env = {"JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{port}", "JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": str(process)}
    return subprocess.run(
        [sys.executable, path], env={**os.environ, **env}, capture_output=True, text=True, timeout=120
    )


def test_some_that_do_not_come(tmp_path):
    path = several.written(tmp_path, "", several.JOIN.replace("initialization_timeout=60", "initialization_timeout=3"))
    done = joining(path, 1, several.run.free_port())
    assert done.returncode == 1 and "process 1 could not reach process 0 at 127.0.0.1:" in done.stderr
    assert "within 3 s" in done.stderr and "whether this machine may connect" in done.stderr
    done = joining(path, 0, several.run.free_port())
    assert done.returncode != 0 and "process 0 has waited long enough for all 2 processes to join" in done.stderr
    assert "Some timed out task names:\n1" in done.stderr
    with socket.create_server(("127.0.0.1", 0)) as other:
        env = {"JAX_COORDINATOR_BIND_ADDRESS": f"127.0.0.1:{other.getsockname()[1]}"}
        done = several.weft_run("-n", 1, "--port", other.getsockname()[1], path, **env)
    assert done.returncode == 1 and "process 0 can't listen on 127.0.0.1:" in done.stderr, done.stderr


def test_one_that_is_told_to_end_lets_all_save(tmp_path):
    path = several.written(
        tmp_path,
        """
        import os, signal, time
        for step in range(600):
            if step == 3 and me == 1:
                os.kill(os.getpid(), signal.SIGTERM)
            if mhu.reached_preemption_sync_point(step):
                print(step)
                break
            time.sleep(0.05)
    """,
    )
    one, other = several.succeeds(2, path)
    assert one == other and int(one[-1]) > 3, "all save at one step"


def test_those_that_are_left_go_on(tmp_path):
    """Where programs have asked for that, and compute on what is left."""
    left = """
        import os, time
        def total(x):
            return float(jnp.sum(x))
        mhu.sync_global_devices("start")
        print("computes", flush=True)
        if me == 1:
            time.sleep(100)
        try:
            with mhu.live_devices(weft.devices()) as live:
                while len(live) == count:
                    time.sleep(0.1)
                    live = mhu._live(weft.devices())
        except mhu.ProcessFailureError as e:
            assert {d.process_index for d in e.failed_devices} == {1}
        assert total(jnp.arange(3.0)) == 3
        print("went on", flush=True)
        os._exit(0)
    """
    joins = several.JOIN.replace(
        "weft.distributed", "weft.config.update('jax_enable_recoverability', True)\nweft.distributed"
    )
    joins = joins.replace("initialization_timeout=60", "initialization_timeout=60, heartbeat_timeout_seconds=5")
    with several.Alone(2, several.written(tmp_path, left, joins)) as processes:
        for i in range(2):
            processes.wait_for(i, "computes")
        processes.kill(1)
        processes.wait_for(0, "went on")


def test_programs_that_call_python_and_the_compile_cache(tmp_path):
    path = several.written(
        tmp_path,
        """
        weft.config.update("jax_compilation_cache_dir", sys.argv[1])
        weft.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        x = weft.make_array_from_process_local_data(spread, np.arange(2.0) + me)
        twice = lambda v: np.asarray(v) * 2
        called = lambda x: weft.pure_callback(twice, weft.ShapeDtypeStruct((), jnp.float32), jnp.sum(jnp.sin(x)))
        tripled, more = weft.jit(lambda x: jnp.sum(x * 3)), weft.jit(lambda x: x + 1)
        print(float(weft.jit(called)(x)), float(tripled(x)), float(more(2.0)))
    """,
    )
    first = several.succeeds(2, path, tmp_path / "cache")
    assert first[0] == first[1] and first[0][0].endswith(" 12.0 3.0")
    stored = sorted(file.name for file in (tmp_path / "cache").iterdir() if file.name.startswith("jit_"))
    assert len(stored) >= 3
    assert several.succeeds(2, path, tmp_path / "cache") == first
    assert sorted(f.name for f in (tmp_path / "cache").iterdir() if f.name.startswith("jit_")) == stored, "found again"
