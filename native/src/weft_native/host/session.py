"""A client's session on the host: its arrays, its programs, its thread, its limits."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
import queue
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, ParamSpec, TypeAlias, assert_never

from weft.base import dtypes
from weft.serialization.binary import DeserializationError
from weft.serialization.programs import Program, content_hash
from weft.core.trace import is_array
from weft.runtime.backend import Device
from weft.runtime.device import backend_of
from weft.runtime.effects import effects_barrier
from weft_remote import protocol as p
from weft_remote.errors import LimitError, ProtocolError, class_name

from .link import Link
from .limits import CHAIN, INCOMPLETE, PROGRAM_WEIGHT, QUEUE_BYTES, QUEUE_MESSAGES, RUNNING, SHORT_BYTES, WINDOW, Limits
from .memory import Charge, Tally
from .messages import public_text
from .programs import Executable, Programs, nbytes
from .reports import Reports
from .values import Answer, Failed, Incoming, Stored, Transfer, finished, host_array, host_bytes, is_gone

log = logging.getLogger("weft.host")
Value: TypeAlias = Stored | Executable
P = ParamSpec("P")


class Known(NamedTuple):
    """A program that the client has sent."""

    program: Program
    size: int
    charge: Charge


class Running(NamedTuple):
    """A running computation: one of its results, and the size of its intermediate results. If the result was given to
    the next computation before it was there, both are one, of two `calls`: nothing tells when the first has ended.
    """

    array: Any
    charges: list[Charge]
    calls: int


class HostSession:
    """Performs one client's operations in order, in a thread of its own. A second thread waits for the results that the
    client reads.

    Methods are called in the worker's event loop, those named `_do_…` in the session's thread.
    """

    def __init__(
        self,
        programs: Programs,
        devices: list[Device],
        limits: Limits,
        memory: Tally,
        name: str,
        ended: Callable[[HostSession], None],
        id: str = "",
        secret: bytes = b"",
    ):
        self.programs, self.devices, self.limits, self.memory, self.name, self.ended = (
            programs,
            devices,
            limits,
            memory,
            name,
            ended,
        )
        self.loop, self.loop_thread = asyncio.get_running_loop(), threading.get_ident()
        self.id, self.secret = id, secret
        self.received = 0  # the last operation that came
        self.cancelled = 0  # the last that the client does not want any more
        self.beat = False  # the client asks whether the host is alive
        self.acknowledged = 0  # the last operation of which the client was notified
        self.unacknowledged = 0  # bytes since then
        self.end: p.End | None = None
        self.left_at: float | None = None  # when the connection was lost
        self.link: Link | None = None
        self.crowded = False  # the link waits for room in the queue
        self.outbox: deque[p.Message] = deque()
        self.replies: OrderedDict[int, Answer | Transfer] = OrderedDict()  # unsettled
        self.transfers: deque[int] = deque()
        self.reply_bytes = Tally(
            limits.session_bytes,
            "{what} takes {size} bytes; {used} of at most {limit} wait for the client to take them.",
        )
        self.reports = Reports(self)
        # the session's thread
        self.queue: queue.SimpleQueue[tuple[p.Operation, int] | None] = queue.SimpleQueue()  # None ends it
        self.queued_bytes = self.queued = 0  # that the event loop put there
        self.done_bytes = self.done = 0  # that the thread has performed
        self.values: dict[int, Value | Failed] = {}
        self.array_bytes = Tally(
            limits.session_bytes,
            "{what} takes {size} bytes; the session has {used} of the {limit} that it may use."
            " Delete arrays that are no longer needed.",
        )
        self.program_bytes = Tally(
            limits.session_bytes,
            "{what} takes about {size} bytes; the session's programs have {used} of the {limit} that they may. "
            "Send fewer or smaller ones, or begin a new session.",
        )
        self.arrays: dict[int, Incoming[p.Put]] = {}
        self.parts: dict[bytes, Incoming[p.Program]] = {}
        self.known: dict[bytes, Known] = {}
        self.files: set[str] = set()  # that the client's programs name
        self.reading: bytes | bytearray = b""  # a program whose lines are not known yet
        self.running: deque[Running] = deque()
        self.head_since: float | None = None
        self.busy_since: float | None = None
        self.read = threading.Condition()  # an array that was asked for has been read
        self.thread: threading.Thread | None = None
        self.waiter: ThreadPoolExecutor | None = None
        self.waiting = 0  # replies that the waiter has not read yet

    # the event loop ---------------------------------------------------------------------------------------------------

    def accept(self, message: p.Message, size: int) -> None:
        """Takes a message. Raises ProtocolError for one that is not allowed here."""
        if isinstance(message, p.OPERATIONS):
            if message.op <= self.received:  # sent again, on a new connection
                return
            if message.op != self.received + 1:
                raise ProtocolError(f"operation {message.op} came after {self.received}.")
            self.received = message.op
            if self._is_short(message):
                self._perform_one(message)
                return
            self.queued_bytes += size
            self.queued += 1
            if self.thread is None:
                self.thread = threading.Thread(target=self._perform_all, name=f"session {self.name}", daemon=True)
                self.thread.start()
            self.queue.put((message, size))
        elif isinstance(message, p.Settled):
            for op in message.ops:
                self._forget_reply(op)
        elif isinstance(message, p.Credit):
            transfer = self.replies.get(message.fetch)
            if isinstance(transfer, Transfer) and transfer.credited < message.received <= transfer.sent:
                transfer.credited = message.received
                self.wake()
        elif isinstance(message, p.Reported):
            self.reports.confirm(message.through)
        elif isinstance(message, p.Beat):
            self.beat = True
            self.wake()
        elif isinstance(message, p.Cancel):
            self.cancelled = max(self.cancelled, min(message.through, self.received))
        elif isinstance(message, p.Bye):
            self.close(p.End("ConnectionLost", "the client has ended the session."))
        else:
            raise ProtocolError(f"a client does not send {type(message).__name__}.")

    def _is_short(self, m: p.Operation) -> bool:
        """Whether an operation can be performed at once, in the event loop: nothing is before it, and it is known to
        take no time. A thread takes longer to begin with one than most of them take.
        """
        if self.queued != self.done or self.waiting:
            return False
        match m:
            case p.Ping() | p.Free():
                return True
            case p.Put():
                return len(m.data) <= SHORT_BYTES and len(m.data) == nbytes(m.aval)
            case p.Fetch():
                value = self.values.get(m.handle)
                return isinstance(value, Stored) and nbytes(value.aval) <= SHORT_BYTES and finished(value.array)
            case p.Execute():
                program = self.values.get(m.program)
                if not isinstance(program, Executable) or not program.is_short:
                    return False
                self._drop_finished()
                return not self.running
        return False

    def is_full(self) -> bool:
        """Whether no more messages can be taken now; the link is told when that has changed."""
        self.crowded = True  # before the look, so that the thread that makes room sees it
        self.crowded = self.end is None and (
            self.queued_bytes - self.done_bytes > QUEUE_BYTES or self.queued - self.done > QUEUE_MESSAGES
        )
        return self.crowded

    def wake(self) -> None:
        """There is something to send."""
        if self.link is not None:
            self.link.wake()

    def _proceed(self) -> None:
        self.crowded = False
        if self.link is not None:
            self.link.proceed()

    def acknowledge(self, size: int) -> None:
        """After each frame: acknowledges received operations from time to time."""
        self.unacknowledged += size
        if self.unacknowledged >= p.CHUNK or self.received - self.acknowledged >= 64:
            self.acknowledged, self.unacknowledged = self.received, 0
            self.outbox.append(p.Received(self.received))
            self.wake()

    def _forget_reply(self, op: int) -> None:
        self.replies.pop(op, None)

    def reply(self, op: int, reply: Answer | Transfer) -> None:
        """Sends a reply, and keeps it until the client has settled it."""
        if self.end is not None:
            return
        if len(self.replies) >= self.limits.replies:
            self.fail(LimitError(f"{self.limits.replies} replies wait for the client to take them."))
            return
        self.replies[op] = reply
        self._queue_reply(op, reply)

    def _queue_reply(self, op: int, reply: Answer | Transfer) -> None:
        if isinstance(reply, Transfer):
            self.transfers.append(op)
        else:
            self.outbox.append(reply.message)
        self.wake()

    def attach(self, link: Link) -> None:
        """A connection, the first or a new one. Everything that is not settled is sent on it from the beginning."""
        if self.link is not None:  # the client is back before its old connection was seen to be dead
            self.link.part(None)
        self.link, self.left_at = link, None
        link.send(p.encode(self._welcome()))
        self.outbox.clear()
        self.transfers.clear()
        self.reports.again()
        for op, reply in self.replies.items():
            if isinstance(reply, Transfer):
                reply.sent = reply.credited = 0
            self._queue_reply(op, reply)
        self.wake()

    def left(self, link: Link) -> None:
        """A connection is gone."""
        if self.link is link:
            self.link, self.left_at = None, time.monotonic()
            if self.end is not None:
                self.ended(self)

    def _welcome(self) -> p.Welcome:
        kinds = [text for d in self.devices for text in (d.platform, str(d.device_kind))]
        grace, frame = int(self.limits.grace * 1000), self.limits.frame_bytes
        return p.Welcome(self.id, self.secret, self.received, grace, frame, WINDOW, tuple(kinds))

    def outgoing(self) -> bytes | None:
        """The next frame for the client; None if there is nothing to send now."""
        parts: list[bytes] = []
        size = 0
        if self.beat:
            self.beat = False
            parts.append(p.encode(p.Beat()))
        while self.outbox and size < 256 << 10:
            parts.append(p.encode(self.outbox.popleft()))
            size += len(parts[-1])
        if parts:
            return b"".join(parts)
        for _ in range(len(self.transfers)):
            op = self.transfers.popleft()
            transfer = self.replies.get(op)
            if not isinstance(transfer, Transfer):  # settled meanwhile
                continue
            total = len(transfer.data)
            if transfer.sent - transfer.credited >= WINDOW:
                self.transfers.append(op)
                continue
            part = transfer.data[transfer.sent : transfer.sent + p.CHUNK]
            frame = p.encode(p.Data(op, total, transfer.sent, part))
            transfer.sent += len(part)
            if transfer.sent < total:
                self.transfers.append(op)
            return frame
        return None

    def fail(self, error: Exception) -> None:
        """Ends the session because of something that no session may do."""
        if self.end is None:
            # not the error, whose frames hold arrays
            log.warning("session %s ends: %s: %s", self.name, class_name(error), str(error))
            self.close(p.End(class_name(error), public_text(error, self.said)))

    def close(self, end: p.End) -> None:
        if self.end is None:
            self.end = end
            self.queue.put(None)
            if self.link is not None:
                self.link.part(end)
            if self.waiter is not None:
                self.waiter.shutdown(wait=False, cancel_futures=True)
            self.replies.clear()
            self.ended(self)

    def overdue(self, now: float) -> float:
        """For how long it has computed; ends the session if that is longer than it may. Of computations that hang
        together, all but the last are taken to have had all the time they may have.
        """
        since = self.busy_since
        if since is None and self.running:
            self._drop_finished()
            since = self.head_since if self.running else None
        if since is None:
            return 0.0
        calls = self.running[0].calls if self.busy_since is None and self.running else 1
        took = now - since - self.limits.seconds * (calls - 1)
        if took > self.limits.seconds:
            self.fail(LimitError(f"a compilation or computation took longer than {self.limits.seconds:g} s."))
        return max(took, 0.001)

    def _drop_finished(self) -> None:
        while self.running and finished(self.running[0].array):
            self.running.popleft()
            self.head_since = time.monotonic()

    # the session's thread ---------------------------------------------------------------------------------------------

    def tell(self, call: Callable[P, None], *args: P.args, **named: P.kwargs) -> None:
        """Has the event loop call a function, from any thread."""
        if threading.get_ident() == self.loop_thread:
            call(*args, **named)
            return
        try:
            self.loop.call_soon_threadsafe(functools.partial(call, *args, **named))
        except RuntimeError:  # the host has stopped
            pass

    def _perform_all(self) -> None:
        while True:
            item = self.queue.get()
            if item is None or self.end is not None:
                break
            message, size = item
            if not self._perform_one(message):
                break
            self.done_bytes += size
            self.done += 1
            if self.crowded and not self.is_full():
                self.tell(self._proceed)
        self.values.clear()
        self.arrays.clear()
        self.parts.clear()
        self.known.clear()
        self.running.clear()

    def _perform_one(self, message: p.Operation) -> bool:
        """Whether the session goes on."""
        self._do_begin()
        try:
            self._perform(message)
        except Exception as e:  # errors that concern a single operation have been caught in it
            if not isinstance(e, (ProtocolError, LimitError, DeserializationError)):
                log.exception("session %s, %s", self.name, type(message).__name__)
            self.tell(self.fail, e)
            return False
        finally:
            self.busy_since = None
        return True

    def _perform(self, m: p.Operation) -> None:
        match m:
            case p.Execute() | p.ExecuteReporting() | p.Fetch() | p.Wait() if m.op <= self.cancelled:
                self._do_cancel(m)
            case p.Put():
                self._do_put(m)
            case p.Part():
                self._do_part(m)
            case p.Program():
                self._do_program(m)
            case p.ProgramPart():
                self._do_program_part(m)
            case p.Compile():
                self._do_compile(m)
            case p.Execute():
                self._do_execute(m)
            case p.ExecuteReporting():
                self._do_execute_reporting(m)
            case p.Free():
                self._do_free(m)
            case p.Fetch():
                self._do_fetch(m)
            case p.Wait():
                self._do_wait(m)
            case p.Inspect():
                self._do_inspect(m)
            case p.Ping():
                self.tell(self.reply, m.op, Answer(p.Ready(m.op)))
            case _:
                assert_never(m)

    def said(self, path: str) -> bool:
        """Whether a path belongs to the client."""
        return path in self.files or path.encode("utf-8", "surrogatepass") in self.reading

    def _failed(self, op: int, error: Exception) -> Failed:
        return Failed(op, class_name(error), public_text(error, self.said))

    def _define(self, handle: int, value: Value | Failed) -> None:
        if handle in self.values:
            raise ProtocolError(f"handle {handle} is in use.")
        if len(self.values) >= self.limits.handles:
            raise LimitError(
                f"the session has {self.limits.handles} handles, and no more are allowed. Free some: let go of arrays."
            )
        self.values[handle] = value

    def _charge(self, size: int, what: str, present: int | None = None) -> Charge:
        """LimitError unless the session, and all together, may use so many bytes more; `present` of them are in use
        at once.
        """
        return Charge(self.array_bytes, self.memory, size, what, present)

    def _device(self, index: int) -> Device:
        if index >= len(self.devices):
            raise ProtocolError(f"there is no device {index}; there are {len(self.devices)}.")
        return self.devices[index]

    def _do_put(self, m: p.Put) -> None:
        self._device(m.device)
        size = nbytes(m.aval)
        if m.handle in self.arrays or m.handle in self.values:
            raise ProtocolError(f"handle {m.handle} is in use.")
        try:
            charge = self._charge(size, f"an array of type {m.aval.str_short()}", 0)
        except LimitError as e:
            self._define(m.handle, self._failed(m.op, e))  # its parts will arrive nevertheless
            return
        self._part(m.handle, Incoming(m, size, charge), m.data)

    def _do_part(self, m: p.Part) -> None:
        incoming = self.arrays.get(m.handle)
        if incoming is not None:
            self._part(m.handle, incoming, m.data)
        elif not isinstance(self.values.get(m.handle), Failed):
            raise ProtocolError(f"bytes came for handle {m.handle}, which takes none.")

    def _part(self, handle: int, incoming: Incoming[p.Put], data: bytes) -> None:
        try:
            value: Stored | Failed | None = self._uploaded(incoming) if incoming.take(data) else None
        except ProtocolError:
            raise
        except Exception as e:
            value = self._failed(incoming.message.op, e)
        if value is None:
            self._check_incomplete(handle in self.arrays)
            self.arrays[handle] = incoming
        else:
            self.arrays.pop(handle, None)
            self._define(handle, value)

    def _uploaded(self, incoming: Incoming[p.Put]) -> Stored:
        message = incoming.message
        device = self._device(message.device)
        array = backend_of(device).put(host_array(incoming.data, message.aval), message.aval, device, True)
        return Stored(array, message.aval, device, incoming.charge)

    def _check_incomplete(self, known: bool) -> None:
        """Raises LimitError if there is no room for another incomplete upload."""
        if not known and len(self.arrays) + len(self.parts) >= INCOMPLETE:
            raise LimitError(f"{INCOMPLETE} arrays and programs are under way and incomplete.")

    def _do_program(self, m: p.Program) -> None:
        if len(m.hash) != 32 or m.hash in self.known or m.hash in self.parts:
            raise ProtocolError("a program's hash has 32 bytes, and a program comes once.")
        if m.size > self.limits.program_bytes:
            raise LimitError(f"a program of {m.size} bytes exceeds the limit of {self.limits.program_bytes}.")
        if len(self.known) >= self.limits.programs:
            raise LimitError(f"the session has sent {self.limits.programs} programs, and may send no more.")
        self._program_part(
            m.hash, Incoming(m, m.size, Charge(self.program_bytes, self.memory, m.size, "a program", 0)), m.data
        )

    def _do_program_part(self, m: p.ProgramPart) -> None:
        incoming = self.parts.get(m.hash)
        if incoming is None:
            raise ProtocolError("bytes came for a program that takes none.")
        self._program_part(m.hash, incoming, m.data)

    def _program_part(self, digest: bytes, incoming: Incoming[p.Program], data: bytes) -> None:
        if not incoming.take(data):
            self._check_incomplete(digest in self.parts)
            self.parts[digest] = incoming
            return
        self.parts.pop(digest, None)
        if content_hash(incoming.data) != digest:
            raise DeserializationError("a program does not have the hash that it came with")
        charge = Charge(self.program_bytes, self.memory, incoming.size * PROGRAM_WEIGHT, "a program")
        self.reading = incoming.data
        program = self.programs.check(digest, incoming.data)
        self.known[digest] = Known(program, incoming.size, charge)
        self.files |= program.files
        self.reading = b""

    def _do_compile(self, m: p.Compile) -> None:
        device, known = self._device(m.device), self.known.get(m.program)
        if known is None:
            raise ProtocolError("a program must come before it is compiled.")
        program = known.program
        if len(m.donated) != len(program.jaxpr.invars):
            raise ProtocolError(
                f"the program has {len(program.jaxpr.invars)} arguments; {len(m.donated)} were described."
            )
        self.busy_since = None  # other sessions' compilations have precedence
        try:
            self._define(
                m.handle,
                self.programs.compile(
                    m.program,
                    program,
                    known.size,
                    device,
                    m.name[:200],
                    m.donated,
                    self._do_begin,
                    self.reports.program,
                ),
            )
            began = self.busy_since  # None if it was compiled already
            self.tell(self._say_compiled, m.op, 0.0 if began is None else time.monotonic() - began)
        except (ProtocolError, LimitError):
            raise
        except Exception as e:
            failed = self._failed(m.op, e)
            self._define(m.handle, failed)
            self._fail_op(m.op, failed)

    def _say_compiled(self, op: int, seconds: float) -> None:
        self.outbox.append(p.Compiled(op, round(1e6 * seconds)))
        self.wake()

    def _do_begin(self) -> None:
        self.busy_since = time.monotonic()

    def _do_execute(self, m: p.Execute | p.ExecuteReporting) -> Failed | None:
        """The failure, if it failed."""
        failed = None
        try:
            outs: Sequence[Stored | Failed] = self._execute(m)
        except ProtocolError:
            raise
        except _Inherited as e:
            failed = e.failed
        except Exception as e:
            failed = self._failed(m.op, e)
        for handle, value in zip(m.results, outs if failed is None else [failed] * len(m.results)):
            self._define(handle, value)
        return failed

    def _do_execute_reporting(self, m: p.ExecuteReporting) -> None:
        self.reports.op = m.op
        failed = self._do_execute(m)
        if failed is None:
            self.tell(self.reply, m.op, Answer(p.Ready(m.op)))
        else:
            self._fail_op(m.op, failed)

    def _do_cancel(self, m: p.Execute | p.ExecuteReporting | p.Fetch | p.Wait) -> None:
        """An operation that the client did not want any more before it began."""
        failed = Failed(m.op, "BackendError", "this was stopped by its client before the host began with it.")
        if isinstance(m, (p.Execute, p.ExecuteReporting)):
            for handle in m.results:
                self._define(handle, failed)
        if not isinstance(m, p.Execute):
            self._fail_op(m.op, failed)

    def _execute(self, m: p.Execute | p.ExecuteReporting) -> list[Stored]:
        executable = self._value(m.program)
        if not isinstance(executable, Executable):
            raise ProtocolError(f"handle {m.program} is an array, not a compiled program.")
        if len(m.arguments) != len(executable.in_types) or len(m.results) != len(executable.out_avals):
            raise ProtocolError(
                f"the program takes {len(executable.in_types)} arguments and gives {len(executable.out_avals)} results;"
                f" {len(m.arguments)} and {len(m.results)} were named."
            )
        if executable.reports != isinstance(m, p.ExecuteReporting):
            raise ProtocolError("ExecuteReporting is for the programs that report, and Execute for the others.")
        stored = [self._array(h) for h in m.arguments]
        for i, (x, (shape, dtype)) in enumerate(zip(stored, executable.in_types)):
            if x.aval.shape != shape or x.aval.dtype != dtype:
                raise ProtocolError(
                    f"argument {i} is {x.aval.str_short()} where the program takes {dtypes.name(dtype)}{list(shape)}."
                )
            if x.device is not executable.device:
                raise ProtocolError(f"argument {i} is on {x.device}, the program on {executable.device}.")
        while len(self.running) >= RUNNING:
            self._wait_for_one()
        *charges, temporary = self._room_for(executable)
        before = self._give([x for x, given in zip(stored, executable.donated) if given])
        began = time.perf_counter()
        outs = executable.execute([x.array for x in stored])
        executable.took(time.perf_counter() - began, not outs or finished(outs[0]))
        if executable.reports:
            effects_barrier()  # a program that reports runs alone, so that it is known whose the reports are
        for x in stored:
            if is_gone(x.array):  # given away: a result has its memory, and has been counted
                x.charge.release()
        if outs and before is not None and is_gone(self.running[before].array):
            _, taken, calls = self.running[before]
            self.running[before] = Running(outs[0], [*taken, temporary], calls + 1)
        elif outs:
            if not self.running:
                self.head_since = time.monotonic()
            self.running.append(Running(outs[0], [temporary], 1))
        return [Stored(x, a, executable.device, c) for x, a, c in zip(outs, executable.out_avals, charges)]

    def _give(self, given: list[Stored]) -> int | None:
        """Waits until arrays can be given away: they are read, if that was asked for before, and few computations hang
        together. The place among the running ones of the computation that gives one of them.
        """
        before = None
        for x in given:
            if x.reads:
                with self.read:
                    self.read.wait_for(lambda: not x.reads or self.end is not None)
            if not finished(x.array):
                place = next((k for k, r in enumerate(self.running) if r.array is x.array), None)
                if place is not None and self.running[place].calls >= CHAIN:
                    self._wait_for(x.array)
                elif place is not None:
                    before = place
        return before

    def _room_for(self, executable: Executable) -> list[Charge]:
        """The size of each result, and last that of the intermediate results. Running computations may have to end
        first.
        """
        while True:
            try:
                return [
                    *[self._charge(nbytes(a), "a computation's result") for a in executable.out_avals],
                    self._charge(executable.temp_bytes, "a computation"),
                ]
            except LimitError:
                if not self.running:
                    raise
            self._wait_for_one()

    def _wait_for_one(self) -> None:
        """Waits until the first of the computations under way has ended."""
        self._wait_for(self.running[0].array)
        self._drop_finished()

    def _wait_for(self, array: Any) -> None:
        """Waits for a result; what counts as computing meanwhile is what gives it."""
        if not finished(array):
            since, self.busy_since = self.busy_since, None
            with contextlib.suppress(Exception):  # it failed; whoever reads it gets the error
                array.block_until_ready()
            self.busy_since = since and time.monotonic()

    def _array(self, handle: int) -> Stored:
        value = self._value(handle)
        if not isinstance(value, Stored):
            raise ProtocolError(f"handle {handle} is a compiled program, not an array.")
        return value

    def _value(self, handle: int) -> Value:
        """The value of a handle. If it is a failure, raises it."""
        value = self.values.get(handle)
        if value is None:
            raise ProtocolError(f"there is no handle {handle}.")
        if isinstance(value, Failed):
            raise _Inherited(value)
        return value

    def _do_free(self, m: p.Free) -> None:
        for handle in m.handles:
            value = self.values.pop(handle, None)
            if value is None:
                raise ProtocolError(f"there is no handle {handle} to free.")

    # replies ----------------------------------------------------------------------------------------------------------

    def _fail_op(self, op: int, failed: Failed) -> None:
        self.tell(self.reply, op, Answer(p.Error(op, failed.origin, failed.error, failed.message)))

    def _later(self, op: int, handle: int, work: Callable[[Stored], Answer | Transfer]) -> None:
        """Replies to `op` with the result of `work` on an array, in the thread that may wait for it."""
        try:
            value = self._array(handle)
        except _Inherited as e:
            self._fail_op(op, e.failed)
            return

        def run() -> None:
            try:
                reply = work(value)
            except Exception as e:
                self._fail_op(op, self._failed(op, e))
            else:
                self.tell(self.reply, op, reply)
            self.tell(self._waited)

        if threading.get_ident() == self.loop_thread:  # there is nothing to wait for
            self.waiting += 1
            run()
            return
        if self.waiter is None:
            self.waiter = ThreadPoolExecutor(1, thread_name_prefix=f"waiter {self.name}")
        self.tell(self._awaited)
        try:
            self.waiter.submit(run)
        except RuntimeError:  # the session has just ended
            pass

    def _awaited(self) -> None:
        self.waiting += 1

    def _waited(self) -> None:
        self.waiting -= 1

    def _do_fetch(self, m: p.Fetch) -> None:
        def read(value: Stored) -> Transfer:
            try:
                # the array's own memory, which is counted
                charge = Charge(self.reply_bytes, self.memory, nbytes(value.aval), "a reply", 0)
                return Transfer(value, host_bytes(value.array), charge)
            finally:
                with self.read:
                    value.reads -= 1
                    self.read.notify_all()

        value = self.values.get(m.handle)
        if isinstance(value, Stored):
            with self.read:
                value.reads += 1
        self._later(m.op, m.handle, read)

    def _do_wait(self, m: p.Wait) -> None:
        def wait(value: Stored) -> Answer:
            if is_array(value.array):
                value.array.block_until_ready()
            return Answer(p.Ready(m.op))

        self._later(m.op, m.handle, wait)

    def _do_inspect(self, m: p.Inspect) -> None:
        try:
            executable = self._value(m.program)
            if not isinstance(executable, Executable):
                raise ProtocolError(f"handle {m.program} is an array, not a compiled program.")
            compiled = executable.compiled
            if m.what == "text":
                text = compiled.as_text(m.stage or None)
            elif m.what in ("cost", "memory"):
                found = compiled.cost_analysis() if m.what == "cost" else compiled.memory_analysis()
                text = json.dumps({str(k): float(v) for k, v in found.items()})
            else:
                raise ProtocolError(f"nothing is known as {m.what[:40]!r} about a program.")
            answer = Answer(p.Text(m.op, text), Charge(self.reply_bytes, self.memory, len(text), "a reply"))
        except _Inherited as e:
            self._fail_op(m.op, e.failed)
        except ProtocolError:
            raise
        except Exception as e:
            self._fail_op(m.op, self._failed(m.op, e))
        else:
            self.tell(self.reply, m.op, answer)


class _Inherited(Exception):
    """Records that an operand failed, so that the operation that uses it fails too."""

    def __init__(self, failed: Failed):
        self.failed = failed
