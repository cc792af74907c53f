"""What the front knows of a session."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from weft_remote import protocol as p

from .access import Grant
from .control import Totals
from .workers import Peer


@dataclass
class Record:
    """A session, or what is remembered of one."""

    id: str
    secret: bytes
    peer: Peer
    name: str  # in the log: its number, what its client calls itself, and whose token it has
    client: str
    address: str
    grant: Grant
    totals: Totals
    end: p.End | None = None
    ended_at: float = 0.0
    moves: bool = False  # to another worker
    began_at: float = field(default_factory=time.time)
    told: Exception | None = None  # why it must end
    told_at: float = 0.0
