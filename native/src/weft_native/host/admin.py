"""What administrators see and do, at a listener of their own.

A request brings its token in a header, which no page of another origin can make a browser send.
"""

from __future__ import annotations

import base64
import hashlib
import pathlib
import re
import ssl
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from weft.serialization.binary import printable
from weft.version import __version__
from weft_remote.errors import ConnectionLost

from .access import Gate
from .arrivals import STOP_SECONDS
from .drain import Drain
from .front import LOGIN_SECONDS, LOOPBACK, Front
from .grants import ADMIN, METRICS, Denied, Grant
from .headers import bearer
from .health import Health
from .inference.routes import Inference
from .metrics import CONTENT_TYPE
from .records import Record
from .room import Waiter
from .settings import is_loopback

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
SHOWN = 100  # clients that wait
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Server": "weft-host",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


class Admin:
    """The administrators' listener of a host.

    Args:
        front: of the host.
        gate: who may come.
        health: of the host.
        drain: its end.
        inference: the programs that it publishes, if it does.
    """

    def __init__(self, front: Front, gate: Gate, health: Health, drain: Drain, inference: Inference | None = None):
        self.front, self.gate, self.health, self.drain, self.inference = front, gate, health, drain, inference
        self.began_at = time.time()
        self.here = True  # reached from this machine alone
        self.runner: web.AppRunner | None = None

    async def start(self, address: str, port: int, tls: ssl.SSLContext | None = None) -> str:
        """Serves; the address of the page."""
        self.here = is_loopback(address)
        tls = None if self.here else tls  # a certificate is for the name by which others know the host
        app = web.Application(middlewares=[self._guarded])
        self.add_to(app)
        self.runner = web.AppRunner(
            app, access_log=None, handle_signals=False, shutdown_timeout=STOP_SECONDS, keepalive_timeout=LOGIN_SECONDS
        )
        await self.runner.setup()
        await web.TCPSite(self.runner, address, port, ssl_context=tls).start()
        host, number = self.runner.addresses[0][:2]
        return f"{'http' if tls is None else 'https'}://{f'[{host}]' if ':' in host else host}:{number}/"

    def add_to(self, app: web.Application) -> None:
        self.health.add_to(app)
        app.router.add_get("/", self._page)
        app.router.add_get("/metrics", self._for(METRICS, self._metrics))
        app.router.add_get("/api/host", self._for(ADMIN, self._host))
        app.router.add_get("/api/programs", self._for(ADMIN, self._programs))
        app.router.add_get("/api/sessions", self._for(ADMIN, self._sessions))
        app.router.add_post("/api/drain", self._for(ADMIN, self._drain))
        app.router.add_delete("/api/sessions/{id}", self._for(ADMIN, self._end))

    async def stop(self) -> None:
        if self.runner is not None:
            await self.runner.cleanup()

    # who may come -----------------------------------------------------------------------------------------------------

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuses what a browser sends for pages of others, and what is meant for another name."""
        try:
            if not self._is_own(request):
                response: web.StreamResponse = _failed(403, "pages of another origin may not ask.")
            else:
                response = await handler(request)
        except web.HTTPException as e:
            response = _failed(e.status, e.reason)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    def _is_own(self, request: web.Request) -> bool:
        try:
            host = urlsplit(f"//{request.host}").hostname
            origin = request.headers.get("Origin")
            same = origin is None or urlsplit(origin).netloc == request.host
        except ValueError:
            return False
        # A page whose name leads to loopback, which its owner can arrange, is of another origin all the same.
        named = not self.here or host in LOOPBACK
        return same and named and request.headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin")

    def _for(self, scope: str, handle: Callable[[web.Request, Grant], Awaitable[web.StreamResponse]]) -> Handler:
        """A handler for those whose token has a scope; that of administrators has all here."""

        async def answer(request: web.Request) -> web.StreamResponse:
            address = request.remote or ""
            try:
                grant = await self.gate.enter(bearer(request), address)
            except Denied as e:
                self.front.journal.refused(address, e.cause, e, e.reason)
                response = _failed(401, f"{e} It is sent as `Authorization: Bearer TOKEN`.")
                response.headers["WWW-Authenticate"] = "Bearer"
                return response
            # The token that the host was started with has no scopes of this kind: it is for one's own machine.
            if not (grant.may(scope) or grant.may(ADMIN) or not grant.id and self.here):
                error = Denied("scope", f"this token has not the scope {scope!r}.")
                self.front.journal.refused(address, error.cause, error)
                return _failed(403, str(error))
            return await handle(request, grant)

        return answer

    # what they get ----------------------------------------------------------------------------------------------------

    async def _page(self, request: web.Request) -> web.StreamResponse:
        """The page, which has nothing in it that a stranger may not see."""
        return web.Response(text=PAGE, content_type="text/html", headers={"Content-Security-Policy": POLICY})

    async def _host(self, request: web.Request, grant: Grant) -> web.StreamResponse:
        devices, limits = self.front.pool.devices, self.front.limits
        return web.json_response(
            {
                "version": __version__,
                "platform": devices[0],
                "devices": len(devices) // 2,
                "seconds": time.time() - self.began_at,
                "draining": self.front.draining,
                "sessions_allowed": limits.sessions,
                "waiting": len(self.front.room.waiters),
                "waiting_allowed": limits.queue,
                "memory_allowed": limits.total_bytes,
            }
        )

    async def _programs(self, request: web.Request, grant: Grant) -> web.StreamResponse:
        return web.json_response({"programs": [] if self.inference is None else self.inference.counts()})

    async def _sessions(self, request: web.Request, grant: Grant) -> web.StreamResponse:
        sessions = [_described(r) for r in self.front.records.values() if r.end is None]
        first = self.front.room.waiters[:SHOWN]
        return web.json_response({"sessions": sessions, "waiting": [_waiting(w, k) for k, w in enumerate(first, 1)]})

    async def _drain(self, request: web.Request, grant: Grant) -> web.StreamResponse:
        self.front.journal.acted(grant, request.remote or "", "stops the host")
        self.drain.ask()
        return web.json_response({"draining": True, "seconds": self.drain.seconds}, status=202)

    async def _end(self, request: web.Request, grant: Grant) -> web.StreamResponse:
        record = self.front.records.get(request.match_info["id"])
        if record is None or record.end is not None:
            return _failed(404, "there is no such session; it may have ended just now.")
        self.front.journal.acted(grant, request.remote or "", "ends session", record)
        self.front.finish(record, ConnectionLost("the host's operator has ended the session; its arrays are gone."))
        return web.json_response({"ending": record.id}, status=202)

    async def _metrics(self, request: web.Request, grant: Grant) -> web.StreamResponse:
        return web.Response(body=self.front.journal.metrics.text(), headers={"Content-Type": CONTENT_TYPE})


def _described(record: Record) -> dict[str, Any]:
    totals = record.totals
    return {
        "id": record.id,
        "name": printable(record.client),
        "token": record.grant.name,
        "address": record.address,
        "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.began_at)),
        "seconds": time.time() - record.began_at,
        "process": None if record.peer is None else record.peer.pid,
        "memory": totals.held,
        "queued": totals.queued,
        "calls": totals.calls,
        "compilations": totals.compilations,
        "received": totals.received,
        "sent": totals.sent,
        "doing": "rests on disk" if record.peer is None else printable(totals.doing[:80]),
        "ending": record.told is not None,
    }


def _waiting(waiter: Waiter, place: int) -> dict[str, Any]:
    return {
        "place": place,
        "name": printable(waiter.client),
        "token": waiter.grant.name,
        "address": waiter.address,
        "seconds": waiter.seconds,
        "session": waiter.session or None,
    }


def _hashes(tag: str) -> str:
    """What a policy says of the only element of this kind in the page."""
    (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", PAGE, re.S)
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


PAGE = pathlib.Path(__file__).with_name("admin.html").read_text(encoding="utf-8")
POLICY = (
    f"default-src 'none'; script-src {_hashes('script')}; style-src {_hashes('style')}; img-src data:; connect-src"
    " 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script';"
    " trusted-types 'none'"
)


def _failed(status: int, message: str) -> web.Response:
    return web.json_response({"error": message}, status=status)
