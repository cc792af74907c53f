"""What a call costs here and there, and what that says about where it should run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import weft.numpy as jnp
from weft.base.annotations import override
from weft.runtime.array import KeyArray
from weft.runtime.backend import Device
from weft.runtime.jit import JitFunction

from .line import Line, Speed, seconds
from .work import Work, nbytes

TRIES = 3  # measured calls at each place before one is chosen
AGAIN = 64  # calls after which the other place is tried once more
AFFORDABLE = 1.0  # seconds that a call may take here, to find out how many it takes
SURELY = 1e8  # operations, or bytes, that every machine manages in that time
MESSAGE = 100e-6  # seconds that a call there takes if nothing is sent but its name


class Clock:
    """The seconds of the last measured computations at one place."""

    def __init__(self) -> None:
        self.times: list[float] = []

    @property
    def least(self) -> float | None:
        return min(self.times) if self.times else None

    def add(self, took: float) -> None:
        self.times = [*self.times, took][-TRIES:]


class Rates(NamedTuple):
    """Operations and bytes that a device manages in a second."""

    flops: float
    bytes: float

    def seconds(self, work: Work) -> float:
        return max(work.flops / self.flops, work.bytes / self.bytes)


_rates: dict[Any, Rates] = {}


def rates_of(device: Device) -> Rates:
    """Measured once, by a matrix product and by the sum of a vector and a number."""
    if device not in _rates:
        side, length = 256, 1 << 20
        product = JitFunction(lambda x: x @ x, device=device)
        sum_ = JitFunction(lambda x: x + 1, device=device)
        _rates[device] = Rates(
            2 * side**3 / _least(product, jnp.ones((side, side))), 4 * length / _least(sum_, jnp.ones(length))
        )
    return _rates[device]


def _least(f: JitFunction[..., Any], x: Any) -> float:
    x = f(x)  # compiled, and on the device
    return min([seconds(lambda: f(x).block_until_ready()) for _ in range(TRIES)])


class Moved(NamedTuple):
    """Bytes that cross the line: with each call, and once, since they stay."""

    each: int = 0
    once: int = 0


class Side(NamedTuple):
    """What a call costs at one place, in seconds."""

    computing: float | None  # None: it is not known
    how: str
    arguments: Moved
    sending: float  # the arguments, with each call
    once: float
    results: int  # bytes that are read
    reading: float
    trip: float  # the round trip of a call whose results are read

    @property
    def together(self) -> float:
        """Of each call; at least, if the time of the computation is not known."""
        return (self.computing or 0.0) + self.sending + self.reading + self.trip


@dataclass
class Signature:
    """What is known of the calls with arguments of one type."""

    work: Work
    results: Sequence[int]  # bytes of each result
    calls: int = 0
    here: Clock = field(default_factory=Clock)
    there: Clock = field(default_factory=Clock)
    refused: str = ""  # why the host does not run it
    before: Sequence[Any] = ()  # weak references to the arguments of the last call
    given: Sequence[Any] = ()  # and to its results
    unread: set[int] = field(default_factory=set)  # results that nobody here reads
    handles: Sequence[Any] = ()  # of the results of the last call there


def identity(x: Any) -> Any:
    """The array whose identity tells that a value is the same as before."""
    return x.raw if isinstance(x, KeyArray) else x


def look(known: Signature, leaves: Sequence[Any]) -> tuple[list[bool], set[int]]:
    """Compares a call with the last one: which arguments are the same arrays, or results of it; and which results are
    arguments now.
    """
    results = {id(x): k for k, ref in enumerate(known.given) if ref is not None and (x := ref()) is not None}
    same, carried = [], set()
    for i, x in enumerate(map(identity, leaves)):
        ref = known.before[i] if i < len(known.before) else None
        k = results.get(id(x))
        if k is not None:
            carried.add(k)
        same.append(k is not None or ref is not None and ref() is x)
    return same, carried


def sides(
    known: Signature,
    leaves: Sequence[Any],
    avals: Sequence[Any],
    line: Line,
    here: Device,
    estimate: bool,
) -> dict[str, Side]:
    """What a call costs at each place. What was not measured is estimated by the rates of this machine, if wanted."""
    speed = line.speed
    same, carried = look(known, leaves)
    up, down = [0, 0], [0, 0]
    for x, aval, stays in zip(leaves, avals, same):
        size = nbytes(aval)
        if line.only_there(x):
            down[stays] += size
        elif not line.is_there(x):
            up[stays] += size
    read = sum([n for k, n in enumerate(known.results) if k not in carried | known.unread])
    waits = any(k not in carried | known.unread for k in range(len(known.results))) or not known.results
    return {
        "here": _here(known, here, Moved(*down), speed, estimate),
        "there": _there(known, Moved(*up), read, waits, speed),
    }


def here_alone(known: Signature, device: Device) -> Side:
    """What a call costs where there is no host."""
    return _here(known, device, Moved(), Speed(0.0, 1.0, 1.0), True)


def _here(known: Signature, device: Device, down: Moved, speed: Speed, estimate: bool) -> Side:
    computing, how = known.here.least, "measured"
    if computing is None and estimate:
        computing, how = rates_of(device).seconds(known.work), "estimated" if known.work.exact else "at least"
    elif computing is None:
        how = "unknown"
    fetch = lambda size: size / speed.down + speed.round_trip if size else 0.0
    return Side(computing, how, down, fetch(down.each), fetch(down.once), 0, 0.0, 0.0)


def _there(known: Signature, up: Moved, read: int, waits: bool, speed: Speed) -> Side:
    computing = known.there.least
    return Side(
        computing,
        "unknown" if computing is None else "measured",
        up,
        up.each / speed.up,
        up.once / speed.up,
        read,
        read / speed.down,
        speed.round_trip if waits else MESSAGE,
    )


def said(seconds: float | None) -> str:
    """A time for people."""
    return (
        "–"
        if not seconds
        else f"{seconds:.1f} s"
        if seconds >= 1
        else f"{1e3 * seconds:.1f} ms"
        if seconds >= 1e-4
        else f"{1e6 * seconds:.0f} µs"
    )


def amount(size: int) -> str:
    """A number of bytes for people."""
    return (
        f"{size / (1 << 20):.1f} MiB" if size >= 1 << 20 else f"{size / 1024:.1f} KiB" if size >= 1024 else f"{size} B"
    )


class Costs:
    """What a call costs here and there, where it runs, and why: the result of `explain`. Its text is a table."""

    def __init__(self, call: str, where: str, reason: str, here: Side, there: Side | None):
        self.call, self.where, self.reason, self.here, self.there = call, where, reason, here, there

    @override
    def __repr__(self) -> str:
        here, there = self.here, self.there
        rows = [("", "here", "there", "")]
        if there is None:
            rows += [("computing", said(here.computing), "–", here.how)]
        else:
            moved = [
                f"{amount(s.arguments.each)} {way}" for s, way in ((there, "up"), (here, "down")) if s.arguments.each
            ]
            rows += [
                ("arguments", said(here.sending), said(there.sending), ", ".join(moved) or "nothing is sent"),
                ("computing", said(here.computing), said(there.computing), _hows(here, there)),
                (
                    "results",
                    said(here.reading),
                    said(there.reading),
                    f"{amount(there.results)} down" if there.results else "nothing is read",
                ),
                ("round trip", "–", said(there.trip), ""),
                ("each call", said(here.together), _at_least(there), ""),
            ]
            if here.once or there.once:
                stays = amount(max(here.arguments.once, there.arguments.once))
                rows += [("once", said(here.once), said(there.once), f"{stays} that stay")]
        widths = [max(len(r[k]) for r in rows) for k in range(3)]
        lines = [f"{r[0]:<{widths[0]}}  {r[1]:>{widths[1]}}  {r[2]:>{widths[2]}}  {r[3]}".rstrip() for r in rows]
        return "\n".join([f"{self.call} runs {self.where}: {self.reason}", *lines])

    __str__ = __repr__


def _hows(here: Side, there: Side) -> str:
    return here.how if here.how == there.how else f"{here.how} here, {there.how} there"


def _at_least(side: Side) -> str:
    return said(side.together) if side.computing is not None else f"> {said(side.together)}"
