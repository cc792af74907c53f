"""What a GPU can check of weft, from a plain checkout, unattended, in under ten minutes.

    python tools/gpu [--platform cuda] [--seconds 540] [--only catalogue,linalg] [--jax PYTHON] [--output FILE]

Nothing is installed: the Python that runs this must have jaxlib with its CUDA plugin, numpy, scipy, ml_dtypes and
pytest. Where it has jax too, figures are measured beside it. The page is written after each part, so what is ended
early has told what it knew. Exit status: 0 where every part was in order.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import importlib.metadata
import os
import pathlib
import platform as machine
import re
import subprocess
import sys
import tempfile
import time

from checkout import ROOT, python_path
from page import good, page, summary
from parts import PARTS, Outcome, Part, Plan, run

SECONDS = 540.0  # a device is lent for ten minutes
LEAST = 5.0  # a part that would have less is not begun
PAGE = ROOT / "bench/results/gpu.md"


def main() -> int:
    options = parser().parse_args()
    begin = time.monotonic()
    chosen = [part for part in PARTS if not options.only or part.name in options.only]
    unknown = set(options.only) - {part.name for part in PARTS}
    if unknown or not chosen:
        print(f"unknown parts: {', '.join(sorted(unknown))}; there are {', '.join(p.name for p in PARTS)}")
        return 2
    output = pathlib.Path(options.output or (PAGE if options.platform != "cpu" else ROOT / "build/gpu.md"))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        plan = Plan(options.platform, peer(options.jax), folder, environment(options.platform, folder), options.quick)
        outcomes: list[Outcome] = []
        for i, part in enumerate(chosen):
            seconds = share(chosen[i:], options.seconds - (time.monotonic() - begin))
            if seconds < LEAST:
                break
            print(f"{part.name}: at most {seconds:.0f} s", flush=True)
            outcomes.append(run(part, plan, seconds))
            print(f"  {summary(outcomes[-1])}, {outcomes[-1].seconds:.0f} s", flush=True)
            output.parent.mkdir(parents=True, exist_ok=True)
            waiting = [later.name for later in chosen[len(outcomes) :]]
            output.write_text(page(options.platform, facts(plan, options.seconds), outcomes, waiting))
    print(f"{output} in {time.monotonic() - begin:.0f} s")
    return 0 if len(outcomes) == len(chosen) and all(map(good, outcomes)) else 1


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python tools/gpu", description=__doc__.splitlines()[0])
    made.add_argument("--platform", default="cuda", help="cuda (default), tpu, or cpu to try this program")
    made.add_argument("--seconds", type=float, default=SECONDS, help="for everything (default: %(default).0f)")
    made.add_argument("--only", type=lambda text: text.split(","), default=[], metavar="PARTS")
    made.add_argument("--jax", default=os.environ.get("JAX_PYTHON"), help="a Python that has jax (default: this one)")
    made.add_argument("--output", metavar="FILE", help=f"default: {PAGE.relative_to(ROOT)}; on cpu build/gpu.md")
    made.add_argument("--quick", action="store_true", help="a small choice of each part")
    return made


def share(left: list[Part], seconds: float) -> float:
    """The seconds for the first of the parts that are left: its own share, cut where time is short, and longer where
    earlier parts have left some.
    """
    wanted = sum(part.seconds for part in left)
    return (
        min(seconds, left[0].seconds * max(1.0, seconds / wanted))
        if wanted <= seconds
        else seconds * (left[0].seconds / wanted)
    )


def peer(python: str | None) -> str | None:
    """A Python that has jax: the one that was named, or this one."""
    return python or (sys.executable if version("jax") is not None else None)


def version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


@functools.cache
def version_of_jax(python: str) -> str:
    """The version of jax that another Python has."""
    code = "import importlib.metadata; print(importlib.metadata.version('jax'))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return done.stdout.strip() or f"of {python}, which has none"


def environment(platform: str, folder: pathlib.Path) -> dict[str, str]:
    """The environment of all parts: weft from this checkout, on this platform, without falling back to another."""
    own = [*python_path(folder / "site"), str(ROOT / "tools/gpu")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*own, *filter(None, [os.environ.get("PYTHONPATH")])]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "JAX_PLATFORMS": platform,
        # many processes share the GPU, and each would take three quarters of its memory
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }


def facts(plan: Plan, seconds: float) -> list[str]:
    """Lines on the machine and the software, and how the software differs from what weft is tested with."""
    pins = dict(re.findall(r"^(\S+?)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.M))
    made = [
        f"{datetime.date.today()}, {machine.machine()}, {os.cpu_count()} cores, {machine.system()} {machine.release()},"
        f" Python {machine.python_version()}; {seconds:.0f} s for everything{', quick' if plan.quick else ''}",
        f"jaxlib {version('jaxlib')}, jax-cuda13-plugin {version('jax-cuda13-plugin')}, numpy {version('numpy')}; the"
        f" peer is {'jax ' + version_of_jax(plan.jax) if plan.jax else 'not there: weft is measured alone'}",
    ]
    different = [
        f"{name} {found} here, {pins[name]} there"
        for name in ("jaxlib", "numpy", "scipy", "ml_dtypes", "pytest")
        if name in pins and (found := version(name)) != pins[name]
    ]
    if different:
        made.append(
            f"Differs from the versions that weft is tested with (constraints.txt): {'; '.join(different)}. What jax"
            " recorded for tests is of 0.10.2."
        )
    return made


if __name__ == "__main__":
    raise SystemExit(main())
