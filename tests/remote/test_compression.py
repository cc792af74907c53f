"""Messages that are compressed, where both sides want it and it helps; and what a few bytes can't do to a host."""

import dataclasses
import re
import sys
import threading
import time

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from hosts import TOKEN, becomes, run_host
from operated import operated
from platforms import need
from proxy import Proxy
from raw import Raw
from weft.base.avals import shaped
from weft_remote import protocol as p
from weft_remote.deflate import Deflate, answer, is_worth
from weft_remote.wire import SLOW
from websockets.frames import Frame, Opcode

MIB = 1 << 20
FLAT, NOISE = np.zeros(MIB, np.float32), np.random.default_rng(0).random(MIB).astype(np.float32)


@pytest.fixture(scope="module")
def compressing(tmp_path_factory):
    """A host that compresses, and its page for administrators."""
    need("cpu")
    folder = tmp_path_factory.mktemp("compressing")
    options = ["--platform", "cpu", "--compression", "deflate", "--log-level", "info", "--session-bytes", "40000000"]
    with operated(folder, *options) as (host, page):
        host.page = page
        yield host


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    need("cpu")
    with operated(tmp_path_factory.mktemp("plain"), "--platform", "cpu") as (host, page):
        host.page = page
        yield host


def crossed(host, work, **options) -> tuple[float, float]:
    """The bytes that came to the host in a session, and those that it sent."""
    names = ["weft_host_received_bytes_total", "weft_host_sent_bytes_total"]
    ended = 'weft_host_sessions_ended_total{reason="closed"}'
    before = host.page.metrics()
    with host.connect(**options) as session:
        work(session.devices()[0])
    assert becomes(lambda: host.page.metrics().get(ended, 0) > before.get(ended, 0))
    after = host.page.metrics()
    return tuple(after[name] - before[name] for name in names)


def there_and_back(value):
    def work(device):
        x = weft.device_put(value, device)
        np.testing.assert_array_equal(np.asarray(weft.jit(lambda x: x + 0)(x)), value)

    return work


@pytest.mark.parametrize("value, most", [(FLAT, 0.05), (np.arange(MIB, dtype=np.int32), 0.6), (NOISE, 1.01)])
def test_what_gets_shorter_is_compressed_in_both_directions(compressing, value, most):
    received, sent = crossed(compressing, there_and_back(value), compression=True)
    assert received < most * value.nbytes and sent < most * value.nbytes
    assert most < 1 or received > value.nbytes  # noise is sent as it is


def test_programs_are_compressed(compressing, plain):
    def work(device):
        weft.clear_caches()
        x = weft.device_put(np.ones(3, np.float32), device)
        f = weft.jit(lambda x: [x := jnp.sin(x) * k + jnp.cos(x) for k in range(40)][-1], device=device)
        assert np.isfinite(np.asarray(f(x))).all()

    assert crossed(compressing, work, compression=True)[0] < 0.6 * crossed(plain, work)[0]


@pytest.mark.parametrize("which", ["compressing", "plain"])
@pytest.mark.parametrize("offered", [True, False])
def test_both_sides_must_want_it(request, which, offered):
    host = request.getfixturevalue(which)
    with host.connect(compression=offered) as session:
        agreed = [type(e) for e in session.transport.wire.protocol.extensions]
        assert agreed == ([Deflate] if offered and which == "compressing" else [])
        there_and_back(FLAT[:1000])(session.devices()[0])


def test_a_client_offers_it_on_slow_lines_alone(compressing):
    def offered() -> bool:
        with compressing.connect() as session:  # on this machine
            return bool(session.transport.wire.protocol.extensions)

    assert not all(offered() for _ in range(10))  # a machine that does much else may look slow once
    assert 0.001 < SLOW < 0.05  # a network of one building is faster, one of a country is not


def test_a_lost_connection_is_taken_up_compressed(compressing):
    with Proxy(compressing.port) as proxy:
        with weft.remote.connect(proxy.url, token=TOKEN, compression=True) as session:
            x = weft.device_put(FLAT, session.devices()[0])
            before = session.transport.wire
            proxy.cut()
            np.testing.assert_array_equal(np.asarray(x + 1), FLAT + 1)
            assert session.transport.wire is not before
            assert [type(e) for e in session.transport.wire.protocol.extensions] == [Deflate]


ANSWERS = {
    "permessage-deflate": (1, 1, 15, 15),
    "permessage-deflate; client_max_window_bits": (1, 1, 15, 15),  # a browser
    "x-other, permessage-deflate; server_no_context_takeover": (1, 1, 15, 15),
    "permessage-deflate; server_max_window_bits=10; client_no_context_takeover": (1, 1, 15, 10),
    "permessage-deflate; server_max_window_bits=99, permessage-deflate": (1, 1, 15, 15),
    "permessage-deflate; server_max_window_bits=8": None,  # zlib has none of this size
    "permessage-deflate; what=1": None,
    "x-webkit-deflate-frame": None,
    ";;;": None,
    "": None,
}


@pytest.mark.parametrize("offered", ANSWERS)
def test_terms(offered):
    found = answer([offered] if offered else [])
    assert (None if found is None else found[1]) == ANSWERS[offered]
    assert found is None or found[0].startswith("permessage-deflate")


def test_what_is_worth_it():
    assert is_worth(FLAT.tobytes()) and is_worth(b"some words " * 100)
    assert not is_worth(NOISE.tobytes()) and not is_worth(bytes(100))
    one, other = Deflate(1, 1, 15, 15), Deflate(1, 1, 15, 15)
    for data in (FLAT.tobytes(), NOISE.tobytes(), b"short", FLAT.tobytes()):
        sent = one.encode(Frame(Opcode.BINARY, data))
        assert bytes(other.decode(sent).data) == data
        assert len(sent.data) <= len(data)


# a few bytes that stand for many --------------------------------------------------------------------------------------


class Watched:
    """How much memory the process of the last session has had at most, until it ends."""

    def __init__(self, host):
        self.process = re.findall(r"begins in process (\d+)", host.log.read_text())[-1]
        self.begin = self.most = 0
        self.look()
        self.begin = self.most
        self.thread = threading.Thread(target=self._run)

    def look(self) -> bool:
        try:
            with open(f"/proc/{self.process}/status") as file:
                found = re.search(r"VmHWM:\s+(\d+)", file.read())
        except (FileNotFoundError, ProcessLookupError):
            return False
        self.most = max(self.most, 1024 * int(found[1]) if found else 0)
        return found is not None

    def _run(self):
        while not self.done and self.look():
            time.sleep(0.001)

    def __enter__(self):
        self.done = False
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done = True
        self.thread.join()

    more = property(lambda self: self.most - self.begin)


class Says:
    """An extension that calls messages compressed."""

    name = "says"

    def encode(self, frame):
        return dataclasses.replace(frame, rsv1=True)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("size", [5 * MIB, 256 * MIB])
def test_a_message_that_inflates_beyond_the_limit_ends_its_session_before_the_memory_is_taken(compressing, size):
    with Raw(compressing.url, compression="deflate") as raw:
        assert raw.socket.protocol.extensions
        with Watched(compressing) as watched:
            raw.frame(bytes(size))
            assert raw.receive() is None and raw.socket.close_code == 1009
    end = None
    while not isinstance(end, p.End):  # the front may not have heard of it yet
        with Raw(compressing.url, session=raw.welcome) as again:
            end = again.welcome
    assert end.error == "LimitError" and "a frame exceeds 4194304 bytes" in end.message
    assert watched.more < 16 * MIB
    with compressing.connect(compression=True) as session:
        session.ping()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_many_messages_that_inflate_to_the_limit_wait_for_room(compressing):
    """More than a gigabyte, of which a session may hold 40 MB, in a few hundred thousand bytes."""
    size = 4 * MIB - 1000
    aval = shaped((size,), "uint8")
    with Raw(compressing.url, compression="deflate") as raw:
        watched = Watched(compressing)
        raw.send(p.Put, 1, aval, 0, bytes(size))
        deflate = raw.socket.protocol.extensions[0]
        frames = b"".join(
            Frame(Opcode.BINARY, p.encode(p.Put(op, op, aval, 0, bytes(size)), p.Free(op + 1, (op,)))).serialize(
                mask=True, extensions=[deflate]
            )
            for op in range(2, 600, 2)
        )
        assert len(frames) < 3 * MIB
        raw.socket.socket.sendall(frames)
        raw.frame(p.encode(p.Ping(600)))
        assert raw.until(p.Ready, 120).op == 600
        assert watched.look() and watched.more < 96 * MIB


@pytest.mark.parametrize(
    "payload", [b"\xff" * 100, bytes(range(256)) * 9, b"\x01\x00\x00"], ids=["ones", "bytes", "short"]
)
def test_what_is_not_compressed_as_it_says_ends_the_connection(compressing, payload):
    with Raw(compressing.url, compression="deflate") as raw:
        raw.socket.socket.sendall(Frame(Opcode.BINARY, payload).serialize(mask=True, extensions=[Says()]))
        assert raw.receive() is None  # closed as one that speaks no websocket
        with Raw(compressing.url, session=raw.welcome, compression="deflate") as again:
            assert isinstance(again.welcome, p.Welcome)
    with compressing.connect(compression=True) as session:
        session.ping()


def test_a_compressed_message_where_none_was_agreed_on(plain):
    with Raw(plain.url) as raw:
        raw.socket.socket.sendall(Frame(Opcode.BINARY, b"\x01").serialize(mask=True, extensions=[Says()]))
        assert raw.receive() is None
    with plain.connect() as session:
        session.ping()


def test_a_client_that_waits_for_its_place_speaks_compressed_too(tmp_path):
    """All of its messages, as a browser does."""
    need("cpu")
    with run_host(tmp_path, "--platform", "cpu", "--sessions", "1", "--compression", "deflate") as host:
        with host.connect(compression=True) as first:
            with Raw(host.url, compression="deflate") as raw:
                for _ in range(3):
                    raw.frame(p.encode(p.Beat()))
                    raw.until(p.Beat)
                first.close()
                raw.until(p.Welcome)
                raw.send(p.Put, 1, shaped((MIB,), "float32"), 0, FLAT[: 250 << 10].tobytes())
                assert raw.send(p.Ping) == raw.until(p.Ready).op
