"""Describes the last run: its compiled programs, a timeline, the devices. The page's inspector asks.

`weft_record` takes notes while a program runs. All texts are made of them when they are asked for, between runs.

A question is a topic and JSON; so is the answer. What can't be shown is {"problem": a sentence}.

- programs: {} -> {"programs": [{"id", "name", "kind", "backend", "file", "line", "signature", "calls", "all",
  "seconds", "phases": {phase: seconds}}]}; "all": whether each call was counted and timed
- program: {"id"} -> the same of one, with "memory": {name: bytes}, "why": [{"phase", "where", "why"}], "stages"
- text: {"id", "stage"} -> {"text"}; of the jaxpr also {"lines": [[file, line] or null]}, of the memory plan {"slots"}
- kernels: {"id"} -> {"kernels": [[name, seconds, calls]], "arguments": a sentence}: runs the program again
- timeline: {} -> {"events": [[lane, name, start, duration, detail]], "length", "dropped", "untimed"}; times in
  milliseconds; "untimed": how many programs have calls that were not timed
- devices: {} -> {"devices": [{"name", "facts": [[name, value]]}]}
"""

from __future__ import annotations

import json
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
    from weft.base.devices import Device

    closed, where, device = record.program.closed, record.program.where, record.program.device
    types = [", ".join(a.str_short(short_dtypes=True) for a in avals) for avals in (closed.in_avals, closed.out_avals)]
    return {
        "id": record.number,
        "name": record.program.name,
        "kind": "operation" if record.is_operation else "function",
        "backend": device.platform if isinstance(device, Device) else "several devices",
        "file": where.file,
        "line": where.line,
        "signature": f"({types[0]}) → {types[1] or 'nothing'}",
        "calls": record.calls,
        "all": record.is_all,
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
    if stage == "plan":  # only of backends in STAGES, whose executables have it
        slots = executable.memory_plan()
        return {"text": _cut("\n".join(map(str, slots))), "slots": [slot._asdict() for slot in slots]}
    return {"text": _cut(executable.as_text(stage))}


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
    """Runs a program again with a clock around each kernel, on the arguments of its last call if they are alive."""
    import weft
    import weft.profiler
    from weft.core.jaxpr import jaxpr_as_fun

    record = _find(asked)
    closed, device = record.program.closed, record.program.device
    with weft.default_device(device):
        args, used = _arguments(record)
        rows = weft.profiler.kernel_times(jaxpr_as_fun(closed), *args)
    return {"kernels": [list(row) for row in rows], "arguments": used}


def _arguments(record: Record) -> tuple[list[Any], str]:
    """Arguments for a program, and a sentence on where they come from: those of its last timed call that are still
    alive, and ones for the others.
    """
    avals = record.program.closed.in_avals
    last = [ref() for ref in record.last]
    given = last[len(last) - len(avals) :] if len(last) >= len(avals) else [None] * len(avals)
    args = [_like(aval, x) for aval, x in zip(avals, given)]
    alive = sum(arg is not None for arg in args)
    if alive == len(args):
        used = "Its arguments were those of the last timed call."
    elif alive:
        used = (
            f"{alive} of its {len(args)} arguments were those of the last timed call. The others are no longer there:"
            " ones stood for them."
        )
    else:
        used = "The arguments of its calls are no longer there: ones stood for them."
    return [arg if arg is not None else _ones(aval) for aval, arg in zip(avals, args)], used


def _like(aval: Any, x: Any) -> Any:
    """An array that a program was called with as an argument of this type; None if it is gone, or another."""
    from weft.base.avals import physical
    from weft.base.dtypes import is_key
    from weft.runtime.array import KeyArray

    if x is None or x.is_deleted():
        return None
    expected = physical(aval)
    if (x.shape, x.dtype) != (expected.shape, expected.dtype):
        return None
    return KeyArray(aval, x) if is_key(aval.dtype) else x


def _ones(aval: Any) -> Any:
    import weft.numpy as jnp
    from weft.base.avals import physical
    from weft.base.dtypes import is_key
    from weft.runtime.array import KeyArray

    expected = physical(aval)
    ones = jnp.ones(expected.shape, expected.dtype)
    return KeyArray(aval, ones) if is_key(aval.dtype) else ones


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
    untimed = sum(not record.is_all for record in notes.known)
    length = max(0.0, 1e3 * (notes.ended - notes.began))
    return {"events": events[-MOST_EVENTS:], "length": length, "dropped": dropped, "untimed": untimed}


def devices(asked: dict[str, Any]) -> dict[str, Any]:
    """The devices of the page's backends that were used. A backend that has lost its devices says why."""
    from weft.base.errors import BackendError
    from weft.runtime.device import known_backends

    found = []
    for backend in known_backends():
        try:
            found += [_device(device) for device in backend.devices()]
        except BackendError as e:
            found.append({"name": backend.name, "facts": [["No devices", str(e).partition("\n")[0]]]})
    return {"devices": found}


def _device(device: Any) -> dict[str, Any]:
    import weft
    from weft.runtime.device import backend_of

    alive = [x for x in weft.live_arrays(device.platform) if x.device == device]
    facts = [
        ["Kind", device.device_kind],
        ["Arrays alive", f"{len(alive):,} of {sum(x.nbytes for x in alive):,} bytes"],
    ]
    facts += [list(fact) for fact in backend_of(device).capabilities.facts(device)]
    return {"name": device.platform, "facts": facts}
