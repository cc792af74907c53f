"""Performs the operations of a session, in order."""

from __future__ import annotations

import itertools
import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol, assert_never, get_args

from weft.base import dtypes
from weft.core.trace import is_array
from weft.runtime.backend import Device
from weft.runtime.device import backend_of
from weft.runtime.effects import effects_barrier
from weft.runtime.partition import Partition
from weft.serialization.binary import DeserializationError
from weft.serialization.programs import content_hash
from weft_remote import protocol as p
from weft_remote.errors import LimitError, ProtocolError, class_name

from .computations import Computations
from .counts import Counts
from .limits import INCOMPLETE, PROGRAM_WEIGHT, QUEUE_BYTES, QUEUE_MESSAGES, SHORT_BYTES, Limits
from .memory import Charge, Tally
from .messages import public_text
from .programs import Executable, Programs, nbytes
from .reports import Reports
from .shelf import Entry
from .spread import Spread, own_device, place
from .store import Compiled, Inherited, Known, Store
from .values import Answer, Failed, Incoming, Stored, Transfer, finished, host_array, host_bytes, is_gone

log = logging.getLogger("weft.host")
LONG = 0.2  # seconds after which clients are told of what is under way
LOOK = 0.01  # seconds between two looks whether what was cancelled has ended
STOPPED = "this was stopped by its client before the host began with it."
COMPUTING = (*get_args(p.Execution), p.Compile, p.CompileSpread)


class Doing(NamedTuple):
    """What the thread does that may take long."""

    op: int
    name: str
    stage: str
    since: float


class Client(Protocol):
    """What the performer needs of a session."""

    id: str
    name: str
    end: p.End | None
    cancelled: int
    can_move: bool
    limits: Limits
    memory: Tally
    reply_bytes: Tally
    outbox: deque[p.Message]
    reports: Reports
    counts: Counts

    def tell(self, call: Callable[..., None], /, *args: Any) -> None:
        """Has the event loop call a function."""

    def wake(self) -> None:
        """There is something to send."""

    def reply(self, op: int, reply: Answer | Transfer) -> None:
        """Sends a reply, in the event loop."""

    def fail(self, error: Exception) -> None:
        """Ends the session, in the event loop."""

    def keep(self, op: int, seconds: int) -> None:
        """The session outlives its connection, in the event loop."""

    def proceed(self) -> None:
        """There is room in the queue again, in the event loop."""


class Performer:
    """Performs operations in a thread of its own, or in the event loop where that is quicker. A second thread waits for
    the results that the client reads.
    """

    def __init__(self, session: Client, programs: Programs, devices: list[Device]):
        self.session, self.programs, self.devices = session, programs, devices
        self.loop_thread = threading.get_ident()
        self.store = Store(session.limits, session.memory)
        self.computations = Computations(session.limits.seconds, lambda: session.end is not None)
        self.files: set[str] = set()  # that the client's programs name
        self.reading: bytes | bytearray = b""  # a program whose lines are not known yet
        self.queue: deque[tuple[p.Operation, int]] = deque()
        self.queued_bytes = self.queued = 0  # that the event loop put there
        self.done_bytes = self.done = 0  # that the thread has performed
        self.changed = threading.Condition()  # the queue, `current`, `moving` or `closed`
        self.current: p.Operation | None = None  # what the thread performs
        self.doing: Doing | None = None
        self.moving = self.closed = self.crowded = False
        self.thread: threading.Thread | None = None
        self.waiter: ThreadPoolExecutor | None = None
        self.waiting: set[int] = set()  # operations whose replies the waiter has not read yet

    # the event loop ---------------------------------------------------------------------------------------------------

    def take(self, message: p.Operation, size: int) -> None:
        """Performs an operation, now or when its turn comes."""
        if self._is_short(message):
            self.perform(message)
            return
        self.queued_bytes += size
        self.queued += 1
        with self.changed:
            self.queue.append((message, size))
            self.changed.notify_all()
        self.start()

    def _is_short(self, m: p.Operation) -> bool:
        """Whether an operation can be performed at once, in the event loop: nothing is before it, and it is known to
        take no time. A thread takes longer to begin with one than most of them take.
        """
        if self.queued != self.done or self.waiting:
            return False
        match m:
            case p.Ping() | p.Free() | p.Keep() | p.Forget():
                return True
            case p.Put():
                return len(m.data) <= SHORT_BYTES and len(m.data) == nbytes(m.aval)
            case p.Fetch():
                value = self.store.values.get(m.handle)
                return isinstance(value, Stored) and nbytes(value.aval) <= SHORT_BYTES and finished(value.array)
            case p.Execute() | p.ExecuteFetching():
                program = self.store.values.get(m.program)
                if not isinstance(program, Compiled) or program.executable is None or not program.executable.is_short:
                    return False
                if isinstance(m, p.ExecuteFetching):
                    sizes = program.executable.out_sizes
                    if sum([sizes[k] for k in m.fetched if k < len(sizes)]) > SHORT_BYTES:
                        return False
                self.computations.drop_finished()
                return not self.computations.running
        return False

    def is_full(self) -> bool:
        """Whether no more messages can be taken now; the session is told when that has changed."""
        self.crowded = True  # before the look, so that the thread that makes room sees it
        self.crowded = not self.closed and (
            self.queued_bytes - self.done_bytes > QUEUE_BYTES or self.queued - self.done > QUEUE_MESSAGES
        )
        return self.crowded

    def is_busy(self) -> bool:
        """Whether anything is under way, queued or computing."""
        self.computations.drop_finished()
        return bool(self.queued != self.done or self.waiting or self.computations.running)

    def progress(self) -> p.Progress | None:
        """What has been under way for some time."""
        now, doing = time.monotonic(), self.doing
        if doing is None or doing.stage == "running" and self.computations.running:
            self.computations.drop_finished()
            running, since = list(self.computations.running), self.computations.head_since
            if running and since is not None:
                doing = Doing(running[0].op, running[0].name, "running", since)
        if doing is None or now - doing.since < LONG:
            return None
        waiting = max(0, self.queued - self.done - (self.current is not None))
        return p.Progress(doing.op, doing.name, doing.stage, int(1000 * (now - doing.since)), waiting)

    def is_cancelled_in_vain(self) -> bool:
        """Whether something goes on that the client has cancelled."""
        with self.changed:
            current = self.current
        through = self.session.cancelled
        return self.computations.are_running(through) or (isinstance(current, COMPUTING) and current.op <= through)

    def close(self) -> None:
        """Ends the thread after the operation that it performs."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()
        if self.waiter is not None:
            self.waiter.shutdown(wait=False, cancel_futures=True)

    def park(self, seconds: float) -> None:
        """Returns when the thread has stopped between two operations, or performs one that may take as long as it
        likes. Nothing is performed after that.
        """
        with self.changed:
            self.moving = True
            self.changed.notify_all()
            self.changed.wait_for(
                lambda: self.current is None or isinstance(self.current, COMPUTING),
                seconds,
            )
            idle = self.current is None
        if idle and self.thread is not None:
            self.thread.join(seconds)

    def stay(self) -> None:
        """Goes on after `park`, which has found nothing to do."""
        with self.changed:
            self.moving = False
        self.thread = None
        self.start()

    # the session's thread ---------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while (item := self._next()) is not None:
            message, size = item
            try:
                if not self.perform(message):
                    break
            finally:
                with self.changed:
                    self.current = None
                    if self.moving:
                        self.changed.notify_all()
            self.done_bytes += size
            self.done += 1
            if self.crowded and not self.is_full():
                self.session.tell(self.session.proceed)
        if not self.moving:
            self.store.clear()
            self.computations.running.clear()

    def _next(self) -> tuple[p.Operation, int] | None:
        """The next operation; None ends the thread. What follows a cancelled computation waits for its end, so that a
        session that has to move takes nothing along that has begun.
        """
        with self.changed:
            while not self.closed and not self.moving:
                if not self.queue:
                    self.changed.wait()
                elif (
                    self.session.can_move
                    and self.queue[0][0].op > self.session.cancelled
                    and self.computations.are_running(self.session.cancelled)
                ):
                    self.changed.wait(LOOK)
                else:
                    item = self.queue.popleft()
                    self.current = item[0]
                    return item
            return None

    def perform(self, message: p.Operation) -> bool:
        """Whether the session goes on."""
        self.begin()
        try:
            self._perform(message)
        except Exception as e:  # errors that concern a single operation have been caught in it
            if not isinstance(e, (ProtocolError, LimitError, DeserializationError)):
                extra = {"session": self.session.id}
                log.exception("session %s, %s", self.session.name, type(message).__name__, extra=extra)
            self.session.tell(self.session.fail, e)
            return False
        finally:
            self.computations.rest()
        return True

    def begin(self) -> None:
        """The time of a computation begins."""
        self.computations.begin()

    def _perform(self, m: p.Operation) -> None:
        if m.op <= self.session.cancelled and self._is_dropped(m):
            return
        match m:
            case p.Execute():
                self._execute(m)
            case p.ExecuteFetching():
                self._execute_fetching(m)
            case p.ExecuteReporting():
                self._execute_reporting(m)
            case p.Put():
                self._put(m)
            case p.Part():
                self._put_part(m)
            case p.Program():
                self._program(m)
            case p.ProgramPart():
                self._program_part(m)
            case p.Compile() | p.CompileSpread():
                self._compile(m)
            case p.Copy():
                self._copy(m)
            case p.Free():
                for handle in m.handles:
                    self.store.free(handle)
            case p.Fetch():
                self._fetch(m)
            case p.Wait():
                self._wait(m)
            case p.Inspect():
                self._inspect(m)
            case p.Ping():
                self._reply(m.op, Answer(p.Ready(m.op)))
            case p.Keep():
                self.session.tell(self.session.keep, m.op, m.seconds)
            case p.Forget():
                self.store.forget(m.hash)
            case _:
                assert_never(m)

    def _is_dropped(self, m: p.Operation) -> bool:
        """Whether an operation that the client did not want any more before it began is not performed."""
        match m:
            case p.Execute() | p.ExecuteReporting() | p.ExecuteFetching() | p.Copy() | p.Fetch() | p.Wait():
                failed = Failed(m.op, "BackendError", STOPPED)
                if isinstance(m, p.Execution):
                    for handle in m.results:
                        self.store.define(handle, failed)
                if isinstance(m, p.Copy):
                    self.store.define(m.handle, failed)
                elif not isinstance(m, p.Execute):
                    self._fail(m.op, failed)
                return True
            case p.Compile() | p.CompileSpread() if m.program in self.store.known:
                self.restore(m)  # it is compiled when it is used, if it is
                return True
        return False

    # after a move ---------------------------------------------------------------------------------------------------

    def restore(self, m: p.Message) -> None:
        """Performs again what the client had before its session came here."""
        match m:
            case p.Put() | p.Part() | p.Program() | p.ProgramPart():
                self._perform(m)
            case p.Compile() | p.CompileSpread() if m.program in self.store.known:
                self._place(m, self.store.known[m.program])
                self.store.define(m.handle, Compiled(m, self.store.known[m.program], None))
            case _:
                raise ProtocolError(f"a session does not move with {type(m).__name__}.")

    def restore_later(self, m: p.Message, size: int) -> None:
        """Puts an operation into the queue."""
        if not isinstance(m, p.OPERATIONS):
            raise ProtocolError(f"{type(m).__name__} is no operation.")
        self.queue.append((m, size))
        self.queued += 1
        self.queued_bytes += size

    def start(self) -> None:
        """Begins with what is in the queue."""
        if self.queue and self.thread is None:
            self.thread = threading.Thread(target=self._run, name=f"session {self.session.name}", daemon=True)
            self.thread.start()

    def said(self, path: str) -> bool:
        """Whether a path belongs to the client."""
        return path in self.files or path.encode("utf-8", "surrogatepass") in self.reading

    def failed(self, op: int, error: Exception) -> Failed:
        return Failed(op, class_name(error), public_text(error, self.said))

    def _device(self, index: int) -> Device:
        return own_device(self.devices, index)

    # uploads ----------------------------------------------------------------------------------------------------------

    def _put(self, m: p.Put) -> None:
        self._device(m.device)
        size = nbytes(m.aval)
        if m.handle in self.store.arrays or m.handle in self.store.values:
            raise ProtocolError(f"handle {m.handle} is in use.")
        try:
            charge = self.store.charge(size, f"an array of type {m.aval.str_short()}", 0)
        except LimitError as e:
            self.store.define(m.handle, self.failed(m.op, e))  # its parts will arrive nevertheless
            return
        self._take_part(m.handle, Incoming(m, size, charge), m.data)

    def _put_part(self, m: p.Part) -> None:
        incoming = self.store.arrays.get(m.handle)
        if incoming is not None:
            self._take_part(m.handle, incoming, m.data)
        elif not isinstance(self.store.values.get(m.handle), Failed):
            raise ProtocolError(f"bytes came for handle {m.handle}, which takes none.")

    def _take_part(self, handle: int, incoming: Incoming[p.Put], data: p.Bulk) -> None:
        try:
            value: Stored | Failed | None = self._uploaded(incoming) if incoming.take(data) else None
        except ProtocolError:
            raise
        except Exception as e:
            value = self.failed(incoming.message.op, e)
        if value is None:
            self._check_incomplete(handle in self.store.arrays)
            self.store.arrays[handle] = incoming
        else:
            self.store.arrays.pop(handle, None)
            self.store.define(handle, value)

    def _uploaded(self, incoming: Incoming[p.Put]) -> Stored:
        message = incoming.message
        device = self._device(message.device)
        array = backend_of(device).put(host_array(incoming.data, message.aval), message.aval, device, True)
        return Stored(array, message.aval, device, message.device, incoming.charge)

    def _check_incomplete(self, known: bool) -> None:
        """Raises LimitError if there is no room for another incomplete upload."""
        if not known and len(self.store.arrays) + len(self.store.parts) >= INCOMPLETE:
            raise LimitError(f"{INCOMPLETE} arrays and programs are under way and incomplete.")

    def _program(self, m: p.Program) -> None:
        store, limits = self.store, self.session.limits
        if len(m.hash) != 32 or m.hash in store.parts:
            raise ProtocolError("a program's hash has 32 bytes, and its parts come once.")
        if m.size > limits.program_bytes:
            raise LimitError(f"a program of {m.size} bytes exceeds the limit of {limits.program_bytes}.")
        if len(store.known) >= limits.programs and m.hash not in store.known:
            raise LimitError(f"the session has {limits.programs} programs, and may have no more. Forget some.")
        charge = Charge(store.program_bytes, store.memory, m.size, "a program", 0)
        self._take_program(m.hash, Incoming(m, m.size, charge), m.data)

    def _program_part(self, m: p.ProgramPart) -> None:
        incoming = self.store.parts.get(m.hash)
        if incoming is None:
            raise ProtocolError("bytes came for a program that takes none.")
        self._take_program(m.hash, incoming, m.data)

    def _take_program(self, digest: bytes, incoming: Incoming[p.Program], data: bytes) -> None:
        store = self.store
        if not incoming.take(data):
            self._check_incomplete(digest in store.parts)
            store.parts[digest] = incoming
            return
        store.parts.pop(digest, None)
        if digest in store.known:  # from before the client came back, who does not know that
            return
        if content_hash(incoming.data) != digest:
            raise DeserializationError("a program does not have the hash that it came with")
        charge = Charge(store.program_bytes, store.memory, incoming.size * PROGRAM_WEIGHT, "a program")
        self.reading = incoming.data
        program = self.programs.check(digest, incoming.data)
        store.known[digest] = Known(program, incoming.data, charge)
        self.files |= program.files
        self.reading = b""

    # computations -----------------------------------------------------------------------------------------------------

    def _copy(self, m: p.Copy) -> None:
        device = self._device(m.device)
        try:
            source = self.store.array(m.source)
            charge = self.store.charge(nbytes(source.aval), "a copy on another device")
            backend = backend_of(device)
            transfer = backend.capabilities.transfer
            array = (
                backend.put(source.array._host(), source.aval, device, True)
                if transfer is None
                else transfer(source.array, source.aval, device, True)
            )
            value: Stored | Failed = Stored(array, source.aval, device, m.device, charge)
        except ProtocolError:
            raise
        except Inherited as e:
            value = e.failed
        except Exception as e:
            value = self.failed(m.op, e)
        self.store.define(m.handle, value)

    def _place(self, m: p.Compile | p.CompileSpread, known: Known) -> Device | Partition:
        return place(m, known.program.jaxpr, self.devices)

    def _compile(self, m: p.Compile | p.CompileSpread) -> None:
        known = self.store.known.get(m.program)
        if known is None:
            raise ProtocolError("a program must come before it is compiled.")
        device = self._place(m, known)
        arguments = len(known.program.jaxpr.invars)
        if len(m.donated) != arguments:
            raise ProtocolError(f"the program has {arguments} arguments; {len(m.donated)} were described.")
        self.computations.rest()  # other sessions' compilations have precedence
        try:
            executable = self._executable(m, known, device)
            self.store.define(m.handle, Compiled(m, known, executable))
            began = self.computations.busy_since  # None if it was compiled already
            took = 0.0 if began is None else time.monotonic() - began
            if began is not None and not executable.found:
                self.session.counts.compiled(took)
            self.session.tell(self._say_compiled, m.op, took)
        except (ProtocolError, LimitError):
            raise
        except Exception as e:
            failed = self.failed(m.op, e)
            self.store.define(m.handle, failed)
            self._fail(m.op, failed)

    def _executable(self, m: p.Compile | p.CompileSpread, known: Known, device: Device | Partition) -> Executable:
        size, reporting, name = len(known.data), self.session.reports.program, m.name[:200]

        def begin() -> None:
            self.doing = Doing(m.op, name, "compiling", time.monotonic())
            self.begin()

        self.doing = Doing(m.op, name, "queued", time.monotonic())
        entry = Entry(self.session.id, m, name, known.data)
        try:
            return self.programs.compile(
                m.program, known.program, size, device, name, m.donated, begin, reporting, entry
            )
        finally:
            self.doing = None

    def _say_compiled(self, op: int, seconds: float) -> None:
        self.session.outbox.append(p.Compiled(op, round(1e6 * seconds)))
        self.session.wake()

    def _execute(self, m: p.Execution) -> Failed | None:
        """The failure, if it failed."""
        failed = None
        try:
            outs: Sequence[Stored | Failed] = self._results(m)
        except ProtocolError:
            raise
        except Inherited as e:
            failed = e.failed
        except Exception as e:
            failed = self.failed(m.op, e)
        for handle, value in zip(m.results, outs if failed is None else [failed] * len(m.results)):
            self.store.define(handle, value)
        return failed

    def _execute_fetching(self, m: p.ExecuteFetching) -> None:
        if any(k >= len(m.results) for k in m.fetched):
            raise ProtocolError(f"result {max(m.fetched)} of {len(m.results)} is fetched.")
        failed = self._execute(m)
        if failed is None:
            self._send(m.op, [self.store.array(m.results[k]) for k in m.fetched])
        else:
            self._fail(m.op, failed)

    def _execute_reporting(self, m: p.ExecuteReporting) -> None:
        self.session.reports.op = m.op
        failed = self._execute(m)
        if failed is None:
            self._reply(m.op, Answer(p.Ready(m.op)))
        else:
            self._fail(m.op, failed)

    def _results(self, m: p.Execution) -> list[Stored]:
        compiled = self.store.compiled(m.program)
        executable, name = self._ready(compiled), compiled.message.name[:200]
        self.doing = Doing(m.op, name, "running", time.monotonic())
        try:
            return self._computed(m, executable, name)
        finally:
            self.doing = None

    def _computed(self, m: p.Execution, executable: Executable, name: str) -> list[Stored]:
        if len(m.arguments) != len(executable.in_types) or len(m.results) != len(executable.out_avals):
            raise ProtocolError(
                f"the program takes {len(executable.in_types)} arguments and gives {len(executable.out_avals)} results;"
                f" {len(m.arguments)} and {len(m.results)} were named."
            )
        if executable.reports != isinstance(m, p.ExecuteReporting):
            raise ProtocolError(
                "ExecuteReporting is for the programs that report, and Execute for the others. A client that knows no"
                " callbacks, as that in JavaScript, runs programs without prints and callbacks."
            )
        stored = [self.store.array(h) for h in m.arguments]
        for i, (x, (shape, dtype)) in enumerate(zip(stored, executable.in_types)):
            if x.aval.shape != shape or x.aval.dtype != dtype:
                raise ProtocolError(
                    f"argument {i} is {x.aval.str_short()} where the program takes {dtypes.name(dtype)}{list(shape)}."
                )
            here = executable.devices[i % len(executable.devices)]
            if x.device is not here:
                raise ProtocolError(f"argument {i} is on {x.device}, the program on {here}.")
        self.computations.make_place()
        *charges, temporary = self._room_for(executable)
        before = self.computations.give([x for x, given in zip(stored, executable.donated) if given])
        self.session.counts.called(executable.name)
        began = time.perf_counter()
        outs = executable.execute([x.array for x in stored])
        executable.took(time.perf_counter() - began, not outs or finished(outs[0]))
        if executable.reports:
            effects_barrier()  # a program that reports runs alone, so that it is known whose the reports are
        for x in stored:
            if is_gone(x.array):  # given away: a result has its memory, and has been counted
                x.charge.release()
        if outs:
            self.computations.add(m.op, name, outs[0], temporary, before)
        places = [(d, self.devices.index(d)) for d in executable.devices]
        return [
            Stored(x, a, device, index, c)
            for x, a, (device, index), c in zip(outs, executable.out_avals, itertools.cycle(places), charges)
        ]

    def _ready(self, compiled: Compiled) -> Executable:
        """The executable of a program, which is compiled again if the session has moved."""
        if compiled.executable is None:
            m = compiled.message
            self.computations.rest()
            compiled.executable = self._executable(m, compiled.known, self._place(m, compiled.known))
            self.begin()
        return compiled.executable

    def _room_for(self, executable: Executable) -> list[Charge]:
        """The size of each result, and last that of the intermediate results. Running computations may have to end
        first.
        """
        while True:
            try:
                return [
                    *[self.store.charge(size, "a computation's result") for size in executable.out_sizes],
                    self.store.charge(executable.temp_bytes, "a computation"),
                ]
            except LimitError:
                if not self.computations.running:
                    raise
            self.computations.wait_for_one()

    # replies ----------------------------------------------------------------------------------------------------------

    def _reply(self, op: int, reply: Answer | Transfer) -> None:
        self.session.tell(self.session.reply, op, reply)

    def _fail(self, op: int, failed: Failed) -> None:
        self._reply(op, failed.reply(op))

    def _have_read(self, op: int, reply: Answer | Transfer) -> None:
        """Replies to what the waiter has read, in the event loop: in one step, so that a session that moves owes this
        reply or the news that it was stopped, never both or none.
        """
        self.waiting.discard(op)
        self.session.reply(op, reply)

    def _later(self, op: int, values: Sequence[Stored], work: Callable[[], Answer | Transfer]) -> None:
        """Replies to `op` with the result of `work` on arrays, in the thread that may wait for them."""

        def run() -> None:
            reply: Answer | Transfer
            try:
                reply = work()
            except Exception as e:
                reply = self.failed(op, e).reply(op)
            self.session.tell(self._have_read, op, reply)

        if threading.get_ident() == self.loop_thread and all([finished(x.array) for x in values]):
            run()  # there is nothing to wait for
            return
        if self.waiter is None:
            self.waiter = ThreadPoolExecutor(1, thread_name_prefix=f"waiter {self.session.name}")
        self.session.tell(self.waiting.add, op)
        try:
            self.waiter.submit(run)
        except RuntimeError:  # the session has just ended
            pass

    def _fetch(self, m: p.Fetch) -> None:
        try:
            value = self.store.array(m.handle)
        except Inherited as e:
            self._fail(m.op, e.failed)
        else:
            self._send(m.op, [value])

    def _send(self, op: int, values: list[Stored]) -> None:
        """Replies with the bytes of arrays, one after another."""
        read_by = self.computations.read
        with read_by:
            for value in values:
                value.reads += 1

        def read() -> Transfer:
            size = sum([nbytes(value.aval) for value in values])
            try:
                if len(values) == 1:
                    # the array's own memory, which is counted as such; the reply counts against its own limit
                    charge = Charge(self.session.reply_bytes, self.session.memory, size, "a reply", 0)
                    return Transfer(values[0], host_bytes(values[0].array), charge)
                charge = Charge(self.session.reply_bytes, self.session.memory, size, "a reply")
                return Transfer(None, memoryview(b"".join([host_bytes(value.array) for value in values])), charge)
            finally:
                with read_by:
                    for value in values:
                        value.reads -= 1
                    read_by.notify_all()

        self._later(op, values, read)

    def _wait(self, m: p.Wait) -> None:
        def wait() -> Answer:
            if is_array(value.array):
                value.array.block_until_ready()
            return Answer(p.Ready(m.op))

        try:
            value = self.store.array(m.handle)
        except Inherited as e:
            self._fail(m.op, e.failed)
        else:
            self._later(m.op, [value], wait)

    def _inspect(self, m: p.Inspect) -> None:
        try:
            compiled = self._ready(self.store.compiled(m.program)).compiled
            if m.what == "text":
                text = compiled.as_text(m.stage or None)
            elif m.what in ("cost", "memory"):
                found = compiled.cost_analysis() if m.what == "cost" else compiled.memory_analysis()
                text = json.dumps({str(k): float(v) for k, v in found.items()})
            elif m.what == "shardings" and isinstance(compiled, Spread):
                text = compiled.shardings()
            else:
                raise ProtocolError(f"nothing is known as {m.what[:40]!r} about a program.")
            answer = Answer(
                p.Text(m.op, text), Charge(self.session.reply_bytes, self.session.memory, len(text), "a reply")
            )
        except Inherited as e:
            self._fail(m.op, e.failed)
        except ProtocolError:
            raise
        except Exception as e:
            self._fail(m.op, self.failed(m.op, e))
        else:
            self._reply(m.op, answer)
