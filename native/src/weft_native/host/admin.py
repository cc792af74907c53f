"""What administrators see and do, at a listener of their own.

A request brings its token in a header, which no page of another origin can make a browser send.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from aiohttp import web

from .access import ADMIN, METRICS, Denied, Gate, Grant
from .front import LOGIN_SECONDS, LOOPBACK, STOP_SECONDS, Front
from .headers import bearer
from .health import Health
from .metrics import CONTENT_TYPE
from .settings import is_loopback

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
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
    """

    def __init__(self, front: Front, gate: Gate, health: Health):
        self.front, self.gate, self.health = front, gate, health
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
        app.router.add_get("/metrics", self._for(METRICS, self._metrics))

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
                grant = self.gate.admit(bearer(request), address)
            except Denied as e:
                self.front.journal.refused(address, e.cause, e)
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

    async def _metrics(self, request: web.Request, grant: Grant) -> web.StreamResponse:
        return web.Response(body=self.front.journal.metrics.text(), headers={"Content-Type": CONTENT_TYPE})


def _failed(status: int, message: str) -> web.Response:
    return web.json_response({"error": message}, status=status)
