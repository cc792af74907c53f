"""Programs on a host in another process, as a user runs them."""

import gc
import threading

import numpy as np
import pytest
from platforms import need
import weft
import weft.numpy as jnp
import weft.remote
from weft.runtime.dispatch import executable_for
from hosts import TOKEN, run_host
from example_programs import PROGRAMS
from proxy import Proxy


def values(tree):
    return [np.asarray(x) for x in weft.tree.leaves(tree)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_what_the_reference_gives(name, session):
    fun, args = PROGRAMS[name]
    got = values(weft.jit(fun)(*args))
    with weft.default_device(weft.devices("reference")[0]):
        want = values(weft.jit(fun, backend="reference")(*args))
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert g.dtype == w.dtype
        np.testing.assert_allclose(np.asarray(g, np.complex128), np.asarray(w, np.complex128), rtol=1e-5)


def test_arrays_live_on_the_host(session):
    x = weft.device_put(np.arange(6, dtype=np.int32).reshape(2, 3))
    (device,) = x.devices()
    assert (
        device.platform == "remote"
        and device in session.devices()
        and weft.devices()[: len(session.devices())] == session.devices()
    )
    assert x.shape == (2, 3) and x.nbytes == 24
    np.testing.assert_array_equal(x, np.arange(6).reshape(2, 3))
    assert (x + 1).tolist() == [[1, 2, 3], [4, 5, 6]] and float(x.sum()) == 15.0
    assert repr(x[0]) == "Array([0, 1, 2], dtype=int32)"
    x.block_until_ready()
    assert x.is_ready()


NARROW = ["bool", "int2", "uint2", "int4", "uint4", "float4_e2m1fn", "int8", "uint8", "float8_e4m3fn", "float8_e5m2"]


@pytest.mark.parametrize("dtype", [*NARROW, "int16", "uint32", "float16", "bfloat16", "float32", "complex64"])
def test_every_dtype_travels(dtype, session):
    """There and, through a program, back: what was put is remembered here, and would be read without the host."""
    dtype = jnp.dtype(dtype)
    if str(dtype) in NARROW:  # every value
        width = (
            1
            if dtype == np.bool_
            else jnp.iinfo(dtype).bits
            if jnp.issubdtype(dtype, np.integer)
            else jnp.finfo(dtype).bits
        )
        patterns = np.arange(1 << width, dtype=np.uint8)
        whole = (
            patterns
            if width == 8 or not jnp.issubdtype(dtype, np.signedinteger)
            else (patterns ^ (1 << width - 1)).astype(np.int8) - np.int8(1 << width - 1)
        )
        x = whole.astype(dtype) if jnp.issubdtype(dtype, np.integer) and width < 8 else whole.view(dtype)
    else:
        x = np.array([[0, 1, -1.5], [1, 0, 100]]).astype(np.float32).astype(dtype)
    back = np.asarray(weft.jit(lambda x: x)(weft.device_put(x)))
    assert back.dtype == x.dtype and back.shape == x.shape
    assert back.tobytes() == x.tobytes()


def test_64_bit_programs(session):
    with weft.enable_x64(True):
        y = weft.jit(lambda x: x / 3)(np.float64(1))
        assert y.dtype == np.float64 and float(y) == 1 / 3
    assert weft.jit(lambda x: x / 3)(1.0).dtype == np.float32


def test_empty_and_large_arrays(session):
    assert np.asarray(weft.device_put(np.zeros((0, 3), np.float32))).shape == (0, 3)
    big = np.arange(5 << 20, dtype=np.float32)  # 20 MiB: chunks both ways, past the window of a download
    np.testing.assert_array_equal(np.asarray(weft.device_put(big) * 1), big)


def test_programs_are_sent_once(session):
    f = weft.jit(lambda x: jnp.sin(x) + 1)
    f(np.ones(3, np.float32)), f(np.ones(3, np.float32))
    sent = len(session._programs)
    for _ in range(3):
        f(np.ones(3, np.float32))
    g = weft.jit(f.fun)  # traced again, equal bytes
    g(np.ones(3, np.float32))
    assert len(session._programs) == sent


def test_a_dependent_loop_takes_one_round_trip(host):
    """Fifty steps, each on the result of the one before, through 100 ms of latency each way."""
    step = weft.jit(lambda x: x * 0.5 + 1)
    with Proxy(host.port, delay=0.1) as proxy, weft.remote.connect(proxy.url, token=TOKEN) as session:
        x = weft.device_put(np.float32(0), session.devices()[0])
        before = session.stats.waits, session.stats.frames_sent
        for _ in range(50):
            x = step(x)
        assert session.stats.waits == before[0]
        assert float(x) == pytest.approx(2.0)
        assert session.stats.waits == before[0] + 1
        # most of the fifty were waiting together when the sender came to them
        assert session.stats.frames_sent - before[1] <= 55


def test_values_are_fetched_together(session):
    step = weft.jit(lambda x, i: x + i)
    xs = [step(np.zeros(3, np.float32), i) for i in range(10)]
    weft.remote.prefetch(*xs)
    after = session.stats.waits
    assert [float(x[0]) for x in map(np.asarray, xs)] == list(range(10))
    assert session.stats.waits == after


def test_small_uploads_are_known_here(session):
    """Reading back what was sent takes no round trip, and a constant of a traced function outlives the session it
    was made in.
    """
    before = session.stats.waits
    assert weft.device_put(np.arange(3)).tolist() == [0, 1, 2]
    assert session.stats.waits == before


def test_constants_of_traced_functions_outlive_a_session(host):
    f = weft.jit(lambda x: x + jnp.asarray(np.arange(3, dtype=np.float32)))
    for _ in range(2):
        with host.connect() as session:
            assert np.asarray(f(weft.device_put(np.ones(3, np.float32), session.devices()[0]))).tolist() == [1, 2, 3]


def test_donation(session):
    f = weft.jit(lambda x: x + 1, donate_argnums=0)
    x = weft.device_put(np.ones(3, np.float32))
    y = f(x)
    assert x.is_deleted() and np.asarray(y).tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(x)


def test_arrays_are_freed(session):
    x = weft.device_put(np.ones(3, np.float32))
    handle = x.handle.number
    del x
    gc.collect()
    session.ping()
    assert session._garbage.count(handle) == 0
    ops = session.stats.operations
    for _ in range(100):
        weft.device_put(np.ones(3, np.float32))
    session.ping()
    assert session.stats.operations - ops < 250  # a Put each, and few messages that free


def test_the_program_as_text(session):
    compiled = weft.jit(lambda x: jnp.sin(x) * 2).lower(np.ones(3, np.float32)).compile()
    assert "sin" in compiled.as_text()
    assert compiled.cost_analysis() == {} and compiled.memory_analysis() == {}
    with pytest.raises(ValueError, match="nonsense"):
        compiled.as_text("nonsense")


def test_threads_share_a_session(session):
    f = weft.jit(lambda x: (x * x).sum())
    results = {}

    def work(n):
        results[n] = [float(f(np.full(10, n, np.float32))) for _ in range(20)]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == {n: [10.0 * n * n] * 20 for n in range(4)}


def test_two_sessions_do_not_meet(host):
    with host.connect() as one, host.connect() as two:
        a = weft.device_put(np.float32(1), one.devices()[0])
        b = weft.device_put(np.float32(2), two.devices()[0])
        assert (float(a + 1), float(b + 1)) == (2.0, 3.0)
        with pytest.raises(ValueError, match="incompatible devices"):
            weft.jit(lambda x, y: x + y)(a, b)
        moved = weft.device_put(b, one.devices()[0])
        assert float(a + moved) == 3.0
        both = two.devices() + one.devices()
        assert weft.devices("remote")[: len(both)] == both  # the newest first


def test_platforms_mix(session):
    local = weft.jit(lambda x: x + 1, backend="reference")(np.ones(2, np.float32))
    assert local.devices() == set(weft.devices("reference"))
    there = weft.device_put(local, session.devices()[0])
    assert np.asarray(there * 2).tolist() == [4, 4]


def test_xla_on_the_host(tmp_path):
    """The host's XLA gives what this process's XLA gives, and keeps going asynchronously."""
    need("cpu")

    def train(w, x):
        return w - 0.1 * weft.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)

    x, w = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4), np.ones((4, 2), np.float32)
    with run_host(tmp_path, "--platform", "cpu") as host, host.connect() as session:
        step = weft.jit(train)
        remote = weft.device_put(w, session.devices()[0])
        local = weft.device_put(w, weft.devices("cpu")[0])
        for _ in range(20):
            remote, local = step(remote, x), step(local, x)
        np.testing.assert_allclose(np.asarray(remote), np.asarray(local), rtol=1e-6)
        compiled = weft.jit(train, device=session.devices()[0]).lower(w, x).compile()
        assert "HloModule" in compiled.as_text() and "stablehlo" in compiled.as_text("stablehlo")
        assert compiled.memory_analysis()["argument_size_in_bytes"] == w.nbytes + x.nbytes


# errors ---------------------------------------------------------------------------------------------------------------


def test_errors_keep_class_and_line(session):
    x = weft.device_put(np.ones(3, np.float32))
    f = weft.jit(lambda v: v + 1)
    f(x)
    # a program that takes another type than it is given: the host notices
    executable, _ = executable_for(f.traced((x,), {})[1].jaxpr, x.device, "f")
    wrong = weft.device_put(np.ones(4, np.float32))
    outs = executable.execute([wrong])
    with pytest.raises(weft.errors.BackendError, match=r"argument 0 is f32\[4\] where the program takes float32\[3\]"):
        np.asarray(outs[0])


def test_failures_are_inherited_and_others_go_on(tmp_path):
    with run_host(tmp_path, "--session-bytes", "100000") as host, host.connect() as session:
        device = session.devices()[0]
        small = weft.device_put(np.ones(10, np.float32), device)
        grow = weft.jit(lambda x: jnp.broadcast_to(x[:, None], (10, 1000)) + 0.5)
        held = [grow(small) for _ in range(3)]  # the third is more than the session may have
        sums = [weft.jit(lambda x: x.sum())(h) for h in held]
        assert float(sums[0]) == float(sums[1]) == 15000.0
        with pytest.raises(weft.errors.BackendError) as info:
            float(sums[2])
        assert type(info.value).__name__ == "LimitError"
        assert "takes 40000 bytes; the session has 80" in str(info.value) and "test_end_to_end.py" in str(info.value)
        assert float(small.sum()) == 10.0


def test_type_errors_stay_here(session):
    with pytest.raises(TypeError, match=r"test_end_to_end.py"):
        weft.jit(lambda x: x @ x)(np.ones((2, 3), np.float32))


def test_a_closed_session_says_so(host):
    session = host.connect()
    x = weft.device_put(np.ones(3, np.float32), session.devices()[0]) + 1
    session.close()
    session.close()
    assert "closed" in repr(session)
    with pytest.raises(weft.errors.BackendError, match="is closed"):
        np.asarray(x)


def test_no_host():
    with pytest.raises(weft.errors.BackendError, match="no connection to ws://127.0.0.1:1: .*Is the host running"):
        weft.remote.connect("ws://127.0.0.1:1", token="x")
    with pytest.raises(weft.errors.BackendError, match="not a websocket address"):
        weft.remote.connect("http:/nowhere", token="x")


def test_without_a_session_the_platform_says_what_to_do():
    import weft_remote.backend

    with pytest.raises(weft.errors.BackendError, match="weft.remote.connect"):
        weft_remote.backend.RemoteBackend().devices()


def test_device_get_asks_for_all_at_once(host, monkeypatch):
    with Proxy(host.port, delay=0.1) as proxy, weft.remote.connect(proxy.url, token=TOKEN, default=True) as session:
        xs = [jnp.arange(4.0) * i for i in range(1, 6)]
        asked = []  # operations sent when the program first stood still
        wait, before = session.transport.wait, session.stats.operations
        monkeypatch.setattr(
            session.transport, "wait", lambda done: (asked.append(session.stats.operations - before), wait(done))
        )
        got = weft.device_get({"all": xs})
        assert [v.tolist() for v in got["all"]] == [[0.0, 1.0 * i, 2.0 * i, 3.0 * i] for i in range(1, 6)]
        assert asked[0] >= 5  # (and perhaps what garbage frees)


def test_the_default_platform_is_given_back(host):
    before = weft.config.platforms
    with host.connect(default=True):
        assert weft.config.platforms == "remote"
        assert jnp.arange(3).device.platform == "remote"
    assert weft.config.platforms == before
    with host.connect(default=True) as outer, host.connect(default=True):
        outer.close()
        assert weft.config.platforms == "remote"  # another session is open still
    assert weft.config.platforms == before
    with host.connect():  # which is not the default, and stays open
        with host.connect(default=True):
            assert weft.config.platforms == "remote"
        assert weft.config.platforms == before
    assert jnp.arange(3).sum() == 3


def test_a_host_says_how_long_it_compiles(session):
    from weft import monitoring
    from weft.base.monitoring import ON_HOST

    heard = []
    listen = lambda event, seconds, **about: heard.append((event, seconds, about["fun_name"]))
    monitoring.register_event_duration_secs_listener(listen)
    try:

        def measured(x):
            return jnp.sin(x) * 2

        f = weft.jit(measured)
        float(f(1.0))
        weft.clear_caches()
        float(weft.jit(measured)(1.0))  # the host has it
        session.ping()
    finally:
        monitoring.unregister_event_duration_listener(listen)
    found = [(seconds, name) for event, seconds, name in heard if event == ON_HOST and "measured" in name]
    assert len(found) == 2 and found[0][0] > 0 and not session._compilations
