"""Sessions on several hosts that have joined each other, whose devices make one mesh."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import TYPE_CHECKING

from weft.base.annotations import override

from .session import Session

if TYPE_CHECKING:
    from weft.base.devices import Device


class Joined:
    """Sessions on hosts that have joined each other: made by `weft.remote.connect_all`, closed by `close()` or at the
    end of a `with` block. `sessions` has them in the order of the hosts.
    """

    def __init__(self) -> None:
        self.sessions: list[Session] = []
        self.order = threading.Lock()  # programs of two threads come to all hosts in one order
        self._found = 0  # devices of the sessions up to now

    def add(self, session: Session) -> None:
        """Adds the session of the next host. Raises ValueError for one that has not joined those before."""
        self.sessions.append(session)
        session.joined = self
        platforms = session.welcome.devices[::2]
        own = [i for i, platform in enumerate(platforms) if platform]
        there = len(self.sessions[0].welcome.devices[::2])
        if len(platforms) != there or own != list(range(self._found, self._found + len(own))):
            raise ValueError(
                f"{session.url} has the devices {own} of {len(platforms)}, and those before it end at {self._found} of"
                f" {there}. Name hosts that have joined each other, in the order of their --process."
            )
        self._found += len(own)

    def check_complete(self) -> None:
        """Raises ValueError if a host is missing."""
        if not self.sessions:
            raise ValueError("connect_all needs the addresses of hosts.")
        there = len(self.sessions[0].welcome.devices[::2])
        if self._found != there:
            raise ValueError(
                f"the hosts that have joined each other have {there} devices, and those at the given addresses have"
                f" {self._found}. Name all of them."
            )

    def check(self) -> None:
        """Raises the error of a session that is lost: the others would wait for its part of a computation."""
        for session in self.sessions:
            if session.failure is not None:
                raise session.failure.with_traceback(None)

    def devices(self) -> list[Device]:
        """The devices of all hosts."""
        return [d for s in self.sessions for d in s.devices()]

    def send_program(self, digest: bytes, data: bytes) -> None:
        """Sends a program to the hosts that do not have it."""
        for session in self.sessions:
            session.send_program(digest, data)

    def close(self) -> None:
        """Ends all sessions."""
        for session in self.sessions:
            session.close()

    def __enter__(self) -> Joined:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @override
    def __repr__(self) -> str:
        return f"Joined({[s.url for s in self.sessions]}, {len(self.devices())} devices)"
