"""The front of a host: who may connect, which worker has which session, and why sessions have ended.

It reads no frame of a client. A connection's HTTP handshake says who comes and for what; then its socket is handed to
the worker that has the session.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import secrets
import signal
import ssl
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from weft.serialization.binary import DeserializationError
from weft_remote import protocol as p
from weft_remote.codec import Message
from weft_remote.errors import (
    AuthenticationError,
    ConnectionLost,
    LimitError,
    ProtocolError,
    class_name,
)

from . import processor
from .access import AccessError, Gate
from .arrivals import RESTART, STOP_SECONDS, TRY_AGAIN_LATER, Arrival, Later, Left
from .control import Alive, Attach, Ended, Finish, Granted, Move, Need, Rest, Restored, Returned, Said, Totals
from .control import Offer, OfferPart, Seek
from .grants import INNER, SESSIONS, Denied, Grant
from .headers import bearer
from .ids import new_id
from .jobs import Jobs
from .journal import Journal, fields
from .keeper import Keeper
from .limits import MIB, Limits
from .moves import TAKE_SECONDS, Moves
from .records import Record
from .room import Full, Over, Room
from .worker import STUCK, unattended
from .workers import Launcher, Peer, Pool

log = logging.getLogger("weft.host")
LOOPBACK = ("localhost", "127.0.0.1", "::1")
WATCH_SECONDS = 0.25
LOGIN_SECONDS = 10.0  # in which a connection must have logged in
SILENCE = 5.0  # seconds without a word from a worker that is not given up, however short its computations must be
TAKEN_OVER = ConnectionLost(
    "the session's process was ended, since it told the host what no such process tells; its arrays are gone. The host"
    " and its other sessions go on. Connect again; if the program does it again, report it."
)
OVERTIME = 1.0  # seconds in which a worker can end a session by itself, before it is killed
TOLD_SECONDS = 3.0  # in which a worker must have ended a session, if it has no other one
STEP = 16 * MIB  # bytes that a worker gets beside those it needs, so that it asks seldom
OTHERS = "X-Other-Hosts"  # with which a proxy says that it knows other hosts that could take a session
NAME = 40  # characters of a client's name in the log
REVOKED = "the session's token has expired or was revoked. Ask the host's operator for another one."
LEFT = "the session was not taken up again in the time for which it was kept."
MEMORY_WORDS = ("bad_alloc", "out of memory", "Out of memory", "Cannot allocate memory", "MemoryError", "mmap failed")


class Refused(Exception):
    """A client gets no session.

    Args:
        cause: str, as metrics count it.
        error: the one that the client is told.
        reason: what the operator is told beside it.
        elsewhere: whether another host may give it one.
    """

    def __init__(self, cause: str, error: Exception, reason: str = "", elsewhere: bool = False):
        super().__init__(str(error))
        self.cause, self.error, self.reason, self.elsewhere = cause, error, reason, elsewhere


class Front:
    """Serves weft programs with workers.

    Args:
        gate: who may connect.
        launcher: starts workers.
        workers: "session" gives each session a worker of its own, "" does so if the devices allow it.
        limits: of each session.
        origins: web origins, beside those on loopback, whose pages may connect; programs that are no pages have none.
        broken: called when no more workers can be started.
        journal: of what happens.
        jobs: where sessions rest whose clients want them kept; None keeps none.
    """

    def __init__(
        self,
        gate: Gate,
        launcher: Launcher,
        workers: str = "",
        limits: Limits = Limits(),
        origins: tuple[str, ...] = (),
        broken: Callable[[], None] = lambda: None,
        journal: Journal | None = None,
        jobs: Jobs | None = None,
    ):
        self.gate, self.limits = gate, limits
        self.origins = {o.rstrip("/") for o in origins}
        self.journal = Journal() if journal is None else journal
        metrics = self.journal.metrics
        self.pool = Pool(launcher, workers, self._receive, self._worker_ended, broken, metrics.started.inc)
        self.records: dict[str, Record] = {}
        self.moves = Moves(self.pool, jobs)
        self.room = Room(limits, self.living, self.journal)
        self.parts: list[Callable[[web.Application], None]] = []  # what else it answers, added before it starts
        self.keeper: Keeper | None = None  # of executables on disk
        self.compression = False  # of messages, where the client offers it
        self.name: str | None = None  # of the host among several; its sessions' ids begin with it
        self.numbers = 0
        self.draining, self.stops_at = False, 0.0  # takes no new sessions, because it is about to stop
        self.doors: web.TCPSite | None = None
        self.runner: web.AppRunner | None = None
        self.watching: asyncio.Task[None] | None = None
        self.tasks: set[asyncio.Task[None]] = set()
        metrics.sessions_allowed.set(limits.sessions)
        metrics.memory_allowed.set(limits.total_bytes)
        metrics.draining.set_function(lambda: self.draining)
        metrics.sessions.set_function(lambda: len(self.living()))
        metrics.memory.set_function(lambda: sum(r.totals.held for r in self.living()))
        metrics.queued.set_function(lambda: sum(r.totals.queued for r in self.living()))
        metrics.memory_granted.set_function(lambda: sum(peer.granted for peer in self.pool.peers.values()))
        metrics.workers.set_function(lambda: sum(peer.up for peer in self.pool.peers.values()))

    def living(self) -> list[Record]:
        """The sessions that a worker has."""
        return [r for r in self.records.values() if r.end is None and r.peer is not None]

    def guests(self) -> list[Record]:
        """Those of clients, without that of the host itself."""
        return [r for r in self.living() if r.grant is not INNER]

    def drain(self, until: float) -> None:
        """Takes no new sessions from now on; the host will stop at `until`, or before."""
        self.draining, self.stops_at = True, until
        for waiter in list(self.room.waiters):
            self.room.end(waiter, Later(RESTART if waiter.session else TRY_AGAIN_LATER, self._stopping()))

    async def start(self, address: str, port: int, tls: ssl.SSLContext | None = None) -> tuple[str, int]:
        """Starts workers, then serves; where it listens."""
        await self.pool.start()
        if self.moves.jobs is not None:
            for job in self.moves.jobs.known():
                self.records[job.id] = self.moves.resting(job)
        app = web.Application()
        app.router.add_get("/session", self._begin)
        app.router.add_get("/session/{id}", self._resume)
        for add in self.parts:
            add(app)
        self.runner = web.AppRunner(
            app, access_log=None, handle_signals=False, shutdown_timeout=STOP_SECONDS, keepalive_timeout=LOGIN_SECONDS
        )
        await self.runner.setup()
        self.doors = web.TCPSite(self.runner, address, port, ssl_context=tls)
        await self.doors.start()
        self.watching = asyncio.ensure_future(self._watch())
        host, number = self.runner.addresses[0][:2]
        return host, number

    async def close_doors(self) -> None:
        """Takes no new connections from now on, but for those of the host itself."""
        if self.doors is not None:
            await self.doors.stop()

    async def listen_here(self) -> tuple[str, int]:
        """Listens for the host itself too, without TLS and until it stops; where."""
        assert self.runner is not None
        known = set(self.runner.addresses)
        await web.TCPSite(self.runner, "127.0.0.1", 0).start()
        (added,) = set(self.runner.addresses) - known
        return added[0], added[1]

    async def stop(self) -> None:
        """Tells all clients that the host is shutting down, and waits a moment so that the message arrives."""
        self.drain(time.monotonic())
        if self.watching is not None:
            self.watching.cancel()
        if self.moves.jobs is not None:
            await self.moves.leave(self.living)
        why = "the host is shutting down; its arrays are gone."
        for record in self.living():
            self.finish(record, ConnectionLost(why))
        until = time.monotonic() + STOP_SECONDS
        while self.living() and time.monotonic() < until:
            await asyncio.sleep(0.02)
        if self.runner is not None:
            await self.runner.cleanup()
        await self.pool.stop()

    def finish(self, record: Record, why: Exception) -> None:
        """Has a session end, and tells its client why. A worker that doesn't do so in a few seconds is killed."""
        if record.end is None and record.told is None:
            if record.peer is not None:
                record.told, record.told_at = why, time.monotonic()
                record.peer.send(Finish(record.id, class_name(why), str(why)))
            elif not record.moving.locked():  # it rests on disk
                self._end_record(record, p.End(class_name(why), str(why)))

    # connections ------------------------------------------------------------------------------------------------------

    async def _begin(self, request: web.Request) -> web.StreamResponse:
        """A new session."""
        arrival = Arrival(request, self.compression)
        return await self._answer(arrival, self._started(arrival))

    async def _started(self, arrival: Arrival) -> web.StreamResponse:
        grant, request = await self._admit(arrival), arrival.request
        if self.draining and grant is not INNER:
            raise Refused("draining", LimitError(self._stopping()), elsewhere=True)
        if wait := self.gate.rates.connect(grant):
            raise Refused("rate", LimitError(_often(wait)), grant.whose)
        client = request.query.get("name", "")[:NAME]
        id, secret = new_id(self.name), secrets.token_bytes(32)
        async with self._place(arrival, grant, client) as waited:
            self.numbers += 1
            name = f"{self.numbers}{' ' + repr(client) if client else ''}{f' of {grant.name!r}' if grant.name else ''}"
            try:
                peer = await self.pool.take(id, TAKE_SECONDS, grant.nice)
            except TimeoutError:
                raise _full("the host can't start a process for the session now. Try again later.") from None
            record = Record(id, secret, peer, name, client, request.remote or "", grant, Totals(id))
            self.records[id] = record
        self.journal.began(record, peer.pid, waited)
        return await self._hand(arrival, peer, Attach(id, secret, name, True))

    async def _resume(self, request: web.Request) -> web.StreamResponse:
        """The next connection of a session."""
        arrival = Arrival(request, self.compression)
        return await self._answer(arrival, self._resumed(arrival))

    async def _resumed(self, arrival: Arrival) -> web.StreamResponse:
        grant, request = await self._admit(arrival), arrival.request
        id, (_, secret) = request.match_info["id"], p.credentials(arrival.offers)
        record = self.records.get(id)
        if record is None or not record.is_of(secret) or record.grant.id != grant.id:
            error = "the host does not know the session any more; its arrays are gone. Connect again."
            raise Refused("session", ConnectionLost(error))
        if wait := self.gate.rates.connect(grant):
            self.journal.refused(request.remote or "", "rate", LimitError(_often(wait)), grant.whose)
            raise Later(TRY_AGAIN_LATER, _often(wait))
        record.grant = grant  # what the token is for may have changed, and a session from disk did not know it
        async with record.moving:
            rests = record.end is None and record.peer is None
        if rests:
            if self.draining:  # the next host finds it where it rests
                raise Later(RESTART, self._stopping())
            with contextlib.suppress(Over):
                async with self._place(arrival, grant, record.client, id), record.moving:
                    await self._wake(record, secret)
        if record.end is not None or record.peer is None:
            return await arrival.part(record.end or p.End("ConnectionLost", "the session has just ended."))
        self.journal.resumed(record, request.remote or "")
        return await self._hand(arrival, record.peer, Attach(id, record.secret, record.name, False))

    async def _wake(self, record: Record, secret: bytes) -> None:
        """Has a session that rests go on, unless it does already; `record.moving` is held."""
        if record.end is None and record.peer is None:
            try:
                await self.moves.wake(record, secret)
            except LimitError as e:
                raise Later(TRY_AGAIN_LATER, str(e)) from None
            except ConnectionLost as e:
                self._end_record(record, p.End("ConnectionLost", str(e)))

    @contextlib.asynccontextmanager
    async def _place(self, arrival: Arrival, grant: Grant, client: str, session: str = "") -> AsyncIterator[float]:
        """A place for a session, for which its client may have to wait."""
        try:
            async with self.room.place(arrival, grant, client, session) as waited:
                yield waited
        except Full as e:
            raise Refused("full", e.error, elsewhere=e.elsewhere) from None
        except (ProtocolError, DeserializationError) as e:
            raise Refused("protocol", e) from None

    async def _admit(self, arrival: Arrival) -> Grant:
        """What the token of a client is for. Raises Refused if it may not connect."""
        request, offers = arrival.request, arrival.offers
        origin = request.headers.get("Origin")
        if not self.is_allowed(origin):
            error = (
                f"pages of {str(origin)[:100]!r} may not connect to this host. Its operator allows them with"
                " `weft-host --allow-origin`."
            )
            raise Refused("origin", AuthenticationError(error))
        if p.SUBPROTOCOL not in offers:
            spoken = ", ".join(o[:20] for o in offers if o.startswith("weft.")) or "none"
            error = (
                f"the client speaks {spoken} of weft's protocols, the host {p.SUBPROTOCOL}. Install the same release of"
                " weft on both sides."
            )
            raise Refused("protocol", ProtocolError(error))
        token, _ = p.credentials(offers)
        try:
            grant = await self.gate.enter(bearer(request) if token is None else token, request.remote or "")
        except Denied as e:
            raise Refused(e.cause, e, e.reason) from None
        if not grant.may(SESSIONS):
            error = "this token is not for sessions. Ask the host's operator for one that is."
            raise Refused("scope", AuthenticationError(error))
        return grant

    def is_allowed(self, origin: str | None) -> bool:
        """Whether pages of an origin may connect. A browser sends the origin; other programs do not."""
        if origin is None or origin.rstrip("/") in self.origins:
            return True
        try:
            return urlsplit(origin).hostname in LOOPBACK
        except ValueError:
            return False

    async def _hand(self, arrival: Arrival, peer: Peer, message: Attach) -> web.StreamResponse:
        """Completes the handshake, and gives the connection to a worker."""
        try:
            return await arrival.hand(peer, message)
        except (Left, ConnectionError, TimeoutError):
            if message.fresh:  # nobody knows the session
                self._end(peer, message.session, p.End("ConnectionLost", "its client has gone before it began."))
                if self.pool.alone:
                    self.pool.kill(peer)
            raise

    async def _answer(self, arrival: Arrival, work: Coroutine[Any, Any, web.StreamResponse]) -> web.StreamResponse:
        """Lets a client in, or tells it why not."""
        request = arrival.request
        try:
            return await work
        except Refused as e:
            self.journal.refused(request.remote or "", e.cause, e.error, e.reason)
            if e.elsewhere and OTHERS in request.headers and arrival.line is None:
                return web.json_response({"error": str(e.error)}, status=503)  # for the proxy, which tries another one
            return await arrival.part(p.End(class_name(e.error), str(e.error)))
        except Later as e:
            return await arrival.later(e.code, e.why)
        except (Left, TimeoutError):
            return await arrival.leave()

    def _stopping(self) -> str:
        left = max(0, math.ceil(self.stops_at - time.monotonic()))
        hint = f"Try again in {left + 1} s, or connect to another host."
        return f"the host is about to stop, and takes no new sessions. {hint}"

    # workers ----------------------------------------------------------------------------------------------------------

    def _receive(self, peer: Peer, message: Message) -> None:
        """What a worker says, of which nothing is believed that concerns others."""
        if isinstance(message, Alive) and message.session in peer.sessions:
            if message.running_ms > 1000 * (self.limits.seconds + OVERTIME):
                ran = message.running_ms / 1000
                self._kill(
                    peer, LimitError(f"a compilation or computation ran {ran:.1f} s of {self.limits.seconds:g} s.")
                )
            elif message.running_ms and message.away_ms > 1000 * (self.limits.unattended + OVERTIME):
                self._kill(peer, unattended(self.limits))
        elif isinstance(message, Ended) and message.session in peer.sessions:
            self._end(peer, message.session, p.End(message.error[:100], message.message), message.closed)
        elif isinstance(message, Totals) and message.session in peer.sessions:
            self.journal.worked(self.records[message.session], message)
        elif isinstance(message, Move) and message.session in peer.sessions:
            self._run(self.moves.move(peer, self.records[message.session]))
        elif isinstance(message, Rest) and message.session in peer.sessions:
            seconds = min(message.seconds, max(self.limits.job_seconds, self.limits.grace))
            self._run(self.moves.rest(peer, self.records[message.session], seconds))
        elif isinstance(message, Restored) and message.session in peer.sessions:
            self.moves.forget(self.records[message.session])
        elif isinstance(message, Said):
            level = min(message.level, logging.ERROR)
            log.log(level, "%s", message.text, extra=self._fields(peer, message.session))
        elif isinstance(message, (Seek, Offer, OfferPart)) and message.session in peer.sessions:
            if self.keeper is not None:
                self.keeper.receive(peer, message)
        elif isinstance(message, Need):
            self._grant(peer, message.bytes)
        elif isinstance(message, Returned):
            peer.granted = max(0, peer.granted - message.bytes)

    def _fields(self, peer: Peer, session: str = "") -> dict[str, str]:
        """What the log says of the session of a worker, or of one of them."""
        id = next(iter(peer.sessions)) if len(peer.sessions) == 1 else session
        return fields(self.records[id]) if id in peer.sessions else {}

    def _grant(self, peer: Peer, size: int) -> None:
        used = sum(other.granted for other in self.pool.peers.values())
        free = self.limits.total_bytes - used
        given = min(size + min(STEP, self.limits.total_bytes // 64), free) if size <= free else 0
        peer.granted += given
        peer.send(Granted(given, used, self.limits.total_bytes))

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs something in the loop, which holds its tasks weakly."""
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def _end(self, peer: Peer, id: str, end: p.End, closed: bool = False) -> None:
        """A session has ended; why is remembered for its client."""
        self.pool.left(peer, id)
        record = self.records.get(id)
        if record is not None and record.end is None:
            self._end_record(record, end, closed)

    def _end_record(self, record: Record, end: p.End, closed: bool = False) -> None:
        record.end, record.ended_at = end, time.monotonic()
        self.journal.ended(record, end, closed)
        self.moves.forget(record)
        self.room.cease(record.id)
        self.room.look()

    def _kill(self, peer: Peer, error: Exception) -> None:
        end = p.End(class_name(error), str(error))
        for id in list(peer.sessions):
            record = self.records[id]
            log.warning("session %s is killed: %s: %s", record.name, end.error, end.message, extra=fields(record))
            self._end(peer, id, end)
        self.pool.kill(peer)

    def _worker_ended(self, peer: Peer, code: int, by: int, words: str) -> None:
        if peer.killed or by or code:
            self.journal.metrics.died.labels("killed" if peer.killed else "crashed").inc()
        if peer.processor is not None:
            self._count(peer, max(peer.processor, peer.total))
        if not peer.sessions:
            return
        error = TAKEN_OVER if peer.broke else self._why(code, by, words)
        extra = self._fields(peer)
        log.warning("worker %d has ended: %s\n%s", peer.number, error, words.strip(), extra=extra)
        for id in list(peer.sessions):
            self._end(peer, id, p.End(class_name(error), str(error)))

    def _why(self, code: int, by: int, words: str) -> Exception:
        """Why a worker that was not asked to has ended."""
        memory = self.limits.session_bytes + self.limits.compile_bytes
        if any(word in words for word in MEMORY_WORDS):
            return LimitError(
                f"out of memory: the process of a session may take {memory} bytes here. Compute with smaller arrays or"
                " programs, or ask the host's operator for more."
            )
        if by == signal.SIGKILL:
            return LimitError("the system killed the session's process, as it does when the host is out of memory.")
        if code == STUCK:
            return ConnectionLost(
                "a program of another session could not be stopped, and all sessions of its device have ended with it."
                " Connect again."
            )
        how = f"crashed by signal {by} ({signal.strsignal(by)})" if by else f"ended with code {code}"
        return ConnectionLost(
            f"the session's process {how}; its arrays are gone. The host and its other sessions go on. Connect again;"
            " if the program does it again, report it."
        )

    async def _watch(self) -> None:
        """Kills workers that are out of control, and forgets why old sessions ended."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            now = time.monotonic()
            for peer in list(self.pool.peers.values()):
                silent = WATCH_SECONDS * peer.silent  # while this process was awake, if the whole machine was not
                peer.silent += 1
                if peer.sessions and silent > max(self.limits.seconds, SILENCE) + OVERTIME:
                    self._kill(
                        peer,
                        LimitError(
                            f"a compilation or computation took longer than {self.limits.seconds:g} s: the session's"
                            f" process gave no sign for {silent:.1f} s."
                        ),
                    )
                elif self.pool.alone and peer.sessions:
                    self._charge(peer)
                elif peer.finished_at is not None and now - peer.finished_at > peer.patience and not peer.killed:
                    self.pool.kill(peer)
            self.room.watch(self._holds, lambda: Refused("expired", AuthenticationError(REVOKED)))
            for id, record in list(self.records.items()):
                if record.end is None and not self._holds(record.grant):
                    self.finish(record, AuthenticationError(REVOKED))
                if record.end is None and record.peer is None and record.job is not None and not self.room.awaits(id):
                    if time.time() > record.job.until:
                        self.finish(record, ConnectionLost(LEFT))
                if record.end is None and record.told is not None and now - record.told_at > TOLD_SECONDS:
                    if self.pool.alone and record.peer is not None:
                        self._kill(record.peer, record.told)
                if record.end is not None and now - record.ended_at > self.limits.grace:
                    del self.records[id]

    def _charge(self, peer: Peer) -> None:
        """Counts the processor time of a session's process, and ends a session that has taken too much."""
        now = processor.seconds(peer.pid)
        if now is not None:
            self._count(peer, now)

    def _count(self, peer: Peer, now: float) -> None:
        """A session's process has taken so many seconds up to now."""
        taken, peer.processor = now - (peer.processor or 0.0), now
        self.journal.metrics.processor.inc(taken)
        self.charge(peer.guest, taken)

    def charge(self, id: str, seconds: float) -> None:
        """Counts processor time of a session, in whichever process."""
        record, most = self.records.get(id), self.limits.cpu_seconds
        if record is not None:
            record.processor += seconds
            if 0 < most < record.processor and record.told is None:
                why = f"the session has taken {record.processor:.1f} s of processor time, and {most:g} s are allowed."
                self.finish(
                    record, LimitError(why + " Compute less in one session, or ask the host's operator for more.")
                )

    def _holds(self, grant: Grant) -> bool:
        try:
            return self.gate.holds(grant)
        except AccessError as e:  # the file is damaged: nobody comes in, and those who are in stay until it is mended
            log.error("%s", e)
            return True


def _often(wait: int) -> str:
    return f"this token has opened as many connections in a minute as it may. Try again in {wait} s."


def _full(message: str) -> Refused:
    return Refused("full", LimitError(message))
