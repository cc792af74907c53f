"""The transport of a page, over stand-ins for what the page and Pyodide give to Python (web/CONTRACT.md)."""

import asyncio
import contextlib
import dataclasses
import subprocess
import sys
import threading
import types

import numpy as np
import pytest
import weft
from hosts import TOKEN, becomes, run_host
from proxy import Proxy
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import serve
from weft_remote import backend as remote
from weft_remote import errors
from weft_remote import offload as remote_offload
from weft_remote.session import LOG


class JsException(Exception):
    message = property(lambda self: str(self))


class Message(bytes):
    def to_bytes(self):
        return bytes(self)


class Uint8Array(bytearray):
    new = classmethod(lambda cls, n: cls(n))

    def assign(self, data):
        self[:] = data


class Socket:
    """Messages wait in a queue until they are asked for; an empty answer once the peer has closed."""

    def __init__(self, socket):
        self.socket, self.closeReason, self.queue = socket, "", asyncio.Queue()
        self.sending = asyncio.Queue()
        self.tasks = [asyncio.ensure_future(self._receive()), asyncio.ensure_future(self._send())]

    async def _receive(self):
        try:
            while True:
                self.queue.put_nowait(Message(await self.socket.recv()))
        except ConnectionClosed as e:
            self.closeReason = f"{e.rcvd.code} {e.rcvd.reason}" if e.rcvd else "1006"
            self.queue.put_nowait(None)

    async def _send(self):
        with contextlib.suppress(ConnectionClosed):  # of which who receives is told
            while True:
                await self.socket.send(await self.sending.get())

    def send(self, data):
        if self.closeReason:
            raise JsException("the connection is closed")
        self.sending.put_nowait(bytes(data))

    async def recv(self):
        return await self.queue.get()

    def close(self):
        self.tasks.append(asyncio.ensure_future(self.socket.close()))


async def open_socket(url, *protocols):
    try:
        return Socket(await connect(url, subprotocols=protocols, compression=None, max_size=None))
    except (OSError, ConnectionClosed) as e:
        raise JsException(f"no connection to {url}") from e
    except Exception as e:
        raise JsException(str(e)) from e


class Device:
    """The part of the page's device by which it stops programs."""

    interrupted = False

    def clearInterrupt(self):
        self.interrupted = False


@pytest.fixture
def page(monkeypatch):
    """The module `weft_remote.page` in a process that looks like a page's worker; `page.suspends` tells whether it
    has JSPI.
    """
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)  # Pyodide's loop is there whether something runs in it or not
    stand_in = types.SimpleNamespace(suspends=True, waits=0)

    def run_sync(awaitable):
        stand_in.waits += 1
        return loop.run_until_complete(awaitable)

    ffi = types.ModuleType("pyodide.ffi")
    ffi.JsException, ffi.run_sync, ffi.can_run_sync = JsException, run_sync, lambda: stand_in.suspends
    js, given = types.ModuleType("js"), types.ModuleType("_weft_page")
    js.Uint8Array, given.open = Uint8Array, open_socket
    js.navigator = types.SimpleNamespace(onLine=True)
    given.device = stand_in.device = Device()
    core = types.ModuleType("pyodide_js")
    core.checkInterrupt = lambda: None
    for name, module in {
        "pyodide": types.ModuleType("pyodide"),
        "pyodide.ffi": ffi,
        "js": js,
        "pyodide_js": core,
        "_weft_page": given,
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "weft_remote.page", raising=False)
    import weft_remote.page as module  # over the stand-ins

    stand_in.module, stand_in.loop = module, loop
    stand_in.sessions = []

    def carrier(timeout, wait=None, compression=None):
        def made(session):
            stand_in.sessions.append(session)
            return stand_in.module.PageTransport(session, wait)

        return made

    monkeypatch.setattr(remote, "carrier", carrier)
    yield stand_in
    for session in stand_in.sessions:
        session.close()
    loop.run_until_complete(asyncio.sleep(0.01))
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    asyncio.set_event_loop(None)
    loop.close()
    sys.modules.pop("weft_remote.page", None)


def opened(page, url, token=TOKEN):
    return remote.connect(url, token=token)


def test_a_program_waits_only_where_it_reads(page, host):
    session = opened(page, host.url)
    step = weft.jit(lambda x: x * 0.5 + 1)
    x = weft.device_put(np.float32(0), session.devices()[0])
    before = page.waits
    for _ in range(50):
        x = step(x)
    assert page.waits == before
    assert float(x) == pytest.approx(2.0)
    assert page.waits == before + 1 and session.stats.waits == 1
    session.close()


def test_large_arrays_both_ways(page, host):
    session = opened(page, host.url)
    x = np.arange(3 << 20, dtype=np.float32)
    y = weft.device_put(x, session.devices()[0]) * 2
    np.testing.assert_array_equal(np.asarray(y), x * 2)
    session.close()


def test_without_jspi_reading_says_what_to_write(page, host):
    session = opened(page, host.url)
    y = weft.device_put(np.ones(3, np.float32), session.devices()[0]) + 1
    page.suspends = False
    with pytest.raises(RuntimeError, match="prefetch_async"):
        np.asarray(y)
    page.loop.run_until_complete(remote.prefetch_async(y))
    assert np.asarray(y).tolist() == [2, 2, 2]
    session.close()


def test_callbacks_of_a_program_in_a_page(page, host):
    session, seen = opened(page, host.url), []
    x = weft.device_put(np.float32(1), session.devices()[0])

    def look(v):
        seen.append(float(v))
        if v > 5:
            raise KeyError("mine")
        return np.float32(v + 1)

    f = weft.jit(lambda x: weft.pure_callback(look, x, x) * 2)
    assert float(f(x)) == 4 and seen == [1]
    with pytest.raises(KeyError, match="mine"):
        f(x * 6)
    page.suspends = False  # then calls are made where the program awaits
    y = f(x * 2)
    assert seen == [1, 6]
    page.loop.run_until_complete(session.reported())
    page.loop.run_until_complete(remote.prefetch_async(y))
    assert float(y) == 6 and seen == [1, 6, 2]
    z = f(x * 7)
    with pytest.raises(KeyError, match="mine"):
        page.loop.run_until_complete(remote.prefetch_async(z))
    page.suspends = True
    session.close()


def test_without_jspi_nothing_is_offloaded_unless_it_is_placed(page, host):
    """Where a program can't wait, it can't measure."""
    session = opened(page, host.url)
    page.suspends = False
    x = np.ones(3, np.float32)
    f = remote_offload(lambda x: x + 1, to=session)
    assert np.asarray(f(x)).tolist() == [2, 2, 2]
    assert f.where == "here" and "can't wait for a host" in f.reason and "can't wait" in str(f.explain(x))
    there = remote_offload(lambda x: x + 1, to=session, where="there")
    y = there(x)
    page.loop.run_until_complete(remote.prefetch_async(y))
    assert np.asarray(y).tolist() == [2, 2, 2] and there.where == "there"
    page.suspends = True
    for _ in range(8):
        assert np.asarray(f(x)).tolist() == [2, 2, 2]
    assert f.reason.startswith("a call takes")
    session.close()


def test_without_jspi_a_program_awaits_its_connection(page, host):
    page.suspends = False
    with pytest.raises(RuntimeError, match="connect_async"):
        remote.connect(host.url, token=TOKEN)
    session = page.loop.run_until_complete(remote.connect_async(host.url, token=TOKEN))
    assert [d.platform for d in session.devices()] == ["remote"]
    session.close()


def test_a_session_is_closed_before_the_host_has_answered(page):
    async def close_early(url, *protocols):
        connecting = asyncio.ensure_future(remote.connect_async(url, token=TOKEN))
        while not page.sessions or page.sessions[0].transport.socket is None:
            await asyncio.sleep(0.01)
        page.sessions[0].close()
        await connecting

    with serve(list, "127.0.0.1", 0, compression=None) as silent:  # takes all that comes
        thread = threading.Thread(target=silent.serve_forever)
        thread.start()
        with pytest.raises(errors.ConnectionLost, match="closed the connection"):
            page.loop.run_until_complete(close_early(f"ws://127.0.0.1:{silent.socket.getsockname()[1]}"))
        silent.shutdown()
        thread.join()


def test_a_broken_connection_is_taken_up_again(page, host):
    with Proxy(host.port) as proxy:
        session = opened(page, proxy.url)
        x = weft.device_put(np.float32(1), session.devices()[0])
        for _ in range(3):
            x = x + 1
            proxy.cut()
            page.loop.run_until_complete(asyncio.sleep(0.05))
        assert float(x) == 4.0
        assert session.stats.connections > 1
        session.close()


def test_a_lost_connection_is_tried_for_as_long_as_the_host_waits(page, host, monkeypatch):
    """Attempts follow each other more and more slowly, until the time that the host grants has passed."""
    session = opened(page, host.url)
    session.granted = dataclasses.replace(session.welcome, grace_ms=10_000)
    pauses = []

    async def sleep(seconds):
        pauses.append(seconds)

    async def nothing_there(url, *protocols):
        raise JsException("nothing answers")

    monkeypatch.setattr(page.module.asyncio, "sleep", sleep)
    monkeypatch.setattr(page.module.page, "open", nothing_there)
    monkeypatch.setattr(page.module, "online", lambda: False)  # it is the network that is gone
    page.loop.run_until_complete(session.transport._again("1006"))
    monkeypatch.undo()
    assert pauses[0] <= 0.1 and 10 <= sum(pauses) < 20
    with pytest.raises(errors.ConnectionLost, match=r"is lost \(1006\), and nothing answers there any more"):
        session.ping()


def test_a_host_that_is_killed_is_noticed_soon(page, tmp_path, monkeypatch):
    """A page that is online gives up long before the time that the host grants."""
    monkeypatch.setattr(page.module, "REFUSED", 0.3)
    with pytest.raises(AssertionError, match="the host has ended"), run_host(tmp_path) as mine:
        session = opened(page, mine.url)
        x = weft.device_put(np.float32(1), session.devices()[0]) + 1
        mine.process.kill()
        mine.process.wait(60)
        with pytest.raises(errors.ConnectionLost, match="nothing answers there any more") as caught:
            float(x)
        assert all(part in str(caught.value) for part in ("Start the host", "arrays are gone", mine.url))


def test_a_silent_host_is_taken_for_gone(page, host, monkeypatch):
    """Nothing closes the connection; but nobody answers any more."""
    monkeypatch.setattr(page.module, "BEAT", 0.2)
    monkeypatch.setattr(page.module, "SILENCE", 0.5)
    session = opened(page, host.url)
    x = weft.device_put(np.float32(1), session.devices()[0]) + 1
    first = session.transport.socket
    first.recv = page.loop.create_future  # what comes is never seen
    closed, close = [], first.close
    first.close = lambda: (closed.append(True), close())
    assert float(x) == 2.0
    assert closed and session.transport.socket is not first and session.stats.connections == 2


def test_a_host_that_computes_for_long_is_not_silent(page, host, monkeypatch):
    monkeypatch.setattr(page.module, "BEAT", 0.1)
    monkeypatch.setattr(page.module, "SILENCE", 0.4)
    session = opened(page, host.url)
    f = weft.jit(lambda n: weft.lax.fori_loop(0, 20_000, lambda k, x: x + k, n))
    assert float(f(weft.device_put(np.float32(0), session.devices()[0]))) > 0
    assert session.stats.connections == 1


def test_a_stop_ends_the_wait_and_the_session_goes_on(page, host):
    session = opened(page, host.url)
    x = weft.device_put(np.float32(1), session.devices()[0])
    slow = weft.jit(lambda n: weft.lax.fori_loop(0, 60_000, lambda k, x: x + 1, n))
    y = slow(x)
    z = y + 1
    page.loop.call_later(0.3, setattr, page.device, "interrupted", True)
    with pytest.raises(KeyboardInterrupt):
        float(z)
    assert not page.device.interrupted and not session._replies
    assert float(x + 1) == 2.0
    with pytest.raises(errors.BackendError, match="stopped by its client before the host began"):
        float(z)


def test_a_stop_is_seen_between_two_functions_of_a_program_that_reports(page, host):
    session = opened(page, host.url)
    x, said = weft.device_put(np.float32(1), session.devices()[0]), []

    def hear(k):
        said.append(float(k))
        page.device.interrupted = True

    @weft.jit
    def telling(x):
        for k in range(3):
            weft.debug.callback(hear, x + k, ordered=True)
        return x

    y = telling(x)
    page.loop.run_until_complete(session.transport.until(lambda: len(session._reports.complete) == 3))
    with pytest.raises(KeyboardInterrupt):
        float(y)
    assert said == [1.0] and not page.device.interrupted and not session._reports.complete
    assert float(x + 1) == 2.0


def test_a_stop_ends_attempts_to_connect_again(page, host, monkeypatch):
    session = opened(page, host.url)

    async def nothing_there(url, *protocols):
        page.device.interrupted = True
        raise JsException("nothing answers")

    monkeypatch.setattr(page.module.page, "open", nothing_there)
    assert page.loop.run_until_complete(session.transport._again("1006")) is False
    assert session.failure is None


def test_a_host_that_starts_again_is_waited_for(page, host, monkeypatch):
    """For as long as it keeps the session, also by a page that is online."""
    session = opened(page, host.url)
    connect, attempts = session.transport._connect, []

    async def later():
        attempts.append(None)
        if len(attempts) < 4:
            raise page.module.Unreachable("nothing answers")
        return await connect()

    monkeypatch.setattr(page.module, "REFUSED", 0.0)
    monkeypatch.setattr(page.module, "_PAUSES", (0.01,))
    monkeypatch.setattr(session.transport, "_connect", later)
    page.loop.run_until_complete(session.transport._again("1012 it starts again"))
    assert len(attempts) == 4 and session.failure is None
    session.close()


@pytest.mark.parametrize(
    "code,tried",
    [("1001", 1), ("1002", 0), ("1003", 0), ("1006", 1), ("1007", 0), ("1008", 0), ("1009", 0), ("1011", 1)],
)
def test_a_connection_that_the_host_refuses_is_not_taken_up_again(page, host, monkeypatch, code, tried):
    session = opened(page, host.url)
    attempts = []

    async def connect():
        attempts.append(code)
        return True

    monkeypatch.setattr(session.transport, "_connect", connect)
    page.loop.run_until_complete(session.transport._again(f"{code} for this reason"))
    assert len(attempts) == tried and (session.failure is None) == bool(tried)
    assert tried or f"the host closed the connection: {code} for this reason." in str(session.failure)


def test_uploads_wait_until_half_of_the_log_is_confirmed(page, host, monkeypatch):
    session = opened(page, host.url)
    done = []
    monkeypatch.setattr(session.transport, "wait", done.append)
    page.suspends = False  # then nothing can wait
    session.transport.relieve()
    assert not done
    page.suspends = True
    session.transport.relieve()
    (may_go_on,) = done
    for size, expected in ((0, True), (LOG // 2, True), (LOG // 2 + 1, False), (LOG, False)):
        monkeypatch.setattr(session, "_log_bytes", size)
        assert may_go_on() is expected
    session.fail(errors.ConnectionLost("gone"))
    assert may_go_on()


def test_what_is_freed_is_told_once_it_is_much(page, host, monkeypatch):
    session, woken = opened(page, host.url), []
    with monkeypatch.context() as patch:
        patch.setattr(session.transport, "wake", lambda: woken.append(len(session._garbage)))
        for k in range(page.module.TIDY):
            session.release(1_000_000 + k)
    assert woken == [page.module.TIDY]
    session._garbage.clear()
    session.close()


def test_a_session_that_is_closed_closes_its_connection(page, host, monkeypatch):
    session, closed = opened(page, host.url), []
    socket = session.transport.socket
    monkeypatch.setattr(socket, "close", lambda: closed.append(socket))
    session.close()
    page.loop.run_until_complete(asyncio.sleep(0.01))
    assert closed == [socket]


def test_errors(page, host):
    with pytest.raises(errors.AuthenticationError):
        opened(page, host.url, "wrong")
    with pytest.raises(errors.ConnectionLost, match="Is the host running"):
        opened(page, "ws://127.0.0.1:1")


def test_an_ended_session_fails_whoever_waits(page, host):
    session = opened(page, host.url)
    x = weft.device_put(np.float32(1), session.devices()[0]) + 1
    session._control.append(b"\x63")  # no message
    with pytest.raises(weft.errors.WeftError, match="there is no message 99"):
        float(x)
    with pytest.raises(weft.errors.WeftError, match="there is no message 99"):
        session.ping()


# a host that is full --------------------------------------------------------------------------------------------------


@pytest.fixture
def full(tmp_path):
    """A host with one place, and the session that has it."""
    options = ("--platform", "cpu", "--sessions", "1", "--log-level", "info", "--jobs", str(tmp_path / "jobs"))
    with run_host(tmp_path, *options) as host, host.connect() as first:
        host.first = first
        yield host


def test_a_page_waits_for_its_turn(page, full):
    told = []

    def progress(now):
        told.append(now)
        full.first.close()

    session = remote.connect(full.url, token=TOKEN, on_progress=progress)
    assert [(t.stage, t.place, t.of) for t in told] == [("queued", 1, 1)]
    assert float(weft.device_put(np.float32(1), session.devices()[0]) + 1) == 2
    session.close()


def test_a_page_waits_for_no_longer_than_it_wants(page, full):
    with pytest.raises(errors.LimitError, match="had no place in 0.3 s"), pytest.warns(RuntimeWarning, match="is full"):
        remote.connect(full.url, token=TOKEN, wait=0.3)
    full.first.close()
    opened(page, full.url).close()


def test_a_page_that_is_stopped_leaves_the_queue(page, full):
    def stop(now):
        page.device.interrupted = True

    with pytest.raises(KeyboardInterrupt):
        remote.connect(full.url, token=TOKEN, on_progress=stop)
    full.first.close()
    opened(page, full.url).close()


def test_a_page_whose_session_rests_waits_for_it(page, full):
    full.first.close()
    with Proxy(full.port) as proxy:
        session = remote.connect(proxy.url, token=TOKEN, on_progress=lambda now: None)
        x = weft.device_put(np.arange(3, dtype=np.float32), session.devices()[0])
        weft.remote.keep(x, seconds=60)
        proxy.refusing = True
        proxy.cut()
        assert becomes(lambda: "rests on disk" in full.log.read_text())
        other = _other(full)
        proxy.refusing = False
        session.on_progress = lambda now: other.communicate()
        assert np.asarray(x + 1).tolist() == [1, 2, 3]
        session.close()


def _other(host):
    """A client in a process of its own that has a session."""
    program = (
        "import sys, weft.remote\n"
        "session = weft.remote.connect(sys.argv[1], token=sys.argv[2])\n"
        "print('here', flush=True)\n"
        "sys.stdin.read()\n"
        "session.close()\n"
    )
    given = [sys.executable, "-c", program, host.url, TOKEN]
    process = subprocess.Popen(given, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "here\n"
    return process
