"""The device that computes what is asked for by name: in a session of the host's own, with the limits of any other."""

from __future__ import annotations

import ipaddress
import threading
from typing import TYPE_CHECKING

import weft_remote

if TYPE_CHECKING:
    from weft.base.devices import Device


class OwnDevice:
    """Gives the first device of this host. The session is opened when it is first needed, and again after its end."""

    def __init__(self, token: str):
        self.token, self.url = token, ""
        self.lock = threading.Lock()
        self.session: weft_remote.Session | None = None

    def listen(self, address: str, port: int) -> None:
        """The host listens there."""
        found = ipaddress.ip_address(address)
        if found.is_unspecified:
            found = ipaddress.ip_address("127.0.0.1" if found.version == 4 else "::1")
        self.url = f"ws://{f'[{found}]' if found.version == 6 else found}:{port}"

    def __call__(self) -> Device:
        with self.lock:
            if self.session is None or self.session.failure is not None:
                self.session = weft_remote.connect(self.url, token=self.token, name="programs by name")
            return self.session.devices()[0]

    def close(self) -> None:
        with self.lock:
            if self.session is not None and self.session.failure is None:
                self.session.close()
