"""Memory of the host: taken as bytes arrive, counted for each session and for all together, and given back however a
session goes.
"""

import gc
import hashlib
import pathlib
import time

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from hosts import host_here, run_host
from raw import F32, ONES, Raw, program
from weft.base.avals import shaped
from weft.transforms.portable import portable
from weft.serialization.programs import serialize
from weft.runtime.device import backend_of
from weft_native.host import link
from weft_native.host.limits import PROGRAM_WEIGHT, WINDOW
from weft_native.host.memory import Charge, Tally, of_host
from weft_remote import protocol as p
from weft_remote.errors import LimitError

GIB, MIB = 1 << 30, 1 << 20
BIG = shaped((200_000,), "float32")  # 800,000 bytes
DATA = np.ones(200_000, np.float32).tobytes()


def peak(host) -> int:
    """The largest number of bytes that a process has had in memory."""
    status = pathlib.Path(f"/proc/{host.process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) << 10


def settle(raw) -> None:
    """Returns when the host has done everything up to now."""
    op = raw.send(p.Ping)
    while raw.until(p.Ready).op != op:
        pass


def upload(raw, handle: int, data: bytes = DATA, aval=BIG) -> None:
    raw.send(p.Put, handle, aval, 0, data[:MIB])
    for at in range(MIB, len(data), MIB):
        raw.send(p.Part, handle, data[at : at + MIB])


def fetched(raw, handle: int):
    """The first part of an array, or the failure in its place."""
    raw.send(p.Fetch, handle)
    while not isinstance(answer := raw.receive(), (p.Data, p.Error, p.End)):
        assert answer is not None
    return answer


def empties(host) -> bool:
    """Whether all memory comes back."""
    until = time.monotonic() + 20
    while host.memory.used and time.monotonic() < until:
        gc.collect()
        time.sleep(0.02)
    return host.memory.used == 0


@pytest.mark.skipif(not pathlib.Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_an_announced_upload_takes_no_memory(tmp_path):
    with (
        run_host(tmp_path, "--session-bytes", str(64 * GIB), "--total-bytes", str(64 * GIB)) as host,
        Raw(host.url) as raw,
    ):
        raw.send(p.Put, 1, F32, 0, ONES)
        settle(raw)
        before = peak(host)
        for handle in (2, 3, 4):
            raw.send(p.Put, handle, shaped((1 << 30,), "float32"), 0, bytes(21))
        raw.send(p.Program, bytes(32), 16 << 20, b"")
        settle(raw)
        assert peak(host) - before < 4 * MIB
        # others come through
        upload(raw, 5, np.arange(1 << 20, dtype=np.float32).tobytes(), shaped((1 << 20,), "float32"))
        answer = fetched(raw, 5)
        assert answer.size == 4 << 20 and answer.data[:12] == np.arange(3, dtype=np.float32).tobytes()


def test_announcing_does_not_lock_others_out():
    """What a session says that it will send counts for itself; for all together counts what has come."""
    with host_here(session_bytes=10 * MIB, total_bytes=2 * MIB) as host, Raw(host.url) as liar, Raw(host.url) as other:
        liar.send(p.Put, 1, shaped((2 * MIB,), "float32"), 0, bytes(21))
        settle(liar)
        assert host.memory.used == 21
        upload(other, 1)
        assert isinstance(fetched(other, 1), p.Data)
        liar.send(p.Put, 2, shaped((2 * MIB,), "float32"), 0, b"")  # 16 of 10 MiB
        answer = fetched(liar, 2)
        assert answer.error == "LimitError" and "the session has 8388608 of the 10485760" in answer.message


def test_all_sessions_together_have_a_bound():
    with host_here(session_bytes=MIB, total_bytes=2 * MIB) as host:
        with Raw(host.url) as one, Raw(host.url) as two, Raw(host.url) as three:
            for raw in (one, two, three):
                upload(raw, 1)
                settle(raw)
            answer = fetched(three, 1)
            assert (
                answer.error == "LimitError"
                and "takes 800000 bytes more; all sessions of this host together have 1600000 of the 2097152"
                in answer.message
            )
            one.frame(p.encode(p.Bye()))
            assert one.end().error == "ConnectionLost"
            until = time.monotonic() + 20
            while host.memory.used > 800_000 and time.monotonic() < until:
                time.sleep(0.02)
            upload(three, 2)
            assert isinstance(fetched(three, 2), p.Data)
            two.frame(p.encode(p.Bye()))
            three.frame(p.encode(p.Bye()))
        assert empties(host)


def test_an_upload_for_which_there_is_no_room_fails_alone():
    with host_here(session_bytes=4 * MIB, total_bytes=MIB) as host, Raw(host.url) as raw:
        size = 3 * MIB
        # its second part exceeds the bound, the third comes all the same
        upload(raw, 1, bytes(size), shaped((size,), "uint8"))
        answer = fetched(raw, 1)
        assert (
            answer.error == "LimitError"
            and "all sessions of this host together have 1048576 of the 1048576" in answer.message
        )
        assert host.memory.used == 0
        upload(raw, 2)
        assert isinstance(fetched(raw, 2), p.Data)


def compiled(raw, fun, *avals, donated=(False,)) -> None:
    """Compiles a function as handle 100."""
    data = serialize(portable(weft.make_jaxpr(fun)(*avals).jaxpr)[0])
    digest = hashlib.sha256(data).digest()
    raw.send(p.Program, digest, len(data), data)
    raw.send(p.Compile, 100, digest, 0, "f", donated)


@pytest.mark.parametrize(
    "way", ["bye", "lost", "violation", "incomplete", "failed upload", "failed computation", "unread", "endless"]
)
def test_memory_comes_back_however_a_session_ends(way, monkeypatch):
    def fails(*args, **kwargs):
        raise RuntimeError("no")

    with host_here(grace=0.1, seconds=1.0) as host:
        with Raw(host.url) as raw:
            upload(raw, 1)
            compiled(raw, jnp.sin, BIG)
            raw.send(p.Execute, 100, (1,), (2,))
            settle(raw)
            weight = PROGRAM_WEIGHT * next(iter(host.programs.checked.entries.values()))[1]
            assert host.memory.used == 2 * len(DATA) + weight
            if way == "incomplete":
                raw.send(p.Put, 3, BIG, 0, DATA[:1000])
                data, digest, *_ = program()
                raw.send(p.Program, digest, len(data), data[:10])
                settle(raw)
                assert host.memory.used == 2 * len(DATA) + weight + 1010
            if way == "failed upload":
                monkeypatch.setattr(type(backend_of(host.devices[0])), "put", fails)
                upload(raw, 3)
                assert fetched(raw, 3).error == "RuntimeError"
                assert host.memory.used == 2 * len(DATA) + weight
            if way == "failed computation":
                monkeypatch.setattr("weft_native.host.programs.Executable.execute", fails)
                raw.send(p.Execute, 100, (1,), (3,))
                assert fetched(raw, 3).error == "RuntimeError"
                assert host.memory.used == 2 * len(DATA) + weight
            if way == "unread":
                assert isinstance(fetched(raw, 2), p.Data)
                raw.send(p.Free, (1, 2))
                settle(raw)
                assert host.memory.used == len(DATA) + weight
            if way == "endless":
                monkeypatch.setattr("weft_native.host.programs.Executable.execute", lambda *_: time.sleep(2))
                raw.send(p.Execute, 100, (1,), (3,))
                assert raw.end().error == "LimitError"
            if way == "violation":
                raw.send(p.Free, (77,))
                assert raw.end().error == "ProtocolError"
            if way in ("bye", "unread", "failed upload"):
                raw.frame(p.encode(p.Bye()))
                assert raw.until(p.End).error == "ConnectionLost"
        assert empties(host)


def test_what_is_freed_settled_or_given_away_comes_back():
    with host_here("cpu") as host, Raw(host.url) as raw:
        upload(raw, 1)
        compiled(raw, lambda x: x + 1, BIG, donated=(True,))
        settle(raw)
        weight = host.memory.used - len(DATA)
        raw.send(p.Execute, 100, (1,), (2,))
        op = raw.send(p.Fetch, 2)
        assert raw.until(p.Data).size == len(DATA)
        assert host.memory.used == len(DATA) + weight  # the result has its argument's memory
        raw.send(p.Execute, 100, (1,), (3,))
        assert "deleted" in fetched(raw, 3).message
        raw.send(p.Free, (1, 2, 3))
        settle(raw)
        assert host.memory.used == len(DATA) + weight  # a reply has it still
        raw.frame(p.encode(p.Settled((op,))))
        settle(raw)
        assert host.memory.used == weight


def test_replies_that_nobody_reads_are_counted():
    with host_here(session_bytes=MIB, total_bytes=4 * MIB) as host, Raw(host.url) as raw:
        upload(raw, 1)
        ops = [raw.send(p.Fetch, 1) for _ in range(2)]
        while not isinstance(answer := raw.receive(), p.Error):
            assert answer is not None
        assert (
            answer.op == ops[1]
            and "takes 800000 bytes; 800000 of at most 1048576 wait for the client" in answer.message
        )
        assert host.memory.used == 800_000


def test_a_download_waits_for_its_client():
    """No more than a window's bytes are on their way without the client's word that it has them."""
    data = bytes(3 * WINDOW)
    with host_here() as host, Raw(host.url) as raw:
        upload(raw, 1, data, shaped((len(data) // 4,), "float32"))
        op, have = raw.send(p.Fetch, 1), 0
        for credited in (0, WINDOW):
            while have < credited + WINDOW:
                have += len(raw.until(p.Data).data)
            with pytest.raises(TimeoutError):
                raw.receive(timeout=0.1)
            raw.frame(p.encode(p.Credit(op, have)))
        while have < len(data):
            have += len(raw.until(p.Data).data)


def test_intermediate_results_wait_for_their_turn():
    """Computations that don't fit beside each other run one after another; the memory of each comes back when it has
    ended.
    """
    with host_here("cpu", session_bytes=10 * MIB, total_bytes=16 * MIB) as host, Raw(host.url) as raw:
        x = np.linspace(0, 1, 256, dtype=np.float32)
        raw.send(p.Put, 1, shaped((256,), "float32"), 0, x.tobytes())

        def f(v):  # 4 MiB that are sorted, and a number
            return jnp.sort(
                jnp.sin(v[:, None, None] * v[None, :, None] + jnp.arange(16.0)[None, None, :]).reshape(-1)
            ).sum()

        compiled(raw, f, shaped((256,), "float32"))
        for handle in range(2, 12):
            raw.send(p.Execute, 100, (1,), (handle,))
        want = float(np.sin(x[:, None, None].astype(np.float64) * x[None, :, None] + np.arange(16.0)).sum())
        for handle in range(2, 12):
            answer = fetched(raw, handle)
            assert isinstance(answer, p.Data), answer
            assert float(np.frombuffer(answer.data, np.float32)[0]) == pytest.approx(want, rel=1e-2)
        (executable,) = [e for e, _ in host.programs.compiled.entries.values()]
        assert executable.temp_bytes > 2 * MIB


def test_programs_are_counted():
    data, digest, *_ = program("gradient of scan")
    with host_here(session_bytes=PROGRAM_WEIGHT * len(data) - 1) as host:
        with Raw(host.url) as raw:
            raw.send(p.Program, digest, len(data), data)
            end = raw.end()
        assert end.error == "LimitError" and "the session's programs have" in end.message
        assert empties(host)


def test_a_charge_is_given_back_once():
    host = of_host(100)
    session = Tally(80, "{what}: {used} + {size} > {limit}")
    charge = Charge(session, host, 50, "an array", 0)
    assert (session.used, host.used) == (50, 0)
    charge.grow(20)
    charge.grow(30)
    with pytest.raises(LimitError, match="another: 50 [+] 31 > 80"):
        Charge(session, host, 31, "another")
    with pytest.raises(LimitError, match="takes 60 bytes more; all sessions of this host together have 50 of the 100"):
        Charge(Tally(1000, ""), host, 60, "a third")
    assert (session.used, host.used) == (50, 50)
    charge.release()
    charge.release()
    del charge
    assert (session.used, host.used) == (0, 0)


def test_a_client_that_does_not_read_is_given_up(monkeypatch):
    """What waits to be sent to it is not held for ever; it is told why when it asks again."""
    monkeypatch.setattr(link, "STALL", 0.5)
    data = bytes(WINDOW)
    with host_here() as host, Raw(host.url, max_queue=1) as raw:
        for handle in range(1, 5):
            upload(raw, handle, data, shaped((len(data) // 4,), "float32"))
        for handle in range(1, 5):
            raw.send(p.Fetch, handle)
        assert empties(host)
        assert not host.sessions
        with Raw(host.url, session=raw.welcome) as again:
            assert again.end().error == "LimitError" and "has not read what was sent" in again.welcome.message
