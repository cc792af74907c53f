"""Concurrent requests as one call.

A program is exported for one request, and `vmap` makes it one for many: their results don't depend on each other, by
construction. While a call runs, the requests that come are gathered; the next call takes them, those first whose
deadline comes first. So a request that comes alone waits for nobody. What nobody waits for any more is not computed.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import weft

from .errors import RequestError
from .repository import Published
from .values import Array

QUEUED = 1024  # requests of a program that wait


class _Request(NamedTuple):
    arrays: Sequence[Array]
    result: asyncio.Future[list[Array]]
    deadline: float = math.inf  # of the event loop's clock

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return tuple([x.shape for x in self.arrays])


class Batcher:
    """Runs the requests of one program.

    Args:
        program: the program.
        place: gives the device that computes.
        most: requests of one call at most; 1 runs each alone.
        threads: runs the calls.
        called: is given the number of requests of each call.
    """

    def __init__(
        self,
        program: Published,
        place: Callable[[], Any],
        most: int,
        threads: ThreadPoolExecutor,
        called: Callable[[int], None] = lambda size: None,
    ):
        self.called = called
        self.program, self.place, self.most, self.threads = program, place, most, threads
        self.waiting: list[_Request] = []
        self.running = False
        self.calls = self.requests = 0
        exported = program.exported
        self._one = weft.jit(lambda *leaves: _call(exported, leaves))
        self._many = weft.jit(weft.vmap(lambda *leaves: _call(exported, leaves)))

    async def __call__(
        self, arrays: Sequence[Array], deadline: float = math.inf, seconds: float = math.inf
    ) -> list[Array]:
        """The results for a request's arrays. Raises RequestError, also if they are not there by a deadline, of the
        event loop's clock: so many seconds after the request has come.
        """
        if len(self.waiting) >= QUEUED:
            raise RequestError(503, f"{self.program.name} has {QUEUED} requests waiting. Try again later.")
        loop = asyncio.get_running_loop()
        request = _Request(arrays, loop.create_future(), deadline)
        self.waiting.append(request)
        if not self.running:
            self.running = True
            loop.call_soon(self._next)
        try:
            async with asyncio.timeout_at(None if math.isinf(deadline) else deadline):
                return await request.result
        except TimeoutError:
            raise RequestError(
                504, f"{self.program.name} has no result within the {seconds:.3g} s of the request."
            ) from None

    def _next(self) -> None:
        """Begins a call for those that wait, as far as they have the shapes of the first."""
        self.waiting = [r for r in self.waiting if not r.result.done()]  # whose clients are still there
        if not self.waiting:
            self.running = False
            return
        self.waiting.sort(key=lambda r: r.deadline)  # in the order in which they came where it is the same
        shapes = self.waiting[0].shapes
        batch = [r for r in self.waiting if r.shapes == shapes][: max(self.most, 1)]
        chosen = set(map(id, batch))
        self.waiting = [r for r in self.waiting if id(r) not in chosen]
        self.calls += 1
        self.requests += len(batch)
        self.called(len(batch))
        loop = asyncio.get_running_loop()
        done = loop.run_in_executor(self.threads, self._run, [r.arrays for r in batch])
        done.add_done_callback(lambda task: self._finish(batch, task))

    def _finish(self, batch: list[_Request], task: asyncio.Future[list[list[Array]]]) -> None:
        error = None if task.cancelled() else task.exception()
        for i, request in enumerate(batch):
            if request.result.done():
                continue
            if error is not None:
                request.result.set_exception(error)
            elif task.cancelled():
                request.result.cancel()
            else:
                request.result.set_result(task.result()[i])
        self._next()

    def _run(self, batch: list[Sequence[Array]]) -> list[list[Array]]:
        """The results of each request, in a thread."""
        with weft.default_device(self.place()), weft.enable_x64(self.program.exported._x64):
            if len(batch) == 1:
                return [list(map(np.asarray, weft.device_get(self._one(*batch[0]))))]
            size = 1 << (len(batch) - 1).bit_length()  # few sizes, since each is compiled
            rows = [*batch, *[batch[-1]] * (size - len(batch))]
            stacked = [np.stack(parts) for parts in zip(*rows)]
            results = list(map(np.asarray, weft.device_get(self._many(*stacked))))
            return [[y[i] for y in results] for i in range(len(batch))]


def _call(exported: Any, leaves: Sequence[Any]) -> list[Any]:
    args, kwargs = exported.in_tree.unflatten(leaves)
    return weft.tree.leaves(exported.call(*args, **kwargs))
