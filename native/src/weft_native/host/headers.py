"""What HTTP requests of clients say in their headers."""

from __future__ import annotations

from aiohttp import web


def bearer(request: web.BaseRequest) -> bytes | None:
    """The token of a request, if it has one: `Authorization: Bearer TOKEN`."""
    kind, _, text = request.headers.get("Authorization", "").partition(" ")
    return text.strip().encode("utf-8", "surrogateescape") if kind.lower() == "bearer" else None
