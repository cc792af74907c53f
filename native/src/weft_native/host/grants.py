"""What tokens are for, and why one lets nobody in."""

from __future__ import annotations

import re
import time
from typing import NamedTuple

from weft_remote.errors import AuthenticationError

SESSIONS, PROGRAMS, ADMIN, METRICS = "sessions", "programs", "admin", "metrics"
SCOPE = re.compile(rf"{SESSIONS}|{ADMIN}|{METRICS}|{PROGRAMS}(:[A-Za-z0-9][A-Za-z0-9_.-]{{0,63}})?")
NAME = re.compile(r"[^\x00-\x1f\x7f]{1,60}")
NICEST = 19  # of processes
MOST = 1_000_000  # requests in a second, and connections in a minute: a moment is kept for each


class Denied(AuthenticationError):
    """A token does not let its client in.

    Args:
        cause: str, as metrics count it.
        message: str, for the client.
        reason: str, for the operator alone.
    """

    def __init__(self, cause: str, message: str, reason: str = ""):
        super().__init__(message)
        self.cause, self.reason = cause, reason


SIGNED = "jwt-"  # begins the ids of those who come with signed tokens


class Grant(NamedTuple):
    """What a token is for."""

    id: str
    name: str  # shows in logs
    scopes: tuple[str, ...] = (SESSIONS, PROGRAMS)
    created: float = 0.0
    expires: float | None = None  # seconds since 1970
    sessions: int | None = None  # at one time; None leaves it to the host's limits
    nice: int = 0  # of the processes of its sessions: from 1 to 19 they yield to others
    rate: int | None = None  # requests for programs in a second; None leaves it to the host's settings
    connections: int | None = None  # in a minute; so too

    def may(self, scope: str) -> bool:
        """Whether it is for a scope: "sessions", or "programs:NAME"."""
        return scope in self.scopes or scope.partition(":")[0] in self.scopes

    @property
    def signed(self) -> bool:
        """Whether an issuer vouches for it; the other tokens are in the file."""
        return self.id.startswith(SIGNED)

    @property
    def whose(self) -> str:
        """What tells the operator which token it is."""
        return f"token {self.id} {self.name}" if self.id else "the token of the command line"

    @property
    def expired(self) -> bool:
        return self.expires is not None and time.time() >= self.expires


def check(scopes: tuple[str, ...], sessions: int | None, nice: int, rate: int | None, connections: int | None) -> None:
    """Raises ValueError for what no token can be for."""
    wrong = [s for s in scopes if not SCOPE.fullmatch(s)]
    if wrong:
        known = f"{SESSIONS}, {PROGRAMS}, {PROGRAMS}:NAME, {ADMIN} or {METRICS}"
        raise ValueError(f"a scope is {known}; got {', '.join(wrong)}.")
    if sessions is not None and sessions < 1:
        raise ValueError("a token is for 1 session or more.")
    if not all(n is None or 1 <= n <= MOST for n in (rate, connections)):
        raise ValueError(f"a token is for 1 to {MOST} requests in a second, and connections in a minute.")
    if not 0 <= nice <= NICEST:
        raise ValueError(f"how far the sessions of a token yield to others is a number from 0 to {NICEST}.")


INNER = Grant("", "this host", (SESSIONS,))
