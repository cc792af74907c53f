"""Results that come with the call that computes them: the host sends them unasked if those of the call before were
read.
"""

import threading

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from hosts import TOKEN, becomes
from proxy import Proxy
from raw import F32, ONES, Raw
from test_moves import compiled, forever, moved
from weft.base.avals import shaped
from weft_remote import protocol as p
from weft_remote.errors import LimitError

LONG = shaped((1 << 20,), "float32")


def operations(session, run) -> list[str]:
    """The operations that are sent meanwhile."""
    sent, append = [], session._append

    def seen(make):
        op = append(make)
        sent.append(type(make(op)).__name__)
        return op

    session._append = seen
    try:
        run()
    finally:
        del session._append
    return sent


def test_a_call_whose_result_is_read_each_time_is_one_operation(session):
    step = weft.jit(lambda x: x * 2 + 1)
    x = step(step(weft.device_put(np.float32(1))))
    values = []

    def run():
        nonlocal x
        for _ in range(6):
            x = step(x)
            values.append(float(x))

    sent = operations(session, run)
    assert values == [15.0, 31.0, 63.0, 127.0, 255.0, 511.0]
    assert [s for s in sent if s != "Free"] == ["Execute", "Fetch", *["ExecuteFetching"] * 5]


def test_what_is_not_read_is_not_asked_for(session):
    step = weft.jit(lambda x: (x + 1, x.sum()))
    x = weft.device_put(np.arange(3, dtype=np.float32))
    _, total = step(x)
    assert float(total) == 3

    def run():
        y = x
        for _ in range(4):
            y, _ = step(y)
        assert y.tolist() == [4, 5, 6]

    sent = operations(session, run)
    assert [s for s in sent if s != "Free"] == ["ExecuteFetching", *["Execute"] * 3, "Fetch"]


def test_several_results_come_in_one_reply(session):
    step = weft.jit(lambda x: (x + 1, x.sum(), x > 1, x * 1j))
    x = weft.device_put(np.arange(3, dtype=np.float32))
    read = lambda got: [np.asarray(got[k]).tolist() for k in (3, 0, 2)]
    want = [[0, 1j, 2j], [1, 2, 3], [False, False, True]]
    got = step(x)
    assert read(got) == want
    for _ in range(3):
        sent = operations(session, lambda: read(step(x)) == want or pytest.fail("other values"))
        assert [s for s in sent if s != "Free"] == ["ExecuteFetching"]
    got = step(x)
    weft.remote.prefetch(*got)  # the fourth is asked for
    assert read(got) == want and float(got[1]) == 3
    got = step(x)
    got[0].block_until_ready()
    assert got[1].is_ready() and read(got) == want


def test_large_results_are_asked_for(session):
    grow = weft.jit(lambda x: x + 1)
    x = grow(weft.device_put(np.zeros(1 << 16, np.float32)))
    for _ in range(3):
        sent = operations(session, lambda: np.testing.assert_array_equal(np.asarray(grow(x)), 2))
        assert [s for s in sent if s != "Free"] == ["Execute", "Fetch"]


def test_an_error_comes_with_the_call_and_names_its_line(session):
    f = weft.jit(lambda x: (x + 1, jnp.zeros(3 << 30, jnp.uint8), jnp.ones(3 << 30, jnp.uint8)))
    x = weft.device_put(np.float32(1))
    for _ in range(3):
        y, *_ = f(x)
        y.handle.fetched = True  # as if it had been read: the next one comes unasked
        with pytest.raises(LimitError, match="test_fetching.py"):
            float(y)


def test_what_was_not_awaited_is_asked_for_again(session):
    step = weft.jit(lambda x: x + 1)
    x = weft.device_put(np.float32(1))
    assert float(step(x)) == 2
    y = step(x)
    assert y.handle.coming is not None
    y.block_until_ready()
    y.handle.coming.reply.error = RuntimeError("this result is not awaited any more")
    assert float(y) == 2


def test_a_result_that_is_given_away_was_read_before(session):
    step, give = weft.jit(lambda x: x + 1), weft.jit(lambda x: x * 10, donate_argnums=0)
    x = weft.device_put(np.float32(1))
    for _ in range(3):
        y = step(x)
        assert float(give(y)) == 20.0 and y.is_deleted()
        assert float(step(x)) == 2.0


# the host ------------------------------------------------------------------------------------------------------------


def test_no_result_is_beyond_the_last(host):
    with Raw(host.url) as raw:
        compiled(raw, 100, lambda x: (x, x + 1), F32)
        raw.send(p.Put, 1, F32, 0, ONES)
        raw.send(p.ExecuteFetching, 100, (1,), (2, 3), (2,))
        end = raw.end()
    assert end.error == "ProtocolError" and "result 2 of 2 is fetched" in end.message


def test_replies_are_as_fetches_give_them(host):
    """Also of nothing, twice the same, and of what takes long."""
    with Raw(host.url) as raw:
        compiled(raw, 100, lambda x: (x - 1, x.sum(), x[:0]), F32)
        raw.send(p.Put, 1, F32, 0, ONES)
        for fetched, want in (
            ((), b""),
            ((0,), bytes(12)),
            ((1, 0, 1), np.array([3, 0, 0, 0, 3], np.float32).tobytes()),
            ((2,), b""),
        ):
            op = raw.send(p.ExecuteFetching, 100, (1,), (2, 3, 4), fetched)
            reply = raw.until(p.Data)
            assert (reply.op, reply.size, reply.data) == (op, len(want), want)
            raw.frame(p.encode(p.Settled((op,))))
            raw.send(p.Fetch, 3)
            assert raw.until(p.Data).data == np.float32(3).tobytes()
            raw.send(p.Free, (2, 3, 4))
        slow = lambda x: (weft.lax.fori_loop(0, 20_000, lambda i, v: jnp.sin(v), x), x)
        compiled(raw, 101, slow, F32)
        op = raw.send(p.ExecuteFetching, 101, (1,), (5, 6), (1, 0))
        beside = raw.send(p.Execute, 100, (1,), (7, 8, 9))
        raw.send(p.Free, (5, 6))
        reply = raw.until(p.Data)
        assert reply.op == op and reply.size == 24 and reply.data[:12] == ONES and beside


def test_a_failure_is_the_calls_own_and_is_inherited(host):
    with Raw(host.url) as raw:
        compiled(raw, 100, lambda x: x + 1, F32)
        raw.send(p.Put, 1, shaped((1 << 40,), "float32"), 0, b"")  # takes too much
        bad = raw.send(p.ExecuteFetching, 100, (1,), (2,), (0,))
        error = raw.until(p.Error)
        assert error.op == bad and error.error == "LimitError"
        fetch = raw.send(p.Fetch, 2)
        again = raw.until(p.Error)
        assert again.op == fetch and again.origin == error.origin


def test_replies_too_large_to_keep_fail_alone(host):
    """The same result asked for so often that the reply would not fit into memory."""
    with Raw(host.url) as raw:
        compiled(raw, 100, lambda x: (x, x[:3] + 1), LONG)
        compiled(raw, 101, lambda x: x * 0, LONG)
        raw.send(p.Put, 1, LONG, 0, b"")
        for _ in range(4):
            raw.send(p.Part, 1, bytes(1 << 20))
        op = raw.send(p.ExecuteFetching, 100, (1,), (2, 3), (0,) * 100_000)
        error = raw.until(p.Error)
        assert error.op == op and error.error == "LimitError" and "a reply takes" in error.message
        raw.send(p.Fetch, 3)
        assert raw.until(p.Data).data == ONES


def test_one_that_is_stopped_is_answered_where_its_session_goes_on(host):
    with Raw(host.url) as raw:
        compiled(raw, 100, lambda x: x + 1, F32)
        compiled(raw, 101, forever, F32)
        raw.send(p.Put, 1, F32, 0, ONES)
        raw.send(p.Ping)
        raw.until(p.Ready)
        endless = raw.send(p.ExecuteFetching, 101, (1,), (2,), (0,))
        waiting = raw.send(p.ExecuteFetching, 100, (1,), (3,), (0,))
        assert becomes(lambda: raw.until(p.Progress).stage == "running")
        raw.frame(p.encode(p.Cancel(waiting)))
        good = raw.send(p.ExecuteFetching, 100, (1,), (4,), (0,))
        with moved(raw) as again:
            answers = {}
            while len(answers) < 3:
                message = again.receive()
                if isinstance(message, (p.Data, p.Error)):
                    answers[message.op] = message
    assert answers[endless].error == answers[waiting].error == "BackendError"
    assert answers[good].data == (2 * np.ones(3, np.float32)).tobytes()


# results that are read later ------------------------------------------------------------------------------------------


def test_losses_that_are_read_after_a_loop_take_two_round_trips(host):
    step = weft.jit(lambda w, x: (w * 0.5 + x, (w * w).sum()))
    with Proxy(host.port, delay=0.05) as proxy, weft.remote.connect(proxy.url, token=TOKEN) as session:
        w, losses = weft.device_put(np.ones(2, np.float32), session.devices()[0]), []
        for k in range(100):
            w, loss = step(w, np.float32(k))
            losses.append(loss)
        before = session.stats.waits
        got = [float(loss) for loss in losses]
        assert session.stats.waits <= before + 2
    want, v = [], np.ones(2, np.float32)
    for k in range(100):
        want.append(float((v * v).sum()))
        v = v * np.float32(0.5) + np.float32(k)
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_only_what_is_there_is_fetched_beside_another(session):
    """What was freed, deleted, given away or read before is left alone."""
    step, give = weft.jit(lambda x, k: x + k), weft.jit(lambda x: x * 10, donate_argnums=0)
    x = weft.device_put(np.float32(0))
    xs = [step(x, np.float32(k)) for k in range(10)]
    assert float(xs[9]) == 9 and float(give(xs[8])) == 80
    xs[7].delete()
    xs[6] = None
    sent = operations(session, lambda: float(xs[0]) == 0 or pytest.fail("another value"))
    assert sent.count("Fetch") == 6
    sent = operations(session, lambda: [float(v) for v in xs[1:6]] == [1, 2, 3, 4, 5] or pytest.fail("other values"))
    assert not sent
    with pytest.raises(RuntimeError, match="deleted"):
        float(xs[7])
    session.ping()


def test_one_that_is_read_alone_is_fetched_alone(session):
    step = weft.jit(lambda x, k: x + k)
    x = weft.device_put(np.float32(0))
    xs = [step(x, np.float32(k)) for k in range(10)]
    sent = operations(session, lambda: float(xs[9]) == 9 or pytest.fail("another value"))
    assert sent.count("Fetch") == 1


def test_threads_that_delete_and_read_do_not_end_the_session(session):
    step = weft.jit(lambda x, k: x + k)
    x = weft.device_put(np.float32(0))
    for _ in range(20):
        xs = [step(x, np.float32(k)) for k in range(60)]
        thread = threading.Thread(target=lambda xs=xs: [v.delete() for v in xs[30:]])
        thread.start()
        assert [float(v) for v in xs[:30]] == list(range(30))
        thread.join()
    session.ping()


def test_what_is_read_later_is_fetched_together_beside_what_is_read_each_time(session):
    step = weft.jit(lambda w: (w + 1, w * 2, w * 3))
    w, kept = weft.device_put(np.float32(0)), []
    for k in range(20):
        w, now, later = step(w)
        assert float(now) == 2 * k
        kept.append(later)
    before = session.stats.waits
    assert [float(v) for v in kept] == [3.0 * k for k in range(20)]
    assert session.stats.waits <= before + 2


def test_small_arrays_that_are_freed_in_number_are_told(session):
    """Also where nothing else is sent, and no timer tells them, as in a page."""
    step = weft.jit(lambda x: x + 1)
    x = weft.device_put(np.float32(0))
    xs = [step(x) for _ in range(40)]
    session.ping()
    session.transport.wake_later = lambda: None
    sent = operations(session, lambda: xs.clear() or session.outgoing())
    assert sent == ["Free"] and not session._garbage


def test_a_large_result_comes_whole_also_from_a_program_that_takes_no_time(host):
    with Raw(host.url) as raw:
        compiled(raw, 100, lambda x: jnp.zeros(1 << 18, jnp.float32) + x[0], F32)
        raw.send(p.Put, 1, F32, 0, ONES)
        for k in range(8):
            op = raw.send(p.ExecuteFetching, 100, (1,), (2 + k,), (0,))
            reply = raw.until(p.Data)
            assert reply.op == op and reply.size == 1 << 20 and reply.data == np.ones(1 << 18, np.float32).tobytes()
            raw.frame(p.encode(p.Settled((op,))))
