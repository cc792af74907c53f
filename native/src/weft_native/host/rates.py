"""How often a token may be used."""

from __future__ import annotations

import math
import time

import limits

from .grants import INNER, Grant


class Rates:
    """Counts what is done with each token. What a token says of itself comes before what the host says of all.

    Args:
        connections: in a minute, with one token; 0 does not limit them.
        requests: for programs in a second, with one token; 0 does not limit them.
    """

    def __init__(self, connections: int = 0, requests: int = 0):
        self.connections, self.requests = connections, requests
        self.windows = limits.strategies.MovingWindowRateLimiter(limits.storage.MemoryStorage())

    def connect(self, grant: Grant) -> int:
        """Counts a connection; 0, or in how many seconds there may be one."""
        most = self.connections if grant.connections is None else grant.connections
        return self._hit(limits.RateLimitItemPerMinute, most, "connections", grant)

    def request(self, grant: Grant) -> int:
        """Counts a request; 0, or in how many seconds there may be one."""
        most = self.requests if grant.rate is None else grant.rate
        return self._hit(limits.RateLimitItemPerSecond, most, "requests", grant)

    def _hit(self, kind: type[limits.RateLimitItem], most: int, what: str, grant: Grant) -> int:
        if not most or grant is INNER:
            return 0
        item = kind(most)
        if self.windows.hit(item, what, grant.id):
            return 0
        return max(1, math.ceil(self.windows.get_window_stats(item, what, grant.id).reset_time - time.time()))
