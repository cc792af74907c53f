"""A client's session: the messages that it has sent, those that it waits for, and how it resumes after a lost
connection.

This module touches no socket: a transport takes frames from `outgoing`, passes those that arrive to `receive`, and
implements waiting.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from weft.base import source_info
from weft.base.annotations import override
from weft.base.avals import ShapedArray
from weft.base.errors import BackendError, at_user_line, warn

from . import protocol as p
from .errors import ConnectionLost, ProtocolError, rebuild
from .reports import Reporter, Reports

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from weft.base.devices import Device

Make = Callable[[int], p.Message]  # an operation, of its number


class Compilation(NamedTuple):
    """Who is told of the end of a compilation."""

    failed: Callable[[Exception], None]
    done: Callable[[float], None]  # after so many seconds


FRAME = 256 << 10  # small messages travel together in frames of about this size
LOG = 64 << 20  # bytes sent and not confirmed, above which an upload waits
SMALL = 64 << 10  # bytes of a reply that the host may keep for a while
PROGRAMS = 1000  # that the host knows by their hashes
LINES = 10_000  # operations whose line in the user's program is remembered
CRUMBS, CRUMBS_BYTES = 32, 4096  # what is freed or settled waits for company, up to so many and so many bytes in all


class Progress(NamedTuple):
    """What a host does that takes long. While it is full, the session itself is "queued", and has a place."""

    name: str  # of a function; "" of the session itself
    stage: str  # "queued" behind other sessions, "compiling" or "running"
    seconds: float
    waiting: int  # operations that follow it
    place: int = 0  # of the session among the `of` that wait for a host that is full; 0 once it has begun
    of: int = 0


class Transport(Protocol):
    """The interface that a session needs from its transport."""

    def open(self) -> None:
        """Connects and logs in, or raises why that is not possible."""

    async def open_async(self) -> None:
        """The same for programs that await."""

    def wake(self) -> None:
        """There is something in `outgoing`. Never blocks; any thread may call it, also while garbage is collected."""

    def wake_soon(self) -> None:
        """The same, but the next operation may come along."""

    def wake_later(self) -> None:
        """The same, but it has time."""

    def wait(self, done: Callable[[], bool]) -> None:
        """Returns once `done()`, which changes only in `receive` or `fail`."""

    async def until(self, done: Callable[[], bool]) -> None:
        """The same for programs that await."""

    def can_wait(self) -> bool:
        """Whether `wait` may be called now."""

    def look(self) -> None:
        """Raises KeyboardInterrupt if the program must stop."""

    def relieve(self) -> None:
        """Lets the log of unconfirmed operations shrink below LOG, where waiting is possible."""

    def close(self, at_once: bool = False) -> None:
        """Says what there is to say, and waits a moment for the host to hear it; `at_once` leaves both out."""


@dataclass
class Stats:
    """Statistics of the traffic."""

    operations: int = 0  # numbered messages
    frames_sent: int = 0
    frames_received: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    waits: int = 0  # times that the program stood still for a reply: its round trips
    connections: int = 0


class Reply:
    """The answer to an operation."""

    __slots__ = ("data", "value", "error", "done", "credited")

    def __init__(self) -> None:
        self.data, self.credited, self.done = bytearray(), 0, False
        self.value: bytearray | str | None = None
        self.error: Exception | None = None


class Session:
    """A session on a host: made by `weft.remote.connect`, closed by `close()` or at the end of a `with` block.

    Its arrays exist on the host until they are freed or the session ends. A lost connection is resumed within the time
    that the host grants; unfinished messages are sent again. `on_progress`, if it is set, is called with a `Progress` a
    few times a second while the host computes or compiles something that takes long, in whichever thread hears of it.
    """

    def __init__(
        self,
        url: str,
        token: str,
        name: str,
        carrier: Callable[[Session], Transport],
        on_progress: Callable[[Progress], None] | None = None,
    ):
        self.url, self.token, self.name = url, token, name
        self.stats = Stats()
        self.granted: p.Welcome | None = None  # None until the host has answered
        self.failure: Exception | None = None
        self.closed = False
        self.on_close: Callable[[], None] | None = None
        self.progress: Progress | None = None  # the last that the host has told
        self.on_progress = on_progress
        self.waits_since: float | None = None  # for its place on a host that is full
        self._devices: list[Any] = []
        self.joined: Any = None  # the sessions on hosts that have joined this one, if there are any
        self._lock = threading.Lock()
        self._ops = 0
        self._log: deque[tuple[int, bytes]] = deque()  # operations that the host has not confirmed
        self._log_bytes = 0
        self._cancelled = 0  # the last operation whose result nobody wants
        self._sent = 0  # the last operation that this connection has carried
        self._control: deque[bytes] = deque()
        self._garbage: deque[int] = deque()
        self._garbage_bytes = 0  # about: several threads add to it
        self._settled: list[int] = []  # replies that the host may forget
        self._settled_bytes = 0
        self._handles = itertools.count(1)
        self._replies: dict[int, Reply] = {}
        self._lines: OrderedDict[int, source_info.SourceInfo] = OrderedDict()
        self._compilations: dict[int, Compilation] = {}  # whose ends are reported without a request
        self._programs: OrderedDict[bytes, None] = OrderedDict()  # hashes of those that the host knows
        self._kept: list[object] = []  # what others will find here: it is not freed
        self._reports = Reports()
        self.transport = carrier(self)

    # what users see -------------------------------------------------------------------------------------------------

    def devices(self) -> list[Device]:
        """The host's devices."""
        return list(self._devices)

    def close(self) -> None:
        """Ends the session, once the programs that print have done so. Its arrays are freed on the host and can't be
        used any more.
        """
        if self.closed:
            return
        try:
            self._finish()
        finally:
            self.closed = True
            self._control.append(p.encode(p.Bye()))
            self.fail(ConnectionLost(f"the session on {self.url} is closed."))
            self.transport.close()
            if self.on_close is not None:
                self.on_close()

    def leave(self) -> None:
        """Closes the connection, and leaves the session on the host to whoever takes up what `weft.remote.keep` gave.
        The arrays of this process can't be used any more.
        """
        if not self.closed:
            self.closed = True
            self.fail(ConnectionLost(f"the session on {self.url} was left to whoever resumes it."))
            self.transport.close(at_once=True)
            if self.on_close is not None:
                self.on_close()

    async def reported(self) -> None:
        """Returns when the programs that print have done so: `weft.effects_barrier` for programs that await."""
        for reply in self._reporting():
            await self.wait_async(reply)
        self._deliver()  # what programs reported that were answered before

    def _reporting(self) -> list[Reply]:
        """What programs that report values will be answered."""
        return [reply for op in list(self._reports.reporters) if (reply := self._replies.get(op)) is not None]

    def _finish(self) -> None:
        for reply in self._reporting():
            with suppress(RuntimeError):  # those who read a program's results are told; a page may be unable to wait
                self.wait(reply)
        self._deliver()  # what programs reported that were answered before

    def ping(self) -> None:
        """Returns when the host has done everything up to now, and raises if the session is lost."""
        self.tidy()
        self.wait(self.request(p.Ping))

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            self.cancel()
        self.close()

    @override
    def __repr__(self) -> str:
        state = (
            "closed" if self.closed else f"lost: {self.failure}" if self.failure else f"{len(self._devices)} devices"
        )
        return f"Session({self.url!r}, {state})"

    # operations -----------------------------------------------------------------------------------------------------

    @property
    def welcome(self) -> p.Welcome:
        """The limits that the host has granted."""
        if self.granted is None:
            raise ProtocolError(f"{self.url} has not answered yet.")
        return self.granted

    def operate(
        self,
        make: Make,
        *,
        line: bool = False,
        reply: Reply | None = None,
        compilation: Compilation | None = None,
        soon: bool = False,
    ) -> int:
        """Sends an operation, `soon` or at once, and returns its number, without waiting for anything."""
        with self._lock:
            if self.failure is not None:
                raise self.failure.with_traceback(None)  # else it grows with each operation that is refused
            if self._has_much_garbage():
                self._flush_garbage()
            op = self._append(make)
            if reply is not None:
                self._replies[op] = reply
            if compilation is not None:
                self._compilations[op] = compilation
            if line:
                self._lines[op] = source_info.current(3)
                if len(self._lines) > LINES:
                    self._lines.popitem(last=False)
        if soon:
            self.transport.wake_soon()
        else:
            self.transport.wake()
        return op

    def _append(self, make: Make) -> int:
        self._ops += 1
        data = p.encode(make(self._ops))
        self._log.append((self._ops, data))
        self._log_bytes += len(data)
        self.stats.operations += 1
        return self._ops

    def tidy(self) -> None:
        """What waits for company goes with the next frame."""
        with self._lock:
            self._flush_garbage()
            self._flush_settled()

    def _flush_settled(self) -> None:
        if self._settled:
            self._control.append(p.encode(p.Settled(tuple(self._settled))))
            self._forget_settled()

    def _forget_settled(self) -> None:
        self._settled.clear()
        self._settled_bytes = 0

    def _has_much_garbage(self) -> bool:
        return self._garbage_bytes >= CRUMBS_BYTES or len(self._garbage) >= CRUMBS

    def _flush_garbage(self) -> None:
        if self._garbage:
            self._garbage_bytes = 0
            handles: list[int] = []
            while self._garbage:
                handles.append(self._garbage.popleft())
            self._append(lambda op: p.Free(op, tuple(handles)))

    def request_each(self, choose: Callable[[], Iterable[tuple[Make, Reply]]]) -> None:
        """Sends operations that have replies. What is chosen is there: nothing is freed meanwhile."""
        with self._lock:
            if self.failure is not None:
                raise self.failure.with_traceback(None)
            for make, reply in choose():
                self._replies[self._append(make)] = reply
        self.transport.wake()

    def request(self, make: Make) -> Reply:
        """Sends an operation that has a reply, for `wait`."""
        reply = Reply()
        self.operate(make, reply=reply)
        return reply

    def wait(self, reply: Reply) -> bytearray | str | None:
        """The value of a reply, once it is there."""
        if not reply.done:
            if self._reports.answering == threading.get_ident():
                raise BackendError(
                    at_user_line(
                        f"a function that a program on {self.url} calls can't wait for that host, since the host waits"
                        " for the function. Pass the function what it needs, or read that before the program is called."
                    )
                )
            self.stats.waits += 1
        try:
            while not self._delivered(reply):
                self.transport.wait(lambda: reply.done or self._reports.ready)
        except KeyboardInterrupt:
            self.cancel()
            raise
        if reply.error is not None:
            raise reply.error
        return reply.value

    def _delivered(self, reply: Reply) -> bool:
        """Calls the functions of the reports that are there; whether the reply came before or with them."""
        done = reply.done
        if not self._reports.is_idle:
            self._deliver()
            if self._confirm_reports():
                self.transport.wake()
        return done

    def _deliver(self) -> None:
        self._reports.deliver(self.transport.look, self._answer)

    def _answer(self, report: int, data: bytes | None) -> None:
        """Tells the program that waits for a function what it returned."""
        if data is None:
            self.operate(lambda op: p.Raised(op, report))
            return
        chunk = self._chunk()
        for at in range(0, max(len(data), 1), chunk):
            last, part = at + chunk >= len(data), data[at : at + chunk]
            self.operate(lambda op: p.Result(op, report, last, part))

    def _confirm_reports(self) -> bool:
        with self._lock:
            message = self._reports.confirm()
            if message is not None:
                self._control.append(p.encode(message))
            return message is not None

    def cancel(self) -> None:
        """Drops all pending operations: the host drops what it has not begun and stops what it computes or compiles,
        and no reply is awaited any more. (One process for all sessions, as on a GPU, computes to the end.)
        """
        with self._lock:
            stopped = "this result is not awaited any more: the program was stopped."
            for op, reply in self._replies.items():
                # that a program has ended says its reply, and this one has for all who wait for its reports
                reply.error = None if op in self._reports.reporters else BackendError(stopped)
                reply.done = True
            self._replies.clear()
            self._reports.cancel(self._ops)
            self._cancelled = self._ops
            self._control.append(p.encode(p.Cancel(self._cancelled)))
        self.transport.wake()

    async def wait_async(self, reply: Reply) -> None:
        """Returns once a reply is there, for programs that await; `wait` gives its value then."""
        if not reply.done:
            self.stats.waits += 1
        try:
            while not self._delivered(reply):
                await self.transport.until(lambda: reply.done or self._reports.ready)
        except KeyboardInterrupt:
            self.cancel()
            raise

    def keep(self, seconds: int) -> int:
        """Has the host keep the session while no connection carries it; for how many seconds it does."""
        granted = self.wait(self.request(lambda op: p.Keep(op, seconds)))
        assert isinstance(granted, str)
        return int(granted)

    def hold(self, tree: object) -> None:
        """Does not free these arrays."""
        self._kept.append(tree)

    def new_handle(self) -> int:
        return next(self._handles)

    def put(self, data: bytes | memoryview, aval: ShapedArray, device: int) -> int:
        """Uploads an array; returns its handle."""
        handle, chunk = self.new_handle(), self._chunk()
        self.operate(lambda op: p.Put(op, handle, aval, device, data[:chunk]), line=True)
        for at in range(chunk, len(data), chunk):
            if self._log_bytes > LOG:
                self.transport.relieve()
            self.operate(lambda op: p.Part(op, handle, data[at : at + chunk]))
        return handle

    def send_program(self, digest: bytes, data: bytes) -> None:
        """Sends a program, unless the host has it."""
        if digest in self._programs:
            self._programs.move_to_end(digest)
        else:
            self._programs[digest] = None
            if len(self._programs) > PROGRAMS:
                oldest, _ = self._programs.popitem(last=False)
                self.operate(lambda op: p.Forget(op, oldest))
            chunk = self._chunk()
            self.operate(lambda op: p.Program(op, digest, len(data), data[:chunk]))
            for at in range(chunk, len(data), chunk):
                self.operate(lambda op: p.ProgramPart(op, digest, data[at : at + chunk]))

    def compile(
        self, digest: bytes, device: int, name: str, donated: tuple[bool, ...], compilation: Compilation
    ) -> int:
        """Compiles a program that was sent; returns the handle of the result."""
        handle = self.new_handle()
        make = lambda op: p.Compile(op, handle, digest, device, name, donated)
        self.operate(make, line=True, compilation=compilation)
        return handle

    def execute(self, program: int, arguments: p.Ints, results: p.Ints) -> None:
        self.operate(lambda op: p.Execute(op, program, arguments, results), line=True, soon=True)

    def execute_fetching(self, program: int, arguments: p.Ints, results: p.Ints, fetched: p.Ints) -> Reply:
        """`execute`, and a request for the bytes of some results."""
        reply = Reply()
        make = lambda op: p.ExecuteFetching(op, program, arguments, results, fetched)
        self.operate(make, line=True, reply=reply)
        return reply

    def execute_reporting(self, program: int, arguments: p.Ints, results: p.Ints, reporter: Reporter) -> Reply:
        """`execute` of a program that reports values; the reply comes after the last report."""
        reply = Reply()

        def make(op: int) -> p.Message:
            self._reports.reporters[op] = reporter
            return p.ExecuteReporting(op, program, arguments, results)

        self.operate(make, line=True, reply=reply)
        return reply

    def release(self, handle: int, nbytes: int = CRUMBS_BYTES) -> None:
        """Frees an array or program some time soon. Takes no lock: garbage collection calls it anywhere."""
        if self.failure is None:
            self._garbage.append(handle)
            self._garbage_bytes += nbytes
            self.transport.wake_later()

    def _chunk(self) -> int:
        return min(p.CHUNK, self.welcome.frame - p.HEADER)

    # for transports ---------------------------------------------------------------------------------------------------

    def take_up(self, id: str, secret: bytes) -> None:
        """The session is one that the host has, from another client; before the first connection."""
        self.granted = p.Welcome(id, secret, 0, 0, 0, 0, ())

    def go_on(self, handles: int) -> None:
        """Operations follow those that the host has received, each of at most so many handles; after `take_up`, and the
        first connection.
        """
        self._ops = self._sent
        self._handles = itertools.count(self._ops * handles + 1)

    def address(self) -> str:
        """Where the next connection goes."""
        parts = urlsplit(self.url)
        path = parts.path.rstrip("/") + "/session"
        if self.granted is not None:
            path += "/" + quote(self.granted.id, safe="")
        name = urlencode({"name": self.name}, errors="replace") if self.name and self.granted is None else ""
        return urlunsplit((parts.scheme, parts.netloc, path, "&".join(filter(None, (parts.query, name))), ""))

    def offers(self) -> list[str]:
        """The subprotocols that the next connection offers, the login among them."""
        return p.offered(self.token, self.granted.secret if self.granted is not None else b"")

    def start(self, frame: Buffer) -> bool:
        """Takes the host's first frame; whether the session has begun, and does not have to wait. If the frame ends the
        session, raises the reason.
        """
        messages = list(p.decode(frame))
        first = messages[0]
        if isinstance(first, p.Waiting):
            self._wait_for_place(first)
            return False if len(messages) == 1 else self.start(p.encode(*messages[1:]))
        if isinstance(first, p.Beat):  # the answer to this client's
            return False
        self.waits_since = None
        if isinstance(first, p.End):
            raise rebuild(first.error, first.message)
        if not isinstance(first, p.Welcome):
            raise ProtocolError(f"{self.url} answers as no weft host does: {type(first).__name__}.")
        with self._lock:
            self.granted = first
            self._confirm(first.received)
            self._sent = first.received
            self._control.clear()
            self._forget_settled()  # the host sends these replies again
            self._reports.confirmed = 0  # the host sends again what it has not heard of
            if self.closed:
                self._control.append(p.encode(p.Bye()))
            elif self._cancelled > 0:  # the host may not have heard of it
                self._control.append(p.encode(p.Cancel(self._cancelled)))
            for reply in self._replies.values():  # the host sends replies again from their beginning
                reply.data, reply.credited = bytearray(), 0
            self.stats.connections += 1
        for message in messages[1:]:
            self._handle(message)
        return True

    @property
    def waited(self) -> float:
        """Seconds for which the session has waited for its place."""
        return 0.0 if self.waits_since is None else time.monotonic() - self.waits_since

    def _wait_for_place(self, message: p.Waiting) -> None:
        if self.waits_since is None:
            self.waits_since = time.monotonic()
            if self.on_progress is None:  # a program that stands still says why
                who = "this program waits for a session"
                warn(f"{self.url} is full: {who}, at place {message.place} of {message.of}.", RuntimeWarning)
        self._tell(Progress("", "queued", self.waited, 0, message.place, message.of))

    def outgoing(self) -> bytes | None:
        """The next frame to send; None if there is nothing to send."""
        if self.granted is None:  # closed before the host has answered
            return None
        if not self._control and self._sent == self._ops and not self._has_much_garbage():
            return None  # whoever adds something wakes the transport afterwards
        with self._lock:
            if self._has_much_garbage():
                self._flush_garbage()
            parts: list[bytes] = []
            size, limit = 0, min(FRAME, self.granted.frame)
            while self._control and size < limit // 2:
                parts.append(self._control.popleft())
                size += len(parts[-1])
            for op, data in itertools.islice(self._log, self._unsent(), None):
                if parts and size + len(data) > limit:
                    break
                parts.append(data)
                size += len(data)
                self._sent = op
            if not parts:
                return None
            self.stats.frames_sent += 1
            self.stats.bytes_sent += size
            return b"".join(parts) if len(parts) > 1 else parts[0]

    def _unsent(self) -> int:
        """Where in the log the operations begin that this connection has not carried; the log's numbers have no
        gaps.
        """
        return max(0, self._sent + 1 - self._log[0][0]) if self._log else 0

    def receive(self, frame: Buffer) -> None:
        """Takes a frame from the host."""
        self.stats.frames_received += 1
        self.stats.bytes_received += memoryview(frame).nbytes
        for message in p.decode(frame):
            self._handle(message)

    def ask(self) -> None:
        """Asks the host whether it is there, with the next frame."""
        self._control.append(p.encode(p.Beat()))
        self.transport.wake()

    def log_bytes(self) -> int:
        return self._log_bytes

    def fail(self, error: Exception) -> None:
        """The session is lost: all pending and all later requests get `error`."""
        with self._lock:
            if self.failure is not None:
                return
            self.failure = error
            replies = list(self._replies.values())
            self._replies.clear()
            self._log.clear()
            self._log_bytes = 0
        for reply in replies:
            reply.error, reply.done = error, True

    # replies ----------------------------------------------------------------------------------------------------------

    def _confirm(self, op: int) -> None:
        while self._log and self._log[0][0] <= op:
            self._log_bytes -= len(self._log.popleft()[1])

    def _handle(self, message: p.Message) -> None:
        if isinstance(message, p.Received):
            with self._lock:
                self._confirm(message.op)
        elif isinstance(message, p.Data):
            self._data(message)
        elif isinstance(message, p.Ready):
            self._settle(message.op, None)
        elif isinstance(message, p.Text):
            self._settle(message.op, message.text)
        elif isinstance(message, p.Progress):
            self._progress(message)
        elif isinstance(message, p.Kept):
            self._settle(message.op, str(message.seconds))
        elif isinstance(message, p.Error):
            self._error(message)
        elif isinstance(message, p.Report):
            self._reports.take(message)
            if self._confirm_reports():
                self.transport.wake()
        elif isinstance(message, p.Compiled):
            compilation = self._compilations.pop(message.op, None)
            if compilation is not None:
                compilation.done(message.microseconds / 1e6)
        elif isinstance(message, p.Beat):
            pass
        elif isinstance(message, p.End):
            raise rebuild(message.error, message.message)
        else:
            raise ProtocolError(f"the host sent a {type(message).__name__}, which only clients send.")

    def _progress(self, message: p.Progress) -> None:
        self._tell(Progress(message.name, message.stage, message.milliseconds / 1000, message.waiting))

    def _tell(self, progress: Progress) -> None:
        self.progress = progress
        if self.on_progress is not None:
            try:
                self.on_progress(self.progress)
            except Exception as e:  # in the midst of a frame, whose other messages must not be lost
                warn(f"on_progress raised {type(e).__name__}: {e}", RuntimeWarning)

    def _settle(self, op: int, value: bytearray | str | None, error: Exception | None = None) -> None:
        with self._lock:
            reply = self._replies.pop(op, None)
            self._reports.reporters.pop(op, None)
            self._settled.append(op)
            size = 0 if value is None else len(value)
            self._settled_bytes += size
            if self._settled_bytes >= CRUMBS_BYTES or len(self._settled) >= CRUMBS:
                self._flush_settled()
        if reply is not None:
            reply.value, reply.error = value, error
            reply.done = True
        if size <= SMALL:
            self.transport.wake_later()
        else:  # the host keeps it until it hears of this
            self.transport.wake()

    def _data(self, message: p.Data) -> None:
        reply = self._replies.get(message.op)
        if reply is None:  # settled, and sent again before the host knew
            if message.offset + len(message.data) >= message.size:
                self._settle(message.op, None)
            return
        if message.offset != len(reply.data) or message.offset + len(message.data) > message.size:
            raise ProtocolError(
                f"the host sent bytes {message.offset}… of a reply of which {len(reply.data)} are here."
            )
        reply.data += message.data
        have = len(reply.data)
        if have == message.size:
            self._settle(message.op, reply.data)
        elif have - reply.credited >= self.welcome.window // 4:
            reply.credited = have
            self._control.append(p.encode(p.Credit(message.op, have)))
            self.transport.wake()

    def _error(self, message: p.Error) -> None:
        line = self._lines.get(message.origin)
        text = message.message
        if line is not None and line.code is not None and f"{line.file}:{line.line}" not in text:
            text = f"{text}\n  at {line}, on {self.url}"
        raised = self._reports.raised.get(message.origin)
        error = rebuild(message.error, text) if raised is None else raised
        # editors mark it: the traceback ends where the program stood still for the result
        vars(error)["source_info"] = line
        compilation = self._compilations.pop(message.op, None)
        if compilation is not None:
            compilation.failed(error)
        self._settle(message.op, None, error)
