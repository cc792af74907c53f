"""The limits of a host: what exceeds them is refused before anything is allocated, and others go on."""

import dataclasses
import doctest
import os
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from platforms import need
import weft
import weft.numpy as jnp
from hosts import TOKEN, run_host
from raw import F32, ONES, Raw, program
from weft.serialization.binary import DeserializationError
from weft_native.host.limits import Limits
from weft_remote import errors
from weft_remote import protocol as p
from weft_remote.session import FRAME, Session, Transport

DATA, HASH, N_ARGS, N_OUTS = program()


@pytest.fixture(scope="module")
def tight(tmp_path_factory):
    options = {
        "frame-bytes": 100_000,
        "session-bytes": 1_000_000,
        "handles": 50,
        "program-bytes": 20_000,
        "equations": 200,
        "programs": 3,
        "seconds": 1.5,
        "replies": 20,
        "sessions": 8,
        "queue": 0,
        "grace": 0.2,
    }
    with run_host(
        tmp_path_factory.mktemp("tight"), *[x for k, v in options.items() for x in (f"--{k}", str(v))]
    ) as host:
        yield host


@pytest.fixture(autouse=True)
def others_go_on(tight):
    with tight.connect() as witness:
        x = weft.device_put(np.ones(3, np.float32), witness.devices()[0])
        yield
        assert float((x + 1).sum()) == 6.0


def test_an_oversized_frame(tight):
    with Raw(tight.url) as raw:
        raw.frame(b"\x10" * 100_001)
        try:
            assert raw.end().error == "LimitError"
        except AssertionError:  # the library may close before our word is through
            assert raw.socket.protocol.close_rcvd.code == 1009
    with tight.connect() as session:  # arrays larger than a frame come in parts
        x = np.arange(90_000, dtype=np.float32)
        np.testing.assert_array_equal(np.asarray(weft.device_put(x, session.devices()[0]) + 1), x + 1)


class Waiting(Transport):
    """Sends nothing by itself."""


@pytest.mark.parametrize("frame", [5000, 100_000, 1 << 30])
def test_messages_that_wait_travel_in_frames_that_the_host_takes(frame):
    session = Session("ws://127.0.0.1:1", TOKEN, "", lambda session: Waiting())
    session.start(p.encode(p.Welcome("a", b"secret", 0, 1000, frame, 1 << 20, ("reference", "Reference"))))
    ops = [session.operate(lambda op: p.Execute(op, 1, (2, 3), (4,))) for _ in range(20_000)]
    session._control.extend([p.encode(p.Credit(op, 1 << 20)) for op in ops])
    read = []
    while (data := session.outgoing()) is not None:
        assert len(data) <= min(frame, FRAME)
        read += p.decode(data)
    assert [m.op for m in read if isinstance(m, p.Execute)] == ops
    assert [m.fetch for m in read if isinstance(m, p.Credit)] == ops


def test_a_client_hears_of_an_oversized_frame(tight):
    session = tight.connect()
    session._chunk = lambda: 1 << 20
    weft.device_put(np.zeros(50_000, np.float32), session.devices()[0])
    with pytest.raises(errors.LimitError, match="frame|too big|over size"):
        session.ping()


def test_bytes_of_a_session(tight):
    with tight.connect() as session:
        device = session.devices()[0]
        held = [weft.device_put(np.zeros(100_000, np.float32), device) for _ in range(2)]
        third = weft.device_put(np.zeros(100_000, np.float32), device)
        with pytest.raises(errors.LimitError, match="takes 400000 bytes; the session has 800000 of the 1000000"):
            np.asarray(third + 0)
        del held, third
        session.ping()
        assert float(weft.device_put(np.ones(100_000, np.float32), device).sum()) == 100_000


def test_bytes_of_intermediate_results(tight):
    with tight.connect() as session:
        f = weft.jit(lambda x: jnp.sum(jnp.broadcast_to(x, (1000, 1000)) * x), device=session.devices()[0])
        with pytest.raises(
            (errors.LimitError, DeserializationError), match="exceeds the limit of 1000000|of which a session"
        ):
            float(f(np.float32(1)))


def test_unread_replies(tight):
    with Raw(tight.url) as raw:
        raw.send(p.Put, 1, F32, 0, ONES)
        for _ in range(25):
            raw.send(p.Fetch, 1)
        end = raw.end()
    assert end.error == "LimitError" and "20 replies wait" in end.message


def test_handles(tight):
    with Raw(tight.url) as raw:
        for h in range(51):
            raw.send(p.Put, h, F32, 0, ONES)
        end = raw.end()
    assert end.error == "LimitError" and "50 handles" in end.message


def test_incomplete_uploads(tight):
    with Raw(tight.url) as raw:
        raw.frame(p.encode(*[p.Put(h + 1, h, F32, 0, b"") for h in range(1100)]))
        assert raw.end().error == "LimitError"


def test_size_and_number_of_programs(tight):
    with Raw(tight.url) as raw:
        raw.send(p.Program, HASH, 20_001, b"x")
        assert "20001 bytes exceeds the limit of 20000" in raw.end().message
    with Raw(tight.url) as raw:
        for name in ("integers", "special literals", "booleans", "nothing"):
            data, digest, *_ = program(name)
            raw.send(p.Program, digest, len(data), data)
        assert "3 programs" in raw.end().message


def test_equations_of_a_program(tight):
    def long(x):
        for _ in range(300):
            x = x + 1
        return x

    with tight.connect() as session:
        with pytest.raises(weft.errors.WeftError, match="exceeds the limit"):
            weft.jit(long, device=session.devices()[0])(np.float32(1))
            session.ping()


def test_time_of_a_computation(tight):
    with tight.connect() as session:
        endless = weft.jit(
            lambda x: weft.lax.while_loop(lambda v: v > 0, lambda v: jnp.sin(v) ** 2 + 1, x),
            device=session.devices()[0],
        )
        with pytest.raises(errors.LimitError, match="longer than 1.5 s"):
            float(endless(np.float32(1)))


def test_an_ended_session_says_each_time_why_and_no_more(tight):
    """One exception is raised again and again: its traceback does not grow with each operation that is refused."""

    def depth() -> int:
        with pytest.raises(errors.LimitError, match="longer than 1.5 s") as info:
            for _ in range(3):
                weft.device_put(np.ones(3, np.float32), device)
        return len(info.traceback)

    with tight.connect() as session:
        device = session.devices()[0]
        endless = weft.jit(
            lambda x: weft.lax.while_loop(lambda v: v > 0, lambda v: jnp.sin(v) ** 2 + 1, x), device=device
        )
        with pytest.raises(errors.LimitError):
            float(endless(np.float32(1)))
        first = depth()
        assert [depth() for _ in range(5)] == [first] * 5


def test_time_of_a_computation_on_xla(tmp_path):
    need("cpu")
    with (
        run_host(tmp_path, "--platform", "cpu", "--seconds", "1.5") as host,
        host.connect() as session,
        host.connect() as other,
    ):
        endless = weft.jit(
            lambda x: weft.lax.while_loop(lambda v: v > 0, lambda v: jnp.sin(v) ** 2 + 1, x),
            device=session.devices()[0],
        )
        with pytest.raises(errors.LimitError, match="longer than 1.5 s"):
            float(endless(np.float32(1)))
        assert float(weft.device_put(np.float32(2), other.devices()[0]) * 2) == 4.0


def test_number_of_sessions(tight):
    held = [Raw(tight.url) for _ in range(8)]
    ends = [r.welcome for r in held if isinstance(r.welcome, p.End)]
    assert ends and all(e.error == "LimitError" and "8 sessions already" in e.message for e in ends)
    for r in held:
        if isinstance(r.welcome, p.Welcome):
            r.frame(p.encode(p.Bye()))
            r.end()
        r.socket.close()


def test_what_a_host_says_that_it_grants(tight):
    with Raw(tight.url) as raw:
        assert (raw.welcome.grace_ms, raw.welcome.frame) == (200, 100_000)


def test_what_a_host_grants_where_nothing_is_said():
    assert dataclasses.asdict(Limits()) == {
        "frame_bytes": 4 << 20,
        "session_bytes": 4 << 30,
        "handles": 200_000,
        "program_bytes": 16 << 20,
        "equations": 100_000,
        "programs": 2000,
        "seconds": 300,
        "cpu_seconds": 0,
        "answer": 60,
        "replies": 10_000,
        "grace": 60,
        "unattended": 1,
        "job_seconds": 86_400,
        "compile_bytes": 1 << 30,
        "sessions": 32,
        "queue": 100,
        "total_bytes": 8 << 30,
    }


def command(*options, env=()):
    inherited = {k: v for k, v in os.environ.items() if k != "WEFT_HOST_TOKEN"}
    return [sys.executable, "-W", "ignore", "-m", "weft_native.host", *options], {
        **inherited,
        "TF_CPP_MIN_LOG_LEVEL": "2",
        **dict(env),
    }


@pytest.mark.parametrize(
    "options,code,message",
    [
        (["--host", "0.0.0.0", "--token", "x"], 2, "--allow-remote"),
        (["--token", ""], 2, "the token is empty"),
        (["--platform", "nonsense", "--token", "x"], 1, "unknown platform 'nonsense'"),
    ],
)
def test_the_command_refuses_what_is_unsafe(options, code, message):
    line, env = command(*options)
    done = subprocess.run(line, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == code and message in done.stderr


def test_a_port_in_use(tight):
    line, env = command("--platform", "reference", "--token", "x", "--port", str(tight.port))
    done = subprocess.run(line, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "Choose another port" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "env,stop",
    [({}, signal.SIGTERM), ({"WEFT_HOST_TOKEN": "from the environment"}, signal.SIGINT)],
    ids=["made", "given"],
)
def test_where_the_token_comes_from_and_how_a_host_ends(env, stop):
    line, whole = command("--port", "0", "--platform", "reference", env=env.items())
    host = subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=whole)
    try:
        url = re.search(r"ws://\S+", host.stdout.readline())[0]
        token = env.get("WEFT_HOST_TOKEN") or host.stdout.readline().split()[1]
        with weft.remote.connect(url, token=token) as session:
            session.ping()
    finally:
        host.send_signal(stop)
        assert host.wait(60) == 0
        assert not host.stdout.read()  # a token that was given is not shown
        host.stdout.close()


def test_a_host_ends_although_a_computation_runs():
    """Nothing can stop the computation; the process ends with it."""
    need("cpu")
    line, env = command("--port", "0", "--platform", "cpu", "--token", "x", "--seconds", "600")
    host = subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=env)
    try:
        session = weft.remote.connect(re.search(r"ws://\S+", host.stdout.readline())[0], token="x")
        endless = weft.jit(
            lambda x: weft.lax.while_loop(lambda v: v > 0, lambda v: jnp.sin(v) ** 2 + 1, x),
            device=session.devices()[0],
        )
        lost = []

        def fetch():
            with pytest.raises(weft.errors.BackendError) as e:
                float(endless(np.float32(1)))
            lost.append(e.value)

        fetching = threading.Thread(target=fetch)
        fetching.start()
        time.sleep(4)  # compiling and starting take less, and nothing tells a client of them
        host.send_signal(signal.SIGTERM)
        assert host.wait(60) == 0
        fetching.join(60)
        assert len(lost) == 1
    finally:
        host.kill()
        host.wait()
        host.stdout.close()


def test_examples_of_errors_give_what_they_say(tight):
    names = {"URL": tight.url, "TOKEN": TOKEN}
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    result = doctest.testmod(errors, extraglobs=names, optionflags=options)
    assert result.attempted >= 12 and result.failed == 0
