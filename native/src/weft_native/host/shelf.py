"""What a worker asks the front for, and tells it, about executables on disk: it has no files of its own."""

from __future__ import annotations

import dataclasses
import logging
import queue
import socket
import threading
import time
from collections.abc import Callable
from typing import BinaryIO, NamedTuple

from weft.base.errors import BackendError
from weft.runtime.backend import Stored
from weft_remote import protocol as p
from weft_remote.codec import Message

from .control import Offer, OfferPart, Seek, Sought
from .executables import LENGTH

log = logging.getLogger("weft.host")
LONGEST = 32 << 10  # bytes of what describes a program; others are compiled each time
PART = 32 << 10  # bytes of a program in one message
WORTH_SECONDS = 0.01  # a program that is compiled in less is not stored
PARTING = 5.0  # seconds for which a process waits until what it has made was taken


class Entry(NamedTuple):
    """A compilation that can be found again."""

    session: str
    message: p.Compile | p.CompileSpread
    name: str  # as it is compiled
    data: bytes | bytearray  # the program's

    @property
    def what(self) -> bytes:
        """All that decides what is compiled, beside this machine and its compiler."""
        return p.encode(dataclasses.replace(self.message, op=0, handle=0, name=self.name))


class Shelf:
    """Finds executables, and offers new ones.

    Args:
        send: sends a message to the front.
        alone: each process has one session: what it has compiled itself is not stored, since a program may have taken
            it over. Another process, which knows nothing but the program, compiles it for that.
    """

    def __init__(self, send: Callable[[Message], None], alone: bool):
        self.send, self.alone = send, alone
        self.asking = threading.Lock()
        self.answers: queue.SimpleQueue[tuple[Sought, BinaryIO | None]] = queue.SimpleQueue()
        self.dumps: dict[bytes, Callable[[], bytes]] = {}  # what the front may want

    def compile(self, entry: Entry, make: Callable[[bytes | None], Stored]) -> Stored:
        """The result of `make` for what is stored of a program."""
        what = entry.what
        if len(what) > LONGEST:
            return make(None)
        with self.asking:
            self.send(Seek(entry.session, what))
            answer, file = self.answers.get()
        data = None
        if file is not None:
            with file:
                data = file.read()
        began = time.perf_counter()
        made = make(data)
        slow = time.perf_counter() - began >= WORTH_SECONDS
        if answer.wanted and slow and made.dump is not None:
            self._offer(entry, what, made.dump)
        return made

    def _offer(self, entry: Entry, what: bytes, dump: Callable[[], bytes]) -> None:
        if not self.alone:
            self.dumps[what] = dump
            self.send(Offer(entry.session, what, 0, b""))
            return
        data = memoryview(entry.data)
        self.send(Offer(entry.session, what, len(data), bytes(data[:PART])))
        for at in range(PART, len(data), PART):
            self.send(OfferPart(entry.session, bytes(data[at : at + PART])))

    # what the front says, in the thread that hears it -----------------------------------------------------------------

    def answer(self, message: Sought, file: BinaryIO | None) -> None:
        self.answers.put((message, file))

    def give(self, what: bytes, connection: socket.socket) -> None:
        """Writes an executable that was offered, in a thread of its own."""
        dump = self.dumps.pop(what, None)
        if dump is None:
            connection.close()
            return
        threading.Thread(target=hand, args=(dump, connection), name="executable", daemon=True).start()


def hand(dump: Callable[[], bytes], connection: socket.socket) -> None:
    """Sends what `dump` gives, and waits a moment until it was taken. What fails is said, and sends nothing."""
    with connection:
        try:
            data = dump()
        except BackendError as e:
            log.warning("an executable can't be stored: %s", e)
            return
        try:
            connection.sendall(LENGTH.pack(len(data)))
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(PARTING)
            connection.recv(1)
        except OSError:  # the front did not want it after all
            pass
