"""weft.experimental.sparse.util."""

import numpy as np
import pytest

import weft.numpy as jnp
from weft.experimental import sparse
from weft.experimental.sparse import util


def test_axes_of_size_one_broadcast():
    x, y = jnp.arange(6.0).reshape(3, 2), jnp.arange(2.0)[None]
    want = np.asarray(x) @ np.asarray(y)[0]
    assert util.broadcasting_vmap(jnp.dot)(x, y).tolist() == want.tolist()
    assert util.broadcasting_vmap(jnp.dot, (0, None))(x, y[0]).tolist() == want.tolist()
    assert util.broadcasting_vmap(jnp.dot)(y, y).tolist() == [1.0]
    assert util.broadcasting_vmap(lambda d: d["x"] * d["y"])({"x": x, "y": y}).shape == (3, 2)
    assert util.broadcasting_vmap(jnp.dot)(jnp.zeros((0, 2)), y).shape == (0,)
    with pytest.raises(ValueError, match="different sizes"):
        util.broadcasting_vmap(jnp.dot)(x, x[:2])
    with pytest.raises(ValueError, match="maps nothing"):
        util.broadcasting_vmap(jnp.dot, None)(x, x)


def test_several_axes():
    x, y = jnp.ones((2, 1, 4)), jnp.ones((1, 3, 4))
    assert util.nfold_vmap(jnp.dot, 2)(x, y).tolist() == [[4.0] * 3] * 2
    assert util.nfold_vmap(jnp.dot, 0)(x[0, 0], y[0, 0]) == 4
    with pytest.raises(ValueError, match="inconsistent sizes"):
        util.nfold_vmap(jnp.dot, 2, broadcasted=False)(x, y)


def test_what_it_names():
    assert util.SparseInfo((2, 3)) == ((2, 3), False, False)
    assert util.SparseEfficiencyWarning is sparse.SparseEfficiencyWarning
    assert issubclass(util.CuSparseEfficiencyWarning, util.SparseEfficiencyWarning)
