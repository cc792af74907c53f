"""Tells systemd how the host is, if it has started it (`Type=notify`)."""

from __future__ import annotations

import logging
import os
import socket

log = logging.getLogger("weft.host")
VARIABLE = "NOTIFY_SOCKET"


class Manager:
    """The service manager. The workers' processes don't learn where it is."""

    def __init__(self) -> None:
        self.address = os.environ.pop(VARIABLE, "")

    def tell(self, state: str) -> None:
        """Such as "READY=1". Nobody is told if nobody has asked."""
        if not self.address:
            return
        place = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as end:
                end.connect(place)
                end.sendall(state.encode())
        except OSError as e:
            log.error("the service manager at %s can't be told %s: %s", self.address, state, e)
