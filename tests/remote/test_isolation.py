"""What a session may do to a host, each on XLA: it ends alone, within its limits, with an error that says why; others
do not notice.
"""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from hosts import TOKEN, run_host
from platforms import need
from raw import F32, Raw
from websockets.exceptions import ConnectionClosed
from weft import lax
from weft.base.avals import shaped
from weft.serialization.programs import content_hash, serialize
from weft.transforms.portable import portable
from weft_remote import errors
from weft_remote import protocol as p

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes for sessions are Linux's")
SECONDS, MIB = 2.0, 1 << 20


@pytest.fixture(scope="module")
def strict(tmp_path_factory):
    need("cpu")
    options = {"seconds": SECONDS, "session-bytes": 64 * MIB, "compile-bytes": 768 * MIB, "log-level": "info"}
    flags = [x for k, v in options.items() for x in (f"--{k}", str(v))]
    with run_host(tmp_path_factory.mktemp("strict"), "--platform", "cpu", *flags) as host:
        yield host


@contextlib.contextmanager
def beside(host):
    """A session that calls a small function all the time; the durations of its calls."""
    durations, stop, failed = [], threading.Event(), []

    def run():
        try:
            with host.connect(name="beside") as session:
                f = weft.jit(lambda x: x * 0.5 + 1, device=session.devices()[0])
                x = f(weft.device_put(np.float32(2), session.devices()[0]))
                float(x)
                while not stop.is_set():
                    began = time.monotonic()
                    float(f(x))
                    durations.append(time.monotonic() - began)
                    stop.wait(0.02)
        except Exception as e:
            failed.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        while not durations and not failed:
            time.sleep(0.01)
        before, began = len(durations), time.monotonic()
        yield durations
    finally:
        stop.set()
        thread.join(60)
    assert not failed, failed
    assert len(durations) - before >= 3 or time.monotonic() - began < 1, "it has waited for the others"


def process(host, name: str) -> int:
    """The process of the newest session of a client."""
    found = re.findall(rf"session \d+ '{name}' begins in process (\d+)", host.log.read_text())
    return int(found[-1])


def ends(pid: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if "\nState:\tZ" in pathlib.Path(f"/proc/{pid}/status").read_text():
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False


def forever(x):
    return lax.while_loop(lambda v: v > 0, lambda v: jnp.sin(v) ** 2 + 1, x)


def bomb(equations: int):
    def f(x):
        for k in range(equations):
            x = jnp.sin(x) * (1 + k)
        return x

    return f


def sent(raw, fun, *avals, donated=()) -> int:
    """Compiles a function as handle 100."""
    data = serialize(portable(weft.make_jaxpr(fun)(*avals).jaxpr)[0])
    digest = content_hash(data)
    for at in range(0, len(data), MIB):
        part = data[at : at + MIB]
        raw.send(p.ProgramPart, digest, part) if at else raw.send(p.Program, digest, len(data), part)
    return raw.send(p.Compile, 100, digest, 0, "f", donated or (False,) * len(avals))


def outcome(raw, seconds: float) -> p.End:
    """Why a session has ended, whether its connection says so or the host, when it is asked again."""
    began = time.monotonic()
    while True:
        try:
            message = raw.receive(seconds)
        except TimeoutError:
            pytest.fail(f"nothing came in {seconds} s")
        if isinstance(message, p.End):
            return message
        if message is None:
            with Raw(raw.url, session=raw.welcome) as again:
                if again.welcome is not None:
                    assert isinstance(again.welcome, p.End), again.welcome
                    return again.welcome
            time.sleep(0.05)  # it went to the worker that ends at this moment
        assert time.monotonic() - began < seconds


def test_two_endless_loops(strict):
    """They are dispatched, and take all of XLA's threads; processes that end give them back."""
    with beside(strict):
        for _ in range(2):
            with strict.connect(name="endless") as session:
                began = time.monotonic()
                with pytest.raises(errors.LimitError, match="longer than 2 s"):
                    float(weft.jit(forever, device=session.devices()[0])(np.float32(1)))
                assert time.monotonic() - began < SECONDS + 20
            assert ends(process(strict, "endless"), 60)


def keep_sending(raw) -> None:
    with contextlib.suppress(ConnectionClosed):  # until the host has had enough
        for k in range(1, 100):
            raw.send(p.Execute, 100, (k,), (k + 1,))
            time.sleep(0.3)


def test_an_endless_chain_of_calls_that_donate_their_results(strict):
    """Each result is given away before it is there: what it was computed by is watched all the same."""

    def endless(x):
        return lax.while_loop(lambda v: v[0] > -2, lambda v: jnp.sin(v) * 1.0001, x)

    aval = shaped((1 << 10,), "float32")
    with beside(strict), Raw(strict.url) as raw:
        sent(raw, endless, aval, donated=(True,))
        raw.send(p.Put, 1, aval, 0, bytes(4 << 10))
        began = time.monotonic()
        sending = threading.Thread(target=lambda: keep_sending(raw))
        sending.start()
        assert re.search("longer than 2 s|ran", outcome(raw, 120).message)
        assert time.monotonic() - began < 4 * SECONDS + 20
        sending.join(30)


def test_many_calls_in_a_row_are_no_long_one(strict):
    """Only computing counts, and each computation by itself."""

    def f(x):
        return lax.fori_loop(0, 12_000, lambda i, v: jnp.sin(v) * 1.0001, x)

    with strict.connect() as session:
        g = weft.jit(f, device=session.devices()[0], donate_argnums=0)
        x = weft.device_put(np.ones(1 << 10, np.float32), session.devices()[0])
        began = time.monotonic()
        for _ in range(200):
            x = g(x)
            if time.monotonic() - began > 2 * SECONDS:
                break
        assert np.isfinite(np.asarray(x)).all()


def test_a_compile_bomb(strict):
    with beside(strict), Raw(strict.url) as raw:
        sent(raw, bomb(12_000), F32)
        began = time.monotonic()
        end = outcome(raw, 120)
        assert end.error == "LimitError" and re.search("took longer than 2 s|gave no sign|ran", end.message), end
        assert time.monotonic() - began < 15


def test_a_switch_of_twenty_thousand_branches(strict):
    branches = [lambda x, k=k: x * k for k in range(20_000)]
    with beside(strict), Raw(strict.url) as raw:
        sent(raw, lambda i, x: lax.switch(i, branches, x), shaped((), "int32"), F32)
        end = outcome(raw, 120)
        assert end.error == "LimitError", end


def test_calls_that_double(strict):
    def level(k):
        inner = weft.jit(lambda x: jnp.sin(x)) if k == 0 else level(k - 1)
        return weft.jit(lambda x: inner(x) + inner(x * 2))

    with beside(strict), Raw(strict.url) as raw:
        sent(raw, level(14), F32)
        end = outcome(raw, 120)
        assert "a program of 163835 equations exceeds the limit of 100000" in end.message, end
    with beside(strict), Raw(strict.url) as raw:
        sent(raw, level(13), F32)  # as many as are allowed: it takes its time, and its memory
        end = outcome(raw, 120)
        assert end.error == "LimitError", end


def test_memory_that_the_compiler_takes(tmp_path):
    """No account of arrays knows of it: 40 kB of program take gigabytes."""
    need("cpu")
    branches = [lambda x, k=k: x * k for k in range(20_000)]
    flags = ("--session-bytes", str(64 * MIB), "--compile-bytes", str(MIB), "--seconds", "100")
    with run_host(tmp_path, "--platform", "cpu", *flags) as host, beside(host), Raw(host.url) as raw:
        sent(raw, lambda i, x: lax.switch(i, branches, x), shaped((), "int32"), F32)
        end = outcome(raw, 100)
        assert end.error == "LimitError" and "out of memory" in end.message, end


def test_a_terabyte_of_intermediate_results(strict):
    def f(x):
        y = jnp.sin(x * jnp.arange(1 << 20, dtype=jnp.float32))  # 4 MiB
        z = lax.map(lambda v: jnp.sort(v * y), y[:15])  # 60
        return sum(lax.map(lambda v: jnp.sort(v * z.reshape(-1)), y[:12]).sum() for _ in range(3))  # and 720 each

    with beside(strict), strict.connect() as session:
        with pytest.raises((errors.LimitError, weft.errors.WeftError), match="exceeds the limit|takes|may have"):
            float(weft.jit(f, device=session.devices()[0])(np.float32(1)))


def test_the_processor_time_of_a_session_has_a_limit(tmp_path):
    """In all its computations together, each of which may be short, and in all the processes that it has had."""
    with run_host(tmp_path, "--platform", "cpu", "--cpu-seconds", "3") as host, beside(host):
        with host.connect(name="long") as session:
            device = session.devices()[0]
            step = weft.jit(lambda x: lax.fori_loop(0, 200_000, lambda i, v: jnp.sin(v) + 1, x), device=device)
            x = weft.device_put(np.ones(64, np.float32), device)
            with pytest.raises(errors.LimitError, match=r"taken \d\.\d s of processor time, and 3 s are allowed"):
                until = time.monotonic() + 120
                while time.monotonic() < until:
                    x = step(x)
                    x.block_until_ready()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_a_worker_that_dies(strict, number):
    said = "out of memory" if number == signal.SIGKILL else f"crashed by signal {int(number)}"
    with beside(strict), strict.connect(name="dies") as session:
        x = weft.device_put(np.ones(3, np.float32), session.devices()[0]) + 1
        session.ping()
        os.kill(process(strict, "dies"), number)
        began = time.monotonic()
        with pytest.raises(weft.errors.BackendError, match=said):
            np.asarray(x)
        assert time.monotonic() - began < 30  # not the time of grace


def test_a_client_that_is_killed_gives_its_memory_back(strict):
    code = f"""
import numpy as np, weft, weft.remote, time
s = weft.remote.connect({strict.url!r}, token={TOKEN!r}, name="victim")
f = weft.jit(lambda x: weft.lax.while_loop(lambda v: v > 0, lambda v: weft.numpy.sin(v) ** 2 + 1, x))
y = f(weft.device_put(np.float32(1), s.devices()[0]))
s.transport.wake(); print("ready", flush=True); time.sleep(60)
"""
    client = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert client.stdout.readline() == "ready\n"
        time.sleep(0.3)
    finally:
        client.kill()
        client.wait()
        client.stdout.close()
    assert ends(process(strict, "victim"), SECONDS + 8)


def test_a_host_that_is_killed(tmp_path):
    """Its clients hear of it at once, and its workers end with it."""
    with run_host(tmp_path, "--log-level", "info") as host:
        session = host.connect(name="left")
        x = weft.device_put(np.ones(3, np.float32), session.devices()[0]) + 1
        session.ping()
        pid = process(host, "left")
        host.process.kill()
        assert ends(pid, 60)
        began = time.monotonic()
        with pytest.raises(errors.ConnectionLost, match="the host has ended"):
            np.asarray(x + 1)
        assert time.monotonic() - began < 30
        host.process.poll = lambda: None


def test_a_fetch_before_its_array_is_given_away(strict):
    """A fetch and a call that donates the same array: the fetch comes first."""
    aval = shaped((1 << 18,), "float32")
    data = np.arange(1 << 18, dtype=np.float32).tobytes()
    with Raw(strict.url) as raw:
        sent(raw, lambda x: x * 0 - 1, aval, donated=(True,))
        raw.send(p.Put, 1, aval, 0, data)
        for k in range(1, 20):
            fetch = raw.send(p.Fetch, k)
            raw.send(p.Execute, 100, (k,), (k + 1,))
            raw.send(p.Put, 1000 + k, aval, 0, bytes(1 << 20))
            raw.send(p.Free, (1000 + k,))
            answer = raw.until((p.Data, p.Error))
            assert isinstance(answer, p.Data) and answer.op == fetch, answer
            want = data if k == 1 else np.full(1 << 18, -1, np.float32).tobytes()
            assert answer.data == want
            raw.frame(p.encode(p.Settled((fetch,))))


def test_an_array_is_sent_as_it_was_when_it_was_asked_for(strict):
    """Its memory is given away and written while it is still on its way."""
    size = 12 * MIB
    aval = shaped((size,), "uint8")
    with Raw(strict.url) as raw:
        sent(raw, lambda x: x * 0 + 7, aval, donated=(True,))
        for at in range(0, size, MIB):
            raw.send(p.Part, 1, b"\x03" * MIB) if at else raw.send(p.Put, 1, aval, 0, b"\x03" * MIB)
        fetch = raw.send(p.Fetch, 1)
        raw.send(p.Execute, 100, (1,), (2,))
        raw.send(p.Wait, 2)
        have = bytearray()
        ready = False
        while len(have) < size:
            message = raw.until((p.Data, p.Ready, p.Error))
            assert not isinstance(message, p.Error), message
            if isinstance(message, p.Ready):
                ready = True
            else:
                have += message.data
            if ready:  # only now the rest may come
                raw.frame(p.encode(p.Credit(fetch, len(have))))
        assert set(have) == {3}


def test_large_products_do_not_keep_a_light_session_waiting(strict):
    stop, failed = threading.Event(), []

    def heavy():
        try:
            with strict.connect() as session:
                f = weft.jit(lambda x: x @ x * 1e-3, device=session.devices()[0])
                x = weft.device_put(np.ones((512, 512), np.float32), session.devices()[0])
                while not stop.is_set():
                    for _ in range(20):
                        x = f(x)
                    x.block_until_ready()
        except Exception as e:
            failed.append(e)

    threads = [threading.Thread(target=heavy) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        with beside(strict) as durations:
            time.sleep(3)
        assert len(durations) > 5
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    assert not failed, failed


def test_a_stop_of_all_processes_tells_the_clients():
    """As service managers stop a host."""
    command = [sys.executable, "-W", "ignore", "-m", "weft_native.host", "--port", "0", "--token", TOKEN]
    with subprocess.Popen(
        [*command, "--platform", "reference"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        url = re.search(r"ws://[\d.:]+", process.stdout.readline())[0]
        session = weft.remote.connect(url, token=TOKEN)
        session.ping()
        os.killpg(process.pid, signal.SIGTERM)
        with pytest.raises(errors.ConnectionLost, match="shutting down"):
            for _ in range(200):
                session.ping()
                time.sleep(0.02)
        assert process.wait(60) == 0 and process.stderr.read() == ""
