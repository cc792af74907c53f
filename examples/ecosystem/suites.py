"""The tests that libraries themselves bring along, run on weft.

python examples/ecosystem/suites.py               all of them
python examples/ecosystem/suites.py flax          one library's

optax's stand in its package, flax's in its source release, which pip fetches to build/ecosystem/sources. failures.json
names what fails, with the reason; anything else that fails, or that is named and passes, is an error.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as ET

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = HERE.parents[1] / "build" / "ecosystem" / "sources"
FAILURES = HERE / "failures.json"


@dataclasses.dataclass(frozen=True)
class Suite:
    """The tests of a library.

    Args:
        name: the distribution, and the package.
        folder: where pytest runs: relative to the package, or to the source release if `released`.
        files: patterns of the files with tests, relative to the folder.
        released: whether the tests stand in the source release.
        without: files that can't run here, with the reason.
    """

    name: str
    folder: str
    files: tuple[str, ...]
    released: bool = True
    without: dict[str, str] = dataclasses.field(default_factory=dict)

    def place(self) -> pathlib.Path:
        """The folder; fetches the source release if need be."""
        if not self.released:
            return pathlib.Path(importlib.import_module(self.name).__path__[0]) / self.folder
        version = importlib.metadata.version(self.name)
        root = SOURCES / f"{self.name}-{version}"
        if not root.exists():
            SOURCES.mkdir(parents=True, exist_ok=True)
            pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "-q", "--no-deps"]
            wanted = ["--no-binary", self.name, f"{self.name}=={version}"]
            with tempfile.TemporaryDirectory(dir=SOURCES) as there:
                subprocess.run([*pip, *wanted, "-d", there], check=True)
                with tarfile.open(pathlib.Path(there) / f"{root.name}.tar.gz") as archive:
                    archive.extractall(there, filter="data")
                (pathlib.Path(there) / root.name).rename(root)
        return root / self.folder

    def files_in(self, folder: pathlib.Path) -> list[str]:
        found = {str(f.relative_to(folder)) for pattern in self.files for f in folder.glob(pattern)}
        return sorted(found - self.without.keys())

    def run(self) -> list[ET.Element]:
        """The test cases, as pytest reports them."""
        folder = self.place()
        with tempfile.TemporaryDirectory() as reports:
            report = pathlib.Path(reports) / "report.xml"
            settings = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={folder}", f"--junitxml={report}"]
            at_once = ["-n", str(os.cpu_count() or 1), "--dist", "worksteal"]
            pytest = [sys.executable, "-m", "pytest", *settings, *at_once, *self.files_in(folder)]
            subprocess.run(pytest, cwd=folder, stdout=subprocess.DEVNULL)
            return list(ET.parse(report).getroot().iter("testcase"))


SUITES = (
    Suite("optax", "", ("**/*_test.py",), released=False),
    Suite(
        "flax",
        "tests",
        ("*_test.py", "core/**/*_test.py", "linen/**/*_test.py", "nnx/**/*_test.py"),
        without={
            "checkpoints_test.py": "needs TensorFlow",
            "io_test.py": "needs TensorFlow",
            "tensorboard_test.py": "needs TensorFlow",
        },
    ),
)


def bad(case: ET.Element) -> bool:
    return case.find("failure") is not None or case.find("error") is not None


def run_suite(suite: Suite) -> tuple[list[str], int]:
    """The lines of the page about one library's tests, and how many fail without a reason that is known."""
    reasons = json.loads(FAILURES.read_text()).get(suite.name, {})
    cases = suite.run()
    failing = sorted(f"{c.get('classname')}.{c.get('name')}" for c in cases if bad(c))
    skipped = sum(c.find("skipped") is not None for c in cases)
    said = f"{len(cases)} tests: {len(cases) - len(failing) - skipped} pass, {skipped} skip themselves"
    said += f", {len(failing)} fail."
    print(f"{suite.name}: {said}", flush=True)
    version = importlib.metadata.version(suite.name)
    lines = ["", f"## The tests of {suite.name} {version}", "", said, ""]
    if suite.without:
        lines += [*(f"Without {name}, which {why}." for name, why in suite.without.items()), ""]
    unknown = 0
    if failing:
        lines += ["| failing | reason |", "|---|---|"]
    for test in failing:
        reason = next((why for part, why in reasons.items() if test.endswith(part)), None)
        unknown += reason is None
        lines.append(f"| `{test}` | {reason or 'not known'} |")
        print(f"{suite.name}:", test, "|", reason or "NOT KNOWN", flush=True)
    for part in reasons:
        if not any(test.endswith(part) for test in failing):
            unknown += 1
            print(f"{suite.name}:", part, "is in failures.json and passes: take it out", flush=True)
    return lines, unknown


def run_all(names: tuple[str, ...] = ()) -> tuple[list[str], int]:
    """The same for all of them."""
    lines, unknown = [], 0
    for suite in SUITES:
        if not names or suite.name in names:
            more, count = run_suite(suite)
            lines += more
            unknown += count
    return lines, unknown


if __name__ == "__main__":
    raise SystemExit(min(run_all(tuple(sys.argv[1:]))[1], 1))
