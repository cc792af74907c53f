"""The bugs that this project has had, in tools/mutants/history.toml: each still fits today's code. `make
test-mutants` puts them back and runs their tests.
"""

import ast
import pathlib
import tomllib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUGS = tomllib.loads((ROOT / "tools/mutants/history.toml").read_text())["bug"]


def test_there_are_enough_with_different_names():
    assert len(BUGS) >= 25
    assert len({bug["name"] for bug in BUGS}) == len(BUGS)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug["name"])
def test_it_fits(bug):
    assert bug["edit"] and bug["tests"] and bug["commit"]
    changed = {}
    for edit in bug["edit"]:
        text = changed.get(edit["file"]) or (ROOT / edit["file"]).read_text()
        assert text.count(edit["now"]) == 1, (
            f"{edit['file']} has {text.count(edit['now'])} times\n{edit['now']}\nWrite down how the code reads today in"
            " tools/mutants/history.toml."
        )
        changed[edit["file"]] = text.replace(edit["now"], edit["then"])
    for file, text in changed.items():
        assert text != (ROOT / file).read_text()
        ast.parse(text)  # a bug that no module survives shows nothing
    for test in bug["tests"]:
        assert (ROOT / test.split("::")[0]).exists(), test
