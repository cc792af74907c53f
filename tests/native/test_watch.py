"""How the end of a process is noticed: connections to process 0, without the processes."""

import contextlib
import queue
import socket
import threading
import time

import pytest
from weft_native import watch


class Store:
    """The key-value store of the runtime service."""

    def __init__(self):
        self.values: dict = {}

    def key_value_set(self, key, value):
        self.values[key] = value

    def blocking_key_value_get(self, key, milliseconds):
        assert milliseconds >= 5000, "process 0 may start later"
        return self.values[key]


class Group:
    """Process 0 and some others; `ends[i]` has those that process i was told of."""

    def __init__(self, count: int):
        self.store = Store()
        self.ends = [queue.Queue() for _ in range(count)]
        self.center = watch.Center(self.store, "127.0.0.1", self.ends[0].put)
        self.members = [watch.Member(self.store, i, self.ends[i].put) for i in range(1, count)]
        limit = time.monotonic() + 10
        while len(self.center._processes) < count - 1 and time.monotonic() < limit:
            time.sleep(0.01)

    def told(self, i: int) -> int:
        return self.ends[i].get(timeout=10)

    def break_off(self, i: int) -> None:
        """As the system does when a process ends."""
        self.members[i - 1]._connection.shutdown(socket.SHUT_RDWR)


def test_all_are_told_who_has_ended():
    group = Group(4)
    group.break_off(2)
    assert [group.told(i) for i in (0, 1, 3)] == [2, 2, 2]
    assert group.center.wait(0) and group.members[0].wait(5)
    group.center.leave(False, 0)


def test_the_end_of_the_first():
    group = Group(3)
    group.center.leave(False, 0)
    assert [group.told(i) for i in (1, 2)] == [0, 0]
    assert all(ends.empty() for ends in group.ends), "once each"


@pytest.mark.parametrize("first", (0, 1, 2))
def test_those_that_leave_are_not_missed(first):
    group = Group(4)
    order = [group.center, *group.members]
    leaving = [threading.Thread(target=one.leave, args=(True, 0)) for one in (order if first else order[::-1])]
    for thread in leaving:
        thread.start()
        if first != 2:  # at once
            thread.join()
    for thread in leaving:
        thread.join()
    time.sleep(0.3)
    assert all(ends.empty() for ends in group.ends)
    assert not any(one._thread.is_alive() for one in order)


def test_the_first_waits_for_the_others_when_it_fails():
    """The service in it ends with it, and XLA's clients end the others without a word then."""
    group = Group(2)
    began = time.monotonic()
    threading.Timer(0.5, lambda: group.members[0].leave(False, 0)).start()
    group.center.leave(False, 10)
    assert 0.4 < time.monotonic() - began < 8
    assert group.told(1) == 0, "it was told before"


def test_strangers():
    group = Group(2)
    _, port, secret = group.store.values["weft/watch"].split()
    for sent in (b"", b"x", b"x" * 32 + b"\0\0\0\1", bytes.fromhex(secret), bytes.fromhex(secret) + b"\0\0"):
        with socket.create_connection(("127.0.0.1", int(port))) as stranger:
            stranger.sendall(sent)
            stranger.settimeout(10)
            with contextlib.suppress(ConnectionResetError):
                assert stranger.recv(1) == b"", "it is shut out"
    assert group.ends[0].empty()
    with socket.create_connection(("127.0.0.1", int(port))) as slow:
        for byte in bytes.fromhex(secret) + b"\0\0\0\7":  # in many pieces
            slow.sendall(bytes([byte]))
    assert group.told(0) == group.told(1) == 7


def test_a_firewall():
    store = Store()
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    store.key_value_set("weft/watch", f"127.0.0.1 {port} {'00' * 32}")
    with pytest.warns(UserWarning, match=r"process 1 can't connect to 127\.0\.0\.1:\d+ .*Let the firewall pass"):
        member = watch.Member(store, 1, print)
    member.leave(True, 0)
