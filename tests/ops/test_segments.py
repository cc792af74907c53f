"""Reductions of segments (`weft.ops`) against loops."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import ops

DATA = np.array([[3.0, -1.0], [2.0, 5.0], [-4.0, 0.5], [7.0, 2.0], [1.0, 1.0]], np.float32)
IDS = np.array([0, 2, 0, 3, 2])
FUNCTIONS = {
    ops.segment_sum: (np.add, 0),
    ops.segment_prod: (np.multiply, 1),
    ops.segment_max: (np.maximum, -np.inf),
    ops.segment_min: (np.minimum, np.inf),
}


def loop(op, empty, count):
    out = np.full((count, 2), empty, np.float32)
    for row, i in zip(DATA, IDS):
        if 0 <= i < count:
            out[i] = op(out[i], row)
    return out


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("count", [4, 6, 3])
def test_segments(function, count):
    want = loop(*FUNCTIONS[function], count)  # rows of segments beyond the last are left out
    np.testing.assert_allclose(function(DATA, IDS, count), want)
    np.testing.assert_allclose(weft.jit(function, static_argnums=2)(DATA, IDS, count), want)
    order = np.argsort(IDS, kind="stable")
    np.testing.assert_allclose(function(DATA[order], IDS[order], count, indices_are_sorted=True), want)
    both = weft.vmap(lambda d: function(d, IDS, count))(np.stack([DATA, DATA]))
    np.testing.assert_allclose(both, np.stack([want, want]))


def test_the_number_of_segments_is_found_where_ids_are_known():
    assert ops.segment_prod(DATA, IDS).shape == (4, 2)
    with pytest.raises(weft.errors.ConcretizationTypeError):
        weft.jit(ops.segment_prod)(DATA, IDS)


def test_derivative_of_products_of_one():
    order = np.array([2, 0, 3, 1, 4])
    got = weft.grad(lambda d: jnp.sum(ops.segment_prod(d, order, 5, unique_indices=True) ** 2))(DATA)
    np.testing.assert_allclose(got, 2 * DATA, rtol=1e-6)
    with pytest.raises(NotImplementedError, match="unique_indices"):
        weft.grad(lambda d: jnp.sum(ops.segment_prod(d, IDS, 4)))(DATA)
