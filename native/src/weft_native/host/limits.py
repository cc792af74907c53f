"""Limits on the resources of a client. Each is checked before the resource is taken."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

MIB, GIB = 1 << 20, 1 << 30


def _limit(default: float, help: str, least: float = 1) -> Any:  # a field acts as the number in it
    return field(default=default, metadata={"help": help, "least": least})


@dataclass(frozen=True)
class Limits:
    """Default limits of a session."""

    frame_bytes: int = _limit(4 * MIB, "bytes of one message")
    session_bytes: int = _limit(
        4 * GIB,
        "bytes of arrays and programs that a session holds, and of the intermediate results of its computations",
    )
    handles: int = _limit(200_000, "arrays and compiled programs that a session holds")
    program_bytes: int = _limit(16 * MIB, "bytes of one serialized program")
    equations: int = _limit(100_000, "equations of one program, those of a called function counted for each call")
    programs: int = _limit(2_000, "programs that a session sends")
    seconds: float = _limit(300.0, "seconds that one compilation or computation may take", 0.1)
    cpu_seconds: float = _limit(
        0.0, "seconds of processor time that a session with a process of its own takes in all; 0 for no limit", 0
    )
    answer: float = _limit(60.0, "seconds for which a program waits for what a callback of its client returns", 0.1)
    replies: int = _limit(10_000, "replies that wait for a client to take them")
    grace: float = _limit(60.0, "seconds for which a session outlives its connection", 0)
    unattended: float = _limit(1.0, "seconds for which a session goes on computing without its connection", 0)
    job_seconds: float = _limit(
        86_400.0,
        "seconds for which a session at most outlives its connection if its client asks for that; with `jobs`",
        0,
    )
    sessions: int = _limit(32, "sessions at one time, of all clients together")
    queue: int = _limit(
        100, "clients that wait for a session while there are as many as there may be; 0 refuses them at once", 0
    )
    compile_bytes: int = _limit(
        GIB, "bytes that the process of a session may take beside what it holds, for compiling and for copies"
    )
    total_bytes: int = _limit(
        8 * GIB, "bytes of arrays, programs, computations under way and unread replies, of all sessions together"
    )


MOST_DEVICES = 4096  # of one program
QUEUE_BYTES = 32 * MIB  # received and not yet performed; at this number, the client's socket is no longer read
QUEUE_MESSAGES = 20_000
WINDOW = 8 * MIB  # bytes of a download under way without a credit
CHAIN = 4  # computations that give their results to the next one before they are there
SHORT_BYTES = 64 << 10  # of an array that is put or read in no time
RUNNING = 64  # computations that a session may have under way
INCOMPLETE = 1024  # incomplete uploads of a session
PROGRAM_WEIGHT = 64  # bytes for each byte of a serialized program once it is read and compiled, approximately
