"""What happens at a host: each event is counted and logged in one place."""

from __future__ import annotations

import logging

from weft_remote.errors import class_name

from .access import Grant
from .control import Totals
from .metrics import Metrics
from .records import Record

log = logging.getLogger("weft.host")


class Journal:
    """Keeps account of events."""

    def __init__(self, metrics: Metrics | None = None):
        self.metrics = Metrics() if metrics is None else metrics

    def refused(self, address: str, cause: str, error: Exception) -> None:
        """A client was not let in."""
        log.warning("%s refused: %s: %s", address, class_name(error), str(error))
        self.metrics.refusals.labels(cause).inc()

    def began(self, record: Record) -> None:
        log.info("session %s begins in process %d", record.name, record.peer.pid)
        self.metrics.begun.inc()

    def ended(self, record: Record, reason: str) -> None:
        self.metrics.end(reason)

    def acted(self, grant: Grant, address: str, what: str) -> None:
        """An administrator has done something."""
        log.warning("administrator %s from %s %s", repr(grant.name) if grant.id else "here", address, what)

    def worked(self, record: Record, totals: Totals) -> None:
        """A worker's report of a session. Raises BackendError for what can't be."""
        self.metrics.add(record.totals, totals)
        record.totals = totals
