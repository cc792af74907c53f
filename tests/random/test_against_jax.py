"""weft.random draws what real JAX drew (expected.json, written by make_expected.py): integers exactly, floats to the
last bits of erf_inv and log.
"""

import importlib.util
import json
import pathlib

import numpy as np
import pytest
from frozen import TOLERANCE, compare, describe

import weft
import weft.numpy as jnp

pytestmark = pytest.mark.slow

HERE = pathlib.Path(__file__).parent
_spec = importlib.util.spec_from_file_location("random_cases", HERE / "draw_cases.py")
cases = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(cases)
EXPECTED = json.loads((HERE / "expected.json").read_text())
EXACT = ("uniform", "unif2", "unibf", "unif16", "odd", "jit", "loop")  # no transcendental function on the way


@pytest.fixture(scope="module")
def draws():
    return cases.make_cases(weft, jnp)


@pytest.mark.parametrize("name", EXPECTED)
def test_draws_as_jax(name, draws):
    mode, f = draws[name]
    with weft.threefry_partitionable(mode):
        got = describe(f(), np)
    compare(got, EXPECTED[name], dict.fromkeys(TOLERANCE, 0) if name.split("-")[0] in EXACT else None)


@pytest.mark.parametrize(
    "bad, error",
    [
        (lambda r: r.key(1.5), TypeError),
        (lambda r: r.key([1, 2]), TypeError),
        (lambda r: r.split(jnp.ones(2)), TypeError),
        (lambda r: r.uniform(r.split(r.key(0))), ValueError),
        (lambda r: r.uniform(r.key(0), (2,), int), ValueError),
        (lambda r: r.randint(r.key(0), (2,), 0, 3, float), TypeError),
        (lambda r: r.choice(r.key(0), 3, (5,), replace=False), ValueError),
        (lambda r: r.choice(r.key(0), 0, (5,)), ValueError),
        (lambda r: r.bits(r.key(0), (2,), "int32"), ValueError),
        (lambda r: r.fold_in(r.key(0), -1), OverflowError),
        (lambda r: r.key(0, impl="dice"), ValueError),
        (lambda r: r.normal(r.key(0), (-1,)), TypeError),
        (lambda r: r.wrap_key_data(jnp.zeros(3, "uint32")), TypeError),
    ],
)
def test_bad_arguments_have_clear_errors(bad, error):
    with pytest.raises(error):
        bad(weft.random)
