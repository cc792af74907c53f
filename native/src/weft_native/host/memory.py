"""How many bytes are in use, by a session and by all together, each against its limit.

Each object that takes bytes holds a `Charge`. The bytes count until the object is gone, however that happens: freed,
failed, or with its session.
"""

from __future__ import annotations

import threading
from collections import deque

from weft_remote.errors import LimitError


class Tally:
    """A count of bytes up to a limit, for threads that share it."""

    def __init__(self, limit: int, exceeded: str):
        self.limit, self.exceeded = limit, exceeded  # an error message about {what}, {size}, {used} and {limit}
        self.lock = threading.Lock()
        self.count = 0
        self.returned: deque[int] = deque()

    @property
    def used(self) -> int:
        with self.lock:
            return self._up_to_date()

    def take(self, size: int, what: str) -> None:
        """LimitError, and nothing taken, unless so many bytes more may be used."""
        if not size:
            return
        with self.lock:
            used = self._up_to_date()
            if used + size > self.limit:
                raise LimitError(self.exceeded.format(what=what, size=size, used=used, limit=self.limit))
            self.count += size

    def give(self, size: int) -> None:
        """Takes no lock: garbage collection calls it anywhere."""
        if size:
            self.returned.append(size)

    def _up_to_date(self) -> int:
        while self.returned:
            self.count -= self.returned.popleft()
        return self.count


def of_host(limit: int) -> Tally:
    """The count of all sessions together."""
    return Tally(
        limit,
        "{what} takes {size} bytes more; all sessions of this host together have {used} of the {limit} that they may"
        " use. Delete arrays that are no longer needed, or try again when other sessions have done so.",
    )


class Charge:
    """Bytes of a session, some or all of which are in use; given back when it goes."""

    __slots__ = ("session", "host", "what", "size", "present")

    def __init__(self, session: Tally, host: Tally, size: int, what: str, present: int | None = None):
        self.size = self.present = 0  # should one of these raise
        self.session, self.host, self.what = session, host, what
        session.take(size, what)
        self.size = size
        self.grow(size if present is None else present)

    def grow(self, size: int) -> None:
        """Adds bytes that are present: the host counts present bytes, the session counts announced ones."""
        self.host.take(size, self.what)
        self.present += size

    def release(self) -> None:
        """Gives all back before it goes."""
        self.session.give(self.size)
        self.host.give(self.present)
        self.size = self.present = 0

    def __del__(self) -> None:
        self.release()
