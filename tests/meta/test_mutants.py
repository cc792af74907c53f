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
