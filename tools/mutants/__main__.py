"""Puts faults into the code one by one and sees whether the tests notice.   make test-mutants

    python tools/mutants list     [--count 552] [--seed 0]        the sample
    python tools/mutants reach    [--tests tests/ops …]           runs the tests once and writes down which of them
    reach which fault: build/mutants/reach
    python tools/mutants run      [--workers 2] [--budget 120]    runs for each fault that has no result yet the tests
    that reach it, the quickest and most particular first
    python tools/mutants report   docs/mutants.md, from the results and from verdicts.toml
    python tools/mutants try FAULT... --tests tests/core/test_x.py    which of these faults these tests catch, as both
    stand in the working tree now: a fault's number, or a part of its name; of faults that are in the sample, or were,
    it is added to the results
    python tools/mutants history  the same with the faults that this project has had: history.toml

A fault is caught when a test fails, or does not end, that passes without it in the same minutes. Those that no test
catches are shown to change nothing in verdicts.toml, or get a test. What was found out stands in results.json beside
this file, by what each fault changes: it stays true until that code changes. Delete the file to judge every fault anew.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import shutil
import signal
import tempfile
import threading
import time
import tomllib
from typing import Any

import report
import strata
import tree
from candidates import Mutant
from judging import PASSED, Change, Test, Unclear, Verdict, ended, notice, noticed, noticed_by_page

BUILD = tree.ROOT / "build" / "mutants"
RESULTS, HISTORY = tree.HERE / "results.json", tree.HERE / "history.json"
SHOWN = 200  # characters of a test's name in the results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("list", "reach", "run", "report", "try", "history"))
    parser.add_argument(
        "faults", nargs="*", help="for `try`: numbers in the sample, or parts of names, of any candidate"
    )
    parser.add_argument("--count", type=int, default=552)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", nargs="*", default=["tests"])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--budget", type=float, default=120.0, help="seconds of tests for one fault")
    parser.add_argument("--only", nargs="*", type=int, help="numbers of faults")
    options = parser.parse_args()
    # What is started in the background ignores Ctrl-C, and tests would wait for theirs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    BUILD.mkdir(parents=True, exist_ok=True)
    if options.action == "history":
        return history(options)
    sampled = list(strata.numbered(strata.sample(tree.ROOT, options.count, options.seed)))
    if options.action == "report":
        everything = strata.mutants_of(tree.ROOT)
        keys = {m.key for found in everything.values() for m in found}
        write(RESULTS, {key: found for key, found in read(RESULTS).items() if key in keys})
        return report.write(everything, sampled, read(RESULTS), read(HISTORY))
    if options.action == "try":
        return attempt(sampled, options.faults, options.tests)
    if options.action == "list":
        for k, stratum, m in sampled:
            print(f"{k:4} {stratum}: {m.file}:{m.line} {m.key.split('::')[1]}")
    elif options.action == "reach":
        reach(sampled, options.tests, options.workers)
    else:
        run(sampled, options)


def reach(sampled: list[tuple[int, str, Mutant]], tests: list[str], workers: int) -> None:
    """One run of the tests over a copy in which every fault's place is marked."""
    copy, folder = tree.copy(BUILD / "marked"), BUILD / "reach"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    by_file: dict[str, list[tuple[int, Mutant]]] = {}
    for k, _, m in sampled:
        if not m.file.endswith(".ts"):
            by_file.setdefault(m.file, []).append((k, m))
    for file, mutants in by_file.items():
        tree.put(copy, file, tree.marked((copy / file).read_bytes(), mutants))
    tree.compile_sources(copy)
    (folder / "sample.json").write_text(json.dumps([m.key for _, _, m in sampled]))
    arguments = [*tests, *(["-n", str(workers), "--dist", "worksteal"] if workers > 1 else [])]
    code = tree.pytest(copy, arguments, log=BUILD / "reach.log", WEFT_REACH=str(folder))
    print(f"exit {code}; see {BUILD / 'reach.log'}")


def tests_reaching(sampled: list[tuple[int, str, Mutant]]) -> dict[str, list[Test]]:
    """For each fault that `reach` looked for the tests that passed and reach it, in the order in which to run them."""
    folder = BUILD / "reach"
    sample = folder / "sample.json"
    keys: list[str] = json.loads(sample.read_text()) if sample.exists() else []
    reaching: dict[str, list[Test]] = {key: [] for key in keys}
    for file in folder.glob("*.tests"):
        for line in file.read_text().splitlines():
            name, seconds, outcome, reached = json.loads(line)
            if outcome == "passed" and (tree.ROOT / name.split("::")[0]).exists():  # no test that a test writes
                for k in reached:
                    reaching[keys[k]].append(Test(name, seconds, len(reached)))
    wanted = {m.key for _, _, m in sampled}
    return {
        key: sorted(tests, key=lambda t: (0.02 + t.seconds) * (1 + t.reached))
        for key, tests in reaching.items()
        if key in wanted
    }


def run(sampled: list[tuple[int, str, Mutant]], options: argparse.Namespace) -> None:
    order = tests_reaching(sampled)
    results = read(RESULTS)
    left = [
        item for item in sampled if (item[2].key not in results if options.only is None else item[0] in options.only)
    ]
    if unknown := [str(k) for k, _, m in left if m.key not in order and not m.file.endswith(".ts")]:
        print(f"left out, for the tests that reach them aren't known: {' '.join(unknown)}; run `reach`, or `try` them.")
    left = [item for item in left if str(item[0]) not in unknown]
    if any(m.file.endswith(".ts") for _, _, m in left) and tree.node(
        tree.copy(BUILD / "tree-0"), 600, BUILD / "log-node"
    ):
        raise SystemExit(
            f"the page's tests fail without a fault, so they say nothing: see {BUILD / 'log-node'}. Has the page been"
            " built (make web browser)?"
        )
    lock = threading.Lock()

    def work(worker: int) -> None:
        copy = tree.copy(BUILD / f"tree-{worker}")
        while True:
            with lock:
                if not left:
                    return
                k, _, m = left.pop(0)
            start, tests = time.perf_counter(), order.get(m.key, [])
            try:
                outcome, by = judge(copy, m, tests, options.budget, BUILD / f"log-{worker}")
            except Unclear as reason:
                print(f"{k:4} unclear: {reason}", flush=True)
                continue
            with lock:
                results = record(m, outcome, by)
                caught = sum(r["outcome"] == "caught" for r in results.values())
                print(
                    f"{k:4} {outcome:9} {time.perf_counter() - start:6.1f} s  {m.file}:{m.line}"
                    f" {m.key.split('::')[1][:110]}   [{caught}/{len(results)}]",
                    flush=True,
                )

    threads = [threading.Thread(target=work, args=(w,)) for w in range(options.workers)]
    [t.start() for t in threads]
    [t.join() for t in threads]


def read(file: pathlib.Path) -> dict[str, Any]:
    """What has been found out, by the keys of faults or the names of past bugs."""
    results: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return results


def write(file: pathlib.Path, results: dict[str, Any]) -> None:
    """One result a line, in the order of their keys, so that changes are easy to read and to merge."""
    lines = [f"{json.dumps(key)}: {json.dumps(found)}" for key, found in sorted(results.items())]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def record(m: Mutant, outcome: str, by: str | None) -> dict[str, Any]:
    """Writes down what was found out about one fault, beside what other processes have; gives all."""
    results = read(RESULTS)
    results[m.key] = {"outcome": outcome, **({"by": by[:SHOWN]} if by else {})}
    write(RESULTS, results)
    return results


def judge(copy: pathlib.Path, m: Mutant, tests: list[Test], budget: float, log: pathlib.Path) -> Verdict:
    """Whether a test notices the fault."""
    change = Change(copy, {m.file: m.apply((copy / m.file).read_bytes())})
    if not m.file.endswith(".ts"):
        return notice(change, tests, budget, log)
    code = ended(change, lambda limit: tree.node(copy, limit, log), 400)
    return ("caught", noticed_by_page(code, log)) if code else ("survived", None)


def attempt(sampled: list[tuple[int, str, Mutant]], faults: list[str], tests: list[str]) -> None:
    """Whether these tests pass as the code is, and fail with each of the faults."""
    chosen: list[Mutant] = []
    wanted = {m.key for _, _, m in sampled} | read(RESULTS).keys()
    everything = [m for found in strata.mutants_of(tree.ROOT).values() for m in found]
    for fault in faults:
        found = (
            [m for k, _, m in sampled if fault == str(k)]
            if fault.isdigit()
            else [m for m in everything if fault == m.key] or [m for m in everything if fault in m.key]
        )
        if not found:
            raise SystemExit(f"there is no fault {fault!r}; see `python tools/mutants list`.")
        chosen += found
    with tempfile.TemporaryDirectory(prefix="try-", dir=BUILD) as folder:  # of its own: several may run at a time
        tried(tree.copy(pathlib.Path(folder, "tree")), pathlib.Path(folder, "log"), chosen, wanted, tests)


def tried(copy: pathlib.Path, log: pathlib.Path, chosen: list[Mutant], wanted: set[str], tests: list[str]) -> None:
    if tree.pytest(copy, ["-x", *tests], log=log):
        raise SystemExit(f"{log.read_text()[-3000:]}\nthese tests fail without a fault.")
    for m in chosen:
        change = Change(copy, {m.file: m.apply((copy / m.file).read_bytes())})
        run = lambda limit: tree.pytest(copy, ["-x", *tests], timeout=limit, log=log)
        try:
            code, by = noticed(change, run, 600, log)
        except Unclear as reason:
            print(f"unclear {m.key}: {reason}", flush=True)
            continue
        print(f"{'caught' if code else 'MISSED':7} {m.key}  (line {m.line}) {'by ' + by if code else ''}", flush=True)
        if code and m.key in wanted:
            record(m, "caught", by)


def history(options: argparse.Namespace) -> None:
    """Puts back the bugs that this project has had. history.toml says of each what the code reads now and what it
    would read with the bug.
    """
    bugs = tomllib.loads((tree.HERE / "history.toml").read_text())["bug"]
    chosen = [(k, bug) for k, bug in enumerate(bugs) if options.only is None or k in options.only]
    missed = []
    with tempfile.TemporaryDirectory(prefix="history-", dir=BUILD) as folder:
        copy, log = tree.copy(pathlib.Path(folder, "tree")), pathlib.Path(folder, "log")
        for k, bug in chosen:
            start = time.perf_counter()
            try:
                caught = put_back(copy, bug, log)
            except Unclear as reason:
                print(f"{k:3} unclear: {bug['name']}: {reason}", flush=True)
                continue
            print(
                f"{k:3} {'caught' if caught else 'MISSED':7} {time.perf_counter() - start:6.1f} s  {bug['name']}"
                f" ({bug['commit']})",
                flush=True,
            )
            names = {b["name"] for b in bugs}
            known = {name: found for name, found in read(HISTORY).items() if name in names}
            write(HISTORY, {**known, bug["name"]: caught})
            if not caught:
                missed.append(bug["name"])
    print(f"{len(chosen)} bugs, {len(missed)} missed" + "".join(f"\n  {name}" for name in missed))


def put_back(copy: pathlib.Path, bug: dict[str, Any], log: pathlib.Path) -> bool:
    """Whether the tests of a past bug see it."""
    contents: dict[str, bytes] = {}
    for edit in bug["edit"]:
        data = contents.get(edit["file"]) or (copy / edit["file"]).read_bytes()
        if data.count(edit["now"].encode()) != 1:
            raise SystemExit(
                f"{bug['name']} no longer fits: {edit['file']} has {data.count(edit['now'].encode())}"
                f" times\n{edit['now']}"
            )
        contents[edit["file"]] = data.replace(edit["now"].encode(), edit["then"].encode())
    run = lambda limit: tree.pytest(copy, ["-x", *bug["tests"]], log=log, timeout=limit)
    code, _ = noticed(Change(copy, contents), run, 900, log)
    return code != PASSED


main()
