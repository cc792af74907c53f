"""TLS at the host itself. The front has the key, so it carries the bytes between a client and the client's worker."""

from __future__ import annotations

import asyncio
import pathlib
import socket
import ssl

from weft.base.annotations import override
from weft.base.errors import BackendError


def context(certificate: str | pathlib.Path, key: str | pathlib.Path | None) -> ssl.SSLContext:
    """What a server speaks with these files. Raises BackendError if they are not a certificate and its key."""
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        made.load_cert_chain(certificate, key)
    except (OSError, ValueError) as e:
        raise BackendError(
            f"{certificate} and {key} are not a certificate and its key: {e}. Both are files in PEM; the certificate"
            " comes first in its file, then those that signed it."
        ) from None
    return made


class _Side(asyncio.Protocol):
    """One of two connections: what comes here goes out there."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.other: _Side | None = None
        self.ended = asyncio.get_running_loop().create_future()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    @override
    def data_received(self, data: bytes) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.write(data)

    @override
    def pause_writing(self) -> None:  # the other side brings more than goes out here
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    @override
    def resume_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()
        if not self.ended.done():
            self.ended.set_result(None)


class Carrier:
    """Carries the bytes of a client's connection, which nobody reads at the moment. The worker has `descriptor`."""

    def __init__(self, client: asyncio.Transport):
        self.client = client
        self.mine, worker = socket.socketpair()
        self.mine.setblocking(False)
        self.descriptor = worker.detach()

    async def carry(self) -> None:
        """Until one of both has ended."""
        outer, inner = _Side(), _Side()
        outer.other, inner.other = inner, outer
        outer.connection_made(self.client)
        await asyncio.get_running_loop().connect_accepted_socket(lambda: inner, self.mine)
        self.client.set_protocol(outer)
        self.client.resume_reading()
        await asyncio.wait([outer.ended, inner.ended])  # each closes the other
