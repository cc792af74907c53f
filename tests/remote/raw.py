"""A client that only sends messages, to test what a hostile or broken one can do."""

from __future__ import annotations

import hashlib
import itertools

import numpy as np
import websockets
from hosts import TOKEN
from example_programs import written
from websockets.sync.client import connect
from weft.base.avals import shaped
from weft.serialization.programs import serialize
from weft_remote import protocol as p

F32 = shaped((3,), "float32")
ONES = np.ones(3, np.float32).tobytes()


class Raw:
    """One connection. `send` numbers operations; `receive` gives messages one by one."""

    def __init__(
        self, url: str, token: str = TOKEN, session: p.Welcome | None = None, offers: list[str] | None = None, **options
    ):
        """A new session, or the next connection of the one with this welcome; `offers` in place of the right login."""
        if int(websockets.__version__.split(".")[0]) >= 17:  # from then on a context manager by default
            options["legacy"] = True
        address, secret = (
            (f"{url}/session", b"") if session is None else (f"{url}/session/{session.id}", session.secret)
        )
        protocols = p.offered(token, secret) if offers is None else offers
        self.url = url
        options.setdefault("compression", None)
        self.socket = connect(address, max_size=None, subprotocols=protocols, **options)
        self.messages: list = []
        self.ops = itertools.count(1)
        self.welcome = self.receive()

    def frame(self, data) -> None:
        self.socket.send(data)

    def send(self, kind, *fields) -> int:
        op = next(self.ops)
        self.frame(p.encode(kind(op, *fields)))
        return op

    def receive(self, timeout: float = 20):
        """The next message; None once the connection is closed."""
        while not self.messages:
            try:
                self.messages = list(p.decode(self.socket.recv(timeout)))
            except Exception as e:
                if type(e).__name__.startswith("ConnectionClosed"):
                    return None
                raise
        return self.messages.pop(0)

    def until(self, kind, timeout: float = 20):
        """The next message of a class, those between left out."""
        while (message := self.receive(timeout)) is not None:
            if isinstance(message, kind):
                return message
        raise AssertionError(f"the connection closed before {kind.__name__} came")

    def end(self) -> p.End:
        """Why the host ends the session, or begins none; checks that it closes the connection then."""
        end = self.welcome if isinstance(self.welcome, p.End) else self.until(p.End)
        assert self.receive() is None
        return end

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


def program(name: str = "arithmetic"):
    """(bytes, hash, number of arguments, number of results) of a program."""
    jaxpr = written(name)[0]
    data = serialize(jaxpr)
    return data, hashlib.sha256(data).digest(), len(jaxpr.invars), len(jaxpr.outvars)
