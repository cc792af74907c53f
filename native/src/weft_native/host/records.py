"""What the front knows of a session."""

from __future__ import annotations

import asyncio
import hmac
import time
from dataclasses import dataclass, field

from weft_remote import protocol as p

from .control import Totals
from .grants import Grant
from .jobs import Job
from .workers import Peer


@dataclass
class Record:
    """A session, or what is remembered of one."""

    id: str
    secret: bytes  # b"" of one that an earlier host has put on disk, until its client is back
    peer: Peer | None  # None while it rests on disk
    name: str  # in the log: its number, what its client calls itself, and whose token it has
    client: str
    address: str
    grant: Grant
    totals: Totals
    job: Job | None = None  # what is on disk of it
    end: p.End | None = None
    ended_at: float = 0.0
    began_at: float = field(default_factory=time.time)
    told: Exception | None = None  # why it must end
    told_at: float = 0.0
    processor: float = 0.0  # seconds of processor time, in all of its processes
    moving: asyncio.Lock = field(default_factory=asyncio.Lock)  # held while it goes from one place to another

    def is_of(self, secret: bytes) -> bool:
        """Whether a client knows the session's secret."""
        if self.secret:
            return hmac.compare_digest(self.secret, secret)
        return self.job is not None and self.job.is_of(secret)
