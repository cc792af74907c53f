"""The transport of CPython processes: its thread, and the callers that wait for it."""

import numpy as np
import pytest
import weft
from weft_remote import desktop, errors
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
    assert session.transport.thread.is_alive()
    session.close()
    assert not session.transport.thread.is_alive() and session.transport.loop.is_closed()


def test_nobody_waits_for_a_thread_that_has_ended(host, monkeypatch):
    """Whatever a session believes of itself."""
    session = host.connect()
    session.close()
    with monkeypatch.context() as patch, pytest.raises(errors.ConnectionLost, match="has ended. Connect again"):
        patch.setattr(session, "failure", None)
        session.ping()


def test_a_session_may_be_closed_in_its_own_thread(host):
    """Where garbage collection or a callback does so; a thread can't wait for itself."""
    session, failed = host.connect(), []

    def close():
        try:
            session.close()
        except Exception as e:
            failed.append(e)

    session.transport.loop.call_soon_threadsafe(close)
    session.transport.thread.join(20)
    assert not failed and session.closed and not session.transport.thread.is_alive()
    with pytest.raises(errors.ConnectionLost, match="is closed"):
        session.ping()
