"""The computations that a session has under way, and for how long it has computed."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from .limits import CHAIN, RUNNING
from .memory import Charge
from .values import Stored, finished, is_gone


class Running(NamedTuple):
    """A running computation: one of its results, and the size of its intermediate results. If the result was given to
    the next computation before it was there, both are one, of two `calls`: nothing tells when the first has ended.
    """

    op: int  # that began it
    name: str  # of its program
    array: Any
    charges: list[Charge]
    calls: int


class Computations:
    """What a session computes. Methods are called in the thread that performs its operations, but for `overdue` and
    `since`.

    Args:
        seconds: that one computation may take.
        ended: whether the session has ended.
    """

    def __init__(self, seconds: float, ended: Callable[[], bool]):
        self.seconds, self.ended = seconds, ended
        self.running: deque[Running] = deque()
        self.head_since: float | None = None
        self.busy_since: float | None = None  # since when the thread itself computes or compiles
        self.read = threading.Condition()  # an array that was asked for has been read

    def begin(self) -> None:
        self.busy_since = time.monotonic()

    def rest(self) -> None:
        self.busy_since = None

    def overdue(self, now: float) -> float:
        """For how long the session has computed beyond what calls that hang together may have, all but the last of
        which are taken to have had all the time they may have.
        """
        since = self.busy_since
        if since is None and self.running:
            self.drop_finished()
            since = self.head_since if self.running else None
        if since is None:
            return 0.0
        calls = self.running[0].calls if self.busy_since is None and self.running else 1
        return max(now - since - self.seconds * (calls - 1), 0.001)

    def are_running(self, through: int) -> bool:
        """Whether one runs that an operation up to this one began."""
        return any(r.op <= through and not finished(r.array) for r in list(self.running))

    def drop_finished(self) -> None:
        while self.running and finished(self.running[0].array):
            self.running.popleft()
            self.head_since = time.monotonic()

    def add(self, op: int, name: str, result: Any, charge: Charge, before: int | None) -> None:
        """A computation has begun; `before` is what `give` returned for it."""
        if before is not None and is_gone(self.running[before].array):
            _, _, _, taken, calls = self.running[before]
            self.running[before] = Running(op, name, result, [*taken, charge], calls + 1)
            return
        if not self.running:
            self.head_since = time.monotonic()
        self.running.append(Running(op, name, result, [charge], 1))

    def make_place(self) -> None:
        """Waits until one more may be under way."""
        while len(self.running) >= RUNNING:
            self.wait_for_one()

    def give(self, given: list[Stored]) -> int | None:
        """Waits until arrays can be given away: they are read, if that was asked for before, and few computations hang
        together. The place among the running ones of the computation that gives one of them.
        """
        before = None
        for x in given:
            if x.reads:
                with self.read:
                    self.read.wait_for(lambda: not x.reads or self.ended())
            if not finished(x.array):
                place = next((k for k, r in enumerate(self.running) if r.array is x.array), None)
                if place is not None and self.running[place].calls >= CHAIN:
                    self._wait_for(x.array)
                elif place is not None:
                    before = place
        return before

    def wait_for_one(self) -> None:
        """Waits until the first of the computations under way has ended."""
        self._wait_for(self.running[0].array)
        self.drop_finished()

    def _wait_for(self, array: Any) -> None:
        """Waits for a result; what counts as computing meanwhile is what gives it."""
        if not finished(array):
            since, self.busy_since = self.busy_since, None
            with contextlib.suppress(Exception):  # it failed; whoever reads it gets the error
                array.block_until_ready()
            self.busy_since = since and time.monotonic()
