"""The transport of CPython processes: its thread, and the callers that wait for it."""

import socket
import threading
import time

import numpy as np
import pytest
import weft
import weft.remote
from weft_remote import desktop, errors
from weft_remote import protocol as p
from weft_remote import session as sessions


def test_uploads_wait_until_half_of_the_log_is_confirmed(host, monkeypatch):
    with host.connect() as session:
        done = []
        monkeypatch.setattr(session.transport, "wait", done.append)
        session.transport.relieve()
        (may_go_on,) = done
        for size, expected in (
            (0, True),
            (desktop.LOG // 2, True),
            (desktop.LOG // 2 + 1, False),
            (desktop.LOG, False),
        ):
            monkeypatch.setattr(session, "_log_bytes", size)
            assert may_go_on() is expected
        # for good: a session that looks alive and is not would be the newest of all
        session.fail(errors.ConnectionLost("gone"))
        assert may_go_on()


def test_an_upload_is_never_far_ahead_of_the_host(host, monkeypatch):
    """The bytes that are sent and not confirmed stay below a limit and one part of an array."""
    limit, part = 1 << 20, 1 << 14
    for module in (desktop, sessions):
        monkeypatch.setattr(module, "LOG", limit)
    with host.connect() as session:
        monkeypatch.setattr(session, "_chunk", lambda: part)
        sizes, append = [], session._append
        monkeypatch.setattr(session, "_append", lambda make: (append(make), sizes.append(session.log_bytes()))[0])
        x = np.arange(1 << 20, dtype=np.float32)
        y = weft.device_put(x, session.devices()[0]) + 1
        assert limit < max(sizes) < limit + 2 * part
        np.testing.assert_array_equal(np.asarray(y), x + 1)


def test_a_closed_session_leaves_no_thread(host):
    session = host.connect()
    session.ping()
    wire = session.transport.wire
    assert session.transport.thread.is_alive()
    session.close()
    assert not session.transport.thread.is_alive() and wire.socket.fileno() == -1


def test_nobody_waits_for_a_thread_that_has_ended(host, monkeypatch):
    """Whatever a session believes of itself."""
    session = host.connect()
    session.close()
    with monkeypatch.context() as patch, pytest.raises(errors.ConnectionLost, match="has ended. Connect again"):
        patch.setattr(session, "failure", None)
        session.ping()


def test_a_session_may_be_closed_in_its_own_thread(host, monkeypatch):
    """Where garbage collection or a callback does so; a thread can't wait for itself."""
    session, failed = host.connect(), []

    def close(frame):
        try:
            session.close()
        except Exception as e:
            failed.append(e)

    session.ping()
    monkeypatch.setattr(session, "receive", close)
    session.request(p.Ping)  # nobody waits for the reply, so the transport's thread takes it
    session.transport.thread.join(20)
    assert not failed and session.closed and not session.transport.thread.is_alive()
    with pytest.raises(errors.ConnectionLost, match="is closed"):
        session.ping()


def test_many_threads_wait_at_once(host):
    """One of them reads for all; each gets its own answer."""
    with host.connect() as session:
        device = session.devices()[0]
        double = weft.jit(lambda x: x * 2)
        held = [weft.device_put(np.full(50_000, k, np.float32), device) for k in range(8)]
        wrong = []

        def run(k):
            for _ in range(20):
                if not (np.asarray(double(held[k])) == 2 * k).all():
                    wrong.append(k)

        threads = [threading.Thread(target=run, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads) and not wrong


def test_a_large_upload_whose_replies_are_not_awaited(host):
    """More than the system takes at once goes out although nobody waits for anything."""
    with host.connect() as session:
        x = weft.device_put(np.ones(6 << 20, np.float32), session.devices()[0])
        until = time.monotonic() + 20
        while session.log_bytes() > 2 << 20 and time.monotonic() < until:
            time.sleep(0.01)
        assert session.log_bytes() <= 2 << 20
        assert float(x.sum()) == 6 << 20


def test_no_host_but_a_server_that_is_silent():
    """Connecting ends in time where a port is open and nothing answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        began = time.monotonic()
        with pytest.raises(errors.ConnectionLost, match="no connection to"):
            weft.remote.connect(f"ws://127.0.0.1:{server.getsockname()[1]}", token="x", timeout=0.5)
        assert time.monotonic() - began < 15


@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"SSH-2.0-OpenSSH\r\n", b""])
def test_no_host_but_another_server(answer):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(errors.ConnectionLost, match="no connection to|refused"):
            weft.remote.connect(f"ws://127.0.0.1:{server.getsockname()[1]}", token="x", timeout=5)
        thread.join(10)
