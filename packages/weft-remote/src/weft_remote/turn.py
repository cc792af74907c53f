"""Work that one thread does at a time, and that no other waits for."""

import threading


class Turn:
    """Who does the work. Ctrl-C can come between any two calls, also between taking a lock and the `try` that gives it
    back; so the one who takes a turn says beforehand who that is:

        token = object()
        try:
            if turn.take(token):
                ...
        finally:
            if turn.holder is token:
                turn.holder = None
    """

    def __init__(self) -> None:
        self.holder: object | None = None
        self._lock = threading.Lock()

    def take(self, token: object) -> bool:
        """Whether it is the turn of `token` now; False while it is another's."""
        with self._lock:
            if self.holder is None:
                self.holder = token
        return self.holder is token
