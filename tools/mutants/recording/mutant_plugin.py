"""pytest in a copy of the repository. With WEFT_REACH: writes which test reaches which mutant, and how long it
takes. With WEFT_MUTANT_TESTS: runs the tests named there.
"""

import builtins
import json
import os
import pathlib
import time

import pytest

FOLDER, CHOSEN = os.environ.get("WEFT_REACH"), os.environ.get("WEFT_MUTANT_TESTS")


class Recorder:
    """Which places are reached between the start of one test and the next."""

    def __init__(self, folder: str):
        self.folder, self.now, self.read = pathlib.Path(folder), set(), {}
        self.out = open(self.folder / f"{os.getpid()}.tests", "a")
        builtins._weft_reach = self.now.add

    def processes(self) -> set:
        """What other processes have reached since the last look."""
        found = set()
        for file in self.folder.glob("*.process"):
            lines = file.read_text().split()
            found |= set(map(int, lines[self.read.get(file, 0) :]))
            self.read[file] = len(lines)
        return found

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        self.now.clear()
        start = time.perf_counter()
        result = yield
        seconds = time.perf_counter() - start
        reached = self.now | self.processes()
        json.dump([item.nodeid, round(seconds, 4), getattr(item, "_weft_outcome", "passed"), sorted(reached)], self.out)
        self.out.write("\n")
        self.out.flush()
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item):
        report = yield
        if report.outcome != "passed":
            item._weft_outcome = report.outcome
        return report


def pytest_configure(config):
    if FOLDER and (not config.pluginmanager.hasplugin("dsession")):
        config.pluginmanager.register(Recorder(FOLDER), "weft-recorder")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    if not CHOSEN:
        return
    order = {name: k for k, name in enumerate(json.loads(pathlib.Path(CHOSEN).read_text()))}
    kept = sorted([i for i in items if i.nodeid in order], key=lambda i: order[i.nodeid])
    config.hook.pytest_deselected(items=[i for i in items if i.nodeid not in order])
    items[:] = kept
