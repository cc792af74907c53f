"""What a client stops ends with the process that computes it, and its session goes on in another one: nothing that was
there before is lost, and what was asked for afterwards is done.
"""

import asyncio
import collections
import contextlib
import io
import itertools
import os
import random
import re
import signal
import sys
import threading
import time

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from hosts import becomes, interruptible, lives, run_host
from platforms import need
from raw import F32, ONES, Raw
from weft import lax
from weft.base.avals import shaped
from weft.serialization.binary import DeserializationError
from weft.serialization.programs import content_hash, serialize
from weft.transforms.portable import portable
from weft_native.host import state
from weft_native.host.limits import Limits
from weft_native.host.memory import of_host
from weft_native.host.programs import Programs
from weft_native.host.session import HostSession
from weft_native.host.values import Answer
from weft_remote import errors
from weft_remote import protocol as p
from weft_remote.errors import LimitError, ProtocolError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes for sessions are Linux's")
MIB = 1 << 20
ONES_HERE = np.ones(3, np.float32)
LONG = shaped((3 * MIB // 4 + 5,), "float32")  # comes and goes in several messages


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A host with a process for each session."""
    need("cpu")
    with run_host(tmp_path_factory.mktemp("moves"), "--platform", "cpu", "--log-level", "info") as host:
        yield host


def forever(x):
    return lax.while_loop(lambda v: v[0] > -1, lambda v: jnp.sin(v) ** 2 + 1, x)


def compiled(raw, handle: int, fun, *avals, donated=()) -> int:
    data = serialize(portable(weft.make_jaxpr(fun)(*avals).jaxpr)[0])
    digest = content_hash(data)
    raw.send(p.Program, digest, len(data), data)
    return raw.send(p.Compile, handle, digest, 0, "f", donated or (False,) * len(avals))


def processes(host) -> list[int]:
    return [int(pid) for pid in re.findall(r"goes on in process (\d+)", host.log.read_text())]


def computes(host, seconds: float = 0.1) -> None:
    """Returns when the process of the newest session has computed for so long."""
    pid = re.findall(r"(?:begins|goes on) in process (\d+)", host.log.read_text())[-1]

    def ticks() -> int:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rsplit(")", 1)[1].split()[11])

    before = ticks()
    assert becomes(lambda: ticks() >= before + 100 * seconds)


@contextlib.contextmanager
def interrupted(host):
    """The main thread gets Ctrl-C when the newest session computes; again, as from a user, where Python drops it: it
    does in what it calls for the garbage collector.
    """
    heard = threading.Event()

    def run() -> None:
        try:
            computes(host, 0.5)  # longer than it takes to compile
        finally:  # else the main thread waits without end
            os.kill(os.getpid(), signal.SIGINT)
            while not heard.wait(10):
                os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=run)
    with interruptible():
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            yield
        heard.set()
        thread.join(20)


def test_parts_on_several_devices_move_too(many):
    """And a program over them is compiled again."""
    with many.connect(default=True) as session:
        mesh = weft.make_mesh((4,), ("x",), devices=session.devices()[:4])
        where = weft.NamedSharding(mesh, weft.P("x"))
        x = weft.device_put(np.arange(8, dtype=np.float32), where)
        f = weft.jit(lambda x: x * 2 + x.sum())
        want = np.asarray(f(x))
        y = f(x)
        y.block_until_ready()
        with interrupted(many):
            np.asarray(weft.jit(forever)(weft.device_put(ONES_HERE, session.devices()[1])))
        np.testing.assert_array_equal(y, want)
        assert f(y).sharding.is_equivalent_to(where, 1) and session.stats.connections == 2
        assert [s.data.device for s in y.addressable_shards] == session.devices()[:4]
        np.testing.assert_array_equal(f(y), want * 2 + want.sum())


def moved(raw, count: int = 1) -> Raw:
    """The connection of a session after it has moved."""
    while (message := raw.receive()) is not None:
        assert not isinstance(message, p.End), message
    again = Raw(raw.url, session=raw.welcome)
    assert isinstance(again.welcome, p.Welcome), again.welcome
    again.ops = raw.ops
    return again


def test_ctrl_c_ends_a_computation_and_keeps_the_session(many):
    with many.connect(name="stopped") as session:
        device = session.devices()[0]
        x = weft.device_put(np.arange(1 << 20, dtype=np.float32), device)
        double = weft.jit(lambda v: v * 2, device=device)
        y = double(x)
        before = len(processes(many))
        with interrupted(many):
            np.asarray(weft.jit(forever, device=device)(x))
        np.testing.assert_array_equal(double(y), np.arange(1 << 20) * 4.0)
        np.testing.assert_array_equal(x, np.arange(1 << 20))
        assert len(processes(many)) == before + 1 and session.stats.connections == 2
        with interrupted(many):
            np.asarray(weft.jit(forever, device=device)(y))
        np.testing.assert_array_equal(double(x), y)
        (first, second) = processes(many)[before:]
        assert becomes(lambda: not lives(first)) and lives(second)
    assert becomes(lambda: not lives(second))


def test_clients_hear_of_what_takes_long(many):
    def slow_to_compile(x):
        for k in range(3000):
            x = jnp.sin(x) * (1 + k)
        return x

    heard = []
    with many.connect() as session:
        session.on_progress = heard.append
        device = session.devices()[0]
        x = weft.device_put(np.ones(3, np.float32), device)
        weft.jit(slow_to_compile, device=device)(x).block_until_ready()
        stages = {(h.name, h.stage) for h in heard}
        assert ("slow_to_compile", "compiling") in stages, heard
        with interrupted(many):
            y = weft.jit(forever, device=device)(x)
            z = y + 1
            np.asarray(z)
        assert becomes(lambda: session.progress.stage == "running")
        assert session.progress.name == "forever" and session.progress.seconds >= 0.2
        np.testing.assert_array_equal(x + 1, 2 * np.ones(3))


def test_a_compilation_that_is_stopped_does_not_delay_what_follows(many):
    def bomb(x):
        for k in range(6000):
            x = jnp.sin(x) * (1 + k)
        return x

    with Raw(many.url) as raw:
        compiled(raw, 100, lambda x: x + 1, F32)
        raw.until(p.Compiled)
        compiled(raw, 101, bomb, F32)
        raw.send(p.Put, 1, F32, 0, ONES)
        raw.send(p.Execute, 101, (1,), (2,))
        assert becomes(lambda: "compiling f (12000 equations)" in many.log.read_text())
        computes(many, 0.2)
        raw.frame(p.encode(p.Cancel(raw.send(p.Ping))))
        raw.send(p.Execute, 100, (1,), (3,))
        fetch = raw.send(p.Fetch, 3)
        with moved(raw) as again:
            answer = again.until(p.Data)
            assert answer.op == fetch and answer.data == (2 * np.ones(3, np.float32)).tobytes()


def test_everything_that_a_session_has_and_owes_goes_along(many):
    """Arrays, programs, failures, half an upload, replies that are not settled, and operations that have not begun."""
    long = np.arange(LONG.shape[0], dtype=np.float32)
    with Raw(many.url) as raw:
        compiled(raw, 100, lambda x: x + 1, F32)
        compiled(raw, 101, forever, F32)
        last = compiled(raw, 102, lambda x: (x - 1, x * 2), F32)
        while raw.until(p.Compiled).op != last:
            pass
        raw.send(p.Put, 1, F32, 0, ONES)
        raw.send(p.Put, 2, LONG, 0, long[: MIB // 4].tobytes())
        raw.send(p.Part, 2, long[MIB // 4 : MIB // 2].tobytes())
        raw.send(p.Put, 3, LONG, 0, long.tobytes()[:MIB])  # its rest comes later
        raw.send(p.Execute, 100, (1,), (4,))
        raw.send(p.Put, 5, shaped((1 << 40,), "float32"), 0, b"")  # takes too much
        failed = raw.send(p.Fetch, 5)
        assert raw.until(p.Error).op == failed  # not settled
        raw.send(p.Execute, 101, (1,), (6,))
        raw.send(p.Execute, 102, (4,), (7, 8))  # dropped before it begins, or stopped
        read, wait = raw.send(p.Fetch, 6), raw.send(p.Wait, 8)
        raw.send(p.Ping)
        computes(many)
        raw.frame(p.encode(p.Cancel(wait)))
        raw.send(p.Part, 2, long[MIB // 2 :].tobytes())
        raw.send(p.Part, 3, long.tobytes()[MIB:])
        raw.send(p.Execute, 102, (4,), (9, 10))
        wanted = {raw.send(p.Fetch, h): h for h in (2, 3, 9, 10)}
        with moved(raw) as again:
            assert again.welcome.received <= wait + 8
            refused, data, missing = {}, {op: bytearray() for op in wanted}, set(wanted)
            while missing or len(refused) < 3:
                message = again.receive()
                assert not isinstance(message, p.End), message
                if isinstance(message, p.Error):
                    refused[message.op] = message.message
                elif isinstance(message, p.Data):
                    data[message.op] += message.data
                    if len(data[message.op]) == message.size:
                        missing.remove(message.op)
                    again.frame(p.encode(p.Credit(message.op, len(data[message.op]))))
            assert "takes" in refused[failed]
            assert all("stopped by its client" in refused[op] for op in (read, wait))
            values = {h: np.frombuffer(data[op], np.float32) for op, h in wanted.items()}
            np.testing.assert_array_equal(values[2], long)
            np.testing.assert_array_equal(values[3], long)
            np.testing.assert_array_equal(values[9], np.ones(3))
            np.testing.assert_array_equal(values[10], 4 * np.ones(3))


def test_what_was_given_to_a_stopped_computation_is_gone(many):
    with Raw(many.url) as raw:
        compiled(raw, 101, forever, F32, donated=(True,))
        raw.until(p.Compiled)
        raw.send(p.Put, 1, F32, 0, ONES)
        raw.send(p.Put, 2, F32, 0, ONES)
        stopped = raw.send(p.Execute, 101, (1,), (3,))
        computes(many)
        raw.frame(p.encode(p.Cancel(raw.send(p.Ping))))
        with moved(raw) as again:
            for handle, origin in ((1, 0), (3, stopped)):
                again.send(p.Fetch, handle)
                error = again.until(p.Error)
                assert "stopped by its client" in error.message and error.origin == origin
            again.send(p.Fetch, 2)
            assert again.until(p.Data).data == ONES


def test_a_program_that_reports_is_stopped(many):
    said = []

    def talk(x):
        def step(v):
            weft.debug.callback(lambda k: said.append(int(k)), v[0])
            return v + 1

        return lax.while_loop(lambda v: v[0] > -1, step, x)

    with many.connect() as session:
        x = weft.device_put(np.ones(2, np.int32), session.devices()[0])
        with interrupted(many):
            np.asarray(weft.jit(talk, device=session.devices()[0])(x))
        assert said[:3] == [1, 2, 3]
        np.testing.assert_array_equal(x + 1, [2, 2])


def test_what_ends_by_itself_does_not_move(many):
    """A computation that is almost done when it is cancelled."""
    with many.connect() as session:
        device = session.devices()[0]
        x = weft.device_put(np.ones(3, np.float32), device)
        before = len(processes(many))
        y = weft.jit(lambda v: v + 1, device=device)(x)
        session.cancel()
        time.sleep(0.3)  # longer than the host's patience
        np.testing.assert_array_equal(x + 1, 2 * np.ones(3))
        with contextlib.suppress(errors.BackendError):
            np.asarray(y)
        assert len(processes(many)) == before


def test_a_process_that_ends_while_a_session_moves(many):
    """The client is told that its arrays are gone; nobody waits without end."""
    big = shaped((64 * MIB,), "float32")
    with Raw(many.url) as raw:
        compiled(raw, 101, forever, F32)
        raw.until(p.Compiled)
        raw.send(p.Put, 1, F32, 0, ONES)
        raw.send(p.Put, 2, big, 0, b"")
        for _ in range(256):
            raw.send(p.Part, 2, bytes(MIB))
        raw.send(p.Ping)
        raw.until(p.Ready)  # else it counts as computing that the process takes them
        raw.send(p.Execute, 101, (1,), (3,))
        computes(many)
        before = len(processes(many))
        raw.frame(p.encode(p.Cancel(raw.send(p.Ping))))
        assert becomes(lambda: len(processes(many)) > before)
        os.kill(processes(many)[-1], signal.SIGKILL)
        assert isinstance(raw.welcome, p.Welcome)
        while raw.receive() is not None:
            pass

        def told() -> bool:
            with Raw(many.url, session=raw.welcome) as again:
                return isinstance(again.welcome, p.End) and "killed" in again.welcome.message

        assert becomes(told)


def fresh() -> HostSession:
    limits = Limits()
    devices = weft.devices("reference")
    return HostSession(Programs(limits), devices, limits, of_host(limits.total_bytes), "test", lambda session: None)


async def example() -> bytes:
    """What is left of a session that has something of everything."""
    session = fresh()
    data = serialize(portable(weft.make_jaxpr(lambda x: x + 1)(F32).jaxpr)[0])
    digest, ops = content_hash(data), itertools.count(1)
    for make in (
        lambda op: p.Program(op, digest, len(data), data),
        lambda op: p.Compile(op, 100, digest, 0, "f", (False,)),
        lambda op: p.Put(op, 1, F32, 0, ONES),
        lambda op: p.Put(op, 2, LONG, 0, bytes(100)),
        lambda op: p.Execute(op, 100, (1,), (3,)),
        lambda op: p.Fetch(op, 3),
        lambda op: p.Inspect(op, 100, "cost", ""),
        p.Ping,
    ):
        session.accept(make(next(ops)), 1)
    while len(session.replies) < 3:
        await asyncio.sleep(0.01)
    session.leave()
    session.performer.park(20)
    session.performer.queue.append((p.Fetch(9, 3), 10))
    file = io.BytesIO()
    state.write(state.save(session), file)
    return file.getvalue()


def test_a_restored_session_is_the_same():
    async def run() -> None:
        data = await example()
        session = fresh()
        state.restore(session, state.read(io.BytesIO(data)))
        again = io.BytesIO()
        state.write(state.save(session), again)
        assert again.getvalue() == data
        session.performer.start()
        while len(session.replies) < 4:
            await asyncio.sleep(0.01)
        assert bytes(session.replies[9].data) == (2 * np.ones(3, np.float32)).tobytes()

    asyncio.run(run())


def test_a_reply_that_comes_while_a_session_leaves_goes_along():
    """It is owed by the process that goes on, once; and the process sends it that goes on after all."""

    async def run() -> None:
        session = fresh()
        late, read = Answer(p.Ready(1)), Answer(p.Ready(2))
        session.performer.waiting.add(2)
        session.leave()
        session.reply(1, late)
        session.performer._have_read(2, read)
        assert [m for m in state.save(session) if isinstance(m, state.Owed)] == [
            state.Owed(1, p.encode(late.message)),
            state.Owed(2, p.encode(read.message)),
        ]
        session.performer.waiting.add(3)
        owed = {m.op: m.data for m in state.save(session) if isinstance(m, state.Owed)}
        assert sorted(owed) == [1, 2, 3] and b"stopped by its client" in owed[3]
        session.stay()
        assert list(session.replies) == [1, 2] and not session.moved

    asyncio.run(run())


def test_damaged_sessions_are_refused():
    async def run() -> None:
        data, random_ = await example(), random.Random(0)
        for _ in range(400):
            damaged = bytearray(data)
            for _ in range(random_.randint(1, 4)):
                at = random_.randrange(len(damaged))
                damaged[at] = random_.choice((0, 1, 127, 255, damaged[at] ^ (1 << random_.randrange(8))))
            if random_.random() < 0.2:
                del damaged[random_.randrange(len(damaged)) :]
            try:
                state.restore(fresh(), state.read(io.BytesIO(damaged)))
                outcomes["accepted"] += 1
            except (ProtocolError, LimitError, DeserializationError, EOFError) as e:
                outcomes[type(e).__name__] += 1

    outcomes = collections.Counter[str]()
    asyncio.run(run())
    assert set(outcomes) >= {"accepted", "ProtocolError", "DeserializationError", "EOFError"}, outcomes
