"""Connections that break: the session goes on where it was, or says that it is lost."""

import subprocess
import sys
import time

import numpy as np
import pytest
import weft
import weft.remote
from hosts import TOKEN, run_host
from proxy import Proxy
from raw import F32, ONES, Raw, program
from weft_remote import errors
from weft_remote import protocol as p


@pytest.fixture
def proxied(host):
    with Proxy(host.port) as proxy, weft.remote.connect(proxy.url, token=TOKEN) as session:
        yield proxy, session, session.devices()[0]


def test_a_session_goes_on_after_its_connection_broke(proxied):
    proxy, session, device = proxied
    step = weft.jit(lambda x: x + 1)
    x = weft.device_put(np.zeros(3, np.float32), device)
    for _ in range(5):
        for _ in range(10):
            x = step(x)
        proxy.cut()
    assert np.asarray(x).tolist() == [50, 50, 50]
    assert session.stats.connections > 1


def test_breaking_under_load_loses_nothing_and_repeats_nothing(proxied):
    """Uploads, programs and downloads are cut at arbitrary places; a counter shows that no step ran twice or not at
    all.
    """
    proxy, session, device = proxied
    count = weft.jit(lambda n: n + 1)
    double = weft.jit(lambda v: v * 2)
    n = weft.device_put(np.int32(0), device)
    big = np.arange(700_000, dtype=np.float32)
    for i in range(8):
        y = double(weft.device_put(big + i, device))
        n = count(n)
        proxy.cut_after = 300_000 * i  # in the middle of the download
        np.testing.assert_array_equal(np.asarray(y), (big + i) * 2)
        if i % 3 == 1:
            proxy.cut()
    assert int(n) == 8
    assert session.stats.connections > 4


def test_waiting_across_an_interruption(proxied):
    proxy, session, device = proxied
    x = weft.jit(lambda v: v + 1)(weft.device_put(np.float32(1), device))
    proxy.refusing = True
    proxy.cut()
    y = x * 3
    proxy.refusing = False
    assert float(y) == 6.0


def test_a_host_that_is_gone(tmp_path):
    with run_host(tmp_path, "--grace", "0.5") as host, Proxy(host.port) as proxy:
        session = weft.remote.connect(proxy.url, token=TOKEN)
        x = weft.device_put(np.float32(1), session.devices()[0]) + 1
        session.ping()
        proxy.refusing = True
        proxy.cut()
        with pytest.raises(errors.ConnectionLost, match="is lost.*arrays are gone"):
            float(x)
        with pytest.raises(errors.ConnectionLost):
            session.ping()
        assert "lost" in repr(session)


def test_a_host_that_has_forgotten(tmp_path):
    """The connection is refused for longer than the host's grace, but not than the client's patience."""
    with (
        run_host(tmp_path, "--grace", "0.3") as host,
        Proxy(host.port) as proxy,
        weft.remote.connect(proxy.url, token=TOKEN) as session,
    ):
        session.granted = p.Welcome(
            *[60_000 if f == "grace_ms" else getattr(session.welcome, f) for f in p.Welcome.__slots__]
        )
        x = weft.device_put(np.float32(1), session.devices()[0]) + 1
        proxy.refusing = True
        proxy.cut()
        time.sleep(1.5)
        proxy.refusing = False
        with pytest.raises(errors.ConnectionLost, match="does not know the session any more"):
            float(x)


def test_replies_are_sent_again_until_they_are_settled(host):
    with Raw(host.url) as first:
        welcome = first.welcome
        first.send(p.Put, 1, F32, 0, ONES)
        fetch = first.send(p.Fetch, 1)
        first.send(p.Free, (1,))
        ping = first.send(p.Ping)
        assert first.until(p.Ready).op == ping
    with Raw(host.url, session=welcome) as second:
        assert second.welcome.received == 4
        again = {m.op: m for m in (second.receive(), second.receive())}
        assert again[fetch].data == ONES and isinstance(again[ping], p.Ready)  # though the array is freed
        second.frame(p.encode(p.Settled((fetch, ping))))
        second.frame(p.encode(p.Ping(5)))
        assert second.until(p.Ready).op == 5
    with Raw(host.url, session=welcome) as third:
        assert third.welcome.received == 5
        assert third.receive() == p.Ready(5)


def test_operations_that_came_already_are_passed_over(host):
    data, digest, n_args, _ = program("nothing")
    with Raw(host.url) as raw:
        welcome = raw.welcome
        raw.send(p.Put, 1, F32, 0, ONES)
        raw.send(p.Program, digest, len(data), data)
        raw.send(p.Ping)
        raw.until(p.Ready)
    with Raw(host.url, session=welcome) as raw:
        for message in (p.Put(1, 1, F32, 0, ONES), p.Program(2, digest, len(data), data), p.Ping(3), p.Fetch(4, 1)):
            raw.frame(p.encode(message))
        assert raw.until(p.Data).data == ONES


def test_the_newest_connection_counts(host):
    with Raw(host.url) as old:
        old.send(p.Put, 1, F32, 0, ONES)
        old.send(p.Ping)
        old.until(p.Ready)
        with Raw(host.url, session=old.welcome) as new:
            assert old.receive() is None
            new.frame(p.encode(p.Fetch(3, 1)))
            assert new.until(p.Data).data == ONES


def test_a_session_without_a_client_ends(tmp_path):
    with run_host(tmp_path, "--grace", "0.2") as host:
        with Raw(host.url) as raw:
            welcome = raw.welcome
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with Raw(host.url, session=welcome) as raw:
                if isinstance(raw.welcome, p.End):
                    break
            time.sleep(0.6)  # longer than the grace and the watch
        assert raw.welcome.error == "ConnectionLost"


def test_a_program_may_end_without_closing(host):
    """The session ends with the process, and nothing is printed about it."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"""
import numpy as np, weft, weft.numpy, weft.remote
session = weft.remote.connect({host.url!r}, token={TOKEN!r}, default=True)
x = weft.device_put(np.ones(70_000, np.float32)) + 1
f = weft.jit(lambda v: v * 2)
y = f(x)
print(float(f(x)[0]))
""",
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "4.0\n", "")


def test_a_host_that_stops_says_so(tmp_path):
    with run_host(tmp_path) as host:
        session = host.connect()
        x = weft.device_put(np.float32(1), session.devices()[0]) + 1
        session.ping()
        host.process.terminate()
        host.process.wait(60)
        with pytest.raises(errors.ConnectionLost, match="shutting down"):
            float(x)
        host.process.poll = lambda: None  # it was meant to end
