"""Sessions that leave their workers: for another one, or for the disk and back."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import socket
import time
from collections.abc import Callable
from typing import BinaryIO

from weft_remote.errors import ConnectionLost, LimitError

from .control import Channel, Leave, Moved, Restore, Save, Totals
from .grants import Grant
from .jobs import Job, Jobs
from .journal import fields
from .records import Record
from .workers import Peer, Pool

log = logging.getLogger("weft.host")
MOVE_SECONDS = 60.0  # in which a worker must have handed its session to another one
TAKE_SECONDS = 20.0  # in which there must be another one
LEAVE_SECONDS = 5.0  # in which sessions must be on disk when the host stops
QUIET_SECONDS = 20.0  # in which a worker that saves its session must say more of it


class Moves:
    """Moves the sessions of a front.

    Args:
        pool: the workers.
        jobs: where sessions rest; None if they don't.
    """

    def __init__(self, pool: Pool, jobs: Jobs | None):
        self.pool, self.jobs = pool, jobs

    async def move(self, peer: Peer, record: Record) -> None:
        """Has a session go on in another worker; its client comes back for it."""
        id = record.id
        if record.moving.locked():
            return
        async with record.moving:
            try:
                other = await self.pool.take(id, TAKE_SECONDS, record.grant.nice)
            except TimeoutError:
                why = "session %s can't leave its process, since no other one is there"
                log.warning(why, record.name, extra=fields(record))
                peer.send(Moved(id, False))
                return
            if record.end is not None or record.peer is not peer:  # it has ended meanwhile
                self.pool.give_up(other, id)
                return
            log.info("session %s goes on in process %d", record.name, other.pid, extra=fields(record))
            record.peer, granted, record.totals = other, peer.granted, Totals(id)
            other.granted, peer.granted = other.granted + granted, 0
            mine, its = Channel.pair()
            peer.send(Save(id, False), mine.socket.fileno())
            other.send(Restore(id, record.secret, record.name, granted), its.socket.fileno())
            mine.close()
            its.close()
            self.pool.left(peer, id, MOVE_SECONDS)

    async def rest(self, peer: Peer, record: Record, seconds: float) -> None:
        """Puts a session on disk, where its client does not keep a process busy."""
        id = record.id
        if self.jobs is None or record.moving.locked():
            peer.send(Moved(id, False))
            return
        async with record.moving:
            if record.end is not None or record.peer is not peer:
                return
            secret, grant = hashlib.sha256(record.secret).hexdigest(), record.grant
            job = Job(id, secret, record.name, record.client, grant.id, grant.name, time.time() + seconds)
            mine, its = socket.socketpair()
            mine.settimeout(QUIET_SECONDS)
            told = peer.send(Save(id, True), its.fileno())
            its.close()
            try:
                with mine, mine.makefile("rb") as source:
                    await asyncio.to_thread(self.jobs.write, job, source)
            except (OSError, EOFError, LimitError) as e:
                log.warning("session %s can't be put on disk: %s", record.name, e, extra=fields(record))
                if told:
                    peer.send(Moved(id, False))
                return
            if record.end is not None:  # its process has ended just then, and its client was told
                self.jobs.remove(id)
                return
            log.info("session %s rests on disk for %.0f s", record.name, seconds, extra=fields(record))
            record.job, record.peer = job, None
            peer.send(Moved(id, True))
            self.pool.left(peer, id)

    async def leave(self, living: Callable[[], list[Record]]) -> None:
        """Puts all sessions on disk that have nothing to do, or soon; the next host has them. Their clients ask for it
        as long as a lost connection may last.
        """
        for record in living():
            if record.peer is not None:
                record.peer.send(Leave(record.id))
        until = time.monotonic() + LEAVE_SECONDS
        while living() and time.monotonic() < until:
            await asyncio.sleep(0.02)

    async def wake(self, record: Record, secret: bytes) -> None:
        """Has a session that rests go on in a worker; `record.moving` is held. Raises LimitError if there is no worker
        for it now, ConnectionLost if it can't be read any more.
        """
        id = record.id
        assert self.jobs is not None
        try:
            file: BinaryIO = self.jobs.open(id)
        except OSError as e:
            log.error("session %s can't be read: %s", record.name, e, extra=fields(record))
            raise ConnectionLost("the host can't read the session any more; its arrays are gone.") from None
        with file:
            try:
                peer = await self.pool.take(id, TAKE_SECONDS, record.grant.nice)
            except TimeoutError:
                raise LimitError("the host can't start a process for the session now. Try again later.") from None
            log.info("session %s goes on in process %d", record.name, peer.pid, extra=fields(record))
            record.peer, record.secret, record.totals = peer, secret, Totals(id)
            peer.send(Restore(id, secret, record.name, 0), file.fileno())

    def forget(self, record: Record) -> None:
        """A session needs what is on disk of it no more."""
        if record.job is not None and self.jobs is not None:
            record.job = None
            self.jobs.remove(record.id)

    @staticmethod
    def resting(job: Job) -> Record:
        """A session that an earlier host has put on disk."""
        grant = Grant(job.grant, job.grant_name)
        return Record(job.id, b"", None, job.name, job.client, "", grant, Totals(job.id), job)
