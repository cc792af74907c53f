"""What a worker reports of a session."""

from __future__ import annotations

from weft_remote import protocol as p

from .control import Totals
from .session import HostSession

_WORDS: dict[type[p.Message], str] = {
    p.Put: "receives an array",
    p.Part: "receives an array",
    p.Program: "receives a program",
    p.ProgramPart: "receives a program",
    p.Inspect: "describes a program",
}


def totals(session: HostSession) -> Totals:
    c, performer = session.counts, session.performer
    return Totals(
        session.id,
        c.calls,
        c.compilations,
        int(1e6 * c.compile_seconds),
        c.received,
        c.sent,
        performer.store.array_bytes.used + performer.store.program_bytes.used,
        max(0, performer.queued - performer.done),
        _doing(session)[:80],
    )


def _doing(session: HostSession) -> str:
    current = session.performer.current
    if isinstance(current, (p.Compile, p.CompileSpread)):
        return f"compiles {current.name}"
    if session.performer.computations.running or isinstance(current, p.Execution):
        return f"runs {session.counts.program}"
    return "" if current is None else _WORDS.get(type(current), "works")
