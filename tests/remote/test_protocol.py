"""The codec of messages, and the answers of a host to invalid messages."""

import contextlib
import dataclasses
import os
import random
import re
import threading
import urllib.error
import urllib.request
from types import SimpleNamespace

import numpy as np
import pytest
import weft
from hosts import TOKEN, becomes, host_here, resident, run_host
from raw import F32, ONES, Raw, program
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from weft.base.avals import shaped
from weft.serialization.binary import DeserializationError
from weft.core.jaxpr import Jaxpr, JaxprEqn, Var
from weft.core.primitive import registry
from weft.serialization.programs import content_hash, serialize
from weft_native.host import performer as host_performer
from weft_native.host.programs import Executable
from weft_native.host.values import Stored, host_bytes
from weft_remote import errors
from weft_remote.codec import MAX_RANK
from weft_remote import protocol as p

EXAMPLES = [
    p.Welcome("0f", b"x" * 32, 300, 60000, 1 << 22, 1 << 23, ("cpu", "cpu")),
    p.End("ValueError", "no — really"),
    p.Bye(),
    p.Received(1 << 40),
    p.Settled((1, 2, 3)),
    p.Credit(4, 1 << 33),
    p.Beat(),
    p.Cancel(7),
    p.Reported(1 << 40),
    p.Waiting(3, 1 << 20),
    p.Put(1, 2, F32, 0, ONES),
    p.Part(2, 2, b""),
    p.Program(3, b"h" * 32, 5, b"12345"),
    p.ProgramPart(4, b"h" * 32, b"6"),
    p.Compile(5, 6, b"h" * 32, 0, "f", (True, False)),
    p.Execute(6, 6, (2,), (7, 8)),
    p.ExecuteFetching(6, 6, (2,), (7, 8), (1,)),
    p.Fetch(7, 8),
    p.Wait(8, 8),
    p.Free(9, (7, 8)),
    p.Inspect(10, 6, "text", ""),
    p.Ping(11),
    p.ExecuteReporting(12, 6, (2,), (9,)),
    p.CompileSpread(13, 7, b"h" * 32, (0, 1), (1, 2), (1, 1, 1, 0, 0), "f", (True,)),
    p.Copy(14, 8, 2, 1),
    p.Result(13, 3, False, b"abcd"),
    p.Raised(14, 3),
    p.Data(7, 12, 4, b"abcd"),
    p.Ready(8),
    p.Report(3, 12, 0, True, b"abcd"),
    p.Text(10, "HloModule"),
    p.Compiled(5, 1 << 40),
    p.Keep(15, 86_400),
    p.Forget(16, b"h" * 32),
    p.Kept(15, 3_600),
    p.Progress(6, "f", "compiling", 1500, 2),
    p.Error(12, 6, "TypeError", "what\n  at file.py:3"),
    p.Put(13, 9, shaped((), "bfloat16", True), 1, b"\x00\x01"),
    p.Put(14, 10, shaped((2, 0), "bool"), 0, b""),
]


def test_every_message_has_an_example():
    assert {type(m) for m in EXAMPLES} == set(p.LANGUAGE.classes.values())


def test_messages_come_back():
    for message in EXAMPLES:
        assert list(p.decode(p.encode(message))) == [message]
    assert list(p.decode(b"".join(map(p.encode, EXAMPLES)))) == EXAMPLES == list(p.decode(p.encode(*EXAMPLES)))


def test_messages_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        EXAMPLES[0].secret = b"other"


def test_truncated_and_mutated_frames():
    for message in EXAMPLES:
        data = p.encode(message)
        for n in range(len(data)):
            with pytest.raises(DeserializationError):
                list(p.decode(data[:n]))
    rng = random.Random(0)
    for _ in range(int(os.environ.get("WEFT_HOSTILE_FRAMES", 5000))):
        data = bytearray(p.encode(*rng.choices(EXAMPLES, k=2)))
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            list(p.decode(data))
        except DeserializationError as e:
            assert e.offset <= len(data)


def test_a_count_allocates_nothing():
    with pytest.raises(DeserializationError, match="items are announced"):
        list(p.decode(bytes([p.Free.code, 1]) + b"\xff\xff\xff\xff\xff\x7f"))


def test_the_rank_of_an_array_has_a_limit():
    put = lambda rank: p.encode(p.Put(1, 2, shaped((1,) * rank, "float32"), 0, b"abcd"))
    (read,) = p.decode(put(MAX_RANK))
    assert read.aval.shape == (1,) * MAX_RANK
    with pytest.raises(DeserializationError, match=f"an array of rank {MAX_RANK + 1}") as e:
        list(p.decode(put(MAX_RANK + 1)))
    assert e.value.offset == put(0).index(b"float32") + len("float32") + 1  # after the dtype and whether it is weak


@pytest.mark.parametrize("name", ["<f4", "f4", "f,f4", "O", "(2,)f4", "float33", " float32", ""])
def test_dtypes_have_one_name(name):
    """NumPy has a language of its own for them, and understands some of these."""
    data = p.encode(p.Put(1, 2, shaped((), "float32"), 0, b"abcd"))
    known = bytes([7]) + b"float32"
    assert known in data and next(iter(p.decode(data))).aval.dtype == "float32"
    with pytest.raises(DeserializationError, match=re.escape(f"there is no dtype {name!r}")):
        list(p.decode(data.replace(known, bytes([len(name)]) + name.encode())))


def test_exceptions_keep_their_class():
    class Own(KeyError):
        pass

    for error, want in [
        (ValueError("x"), ValueError),
        (Own("x"), KeyError),
        (weft.errors.WeftTypeError("x"), weft.errors.WeftTypeError),
        (weft.errors.BackendError("x"), weft.errors.BackendError),
        (errors.LimitError("x"), errors.LimitError),
        (DeserializationError("x", 3), DeserializationError),
        (OSError("x"), RuntimeError),
        (SystemExit(3), RuntimeError),
    ]:
        assert type(errors.rebuild(errors.class_name(error), str(error))) is want
    assert type(errors.rebuild("os.system", "x")) is RuntimeError and type(errors.rebuild("eval", "x")) is RuntimeError


# the host ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def witness(host):
    """A session that is there all the time and must not notice the others."""
    with host.connect() as session:
        x = weft.device_put(np.arange(3, dtype=np.float32), session.devices()[0])
        yield lambda: float(weft.jit(lambda v: (v * v).sum())(x))


@pytest.fixture(autouse=True)
def others_go_on(witness):
    yield
    assert witness() == 5.0


def test_a_wrong_token(host):
    with pytest.raises(errors.AuthenticationError, match="does not know this token"):
        host.connect(token=TOKEN + "x")
    for token in ("", "\x00", "é" * 50, "\ud800", TOKEN[:-1]):
        with Raw(host.url, token=token) as raw:
            assert raw.end().error == "AuthenticationError"


@pytest.mark.parametrize("token", ["weft-token.", "weft-token.a", "weft-token.%", "x"])
def test_a_token_that_is_none(host, token):
    with Raw(host.url, offers=[p.SUBPROTOCOL, token]) as raw:
        assert raw.end().error == "AuthenticationError"


def test_a_token_in_a_header(host):
    for header, known in ((f"Bearer {TOKEN}", True), (f"bearer {TOKEN}", True), (f"Basic {TOKEN}", False)):
        with Raw(host.url, offers=[p.SUBPROTOCOL], additional_headers={"Authorization": header}) as raw:
            assert isinstance(raw.welcome, p.Welcome if known else p.End)


@pytest.mark.parametrize("offers,spoken", [(["weft.7"], "weft.7"), (["chat"], "none"), (None, "none")])
def test_another_version(host, offers, spoken):
    _, *login = p.offered(TOKEN, b"")
    with Raw(host.url, offers=[*(offers or []), *login]) as raw:
        end = raw.end()
        assert raw.socket.subprotocol == (spoken if spoken != "none" else None)
    assert end.error == "ProtocolError" and f"speaks {spoken} of weft's protocols, the host weft.6" in end.message


def test_no_frame_is_read_before_login(tmp_path):
    """What a stranger sends behind its handshake is not looked at, and takes no memory."""
    with run_host(tmp_path) as host:
        held = []
        before = resident(host.process.pid)
        for _ in range(41):
            raw = Raw(host.url, token="wrong")
            with contextlib.suppress(ConnectionClosed, OSError):
                raw.frame(bytes(4 << 20))
            held.append(raw)
        took = resident(host.process.pid) - before
        for raw in held:
            assert raw.end().error == "AuthenticationError"
            raw.socket.close()
        assert took < 16 << 20
        with host.connect() as session:
            session.ping()


def test_other_addresses(host):
    for path in ("", "/", "/session/", "/sessions", "/session/a/b"):
        with pytest.raises(InvalidStatus, match="404"):
            connect(host.url + path, subprotocols=p.offered(TOKEN, b""))
    answer = urllib.request.Request(host.url.replace("ws", "http") + "/session")
    with pytest.raises(urllib.error.HTTPError, match="426|400"):
        urllib.request.urlopen(answer)


def test_a_host_says_that_it_is_there(host):
    with Raw(host.url) as raw:
        raw.frame(p.encode(p.Beat()))
        assert isinstance(raw.receive(), p.Beat)


def test_what_is_cancelled_before_it_begins_fails_and_the_rest_is_done():
    """What the host says of itself goes on meanwhile; operations after the cancelled ones are performed."""
    with host_here() as made, Raw(made.url) as raw:
        raw.send(p.Put, 1, F32, 0, ONES)
        raw.send(p.Ping)
        raw.until(p.Ready)
        (session,) = made.sessions.values()
        performer = session.performer
        performer._is_short = lambda message: False  # its thread performs all
        begin, going_on = threading.Event(), performer.begin
        performer.begin = lambda: (begin.wait(60), going_on())[1]
        ping, fetch, wait = raw.send(p.Ping), raw.send(p.Fetch, 1), raw.send(p.Wait, 1)
        put = raw.send(p.Put, 2, F32, 0, ONES)
        raw.frame(p.encode(p.Cancel(put), p.Beat()))
        assert isinstance(raw.until(p.Beat), p.Beat)
        assert session.cancelled == put
        begin.set()
        wanted = raw.send(p.Fetch, 2)
        replies = {m.op: m for m in (raw.until((p.Data, p.Ready, p.Error)) for _ in range(4))}
        assert isinstance(replies[ping], p.Ready) and replies[wanted].data == ONES
        assert all("stopped by its client" in replies[k].message for k in (fetch, wait))


def test_arrays_are_read_for_one_reply_after_another(monkeypatch):
    """A session has one thread that may wait for arrays, however many replies it owes."""
    begun, go, threads = [], threading.Event(), set()

    def read(array):
        begun.append(array.shape)
        threads.add(threading.get_ident())
        assert go.wait(60)
        return host_bytes(array)

    monkeypatch.setattr(host_performer, "host_bytes", read)
    monkeypatch.setattr(host_performer, "SHORT_BYTES", -1)  # the shortest are read at once
    with host_here() as here, Raw(here.url) as raw:
        for n in (1, 2, 3):
            raw.send(p.Put, n, shaped((n,), "float32"), 0, bytes(4 * n))
        for n in (1, 2, 3):
            raw.send(p.Fetch, n)
        raw.send(p.Ping)
        raw.until(p.Ready)  # all have been asked for
        waiting = list(begun)
        go.set()
        assert [len(raw.until(p.Data).data) for _ in range(3)] == [4, 8, 12]
    assert waiting in ([], [(1,)]) and begun == [(1,), (2,), (3,)] and len(threads) == 1


def test_a_session_that_is_not_there(host):
    with Raw(host.url) as mine:
        for session in (
            dataclasses.replace(mine.welcome, id="00" * 8),
            dataclasses.replace(mine.welcome, secret=b"unknown session"),
            dataclasses.replace(mine.welcome, secret=b""),
        ):
            with Raw(host.url, session=session) as raw:
                assert re.search("does not know the session any more", raw.end().message)
        mine.send(p.Ping)
        mine.until(p.Ready)


@pytest.mark.parametrize(
    "frame,message",
    [
        (b"", "a frame is empty"),
        (b"\xff\x00", "there is no message 255"),
        (b"\x01\x00", "there is no message 1$|there is no message 1 "),
        (p.encode(EXAMPLES[1])[:5], "items are announced|bytes are announced"),
    ],
)
def test_bad_first_frames(host, frame, message):
    with Raw(host.url) as raw:
        raw.frame(frame)
        end = raw.end()
    assert re.search(message, end.message), end


DATA, HASH, N_ARGS, N_OUTS = program()


def compiled(raw):
    raw.send(p.Program, HASH, len(DATA), DATA)
    raw.send(p.Compile, 1, HASH, 0, "f", (False,) * N_ARGS)


def test_programs_are_forgotten_and_sent_again():
    """As often as a client likes, with what it has compiled of them left alone."""
    with host_here(programs=1) as made, Raw(made.url) as raw:
        other = serialize(weft.make_jaxpr(lambda x: x * 3)(F32).jaxpr)
        raw.send(p.Put, 10, F32, 0, ONES)
        for k in range(3):
            raw.send(p.Program, HASH, len(DATA), DATA[:5])
            raw.send(p.ProgramPart, HASH, DATA[5:])
            raw.send(p.Program, HASH, len(DATA), DATA)  # a client that comes back does not know what is here
            raw.send(p.Forget, HASH)
            raw.send(p.Program, content_hash(other), len(other), other)
            raw.send(p.Compile, 20 + k, content_hash(other), 0, "f", (False,))
            raw.send(p.Forget, content_hash(other))
            raw.send(p.Execute, 20, (10,), (30 + k,))
            raw.send(p.Fetch, 30 + k)
            assert raw.until(p.Data).data == (3 * np.ones(3, np.float32)).tobytes()
        raw.send(p.Program, HASH, len(DATA), DATA)
        raw.send(p.Program, content_hash(other), len(other), other)
        end = raw.end()
        assert end.error == "LimitError" and "has 1 programs, and may have no more" in end.message


def ill_typed():
    x, y = Var(shaped((3,), "float32")), Var(shaped((4,), "float32"))
    return serialize(Jaxpr([], [x], [y], [JaxprEqn([x], [y], registry["neg"], {})]))


BAD = ill_typed()
CASES = {
    "an unknown message": (lambda r: r.frame(b"\x63"), "DeserializationError", "there is no message 99"),
    "a text": (lambda r: r.frame("hello"), "ProtocolError", "messages are binary"),
    "a message of hosts": (lambda r: r.frame(p.encode(p.Ready(1))), "ProtocolError", "a client does not send Ready"),
    "a welcome": (lambda r: r.frame(p.encode(EXAMPLES[0])), "ProtocolError", "does not send Welcome"),
    "a gap": (lambda r: r.frame(p.encode(p.Ping(5))), "ProtocolError", "operation 5 came after 0"),
    "a truncated message": (lambda r: r.frame(p.encode(p.Fetch(1, 2))[:-1]), "DeserializationError", "data ends"),
    "a truncated program": (
        lambda r: r.send(p.Program, content_hash(DATA[:-9]), len(DATA) - 9, DATA[:-9]),
        "DeserializationError",
        ".",
    ),
    "a damaged program": (
        lambda r: r.send(p.Program, HASH, len(DATA), DATA[:-1] + b"\x07"),
        "DeserializationError",
        "does not have the hash",
    ),
    "an ill-typed program": (
        lambda r: r.send(p.Program, content_hash(BAD), len(BAD), BAD),
        "DeserializationError",
        r"declares .*\[4\] where its primitive gives .*\[3\]",
    ),
    "the beginning of a program twice": (
        lambda r: [r.send(p.Program, HASH, len(DATA), DATA[:1]) for _ in range(2)],
        "ProtocolError",
        "come once",
    ),
    "a program forgotten that was not sent": (lambda r: r.send(p.Forget, HASH), "ProtocolError", "of this hash"),
    "a program too many bytes": (lambda r: r.send(p.Program, HASH, 3, DATA), "ProtocolError", "where 3 were announced"),
    "a program without an end": (lambda r: r.send(p.Program, HASH, 1 << 50, b"x"), "LimitError", "exceeds the limit"),
    "a part of nothing": (lambda r: r.send(p.Part, 4, b"x"), "ProtocolError", "takes none"),
    "a program part of nothing": (lambda r: r.send(p.ProgramPart, HASH, b"x"), "ProtocolError", "takes none"),
    "an array too many bytes": (
        lambda r: r.send(p.Put, 4, F32, 0, ONES + b"x"),
        "ProtocolError",
        "13 bytes came where 12 were announced",
    ),
    "an unknown device": (lambda r: r.send(p.Put, 4, F32, 1 << 60, ONES), "ProtocolError", "there is no device"),
    "a handle twice": (
        lambda r: [r.send(p.Put, 4, F32, 0, ONES) for _ in range(2)],
        "ProtocolError",
        "handle 4 is in use",
    ),
    "an unknown handle": (lambda r: r.send(p.Fetch, 77), "ProtocolError", "there is no handle 77"),
    "freeing twice": (
        lambda r: [r.send(p.Put, 4, F32, 0, ONES), r.send(p.Free, (4, 4))],
        "ProtocolError",
        "no handle 4 to free",
    ),
    "an unknown program": (
        lambda r: r.send(p.Compile, 1, b"h" * 32, 0, "f", ()),
        "ProtocolError",
        "a program must come before",
    ),
    "wrong donations": (
        lambda r: [r.send(p.Program, HASH, len(DATA), DATA), r.send(p.Compile, 1, HASH, 0, "f", (False,) * 9)],
        "ProtocolError",
        "9 were described",
    ),
    "running an array": (
        lambda r: [r.send(p.Put, 4, F32, 0, ONES), r.send(p.Execute, 4, (), ())],
        "ProtocolError",
        "is an array, not a compiled program",
    ),
    "wrong arguments": (
        lambda r: [compiled(r), r.send(p.Put, 4, F32, 0, ONES), r.send(p.Execute, 1, (4,), (5,)), r.send(p.Fetch, 5)],
        "ProtocolError",
        "argument 0 is",
    ),
    "wrong results": (
        lambda r: [compiled(r), r.send(p.Put, 4, F32, 0, ONES), r.send(p.Execute, 1, (4,), (5, 6, 7))],
        "ProtocolError",
        "were named",
    ),
    "fetching a program": (lambda r: [compiled(r), r.send(p.Fetch, 1)], "ProtocolError", "is a compiled program"),
    "a strange question": (
        lambda r: [compiled(r), r.send(p.Inspect, 1, "passwords", "")],
        "ProtocolError",
        "nothing is known as 'passwords'",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_ends_a_session(host, case):
    action, error, message = CASES[case]
    with Raw(host.url) as raw:
        action(raw)
        end = raw.end()
    assert end.error == error
    assert re.search(message, end.message), end.message


def test_an_ended_session_can_not_be_resumed(host):
    with Raw(host.url) as raw:
        welcome = raw.welcome
        raw.frame(b"\x63")
        end = raw.end()
    with Raw(host.url, session=welcome) as raw:
        assert (raw.welcome.error, raw.welcome.message) == (end.error, end.message)  # why it ended is remembered


def test_a_failing_operation_does_not_end_a_session(host):
    huge = shaped((1 << 40,), "float32")
    with Raw(host.url) as raw:
        first = raw.send(p.Put, 1, huge, 0, ONES)
        raw.send(p.Part, 1, ONES)
        raw.send(p.Put, 2, F32, 0, ONES)
        fetch = raw.send(p.Fetch, 1)
        error = raw.until(p.Error)
        assert (error.op, error.origin, error.error) == (fetch, first, "LimitError")
        raw.send(p.Fetch, 2)
        assert raw.until(p.Data).data == ONES


def test_pages(host):
    for origin, allowed in [
        ("http://localhost:8000", True),
        ("http://127.0.0.1", True),
        ("http://[::1]:3", True),
        ("https://example.org", False),
        ("null", False),
        ("http://localhost.example.org", False),
        ("http://[", False),
    ]:
        if allowed:
            with Raw(host.url, origin=origin) as raw:
                assert isinstance(raw.welcome, p.Welcome)
        else:
            with Raw(host.url, origin=origin) as raw:
                assert raw.end().error == "AuthenticationError" and "--allow-origin" in raw.welcome.message


def test_pages_that_are_allowed(tmp_path):
    with run_host(tmp_path, "--allow-origin", "https://example.org/") as other:
        with Raw(other.url, origin="https://example.org") as raw:
            assert isinstance(raw.welcome, p.Welcome)


def test_short_operations_are_done_at_once():
    """In the worker's event loop, when nothing is before them."""
    with host_here("cpu") as made, Raw(made.url) as raw:
        compiled(raw)
        raw.send(p.Ping)
        raw.until(p.Ready)
        (session,) = made.sessions.values()
        performer = session.performer
        for handle in range(100, 110):
            assert becomes(lambda: not performer.waiting and performer.queued == performer.done)
            before = performer.queued
            raw.send(p.Put, handle, F32, 0, ONES)
            assert becomes(lambda: isinstance(v := performer.store.values.get(handle), Stored) and v.array.is_ready())
            raw.send(p.Fetch, handle)
            assert raw.until(p.Data).data == ONES
            raw.send(p.Free, (handle,))
            raw.send(p.Ping)
            raw.until(p.Ready)
            assert performer.queued == before


def test_short_operations_stay_behind_long_ones():
    with host_here("cpu") as made, Raw(made.url) as raw:
        compiled(raw)
        big = shaped((1 << 16,), "float32")
        for k in range(50):
            raw.send(p.Put, 100 + k, F32, 0, ONES)
            if k % 7 == 0:
                raw.send(p.Put, 1000 + k, big, 0, bytes(1 << 18))
                raw.send(p.Fetch, 1000 + k)
                raw.send(p.Free, (1000 + k,))
            fetch = raw.send(p.Fetch, 100 + k)
            raw.send(p.Free, (100 + k,))
            while (answer := raw.until(p.Data)).op != fetch:
                pass
            assert answer.data == ONES


def test_a_program_that_is_always_short_is_called_at_once_unless_values_decide_how_long_it_takes():
    step = weft.make_jaxpr(lambda x: x * 2)(F32).jaxpr
    loop = weft.make_jaxpr(lambda x: weft.lax.while_loop(lambda v: v[0] < 3, lambda v: v + 1, x))(F32).jaxpr
    inner = weft.make_jaxpr(weft.jit(lambda x: weft.lax.while_loop(lambda v: v[0] < 3, lambda v: v + 1, x)))(F32).jaxpr
    for jaxpr, short in ((step, True), (loop, False), (inner, False)):
        made = Executable(SimpleNamespace(memory_analysis=dict), jaxpr, None, False)
        for _ in range(3):
            assert not made.is_short
            made.took(1e-5, True)
        assert made.is_short is short
        made.took(1e-5, False)  # its results were not there yet
        assert not made.is_short
