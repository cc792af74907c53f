"""The command line."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Sequence

from ..version import __version__
from .examine import SECONDS, examine
from .findings import Finding
from .machine import Machine

HEADINGS = {
    "software": "Software",
    "devices": "Devices and drivers",
    "platforms": "A small calculation on each platform",
}
WIDTH = 110


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m weft.doctor",
        description="Says what weft finds on this machine, what it lacks and how to get it, and makes a small"
        " calculation on each platform.",
    )
    made.add_argument("--json", action="store_true", help="print one object of JSON instead of text")
    made.add_argument("--only", type=_names, default=[], metavar="NAMES", help="these platforms alone: cpu,cuda")
    made.add_argument("--require", type=_names, default=[], metavar="NAMES", help="fail unless these compute")
    made.add_argument("--host", metavar="URL", help="an accelerator host; its token is in WEFT_HOST_TOKEN")
    made.add_argument("--seconds", type=float, default=SECONDS, help="time for each calculation (default: %(default)s)")
    return made


def lines(finding: Finding) -> list[str]:
    """A finding as text."""
    start = f"  {finding.name:16} {finding.state:8} "
    text = textwrap.wrap(" ".join(finding.text.split()), WIDTH - len(start), break_on_hyphens=False) or [""]
    out = [start + text[0], *[" " * len(start) + line for line in text[1:]]]
    return [*out, f"{'':19}→ {finding.remedy}"] if finding.remedy else out


class _Printer:
    """Prints findings as they are made, under their headings."""

    def __init__(self) -> None:
        self.part = ""

    def __call__(self, part: str, finding: Finding) -> None:
        if part != self.part:
            print(f"\n{HEADINGS[part]}")
            self.part = part
        print("\n".join(lines(finding)), flush=True)


def main(arguments: Sequence[str] | None = None, machine: Machine | None = None) -> int:
    """Runs the command; returns its exit status."""
    options = parser().parse_args(arguments)
    show = (lambda part, finding: None) if options.json else _Printer()
    if not options.json:
        print(f"weft {__version__}")
    only = list(dict.fromkeys([*options.only, *options.require])) if options.only else []
    made = examine(machine, only=only, host=options.host, seconds=options.seconds, on_finding=show)
    faults = made.faults(options.require)
    if options.json:
        parts = {part: [finding._asdict() for finding in getattr(made, part)] for part in HEADINGS}
        print(json.dumps({"weft": __version__, **parts, "faults": faults, "good": not faults}, indent=1))
    elif faults:
        print("\nNot in order:\n" + "\n".join(f"  {fault.splitlines()[0]}" for fault in faults))
    else:
        computing = [f.name for f in made.platforms if f.state == "ok"]
        print(f"\nEverything that is here works: {', '.join(computing)}.")
    return 1 if faults else 0
