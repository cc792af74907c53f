"""Whether tests notice a change of the code: they fail with it, or do not end, and pass without it in the same minutes.
On a busy machine tests take long, and some fail, whatever the code is.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import re
from typing import Callable, Iterator, NamedTuple

import tree

FIRST = 60  # tests of the first, quick run
PASSED, NO_SUCH, NONE_RAN, TOO_LONG = (
    0,
    4,
    5,
    -9,
)  # pytest's exit codes, and what `tree` gives for a run that takes too long
LONGER, ROUNDS = 3, 4  # where tests without a change do not end in time either
ALONE = 600  # seconds for one test
FAILED = re.compile(r"(FAILED|ERROR) \S")  # in pytest's summary; captured log entries have more room after the word
Verdict = tuple[str, str | None]  # caught, survived or unreached; by which test
Run = Callable[[float], int]  # runs tests for so many seconds at most, and gives how they ended


class Test(NamedTuple):
    name: str
    seconds: float
    reached: int  # how many faults


class Change(NamedTuple):
    """Other contents of files of a copy."""

    copy: pathlib.Path
    contents: dict[str, bytes]

    @contextlib.contextmanager
    def made(self) -> Iterator[None]:
        originals = {file: (self.copy / file).read_bytes() for file in self.contents}
        try:
            for file, data in self.contents.items():
                tree.put(self.copy, file, data)
            yield
        finally:
            for file, data in originals.items():
                tree.put(self.copy, file, data)


class Unclear(Exception):
    """Tests fail, or do not end, without a change, too."""


def ended(change: Change, run: Run, timeout: float) -> int:
    """How tests end with a change. They take too long only if they end without the change in the same time."""
    for _ in range(ROUNDS):
        with change.made():
            code = run(timeout)
        if code != TOO_LONG:
            return code
        if (without := run(timeout)) == PASSED:
            return TOO_LONG
        if without != TOO_LONG:
            raise Unclear(f"the tests end with {without} without it, too")
        timeout *= LONGER
    raise Unclear(f"the tests do not end in {timeout / LONGER:.0f} s without it, either")


def noticed(change: Change, run: Run, timeout: float, log: pathlib.Path) -> tuple[int, str]:
    """How tests end with a change, and which fails with it: twice, and not without."""
    seen: set[str] = set()
    for _ in range(ROUNDS):
        code = ended(change, run, timeout)
        by = noticed_by(code, log)
        if code in (PASSED, NONE_RAN, TOO_LONG):
            return code, by
        again = lambda: alone(change.copy, by, run, timeout, log) != PASSED
        fails_without = again()
        with change.made():
            if not fails_without and (by in seen or again()):
                return code, by
        seen.add(by)
    raise Unclear(f"not each time, or without it, too: {by}")


def alone(copy: pathlib.Path, by: str, run: Run, timeout: float, log: pathlib.Path) -> int:
    """How the test ends that failed; with the others, if it can't be run alone."""
    _, is_named, name = by.partition(" ")
    code = tree.pytest(copy, [name], timeout=ALONE, log=log) if is_named and "::" in name else NO_SUCH
    return run(timeout) if code in (NO_SUCH, NONE_RAN) else code


def notice(change: Change, tests: list[Test], budget: float, log: pathlib.Path) -> Verdict:
    """Which of these tests notices it: of the first, quick ones, then of the others as long as the budget lasts."""
    ran = False  # the tests may have other names since `reach` was run
    for part in (tests[:FIRST], tests[FIRST:]):
        chosen, seconds = [], 0.0
        for t in part:
            if seconds + t.seconds > budget and chosen:
                break
            chosen.append(t.name)
            seconds += t.seconds
        if not chosen:
            continue
        run = lambda limit, names=chosen: chosen_run(change.copy, names, limit, log)
        code, by = noticed(change, run, 60 + 4 * seconds, log)
        if code not in (PASSED, NONE_RAN):
            return "caught", by
        ran = ran or code == PASSED
    return ("survived" if ran else "unreached"), None


def chosen_run(copy: pathlib.Path, names: list[str], timeout: float, log: pathlib.Path) -> int:
    """Runs the tests of these names in their order, until one fails."""
    file = log.with_suffix(".tests")
    file.write_text(json.dumps(names))
    files = list(dict.fromkeys(name.split("::")[0] for name in names))
    return tree.pytest(copy, ["-x", *files], timeout=timeout, log=log, WEFT_MUTANT_TESTS=str(file))


def noticed_by(code: int, log: pathlib.Path) -> str:
    """The test that failed, or how pytest ended."""
    lines = log.read_text(errors="replace").splitlines()
    failed = [line.split(" - ")[0] for line in lines if FAILED.match(line)]
    return "time" if code == TOO_LONG else failed[0] if failed else f"exit {code}"


def noticed_by_page(code: int, log: pathlib.Path) -> str:
    """Likewise of the tests of the page's runtime."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    failed = [line for line in lines if line.startswith(("not ok", "✖", "✘"))]
    return "time" if code == TOO_LONG else failed[0][:200] if failed else f"exit {code}"
