"""The reasons why random programs don't reach places of the compiler are of places that are still there:
tools/random_coverage/reasons.toml.
"""

import importlib.util
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def load():
    spec = importlib.util.spec_from_file_location(
        "random_coverage_places", ROOT / "tools" / "random_coverage" / "places.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


places = load()


def test_every_reason_is_of_a_place_that_exists():
    named = [n for reason in places.Reasons.read().all for n in reason.places]
    gone = [str(n) for n in named if not places.exists(n)]
    assert not gone, f"there are no such places any more: {', '.join(gone)}. Change tools/random_coverage/reasons.toml"
    assert len(named) == len(set(named)), "a place is named twice"


def test_every_reason_says_why_and_of_which_function():
    for reason in places.Reasons.read().all:
        assert len(reason.why.split()) > 3 and reason.places
        assert all(n.function or n.text for n in reason.places), "a reason is not for all of a file"


@pytest.fixture
def source(tmp_path, monkeypatch):
    text = (
        "def f(x):\n    if x:\n        return 1\n    for y in x:\n        x += y\n    return x\n\nclass A:\n    def"
        " g(self):\n        pass\n"
    )
    (tmp_path / "a.py").write_text(text)
    monkeypatch.setattr(places, "SOURCE", tmp_path)
    places.functions.cache_clear()
    yield "a.py"
    places.functions.cache_clear()


def test_unreached_places_are_told_by_function_and_text(source):
    found = {
        "executed_lines": [1, 2, 4, 5, 8, 9],
        "missing_lines": [3, 6, 10],
        "excluded_lines": [],
        "missing_branches": [[2, 3], [4, 6], [5, -1]],
    }
    told = places.places(source, found)
    assert [(p.function, p.line, p.says) for p in told] == [
        ("f", 3, "`return 1` after `if x:`"),
        ("f", 5, "`x += y` never goes to the end"),
        ("f", 6, "`return x` after `for y in x:`"),
        ("A.g", 10, "`pass`"),
    ]
    holds = lambda function, text: [p.line for p in told if places.Named(source, function, text).holds(p)]
    assert (
        holds("f", "if x") == [3]
        and holds("f", "return") == [3, 6]
        and holds("A.g", "") == [10]
        and holds("A", "") == []
    )
    exists = lambda *named: places.exists(places.Named(source, *named))
    assert (
        exists("A.g", "pass")
        and exists("f", "")
        and not exists("f", "pass")
        and not exists("g", "")
        and not places.exists(places.Named("b.py", "f", ""))
    )


def test_the_most_particular_reason_counts(source):
    one, all_ = places.Named(source, "f", "if x"), places.Named(source, "f", "")
    reasons = places.Reasons((places.Reason("all of it", (all_,)), places.Reason("one line", (one,))))
    at = lambda *texts: places.Place(source, "f", texts, 3, "")
    assert reasons.of(at("if x:", "return 1")).why == "one line"
    assert reasons.of(at("return x")).why == "all of it"
    assert reasons.of(at("return x")._replace(function="g")) is None
    assert reasons.needless([at("return x")]) == [one]


def test_a_file_that_changed_while_the_programs_ran_is_an_error(source):
    before = places.fingerprints()
    places.require_unchanged(before)
    file = places.SOURCE / source
    text = file.read_text()
    file.write_text("\n" + text)
    with pytest.raises(
        RuntimeError, match=r"^1 measured files changed after the programs had begun to run: a\.py\. Lines"
    ):
        places.require_unchanged(before)
    file.write_text(text)
    (places.SOURCE / "inner").mkdir()
    (places.SOURCE / "inner" / "b.py").write_text("")
    with pytest.raises(RuntimeError, match=r": inner/b\.py\."):
        places.require_unchanged(before)
    file.unlink()
    with pytest.raises(RuntimeError, match=r"^2 measured files .*: a\.py, inner/b\.py\."):
        places.require_unchanged(before)
