"""weft.experimental.sparse gives what real JAX's gives (sparse_expected.json)."""

import json
import pathlib
import sys

import numpy as np
import pytest
from frozen import check

import weft
import weft.numpy as jnp

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from sparse_cases import SETUP, description, expressions  # noqa: E402

pytestmark = pytest.mark.slow
EXPECTED = json.loads((HERE / "sparse_expected.json").read_text())


@pytest.fixture(scope="module")
def scope():
    names = {"jax": weft, "jnp": jnp, "np": np}
    exec(SETUP, names)
    return names


@pytest.mark.parametrize("text", expressions())
def test_as_jax(text, scope):
    check(text, scope, EXPECTED[text], weft.errors, description(np))
