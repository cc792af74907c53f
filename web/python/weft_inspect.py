"""Describes the last run: its compiled programs, a timeline, the devices. The page's inspector asks.

`weft_record` takes notes while a program runs. All texts are made of them when they are asked for, between runs.

A question is a topic and JSON; so is the answer. What can't be shown is {"problem": a sentence}.

- programs: {} -> {"programs": [{"id", "name", "kind", "backend", "file", "line", "signature", "calls", "seconds",
  "phases": {phase: seconds}}]}
- program: {"id"} -> the same of one, with "memory": {name: bytes}, "why": [{"phase", "where", "why"}], "stages"
- text: {"id", "stage"} -> {"text"}; of the jaxpr also {"lines": [[file, line] or null]}, of the memory plan {"slots"}
- kernels: {"id"} -> {"kernels": [[name, seconds, calls]]}: runs the program again, on ones
- timeline: {} -> {"events": [[lane, name, start, duration, detail]], "length", "dropped"}; times in milliseconds
- devices: {} -> {"devices": [{"name", "facts": [[name, value]]}]}
"""

from __future__ import annotations

import json
import time
from typing import Any

from weft_record import MOST_EVENTS, Record, notes

LIMIT = 2_000_000  # characters of one text


def answer(topic: str, about: str) -> str:
    """The answer to a question; never raises."""
    topics = {
        "programs": programs,
        "program": program,
        "text": text,
        "kernels": kernels,
        "timeline": timeline,
        "devices": devices,
    }
    restore = notes.kept()
    try:
        return json.dumps(topics[topic](json.loads(about)))
    except Exception as e:
        first = str(e).strip().partition("\n")[0]
        return json.dumps({"problem": f"{type(e).__name__}: {first}" if first else type(e).__name__})
    finally:
        restore()


def _shown() -> list[Record]:
    """The programs that the last run compiled or called, functions before single operations."""
    mine = {id(record): record for record in notes.programs}
    mine.update((id(record), record) for record in notes.known if record.calls)
    return sorted(mine.values(), key=lambda record: (record.is_operation, record.number))


def _find(asked: dict[str, Any]) -> Record:
    for record in _shown():
        if record.number == asked["id"]:
            return record
    raise LookupError("this program is gone: the page has run another one since. Choose a program of the list")


def programs(asked: dict[str, Any]) -> dict[str, Any]:
    return {"programs": [summary(record) for record in _shown()]}


def summary(record: Record) -> dict[str, Any]:
    closed, where = record.program.closed, record.program.where
    types = [", ".join(a.str_short(short_dtypes=True) for a in avals) for avals in (closed.in_avals, closed.out_avals)]
    return {
        "id": record.number,
        "name": record.program.name,
        "kind": "operation" if record.is_operation else "function",
        "backend": getattr(record.program.device, "platform", "several devices"),
        "file": where.file,
        "line": where.line,
        "signature": f"({types[0]}) → {types[1] or 'nothing'}",
        "calls": record.calls,
        "seconds": record.seconds,
        "phases": record.phases,
    }


STAGES = {
    "wasm": ["jaxpr", "groups", "ir", "wat", "stablehlo", "plan"],
    "webgpu": ["jaxpr", "groups", "ir", "wgsl", "stablehlo", "plan"],
}


def program(asked: dict[str, Any]) -> dict[str, Any]:
    record = _find(asked)
    found = summary(record)
    try:
        found["memory"] = record.executable.memory_analysis()
    except Exception as e:
        found["memory"], found["problem"] = {}, str(e)
    found["why"] = record.why
    found["stages"] = STAGES.get(found["backend"], ["jaxpr", "stablehlo", "hlo"])
    return found


def text(asked: dict[str, Any]) -> dict[str, Any]:
    record, stage = _find(asked), asked["stage"]
    if stage == "jaxpr":
        return jaxpr_text(record)
    executable, backend = record.executable, summary(record)["backend"]
    if stage == "stablehlo" and backend in STAGES:
        return {
            "problem": "StableHLO is the form that XLA compiles, and this program was compiled by weft's own compiler,"
            f" for {backend}. Run the program on a host to see its StableHLO; the loop IR is the form that was"
            " compiled here."
        }
    found: dict[str, Any] = {"text": _cut(executable.as_text(stage))}
    if stage == "plan" and hasattr(executable, "memory_plan"):
        found["slots"] = [slot._asdict() for slot in executable.memory_plan()]
    return found


def _cut(text: str) -> str:
    if len(text) <= LIMIT:
        return text
    return f"{text[:LIMIT]}\n… and {len(text) - LIMIT:,} characters more"


def jaxpr_text(record: Record) -> dict[str, Any]:
    """The jaxpr, and for each of its lines the user's line that it comes from."""
    from weft.core.pretty import jaxpr_lines

    lines = jaxpr_lines(record.program.closed.jaxpr)
    places = []
    for _, eqn in lines:
        known = eqn is not None and eqn.source_info.code is not None
        places.append([eqn.source_info.file, eqn.source_info.line] if known and eqn is not None else None)
    return {"text": "\n".join(line for line, _ in lines), "lines": places}


def kernels(asked: dict[str, Any]) -> dict[str, Any]:
    """Runs a program again with a clock around each kernel; its arguments are ones."""
    import weft
    import weft.numpy as jnp
    import weft.profiler
    from weft.core.jaxpr import jaxpr_as_fun

    record = _find(asked)
    closed, device = record.program.closed, record.program.device
    function = jaxpr_as_fun(closed)
    with weft.default_device(device):
        args = [jnp.ones(a.shape, a.dtype) for a in closed.in_avals]
        rows = weft.profiler.kernel_times(function, *args)
    return {"kernels": [list(row) for row in rows]}


def timeline(asked: dict[str, Any]) -> dict[str, Any]:
    events = [
        [lane, name, round(1e3 * (start - notes.began), 4), round(1e3 * (end - start), 4), detail]
        for lane, name, start, end, detail in notes.spans
    ]
    total = sum(record.calls for record in notes.known)
    events += [
        [
            "run",
            record.program.name,
            round(1e3 * (start - notes.began), 4),
            round(1e3 * (end - start), 4),
            f"#{record.number}",
        ]
        for record, start, end in notes.calls
    ]
    events.sort(key=lambda event: event[2])
    dropped = (
        max(0, total - len(notes.calls)) + max(0, notes.noted - len(notes.spans)) + max(0, len(events) - MOST_EVENTS)
    )
    return {"events": events[-MOST_EVENTS:], "length": max(0.0, 1e3 * (notes.ended - notes.began)), "dropped": dropped}


def devices(asked: dict[str, Any]) -> dict[str, Any]:
    """The devices of the page's backends that were used."""
    from weft.runtime.device import known_backends

    return {"devices": [_device(device) for backend in known_backends() for device in backend.devices()]}


def _device(device: Any) -> dict[str, Any]:
    import weft

    facts: list[list[str]] = [["Kind", str(getattr(device, "device_kind", ""))]]
    alive = [x for x in weft.live_arrays(device.platform) if x.device == device]
    facts.append(["Arrays alive", f"{len(alive):,}, {sum(x.nbytes for x in alive):,} bytes"])
    if (stats := getattr(device, "memory_stats", None)) is not None:
        names = {"allocated": "Memory in use", "peak": "Peak of the run", "free": "Free for reuse"}
        facts += [[names.get(key, key), f"{value:,} bytes"] for key, value in (stats() or {}).items()]
    if (threads := getattr(device, "threads", None)) is not None:
        facts.append(["Threads", str(threads)])
    if (interruptible := getattr(device, "interruptible", None)) is not None:
        facts.append(["Programs can be stopped", "yes" if interruptible else "no: the page is not isolated"])
    limits = getattr(getattr(device.backend, "runtime", None), "limits", None)
    if limits is not None:
        facts += [[str(name), f"{value:,}"] for name, value in dict(limits).items()]
    if (session := getattr(device, "session", None)) is not None:
        facts += _host(session)
    return {"name": str(device.platform), "facts": facts}


def _host(session: Any) -> list[list[str]]:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        session.ping()
        times.append(time.perf_counter() - start)
    return [["Address", session.url], ["Latency", f"{1e3 * min(times):.2f} ms there and back"]]
