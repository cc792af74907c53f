"""What people read of a failing program."""

from __future__ import annotations

import traceback

from .check import Failure, check
from .shrink import shrink
from .targets import Target
from .tree import Program


def fails_alike(program: Program, target: Target, kind: str) -> Failure | None:
    try:
        check(program, target)
    except Failure as e:
        return e if e.kind == kind else None
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
