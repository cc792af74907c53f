"""Random programs on every backend, in all of its configurations, against the reference interpreter; and what the
generator makes.

WEFT_RANDOM_PROGRAMS sets how many for each platform, WEFT_RANDOM_START where the seeds begin. A third as many have a
theme. A program that fails is shrunk and printed as source.
"""

import itertools
import os
import signal

import programs.report
import pytest
from platforms import need, under_test
from programs.check import Failure, check
from programs.maker import NESTS, THEMED, make
from programs.report import fails_alike, report
from programs.targets import target_for

COUNT = int(os.environ.get("WEFT_RANDOM_PROGRAMS", "200"))
START = int(os.environ.get("WEFT_RANDOM_START", "0"))
CHUNK = 10  # programs of a test


def chunks(start: int, count: int) -> list[tuple[int, int]]:
    """The programs of each test: the first and how many."""
    return [(k, min(CHUNK, start + count - k)) for k in range(start, start + count, CHUNK)]


@pytest.mark.parametrize("platform", under_test("cpu", "wasm", "webgpu"))
@pytest.mark.parametrize("first, count", [*chunks(START, COUNT), *chunks(THEMED + START, COUNT // 3)])
def test_programs_agree_with_the_reference(first, count, platform):
    need(platform)
    for seed in range(first, first + count):
        target = target_for(platform, seed)
        program = make(seed, target.settings)
        try:
            check(program, target, calls=1 if platform == "webgpu" and seed % 3 else 2)
        except Failure as failure:
            pytest.fail(report(program, target, failure), pytrace=False)


def test_the_same_seed_makes_the_same_program():
    for seed in range(0, 400, 7):
        assert make(seed).source() == make(seed).source()
        assert make(seed).args == make(seed).args


def test_control_flow_is_nested_in_all_ways():
    """Every pair and every triple of its kinds, each inside the one before."""
    found = {nest for seed in range(len(NESTS) ** 3) for nest in make(seed).nests()}
    missing = [n for k in (1, 2, 3) for n in itertools.product(NESTS, repeat=k) if n not in found]
    assert not missing


def test_a_smaller_program_that_never_ends_is_given_up(monkeypatch):
    monkeypatch.setattr(programs.report, "LONGEST", 0.1)

    def endless(program, target):
        while True:
            pass

    monkeypatch.setattr(programs.report, "check", endless)
    assert fails_alike(make(0), target_for("wasm", 0), "mismatch") is None
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
