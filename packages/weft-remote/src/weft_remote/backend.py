"""The backend of platform "remote": devices of hosts, arrays that are handles, programs that are sent once."""

from __future__ import annotations

import atexit
import itertools
import time
import json
import sys
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from weft.base import dtypes, monitoring
from weft.base.annotations import override
from weft.base.avals import ShapedArray, array_type
from weft.base.config import config, default_device
from weft.core.jaxpr import Jaxpr, JaxprEqn
from weft.core.memo import Memo
from weft.serialization.binary import DeserializationError
from weft.serialization.programs import content_hash, serialize
from weft.core.trace import get_aval
from weft.base.errors import BackendError, at_user_line
from weft.base.mesh import Sharding
from weft.base.host import from_bytes, to_bytes
from weft.runtime.array import BufferArray
from weft.runtime.backend import Capabilities, CompileOptions
from weft.runtime.device import backend_for, forget_default
from weft.runtime.dispatch import compile_place, host_array, to_backend
from weft.runtime.partition import Partition
from weft.runtime.effects import call_host, effects_barrier, host_results, started, wait_for_ordered
from weft.transforms.portable import reporting

from . import protocol as p
from . import spread
from .errors import ProtocolError
from .handles import Coming, Handle, Siblings, fetch
from .joined import Joined
from .reports import Reporter
from .session import Compilation, Progress, Reply, Session
from .spread import Parts, SpreadArray

if sys.platform == "emscripten":
    from .page import PageTransport
else:
    from .desktop import ThreadTransport

if TYPE_CHECKING:
    from weft.base.devices import Device
    from .session import Transport

# Uploads of at most so many bytes are remembered: reading them takes no round trip, and constants of traced functions
# outlive a session.
KEEP = 64 << 10
# Results of at most so many bytes come by themselves with a call, if those of the call before were read.
EAGER = 16 << 10
_SERIALIZED: Memo[bool, tuple[bytes, bytes]] = Memo()  # by whether 64 bits are on: the hash and the bytes


# Capabilities that all of a host's compiling platforms have.
DTYPES = dtypes.NAMES - {"int1", "uint1", "float6_e2m3fn", "float6_e3m2fn"}


class RemoteDevice:
    """One device of a host."""

    platform, process_index = "remote", 0

    def __init__(self, backend: "RemoteBackend", session: Session, index: int, id: int, platform: str, kind: str):
        self.backend, self.session, self.index, self.id = backend, session, index, id
        self.host_platform, self.device_kind = platform, kind
        self.line: Any = None  # its `Line`, once something is offloaded to it

    @override
    def __repr__(self) -> str:
        return f"RemoteDevice(id={self.id}, {self.session.url}, {self.host_platform}: {self.device_kind})"


def _facts(device: RemoteDevice) -> list[tuple[str, str]]:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        device.session.ping()
        times.append(time.perf_counter() - start)
    latency = f"{1e3 * min(times):.2f} ms there and back"
    return [("Address", device.session.url), ("Platform", device.host_platform), ("Latency", latency)]


class RemoteBackend:
    """All hosts that this process is connected to; the devices of the newest session come first."""

    name, platforms = "remote", ("remote",)

    def __init__(self) -> None:
        self.sessions: list[Session] = []
        self.platforms_before: str | None = None  # where programs ran before a session became the default
        self.ids = itertools.count()
        self.capabilities = Capabilities(
            dtypes=DTYPES,
            spread=SpreadArray,
            transfer=self.moved,
            prefetch=prefetch,
            host_platform=lambda device: device.host_platform,
            facts=_facts,
        )

    # devices and arrays -----------------------------------------------------------------------------------------------

    def devices(self, platform: str | None = None) -> list[RemoteDevice]:
        """The devices of all sessions. Raises BackendError if there are none."""
        if platform not in (None, "remote"):
            raise BackendError(f"the remote backend has no devices of platform {platform!r}; its platform is 'remote'.")
        self.sessions = [s for s in self.sessions if s.failure is None]
        if not self.sessions:
            raise BackendError(
                "no accelerator host is connected. Start one (`weft-host`) and connect to it: "
                "weft.remote.connect('ws://127.0.0.1:8765', token='…')."
            )
        return [d for s in reversed(self.sessions) for d in s._devices]

    def put(self, value: Any, aval: ShapedArray, where: RemoteDevice | Sharding, committed: bool) -> BufferArray:
        session: Session = _session_of(where)
        if isinstance(where, Sharding) and where.num_devices > 1:
            return spread.put(self, value, aval, where)
        device: RemoteDevice = where._devices()[0] if isinstance(where, Sharding) else where
        data: bytes | memoryview = to_bytes(value)
        small = len(data) <= KEEP
        if small:
            data = bytes(data)
        array = BufferArray(aval, Handle(session, session.put(data, aval, device.index), len(data)), device, committed)
        if small:
            array._cache = from_bytes(data, aval.shape, aval.dtype)
        return array

    def moved(self, x: BufferArray, aval: ShapedArray, where: RemoteDevice | Sharding, committed: bool) -> BufferArray:
        """An array on another device, or as a sharding says: without this process, if both are of one session."""
        if isinstance(where, Sharding) and where.num_devices == 1:
            (where,) = where._devices()
        session = _session_of(where)
        if _session_of(x.device) is session:
            return spread.moved(self, x, aval, where, committed)
        return self.put(host_array(x._host(), aval), aval, where, committed)

    def copied(self, x: BufferArray, device: RemoteDevice, committed: bool) -> BufferArray:
        """An array on another device of its session."""
        if x.device is device and x.committed == committed:
            return x
        if x.device.session is not device.session:  # of a host that has joined this one
            return self.put(host_array(x._host(), x.aval), x.aval, device, committed)
        source, number = x._live(), device.session.new_handle()
        device.session.operate(lambda op: p.Copy(op, number, source.number, device.index), line=True)
        return BufferArray(x.aval, Handle(device.session, number, source.nbytes), device, committed)

    def read(self, handle: Handle, nbytes: int) -> memoryview:
        return self.taken(None, handle)

    def taken(self, asked: Coming | None, handle: Handle) -> memoryview:
        """The bytes of an array that were asked for, or are now; read-only."""
        handle.fetched = True
        try:
            data = self._taken(fetch(handle) if asked is None else asked, handle)
        except (BackendError, DeserializationError) as e:
            if handle.rescue is None:
                raise
            data = handle.rescue(e)
        handle.rescue = None
        return data

    def _taken(self, asked: Coming, handle: Handle) -> memoryview:
        reply, start, size = asked
        data = handle.session.wait(reply)
        if not isinstance(data, bytearray):
            raise ProtocolError(f"{handle.session.url} answers no bytes where an array is asked for.")
        if len(data) != size:
            raise BackendError(f"the host sent {len(data)} bytes where {size} were asked for.")
        whole = memoryview(data).toreadonly()
        return whole if size == handle.nbytes else whole[start : start + handle.nbytes]

    def release(self, handle: Handle | Parts) -> None:
        if isinstance(handle, Parts):
            for part in handle.arrays:
                part.delete()
        else:
            handle.session.release(handle.number, handle.nbytes)

    def wait(self, handle: Handle | Parts) -> None:
        if isinstance(handle, Parts):
            for asked in [part._live() for part in handle.arrays]:
                self.ask(asked)
            for part in handle.arrays:
                self.wait(part._live())
            return
        try:
            handle.session.wait(self.ask(handle))
        except (BackendError, DeserializationError) as e:
            if handle.rescue is None:
                raise
            handle.rescue(e)

    def is_ready(self, handle: Handle | Parts) -> bool:
        if isinstance(handle, Parts):
            return all([self.is_ready(part._live()) for part in handle.arrays])
        return self.ask(handle).done

    def ask(self, handle: Handle) -> Reply:
        """Asks the host, once, to report when an array is computed."""
        if handle.ready is None:
            handle.ready = handle.session.request(lambda op: p.Wait(op, handle.number))
        return handle.ready

    # programs
    # -----------------------------------------------------------------------------------------------------------

    def compile(
        self, jaxpr: Jaxpr, device: RemoteDevice | Partition, options: CompileOptions = CompileOptions()
    ) -> RemoteExecutable:
        """Sends the program, unless the host has it, and has it compiled. Does not wait."""
        if isinstance(device, Partition) and len(device.devices) == 1:
            (device,) = device.devices
        session = _session_of(device)
        program, consts, callbacks = reporting(jaxpr)
        serialized = _SERIALIZED.of(program)
        if config.enable_x64 not in serialized:
            data = serialize(program)
            serialized[config.enable_x64] = content_hash(data), data
        digest, data = serialized[config.enable_x64]
        session.send_program(digest, data)
        place, places = compile_place(device, consts)
        values = [to_backend(c, get_aval(c), where) for c, where in zip(consts, places)]
        donated = (*[False] * len(values), *map(bool, options.donated))
        donated += (False,) * (len(program.invars) - len(donated))
        make: type[RemoteExecutable] = SpreadExecutable if isinstance(device, Partition) else RemoteExecutable
        if isinstance(session, Joined):
            if callbacks:
                raise BackendError(
                    at_user_line(
                        f"{options.name} prints, or calls a function of this process, and runs on several hosts, each"
                        " of which would call it. Leave that out, or use devices of one host."
                    )
                )
            make = JoinedExecutable
        return make(place, jaxpr, digest, values, options.name, donated, callbacks)


class RemoteExecutable:
    """A program on a host."""

    def __init__(
        self,
        device: Any,  # a Partition, for a program over several
        jaxpr: Jaxpr,
        digest: bytes,
        consts: list[BufferArray],
        name: str,
        donated: tuple[bool, ...],
        callbacks: Sequence[JaxprEqn] = (),
    ):
        self.reporter = _reporter(callbacks)
        self.device, self.jaxpr, self.consts, self.name = device, jaxpr, consts, name
        self.session: Session = _session_of(device)
        self.failure: Exception | None = None
        self.in_avals = [*map(get_aval, consts), *jaxpr.in_avals]
        self.out_avals = [array_type(a) for a in jaxpr.out_avals]
        self.lead = self._numbers(consts)
        self.sizes = [a.size * dtypes.itemsize(a.dtype) for a in self.out_avals]
        self.last: list[Handle] = []  # the results of the last call
        self.siblings = [Siblings() if size <= EAGER else None for size in self.sizes]
        this = weakref.ref(self)

        def failed(error: Exception) -> None:
            executable = this()
            if executable is not None:
                executable.failure = error

        def done(seconds: float) -> None:
            monitoring.record_event_duration_secs(monitoring.ON_HOST, seconds, fun_name=name)
            now = time.time()
            monitoring.record_event_time_span(monitoring.ON_HOST, now - seconds, now, fun_name=name)

        told = Compilation(failed, done)
        self.handle = self._compile(digest, name, donated, told)

    def _compile(self, digest: bytes, name: str, donated: tuple[bool, ...], told: Compilation) -> int:
        return self.session.compile(digest, self.device.index, name, donated, told)

    def _numbers(self, arrays: Sequence[BufferArray]) -> tuple[int, ...]:
        """The handles of arguments."""
        return tuple([a._live().number for a in arrays])

    def _new_numbers(self) -> list[int]:
        """Handles for the results."""
        return [self.session.new_handle() for _ in self.out_avals]

    def _results(self, numbers: list[int], committed: bool) -> list[BufferArray]:
        return [
            BufferArray(a, Handle(self.session, n, size), self.device, committed)
            for a, n, size in zip(self.out_avals, numbers, self.sizes)
        ]

    def execute(self, args: Sequence[BufferArray]) -> list[BufferArray]:
        """Runs on arrays of this host. The results are handles; errors are raised when the first of them is read."""
        if self.failure is not None:
            raise self.failure.with_traceback(None)
        session, numbers = self.session, self._new_numbers()
        given, committed = self.lead + self._numbers(args), any([a.committed for a in args])
        if self.reporter is not None:
            wait_for_ordered(self.jaxpr.effects)
            reply = session.execute_reporting(self.handle, given, tuple(numbers), self.reporter)
            if self.reporter.asked and session.transport.can_wait():
                self._wait(reply, numbers)  # the program needs this thread
            else:
                started(Running(session, reply))
            return self._results(numbers, committed)
        read = [k for k, handle in enumerate(self.last) if handle.fetched and self.siblings[k] is not None]
        if read:
            reply = session.execute_fetching(self.handle, given, tuple(numbers), tuple(read))
        else:
            session.execute(self.handle, given, tuple(numbers))
        results = self._results(numbers, committed)
        start, size = 0, sum([self.sizes[k] for k in read])
        for k, (x, siblings) in enumerate(zip(results, self.siblings)):
            handle = x.handle
            if siblings is None or not isinstance(handle, Handle):
                continue
            if k in read:
                handle.coming, handle.ready = Coming(reply, start, size), reply
                start += self.sizes[k]
            handle.siblings = siblings
            siblings.arrays.append(weakref.ref(x))
        self.last = [x.handle for x in results if isinstance(x.handle, Handle)]
        return results

    def _wait(self, reply: Reply, results: list[int]) -> None:
        try:
            self.session.wait(reply)
        except BaseException:
            for number in results:
                self.session.release(number)
            raise

    def inspect(self, what: str, stage: str = "") -> str:
        text = self.session.wait(self.session.request(lambda op: p.Inspect(op, self.handle, what, stage)))
        if not isinstance(text, str):
            raise ProtocolError(f"{self.session.url} answers no text where one is asked for.")
        return text

    def as_text(self, stage: str | None = None) -> str:
        """The program as text from the host's backend; `stage` is one of that backend's stages."""
        return self.inspect("text", stage or "")

    def cost_analysis(self) -> dict[str, float]:
        found: dict[str, float] = json.loads(self.inspect("cost"))
        return found

    def memory_analysis(self) -> dict[str, float]:
        found: dict[str, float] = json.loads(self.inspect("memory"))
        return found

    def __del__(self) -> None:
        try:
            self.session.release(self.handle)
        except Exception:  # the interpreter is shutting down, or compilation never began
            pass


class SpreadExecutable(RemoteExecutable):
    """A program over several devices of a host. Its arguments and results are known there as their parts."""

    shardings: list[Sharding] | None = None  # of the results, once they are known

    @override
    def _compile(self, digest: bytes, name: str, donated: tuple[bool, ...], told: Compilation) -> int:
        handle, place = self.session.new_handle(), self.device
        said = spread.layout(place, [array_type(a) for a in self.in_avals], self.out_avals)
        make = lambda op: p.CompileSpread(op, handle, digest, *said, name, donated)
        self.session.operate(make, line=True, compilation=told)
        return handle

    @override
    def _numbers(self, arrays: Sequence[BufferArray]) -> tuple[int, ...]:
        return tuple([part._live().number for a in arrays for part in a._live().arrays])

    @override
    def _new_numbers(self) -> list[int]:
        return [self.session.new_handle() for _ in range(len(self.out_avals) * len(self.device.devices))]

    @override
    def _results(self, numbers: list[int], committed: bool) -> list[BufferArray]:
        if self.shardings is None:
            self.shardings = spread.chosen(self.device, self.out_avals, lambda: self.inspect("shardings"))
        rest, made = iter(numbers), []
        for aval, sharding in zip(self.out_avals, self.shardings):
            part = spread.part_type(aval, sharding)
            size = part.size * dtypes.itemsize(part.dtype)
            parts = [BufferArray(part, Handle(self.session, next(rest), size), d, True) for d in self.device.devices]
            made.append(SpreadArray(aval, sharding, parts))
        return list(made)


class JoinedExecutable(SpreadExecutable):
    """A program over devices of several hosts that have joined each other. Each host gets it, and the parts of the
    arguments that it has; what they run together is one computation.
    """

    joined: Joined
    handles: list[tuple[Session, int]]

    @override
    def _compile(self, digest: bytes, name: str, donated: tuple[bool, ...], told: Compilation) -> int:
        self.joined = self.device.devices[0].session.joined
        said = spread.layout(self.device, [array_type(a) for a in self.in_avals], self.out_avals)
        self.handles = [(s, s.new_handle()) for s in dict.fromkeys([d.session for d in self.device.devices])]
        for session, handle in self.handles:
            make = lambda op, h=handle: p.CompileSpread(op, h, digest, *said, name, donated)
            session.operate(make, line=True, compilation=told)
        self.session, first = self.handles[0]  # it is asked about the program
        return first

    @override
    def execute(self, args: Sequence[BufferArray]) -> list[BufferArray]:
        if self.failure is not None:
            raise self.failure.with_traceback(None)
        if self.shardings is None:
            self.shardings = spread.chosen(self.device, self.out_avals, lambda: self.inspect("shardings"))
        devices = self.device.devices
        given = [part for a in (*self.consts, *args) for part in a._live().arrays]
        results = [[(d, d.session.new_handle()) for d in devices] for _ in self.out_avals]
        with self.joined.order:
            self.joined.check()
            for session, handle in self.handles:
                arguments = tuple([part._live().number for part in given if part.device.session is session])
                numbers = tuple([n for parts in results for d, n in parts if d.session is session])
                session.execute(handle, arguments, numbers)
        made: list[BufferArray] = []
        for aval, sharding, numbered in zip(self.out_avals, self.shardings, results):
            part = spread.part_type(aval, sharding)
            size = part.size * dtypes.itemsize(part.dtype)
            parts = [BufferArray(part, Handle(d.session, n, size), d, True) for d, n in numbered]
            made.append(SpreadArray(aval, sharding, parts))
        return made

    @override
    def __del__(self) -> None:
        try:
            for session, handle in self.handles:
                session.release(handle)
        except Exception:  # the interpreter is shutting down, or compilation never began
            pass


class Running:
    """A program that reports values, while it runs."""

    def __init__(self, session: Session, reply: Reply):
        self.session, self.reply = session, reply

    def block_until_ready(self) -> None:
        """Returns when all its values were reported, or nobody can be told any more since the session was closed."""
        if not self.session.closed:
            self.session.wait(self.reply)


def _reporter(callbacks: Sequence[JaxprEqn]) -> Reporter | None:
    """What calls the functions of a program's callbacks."""
    if not callbacks:
        return None
    operands = [[array_type(a.aval) for a in eqn.invars] for eqn in callbacks]
    functions = [partial(_call, eqn, avals) for eqn, avals in zip(callbacks, operands)]
    asked = [i for i, eqn in enumerate(callbacks) if "result_avals" in eqn.params]
    return Reporter(functions, operands, frozenset(asked))


def _call(eqn: JaxprEqn, avals: Sequence[ShapedArray], data: Sequence[memoryview]) -> bytes | None:
    """Calls a function with arrays of this process, where it computes too: the host still runs the program. The bytes
    of its results, if the program waits for them.
    """
    device, callback, name = device_here(), eqn.params["callback"], eqn.primitive.name
    values = [from_bytes(d, a.shape, a.dtype) for d, a in zip(data, avals)]
    with default_device(device):
        if "result_avals" not in eqn.params:
            call_host(callback, values, avals, device)
            return None
        results = host_results(name, callback, eqn.params["result_avals"], values, avals, device)
        return b"".join([to_bytes(r) for r in results])


def device_here() -> Device:
    """The best device of this process that can hold an array."""
    reasons = []
    for platform in ("cpu", "wasm", "reference"):
        try:
            device: Device = backend_for(platform).devices(platform)[0]
            return device
        except BackendError as e:
            reasons.append(f"{platform}: {e}")
    raise BackendError("no backend of this process can hold what a program prints. " + " | ".join(reasons))


def _session_of(where: Any) -> Any:
    """The session of a device, or of those of a sharding or a program; None for those of another backend."""
    devices = (
        where._devices() if isinstance(where, Sharding) else where.devices if isinstance(where, Partition) else (where,)
    )
    sessions = {d.session if isinstance(d, RemoteDevice) else None for d in devices}
    if len(sessions) == 1:
        return next(iter(sessions))
    joined = {None if s is None else s.joined for s in sessions}
    if len(joined) > 1 or None in joined:
        raise BackendError(
            at_user_line(
                "a mesh of devices of several hosts: arrays and programs are spread over those of one host, or of hosts"
                " that have joined each other (weft.remote.connect_all)."
            )
        )
    return next(iter(joined))


def register(session: Session, default: bool) -> Session:
    backend = backend_for("remote")
    devices = iter(session.welcome.devices)
    session._devices = [
        RemoteDevice(backend, session, i, next(backend.ids), platform, kind)
        for i, (platform, kind) in enumerate(zip(devices, devices))
        if platform  # others are those of hosts that this one has joined
    ]
    backend.sessions.append(session)
    atexit.register(_close, weakref.ref(session))
    forget_default()
    if default:
        if config.platforms != "remote":
            backend.platforms_before = config.platforms
        session.on_close = partial(_no_longer_default, backend)
        config.update("jax_platforms", "remote")
    return session


def _no_longer_default(backend: RemoteBackend) -> None:
    """Restores the platform that was the default before the last session that was the default, unless the user has
    chosen another one since.
    """
    forget_default()
    if config.platforms == "remote" and all(s.closed for s in backend.sessions if s.on_close is not None):
        config.update("jax_platforms", backend.platforms_before)


def _close(session: weakref.ref[Session]) -> None:
    """Tells the host at exit that this client ends, so that the host does not wait for it."""
    effects_barrier()
    found = session()
    if found is not None:
        found.close()


def connect(
    url: str,
    *,
    token: str,
    default: bool = False,
    timeout: float = 20.0,
    name: str = "",
    wait: float | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    compression: bool | None = None,
) -> Session:
    """Connects to an accelerator host. Its devices are the devices of the platform "remote" afterwards.

    Args:
        url: str: the address that `weft-host` prints, such as "ws://127.0.0.1:8765".
        token: str: the token with which the host was started, or that it printed.
        default: bool: make the host the default, as `weft.config.update("jax_platforms", "remote")` does, until the
            session is closed.
        timeout: float: seconds for connecting. In a page the browser decides.
        name: str: the name of this client in the host's log.
        wait: float | None: seconds for a place on a host that is full; None waits until there is one, and Ctrl-C gives
            it up. Meanwhile the host says how many are before this client.
        on_progress: Callable: called with each `Progress` of the session from now on, such as
            `Progress(name='', stage='queued', seconds=4.0, waiting=0, place=3, of=7)` while it waits for its place.
        compression: bool | None: offer the host to compress what is sent, if it does so (`weft-host --compression`);
            None does so where connecting takes 5 ms or more. In a page the browser decides.

    Returns:
        `Session`, with `devices()`, `stats`, `ping()` and `close()`; it is a context manager, which closes it.

    Raises:
        ConnectionLost: if no host answers at that address.
        AuthenticationError: for a wrong token.
        LimitError: if the host is full, and there was no place in time.
        ProtocolError: if the host speaks another version of the protocol.

    Example:
        >>> import weft
        >>> with weft.remote.connect("ws://127.0.0.1:8765", token="…") as session:      # doctest: +SKIP
        ...     x = weft.device_put(weft.numpy.arange(3.0), session.devices()[0])
    """
    session = Session(url, token, name, carrier(timeout, wait, compression), on_progress)
    session.transport.open()
    return register(session, default)


def connect_all(
    urls: Sequence[str], *, token: str, default: bool = False, timeout: float = 20.0, name: str = ""
) -> Joined:
    """Connects to hosts that have joined each other (`weft-host --coordinator`): one mesh may have the devices of all.

    Args:
        urls: sequence of str: the addresses of all of them, in the order of their `--process`.
        token: str: the token of the hosts.
        default: bool: make the hosts the default, until they are closed.
        timeout: float: seconds for connecting to each.
        name: str: the name of this client in the hosts' logs.

    Returns:
        `Joined`, with `devices()`, `sessions` and `close()`; it is a context manager, which closes it.

    Raises:
        ConnectionLost: if one of the hosts does not answer.
        AuthenticationError: for a wrong token.
        ValueError: if the addresses are not those of all hosts that have joined each other, in their order.

    Example:
        >>> import weft
        >>> with weft.remote.connect_all(["ws://a:8765", "ws://b:8765"], token="…") as hosts:   # doctest: +SKIP
        ...     mesh = weft.make_mesh((len(hosts.devices()),), ("x",), devices=hosts.devices())
    """
    made = Joined()
    try:
        for url in urls:
            session = Session(url, token, name, carrier(timeout))
            session.transport.open()
            made.add(session)
        made.check_complete()
    except BaseException:
        made.close()
        raise
    for session in reversed(made.sessions):  # the devices of the newest session come first
        register(session, default)
    return made


async def connect_async(
    url: str,
    *,
    token: str,
    default: bool = False,
    timeout: float = 20.0,
    name: str = "",
    wait: float | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    compression: bool | None = None,
) -> Session:
    """`connect` as a coroutine. A page without JSPI can't wait in any other way.

    Args:
        url: str: the address that `weft-host` prints.
        token: str: the token with which the host was started, or that it printed.
        default: bool: make the host the default until the session is closed.
        timeout: float: seconds for connecting. In a page the browser decides.
        name: str: the name of this client in the host's log.
        wait: float | None: seconds for a place on a host that is full; None waits until there is one, and Ctrl-C gives
            it up. Meanwhile the host says how many are before this client.
        on_progress: Callable: called with each `Progress` of the session from now on, such as
            `Progress(name='', stage='queued', seconds=4.0, waiting=0, place=3, of=7)` while it waits for its place.
        compression: bool | None: offer the host to compress what is sent, if it does so (`weft-host --compression`);
            None does so where connecting takes 5 ms or more. In a page the browser decides.

    Returns:
        `Session`.

    Raises:
        ConnectionLost: if no host answers at that address.
        AuthenticationError: for a wrong token.
        LimitError: if the host is full, and there was no place in time.
        ProtocolError: if the host speaks another version of the protocol.

    Example:
        >>> import weft
        >>> session = await weft.remote.connect_async("wss://example.org", token="…")   # doctest: +SKIP
    """
    session = Session(url, token, name, carrier(timeout, wait, compression), on_progress)
    await session.transport.open_async()
    return register(session, default)


def carrier(
    timeout: float, wait: float | None = None, compression: bool | None = None
) -> Callable[[Session], Transport]:
    """The class that carries a session's frames in this process."""
    if sys.platform == "emscripten":
        return partial(PageTransport, patience=wait)
    return partial(ThreadTransport, timeout=timeout, patience=wait, compression=compression)


def _fetches(arrays: Sequence[object]) -> list[tuple[BufferArray, Coming]]:
    """The requests for the arrays of hosts that are there."""
    single = [
        part
        for x in arrays
        for part in (x.handle.arrays if isinstance(x, BufferArray) and isinstance(x.handle, Parts) else [x])
    ]
    return [
        (x, fetch(x.handle))
        for x in single
        if isinstance(x, BufferArray) and isinstance(x.handle, Handle) and x._cache is None and _may_be_asked(x.handle)
    ]


def _may_be_asked(handle: Handle) -> bool:
    """Whether a request is of use, if only to raise why not: what can be computed here is, once it is read."""
    return handle.session.failure is None or handle.rescue is None


def prefetch(*arrays: object) -> None:
    """Fetches the values of remote arrays together, in one round trip. Reading them afterwards takes none.

    Args:
        *arrays: arrays of any dtype and shape; those that are not remote, or fetched already, are skipped.

    Returns:
        None.

    Raises:
        ConnectionLost: if the connection ends before the values arrive.

    Example:
        >>> import weft
        >>> weft.remote.prefetch(*weft.tree.leaves({"loss": weft.numpy.ones(3)}))
    """
    for x, asked in _fetches(arrays):
        _keep(x, asked)


async def prefetch_async(*arrays: object) -> None:
    """`prefetch` as a coroutine. In a page without JSPI, a program must await it before it reads values.

    Args:
        *arrays: arrays of any dtype and shape; those that are not remote, or fetched already, are skipped.

    Returns:
        None.

    Raises:
        ConnectionLost: if the connection ends before the values arrive.

    Example:
        >>> import weft
        >>> await weft.remote.prefetch_async(weft.numpy.ones(3))                         # doctest: +SKIP
    """
    for x, asked in _fetches(arrays):
        await x.handle.session.wait_async(asked.reply)
        _keep(x, asked)


def _keep(x: BufferArray, asked: Coming) -> None:
    x._cache = from_bytes(x.device_.backend.taken(asked, x.handle), x.aval.shape, x.aval.dtype)
