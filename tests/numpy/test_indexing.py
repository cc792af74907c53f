"""Indexing, `.at[]` and bad input give what real JAX gave (index_expected.json, written by make_index_expected.py):
values and classes of errors.
"""

import json
import pathlib
import sys

import numpy as np
import pytest
from frozen import check, outcome

import weft
import weft.numpy as jnp

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from index_cases import OTHERWISE, SETUP, expressions  # noqa: E402

pytestmark = pytest.mark.slow

EXPECTED = json.loads((HERE / "index_expected.json").read_text())
# no errors to show to users
BROKEN = {"AttributeError", "KeyError", "AssertionError", "UnboundLocalError", "ZeroDivisionError", "SystemError"}


@pytest.fixture(scope="module")
def scope():
    names = {"jax": weft, "jnp": jnp, "np": np}
    exec(SETUP, names)
    return names


@pytest.mark.parametrize("text", expressions())
def test_as_jax(text, scope):
    # it compiles nothing; primitives are compared with it elsewhere
    with weft.default_device(weft.devices("reference")[0]):
        if text in OTHERWISE:  # the list can only shrink
            with pytest.raises(AssertionError):
                check(text, scope, EXPECTED[text], weft.errors)
            kind, *classes = outcome(text, scope)
            assert kind != "error" or not BROKEN & set(classes[0]), f"{text}: {classes[0]}"
        else:
            check(text, scope, EXPECTED[text], weft.errors)


@pytest.mark.parametrize(
    "text, words",
    [
        ("x[[0, 1]]", ["list", "array"]),
        ("x[1.5]", ["position 0", "float"]),
        ("x['a']", ["string", "'a'"]),
        ("x[{0}]", ["set"]),
        ("x[0, 0, 0]", ["Too many", "2-dim"]),
        ("x[jnp.array([1.])]", ["float32", "position 0"]),
        ("x.at[0].set('a')", ["str"]),
        ("x.at[0].get(mode='foo')", ["mode", "foo"]),
        ("jnp.sin([1.])", ["sin", "list"]),
        ("jnp.sum(x, axis=2)", ["axis 2", "dimension 2"]),
        ("jnp.take(x, [0])", ["take", "list"]),
        ("jnp.matvec(v, v)", ["matvec", "(3,)"]),
        ("jnp.hypot(c, c)", ["hypot", "complex"]),
        ("jnp.sort(x, kind='foo')", ["sort", "kind"]),
        ("jax.jit(lambda k: jnp.zeros(k))(3)", ["shape", "static_argnums"]),
        ("jax.jit(lambda k: jnp.repeat(v, k))(2)", ["repeat", "repeats"]),
        ("jnp.einsum('ij->ik', x)", ["einsum"]),
        ("jnp.fill_diagonal(x, 1.)", ["fill_diagonal", "inplace=False"]),
    ],
)
def test_errors_name_the_function_and_the_argument(text, words, scope):
    with pytest.raises(Exception) as caught:
        eval(text, scope)
    message = str(caught.value)
    assert all(word in message for word in words) and len(message.splitlines()) <= 10, message


def test_apply_is_as_often_as_a_place_is_named():
    x, i = jnp.arange(3.0), jnp.array([0, 2, 0, 0])
    assert (
        x.at[i].apply(lambda v: v + 1).tolist()
        == [3.0, 1.0, 3.0]
        == weft.jit(lambda i: x.at[i].apply(lambda v: v + 1))(i).tolist()
    )


def test_vmap_over_no_elements_indexes_none():
    out = weft.vmap(lambda x, i: x[i])(jnp.ones((0, 3, 2)), jnp.zeros((0, 4), int))
    assert out.shape == (0, 4, 2)
    assert weft.vmap(lambda x, i: weft.lax.dynamic_slice(x, (i,), (2,)))(jnp.ones((0, 3)), jnp.zeros(0, int)).shape == (
        0,
        2,
    )
