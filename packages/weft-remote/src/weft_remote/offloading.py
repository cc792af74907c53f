"""`offload`: each call of a function runs here or on a host, wherever it takes less time."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial, update_wrapper
from types import MethodType
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, overload

from weft.base.annotations import Args, Result, override
from weft.base.config import config
from weft.base.errors import BackendError, JAXTypeError, at_user_line, warn
from weft.base.host import to_bytes
from weft.core.jaxpr import ClosedJaxpr
from weft.core.memo import Memo
from weft.core.trace import Tracer, current_trace, get_aval, is_array, root
from weft.runtime.aot import TracedCall
from weft.runtime.array import BufferArray, KeyArray
from weft.runtime.backend import Device
from weft.runtime.device import backend_for, default_device
from weft.runtime.dispatch import executable_for, run_jaxpr, to_backend
from weft.runtime.jit import JitFunction
from weft.serialization.binary import DeserializationError
from weft.serialization.portable import NotPortable

from .backend import RemoteDevice, device_here
from .handles import Handle
from .costs import AFFORDABLE, AGAIN, MESSAGE, SURELY, TRIES, Costs, Side, Signature, here_alone, identity, said, sides
from .errors import ConnectionLost
from .line import Line, seconds
from .session import Session
from .work import nbytes, work_of

Flags: TypeAlias = tuple[bool, ...]
PLACES = ("auto", "here", "there")
_known: Memo[tuple[int, str], Signature] = Memo()  # by the number of the function, and the host's session
_numbers = itertools.count()


class Call(NamedTuple):
    """A call: its program, what it is given, and what is known of calls like it."""

    closed: ClosedJaxpr
    leaves: list[Any]
    donated: tuple[bool, ...]  # () if nothing is
    known: Signature


class Choice(NamedTuple):
    """Where a call runs, why, and whether it is measured."""

    where: str
    reason: str
    measured: bool = False


class Offloaded(Generic[Args, Result]):
    """A function whose calls run here or on a host. Made by `weft.remote.offload`.

    Attributes:
        where: what ran the last call: "here" or "there".
        reason: why.
        times: the least seconds for which its program computed at each place, in the last few calls that were measured;
            None where none was.
    """

    def __init__(
        self, fun: Callable[Args, Result], to: Session | RemoteDevice | None, place: str, options: dict[str, Any]
    ):
        self.jitted: JitFunction[Args, Result] = JitFunction(fun, **options)
        update_wrapper(self, fun)
        self.name, self.to, self.place = self.jitted.name, to, place
        self.number = next(_numbers)
        self.device: RemoteDevice | None = None  # the last one that there was
        self.told: weakref.WeakSet[Session] = weakref.WeakSet()  # lost ones that a warning has named
        self.where, self.reason = "here", "it was not called yet"
        self.times: dict[str, float | None] = {"here": None, "there": None}

    def __call__(self, *args: Args.args, **kwargs: Args.kwargs) -> Result:
        if config.disable_jit:
            return self.jitted(*args, **kwargs)
        leaves, traced = self._trace(args, kwargs)
        if traced.outer or current_trace() is not root or any(isinstance(x, Tracer) for x in leaves):
            return self.jitted(*args, **kwargs)  # a part of a greater program, which runs where that does
        device = self._device()
        call = self._call(leaves, traced, device, self._donated(args, kwargs))
        choice = self._choose(call, device)
        outs = self._run(call, device, choice)
        known = call.known
        known.before, known.given = [_reference(x) for x in leaves], [_reference(x) for x in outs]
        self.times = {"here": known.here.least, "there": known.there.least}
        result: Result = traced.out_tree.unflatten(outs)
        return result

    def __get__(self, obj: object, objtype: Any = None) -> Any:
        return self if obj is None else MethodType(self, obj)

    @override
    def __repr__(self) -> str:
        return f"<offloaded {self.jitted.fun!r}>"

    def explain(self, *args: Args.args, **kwargs: Args.kwargs) -> Costs:
        """What a call with these arguments costs here and there, and where it would run. Runs nothing of it.

        Args:
            *args: the arguments of a call, arrays of any dtype and shape.
            **kwargs: the same by name.

        Returns:
            `Costs`, whose text is a table; `where` and `reason` are what is decided.

        Example:
            >>> import weft, weft.numpy as jnp
            >>> f = weft.remote.offload(lambda x: x + 1, where="here")
            >>> f.explain(jnp.ones(3)).reason
            'it was placed with where="here"'
        """
        leaves, traced = self._trace(args, kwargs)
        device = self._device()
        call = self._call(leaves, traced, device, self._donated(args, kwargs))
        choice = self._choose(call, device, counts=False)
        text = f"{self.name}({', '.join(a.str_short() for a in call.closed.in_avals)})"
        if device is None or not device.session.transport.can_wait():
            return Costs(text, choice.where, choice.reason, here_alone(call.known, _here()), None)
        both = self._sides(call, device, True)
        return Costs(text, choice.where, choice.reason, both["here"], both["there"])

    # a call -----------------------------------------------------------------------------------------------------------

    def _device(self) -> RemoteDevice | None:
        """The device of a host; None if there is none any more, or none is wanted."""
        if self.place == "here":
            return None
        device = self.to if isinstance(self.to, RemoteDevice) else None
        if isinstance(self.to, Session):
            device = self.to._devices[0]
        if self.to is None:
            sessions = [s for s in backend_for("remote").sessions if s.failure is None]
            device = sessions[-1]._devices[0] if sessions else self.device
        if device is None:
            raise BackendError(
                at_user_line(
                    f"{self.name} is offloaded, and no accelerator host is connected. Connect to one first,"
                    " weft.remote.connect('ws://127.0.0.1:8765', token='…'), or say where=\"here\"."
                )
            )
        self.device = device
        failure = device.session.failure
        if failure is None:
            return device
        if self.place == "there":
            raise failure.with_traceback(None)
        self._lost(device.session, failure)
        return None

    def _lost(self, session: Session, why: Exception) -> None:
        what = "is lost" if isinstance(why, ConnectionLost) else "has ended the session"
        self.where, self.reason = "here", f"the host {what}: {why}"
        if session not in self.told:
            self.told.add(session)
            self._warn(why)

    def _warn(self, why: Exception) -> None:
        warn(at_user_line(f"{self.name} is computed here: {why}"), RuntimeWarning)

    def _trace(self, args: Any, kwargs: Any) -> tuple[list[Any], TracedCall]:
        try:
            return self.jitted.traced(args, kwargs)
        except JAXTypeError as e:
            e.add_note(
                f"{self.name} is offloaded, so it is traced as one program, as weft.jit does. Take the part that needs"
                " values out of it, or name the argument in static_argnums."
            )
            raise

    def _donated(self, args: Any, kwargs: Any) -> tuple[bool, ...]:
        jitted = self.jitted
        given = jitted.donated(args, kwargs) if jitted.donate_argnums or jitted.donate_argnames else ()
        return given if any(given) else ()

    def _call(self, leaves: list[Any], traced: TracedCall, device: RemoteDevice | None, donated: Flags) -> Call:
        closed = traced.jaxpr
        at = (self.number, "" if device is None else device.session.welcome.id)
        table = _known.of(closed.jaxpr)
        if at not in table:
            made = table[at] = Signature(work_of(closed.jaxpr), [nbytes(a) for a in closed.out_avals])
            former = next((s for key, s in table.items() if key[0] == self.number), made)
            made.here = former.here  # this machine is the same with every host
        return Call(closed, leaves, donated, table[at])

    def _sides(self, call: Call, device: RemoteDevice, estimate: bool) -> dict[str, Side]:
        """What the call costs."""
        known = call.known
        for k, handle in enumerate(known.handles):
            known.unread = known.unread - {k} if handle.fetched else known.unread | {k}
        return sides(known, call.leaves, call.closed.in_avals, line_to(device), _here(), estimate)

    def _choose(self, call: Call, device: RemoteDevice | None, counts: bool = True) -> Choice:
        """Where a call runs; it is counted unless it is only explained."""
        known = call.known
        if self.place != "auto":
            return Choice(self.place, f'it was placed with where="{self.place}"')
        if device is None:
            return Choice("here", self.reason)
        if known.refused:
            return Choice("here", f"the host does not run it: {known.refused}")
        if not device.session.transport.can_wait():
            return Choice("here", "this page can't wait for a host (it has no JSPI), so nothing can be measured there")
        count = known.calls
        known.calls += counts
        surely = max(known.work.flops, known.work.bytes) < SURELY
        both = self._sides(call, device, not surely)
        here, there = both["here"], both["there"]
        affordable = surely or here.together <= AFFORDABLE
        trial = Choice("here", "calls are measured at both places", True)
        if not known.here.times and affordable:
            return trial
        least = "" if there.computing is not None else "at least "  # if the host computes in no time
        tell = "" if known.here.times else ", as its operations tell"
        reason = f"a call takes {least}{said(there.together)} there and {said(here.together)} here{tell}"
        faster, other = ("there", "here") if there.together < here.together else ("here", "there")
        if least and faster == "here":
            return Choice("here", reason, len(known.here.times) < TRIES or count % AGAIN == 1)
        if len(known.there.times) < TRIES or affordable and len(known.here.times) < TRIES:
            first = not affordable or len(known.there.times) < len(known.here.times)
            return trial._replace(where="there" if first else "here")
        if count % AGAIN == 0 and (other == "there" or affordable):
            return Choice(other, f"{reason}; it is tried {other} once more", True)
        return Choice(faster, reason, count % AGAIN == 1)

    def _run(self, call: Call, device: RemoteDevice | None, choice: Choice) -> list[Any]:
        self.where, self.reason = choice.where, choice.reason
        if choice.where == "here" or device is None:
            return self._run_here(call, choice.measured)
        try:
            return self._run_there(call, device, choice.measured)
        except (BackendError, DeserializationError, NotPortable) as e:
            # what is placed there is not wanted here; arguments may be gone, or a part of the program has happened
            happened = call.closed.effects and not isinstance(e, NotPortable)
            if self.place == "there" or call.donated or happened:
                raise
            self._fall_back(call.known, device.session, e)
        return self._run_here(call, False)

    def _fall_back(self, known: Signature, session: Session, why: Exception) -> None:
        if session.failure is not None:
            self._lost(session, why)
        elif not known.refused:
            known.refused = str(why)
            self.where, self.reason = "here", f"the host does not run it: {why}"
            self._warn(why)

    def _run_here(self, call: Call, measured: bool) -> list[Any]:
        closed, leaves, device = call.closed, call.leaves, _here()
        if measured:  # compiling is not counted, and fetching the arguments apart
            executable_for(closed, device, self.name, call.donated)
            leaves = [_at(x, device) for x in leaves]
            _wait(leaves)
        outs: list[Any] = []

        def run() -> None:
            outs.extend(run_jaxpr(closed, leaves, self.name, call.donated, device))
            if measured:
                _wait(outs)

        took = seconds(run)
        if measured:
            call.known.here.add(took)
            _delete(call, leaves)
        return outs

    def _run_there(self, call: Call, device: RemoteDevice, measured: bool) -> list[Any]:
        closed, known, session, line = call.closed, call.known, device.session, line_to(device)
        executable_for(closed, device, self.name, call.donated)
        rescue = self._rescue(call, session, line)
        donated = call.donated or (False,) * len(call.leaves)
        leaves: list[Any] = []

        def send() -> None:
            leaves.extend([line.there(x, d) for x, d in zip(call.leaves, donated)])
            if measured:
                session.ping()

        outs: list[Any] = []

        def run() -> None:
            outs.extend(run_jaxpr(closed, leaves, self.name, call.donated, device))
            if measured:
                _wait(outs)

        if measured:
            speed = line.speed
            session.ping()  # compiling is not counted
            size = sum([nbytes(a) for x, a in zip(call.leaves, closed.in_avals) if not line.is_there(x)])
            line.sent(size, seconds(send))
            took = seconds(run)
            known.there.add(max(took - speed.round_trip, MESSAGE))
        else:
            send()
            run()
        _delete(call, leaves)
        known.handles = [identity(x).handle for x in outs]
        for k, handle in enumerate(known.handles):
            handle.rescue = None if rescue is None else partial(rescue.value, k)
        return outs

    def _rescue(self, call: Call, session: Session, line: Line) -> Rescue | None:
        """What computes the results here if the host is lost before they are read; None if that is not possible: an
        argument is only there, or given away, or the program does more than compute.
        """
        if self.place == "there" or call.donated or call.closed.effects or any(map(line.only_there, call.leaves)):
            return None
        device = _here()
        # what is not an array of ours may change until then
        leaves = [x if is_array(x) else _at(x, device) for x in call.leaves]

        def compute(why: Exception) -> list[Any]:
            self._fall_back(call.known, session, why)
            return [identity(x) for x in run_jaxpr(call.closed, leaves, self.name, (), device)]

        return Rescue(compute)


class Rescue:
    """Computes the results of one call here, once, for whoever reads the first of them."""

    def __init__(self, compute: Callable[[Exception], list[Any]]):
        self.compute = compute
        self.made: list[Any] = []
        self.lock = threading.Lock()

    def value(self, k: int, why: Exception) -> memoryview:
        """The bytes of result `k`, which can't be had from the host."""
        with self.lock:
            self.made = self.made or self.compute(why)
        return memoryview(to_bytes(self.made[k]._host())).cast("B")


def line_to(device: RemoteDevice) -> Line:
    """The line to a device, made at the first use."""
    if device.line is None:
        device.line = Line(device)
    line: Line = device.line
    return line


def _here() -> Device:
    """The device of this process on which calls run here."""
    device = default_device()
    return device_here() if isinstance(device, RemoteDevice) else device


def _at(x: Any, device: Device) -> Any:
    """An argument on a device."""
    return KeyArray(x.aval, _at(x.raw, device)) if isinstance(x, KeyArray) else to_backend(x, get_aval(x), device)


def _wait(values: Sequence[Any]) -> None:
    """Returns when all are computed. Those of a host are asked for together."""
    arrays = [identity(x) for x in values if is_array(x)]
    for x in arrays:
        if isinstance(x, BufferArray) and isinstance(x.handle, Handle):
            x.device_.backend.ask(x.handle)
    for x in arrays:
        x.block_until_ready()


def _delete(call: Call, leaves: Sequence[Any]) -> None:
    """Deletes the arrays that were given away where copies of them ran."""
    for x, ran, given in zip(call.leaves, leaves, call.donated):
        if given and ran is not x and is_array(x):
            x.delete()


def _reference(x: Any) -> weakref.ref[Any] | None:
    """To an array; other values may change."""
    return weakref.ref(identity(x)) if is_array(x) else None


class Offload(Protocol):
    """The result of `offload` with options only: a decorator."""

    def __call__(self, fun: Callable[Args, Result], /) -> Offloaded[Args, Result]: ...


@overload
def offload(
    fun: Callable[Args, Result],
    /,
    *,
    to: Session | Device | None = None,
    where: str = "auto",
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
) -> Offloaded[Args, Result]: ...
@overload
def offload(
    fun: None = None,
    /,
    *,
    to: Session | Device | None = None,
    where: str = "auto",
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
) -> Offload: ...
def offload(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    to: Session | Device | None = None,
    where: str = "auto",
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
) -> Any:
    """Runs each call of a function here or on a host, wherever it takes less time.

    A call there costs a round trip, the arguments on their way, the computation, and the results that are read. An
    array that was sent stays there for as long as it lives here, and is not sent again; results stay there until they
    are read here. The first calls are measured at both places, unless the transfers alone take longer than the
    computation here; later ones run where they took less time, and the other place is tried again from time to time. If
    the host is lost, or refuses the program, it is computed here, with a warning.

    Args:
        fun: a function of pytrees of arrays, which can be traced as `weft.jit` does.
        to: `Session`, or one of its devices; None for the newest session.
        where: str: "auto"; "here" or "there" to decide it yourself.
        static_argnums, static_argnames: arguments that are Python values, part of the program; they must hash.
        donate_argnums, donate_argnames: arguments whose memory the program may reuse; they are deleted by the call. A
            call that has donated to a lost host is not repeated here.

    Returns:
        function of the same arguments. Its attributes `where`, `reason` and `times` tell of the last call, and
        `explain(…)`, with arguments of a call, what one costs here and there.

    Raises:
        BackendError: at a call, if no host is connected.
        TypeError, ValueError: for a function that can't be called, and for another `to` or `where`.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> with weft.remote.connect(URL, token=TOKEN) as session:  # those that `weft-host` printed
        ...     scale = weft.remote.offload(lambda x: x * 2, to=session)
        ...     print(scale(jnp.arange(3.0)), scale.where, "-", scale.reason)
        [0. 2. 4.] here - calls are measured at both places
    """
    options = {
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "donate_argnums": donate_argnums,
        "donate_argnames": donate_argnames,
    }
    if where not in PLACES:
        raise ValueError(at_user_line(f'where must be "auto", "here" or "there"; got {where!r}.'))
    if to is not None and not isinstance(to, (Session, RemoteDevice)):
        raise TypeError(
            at_user_line(f"to must be a session, which weft.remote.connect returns, or one of its devices; got {to!r}.")
        )
    if fun is None:
        return lambda f: Offloaded(f, to, where, options)
    return Offloaded(fun, to, where, options)
