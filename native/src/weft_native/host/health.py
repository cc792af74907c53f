"""Whether a host serves, and whether it could take a session: for service managers and load balancers, without login.

Nothing here tells a stranger more than that.
"""

from __future__ import annotations

import asyncio
import time

from aiohttp import web
from weft.base.errors import BackendError

from .control import Ask
from .front import Front
from .workers import Peer

ANSWER_SECONDS = 5.0  # in which a worker is there, and its device answers
HELD_SECONDS = 1.0  # for which an answer holds, however many ask


class Health:
    """Answers `/healthz` and `/readyz`.

    Args:
        front: of the host.
        seconds: in which a worker must be there, and its device must answer.
    """

    def __init__(self, front: Front, seconds: float = ANSWER_SECONDS):
        self.front, self.seconds = front, seconds
        self.looking: asyncio.Task[str | None] | None = None
        self.looked_at = 0.0

    def add_to(self, app: web.Application) -> None:
        app.router.add_get("/healthz", self._health)
        app.router.add_get("/readyz", self._ready)

    async def _health(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"status": "ok"}, headers={"Cache-Control": "no-store"})

    async def _ready(self, request: web.Request) -> web.StreamResponse:
        why = self._full(request.query.get("for", "")) or await self.why_not()
        headers = {"Cache-Control": "no-store"}
        if why is None:
            return web.json_response({"ready": True}, headers=headers)
        return web.json_response({"ready": False, "why": why}, status=503, headers=headers)

    def _full(self, purpose: str) -> str | None:
        """Why a new session could not begin at once ("session"), or its client not even wait ("queue"); None if it
        could. Proxies ask who spread new sessions over several hosts.
        """
        room = self.front.room
        found = {"session": room.begins, "queue": room.takes}.get(purpose, True)
        return None if found else "the host has no room for another client now."

    async def why_not(self) -> str | None:
        """Why the host could take no session now; None if it could."""
        if self.front.draining:
            return "the host is about to stop."
        if self.front.pool.failure is not None:
            return "no process for a session can be started."
        if self.looking is None or self.looking.done() and time.monotonic() - self.looked_at > HELD_SECONDS:
            self.looking = asyncio.ensure_future(self._look())
        return await asyncio.shield(self.looking)

    async def _look(self) -> str | None:
        try:
            async with asyncio.timeout(self.seconds):
                peer = await self.front.pool.waiting()
        except TimeoutError:
            return "no process for a session is ready."
        try:
            async with asyncio.timeout(self.seconds):
                await _answer(peer)
            return None
        except (TimeoutError, BackendError):
            return "the device does not answer."
        finally:
            self.looked_at = time.monotonic()


async def _answer(peer: Peer) -> None:
    """Returns when the device of a worker has answered. Raises BackendError if the worker ends."""
    if peer.answer is None or peer.answer.done():
        peer.answer = asyncio.get_running_loop().create_future()
        if not peer.send(Ask()):
            peer.lost()
    await asyncio.shield(peer.answer)
