"""The report of a failing program."""

from __future__ import annotations

import contextlib
import signal
import threading
import traceback
from collections.abc import Iterator

from .check import Failure, check
from .shrink import shrink
from .targets import Target
from .tree import Program


LONGEST = 20.0  # seconds for one smaller program: some never end, for example a loop without its counter


class TooLong(BaseException):
    """Not an error of the program, which `check` would report."""


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Ends what Python runs in the block with TooLong; signals reach the main thread alone."""

    def end(number: int, frame: object) -> None:
        raise TooLong

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def fails_alike(program: Program, target: Target, kind: str) -> Failure | None:
    try:
        with at_most(LONGEST):
            check(program, target)
    except Failure as e:
        return e if e.kind == kind else None
    except TooLong:
        return None
    return None


def report(program: Program, target: Target, failure: Failure) -> str:
    """The smallest program that fails in the same way."""
    small = shrink(program, lambda p: fails_alike(p, target, failure.kind) is not None)
    return failure_of(small, target, fails_alike(small, target, failure.kind) or failure)


def failure_of(program: Program, target: Target, failure: Failure) -> str:
    lines = [
        f"# seed {program.seed} on {target.name}, form {program.form}, donated {program.donated}, x64 {program.x64}",
        *[f"# {a}" for a in program.args],
        program.source(),
        str(failure)[:3000],
    ]
    if failure.__cause__ is not None:
        lines += traceback.format_exception(failure.__cause__)[-6:]
    return "\n".join(lines)
