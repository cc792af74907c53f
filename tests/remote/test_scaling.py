"""bench/scaling.py: its simulation agrees with what theory says where theory says something."""

import dataclasses
import math
import pathlib
import sys

import numpy as np
import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import scaling  # noqa: E402

FREE = scaling.Machine(cores=1, begin=0.0, call=0.0, compile=0.0)


@pytest.mark.parametrize("spread", [0.3, 0.8])
def test_waits_for_one_core_are_those_of_a_queue(spread):
    """Many users who each ask seldom: the formula of Pollaczek and Khinchine has the mean."""
    load = scaling.Load(think=2000.0, stay=1e12, work=0.3, spread=spread)
    rate = 4000 / load.think
    second_moment = load.work**2 * math.exp(spread**2)
    wanted = rate * second_moment / (2 * (1 - rate * load.work))
    found = scaling.simulate(load, FREE, 4000, 1, 12_000)
    at, waited = found.waits.T
    assert np.mean(waited[at > 2500]) == pytest.approx(wanted, rel=0.15)
    assert found.busy == pytest.approx(rate * load.work, rel=0.15)


def test_cores_do_what_they_can():
    load = scaling.Load(think=0.1, stay=1e12)
    found = scaling.simulate(load, dataclasses.replace(FREE, cores=4), 100, 1, 600)
    assert found.busy == pytest.approx(4, rel=0.02)
    assert len(found.waits) == pytest.approx(4 * 600 / load.work, rel=0.2)


def test_a_host_that_fails_loses_its_sessions_alone():
    load, machine = scaling.Load(), scaling.Machine()
    found = scaling.simulate(load, machine, 120, 4, 600, fails=300)
    assert 1 <= found.uneven < 1.2 and found.lost == pytest.approx(30, abs=6)
    assert scaling.simulate(load, machine, 120, 4, 600).lost == 0


def test_what_bounds_a_host():
    load = scaling.Load()
    most, bound = scaling.sessions_of(load, scaling.Machine(memory=8.0))
    assert bound == "memory" and most == int(0.9 * 8 * 1024 / (scaling.Machine().process + load.arrays))
    fewer, bound = scaling.sessions_of(load, scaling.Machine(cores=2, memory=1024.0))
    assert bound == "processors" and fewer < 2 * load.think / load.work
    more, _ = scaling.sessions_of(load, scaling.Machine(cores=4, memory=1024.0))
    assert more > 2 * fewer, "with more cores, fewer wait behind somebody's long run"
