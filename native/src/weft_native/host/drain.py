"""How a host stops without losing work: it takes no new sessions, lets the others end, and answers what has come."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from .front import Front
from .inference.routes import Inference

log = logging.getLogger("weft.host")
LOOK = 0.02  # seconds between two looks
QUIET = 0.5  # seconds without a request after which no more are expected
ANSWER_SECONDS = 10.0  # in which requests are answered that have come when the host is about to close its doors


class Drain:
    """The end of a host.

    Args:
        front: of the host.
        inference: the programs that it publishes, if it does.
        seconds: for which sessions may go on, and requests may come.
    """

    def __init__(self, front: Front, inference: Inference | None, seconds: float):
        self.front, self.inference, self.seconds = front, inference, seconds
        self.asked, self.hurried = asyncio.Event(), asyncio.Event()

    def ask(self) -> None:
        """Begins; at once if it has begun already."""
        (self.hurried if self.asked.is_set() else self.asked).set()

    def stop(self) -> None:
        """The host ends at once."""
        self.asked.set()
        self.hurried.set()

    async def run(self) -> None:
        """Returns when the host has been asked to end, and may."""
        await self.asked.wait()
        until = time.monotonic() + self.seconds
        self.front.drain(until)
        if self.seconds and not self.hurried.is_set():
            log.warning("the host is about to stop: %d sessions, for %g s", len(self.front.guests()), self.seconds)
        await self._wait(lambda: not self.front.guests() and self._is_quiet(), until)
        await self.front.close_doors()
        await self._wait(lambda: self.inference is None or not self.inference.active, time.monotonic() + ANSWER_SECONDS)

    def _is_quiet(self) -> bool:
        asked = self.inference
        return asked is None or not asked.active and time.monotonic() - asked.asked_at > QUIET

    async def _wait(self, done: Callable[[], bool], until: float) -> None:
        while not (done() or self.hurried.is_set()) and time.monotonic() < until:
            await asyncio.sleep(LOOK)
