"""What the front of a host makes of its workers' words and ends. The workers are ends of channels that a test holds."""

import asyncio
import logging

import pytest
from hosts import TOKEN
from weft_native.host.access import Gate
from weft_native.host.control import Channel, Ended, Totals, Up
from weft_native.host.front import Front
from weft_native.host.records import Record
from weft_native.host.workers import SPARES, Pool


class Held:
    """Starts workers that say nothing but that they are there."""

    def __init__(self):
        self.ends: list[Channel] = []
        self.silent = self.stopped = False

    async def start(self, exited, forked, broken) -> str:
        self.exited = exited
        return "cpu"

    def launch(self, number: int, alone: bool, end: Channel) -> None:
        self.ends.append(end)
        if not self.silent:
            end.send(Up(("cpu", "CPU")))

    def stop(self) -> None:
        self.stopped = True
        for end in self.ends:
            end.close()


async def there(pool: Pool, spares: int) -> None:
    async with asyncio.timeout(20), pool.changed:
        await pool.changed.wait_for(lambda: len(pool.spares) == spares)


def test_a_worker_that_ends_is_replaced_at_once(caplog):
    """It was there, so nothing is wrong with those that come; and it is there once, however often it says so."""

    async def run():
        held = Held()
        pool = Pool(held, "session", lambda peer, message: None, lambda *why: None, lambda: None)
        await pool.start()
        await there(pool, SPARES)
        held.ends[0].send(Up(("cpu", "CPU")))
        held.exited(2, 0, 9, "", 0.0)
        assert len(held.ends) == SPARES + 1
        await there(pool, SPARES)
        assert [peer.number for peer in pool.spares] == [1, 3]
        await pool.stop()

    with caplog.at_level(logging.INFO):
        asyncio.run(run())
    assert not caplog.records


def test_workers_that_do_not_come_up_are_started_after_a_pause(caplog):
    """Each is logged with its last words."""

    async def run():
        held = Held()
        pool = Pool(held, "session", lambda peer, message: None, lambda *why: None, lambda: None)
        await pool.start()
        await there(pool, SPARES)
        held.silent = True
        held.exited(1, 0, 9, "", 0.0)
        held.exited(3, 1, 0, "no memory\n", 0.0)
        assert len(held.ends) == SPARES + 1
        held.silent = False
        await there(pool, SPARES)
        assert [peer.number for peer in pool.spares] == [2, 4]
        await pool.stop()

    asyncio.run(run())
    assert [r.getMessage() for r in caplog.records] == ["a worker did not come up: no memory"]


@pytest.mark.parametrize("length, kept", [(3, 3), (100, 100), (101, 100), (5000, 100)])
def test_the_name_of_an_error_from_a_worker_is_short(length, kept):
    """A worker that has been taken over may send any; one of a session that it has not changes nothing."""

    async def run():
        held = Held()
        front = Front(Gate(TOKEN), held, "session")
        await front.pool.start()
        peer = front.pool.peers[1]
        peer.sessions.add("a")
        for id in "ab":
            grant = front.gate.admit(TOKEN.encode(), "")
            front.records[id] = Record(id, b"", peer, id, id, "", grant, Totals(id))
        for id in "ab":
            front.pool.receive(peer, Ended(id, "E" * length, "why", False))
        await front.pool.stop()
        return front.records["a"].end, front.records["b"].end

    end, other = asyncio.run(run())
    assert (end.error, end.message) == ("E" * kept, "why")
    assert other is None


@pytest.mark.parametrize("words", [b"\xff" * 64, b"\x04\0\0\0" + b"\xff" * 4], ids=["length", "message"])
def test_a_worker_that_says_what_no_worker_says_is_ended(words):
    """Its client is told that, and not that the host is out of memory, for which the system would kill it as well."""

    async def run():
        held = Held()
        front = Front(Gate(TOKEN), held, "session")
        await front.pool.start()
        await there(front.pool, SPARES)
        peer = front.pool.peers[1]
        peer.sessions.add("a")
        grant = front.gate.admit(TOKEN.encode(), "")
        front.records["a"] = Record("a", b"", peer, "a", "a", "", grant, Totals("a"))
        held.ends[0].socket.send(words)
        async with asyncio.timeout(20):
            while not peer.killed:
                await asyncio.sleep(0.01)
        held.exited(1, 0, 9, "", 0.0)
        await front.pool.stop()
        return front.records["a"].end

    end = asyncio.run(run())
    assert end.error == "ConnectionLost" and "told the host what no such process tells" in end.message


def test_a_front_that_stops_ends_its_workers():
    async def run():
        held = Held()
        front = Front(Gate(TOKEN), held, "session")
        await front.start("127.0.0.1", 0)
        assert not held.stopped
        await front.stop()
        assert held.stopped and front.pool.stopping

    asyncio.run(run())
