"""Transformations give what real JAX gave (transforms_expected.json, written by make_transforms_expected.py)."""

import functools
import json
import pathlib

import numpy as np
import pytest
from frozen import check, describe_tree

import weft
import weft.experimental.ode
import weft.numpy as jnp

from .transform_cases import SETUP, expressions

HERE = pathlib.Path(__file__).parent

EXPECTED = json.loads((HERE / "transforms_expected.json").read_text())
LOOSE = {"float32": 1e-5, "complex64": 1e-5, "float64": 1e-5, "complex128": 1e-5}  # float32 on the way
# JAX calls results weak here that come from strong values, or strong that come from weak ones
WEAKER = ("jet(", "lax.scan(lambda c, x: (c+x, c), 0., jnp.", "jax.grad(lambda a, y0, ts: jax.experimental.ode.odeint")


@pytest.fixture(scope="module")
def scope():
    names = {"jax": weft, "jnp": jnp, "lax": weft.lax, "np": np}
    exec(SETUP.replace("from jax.", "from weft."), names)
    return names


@pytest.mark.parametrize("text", expressions())
def test_as_jax(text, scope):
    check(
        text,
        scope,
        EXPECTED[text],
        weft.errors,
        functools.partial(describe_tree, jax=weft, np=np),
        LOOSE,
        weak=not text.startswith(WEAKER),
    )
