"""Clients of a host that is full wait for their turn, and know their place."""

import base64
import contextlib
import json
import pathlib
import signal
import socket
import sys
import threading
import time

import numpy as np
import pytest
import weft
import weft.remote
from hosts import TOKEN, becomes, interruptible, resident, run_host
from operated import operated
from proxy import Proxy
from raw import Raw
from test_audit import entries
from weft_native.host.access import TokenFile
from weft_remote import protocol as p
from weft_remote.errors import ConnectionLost, LimitError


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """One with a place for one session."""
    folder = tmp_path_factory.mktemp("queue")
    tokens = TokenFile(folder / "tokens.json")
    made = {
        "usual": tokens.add("usual"),
        "yields": tokens.add("yields", nice=5),
        "two": tokens.add("two", sessions=2),
        "revoked": tokens.add("revoked"),
    }
    options = ("--sessions", "1", "--queue", "6", "--tokens", str(tokens.path), "--audit", str(folder / "audit.log"))
    with operated(folder, *options) as (running, page):
        running.page, running.tokens, running.audit, running.file = page, made, folder / "audit.log", tokens
        yield running


@pytest.fixture(autouse=True)
def nobody_is_left(request):
    yield
    if "host" in request.fixturenames:
        host = request.getfixturevalue("host")
        assert becomes(lambda: waiting(host) == 0 and not living(host)), host.page.json("/api/sessions")


def waiting(host) -> int:
    return int(host.page.metrics()["weft_host_clients_waiting"])


def living(host) -> list:
    return host.page.json("/api/sessions")[1]["sessions"]


def place(raw) -> tuple[int, int]:
    """The next place that a client is told."""
    found = raw.welcome if raw.welcome is not None else raw.receive()
    raw.welcome = None
    assert isinstance(found, p.Waiting), found
    return found.place, found.of


def comes_to(raw, *wanted: int) -> bool:
    """Whether a client is told this place at last; it may be told of others before."""
    while place(raw) != wanted:
        pass
    return True


def leaves(raw) -> None:
    raw.frame(p.encode(p.Bye()))


def serves(raw) -> bool:
    """Whether a client that waited has its session, which works."""
    raw.welcome = raw.until(p.Welcome)
    op = raw.send(p.Ping)
    return raw.until(p.Ready).op == op


def test_clients_wait_in_their_order_and_know_their_place(host):
    with Raw(host.url) as first, Raw(host.url) as second, Raw(host.url) as third, Raw(host.url) as fourth:
        assert isinstance(first.welcome, p.Welcome)
        assert place(second) == (1, 1)
        assert place(third) == (2, 2) and comes_to(second, 1, 3) and comes_to(third, 2, 3)
        assert place(fourth) == (3, 3)
        leaves(first)
        assert serves(second)
        assert comes_to(third, 1, 2) and comes_to(fourth, 2, 2)
        leaves(second)
        assert serves(third) and comes_to(fourth, 1, 1)
        leaves(third)
        assert serves(fourth)
        leaves(fourth)


def test_those_who_go_give_up_their_place(host):
    with contextlib.ExitStack() as stack:
        first, *others = [stack.enter_context(Raw(host.url)) for _ in range(6)]
        assert comes_to(others[4], 5, 5)
        others[0].socket.close()
        assert comes_to(others[4], 4, 4)
        others[1].frame(p.encode(p.Bye()))
        assert comes_to(others[4], 3, 3) and others[1].receive() is not None
        others[2].socket.socket.shutdown(socket.SHUT_RDWR)  # without a word
        assert comes_to(others[4], 2, 2) and comes_to(others[3], 1, 2)
        leaves(first)
        assert serves(others[3])
        leaves(others[3])
        assert serves(others[4])
        leaves(others[4])
    assert {"left", "served"} <= ends(host)


def ends(host) -> set[str]:
    series = host.page.metrics()
    name = 'weft_host_waiting_seconds_count{end="'
    return {k.removeprefix(name).rstrip('"}') for k, v in series.items() if k.startswith(name) and v}


def test_tokens_that_yield_wait_behind_the_others(host):
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(Raw(host.url, host.tokens[n])) for n in ("usual", "yields", "yields", "usual")]
        first, nice, nicer, usual = opened
        assert comes_to(usual, 1, 3) and comes_to(nice, 2, 3) and comes_to(nicer, 3, 3)
        leaves(first)
        for raw in (usual, nice, nicer):
            assert serves(raw)
            leaves(raw)


def test_who_waits_counts_for_its_token(host):
    with Raw(host.url, host.tokens["two"]) as first, Raw(host.url, host.tokens["two"]) as second:
        assert place(second) == (1, 1)
        with Raw(host.url, host.tokens["two"]) as third:
            assert "for 2 sessions at one time" in third.end().message
        leaves(first)
        assert serves(second)
        leaves(second)


def test_the_queue_has_an_end(host):
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(Raw(host.url)) for _ in range(7)]
        assert place(opened[6]) == (6, 6)
        with Raw(host.url) as more:
            end = more.end()
        assert end.error == "LimitError" and "1 sessions already and 6 clients that wait" in end.message
        assert host.page.metrics()['weft_host_refusals_total{cause="full"}'] >= 1
        for raw in opened[1:]:
            raw.socket.close()
        leaves(opened[0])


def test_those_who_wait_are_asked_and_answered(host):
    with Raw(host.url) as first, Raw(host.url) as second:
        assert place(second) == (1, 1)
        second.frame(p.encode(p.Beat()))
        assert second.receive() == p.Beat()
        assert second.socket.ping().wait(60)
        leaves(first)
        assert serves(second)
        leaves(second)


@pytest.mark.parametrize(
    "said",
    [p.encode(p.Ping(1)), b"\xff", b"", "text", p.encode(p.Beat()) * 2000],
    ids=["op", "junk", "", "text", "much"],
)
def test_they_say_nothing_else(host, said):
    with Raw(host.url) as first, Raw(host.url) as second, Raw(host.url) as third:
        assert place(second) == (1, 1) and place(third) == (2, 2)
        second.frame(said)
        second.welcome = None
        (end,) = [m for m in iter(second.receive, None) if isinstance(m, p.End)]
        assert end.error == ("DeserializationError" if said in (b"", b"\xff") else "ProtocolError")
        assert comes_to(third, 1, 1)
        third.socket.close()
        leaves(first)


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_frame_that_has_come_in_part_when_the_turn_comes(host, cut):
    """The host has read its beginning, the session's process reads the rest."""
    frame = bytes([0x82, 0x83]) + b"mask" + bytes(a ^ b for a, b in zip(p.encode(p.Ping(1)) + b"\x08", b"mask"))
    beat = bytes([0x82, 0x81]) + b"mask" + bytes([p.Beat.code ^ ord("m")])
    assert len(frame) == 9
    with Raw(host.url) as first, Raw(host.url) as second:
        assert place(second) == (1, 1)
        whole = beat + frame
        second.socket.socket.sendall(whole[:cut])
        if cut >= len(beat):
            assert second.receive() == p.Beat()
        time.sleep(0.05)
        leaves(first)
        second.welcome = second.until(p.Welcome)
        second.socket.socket.sendall(whole[cut:])
        assert second.until(p.Ready).op == 1
        leaves(second)


def test_a_token_that_is_revoked_meanwhile(host):
    with Raw(host.url) as first, Raw(host.url, host.tokens["revoked"]) as second:
        assert place(second) == (1, 1)
        host.file.revoke("revoked")
        second.welcome = None
        end = second.end()
        assert end.error == "AuthenticationError" and "was revoked" in end.message
        leaves(first)


def test_administrators_see_them(host):
    with Raw(host.url) as first, Raw(host.url, host.tokens["usual"]) as second:
        assert place(second) == (1, 1)
        (found,) = host.page.json("/api/sessions")[1]["waiting"]
        assert (found["place"], found["token"], found["session"]) == (1, "usual", None) and found["seconds"] >= 0
        status = host.page.json("/api/host")[1]
        assert (status["waiting"], status["waiting_allowed"]) == (1, 6)
        assert host.page.metrics()["weft_host_clients_waiting_allowed"] == 6
        leaves(first)
        assert serves(second)
        leaves(second)
    begun = [e for e in entries(host.audit) if e["event"] == "session-begins" and e.get("token_name") == "usual"]
    assert begun[-1]["waited"] > 0
    assert any(e["event"] == "client-waits" and e.get("token_name") == "usual" for e in entries(host.audit))
    gone = [e for e in entries(host.audit) if e["event"] == "client-waits-no-more"]
    assert {"left", "ended", "refused"} >= {e["reason"] for e in gone}


# clients --------------------------------------------------------------------------------------------------------------


def test_a_program_waits_and_is_told_its_place(host):
    told, done = [], []

    def wait():
        session = weft.remote.connect(host.url, token=TOKEN, on_progress=told.append, name="second")
        done.append(session)

    with host.connect():
        thread = threading.Thread(target=wait)
        thread.start()
        assert becomes(lambda: told)
        time.sleep(0.3)
        assert not done and told[0][1:2] == ("queued",) and told[0][-2:] == (1, 1)
    thread.join(20)
    (session,) = done
    with session:
        assert float((weft.device_put(np.ones(3, np.float32), session.devices()[0]) + 1).sum()) == 6


def test_a_program_that_is_not_told_warns(host):
    with host.connect(), pytest.warns(RuntimeWarning, match="is full: this program waits .* at place 1 of 1"):
        with pytest.raises(LimitError, match="is full, and had no place in 0.3 s"):
            host.connect(wait=0.3)


@pytest.mark.filterwarnings("ignore:.*is full")
def test_ctrl_c_leaves_the_queue(host):
    def interrupt():
        becomes(lambda: waiting(host) == 1)
        signal.raise_signal(signal.SIGINT) if sys.platform == "win32" else signal.pthread_kill(main, signal.SIGINT)

    main = threading.main_thread().ident
    with interruptible(), host.connect():
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            host.connect()
        thread.join()
        assert becomes(lambda: waiting(host) == 0, 2)


@pytest.mark.filterwarnings("ignore:.*is full")
def test_a_host_that_stops_says_so_to_those_who_wait(tmp_path):
    with operated(tmp_path, "--sessions", "1", "--drain", "600") as (host, page):
        host.may_end, host.page, failures = True, page, []

        def wait():
            try:
                host.connect()
            except (LimitError, ConnectionLost) as e:
                failures.append(e)

        session = host.connect()
        with Raw(host.url) as raw:
            assert place(raw) == (1, 1)
            thread = threading.Thread(target=wait)
            thread.start()
            assert becomes(lambda: waiting(host) == 2)
            host.process.send_signal(signal.SIGTERM)
            while raw.receive() is not None:
                pass
            assert raw.socket.close_code == 1013 and "about to stop" in raw.socket.close_reason
        thread.join(20)
        (failure,) = failures  # it has asked again, and this host takes nobody
        assert isinstance(failure, LimitError) and "about to stop" in str(failure)
        session.ping()
        session.close()
        assert host.process.wait(60) == 0


def test_thousands_wait_in_little_memory(tmp_path):
    """And each of them is told its place when the first one goes."""
    count, room = 1500, 60 << 10
    with operated(tmp_path, "--sessions", "1", "--queue", "5000") as (host, page):
        host.page = page
        with Raw(host.url) as first:
            before = resident(host.process.pid)
            lines = [knock(host) for _ in range(count)]
            assert becomes(lambda: waiting(host) == count)
            assert (resident(host.process.pid) - before) / count < room
            last = lines[-1]
            data = b""
            while p.encode(p.Waiting(count, count)) not in data:
                data += last.recv(1 << 16)
            lines[0].close()
            wanted = p.encode(p.Waiting(count - 1, count - 1))
            while wanted not in data:
                data += last.recv(1 << 16)
            began = time.monotonic()
            leaves(first)
            while b"\x02\x10" not in data:  # a Welcome, whose id has 16 letters
                data += lines[1].recv(1 << 16)
            assert time.monotonic() - began < 40
            for line in lines:
                line.close()
            assert becomes(lambda: waiting(host) == 0)


def knock(host) -> socket.socket:
    """A client's connection that has logged in."""
    line = socket.create_connection(("127.0.0.1", host.port), timeout=30)
    offers = ", ".join(p.offered(TOKEN, b""))
    lines = [
        "GET /session HTTP/1.1",
        "Host: x",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
    ]
    lines += ["Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", f"Sec-WebSocket-Protocol: {offers}", "", ""]
    line.sendall("\r\n".join(lines).encode())
    assert line.recv(1 << 16).startswith(b"HTTP/1.1 101")
    return line


# sessions that rest ---------------------------------------------------------------------------------------------------


@pytest.fixture
def keeps(tmp_path):
    with operated(tmp_path, "--sessions", "1", "--queue", "1", "--jobs", str(tmp_path / "jobs")) as (host, page):
        host.page = page
        yield host


def kept(host) -> str:
    """The text of a session that rests on disk."""
    session = host.connect()
    x = weft.device_put(np.arange(3, dtype=np.float32), session.devices()[0])
    text = weft.remote.keep(x, seconds=100)
    session.leave()
    assert becomes(lambda: [s["doing"] for s in living(host)] == ["rests on disk"])
    return text


def test_a_session_that_rests_waits_before_new_ones(keeps):
    """Also where no more new ones may wait."""
    text, told, found = kept(keeps), [], []

    def take_up():
        found.append(weft.remote.resume(keeps.url, text, token=TOKEN, on_progress=told.append))

    with Raw(keeps.url) as first, Raw(keeps.url) as second:
        assert place(second) == (1, 1)
        thread = threading.Thread(target=take_up)
        thread.start()
        assert comes_to(second, 2, 2)
        with Raw(keeps.url) as more:
            assert more.end().error == "LimitError"
        wanted = {w["session"] is not None: w["place"] for w in keeps.page.json("/api/sessions")[1]["waiting"]}
        assert wanted == {True: 1, False: 2}
        leaves(first)
        thread.join(20)
        ((session, x),) = found
        assert told[0].stage == "queued" and told[0].place == 1
        np.testing.assert_array_equal(np.asarray(x), [0, 1, 2])
        session.close()
        assert serves(second)
        leaves(second)


def test_a_session_is_not_lost_though_nobody_waits_for_new_ones(tmp_path):
    options = ("--sessions", "1", "--queue", "0", "--jobs", str(tmp_path / "jobs"))
    with operated(tmp_path, *options) as (host, page):
        host.page = page
        text = kept(host)
        with host.connect(), pytest.raises(LimitError, match="had no place in 0.3 s"):
            with pytest.warns(RuntimeWarning, match="at place 1 of 1"):
                weft.remote.resume(host.url, text, token=TOKEN, wait=0.3)
        session, x = weft.remote.resume(host.url, text, token=TOKEN)
        with session:
            np.testing.assert_array_equal(np.asarray(x), [0, 1, 2])


def test_the_next_connection_of_a_session_stands_where_the_last_one_stood(keeps):
    text = kept(keeps)
    found = json.loads(text)["ticket"]
    ticket = p.Welcome(found["id"], base64.urlsafe_b64decode(found["secret"] + "="), 0, 0, 0, 0, ())
    with Raw(keeps.url) as first, Raw(keeps.url, session=ticket) as old, Raw(keeps.url, session=ticket) as new:
        assert place(old) == (1, 1) and place(new) == (1, 1)
        old.welcome = None
        while old.receive() is not None:
            pass
        assert old.socket.close_code == 1000 and waiting(keeps) == 1
        leaves(first)
        assert new.until(p.Welcome).id == ticket.id
        leaves(new)


@pytest.mark.filterwarnings("ignore:.*is full")
def test_a_live_client_whose_session_rests_waits_for_it(keeps):
    """Its connection was lost for longer than a session keeps a process without one."""
    with Proxy(keeps.port) as cut:
        session = weft.remote.connect(cut.url, token=TOKEN)
        x = weft.device_put(np.arange(3, dtype=np.float32), session.devices()[0])
        weft.remote.keep(x, seconds=100)
        cut.refusing = True
        cut.cut()
        assert becomes(lambda: [s["doing"] for s in living(keeps)] == ["rests on disk"])
        with Raw(keeps.url) as first:
            cut.refusing = False
            assert becomes(lambda: waiting(keeps) == 1)
            time.sleep(0.5)
            assert session.failure is None and session.progress.place == 1
            leaves(first)
            np.testing.assert_array_equal(np.asarray(x + 1), [1, 2, 3])
        session.close()


@pytest.mark.filterwarnings("ignore:.*is full")
def test_clients_wait_over_tls_too(tmp_path, monkeypatch):
    """There the front goes on to carry the bytes of a client that has waited."""
    tls = pathlib.Path(__file__).parent / "tls"
    monkeypatch.setenv("SSL_CERT_FILE", str(tls / "certificate.pem"))
    options = ("--tls-cert", str(tls / "certificate.pem"), "--tls-key", str(tls / "key.pem"))
    with run_host(tmp_path, "--sessions", "1", *options) as host:
        first, told = host.connect(), []

        def told_of(now):
            told.append(now)
            if len(told) == 1:
                threading.Timer(0.2, first.close).start()

        with host.connect(on_progress=told_of) as session:
            assert (told[0].place, told[0].of) == (1, 1)
            x = weft.device_put(np.ones(1 << 20, np.float32), session.devices()[0])
            assert float((x + 1).sum()) == 2 << 20
