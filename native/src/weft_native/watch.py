"""Notices at once when a process of a cluster ends. jaxlib's own heartbeats need up to their whole time-out for that.

Each process keeps a connection to process 0, which the system closes when a process ends, however it ends. Process 0
tells the others. Who may connect knows a secret that stands in the key-value store of the runtime service.
"""

from __future__ import annotations

import secrets
import selectors
import socket
import struct
import threading
import time
from typing import Any, Callable

from weft.base.annotations import override
from weft.base.errors import warn

_KEY, _SECRET, _NUMBER = "weft/watch", 32, struct.Struct("!i")
_GOODBYE = -1  # sent before a process closes its connection because it leaves
_CONNECT = 10  # seconds


class _Watch:
    """What both sides have in common: a thread that waits for messages and ends of connections."""

    def __init__(self, ended: Callable[[int], None]):
        self._ended, self._noticed = ended, threading.Event()
        self._parting = False  # goodbye has been said: the others answer it by closing their connections
        self._leaving = False
        self._selector = selectors.DefaultSelector()
        self._wake, woken = socket.socketpair()
        self._selector.register(woken, selectors.EVENT_READ, self._woken)
        self._thread = threading.Thread(target=self._run, name="weft watches processes", daemon=True)

    def _run(self) -> None:
        while not self._leaving:
            for key, _ in self._selector.select():
                if not self._leaving:
                    key.data(key.fileobj)
        for key in [*self._selector.get_map().values()]:
            key.fileobj.close()  # type: ignore[union-attr]

    def _tell(self, process: int) -> None:
        self._ended(process)
        self._noticed.set()

    def wait(self, seconds: float) -> bool:
        """Waits until a process is known to have ended; whether one is."""
        return self._noticed.wait(seconds)

    def _woken(self, end: socket.socket) -> None:
        end.recv(1)

    def leave(self, goodbye: bool, seconds: float) -> None:
        """Closes the connections; without a goodbye, the others take this process for one that has failed. Process 0
        then waits some seconds for their ends.
        """
        if goodbye:
            self._parting = True
            self._say(_GOODBYE)
        else:
            self._fail(seconds)
        self._leaving = True
        self._wake.send(b"x")
        self._thread.join()
        self._wake.close()

    def _say(self, number: int) -> None:
        for connection in self._connections():
            try:
                connection.sendall(_NUMBER.pack(number))
            except OSError:
                pass  # the other side has gone; that is noticed by reading

    def _connections(self) -> list[socket.socket]:
        raise NotImplementedError

    def _fail(self, seconds: float) -> None:
        """Before the connections are closed without a goodbye."""


def _received(connection: socket.socket, size: int) -> bytes:
    """So many bytes; fewer at the end, and after a second in which none came."""
    data = b""
    try:
        while len(data) < size and (more := connection.recv(size - len(data))):
            data += more
    except OSError:
        pass
    return data


def _number(connection: socket.socket) -> int | None:
    """The next message; None at the end."""
    data = _received(connection, _NUMBER.size)
    return _NUMBER.unpack(data)[0] if len(data) == _NUMBER.size else None


def _prepare(connection: socket.socket) -> None:
    connection.settimeout(1)  # one that sends half a message holds the thread no longer
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


class Center(_Watch):
    """In process 0: has the connections of all others."""

    def __init__(self, client: Any, host: str, ended: Callable[[int], None]):
        super().__init__(ended)
        self._processes: dict[socket.socket, int] = {}
        if host in ("localhost", "127.0.0.1"):
            self._listener = socket.create_server(("127.0.0.1", 0))
        elif socket.has_dualstack_ipv6():
            self._listener = socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
        else:
            self._listener = socket.create_server(("", 0))
        self._secret = secrets.token_bytes(_SECRET)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        port = self._listener.getsockname()[1]
        client.key_value_set(_KEY, f"{host} {port} {self._secret.hex()}")
        self._thread.start()

    @override
    def _connections(self) -> list[socket.socket]:
        return list(self._processes)

    @override
    def _fail(self, seconds: float) -> None:
        if not self._noticed.is_set():
            self._say(0)
        limit = time.monotonic() + seconds
        while self._processes and time.monotonic() < limit:
            time.sleep(0.05)

    def _accept(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        _prepare(connection)
        secret = _received(connection, _SECRET)
        number = _number(connection) if secrets.compare_digest(secret, self._secret) else None
        if number is None:
            connection.close()
            return
        self._processes[connection] = number
        self._selector.register(connection, selectors.EVENT_READ, self._read)

    def _read(self, connection: socket.socket) -> None:
        said = _number(connection)
        self._selector.unregister(connection)
        connection.close()
        number = self._processes.pop(connection)
        if said is None and not self._parting:
            self._say(number)
            self._tell(number)


class Member(_Watch):
    """In the other processes: has a connection to process 0."""

    def __init__(self, client: Any, process: int, ended: Callable[[int], None]):
        super().__init__(ended)
        host, port, secret = client.blocking_key_value_get(_KEY, _CONNECT * 1000).split()
        self._connection: socket.socket | None = None
        try:
            self._connection = socket.create_connection((host, int(port)), _CONNECT)
            _prepare(self._connection)
            self._connection.sendall(bytes.fromhex(secret) + _NUMBER.pack(process))
        except OSError as e:
            warn(
                f"process {process} can't connect to {host}:{port} ({e}), where process 0 watches whether processes"
                " end: that of others is noticed after heartbeat_timeout_seconds only. Let the firewall pass"
                " connections between the processes' machines."
            )
        else:
            self._selector.register(self._connection, selectors.EVENT_READ, self._read)
        self._thread.start()

    @override
    def _connections(self) -> list[socket.socket]:
        return [] if self._connection is None else [self._connection]

    def _read(self, connection: socket.socket) -> None:
        said = _number(connection)
        if said is None or said == _GOODBYE:
            self._selector.unregister(connection)
            connection.close()
            self._connection = None
        if said != _GOODBYE and not self._parting and not (said is None and self._noticed.is_set()):
            self._tell(0 if said is None else said)
