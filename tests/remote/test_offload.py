"""weft.remote.offload: where calls run, why, and what happens when the host is gone."""

import doctest
import gc
import time

import numpy as np
import pytest
import weft
import weft.numpy as jnp
import weft.remote
from hosts import TOKEN, becomes, run_host
from proxy import Proxy
from weft.runtime.device import backend_for
from weft_remote import costs, errors, line, offloading
from weft_remote.line import Speed
from weft_remote.work import work_of

FAST, SLOW = Speed(1e-3, 1e9, 1e9), Speed(1e-3, 1e5, 1e5)  # lines: 1 ms there and back


@pytest.fixture
def device(host):
    """A device of the host, on a line of a known speed."""
    with host.connect() as session:
        (found,) = session.devices()
        offloading.line_to(found).measured = FAST
        yield found


def known(f, *args):
    """What a function knows of calls with these arguments."""
    closed = f.jitted.traced(args, {})[1].jaxpr
    return next(s for (number, _), s in offloading._known.of(closed.jaxpr).items() if number == f.number)


def scale(x):
    return x * 2


def clocked(f, *args, here, there):
    """`f`, as if calls with these arguments had been measured."""
    f.explain(*args)
    for clock, times in ((known(f, *args).here, here), (known(f, *args).there, there)):
        clock.times = [times] * costs.TRIES if times else []
    known(f, *args).calls = 2  # neither of the calls that measure again
    return f


X = np.arange(4, dtype=np.float32)


@pytest.mark.parametrize(
    "here,there,speed,where,reason",
    [
        (2e-3, 1e-4, FAST, "there", "a call takes 1.1 ms there and 2.0 ms here"),
        (2e-3, 5e-3, FAST, "here", "a call takes 6.0 ms there and 2.0 ms here"),
        (5e-4, None, FAST, "here", "a call takes at least 1.0 ms there and 0.5 ms here"),
        (2e-3, None, SLOW, "there", "calls are measured at both places"),
        (1.1e-3, None, SLOW, "here", "a call takes at least 1.3 ms there and 1.1 ms here"),
    ],
)
def test_a_call_runs_where_it_takes_less_time(device, here, there, speed, where, reason):
    f = clocked(weft.remote.offload(scale, to=device), X, here=here, there=there)
    device.line.measured = speed
    assert f.explain(X).where == where and f.explain(X).reason == reason
    assert np.asarray(f(X)).tolist() == [0, 2, 4, 6]
    assert (f.where, f.reason) == (where, reason)


def test_the_first_calls_are_measured_at_both_places(device):
    slow = lambda x: weft.lax.fori_loop(0, 3000, lambda i, c: c + 1, x)
    f, where = weft.remote.offload(slow, to=device), []
    for _ in range(2 * costs.TRIES):
        f(X)
        assert f.reason == "calls are measured at both places"
        where.append(f.where)
        known(f, X).here.times = [10.0 for _ in known(f, X).here.times]  # here it takes long
    assert where == ["here", "there"] * costs.TRIES
    assert f.times["here"] == 10 and 0 < f.times["there"] < 10
    f(X)
    assert f.where == "there" and f.reason.endswith("there and 10.0 s here")


def test_the_other_place_is_tried_again_from_time_to_time(device):
    f = clocked(weft.remote.offload(scale, to=device), X, here=2e-3, there=1e-4)
    places = []
    for _ in range(2, costs.AGAIN + 2):
        f(X)
        places.append(f.where)
        known(f, X).here.times, known(f, X).there.times = [2e-3] * costs.TRIES, [1e-4] * costs.TRIES
    assert places == ["there"] * (costs.AGAIN - 2) + ["here", "there"]


def test_it_learns_from_the_times_of_calls(device):
    """What was measured long ago gives way to what is."""
    f = clocked(weft.remote.offload(scale, to=device), X, here=50.0, there=40.0)
    assert f.explain(X).where == "there"
    for n in range(2 * costs.TRIES):
        known(f, X).calls = costs.AGAIN * (n + 1)  # one that tries the other place
        f(X)
    assert f.times["here"] < 1 and f.explain(X).where == "here"


def test_arrays_that_are_there_are_not_sent_again(device):
    session, weights = device.session, jnp.arange(100_000.0)
    f = weft.remote.offload(lambda w, x: w[0] + x, to=device, where="there")
    f(weights, X)
    before = session.stats.bytes_sent
    assert np.asarray(f(weights, X)).tolist() == [0, 1, 2, 3]
    assert session.stats.bytes_sent - before < 10_000
    table = f.explain(weights, X)
    assert table.there.arguments == (16, 0)  # X is NumPy's, and could have changed
    assert weights.devices() != {device}
    fresh = f.explain(jnp.arange(100_000.0), X)
    assert fresh.there.arguments == (400_016, 0)


def test_a_twin_lives_as_long_as_its_array(device):
    f, x = weft.remote.offload(scale, to=device, where="there"), jnp.arange(3.0)
    f(x)
    assert len(device.line.twins) == 1
    del x
    gc.collect()
    assert not device.line.twins


def test_a_training_loop_sends_its_state_once_and_reads_none(device):
    """After one call here it is known which arguments stay, and which results are arguments."""

    def step(state, weights, batch):
        return state + weights.sum() + batch.sum(), batch.sum()

    f = weft.remote.offload(step, to=device)
    state, weights, batch = jnp.zeros(1000), jnp.ones(5000), np.ones(10, np.float32)
    state, loss = f(state, weights, batch)
    assert f.where == "here"
    told = f.explain(state, weights, batch)
    assert told.there.arguments == (40, 4000 + 20_000)  # (each, once)
    assert told.there.results == 4  # the loss
    for _ in range(costs.TRIES):
        clocked(f, state, weights, batch, here=1.0, there=1e-4)
        state, loss = f(state, weights, batch)
        assert f.where == "there" and state.devices() == {device}
    told = f.explain(state, weights, batch)
    assert told.there.arguments == (40, 0) and told.here.arguments == (0, 4000)
    assert told.there.results == 0 and told.there.trip == costs.MESSAGE  # nobody has read the last loss
    assert float(loss) == 10 and float(state[0]) == 4 * 5010


def test_results_that_are_read_count(device):
    f = clocked(weft.remote.offload(scale, to=device), X, here=1.0, there=1e-4)
    np.asarray(f(X))
    assert f.explain(X).there.results == 16
    f(X)
    assert f.explain(X).there.results == 0


def test_a_computation_that_would_take_long_here_goes_there_at_once(device, monkeypatch):
    """How long is estimated from its operations, without running it."""
    monkeypatch.setitem(costs._rates, weft.devices()[0], costs.Rates(1e7, 1e9))
    f = weft.remote.offload(lambda x: weft.lax.fori_loop(0, 100, lambda i, c: c @ c, x).sum(), to=device)
    x = np.zeros((100, 100), np.float32)
    told = f.explain(x)
    assert told.here.how == "estimated" and 19 < told.here.computing < 25
    assert float(f(x)) == 0 and f.where == "there" and f.times["here"] is None
    for _ in range(costs.TRIES):
        f(x)
    assert f.where == "there" and f.reason.endswith("here, as its operations tell")


def test_a_place_may_be_forced(host, device):
    there = weft.remote.offload(scale, to=device.session, where="there")
    assert there(jnp.asarray(X)).devices() == {device} and there.where == "there"
    assert there.reason == 'it was placed with where="there"'
    here = weft.remote.offload(scale, where="here")
    assert here(jnp.asarray(X)).devices() == set(weft.devices()[:1]) and here.where == "here"
    assert here.reason == 'it was placed with where="here"' == here.explain(X).reason


def test_a_session_that_is_the_default_is_there(host):
    with host.connect(default=True) as session:
        f = weft.remote.offload(scale)
        y = f(jnp.asarray(X))
        assert f.where == "here" and not y.devices() & set(session.devices())
        assert np.asarray(y).tolist() == [0, 2, 4, 6]


def test_trees_static_arguments_and_keys(device):
    @weft.remote.offload(to=device, where="there", static_argnames="n")
    def f(params, key, *, n):
        return {"y": params["w"] * n, "u": weft.random.uniform(key, (2,)), "key": weft.random.split(key, n)}

    key = weft.random.key(3)
    out = f({"w": jnp.ones(2), "unused": None}, key, n=3)
    assert out["y"].tolist() == [3, 3] and out["u"].tolist() == weft.random.uniform(key, (2,)).tolist()
    want = weft.random.key_data(weft.random.split(key, 3))
    assert np.asarray(weft.random.key_data(out["key"])).tolist() == np.asarray(want).tolist()
    assert f.__name__ == "f" and "offloaded" in repr(f)


def test_under_a_transformation_it_is_a_part_of_the_program(device):
    f = weft.remote.offload(lambda x: x**2, to=device, where="there")
    assert float(weft.grad(f)(3.0)) == 6.0
    assert weft.vmap(f)(jnp.arange(3.0)).tolist() == [0, 1, 4]
    assert weft.jit(lambda x: f(x) + 1)(2.0).devices() == set(weft.devices()[:1])


def test_a_method(device):
    class Model:
        def __init__(self):
            self.w = 3.0

        @weft.remote.offload(to=device, where="there", static_argnums=0)
        def call(self, x):
            return self.w * x

    assert float(Model().call(2.0)) == 6


def test_results_move_to_where_they_are_used(device):
    f = weft.remote.offload(scale, to=device, where="there")
    y = f(jnp.asarray(X)) + 1
    assert y.devices() == set(weft.devices()[:1]) and y.tolist() == [1, 3, 5, 7]


# donation ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["here", "there", "auto"])
def test_donated_arguments_are_gone(device, where):
    f = weft.remote.offload(lambda x: x + 1, to=device, where=where, donate_argnums=0)
    x = jnp.arange(3.0)
    y = f(x)
    assert x.is_deleted() and np.asarray(y).tolist() == [1, 2, 3]
    z = clocked(f, y, here=1.0, there=1e-4)(y) if where == "auto" else f(y)
    assert y.is_deleted() and np.asarray(z).tolist() == [2, 3, 4]


def test_what_is_donated_is_nobody_elses(device):
    """The copy of an argument that another function may use again stays."""
    keep = weft.remote.offload(scale, to=device, where="there")
    give = weft.remote.offload(lambda x, y: x + y, to=device, where="there", donate_argnums=0)
    x, y = jnp.arange(3.0), jnp.arange(3.0)
    keep(x), keep(y)
    assert np.asarray(give(x, y)).tolist() == [0, 2, 4]
    assert x.is_deleted() and np.asarray(keep(y)).tolist() == [0, 2, 4]


# a host that is gone, or refuses -----------------------------------------------------------------------------------


@pytest.fixture
def leaving(host):
    """A session whose connection `cut()` ends for good."""
    with Proxy(host.port) as proxy:
        session = weft.remote.connect(proxy.url, token=TOKEN)
        (found,) = session.devices()
        offloading.line_to(found).measured = FAST
        found.cut = lambda: session.fail(errors.lost(session.url, "cut"))
        yield found
        session.close()


def test_a_lost_host_is_replaced_with_a_warning(leaving):
    f = clocked(weft.remote.offload(scale, to=leaving), X, here=1.0, there=1e-4)
    f(X)
    assert f.where == "there"
    leaving.cut()
    with pytest.warns(RuntimeWarning, match="scale is computed here: the connection to ws://.* is lost"):
        assert np.asarray(f(X)).tolist() == [0, 2, 4, 6]
    assert f.where == "here" and f.reason.startswith("the host is lost: the connection to")
    f(X)  # it warns once: warnings are errors in these tests
    assert f.explain(X).reason.startswith("the host is lost")


@pytest.mark.parametrize("size", [4, 100_000])
def test_results_that_were_not_read_are_computed_here(leaving, size):
    f = clocked(weft.remote.offload(scale, to=leaving), np.zeros(size, np.float32), here=1.0, there=1e-4)
    x = np.arange(size, dtype=np.float32)
    y, z = f(x), f(jnp.asarray(x))
    x[:] = -1  # it may change after the call
    assert f.where == "there" and y.devices() == {leaving}
    leaving.cut()
    with pytest.warns(RuntimeWarning, match="scale is computed here"):
        y.block_until_ready()
    weft.remote.prefetch(y, z)
    assert np.asarray(y)[:4].tolist() == [0, 2, 4, 6] and np.asarray(z)[-1] == 2 * size - 2
    assert (y + z).tolist() == (4 * np.arange(size, dtype=np.float32)).tolist()


def test_arrays_that_were_there_alone_are_lost(leaving):
    f = clocked(weft.remote.offload(scale, to=leaving), jnp.asarray(X), here=1.0, there=1e-4)
    y = clocked(f, f(jnp.asarray(X)), here=1.0, there=1e-4)(f(jnp.asarray(X)))
    leaving.cut()
    with pytest.raises(errors.ConnectionLost, match="arrays are gone"):
        np.asarray(y)


def test_a_call_that_has_donated_is_not_repeated(leaving):
    f = weft.remote.offload(scale, to=leaving, donate_argnums=0)
    y = clocked(f, jnp.asarray(X), here=1.0, there=1e-4)(jnp.asarray(X))
    assert f.where == "there"
    leaving.cut()
    with pytest.raises(errors.ConnectionLost):
        np.asarray(y)


def test_what_is_forced_there_is_not_computed_here(leaving):
    f = weft.remote.offload(scale, to=leaving, where="there")
    y = f(X)
    leaving.cut()
    with pytest.raises(errors.ConnectionLost):
        np.asarray(y)
    with pytest.raises(errors.ConnectionLost):
        f(X)


def test_a_host_that_dies_in_a_measured_call(tmp_path):
    with pytest.raises(AssertionError, match="the host has ended"), run_host(tmp_path) as mine:
        session = mine.connect()
        f = weft.remote.offload(scale, to=session)
        offloading.line_to(session.devices()[0]).measured = FAST
        clocked(f, X, here=1.0, there=None)
        mine.process.kill()
        mine.process.wait(60)
        with pytest.warns(RuntimeWarning, match="scale is computed here"):
            assert np.asarray(f(X)).tolist() == [0, 2, 4, 6]


def test_a_program_that_the_host_refuses(tmp_path):
    with run_host(tmp_path, "--session-bytes", "100000") as mine, mine.connect() as session:
        (found,) = session.devices()
        offloading.line_to(found).measured = FAST
        f = weft.remote.offload(lambda x: jnp.broadcast_to(x[:, None], (100, 200)) + 1, to=session)
        x = jnp.ones(100)
        held = weft.device_put(np.ones(10_000, np.float32), found)
        clocked(f, x, here=1.0, there=None)
        with pytest.warns(RuntimeWarning, match="is computed here: .*takes 80000 bytes; the session has"):
            assert float(f(x)[0, 0]) == 2
        assert f.where == "here" and "the host does not run it: a computation's result takes" in f.reason
        assert float(f(x)[0, 0]) == 2 and "the host does not run it" in f.reason  # without another warning
        assert float(held[0]) == 1


def test_a_program_for_which_the_host_ends_the_session(tmp_path):
    with run_host(tmp_path, "--session-bytes", "100000") as mine, mine.connect() as session:
        f = weft.remote.offload(lambda x: jnp.broadcast_to(x[:, None], (200, 1000)).sum(), to=session)
        x = jnp.ones(200)
        offloading.line_to(session.devices()[0]).measured = FAST
        clocked(f, x, here=1.0, there=None)
        with pytest.warns(RuntimeWarning, match="is computed here: an array of shape .* exceeds the limit"):
            assert float(f(x)) == 200_000
        assert f.where == "here" and f.reason.startswith("the host has ended the session: an array of shape")


def test_a_program_that_cant_be_sent(device):
    one = jnp.ones(())

    def closed(x):
        return weft.lax.reduce(x, np.float32(0), lambda a, b: a + b * one, (0,))

    f = clocked(weft.remote.offload(closed, to=device), X, here=1.0, there=None)
    with pytest.warns(RuntimeWarning, match="closed is computed here: the function given to reduce holds a constant"):
        assert float(f(X)) == 6
    assert f.where == "here" and float(f(X)) == 6


def test_a_program_with_callbacks_is_sent(device):
    seen = []

    def f(x):
        return weft.pure_callback(lambda v: (seen.append(1), np.asarray(v) * 2)[1], x, x)

    g = clocked(weft.remote.offload(f, to=device), X, here=1.0, there=None)
    assert np.asarray(g(X)).tolist() == [0, 2, 4, 6] and g.where == "there" and seen == [1]


def test_the_newest_session_is_used(host):
    f = weft.remote.offload(scale, where="there")
    with host.connect() as one:
        assert f(X).devices() == set(one.devices())
        with host.connect() as other:
            assert f(X).devices() == set(other.devices())
        assert f(X).devices() == set(one.devices())


# errors -----------------------------------------------------------------------------------------------------------


def test_without_a_host(monkeypatch):
    monkeypatch.setattr(backend_for("remote"), "sessions", [])  # whatever other tests have left open
    f = weft.remote.offload(scale)
    with pytest.raises(
        weft.errors.BackendError, match=r"scale is offloaded, and no .*weft.remote.connect(.|\n)*test_off"
    ):
        f(X)


def test_errors(device):
    with pytest.raises(TypeError, match="Expected a callable"):
        weft.remote.offload(3)
    with pytest.raises(ValueError, match='where must be "auto", "here" or "there"; got \'host\''):
        weft.remote.offload(scale, where="host")
    with pytest.raises(TypeError, match="to must be a session"):
        weft.remote.offload(scale, to="ws://127.0.0.1:8765")
    f = weft.remote.offload(lambda x: x if x > 0 else -x, to=device)
    with pytest.raises(weft.errors.TracerBoolConversionError) as caught:
        f(1.0)
    assert "is offloaded, so it is traced as one program" in "".join(caught.value.__notes__)


def test_an_error_of_the_program_is_no_reason_to_repeat_it(device):
    def looked(v):
        raise KeyError("mine")

    def f(x):
        weft.debug.callback(looked, x)
        return x

    g = clocked(weft.remote.offload(f, to=device), X, here=1.0, there=None)
    with pytest.raises(KeyError, match="mine"):
        g(X)


# what it measures -------------------------------------------------------------------------------------------------


def test_the_speed_of_a_line_is_measured(host):
    with Proxy(host.port, delay=0.05) as proxy, weft.remote.connect(proxy.url, token=TOKEN) as session:
        speed = offloading.line_to(session.devices()[0]).speed
        assert 0.1 <= speed.round_trip < 0.5
        assert speed.up > 1e5 and speed.down > 1e5
        assert becomes(lambda: session.log_bytes() < 1 << 20)


def test_a_host_that_allows_little_is_measured_by_little(tmp_path):
    with run_host(tmp_path, "--session-bytes", "100000") as mine, mine.connect() as session:
        (found,) = session.devices()
        speed = offloading.line_to(found).speed
        assert 0 < speed.round_trip < 1 and 0 < speed.up < 6.6e9 and 0 < speed.down < 6.6e9
        f = weft.remote.offload(scale, where="there")
        assert np.asarray(f(X)).tolist() == [0, 2, 4, 6]


def test_uploads_tell_the_speed_again(device):
    device.line.sent(1 << 20, 1.001)
    assert device.line.speed.up == pytest.approx(1 << 20)
    device.line.sent(100, 1.0)
    assert device.line.speed.up == pytest.approx(1 << 20)


def work(f, *args):
    return work_of(weft.make_jaxpr(f)(*args).jaxpr)


def test_the_work_of_a_program():
    a, v = np.ones((30, 20), "f"), np.ones(20, "f")
    assert work(lambda a, v: a @ v, a, v).flops == 2 * 30 * 20
    scan = work(lambda v: weft.lax.scan(lambda c, _: (c * 2, c), v, None, length=50), v)
    assert 50 * 20 <= scan.flops <= 60 * 20 and scan.exact
    loop = work(lambda v: weft.lax.while_loop(lambda c: c[0] < 9, lambda c: c * 2, v), v)
    assert not loop.exact and loop.flops >= 20
    image, kernel = np.ones((1, 3, 16, 16), "f"), np.ones((4, 3, 3, 3), "f")
    conv = work(lambda x, k: weft.lax.conv_general_dilated(x, k, (1, 1), "SAME"), image, kernel)
    assert conv.flops == 2 * 4 * 16 * 16 * 3 * 9
    branches = work(lambda v: weft.lax.cond(v[0] > 0, lambda c: c @ c, lambda c: c[0], v), v)
    assert 40 <= branches.flops < 100
    square = np.eye(30, dtype="f")
    assert 10_000 < work(jnp.linalg.solve, square, np.ones(30, "f")).flops < 200_000
    assert work(jnp.linalg.svd, square).flops > work(jnp.linalg.cholesky, square).flops
    assert work(lambda v: jnp.sort(v), v).flops > 20


def test_rates_are_measured_once(monkeypatch):
    monkeypatch.setattr(costs, "_rates", {})
    (here,) = weft.devices()[:1]
    rates = costs.rates_of(here)
    assert rates.flops > 1e6 and rates.bytes > 1e6 and costs.rates_of(here) is rates


def test_the_table(device):
    f = clocked(weft.remote.offload(scale, to=device), X, here=2e-3, there=1e-4)
    assert str(f.explain(X)) == TABLE


TABLE = """\
scale(f32[4]) runs there: a call takes 1.1 ms there and 2.0 ms here
              here   there
arguments        –    0 µs  16 B up
computing   2.0 ms  0.1 ms  measured
results          –    0 µs  16 B down
round trip       –  1.0 ms
each call   2.0 ms  1.1 ms"""


def test_examples(host):
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    result = doctest.testmod(offloading, extraglobs={"URL": host.url, "TOKEN": TOKEN}, optionflags=options)
    assert result.attempted >= 5 and result.failed == 0
    assert line.seconds(lambda: time.sleep(0.01)) >= 0.01
