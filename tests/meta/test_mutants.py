"""What docs/mutants.md says is of today's code: no verdict is of code that is gone, and no fault that tests
can detect is left undetected.
"""

import json
import pathlib
import tomllib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools" / "mutants"
RESULTS = json.loads((TOOLS / "results.json").read_text())
SAME = {v["key"] for v in tomllib.loads((TOOLS / "verdicts.toml").read_text())["equivalent"]}


@pytest.fixture(scope="module")
def strata():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TOOLS))
        import strata
    return strata


@pytest.fixture(scope="module")
def faults(strata):
    """Every fault that today's code can have."""
    return {m.key for found in strata.mutants_of(ROOT).values() for m in found}


def test_verdicts_are_of_faults_that_exist(faults):
    gone = sorted(SAME - faults)
    assert not gone, f"no such faults any more; change tools/mutants/verdicts.toml: {gone}"


def test_what_changes_something_is_detected(faults):
    left = [key for key, found in RESULTS.items() if key in faults - SAME and found["outcome"] != "caught"]
    assert not left, f"these need a test, or a reason in tools/mutants/verdicts.toml: {left}"


def test_the_page_is_of_these_results():
    page = (ROOT / "docs" / "mutants.md").read_text()
    assert all(f"`{key}`" in page for key in SAME) and "## Not caught\n\nNone.\n" in page


@pytest.fixture(scope="module")
def judging():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TOOLS))
        import judging
    return judging


def write_tests(folder, text):
    """A copy of a repository: a module with a number in it, and these tests of it."""
    (folder / "thing.py").write_text("N = 1\n")
    (folder / "test_thing.py").write_text(f"import os, pathlib, thing\n{text}")


def test_too_long_is_what_takes_longer_than_without_the_fault(judging, tmp_path):
    """A machine that needs 50 seconds for tests is slow; tests that never end with a fault have detected it."""
    write_tests(tmp_path, "")
    change = judging.Change(tmp_path, {"thing.py": b"N = 2\n"})
    is_faulty = lambda: "2" in (tmp_path / "thing.py").read_text()
    slow = lambda limit: 0 if limit > 50 else judging.TOO_LONG
    endless = lambda limit: judging.TOO_LONG if is_faulty() else slow(limit)
    assert judging.ended(change, slow, 10) == judging.PASSED
    assert judging.ended(change, endless, 10) == judging.TOO_LONG
    with pytest.raises(judging.Unclear, match="do not end in 270 s without it"):
        judging.ended(change, lambda limit: judging.TOO_LONG, 10)
    with pytest.raises(judging.Unclear, match="end with 1 without it"):
        judging.ended(change, lambda limit: judging.TOO_LONG if is_faulty() else 1, 10)
    assert not is_faulty()


@pytest.mark.parametrize(
    "test, verdict",
    [
        ("def test_it():\n assert thing.N == 1", ("caught", "FAILED test_thing.py::test_it")),
        (
            "import logging\ndef test_it():\n logging.error('odd')\n assert thing.N == 1",
            ("caught", "FAILED test_thing.py::test_it"),
        ),
        ("def test_it():\n assert thing.N > 0", ("survived", None)),
        ("def test_another():\n assert thing.N == 1", ("unreached", None)),
        # fails once, whatever the number is
        ("def test_it():\n known, p = os.path.exists('seen'), pathlib.Path('seen').touch()\n assert known", "survived"),
        ("if thing.N > 1:\n os._exit(7)\ndef test_it():\n pass", ("caught", "exit 7")),
    ],
)
def test_only_what_passes_without_a_fault_detects_it(judging, tmp_path, test, verdict):
    write_tests(tmp_path, test)
    change = judging.Change(tmp_path, {"thing.py": b"N = 2\n"})
    tests = [judging.Test("test_thing.py::test_it", 0.1, 1)]
    found = judging.notice(change, tests, 120, tmp_path / "log")
    assert found == (verdict if isinstance(verdict, tuple) else (verdict, None))


def test_tests_that_fail_in_any_case_detect_nothing(judging, tmp_path):
    write_tests(tmp_path, "def test_it():\n assert False")
    change = judging.Change(tmp_path, {"thing.py": b"N = 2\n"})
    with pytest.raises(judging.Unclear, match="not each time, or without it, too: FAILED test_thing.py::test_it"):
        judging.notice(change, [judging.Test("test_thing.py::test_it", 0.1, 1)], 120, tmp_path / "log")
