"""A plugin of pytest: writes each outcome to a file as it comes, so that a run that is ended has told all it knew."""

from __future__ import annotations

import json
import os

FILE = "WEFT_GPU_RESULTS"
_collected: set[int] = set()


def _write(**row: object) -> None:
    with open(os.environ[FILE], "a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def pytest_collection_finish(session) -> None:
    if not hasattr(session.config, "workerinput") and session.items:
        _write(collected=len(session.items))


def pytest_xdist_node_collection_finished(node, ids) -> None:
    if not _collected:  # all workers collect the same
        _collected.add(len(ids))
        _write(collected=len(ids))


def pytest_collectreport(report) -> None:
    if report.failed:
        _write(test=str(report.nodeid), outcome="failed", why=_reason(report))


def pytest_runtest_logreport(report) -> None:
    """Called in the process that runs the tests, or, with xdist, in the one that hands them out."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    if report.when == "call" or report.outcome != "passed":
        _write(test=report.nodeid, outcome=report.outcome, why=_reason(report) if report.failed else "")


def _reason(report) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    return next((line.strip() for line in text.splitlines() if line.strip()), "no message")[:300]
