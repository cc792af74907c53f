"""The analysis of indices: linear forms, and whether different iterations have different indices."""

import itertools

import numpy as np
import pytest
from weft_wasm.ir.affine import distinct, row_major
from weft_wasm.ir.nodes import Var, i32

NAMES = [Var("i"), Var("j"), Var("k")]


@pytest.mark.parametrize("extents", list(itertools.product([1, 2, 3], repeat=3)), ids=str)
def test_distinct_says_what_counting_says(extents):
    """It never says so of iterations that share an index, and knows all indices whose larger steps pass all that
    smaller ones reach.
    """
    for steps in itertools.product([-4, -1, 0, 1, 2, 3, 6, 7], repeat=3):
        indices = [int(np.dot(steps, point)) for point in np.ndindex(*extents)]
        really = len(set(indices)) == len(indices)
        said = distinct({v: s for v, s in zip(NAMES, steps) if s}, dict(zip(NAMES, extents)))
        reach, nested = 0, True
        for step, extent in sorted((abs(s), n) for s, n in zip(steps, extents) if n > 1):
            nested, reach = nested and step > reach, reach + step * (extent - 1)
        assert said == nested and (really or not said), (steps, indices)


def test_rows_of_arrays_are_distinct():
    for shape in [(1,), (5,), (2, 3), (1, 4, 1), (3, 1, 2), (2, 2, 2)]:
        assert distinct(dict(zip(NAMES, row_major(shape))), dict(zip(NAMES, shape)))


def test_what_is_not_certain_is_not_said():
    i, j, n, u = *NAMES[:2], Var("n"), Var("u")
    assert distinct({i: 1}, {i: n}) and distinct({i: 1, j: 0}, {i: n, j: 1})
    assert not distinct({i: 1, j: 100}, {i: n, j: 2}) and distinct({i: 100, j: 1}, {i: n, j: 100})
    assert distinct({i: 1, u: 5}, {i: 3}) and not distinct({i: 1, u: 5}, {i: 3}, unknown=[u])
    assert not distinct({i: 1, i * i: 1}, {i: 3}) and distinct({i: 1, u * i32(3): 1}, {i: 3})
