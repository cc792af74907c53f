"""Which lines and branches of the compiler for Wasm and WebGPU do random programs alone reach?   make
test-random-coverage

    python tools/random_coverage             runs the programs under coverage.py, then reports
    python tools/random_coverage --report    reports once more of what the last run has left in build/random-coverage
    python tools/random_coverage --show emit_wgsl    and prints the source around what was not reached in files of this
    name

docs/random-coverage.md says what share of each part is reached, and why each place that isn't is not: reasons.toml,
beside this file. The command fails where too little of all is reached, or an unreached place has no reason.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import coverage
from places import REASONS, ROOT, SOURCE, Place, Reasons, fingerprints, places, require_unchanged

HERE = pathlib.Path(__file__).parent
BUILD = ROOT / "build" / "random-coverage"
PAGE = ROOT / "docs" / "random-coverage.md"
PARTS: dict[str, tuple[str, ...]] = {
    **{folder: (f"{folder}/",) for folder in ("lower", "routines", "elementary", "emit_wasm", "emit_wgsl")},
    "passes": ("passes/", "compile.py", "ir/affine.py", "ir/instances.py", "ir/reductions.py", "ir/rewriting.py"),
}
LINES, BRANCHES = 95.0, 90.0  # per cent, at least
RUN = 250  # programs of one process
Counts = collections.Counter[str]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python tools/random_coverage", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--wasm", type=int, default=2500, help="how many programs on Wasm")
    parser.add_argument("--themed", type=int, default=1500, help="and of programs with a theme")
    parser.add_argument("--webgpu", type=int, default=1000, help="how many programs as shaders")
    parser.add_argument("--kernels", type=int, default=1000, help="how many of the loop IR, on both")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--report", action="store_true", help="of the last run")
    parser.add_argument("--show", nargs="*", help="of the last run, with source")
    options = parser.parse_args()
    if not options.report and options.show is None:
        collect({kind: getattr(options, kind) for kind in ("wasm", "themed", "webgpu", "kernels")}, options.workers)
    measured = measure()
    if options.show is not None:
        for file, found in measured.items():
            if any(part in file for part in options.show):
                show(file, found)
        return 0
    return report(measured)


def collect(counts: dict[str, int], workers: int) -> None:
    """Runs the programs, in processes that each leave their data in BUILD."""
    shutil.rmtree(BUILD, ignore_errors=True)
    BUILD.mkdir(parents=True)
    (BUILD / "sources.json").write_text(json.dumps(fingerprints()))
    env = os.environ | {
        "PYTHONPATH": os.pathsep.join(["tests", "tests/kernels", *filter(None, [os.environ.get("PYTHONPATH")])]),
        "PYTHONHASHSEED": "0",
    }
    tool = [
        sys.executable,
        "-m",
        "coverage",
        "run",
        f"--rcfile={HERE / 'settings.ini'}",
        f"--data-file={BUILD / 'data'}",
    ]
    runs = [
        (platform, start, min(RUN, count - start))
        for platform, count in counts.items()
        for start in range(0, count, RUN)
    ]
    runs.sort(key=lambda run: run[1])  # of all kinds from the beginning
    begin = time.time()

    def run(platform: str, start: int, count: int) -> str:
        command = [*tool, str(HERE / "compiling.py"), platform, str(start), str(count)]
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} exited with {done.returncode}:\n{done.stderr[-3000:]}")
        return done.stdout.splitlines()[-1]

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for line in pool.map(lambda r: run(*r), runs):
            print(f"{time.time() - begin:5.0f} s  {line}", flush=True)
    (BUILD / "counts.json").write_text(json.dumps(counts))


def measure() -> dict[str, dict]:
    """By file, relative to the package: what coverage.py's report in JSON says of it. RuntimeError where a file has
    changed since `collect` began.
    """
    require_unchanged(json.loads((BUILD / "sources.json").read_text()))
    tool = coverage.Coverage(data_file=str(BUILD / "all"), config_file=str(HERE / "settings.ini"))
    tool.combine([str(p) for p in BUILD.glob("data.*")], strict=True, keep=True)
    tool.save()
    tool.json_report(outfile=str(BUILD / "report.json"))
    files = json.loads((BUILD / "report.json").read_text())["files"]
    named = {os.path.relpath(ROOT / file, SOURCE).replace(os.sep, "/"): found for file, found in files.items()}
    return {file: found for file, found in sorted(named.items()) if part_of(file)}


def part_of(file: str) -> str | None:
    return next(
        (
            part
            for part, names in PARTS.items()
            if any(file == n or n.endswith("/") and file.startswith(n) for n in names)
        ),
        None,
    )


def report(measured: dict[str, dict]) -> int:
    """Writes the page. 1 where too little is reached, or something isn't and nobody says why."""
    sums: dict[str, Counts] = collections.defaultdict(Counts)
    unreached: list[Place] = []
    for file, found in measured.items():
        s = found["summary"]
        for part in (part_of(file), "all"):
            sums[str(part)].update(
                lines=s["num_statements"],
                reached=s["covered_lines"],
                branches=s["num_branches"],
                taken=s["covered_branches"],
            )
        unreached += places(file, found)
    reasons = Reasons.read()
    why = {place: reasons.of(place) for place in unreached}
    unexplained = [place for place, reason in why.items() if reason is None]
    rows = [
        f"| {part} | {n['reached']} of {n['lines']} | {percent(n['reached'], n['lines']):.1f} % | "
        f"{n['taken']} of {n['branches']} | {percent(n['taken'], n['branches']):.1f} % |"
        for part, n in [*((p, sums[p]) for p in PARTS), ("all", sums["all"])]
    ]
    counts = json.loads((BUILD / "counts.json").read_text())
    text = [
        "# What random programs reach",
        "",
        (
            f"`make test-random-coverage` runs {counts['wasm']} random programs (`tests/programs`) and"
            f" {counts['themed']} with a theme on Wasm, and {counts['webgpu']} as shaders, in all the configurations of"
        ),
        (
            f"`tests/programs/targets.py`, and {counts['kernels']} random programs of the loop IR"
            " (`tests/kernels/random_kernels.py`) on both. They also have statements that"
        ),
        (
            "no lowering makes. coverage.py measures how much of the compiler in `wasm/src/weft_wasm` they reach by"
            " themselves."
        ),
        "",
        "| part | lines | | branches | |",
        "|---|---|---|---|---|",
        *rows,
        "",
        (
            f"The passes are {', '.join(f'`{name}`' for name in PARTS['passes'])}. Lines for the type checker and"
            " internal errors are not counted"
        ),
        (
            "(`tools/random_coverage/settings.ini`). The check requires 95 % of all lines, 90 % of all branches, and a"
            " reason for each place that is not reached."
        ),
        "",
        "## Not reached, and why",
        "",
    ]
    for reason in reasons.all:
        mine = [place for place, r in why.items() if r is reason]
        if mine:
            text += [f"{reason.why}", "", *(f"- {place}" for place in mine), ""]
    if unexplained:
        text += ["Nobody has said why:", "", *(f"- {place}" for place in unexplained), ""]
    PAGE.write_text("\n".join(text).rstrip() + "\n")
    print("\n".join([*text[text.index("| part | lines | | branches | |") :][:2], *rows]))
    for needless in reasons.needless(unreached):
        print(f"reached now, and needs no reason: {needless}")
    low = [
        part
        for part, n in sums.items()
        if percent(n["reached"], n["lines"]) < LINES or percent(n["taken"], n["branches"]) < BRANCHES
    ]
    if low:
        print(f"below {LINES:.0f} % of lines or {BRANCHES:.0f} % of branches: {', '.join(low)}")
    if unexplained:
        print(
            f"{len(unexplained)} of {len(unreached)} unreached places have no reason in {REASONS.relative_to(ROOT)}:"
            f" the end of {PAGE.relative_to(ROOT)}"
        )
    return 1 if "all" in low or unexplained else 0


def percent(n: int, of: int) -> float:
    return 100.0 * n / max(of, 1)


def show(file: str, found: dict) -> None:
    """Prints the lines around those that are not reached (!), and where others never go to (->)."""
    lines = (SOURCE / file).read_text().splitlines()
    missing, goes = set(found["missing_lines"]), collections.defaultdict(list)
    for start, end in found["missing_branches"]:
        if start not in missing:
            goes[start].append("out" if end < 0 else str(end))
    near = {k + d for k in missing for d in (-1, 0, 1)} | goes.keys()
    if near:
        print(f"===== {file}: {len(missing)} lines, {len(found['missing_branches'])} branches")
    last = 0
    for k in sorted(n for n in near if 1 <= n <= len(lines)):
        if k > last + 1:
            print("   ...")
        last = k
        print(f"{'!' if k in missing else ' '}{k:4} {lines[k - 1]}{'   -> ' + ', '.join(goes[k]) if k in goes else ''}")


if __name__ == "__main__":
    sys.exit(main())
