"""Executables that survive a new start of the host: found again, checked, bounded, and never a worker's own."""

import asyncio
import hashlib
import io
import os
import pathlib
import re
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from hosts import TOKEN, becomes, run_host
from operated import operated
from platforms import need
from raw import program
from test_access import request
from weft import export
from weft.errors import BackendError
from weft_native.host import processor
from weft_native.host.check import _executables as finding
from weft_native.host.control import Channel, Closed, Make, Offer, OfferPart, Seek, Sought, Up
from weft_native.host.executables import LENGTH, Executables, name_of
from weft_native.host.keeper import Keeper
from weft_native.host.limits import Limits
from weft_native.host.metrics import Metrics
from weft_native.host.shelf import Entry, Shelf
from weft_native.host.workers import Pool
from weft_remote import protocol as p
from weft_remote.errors import LimitError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes for sessions are Linux's")


def step(x, w):
    for k in range(3):
        x = jnp.tanh(x @ w) * k + jnp.sin(x)
    return x


X, W = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3), np.eye(3, dtype=np.float32) / 2
WANTED = np.asarray(step(X, W))


@pytest.fixture
def storing(tmp_path):
    """Starts hosts, with a page for administrators, that keep executables in one folder."""
    need("cpu")
    folder = str(tmp_path / "executables")
    return lambda *options: operated(
        tmp_path, "--platform", "cpu", "--log-level", "info", "--executables", folder, *options
    )


def files(tmp_path) -> list[pathlib.Path]:
    return sorted((tmp_path / "executables").iterdir())


def computed(host, fun=step, args=(X, W), **options) -> np.ndarray:
    """The result of a new session, in which the function is compiled."""
    weft.clear_caches()
    with host.connect(**options) as session:
        device = session.devices()[0]
        return np.asarray(weft.jit(fun, device=device)(*[weft.device_put(a, device) for a in args]))


def count(page, name: str) -> float:
    return page.metrics().get(f"weft_host_{name}", 0)


def stored(page, wanted: int = 1, well: str = "yes") -> bool:
    return becomes(lambda: count(page, f'executables_stored_total{{well="{well}"}}') >= wanted, 60)


@pytest.mark.parametrize("workers", ["session", "device", "thread"])
def test_a_host_that_starts_again_compiles_nothing_again(storing, tmp_path, workers):
    with storing("--workers", workers) as (host, page):
        np.testing.assert_allclose(computed(host), WANTED, rtol=1e-5)
        assert stored(page)
        assert count(page, "executable_misses_total") == count(page, "compilations_total") == 1
        assert count(page, "executable_bytes") == sum(f.stat().st_size for f in files(tmp_path)) > 0
    assert [f.stat().st_mode & 0o777 for f in (tmp_path / "executables", *files(tmp_path))] == [0o700, 0o600]
    with storing("--workers", workers) as (host, page):
        np.testing.assert_allclose(computed(host), WANTED, rtol=1e-5)
        assert count(page, "executable_hits_total") == 1 and count(page, "executable_misses_total") == 0
        assert becomes(lambda: count(page, "calls_total") == 1) and count(page, "compilations_total") == 0
        assert count(page, "executable_bytes") == files(tmp_path)[0].stat().st_size


def test_the_next_session_finds_what_the_first_has_compiled(storing):
    with storing() as (host, page):
        computed(host)
        assert stored(page)
        np.testing.assert_allclose(computed(host), WANTED, rtol=1e-5)
        assert count(page, "executable_hits_total") == 1 == count(page, "compilations_total")
        computed(host, lambda x, w: step(x, w) + 1)  # another program
        assert count(page, "executable_misses_total") == 2
        assert 'workers_died_total{how="crashed"}' not in str(page.metrics())
        assert 'workers_died_total{how="killed"}' not in str(page.metrics())  # those that compiled have ended


def test_another_device_or_donation_is_another_executable(storing):
    with storing() as (host, page):
        weft.clear_caches()
        with host.connect() as session:
            first, second = session.devices()[:2]
            for device, donated in ((first, ()), (first, (0,)), (second, ())):
                f = weft.jit(step, donate_argnums=donated, device=device)
                x, w = (weft.device_put(a, device) for a in (X, W))
                np.testing.assert_allclose(f(x, w), WANTED, rtol=1e-5)
            assert stored(page, 3)
        assert count(page, "executable_misses_total") == 3


def test_programs_over_several_devices_are_found_again(storing):
    def spread(host):
        weft.clear_caches()
        with host.connect() as session:
            mesh = weft.sharding.Mesh(session.devices()[:4], ("i",))
            x = weft.device_put(
                np.arange(8, dtype=np.float32), weft.sharding.NamedSharding(mesh, weft.sharding.PartitionSpec("i"))
            )
            return np.asarray(weft.jit(lambda x: jnp.sin(x) + x.sum())(x))

    with storing() as (host, page):
        before = spread(host)
        misses = count(page, "executable_misses_total")
        assert misses >= 1 and stored(page, int(misses))
    with storing() as (host, page):
        np.testing.assert_array_equal(spread(host), before)
        assert count(page, "executable_hits_total") == misses and count(page, "executable_misses_total") == 0


def test_programs_by_name_are_found_again(storing, tmp_path):
    models = tmp_path / "models"
    models.mkdir()
    spec = weft.ShapeDtypeStruct((), np.float32)
    (models / "twice.weft").write_bytes(export.export(weft.jit(lambda x: jnp.sin(x) * 0 + 2 * x))(spec).serialize())
    for hits in (0, 1):
        with storing("--serve", str(models)) as (host, page):
            assert request(host, "twice", TOKEN) == (200, {"result": 2.0})
            assert becomes(lambda: count(page, "executable_hits_total") >= hits)
            assert hits or stored(page)


def test_a_program_that_reports_is_compiled_each_time(storing, capsys):
    def saying(x):
        weft.debug.print("x is {}", x)
        return x * 2

    with storing() as (host, page):
        for _ in range(2):
            assert computed(host, saying, (np.float32(3),)) == 6
        assert capsys.readouterr().out == "x is 3.0\nx is 3.0\n"
        assert count(page, "executable_hits_total") == count(page, "executable_misses_total") == 0


def test_a_backend_that_stores_nothing(tmp_path):
    folder = tmp_path / "executables"
    with run_host(tmp_path, "--executables", str(folder)) as host:  # on the reference interpreter
        np.testing.assert_allclose(computed(host), WANTED, rtol=1e-5)
    assert list(folder.iterdir()) == []


# what is on disk ------------------------------------------------------------------------------------------------------


def swapped(paths) -> None:
    one, other = (path.read_bytes() for path in paths)
    paths[0].write_bytes(other)
    paths[1].write_bytes(one)


def changed(paths, at: int = -100) -> None:
    for path in paths:
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(data)


DAMAGES = {
    "changed": (changed, "its checksum is wrong"),
    "its length": (lambda paths: changed(paths, 8), "it should hold"),
    "short": (lambda paths: [os.truncate(path, 500) for path in paths], "it should hold"),
    "long": (lambda paths: [path.write_bytes(path.read_bytes() + b"x") for path in paths], "it should hold"),
    "empty": (lambda paths: [path.write_bytes(b"") for path in paths], "it is no executable of this version"),
    "foreign": (lambda paths: [path.write_bytes(b"hi" * 100) for path in paths], "it is no executable of this version"),
    "another's": (swapped, "its checksum is wrong"),
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The files of two programs."""
    need("cpu")
    folder = tmp_path_factory.mktemp("compiled")
    with operated(folder, "--platform", "cpu", "--executables", str(folder / "executables")) as (host, page):
        computed(host)
        computed(host, lambda x, w: step(x, w) + 1)
        assert stored(page, 2)
    return {path.name: path.read_bytes() for path in files(folder)}


@pytest.mark.parametrize("how", DAMAGES)
def test_damage_is_noticed_and_costs_a_compilation(storing, tmp_path, compiled, how):
    damage, said = DAMAGES[how]
    (tmp_path / "executables").mkdir(mode=0o700)
    for name, data in compiled.items():
        (tmp_path / "executables" / name).write_bytes(data)
    damage(files(tmp_path))
    with storing() as (host, page):
        np.testing.assert_allclose(computed(host), WANTED, rtol=1e-5)
        assert re.search(f"is removed: {said}", host.log.read_text())
        assert count(page, "executable_misses_total") == 1 and count(page, "executable_hits_total") == 0
        assert stored(page)
        np.testing.assert_allclose(computed(host), WANTED, rtol=1e-5)
        assert count(page, "executable_hits_total") == 1


def test_what_another_compiler_has_made_is_compiled_and_stored_again(storing, tmp_path, compiled):
    """The name says the program; the key in the file says the compiler, the machine and how the program is lowered."""
    folder = Executables(tmp_path / "executables", 1 << 30)
    for name in compiled:
        folder.write(name, io.BytesIO(LENGTH.pack(1000) + bytes(1000)))
    with storing() as (host, page):
        np.testing.assert_allclose(computed(host), WANTED, rtol=1e-5)
        assert stored(page) and count(page, "compilations_total") == 1
        weft.clear_caches()
        np.testing.assert_allclose(computed(host), WANTED, rtol=1e-5)
        assert count(page, "compilations_total") == 1


def test_the_least_recently_used_go_first(tmp_path):
    folder = Executables(tmp_path / "executables", 5_000)
    names = [hashlib.sha256(bytes([k])).hexdigest() for k in range(4)]
    write = lambda name, size=1500: folder.write(name, io.BytesIO(LENGTH.pack(size) + bytes(size)))
    for k, name in enumerate(names[:3]):
        write(name)
        os.utime(folder.folder / name, (k, k))
    folder.open(names[0]).close()
    write(names[3])
    assert {f.name for f in files(tmp_path)} == {names[0], names[2], names[3]}
    write(names[3], 100)  # in the place of itself
    assert folder.size == sum(f.stat().st_size for f in files(tmp_path))
    assert Executables(folder.folder, 5_000).size == folder.size
    with pytest.raises(LimitError, match="takes 6000 bytes, and all together may have 5000"):
        write(names[1], 6000)
    with pytest.raises(EOFError):
        folder.write(names[1], io.BytesIO(LENGTH.pack(1500) + bytes(100)))
    assert folder.open(names[1]) is None and not list(folder.folder.glob("*.part"))
    assert folder.size == sum(f.stat().st_size for f in files(tmp_path)) <= 5_000


def test_a_host_keeps_no_more_than_it_may(storing, tmp_path):
    with storing("--executable-bytes", "1000") as (host, page):
        np.testing.assert_allclose(computed(host), WANTED, rtol=1e-5)
        assert stored(page, well="no")
        assert re.search(r"can't be stored in \S+: it takes \d+ bytes, and all together", host.log.read_text())
    assert files(tmp_path) == []


def test_a_full_disk_is_told_and_loses_nothing(storing, tmp_path):
    with storing() as (host, page):
        resource.prlimit(host.process.pid, resource.RLIMIT_FSIZE, (6_000, resource.RLIM_INFINITY))
        np.testing.assert_allclose(computed(host), WANTED, rtol=1e-5)
        assert stored(page, well="no")
        assert re.search(r"can't be stored in \S+: .*File too large", host.log.read_text())
        assert files(tmp_path) == []
        resource.prlimit(host.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        np.testing.assert_allclose(computed(host), WANTED, rtol=1e-5)
        assert stored(page) and len(files(tmp_path)) == 1


def test_a_folder_to_which_others_may_write_is_refused(tmp_path):
    folder = tmp_path / "executables"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(BackendError, match="others may write .* `chmod go-w` it"):
        Executables(folder, 1000)
    assert finding(folder) == (
        False,
        f"others may write to {folder}, and so run code in the host's processes. `chmod go-w` it.",
    )
    folder.chmod(0o700)
    Executables(folder, 1000)
    assert finding(folder).good and finding(tmp_path / "other").good
    assert not finding(tmp_path / "none" / "other").good
    (tmp_path / "file").write_text("")
    with pytest.raises(BackendError, match="can't be kept in .*file"):
        Executables(tmp_path / "file", 1000)


# who is believed ------------------------------------------------------------------------------------------------------


class Acted:
    """A host's pool whose workers are played by the test, which may say what it likes."""

    def __init__(self, folder, **limits):
        self.folder = Executables(folder, 1 << 20)
        self.limits = Limits(**limits)
        self.metrics = Metrics()
        self.charged: list[tuple[str, float]] = []
        self.ends: list[Channel] = []

    async def __aenter__(self):
        self.pool = Pool(self, "session", lambda peer, m: self.keeper.receive(peer, m), lambda *_: None, lambda: None)
        self.keeper = Keeper(
            self.pool, self.folder, self.limits, self.metrics, lambda id, seconds: self.charged.append((id, seconds))
        )
        await self.pool.start()
        self.peer = await self.pool.take("s", 5)
        self.end = self.ends[self.peer.number - 1]
        return self

    async def __aexit__(self, *_):
        await self.pool.stop()

    async def start(self, exited, forked, broken):
        return "cpu"

    def launch(self, number, alone, end):
        end.send(Up(("cpu", "cpu")))
        self.ends.append(end)

    def stop(self):
        for end in self.ends:
            end.close()

    async def heard(self, end: Channel):
        """The next message to a worker."""
        return await asyncio.to_thread(lambda: next(iter(end.receive(take_descriptors=True))))

    async def ended(self) -> bool:
        """Whether the worker is taken for one that was taken over."""
        for _ in range(200):
            await asyncio.sleep(0.01)
            if self.peer.broke:
                return self.peer.killed
        return False


DATA, DIGEST, ARGUMENTS, _ = program()
WHAT = p.encode(p.Compile(0, 0, DIGEST, 0, "main", (False,) * ARGUMENTS))


class Compiled(NamedTuple):
    dump: Callable[[], bytes]


@pytest.mark.parametrize("seconds, kinds", [(0.0, [Seek]), (0.02, [Seek, Offer])], ids=["quick", "slow"])
def test_what_is_compiled_in_no_time_is_not_stored(seconds, kinds):
    sent: list = []
    shelf = Shelf(sent.append, alone=False)
    shelf.answer(Sought(False, True), None)

    def make(data):
        time.sleep(seconds)
        return Compiled(lambda: b"code")

    shelf.compile(Entry("s", p.Compile(0, 0, DIGEST, 0, "main", (False,) * ARGUMENTS), "main", DATA), make)
    assert [type(message) for message in sent] == kinds


def acting(tmp_path, act, **limits):
    async def run():
        async with Acted(tmp_path / "executables", **limits) as acted:
            async with asyncio.timeout(60):
                await act(acted)

    asyncio.run(run())
    return files(tmp_path)


def test_what_is_stored_was_made_by_a_process_that_was_given_the_program_alone(tmp_path):
    async def act(acted):
        acted.end.send(Seek("s", WHAT))
        assert await acted.heard(acted.end) == Sought(False, True)
        acted.end.send(Offer("s", WHAT, len(DATA), DATA[:10]))
        acted.end.send(OfferPart("s", DATA[10:]))
        made: list = []

        def maker():
            """All other workers wait for a session; one of them gets this instead."""
            others = [end for end in acted.ends if end is not acted.end]
            for end in others:
                end.socket.settimeout(0.1)
            while not made:
                for end in others:
                    for message in end.receive(take_descriptors=True):
                        with socket.socket(fileno=end.descriptors.pop(0)) as connection:
                            given = connection.makefile("rb").read()
                            connection.sendall(LENGTH.pack(4) + b"code")
                            connection.shutdown(socket.SHUT_WR)
                            connection.recv(1)
                            made.append((message, given))

        # another process, whose processor time is counted, and which gets less of the processors from now on
        busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        while not processor.seconds(busy.pid):
            await asyncio.sleep(0.01)
        for peer in acted.pool.peers.values():
            peer.pid = busy.pid
        await asyncio.to_thread(_patiently, maker)
        assert made == [(Make(WHAT), DATA)]
        for _ in range(200):
            await asyncio.sleep(0.01)
            if acted.charged:
                break
        busy.kill()
        busy.wait()
        assert acted.charged[0][0] == "s" and acted.charged[0][1] > 0
        acted.end.socket.settimeout(0.1)
        acted.end.send(Seek("s", WHAT))
        assert await acted.heard(acted.end) == Sought(True, True)
        with open(acted.end.descriptors.pop(0), "rb") as file:
            assert file.read() == b"code"
            with pytest.raises(OSError):
                file.write(b"other code")

    (path,) = acting(tmp_path, act)
    assert path.name == name_of(WHAT)


def _patiently(work) -> None:
    """Calls what a channel that has nothing to say interrupts."""
    while True:
        try:
            work()
            return
        except Closed:
            continue


async def _sought(acted):
    acted.end.send(Seek("s", WHAT))
    assert await acted.heard(acted.end) == Sought(False, True)


def _offer(what=WHAT, size=None, data=DATA):
    return Offer("s", what, len(data) if size is None else size, data)


OTHER = p.encode(p.Compile(0, 0, DIGEST, 0, "another", (False,) * ARGUMENTS))
LIES = {
    "another program's bytes": [_offer(data=DATA[:-1] + bytes([DATA[-1] ^ 1]))],
    "bytes of no program": [_offer(data=b"code")],
    "what it has not asked for": [_offer(OTHER)],
    "its own code": [Offer("s", WHAT, 0, b"")],
    "more than a program may have": [Offer("s", WHAT, 1 << 40, DATA)],
    "more than it has announced": [Offer("s", WHAT, 10, DATA)],
    "a part of nothing": [OfferPart("s", DATA)],
    "twice": [Offer("s", WHAT, len(DATA), b""), _offer()],
    "two questions at once": [Seek("s", WHAT)] * 50,
}


@pytest.mark.parametrize("lie", LIES)
def test_a_worker_that_lies_is_ended_and_changes_nothing(tmp_path, lie):
    async def act(acted):
        await _sought(acted)
        for message in LIES[lie]:
            acted.end.send(message)
        assert await acted.ended()
        assert len(acted.pool.peers) == 3 and not acted.keeper.queue

    assert acting(tmp_path, act) == []


@pytest.mark.parametrize(
    "what", [b"", b"\xff", p.encode(p.Ping(0)), WHAT + WHAT, WHAT.replace(b"\x04main", b"\x84\0main")]
)
def test_a_description_that_is_none(tmp_path, what):
    """Also one that says the same in other bytes: it would have another name."""

    async def act(acted):
        acted.end.send(Seek("s", what))
        assert isinstance(await acted.heard(acted.end), Sought)
        acted.end.send(_offer(what))
        assert await acted.ended()

    assert acting(tmp_path, act) == []


def test_a_process_that_does_not_finish_leaves_nothing(tmp_path):
    async def act(acted):
        await _sought(acted)
        acted.end.send(_offer())

        def maker():
            others = [end for end in acted.ends if end is not acted.end]
            for end in others:
                end.socket.settimeout(0.1)
            while True:
                for end in others:
                    for _ in end.receive(take_descriptors=True):
                        with socket.socket(fileno=end.descriptors.pop(0)) as connection:
                            connection.makefile("rb").read()
                            connection.sendall(LENGTH.pack(1000) + b"half")
                        return

        await asyncio.to_thread(_patiently, maker)
        for _ in range(200):
            await asyncio.sleep(0.01)
            if b'well="no"} 1.0' in acted.metrics.text():
                return
        raise AssertionError(acted.metrics.text())

    assert acting(tmp_path, act) == []


def test_a_worker_that_offers_without_end_gets_no_more_than_its_share(tmp_path):
    async def act(acted):
        acted.keeper.current = object.__new__(_Busy)
        for k in range(70):
            what = p.encode(p.Compile(0, 0, DIGEST, 0, str(k), (False,) * ARGUMENTS))
            acted.end.send(Seek("s", what))
            answer = await acted.heard(acted.end)
            if not answer.wanted:
                assert k == 64
                return
            acted.end.send(_offer(what))
        raise AssertionError("it got all")

    acting(tmp_path, act)


class _Busy:
    """Something that is being stored, and takes its time."""

    name, data = "busy", b""
