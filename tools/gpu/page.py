"""The page that a run on an accelerator writes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from parts import Outcome, read_tests

FAILURES = 40  # reasons that are shown for each part
EXAMPLES = 3


def page(platform: str, facts: list[str], outcomes: list[Outcome], waiting: list[str]) -> str:
    """The page as Markdown: how each part went, then what it found. `facts` are lines on the machine and the software,
    `waiting` the names of parts that have not begun.
    """
    lines = [
        f"# On an accelerator ({platform})",
        "",
        "Written by `make test-gpu` (`python tools/gpu`), which runs from a plain checkout, unattended, in under ten"
        " minutes.",
        "",
        *[f"- {fact}" for fact in facts],
        "",
        "| part | result | s |",
        "|---|---|---|",
        *[f"| {o.part.name}: {o.part.title} | {summary(o)} | {o.seconds:.0f} |" for o in outcomes],
        *[f"| {name} | not begun | |" for name in waiting],
    ]
    for outcome in outcomes:
        lines += ["", f"## {outcome.part.title}", "", *body(outcome)]
    return "\n".join(lines).rstrip() + "\n"


def good(outcome: Outcome) -> bool:
    """Whether a part ran to its end and nothing in it failed."""
    return outcome.status == 0


def summary(outcome: Outcome) -> str:
    """How a part went, in a few words."""
    found = outcome.found
    if outcome.part.read is read_tests:
        told = ", ".join(f"{found[key]} {key}" for key in ("passed", "failed", "skipped", "not run") if found[key])
        told = told or "no test ran"
    elif "weft" in found and outcome.part.name != "doctor":
        told = f"{len(found['weft'])} figures of weft, {len(found['jax'])} of jax"
    else:
        told = "in order" if outcome.status == 0 else "not in order"
    if outcome.status is None:
        return f"**ended when its time was over**: {told}"
    return told if outcome.status == 0 else f"**status {outcome.status}**: {told}"


def body(outcome: Outcome) -> Iterator[str]:
    """What a part found, in lines of Markdown."""
    found = outcome.found
    if outcome.part.read is read_tests:
        yield from _failures(found["failures"])
        if not sum(found[key] for key in ("passed", "failed", "skipped")):
            yield from _log(outcome)
    elif outcome.part.name == "doctor":
        yield from _findings(found)
        if not found:
            yield from _log(outcome)
    else:
        yield from _figures(found, outcome.part.name == "matmul")
        if outcome.status != 0:
            yield from _log(outcome)


def _log(outcome: Outcome) -> Iterator[str]:
    yield from ["", "The end of what it printed:", "", "```", *outcome.log.strip().splitlines()[-25:], "```"]


def _findings(found: dict[str, Any]) -> Iterator[str]:
    yield from ["| | | |", "|---|---|---|"]
    for part in ("software", "devices", "platforms"):
        for f in found.get(part, ()):
            remedy = f" → `{f['remedy']}`" if f["remedy"] else ""
            yield f"| {f['name']} | {f['state']} | {_cell(f['text'])}{remedy} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _figures(found: dict[str, Any], flops: bool) -> Iterator[str]:
    ours, theirs = found.get("weft", {}), found.get("jax", {})
    yield f"| | jax | weft | weft/jax |{' TFLOP/s, jax | weft |' if flops else ''}"
    yield "|---|---|---|---|" + "---|---|" * flops
    for case in {**ours, **theirs}:
        a, b = theirs.get(case), ours.get(case)
        ratio = f"{b / a:.3f}" if a and b and not case.endswith("loss") else ""
        rates = [_rate(case, ms) for ms in (a, b)] if flops else []
        yield f"| {case} | {_number(a)} | {_number(b)} | {ratio} |" + "".join(f" {rate} |" for rate in rates)


def _number(x: float | None) -> str:
    return "" if x is None else f"{x:.5g}"


def _rate(case: str, ms: float | None) -> str:
    """TFLOP/s of a product whose size ends its name."""
    return "" if not ms else f"{2 * int(case.split()[-1]) ** 3 / ms / 1e9:.1f}"


def _failures(failures: dict[str, str]) -> Iterator[str]:
    if not failures:
        yield "Nothing failed."
        return
    groups: dict[str, list[tuple[str, str]]] = {}
    for test, why in failures.items():
        groups.setdefault(re.sub(r"[\d.]+", "0", why)[:120], []).append((test, why))
    yield from ["| failures | reason of the first | for example |", "|---|---|---|"]
    for members in sorted(groups.values(), key=len, reverse=True)[:FAILURES]:
        examples = ", ".join(f"`{test.split('::', 1)[-1]}`" for test, _ in members[:EXAMPLES])
        yield f"| {len(members)} | {_cell(members[0][1])} | {_cell(examples)} |"
    if len(groups) > FAILURES:
        yield f"| | and {len(groups) - FAILURES} reasons more | |"
