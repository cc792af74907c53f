"""The public surface gives what real JAX gave (surface_expected.json, written by make_surface_expected.py)."""

import functools
import json
import pathlib

import numpy as np
import pytest
from frozen import check, describe_tree

import weft
import weft.numpy as jnp

from .surface_cases import SETUP, expressions

HERE = pathlib.Path(__file__).parent

EXPECTED = json.loads((HERE / "surface_expected.json").read_text())
LOOSE = {"float32": 1e-5, "complex64": 1e-5}


@pytest.fixture(scope="module")
def scope():
    names = {"jax": weft, "jnp": jnp, "lax": weft.lax, "np": np}
    exec(SETUP.replace("import jax.", "import weft.").replace("from jax.", "from weft."), names)
    return names


@pytest.mark.parametrize("text", expressions())
def test_as_jax(text, scope):
    check(text, scope, EXPECTED[text], weft.errors, functools.partial(describe_tree, jax=weft, np=np), LOOSE)
