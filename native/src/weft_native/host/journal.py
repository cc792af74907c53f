"""What happens at a host: each event is counted, logged and put into the audit log in one place."""

from __future__ import annotations

import logging
import time
from typing import Any

from weft_remote import protocol as p
from weft_remote.errors import class_name

from .audit import Audit
from .control import Totals
from .grants import Grant
from .metrics import Metrics
from .records import Record

log = logging.getLogger("weft.host")
REFUSALS = 600  # in a minute that are written down; strangers decide how many there are


class Journal:
    """Keeps account of events."""

    def __init__(self, metrics: Metrics | None = None, audit: Audit | None = None):
        self.metrics = Metrics() if metrics is None else metrics
        self.audit = audit
        self.minute, self.refusals = 0, 0  # of the last refusal, and how many there were in it

    def note(self, event: str, **fields: Any) -> None:
        """Puts an entry into the audit log, if there is one."""
        if self.audit is not None:
            self.audit.write(event, **fields)

    def refused(self, address: str, cause: str, error: Exception, reason: str = "") -> None:
        """A client was not let in; the reason is for the operator, who knows more than the client is told."""
        self.metrics.refusals.labels(cause).inc()
        minute = int(time.monotonic() / 60)
        self.minute, self.refusals = minute, self.refusals + 1 if minute == self.minute else 1
        if self.refusals > REFUSALS:
            return
        extra = {"event": "refused", "address": address}
        why = f" ({cause}: {reason})" if reason else ""
        log.warning("%s refused: %s: %s%s", address, class_name(error), str(error), why, extra=extra)
        self.note("refused", address=address, cause=cause, message=str(error), reason=reason)
        if self.refusals == REFUSALS:
            log.warning("%d clients were refused in a minute; more of them are counted, but not logged", REFUSALS)
            self.note(
                "refused", cause="many", message="more refusals in this minute are counted, but not written down."
            )

    def waits(self, client: str, address: str, grant: Grant, session: str, place: int) -> None:
        """A client waits for a new session, or for one that rests."""
        extra = {"event": "client-waits", "client": client, "address": address, "token": grant.name}
        log.info("%r waits at place %d", client, place, extra=extra)
        self.note("client-waits", **_waiting(client, address, grant, session), place=place)

    def waited(self, client: str, address: str, grant: Grant, session: str, end: str, seconds: float) -> None:
        """It does no more: it was "served", has "left", or was "ended" or "refused" by the host."""
        self.metrics.waiting_seconds.labels(end).observe(seconds)
        if end != "served":  # else its session's entry has it
            about = _waiting(client, address, grant, session)
            self.note("client-waits-no-more", **about, reason=end, seconds=round(seconds, 3))

    def began(self, record: Record, process: int, waited: float = 0.0) -> None:
        self.metrics.begun.inc()
        extra = fields(record) | {"event": "session-begins"}
        log.info("session %s begins in process %d", record.name, process, extra=extra)
        self.note("session-begins", **named(record), waited=round(waited, 3) or None)

    def resumed(self, record: Record, address: str) -> None:
        """A client has come back to its session."""
        self.note("session-resumes", **named(record) | {"address": address})

    def ended(self, record: Record, end: p.End, closed: bool) -> None:
        """A session has ended, by its client if `closed`."""
        reason = "closed" if closed else end.error
        self.metrics.end(reason)
        extra = fields(record) | {"event": "session-ends"}
        log.info("session %s has ended: %s: %s", record.name, reason, end.message[:500], extra=extra)
        seconds = round(time.time() - record.began_at, 3)
        self.note("session-ends", **named(record), reason=reason[:100], message=end.message[:500], seconds=seconds)

    def acted(self, grant: Grant, address: str, act: str, record: Record | None = None) -> None:
        """An administrator does something, to a session or to the host."""
        name = repr(grant.name) if grant.id else "here"
        what = act if record is None else f"{act} {record.name}"
        extra = {"event": "administrator", "address": address} | ({} if record is None else fields(record))
        log.warning("administrator %s from %s %s", name, address, what, extra=extra)
        target = {} if record is None else {"session": record.id, "client": record.client}
        self.note("administrator", address=address, token=grant.id, token_name=grant.name, act=act, **target)

    def worked(self, record: Record, totals: Totals) -> None:
        """A worker's report of a session. Raises BackendError for what can't be."""
        self.metrics.add(record.totals, totals)
        record.totals = totals


def _waiting(client: str, address: str, grant: Grant, session: str) -> dict[str, str]:
    about = {"client": client, "address": address, "token": grant.id, "token_name": grant.name}
    return {**about, "session": session}


def fields(record: Record) -> dict[str, str]:
    """What an entry of the log says of a session beside its message."""
    return {"session": record.id, "client": record.client, "token": record.grant.name}


def named(record: Record) -> dict[str, str]:
    """What an entry of the audit log says of a session."""
    grant = record.grant
    return {
        "session": record.id,
        "client": record.client,
        "address": record.address,
        "token": grant.id,
        "token_name": grant.name,
    }
