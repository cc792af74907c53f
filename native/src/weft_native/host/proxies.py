"""Proxies between clients and a host: whose word on a client's address the host takes."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Iterable

from aiohttp import web

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def _address(text: str | None) -> Address | None:
    """An address as it is compared: one of IPv4 in a socket for IPv6 is one of IPv4."""
    try:
        found = ipaddress.ip_address((text or "").strip())
    except ValueError:
        return None
    return found.ipv4_mapped or found if isinstance(found, ipaddress.IPv6Address) else found


class Proxies:
    """Proxies that say in `X-Forwarded-For` for whom they ask.

    Args:
        trusted: their addresses, or networks such as 10.0.0.0/8. Raises ValueError if one is neither.
    """

    def __init__(self, trusted: Iterable[str] = ()):
        self.networks = [ipaddress.ip_network(text) for text in trusted]

    def trusts(self, address: Address) -> bool:
        return any(address in network for network in self.networks)

    def client(self, remote: str, forwarded: Iterable[str]) -> str:
        """Where a request comes from. Each proxy adds the address of who asked it, so it is the last one that is no
        trusted proxy's; what stands before that may be anybody's word.

        Args:
            remote: the address of the other end of the connection.
            forwarded: the lines of `X-Forwarded-For`.
        """
        asked = _address(remote)
        if asked is None:
            return remote
        for text in reversed(",".join(forwarded).split(",")):
            if not self.trusts(asked):
                break
            told = _address(text)
            if told is None:
                break
            asked = told
        return str(asked)

    def add_to(self, app: web.Application) -> None:
        """Gives the handlers of an application requests whose `remote` is the client's address."""

        @web.middleware
        async def seen(request: web.Request, handler: Handler) -> web.StreamResponse:
            remote = request.remote or ""
            found = self.client(remote, request.headers.getall("X-Forwarded-For", []))
            return await handler(request if found == remote else request.clone(remote=found))

        app.middlewares.append(seen)
